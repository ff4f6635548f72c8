/* Idempotency records as rows. */
#include "store/idempotency.h"

#include "base/limits.h"
#include "base/pages.h"
#include "domain/idempotency.h"
#include "store/columns.h"
#include "store/run/late_index.h"

#define COLUMN_BIND_HTTP_STATUS(value) DB_I(value)
#define COLUMN_READ_HTTP_STATUS(rows, at) (int)db_int(rows, at)

#define IDEM_COLUMNS(X, p)                    \
    X(p, 1, COUNT, num, num)                  \
    X(p, 2, INT, tenant, tenant)              \
    X(p, 3, TEXT, key, key)                   \
    X(p, 4, TEXT, route, route)               \
    X(p, 5, HASH, fingerprint, fingerprint)   \
    X(p, 6, HASH, raw_hash, raw_hash)         \
    X(p, 7, UUID_OR_NONE, run_id, run_id)     \
    X(p, 8, HTTP_STATUS, status, status)      \
    X(p, 9, BOOL, says_created, says_created) \
    X(p, 10, TEXT, body, body)                \
    X(p, 11, TIME, created_at, created_at)    \
    X(p, 12, TIME_OR_NONE, expires_at, expires_at)
#define IDEM_USE(X, p)                      \
    X(p, 13, COUNT, replays, replays)       \
    X(p, 14, COUNT, mismatches, mismatches) \
    X(p, 15, TIME_OR_NONE, last_replayed_at, last_replayed_at)
#define ALL_COLUMNS(X, p) IDEM_COLUMNS(X, p) IDEM_USE(X, p)
COLUMNS_NUMBERED(ALL_COLUMNS, IDEM);

#define SELECT_RECORDS COLUMNS_SELECT(ALL_COLUMNS, "i.")

static void read_row(struct db_rows *rows, struct idem_record *record)
{
    *record = (struct idem_record){ALL_COLUMNS(COLUMN_READ, rows)};
    record->has_run = !uuid_is_nil(record->run_id);
    if (record->status < 200 || record->status > 299) /* only successes are stored */
        db_damaged(rows, IDEM_AT_status);
}

/* --- the most recent --- */

/* Not a base/hash_map: there may be millions, of 16 bytes each, and all of them go at once. */
struct recent_slot {
    uint64_t hash;
    int64_t num; /* 0: free */
};

struct idem_recent {
    bool loaded;
    int64_t last_num; /* the highest number given so far */
    struct recent_slot *slots;
    size_t size; /* a power of two, at least twice the count */
    size_t count;
};

enum { RECENT_FIRST_SIZE = 8192 };

struct idem_recent *idem_recent_new(void)
{
    struct idem_recent *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->size = RECENT_FIRST_SIZE;
    r->slots = pages_new(r->size * sizeof(*r->slots));
    if (r->slots == NULL) {
        free(r);
        return NULL;
    }
    return r;
}

void idem_recent_free(struct idem_recent *r)
{
    if (r == NULL)
        return;
    pages_free(r->slots, r->size * sizeof(*r->slots));
    free(r);
}

void idem_recent_forget(struct idem_recent *r)
{
    r->loaded = false;
}

size_t idem_recent_count(const struct idem_recent *r)
{
    return r->loaded ? r->count : 0;
}

static uint64_t slot_hash(int64_t tenant, int64_t key_hash)
{
    return ((uint64_t)key_hash ^ (uint64_t)tenant * 0x9E3779B97F4A7C15u) * 0xFF51AFD7ED558CCDu;
}

static void put_slot(struct idem_recent *r, uint64_t hash, int64_t num)
{
    size_t at = (hash >> 20) & (r->size - 1);
    while (r->slots[at].num != 0)
        at = (at + 1) & (r->size - 1);
    r->slots[at] = (struct recent_slot){hash, num};
    r->count++;
}

static bool grow(struct idem_recent *r)
{
    struct recent_slot *old = r->slots;
    size_t old_size = r->size;
    struct recent_slot *slots = pages_new(old_size * 2 * sizeof(*slots));
    if (slots == NULL)
        return false;
    r->slots = slots;
    r->size = old_size * 2;
    r->count = 0;
    for (size_t i = 0; i < old_size; i++) {
        if (old[i].num != 0)
            put_slot(r, old[i].hash, old[i].num);
    }
    pages_free(old, old_size * sizeof(*old));
    return true;
}

static void empty(struct idem_recent *r)
{
    if (r->count > 0)
        memset(r->slots, 0, r->size * sizeof(*r->slots));
    r->count = 0;
}

static bool add_recent(struct idem_recent *r, uint64_t hash, int64_t num)
{
    if (r->count * 2 >= r->size && !grow(r))
        return false;
    put_slot(r, hash, num);
    r->last_num = MAX(r->last_num, num);
    return true;
}

/* Reads what the index does not have: at the start, and after a rollback. */
static enum err load_recent(struct idem_recent *r, struct db *db)
{
    static const char SQL[] = "SELECT num, tenant, key_hash FROM idempotency WHERE num > $1";
    if (r->loaded)
        return ERR_OK;
    empty(r);
    int64_t through;
    enum err e = late_index_through(db, LATE_IDEMPOTENCY, &through);
    if (e != ERR_OK)
        return e;
    /* Never back: counts for a record that is gone must not meet another one of its number. */
    r->last_num = MAX(r->last_num, through);
    bool ok = true;
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(through));
    while (ok && db_next(rows))
        ok = add_recent(r, slot_hash(db_int(rows, 1), db_int(rows, 2)), db_int(rows, 0));
    e = db_rows_end(rows);
    r->loaded = e == ERR_OK && ok;
    return e == ERR_OK && !ok ? ERR_NO_MEMORY : e;
}

enum err idem_recent_index(struct idem_recent *r, struct db *db)
{
    enum err e = load_recent(r, db);
    if (e != ERR_OK || r->count == 0)
        return e;
    e = late_index_fill(db, LATE_IDEMPOTENCY, r->last_num);
    if (e == ERR_OK)
        empty(r);
    return e;
}

/* --- records --- */

enum err idempotency_insert(struct db *db, struct idem_recent *recent, const struct idem_record *r)
{
    static const char SQL[] = COLUMNS_INSERT_WITH("idempotency", IDEM_COLUMNS,
                                                  "key_hash, replays, mismatches", "$13, 0, 0");
    enum err e = load_recent(recent, db);
    if (e != ERR_OK)
        return e;
    struct idem_record row = *r;
    row.num = recent->last_num + 1;
    if (!r->has_run)
        row.run_id = (struct uuid){{0}};
    int64_t hash = r->key_hash != 0 ? r->key_hash : idem_key_hash(r->key);
    e = DB_EXEC(db, SQL, NULL, IDEM_COLUMNS(COLUMN_BIND, &row) DB_I(hash));
    if (e != ERR_OK)
        return e;
    return add_recent(recent, slot_hash(r->tenant, hash), row.num) ? ERR_OK : ERR_NO_MEMORY;
}

/* True when there was such a record. */
static enum err find_one(struct db_rows *rows, idem_record_each *each, void *ctx, bool *ret_found)
{
    *ret_found = db_next(rows);
    if (*ret_found) {
        struct idem_record record;
        read_row(rows, &record);
        if (db_is_whole(rows))
            each(ctx, &record);
    }
    return db_rows_end(rows);
}

enum err idempotency_find_hashed(struct db *db, struct idem_recent *recent, int64_t tenant,
                                 struct str key, int64_t key_hash, idem_record_each *each,
                                 void *ctx)
{
    static const char SQL_RECENT[] =
        SELECT_RECORDS " FROM idempotency i"
                       " WHERE i.num = $1 AND i.tenant = $2 AND i.key = $3";
    static const char SQL_OLDER[] =
        SELECT_RECORDS " FROM idempotency_index x JOIN idempotency i ON i.num = x.num"
                       " WHERE x.tenant = $1 AND x.key_hash = $2 AND i.key = $3";
    enum err e = load_recent(recent, db);
    if (e != ERR_OK)
        return e;
    uint64_t hash = slot_hash(tenant, key_hash);
    bool found = false;
    size_t at = (hash >> 20) & (recent->size - 1);
    for (; recent->slots[at].num != 0 && !found; at = (at + 1) & (recent->size - 1)) {
        if (recent->slots[at].hash != hash)
            continue;
        e = find_one(DB_QUERY(db, SQL_RECENT, DB_I(recent->slots[at].num), DB_I(tenant), DB_T(key)),
                     each, ctx, &found);
        if (e != ERR_OK)
            return e;
    }
    if (found)
        return ERR_OK;
    return find_one(DB_QUERY(db, SQL_OLDER, DB_I(tenant), DB_I(key_hash), DB_T(key)), each, ctx,
                    &found);
}

enum err idempotency_find(struct db *db, struct idem_recent *recent, int64_t tenant, struct str key,
                          idem_record_each *each, void *ctx)
{
    return idempotency_find_hashed(db, recent, tenant, key, idem_key_hash(key), each, ctx);
}

enum err idempotency_find_named(struct db *db, struct str tenant_id, struct str key,
                                int64_t key_hash, idem_record_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_RECORDS " FROM tenants t"
                       " JOIN idempotency_index x ON x.tenant = t.num AND x.key_hash = $2"
                       " JOIN idempotency i ON i.num = x.num"
                       " WHERE t.id = $1 AND i.key = $3";
    bool found;
    return find_one(DB_QUERY(db, SQL, DB_T(tenant_id), DB_I(key_hash), DB_T(key)), each, ctx,
                    &found);
}

enum err idempotency_delete(struct db *db, const struct idem_record *r)
{
    static const char SQL_INDEX[] =
        "DELETE FROM idempotency_index WHERE tenant = $1 AND key_hash = $2 AND num = $3";
    static const char SQL[] = "DELETE FROM idempotency WHERE num = $1";
    enum err e =
        DB_EXEC(db, SQL_INDEX, NULL, DB_I(r->tenant), DB_I(idem_key_hash(r->key)), DB_I(r->num));
    return e == ERR_OK ? DB_EXEC(db, SQL, NULL, DB_I(r->num)) : e;
}

enum err idempotency_count(struct db *db, int64_t num, int64_t replays, int64_t mismatches,
                           int64_t at_ms)
{
    static const char SQL[] =
        "UPDATE idempotency SET replays = replays + $2, mismatches = mismatches + $3,"
        " last_replayed_at = CASE WHEN $2 > 0 THEN $4 ELSE last_replayed_at END WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(num), DB_I(replays), DB_I(mismatches), DB_I(at_ms));
}

#define EXPIRED \
    "SELECT num FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at, num LIMIT $2"

enum err idempotency_evict(struct db *db, int64_t now_ms, int64_t limit, int64_t *ret_evicted)
{
    static const char SQL_INDEX[] = "DELETE FROM idempotency_index WHERE (tenant, key_hash, num) "
                                    "IN (SELECT tenant, key_hash, num"
                                    " FROM idempotency WHERE num IN (" EXPIRED "))";
    static const char SQL[] = "DELETE FROM idempotency WHERE num IN (" EXPIRED ")";
    enum err e = DB_EXEC(db, SQL_INDEX, NULL, DB_I(now_ms), DB_I(limit));
    return e == ERR_OK ? DB_EXEC(db, SQL, ret_evicted, DB_I(now_ms), DB_I(limit)) : e;
}

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
        "SELECT i.num, i.run_id FROM idempotency i JOIN tenants t ON t.num = i.tenant"
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
