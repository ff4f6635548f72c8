/* How many columns of a terminal a text takes: wide characters take two, combining and invisible
 * ones none. Bytes that are not UTF-8 take one each. */
#ifndef PAWL_CLI_WIDTH_H
#define PAWL_CLI_WIDTH_H

#include "base/str.h"

size_t text_width(struct str text);
/* The number of bytes of text that fit into `columns`. */
size_t text_prefix(struct str text, size_t columns);

/* Characters that do not take one column, in order. Made by tools/embed.py from Unicode's tables.
 */
struct width_span {
    uint32_t first;
    uint32_t last;
    uint32_t columns;
};
extern const struct width_span WIDTH_SPANS[];
extern const size_t WIDTH_SPAN_COUNT;

#endif
