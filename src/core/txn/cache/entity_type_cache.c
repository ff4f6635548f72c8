/* Types of entities and their versions, remembered. */
#include "core/txn/cache/entity_type_cache.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "base/pages.h"

enum { TYPES_MAX = 64, VERSIONS_MAX = 64 };

struct cached_type {
    struct hash_entry entry;
    struct entity_type type;
    char id[NAME_MAX_LEN];
};

struct cached_version {
    struct hash_entry entry;
    struct entity_version version;
    char queue[NAME_MAX_LEN];
    char handler[NAME_MAX_LEN];
    char created_by[ACTOR_MAX];
};

/* When one of them is full, what was not used for longest goes. */
struct entity_type_cache {
    struct hash_map by_name;
    struct cached_type types[TYPES_MAX];
    struct hash_map by_version;
    struct cached_version versions[VERSIONS_MAX];
};

struct entity_type_cache *entity_type_cache_new(void)
{
    return pages_new(sizeof(struct entity_type_cache));
}

void entity_type_cache_free(struct entity_type_cache *cache)
{
    if (cache == NULL)
        return;
    hash_map_release(&cache->by_name);
    hash_map_release(&cache->by_version);
    pages_free(cache, sizeof(*cache));
}

void entity_type_cache_forget(struct entity_type_cache *cache)
{
    hash_map_clear(&cache->by_name);
    hash_map_clear(&cache->by_version);
}

/* Copies the text to where it stays as long as the entry. */
static void own_text(struct str *text, char *own)
{
    if (text->len > 0)
        memcpy(own, text->ptr, text->len);
    if (text->ptr != NULL)
        text->ptr = own;
}

static struct cached_type *type_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct cached_type, entry);
}

static struct cached_version *version_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct cached_version, entry);
}

static void add_type(struct entity_type_cache *cache, uint64_t hash, const struct entity_type *type)
{
    if (type->id.len > NAME_MAX_LEN)
        return;
    struct cached_type *c = &cache->types[cache->by_name.count % TYPES_MAX];
    if (cache->by_name.count == TYPES_MAX) {
        c = type_of(cache->by_name.oldest);
        hash_map_remove(&cache->by_name, &c->entry);
    }
    c->type = *type;
    own_text(&c->type.id, c->id);
    hash_map_add(&cache->by_name, &c->entry, hash);
}

enum err entity_type_cache_find(struct entity_type_cache *cache, struct db *db, int64_t tenant,
                                struct str id, struct arena *arena, bool *ret_found,
                                struct entity_type *ret)
{
    uint64_t hash = hash_with(hash_text(&cache->by_name, id), (uint64_t)tenant);
    struct hash_entry *e = hash_map_find(&cache->by_name, hash);
    while (e != NULL && !(type_of(e)->type.tenant == tenant && str_eq(type_of(e)->type.id, id)))
        e = hash_map_find_next(e);
    if (e != NULL) {
        hash_map_touch(&cache->by_name, e);
        *ret_found = true;
        *ret = type_of(e)->type;
        return arena_keep(arena, &ret->id) ? ERR_OK : ERR_NO_MEMORY;
    }
    enum err err = entity_types_find(db, tenant, id, arena, ret_found, ret);
    if (err == ERR_OK && *ret_found)
        add_type(cache, hash, ret);
    return err;
}

static void add_version(struct entity_type_cache *cache, uint64_t hash,
                        const struct entity_version *v)
{
    if (v->rules.queue.len > NAME_MAX_LEN || v->rules.handler.len > NAME_MAX_LEN ||
        v->created_by.len > ACTOR_MAX)
        return;
    struct cached_version *c = &cache->versions[cache->by_version.count % VERSIONS_MAX];
    if (cache->by_version.count == VERSIONS_MAX) {
        c = version_of(cache->by_version.oldest);
        hash_map_remove(&cache->by_version, &c->entry);
    }
    c->version = *v;
    own_text(&c->version.rules.queue, c->queue);
    own_text(&c->version.rules.handler, c->handler);
    own_text(&c->version.created_by, c->created_by);
    hash_map_add(&cache->by_version, &c->entry, hash);
}

enum err entity_type_cache_version(struct entity_type_cache *cache, struct db *db, int64_t type,
                                   int64_t version, struct arena *arena, bool *ret_found,
                                   struct entity_version *ret)
{
    uint64_t hash = hash_with(hash_number(&cache->by_version, type), (uint64_t)version);
    struct hash_entry *e = hash_map_find(&cache->by_version, hash);
    while (e != NULL &&
           !(version_of(e)->version.type == type && version_of(e)->version.version == version))
        e = hash_map_find_next(e);
    if (e != NULL) {
        hash_map_touch(&cache->by_version, e);
        *ret_found = true;
        *ret = version_of(e)->version;
        bool kept = arena_keep(arena, &ret->rules.queue) &&
                    arena_keep(arena, &ret->rules.handler) && arena_keep(arena, &ret->created_by);
        return kept ? ERR_OK : ERR_NO_MEMORY;
    }
    enum err err = entity_versions_find(db, type, version, arena, ret_found, ret);
    if (err == ERR_OK && *ret_found)
        add_version(cache, hash, ret);
    return err;
}
