/* SQLite alone on the crash file system: with honest disks and full syncs nothing acknowledged is
 * ever lost; the same check finds what a lying disk or a careless setting loses. */
#include "sim/unit/crash_support.h"

#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 300 };
#else
enum { ROUNDS = 1200 };
#endif
enum { ROWS_KEPT = 40, BODY_MAX = 9000 };

#define WAL "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=30;"
#define FULL "PRAGMA synchronous=FULL;"

/* --- transactions until a crash, again and again --- */

struct history {
    struct crash_disk *disk;
    struct rng rng;
    const char *settings;
    int64_t attempted; /* transactions are numbered from 1 */
    int64_t acknowledged;
    int lost;    /* crashes after which an acknowledged transaction was missing */
    int damaged; /* crashes after which the database was not whole */
};

static bool one_transaction(struct history *h, sqlite3 *conn)
{
    char text[512];
    int64_t n = ++h->attempted;
    (void)snprintf(text, sizeof(text),
                   "BEGIN IMMEDIATE;"
                   "INSERT INTO rows (n, body) VALUES (%lld, zeroblob(%d) || 'row %lld');"
                   "UPDATE rows SET body = body || 'x' WHERE n = %lld;"
                   "DELETE FROM rows WHERE n <= %lld;"
                   "UPDATE last SET n = %lld WHERE n = %lld;"
                   "COMMIT",
                   (long long)n, (int)rng_below(&h->rng, rng_below(&h->rng, 4) ? 50 : BODY_MAX),
                   (long long)n, (long long)n - 1 - (int64_t)rng_below(&h->rng, ROWS_KEPT),
                   (long long)n - ROWS_KEPT, (long long)n, (long long)n - 1);
    if (sql_try(conn, text) != SQLITE_OK)
        return false;
    h->acknowledged = n;
    return true;
}

static bool maybe_checkpoint(struct history *h, sqlite3 *conn)
{
    if (rng_below(&h->rng, 12) != 0)
        return true;
    int mode = (int)rng_below(&h->rng, SQLITE_CHECKPOINT_TRUNCATE + 1);
    int rc = sqlite3_wal_checkpoint_v2(conn, NULL, mode, NULL, NULL);
    return rc == SQLITE_OK || rc == SQLITE_BUSY;
}

static void arm_crash(struct history *h)
{
    struct crash_fault fault = {
        .kind = CRASH_ANY,
        .nth = 1 + rng_below(&h->rng, 120),
        .result = rng_below(&h->rng, 8) == 0 ? CRASH_KILL : CRASH_POWER_CUT,
        .cut = CRASH_CUT_ANY,
        .draw = draw_rng,
        .ctx = &h->rng,
    };
    crash_disk_fail(h->disk, &fault);
}

/* Until the disk goes down. Closing now and then removes the log, as a clean stop does. */
static void run_until_crash(struct history *h)
{
    while (!crash_disk_is_down(h->disk)) {
        sqlite3 *conn = NULL;
        uint64_t more = 1 + rng_below(&h->rng, 60);
        bool going =
            sqlite3_open(CRASH_PATH, &conn) == SQLITE_OK && sql_try(conn, h->settings) == SQLITE_OK;
        for (uint64_t i = 0; going && i < more; i++)
            going = one_transaction(h, conn) && maybe_checkpoint(h, conn);
        assert_true(going || crash_disk_is_down(h->disk));
        sql_close(conn);
    }
    crash_disk_clear_faults(h->disk);
    crash_disk_restart(h->disk);
}

/* SQLite finds nothing wrong, and each transaction is there as a whole or not at all. */
static bool is_whole(sqlite3 *conn)
{
    static const char ODD[] = "SELECT n FROM last WHERE n <> (SELECT coalesce(max(n), 0) FROM rows)"
                              " OR min(n, 40) <> (SELECT count(*) FROM rows)";
    assert(ROWS_KEPT == 40);
    sqlite3_stmt *stmt = NULL;
    bool whole = sql_is_whole(conn) &&
                 sqlite3_prepare_v2(conn, ODD, -1, &stmt, NULL) == SQLITE_OK &&
                 sqlite3_step(stmt) == SQLITE_DONE;
    (void)sqlite3_finalize(stmt);
    return whole;
}

/* A transaction that was not acknowledged may have been done. */
static void look_after_crash(struct history *h)
{
    sqlite3 *conn = sql_open(CRASH_PATH);
    if (!is_whole(conn)) {
        h->damaged++;
    } else {
        int64_t last = sql_number(conn, "SELECT n FROM last");
        assert_true(last <= h->attempted);
        h->lost += last < h->acknowledged;
        h->attempted = last;
        h->acknowledged = MIN(h->acknowledged, last);
    }
    sql_close(conn);
}

/* A database that is on the disk, whatever the settings are later. */
static void make_database(void)
{
    sqlite3 *conn = sql_open(CRASH_PATH);
    sql(conn, WAL FULL "CREATE TABLE rows (n INTEGER PRIMARY KEY, body BLOB);"
                       "CREATE INDEX by_body ON rows (body);"
                       "CREATE TABLE last (n INTEGER); INSERT INTO last VALUES (0);"
                       "PRAGMA wal_checkpoint(TRUNCATE)");
    sql_close(conn);
}

/* A damaged database is replaced by a new one. */
static void run_history(struct history *h, const struct crash_options *options)
{
    make_database();
    struct crash_disk *made = crash_disk_copy(h->disk);
    crash_disk_set_options(h->disk, options);
    for (int i = 0; i < ROUNDS; i++) {
        int damaged = h->damaged;
        arm_crash(h);
        run_until_crash(h);
        look_after_crash(h);
        if (h->damaged == damaged)
            continue;
        crash_disk_become(h->disk, made);
        h->attempted = h->acknowledged = 0;
    }
    crash_disk_free(made);
}

static const struct crash_options HONEST = {.powersafe_overwrite = true};

static void assert_safe(struct crash_disk *disk, const char *settings,
                        const struct crash_options *options)
{
    struct history h = {disk, {1}, settings, 0, 0, 0, 0};
    run_history(&h, options);
    assert_int_equal(h.lost, 0);
    assert_int_equal(h.damaged, 0);
    assert_true(crash_disk_counts(disk)->cuts > ROUNDS / 2);
    assert_true(h.acknowledged > ROUNDS / 2);
}

static void test_wal_with_full_syncs_loses_nothing(void **state)
{
    assert_safe(*state, WAL FULL, &HONEST);
}

static void test_wal_on_a_disk_that_is_not_powersafe_loses_nothing(void **state)
{
    assert_safe(*state, WAL FULL, &(struct crash_options){.powersafe_overwrite = false});
}

/* EXTRA, since a deleted journal may come back with FULL. */
static void test_a_rollback_journal_with_extra_syncs_loses_nothing(void **state)
{
    assert_safe(*state, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA", &HONEST);
}

static void test_a_truncated_rollback_journal_loses_nothing(void **state)
{
    assert_safe(*state, "PRAGMA journal_mode=TRUNCATE;" FULL, &HONEST);
}

/* --- controls: the same check fails where it must --- */

static void assert_unsafe(struct crash_disk *disk, const char *settings,
                          const struct crash_options *options, bool damages)
{
    struct history h = {disk, {9}, settings, 0, 0, 0, 0};
    run_history(&h, options);
    assert_true(h.lost > 0);
    assert_int_equal(h.damaged > 0, damages);
}

static void test_without_syncs_acknowledged_transactions_are_lost(void **state)
{
    assert_unsafe(*state, WAL "PRAGMA synchronous=OFF", &HONEST, true);
}

static void test_with_few_syncs_transactions_are_lost_but_nothing_is_damaged(void **state)
{
    assert_unsafe(*state, WAL "PRAGMA synchronous=NORMAL", &HONEST, false);
}

static void test_a_rollback_journal_with_full_syncs_may_come_back(void **state)
{
    assert_unsafe(*state, "PRAGMA journal_mode=DELETE;" FULL, &HONEST, false);
}

static void test_a_disk_that_lies_about_syncs_loses_transactions(void **state)
{
    assert_unsafe(*state, WAL FULL,
                  &(struct crash_options){.powersafe_overwrite = true, .lies_about_syncs = true},
                  true);
}

/* --- killed processes --- */

static void test_a_killed_process_loses_nothing_even_without_syncs(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3 *conn = sql_open(CRASH_PATH);
    sql(conn, WAL "PRAGMA synchronous=OFF; CREATE TABLE t (n); INSERT INTO t VALUES (7)");
    crash_disk_kill(disk);
    crash_disk_restart(disk);
    sqlite3 *next = sql_open(CRASH_PATH);
    assert_int_equal(sql_number(next, "SELECT n FROM t"), 7);
    assert_int_not_equal(sql_try(conn, "INSERT INTO t VALUES (8)"), SQLITE_OK);
    sql_close(conn);
    assert_int_equal(sql_number(next, "SELECT count(*) FROM t"), 1);
    sql_close(next);
}

/* --- several connections --- */

static void test_two_writers_take_turns(void **state)
{
    (void)state;
    sqlite3 *a = sql_open(CRASH_PATH);
    sqlite3 *b = sql_open(CRASH_PATH);
    sql(a, WAL "CREATE TABLE t (n)");
    sql(a, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)");
    assert_int_equal(sql_try(b, "BEGIN IMMEDIATE"), SQLITE_BUSY);
    assert_int_equal(sql_number(b, "SELECT count(*) FROM t"), 0);
    sql(a, "COMMIT");
    assert_int_equal(sql_number(b, "SELECT count(*) FROM t"), 1);
    sql(b, "BEGIN IMMEDIATE; INSERT INTO t VALUES (2); COMMIT");
    assert_int_equal(sql_number(a, "SELECT count(*) FROM t"), 2);
    sql_close(a);
    sql_close(b);
}

static void test_a_reader_keeps_its_snapshot_during_checkpoints(void **state)
{
    struct crash_disk *disk = *state;
    sqlite3 *writer = sql_open(CRASH_PATH);
    sqlite3 *reader = sql_open(CRASH_PATH);
    sql(writer, WAL "PRAGMA wal_autocheckpoint=0; CREATE TABLE t (n, body);"
                    "INSERT INTO t VALUES (1, zeroblob(20000))");
    sql(reader, "BEGIN");
    assert_int_equal(sql_number(reader, "SELECT max(n) FROM t"), 1);
    sql(writer, "UPDATE t SET n = 2");
    int in_log = 0;
    int folded = 0;
    assert_int_equal(
        sqlite3_wal_checkpoint_v2(writer, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &folded),
        SQLITE_OK);
    assert_true(folded < in_log); /* what the reader may not see stays in the log */
    assert_int_equal(
        sqlite3_wal_checkpoint_v2(writer, NULL, SQLITE_CHECKPOINT_RESTART, &in_log, &folded),
        SQLITE_BUSY);
    assert_int_equal(sql_number(reader, "SELECT max(n) FROM t"), 1);
    sql(reader, "ROLLBACK");
    assert_int_equal(sql_number(reader, "SELECT max(n) FROM t"), 2);
    assert_int_equal(
        sqlite3_wal_checkpoint_v2(writer, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), SQLITE_OK);
    assert_file(disk, "a.db-wal", "");
    assert_int_equal(sql_number(reader, "SELECT max(n) FROM t"), 2);
    sql_close(reader);
    sql_close(writer);
    assert_false(has_file(disk, "a.db-wal"));
}

/* --- a full disk and failed calls --- */

static void test_a_full_disk_refuses_and_then_goes_on(void **state)
{
    struct crash_disk *disk = *state;
    struct crash_options options = {.powersafe_overwrite = true};
    sqlite3 *conn = sql_open(CRASH_PATH);
    sql(conn, WAL "CREATE TABLE t (n, body); INSERT INTO t VALUES (1, zeroblob(5000))");
    options.bytes_max = crash_disk_bytes(disk) + 3000;
    crash_disk_set_options(disk, &options);
    for (int i = 0; i < 5; i++)
        assert_int_equal(sql_try(conn, "INSERT INTO t VALUES (2, zeroblob(5000))"), SQLITE_FULL);
    assert_int_equal(sql_number(conn, "SELECT count(*) FROM t"), 1);
    options.bytes_max += 100000;
    crash_disk_set_options(disk, &options);
    sql(conn, "INSERT INTO t VALUES (2, zeroblob(5000))");
    assert_true(sql_is_whole(conn));
    sql_close(conn);
}

/* Each call of a transaction fails once: it is then done or not done, and the next one works. */
static void test_every_call_of_a_transaction_may_fail(void **state)
{
    struct crash_disk *disk = *state;
    for (int result = CRASH_EIO; result <= CRASH_SHORT; result++) {
        uint64_t nth = 1;
        for (bool fired = true; fired; nth++) {
            sqlite3 *conn = sql_open(CRASH_PATH);
            sql(conn, WAL "CREATE TABLE IF NOT EXISTS t (n, body)");
            int64_t before = sql_number(conn, "SELECT count(*) FROM t");
            crash_disk_fail(disk, &(struct crash_fault){.kind = CRASH_ANY,
                                                        .nth = nth,
                                                        .result = (enum crash_result)result});
            int rc = sql_try(conn, "INSERT INTO t VALUES (1, zeroblob(9000))");
            fired = crash_disk_fired(disk) > 0;
            crash_disk_clear_faults(disk);
            int64_t after = sql_number(conn, "SELECT count(*) FROM t");
            assert_int_equal(after, before + (rc == SQLITE_OK));
            sql_close(conn);
        }
        assert_true(nth > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        disk_test(test_wal_with_full_syncs_loses_nothing),
        disk_test(test_wal_on_a_disk_that_is_not_powersafe_loses_nothing),
        disk_test(test_a_rollback_journal_with_extra_syncs_loses_nothing),
        disk_test(test_a_truncated_rollback_journal_loses_nothing),
        disk_test(test_without_syncs_acknowledged_transactions_are_lost),
        disk_test(test_with_few_syncs_transactions_are_lost_but_nothing_is_damaged),
        disk_test(test_a_rollback_journal_with_full_syncs_may_come_back),
        disk_test(test_a_disk_that_lies_about_syncs_loses_transactions),
        disk_test(test_a_killed_process_loses_nothing_even_without_syncs),
        disk_test(test_two_writers_take_turns),
        disk_test(test_a_reader_keeps_its_snapshot_during_checkpoints),
        disk_test(test_a_full_disk_refuses_and_then_goes_on),
        disk_test(test_every_call_of_a_transaction_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
