/* A tenant's settings. JSON in this file is written with ' for ". */
#include "base/support.h"

#include "base/limits.h"
#include "domain/same_tenant.h"

static const struct gate_policy GATE_DEFAULT = {2000, 10000, 10, BACKOFF_FULL_JITTER,
                                                GATE_KIND_STORE};

static json_t *json_of(const char *quoted_singly)
{
    char text[4096];
    size_t len = strlen(quoted_singly);
    assert_true(len < sizeof(text));
    for (size_t i = 0; i <= len; i++)
        text[i] = (char)(quoted_singly[i] == '\'' ? '"' : quoted_singly[i]);
    return parsed(text);
}

/* A tenant with a value of its own in every setting. */
static struct tenant full_tenant(void)
{
    return (struct tenant){
        .num = 7,
        .id = STR("acme"),
        .name = STR("Acme"),
        .max_concurrent_runs = 10,
        .max_queued_runs = 20,
        .at_limit = AT_LIMIT_COALESCE,
        .idempotency_retention_ms = 5000,
        .weight = 3,
        .gate = {21, 22, 23, BACKOFF_EQUAL_JITTER, GATE_KIND_REDIS},
        .rate_limit = {24, 25},
        .settings_version = 6,
        .rate_full_at_ns = 7000,
        .active_runs = 4,
        .queued_runs = 5,
        .created_at = 100,
        .updated_at = 200,
    };
}

struct setup {
    struct tenant tenant;
    struct arena arena;
    struct problem problem;
};

static void begin(struct setup *s)
{
    s->tenant = full_tenant();
    arena_init(&s->arena, 64 * KIB);
    problem_init(&s->problem);
}

static void end(struct setup *s)
{
    arena_release(&s->arena);
    problem_release(&s->problem);
}

/* The body is gone when it returns: what stays must have been copied. */
static enum err apply(struct setup *s, const char *body)
{
    struct json *json = json_value_of_tree(json_of(body));
    enum err e = tenant_apply(&s->tenant, json, &s->arena, &s->problem);
    json_free(json);
    return e;
}

static void must_apply(struct setup *s, const char *body)
{
    enum err e = apply(s, body);
    if (e != ERR_OK)
        fail_msg("%s: %s", body, s->problem.detail);
}

/* Refused, with the field in the message, and nothing changed. */
static void must_refuse(const char *body, const char *field)
{
    struct setup s;
    begin(&s);
    struct tenant before = s.tenant;
    if (apply(&s, body) != ERR_FIELD_INVALID)
        fail_msg("taken: %s", body);
    assert_contains(s.problem.detail, field);
    assert_same_tenant(&s.tenant, &before);
    end(&s);
}

/* --- defaults --- */

static void a_new_tenant_has_no_limits(void **state)
{
    (void)state;
    struct tenant t = tenant_default(STR("acme"), 1234);
    assert_int_equal(t.num, 0);
    assert_str(t.id, "acme");
    assert_null(t.name.ptr);
    assert_int_equal(t.max_concurrent_runs, -1);
    assert_int_equal(t.max_queued_runs, -1);
    assert_int_equal(t.at_limit, AT_LIMIT_REJECT);
    assert_int_equal(t.idempotency_retention_ms, -1);
    assert_int_equal(t.weight, 1);
    assert_gate(&t.gate, &GATE_DEFAULT);
    assert_rate(&t.rate_limit, 0, 0);
    assert_int_equal(t.settings_version, 1);
    assert_int_equal(t.rate_full_at_ns, 0);
    assert_int_equal(tenant_queue_max(&t), QUEUED_RUNS_MAX);
    assert_int_equal(t.active_runs, 0);
    assert_int_equal(t.queued_runs, 0);
    assert_int_equal(t.created_at, 1234);
    assert_int_equal(t.updated_at, 1234);
}

static void ids_are_short_names(void **state)
{
    (void)state;
    char longest[TENANT_ID_MAX + 1];
    memset(longest, 'a', sizeof(longest));
    assert_true(tenant_id_ok((struct str){longest, TENANT_ID_MAX}));
    assert_false(tenant_id_ok((struct str){longest, TENANT_ID_MAX + 1}));
    assert_true(tenant_id_ok(STR("a_B-3.x:y")));
    static const char *const BAD[] = {"", "a b", "a/b", "*", "\xC3\xA9", "a\n"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        assert_false(tenant_id_ok(str_of(BAD[i])));
}

static void policies_have_names(void **state)
{
    (void)state;
    for (enum at_limit p = 0; p < AT_LIMIT_COUNT; p++)
        assert_int_equal(at_limit_of(str_of(at_limit_name(p))), p);
    assert_int_equal(at_limit_of(STR("Reject")), AT_LIMIT_COUNT);
    assert_int_equal(at_limit_of(STR("")), AT_LIMIT_COUNT);
}

/* --- settings --- */

static void absent_members_stay(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    struct tenant before = s.tenant;
    must_apply(&s, "{}");
    assert_same_tenant(&s.tenant, &before);
    assert_int_equal(tenant_apply(&s.tenant, NULL, &s.arena, &s.problem), ERR_OK);
    assert_same_tenant(&s.tenant, &before);
    end(&s);
}

static void null_sets_every_member_back_to_its_default(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    must_apply(&s, "{'name':null,'max_concurrent_runs':null,'max_queued_runs':null,"
                   "'at_limit':null,'idempotency_retention_s':null,'weight':null,'gate':null,"
                   "'rate_limit':null}");
    struct tenant expected = tenant_default(STR("acme"), 0);
    struct tenant before = full_tenant();
    expected.num = before.num;
    expected.settings_version = before.settings_version;
    expected.rate_full_at_ns = before.rate_full_at_ns;
    expected.active_runs = before.active_runs;
    expected.queued_runs = before.queued_runs;
    expected.created_at = before.created_at;
    expected.updated_at = before.updated_at;
    assert_same_tenant(&s.tenant, &expected);
    end(&s);
}

static void each_member_is_set_by_itself(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    must_apply(&s, "{'name':'New name'}");
    assert_str(s.tenant.name, "New name");
    must_apply(&s, "{'max_concurrent_runs':11}");
    assert_int_equal(s.tenant.max_concurrent_runs, 11);
    must_apply(&s, "{'max_queued_runs':12}");
    assert_int_equal(s.tenant.max_queued_runs, 12);
    must_apply(&s, "{'at_limit':'reject'}");
    assert_int_equal(s.tenant.at_limit, AT_LIMIT_REJECT);
    must_apply(&s, "{'idempotency_retention_s':13}");
    assert_int_equal(s.tenant.idempotency_retention_ms, 13000);
    must_apply(&s, "{'weight':14}");
    assert_int_equal(s.tenant.weight, 14);
    must_apply(&s, "{'gate':{'max_wait_ms':1,'lock_ttl_ms':2,'retry_delay_ms':3,"
                   "'policy':'fixed','kind':'store'}}");
    assert_gate(&s.tenant.gate, &(struct gate_policy){1, 2, 3, BACKOFF_FIXED, GATE_KIND_STORE});
    must_apply(&s, "{'rate_limit':{'per_second':5,'burst':6}}");
    assert_rate(&s.tenant.rate_limit, 5, 6);
    /* None of them touched another. */
    struct tenant expected = full_tenant();
    expected.name = STR("New name");
    expected.max_concurrent_runs = 11;
    expected.max_queued_runs = 12;
    expected.at_limit = AT_LIMIT_REJECT;
    expected.idempotency_retention_ms = 13000;
    expected.weight = 14;
    expected.gate = (struct gate_policy){1, 2, 3, BACKOFF_FIXED, GATE_KIND_STORE};
    expected.rate_limit = (struct rate_limit){5, 6};
    assert_same_tenant(&s.tenant, &expected);
    end(&s);
}

static void a_gate_that_is_given_in_part_gets_defaults_for_the_rest(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    struct gate_policy expected = GATE_DEFAULT;
    expected.kind = GATE_KIND_UNSAID; /* the server knows which it has */
    must_apply(&s, "{'gate':{}}");
    assert_gate(&s.tenant.gate, &expected);
    must_apply(&s, "{'gate':{'policy':'decorrelated'}}");
    expected.policy = BACKOFF_DECORRELATED;
    assert_gate(&s.tenant.gate, &expected);
    must_apply(&s, "{'gate':{'policy':'decorrelated','kind':'redis'}}");
    expected.kind = GATE_KIND_REDIS;
    assert_gate(&s.tenant.gate, &expected);
    must_apply(&s, "{'gate':null}");
    assert_gate(&s.tenant.gate, &GATE_DEFAULT);
    end(&s);
}

static void numbers_reach_their_bounds(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    must_apply(&s, "{'max_concurrent_runs':0,'max_queued_runs':0,'idempotency_retention_s':0,"
                   "'weight':1,'gate':{'max_wait_ms':0,'lock_ttl_ms':1,'retry_delay_ms':0},"
                   "'rate_limit':{'per_second':1,'burst':1}}");
    assert_int_equal(s.tenant.max_concurrent_runs, 0);
    assert_int_equal(s.tenant.max_queued_runs, 0);
    assert_int_equal(s.tenant.idempotency_retention_ms, 0);
    assert_int_equal(s.tenant.weight, 1);
    must_apply(&s, "{'max_concurrent_runs':2147483647,'max_queued_runs':2147483647,"
                   "'idempotency_retention_s':3162240000,'weight':1000,"
                   "'gate':{'max_wait_ms':600000,'lock_ttl_ms':600000,'retry_delay_ms':600000},"
                   "'rate_limit':{'per_second':1000000,'burst':1000000}}");
    assert_int_equal(s.tenant.max_concurrent_runs, INT32_MAX);
    assert_int_equal(s.tenant.max_queued_runs, INT32_MAX);
    assert_int_equal(s.tenant.idempotency_retention_ms, INT64_C(3162240000000));
    assert_int_equal(s.tenant.weight, 1000);
    end(&s);
}

static void numbers_past_their_bounds_are_refused(void **state)
{
    (void)state;
    must_refuse("{'max_concurrent_runs':-1}", "max_concurrent_runs");
    must_refuse("{'max_concurrent_runs':2147483648}", "max_concurrent_runs");
    must_refuse("{'max_queued_runs':-1}", "max_queued_runs");
    must_refuse("{'max_queued_runs':2147483648}", "max_queued_runs");
    must_refuse("{'idempotency_retention_s':-1}", "idempotency_retention_s");
    must_refuse("{'idempotency_retention_s':3162240001}", "idempotency_retention_s");
    must_refuse("{'weight':0}", "weight");
    must_refuse("{'weight':1001}", "weight");
    must_refuse("{'gate':{'max_wait_ms':-1}}", "max_wait_ms");
    must_refuse("{'gate':{'max_wait_ms':600001}}", "max_wait_ms");
    must_refuse("{'gate':{'lock_ttl_ms':0}}", "lock_ttl_ms");
    must_refuse("{'gate':{'lock_ttl_ms':600001}}", "lock_ttl_ms");
    must_refuse("{'gate':{'retry_delay_ms':-1}}", "retry_delay_ms");
    must_refuse("{'gate':{'retry_delay_ms':600001}}", "retry_delay_ms");
    must_refuse("{'rate_limit':{'per_second':0,'burst':1}}", "per_second");
    must_refuse("{'rate_limit':{'per_second':1000001,'burst':1}}", "per_second");
    must_refuse("{'rate_limit':{'per_second':1,'burst':0}}", "burst");
    must_refuse("{'rate_limit':{'per_second':1,'burst':1000001}}", "burst");
}

static void values_of_another_type_are_refused(void **state)
{
    (void)state;
    must_refuse("{'name':1}", "name");
    must_refuse("{'at_limit':true}", "at_limit");
    must_refuse("{'max_concurrent_runs':'5'}", "max_concurrent_runs");
    must_refuse("{'max_concurrent_runs':1.5}", "max_concurrent_runs");
    must_refuse("{'max_queued_runs':[]}", "max_queued_runs");
    must_refuse("{'idempotency_retention_s':0.5}", "idempotency_retention_s");
    must_refuse("{'weight':'heavy'}", "weight");
    must_refuse("{'gate':{'policy':7}}", "policy");
    must_refuse("{'gate':{'kind':7}}", "kind");
    must_refuse("[]", "object");
}

static void an_object_that_is_none_is_named(void **state)
{
    (void)state;
    must_refuse("{'gate':5}", "gate");
    must_refuse("{'gate':[]}", "gate");
    must_refuse("{'rate_limit':'fast'}", "rate_limit");
}

static void unknown_names_and_policies_are_refused(void **state)
{
    (void)state;
    must_refuse("{'nmae':'x'}", "nmae");
    must_refuse("{'gate':{'wait':1}}", "wait");
    must_refuse("{'rate_limit':{'per_second':1,'burst':1,'x':1}}", "x");
    must_refuse("{'at_limit':'explode'}", "at_limit");
    must_refuse("{'gate':{'policy':'none'}}", "policy");
    must_refuse("{'gate':{'kind':'memory'}}", "kind");
    must_refuse("{'gate':{'kind':''}}", "kind");
}

static void every_policy_can_be_set(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    for (enum at_limit p = 0; p < AT_LIMIT_COUNT; p++) {
        char body[64];
        (void)snprintf(body, sizeof(body), "{'at_limit':'%s'}", at_limit_name(p));
        must_apply(&s, body);
        assert_int_equal(s.tenant.at_limit, p);
    }
    for (enum backoff_policy p = 0; p < BACKOFF_POLICY_COUNT; p++) {
        char body[64];
        (void)snprintf(body, sizeof(body), "{'gate':{'policy':'%s'}}", backoff_policy_name(p));
        must_apply(&s, body);
        assert_int_equal(s.tenant.gate.policy, p);
    }
    end(&s);
}

static void a_rate_limit_needs_both_numbers(void **state)
{
    (void)state;
    must_refuse("{'rate_limit':{}}", "per_second");
    must_refuse("{'rate_limit':{'per_second':1}}", "burst");
    must_refuse("{'rate_limit':{'burst':1}}", "per_second");
}

static void a_fault_in_one_member_undoes_the_others(void **state)
{
    (void)state;
    must_refuse("{'name':'x','max_concurrent_runs':1,'weight':2,'gate':{},"
                "'idempotency_retention_s':9,'rate_limit':{'per_second':0,'burst':1}}",
                "per_second");
    must_refuse("{'name':'x','weight':2,'unknown':1}", "unknown");
}

static void names_are_bounded(void **state)
{
    (void)state;
    char name[TEXT_MAX + 2];
    memset(name, 'n', sizeof(name));
    struct setup s;
    begin(&s);
    struct json *fits = json_value_of_tree(json_pack("{s:s#}", "name", name, TEXT_MAX));
    assert_int_equal(tenant_apply(&s.tenant, fits, &s.arena, &s.problem), ERR_OK);
    json_free(fits);
    assert_int_equal(s.tenant.name.len, TEXT_MAX);
    struct json *too_long = json_value_of_tree(json_pack("{s:s#}", "name", name, TEXT_MAX + 1));
    assert_int_equal(tenant_apply(&s.tenant, too_long, &s.arena, &s.problem), ERR_FIELD_INVALID);
    json_free(too_long);
    assert_int_equal(s.tenant.name.len, TEXT_MAX);
    end(&s);
}

static void a_full_arena_is_no_memory_and_changes_nothing(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    arena_release(&s.arena);
    arena_init(&s.arena, 1);
    struct tenant before = s.tenant;
    assert_int_equal(apply(&s, "{'name':'x','weight':9}"), ERR_NO_MEMORY);
    assert_same_tenant(&s.tenant, &before);
    end(&s);
}

static void a_queue_without_a_bound_of_its_own_has_the_servers(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    assert_int_equal(tenant_queue_max(&s.tenant), 20);
    must_apply(&s, "{'max_queued_runs':0}");
    assert_int_equal(tenant_queue_max(&s.tenant), 0);
    must_apply(&s, "{'max_queued_runs':null}");
    assert_int_equal(tenant_queue_max(&s.tenant), QUEUED_RUNS_MAX);
    end(&s);
}

/* --- settings as text --- */

static void put_settings(struct buf *out, const struct tenant *t)
{
    buf_clear(out);
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    tenant_put_settings(&o, t);
    json_close(&o, '}');
    assert_true(buf_ok(out));
}

/* What a rollback does: the settings as they were written, over whatever they are by then. */
static void settings_that_were_written_are_read_back_whole(void **state)
{
    (void)state;
    struct tenant kept[] = {full_tenant(), tenant_default(STR("acme"), 0)};
    struct buf text;
    buf_init(&text, 64 * KIB);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        for (size_t other = 0; other < ARRAY_LEN(kept); other++) {
            put_settings(&text, &kept[i]);
            struct setup s;
            begin(&s);
            s.tenant = kept[other];
            struct json *json = json_value_of_tree(parsed_str(buf_str(&text)));
            assert_int_equal(tenant_apply(&s.tenant, json, &s.arena, &s.problem), ERR_OK);
            json_free(json);
            struct tenant expected = kept[i];
            expected.num = kept[other].num;
            expected.settings_version = kept[other].settings_version;
            expected.rate_full_at_ns = kept[other].rate_full_at_ns;
            expected.active_runs = kept[other].active_runs;
            expected.queued_runs = kept[other].queued_runs;
            expected.created_at = kept[other].created_at;
            expected.updated_at = kept[other].updated_at;
            assert_same_tenant(&s.tenant, &expected);
            end(&s);
        }
    }
    buf_release(&text);
}

static void a_kept_gate_is_read_back_or_is_no_gate(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, KIB);
    struct gate_policy gate = {1, 2, 3, BACKOFF_DECORRELATED, GATE_KIND_REDIS};
    struct json_out o = json_out_to(&text);
    gate_policy_put(&o, NULL, &gate);
    struct gate_policy back;
    assert_int_equal(gate_policy_parse(buf_str(&text), &back), ERR_OK);
    assert_gate(&back, &gate);
    assert_int_equal(gate_policy_parse(STR(""), &back), ERR_OK);
    assert_gate(&back, &GATE_DEFAULT);
    /* As an earlier version wrote it. */
    assert_int_equal(gate_policy_parse(STR("{\"max_wait_ms\":2000}"), &back), ERR_OK);
    assert_gate(&back, &GATE_DEFAULT);
    static const char *const BAD[] = {"null", "[]", "{", "{\"policy\":\"none\"}", "{\"x\":1}"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        assert_int_equal(gate_policy_parse(str_of(BAD[i]), &back), ERR_DAMAGED);
    buf_release(&text);
}

static void a_kept_rate_is_read_back_or_is_no_rate(void **state)
{
    (void)state;
    struct rate_limit back;
    assert_int_equal(rate_limit_parse(STR("{\"per_second\":3,\"burst\":4}"), &back), ERR_OK);
    assert_rate(&back, 3, 4);
    assert_int_equal(rate_limit_parse(STR(""), &back), ERR_OK);
    assert_rate(&back, 0, 0);
    static const char *const BAD[] = {"null", "5", "{}", "{\"per_second\":3}",
                                      "{\"per_second\":0,\"burst\":4}"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        assert_int_equal(rate_limit_parse(str_of(BAD[i]), &back), ERR_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_tenant_has_no_limits),
        cmocka_unit_test(ids_are_short_names),
        cmocka_unit_test(policies_have_names),
        cmocka_unit_test(absent_members_stay),
        cmocka_unit_test(null_sets_every_member_back_to_its_default),
        cmocka_unit_test(each_member_is_set_by_itself),
        cmocka_unit_test(a_gate_that_is_given_in_part_gets_defaults_for_the_rest),
        cmocka_unit_test(numbers_reach_their_bounds),
        cmocka_unit_test(numbers_past_their_bounds_are_refused),
        cmocka_unit_test(values_of_another_type_are_refused),
        cmocka_unit_test(an_object_that_is_none_is_named),
        cmocka_unit_test(unknown_names_and_policies_are_refused),
        cmocka_unit_test(every_policy_can_be_set),
        cmocka_unit_test(a_rate_limit_needs_both_numbers),
        cmocka_unit_test(a_fault_in_one_member_undoes_the_others),
        cmocka_unit_test(names_are_bounded),
        cmocka_unit_test(a_full_arena_is_no_memory_and_changes_nothing),
        cmocka_unit_test(a_queue_without_a_bound_of_its_own_has_the_servers),
        cmocka_unit_test(settings_that_were_written_are_read_back_whole),
        cmocka_unit_test(a_kept_gate_is_read_back_or_is_no_gate),
        cmocka_unit_test(a_kept_rate_is_read_back_or_is_no_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
