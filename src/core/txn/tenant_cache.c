/* Tenants that a connection has read. */
#include "core/txn/tenant_cache.h"

#include "store/tenants.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1024 };

struct entry {
    struct tenant tenant;     /* first, so that a tenant's address finds its entry */
    struct entry *next;       /* in its slot */
    struct entry *next_num;   /* in its slot by number; not while it has none */
    struct entry *next_dirty; /* counters to write */
    bool dirty;
    char text[]; /* what the tenant's strings point to */
};

struct tenant_cache {
    struct entry *slots[SLOTS];
    struct entry *by_num[SLOTS];
    struct entry *dirty;
    size_t count;
};

struct tenant_cache *tenant_cache_new(void)
{
    return calloc(1, sizeof(struct tenant_cache));
}

void tenant_cache_free(struct tenant_cache *cache)
{
    if (cache != NULL)
        tenant_cache_forget(cache);
    free(cache);
}

void tenant_cache_forget(struct tenant_cache *cache)
{
    if (cache->count == 0)
        return;
    for (size_t i = 0; i < SLOTS && cache->count > 0; i++) {
        while (cache->slots[i] != NULL) {
            struct entry *old = cache->slots[i];
            cache->slots[i] = old->next;
            cache->count--;
            free(old);
        }
    }
    memset(cache->by_num, 0, sizeof(cache->by_num));
    cache->dirty = NULL;
}

size_t tenant_cache_count(const struct tenant_cache *cache)
{
    return cache->count;
}

static void link_num(struct tenant_cache *cache, struct entry *entry)
{
    struct entry **slot = &cache->by_num[(uint64_t)entry->tenant.num % SLOTS];
    entry->next_num = *slot;
    *slot = entry;
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
    struct entry **slot = &cache->slots[str_hash(entry->tenant.id) % SLOTS];
    entry->next = *slot;
    *slot = entry;
    cache->count++;
    if (entry->tenant.num != 0)
        link_num(cache, entry);
    return &entry->tenant;
}

struct tenant *tenant_cache_find(const struct tenant_cache *cache, struct str id)
{
    struct entry *entry = cache->slots[str_hash(id) % SLOTS];
    while (entry != NULL && !str_eq(entry->tenant.id, id))
        entry = entry->next;
    return entry != NULL ? &entry->tenant : NULL;
}

struct tenant *tenant_cache_find_num(const struct tenant_cache *cache, int64_t num)
{
    struct entry *entry = cache->by_num[(uint64_t)num % SLOTS];
    while (entry != NULL && entry->tenant.num != num)
        entry = entry->next_num;
    return entry != NULL ? &entry->tenant : NULL;
}

void tenant_cache_numbered(struct tenant_cache *cache, struct tenant *t)
{
    assert(t->num != 0 && tenant_cache_find_num(cache, t->num) == NULL);
    link_num(cache, CONTAINER_OF(t, struct entry, tenant));
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
    for (size_t i = 0; i < SLOTS && e == ERR_OK; i++) {
        for (struct entry *t = cache->slots[i]; t != NULL && e == ERR_OK; t = t->next)
            e = reload(&t->tenant, db, arena);
    }
    return e;
}
