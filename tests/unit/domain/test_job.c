/* The life of a job: every state met by every event. */
#include "base/support.h"

#include "domain/job.h"

/* What the diagram in job.h shows, written down a second time; NO: no such edge. */
#define NO JOB_STATE_COUNT
/* clang-format off */
static const enum job_state EXPECTED[JOB_STATE_COUNT][JOB_EVENT_COUNT] = {
#define ALL(x) {x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}
    [JOB_APPROVAL] = {
        [JOB_ON_CLAIM] = NO,               [JOB_ON_EXPIRE] = NO,               [JOB_ON_COMPLETE] = JOB_SUCCEEDED,
        [JOB_ON_FAIL] = JOB_FAILED,        [JOB_ON_FIRE] = NO,                 [JOB_ON_CANCEL] = JOB_CANCELLED,
        [JOB_ON_DISPATCH] = NO,            [JOB_ON_RETRY] = NO,                [JOB_ON_WAKE] = NO,
        [JOB_ON_RELEASE] = NO,             [JOB_ON_TIME_OUT] = JOB_TIMED_OUT,  [JOB_ON_HOLD] = NO,
        [JOB_ON_REVIVE] = NO,              [JOB_ON_APPROVE] = JOB_PENDING,     [JOB_ON_DENY] = JOB_DENIED,
        [JOB_ON_SUSPEND] = NO,             [JOB_ON_RESUME] = NO},
    [JOB_PENDING] = {
        [JOB_ON_CLAIM] = JOB_RUNNING,      [JOB_ON_EXPIRE] = NO,               [JOB_ON_COMPLETE] = NO,
        [JOB_ON_FAIL] = JOB_FAILED,        [JOB_ON_FIRE] = NO,                 [JOB_ON_CANCEL] = JOB_CANCELLED,
        [JOB_ON_DISPATCH] = JOB_DISPATCHED, [JOB_ON_RETRY] = NO,               [JOB_ON_WAKE] = NO,
        [JOB_ON_RELEASE] = NO,             [JOB_ON_TIME_OUT] = NO,             [JOB_ON_HOLD] = JOB_SCHEDULED,
        [JOB_ON_REVIVE] = NO,              [JOB_ON_APPROVE] = NO,              [JOB_ON_DENY] = NO,
        [JOB_ON_SUSPEND] = NO,             [JOB_ON_RESUME] = NO},
    [JOB_SCHEDULED] = {
        [JOB_ON_CLAIM] = NO,               [JOB_ON_EXPIRE] = NO,               [JOB_ON_COMPLETE] = JOB_SUCCEEDED,
        [JOB_ON_FAIL] = JOB_FAILED,        [JOB_ON_FIRE] = JOB_SUCCEEDED,      [JOB_ON_CANCEL] = JOB_CANCELLED,
        [JOB_ON_DISPATCH] = NO,            [JOB_ON_RETRY] = NO,                [JOB_ON_WAKE] = JOB_PENDING,
        [JOB_ON_RELEASE] = NO,             [JOB_ON_TIME_OUT] = JOB_TIMED_OUT,  [JOB_ON_HOLD] = NO,
        [JOB_ON_REVIVE] = NO,              [JOB_ON_APPROVE] = NO,              [JOB_ON_DENY] = NO,
        [JOB_ON_SUSPEND] = NO,             [JOB_ON_RESUME] = NO},
    [JOB_SUSPENDED] = {
        [JOB_ON_CLAIM] = NO,               [JOB_ON_EXPIRE] = NO,               [JOB_ON_COMPLETE] = NO,
        [JOB_ON_FAIL] = NO,                [JOB_ON_FIRE] = NO,                 [JOB_ON_CANCEL] = JOB_CANCELLED,
        [JOB_ON_DISPATCH] = NO,            [JOB_ON_RETRY] = NO,                [JOB_ON_WAKE] = NO,
        [JOB_ON_RELEASE] = NO,             [JOB_ON_TIME_OUT] = NO,             [JOB_ON_HOLD] = NO,
        [JOB_ON_REVIVE] = NO,              [JOB_ON_APPROVE] = NO,              [JOB_ON_DENY] = NO,
        [JOB_ON_SUSPEND] = NO,             [JOB_ON_RESUME] = JOB_PENDING},
    [JOB_DISPATCHED] = {
        [JOB_ON_CLAIM] = NO,               [JOB_ON_EXPIRE] = JOB_PENDING,      [JOB_ON_COMPLETE] = JOB_SUCCEEDED,
        [JOB_ON_FAIL] = JOB_FAILED,        [JOB_ON_FIRE] = NO,                 [JOB_ON_CANCEL] = JOB_CANCELLED,
        [JOB_ON_DISPATCH] = NO,            [JOB_ON_RETRY] = JOB_SCHEDULED,     [JOB_ON_WAKE] = NO,
        [JOB_ON_RELEASE] = NO,             [JOB_ON_TIME_OUT] = JOB_TIMED_OUT,  [JOB_ON_HOLD] = NO,
        [JOB_ON_REVIVE] = NO,              [JOB_ON_APPROVE] = NO,              [JOB_ON_DENY] = NO,
        [JOB_ON_SUSPEND] = NO,             [JOB_ON_RESUME] = NO},
    [JOB_RUNNING] = {
        [JOB_ON_CLAIM] = NO,               [JOB_ON_EXPIRE] = JOB_PENDING,      [JOB_ON_COMPLETE] = JOB_SUCCEEDED,
        [JOB_ON_FAIL] = JOB_FAILED,        [JOB_ON_FIRE] = NO,                 [JOB_ON_CANCEL] = JOB_CANCELLED,
        [JOB_ON_DISPATCH] = NO,            [JOB_ON_RETRY] = JOB_SCHEDULED,     [JOB_ON_WAKE] = NO,
        [JOB_ON_RELEASE] = JOB_PENDING,    [JOB_ON_TIME_OUT] = JOB_TIMED_OUT,  [JOB_ON_HOLD] = NO,
        [JOB_ON_REVIVE] = NO,              [JOB_ON_APPROVE] = NO,              [JOB_ON_DENY] = NO,
        [JOB_ON_SUSPEND] = JOB_SUSPENDED,  [JOB_ON_RESUME] = NO},
    [JOB_SUCCEEDED] = ALL(NO),
    [JOB_FAILED] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, [JOB_ON_REVIVE] = JOB_PENDING, [JOB_ON_APPROVE] = NO, [JOB_ON_DENY] = NO, [JOB_ON_SUSPEND] = NO, [JOB_ON_RESUME] = NO},
    [JOB_DENIED] = ALL(NO),
    [JOB_CANCELLED] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, [JOB_ON_REVIVE] = JOB_PENDING, [JOB_ON_APPROVE] = NO, [JOB_ON_DENY] = NO, [JOB_ON_SUSPEND] = NO, [JOB_ON_RESUME] = NO},
    [JOB_TIMED_OUT] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, [JOB_ON_REVIVE] = JOB_PENDING, [JOB_ON_APPROVE] = NO, [JOB_ON_DENY] = NO, [JOB_ON_SUSPEND] = NO, [JOB_ON_RESUME] = NO},
    [JOB_SKIPPED] = ALL(NO),
#undef ALL
};
/* clang-format on */

static void every_pair_leads_where_the_diagram_says(void **state)
{
    (void)state;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        for (enum job_event on = 0; on < JOB_EVENT_COUNT; on++) {
            enum job_state to = NO;
            enum err e = job_decide(from, on, &to);
            if (e != (EXPECTED[from][on] == NO ? ERR_STATUS_CONFLICT : ERR_OK) ||
                to != EXPECTED[from][on])
                fail_msg("%s on event %d goes to %d", job_state_name(from), (int)on, (int)to);
        }
    }
}

static void a_refusal_leaves_the_state_untouched(void **state)
{
    (void)state;
    enum job_state to = JOB_DENIED;
    assert_int_equal(job_decide(JOB_PENDING, JOB_ON_COMPLETE, &to), ERR_STATUS_CONFLICT);
    assert_int_equal(to, JOB_DENIED);
}

static void what_is_over_stays_so_but_for_a_job_that_is_made_to_try_again(void **state)
{
    (void)state;
    int terminal = 0;
    int revivable = 0;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        if (!job_has_ended(from))
            continue;
        terminal++;
        for (enum job_event on = 0; on < JOB_EVENT_COUNT; on++) {
            enum job_state to;
            if (job_decide(from, on, &to) != ERR_OK)
                continue;
            assert_int_equal(on, JOB_ON_REVIVE);
            assert_int_equal(to, JOB_PENDING);
            revivable++;
        }
    }
    assert_int_equal(terminal, 6);
    assert_int_equal(revivable, 3);
}

static void what_succeeded_is_never_done_again(void **state)
{
    (void)state;
    for (enum job_event on = 0; on < JOB_EVENT_COUNT; on++) {
        enum job_state to;
        assert_int_equal(job_decide(JOB_SUCCEEDED, on, &to), ERR_STATUS_CONFLICT);
    }
}

static void only_one_who_has_the_job_can_lose_it(void **state)
{
    (void)state;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        enum job_state to;
        bool held = from == JOB_RUNNING || from == JOB_DISPATCHED;
        assert_int_equal(job_decide(from, JOB_ON_EXPIRE, &to), held ? ERR_OK : ERR_STATUS_CONFLICT);
        assert_int_equal(job_decide(from, JOB_ON_RETRY, &to), held ? ERR_OK : ERR_STATUS_CONFLICT);
        assert_int_equal(job_decide(from, JOB_ON_RELEASE, &to),
                         from == JOB_RUNNING ? ERR_OK : ERR_STATUS_CONFLICT);
    }
}

/* A worker claims what is pending and nothing else: neither a delay nor what the server does. */
static void only_a_pending_job_is_handed_out(void **state)
{
    (void)state;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        enum job_state to;
        enum err expected = from == JOB_PENDING ? ERR_OK : ERR_STATUS_CONFLICT;
        assert_int_equal(job_decide(from, JOB_ON_CLAIM, &to), expected);
        assert_int_equal(job_decide(from, JOB_ON_DISPATCH, &to), expected);
        assert_int_equal(job_decide(from, JOB_ON_HOLD, &to), expected);
    }
}

static void every_open_state_that_is_reached_can_be_cancelled(void **state)
{
    (void)state;
    static const enum job_state REACHED[] = {JOB_APPROVAL, JOB_PENDING, JOB_SCHEDULED,
                                             JOB_DISPATCHED, JOB_RUNNING};
    for (size_t i = 0; i < ARRAY_LEN(REACHED); i++) {
        enum job_state to = NO;
        assert_int_equal(job_decide(REACHED[i], JOB_ON_CANCEL, &to), ERR_OK);
        assert_int_equal(to, JOB_CANCELLED);
    }
}

/* Only a person lets it go, or says no to it: no worker and no time does. */
static void only_a_job_that_waits_for_a_person_is_approved_or_denied(void **state)
{
    (void)state;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
        enum job_state to;
        enum err expected = from == JOB_APPROVAL ? ERR_OK : ERR_STATUS_CONFLICT;
        assert_int_equal(job_decide(from, JOB_ON_APPROVE, &to), expected);
        assert_int_equal(job_decide(from, JOB_ON_DENY, &to), expected);
    }
}

/* Nobody gets stuck: from every state that is reached there is a way to an end. */
static void every_job_can_come_to_an_end(void **state)
{
    (void)state;
    bool reached[JOB_STATE_COUNT] = {
        [JOB_PENDING] = true, [JOB_SCHEDULED] = true, [JOB_APPROVAL] = true};
    for (int round = 0; round < JOB_STATE_COUNT; round++) {
        for (enum job_state from = 0; from < JOB_STATE_COUNT; from++) {
            for (enum job_event on = 0; on < JOB_EVENT_COUNT && reached[from]; on++) {
                enum job_state to;
                if (job_decide(from, on, &to) == ERR_OK)
                    reached[to] = true;
            }
        }
    }
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++) {
        enum job_state to;
        if (reached[s] && !job_has_ended(s))
            assert_int_equal(job_decide(s, JOB_ON_CANCEL, &to), ERR_OK);
    }
    assert_true(reached[JOB_DENIED]);
    assert_false(reached[JOB_SKIPPED]);
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
        cmocka_unit_test(what_is_over_stays_so_but_for_a_job_that_is_made_to_try_again),
        cmocka_unit_test(what_succeeded_is_never_done_again),
        cmocka_unit_test(only_one_who_has_the_job_can_lose_it),
        cmocka_unit_test(only_a_pending_job_is_handed_out),
        cmocka_unit_test(every_open_state_that_is_reached_can_be_cancelled),
        cmocka_unit_test(only_a_job_that_waits_for_a_person_is_approved_or_denied),
        cmocka_unit_test(every_job_can_come_to_an_end),
        cmocka_unit_test(a_job_may_be_handed_out_again_and_again),
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(a_name_that_is_none_is_no_state),
        cmocka_unit_test(an_event_outside_the_table_breaks_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
