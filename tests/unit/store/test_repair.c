/* Repair of the store: derived rows are rebuilt from the runs. */
#include "store/damages.h"

/* --- repair --- */

/* In rows, or -1 on a store that does not count them. */
static void repair_file(const char *path, int64_t *ret_changed)
{
    struct db *db = open_writer(path);
    int64_t before = db_changes(db);
    assert_ok(db_begin(db));
    assert_ok(repair_admission(db));
    assert_ok(repair_indexes(db));
    assert_ok(repair_first_jobs(db));
    assert_ok(repair_timers(db));
    assert_ok(db_commit(db));
    *ret_changed = test_store_is_eager() ? -1 : db_changes(db) - before;
    db_close(db);
}

static void a_repair_leaves_a_sound_store_as_it_is(void **state)
{
    const struct checked_file *f = *state;
    int64_t changed = -1;
    repair_file(f->file.text, &changed);
    assert_true(changed <= 0);
}

/* Lists of limits are mended by the engine, which knows the definitions. */
static bool is_about_lists(const struct damage *d)
{
    bool about = strstr(d->sql, "runs SET scopes") != NULL;
    for (size_t i = 0; i < ARRAY_LEN(d->found) && d->found[i] != NULL; i++)
        about |= begins(d->found[i], SCOPE_MISSING) || begins(d->found[i], LINE_SCOPE_MISSING);
    return about;
}

static void what_is_derived_is_made_anew(void **state)
{
    const struct checked_file *f = *state;
    struct path broken = path_in(f->folder, "broken.db");
    int mended = 0;
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        const struct damage *d = &DAMAGES[i];
        struct kinds k;
        if (is_about_lists(d))
            continue;
        file_copy(f->file.text, broken.text);
        put_rows(broken.text, d->sql);
        struct check_result before = check_file(broken.text, CHECK_FULL, &k);
        int64_t changed = 0;
        repair_file(broken.text, &changed);
        assert_true(changed < 0 || (changed > 0) == (before.derived > 0));
        struct check_result after = check_file(broken.text, CHECK_FULL, &k);
        if (after.derived > 0)
            fail_msg("%s: still \"%s\"", d->sql, k.what[0]);
        assert_int_equal(after.found, before.found - before.derived);
        mended += before.derived > 0;
    }
    assert_true(mended > 40);
}

static void everything_derived_can_be_made_anew_from_the_runs(void **state)
{
    const struct checked_file *f = *state;
    put_rows(f->file.text,
             "DELETE FROM slots; DELETE FROM lines; DELETE FROM line_scopes; DELETE FROM queue;"
             "DELETE FROM holding; DELETE FROM run_blocks; DELETE FROM first_jobs;"
             "DELETE FROM timers WHERE due_at > 1;"
             "UPDATE tenants SET active_runs = 7, queued_runs = 7;"
             "UPDATE scopes SET active_runs = 7, queued_runs = 7");
    int64_t changed = 0;
    repair_file(f->file.text, &changed);
    struct kinds k;
    assert_int_equal(check_file(f->file.text, CHECK_FULL, &k).found, 0);
    struct raw raw = raw_open(f->file.text);
    /* 5 has the highest priority; new lines wait for their tenant, and are looked at by the writer
     */
    assert_int_equal(raw_number(&raw, "SELECT run FROM lines WHERE scopes = '1,2'"), 5);
    assert_int_equal(raw_number(&raw, "SELECT max(waits_for) FROM lines"), 0);
    assert_int_equal(raw_number(&raw, "SELECT count(*) FROM scopes"), 4);
    /* the run's own times too */
    assert_int_equal(raw_number(&raw, "SELECT count(*) FROM timers WHERE ordinal = 0 AND"
                                      " (due_at, run) IN ((5000, 10), (9000, 11))"),
                     2);
    raw_close(&raw);
}

struct seen {
    int64_t nums[16];
    size_t count;
    size_t room;
};

static bool see(void *ctx, const struct live_run *run)
{
    struct seen *s = ctx;
    assert_true(str_is(run->input, "1") && run->workflow_version == 1);
    assert_true(run->num != 2 || (str_is(run->scopes, "1,3") && str_is(run->workflow_id, "w")));
    assert_true(run->num != 3 || (run->scopes.ptr == NULL && run->tenant == 1));
    s->nums[s->count++] = run->num;
    return s->count < s->room;
}

static void live_runs_are_those_that_are_active_or_queued(void **state)
{
    const struct checked_file *f = *state;
    struct db *db = open_reader(f->file.text);
    struct seen all = {.room = 16};
    assert_ok(live_runs(db, 0, see, &all));
    static const int64_t LIVE[] = {1, 2, 3, 4, 5, 6, 8};
    assert_int_equal(all.count, ARRAY_LEN(LIVE));
    assert_memory_equal(all.nums, LIVE, sizeof(LIVE));
    struct seen two = {.room = 2};
    assert_ok(live_runs(db, 5, see, &two));
    assert_int_equal(two.count, 2);
    assert_int_equal(two.nums[0], 6);
    assert_int_equal(two.nums[1], 8);
    db_close(db);
}

static void the_last_scope_is_also_one_that_is_only_named(void **state)
{
    const struct checked_file *f = *state;
    int64_t last = 0;
    struct db *db = open_reader(f->file.text);
    assert_ok(repair_last_scope(db, &last));
    assert_int_equal(last, 14);
    db_close(db);
    put_rows(f->file.text, "DELETE FROM scopes; UPDATE runs SET scopes = 'x,77,3' WHERE num = 4;"
                           "UPDATE runs SET scopes = '99' WHERE num = 7");
    db = open_reader(f->file.text);
    assert_ok(repair_last_scope(db, &last));
    assert_int_equal(last, 77); /* 7 is over */
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(a_repair_leaves_a_sound_store_as_it_is),
        check_test(what_is_derived_is_made_anew),
        check_test(everything_derived_can_be_made_anew_from_the_runs),
        check_test(live_runs_are_those_that_are_active_or_queued),
        check_test(the_last_scope_is_also_one_that_is_only_named),
    };
    return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
