/* The life of a run: every status met by every event. */
#include "base/support.h"

#include "domain/run.h"

/* What the diagram in run.h shows, written down a second time; NO: no such edge. */
#define NO RUN_STATUS_COUNT
/* clang-format off */
static const enum run_status EXPECTED[RUN_STATUS_COUNT][RUN_EVENT_COUNT] = {
    /* ADMIT, START, WAIT, WAKE, SUCCEED, FAIL, CANCEL, TIME_OUT, PAUSE, RESUME, RETRY, DENY,
     * GIVE_UP */
    [RUN_QUEUED] = {RUN_PENDING, NO, NO, NO, NO, RUN_FAILED, RUN_CANCELLED, NO, NO, NO, NO, NO, RUN_FAILED},
    [RUN_PENDING] = {NO, RUN_RUNNING, NO, NO, NO, NO, RUN_CANCELLED, NO, NO, NO, NO, NO, RUN_FAILED},
    [RUN_RUNNING] = {NO, NO, RUN_WAITING, NO, RUN_SUCCEEDED, RUN_FAILED, RUN_CANCELLED, RUN_TIMED_OUT, RUN_PAUSED, NO, NO, RUN_DENIED, RUN_FAILED},
    [RUN_WAITING] = {NO, NO, NO, RUN_RUNNING, NO, NO, RUN_CANCELLED, NO, RUN_PAUSED, NO, NO, NO, RUN_FAILED},
    [RUN_PAUSED] = {NO, NO, NO, NO, NO, NO, RUN_CANCELLED, NO, NO, RUN_RUNNING, NO, NO, RUN_FAILED},
    [RUN_SUCCEEDED] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO},
    [RUN_FAILED] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, RUN_PENDING, NO, NO},
    [RUN_DENIED] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO},
    [RUN_CANCELLED] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO},
    [RUN_TIMED_OUT] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, RUN_PENDING, NO, NO},
};
/* clang-format on */
static_assert(RUN_EVENT_COUNT == 13, "every event has its column");

/* Calls `check` for every pair that has an edge; pairs without one must be refused. */
static void for_each_edge(void (*check)(enum run_status from, enum run_event on,
                                        const struct run_change *change))
{
    for (enum run_status from = 0; from < RUN_STATUS_COUNT; from++) {
        for (enum run_event on = 0; on < RUN_EVENT_COUNT; on++) {
            struct run_change change;
            if (run_decide(from, on, &change) == ERR_OK)
                check(from, on, &change);
        }
    }
}

static void every_pair_leads_where_the_diagram_says(void **state)
{
    (void)state;
    for (enum run_status from = 0; from < RUN_STATUS_COUNT; from++) {
        for (enum run_event on = 0; on < RUN_EVENT_COUNT; on++) {
            struct run_change change = {NO, 0};
            enum err e = run_decide(from, on, &change);
            if (e != (EXPECTED[from][on] == NO ? ERR_STATUS_CONFLICT : ERR_OK) ||
                change.to != EXPECTED[from][on])
                fail_msg("%s on event %d goes to %d", run_status_name(from), (int)on,
                         (int)change.to);
        }
    }
}

static void a_refusal_leaves_the_change_untouched(void **state)
{
    (void)state;
    struct run_change change = {RUN_PAUSED, 77};
    assert_int_equal(run_decide(RUN_SUCCEEDED, RUN_ON_CANCEL, &change), ERR_STATUS_CONFLICT);
    assert_int_equal(change.to, RUN_PAUSED);
    assert_int_equal(change.effects, 77);
}

static void what_is_over_stays_so_but_for_a_run_that_is_made_to_try_again(void **state)
{
    (void)state;
    int terminal = 0;
    int retried = 0;
    for (enum run_status from = 0; from < RUN_STATUS_COUNT; from++) {
        if (!run_has_ended(from))
            continue;
        terminal++;
        for (enum run_event on = 0; on < RUN_EVENT_COUNT; on++) {
            struct run_change change;
            if (run_decide(from, on, &change) != ERR_OK)
                continue;
            assert_int_equal(on, RUN_ON_RETRY);
            assert_int_equal(change.to, RUN_PENDING);
            assert_int_equal(change.effects, FX_SLOT_TAKE); /* it counts again, and no more */
            retried++;
        }
    }
    assert_int_equal(terminal, 5);
    assert_int_equal(retried, 2);
}

static void check_end(enum run_status from, enum run_event on, const struct run_change *change)
{
    (void)on;
    if (!run_has_ended(change->to))
        return;
    /* What it counted as, it no longer counts as. */
    assert_true((change->effects & (from == RUN_QUEUED ? FX_QUEUE_LEAVE : FX_SLOT_FREE)) != 0);
    assert_true((change->effects & FX_FINISH) != 0);
}

static void every_edge_that_ends_a_run_frees_its_slot_or_place_and_finishes(void **state)
{
    (void)state;
    for_each_edge(check_end);
}

static void check_slot(enum run_status from, enum run_event on, const struct run_change *change)
{
    (void)on;
    bool held = run_holds_slot(from);
    bool holds = run_holds_slot(change->to);
    assert_int_equal((change->effects & FX_SLOT_FREE) != 0, held && !holds);
    assert_int_equal((change->effects & FX_SLOT_TAKE) != 0, !held && holds);
    assert_int_equal((change->effects & FX_QUEUE_LEAVE) != 0, from == RUN_QUEUED);
    assert_true(change->to != RUN_QUEUED); /* a run is queued when it is made, or never */
    assert_int_equal((change->effects & FX_FINISH) != 0, run_has_ended(change->to));
}

static void slots_are_taken_freed_and_places_left_exactly_when_they_change_hands(void **state)
{
    (void)state;
    for_each_edge(check_slot);
}

static void check_jobs(enum run_status from, enum run_event on, const struct run_change *change)
{
    /* A run that ends by itself has ended its open jobs before; a queued one never had any. */
    assert_int_equal((change->effects & FX_JOBS_CANCEL) != 0,
                     from != RUN_QUEUED && (on == RUN_ON_CANCEL || on == RUN_ON_GIVE_UP));
    assert_int_equal((change->effects & FX_JOBS_HOLD) != 0, change->to == RUN_PAUSED);
    assert_int_equal((change->effects & FX_JOBS_RELEASE) != 0,
                     from == RUN_PAUSED && !run_has_ended(change->to));
}

static void open_jobs_end_with_a_cancelled_run_and_are_held_while_it_is_paused(void **state)
{
    (void)state;
    for_each_edge(check_jobs);
}

static void a_terminal_status_holds_no_slot(void **state)
{
    (void)state;
    for (enum run_status s = 0; s < RUN_STATUS_COUNT; s++)
        assert_false(run_has_ended(s) && run_holds_slot(s));
}

static void every_run_can_still_end(void **state)
{
    (void)state;
    static const enum run_status REACHED[] = {RUN_QUEUED, RUN_PENDING, RUN_RUNNING, RUN_WAITING,
                                              RUN_PAUSED};
    for (size_t i = 0; i < ARRAY_LEN(REACHED); i++) {
        struct run_change change;
        assert_int_equal(run_decide(REACHED[i], RUN_ON_CANCEL, &change), ERR_OK);
        assert_int_equal(change.to, RUN_CANCELLED);
    }
}

static void names_round_trip(void **state)
{
    (void)state;
    for (enum run_status s = 0; s < RUN_STATUS_COUNT; s++) {
        assert_int_equal(run_status_of(str_of(run_status_name(s))), s);
        for (enum run_status other = 0; other < s; other++)
            assert_string_not_equal(run_status_name(s), run_status_name(other));
    }
}

static void a_name_that_is_none_is_no_status(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"", "Running", "running ", "runnin", "done", "RUN_RUNNING"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        assert_int_equal(run_status_of(str_of(NAMES[i])), RUN_STATUS_COUNT);
    assert_int_equal(run_status_of(STR_NONE), RUN_STATUS_COUNT);
}

static void decide_past_the_last_status(void)
{
    struct run_change change;
    enum err e = run_decide(RUN_STATUS_COUNT, RUN_ON_START, &change);
    (void)e;
}

static void a_status_outside_the_table_breaks_the_contract(void **state)
{
    (void)state;
    assert_true(aborts(decide_past_the_last_status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_leads_where_the_diagram_says),
        cmocka_unit_test(a_refusal_leaves_the_change_untouched),
        cmocka_unit_test(what_is_over_stays_so_but_for_a_run_that_is_made_to_try_again),
        cmocka_unit_test(every_edge_that_ends_a_run_frees_its_slot_or_place_and_finishes),
        cmocka_unit_test(slots_are_taken_freed_and_places_left_exactly_when_they_change_hands),
        cmocka_unit_test(open_jobs_end_with_a_cancelled_run_and_are_held_while_it_is_paused),
        cmocka_unit_test(a_terminal_status_holds_no_slot),
        cmocka_unit_test(every_run_can_still_end),
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(a_name_that_is_none_is_no_status),
        cmocka_unit_test(a_status_outside_the_table_breaks_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
