/* A workflow definition: what is accepted, and what cannot be run yet.
 * JSON in this file is written with ' for " to keep it readable. */
#include "domain/parsed_definition.h"

static const char REFUND[] =
    "{ 'id':'refund', 'description':'…', 'input_schema':{}, 'timeout_s':3600,"
    "  'concurrency':{'key':'input.customer_id','limit':1,'at_limit':'queue'},"
    "  'steps':["
    "    {'name':'lookup','type':'task','queue':'default','handler':'orders.lookup',"
    "     'input':{'id':'${input.order_id}'},"
    "     'retry':{'max_attempts':3,'backoff_ms':1000,'multiplier':2,'max_backoff_ms':300000,"
    "              'jitter':'full'},'timeout_ms':30000},"
    "    {'name':'ok','type':'approval','needs':['lookup'],'when':'steps.lookup.output.amount > "
    "100',"
    "     'prompt':'Refund ${steps.lookup.output.amount}?',"
    "     'approvers':{'count':1,'forbid_requester':true},'expires_s':86400},"
    "    {'name':'pay','type':'task','needs':['ok'],'handler':'payments.refund',"
    "     'compensate':{'handler':'payments.undo'}},"
    "    {'name':'tell','type':'http','needs':['pay'],"
    "     'request':{'method':'POST','url':'http://127.0.0.1:9/…','body':{}}} ] }";

/* --- what is accepted --- */

static void the_contracts_example_is_valid_and_runs(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, REFUND);
    assert_valid(&t);
    assert_true(str_is(t.def->id, "refund"));
    assert_int_equal(t.def->step_count, 4);
    assert_non_null(t.def->input_schema);
    assert_int_equal(t.def->unsupported.len, 0);
    assert_int_equal(t.def->timeout_ms, 3600 * 1000);
    assert_int_equal(t.def->steps[3].need_count, 1);
    assert_int_equal(t.def->steps[3].needs[0], 2);
    assert_int_equal(t.def->steps[1].type, STEP_APPROVAL);
    end(&t);
}

static void a_task_gets_its_queue_handler_and_input(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t,
             "{'id':'refund','steps':[{'name':'a','type':'task','handler':'h.x','input':{'n':1}},"
             "{'name':'b','type':'task','queue':'slow','handler':'h.y'}]}");
    assert_valid(&t);
    const struct step_def *steps = t.def->steps;
    assert_true(str_is(steps[0].name, "a"));
    assert_true(str_is(steps[0].queue, "default"));
    assert_true(str_is(steps[0].handler, "h.x"));
    assert_int_equal(integer_of(json_member(steps[0].input, STR("n"))), 1);
    assert_int_equal(steps[0].duration_ms, -1);
    assert_int_equal(steps[0].until_ms, -1);
    assert_true(str_is(steps[1].queue, "slow"));
    assert_null(steps[1].input);
    assert_null(t.def->input_schema);
    assert_int_equal(t.def->unsupported.len, 0);
    end(&t);
}

static void a_null_input_is_an_input(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, TASK("'input':null"));
    assert_valid(&t);
    assert_true(json_is(t.def->steps[0].input, JSON_KIND_NULL));
    end(&t);
}

static void a_sleep_has_a_duration_or_a_time(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'steps':[{'name':'a','type':'sleep','duration_ms':1500},"
                 "{'name':'b','type':'sleep','until':'2030-01-01T00:00:00Z'},"
                 "{'name':'c','type':'sleep','until':'1969-12-31T23:59:59.999Z'},"
                 "{'name':'d','type':'sleep','duration_ms':0}]}");
    assert_valid(&t);
    assert_int_equal(t.def->steps[0].duration_ms, 1500);
    assert_int_equal(t.def->steps[0].until_ms, -1);
    assert_int_equal(t.def->steps[1].duration_ms, -1);
    assert_int_equal(t.def->steps[1].until_ms, 1893456000000);
    assert_int_equal(t.def->steps[2].until_ms, 0);
    assert_int_equal(t.def->steps[3].duration_ms, 0);
    assert_int_equal(t.def->unsupported.len, 0);
    end(&t);
}

static void without_needs_steps_run_in_the_order_written(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'steps':[" A_TASK ",{'name':'b','type':'sleep','duration_ms':1},"
                 "{'name':'c','type':'sleep','duration_ms':1}]}");
    assert_valid(&t);
    assert_int_equal(t.def->steps[0].need_count, 0);
    assert_int_equal(t.def->steps[1].need_count, 1);
    assert_int_equal(t.def->steps[1].needs[0], 0);
    assert_int_equal(t.def->steps[2].need_count, 1);
    assert_int_equal(t.def->steps[2].needs[0], 1);
    end(&t);
}

static void with_needs_anywhere_the_others_start_at_once(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'steps':[" A_TASK ",{'name':'b','type':'sleep','duration_ms':1},"
                 "{'name':'c','type':'sleep','duration_ms':1,'needs':['b','a']}]}");
    assert_valid(&t);
    assert_int_equal(t.def->steps[0].need_count, 0);
    assert_int_equal(t.def->steps[1].need_count, 0);
    assert_int_equal(t.def->steps[2].need_count, 2);
    assert_int_equal(t.def->steps[2].needs[0], 1);
    assert_int_equal(t.def->steps[2].needs[1], 0);
    end(&t);

    try_text(&t, "{'steps':[" A_TASK ",{'name':'b','type':'sleep','duration_ms':1,'needs':[]}]}");
    assert_valid(&t);
    assert_int_equal(t.def->steps[1].need_count, 0);
    end(&t);
}

static void a_step_is_found_by_its_name(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, REFUND);
    assert_valid(&t);
    assert_int_equal(definition_find_step(t.def, STR("lookup")), 0);
    assert_int_equal(definition_find_step(t.def, STR("tell")), 3);
    assert_int_equal(definition_find_step(t.def, STR("nobody")), t.def->step_count);
    end(&t);
}

static void every_type_is_accepted_with_all_its_members(void **state)
{
    (void)state;
    static const char *const VALID[] = {
        TASK("'queue':'q','input':[1],'requires_approval':true"),
        TASK("'requires_approval':false"),
        TASK("'requires_approval':{'approvers':{'users':['u']},'expires_s':60,'remind_every_s':20,"
             "'escalation':{'after_s':59,'approvers':{'roles':['approver','admin']}}}"),
        APPROVAL("'approvers':{'roles':['approver'],'count':100},'remind_every_s':1,'timeout_ms':5,"
                 "'escalation':{'after_s':1,'approvers':{'users':['boss']}}"),
        TASK("'requires_approval':{'prompt':'p','approvers':{'count':2,'roles':['operator'],'users'"
             ":['u'"
             "]},"
             "'expires_s':60,'on_expire':'approve','content':{'x':1}}"),
        TASK("'compensate':{'handler':'u','queue':'q','input':{}}"),
        TASK("'when':'x','for_each':'input.list','max_parallel':10000,'on_error':'continue'"),
        TASK("'for_each':[1,2,3],'on_error':'fail'"),
        TASK("'retry':{'max_attempts':1000,'backoff_ms':0,'multiplier':1.5,'max_backoff_ms':"
             "86400000,"
             "'jitter':'decorrelated','non_retryable':['CARD_DECLINED']}"),
        TASK("'retry':{},'timeout_ms':1"),
        HTTP("{'method':'POST','url':'${input.callback_url}'}"),
        HTTP("{'method':'GET','url':'https://${input.host + "
             "1}/x','headers':{'X-A':'b\\tc'},'body':null}"),
        STEP("'type':'http','request':{'method':'PUT','url':'http://"
             "a'},'compensate':{'handler':'u'}"),
        APPROVAL("'approvers':{},'expires_s':1,'on_expire':'fail','content':'c'"),
        STEP("'type':'wait_signal','signal':'paid','timeout_ms':1000"),
        STEP("'type':'wait_signal','signal':['paid','cancelled']"),
        STEP("'type':'wait_signal','signal':['paid','packed'],'wait_for':'all'"),
        STEP("'type':'wait_signal','signal':['paid','packed'],'wait_for':'first'"),
        STEP("'type':'wait_signal','signal':'paid','wait_for':'first'"),
        "{'signals':{},'steps':[" A_TASK "]}",
        "{'signals':{'dedup_window_s':31536000,'dedup_max_keys':1000000},'steps':[" A_TASK "]}",
        STEP("'type':'transform','output':null"),
        STEP("'type':'emit','event':'order.paid','payload':[1]"),
        STEP("'type':'workflow','workflow_id':'child','version':2,'input':{},"
             "'compensate':{'handler':'u'}"),
        STEP("'type':'llm','prompt':'say ${input}','model':'m','input':{}"),
        STEP("'type':'sleep','until':'${input.when}'"),
        STEP("'type':'sleep','duration_ms':316224000000"),
        "{'timeout_s':315360000,'steps':[" A_TASK "]}",
        LIMITS("{'key':'k','limit':5}"),
        LIMITS("{'limit':5}"),
        LIMITS("[{'limit':5,'at_limit':'coalesce'}]"),
        LIMITS("[{'limit':1},{'key':'a','limit':1},{'key':'b','limit':1},{'key':'a ','limit':1}]"),
        "{'steps':[" A_TASK ",{'name':'b','type':'task','handler':'h','on_error':'a'}]}",
        SCHEMA("true"),
    };
    assert_each_is_valid(VALID, ARRAY_LEN(VALID));
}

static void limits_get_their_path_number_and_policy(void **state)
{
    (void)state;
    static const char *const ONE[] = {
        LIMITS("{'key':'input.customer','limit':3,'at_limit':'cancel_oldest'}"),
        LIMITS("[{'key':'input.customer','limit':3,'at_limit':'cancel_oldest'}]"),
    };
    struct parsed_definition t;
    for (size_t i = 0; i < ARRAY_LEN(ONE); i++) {
        try_text(&t, ONE[i]);
        assert_valid(&t);
        assert_int_equal(t.def->limit_count, 1);
        assert_true(str_is(t.def->limits[0].path, "input.customer"));
        assert_int_equal(t.def->limits[0].limit, 3);
        assert_int_equal(t.def->limits[0].at_limit, AT_LIMIT_CANCEL_OLDEST);
        end(&t);
    }
    try_text(&t, LIMITS("[{'limit':1000000},{'key':'input.a','limit':1,'at_limit':'reject'}]"));
    assert_valid(&t);
    assert_int_equal(t.def->limit_count, 2);
    assert_int_equal(t.def->limits[0].path.len, 0);
    assert_int_equal(t.def->limits[0].limit, 1000000);
    assert_int_equal(t.def->limits[0].at_limit, AT_LIMIT_COUNT); /* as the tenant says */
    assert_true(str_is(t.def->limits[1].path, "input.a"));
    assert_int_equal(t.def->limits[1].at_limit, AT_LIMIT_REJECT);
    end(&t);
    try_text(&t, TASK("'input':1"));
    assert_int_equal(t.def->limit_count, 0);
    end(&t);
}

static void the_definition_outlives_the_callers_value(void **state)
{
    (void)state;
    json_t *source = json_of(TASK("'input':{'deep':[1,2,3]}"));
    struct parsed_definition t;
    try_json(&t, source); /* frees it */
    assert_valid(&t);
    assert_int_equal(json_length(json_member(t.def->steps[0].input, STR("deep"))), 3);
    end(&t);
}

/* --- what this version cannot run --- */

static void the_first_part_that_cannot_run_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *sentence;
    } ROWS[] = {
        {"{'steps':[" A_TASK ",{'name':'b','type':'llm','prompt':'p'}]}",
         "/steps/1/type: steps of type \"llm\""},
        {STEP("'type':'llm','prompt':'p'"), "/steps/0/type: steps of type \"llm\""},
        {"{'concurrency':{'key':'k','limit':1},'timeout_s':1,'steps':[" A_TASK "]}",
         "/concurrency: limits whose key is more than a path into the input"},
        {LIMITS("[{'limit':1},{'key':'input.a','limit':1},{'key':'input.a + 1','limit':1}]"),
         "/concurrency: limits whose key is more than a path into the input"},
        {LIMITS("{'key':'${input.a}','limit':1}"),
         "/concurrency: limits whose key is more than a path into the input"},
        {"{'steps':[{'name':'a','timeout_ms':5,'when':'x','type':'llm','prompt':'p'}],'timeout_s':"
         "1}",
         "/steps/0/type: steps of type \"llm\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char wanted[256];
        (void)snprintf(wanted, sizeof(wanted), "%s are not supported by this version",
                       ROWS[i].sentence);
        struct parsed_definition t;
        try_text(&t, ROWS[i].text);
        assert_valid(&t);
        if (!str_is(t.def->unsupported, wanted))
            fail_msg("%s: %.*s", wanted, STR_ARG(t.def->unsupported));
        end(&t);
    }
}

static void what_can_run_is_not_unsupported(void **state)
{
    (void)state;
    static const char *const RUNS[] = {
        TASK("'on_error':'fail'"),
        TASK("'requires_approval':false"),
        TASK("'requires_approval':{'prompt':'${input.a}'}"),
        APPROVAL("'content':{'a':'${input.b}'}"),
        TASK("'input':{'${key}':'$ {x}','price':'$5 {'}"),
        TASK("'input':{'a':['$x',{'b/c':'is ${input.x}'}]}"),
        TASK("'when':'x','for_each':'input.list','timeout_ms':1,'retry':{},'on_error':'continue',"
             "'compensate':{'handler':'h'}"),
        "{'timeout_s':1,'steps':[" A_TASK "]}",
        HTTP("{'method':'GET','url':'https://a/${input.x}'}"),
        STEP("'type':'sleep','until':'${input.t}'"),
        STEP("'type':'wait_signal','signal':'paid'"),
        STEP("'type':'transform','output':'${input}'"),
        STEP("'type':'emit','event':'order.paid'"),
        STEP("'type':'workflow','workflow_id':'child'"),
        "{'description':'uses ${nothing}','input_schema':{'default':'${x}'},'steps':[" A_TASK "]}",
        STEP("'type':'sleep','until':'2030-01-01T00:00:00+02:00','needs':[]"),
        LIMITS("{'limit':1}"),
        LIMITS("{'key':'input','limit':1}"),
        LIMITS("[{'key':'input.customer.id','limit':1},{'limit':9},{'key':'input.list.0','limit':2}"
               "]"),
    };
    for (size_t i = 0; i < ARRAY_LEN(RUNS); i++) {
        struct parsed_definition t;
        try_text(&t, RUNS[i]);
        assert_valid(&t);
        if (t.def->unsupported.len != 0)
            fail_msg("%s: %.*s", RUNS[i], STR_ARG(t.def->unsupported));
        end(&t);
    }
}

static void every_step_type_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STEP_TYPE_COUNT; i++) {
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(step_type_name((enum step_type)i),
                                    step_type_name((enum step_type)k));
    }
    assert_string_equal(step_type_name(STEP_WAIT_SIGNAL), "wait_signal");
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    definition_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_contracts_example_is_valid_and_runs),
        cmocka_unit_test(a_task_gets_its_queue_handler_and_input),
        cmocka_unit_test(a_null_input_is_an_input),
        cmocka_unit_test(a_sleep_has_a_duration_or_a_time),
        cmocka_unit_test(without_needs_steps_run_in_the_order_written),
        cmocka_unit_test(with_needs_anywhere_the_others_start_at_once),
        cmocka_unit_test(a_step_is_found_by_its_name),
        cmocka_unit_test(every_type_is_accepted_with_all_its_members),
        cmocka_unit_test(limits_get_their_path_number_and_policy),
        cmocka_unit_test(the_definition_outlives_the_callers_value),
        cmocka_unit_test(the_first_part_that_cannot_run_is_named),
        cmocka_unit_test(what_can_run_is_not_unsupported),
        cmocka_unit_test(every_step_type_has_a_name_of_its_own),
        cmocka_unit_test(freeing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
