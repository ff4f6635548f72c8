/* The index of runs gets the same from memory as from the rows. */
#include "store/run_support.h"

#include "core/txn/cache/recent_runs.h"
#include "store/run/slot_holders.h"

enum { TENANTS = 3 };

/* A run that the memory knows, and its row. */
static void make(struct db *db, struct recent_runs *r, int64_t num, bool holds)
{
    struct uuid id = id_at(num);
    struct run run = plain_run(1 + num * 7 % TENANTS, id, num);
    run.status = holds ? RUN_WAITING : RUN_QUEUED;
    assert_ok(runs_insert(db, &run));
    recent_runs_add(r, run.tenant, num);
    if (holds)
        recent_runs_hold(r, num, true);
}

static void fold(struct db *db, struct recent_runs *r, int64_t last)
{
    assert_ok(db_begin(db));
    assert_ok(recent_runs_index(r, db, last));
    assert_ok(db_commit(db));
    assert_false(r->is_lost);
}

static void assert_indexed(struct db *db, int64_t last)
{
    int64_t through = -1;
    assert_ok(late_index_through(db, &through));
    assert_int_equal(through, last);
    assert_int_equal(number_of(db, "SELECT count(*) FROM runs_index"), last);
    assert_int_equal(number_of(db, "SELECT count(*) FROM runs_index i JOIN runs r"
                                   " ON r.num = i.num AND r.tenant = i.tenant"),
                     last);
    assert_int_equal(number_of(db, "SELECT count(*) FROM holding"),
                     number_of(db, "SELECT count(*) FROM runs WHERE " RUN_HOLDS_SLOT));
    assert_int_equal(number_of(db, "SELECT count(*) FROM holding h JOIN runs r ON r.num = h.run"
                                   " AND r.tenant = h.tenant WHERE NOT " RUN_HOLDS_SLOT),
                     0);
}

static void the_index_gets_what_memory_knows(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    struct recent_runs *r = recent_runs_new();
    fold(db, r, 0); /* it has just been made and does not know yet */
    int64_t num = 0;
    for (int64_t count = 0; count <= 40; count += 4) {
        for (int64_t i = 0; i < count; i++, num++)
            make(db, r, num + 1, num % 3 == 0);
        assert_int_equal(r->count, count);
        fold(db, r, num);
        assert_indexed(db, num);
    }
    recent_runs_free(r);
    db_close(db);
}

static void a_slot_that_is_free_again_is_not_indexed(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    struct recent_runs *r = recent_runs_new();
    fold(db, r, 0);
    make(db, r, 1, true);
    make(db, r, 2, true);
    recent_runs_hold(r, 1, false);
    fold(db, r, 2);
    assert_int_equal(number_of(db, "SELECT sum(run) FROM holding"), 2);
    recent_runs_free(r);
    db_close(db);
}

static void after_a_rollback_the_rows_are_read(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    struct recent_runs *r = recent_runs_new();
    fold(db, r, 0);
    make(db, r, 1, true);
    recent_runs_forget(r);
    make(db, r, 2, true);
    assert_int_equal(r->count, 0);
    fold(db, r, 2);
    assert_indexed(db, 2);
    make(db, r, 3, true);
    fold(db, r, 3);
    assert_indexed(db, 3);
    recent_runs_free(r);
    db_close(db);
}

static void what_memory_does_not_know_makes_it_read_the_rows(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    struct recent_runs *r = recent_runs_new();
    fold(db, r, 0);
    make(db, r, 5, true);
    recent_runs_hold(r, 4, true);
    assert_true(r->is_lost);
    recent_runs_folded(r);
    for (int64_t num = 1; num <= RECENT_RUNS_MAX; num++)
        recent_runs_add(r, 1, num);
    assert_false(r->is_lost);
    recent_runs_add(r, 1, RECENT_RUNS_MAX + 1);
    assert_true(r->is_lost);
    recent_runs_free(r);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(the_index_gets_what_memory_knows),
        folder_test(a_slot_that_is_free_again_is_not_indexed),
        folder_test(after_a_rollback_the_rows_are_read),
        folder_test(what_memory_does_not_know_makes_it_read_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
