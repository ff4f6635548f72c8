/* Lists of runs, against a model, at every state of the index. */
#include "store/run_support.h"

/* --- lists --- */

enum { MODEL_MAX = 3000, TENANTS = 3, LABELS = 4 };

struct model_run {
    int64_t num;
    int64_t tenant;
    int64_t version;
    enum run_status status;
    size_t label;
    int64_t created_at;
    bool long_name; /* its workflow is "other" */
};

struct model {
    struct model_run runs[MODEL_MAX]; /* oldest first */
    size_t count;
    int64_t clock;
};

static const char *const LABEL_TEXTS[LABELS] = {"{}", "{\"env\":\"a\"}",
                                                "{\"env\":\"b\",\"x\":\"a\"}", "{\"ENV\":\"a\"}"};

static void model_insert(struct model *m, struct db *db, struct rng *r)
{
    assert_true(m->count < MODEL_MAX);
    int64_t last = m->count > 0 ? m->runs[m->count - 1].num : 0;
    m->clock += (int64_t)rng_below(r, 9) - 3;
    struct run run = run_at(1 + (int64_t)rng_below(r, TENANTS), m->clock, last);
    struct model_run *mine = &m->runs[m->count++];
    *mine = (struct model_run){
        .num = run.num,
        .tenant = run.tenant,
        .version = 1,
        .status = (enum run_status)rng_below(r, RUN_STATUS_COUNT),
        .label = rng_below(r, LABELS),
        .created_at = (int64_t)(m->count / 10),
        .long_name = rng_below(r, 4) == 0,
    };
    run.status = mine->status;
    run.labels = str_of(LABEL_TEXTS[mine->label]);
    run.created_at = mine->created_at;
    run.workflow_id = mine->long_name ? STR("other") : STR("w");
    assert_ok(runs_insert(db, &run));
}

static void model_update(struct model *m, struct db *db, struct rng *r)
{
    struct model_run *mine = &m->runs[rng_below(r, m->count)];
    mine->status = (enum run_status)rng_below(r, RUN_STATUS_COUNT);
    struct run run = plain_run(mine->tenant, (struct uuid){{0}}, mine->num);
    run.revision = mine->version;
    run.status = mine->status;
    assert_ok(runs_update(db, &run));
    mine->version = run.revision;
}

static bool fits_status(const struct model_run *run, const struct run_filter *f)
{
    return f->statuses == RUN_ANY_STATUS || (f->statuses & run_status_bit(run->status)) != 0;
}

static bool model_matches(const struct model_run *run, const struct run_filter *f)
{
    if (run->tenant != f->tenant || !fits_status(run, f))
        return false;
    if (f->workflow_id.ptr != NULL && str_is(f->workflow_id, "other") != run->long_name)
        return false;
    if (f->created_after >= 0 && run->created_at <= f->created_after)
        return false;
    if (f->created_before >= 0 && run->created_at >= f->created_before)
        return false;
    if (f->label_name.ptr == NULL)
        return true;
    return (str_is(f->label_value, "a") && run->label == 1) ||
           (str_is(f->label_value, "b") && run->label == 2);
}

struct page {
    size_t room;
    int64_t nums[MODEL_MAX + 1];
    size_t count;
};

static bool take_run(void *ctx, const struct run *run)
{
    struct page *page = ctx;
    if (page->room == 0)
        return false;
    page->room--;
    assert_true(page->count < MODEL_MAX);
    page->nums[page->count++] = run->num;
    return true;
}

/* Page by page; the index may be filled on in between, as it is in a server. */
static void list_all(struct db *db, const struct run_filter *f, struct model *m, struct rng *r,
                     struct page *ret)
{
    ret->count = 0;
    int64_t before = INT64_MAX;
    size_t page_size = 1 + rng_below(r, rng_below(r, 2) == 0 ? 5 : 300);
    for (size_t pages = 0; before >= 0; pages++) {
        assert_true(pages <= MODEL_MAX + 2);
        ret->room = page_size;
        size_t had = ret->count;
        int64_t next = -2;
        assert_ok(runs_list(db, f, before, take_run, ret, &next));
        assert_true(next >= -1);
        /* A page that is not the last is full: the scan is far below its bound. */
        assert_true(next < 0 || ret->count == had + page_size);
        before = next;
        if (rng_below(r, 20) == 0)
            fill_index(db, m->runs[rng_below(r, m->count)].num);
    }
}

static void check_list(struct db *db, const struct run_filter *f, struct model *m, struct rng *r)
{
    static struct page page;
    list_all(db, f, m, r, &page);
    size_t at = 0;
    for (size_t i = m->count; i > 0; i--) {
        if (!model_matches(&m->runs[i - 1], f))
            continue;
        if (at >= page.count || page.nums[at] != m->runs[i - 1].num)
            fail_msg("tenant %d, statuses %x: place %zu of %zu is not run %lld", (int)f->tenant,
                     f->statuses, at, page.count, (long long)m->runs[i - 1].num);
        at++;
    }
    assert_int_equal(page.count, at);
}

static unsigned one_status(struct rng *r)
{
    return run_status_bit((enum run_status)rng_below(r, RUN_STATUS_COUNT));
}

static struct run_filter random_filter(struct rng *r, size_t count)
{
    struct run_filter f = {
        .tenant = 1 + (int64_t)rng_below(r, TENANTS),
        .statuses = (unsigned)rng_below(r, 1u << RUN_STATUS_COUNT), /* 0: any */
        .created_after = -1,
        .created_before = -1,
    };
    if (rng_below(r, 2) == 0)
        f.statuses = rng_below(r, 2) == 0 ? RUN_ANY_STATUS : one_status(r);
    if (rng_below(r, 4) == 0) /* those that ended badly have an index of their own */
        f.statuses &= ~((1u << RUN_FAILED) - 1);
    if (rng_below(r, 3) == 0)
        f.workflow_id = rng_below(r, 2) == 0 ? STR("w") : STR("other");
    if (rng_below(r, 3) == 0) {
        f.label_name = STR("env");
        f.label_value = rng_below(r, 2) == 0 ? STR("a") : STR("b");
    }
    if (rng_below(r, 4) == 0)
        f.created_after = (int64_t)rng_below(r, count / 10 + 1);
    if (rng_below(r, 4) == 0)
        f.created_before = (int64_t)rng_below(r, count / 10 + 1);
    return f;
}

static void lists_agree_with_a_model_wherever_the_index_ends(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static struct model m;
    m = (struct model){.clock = INT64_C(1000000)};
    struct rng r = {99};
    for (int round = 0; round < 40; round++) {
        assert_ok(db_begin(db));
        for (uint64_t n = 1 + rng_below(&r, 70); n > 0; n--)
            model_insert(&m, db, &r);
        for (int n = 0; n < 10; n++)
            model_update(&m, db, &r);
        assert_ok(db_commit(db));
        if (rng_below(&r, 3) == 0)
            fill_index(db, m.runs[rng_below(&r, m.count)].num);
        for (int n = 0; n < 8; n++) {
            struct run_filter f = random_filter(&r, m.count);
            check_list(db, &f, &m, &r);
        }
    }
    db_close(db);
}

static void every_status_is_listed_whole_at_every_state_of_the_index(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static struct model m;
    m = (struct model){.clock = INT64_C(1000000)};
    struct rng r = {123};
    assert_ok(db_begin(db));
    for (int n = 0; n < 200; n++)
        model_insert(&m, db, &r);
    assert_ok(db_commit(db));
    for (size_t through = 0; through < m.count; through += 40) {
        if (through > 0)
            fill_index(db, m.runs[through].num);
        for (unsigned s = 0; s <= RUN_STATUS_COUNT; s++) {
            struct run_filter f = {.tenant = 1,
                                   .statuses = s > 0 ? 1u << (s - 1) : RUN_ANY_STATUS,
                                   .created_after = -1,
                                   .created_before = -1};
            check_list(db, &f, &m, &r);
        }
    }
    db_close(db);
}

static void a_rare_match_is_found_in_the_end(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    int64_t last = 0;
    int64_t first = 0;
    assert_ok(db_begin(db));
    for (int i = 0; i < PAGE_SCAN_MAX + 1000; i++) {
        struct run run = run_at(1, 5000, last);
        last = run.num;
        if (i == 0) {
            first = run.num;
            run.workflow_id = STR("rare");
        }
        assert_ok(runs_insert(db, &run));
    }
    assert_ok(late_index_fill(db, last - 5000));
    assert_ok(db_commit(db));
    struct run_filter f = {
        .tenant = 1, .workflow_id = STR("rare"), .created_after = -1, .created_before = -1};
    static struct page page;
    page = (struct page){.room = 10};
    int64_t next = -1;
    assert_ok(runs_list(db, &f, INT64_MAX, take_run, &page, &next));
    assert_int_equal(page.count, 0); /* the scan took a break */
    assert_true(next > first);
    assert_ok(runs_list(db, &f, next, take_run, &page, &next));
    assert_int_equal(page.count, 1);
    assert_int_equal(page.nums[0], first);
    assert_int_equal(next, -1);
    db_close(db);
}

static void an_empty_store_has_an_empty_list(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    for (unsigned s = 0; s < 1u << RUN_STATUS_COUNT; s += 7) {
        struct run_filter f = {
            .tenant = 1, .statuses = s, .created_after = -1, .created_before = -1};
        static struct page page;
        page = (struct page){.room = 10};
        int64_t next = 5;
        assert_ok(runs_list(db, &f, INT64_MAX, take_run, &page, &next));
        assert_int_equal(page.count, 0);
        assert_int_equal(next, -1);
    }
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(lists_agree_with_a_model_wherever_the_index_ends),
        folder_test(every_status_is_listed_whole_at_every_state_of_the_index),
        folder_test(a_rare_match_is_found_in_the_end),
        folder_test(an_empty_store_has_an_empty_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
