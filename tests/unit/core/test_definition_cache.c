/* Parsed definitions that are kept: loaded once, shared while borrowed, the longest unused dropped
 * first. */
#include "store/folder.h"

#include "core/txn/cache/definition_cache.h"
#include "store/workflows.h"

/* The name of the first step tells where a definition came from. */
static void store_version(struct db *db, int64_t tenant, const char *id, int64_t version)
{
    char text[200];
    (void)snprintf(text, sizeof(text),
                   "{\"steps\":[{\"name\":\"t%d-%s-v%d\",\"type\":\"task\",\"handler\":\"h\"}]}",
                   (int)tenant, id, (int)version);
    struct workflow_version v = {.version = version,
                                 .digest = sha256_of(str_of(text)),
                                 .definition = str_of(text),
                                 .created_by = STR("me")};
    assert_ok(workflows_add_version(db, tenant, str_of(id), &v));
}

static const struct definition *get(struct definition_cache *cache, struct db *db, int64_t tenant,
                                    const char *id, int64_t version)
{
    struct problem p;
    problem_init(&p);
    const struct definition *def = NULL;
    assert_ok(definition_cache_get(cache, db, tenant, str_of(id), version, &p, &def));
    char name[64];
    (void)snprintf(name, sizeof(name), "t%d-%s-v%d", (int)tenant, id, (int)version);
    assert_str(def->steps[0].name, name);
    problem_release(&p);
    return def;
}

static enum err try_get(struct definition_cache *cache, struct db *db, int64_t tenant,
                        const char *id, int64_t version)
{
    struct problem p;
    problem_init(&p);
    const struct definition *def = NULL;
    enum err e = definition_cache_get(cache, db, tenant, str_of(id), version, &p, &def);
    assert_int_equal(e == ERR_OK, def != NULL);
    problem_release(&p);
    return e;
}

/* With its rows gone, only what is kept can be given. */
static void forget_rows(struct db *db)
{
    static const char SQL[] = "DELETE FROM workflow_versions";
    run_sql(db, SQL);
}

static void a_definition_is_loaded_once(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct definition_cache *cache = definition_cache_new();
    store_version(db, 1, "w", 1);
    const struct definition *first = get(cache, db, 1, "w", 1);
    forget_rows(db);
    assert_ptr_equal(get(cache, db, 1, "w", 1), first);
    definition_cache_trim(cache);
    assert_ptr_equal(get(cache, db, 1, "w", 1), first);
    definition_cache_free(cache);
    db_close(db);
}

static void tenants_workflows_and_versions_are_told_apart(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct definition_cache *cache = definition_cache_new();
    for (int64_t tenant = 1; tenant <= 3; tenant++) {
        for (int64_t version = 1; version <= 3; version++) {
            store_version(db, tenant, "w", version);
            store_version(db, tenant, "x", version);
        }
    }
    for (int round = 0; round < 2; round++) {
        for (int64_t tenant = 1; tenant <= 3; tenant++) {
            for (int64_t version = 1; version <= 3; version++) {
                (void)get(cache, db, tenant, "w", version);
                (void)get(cache, db, tenant, "x", version);
            }
        }
    }
    assert_int_equal(try_get(cache, db, 1, "w", 4), ERR_WORKFLOW_NOT_FOUND);
    assert_int_equal(try_get(cache, db, 4, "w", 1), ERR_WORKFLOW_NOT_FOUND);
    assert_int_equal(try_get(cache, db, 1, "y", 1), ERR_WORKFLOW_NOT_FOUND);
    definition_cache_free(cache);
    db_close(db);
}

static void what_is_borrowed_stays_until_the_trim(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct definition_cache *cache = definition_cache_new();
    enum { COUNT = DEFINITION_CACHE_MAX + 40 };
    static const struct definition *borrowed[COUNT + 1];
    assert_ok(db_begin(db));
    for (int64_t v = 1; v <= COUNT; v++)
        store_version(db, 1, "w", v);
    assert_ok(db_commit(db));
    for (int64_t v = 1; v <= COUNT; v++)
        borrowed[v] = get(cache, db, 1, "w", v);
    for (int64_t v = 1; v <= COUNT; v++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "t1-w-v%d", (int)v);
        assert_str(borrowed[v]->steps[0].name, name);
    }
    definition_cache_free(cache);
    db_close(db);
}

static void the_longest_unused_are_dropped_first(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct definition_cache *cache = definition_cache_new();
    enum { EXTRA = 10, COUNT = DEFINITION_CACHE_MAX + EXTRA };
    assert_ok(db_begin(db));
    for (int64_t v = 1; v <= COUNT; v++)
        store_version(db, 1, "w", v);
    assert_ok(db_commit(db));
    for (int64_t v = 1; v <= COUNT; v++)
        (void)get(cache, db, 1, "w", v);
    /* The first five are used again, so that the next ten are the longest unused. */
    for (int64_t v = 1; v <= 5; v++)
        (void)get(cache, db, 1, "w", v);
    definition_cache_trim(cache);
    forget_rows(db);
    for (int64_t v = 1; v <= COUNT; v++) {
        bool dropped = v > 5 && v <= 5 + EXTRA;
        assert_int_equal(try_get(cache, db, 1, "w", v), dropped ? ERR_WORKFLOW_NOT_FOUND : ERR_OK);
    }
    definition_cache_trim(cache); /* within the bound nothing goes */
    for (int64_t v = 1; v <= 5; v++)
        (void)get(cache, db, 1, "w", v);
    definition_cache_free(cache);
    db_close(db);
}

static void a_definition_that_does_not_parse_is_an_error_and_not_kept(void **state)
{
    static const char SQL[] = "UPDATE workflow_versions SET definition = '{'";
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct definition_cache *cache = definition_cache_new();
    store_version(db, 1, "w", 1);
    run_sql(db, SQL);
    assert_int_not_equal(try_get(cache, db, 1, "w", 1), ERR_OK);
    forget_rows(db);
    store_version(db, 1, "w", 1);
    (void)get(cache, db, 1, "w", 1);
    definition_cache_free(cache);
    db_close(db);
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    definition_cache_free(NULL);
    definition_cache_free(definition_cache_new());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_definition_is_loaded_once),
        folder_test(tenants_workflows_and_versions_are_told_apart),
        folder_test(what_is_borrowed_stays_until_the_trim),
        folder_test(the_longest_unused_are_dropped_first),
        folder_test(a_definition_that_does_not_parse_is_an_error_and_not_kept),
        cmocka_unit_test(freeing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
