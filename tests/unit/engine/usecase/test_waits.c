/* What a run that is not over says it waits for. */
#include "engine/calling_fixture.h"
#include "engine/usecase/asking.h"

static json_t *why(struct fixture *fixture, struct uuid run)
{
    struct run_input in = {.run_id = run};
    return answer_of(fixture, &UC_WHY_RUN, &in);
}

#define assert_waits(fixture, run, wanted, part)                                          \
    do {                                                                                  \
        json_t *why_ = why((fixture), (run));                                             \
        const json_t *first_ = json_array_get(json_object_get(why_, "waits_for"), 0);     \
        const char *kind_ = json_string_value(json_object_get(first_, "kind"));           \
        const char *summary_ = json_string_value(json_object_get(why_, "summary"));       \
        const char *wanted_ = (wanted);                                                   \
        if ((wanted_ == NULL) != (kind_ == NULL) ||                                       \
            (wanted_ != NULL && strcmp(kind_, wanted_) != 0))                             \
            fail_msg("it waits for %s: %s", kind_ != NULL ? kind_ : "nothing", summary_); \
        if (strstr(summary_, (part)) == NULL)                                             \
            fail_msg("<%s> is not in <%s>", (part), summary_);                            \
        json_decref(why_);                                                                \
    } while (0)

static void a_queued_run_names_the_limits_that_are_full(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'at_limit':'queue','max_concurrent_runs':2}");
    put_workflow(fixture, "w", "{'concurrency':[{'limit':1}],'steps':[" TASK_STEP("a", "") "]}");
    put_workflow(
        fixture, "k",
        "{'concurrency':[{'limit':1,'key':'input.who'}],'steps':[" TASK_STEP("a", "") "]}");
    (void)start(fixture, "w");
    struct uuid behind = start(fixture, "w");
    assert_waits(fixture, behind, "limit", "1 of 1 runs of workflow w are active");
    (void)start_with(fixture, "k", "{'who':'ann'}");
    struct uuid keyed = start_with(fixture, "k", "{'who':'ann'}");
    assert_waits(fixture, keyed, "limit", "with key ann");
    struct uuid third = start_with(fixture, "k", "{'who':'bob'}");
    assert_waits(fixture, third, "limit", "2 of 2 runs of tenant acme are active");
    json_t *answer = why(fixture, third);
    const json_t *limit = json_array_get(json_object_get(answer, "waits_for"), 0);
    assert_int_equal(json_array_size(json_object_get(limit, "holders")), 2);
    assert_true(json_is_true(json_object_get(answer, "place_is_exact")));
    json_decref(answer);
}

static void a_run_for_later_says_when(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start_later(fixture, "w", fixture_now_ms(fixture) + 60000);
    assert_waits(fixture, run, "timer", "is scheduled to start at");
}

static void a_paused_run_says_who_paused_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("a", ",'needs':[]") "," TASK_STEP("b", ",'needs':[]") "]}");
    struct uuid run = start(fixture, "w");
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    assert_waits(fixture, run, "pause", "tester paused the run at");
    tamper(fixture, "DELETE FROM timeline WHERE data LIKE '%run.paused%'");
    assert_waits(fixture, run, "pause", "The run is paused.");
}

static void a_step_says_what_it_waits_for(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(
        fixture, "task",
        "{'steps':[" TASK_STEP("a", ",'retry':{'max_attempts':3,'backoff_ms':60000}") "]}");
    struct uuid run = start(fixture, "task");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_waits(fixture, run, "worker", "is running on worker worker, attempt 1");
    assert_int_equal(
        give(fixture, &h,
             (struct finish_job_input){.failed = true,
                                       .error = STR("{\"code\":\"NO\",\"message\":\"too warm\"}"),
                                       .code = STR("NO"),
                                       .retryable = true}),
        ERR_OK);
    assert_waits(fixture, run, "retry", "failed with NO: too warm. Attempt 2 is due");
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    fixture_pass_ms(fixture, 200000);
    settle(fixture);
    assert_waits(fixture, run, "pause", "paused");
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    settle(fixture);
    assert_waits(fixture, run, "worker_queue", "waiting for a worker");

    put_workflow(fixture, "sleep", "{'steps':[{'name':'s','type':'sleep','duration_ms':60000}]}");
    assert_waits(fixture, start(fixture, "sleep"), "timer", "s");
    put_workflow(fixture, "signal", "{'steps':[{'name':'s','type':'wait_signal','signal':'go'}]}");
    assert_waits(fixture, start(fixture, "signal"), "signal", "go");
    put_workflow(fixture, "child",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'task'}]}");
    assert_waits(fixture, start(fixture, "child"), "child_run", "c");
}

static void an_http_step_waits_for_its_call(void **state)
{
    struct calling_fixture *c = *state;
    char definition[160];
    (void)snprintf(definition, sizeof(definition),
                   "{'steps':[{'name':'c','type':'http','request':{'method':'GET','url':"
                   "'http://127.0.0.1:%d/silent'}}]}",
                   c->receiver->port);
    put_workflow(c->fixture, "call", definition);
    assert_waits(c->fixture, start(c->fixture, "call"), "call", "HTTP call");
}

static void an_approval_names_those_who_may_give_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "any", "{'steps':[{'name':'q','type':'approval','prompt':'ok?'}]}");
    assert_waits(fixture, start(fixture, "any"), "approval", "anyone whose role allows it");
    put_workflow(fixture, "some",
                 "{'steps':[{'name':'q','type':'approval','prompt':'ok?','approvers':{'users':["
                 "'ann','bob'],'roles':['admin'],'count':2,'forbid_requester':true},"
                 "'escalation':{'after_s':60,'approvers':{'users':['eve']}}}]}");
    struct uuid run = start(fixture, "some");
    assert_waits(fixture, run, "approval", "roles admin; users ann, bob; not tester");
    fixture_pass_ms(fixture, 61000);
    settle(fixture);
    assert_waits(fixture, run, "approval", "eve");
}

/* --- what is long is cut, and what is missing left out --- */

static void a_long_key_and_a_slot_that_nobody_holds(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "k",
                 "{'concurrency':[{'limit':1,'key':'input'},{'limit':9,'key':'input.other'}],"
                 "'steps':[{'name':'a','type':'task','handler':'h'}]}");
    put_tenant(fixture, "{'at_limit':'queue'}");
    char key[110];
    memset(key, 'k', sizeof(key));
    key[0] = key[sizeof(key) - 2] = '\'';
    key[sizeof(key) - 1] = '\0';
    (void)start_with(fixture, "k", key);
    struct uuid queued = start_with(fixture, "k", key);
    assert_waits(fixture, queued, "limit", "with key kkkk");
    json_t *answer = why(fixture, queued);
    assert_null(strstr(json_string_value(json_object_get(answer, "summary")), key + 40));
    json_decref(answer);
    tamper(fixture, "UPDATE slots SET run = 5"); /* held by nobody */
    answer = why(fixture, queued);
    const json_t *limit = json_array_get(json_object_get(answer, "waits_for"), 0);
    assert_int_equal(json_array_size(json_object_get(limit, "holders")), 0);
    json_decref(answer);
}

static void an_error_of_any_form_between_attempts(void **state)
{
    struct fixture *fixture = *state;
    static const char RETRIED[] =
        "{'steps':[{'name':'a','type':'task','handler':'h',"
        "'retry':{'max_attempts':3,'backoff_ms':60000,'jitter':'none'}}]}";
    put_workflow(fixture, "w", RETRIED);
    char words[301];
    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    char long_error[400];
    (void)snprintf(long_error, sizeof(long_error), "{\"code\":\"X\",\"message\":\"%s\"}", words);
    const char *const ERRORS[][2] = {
        {"{}", "failed with . Attempt 2"},
        {"{\"code\":\"ONLY\"}", "failed with ONLY. Attempt 2"},
        {long_error, "failed with X: wwww"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ERRORS); i++) {
        struct uuid run = start(fixture, "w");
        struct held h;
        must_claim(fixture, "a", &h);
        assert_int_equal(give(fixture, &h,
                              (struct finish_job_input){.failed = true,
                                                        .error = str_of(ERRORS[i][0]),
                                                        .code = STR("X"),
                                                        .retryable = true}),
                         ERR_OK);
        assert_waits(fixture, run, "retry", ERRORS[i][1]);
        json_t *answer = why(fixture, run);
        assert_null(strstr(json_string_value(json_object_get(answer, "summary")), words));
        json_decref(answer);
    }
}

static void only_the_first_of_many_jobs_are_named(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("m", ",'for_each':'input'") "]}");
    struct buf items;
    buf_init(&items, KIB);
    for (int i = 0; i < 60; i++)
        buf_printf(&items, "%s1", i == 0 ? "[" : ",");
    buf_printf(&items, "]%c", '\0');
    struct uuid run = start_with(fixture, "w", items.ptr);
    buf_release(&items);
    json_t *answer = why(fixture, run);
    assert_int_equal(json_array_size(json_object_get(answer, "waits_for")), 50);
    json_decref(answer);
}

static void many_approvers_are_not_all_named(void **state)
{
    struct fixture *fixture = *state;
    struct buf text;
    buf_init(&text, 16 * KIB);
    buf_printf(&text, "{'steps':[{'name':'q','type':'approval','prompt':'ok?',"
                      "'approvers':{'users':[");
    for (int i = 0; i < 50; i++)
        buf_printf(&text, "%s'%0100d'", i > 0 ? "," : "", i);
    buf_printf(&text, "]}}]}%c", '\0');
    assert_true(buf_ok(&text));
    put_workflow(fixture, "w", text.ptr);
    assert_waits(fixture, start(fixture, "w"), "approval", "Approvers: many");
    buf_release(&text);
}

static void one_of_several_signals(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "any",
                 "{'steps':[{'name':'s','type':'wait_signal','signal':['go','stop']}]}");
    assert_waits(fixture, start(fixture, "any"), "signal", "go or another");
    put_workflow(fixture, "all",
                 "{'steps':[{'name':'s','type':'wait_signal','signal':['go','stop'],"
                 "'wait_for':'all'}]}");
    assert_waits(fixture, start(fixture, "all"), "signal", "go and others");
}

static void a_run_that_is_over_waits_for_nothing(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    assert_waits(fixture, run, NULL, "The run has ended (status: succeeded)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_queued_run_names_the_limits_that_are_full),
        fixture_test(a_run_for_later_says_when),
        fixture_test(a_paused_run_says_who_paused_it),
        fixture_test(a_step_says_what_it_waits_for),
        calling_test(an_http_step_waits_for_its_call),
        fixture_test(an_approval_names_those_who_may_give_it),
        fixture_test(a_long_key_and_a_slot_that_nobody_holds),
        fixture_test(an_error_of_any_form_between_attempts),
        fixture_test(only_the_first_of_many_jobs_are_named),
        fixture_test(many_approvers_are_not_all_named),
        fixture_test(one_of_several_signals),
        fixture_test(a_run_that_is_over_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
