/* Parked messages as rows. */
#include "store/outbox/parked.h"

#include "store/columns.h"

#define PARKED_COLUMNS(X, p)              \
    X(p, 1, INT, feed, feed)              \
    X(p, 2, COUNT, seq, seq)              \
    X(p, 3, BOOL, offer, offer)           \
    X(p, 4, TEXT, message_id, message_id) \
    X(p, 5, INT, tenant, tenant)          \
    X(p, 6, INT, run, owner)              \
    X(p, 7, TEXT, type, type)             \
    X(p, 8, TEXT, reason, reason)         \
    X(p, 9, COUNT, attempts, attempts)    \
    X(p, 10, TIME, at, at)
#define PARKED_RETRY(X, p) X(p, 11, BOOL, again, again)
#define ALL_COLUMNS(X, p) PARKED_COLUMNS(X, p) PARKED_RETRY(X, p)
COLUMNS_NUMBERED(ALL_COLUMNS, PARKED);

#define INSERT_PARKED COLUMNS_INSERT("parked", PARKED_COLUMNS)
#define SELECT_PARKED                 \
    COLUMNS_SELECT(ALL_COLUMNS, "p.") \
    ", t.id FROM parked p JOIN tenants t ON t.num = p.tenant"

enum err parked_put(struct db *db, const struct parked *p)
{
    static const char SQL[] = INSERT_PARKED
        " ON CONFLICT (message_id) DO UPDATE SET reason = excluded.reason,"
        " attempts = parked.attempts + excluded.attempts, at = excluded.at, again = 0";
    return DB_EXEC(db, SQL, NULL, PARKED_COLUMNS(COLUMN_BIND, p));
}

enum err parked_remove(struct db *db, struct str message_id)
{
    static const char SQL[] = "DELETE FROM parked WHERE message_id = $1";
    return DB_EXEC(db, SQL, NULL, DB_T(message_id));
}

enum err parked_ask_again(struct db *db, int64_t tenant, struct str message_id, bool *ret_found)
{
    static const char SQL[] = "UPDATE parked SET again = 1"
                              " WHERE message_id = $1 AND (tenant = $2 OR $2 = 0)";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_T(message_id), DB_I(tenant));
    *ret_found = changed > 0;
    return e;
}

static enum err each_row(struct db_rows *rows, parked_each *each, void *ctx)
{
    bool more = true;
    while (more && db_next(rows)) {
        struct parked p = {ALL_COLUMNS(COLUMN_READ, rows)};
        p.tenant_id = db_str(rows, PARKED_COLUMNS_END);
        more = each(ctx, &p);
    }
    return db_rows_end(rows);
}

enum err parked_list(struct db *db, int64_t tenant, int64_t feed, int64_t seq, bool offer,
                     int64_t limit, parked_each *each, void *ctx)
{
    static const char SQL[] = SELECT_PARKED " WHERE (p.feed, p.seq, p.offer) > ($1, $2, $3)"
                                            " AND (p.tenant = $4 OR $4 = 0)"
                                            " ORDER BY p.feed, p.seq, p.offer LIMIT $5";
    return each_row(
        DB_QUERY(db, SQL, DB_I(feed), DB_I(seq), DB_I(offer), DB_I(tenant), DB_I(limit)), each,
        ctx);
}

enum err parked_again(struct db *db, int64_t limit, parked_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_PARKED " WHERE p.again = 1 ORDER BY p.feed, p.seq, p.offer LIMIT $1";
    return each_row(DB_QUERY(db, SQL, DB_I(limit)), each, ctx);
}

enum err parked_count(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COUNT(*) FROM parked";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}
