/* Tenants that a connection has read. */
#include "core/txn/cache/tenant_cache.h"

#include "base/hash_map.h"
#include "store/tenants.h"

#include <stdlib.h>

struct entry {
    struct tenant tenant;
    struct hash_entry by_id;
    struct hash_entry by_num; /* only once it has a number */
    struct entry *next_dirty; /* counters to write */
    bool dirty;
    char text[]; /* what the tenant's strings point to */
};

struct tenant_cache {
    struct hash_map by_id;
    struct hash_map by_num;
    struct entry *dirty;
};

struct tenant_cache *tenant_cache_new(void)
{
    return calloc(1, sizeof(struct tenant_cache));
}

void tenant_cache_free(struct tenant_cache *cache)
{
    if (cache == NULL)
        return;
    tenant_cache_forget(cache);
    hash_map_release(&cache->by_id);
    hash_map_release(&cache->by_num);
    free(cache);
}

void tenant_cache_forget(struct tenant_cache *cache)
{
    HASH_MAP_WALK (&cache->by_id, e)
        free(CONTAINER_OF(e, struct entry, by_id));
    hash_map_clear(&cache->by_id);
    hash_map_clear(&cache->by_num);
    cache->dirty = NULL;
}

size_t tenant_cache_count(const struct tenant_cache *cache)
{
    return cache->by_id.count;
}

static void add_num(struct tenant_cache *cache, struct entry *entry)
{
    hash_map_add(&cache->by_num, &entry->by_num, hash_number(&cache->by_num, entry->tenant.num));
}

struct tenant *tenant_cache_add(struct tenant_cache *cache, const struct tenant *read)
{
    assert(tenant_cache_find(cache, read->id) == NULL);
    struct entry *entry = calloc(1, sizeof(*entry) + read->id.len + read->name.len);
    if (entry == NULL)
        return NULL;
    entry->tenant = *read;
    struct str *const own[] = {&entry->tenant.id, &entry->tenant.name};
    char *at = entry->text;
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (own[i]->ptr == NULL)
            continue;
        memcpy(at, own[i]->ptr, own[i]->len);
        own[i]->ptr = at;
        at += own[i]->len;
    }
    hash_map_add(&cache->by_id, &entry->by_id, hash_text(&cache->by_id, entry->tenant.id));
    if (entry->tenant.num != 0)
        add_num(cache, entry);
    return &entry->tenant;
}

struct tenant *tenant_cache_find(const struct tenant_cache *cache, struct str id)
{
    struct hash_entry *e = hash_map_find(&cache->by_id, hash_text(&cache->by_id, id));
    while (e != NULL && !str_eq(CONTAINER_OF(e, struct entry, by_id)->tenant.id, id))
        e = hash_map_find_next(e);
    return e != NULL ? &CONTAINER_OF(e, struct entry, by_id)->tenant : NULL;
}

struct tenant *tenant_cache_find_num(const struct tenant_cache *cache, int64_t num)
{
    struct hash_entry *e = hash_map_find(&cache->by_num, hash_number(&cache->by_num, num));
    while (e != NULL && CONTAINER_OF(e, struct entry, by_num)->tenant.num != num)
        e = hash_map_find_next(e);
    return e != NULL ? &CONTAINER_OF(e, struct entry, by_num)->tenant : NULL;
}

void tenant_cache_numbered(struct tenant_cache *cache, struct tenant *t)
{
    assert(t->num != 0 && tenant_cache_find_num(cache, t->num) == NULL);
    add_num(cache, CONTAINER_OF(t, struct entry, tenant));
}

void tenant_cache_touch(struct tenant_cache *cache, struct tenant *t)
{
    struct entry *entry = CONTAINER_OF(t, struct entry, tenant);
    assert(t->num != 0);
    if (entry->dirty)
        return;
    entry->dirty = true;
    entry->next_dirty = cache->dirty;
    cache->dirty = entry;
}

enum err tenant_cache_flush(struct tenant_cache *cache, struct db *db)
{
    enum err e = ERR_OK;
    for (struct entry *t = cache->dirty; t != NULL && e == ERR_OK; t = t->next_dirty) {
        e = tenants_update_counters(db, &t->tenant);
        t->dirty = false;
    }
    cache->dirty = NULL;
    return e;
}

bool tenant_cache_is_flushed(const struct tenant_cache *cache)
{
    return cache->dirty == NULL;
}

static enum err reload(struct tenant *t, struct db *db, struct arena *arena)
{
    struct tenant stored = {0};
    bool found = false;
    if (t->num == 0)
        return ERR_OK;
    enum err e = tenants_find_num(db, t->num, arena, &found, &stored);
    if (e != ERR_OK || !found)
        return e;
    t->active_runs = stored.active_runs;
    t->queued_runs = stored.queued_runs;
    return ERR_OK;
}

enum err tenant_cache_reload(struct tenant_cache *cache, struct db *db, struct arena *arena)
{
    assert(cache->dirty == NULL);
    enum err e = ERR_OK;
    HASH_MAP_WALK (&cache->by_id, entry) {
        if (e == ERR_OK)
            e = reload(&CONTAINER_OF(entry, struct entry, by_id)->tenant, db, arena);
    }
    return e;
}
