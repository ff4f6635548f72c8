/* Workflows, schedules, types of entities and webhooks: put, changed, shown and removed. */
#include "engine/usecase/asking.h"

#include "store/outbox/deliveries.h"

/* --- workflows --- */

static void an_archived_workflow_starts_no_run_until_it_is_put_again(void **state)
{
    struct fixture *fixture = *state;
    struct workflow_input in = {STR("w"), -1};
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "w", ONE_TASK); /* the same is no new version */
    assert_int_equal(number_in(answer_of(fixture, &UC_GET_WORKFLOW, &in), "version"), 1);
    must_do(fixture, &UC_ARCHIVE_WORKFLOW, &in);
    must_do(fixture, &UC_ARCHIVE_WORKFLOW, &in); /* again */
    struct call c;
    start_init(&c, fixture, "w");
    assert_int_equal(perform(&c), ERR_WORKFLOW_NOT_FOUND);
    call_release(&c);
    put_workflow(fixture, "w", ONE_TASK); /* brings it back */
    (void)start(fixture, "w");
    assert_int_equal(number_in(answer_of(fixture, &UC_GET_WORKFLOW, &in), "latest_version"), 1);
    in.version = 1;
    must_do(fixture, &UC_GET_WORKFLOW, &in);
    in.version = 2;
    assert_refuses(fixture, &UC_GET_WORKFLOW, &in, ERR_WORKFLOW_NOT_FOUND);
}

static json_t *validate(struct fixture *fixture, const char *text)
{
    struct validate_workflow_input in = {STR("w"), str_of(text)};
    return answer_of(fixture, &UC_VALIDATE_WORKFLOW, &in);
}

static void a_definition_is_checked_without_being_kept(void **state)
{
    struct fixture *fixture = *state;
    json_t *good =
        validate(fixture, "{\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\"}]}");
    assert_true(json_is_true(json_object_get(good, "valid")));
    json_decref(good);
    json_t *bad = validate(fixture, "{\"steps\":[]}");
    assert_false(json_is_true(json_object_get(bad, "valid")));
    assert_true(json_array_size(json_object_get(bad, "errors")) > 0);
    json_decref(bad);
    json_t *later = validate(fixture, "{\"steps\":[{\"name\":\"a\",\"type\":\"llm\"}]}");
    assert_non_null(json_object_get(later, "warnings"));
    json_decref(later);
    struct validate_workflow_input in = {STR("w"), STR("{")};
    assert_refuses(fixture, &UC_VALIDATE_WORKFLOW, &in, ERR_JSON_INVALID);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM workflows"), 0);
}

static enum err start_input(struct fixture *fixture, const char *input)
{
    struct json *json = json_value_of_tree(json_of(input));
    struct buf text;
    buf_init(&text, MIB);
    json_write_plain(&text, json);
    struct call c;
    start_init(&c, fixture, "w");
    c.input.start.input = json;
    c.input.start.input_text = buf_str(&text);
    enum err e = perform(&c);
    call_release(&c);
    buf_release(&text);
    json_free(json);
    return e;
}

static void an_input_must_fit_the_schema(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'input_schema':{'type':'object','required':['a','b'],'properties':{'a':{'type':"
                 "'string'},'b':{'pattern':'(x+x+)+y'}}},'steps':[" TASK_STEP("s", "") "]}");
    assert_int_equal(start_input(fixture, "{'a':'1','b':'xxy'}"), ERR_OK);
    assert_int_equal(start_input(fixture, "{'a':1,'b':'xxy'}"), ERR_INPUT_INVALID);
    assert_int_equal(start_input(fixture, "{}"), ERR_INPUT_INVALID);
    struct call c;
    start_init(&c, fixture, "w"); /* none at all: null */
    assert_int_equal(perform(&c), ERR_INPUT_INVALID);
    call_release(&c);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
}

static void an_input_that_takes_too_long_to_check_is_refused(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'input_schema':{'type':'array','items':{'anyOf':[{'$ref':'#'},{'$ref':'#'}]}},"
                 "'steps':[" TASK_STEP("s", "") "]}");
    assert_int_equal(start_input(fixture, "[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]"),
                     ERR_INPUT_TOO_COMPLEX);
}

/* --- schedules --- */

static struct put_schedule_input nightly(void)
{
    return (struct put_schedule_input){.id = STR("s"),
                                       .workflow_id = STR("w"),
                                       .cron = STR("0 3 * * *"),
                                       .timezone = STR("Europe/Berlin"),
                                       .catch_up_ms = 1000,
                                       .input = STR("{\"n\":1}")};
}

static int64_t schedule_entries(struct fixture *fixture)
{
    return in_file(fixture, "SELECT count(*) FROM audit WHERE action = 'schedule.put'");
}

static void each_change_of_a_schedule_is_written_down(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "v", ONE_TASK);
    struct put_schedule_input in = nightly();
    must_do(fixture, &UC_PUT_SCHEDULE, &in);
    must_do(fixture, &UC_PUT_SCHEDULE, &in); /* says the same */
    assert_int_equal(schedule_entries(fixture), 1);
    struct put_schedule_input changed[7];
    for (size_t i = 0; i < ARRAY_LEN(changed); i++)
        changed[i] = nightly();
    changed[0].workflow_id = STR("v");
    changed[1].cron = STR("0 4 * * *");
    changed[2].timezone = STR("UTC");
    changed[3].input = STR("{\"n\":2}");
    changed[4].overlap = (enum overlap)(nightly().overlap + 1);
    changed[5].catch_up_ms = 2000;
    changed[6].paused = true;
    for (size_t i = 0; i < ARRAY_LEN(changed); i++) {
        must_do(fixture, &UC_PUT_SCHEDULE, &changed[i]);
        assert_int_equal(schedule_entries(fixture), 2 * (int64_t)i + 2);
        must_do(fixture, &UC_PUT_SCHEDULE, &in);
    }
    struct schedule_input one = {STR("s")};
    must_do(fixture, &UC_GET_SCHEDULE, &one);
    must_do(fixture, &UC_TRIGGER_SCHEDULE, &one);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    must_do(fixture, &UC_GET_SCHEDULE, &one);
    must_do(fixture, &UC_DELETE_SCHEDULE, &one);
    assert_refuses(fixture, &UC_DELETE_SCHEDULE, &one, ERR_SCHEDULE_NOT_FOUND);
}

static void a_schedule_that_cannot_be_is_refused(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct put_schedule_input in = nightly();
    in.cron = STR("0 0 30 2 *");
    assert_refuses(fixture, &UC_PUT_SCHEDULE, &in, ERR_FIELD_INVALID);
    in.cron = STR("often");
    assert_refuses(fixture, &UC_PUT_SCHEDULE, &in, ERR_FIELD_INVALID);
    in = nightly();
    in.timezone = STR("Nowhere/Land");
    assert_refuses(fixture, &UC_PUT_SCHEDULE, &in, ERR_FIELD_INVALID);
    struct workflow_input workflow = {STR("w"), -1};
    must_do(fixture, &UC_ARCHIVE_WORKFLOW, &workflow);
    in = nightly();
    assert_refuses(fixture, &UC_PUT_SCHEDULE, &in, ERR_WORKFLOW_NOT_FOUND);
}

static void a_trigger_that_meets_a_limit_is_refused(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct put_schedule_input in = nightly();
    must_do(fixture, &UC_PUT_SCHEDULE, &in);
    put_tenant(fixture, "{'max_concurrent_runs':0,'at_limit':'reject'}");
    struct schedule_input one = {STR("s")};
    assert_refuses(fixture, &UC_TRIGGER_SCHEDULE, &one, ERR_MAX_CONCURRENT_RUNS);
    put_tenant(fixture, "{'max_concurrent_runs':null}");
    tamper(fixture, "UPDATE schedules SET input = '{'");
    assert_refuses(fixture, &UC_TRIGGER_SCHEDULE, &one, ERR_DAMAGED);
}

/* --- types of entities --- */

static enum err put_type(struct fixture *fixture, int64_t version, struct entity_rules rules)
{
    struct put_entity_type_input in = {COUNTER, version, rules};
    return error_of(fixture, &UC_PUT_ENTITY_TYPE, &in);
}

static void every_rule_of_a_type_can_be_changed(void **state)
{
    struct fixture *fixture = *state;
    struct entity_rules rules = entity_rules_default();
    rules.queue = STR("default");
    rules.handler = STR("count");
    assert_int_equal(put_type(fixture, -1, rules), ERR_OK);
    struct entity_rules changed[11];
    for (size_t i = 0; i < ARRAY_LEN(changed); i++)
        changed[i] = rules;
    changed[0].queue = STR("other");
    changed[1].handler = STR("other");
    changed[2].dedup_window_ms += 1000;
    changed[3].dedup_max_keys++;
    changed[4].rollover_events++;
    changed[5].keep_generations++;
    changed[6].max_inbox++;
    changed[7].max_batch++;
    changed[8].max_attempts++;
    changed[9].backoff_ms++;
    changed[10].max_backoff_ms++;
    for (size_t i = 0; i < ARRAY_LEN(changed); i++) {
        int64_t before = in_file(fixture, "SELECT count(*) FROM audit");
        assert_int_equal(put_type(fixture, -1, changed[i]), ERR_OK);
        assert_int_equal(put_type(fixture, -1, changed[i]), ERR_OK); /* the same */
        assert_int_equal(in_file(fixture, "SELECT count(*) FROM audit"), before + 1);
        assert_int_equal(put_type(fixture, -1, rules), ERR_OK);
    }
    assert_int_equal(put_type(fixture, 5, rules), ERR_OK);
    assert_int_equal(put_type(fixture, 3, rules), ERR_VERSION_UNKNOWN);
    struct entity_type_input in = {COUNTER};
    json_t *shown = answer_of(fixture, &UC_GET_ENTITY_TYPE, &in);
    assert_int_equal(json_array_size(json_object_get(shown, "versions")), 2);
    assert_int_equal(number_in(shown, "version"), 5);
    tamper(fixture, "DELETE FROM entity_type_versions WHERE version = 5");
    assert_refuses(fixture, &UC_GET_ENTITY_TYPE, &in, ERR_INTERNAL);
}

/* --- webhooks --- */

static struct uuid create_hook(struct fixture *fixture)
{
    struct put_webhook_input in = {
        .url = STR("http://127.0.0.1:9/x"), .events = STR("*"), .description = STR("first")};
    json_t *made = answer_of(fixture, &UC_CREATE_WEBHOOK, &in);
    struct uuid id = id_in(made, "id");
    json_decref(made);
    return id;
}

static void a_webhook_is_changed_disabled_and_enabled(void **state)
{
    struct fixture *fixture = *state;
    struct put_webhook_input in = {.webhook_id = create_hook(fixture)};
    must_do(fixture, &UC_PUT_WEBHOOK, &in); /* nothing */
    in.url = STR("http://127.0.0.1:9/y");
    in.events = STR("run.created");
    in.description = STR("second");
    must_do(fixture, &UC_PUT_WEBHOOK, &in);
    struct webhook_input one = {in.webhook_id};
    assert_text_in(answer_of(fixture, &UC_GET_WEBHOOK, &one), "description", "second");
    for (int i = 0; i < 2; i++) {
        in.enabled = WEBHOOK_DISABLE;
        must_do(fixture, &UC_PUT_WEBHOOK, &in);
    }
    for (int i = 0; i < 2; i++) {
        in.enabled = WEBHOOK_ENABLE;
        must_do(fixture, &UC_PUT_WEBHOOK, &in);
    }
    in.url = STR("ftp://no");
    assert_refuses(fixture, &UC_PUT_WEBHOOK, &in, ERR_FIELD_INVALID);
    struct rotate_webhook_input rotate = {in.webhook_id, 60000};
    must_do(fixture, &UC_ROTATE_WEBHOOK, &rotate);
    rotate.keep_ms = 0;
    must_do(fixture, &UC_ROTATE_WEBHOOK, &rotate);
    must_do(fixture, &UC_DELETE_WEBHOOK, &one);
    assert_refuses(fixture, &UC_GET_WEBHOOK, &one, ERR_WEBHOOK_NOT_FOUND);
}

static void the_deliveries_of_a_webhook_are_listed_and_sent_again(void **state)
{
    struct fixture *fixture = *state;
    struct uuid hook = create_hook(fixture);
    struct webhook_input one = {hook};
    for (int i = 0; i < 3; i++)
        must_do(fixture, &UC_TEST_WEBHOOK, &one);
    struct list_deliveries_input list = {hook, STR_NONE, 2};
    struct asked page = ask_as(fixture, "acme", true, &UC_LIST_DELIVERIES, &list);
    assert_int_equal(items_in(page.body), 2);
    struct uuid id = id_in(json_array_get(json_object_get(page.body, "items"), 0), "id");
    list.cursor = str_of(page.next_cursor);
    struct asked rest = ask_as(fixture, "acme", true, &UC_LIST_DELIVERIES, &list);
    assert_int_equal(rest.err, ERR_OK);
    assert_int_equal(items_in(rest.body), 1);
    asked_release(&rest);
    asked_release(&page);
    struct delivery_input again = {hook, id};
    enum err e = error_of(fixture, &UC_REDELIVER, &again);
    assert_true(e == ERR_OK || e == ERR_STATUS_CONFLICT); /* it may be under way just now */
    again.delivery_id = (struct uuid){{1, 2, 3}};
    assert_refuses(fixture, &UC_REDELIVER, &again, ERR_DELIVERY_NOT_FOUND);
}

/* --- the outbox --- */

static void a_parked_message_is_listed_and_tried_again(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    tamper(
        fixture,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3)"
        " INSERT INTO parked (message_id, feed, seq, offer, tenant, run, type, reason, attempts,"
        " at, again) SELECT 'm' || i, i, 1, i % 2, 1, 1, 'run.created', 'odd', 3, 1700000000000, 0"
        " FROM n");
    struct list_outbox_input in = {.bus = NULL, .status = "none", .detail = "", .limit = 2};
    struct asked page = ask_as(fixture, "acme", true, &UC_LIST_OUTBOX, &in);
    assert_int_equal(items_in(page.body), 2);
    in.cursor = str_of(page.next_cursor);
    struct asked rest = ask_as(fixture, "*", true, &UC_LIST_OUTBOX, &in);
    assert_int_equal(items_in(rest.body), 1);
    asked_release(&rest);
    asked_release(&page);
    struct retry_parked_input again = {STR("m1")};
    must_do(fixture, &UC_RETRY_PARKED, &again);
    struct asked all = ask_as(fixture, "*", true, &UC_RETRY_PARKED, &again);
    assert_int_equal(all.err, ERR_OK);
    asked_release(&all);
    all = ask_as(fixture, "fresh", true, &UC_RETRY_PARKED, &again);
    assert_int_equal(all.err, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(an_archived_workflow_starts_no_run_until_it_is_put_again),
        fixture_test(a_definition_is_checked_without_being_kept),
        fixture_test(an_input_must_fit_the_schema),
        fixture_test(an_input_that_takes_too_long_to_check_is_refused),
        fixture_test(each_change_of_a_schedule_is_written_down),
        fixture_test(a_schedule_that_cannot_be_is_refused),
        fixture_test(a_trigger_that_meets_a_limit_is_refused),
        fixture_test(every_rule_of_a_type_can_be_changed),
        fixture_test(a_webhook_is_changed_disabled_and_enabled),
        fixture_test(the_deliveries_of_a_webhook_are_listed_and_sent_again),
        fixture_test(a_parked_message_is_listed_and_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
