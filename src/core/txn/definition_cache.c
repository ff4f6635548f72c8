/* Parsed definitions kept from one transaction to the next. */
#include "core/txn/definition_cache.h"

#include "base/limits.h"
#include "store/workflows.h"

enum { SLOTS = 512 };

struct cached {
    struct cached *next;          /* in its slot */
    struct cached *older, *newer; /* by last use */
    int64_t tenant;
    int64_t version;
    struct definition *def;
};

struct definition_cache {
    struct cached *slots[SLOTS];
    struct cached *oldest, *newest;
    size_t count;
};

struct definition_cache *definition_cache_new(void)
{
    return calloc(1, sizeof(struct definition_cache));
}

static size_t slot_of(int64_t tenant, struct str workflow_id, int64_t version)
{
    return (str_hash(workflow_id) ^ (uint64_t)tenant * 0x9E3779B97F4A7C15u ^ (uint64_t)version) %
           SLOTS;
}

static void unlink_age(struct definition_cache *cache, struct cached *c)
{
    *(c->older != NULL ? &c->older->newer : &cache->oldest) = c->newer;
    *(c->newer != NULL ? &c->newer->older : &cache->newest) = c->older;
}

static void link_newest(struct definition_cache *cache, struct cached *c)
{
    c->older = cache->newest;
    c->newer = NULL;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = c;
    cache->newest = c;
}

static void drop_oldest(struct definition_cache *cache)
{
    struct cached *c = cache->oldest;
    unlink_age(cache, c);
    struct cached **at = &cache->slots[slot_of(c->tenant, c->def->id, c->version)];
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    definition_free(c->def);
    free(c);
    cache->count--;
}

void definition_cache_trim(struct definition_cache *cache)
{
    while (cache->count > DEFINITION_CACHE_MAX)
        drop_oldest(cache);
}

void definition_cache_forget(struct definition_cache *cache)
{
    while (cache->count > 0)
        drop_oldest(cache);
}

void definition_cache_free(struct definition_cache *cache)
{
    if (cache == NULL)
        return;
    definition_cache_forget(cache);
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
    json_t *json = NULL;
    l->err = json_parse(version->definition, l->problem, &json);
    if (l->err == ERR_OK)
        l->err = definition_parse(json, l->id, l->problem, &l->def);
    if (l->err != ERR_OK)
        (void)snprintf(l->why, sizeof(l->why), "%s", l->problem->detail);
    json_decref(json);
}

enum err definition_cache_get(struct definition_cache *cache, struct db *db, int64_t tenant,
                              struct str workflow_id, int64_t version, struct problem *p,
                              const struct definition **ret)
{
    size_t slot = slot_of(tenant, workflow_id, version);
    for (struct cached *c = cache->slots[slot]; c != NULL; c = c->next) {
        if (c->tenant == tenant && c->version == version && str_eq(c->def->id, workflow_id)) {
            unlink_age(cache, c);
            link_newest(cache, c);
            *ret = c->def;
            return ERR_OK;
        }
    }
    struct loading l = {.id = workflow_id, .problem = p, .err = ERR_WORKFLOW_NOT_FOUND};
    enum err e = workflows_find_version(db, tenant, workflow_id, version, parse_stored, &l);
    if (e == ERR_OK)
        e = l.err;
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot load version %lld of workflow \"%.*s\"%s%s",
                           (long long)version, STR_ARG(workflow_id), l.why[0] != '\0' ? ": " : "",
                           l.why);
    struct cached *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        definition_free(l.def);
        return problem_set(p, ERR_NO_MEMORY, "No memory for the definition");
    }
    *c = (struct cached){
        .next = cache->slots[slot], .tenant = tenant, .version = version, .def = l.def};
    cache->slots[slot] = c;
    cache->count++;
    link_newest(cache, c);
    *ret = c->def;
    return ERR_OK;
}
