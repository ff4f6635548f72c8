/* Connections to PostgreSQL: opened, set up, and what their errors mean. */
#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <inttypes.h>
#include <poll.h>

enum {
    VERSION_MIN = 140000,
    RETRY_MS = 500, /* between attempts to connect again */
};

/* --- errors --- */

/* Also one that was being opened when the time was up. */
bool postgres_is_lost(const struct postgres_db *db)
{
    return db->conn == NULL || PQstatus(db->conn) != CONNECTION_OK;
}

/* By the beginning of the SQLSTATE: the first that fits. */
static const struct {
    const char *state;
    enum err err;
} STATES[] = {
    {"PW001", ERR_STORE_FAILED}, /* fenced: see schema/directory/001_shards.directory.sql */
    {"53100", ERR_STORE_FULL},   /* disk full */
    {"53200", ERR_NO_MEMORY},    /* out of memory */
    {"53", ERR_STORE_BUSY},      /* too many connections */
    {"57014", ERR_STORE_BUSY},   /* past its time */
    {"57P", ERR_STORE_BUSY},     /* shutting down, starting up */
    {"55P03", ERR_STORE_BUSY},   /* a lock is held */
    {"40", ERR_STORE_BUSY},      /* rolled back for the sake of others */
    {"25P0", ERR_STORE_BUSY},    /* the transaction has failed, or took too long */
    {"08", ERR_STORE_BUSY},      /* the connection */
    {"25006", ERR_STORE_FAILED}, /* a reader writes, or the server became a standby */
    {"58", ERR_STORE_FAILED},    /* input and output */
    {"XX", ERR_STORE_FAILED},    /* damage */
};

static enum err err_of_state(const char *state)
{
    for (size_t i = 0; i < ARRAY_LEN(STATES); i++) {
        if (strncmp(state, STATES[i].state, strlen(STATES[i].state)) == 0)
            return STATES[i].err;
    }
    return ERR_INTERNAL;
}

enum err postgres_err_of(struct postgres_db *db, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    enum err e = state != NULL ? err_of_state(state) : ERR_STORE_BUSY;
    if (state != NULL && strcmp(state, "PW001") == 0) {
        LOG(LOG_ERROR, "another server has taken the store");
        db->fenced = true;
    } else if (e == ERR_INTERNAL || e == ERR_STORE_FAILED) {
        LOG(LOG_ERROR, e == ERR_INTERNAL ? "a statement failed" : "the store failed",
            LOG_Z("error", PQresultErrorMessage(result)), LOG_Z("code", state));
    }
    return e;
}

/* --- single statements, outside of pipelines --- */

static enum err problem_of(struct postgres_db *db, const PGresult *result, struct problem *p)
{
    if (postgres_is_lost(db))
        return problem_set(p, ERR_STORE_BUSY, "The connection to PostgreSQL is lost: %s",
                           db->conn != NULL ? PQerrorMessage(db->conn) : "it does not answer");
    enum err e = postgres_err_of(db, result);
    return problem_set(p, e == ERR_INTERNAL ? ERR_STORE_FAILED : e, "PostgreSQL: %s",
                       PQresultErrorMessage(result));
}

PGresult *postgres_ask(struct postgres_db *db, const char *sql, size_t count,
                       const char *const *values, struct problem *p)
{
    PGresult *result = postgres_exec_text(db, sql, count, values);
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
        return result;
    (void)problem_of(db, result, p);
    PQclear(result);
    return NULL;
}

enum err postgres_run(struct postgres_db *db, const char *sql, struct problem *p)
{
    PGresult *result = postgres_last_result(db, PQsendQuery(db->conn, sql) == 1);
    bool done =
        PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK;
    enum err e = done ? ERR_OK : problem_of(db, result, p);
    PQclear(result);
    return e;
}

int64_t postgres_number(const PGresult *result, int column)
{
    int64_t number = 0;
    bool whole = str_to_i64(str_of(PQgetvalue(result, 0, column)), &number);
    return whole ? number : 0;
}

/* --- opening --- */

static void pass_over_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

/* Nothing that an administrator set for other programs may change what a commit means. */
static enum err set_up(struct postgres_db *db, struct problem *p)
{
    static const char COMMON[] =
        "SET search_path = %s_%d, %s; SET default_transaction_isolation = 'read committed';"
        "SET statement_timeout = 0; SET lock_timeout = 0; SET jit = off;"
        "SET idle_in_transaction_session_timeout = 60000; SET tcp_keepalives_idle = 5;"
        "SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;"
        "SET tcp_user_timeout = 10000; SET default_transaction_deferrable = off;"
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off';%s";
    /* A new owner waits for the transaction of one that was paused in the middle of it. And as
     * SQLite has it: a plan depends on the indexes, not on how many rows there were once. */
    static const char WRITER[] = "SET default_transaction_read_only = off;"
                                 "SET idle_in_transaction_session_timeout = 5000;"
                                 "SET plan_cache_mode = force_generic_plan;"
                                 "SET enable_seqscan = off";
    static const char READER[] = "SET default_transaction_read_only = on";
    char sql[1024];
    (void)snprintf(sql, sizeof(sql), COMMON, db->schema, db->shard, db->schema,
                   db->access == DB_WRITER ? WRITER : READER);
    return postgres_run(db, sql, p);
}

static enum err check_server(struct postgres_db *db, struct problem *p)
{
    int version = PQserverVersion(db->conn);
    if (version < VERSION_MIN)
        return problem_set(p, ERR_STORE_FAILED, "PostgreSQL %d is too old: pawl needs %d or newer",
                           version / 10000, VERSION_MIN / 10000);
    const char *encoding = PQparameterStatus(db->conn, "server_encoding");
    if (encoding == NULL || strcmp(encoding, "UTF8") != 0)
        return problem_set(p, ERR_STORE_FAILED, "The database has the encoding %s: pawl needs UTF8",
                           encoding != NULL ? encoding : "of an unknown name");
    return ERR_OK;
}

enum err postgres_open_session(struct postgres_db *db, struct problem *p)
{
    db->conn = postgres_dial(db);
    if (PQstatus(db->conn) != CONNECTION_OK)
        return problem_set(p, ERR_STORE_BUSY, "Cannot connect to PostgreSQL: %s",
                           PQerrorMessage(db->conn));
    (void)PQsetNoticeProcessor(db->conn, pass_over_notice, NULL);
    db->session++;
    db->syncs_to_skip = 0;
    enum err e = check_server(db, p);
    return e == ERR_OK ? set_up(db, p) : e;
}

/* For a commit that is not put off the setting of the session is prepared. */
static enum err put_commits_off(struct postgres_db *db, struct problem *p)
{
    static const char SQL[] =
        "SELECT set_config('pawl.commit', current_setting('synchronous_commit'), false);"
        "PREPARE commit_now AS"
        " SELECT set_config('synchronous_commit', current_setting('pawl.commit'), true);"
        "SET synchronous_commit = off";
    return db->syncer != NULL ? postgres_run(db, SQL, p) : ERR_OK;
}

/* Every transaction of a writer is fenced: the server plans that once. */
static enum err prepare_fence(struct postgres_db *db, struct problem *p)
{
    static const char SQL[] = "PREPARE fence (bigint, bigint, bigint) AS SELECT fence($1, $2, $3)";
    return db->access == DB_WRITER ? postgres_run(db, SQL, p) : ERR_OK;
}

static enum err enter_pipeline(struct postgres_db *db, struct problem *p)
{
    enum err e = prepare_fence(db, p);
    if (e == ERR_OK)
        e = put_commits_off(db, p);
    if (e != ERR_OK)
        return e;
    if (PQsetnonblocking(db->conn, 1) == 0 && PQenterPipelineMode(db->conn) == 1)
        return ERR_OK;
    return problem_set(p, ERR_STORE_BUSY, "PostgreSQL: %s", PQerrorMessage(db->conn));
}

static enum err check_reader(struct postgres_db *db, struct problem *p)
{
    PGresult *result = postgres_ask(db, "SELECT to_regclass('tenants') IS NOT NULL", 0, NULL, p);
    if (result == NULL)
        return p->err;
    bool there = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return there ? ERR_OK
                 : problem_set(p, ERR_STORE_FAILED, "The schema %s of the database is no store",
                               db->schema);
}

static enum err check_whole(struct postgres_db *db, struct problem *p)
{
    PGresult *result =
        postgres_ask(db, "SELECT to_regclass('" DB_COPY_TABLE "') IS NULL", 0, NULL, p);
    if (result == NULL)
        return p->err;
    bool whole = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return whole ? ERR_OK : db_refuse_copy(p);
}

enum err postgres_connect(struct postgres_db *db, struct problem *p)
{
    enum err e = postgres_open_session(db, p);
    if (e == ERR_OK && db->access == DB_READER)
        e = check_reader(db, p);
    else if (e == ERR_OK && db->copy != DB_COPY_TARGET && db->copy != DB_COPY_SHARD)
        e = check_whole(db, p);
    if (e == ERR_OK && db->access == DB_WRITER)
        e = postgres_take(db, p);
    return e == ERR_OK ? enter_pipeline(db, p) : e;
}

/* --- again --- */

/* What is kept in memory is only true if nobody else has written, and if all that was committed is
 * still there: a standby that took over may lack the last commits. */
static enum err take_back(struct postgres_db *db, struct problem *p)
{
    bool whole = true;
    enum err e = postgres_lock(db, p);
    if (e == ERR_OK)
        e = postgres_raise_epoch(db, p);
    if (e == ERR_OK && db->committed_num > 0)
        e = postgres_find_commit(db, db->committed_num, p, &whole);
    if (e == ERR_OK && !whole)
        e = problem_set(p, ERR_STORE_FAILED, "PostgreSQL has lost commit %" PRId64,
                        db->committed_num);
    return e;
}

enum err postgres_connect_again(struct postgres_db *db)
{
    if (env_mono_ms(db->env) < db->retry_at)
        return ERR_STORE_BUSY;
    PQfinish(db->conn);
    db->conn = NULL;
    struct problem p;
    problem_init(&p);
    enum err e = postgres_open_session(db, &p);
    if (e == ERR_OK && db->access == DB_WRITER)
        e = take_back(db, &p);
    if (e == ERR_OK)
        e = enter_pipeline(db, &p);
    db->retry_at = e == ERR_OK ? 0 : env_mono_ms(db->env) + RETRY_MS;
    if (e != ERR_OK) {
        PQfinish(db->conn);
        db->conn = NULL;
    }
    if (e == ERR_OK && db->session > 1) {
        LOG(LOG_INFO, "connected to PostgreSQL again");
        if (db->reconnects != NULL)
            metric_add(db->reconnects, STR_NONE, STR_NONE, 1);
    }
    if (e != ERR_OK)
        LOG(e == ERR_STORE_FAILED ? LOG_ERROR : LOG_WARN, "cannot go on with PostgreSQL",
            LOG_Z("why", p.detail));
    problem_release(&p);
    return e;
}

/* Reads as far as anything has come: the end, perhaps, behind results that nobody waits for. */
enum err postgres_wake(struct postgres_db *db)
{
    bool lost = postgres_is_lost(db);
    while (!lost) {
        struct pollfd fd = {.fd = PQsocket(db->conn), .events = POLLIN};
        if (poll(&fd, 1, 0) <= 0)
            return ERR_OK;
        lost = PQconsumeInput(db->conn) == 0 || postgres_is_lost(db);
    }
    return postgres_connect_again(db);
}
