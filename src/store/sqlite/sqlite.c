/* The SQLite driver: WAL, synchronous=FULL, and checkpoints by the writer alone. */
#include "store/sqlite/sqlite.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_keeper.h"
#include "store/sqlite/wal_vfs.h"

#include <pthread.h>

enum {
    READER_BUSY_MS = 5000,
    PROGRESS_OPCODES = 20000, /* about a millisecond between looks at the deadline */
    CACHE_KIB_WRITER = 16 * 1024,
    CACHE_KIB_READER = 2 * 1024,
};

static struct sqlite_db *db_of(struct db *base)
{
    return CONTAINER_OF(base, struct sqlite_db, base);
}

static const struct sqlite_db *const_db_of(const struct db *base)
{
    return (const struct sqlite_db *)base; /* its first member */
}

static bool is_only_writer(const struct db *base)
{
    return const_db_of(base)->access == DB_WRITER; /* it holds the file's lock */
}

/* --- transactions --- */

static enum err simple(struct sqlite_db *db, const char *sql)
{
    return sqlite_exec(&db->base, sql, NULL, 0, NULL);
}

/* Prepared when the connection opens: without memory a transaction must end too. */
static const char ROLLBACK[] = "ROLLBACK";

static void rollback(struct db *base)
{
    struct sqlite_db *db = db_of(base);
    if (sqlite3_get_autocommit(db->conn))
        return; /* SQLite has rolled back by itself, as it does when the disk is full */
    if (simple(db, ROLLBACK) != ERR_OK)
        LOG(LOG_ERROR, "a rollback failed", LOG_Z("error", sqlite3_errmsg(db->conn)));
}

/* Makes up for a rollback that failed. */
static enum err end_old(struct sqlite_db *db)
{
    rollback(&db->base);
    return sqlite3_get_autocommit(db->conn) ? ERR_OK : ERR_NO_MEMORY;
}

static enum err begin(struct db *base)
{
    static const char SQL[] = "BEGIN IMMEDIATE";
    assert(db_of(base)->access == DB_WRITER);
    enum err e = end_old(db_of(base));
    return e == ERR_OK ? simple(db_of(base), SQL) : e;
}

/* A commit that failed for want of room, memory or a lock wrote no commit record. One that failed
 * to write or sync may have. There is one owner, who holds the lock: nobody is fenced. */
static enum err commit(struct db *base, enum db_outcome *ret_outcome)
{
    static const char SQL[] = "COMMIT";
    struct sqlite_db *db = db_of(base);
    if (db->log != NULL)
        wal_vfs_defer(db->log, !base->commits_now);
    enum err e = simple(db, SQL);
    if (db->log != NULL)
        wal_vfs_defer(db->log, false);
    *ret_outcome = e == ERR_OK ? DB_COMMITTED : e == ERR_STORE_FAILED ? DB_IN_DOUBT : DB_ABORTED;
    if (e != ERR_OK)
        rollback(base);
    return e;
}

static enum err sync_log(struct db *base)
{
    const struct sqlite_db *db = db_of(base);
    return db->log == NULL || wal_vfs_sync(db->log) == SQLITE_OK ? ERR_OK : ERR_STORE_FAILED;
}

static int64_t changes(const struct db *base)
{
    return sqlite3_total_changes64(const_db_of(base)->conn);
}

static int past_deadline(void *ctx)
{
    const struct sqlite_db *db = ctx;
    return db->deadline_ms > 0 && env_mono_ms(db->env) > db->deadline_ms;
}

static enum err snapshot_begin(struct db *base, int64_t ms)
{
    static const char SQL[] = "BEGIN";
    struct sqlite_db *db = db_of(base);
    assert(db->access == DB_READER);
    enum err e = end_old(db);
    if (e != ERR_OK)
        return e;
    db->deadline_ms = env_mono_ms(db->env) + ms;
    return simple(db, SQL);
}

static void snapshot_end(struct db *base)
{
    db_of(base)->deadline_ms = 0;
    rollback(base);
}

/* --- the file's own check --- */

static enum err integrity_check(struct db *base, struct buf *found)
{
    static const char SQL[] = "PRAGMA integrity_check(20)";
    struct db_rows *rows = db_query_values(base, SQL, NULL, 0);
    while (db_next(rows)) {
        struct str line = db_str(rows, 0);
        if (!str_is(line, "ok")) {
            buf_put(found, line);
            buf_put_char(found, '\n');
        }
    }
    return db_rows_end(rows);
}

/* --- opening and closing --- */

static void close_db(struct db *base)
{
    struct sqlite_db *db = db_of(base);
    sqlite_keeper_stop(db->keeper);
    sqlite_finalize_all(db);
    db->failed |= atomic_load(&db->marks->failed);
    if (db->failed && db->conn != NULL)
        (void)sqlite3_db_config(db->conn, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int rc = sqlite3_close(db->conn);
    assert(rc == SQLITE_OK);
    sqlite_file_unlock(db->lock_fd);
    free(db);
}

const char SQLITE_SCHEMA_SQL[] =
    "SELECT t.name, c.name, CASE c.type WHEN 'INTEGER' THEN 'int' WHEN 'TEXT' THEN 'text'"
    " WHEN 'BLOB' THEN 'blob' ELSE c.type END, c.pk"
    " FROM sqlite_schema t JOIN pragma_table_info(t.name) c"
    " WHERE t.type = 'table' AND substr(t.name, 1, 7) <> 'sqlite_' ORDER BY t.name, c.name";

static const struct db_ops OPS = {
    .name = "SQLite " SQLITE_VERSION,
    .close = close_db,
    .exec = sqlite_exec,
    .query = sqlite_query,
    .next = sqlite_next,
    .end = sqlite_end,
    .column = sqlite_column,
    .column_count = sqlite_column_count,
    .column_name = sqlite_column_name,
    .begin = begin,
    .commit = commit,
    .sync = sync_log,
    .rollback = rollback,
    .changes = changes,
    .snapshot_begin = snapshot_begin,
    .snapshot_end = snapshot_end,
    .is_only_writer = is_only_writer,
    .schema_sql = SQLITE_SCHEMA_SQL,
    .log = &SQLITE_LOG_OPS,
    .backup = &SQLITE_BACKUP_OPS,
    .integrity_check = integrity_check,
};

static enum err configure(struct sqlite_db *db, struct problem *p)
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
        (void)problem_set(p, ERR_STORE_FAILED, "Cannot set up the database: %s",
                          message != NULL ? message : sqlite3_errmsg(db->conn));
    sqlite3_free(message);
    if (rc != SQLITE_OK)
        return p->err;
    if (writer)
        sqlite_log_watch(db);
    else
        sqlite3_progress_handler(db->conn, PROGRESS_OPCODES, past_deadline, db);
    return ERR_OK;
}

/* The commits of the migrations were not deferred. A file system that cannot share memory leaves
 * SQLite without a log: then it syncs by itself. */
static void use_marks(struct sqlite_db *db)
{
    sqlite3_file *log = sqlite_file_log(db->conn);
    bool ours = log != NULL && wal_vfs_use_marks(log, db->marks);
    db->log = ours && db->marks != &db->own_marks ? log : NULL;
}

static enum err connect_file(struct sqlite_db *db, struct problem *p)
{
    bool writer = db->access == DB_WRITER;
    int flags = SQLITE_OPEN_NOMUTEX |
                (writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
    int rc = sqlite3_open_v2(db->path, &db->conn, flags, writer ? wal_vfs_name() : NULL);
    if (rc != SQLITE_OK)
        return problem_set(p, ERR_STORE_FAILED, "Cannot open %s: %s", db->path,
                           db->conn != NULL ? sqlite3_errmsg(db->conn) : "no memory");
    (void)sqlite3_extended_result_codes(db->conn, 1);
    (void)sqlite3_busy_timeout(db->conn, READER_BUSY_MS);
    if (!writer)
        return configure(db, p);
    /* Whose file it is comes before anything that would change it, as WAL mode does. */
    enum err e = sqlite_file_check_owner(db->conn, db->path, p);
    if (e == ERR_OK && db->copy != DB_COPY_TARGET && db->copy != DB_COPY_SHARD)
        e = sqlite_file_check_whole(db->conn, p);
    if (e != ERR_OK)
        return e;
    e = configure(db, p);
    if (e != ERR_OK)
        return e;
    e = sqlite_file_make_durable(db->conn, db->path, p);
    if (e == ERR_OK)
        e = sqlite_file_migrate(db->conn, p);
    if (e == ERR_OK)
        sqlite_file_reserve_index(db->conn, db->log_pages_max);
    if (e == ERR_OK)
        use_marks(db);
    db->failed |= e == ERR_STORE_FAILED;
    return e;
}

/* A writer locks the file first. */
static enum err open_file(struct sqlite_db *db, struct problem *p)
{
    if (db->access == DB_WRITER) {
        enum err e = sqlite_file_lock(db->path, p, &db->lock_fd);
        if (e != ERR_OK)
            return e;
        sqlite_file_remove_unfinished_copies(db->path);
    }
    return connect_file(db, p);
}

/* SQLite's own memory statistics take one lock for all threads at every allocation; nobody reads
 * them. */
static void configure_once(void)
{
    int rc = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    assert(rc == SQLITE_OK);
}

static enum err open_db(const struct db_config *config, struct str path, struct problem *p,
                        struct db **ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, configure_once);
    struct sqlite_db *db = calloc(1, sizeof(*db));
    if (db == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for a connection");
    if (path.len >= sizeof(db->path)) {
        free(db);
        return problem_set(p, ERR_BAD_REQUEST, "The path of the store is too long");
    }
    memcpy(db->path, path.ptr, path.len);
    db->base.ops = &OPS;
    db->access = config->access;
    db->env = config->env;
    db->copy = config->copy;
    db->lock_fd = -1;
    db->marks = config->marks != NULL ? config->marks : &db->own_marks;
    sqlite_log_init(db, config);
    enum err e = open_file(db, p);
    if (e == ERR_OK && sqlite_prepare(db, ROLLBACK) != ERR_OK)
        e = problem_set(p, ERR_NO_MEMORY, "No memory for a connection");
    if (e != ERR_OK) {
        close_db(&db->base);
        return e;
    }
    *ret = &db->base;
    return ERR_OK;
}

const struct db_engine DB_ENGINE_SQLITE = {
    {"sqlite:", 7}, "sqlite:PATH", "SQLite " SQLITE_VERSION, open_db};
