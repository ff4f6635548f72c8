/* Jobs as their readers see them, and runs whose jobs cannot be tried again as they are. */
#include "engine/usecase/asking.h"

static json_t *show_job(struct fixture *fixture, struct uuid job)
{
    struct get_job_input in = {job};
    return answer_of(fixture, &UC_GET_JOB, &in);
}

static void the_job_of_an_item_says_which_and_how_far_it_is(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("m", ",'for_each':['a','b']") "]}");
    struct uuid run = start(fixture, "w");
    struct held jobs[2];
    assert_int_equal(claim_many(fixture, 60000, 2, jobs), 2);
    struct heartbeat_input beat = {jobs[1].job, str_of(jobs[1].token), STR("{\"done\":0.5}")};
    must_do(fixture, &UC_HEARTBEAT, &beat);
    json_t *shown = show_job(fixture, jobs[1].job);
    assert_int_equal(json_integer_value(json_object_get(shown, "item")), 1);
    assert_non_null(json_object_get(shown, "progress"));
    assert_text_in(shown, "handler", "h.m");
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    shown = show_job(fixture, jobs[0].job);
    const json_t *attempts = json_object_get(shown, "attempts");
    assert_string_equal(json_string_value(json_object_get(json_array_get(attempts, 0), "outcome")),
                        "cancelled");
    assert_text_in(shown, "state", "cancelled");
}

static void a_job_that_undoes_a_step_says_so(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'a','type':'task','handler':'do','for_each':[1],"
                 "'retry':{'max_attempts':3,'backoff_ms':1000},'compensate':{'handler':'undo'}},"
                 "{'name':'b','type':'task','handler':'fail'}]}");
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    work_badly(fixture, "b");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_true(h.compensates);
    json_t *shown = show_job(fixture, h.job);
    assert_true(json_is_true(json_object_get(shown, "compensates")));
    assert_null(json_object_get(shown, "item"));
    assert_text_in(shown, "handler", "undo");
    assert_int_equal(fail_job(fixture, &h, true), ERR_OK); /* tried again */
    fixture_pass_ms(fixture, 2000);
    settle(fixture);
    must_claim(fixture, "a", &h);
    fixture_pass_ms(fixture, 60001); /* its lease ends */
    settle(fixture);
    fixture_pass_ms(fixture, 60001);
    settle(fixture);
    work(fixture, "a");
    assert_run_is(fixture, run, "failed");
    assert_sound(fixture);
}

static void a_job_that_nobody_holds_has_no_lease(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    json_t *shown = show_run(fixture, run);
    struct heartbeat_input beat = {{{0}}, STR("0.made-up"), STR_NONE};
    assert_true(uuid_parse(json_str(of_step(shown, "a", "job_id")), &beat.job_id));
    json_decref(shown);
    assert_refuses(fixture, &UC_HEARTBEAT, &beat, ERR_LEASE_LOST);
    assert_refuses(fixture, &UC_RELEASE_JOB, &beat, ERR_LEASE_LOST);
    struct held h;
    must_claim(fixture, "a", &h);
    tamper(fixture, "UPDATE jobs SET attempts = 'nonsense'");
    assert_int_equal(fail_job(fixture, &h, false), ERR_OK); /* what is lost is the past */
    shown = show_job(fixture, h.job);
    assert_int_equal(json_array_size(json_object_get(shown, "attempts")), 1);
    json_decref(shown);
}

static void a_job_that_waits_for_a_child_run_names_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "p", "{'steps':[{'name':'c','type':'workflow','workflow_id':'w'}]}");
    json_t *run = show_run(fixture, start(fixture, "p"));
    struct uuid job;
    assert_true(uuid_parse(json_str(of_step(run, "c", "job_id")), &job));
    json_decref(run);
    json_t *shown = show_job(fixture, job);
    assert_true(json_is_string(json_object_get(shown, "child_run_id")));
    const json_t *attempts = json_object_get(shown, "attempts");
    assert_int_equal(json_array_size(attempts), 1);
    json_decref(shown);
}

static void the_call_of_an_http_step_is_nobodys_to_claim(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'c','type':'http','request':{'method':'GET',"
                 "'url':'http://127.0.0.1:9/'}}]}");
    json_t *run = show_run(fixture, start(fixture, "w"));
    struct str queue = STR("default");
    struct claim_job_input in = {
        .claim = {
            .worker_id = STR("w"), .queues = &queue, .queue_count = 1, .max = 1, .lease_ms = 1000}};
    assert_true(uuid_parse(json_str(of_step(run, "c", "job_id")), &in.job_id));
    json_decref(run);
    assert_refuses(fixture, &UC_CLAIM_JOB, &in, ERR_JOB_NOT_CLAIMABLE);
}

/* --- outputs that do not fit into one answer --- */

static void an_output_that_does_not_fit_is_left_to_its_job(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("a", "") "," TASK_STEP("b", "") "," TASK_STEP(
                     "c", "") "," TASK_STEP("d", "") "," TASK_STEP("e", "") "]}");
    static char text[900 * KIB];
    memset(text, 'x', sizeof(text));
    text[0] = text[sizeof(text) - 1] = '"';
    struct uuid run = start(fixture, "w");
    static const char *const STEPS[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
        struct held h;
        must_claim(fixture, STEPS[i], &h);
        assert_int_equal(
            give(fixture, &h, (struct finish_job_input){.output = {text, sizeof(text)}}), ERR_OK);
    }
    struct call c;
    call_init(&c, fixture, &UC_GET_RUN);
    c.input.run.run_id = run;
    must_perform(&c);
    buf_put_char(&c.op.answer.body, '\0');
    assert_non_null(strstr(c.op.answer.body.ptr, "\"left_out\":true"));
    assert_true(c.op.answer.body.len < (size_t)8 * MIB);
    call_release(&c);
}

/* --- trying again --- */

static void items_that_failed_before_they_were_jobs_cannot_be_tried_again_alone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("m", ",'for_each':[1,0],'max_parallel':1,"
                                             "'input':{'n':'${1 // item}'}") "]}");
    struct uuid run = start(fixture, "w");
    work(fixture, "m");
    settle(fixture);
    assert_run_is(fixture, run, "failed");
    struct control_run_input retry = {.run_id = run, .action = CONTROL_RETRY, .if_match = -1};
    assert_refuses(fixture, &UC_CONTROL_RUN, &retry, ERR_RUN_NOT_RETRYABLE);
    struct rerun_run_input rerun = {.run_id = run, .if_match = -1, .from_step = STR("m")};
    struct asked again = ask_as(fixture, "acme", true, &UC_RERUN_RUN, &rerun);
    assert_int_equal(again.err, ERR_OK);
    asked_release(&again);
    assert_run_is(fixture, again.run_id, "running");
    assert_sound(fixture);
}

static void a_retried_run_tries_only_what_has_failed(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("m", ",'for_each':[1,2,3]") "," TASK_STEP(
                     "z", ",'requires_approval':true") "]}");
    struct uuid run = start(fixture, "w");
    struct held jobs[3];
    assert_int_equal(claim_many(fixture, 60000, 3, jobs), 3);
    assert_int_equal(complete(fixture, &jobs[0]), ERR_OK);
    assert_int_equal(fail_job(fixture, &jobs[1], false), ERR_OK);
    assert_run_is(fixture, run, "failed");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    assert_int_equal(claim_many(fixture, 60000, 3, jobs), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(complete(fixture, &jobs[i]), ERR_OK);
    assert_step_is(fixture, run, "m", "succeeded");
    json_t *shown = show_run(fixture, run);
    struct decide_input reject = {.job_id = {{0}}};
    assert_true(uuid_parse(json_str(of_step(shown, "z", "job_id")), &reject.job_id));
    json_decref(shown);
    must_do(fixture, &UC_REJECT, &reject);
    assert_run_is(fixture, run, "denied");
    assert_sound(fixture);
}

static void a_run_that_undoes_its_steps_can_be_paused_meanwhile(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'a','type':'task','handler':'do',"
                 "'retry':{'max_attempts':3,'backoff_ms':1000},'compensate':{'handler':'undo'}},"
                 "{'name':'b','type':'task','handler':'fail'}]}");
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    work_badly(fixture, "b");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_int_equal(fail_job(fixture, &h, true), ERR_OK);
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    fixture_pass_ms(fixture, 5000);
    settle(fixture);
    assert_nothing_to_claim(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    work(fixture, "a");
    assert_run_is(fixture, run, "failed");
    assert_sound(fixture);
}

static void a_rerun_takes_over_what_was_done_and_what_was_skipped(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("a", "") "," TASK_STEP(
                     "no", ",'when':'false'") "," TASK_STEP("b", "") "]}");
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    work(fixture, "b");
    assert_run_is(fixture, run, "succeeded");
    struct rerun_run_input in = {.run_id = run, .if_match = -1, .from_step = STR("b")};
    struct asked again = ask_as(fixture, "acme", true, &UC_RERUN_RUN, &in);
    assert_int_equal(again.err, ERR_OK);
    asked_release(&again);
    assert_step_is(fixture, again.run_id, "a", "succeeded");
    assert_step_is(fixture, again.run_id, "no", "skipped");
    work(fixture, "b");
    assert_run_is(fixture, again.run_id, "succeeded");
    assert_sound(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(the_job_of_an_item_says_which_and_how_far_it_is),
        fixture_test(a_job_that_undoes_a_step_says_so),
        fixture_test(a_job_that_nobody_holds_has_no_lease),
        fixture_test(a_job_that_waits_for_a_child_run_names_it),
        fixture_test(the_call_of_an_http_step_is_nobodys_to_claim),
        fixture_test(an_output_that_does_not_fit_is_left_to_its_job),
        fixture_test(items_that_failed_before_they_were_jobs_cannot_be_tried_again_alone),
        fixture_test(a_retried_run_tries_only_what_has_failed),
        fixture_test(a_run_that_undoes_its_steps_can_be_paused_meanwhile),
        fixture_test(a_rerun_takes_over_what_was_done_and_what_was_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
