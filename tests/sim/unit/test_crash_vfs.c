/* The crash file system, file by file: what a reader sees, what a crash leaves, how calls fail. */
#include "sim/unit/crash_support.h"

/* --- files and names --- */

static void test_a_reader_sees_what_was_written_and_zeros_beyond(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(write_at(file, "hello", 0), SQLITE_OK);
    assert_int_equal(write_at(file, "HE", 0), SQLITE_OK);
    char out[8] = "xxxxxxx";
    assert_int_equal(file->pMethods->xRead(file, out, 5, 0), SQLITE_OK);
    assert_memory_equal(out, "HEllo", 5);
    assert_int_equal(file->pMethods->xRead(file, out, 8, 3), SQLITE_IOERR_SHORT_READ);
    assert_memory_equal(out, "lo\0\0\0\0\0\0", 8);
    assert_int_equal(file->pMethods->xTruncate(file, 2), SQLITE_OK);
    assert_int_equal(write_at(file, "!", 4), SQLITE_OK);
    sqlite3_int64 size = 0;
    assert_int_equal(file->pMethods->xFileSize(file, &size), SQLITE_OK);
    assert_int_equal(size, 5);
    assert_int_equal(file->pMethods->xRead(file, out, 5, 0), SQLITE_OK);
    assert_memory_equal(out, "HE\0\0!", 5);
    assert_int_equal(crash_disk_bytes(disk), 5);
    close_file(file);
}

static void count_file(void *ctx, const char *name, int64_t size)
{
    int64_t *sum = ctx;
    assert_true(strcmp(name, "a.db") == 0 || strcmp(name, "b") == 0);
    *sum += size;
}

static void test_files_are_listed_read_and_written_from_outside(void **state)
{
    struct crash_disk *disk = *state;
    crash_disk_write_file(disk, "a.db", "first", 5);
    crash_disk_write_file(disk, "a.db", "one", 3);
    crash_disk_write_file(disk, "b", "four", 4);
    int64_t sum = 0;
    crash_disk_files(disk, count_file, &sum);
    assert_int_equal(sum, 7);
    assert_file(disk, "a.db", "one");
    assert_true(crash_disk_is_synced(disk, NULL));
    assert_false(has_file(disk, "c"));
}

static void test_a_file_is_made_only_when_asked_for(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_file *file = NULL;
    assert_int_equal(try_open_file(CRASH_PATH, SQLITE_OPEN_READWRITE, &file), SQLITE_CANTOPEN);
    assert_false(has_file(disk, "a.db"));
    close_file(open_file(CRASH_PATH));
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE;
    assert_int_equal(try_open_file(CRASH_PATH, flags, &file), SQLITE_CANTOPEN);
    flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_DELETEONCLOSE;
    assert_int_equal(try_open_file(CRASH_PATH, flags, &file), SQLITE_OK);
    close_file(file);
    assert_false(has_file(disk, "a.db"));
}

static void test_deleting_and_looking_for_a_file(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    int there = -1;
    assert_int_equal(vfs->xDelete(vfs, CRASH_PATH, 0), SQLITE_IOERR_DELETE_NOENT);
    close_file(open_file(CRASH_PATH));
    assert_int_equal(vfs->xAccess(vfs, CRASH_PATH, SQLITE_ACCESS_EXISTS, &there), SQLITE_OK);
    assert_int_equal(there, 0); /* empty */
    assert_int_equal(vfs->xAccess(vfs, CRASH_PATH, SQLITE_ACCESS_READWRITE, &there), SQLITE_OK);
    assert_int_equal(there, 1);
    crash_disk_write_file(disk, "a.db", "x", 1);
    assert_int_equal(vfs->xAccess(vfs, CRASH_PATH, SQLITE_ACCESS_EXISTS, &there), SQLITE_OK);
    assert_int_equal(there, 1);
    assert_int_equal(vfs->xDelete(vfs, CRASH_PATH, 0), SQLITE_OK);
    assert_false(has_file(disk, "a.db"));
    char path[64];
    assert_int_equal(vfs->xFullPathname(vfs, CRASH_PATH, sizeof(path), path), SQLITE_OK);
    assert_string_equal(path, CRASH_PATH);
}

static void test_paths_outside_are_real_files_and_disks_are_apart(void **state)
{
    struct crash_disk *disk = *state;
    struct crash_disk *other = crash_disk_new();
    crash_disk_mount(other, "/other-disk/");
    sqlite3 *conn = sql_open("/other-disk/a.db");
    sql(conn, "CREATE TABLE t (n)");
    sql_close(conn);
    assert_true(has_file(other, "a.db"));
    assert_false(has_file(disk, "a.db"));
    char path[] = "/tmp/pawl-crash-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    conn = sql_open(path);
    sql(conn, "CREATE TABLE t (n)");
    sql_close(conn);
    char magic[6] = "";
    assert_int_equal(pread(fd, magic, sizeof(magic), 0), sizeof(magic));
    assert_memory_equal(magic, "SQLite", 6);
    close(fd);
    unlink(path);
    crash_disk_free(other);
}

/* --- what a power cut leaves --- */

static void test_what_is_synced_survives_and_the_rest_is_lost(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(write_at(file, "durable", 0), SQLITE_OK);
    assert_false(crash_disk_is_synced(disk, "a.db"));
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_true(crash_disk_is_synced(disk, "a.db"));
    assert_int_equal(write_at(file, "DUR", 0), SQLITE_OK);
    assert_int_equal(write_at(file, "lost", 7), SQLITE_OK);
    assert_int_equal(file->pMethods->xTruncate(file, 1), SQLITE_OK);
    assert_file(disk, "a.db", "D");
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_file(disk, "a.db", "durable");
    assert_true(crash_disk_is_synced(disk, NULL));
    assert_int_equal(crash_disk_counts(disk)->cuts, 1);
    assert_int_equal(crash_disk_counts(disk)->unsynced_changes_at_cut, 3);
    assert_int_equal(crash_disk_counts(disk)->unsynced_bytes_at_cut, 3 + 4 + 10);
    close_file(file);
}

static void test_a_cut_may_keep_everything(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(write_at(file, "never synced", 0), SQLITE_OK);
    assert_int_equal(file->pMethods->xTruncate(file, 5), SQLITE_OK);
    cut_and_restart(disk, CRASH_CUT_KEEP, &r);
    assert_file(disk, "a.db", "never");
    close_file(file);
}

/* Three writes in turn: which sets of them can a cut leave? Bit 3: the file is gone. */
static unsigned sets_after_cuts(enum crash_cut how, int cuts)
{
    struct rng r = {7};
    unsigned seen = 0;
    for (int i = 0; i < cuts; i++) {
        struct crash_disk *disk = crash_disk_new();
        crash_disk_mount(disk, "/sets/");
        crash_disk_write_file(disk, "f", "...", 3);
        sqlite3_file *file = open_file("/sets/f");
        for (int at = 0; at < 3; at++)
            assert_int_equal(write_at(file, "x", at), SQLITE_OK);
        cut_and_restart(disk, how, &r);
        size_t len = 0;
        const char *bytes = crash_disk_read_file(disk, "f", &len);
        assert_non_null(bytes);
        assert_int_equal(len, 3);
        unsigned set = (bytes[0] == 'x') | (bytes[1] == 'x') << 1 | (bytes[2] == 'x') << 2;
        seen |= 1u << set;
        close_file(file);
        crash_disk_free(disk);
    }
    return seen;
}

static void test_each_way_of_cutting_leaves_its_own_sets_of_writes(void **state)
{
    (void)state;
    assert_int_equal(sets_after_cuts(CRASH_CUT_DROP, 20), 1u << 0);
    assert_int_equal(sets_after_cuts(CRASH_CUT_KEEP, 20), 1u << 7);
    assert_int_equal(sets_after_cuts(CRASH_CUT_PREFIX, 100), 1u << 0 | 1u << 1 | 1u << 3 | 1u << 7);
    assert_int_equal(sets_after_cuts(CRASH_CUT_TORN_LAST, 100), 1u << 3 | 1u << 7);
    assert_int_equal(sets_after_cuts(CRASH_CUT_RANDOM, 500), 0xff); /* the last without the first */
    assert_int_equal(sets_after_cuts(CRASH_CUT_ANY, 500), 0xff);
}

enum { PAGE = 4096, SECTORS = PAGE / 512 };

/* A page of 'x' over one of '.', 100 bytes behind its beginning; then a cut. */
static const char *tear(struct crash_disk *disk, enum crash_cut how, struct rng *r, size_t *ret_len)
{
    static char page[2 * PAGE];
    memset(page, '.', sizeof(page));
    crash_disk_write_file(disk, "a.db", page, sizeof(page));
    sqlite3_file *file = open_file(CRASH_PATH);
    memset(page, 'x', PAGE);
    assert_int_equal(file->pMethods->xWrite(file, page, PAGE, 100), SQLITE_OK);
    cut_and_restart(disk, how, r);
    close_file(file);
    return crash_disk_read_file(disk, "a.db", ret_len);
}

static void test_a_torn_write_is_whole_in_each_sector(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {3};
    bool torn = false;
    for (int i = 0; i < 200; i++) {
        size_t len = 0;
        const char *bytes = tear(disk, i % 2 ? CRASH_CUT_RANDOM : CRASH_CUT_TORN_LAST, &r, &len);
        assert_int_equal(len, 2 * PAGE);
        for (size_t at = 0; at < len; at++) {
            bool written = at >= 100 && at < 100 + PAGE;
            if (!written)
                assert_int_equal(bytes[at], '.');
            else if (at % 512 != 0 && at > 100)
                assert_int_equal(bytes[at], bytes[at - 1]);
            else if (at > 100)
                torn |= bytes[at] != bytes[at - 1];
        }
    }
    assert_true(torn);
}

static void test_without_powersafe_overwrite_a_torn_sector_is_spoiled(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {3};
    crash_disk_set_options(disk, &(struct crash_options){.powersafe_overwrite = false});
    bool spoiled = false;
    for (int i = 0; i < 50; i++) {
        size_t len = 0;
        const char *bytes = tear(disk, CRASH_CUT_TORN_LAST, &r, &len);
        for (size_t at = 0; at < len; at++) {
            bool in_sectors = at < PAGE + 512;
            if (at < 100)
                spoiled |= bytes[at] != '.';
            else if (!in_sectors)
                assert_int_equal(bytes[at], '.');
        }
    }
    assert_true(spoiled);
}

static void test_a_name_is_durable_with_its_files_sync(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    sqlite3_file *file = open_file(CRASH_PATH);
    sqlite3_file *other = open_file(CRASH_FOLDER "other");
    assert_int_equal(write_at(file, "x", 0), SQLITE_OK);
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_false(crash_disk_is_synced(disk, NULL));
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_file(disk, "a.db", "x");
    assert_false(has_file(disk, "other"));
    close_file(file);
    close_file(other);
}

static void test_a_deletion_is_durable_when_the_folder_is_synced(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    crash_disk_write_file(disk, "a.db", "back again", 10);
    assert_int_equal(vfs->xDelete(vfs, CRASH_PATH, 0), SQLITE_OK);
    assert_false(crash_disk_is_synced(disk, NULL));
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_file(disk, "a.db", "back again");
    assert_int_equal(vfs->xDelete(vfs, CRASH_PATH, 1), SQLITE_OK);
    assert_true(crash_disk_is_synced(disk, NULL));
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_false(has_file(disk, "a.db"));
}

static void test_a_deleted_file_may_come_back_in_place_of_a_new_one(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    crash_disk_write_file(disk, "a.db", "old", 3);
    assert_int_equal(vfs->xDelete(vfs, CRASH_PATH, 0), SQLITE_OK);
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(write_at(file, "new", 0), SQLITE_OK);
    struct crash_disk *copy = crash_disk_copy(disk);
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_file(disk, "a.db", "old");
    assert_file(copy, "a.db", "new");
    cut_and_restart(copy, CRASH_CUT_KEEP, &r);
    assert_file(copy, "a.db", "new");
    close_file(file);
    crash_disk_free(copy);
}

static void test_a_copy_has_the_same_unsynced_changes_and_its_own_fate(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    crash_disk_write_file(disk, "a.db", "old", 3);
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(write_at(file, "new", 0), SQLITE_OK);
    struct crash_disk *copy = crash_disk_copy(disk);
    assert_int_equal(sync_file(file), SQLITE_OK);
    cut_and_restart(copy, CRASH_CUT_DROP, &r);
    assert_file(copy, "a.db", "old");
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_file(disk, "a.db", "new");
    close_file(file);
    crash_disk_free(copy);
}

static void test_a_disk_that_lies_loses_what_it_said_is_synced(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    crash_disk_set_options(disk, &(struct crash_options){.lies_about_syncs = true});
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(write_at(file, "x", 0), SQLITE_OK);
    assert_int_equal(sync_file(file), SQLITE_OK);
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_false(has_file(disk, "a.db"));
    close_file(file);
}

/* --- killed processes --- */

static void test_a_kill_keeps_what_was_not_synced(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_int_equal(write_at(file, "in the cache", 0), SQLITE_OK);
    crash_disk_kill(disk);
    crash_disk_restart(disk);
    assert_file(disk, "a.db", "in the cache");
    assert_false(crash_disk_is_synced(disk, "a.db"));
    close_file(file);
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_file(disk, "a.db", "");
}

static void test_calls_of_a_dead_process_fail_and_change_nothing(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    sqlite3_file *file = open_file(CRASH_PATH);
    const sqlite3_io_methods *m = file->pMethods;
    void volatile *region = NULL;
    assert_int_equal(write_at(file, "x", 0), SQLITE_OK);
    assert_int_equal(m->xShmMap(file, 0, 32768, 1, &region), SQLITE_OK);
    crash_disk_kill(disk);
    assert_true(crash_disk_is_down(disk));
    char byte = 0;
    sqlite3_int64 size = 0;
    int reserved = 0;
    assert_int_equal(write_at(file, "y", 0), SQLITE_IOERR_WRITE);
    assert_int_equal(m->xRead(file, &byte, 1, 0), SQLITE_IOERR_READ);
    assert_int_equal(m->xTruncate(file, 0), SQLITE_IOERR_TRUNCATE);
    assert_int_equal(sync_file(file), SQLITE_IOERR_FSYNC);
    assert_int_equal(m->xFileSize(file, &size), SQLITE_IOERR_FSTAT);
    assert_int_equal(m->xLock(file, SQLITE_LOCK_SHARED), SQLITE_IOERR_LOCK);
    assert_int_equal(m->xUnlock(file, SQLITE_LOCK_NONE), SQLITE_IOERR_UNLOCK);
    assert_int_equal(m->xCheckReservedLock(file, &reserved), SQLITE_IOERR_CHECKRESERVEDLOCK);
    assert_int_equal(m->xShmLock(file, 0, 1, SQLITE_SHM_LOCK | SQLITE_SHM_SHARED),
                     SQLITE_IOERR_SHMLOCK);
    *(char volatile *)region = 'x'; /* SQLite still has the pointer */
    assert_int_equal(m->xShmMap(file, 0, 32768, 1, &region), SQLITE_IOERR_SHMMAP);
    sqlite3_file *again = NULL;
    assert_int_equal(try_open_file(CRASH_PATH, SQLITE_OPEN_READWRITE, &again), SQLITE_CANTOPEN);
    assert_int_equal(vfs->xDelete(vfs, CRASH_PATH, 0), SQLITE_IOERR_DELETE);
    crash_disk_restart(disk);
    assert_int_equal(write_at(file, "y", 0), SQLITE_IOERR_WRITE);
    assert_file(disk, "a.db", "x");
    close_file(file);
}

static void test_a_handle_may_outlive_its_disk(void **state)
{
    (void)state;
    struct crash_disk *other = crash_disk_new();
    crash_disk_mount(other, "/other-disk/");
    sqlite3_file *file = open_file("/other-disk/a");
    crash_disk_free(other);
    assert_int_equal(write_at(file, "y", 0), SQLITE_IOERR_WRITE);
    close_file(file);
}

/* --- locks and shared memory --- */

static void test_locks_on_a_file(void **state)
{
    (void)state;
    sqlite3_file *a = open_file(CRASH_PATH);
    sqlite3_file *b = open_file(CRASH_PATH);
    const sqlite3_io_methods *m = a->pMethods;
    int reserved = -1;
    assert_int_equal(m->xLock(a, SQLITE_LOCK_SHARED), SQLITE_OK);
    assert_int_equal(m->xLock(b, SQLITE_LOCK_SHARED), SQLITE_OK);
    assert_int_equal(m->xLock(a, SQLITE_LOCK_RESERVED), SQLITE_OK);
    assert_int_equal(m->xLock(b, SQLITE_LOCK_RESERVED), SQLITE_BUSY);
    assert_int_equal(m->xCheckReservedLock(b, &reserved), SQLITE_OK);
    assert_int_equal(reserved, 1);
    assert_int_equal(m->xLock(a, SQLITE_LOCK_EXCLUSIVE), SQLITE_BUSY);
    assert_int_equal(m->xUnlock(b, SQLITE_LOCK_NONE), SQLITE_OK);
    assert_int_equal(m->xLock(b, SQLITE_LOCK_SHARED), SQLITE_BUSY); /* a writer waits */
    assert_int_equal(m->xLock(a, SQLITE_LOCK_EXCLUSIVE), SQLITE_OK);
    assert_int_equal(m->xLock(b, SQLITE_LOCK_SHARED), SQLITE_BUSY);
    assert_int_equal(m->xUnlock(a, SQLITE_LOCK_SHARED), SQLITE_OK);
    assert_int_equal(m->xLock(b, SQLITE_LOCK_SHARED), SQLITE_OK);
    close_file(a);
    assert_int_equal(m->xLock(b, SQLITE_LOCK_EXCLUSIVE), SQLITE_OK);
    close_file(b);
}

enum { SHARED = SQLITE_SHM_SHARED, EXCLUSIVE = SQLITE_SHM_EXCLUSIVE };

static int shm_lock(sqlite3_file *file, int first, int count, int how)
{
    return file->pMethods->xShmLock(file, first, count, SQLITE_SHM_LOCK | how);
}

static void test_locks_in_shared_memory(void **state)
{
    (void)state;
    sqlite3_file *a = open_file(CRASH_PATH);
    sqlite3_file *b = open_file(CRASH_PATH);
    assert_int_equal(shm_lock(a, 3, 1, SHARED), SQLITE_OK);
    assert_int_equal(shm_lock(b, 3, 1, SHARED), SQLITE_OK);
    assert_int_equal(shm_lock(b, 2, 3, EXCLUSIVE), SQLITE_BUSY);
    assert_int_equal(shm_lock(b, 4, 2, EXCLUSIVE), SQLITE_OK);
    assert_int_equal(shm_lock(a, 5, 1, SHARED), SQLITE_BUSY);
    assert_int_equal(b->pMethods->xShmLock(b, 4, 2, SQLITE_SHM_UNLOCK | EXCLUSIVE), SQLITE_OK);
    assert_int_equal(shm_lock(a, 5, 1, SHARED), SQLITE_OK);
    close_file(a);
    assert_int_equal(shm_lock(b, 5, 1, EXCLUSIVE), SQLITE_OK);
    close_file(b);
}

static void test_shared_memory_is_shared_until_the_last_handle_leaves(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_file *a = open_file(CRASH_PATH);
    sqlite3_file *b = open_file(CRASH_PATH);
    const sqlite3_io_methods *m = a->pMethods;
    void volatile *one = NULL;
    void volatile *two = NULL;
    assert_int_equal(m->xShmMap(a, 1, 32768, 0, &one), SQLITE_OK);
    assert_null((void *)(uintptr_t)one); /* not extended */
    assert_int_equal(m->xShmMap(a, 1, 32768, 1, &one), SQLITE_OK);
    assert_int_equal(m->xShmMap(b, 1, 32768, 0, &two), SQLITE_OK);
    assert_true(one == two);
    *(char volatile *)one = 'x';
    assert_int_equal(m->xShmUnmap(a, 0), SQLITE_OK);
    assert_int_equal(*(char volatile *)two, 'x');
    assert_int_equal(m->xShmUnmap(b, 0), SQLITE_OK);
    assert_int_equal(m->xShmMap(b, 1, 32768, 1, &two), SQLITE_OK);
    assert_int_equal(*(char volatile *)two, 0);
    *(char volatile *)two = 'y';
    crash_disk_kill(disk);
    crash_disk_restart(disk);
    sqlite3_file *c = open_file(CRASH_PATH);
    assert_int_equal(m->xShmMap(c, 1, 32768, 1, &one), SQLITE_OK);
    assert_int_equal(*(char volatile *)one, 0);
    close_file(a);
    close_file(b);
    close_file(c);
}

/* --- chance and time --- */

static void test_sqlites_chance_follows_from_the_seed(void **state)
{
    (void)state;
    uint64_t first = 0;
    uint64_t again = 0;
    uint64_t other = 0;
    crash_vfs_seed(5);
    sqlite3_randomness(sizeof(first), &first);
    crash_vfs_seed(5);
    sqlite3_randomness(sizeof(again), &again);
    crash_vfs_seed(6);
    sqlite3_randomness(sizeof(other), &other);
    assert_true(first == again && first != other);
}

static int64_t stands_still(void *ctx)
{
    return *(int64_t *)ctx;
}

static void add_up(void *ctx, int64_t us)
{
    *(int64_t *)ctx += us;
}

static void test_sqlites_clock_and_sleep_are_ours(void **state)
{
    (void)state;
    int64_t now_ms = 86400000;
    int64_t slept_us = 0;
    crash_vfs_set_clock(stands_still, &now_ms);
    crash_vfs_set_sleep(add_up, &slept_us);
    sqlite3 *a = sql_open(CRASH_PATH);
    sqlite3 *b = sql_open(CRASH_PATH);
    assert_int_equal(sql_number(a, "SELECT strftime('%s', 'now')"), 86400);
    sql(a, "CREATE TABLE t (n); BEGIN IMMEDIATE");
    (void)sqlite3_busy_timeout(b, 5000);
    assert_int_equal(sql_try(b, "BEGIN IMMEDIATE"), SQLITE_BUSY);
    assert_true(slept_us >= 4000000);
    sql(a, "ROLLBACK");
    sql_close(a);
    sql_close(b);
    crash_vfs_set_clock(NULL, NULL);
    crash_vfs_set_sleep(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        disk_test(test_a_reader_sees_what_was_written_and_zeros_beyond),
        disk_test(test_files_are_listed_read_and_written_from_outside),
        disk_test(test_a_file_is_made_only_when_asked_for),
        disk_test(test_deleting_and_looking_for_a_file),
        disk_test(test_paths_outside_are_real_files_and_disks_are_apart),
        disk_test(test_what_is_synced_survives_and_the_rest_is_lost),
        disk_test(test_a_cut_may_keep_everything),
        disk_test(test_each_way_of_cutting_leaves_its_own_sets_of_writes),
        disk_test(test_a_torn_write_is_whole_in_each_sector),
        disk_test(test_without_powersafe_overwrite_a_torn_sector_is_spoiled),
        disk_test(test_a_name_is_durable_with_its_files_sync),
        disk_test(test_a_deletion_is_durable_when_the_folder_is_synced),
        disk_test(test_a_deleted_file_may_come_back_in_place_of_a_new_one),
        disk_test(test_a_copy_has_the_same_unsynced_changes_and_its_own_fate),
        disk_test(test_a_disk_that_lies_loses_what_it_said_is_synced),
        disk_test(test_a_kill_keeps_what_was_not_synced),
        disk_test(test_calls_of_a_dead_process_fail_and_change_nothing),
        disk_test(test_a_handle_may_outlive_its_disk),
        disk_test(test_locks_on_a_file),
        disk_test(test_locks_in_shared_memory),
        disk_test(test_shared_memory_is_shared_until_the_last_handle_leaves),
        disk_test(test_sqlites_chance_follows_from_the_seed),
        disk_test(test_sqlites_clock_and_sleep_are_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
