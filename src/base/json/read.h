/* The one reader of JSON: strict, in a single pass, into one piece of memory.
 *
 * It refuses: duplicate names, depth past JSON_DEPTH_MAX, integers outside 64 bits, numbers that
 * overflow a double, invalid UTF-8, lone surrogates, a raw or escaped NUL, a byte-order mark, and
 * trailing text. A value keeps nothing of the text that it was read from. */
#ifndef PAWL_BASE_JSON_READ_H
#define PAWL_BASE_JSON_READ_H

#include "base/json/value.h"
#include "base/problem.h"

/* Reads a request's text. The caller owns *ret (json_free). On failure p says where and why. */
MUST_CHECK enum err json_read(struct str text, struct problem *p, struct json **ret);
/* Reads text that pawl has written, which may be larger and deeper, and may have escaped NULs in
 * its texts. ERR_DAMAGED when it is no JSON, ERR_NO_MEMORY. The caller owns *ret. */
MUST_CHECK enum err json_read_kept(struct str text, struct json **ret);
/* The same value in memory of its own, and no more of that than it takes. ERR_NO_MEMORY. The caller
 * owns *ret. */
MUST_CHECK enum err json_copy_of(const struct json *value, struct json **ret);
/* The value at a place of the outermost object, as it stands in the text that json_read() has read:
 * what json_write_plain() would write, without writing it. STR_NONE when it would write something
 * else, and of values that take no time to write. */
struct str json_plain_source(const struct json *document, size_t place, struct str text);
/* Of a whole document, as it was read or copied; NULL is fine. */
void json_free(struct json *document);

/* Two texts of the same value: the order of members and white space do not count. ERR_NO_MEMORY;
 * texts that are no JSON differ unless they are equal. */
MUST_CHECK enum err json_same_text(struct str a, struct str b, bool *ret);

#endif
