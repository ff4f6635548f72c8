/* What is asked and shown of approvals, beside the decisions themselves. */
#include "engine/usecase/asking.h"

static struct uuid job_in(struct fixture *fixture, struct uuid run, const char *step)
{
    json_t *shown = show_run(fixture, run);
    struct uuid job;
    assert_true(uuid_parse(json_str(of_step(shown, step, "job_id")), &job));
    json_decref(shown);
    return job;
}

static void approve(struct fixture *fixture, struct uuid job)
{
    struct decide_input in = {.job_id = job};
    must_do(fixture, &UC_APPROVE, &in);
}

/* --- statistics --- */

static json_t *stats(struct fixture *fixture, const char *workflow)
{
    struct approval_stats_input in = {30, workflow != NULL ? str_of(workflow) : STR_NONE};
    return answer_of(fixture, &UC_APPROVAL_STATS, &in);
}

static const json_t *decision_seconds(const json_t *stats)
{
    return json_object_get(json_object_get(stats, "total"), "decision_seconds");
}

static int64_t decided(const json_t *stats)
{
    return json_integer_value(json_object_get(decision_seconds(stats), "count"));
}

static void approvals_of_one_workflow_are_counted_apart(void **state)
{
    struct fixture *fixture = *state;
    static const char ASKS[] = "{'steps':[{'name':'q','type':'approval','prompt':'ok?'}]}";
    json_t *none = stats(fixture, NULL);
    assert_int_equal(decided(none), 0);
    assert_true(json_is_null(json_object_get(decision_seconds(none), "mean")));
    json_decref(none);
    put_workflow(fixture, "a", ASKS);
    put_workflow(fixture, "b", ASKS);
    for (int i = 0; i < 3; i++) {
        struct uuid job = job_in(fixture, start(fixture, i < 2 ? "a" : "b"), "q");
        fixture_pass_ms(fixture, 1000);
        if (i != 1)
            approve(fixture, job);
    }
    static const struct {
        const char *workflow;
        int64_t decided;
    } WANTED[] = {{NULL, 2}, {"a", 1}, {"b", 1}, {"none", 0}};
    for (size_t i = 0; i < ARRAY_LEN(WANTED); i++) {
        json_t *of = stats(fixture, WANTED[i].workflow);
        assert_int_equal(decided(of), WANTED[i].decided);
        json_decref(of);
    }
}

/* --- what is asked --- */

static void what_is_asked_shows_what_the_step_will_be_given(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *members;
        const char *content;
    } CASES[] = {
        {"", "{\"n\":5}"},
        {",'input':{'x':1}", "{\"x\":1}"},
        {",'input':{'x':'${input.n}'}", "{\"x\":5}"},
        {",'for_each':[7]", "7"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char definition[256];
        (void)snprintf(definition, sizeof(definition),
                       "{'steps':[{'name':'q','type':'task','handler':'h','requires_approval':"
                       "{'prompt':'ok?'}%s}]}",
                       CASES[i].members);
        put_workflow(fixture, "w", definition);
        (void)start_with(fixture, "w", "{'n':5}");
        struct list_approvals_input newest = {APPROVAL_PENDING, false, 1, STR_NONE};
        json_t *page = answer_of(fixture, &UC_LIST_APPROVALS, &newest);
        struct get_job_input in = {
            id_in(json_array_get(json_object_get(page, "items"), 0), "job_id")};
        json_decref(page);
        json_t *shown = answer_of(fixture, &UC_GET_APPROVAL, &in);
        char *content =
            json_dumps(json_object_get(shown, "content"), JSON_COMPACT | JSON_ENCODE_ANY);
        assert_string_equal(content, CASES[i].content);
        free(content);
        json_decref(shown);
    }
}

static void a_prompt_may_be_any_value_and_not_too_long(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'q','type':'approval','prompt':'${input.ask}'}]}");
    struct uuid run = start_with(fixture, "w", "{'ask':{'amount':5}}");
    struct get_job_input in = {job_in(fixture, run, "q")};
    assert_text_in(answer_of(fixture, &UC_GET_APPROVAL, &in), "prompt", "{\"amount\":5}");
    put_workflow(fixture, "long",
                 "{'steps':[{'name':'q','type':'approval','prompt':"
                 "'${input}${input}${input}${input}${input}${input}${input}${input}${input}'}]}");
    static char text[9 * KIB];
    (void)snprintf(text, sizeof(text), "'%0*d'", 8 * KIB, 1);
    run = start_with(fixture, "long", text);
    assert_run_is(fixture, run, "failed");
}

static void an_escalated_approval_says_so(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'q','type':'approval','prompt':'ok?','remind_every_s':30,"
                 "'approvers':{'users':['tester']},"
                 "'escalation':{'after_s':60,'approvers':{'users':['eve']}}}]}");
    struct uuid run = start(fixture, "w");
    struct get_job_input in = {job_in(fixture, run, "q")};
    for (int i = 0; i < 3; i++) { /* the reminder, the escalation, and nothing more */
        fixture_pass_ms(fixture, 31 * 1000);
        settle(fixture);
    }
    json_t *shown = answer_of(fixture, &UC_GET_APPROVAL, &in);
    assert_true(json_is_string(json_object_get(shown, "escalated_at")));
    json_decref(shown);
    approve(fixture, in.job_id);
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

/* --- what nobody is asked about --- */

static void only_jobs_that_ask_can_be_decided(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct get_job_input task = {job_in(fixture, start(fixture, "w"), "a")};
    struct decide_input decide = {.job_id = task.job_id};
    assert_refuses(fixture, &UC_GET_APPROVAL, &task, ERR_APPROVAL_NOT_FOUND);
    assert_refuses(fixture, &UC_APPROVE, &decide, ERR_NOT_AWAITING_APPROVAL);
    work(fixture, "a");
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = claim_call(fixture, 60000);
    struct get_job_input call = {h.id};
    decide.job_id = h.id;
    assert_refuses(fixture, &UC_GET_APPROVAL, &call, ERR_APPROVAL_NOT_FOUND);
    assert_refuses(fixture, &UC_REJECT, &decide, ERR_APPROVAL_NOT_FOUND);
    json_decref(h.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(approvals_of_one_workflow_are_counted_apart),
        fixture_test(what_is_asked_shows_what_the_step_will_be_given),
        fixture_test(a_prompt_may_be_any_value_and_not_too_long),
        fixture_test(an_escalated_approval_says_so),
        fixture_test(only_jobs_that_ask_can_be_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
