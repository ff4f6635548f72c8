/* SQLite's data file: creating, migrating, locking it, and refusing what is not pawl's. */
#include "store/folder.h"

#include "store/migrations.h"

static void opening_creates_and_migrates(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    assert_true(db_is_only_writer(db));
    struct raw raw = raw_open(file.text);
    assert_int_equal(raw_number(&raw, "PRAGMA application_id"), 0x7061776C);
    assert_int_equal(raw_number(&raw, "PRAGMA user_version"),
                     MIGRATIONS_SQLITE[MIGRATIONS_SQLITE_COUNT - 1].number);
    assert_true(raw_number(&raw, "SELECT count(*) FROM sqlite_schema WHERE name IN ('tenants',"
                                 " 'runs', 'jobs', 'idempotency', 'timers', 'events')") == 6);
    raw_close(&raw);
    db_close(db);
}

/* Frames of SQLite's log that end a transaction. */
static int commits_in_log(const char *path)
{
    enum { HEADER = 32, FRAME = 24 + 4096 };
    char name[200];
    unsigned char frame[FRAME];
    int commits = 0;
    (void)snprintf(name, sizeof(name), "%s-wal", path);
    FILE *log = fopen(name, "rb");
    assert_non_null(log);
    assert_int_equal(fseek(log, HEADER, SEEK_SET), 0);
    while (fread(frame, FRAME, 1, log) == 1) {
        const unsigned char none[4] = {0};
        commits += memcmp(frame + 4, none, sizeof(none)) != 0; /* the file's size in pages */
    }
    assert_int_equal(fclose(log), 0);
    return commits;
}

static void a_new_file_is_made_by_one_commit(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    assert_int_equal(commits_in_log(file.text), 1);
    db_close(db);
}

/* Everything that a file says of its tables, and the rows that it begins with. */
static int64_t differences(struct raw *raw)
{
    static const char *const TEXT =
        "SELECT count(*) FROM (SELECT * FROM (SELECT type, name, tbl_name, sql FROM "
        "main.sqlite_schema"
        " EXCEPT SELECT type, name, tbl_name, sql FROM stepped.sqlite_schema)"
        " UNION ALL SELECT * FROM (SELECT type, name, tbl_name, sql FROM stepped.sqlite_schema"
        " EXCEPT SELECT type, name, tbl_name, sql FROM main.sqlite_schema)"
        " UNION ALL SELECT 'row', name, through, '' FROM main.indexed"
        "  WHERE (name, through) NOT IN (SELECT name, through FROM stepped.indexed)"
        " UNION ALL SELECT 'row', name, through, '' FROM stepped.indexed"
        "  WHERE (name, through) NOT IN (SELECT name, through FROM main.indexed))";
    return raw_number(raw, TEXT);
}

static void a_new_file_is_what_the_migrations_make_of_an_empty_one(void **state)
{
    struct path stepped = path_in(*state, "stepped.db");
    struct raw raw = raw_open(stepped.text);
    raw_exec(&raw, MIGRATIONS_SQLITE[0].sql);
    raw_exec(&raw, "PRAGMA application_id=0x7061776C; PRAGMA user_version=1");
    raw_close(&raw);
    db_close(open_writer(stepped.text)); /* by all the others */
    struct path file = path_in(*state, "p.db");
    db_close(open_writer(file.text));
    raw = raw_open(file.text);
    char attach[200];
    (void)snprintf(attach, sizeof(attach), "ATTACH '%s' AS stepped", stepped.text);
    raw_exec(&raw, attach);
    assert_int_equal(raw_number(&raw, "SELECT count(*) FROM stepped.indexed"), 5);
    assert_int_equal(differences(&raw), 0);
    raw_exec(&raw, "CREATE TABLE more (a)");
    assert_int_equal(differences(&raw), 1);
    raw_close(&raw);
}

static void migrations_are_numbered_without_gaps(void **state)
{
    (void)state;
    for (size_t i = 0; i < MIGRATIONS_SQLITE_COUNT; i++)
        assert_int_equal(MIGRATIONS_SQLITE[i].number, i + 1);
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

static void a_second_writer_is_refused_with_the_owner_of_the_file(void **state)
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
        struct raw raw = raw_open(file.text);
        raw_exec(&raw, THEIRS[i]);
        raw_close(&raw);
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
    struct raw raw = raw_open(file.text);
    assert_int_equal(raw_number(&raw, "PRAGMA application_id"), 0x7061776C);
    raw_close(&raw);
}

static void a_newer_file_is_refused_and_unchanged(void **state)
{
    struct path file = path_in(*state, "p.db");
    db_close(open_writer(file.text));
    struct raw raw = raw_open(file.text);
    raw_exec(&raw, "PRAGMA user_version=999");
    raw_close(&raw);
    must_stay(file.text, "newer pawl");
}

static void an_address_of_another_kind_is_refused(void **state)
{
    (void)state;
    char path_too_long[5000];
    memset(path_too_long, 'x', sizeof(path_too_long));
    memcpy(path_too_long, "sqlite:", 7);
    const struct str urls[] = {STR(""),          STR("sqlite"),
                               STR("sqlite:"),   STR("mysql://x"),
                               STR("/tmp/p.db"), {path_too_long, sizeof(path_too_long)}};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct problem p;
        problem_init(&p);
        struct db *db = NULL;
        struct db_config config = {.url = urls[i], .access = DB_WRITER, .env = &ENV_SYSTEM};
        assert_int_equal(db_open(&config, &p, &db), ERR_BAD_REQUEST);
        problem_release(&p);
    }
}

static void a_folder_that_is_not_there_is_an_error_not_a_crash(void **state)
{
    struct path file = path_in(*state, "no/such/p.db");
    refuse(file.text, DB_WRITER, ERR_STORE_FAILED, "p.db");
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
        folder_test(a_new_file_is_made_by_one_commit),
        folder_test(a_new_file_is_what_the_migrations_make_of_an_empty_one),
        cmocka_unit_test(migrations_are_numbered_without_gaps),
        folder_test(a_second_writer_is_refused_with_the_owner_of_the_file),
        folder_test(a_link_to_the_file_is_the_same_file),
        folder_test(a_reader_does_not_create_a_file),
        folder_test(another_programs_file_is_refused_and_unchanged),
        folder_test(a_file_that_is_no_database_is_refused_and_unchanged),
        folder_test(an_empty_file_is_made_ours),
        folder_test(a_newer_file_is_refused_and_unchanged),
        cmocka_unit_test(an_address_of_another_kind_is_refused),
        folder_test(a_folder_that_is_not_there_is_an_error_not_a_crash),
        folder_test(any_number_of_statements_is_kept_and_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
