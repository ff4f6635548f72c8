/* Faults of the crash file system: failed syncs, calls that fail, crashes in the middle of a call.
 */
#include "sim/unit/crash_support.h"

/* --- failed syncs --- */

static void test_a_failed_sync_loses_the_writes_until_they_are_written_again(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    crash_disk_write_file(disk, "a.db", "........", 8);
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(write_at(file, "aaaa", 0), SQLITE_OK);
    fail_next(disk, CRASH_SYNC, CRASH_EIO);
    assert_int_equal(sync_file(file), SQLITE_IOERR_FSYNC);
    assert_int_equal(write_at(file, "bbbb", 4), SQLITE_OK);
    assert_int_equal(write_at(file, "c", 1), SQLITE_OK);
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_file(disk, "a.db", "acaabbbb"); /* the cache looks right */
    assert_false(crash_disk_is_synced(disk, "a.db"));
    struct crash_disk *copy = crash_disk_copy(disk);
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_file(disk, "a.db", ".c..bbbb");
    cut_and_restart(copy, CRASH_CUT_KEEP, &r); /* some of it may have come through */
    assert_file(copy, "a.db", "acaabbbb");
    close_file(file);
    crash_disk_free(copy);
}

static void test_a_failed_sync_loses_changes_of_size_too(void **state)
{
    struct crash_disk *disk = *state;
    struct rng r = {1};
    crash_disk_write_file(disk, "a.db", "abcdefgh", 8);
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(file->pMethods->xTruncate(file, 2), SQLITE_OK);
    fail_next(disk, CRASH_SYNC, CRASH_EIO);
    assert_int_equal(sync_file(file), SQLITE_IOERR_FSYNC);
    assert_int_equal(write_at(file, "Y", 0), SQLITE_OK);
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_file(disk, "a.db", "Yb");
    cut_and_restart(disk, CRASH_CUT_DROP, &r);
    assert_file(disk, "a.db", "Ybcdefgh");
    close_file(file);
}

static void test_calls_after_a_failed_sync_are_counted_until_the_process_ends(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    const struct crash_counts *counts = crash_disk_counts(disk);
    sqlite3_file *file = open_file(CRASH_PATH);
    fail_next(disk, CRASH_SYNC, CRASH_EIO);
    assert_int_equal(write_at(file, "x", 0), SQLITE_OK);
    assert_int_equal(sync_file(file), SQLITE_IOERR_FSYNC);
    assert_int_equal(counts->touched_after_failed_sync, 0);
    char byte = 0;
    assert_int_equal(file->pMethods->xRead(file, &byte, 1, 0), SQLITE_OK);
    assert_int_equal(counts->touched_after_failed_sync, 0);
    assert_int_equal(write_at(file, "x", 0), SQLITE_OK);
    assert_int_equal(file->pMethods->xTruncate(file, 0), SQLITE_OK);
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_int_equal(vfs->xDelete(vfs, CRASH_FOLDER "b", 0), SQLITE_IOERR_DELETE_NOENT);
    assert_int_equal(counts->touched_after_failed_sync, 4);
    crash_disk_kill(disk);
    crash_disk_restart(disk);
    close_file(file);
    file = open_file(CRASH_PATH);
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_int_equal(counts->touched_after_failed_sync, 4);
    close_file(file);
}

/* --- faults --- */

static void test_a_fault_strikes_the_nth_call_of_its_kind_and_file(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_file *file = open_file(CRASH_PATH);
    sqlite3_file *wal = open_file(CRASH_PATH "-wal");
    crash_disk_fail(
        disk, &(struct crash_fault){CRASH_WRITE, .suffix = "-wal", .nth = 2, .result = CRASH_EIO});
    assert_int_equal(write_at(file, "a", 0), SQLITE_OK);
    assert_int_equal(write_at(wal, "a", 0), SQLITE_OK);
    assert_int_equal(write_at(file, "b", 0), SQLITE_OK);
    assert_int_equal(sync_file(wal), SQLITE_OK);
    assert_int_equal(crash_disk_fired(disk), 0);
    assert_int_equal(write_at(wal, "b", 0), SQLITE_IOERR_WRITE);
    assert_int_equal(crash_disk_fired(disk), 1);
    assert_file(disk, "a.db-wal", "a");
    assert_int_equal(write_at(wal, "c", 0), SQLITE_OK);
    crash_disk_fail(
        disk, &(struct crash_fault){CRASH_ANY, .nth = 2, .result = CRASH_EIO, .lasting = true});
    assert_int_equal(write_at(file, "d", 0), SQLITE_OK);
    assert_int_equal(write_at(file, "e", 0), SQLITE_IOERR_WRITE);
    assert_int_equal(sync_file(wal), SQLITE_IOERR_FSYNC);
    crash_disk_clear_faults(disk);
    assert_int_equal(crash_disk_fired(disk), 0);
    assert_int_equal(sync_file(wal), SQLITE_OK);
    close_file(file);
    close_file(wal);
}

static void test_two_faults_count_the_same_calls(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_file *file = open_file(CRASH_PATH);
    crash_disk_fail(disk, &(struct crash_fault){CRASH_WRITE, .nth = 1, .result = CRASH_ENOSPC});
    crash_disk_fail(disk, &(struct crash_fault){CRASH_ANY, .nth = 2, .result = CRASH_EIO});
    assert_int_equal(write_at(file, "a", 0), SQLITE_FULL);
    assert_int_equal(write_at(file, "a", 0), SQLITE_IOERR_WRITE);
    assert_int_equal(write_at(file, "a", 0), SQLITE_OK);
    close_file(file);
}

static void test_a_fault_at_a_change_counts_no_reads(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_file *file = open_file(CRASH_PATH);
    char byte = 0;
    assert_int_equal(write_at(file, "ab", 0), SQLITE_OK);
    crash_disk_fail(disk, &(struct crash_fault){CRASH_CHANGE, .nth = 2, .result = CRASH_EIO});
    assert_int_equal(file->pMethods->xRead(file, &byte, 1, 0), SQLITE_OK);
    assert_int_equal(sync_file(file), SQLITE_OK);
    assert_int_equal(file->pMethods->xRead(file, &byte, 1, 0), SQLITE_OK);
    assert_int_equal(file->pMethods->xTruncate(file, 1), SQLITE_IOERR_TRUNCATE);
    close_file(file);
}

static void test_every_kind_of_call_can_fail(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    sqlite3_file *other = NULL;
    sqlite3_file *file = open_file(CRASH_PATH);
    const sqlite3_io_methods *m = file->pMethods;
    void volatile *region = NULL;
    char byte = 0;
    assert_int_equal(write_at(file, "ab", 0), SQLITE_OK);
    fail_next(disk, CRASH_READ, CRASH_EIO);
    assert_int_equal(m->xRead(file, &byte, 1, 0), SQLITE_IOERR_READ);
    fail_next(disk, CRASH_TRUNCATE, CRASH_EIO);
    assert_int_equal(m->xTruncate(file, 0), SQLITE_IOERR_TRUNCATE);
    fail_next(disk, CRASH_OPEN, CRASH_EIO);
    assert_int_equal(try_open_file(CRASH_FOLDER "b", SQLITE_OPEN_CREATE, &other), SQLITE_CANTOPEN);
    fail_next(disk, CRASH_DELETE, CRASH_EIO);
    assert_int_equal(vfs->xDelete(vfs, CRASH_PATH, 0), SQLITE_IOERR_DELETE);
    fail_next(disk, CRASH_SHM, CRASH_EIO);
    assert_int_equal(m->xShmMap(file, 0, 32768, 1, &region), SQLITE_IOERR_SHMMAP);
    assert_int_equal(m->xShmMap(file, 0, 32768, 1, &region), SQLITE_OK);
    fail_next(disk, CRASH_SHM, CRASH_EIO);
    assert_int_equal(m->xShmLock(file, 0, 1, SQLITE_SHM_LOCK | SQLITE_SHM_SHARED),
                     SQLITE_IOERR_SHMLOCK);
    assert_int_equal(crash_disk_fired(disk), 6);
    assert_file(disk, "a.db", "ab");
    assert_false(has_file(disk, "b"));
    close_file(file);
}

static void test_a_short_write_is_done_in_part(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3_file *file = open_file(CRASH_PATH);
    fail_next(disk, CRASH_WRITE, CRASH_SHORT);
    assert_int_equal(write_at(file, "12345678", 0), SQLITE_IOERR_WRITE);
    assert_file(disk, "a.db", "1234");
    fail_next(disk, CRASH_READ, CRASH_SHORT);
    char out[5] = "....";
    assert_int_equal(file->pMethods->xRead(file, out, 4, 0), SQLITE_IOERR_READ);
    assert_string_equal(out, "12..");
    close_file(file);
}

static void test_a_full_disk_takes_what_fits_until_there_is_room(void **state)
{
    struct crash_disk *disk = *state;
    crash_disk_write_file(disk, "other", "123", 3);
    crash_disk_set_options(disk,
                           &(struct crash_options){.powersafe_overwrite = true, .bytes_max = 8});
    sqlite3_file *file = open_file(CRASH_PATH);
    assert_int_equal(write_at(file, "abcdefgh", 0), SQLITE_FULL);
    assert_file(disk, "a.db", "abcde");
    assert_int_equal(write_at(file, "x", 5), SQLITE_FULL);
    assert_int_equal(write_at(file, "ABC", 0), SQLITE_OK); /* no more room than before */
    crash_disk_set_options(disk, &(struct crash_options){.powersafe_overwrite = true});
    assert_int_equal(write_at(file, "fgh", 5), SQLITE_OK);
    assert_file(disk, "a.db", "ABCdefgh");
    close_file(file);
}

/* A crash at a call comes before the call takes effect, or after. */
static unsigned fates_of_a_write(enum crash_result result, enum crash_cut how)
{
    struct rng r = {11};
    unsigned seen = 0;
    for (int i = 0; i < 20; i++) {
        struct crash_disk *disk = crash_disk_new();
        crash_disk_mount(disk, "/fates/");
        crash_disk_write_file(disk, "f", ".", 1);
        sqlite3_file *file = open_file("/fates/f");
        crash_disk_fail(disk, &(struct crash_fault){.kind = CRASH_WRITE,
                                                    .nth = 1,
                                                    .result = result,
                                                    .cut = how,
                                                    .draw = draw_rng,
                                                    .ctx = &r});
        assert_int_equal(write_at(file, "x", 0), SQLITE_IOERR_WRITE);
        assert_true(crash_disk_is_down(disk));
        assert_int_equal(write_at(file, "y", 0), SQLITE_IOERR_WRITE);
        size_t len = 0;
        seen |= *crash_disk_read_file(disk, "f", &len) == 'x' ? 2u : 1u;
        close_file(file);
        crash_disk_free(disk);
    }
    return seen;
}

static void test_a_crash_comes_before_or_after_the_call(void **state)
{
    (void)state;
    assert_int_equal(fates_of_a_write(CRASH_KILL, CRASH_CUT_DROP), 1u | 2u);
    assert_int_equal(fates_of_a_write(CRASH_POWER_CUT, CRASH_CUT_KEEP), 1u | 2u);
    assert_int_equal(fates_of_a_write(CRASH_POWER_CUT, CRASH_CUT_DROP), 1u);
}

static void test_a_crash_after_a_sync_or_deletion_finds_it_done(void **state)
{
    (void)state;
    struct rng r = {5};
    unsigned synced = 0;
    unsigned deleted = 0;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    for (int i = 0; i < 40; i++) {
        struct crash_disk *disk = crash_disk_new();
        crash_disk_mount(disk, "/fates/");
        crash_disk_write_file(disk, "f", ".", 1);
        sqlite3_file *file = open_file("/fates/f");
        assert_int_equal(write_at(file, "x", 0), SQLITE_OK);
        enum crash_kind kind = i % 2 ? CRASH_SYNC : CRASH_DELETE;
        crash_disk_fail(disk, &(struct crash_fault){.kind = kind,
                                                    .nth = 1,
                                                    .result = CRASH_POWER_CUT,
                                                    .cut = CRASH_CUT_DROP,
                                                    .draw = draw_rng,
                                                    .ctx = &r});
        if (kind == CRASH_SYNC)
            assert_int_equal(sync_file(file), SQLITE_IOERR_FSYNC);
        else
            assert_int_equal(vfs->xDelete(vfs, "/fates/f", 1), SQLITE_IOERR_DELETE);
        size_t len = 0;
        const char *bytes = crash_disk_read_file(disk, "f", &len);
        if (kind == CRASH_SYNC)
            synced |= *bytes == 'x' ? 2u : 1u;
        else
            deleted |= bytes == NULL ? 2u : 1u;
        close_file(file);
        crash_disk_free(disk);
    }
    assert_int_equal(synced, 1u | 2u);
    assert_int_equal(deleted, 1u | 2u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        disk_test(test_a_failed_sync_loses_the_writes_until_they_are_written_again),
        disk_test(test_a_failed_sync_loses_changes_of_size_too),
        disk_test(test_calls_after_a_failed_sync_are_counted_until_the_process_ends),
        disk_test(test_a_fault_strikes_the_nth_call_of_its_kind_and_file),
        disk_test(test_two_faults_count_the_same_calls),
        disk_test(test_a_fault_at_a_change_counts_no_reads),
        disk_test(test_every_kind_of_call_can_fail),
        disk_test(test_a_short_write_is_done_in_part),
        disk_test(test_a_full_disk_takes_what_fits_until_there_is_room),
        disk_test(test_a_crash_comes_before_or_after_the_call),
        disk_test(test_a_crash_after_a_sync_or_deletion_finds_it_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
