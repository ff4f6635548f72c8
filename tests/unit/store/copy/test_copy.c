/* Copies of stores: everything is in them, they can be interrupted anywhere, and a target that is
 * not whole, or not empty, is refused. */
#include "store/copy/copy_support.h"

#include "store_support/stores.h"

static void every_table_and_column_is_copied_there_and_back(void **state)
{
    struct stores s = stores_in(state);
    char back[URL_MAX];
    (void)snprintf(back, sizeof(back), "sqlite:%s", path_in(*state, "back.db").text);
    fill(s.source, NULL, 5);
    struct copied there = copy_of(s.source, s.target);
    assert_true(there.rows > 5 * 50);
    assert_int_equal(there.rows_kept, 0);
    assert_false(there.was_whole);
    struct copied again = copy_of(s.target, back);
    assert_int_equal(again.rows, there.rows);
    assert_memory_equal(&again.digest, &there.digest, sizeof(there.digest));
    assert_true(is_whole(s.target) && is_whole(back));
}

/* Seen without anything of ours in between. */
static void values_are_copied_as_they_are(void **state)
{
    static const char *const ROWS[] = {
        "INSERT INTO feed_marks (name, through) VALUES ('least', -9223372036854775808),"
        " ('most', 9223372036854775807), ('', 0), ('\xF0\x9F\x90\xBE', 1)",
        "INSERT INTO audit_heads (tenant, seq, hash) VALUES (1, 1, x'00FF27'), (2, 1, x'')",
        "INSERT INTO entity_timers (entity, name, due_at, payload, given)"
        " VALUES (1, 'none', 1, NULL, 0), (1, 'empty', 1, '', 0)",
        NULL};
    struct stores s = stores_in(state);
    change(s.source, ROWS);
    (void)copy_of(s.source, s.target);
    struct raw raw = raw_open(path_in(*state, "target.db").text);
    assert_int_equal(raw_number(&raw, "SELECT through FROM feed_marks WHERE name = 'least'"),
                     INT64_MIN);
    assert_int_equal(raw_number(&raw, "SELECT through FROM feed_marks WHERE name = 'most'"),
                     INT64_MAX);
    assert_int_equal(raw_number(&raw, "SELECT through FROM feed_marks WHERE name = ''"), 0);
    assert_int_equal(
        raw_number(&raw, "SELECT through FROM feed_marks WHERE name = '\xF0\x9F\x90\xBE'"), 1);
    assert_int_equal(raw_number(&raw, "SELECT tenant FROM audit_heads WHERE hash = x'00FF27'"), 1);
    assert_int_equal(raw_number(&raw, "SELECT tenant FROM audit_heads WHERE hash = x''"), 2);
    assert_int_equal(
        raw_number(&raw,
                   "SELECT count(*) FROM entity_timers WHERE payload IS NULL AND name = 'none'"),
        1);
    assert_int_equal(
        raw_number(&raw,
                   "SELECT count(*) FROM entity_timers WHERE payload = '' AND name = 'empty'"),
        1);
    raw_close(&raw);
}

static void a_table_of_many_slices_is_copied_whole(void **state)
{
    struct stores s = stores_in(state);
    int64_t rows = 2 * COPY_SLICE_ROWS + 1;
    fill(s.source, "approval_votes", rows); /* three columns, one of them a text */
    fill(s.source, "deliveries", COPY_SLICE_ROWS);
    struct copied copied = copy_of(s.source, s.target);
    assert_true(copied.rows > rows + COPY_SLICE_ROWS);
    struct db *db = open_url(s.target);
    assert_int_equal(number_of(db, "SELECT count(*) FROM approval_votes"), rows);
    assert_int_equal(number_of(db, "SELECT count(*) FROM deliveries"), COPY_SLICE_ROWS);
    db_close(db);
}

static void large_rows_make_small_slices(void **state)
{
    static const char ROW[] = "INSERT INTO map_items (run, step, items) VALUES ($1, 1, $2)";
    struct stores s = stores_in(state);
    struct problem p;
    struct copy_tables tables;
    struct copy_walk w;
    struct db *db = open_url(s.source);
    char *text = malloc(3 * MIB);
    assert_non_null(text);
    memset(text, 'x', 3 * MIB);
    for (int64_t i = 1; i <= 3; i++)
        assert_ok(DB_EXEC(db, ROW, NULL, DB_I(i), DB_T(((struct str){text, 3 * MIB}))));
    free(text);
    problem_init(&p);
    assert_ok(copy_tables_read(db, &p, &tables));
    size_t at = 0;
    while (!str_is(tables.list[at].name, "map_items"))
        at++;
    copy_walk_begin(&w, db, &tables.list[at]);
    for (int64_t i = 1; i <= 3; i++) {
        assert_ok(copy_walk_next(&w));
        assert_int_equal(w.rows, 1);
        assert_int_equal(w.first[0].number, i);
    }
    assert_ok(copy_walk_next(&w));
    assert_int_equal(w.rows, 0);
    copy_walk_end(&w);
    db_close(db);
    copy_tables_release(&tables);
    problem_release(&p);
    (void)copy_of(s.source, s.target);
}

/* --- who may be a target --- */

static void a_target_with_data_is_refused_and_left_alone(void **state)
{
    struct stores s = stores_in(state);
    fill(s.source, NULL, 1);
    fill(s.target, "api_keys", 1);
    assert_refused(try_copy(s.source, s.target), "already has data (table api_keys)");
    assert_true(is_whole(s.target));
    struct db *db = open_url(s.target);
    assert_int_equal(number_of(db, "SELECT count(*) FROM api_keys"), 1);
    db_close(db);
}

/* What a server makes for itself is no data. */
static void a_target_that_a_server_has_set_up_is_taken(void **state)
{
    struct stores s = stores_in(state);
    fill(s.source, NULL, 1);
    fill(s.target, "secrets", 2);
    fill(s.target, "feed_marks", 1);
    struct copied copied = copy_of(s.source, s.target);
    struct db *db = open_url(s.target);
    assert_int_equal(number_of(db, "SELECT count(*) FROM secrets"), 2); /* and the store's name */
    db_close(db);
    assert_int_equal(copied.rows_kept, 0);
}

static void a_finished_copy_can_be_asked_for_again(void **state)
{
    static const char *const CHANGE[] = {"UPDATE tenants SET name = 'changed' WHERE num = 1", NULL};
    struct stores s = stores_in(state);
    fill(s.source, NULL, 2);
    struct copied first = copy_of(s.source, s.target);
    struct copied second = copy_of(s.source, s.target);
    assert_true(second.was_whole);
    assert_memory_equal(&first.digest, &second.digest, sizeof(first.digest));
    change(s.target, CHANGE);
    assert_refused(try_copy(s.source, s.target), "The copy was finished before");
    assert_true(is_whole(s.target));
}

static void there_must_be_a_source(void **state)
{
    struct stores s = stores_in(state);
    assert_refused(try_copy(s.source, s.target), "Cannot open");
    assert_int_equal(file_size(path_in(*state, "source.db").text), -1);
    assert_int_equal(file_size(path_in(*state, "target.db").text), -1);
    assert_refused(try_copy(s.source, s.source), "are the same store");
}

static void a_store_in_use_is_refused(void **state)
{
    struct stores s = stores_in(state);
    fill(s.source, NULL, 1);
    struct db *server = open_url(s.source);
    assert_refused(try_copy(s.source, s.target), "in use by another pawl");
    db_close(server);
    server = open_url(s.target);
    assert_refused(try_copy(s.source, s.target), "in use by another pawl");
    db_close(server);
    (void)copy_of(s.source, s.target);
}

/* --- interruptions --- */

static struct stores failing_in(void **state)
{
    struct stores s = stores_in(state);
    (void)snprintf(s.target, sizeof(s.target), "failing:%s", path_in(*state, "failing.db").text);
    return s;
}

/* Each attempt gets a little further than the last one, and fails there. */
static void a_copy_that_is_interrupted_anywhere_goes_on(void **state)
{
    struct stores s = failing_in(state);
    int64_t kept = 0, failures = 0;
    struct copied copied = {.err = ERR_STORE_FULL};
    fill(s.source, NULL, 2);
    for (int64_t nth = 1; copied.err != ERR_OK; nth += 11) {
        failing_arm(&(struct fault){.nth = nth, .err = ERR_STORE_FULL});
        copied = try_copy(s.source, s.target);
        bool has_failed = failing_has_fired();
        failing_disarm();
        assert_int_equal(has_failed, copied.err != ERR_OK);
        failures += has_failed;
        assert_true(copied.rows_kept == 0 || copied.rows_kept >= kept);
        kept = MAX(kept, copied.rows_kept);
        if (kept > 0)
            assert_int_equal(is_whole(s.target), copied.err == ERR_OK);
    }
    assert_true(failures > 20);
    assert_true(kept > 0);
    assert_true(copy_of(s.source, s.target).was_whole);
}

/* The calls of a slice are begin, one INSERT for each row, and the commit. */
static void fail_next_commit(void *ctx, const struct copy_progress *progress)
{
    (void)ctx;
    if (!progress->table_is_done && str_is(progress->table, "deliveries"))
        failing_arm(&(struct fault){.nth = COPY_SLICE_ROWS + 2,
                                    .err = ERR_STORE_FAILED,
                                    .lasting = true,
                                    .commit_happened = true});
}

static void a_commit_in_doubt_is_settled_by_the_next_attempt(void **state)
{
    struct stores s = failing_in(state);
    fill(s.source, "deliveries", 2 * COPY_SLICE_ROWS);
    assert_int_equal(try_copy_with(s.source, s.target, fail_next_commit).err, ERR_STORE_FAILED);
    assert_true(failing_has_fired());
    failing_disarm();
    assert_false(is_whole(s.target));
    struct copied copied = copy_of(s.source, s.target);
    assert_int_equal(copied.rows_kept, 2 * COPY_SLICE_ROWS); /* the second slice too */
    assert_true(is_whole(s.target));
}

/* The target, once one table is there. */
static void fail_after_keys(void *ctx, const struct copy_progress *progress)
{
    (void)ctx;
    if (progress->table_is_done && str_is(progress->table, "api_keys"))
        failing_arm(&(struct fault){.nth = 1, .err = ERR_STORE_BUSY, .lasting = true});
}

static void interrupt(const struct stores *s)
{
    assert_int_equal(try_copy_with(s->source, s->target, fail_after_keys).err, ERR_STORE_BUSY);
    failing_disarm();
    assert_false(is_whole(s->target));
}

static void an_unfinished_copy_of_another_store_is_refused(void **state)
{
    struct stores s = failing_in(state);
    char other[URL_MAX];
    (void)snprintf(other, sizeof(other), "sqlite:%s", path_in(*state, "other.db").text);
    fill(s.source, NULL, 3);
    fill(other, NULL, 3);
    interrupt(&s);
    assert_refused(try_copy(other, s.target), "an unfinished copy of another store");
    assert_refused(try_copy(s.target, other), "is an unfinished copy");
    (void)copy_of(s.source, s.target);
}

static void a_source_that_was_changed_meanwhile_is_noticed(void **state)
{
    static const char *const CHANGE[] = {"UPDATE api_keys SET label = 'changed'", NULL};
    struct stores s = failing_in(state);
    fill(s.source, NULL, 3);
    interrupt(&s);
    change(s.source, CHANGE);
    assert_refused(try_copy(s.source, s.target), "The table api_keys differs");
    assert_false(is_whole(s.target));
}

/* --- digests --- */

/* One row whose columns are all another value, one after the other. */
static void every_value_of_a_row_counts(void **state)
{
    struct copy_table t = {.name = STR("t"),
                           .columns = {{STR("a"), STR("int"), 1}, {STR("b"), STR("text"), 0}},
                           .column_count = 2};
    static const struct db_value OTHERS[][2] = {
        {{DB_INT, 2, {NULL, 0}}, {DB_TEXT, 0, {"x", 1}}},
        {{DB_INT, 1, {NULL, 0}}, {DB_TEXT, 0, {"y", 1}}},
        {{DB_INT, 1, {NULL, 0}}, {DB_BLOB, 0, {"x", 1}}},
        {{DB_INT, 1, {NULL, 0}}, {DB_NULL, 0, {NULL, 0}}},
        {{DB_INT, 1, {NULL, 0}}, {DB_TEXT, 0, {"", 0}}},
        {{DB_NULL, 0, {NULL, 0}}, {DB_TEXT, 0, {"x", 1}}},
    };
    struct db_value row[] = {DB_I(1), DB_T(STR("x"))};
    struct copy_digest one = copy_digest_begin(&t), two = one;
    struct buf room;
    buf_init(&room, KIB);
    (void)state;
    assert_ok(copy_digest_add(&one, &t, row, &room));
    assert_ok(copy_digest_add(&two, &t, row, &room));
    assert_true(copy_digest_eq(&one, &two));
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        two = copy_digest_begin(&t);
        assert_ok(copy_digest_add(&two, &t, OTHERS[i], &room));
        assert_false(copy_digest_eq(&one, &two));
    }
    two = copy_digest_begin(&t);
    assert_false(copy_digest_eq(&one, &two));
    t.columns[1].name = STR("c");
    two = copy_digest_begin(&t);
    assert_ok(copy_digest_add(&two, &t, row, &room));
    assert_false(copy_digest_eq(&one, &two));
    buf_release(&room);
}

static void a_column_on_one_side_only_is_refused(void **state)
{
    static const char *const COLUMN[] = {"ALTER TABLE feed_marks ADD COLUMN more TEXT", NULL};
    struct stores s = stores_in(state);
    fill(s.source, NULL, 1);
    change(s.target, COLUMN);
    assert_refused(try_copy(s.source, s.target), "different tables: see feed_marks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(every_table_and_column_is_copied_there_and_back),
        folder_test(values_are_copied_as_they_are),
        folder_test(a_table_of_many_slices_is_copied_whole),
        folder_test(large_rows_make_small_slices),
        folder_test(a_target_with_data_is_refused_and_left_alone),
        folder_test(a_target_that_a_server_has_set_up_is_taken),
        folder_test(a_finished_copy_can_be_asked_for_again),
        folder_test(there_must_be_a_source),
        folder_test(a_store_in_use_is_refused),
        folder_test(a_copy_that_is_interrupted_anywhere_goes_on),
        folder_test(a_commit_in_doubt_is_settled_by_the_next_attempt),
        folder_test(an_unfinished_copy_of_another_store_is_refused),
        folder_test(a_source_that_was_changed_meanwhile_is_noticed),
        folder_test(every_value_of_a_row_counts),
        folder_test(a_column_on_one_side_only_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
