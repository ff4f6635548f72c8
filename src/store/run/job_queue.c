/* The queues of jobs, as workers ask for them. */
#include "base/limits.h"
#include "store/claim_queues.h"
#include "store/run/job_columns.h"
#include "store/run/jobs.h"

/* --- learning --- */

static enum err learn_own(struct db *db, struct claim_queues *c, struct str queue)
{
    /* PostgreSQL would name the age "run" too, and not know which one to sort by. */
    static const char SQL[] = "SELECT tenant, urgency, " JOB_AGE " AS age, run, ordinal FROM jobs"
                              " WHERE state = 'pending' AND queue = $1"
                              " ORDER BY tenant, urgency, " JOB_AGE ", run, ordinal LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(queue), DB_I(CLAIM_QUEUE_JOBS_MAX + 1));
    while (db_next(rows)) {
        struct claim_place place = {db_int(rows, 0), db_int(rows, 1), db_int(rows, 2),
                                    db_int(rows, 3), db_int(rows, 4)};
        claim_queues_add(c, queue, &place);
    }
    return db_rows_end(rows);
}

static enum err learn_first(struct db *db, struct claim_queues *c, struct str queue)
{
    static const char SQL[] = "SELECT tenant, urgency, run FROM first_jobs WHERE queue = $1"
                              " ORDER BY tenant, urgency, run LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(queue), DB_I(CLAIM_QUEUE_JOBS_MAX + 1));
    while (db_next(rows)) {
        int64_t run = db_int(rows, 2);
        struct claim_place place = {db_int(rows, 0), db_int(rows, 1), run, run, 1};
        claim_queues_add(c, queue, &place);
    }
    return db_rows_end(rows);
}

/* *ret_known: the writer knows the queue, and need not search in its rows. */
static enum err know(struct db *db, struct str queue, bool *ret_known)
{
    struct claim_queues *c = db_claim_queues(db);
    enum err e = ERR_OK;
    if (claim_queues_want(c, queue)) {
        claim_queues_learn(c, queue);
        e = learn_own(db, c, queue);
        if (e == ERR_OK && claim_queues_know(c, queue))
            e = learn_first(db, c, queue);
        if (e != ERR_OK)
            claim_queues_forget(c, queue);
    }
    *ret_known = claim_queues_know(c, queue);
    return e;
}

/* --- the next one --- */

static bool is_claimable(const struct job *job, int64_t tenant, struct str queue)
{
    return job->state == JOB_PENDING && job->tenant == tenant && str_eq(job->queue, queue);
}

/* Of a queue that is known. Damaged jobs do not hold up those behind them, and what is no claimable
 * job, because a row was changed past us, is forgotten. */
static enum err next_known(struct db *db, int64_t tenant, struct str queue, struct arena *arena,
                           bool *ret_found, struct job *ret)
{
    struct claim_queues *c = db_claim_queues(db);
    struct claim_place place;
    size_t damaged = 0;
    while (claim_queues_job(c, queue, tenant, damaged, &place)) {
        enum err e = jobs_find_at(db, place.owner, place.ordinal, arena, ret_found, ret);
        if (e == ERR_DAMAGED && ++damaged < DAMAGED_PASSED_MAX)
            continue;
        if (e != ERR_OK)
            return e;
        if (*ret_found && is_claimable(ret, tenant, queue))
            return ERR_OK;
        claim_queues_remove(c, queue, &place);
    }
    *ret_found = false;
    return ERR_OK;
}

/* The first one with a row of its own. */
static enum err next_own(struct db *db, int64_t tenant, struct str queue, struct arena *arena,
                         bool *ret_found, struct job *ret)
{
    static const char SQL[] =
        SELECT_OWN_ROWS " WHERE state = 'pending' AND queue = $1 AND tenant = $2"
                        " ORDER BY urgency, " JOB_AGE ", run, ordinal LIMIT 1 OFFSET $3";
    enum err e = ERR_DAMAGED;
    /* Damaged ones do not hold up those behind them. */
    for (int64_t passed = 0; e == ERR_DAMAGED && passed < DAMAGED_PASSED_MAX; passed++)
        e = jobs_read_one(DB_QUERY(db, SQL, DB_T(queue), DB_I(tenant), DB_I(passed)), arena,
                          ret_found, ret);
    return e;
}

/* The place in the queue of one that is part of its run's row. */
static enum err first_at(struct db *db, int64_t tenant, struct str queue, int64_t passed,
                         bool *ret_found, int64_t *ret_urgency, int64_t *ret_run)
{
    static const char SQL[] = "SELECT urgency, run FROM first_jobs WHERE queue = $1 AND tenant = $2"
                              " ORDER BY urgency, run LIMIT 1 OFFSET $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(queue), DB_I(tenant), DB_I(passed));
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret_urgency = db_int(rows, 0);
        *ret_run = db_int(rows, 1);
    }
    return db_rows_end(rows);
}

static bool is_before(const struct job *own, int64_t urgency, int64_t run)
{
    if (own->urgency != urgency)
        return own->urgency < urgency;
    return jobs_age(own) < run;
}

/* Of a queue that is not known. */
static enum err next_in_rows(struct db *db, int64_t tenant, struct str queue, struct arena *arena,
                             bool *ret_found, struct job *ret)
{
    struct job own = {0};
    bool has_own = false;
    enum err e = next_own(db, tenant, queue, arena, &has_own, &own);
    for (int64_t passed = 0; e == ERR_OK && passed < DAMAGED_PASSED_MAX; passed++) {
        int64_t urgency = 0;
        int64_t run = 0;
        bool found = false;
        e = first_at(db, tenant, queue, passed, &found, &urgency, &run);
        if (e != ERR_OK || !found || (has_own && is_before(&own, urgency, run)))
            break;
        e = jobs_find_at(db, run, 1, arena, ret_found, ret);
        if (e == ERR_OK && *ret_found && ret->in_run)
            return ERR_OK;
        if (e == ERR_DAMAGED)
            e = ERR_OK; /* it does not hold up those behind it */
    }
    *ret_found = has_own;
    if (has_own)
        *ret = own;
    return e;
}

enum err jobs_next(struct db *db, int64_t tenant, struct str queue, struct arena *arena,
                   bool *ret_found, struct job *ret)
{
    bool known = false;
    *ret_found = false;
    enum err e = jobs_settle(db);
    if (e == ERR_OK)
        e = know(db, queue, &known);
    if (e != ERR_OK)
        return e;
    return known ? next_known(db, tenant, queue, arena, ret_found, ret)
                 : next_in_rows(db, tenant, queue, arena, ret_found, ret);
}

/* The lower of what was found before and what the query finds. */
static enum err lower_tenant(struct db_rows *rows, bool *found, int64_t *tenant)
{
    if (db_next(rows)) {
        int64_t next = db_int(rows, 0);
        *tenant = *found ? MIN(*tenant, next) : next;
        *found = true;
    }
    return db_rows_end(rows);
}

/* Two searches along an index: one statement for both takes ten times as long on SQLite. */
enum err jobs_next_tenant(struct db *db, struct str queue, int64_t after, bool *ret_found,
                          int64_t *ret_tenant)
{
    static const char OWN_SQL[] = "SELECT tenant FROM jobs WHERE state = 'pending' AND queue = $1"
                                  " AND tenant > $2 ORDER BY tenant LIMIT 1";
    static const char FIRST_SQL[] = "SELECT tenant FROM first_jobs WHERE queue = $1"
                                    " AND tenant > $2 ORDER BY tenant LIMIT 1";
    bool known = false;
    *ret_found = false;
    enum err e = jobs_settle(db);
    if (e == ERR_OK)
        e = know(db, queue, &known);
    if (e == ERR_OK && known) {
        *ret_found = claim_queues_tenant(db_claim_queues(db), queue, after, ret_tenant);
        return ERR_OK;
    }
    if (e == ERR_OK)
        e = lower_tenant(DB_QUERY(db, OWN_SQL, DB_T(queue), DB_I(after)), ret_found, ret_tenant);
    if (e == ERR_OK)
        e = lower_tenant(DB_QUERY(db, FIRST_SQL, DB_T(queue), DB_I(after)), ret_found, ret_tenant);
    return e;
}

enum err jobs_ahead(struct db *db, const struct job *job, int64_t max, int64_t *ret)
{
    static const char SQL[] =
        "SELECT (SELECT count(*) FROM (SELECT urgency, " JOB_AGE " AS place, run, ordinal FROM jobs"
        " WHERE state = 'pending' AND queue = $1 AND tenant = $2"
        " ORDER BY urgency, " JOB_AGE ", run, ordinal LIMIT $7) AS own"
        " WHERE (urgency, place, run, ordinal) < ($3, $4, $5, $6))"
        " + (SELECT count(*) FROM (SELECT urgency, run FROM first_jobs"
        " WHERE queue = $1 AND tenant = $2 ORDER BY urgency, run LIMIT $7) AS first"
        " WHERE (urgency, run, run, 1) < ($3, $4, $5, $6))";
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_T(job->queue), DB_I(job->tenant), DB_I(job->urgency),
                 DB_I(jobs_age(job)), DB_I(job->owner), DB_I(job->ordinal), DB_I(max));
    *ret = db_next(rows) ? MIN(db_int(rows, 0), max) : 0;
    return db_rows_end(rows);
}
