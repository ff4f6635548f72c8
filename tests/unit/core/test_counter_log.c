/* The counters of tenants: in the writer's memory, in the packs of the feed that the latest commits
 * added, and in the tenants' rows. Whatever was committed is what a reader and a new writer find;
 * what was rolled back is nowhere. */
#include "store/folder.h"

#include "base/limits.h"
#include "core/txn/feed_hold.h"
#include "store/migrations.h"
#include "store/outbox/feed.h"
#include "store/run/timers.h"
#include "store/tenants.h"

enum { TENANTS = COUNTER_LOG_TENANTS_MAX + 40, NOW = 1000 };

struct counts {
    int64_t active[TENANTS + 1]; /* by the tenant's number */
    int64_t rate[TENANTS + 1];
};

struct writer {
    struct path file;
    struct db *db;
    struct tx tx;
    int64_t now_ms;
    int64_t owners; /* that have events, each a row of the feed */
    struct counts committed;
    struct counts open; /* with what the transaction has changed */
    int64_t committed_owners;
};

static void begin(struct writer *w)
{
    tx_start(&w->tx, w->now_ms);
    assert_ok(db_begin(w->db));
}

static void open_writer_of(struct writer *w)
{
    w->db = open_writer(w->file.text);
    assert_ok(tx_init(&w->tx, w->db, &ENV_SYSTEM));
}

static void open_store(struct writer *w, struct folder *folder)
{
    *w = (struct writer){.file = path_in(folder, "p.db"), .now_ms = NOW};
    open_writer_of(w);
    assert_ok(db_begin(w->db));
    for (int i = 1; i <= TENANTS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "t%d", i);
        struct tenant t = tenant_default(str_of(id), NOW);
        assert_ok(tenants_insert(w->db, &t));
        assert_int_equal(t.num, i);
    }
    assert_ok(db_commit(w->db));
    begin(w);
}

static void close_store(struct writer *w)
{
    db_rollback(w->db);
    tx_release(&w->tx);
    db_close(w->db);
}

/* As after a crash: nothing but the file is left. */
static void reopen_store(struct writer *w)
{
    close_store(w);
    w->open = w->committed;
    w->owners = w->committed_owners;
    open_writer_of(w);
    begin(w);
}

static void change(struct writer *w, int64_t num, int64_t by)
{
    struct tenant *t = NULL;
    assert_ok(read_tx_tenant_num(&w->tx.read, num, &t));
    assert_int_equal(t->active_runs, w->open.active[num]);
    assert_int_equal(t->rate_full_at_ns, w->open.rate[num]);
    t->active_runs = w->open.active[num] += by;
    t->rate_full_at_ns = w->open.rate[num] += 7 * by;
    tx_tenant_touch(&w->tx, t);
}

/* So many rows of the feed. */
static void add_events(struct writer *w, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        struct event event = {.seq = 1, .at = w->now_ms, .type = STR("run.started"), .job = -1};
        assert_ok(tx_add_event(&w->tx, 1, ++w->owners, &event));
    }
}

static void commit_with(struct writer *w, int64_t events)
{
    add_events(w, events);
    assert_ok(tx_commit(&w->tx));
    effects_forget(&w->tx.effects);
    w->committed = w->open;
    w->committed_owners = w->owners;
    begin(w);
}

static void commit(struct writer *w)
{
    commit_with(w, 1);
}

static void roll_back(struct writer *w)
{
    db_rollback(w->db);
    tx_rolled_back(&w->tx);
    w->open = w->committed;
    w->owners = w->committed_owners;
    begin(w);
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

#define MARK "(SELECT through FROM indexed WHERE name = 'counters')"
#define LOGGED "SELECT count(*) FROM counter_lists"
#define PACKS_AHEAD "SELECT count(*) FROM feed_packs WHERE num > " MARK

/* --- the log --- */

static void a_commit_writes_the_counters_of_all_its_tenants_into_one_pack(void **state)
{
    struct writer w;
    open_store(&w, *state);
    for (int i = 0; i < 3; i++) {
        change(&w, 1, 1);
        change(&w, 2, 5);
        change(&w, 1, 1);
        commit(&w);
    }
    assert_int_equal(number(&w, LOGGED), 3);
    assert_int_equal(number(&w, "SELECT sum(active_runs) FROM tenants"), 0);
    assert_committed(&w);
    close_store(&w);
}

/* Also when the last pack is full. */
static void of_several_packs_the_last_one_has_the_counters(void **state)
{
    static const int64_t EVENTS[] = {FEED_PACK_ROWS_MAX - 1, FEED_PACK_ROWS_MAX,
                                     FEED_PACK_ROWS_MAX + 1, 2 * FEED_PACK_ROWS_MAX,
                                     2 * FEED_PACK_ROWS_MAX + 1};
    struct writer w;
    open_store(&w, *state);
    for (size_t i = 0; i < ARRAY_LEN(EVENTS); i++) {
        change(&w, 1, 1);
        commit_with(&w, EVENTS[i]);
        assert_int_equal(number(&w, LOGGED), (int64_t)i + 1);
        assert_int_equal(number(&w, "SELECT count(*) FROM feed_packs WHERE counters IS NOT NULL"
                                    " AND num = (SELECT max(num) FROM feed_packs)"),
                         1);
        assert_int_equal(number(&w, "SELECT max(num) FROM feed_packs"), w.owners);
    }
    assert_int_equal(number(&w, "SELECT count(*) FROM feed_packs"), 1 + 1 + 2 + 2 + 3);
    assert_int_equal(number(&w, "SELECT count(*) FROM feed_packs WHERE earlier IS NULL"), 2);
    assert_committed(&w);
    reopen_store(&w);
    change(&w, 1, 1);
    close_store(&w);
}

static void a_writer_that_forgot_its_counters_reads_them_from_the_log(void **state)
{
    struct writer w;
    open_store(&w, *state);
    change(&w, 1, 3);
    change(&w, 2, 1);
    commit(&w);
    tx_forget(&w.tx);  /* as when settings change */
    change(&w, 1, -1); /* finds what was committed */
    commit(&w);
    assert_int_equal(number(&w, LOGGED), 2);
    assert_committed(&w);
    close_store(&w);
}

static void a_new_writer_finds_what_the_last_one_committed(void **state)
{
    struct writer w;
    open_store(&w, *state);
    change(&w, 1, 3);
    commit(&w);
    change(&w, 2, 1);
    commit(&w);
    change(&w, 1, 1);
    assert_ok(tx_flush(&w.tx));
    reopen_store(&w);
    assert_int_equal(number(&w, LOGGED), 2);
    assert_committed(&w);
    change(&w, 1, 1);
    change(&w, 2, -1);
    change(&w, 3, 1);
    commit(&w);
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
    add_events(&w, 1);
    assert_ok(tx_flush(&w.tx));
    roll_back(&w);
    assert_committed(&w);
    change(&w, 1, 1);
    change(&w, 2, 1);
    commit(&w);
    assert_int_equal(number(&w, LOGGED), 2);
    assert_committed(&w);
    close_store(&w);
}

/* --- the fold --- */

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
    assert_int_equal(number(&w, LOGGED), COUNTER_LOG_ROWS_MAX);
    change(&w, 3, 1);
    commit(&w);
    assert_int_equal(number(&w, LOGGED), 0);
    assert_int_equal(number(&w, PACKS_AHEAD), 0);
    assert_int_equal(number(&w, "SELECT " MARK), w.owners);
    assert_int_equal(number(&w, "SELECT active_runs FROM tenants WHERE num = 1"), 1);
    assert_int_equal(number(&w, "SELECT active_runs FROM tenants WHERE num = 3"), 1);
    assert_committed(&w);
    change(&w, 1, 1);
    commit(&w);
    assert_int_equal(number(&w, LOGGED), 1);
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
    assert_int_equal(number(&w, LOGGED), 0);
    assert_committed(&w);
    close_store(&w);
}

static void a_fold_that_is_rolled_back_leaves_the_log(void **state)
{
    struct writer w;
    open_store(&w, *state);
    for (int i = 0; i < COUNTER_LOG_ROWS_MAX; i++) {
        change(&w, 1, 1);
        commit(&w);
    }
    change(&w, 2, 1);
    add_events(&w, 1);
    assert_ok(tx_flush(&w.tx));
    assert_int_equal(number_of(w.db, LOGGED), 0);
    roll_back(&w);
    assert_int_equal(number(&w, LOGGED), COUNTER_LOG_ROWS_MAX);
    assert_committed(&w);
    change(&w, 1, 1);
    commit(&w);
    assert_int_equal(number(&w, LOGGED), 0);
    assert_committed(&w);
    close_store(&w);
}

static void a_commit_that_adds_nothing_to_the_feed_folds(void **state)
{
    struct writer w;
    open_store(&w, *state);
    change(&w, 1, 1);
    commit_with(&w, 0);
    assert_int_equal(number(&w, "SELECT active_runs FROM tenants WHERE num = 1"), 1);
    assert_int_equal(number(&w, "SELECT " MARK), 0);
    change(&w, 2, 1);
    commit(&w);
    change(&w, 1, 1);
    commit_with(&w, 0);
    assert_int_equal(number(&w, LOGGED), 0);
    assert_int_equal(number(&w, "SELECT active_runs FROM tenants WHERE num = 2"), 1);
    assert_int_equal(number(&w, "SELECT " MARK), 1);
    assert_committed(&w);
    close_store(&w);
}

/* Counters that are flushed in the middle of a transaction, before its last events. */
static void what_comes_after_a_flush_is_newer(void **state)
{
    struct writer w;
    open_store(&w, *state);
    change(&w, 1, 1);
    assert_ok(tx_flush(&w.tx));
    change(&w, 1, 1);
    add_events(&w, 1);
    assert_ok(tx_flush(&w.tx));
    change(&w, 1, 1);
    commit(&w);
    assert_int_equal(number(&w, LOGGED), 2);
    assert_committed(&w);
    close_store(&w);
}

static void assert_few_packs_ahead(struct writer *w)
{
    assert_true(number(w, PACKS_AHEAD) <= COUNTER_LOG_PACKS_MAX + 1);
}

static void a_reader_of_counters_passes_over_few_packs(void **state)
{
    struct writer w;
    open_store(&w, *state);
    for (int i = 0; i < 2 * COUNTER_LOG_PACKS_MAX + 20; i++) { /* nothing is logged */
        commit(&w);
        if (i % 50 == 0)
            tx_forget(&w.tx); /* nor is it known how many there are */
        if (i % 32 == 0)
            assert_few_packs_ahead(&w);
    }
    change(&w, 1, 1);
    commit(&w);
    for (int i = 0; i < COUNTER_LOG_PACKS_MAX; i++)
        commit(&w);
    assert_few_packs_ahead(&w);
    assert_int_equal(number(&w, LOGGED), 0);
    assert_int_equal(number(&w, "SELECT active_runs FROM tenants WHERE num = 1"), 1);
    assert_committed(&w);
    close_store(&w);
}

/* --- the sweep --- */

static void sweep(struct writer *w)
{
    bool more = true;
    w->now_ms += FEED_KEPT_MS + 1;
    roll_back(w); /* it has begun too early */
    assert_ok(timers_folded(w->db, w->owners));
    while (more)
        assert_ok(feed_hold_sweep(&w->tx, &more));
    assert_ok(tx_commit(&w->tx));
    begin(w);
}

static void the_feed_is_kept_as_far_as_counters_need_it(void **state)
{
    struct writer w;
    open_store(&w, *state);
    change(&w, 1, 1);
    commit_with(&w, 0);
    commit(&w);
    change(&w, 2, 1);
    commit(&w);
    change(&w, 1, 1);
    commit_with(&w, 0); /* folds */
    change(&w, 1, 1);
    commit(&w);
    commit(&w);
    sweep(&w);
    assert_int_equal(number(&w, "SELECT min(num) FROM feed_packs"), 3);
    assert_committed(&w);
    reopen_store(&w);
    change(&w, 1, 1);
    commit(&w);
    assert_committed(&w);
    close_store(&w);
}

static void a_feed_without_rows_has_an_end(void **state)
{
    struct writer w;
    open_store(&w, *state);
    for (int i = 0; i < 5; i++)
        commit(&w);
    change(&w, 1, 1);
    commit_with(&w, 0);
    sweep(&w);
    assert_int_equal(number(&w, "SELECT count(*) FROM feed_packs"), 0);
    reopen_store(&w);
    change(&w, 1, 1);
    commit_with(&w, 0);
    assert_int_equal(number(&w, "SELECT " MARK), 5);
    change(&w, 1, 1);
    commit(&w);
    assert_int_equal(number(&w, LOGGED), 1);
    assert_committed(&w);
    reopen_store(&w);
    change(&w, 1, 1);
    commit(&w);
    assert_committed(&w);
    close_store(&w);
}

/* --- all of it --- */

static uint64_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *random >> 33;
}

static void end_somehow(struct writer *w, uint64_t *random)
{
    static const int64_t EVENTS[] = {0, 1, 1, 1, 1, 2, FEED_PACK_ROWS_MAX, 150};
    if (next_random(random) % 8 == 0)
        roll_back(w);
    else
        commit_with(w, EVENTS[next_random(random) % ARRAY_LEN(EVENTS)]);
    if (next_random(random) % 16 == 0)
        tx_forget(&w->tx); /* as when settings change */
    if (next_random(random) % 32 == 0)
        reopen_store(w);
}

static void any_history_of_commits_and_rollbacks_leaves_the_committed_counters(void **state)
{
    struct writer w;
    uint64_t random = 12345;
    open_store(&w, *state);
    for (int i = 0; i < 600; i++) {
        int64_t among = next_random(&random) % 16 == 0 ? TENANTS : 9; /* mostly the same few */
        uint64_t changes = next_random(&random) % 6;
        for (uint64_t n = 0; n < changes; n++)
            change(&w, 1 + (int64_t)next_random(&random) % among, 1 + (int64_t)n);
        end_somehow(&w, &random);
        if (i % 20 == 0)
            assert_committed(&w);
    }
    assert_committed(&w);
    close_store(&w);
}

/* --- stores of earlier versions, which had a table for the log --- */

enum { VERSION_BEFORE = 29 };

static void any_number(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_int64(ctx, 0);
}

static void make_earlier_file(struct raw *raw)
{
    char stamp[96];
    (void)sqlite3_create_function(raw->file, "pawl_key_hash", 1, SQLITE_UTF8, NULL, any_number,
                                  NULL, NULL); /* for rows, of which there are none */
    for (size_t i = 0; i < VERSION_BEFORE; i++)
        raw_exec(raw, MIGRATIONS_SQLITE[i].sql);
    (void)snprintf(stamp, sizeof(stamp), "PRAGMA application_id=%d; PRAGMA user_version=%d",
                   0x7061776C, VERSION_BEFORE);
    raw_exec(raw, stamp);
}

/* Of a shard, whose place in the directory there must be. */
static void make_earlier_schema(struct raw *raw, const char *path)
{
    db_close(open_writer(path));
    raw_exec(raw, "SELECT set_config('test.shard', current_schema(), false);"
                  "DO $$ BEGIN EXECUTE format('DROP SCHEMA %1$I CASCADE; CREATE SCHEMA %1$I',"
                  " current_setting('test.shard')); END $$");
    for (size_t i = 0; MIGRATIONS_POSTGRES[i].number <= VERSION_BEFORE; i++)
        raw_exec(raw, MIGRATIONS_POSTGRES[i].sql);
    raw_exec(raw, "UPDATE shards SET version = 29 WHERE shard = 0");
}

#define GATE                                                                                \
    "{\"kind\":\"store\",\"max_wait_ms\":2000,\"lock_ttl_ms\":10000,\"retry_delay_ms\":10," \
    "\"policy\":\"full_jitter\"}"
#define TENANT(num, active)                                                                    \
    "INSERT INTO tenants (num, id, at_limit, weight, gate, active_runs, queued_runs,"          \
    " created_at, updated_at) VALUES (" #num ", 't" #num "', 'queue', 1, '" GATE "', " #active \
    ", 0, 1, 1);"

static struct raw earlier_store(const char *path)
{
    struct raw raw = raw_open(path);
    if (raw.server != NULL)
        make_earlier_schema(&raw, path);
    else
        make_earlier_file(&raw);
    raw_exec(&raw, TENANT(1, 1) TENANT(2, 2) TENANT(3, 3) TENANT(4, 4));
    return raw;
}

static void the_log_of_an_earlier_version_is_folded(void **state)
{
    struct writer w = {.file = path_in(*state, "p.db"), .now_ms = NOW};
    struct raw raw = earlier_store(w.file.text);
    raw_exec(&raw, "INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at) VALUES"
                   " (6, 1, 1, 1, 1, 1), (7, 2, 2, 1, 1, 1);"
                   "INSERT INTO counter_log VALUES (1, '[[1,10,0,70],[2,20,0,0]]'),"
                   " (2, '[[1,11,0,77]]'), (3, '[[3,30,'), (4, '[[9,1,0,0],[4,-4,0,0]]')");
    raw_close(&raw);
    w.committed.active[1] = 11;
    w.committed.rate[1] = 77;
    w.committed.active[2] = 20;
    w.committed.active[3] = 3; /* nobody can tell */
    w.committed.active[4] = 4;
    w.open = w.committed;
    open_writer_of(&w);
    assert_int_equal(number(&w, "SELECT " MARK), 7);
    assert_int_equal(number(&w, LOGGED), 0);
    assert_committed(&w);
    begin(&w);
    change(&w, 1, 1);
    commit(&w);
    change(&w, 3, 1);
    commit(&w);
    assert_int_equal(number(&w, LOGGED), 2);
    assert_committed(&w);
    reopen_store(&w);
    change(&w, 1, 1);
    commit_with(&w, 0);
    assert_committed(&w);
    close_store(&w);
}

static void a_feed_that_an_earlier_version_has_swept_has_its_end(void **state)
{
    struct writer w = {.file = path_in(*state, "p.db"), .now_ms = NOW};
    struct raw raw = earlier_store(w.file.text);
    raw_exec(&raw, "INSERT INTO feed_marks (name, through) VALUES ('swept', 12), ('bus', 13)");
    raw_close(&raw);
    open_writer_of(&w);
    assert_int_equal(number(&w, "SELECT " MARK), 12);
    assert_int_equal(number(&w, "SELECT active_runs FROM tenant_counters WHERE id = 't4'"), 4);
    tx_release(&w.tx);
    db_close(w.db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_commit_writes_the_counters_of_all_its_tenants_into_one_pack),
        folder_test(of_several_packs_the_last_one_has_the_counters),
        folder_test(a_writer_that_forgot_its_counters_reads_them_from_the_log),
        folder_test(a_new_writer_finds_what_the_last_one_committed),
        folder_test(what_is_rolled_back_is_neither_in_the_log_nor_in_memory),
        folder_test(a_long_log_is_folded_into_the_rows_of_all_its_tenants),
        folder_test(a_log_of_many_tenants_is_folded_too),
        folder_test(a_fold_that_is_rolled_back_leaves_the_log),
        folder_test(a_commit_that_adds_nothing_to_the_feed_folds),
        folder_test(what_comes_after_a_flush_is_newer),
        folder_test(a_reader_of_counters_passes_over_few_packs),
        folder_test(the_feed_is_kept_as_far_as_counters_need_it),
        folder_test(a_feed_without_rows_has_an_end),
        folder_test(any_history_of_commits_and_rollbacks_leaves_the_committed_counters),
        folder_test(the_log_of_an_earlier_version_is_folded),
        folder_test(a_feed_that_an_earlier_version_has_swept_has_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
