/* What a definition's steps run by: their expressions, who handles their errors, and the parts that
 * the engine reads. */
#include "domain/parsed_definition.h"

/* --- expressions --- */

static void every_expression_is_read_when_the_definition_is(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {TASK("'when':'1 +'"), "/steps/0/when", "<eof>"},
        {TASK("'when':'x = 1'"), "/steps/0/when", "="},
        {TASK("'for_each':'input[list'"), "/steps/0/for_each", "]"},
        {TASK("'for_each':[1,{'a':'${)}'}]"), "/steps/0/for_each/1/a", ")"},
        {TASK("'input':'${1 +}'"), "/steps/0/input", "<eof>"},
        {TASK("'input':{'a':['ok ${1}',{'b/c':'is ${input.}'}]}"), "/steps/0/input/a/1/b~1c", ""},
        {TASK("'input':'${input.x'"), "/steps/0/input", "}"},
        {TASK("'compensate':{'handler':'h','input':{'x':'${(}'}}"), "/steps/0/compensate/input/x",
         ""},
        {HTTP("{'method':'GET','url':'https://a/${*}'}"), "/steps/0/request/url", "*"},
        {STEP("'type':'sleep','until':'${input.}'"), "/steps/0/until", ""},
        {STEP("'type':'transform','output':['${]}']"), "/steps/0/output/0", "]"},
        {STEP("'type':'emit','event':'e','payload':{'x':'${end}'}"), "/steps/0/payload/x", "end"},
        {STEP("'type':'workflow','workflow_id':'w','input':'${..}'"), "/steps/0/input", ".."},
    };
    assert_each_has_its_one_fault(ROWS, ARRAY_LEN(ROWS));
}

static void what_is_no_expression_is_not_read_as_one(void **state)
{
    (void)state;
    static const char *const VALID[] = {
        TASK("'for_each':['1 +',{'a':'x ='}]"),
        TASK("'input':{'${1 +':'a member is no template'}"),
        "{'description':'${1 +}','input_schema':{'default':'${)}'},'steps':[" A_TASK "]}",
        STEP("'type':'wait_signal','signal':'paid'"),
    };
    assert_each_is_valid(VALID, ARRAY_LEN(VALID));
}

static void a_fault_deep_inside_is_named_by_a_path_that_is_cut(void **state)
{
    (void)state;
    char name[2000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    json_t *source = json_of(TASK("'input':{'short':{}}"));
    json_t *input = json_object_get(json_array_get(json_object_get(source, "steps"), 0), "input");
    (void)json_object_set_new(json_object_get(input, "short"), name, json_pack("[s]", "${)}"));
    struct parsed_definition t;
    try_json(&t, source);
    assert_int_equal(t.err, ERR_DEFINITION_INVALID);
    assert_int_equal(json_array_size(t.faults), 1);
    struct str path = json_str(json_object_get(json_array_get(t.faults, 0), "path"));
    assert_true(str_starts_with(path, STR("/steps/0/input/short/nnn")));
    assert_in_range(path.len, 1, 300);
    end(&t);
}

/* --- steps that handle errors --- */

static void a_step_that_handles_errors_stands_outside_the_written_order(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'steps':[{'name':'a','type':'task','handler':'h','on_error':'mend'},"
                 "{'name':'mend','type':'task','handler':'h'},"
                 "{'name':'b','type':'task','handler':'h','on_error':'continue'},"
                 "{'name':'c','type':'task','handler':'h','on_error':'fail'}]}");
    assert_valid(&t);
    const struct step_def *steps = t.def->steps;
    assert_int_equal(steps[0].on_error, ON_ERROR_STEP);
    assert_int_equal(steps[0].error_step, 1);
    assert_int_equal(steps[2].on_error, ON_ERROR_CONTINUE);
    assert_int_equal(steps[3].on_error, ON_ERROR_FAIL);
    static const bool HANDLES[] = {false, true, false, false};
    static const size_t NEEDS[] = {0, 0, 1, 1};
    for (size_t i = 0; i < ARRAY_LEN(HANDLES); i++) {
        assert_int_equal(steps[i].handles_errors, HANDLES[i]);
        assert_int_equal(steps[i].need_count, NEEDS[i]);
    }
    assert_int_equal(steps[2].needs[0], 0); /* not the handler that is written before it */
    assert_int_equal(steps[3].needs[0], 2);
    end(&t);
}

static void a_handler_may_come_first_or_be_shared(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'steps':[{'name':'mend','type':'task','handler':'h'},"
                 "{'name':'a','type':'task','handler':'h','on_error':'mend'},"
                 "{'name':'b','type':'task','handler':'h','on_error':'mend'}]}");
    assert_valid(&t);
    assert_true(t.def->steps[0].handles_errors);
    assert_int_equal(t.def->steps[1].need_count, 0);
    assert_int_equal(t.def->steps[2].need_count, 1);
    assert_int_equal(t.def->steps[2].needs[0], 1);
    end(&t);
}

#define TWO(of_a, of_b)                                                                     \
    "{'steps':[{'name':'a','type':'task','handler':'h'" of_a "},{'name':'b','type':'task'," \
    "'handler':'h'" of_b "}]}"

/* A handler waits for the steps whose errors it handles: who in turn waits for it waits for ever.
 */
static void steps_that_wait_for_each_others_errors_are_refused(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {TWO(",'on_error':'b','needs':['b']", ""), "/steps/0/needs",
         "\"a\" needs \"b\" handles an error of \"a\""},
        {TWO(",'on_error':'b'", ",'on_error':'a'"), "/steps/0/name",
         "\"a\" handles an error of \"b\" handles an error of \"a\""},
        {"{'steps':[{'name':'a','type':'task','handler':'h','on_error':'c'},"
         "{'name':'b','type':'task','handler':'h','needs':['c']},"
         "{'name':'c','type':'task','handler':'h','on_error':'a','needs':[]}]}",
         "/steps/0/name", "depend on each other"},
        {"{'steps':[{'name':'a','type':'task','handler':'h','on_error':'c','needs':['b']},"
         "{'name':'b','type':'task','handler':'h','needs':['c']},"
         "{'name':'c','type':'task','handler':'h'}]}",
         "/steps/0/needs", "\"a\" needs \"b\" needs \"c\" handles an error of \"a\""},
    };
    assert_each_has_its_one_fault(ROWS, ARRAY_LEN(ROWS));
    static const char *const VALID[] = {
        TWO(",'on_error':'b'", ",'needs':['a']"),
        TWO(",'on_error':'b'", ""),
        "{'steps':[{'name':'a','type':'task','handler':'h','on_error':'c'},"
        "{'name':'b','type':'task','handler':'h','on_error':'c','needs':['a']},"
        "{'name':'c','type':'task','handler':'h','on_error':'d','needs':['b']},"
        "{'name':'d','type':'task','handler':'h','needs':['c','a']}]}",
    };
    assert_each_is_valid(VALID, ARRAY_LEN(VALID));
}

/* --- how often, how long, what else --- */

static void a_step_gets_its_retries_times_and_compensation(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'timeout_s':7,'steps':[{'name':'a','type':'task','handler':'h','queue':'q',"
                 "'retry':{'max_attempts':3,'backoff_ms':5,'max_backoff_ms':70,'multiplier':1.5,"
                 "'jitter':'equal','non_retryable':['X']},'timeout_ms':9,'max_parallel':4,"
                 "'for_each':'input','when':'true','compensate':{'handler':'u'}},"
                 "{'name':'b','type':'task','handler':'h',"
                 "'compensate':{'handler':'u','queue':'z','input':{'x':1}}}," A_TASK_C "]}");
    assert_valid(&t);
    const struct step_def *a = &t.def->steps[0];
    assert_int_equal(t.def->timeout_ms, 7000);
    assert_int_equal(a->retry.max_attempts, 3);
    assert_int_equal(a->retry.backoff_ms, 5);
    assert_int_equal(a->retry.max_backoff_ms, 70);
    assert_true(a->retry.multiplier == 1.5);
    assert_int_equal(a->retry.jitter, JITTER_EQUAL);
    assert_int_equal(json_length(a->retry.non_retryable), 1);
    assert_int_equal(a->timeout_ms, 9);
    assert_int_equal(a->max_parallel, 4);
    assert_str(a->when, "true");
    assert_true(json_is(a->for_each, JSON_KIND_TEXT));
    assert_true(a->has_undo);
    assert_str(a->undo_handler, "u");
    assert_str(a->undo_queue, "q"); /* the step's own, where nothing else is said */
    assert_null(a->undo_input);
    assert_str(t.def->steps[1].undo_queue, "z");
    assert_non_null(t.def->steps[1].undo_input);
    const struct step_def *c = &t.def->steps[2];
    assert_int_equal(c->retry.max_attempts, 0);
    assert_int_equal(c->retry.backoff_ms, RETRY_BACKOFF_MS_DEFAULT);
    assert_int_equal(c->retry.max_backoff_ms, RETRY_BACKOFF_MS_MAX_DEFAULT);
    assert_true(c->retry.multiplier == 2);
    assert_int_equal(c->retry.jitter, JITTER_FULL);
    assert_null(c->retry.non_retryable);
    assert_int_equal(c->timeout_ms, -1);
    assert_int_equal(c->max_parallel, MAP_PARALLEL_DEFAULT);
    assert_int_equal(c->when.len, 0);
    assert_null(c->for_each);
    assert_false(c->has_undo);
    end(&t);
    try_text(&t, "{'steps':[" A_TASK "]}");
    assert_int_equal(t.def->timeout_ms, -1);
    end(&t);
}

static void a_step_of_each_type_gets_what_it_runs_by(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'steps':[{'name':'a','type':'http','request':{'method':'GET','url':'http://x'}},"
                 "{'name':'b','type':'wait_signal','signal':['p','q'],'timeout_ms':8},"
                 "{'name':'c','type':'transform','output':{'x':'${input}'}},"
                 "{'name':'d','type':'emit','event':'e.f','payload':1},"
                 "{'name':'e','type':'workflow','workflow_id':'w','version':3},"
                 "{'name':'f','type':'workflow','workflow_id':'w'},"
                 "{'name':'g','type':'sleep','until':'${input.t}'},"
                 "{'name':'h','type':'wait_signal','signal':['p','q'],'wait_for':'all'}]}");
    assert_valid(&t);
    const struct step_def *steps = t.def->steps;
    assert_true(json_is(steps[0].request, JSON_KIND_OBJECT));
    assert_int_equal(json_length(steps[1].signals), 2);
    assert_int_equal(steps[1].timeout_ms, 8);
    assert_false(steps[1].waits_for_all);
    assert_true(steps[7].waits_for_all);
    assert_true(json_is(steps[2].output, JSON_KIND_OBJECT));
    assert_str(steps[3].event, "e.f");
    assert_int_equal(integer_of(steps[3].payload), 1);
    assert_str(steps[4].workflow_id, "w");
    assert_int_equal(steps[4].version, 3);
    assert_int_equal(steps[5].version, -1);
    assert_str(steps[6].until, "${input.t}");
    assert_int_equal(steps[6].until_ms, -1);
    assert_int_equal(steps[6].duration_ms, -1);
    end(&t);
}

static void keys_of_signals_are_known_as_the_definition_says(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'steps':[{'name':'a','type':'wait_signal','signal':'s'}]}");
    assert_valid(&t);
    assert_int_equal(t.def->signal_window_ms, 3 * 86400 * 1000);
    assert_int_equal(t.def->signal_max_keys, 10000);
    end(&t);
    try_text(&t, "{'signals':{'dedup_window_s':31536000,'dedup_max_keys':7},"
                 "'steps':[{'name':'a','type':'wait_signal','signal':'s'}]}");
    assert_valid(&t);
    assert_int_equal(t.def->signal_window_ms, INT64_C(31536000000));
    assert_int_equal(t.def->signal_max_keys, 7);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_expression_is_read_when_the_definition_is),
        cmocka_unit_test(what_is_no_expression_is_not_read_as_one),
        cmocka_unit_test(a_fault_deep_inside_is_named_by_a_path_that_is_cut),
        cmocka_unit_test(a_step_that_handles_errors_stands_outside_the_written_order),
        cmocka_unit_test(a_handler_may_come_first_or_be_shared),
        cmocka_unit_test(steps_that_wait_for_each_others_errors_are_refused),
        cmocka_unit_test(a_step_gets_its_retries_times_and_compensation),
        cmocka_unit_test(a_step_of_each_type_gets_what_it_runs_by),
        cmocka_unit_test(keys_of_signals_are_known_as_the_definition_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
