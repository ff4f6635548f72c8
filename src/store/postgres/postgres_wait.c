/* Waiting for the server's answers. The connection of a server whose machine is gone breaks by
 * itself (postgres_dial.c), but a machine whose kernel lives may hold one for ever. */
#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <poll.h>

enum { LOOK_ELSEWHERE_MS = 5 * 1000 }; /* without an answer: is another server the primary now? */

static bool is_same_server(const PGconn *a, const PGconn *b)
{
    return strcmp(PQhost(a), PQhost(b)) == 0 && strcmp(PQhostaddr(a), PQhostaddr(b)) == 0 &&
           strcmp(PQport(a), PQport(b)) == 0;
}

/* A long statement and a commit that waits for a standby are not given up, only a server that
 * another one has replaced. */
static bool answers_elsewhere(const struct postgres_db *db)
{
    if (!postgres_has_hosts(db))
        return false;
    PGconn *other = postgres_dial(db);
    bool elsewhere = PQstatus(other) == CONNECTION_OK && !is_same_server(other, db->conn);
    PQfinish(other);
    return elsewhere;
}

static bool give_up(struct postgres_db *db, const char *why)
{
    LOG(LOG_WARN, "giving a connection to PostgreSQL up", LOG_Z("why", why));
    PQfinish(db->conn);
    db->conn = NULL;
    return false;
}

bool postgres_await_result(struct postgres_db *db)
{
    int64_t until = db->patience_ms > 0 ? env_mono_ms(db->env) + db->patience_ms : INT64_MAX;
    while (!postgres_is_lost(db) && PQisBusy(db->conn) != 0) {
        struct pollfd fd = {.fd = PQsocket(db->conn), .events = POLLIN};
        int64_t left = MIN(until - env_mono_ms(db->env), (int64_t)LOOK_ELSEWHERE_MS);
        if (left > 0 && poll(&fd, 1, (int)left) != 0) {
            if (PQconsumeInput(db->conn) == 0) /* it may be open still, with half an answer */
                return give_up(db, PQerrorMessage(db->conn));
        } else if (env_mono_ms(db->env) >= until) {
            return give_up(db, "it does not answer");
        } else if (db->patience_ms == 0 && answers_elsewhere(db)) {
            return give_up(db, "another server is the primary");
        }
    }
    return !postgres_is_lost(db);
}

PGresult *postgres_last_result(struct postgres_db *db, bool sent)
{
    PGresult *last = NULL;
    while (sent && postgres_await_result(db)) {
        PGresult *result = PQgetResult(db->conn);
        if (result == NULL)
            return last;
        PQclear(last);
        last = result;
    }
    PQclear(last);
    if (!sent && !postgres_is_lost(db))
        (void)give_up(db, PQerrorMessage(db->conn)); /* it can take no statement */
    return NULL;
}

PGresult *postgres_exec_text(struct postgres_db *db, const char *sql, size_t count,
                             const char *const *values)
{
    return postgres_last_result(
        db, PQsendQueryParams(db->conn, sql, (int)count, NULL, values, NULL, NULL, 0) == 1);
}
