/* What the store does when there is no memory. */
#include "store/folder.h"

#include "fault_support/memory.h"

static void a_transaction_ends_without_memory(void **state)
{
    static const char CREATE[] = "CREATE TABLE noted (n INTEGER)";
    static const char INSERT[] = "INSERT INTO noted VALUES (1)";
    struct path path = path_in(*state, "a.db");
    struct db *db = open_writer(path.text);
    assert_ok(db_begin(db));
    run_sql(db, CREATE);
    assert_ok(db_commit(db));
    assert_ok(db_begin(db));
    run_sql(db, INSERT);
    memory_arm(1);
    db_rollback(db);
    (void)memory_disarm();
    assert_ok(db_begin(db)); /* the next one begins … */
    assert_ok(db_commit(db));
    assert_int_equal(number_of(db, "SELECT count(*) FROM noted"), 0); /* … and has nothing of it */
    db_close(db);
}

static void a_snapshot_ends_without_memory(void **state)
{
    struct path path = path_in(*state, "a.db");
    struct db *writer = open_writer(path.text);
    struct db *reader = open_reader(path.text);
    assert_ok(db_snapshot_begin(reader, 1000));
    assert_int_equal(number_of(reader, "SELECT 1"), 1);
    memory_arm(1);
    db_snapshot_end(reader);
    (void)memory_disarm();
    assert_ok(db_snapshot_begin(reader, 1000));
    db_snapshot_end(reader);
    db_close(reader);
    db_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_transaction_ends_without_memory),
        folder_test(a_snapshot_ends_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
