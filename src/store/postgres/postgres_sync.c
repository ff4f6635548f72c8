/* Commits that are put on disk later, while the writer goes on (struct db_marks).
 *
 * The writer's commits are asynchronous. A connection of its own commits a transaction that writes
 * nothing but a record of the log, and waits for it: then everything that was committed before is
 * on disk too, and at the standbys that the server waits for. A server that crashed meanwhile may
 * have lost the end of its log, so the same statement looks for the last commit. */
#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <inttypes.h>
#include <pthread.h>
#include <time.h>

enum { POLL_MS = 200 };

struct postgres_syncer {
    struct db_marks *marks;
    struct postgres_db *session;
    pthread_mutex_t lock;       /* syncs exclude each other */
    atomic_ullong finished;     /* the last commit that is over, whatever came of it */
    atomic_llong committed_num; /* of the last one that was committed */
};

struct postgres_syncer *postgres_syncer_new(const struct postgres_db *db, struct db_marks *marks)
{
    struct postgres_syncer *s = calloc(1, sizeof(*s));
    struct postgres_db *session = calloc(1, sizeof(*session));
    if (s == NULL || session == NULL) {
        free(s);
        free(session);
        return NULL;
    }
    session->access = DB_WRITER;
    session->env = db->env;
    session->shard = db->shard;
    memcpy(session->url, db->url, sizeof(session->url));
    memcpy(session->schema, db->schema, sizeof(session->schema));
    s->session = session;
    s->marks = marks;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void postgres_syncer_free(struct postgres_syncer *s)
{
    if (s == NULL)
        return;
    PQfinish(s->session->conn);
    free(s->session);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* --- marks --- */

/* Two threads may move it. */
static void move_durable(struct db_marks *marks, unsigned long long through)
{
    unsigned long long durable = atomic_load(&marks->durable);
    while (durable < through && !atomic_compare_exchange_weak(&marks->durable, &durable, through)) {
    }
}

/* --- syncing --- */

static enum err connect_session(struct postgres_db *session)
{
    static const char SQL[] = "PREPARE sync (bigint) AS SELECT count(*),"
                              " pg_logical_emit_message(true, 'pawl', '')"
                              " FROM commits WHERE shard = %d AND num = $1";
    struct problem p;
    char sql[sizeof(SQL) + 16];
    (void)snprintf(sql, sizeof(sql), SQL, session->shard);
    problem_init(&p);
    PQfinish(session->conn);
    enum err e = postgres_open_session(session, &p);
    if (e == ERR_OK)
        e = postgres_run(session, sql, &p);
    if (e != ERR_OK)
        LOG(LOG_WARN, "cannot put commits on disk", LOG_Z("why", p.detail));
    problem_release(&p);
    return e;
}

static enum err sync_once(struct postgres_db *session, int64_t num, bool *ret_found)
{
    char number[24];
    const char *values[] = {number};
    enum err e = postgres_is_lost(session) ? connect_session(session) : ERR_OK;
    if (e != ERR_OK)
        return e;
    (void)snprintf(number, sizeof(number), "%" PRId64, num);
    PGresult *result = postgres_last_result(
        session, PQsendQueryPrepared(session->conn, "sync", 1, values, NULL, NULL, 0) == 1);
    bool done = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    *ret_found = done && postgres_number(result, 0) == 1;
    if (!done) {
        LOG(LOG_WARN, "cannot put commits on disk", LOG_Z("why", PQerrorMessage(session->conn)));
        PQfinish(session->conn);
        session->conn = NULL;
    }
    PQclear(result);
    return done ? ERR_OK : ERR_STORE_BUSY;
}

static enum err sync_through(struct postgres_db *session, int64_t num)
{
    int64_t until = env_mono_ms(session->env) + POSTGRES_SETTLE_MS_MAX;
    bool found = false;
    enum err e = sync_once(session, num, &found);
    while (e != ERR_OK && env_mono_ms(session->env) < until) {
        (void)nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
        e = sync_once(session, num, &found);
    }
    if (e == ERR_OK && !found)
        LOG(LOG_ERROR, "PostgreSQL has lost a commit", LOG_N("number", num));
    return e == ERR_OK && found ? ERR_OK : ERR_STORE_FAILED;
}

enum err postgres_sync(struct db *base)
{
    struct postgres_syncer *s = postgres_db_of(base)->syncer;
    enum err e = ERR_OK;
    if (s == NULL)
        return ERR_OK;
    pthread_mutex_lock(&s->lock);
    unsigned long long through = atomic_load(&s->finished);
    if (atomic_load(&s->marks->failed)) {
        e = ERR_STORE_FAILED;
    } else if (atomic_load(&s->marks->durable) < through) {
        int64_t num = atomic_load(&s->committed_num);
        e = num > 0 ? sync_through(s->session, num) : ERR_OK;
        if (e == ERR_OK)
            move_durable(s->marks, through);
        else
            atomic_store(&s->marks->failed, true);
    }
    pthread_mutex_unlock(&s->lock);
    return e;
}

/* --- commits --- */

bool postgres_syncer_failed(const struct postgres_syncer *s)
{
    return s != NULL && atomic_load(&s->marks->failed);
}

/* From now on others may see it. */
void postgres_commit_begins(struct postgres_syncer *s)
{
    if (s != NULL)
        (void)atomic_fetch_add(&s->marks->written, 1);
}

bool postgres_work_waits(const struct postgres_syncer *s)
{
    return s != NULL && atomic_load(&s->marks->work_waits);
}

/* Of one in doubt nobody may tell what others have seen. One that was not put off is on disk, and
 * all before it: they are earlier in the same log, and a session that took the place of another has
 * looked whether the last commit is still there. Nobody syncs after one that was aborted: that is
 * done here, unless there is nothing to put on disk. */
void postgres_commit_ends(struct postgres_db *db, bool now, enum db_outcome outcome)
{
    struct postgres_syncer *s = db->syncer;
    if (s == NULL)
        return;
    unsigned long long number = atomic_load(&s->marks->written);
    if (outcome == DB_COMMITTED)
        atomic_store(&s->committed_num, db->commit_num);
    if (outcome == DB_IN_DOUBT)
        atomic_store(&s->marks->failed, true);
    atomic_store(&s->finished, number);
    bool aborted = outcome == DB_ABORTED;
    if ((outcome == DB_COMMITTED && now) ||
        (aborted && atomic_load(&s->marks->durable) + 1 == number))
        move_durable(s->marks, number);
    else if (aborted)
        (void)!postgres_sync(&db->base);
}
