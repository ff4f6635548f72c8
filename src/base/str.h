/* Borrowed text: a pointer and a length, never owned, not always NUL-terminated.
 * A str lives as long as whatever it points into; copy it (arena_str) to keep it. */
#ifndef PAWL_BASE_STR_H
#define PAWL_BASE_STR_H

#include "base/macros.h"

#include <stdbool.h>
#include <string.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_NONE ((struct str){NULL, 0})
/* For printf's "%.*s". */
#define STR_ARG(s) (int)(s).len, (s).ptr

/* The text of a C string; NULL gives an empty str. */
static inline struct str str_of(const char *text)
{
    return (struct str){text, text != NULL ? strlen(text) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool str_is(struct str a, const char *text)
{
    return str_eq(a, str_of(text));
}

/* Equal but for the case of ASCII letters. */
bool str_eq_nocase(struct str a, struct str b);
bool str_starts_with(struct str s, struct str prefix);
bool str_ends_with(struct str s, struct str suffix);

/* Without leading and trailing spaces and tabs. */
struct str str_trim(struct str s);

/* Cuts s at the first `at`: true with both halves, or false with all of s in *head. */
bool str_cut(struct str s, char at, struct str *head, struct str *tail);

/* A whole decimal number, nothing around it. False when it is not one or does not fit. */
MUST_CHECK bool str_to_i64(struct str s, int64_t *ret);

/* The length of the first character of s, which is not empty; 0 when it is not well-formed. */
size_t str_utf8_len(struct str s);
/* Well-formed UTF-8 without surrogates or overlong forms. */
bool str_is_utf8(struct str s);
/* Puts a '?' in the place of each byte that is not part of well-formed UTF-8. */
void str_repair_utf8(char *text, size_t len);

/* Letters, digits, '_', '-', '.', ':' and at least one character: safe in paths and labels. */
bool str_is_name(struct str s);

/* FNV-1a, for hash tables that hold no hostile keys or are bounded anyway. */
uint64_t str_hash(struct str s);

#endif
