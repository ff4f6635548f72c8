/* Idempotency records as rows. */
#include "store/idempotency.h"

#include "base/limits.h"
#include "domain/idempotency.h"
#include "store/columns.h"
#include "store/run/runs.h"

#define COLUMN_BIND_HTTP_STATUS(value) DB_I(value)
#define COLUMN_READ_HTTP_STATUS(rows, at) (int)db_int(rows, at)
#define COLUMN_KEEP_HTTP_STATUS(arena, value)

/* In the order of this machine: elsewhere it differs, and the fingerprint decides. */
#define COLUMN_BIND_RAW_HASH(value) DB_B(&(value), sizeof(value))
#define COLUMN_READ_RAW_HASH(rows, at) read_raw_hash(rows, at)
#define COLUMN_KEEP_RAW_HASH(arena, value)

#define IDEM_COLUMNS(X, p)                         \
    X(p, 1, COUNT, num, num)                       \
    X(p, 2, INT, tenant, tenant)                   \
    X(p, 3, TEXT, key, key)                        \
    X(p, 4, TEXT, route, route)                    \
    X(p, 5, HASH, fingerprint, fingerprint)        \
    X(p, 6, RAW_HASH, raw_hash, raw_hash)          \
    X(p, 7, UUID_OR_NONE, run_id, run_id)          \
    X(p, 8, HTTP_STATUS, status, status)           \
    X(p, 9, BOOL, says_created, says_created)      \
    X(p, 10, TEXT, body, body)                     \
    X(p, 11, TIME, created_at, created_at)         \
    X(p, 12, TIME_OR_NONE, expires_at, expires_at) \
    X(p, 13, TEXT, born, born)                     \
    X(p, 14, COUNT, replays, replays)              \
    X(p, 15, COUNT, mismatches, mismatches)        \
    X(p, 16, TIME_OR_NONE, last_replayed_at, last_replayed_at)
COLUMNS_NUMBERED(IDEM_COLUMNS, IDEM);

#define SELECT_RECORDS COLUMNS_SELECT(IDEM_COLUMNS, "i.") " FROM key_records i"

/* The same in the row of a run. */
#define COLUMN_BIND_MINUS(value) DB_I(-(value))
#define COLUMN_READ_MINUS(rows, at) -db_count(rows, at)
#define COLUMN_KEEP_MINUS(arena, value)

#define COLUMN_READ_COUNT_OR_ZERO(rows, at) db_count_or(rows, at, 0)
#define COLUMN_KEEP_COUNT_OR_ZERO(arena, value)

#define KEY_COLUMNS(X, p)                              \
    X(p, 1, MINUS, num, num)                           \
    X(p, 2, INT, tenant, tenant)                       \
    X(p, 3, TEXT, key, key)                            \
    X(p, 4, TEXT, key_route, route)                    \
    X(p, 5, UUID, id, run_id)                          \
    X(p, 6, TIME, created_at, created_at)              \
    X(p, 7, TEXT, born, born)                          \
    X(p, 8, COUNT_OR_ZERO, key_replays, replays)       \
    X(p, 9, COUNT_OR_ZERO, key_mismatches, mismatches) \
    X(p, 10, TIME_OR_NONE, key_replayed_at, last_replayed_at)
COLUMNS_NUMBERED(KEY_COLUMNS, KEY);

#define SELECT_KEYS COLUMNS_SELECT(KEY_COLUMNS, "") ", key_hashes, workflow_id FROM runs"

static uint64_t read_raw_hash(struct db_rows *rows, int at)
{
    struct str bytes = db_str(rows, at);
    uint64_t hash = 0;
    if (bytes.len == sizeof(hash))
        memcpy(&hash, bytes.ptr, sizeof(hash));
    else if (bytes.len != SHA256_LEN) /* of version 0.1.0 */
        db_damaged(rows, at);
    return hash;
}

static void read_row(struct db_rows *rows, struct idem_record *record)
{
    *record = (struct idem_record){IDEM_COLUMNS(COLUMN_READ, rows)};
    record->has_run = !uuid_is_nil(record->run_id);
    if (record->status < 200 || record->status > 299) /* only successes are stored */
        db_damaged(rows, IDEM_AT_status);
}

COLUMNS_READ_ONE(read_one, struct idem_record, IDEM_COLUMNS, read_row);

static void read_hashes(struct db_rows *rows, struct idem_record *record)
{
    struct str bytes = db_str(rows, KEY_COLUMNS_END);
    if (bytes.len != RUN_KEY_HASHES_LEN) {
        db_damaged(rows, KEY_COLUMNS_END);
        return;
    }
    memcpy(record->fingerprint.bytes, bytes.ptr, SHA256_LEN);
    memcpy(&record->raw_hash, bytes.ptr + SHA256_LEN, sizeof(record->raw_hash));
}

static void read_key_row(struct db_rows *rows, struct idem_record *record)
{
    *record = (struct idem_record){KEY_COLUMNS(COLUMN_READ, rows)};
    record->has_run = record->says_created = true;
    record->status = 200;
    record->expires_at = -1;
    read_hashes(rows, record);
    if (record->born.ptr == NULL)
        db_damaged(rows, KEY_AT_born);
}

/* The only row of a query, if there is one. The route of nearly every start need not be kept. */
static enum err read_key(struct db_rows *rows, struct arena *arena, bool *ret_found,
                         struct idem_record *ret)
{
    bool kept = true;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_key_row(rows, ret);
        if (ret->route.ptr == NULL)
            ret->route = idem_start_route(arena, db_str(rows, KEY_COLUMNS_END + 1));
        kept = KEY_COLUMNS(COLUMN_KEEP, ret) ret->route.ptr != NULL;
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && !kept ? ERR_NO_MEMORY : e;
}

/* --- records --- */

enum err idempotency_insert(struct db *db, struct idem_keys *keys, const struct idem_record *r)
{
    static const char SQL[] = COLUMNS_INSERT_WITH("key_records", IDEM_COLUMNS, "key_hash", "0");
    struct idem_record row = *r;
    if (row.num == 0)
        row.num = idem_keys_reserve(keys);
    if (!r->has_run)
        row.run_id = (struct uuid){{0}};
    enum err e = DB_EXEC(db, SQL, NULL, IDEM_COLUMNS(COLUMN_BIND, &row));
    if (e != ERR_OK)
        return e;
    return idem_keys_add(keys, r->tenant, r->key, row.num, r->expires_at >= 0);
}

struct wanted {
    struct db *db;
    int64_t tenant;
    struct str key;
    struct arena *arena;
    struct idem_record *record;
};

/* Is this row the key's? */
static enum err try_row(void *ctx, uint64_t ref, bool *ret_found)
{
    static const char SQL[] = SELECT_RECORDS " WHERE i.num = $1 AND i.tenant = $2 AND i.key = $3";
    static const char SQL_RUN[] = SELECT_KEYS " WHERE num = $1 AND tenant = $2 AND key = $3";
    const struct wanted *w = ctx;
    int64_t num = idem_ref_num(ref);
    if (num > 0)
        return read_one(DB_QUERY(w->db, SQL, DB_I(num), DB_I(w->tenant), DB_T(w->key)), w->arena,
                        ret_found, w->record);
    return read_key(DB_QUERY(w->db, SQL_RUN, DB_I(-num), DB_I(w->tenant), DB_T(w->key)), w->arena,
                    ret_found, w->record);
}

enum err idempotency_find(struct db *db, struct idem_keys *keys, int64_t tenant, struct str key,
                          struct arena *arena, bool *ret_found, struct idem_record *ret)
{
    struct wanted w = {db, tenant, key, arena, ret};
    return idem_keys_find(keys, db, tenant, key, try_row, &w, ret_found);
}

enum err idempotency_follow(struct db *db, struct idem_keys *keys, int64_t tenant, struct str key,
                            const struct key_hints *hints, struct arena *arena, bool *ret_found,
                            struct idem_record *ret)
{
    struct wanted w = {db, tenant, key, arena, ret};
    return idem_keys_follow(keys, db, hints, try_row, &w, ret_found);
}

enum err idempotency_of_run(struct db *db, int64_t run, struct arena *arena, bool *ret_found,
                            struct idem_record *ret)
{
    static const char SQL[] = SELECT_KEYS " WHERE num = $1 AND key IS NOT NULL";
    static const char SQL_NAMED[] = SELECT_RECORDS " JOIN runs r ON r.key_num = i.num"
                                                   " WHERE r.num = $1 AND i.run_id = r.id";
    enum err e = read_key(DB_QUERY(db, SQL, DB_I(run)), arena, ret_found, ret);
    if (e != ERR_OK || *ret_found)
        return e;
    return read_one(DB_QUERY(db, SQL_NAMED, DB_I(run)), arena, ret_found, ret);
}

enum err idempotency_keep_body(struct db *db, struct idem_keys *keys,
                               const struct idem_record *record, struct str body)
{
    static const char SQL[] = "UPDATE key_records SET body = $2, born = NULL WHERE num = $1";
    if (record->num > 0)
        return DB_EXEC(db, SQL, NULL, DB_I(record->num), DB_T(body));
    struct idem_record kept = *record;
    kept.num = 0;
    kept.body = body;
    kept.born = STR_NONE;
    enum err e = idempotency_delete(db, record->num);
    return e == ERR_OK ? idempotency_insert(db, keys, &kept) : e;
}

enum err idempotency_delete(struct db *db, int64_t num)
{
    static const char SQL[] = "DELETE FROM key_records WHERE num = $1";
    static const char SQL_RUN[] =
        "UPDATE runs SET key = NULL, key_route = NULL, key_hashes = NULL, born = NULL,"
        " key_replays = NULL, key_mismatches = NULL, key_replayed_at = NULL WHERE num = $1";
    return num > 0 ? DB_EXEC(db, SQL, NULL, DB_I(num)) : DB_EXEC(db, SQL_RUN, NULL, DB_I(-num));
}

enum err idempotency_count(struct db *db, int64_t num, int64_t replays, int64_t mismatches,
                           int64_t at_ms)
{
    static const char SQL[] =
        "UPDATE key_records SET replays = replays + $2, mismatches = mismatches + $3,"
        " last_replayed_at = CASE WHEN $2 > 0 THEN $4 ELSE last_replayed_at END WHERE num = $1";
    static const char SQL_RUN[] =
        "UPDATE runs SET key_replays = COALESCE(key_replays, 0) + $2,"
        " key_mismatches = COALESCE(key_mismatches, 0) + $3,"
        " key_replayed_at = CASE WHEN $2 > 0 THEN $4 ELSE key_replayed_at END"
        " WHERE num = $1 AND key IS NOT NULL";
    return DB_EXEC(db, num > 0 ? SQL : SQL_RUN, NULL, DB_I(num > 0 ? num : -num), DB_I(replays),
                   DB_I(mismatches), DB_I(at_ms));
}

enum err idempotency_evict(struct db *db, int64_t now_ms, int64_t limit, int64_t *ret_evicted)
{
    static const char SQL[] = "DELETE FROM key_records WHERE num IN (SELECT num FROM key_records"
                              " WHERE expires_at <= $1 ORDER BY expires_at, num LIMIT $2)";
    return DB_EXEC(db, SQL, ret_evicted, DB_I(now_ms), DB_I(limit));
}

/* --- for doctor --- */

enum { ORPHANS_PAGE = 256 };

struct numbered_run {
    int64_t num; /* of the record */
    struct uuid run_id;
};

/* Keys whose run is not kept forever may outlive it: they are skipped, and so are those of a tenant
 * that has removed runs at some time, as far as its earlier settings tell. */
static enum err next_run_ids(struct db *db, int64_t after, struct numbered_run *out,
                             size_t *ret_count)
{
    static const char SQL[] =
        "SELECT i.num, i.run_id FROM key_records i JOIN tenants t ON t.num = i.tenant"
        " WHERE i.num > $1 AND i.run_id IS NOT NULL AND t.run_retention_ms IS NULL"
        " AND t.settings_version <= $3 AND NOT EXISTS (SELECT 1 FROM tenant_settings s"
        " WHERE s.tenant = t.num AND s.settings NOT LIKE '%\"run_retention_s\":null%')"
        " ORDER BY i.num LIMIT $2";
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_I(after), DB_I(ORPHANS_PAGE), DB_I(SETTINGS_KEPT_MAX));
    size_t count = 0;
    for (; db_next(rows); count++) {
        out[count] = (struct numbered_run){db_int(rows, 0), db_uuid(rows, 1)};
        (void)db_skip_damaged(rows); /* it is the id of no run */
    }
    *ret_count = count;
    return db_rows_end(rows);
}

static enum err run_exists(struct db *db, struct uuid id, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM runs WHERE num = $1 AND id = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(uuid_time(id)), DB_U(id));
    *ret = db_next(rows);
    return db_rows_end(rows);
}

enum err idempotency_orphans(struct db *db, int64_t *ret_checked, int64_t *ret_orphans)
{
    struct numbered_run page[ORPHANS_PAGE];
    size_t count;
    int64_t after = 0;
    *ret_checked = *ret_orphans = 0;
    do {
        enum err e = next_run_ids(db, after, page, &count);
        for (size_t i = 0; i < count && e == ERR_OK; i++) {
            bool exists = false;
            e = run_exists(db, page[i].run_id, &exists);
            after = page[i].num;
            ++*ret_checked;
            *ret_orphans += !exists;
        }
        if (e != ERR_OK)
            return e;
    } while (count == ORPHANS_PAGE);
    return ERR_OK;
}

enum err idempotency_doubles(struct db *db, int64_t *ret_doubles)
{
    static const char SQL[] = "SELECT count(*) FROM (SELECT 1 FROM idempotency"
                              " GROUP BY tenant, key HAVING count(*) > 1) AS doubles";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret_doubles = db_next(rows) ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}
