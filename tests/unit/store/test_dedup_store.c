/* Keys of signals, windows and counts as rows; and how those of earlier versions get there. */
#include "store/folder.h"

#include "domain/idempotency.h"
#include "store/entity/dedup.h"
#include "store/migrations.h"

static struct db *open_here(const struct folder *f)
{
    return open_writer(path_in(f, "p.db").text);
}

static void add(struct db *db, int64_t owner, int64_t num, const char *key)
{
    struct dedup_key row = {.num = num,
                            .key_hash = idem_key_hash(str_of(key)),
                            .key = str_of(key),
                            .request = STR("0123456789abcdef"),
                            .seq = 100 + num,
                            .at = 1000 * num};
    assert_ok(dedup_insert(db, owner, &row));
}

struct seen {
    int64_t nums[8];
    size_t count;
    size_t stop_after;
    bool with_text;
};

static bool see(void *ctx, const struct dedup_key *row)
{
    struct seen *s = ctx;
    s->nums[s->count++] = row->num;
    s->with_text = row->key.ptr != NULL;
    assert_int_equal(row->seq, 100 + row->num);
    assert_int_equal(row->at, 1000 * row->num);
    return s->count != s->stop_after;
}

static void a_window_is_new_until_it_is_stored(void **state)
{
    struct db *db = open_here(*state);
    struct dedup_window w;
    assert_ok(dedup_windows_find(db, 7, &w));
    assert_int_equal(w.first, 1);
    assert_int_equal(w.last, 0);
    assert_ok(db_begin(db));
    w = (struct dedup_window){.first = 5, .last = 9, .emptied = 3, .forgotten = 2};
    assert_ok(dedup_windows_put(db, 7, &w));
    w.last = 10;
    assert_ok(dedup_windows_put(db, 7, &w));
    assert_ok(db_commit(db));
    struct dedup_window again;
    assert_ok(dedup_windows_find(db, 7, &again));
    assert_memory_equal(&again, &w, sizeof(w));
    assert_int_equal(number_of(db, "SELECT count(*) FROM dedup_windows"), 1);
    db_close(db);
}

static void keys_are_found_by_hash_newest_first_within_their_owner(void **state)
{
    struct db *db = open_here(*state);
    assert_ok(db_begin(db));
    add(db, 7, 1, "k");
    add(db, 7, 2, "other");
    add(db, 7, 3, "k");
    add(db, 8, 1, "k");
    assert_ok(db_commit(db));
    struct seen all = {.count = 0};
    assert_ok(dedup_with_hash(db, 7, idem_key_hash(STR("k")), see, &all));
    assert_int_equal(all.count, 2);
    assert_int_equal(all.nums[0], 3);
    assert_int_equal(all.nums[1], 1);
    struct seen one = {.stop_after = 1};
    assert_ok(dedup_with_hash(db, 7, idem_key_hash(STR("k")), see, &one));
    assert_int_equal(one.count, 1);
    struct seen none = {.count = 0};
    assert_ok(dedup_with_hash(db, 9, idem_key_hash(STR("k")), see, &none));
    assert_int_equal(none.count, 0);
    db_close(db);
}

static void emptied_rows_keep_their_hash_and_deleted_ones_nothing(void **state)
{
    struct db *db = open_here(*state);
    assert_ok(db_begin(db));
    for (int64_t num = 1; num <= 5; num++) {
        char key[8];
        (void)snprintf(key, sizeof(key), "k%d", (int)num);
        add(db, 7, num, key);
        add(db, 8, num, key);
    }
    assert_ok(dedup_empty(db, 7, 1, 4));
    assert_ok(dedup_delete(db, 7, 1, 3));
    assert_ok(db_commit(db));
    struct seen seen = {.count = 0};
    assert_ok(dedup_from(db, 7, 1, 10, see, &seen));
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.nums[0], 3);
    seen = (struct seen){.with_text = true};
    assert_ok(dedup_with_hash(db, 7, idem_key_hash(STR("k3")), see, &seen));
    assert_int_equal(seen.count, 1);
    assert_false(seen.with_text);
    assert_int_equal(number_of(db, "SELECT count(*) FROM dedup WHERE key IS NULL"), 1);
    assert_int_equal(number_of(db, "SELECT count(*) FROM dedup WHERE owner = 8"), 5);
    db_close(db);
}

static void an_owner_that_is_gone_is_removed_in_slices(void **state)
{
    struct db *db = open_here(*state);
    struct dedup_window w = {.first = 1, .last = 5, .emptied = 1, .forgotten = 1};
    int64_t removed = 0;
    bool gone = true;
    assert_ok(db_begin(db));
    for (int64_t num = 1; num <= 5; num++)
        add(db, 7, num, "k");
    assert_ok(dedup_windows_put(db, 7, &w));
    assert_ok(dedup_remove_owner(db, 7, 3, &removed, &gone));
    assert_int_equal(removed, 3);
    assert_false(gone);
    assert_ok(dedup_remove_owner(db, 7, 3, &removed, &gone));
    assert_int_equal(removed, 3);
    assert_true(gone);
    assert_ok(dedup_remove_owner(db, 7, 3, &removed, &gone));
    assert_int_equal(removed, 0);
    assert_true(gone);
    assert_ok(db_commit(db));
    db_close(db);
}

static void counts_add_up_and_remember_their_beginning(void **state)
{
    struct db *db = open_here(*state);
    struct dedup_counts c;
    int64_t since = 0;
    assert_ok(dedup_counts_find(db, 3, &c, &since));
    assert_int_equal(since, -1);
    struct dedup_counts more = {.keyed = 5, .evicted_by_age = 2, .evicted_by_count = 1};
    more.duplicates[DEDUP_1_H] = 4;
    more.late[DEDUP_OLDER] = 1;
    assert_ok(db_begin(db));
    assert_ok(dedup_counts_add(db, 3, &more, 1000));
    assert_ok(dedup_counts_add(db, 3, &more, 2000));
    assert_ok(dedup_counts_add(db, 4, &more, 3000));
    run_sql(db, "INSERT INTO dedup_stats (type, bucket, duplicates, late) VALUES (3, 99, 1, 1)");
    assert_ok(db_commit(db));
    assert_ok(dedup_counts_find(db, 3, &c, &since));
    assert_int_equal(since, 1000);
    assert_int_equal(c.keyed, 10);
    assert_int_equal(c.evicted_by_age, 4);
    assert_int_equal(c.evicted_by_count, 2);
    assert_int_equal(c.duplicates[DEDUP_1_H], 8);
    assert_int_equal(c.late[DEDUP_OLDER], 2);
    assert_int_equal(dedup_duplicates(&c), 8);
    db_close(db);
}

/* They are shown to people: a time that no calendar has cannot be. */
static void counts_that_cannot_be_are_damage(void **state)
{
    static const char *const DAMAGES[] = {
        "UPDATE dedup_totals SET since = 9223372036854775807",
        "UPDATE dedup_totals SET since = 1000, keyed = -1",
        "UPDATE dedup_totals SET keyed = 1; UPDATE dedup_stats SET late = 9223372036854775807",
    };
    struct db *db = open_here(*state);
    struct dedup_counts c = {.keyed = 5};
    int64_t since = 0;
    c.duplicates[DEDUP_1_H] = 4;
    assert_ok(db_begin(db));
    assert_ok(dedup_counts_add(db, 3, &c, 1000));
    assert_ok(db_commit(db));
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        struct raw raw = raw_open(path_in(*state, "p.db").text);
        raw_exec(&raw, DAMAGES[i]);
        raw_close(&raw);
        assert_int_equal(dedup_counts_find(db, 3, &c, &since), ERR_DAMAGED);
    }
    db_close(db);
}

/* A store as the version before entities left it. */
static void make_schema_4(const char *path)
{
    struct raw raw = raw_open(path);
    for (size_t i = 0; i < 4; i++)
        raw_exec(&raw, MIGRATIONS_SQLITE[i].sql);
    raw_exec(&raw, "INSERT INTO run_signals (run, seq, name, payload, dedup_key, at, taken_by)"
                   " VALUES (10, 1, 'go', '1', 'a', 1000, NULL), (10, 2, 'go', '2', NULL, 2000, 5),"
                   " (10, 3, 'go', '3', 'b', 3000, 6), (11, 1, 'go', '1', 'a', 4000, NULL),"
                   " (12, 1, 'go', '1', NULL, 5000, NULL)");
    char stamp[96];
    (void)snprintf(stamp, sizeof(stamp), "PRAGMA application_id=%d; PRAGMA user_version=4",
                   0x7061776C);
    raw_exec(&raw, stamp);
    raw_close(&raw);
}

static void keys_of_signals_to_runs_are_taken_over(void **state)
{
    struct path path = path_in(*state, "old.db");
    make_schema_4(path.text);
    struct db *db = open_writer(path.text);
    assert_int_equal(number_of(db, "SELECT count(*) FROM dedup"), 3);
    assert_int_equal(number_of(db, "SELECT count(*) FROM dedup_windows"), 2);
    assert_int_equal(number_of(db, "SELECT num FROM dedup WHERE owner = 10 AND key = 'b'"), 2);
    assert_int_equal(number_of(db, "SELECT seq FROM dedup WHERE owner = 10 AND num = 2"), 3);
    assert_int_equal(number_of(db, "SELECT at FROM dedup WHERE owner = 11"), 4000);
    assert_int_equal(number_of(db, "SELECT count(*) FROM dedup WHERE length(request) = 0"), 3);
    assert_int_equal(number_of(db, "SELECT key_hash FROM dedup WHERE owner = 11"),
                     idem_key_hash(STR("a")));
    struct dedup_window w;
    assert_ok(dedup_windows_find(db, 10, &w));
    assert_true(dedup_window_is_sound(&w));
    assert_int_equal(w.first, 1);
    assert_int_equal(w.last, 2);
    assert_int_equal(number_of(db, "SELECT count(*) FROM run_signals WHERE taken_by IS NULL"), 3);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_window_is_new_until_it_is_stored),
        folder_test(keys_are_found_by_hash_newest_first_within_their_owner),
        folder_test(emptied_rows_keep_their_hash_and_deleted_ones_nothing),
        folder_test(an_owner_that_is_gone_is_removed_in_slices),
        folder_test(counts_add_up_and_remember_their_beginning),
        folder_test(counts_that_cannot_be_are_damage),
        folder_test(keys_of_signals_to_runs_are_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
