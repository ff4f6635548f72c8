/* What becomes of a schedule's time when it has come: every case. */
#include "base/support.h"

#include "domain/calendar/schedule.h"

enum { DUE = 1000000 };

static enum schedule_verdict decide(int64_t late_ms, int64_t catch_up_ms, bool active,
                                    enum overlap overlap)
{
    struct schedule_last last = {.is_active = active, .was_active = active};
    return schedule_decide(DUE + late_ms, DUE, catch_up_ms, last, overlap);
}

static void a_time_that_has_just_come_is_fired(void **state)
{
    (void)state;
    static const int64_t LATE[] = {0, 1, 999, SCHEDULE_LATE_MS - 1, SCHEDULE_LATE_MS};
    for (size_t i = 0; i < ARRAY_LEN(LATE); i++) {
        for (enum overlap o = 0; o < OVERLAP_COUNT; o++)
            assert_int_equal(decide(LATE[i], 0, false, o), SCHEDULE_FIRE);
    }
}

/* Being busy is not being away; what is longer ago than is caught up with is let go. */
static void a_time_is_missed_past_what_is_caught_up_with(void **state)
{
    (void)state;
    static const struct {
        int64_t late_ms;
        int64_t catch_up_ms;
        bool missed;
    } ROWS[] = {
        {SCHEDULE_LATE_MS, 0, false},
        {SCHEDULE_LATE_MS + 1, 0, true},
        {SCHEDULE_LATE_MS + 1, 1, true},
        {SCHEDULE_LATE_MS + 1, SCHEDULE_LATE_MS, true},
        {SCHEDULE_LATE_MS + 1, 60000, false},
        {60000, 60000, false},
        {60001, 60000, true},
        {INT64_C(86400000) * 30, INT64_C(86400000) * 30, false},
        {INT64_C(86400000) * 3000, 0, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        for (enum overlap o = 0; o < OVERLAP_COUNT; o++)
            assert_int_equal(decide(ROWS[i].late_ms, ROWS[i].catch_up_ms, false, o),
                             ROWS[i].missed ? SCHEDULE_MISSED : SCHEDULE_FIRE);
    }
}

static void skip_leaves_a_time_out_while_the_last_run_is_active(void **state)
{
    (void)state;
    assert_int_equal(decide(0, 0, true, OVERLAP_SKIP), SCHEDULE_OVERLAP);
    assert_int_equal(decide(60000, 60000, true, OVERLAP_SKIP), SCHEDULE_OVERLAP);
    assert_int_equal(decide(60000, 0, true, OVERLAP_SKIP), SCHEDULE_MISSED);
}

static void queue_waits_for_the_last_run_however_long_it_takes(void **state)
{
    (void)state;
    static const int64_t LATE[] = {0, 60000, INT64_C(86400000) * 7};
    static const struct schedule_last WAS = {.is_active = false, .was_active = true};
    for (size_t i = 0; i < ARRAY_LEN(LATE); i++) {
        assert_int_equal(decide(LATE[i], 0, true, OVERLAP_QUEUE), SCHEDULE_WAIT);
        /* And when that is over it comes, although its own time may be long past. */
        assert_int_equal(schedule_decide(DUE + LATE[i], DUE, 0, WAS, OVERLAP_QUEUE), SCHEDULE_FIRE);
    }
    /* Nobody else gets that much time. */
    assert_int_equal(schedule_decide(DUE + 60000, DUE, 0, WAS, OVERLAP_SKIP), SCHEDULE_MISSED);
    assert_int_equal(schedule_decide(DUE + 60000, DUE, 0, WAS, OVERLAP_ALLOW), SCHEDULE_MISSED);
}

static void allow_asks_nobody(void **state)
{
    (void)state;
    assert_int_equal(decide(0, 0, true, OVERLAP_ALLOW), SCHEDULE_FIRE);
    assert_int_equal(decide(5000, 0, true, OVERLAP_ALLOW), SCHEDULE_FIRE);
    assert_int_equal(decide(60000, 0, true, OVERLAP_ALLOW), SCHEDULE_MISSED);
}

static void names_round_trip(void **state)
{
    (void)state;
    for (enum overlap o = 0; o < OVERLAP_COUNT; o++) {
        assert_int_equal(overlap_of(str_of(overlap_name(o))), o);
        for (enum overlap other = 0; other < o; other++)
            assert_string_not_equal(overlap_name(o), overlap_name(other));
    }
    static const char *const NO_NAMES[] = {"", "Skip", "skip ", "ski", "wait"};
    for (size_t i = 0; i < ARRAY_LEN(NO_NAMES); i++)
        assert_int_equal(overlap_of(str_of(NO_NAMES[i])), OVERLAP_COUNT);
    assert_int_equal(overlap_of(STR_NONE), OVERLAP_COUNT);
}

static void decide_before_the_time_has_come(void)
{
    (void)decide(-1, 0, false, OVERLAP_SKIP);
}

static void a_time_that_has_not_come_breaks_the_contract(void **state)
{
    (void)state;
    assert_true(aborts(decide_before_the_time_has_come));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_that_has_just_come_is_fired),
        cmocka_unit_test(a_time_is_missed_past_what_is_caught_up_with),
        cmocka_unit_test(skip_leaves_a_time_out_while_the_last_run_is_active),
        cmocka_unit_test(queue_waits_for_the_last_run_however_long_it_takes),
        cmocka_unit_test(allow_asks_nobody),
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(a_time_that_has_not_come_breaks_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
