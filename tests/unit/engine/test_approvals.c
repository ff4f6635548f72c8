/* Gated tasks and approval steps on the real engine: what waits, and what follows a decision. */
#include "engine/approval_support.h"

/* --- looking --- */

static void assert_output(struct fixture *fixture, struct uuid run, const char *step,
                          const char *json)
{
    json_t *shown = show_run(fixture, run);
    json_t *wanted = json_of(json);
    json_t *is = (json_t *)(uintptr_t)of_step(shown, step, "output");
    if (!json_equal(is, wanted)) {
        char *text = json_dumps(is, JSON_ENCODE_ANY);
        fail_msg("the output is %s", text);
    }
    json_decref(wanted);
    json_decref(shown);
}

/* --- a gated task --- */

static void a_gated_task_is_handed_out_after_it_is_approved_and_once(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    assert_step_is(fixture, run, "pay", "approval");
    assert_run_is(fixture, run, "waiting");
    assert_nothing_to_claim(fixture);
    approves(fixture, job, "ann", "approved");
    assert_run_is(fixture, run, "running");
    struct held h;
    must_claim(fixture, "pay", &h);
    assert_true(uuid_eq(h.job, job)); /* under its own id */
    assert_int_equal(h.attempt, 1);
    assert_nothing_to_claim(fixture);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    approves(fixture, job, "bob", "already_approved");
    assert_int_equal(event_count(fixture, "job.approved"), 1);
    assert_int_equal(event_count(fixture, "approval.requested"), 1);
    assert_int_equal(event_count(fixture, "approval.decided"), 1);
    assert_sound(fixture);
}

static void a_rejected_task_is_denied_and_so_is_its_run(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    assert_says_with(fixture, job, "ann", false, (struct words){.reason = "too much"}, "rejected");
    assert_run_is(fixture, run, "denied");
    assert_step_is(fixture, run, "pay", "denied");
    assert_error_code(fixture, run, "STEP_DENIED");
    assert_nothing_to_claim(fixture);
    assert_approval(fixture, job, "reason", "too much");
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     0);
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_RUN_IS_OVER); /* no means no */
    assert_int_equal(event_count(fixture, "job.approved"), 0);
    assert_sound(fixture);
}

static void a_denial_that_is_dealt_with_does_not_end_the_run(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job =
        ask(fixture,
            "{'steps':[" TASK_STEP("pay", ",'requires_approval':true,"
                                          "'on_error':'sorry'") "," TASK_STEP("sorry", "") "]}",
            "pay", &run);
    rejects(fixture, job, "ann", "rejected");
    assert_run_is(fixture, run, "running");
    work(fixture, "sorry");
    assert_run_is(fixture, run, "succeeded");
    assert_step_is(fixture, run, "pay", "denied");
    assert_sound(fixture);
}

static void what_was_done_before_a_denial_is_undone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("hold", ",'compensate':{'handler':'free'}") "," TASK_STEP(
                     "pay", ",'requires_approval':true") "]}");
    struct uuid run = start(fixture, "w");
    work(fixture, "hold");
    struct uuid job = job_of(fixture, run, "pay");
    rejects(fixture, job, "ann", "rejected");
    assert_run_is(fixture, run, "running");
    struct held h;
    must_claim(fixture, "hold", &h);
    assert_true(h.compensates);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    assert_run_is(fixture, run, "denied");
}

static void an_edited_input_is_what_the_worker_gets(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    json_t *a = show_approval(fixture, job); /* without a content of its own it shows the input */
    assert_int_equal(json_integer_value(json_object_get(json_object_get(a, "content"), "amount")),
                     120);
    json_decref(a);
    assert_says_with(fixture, job, "ann", true, (struct words){.edited = "{'amount':80}"},
                     "approved");
    struct held h;
    must_claim(fixture, "pay", &h);
    assert_string_equal(h.input, "{\"amount\":80}");
}

static void content_that_is_sent_back_as_it_was_is_not_edited(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    assert_says_with(fixture, job, "ann", true,
                     (struct words){.edited = "{'to':'ann','amount':120}"}, "approved");
    json_t *a = show_approval(fixture, job);
    assert_true(json_is_null(json_object_get(a, "edited")));
    json_decref(a);
    struct held h;
    must_claim(fixture, "pay", &h);
    assert_string_equal(h.input, "{\"amount\":120,\"to\":\"ann\"}");
}

static void an_approved_task_that_failed_is_tried_again_without_asking(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    approves(fixture, job, "ann", "approved");
    work_badly(fixture, "pay");
    assert_run_is(fixture, run, "failed");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    struct held h;
    must_claim(fixture, "pay", &h);
    assert_true(uuid_eq(h.job, job));
    assert_int_equal(event_count(fixture, "job.approved"), 1);
    assert_sound(fixture);
}

/* --- an approval step --- */

static void an_approvals_output_is_what_was_approved(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, ASKING(",'content':{'pay':'${input.amount}'}"), "ok", &run);
    assert_run_is(fixture, run, "waiting");
    approves(fixture, job, "ann", "approved");
    assert_output(fixture, run, "ok", "{'pay':120}");
    work(fixture, "pay");
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(event_count(fixture, "job.approved"), 1);
    assert_sound(fixture);
}

static void the_next_steps_see_what_the_person_made_of_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'ok','type':'approval','prompt':'ok?','content':1},"
                 "{'name':'pay','type':'task','handler':'h','input':'${steps.ok.output.n}'}]}");
    struct uuid run = start(fixture, "w");
    assert_says_with(fixture, job_of(fixture, run, "ok"), "ann", true,
                     (struct words){.edited = "{'n':7}"}, "approved");
    struct held h;
    must_claim(fixture, "pay", &h);
    assert_string_equal(h.input, "7");
}

static void a_prompt_is_filled_in_and_hashed_with_its_content(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture,
                          "{'steps':[{'name':'ok','type':'approval','content':[1.0,'é'],"
                          "'prompt':'Pay ${input.amount} to ${input.to}?'}]}",
                          "ok", &run);
    assert_approval(fixture, job, "prompt", "Pay 120 to ann?");
    struct sha256 hash = sha256_of(STR("{\"content\":[1,\"é\"],\"prompt\":\"Pay 120 to ann?\"}"));
    struct buf hex;
    buf_init(&hex, 64);
    buf_put_hex(&hex, hash.bytes, SHA256_LEN);
    assert_approval(fixture, job, "content_hash", hex.ptr);
    buf_release(&hex);
}

static void a_prompt_that_cannot_be_filled_fails_the_step(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", GATED("{'prompt':'${input.amount + input.to}'}"));
    struct uuid run = start_with(fixture, "w", "{'amount':120,'to':'ann'}");
    assert_run_is(fixture, run, "failed");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM approvals"), 0);
    assert_sound(fixture);
}

static void each_item_of_a_map_is_asked_for_by_itself(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'ok','type':'approval','for_each':[10,20],"
                 "'prompt':'${item}?','content':'${item}','on_error':'continue'}]}");
    struct uuid run = start(fixture, "w");
    assert_run_is(fixture, run, "waiting");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM approvals WHERE status = 'pending'"),
                     2);
    struct list_approvals_input in = {.status = APPROVAL_PENDING, .limit = 10};
    struct call c;
    call_init(&c, fixture, &UC_LIST_APPROVALS);
    c.op.input = &in;
    must_perform(&c);
    json_t *page = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    for (size_t i = 0; i < 2; i++) {
        const json_t *a = json_array_get(json_object_get(page, "items"), i);
        struct uuid job;
        assert_true(uuid_parse(json_str(json_object_get(a, "job_id")), &job));
        bool first = json_integer_value(json_object_get(a, "item")) == 0;
        assert_string_equal(json_string_value(json_object_get(a, "prompt")), first ? "10?" : "20?");
        if (first)
            approves(fixture, job, "ann", "approved");
        else
            rejects(fixture, job, "ann", "rejected");
    }
    json_decref(page);
    assert_run_is(fixture, run, "succeeded");
    assert_output(fixture, run, "ok", "[10,null]");
    assert_sound(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_gated_task_is_handed_out_after_it_is_approved_and_once),
        fixture_test(a_rejected_task_is_denied_and_so_is_its_run),
        fixture_test(a_denial_that_is_dealt_with_does_not_end_the_run),
        fixture_test(what_was_done_before_a_denial_is_undone),
        fixture_test(an_edited_input_is_what_the_worker_gets),
        fixture_test(content_that_is_sent_back_as_it_was_is_not_edited),
        fixture_test(an_approved_task_that_failed_is_tried_again_without_asking),
        fixture_test(an_approvals_output_is_what_was_approved),
        fixture_test(the_next_steps_see_what_the_person_made_of_it),
        fixture_test(a_prompt_is_filled_in_and_hashed_with_its_content),
        fixture_test(a_prompt_that_cannot_be_filled_fails_the_step),
        fixture_test(each_item_of_a_map_is_asked_for_by_itself),
    };
    return cmocka_run_group_tests_name("approvals", tests, NULL, NULL);
}
