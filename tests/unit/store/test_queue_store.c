/* Runs that wait for a slot: lines, their first runs, and places in the queue. */
#include "store/folder.h"

#include "store/run/run_queue.h"

/* --- the line of a run --- */

static bool find_line(struct db *db, int64_t tenant, const char *scopes, struct queue_group *ret)
{
    struct arena arena;
    bool found = false;
    arena_init(&arena, MIB);
    assert_ok(queue_groups_find(db, tenant, str_of(scopes), &arena, &found, ret));
    if (found)
        assert_str(ret->scopes, scopes);
    ret->scopes = str_of(scopes); /* the arena goes */
    arena_release(&arena);
    return found;
}

static void assert_line(struct db *db, int64_t tenant, const char *scopes, int64_t waits_for,
                        int64_t urgency, int64_t run)
{
    struct queue_group line;
    if (!find_line(db, tenant, scopes, &line))
        fail_msg("tenant %d has no line \"%s\"", (int)tenant, scopes);
    assert_true(line.num > 0);
    assert_int_equal(line.tenant, tenant);
    assert_int_equal(line.waits_for, waits_for);
    assert_int_equal(line.urgency, urgency);
    assert_int_equal(line.run, run);
}

static void a_line_is_made_by_its_first_run_and_goes_with_its_last(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct queue_group line;
    assert_false(find_line(db, 1, "3,17", &line));
    assert_ok(queue_insert(db, 1, STR("3,17"), 17, 0, 100));
    assert_line(db, 1, "3,17", 17, 0, 100);
    assert_ok(queue_insert(db, 1, STR("3,17"), 3, 0, 101)); /* it stands behind: nothing new */
    assert_line(db, 1, "3,17", 17, 0, 100);
    assert_int_equal(number_of(db, "SELECT count(*) FROM line_scopes"), 2);
    assert_ok(queue_delete(db, 1, STR("3,17"), 0, 100));
    assert_line(db, 1, "3,17", 17, 0, 101);
    assert_ok(queue_delete(db, 1, STR("3,17"), 0, 101));
    assert_false(find_line(db, 1, "3,17", &line));
    assert_int_equal(number_of(db, "SELECT (SELECT count(*) FROM lines)"
                                   " + (SELECT count(*) FROM line_scopes)"
                                   " + (SELECT count(*) FROM queue)"),
                     0);
    db_close(db);
}

static void runs_without_scopes_stand_in_a_line_of_their_tenant(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(queue_insert(db, 1, STR(""), 0, 0, 100));
    assert_ok(queue_insert(db, 1, STR_NONE, 0, 0, 101)); /* as a run's row has it */
    assert_ok(queue_insert(db, 2, STR_NONE, 0, 0, 102));
    assert_int_equal(number_of(db, "SELECT count(*) FROM lines"), 2);
    assert_line(db, 1, "", 0, 0, 100);
    assert_line(db, 2, "", 0, 0, 102);
    assert_ok(queue_delete(db, 1, STR_NONE, 0, 100));
    assert_line(db, 1, "", 0, 0, 101);
    assert_ok(queue_delete(db, 1, STR(""), 0, 101));
    assert_int_equal(number_of(db, "SELECT count(*) FROM lines"), 1);
    db_close(db);
}

static void the_first_of_a_line_is_the_most_urgent_then_the_oldest(void **state)
{
    /* Priorities are urgencies with the sign turned: 5 goes before 0 goes before -5. */
    static const struct {
        int64_t urgency, run;
        int64_t first_urgency, first_run;
    } INSERTS[] = {
        {0, 50, 0, 50},   {0, 60, 0, 50},   {0, 40, 0, 40},   {5, 1, 0, 40},
        {-5, 90, -5, 90}, {-5, 95, -5, 90}, {-5, 80, -5, 80},
    };
    static const size_t ORDER[] = {6, 4, 5, 2, 0, 1, 3};
    struct db *db = open_writer(path_in(*state, "p.db").text);
    for (size_t i = 0; i < ARRAY_LEN(INSERTS); i++) {
        assert_ok(queue_insert(db, 1, STR("8"), 8, INSERTS[i].urgency, INSERTS[i].run));
        assert_line(db, 1, "8", 8, INSERTS[i].first_urgency, INSERTS[i].first_run);
    }
    for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
        assert_line(db, 1, "8", 8, INSERTS[ORDER[i]].urgency, INSERTS[ORDER[i]].run);
        assert_ok(queue_delete(db, 1, STR("8"), INSERTS[ORDER[i]].urgency, INSERTS[ORDER[i]].run));
    }
    db_close(db);
}

static void a_run_that_is_not_queued_cannot_leave(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_int_equal(queue_delete(db, 1, STR("8"), 0, 100), ERR_DAMAGED); /* no line at all */
    assert_ok(queue_insert(db, 1, STR("8"), 8, 0, 100));
    assert_int_equal(queue_delete(db, 1, STR("8"), 0, 101), ERR_DAMAGED);
    assert_int_equal(queue_delete(db, 1, STR("8"), 1, 100), ERR_DAMAGED);
    assert_int_equal(queue_delete(db, 1, STR("9"), 0, 100), ERR_DAMAGED);
    assert_int_equal(queue_delete(db, 2, STR("8"), 0, 100), ERR_DAMAGED);
    assert_line(db, 1, "8", 8, 0, 100);
    assert_int_equal(number_of(db, "SELECT count(*) FROM queue"), 1);
    assert_ok(queue_delete(db, 1, STR("8"), 0, 100));
    assert_int_equal(queue_delete(db, 1, STR("8"), 0, 100), ERR_DAMAGED); /* nor twice */
    db_close(db);
}

static void a_line_that_is_parked_waits_for_something_else(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(queue_insert(db, 1, STR("3,17"), 17, 0, 100));
    assert_ok(queue_insert(db, 1, STR("3"), 3, 0, 90));
    struct queue_group line;
    assert_true(find_line(db, 1, "3,17", &line));
    assert_ok(queue_groups_park(db, line.num, 3));
    assert_line(db, 1, "3,17", 3, 0, 100);
    assert_ok(queue_groups_park(db, line.num, 0));
    assert_line(db, 1, "3,17", 0, 0, 100);
    assert_line(db, 1, "3", 3, 0, 90);
    db_close(db);
}

static void a_line_with_a_better_first_run_waits_for_what_blocks_that_one(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(queue_insert(db, 1, STR("3,17"), 17, 0, 100));
    assert_ok(queue_insert(db, 1, STR("3,17"), 3, 0, 101)); /* one that stands behind it */
    assert_line(db, 1, "3,17", 17, 0, 100);
    assert_ok(queue_insert(db, 1, STR("3,17"), 3, -1, 102));
    assert_line(db, 1, "3,17", 3, -1, 102);
    assert_ok(queue_insert(db, 1, STR("3,17"), 0, -2, 103));
    assert_line(db, 1, "3,17", 0, -2, 103);
    assert_ok(queue_insert(db, 1, STR("3,17"), 17, -3, 104)); /* its room is reserved by now */
    assert_line(db, 1, "3,17", 0, -3, 104);
    db_close(db);
}

/* --- against a naive model --- */

enum { TENANTS = 3, SHAPES = 6, RUNS = 120 };

/* The scopes that a line may count under: those of tenant t are above 100 t. */
static const int64_t SHAPE_SCOPES[SHAPES][3] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0},
                                                {1, 2, 0}, {1, 3, 0}, {1, 2, 3}};

struct model_run {
    bool in;
    int64_t tenant;
    size_t shape;
    int64_t urgency;
    int64_t run;
};

struct model {
    struct model_run runs[RUNS];
    int64_t waits_for[TENANTS + 1][SHAPES];
};

static int64_t scope_num(int64_t tenant, int64_t part)
{
    return part == 0 ? 0 : tenant * 100 + part;
}

static struct str shape_text(int64_t tenant, size_t shape, char out[static LIMIT_KEY_LIST_TEXT_MAX])
{
    struct limit_key_list list = {.count = 0};
    for (size_t i = 0; i < ARRAY_LEN(SHAPE_SCOPES[shape]); i++) {
        if (SHAPE_SCOPES[shape][i] != 0)
            limit_key_list_add(&list, scope_num(tenant, SHAPE_SCOPES[shape][i]));
    }
    return limit_key_list_text(&list, out);
}

static bool shape_has(size_t shape, int64_t part)
{
    for (size_t i = 0; i < ARRAY_LEN(SHAPE_SCOPES[shape]); i++) {
        if (SHAPE_SCOPES[shape][i] == part)
            return true;
    }
    return false;
}

static bool comes_before(int64_t urgency, int64_t run, const struct model_run *other)
{
    return urgency < other->urgency || (urgency == other->urgency && run < other->run);
}

/* The first run of the lines that `shape` (SHAPES: all) and `waits_for` (-1: any) choose. */
static const struct model_run *model_first(const struct model *m, int64_t tenant, size_t shape,
                                           int64_t waits_for)
{
    const struct model_run *first = NULL;
    for (size_t i = 0; i < RUNS; i++) {
        const struct model_run *r = &m->runs[i];
        if (!r->in || r->tenant != tenant || (shape != SHAPES && r->shape != shape) ||
            (waits_for >= 0 && m->waits_for[tenant][r->shape] != waits_for))
            continue;
        if (first == NULL || comes_before(r->urgency, r->run, first))
            first = r;
    }
    return first;
}

static int64_t model_ahead(const struct model *m, int64_t tenant, int64_t part, int64_t urgency,
                           int64_t run, int64_t max)
{
    int64_t ahead = 0;
    for (size_t i = 0; i < RUNS; i++) {
        const struct model_run *r = &m->runs[i];
        if (r->in && r->tenant == tenant && (part == 0 || shape_has(r->shape, part)) &&
            (r->urgency < urgency || (r->urgency == urgency && r->run < run)))
            ahead++;
    }
    return MIN(ahead, max);
}

static void check_lines(const struct model *m, struct db *db)
{
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    int64_t expected_lines = 0;
    for (int64_t tenant = 1; tenant <= TENANTS; tenant++) {
        for (size_t shape = 0; shape < SHAPES; shape++) {
            (void)shape_text(tenant, shape, text);
            const struct model_run *first = model_first(m, tenant, shape, -1);
            struct queue_group line;
            assert_int_equal(find_line(db, tenant, text, &line), first != NULL);
            if (first == NULL)
                continue;
            expected_lines++;
            assert_line(db, tenant, text, m->waits_for[tenant][shape], first->urgency, first->run);
        }
    }
    assert_int_equal(number_of(db, "SELECT count(*) FROM lines"), expected_lines);
}

static void check_firsts(const struct model *m, struct db *db, struct arena *arena)
{
    for (int64_t tenant = 1; tenant <= TENANTS; tenant++) {
        for (int64_t part = 0; part <= 3; part++) {
            int64_t waits_for = scope_num(tenant, part);
            const struct model_run *first = model_first(m, tenant, SHAPES, waits_for);
            struct queue_group line;
            bool found = false;
            assert_ok(queue_groups_first(db, tenant, waits_for, arena, &found, &line));
            assert_int_equal(found, first != NULL);
            if (first == NULL)
                continue;
            char text[LIMIT_KEY_LIST_TEXT_MAX];
            assert_true(str_eq(line.scopes, shape_text(tenant, first->shape, text)));
            assert_int_equal(line.waits_for, waits_for);
            assert_int_equal(line.urgency, first->urgency);
            assert_int_equal(line.run, first->run);
        }
    }
}

/* The walk over all scopes that a line waits for meets each once, in order. */
static void check_walk(const struct model *m, struct db *db)
{
    int64_t at_tenant = 0;
    int64_t at_scope = 0;
    bool found = true;
    for (int64_t tenant = 1; tenant <= TENANTS; tenant++) {
        for (int64_t part = 1; part <= 3; part++) {
            if (model_first(m, tenant, SHAPES, scope_num(tenant, part)) == NULL)
                continue;
            assert_ok(queue_groups_next_limit_key(db, at_tenant, at_scope, &found, &at_tenant,
                                                  &at_scope));
            assert_true(found);
            assert_int_equal(at_tenant, tenant);
            assert_int_equal(at_scope, scope_num(tenant, part));
        }
    }
    assert_ok(queue_groups_next_limit_key(db, at_tenant, at_scope, &found, &at_tenant, &at_scope));
    assert_false(found);
}

static void check_places(const struct model *m, struct db *db, struct rng *r)
{
    static const int64_t CAPS[] = {1, 3, 1000};
    for (int n = 0; n < 4; n++) {
        /* Some that are queued, and some who only ask. */
        const struct model_run *who = &m->runs[rng_below(r, RUNS)];
        int64_t part = (int64_t)rng_below(r, 4);
        int64_t max = CAPS[rng_below(r, ARRAY_LEN(CAPS))];
        int64_t ahead = -1;
        assert_ok(queue_ahead(db, who->tenant, scope_num(who->tenant, part), who->urgency, who->run,
                              max, &ahead));
        assert_int_equal(ahead, model_ahead(m, who->tenant, part, who->urgency, who->run, max));
    }
    for (int64_t tenant = 1; tenant <= TENANTS; tenant++) {
        int64_t expected = 0;
        for (size_t i = 0; i < RUNS; i++) {
            const struct model_run *q = &m->runs[i];
            if (q->in && q->tenant == tenant && (expected == 0 || q->run < expected))
                expected = q->run;
        }
        int64_t oldest = -1;
        assert_ok(queue_oldest(db, tenant, &oldest));
        assert_int_equal(oldest, expected);
    }
}

static void model_put(struct model *m, struct db *db, struct model_run *run, struct rng *r)
{
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    int64_t tenant = run->tenant;
    const int64_t *parts = SHAPE_SCOPES[run->shape];
    int64_t waits_for = scope_num(tenant, parts[rng_below(r, ARRAY_LEN(SHAPE_SCOPES[0]))]);
    const struct model_run *first = model_first(m, tenant, run->shape, -1);
    if (first == NULL ||
        (comes_before(run->urgency, run->run, first) && m->waits_for[tenant][run->shape] != 0))
        m->waits_for[tenant][run->shape] = waits_for;
    assert_ok(queue_insert(db, tenant, shape_text(tenant, run->shape, text), waits_for,
                           run->urgency, run->run));
    run->in = true;
}

static void model_take(struct db *db, struct model_run *run)
{
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    assert_ok(queue_delete(db, run->tenant, shape_text(run->tenant, run->shape, text), run->urgency,
                           run->run));
    run->in = false;
}

static void model_park(struct model *m, struct db *db, struct rng *r)
{
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    int64_t tenant = 1 + (int64_t)rng_below(r, TENANTS);
    size_t shape = rng_below(r, SHAPES);
    struct queue_group line;
    (void)shape_text(tenant, shape, text);
    if (!find_line(db, tenant, text, &line))
        return;
    const int64_t *parts = SHAPE_SCOPES[shape];
    m->waits_for[tenant][shape] =
        scope_num(tenant, parts[rng_below(r, ARRAY_LEN(SHAPE_SCOPES[0]))]);
    assert_ok(queue_groups_park(db, line.num, m->waits_for[tenant][shape]));
}

static void the_queue_agrees_with_a_model_whatever_comes_and_goes(void **state)
{
    enum { STEPS = 2500 };
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static struct model m;
    m = (struct model){0};
    struct rng r = {77};
    struct arena arena;
    arena_init(&arena, MIB);
    for (size_t i = 0; i < RUNS; i++) {
        m.runs[i] = (struct model_run){
            .tenant = 1 + (int64_t)rng_below(&r, TENANTS),
            .shape = rng_below(&r, SHAPES),
            .urgency = (int64_t)rng_below(&r, 5) - 2,
            .run = 1000 + (int64_t)i,
        };
    }
    assert_ok(db_begin(db));
    for (int step = 0; step < STEPS; step++) {
        struct model_run *run = &m.runs[rng_below(&r, RUNS)];
        /* Fuller and emptier by turns, down to nothing. */
        bool filling = step / 200 % 2 == 0;
        if (run->in && (!filling || rng_below(&r, 4) == 0))
            model_take(db, run);
        else if (!run->in && (filling || rng_below(&r, 8) == 0))
            model_put(&m, db, run, &r);
        if (rng_below(&r, 3) == 0)
            model_park(&m, db, &r);
        check_firsts(&m, db, &arena);
        check_places(&m, db, &r);
        if (step % 10 == 0) {
            check_lines(&m, db);
            check_walk(&m, db);
        }
        arena_clear(&arena);
    }
    for (size_t i = 0; i < RUNS; i++) {
        if (m.runs[i].in)
            model_take(db, &m.runs[i]);
    }
    check_lines(&m, db);
    check_walk(&m, db);
    assert_int_equal(number_of(db, "SELECT (SELECT count(*) FROM lines)"
                                   " + (SELECT count(*) FROM line_scopes)"
                                   " + (SELECT count(*) FROM queue)"),
                     0);
    assert_ok(db_commit(db));
    arena_release(&arena);
    db_close(db);
}

/* --- places --- */

static void a_place_is_counted_no_further_than_asked(void **state)
{
    enum { LONG = 300 };
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(db_begin(db));
    for (int64_t i = 0; i < LONG; i++) {
        assert_ok(queue_insert(db, 1, STR("8"), 8, 0, 1000 + i));
        assert_ok(queue_insert(db, 1, STR(""), 0, 0, 5000 + i));
        assert_ok(queue_insert(db, 2, STR("9"), 9, 0, 1 + i)); /* another tenant's */
    }
    assert_ok(db_commit(db));
    static const struct {
        int64_t scope, urgency, run, max, expected;
    } ROWS[] = {
        {0, 0, 1000, 1000000, 0},           /* the very first */
        {0, 0, 1001, 1000000, 1},           /* itself does not count */
        {0, 0, 1000 + LONG, 1000000, LONG}, /* behind one line */
        {0, 0, INT64_MAX, 1000000, 2 * LONG},
        {8, 0, INT64_MAX, 1000000, LONG},
        {8, -1, INT64_MAX, 1000000, 0}, /* more urgent than all */
        {8, 1, 0, 1000000, LONG},       /* less urgent than all */
        {0, 0, INT64_MAX, 100, 100},
        {8, 0, INT64_MAX, 100, 100},
        {0, 0, INT64_MAX, 0, 0},
        {7, 0, INT64_MAX, 100, 0}, /* nobody counts under it */
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        int64_t ahead = -1;
        assert_ok(
            queue_ahead(db, 1, ROWS[i].scope, ROWS[i].urgency, ROWS[i].run, ROWS[i].max, &ahead));
        if (ahead != ROWS[i].expected)
            fail_msg("row %zu: %lld", i, (long long)ahead);
    }
    db_close(db);
}

static void an_empty_queue_has_nobody_in_it(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    bool found = true;
    struct queue_group line;
    int64_t number = -1;
    int64_t other = -1;
    assert_ok(queue_groups_first(db, 1, 0, &arena, &found, &line));
    assert_false(found);
    found = true;
    assert_ok(queue_groups_find(db, 1, STR(""), &arena, &found, &line));
    assert_false(found);
    found = true;
    assert_ok(queue_groups_next_limit_key(db, 0, 0, &found, &number, &other));
    assert_false(found);
    assert_ok(queue_ahead(db, 1, 0, 0, INT64_MAX, 10, &number));
    assert_int_equal(number, 0);
    assert_ok(queue_oldest(db, 1, &number));
    assert_int_equal(number, 0);
    arena_release(&arena);
    db_close(db);
}

static void tenants_with_queued_runs_are_found_one_after_the_other(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static const int64_t WAITING[] = {3, 4, 9};
    for (size_t i = ARRAY_LEN(WAITING); i-- > 0;) {
        assert_ok(queue_insert(db, WAITING[i], STR_NONE, 0, 0, 100));
        assert_ok(queue_insert(db, WAITING[i], STR("5"), 5, 0, 101)); /* one is enough */
    }
    assert_ok(queue_insert(db, 7, STR_NONE, 0, 0, 100));
    assert_ok(queue_delete(db, 7, STR_NONE, 0, 100));
    int64_t at = 0;
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(WAITING); i++) {
        assert_ok(queue_groups_next_tenant(db, at, &found, &at));
        assert_true(found);
        assert_int_equal(at, WAITING[i]);
    }
    assert_ok(queue_groups_next_tenant(db, at, &found, &at));
    assert_false(found);
    db_close(db);
}

static void text_that_does_not_fit_the_arena_is_no_memory(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    assert_ok(queue_insert(db, 1, STR("8"), 8, 0, 100));
    struct arena arena;
    arena_init(&arena, 0);
    bool found = false;
    struct queue_group line;
    assert_int_equal(queue_groups_first(db, 1, 8, &arena, &found, &line), ERR_NO_MEMORY);
    assert_int_equal(queue_groups_find(db, 1, STR("8"), &arena, &found, &line), ERR_NO_MEMORY);
    arena_release(&arena);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_line_is_made_by_its_first_run_and_goes_with_its_last),
        folder_test(runs_without_scopes_stand_in_a_line_of_their_tenant),
        folder_test(the_first_of_a_line_is_the_most_urgent_then_the_oldest),
        folder_test(a_run_that_is_not_queued_cannot_leave),
        folder_test(a_line_that_is_parked_waits_for_something_else),
        folder_test(a_line_with_a_better_first_run_waits_for_what_blocks_that_one),
        folder_test(the_queue_agrees_with_a_model_whatever_comes_and_goes),
        folder_test(a_place_is_counted_no_further_than_asked),
        folder_test(an_empty_queue_has_nobody_in_it),
        folder_test(tenants_with_queued_runs_are_found_one_after_the_other),
        folder_test(text_that_does_not_fit_the_arena_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
