/* A copy in shard 0 becomes one in all shards of a cluster. */
#include "cluster/spread.h"

#include "cluster/placement.h"
#include "cluster/setup.h"
#include "store/db_driver.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TAKE_MS_MAX = 10 * 1000, /* for sessions of this process that the server has not ended yet */
    LOOK_AGAIN_MS = 50,
};

struct spreader {
    const char *url;
    struct cluster_store *store;
    struct cluster_view view;
    int64_t epochs[CLUSTER_SHARDS_MAX];
    struct problem *p;
};

static void end(struct spreader *s)
{
    cluster_store_close(s->store);
    free(s);
}

/* NULL: p tells why. */
static struct spreader *begin(const char *url, struct problem *p)
{
    struct spreader *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        (void)problem_set(p, ERR_NO_MEMORY, "Out of memory");
        return NULL;
    }
    s->url = url;
    s->p = p;
    enum err e = cluster_open(url, p, &s->store);
    if (e == ERR_OK)
        e = cluster_store_check(s->store, p);
    if (e == ERR_OK)
        e = cluster_store_read(s->store, p, &s->view);
    if (e == ERR_OK)
        return s;
    end(s);
    return NULL;
}

enum err cluster_count_shards(const char *store, struct problem *p, size_t *ret)
{
    *ret = 1;
    /* A URL with a shard names a part of a store. What is no cluster is refused elsewhere. */
    if (!str_starts_with(str_of(store), STR("postgres")) || strstr(store, "shard=") != NULL)
        return ERR_OK;
    struct spreader *s = begin(store, p);
    if (s == NULL)
        return p->err == ERR_BAD_REQUEST ? ERR_OK : p->err;
    *ret = s->view.shard_count;
    end(s);
    return ERR_OK;
}

/* --- before --- */

static enum err check_places(struct spreader *s)
{
    for (size_t i = 0; i < s->view.shard_count; i++) {
        if (s->view.shards[i].place >= 0)
            return problem_set(s->p, ERR_STORE_FAILED,
                               "Shard %zu is in another database: only a cluster with all shards "
                               "in one can get a copy",
                               i);
    }
    return ERR_OK;
}

static enum err check_nodes(struct spreader *s)
{
    for (size_t i = 0; i < s->view.node_count; i++) {
        if (cluster_node_lives(&s->view.nodes[i]))
            return problem_set(s->p, ERR_STORE_FAILED,
                               "The node %s uses the target. Stop all nodes first.",
                               s->view.nodes[i].name);
    }
    return ERR_OK;
}

enum err cluster_spread_check(const char *store, struct problem *p)
{
    struct spreader *s = begin(store, p);
    if (s == NULL)
        return p->err;
    enum err e = check_nodes(s);
    if (e == ERR_OK)
        e = check_places(s);
    end(s);
    return e;
}

enum err cluster_spread_check_empty(const char *store, struct problem *p)
{
    struct spreader *s = begin(store, p);
    if (s == NULL)
        return p->err;
    bool has_tenants = false;
    enum err e = ERR_OK;
    for (size_t i = 1; e == ERR_OK && i < s->view.shard_count && !has_tenants; i++) {
        e = cluster_store_has_tenants(s->store, i, p, &has_tenants);
        if (e == ERR_OK && has_tenants)
            e = problem_set(p, ERR_STORE_FAILED,
                            "The target already has data (shard %zu). Choose a target that is "
                            "empty or does not exist yet.",
                            i);
    }
    end(s);
    return e;
}

static enum err mark(struct db *db)
{
    static const char SQL[] = "CREATE TABLE IF NOT EXISTS " DB_COPY_TABLE " (source TEXT NOT NULL)";
    enum err e = db_begin(db);
    if (e != ERR_OK)
        return e;
    e = db_exec_values(db, SQL, NULL, 0, NULL);
    if (e == ERR_OK)
        return db_commit(db);
    db_rollback(db);
    return e;
}

static enum err prepare_shard(const struct spreader *s, size_t shard)
{
    struct buf url;
    struct db *db = NULL;
    buf_init(&url, 8 * KIB);
    buf_printf(&url, "%s%cshard=%zu", s->url, strchr(s->url, '?') != NULL ? '&' : '?', shard);
    struct db_config config = {
        .url = buf_str(&url), .access = DB_WRITER, .env = &ENV_SYSTEM, .copy = DB_COPY_SHARD};
    enum err e = buf_ok(&url) ? db_open(&config, s->p, &db)
                              : problem_set(s->p, ERR_NO_MEMORY, "Out of memory");
    if (e == ERR_OK && mark(db) != ERR_OK)
        e = problem_set(s->p, ERR_STORE_FAILED, "Cannot prepare shard %zu of the target", shard);
    db_close(db);
    buf_release(&url);
    return e;
}

enum err cluster_spread_prepare(const char *store, struct problem *p)
{
    struct spreader *s = begin(store, p);
    if (s == NULL)
        return p->err;
    enum err e = ERR_OK;
    for (size_t i = 1; e == ERR_OK && i < s->view.shard_count; i++)
        e = prepare_shard(s, i);
    end(s);
    return e;
}

/* --- tenants --- */

static enum err take_all(struct spreader *s)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + TAKE_MS_MAX;
    size_t taken = 0;
    enum err e = ERR_OK;
    while (e == ERR_OK && taken < s->view.shard_count) {
        e = cluster_store_take(s->store, taken, s->view.shards[taken].epoch, s->p,
                               &s->epochs[taken]);
        if (e == ERR_OK && s->epochs[taken] > 0) {
            taken++;
            continue;
        }
        if (env_mono_ms(&ENV_SYSTEM) > until)
            return problem_set(s->p, ERR_STORE_FAILED, "Another process uses shard %zu", taken);
        cluster_store_wait(s->store, -1, LOOK_AGAIN_MS);
        e = cluster_store_renew(s->store, s->p);
        if (e == ERR_OK)
            e = cluster_store_read(s->store, s->p, &s->view);
    }
    return e;
}

static enum err move_home(struct spreader *s, const char *tenant, cluster_spread_moved *on_moved,
                          void *ctx)
{
    size_t home = placement_by_name(&s->view, str_of(tenant));
    bool is_there = home == 0;
    int64_t rows = 0;
    enum err e = cluster_store_renew(s->store, s->p);
    if (e == ERR_OK && !is_there)
        e = cluster_store_has_tenant(s->store, home, tenant, s->p, &is_there);
    if (e != ERR_OK || is_there)
        return e;
    struct tenant_move move = {.tenant = tenant,
                               .from = 0,
                               .to = home,
                               .from_epoch = s->epochs[0],
                               .to_epoch = s->epochs[home],
                               .is_home = true};
    e = cluster_store_move_tenant(s->store, &move, s->p, &rows);
    if (e == ERR_OK)
        on_moved(ctx, tenant, home, rows);
    return e;
}

static enum err move_all(struct spreader *s, cluster_spread_moved *on_moved, void *ctx)
{
    char tenant[TENANT_ID_MAX + 1] = "";
    enum err e;
    do {
        char next[TENANT_ID_MAX + 1] = "";
        e = cluster_store_next_tenant(s->store, 0, tenant, s->p, next);
        memcpy(tenant, next, sizeof(tenant));
        if (e == ERR_OK && tenant[0] != '\0')
            e = move_home(s, tenant, on_moved, ctx);
    } while (e == ERR_OK && tenant[0] != '\0');
    return e;
}

/* What cannot be given back is free when the lease is over. */
static void give_back(struct spreader *s)
{
    struct problem ignored;
    problem_init(&ignored);
    for (size_t i = 0; i < s->view.shard_count; i++) {
        if (s->epochs[i] > 0)
            (void)!cluster_store_release(s->store, i, &ignored);
    }
    (void)!cluster_store_leave(s->store, &ignored);
    problem_release(&ignored);
}

enum err cluster_spread(const char *store, cluster_spread_moved *on_moved, void *ctx,
                        struct problem *p)
{
    char name[NODE_NAME_LEN_MAX + 1];
    struct spreader *s = begin(store, p);
    if (s == NULL)
        return p->err;
    (void)snprintf(name, sizeof(name), "migrate-%d", (int)getpid());
    enum err e = cluster_store_join_for(s->store, name, 0, 1, p);
    if (e == ERR_OK)
        e = take_all(s);
    if (e == ERR_OK)
        e = move_all(s, on_moved, ctx);
    if (e == ERR_OK)
        e = cluster_store_end_copy(s->store, s->epochs, s->view.shard_count, p);
    give_back(s);
    end(s);
    return e;
}
