/* The rows of one tenant go from one shard to another that has no tenants, with all their numbers,
 * and the directory learns of it: one transaction, which holds the rows of both shards, so that
 * nobody takes either meanwhile. See docs/adr/049. */
#include "base/limits.h"
#include "store/postgres/cluster_store.h"
#include "store/postgres/postgres_db.h"

#include <inttypes.h>

/* Which rows of a table are the tenant's. The other tables of a condition are temporary ones. */
#define OF_TENANT "tenant IN (SELECT num FROM moving_tenant)"
#define OF_RUN "run IN (SELECT num FROM moving_owners)"
#define OF_ENTITY "entity IN (SELECT num FROM moving_owners)"
#define OF_OWNER "owner IN (SELECT num FROM moving_owners)"
#define OF_TYPE "type IN (SELECT num FROM moving_types)"
#define NO_ROWS "false"

static const struct {
    const char *name;
    const char *rows;
    bool stays; /* the source keeps its rows */
} TABLES[] = {
    {"api_keys", NO_ROWS, true}, /* in shard 0 */
    {"approval_votes", OF_RUN, false},
    {"approvals", OF_TENANT, false},
    {"audit", OF_TENANT, false},
    {"audit_heads", OF_TENANT, false},
    {"checkpoints", OF_RUN, false},
    {"counter_log", NO_ROWS, true}, /* was folded */
    {"dedup", OF_OWNER, false},
    {"dedup_stats", OF_TYPE, false},
    {"dedup_totals", OF_TYPE, false},
    {"dedup_windows", OF_OWNER, false},
    {"deliveries", OF_TENANT, false},
    {"ended_sessions", NO_ROWS, true}, /* in shard 0 */
    {"entities", OF_TENANT, false},
    {"entity_generations", OF_ENTITY, false},
    {"entity_starts", OF_ENTITY, false},
    {"entity_states", OF_ENTITY, false},
    {"entity_sweeps", OF_ENTITY, false},
    {"entity_timers", OF_ENTITY, false},
    {"entity_type_versions", OF_TYPE, false},
    {"entity_types", OF_TENANT, false},
    {"entity_updates", OF_ENTITY, false},
    {"feed_marks", "true", true},
    {"feed_packs", OF_TENANT, false}, /* see unpack_feed() */
    {"first_jobs", OF_TENANT, false},
    {"holding", OF_TENANT, false},
    {"inbox", OF_ENTITY, false},
    {"indexed", "true", true},
    {"jobs", OF_TENANT, false},
    {"key_blocks", NO_ROWS, true}, /* the index of keys is built again when the shard is opened */
    {"key_filters", NO_ROWS, true},
    {"key_records", OF_TENANT, false},
    {"key_segments", NO_ROWS, true},
    {"line_scopes", "line IN (SELECT num FROM moving_lines)", false},
    {"lines", OF_TENANT, false},
    {"map_items", OF_RUN, false},
    {"minutes", OF_TENANT, false},
    {"parked", OF_TENANT, false},
    {"queue", OF_TENANT, false},
    {"run_blocks", OF_TENANT, false},
    {"run_children", OF_RUN, false},
    {"run_reruns", OF_RUN, false},
    {"run_signals", OF_RUN, false},
    {"runs", OF_TENANT, false},
    {"schedules", OF_TENANT, false},
    {"scopes", OF_TENANT, false},
    {"secrets", "true", true}, /* keys are hashed with one */
    {"slots", "scope IN (SELECT num FROM moving_scopes)", false},
    {"suspensions", OF_RUN, false},
    {"tenant_settings", OF_TENANT, false},
    {"tenants", "num IN (SELECT num FROM moving_tenant)", true}, /* see clear_tenant() */
    {"timeline", OF_RUN, false},
    {"timers", OF_RUN, false},
    {"webhooks", OF_TENANT, false},
    {"workflow_versions", OF_TENANT, false},
    {"workflows", OF_TENANT, false},
};

struct moving {
    struct postgres_db *db;
    const struct tenant_move *move;
    char from[POSTGRES_NAME_MAX]; /* the schemas */
    char to[POSTGRES_NAME_MAX];
    int64_t rows;
    struct problem *p;
};

/* --- statements --- */

/* In a statement `from.` and `to.` stand for the schemas. */
static enum err run(struct moving *m, const char *sql)
{
    struct buf text;
    buf_init(&text, 64 * KIB);
    while (*sql != '\0') {
        if (strncmp(sql, "from.", 5) == 0) {
            buf_printf(&text, "%s.", m->from);
            sql += 5;
        } else if (strncmp(sql, "to.", 3) == 0) {
            buf_printf(&text, "%s.", m->to);
            sql += 3;
        } else {
            buf_put_char(&text, *sql++);
        }
    }
    enum err e = buf_ok(&text) ? postgres_run(m->db, text.ptr, m->p)
                               : problem_set(m->p, ERR_NO_MEMORY, "Out of memory");
    buf_release(&text);
    return e;
}

static enum err ask_number(struct moving *m, const char *sql, int64_t *ret)
{
    PGresult *result = postgres_ask(m->db, sql, 0, NULL, m->p);
    if (result == NULL)
        return m->p->err;
    *ret = postgres_number(result, 0);
    PQclear(result);
    return ERR_OK;
}

/* --- before --- */

/* A table that nobody has thought of here must not be left behind. */
static enum err check_tables(struct moving *m)
{
    const char *values[] = {m->from};
    PGresult *result =
        PQexecParams(m->db->conn,
                     "SELECT relname FROM pg_class WHERE relkind = 'r'"
                     " AND relnamespace = $1::regnamespace ORDER BY relname COLLATE \"C\"",
                     1, NULL, values, NULL, NULL, 0);
    enum err e =
        PQresultStatus(result) == PGRES_TUPLES_OK
            ? ERR_OK
            : problem_set(m->p, ERR_STORE_FAILED, "PostgreSQL: %s", PQerrorMessage(m->db->conn));
    for (int i = 0; i < PQntuples(result) && e == ERR_OK; i++) {
        const char *name = PQgetvalue(result, i, 0);
        if ((size_t)i >= ARRAY_LEN(TABLES) || strcmp(name, TABLES[i].name) != 0)
            e = problem_set(m->p, ERR_INTERNAL, "The table %s cannot be moved", name);
    }
    PQclear(result);
    return e;
}

static enum err begin(struct moving *m)
{
    char sql[1024];
    (void)snprintf(sql, sizeof(sql),
                   "BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;"
                   "SET LOCAL client_connection_check_interval = 1000;"
                   "SET LOCAL enable_seqscan = on; SET LOCAL plan_cache_mode = auto;"
                   "SET LOCAL search_path = %s, %s;"
                   "SELECT fence(%zu, %" PRId64 "); SELECT fence(%zu, %" PRId64 ")",
                   m->from, m->db->schema, m->move->from, m->move->from_epoch, m->move->to,
                   m->move->to_epoch);
    return run(m, sql);
}

static enum err find_tenant(struct moving *m)
{
    int64_t found = 0;
    int64_t others = 0;
    char others_sql[128];
    const char *values[] = {m->move->tenant};
    PGresult *result = PQexecParams(m->db->conn,
                                    "CREATE TEMPORARY TABLE moving_tenant ON COMMIT DROP AS"
                                    " SELECT num, id FROM tenants WHERE id = $1",
                                    1, NULL, values, NULL, NULL, 0);
    bool made = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!made)
        return problem_set(m->p, ERR_STORE_FAILED, "PostgreSQL: %s", PQerrorMessage(m->db->conn));
    (void)snprintf(others_sql, sizeof(others_sql), "SELECT count(*) FROM %s.tenants", m->to);
    enum err e = ask_number(m, "SELECT count(*) FROM moving_tenant", &found);
    if (e == ERR_OK)
        e = ask_number(m, others_sql, &others);
    if (e == ERR_OK && found == 0)
        e = problem_set(m->p, ERR_NOT_FOUND, "There is no tenant %s", m->move->tenant);
    if (e == ERR_OK && others > 0)
        e = problem_set(m->p, ERR_BAD_REQUEST, "Shard %zu has a tenant already", m->move->to);
    return e;
}

/* Counters that are only in the log go to their rows, as a fold puts them there. */
static enum err prepare(struct moving *m)
{
    return run(
        m, "UPDATE from.tenants t SET active_runs = l.active_runs, queued_runs = l.queued_runs,"
           " rate_full_at = l.rate_full_at FROM logged_counters l WHERE l.tenant = t.num;"
           "DELETE FROM from.counter_log;"
           "CREATE TEMPORARY TABLE moving_owners ON COMMIT DROP AS"
           " SELECT num FROM from.runs WHERE " OF_TENANT
           " UNION SELECT num FROM from.entities WHERE " OF_TENANT
           " UNION SELECT entity FROM from.entity_sweeps WHERE " OF_TENANT ";"
           "CREATE TEMPORARY TABLE moving_types ON COMMIT DROP AS"
           " SELECT num FROM from.entity_types WHERE " OF_TENANT ";"
           "CREATE TEMPORARY TABLE moving_scopes ON COMMIT DROP AS"
           " SELECT num FROM from.scopes WHERE " OF_TENANT ";"
           "CREATE TEMPORARY TABLE moving_lines ON COMMIT DROP AS"
           " SELECT num FROM from.lines WHERE " OF_TENANT ";"
           "CREATE TEMPORARY TABLE moving_feed ON COMMIT DROP AS SELECT"
           " GREATEST((SELECT max(num) FROM from.feed_packs),"
           " (SELECT through FROM from.feed_marks WHERE name = 'swept'), 0) AS last,"
           " EXISTS (SELECT 1 FROM from.feed_packs f JOIN from.feed_marks k ON k.name = 'webhooks'"
           " AND f.num = k.through + 1 WHERE f." OF_TENANT ") AS is_inside;"
           "ANALYZE moving_owners");
}

/* A pack has rows of several tenants. Those with rows of this one become packs of one row each. */
static enum err unpack_feed(struct moving *m)
{
    return run(m, "CREATE TEMPORARY TABLE moving_packs ON COMMIT DROP AS SELECT num FROM"
                  " from.feed_packs WHERE earlier IS NOT NULL AND num IN"
                  " (SELECT pack FROM from.feed WHERE " OF_TENANT ");"
                  "CREATE TEMPORARY TABLE moving_feed_rows ON COMMIT DROP AS"
                  " SELECT num, tenant, run, first_seq, last_seq, at FROM from.feed"
                  " WHERE pack IN (SELECT num FROM moving_packs);"
                  "DELETE FROM from.feed_packs WHERE num IN (SELECT num FROM moving_packs);"
                  "INSERT INTO from.feed_packs (num, tenant, run, first_seq, last_seq, at)"
                  " SELECT num, tenant, run, first_seq, last_seq, at FROM moving_feed_rows");
}

/* --- rows --- */

static enum err copy_table(struct moving *m, size_t i)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "DELETE FROM to.%s; INSERT INTO to.%s SELECT * FROM from.%s WHERE %s",
                   TABLES[i].name, TABLES[i].name, TABLES[i].name, TABLES[i].rows);
    return run(m, sql);
}

/* Both sides have the same rows, byte by byte. */
static enum err compare_table(struct moving *m, size_t i)
{
    static const char SQL[] =
        "SELECT a.n, (a.n = b.n AND a.digest = b.digest)::int FROM"
        " (SELECT count(*) AS n, COALESCE(sum(hashtextextended(t::text, 0)::numeric), 0) AS digest"
        " FROM %s.%s t WHERE %s) a,"
        " (SELECT count(*) AS n, COALESCE(sum(hashtextextended(t::text, 0)::numeric), 0) AS digest"
        " FROM %s.%s t) b";
    char sql[1024];
    const char *name = TABLES[i].name;
    (void)snprintf(sql, sizeof(sql), SQL, m->from, name, TABLES[i].rows, m->to, name);
    PGresult *result = postgres_ask(m->db, sql, 0, NULL, m->p);
    if (result == NULL)
        return m->p->err;
    bool same = postgres_number(result, 1) == 1;
    m->rows += postgres_number(result, 0);
    PQclear(result);
    return same ? ERR_OK
                : problem_set(m->p, ERR_STORE_FAILED, "The copy of the table %s differs", name);
}

/* Requests about API keys and sign-in go to shard 0, whatever the tenant (cluster/front.c), and so
 * do their repetitions: the records of their keys are then in both shards. */
#define OF_SHARD_0 "route ~ '^[A-Z]+ /api/v1/(keys|sessions|me|sign-in|oidc-|outbox|doctor|backup)'"

static enum err remove_rows(struct moving *m, size_t i)
{
    char sql[512];
    bool keeps_some = m->move->from == 0 && strcmp(TABLES[i].name, "key_records") == 0;
    if (TABLES[i].stays)
        return ERR_OK;
    (void)snprintf(sql, sizeof(sql), "DELETE FROM from.%s WHERE %s%s", TABLES[i].name,
                   TABLES[i].rows, keeps_some ? " AND NOT " OF_SHARD_0 : "");
    return run(m, sql);
}

static enum err move_rows(struct moving *m)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(TABLES) && e == ERR_OK; i++) {
        e = copy_table(m, i);
        if (e == ERR_OK)
            e = compare_table(m, i);
    }
    for (size_t i = 0; i < ARRAY_LEN(TABLES) && e == ERR_OK; i++)
        e = remove_rows(m, i);
    return e;
}

/* --- marks --- */

/* API keys are in shard 0, by the numbers of their tenants there. */
static enum err clear_tenant(struct moving *m)
{
    return run(m, m->move->from == 0
                      ? "UPDATE from.tenants SET active_runs = 0, queued_runs = 0 WHERE num IN"
                        " (SELECT num FROM moving_tenant)"
                      : "DELETE FROM from.tenants WHERE num IN (SELECT num FROM moving_tenant)");
}

/* Neither feed may use a number again. An empty row of nobody's has the last one; it is swept as
 * any other. */
static enum err keep_last_feed_number(struct moving *m)
{
    return run(m, "INSERT INTO to.feed_packs (num, tenant, run, first_seq, last_seq, at)"
                  " SELECT last, num, 0, 1, 0, (extract(epoch FROM now()) * 1000)::bigint"
                  " FROM moving_feed, moving_tenant WHERE last > GREATEST((SELECT max(num) FROM "
                  "to.feed_packs),"
                  " (SELECT through FROM to.feed_marks WHERE name = 'swept'), 0);"
                  "INSERT INTO from.feed_packs (num, tenant, run, first_seq, last_seq, at)"
                  " SELECT last, COALESCE((SELECT min(num) FROM from.tenants), 0), 0, 1, 0,"
                  " (extract(epoch FROM now()) * 1000)::bigint FROM moving_feed"
                  " WHERE last > GREATEST((SELECT max(num) FROM from.feed_packs),"
                  " (SELECT through FROM from.feed_marks WHERE name = 'swept'), 0)");
}

/* Webhooks may have stopped inside a row of the feed: that is one tenant's. Indexes are not ahead
 * of what they index. The target's index of keys is empty. */
static enum err set_marks(struct moving *m)
{
    return run(
        m, "DELETE FROM to.feed_marks WHERE name = 'webhooks.seq'"
           " AND NOT (SELECT is_inside FROM moving_feed);"
           "DELETE FROM from.feed_marks WHERE name = 'webhooks.seq'"
           " AND (SELECT is_inside FROM moving_feed);"
           "DELETE FROM to.feed_marks WHERE name IN ('webhooks', 'webhooks.seq')"
           " AND NOT EXISTS (SELECT 1 FROM to.webhooks);"
           "DELETE FROM from.feed_marks WHERE name IN ('webhooks', 'webhooks.seq')"
           " AND NOT EXISTS (SELECT 1 FROM from.webhooks);"
           "UPDATE to.indexed SET through = 0 WHERE name IN ('idempotency', 'run_keys');"
           "UPDATE to.indexed SET through = LEAST(through,"
           " (SELECT COALESCE(max(num), 0) FROM to.runs)) WHERE name = 'runs';"
           "UPDATE from.indexed SET through = LEAST(through,"
           " (SELECT COALESCE(max(num), 0) FROM from.runs)) WHERE name IN ('runs', 'run_keys')");
}

static enum err note_and_commit(struct moving *m)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO moved_tenants (tenant, shard) SELECT id, %zu FROM moving_tenant"
                   " ON CONFLICT (tenant) DO UPDATE SET shard = EXCLUDED.shard;"
                   "SELECT pg_notify('%s_directory', 'shards'); COMMIT",
                   m->move->to, m->db->schema);
    return run(m, sql);
}

typedef enum err step(struct moving *m);

enum err postgres_move_tenant(struct postgres_db *db, const struct tenant_move *move,
                              struct problem *p, int64_t *ret_rows)
{
    struct moving m = {.db = db, .move = move, .p = p};
    (void)snprintf(m.from, sizeof(m.from), "%s_%zu", db->schema, move->from);
    (void)snprintf(m.to, sizeof(m.to), "%s_%zu", db->schema, move->to);
    static step *const STEPS[] = {
        begin,     check_tables, find_tenant,           unpack_feed, prepare,
        move_rows, clear_tenant, keep_last_feed_number, set_marks,   note_and_commit,
    };
    enum err e = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(STEPS) && e == ERR_OK; i++)
        e = STEPS[i](&m);
    *ret_rows = m.rows;
    if (e != ERR_OK && !postgres_is_lost(db)) {
        struct problem ignored;
        problem_init(&ignored);
        (void)!postgres_run(db, "ROLLBACK", &ignored);
        problem_release(&ignored);
    }
    return e;
}
