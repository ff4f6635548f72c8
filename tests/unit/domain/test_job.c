/* The life of a job: every state met by every event. */
#include "base/support.h"

#include "domain/job.h"

/* What the diagram in job.h shows, written down a second time; NO: no such edge. */
#define NO JOB_STATE_COUNT
static const enum job_state EXPECTED[JOB_STATE_COUNT][JOB_EVENT_COUNT] = {
    /* CLAIM, EXPIRE, COMPLETE, FAIL, FIRE, CANCEL */
    [JOB_APPROVAL] = {NO, NO, NO, NO, NO, NO},
    [JOB_PENDING] = {JOB_RUNNING, NO, NO, NO, NO, JOB_CANCELLED},
    [JOB_SCHEDULED] = {NO, NO, NO, NO, JOB_SUCCEEDED, JOB_CANCELLED},
    [JOB_DISPATCHED] = {NO, NO, NO, NO, NO, NO},
    [JOB_RUNNING] = {NO, JOB_PENDING, JOB_SUCCEEDED, JOB_FAILED, NO, JOB_CANCELLED},
    [JOB_SUCCEEDED] = {NO, NO, NO, NO, NO, NO},
    [JOB_FAILED] = {NO, NO, NO, NO, NO, NO},
    [JOB_DENIED] = {NO, NO, NO, NO, NO, NO},
    [JOB_CANCELLED] = {NO, NO, NO, NO, NO, NO},
    [JOB_TIMED_OUT] = {NO, NO, NO, NO, NO, NO},
    [JOB_SKIPPED] = {NO, NO, NO, NO, NO, NO},
};

static void every_pair_leads_where_the_diagram_says(void **state)
{
    (void)state;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        for (enum job_event on = 0; on < JOB_EVENT_COUNT; on++) {
            enum job_state to = NO;
            enum err e = job_decide(from, on, &to);
            if (e != (EXPECTED[from][on] == NO ? ERR_CONCURRENCY : ERR_OK) ||
                to != EXPECTED[from][on])
                fail_msg("%s on event %d goes to %d", job_state_name(from), (int)on, (int)to);
        }
    }
}

static void a_refusal_leaves_the_state_untouched(void **state)
{
    (void)state;
    enum job_state to = JOB_DENIED;
    assert_int_equal(job_decide(JOB_PENDING, JOB_ON_COMPLETE, &to), ERR_CONCURRENCY);
    assert_int_equal(to, JOB_DENIED);
}

static void a_terminal_state_refuses_every_event(void **state)
{
    (void)state;
    int terminal = 0;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        if (!job_is_over(from))
            continue;
        terminal++;
        for (enum job_event on = 0; on < JOB_EVENT_COUNT; on++) {
            enum job_state to;
            assert_int_equal(job_decide(from, on, &to), ERR_CONCURRENCY);
        }
    }
    assert_int_equal(terminal, 6);
}

static void only_a_running_job_gives_a_result(void **state)
{
    (void)state;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        enum job_state to;
        enum err expected = from == JOB_RUNNING ? ERR_OK : ERR_CONCURRENCY;
        assert_int_equal(job_decide(from, JOB_ON_COMPLETE, &to), expected);
        assert_int_equal(job_decide(from, JOB_ON_FAIL, &to), expected);
        assert_int_equal(job_decide(from, JOB_ON_EXPIRE, &to), expected);
    }
}

static void every_open_state_that_is_reached_can_be_cancelled(void **state)
{
    (void)state;
    static const enum job_state REACHED[] = {JOB_PENDING, JOB_SCHEDULED, JOB_RUNNING};
    for (size_t i = 0; i < ARRAY_LEN(REACHED); i++) {
        enum job_state to = NO;
        assert_int_equal(job_decide(REACHED[i], JOB_ON_CANCEL, &to), ERR_OK);
        assert_int_equal(to, JOB_CANCELLED);
    }
}

static void a_job_may_be_handed_out_again_and_again(void **state)
{
    (void)state;
    enum job_state at = JOB_PENDING;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(job_decide(at, JOB_ON_CLAIM, &at), ERR_OK);
        assert_int_equal(job_decide(at, JOB_ON_EXPIRE, &at), ERR_OK);
    }
    assert_int_equal(at, JOB_PENDING);
}

static void names_round_trip(void **state)
{
    (void)state;
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++) {
        assert_int_equal(job_state_of(str_of(job_state_name(s))), s);
        for (enum job_state other = 0; other < s; other++)
            assert_string_not_equal(job_state_name(s), job_state_name(other));
    }
}

static void a_name_that_is_none_is_no_state(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"", "Pending", " pending", "pendin", "claimed"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        assert_int_equal(job_state_of(str_of(NAMES[i])), JOB_STATE_COUNT);
}

static void decide_past_the_last_event(void)
{
    enum job_state to;
    enum err e = job_decide(JOB_PENDING, JOB_EVENT_COUNT, &to);
    (void)e;
}

static void an_event_outside_the_table_breaks_the_contract(void **state)
{
    (void)state;
    assert_true(aborts(decide_past_the_last_event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_leads_where_the_diagram_says),
        cmocka_unit_test(a_refusal_leaves_the_state_untouched),
        cmocka_unit_test(a_terminal_state_refuses_every_event),
        cmocka_unit_test(only_a_running_job_gives_a_result),
        cmocka_unit_test(every_open_state_that_is_reached_can_be_cancelled),
        cmocka_unit_test(a_job_may_be_handed_out_again_and_again),
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(a_name_that_is_none_is_no_state),
        cmocka_unit_test(an_event_outside_the_table_breaks_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
