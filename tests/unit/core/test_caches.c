/* What a connection remembers of types, their versions and workflows: the same as the store says,
 * also when there are more than fit, and when there is no room for the answer. */
#include "store/folder.h"

#include "core/txn/cache/entity_type_cache.h"
#include "core/txn/cache/newest_cache.h"
#include "core/txn/cache/tenant_cache.h"
#include "core/txn/cpu_shares.h"
#include "core/txn/release_rates.h"
#include "core/txn/replay_stats.h"
#include "core/txn/tenant_labels.h"
#include "core/txn/window_stats.h"
#include "core/txn/worker_polls.h"
#include "store/workflows.h"

enum { TENANT = 1, MANY = 700 };

static struct str name_of(char out[static 16], int i)
{
    (void)snprintf(out, 16, "n%d", i);
    return str_of(out);
}

static struct db *open_store(struct folder *folder)
{
    struct db *db = open_writer(path_in(folder, "p.db").text);
    assert_ok(db_begin(db));
    return db;
}

static void close_store(struct db *db)
{
    db_rollback(db);
    db_close(db);
}

/* --- entity types --- */

static struct entity_version version_of(int64_t type, int64_t version)
{
    struct entity_version v = {.type = type,
                               .version = version,
                               .rules = entity_rules_default(),
                               .created_by = STR("tester"),
                               .created_at = 1,
                               .updated_at = version};
    v.rules.queue = STR("queue");
    v.rules.handler = STR("handler");
    return v;
}

static void insert_types(struct db *db, int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        struct entity_type type = {.tenant = TENANT,
                                   .id = name_of(name, i),
                                   .latest_version = i + 1,
                                   .created_at = 1,
                                   .updated_at = 1};
        assert_ok(entity_types_insert(db, &type));
        struct entity_version v = version_of(type.num, i + 1);
        assert_ok(entity_versions_put(db, &v));
    }
}

/* Looks up the ith type and its version; ERR_NO_MEMORY when the answer does not fit the arena. */
static enum err look_up(struct entity_type_cache *cache, struct db *db, int i, size_t arena_max)
{
    char name[16];
    struct arena arena;
    arena_init(&arena, arena_max);
    bool found = false;
    struct entity_type type;
    struct entity_version version;
    enum err e = entity_type_cache_find(cache, db, TENANT, name_of(name, i), &arena, &found, &type);
    if (e == ERR_OK) {
        assert_true(found && str_is(type.id, name));
        assert_int_equal(type.latest_version, i + 1);
        e = entity_type_cache_version(cache, db, type.num, i + 1, &arena, &found, &version);
    }
    if (e == ERR_OK) {
        assert_true(found && str_is(version.rules.queue, "queue"));
        assert_true(str_is(version.rules.handler, "handler") &&
                    str_is(version.created_by, "tester"));
        assert_int_equal(version.updated_at, i + 1);
    }
    arena_release(&arena);
    return e;
}

static void more_types_than_fit_are_all_found(void **state)
{
    struct db *db = open_store(*state);
    struct entity_type_cache *cache = entity_type_cache_new();
    assert_non_null(cache);
    insert_types(db, 100);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 100; i++) {
            assert_ok(look_up(cache, db, i, MIB));
            assert_ok(look_up(cache, db, i, MIB)); /* remembered */
            assert_ok(look_up(cache, db, 7, MIB)); /* used all the time */
        }
        entity_type_cache_forget(cache);
    }
    struct arena arena;
    arena_init(&arena, MIB);
    bool found = true;
    struct entity_type type;
    struct entity_version version;
    assert_ok(entity_type_cache_find(cache, db, TENANT, STR("none"), &arena, &found, &type));
    assert_false(found);
    assert_ok(entity_type_cache_version(cache, db, 1, 77, &arena, &found, &version));
    assert_false(found);
    arena_release(&arena);
    entity_type_cache_free(cache);
    close_store(db);
}

static void an_answer_without_room_says_so(void **state)
{
    struct db *db = open_store(*state);
    struct entity_type_cache *cache = entity_type_cache_new();
    insert_types(db, 1);
    assert_ok(look_up(cache, db, 0, MIB));
    enum err e = ERR_NO_MEMORY;
    for (size_t room = 1; e == ERR_NO_MEMORY; room++)
        e = look_up(cache, db, 0, room);
    assert_ok(e);
    entity_type_cache_free(cache);
    close_store(db);
}

/* Rows of another origin may hold longer names than pawl accepts: they are read each time. */
static void names_that_are_too_long_to_remember_are_read_each_time(void **state)
{
    struct db *db = open_store(*state);
    struct entity_type_cache *cache = entity_type_cache_new();
    struct newest_cache *newest = newest_cache_new();
    static char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    struct str long_name = str_of(text);
    struct entity_type type = {
        .tenant = TENANT, .id = long_name, .latest_version = 1, .created_at = 1, .updated_at = 1};
    assert_ok(entity_types_insert(db, &type));
    for (int64_t i = 1; i <= 3; i++) {
        struct entity_version v = version_of(type.num, i);
        *(i == 1 ? &v.rules.queue : i == 2 ? &v.rules.handler : &v.created_by) = long_name;
        assert_ok(entity_versions_put(db, &v));
    }
    struct workflow_head head = {.id = long_name, .latest_version = 4, .archived_at = -1};
    assert_ok(workflows_put(db, TENANT, &head));
    for (int turn = 0; turn < 2; turn++) {
        struct arena arena;
        arena_init(&arena, MIB);
        bool found = false;
        struct entity_type read;
        struct entity_version version;
        assert_ok(entity_type_cache_find(cache, db, TENANT, long_name, &arena, &found, &read));
        assert_true(found && str_eq(read.id, long_name));
        for (int64_t i = 1; i <= 3; i++) {
            assert_ok(entity_type_cache_version(cache, db, type.num, i, &arena, &found, &version));
            assert_true(found && version.version == i);
        }
        struct workflow_newest known;
        assert_ok(newest_cache_find(newest, db, TENANT, long_name, &known));
        assert_true(known.found && known.version == 4);
        arena_release(&arena);
    }
    newest_cache_free(newest);
    entity_type_cache_free(cache);
    close_store(db);
}

/* --- workflows --- */

static void more_workflows_than_fit_are_all_found(void **state)
{
    struct db *db = open_store(*state);
    struct newest_cache *cache = newest_cache_new();
    assert_non_null(cache);
    char name[16];
    for (int i = 0; i < MANY; i++) {
        struct workflow_head head = {
            .id = name_of(name, i), .latest_version = i + 1, .archived_at = i % 2 == 0 ? -1 : 5};
        assert_ok(workflows_put(db, TENANT, &head));
    }
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < MANY; i++) {
            struct workflow_newest newest;
            assert_ok(newest_cache_find(cache, db, TENANT, name_of(name, i), &newest));
            assert_true(newest.found);
            assert_int_equal(newest.version, i + 1);
            assert_int_equal(newest.archived, i % 2 == 1);
            assert_ok(newest_cache_find(cache, db, 0, name_of(name, i), &newest));
            assert_false(newest.found); /* a tenant that is not stored has none */
        }
    }
    newest_cache_free(cache);
    close_store(db);
}

/* --- nothing --- */

/* As after an allocation that has failed. */
static void what_was_never_made_can_be_freed(void **state)
{
    (void)state;
    entity_type_cache_free(NULL);
    newest_cache_free(NULL);
    tenant_cache_free(NULL);
    cpu_shares_free(NULL);
    release_rates_free(NULL);
    replay_stats_free(NULL);
    tenant_labels_free(NULL);
    window_stats_free(NULL);
    worker_polls_free(NULL);
}

/* More tenants than have an account: the one that was not used for longest begins anew. */
static void more_tenants_than_accounts_each_have_their_share(void **state)
{
    (void)state;
    struct cpu_shares *s = cpu_shares_new();
    assert_non_null(s);
    cpu_shares_turn(s);
    for (int64_t tenant = 1; tenant <= 20000; tenant++) {
        cpu_shares_spend(s, tenant, 5000, CPU_STEPS_PER_TURN, 1000000);
        assert_true(cpu_shares_used_up(s, tenant, 5000));
    }
    assert_false(cpu_shares_used_up(s, 1, 5000));
    cpu_shares_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(more_types_than_fit_are_all_found),
        folder_test(an_answer_without_room_says_so),
        folder_test(names_that_are_too_long_to_remember_are_read_each_time),
        folder_test(more_workflows_than_fit_are_all_found),
        cmocka_unit_test(what_was_never_made_can_be_freed),
        cmocka_unit_test(more_tenants_than_accounts_each_have_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
