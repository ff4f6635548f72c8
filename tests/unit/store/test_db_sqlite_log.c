/* What only SQLite offers: its write-ahead log, its check of the file and online copies. */
#include "store/notes.h"

#include "base/limits.h"
#include "store/sqlite/sqlite_file.h"
#include "store_support/held_syncs.h"

#include <poll.h>

enum { GIVE_UP_MS = 120 * 1000 }; /* a test that waits longer has failed */
enum { SMALL_LOG = 256 * 4096 };  /* the schema alone fills a good part of one */

static struct db *open_small_log(const char *path)
{
    struct db *db = open_with(path, DB_WRITER, &ENV_SYSTEM, SMALL_LOG);
    make_notes(db);
    return db;
}

/* One commit of some 8 pages. */
static void write_pages(struct db *db, int64_t *num)
{
    static char text[30000];
    memset(text, 'x', sizeof(text));
    assert_ok(db_begin(db));
    add_note(db, ++*num, (struct str){text, sizeof(text)});
    assert_ok(db_commit(db));
}

static void the_log_is_folded_back_and_starts_again(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct path log = path_in(*state, "p.db-wal");
    struct db *db = open_small_log(file.text);
    int64_t num = 0;
    for (int round = 0; round < 10; round++) {
        while (db_log_bytes(db) < SMALL_LOG)
            write_pages(db, &num);
        assert_ok(db_housekeep(db));
        assert_int_equal(db_log_bytes(db), 0);
    }
    /* Ten logs full have gone through a file of one. */
    assert_true(num > 60);
    assert_true(file_size(log.text) < 2 * SMALL_LOG);
    assert_int_equal(count_notes(db), num);
    db_close(db);
}

static struct db *open_with_log_of(int64_t bytes, const char *path, struct db_marks *marks)
{
    char url[DB_PATH_MAX + 16];
    test_store_url(path, url, sizeof(url));
    struct db_config config = {.url = str_of(url),
                               .access = DB_WRITER,
                               .env = &ENV_SYSTEM,
                               .log_bytes_max = bytes,
                               .folds_in_background = true,
                               .marks = marks};
    struct problem p;
    problem_init(&p);
    struct db *db = NULL;
    assert_ok(db_open(&config, &p, &db));
    problem_release(&p);
    make_notes(db);
    return db;
}

static struct db *open_that_folds_in_background(const char *path, struct db_marks *marks)
{
    return open_with_log_of(SMALL_LOG, path, marks);
}

static void the_log_is_folded_back_beside_the_writer_and_stays_short(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct path log = path_in(*state, "p.db-wal");
    struct db *db = open_that_folds_in_background(file.text, NULL);
    int64_t num = 0;
    while (num < 400) { /* over three thousand pages */
        write_pages(db, &num);
        assert_ok(db_housekeep(db));
        assert_true(db_log_bytes(db) <= SMALL_LOG);
    }
    assert_true(file_size(log.text) < 2 * SMALL_LOG);
    assert_int_equal(count_notes(db), num);
    db_close(db);
    struct raw raw = raw_open(file.text);
    raw_check_integrity(&raw);
    assert_int_equal(raw_number(&raw, "SELECT count(*) FROM notes"), num);
    raw_close(&raw);
}

static void a_slice_wants_housekeeping_long_before_the_log_is_full(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_that_folds_in_background(file.text, NULL);
    int64_t num = 0;
    while (!db_wants_housekeeping(db))
        write_pages(db, &num);
    assert_true(db_log_bytes(db) < SMALL_LOG);
    assert_ok(db_housekeep(db));
    assert_false(db_wants_housekeeping(db)); /* it is under way, or done */
    db_close(db);
}

/* On a busy machine the writer may be faster than what folds the log, so one of several will do. */
static void a_log_of_20_mib_starts_again_before_it_is_full(void **state)
{
    enum { LOG = 20 * MIB, ROOM = LOG / 10, TRIES = 10 };
    struct path file = path_in(*state, "p.db");
    struct db *db = open_with_log_of(LOG, file.text, NULL);
    int64_t num = 0;
    int64_t longest = LOG;
    for (int i = 0; i < TRIES && longest > LOG - ROOM; i++) {
        int64_t bytes = 0;
        longest = 0;
        do {
            bytes = db_log_bytes(db);
            longest = MAX(longest, bytes);
            write_pages(db, &num);
            assert_ok(db_housekeep(db));
        } while (db_log_bytes(db) >= bytes);
    }
    assert_true(longest <= LOG - ROOM);
    db_close(db);
}

static void until_syncs_wait(int count)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + GIVE_UP_MS;
    while (syncs_waiting() != count) {
        assert_true(env_mono_ms(&ENV_SYSTEM) < until);
        (void)poll(NULL, 0, 1);
    }
}

static void a_sync_that_fails_beside_the_writer_is_noted(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db_marks marks = {0};
    struct db *db = open_that_folds_in_background(file.text, &marks);
    int64_t num = 0;
    while (!db_wants_housekeeping(db))
        write_pages(db, &num);
    hold_syncs();
    assert_ok(db_housekeep(db));
    until_syncs_wait(1);
    fail_syncs();
    until_syncs_wait(0);
    release_syncs(); /* only that one fails */
    db_close(db);    /* waits for the thread */
    assert_true(atomic_load(&marks.failed));
}

/* SQLite syncs the main file only in a pass that copies the whole log. */
static void copies_are_synced_beside_the_writer_before_the_log_starts_again(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db_marks marks = {0};
    struct db *db = open_that_folds_in_background(file.text, &marks);
    int64_t num = 0;
    while (db_log_bytes(db) < SMALL_LOG - SMALL_LOG / 8)
        write_pages(db, &num);
    int before = main_file_syncs();
    hold_syncs();
    assert_ok(db_housekeep(db));
    until_syncs_wait(1);
    write_pages(db, &num); /* the pass under way does not copy these */
    assert_true(db_log_bytes(db) < SMALL_LOG);
    release_syncs();
    int64_t until = env_mono_ms(&ENV_SYSTEM) + GIVE_UP_MS;
    while (main_file_syncs() == before) {
        assert_true(env_mono_ms(&ENV_SYSTEM) < until);
        (void)poll(NULL, 0, 1);
    }
    db_close(db);
}

static void a_short_log_is_left_alone(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_small_log(file.text);
    int64_t num = 0;
    write_pages(db, &num);
    int64_t bytes = db_log_bytes(db);
    assert_true(bytes > 0 && bytes < SMALL_LOG);
    assert_ok(db_housekeep(db));
    assert_int_equal(db_log_bytes(db), bytes);
    db_close(db);
}

static void fill_while_pinned(struct db *db, int64_t *num)
{
    while (db_log_bytes(db) <= SMALL_LOG)
        write_pages(db, num);
    assert_int_equal(db_housekeep(db), ERR_STORE_BUSY);
    assert_true(db_log_bytes(db) > SMALL_LOG);
    assert_int_equal(db_housekeep(db), ERR_STORE_BUSY); /* and stays so */
}

static void a_reader_outside_that_pins_the_log_is_noticed(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_small_log(file.text);
    int64_t num = 0;
    struct raw outside = raw_open(file.text);
    raw_exec(&outside, "BEGIN");
    assert_int_equal(raw_number(&outside, "SELECT count(*) FROM notes"), 0);
    fill_while_pinned(db, &num);
    assert_int_equal(raw_number(&outside, "SELECT count(*) FROM notes"), 0);
    raw_exec(&outside, "COMMIT");
    assert_ok(db_housekeep(db));
    assert_int_equal(db_log_bytes(db), 0);
    write_pages(db, &num);
    assert_int_equal(raw_number(&outside, "SELECT count(*) FROM notes"), num);
    raw_close(&outside);
    db_close(db);
}

static void an_open_snapshot_pins_the_log_until_it_ends(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_small_log(file.text);
    int64_t num = 0;
    write_pages(db, &num);
    struct db *reader = open_reader(file.text);
    assert_ok(db_snapshot_begin(reader, 60000));
    assert_int_equal(count_notes(reader), 1);
    fill_while_pinned(db, &num);
    assert_int_equal(count_notes(reader), 1);
    db_snapshot_end(reader);
    assert_ok(db_housekeep(db));
    assert_int_equal(db_log_bytes(db), 0);
    assert_int_equal(count_notes(reader), num);
    db_close(reader);
    db_close(db);
}

static void a_sound_file_has_nothing_to_report(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_small_log(file.text);
    struct buf found;
    buf_init(&found, 4096);
    assert_ok(db_integrity_check(db, &found));
    assert_int_equal(found.len, 0);
    buf_release(&found);
    db_close(db);
}

static void a_damaged_file_is_reported(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_notes(db);
    add_note(db, 1, STR("one"));
    db_close(db);
    struct raw raw = raw_open(file.text);
    raw_exec(&raw, "CREATE INDEX notes_by_text ON notes (text); PRAGMA writable_schema=1;"
                   "UPDATE sqlite_schema SET sql = 'CREATE INDEX notes_by_text ON notes (num)'"
                   " WHERE name = 'notes_by_text'");
    raw_close(&raw);
    db = open_writer(file.text);
    struct buf found;
    buf_init(&found, 4096);
    assert_ok(db_integrity_check(db, &found));
    assert_true(found.len > 0);
    assert_int_equal(found.ptr[found.len - 1], '\n');
    buf_release(&found);
    db_close(db);
}

static void a_backup_made_while_writing_is_whole(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_with(file.text, DB_WRITER, &ENV_SYSTEM, 64 * MIB);
    make_notes(db);
    int64_t num = 0;
    while (num < 150) /* over a thousand pages: several steps */
        write_pages(db, &num);
    struct problem p;
    problem_init(&p);
    struct db_backup *backup = NULL;
    assert_ok(db_backup_begin(db, &p, &backup));
    bool done = false;
    int steps = 0;
    while (!done) {
        assert_ok(db_backup_step(backup, &done));
        steps++;
        if (!done)
            write_pages(db, &num);
    }
    assert_true(steps > 2);
    char copy[DB_PATH_MAX];
    assert_ok(db_backup_end(backup, copy));
    struct raw raw = raw_open(copy);
    raw_check_integrity(&raw);
    assert_int_equal(raw_number(&raw, "SELECT count(*) FROM notes"), num);
    assert_int_equal(raw_number(&raw, "SELECT max(num) FROM notes"), num);
    raw_close(&raw);
    struct db *opened = open_writer(copy);
    assert_int_equal(count_notes(opened), num);
    db_close(opened);
    problem_release(&p);
    db_close(db);
}

static bool has_backup(const struct folder *f)
{
    DIR *dir = opendir(f->path);
    assert_non_null(dir);
    bool found = false;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        found |= strstr(entry->d_name, "unfinished-copy") != NULL;
    (void)closedir(dir);
    return found;
}

static void a_backup_that_is_given_up_leaves_no_file(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_with(file.text, DB_WRITER, &ENV_SYSTEM, 64 * MIB);
    make_notes(db);
    int64_t num = 0;
    while (num < 100)
        write_pages(db, &num);
    struct problem p;
    problem_init(&p);
    struct db_backup *backup = NULL;
    bool done = true;
    assert_ok(db_backup_begin(db, &p, &backup));
    assert_ok(db_backup_step(backup, &done));
    assert_false(done);
    assert_true(has_backup(*state));
    char copy[DB_PATH_MAX];
    assert_int_equal(db_backup_end(backup, copy), ERR_STORE_BUSY);
    assert_false(has_backup(*state));
    problem_release(&p);
    db_close(db);
}

static void make_file(const struct folder *f, const char *name)
{
    FILE *file = fopen(path_in(f, name).text, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static bool is_there(const struct folder *f, const char *name)
{
    struct stat s;
    return stat(path_in(f, name).text, &s) == 0;
}

static void only_copies_that_pawl_has_named_are_removed_at_start(void **state)
{
    static const char *const OTHERS[] = {
        "p.db.backup-20260801",
        "p.db.backup-1a2b3c4d",
        "p.db.pawl-unfinished-copy-20260801",
        "p.db.pawl-unfinished-copy-0123456789abcdef0123456789abcdeg",
        "p.db.pawl-unfinished-copy-0123456789abcdef0123456789abcdef.keep",
        "q.db.pawl-unfinished-copy-0123456789abcdef0123456789abcdef",
    };
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    char copy[60]; /* 58, and its end */
    char journal[sizeof(copy) + 8];
    assert_true(sqlite_file_name_copy("p.db", &ENV_SYSTEM, copy, sizeof(copy)));
    (void)snprintf(journal, sizeof(journal), "%s-journal", copy);
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++)
        make_file(*state, OTHERS[i]);
    make_file(*state, copy);
    make_file(*state, journal);
    db_close(db);
    db_close(open_writer(file.text));
    assert_false(is_there(*state, copy));
    assert_false(is_there(*state, journal));
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++)
        assert_true(is_there(*state, OTHERS[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(the_log_is_folded_back_and_starts_again),
        folder_test(the_log_is_folded_back_beside_the_writer_and_stays_short),
        folder_test(a_sync_that_fails_beside_the_writer_is_noted),
        folder_test(copies_are_synced_beside_the_writer_before_the_log_starts_again),
        folder_test(a_log_of_20_mib_starts_again_before_it_is_full),
        folder_test(a_slice_wants_housekeeping_long_before_the_log_is_full),
        folder_test(a_short_log_is_left_alone),
        folder_test(a_reader_outside_that_pins_the_log_is_noticed),
        folder_test(an_open_snapshot_pins_the_log_until_it_ends),
        folder_test(a_sound_file_has_nothing_to_report),
        folder_test(a_damaged_file_is_reported),
        folder_test(a_backup_made_while_writing_is_whole),
        folder_test(a_backup_that_is_given_up_leaves_no_file),
        folder_test(only_copies_that_pawl_has_named_are_removed_at_start),
    };
    held_syncs_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
