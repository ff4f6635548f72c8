/* The index of idempotency keys. */
#include "store/idem_keys.h"

#include "base/limits.h"
#include "base/log.h"
#include "domain/idempotency.h"
#include "store/columns.h"
#include "store/secrets.h"

#define IDEM_SECRET "idempotency" /* the name of the secret that keys are hashed with */

enum { CATCH_UP_ROWS = 64 * KEY_SEGMENT_KEYS }; /* of one segment, when an old file is indexed */

/* A table with keys. */
struct source {
    const char *mark; /* in `indexed`: keys of rows up to it are in segments */
    int sign;         /* of the numbers in the index */
    const char *sql;  /* number, tenant, key or null, null unless the row may go; above $1 */
};

static const struct source RECORDS = {
    "idempotency", 1,
    "SELECT num, tenant, key, expires_at FROM key_records WHERE num > $1 ORDER BY num LIMIT $2"};
static const struct source RUNS = {
    "run_keys", -1,
    "SELECT r.num, r.tenant, r.key, t.run_retention_ms FROM runs r LEFT JOIN tenants t"
    " ON t.num = r.tenant WHERE r.num > $1 ORDER BY r.num LIMIT $2"};

struct idem_keys {
    struct key_index *index;
    struct siphash_key raw_secret; /* of idem_keys_raw_hash() */
    struct db_numbers numbers;     /* the store's */
    int64_t last_num;              /* the highest number of a record given so far */
    int64_t last_run;              /* the highest number of a run that is committed … */
    int64_t new_run;               /* … or was made by the transaction under way */
    int64_t to_read; /* what the next start would read of the runs: rows, large ones count more */
    bool seals;      /* in the transaction under way */
};

/* What the index says of a key: the number of its row, and whether the row may go some day. */
static uint64_t ref_of(int64_t num, bool may_go)
{
    return (uint64_t)num << 1 | may_go;
}

int64_t idem_ref_num(uint64_t ref)
{
    return (int64_t)ref >> 1;
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
    keys->last_run = keys->new_run;
    if (keys->seals)
        keys->to_read = 0;
    keys->seals = false;
}

void idem_keys_forget(struct idem_keys *keys)
{
    key_index_roll_back(keys->index); /* last_num stays: a number is never given twice */
    keys->new_run = keys->last_run;   /* while the time in it may come again */
    keys->seals = false;
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

static enum err read_through(struct db *db, const struct source *s, int64_t *ret)
{
    static const char SQL[] = "SELECT through FROM indexed WHERE name = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(str_of(s->mark)));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

/* The rows of the last numbers may be gone. */
static enum err read_last_num(struct db *db, int64_t *ret)
{
    static const struct source GIVEN = {.mark = NUMBERS_MARK};
    int64_t given = 0;
    enum err e = read_through(db, &RECORDS, ret);
    if (e == ERR_OK)
        e = read_through(db, &GIVEN, &given);
    *ret = MAX(*ret, given);
    return e;
}

static enum err set_through(struct db *db, const struct source *s, int64_t num)
{
    static const char SQL[] = "UPDATE indexed SET through = $1 WHERE name = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(num), DB_T(str_of(s->mark)));
}

static enum err set_both(struct db *db, int64_t record, int64_t run)
{
    enum err e = set_through(db, &RECORDS, record);
    return e == ERR_OK ? set_through(db, &RUNS, run) : e;
}

/* Entries of the next rows, in the order of their numbers; *through moves on. *ret_rows: how many
 * there are, without those whose numbers are damaged, which lead no further. */
static enum err read_entries(struct idem_keys *keys, struct db *db, const struct source *s,
                             int64_t *through, struct key_entries *out, int64_t *ret_rows)
{
    struct db_rows *rows = DB_QUERY(db, s->sql, DB_I(*through), DB_I(CATCH_UP_ROWS));
    enum err e = ERR_OK;
    out->count = 0;
    *ret_rows = 0;
    while (e == ERR_OK && db_next(rows)) {
        int64_t num = db_count(rows, 0);
        bool has_key = !db_is_null(rows, 2);
        *ret_rows += num > *through;
        *through = MAX(*through, num);
        uint64_t hash = has_key ? key_index_hash(keys->index, db_int(rows, 1), db_str(rows, 2)) : 0;
        if (!db_skip_damaged(rows) && has_key)
            e = key_entries_add(
                out, (struct key_entry){hash, ref_of(num * s->sign, !db_is_null(rows, 3))});
    }
    enum err ended = db_rows_end(rows);
    return e == ERR_OK ? ended : e;
}

static enum err add_to_tail(struct idem_keys *keys, const struct key_entries *list)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < list->count && e == ERR_OK; i++)
        e = key_index_add(keys->index, list->at[i].hash, list->at[i].ref);
    return e;
}

static enum err seal_entries(struct idem_keys *keys, struct db *db, const struct source *s,
                             struct key_entries *list, int64_t through)
{
    enum err e = ERR_OK;
    if (list->count > 0)
        e = key_index_add_segment(keys->index, db, list->at, list->count);
    return e == ERR_OK ? set_through(db, s, through) : e;
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
static enum err catch_up(struct idem_keys *keys, struct db *db, const struct source *s,
                         struct key_entries *list, int64_t through)
{
    LOG(LOG_INFO, "indexing idempotency keys", LOG_N("through", through));
    enum err e = db_begin(db);
    if (e == ERR_OK)
        e = seal_entries(keys, db, s, list, through);
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
        e = set_both(db, 0, 0);
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
        e = read_last_num(db, &keys->last_num);
    if (e == ERR_OK)
        e = read_through(db, &RUNS, &keys->new_run);
    if (e == ERR_DAMAGED) {
        keys->last_num = keys->new_run = 0;
        known = false;
        e = ERR_OK;
    }
    return e == ERR_OK && !known ? start_over(keys, db) : e;
}

/* Keys of rows above the mark go into memory, or, when they are many, into segments. */
static enum err read_source(struct idem_keys *keys, struct db *db, const struct source *s,
                            int64_t *ret_last, int64_t *ret_rows)
{
    struct key_entries list = {0};
    int64_t through = 0;
    enum err e = read_through(db, s, &through);
    bool more = e == ERR_OK;
    while (e == ERR_OK && more) {
        e = read_entries(keys, db, s, &through, &list, ret_rows);
        more = *ret_rows > 2 * (int64_t)KEY_SEGMENT_KEYS;
        if (e == ERR_OK)
            e = more ? catch_up(keys, db, s, &list, through) : add_to_tail(keys, &list);
    }
    key_entries_release(&list);
    *ret_last = MAX(*ret_last, through);
    return e;
}

enum err idem_keys_open(struct idem_keys *keys, struct db *db, const struct env *env)
{
    int64_t rows = 0;
    keys->numbers = db_numbers(db);
    enum err e = load_index(keys, db, env);
    if (e == ERR_OK)
        e = read_source(keys, db, &RECORDS, &keys->last_num, &rows);
    if (e == ERR_OK)
        e = read_source(keys, db, &RUNS, &keys->new_run, &keys->to_read);
    if (e == ERR_OK)
        idem_keys_commit(keys);
    return e;
}

static enum err rebuild_source(struct idem_keys *keys, struct db *db, const struct source *s)
{
    struct key_entries list = {0};
    int64_t through = 0;
    int64_t rows = 0;
    enum err e = ERR_OK;
    do {
        e = read_entries(keys, db, s, &through, &list, &rows);
        if (e == ERR_OK && rows > 0)
            e = seal_entries(keys, db, s, &list, through);
    } while (e == ERR_OK && rows > 0);
    key_entries_release(&list);
    return e;
}

enum err idem_keys_rebuild(struct idem_keys *keys, struct db *db)
{
    enum err e = key_index_clear(keys->index, db);
    if (e == ERR_OK)
        e = rebuild_source(keys, db, &RECORDS);
    if (e == ERR_OK)
        e = rebuild_source(keys, db, &RUNS);
    return e == ERR_OK ? set_both(db, keys->last_num, keys->new_run) : e;
}

/* --- background work --- */

enum err idem_keys_seal(struct idem_keys *keys, struct db *db)
{
    keys->seals = true;
    enum err e = key_index_seal(keys->index, db);
    return e == ERR_OK ? set_both(db, keys->last_num, keys->new_run) : e;
}

/* Is the row gone that the entry leads to? Asked only of those that may. */
static enum err row_is_gone(void *ctx, uint64_t ref, bool *ret, int64_t *asked)
{
    static const char SQL[] = "SELECT 1 FROM key_records WHERE num = $1";
    static const char SQL_RUN[] = "SELECT 1 FROM runs WHERE num = $1 AND key IS NOT NULL";
    struct db *db = ctx;
    int64_t num = idem_ref_num(ref);
    *ret = false;
    if (ref != ref_of(num, true))
        return ERR_OK;
    ++*asked;
    struct db_rows *rows =
        num > 0 ? DB_QUERY(db, SQL, DB_I(num)) : DB_QUERY(db, SQL_RUN, DB_I(-num));
    *ret = !db_next(rows);
    return db_rows_end(rows);
}

static bool is_full(const struct idem_keys *keys)
{
    return key_index_tail(keys->index) >= KEY_SEGMENT_KEYS || keys->to_read >= KEY_ROWS_READ_MAX;
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

/* --- keys --- */

int64_t idem_keys_reserve(struct idem_keys *keys)
{
    keys->last_num = db_numbers_from(keys->numbers, keys->last_num + 1);
    return keys->last_num;
}

void idem_keys_saw_run(struct idem_keys *keys, int64_t run, size_t bytes)
{
    keys->new_run = MAX(keys->new_run, run);
    keys->to_read += 1 + (int64_t)(bytes / (4 * KIB));
}

enum err idem_keys_add(struct idem_keys *keys, int64_t tenant, struct str key, int64_t num,
                       bool may_go)
{
    return key_index_add(keys->index, key_index_hash(keys->index, tenant, key),
                         ref_of(num, may_go));
}

enum err idem_keys_find(struct idem_keys *keys, struct db *db, int64_t tenant, struct str key,
                        key_try *try, void *ctx, bool *ret_found)
{
    return key_index_find(keys->index, db, key_index_hash(keys->index, tenant, key), try, ctx,
                          ret_found);
}

bool idem_keys_glance(struct idem_keys *keys, int64_t tenant, struct str key, struct key_hints *ret)
{
    return key_index_glance(keys->index, key_index_hash(keys->index, tenant, key), ret);
}

enum err idem_keys_follow(struct idem_keys *keys, struct db *db, const struct key_hints *hints,
                          key_try *try, void *ctx, bool *ret_found)
{
    return key_index_follow(keys->index, db, hints, try, ctx, ret_found);
}

/* --- for doctor --- */

static enum err is_this(void *ctx, uint64_t ref, bool *ret_found)
{
    *ret_found = idem_ref_num(*(const uint64_t *)ctx) == idem_ref_num(ref);
    return ERR_OK;
}

/* Looks up the entries of all rows that the index should have. */
static enum err count_lost(struct idem_keys *keys, struct db *db, const struct source *s,
                           int64_t *ret)
{
    struct key_entries list = {0};
    int64_t through = 0;
    int64_t rows = 0;
    int64_t mark = 0;
    enum err e = read_through(db, s, &mark);
    while (e == ERR_OK && through < mark) {
        e = read_entries(keys, db, s, &through, &list, &rows);
        if (e != ERR_OK || rows == 0)
            break;
        for (size_t i = 0; i < list.count && e == ERR_OK; i++) {
            bool found = s->sign * idem_ref_num(list.at[i].ref) > mark;
            if (!found)
                e = key_index_find(keys->index, db, list.at[i].hash, is_this, &list.at[i].ref,
                                   &found);
            *ret += e == ERR_DAMAGED || !found;
            e = e == ERR_DAMAGED ? ERR_OK : e;
        }
    }
    key_entries_release(&list);
    return e;
}

enum err idem_keys_check(struct db *db, int64_t *ret_lost, int64_t *ret_broken)
{
    struct secret secret;
    *ret_lost = *ret_broken = 0;
    bool found = false;
    enum err e = secrets_find(db, STR(IDEM_SECRET), &found, &secret);
    if (e != ERR_OK || !found)
        return e;
    struct idem_keys *keys = idem_keys_new();
    if (keys == NULL)
        return ERR_NO_MEMORY;
    e = key_index_load(keys->index, db, siphash_key_of(secret.bytes));
    if (e == ERR_OK)
        e = key_index_verify(keys->index, db, ret_broken);
    if (e == ERR_OK)
        e = count_lost(keys, db, &RECORDS, ret_lost);
    if (e == ERR_OK)
        e = count_lost(keys, db, &RUNS, ret_lost);
    idem_keys_free(keys);
    return e;
}
