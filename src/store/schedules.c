/* Schedules as rows. */
#include "store/schedules.h"

#include "store/columns.h"

#define COLUMN_BIND_OVERLAP(value) COLUMN_BIND_WORD(overlap_name(value))
#define COLUMN_READ_OVERLAP(rows, at) COLUMN_READ_WORD(rows, at, overlap_of, OVERLAP_COUNT)
#define COLUMN_KEEP_OVERLAP(arena, value)

#define SCHEDULE_COLUMNS(X, p)                 \
    X(p, 1, INT, tenant, tenant)               \
    X(p, 2, TEXT, id, id)                      \
    X(p, 3, TEXT, workflow_id, workflow_id)    \
    X(p, 4, TEXT, cron, cron)                  \
    X(p, 5, TEXT, timezone, timezone)          \
    X(p, 6, OVERLAP, overlap, overlap)         \
    X(p, 7, COUNT, catch_up_ms, catch_up_ms)   \
    X(p, 8, TEXT, input, input)                \
    X(p, 9, BOOL, paused, paused)              \
    X(p, 10, TIME_OR_NONE, next_at, next_at)   \
    X(p, 11, TIME_OR_NONE, check_at, check_at) \
    X(p, 12, TIME_OR_NONE, last_at, last_at)   \
    X(p, 13, UUID_OR_NONE, last_run, last_run) \
    X(p, 14, TEXT, last_error, last_error)     \
    X(p, 15, TEXT, created_by, created_by)     \
    X(p, 16, TIME, created_at, created_at)     \
    X(p, 17, TIME, updated_at, updated_at)
COLUMNS_NUMBERED(SCHEDULE_COLUMNS, SCHEDULE);

#define SELECT_SCHEDULES COLUMNS_SELECT(SCHEDULE_COLUMNS, "") " FROM schedules"
#define INSERT_SCHEDULE COLUMNS_INSERT("schedules", SCHEDULE_COLUMNS)

enum err schedules_put(struct db *db, const struct schedule *s)
{
    static const char SQL[] = INSERT_SCHEDULE
        " ON CONFLICT (tenant, id) DO UPDATE SET"
        " workflow_id = excluded.workflow_id, cron = excluded.cron, timezone = excluded.timezone,"
        " overlap = excluded.overlap, catch_up_ms = excluded.catch_up_ms, input = excluded.input,"
        " paused = excluded.paused, next_at = excluded.next_at, check_at = excluded.check_at,"
        " last_at = excluded.last_at, last_run = excluded.last_run,"
        " last_error = excluded.last_error, updated_at = excluded.updated_at";
    return DB_EXEC(db, SQL, NULL, SCHEDULE_COLUMNS(COLUMN_BIND, s));
}

enum err schedules_delete(struct db *db, int64_t tenant, struct str id, bool *ret_found)
{
    static const char SQL[] = "DELETE FROM schedules WHERE tenant = $1 AND id = $2";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(tenant), DB_T(id));
    *ret_found = changed > 0;
    return e;
}

static void read_row(struct db_rows *rows, struct schedule *s)
{
    *s = (struct schedule){SCHEDULE_COLUMNS(COLUMN_READ, rows)};
    bool checked = !db_is_null(rows, SCHEDULE_AT_check_at);
    if (checked && (db_is_null(rows, SCHEDULE_AT_next_at) || s->next_at > s->check_at))
        db_damaged(rows, SCHEDULE_AT_next_at);
}

COLUMNS_READ_ONE(read_one, struct schedule, SCHEDULE_COLUMNS, read_row);

enum err schedules_find(struct db *db, int64_t tenant, struct str id, struct arena *arena,
                        bool *ret_found, struct schedule *ret)
{
    static const char SQL[] = SELECT_SCHEDULES " WHERE tenant = $1 AND id = $2";
    return read_one(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id)), arena, ret_found, ret);
}

enum err schedules_list(struct db *db, int64_t tenant, struct str after, int64_t limit,
                        void (*each)(void *ctx, const struct schedule *s), void *ctx)
{
    static const char SQL[] = SELECT_SCHEDULES " WHERE tenant = $1 AND id > $2"
                                               " ORDER BY id LIMIT $3";
    struct str from = after.ptr != NULL ? after : STR("");
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_T(from), DB_I(limit));
    while (db_next(rows)) {
        struct schedule s;
        read_row(rows, &s);
        if (!db_skip_damaged(rows))
            each(ctx, &s);
    }
    return db_rows_end(rows);
}

enum err schedules_due(struct db *db, int64_t now_ms, struct arena *arena, bool *ret_found,
                       struct schedule *ret)
{
    static const char SQL[] = SELECT_SCHEDULES " WHERE check_at <= $1"
                                               " ORDER BY check_at LIMIT 1";
    return read_one(DB_QUERY(db, SQL, DB_I(now_ms)), arena, ret_found, ret);
}

enum err schedules_next(struct db *db, int64_t *ret_check_at)
{
    static const char SQL[] =
        "SELECT check_at FROM schedules WHERE check_at IS NOT NULL ORDER BY check_at LIMIT 1";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret_check_at = db_next(rows) ? db_int(rows, 0) : -1;
    return db_rows_end(rows);
}
