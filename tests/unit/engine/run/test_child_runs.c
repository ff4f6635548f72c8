/* Steps of type workflow: what their child runs are given, how they end, and which are refused. */
#include "engine/usecase/asking.h"

#define CHILD(more) "{'name':'c','type':'workflow','workflow_id':'child'" more "}"
#define ECHO "{'steps':[{'name':'t','type':'transform','output':'${input}'}]}"

static struct uuid child_of(struct fixture *fixture, struct uuid run)
{
    json_t *shown = show_run(fixture, run);
    struct uuid id;
    assert_true(uuid_parse(json_str(of_step(shown, "c", "child_run_id")), &id));
    json_decref(shown);
    return id;
}

/* `code` is that of the step. */
static void assert_fails_with(struct fixture *fixture, struct uuid run, const char *code)
{
    assert_run_is(fixture, run, "failed");
    json_t *shown = show_run(fixture, run);
    const json_t *cause = json_object_get(json_object_get(shown, "error"), "cause");
    assert_string_equal(json_string_value(json_object_get(cause, "code")), code);
    json_decref(shown);
}

static void assert_output_is(struct fixture *fixture, struct uuid run, const char *wanted)
{
    assert_run_is(fixture, run, "succeeded");
    json_t *shown = show_run(fixture, run);
    char *output = json_dumps(json_object_get(shown, "output"), JSON_ENCODE_ANY | JSON_COMPACT);
    assert_string_equal(output, wanted);
    free(output);
    json_decref(shown);
}

static void a_child_is_given_the_input_of_its_step(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *members;
        const char *output;
    } CASES[] = {
        {"", "null"},
        {",'input':{'n':1}", "{\"n\":1}"},
        {",'input':{'n':'${input}'}", "{\"n\":5}"},
        {",'for_each':[1,2]", "[1,2]"},
        {",'for_each':[1,2],'input':'${item + input}'", "[6,7]"},
    };
    put_workflow(fixture, "child", ECHO);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char definition[256];
        (void)snprintf(definition, sizeof(definition),
                       "{'steps':[{'name':'c','type':'workflow','workflow_id':'child'%s}]}",
                       CASES[i].members);
        put_workflow(fixture, "parent", definition);
        struct uuid run = start_with(fixture, "parent", "5");
        for (int turn = 0; turn < 3; turn++)
            settle(fixture);
        assert_output_is(fixture, run, CASES[i].output);
    }
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_child_may_be_of_an_earlier_version_even_of_an_archived_workflow(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "child", "{'steps':[{'name':'t','type':'transform','output':1}]}");
    put_workflow(fixture, "child", "{'steps':[{'name':'t','type':'transform','output':2}]}");
    put_workflow(fixture, "first", "{'steps':[" CHILD(",'version':1") "]}");
    put_workflow(fixture, "newest", "{'steps':[" CHILD("") "]}");
    put_workflow(fixture, "third", "{'steps':[" CHILD(",'version':3") "]}");
    struct uuid newest = start(fixture, "newest");
    struct uuid third = start(fixture, "third");
    settle(fixture);
    assert_output_is(fixture, newest, "2");
    assert_fails_with(fixture, third, "CHILD_REFUSED");
    struct workflow_input archived = {STR("child"), -1};
    must_do(fixture, &UC_ARCHIVE_WORKFLOW, &archived);
    struct uuid first = start(fixture, "first");
    newest = start(fixture, "newest");
    settle(fixture);
    assert_output_is(fixture, first, "1");
    assert_fails_with(fixture, newest, "CHILD_REFUSED");
}

static void what_cannot_be_a_child_fails_the_step(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "missing", "{'steps':[" CHILD("") "]}");
    assert_fails_with(fixture, start(fixture, "missing"), "CHILD_REFUSED");
    put_workflow(fixture, "child",
                 "{'concurrency':{'key':'#input','limit':1},'steps':[" TASK_STEP("a", "") "]}");
    assert_fails_with(fixture, start(fixture, "missing"), "CHILD_REFUSED");
    put_workflow(fixture, "child", "{'steps':[" CHILD("") "]}"); /* itself */
    assert_fails_with(fixture, start(fixture, "child"), "CHILD_REFUSED");
    put_workflow(fixture, "child",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'missing'}]}");
    struct uuid run = start(fixture, "missing"); /* over another */
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_fails_with(fixture, run, "CHILD_FAILED");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 5);
    assert_int_equal(timers(fixture), 0);
}

static void runs_are_nested_only_so_deep(void **state)
{
    struct fixture *fixture = *state;
    char name[16];
    char definition[128];
    for (int i = 0; i <= CHILD_DEPTH_MAX + 1; i++) {
        (void)snprintf(name, sizeof(name), "w%d", i);
        (void)snprintf(definition, sizeof(definition),
                       "{'steps':[{'name':'c','type':'workflow','workflow_id':'w%d'}]}", i + 1);
        put_workflow(fixture, name, definition);
    }
    struct uuid run = start(fixture, "w0");
    for (int turn = 0; turn < 3 * CHILD_DEPTH_MAX; turn++)
        settle(fixture);
    assert_fails_with(fixture, run, "CHILD_FAILED");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), CHILD_DEPTH_MAX + 1);
    assert_int_equal(in_file(fixture, "SELECT max(depth) FROM runs"), CHILD_DEPTH_MAX);
}

static void a_child_that_fails_or_is_cancelled_fails_its_step(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "child", ONE_TASK);
    put_workflow(fixture, "parent", "{'steps':[" CHILD("") "]}");
    struct uuid failed = start(fixture, "parent");
    settle(fixture);
    work_badly(fixture, "a");
    settle(fixture);
    assert_fails_with(fixture, failed, "CHILD_FAILED");
    struct uuid cancelled = start(fixture, "parent");
    settle(fixture);
    assert_int_equal(control(fixture, child_of(fixture, cancelled), CONTROL_CANCEL), ERR_OK);
    settle(fixture);
    assert_fails_with(fixture, cancelled, "CHILD_FAILED");
    assert_nothing_to_claim(fixture);
    assert_sound(fixture);
}

static void a_child_that_takes_too_long_is_cancelled(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "child", ONE_TASK);
    put_workflow(fixture, "parent", "{'steps':[" CHILD(",'timeout_ms':1000") "]}");
    struct uuid late = start(fixture, "parent");
    settle(fixture);
    struct uuid child = child_of(fixture, late);
    fixture_pass_ms(fixture, 1001);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_run_is(fixture, child, "cancelled");
    assert_step_is(fixture, late, "c", "timed_out");
    struct uuid in_time = start(fixture, "parent");
    settle(fixture);
    work(fixture, "a");
    settle(fixture);
    assert_output_is(fixture, in_time, "{\"ok\":true}");
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    assert_run_is(fixture, in_time, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_cancelled_run_takes_its_children_with_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "child", ONE_TASK);
    put_workflow(fixture, "parent", "{'steps':[" CHILD(",'for_each':[1,2]") "]}");
    struct uuid run = start(fixture, "parent");
    settle(fixture);
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE finished_at IS NULL"), 0);
    assert_nothing_to_claim(fixture);
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* The output of a child is too large for its run, which has succeeded nonetheless. */
static void a_child_whose_output_was_too_large_fails_its_step(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "child", "{'steps':[" TASK_STEP("m", ",'for_each':[1,2,3,4]") "]}");
    put_workflow(fixture, "parent", "{'steps':[" CHILD("") "]}");
    struct uuid run = start(fixture, "parent");
    settle(fixture);
    static char text[600 * KIB];
    memset(text, 'x', sizeof(text) - 1);
    text[0] = text[sizeof(text) - 2] = '"';
    struct held jobs[4];
    assert_int_equal(claim_many(fixture, 60000, 4, jobs), 4);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        assert_int_equal(give(fixture, &jobs[i], (struct finish_job_input){.output = str_of(text)}),
                         ERR_OK);
    struct uuid child = child_of(fixture, run);
    settle(fixture);
    assert_run_is(fixture, child, "succeeded");
    assert_error_code(fixture, child, "OUTPUT_TOO_LARGE");
    assert_fails_with(fixture, run, "CHILD_FAILED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_child_is_given_the_input_of_its_step),
        fixture_test(a_child_may_be_of_an_earlier_version_even_of_an_archived_workflow),
        fixture_test(what_cannot_be_a_child_fails_the_step),
        fixture_test(runs_are_nested_only_so_deep),
        fixture_test(a_child_that_fails_or_is_cancelled_fails_its_step),
        fixture_test(a_child_that_takes_too_long_is_cancelled),
        fixture_test(a_cancelled_run_takes_its_children_with_it),
        fixture_test(a_child_whose_output_was_too_large_fails_its_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
