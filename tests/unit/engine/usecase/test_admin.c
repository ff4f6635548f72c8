/* Tenants, API keys, idempotency records and the audit trail. */
#include "engine/usecase/asking.h"

#include "store/keys.h"

/* --- API keys --- */

static struct uuid create_key(struct fixture *fixture, const char *tenant)
{
    struct create_key_input in = {str_of(tenant), ROLE_OPERATOR, STR("label")};
    json_t *made = answer_of(fixture, &UC_CREATE_KEY, &in);
    struct uuid id = id_in(made, "id");
    json_decref(made);
    return id;
}

static size_t keys_of(struct fixture *fixture, const char *tenant)
{
    struct list_input in = {.limit = 10};
    struct asked a = ask_as(fixture, tenant, true, &UC_LIST_KEYS, &in);
    size_t count = items_in(a.body);
    asked_release(&a);
    return count;
}

static void a_key_is_seen_and_revoked_by_its_own_tenant_and_by_the_server(void **state)
{
    struct fixture *fixture = *state;
    struct key_input ours = {create_key(fixture, "acme")};
    struct key_input theirs = {create_key(fixture, "other")};
    struct key_input all = {create_key(fixture, "*")};
    assert_int_equal(keys_of(fixture, "acme"), 1);
    assert_int_equal(keys_of(fixture, "*"), 3);
    assert_refuses(fixture, &UC_REVOKE_KEY, &theirs, ERR_NOT_FOUND);
    must_do(fixture, &UC_REVOKE_KEY, &ours);
    struct asked a = ask_as(fixture, "*", true, &UC_REVOKE_KEY, &all);
    assert_int_equal(a.err, ERR_OK);
    asked_release(&a);
}

static void the_last_use_of_a_key_is_kept(void **state)
{
    struct fixture *fixture = *state;
    struct key_use uses[] = {{create_key(fixture, "acme"), 1700000000000},
                             {create_key(fixture, "acme"), 1700000000001}};
    struct touch_keys_input in = {uses, ARRAY_LEN(uses)};
    struct asked a = ask_as(fixture, "*", true, &UC_TOUCH_KEYS, &in);
    assert_int_equal(a.err, ERR_OK);
    assert_int_equal(in_file(fixture, "SELECT max(last_used_at) FROM api_keys"), 1700000000001);
}

static void a_stranger_cannot_name_another_tenant(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{}");
    struct tenant_input in = {STR("acme")};
    struct call c;
    call_init(&c, fixture, &UC_GET_TENANT);
    c.op.caller.tenant = STR("other");
    c.op.caller.all_tenants = false;
    c.op.input = &in;
    assert_int_equal(perform(&c), ERR_TENANT_NOT_FOUND);
    call_release(&c);
    struct create_key_input key = {STR("acme"), ROLE_ADMIN, STR("mine")};
    call_init(&c, fixture, &UC_CREATE_KEY);
    c.op.caller.tenant = STR("other");
    c.op.caller.all_tenants = false;
    c.op.input = &key;
    assert_int_equal(perform(&c), ERR_TENANT_NOT_FOUND);
    call_release(&c);
}

/* --- idempotency records --- */

static enum err start_with_key(struct fixture *fixture, const char *key, const char *body)
{
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, key, body);
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

static void a_record_is_shown_with_its_replays_and_released(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    assert_int_equal(start_with_key(fixture, "k", "{}"), ERR_OK);
    assert_int_equal(start_with_key(fixture, "k", "{}"), ERR_OK);
    assert_int_equal(start_with_key(fixture, "k", "[]"), ERR_IDEM_KEY_REUSED);
    struct idem_input in = {STR("k")};
    must_do(fixture, &UC_GET_IDEM, &in);
    must_do(fixture, &UC_RELEASE_IDEM, &in);
    assert_refuses(fixture, &UC_RELEASE_IDEM, &in, ERR_IDEM_KEY_NOT_FOUND);
    assert_int_equal(start_with_key(fixture, "k", "[]"), ERR_OK);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 2);
}

/* --- tenants --- */

static void an_administrator_of_one_tenant_sees_no_other(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':3}");
    static const struct {
        const char *tenant;
        enum err err;
    } ASKED[] = {{"acme", ERR_OK}, {"other", ERR_TENANT_NOT_FOUND}};
    for (size_t i = 0; i < ARRAY_LEN(ASKED); i++) {
        struct tenant_input in = {str_of(ASKED[i].tenant)};
        struct call c;
        call_init(&c, fixture, &UC_GET_TENANT);
        c.op.caller.all_tenants = false;
        c.op.input = &in;
        assert_int_equal(perform(&c), ASKED[i].err);
        call_release(&c);
    }
}

static void the_record_of_a_change_without_a_run_names_none(void **state)
{
    struct fixture *fixture = *state;
    struct json *body = json_value_of_tree(json_of("{'max_concurrent_runs':3}"));
    struct call c;
    call_init(&c, fixture, &UC_PUT_TENANT);
    c.input.tenant = (struct put_tenant_input){STR("acme"), body};
    call_key(&c, "k", "{}");
    must_perform(&c);
    call_release(&c);
    json_free(body);
    struct idem_input in = {STR("k")};
    json_t *record = answer_of(fixture, &UC_GET_IDEM, &in);
    assert_true(json_is_null(json_object_get(record, "run_id")));
    json_decref(record);
}

static void settings_that_are_damaged_are_not_gone_back_to(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':3}");
    put_tenant(fixture, "{'max_concurrent_runs':4}");
    tamper(fixture, "UPDATE tenant_settings SET settings = '{\"max_concurrent_runs\":\"x\"}'"
                    " WHERE version = (SELECT min(version) FROM tenant_settings)");
    struct rollback_tenant_input back = {STR("acme"), -1};
    assert_refuses(fixture, &UC_ROLLBACK_TENANT, &back, ERR_DAMAGED);
}

static void settings_of_a_gate_need_a_gate(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{}");
    struct json *body = json_value_of_tree(json_of("{'gate':{'max_wait_ms':5}}"));
    struct put_tenant_input in = {STR("acme"), body};
    assert_refuses(fixture, &UC_PUT_TENANT, &in, ERR_FIELD_INVALID);
    json_free(body);
    body = json_value_of_tree(json_of("{'max_concurrent_runs':'many'}"));
    in.body = body;
    assert_refuses(fixture, &UC_PUT_TENANT, &in, ERR_FIELD_INVALID);
    json_free(body);
}

/* --- the audit trail --- */

static void make_entries(struct fixture *fixture)
{
    for (int i = 0; i < 5; i++)
        (void)create_key(fixture, i % 2 == 0 ? "acme" : "*");
    put_workflow(fixture, "w", ONE_TASK);
}

static size_t exported(struct fixture *fixture, const char *tenant, const char *action)
{
    size_t lines = 0;
    int64_t chain = -1;
    int64_t after = 0;
    while (after >= 0) {
        struct export_audit_input in = {.chain = chain,
                                        .after = after,
                                        .ret_chain = &chain,
                                        .ret_next = &after,
                                        .action = str_of(action)};
        struct call c;
        call_init(&c, fixture, &UC_EXPORT_AUDIT);
        c.op.caller.tenant = str_of(tenant);
        c.op.input = &in;
        must_perform(&c);
        for (size_t i = 0; i < c.op.answer.body.len; i++)
            lines += c.op.answer.body.ptr[i] == '\n';
        call_release(&c);
    }
    return lines;
}

static void all_entries_are_exported(void **state)
{
    struct fixture *fixture = *state;
    make_entries(fixture);
    assert_int_equal(exported(fixture, "acme", NULL), 4);
    assert_int_equal(exported(fixture, "acme", "key.*"), 3);
    assert_int_equal(exported(fixture, "*", NULL), 2);
    assert_int_equal(exported(fixture, "fresh", NULL), 0);
}

static void an_export_of_many_entries_comes_in_slices(void **state)
{
    struct fixture *fixture = *state;
    char name[200];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    struct create_key_input in = {STR("acme"), ROLE_ADMIN, str_of(name)};
    for (int i = 0; i < 200; i++)
        must_do(fixture, &UC_CREATE_KEY, &in);
    assert_int_equal(exported(fixture, "acme", NULL), 200);
}

static json_t *verify(struct fixture *fixture, const char *tenant)
{
    struct asked a = ask_as(fixture, tenant, true, &UC_VERIFY_AUDIT, NULL);
    assert_int_equal(a.err, ERR_OK);
    return a.body;
}

static void a_chain_that_somebody_has_changed_is_named(void **state)
{
    struct fixture *fixture = *state;
    make_entries(fixture);
    static const char *const CALLERS[] = {"acme", "*", "fresh"};
    for (size_t i = 0; i < ARRAY_LEN(CALLERS); i++) {
        json_t *good = verify(fixture, CALLERS[i]);
        assert_true(json_is_true(json_object_get(good, "ok")));
        assert_true(json_is_null(json_object_get(good, "broken")));
        json_decref(good);
    }
    tamper(fixture, "UPDATE audit SET actor = 'somebody' WHERE tenant <> 0 AND seq = 2");
    json_t *bad = verify(fixture, "acme");
    assert_false(json_is_true(json_object_get(bad, "ok")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(bad, "broken"), "seq")), 2);
    json_decref(bad);
    tamper(fixture, "UPDATE audit SET actor = 'somebody' WHERE tenant = 0;"
                    "UPDATE tenants SET id = 'gone' WHERE num < 0");
    bad = verify(fixture, "*");
    assert_false(json_is_true(json_object_get(bad, "ok")));
    assert_non_null(json_object_get(json_object_get(bad, "broken"), "tenant"));
    json_decref(bad);
}

/* The tenant's entries so far come from another shard, and it goes on with a chain of its own. */
static void join_chain(struct fixture *fixture)
{
    tamper(fixture, "UPDATE audit SET tenant = 900 WHERE tenant IN (SELECT num FROM tenants"
                    " WHERE id = 'acme');"
                    "UPDATE audit_heads SET tenant = 900 WHERE tenant IN (SELECT num FROM tenants"
                    " WHERE id = 'acme');"
                    "INSERT INTO audit_chains SELECT 900, num, num FROM tenants WHERE id = 'acme'");
    (void)create_key(fixture, "acme");
}

/* The `seq` of all entries, page by page, those of the chain that joined with 900 added. */
static size_t list_trail(struct fixture *fixture, bool newest_first, int64_t seqs[static 8])
{
    char cursor[CURSOR_MAX] = "";
    size_t count = 0;
    do {
        struct list_audit_input in = {.newest_first = newest_first, .limit = 2};
        if (cursor[0] != '\0')
            in.cursor = str_of(cursor);
        struct asked a = ask_as(fixture, "acme", true, &UC_LIST_AUDIT, &in);
        assert_int_equal(a.err, ERR_OK);
        size_t i;
        json_t *item;
        json_array_foreach (json_object_get(a.body, "items"), i, item) {
            assert_true(count < 8);
            seqs[count++] = json_integer_value(json_object_get(item, "seq")) +
                            json_integer_value(json_object_get(item, "chain"));
        }
        const char *next = json_string_value(json_object_get(a.body, "next_cursor"));
        (void)snprintf(cursor, sizeof(cursor), "%s", next != NULL ? next : "");
        json_decref(a.body);
    } while (cursor[0] != '\0');
    return count;
}

static void a_trail_goes_through_the_chains_that_joined(void **state)
{
    static const int64_t OLDEST_FIRST[] = {901, 902, 903, 904, 1};
    struct fixture *fixture = *state;
    int64_t seqs[8];
    make_entries(fixture);
    join_chain(fixture);
    assert_int_equal(list_trail(fixture, false, seqs), 5);
    assert_memory_equal(seqs, OLDEST_FIRST, sizeof(OLDEST_FIRST));
    assert_int_equal(list_trail(fixture, true, seqs), 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(seqs[i], OLDEST_FIRST[4 - i]);
    assert_int_equal(exported(fixture, "acme", NULL), 5);
}

static void a_cursor_leads_into_no_chain_of_another_tenant(void **state)
{
    static const char *const CURSORS[] = {"900.0", "901.0", "900.", "900.-1", "-1.0", ".", "x.1"};
    struct fixture *fixture = *state;
    make_entries(fixture);
    join_chain(fixture);
    (void)create_key(fixture, "other");
    for (size_t i = 0; i < ARRAY_LEN(CURSORS); i++) {
        struct list_audit_input in = {.limit = 2, .cursor = str_of(CURSORS[i])};
        struct asked a = ask_as(fixture, "other", true, &UC_LIST_AUDIT, &in);
        assert_int_equal(a.err, ERR_CURSOR_INVALID);
        json_decref(a.body);
    }
}

static void the_ends_of_all_chains_of_a_tenant_are_told(void **state)
{
    struct fixture *fixture = *state;
    make_entries(fixture);
    join_chain(fixture);
    json_t *good = verify(fixture, "acme");
    const json_t *heads = json_object_get(good, "heads");
    assert_true(json_is_true(json_object_get(good, "ok")));
    assert_int_equal(json_integer_value(json_object_get(good, "checked")), 5);
    assert_int_equal(json_array_size(heads), 2);
    assert_null(json_object_get(json_array_get(heads, 0), "chain"));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(heads, 1), "chain")), 900);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(heads, 1), "seq")), 4);
    json_decref(good);
    tamper(fixture, "UPDATE audit SET actor = 'somebody' WHERE tenant = 900 AND seq = 3");
    json_t *bad = verify(fixture, "acme");
    const json_t *broken = json_object_get(bad, "broken");
    assert_int_equal(json_integer_value(json_object_get(broken, "chain")), 900);
    assert_int_equal(json_integer_value(json_object_get(broken, "seq")), 3);
    assert_string_equal(json_string_value(json_object_get(broken, "tenant")), "acme");
    json_decref(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_key_is_seen_and_revoked_by_its_own_tenant_and_by_the_server),
        fixture_test(the_last_use_of_a_key_is_kept),
        fixture_test(a_stranger_cannot_name_another_tenant),
        fixture_test(a_record_is_shown_with_its_replays_and_released),
        fixture_test(an_administrator_of_one_tenant_sees_no_other),
        fixture_test(the_record_of_a_change_without_a_run_names_none),
        fixture_test(settings_that_are_damaged_are_not_gone_back_to),
        fixture_test(settings_of_a_gate_need_a_gate),
        fixture_test(all_entries_are_exported),
        fixture_test(an_export_of_many_entries_comes_in_slices),
        fixture_test(a_chain_that_somebody_has_changed_is_named),
        fixture_test(a_trail_goes_through_the_chains_that_joined),
        fixture_test(a_cursor_leads_into_no_chain_of_another_tenant),
        fixture_test(the_ends_of_all_chains_of_a_tenant_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
