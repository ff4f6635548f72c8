/* Blocks of the index of runs, compared with a list of the runs. */
#include "store/run_support.h"

#include "store/run/late_index.h"

enum { TENANTS = 3, RUNS_MAX = 3000, SPREAD = 100000 };

struct model {
    struct indexed_run runs[RUNS_MAX]; /* by number */
    size_t count;
    int64_t last;
};

static struct model model;

/* What a fold adds: runs of several tenants, now and then many. */
static void add(struct db *db, struct rng *r)
{
    struct indexed_run fold[200];
    size_t count = rng_below(r, rng_below(r, 4) == 0 ? ARRAY_LEN(fold) : 6);
    for (size_t i = 0; i < count && model.count < RUNS_MAX; i++) {
        model.last += 1 + (int64_t)rng_below(r, rng_below(r, 9) == 0 ? SPREAD : 3);
        fold[i] = (struct indexed_run){1 + (int64_t)rng_below(r, TENANTS), model.last, false};
        model.runs[model.count++] = fold[i];
        if (model.count == RUNS_MAX)
            count = i + 1;
    }
    indexed_runs_sort(fold, count);
    assert_ok(run_blocks_add(db, fold, count));
}

static void remove_one(struct db *db, struct rng *r)
{
    if (model.count == 0)
        return;
    size_t which = rng_below(r, model.count);
    struct indexed_run *run = &model.runs[which];
    assert_ok(run_blocks_remove(db, run->tenant, run->num));
    memmove(run, run + 1, (--model.count - which) * sizeof(*run));
}

static bool is_passed(const struct run_walk *walk, const struct indexed_run *run)
{
    return run->tenant == walk->tenant &&
           (walk->down ? run->num < walk->from : run->num > walk->from);
}

static void check_walk(struct db *db, const struct run_walk *walk, size_t room)
{
    int64_t nums[RUNS_MAX];
    size_t count = 0;
    size_t at = 0;
    assert_ok(run_blocks_list(db, walk, nums, room, &count));
    for (size_t i = 0; i < model.count && at < room; i++) {
        const struct indexed_run *run = &model.runs[walk->down ? model.count - 1 - i : i];
        if (!is_passed(walk, run))
            continue;
        assert_true(at < count);
        assert_int_equal(nums[at], run->num);
        at++;
    }
    assert_int_equal(count, at);
}

static void random_walk(struct db *db, struct rng *r)
{
    int64_t from = rng_below(r, 3) == 0 || model.count == 0
                       ? (int64_t)rng_below(r, (uint64_t)model.last + 2)
                       : model.runs[rng_below(r, model.count)].num;
    const struct run_walk walk = {1 + (int64_t)rng_below(r, TENANTS), from, rng_below(r, 2) == 0};
    check_walk(db, &walk, rng_below(r, 2) == 0 ? 1 + rng_below(r, 90) : RUNS_MAX);
}

static void blocks_agree_with_a_model(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    struct rng r = {7};
    model = (struct model){.count = 0};
    assert_ok(db_begin(db));
    while (model.count < RUNS_MAX) {
        add(db, &r);
        for (size_t removed = rng_below(&r, 9); removed > 0; removed--)
            remove_one(db, &r);
        for (int walks = 0; walks < 5; walks++)
            random_walk(db, &r);
    }
    assert_int_equal(number_of(db, "SELECT count(*) FROM runs_index"), model.count);
    while (model.count > 0)
        remove_one(db, &r);
    assert_int_equal(number_of(db, "SELECT count(*) FROM run_blocks"), 0);
    assert_ok(db_commit(db));
    db_close(db);
}

static void runs_of_a_tenant_share_a_row(void **state)
{
    struct db *db = open_writer(path_in(*state, "x.db").text);
    struct indexed_run runs[2 * BLOCK_RUNS_MAX + 2];
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        runs[i] = (struct indexed_run){i == 0 ? 1 : 2, 10 + (int64_t)i, false};
    assert_ok(db_begin(db));
    assert_ok(run_blocks_add(db, runs, ARRAY_LEN(runs)));
    assert_int_equal(number_of(db, "SELECT count(*) FROM run_blocks"), 4);
    assert_int_equal(number_of(db, "SELECT count(*) FROM run_blocks WHERE runs IS NULL"), 2);
    assert_ok(db_commit(db));
    db_close(db);
}

static void a_damaged_block_is_an_error(void **state)
{
    static const char *const DAMAGES[] = {
        "UPDATE run_blocks SET runs = ''",
        "UPDATE run_blocks SET runs = '0,'",
        "UPDATE run_blocks SET runs = ',x,'",
        "UPDATE run_blocks SET runs = ',0'",
        "UPDATE run_blocks SET runs = ',0,-1,'",
        "UPDATE run_blocks SET runs = ',0,,1,'",
        "UPDATE run_blocks SET runs = ',1,0+,'",
        "UPDATE run_blocks SET runs = ',1234567890123456789,'",
    };
    struct db *db = open_writer(path_in(*state, "x.db").text);
    const struct indexed_run run = {1, 1, false};
    const struct run_walk walk = {.tenant = 1};
    assert_ok(db_begin(db));
    assert_ok(run_blocks_add(db, &run, 1));
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        int64_t nums[4];
        size_t count;
        assert_ok(db_exec_values(db, DAMAGES[i], NULL, 0, NULL));
        assert_int_equal(run_blocks_list(db, &walk, nums, ARRAY_LEN(nums), &count), ERR_DAMAGED);
    }
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(blocks_agree_with_a_model),
        folder_test(runs_of_a_tenant_share_a_row),
        folder_test(a_damaged_block_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
