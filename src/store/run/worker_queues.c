/* What waits in a tenant's worker queues. */
#include "store/run/worker_queues.h"

#include "base/limits.h"
#include "store/run/timers.h"

/* Along the index jobs_claimable and along first_jobs, one seek for each queue. */
enum err queues_next(struct db *db, int64_t tenant, struct str after, struct arena *arena,
                     bool *ret_found, struct str *ret_queue, bool *ret_own)
{
    static const char SQL[] =
        "SELECT queue FROM (SELECT queue FROM jobs WHERE state = 'pending' AND queue > $1"
        " ORDER BY queue LIMIT 1) AS own UNION ALL SELECT queue FROM (SELECT queue FROM first_jobs"
        " WHERE queue > $1 ORDER BY queue LIMIT 1) AS first ORDER BY queue LIMIT 1";
    static const char SQL_OWN[] =
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM jobs WHERE state = 'pending' AND queue = $1"
        " AND tenant = $2) OR EXISTS (SELECT 1 FROM first_jobs WHERE queue = $1 AND tenant = $2)";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(after));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret_queue = db_str(rows, 0);
        full = !arena_keep(arena, ret_queue);
    }
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || !*ret_found || full)
        return e == ERR_OK && full ? ERR_NO_MEMORY : e;
    rows = DB_QUERY(db, SQL_OWN, DB_T(*ret_queue), DB_I(tenant));
    *ret_own = db_next(rows);
    return db_rows_end(rows);
}

enum err queues_ready(struct db *db, int64_t tenant, struct str queue, struct queue_ready *ret)
{
    static const char SQL_COUNT[] =
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE state = 'pending' AND queue = $1"
        " AND tenant = $2 LIMIT $3) AS own) + (SELECT count(*) FROM (SELECT 1 FROM first_jobs"
        " WHERE queue = $1 AND tenant = $2 LIMIT $3) AS first)";
    static const char SQL_OLDEST[] =
        "SELECT min(created_at) FROM (SELECT created_at FROM (SELECT created_at FROM jobs"
        " WHERE state = 'pending' AND queue = $1 AND tenant = $2 LIMIT $3) AS own"
        " UNION ALL SELECT r.created_at FROM (SELECT run FROM first_jobs WHERE queue = $1"
        " AND tenant = $2 LIMIT $3) AS f JOIN runs r ON r.num = f.run) AS first";
    *ret = (struct queue_ready){.oldest = -1};
    struct db_rows *rows =
        DB_QUERY(db, SQL_COUNT, DB_T(queue), DB_I(tenant), DB_I(QUEUE_READY_MAX));
    if (db_next(rows))
        ret->count = MIN(db_int(rows, 0), (int64_t)QUEUE_READY_MAX);
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || ret->count == 0)
        return e;
    rows = DB_QUERY(db, SQL_OLDEST, DB_T(queue), DB_I(tenant), DB_I(QUEUE_OLDEST_MAX));
    if (db_next(rows))
        ret->oldest = db_int_or(rows, 0, -1);
    return db_rows_end(rows);
}

enum err queues_suspended(struct db *db, int64_t tenant, queue_timed_each *each, void *ctx,
                          bool *ret_all)
{
    static const char SQL[] =
        "SELECT j.queue, count(*) FROM (SELECT run, ordinal FROM suspensions"
        " WHERE resumed_by IS NULL ORDER BY run DESC, ordinal DESC LIMIT $2) AS s"
        " CROSS JOIN jobs j WHERE j.run = s.run AND j.ordinal = s.ordinal AND j.tenant = $1"
        " AND j.state = 'suspended' GROUP BY 1";
    static const char SQL_MORE[] = "SELECT 1 FROM suspensions WHERE resumed_by IS NULL"
                                   " ORDER BY run DESC, ordinal DESC LIMIT 1 OFFSET $1";
    struct db_rows *rows = DB_QUERY(db, SQL_MORE, DB_I(QUEUE_TIMERS_MAX));
    *ret_all = !db_next(rows);
    enum err e = db_rows_end(rows);
    if (e != ERR_OK)
        return e;
    rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(QUEUE_TIMERS_MAX));
    while (db_next(rows))
        each(ctx, db_str(rows, 0), STR_NONE, db_int(rows, 1));
    return db_rows_end(rows);
}

enum err queues_timed(struct db *db, int64_t tenant, queue_timed_each *each, void *ctx,
                      bool *ret_all)
{
    static const char SQL_MORE[] = "SELECT 1 FROM timers ORDER BY due_at LIMIT 1 OFFSET $1";
    /* From the timers to their jobs, never the other way round, but for owners that are ahead of
     * the fold. A timer of an older lease is not the job's own. */
    static const char SQL[] =
        "SELECT j.queue, CASE WHEN j.state = 'running' THEN j.worker END, count(*)"
        " FROM (SELECT run, ordinal, generation FROM (SELECT run, ordinal, generation FROM timers"
        " ORDER BY due_at, run, ordinal LIMIT $2) AS folded UNION"
        " SELECT j.run, j.ordinal, j.lease_epoch FROM jobs j WHERE j.run IN " OWNERS_AHEAD
        " AND " JOB_MAY_WAIT " AND j.due_at IS NOT NULL) AS t CROSS JOIN jobs j WHERE j.run = "
        "t.run AND j.ordinal = t.ordinal"
        " AND j.lease_epoch = t.generation AND j.tenant = $1 AND j.queue <> ''"
        " AND (j.state = 'running' OR j.state = 'scheduled') GROUP BY 1, 2";
    struct db_rows *rows = DB_QUERY(db, SQL_MORE, DB_I(QUEUE_TIMERS_MAX));
    *ret_all = !db_next(rows);
    enum err e = db_rows_end(rows);
    if (e != ERR_OK)
        return e;
    rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(QUEUE_TIMERS_MAX));
    while (db_next(rows))
        each(ctx, db_str(rows, 0), db_str(rows, 1), db_int(rows, 2));
    return db_rows_end(rows);
}
