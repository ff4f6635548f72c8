/* Messages that the bus will never take as they are. */
#include "store/outbox/parked.h"

#define COLUMNS                                                                                  \
    "p.feed, p.seq, p.offer, p.message_id, p.tenant, p.run, p.type, p.reason, p.attempts, p.at," \
    " p.again, t.id"

enum err parked_put(struct db *db, const struct parked *p)
{
    static const char SQL[] =
        "INSERT INTO parked (feed, seq, offer, message_id, tenant, run, type, reason, attempts, at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
        " ON CONFLICT (message_id) DO UPDATE SET reason = excluded.reason,"
        " attempts = parked.attempts + excluded.attempts, at = excluded.at, again = 0";
    return DB_EXEC(db, SQL, NULL, DB_I(p->feed), DB_I(p->seq), DB_I(p->offer), DB_T(p->message_id),
                   DB_I(p->tenant), DB_I(p->run), DB_T(p->type), DB_T(p->reason), DB_I(p->attempts),
                   DB_I(p->at));
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
        struct parked p = {
            .feed = db_int(rows, 0),
            .seq = db_count(rows, 1),
            .offer = db_int(rows, 2) != 0,
            .message_id = db_str(rows, 3),
            .tenant = db_int(rows, 4),
            .run = db_int(rows, 5),
            .type = db_str(rows, 6),
            .reason = db_str(rows, 7),
            .attempts = db_count(rows, 8),
            .at = db_time(rows, 9),
            .again = db_int(rows, 10) != 0,
            .tenant_id = db_str(rows, 11),
        };
        more = each(ctx, &p);
    }
    return db_rows_end(rows);
}

enum err parked_list(struct db *db, int64_t tenant, int64_t feed, int64_t seq, bool offer,
                     int64_t limit, parked_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM parked p JOIN tenants t ON t.num = p.tenant"
                              " WHERE (p.feed, p.seq, p.offer) > ($1, $2, $3)"
                              " AND (p.tenant = $4 OR $4 = 0)"
                              " ORDER BY p.feed, p.seq, p.offer LIMIT $5";
    return each_row(
        DB_QUERY(db, SQL, DB_I(feed), DB_I(seq), DB_I(offer), DB_I(tenant), DB_I(limit)), each,
        ctx);
}

enum err parked_again(struct db *db, int64_t limit, parked_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM parked p JOIN tenants t ON t.num = p.tenant"
                              " WHERE p.again = 1 ORDER BY p.feed, p.seq, p.offer LIMIT $1";
    return each_row(DB_QUERY(db, SQL, DB_I(limit)), each, ctx);
}

enum err parked_count(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COUNT(*) FROM parked";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}
