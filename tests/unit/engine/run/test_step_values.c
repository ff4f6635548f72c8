/* What steps are given and what they make of it: expressions over the run, lists of items and their
 * outputs, and what a step is undone with. */
#include "engine/usecase/asking.h"

#define TRANSFORM(name, output, more) \
    "{'name':'" name "','type':'transform','output':" output more "}"

/* The output of a run that has succeeded, as compact JSON. */
static void assert_output_is(struct fixture *fixture, struct uuid run, const char *wanted)
{
    json_t *shown = show_run(fixture, run);
    assert_string_equal(json_string_value(json_object_get(shown, "status")), "succeeded");
    char *output = json_dumps(json_object_get(shown, "output"),
                              JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(output, wanted);
    free(output);
    json_decref(shown);
}

/* Runs `step` alone with `input`: it must fail with this code. */
static void assert_step_fails(struct fixture *fixture, const char *step, const char *input,
                              const char *code)
{
    char definition[2048];
    (void)snprintf(definition, sizeof(definition), "{'steps':[%s]}", step);
    put_workflow(fixture, "failing", definition);
    struct uuid run = start_with(fixture, "failing", input);
    settle(fixture);
    assert_run_is(fixture, run, "failed");
    json_t *shown = show_run(fixture, run);
    const json_t *cause = json_object_get(json_object_get(shown, "error"), "cause");
    const char *is = json_string_value(json_object_get(cause, "code"));
    if (is == NULL || strcmp(is, code) != 0)
        fail_msg("%s fails with %s, wanted %s", step, is != NULL ? is : "nothing", code);
    json_decref(shown);
}

/* --- what expressions see --- */

static const char *const SEES =
    "{'steps':[{'name':'a','type':'transform','output':{'n':'${input.n + 1}'}},"
    "{'name':'skipped','type':'transform','output':1,'when':'input.n > 5'},"
    "{'name':'e','type':'emit','event':'seen','payload':{'n':'${steps.a.output.n}'}},"
    "{'name':'b','type':'transform','output':{'sum':'${steps.a.output.n + input.n}',"
    "'again':'${steps.a.output.n}','attempt':'${steps.a.attempt}',"
    "'skipped':'${steps.skipped.status}','later':'${steps.z.status}',"
    "'emitted':'${steps.e.output.n}','none':'${steps.nobody}','workflow':'${run.workflow_id}','"
    "tenant':'${run.tenant}'}},"
    "{'name':'z','type':'task','handler':'h','when':'false'}]}";

static void expressions_see_the_run_its_input_and_its_steps(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", SEES);
    struct uuid run = start_with(fixture, "w", "{'n':1}");
    assert_output_is(fixture, run,
                     "{\"again\":2,\"attempt\":1,\"emitted\":2,\"later\":\"pending\",\"none\":null,"
                     "\"skipped\":\"skipped\",\"sum\":3,\"tenant\":\"acme\",\"workflow\":\"w\"}");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events WHERE data LIKE '%\"n\":2%'"),
                     1);
}

static void the_state_that_a_worker_leaves_is_seen_by_later_steps(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("a", "") "," TRANSFORM("b", "'${state.left}'", "") "]}");
    struct uuid run = start(fixture, "w");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_int_equal(
        give(fixture, &h,
             (struct finish_job_input){.output = STR("1"), .state = STR("{\"left\":\"this\"}")}),
        ERR_OK);
    assert_output_is(fixture, run, "\"this\"");
}

static void a_step_whose_expression_fails_fails_with_it(void **state)
{
    struct fixture *fixture = *state;
    static const char *const STEPS[] = {
        TRANSFORM("s", "'${1 // 0}'", ""),
        TRANSFORM("s", "1", ",'when':'1 // 0 > 0'"),
        TASK_STEP("s", ",'input':{'n':'${1 // 0}'}"),
        TASK_STEP("s", ",'for_each':'1 // 0'"),
        TASK_STEP("s", ",'for_each':'input','input':{'n':'${item // 0}'}"),
        "{'name':'s','type':'emit','event':'x','payload':'${1 // 0}'}",
        "{'name':'s','type':'sleep','until':'${1 // 0}'}",
        "{'name':'s','type':'sleep','until':'${input}'}",
        "{'name':'s','type':'sleep','until':'${tostring(input)}'}",
        "{'name':'s','type':'approval','prompt':'${1 // 0}'}",
        "{'name':'s','type':'workflow','workflow_id':'failing-not','input':{'n':'${1 // 0}'}}",
    };
    put_workflow(fixture, "failing-not", ONE_TASK);
    for (size_t i = 0; i < ARRAY_LEN(STEPS); i++)
        assert_step_fails(fixture, STEPS[i], i == 4 ? "[1,2]" : "7", "EXPRESSION_FAILED");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_sleep_ends_at_the_time_that_was_computed(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[{'name':'s','type':'sleep','until':'${input.at}'}]}");
    struct uuid past = start_with(fixture, "w", "{'at':'1969-12-31T00:00:00Z'}");
    settle(fixture);
    assert_run_is(fixture, past, "succeeded");
    char input[64];
    struct buf at;
    buf_init(&at, 64);
    buf_put_time(&at, fixture_now_ms(fixture) + 5000);
    (void)snprintf(input, sizeof(input), "{'at':'%.*s'}", (int)at.len, at.ptr);
    buf_release(&at);
    struct uuid later = start_with(fixture, "w", input);
    settle(fixture);
    assert_run_is(fixture, later, "waiting");
    fixture_pass_ms(fixture, 5001);
    settle(fixture);
    assert_run_is(fixture, later, "succeeded");
}

/* --- items --- */

static void work_all(struct fixture *fixture, const char *output)
{
    struct held jobs[8];
    for (size_t count = 1; count > 0;) {
        count = claim_many(fixture, 60000, ARRAY_LEN(jobs), jobs);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(
                give(fixture, &jobs[i], (struct finish_job_input){.output = str_of(output)}),
                ERR_OK);
    }
}

static void a_map_makes_a_list_of_the_outputs_of_its_items(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "last",
                 "{'steps':[" TRANSFORM("m", "'${item * 2}'", ",'for_each':'input'") "]}");
    struct uuid run = start_with(fixture, "last", "[1,2,3]");
    assert_output_is(fixture, run, "[2,4,6]");
    run = start_with(fixture, "last", "[]");
    assert_output_is(fixture, run, "[]");
    put_workflow(fixture, "seen",
                 "{'steps':[" TASK_STEP(
                     "m", ",'for_each':['a','${input}'],'input':{'x':'${item}'},"
                          "'max_parallel':1") "," TRANSFORM("all",
                                                            "{'outputs':'${steps.m.output}','error'"
                                                            ":'${steps.m.error}'}",
                                                            "") "]}");
    run = start_with(fixture, "seen", "'b'");
    work_all(fixture, "5");
    assert_output_is(fixture, run, "{\"error\":null,\"outputs\":[5,5]}");
    assert_sound(fixture);
}

static void a_map_of_no_list_fails(void **state)
{
    struct fixture *fixture = *state;
    assert_step_fails(fixture, TASK_STEP("s", ",'for_each':'input'"), "7", "ITEMS_INVALID");
    struct buf items;
    buf_init(&items, 64 * KIB);
    buf_put_char(&items, '[');
    for (int i = 0; i < MAP_ITEMS_MAX; i++)
        buf_put(&items, STR("1,"));
    buf_put(&items, STR("1]"));
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("s", ",'for_each':'input'") "]}");
    struct json *input = json_value_of_tree(json_loadb(items.ptr, items.len, 0, NULL));
    struct start_run_input in = {.workflow_id = STR("w"),
                                 .input = input,
                                 .input_text = buf_str(&items),
                                 .labels = STR("{}"),
                                 .at_limit = AT_LIMIT_COUNT,
                                 .start_at = -1};
    json_t *answer = answer_of(fixture, &UC_START_RUN, &in);
    const json_t *error = json_object_get(json_object_get(answer, "run"), "error");
    assert_string_equal(json_string_value(json_object_get(json_object_get(error, "cause"), "code")),
                        "ITEMS_INVALID");
    json_decref(answer);
    json_free(input);
    buf_release(&items);
}

/* Each item may have as much as a step, but together they do not fit. */
static void outputs_that_are_too_large_together_are_an_error_where_they_are_used(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "last", "{'steps':[" TASK_STEP("m", ",'for_each':'input'") "]}");
    put_workflow(fixture, "used",
                 "{'steps':[" TASK_STEP("m", ",'for_each':'input'") "," TRANSFORM(
                     "all", "'${#steps.m.output}'", "") "]}");
    static char text[600 * KIB];
    memset(text, 'x', sizeof(text) - 1);
    text[0] = text[sizeof(text) - 2] = '"';
    struct uuid last = start_with(fixture, "last", "[1,2,3,4]");
    struct uuid used = start_with(fixture, "used", "[1,2,3,4]");
    work_all(fixture, text);
    assert_run_is(fixture, last, "succeeded");
    assert_error_code(fixture, last, "OUTPUT_TOO_LARGE");
    assert_run_is(fixture, used, "failed");
    assert_error_code(fixture, used, "STEP_FAILED");
}

static void the_first_error_of_a_map_is_seen_by_later_steps(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(
        fixture, "w",
        "{'steps':[" TASK_STEP("m", ",'for_each':'input','on_error':'continue'") "," TRANSFORM(
            "b", "{'code':'${steps.m.error.code}','status':'${steps.m.status}'}",
            ",'needs':['m']") "]}");
    struct uuid run = start_with(fixture, "w", "[1,2,3]");
    work_badly(fixture, "m");
    work_all(fixture, "1");
    assert_output_is(fixture, run, "{\"code\":\"BROKEN\",\"status\":\"succeeded\"}");
    assert_sound(fixture);
}

static void a_list_that_is_under_way_has_no_output_yet(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'m','type':'task','handler':'h','for_each':[1,2]},"
                 "{'name':'t','type':'transform','needs':[],"
                 "'output':{'is':'${steps.m.status}','of':'${steps.m.output}'}}]}");
    json_t *run = show_run(fixture, start(fixture, "w"));
    const json_t *seen = of_step(run, "t", "output");
    assert_string_equal(json_string_value(json_object_get(seen, "is")), "running");
    assert_true(json_is_null(json_object_get(seen, "of")));
    json_decref(run);
}

/* --- undoing --- */

static const char *const UNDOES =
    "{'steps':[{'name':'own','type':'task','handler':'h','input':{'x':1},"
    "'compensate':{'handler':'u','input':{'was':'${steps.own.output}'}}},"
    "{'name':'map','type':'task','handler':'h','for_each':'input','compensate':{'handler':'u'}},"
    "{'name':'plain','type':'task','handler':'h','compensate':{'handler':'u'}},"
    "{'name':'broken','type':'task','handler':'h',"
    "'compensate':{'handler':'u','input':'${1 // 0}'}},"
    "{'name':'fails','type':'task','handler':'h'}]}";

static void a_step_is_undone_with_what_it_had_and_made(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", UNDOES);
    struct uuid run = start_with(fixture, "w", "[7]");
    static const char *const STEPS[] = {"own", "map", "plain", "broken"};
    for (size_t i = 0; i < ARRAY_LEN(STEPS); i++)
        work(fixture, STEPS[i]);
    work_badly(fixture, "fails");
    static const struct {
        const char *step;
        const char *input;
    } UNDONE[] = {{"plain", "{\"input\":[7],\"output\":{\"ok\":true}}"},
                  {"map", "{\"input\":[7],\"output\":[{\"ok\":true}]}"},
                  {"own", "{\"was\":{\"ok\":true}}"}};
    for (size_t i = 0; i < ARRAY_LEN(UNDONE); i++) {
        struct held h;
        must_claim(fixture, UNDONE[i].step, &h);
        assert_true(h.compensates);
        assert_string_equal(h.input, UNDONE[i].input);
        assert_int_equal(complete(fixture, &h), ERR_OK);
    }
    json_t *shown = show_run(fixture, run);
    assert_true(
        json_is_true(json_object_get(json_object_get(shown, "error"), "compensation_failed")));
    json_decref(shown);
    assert_run_is(fixture, run, "failed");
    assert_sound(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(expressions_see_the_run_its_input_and_its_steps),
        fixture_test(the_state_that_a_worker_leaves_is_seen_by_later_steps),
        fixture_test(a_step_whose_expression_fails_fails_with_it),
        fixture_test(a_sleep_ends_at_the_time_that_was_computed),
        fixture_test(a_map_makes_a_list_of_the_outputs_of_its_items),
        fixture_test(a_map_of_no_list_fails),
        fixture_test(outputs_that_are_too_large_together_are_an_error_where_they_are_used),
        fixture_test(the_first_error_of_a_map_is_seen_by_later_steps),
        fixture_test(a_list_that_is_under_way_has_no_output_yet),
        fixture_test(a_step_is_undone_with_what_it_had_and_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
