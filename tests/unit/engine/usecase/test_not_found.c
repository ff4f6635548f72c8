/* What is asked about something that is not there, or by somebody of a tenant that is not. */
#include "engine/usecase/asking.h"

#include "domain/entity/dedup.h"

static const struct run_input RUN = {.run_id = {{0x01, 0x90, 7}}};
static const struct control_run_input CONTROL = {.run_id = {{0x01, 0x90, 7}}, .if_match = -1};
static const struct rerun_run_input RERUN = {.run_id = {{0x01, 0x90, 7}}, .if_match = -1};
static const struct get_job_input JOB = {{{0x01, 0x90, 7}}};
static const struct heartbeat_input BEAT = {.job_id = {{0x01, 0x90, 7}}, .lease_token = {"x", 1}};
static const struct finish_job_input FINISH = {
    .job_id = {{0x01, 0x90, 7}}, .lease_token = {"x", 1}, .output = {"1", 1}};
static const struct claim_job_input CLAIM = {
    .job_id = {{0x01, 0x90, 7}}, .claim = {.worker_id = {"w", 1}, .max = 1, .lease_ms = 1000}};
static const struct decide_input DECIDE = {.job_id = {{0x01, 0x90, 7}}};
static const struct entity_type_input TYPE = {{"none", 4}};
static const struct entity_input ENTITY = {{"none", 4}, {"a", 1}};
static const struct get_update_input UPDATE = {.type = {"none", 4}, .id = {"a", 1}, .seq = 1};
static const struct migrate_entity_input MIGRATE = {{"none", 4}, {"a", 1}, -1};
static const struct signal_entity_input SIGNAL = {
    .type = {"none", 4}, .id = {"a", 1}, .name = {"n", 1}, .payload = {"1", 1}};
static const struct signal_entity_input KEYED = {.type = {"none", 4},
                                                 .id = {"a", 1},
                                                 .name = {"n", 1},
                                                 .payload = {"1", 1},
                                                 .dedup_key = {"k", 1}};
static const struct list_of_entity_input OF_ENTITY = {{"none", 4}, {"a", 1}, {NULL, 0}, 10};
static const struct list_entities_input ENTITIES = {{"none", 4}, -1, {NULL, 0}, 10};
static const struct workflow_input WORKFLOW = {{"none", 4}, -1};
static const struct list_input VERSIONS = {.parent = {"none", 4}, .limit = 10};
static const struct schedule_input SCHEDULE = {{"none", 4}};
static const struct webhook_input HOOK = {{{0x01, 0x90, 7}}};
static const struct put_webhook_input CHANGED_HOOK = {.webhook_id = {{0x01, 0x90, 7}}};
static const struct rotate_webhook_input ROTATE = {{{0x01, 0x90, 7}}, 1000};
static const struct list_deliveries_input DELIVERIES = {{{0x01, 0x90, 7}}, {NULL, 0}, 10};
static const struct delivery_input DELIVERY = {{{0x01, 0x90, 7}}, {{0x01, 0x90, 8}}};
static const struct tenant_input TENANT = {{"none", 4}};
static const struct list_settings_input SETTINGS = {{"none", 4}, {NULL, 0}, 10};
static const struct rollback_tenant_input ROLLBACK = {{"none", 4}, -1};
static const struct key_input KEY = {{{0x01, 0x90, 7}}};
static const struct idem_input IDEM = {{"none", 4}};
static const struct retry_parked_input PARKED = {{"none", 4}};
static const struct list_events_input EVENTS = {{{0x01, 0x90, 7}}, 0, 10};
static const struct signal_run_input SIGNAL_RUN = {
    .run_id = {{0x01, 0x90, 7}}, .if_match = -1, .name = {"n", 1}, .payload = {"1", 1}};
static const struct start_run_input START = {.workflow_id = {"none", 4},
                                             .input_text = {"null", 4},
                                             .labels = {"{}", 2},
                                             .at_limit = AT_LIMIT_COUNT,
                                             .start_at = -1};
static const struct put_schedule_input PUT_SCHEDULE = {.id = {"s", 1},
                                                       .workflow_id = {"none", 4},
                                                       .cron = {"0 3 * * *", 9},
                                                       .timezone = {"UTC", 3},
                                                       .input = {"null", 4}};

static const struct {
    const struct use_case *use_case;
    const void *input;
    enum err err;
} MISSING[] = {
    {&UC_START_RUN, &START, ERR_WORKFLOW_NOT_FOUND},
    {&UC_GET_RUN, &RUN, ERR_RUN_NOT_FOUND},
    {&UC_WHY_RUN, &RUN, ERR_RUN_NOT_FOUND},
    {&UC_CONTROL_RUN, &CONTROL, ERR_RUN_NOT_FOUND},
    {&UC_RERUN_RUN, &RERUN, ERR_RUN_NOT_FOUND},
    {&UC_SIGNAL_RUN, &SIGNAL_RUN, ERR_RUN_NOT_FOUND},
    {&UC_LIST_EVENTS, &EVENTS, ERR_RUN_NOT_FOUND},
    {&UC_CLAIM_JOB, &CLAIM, ERR_JOB_NOT_FOUND},
    {&UC_FINISH_JOB, &FINISH, ERR_JOB_NOT_FOUND},
    {&UC_HEARTBEAT, &BEAT, ERR_JOB_NOT_FOUND},
    {&UC_RELEASE_JOB, &BEAT, ERR_JOB_NOT_FOUND},
    {&UC_GET_JOB, &JOB, ERR_JOB_NOT_FOUND},
    {&UC_RETRY_DEAD, &JOB, ERR_JOB_NOT_FOUND},
    {&UC_DROP_DEAD, &JOB, ERR_JOB_NOT_FOUND},
    {&UC_GET_APPROVAL, &JOB, ERR_APPROVAL_NOT_FOUND},
    {&UC_APPROVE, &DECIDE, ERR_APPROVAL_NOT_FOUND},
    {&UC_REJECT, &DECIDE, ERR_APPROVAL_NOT_FOUND},
    {&UC_GET_ENTITY_TYPE, &TYPE, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_ENTITY_STATS, &TYPE, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_SIGNAL_ENTITY, &SIGNAL, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_UPDATE_ENTITY, &KEYED, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_GET_ENTITY, &ENTITY, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_DELETE_ENTITY, &ENTITY, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_GET_UPDATE, &UPDATE, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_MIGRATE_ENTITY, &MIGRATE, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_LIST_ENTITY_EVENTS, &OF_ENTITY, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_LIST_GENERATIONS, &OF_ENTITY, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_LIST_ENTITIES, &ENTITIES, ERR_ENTITY_TYPE_NOT_FOUND},
    {&UC_GET_WORKFLOW, &WORKFLOW, ERR_WORKFLOW_NOT_FOUND},
    {&UC_ARCHIVE_WORKFLOW, &WORKFLOW, ERR_WORKFLOW_NOT_FOUND},
    {&UC_LIST_VERSIONS, &VERSIONS, ERR_WORKFLOW_NOT_FOUND},
    {&UC_PUT_SCHEDULE, &PUT_SCHEDULE, ERR_WORKFLOW_NOT_FOUND},
    {&UC_GET_SCHEDULE, &SCHEDULE, ERR_SCHEDULE_NOT_FOUND},
    {&UC_DELETE_SCHEDULE, &SCHEDULE, ERR_SCHEDULE_NOT_FOUND},
    {&UC_TRIGGER_SCHEDULE, &SCHEDULE, ERR_SCHEDULE_NOT_FOUND},
    {&UC_GET_WEBHOOK, &HOOK, ERR_WEBHOOK_NOT_FOUND},
    {&UC_PUT_WEBHOOK, &CHANGED_HOOK, ERR_WEBHOOK_NOT_FOUND},
    {&UC_DELETE_WEBHOOK, &HOOK, ERR_WEBHOOK_NOT_FOUND},
    {&UC_TEST_WEBHOOK, &HOOK, ERR_WEBHOOK_NOT_FOUND},
    {&UC_ROTATE_WEBHOOK, &ROTATE, ERR_WEBHOOK_NOT_FOUND},
    {&UC_LIST_DELIVERIES, &DELIVERIES, ERR_WEBHOOK_NOT_FOUND},
    {&UC_REDELIVER, &DELIVERY, ERR_WEBHOOK_NOT_FOUND},
    {&UC_GET_TENANT, &TENANT, ERR_TENANT_NOT_FOUND},
    {&UC_LIST_SETTINGS, &SETTINGS, ERR_TENANT_NOT_FOUND},
    {&UC_ROLLBACK_TENANT, &ROLLBACK, ERR_TENANT_NOT_FOUND},
    {&UC_REVOKE_KEY, &KEY, ERR_NOT_FOUND},
    {&UC_GET_IDEM, &IDEM, ERR_IDEM_KEY_NOT_FOUND},
    {&UC_RELEASE_IDEM, &IDEM, ERR_IDEM_KEY_NOT_FOUND},
    {&UC_RETRY_PARKED, &PARKED, ERR_NOT_FOUND},
};

static void what_is_not_there_is_not_found(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    for (size_t i = 0; i < ARRAY_LEN(MISSING); i++) {
        struct asked a = ask_as(fixture, "acme", true, MISSING[i].use_case, MISSING[i].input);
        if (a.err != MISSING[i].err)
            fail_msg("%s: %s", MISSING[i].use_case->name, err_code(a.err));
        asked_release(&a);
    }
    assert_sound(fixture);
}

static void an_entity_that_is_not_there_is_not_found(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "b", NULL, 1);
    const struct entity_input entity = {COUNTER, STR("a")};
    const struct get_update_input update = {.type = COUNTER, .id = STR("a"), .seq = 1};
    const struct get_update_input none = {.type = COUNTER, .id = STR("b"), .seq = 7};
    const struct get_update_input no_key = {
        .type = COUNTER, .id = STR("b"), .dedup_key = STR("never")};
    const struct migrate_entity_input migrate = {COUNTER, STR("a"), -1};
    const struct list_of_entity_input listed = {COUNTER, STR("a"), STR_NONE, 10};
    assert_refuses(fixture, &UC_GET_ENTITY, &entity, ERR_ENTITY_NOT_FOUND);
    assert_refuses(fixture, &UC_DELETE_ENTITY, &entity, ERR_ENTITY_NOT_FOUND);
    assert_refuses(fixture, &UC_GET_UPDATE, &update, ERR_ENTITY_NOT_FOUND);
    assert_refuses(fixture, &UC_GET_UPDATE, &none, ERR_UPDATE_NOT_FOUND);
    assert_refuses(fixture, &UC_GET_UPDATE, &no_key, ERR_UPDATE_NOT_FOUND);
    assert_refuses(fixture, &UC_MIGRATE_ENTITY, &migrate, ERR_ENTITY_NOT_FOUND);
    assert_refuses(fixture, &UC_LIST_ENTITY_EVENTS, &listed, ERR_ENTITY_NOT_FOUND);
    assert_refuses(fixture, &UC_LIST_GENERATIONS, &listed, ERR_ENTITY_NOT_FOUND);
}

/* Not stored, and created by what writes: it has nothing either. */
static void a_fresh_tenant_has_none_of_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "none", ONE_TASK); /* acme's */
    for (size_t i = 0; i < ARRAY_LEN(MISSING); i++) {
        struct asked a = ask_as(fixture, "fresh", true, MISSING[i].use_case, MISSING[i].input);
        if (a.err != MISSING[i].err)
            fail_msg("%s: %s", MISSING[i].use_case->name, err_code(a.err));
        asked_release(&a);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM tenants"), 1);
}

static void a_tenant_that_does_not_exist_is_refused(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_LEN(MISSING); i++) {
        struct asked a = ask_as(fixture, "nobody", false, MISSING[i].use_case, MISSING[i].input);
        if (a.err != ERR_TENANT_NOT_FOUND)
            fail_msg("%s: %s", MISSING[i].use_case->name, err_code(a.err));
        asked_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(what_is_not_there_is_not_found),
        fixture_test(an_entity_that_is_not_there_is_not_found),
        fixture_test(a_fresh_tenant_has_none_of_it),
        fixture_test(a_tenant_that_does_not_exist_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
