/* A tenant's settings over time: every change is a version that can be listed and gone back to. */
#include "gate/fake_gate.h"

/* --- calls --- */

/* All that one call needs, for as long as it is under way. */
struct change {
    struct call call;
    struct put_tenant_input put;
    struct rollback_tenant_input rollback;
    struct json *body;
};

static void put_init(struct change *c, struct fixture *fixture, const char *body)
{
    call_init(&c->call, fixture, &UC_PUT_TENANT);
    c->body = json_value_of_tree(json_of(body));
    c->put = (struct put_tenant_input){STR("acme"), c->body};
    c->call.op.input = &c->put;
}

static void rollback_init(struct change *c, struct fixture *fixture, int64_t version)
{
    call_init(&c->call, fixture, &UC_ROLLBACK_TENANT);
    c->body = NULL;
    c->rollback = (struct rollback_tenant_input){STR("acme"), version};
    c->call.op.input = &c->rollback;
}

static void change_release(struct change *c)
{
    call_release(&c->call);
    json_free(c->body);
}

/* The tenant as the answer shows it. */
static json_t *must_change(struct change *c)
{
    must_perform(&c->call);
    return parsed_str(buf_str(&c->call.op.answer.body));
}

static int64_t version_of(const json_t *tenant)
{
    return json_integer_value(json_object_get(tenant, "settings_version"));
}

/* Returns the version that the tenant then has. */
static int64_t put(struct fixture *fixture, const char *body)
{
    struct change c;
    put_init(&c, fixture, body);
    json_t *tenant = must_change(&c);
    int64_t version = version_of(tenant);
    json_decref(tenant);
    change_release(&c);
    return version;
}

static int64_t rollback(struct fixture *fixture, int64_t version)
{
    struct change c;
    rollback_init(&c, fixture, version);
    json_t *tenant = must_change(&c);
    int64_t now = version_of(tenant);
    json_decref(tenant);
    change_release(&c);
    return now;
}

enum { THE_ONE_BEFORE = -1 };

static enum err try_rollback(struct fixture *fixture, int64_t version)
{
    struct change c;
    rollback_init(&c, fixture, version);
    enum err e = perform(&c.call);
    change_release(&c);
    return e;
}

static json_t *get_tenant(struct fixture *fixture)
{
    struct tenant_input in = {STR("acme")};
    struct call c;
    call_init(&c, fixture, &UC_GET_TENANT);
    c.op.input = &in;
    must_perform(&c);
    json_t *tenant = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    return tenant;
}

static int64_t max_runs(struct fixture *fixture)
{
    json_t *tenant = get_tenant(fixture);
    const json_t *max = json_object_get(tenant, "max_concurrent_runs");
    int64_t number = json_is_null(max) ? -1 : json_integer_value(max);
    json_decref(tenant);
    return number;
}

/* One page of versions; the cursor of the next is copied out, "" at the end. */
static json_t *list(struct fixture *fixture, const char *cursor, int64_t limit,
                    char next[static CURSOR_MAX])
{
    struct list_settings_input in = {STR("acme"), cursor != NULL ? str_of(cursor) : STR_NONE,
                                     limit};
    struct call c;
    call_init(&c, fixture, &UC_LIST_SETTINGS);
    c.op.input = &in;
    must_perform(&c);
    json_t *body = parsed_str(buf_str(&c.op.answer.body));
    json_t *items = json_incref(json_object_get(body, "items"));
    const char *given = json_string_value(json_object_get(body, "next_cursor"));
    (void)snprintf(next, CURSOR_MAX, "%s", given != NULL ? given : "");
    json_decref(body);
    call_release(&c);
    assert_true(json_is_array(items));
    return items;
}

static json_t *list_all(struct fixture *fixture)
{
    char next[CURSOR_MAX];
    json_t *items = list(fixture, NULL, 500, next);
    assert_string_equal(next, "");
    return items;
}

/* The versions that are kept, newest first, and which of them holds. */
static void assert_versions(struct fixture *fixture, const int64_t *versions, size_t count)
{
    json_t *items = list_all(fixture);
    assert_int_equal(json_array_size(items), count);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(items, i);
        assert_int_equal(json_integer_value(json_object_get(item, "version")), versions[i]);
        assert_int_equal(json_is_true(json_object_get(item, "current")), i == 0);
    }
    json_decref(items);
}

static int64_t audit_count(struct fixture *fixture)
{
    return in_file(fixture, "SELECT count(*) FROM audit");
}

/* --- versions --- */

static void every_change_is_a_version_with_all_settings_and_who_made_it(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(put(fixture, "{'max_concurrent_runs':5,'name':'Acme'}"), 1);
    fixture_pass_ms(fixture, 1000);
    struct change c;
    put_init(&c, fixture, "{'max_concurrent_runs':7,'at_limit':'queue'}");
    c.call.op.caller.actor = STR("somebody");
    json_t *tenant = must_change(&c);
    assert_int_equal(version_of(tenant), 2);
    json_t *shown = get_tenant(fixture);
    assert_int_equal(version_of(shown), 2);
    assert_true(json_equal(shown, tenant));

    json_t *items = list_all(fixture);
    assert_int_equal(json_array_size(items), 2);
    static const struct {
        int64_t version;
        int64_t max;
        const char *at_limit;
        const char *actor;
        const char *at;
    } EXPECTED[] = {{2, 7, "queue", "somebody", "2023-11-14T22:13:21.000Z"},
                    {1, 5, "reject", "tester", "2023-11-14T22:13:20.000Z"}};
    for (size_t i = 0; i < ARRAY_LEN(EXPECTED); i++) {
        const json_t *item = json_array_get(items, i);
        const json_t *settings = json_object_get(item, "settings");
        assert_int_equal(json_integer_value(json_object_get(item, "version")), EXPECTED[i].version);
        assert_int_equal(json_integer_value(json_object_get(settings, "max_concurrent_runs")),
                         EXPECTED[i].max);
        assert_str(json_str(json_object_get(settings, "at_limit")), EXPECTED[i].at_limit);
        assert_str(json_str(json_object_get(settings, "name")), "Acme");
        assert_str(json_str(json_object_get(item, "actor")), EXPECTED[i].actor);
        assert_str(json_str(json_object_get(item, "at")), EXPECTED[i].at);
        /* Everything that can be set is in it, and nothing else. */
        assert_int_equal(json_object_size(settings), 9);
        const char *name;
        json_t *value;
        json_object_foreach ((json_t *)(uintptr_t)settings, name, value)
            assert_non_null(json_object_get(tenant, name));
    }
    json_decref(items);
    json_decref(shown);
    json_decref(tenant);
    change_release(&c);
}

/* A gate at which starts may have to wait, so that a tenant's settings for it have an effect. */
static struct fixture *with_outside_gate(void **state)
{
    struct fixture *fixture = *state;
    (void)fake_gate_begin(fixture);
    return fixture;
}

static enum err put_refused(struct fixture *fixture, const char *body)
{
    struct call c;
    call_init(&c, fixture, &UC_PUT_TENANT);
    struct json *json = json_value_of_tree(json_of(body));
    c.input.tenant = (struct put_tenant_input){STR("acme"), json};
    enum err e = perform(&c);
    json_free(json);
    call_release(&c);
    return e;
}

static void gate_settings_that_would_have_no_effect_are_refused(void **state)
{
    struct fixture *fixture = *state;
    (void)put(fixture, "{}");
    assert_int_equal(put_refused(fixture, "{'weight':2,'gate':{'max_wait_ms':1}}"),
                     ERR_FIELD_INVALID);
    assert_int_equal(put(fixture, "{'gate':null}"), 1);
    assert_int_equal(put(fixture, "{'gate':{}}"), 1);
    assert_int_equal(put(fixture, "{'gate':{'max_wait_ms':2000,'lock_ttl_ms':10000,"
                                  "'retry_delay_ms':10,'policy':'full_jitter'}}"),
                     1);
}

static void settings_of_a_gate_ask_for_it_and_need_it(void **state)
{
    struct fixture *fixture = with_outside_gate(state);
    static const struct {
        const char *gate;
        const char *kind;
    } CASES[] = {
        {"{}", "redis"},
        {"{'policy':'fixed'}", "redis"},
        {"{'kind':'store'}", "store"},
        {"{'kind':'redis','max_wait_ms':1}", "redis"},
        {"null", "store"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char body[96];
        (void)snprintf(body, sizeof(body), "{'gate':%s}", CASES[i].gate);
        (void)put(fixture, body);
        json_t *tenant = get_tenant(fixture);
        const json_t *gate = json_object_get(tenant, "gate");
        assert_string_equal(json_string_value(json_object_get(gate, "kind")), CASES[i].kind);
        json_decref(tenant);
    }
    assert_int_equal(put_refused(fixture, "{'gate':{'kind':'store','max_wait_ms':1}}"),
                     ERR_FIELD_INVALID);
    fixture_stop(fixture);
    fixture->gate = NULL;
    fixture_start(fixture, 0);
    assert_int_equal(put_refused(fixture, "{'gate':{'kind':'redis'}}"), ERR_FIELD_INVALID);
    struct change back; /* to version 1, which asks for it */
    rollback_init(&back, fixture, 1);
    assert_int_equal(perform(&back.call), ERR_FIELD_INVALID);
    change_release(&back);
}

static void gate_settings_from_before_stay_and_can_be_put_again(void **state)
{
    struct fixture *fixture = with_outside_gate(state);
    assert_int_equal(put(fixture, "{'gate':{'max_wait_ms':1}}"), 1);
    fixture_stop(fixture);
    fixture->gate = NULL;
    fixture_start(fixture, 0);
    assert_int_equal(put(fixture, "{'gate':{'max_wait_ms':1}}"), 1);
    assert_int_equal(put(fixture, "{'weight':2}"), 2);
    assert_int_equal(put_refused(fixture, "{'gate':{'max_wait_ms':2}}"), ERR_FIELD_INVALID);
    assert_int_equal(put(fixture, "{'gate':null}"), 3);
}

static void what_changes_nothing_makes_no_version_and_no_audit_entry(void **state)
{
    struct fixture *fixture = with_outside_gate(state);
    static const char BODY[] = "{'name':'Acme','max_concurrent_runs':5,'at_limit':'coalesce',"
                               "'gate':{'max_wait_ms':1},'rate_limit':{'per_second':1,'burst':2}}";
    (void)put(fixture, BODY);
    settle(fixture);
    int64_t audit_record = audit_count(fixture);
    json_t *before = get_tenant(fixture);
    fixture_pass_ms(fixture, 500);
    static const char *const SAME[] = {BODY,
                                       "{}",
                                       "{'max_concurrent_runs':5}",
                                       "{'weight':1}",
                                       "{'max_queued_runs':null,'weight':null}",
                                       "{'gate':{'max_wait_ms':1,'policy':'full_jitter'}}"};
    for (size_t i = 0; i < ARRAY_LEN(SAME); i++)
        assert_int_equal(put(fixture, SAME[i]), 1);
    assert_int_equal(rollback(fixture, 1), 1); /* to what holds already */
    json_t *after = get_tenant(fixture);
    assert_true(json_equal(before, after)); /* updated_at too */
    assert_int_equal(audit_count(fixture), audit_record);
    assert_versions(fixture, (const int64_t[]){1}, 1);
    json_decref(before);
    json_decref(after);
}

static void every_setting_that_changes_makes_a_version(void **state)
{
    struct fixture *fixture = with_outside_gate(state);
    static const char *const BODIES[] = {
        "{'name':'Acme'}",
        "{'name':'acme'}",
        "{'name':null}",
        "{'max_concurrent_runs':0}",
        "{'max_concurrent_runs':null}",
        "{'max_queued_runs':0}",
        "{'at_limit':'queue'}",
        "{'idempotency_retention_s':0}",
        "{'weight':2}",
        "{'gate':{'lock_ttl_ms':9}}",
        "{'rate_limit':{'per_second':1,'burst':1}}",
        "{'rate_limit':{'per_second':1,'burst':2}}",
        "{'rate_limit':null}",
    };
    (void)put(fixture, "{}");
    for (size_t i = 0; i < ARRAY_LEN(BODIES); i++)
        assert_int_equal(put(fixture, BODIES[i]), (int64_t)i + 2);
}

static void a_refused_change_leaves_everything_as_it_was(void **state)
{
    struct fixture *fixture = *state;
    (void)put(fixture, "{'max_concurrent_runs':5}");
    int64_t audit_record = audit_count(fixture);
    struct change c;
    put_init(&c, fixture, "{'max_concurrent_runs':6,'weight':0}");
    assert_int_equal(perform(&c.call), ERR_FIELD_INVALID);
    assert_int_equal(max_runs(fixture), 5);
    assert_versions(fixture, (const int64_t[]){1}, 1);
    assert_int_equal(audit_count(fixture), audit_record);
    change_release(&c);
}

static void changes_that_share_a_batch_are_versions_of_their_own(void **state)
{
    enum { CHANGES = 10 };
    struct fixture *fixture = *state;
    (void)put(fixture, "{}");
    settle(fixture);
    struct change changes[CHANGES];
    for (size_t i = 0; i < CHANGES; i++) {
        char body[64];
        (void)snprintf(body, sizeof(body), "{'name':'name %zu','max_concurrent_runs':%zu}", i / 2,
                       i / 2);
        put_init(&changes[i], fixture, body); /* every second one changes nothing */
        submit(&changes[i].call);
    }
    for (size_t i = 0; i < CHANGES; i++) {
        wait_done(&changes[i].call);
        json_t *tenant = parsed_str(buf_str(&changes[i].call.op.answer.body));
        assert_int_equal(version_of(tenant), 2 + (int64_t)i / 2);
        json_decref(tenant);
        change_release(&changes[i]);
    }
    assert_versions(fixture, (const int64_t[]){6, 5, 4, 3, 2, 1}, 6);
    assert_int_equal(max_runs(fixture), 4);
}

static void a_tenant_that_came_to_be_by_the_way_can_go_back_to_how_it_began(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK); /* makes the tenant, without any settings */
    json_t *items = list_all(fixture);
    json_decref(items);
    assert_int_equal(try_rollback(fixture, THE_ONE_BEFORE), ERR_SETTINGS_NOT_FOUND);
    assert_int_equal(put(fixture, "{'max_concurrent_runs':2}"), 2);
    assert_versions(fixture, (const int64_t[]){2, 1}, 2);
    assert_int_equal(rollback(fixture, 1), 3);
    assert_int_equal(max_runs(fixture), -1);
}

/* --- going back --- */

static void a_rollback_restores_every_setting_and_nothing_else(void **state)
{
    struct fixture *fixture = with_outside_gate(state);
    put_workflow(fixture, "w", ONE_TASK);
    (void)put(fixture,
              "{'name':'Acme','max_concurrent_runs':5,'max_queued_runs':6,'at_limit':'queue',"
              "'idempotency_retention_s':7,'weight':8,'gate':{'max_wait_ms':9,'lock_ttl_ms':10,"
              "'retry_delay_ms':11,'policy':'fixed'},'rate_limit':{'per_second':12,"
              "'burst':13}}");
    json_t *before = get_tenant(fixture);
    int64_t good = version_of(before);
    (void)put(fixture, "{'name':null,'max_concurrent_runs':null,'max_queued_runs':null,"
                       "'at_limit':null,'idempotency_retention_s':null,'weight':null,'gate':null,"
                       "'rate_limit':null}");
    (void)start(fixture, "w");
    fixture_pass_ms(fixture, 1000);
    assert_int_equal(rollback(fixture, good), good + 2);
    json_t *after = get_tenant(fixture);
    assert_int_equal(json_integer_value(json_object_get(after, "active_runs")), 1);
    assert_false(
        json_equal(json_object_get(after, "updated_at"), json_object_get(before, "updated_at")));
    static const char *const OWN[] = {"settings_version", "active_runs", "updated_at"};
    for (size_t i = 0; i < ARRAY_LEN(OWN); i++) {
        (void)json_object_del(before, OWN[i]);
        (void)json_object_del(after, OWN[i]);
    }
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
}

static void without_a_version_it_is_the_one_before_and_twice_is_back_again(void **state)
{
    struct fixture *fixture = *state;
    (void)put(fixture, "{'max_concurrent_runs':1}");
    (void)put(fixture, "{'max_concurrent_runs':2}");
    (void)put(fixture, "{'max_concurrent_runs':3}");
    assert_int_equal(rollback(fixture, THE_ONE_BEFORE), 4);
    assert_int_equal(max_runs(fixture), 2);
    assert_int_equal(rollback(fixture, THE_ONE_BEFORE), 5);
    assert_int_equal(max_runs(fixture), 3);
    assert_int_equal(rollback(fixture, 1), 6);
    assert_int_equal(max_runs(fixture), 1);
    assert_versions(fixture, (const int64_t[]){6, 5, 4, 3, 2, 1}, 6);
}

static void a_version_that_is_not_kept_cannot_be_gone_back_to(void **state)
{
    struct fixture *fixture = *state;
    (void)put(fixture, "{'max_concurrent_runs':1}");
    int64_t audit_record = audit_count(fixture);
    assert_int_equal(try_rollback(fixture, THE_ONE_BEFORE), ERR_SETTINGS_NOT_FOUND);
    assert_int_equal(try_rollback(fixture, 0), ERR_SETTINGS_NOT_FOUND);
    assert_int_equal(try_rollback(fixture, 2), ERR_SETTINGS_NOT_FOUND);
    assert_int_equal(try_rollback(fixture, INT64_MAX), ERR_SETTINGS_NOT_FOUND);
    assert_int_equal(max_runs(fixture), 1);
    assert_versions(fixture, (const int64_t[]){1}, 1);
    assert_int_equal(audit_count(fixture), audit_record);
}

static void a_tenant_that_is_not_there_is_not_made_by_a_rollback(void **state)
{
    struct fixture *fixture = *state;
    struct change c;
    rollback_init(&c, fixture, 1);
    c.rollback.tenant_id = STR("nobody");
    assert_int_equal(perform(&c.call), ERR_TENANT_NOT_FOUND);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM tenants"), 0);
    change_release(&c);
    struct list_settings_input in = {STR("nobody"), STR_NONE, 10};
    struct call look;
    call_init(&look, fixture, &UC_LIST_SETTINGS);
    look.op.input = &in;
    assert_int_equal(perform(&look), ERR_TENANT_NOT_FOUND);
    call_release(&look);
}

static void versions_outlive_the_engine(void **state)
{
    struct fixture *fixture = *state;
    (void)put(fixture, "{'max_concurrent_runs':1}");
    (void)put(fixture, "{'max_concurrent_runs':2}");
    fixture_stop(fixture);
    fixture_start(fixture, 0);
    assert_versions(fixture, (const int64_t[]){2, 1}, 2);
    assert_int_equal(rollback(fixture, THE_ONE_BEFORE), 3);
    assert_int_equal(max_runs(fixture), 1);
}

/* --- what a limit that comes back does to those who wait --- */

static void assert_counts(struct fixture *fixture, int64_t active, int64_t queued)
{
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     active);
    assert_int_equal(in_file(fixture, "SELECT queued_runs FROM tenant_counters WHERE id = 'acme'"),
                     queued);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'running'"),
                     active);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'queued'"), queued);
}

static void a_rollback_to_a_higher_limit_starts_queued_runs_with_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    (void)put(fixture, "{'max_concurrent_runs':3,'at_limit':'queue'}");
    (void)put(fixture, "{'max_concurrent_runs':1}");
    struct uuid runs[5];
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        runs[i] = start(fixture, "w");
    assert_counts(fixture, 1, 4);
    (void)rollback(fixture, THE_ONE_BEFORE);
    assert_counts(fixture, 3, 2); /* in the same commit, in the order in which they came */
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        assert_run_is(fixture, runs[i], i < 3 ? "running" : "queued");
    (void)rollback(fixture, THE_ONE_BEFORE); /* nobody is thrown out */
    assert_counts(fixture, 3, 2);
    (void)put(fixture, "{'max_concurrent_runs':null}");
    assert_counts(fixture, 5, 0);
}

static void many_queued_runs_start_one_slice_after_the_other(void **state)
{
    enum { RUNS = 3 * DISPATCHED_PER_OP_MAX };
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    (void)put(fixture, "{'at_limit':'queue'}");
    (void)put(fixture, "{'max_concurrent_runs':0}");
    for (int i = 0; i < RUNS; i++)
        (void)start(fixture, "w");
    assert_counts(fixture, 0, RUNS);
    (void)rollback(fixture, THE_ONE_BEFORE);
    assert_true(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'") >=
                DISPATCHED_PER_OP_MAX);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (in_file(fixture, "SELECT queued_runs FROM tenant_counters WHERE id = 'acme'") > 0) {
        assert_true(real_seconds() < until);
        settle(fixture);
    }
    assert_counts(fixture, RUNS, 0);
}

static void a_change_that_leaves_the_limit_alone_starts_nobody(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    (void)put(fixture, "{'max_concurrent_runs':1,'at_limit':'queue'}");
    for (int i = 0; i < 3; i++)
        (void)start(fixture, "w");
    (void)put(fixture, "{'name':'Acme'}");
    (void)put(fixture, "{'max_concurrent_runs':0}");
    settle(fixture);
    assert_counts(fixture, 1, 2);
}

/* --- how much is kept --- */

static void a_hundred_versions_are_kept_and_listed_page_by_page(void **state)
{
    enum { CHANGES = SETTINGS_KEPT_MAX + 20, PAGE = 30 };
    struct fixture *fixture = *state;
    for (int64_t i = 1; i <= CHANGES; i++) {
        char body[64];
        (void)snprintf(body, sizeof(body), "{'max_concurrent_runs':%lld}", (long long)i);
        assert_int_equal(put(fixture, body), i);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM tenant_settings"), SETTINGS_KEPT_MAX);
    int64_t expected = CHANGES;
    char next[CURSOR_MAX] = "";
    do {
        char cursor[CURSOR_MAX];
        memcpy(cursor, next, sizeof(cursor));
        json_t *items = list(fixture, cursor[0] != '\0' ? cursor : NULL, PAGE, next);
        assert_true(json_array_size(items) <= PAGE);
        for (size_t i = 0; i < json_array_size(items); i++, expected--) {
            const json_t *item = json_array_get(items, i);
            const json_t *max =
                json_object_get(json_object_get(item, "settings"), "max_concurrent_runs");
            assert_int_equal(json_integer_value(json_object_get(item, "version")), expected);
            assert_int_equal(json_is_true(json_object_get(item, "current")), expected == CHANGES);
            assert_int_equal(json_integer_value(max), expected);
        }
        json_decref(items);
    } while (next[0] != '\0');
    assert_int_equal(expected, CHANGES - SETTINGS_KEPT_MAX);
    assert_int_equal(try_rollback(fixture, expected), ERR_SETTINGS_NOT_FOUND);
    assert_int_equal(rollback(fixture, expected + 1), CHANGES + 1); /* the oldest there is */
    assert_int_equal(max_runs(fixture), expected + 1);
    assert_int_equal(try_rollback(fixture, expected + 1), ERR_SETTINGS_NOT_FOUND);
}

static void a_cursor_that_is_none_is_refused(void **state)
{
    struct fixture *fixture = *state;
    (void)put(fixture, "{}");
    static const char *const BAD[] = {"", "x", "-1", "1x", "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct list_settings_input in = {STR("acme"), str_of(BAD[i]), 10};
        struct call c;
        call_init(&c, fixture, &UC_LIST_SETTINGS);
        c.op.input = &in;
        assert_int_equal(perform(&c), ERR_CURSOR_INVALID);
        call_release(&c);
    }
}

/* The longest name there may be, of characters that JSON spells in six bytes each. */
static void the_longest_name_is_kept_like_any_other(void **state)
{
    struct fixture *fixture = *state;
    char name[TEXT_MAX];
    memset(name, 1, sizeof(name));
    (void)put(fixture, "{'name':'short'}");
    struct change c;
    put_init(&c, fixture, "{}");
    json_free(c.body);
    c.put.body = c.body = json_value_of_tree(json_pack("{s:s#}", "name", name, sizeof(name)));
    json_t *tenant = must_change(&c);
    assert_int_equal(version_of(tenant), 2);
    assert_int_equal(json_string_length(json_object_get(tenant, "name")), sizeof(name));
    json_decref(tenant);
    change_release(&c);
    assert_int_equal(rollback(fixture, 1), 3);
    assert_int_equal(rollback(fixture, 2), 4);
    tenant = get_tenant(fixture);
    assert_int_equal(json_string_length(json_object_get(tenant, "name")), sizeof(name));
    json_decref(tenant);
}

/* --- the audit trail --- */

static void changes_and_rollbacks_are_in_the_audit_trail(void **state)
{
    struct fixture *fixture = *state;
    (void)put(fixture, "{'max_concurrent_runs':1}");
    (void)put(fixture, "{'max_concurrent_runs':2}");
    (void)put(fixture, "{'max_concurrent_runs':2}");
    struct change c;
    rollback_init(&c, fixture, 1);
    c.call.op.caller.actor = STR("somebody");
    c.call.op.caller.peer = STR("there");
    json_t *tenant = must_change(&c);
    json_decref(tenant);
    change_release(&c);
    assert_int_equal(audit_count(fixture), 3);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM audit WHERE action = 'tenant.set'"
                                      " AND actor = 'tester' AND peer = 'here' AND target = 'acme'"
                                      " AND detail ->> 'max_concurrent_runs'"
                                      " = detail ->> 'settings_version'"),
                     2);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM audit WHERE action = 'tenant.rollback'"
                                      " AND actor = 'somebody' AND peer = 'there'"
                                      " AND target = 'acme' AND detail ->> 'settings_version' = 3"
                                      " AND detail ->> 'max_concurrent_runs' = 1"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(every_change_is_a_version_with_all_settings_and_who_made_it),
        fixture_test(gate_settings_that_would_have_no_effect_are_refused),
        fixture_test(settings_of_a_gate_ask_for_it_and_need_it),
        fixture_test(gate_settings_from_before_stay_and_can_be_put_again),
        fixture_test(what_changes_nothing_makes_no_version_and_no_audit_entry),
        fixture_test(every_setting_that_changes_makes_a_version),
        fixture_test(a_refused_change_leaves_everything_as_it_was),
        fixture_test(changes_that_share_a_batch_are_versions_of_their_own),
        fixture_test(a_tenant_that_came_to_be_by_the_way_can_go_back_to_how_it_began),
        fixture_test(a_rollback_restores_every_setting_and_nothing_else),
        fixture_test(without_a_version_it_is_the_one_before_and_twice_is_back_again),
        fixture_test(a_version_that_is_not_kept_cannot_be_gone_back_to),
        fixture_test(a_tenant_that_is_not_there_is_not_made_by_a_rollback),
        fixture_test(versions_outlive_the_engine),
        fixture_test(a_rollback_to_a_higher_limit_starts_queued_runs_with_it),
        fixture_test(many_queued_runs_start_one_slice_after_the_other),
        fixture_test(a_change_that_leaves_the_limit_alone_starts_nobody),
        fixture_test(a_hundred_versions_are_kept_and_listed_page_by_page),
        fixture_test(a_cursor_that_is_none_is_refused),
        fixture_test(the_longest_name_is_kept_like_any_other),
        fixture_test(changes_and_rollbacks_are_in_the_audit_trail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
