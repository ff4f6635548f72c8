/* The inbox of an entity, as rows. */
#include "store/entity/inbox.h"

#include "store/columns.h"

#define INBOX_COLUMNS(X, p)         \
    X(p, 1, INT, entity, entity)    \
    X(p, 2, INT, seq, seq)          \
    X(p, 3, TEXT, name, name)       \
    X(p, 4, TEXT, payload, payload) \
    X(p, 5, BOOL, asks, asks)       \
    X(p, 6, TIME, at, at)
COLUMNS_NUMBERED(INBOX_COLUMNS, INBOX);
#define SELECT_INBOX COLUMNS_SELECT(INBOX_COLUMNS, "") " FROM inbox"

#define UPDATE_COLUMNS(X, p)     \
    X(p, 1, INT, entity, entity) \
    X(p, 2, COUNT, seq, seq)     \
    X(p, 3, TEXT, name, name)    \
    X(p, 4, TIME, at, at)
#define UPDATE_OUTCOME(X, p)          \
    X(p, 5, TEXT, outcome, outcome)   \
    X(p, 6, BOOL, rejected, rejected) \
    X(p, 7, TIME_OR_NONE, decided_at, decided_at)
#define ALL_UPDATE_COLUMNS(X, p) UPDATE_COLUMNS(X, p) UPDATE_OUTCOME(X, p)
COLUMNS_NUMBERED(ALL_UPDATE_COLUMNS, UPDATE);
#define SELECT_UPDATES COLUMNS_SELECT(ALL_UPDATE_COLUMNS, "") " FROM entity_updates"

#define TIMER_COLUMNS(X, p)         \
    X(p, 1, INT, entity, entity)    \
    X(p, 2, TEXT, name, name)       \
    X(p, 3, TIME, due_at, due_at)   \
    X(p, 4, TEXT, payload, payload) \
    X(p, 5, BOOL, given, given)
COLUMNS_NUMBERED(TIMER_COLUMNS, TIMER);
#define SELECT_TIMERS COLUMNS_SELECT(TIMER_COLUMNS, "") " FROM entity_timers"

#define INSERT_TIMER COLUMNS_INSERT("entity_timers", TIMER_COLUMNS)
enum err inbox_insert(struct db *db, const struct inbox_signal *s)
{
    static const char SQL[] = COLUMNS_INSERT("inbox", INBOX_COLUMNS);
    return DB_EXEC(db, SQL, NULL, INBOX_COLUMNS(COLUMN_BIND, s));
}

enum err inbox_list(struct db *db, int64_t entity, int64_t after, int64_t through, int64_t limit,
                    inbox_each *each, void *ctx)
{
    static const char SQL[] = SELECT_INBOX " WHERE entity = $1 AND seq > $2 AND seq <= $3"
                                           " ORDER BY seq LIMIT $4";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity), DB_I(after), DB_I(through), DB_I(limit));
    bool more = true;
    while (more && db_next(rows)) {
        struct inbox_signal s = {INBOX_COLUMNS(COLUMN_READ, rows)};
        more = each(ctx, &s);
    }
    return db_rows_end(rows);
}

enum err inbox_remove(struct db *db, int64_t entity, int64_t through)
{
    static const char SQL[] = "DELETE FROM inbox WHERE entity = $1 AND seq <= $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(through));
}

/* --- updates --- */

enum err entity_updates_insert(struct db *db, const struct entity_update *u)
{
    static const char SQL[] =
        COLUMNS_INSERT_WITH("entity_updates", UPDATE_COLUMNS, "rejected", "0");
    return DB_EXEC(db, SQL, NULL, UPDATE_COLUMNS(COLUMN_BIND, u));
}

static void read_update(struct db_rows *rows, struct entity_update *u)
{
    *u = (struct entity_update){ALL_UPDATE_COLUMNS(COLUMN_READ, rows)};
}

COLUMNS_READ_ONE(read_one_update, struct entity_update, ALL_UPDATE_COLUMNS, read_update);

enum err entity_updates_find(struct db *db, int64_t entity, int64_t seq, struct arena *arena,
                             bool *ret_found, struct entity_update *ret)
{
    static const char SQL[] = SELECT_UPDATES " WHERE entity = $1 AND seq = $2";
    return read_one_update(DB_QUERY(db, SQL, DB_I(entity), DB_I(seq)), arena, ret_found, ret);
}

enum err entity_updates_decide(struct db *db, const struct entity_update *u, bool *ret_decided)
{
    static const char SQL[] =
        "UPDATE entity_updates SET outcome = $3, rejected = $4, decided_at = $5"
        " WHERE entity = $1 AND seq = $2 AND outcome IS NULL";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(u->entity), DB_I(u->seq), DB_T(u->outcome),
                         DB_I(u->rejected), DB_I(u->decided_at));
    *ret_decided = changed == 1;
    return e;
}

enum err entity_updates_decide_rest(struct db *db, const struct entity_update *u, int64_t after,
                                    int64_t *ret_count)
{
    static const char SQL[] =
        "UPDATE entity_updates SET outcome = $4, rejected = $5, decided_at = $6"
        " WHERE entity = $1 AND seq > $2 AND seq <= $3 AND outcome IS NULL";
    return DB_EXEC(db, SQL, ret_count, DB_I(u->entity), DB_I(after), DB_I(u->seq), DB_T(u->outcome),
                   DB_I(u->rejected), DB_I(u->decided_at));
}

enum err entity_updates_remove(struct db *db, int64_t entity, int64_t through)
{
    static const char SQL[] = "DELETE FROM entity_updates WHERE entity = $1 AND seq <= $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(through));
}

/* --- timers --- */

enum err entity_timers_put(struct db *db, const struct entity_timer *t)
{
    static const char SQL[] = INSERT_TIMER
        " ON CONFLICT (entity, name) DO UPDATE SET"
        " due_at = excluded.due_at, payload = excluded.payload, given = excluded.given";
    return DB_EXEC(db, SQL, NULL, TIMER_COLUMNS(COLUMN_BIND, t));
}

enum err entity_timers_remove(struct db *db, int64_t entity, struct str name)
{
    static const char SQL[] = "DELETE FROM entity_timers WHERE entity = $1 AND name = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_T(name));
}

enum err entity_timers_remove_all(struct db *db, int64_t entity)
{
    static const char SQL[] = "DELETE FROM entity_timers WHERE entity = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(entity));
}

enum err entity_timers_remove_given(struct db *db, int64_t entity)
{
    static const char SQL[] = "DELETE FROM entity_timers WHERE entity = $1 AND given = 1";
    return DB_EXEC(db, SQL, NULL, DB_I(entity));
}

enum err entity_timers_give(struct db *db, int64_t entity, int64_t now_ms)
{
    static const char SQL[] =
        "UPDATE entity_timers SET given = 1 WHERE entity = $1 AND due_at <= $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(now_ms));
}

enum err entity_timers_take_back(struct db *db, int64_t entity)
{
    static const char SQL[] = "UPDATE entity_timers SET given = 0 WHERE entity = $1 AND given = 1";
    return DB_EXEC(db, SQL, NULL, DB_I(entity));
}

enum err entity_timers_next(struct db *db, int64_t entity, int64_t *ret_due_at)
{
    static const char SQL[] =
        "SELECT MIN(due_at) FROM entity_timers WHERE entity = $1 AND given = 0";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity));
    *ret_due_at = db_next(rows) ? db_int_or(rows, 0, -1) : -1;
    return db_rows_end(rows);
}

enum err entity_timers_list(struct db *db, int64_t entity, bool only_given, entity_timer_each *each,
                            void *ctx)
{
    static const char SQL[] =
        SELECT_TIMERS " WHERE entity = $1 AND given >= $2 ORDER BY due_at, name";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity), DB_I(only_given));
    while (db_next(rows)) {
        struct entity_timer t = {TIMER_COLUMNS(COLUMN_READ, rows)};
        each(ctx, &t);
    }
    return db_rows_end(rows);
}
