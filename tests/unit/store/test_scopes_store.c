/* Scopes and their counters, and who holds the slots of a scope or a tenant. */
#include "store/folder.h"
#include "store/rows.h"

#include "store/run/late_index.h"
#include "store/run/limit_keys.h"
#include "store/run/runs.h"

/* --- the scopes of one run as text --- */

static void assert_list_text(const struct limit_key_list *list, const char *expected)
{
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    assert_str(limit_key_list_text(list, text), expected);
}

static void a_list_is_kept_rising_whatever_the_order_of_its_making(void **state)
{
    (void)state;
    static const int64_t ORDERS[][3] = {{3, 17, 170}, {3, 170, 17}, {17, 3, 170},
                                        {17, 170, 3}, {170, 3, 17}, {170, 17, 3}};
    for (size_t i = 0; i < ARRAY_LEN(ORDERS); i++) {
        struct limit_key_list list = {.count = 0};
        for (size_t k = 0; k < ARRAY_LEN(ORDERS[i]); k++)
            limit_key_list_add(&list, ORDERS[i][k]);
        assert_list_text(&list, "3,17,170");
    }
}

static void a_list_survives_being_text(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "",
        "1",
        "9223372036854775807",
        "1,2",
        "2,10,33,400",
        "9223372036854775804,9223372036854775805,9223372036854775806,9223372036854775807"};
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        struct limit_key_list list = limit_key_list_parse(str_of(TEXTS[i]));
        assert_list_text(&list, TEXTS[i]);
    }
    assert_int_equal(limit_key_list_parse(STR_NONE).count, 0); /* a run whose column is null */
}

/* Damage is the doctor's to find; what can be read still counts. */
static void what_is_no_number_of_a_scope_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *damaged;
        const char *rest;
    } LISTS[] = {
        {"3,,x,17,", "3,17"}, {"17,3", "3,17"},         {"3,3", "3"},
        {"-1,0,3", "3"},      {"1,2,3,4,5", "1,2,3,4"}, {"99999999999999999999,3", "3"},
    };
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        struct limit_key_list list = limit_key_list_parse(str_of(LISTS[i].damaged));
        assert_list_text(&list, LISTS[i].rest);
    }
}

/* --- counters --- */

static struct limit_key_row scope_of(int64_t tenant, const char *workflow, const char *path,
                                     const char *key)
{
    return (struct limit_key_row){.num = 99, /* what is not found has none */
                                  .tenant = tenant,
                                  .workflow_id = str_of(workflow),
                                  .path = str_of(path),
                                  .key = str_of(key),
                                  .active_runs = 98,
                                  .queued_runs = 97};
}

static void assert_counts(struct db *db, const struct limit_key_row *s, int64_t active,
                          int64_t queued)
{
    struct limit_key_row now = *s;
    assert_ok(limit_keys_find(db, &now));
    assert_int_equal(now.num, s->num);
    assert_int_equal(now.active_runs, active);
    assert_int_equal(now.queued_runs, queued);
}

static void assert_gone(struct db *db, const struct limit_key_row *s)
{
    struct limit_key_row now = *s;
    assert_ok(limit_keys_find(db, &now));
    assert_int_equal(now.num, 0);
    assert_int_equal(now.active_runs, 0);
    assert_int_equal(now.queued_runs, 0);
}

static void insert_scope(struct db *db, struct limit_key_row *s)
{
    assert_ok(limit_keys_find(db, s));
    assert_int_equal(s->num, 0);
    assert_ok(limit_keys_insert(db, s));
    assert_true(s->num > 0);
}

static void a_scope_is_found_by_all_that_names_it(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    /* Neighbours of each other in one part each. */
    struct limit_key_row scopes[] = {
        scope_of(1, "w", "", ""),         scope_of(2, "w", "", ""),
        scope_of(1, "v", "", ""),         scope_of(1, "w", "input.a", ""),
        scope_of(1, "w", "input.a", "x"), scope_of(1, "w", "input.a", "X"),
        scope_of(1, "w", "input.b", "x"), scope_of(1, "w", "input.a", "x "),
    };
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        insert_scope(db, &scopes[i]);
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        assert_ok(limit_keys_count(db, scopes[i].num, (int64_t)i + 1, (int64_t)i + 20));
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(scopes[k].num, scopes[i].num);
    }
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        assert_counts(db, &scopes[i], (int64_t)i + 1, (int64_t)i + 20);
        struct limit_key_row back;
        assert_ok(limit_keys_get(db, scopes[i].num, &arena, &back));
        assert_int_equal(back.num, scopes[i].num);
        assert_int_equal(back.tenant, scopes[i].tenant);
        assert_true(str_eq(back.workflow_id, scopes[i].workflow_id));
        assert_true(str_eq(back.path, scopes[i].path));
        assert_true(str_eq(back.key, scopes[i].key));
        assert_int_equal(back.active_runs, (int64_t)i + 1);
        assert_int_equal(back.queued_runs, (int64_t)i + 20);
    }
    arena_release(&arena);
    db_close(db);
}

static void a_scope_that_must_exist_and_does_not_is_an_error(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    struct limit_key_row s;
    assert_int_equal(limit_keys_get(db, 1, &arena, &s), ERR_DAMAGED);
    assert_int_equal(limit_keys_count(db, 1, 1, 0), ERR_DAMAGED);
    arena_release(&arena);
    db_close(db);
}

static void text_that_does_not_fit_the_arena_is_no_memory(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct limit_key_row s = scope_of(1, "workflow", "input.path", "key");
    insert_scope(db, &s);
    struct arena arena;
    arena_init(&arena, 1);
    struct limit_key_row back;
    assert_int_equal(limit_keys_get(db, s.num, &arena, &back), ERR_NO_MEMORY);
    arena_release(&arena);
    db_close(db);
}

static void a_scope_goes_with_its_last_run_and_not_before(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct limit_key_row s = scope_of(1, "w", "input.a", "x");
    struct limit_key_row other = scope_of(1, "w", "input.a", "y");
    insert_scope(db, &s);
    insert_scope(db, &other);
    assert_counts(db, &s, 0, 0); /* made for a run that is on its way */
    assert_ok(limit_keys_count(db, s.num, 1, 0));
    assert_ok(limit_keys_count(db, s.num, 0, 1));
    assert_ok(limit_keys_count(db, s.num, -1, 0));
    assert_counts(db, &s, 0, 1); /* nobody holds a slot, one waits */
    assert_ok(limit_keys_count(db, s.num, 1, 0));
    assert_ok(limit_keys_count(db, s.num, 0, -1));
    assert_counts(db, &s, 1, 0); /* it was admitted */
    assert_ok(limit_keys_count(db, s.num, -1, 0));
    assert_gone(db, &s);
    assert_counts(db, &other, 0, 0);
    assert_ok(limit_keys_count(db, other.num, 0, 1));
    assert_ok(limit_keys_count(db, other.num, 0, -1));
    assert_gone(db, &other);
    assert_int_equal(number_of(db, "SELECT count(*) FROM scopes"), 0);
    db_close(db);
}

static void counters_agree_with_a_model(void **state)
{
    enum { KEYS = 6, STEPS = 3000 };
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct {
        int64_t active;
        int64_t queued;
    } model[KEYS] = {{0, 0}};
    char keys[KEYS][8];
    struct rng r = {21};
    assert_ok(db_begin(db));
    for (int step = 0; step < STEPS; step++) {
        size_t k = rng_below(&r, KEYS);
        (void)snprintf(keys[k], sizeof(keys[k]), "%zu", k);
        struct limit_key_row s = scope_of(1, "w", "input.k", keys[k]);
        assert_ok(limit_keys_find(db, &s));
        assert_int_equal(s.num != 0, model[k].active + model[k].queued > 0);
        assert_int_equal(s.active_runs, model[k].active);
        assert_int_equal(s.queued_runs, model[k].queued);
        bool queue = rng_below(&r, 2) == 0;
        int64_t *count = queue ? &model[k].queued : &model[k].active;
        int64_t by = *count > 0 && rng_below(&r, 5) < 3 ? -1 : 1; /* often back to none */
        if (s.num == 0)
            assert_ok(limit_keys_insert(db, &s));
        assert_ok(limit_keys_count(db, s.num, queue ? 0 : by, queue ? by : 0));
        *count += by;
    }
    assert_ok(db_commit(db));
    db_close(db);
}

static void a_counter_never_goes_below_none(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct limit_key_row s = scope_of(1, "w", "", "");
    insert_scope(db, &s);
    assert_ok(limit_keys_count(db, s.num, 1, 1));
    assert_int_not_equal(limit_keys_count(db, s.num, -2, 0), ERR_OK);
    assert_int_not_equal(limit_keys_count(db, s.num, 0, -2), ERR_OK);
    assert_counts(db, &s, 1, 1);
    db_close(db);
}

/* --- holders of a scope's slots --- */

enum { RUNS_MAX = 400 };

struct seen {
    size_t room; /* stop when it is used up */
    int64_t runs[RUNS_MAX];
    size_t count;
};

static bool note_holder(void *ctx, int64_t run)
{
    struct seen *seen = ctx;
    assert_true(seen->room > 0 && seen->count < RUNS_MAX);
    seen->runs[seen->count++] = run;
    return --seen->room > 0;
}

static void assert_seen(const struct seen *seen, const int64_t *expected, size_t count)
{
    assert_int_equal(seen->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(seen->runs[i], expected[i]);
}

static void assert_edge(struct db *db, int64_t scope, bool newest, int64_t expected)
{
    bool found = false;
    int64_t run = 0;
    assert_ok(slots_edge(db, scope, newest, &found, &run));
    assert_int_equal(found, expected != 0);
    assert_int_equal(run, expected);
}

static void the_oldest_and_the_newest_holder_of_a_scope_are_found(void **state)
{
    static const int64_t RUNS[] = {40, 10, 50, 20, 30};
    static const int64_t SORTED[] = {10, 20, 30, 40, 50};
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_edge(db, 7, false, 0);
    assert_edge(db, 7, true, 0);
    for (size_t i = 0; i < ARRAY_LEN(RUNS); i++) {
        assert_ok(slots_insert(db, 7, RUNS[i]));
        assert_ok(slots_insert(db, 6, RUNS[i] + 100));
        assert_ok(slots_insert(db, 8, RUNS[i] - 9));
    }
    assert_edge(db, 7, false, 10);
    assert_edge(db, 7, true, 50);
    struct seen seen = {.room = RUNS_MAX};
    assert_ok(slots_list(db, 7, note_holder, &seen));
    assert_seen(&seen, SORTED, ARRAY_LEN(SORTED));
    seen = (struct seen){.room = 2};
    assert_ok(slots_list(db, 7, note_holder, &seen));
    assert_seen(&seen, SORTED, 2);
    assert_ok(slots_delete(db, 7, 10));
    assert_ok(slots_delete(db, 7, 50));
    assert_ok(slots_delete(db, 7, 49)); /* not there: nothing happens */
    assert_edge(db, 7, false, 20);
    assert_edge(db, 7, true, 40);
    assert_edge(db, 6, true, 150);
    assert_edge(db, 8, false, 1);
    for (size_t i = 0; i < ARRAY_LEN(RUNS); i++)
        assert_ok(slots_delete(db, 7, RUNS[i]));
    assert_edge(db, 7, false, 0);
    seen = (struct seen){.room = RUNS_MAX};
    assert_ok(slots_list(db, 7, note_holder, &seen));
    assert_int_equal(seen.count, 0);
    db_close(db);
}

static void holders_of_a_scope_are_listed_across_slices(void **state)
{
    enum { HOLDERS = 2 * ROWS_PER_SLICE };
    static int64_t runs[HOLDERS + 1];
    struct db *db = open_writer(path_in(*state, "p.db").text);
    for (size_t i = 0; i < HOLDERS; i++) {
        runs[i] = 10 * ((int64_t)i + 1);
        assert_ok(slots_insert(db, 7, runs[i]));
        assert_ok(slots_insert(db, 8, runs[i] + 1));
        static struct seen seen;
        seen = (struct seen){.room = RUNS_MAX};
        assert_ok(slots_list(db, 7, note_holder, &seen));
        assert_seen(&seen, runs, i + 1);
    }
    static struct seen some;
    some = (struct seen){.room = ROWS_PER_SLICE + 1};
    assert_ok(slots_list(db, 7, note_holder, &some));
    assert_seen(&some, runs, ROWS_PER_SLICE + 1);
    db_close(db);
}

static void a_run_holds_one_slot_of_a_scope_at_most(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(slots_insert(db, 7, 1));
    assert_int_not_equal(slots_insert(db, 7, 1), ERR_OK);
    assert_ok(slots_insert(db, 8, 1));
    assert_int_equal(number_of(db, "SELECT count(*) FROM slots"), 2);
    db_close(db);
}

/* --- holders of a tenant's slots, wherever the index of runs ends --- */

enum { TENANTS = 3 };

struct model_run {
    int64_t num;
    int64_t tenant;
    int64_t version;
    enum run_status status;
};

struct model {
    struct model_run runs[RUNS_MAX]; /* oldest first */
    size_t count;
    int64_t through;
};

static void model_insert(struct model *m, struct db *db, int64_t tenant, enum run_status status)
{
    assert_true(m->count < RUNS_MAX);
    int64_t last = m->count > 0 ? m->runs[m->count - 1].num : 0;
    struct uuid id = env_new_id(&ENV_SYSTEM);
    uuid_set_time(&id, 1000);
    int64_t num = runs_new_num(&id, last, db_numbers(db));
    struct run run = plain_run(tenant, id, num);
    run.status = status;
    m->runs[m->count++] = (struct model_run){run.num, tenant, 1, status};
    assert_ok(runs_insert(db, &run));
}

static int64_t random_tenant(struct rng *r)
{
    return 1 + (int64_t)rng_below(r, TENANTS);
}

static enum run_status random_status(struct rng *r)
{
    return (enum run_status)rng_below(r, RUN_STATUS_COUNT);
}

/* As the engine does it: a run that the index has passed is kept in `holding` by hand. */
static void model_change(struct model *m, struct db *db, struct rng *r)
{
    struct model_run *mine = &m->runs[rng_below(r, m->count)];
    bool held = run_holds_slot(mine->status);
    mine->status = random_status(r);
    struct run run = plain_run(mine->tenant, (struct uuid){{0}}, mine->num);
    run.revision = mine->version;
    run.status = mine->status;
    assert_ok(runs_update(db, &run));
    mine->version = run.revision;
    bool holds = run_holds_slot(mine->status);
    if (mine->num > m->through || held == holds)
        return;
    if (holds)
        assert_ok(active_runs_insert(db, mine->tenant, mine->num));
    else
        assert_ok(active_runs_delete(db, mine->tenant, mine->num));
}

static void model_index(struct model *m, struct db *db, int64_t last)
{
    assert_ok(late_index_fill(db, last));
    m->through = MAX(m->through, last);
    int64_t through = 0;
    assert_ok(late_index_through(db, &through));
    assert_int_equal(through, m->through);
}

static void check_holders(const struct model *m, struct db *db, int64_t tenant, bool newest_first,
                          size_t room)
{
    static struct seen seen;
    seen = (struct seen){.room = room};
    assert_ok(active_runs_list(db, tenant, newest_first, note_holder, &seen));
    size_t at = 0;
    for (size_t i = 0; i < m->count && at < room; i++) {
        const struct model_run *run = &m->runs[newest_first ? m->count - 1 - i : i];
        if (run->tenant != tenant || !run_holds_slot(run->status))
            continue;
        if (at >= seen.count || seen.runs[at] != run->num)
            fail_msg("tenant %d, newest first %d: place %zu of %zu is not run %lld", (int)tenant,
                     newest_first, at, seen.count, (long long)run->num);
        at++;
    }
    assert_int_equal(seen.count, at);
}

static void holders_of_a_tenant_agree_with_a_model_wherever_the_index_ends(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static struct model m;
    m = (struct model){.count = 0};
    struct rng r = {33};
    assert_ok(db_begin(db));
    while (m.count < RUNS_MAX) {
        model_insert(&m, db, random_tenant(&r), random_status(&r));
        if (rng_below(&r, 2) == 0)
            model_change(&m, db, &r);
        if (rng_below(&r, 25) == 0) /* up to any run, or back: that is nothing new */
            model_index(&m, db, m.runs[rng_below(&r, m.count)].num);
        check_holders(&m, db, random_tenant(&r), rng_below(&r, 2) == 0,
                      rng_below(&r, 3) == 0 ? 1 : RUNS_MAX);
    }
    for (int64_t tenant = 0; tenant <= TENANTS + 1; tenant++) {
        check_holders(&m, db, tenant, false, RUNS_MAX);
        check_holders(&m, db, tenant, true, RUNS_MAX);
    }
    /* What the index has passed is kept exactly. */
    model_index(&m, db, m.runs[m.count - 1].num);
    assert_int_equal(number_of(db, "SELECT count(*) FROM holding"),
                     number_of(db, "SELECT count(*) FROM runs WHERE " RUN_HOLDS_SLOT));
    assert_ok(db_commit(db));
    db_close(db);
}

static void a_walk_stops_where_it_is_told_on_both_sides_of_the_index(void **state)
{
    enum { HOLDERS = 3 * ROWS_PER_SLICE };
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static struct model m;
    m = (struct model){.count = 0};
    assert_ok(db_begin(db));
    while (m.count < HOLDERS)
        model_insert(&m, db, 1, RUN_RUNNING);
    model_index(&m, db, m.runs[HOLDERS / 2].num);
    assert_ok(db_commit(db));
    for (size_t room = 1; room <= HOLDERS; room++) {
        check_holders(&m, db, 1, false, room);
        check_holders(&m, db, 1, true, room);
    }
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_kept_rising_whatever_the_order_of_its_making),
        cmocka_unit_test(a_list_survives_being_text),
        cmocka_unit_test(what_is_no_number_of_a_scope_is_left_out),
        folder_test(a_scope_is_found_by_all_that_names_it),
        folder_test(a_scope_that_must_exist_and_does_not_is_an_error),
        folder_test(text_that_does_not_fit_the_arena_is_no_memory),
        folder_test(a_scope_goes_with_its_last_run_and_not_before),
        folder_test(counters_agree_with_a_model),
        folder_test(a_counter_never_goes_below_none),
        folder_test(the_oldest_and_the_newest_holder_of_a_scope_are_found),
        folder_test(holders_of_a_scope_are_listed_across_slices),
        folder_test(a_run_holds_one_slot_of_a_scope_at_most),
        folder_test(holders_of_a_tenant_agree_with_a_model_wherever_the_index_ends),
        folder_test(a_walk_stops_where_it_is_told_on_both_sides_of_the_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
