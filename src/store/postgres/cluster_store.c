/* The directory of a cluster in PostgreSQL. */
#include "store/postgres/cluster_store.h"

#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

enum { NUMBER_LEN = 24 };

/* Of the locks by which processes show that they are connected. */
#define SESSION_LOCK_CLASS_NUMBER 1885435757
#define TEXT_OF(number) #number
#define TEXT_OF_NUMBER(macro) TEXT_OF(macro)
#define SESSION_LOCK_CLASS TEXT_OF_NUMBER(SESSION_LOCK_CLASS_NUMBER)
static_assert(SESSION_LOCK_CLASS_NUMBER == POSTGRES_LOCK_CLASS + 1, "not those of shards");
/* In a query over nodes. */
#define IS_CONNECTED                                                                    \
    "hashtext(session)::oid IN (SELECT objid FROM pg_locks WHERE locktype = 'advisory'" \
    " AND classid = " SESSION_LOCK_CLASS " AND database ="                              \
    " (SELECT oid FROM pg_database WHERE datname = current_database()))"

struct cluster_store {
    struct postgres_db db;
    char name[NODE_NAME_LEN_MAX + 1]; /* "": no node has joined */
    char session[NODE_SESSION_LEN_MAX + 1];
    uint64_t readings;
    int lock_ms; /* how long it waits for the row of a shard */
};

/* --- the connection --- */

/* Only others look at the lock, so nobody waits for it. */
static enum err show_session(struct cluster_store *c, struct problem *p)
{
    static const char SQL[] =
        "SELECT pg_advisory_lock_shared(" SESSION_LOCK_CLASS ", hashtext($1))";
    const char *values[] = {c->session};
    PGresult *result = postgres_ask(&c->db, SQL, 1, values, p);
    enum err e = result != NULL ? ERR_OK : p->err;
    PQclear(result);
    return e;
}

/* A shard's row is held by its owner while it commits; nobody waits for it longer than that. */
static enum err open_session(struct cluster_store *c, struct problem *p)
{
    char sql[256];
    PQfinish(c->db.conn);
    c->db.conn = NULL;
    enum err e = postgres_open_session(&c->db, p);
    (void)snprintf(sql, sizeof(sql),
                   "SET lock_timeout = %d; SET statement_timeout = %d; LISTEN %s_directory",
                   c->lock_ms, NODE_LEASE_MS, c->db.schema);
    if (e == ERR_OK)
        e = postgres_run(&c->db, sql, p);
    return e == ERR_OK && c->session[0] != '\0' ? show_session(c, p) : e;
}

static enum err connected(struct cluster_store *c, struct problem *p)
{
    return postgres_is_lost(&c->db) ? open_session(c, p) : ERR_OK;
}

/* One row of one query; NULL with the problem set. */
static PGresult *ask(struct cluster_store *c, const char *sql, size_t count,
                     const char *const *values, struct problem *p)
{
    return connected(c, p) == ERR_OK ? postgres_ask(&c->db, sql, count, values, p) : NULL;
}

/* A query that returns one number. */
static enum err ask_number(struct cluster_store *c, const char *sql, size_t count,
                           const char *const *values, struct problem *p, int64_t *ret)
{
    PGresult *result = ask(c, sql, count, values, p);
    if (result == NULL)
        return p->err;
    *ret = postgres_number(result, 0);
    PQclear(result);
    return ERR_OK;
}

enum err cluster_store_open(const char *store, const struct env *env, struct problem *p,
                            struct cluster_store **ret)
{
    struct cluster_store *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    c->db.access = DB_WRITER;
    c->db.env = env;
    c->lock_ms = NODE_LOCK_MS;
    enum err e = postgres_read_url(&c->db, str_of(store), p);
    if (e == ERR_OK)
        e = open_session(c, p);
    if (e != ERR_OK) {
        cluster_store_close(c);
        return e;
    }
    *ret = c;
    return ERR_OK;
}

void cluster_store_close(struct cluster_store *c)
{
    if (c == NULL)
        return;
    PQfinish(c->db.conn);
    free(c);
}

bool cluster_store_is_connected(const struct cluster_store *c)
{
    return !postgres_is_lost(&c->db);
}

enum err cluster_store_init(struct cluster_store *c, size_t shards, struct problem *p,
                            bool *ret_new)
{
    assert(shards >= 1 && shards <= CLUSTER_SHARDS_MAX);
    c->db.new_shards = (int)shards;
    enum err e = connected(c, p);
    if (e == ERR_OK)
        e = postgres_make_directory(&c->db, p, ret_new);
    return e == ERR_OK ? postgres_check_directory(&c->db, p) : e;
}

enum err cluster_store_add_spares(struct cluster_store *c, size_t spares, struct problem *p)
{
    static const char SQL[] =
        "WITH has AS (SELECT count(*) AS all_shards,"
        " COALESCE((SELECT hashed FROM directory), count(*)) AS hashed,"
        " EXISTS (SELECT 1 FROM nodes WHERE lease_until > now()) AS in_use FROM shards),"
        " made AS (INSERT INTO shards (shard, version, epoch) SELECT n, 0, 0 FROM has,"
        " generate_series(all_shards, LEAST(hashed + $1::bigint, $2::bigint) - 1) n"
        " WHERE NOT in_use RETURNING 1),"
        " noted AS (UPDATE directory SET hashed = has.hashed FROM has WHERE NOT in_use RETURNING 1)"
        " SELECT has.all_shards + (SELECT count(*) FROM made) - has.hashed FROM has";
    char number[NUMBER_LEN];
    char most[NUMBER_LEN];
    (void)snprintf(number, sizeof(number), "%zu", spares);
    (void)snprintf(most, sizeof(most), "%d", CLUSTER_SHARDS_MAX);
    const char *values[] = {number, most};
    int64_t now = 0;
    enum err e = ask_number(c, SQL, ARRAY_LEN(values), values, p, &now);
    if (e == ERR_OK && now < (int64_t)spares)
        e = problem_set(p, ERR_STORE_BUSY,
                        "Shards can be added while no node runs, up to %d in all",
                        CLUSTER_SHARDS_MAX);
    return e;
}

/* --- shards in other databases --- */

enum place_step { PLACE_NOW, PLACE_DONE };

static enum err check_shard(struct cluster_store *c, const char *shard, const char *url,
                            struct problem *p, enum place_step *ret)
{
    static const char SQL[] = "SELECT count(*), COALESCE(max(version), 0), COALESCE(max(url), '')"
                              " FROM shards WHERE shard = $1";
    const char *values[] = {shard};
    PGresult *result = ask(c, SQL, 1, values, p);
    if (result == NULL)
        return p->err;
    const char *placed = PQgetvalue(result, 0, 2);
    enum err e = ERR_OK;
    *ret = placed[0] != '\0' ? PLACE_DONE : PLACE_NOW;
    if (postgres_number(result, 0) == 0)
        e = problem_set(p, ERR_NOT_FOUND, "The cluster has no shard %s", shard);
    else if (placed[0] != '\0' && strcmp(placed, url) != 0)
        e = problem_set(p, ERR_BAD_REQUEST, "Shard %s is in another database already", shard);
    else if (postgres_number(result, 1) > 0)
        e = problem_set(p, ERR_BAD_REQUEST,
                        "Shard %s has tables already. Place shards after `pawl cluster init` and "
                        "before the first node starts.",
                        shard);
    PQclear(result);
    return e;
}

enum err cluster_store_check(struct cluster_store *c, struct problem *p)
{
    int64_t version = 0;
    bool is_new;
    enum err e = connected(c, p);
    if (e == ERR_OK)
        e = postgres_directory_version(&c->db, p, &version);
    if (e == ERR_OK && version == 0)
        e = problem_set(p, ERR_BAD_REQUEST,
                        "The database is no cluster yet. Run `pawl cluster init` first.");
    if (e == ERR_OK)
        e = postgres_make_directory(&c->db, p, &is_new);
    return e == ERR_OK ? postgres_check_directory(&c->db, p) : e;
}

static enum err prepare_place(struct cluster_store *c, const char *url, size_t shard,
                              struct problem *p)
{
    PGresult *id = postgres_directory_id(&c->db, p);
    if (id == NULL)
        return p->err;
    enum err e = postgres_prepare_place(c->db.env, url, PQgetvalue(id, 0, 0), shard, p);
    PQclear(id);
    return e;
}

/* A node that is about to open it has another epoch then, and makes no tables here. */
static enum err note_place(struct cluster_store *c, const char *shard, const char *url,
                           struct problem *p)
{
    static const char SQL[] =
        "WITH placed AS (UPDATE shards SET url = $2, epoch = epoch + 1, owner = NULL"
        " WHERE shard = $1 AND version = 0 AND url IS NULL RETURNING pg_notify($3, 'shards'))"
        " SELECT count(*) FROM placed";
    char channel[POSTGRES_NAME_MAX];
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {shard, url, channel};
    int64_t placed = 0;
    enum err e = ask_number(c, SQL, ARRAY_LEN(values), values, p, &placed);
    if (e == ERR_OK && placed == 0)
        e = problem_set(p, ERR_STORE_BUSY, "Shard %s was opened meanwhile", shard);
    return e;
}

enum err cluster_store_place(struct cluster_store *c, size_t shard, const char *url,
                             struct problem *p)
{
    char number[NUMBER_LEN];
    enum place_step step = PLACE_NOW;
    (void)snprintf(number, sizeof(number), "%zu", shard);
    if (shard == 0)
        return problem_set(p, ERR_BAD_REQUEST,
                           "Shard 0 has the API keys: it stays in the database of the directory");
    if (strlen(url) > PLACE_URL_LEN_MAX)
        return problem_set(p, ERR_BAD_REQUEST, "The URL must be at most %d characters long",
                           PLACE_URL_LEN_MAX);
    enum err e = cluster_store_check(c, p);
    if (e == ERR_OK)
        e = check_shard(c, number, url, p, &step);
    if (e != ERR_OK || step == PLACE_DONE)
        return e;
    e = prepare_place(c, url, shard, p);
    return e == ERR_OK ? note_place(c, number, url, p) : e;
}

/* --- leases --- */

/* Shown by the connection that is open, and by all that follow it. */
static enum err new_session(struct cluster_store *c, struct problem *p)
{
    struct buf text;
    enum err e = connected(c, p);
    if (e != ERR_OK)
        return e;
    buf_init(&text, UUID_TEXT_LEN);
    buf_put_uuid(&text, env_new_id(c->db.env));
    (void)snprintf(c->session, sizeof(c->session), "%.*s", STR_ARG(buf_str(&text)));
    buf_release(&text);
    return show_session(c, p);
}

/* A process of this name that lives is put out: after a crash nobody waits for the old lease, and
 * epochs keep the old process from writing. */
enum err cluster_store_join(struct cluster_store *c, const char *name, const char *url,
                            struct problem *p)
{
    char lease[NUMBER_LEN];
    char channel[POSTGRES_NAME_MAX];
    c->db.patience_ms = NODE_ANSWER_MS; /* from now on it has a lease to lose */
    enum err e = new_session(c, p);
    if (e != ERR_OK)
        return e;
    (void)snprintf(c->name, sizeof(c->name), "%s", name);
    (void)snprintf(lease, sizeof(lease), "%d", NODE_LEASE_MS);
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {name, url, c->session, lease, channel};
    int64_t joined = 0;
    return ask_number(c,
                      "WITH joined AS (INSERT INTO nodes AS n (name, url, session, lease_until)"
                      " VALUES ($1, $2, $3, now() + interval '1 ms' * $4::int)"
                      " ON CONFLICT (name) DO UPDATE SET url = EXCLUDED.url,"
                      " session = EXCLUDED.session, lease_until = EXCLUDED.lease_until,"
                      " stopping = false RETURNING pg_notify($5, 'nodes'))"
                      " SELECT count(*) FROM joined",
                      5, values, p, &joined);
}

/* An owner under load is nearly always in the middle of a commit. */
static enum err wait_longer(struct cluster_store *c, struct problem *p)
{
    char sql[64];
    c->lock_ms = MOVER_LOCK_MS;
    (void)snprintf(sql, sizeof(sql), "SET lock_timeout = %d", c->lock_ms);
    return postgres_run(&c->db, sql, p);
}

/* As a node that is about to end it gets no shards but those that it takes. */
enum err cluster_store_join_for(struct cluster_store *c, const char *name, size_t one, size_t other,
                                struct problem *p)
{
    static const char SQL[] =
        "WITH joined AS (INSERT INTO nodes AS n (name, url, session, lease_until, stopping)"
        " VALUES ($1, '', $2, now() + interval '1 ms' * $3::int, true) ON CONFLICT (name) DO"
        " UPDATE SET session = EXCLUDED.session, lease_until = EXCLUDED.lease_until RETURNING 1),"
        " asked AS (UPDATE shards s SET wanted_by = $1 WHERE shard IN ($4, $5) AND NOT EXISTS"
        " (SELECT 1 FROM nodes n WHERE n.name = s.wanted_by AND n.lease_until > now()"
        " AND n.name <> $1) RETURNING pg_notify($6, 'shards')) SELECT count(*) FROM asked, joined";
    char lease[NUMBER_LEN];
    char numbers[2][NUMBER_LEN];
    char channel[POSTGRES_NAME_MAX];
    enum err e = new_session(c, p);
    if (e == ERR_OK)
        e = wait_longer(c, p);
    if (e != ERR_OK)
        return e;
    (void)snprintf(c->name, sizeof(c->name), "%s", name);
    (void)snprintf(lease, sizeof(lease), "%d", NODE_LEASE_MS);
    (void)snprintf(numbers[0], NUMBER_LEN, "%zu", one);
    (void)snprintf(numbers[1], NUMBER_LEN, "%zu", other);
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {name, c->session, lease, numbers[0], numbers[1], channel};
    int64_t asked = 0;
    e = ask_number(c, SQL, ARRAY_LEN(values), values, p, &asked);
    if (e == ERR_OK && asked != 2)
        e = problem_set(p, ERR_STORE_BUSY, "Another tenant is being moved from or to these shards");
    return e;
}

/* Nodes that were never seen again are forgotten. */
enum err cluster_store_renew(struct cluster_store *c, struct problem *p)
{
    char lease[NUMBER_LEN];
    (void)snprintf(lease, sizeof(lease), "%d", NODE_LEASE_MS);
    const char *values[] = {c->name, c->session, lease};
    int64_t renewed = 0;
    enum err e = ask_number(c,
                            "WITH renewed AS (UPDATE nodes SET lease_until ="
                            " now() + interval '1 ms' * $3::int WHERE name = $1 AND session = $2"
                            " RETURNING 1), forgotten AS (DELETE FROM nodes"
                            " WHERE lease_until < now() - interval '1 hour' AND NOT draining)"
                            " SELECT count(*) FROM renewed",
                            3, values, p, &renewed);
    if (e == ERR_STORE_FAILED) /* the server cannot do it now; that is no reason to end */
        e = ERR_STORE_BUSY;
    if (e == ERR_OK && renewed == 0)
        e = problem_set(p, ERR_STORE_FAILED, "Another process has joined the cluster as %s",
                        c->name);
    return e;
}

enum err cluster_store_end_lease(struct cluster_store *c, const char *name, const char *session,
                                 struct problem *p)
{
    static const char SQL[] =
        "WITH ended AS (UPDATE nodes SET lease_until = now() WHERE name = $1 AND session = $2"
        " AND lease_until > now() AND NOT (" IS_CONNECTED ") RETURNING pg_notify($3, 'nodes'))"
        " SELECT count(*) FROM ended";
    char channel[POSTGRES_NAME_MAX];
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {name, session, channel};
    int64_t ended;
    return ask_number(c, SQL, ARRAY_LEN(values), values, p, &ended);
}

enum err cluster_store_stop(struct cluster_store *c, struct problem *p)
{
    char channel[POSTGRES_NAME_MAX];
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {c->name, c->session, channel};
    int64_t changed;
    return ask_number(c,
                      "WITH changed AS (UPDATE nodes SET stopping = true WHERE name = $1"
                      " AND session = $2 RETURNING pg_notify($3, 'nodes'))"
                      " SELECT count(*) FROM changed",
                      3, values, p, &changed);
}

/* A node that is being drained stays so when it comes back. */
enum err cluster_store_leave(struct cluster_store *c, struct problem *p)
{
    char channel[POSTGRES_NAME_MAX];
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {c->name, c->session, channel};
    int64_t left;
    return ask_number(c,
                      "WITH gone AS (DELETE FROM nodes WHERE name = $1 AND session = $2"
                      " AND NOT draining), ended AS (UPDATE nodes SET lease_until = now()"
                      " WHERE name = $1 AND session = $2 AND draining), told AS"
                      " (SELECT pg_notify($3, 'nodes')) SELECT count(*) FROM told",
                      3, values, p, &left);
}

enum err cluster_store_set_draining(struct cluster_store *c, const char *name, bool draining,
                                    struct problem *p)
{
    char channel[POSTGRES_NAME_MAX];
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {name, draining ? "t" : "f", channel};
    int64_t changed = 0;
    enum err e = ask_number(c,
                            "WITH changed AS (UPDATE nodes SET draining = $2::bool WHERE name = $1"
                            " RETURNING pg_notify($3, 'nodes')) SELECT count(*) FROM changed",
                            3, values, p, &changed);
    if (e == ERR_OK && changed == 0)
        e = problem_set(p, ERR_NOT_FOUND, "The cluster has no node %s", name);
    return e;
}

/* --- shards --- */

/* Not from a node whose lease lives, nor from a process that has the shard without being a node. */
enum err cluster_store_take(struct cluster_store *c, size_t shard, int64_t epoch, struct problem *p,
                            int64_t *ret_epoch)
{
    static const char SQL[] =
        "WITH free AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($5::int, hashtext($6)) AS "
        "yes),"
        " taken AS (UPDATE shards s SET owner = $1, epoch = epoch + 1 FROM free"
        " WHERE s.shard = $3 AND s.epoch = $4 AND free.yes"
        " AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.name = s.owner AND n.name <> $1"
        " AND n.lease_until > now())"
        " AND EXISTS (SELECT 1 FROM nodes n WHERE n.name = $1 AND n.session = $2"
        " AND n.lease_until > now()) RETURNING epoch)"
        " SELECT COALESCE((SELECT epoch FROM taken), 0), (SELECT pg_notify($7, 'shards')"
        " FROM taken)";
    char number[NUMBER_LEN];
    char old[NUMBER_LEN];
    char class[NUMBER_LEN];
    char lock[POSTGRES_NAME_MAX];
    char channel[POSTGRES_NAME_MAX];
    (void)snprintf(number, sizeof(number), "%zu", shard);
    (void)snprintf(old, sizeof(old), "%" PRId64, epoch);
    (void)snprintf(class, sizeof(class), "%d", POSTGRES_LOCK_CLASS);
    (void)snprintf(lock, sizeof(lock), "%s_%zu", c->db.schema, shard);
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {c->name, c->session, number, old, class, lock, channel};
    return ask_number(c, SQL, ARRAY_LEN(values), values, p, ret_epoch);
}

enum err cluster_store_release(struct cluster_store *c, size_t shard, struct problem *p)
{
    static const char SQL[] =
        "WITH released AS (UPDATE shards SET owner = NULL WHERE shard = $3 AND owner = $1"
        " AND EXISTS (SELECT 1 FROM nodes n WHERE n.name = $1 AND n.session = $2)"
        " RETURNING pg_notify($4, 'shards')) SELECT count(*) FROM released";
    char number[NUMBER_LEN];
    char channel[POSTGRES_NAME_MAX];
    (void)snprintf(number, sizeof(number), "%zu", shard);
    (void)snprintf(channel, sizeof(channel), "%s_directory", c->db.schema);
    const char *values[] = {c->name, c->session, number, channel};
    int64_t released;
    return ask_number(c, SQL, ARRAY_LEN(values), values, p, &released);
}

/* --- reading --- */

/* Any number of rows; NULL with the problem set. */
static PGresult *rows_of(struct cluster_store *c, const char *sql, struct problem *p)
{
    PGresult *result = postgres_exec_text(&c->db, sql, 0, NULL);
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        return result;
    enum err e = postgres_err_of(&c->db, result);
    (void)problem_set(p, e == ERR_INTERNAL ? ERR_STORE_FAILED : e, "PostgreSQL: %s",
                      c->db.conn != NULL ? PQerrorMessage(c->db.conn) : "it does not answer");
    PQclear(result);
    return NULL;
}

static int64_t number_at(const PGresult *result, int row, int column)
{
    int64_t number = 0;
    bool whole = str_to_i64(str_of(PQgetvalue(result, row, column)), &number);
    return whole ? number : 0;
}

static enum err read_nodes(struct cluster_store *c, struct problem *p, struct cluster_view *ret)
{
    PGresult *result = rows_of(c,
                               "SELECT name, url, session, draining, stopping,"
                               " (extract(epoch FROM lease_until - now()) * 1000)::bigint,"
                               " (" IS_CONNECTED ")::int FROM nodes"
                               " ORDER BY lease_until > now() DESC, name LIMIT 64",
                               p);
    static_assert(CLUSTER_NODES_MAX == 64, "as the statement says");
    if (result == NULL)
        return p->err;
    for (int i = 0; i < PQntuples(result); i++) {
        struct cluster_node *n = &ret->nodes[ret->node_count++];
        (void)snprintf(n->name, sizeof(n->name), "%s", PQgetvalue(result, i, 0));
        (void)snprintf(n->url, sizeof(n->url), "%s", PQgetvalue(result, i, 1));
        (void)snprintf(n->session, sizeof(n->session), "%s", PQgetvalue(result, i, 2));
        n->draining = strcmp(PQgetvalue(result, i, 3), "t") == 0;
        n->stopping = strcmp(PQgetvalue(result, i, 4), "t") == 0;
        n->lease_ms = number_at(result, i, 5);
        n->connected = number_at(result, i, 6) == 1;
    }
    PQclear(result);
    return ERR_OK;
}

static int node_named(const struct cluster_view *view, const char *name)
{
    for (size_t i = 0; i < view->node_count; i++) {
        if (name[0] != '\0' && strcmp(view->nodes[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* -1: the directory's own database. ERR_STORE_FAILED: there are too many. */
static enum err place_at(struct cluster_view *view, const char *url, struct problem *p, int *ret)
{
    *ret = -1;
    if (url[0] == '\0')
        return ERR_OK;
    size_t i = 0;
    while (i < view->place_count && strcmp(view->places[i], url) != 0)
        i++;
    if (i == CLUSTER_PLACES_MAX || strlen(url) > PLACE_URL_LEN_MAX)
        return problem_set(p, ERR_STORE_FAILED, "The shards are in more than %d other databases",
                           CLUSTER_PLACES_MAX);
    if (i == view->place_count)
        (void)snprintf(view->places[view->place_count++], sizeof(view->places[0]), "%s", url);
    *ret = (int)i;
    return ERR_OK;
}

static enum err read_shards(struct cluster_store *c, struct problem *p, struct cluster_view *ret)
{
    PGresult *result =
        rows_of(c,
                "SELECT COALESCE(owner, ''), epoch, COALESCE(url, ''), EXISTS (SELECT 1 FROM nodes"
                " WHERE name = wanted_by AND lease_until > now())::int FROM shards"
                " ORDER BY shard LIMIT 256",
                p);
    static_assert(CLUSTER_SHARDS_MAX == 256, "as the statement says");
    if (result == NULL)
        return p->err;
    enum err e = ERR_OK;
    for (int i = 0; i < PQntuples(result) && e == ERR_OK; i++) {
        struct cluster_shard *s = &ret->shards[ret->shard_count++];
        s->owner = node_named(ret, PQgetvalue(result, i, 0));
        s->epoch = number_at(result, i, 1);
        s->held = number_at(result, i, 3) == 1;
        e = place_at(ret, PQgetvalue(result, i, 2), p, &s->place);
    }
    PQclear(result);
    return e;
}

/* After the shards: whoever has seen the epoch that a shard got after a move sees the move too. */
static enum err read_moved(struct cluster_store *c, struct problem *p, struct cluster_view *ret)
{
    PGresult *result =
        rows_of(c, "SELECT tenant, shard FROM moved_tenants ORDER BY tenant LIMIT 1024", p);
    static_assert(CLUSTER_MOVED_MAX == 1024, "as the statement says");
    if (result == NULL)
        return p->err;
    for (int i = 0; i < PQntuples(result); i++) {
        struct cluster_moved *m = &ret->moved[ret->moved_count++];
        (void)snprintf(m->tenant, sizeof(m->tenant), "%s", PQgetvalue(result, i, 0));
        m->shard = (size_t)number_at(result, i, 1);
    }
    PQclear(result);
    return ERR_OK;
}

static enum err read_directory(struct cluster_store *c, struct problem *p, struct cluster_view *ret)
{
    PGresult *result = ask(c,
                           "SELECT auth_epoch, (extract(epoch FROM clock_timestamp()) * 1000)"
                           "::bigint, encode(secret, 'hex'),"
                           " COALESCE(hashed, (SELECT count(*) FROM shards)) FROM directory",
                           0, NULL, p);
    if (result == NULL)
        return p->err;
    ret->auth_epoch = (uint64_t)postgres_number(result, 0);
    ret->now_ms = postgres_number(result, 1);
    (void)snprintf(ret->secret, sizeof(ret->secret), "%s", PQgetvalue(result, 0, 2));
    ret->hashed = (size_t)postgres_number(result, 3);
    PQclear(result);
    if (strlen(ret->secret) == CLUSTER_SECRET_LEN)
        return ERR_OK;
    return problem_set(p, ERR_STORE_FAILED, "The secret of the cluster is damaged");
}

enum err cluster_store_read(struct cluster_store *c, struct problem *p, struct cluster_view *ret)
{
    *ret = (struct cluster_view){.number = ++c->readings};
    enum err e = connected(c, p);
    if (e == ERR_OK)
        e = read_directory(c, p, ret);
    ret->mono_ms = env_mono_ms(c->db.env);
    if (e == ERR_OK)
        e = read_nodes(c, p, ret);
    if (e == ERR_OK)
        e = read_shards(c, p, ret);
    if (e == ERR_OK)
        e = read_moved(c, p, ret);
    ret->self = node_named(ret, c->name);
    if (ret->self >= 0 && strcmp(ret->nodes[ret->self].session, c->session) != 0)
        ret->self = -1; /* another process has the name now */
    return e;
}

/* --- moving a tenant --- */

enum err cluster_store_move_tenant(struct cluster_store *c, const struct tenant_move *move,
                                   struct problem *p, int64_t *ret_rows)
{
    enum err e = connected(c, p);
    return e == ERR_OK ? postgres_move_tenant(&c->db, move, p, ret_rows) : e;
}

/* --- shards that a command has for itself --- */

static enum err ask_lock(struct cluster_store *c, const char *sql, size_t shard, struct problem *p,
                         bool *ret)
{
    char class[NUMBER_LEN];
    char lock[POSTGRES_NAME_MAX];
    int64_t yes = 0;
    (void)snprintf(class, sizeof(class), "%d", POSTGRES_LOCK_CLASS);
    (void)snprintf(lock, sizeof(lock), "%s_%zu", c->db.schema, shard);
    const char *values[] = {class, lock};
    enum err e = ask_number(c, sql, ARRAY_LEN(values), values, p, &yes);
    *ret = yes > 0;
    return e;
}

enum err cluster_store_hold(struct cluster_store *c, size_t shard, struct problem *p)
{
    bool held = false;
    enum err e =
        ask_lock(c, "SELECT pg_try_advisory_lock($1::int, hashtext($2))::int", shard, p, &held);
    return e != ERR_OK || held
               ? e
               : problem_set(p, ERR_STORE_BUSY,
                             "The store is in use by another pawl (schema %s, shard %zu)",
                             c->db.schema, shard);
}

enum err cluster_store_still_holds(struct cluster_store *c, size_t shard, struct problem *p,
                                   bool *ret)
{
    static const char SQL[] = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                              " AND classid = $1::int::oid AND objid = hashtext($2)::oid"
                              " AND pid = pg_backend_pid()";
    return ask_lock(c, SQL, shard, p, ret);
}

/* --- a copy that is being spread --- */

enum err cluster_store_has_tenants(struct cluster_store *c, size_t shard, struct problem *p,
                                   bool *ret)
{
    char sql[160];
    int64_t found = 0;
    (void)snprintf(sql, sizeof(sql), "SELECT (to_regclass('%s_%zu.tenants') IS NOT NULL)::int",
                   c->db.schema, shard);
    enum err e = ask_number(c, sql, 0, NULL, p, &found);
    (void)snprintf(sql, sizeof(sql), "SELECT EXISTS (SELECT 1 FROM %s_%zu.tenants)::int",
                   c->db.schema, shard);
    if (e == ERR_OK && found == 1)
        e = ask_number(c, sql, 0, NULL, p, &found);
    *ret = found == 1;
    return e;
}

enum err cluster_store_has_tenant(struct cluster_store *c, size_t shard, const char *tenant,
                                  struct problem *p, bool *ret)
{
    char sql[160];
    const char *values[] = {tenant};
    int64_t found = 0;
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s_%zu.tenants WHERE id = $1",
                   c->db.schema, shard);
    enum err e = ask_number(c, sql, 1, values, p, &found);
    *ret = found == 1;
    return e;
}

/* Keys of workers for all tenants are those of the tenant `*`, which stays in shard 0. */
enum err cluster_store_next_tenant(struct cluster_store *c, size_t shard, const char *after,
                                   struct problem *p, char ret[static TENANT_ID_MAX + 1])
{
    char sql[160];
    const char *values[] = {after};
    (void)snprintf(sql, sizeof(sql),
                   "SELECT COALESCE((SELECT id FROM %s_%zu.tenants WHERE id > $1 AND id <> '*'"
                   " ORDER BY id LIMIT 1), '')",
                   c->db.schema, shard);
    PGresult *result = ask(c, sql, 1, values, p);
    if (result == NULL)
        return p->err;
    (void)snprintf(ret, TENANT_ID_MAX + 1, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return ERR_OK;
}

enum err cluster_store_end_copy(struct cluster_store *c, const int64_t *epochs, size_t count,
                                struct problem *p)
{
    struct buf sql;
    buf_init(&sql, 64 * KIB);
    buf_put(&sql, STR("BEGIN;"));
    for (size_t i = 0; i < count; i++)
        buf_printf(&sql,
                   "SELECT fence(%zu, %" PRId64 "); DROP TABLE IF EXISTS %s_%zu." DB_COPY_TABLE ";",
                   i, epochs[i], c->db.schema, i);
    buf_put(&sql, STR("COMMIT"));
    enum err e = connected(c, p);
    if (e == ERR_OK)
        e = buf_ok(&sql) ? postgres_run(&c->db, sql.ptr, p)
                         : problem_set(p, ERR_NO_MEMORY, "Out of memory");
    buf_release(&sql);
    return e;
}

/* --- waiting --- */

static bool heard(struct cluster_store *c)
{
    bool any = false;
    if (postgres_is_lost(&c->db) || PQconsumeInput(c->db.conn) == 0)
        return false;
    for (PGnotify *n; (n = PQnotifies(c->db.conn)) != NULL; any = true)
        PQfreemem(n);
    return any;
}

void cluster_store_wait(struct cluster_store *c, int wake_fd, int ms)
{
    uint64_t ignored;
    bool lost = postgres_is_lost(&c->db);
    struct pollfd fds[] = {{wake_fd, POLLIN, 0}, {lost ? -1 : PQsocket(c->db.conn), POLLIN, 0}};
    if (heard(c)) /* it came with the last result */
        ms = 0;
    (void)poll(fds, ARRAY_LEN(fds), ms);
    if ((fds[0].revents & POLLIN) != 0 && read(wake_fd, &ignored, sizeof(ignored)) < 0)
        LOG(LOG_DEBUG, "nothing to read"); /* somebody else was faster */
    (void)heard(c);
}
