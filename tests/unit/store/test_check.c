/* Every invariant of the store: a sound file breaks none, and each damage is found as such. */
#include "store/damages.h"

static void a_sound_store_breaks_nothing(void **state)
{
    const struct checked_file *f = *state;
    struct kinds k;
    struct check_result result = check_file(f->file.text, CHECK_FULL, &k);
    if (k.count > 0)
        fail_msg("%s", k.what[0]);
    assert_int_equal(result.found, 0);
    assert_int_equal(result.derived, 0);
    assert_int_equal(check_file(f->file.text, CHECK_QUICK, &k).found, 0);
}

static void assert_found(const struct damage *d, const struct kinds *k)
{
    for (size_t i = 0; i < ARRAY_LEN(d->found); i++) {
        const char *expected = d->found[i];
        const char *found = i < k->count ? k->what[i] : NULL;
        if (expected == NULL && found == NULL)
            return;
        if (expected == NULL || found == NULL || !begins(found, expected))
            fail_msg("%s: found \"%s\", not \"%s\"", d->sql, found != NULL ? found : "nothing more",
                     expected != NULL ? expected : "nothing more");
    }
    assert_true(k->count <= ARRAY_LEN(d->found));
}

static void every_damage_is_found_for_what_it_is(void **state)
{
    const struct checked_file *f = *state;
    struct path broken = path_in(f->folder, "broken.db");
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        const struct damage *d = &DAMAGES[i];
        file_copy(f->file.text, broken.text);
        put_rows(broken.text, d->sql);
        struct kinds k;
        struct check_result result = check_file(broken.text, CHECK_FULL, &k);
        assert_found(d, &k);
        assert_int_equal(result.found, k.shown); /* few enough to show them all */
        bool derived = false;
        for (size_t j = 0; j < k.count; j++)
            derived |= is_flagged(k.what[j], CHECK_DERIVED);
        assert_true(derived == (result.derived > 0));
    }
}

static void the_damages_break_every_invariant(void **state)
{
    (void)state;
    for (size_t i = 0; i < INVARIANT_COUNT; i++) {
        bool broken = false;
        for (size_t d = 0; d < ARRAY_LEN(DAMAGES) && !broken; d++) {
            for (size_t j = 0; j < ARRAY_LEN(DAMAGES[d].found); j++)
                broken |= DAMAGES[d].found[j] != NULL &&
                          begins(INVARIANTS[i].broken, DAMAGES[d].found[j]);
        }
        if (!broken)
            fail_msg("nothing breaks: %s", INVARIANTS[i].broken);
    }
}

static void a_quick_look_finds_wrong_counters_too(void **state)
{
    const struct checked_file *f = *state;
    struct path broken = path_in(f->folder, "broken.db");
    int found = 0;
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        const struct damage *d = &DAMAGES[i];
        if (begins(d->sql, "DELETE FROM holding") ||
            begins(d->sql, "INSERT INTO holding (tenant") || strstr(d->sql, "indexed") != NULL)
            continue; /* what the quick look relies on */
        file_copy(f->file.text, broken.text);
        put_rows(broken.text, d->sql);
        struct kinds k;
        (void)check_file(broken.text, CHECK_QUICK, &k);
        size_t at = 0;
        for (size_t j = 0; j < ARRAY_LEN(d->found) && d->found[j] != NULL; j++) {
            if (!is_flagged(d->found[j], CHECK_QUICK))
                continue;
            if (at >= k.count || !begins(k.what[at], d->found[j]))
                fail_msg("%s: a quick look does not find \"%s\"", d->sql, d->found[j]);
            at++;
            found++;
        }
        assert_int_equal(k.count, at);
    }
    assert_true(found > 10);
}

/* A run that is over and whose slots were never given back: all that is kept agrees with itself. */
static void a_quick_look_finds_a_slot_that_was_never_given_back(void **state)
{
    const struct checked_file *f = *state;
    struct kinds k;
    put_rows(f->file.text, "UPDATE runs SET status = 'succeeded', finished_at = 9 WHERE num = 3");
    assert_int_equal(check_file(f->file.text, CHECK_QUICK, &k).found, 1);
    assert_true(begins(k.what[0], TENANT_ACTIVE));
    assert_string_equal(k.last_tenant, "acme");
    assert_int_equal(k.last.kept, 3);
    assert_int_equal(k.last.counted, 2);
    put_rows(f->file.text, "UPDATE runs SET status = 'succeeded', finished_at = 9 WHERE num = 8");
    assert_int_equal(check_file(f->file.text, CHECK_QUICK, &k).found, 3);
    assert_int_equal(k.count, 2);
    assert_true(begins(k.what[1], SLOT_STRAY));
}

static void a_quick_look_never_reads_all_runs(void **state)
{
    const struct checked_file *f = *state;
    struct raw raw = raw_open(f->file.text);
    int looked_at = 0;
    for (size_t i = 0; i < INVARIANT_COUNT; i++) {
        if ((INVARIANTS[i].flags & CHECK_QUICK) == 0)
            continue;
        char sql[4096];
        (void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", INVARIANTS[i].sql);
        sqlite3_stmt *stmt = NULL;
        assert_int_equal(sqlite3_prepare_v2(raw.file, sql, -1, &stmt, NULL), SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(stmt, 3);
            if (begins(step, "SCAN runs") || begins(step, "SCAN r ") || strcmp(step, "SCAN r") == 0)
                fail_msg("%s: %s", INVARIANTS[i].broken, step);
            looked_at++;
        }
        (void)sqlite3_finalize(stmt);
    }
    assert_true(looked_at > 10);
    raw_close(&raw);
}

/* To find an entry for each run that way, all of its tenant would be passed each time. */
static void the_index_of_runs_is_not_searched_through_an_index_of_the_moment(void **state)
{
    const struct checked_file *f = *state;
    struct raw raw = raw_open(f->file.text);
    int looked_at = 0;
    for (size_t i = 0; i < INVARIANT_COUNT; i++) {
        if (INVARIANTS[i].area != CHECK_INDEXES)
            continue;
        char sql[4096];
        (void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", INVARIANTS[i].sql);
        sqlite3_stmt *stmt = NULL;
        assert_int_equal(sqlite3_prepare_v2(raw.file, sql, -1, &stmt, NULL), SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(stmt, 3);
            if (strstr(step, "AUTOMATIC") != NULL)
                fail_msg("%s: %s", INVARIANTS[i].broken, step);
            looked_at++;
        }
        (void)sqlite3_finalize(stmt);
    }
    assert_true(looked_at > 10);
    raw_close(&raw);
}

static void a_finding_names_its_tenant_and_run(void **state)
{
    const struct checked_file *f = *state;
    struct kinds k;
    put_rows(f->file.text, "UPDATE lines SET waits_for = 3 WHERE num = 1");
    (void)check_file(f->file.text, CHECK_FULL, &k);
    assert_int_equal(k.shown, 1);
    assert_string_equal(k.last_tenant, "acme");
    assert_true(k.last.has_run && k.last.derived && k.last.has_kept && !k.last.has_counted);
    assert_int_equal(k.last.run_id.bytes[15], 5);
    assert_int_equal(k.last.kept, 3);
    /* a run and a tenant that are not there have no names */
    put_rows(f->file.text,
             "UPDATE lines SET waits_for = 2 WHERE num = 1;"
             "INSERT INTO timers (due_at, run, ordinal, generation) VALUES (5, 9, 9, 0)");
    (void)check_file(f->file.text, CHECK_FULL, &k);
    assert_int_equal(k.shown, 1);
    assert_false(k.last.has_run);
    assert_null(k.last.tenant.ptr);
}

static void all_are_counted_and_the_first_are_shown(void **state)
{
    const struct checked_file *f = *state;
    struct kinds k;
    put_rows(f->file.text,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)"
             " INSERT INTO timers (due_at, run, ordinal, generation) SELECT i, 99, 1, 0 FROM n");
    struct check_result result = check_file(f->file.text, CHECK_FULL, &k);
    assert_int_equal(result.found, 250);
    assert_int_equal(result.derived, 250);
    assert_int_equal(k.shown, FINDINGS_SHOWN_MAX);
}

static int64_t clock_that_runs_away(void *ctx)
{
    return *(int64_t *)ctx += INT64_C(1000000000);
}

static void a_look_that_takes_too_long_is_cut_off(void **state)
{
    const struct checked_file *f = *state;
    put_rows(f->file.text,
             "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
             " INSERT INTO slots (scope, run) SELECT i, 1 FROM n");
    int64_t now = 1;
    struct env env = {clock_that_runs_away, clock_that_runs_away, ENV_SYSTEM.random, &now};
    struct db *db = open_with(f->file.text, DB_READER, &env, 0);
    struct check_result result = {0};
    assert_ok(db_snapshot_begin(db, 1));
    assert_int_equal(check_area(db, CHECK_SLOTS, CHECK_QUICK, NULL, NULL, &result), ERR_STORE_BUSY);
    db_snapshot_end(db);
    db_close(db);
}

static void an_area_says_how_much_it_is_about(void **state)
{
    const struct checked_file *f = *state;
    struct db *db = open_reader(f->file.text);
    static const int64_t EXPECTED[] = {2 + 4, 3, 14, 16, 3, 0, 2 + 4, 7 + 3, 53};
    static_assert(ARRAY_LEN(EXPECTED) == CHECK_AREA_COUNT, "one for each area");
    for (enum check_area area = 0; area < CHECK_AREA_COUNT; area++) {
        int64_t extent = -1;
        assert_ok(check_extent(db, area, &extent));
        assert_int_equal(extent, EXPECTED[area]);
    }
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(a_sound_store_breaks_nothing),
        check_test(every_damage_is_found_for_what_it_is),
        check_test(the_damages_break_every_invariant),
        check_test(a_quick_look_finds_wrong_counters_too),
        check_test(a_quick_look_finds_a_slot_that_was_never_given_back),
        check_test(a_quick_look_never_reads_all_runs),
        check_test(the_index_of_runs_is_not_searched_through_an_index_of_the_moment),
        check_test(a_finding_names_its_tenant_and_run),
        check_test(all_are_counted_and_the_first_are_shown),
        check_test(a_look_that_takes_too_long_is_cut_off),
        check_test(an_area_says_how_much_it_is_about),
    };
    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
