/* Counts by the minute, in memory and on their way to the store. */
#include "store/folder.h"

#include "base/limits.h"
#include "core/txn/stats/minute_stats.h"
#include "store/minutes.h"

#include <pthread.h>

enum { ACME = 7, OTHER = 8, FIRST = 1000 }; /* the minute in which tests begin */

static int64_t at(int64_t minute)
{
    return minute * MINUTE_MS + 1;
}

struct fixture {
    struct db *db;
    struct minute_stats *stats;
};

static struct fixture fixture_open(void **state)
{
    struct fixture f = {open_writer(path_in(*state, "p.db").text), minute_stats_new()};
    assert_non_null(f.stats);
    assert_ok(minute_stats_open(f.stats, f.db));
    return f;
}

static void restart(struct fixture *f)
{
    minute_stats_free(f->stats);
    f->stats = minute_stats_new();
    assert_non_null(f->stats);
    assert_ok(minute_stats_open(f->stats, f->db));
}

static void fixture_close(struct fixture *f)
{
    minute_stats_free(f->stats);
    db_close(f->db);
}

static int64_t store_slice(struct fixture *f, int64_t now_ms, bool closing)
{
    int64_t rows = -1;
    assert_ok(db_begin(f->db));
    assert_ok(minute_stats_store(f->stats, f->db, now_ms, closing, &rows));
    assert_ok(db_commit(f->db));
    minute_stats_stored(f->stats, rows);
    return rows;
}

static int64_t store_all(struct fixture *f, int64_t now_ms, bool closing)
{
    int64_t sum = 0;
    int64_t rows;
    while ((rows = store_slice(f, now_ms, closing)) > 0)
        sum += rows;
    return sum;
}

static void start_runs(struct fixture *f, int64_t tenant, int64_t minute, int count)
{
    for (int i = 0; i < count; i++)
        minute_stats_count(f->stats, tenant, MINUTE_STARTS, at(minute));
}

/* What a reader makes of rows and memory: the starts of a minute. */
struct seen {
    int64_t minute;
    int64_t starts;
    bool known;
};

static void see_row(void *ctx, int64_t minute, const struct minute_counts *counts)
{
    struct seen *s = ctx;
    if (minute != s->minute)
        return;
    s->starts += counts->figures[MINUTE_STARTS];
    s->known = true;
}

static void see_counted(void *ctx, int64_t minute, const struct minute_counts *counts, bool adds)
{
    struct seen *s = ctx;
    if (minute == s->minute && (adds || !s->known))
        s->starts += counts->figures[MINUTE_STARTS];
}

static int64_t starts_seen(struct fixture *f, int64_t tenant, int64_t minute)
{
    struct seen s = {.minute = minute};
    assert_ok(minutes_list(f->db, tenant, minute, see_row, &s));
    minute_stats_read(f->stats, tenant, see_counted, &s);
    return s.starts;
}

static int64_t starts_stored(struct fixture *f, int64_t tenant, int64_t minute)
{
    struct seen s = {.minute = minute};
    assert_ok(minutes_list(f->db, tenant, minute, see_row, &s));
    return s.starts;
}

static void a_minute_is_stored_when_it_is_over_with_a_row_for_each_tenant(void **state)
{
    struct fixture f = fixture_open(state);
    assert_int_equal(minute_stats_due_at(f.stats, at(FIRST)), -1);
    start_runs(&f, ACME, FIRST, 3);
    start_runs(&f, OTHER, FIRST, 1);
    minute_stats_count(f.stats, ACME, MINUTE_REFUSED, at(FIRST));
    minute_stats_count_wait(f.stats, ACME, 40, at(FIRST));
    minute_stats_count(f.stats, 0, MINUTE_REFUSED, at(FIRST)); /* of a tenant that is not stored */
    assert_int_equal(minute_stats_due_at(f.stats, at(FIRST)), (FIRST + 1) * (int64_t)MINUTE_MS);
    assert_int_equal(store_slice(&f, at(FIRST), false), 0); /* it is not over */
    assert_int_equal(store_slice(&f, at(FIRST + 1), false), 3);
    assert_int_equal(store_slice(&f, at(FIRST + 1), false), 0);
    assert_int_equal(minute_stats_due_at(f.stats, at(FIRST + 1)), -1);
    assert_int_equal(starts_stored(&f, ACME, FIRST), 3);
    assert_int_equal(starts_stored(&f, OTHER, FIRST), 1);
    assert_int_equal(starts_stored(&f, MINUTES_OF_ALL, FIRST), 4);
    assert_int_equal(number_of(f.db, "SELECT refused FROM minutes WHERE tenant = 0"), 1);
    assert_int_equal(number_of(f.db, "SELECT length(waits) FROM minutes WHERE tenant = 7"), 15);
    assert_int_equal(
        number_of(f.db, "SELECT count(*) FROM minutes WHERE tenant = 8 AND waits IS NULL"), 1);
    fixture_close(&f);
}

static void what_was_not_committed_is_stored_again(void **state)
{
    struct fixture f = fixture_open(state);
    int64_t rows = 0;
    start_runs(&f, ACME, FIRST, 2);
    assert_ok(db_begin(f.db));
    assert_ok(minute_stats_store(f.stats, f.db, at(FIRST + 1), false, &rows));
    db_rollback(f.db);
    assert_int_equal(starts_stored(&f, ACME, FIRST), 0);
    assert_int_equal(starts_seen(&f, ACME, FIRST), 2);
    assert_int_equal(minute_stats_due_at(f.stats, at(FIRST + 1)), at(FIRST + 1));
    assert_int_equal(store_all(&f, at(FIRST + 1), false), 2);
    assert_int_equal(starts_stored(&f, ACME, FIRST), 2);
    fixture_close(&f);
}

static void readers_see_each_count_once_before_and_after_it_is_stored(void **state)
{
    struct fixture f = fixture_open(state);
    start_runs(&f, ACME, FIRST, 2);
    assert_int_equal(starts_seen(&f, ACME, FIRST), 2);
    start_runs(&f, ACME, FIRST + 1, 3); /* ends the first */
    assert_int_equal(starts_seen(&f, ACME, FIRST), 2);
    store_all(&f, at(FIRST + 1), false);
    assert_int_equal(starts_seen(&f, ACME, FIRST), 2);
    assert_int_equal(starts_seen(&f, ACME, FIRST + 1), 3);
    assert_int_equal(starts_seen(&f, MINUTES_OF_ALL, FIRST + 1), 3);
    assert_int_equal(starts_seen(&f, OTHER, FIRST), 0);
    fixture_close(&f);
}

static void a_server_that_stops_stores_the_minute_and_the_next_one_adds_to_it(void **state)
{
    struct fixture f = fixture_open(state);
    start_runs(&f, ACME, FIRST, 2);
    minute_stats_count_wait(f.stats, ACME, 3, at(FIRST));
    assert_int_equal(store_all(&f, at(FIRST), true), 2);
    restart(&f);
    start_runs(&f, ACME, FIRST, 5);
    minute_stats_count_wait(f.stats, ACME, 300, at(FIRST));
    assert_int_equal(starts_seen(&f, ACME, FIRST), 7);
    assert_int_equal(store_all(&f, at(FIRST + 1), false), 2);
    assert_int_equal(starts_stored(&f, ACME, FIRST), 7);
    assert_int_equal(starts_seen(&f, ACME, FIRST), 7);
    assert_int_equal(number_of(f.db, "SELECT count(*) FROM minutes"), 2);
    assert_int_equal(number_of(f.db, "SELECT length(waits) FROM minutes WHERE tenant = 7"), 21);
    fixture_close(&f);
}

static void a_crash_loses_the_last_minute_and_no_other(void **state)
{
    struct fixture f = fixture_open(state);
    start_runs(&f, ACME, FIRST, 2);
    store_all(&f, at(FIRST + 1), false);
    start_runs(&f, ACME, FIRST + 1, 9);
    restart(&f);
    assert_int_equal(starts_seen(&f, ACME, FIRST), 2);
    assert_int_equal(starts_seen(&f, ACME, FIRST + 1), 0);
    fixture_close(&f);
}

static void while_a_minute_cannot_be_stored_the_next_one_goes_on(void **state)
{
    struct fixture f = fixture_open(state);
    start_runs(&f, ACME, FIRST, 1);
    start_runs(&f, ACME, FIRST + 1, 2);
    start_runs(&f, ACME, FIRST + 2, 4); /* the first is not stored: nothing is dropped */
    assert_int_equal(starts_seen(&f, ACME, FIRST + 1), 6);
    store_all(&f, at(FIRST + 2), false);
    assert_int_equal(starts_stored(&f, ACME, FIRST), 1);
    assert_int_equal(starts_stored(&f, ACME, FIRST + 1), 6);
    fixture_close(&f);
}

static void a_clock_that_goes_back_loses_nothing(void **state)
{
    struct fixture f = fixture_open(state);
    start_runs(&f, ACME, FIRST + 5, 1);
    start_runs(&f, ACME, FIRST, 2);
    store_all(&f, at(FIRST + 6), false);
    assert_int_equal(starts_stored(&f, ACME, FIRST + 5), 3);
    start_runs(&f, ACME, FIRST + 5, 4); /* a minute that is stored already */
    store_all(&f, at(FIRST + 6), false);
    assert_int_equal(starts_stored(&f, ACME, FIRST + 5), 7);
    fixture_close(&f);
}

static void past_the_bound_tenants_are_in_the_sum_only(void **state)
{
    struct fixture f = fixture_open(state);
    for (int64_t tenant = 1; tenant <= STATS_TENANTS_MAX + 5; tenant++)
        start_runs(&f, tenant, FIRST, 1);
    start_runs(&f, 1, FIRST, 1);
    assert_int_equal(store_slice(&f, at(FIRST + 1), false), STATS_ROWS_PER_TURN);
    assert_int_equal(starts_seen(&f, 1, FIRST), 2); /* stored already */
    assert_int_equal(starts_seen(&f, STATS_TENANTS_MAX, FIRST), 1);
    store_all(&f, at(FIRST + 1), false);
    assert_int_equal(number_of(f.db, "SELECT count(*) FROM minutes"), STATS_TENANTS_MAX + 1);
    assert_int_equal(starts_stored(&f, MINUTES_OF_ALL, FIRST), STATS_TENANTS_MAX + 6);
    assert_int_equal(starts_stored(&f, 1, FIRST), 2);
    assert_int_equal(starts_stored(&f, STATS_TENANTS_MAX + 1, FIRST), 0);
    fixture_close(&f);
}

static void old_minutes_are_removed_the_oldest_first(void **state)
{
    struct fixture f = fixture_open(state);
    struct minute_counts counts = {.figures = {[MINUTE_STARTS] = 1}};
    int64_t removed = 0;
    assert_ok(db_begin(f.db));
    for (int64_t minute = 0; minute < 10; minute++)
        assert_ok(minutes_put(f.db, ACME, minute, &counts));
    assert_ok(minutes_drop(f.db, 5, 3, &removed));
    assert_int_equal(removed, 3);
    assert_int_equal(number_of(f.db, "SELECT min(minute) FROM minutes"), 3);
    assert_ok(minutes_drop(f.db, 5, 3, &removed));
    assert_int_equal(removed, 2);
    assert_int_equal(number_of(f.db, "SELECT min(minute) FROM minutes"), 5);
    assert_ok(db_commit(f.db));
    fixture_close(&f);
}

static void a_damaged_row_is_left_out_and_replaced(void **state)
{
    struct fixture f = fixture_open(state);
    start_runs(&f, ACME, FIRST, 1);
    store_all(&f, at(FIRST), true);
    run_sql(f.db, "UPDATE minutes SET waits = '[1,-1]'");
    assert_int_equal(starts_stored(&f, ACME, FIRST), 0);
    restart(&f);
    start_runs(&f, ACME, FIRST, 2);
    store_all(&f, at(FIRST), true);
    assert_int_equal(starts_stored(&f, ACME, FIRST), 2);
    fixture_close(&f);
}

enum { ADDERS = 3, PER_ADDER = 2000 };

static void *add_many(void *ctx)
{
    for (int64_t i = 0; i < PER_ADDER; i++)
        minute_stats_count(ctx, ACME + i % 2, MINUTE_STARTS, at(FIRST + i / 500));
    return NULL;
}

static void nothing_is_lost_while_others_count(void **state)
{
    struct fixture f = fixture_open(state);
    pthread_t threads[ADDERS];
    for (size_t i = 0; i < ADDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, f.stats), 0);
    for (int i = 0; i < 10; i++)
        store_all(&f, at(FIRST + i % 4), false);
    for (size_t i = 0; i < ADDERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    store_all(&f, at(FIRST + 9), true);
    assert_int_equal(number_of(f.db, "SELECT sum(starts) FROM minutes WHERE tenant = 0"),
                     ADDERS * PER_ADDER);
    assert_int_equal(number_of(f.db, "SELECT sum(starts) FROM minutes WHERE tenant > 0"),
                     ADDERS * PER_ADDER);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_minute_is_stored_when_it_is_over_with_a_row_for_each_tenant),
        folder_test(what_was_not_committed_is_stored_again),
        folder_test(readers_see_each_count_once_before_and_after_it_is_stored),
        folder_test(a_server_that_stops_stores_the_minute_and_the_next_one_adds_to_it),
        folder_test(a_crash_loses_the_last_minute_and_no_other),
        folder_test(while_a_minute_cannot_be_stored_the_next_one_goes_on),
        folder_test(a_clock_that_goes_back_loses_nothing),
        folder_test(past_the_bound_tenants_are_in_the_sum_only),
        folder_test(old_minutes_are_removed_the_oldest_first),
        folder_test(a_damaged_row_is_left_out_and_replaced),
        folder_test(nothing_is_lost_while_others_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
