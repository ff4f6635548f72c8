/* Tenants as rows, whose turn it is among those with queued runs, and the settings they had. */
#include "store/folder.h"

#include "domain/same_tenant.h"
#include "store/tenants.h"

static struct tenant insert_tenant(struct db *db, const char *id)
{
    struct tenant t = tenant_default(str_of(id), 1000);
    assert_ok(tenants_insert(db, &t));
    assert_true(t.num > 0);
    return t;
}

/* --- rows --- */

static void assert_row(struct db *db, const struct tenant *expected)
{
    struct arena arena;
    arena_init(&arena, MIB);
    struct tenant back;
    bool found = false;
    assert_ok(tenants_find(db, expected->id, &arena, &found, &back));
    assert_true(found);
    assert_same_tenant(&back, expected);
    found = false;
    assert_ok(tenants_find_num(db, expected->num, &arena, &found, &back));
    assert_true(found);
    assert_same_tenant(&back, expected);
    arena_release(&arena);
}

static void a_tenant_comes_back_as_it_was_written(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct tenant plain = insert_tenant(db, "plain");
    struct tenant full = {
        .id = STR("full"),
        .name = STR("Full"),
        .max_concurrent_runs = 0,
        .max_queued_runs = 2,
        .at_limit = AT_LIMIT_COALESCE,
        .idempotency_retention_ms = 3,
        .weight = 4,
        .gate = {5, 6, 7, BACKOFF_DECORRELATED},
        .rate_limit = {8, 9},
        .settings_version = 10,
        .rate_full_at_ns = INT64_C(1700000000000000000),
        .active_runs = 11,
        .queued_runs = 12,
        .created_at = 13,
        .updated_at = 14,
    };
    assert_ok(tenants_insert(db, &full));
    assert_int_not_equal(full.num, plain.num);
    assert_row(db, &plain);
    assert_row(db, &full);
    db_close(db);
}

/* Two of them would be one in a cache by id. */
static void a_tenant_whose_id_is_none_is_damaged(void **state)
{
    static const char *const DAMAGES[] = {
        "UPDATE tenants SET id = ''",
        "UPDATE tenants SET id = 'a b'",
        "UPDATE tenants SET id = CAST(zeroblob(4) AS TEXT)",
    };
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    struct tenant t = insert_tenant(db, "acme");
    struct arena arena;
    arena_init(&arena, MIB);
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        struct raw raw = raw_open(file.text);
        raw_exec(&raw, DAMAGES[i]);
        raw_close(&raw);
        struct tenant back;
        bool found = false;
        assert_int_equal(tenants_find_num(db, t.num, &arena, &found, &back), ERR_DAMAGED);
    }
    arena_release(&arena);
    db_close(db);
}

/* With --dev a worker of all tenants makes it, as any name that is used. */
static void the_tenant_of_all_workers_is_not_damaged(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct tenant t = insert_tenant(db, "*");
    struct arena arena;
    struct tenant back;
    bool found = false;
    arena_init(&arena, MIB);
    assert_ok(tenants_find_num(db, t.num, &arena, &found, &back));
    assert_true(found);
    arena_release(&arena);
    db_close(db);
}

static void settings_and_counters_are_written_apart(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct tenant kept = insert_tenant(db, "acme");
    struct tenant changed = kept;
    changed.name = STR("Acme");
    changed.max_concurrent_runs = 1;
    changed.max_queued_runs = 2;
    changed.at_limit = AT_LIMIT_QUEUE;
    changed.idempotency_retention_ms = 3;
    changed.weight = 4;
    changed.gate = (struct gate_policy){5, 6, 7, BACKOFF_FIXED, GATE_KIND_REDIS};
    changed.rate_limit = (struct rate_limit){8, 9};
    changed.settings_version = 10;
    changed.updated_at = 2000;
    changed.active_runs = 11;
    changed.queued_runs = 12;
    changed.rate_full_at_ns = 13;
    assert_ok(tenants_update_settings(db, &changed));
    struct tenant expected = changed;
    expected.active_runs = expected.queued_runs = expected.rate_full_at_ns = 0;
    assert_row(db, &expected);
    assert_ok(tenants_update_counters(db, &changed));
    assert_row(db, &changed);
    /* And back to none of them. */
    kept.active_runs = 11;
    kept.queued_runs = 12;
    kept.rate_full_at_ns = 13;
    assert_ok(tenants_update_settings(db, &kept));
    assert_row(db, &kept);
    db_close(db);
}

/* --- who is in use --- */

struct names {
    char text[256];
};

static void note_tenant(void *ctx, const struct tenant *t)
{
    struct names *names = ctx;
    size_t len = strlen(names->text);
    (void)snprintf(names->text + len, sizeof(names->text) - len, "%.*s ", STR_ARG(t->id));
}

static void those_with_a_limit_or_runs_are_in_use(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    (void)insert_tenant(db, "idle");
    struct tenant limited = insert_tenant(db, "limited");
    struct tenant busy = insert_tenant(db, "busy");
    struct tenant waiting = insert_tenant(db, "waiting");
    limited.max_concurrent_runs = 0;
    busy.active_runs = 1;
    waiting.queued_runs = 1;
    assert_ok(tenants_update_settings(db, &limited));
    assert_ok(tenants_update_counters(db, &busy));
    assert_ok(tenants_update_counters(db, &waiting));
    struct arena arena;
    arena_init(&arena, MIB);
    struct names names = {""};
    assert_ok(tenants_in_use(db, &arena, note_tenant, &names));
    assert_null(strstr(names.text, "idle"));
    assert_contains(names.text, "limited ");
    assert_contains(names.text, "busy ");
    assert_contains(names.text, "waiting ");
    arena_release(&arena);
    db_close(db);
}

/* --- earlier settings --- */

static void keep(struct db *db, int64_t tenant, int64_t version)
{
    char json[32];
    (void)snprintf(json, sizeof(json), "{\"v\":%d}", (int)version);
    struct settings s = {tenant, version, str_of(json), 1000 + version, STR("me")};
    assert_ok(settings_keep(db, &s));
}

static void assert_kept(struct db *db, int64_t tenant, int64_t version, bool expected)
{
    struct arena arena;
    arena_init(&arena, MIB);
    struct settings s;
    bool found = !expected;
    assert_ok(settings_find(db, tenant, version, &arena, &found, &s));
    if (found != expected)
        fail_msg("version %d of tenant %d", (int)version, (int)tenant);
    if (found) {
        char json[32];
        (void)snprintf(json, sizeof(json), "{\"v\":%d}", (int)version);
        assert_int_equal(s.tenant, tenant);
        assert_int_equal(s.version, version);
        assert_str(s.json, json);
        assert_int_equal(s.at, 1000 + version);
        assert_str(s.actor, "me");
    }
    arena_release(&arena);
}

static void settings_are_found_by_tenant_and_version(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_kept(db, 1, 1, false);
    keep(db, 1, 1);
    keep(db, 1, 2);
    keep(db, 2, 3);
    assert_kept(db, 1, 1, true);
    assert_kept(db, 1, 2, true);
    assert_kept(db, 2, 3, true);
    assert_kept(db, 1, 3, false);
    assert_kept(db, 2, 1, false);
    assert_kept(db, 3, 1, false);
    db_close(db);
}

static void a_version_that_is_kept_is_not_written_over(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    keep(db, 1, 1);
    struct settings other = {1, 1, STR("{\"other\":true}"), 5, STR("somebody")};
    assert_ok(settings_keep(db, &other));
    assert_kept(db, 1, 1, true);
    assert_int_equal(number_of(db, "SELECT count(*) FROM tenant_settings"), 1);
    db_close(db);
}

static void only_so_many_versions_are_kept(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(db_begin(db));
    keep(db, 2, 1); /* another tenant's stays */
    for (int64_t version = 1; version <= SETTINGS_KEPT_MAX; version++)
        keep(db, 1, version);
    assert_kept(db, 1, 1, true); /* a hundred, the present one among them */
    keep(db, 1, SETTINGS_KEPT_MAX + 1);
    assert_kept(db, 1, 1, false);
    assert_kept(db, 1, 2, true);
    keep(db, 1, SETTINGS_KEPT_MAX + 50);
    assert_kept(db, 1, 50, false);
    assert_kept(db, 1, 51, true);
    assert_kept(db, 2, 1, true);
    assert_ok(db_commit(db));
    db_close(db);
}

struct versions {
    int64_t seen[SETTINGS_KEPT_MAX];
    size_t count;
};

static void note_version(void *ctx, const struct settings *s)
{
    struct versions *v = ctx;
    assert_true(v->count < ARRAY_LEN(v->seen));
    assert_int_equal(s->tenant, 1);
    assert_int_equal(s->at, 1000 + s->version);
    v->seen[v->count++] = s->version;
}

static void settings_are_listed_newest_first(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct versions v = {.count = 0};
    assert_ok(settings_list(db, 1, INT64_MAX, 10, note_version, &v));
    assert_int_equal(v.count, 0);
    for (int64_t version = 1; version <= 9; version++) {
        keep(db, 1, version);
        keep(db, 2, version + 3);
    }
    static const struct {
        int64_t before, limit;
        int64_t first;
        size_t count;
    } PAGES[] = {
        {INT64_MAX, 4, 9, 4}, {6, 4, 5, 4}, {2, 4, 1, 1}, {1, 4, 0, 0}, {INT64_MAX, 50, 9, 9}};
    for (size_t i = 0; i < ARRAY_LEN(PAGES); i++) {
        v.count = 0;
        assert_ok(settings_list(db, 1, PAGES[i].before, PAGES[i].limit, note_version, &v));
        assert_int_equal(v.count, PAGES[i].count);
        for (size_t k = 0; k < v.count; k++)
            assert_int_equal(v.seen[k], PAGES[i].first - (int64_t)k);
    }
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_tenant_comes_back_as_it_was_written),
        folder_test(a_tenant_whose_id_is_none_is_damaged),
        folder_test(the_tenant_of_all_workers_is_not_damaged),
        folder_test(settings_and_counters_are_written_apart),
        folder_test(those_with_a_limit_or_runs_are_in_use),
        folder_test(settings_are_found_by_tenant_and_version),
        folder_test(a_version_that_is_kept_is_not_written_over),
        folder_test(only_so_many_versions_are_kept),
        folder_test(settings_are_listed_newest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
