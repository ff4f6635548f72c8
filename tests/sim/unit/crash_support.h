/* What the tests of the crash file system share: a mounted disk, files as SQLite opens them, and
 * connections of SQLite alone. */
#ifndef PAWL_TESTS_SIM_CRASH_SUPPORT_H
#define PAWL_TESTS_SIM_CRASH_SUPPORT_H

#include "base/support.h"

#include "sim/crash_vfs.h"

#include <sqlite3.h>

#define CRASH_FOLDER "/crash-disk/"
#define CRASH_PATH CRASH_FOLDER "a.db"

static inline uint64_t draw_rng(void *ctx, uint64_t below)
{
    return rng_below(ctx, below);
}

static inline int disk_setup(void **state)
{
    crash_vfs_register();
    crash_vfs_seed(1);
    struct crash_disk *disk = crash_disk_new();
    crash_disk_mount(disk, CRASH_FOLDER);
    *state = disk;
    return 0;
}

static inline int disk_teardown(void **state)
{
    crash_disk_free(*state);
    return 0;
}

#define disk_test(f) cmocka_unit_test_setup_teardown(f, disk_setup, disk_teardown)

/* The next call of a kind fails so. */
static inline void fail_next(struct crash_disk *disk, enum crash_kind kind,
                             enum crash_result result)
{
    crash_disk_fail(disk, &(struct crash_fault){.kind = kind, .nth = 1, .result = result});
}

static inline void cut_and_restart(struct crash_disk *disk, enum crash_cut how, struct rng *r)
{
    crash_disk_cut(disk, how, draw_rng, r);
    crash_disk_restart(disk);
}

/* --- files --- */

static inline int try_open_file(const char *path, int flags, sqlite3_file **ret)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    assert_non_null(file);
    int rc = vfs->xOpen(vfs, path, file, flags | SQLITE_OPEN_MAIN_DB, NULL);
    if (rc == SQLITE_OK)
        *ret = file;
    else
        free(file);
    return rc;
}

static inline sqlite3_file *open_file(const char *path)
{
    sqlite3_file *file = NULL;
    int rc = try_open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &file);
    assert_int_equal(rc, SQLITE_OK);
    assert(file != NULL);
    return file;
}

static inline void close_file(sqlite3_file *file)
{
    assert_int_equal(file->pMethods->xClose(file), SQLITE_OK);
    free(file);
}

static inline int write_at(sqlite3_file *file, const char *text, int64_t offset)
{
    return file->pMethods->xWrite(file, text, (int)strlen(text), offset);
}

static inline int sync_file(sqlite3_file *file)
{
    return file->pMethods->xSync(file, SQLITE_SYNC_FULL);
}

/* The whole file as a reader sees it. */
static inline void assert_file(const struct crash_disk *disk, const char *name,
                               const char *expected)
{
    size_t len = 0;
    const char *bytes = crash_disk_read_file(disk, name, &len);
    if (bytes == NULL)
        fail_msg("there is no file %s", name);
    assert_str(((struct str){bytes, len}), expected);
}

static inline bool has_file(const struct crash_disk *disk, const char *name)
{
    size_t len = 0;
    return crash_disk_read_file(disk, name, &len) != NULL;
}

/* --- SQLite alone --- */

static inline int sql_try(sqlite3 *conn, const char *sql)
{
    return sqlite3_exec(conn, sql, NULL, NULL, NULL);
}

static inline void sql(sqlite3 *conn, const char *text)
{
    if (sql_try(conn, text) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(conn));
}

static inline sqlite3 *sql_open(const char *path)
{
    sqlite3 *conn = NULL;
    if (sqlite3_open_v2(path, &conn, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        fail_msg("SQLite cannot open %s", path);
    return conn;
}

static inline void sql_close(sqlite3 *conn)
{
    assert_int_equal(sqlite3_close(conn), SQLITE_OK);
}

static inline int64_t sql_number(sqlite3 *conn, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(conn, text, -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW)
        fail_msg("%s: %s", text, sqlite3_errmsg(conn));
    int64_t number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

static inline bool sql_is_whole(sqlite3 *conn)
{
    sqlite3_stmt *stmt = NULL;
    bool whole = sqlite3_prepare_v2(conn, "PRAGMA integrity_check", -1, &stmt, NULL) == SQLITE_OK &&
                 sqlite3_step(stmt) == SQLITE_ROW &&
                 strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") == 0;
    (void)sqlite3_finalize(stmt);
    return whole;
}

#endif
