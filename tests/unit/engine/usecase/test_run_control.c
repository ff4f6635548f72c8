/* Cancelling, pausing, resuming, retrying and rerunning: one run, and many at once. */
#include "engine/usecase/asking.h"

#define TWO_TASKS                                                                    \
    "{'steps':[{'name':'a','type':'task','handler':'h','retry':{'max_attempts':1}}," \
    "{'name':'b','type':'task','handler':'h'}]}"

static struct uuid failed_run(struct fixture *fixture)
{
    struct uuid run = start(fixture, "w");
    work_badly(fixture, "a");
    assert_run_is(fixture, run, "failed");
    return run;
}

static void each_action_is_done_once_and_repeated_without_effect(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TWO_TASKS);
    struct uuid run = start(fixture, "w");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
        assert_run_is(fixture, run, "paused");
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
        assert_run_is(fixture, run, "running");
    }
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK); /* it is trying */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
        assert_run_is(fixture, run, "cancelled");
    }
    assert_sound(fixture);
}

static void a_run_that_is_over_refuses_what_it_cannot_do(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TWO_TASKS);
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    work(fixture, "b");
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_RUN_IS_OVER);
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_RUN_IS_OVER);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_RUN_IS_OVER);
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_RUN_IS_OVER);
}

static void a_queued_run_cannot_be_paused(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':1,'at_limit':'queue'}");
    put_workflow(fixture, "w", TWO_TASKS);
    (void)start(fixture, "w");
    struct uuid queued = start(fixture, "w");
    assert_run_is(fixture, queued, "queued");
    assert_int_equal(control(fixture, queued, CONTROL_PAUSE), ERR_RUN_NOT_UNDER_WAY);
    assert_int_equal(control(fixture, queued, CONTROL_CANCEL), ERR_OK);
    assert_sound(fixture);
}

static void a_failed_run_is_retried_when_there_is_room(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TWO_TASKS);
    struct uuid run = failed_run(fixture);
    put_tenant(fixture, "{'max_concurrent_runs':0,'at_limit':'reject'}");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_MAX_CONCURRENT_RUNS);
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    work(fixture, "a");
    work(fixture, "b");
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

static void a_child_is_retried_with_its_parent(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TWO_TASKS);
    put_workflow(fixture, "p", "{'steps':[{'name':'c','type':'workflow','workflow_id':'w'}]}");
    struct uuid parent = start(fixture, "p");
    settle(fixture); /* the child begins */
    work_badly(fixture, "a");
    settle(fixture);
    assert_run_is(fixture, parent, "failed");
    struct list_runs_input in = {.statuses = RUN_ANY_STATUS,
                                 .workflow_id = STR("w"),
                                 .created_after = -1,
                                 .created_before = -1,
                                 .limit = 10};
    json_t *page = answer_of(fixture, &UC_LIST_RUNS, &in);
    struct uuid child = id_in(json_array_get(json_object_get(page, "items"), 0), "id");
    json_decref(page);
    assert_int_equal(control(fixture, child, CONTROL_RETRY), ERR_RUN_IS_A_CHILD);
    assert_int_equal(control(fixture, parent, CONTROL_RETRY), ERR_OK);
    assert_sound(fixture);
}

static void an_action_on_a_version_that_is_gone_is_refused(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TWO_TASKS);
    struct uuid run = start(fixture, "w");
    json_t *shown = show_run(fixture, run);
    int64_t version = number_in(shown, "version");
    struct control_run_input in = {.run_id = run, .action = CONTROL_PAUSE, .if_match = version + 1};
    assert_refuses(fixture, &UC_CONTROL_RUN, &in, ERR_CONCURRENCY);
    in.if_match = version;
    must_do(fixture, &UC_CONTROL_RUN, &in);
    struct signal_run_input signal = {.run_id = run,
                                      .if_match = version, /* the pause made a newer one */
                                      .name = STR("go"),
                                      .payload = STR("null")};
    assert_refuses(fixture, &UC_SIGNAL_RUN, &signal, ERR_CONCURRENCY);
    struct rerun_run_input rerun = {.run_id = run, .if_match = version};
    assert_refuses(fixture, &UC_RERUN_RUN, &rerun, ERR_CONCURRENCY);
}

/* --- again, from a step --- */

#define GRAPH                                                                         \
    "{'steps':[{'name':'a','type':'task','handler':'h','needs':[]},"                  \
    "{'name':'m','type':'task','handler':'h','needs':['a'],'for_each':'input.list'}," \
    "{'name':'b','type':'task','handler':'h','needs':['m'],'on_error':'x',"           \
    "'retry':{'max_attempts':1}},{'name':'x','type':'task','handler':'h'},"           \
    "{'name':'c','type':'task','handler':'h','needs':['b'],'retry':{'max_attempts':1}}]}"

static struct uuid rerun(struct fixture *fixture, struct uuid run, const char *from)
{
    struct rerun_run_input in = {.run_id = run, .if_match = -1, .from_step = str_of(from)};
    struct asked a = ask_as(fixture, "acme", true, &UC_RERUN_RUN, &in);
    if (a.err != ERR_OK)
        fail_msg("from %s: %s", from != NULL ? from : "the beginning", err_code(a.err));
    struct uuid id = id_in(a.body, "run_id");
    asked_release(&a);
    return id;
}

static void a_rerun_keeps_what_lies_before_its_step(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", GRAPH);
    struct uuid run = start_with(fixture, "w", "{'list':[1,2]}");
    struct rerun_run_input early = {.run_id = run, .if_match = -1, .from_step = STR("b")};
    assert_refuses(fixture, &UC_RERUN_RUN, &early, ERR_RUN_NOT_OVER);
    work(fixture, "a");
    work(fixture, "m");
    work(fixture, "m");
    work(fixture, "b");
    work_badly(fixture, "c");
    assert_run_is(fixture, run, "failed");

    struct uuid from_c = rerun(fixture, run, "c");
    assert_step_is(fixture, from_c, "m", "succeeded");
    work(fixture, "c");
    assert_run_is(fixture, from_c, "succeeded");

    struct uuid from_m = rerun(fixture, run, "m");
    assert_step_is(fixture, from_m, "a", "succeeded");
    work(fixture, "m");
    work(fixture, "m");
    work_badly(fixture, "b"); /* its error goes to x */
    work(fixture, "x");

    struct uuid all = rerun(fixture, run, NULL);
    work(fixture, "a");
    assert_run_is(fixture, all, "running");

    struct rerun_run_input in = {.run_id = run, .if_match = -1, .from_step = STR("none")};
    assert_refuses(fixture, &UC_RERUN_RUN, &in, ERR_FIELD_INVALID);
    assert_sound(fixture);
}

/* --- many --- */

static json_t *bulk(struct fixture *fixture, enum control_action action, enum run_status status,
                    bool dry_run, int64_t before)
{
    struct bulk_runs_input in = {
        .control = {.action = action, .if_match = -1, .reason = STR("all")},
        .filter = {.statuses = status == RUN_STATUS_COUNT ? RUN_ANY_STATUS : run_status_bit(status),
                   .created_after = -1,
                   .created_before = -1},
        .before = before,
        .dry_run = dry_run,
    };
    return answer_of(fixture, &UC_BULK_RUNS, &in);
}

static void many_runs_are_changed_and_those_that_refuse_are_named(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TWO_TASKS);
    (void)failed_run(fixture);
    for (int i = 0; i < 3; i++)
        (void)start(fixture, "w");
    json_t *dry = bulk(fixture, CONTROL_PAUSE, RUN_STATUS_COUNT, true, INT64_MAX);
    assert_int_equal(json_integer_value(json_object_get(dry, "matched")), 4);
    assert_int_equal(number_in(dry, "changed"), 0);
    json_t *paused = bulk(fixture, CONTROL_PAUSE, RUN_STATUS_COUNT, false, INT64_MAX);
    assert_int_equal(json_array_size(json_object_get(paused, "refused")), 1);
    assert_int_equal(number_in(paused, "changed"), 3);
    assert_int_equal(
        number_in(bulk(fixture, CONTROL_PAUSE, RUN_PAUSED, false, INT64_MAX), "unchanged"), 3);
    assert_int_equal(
        number_in(bulk(fixture, CONTROL_CANCEL, RUN_PAUSED, false, INT64_MAX), "changed"), 3);
    assert_sound(fixture);
}

/* Rows of those before them are written while they are looked at, and do not count as theirs. */
static void any_number_may_refuse_beside_those_that_change(void **state)
{
    struct fixture *fixture = *state;
    enum { EACH = FAILED_ITEMS_MAX + 2 };
    put_workflow(fixture, "w", TWO_TASKS);
    put_workflow(fixture, "waits", "{'steps':[{'name':'s','type':'wait_signal','signal':'go'}]}");
    for (int i = 0; i < EACH; i++) {
        (void)start(fixture, "waits");
        (void)failed_run(fixture);
    }
    json_t *paused = bulk(fixture, CONTROL_PAUSE, RUN_STATUS_COUNT, false, INT64_MAX);
    assert_int_equal(json_array_size(json_object_get(paused, "refused")), EACH);
    assert_int_equal(number_in(paused, "changed"), EACH);
    assert_sound(fixture);
}

/* One run's definition is damaged: it alone is refused, whatever it had changed by then. */
static void a_run_that_fails_half_way_is_refused_alone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TWO_TASKS);
    for (int i = 0; i < 3; i++)
        (void)start(fixture, "w");
    tamper(fixture,
           OWN_JOB_ROWS "UPDATE jobs SET state = 'odd' WHERE run = (SELECT min(num) FROM runs)");
    json_t *cancelled = bulk(fixture, CONTROL_CANCEL, RUN_RUNNING, false, INT64_MAX);
    assert_int_equal(json_array_size(json_object_get(cancelled, "refused")), 1);
    assert_int_equal(number_in(cancelled, "changed"), 2);
}

static void more_runs_than_one_call_may_change_take_another(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[{'name':'s','type':'wait_signal','signal':'go'}]}");
    for (int i = 0; i < BULK_RUNS_MAX + 2; i++)
        (void)start(fixture, "w");
    json_t *first = bulk(fixture, CONTROL_CANCEL, RUN_WAITING, false, INT64_MAX);
    int64_t before = 0;
    assert_true(str_to_i64(json_str(json_object_get(first, "next_cursor")), &before));
    assert_int_equal(number_in(first, "changed"), BULK_RUNS_MAX);
    json_t *rest = bulk(fixture, CONTROL_CANCEL, RUN_WAITING, false, before);
    assert_true(json_is_null(json_object_get(rest, "next_cursor")));
    assert_int_equal(number_in(rest, "changed"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(each_action_is_done_once_and_repeated_without_effect),
        fixture_test(a_run_that_is_over_refuses_what_it_cannot_do),
        fixture_test(a_queued_run_cannot_be_paused),
        fixture_test(a_failed_run_is_retried_when_there_is_room),
        fixture_test(a_child_is_retried_with_its_parent),
        fixture_test(an_action_on_a_version_that_is_gone_is_refused),
        fixture_test(a_rerun_keeps_what_lies_before_its_step),
        fixture_test(many_runs_are_changed_and_those_that_refuse_are_named),
        fixture_test(any_number_may_refuse_beside_those_that_change),
        fixture_test(a_run_that_fails_half_way_is_refused_alone),
        fixture_test(more_runs_than_one_call_may_change_take_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
