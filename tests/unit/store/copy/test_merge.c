/* Several shards become one store: their rows keep their numbers, what shards have each for
 * themselves becomes one, and shards that cannot become one store are refused. */
#include "store/copy/copy_support.h"

#include "store/audit.h"
#include "store/outbox/feed.h"
#include "store_support/stores.h"

enum { SHARDS = 3, APART = 1000 /* numbers of rows of one shard and the next */ };

struct shards {
    char urls[SHARDS][URL_MAX];
    struct str others[SHARDS];
    char target[URL_MAX];
};

static struct shards shards_in(void **state)
{
    struct shards s;
    for (size_t i = 0; i < SHARDS; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "shard-%zu.db", i);
        (void)snprintf(s.urls[i], URL_MAX, "sqlite:%s", path_in(*state, name).text);
        db_close(open_url(s.urls[i]));
    }
    test_store_url(path_in(*state, "target.db").text, s.target, sizeof(s.target));
    return s;
}

static struct copied try_merge_with(struct shards *s, progress_fn *progress)
{
    struct problem p;
    struct store_copy copy;
    struct copied result = {.err = ERR_OK};
    for (size_t i = 1; i < SHARDS; i++)
        s->others[i - 1] = str_of(s->urls[i]);
    struct copy_config config = {.from = str_of(s->urls[0]),
                                 .others = s->others,
                                 .other_count = SHARDS - 1,
                                 .to = str_of(s->target),
                                 .env = &ENV_SYSTEM,
                                 .on_progress = progress};
    problem_init(&p);
    result.err = store_copy_open(&copy, &config, &p);
    if (result.err == ERR_OK)
        result.err = store_copy_run(&copy, &p);
    if (result.err == ERR_OK)
        result.digest = store_copy_digest(&copy);
    (void)snprintf(result.why, sizeof(result.why), "%s", p.detail);
    result.rows = copy.rows;
    result.rows_kept = copy.rows_kept;
    result.was_whole = copy.was_whole;
    store_copy_close(&copy);
    problem_release(&p);
    return result;
}

static struct copied try_merge(struct shards *s)
{
    return try_merge_with(s, NULL);
}

static struct copied merge(struct shards *s)
{
    struct copied result = try_merge(s);
    if (result.err != ERR_OK)
        fail_msg("%s", result.why);
    return result;
}

/* What a statement finds in the target. */
static int64_t in_target(const struct shards *s, const char *sql)
{
    struct db *db = open_url(s->target);
    int64_t number = number_of(db, sql);
    db_close(db);
    return number;
}

static void in_shard(const struct shards *s, size_t shard, const char *sql)
{
    const char *const statements[] = {sql, NULL};
    change(s->urls[shard], statements);
}

#define TENANT(num, id)                                                               \
    "INSERT INTO tenants (num, id, at_limit, weight, gate, active_runs, queued_runs," \
    " created_at, updated_at) VALUES (" #num ", '" id "', 'reject', 1, '\"store\"', 0, 0, 1, 1)"
#define KEY_RECORD(num, tenant, key, route, body)                                              \
    "INSERT INTO key_records (num, tenant, key, key_hash, route, fingerprint, raw_hash,"       \
    " status, says_created, body, replays, mismatches, created_at) VALUES (" #num ", " #tenant \
    ", '" key "', 0, '" route "', zeroblob(32), zeroblob(8), 200, 1, '" body "', 0, 0, 1)"
#define NEW_KEY "POST /api/v1/keys"
#define START "POST /api/v1/workflows/w/runs"

/* --- rows --- */

/* Rows with a value in every column, whose numbers are those of the shard. */
static void fill_shard(const struct shards *s, size_t shard, int64_t rows)
{
    struct problem p;
    struct copy_tables tables;
    struct arena arena;
    struct db_value values[COPY_COLUMNS_MAX];
    struct db *db = open_url(s->urls[shard]);
    problem_init(&p);
    arena_init(&arena, MIB);
    assert_ok(copy_tables_read(db, &p, &tables));
    for (size_t t = 0; t < tables.count; t++) {
        for (int64_t row = 1; row <= rows; row++) {
            const struct copy_table *table = &tables.list[t];
            arena_clear(&arena);
            for (size_t i = 0; i < table->column_count; i++)
                values[i] =
                    made_value(&arena, table->columns[i].holds, (int64_t)shard * APART + row);
            assert_ok(db_exec_values(db, table->insert, values, table->column_count, NULL));
        }
    }
    run_sql(db, "UPDATE indexed SET through = 1000000 WHERE name = 'runs'");
    run_sql(db, "UPDATE runs SET key = NULL"); /* key_records has it */
    db_close(db);
    copy_tables_release(&tables);
    arena_release(&arena);
    problem_release(&p);
}

static struct shards filled_in(void **state, int64_t rows)
{
    struct shards s = shards_in(state);
    for (size_t i = 0; i < SHARDS; i++)
        fill_shard(&s, i, rows);
    return s;
}

static void the_store_has_the_rows_of_every_shard(void **state)
{
    struct shards s = filled_in(state, 4);
    struct copied merged = merge(&s);
    assert_true(merged.rows > SHARDS * 4 * 40);
    assert_true(is_whole(s.target));
    assert_int_equal(in_target(&s, "SELECT count(*) FROM runs"), SHARDS * 4);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM jobs WHERE run = 2003"), 1);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM tenants"), SHARDS * 4);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM key_blocks"), 0);
    assert_int_equal(in_target(&s, "SELECT through FROM indexed WHERE name = 'runs'"), 2004);
    struct copied again = merge(&s);
    assert_true(again.was_whole);
    assert_memory_equal(&again.digest, &merged.digest, sizeof(merged.digest));
}

static void a_store_that_has_been_used_since_is_noticed(void **state)
{
    struct shards s = filled_in(state, 1);
    (void)merge(&s);
    in_shard(&s, 1, "UPDATE entity_states SET state = '{}'");
    assert_refused(try_merge(&s), "The table entity_states differs");
}

/* --- interruptions --- */

static void a_merge_that_is_interrupted_anywhere_goes_on(void **state)
{
    struct shards s = filled_in(state, 2);
    int64_t kept = 0, failures = 0;
    struct copied merged = {.err = ERR_STORE_FULL};
    (void)snprintf(s.target, sizeof(s.target), "failing:%s", path_in(*state, "failing.db").text);
    (void)snprintf(s.urls[1], URL_MAX, "failing:%s", path_in(*state, "shard-1.db").text);
    for (int64_t nth = 1; merged.err != ERR_OK; nth += 13) {
        failing_arm(&(struct fault){.nth = nth, .err = ERR_STORE_FULL});
        merged = try_merge(&s);
        bool has_failed = failing_has_fired();
        failing_disarm();
        assert_int_equal(has_failed, merged.err != ERR_OK);
        failures += has_failed;
        assert_true(merged.rows_kept == 0 || merged.rows_kept >= kept);
        kept = MAX(kept, merged.rows_kept);
        if (kept > 0)
            assert_int_equal(is_whole(s.target), merged.err == ERR_OK);
    }
    assert_true(failures > 20);
    assert_true(merge(&s).was_whole);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM timeline"), SHARDS * 2);
}

static void fail_after_items(void *ctx, const struct copy_progress *progress)
{
    (void)ctx;
    if (!progress->table_is_done && str_is(progress->table, "map_items"))
        failing_arm(&(struct fault){.nth = 1, .err = ERR_STORE_FULL, .lasting = true});
}

static void a_slice_that_is_there_is_not_copied_again(void **state)
{
    struct shards s = shards_in(state);
    struct problem p;
    struct copy_tables tables;
    int64_t rows = COPY_SLICE_ROWS + 3;
    problem_init(&p);
    struct db *db = open_url(s.urls[1]);
    assert_ok(copy_tables_read(db, &p, &tables));
    size_t at = 0;
    while (!str_is(tables.list[at].name, "map_items"))
        at++;
    fill_table(db, &tables.list[at], rows);
    db_close(db);
    copy_tables_release(&tables);
    problem_release(&p);
    (void)snprintf(s.target, sizeof(s.target), "failing:%s", path_in(*state, "failing.db").text);
    assert_int_equal(try_merge_with(&s, fail_after_items).err, ERR_STORE_FULL);
    failing_disarm();
    struct copied merged = merge(&s);
    assert_true(merged.rows_kept >= COPY_SLICE_ROWS);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM map_items"), rows);
}

/* --- shards that cannot become one --- */

static void assert_no_target(void **state)
{
    assert_int_equal(file_size(path_in(*state, "target.db").text), -1);
}

static void rows_of_two_shards_with_one_number_are_refused(void **state)
{
    static const char *const TAKEN[] = {
        "UPDATE runs SET num = 1 WHERE num = 2001",
        "UPDATE entities SET num = 1 WHERE num = 2001", /* a run has it */
        "UPDATE tenants SET num = 1001 WHERE num = 2001",
        "UPDATE webhooks SET num = 1001 WHERE num = 2001",
        "UPDATE key_records SET num = 1 WHERE num = 2001",
        "UPDATE audit_chains SET chain = 1 WHERE chain = 2001",
    };
    for (size_t i = 0; i < ARRAY_LEN(TAKEN); i++) {
        void *folder = NULL;
        assert_int_equal(folder_setup(&folder), 0);
        struct shards s = filled_in(&folder, 1);
        for (size_t shard = 0; shard < SHARDS; shard++)
            in_shard(&s, shard, "UPDATE audit_chains SET chain = chain + 500");
        if (i == ARRAY_LEN(TAKEN) - 1)
            in_shard(&s, 2, "UPDATE audit_chains SET chain = 2001");
        in_shard(&s, 2, TAKEN[i]);
        assert_refused(try_merge(&s), "which an earlier version gave");
        if (!test_store_is_postgres())
            assert_no_target(&folder);
        folder_teardown(&folder);
    }
    (void)state;
}

static void a_tenant_in_two_shards_of_its_own_is_refused(void **state)
{
    struct shards s = shards_in(state);
    in_shard(&s, 0, TENANT(256, "acme"));
    in_shard(&s, 1, TENANT(257, "acme"));
    in_shard(&s, 2, TENANT(258, "acme"));
    assert_refused(try_merge(&s), "The tenant acme is in the shards 1 and 2");
}

static void a_key_that_was_used_for_two_requests_is_refused(void **state)
{
    struct shards s = shards_in(state);
    in_shard(&s, 0, TENANT(256, "acme"));
    in_shard(&s, 1, TENANT(257, "acme"));
    in_shard(&s, 0, KEY_RECORD(256, 256, "k", NEW_KEY, "{}"));
    in_shard(&s, 1, KEY_RECORD(257, 257, "k", START, "{}"));
    assert_refused(try_merge(&s), "The tenant acme has used the idempotency key k for two");
    assert_false(is_whole(s.target));
}

/* --- what shards have each for themselves --- */

static void a_tenant_with_two_rows_keeps_that_of_its_own_shard(void **state)
{
    struct shards s = shards_in(state);
    in_shard(&s, 0, TENANT(256, "acme"));
    in_shard(&s, 0, TENANT(512, "first"));
    in_shard(&s, 1, TENANT(257, "acme"));
    in_shard(&s, 1, TENANT(513, "*"));
    in_shard(&s, 2, TENANT(258, "*"));
    in_shard(&s, 0,
             "INSERT INTO api_keys (id, tenant, prefix, hash, role, created_at, created_by)"
             " VALUES (x'01', 256, 'a', x'', 'admin', 1, 'root'),"
             " (x'02', 512, 'b', x'', 'admin', 1, 'root'),"
             " (x'03', NULL, 'c', x'', 'admin', 1, 'root')");
    in_shard(&s, 0, KEY_RECORD(256, 256, "k", NEW_KEY, "{}"));
    in_shard(&s, 2, KEY_RECORD(258, 258, "any", START, "{}"));
    in_shard(&s, 0, "INSERT INTO minutes VALUES (256, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, NULL)");
    in_shard(&s, 1, "INSERT INTO minutes VALUES (257, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, NULL)");
    (void)merge(&s);
    assert_int_equal(in_target(&s, "SELECT num FROM tenants WHERE id = 'acme'"), 257);
    assert_int_equal(in_target(&s, "SELECT num FROM tenants WHERE id = '*'"), 513);
    assert_int_equal(in_target(&s, "SELECT tenant FROM api_keys WHERE prefix = 'a'"), 257);
    assert_int_equal(in_target(&s, "SELECT tenant FROM api_keys WHERE prefix = 'b'"), 512);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM api_keys WHERE tenant IS NULL"), 1);
    assert_int_equal(in_target(&s, "SELECT tenant FROM key_records WHERE key = 'k'"), 257);
    assert_int_equal(in_target(&s, "SELECT tenant FROM key_records WHERE key = 'any'"), 513);
    assert_int_equal(in_target(&s, "SELECT sum(starts) FROM minutes"), 2);
}

static void a_record_that_a_move_has_copied_is_there_once(void **state)
{
    struct shards s = shards_in(state);
    in_shard(&s, 0, TENANT(7, "acme"));
    in_shard(&s, 1, TENANT(7, "acme"));
    in_shard(&s, 0, KEY_RECORD(3, 7, "k", NEW_KEY, "of shard 0"));
    in_shard(&s, 1, KEY_RECORD(3, 7, "k", NEW_KEY, "of shard 1"));
    (void)merge(&s);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM key_records"), 1);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM key_records WHERE body = 'of shard 0'"),
                     1);
}

static void append(const char *url, int64_t tenant, int64_t entries)
{
    struct db *db = open_url(url);
    assert_ok(db_begin(db));
    for (int64_t i = 0; i < entries; i++) {
        struct audit_entry e = {tenant,          1000 + i,          STR("ann"),
                                STR("10.0.0.1"), STR("key.create"), STR("target"),
                                STR_NONE};
        assert_ok(audit_append(db, &e));
    }
    assert_ok(db_commit(db));
    db_close(db);
}

static void note(void *ctx, const struct audit_break *b)
{
    *(struct audit_break *)ctx = *b;
}

static struct audit_head head_of(const char *url, int64_t chain)
{
    struct audit_break broken = {.seq = 0};
    struct audit_head head;
    int64_t checked = 0;
    struct db *db = open_url(url);
    assert_ok(audit_verify(db, chain, note, &broken, &checked, &head));
    assert_int_equal(broken.seq, 0);
    db_close(db);
    return head;
}

static int64_t joined_of(const char *url, int64_t tenant)
{
    int64_t chain = 0;
    struct db *db = open_url(url);
    assert_ok(audit_next_joined(db, tenant, 0, false, &chain));
    db_close(db);
    return chain;
}

static void assert_same_head(struct audit_head a, struct audit_head b)
{
    assert_true(a.seq > 0);
    assert_int_equal(a.seq, b.seq);
    assert_true(sha256_eq(&a.hash, &b.hash));
}

/* With one number in both shards, and with two. */
static void every_chain_of_the_audit_trail_stays_whole(void **state)
{
    struct shards s = shards_in(state);
    in_shard(&s, 0, TENANT(7, "came"));
    in_shard(&s, 1, TENANT(7, "came"));
    in_shard(&s, 0, TENANT(256, "born"));
    in_shard(&s, 2, TENANT(258, "born"));
    append(s.urls[0], 7, 2);
    append(s.urls[1], 7, 5);
    append(s.urls[0], 256, 3);
    append(s.urls[2], 258, 1);
    append(s.urls[0], 0, 4);
    append(s.urls[2], 0, 6);
    (void)merge(&s);
    int64_t came = joined_of(s.target, 7);
    int64_t born = joined_of(s.target, 258);
    int64_t server = joined_of(s.target, 0);
    assert_same_head(head_of(s.urls[1], 7), head_of(s.target, 7));
    assert_same_head(head_of(s.urls[0], 7), head_of(s.target, came));
    assert_same_head(head_of(s.urls[2], 258), head_of(s.target, 258));
    assert_same_head(head_of(s.urls[0], 256), head_of(s.target, born));
    assert_same_head(head_of(s.urls[0], 0), head_of(s.target, 0));
    assert_same_head(head_of(s.urls[2], 0), head_of(s.target, server));
    assert_int_equal(in_target(&s, "SELECT count(*) FROM audit_chains"), 3);
    assert_true(in_target(&s, "SELECT through FROM indexed WHERE name = 'numbers'") >=
                MAX(MAX(came, born), server));
    append(s.target, 258, 1);
    assert_int_equal(head_of(s.target, 258).seq, 2);
}

#define FEED_ROW(num, tenant)                                                          \
    "INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at) VALUES (" #num \
    ", " #tenant ", 1, 1, 1, 1)"

static struct feed_move position_of(const struct shards *s, int64_t tenant)
{
    struct feed_move move;
    struct db *db = open_url(s->target);
    assert_ok(feed_move_of(db, tenant, &move));
    db_close(db);
    return move;
}

static void clients_of_the_feed_go_on_to_count_as_they_did(void **state)
{
    struct shards s = shards_in(state);
    in_shard(&s, 0, TENANT(256, "a"));
    in_shard(&s, 1, TENANT(257, "b"));
    in_shard(&s, 2, TENANT(258, "c"));
    in_shard(&s, 2, TENANT(514, "moved"));
    in_shard(&s, 0, FEED_ROW(9, 256));
    in_shard(&s, 0, "INSERT INTO feed_marks VALUES ('bus', 8), ('swept', 2)");
    in_shard(&s, 1, FEED_ROW(5, 257));
    in_shard(&s, 1,
             "INSERT INTO feed_marks VALUES ('bus', 5), ('swept', 4), ('webhooks', 4),"
             " ('webhooks.seq', 3)");
    in_shard(&s, 2, FEED_ROW(30, 514));
    in_shard(&s, 2, "INSERT INTO feed_marks VALUES ('bus', 29), ('swept', 20)");
    in_shard(&s, 2, "INSERT INTO moved_feeds VALUES (514, 12, 25, 3, 28, 27, 1)");
    (void)merge(&s);
    struct feed_move b = position_of(&s, 257);
    struct feed_move moved = position_of(&s, 514);
    assert_int_equal(position_of(&s, 256).shift, 0);
    assert_int_equal(b.shift, 5); /* its first row was 5, and is 10 */
    assert_int_equal(b.since, 9);
    assert_int_equal(b.swept, 4);
    assert_int_equal(b.fanned, 9);
    assert_int_equal(b.fanned_seq, 3);
    /* the numbers of shard 2 are greater than those of the others: they stay */
    assert_int_equal(moved.shift, 12);
    assert_int_equal(moved.since, 25);
    assert_int_equal(moved.swept, 3);
    assert_int_equal(moved.fanned, 30); /* nobody has webhooks there */
    assert_int_equal(position_of(&s, 258).swept, 20);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM feed_packs WHERE num IN (9, 10, 30)"), 3);
    assert_int_equal(in_target(&s, "SELECT through FROM feed_marks WHERE name = 'bus'"), 8);
    assert_int_equal(in_target(&s, "SELECT published FROM moved_feeds WHERE tenant = 257"), 10);
    assert_int_equal(in_target(&s, "SELECT published FROM moved_feeds WHERE tenant = 514"), 29);
}

#define COUNTERS(num, counters)                                                                  \
    "INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, counters) VALUES (" #num \
    ", 1, 1, 1, 1, 1, '" counters "')"
#define FOLDED(num) "UPDATE indexed SET through = " #num " WHERE name = 'counters'"

/* What was folded in its shard would be newer than the tenant's row in the target. */
static void counters_are_those_of_each_shard(void **state)
{
    struct shards s = shards_in(state);
    in_shard(&s, 0, TENANT(256, "a"));
    in_shard(&s, 0, COUNTERS(8, "[[256,9,9,9]]"));
    in_shard(&s, 0, FOLDED(8));
    in_shard(&s, 1, TENANT(257, "b"));
    in_shard(&s, 1, COUNTERS(4, "[[257,7,7,7]]"));
    in_shard(&s, 1, COUNTERS(9, "[[257,3,2,1]]"));
    in_shard(&s, 1, FOLDED(4));
    in_shard(&s, 2, TENANT(258, "c"));
    in_shard(&s, 2, COUNTERS(1, "[[258,5,0,0]]"));
    in_shard(&s, 2, "UPDATE tenants SET active_runs = 6 WHERE num = 258");
    in_shard(&s, 2, FOLDED(30));
    (void)merge(&s);
#define FOUND "SELECT 100 * active_runs + 10 * queued_runs + rate_full_at FROM tenant_counters"
    assert_int_equal(in_target(&s, FOUND " WHERE id = 'a'"), 0);
    assert_int_equal(in_target(&s, FOUND " WHERE id = 'b'"), 321);
    assert_int_equal(in_target(&s, FOUND " WHERE id = 'c'"), 600);
    assert_int_equal(in_target(&s, "SELECT count(*) FROM feed_packs"), 4);
}

static void leases_of_all_shards_are_accepted(void **state)
{
    struct shards s = shards_in(state);
    in_shard(&s, 0, "INSERT INTO secrets VALUES ('lease', zeroblob(32)), ('session', x'0000')");
    in_shard(&s, 1, "INSERT INTO secrets VALUES ('lease', x'01'), ('session', x'01')");
    in_shard(&s, 2, "INSERT INTO secrets VALUES ('lease', x'02'), ('lease.x', x'01')");
    (void)merge(&s);
    assert_int_equal(
        in_target(&s, "SELECT count(*) FROM secrets WHERE substr(name, 1, 6) = 'lease.'"), 2);
    assert_int_equal(
        in_target(&s, "SELECT count(*) FROM secrets WHERE name = 'session' AND length(value) = 2"),
        1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(the_store_has_the_rows_of_every_shard),
        folder_test(a_store_that_has_been_used_since_is_noticed),
        folder_test(a_merge_that_is_interrupted_anywhere_goes_on),
        folder_test(a_slice_that_is_there_is_not_copied_again),
        folder_test(rows_of_two_shards_with_one_number_are_refused),
        folder_test(a_tenant_in_two_shards_of_its_own_is_refused),
        folder_test(a_key_that_was_used_for_two_requests_is_refused),
        folder_test(a_tenant_with_two_rows_keeps_that_of_its_own_shard),
        folder_test(a_record_that_a_move_has_copied_is_there_once),
        folder_test(every_chain_of_the_audit_trail_stays_whole),
        folder_test(clients_of_the_feed_go_on_to_count_as_they_did),
        folder_test(counters_are_those_of_each_shard),
        folder_test(leases_of_all_shards_are_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
