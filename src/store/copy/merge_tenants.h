/* Tenants that have a row in more than one shard: in their own, and in shard 0 or another one that
 * answered a request about keys or all tenants. In one store the row of their own shard stays, and
 * the others' numbers mean it. */
#ifndef PAWL_STORE_COPY_MERGE_TENANTS_H
#define PAWL_STORE_COPY_MERGE_TENANTS_H

#include "base/limits.h"
#include "store/db.h"

/* A number that a tenant has in a shard, and not in the store of all. The server itself, which has
 * the number 0 in every shard, is here for all but shard 0. */
struct merge_alias {
    size_t shard;
    int64_t num;
    int64_t tenant; /* its number from now on */
    int64_t chain;  /* the number of the audit chain that it has there */
};

struct merge_tenants {
    struct merge_alias *list; /* by shard, then by number */
    size_t count;
    size_t room;
};

/* p tells which tenant is in two shards of its own. Release it whatever is returned. */
MUST_CHECK enum err merge_tenants_read(struct db *const *shards, size_t count, struct problem *p,
                                       struct merge_tenants *ret);
void merge_tenants_release(struct merge_tenants *t);
/* The chains get the numbers after `last`. Returns the last of them. */
int64_t merge_tenants_number_chains(struct merge_tenants *t, int64_t last);
/* NULL: the number stays as it is. */
const struct merge_alias *merge_tenants_find(const struct merge_tenants *t, size_t shard,
                                             int64_t num);

#endif
