/* Runs as rows. */
#include "store/event_support.h"
#include "store/run_support.h"

/* --- numbers --- */

static void numbers_rise_even_when_the_clock_does_not(void **state)
{
    (void)state;
    struct rng r = {5};
    int64_t last = 0;
    int64_t clock = INT64_C(7000000000000);
    for (int i = 0; i < 10000; i++) {
        switch (rng_below(&r, 4)) {
        case 0:
            clock += (int64_t)rng_below(&r, 5000);
            break;
        case 1:
            clock -= (int64_t)rng_below(&r, 5000);
            break;
        default:
            break; /* the same moment again */
        }
        struct uuid id = id_at(clock);
        struct uuid before = id;
        int64_t num = runs_new_num(&id, last, (struct db_numbers){1, 0});
        assert_true(num > last);
        assert_true(num >= clock);
        assert_int_equal(uuid_time(id), num);
        assert_memory_equal(id.bytes + 8, before.bytes + 8, 8); /* chance stays */
        if (clock > last)
            assert_true(uuid_eq(id, before));
        last = num;
    }
}

static void shards_give_different_numbers(void **state)
{
    (void)state;
    struct rng r = {6};
    int64_t last[2] = {0, 0};
    for (int i = 0; i < 10000; i++) {
        int64_t shard = (int64_t)rng_below(&r, 2);
        struct uuid id = id_at(INT64_C(7000000000000) + (int64_t)rng_below(&r, 5000));
        struct db_numbers numbers = {256, shard == 0 ? 0 : 255};
        int64_t num = runs_new_num(&id, last[shard], numbers);
        assert_true(num > last[shard]);
        assert_int_equal(num % 256, numbers.rest);
        assert_int_equal(uuid_time(id), num);
        last[shard] = num;
    }
}

/* --- rows --- */

static void a_run_comes_back_as_it_was_written(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    int64_t last = -1;
    assert_ok(runs_last_num(db, &last));
    assert_int_equal(last, 0);
    struct run run = run_at(4, 5000, 0);
    run.priority = -7;
    run.input = STR("{\"a\":1}");
    run.labels = STR("{\"env\":\"x\"}");
    run.traceparent = STR("00-1-2-01");
    run.tracestate = STR("a=1");
    assert_ok(runs_insert(db, &run));
    assert_ok(runs_last_num(db, &last));
    assert_int_equal(last, run.num);
    struct run back;
    bool found = false;
    assert_ok(runs_find(db, 4, run.id, &arena, &found, &back));
    assert_true(found);
    assert_int_equal(back.num, run.num);
    assert_true(uuid_eq(back.id, run.id));
    assert_int_equal(back.status, RUN_PENDING);
    assert_int_equal(back.priority, -7);
    assert_str(back.input, "{\"a\":1}");
    assert_str(back.labels, "{\"env\":\"x\"}");
    assert_str(back.traceparent, "00-1-2-01");
    assert_str(back.tracestate, "a=1");
    assert_null(back.output.ptr);
    assert_null(back.error.ptr);
    assert_int_equal(back.started_at, -1);
    assert_int_equal(back.finished_at, -1);
    assert_ok(runs_find(db, 5, run.id, &arena, &found, &back));
    assert_false(found); /* another tenant's */
    struct uuid other = run.id;
    other.bytes[15] ^= 1;
    assert_ok(runs_find(db, 4, other, &arena, &found, &back));
    assert_false(found); /* the same moment is not the same run */
    arena_release(&arena);
    db_close(db);
}

struct seen_versions {
    int64_t versions[4];
    size_t count;
};

static bool note_version(void *ctx, const struct run *run)
{
    struct seen_versions *seen = ctx;
    seen->versions[seen->count++] = run->version;
    return true;
}

static void the_version_of_a_run_is_the_number_of_its_last_event(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    struct run run = run_at(1, 5000, 0);
    struct run other = run_at(1, 5000, run.num);
    assert_ok(runs_insert(db, &run));
    assert_ok(runs_insert(db, &other));
    struct run back;
    bool found = false;
    assert_ok(runs_find_num(db, run.num, &arena, &found, &back));
    assert_int_equal(back.version, 0);
    append_event(db, other.num, 1, "run.created");
    for (int64_t seq = 1; seq <= 3; seq++)
        append_event(db, run.num, seq, "more");
    assert_ok(runs_update(db, &run)); /* the row's own number is another */
    assert_ok(runs_find_num(db, run.num, &arena, &found, &back));
    assert_int_equal(back.version, 3);
    assert_ok(runs_find(db, 1, run.id, &arena, &found, &back));
    assert_int_equal(back.version, 3);
    struct run_filter all = {.tenant = 1, .created_after = -1, .created_before = -1};
    struct seen_versions seen = {.count = 0};
    int64_t next = 0;
    assert_ok(runs_list(db, &all, INT64_MAX, note_version, &seen, &next));
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.versions[0], 1);
    assert_int_equal(seen.versions[1], 3);
    arena_release(&arena);
    db_close(db);
}

static void a_change_that_read_an_older_revision_is_refused(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    struct run run = run_at(1, 5000, 0);
    assert_ok(runs_insert(db, &run));
    struct run late = run;
    run.status = RUN_RUNNING;
    run.started_at = 2000;
    assert_ok(runs_update(db, &run));
    assert_int_equal(run.revision, 2);
    late.status = RUN_CANCELLED;
    assert_int_equal(runs_update(db, &late), ERR_CONCURRENCY);
    assert_int_equal(late.revision, 1);
    struct run back;
    bool found = false;
    assert_ok(runs_find_num(db, run.num, &arena, &found, &back));
    assert_true(found);
    assert_int_equal(back.status, RUN_RUNNING);
    assert_int_equal(back.revision, 2);
    assert_int_equal(back.started_at, 2000);
    arena_release(&arena);
    db_close(db);
}

static void the_statuses_that_hold_a_slot_are_the_same_in_sql(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    int64_t last = 0;
    int64_t holders = 0;
    for (enum run_status s = 0; s < RUN_STATUS_COUNT; s++) {
        struct run run = run_at(1, 5000, last);
        last = run.num;
        run.status = s;
        assert_ok(runs_insert(db, &run));
        int64_t now = number_of(db, "SELECT count(*) FROM runs WHERE " RUN_HOLDS_SLOT);
        if (now - holders != run_holds_slot(s))
            fail_msg("%s: %lld more in SQL", run_status_name(s), (long long)(now - holders));
        holders = now;
        struct run part = run_at(1, 5000, last);
        last = part.num;
        part.status = s;
        part.parent_run = run.num;
        assert_ok(runs_insert(db, &part)); /* which is in its parent's slot */
        assert_int_equal(number_of(db, "SELECT count(*) FROM runs WHERE " RUN_HOLDS_SLOT), holders);
    }
    db_close(db);
}

/* --- lists --- */

/* Otherwise a new run would lie below the mark of the index, and never get into it. */
static void a_number_is_not_given_out_again_when_its_run_is_gone(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct run run = run_at(1, 5000, 0);
    assert_ok(runs_insert(db, &run));
    fill_index(db, run.num);
    run_sql(db, "DELETE FROM runs");
    int64_t last = 0;
    assert_ok(runs_last_num(db, &last));
    assert_int_equal(last, run.num);
    struct run next = run_at(1, 10, last); /* the clock was set back */
    assert_true(next.num > run.num);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_rise_even_when_the_clock_does_not),
        cmocka_unit_test(shards_give_different_numbers),
        folder_test(a_run_comes_back_as_it_was_written),
        folder_test(the_version_of_a_run_is_the_number_of_its_last_event),
        folder_test(a_change_that_read_an_older_revision_is_refused),
        folder_test(a_number_is_not_given_out_again_when_its_run_is_gone),
        folder_test(the_statuses_that_hold_a_slot_are_the_same_in_sql),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
