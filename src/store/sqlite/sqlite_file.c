/* The data file's lock, its owner and its migrations. */
#include "store/sqlite/sqlite_file.h"

#include "base/limits.h"
#include "base/log.h"
#include "domain/idempotency.h"
#include "store/db_driver.h"
#include "store/migrations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

enum { APPLICATION_ID = 0x7061776C /* "pawl" */ };

enum err sqlite_file_lock(const char *path, struct problem *p, int *ret_fd)
{
    char name[4200];
    /* A link and its target are one file, so the lock stands beside the target, which a new link
     * may not have yet. */
    char *real = realpath(path, NULL);
    int made = real == NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (made >= 0) {
        close(made);
        real = realpath(path, NULL);
    }
    int len = snprintf(name, sizeof(name), "%s.lock", real != NULL ? real : path);
    free(real);
    if (len < 0 || (size_t)len >= sizeof(name))
        return problem_set(p, ERR_BAD_REQUEST, "The path of the store is too long");
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return problem_set(p, ERR_STORE_FAILED, "Cannot open %s: %s", name, strerror(errno));
    char pid[16] = "";
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t got = pread(fd, pid, sizeof(pid) - 1, 0);
        int why = errno;
        close(fd);
        if (why != EWOULDBLOCK && got < 0)
            return problem_set(p, ERR_STORE_FAILED, "Cannot lock %s: %s", name, strerror(why));
        return problem_set(p, ERR_STORE_BUSY, "%s is in use by another pawl (process %.*s)", path,
                           (int)strcspn(pid, "\n"), pid);
    }
    len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)len, 0) != len)
        LOG(LOG_WARN, "cannot write the process id to the lock file", LOG_Z("file", name));
    *ret_fd = fd;
    return ERR_OK;
}

void sqlite_file_unlock(int fd)
{
    /* The file stays: removing it would let a third process lock a file that nobody else sees. */
    if (fd >= 0)
        close(fd);
}

/* --- copies --- */

static const char COPY_MARK[] = ".pawl-unfinished-copy-";
enum { COPY_RANDOM = 16 };

bool sqlite_file_name_copy(const char *path, const struct env *env, char *out, size_t out_size)
{
    unsigned char random[COPY_RANDOM];
    char hex[2 * COPY_RANDOM + 1];
    env_random(env, random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", random[i]);
    int len = snprintf(out, out_size, "%s%s%s", path, COPY_MARK, hex);
    return len > 0 && (size_t)len < out_size;
}

/* "BASE.pawl-unfinished-copy-" and 32 hexadecimal digits. */
static bool is_copy_of(const char *name, const char *base)
{
    size_t head = strlen(base) + strlen(COPY_MARK);
    return strncmp(name, base, strlen(base)) == 0 &&
           strncmp(name + strlen(base), COPY_MARK, strlen(COPY_MARK)) == 0 &&
           strlen(name) == head + 2 * COPY_RANDOM &&
           strspn(name + head, "0123456789abcdef") == 2 * COPY_RANDOM;
}

void sqlite_file_remove_copy(const char *copy)
{
    static const char *const BESIDE[] = {"", "-journal"};
    for (size_t i = 0; i < ARRAY_LEN(BESIDE); i++) {
        char name[PATH_MAX];
        int len = snprintf(name, sizeof(name), "%s%s", copy, BESIDE[i]);
        if (len > 0 && (size_t)len < sizeof(name))
            (void)unlink(name);
    }
}

void sqlite_file_remove_unfinished_copies(const char *path)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", path);
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    DIR *dir = opendir(dirname(folder));
    if (dir == NULL)
        return;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char name[PATH_MAX];
        int len = snprintf(name, sizeof(name), "%.*s%s", (int)(base - path), path, entry->d_name);
        if (!is_copy_of(entry->d_name, base) || len < 0 || (size_t)len >= sizeof(name))
            continue;
        LOG(LOG_INFO, "removing a copy that was never finished", LOG_Z("file", name));
        sqlite_file_remove_copy(name);
    }
    (void)closedir(dir);
}

/* --- on disk --- */

/* NULL: a new store has no log yet. */
static sqlite3_file *file_of(sqlite3 *conn, int which)
{
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(conn, "main", which, (void *)&file);
    return rc == SQLITE_OK && file != NULL && file->pMethods != NULL ? file : NULL;
}

sqlite3_file *sqlite_file_log(sqlite3 *conn)
{
    return file_of(conn, SQLITE_FCNTL_JOURNAL_POINTER);
}

static int sync_file(sqlite3_file *file)
{
    return file != NULL ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : SQLITE_OK;
}

/* Writes what the file holds, byte for byte. */
static int rewrite_file(sqlite3_file *file)
{
    char part[16 * KIB];
    sqlite3_int64 size = 0;
    int rc = file->pMethods->xFileSize(file, &size);
    for (sqlite3_int64 at = 0; rc == SQLITE_OK && at < size; at += (int)sizeof(part)) {
        int len = (int)MIN((sqlite3_int64)sizeof(part), size - at);
        rc = file->pMethods->xRead(file, part, len, at);
        if (rc == SQLITE_OK)
            rc = file->pMethods->xWrite(file, part, len, at);
    }
    return rc;
}

/* The log that SQLite has recovered, on disk. After a failed sync the kernel takes pages for
 * written that are not, and another sync leaves them out: so they are written once more. Nobody
 * else may append meanwhile. */
static int make_log_durable(sqlite3 *conn)
{
    sqlite3_file *log = sqlite_file_log(conn);
    if (log == NULL)
        return SQLITE_OK;
    int rc = sqlite3_exec(conn, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = rewrite_file(log);
    if (rc == SQLITE_OK)
        rc = sync_file(log);
    int ended = sqlite3_exec(conn, "ROLLBACK", NULL, NULL, NULL);
    return rc != SQLITE_OK ? rc : ended;
}

/* The names of the files. */
static bool sync_folder(const char *path)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", path);
    int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool synced = fsync(fd) == 0 || errno == EINVAL; /* some file systems have no such thing */
    close(fd);
    return synced;
}

enum err sqlite_file_make_durable(sqlite3 *conn, const char *path, struct problem *p)
{
    int rc = make_log_durable(conn);
    /* Only then may its pages go to the main file: a power cut that took the end of the log would
     * leave older pages there beside newer ones. */
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_checkpoint_v2(conn, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc == SQLITE_OK || rc == SQLITE_BUSY)
        rc = sync_file(file_of(conn, SQLITE_FCNTL_FILE_POINTER));
    if (rc == SQLITE_OK && sync_folder(path))
        return ERR_OK;
    return problem_set(p, ERR_STORE_FAILED, "Cannot sync %s to disk (%s). Check the disk.", path,
                       rc == SQLITE_OK ? strerror(errno) : sqlite3_errstr(rc));
}

/* As SQLite's file format has it: parts of 32 KiB, each with a little less than 4096 pages. */
enum { INDEX_PART_BYTES = 32 * 1024, INDEX_PART_PAGES = 4000 };

void sqlite_file_reserve_index(sqlite3 *conn, int64_t log_pages)
{
    sqlite3_file *file = file_of(conn, SQLITE_FCNTL_FILE_POINTER);
    if (file == NULL || file->pMethods->iVersion < 2)
        return;
    int parts = (int)(log_pages / INDEX_PART_PAGES) + 1;
    for (int i = 0; i < parts; i++) {
        volatile void *part = NULL;
        int rc = file->pMethods->xShmMap(file, i, INDEX_PART_BYTES, 1, &part);
        if (rc != SQLITE_OK) {
            LOG(LOG_WARN, "no room for the index of the log: make room on the disk",
                LOG_Z("why", sqlite3_errstr(rc)));
            return;
        }
    }
}

/* --- owner and migrations --- */

static enum err pragma_int(sqlite3 *conn, const char *sql, struct problem *p, int *ret)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int(stmt, 0);
    (void)sqlite3_finalize(stmt);
    if (rc == SQLITE_ROW)
        return ERR_OK;
    return problem_set(p, ERR_STORE_FAILED, "Cannot read the database: %s", sqlite3_errmsg(conn));
}

static int newest_version(void)
{
    return MIGRATIONS_SQLITE[MIGRATIONS_SQLITE_COUNT - 1].number;
}

enum err sqlite_file_check_owner(sqlite3 *conn, const char *path, struct problem *p)
{
    int application = 0;
    int version = 0;
    int tables = 0;
    enum err e = pragma_int(conn, "PRAGMA application_id", p, &application);
    if (e == ERR_OK)
        e = pragma_int(conn, "PRAGMA user_version", p, &version);
    if (e == ERR_OK)
        e = pragma_int(conn, "SELECT count(*) FROM sqlite_schema", p, &tables);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read %s: %s", path, sqlite3_errmsg(conn));
    if (application != APPLICATION_ID && (application != 0 || version != 0 || tables != 0))
        return problem_set(p, ERR_STORE_FAILED, "%s is a database of another program", path);
    if (version > newest_version())
        return problem_set(p, ERR_STORE_FAILED,
                           "%s was written by a newer pawl (its schema is %d, pawl %s knows up to "
                           "%d). Use the newer version or restore a backup.",
                           path, version, PAWL_VERSION, newest_version());
    return ERR_OK;
}

enum err sqlite_file_check_whole(sqlite3 *conn, struct problem *p)
{
    int marks = 0;
    enum err e = pragma_int(
        conn, "SELECT count(*) FROM sqlite_schema WHERE name = '" DB_COPY_TABLE "'", p, &marks);
    return e == ERR_OK && marks > 0 ? db_refuse_copy(p) : e;
}

static enum err migrate_one(sqlite3 *conn, const struct migration *m, struct problem *p)
{
    char stamp[128];
    (void)snprintf(stamp, sizeof(stamp), "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
                   APPLICATION_ID, m->number);
    char *message = NULL;
    int rc = sqlite3_exec(conn, "BEGIN IMMEDIATE", NULL, NULL, &message);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(conn, m->sql, NULL, NULL, &message);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(conn, stamp, NULL, NULL, &message);
    if (rc == SQLITE_OK) {
        LOG(LOG_INFO, "migrated the store", LOG_N("schema", m->number), LOG_Z("name", m->name));
        return ERR_OK;
    }
    enum err e = problem_set(p, ERR_STORE_FAILED, "Migration %d (%s) failed: %s", m->number,
                             m->name, message != NULL ? message : sqlite3_errmsg(conn));
    sqlite3_free(message);
    (void)sqlite3_exec(conn, "ROLLBACK", NULL, NULL, NULL);
    return e;
}

/* pawl_key_hash(text): what migrations need to fill in and SQL cannot say. */
static void key_hash(sqlite3_context *context, int count, sqlite3_value **values)
{
    assert(count == 1);
    const char *text = (const char *)sqlite3_value_text(values[0]);
    if (text == NULL)
        sqlite3_result_null(context);
    else
        sqlite3_result_int64(
            context, idem_key_hash((struct str){text, (size_t)sqlite3_value_bytes(values[0])}));
}

static enum err add_functions(sqlite3 *conn, struct problem *p)
{
    int rc = sqlite3_create_function_v2(conn, "pawl_key_hash", 1,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                                        NULL, key_hash, NULL, NULL, NULL);
    return rc == SQLITE_OK ? ERR_OK
                           : problem_set(p, ERR_STORE_FAILED, "Cannot prepare the migration: %s",
                                         sqlite3_errmsg(conn));
}

enum err sqlite_file_migrate(sqlite3 *conn, struct problem *p)
{
    int version = 0;
    enum err e = pragma_int(conn, "PRAGMA user_version", p, &version);
    if (e == ERR_OK && version == 0) /* a new file */
        return migrate_one(conn, &NEW_FILE_SQLITE, p);
    if (e == ERR_OK && version < newest_version())
        e = add_functions(conn, p);
    for (size_t i = 0; e == ERR_OK && i < MIGRATIONS_SQLITE_COUNT; i++) {
        if (MIGRATIONS_SQLITE[i].number > version)
            e = migrate_one(conn, &MIGRATIONS_SQLITE[i], p);
    }
    return e;
}
