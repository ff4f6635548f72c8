/* Reading a request's object field by field: bounds, types, and no unknown names. */
#ifndef PAWL_BASE_FIELDS_H
#define PAWL_BASE_FIELDS_H

#include "base/json/value.h"
#include "base/problem.h"

/* Reads members by name with bounds; at the end refuses unknown names, then missing ones. The first
 * fault wins and makes the rest no-ops; fields_end() reports it. */
struct fields {
    const struct json *object;
    struct problem *problem;
    enum err err;
    /* Counts the members that make no difference, which are marked (json_mark_default); NULL: they
     * are not wanted. */
    size_t *defaults;
    const char *seen[24];
    size_t seen_count;
    uint32_t required; /* one bit for each of `seen` */
};

/* `object` may be NULL (an empty body): then every field is absent. */
void fields_begin(struct fields *f, const struct json *object, struct problem *p);
/* Absent or null leaves *ret as it was: what it was is the default. */
void fields_text(struct fields *f, const char *name, size_t len_max, struct str *ret);
void fields_name(struct fields *f, const char *name, size_t len_max, struct str *ret);
void fields_int(struct fields *f, const char *name, int64_t min, int64_t max, int64_t *ret);
void fields_bool(struct fields *f, const char *name, bool *ret);
/* Borrowed; NULL when absent. A null counts as a value. */
void fields_any(struct fields *f, const char *name, const struct json **ret);
/* Borrowed; NULL when absent, null or at fault. */
void fields_object(struct fields *f, const char *name, const struct json **ret);
void fields_array(struct fields *f, const char *name, size_t count_max, const struct json **ret);
/* One that was read before; fields_end() refuses an object without it. */
void fields_require(struct fields *f, const char *name);
/* The member, whatever it is, says no more than its absence would. */
void fields_default(struct fields *f, const char *name);
/* Says what is wrong with a field from outside, e.g. "must be one of …". */
void fields_fault(struct fields *f, const char *name, const char *message);
MUST_CHECK enum err fields_end(struct fields *f);

#endif
