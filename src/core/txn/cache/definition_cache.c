/* Parsed definitions kept from one transaction to the next. */
#include "core/txn/cache/definition_cache.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "store/workflows.h"

struct cached {
    struct hash_entry entry;
    int64_t tenant;
    int64_t version;
    struct definition *def;
};

struct definition_cache {
    struct hash_map map; /* by tenant, workflow and version, in the order of their last use */
};

struct definition_cache *definition_cache_new(void)
{
    return calloc(1, sizeof(struct definition_cache));
}

static struct cached *cached_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct cached, entry);
}

static void drop_oldest(struct definition_cache *cache)
{
    struct cached *c = cached_of(cache->map.oldest);
    hash_map_remove(&cache->map, &c->entry);
    definition_free(c->def);
    free(c);
}

void definition_cache_trim(struct definition_cache *cache)
{
    while (cache->map.count > DEFINITION_CACHE_MAX)
        drop_oldest(cache);
}

void definition_cache_forget(struct definition_cache *cache)
{
    while (cache->map.count > 0)
        drop_oldest(cache);
}

void definition_cache_free(struct definition_cache *cache)
{
    if (cache == NULL)
        return;
    definition_cache_forget(cache);
    hash_map_release(&cache->map);
    free(cache);
}

struct loading {
    struct str id;
    struct problem *problem;
    struct definition *def;
    enum err err;
    char why[PROBLEM_DETAIL_MAX]; /* the stored text cannot be read */
};

static void parse_stored(void *ctx, const struct workflow_version *version)
{
    struct loading *l = ctx;
    struct json *json = NULL;
    l->err = json_read(version->definition, l->problem, &json);
    if (l->err == ERR_OK)
        l->err = definition_parse(json, l->id, l->problem, &l->def);
    if (l->err != ERR_OK)
        (void)snprintf(l->why, sizeof(l->why), "%s", l->problem->detail);
    json_free(json);
}

static uint64_t hash_of(const struct definition_cache *cache, int64_t tenant,
                        struct str workflow_id, int64_t version)
{
    uint64_t hash = hash_with(hash_text(&cache->map, workflow_id), (uint64_t)tenant);
    return hash_with(hash, (uint64_t)version);
}

static struct cached *find(const struct definition_cache *cache, uint64_t hash, int64_t tenant,
                           struct str workflow_id, int64_t version)
{
    struct hash_entry *e = hash_map_find(&cache->map, hash);
    for (; e != NULL; e = hash_map_find_next(e)) {
        struct cached *c = cached_of(e);
        if (c->tenant == tenant && c->version == version && str_eq(c->def->id, workflow_id))
            return c;
    }
    return NULL;
}

enum err definition_cache_get(struct definition_cache *cache, struct db *db, int64_t tenant,
                              struct str workflow_id, int64_t version, struct problem *p,
                              const struct definition **ret)
{
    uint64_t hash = hash_of(cache, tenant, workflow_id, version);
    struct cached *known = find(cache, hash, tenant, workflow_id, version);
    if (known != NULL) {
        hash_map_touch(&cache->map, &known->entry);
        *ret = known->def;
        return ERR_OK;
    }
    struct loading l = {.id = workflow_id, .problem = p, .err = ERR_WORKFLOW_NOT_FOUND};
    enum err e = workflows_find_version(db, tenant, workflow_id, version, parse_stored, &l);
    if (e == ERR_OK)
        e = l.err;
    if (e != ERR_OK) {
        definition_free(l.def); /* the row was read, and then the query failed */
        return problem_set(p, e, "Cannot load version %lld of workflow \"%.*s\"%s%s",
                           (long long)version, STR_ARG(workflow_id), l.why[0] != '\0' ? ": " : "",
                           l.why);
    }
    struct cached *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        definition_free(l.def);
        return problem_set(p, ERR_NO_MEMORY, "No memory for the definition");
    }
    *c = (struct cached){.tenant = tenant, .version = version, .def = l.def};
    hash_map_add(&cache->map, &c->entry, hash);
    *ret = c->def;
    return ERR_OK;
}
