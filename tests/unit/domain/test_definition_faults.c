/* A workflow definition: every fault with its place, and bounds.
 * JSON in this file is written with ' for " to keep it readable. */
#include "domain/parsed_definition.h"

#include "domain/workflow/definition_fields.h"

/* --- faults of single members --- */

static void faults_of_the_whole_are_found(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"[]", "", "must be an object"},
        {"{}", "", "\"steps\" is missing"},
        {"{'steps':{}}", "/steps", "array of 1 to 500 steps"},
        {"{'steps':[]}", "/steps", "array of 1 to 500 steps"},
        {"{'steps':['x']}", "/steps/0", "must be an object"},
        {"{'id':'other','steps':[" A_TASK "]}", "/id", "must be \"refund\""},
        {"{'id':7,'steps':[" A_TASK "]}", "/id", "must be a name"},
        {"{'description':1,'steps':[" A_TASK "]}", "/description", "must be text"},
        {"{'labels':{},'steps':[" A_TASK "]}", "/labels", "unknown member \"labels\""},
        {"{'a/b~c':1,'steps':[" A_TASK "]}", "/a~1b~0c", "unknown member \"a/b~c\""},
        {"{'timeout_s':0,'steps':[" A_TASK "]}", "/timeout_s", "from 1 to 315360000"},
        {"{'timeout_s':315360001,'steps':[" A_TASK "]}", "/timeout_s", "from 1 to 315360000"},
        {"{'timeout_s':1.5,'steps':[" A_TASK "]}", "/timeout_s", "whole number"},
        {"{'timeout_s':null,'steps':[" A_TASK "]}", "/timeout_s", "whole number"},
        {"{'concurrency':1,'steps':[" A_TASK "]}", "/concurrency", "must be an object"},
        {LIMITS("null"), "/concurrency", "must be an object"},
        {LIMITS("[]"), "/concurrency", "array of 1 to 4"},
        {LIMITS("[{'limit':1},{'key':'a','limit':1},{'key':'b','limit':1},{'key':'c','limit':1},"
                "{'key':'d','limit':1}]"),
         "/concurrency", "array of 1 to 4"},
        {LIMITS("[{'key':'input.a','limit':1},{'limit':1},{'key':'input.a','limit':2}]"),
         "/concurrency/2", "has the same key as the limit at 0"},
        {LIMITS("[{'key':'input.a','limit':1},{'limit':1},{'limit':1}]"), "/concurrency/2",
         "has the same key as the limit at 1"},
        {LIMITS("[{'key':'input.a','limit':1},{'limit':0}]"), "/concurrency/1/limit", "from 1"},
        {LIMITS("[{'key':'input.a','limit':1},{'limit':1,'at_limit':'wait'}]"),
         "/concurrency/1/at_limit", "reject|queue|cancel_oldest|coalesce"},
        {LIMITS("[{'key':'input.a','limit':1},7]"), "/concurrency/1", "must be an object"},
        {LIMITS("{'key':null,'limit':1}"), "/concurrency/key", "text"},
        {LIMITS("{'key':'input.a','limit':1000001}"), "/concurrency/limit", "from 1"},
        {"{'concurrency':{'key':'k'},'steps':[" A_TASK "]}", "/concurrency",
         "\"limit\" is missing"},
        {"{'concurrency':{'key':'','limit':1},'steps':[" A_TASK "]}", "/concurrency/key", "text"},
        {"{'concurrency':{'key':'k','limit':0},'steps':[" A_TASK "]}", "/concurrency/limit",
         "from 1"},
        {"{'concurrency':{'key':'k','limit':1,'at_limit':'x'},'steps':[" A_TASK "]}",
         "/concurrency/at_limit", "reject|queue|cancel_oldest|coalesce"},
        {"{'concurrency':{'key':'k','limit':1,'x':1},'steps':[" A_TASK "]}", "/concurrency/x",
         "unknown member \"x\""},
        {SCHEMA("{'properties':{'a':{'$anchor':'x'}}}"), "/input_schema/properties/a/$anchor",
         "\"$anchor\" is not supported"},
        {SCHEMA("7"), "/input_schema", "must be a schema"},
    };
    assert_each_has_its_one_fault(ROWS, ARRAY_LEN(ROWS));
}

static void faults_of_any_step_are_found(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'steps':[{'type':'task','handler':'h'}]}", "/steps/0", "\"name\" is missing"},
        {"{'steps':[{'name':'a'}]}", "/steps/0", "\"type\" is missing"},
        {"{'steps':[{'name':'a b','type':'task','handler':'h'}]}", "/steps/0/name",
         "must be a name"},
        {"{'steps':[{'name':'','type':'task','handler':'h'}]}", "/steps/0/name", "must be a name"},
        {"{'steps':[{'name':7,'type':'task','handler':'h'}]}", "/steps/0/name", "must be a name"},
        {STEP("'type':'tusk'"), "/steps/0/type",
         "task, sleep, http, approval, wait_signal, transform, emit, workflow, llm"},
        {STEP("'type':3"), "/steps/0/type", "one of the step types"},
        {TASK("'color':1"), "/steps/0/color", "unknown member \"color\""},
        {TASK("'needs':'b'"), "/steps/0/needs", "must be an array"},
        {TASK("'needs':[1]"), "/steps/0/needs/0", "must be text"},
        {TASK("'when':''"), "/steps/0/when", "must be text"},
        {TASK("'when':true"), "/steps/0/when", "must be text"},
        {TASK("'for_each':3"), "/steps/0/for_each", "must be text"},
        {TASK("'for_each':{}"), "/steps/0/for_each", "must be text"},
        {TASK("'max_parallel':3"), "/steps/0/max_parallel", "without \"for_each\""},
        {TASK("'for_each':'x','max_parallel':0"), "/steps/0/max_parallel", "from 1 to 10000"},
        {TASK("'for_each':'x','max_parallel':10001"), "/steps/0/max_parallel", "from 1 to 10000"},
        {TASK("'timeout_ms':0"), "/steps/0/timeout_ms", "from 1"},
        {TASK("'timeout_ms':'1s'"), "/steps/0/timeout_ms", "whole number"},
        {TASK("'on_error':1"), "/steps/0/on_error", "must be a name"},
        {TASK("'on_error':'nobody'"), "/steps/0/on_error", "there is no step \"nobody\""},
        {TASK("'on_error':'a'"), "/steps/0/on_error", "its own error"},
        {TASK("'retry':3"), "/steps/0/retry", "must be an object"},
        {TASK("'retry':{'max_attempts':0}"), "/steps/0/retry/max_attempts", "from 1 to 1000"},
        {TASK("'retry':{'max_attempts':1001}"), "/steps/0/retry/max_attempts", "from 1 to 1000"},
        {TASK("'retry':{'backoff_ms':-1}"), "/steps/0/retry/backoff_ms", "from 0 to 86400000"},
        {TASK("'retry':{'max_backoff_ms':86400001}"), "/steps/0/retry/max_backoff_ms", "86400000"},
        {TASK("'retry':{'multiplier':0.5}"), "/steps/0/retry/multiplier", "from 1 to 100"},
        {TASK("'retry':{'multiplier':'2'}"), "/steps/0/retry/multiplier", "must be a number"},
        {TASK("'retry':{'jitter':'some'}"), "/steps/0/retry/jitter",
         "none|full|equal|decorrelated"},
        {TASK("'retry':{'jitter':'ful'}"), "/steps/0/retry/jitter", "must be one of"},
        {TASK("'retry':{'non_retryable':['A','A']}"), "/steps/0/retry/non_retryable/1", "twice"},
        {TASK("'retry':{'retries':1}"), "/steps/0/retry/retries", "unknown member \"retries\""},
    };
    assert_each_has_its_one_fault(ROWS, ARRAY_LEN(ROWS));
}

static void faults_of_each_type_are_found(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {STEP("'type':'task'"), "/steps/0", "\"handler\" is missing"},
        {STEP("'type':'task','handler':'a b'"), "/steps/0/handler", "must be a name"},
        {TASK("'queue':''"), "/steps/0/queue", "must be a name"},
        {TASK("'queue':'pawl:http'"), "/steps/0/queue", "pawl's own queues"},
        {TASK("'compensate':{'handler':'u','queue':'pawl:x'}"), "/steps/0/compensate/queue",
         "pawl's own queues"},
        {TASK("'requires_approval':'yes'"), "/steps/0/requires_approval",
         "true, false or an object"},
        {TASK("'requires_approval':{'votes':1}"), "/steps/0/requires_approval/votes",
         "unknown member"},
        {TASK("'compensate':{}"), "/steps/0/compensate", "\"handler\" is missing"},
        {TASK("'compensate':'undo'"), "/steps/0/compensate", "must be an object"},
        {TASK("'compensate':{'handler':'h','retry':{}}"), "/steps/0/compensate/retry",
         "unknown member"},
        {STEP("'type':'http'"), "/steps/0", "\"request\" is missing"},
        {HTTP("'GET /'"), "/steps/0/request", "must be an object"},
        {HTTP("{'method':'GET'}"), "/steps/0/request", "\"url\" is missing"},
        {HTTP("{'url':'http://a'}"), "/steps/0/request", "\"method\" is missing"},
        {HTTP("{'method':'BREW','url':'http://a'}"), "/steps/0/request/method", "GET|HEAD|POST"},
        {HTTP("{'method':'GET','url':'ftp://a'}"), "/steps/0/request/url", "begins with http://"},
        {HTTP("{'method':'GET','url':'http://'}"), "/steps/0/request/url", "begins with http://"},
        {HTTP("{'method':'GET','url':'http://a b'}"), "/steps/0/request/url", "no spaces"},
        {HTTP("{'method':'GET','url':'http://a\\nb'}"), "/steps/0/request/url", "no spaces"},
        {HTTP("{'method':'GET','url':3}"), "/steps/0/request/url", "must be text"},
        {HTTP("{'method':'GET','url':'http://a','headers':[]}"), "/steps/0/request/headers",
         "object"},
        {HTTP("{'method':'GET','url':'http://a','headers':{'a':1}}"), "/steps/0/request/headers/a",
         "must be text"},
        {HTTP("{'method':'GET','url':'http://a','headers':{'a':'b\\r\\nc: d'}}"),
         "/steps/0/request/headers/a", "line breaks"},
        {HTTP("{'method':'GET','url':'http://a','headers':{'a b':'c'}}"),
         "/steps/0/request/headers/a b", "name of a header"},
        {STEP("'type':'approval'"), "/steps/0", "\"prompt\" is missing"},
        {STEP("'type':'approval','prompt':''"), "/steps/0/prompt", "must be text"},
        {APPROVAL("'approvers':2"), "/steps/0/approvers", "must be an object"},
        {APPROVAL("'approvers':{'count':0}"), "/steps/0/approvers/count", "from 1 to 100"},
        {APPROVAL("'approvers':{'count':101}"), "/steps/0/approvers/count", "from 1 to 100"},
        {APPROVAL("'approvers':{'forbid_requester':1}"), "/steps/0/approvers/forbid_requester",
         "true or false"},
        {APPROVAL("'approvers':{'roles':'ops'}"), "/steps/0/approvers/roles", "must be an array"},
        {APPROVAL("'approvers':{'roles':['ops']}"), "/steps/0/approvers/roles/0", "may decide"},
        {APPROVAL("'approvers':{'roles':['admin','viewer']}"), "/steps/0/approvers/roles/1",
         "may decide"},
        {APPROVAL("'approvers':{'count':2,'users':['u']}"), "/steps/0/approvers",
         "larger than the number"},
        {APPROVAL("'remind_every_s':0"), "/steps/0/remind_every_s", "whole number"},
        {APPROVAL("'approvers':{'users':['u']},'escalation':{'after_s':1}"), "/steps/0/escalation",
         "\"approvers\" is missing"},
        {APPROVAL("'approvers':{'users':['u']},'escalation':{'after_s':5,'approvers':{}}"),
         "/steps/0/escalation/approvers", "must name"},
        {APPROVAL("'approvers':{'users':['u']},'expires_s':5,"
                  "'escalation':{'after_s':5,'approvers':{'users':['v']}}"),
         "/steps/0/escalation", "less than"},
        {APPROVAL("'escalation':{'after_s':5,'approvers':{'users':['v']}}"), "/steps/0/escalation",
         "while anyone may decide"},
        {TASK("'requires_approval':{'expires_s':5,'approvers':{'roles':['approver']},"
              "'escalation':{'after_s':6,'approvers':{'users':['v']}}}"),
         "/steps/0/requires_approval/escalation", "less than"},
        {TASK("'requires_approval':{'prompt':'${1 +}'}"), "/steps/0/requires_approval/prompt",
         "not a valid"},
        {TASK("'requires_approval':{'content':{'a':'${1 +}'}}"),
         "/steps/0/requires_approval/content/a", "not a valid expression"},
        {APPROVAL("'approvers':{'users':['']}"), "/steps/0/approvers/users/0", "must be text"},
        {APPROVAL("'approvers':{'all':true}"), "/steps/0/approvers/all", "unknown member"},
        {APPROVAL("'expires_s':0"), "/steps/0/expires_s", "from 1"},
        {APPROVAL("'on_expire':'shrug'"), "/steps/0/on_expire", "reject|approve|fail"},
        {STEP("'type':'sleep'"), "/steps/0", "and has neither"},
        {STEP("'type':'sleep','duration_ms':1,'until':'2030-01-01T00:00:00Z'"), "/steps/0",
         "not both"},
        {STEP("'type':'sleep','duration_ms':-1"), "/steps/0/duration_ms", "from 0 to 316224000000"},
        {STEP("'type':'sleep','duration_ms':316224000001"), "/steps/0/duration_ms", "316224000000"},
        {STEP("'type':'sleep','until':'tomorrow'"), "/steps/0/until", "must be a time"},
        {STEP("'type':'sleep','until':1"), "/steps/0/until", "must be text"},
        {STEP("'type':'wait_signal'"), "/steps/0", "\"signal\" is missing"},
        {STEP("'type':'wait_signal','signal':''"), "/steps/0/signal", "must be text"},
        {STEP("'type':'wait_signal','signal':[]"), "/steps/0/signal", "array of 1 to 100"},
        {STEP("'type':'wait_signal','signal':['a',1]"), "/steps/0/signal/1", "must be text"},
        {STEP("'type':'wait_signal','signal':['a','b','a']"), "/steps/0/signal/2", "listed twice"},
        {STEP("'type':'wait_signal','signal':['a'],'wait_for':'any'"), "/steps/0/wait_for",
         "must be one of first|all"},
        {STEP("'type':'wait_signal','signal':'a','wait_for':'all'"), "/steps/0/wait_for",
         "needs an array"},
        {STEP("'type':'sleep','duration_ms':1,'wait_for':'all'"), "/steps/0/wait_for",
         "is for steps of type wait_signal"},
        {"{'signals':1,'steps':[" A_TASK "]}", "/signals", "must be an object"},
        {"{'signals':{'window':1},'steps':[" A_TASK "]}", "/signals/window", "unknown member"},
        {"{'signals':{'dedup_window_s':0},'steps':[" A_TASK "]}", "/signals/dedup_window_s",
         "from 1 to 31536000"},
        {"{'signals':{'dedup_max_keys':1000001},'steps':[" A_TASK "]}", "/signals/dedup_max_keys",
         "from 1 to 1000000"},
        {STEP("'type':'transform'"), "/steps/0", "\"output\" is missing"},
        {STEP("'type':'emit'"), "/steps/0", "\"event\" is missing"},
        {STEP("'type':'emit','event':'a b'"), "/steps/0/event", "must be a name"},
        {STEP("'type':'emit','event':'run.succeeded'"), "/steps/0/event", "pawl's own events"},
        {STEP("'type':'workflow'"), "/steps/0", "\"workflow_id\" is missing"},
        {STEP("'type':'workflow','workflow_id':'a/b'"), "/steps/0/workflow_id", "must be a name"},
        {STEP("'type':'workflow','workflow_id':'w','version':0"), "/steps/0/version", "from 1"},
        {STEP("'type':'llm'"), "/steps/0", "\"prompt\" is missing"},
        {STEP("'type':'llm','prompt':'p','model':1"), "/steps/0/model", "must be text"},
    };
    assert_each_has_its_one_fault(ROWS, ARRAY_LEN(ROWS));
}

static void a_member_of_another_type_is_refused_with_the_type_it_belongs_to(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {TASK("'prompt':'p'"), "/steps/0/prompt",
         "\"prompt\" is for steps of type approval, llm, not task"},
        {APPROVAL("'requires_approval':true"), "/steps/0/requires_approval", "of type task, not"},
        {APPROVAL("'compensate':{'handler':'h'}"), "/steps/0/compensate",
         "of type task, http, workflow, not approval"},
        {STEP("'type':'sleep','duration_ms':1,'input':{}"), "/steps/0/input",
         "of type task, workflow, llm, not sleep"},
        {TASK("'duration_ms':1"), "/steps/0/duration_ms", "of type sleep"},
        {HTTP("{'method':'GET','url':'http://a'},'queue':'q'"), "/steps/0/queue", "of type task"},
    };
    assert_each_has_its_one_fault(ROWS, ARRAY_LEN(ROWS));
}

static void a_step_of_unknown_type_is_not_blamed_for_its_members(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, STEP("'type':'x','prompt':'p','handler':'h','until':'nonsense'"));
    assert_int_equal(json_array_size(t.faults), 2);
    assert_fault(&t, "/steps/0/type", "must be one of");
    assert_fault(&t, "/steps/0/until", "must be a time");
    end(&t);
}

static void names_are_bounded(void **state)
{
    (void)state;
    for (int len = NAME_MAX_LEN; len <= NAME_MAX_LEN + 1; len++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       "{'steps':[{'name':'%0*d','type':'task','handler':'h'}]}", len, 0);
        struct parsed_definition t;
        try_text(&t, text);
        assert_int_equal(t.err == ERR_OK, len == NAME_MAX_LEN);
        end(&t);
    }
}

/* --- faults between steps --- */

#define SLEEP(name, rest) "{'name':'" name "','type':'sleep','duration_ms':1" rest "}"

static void references_must_be_to_other_steps_once(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'steps':[" SLEEP("a", "") "," SLEEP("b", "") "," SLEEP("a", "") "]}", "/steps/2/name",
         "\"a\" is already used by /steps/0"},
        {"{'steps':[" SLEEP("a", "") "," SLEEP("b", ",'needs':['a','c']") "]}", "/steps/1/needs/1",
         "there is no step \"c\""},
        {"{'steps':[" SLEEP("a", ",'needs':['a']") "]}", "/steps/0/needs/0", "cannot need itself"},
        {"{'steps':[" SLEEP("a", "") "," SLEEP("b", ",'needs':['a','a']") "]}", "/steps/1/needs/1",
         "\"a\" is listed twice"},
    };
    assert_each_has_its_one_fault(ROWS, ARRAY_LEN(ROWS));
}

static void a_cycle_is_reported_with_the_steps_in_it(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'steps':[" SLEEP("a", ",'needs':['b']") "," SLEEP("b", ",'needs':['a']") "]}",
         "/steps/0/needs", "\"a\" needs \"b\" needs \"a\""},
        {"{'steps':[" SLEEP("start", "") "," SLEEP("a", ",'needs':['start','c']") "," SLEEP(
             "b", ",'needs':['a']") "," SLEEP("c",
                                              ",'needs':['b']") "," SLEEP("after",
                                                                          ",'needs':['c']") "]}",
         "/steps/1/needs", "\"a\" needs \"c\" needs \"b\" needs \"a\""},
    };
    assert_each_has_its_one_fault(ROWS, ARRAY_LEN(ROWS));
}

static void two_cycles_are_two_faults(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t,
             "{'steps':[" SLEEP("a", ",'needs':['b']") "," SLEEP("b", ",'needs':['a']") "," SLEEP(
                 "c", ",'needs':['d','a']") "," SLEEP("d", ",'needs':['c']") "]}");
    assert_int_equal(json_array_size(t.faults), 2);
    assert_fault(&t, "/steps/0/needs", "\"a\" needs \"b\"");
    assert_fault(&t, "/steps/2/needs", "\"c\" needs \"d\"");
    end(&t);
}

static void a_diamond_is_no_cycle(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t,
             "{'steps':[" SLEEP("d", ",'needs':['b','c']") "," SLEEP(
                 "b", ",'needs':['a']") "," SLEEP("c", ",'needs':['a']") "," SLEEP("a", "") "]}");
    assert_valid(&t);
    end(&t);
}

static void faults_of_all_kinds_show_at_once(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_text(&t, "{'id':'x','colour':1,'input_schema':{'$anchor':'a'},'steps':["
                 "{'name':'a','type':'task','needs':['b']},"
                 "{'name':'b','type':'nap','needs':['a','zz']},"
                 "{'name':'b','type':'sleep','on_error':'nobody'}, 7]}");
    assert_int_equal(t.err, ERR_DEFINITION_INVALID);
    assert_fault(&t, "/id", "refund");
    assert_fault(&t, "/colour", "unknown member");
    assert_fault(&t, "/input_schema/$anchor", "\"$anchor\" is not supported");
    assert_fault(&t, "/steps/0", "\"handler\" is missing");
    assert_fault(&t, "/steps/1/type", "must be one of");
    assert_fault(&t, "/steps/1/needs/1", "no step \"zz\"");
    assert_fault(&t, "/steps/2", "and has neither");
    assert_fault(&t, "/steps/2/name", "already");
    assert_fault(&t, "/steps/2/on_error", "no step \"nobody\"");
    assert_fault(&t, "/steps/3", "must be an object");
    assert_fault(&t, "/steps/0/needs", "depend on each other");
    assert_int_equal(json_array_size(t.faults), 11);
    assert_string_equal(t.problem.detail, "The definition has 11 faults");
    end(&t);
}

static json_t *many_steps(int count)
{
    json_t *steps = json_array();
    for (int i = 0; i < count; i++) {
        json_t *step = json_pack("{s:o, s:s, s:i}", "name", json_sprintf("s%d", i), "type", "sleep",
                                 "duration_ms", 1);
        assert_int_equal(json_array_append_new(steps, step), 0);
    }
    return json_pack("{s:o}", "steps", steps);
}

static void steps_are_bounded(void **state)
{
    (void)state;
    struct parsed_definition t;
    try_json(&t, many_steps(STEPS_MAX));
    assert_valid(&t);
    end(&t);
    try_json(&t, many_steps(STEPS_MAX + 1));
    assert_int_equal(json_array_size(t.faults), 1);
    assert_fault(&t, "/steps", "array of 1 to 500");
    end(&t);
}

static void the_largest_graph_fits(void **state)
{
    (void)state;
    json_t *source = many_steps(STEPS_MAX);
    json_t *steps = json_object_get(source, "steps");
    for (size_t i = 1; i < STEPS_MAX; i++) {
        json_t *needs = json_array();
        for (size_t k = 0; k < i; k++)
            (void)json_array_append_new(needs, json_sprintf("s%zu", k));
        (void)json_object_set_new(json_array_get(steps, i), "needs", needs);
    }
    struct parsed_definition t;
    try_json(&t, json_deep_copy(source));
    assert_valid(&t);
    assert_int_equal(t.def->steps[STEPS_MAX - 1].need_count, STEPS_MAX - 1);
    end(&t);

    /* And the worst: everyone needs everyone. The arena holds it, the list of faults stays bounded.
     */
    for (size_t i = 0; i < STEPS_MAX; i++) {
        json_t *needs = json_array();
        for (size_t k = 0; k < STEPS_MAX; k++) {
            if (k != i)
                (void)json_array_append_new(needs, json_sprintf("s%zu", k));
        }
        (void)json_object_set_new(json_array_get(steps, i), "needs", needs);
    }
    try_json(&t, source);
    assert_int_equal(t.err, ERR_DEFINITION_INVALID);
    assert_in_range(json_array_size(t.faults), 1, DEFINITION_FAULTS_MAX);
    assert_string_equal(t.problem.detail, "The definition has at least 50 faults");
    end(&t);
}

static void a_long_cycle_is_cut_in_the_message(void **state)
{
    (void)state;
    json_t *source = many_steps(STEPS_MAX);
    json_t *steps = json_object_get(source, "steps");
    for (size_t i = 0; i < STEPS_MAX; i++)
        (void)json_object_set_new(json_array_get(steps, i), "needs",
                                  json_pack("[o]", json_sprintf("s%zu", (i + 1) % STEPS_MAX)));
    struct parsed_definition t;
    try_json(&t, source);
    assert_int_equal(json_array_size(t.faults), 1);
    assert_fault(&t, "/steps/0/needs", "\"s0\" needs \"s1\" needs");
    assert_fault(&t, "/steps/0/needs", "…");
    end(&t);
}

static void faults_stop_at_their_limit(void **state)
{
    (void)state;
    json_t *source = many_steps(STEPS_MAX);
    size_t i;
    json_t *step;
    json_array_foreach (json_object_get(source, "steps"), i, step)
        (void)json_object_set_new(step, "type", json_string("x"));
    struct parsed_definition t;
    try_json(&t, source);
    assert_int_equal(t.err, ERR_DEFINITION_INVALID);
    assert_int_equal(json_array_size(t.faults), DEFINITION_FAULTS_MAX);
    end(&t);
}

static void hostile_names_cannot_burst_the_list_of_faults(void **state)
{
    (void)state;
    json_t *source = many_steps(1);
    for (size_t i = 0; i < 60; i++) {
        /* Control characters grow sixfold when escaped; the ü shifts over the cut. */
        struct buf name;
        buf_init(&name, 4 * KIB);
        buf_printf(&name, "%0*zu", (int)(1 + i % 3), i);
        for (size_t k = 0; k < 1000; k++)
            buf_put(&name, i % 2 == 0 ? STR("\x01") : STR("ü"));
        assert_int_equal(json_object_set_new(source, name.ptr, json_true()), 0);
        buf_release(&name);
    }
    struct parsed_definition t;
    try_json(&t, source);
    assert_int_equal(t.err, ERR_DEFINITION_INVALID);
    assert_true(json_array_size(t.faults) > 0);
    assert_true(t.problem.faults.len <= (size_t)PROBLEM_FAULTS_MAX);
    end(&t);
}

/* --- questions --- */

static void faults_of_a_question_are_found(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'prompt':'p','content':{},'approvers':{'users':['a']},'expires_s':9,'remind_every_s':3,"
         "'escalation':{'after_s':5,'approvers':{'roles':['admin']}}}",
         NULL, NULL},
        {"{}", "", "\"prompt\" is missing"},
        {"{'prompt':1}", "/prompt", "must be text"},
        {"{'prompt':'p','on_expire':'fail'}", "/on_expire", "unknown member \"on_expire\""},
        {"{'prompt':'p','expires_s':0}", "/expires_s", "from 1"},
        {"{'prompt':'p','approvers':{'count':2,'users':['a']}}", "/approvers", "larger than"},
        {"{'prompt':'p','approvers':{'users':['a']},'expires_s':5,'escalation':{'after_s':5,"
         "'approvers':{'roles':['admin']}}}",
         "/escalation", "less than"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct buf out;
        struct fault_list faults;
        struct json *ask = json_value_of_tree(json_of(ROWS[i].text));
        buf_init(&out, 4 * KIB);
        fault_list_init(&faults, &out);
        definition_check_question(ask, &faults);
        fault_list_release(&faults);
        assert_int_equal(faults.count, ROWS[i].path != NULL);
        if (ROWS[i].path != NULL) {
            json_t *fault = json_loadb(out.ptr, out.len, 0, NULL);
            assert_string_equal(json_string_value(json_object_get(fault, "path")), ROWS[i].path);
            assert_non_null(
                strstr(json_string_value(json_object_get(fault, "message")), ROWS[i].words));
            json_decref(fault);
        }
        buf_release(&out);
        json_free(ask);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_of_the_whole_are_found),
        cmocka_unit_test(faults_of_a_question_are_found),
        cmocka_unit_test(faults_of_any_step_are_found),
        cmocka_unit_test(faults_of_each_type_are_found),
        cmocka_unit_test(a_member_of_another_type_is_refused_with_the_type_it_belongs_to),
        cmocka_unit_test(a_step_of_unknown_type_is_not_blamed_for_its_members),
        cmocka_unit_test(names_are_bounded),
        cmocka_unit_test(references_must_be_to_other_steps_once),
        cmocka_unit_test(a_cycle_is_reported_with_the_steps_in_it),
        cmocka_unit_test(two_cycles_are_two_faults),
        cmocka_unit_test(a_diamond_is_no_cycle),
        cmocka_unit_test(faults_of_all_kinds_show_at_once),
        cmocka_unit_test(steps_are_bounded),
        cmocka_unit_test(the_largest_graph_fits),
        cmocka_unit_test(a_long_cycle_is_cut_in_the_message),
        cmocka_unit_test(faults_stop_at_their_limit),
        cmocka_unit_test(hostile_names_cannot_burst_the_list_of_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
