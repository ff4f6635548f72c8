/* The data file's lock, its owner and its migrations. */
#include "store/sqlite_file.h"

#include "base/log.h"
#include "domain/idempotency.h"
#include "store/migrations.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
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
        return problem_set(p, ERR_BAD_REQUEST, "the path of the store is too long");
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return problem_set(p, ERR_STORE_FAILED, "cannot open %s: %s", name, strerror(errno));
    char pid[16] = "";
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t got = pread(fd, pid, sizeof(pid) - 1, 0);
        int why = errno;
        close(fd);
        if (why != EWOULDBLOCK && got < 0)
            return problem_set(p, ERR_STORE_FAILED, "cannot lock %s: %s", name, strerror(why));
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

void sqlite_file_remove_old_copies(const char *path)
{
    char pattern[4200];
    int len = snprintf(pattern, sizeof(pattern), "%s.backup-????????", path);
    glob_t found;
    /* A path with characters of glob()'s own could match other files: then they stay. */
    if (len < 0 || (size_t)len >= sizeof(pattern) || strpbrk(path, "*?[\\") != NULL ||
        glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        LOG(LOG_INFO, "removing a copy that was never finished", LOG_Z("file", found.gl_pathv[i]));
        (void)unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}

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
    return problem_set(p, ERR_STORE_FAILED, "cannot read the database: %s", sqlite3_errmsg(conn));
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
        return problem_set(p, e, "cannot read %s: %s", path, sqlite3_errmsg(conn));
    if (application != APPLICATION_ID && (application != 0 || version != 0 || tables != 0))
        return problem_set(p, ERR_STORE_FAILED, "%s is a database of another program", path);
    if (version > newest_version())
        return problem_set(
            p, ERR_STORE_FAILED,
            "%s was written by a newer pawl (its schema is %d, this pawl %s knows up "
            "to %d): use that version or restore a backup",
            path, version, PAWL_VERSION, newest_version());
    return ERR_OK;
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
    enum err e = problem_set(p, ERR_STORE_FAILED, "migration %d (%s) failed: %s", m->number,
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
                           : problem_set(p, ERR_STORE_FAILED, "cannot prepare the migration: %s",
                                         sqlite3_errmsg(conn));
}

enum err sqlite_file_migrate(sqlite3 *conn, struct problem *p)
{
    int version = 0;
    enum err e = pragma_int(conn, "PRAGMA user_version", p, &version);
    if (e == ERR_OK && version < newest_version())
        e = add_functions(conn, p);
    for (size_t i = 0; e == ERR_OK && i < MIGRATIONS_SQLITE_COUNT; i++) {
        if (MIGRATIONS_SQLITE[i].number > version)
            e = migrate_one(conn, &MIGRATIONS_SQLITE[i], p);
    }
    return e;
}
