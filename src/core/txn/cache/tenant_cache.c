/* Tenants that a connection has read. */
#include "core/txn/cache/tenant_cache.h"

#include "base/digits.h"
#include "base/hash_map.h"
#include "base/limits.h"
#include "store/tenants.h"

#include <stdlib.h>

struct entry {
    struct tenant tenant;
    struct hash_entry by_id;
    struct hash_entry by_num;  /* only once it has a number */
    struct entry *next_dirty;  /* counters to write */
    struct entry *next_logged; /* counters that the log has and the tenant's row has not */
    bool dirty;
    bool logged;
    char text[]; /* what the tenant's strings point to */
};

struct tenant_cache {
    struct hash_map by_id;
    struct hash_map by_num;
    struct entry *dirty;
    struct entry *logged;
    int64_t logged_count;
    int64_t log_packs; /* of the feed since the last fold … */
    int64_t log_rows;  /* … and those of them that have counters */
    bool log_is_read;
    bool folds; /* the counters that were taken go to the tenants' rows */
    struct buf text;
};

struct tenant_cache *tenant_cache_new(void)
{
    struct tenant_cache *cache = calloc(1, sizeof(*cache));
    if (cache != NULL)
        buf_init(&cache->text, COUNTER_LOG_ROW_MAX);
    return cache;
}

void tenant_cache_free(struct tenant_cache *cache)
{
    if (cache == NULL)
        return;
    tenant_cache_forget(cache);
    hash_map_release(&cache->by_id);
    hash_map_release(&cache->by_num);
    buf_release(&cache->text);
    free(cache);
}

void tenant_cache_forget(struct tenant_cache *cache)
{
    HASH_MAP_WALK (&cache->by_id, e)
        free(CONTAINER_OF(e, struct entry, by_id));
    hash_map_clear(&cache->by_id);
    hash_map_clear(&cache->by_num);
    cache->dirty = cache->logged = NULL;
    cache->logged_count = cache->log_packs = cache->log_rows = 0;
    cache->log_is_read = cache->folds = false;
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

/* --- the log --- */

static void note_logged(struct tenant_cache *cache, struct entry *entry)
{
    if (entry->logged)
        return;
    entry->logged = true;
    entry->next_logged = cache->logged;
    cache->logged = entry;
    cache->logged_count++;
}

static void log_is_empty(struct tenant_cache *cache)
{
    for (struct entry *t = cache->logged; t != NULL; t = t->next_logged)
        t->logged = false;
    cache->logged = NULL;
    cache->logged_count = cache->log_rows = 0;
}

struct log_reading {
    struct tenant_cache *cache;
    bool full;
};

static void add_logged(void *ctx, const struct tenant *t)
{
    struct log_reading *r = ctx;
    struct tenant *added = r->full ? NULL : tenant_cache_add(r->cache, t);
    if (added != NULL)
        note_logged(r->cache, CONTAINER_OF(added, struct entry, tenant));
    r->full = added == NULL;
}

enum err tenant_cache_read_log(struct tenant_cache *cache, struct db *db, struct arena *arena)
{
    if (cache->log_is_read)
        return ERR_OK;
    assert(cache->by_id.count == 0);
    struct log_reading r = {.cache = cache};
    enum err e = counter_log_size(db, &cache->log_packs, &cache->log_rows);
    if (e == ERR_OK && cache->log_rows > 0)
        e = tenants_logged(db, arena, add_logged, &r);
    if (e == ERR_OK && r.full)
        e = ERR_NO_MEMORY;
    if (e != ERR_OK)
        tenant_cache_forget(cache);
    cache->log_is_read = e == ERR_OK;
    return e;
}

/* Four numbers, with a bracket on each side and a comma behind each. */
enum { ENTRY_TEXT_MAX = 4 * (DIGITS_MAX + 1) + 2 };

static void put_entry(struct buf *out, const struct tenant *t)
{
    const int64_t numbers[] = {t->num, t->active_runs, t->queued_runs, t->rate_full_at_ns};
    char text[ENTRY_TEXT_MAX];
    char *at = text;
    *at++ = '[';
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        at = digits_put(at, numbers[i]);
        *at++ = i + 1 < ARRAY_LEN(numbers) ? ',' : ']';
    }
    buf_put(out, (struct str){text, (size_t)(at - text)});
}

static enum err write_text(struct tenant_cache *cache, struct str *ret)
{
    buf_clear(&cache->text);
    for (const struct entry *t = cache->dirty; t != NULL; t = t->next_dirty) {
        buf_put_char(&cache->text, t == cache->dirty ? '[' : ',');
        put_entry(&cache->text, &t->tenant);
    }
    buf_put_char(&cache->text, ']');
    if (!buf_ok(&cache->text))
        return ERR_NO_MEMORY;
    *ret = buf_str(&cache->text);
    return ERR_OK;
}

enum err tenant_cache_take(struct tenant_cache *cache, bool feed_grows, struct str *ret)
{
    assert(cache->log_is_read && (feed_grows || cache->dirty != NULL));
    for (struct entry *t = cache->dirty; t != NULL; t = t->next_dirty)
        note_logged(cache, t);
    cache->folds = !feed_grows || cache->log_rows >= COUNTER_LOG_ROWS_MAX ||
                   cache->log_packs >= COUNTER_LOG_PACKS_MAX ||
                   cache->logged_count > COUNTER_LOG_TENANTS_MAX;
    if (cache->folds || cache->dirty == NULL) {
        *ret = STR_NONE;
        return ERR_OK;
    }
    cache->log_rows++;
    return write_text(cache, ret);
}

static enum err fold(struct tenant_cache *cache, struct db *db, int64_t feed_end)
{
    enum err e = ERR_OK;
    for (const struct entry *t = cache->logged; t != NULL && e == ERR_OK; t = t->next_logged)
        e = tenants_update_counters(db, &t->tenant);
    if (e == ERR_OK)
        e = counters_folded(db, feed_end);
    log_is_empty(cache);
    cache->log_packs = 0;
    return e;
}

enum err tenant_cache_flush(struct tenant_cache *cache, struct db *db, int64_t packs,
                            int64_t feed_end)
{
    cache->log_packs += packs;
    enum err e = cache->folds ? fold(cache, db, feed_end) : ERR_OK;
    for (struct entry *t = cache->dirty; t != NULL; t = t->next_dirty)
        t->dirty = false;
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
    t->rate_full_at_ns = stored.rate_full_at_ns;
    return ERR_OK;
}

enum err tenant_cache_reload(struct tenant_cache *cache, struct db *db, struct arena *arena)
{
    assert(cache->dirty == NULL);
    enum err e = ERR_OK;
    log_is_empty(cache);
    HASH_MAP_WALK (&cache->by_id, entry) {
        if (e == ERR_OK)
            e = reload(&CONTAINER_OF(entry, struct entry, by_id)->tenant, db, arena);
    }
    return e;
}
