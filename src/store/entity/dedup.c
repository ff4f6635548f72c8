/* Keys of signals, windows and counts as rows. */
#include "store/entity/dedup.h"

#include "store/columns.h"

#define KEY_COLUMNS(X, p)            \
    X(p, 1, COUNT, num, num)         \
    X(p, 2, INT, key_hash, key_hash) \
    X(p, 3, TEXT, key, key)          \
    X(p, 4, BYTES, request, request) \
    X(p, 5, COUNT, seq, seq)         \
    X(p, 6, TIME, at, at)
COLUMNS_NUMBERED(KEY_COLUMNS, KEY);

#define SELECT_KEYS COLUMNS_SELECT(KEY_COLUMNS, "d.")

/* --- windows --- */

enum err dedup_windows_find(struct db *db, int64_t owner, struct dedup_window *ret)
{
    static const char SQL[] =
        "SELECT first, last, emptied, forgotten FROM dedup_windows WHERE owner = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(owner));
    *ret = dedup_window_new();
    if (db_next(rows)) {
        *ret = (struct dedup_window){.first = db_count(rows, 0),
                                     .last = db_count(rows, 1),
                                     .emptied = db_count(rows, 2),
                                     .forgotten = db_count(rows, 3)};
        if (!dedup_window_is_sound(ret))
            db_damaged(rows, 0);
    }
    return db_rows_end(rows);
}

enum err dedup_windows_put(struct db *db, int64_t owner, const struct dedup_window *w)
{
    static const char SQL[] =
        "INSERT INTO dedup_windows (owner, first, last, emptied, forgotten)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner) DO UPDATE SET first = excluded.first,"
        " last = excluded.last, emptied = excluded.emptied, forgotten = excluded.forgotten";
    assert(dedup_window_is_sound(w));
    return DB_EXEC(db, SQL, NULL, DB_I(owner), DB_I(w->first), DB_I(w->last), DB_I(w->emptied),
                   DB_I(w->forgotten));
}

/* --- keys --- */

enum err dedup_insert(struct db *db, int64_t owner, const struct dedup_key *key)
{
    static const char SQL[] = COLUMNS_INSERT_WITH("dedup", KEY_COLUMNS, "owner", "$7");
    assert(key->key.ptr != NULL);
    return DB_EXEC(db, SQL, NULL, KEY_COLUMNS(COLUMN_BIND, key) DB_I(owner));
}

enum err dedup_with_hash(struct db *db, int64_t owner, int64_t key_hash, dedup_key_each *each,
                         void *ctx)
{
    /* First in the index alone: asked for the rows at once, SQLite would rather look through all
     * keys of the owner. */
    static const char SQL[] =
        SELECT_KEYS " FROM dedup i JOIN dedup d ON d.owner = i.owner AND d.num = i.num"
                    " WHERE i.owner = $1 AND i.key_hash = $2 ORDER BY i.num DESC";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(owner), DB_I(key_hash));
    bool more = true;
    while (more && db_next(rows)) {
        struct dedup_key key = {KEY_COLUMNS(COLUMN_READ, rows)};
        more = each(ctx, &key);
    }
    return db_rows_end(rows);
}

enum err dedup_from(struct db *db, int64_t owner, int64_t num, int64_t limit, dedup_key_each *each,
                    void *ctx)
{
    static const char SQL[] =
        "SELECT num, seq, at FROM dedup WHERE owner = $1 AND num >= $2 ORDER BY num LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(owner), DB_I(num), DB_I(limit));
    bool more = true;
    while (more && db_next(rows)) {
        struct dedup_key key = {
            .num = db_count(rows, 0), .seq = db_count(rows, 1), .at = db_time(rows, 2)};
        more = each(ctx, &key);
    }
    return db_rows_end(rows);
}

enum err dedup_empty(struct db *db, int64_t owner, int64_t from, int64_t below)
{
    static const char SQL[] = "UPDATE dedup SET key = NULL, request = NULL"
                              " WHERE owner = $1 AND num >= $2 AND num < $3";
    return DB_EXEC(db, SQL, NULL, DB_I(owner), DB_I(from), DB_I(below));
}

enum err dedup_delete(struct db *db, int64_t owner, int64_t from, int64_t below)
{
    static const char SQL[] = "DELETE FROM dedup WHERE owner = $1 AND num >= $2 AND num < $3";
    return DB_EXEC(db, SQL, NULL, DB_I(owner), DB_I(from), DB_I(below));
}

enum err dedup_remove_owner(struct db *db, int64_t owner, int64_t rows, int64_t *ret_removed,
                            bool *ret_gone)
{
    static const char SQL_KEYS[] =
        "DELETE FROM dedup WHERE owner = $1 AND num IN"
        " (SELECT num FROM dedup WHERE owner = $1 ORDER BY num LIMIT $2)";
    static const char SQL_WINDOW[] = "DELETE FROM dedup_windows WHERE owner = $1";
    int64_t keys = 0;
    int64_t windows = 0;
    enum err e = DB_EXEC(db, SQL_KEYS, &keys, DB_I(owner), DB_I(rows));
    if (e == ERR_OK && keys < rows)
        e = DB_EXEC(db, SQL_WINDOW, &windows, DB_I(owner));
    if (e != ERR_OK)
        return e;
    *ret_removed = keys + windows;
    *ret_gone = keys < rows;
    return ERR_OK;
}

/* --- counts --- */

static enum err add_bucket(struct db *db, int64_t type, size_t bucket, int64_t duplicates,
                           int64_t late)
{
    static const char SQL[] =
        "INSERT INTO dedup_stats (type, bucket, duplicates, late) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (type, bucket) DO UPDATE SET"
        " duplicates = dedup_stats.duplicates + excluded.duplicates,"
        " late = dedup_stats.late + excluded.late";
    if (duplicates == 0 && late == 0)
        return ERR_OK;
    return DB_EXEC(db, SQL, NULL, DB_I(type), DB_I((int64_t)bucket), DB_I(duplicates), DB_I(late));
}

enum err dedup_counts_add(struct db *db, int64_t type, const struct dedup_counts *c, int64_t now_ms)
{
    static const char SQL[] =
        "INSERT INTO dedup_totals (type, keyed, evicted_by_age, evicted_by_count, since)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (type) DO UPDATE SET"
        " keyed = dedup_totals.keyed + excluded.keyed,"
        " evicted_by_age = dedup_totals.evicted_by_age + excluded.evicted_by_age,"
        " evicted_by_count = dedup_totals.evicted_by_count + excluded.evicted_by_count";
    enum err e = ERR_OK;
    for (size_t i = 0; i < DEDUP_BUCKETS && e == ERR_OK; i++)
        e = add_bucket(db, type, i, c->duplicates[i], c->late[i]);
    if (e != ERR_OK)
        return e;
    return DB_EXEC(db, SQL, NULL, DB_I(type), DB_I(c->keyed), DB_I(c->evicted_by_age),
                   DB_I(c->evicted_by_count), DB_I(now_ms));
}

enum err dedup_counts_find(struct db *db, int64_t type, struct dedup_counts *ret,
                           int64_t *ret_since)
{
    static const char SQL_TOTALS[] =
        "SELECT keyed, evicted_by_age, evicted_by_count, since FROM dedup_totals WHERE type = $1";
    static const char SQL_AGES[] =
        "SELECT bucket, duplicates, late FROM dedup_stats WHERE type = $1";
    *ret = (struct dedup_counts){0};
    *ret_since = -1;
    struct db_rows *rows = DB_QUERY(db, SQL_TOTALS, DB_I(type));
    if (db_next(rows)) {
        ret->keyed = db_count(rows, 0);
        ret->evicted_by_age = db_count(rows, 1);
        ret->evicted_by_count = db_count(rows, 2);
        *ret_since = db_time(rows, 3);
    }
    enum err e = db_rows_end(rows);
    if (e != ERR_OK)
        return e;
    rows = DB_QUERY(db, SQL_AGES, DB_I(type));
    while (db_next(rows)) {
        int64_t bucket = db_int(rows, 0);
        if (bucket < 0 || bucket >= DEDUP_BUCKETS)
            continue; /* of a newer version */
        ret->duplicates[bucket] = db_count(rows, 1);
        ret->late[bucket] = db_count(rows, 2);
    }
    return db_rows_end(rows);
}
