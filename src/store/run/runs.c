/* Runs and their timelines as rows. */
#include "store/run/runs.h"

#include "base/json.h"
#include "base/limits.h"
#include "store/run/late_index.h"

enum { LIST_CHUNK = 256 };

#define COLUMNS                                                                                    \
    "num, id, tenant, workflow_id, workflow_version, status, version, priority, input, "           \
    "state, output, error, labels, created_by, created_at, started_at, finished_at, traceparent, " \
    "scopes, progress, deadline_at, start_at, parent_run, parent_ordinal, depth, rerun_of"

/* What is read: besides the columns the number of the last event. The column called version is the
 * revision. */
#define READ_COLUMNS \
    COLUMNS ", (SELECT seq FROM events WHERE run = runs.num ORDER BY seq DESC LIMIT 1)"

enum err runs_last_num(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(num), 0) FROM runs";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    int64_t last = db_next(rows) ? db_count(rows, 0) : 0;
    int64_t through = 0;
    enum err e = db_rows_end(rows);
    if (e == ERR_OK) /* the last ones may be past their retention and gone */
        e = late_index_through(db, LATE_RUNS, &through);
    if (e == ERR_OK)
        *ret = MAX(last, through);
    return e;
}

int64_t runs_new_num(struct uuid *id, int64_t last_num)
{
    if (uuid_time(*id) <= last_num)
        uuid_set_time(id, last_num + 1);
    return uuid_time(*id);
}

int64_t runs_num_ms(int64_t num)
{
    return num >> 12; /* uuid_time() counts in 4096ths of a millisecond */
}

enum err runs_insert(struct db *db, const struct run *r)
{
    static const char SQL[] =
        "INSERT INTO runs (" COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,"
        " $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)";
    return DB_EXEC(db, SQL, NULL, DB_I(r->num), DB_U(r->id), DB_I(r->tenant), DB_T(r->workflow_id),
                   DB_I(r->workflow_version), DB_T(str_of(run_status_name(r->status))),
                   DB_I(r->revision), DB_I(r->priority), DB_T(r->input), DB_T(r->state),
                   DB_T(r->output), DB_T(r->error), DB_T(r->labels), DB_T(r->created_by),
                   DB_I(r->created_at), DB_I_OR_NULL(r->started_at), DB_I_OR_NULL(r->finished_at),
                   DB_T(r->traceparent), DB_T(r->scopes), DB_T(r->progress),
                   DB_I_OR_NULL(r->deadline_at), DB_I_OR_NULL(r->start_at),
                   DB_I_OR_NULL(r->parent_run), DB_I_OR_NULL(r->parent_ordinal), DB_I(r->depth),
                   uuid_is_nil(r->rerun_of) ? DB_N() : DB_U(r->rerun_of));
}

enum err runs_update(struct db *db, struct run *r)
{
    static const char SQL[] =
        "UPDATE runs SET status = $3, version = version + 1, state = $4, output = $5,"
        " error = $6, started_at = $7, finished_at = $8, progress = $9, scopes = $10,"
        " deadline_at = $11, start_at = $12 WHERE num = $1 AND version = $2";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(r->num), DB_I(r->revision),
                         DB_T(str_of(run_status_name(r->status))), DB_T(r->state), DB_T(r->output),
                         DB_T(r->error), DB_I_OR_NULL(r->started_at), DB_I_OR_NULL(r->finished_at),
                         DB_T(r->progress), DB_T(r->scopes), DB_I_OR_NULL(r->deadline_at),
                         DB_I_OR_NULL(r->start_at));
    if (e == ERR_OK && changed != 1)
        e = ERR_CONCURRENCY;
    if (e == ERR_OK)
        r->revision++;
    return e;
}

static void read_row(struct db_rows *rows, struct run *r)
{
    *r = (struct run){
        .num = db_count(rows, 0),
        .id = db_uuid(rows, 1),
        .tenant = db_int(rows, 2),
        .workflow_id = db_str(rows, 3),
        .workflow_version = db_count(rows, 4),
        .status = db_known(rows, 5, run_status_of(db_str(rows, 5)), RUN_STATUS_COUNT),
        .revision = db_count(rows, 6),
        .priority = db_int(rows, 7),
        .input = db_str(rows, 8),
        .state = db_str(rows, 9),
        .output = db_str(rows, 10),
        .error = db_str(rows, 11),
        .labels = db_str(rows, 12),
        .created_by = db_str(rows, 13),
        .created_at = db_time(rows, 14),
        .started_at = db_time_or(rows, 15, -1),
        .finished_at = db_time_or(rows, 16, -1),
        .traceparent = db_str(rows, 17),
        .scopes = db_str(rows, 18),
        .progress = db_str(rows, 19),
        .deadline_at = db_time_or(rows, 20, -1),
        .start_at = db_time_or(rows, 21, -1),
        .parent_run = db_int_or(rows, 22, -1),
        .parent_ordinal = db_count_or(rows, 23, -1),
        .depth = db_count(rows, 24),
        .rerun_of = db_uuid_or_nil(rows, 25),
        .version = db_count_or(rows, 26, 0),
    };
}

static enum err read_one(struct db_rows *rows, struct arena *arena, bool *ret_found,
                         struct run *ret)
{
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_row(rows, ret);
        full = !(arena_keep(arena, &ret->workflow_id) && arena_keep(arena, &ret->input) &&
                 arena_keep(arena, &ret->state) && arena_keep(arena, &ret->output) &&
                 arena_keep(arena, &ret->error) && arena_keep(arena, &ret->labels) &&
                 arena_keep(arena, &ret->created_by) && arena_keep(arena, &ret->traceparent) &&
                 arena_keep(arena, &ret->scopes) && arena_keep(arena, &ret->progress));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err runs_find(struct db *db, int64_t tenant, struct uuid id, struct arena *arena,
                   bool *ret_found, struct run *ret)
{
    static const char SQL[] =
        "SELECT " READ_COLUMNS " FROM runs WHERE num = $1 AND id = $2 AND tenant = $3";
    return read_one(DB_QUERY(db, SQL, DB_I(uuid_time(id)), DB_U(id), DB_I(tenant)), arena,
                    ret_found, ret);
}

enum err runs_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                       struct run *ret)
{
    static const char SQL[] = "SELECT " READ_COLUMNS " FROM runs WHERE num = $1";
    return read_one(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

enum err runs_is_of(struct db *db, int64_t num, struct str workflow_id, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM runs WHERE num = $1 AND workflow_id = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num), DB_T(workflow_id));
    *ret = db_next(rows);
    return db_rows_end(rows);
}

/* --- lists --- */

static bool has_label(struct str labels, struct str name, struct str value)
{
    json_t *object = json_loadb(labels.ptr, labels.len, 0, NULL);
    const json_t *found = json_object_getn(object, name.ptr, name.len);
    bool same = json_is_string(found) && str_eq(json_str(found), value);
    json_decref(object);
    return same;
}

static bool matches(const struct run_filter *f, const struct run *r)
{
    return (f->workflow_id.ptr == NULL || str_eq(f->workflow_id, r->workflow_id)) &&
           (f->created_after < 0 || r->created_at > f->created_after) &&
           (f->created_before < 0 || r->created_at < f->created_before) &&
           (f->label_name.ptr == NULL || has_label(r->labels, f->label_name, f->label_value));
}

static bool ended_badly(enum run_status status)
{
    return status < RUN_STATUS_COUNT && run_has_ended(status) && status != RUN_SUCCEEDED;
}

/* Those that ended badly have an index of their own, because people look for them. The others are
 * read in the order of their making: first what is not in the index yet, then along it. */
static struct db_rows *list_query(struct db *db, const struct run_filter *f, int64_t before,
                                  int64_t through)
{
    static const char SQL_BAD[] =
        "SELECT " READ_COLUMNS " FROM runs WHERE tenant = $1 AND status = $2 AND num < $3"
        " AND (status = 'failed' OR status = 'denied' OR status = 'cancelled'"
        " OR status = 'timed_out') ORDER BY num DESC LIMIT $4"; /* the words of its index */
    static const char SQL_RECENT[] = "SELECT " READ_COLUMNS " FROM runs WHERE num > $1 AND num < $2"
                                     " AND tenant = $3 ORDER BY num DESC LIMIT $4";
    static const char SQL_OLDER[] =
        "SELECT " READ_COLUMNS " FROM runs WHERE num IN (SELECT num FROM runs_index"
        " WHERE tenant = $1 AND num < $2 ORDER BY num DESC LIMIT $3) ORDER BY num DESC";
    if (ended_badly(f->status))
        return DB_QUERY(db, SQL_BAD, DB_I(f->tenant), DB_T(str_of(run_status_name(f->status))),
                        DB_I(before), DB_I(LIST_CHUNK));
    if (before > through + 1)
        return DB_QUERY(db, SQL_RECENT, DB_I(through), DB_I(before), DB_I(f->tenant),
                        DB_I(LIST_CHUNK));
    return DB_QUERY(db, SQL_OLDER, DB_I(f->tenant), DB_I(before), DB_I(LIST_CHUNK));
}

/* One query's worth. *before moves on to where the next one starts. */
static enum err list_chunk(struct db *db, const struct run_filter *f, int64_t through,
                           run_each *each, void *ctx, int64_t *before, int64_t *ret_rows,
                           bool *ret_full)
{
    struct db_rows *rows = list_query(db, f, *before, through);
    *ret_rows = 0;
    *ret_full = false;
    while (db_next(rows)) {
        struct run r;
        read_row(rows, &r);
        bool damaged = db_skip_damaged(rows);
        bool fits = (f->status == RUN_STATUS_COUNT || f->status == r.status) && matches(f, &r);
        if (fits && !damaged && !each(ctx, &r)) {
            *ret_full = true;
            break;
        }
        ++*ret_rows;
        *before = r.num;
    }
    return db_rows_end(rows);
}

enum err runs_list(struct db *db, const struct run_filter *filter, int64_t before, run_each *each,
                   void *ctx, int64_t *ret_next)
{
    int64_t through;
    int64_t scanned = 0;
    bool full = false;
    bool more = true;
    enum err e = late_index_through(db, LATE_RUNS, &through);
    while (e == ERR_OK && !full && more && scanned < PAGE_SCAN_MAX) {
        bool recent = before > through + 1 && !ended_badly(filter->status);
        int64_t rows;
        e = list_chunk(db, filter, through, each, ctx, &before, &rows, &full);
        scanned += rows;
        more = rows == LIST_CHUNK;
        if (!more && !full && recent) {
            before = through + 1; /* go on along the index */
            more = true;
        }
    }
    *ret_next = full || more ? before : -1;
    return e;
}

/* --- the timeline --- */

enum err events_append(struct db *db, int64_t run, int64_t seq, int64_t at, struct str type,
                       struct str data)
{
    static const char SQL[] =
        "INSERT INTO events (run, seq, at, type, data) VALUES ($1, $2, $3, $4, $5)";
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(seq), DB_I(at), DB_T(type), DB_T(data));
}

enum err events_list(struct db *db, int64_t run, int64_t after, int64_t limit, event_each *each,
                     void *ctx)
{
    static const char SQL[] = "SELECT seq, at, type, data FROM events"
                              " WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(after), DB_I(limit));
    while (db_next(rows)) {
        struct event event = {db_int(rows, 0), db_time(rows, 1), db_str(rows, 2), db_str(rows, 3)};
        if (!db_skip_damaged(rows))
            each(ctx, &event);
    }
    return db_rows_end(rows);
}

enum err events_newest(struct db *db, int64_t run, struct str type, struct arena *arena,
                       bool *ret_found, struct event *ret)
{
    static const char SQL[] = "SELECT seq, at, type, data FROM events"
                              " WHERE run = $1 AND type = $2 ORDER BY seq DESC LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_T(type));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret = (struct event){db_int(rows, 0), db_int(rows, 1), db_str(rows, 2), db_str(rows, 3)};
        full = !(arena_keep(arena, &ret->type) && arena_keep(arena, &ret->data));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}
