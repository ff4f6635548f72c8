/* Jobs as rows. */
#include "store/run/jobs.h"

#include "base/limits.h"
#include "store/claim_queues.h"
#include "store/run/job_columns.h"

COLUMNS_NUMBERED(JOB_COLUMNS, JOB);
COLUMNS_SHAPE(JOB_SHAPE, struct job, JOB_COLUMNS);

#define SELECT_FIRST COLUMNS_SELECT(JOB_COLUMNS, "") ", 1 FROM first_job_rows"
#define SELECT_JOBS(condition) \
    SELECT_OWN_ROWS " WHERE " condition " UNION ALL " SELECT_FIRST " WHERE " condition

/* Behind the time: two bits that RFC 9562 fixes, 24 bits of the ordinal, 38 bits of chance. */
struct uuid jobs_new_id(const struct env *env, int64_t run, int64_t ordinal)
{
    assert(ordinal > 0 && ordinal <= JOB_ORDINAL_MAX);
    struct uuid id;
    env_random(env, id.bytes + 8, 8);
    uuid_set_time(&id, run);
    id.bytes[8] = (unsigned char)(0x80 | ordinal >> 18);
    id.bytes[9] = (unsigned char)(ordinal >> 10);
    id.bytes[10] = (unsigned char)(ordinal >> 2);
    id.bytes[11] = (unsigned char)((ordinal & 3) << 6 | (id.bytes[11] & 0x3F));
    return id;
}

/* The view job_rows makes the same. */
struct uuid jobs_first_id(struct uuid run_id)
{
    static const unsigned char FIRST[] = {0x80, 0, 0, 1 << 6};
    memcpy(run_id.bytes + 8, FIRST, sizeof(FIRST));
    return run_id;
}

int64_t jobs_ordinal(struct uuid id)
{
    return (int64_t)(id.bytes[8] & 0x3F) << 18 | id.bytes[9] << 10 | id.bytes[10] << 2 |
           id.bytes[11] >> 6;
}

/* --- rows in memory --- */

/* Calls of entities are left out: they come and go in large numbers without anybody reading them
 * again. */
static bool remember(struct db *db, const struct job *j)
{
    if (j->step == JOB_OF_ENTITY)
        return false;
    struct job row = *j;
    row.armed_at = row.due_at;
    return row_cache_put(db_row_cache(db), &JOB_SHAPE, j->owner, j->ordinal, &row);
}

static const struct job *remembered(struct db *db, const struct job *j)
{
    return row_cache_peek(db_row_cache(db), &JOB_SHAPE, j->owner, j->ordinal);
}

/* What jobs_update() writes. */
static bool remember_change(struct db *db, const struct job *j)
{
    const struct job *old = remembered(db, j);
    if (old == NULL)
        return false;
    struct job row = *old;
    row.state = j->state;
    row.attempt = j->attempt;
    row.lease_epoch = j->lease_epoch;
    row.worker = j->worker;
    row.due_at = j->due_at;
    row.output = j->output;
    row.error = j->error;
    row.started_at = j->started_at;
    row.finished_at = j->finished_at;
    row.lease_ms = j->lease_ms;
    row.note = j->note;
    row.dead_at = j->dead_at;
    row.child = j->child;
    row.stale_epoch = j->stale_epoch;
    row.in_run = false;
    return remember(db, &row);
}

/* Its row is changed past the cache. */
MUST_CHECK static enum err forget(struct db *db, int64_t run, int64_t ordinal)
{
    enum err e = db_flush(db);
    if (e == ERR_OK)
        row_cache_drop(db_row_cache(db), &JOB_SHAPE, run, ordinal);
    return e;
}

/* --- queues --- */

int64_t jobs_age(const struct job *j)
{
    return j->step < 0 ? j->created_at * 4096 : j->owner;
}

static struct claim_place claim_place_of(const struct job *j)
{
    return (struct claim_place){j->tenant, j->urgency, jobs_age(j), j->owner, j->ordinal};
}

/* It has become claimable, or is it no more. */
static void enter_queue(struct db *db, const struct job *j)
{
    struct claim_place place = claim_place_of(j);
    claim_queues_add(db_claim_queues(db), j->queue, &place);
}

static void leave_queue(struct db *db, const struct job *j)
{
    struct claim_place place = claim_place_of(j);
    claim_queues_remove(db_claim_queues(db), j->queue, &place);
}

/* One that is part of its run's row: as workers ask for it. */
static enum err enter_first(struct db *db, const struct job *j)
{
    static const char SQL[] =
        "INSERT INTO first_jobs (queue, tenant, urgency, run) VALUES ($1, $2, $3, $4)";
    enter_queue(db, j);
    return DB_EXEC_BESIDE(db, SQL, NULL, DB_T(j->queue), DB_I(j->tenant), DB_I(j->urgency),
                          DB_I(j->owner));
}

static enum err leave_first(struct db *db, const struct job *j)
{
    static const char SQL[] =
        "DELETE FROM first_jobs WHERE queue = $1 AND tenant = $2 AND urgency = $3 AND run = $4";
    return DB_EXEC(db, SQL, NULL, DB_T(j->queue), DB_I(j->tenant), DB_I(j->urgency),
                   DB_I(j->owner));
}

/* --- rows --- */

enum row_is { ROW_IS_NEW, ROW_IS_IN_RUN, ROW_IS_THERE };

static enum err flush(struct db *db);

/* The row in memory is as it shall be written. False: it has to be written now. */
static bool write_later(struct db *db, const struct job *j, enum row_is how, enum job_state state,
                        int64_t epoch)
{
    struct row_cache *c = db_row_cache(db);
    const struct row_write write = {&JOB_SHAPE, j->owner, j->ordinal, (int)how, (int)state, epoch};
    if (!row_cache_is_unwritten(c, &JOB_SHAPE, j->owner, j->ordinal) &&
        !row_cache_write_later(c, &write))
        return false;
    db_flush_with(db, flush);
    return true;
}

static enum err write_new(struct db *db, const struct job *j)
{
    static const char SQL[] = COLUMNS_INSERT("jobs", JOB_COLUMNS);
    return DB_EXEC(db, SQL, NULL, JOB_COLUMNS(COLUMN_BIND, j));
}

static enum err insert_row(struct db *db, const struct job *j)
{
    struct job row = *j;
    row.in_run = false;
    bool later = db_writes_later(db) && remember(db, &row) &&
                 write_later(db, j, ROW_IS_NEW, JOB_STATE_COUNT, 0);
    enum err e = later ? ERR_OK : write_new(db, j);
    if (e == ERR_OK && !later)
        (void)remember(db, &row);
    if (e == ERR_OK && j->state == JOB_PENDING)
        enter_queue(db, j);
    return e;
}

enum err jobs_insert(struct db *db, const struct job *j)
{
    return insert_row(db, j);
}

/* --- first jobs --- */

/* The one that waits for its run's row gets a row of its own. */
enum err jobs_settle(struct db *db)
{
    const struct job *held = row_cache_held(db_row_cache(db), &JOB_SHAPE);
    if (held == NULL)
        return ERR_OK;
    row_cache_unhold(db_row_cache(db));
    return insert_row(db, held);
}

/* Of the job that a run's row has: it is in its queue, or it has none and sleeps or waits. */
static enum job_state first_state(const struct job *j)
{
    return j->queue.len > 0 ? JOB_PENDING : JOB_SCHEDULED;
}

/* Its queue, and until when it sleeps or waits, are all that it has of its own. */
static bool is_plain(const struct job *j)
{
    bool waits = j->queue.len == 0;
    return j->ordinal == 1 && j->step == 0 && j->item == 0 && !j->undo &&
           j->state == first_state(j) && j->attempt == (waits ? 1 : 0) && j->lease_epoch == 0 &&
           j->stale_epoch == 0 && (waits || j->due_at < 0) &&
           j->started_at == (waits ? j->created_at : -1) && j->finished_at < 0 && j->dead_at < 0 &&
           j->lease_ms < 0 && j->worker.ptr == NULL && j->output.ptr == NULL &&
           j->error.ptr == NULL && j->input.ptr == NULL && j->note.ptr == NULL &&
           uuid_is_nil(j->child);
}

/* The rest comes from the run. */
static bool is_of_run(const struct job *j, const struct job *from_run)
{
    return j->owner == from_run->owner && j->tenant == from_run->tenant &&
           j->urgency == from_run->urgency && j->created_at == from_run->created_at &&
           uuid_eq(j->id, from_run->id);
}

enum err jobs_insert_with_run(struct db *db, const struct job *j)
{
    return is_plain(j) && row_cache_hold(db_row_cache(db), &JOB_SHAPE, j) ? ERR_OK
                                                                          : insert_row(db, j);
}

enum err jobs_put_first(struct db *db, const struct job *from_run, const struct job **ret)
{
    const struct job *held = row_cache_held(db_row_cache(db), &JOB_SHAPE);
    *ret = NULL;
    if (held == NULL || !is_of_run(held, from_run))
        return jobs_settle(db);
    enum err e = held->queue.len > 0 ? enter_first(db, held) : ERR_OK;
    if (e != ERR_OK) {
        row_cache_unhold(db_row_cache(db));
        return e;
    }
    struct job *row = row_cache_put_held(db_row_cache(db), held->owner, held->ordinal);
    row->in_run = true;
    row->armed_at = row->due_at;
    *ret = row;
    return ERR_OK;
}

/* --- changes --- */

/* A change of a job that was part of its run's row when it was read. *ret_done: it still was, and
 * has a row of its own now. */
static enum err move_out(struct db *db, const struct job *j, bool *ret_done)
{
    static const char SQL[] =
        COLUMNS_INSERT("jobs", JOB_COLUMNS) " ON CONFLICT (run, ordinal) DO NOTHING";
    int64_t inserted = 0;
    enum err e = DB_EXEC(db, SQL, &inserted, JOB_COLUMNS(COLUMN_BIND, j));
    *ret_done = e == ERR_OK && inserted == 1;
    return *ret_done && j->queue.len > 0 ? leave_first(db, j) : e;
}

static enum err update_row(struct db *db, const struct job *j, enum job_state from,
                           int64_t from_epoch)
{
    static const char SQL[] =
        "UPDATE jobs SET state = $5, attempt = $6, lease_epoch = $7, worker = $8, due_at = $9,"
        " output = $10, error = $11, started_at = $12, finished_at = $13, lease_ms = $14,"
        " note = $15, dead_at = $16, child = $17, stale_epoch = $18"
        " WHERE run = $1 AND ordinal = $2 AND state = $3 AND lease_epoch = $4";
    int64_t changed = 0;
    enum err e = DB_EXEC(
        db, SQL, &changed, DB_I(j->owner), DB_I(j->ordinal), DB_T(str_of(job_state_name(from))),
        DB_I(from_epoch), DB_T(str_of(job_state_name(j->state))), DB_I(j->attempt),
        DB_I(j->lease_epoch), DB_T(j->worker), DB_I_OR_NULL(j->due_at), DB_T(j->output),
        DB_T(j->error), DB_I_OR_NULL(j->started_at), DB_I_OR_NULL(j->finished_at),
        DB_I_OR_NULL(j->lease_ms), DB_T(j->note), DB_I_OR_NULL(j->dead_at),
        uuid_is_nil(j->child) ? DB_N() : DB_U(j->child), DB_I(j->stale_epoch));
    return e == ERR_OK && changed != 1 ? ERR_CONCURRENCY : e;
}

static enum err change_row(struct db *db, const struct job *j, enum job_state from,
                           int64_t from_epoch, bool is_in_run)
{
    bool done = false;
    enum err e = is_in_run ? move_out(db, j, &done) : ERR_OK;
    return e == ERR_OK && !done ? update_row(db, j, from, from_epoch) : e;
}

/* One that the cache has to be written. */
static enum err flush_one(struct db *db, const struct row_write *write)
{
    const struct job *j = row_cache_peek(db_row_cache(db), &JOB_SHAPE, write->owner, write->part);
    assert(write->shape == &JOB_SHAPE && j != NULL);
    if (write->how == ROW_IS_NEW)
        return write_new(db, j);
    return change_row(db, j, (enum job_state)write->state, write->epoch,
                      write->how == ROW_IS_IN_RUN);
}

static enum err flush(struct db *db)
{
    struct row_cache *c = db_row_cache(db);
    enum err e = ERR_OK;
    for (size_t i = 0; i < row_cache_unwritten(c) && e == ERR_OK; i++)
        e = flush_one(db, row_cache_unwritten_at(c, i));
    if (e == ERR_OK)
        row_cache_written(c);
    return e;
}

/* *ret_done: memory had the row, and has its change. */
static enum err change_later(struct db *db, const struct job *j, enum job_state from,
                             int64_t from_epoch, bool *ret_done)
{
    const struct job *old = db_writes_later(db) ? remembered(db, j) : NULL;
    *ret_done = false;
    if (old == NULL)
        return ERR_OK;
    if (old->state != from || old->lease_epoch != from_epoch)
        return ERR_CONCURRENCY;
    *ret_done = write_later(db, j, old->in_run ? ROW_IS_IN_RUN : ROW_IS_THERE, from, from_epoch) &&
                remember_change(db, j);
    return *ret_done ? ERR_OK : db_flush(db);
}

static enum err change_now(struct db *db, const struct job *j, enum job_state from,
                           int64_t from_epoch)
{
    bool is_in_run = j->in_run && from == first_state(j) && from_epoch == 0;
    enum err e = change_row(db, j, from, from_epoch, is_in_run);
    if (e == ERR_OK)
        (void)remember_change(db, j);
    return e;
}

enum err jobs_update(struct db *db, const struct job *j, enum job_state from, int64_t from_epoch)
{
    bool done = false;
    enum err e = jobs_settle(db);
    if (e == ERR_OK)
        e = change_later(db, j, from, from_epoch, &done);
    if (e == ERR_OK && !done)
        e = change_now(db, j, from, from_epoch);
    if (e != ERR_OK)
        return e;
    if (from == JOB_PENDING && j->state != JOB_PENDING)
        leave_queue(db, j);
    if (from != JOB_PENDING && j->state == JOB_PENDING)
        enter_queue(db, j);
    return ERR_OK;
}

/* The jobs of entities, and those that wait for an approval, always have a row of their own; and so
 * does one that has had an attempt. */

enum err jobs_remove(struct db *db, int64_t run, int64_t ordinal)
{
    static const char SQL[] = "DELETE FROM jobs WHERE run = $1 AND ordinal = $2";
    enum err e = forget(db, run, ordinal);
    claim_queues_remove_job(db_claim_queues(db), run, ordinal);
    return e == ERR_OK ? DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(ordinal)) : e;
}

enum err jobs_set_queue(struct db *db, int64_t run, int64_t ordinal, struct str queue)
{
    static const char SQL[] = "UPDATE jobs SET queue = $3 WHERE run = $1 AND ordinal = $2";
    enum err e = forget(db, run, ordinal);
    claim_queues_remove_job(db_claim_queues(db), run, ordinal);
    claim_queues_forget(db_claim_queues(db), queue); /* it may be claimable there now */
    return e == ERR_OK ? DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(ordinal), DB_T(queue)) : e;
}

enum err jobs_set_input(struct db *db, int64_t run, int64_t ordinal, struct str input)
{
    static const char SQL[] = "UPDATE jobs SET input = $3 WHERE run = $1 AND ordinal = $2";
    enum err e = forget(db, run, ordinal);
    return e == ERR_OK ? DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(ordinal), DB_T(input)) : e;
}

enum err jobs_attempts(struct db *db, int64_t run, int64_t ordinal, struct buf *out)
{
    static const char SQL[] = "SELECT attempts FROM jobs WHERE run = $1 AND ordinal = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal));
    if (db_next(rows))
        buf_put(out, db_str(rows, 0));
    enum err e = db_rows_end(rows);
    return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : e;
}

enum err jobs_set_attempts(struct db *db, int64_t run, int64_t ordinal, struct str attempts)
{
    static const char SQL[] = "UPDATE jobs SET attempts = $3 WHERE run = $1 AND ordinal = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(ordinal), DB_T(attempts));
}

static void read_row(struct db_rows *rows, struct job *j)
{
    *j = (struct job){JOB_COLUMNS(COLUMN_READ, rows)};
    j->armed_at = j->due_at;
    j->in_run = db_int(rows, JOB_COLUMNS_END) != 0;
    if (j->step < JOB_OF_ENTITY || j->step >= STEPS_MAX)
        db_damaged(rows, JOB_AT_step);
}

COLUMNS_READ_ONE(read_one, struct job, JOB_COLUMNS, read_row);

enum err jobs_read_one(struct db_rows *rows, struct arena *arena, bool *ret_found, struct job *ret)
{
    return read_one(rows, arena, ret_found, ret);
}

enum err jobs_find(struct db *db, int64_t tenant, struct uuid id, struct arena *arena,
                   bool *ret_found, struct job *ret)
{
    enum err e = jobs_find_at(db, uuid_time(id), jobs_ordinal(id), arena, ret_found, ret);
    *ret_found =
        e == ERR_OK && *ret_found && uuid_eq(ret->id, id) && (tenant == 0 || ret->tenant == tenant);
    return e;
}

enum err jobs_find_at(struct db *db, int64_t run, int64_t ordinal, struct arena *arena,
                      bool *ret_found, struct job *ret)
{
    static const char SQL_FIRST_TOO[] = SELECT_JOBS("run = $1 AND ordinal = $2");
    static const char SQL[] = SELECT_OWN_ROWS " WHERE run = $1 AND ordinal = $2";
    *ret_found = row_cache_find(db_row_cache(db), &JOB_SHAPE, run, ordinal, arena, ret);
    if (*ret_found)
        return ERR_OK;
    enum err e = jobs_settle(db);
    if (e != ERR_OK)
        return e;
    struct db_rows *rows = ordinal == 1 ? DB_QUERY(db, SQL_FIRST_TOO, DB_I(run), DB_I(ordinal))
                                        : DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal));
    e = read_one(rows, arena, ret_found, ret);
    if (e == ERR_OK && *ret_found)
        (void)remember(db, ret);
    return e;
}

static enum err walk(struct db_rows *rows, job_each *each, void *ctx)
{
    while (db_next(rows)) {
        struct job job;
        read_row(rows, &job);
        if (db_is_whole(rows))
            each(ctx, &job);
    }
    return db_rows_end(rows);
}

enum err jobs_of_run(struct db *db, int64_t run, job_each *each, void *ctx)
{
    static const char SQL[] = SELECT_JOBS("run = $1") " ORDER BY ordinal";
    enum err e = jobs_settle(db);
    return e == ERR_OK ? walk(DB_QUERY(db, SQL, DB_I(run)), each, ctx) : e;
}

enum err jobs_range(struct db *db, int64_t run, int64_t from, int64_t to, job_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_JOBS("run = $1 AND ordinal >= $2 AND ordinal < $3") " ORDER BY ordinal";
    enum err e = jobs_settle(db);
    return e == ERR_OK ? walk(DB_QUERY(db, SQL, DB_I(run), DB_I(from), DB_I(to)), each, ctx) : e;
}

/* Asked for by itself where there is a limit, or PostgreSQL would sort all rows to find the first.
 */
static const char SQL_FIRST[] = SELECT_FIRST " WHERE run = $1";

static bool has_first(int64_t from, int64_t to)
{
    return from <= 1 && to > 1;
}

enum err jobs_open(struct db *db, int64_t run, int64_t from, int64_t to, job_each_open *each,
                   void *ctx)
{
    static const char SQL[] = SELECT_OWN_ROWS " WHERE run = $1 AND ordinal >= $2 AND ordinal < $3"
                                              " AND finished_at IS NULL ORDER BY ordinal LIMIT $4";
    int64_t count = ROWS_PER_SLICE;
    bool more = true;
    enum err e = jobs_settle(db);
    if (e == ERR_OK && has_first(from, to)) {
        struct db_rows *rows = DB_QUERY(db, SQL_FIRST, DB_I(run));
        if (db_next(rows)) {
            struct job job;
            read_row(rows, &job);
            from = job.ordinal + 1;
            more = db_is_whole(rows) && each(ctx, &job);
        }
        e = db_rows_end(rows);
    }
    while (e == ERR_OK && more && count == ROWS_PER_SLICE) {
        struct db_rows *rows =
            DB_QUERY(db, SQL, DB_I(run), DB_I(from), DB_I(to), DB_I(ROWS_PER_SLICE));
        for (count = 0; more && db_next(rows); count++) {
            struct job job;
            read_row(rows, &job);
            from = job.ordinal + 1;
            more = db_is_whole(rows) && each(ctx, &job);
        }
        e = db_rows_end(rows);
    }
    return e;
}

enum err jobs_next_open(struct db *db, int64_t run, int64_t from, int64_t to, struct arena *arena,
                        bool *ret_found, struct job *ret)
{
    static const char SQL[] = SELECT_OWN_ROWS " WHERE run = $1 AND ordinal >= $2 AND ordinal < $3"
                                              " AND finished_at IS NULL ORDER BY ordinal LIMIT 1";
    *ret_found = false;
    enum err e = jobs_settle(db);
    if (e == ERR_OK && has_first(from, to))
        e = read_one(DB_QUERY(db, SQL_FIRST, DB_I(run)), arena, ret_found, ret);
    if (e != ERR_OK || *ret_found)
        return e;
    return read_one(DB_QUERY(db, SQL, DB_I(run), DB_I(from), DB_I(to)), arena, ret_found, ret);
}

enum err jobs_dead(struct db *db, int64_t tenant, int64_t dead_at, int64_t run, int64_t ordinal,
                   int64_t limit, job_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_OWN_ROWS " WHERE tenant = $1 AND dead_at IS NOT NULL"
                        " AND (dead_at, run, ordinal) < ($2, $3, $4)"
                        " ORDER BY dead_at DESC, run DESC, ordinal DESC LIMIT $5";
    return walk(
        DB_QUERY(db, SQL, DB_I(tenant), DB_I(dead_at), DB_I(run), DB_I(ordinal), DB_I(limit)), each,
        ctx);
}

enum err map_items_insert(struct db *db, int64_t run, int64_t step, struct str items)
{
    static const char SQL[] = "INSERT INTO map_items (run, step, items) VALUES ($1, $2, $3)"
                              " ON CONFLICT (run, step) DO UPDATE SET items = excluded.items";
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(step), DB_T(items));
}

enum err map_items_find(struct db *db, int64_t run, int64_t step, struct arena *arena,
                        struct str *ret)
{
    static const char SQL[] = "SELECT items FROM map_items WHERE run = $1 AND step = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(step));
    bool found = db_next(rows);
    bool full = false;
    if (found) {
        *ret = db_str(rows, 0);
        full = !arena_keep(arena, ret);
    }
    enum err e = db_rows_end(rows);
    if (e == ERR_OK && !found)
        return ERR_DAMAGED;
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err jobs_count(struct db *db,
                    void (*each)(void *ctx, struct str queue, struct str state, int64_t count),
                    void *ctx)
{
    /* Only what can be counted along an index: finished jobs are many and of no use here. */
    static const char SQL[] =
        "SELECT queue, 'pending', CAST(sum(n) AS bigint) FROM (SELECT queue, count(*) AS n"
        " FROM jobs WHERE state = 'pending' GROUP BY queue"
        " UNION ALL SELECT queue, count(*) FROM first_jobs GROUP BY queue) AS waiting"
        " GROUP BY queue ORDER BY 3 DESC, 1";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    while (db_next(rows))
        each(ctx, db_str(rows, 0), db_str(rows, 1), db_int(rows, 2));
    return db_rows_end(rows);
}
