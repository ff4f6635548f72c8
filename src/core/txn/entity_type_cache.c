/* Types of entities and their versions, remembered. */
#include "core/txn/entity_type_cache.h"

#include "base/limits.h"
#include "base/pages.h"

enum { SLOTS = 64 };

struct entity_type_cache {
    bool any;
    struct {
        struct entity_type type; /* num 0: empty */
        char id[NAME_MAX_LEN];
    } types[SLOTS];
    struct {
        struct entity_version version; /* type 0: empty */
        char queue[NAME_MAX_LEN];
        char handler[NAME_MAX_LEN];
        char created_by[ACTOR_MAX];
    } versions[SLOTS];
};

struct entity_type_cache *entity_type_cache_new(void)
{
    return pages_new(sizeof(struct entity_type_cache));
}

void entity_type_cache_free(struct entity_type_cache *kept)
{
    pages_free(kept, sizeof(*kept));
}

void entity_type_cache_forget(struct entity_type_cache *kept)
{
    if (kept->any)
        memset(kept, 0, sizeof(*kept));
}

static bool keep_text(struct str *text, char *own, size_t size)
{
    if (text->len > size)
        return false;
    memcpy(own, text->ptr, text->len);
    text->ptr = own;
    return true;
}

enum err entity_type_cache_find(struct entity_type_cache *kept, struct db *db, int64_t tenant,
                                struct str id, struct arena *arena, bool *ret_found,
                                struct entity_type *ret)
{
    size_t at = (str_hash(id) ^ (uint64_t)tenant * 0x9E3779B97F4A7C15u) % SLOTS;
    struct entity_type *slot = &kept->types[at].type;
    *ret_found = slot->num != 0 && slot->tenant == tenant && str_eq(slot->id, id);
    if (*ret_found) {
        *ret = *slot;
        return arena_keep(arena, &ret->id) ? ERR_OK : ERR_NO_MEMORY;
    }
    enum err e = entity_types_find(db, tenant, id, arena, ret_found, ret);
    if (e != ERR_OK || !*ret_found)
        return e;
    *slot = *ret;
    kept->any = true;
    if (!keep_text(&slot->id, kept->types[at].id, sizeof(kept->types[at].id)))
        slot->num = 0;
    return ERR_OK;
}

enum err entity_type_cache_version(struct entity_type_cache *kept, struct db *db, int64_t type,
                                   int64_t version, struct arena *arena, bool *ret_found,
                                   struct entity_version *ret)
{
    size_t at = (uint64_t)(type * 31 + version) % SLOTS;
    struct entity_version *slot = &kept->versions[at].version;
    *ret_found = slot->type == type && slot->version == version;
    if (*ret_found) {
        *ret = *slot;
        bool kept_all = arena_keep(arena, &ret->rules.queue) &&
                        arena_keep(arena, &ret->rules.handler) &&
                        arena_keep(arena, &ret->created_by);
        return kept_all ? ERR_OK : ERR_NO_MEMORY;
    }
    enum err e = entity_versions_find(db, type, version, arena, ret_found, ret);
    if (e != ERR_OK || !*ret_found)
        return e;
    *slot = *ret;
    kept->any = true;
    if (!keep_text(&slot->rules.queue, kept->versions[at].queue, NAME_MAX_LEN) ||
        !keep_text(&slot->rules.handler, kept->versions[at].handler, NAME_MAX_LEN) ||
        !keep_text(&slot->created_by, kept->versions[at].created_by, ACTOR_MAX))
        slot->type = 0;
    return ERR_OK;
}
