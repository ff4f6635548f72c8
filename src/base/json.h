/* Strict JSON over jansson, and the two ways pawl writes it.
 *
 * Reading refuses: duplicate names, depth past JSON_DEPTH_MAX, integers outside 64 bits, numbers
 * that overflow a double, invalid UTF-8, a raw or escaped NUL, a byte-order mark, and trailing
 * text. Writing: `plain` keeps the order of members and shows 1.0 as 1.0; `canonical` is RFC 8785
 * (sorted by UTF-16 code units, shortest numbers) with one addition: integers stay exact beyond
 * 2^53. */
#ifndef PAWL_BASE_JSON_H
#define PAWL_BASE_JSON_H

#include "base/json/number.h"
#include "base/json/read.h"
#include "base/json_out.h"

#include <jansson.h>

/* The caller owns *ret (json_decref). On failure p says where and why. */
MUST_CHECK enum err json_parse(struct str text, struct problem *p, json_t **ret);
/* One rule for numbers: a literal whose value is a whole number of 64 bits is that number, however
 * it is written (1, 1.0, 1e0; 9007199254740993.0 too, which no double holds). Every other literal
 * with a fraction or an exponent is the double that is nearest to it, which beyond 2^53 is the
 * whole number that its shortest digits say. True, and *ret, when the value is a whole number. */
bool json_whole(const json_t *value, int64_t *ret);
/* The text with literals beyond 2^53 that have a fraction or an exponent, and are whole numbers,
 * written as integers. False, and nothing is put, when there are none. */
bool json_put_whole_numbers(struct buf *out, struct str text);
/* Reads text that pawl has written. ERR_DAMAGED when it is no JSON, ERR_NO_MEMORY. The caller owns
 * *ret. */
MUST_CHECK enum err json_load(struct str text, json_t **ret);
/* These fail only when memory ran out or the buffer's ceiling was met: ask buf_ok(). */
void json_put_plain(struct buf *out, const json_t *value);
void json_put_canonical(struct buf *out, const json_t *value);

/* Members of a request's objects that say no more than their absence would: null, or spelled out
 * with their default. */
struct json_defaults {
    struct json_default {
        const json_t *object; /* NULL: a free slot */
        const char *name;
    } * slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t count;
};

/* `name` is borrowed. False when memory ran out. */
MUST_CHECK bool json_defaults_add(struct json_defaults *d, const json_t *object, const char *name);
bool json_defaults_has(const struct json_defaults *d, const json_t *object, const char *name);
void json_defaults_release(struct json_defaults *d);

/* As canonical, leaving out one member of the outermost object (NULL: none), and all that are
 * defaults (NULL: none). */
void json_put_canonical_without(struct buf *out, const json_t *value, const char *left_out,
                                const struct json_defaults *defaults);

static inline struct str json_str(const json_t *text)
{
    return (struct str){json_string_value(text), json_string_length(text)};
}

/* --- reading a request's object field by field --- */

/* Reads members by name with bounds; at the end refuses unknown names, then missing ones. The first
 * fault wins and makes the rest no-ops; fields_end() reports it. */
struct fields {
    const json_t *object;
    struct problem *problem;
    enum err err;
    struct json_defaults *defaults; /* where to note members that make no difference; may be NULL */
    const char *seen[24];
    size_t seen_count;
    uint32_t required; /* one bit for each of `seen` */
};

/* `object` may be NULL (an empty body): then every field is absent. */
void fields_begin(struct fields *f, const json_t *object, struct problem *p);
/* Absent or null leaves *ret as it was: what it was is the default. */
void fields_text(struct fields *f, const char *name, size_t len_max, struct str *ret);
void fields_name(struct fields *f, const char *name, size_t len_max, struct str *ret);
void fields_int(struct fields *f, const char *name, int64_t min, int64_t max, int64_t *ret);
void fields_bool(struct fields *f, const char *name, bool *ret);
/* Borrowed; NULL when absent. json_null() when it is null. */
void fields_any(struct fields *f, const char *name, const json_t **ret);
/* Borrowed; NULL when absent, null or at fault. */
void fields_object(struct fields *f, const char *name, const json_t **ret);
void fields_array(struct fields *f, const char *name, size_t count_max, const json_t **ret);
/* One that was read before; fields_end() refuses an object without it. */
void fields_require(struct fields *f, const char *name);
/* The member, whatever it is, says no more than its absence would. */
void fields_default(struct fields *f, const char *name);
/* Says what is wrong with a field from outside, e.g. "must be one of …". */
void fields_fault(struct fields *f, const char *name, const char *message);
MUST_CHECK enum err fields_end(struct fields *f);

#endif
