/* Idempotency records as rows. */
#include "store/idempotency.h"

#include "base/limits.h"
#include "base/log.h"
#include "domain/idempotency.h"
#include "store/columns.h"
#include "store/secrets.h"

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
    X(p, 13, TEXT, born, born)
#define IDEM_USE(X, p)                      \
    X(p, 14, COUNT, replays, replays)       \
    X(p, 15, COUNT, mismatches, mismatches) \
    X(p, 16, TIME_OR_NONE, last_replayed_at, last_replayed_at)
#define ALL_COLUMNS(X, p) IDEM_COLUMNS(X, p) IDEM_USE(X, p)
COLUMNS_NUMBERED(ALL_COLUMNS, IDEM);

#define SELECT_RECORDS COLUMNS_SELECT(ALL_COLUMNS, "i.")

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
    *record = (struct idem_record){ALL_COLUMNS(COLUMN_READ, rows)};
    record->has_run = !uuid_is_nil(record->run_id);
    if (record->status < 200 || record->status > 299) /* only successes are stored */
        db_damaged(rows, IDEM_AT_status);
}

COLUMNS_READ_ONE(read_one, struct idem_record, ALL_COLUMNS, read_row);

/* --- the index --- */

#define IDEM_SECRET "idempotency" /* the name of the secret that keys are hashed with */

enum { CATCH_UP_KEYS = 64 * KEY_SEGMENT_KEYS }; /* of one segment, when an old file is indexed */

struct idem_keys {
    struct key_index *index;
    struct siphash_key raw_secret; /* of idem_keys_raw_hash() */
    int64_t last_num;              /* the highest number given so far */
};

/* What the index says of a key: the number of its row, and whether the row may go some day. */
static uint64_t ref_of(int64_t num, bool may_go)
{
    return (uint64_t)num << 1 | may_go;
}

static int64_t num_of(uint64_t ref)
{
    return (int64_t)(ref >> 1);
}

struct idem_keys *idem_keys_new(void)
{
    struct idem_keys *keys = calloc(1, sizeof(*keys));
    if (keys == NULL)
        return NULL;
    keys->index = key_index_new();
    if (keys->index == NULL) {
        free(keys);
        return NULL;
    }
    return keys;
}

void idem_keys_free(struct idem_keys *keys)
{
    if (keys == NULL)
        return;
    key_index_free(keys->index);
    free(keys);
}

void idem_keys_commit(struct idem_keys *keys)
{
    key_index_commit(keys->index);
}

void idem_keys_forget(struct idem_keys *keys)
{
    key_index_roll_back(keys->index); /* last_num stays: a number is never given twice */
}

uint64_t idem_keys_raw_hash(const struct idem_keys *keys, struct str route, struct str body)
{
    return idem_raw_hash(keys->raw_secret, route, body);
}

size_t idem_keys_unsealed(const struct idem_keys *keys)
{
    return key_index_tail(keys->index);
}

/* --- filling it --- */

static enum err read_through(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT through FROM indexed WHERE name = 'idempotency'";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

static enum err set_through(struct db *db, int64_t num)
{
    static const char SQL[] = "UPDATE indexed SET through = $1 WHERE name = 'idempotency'";
    return DB_EXEC(db, SQL, NULL, DB_I(num));
}

/* Entries of the next rows, in the order of their numbers; *through moves on. */
static enum err read_entries(struct idem_keys *keys, struct db *db, int64_t *through,
                             struct key_entries *out)
{
    static const char SQL[] = "SELECT num, tenant, key, expires_at FROM idempotency"
                              " WHERE num > $1 ORDER BY num LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(*through), DB_I(CATCH_UP_KEYS));
    enum err e = ERR_OK;
    out->count = 0;
    while (e == ERR_OK && db_next(rows)) {
        int64_t num = db_count(rows, 0);
        uint64_t hash = key_index_hash(keys->index, db_int(rows, 1), db_str(rows, 2));
        if (!db_skip_damaged(rows))
            e = key_entries_add(out, (struct key_entry){hash, ref_of(num, !db_is_null(rows, 3))});
        *through = MAX(*through, num);
    }
    enum err ended = db_rows_end(rows);
    keys->last_num = MAX(keys->last_num, *through);
    return e == ERR_OK ? ended : e;
}

static enum err add_to_tail(struct idem_keys *keys, const struct key_entries *list)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < list->count && e == ERR_OK; i++)
        e = key_index_add(keys->index, list->at[i].hash, list->at[i].ref);
    return e;
}

static enum err seal_entries(struct idem_keys *keys, struct db *db, struct key_entries *list,
                             int64_t through)
{
    enum err e = key_index_add_segment(keys->index, db, list->at, list->count);
    return e == ERR_OK ? set_through(db, through) : e;
}

/* Ends a transaction in which e has come out so far. */
static enum err end_transaction(struct idem_keys *keys, struct db *db, enum err e)
{
    if (e == ERR_OK)
        e = db_commit(db);
    if (e == ERR_OK) {
        idem_keys_commit(keys);
        return ERR_OK;
    }
    db_rollback(db);
    idem_keys_forget(keys);
    return e;
}

/* In a transaction of its own, for a file that another version has written. */
static enum err catch_up(struct idem_keys *keys, struct db *db, struct key_entries *list,
                         int64_t through)
{
    LOG(LOG_INFO, "indexing idempotency keys", LOG_N("through", through));
    enum err e = db_begin(db);
    if (e == ERR_OK)
        e = seal_entries(keys, db, list, through);
    return end_transaction(keys, db, e);
}

/* What was hashed with a secret that is lost cannot be found again, and nobody can tell what a
 * damaged mark means. */
static enum err start_over(struct idem_keys *keys, struct db *db)
{
    enum err e = db_begin(db);
    if (e == ERR_OK)
        e = key_index_clear(keys->index, db);
    if (e == ERR_OK)
        e = set_through(db, 0);
    return end_transaction(keys, db, e);
}

static enum err load_index(struct idem_keys *keys, struct db *db, const struct env *env)
{
    struct secret secret;
    bool known = false;
    enum err e = secrets_find(db, STR(IDEM_SECRET), &known, &secret);
    if (e == ERR_OK && !known)
        e = secrets_get(db, env, STR(IDEM_SECRET), &secret);
    if (e == ERR_OK) {
        keys->raw_secret = siphash_key_of(secret.bytes + SIPHASH_KEY_LEN);
        e = key_index_load(keys->index, db, siphash_key_of(secret.bytes));
    }
    if (e == ERR_OK)
        e = read_through(db, &keys->last_num); /* the rows of the last numbers may be gone */
    if (e == ERR_DAMAGED) {
        keys->last_num = 0;
        known = false;
        e = ERR_OK;
    }
    return e == ERR_OK && !known ? start_over(keys, db) : e;
}

enum err idem_keys_open(struct idem_keys *keys, struct db *db, const struct env *env)
{
    struct key_entries list = {0};
    int64_t through = 0;
    enum err e = load_index(keys, db, env);
    if (e == ERR_OK)
        e = read_through(db, &through);
    bool more = e == ERR_OK;
    while (e == ERR_OK && more) {
        e = read_entries(keys, db, &through, &list);
        more = list.count > 2 * (size_t)KEY_SEGMENT_KEYS;
        if (e == ERR_OK)
            e = more ? catch_up(keys, db, &list, through) : add_to_tail(keys, &list);
    }
    if (e == ERR_OK)
        idem_keys_commit(keys);
    key_entries_release(&list);
    return e;
}

enum err idem_keys_rebuild(struct idem_keys *keys, struct db *db)
{
    struct key_entries list = {0};
    int64_t through = 0;
    enum err e = key_index_clear(keys->index, db);
    do {
        if (e == ERR_OK)
            e = read_entries(keys, db, &through, &list);
        if (e == ERR_OK && list.count > 0)
            e = seal_entries(keys, db, &list, through);
    } while (e == ERR_OK && list.count > 0);
    key_entries_release(&list);
    return e == ERR_OK ? set_through(db, keys->last_num) : e;
}

/* --- background work --- */

enum err idem_keys_seal(struct idem_keys *keys, struct db *db)
{
    enum err e = key_index_seal(keys->index, db);
    return e == ERR_OK ? set_through(db, keys->last_num) : e;
}

/* Is the row gone that the entry leads to? Asked only of those that may. */
static enum err row_is_gone(void *ctx, uint64_t ref, bool *ret, int64_t *asked)
{
    static const char SQL[] = "SELECT 1 FROM idempotency WHERE num = $1";
    struct db *db = ctx;
    *ret = false;
    if (ref != ref_of(num_of(ref), true))
        return ERR_OK;
    ++*asked;
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num_of(ref)));
    *ret = !db_next(rows);
    return db_rows_end(rows);
}

static bool is_full(const struct idem_keys *keys)
{
    return key_index_tail(keys->index) >= KEY_SEGMENT_KEYS;
}

bool idem_keys_work_is_due(const struct idem_keys *keys)
{
    return is_full(keys) || key_index_merge_is_due(keys->index);
}

enum err idem_keys_work(struct idem_keys *keys, struct db *db)
{
    return is_full(keys) ? idem_keys_seal(keys, db)
                         : key_index_merge(keys->index, db, row_is_gone, db);
}

/* --- records --- */

int64_t idem_keys_reserve(struct idem_keys *keys)
{
    return ++keys->last_num;
}

enum err idempotency_insert(struct db *db, struct idem_keys *keys, const struct idem_record *r)
{
    static const char SQL[] = COLUMNS_INSERT_WITH("idempotency", IDEM_COLUMNS,
                                                  "key_hash, replays, mismatches", "0, 0, 0");
    struct idem_record row = *r;
    if (row.num == 0)
        row.num = idem_keys_reserve(keys);
    if (!r->has_run)
        row.run_id = (struct uuid){{0}};
    enum err e = DB_EXEC(db, SQL, NULL, IDEM_COLUMNS(COLUMN_BIND, &row));
    if (e != ERR_OK)
        return e;
    return key_index_add(keys->index, key_index_hash(keys->index, r->tenant, r->key),
                         ref_of(row.num, r->expires_at >= 0));
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
    static const char SQL[] =
        SELECT_RECORDS " FROM idempotency i WHERE i.num = $1 AND i.tenant = $2 AND i.key = $3";
    const struct wanted *w = ctx;
    return read_one(DB_QUERY(w->db, SQL, DB_I(num_of(ref)), DB_I(w->tenant), DB_T(w->key)),
                    w->arena, ret_found, w->record);
}

enum err idempotency_find(struct db *db, struct idem_keys *keys, int64_t tenant, struct str key,
                          struct arena *arena, bool *ret_found, struct idem_record *ret)
{
    struct wanted w = {db, tenant, key, arena, ret};
    return key_index_find(keys->index, db, key_index_hash(keys->index, tenant, key), try_row, &w,
                          ret_found);
}

enum err idempotency_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                              struct idem_record *ret)
{
    static const char SQL[] = SELECT_RECORDS " FROM idempotency i WHERE i.num = $1";
    return read_one(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

bool idempotency_glance(struct idem_keys *keys, int64_t tenant, struct str key,
                        struct key_hints *ret)
{
    return key_index_glance(keys->index, key_index_hash(keys->index, tenant, key), ret);
}

enum err idempotency_follow(struct db *db, struct idem_keys *keys, int64_t tenant, struct str key,
                            const struct key_hints *hints, struct arena *arena, bool *ret_found,
                            struct idem_record *ret)
{
    struct wanted w = {db, tenant, key, arena, ret};
    return key_index_follow(keys->index, db, hints, try_row, &w, ret_found);
}

enum err idempotency_set_body(struct db *db, int64_t num, struct str body)
{
    static const char SQL[] = "UPDATE idempotency SET body = $2, born = NULL WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(num), DB_T(body));
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

enum err idempotency_evict(struct db *db, int64_t now_ms, int64_t limit, int64_t *ret_evicted)
{
    static const char SQL[] = "DELETE FROM idempotency WHERE num IN (SELECT num FROM idempotency"
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

static enum err is_this(void *ctx, uint64_t ref, bool *ret_found)
{
    *ret_found = *(const uint64_t *)ctx == ref;
    return ERR_OK;
}

/* Looks up the entries of all rows that the index should have. */
static enum err count_lost(struct idem_keys *keys, struct db *db, int64_t mark, int64_t *ret)
{
    struct key_entries list = {0};
    int64_t through = 0;
    enum err e = ERR_OK;
    do {
        e = read_entries(keys, db, &through, &list);
        for (size_t i = 0; i < list.count && e == ERR_OK; i++) {
            bool found = num_of(list.at[i].ref) > mark;
            if (!found)
                e = key_index_find(keys->index, db, list.at[i].hash, is_this, &list.at[i].ref,
                                   &found);
            *ret += e == ERR_DAMAGED || !found;
            e = e == ERR_DAMAGED ? ERR_OK : e;
        }
    } while (e == ERR_OK && list.count > 0 && through < mark);
    key_entries_release(&list);
    return e;
}

enum err idempotency_check_index(struct db *db, int64_t *ret_lost, int64_t *ret_broken)
{
    struct secret secret;
    int64_t mark = 0;
    *ret_lost = *ret_broken = 0;
    enum err e = read_through(db, &mark);
    bool found = false;
    if (e == ERR_OK)
        e = secrets_find(db, STR(IDEM_SECRET), &found, &secret);
    if (e != ERR_OK || !found)
        return e;
    struct idem_keys *keys = idem_keys_new();
    if (keys == NULL)
        return ERR_NO_MEMORY;
    e = key_index_load(keys->index, db, siphash_key_of(secret.bytes));
    if (e == ERR_OK)
        e = key_index_verify(keys->index, db, ret_broken);
    if (e == ERR_OK)
        e = count_lost(keys, db, mark, ret_lost);
    idem_keys_free(keys);
    return e;
}
