/* What every store must do: transactions, what readers see, errors and how a commit ends. */
#include "store/conformance.h"

/* --- opening --- */

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

static void closing_rolls_back_what_was_not_committed(void **state)
{
    struct db *db = writer_with_notes(state);
    add_note(db, 1, STR("kept"));
    assert_ok(db_begin(db));
    add_note(db, 2, STR("lost"));
    db_close(db);
    db = writer_of(state);
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    db_close(NULL);
}

static void a_connection_names_its_engine(void **state)
{
    struct db *db = writer_of(state);
    assert_true(strlen(db_engine_name(db)) > 0);
    db_close(db);
}

static void a_program_names_its_engines(void **state)
{
    (void)state;
    assert_contains(db_engine_name_at(0), "SQLite");
    size_t count = 0;
    while (db_engine_name_at(count) != NULL)
        count++;
    assert_int_equal(count, 4);
}

/* A caller asks; what is not offered is not called. */
static void an_engine_offers_all_optional_functions_or_none(void **state)
{
    struct db *db = writer_of(state);
    bool offers = !test_store_is_eager();
    assert_int_equal(db_has_log(db), offers);
    assert_int_equal(db_has_backup(db), offers);
    assert_int_equal(db_has_integrity_check(db), offers);
    assert_false(db_wants_housekeeping(db));
    db_close(db);
}

/* --- what a transaction and its readers see --- */

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

static void a_transaction_sees_what_it_wrote(void **state)
{
    static const char UPDATE[] = "UPDATE notes SET text = $2 WHERE num = $1";
    static const char READ[] = "SELECT text FROM notes WHERE num = $1";
    struct db *db = writer_with_notes(state);
    assert_ok(db_begin(db));
    for (int64_t i = 1; i <= 100; i++)
        add_note(db, i, STR("x"));
    assert_ok(DB_EXEC(db, UPDATE, NULL, DB_I(50), DB_T(STR("y"))));
    struct db_rows *rows = DB_QUERY(db, READ, DB_I(50));
    assert_true(db_next(rows));
    assert_str(db_str(rows, 0), "y");
    assert_ok(db_rows_end(rows));
    assert_int_equal(count_notes(db), 100);
    assert_ok(db_commit(db));
    assert_int_equal(db_commit_outcome(db), DB_COMMITTED);
    db_close(db);
}

/* The text of a statement may be kept; its values may not be the caller's any more. */
static void values_are_free_to_change_after_the_statement(void **state)
{
    static const char INSERT[] = "INSERT INTO notes (num, text) VALUES ($1, $2)";
    static const char READ[] = "SELECT text FROM notes ORDER BY num";
    struct db *db = writer_with_notes(state);
    char text[8];
    assert_ok(db_begin(db));
    for (int64_t i = 1; i <= 3; i++) {
        (void)snprintf(text, sizeof(text), "note %d", (int)i);
        assert_ok(DB_EXEC(db, INSERT, NULL, DB_I(i), DB_T(str_of(text))));
    }
    memset(text, 'z', sizeof(text));
    assert_ok(db_commit(db));
    struct db_rows *rows = db_query_values(db, READ, NULL, 0);
    assert_true(db_next(rows));
    assert_str(db_str(rows, 0), "note 1");
    assert_true(db_next(rows));
    assert_str(db_str(rows, 0), "note 2");
    assert_ok(db_rows_end(rows));
    db_close(db);
}

static void queries_may_be_nested(void **state)
{
    static const char OUTER[] = "SELECT num FROM notes ORDER BY num";
    static const char INNER[] = "SELECT count(*) FROM notes WHERE num <= $1";
    struct db *db = writer_with_notes(state);
    for (int64_t i = 1; i <= 3; i++)
        add_note(db, i, STR("x"));
    struct db_rows *outer = db_query_values(db, OUTER, NULL, 0);
    for (int64_t i = 1; i <= 3; i++) {
        assert_true(db_next(outer));
        struct db_rows *inner = DB_QUERY(db, INNER, DB_I(db_int(outer, 0)));
        assert_true(db_next(inner));
        assert_int_equal(db_int(inner, 0), i);
        assert_ok(db_rows_end(inner));
    }
    assert_false(db_next(outer));
    assert_ok(db_rows_end(outer));
    db_close(db);
}

static void changes_grow_with_writes_and_not_with_reads(void **state)
{
    static const char UPDATE[] = "UPDATE notes SET text = 'y' WHERE num <= $1";
    struct db *db = writer_with_notes(state);
    assert_ok(db_begin(db));
    int64_t before = db_changes(db);
    assert_int_equal(count_notes(db), 0);
    assert_true(db_changes(db) == before);
    add_note(db, 1, STR("x"));
    assert_true(db_changes(db) > before);
    before = db_changes(db);
    int64_t changed = -1;
    assert_ok(DB_EXEC(db, UPDATE, &changed, DB_I(1)));
    assert_int_equal(changed, 1);
    assert_true(db_changes(db) > before);
    before = db_changes(db);
    assert_ok(DB_EXEC(db, UPDATE, &changed, DB_I(0)));
    assert_int_equal(changed, 0);
    assert_int_equal(count_notes(db), 1);
    assert_true(db_changes(db) == before);
    assert_ok(db_commit(db));
    assert_true(db_changes(db) == before);
    db_close(db);
}

static void a_counted_statement_counts_after_those_that_wait(void **state)
{
    static const char UPDATE[] = "UPDATE notes SET text = 'y' WHERE num <= $1";
    struct db *db = writer_with_notes(state);
    assert_ok(db_begin(db));
    for (int64_t i = 1; i <= 5; i++)
        add_note(db, i, STR("x"));
    int64_t changed = -1;
    assert_ok(DB_EXEC(db, UPDATE, &changed, DB_I(3)));
    assert_int_equal(changed, 3);
    assert_ok(db_commit(db));
    db_close(db);
}

/* --- errors --- */

/* How a transaction ends when a statement of it may have failed already. */
static enum err finish(struct db *db, enum err e)
{
    if (e != ERR_OK) {
        db_rollback(db);
        return e;
    }
    e = db_commit(db);
    assert_int_equal(db_commit_outcome(db), e == ERR_OK ? DB_COMMITTED : DB_ABORTED);
    return e;
}

static void a_broken_constraint_shows_at_the_commit_at_the_latest(void **state)
{
    struct db *db = writer_with_notes(state);
    assert_ok(db_begin(db));
    assert_ok(try_note(db, 1, NULL));
    enum err e = try_note(db, 1, NULL);
    assert_int_equal(e, test_store_is_eager() ? ERR_OK : ERR_INTERNAL);
    assert_int_equal(finish(db, e), ERR_INTERNAL);
    assert_int_equal(count_notes(db), 0);
    assert_ok(db_begin(db));
    assert_ok(try_note(db, 1, NULL));
    assert_ok(db_commit(db));
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

static void a_counted_statement_shows_its_error_at_once(void **state)
{
    struct db *db = writer_with_notes(state);
    int64_t changed = -1;
    assert_ok(db_begin(db));
    assert_ok(try_note(db, 1, NULL));
    assert_int_equal(try_note(db, 1, &changed), ERR_INTERNAL);
    assert_int_equal(changed, -1);
    db_rollback(db);
    assert_int_equal(count_notes(db), 0);
    db_close(db);
}

static void a_query_shows_the_error_of_a_statement_that_waited(void **state)
{
    static const char SQL[] = "SELECT count(*) FROM notes";
    struct db *db = writer_with_notes(state);
    assert_ok(db_begin(db));
    assert_ok(try_note(db, 1, NULL));
    enum err e = try_note(db, 1, NULL);
    if (e == ERR_OK) {
        for (int round = 0; round < 2; round++) { /* and it stays so */
            struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
            assert_false(db_next(rows));
            e = db_rows_end(rows);
            assert_int_equal(e, ERR_INTERNAL);
        }
    }
    db_rollback(db);
    assert_int_equal(count_notes(db), 0);
    db_close(db);
}

/* There are no savepoints: the others are run again. */
static void one_operation_is_undone_by_running_the_others_again(void **state)
{
    struct db *db = writer_with_notes(state);
    add_note(db, 2, STR("there before"));
    assert_ok(db_begin(db));
    assert_ok(try_note(db, 1, NULL));
    enum err e = try_note(db, 2, NULL); /* the one that fails */
    if (e == ERR_OK)
        e = try_note(db, 3, NULL);
    assert_int_equal(finish(db, e), ERR_INTERNAL);
    assert_int_equal(count_notes(db), 1);
    assert_ok(db_begin(db));
    assert_ok(try_note(db, 1, NULL));
    assert_ok(try_note(db, 3, NULL));
    assert_ok(db_commit(db));
    assert_int_equal(count_notes(db), 3);
    db_close(db);
}

static void a_statement_outside_a_transaction_shows_its_error(void **state)
{
    struct db *db = writer_with_notes(state);
    assert_ok(try_note(db, 1, NULL));
    assert_int_equal(try_note(db, 1, NULL), ERR_INTERNAL);
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

/* PostgreSQL has no such limit: there the error is made up, and what the driver makes of it is not.
 */
static void take_the_room(struct db *db)
{
    static const char SMALL[] = "PRAGMA max_page_count=1"; /* as many as there are */
    static const char FUNCTION[] = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS"
                                   " 'BEGIN RAISE EXCEPTION USING ERRCODE = ''disk_full''; END'";
    static const char TRIGGER[] =
        "CREATE TRIGGER small BEFORE INSERT ON notes EXECUTE FUNCTION no_room()";
    if (!test_store_is_postgres()) {
        run_sql(db, SMALL);
        return;
    }
    run_sql(db, FUNCTION);
    run_sql(db, TRIGGER);
}

static void give_room(struct db *db)
{
    static const char LARGE[] = "PRAGMA max_page_count=1000000";
    static const char TRIGGER[] = "DROP TRIGGER small ON notes";
    run_sql(db, test_store_is_postgres() ? TRIGGER : LARGE);
}

static void a_store_without_room_aborts_and_works_again_with_room(void **state)
{
    static const char INSERT[] = "INSERT INTO notes (num, text) VALUES ($1, $2)";
    static char text[256 * 1024];
    struct db *db = writer_with_notes(state);
    memset(text, 'x', sizeof(text));
    struct str long_text = {text, sizeof(text)};
    take_the_room(db);
    assert_ok(db_begin(db));
    enum err e = DB_EXEC(db, INSERT, NULL, DB_I(1), DB_T(long_text));
    assert_int_equal(finish(db, e), ERR_STORE_FULL);
    assert_int_equal(count_notes(db), 0);
    give_room(db);
    assert_ok(db_begin(db));
    assert_ok(DB_EXEC(db, INSERT, NULL, DB_I(1), DB_T(long_text)));
    assert_ok(db_commit(db));
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

static void a_writer_of_a_store_in_use_is_refused(void **state)
{
    struct db *db = writer_of(state);
    struct problem p;
    problem_init(&p);
    struct db *second = NULL;
    assert_int_equal(try_open(path_in(*state, "p.db").text, DB_WRITER, &ENV_SYSTEM, 0, &p, &second),
                     ERR_STORE_BUSY);
    assert_null(second);
    problem_release(&p);
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
    /* Across a network the server's own clock counts, which is not still. */
    assert_ok(db_snapshot_begin(reader, test_store_is_postgres() ? 600000 : 1));
    assert_int_equal(count_to(reader, 50000, &e), 50000);
    assert_ok(e);
    db_snapshot_end(reader);
    db_close(reader);
    db_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(opening_again_finds_what_was_there),
        folder_test(readers_open_beside_the_writer),
        folder_test(closing_rolls_back_what_was_not_committed),
        folder_test(closing_nothing_is_fine),
        folder_test(a_connection_names_its_engine),
        folder_test(a_program_names_its_engines),
        folder_test(an_engine_offers_all_optional_functions_or_none),
        folder_test(a_reader_changes_nothing),
        folder_test(a_reader_sees_committed_rows_only),
        folder_test(a_snapshot_does_not_see_later_commits),
        folder_test(a_rollback_leaves_nothing),
        folder_test(a_transaction_sees_what_it_wrote),
        folder_test(values_are_free_to_change_after_the_statement),
        folder_test(queries_may_be_nested),
        folder_test(changes_grow_with_writes_and_not_with_reads),
        folder_test(a_counted_statement_counts_after_those_that_wait),
        folder_test(a_broken_constraint_shows_at_the_commit_at_the_latest),
        folder_test(a_counted_statement_shows_its_error_at_once),
        folder_test(a_query_shows_the_error_of_a_statement_that_waited),
        folder_test(one_operation_is_undone_by_running_the_others_again),
        folder_test(a_statement_outside_a_transaction_shows_its_error),
        folder_test(a_store_without_room_aborts_and_works_again_with_room),
        folder_test(a_writer_of_a_store_in_use_is_refused),
        folder_test(a_query_past_its_deadline_fails),
        folder_test(a_query_before_its_deadline_is_left_alone),
    };
    return run_on_every_store(tests, ARRAY_LEN(tests));
}
