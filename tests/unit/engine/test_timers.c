/* Sleeps and leases under a clock that the test moves, forward and back. */
#include "engine/run/timer_rows.h"

#define SLEEP_1000 "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}]}"
#define SLEEP_10 "{'steps':[{'name':'s','type':'sleep','duration_ms':10}]}"

static void a_sleep_ends_at_its_time(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", SLEEP_1000);
    struct uuid run = start(fixture, "w");
    assert_run_is(fixture, run, "waiting");
    fixture_pass_ms(fixture, 999);
    settle(fixture);
    assert_run_is(fixture, run, "waiting");
    fixture_pass_ms(fixture, 1);
    settle(fixture);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     0);
}

/* The steps of a run whose events say succeeded, in their order. */
static void succeeded_steps(struct fixture *fixture, struct uuid run, char out[static 64])
{
    struct call c;
    call_init(&c, fixture, &UC_LIST_EVENTS);
    c.input.events = (struct list_events_input){run, 0, 100};
    must_perform(&c);
    json_t *page = parsed_str(buf_str(&c.op.answer.body));
    const json_t *items = json_object_get(page, "items");
    assert_true(json_array_size(items) > 0);
    out[0] = '\0';
    size_t len = 0;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *event = json_array_get(items, i);
        if (strcmp(json_string_value(json_object_get(event, "type")), "job.succeeded") != 0)
            continue;
        const json_t *data = json_object_get(event, "data");
        len += (size_t)snprintf(out + len, 64 - len, "%s",
                                json_string_value(json_object_get(data, "step")));
    }
    json_decref(page);
    call_release(&c);
}

static void timers_that_are_due_together_fire_in_their_order(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':["
                 "{'name':'a','type':'sleep','duration_ms':300},"
                 "{'name':'b','type':'sleep','duration_ms':100},"
                 "{'name':'c','type':'sleep','duration_ms':200},"
                 "{'name':'d','type':'sleep','duration_ms':100},"
                 "{'name':'e','type':'sleep','duration_ms':5,'needs':['b']}]}");
    struct uuid run = start(fixture, "w");
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    fixture_pass_ms(fixture, 5); /* e began when b was fired, which was late */
    settle(fixture);
    assert_run_is(fixture, run, "succeeded");
    char order[64];
    succeeded_steps(fixture, run, order);
    assert_string_equal(order, "bdcae");
}

static void each_timer_fires_at_its_own_time(void **state)
{
    struct fixture *fixture = *state;
    static const int64_t DURATIONS[] = {500, 100, 400, 200, 300};
    struct uuid runs[ARRAY_LEN(DURATIONS)];
    for (size_t i = 0; i < ARRAY_LEN(DURATIONS); i++) {
        char id[8];
        char definition[128];
        (void)snprintf(id, sizeof(id), "w%zu", i);
        (void)snprintf(definition, sizeof(definition),
                       "{'steps':[{'name':'s','type':'sleep','duration_ms':%d}]}",
                       (int)DURATIONS[i]);
        put_workflow(fixture, id, definition);
        runs[i] = start(fixture, id);
    }
    for (int64_t passed = 100; passed <= 500; passed += 100) {
        fixture_pass_ms(fixture, 100);
        settle(fixture);
        for (size_t i = 0; i < ARRAY_LEN(DURATIONS); i++)
            assert_run_is(fixture, runs[i], DURATIONS[i] <= passed ? "succeeded" : "waiting");
    }
}

static void a_clock_that_is_set_back_delays_and_a_newer_sleep_still_ends(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "long", SLEEP_1000);
    put_workflow(fixture, "short", SLEEP_10);
    int64_t begun = fixture_now_ms(fixture);
    struct uuid first = start(fixture, "long");
    fixture_set_wall_ms(fixture, begun - 3600 * 1000);
    settle(fixture);
    struct uuid second = start(fixture, "short");
    fixture_pass_ms(fixture, 9);
    settle(fixture);
    assert_run_is(fixture, second, "waiting");
    fixture_pass_ms(fixture, 1);
    settle(fixture);
    assert_run_is(fixture, second, "succeeded");
    assert_run_is(fixture, first, "waiting");
    fixture_set_wall_ms(fixture, begun + 999);
    settle(fixture);
    assert_run_is(fixture, first, "waiting");
    fixture_set_wall_ms(fixture, begun + 1000);
    settle(fixture);
    assert_run_is(fixture, first, "succeeded");
    /* Ids rise though the clock did not. */
    assert_true(uuid_time(second) > uuid_time(first));
}

static void a_clock_that_is_set_forward_fires_what_is_due_by_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "long", SLEEP_1000);
    put_workflow(fixture, "short", SLEEP_10);
    struct uuid first = start(fixture, "long");
    int64_t then = fixture_now_ms(fixture) + INT64_C(86400000);
    fixture_set_wall_ms(fixture, then);
    settle(fixture);
    assert_run_is(fixture, first, "succeeded");
    struct uuid second = start(fixture, "short");
    settle(fixture);
    assert_run_is(fixture, second, "waiting");
    fixture_set_wall_ms(fixture, then + 10);
    settle(fixture);
    assert_run_is(fixture, second, "succeeded");
}

static void timers_outlive_the_engine(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", SLEEP_1000);
    struct uuid run = start(fixture, "w");
    fixture_stop(fixture);
    fixture_pass_ms(fixture, 5000);
    fixture_start(fixture, 0);
    settle(fixture);
    assert_run_is(fixture, run, "succeeded");
}

static void more_timers_than_one_turn_takes_all_fire(void **state)
{
    struct fixture *fixture = *state;
    enum { SLEEPERS = TIMERS_PER_TURN_MAX + 50 };
    put_workflow(fixture, "w", SLEEP_10);
    static struct call calls[SLEEPERS];
    for (size_t i = 0; i < SLEEPERS; i++) {
        start_init(&calls[i], fixture, "w");
        submit(&calls[i]);
    }
    for (size_t i = 0; i < SLEEPERS; i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, ERR_OK);
        call_release(&calls[i]);
    }
    fixture_pass_ms(fixture, 10);
    settle(fixture);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'succeeded'"),
                     SLEEPERS);
    assert_int_equal(timers(fixture), 0);
}

/* --- turns that would take too much --- */

/* Each look at the wall clock finds it a millisecond further: turns are told apart by their time.
 */
static int64_t ticking_now_us(void *ctx)
{
    return atomic_fetch_add(&((struct fixture *)ctx)->now_us, 1000);
}

/* Sleepers whose time comes while the engine is down, so that all are due in its first turn. */
static void oversleep(struct fixture *fixture, int count, struct str input)
{
    for (int i = 0; i < count; i++) {
        struct call c;
        start_init(&c, fixture, "w");
        c.input.start.input_text = input;
        must_perform(&c);
        call_release(&c);
    }
    fixture_stop(fixture);
    fixture_pass_ms(fixture, 10);
    fixture->env.now_us = ticking_now_us;
}

/* In how many turns all of them have ended. */
static int64_t turns_until_ended(struct fixture *fixture, int count)
{
    fixture_start(fixture, 0);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'succeeded'") < count) {
        assert_true(real_seconds() < until);
        fixture_round(fixture);
    }
    assert_int_equal(timers(fixture), 0);
    return in_file(fixture, "SELECT count(DISTINCT finished_at) FROM runs");
}

static void timers_that_load_much_are_fired_in_many_turns(void **state)
{
    struct fixture *fixture = *state;
    enum { TURNS = 3, SLEEPERS = TURNS * TIMERS_BYTES_PER_TURN_MAX / MIB };
    struct buf large;
    buf_init(&large, MIB);
    buf_put_char(&large, '"');
    while (large.len < MIB - 1)
        buf_put_char(&large, 'x');
    buf_put_char(&large, '"');
    assert_true(buf_ok(&large));
    put_workflow(fixture, "w", SLEEP_10);
    oversleep(fixture, SLEEPERS, buf_str(&large));
    buf_release(&large);
    int64_t turns = turns_until_ended(fixture, SLEEPERS);
    assert_true(turns >= TURNS);
    assert_true(turns < SLEEPERS); /* and yet not one by one */
}

/* A sleep, and behind it many tasks that begin when it ends. */
static void put_wide_workflow(struct fixture *fixture, int tasks)
{
    struct buf text;
    buf_init(&text, MIB);
    buf_put(&text, STR("{'steps':[{'name':'a','type':'sleep','duration_ms':10}"));
    for (int i = 0; i < tasks; i++)
        buf_printf(&text, ",{'name':'t%d','type':'task','handler':'h','needs':['a']}", i);
    buf_put(&text, STR("]}"));
    assert_true(buf_ok(&text));
    buf_put_char(&text, '\0');
    put_workflow(fixture, "w", text.ptr);
    buf_release(&text);
}

static void timers_that_change_many_rows_are_fired_in_many_turns(void **state)
{
    struct fixture *fixture = *state;
    enum { SLEEPERS = 30, TASKS = 100 };
    put_wide_workflow(fixture, TASKS);
    oversleep(fixture, SLEEPERS, STR("null"));
    fixture_start(fixture, 0);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (in_file(fixture, "SELECT count(*) FROM jobs") < SLEEPERS * (TASKS + 1)) {
        assert_true(real_seconds() < until);
        fixture_round(fixture);
    }
    int64_t turns = in_file(fixture, "SELECT count(DISTINCT finished_at) FROM jobs");
    assert_true(turns >= 2);
    assert_true(turns < SLEEPERS);
}

/* --- leases --- */

static void a_lease_that_ends_gives_the_job_to_the_next_worker(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    struct call first;
    claim_init(&first, fixture, "slow", 1000);
    must_perform(&first);
    struct call late;
    finish_init(&late, fixture, &first);
    fixture_pass_ms(fixture, 999);
    settle(fixture);
    struct call second;
    claim_init(&second, fixture, "quick", 1000);
    must_perform(&second);
    json_t *none = jobs_of(&second);
    assert_int_equal(json_array_size(none), 0); /* it is still the first one's */
    json_decref(none);
    fixture_pass_ms(fixture, 1);
    settle(fixture);
    assert_int_equal(perform(&late), ERR_LEASE_LOST); /* before anybody else has it */
    must_perform(&second);
    struct call finish;
    finish_init(&finish, fixture, &second);
    assert_int_equal(perform(&late), ERR_LEASE_LOST); /* and after */
    assert_run_is(fixture, run, "running");
    must_perform(&finish);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(perform(&late), ERR_LEASE_LOST);
    assert_int_equal(timers(fixture), 0);
    assert_int_equal(in_file(fixture, "SELECT attempt FROM jobs"), 2);
    assert_int_equal(in_file(fixture, "SELECT lease_epoch FROM jobs"), 2);
    call_release(&first);
    call_release(&second);
    call_release(&finish);
    call_release(&late);
}

static void a_result_in_time_disarms_the_lease(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    struct call claim;
    claim_init(&claim, fixture, "worker", 1000);
    must_perform(&claim);
    assert_int_equal(timers(fixture), 1);
    struct call finish;
    finish_init(&finish, fixture, &claim);
    must_perform(&finish);
    assert_int_equal(timers(fixture), 0);
    fixture_pass_ms(fixture, 5000);
    settle(fixture);
    assert_run_is(fixture, run, "succeeded");
    must_perform(&finish); /* the same result again is answered */
    assert_non_null(strstr(finish.op.answer.body.ptr, "already_completed"));
    call_release(&claim);
    call_release(&finish);
}

static void a_lease_that_ends_wakes_a_parked_claim(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    (void)start(fixture, "w");
    struct call first;
    claim_init(&first, fixture, "slow", 1000);
    must_perform(&first);
    struct call parked;
    claim_init(&parked, fixture, "patient", 1000);
    parked.op.wait_ms = 20000;
    submit(&parked);
    settle(fixture);
    assert_false(parked.done);
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    wait_done(&parked);
    json_t *jobs = jobs_of(&parked);
    assert_int_equal(json_array_size(jobs), 1);
    json_decref(jobs);
    call_release(&first);
    call_release(&parked);
}

/* What a timer does is told although queued runs are started in the same turns of the writer: so
 * many that the timer is due while it is at them. */
static void a_timer_wakes_a_parked_claim_while_queued_runs_start(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "idle", "{'steps':[{'name':'s','type':'wait_signal','signal':'never'}]}");
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'s','type':'sleep','duration_ms':1000},"
                 "{'name':'a','type':'task','handler':'h'}]}");
    put_tenant(fixture, "{'max_concurrent_runs':1,'at_limit':'queue'}");
    (void)start(fixture, "w");
    for (int i = 0; i < 1000; i++)
        (void)start(fixture, "idle");
    struct call parked;
    claim_init(&parked, fixture, "patient", 1000);
    parked.op.wait_ms = 20000;
    submit(&parked);
    settle(fixture);
    assert_false(parked.done);
    put_tenant(fixture, "{'max_concurrent_runs':null}");
    fixture_pass_ms(fixture, 1000);
    wait_done(&parked);
    json_t *jobs = jobs_of(&parked);
    assert_int_equal(json_array_size(jobs), 1);
    json_decref(jobs);
    call_release(&parked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_sleep_ends_at_its_time),
        fixture_test(timers_that_are_due_together_fire_in_their_order),
        fixture_test(each_timer_fires_at_its_own_time),
        fixture_test(a_clock_that_is_set_back_delays_and_a_newer_sleep_still_ends),
        fixture_test(a_clock_that_is_set_forward_fires_what_is_due_by_it),
        fixture_test(timers_outlive_the_engine),
        fixture_test(more_timers_than_one_turn_takes_all_fire),
        fixture_test(timers_that_load_much_are_fired_in_many_turns),
        fixture_test(timers_that_change_many_rows_are_fired_in_many_turns),
        fixture_test(a_lease_that_ends_gives_the_job_to_the_next_worker),
        fixture_test(a_result_in_time_disarms_the_lease),
        fixture_test(a_lease_that_ends_wakes_a_parked_claim),
        fixture_test(a_timer_wakes_a_parked_claim_while_queued_runs_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
