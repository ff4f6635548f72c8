/* The part of the store that is the same for all engines: choosing one, the rules of use, typed
 * columns and damage. */
#include "store/db.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/claim_queues.h"
#include "store/db_driver.h"
#include "store/row_cache.h"

/* --- opening --- */

static enum err unknown_scheme(const struct db_config *config, struct problem *p)
{
    char forms[128] = "";
    for (size_t i = 0; DB_ENGINES[i] != NULL; i++) {
        size_t used = strlen(forms);
        (void)snprintf(forms + used, sizeof(forms) - used, "%s%s", i > 0 ? " or " : "",
                       DB_ENGINES[i]->form);
    }
    return problem_set(p, ERR_BAD_REQUEST, "The store must be given as %s, not \"%.*s\"", forms,
                       STR_ARG(config->url));
}

/* A connection works without, only slower. */
static void remember(struct db *db)
{
    db->row_cache = row_cache_new();
    db->claim_queues = claim_queues_new();
}

enum err db_open(const struct db_config *config, struct problem *p, struct db **ret)
{
    for (size_t i = 0; DB_ENGINES[i] != NULL; i++) {
        struct str scheme = DB_ENGINES[i]->scheme;
        if (!str_starts_with(config->url, scheme) || config->url.len == scheme.len)
            continue;
        struct str address = {config->url.ptr + scheme.len, config->url.len - scheme.len};
        enum err e = DB_ENGINES[i]->open(config, address, p, ret);
        if (e == ERR_OK && config->access == DB_WRITER && db_is_only_writer(*ret))
            remember(*ret);
        return e;
    }
    return unknown_scheme(config, p);
}

enum err db_refuse_copy(struct problem *p)
{
    return problem_set(
        p, ERR_STORE_FAILED,
        "The store is an unfinished copy. Run the same `pawl migrate` again to finish "
        "it.");
}

void db_close(struct db *db)
{
    if (db == NULL)
        return;
    row_cache_written(db->row_cache); /* a transaction that is open is rolled back */
    row_cache_free(db->row_cache);
    db->row_cache = NULL;
    claim_queues_free(db->claim_queues);
    db->claim_queues = NULL;
    db->ops->close(db);
}

struct row_cache *db_row_cache(const struct db *db)
{
    return db->row_cache;
}

struct claim_queues *db_claim_queues(const struct db *db)
{
    return db->claim_queues;
}

/* What is remembered may come from a transaction that is not committed. */
static void forget(struct db *db)
{
    db->flush = NULL;
    row_cache_written(db->row_cache);
    row_cache_clear(db->row_cache);
    claim_queues_clear(db->claim_queues);
}

struct db_numbers db_numbers(const struct db *db)
{
    return db->numbers.step > 0 ? db->numbers : (struct db_numbers){1, 0};
}

int64_t db_numbers_from(struct db_numbers n, int64_t least)
{
    assert(least >= 0 && n.rest >= 0 && n.rest < n.step);
    return least + (n.rest - least % n.step + n.step) % n.step;
}

const char *db_engine_name(const struct db *db)
{
    return db->ops->name;
}

const char *db_engine_name_at(size_t i)
{
    return DB_ENGINES[i] != NULL ? DB_ENGINES[i]->name : NULL;
}

/* --- statements --- */

enum err db_exec_beside(struct db *db, const char *sql, const struct db_value *values, size_t count,
                        int64_t *ret_changed)
{
    return db->ops->exec(db, sql, values, count, ret_changed);
}

enum err db_exec_values(struct db *db, const char *sql, const struct db_value *values, size_t count,
                        int64_t *ret_changed)
{
    enum err e = db_flush(db);
    return e == ERR_OK ? db->ops->exec(db, sql, values, count, ret_changed) : e;
}

struct db_rows *db_query_values(struct db *db, const char *sql, const struct db_value *values,
                                size_t count)
{
    enum err e = db_flush(db);
    struct db_rows *rows = db->ops->query(db, sql, values, count);
    if (rows->err == ERR_OK)
        rows->err = e;
    return rows;
}

/* --- rows that are written later --- */

bool db_writes_later(const struct db *db)
{
    return db->in_transaction && db->row_cache != NULL;
}

void db_flush_with(struct db *db, db_flush_rows *flush)
{
    assert(db_writes_later(db) && (db->flush == NULL || db->flush == flush));
    db->flush = flush;
    db->changes_to_come++;
}

enum err db_flush(struct db *db)
{
    db_flush_rows *flush = db->flush;
    if (flush == NULL)
        return ERR_OK;
    int64_t before = db->ops->changes(db);
    db->flush = NULL; /* its own statements need no flush */
    enum err e = flush(db);
    db->changes_to_come -= db->ops->changes(db) - before; /* each was counted when it was made */
    return e;
}

bool db_next(struct db_rows *rows)
{
    assert(rows->open);
    return rows->err == ERR_OK && rows->db->ops->next(rows);
}

enum err db_rows_end(struct db_rows *rows)
{
    assert(rows->open);
    rows->open = false;
    enum err e = rows->err;
    rows->db->ops->end(rows);
    return e;
}

/* --- damage --- */

/* What names the row in the log: its first columns, which are its key in every statement. */
static void describe_row(struct db_rows *rows, struct buf *out)
{
    const struct db_ops *ops = rows->db->ops;
    int columns = MIN(ops->column_count(rows), 3);
    for (int i = 0; i < columns; i++) {
        struct db_value v = ops->column(rows, i);
        buf_printf(out, "%s%s=", i > 0 ? " " : "", ops->column_name(rows, i));
        if (v.kind == DB_INT)
            buf_put_i64(out, v.number);
        else if (v.kind == DB_BLOB)
            buf_put_hex(out, v.bytes.ptr, MIN(v.bytes.len, (size_t)32));
        else if (v.kind == DB_TEXT)
            buf_printf(out, "%.*s", (int)MIN(v.bytes.len, (size_t)64), v.bytes.ptr);
    }
}

void db_damaged(struct db_rows *rows, int column)
{
    if (rows->err != ERR_OK)
        return;
    rows->err = ERR_DAMAGED;
    struct buf row;
    buf_init(&row, KIB);
    describe_row(rows, &row);
    LOG(LOG_ERROR, "a stored object is damaged",
        LOG_S("row", buf_ok(&row) ? buf_str(&row) : STR_NONE),
        LOG_Z("column", rows->db->ops->column_name(rows, column)), LOG_Z("statement", rows->sql));
    buf_release(&row);
}

void db_understood(struct db_rows *rows, int column, enum err e)
{
    if (e == ERR_DAMAGED)
        db_damaged(rows, column);
    else if (rows->err == ERR_OK)
        rows->err = e;
}

bool db_is_whole(const struct db_rows *rows)
{
    return rows->err != ERR_DAMAGED;
}

bool db_skip_damaged(struct db_rows *rows)
{
    if (rows->err != ERR_DAMAGED)
        return false;
    rows->err = ERR_OK;
    return true;
}

unsigned db_known(struct db_rows *rows, int column, unsigned value, unsigned count)
{
    if (value < count)
        return value;
    db_damaged(rows, column);
    return 0;
}

/* --- typed columns: one call of the driver each --- */

static struct db_value column_of(struct db_rows *rows, int column)
{
    return rows->db->ops->column(rows, column);
}

struct db_value db_value_at(struct db_rows *rows, int column)
{
    return column_of(rows, column);
}

bool db_is_null(struct db_rows *rows, int column)
{
    return column_of(rows, column).kind == DB_NULL;
}

/* An integer, or `otherwise` for null. */
static int64_t int_of(struct db_rows *rows, int column, int64_t otherwise)
{
    struct db_value v = column_of(rows, column);
    if (v.kind == DB_INT)
        return v.number;
    if (v.kind == DB_NULL)
        return otherwise;
    db_damaged(rows, column);
    return 0;
}

/* An integer from first to last, or `otherwise` for null. */
static int64_t int_within(struct db_rows *rows, int column, int64_t first, int64_t last,
                          int64_t otherwise)
{
    struct db_value v = column_of(rows, column);
    if (v.kind == DB_INT && v.number >= first && v.number <= last)
        return v.number;
    if (v.kind == DB_NULL)
        return otherwise;
    db_damaged(rows, column);
    return 0;
}

int64_t db_int(struct db_rows *rows, int column)
{
    return int_of(rows, column, 0);
}

int64_t db_int_or(struct db_rows *rows, int column, int64_t when_null)
{
    return int_of(rows, column, when_null);
}

int64_t db_count(struct db_rows *rows, int column)
{
    return int_within(rows, column, 0, DB_COUNT_END - 1, 0);
}

int64_t db_count_or(struct db_rows *rows, int column, int64_t when_null)
{
    return int_within(rows, column, 0, DB_COUNT_END - 1, when_null);
}

int64_t db_time(struct db_rows *rows, int column)
{
    return int_within(rows, column, TIME_MS_MIN, TIME_MS_MAX, 0);
}

int64_t db_time_or(struct db_rows *rows, int column, int64_t when_null)
{
    return int_within(rows, column, TIME_MS_MIN, TIME_MS_MAX, when_null);
}

struct str db_str(struct db_rows *rows, int column)
{
    struct db_value v = column_of(rows, column);
    if (v.kind == DB_TEXT || v.kind == DB_BLOB)
        return v.bytes;
    if (v.kind == DB_NULL)
        return STR_NONE;
    db_damaged(rows, column);
    return STR("");
}

/* A fixed number of bytes. */
static void copy_bytes(struct db_rows *rows, int column, const struct db_value *v, void *out,
                       size_t len)
{
    if ((v->kind == DB_BLOB || v->kind == DB_TEXT) && v->bytes.len == len)
        memcpy(out, v->bytes.ptr, len);
    else
        db_damaged(rows, column);
}

struct uuid db_uuid(struct db_rows *rows, int column)
{
    struct uuid id = {{0}};
    struct db_value v = column_of(rows, column);
    copy_bytes(rows, column, &v, id.bytes, sizeof(id.bytes));
    return id;
}

struct uuid db_uuid_or_nil(struct db_rows *rows, int column)
{
    struct uuid id = {{0}};
    struct db_value v = column_of(rows, column);
    if (v.kind != DB_NULL)
        copy_bytes(rows, column, &v, id.bytes, sizeof(id.bytes));
    return id;
}

struct sha256 db_hash(struct db_rows *rows, int column)
{
    struct sha256 hash = {{0}};
    struct db_value v = column_of(rows, column);
    copy_bytes(rows, column, &v, hash.bytes, sizeof(hash.bytes));
    return hash;
}

bool db_is_only_writer(const struct db *db)
{
    return db->ops->is_only_writer(db);
}

struct db_rows *db_schema(struct db *db)
{
    return db_query_values(db, db->ops->schema_sql, NULL, 0);
}

/* --- transactions --- */

enum err db_begin(struct db *db)
{
    enum err e = db->ops->begin(db);
    db->in_transaction = e == ERR_OK;
    return e;
}

/* A row could not be written: nothing is committed. */
static enum err abort_commit(struct db *db, enum err e)
{
    db->ops->rollback(db);
    db->outcome = e == ERR_STORE_FAILED ? DB_IN_DOUBT : DB_ABORTED;
    return e;
}

enum err db_commit(struct db *db)
{
    enum err e = db_flush(db);
    e = e == ERR_OK ? db->ops->commit(db, &db->outcome) : abort_commit(db, e);
    db->in_transaction = false;
    assert((e == ERR_OK) == (db->outcome == DB_COMMITTED));
    assert((e == ERR_STORE_FAILED) == (db->outcome == DB_FENCED || db->outcome == DB_IN_DOUBT));
    if (e != ERR_OK)
        forget(db);
    return e;
}

enum err db_commit_now(struct db *db)
{
    db->commits_now = true;
    enum err e = db_commit(db);
    db->commits_now = false;
    return e;
}

enum err db_sync(struct db *db)
{
    return db->ops->sync != NULL ? db->ops->sync(db) : ERR_OK;
}

enum db_outcome db_commit_outcome(const struct db *db)
{
    return db->outcome;
}

void db_rollback(struct db *db)
{
    forget(db);
    db->in_transaction = false;
    db->ops->rollback(db);
}

int64_t db_changes(const struct db *db)
{
    return db->ops->changes(db) + db->changes_to_come;
}

enum err db_snapshot_begin(struct db *db, int64_t ms)
{
    return db->ops->snapshot_begin(db, ms);
}

void db_snapshot_end(struct db *db)
{
    db->ops->snapshot_end(db);
}

/* --- what an engine may lack --- */

bool db_has_log(const struct db *db)
{
    return db->ops->log != NULL;
}

bool db_wants_housekeeping(const struct db *db)
{
    return db->ops->log != NULL && db->ops->log->wants_housekeeping(db);
}

enum err db_housekeep(struct db *db)
{
    assert(db_has_log(db));
    return db->ops->log->housekeep(db);
}

int64_t db_log_bytes(const struct db *db)
{
    assert(db_has_log(db));
    return db->ops->log->bytes(db);
}

bool db_has_integrity_check(const struct db *db)
{
    return db->ops->integrity_check != NULL;
}

enum err db_integrity_check(struct db *db, struct buf *found)
{
    assert(db_has_integrity_check(db));
    return db->ops->integrity_check(db, found);
}

bool db_has_backup(const struct db *db)
{
    return db->ops->backup != NULL;
}

enum err db_backup_begin(struct db *db, struct problem *p, struct db_backup **ret)
{
    assert(db_has_backup(db));
    return db->ops->backup->begin(db, p, ret);
}

enum err db_backup_step(struct db_backup *backup, bool *ret_done)
{
    return backup->db->ops->backup->step(backup, ret_done);
}

enum err db_backup_end(struct db_backup *backup, char path[static DB_PATH_MAX])
{
    return backup->db->ops->backup->end(backup, path);
}
