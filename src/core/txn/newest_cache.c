/* The newest version of each workflow that a connection has looked up. */
#include "core/txn/newest_cache.h"

#include "base/limits.h"
#include "base/pages.h"
#include "store/workflows.h"

#include <stdio.h>
#include <string.h>

enum { SLOTS = 512 };

struct newest_cache {
    bool any;
    struct {
        int64_t tenant; /* 0: empty */
        char id[NAME_MAX_LEN + 1];
        struct workflow_newest newest;
    } slots[SLOTS];
};

struct newest_cache *newest_cache_new(void)
{
    return pages_new(sizeof(struct newest_cache));
}

void newest_cache_forget(struct newest_cache *cache)
{
    if (cache->any) /* most readers have never looked one up */
        memset(cache, 0, sizeof(*cache));
}

void newest_cache_free(struct newest_cache *cache)
{
    pages_free(cache, sizeof(*cache));
}

static void take_newest(void *ctx, const struct workflow_head *head)
{
    struct workflow_newest *n = ctx;
    *n = (struct workflow_newest){true, head->archived_at >= 0, head->latest_version};
}

enum err newest_cache_find(struct newest_cache *cache, struct db *db, int64_t tenant, struct str id,
                           struct workflow_newest *ret)
{
    *ret = (struct workflow_newest){0};
    if (tenant == 0)
        return ERR_OK;
    size_t slot = (str_hash(id) ^ (uint64_t)tenant * 0x9E3779B97F4A7C15u) % SLOTS;
    if (cache->slots[slot].tenant == tenant && str_is(id, cache->slots[slot].id)) {
        *ret = cache->slots[slot].newest;
        return ERR_OK;
    }
    enum err e = workflows_find(db, tenant, id, take_newest, ret);
    if (e != ERR_OK || !ret->found)
        return e;
    cache->any = true;
    cache->slots[slot].tenant = tenant;
    cache->slots[slot].newest = *ret;
    (void)snprintf(cache->slots[slot].id, NAME_MAX_LEN + 1, "%.*s", STR_ARG(id));
    return ERR_OK;
}
