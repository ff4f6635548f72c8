/* The counters of tenants: in the writer's memory, in the log of the latest commits, and in the
 * tenants' rows. Whatever was committed is what a reader and a new writer find; what was rolled
 * back is nowhere. */
#include "store/folder.h"

#include "base/limits.h"
#include "core/txn/cache/tenant_cache.h"
#include "store/tenants.h"

enum { TENANTS = COUNTER_LOG_TENANTS_MAX + 40 };

struct counts {
    int64_t active[TENANTS + 1]; /* by the tenant's number */
    int64_t rate[TENANTS + 1];
};

struct writer {
    struct path file;
    struct db *db;
    struct tenant_cache *cache;
    struct arena arena;
    struct counts committed;
    struct counts open; /* with what the transaction has changed */
};

static void open_store(struct writer *w, struct folder *folder)
{
    *w = (struct writer){.file = path_in(folder, "p.db"), .cache = tenant_cache_new()};
    assert_non_null(w->cache);
    arena_init(&w->arena, 4 * MIB);
    w->db = open_writer(w->file.text);
    assert_ok(db_begin(w->db));
    for (int i = 1; i <= TENANTS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "t%d", i);
        struct tenant t = tenant_default(str_of(id), 1000);
        assert_ok(tenants_insert(w->db, &t));
        assert_int_equal(t.num, i);
    }
    assert_ok(db_commit(w->db));
    assert_ok(db_begin(w->db));
}

static void close_store(struct writer *w)
{
    db_rollback(w->db);
    tenant_cache_free(w->cache);
    arena_release(&w->arena);
    db_close(w->db);
}

/* As read_tx_tenant_num() does. */
static struct tenant *load(struct writer *w, int64_t num)
{
    assert_ok(tenant_cache_read_log(w->cache, w->db, &w->arena));
    struct tenant *t = tenant_cache_find_num(w->cache, num);
    struct tenant read;
    bool found = false;
    if (t != NULL)
        return t;
    assert_ok(tenants_find_num(w->db, num, &w->arena, &found, &read));
    assert_true(found);
    return tenant_cache_add(w->cache, &read);
}

static void change(struct writer *w, int64_t num, int64_t by)
{
    struct tenant *t = load(w, num);
    assert_int_equal(t->active_runs, w->open.active[num]);
    assert_int_equal(t->rate_full_at_ns, w->open.rate[num]);
    t->active_runs = w->open.active[num] += by;
    t->rate_full_at_ns = w->open.rate[num] += 7 * by;
    tenant_cache_touch(w->cache, t);
}

static void commit(struct writer *w)
{
    assert_ok(tenant_cache_flush(w->cache, w->db));
    assert_ok(db_commit(w->db));
    assert_ok(db_begin(w->db));
    w->committed = w->open;
    arena_clear(&w->arena);
}

static void roll_back(struct writer *w)
{
    db_rollback(w->db);
    tenant_cache_forget(w->cache);
    assert_ok(db_begin(w->db));
    w->open = w->committed;
    arena_clear(&w->arena);
}

/* What a reader finds, in its list and one by one. */
static void assert_listed(void *ctx, const struct tenant *t)
{
    const struct writer *w = ctx;
    assert_int_equal(t->active_runs, w->committed.active[t->num]);
    assert_int_equal(t->rate_full_at_ns, w->committed.rate[t->num]);
}

static void assert_committed(struct writer *w)
{
    struct db *reader = open_reader(w->file.text);
    struct arena arena;
    arena_init(&arena, 4 * MIB);
    assert_ok(tenants_list(reader, STR(""), TENANTS + 1, &arena, assert_listed, w));
    for (int64_t num = 1; num <= TENANTS; num += 17) {
        struct tenant t = {.num = num};
        assert_ok(tenants_read_counters(reader, &t));
        assert_listed(w, &t);
    }
    arena_release(&arena);
    db_close(reader);
}

static int64_t number(const struct writer *w, const char *sql)
{
    struct raw raw = raw_open(w->file.text);
    int64_t found = raw_number(&raw, sql);
    raw_close(&raw);
    return found;
}

static void a_commit_writes_the_counters_of_all_its_tenants_as_one_row(void **state)
{
    struct writer w;
    open_store(&w, *state);
    for (int i = 0; i < 3; i++) {
        change(&w, 1, 1);
        change(&w, 2, 5);
        change(&w, 1, 1);
        commit(&w);
    }
    assert_int_equal(number(&w, "SELECT count(*) FROM counter_log"), 3);
    assert_int_equal(number(&w, "SELECT sum(active_runs) FROM tenants"), 0);
    assert_committed(&w);
    close_store(&w);
}

static void a_writer_that_forgot_its_counters_reads_them_from_the_log(void **state)
{
    struct writer w;
    open_store(&w, *state);
    change(&w, 1, 3);
    change(&w, 2, 1);
    commit(&w);
    tenant_cache_forget(w.cache);
    change(&w, 1, -1); /* finds what was committed */
    commit(&w);
    assert_int_equal(number(&w, "SELECT count(*) FROM counter_log"), 2);
    assert_committed(&w);
    close_store(&w);
}

static void what_is_rolled_back_is_neither_in_the_log_nor_in_memory(void **state)
{
    struct writer w;
    open_store(&w, *state);
    change(&w, 1, 3);
    commit(&w);
    change(&w, 1, 1);
    change(&w, 2, 1);
    assert_ok(tenant_cache_flush(w.cache, w.db));
    roll_back(&w);
    assert_committed(&w);
    change(&w, 1, 1);
    change(&w, 2, 1);
    commit(&w);
    assert_committed(&w);
    close_store(&w);
}

static void a_long_log_is_folded_into_the_rows_of_all_its_tenants(void **state)
{
    struct writer w;
    open_store(&w, *state);
    change(&w, 1, 1); /* long ago: not in the commit that folds */
    commit(&w);
    for (int i = 1; i < COUNTER_LOG_ROWS_MAX; i++) {
        change(&w, 2, 1);
        commit(&w);
    }
    assert_int_equal(number(&w, "SELECT count(*) FROM counter_log"), COUNTER_LOG_ROWS_MAX);
    change(&w, 3, 1);
    commit(&w);
    assert_int_equal(number(&w, "SELECT count(*) FROM counter_log"), 0);
    assert_int_equal(number(&w, "SELECT active_runs FROM tenants WHERE num = 1"), 1);
    assert_int_equal(number(&w, "SELECT active_runs FROM tenants WHERE num = 3"), 1);
    assert_committed(&w);
    change(&w, 1, 1);
    commit(&w);
    assert_int_equal(number(&w, "SELECT max(num) FROM counter_log"), 1);
    assert_committed(&w);
    close_store(&w);
}

static void a_log_of_many_tenants_is_folded_too(void **state)
{
    struct writer w;
    open_store(&w, *state);
    for (int64_t num = 1; num <= TENANTS; num++) {
        change(&w, num, num);
        if (num % 50 == 0)
            commit(&w);
    }
    commit(&w);
    assert_int_equal(number(&w, "SELECT count(*) FROM counter_log"), 0);
    assert_committed(&w);
    close_store(&w);
}

static void any_history_of_commits_and_rollbacks_leaves_the_committed_counters(void **state)
{
    struct writer w;
    uint64_t random = 12345;
    open_store(&w, *state);
    for (int i = 0; i < 600; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        int64_t among = (random >> 60) == 0 ? TENANTS : 9; /* mostly the same few */
        for (uint64_t n = 0; n <= (random >> 40) % 5; n++)
            change(&w, 1 + (int64_t)((random >> 20) + n * 5) % among, 1 + (int64_t)n);
        if ((random >> 33) % 8 == 0)
            roll_back(&w);
        else
            commit(&w);
        if ((random >> 50) % 16 == 0)
            tenant_cache_forget(w.cache); /* as when settings change */
        if (i % 20 == 0)
            assert_committed(&w);
    }
    assert_committed(&w);
    close_store(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_commit_writes_the_counters_of_all_its_tenants_as_one_row),
        folder_test(a_writer_that_forgot_its_counters_reads_them_from_the_log),
        folder_test(what_is_rolled_back_is_neither_in_the_log_nor_in_memory),
        folder_test(a_long_log_is_folded_into_the_rows_of_all_its_tenants),
        folder_test(a_log_of_many_tenants_is_folded_too),
        folder_test(any_history_of_commits_and_rollbacks_leaves_the_committed_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
