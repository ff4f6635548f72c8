/* The checker of write-once registers: what it must accept, and what it must refuse. */
#include "sim/once.h"

#include "base/support.h"

enum { A = 1, B = 2, IS_NOTHING = 1, IS_A = 1 << A, IS_B = 1 << B, IS_VALUE = IS_A | IS_B };

static struct once reg;

static int empty(void **state)
{
    (void)state;
    once_init(&reg);
    return 0;
}

/* One after the other: sent at `at`, answered at `at` + 1. */
static bool wins(int64_t at, int does, const char *id)
{
    return once_won(&reg, once_sent(&reg, at, does), at + 1, id);
}

static bool finds(int64_t at, int does, unsigned classes, const char *id)
{
    return once_found(&reg, once_sent(&reg, at, does), at + 1, classes, id);
}

/* --- one after the other --- */

static void the_first_write_wins_and_later_ones_find_it(void **state)
{
    (void)state;
    assert_true(finds(1, ONCE_READS, IS_NOTHING, ""));
    assert_true(wins(3, A, "x"));
    assert_true(finds(5, A, IS_A, "x"));
    assert_true(finds(7, B, IS_VALUE & ~IS_B, ""));
    assert_true(finds(9, ONCE_READS, IS_VALUE, "x"));
}

static void two_winners_are_refused(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    assert_false(wins(3, A, "y"));
}

static void two_winners_of_the_same_identity_are_refused(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    assert_false(wins(3, A, "x"));
}

static void another_identity_is_refused(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    assert_false(finds(3, A, IS_A, "y"));
}

static void another_class_is_refused(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    assert_false(finds(3, B, IS_B, "x"));
}

static void nothing_after_a_value_is_refused(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    assert_false(finds(3, ONCE_READS, IS_NOTHING, ""));
}

static void nothing_after_a_value_that_was_only_read_is_refused(void **state)
{
    (void)state;
    once_lost(&reg, once_sent(&reg, 1, A), 2);
    assert_true(finds(3, ONCE_READS, IS_VALUE, "x"));
    assert_false(finds(5, ONCE_READS, IS_NOTHING, ""));
}

static void a_value_that_nobody_wrote_is_refused(void **state)
{
    (void)state;
    assert_false(finds(1, ONCE_READS, IS_VALUE, "x"));
}

static void a_value_before_it_was_written_is_refused(void **state)
{
    (void)state;
    int reader = once_sent(&reg, 1, ONCE_READS);
    assert_false(once_found(&reg, reader, 2, IS_VALUE, "x"));
}

/* --- at the same time --- */

static void concurrent_operations_may_be_done_in_any_order(void **state)
{
    (void)state;
    int writer = once_sent(&reg, 1, A);
    int reader = once_sent(&reg, 2, ONCE_READS);
    int late = once_sent(&reg, 3, ONCE_READS);
    assert_true(once_found(&reg, late, 4, IS_VALUE, "x"));
    assert_true(once_won(&reg, writer, 5, "x"));
    assert_true(once_found(&reg, reader, 6, IS_NOTHING, ""));
    assert_true(finds(7, ONCE_READS, IS_A, "x"));
}

static void a_reader_that_began_after_another_saw_the_value_must_see_it(void **state)
{
    (void)state;
    int writer = once_sent(&reg, 1, A);
    assert_true(finds(2, ONCE_READS, IS_VALUE, "x"));
    assert_false(finds(4, ONCE_READS, IS_NOTHING, ""));
    (void)writer;
}

static void only_one_of_two_writers_wins(void **state)
{
    (void)state;
    int a = once_sent(&reg, 1, A);
    int b = once_sent(&reg, 2, B);
    assert_true(once_won(&reg, b, 3, "y"));
    assert_false(once_won(&reg, a, 4, "x"));
}

static void the_loser_learns_the_winner(void **state)
{
    (void)state;
    int a = once_sent(&reg, 1, A);
    int b = once_sent(&reg, 2, B);
    assert_true(once_won(&reg, b, 3, "y"));
    assert_false(once_found(&reg, a, 4, IS_A, "y"));
}

/* --- lost answers --- */

static void a_lost_write_may_have_been_done_or_not(void **state)
{
    (void)state;
    once_lost(&reg, once_sent(&reg, 1, A), 2);
    assert_true(wins(3, B, "y"));
    once_init(&reg);
    once_lost(&reg, once_sent(&reg, 1, A), 2);
    assert_true(finds(3, B, IS_A, "x"));
}

static void a_lost_write_is_not_done_later(void **state)
{
    (void)state;
    once_lost(&reg, once_sent(&reg, 1, A), 2);
    assert_true(finds(3, ONCE_READS, IS_NOTHING, ""));
    assert_false(finds(5, ONCE_READS, IS_VALUE, "x"));
}

static void a_copy_may_be_done_later(void **state)
{
    (void)state;
    int refused = once_sent(&reg, 1, A);
    once_repeated(&reg, refused, INT64_MAX);
    assert_true(once_found(&reg, refused, 2, IS_NOTHING, ""));
    assert_true(finds(3, ONCE_READS, IS_NOTHING, ""));
    assert_true(finds(5, ONCE_READS, IS_VALUE, "x"));
    assert_false(finds(7, ONCE_READS, IS_NOTHING, ""));
}

static void a_repeated_request_may_find_what_it_has_done(void **state)
{
    (void)state;
    int twice = once_sent(&reg, 1, A);
    once_repeated(&reg, twice, 5);
    assert_true(once_found(&reg, twice, 5, IS_A, "x"));
    assert_false(finds(7, ONCE_READS, IS_VALUE, "y"));
}

/* --- clearing --- */

/* Seed 141287: the first try sets it, an operator clears it, a copy of the second try sets it
 * again. */
static bool is_set_twice_around_a_clear(int repeated)
{
    once_init(&reg);
    int often = once_sent(&reg, 1, A);
    bool ok = wins(3, ONCE_CLEARS, "x");
    for (int i = 0; i < repeated; i++)
        once_repeated(&reg, often, 9);
    return ok && once_found(&reg, often, 9, IS_A, "y");
}

static void each_delivery_may_set_it_again_after_a_clear(void **state)
{
    (void)state;
    assert_false(is_set_twice_around_a_clear(1));
    assert_true(is_set_twice_around_a_clear(2));
}

static void a_cleared_register_is_written_again(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    assert_true(wins(3, ONCE_CLEARS, "x"));
    assert_true(finds(5, ONCE_CLEARS, IS_NOTHING, ""));
    assert_true(wins(7, B, "y"));
    assert_true(finds(9, ONCE_READS, IS_B, "y"));
}

static void a_cleared_identity_does_not_come_back(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    assert_true(wins(3, ONCE_CLEARS, "x"));
    once_lost(&reg, once_sent(&reg, 5, A), 6);
    assert_false(finds(7, ONCE_READS, IS_VALUE, "x"));
}

static void a_value_after_it_was_cleared_is_refused(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    assert_true(wins(3, ONCE_CLEARS, "x"));
    assert_false(finds(5, A, IS_A, "x"));
}

static void a_lost_release_leaves_both_open_until_somebody_looks(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    once_lost(&reg, once_sent(&reg, 3, ONCE_CLEARS), 4);
    assert_true(finds(5, ONCE_READS, IS_VALUE, "x"));
    assert_false(wins(7, A, "y"));
}

static void a_clock_may_clear_once(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    once_may(&reg, 3, ONCE_CLEARS);
    assert_true(finds(5, A, IS_A, "x"));
    assert_true(wins(7, A, "y"));
    assert_false(wins(9, A, "z"));
}

/* --- size --- */

static void long_histories_are_summed_up(void **state)
{
    (void)state;
    assert_true(wins(1, A, "x"));
    for (int i = 0; i < 1000; i++) {
        if (i % 3 == 0)
            once_lost(&reg, once_sent(&reg, 10 + 2 * i, B), 11 + 2 * i);
        else
            assert_true(finds(10 + 2 * i, A, IS_A, "x"));
    }
    assert_false(reg.retired);
    assert_false(finds(5000, B, IS_B, "y"));
}

static void many_at_the_same_time_are_checked(void **state)
{
    (void)state;
    int ops[30];
    for (int i = 0; i < 30; i++)
        ops[i] = once_sent(&reg, 1 + i, i % 2 == 0 ? A : B);
    assert_true(once_won(&reg, ops[11], 50, "x"));
    for (int i = 0; i < 29; i++) {
        if (i != 11)
            assert_true(once_found(&reg, ops[i], 51 + i, IS_B, "x"));
    }
    assert_false(reg.retired);
    assert_false(once_found(&reg, ops[29], 99, IS_A, "x"));
}

#define register_test(f) cmocka_unit_test_setup(f, empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        register_test(the_first_write_wins_and_later_ones_find_it),
        register_test(two_winners_are_refused),
        register_test(two_winners_of_the_same_identity_are_refused),
        register_test(another_identity_is_refused),
        register_test(another_class_is_refused),
        register_test(nothing_after_a_value_is_refused),
        register_test(nothing_after_a_value_that_was_only_read_is_refused),
        register_test(a_value_that_nobody_wrote_is_refused),
        register_test(a_value_before_it_was_written_is_refused),
        register_test(concurrent_operations_may_be_done_in_any_order),
        register_test(a_reader_that_began_after_another_saw_the_value_must_see_it),
        register_test(only_one_of_two_writers_wins),
        register_test(the_loser_learns_the_winner),
        register_test(a_lost_write_may_have_been_done_or_not),
        register_test(a_lost_write_is_not_done_later),
        register_test(a_copy_may_be_done_later),
        register_test(a_repeated_request_may_find_what_it_has_done),
        register_test(each_delivery_may_set_it_again_after_a_clear),
        register_test(a_cleared_register_is_written_again),
        register_test(a_cleared_identity_does_not_come_back),
        register_test(a_value_after_it_was_cleared_is_refused),
        register_test(a_lost_release_leaves_both_open_until_somebody_looks),
        register_test(a_clock_may_clear_once),
        register_test(many_at_the_same_time_are_checked),
        register_test(long_histories_are_summed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
