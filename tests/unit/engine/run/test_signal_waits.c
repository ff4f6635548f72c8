/* Steps that wait for signals, with faults at each call. More about them in test_run_signals.c. */
#include "engine/usecase/asking.h"

#define WAIT(signals, more) "{'name':'s','type':'wait_signal','signal':" signals more "}"

static enum err send(struct fixture *fixture, struct uuid run, const char *name)
{
    struct signal_run_input in = {
        .run_id = run, .if_match = -1, .name = str_of(name), .payload = STR("{\"n\":1}")};
    return error_of(fixture, &UC_SIGNAL_RUN, &in);
}

static int64_t waiting(struct fixture *fixture)
{
    return in_file(fixture, "SELECT count(*) FROM run_signals WHERE taken_by IS NULL");
}

static void a_signal_that_came_before_its_step_is_taken_by_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "any",
                 "{'steps':[" TASK_STEP("a", "") "," WAIT("['go','stop']", "") "]}");
    put_workflow(
        fixture, "all",
        "{'steps':[" TASK_STEP("a", "") "," WAIT("['go','stop']", ",'wait_for':'all'") "]}");
    for (int i = 0; i < 2; i++) {
        struct uuid run = start(fixture, i == 0 ? "any" : "all");
        assert_int_equal(send(fixture, run, "stop"), ERR_OK);
        assert_int_equal(send(fixture, run, "other"), ERR_OK);
        if (i == 1)
            assert_int_equal(send(fixture, run, "go"), ERR_OK);
        work(fixture, "a");
        assert_run_is(fixture, run, "succeeded");
        json_t *shown = show_run(fixture, run);
        const json_t *output = json_object_get(shown, "output");
        if (i == 0)
            assert_string_equal(json_string_value(json_object_get(output, "name")), "stop");
        else
            assert_int_equal(json_object_size(output), 2);
        json_decref(shown);
    }
    assert_sound(fixture);
}

static void a_step_that_waits_for_all_ends_with_the_last_or_with_its_time(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "all",
                 "{'steps':[" WAIT("['go','stop']", ",'wait_for':'all','timeout_ms':1000") "]}");
    struct uuid run = start(fixture, "all");
    assert_int_equal(send(fixture, run, "go"), ERR_OK);
    assert_int_equal(send(fixture, run, "go"), ERR_OK); /* another of the same name waits */
    assert_run_is(fixture, run, "waiting");
    assert_int_equal(send(fixture, run, "stop"), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    run = start(fixture, "all");
    assert_int_equal(send(fixture, run, "stop"), ERR_OK);
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    assert_step_is(fixture, run, "s", "timed_out");
    json_t *shown = show_run(fixture, run);
    const json_t *cause = json_object_get(json_object_get(shown, "error"), "cause");
    assert_string_equal(json_string_value(json_array_get(json_object_get(cause, "received"), 0)),
                        "stop");
    assert_string_equal(json_string_value(json_array_get(json_object_get(cause, "missing"), 0)),
                        "go");
    json_decref(shown);
    assert_int_equal(send(fixture, run, "go"), ERR_RUN_IS_OVER);
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK); /* it has `stop` again */
    assert_int_equal(send(fixture, run, "go"), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_step_that_waits_for_one_of_several_ends_with_its_time(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "any",
                 "{'steps':[" TASK_STEP("b", ",'needs':[]") "," WAIT(
                     "['go','stop']", ",'timeout_ms':1000,'needs':[]") "]}");
    struct uuid run = start(fixture, "any");
    assert_int_equal(send(fixture, run, "other"), ERR_OK);
    assert_int_equal(waiting(fixture), 1);
    struct uuid second = start(fixture, "any");
    assert_int_equal(send(fixture, second, "go"), ERR_OK);
    assert_int_equal(waiting(fixture), 1);
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    assert_step_is(fixture, run, "s", "timed_out");
    assert_step_is(fixture, second, "s", "succeeded");
    assert_sound(fixture);
}

/* Each may be as large as a payload may be, but together they are too large for an output. */
static void signals_that_are_too_large_together_fail_the_step(void **state)
{
    struct fixture *fixture = *state;
    static char payload[900 * KIB];
    memset(payload, 'x', sizeof(payload));
    payload[0] = payload[sizeof(payload) - 1] = '"';
    put_workflow(fixture, "now", "{'steps':[" WAIT("['a','b','c']", ",'wait_for':'all'") "]}");
    put_workflow(
        fixture, "later",
        "{'steps':[" TASK_STEP("t", "") "," WAIT("['a','b','c']", ",'wait_for':'all'") "]}");
    struct uuid runs[] = {start(fixture, "now"), start(fixture, "later")};
    static const char *const NAMES[] = {"a", "b", "c"};
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        for (size_t n = 0; n < ARRAY_LEN(NAMES); n++) {
            struct signal_run_input in = {.run_id = runs[i],
                                          .if_match = -1,
                                          .name = str_of(NAMES[n]),
                                          .payload = {payload, sizeof(payload)}};
            must_do(fixture, &UC_SIGNAL_RUN, &in);
        }
        if (i == 1)
            work(fixture, "t");
        assert_run_is(fixture, runs[i], "failed");
        json_t *shown = show_run(fixture, runs[i]);
        const json_t *cause = json_object_get(json_object_get(shown, "error"), "cause");
        assert_string_equal(json_string_value(json_object_get(cause, "code")), "OUTPUT_TOO_LARGE");
        json_decref(shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_signal_that_came_before_its_step_is_taken_by_it),
        fixture_test(a_step_that_waits_for_all_ends_with_the_last_or_with_its_time),
        fixture_test(a_step_that_waits_for_one_of_several_ends_with_its_time),
        fixture_test(signals_that_are_too_large_together_fail_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
