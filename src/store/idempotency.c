/* Idempotency records as rows. */
#include "store/idempotency.h"

#include "domain/tenant.h"

#define COLUMNS                                                                                    \
    "i.num, i.tenant, i.key, i.route, i.fingerprint, i.raw_hash, i.run_id, i.status, "             \
    "i.says_created, i.body, i.replays, i.mismatches, i.created_at, i.last_replayed_at"

static void read_row(const struct db_rows *r, struct idem_record *record)
{
    *record = (struct idem_record){
        .num = db_int(r, 0),
        .tenant = db_int(r, 1),
        .key = db_str(r, 2),
        .route = db_str(r, 3),
        .fingerprint = db_hash(r, 4),
        .raw_hash = db_hash(r, 5),
        .has_run = !db_is_null(r, 6),
        .status = (int)db_int(r, 7),
        .says_created = db_int(r, 8) != 0,
        .body = db_str(r, 9),
        .replays = db_int(r, 10),
        .mismatches = db_int(r, 11),
        .created_at = db_int(r, 12),
        .last_replayed_at = db_int_or(r, 13, -1),
    };
    if (record->has_run)
        record->run_id = db_uuid(r, 6);
}

enum err idempotency_insert(struct db *db, const struct idem_record *r)
{
    static const char SQL[] =
        "INSERT INTO idempotency (num, tenant, key, route, fingerprint, raw_hash, run_id, status,"
        " says_created, body, replays, mismatches, created_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, $11)";
    return DB_EXEC(db, SQL, NULL, DB_I(r->num), DB_I(r->tenant), DB_T(r->key), DB_T(r->route),
                   DB_H(r->fingerprint), DB_H(r->raw_hash), r->has_run ? DB_U(r->run_id) : DB_N(),
                   DB_I(r->status), DB_I(r->says_created), DB_T(r->body), DB_I(r->created_at));
}

enum err idempotency_find(struct db *db, int64_t tenant, struct str key, idem_record_each *each,
                          void *ctx)
{
    static const char SQL[] =
        "SELECT " COLUMNS " FROM idempotency i WHERE i.tenant = $1 AND i.key = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_T(key));
    if (db_next(rows)) {
        struct idem_record record;
        read_row(rows, &record);
        each(ctx, &record);
    }
    return db_rows_end(rows);
}

enum err idempotency_find_live(struct db *db, struct str tenant_id, struct str key,
                               idem_hit_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " COLUMNS ", t.idempotency_retention_ms"
                              " FROM tenants t JOIN idempotency i ON i.tenant = t.num"
                              " WHERE t.id = $1 AND i.key = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(tenant_id), DB_T(key));
    if (db_next(rows)) {
        struct idem_record record;
        read_row(rows, &record);
        each(ctx, &record, db_int_or(rows, 14, -1));
    }
    return db_rows_end(rows);
}

enum err idempotency_delete(struct db *db, int64_t num)
{
    static const char SQL[] = "DELETE FROM idempotency WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(num));
}

enum err idempotency_count(struct db *db, int64_t num, int64_t replays, int64_t mismatches,
                           int64_t at_ms)
{
    static const char SQL[] =
        "UPDATE idempotency SET replays = replays + $2, mismatches = mismatches + $3,"
        " last_replayed_at = CASE WHEN $2 > 0 THEN $4 ELSE last_replayed_at END WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(num), DB_I(replays), DB_I(mismatches), DB_I(at_ms));
}

enum err idempotency_evict(struct db *db, int64_t tenant, int64_t before_ms, int64_t limit,
                           int64_t *ret_evicted)
{
    /* Arrival order is the order of num, so the walk stops at the first record that is young enough. */
    static const char SQL_OLDEST[] = "SELECT num, created_at FROM idempotency"
                                     " WHERE num >= $1 AND num < $2 ORDER BY num LIMIT $3";
    static const char SQL_DELETE[] = "DELETE FROM idempotency WHERE num >= $1 AND num <= $2";
    int64_t first = tenant_row_first(tenant);
    struct db_rows *rows = DB_QUERY(db, SQL_OLDEST, DB_I(first), DB_I(tenant_row_end(tenant)),
                                    DB_I(limit));
    int64_t last = -1;
    while (db_next(rows) && db_int(rows, 1) < before_ms)
        last = db_int(rows, 0);
    enum err e = db_rows_end(rows);
    *ret_evicted = 0;
    if (e != ERR_OK || last < 0)
        return e;
    return DB_EXEC(db, SQL_DELETE, ret_evicted, DB_I(first), DB_I(last));
}

enum err idempotency_orphans(struct db *db, int64_t *ret_checked, int64_t *ret_orphans)
{
    static const char SQL[] =
        "SELECT count(*), COALESCE(sum(CASE WHEN r.num IS NULL THEN 1 ELSE 0 END), 0)"
        " FROM idempotency i LEFT JOIN runs r ON r.id = i.run_id WHERE i.run_id IS NOT NULL";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    if (db_next(rows)) {
        *ret_checked = db_int(rows, 0);
        *ret_orphans = db_int(rows, 1);
    }
    return db_rows_end(rows);
}
