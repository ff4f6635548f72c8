/* How a route makes one answer of several (route.h), and what such functions are made of. */
#ifndef PAWL_API_MERGE_FOLD_H
#define PAWL_API_MERGE_FOLD_H

#include "base/json/write.h"
#include "base/json_out.h"

/* One more answer for the sum of those before. */
struct fold {
    const struct json *so_far; /* that sum; NULL: this is the first one */
    const struct json *next;
    size_t shard; /* whose answer `next` is */
    bool last;
    bool asked; /* the client itself sent the query that `fold_query` adds */
};

/* Puts the members of the new sum. */
typedef void fold_fn(const struct fold *f, struct json_out *o);

/* Of a number in both answers: their sum, or the larger one. What is absent is 0. */
int64_t fold_sum(const struct fold *f, const char *name);
int64_t fold_most(const struct fold *f, const char *name);
/* Is it true in both? */
bool fold_all(const struct fold *f, const char *name);
/* Puts the first that is there and not null, or null. */
void fold_put_first(const struct fold *f, struct json_out *o, const char *name);
/* Puts the members of an object. */
void fold_put_members(struct json_out *o, const struct json *object);

#endif
