/* Limits by workflow and key as rows, and the runs that hold their slots. */
#include "store/run/limit_keys.h"

#include "base/limits.h"

#include "store/columns.h"
#include "store/run/late_index.h"
#include "store/run/runs.h"

#define LIMIT_KEY_COLUMNS(X, p)             \
    X(p, 1, INT, tenant, tenant)            \
    X(p, 2, TEXT, workflow_id, workflow_id) \
    X(p, 3, TEXT, path, path)               \
    X(p, 4, TEXT, key, key)
#define LIMIT_KEY_COUNTERS(X, p)             \
    X(p, 5, COUNT, num, num)                 \
    X(p, 6, COUNT, active_runs, active_runs) \
    X(p, 7, COUNT, queued_runs, queued_runs)
#define ALL_COLUMNS(X, p) LIMIT_KEY_COLUMNS(X, p) LIMIT_KEY_COUNTERS(X, p)
COLUMNS_NUMBERED(ALL_COLUMNS, LIMIT_KEY);
#define SELECT_LIMIT_KEYS COLUMNS_SELECT(ALL_COLUMNS, "") " FROM scopes"

#define INSERT_LIMIT_KEY                                                              \
    COLUMNS_INSERT_WITH("scopes", LIMIT_KEY_COLUMNS, "active_runs, queued_runs, num", \
                        "0, 0, " COLUMNS_NEXT_NUM("scopes", "$5", "$6"))
/* --- lists of scopes --- */

void limit_key_list_add(struct limit_key_list *list, int64_t num)
{
    assert(num > 0 && list->count < LIMITS_PER_RUN_MAX);
    size_t at = list->count++;
    while (at > 0 && list->nums[at - 1] > num) {
        list->nums[at] = list->nums[at - 1];
        at--;
    }
    list->nums[at] = num;
}

struct limit_key_list limit_key_list_parse(struct str text)
{
    struct limit_key_list list = {.count = 0};
    while (text.len > 0) {
        struct str part;
        int64_t num = 0;
        (void)str_cut(text, ',', &part, &text);
        /* What is no list is damage, which the doctor finds; the rest counts. */
        bool usable = str_to_i64(part, &num) && num > 0 && list.count < LIMITS_PER_RUN_MAX;
        for (size_t i = 0; i < list.count; i++)
            usable &= list.nums[i] != num;
        if (usable)
            limit_key_list_add(&list, num);
    }
    return list;
}

struct str limit_key_list_text(const struct limit_key_list *list,
                               char out[static LIMIT_KEY_LIST_TEXT_MAX])
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        int n = snprintf(out + len, LIMIT_KEY_LIST_TEXT_MAX - len, "%s%lld", i > 0 ? "," : "",
                         (long long)list->nums[i]);
        assert(n > 0 && len + (size_t)n < LIMIT_KEY_LIST_TEXT_MAX);
        len += (size_t)n;
    }
    return (struct str){out, len};
}

/* --- counters --- */

enum err limit_keys_find(struct db *db, struct limit_key_row *s)
{
    static const char SQL[] = "SELECT num, active_runs, queued_runs FROM scopes"
                              " WHERE tenant = $1 AND workflow_id = $2 AND path = $3 AND key = $4";
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_I(s->tenant), DB_T(s->workflow_id), DB_T(s->path), DB_T(s->key));
    s->num = s->active_runs = s->queued_runs = 0;
    if (db_next(rows)) {
        s->num = db_count(rows, 0);
        s->active_runs = db_count(rows, 1);
        s->queued_runs = db_count(rows, 2);
        if (s->num == 0)
            db_damaged(rows, 0);
    }
    return db_rows_end(rows);
}

enum err limit_keys_insert(struct db *db, struct limit_key_row *s)
{
    static const char SQL[] = INSERT_LIMIT_KEY " RETURNING num";
    assert(s->num == 0);
    struct db_rows *rows = DB_QUERY(db, SQL, LIMIT_KEY_COLUMNS(COLUMN_BIND, s) COLUMNS_NUMBERS(db));
    int64_t num = 0;
    while (db_next(rows))
        num = db_int(rows, 0);
    enum err e = db_rows_end(rows);
    if (e != ERR_OK)
        return e;
    s->num = num;
    return ERR_OK;
}

static void read_row(struct db_rows *rows, struct limit_key_row *s)
{
    *s = (struct limit_key_row){ALL_COLUMNS(COLUMN_READ, rows)};
}

COLUMNS_READ_ONE(read_one, struct limit_key_row, ALL_COLUMNS, read_row);

enum err limit_keys_get(struct db *db, int64_t num, struct arena *arena, struct limit_key_row *ret)
{
    static const char SQL[] = SELECT_LIMIT_KEYS " WHERE num = $1";
    bool found;
    enum err e = read_one(DB_QUERY(db, SQL, DB_I(num)), arena, &found, ret);
    return e == ERR_OK && !found ? ERR_DAMAGED : e;
}

enum err limit_keys_count(struct db *db, int64_t num, int64_t active, int64_t queued)
{
    static const char SQL[] = "UPDATE scopes SET active_runs = active_runs + $2,"
                              " queued_runs = queued_runs + $3 WHERE num = $1";
    static const char SQL_EMPTY[] =
        "DELETE FROM scopes WHERE num = $1 AND active_runs = 0 AND queued_runs = 0";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(num), DB_I(active), DB_I(queued));
    if (e != ERR_OK)
        return e;
    if (changed != 1)
        return ERR_DAMAGED;
    return active + queued < 0 ? DB_EXEC(db, SQL_EMPTY, NULL, DB_I(num)) : ERR_OK;
}

enum err limit_keys_busiest(struct db *db, int64_t tenant, int64_t limit,
                            void (*each)(void *ctx, const struct limit_key_row *row), void *ctx)
{
    static const char SQL[] = COLUMNS_SELECT(
        ALL_COLUMNS,
        "") " FROM (" SELECT_LIMIT_KEYS
            " WHERE tenant = $1 ORDER BY workflow_id, path, key LIMIT $2) AS first"
            " ORDER BY queued_runs DESC, active_runs DESC, workflow_id, path, key LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(LIMIT_KEYS_SCAN_MAX), DB_I(limit));
    while (db_next(rows)) {
        struct limit_key_row row;
        read_row(rows, &row);
        if (!db_skip_damaged(rows))
            each(ctx, &row);
    }
    return db_rows_end(rows);
}

/* --- holders --- */

enum err slots_insert(struct db *db, int64_t scope, int64_t run)
{
    static const char SQL[] = "INSERT INTO slots (scope, run) VALUES ($1, $2)";
    return DB_EXEC(db, SQL, NULL, DB_I(scope), DB_I(run));
}

enum err slots_delete(struct db *db, int64_t scope, int64_t run)
{
    static const char SQL[] = "DELETE FROM slots WHERE scope = $1 AND run = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(scope), DB_I(run));
}

/* A search of runs, a slice at a time. */
struct holder_walk {
    holder_each *each;
    void *ctx;
    int64_t last; /* where the next slice goes on */
    bool stopped;
    bool more;
};

static enum err walk_slice(struct holder_walk *w, struct db_rows *rows)
{
    int64_t count = 0;
    while (!w->stopped && db_next(rows)) {
        w->last = db_int(rows, 0);
        w->stopped = !w->each(w->ctx, w->last);
        count++;
    }
    w->more = !w->stopped && count == ROWS_PER_SLICE;
    return db_rows_end(rows);
}

enum err slots_edge(struct db *db, int64_t scope, bool newest, bool *ret_found, int64_t *ret_run)
{
    static const char SQL_OLDEST[] = "SELECT run FROM slots WHERE scope = $1 ORDER BY run LIMIT 1";
    static const char SQL_NEWEST[] =
        "SELECT run FROM slots WHERE scope = $1 ORDER BY run DESC LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, newest ? SQL_NEWEST : SQL_OLDEST, DB_I(scope));
    *ret_found = db_next(rows);
    if (*ret_found)
        *ret_run = db_int(rows, 0);
    return db_rows_end(rows);
}

enum err slots_list(struct db *db, int64_t scope, holder_each *each, void *ctx)
{
    static const char SQL[] =
        "SELECT run FROM slots WHERE scope = $1 AND run > $2 ORDER BY run LIMIT $3";
    struct holder_walk w = {.each = each, .ctx = ctx, .more = true};
    enum err e = ERR_OK;
    while (e == ERR_OK && w.more)
        e = walk_slice(&w, DB_QUERY(db, SQL, DB_I(scope), DB_I(w.last), DB_I(ROWS_PER_SLICE)));
    return e;
}

enum err active_runs_insert(struct db *db, int64_t tenant, int64_t run)
{
    static const char SQL[] = "INSERT INTO holding (tenant, run) VALUES ($1, $2)";
    return DB_EXEC(db, SQL, NULL, DB_I(tenant), DB_I(run));
}

enum err active_runs_delete(struct db *db, int64_t tenant, int64_t run)
{
    static const char SQL[] = "DELETE FROM holding WHERE tenant = $1 AND run = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(tenant), DB_I(run));
}

/* Holders that the index has. */
static struct db_rows *indexed_slice(struct db *db, int64_t tenant, bool down, int64_t last)
{
    static const char SQL[] =
        "SELECT run FROM holding WHERE tenant = $1 AND run > $2 ORDER BY run LIMIT $3";
    static const char SQL_DOWN[] =
        "SELECT run FROM holding WHERE tenant = $1 AND run < $2 ORDER BY run DESC LIMIT $3";
    return DB_QUERY(db, down ? SQL_DOWN : SQL, DB_I(tenant), DB_I(last), DB_I(ROWS_PER_SLICE));
}

/* Those after it. */
static struct db_rows *recent_slice(struct db *db, int64_t tenant, bool down, int64_t through,
                                    int64_t last)
{
    static const char SQL[] = "SELECT num FROM runs WHERE num > $1 AND tenant = $2"
                              " AND " RUN_HOLDS_SLOT " ORDER BY num LIMIT $3";
    static const char SQL_DOWN[] =
        "SELECT num FROM runs WHERE num > $1 AND tenant = $2 AND num < $4"
        " AND " RUN_HOLDS_SLOT " ORDER BY num DESC LIMIT $3";
    if (down)
        return DB_QUERY(db, SQL_DOWN, DB_I(through), DB_I(tenant), DB_I(ROWS_PER_SLICE),
                        DB_I(last));
    return DB_QUERY(db, SQL, DB_I(MAX(through, last)), DB_I(tenant), DB_I(ROWS_PER_SLICE));
}

enum err active_runs_list(struct db *db, int64_t tenant, bool newest_first, holder_each *each,
                          void *ctx)
{
    int64_t through;
    enum err e = late_index_through(db, &through);
    struct holder_walk w = {.each = each, .ctx = ctx};
    for (int part = 0; part < 2 && e == ERR_OK && !w.stopped; part++) {
        bool recent = (part == 0) == newest_first;
        w.last = newest_first ? INT64_MAX : 0;
        do {
            e = walk_slice(&w, recent ? recent_slice(db, tenant, newest_first, through, w.last)
                                      : indexed_slice(db, tenant, newest_first, w.last));
        } while (e == ERR_OK && w.more);
    }
    return e;
}
