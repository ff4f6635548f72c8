/* Schedules as rows. */
#include "store/schedules.h"

#define COLUMNS                                                                      \
    "tenant, id, workflow_id, cron, timezone, overlap, catch_up_ms, input, paused, " \
    "next_at, check_at, last_at, last_run, last_error, created_by, created_at, updated_at"

enum err schedules_put(struct db *db, const struct schedule *s)
{
    static const char SQL[] =
        "INSERT INTO schedules (" COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,"
        " $12, $13, $14, $15, $16, $17) ON CONFLICT (tenant, id) DO UPDATE SET"
        " workflow_id = excluded.workflow_id, cron = excluded.cron, timezone = excluded.timezone,"
        " overlap = excluded.overlap, catch_up_ms = excluded.catch_up_ms, input = excluded.input,"
        " paused = excluded.paused, next_at = excluded.next_at, check_at = excluded.check_at,"
        " last_at = excluded.last_at, last_run = excluded.last_run,"
        " last_error = excluded.last_error, updated_at = excluded.updated_at";
    return DB_EXEC(db, SQL, NULL, DB_I(s->tenant), DB_T(s->id), DB_T(s->workflow_id), DB_T(s->cron),
                   DB_T(s->timezone), DB_T(str_of(overlap_name(s->overlap))), DB_I(s->catch_up_ms),
                   DB_T(s->input), DB_I(s->paused), DB_I_OR_NULL(s->next_at),
                   DB_I_OR_NULL(s->check_at), DB_I_OR_NULL(s->last_at),
                   uuid_is_nil(s->last_run) ? DB_N() : DB_U(s->last_run), DB_T(s->last_error),
                   DB_T(s->created_by), DB_I(s->created_at), DB_I(s->updated_at));
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
    *s = (struct schedule){
        .tenant = db_int(rows, 0),
        .id = db_str(rows, 1),
        .workflow_id = db_str(rows, 2),
        .cron = db_str(rows, 3),
        .timezone = db_str(rows, 4),
        .overlap = db_known(rows, 5, overlap_of(db_str(rows, 5)), OVERLAP_COUNT),
        .catch_up_ms = db_count(rows, 6),
        .input = db_str(rows, 7),
        .paused = db_int(rows, 8) != 0,
        .next_at = db_time_or(rows, 9, -1),
        .check_at = db_time_or(rows, 10, -1),
        .last_at = db_time_or(rows, 11, -1),
        .last_run = db_uuid_or_nil(rows, 12),
        .last_error = db_str(rows, 13),
        .created_by = db_str(rows, 14),
        .created_at = db_time(rows, 15),
        .updated_at = db_time(rows, 16),
    };
    if (!db_is_null(rows, 10) && (db_is_null(rows, 9) || s->next_at > s->check_at))
        db_damaged(rows, 9);
}

static enum err read_one(struct db_rows *rows, struct arena *arena, bool *ret_found,
                         struct schedule *ret)
{
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_row(rows, ret);
        full = !(arena_keep(arena, &ret->id) && arena_keep(arena, &ret->workflow_id) &&
                 arena_keep(arena, &ret->cron) && arena_keep(arena, &ret->timezone) &&
                 arena_keep(arena, &ret->input) && arena_keep(arena, &ret->last_error) &&
                 arena_keep(arena, &ret->created_by));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err schedules_find(struct db *db, int64_t tenant, struct str id, struct arena *arena,
                        bool *ret_found, struct schedule *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM schedules WHERE tenant = $1 AND id = $2";
    return read_one(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id)), arena, ret_found, ret);
}

enum err schedules_list(struct db *db, int64_t tenant, struct str after, int64_t limit,
                        void (*each)(void *ctx, const struct schedule *s), void *ctx)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM schedules WHERE tenant = $1 AND id > $2"
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
    static const char SQL[] = "SELECT " COLUMNS " FROM schedules WHERE check_at <= $1"
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
