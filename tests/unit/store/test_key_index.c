/* The index of keys: every key is found in memory, in segments and in what they were merged into,
 * after rollbacks and restarts at any place; damage is never a miss. */
#include "store/folder.h"
#include "store/rows.h"

#include "base/limits.h"
#include "store/key_index/key_index.h"

static const struct siphash_key SECRET = {1, 2};

struct shelf {
    struct db *db;
    struct key_index *index;
};

static void load(struct shelf *s)
{
    s->index = key_index_new();
    assert_non_null(s->index);
    assert_ok(key_index_load(s->index, s->db, SECRET));
}

static struct shelf open_shelf(const struct folder *f)
{
    struct shelf s = {open_writer(path_in(f, "p.db").text), NULL};
    load(&s);
    return s;
}

static void close_shelf(struct shelf *s)
{
    key_index_free(s->index);
    db_close(s->db);
}

/* Whatever was not sealed is lost, as here nobody reads it again. */
static void restart(struct shelf *s)
{
    key_index_free(s->index);
    load(s);
}

static uint64_t hash_of(const struct shelf *s, uint64_t n)
{
    char key[32];
    (void)snprintf(key, sizeof(key), "key-%llu", (unsigned long long)n);
    return key_index_hash(s->index, 1, str_of(key));
}

static enum err is_ref(void *ctx, uint64_t ref, bool *ret_found)
{
    *ret_found = *(const uint64_t *)ctx == ref;
    return ERR_OK;
}

static bool has(struct shelf *s, uint64_t n)
{
    bool found = false;
    assert_ok(key_index_find(s->index, s->db, hash_of(s, n), is_ref, &n, &found));
    return found;
}

static void add(struct shelf *s, uint64_t from, uint64_t to)
{
    for (uint64_t n = from; n < to; n++)
        assert_ok(key_index_add(s->index, hash_of(s, n), n));
    key_index_commit(s->index);
}

static void seal(struct shelf *s)
{
    assert_ok(db_begin(s->db));
    assert_ok(key_index_seal(s->index, s->db));
    assert_ok(db_commit(s->db));
    key_index_commit(s->index);
}

static enum err keep_all(void *ctx, uint64_t ref, bool *ret_drop, int64_t *asked)
{
    (void)ctx;
    (void)ref;
    (void)asked;
    *ret_drop = false;
    return ERR_OK;
}

static void merge_once(struct shelf *s, key_drop *drop)
{
    assert_ok(db_begin(s->db));
    assert_ok(key_index_merge(s->index, s->db, drop, NULL));
    assert_ok(db_commit(s->db));
    key_index_commit(s->index);
}

static void merge_all(struct shelf *s, key_drop *drop)
{
    while (key_index_merge_is_due(s->index))
        merge_once(s, drop);
}

static void check_all(struct shelf *s, uint64_t to)
{
    for (uint64_t n = 0; n < to; n++)
        assert_true(has(s, n));
    for (uint64_t n = to; n < to + 1000; n++)
        assert_false(has(s, n));
    int64_t broken = -1;
    assert_ok(key_index_verify(s->index, s->db, &broken));
    assert_int_equal(broken, 0);
}

static int64_t count_segments(struct shelf *s, const char *state)
{
    return number_of(s->db, strcmp(state, "live") == 0
                                ? "SELECT count(*) FROM key_segments WHERE state = 'live'"
                                : "SELECT count(*) FROM key_segments WHERE state <> 'live'");
}

static int64_t count_blocks(struct shelf *s)
{
    return number_of(s->db, "SELECT count(*) FROM key_blocks");
}

/* --- finding --- */

static void a_key_is_found_in_memory_in_its_segment_and_after_a_restart(void **state)
{
    struct shelf s = open_shelf(*state);
    check_all(&s, 0);
    add(&s, 0, 3000);
    check_all(&s, 3000);
    seal(&s);
    assert_int_equal(key_index_tail(s.index), 0);
    check_all(&s, 3000);
    restart(&s);
    check_all(&s, 3000);
    close_shelf(&s);
}

static void all_entries_of_one_hash_are_tried(void **state)
{
    enum { SAME = 100 };
    struct shelf s = open_shelf(*state);
    for (uint64_t n = 0; n < SAME; n++)
        assert_ok(key_index_add(s.index, 42, n));
    key_index_commit(s.index);
    for (int round = 0; round < 2; round++) {
        for (uint64_t n = 0; n <= SAME; n++) {
            bool found = false;
            assert_ok(key_index_find(s.index, s.db, 42, is_ref, &n, &found));
            assert_int_equal(found, n < SAME);
        }
        seal(&s);
    }
    close_shelf(&s);
}

static void the_newest_entry_of_a_key_is_tried_first(void **state)
{
    struct shelf s = open_shelf(*state);
    assert_ok(key_index_add(s.index, 42, 1));
    seal(&s);
    assert_ok(key_index_add(s.index, 42, 2));
    key_index_commit(s.index);
    struct key_hints hints;
    assert_true(key_index_glance(s.index, 42, &hints));
    assert_int_equal(hints.ref_count, 1);
    assert_int_equal(hints.row_count, 1);
    assert_int_equal(hints.refs[0], 2);
    close_shelf(&s);
}

static void few_keys_that_are_not_there_pass_a_filter(void **state)
{
    enum { ASKED = 10000 };
    struct shelf s = open_shelf(*state);
    add(&s, 0, KEY_SEGMENT_KEYS);
    seal(&s);
    int passed = 0;
    for (uint64_t n = KEY_SEGMENT_KEYS; n < KEY_SEGMENT_KEYS + ASKED; n++) {
        struct key_hints hints;
        passed += key_index_glance(s.index, hash_of(&s, n), &hints);
    }
    assert_true(passed > 0 && passed < ASKED / 50);
    close_shelf(&s);
}

/* --- transactions --- */

static void what_was_rolled_back_is_not_found(void **state)
{
    struct shelf s = open_shelf(*state);
    add(&s, 0, 5);
    for (uint64_t n = 5; n < 3000; n++)
        assert_ok(key_index_add(s.index, hash_of(&s, n), n));
    key_index_roll_back(s.index);
    check_all(&s, 5);
    add(&s, 5, 10);
    check_all(&s, 10);
    close_shelf(&s);
}

static void a_segment_that_was_rolled_back_is_sealed_again(void **state)
{
    struct shelf s = open_shelf(*state);
    add(&s, 0, 100);
    assert_ok(db_begin(s.db));
    assert_ok(key_index_seal(s.index, s.db));
    db_rollback(s.db);
    key_index_roll_back(s.index);
    assert_int_equal(key_index_tail(s.index), 100);
    check_all(&s, 100);
    seal(&s);
    check_all(&s, 100);
    assert_int_equal(count_segments(&s, "live"), 1);
    close_shelf(&s);
}

static void keys_that_come_while_others_are_sealed_stay(void **state)
{
    struct shelf s = open_shelf(*state);
    add(&s, 0, 100);
    assert_ok(db_begin(s.db));
    assert_ok(key_index_seal(s.index, s.db));
    for (uint64_t n = 100; n < 110; n++)
        assert_ok(key_index_add(s.index, hash_of(&s, n), n));
    assert_ok(db_commit(s.db));
    key_index_commit(s.index);
    assert_int_equal(key_index_tail(s.index), 10);
    check_all(&s, 110);
    close_shelf(&s);
}

/* --- merging --- */

enum { EACH = 3000, SEGMENTS = 8 };

static void seal_eight(struct shelf *s)
{
    for (uint64_t i = 0; i < SEGMENTS; i++) {
        assert_false(key_index_merge_is_due(s->index));
        add(s, i * EACH, (i + 1) * EACH);
        seal(s);
    }
    assert_true(key_index_merge_is_due(s->index));
}

static void eight_segments_become_one_and_their_rows_go(void **state)
{
    struct shelf s = open_shelf(*state);
    seal_eight(&s);
    merge_all(&s, keep_all);
    assert_int_equal(count_segments(&s, "live"), 1);
    assert_int_equal(count_segments(&s, "dead"), 0);
    assert_int_equal(count_blocks(&s), SEGMENTS * EACH / KEY_BLOCK_ENTRIES + 1);
    check_all(&s, (uint64_t)SEGMENTS * EACH);
    restart(&s);
    check_all(&s, (uint64_t)SEGMENTS * EACH);
    close_shelf(&s);
}

static void larger_segments_are_merged_with_their_equals(void **state)
{
    enum { KEYS = 80 * KEY_SEGMENT_KEYS };
    struct shelf s = open_shelf(*state);
    for (uint64_t n = 0; n < KEYS; n += KEY_SEGMENT_KEYS) {
        add(&s, n, n + KEY_SEGMENT_KEYS);
        seal(&s);
        merge_all(&s, keep_all);
    }
    assert_int_equal(count_segments(&s, "live"), 1 + 2); /* 64, 8 and 8 */
    int64_t broken = -1;
    assert_ok(key_index_verify(s.index, s.db, &broken));
    assert_int_equal(broken, 0);
    for (uint64_t n = 0; n < KEYS; n += 101)
        assert_true(has(&s, n));
    close_shelf(&s);
}

/* At every place, and each slice is tried twice. */
static void a_merge_goes_on_after_each_rollback(void **state)
{
    struct shelf s = open_shelf(*state);
    seal_eight(&s);
    while (key_index_merge_is_due(s.index)) {
        assert_ok(db_begin(s.db));
        assert_ok(key_index_merge(s.index, s.db, keep_all, NULL));
        db_rollback(s.db);
        key_index_roll_back(s.index);
        for (uint64_t n = 0; n < (uint64_t)SEGMENTS * EACH; n += 97)
            assert_true(has(&s, n));
        merge_once(&s, keep_all);
    }
    assert_int_equal(count_segments(&s, "live"), 1);
    check_all(&s, (uint64_t)SEGMENTS * EACH);
    close_shelf(&s);
}

static void a_merge_that_a_crash_cut_off_begins_again(void **state)
{
    struct shelf s = open_shelf(*state);
    seal_eight(&s);
    for (int slices = 1; slices < 6; slices++) {
        for (int i = 0; i < slices && key_index_merge_is_due(s.index); i++)
            merge_once(&s, keep_all);
        for (uint64_t n = 0; n < (uint64_t)SEGMENTS * EACH; n += 97)
            assert_true(has(&s, n));
        restart(&s);
    }
    merge_all(&s, keep_all);
    assert_int_equal(count_segments(&s, "live"), 1);
    assert_int_equal(count_segments(&s, "dead"), 0);
    assert_int_equal(count_blocks(&s), SEGMENTS * EACH / KEY_BLOCK_ENTRIES + 1);
    check_all(&s, (uint64_t)SEGMENTS * EACH);
    close_shelf(&s);
}

static void keys_that_come_during_a_merge_are_kept(void **state)
{
    struct shelf s = open_shelf(*state);
    uint64_t n = (uint64_t)SEGMENTS * EACH;
    seal_eight(&s);
    while (key_index_merge_is_due(s.index)) {
        merge_once(&s, keep_all);
        add(&s, n, n + 10);
        n += 10;
        if (key_index_tail(s.index) == 20)
            seal(&s);
    }
    check_all(&s, n);
    close_shelf(&s);
}

static enum err drop_odd(void *ctx, uint64_t ref, bool *ret_drop, int64_t *asked)
{
    (void)ctx;
    *ret_drop = ref % 2 == 1;
    ++*asked;
    return ERR_OK;
}

static void a_merge_leaves_out_what_may_go_and_nothing_else(void **state)
{
    struct shelf s = open_shelf(*state);
    seal_eight(&s);
    merge_all(&s, drop_odd);
    uint64_t keys;
    size_t bytes;
    key_index_extent(s.index, &keys, &bytes);
    assert_int_equal(keys, SEGMENTS * EACH / 2);
    for (uint64_t n = 0; n < (uint64_t)SEGMENTS * EACH; n++)
        assert_int_equal(has(&s, n), n % 2 == 0);
    close_shelf(&s);
}

/* --- all of it again --- */

static void a_cleared_index_has_only_what_is_added_again(void **state)
{
    struct shelf s = open_shelf(*state);
    struct key_entry again[100];
    seal_eight(&s);
    merge_once(&s, keep_all);
    merge_once(&s, keep_all);
    add(&s, 900000, 900010);
    for (int commits = 0; commits < 2; commits++) {
        for (uint64_t n = 0; n < ARRAY_LEN(again); n++)
            again[n] = (struct key_entry){hash_of(&s, n), n};
        assert_ok(db_begin(s.db));
        assert_ok(key_index_clear(s.index, s.db));
        assert_ok(key_index_add_segment(s.index, s.db, again, ARRAY_LEN(again)));
        if (commits == 0) {
            db_rollback(s.db);
            key_index_roll_back(s.index);
            assert_true(has(&s, (uint64_t)SEGMENTS * EACH - 1) && has(&s, 900009));
        } else {
            assert_ok(db_commit(s.db));
            key_index_commit(s.index);
        }
    }
    assert_false(has(&s, 900009));
    check_all(&s, ARRAY_LEN(again));
    merge_all(&s, keep_all);
    assert_int_equal(count_segments(&s, "dead"), 0);
    assert_int_equal(count_blocks(&s), 1);
    check_all(&s, ARRAY_LEN(again));
    close_shelf(&s);
}

/* --- damage --- */

static enum err look_for(struct shelf *s, uint64_t n)
{
    bool found = false;
    return key_index_find(s->index, s->db, hash_of(s, n), is_ref, &n, &found);
}

static void a_damaged_or_lost_block_is_an_error_and_no_miss(void **state)
{
    static const char *const DAMAGES[] = {
        "UPDATE key_blocks SET entries = substr(entries, 17)",
        "UPDATE key_blocks SET entries = x''",
        "UPDATE key_blocks SET num = num + 5", /* another block's bytes */
        "DELETE FROM key_blocks",
    };
    struct shelf s = open_shelf(*state);
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        add(&s, 0, 100);
        seal(&s);
        run_sql(s.db, DAMAGES[i]);
        assert_int_equal(look_for(&s, 5), ERR_DAMAGED);
        int64_t broken = 0;
        assert_ok(key_index_verify(s.index, s.db, &broken));
        assert_true(broken > 0);
        run_sql(s.db, "DELETE FROM key_segments");
        run_sql(s.db, "DELETE FROM key_blocks");
        run_sql(s.db, "DELETE FROM key_filters");
        restart(&s);
    }
    close_shelf(&s);
}

static void a_damaged_filter_is_not_used(void **state)
{
    static const char *const DAMAGES[] = {
        "UPDATE key_filters SET bits = zeroblob(length(bits))",
        "DELETE FROM key_filters",
    };
    struct shelf s = open_shelf(*state);
    add(&s, 0, 1000);
    seal(&s);
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        run_sql(s.db, DAMAGES[i]);
        restart(&s);
        check_all(&s, 1000);
    }
    close_shelf(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_key_is_found_in_memory_in_its_segment_and_after_a_restart),
        folder_test(all_entries_of_one_hash_are_tried),
        folder_test(the_newest_entry_of_a_key_is_tried_first),
        folder_test(few_keys_that_are_not_there_pass_a_filter),
        folder_test(what_was_rolled_back_is_not_found),
        folder_test(a_segment_that_was_rolled_back_is_sealed_again),
        folder_test(keys_that_come_while_others_are_sealed_stay),
        folder_test(eight_segments_become_one_and_their_rows_go),
        folder_test(larger_segments_are_merged_with_their_equals),
        folder_test(a_merge_goes_on_after_each_rollback),
        folder_test(a_merge_that_a_crash_cut_off_begins_again),
        folder_test(keys_that_come_during_a_merge_are_kept),
        folder_test(a_merge_leaves_out_what_may_go_and_nothing_else),
        folder_test(a_cleared_index_has_only_what_is_added_again),
        folder_test(a_damaged_or_lost_block_is_an_error_and_no_miss),
        folder_test(a_damaged_filter_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
