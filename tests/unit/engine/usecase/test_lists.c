/* Every list: page by page to its end, and what it refuses. */
#include "engine/usecase/asking.h"

/* The input of a list, made for a cursor (ptr NULL: the first page). */
union page_input {
    struct list_runs_input runs;
    struct list_dead_input dead;
    struct list_queues_input queues;
    struct list_approvals_input approvals;
    struct list_input plain;
    struct list_of_entity_input of_entity;
    struct list_entities_input entities;
    struct list_settings_input settings;
    struct list_deliveries_input deliveries;
    struct list_audit_input audit;
    struct list_outbox_input outbox;
};

static struct uuid HOOK; /* a webhook with deliveries */

static void runs_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->runs = (struct list_runs_input){.statuses = RUN_ANY_STATUS,
                                        .created_after = -1,
                                        .created_before = -1,
                                        .limit = limit,
                                        .cursor = cursor};
}

static void dead_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->dead = (struct list_dead_input){limit, cursor};
}

static void queues_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->queues = (struct list_queues_input){false, limit, cursor};
}

static void approvals_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->approvals = (struct list_approvals_input){APPROVAL_STATUS_COUNT, false, limit, cursor};
}

static void plain_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->plain = (struct list_input){.parent = STR("w"), .cursor = cursor, .limit = limit};
}

static void of_entity_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->of_entity = (struct list_of_entity_input){COUNTER, STR("a"), cursor, limit};
}

/* The api hands over what the cursor stands for: here one letter, as hex. */
static void entities_page(union page_input *in, struct str cursor, int64_t limit)
{
    static const char *const LETTERS[] = {"a", "b", "c"};
    if (cursor.ptr != NULL) {
        assert_int_equal(cursor.len, 2);
        cursor = str_of(LETTERS[cursor.ptr[1] - '1']);
    }
    in->entities = (struct list_entities_input){COUNTER, -1, cursor, limit};
}

static void settings_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->settings = (struct list_settings_input){STR("acme"), cursor, limit};
}

static void deliveries_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->deliveries = (struct list_deliveries_input){HOOK, cursor, limit};
}

static void audit_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->audit = (struct list_audit_input){.limit = limit, .cursor = cursor};
}

static void newest_audit_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->audit = (struct list_audit_input){.newest_first = true, .limit = limit, .cursor = cursor};
}

static void outbox_page(union page_input *in, struct str cursor, int64_t limit)
{
    in->outbox = (struct list_outbox_input){
        .bus = "fake", .status = "ok", .detail = "", .cursor = cursor, .limit = limit};
}

static const struct {
    const struct use_case *use_case;
    void (*page)(union page_input *in, struct str cursor, int64_t limit);
    size_t items;           /* in the world below */
    const char *bad_cursor; /* NULL: any text is a place */
    bool of_server;         /* of all tenants: it asks for none */
} LISTS[] = {
    {&UC_LIST_RUNS, runs_page, 7, "x", false},
    {&UC_LIST_RUNS, runs_page, 7, "-1", false},
    {&UC_LIST_DEAD, dead_page, 3, "1.2", false},
    {&UC_LIST_QUEUES, queues_page, 3, "no name!", false},
    {&UC_LIST_WORKERS, dead_page, 3, "0", false},
    {&UC_LIST_WORKERS, dead_page, 3, "zz", false},
    {&UC_LIST_WORKERS, dead_page, 3, "7z", false},
    {&UC_LIST_APPROVALS, approvals_page, 2, "x", false},
    {&UC_LIST_ENTITY_TYPES, plain_page, 1, NULL, false},
    {&UC_LIST_ENTITY_EVENTS, of_entity_page, 0, "x", false},
    {&UC_LIST_GENERATIONS, of_entity_page, 0, "x", false},
    {&UC_LIST_ENTITIES, entities_page, 3, NULL, false},
    {&UC_LIST_WORKFLOWS, plain_page, 3, NULL, false},
    {&UC_LIST_VERSIONS, plain_page, 2, "x", false},
    {&UC_LIST_VERSIONS, plain_page, 2, "0", false},
    {&UC_LIST_SCHEDULES, plain_page, 2, NULL, false},
    {&UC_LIST_WEBHOOKS, plain_page, 2, NULL, false},
    {&UC_LIST_DELIVERIES, deliveries_page, 0, "x", false},
    {&UC_LIST_TENANTS, plain_page, 1, NULL, true},
    {&UC_LIST_SETTINGS, settings_page, 2, "x", false},
    {&UC_LIST_SETTINGS, settings_page, 2, "-1", false},
    {&UC_LIST_KEYS, plain_page, 2, "x", false},
    {&UC_LIST_AUDIT, audit_page, 0, "x", false},
    {&UC_LIST_AUDIT, newest_audit_page, 0, "-1", false},
    {&UC_LIST_OUTBOX, outbox_page, 0, "1.2.x", false},
};

/* --- the world --- */

static void put_hook(struct fixture *fixture)
{
    struct put_webhook_input in = {.url = STR("http://127.0.0.1:9/x"), .events = STR("*")};
    json_t *made = answer_of(fixture, &UC_CREATE_WEBHOOK, &in);
    HOOK = id_in(made, "id");
    json_decref(made);
}

static void put_schedule(struct fixture *fixture, const char *id)
{
    struct put_schedule_input in = {.id = str_of(id),
                                    .workflow_id = STR("w"),
                                    .cron = STR("0 3 * * *"),
                                    .timezone = STR("UTC"),
                                    .input = STR("null"),
                                    .paused = true};
    must_do(fixture, &UC_PUT_SCHEDULE, &in);
}

static void put_key(struct fixture *fixture, const char *label)
{
    struct create_key_input in = {STR("acme"), ROLE_WORKER, str_of(label)};
    must_do(fixture, &UC_CREATE_KEY, &in);
}

static void claim_from(struct fixture *fixture, const char *worker, const char *queue)
{
    struct call c;
    claim_init(&c, fixture, worker, 60000);
    c.queue = str_of(queue);
    must_perform(&c);
    call_release(&c);
}

static void make_world(struct fixture *fixture)
{
    put_tenant(fixture, "{'max_concurrent_runs':1000}");
    put_hook(fixture);
    put_hook(fixture);
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'a','type':'task','handler':'h','retry':{'max_attempts':1}}]}");
    put_workflow(fixture, "ask", "{'steps':[{'name':'q','type':'approval','prompt':'ok?'}]}");
    put_workflow(fixture, "other",
                 "{'steps':[{'name':'b','type':'task','handler':'h','queue':'side'}]}");
    for (int i = 0; i < 3; i++) {
        (void)start(fixture, "w");
        work_badly(fixture, "a");
    }
    (void)start(fixture, "ask");
    (void)start(fixture, "ask");
    (void)start(fixture, "other");
    (void)start(fixture, "w");
    claim_from(fixture, "one", "default");
    claim_from(fixture, "two", "empty");
    put_schedule(fixture, "s1");
    put_schedule(fixture, "s2");
    put_key(fixture, "k1");
    put_key(fixture, "k2");
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)must_send(fixture, "b", NULL, 2);
    (void)must_send(fixture, "c", NULL, 3);
    put_tenant(fixture, "{'max_concurrent_runs':999}");
    settle(fixture);
}

/* --- what every list does --- */

static void every_list_comes_to_its_end_page_by_page(void **state)
{
    struct fixture *fixture = *state;
    make_world(fixture);
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        union page_input in;
        LISTS[i].page(&in, STR_NONE, 100);
        struct asked whole = ask_as(fixture, "acme", true, LISTS[i].use_case, &in);
        assert_int_equal(whole.err, ERR_OK);
        size_t count = items_in(whole.body);
        if (LISTS[i].items > 0 && count != LISTS[i].items)
            fail_msg("%s has %zu items", LISTS[i].use_case->name, count);
        char cursor[CURSOR_MAX] = "";
        size_t seen = 0;
        for (size_t pages = 0; pages == 0 || cursor[0] != '\0'; pages++) {
            assert_true(pages <= count + 1);
            LISTS[i].page(&in, pages == 0 ? STR_NONE : str_of(cursor), 1);
            struct asked page = ask_as(fixture, "acme", true, LISTS[i].use_case, &in);
            assert_int_equal(page.err, ERR_OK);
            const json_t *item = json_array_get(json_object_get(page.body, "items"), 0);
            const json_t *same = json_array_get(json_object_get(whole.body, "items"), seen);
            if (item != NULL && !json_equal(item, same))
                fail_msg("%s: item %zu differs", LISTS[i].use_case->name, seen);
            seen += items_in(page.body);
            memcpy(cursor, page.next_cursor, sizeof(cursor));
            asked_release(&page);
        }
        assert_int_equal(seen, count);
        asked_release(&whole);
    }
}

static void a_cursor_of_another_list_is_refused(void **state)
{
    struct fixture *fixture = *state;
    make_world(fixture);
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        union page_input in;
        if (LISTS[i].bad_cursor == NULL)
            continue;
        LISTS[i].page(&in, str_of(LISTS[i].bad_cursor), 10);
        assert_refuses(fixture, LISTS[i].use_case, &in, ERR_CURSOR_INVALID);
    }
}

static void a_list_of_nobody_is_refused(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        union page_input in;
        LISTS[i].page(&in, STR_NONE, 10);
        struct asked a = ask_as(fixture, "nobody", false, LISTS[i].use_case, &in);
        if (a.err != (LISTS[i].of_server ? ERR_OK : ERR_TENANT_NOT_FOUND))
            fail_msg("%s: %s", LISTS[i].use_case->name, err_code(a.err));
        asked_release(&a);
    }
}

/* With --dev a tenant exists as soon as it is named: it has nothing yet. */
static void a_tenant_that_is_not_stored_has_nothing(void **state)
{
    static const struct use_case *const LISTED[] = {&UC_LIST_KEYS, &UC_LIST_WORKFLOWS,
                                                    &UC_LIST_SCHEDULES, &UC_LIST_WEBHOOKS,
                                                    &UC_LIST_ENTITY_TYPES};
    struct fixture *fixture = *state;
    make_world(fixture);
    for (size_t i = 0; i < ARRAY_LEN(LISTED); i++) {
        struct list_input in = {.limit = 10};
        struct asked a = ask_as(fixture, "fresh", true, LISTED[i], &in);
        assert_int_equal(a.err, ERR_OK);
        assert_int_equal(items_in(a.body), 0);
        asked_release(&a);
    }
    struct list_audit_input audit = {.limit = 10};
    struct asked a = ask_as(fixture, "fresh", true, &UC_LIST_AUDIT, &audit);
    assert_int_equal(items_in(a.body), 0);
    asked_release(&a);
}

static void runs_are_found_by_their_status_workflow_label_and_time(void **state)
{
    struct fixture *fixture = *state;
    make_world(fixture);
    struct list_runs_input all = {
        .statuses = RUN_ANY_STATUS, .created_after = -1, .created_before = -1, .limit = 50};
    struct list_runs_input in = all;
    in.statuses = run_status_bit(RUN_FAILED);
    json_t *failed = answer_of(fixture, &UC_LIST_RUNS, &in);
    assert_int_equal(items_in(failed), 3);
    json_decref(failed);
    in = all;
    in.workflow_id = STR("ask");
    json_t *asks = answer_of(fixture, &UC_LIST_RUNS, &in);
    assert_int_equal(items_in(asks), 2);
    json_decref(asks);
    in = all;
    in.label_name = STR("team");
    in.label_value = STR("red");
    json_t *red = answer_of(fixture, &UC_LIST_RUNS, &in);
    assert_int_equal(items_in(red), 0);
    json_decref(red);
    in = all;
    in.created_before = 1;
    json_t *old = answer_of(fixture, &UC_LIST_RUNS, &in);
    assert_int_equal(items_in(old), 0);
    json_decref(old);
}

static void the_same_settings_again_are_no_new_version(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':3}");
    put_tenant(fixture, "{'max_concurrent_runs':3}");
    put_tenant(fixture, "{'max_concurrent_runs':4}");
    struct list_settings_input in = {STR("acme"), STR_NONE, 10};
    json_t *page = answer_of(fixture, &UC_LIST_SETTINGS, &in);
    assert_int_equal(items_in(page), 2);
    json_decref(page);
    struct tenant_input tenant = {STR("acme")};
    assert_int_equal(number_in(answer_of(fixture, &UC_GET_TENANT, &tenant), "max_concurrent_runs"),
                     4);
    struct rollback_tenant_input back = {STR("acme"), -1};
    assert_int_equal(
        number_in(answer_of(fixture, &UC_ROLLBACK_TENANT, &back), "max_concurrent_runs"), 3);
    back.version = 77;
    assert_refuses(fixture, &UC_ROLLBACK_TENANT, &back, ERR_SETTINGS_NOT_FOUND);
}

/* Each has more than one item. */
static void a_short_page_says_that_there_is_more(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct list_events_input events = {start(fixture, "w"), 0, 1};
    put_tenant(fixture, "{}");
    struct json *no_settings = json_value_of_tree(json_object());
    struct put_tenant_input second = {STR("zeta"), no_settings};
    must_do(fixture, &UC_PUT_TENANT, &second);
    json_free(no_settings);
    struct list_input first = {.limit = 1};
    struct put_entity_type_input type = {.version = -1, .rules = entity_rules_default()};
    type.rules.queue = type.rules.handler = STR("q");
    static const char *const TYPES[] = {"a", "b"};
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        type.type = str_of(TYPES[i]);
        must_do(fixture, &UC_PUT_ENTITY_TYPE, &type);
    }
    static const struct use_case *const SHORT[] = {&UC_LIST_EVENTS, &UC_LIST_TENANTS,
                                                   &UC_LIST_ENTITY_TYPES};
    for (size_t i = 0; i < ARRAY_LEN(SHORT); i++) {
        const void *input = i == 0 ? (const void *)&events : &first;
        struct asked page = ask_as(fixture, "acme", true, SHORT[i], input);
        assert_int_equal(page.err, ERR_OK);
        assert_int_equal(items_in(page.body), 1);
        assert_true(page.next_cursor[0] != '\0');
        asked_release(&page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(every_list_comes_to_its_end_page_by_page),
        fixture_test(a_cursor_of_another_list_is_refused),
        fixture_test(a_list_of_nobody_is_refused),
        fixture_test(a_tenant_that_is_not_stored_has_nothing),
        fixture_test(runs_are_found_by_their_status_workflow_label_and_time),
        fixture_test(the_same_settings_again_are_no_new_version),
        fixture_test(a_short_page_says_that_there_is_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
