/* pawl cluster: what is done on the database itself, without a server. */
#include "base/log.h"
#include "cluster/move.h"
#include "cluster/setup.h"
#include "serve/serve.h"
#include "serve/server.h"

static int exit_code(enum err e, const struct problem *p)
{
    if (e == ERR_OK)
        return SERVE_DONE;
    fprintf(stderr, "pawl: %s\n", p->detail);
    return e == ERR_BAD_REQUEST ? SERVE_USAGE : SERVE_FAILED;
}

int serve_cluster_init(const char *store, int64_t shards, int64_t spares)
{
    struct problem p;
    size_t has = 0;
    bool is_new = false;
    problem_init(&p);
    log_setup(LOG_TEXT, LOG_WARN, &ENV_SYSTEM);
    enum err e = cluster_init(store, (size_t)shards, &p, &is_new, &has);
    if (e == ERR_OK && is_new)
        printf("The cluster has %zu shards. Start nodes with `pawl serve --store …`.\n", has);
    else if (e == ERR_OK)
        printf("The database is a cluster already, with %zu shards.\n", has);
    if (e == ERR_OK && spares > 0)
        e = cluster_add_spares(store, (size_t)spares, &p);
    if (e == ERR_OK && spares > 0)
        printf("Shards %zu to %zu are spare.\n", has, has + (size_t)spares - 1);
    int rc = exit_code(e, &p);
    problem_release(&p);
    return rc;
}

int serve_cluster_move_tenant(const char *store, const char *tenant, int64_t shard)
{
    struct problem p;
    struct move_result moved;
    problem_init(&p);
    log_setup(LOG_TEXT, LOG_WARN, &ENV_SYSTEM);
    enum err e = cluster_move_tenant(store, tenant, (size_t)shard, &p, &moved);
    if (e == ERR_OK && moved.was_there)
        printf("%s is in shard %lld already.\n", tenant, (long long)shard);
    else if (e == ERR_OK)
        printf("Moved %s from shard %zu to shard %lld: %lld rows.\n", tenant, moved.from,
               (long long)shard, (long long)moved.rows);
    int rc = exit_code(e, &p);
    problem_release(&p);
    return rc;
}

int serve_cluster_place(const char *store, int64_t shard, const char *url)
{
    struct problem p;
    problem_init(&p);
    log_setup(LOG_TEXT, LOG_WARN, &ENV_SYSTEM);
    enum err e = cluster_place(store, (size_t)shard, url, &p);
    if (e == ERR_OK)
        printf("Shard %lld is in the other database.\n", (long long)shard);
    int rc = exit_code(e, &p);
    problem_release(&p);
    return rc;
}

int serve_cluster_drain(const char *store, const char *node, bool undo)
{
    struct problem p;
    problem_init(&p);
    log_setup(LOG_TEXT, LOG_WARN, &ENV_SYSTEM);
    enum err e = cluster_drain(store, node, !undo, &p);
    if (e == ERR_OK)
        printf(undo ? "%s takes shards again.\n" : "%s hands its shards over and takes none.\n",
               node);
    int rc = exit_code(e, &p);
    problem_release(&p);
    return rc;
}
