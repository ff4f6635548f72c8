/* The rows of one tenant go from one shard to another, with their numbers, and the directory learns
 * of it: one transaction, which holds the rows of both shards, so that nobody takes either
 * meanwhile. See docs/adr/049. */
#include "base/limits.h"
#include "store/columns.h"
#include "store/postgres/cluster_store.h"
#include "store/postgres/postgres_db.h"
#include "store/run/slot_holders.h"

#include <inttypes.h>

/* Which rows of a table are the tenant's. The other tables of a condition are temporary ones. */
#define OF_TENANT "tenant IN (SELECT num FROM moving_tenant)"
#define OF_RUN "run IN (SELECT num FROM moving_owners)"
#define OF_ENTITY "entity IN (SELECT num FROM moving_owners)"
#define OF_OWNER "owner IN (SELECT num FROM moving_owners)"
#define OF_TYPE "type IN (SELECT num FROM moving_types)"
#define OF_CHAIN "tenant IN (SELECT num FROM moving_chains)"

/* Rows that have a number of the feed, which is another one at the target. What packs say about
 * counters was folded and stays behind. */
#define FEED_COLUMNS(num) num " AS num, tenant, run, first_seq, last_seq, at, earlier"
#define PARKED_COLUMNS(feed) \
    feed " AS feed, seq, \"offer\", message_id, tenant, run, type, reason, attempts, at, again"

static const struct table {
    const char *name;
    const char *rows;    /* a condition; NULL: neither shard's change */
    const char *columns; /* at the target; NULL: all */
    const char *moved;   /* the same, of the source */
    bool is_kept;        /* the source keeps its rows */
    bool is_made;        /* the target's are not copied */
} TABLES[] = {
    {.name = "api_keys"}, /* in shard 0 */
    {.name = "approval_votes", .rows = OF_RUN},
    {.name = "approvals", .rows = OF_TENANT},
    {.name = "audit", .rows = OF_CHAIN},
    {.name = "audit_chains", .rows = OF_TENANT},
    {.name = "audit_heads", .rows = OF_CHAIN},
    {.name = "checkpoints", .rows = OF_RUN},
    {.name = "dedup", .rows = OF_OWNER},
    {.name = "dedup_stats", .rows = OF_TYPE},
    {.name = "dedup_totals", .rows = OF_TYPE},
    {.name = "dedup_windows", .rows = OF_OWNER},
    {.name = "deliveries", .rows = OF_TENANT},
    {.name = "ended_sessions"}, /* in shard 0 */
    {.name = "entities", .rows = OF_TENANT},
    {.name = "entity_generations", .rows = OF_ENTITY},
    {.name = "entity_starts", .rows = OF_ENTITY},
    {.name = "entity_states", .rows = OF_ENTITY},
    {.name = "entity_sweeps", .rows = OF_ENTITY},
    {.name = "entity_timers", .rows = OF_ENTITY},
    {.name = "entity_type_versions", .rows = OF_TYPE},
    {.name = "entity_types", .rows = OF_TENANT},
    {.name = "entity_updates", .rows = OF_ENTITY},
    {.name = "feed_marks"}, /* see note_feed() */
    {.name = "feed_packs",
     .rows = OF_TENANT,
     .columns = FEED_COLUMNS("num"),
     .moved = FEED_COLUMNS("num + shift")}, /* see unpack_feed() */
    {.name = "first_jobs", .rows = OF_TENANT},
    {.name = "holding", .rows = OF_TENANT},
    {.name = "inbox", .rows = OF_ENTITY},
    {.name = "indexed"}, /* see set_marks() */
    {.name = "jobs", .rows = OF_TENANT},
    {.name = "key_blocks"}, /* the index of keys is built again when the shard is opened */
    {.name = "key_filters"},
    {.name = "key_records", .rows = OF_TENANT},
    {.name = "key_segments"},
    {.name = "line_scopes", .rows = "line IN (SELECT num FROM moving_lines)"},
    {.name = "lines", .rows = OF_TENANT},
    {.name = "map_items", .rows = OF_RUN},
    {.name = "minutes", .rows = OF_TENANT},
    {.name = "moved_feeds", .rows = OF_TENANT, .is_made = true}, /* see note_feed() */
    {.name = "parked",
     .rows = OF_TENANT,
     .columns = PARKED_COLUMNS("feed"),
     .moved = PARKED_COLUMNS("feed + shift")},
    {.name = "queue", .rows = OF_TENANT},
    {.name = "run_blocks", .rows = OF_TENANT},
    {.name = "run_children", .rows = OF_RUN},
    {.name = "run_reruns", .rows = OF_RUN},
    {.name = "run_signals", .rows = OF_RUN},
    {.name = "runs", .rows = OF_TENANT},
    {.name = "schedules", .rows = OF_TENANT},
    {.name = "scopes", .rows = OF_TENANT},
    {.name = "secrets"}, /* see copy_lease_keys() */
    {.name = "slots", .rows = "scope IN (SELECT num FROM moving_scopes)"},
    {.name = "suspensions", .rows = OF_RUN},
    {.name = "tenant_settings", .rows = OF_TENANT},
    {.name = "tenants",
     .rows = "num IN (SELECT num FROM moving_tenant)",
     .is_kept = true}, /* see clear_tenant() */
    {.name = "timeline", .rows = OF_RUN},
    {.name = "timers", .rows = OF_RUN},
    {.name = "webhooks", .rows = OF_TENANT}, /* see note_feed() */
    {.name = "workflow_versions", .rows = OF_TENANT},
    {.name = "workflows", .rows = OF_TENANT},
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
static void put_sql(struct buf *out, const struct moving *m, const char *sql)
{
    while (*sql != '\0') {
        bool is_from = strncmp(sql, "from.", 5) == 0;
        bool is_to = strncmp(sql, "to.", 3) == 0;
        if (is_from || is_to) {
            buf_printf(out, "%s.", is_from ? m->from : m->to);
            sql += is_from ? 5 : 3;
        } else {
            buf_put_char(out, *sql++);
        }
    }
}

static enum err run(struct moving *m, const char *sql)
{
    struct buf text;
    buf_init(&text, 64 * KIB);
    put_sql(&text, m, sql);
    enum err e = buf_ok(&text) ? postgres_run(m->db, text.ptr, m->p)
                               : problem_set(m->p, ERR_NO_MEMORY, "Out of memory");
    buf_release(&text);
    return e;
}

static PGresult *ask(struct moving *m, const char *sql)
{
    struct buf text;
    buf_init(&text, 64 * KIB);
    put_sql(&text, m, sql);
    PGresult *result = NULL;
    if (buf_ok(&text))
        result = postgres_ask(m->db, text.ptr, 0, NULL, m->p);
    else
        (void)problem_set(m->p, ERR_NO_MEMORY, "Out of memory");
    buf_release(&text);
    return result;
}

static enum err ask_number(struct moving *m, const char *sql, int64_t *ret)
{
    PGresult *result = ask(m, sql);
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
                     " AND relnamespace = $1::regnamespace AND relname <> '" DB_COPY_TABLE "'"
                     " ORDER BY relname COLLATE \"C\"",
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
    const char *values[] = {m->move->tenant};
    PGresult *result = PQexecParams(m->db->conn,
                                    "CREATE TEMPORARY TABLE moving_tenant ON COMMIT DROP AS"
                                    " SELECT num, id FROM tenants WHERE id = $1",
                                    1, NULL, values, NULL, NULL, 0);
    bool made = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!made)
        return problem_set(m->p, ERR_STORE_FAILED, "PostgreSQL: %s", PQerrorMessage(m->db->conn));
    enum err e = ask_number(m, "SELECT count(*) FROM moving_tenant", &found);
    if (e == ERR_OK)
        e = ask_number(m,
                       "SELECT count(*) FROM to.tenants WHERE id IN (SELECT id FROM moving_tenant)",
                       &others);
    if (e == ERR_OK && found == 0)
        e = problem_set(m->p, ERR_NOT_FOUND, "There is no tenant %s", m->move->tenant);
    if (e == ERR_OK && others > 0)
        e = problem_set(m->p, ERR_STORE_FAILED, "Shard %zu has a tenant %s already", m->move->to,
                        m->move->tenant);
    return e;
}

/* The last number that the feed of a shard has given. */
#define LAST_OF(shard)                                      \
    "GREATEST((SELECT max(num) FROM " shard ".feed_packs)," \
    " (SELECT through FROM " shard ".feed_marks WHERE name = 'swept'), 0)"
#define LAST_FROM LAST_OF("from")
#define LAST_TO LAST_OF("to")

/* Counters that are only in the feed of either shard go to their rows, as a fold puts them there:
 * packs of the source go or are made again, and those of the target get followers. */
static enum err fold_counters(struct moving *m)
{
#define FOLD(shard)                                                                            \
    "UPDATE " shard ".tenants t SET active_runs = l.active_runs, queued_runs = l.queued_runs," \
    " rate_full_at = l.rate_full_at FROM " shard ".logged_counters l WHERE l.tenant = t.num;"  \
    "UPDATE " shard ".indexed SET through = " LAST_OF(shard) " WHERE name = 'counters'"
    return run(m, FOLD("from") ";" FOLD("to"));
#undef FOLD
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

static enum err find_owners(struct moving *m)
{
    return run(m, "CREATE TEMPORARY TABLE moving_owners ON COMMIT DROP AS"
                  " SELECT num FROM from.runs WHERE " OF_TENANT
                  " UNION SELECT num FROM from.entities WHERE " OF_TENANT
                  " UNION SELECT entity FROM from.entity_sweeps WHERE " OF_TENANT ";"
                  "CREATE TEMPORARY TABLE moving_types ON COMMIT DROP AS"
                  " SELECT num FROM from.entity_types WHERE " OF_TENANT ";"
                  "CREATE TEMPORARY TABLE moving_scopes ON COMMIT DROP AS"
                  " SELECT num FROM from.scopes WHERE " OF_TENANT ";"
                  "CREATE TEMPORARY TABLE moving_lines ON COMMIT DROP AS"
                  " SELECT num FROM from.lines WHERE " OF_TENANT ";"
                  "CREATE TEMPORARY TABLE moving_chains ON COMMIT DROP AS"
                  " SELECT num FROM moving_tenant UNION ALL SELECT chain FROM from.audit_chains"
                  " WHERE " OF_TENANT ";"
                  "ANALYZE moving_owners");
}

/* In both shards: the index of one cannot end where that of the other did. */
static enum err index_runs(struct moving *m)
{
    static const char *const SCHEMAS[] = {"from", "to"};
    static const char SQL[] =
        "CREATE TEMPORARY TABLE unindexed ON COMMIT DROP AS SELECT tenant, num, " RUN_HOLDS_SLOT
        " AS holds FROM %s.runs WHERE num >"
        " (SELECT through FROM %s.indexed WHERE name = 'runs');"
        "INSERT INTO %s.run_blocks (tenant, num) SELECT tenant, num FROM unindexed;"
        "INSERT INTO %s.holding (tenant, run) SELECT tenant, num FROM unindexed WHERE holds;"
        "UPDATE %s.indexed SET through = n.last FROM (SELECT max(num) AS last FROM unindexed) n"
        " WHERE name = 'runs' AND n.last > through; DROP TABLE unindexed";
    enum err e = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(SCHEMAS) && e == ERR_OK; i++) {
        char sql[1024];
        const char *of = SCHEMAS[i];
        (void)snprintf(sql, sizeof(sql), SQL, of, of, of, of, of);
        e = run(m, sql);
    }
    return e;
}

/* --- numbers --- */

/* The tenant's rows of the feed go behind those of the target: `shift` is added to their numbers.
 * `base` comes before the first of them. */
static enum err find_shift(struct moving *m)
{
    return run(m, "CREATE TEMPORARY TABLE moving_feed ON COMMIT DROP AS SELECT f.last, f.base,"
                  " CASE WHEN f.target = 0 THEN 0 ELSE f.target - f.base END AS shift FROM"
                  " (SELECT " LAST_FROM " AS last, " LAST_TO " AS target,"
                  " COALESCE((SELECT min(num) - 1 FROM from.feed_packs WHERE " OF_TENANT
                  "), " LAST_FROM ") AS base) f");
}

static const struct {
    const char *table;
    const char *column;
    const char *numbers; /* of the tenant's rows */
} NUMBERED[] = {
    {"tenants", "num", "SELECT num FROM moving_chains"},
    {"audit_chains", "chain", "SELECT num FROM moving_chains"},
    {"runs", "num", "SELECT num FROM moving_owners"},
    {"entities", "num", "SELECT num FROM moving_owners"},
    {"entity_types", "num", "SELECT num FROM moving_types"},
    {"scopes", "num", "SELECT num FROM moving_scopes"},
    {"lines", "num", "SELECT num FROM moving_lines"},
    {"webhooks", "num", "SELECT num FROM from.webhooks WHERE " OF_TENANT},
    {"deliveries", "num", "SELECT num FROM from.deliveries WHERE " OF_TENANT},
    {"key_records", "num", "SELECT num FROM from.key_records WHERE " OF_TENANT},
};

/* Shards give different numbers, but earlier versions did not see to it. */
static enum err check_numbers(struct moving *m)
{
    for (size_t i = 0; i < ARRAY_LEN(NUMBERED); i++) {
        char sql[256];
        int64_t taken = 0;
        (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM to.%s WHERE %s IN (%s)",
                       NUMBERED[i].table, NUMBERED[i].column, NUMBERED[i].numbers);
        enum err e = ask_number(m, sql, &taken);
        if (e != ERR_OK)
            return e;
        if (taken > 0)
            return problem_set(m->p, ERR_BAD_REQUEST,
                               "Shard %zu has other rows with the numbers of the tenant's (table "
                               "%s), which an earlier version gave. Move the tenant to a shard "
                               "that has no tenants yet.",
                               m->move->to, NUMBERED[i].table);
    }
    return ERR_OK;
}

/* What was given once, in either shard, is given by neither again. */
static enum err keep_numbers(struct moving *m)
{
    static const char *const SCHEMAS[] = {"from", "to"};
    static const char SQL_FIND[] =
        "INSERT INTO moving_numbers SELECT max(num) FROM %s.tenants"
        " UNION ALL SELECT max(num) FROM %s.entity_types UNION ALL SELECT max(num) FROM %s.scopes"
        " UNION ALL SELECT max(num) FROM %s.lines UNION ALL SELECT max(num) FROM %s.webhooks"
        " UNION ALL SELECT max(num) FROM %s.key_records"
        " UNION ALL SELECT max(chain) FROM %s.audit_chains UNION ALL SELECT max(through)"
        " FROM %s.indexed WHERE name IN ('" NUMBERS_MARK "', 'idempotency')";
    static const char SQL_KEEP[] =
        "INSERT INTO %s.indexed (name, through) SELECT '" NUMBERS_MARK "', max(num)"
        " FROM moving_numbers ON CONFLICT (name) DO UPDATE SET through = EXCLUDED.through";
    char sql[1024];
    enum err e = run(m, "CREATE TEMPORARY TABLE moving_numbers (num bigint) ON COMMIT DROP");
    for (size_t i = 0; i < ARRAY_LEN(SCHEMAS) && e == ERR_OK; i++) {
        const char *of = SCHEMAS[i];
        (void)snprintf(sql, sizeof(sql), SQL_FIND, of, of, of, of, of, of, of, of);
        e = run(m, sql);
    }
    for (size_t i = 0; i < ARRAY_LEN(SCHEMAS) && e == ERR_OK; i++) {
        (void)snprintf(sql, sizeof(sql), SQL_KEEP, SCHEMAS[i]);
        e = run(m, sql);
    }
    return e;
}

/* --- the feed --- */

/* How far the readers of the source's feed have come. Webhooks may be inside a row of the tenant.
 */
static enum err find_marks(struct moving *m)
{
    return run(m, "CREATE TEMPORARY TABLE moving_marks ON COMMIT DROP AS SELECT k.*,"
                  " EXISTS (SELECT 1 FROM from.feed_packs f WHERE f.num = k.webhooks + 1"
                  " AND f." OF_TENANT ") AS is_inside FROM (SELECT"
                  " max(through) FILTER (WHERE name = 'swept') AS swept,"
                  " max(through) FILTER (WHERE name = 'bus') AS bus,"
                  " max(through) FILTER (WHERE name = 'webhooks') AS webhooks,"
                  " max(through) FILTER (WHERE name = 'webhooks.seq') AS seq"
                  " FROM from.feed_marks) k");
}

/* What they have done with the tenant's rows counts for those of the target, too: see schema/028.
 * The tenant may have been moved before. */
static enum err note_feed(struct moving *m)
{
    return run(m, "INSERT INTO to.moved_feeds"
                  " (tenant, shift, since, swept, published, fanned, fanned_seq)"
                  " SELECT t.num, COALESCE(o.shift, 0) + f.shift, f.base + f.shift,"
                  " CASE WHEN k.swept > COALESCE(o.since, 0) THEN k.swept - COALESCE(o.shift, 0)"
                  " ELSE COALESCE(o.swept, 0) END,"
                  " COALESCE(GREATEST(o.published, k.bus), 0) + f.shift,"
                  " CASE WHEN k.webhooks IS NULL THEN f.last"
                  " ELSE GREATEST(o.fanned, k.webhooks) END + f.shift,"
                  " CASE WHEN o.fanned >= k.webhooks THEN o.fanned_seq"
                  " WHEN k.is_inside THEN COALESCE(k.seq, 0) ELSE 0 END"
                  " FROM moving_tenant t CROSS JOIN moving_feed f CROSS JOIN moving_marks k"
                  " LEFT JOIN from.moved_feeds o ON o.tenant = t.num;"
                  "UPDATE from.webhooks SET feed_from = feed_from + shift FROM moving_feed"
                  " WHERE " OF_TENANT);
}

/* --- rows --- */

static enum err copy_table(struct moving *m, const struct table *t)
{
    char sql[1024];
    (void)snprintf(sql, sizeof(sql), "INSERT INTO to.%s SELECT %s FROM from.%s%s WHERE %s", t->name,
                   t->moved != NULL ? t->moved : "*", t->name,
                   t->moved != NULL ? ", moving_feed" : "", t->rows);
    return run(m, sql);
}

/* Both sides have the same rows, byte by byte. */
static enum err compare_table(struct moving *m, const struct table *t)
{
#define DIGEST                                                                     \
    " (SELECT count(*) AS n, COALESCE(sum(hashtextextended(t::text, 0)::numeric)," \
    " 0) AS digest FROM (SELECT %s FROM %s%s%s WHERE %s) t)"
    static const char SQL[] =
        "SELECT a.n, (a.n = b.n AND a.digest = b.digest)::int FROM" DIGEST " a," DIGEST " b";
#undef DIGEST
    char sql[2048];
    (void)snprintf(sql, sizeof(sql), SQL, t->moved != NULL ? t->moved : "*", "from.", t->name,
                   t->moved != NULL ? ", moving_feed" : "", t->rows,
                   t->columns != NULL ? t->columns : "*", "to.", t->name, "", t->rows);
    PGresult *result = ask(m, sql);
    if (result == NULL)
        return m->p->err;
    bool same = postgres_number(result, 1) == 1;
    m->rows += postgres_number(result, 0);
    PQclear(result);
    return same ? ERR_OK
                : problem_set(m->p, ERR_STORE_FAILED,
                              "The copy of the table %s differs. Nothing was moved.", t->name);
}

/* Requests about API keys and sign-in go to shard 0, whatever the tenant (cluster/front.c), and so
 * do their repetitions: the records of their keys are then in both shards. */
#define OF_SHARD_0 "route ~ '^[A-Z]+ /api/v1/(keys|sessions|me|sign-in|oidc-|outbox|doctor|backup)'"

static enum err remove_rows(struct moving *m, const struct table *t)
{
    char sql[512];
    bool keeps_some = m->move->from == 0 && strcmp(t->name, "key_records") == 0;
    (void)snprintf(sql, sizeof(sql), "DELETE FROM from.%s WHERE %s%s", t->name, t->rows,
                   keeps_some ? " AND NOT " OF_SHARD_0 : "");
    return run(m, sql);
}

static enum err move_rows(struct moving *m)
{
    enum err e = ERR_OK;
    for (const struct table *t = TABLES; t < TABLES + ARRAY_LEN(TABLES) && e == ERR_OK; t++) {
        if (t->rows == NULL || t->is_made)
            continue;
        e = copy_table(m, t);
        if (e == ERR_OK)
            e = compare_table(m, t);
    }
    for (const struct table *t = TABLES; t < TABLES + ARRAY_LEN(TABLES) && e == ERR_OK; t++) {
        if (t->rows != NULL && !t->is_kept)
            e = remove_rows(m, t);
    }
    return e;
}

/* API keys are in shard 0, by the numbers of their tenants there. */
static enum err clear_tenant(struct moving *m)
{
    return run(m, m->move->from == 0
                      ? "UPDATE from.tenants SET active_runs = 0, queued_runs = 0 WHERE num IN"
                        " (SELECT num FROM moving_tenant)"
                      : "DELETE FROM from.tenants WHERE num IN (SELECT num FROM moving_tenant)");
}

/* Leases that workers hold were signed with the key of the source. */
static enum err copy_lease_keys(struct moving *m)
{
    return run(m, "INSERT INTO to.secrets (name, value) SELECT DISTINCT"
                  " 'lease.' || encode(sha256(value), 'hex'), value FROM from.secrets"
                  " WHERE (name = 'lease' OR name LIKE 'lease.%') AND value NOT IN"
                  " (SELECT value FROM to.secrets)");
}

/* --- marks --- */

/* Neither feed may use a number again, nor the target a position that a client may have. An empty
 * row of nobody's has the last one; it is swept as any other. */
static enum err keep_last_feed_number(struct moving *m)
{
    return run(m, "INSERT INTO to.feed_packs (num, tenant, run, first_seq, last_seq, at)"
                  " SELECT last + shift, num, 0, 1, 0, (extract(epoch FROM now()) * 1000)::bigint"
                  " FROM moving_feed, moving_tenant WHERE last + shift > " LAST_TO ";"
                  "INSERT INTO from.feed_packs (num, tenant, run, first_seq, last_seq, at)"
                  " SELECT last, COALESCE((SELECT min(num) FROM from.tenants), 0), 0, 1, 0,"
                  " (extract(epoch FROM now()) * 1000)::bigint"
                  " FROM moving_feed WHERE last > " LAST_FROM);
}

/* Indexes are not ahead of what they index, and the target's index of keys is made again. */
static enum err set_marks(struct moving *m)
{
    return run(
        m, "DELETE FROM from.feed_marks WHERE name = 'webhooks.seq'"
           " AND (SELECT is_inside FROM moving_marks);"
           "DELETE FROM from.feed_marks WHERE name IN ('webhooks', 'webhooks.seq')"
           " AND NOT EXISTS (SELECT 1 FROM from.webhooks);"
           "INSERT INTO to.feed_marks (name, through) SELECT 'webhooks', base + shift"
           " FROM moving_feed WHERE EXISTS (SELECT 1 FROM to.webhooks) ON CONFLICT DO NOTHING;"
           "DELETE FROM to.key_segments; DELETE FROM to.key_blocks; DELETE FROM to.key_filters;"
           "UPDATE to.indexed SET through = 0 WHERE name IN ('idempotency', 'run_keys');"
           "UPDATE to.indexed SET through = (SELECT COALESCE(max(num), 0) FROM to.runs)"
           " WHERE name = 'runs';"
           "UPDATE to.indexed SET through = " LAST_TO " WHERE name = 'counters';"
           "UPDATE from.indexed SET through = LEAST(through,"
           " (SELECT COALESCE(max(num), 0) FROM from.runs)) WHERE name IN ('runs', 'run_keys')");
}

static enum err note_and_commit(struct moving *m)
{
    char sql[512];
    static const char MOVED[] =
        "INSERT INTO moved_tenants (tenant, shard) SELECT id, %zu FROM moving_tenant"
        " ON CONFLICT (tenant) DO UPDATE SET shard = EXCLUDED.shard;";
    static const char AT_HOME[] =
        "DELETE FROM moved_tenants WHERE tenant IN (SELECT id FROM moving_tenant);";
    int len = snprintf(sql, sizeof(sql), m->move->is_home ? AT_HOME : MOVED, m->move->to);
    (void)snprintf(sql + len, sizeof(sql) - (size_t)len,
                   "SELECT pg_notify('%s_directory', 'shards'); COMMIT", m->db->schema);
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
        begin,       check_tables,    find_tenant,     fold_counters,
        unpack_feed, index_runs,      find_owners,     find_shift,
        find_marks,  check_numbers,   keep_numbers,    note_feed,
        move_rows,   clear_tenant,    copy_lease_keys, keep_last_feed_number,
        set_marks,   note_and_commit,
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
