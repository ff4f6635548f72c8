/* The decorator that makes calls fail: which, with what, and how a commit ends then. */
#include "store/conformance.h"

static int failing_setup(void **state)
{
    assert_int_equal(setenv("PAWL_TEST_STORE", "failing", 1), 0);
    return folder_setup(state);
}

static int failing_teardown(void **state)
{
    failing_disarm();
    return folder_teardown(state);
}

#define failing_test(f) cmocka_unit_test_setup_teardown(f, failing_setup, failing_teardown)

static void the_nth_call_fails_once(void **state)
{
    struct db *db = writer_with_notes(state);
    failing_arm(&(struct fault){.nth = 3, .err = ERR_STORE_FULL});
    assert_ok(try_note(db, 1, NULL));
    assert_ok(try_note(db, 2, NULL));
    assert_false(failing_has_fired());
    assert_int_equal(try_note(db, 3, NULL), ERR_STORE_FULL);
    assert_true(failing_has_fired());
    assert_ok(try_note(db, 4, NULL));
    assert_int_equal(count_notes(db), 3);
    db_close(db);
}

static void a_lasting_fault_lasts_until_it_is_disarmed(void **state)
{
    struct db *db = writer_with_notes(state);
    failing_arm(&(struct fault){.nth = 2, .err = ERR_STORE_BUSY, .lasting = true});
    assert_ok(try_note(db, 1, NULL));
    for (int i = 0; i < 3; i++)
        assert_int_equal(try_note(db, 2, NULL), ERR_STORE_BUSY);
    failing_disarm();
    assert_ok(try_note(db, 2, NULL));
    assert_int_equal(count_notes(db), 2);
    db_close(db);
}

/* A query and each of its rows. */
static void a_query_and_each_row_can_fail(void **state)
{
    static const char SQL[] = "SELECT num FROM notes ORDER BY num";
    struct db *db = writer_with_notes(state);
    add_note(db, 1, STR("x"));
    add_note(db, 2, STR("x"));
    for (int64_t n = 1; n <= 4; n++) {
        failing_arm(&(struct fault){.nth = n, .err = ERR_STORE_BUSY});
        struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
        int64_t count = 0;
        while (db_next(rows))
            count++;
        assert_int_equal(db_rows_end(rows), ERR_STORE_BUSY);
        assert_int_equal(count, MAX(n - 2, 0));
    }
    failing_disarm();
    assert_int_equal(count_notes(db), 2);
    db_close(db);
}

static void other_connections_are_left_alone(void **state)
{
    struct db *db = writer_with_notes(state);
    struct db *reader = reader_of(state);
    failing_arm(
        &(struct fault){.nth = 1, .err = ERR_STORE_BUSY, .lasting = true, .access = DB_READER});
    assert_ok(try_note(db, 1, NULL));
    failing_disarm();
    assert_int_equal(count_notes(reader), 1);
    db_close(reader);
    db_close(db);
}

/* begin, a statement, and the commit that fails. */
static void fail_commit(struct db *db, const struct fault *fault, enum db_outcome outcome)
{
    failing_arm(fault);
    assert_ok(db_begin(db));
    assert_ok(try_note(db, 1, NULL));
    assert_int_equal(db_commit(db), fault->err);
    assert_int_equal(db_commit_outcome(db), outcome);
    failing_disarm();
}

static void a_commit_without_room_is_aborted(void **state)
{
    struct db *db = writer_with_notes(state);
    fail_commit(db, &(struct fault){.nth = 3, .err = ERR_STORE_FULL}, DB_ABORTED);
    assert_int_equal(count_notes(db), 0);
    db_close(db);
}

static void a_commit_that_fails_to_sync_is_in_doubt(void **state)
{
    struct db *db = writer_with_notes(state);
    fail_commit(db, &(struct fault){.nth = 3, .err = ERR_STORE_FAILED}, DB_IN_DOUBT);
    assert_int_equal(count_notes(db), 0);
    fail_commit(db, &(struct fault){.nth = 3, .err = ERR_STORE_FAILED, .commit_happened = true},
                DB_IN_DOUBT);
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        failing_test(the_nth_call_fails_once),
        failing_test(a_lasting_fault_lasts_until_it_is_disarmed),
        failing_test(a_query_and_each_row_can_fail),
        failing_test(other_connections_are_left_alone),
        failing_test(a_commit_without_room_is_aborted),
        failing_test(a_commit_that_fails_to_sync_is_in_doubt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
