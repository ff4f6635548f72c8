/* The SQLite driver: WAL, synchronous=FULL, and checkpoints by the writer alone. */
#include "store/db.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/wal_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <unistd.h>

enum {
    STATEMENT_SLOTS_FIRST = 512, /* doubled before more than half are taken */
    PARAMETERS_MAX = 32,
    READER_BUSY_MS = 5000,
    PROGRESS_OPCODES = 20000, /* about a millisecond between looks at the deadline */
    CACHE_KIB_WRITER = 16 * 1024,
    CACHE_KIB_READER = 2 * 1024,
    BACKUP_PAGES = 256,
};

/* A prepared statement, and at the same time the cursor over its rows. */
struct db_rows {
    const char *sql;
    sqlite3_stmt *stmt;
    /* SQLite numbers $1… by first appearance; this maps ours to its. */
    int index[PARAMETERS_MAX + 1];
    int parameters;
    struct db *db;
    bool open;
    enum err err;
};

struct db {
    sqlite3 *conn;
    char path[4096];
    enum db_access access;
    const struct env *env;
    int lock_fd;
    bool failed; /* nobody can tell what is on disk: the files stay as they are */
    int64_t log_pages;
    int64_t log_pages_max;
    int64_t deadline_ms;
    struct db_rows **statements; /* by the address of their text; NULL: free */
    size_t statement_slots;
    size_t statement_count;
    /* What a query gets that could not be prepared. */
    struct db_rows broken;
};

/* --- errors --- */

static enum err err_of(struct db *db, int rc)
{
    switch (rc & 0xFF) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW:
        return ERR_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
        return ERR_STORE_BUSY;
    case SQLITE_FULL:
        return ERR_STORE_FULL;
    case SQLITE_NOMEM:
        return ERR_NO_MEMORY;
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
        LOG(LOG_ERROR, "the store failed", LOG_Z("error", sqlite3_errmsg(db->conn)),
            LOG_N("code", sqlite3_extended_errcode(db->conn)));
        db->failed = true;
        return ERR_STORE_FAILED;
    default:
        LOG(LOG_ERROR, "a statement failed", LOG_Z("error", sqlite3_errmsg(db->conn)),
            LOG_N("code", sqlite3_extended_errcode(db->conn)));
        return ERR_INTERNAL;
    }
}

/* --- statements --- */

static struct db_rows **slot_of(struct db_rows **slots, size_t count, const char *sql)
{
    size_t slot = ((uintptr_t)sql >> 4) % count;
    while (slots[slot] != NULL && slots[slot]->sql != sql)
        slot = (slot + 1) % count;
    return &slots[slot];
}

/* Makes room for one more statement, so that a search always ends at a free slot. */
static bool grow(struct db *db)
{
    if (db->statement_count < db->statement_slots / 2)
        return true;
    size_t count = MAX((size_t)STATEMENT_SLOTS_FIRST, 2 * db->statement_slots);
    struct db_rows **slots = calloc(count, sizeof(struct db_rows *));
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < db->statement_slots; i++) {
        if (db->statements[i] != NULL)
            *slot_of(slots, count, db->statements[i]->sql) = db->statements[i];
    }
    free(db->statements);
    db->statements = slots;
    db->statement_slots = count;
    return true;
}

static struct db_rows *broken(struct db *db, enum err e)
{
    db->broken = (struct db_rows){.db = db, .err = e, .open = true};
    return &db->broken;
}

static struct db_rows *compile(struct db *db, const char *sql)
{
    struct db_rows *s = calloc(1, sizeof(*s));
    if (s == NULL || !grow(db)) {
        free(s);
        return broken(db, ERR_NO_MEMORY);
    }
    int rc = sqlite3_prepare_v3(db->conn, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->stmt, NULL);
    if (rc != SQLITE_OK) {
        LOG(LOG_ERROR, "a statement does not compile", LOG_Z("sql", sql),
            LOG_Z("error", sqlite3_errmsg(db->conn)));
        free(s);
        return broken(db, err_of(db, rc));
    }
    s->sql = sql;
    s->db = db;
    s->parameters = sqlite3_bind_parameter_count(s->stmt);
    assert(s->parameters <= PARAMETERS_MAX);
    for (int i = 1; i <= s->parameters; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "$%d", i);
        s->index[i] = sqlite3_bind_parameter_index(s->stmt, name);
        assert(s->index[i] > 0);
    }
    *slot_of(db->statements, db->statement_slots, sql) = s;
    db->statement_count++;
    return s;
}

static struct db_rows *prepare(struct db *db, const char *sql)
{
    struct db_rows *known =
        db->statement_slots > 0 ? *slot_of(db->statements, db->statement_slots, sql) : NULL;
    return known != NULL ? known : compile(db, sql);
}

static int bind(struct db_rows *s, int i, const struct db_value *v)
{
    int at = s->index[i];
    switch (v->kind) {
    case DB_NULL:
        return sqlite3_bind_null(s->stmt, at);
    case DB_INT:
        return sqlite3_bind_int64(s->stmt, at, v->number);
    case DB_TEXT:
        return sqlite3_bind_text64(s->stmt, at, v->bytes.ptr, v->bytes.len, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case DB_BLOB:
        return sqlite3_bind_blob64(s->stmt, at, v->bytes.ptr, v->bytes.len, SQLITE_STATIC);
    }
    assert(!"unknown kind of value");
    return SQLITE_MISUSE;
}

struct db_rows *db_query_values(struct db *db, const char *sql, const struct db_value *values,
                                size_t count)
{
    struct db_rows *s = prepare(db, sql);
    if (s->stmt == NULL)
        return s;
    assert(!s->open);
    assert(s->parameters == (int)count && (values != NULL || count == 0));
    s->open = true;
    s->err = ERR_OK;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        rc = bind(s, (int)i + 1, &values[i]);
    if (rc != SQLITE_OK)
        s->err = err_of(db, rc);
    return s;
}

bool db_next(struct db_rows *s)
{
    assert(s->open);
    if (s->err != ERR_OK)
        return false;
    int rc = sqlite3_step(s->stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        s->err = err_of(s->db, rc);
    return rc == SQLITE_ROW;
}

enum err db_rows_end(struct db_rows *s)
{
    assert(s->open);
    s->open = false;
    if (s->stmt != NULL)
        (void)sqlite3_reset(
            s->stmt); /* repeats the error of the last step, which is kept already */
    return s->err;
}

enum err db_exec_values(struct db *db, const char *sql, const struct db_value *values, size_t count,
                        int64_t *ret_changed)
{
    struct db_rows *s = db_query_values(db, sql, values, count);
    while (db_next(s)) {
    }
    if (s->err == ERR_OK && ret_changed != NULL)
        *ret_changed = sqlite3_changes64(db->conn);
    return db_rows_end(s);
}

/* What names the row in the log: its first columns, which are its key in every statement. */
static void describe_row(struct db_rows *s, struct buf *out)
{
    int columns = MIN(sqlite3_column_count(s->stmt), 3);
    for (int i = 0; i < columns; i++) {
        int type = sqlite3_column_type(s->stmt, i);
        buf_printf(out, "%s%s=", i > 0 ? " " : "", sqlite3_column_name(s->stmt, i));
        if (type == SQLITE_INTEGER)
            buf_put_i64(out, sqlite3_column_int64(s->stmt, i));
        else if (type == SQLITE_BLOB)
            buf_put_hex(out, sqlite3_column_blob(s->stmt, i),
                        (size_t)MIN(sqlite3_column_bytes(s->stmt, i), 32));
        else if (type != SQLITE_NULL)
            buf_printf(out, "%.64s", (const char *)sqlite3_column_text(s->stmt, i));
    }
}

void db_damaged(struct db_rows *s, int column)
{
    if (s->err != ERR_OK)
        return;
    s->err = ERR_DAMAGED;
    struct buf row;
    buf_init(&row, KIB);
    describe_row(s, &row);
    LOG(LOG_ERROR, "a stored object is damaged",
        LOG_S("row", buf_ok(&row) ? buf_str(&row) : STR_NONE),
        LOG_Z("column", sqlite3_column_name(s->stmt, column)), LOG_Z("statement", s->sql));
    buf_release(&row);
}

bool db_is_whole(const struct db_rows *s)
{
    return s->err != ERR_DAMAGED;
}

bool db_skip_damaged(struct db_rows *s)
{
    if (s->err != ERR_DAMAGED)
        return false;
    s->err = ERR_OK;
    return true;
}

unsigned db_known(struct db_rows *s, int column, unsigned value, unsigned count)
{
    if (value < count)
        return value;
    db_damaged(s, column);
    return 0;
}

bool db_is_null(struct db_rows *s, int column)
{
    return sqlite3_column_type(s->stmt, column) == SQLITE_NULL;
}

int64_t db_int(struct db_rows *s, int column)
{
    int type = sqlite3_column_type(s->stmt, column);
    if (type != SQLITE_INTEGER && type != SQLITE_NULL)
        db_damaged(s, column);
    return sqlite3_column_int64(s->stmt, column);
}

int64_t db_int_or(struct db_rows *s, int column, int64_t when_null)
{
    return db_is_null(s, column) ? when_null : db_int(s, column);
}

int64_t db_count(struct db_rows *s, int column)
{
    int64_t number = db_int(s, column);
    if (number >= 0 && number < DB_COUNT_END)
        return number;
    db_damaged(s, column);
    return 0;
}

int64_t db_count_or(struct db_rows *s, int column, int64_t when_null)
{
    return db_is_null(s, column) ? when_null : db_count(s, column);
}

int64_t db_time(struct db_rows *s, int column)
{
    int64_t ms = db_int(s, column);
    if (ms >= TIME_MS_MIN && ms <= TIME_MS_MAX)
        return ms;
    db_damaged(s, column);
    return 0;
}

int64_t db_time_or(struct db_rows *s, int column, int64_t when_null)
{
    return db_is_null(s, column) ? when_null : db_time(s, column);
}

struct str db_str(struct db_rows *s, int column)
{
    int type = sqlite3_column_type(s->stmt, column);
    if (type != SQLITE_TEXT && type != SQLITE_BLOB && type != SQLITE_NULL)
        db_damaged(s, column);
    const char *text = (const char *)sqlite3_column_text(s->stmt, column);
    return (struct str){text, (size_t)sqlite3_column_bytes(s->stmt, column)};
}

/* A fixed number of bytes. */
static void copy_blob(struct db_rows *s, int column, void *out, size_t len)
{
    const void *blob = sqlite3_column_blob(s->stmt, column);
    if (blob != NULL && (size_t)sqlite3_column_bytes(s->stmt, column) == len)
        memcpy(out, blob, len);
    else
        db_damaged(s, column);
}

struct uuid db_uuid(struct db_rows *s, int column)
{
    struct uuid id = {{0}};
    copy_blob(s, column, id.bytes, sizeof(id.bytes));
    return id;
}

struct uuid db_uuid_or_nil(struct db_rows *s, int column)
{
    struct uuid nil = {{0}};
    return db_is_null(s, column) ? nil : db_uuid(s, column);
}

struct sha256 db_hash(struct db_rows *s, int column)
{
    struct sha256 hash = {{0}};
    copy_blob(s, column, hash.bytes, sizeof(hash.bytes));
    return hash;
}

bool db_is_only_writer(const struct db *db)
{
    return db->access == DB_WRITER; /* it holds the file's lock */
}

/* --- transactions --- */

static enum err simple(struct db *db, const char *sql)
{
    return db_exec_values(db, sql, NULL, 0, NULL);
}

enum err db_begin(struct db *db)
{
    static const char SQL[] = "BEGIN IMMEDIATE";
    assert(db->access == DB_WRITER);
    return simple(db, SQL);
}

enum err db_commit(struct db *db)
{
    static const char SQL[] = "COMMIT";
    enum err e = simple(db, SQL);
    if (e != ERR_OK)
        db_rollback(db);
    return e;
}

void db_rollback(struct db *db)
{
    static const char SQL[] = "ROLLBACK";
    if (sqlite3_get_autocommit(db->conn))
        return; /* SQLite has rolled back by itself, as it does when the disk is full */
    if (simple(db, SQL) != ERR_OK)
        LOG(LOG_ERROR, "a rollback failed", LOG_Z("error", sqlite3_errmsg(db->conn)));
}

int64_t db_changes(const struct db *db)
{
    return sqlite3_total_changes64(db->conn);
}

static int past_deadline(void *ctx)
{
    const struct db *db = ctx;
    return db->deadline_ms > 0 && env_mono_ms(db->env) > db->deadline_ms;
}

enum err db_snapshot_begin(struct db *db, int64_t ms)
{
    static const char SQL[] = "BEGIN";
    assert(db->access == DB_READER);
    db->deadline_ms = env_mono_ms(db->env) + ms;
    return simple(db, SQL);
}

void db_snapshot_end(struct db *db)
{
    db->deadline_ms = 0;
    db_rollback(db);
}

/* --- housekeeping --- */

static int note_log_size(void *ctx, sqlite3 *conn, const char *name, int pages)
{
    (void)conn;
    (void)name;
    struct db *db = ctx;
    db->log_pages = pages;
    return SQLITE_OK;
}

bool db_wants_housekeeping(const struct db *db)
{
    return db->log_pages >= MIN((int64_t)WAL_CHECKPOINT_PAGES, db->log_pages_max);
}

enum err db_housekeep(struct db *db)
{
    assert(db->access == DB_WRITER);
    if (!db_wants_housekeeping(db))
        return ERR_OK;
    int in_log = 0;
    int folded = 0;
    int rc = sqlite3_wal_checkpoint_v2(db->conn, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &folded);
    if (rc != SQLITE_OK && rc != SQLITE_BUSY)
        return err_of(db, rc);
    if (rc == SQLITE_OK && folded == in_log) {
        db->log_pages = 0; /* the next commit starts the log again from its beginning */
        return ERR_OK;
    }
    db->log_pages = in_log;
    return in_log > db->log_pages_max ? ERR_STORE_BUSY : ERR_OK;
}

int64_t db_log_bytes(const struct db *db)
{
    return db->log_pages * 4096;
}

enum err db_integrity(struct db *db, struct buf *found)
{
    static const char SQL[] = "PRAGMA integrity_check(20)";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    while (db_next(rows)) {
        struct str line = db_str(rows, 0);
        if (!str_is(line, "ok")) {
            buf_put(found, line);
            buf_put_char(found, '\n');
        }
    }
    return db_rows_end(rows);
}

/* --- backup --- */

struct db_backup {
    sqlite3 *copy;
    sqlite3_backup *backup;
    struct db *db;
    bool complete;
    char path[DB_PATH_MAX];
};

enum err db_backup_begin(struct db *db, struct problem *p, struct db_backup **ret)
{
    struct db_backup *b = calloc(1, sizeof(*b));
    if (b == NULL)
        return problem_set(p, ERR_NO_MEMORY, "no memory for a backup");
    b->db = db;
    bool named = sqlite_file_name_copy(db->path, db->env, b->path, sizeof(b->path));
    if (named && sqlite3_open_v2(b->path, &b->copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                 NULL) == SQLITE_OK)
        b->backup = sqlite3_backup_init(b->copy, "main", db->conn, "main");
    if (b->backup == NULL) {
        (void)problem_set(p, ERR_STORE_FULL, "cannot write a copy beside the store: %s",
                          b->copy != NULL ? sqlite3_errmsg(b->copy) : "no memory");
        (void)sqlite3_close(b->copy);
        sqlite_file_remove_copy(b->path);
        free(b);
        return p->err;
    }
    *ret = b;
    return ERR_OK;
}

enum err db_backup_step(struct db_backup *b, bool *ret_done)
{
    int rc = sqlite3_backup_step(b->backup, BACKUP_PAGES);
    b->complete = rc == SQLITE_DONE;
    *ret_done = b->complete;
    if (rc == SQLITE_OK || rc == SQLITE_DONE)
        return ERR_OK;
    return (rc & 0xFF) == SQLITE_FULL ? ERR_STORE_FULL : ERR_STORE_BUSY;
}

enum err db_backup_end(struct db_backup *b, char path[static DB_PATH_MAX])
{
    int rc = sqlite3_backup_finish(b->backup);
    (void)sqlite3_close(b->copy);
    enum err e = b->complete && rc == SQLITE_OK ? ERR_OK : ERR_STORE_BUSY;
    if (e == ERR_OK)
        memcpy(path, b->path, sizeof(b->path));
    else
        sqlite_file_remove_copy(b->path);
    free(b);
    return e;
}

/* --- opening --- */

static enum err configure(struct db *db, struct problem *p)
{
    bool writer = db->access == DB_WRITER;
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "PRAGMA temp_store=MEMORY; PRAGMA secure_delete=OFF; PRAGMA cache_size=-%d; %s",
                   writer ? CACHE_KIB_WRITER : CACHE_KIB_READER,
                   writer ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                            "PRAGMA wal_autocheckpoint=0;"
                          : "PRAGMA query_only=1;");
    char *message = NULL;
    int rc = sqlite3_exec(db->conn, sql, NULL, NULL, &message);
    if (rc != SQLITE_OK)
        (void)problem_set(p, ERR_STORE_FAILED, "cannot set up the database: %s",
                          message != NULL ? message : sqlite3_errmsg(db->conn));
    sqlite3_free(message);
    if (rc != SQLITE_OK)
        return p->err;
    if (writer)
        (void)sqlite3_wal_hook(db->conn, note_log_size, db);
    else
        sqlite3_progress_handler(db->conn, PROGRESS_OPCODES, past_deadline, db);
    return ERR_OK;
}

static enum err connect_file(struct db *db, const char *path, struct problem *p)
{
    int flags =
        SQLITE_OPEN_NOMUTEX | (db->access == DB_WRITER ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                       : SQLITE_OPEN_READONLY);
    const char *vfs = db->access == DB_WRITER ? wal_vfs_name() : NULL;
    int rc = sqlite3_open_v2(path, &db->conn, flags, vfs);
    if (rc != SQLITE_OK)
        return problem_set(p, ERR_STORE_FAILED, "cannot open %s: %s", path,
                           db->conn != NULL ? sqlite3_errmsg(db->conn) : "no memory");
    (void)sqlite3_extended_result_codes(db->conn, 1);
    (void)sqlite3_busy_timeout(db->conn, READER_BUSY_MS);
    if (db->access == DB_WRITER) {
        /* Whose file it is comes before anything that would change it, as WAL mode does. */
        enum err e = sqlite_file_check_owner(db->conn, path, p);
        if (e != ERR_OK)
            return e;
    }
    enum err e = configure(db, p);
    if (e != ERR_OK || db->access != DB_WRITER)
        return e;
    e = sqlite_file_make_durable(db->conn, path, p);
    if (e == ERR_OK)
        e = sqlite_file_migrate(db->conn, p);
    db->failed |= e == ERR_STORE_FAILED;
    return e;
}

/* SQLite's own memory statistics take one lock for all threads at every allocation; nobody reads
 * them. */
static void configure_once(void)
{
    int rc = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    assert(rc == SQLITE_OK);
}

enum err db_open(const struct db_config *config, struct problem *p, struct db **ret)
{
    static const struct str SCHEME = {"sqlite:", 7};
    if (!str_starts_with(config->url, SCHEME) || config->url.len == SCHEME.len)
        return problem_set(p, ERR_BAD_REQUEST, "a store is given as sqlite:PATH, not \"%.*s\"",
                           STR_ARG(config->url));
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, configure_once);
    struct str path = {config->url.ptr + SCHEME.len, config->url.len - SCHEME.len};
    struct db *db = calloc(1, sizeof(*db));
    if (db == NULL)
        return problem_set(p, ERR_NO_MEMORY, "no memory for a connection");
    if (path.len >= sizeof(db->path)) {
        free(db);
        return problem_set(p, ERR_BAD_REQUEST, "the path of the store is too long");
    }
    memcpy(db->path, path.ptr, path.len);
    db->access = config->access;
    db->env = config->env;
    db->lock_fd = -1;
    db->log_pages_max =
        config->log_bytes_max > 0 ? config->log_bytes_max / 4096 : (int64_t)WAL_PAGES_MAX;
    enum err e = ERR_OK;
    if (config->access == DB_WRITER)
        e = sqlite_file_lock(db->path, p, &db->lock_fd);
    if (e == ERR_OK && config->access == DB_WRITER)
        sqlite_file_remove_unfinished_copies(db->path);
    if (e == ERR_OK)
        e = connect_file(db, db->path, p);
    if (e != ERR_OK) {
        db_close(db);
        return e;
    }
    *ret = db;
    return ERR_OK;
}

void db_close(struct db *db)
{
    if (db == NULL)
        return;
    for (size_t i = 0; i < db->statement_slots; i++) {
        if (db->statements[i] == NULL)
            continue;
        assert(!db->statements[i]->open);
        (void)sqlite3_finalize(db->statements[i]->stmt);
        free(db->statements[i]);
    }
    free(db->statements);
    if (db->failed && db->conn != NULL)
        (void)sqlite3_db_config(db->conn, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int rc = sqlite3_close(db->conn);
    assert(rc == SQLITE_OK);
    sqlite_file_unlock(db->lock_fd);
    free(db);
}

const char *db_engine_name(void)
{
    return "SQLite " SQLITE_VERSION;
}
