/* The PostgreSQL driver: one writer with a fence in every transaction, readers on snapshots. */
#include "store/postgres/postgres.h"

#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <time.h>

enum { SETTLE_POLL_MS = 200 };

static bool is_only_writer(const struct db *base)
{
    return ((const struct postgres_db *)base)->access == DB_WRITER; /* it is fenced otherwise */
}

/* --- transactions --- */

static void over(struct postgres_db *db)
{
    postgres_batch_clear(&db->batch);
    db->in_transaction = false;
    db->begun = false;
    db->failed = ERR_OK;
    db->deadline_ms = 0;
}

void postgres_rollback(struct db *base)
{
    static const char SQL[] = "ROLLBACK";
    struct postgres_db *db = postgres_db_of(base);
    if (db->in_transaction && db->begun && !postgres_is_lost(db))
        postgres_leave_trip(db, postgres_send_text(db, SQL));
    over(db);
}

static enum err start(struct postgres_db *db)
{
    if (db->in_transaction)
        postgres_rollback(&db->base);
    enum err e = postgres_wake(db);
    db->in_transaction = e == ERR_OK;
    return e;
}

enum err postgres_begin(struct db *base)
{
    assert(postgres_db_of(base)->access == DB_WRITER);
    if (postgres_syncer_failed(postgres_db_of(base)->syncer))
        return ERR_STORE_FAILED;
    return start(postgres_db_of(base));
}

/* --- commits in doubt --- */

enum err postgres_ask_whether_committed(struct postgres_db *session, int shard, int64_t num,
                                        bool *ret_committed)
{
    static const char SQL[] = "SELECT num FROM commits WHERE shard = %d AND num = %lld";
    char sql[128];
    (void)snprintf(sql, sizeof(sql), SQL, shard, (long long)num);
    struct trip trip = postgres_finish_trip(session, postgres_send_text(session, sql));
    *ret_committed = trip.err == ERR_OK && PQntuples(trip.last) == 1;
    PQclear(trip.last);
    return trip.err;
}

/* The connection was lost while it committed. Another one takes the store back, which no other
 * owner may have had meanwhile, and looks for the commit. That is over: the new epoch has waited
 * for it. */
static enum db_outcome settle(struct postgres_db *db)
{
    int64_t until = env_mono_ms(db->env) + POSTGRES_SETTLE_MS_MAX;
    while (env_mono_ms(db->env) < until) {
        bool committed = false;
        enum err e = postgres_is_lost(db) ? postgres_connect_again(db) : ERR_OK;
        if (e == ERR_OK)
            e = postgres_ask_whether_committed(db, db->shard, db->commit_num, &committed);
        if (e == ERR_OK) {
            LOG(LOG_INFO, "settled a commit that was in doubt",
                LOG_Z("outcome", committed ? "committed" : "aborted"));
            return committed ? DB_COMMITTED : DB_ABORTED;
        }
        if (e == ERR_STORE_FAILED)
            break;
        (void)nanosleep(&(struct timespec){.tv_nsec = SETTLE_POLL_MS * 1000000L}, NULL);
    }
    return DB_IN_DOUBT;
}

/* --- commit --- */

/* Everything that waits goes with it. COMMIT is not sent before the server has answered, which it
 * does while it works: a server that is gone leaves no doubt. */
static struct trip send_commit(struct postgres_db *db, bool now, bool *ret_asked)
{
    static const char SQL[] = "COMMIT";
    static const char NOW[] = "EXECUTE commit_now";
    bool sent = postgres_send_prelude(db) && postgres_batch_send(db);
    if (sent && db->syncer != NULL && now)
        sent = postgres_send_text(db, NOW);
    enum err e = ERR_OK;
    if (sent && db->prelude_due > 0)
        e = postgres_await_fence(db);
    *ret_asked = sent && e == ERR_OK;
    if (*ret_asked)
        sent = postgres_send_text(db, SQL);
    struct trip trip = postgres_finish_trip(db, sent);
    if (trip.err == ERR_OK)
        trip.err = e;
    return trip;
}

static enum db_outcome settle_and_count(struct postgres_db *db)
{
    enum db_outcome outcome = settle(db);
    const char *name = outcome == DB_COMMITTED ? "committed"
                       : outcome == DB_ABORTED ? "aborted"
                                               : "unknown";
    if (db->in_doubt != NULL)
        metric_add(db->in_doubt, str_of(name), STR_NONE, 1);
    return outcome;
}

static enum db_outcome outcome_of(struct postgres_db *db, const struct trip *trip, bool asked)
{
    if (asked && postgres_is_lost(db))
        return settle_and_count(db);
    if (trip->err != ERR_OK)
        return db->fenced ? DB_FENCED : DB_ABORTED;
    /* A transaction that has failed is rolled back without an error. */
    return strcmp(PQcmdStatus(trip->last), "COMMIT") == 0 ? DB_COMMITTED : DB_ABORTED;
}

static enum err err_of_outcome(enum db_outcome outcome, enum err e)
{
    switch (outcome) {
    case DB_COMMITTED:
        return ERR_OK;
    case DB_ABORTED:
        return e == ERR_OK ? ERR_INTERNAL : e == ERR_STORE_FAILED ? ERR_STORE_BUSY : e;
    case DB_FENCED:
    case DB_IN_DOUBT:
        break;
    }
    return ERR_STORE_FAILED;
}

/* The transaction under way, in whatever company. ERR_OK goes with a commit only. */
static enum err commit_now_or_later(struct postgres_db *db, bool now, enum db_outcome *ret_outcome)
{
    bool asked = false;
    struct trip trip = send_commit(db, now, &asked);
    *ret_outcome = outcome_of(db, &trip, asked);
    db->begun = trip.err != ERR_OK; /* then it is still to be rolled back */
    PQclear(trip.last);
    return trip.err;
}

/* It was in the session of the group that the connection was lost. The new epoch waits for that
 * session's transaction as for one of its own. */
static enum err settle_in_group(struct postgres_db *db, enum db_outcome *ret_outcome)
{
    PQfinish(db->conn);
    db->conn = NULL;
    *ret_outcome = settle_and_count(db);
    return *ret_outcome == DB_COMMITTED ? ERR_OK : ERR_STORE_BUSY;
}

enum err postgres_commit(struct db *base, enum db_outcome *ret_outcome)
{
    struct postgres_db *db = postgres_db_of(base);
    enum err e = db->failed;
    *ret_outcome = DB_COMMITTED;
    assert(db->in_transaction);
    if (db->failed != ERR_OK) {
        *ret_outcome = db->fenced ? DB_FENCED : DB_ABORTED;
    } else if (db->begun || db->batch.first != NULL) {
        bool now = base->commits_now || !postgres_work_waits(db->syncer);
        postgres_commit_begins(db->syncer);
        enum group_result group = postgres_group_offer(db);
        if (group == GROUP_IN_DOUBT)
            e = settle_in_group(db, ret_outcome);
        else if (group != GROUP_COMMITTED)
            e = commit_now_or_later(db, now, ret_outcome);
        if (group == GROUP_HAS_TURN)
            postgres_group_pass_on(db);
        now |= group == GROUP_COMMITTED || group == GROUP_IN_DOUBT;
        postgres_commit_ends(db, now, *ret_outcome);
        if (*ret_outcome == DB_COMMITTED)
            db->committed_num = db->commit_num;
    }
    postgres_rollback(base);
    return err_of_outcome(*ret_outcome, e);
}

static int64_t changes(const struct db *base)
{
    return ((const struct postgres_db *)base)->changes;
}

/* --- snapshots --- */

static enum err snapshot_begin(struct db *base, int64_t ms)
{
    struct postgres_db *db = postgres_db_of(base);
    assert(db->access == DB_READER);
    enum err e = start(db);
    if (e != ERR_OK)
        return e;
    db->snapshot_ms = ms;
    db->deadline_ms = env_mono_ms(db->env) + ms;
    return ERR_OK;
}

static void snapshot_end(struct db *base)
{
    postgres_rollback(base);
}

/* --- opening and closing --- */

static void close_db(struct db *base)
{
    struct postgres_db *db = postgres_db_of(base);
    postgres_rollback(base);
    postgres_group_leave(db);
    PQfinish(db->conn);
    postgres_forget_statements(db);
    postgres_batch_release(&db->batch);
    postgres_syncer_free(db->syncer);
    free(db);
}

/* The columns of an index are counted from 0. */
static const char SCHEMA_SQL[] =
    "SELECT c.relname, a.attname, CASE format_type(a.atttypid, a.atttypmod) WHEN 'bigint' THEN "
    "'int'"
    " WHEN 'bytea' THEN 'blob' ELSE format_type(a.atttypid, a.atttypmod) END,"
    " COALESCE(array_position(i.indkey::int2[], a.attnum) + 1, 0)"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
    " AND NOT a.attisdropped LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"
    " ORDER BY c.relname, a.attname";

static const struct db_ops OPS = {
    .name = "PostgreSQL",
    .close = close_db,
    .exec = postgres_exec,
    .query = postgres_query,
    .next = postgres_next,
    .end = postgres_end,
    .column = postgres_column,
    .column_count = postgres_column_count,
    .column_name = postgres_column_name,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .sync = postgres_sync,
    .rollback = postgres_rollback,
    .changes = changes,
    .snapshot_begin = snapshot_begin,
    .snapshot_end = snapshot_end,
    .is_only_writer = is_only_writer,
    .schema_sql = SCHEMA_SQL,
};

static enum err open_db(const struct db_config *config, struct str address, struct problem *p,
                        struct db **ret)
{
    if (!str_starts_with(address, STR("://")) && !str_starts_with(address, STR("ql://")))
        return problem_set(p, ERR_BAD_REQUEST,
                           "The store must be given as postgres://USER@HOST/DATABASE");
    struct postgres_db *db = calloc(1, sizeof(*db));
    if (db == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for a connection");
    db->base.ops = &OPS;
    db->access = config->access;
    db->env = config->env;
    db->copy = config->copy;
    db->patience_ms = config->patience_ms;
    db->reconnects = config->reconnects;
    db->in_doubt = config->in_doubt;
    postgres_batch_init(&db->batch);
    enum err e = postgres_read_url(db, config->url, p);
    bool lazy = db->is_node && db->access == DB_READER; /* the owner has just opened the store */
    bool puts_off = db->access == DB_WRITER && config->marks != NULL;
    if (e == ERR_OK && puts_off) {
        db->syncer = postgres_syncer_new(db, config->marks);
        e = db->syncer != NULL ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "No memory for a sync");
    }
    if (e == ERR_OK && !lazy)
        e = postgres_connect(db, p);
    else if (e == ERR_OK && db->patience_ms > 0)
        (void)!postgres_connect_again(db); /* whoever must not wait later has it by then */
    if (e == ERR_OK)
        postgres_group_join(db, config->commit_group);
    if (e != ERR_OK) {
        close_db(&db->base);
        return e;
    }
    *ret = &db->base;
    return ERR_OK;
}

const struct db_engine DB_ENGINE_POSTGRES = {
    {"postgres", 8}, "postgres://USER@HOST/DATABASE", "PostgreSQL", open_db};
