/* Whose a number is: a run's, an entity's, or nobody's any more; also along the feed. */
#include "store/entity_rows.h"

#include "store/outbox/feed.h"
#include "store/owners.h"

/* 2 is a run, 5 and 6 are entities; 7 was one, and so was 8, of which not everything is told yet.
 * Generations of 5 are to go. */
static void put_owners(const char *path)
{
    put_rows(path, ENTITY_STAGE);
    put_rows(path, "INSERT INTO runs (num, id, tenant, workflow_id, workflow_version, status,"
                   " version, priority, input, state, labels, created_by, created_at) VALUES"
                   " (2, x'00000000000000000000000000000002', 1, 'refund', 1, 'running', 1, 0, '1',"
                   " '{}', '{}', 'me', 1)");
    put_entity(path, &(struct entity_plan){5, 1, 3, 1, 0});
    put_entity(path, &(struct entity_plan){6, 1, 3, 1, 0});
    put_rows(path,
             "INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at) VALUES"
             " (1, 1, 2, 1, 4, 1), (2, 1, 5, 1, 2, 1), (3, 1, 7, 1, 9, 1), (4, 1, 6, 1, 3, 1),"
             " (5, 1, 8, 1, 3, 1);"
             "INSERT INTO entity_sweeps (entity, through, deleted, id, tenant, type, name,"
             " deleted_at) VALUES (5, 1, 0, NULL, NULL, NULL, NULL, NULL),"
             " (8, 9, 1, CAST('0000000000000008' AS BLOB), 1, 1, 'e8', 1)");
}

static void a_number_is_a_runs_or_an_entitys_or_nobodys(void **state)
{
    const struct folder *folder = *state;
    struct path file = path_in(folder, "p.db");
    struct db *db = open_writer(file.text);
    struct arena arena;
    struct owner owner;
    bool found = false;
    arena_init(&arena, 64 * KIB);
    put_owners(file.text);
    assert_ok(owners_find(db, 2, &arena, &found, &owner));
    assert_true(found && !owner.is_entity && str_is(owner.workflow_id, "refund"));
    assert_int_equal(owner.id.bytes[15], 2);
    assert_null(owner.name.ptr);
    assert_ok(owners_find(db, 5, &arena, &found, &owner));
    assert_true(found && owner.is_entity && str_is(owner.type, "member"));
    assert_true(str_is(owner.name, "e5"));
    assert_memory_equal(owner.id.bytes, "0000000000000005", 16);
    assert_null(owner.workflow_id.ptr);
    assert_ok(owners_find(db, 8, &arena, &found, &owner));
    assert_true(found && owner.is_entity && str_is(owner.type, "member"));
    assert_true(str_is(owner.name, "e8"));
    assert_memory_equal(owner.id.bytes, "0000000000000008", 16);
    assert_ok(owners_find(db, 7, &arena, &found, &owner));
    assert_false(found);
    arena_release(&arena);
    db_close(db);
}

static void names_are_not_kept_where_there_is_no_room(void **state)
{
    const struct folder *folder = *state;
    struct path file = path_in(folder, "p.db");
    struct db *db = open_writer(file.text);
    struct arena arena;
    struct owner owner;
    bool found = false;
    arena_init(&arena, 0);
    put_owners(file.text);
    assert_int_equal(owners_find(db, 2, &arena, &found, &owner), ERR_NO_MEMORY);
    assert_int_equal(owners_find(db, 5, &arena, &found, &owner), ERR_NO_MEMORY);
    assert_ok(owners_find(db, 7, &arena, &found, &owner));
    arena_release(&arena);
    db_close(db);
}

/* --- the feed --- */

struct seen_events {
    char text[256];
    size_t room;
};

static bool note(void *ctx, const struct feed_source *s)
{
    struct seen_events *t = ctx;
    size_t len = strlen(t->text);
    struct str who = !s->has_owner        ? STR("nobody")
                     : s->owner.is_entity ? s->owner.name
                                          : s->owner.workflow_id;
    assert_true(str_is(s->tenant, "acme"));
    (void)snprintf(t->text + len, sizeof(t->text) - len, "%lld %.*s;", (long long)s->row.num,
                   STR_ARG(who));
    return --t->room > 0;
}

static void rows_of_the_feed_say_whose_they_are(void **state)
{
    const struct folder *folder = *state;
    struct path file = path_in(folder, "p.db");
    struct db *db = open_writer(file.text);
    put_owners(file.text);
    struct seen_events all = {.room = 9};
    assert_ok(feed_sources(db, 0, 10, note, &all));
    assert_string_equal(all.text, "1 refund;2 e5;3 nobody;4 e6;5 e8;");
    struct seen_events some = {.room = 2};
    assert_ok(feed_sources(db, 1, 10, note, &some));
    assert_string_equal(some.text, "2 e5;3 nobody;");
    struct seen_events of_tenant = {.room = 9};
    assert_ok(feed_of_tenant(db, 1, 0, 2, 10, note, &of_tenant));
    assert_string_equal(of_tenant.text, "1 refund;2 e5;");
    db_close(db);
}

/* For rows of runs, which are most, no entity is looked for: the key to seek is null. */
static void every_table_is_asked_by_its_number(void **state)
{
    const struct folder *folder = *state;
    struct path file = path_in(folder, "p.db");
    db_close(open_writer(file.text));
    struct raw raw = raw_open(file.text);
    sqlite3_stmt *plan = NULL;
    assert_int_equal(sqlite3_prepare_v2(raw.file,
                                        "EXPLAIN QUERY PLAN SELECT " OWNER_COLUMNS
                                        " FROM feed_packs f" OWNER_JOINS " WHERE f.num > 5",
                                        -1, &plan, NULL),
                     SQLITE_OK);
    int steps = 0;
    while (sqlite3_step(plan) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(plan, 3);
        if (strstr(step, "INTEGER PRIMARY KEY") == NULL)
            fail_msg("%s", step);
        steps++;
    }
    assert_int_equal(steps, 5);
    (void)sqlite3_finalize(plan);
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_number_is_a_runs_or_an_entitys_or_nobodys),
        folder_test(names_are_not_kept_where_there_is_no_room),
        folder_test(rows_of_the_feed_say_whose_they_are),
        folder_test(every_table_is_asked_by_its_number),
    };
    return cmocka_run_group_tests_name("owners_store", tests, NULL, NULL);
}
