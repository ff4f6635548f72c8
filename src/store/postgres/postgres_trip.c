/* Trips to the server: statements in a pipeline, one sync, their results. */
#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <endian.h>
#include <poll.h>

/* --- sending --- */

bool postgres_send_text(struct postgres_db *db, const char *sql)
{
    return PQsendQueryParams(db->conn, sql, 0, NULL, NULL, NULL, NULL, 1) == 1;
}

/* Numbers as PostgreSQL has them, texts and blobs as they are. */
bool postgres_send(struct postgres_db *session, const struct postgres_name *name,
                   const struct postgres_rows *s, const struct db_value *values)
{
    const char *bytes[POSTGRES_PARAMETERS_MAX];
    uint64_t numbers[POSTGRES_PARAMETERS_MAX];
    int lengths[POSTGRES_PARAMETERS_MAX];
    int formats[POSTGRES_PARAMETERS_MAX];
    for (int i = 0; i < s->parameters; i++) {
        const struct db_value *v = &values[i];
        numbers[i] = htobe64((uint64_t)v->number);
        bytes[i] = v->kind == DB_NULL  ? NULL
                   : v->kind == DB_INT ? (const char *)&numbers[i]
                   : v->bytes.len > 0  ? v->bytes.ptr
                                       : "";
        lengths[i] = v->kind == DB_INT ? (int)sizeof(numbers[i]) : (int)v->bytes.len;
        formats[i] = 1;
    }
    return PQsendQueryPrepared(session->conn, name->text, s->parameters, bytes, lengths, formats,
                               1) == 1;
}

void postgres_next_commit_num(struct postgres_db *db)
{
    db->commit_num = MAX(db->commit_num, db->numbers_after) + 1;
}

/* A writer's transaction is fenced first; a reader's has a time limit. */
bool postgres_send_prelude(struct postgres_db *db)
{
    char second[128];
    if (!db->in_transaction || db->begun)
        return true;
    bool writer = db->access == DB_WRITER;
    if (writer) {
        postgres_next_commit_num(db);
        (void)snprintf(second, sizeof(second), "EXECUTE fence(%d, %lld, %lld)", db->shard,
                       (long long)db->epoch, (long long)db->commit_num);
    } else {
        (void)snprintf(second, sizeof(second), "SET LOCAL statement_timeout = %lld",
                       (long long)MAX(db->snapshot_ms, INT64_C(1)));
    }
    db->begun = true;
    db->prelude_due = 2;
    return postgres_send_text(db, writer ? "BEGIN"
                                         : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") &&
           postgres_send_text(db, second);
}

/* Sends what libpq holds, and reads meanwhile what comes back, so that neither side waits for the
 * other with full buffers. */
static bool flush(struct postgres_db *db)
{
    for (;;) {
        int rest = PQflush(db->conn);
        if (rest <= 0)
            return rest == 0;
        struct pollfd fd = {.fd = PQsocket(db->conn), .events = POLLIN | POLLOUT};
        if (poll(&fd, 1, -1) > 0 && (fd.revents & POLLIN) != 0 && PQconsumeInput(db->conn) == 0)
            return false;
    }
}

/* --- results --- */

/* After an error the server passes over the rest of the trip, also what would have been prepared.
 */
static void forget_prepared(struct postgres_db *db)
{
    for (struct postgres_name *n = db->names_sent; n != NULL; n = n->next_sent)
        n->session = 0;
    db->names_sent = NULL;
}

/* Takes the result over. */
static void take_result(struct postgres_db *db, PGresult *result, struct trip *trip)
{
    ExecStatusType status = PQresultStatus(result);
    bool done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (done && db->prelude_due == 0) {
        PQclear(trip->last);
        trip->last = result;
        return;
    }
    if (done)
        db->prelude_due--;
    else
        forget_prepared(db);
    if (status == PGRES_FATAL_ERROR && trip->err == ERR_OK)
        trip->err = postgres_err_of(db, result);
    PQclear(result);
}

/* Half a trip may be under way. */
static enum err lose(struct postgres_db *db)
{
    if (db->conn != NULL)
        LOG(LOG_WARN, "lost the connection to PostgreSQL", LOG_Z("why", PQerrorMessage(db->conn)));
    PQfinish(db->conn);
    db->conn = NULL;
    return ERR_STORE_BUSY;
}

/* An error that libpq made up itself: it could not read, or there was no memory for what it read.
 * It leaves some such connections open, but what comes next on them is anybody's guess. */
static bool is_of_client(const PGresult *result)
{
    return PQresultStatus(result) == PGRES_FATAL_ERROR &&
           PQresultErrorField(result, PG_DIAG_SQLSTATE) == NULL;
}

/* The next result, or NULL: a sync, or the connection is lost. */
static PGresult *next_result(struct postgres_db *db)
{
    while (postgres_await_result(db)) {
        PGresult *result = PQgetResult(db->conn);
        if (result == NULL)
            continue; /* between two statements */
        if (PQresultStatus(result) != PGRES_PIPELINE_SYNC && !is_of_client(result))
            return result;
        if (is_of_client(result))
            (void)lose(db);
        PQclear(result);
        return NULL;
    }
    return NULL;
}

static void skip_old_trips(struct postgres_db *db)
{
    while (db->syncs_to_skip > 0 && !postgres_is_lost(db)) {
        PGresult *result = next_result(db);
        if (result == NULL)
            db->syncs_to_skip--;
        PQclear(result);
    }
}

enum err postgres_await_fence(struct postgres_db *db)
{
    struct trip trip = {NULL, ERR_OK};
    if (PQsendFlushRequest(db->conn) == 0 || !flush(db))
        return lose(db);
    skip_old_trips(db);
    while (db->prelude_due > 0 && trip.err == ERR_OK) {
        PGresult *result = next_result(db);
        if (result == NULL)
            return lose(db);
        take_result(db, result, &trip);
    }
    return trip.err;
}

struct trip postgres_finish_trip(struct postgres_db *db, bool sent)
{
    struct trip trip = {NULL, ERR_OK};
    sent = sent && PQpipelineSync(db->conn) == 1 && flush(db);
    if (sent) {
        skip_old_trips(db);
        for (PGresult *r = next_result(db); r != NULL; r = next_result(db))
            take_result(db, r, &trip);
    }
    if (!sent || postgres_is_lost(db))
        trip.err = lose(db);
    db->prelude_due = 0;
    db->names_sent = NULL;
    if (trip.err != ERR_OK) {
        PQclear(trip.last);
        trip.last = NULL;
    }
    return trip;
}

void postgres_leave_trip(struct postgres_db *db, bool sent)
{
    if (sent && PQpipelineSync(db->conn) == 1 && flush(db))
        db->syncs_to_skip++;
    else
        (void)lose(db);
}
