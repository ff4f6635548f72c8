/* The door to the database: opening, transactions, statements, housekeeping and backups. */
#include "store/folder.h"

#include "store/migrations.h"
#include "store/sqlite/sqlite_file.h"

#include <dirent.h>

/* A table of the tests' own, in the store's file. */
static void make_notes(struct db *db)
{
    static const char SQL[] = "CREATE TABLE notes (num INTEGER PRIMARY KEY, text TEXT) STRICT";
    run_sql(db, SQL);
}

static void add_note(struct db *db, int64_t num, struct str text)
{
    static const char SQL[] = "INSERT INTO notes (num, text) VALUES ($1, $2)";
    assert_ok(DB_EXEC(db, SQL, NULL, DB_I(num), DB_T(text)));
}

static int64_t count_notes(struct db *db)
{
    static const char SQL[] = "SELECT count(*) FROM notes";
    return number_of(db, SQL);
}

/* --- opening --- */

static void opening_creates_and_migrates(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    assert_true(db_is_only_writer(db));
    sqlite3 *raw = raw_open(file.text);
    assert_int_equal(raw_number(raw, "PRAGMA application_id"), 0x7061776C);
    assert_int_equal(raw_number(raw, "PRAGMA user_version"),
                     MIGRATIONS_SQLITE[MIGRATIONS_SQLITE_COUNT - 1].number);
    assert_true(raw_number(raw, "SELECT count(*) FROM sqlite_schema WHERE name IN ('tenants',"
                                " 'runs', 'jobs', 'idempotency', 'timers', 'events')") == 6);
    raw_close(raw);
    db_close(db);
}

static void migrations_are_numbered_without_gaps(void **state)
{
    (void)state;
    for (size_t i = 0; i < MIGRATIONS_SQLITE_COUNT; i++)
        assert_int_equal(MIGRATIONS_SQLITE[i].number, i + 1);
}

static void opening_again_finds_what_was_there(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_notes(db);
    add_note(db, 1, STR("kept"));
    db_close(db);
    db = open_writer(file.text);
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

static void refuse(const char *path, enum db_access access, enum err e, const char *why)
{
    struct problem p;
    problem_init(&p);
    struct db *db = NULL;
    assert_int_equal(try_open(path, access, &ENV_SYSTEM, 0, &p, &db), e);
    assert_null(db);
    assert_contains(p.detail, why);
    problem_release(&p);
}

static void a_second_writer_is_refused_and_told_whose_file_it_is(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    char pid[32];
    (void)snprintf(pid, sizeof(pid), "(process %ld)", (long)getpid());
    refuse(file.text, DB_WRITER, ERR_STORE_BUSY, pid);
    db_close(db);
    db_close(open_writer(file.text));
}

static void a_link_to_the_file_is_the_same_file(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct path link = path_in(*state, "link.db");
    assert_int_equal(symlink(file.text, link.text), 0);
    struct db *db = open_writer(link.text);
    refuse(file.text, DB_WRITER, ERR_STORE_BUSY, "process");
    refuse(link.text, DB_WRITER, ERR_STORE_BUSY, "process");
    db_close(db);
}

static void readers_open_beside_the_writer(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *writer = open_writer(file.text);
    struct db *one = open_reader(file.text);
    struct db *two = open_reader(file.text);
    assert_false(db_is_only_writer(one));
    db_close(two);
    db_close(one);
    db_close(writer);
}

static void a_reader_does_not_create_a_file(void **state)
{
    struct path file = path_in(*state, "none.db");
    refuse(file.text, DB_READER, ERR_STORE_FAILED, "none.db");
    assert_int_equal(file_size(file.text), -1);
}

static void must_stay(const char *path, const char *why)
{
    size_t before_len;
    size_t after_len;
    char *before = file_read(path, &before_len);
    refuse(path, DB_WRITER, ERR_STORE_FAILED, why);
    char *after = file_read(path, &after_len);
    assert_int_equal(before_len, after_len);
    assert_memory_equal(before, after, before_len);
    free(before);
    free(after);
}

static void another_programs_file_is_refused_and_unchanged(void **state)
{
    static const char *const THEIRS[] = {
        "CREATE TABLE theirs (x)",
        "PRAGMA application_id=1234; CREATE TABLE theirs (x)",
        "PRAGMA user_version=1; CREATE TABLE theirs (x)",
    };
    for (size_t i = 0; i < ARRAY_LEN(THEIRS); i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "their%zu.db", i);
        struct path file = path_in(*state, name);
        sqlite3 *raw = raw_open(file.text);
        raw_exec(raw, THEIRS[i]);
        raw_close(raw);
        must_stay(file.text, "another program");
    }
}

static void a_file_that_is_no_database_is_refused_and_unchanged(void **state)
{
    struct path file = path_in(*state, "letter.txt");
    char text[8192];
    memset(text, 'x', sizeof(text));
    file_write(file.text, text, sizeof(text));
    must_stay(file.text, "letter.txt");
}

static void an_empty_file_is_made_ours(void **state)
{
    struct path file = path_in(*state, "empty.db");
    file_write(file.text, "", 0);
    db_close(open_writer(file.text));
    sqlite3 *raw = raw_open(file.text);
    assert_int_equal(raw_number(raw, "PRAGMA application_id"), 0x7061776C);
    raw_close(raw);
}

static void a_newer_file_is_refused_and_unchanged(void **state)
{
    struct path file = path_in(*state, "p.db");
    db_close(open_writer(file.text));
    sqlite3 *raw = raw_open(file.text);
    raw_exec(raw, "PRAGMA user_version=999");
    raw_close(raw);
    must_stay(file.text, "newer pawl");
}

static void an_address_of_another_kind_is_refused(void **state)
{
    (void)state;
    char path_too_long[5000];
    memset(path_too_long, 'x', sizeof(path_too_long));
    memcpy(path_too_long, "sqlite:", 7);
    const struct str urls[] = {STR(""),          STR("sqlite"),
                               STR("sqlite:"),   STR("postgres://x"),
                               STR("/tmp/p.db"), {path_too_long, sizeof(path_too_long)}};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct problem p;
        problem_init(&p);
        struct db *db = NULL;
        struct db_config config = {urls[i], DB_WRITER, &ENV_SYSTEM, 0};
        assert_int_equal(db_open(&config, &p, &db), ERR_BAD_REQUEST);
        problem_release(&p);
    }
}

static void a_folder_that_is_not_there_is_an_error_not_a_crash(void **state)
{
    struct path file = path_in(*state, "no/such/p.db");
    refuse(file.text, DB_WRITER, ERR_STORE_FAILED, "p.db");
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    db_close(NULL);
    assert_contains(db_engine_name_at(0), "SQLite");
    assert_null(db_engine_name_at(1));
}

/* --- statements --- */

static void parameters_may_come_in_any_order(void **state)
{
    static const char SQL[] = "SELECT $3, $1, $2, $1, $4";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    for (int64_t round = 0; round < 2; round++) { /* the second time it is prepared already */
        struct db_rows *rows =
            DB_QUERY(db, SQL, DB_I(10 + round), DB_T(STR("two")), DB_I(30), DB_N());
        assert_true(db_next(rows));
        assert_int_equal(db_int(rows, 0), 30);
        assert_int_equal(db_int(rows, 1), 10 + round);
        assert_str(db_str(rows, 2), "two");
        assert_int_equal(db_int(rows, 3), 10 + round);
        assert_true(db_is_null(rows, 4));
        assert_int_equal(db_int_or(rows, 4, -1), -1);
        assert_false(db_next(rows));
        assert_ok(db_rows_end(rows));
    }
    db_close(db);
}

static void values_of_every_kind_come_back(void **state)
{
    static const char SQL[] = "SELECT $1, $2, $3, $4, $5, $6, $7, $8";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    struct uuid id = env_new_id(&ENV_SYSTEM);
    struct sha256 hash = sha256_of(STR("x"));
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_I(INT64_MIN), DB_I(INT64_MAX), DB_T(STR("")), DB_T(STR_NONE),
                 DB_T(((struct str){"a\0b", 3})), DB_U(id), DB_H(hash), DB_I_OR_NULL(INT64_C(-1)));
    assert_true(db_next(rows));
    assert_true(db_int(rows, 0) == INT64_MIN);
    assert_true(db_int(rows, 1) == INT64_MAX);
    assert_non_null(db_str(rows, 2).ptr);
    assert_int_equal(db_str(rows, 2).len, 0);
    assert_null(db_str(rows, 3).ptr);
    assert_true(str_eq(db_str(rows, 4), (struct str){"a\0b", 3}));
    assert_true(uuid_eq(db_uuid(rows, 5), id));
    struct sha256 back = db_hash(rows, 6);
    assert_true(sha256_eq(&back, &hash));
    assert_true(db_is_null(rows, 7));
    assert_ok(db_rows_end(rows));
    db_close(db);
}

static void a_query_may_be_left_before_its_end(void **state)
{
    static const char SQL[] = "SELECT num FROM notes ORDER BY num";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_notes(db);
    for (int64_t i = 1; i <= 5; i++)
        add_note(db, i, STR("x"));
    for (int round = 0; round < 2; round++) {
        struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
        assert_true(db_next(rows));
        assert_int_equal(db_int(rows, 0), 1);
        assert_ok(db_rows_end(rows));
    }
    db_close(db);
}

static void a_statement_that_does_not_compile_has_no_rows_and_an_error(void **state)
{
    static const char SQL[] = "SELECT nothing FROM nowhere";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    for (int round = 0; round < 2; round++) {
        struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
        assert_false(db_next(rows));
        assert_int_equal(db_rows_end(rows), ERR_INTERNAL);
    }
    db_close(db);
}

static void a_broken_constraint_is_an_error_and_the_connection_lives_on(void **state)
{
    static const char SQL[] = "INSERT INTO notes (num) VALUES ($1)";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_notes(db);
    assert_ok(db_begin(db));
    assert_ok(DB_EXEC(db, SQL, NULL, DB_I(1)));
    assert_int_equal(DB_EXEC(db, SQL, NULL, DB_I(1)), ERR_INTERNAL);
    assert_ok(DB_EXEC(db, SQL, NULL, DB_I(2)));
    assert_ok(db_commit(db));
    assert_int_equal(count_notes(db), 2);
    db_close(db);
}

static void a_reader_changes_nothing(void **state)
{
    static const char SQL[] = "DELETE FROM tenants";
    struct path file = path_in(*state, "p.db");
    struct db *writer = open_writer(file.text);
    struct db *reader = open_reader(file.text);
    assert_int_equal(db_exec_values(reader, SQL, NULL, 0, NULL), ERR_STORE_FAILED);
    db_close(reader);
    db_close(writer);
}

/* --- transactions --- */

static void a_reader_sees_committed_rows_only(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *writer = open_writer(file.text);
    make_notes(writer);
    struct db *reader = open_reader(file.text);
    assert_ok(db_begin(writer));
    add_note(writer, 1, STR("x"));
    assert_int_equal(count_notes(writer), 1);
    assert_int_equal(count_notes(reader), 0);
    assert_ok(db_commit(writer));
    assert_int_equal(count_notes(reader), 1);
    db_close(reader);
    db_close(writer);
}

static void a_snapshot_does_not_see_later_commits(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *writer = open_writer(file.text);
    make_notes(writer);
    add_note(writer, 1, STR("x"));
    struct db *reader = open_reader(file.text);
    assert_ok(db_snapshot_begin(reader, 60000));
    assert_int_equal(count_notes(reader), 1);
    add_note(writer, 2, STR("x"));
    assert_int_equal(count_notes(reader), 1);
    db_snapshot_end(reader);
    assert_int_equal(count_notes(reader), 2);
    assert_ok(db_snapshot_begin(reader, 60000));
    assert_int_equal(count_notes(reader), 2);
    db_snapshot_end(reader);
    db_close(reader);
    db_close(writer);
}

static void a_rollback_leaves_nothing(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_notes(db);
    assert_ok(db_begin(db));
    for (int64_t i = 1; i <= 100; i++)
        add_note(db, i, STR("x"));
    db_rollback(db);
    assert_int_equal(count_notes(db), 0);
    db_rollback(db); /* without a transaction it does nothing */
    assert_ok(db_begin(db));
    add_note(db, 1, STR("x"));
    assert_ok(db_commit(db));
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

static void changes_count_rows_and_reads_do_not(void **state)
{
    static const char UPDATE[] = "UPDATE notes SET text = 'y' WHERE num <= $1";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_notes(db);
    int64_t before = db_changes(db);
    assert_ok(db_begin(db));
    for (int64_t i = 1; i <= 5; i++)
        add_note(db, i, STR("x"));
    assert_int_equal(db_changes(db), before + 5);
    int64_t changed = -1;
    assert_ok(DB_EXEC(db, UPDATE, &changed, DB_I(3)));
    assert_int_equal(changed, 3);
    assert_int_equal(db_changes(db), before + 8);
    assert_ok(DB_EXEC(db, UPDATE, &changed, DB_I(0)));
    assert_int_equal(changed, 0);
    assert_int_equal(count_notes(db), 5);
    assert_int_equal(db_changes(db), before + 8);
    assert_ok(db_commit(db));
    assert_int_equal(db_changes(db), before + 8);
    db_close(db);
}

/* --- deadlines --- */

/* A clock that goes on by a second at each look. */
static int64_t hasty_mono_ns(void *ctx)
{
    int64_t *seconds = ctx;
    return ++*seconds * INT64_C(1000000000);
}

static int64_t count_to(struct db *db, int64_t last, enum err *ret)
{
    static const char SQL[] = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c"
                              " WHERE n < $1) SELECT count(*) FROM c";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(last));
    int64_t count = db_next(rows) ? db_int(rows, 0) : -1;
    *ret = db_rows_end(rows);
    return count;
}

static void a_query_past_its_deadline_fails(void **state)
{
    struct path file = path_in(*state, "p.db");
    int64_t seconds = 0;
    struct env hasty = {ENV_SYSTEM.now_us, hasty_mono_ns, ENV_SYSTEM.random, &seconds};
    struct db *writer = open_writer(file.text);
    struct db *reader = open_with(file.text, DB_READER, &hasty, 0);
    enum err e;
    assert_ok(db_snapshot_begin(reader, 500));
    (void)count_to(reader, INT64_C(1000000000), &e);
    assert_int_equal(e, ERR_STORE_BUSY);
    db_snapshot_end(reader);
    /* The connection is as good as new, and without a snapshot nothing hurries. */
    assert_int_equal(count_to(reader, 50000, &e), 50000);
    assert_ok(e);
    db_close(reader);
    db_close(writer);
}

static void a_query_before_its_deadline_is_left_alone(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct still_world world = {1000000, 7};
    struct env still = still_env(&world);
    struct db *writer = open_writer(file.text);
    struct db *reader = open_with(file.text, DB_READER, &still, 0);
    enum err e;
    assert_ok(db_snapshot_begin(reader, 1));
    assert_int_equal(count_to(reader, 50000, &e), 50000);
    assert_ok(e);
    db_snapshot_end(reader);
    db_close(reader);
    db_close(writer);
}

/* --- the log --- */

enum { SMALL_LOG = 256 * 4096 }; /* the schema alone fills a good part of one */

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
    sqlite3 *outside = raw_open(file.text);
    raw_exec(outside, "BEGIN");
    assert_int_equal(raw_number(outside, "SELECT count(*) FROM notes"), 0);
    fill_while_pinned(db, &num);
    assert_int_equal(raw_number(outside, "SELECT count(*) FROM notes"), 0);
    raw_exec(outside, "COMMIT");
    assert_ok(db_housekeep(db));
    assert_int_equal(db_log_bytes(db), 0);
    write_pages(db, &num);
    assert_int_equal(raw_number(outside, "SELECT count(*) FROM notes"), num);
    raw_close(outside);
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

/* --- checks and copies --- */

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
    sqlite3 *raw = raw_open(file.text);
    raw_exec(raw, "CREATE INDEX notes_by_text ON notes (text); PRAGMA writable_schema=1;"
                  "UPDATE sqlite_schema SET sql = 'CREATE INDEX notes_by_text ON notes (num)'"
                  " WHERE name = 'notes_by_text'");
    raw_close(raw);
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
    sqlite3 *raw = raw_open(copy);
    raw_check_integrity(raw);
    assert_int_equal(raw_number(raw, "SELECT count(*) FROM notes"), num);
    assert_int_equal(raw_number(raw, "SELECT max(num) FROM notes"), num);
    raw_close(raw);
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

enum { MANY_STATEMENTS = 3000 };

/* The cache began with 512 places, and looked for a free one for ever when there was none. */
static void any_number_of_statements_is_kept_and_found_again(void **state)
{
    static char texts[MANY_STATEMENTS][24];
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY_STATEMENTS; i++) {
            (void)snprintf(texts[i], sizeof(texts[i]), "SELECT %d", i);
            assert_int_equal(number_of(db, texts[i]), i);
        }
    }
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(opening_creates_and_migrates),
        cmocka_unit_test(migrations_are_numbered_without_gaps),
        folder_test(opening_again_finds_what_was_there),
        folder_test(a_second_writer_is_refused_and_told_whose_file_it_is),
        folder_test(a_link_to_the_file_is_the_same_file),
        folder_test(readers_open_beside_the_writer),
        folder_test(a_reader_does_not_create_a_file),
        folder_test(another_programs_file_is_refused_and_unchanged),
        folder_test(a_file_that_is_no_database_is_refused_and_unchanged),
        folder_test(an_empty_file_is_made_ours),
        folder_test(a_newer_file_is_refused_and_unchanged),
        cmocka_unit_test(an_address_of_another_kind_is_refused),
        folder_test(a_folder_that_is_not_there_is_an_error_not_a_crash),
        cmocka_unit_test(closing_nothing_is_fine),
        folder_test(parameters_may_come_in_any_order),
        folder_test(values_of_every_kind_come_back),
        folder_test(a_query_may_be_left_before_its_end),
        folder_test(a_statement_that_does_not_compile_has_no_rows_and_an_error),
        folder_test(a_broken_constraint_is_an_error_and_the_connection_lives_on),
        folder_test(a_reader_changes_nothing),
        folder_test(a_reader_sees_committed_rows_only),
        folder_test(a_snapshot_does_not_see_later_commits),
        folder_test(a_rollback_leaves_nothing),
        folder_test(changes_count_rows_and_reads_do_not),
        folder_test(a_query_past_its_deadline_fails),
        folder_test(a_query_before_its_deadline_is_left_alone),
        folder_test(the_log_is_folded_back_and_starts_again),
        folder_test(a_short_log_is_left_alone),
        folder_test(a_reader_outside_that_pins_the_log_is_noticed),
        folder_test(an_open_snapshot_pins_the_log_until_it_ends),
        folder_test(a_sound_file_has_nothing_to_report),
        folder_test(a_damaged_file_is_reported),
        folder_test(a_backup_made_while_writing_is_whole),
        folder_test(a_backup_that_is_given_up_leaves_no_file),
        folder_test(only_copies_that_pawl_has_named_are_removed_at_start),
        folder_test(any_number_of_statements_is_kept_and_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
