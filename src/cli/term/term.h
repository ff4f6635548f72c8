/* What the terminal can show. People at a terminal get colours, short ids, relative times and lines
 * that fit; in a pipe or a file, output has full ids and times and no escape sequences. */
#ifndef PAWL_CLI_TERM_TERM_H
#define PAWL_CLI_TERM_TERM_H

#include "base/buf.h"

#include <stdio.h>

struct term {
    bool is_terminal;
    bool has_color; /* a terminal, and neither NO_COLOR nor TERM=dumb */
    bool has_utf8;
    size_t columns; /* SIZE_MAX when it is not a terminal */
    size_t rows;
};

enum style {
    STYLE_PLAIN,
    STYLE_STRONG,
    STYLE_FAINT,
    STYLE_GOOD,
    STYLE_BAD,
    STYLE_BUSY,
    STYLE_WAITS,
    STYLE_COUNT
};

/* Read each time, because a window can change its size. */
struct term term_of(FILE *file);

/* How a word is shown that says the status of a run, a step or a job. */
enum style style_of_status(struct str word);
/* The escape sequence that begins a style, or ends any style for STYLE_PLAIN; "" without colours.
 */
const char *style_code(const struct term *t, enum style style);

/* --- a line that fits --- */

struct line {
    const struct term *term;
    struct buf *out;
    size_t width;
    bool is_full;
};

/* Appends as much of the text as fits and marks where it was cut. Control characters become blanks.
 */
void line_put(struct line *l, enum style style, struct str text);
void line_printf(struct line *l, enum style style, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Blanks up to a column. */
void line_pad(struct line *l, size_t column);
void line_end(struct line *l);

/* Replaces C0, DEL and C1 characters, which control a terminal, by blanks. */
void put_clean(struct buf *out, struct str text);

#endif
