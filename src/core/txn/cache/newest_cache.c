/* The newest version of each workflow that a connection has looked up. */
#include "core/txn/cache/newest_cache.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "base/pages.h"
#include "store/workflows.h"

enum { WORKFLOWS_MAX = 512 };

struct cached {
    struct hash_entry entry;
    int64_t tenant;
    size_t id_len;
    char id[NAME_MAX_LEN];
    struct workflow_newest newest;
};

struct newest_cache {
    struct hash_map map; /* by tenant and id, in the order of their last use */
    struct cached cached[WORKFLOWS_MAX];
};

struct newest_cache *newest_cache_new(void)
{
    return pages_new(sizeof(struct newest_cache));
}

void newest_cache_forget(struct newest_cache *cache)
{
    hash_map_clear(&cache->map);
}

void newest_cache_free(struct newest_cache *cache)
{
    if (cache == NULL)
        return;
    hash_map_release(&cache->map);
    pages_free(cache, sizeof(*cache));
}

static struct cached *cached_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct cached, entry);
}

static struct cached *find(const struct newest_cache *cache, uint64_t hash, int64_t tenant,
                           struct str id)
{
    struct hash_entry *e = hash_map_find(&cache->map, hash);
    for (; e != NULL; e = hash_map_find_next(e)) {
        struct cached *c = cached_of(e);
        if (c->tenant == tenant && str_eq((struct str){c->id, c->id_len}, id))
            return c;
    }
    return NULL;
}

static void add(struct newest_cache *cache, uint64_t hash, int64_t tenant, struct str id,
                const struct workflow_newest *newest)
{
    if (id.len > NAME_MAX_LEN)
        return;
    struct cached *c = &cache->cached[cache->map.count % WORKFLOWS_MAX];
    if (cache->map.count == WORKFLOWS_MAX) {
        c = cached_of(cache->map.oldest);
        hash_map_remove(&cache->map, &c->entry);
    }
    c->tenant = tenant;
    c->id_len = id.len;
    memcpy(c->id, id.ptr, id.len);
    c->newest = *newest;
    hash_map_add(&cache->map, &c->entry, hash);
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
    uint64_t hash = hash_with(hash_text(&cache->map, id), (uint64_t)tenant);
    struct cached *known = find(cache, hash, tenant, id);
    if (known != NULL) {
        hash_map_touch(&cache->map, &known->entry);
        *ret = known->newest;
        return ERR_OK;
    }
    enum err e = workflows_find(db, tenant, id, take_newest, ret);
    if (e == ERR_OK && ret->found)
        add(cache, hash, tenant, id, ret);
    return e;
}
