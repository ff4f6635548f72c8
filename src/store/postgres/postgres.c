/* The PostgreSQL driver: one writer with a fence in every transaction, readers on snapshots. */
#include "store/postgres/postgres.h"

#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <time.h>

enum {
    SETTLE_MS_MAX = 30 * 1000, /* a server that crashed is back by then, or it is down */
    SETTLE_POLL_MS = 200,
};

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
    return start(postgres_db_of(base));
}

/* --- commits in doubt --- */

/* A transaction that is not over is waited for: it has its row of the directory. */
static enum err ask_status(struct postgres_db *db, int64_t xid, bool *ret_committed)
{
    char sql[96];
    (void)snprintf(sql, sizeof(sql), "SELECT pg_xact_status('%lld'::xid8)", (long long)xid);
    struct trip trip = postgres_finish_trip(db, postgres_send_text(db, sql));
    if (trip.err != ERR_OK)
        return trip.err;
    const char *status = PQntuples(trip.last) == 1 ? PQgetvalue(trip.last, 0, 0) : "";
    *ret_committed = strcmp(status, "committed") == 0;
    bool known = *ret_committed || strcmp(status, "aborted") == 0;
    PQclear(trip.last);
    return known ? ERR_OK : ERR_STORE_FAILED;
}

/* The connection was lost while it committed. Another one takes the store back, which no other
 * owner may have had meanwhile, and asks what became of the transaction. */
static enum db_outcome settle(struct postgres_db *db)
{
    int64_t xid = db->xid;
    int64_t until = env_mono_ms(db->env) + SETTLE_MS_MAX;
    while (env_mono_ms(db->env) < until) {
        bool committed = false;
        enum err e = postgres_is_lost(db) ? postgres_connect_again(db) : ERR_OK;
        if (e == ERR_OK)
            e = ask_status(db, xid, &committed);
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

/* Everything that waits goes with it. The number of the transaction must be known before COMMIT is
 * sent: the server tells it while it works. */
static struct trip send_commit(struct postgres_db *db, bool *ret_asked)
{
    static const char SQL[] = "COMMIT";
    bool sent = postgres_send_prelude(db) && postgres_batch_send(db);
    enum err e = ERR_OK;
    if (sent && db->xid == 0)
        e = postgres_learn_xid(db);
    *ret_asked = sent && e == ERR_OK;
    if (*ret_asked)
        sent = postgres_send_text(db, SQL);
    struct trip trip = postgres_finish_trip(db, sent);
    if (trip.err == ERR_OK)
        trip.err = e;
    return trip;
}

static enum db_outcome outcome_of(struct postgres_db *db, const struct trip *trip, bool asked)
{
    if (asked && postgres_is_lost(db))
        return settle(db);
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

enum err postgres_commit(struct db *base, enum db_outcome *ret_outcome)
{
    struct postgres_db *db = postgres_db_of(base);
    struct trip trip = {NULL, db->failed};
    *ret_outcome = DB_COMMITTED;
    assert(db->in_transaction);
    if (db->failed != ERR_OK) {
        *ret_outcome = db->fenced ? DB_FENCED : DB_ABORTED;
    } else if (db->begun || db->batch.first != NULL) {
        bool asked = false;
        trip = send_commit(db, &asked);
        *ret_outcome = outcome_of(db, &trip, asked);
        db->begun = trip.err != ERR_OK; /* then it is still to be rolled back */
        PQclear(trip.last);
    }
    postgres_rollback(base);
    return err_of_outcome(*ret_outcome, trip.err);
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
    PQfinish(db->conn);
    postgres_forget_statements(db);
    postgres_batch_release(&db->batch);
    free(db);
}

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
    .rollback = postgres_rollback,
    .changes = changes,
    .snapshot_begin = snapshot_begin,
    .snapshot_end = snapshot_end,
    .is_only_writer = is_only_writer,
};

static bool is_schema_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || c == '_' || (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return name.len > 0 && name.len <= POSTGRES_SCHEMA_MAX && !str_starts_with(name, STR("pg_"));
}

/* Takes schema=NAME out of the URL: libpq would refuse it. */
static enum err read_url(struct postgres_db *db, struct str url, struct problem *p)
{
    if (url.len >= sizeof(db->url))
        return problem_set(p, ERR_BAD_REQUEST, "The URL of the store is too long");
    memcpy(db->url, url.ptr, url.len);
    (void)snprintf(db->schema, sizeof(db->schema), "pawl");
    char *at = strchr(db->url, '?');
    while (at != NULL && strncmp(at + 1, "schema=", 7) != 0)
        at = strchr(at + 1, '&');
    if (at == NULL)
        return ERR_OK;
    char *name = at + 1 + strlen("schema=");
    struct str schema = {name, strcspn(name, "&")};
    if (!is_schema_name(schema))
        return problem_set(p, ERR_BAD_REQUEST,
                           "The schema \"%.*s\" in the URL of the store must be a name of up to %d "
                           "lower-case letters, digits and underscores",
                           STR_ARG(schema), POSTGRES_SCHEMA_MAX);
    memcpy(db->schema, schema.ptr, schema.len);
    db->schema[schema.len] = '\0';
    char *rest = name + schema.len;
    if (*rest == '&')
        memmove(at + 1, rest + 1, strlen(rest)); /* with the NUL */
    else
        *at = '\0';
    return ERR_OK;
}

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
    postgres_batch_init(&db->batch);
    enum err e = read_url(db, config->url, p);
    if (e == ERR_OK)
        e = postgres_connect(db, p);
    if (e != ERR_OK) {
        close_db(&db->base);
        return e;
    }
    *ret = &db->base;
    return ERR_OK;
}

const struct db_engine DB_ENGINE_POSTGRES = {
    {"postgres", 8}, "postgres://USER@HOST/DATABASE", "PostgreSQL", open_db};
