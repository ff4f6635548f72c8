/* Replay and mismatch counts on their way to the records. */
#include "store/folder.h"

#include "core/txn/replay_stats.h"
#include "store/idempotency.h"

#include <pthread.h>

static struct db *open_with_records(const struct folder *f, int count)
{
    struct db *db = open_writer(path_in(f, "p.db").text);
    struct idem_keys *keys = idem_keys_new();
    assert_non_null(keys);
    assert_ok(idem_keys_open(keys, db, &ENV_SYSTEM));
    assert_ok(db_begin(db));
    for (int i = 1; i <= count; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "key-%d", i);
        struct idem_record r = {.tenant = 1,
                                .key = str_of(key),
                                .route = STR("POST /"),
                                .status = 201,
                                .body = STR("{}"),
                                .expires_at = -1,
                                .last_replayed_at = -1};
        assert_ok(idempotency_insert(db, keys, &r)); /* its number is i */
    }
    assert_ok(db_commit(db));
    idem_keys_free(keys);
    return db;
}

static void flush(struct replay_stats *stats, struct db *db)
{
    assert_ok(db_begin(db));
    assert_ok(replay_stats_flush(stats, db));
    assert_ok(db_commit(db));
}

static int64_t of_record(struct db *db, int64_t num, int column)
{
    static const char SQL[] =
        "SELECT replays, mismatches, last_replayed_at FROM idempotency WHERE num = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num));
    assert_true(db_next(rows));
    int64_t value = db_int_or(rows, column, -1);
    assert_ok(db_rows_end(rows));
    return value;
}

static void counts_are_gathered_per_record_and_written_once(void **state)
{
    struct db *db = open_with_records(*state, 3);
    struct replay_stats *stats = replay_stats_new();
    assert_false(replay_stats_waiting(stats));
    replay_stats_add(stats, 1, false, 100);
    replay_stats_add(stats, 1, false, 200);
    replay_stats_add(stats, 1, true, 300);
    replay_stats_add(stats, 3, true, 400);
    assert_true(replay_stats_waiting(stats));
    assert_int_equal(of_record(db, 1, 0), 0);
    int64_t before = db_changes(db);
    flush(stats, db);
    assert_int_equal(db_changes(db), before + 2); /* a row per record */
    assert_false(replay_stats_waiting(stats));
    assert_int_equal(of_record(db, 1, 0), 2);
    assert_int_equal(of_record(db, 1, 1), 1);
    assert_int_equal(of_record(db, 2, 0), 0);
    assert_int_equal(of_record(db, 3, 0), 0);
    assert_int_equal(of_record(db, 3, 1), 1);
    assert_int_equal(of_record(db, 3, 2), -1);
    flush(stats, db);
    assert_int_equal(db_changes(db), before + 2); /* nothing is written twice */
    replay_stats_add(stats, 1, false, 500);
    flush(stats, db);
    assert_int_equal(of_record(db, 1, 0), 3);
    assert_int_equal(of_record(db, 1, 2), 500);
    replay_stats_free(stats);
    db_close(db);
}

static void a_record_that_is_gone_is_no_error(void **state)
{
    struct db *db = open_with_records(*state, 1);
    struct replay_stats *stats = replay_stats_new();
    replay_stats_add(stats, 999, false, 100);
    replay_stats_add(stats, 1, false, 100);
    flush(stats, db);
    assert_int_equal(of_record(db, 1, 0), 1);
    replay_stats_free(stats);
    db_close(db);
}

static void past_the_bound_new_records_are_dropped_and_known_ones_count_on(void **state)
{
    struct db *db = open_with_records(*state, IDEM_STATS_PENDING_MAX + 10);
    struct replay_stats *stats = replay_stats_new();
    for (int64_t num = 1; num <= IDEM_STATS_PENDING_MAX + 10; num++)
        replay_stats_add(stats, num, false, num);
    replay_stats_add(stats, 1, false, 1);
    flush(stats, db);
    assert_int_equal(of_record(db, 1, 0), 2);
    assert_int_equal(of_record(db, IDEM_STATS_PENDING_MAX, 0), 1);
    assert_int_equal(of_record(db, IDEM_STATS_PENDING_MAX + 1, 0), 0);
    replay_stats_add(stats, IDEM_STATS_PENDING_MAX + 1, false, 1); /* there is room again */
    flush(stats, db);
    assert_int_equal(of_record(db, IDEM_STATS_PENDING_MAX + 1, 0), 1);
    replay_stats_free(stats);
    db_close(db);
}

enum { ADDERS = 3, PER_ADDER = 3000, RECORDS = 7 };

static void *add_many(void *ctx)
{
    for (int64_t i = 0; i < PER_ADDER; i++)
        replay_stats_add(ctx, 1 + i % RECORDS, i % 3 == 0, i);
    return NULL;
}

static void nothing_is_lost_while_others_add(void **state)
{
    static const char SQL[] = "SELECT sum(replays + mismatches) FROM idempotency";
    struct db *db = open_with_records(*state, RECORDS);
    struct replay_stats *stats = replay_stats_new();
    pthread_t threads[ADDERS];
    for (size_t i = 0; i < ADDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, stats), 0);
    for (int i = 0; i < 20; i++)
        flush(stats, db);
    for (size_t i = 0; i < ADDERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    flush(stats, db);
    assert_int_equal(number_of(db, SQL), ADDERS * PER_ADDER);
    replay_stats_free(stats);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(counts_are_gathered_per_record_and_written_once),
        folder_test(a_record_that_is_gone_is_no_error),
        folder_test(past_the_bound_new_records_are_dropped_and_known_ones_count_on),
        folder_test(nothing_is_lost_while_others_add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
