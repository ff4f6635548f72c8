/* One tenant's many timers do not hold up another's few. */
#include "store/folder.h"

#include "base/limits.h"
#include "core/background/timer_turns.h"

enum { MANY = 3 * TIMERS_SEARCHED_MAX };

static void arm(struct db *db, int64_t due_at, int64_t run, int64_t tenant)
{
    struct timer timer = {due_at, run, 1, 0, tenant};
    assert_ok(timers_insert(db, &timer));
}

static struct db *open_with_backlog(void **state, int64_t tenant)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(db_begin(db));
    for (int64_t i = 0; i < MANY; i++)
        arm(db, 1000 + i / 100, i + 1, tenant);
    assert_ok(db_commit(db));
    return db;
}

static size_t search(struct timer_search *s, struct db *db, struct timer *found)
{
    struct timer front[TIMERS_PER_TURN_MAX];
    size_t front_count = 0;
    size_t count = 0;
    assert_ok(timers_due(db, 5000, TIMERS_PER_TURN_MAX, front, &front_count));
    assert_ok(timer_turns_search(s, db, 5000, front, front_count, found, &count));
    return count;
}

static void a_timer_that_has_just_become_due_is_found_at_once(void **state)
{
    struct db *db = open_with_backlog(state, 1);
    arm(db, 4001, 7, 2);
    arm(db, 4000, 7, 2);
    arm(db, 4002, 7, 1);
    struct timer_search s = {0};
    struct timer found[TIMERS_SINGLED_OUT_MAX];
    assert_int_equal(search(&s, db, found), 2);
    assert_int_equal(found[0].due_at, 4000);
    assert_int_equal(found[1].due_at, 4001);
    db_close(db);
}

static void a_timer_in_the_middle_of_a_backlog_is_found_within_a_few_searches(void **state)
{
    struct db *db = open_with_backlog(state, 1);
    arm(db, 1100, MANY + 1, 2);
    struct timer_search s = {0};
    struct timer found[TIMERS_SINGLED_OUT_MAX];
    size_t count = 0;
    for (int i = 0; i < 4 && count == 0; i++)
        count = search(&s, db, found);
    assert_int_equal(count, 1);
    assert_int_equal(found[0].tenant, 2);
    assert_int_equal(found[0].due_at, 1100);
    db_close(db);
}

static void a_search_that_came_to_the_end_begins_again(void **state)
{
    struct db *db = open_with_backlog(state, 1);
    struct timer_search s = {0};
    struct timer found[TIMERS_SINGLED_OUT_MAX];
    for (int i = 0; i < 2; i++)
        assert_int_equal(search(&s, db, found), 0);
    arm(db, 1003, MANY + 1, 2); /* before the place where the search is */
    size_t count = 0;
    for (int i = 0; i < 4 && count == 0; i++)
        count = search(&s, db, found);
    assert_int_equal(count, 1);
    db_close(db);
}

static void tenants_of_the_front_are_not_singled_out_and_no_other_takes_all_places(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(db_begin(db));
    for (int64_t i = 0; i < 2 * TIMERS_PER_TURN_MAX; i++)
        arm(db, 1000, i + 1, 1);
    for (int64_t i = 0; i < 100; i++)
        arm(db, 2000, i + 1, 2);
    arm(db, 3000, 1, 3);
    assert_ok(db_commit(db));
    struct timer_search s = {0};
    struct timer found[TIMERS_SINGLED_OUT_MAX];
    assert_int_equal(search(&s, db, found), TIMERS_SINGLED_OUT_TENANT_MAX + 1);
    for (size_t i = 0; i < TIMERS_SINGLED_OUT_TENANT_MAX; i++)
        assert_int_equal(found[i].tenant, 2);
    assert_int_equal(found[TIMERS_SINGLED_OUT_TENANT_MAX].tenant, 3);
    db_close(db);
}

static void tenants_take_turns_and_each_keeps_its_order(void **state)
{
    (void)state;
    static const int64_t TENANTS[] = {1, 1, 1, 2, 1, 2, 3};
    static const int64_t MIXED[] = {0, 3, 6, 1, 5, 2, 4}; /* by their places above */
    struct timer timers[ARRAY_LEN(TENANTS)];
    const struct timer *all[ARRAY_LEN(TENANTS)];
    const struct timer *out[ARRAY_LEN(TENANTS)];
    for (size_t i = 0; i < ARRAY_LEN(TENANTS); i++) {
        timers[i] = (struct timer){(int64_t)i, 1, 1, 0, TENANTS[i]};
        all[i] = &timers[i];
    }
    timer_turns_mix(all, ARRAY_LEN(TENANTS), out);
    for (size_t i = 0; i < ARRAY_LEN(MIXED); i++)
        assert_int_equal(out[i]->due_at, MIXED[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_timer_that_has_just_become_due_is_found_at_once),
        folder_test(a_timer_in_the_middle_of_a_backlog_is_found_within_a_few_searches),
        folder_test(a_search_that_came_to_the_end_begins_again),
        folder_test(tenants_of_the_front_are_not_singled_out_and_no_other_takes_all_places),
        cmocka_unit_test(tenants_take_turns_and_each_keeps_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
