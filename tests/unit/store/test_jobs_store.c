/* Jobs and timers as rows. */
#include "store/run_support.h"

/* --- jobs --- */

static struct job job_of(int64_t run, int64_t ordinal)
{
    return (struct job){
        .owner = run,
        .ordinal = ordinal,
        .id = jobs_new_id(&ENV_SYSTEM, run, ordinal),
        .tenant = 1,
        .state = JOB_PENDING,
        .queue = STR("default"),
        .due_at = -1,
        .created_at = 1000,
        .started_at = -1,
        .finished_at = -1,
    };
}

static void a_job_is_found_by_its_id_alone(void **state)
{
    static const int64_t ORDINALS[] = {
        1, 2, 3, 4, 255, 256, 1023, 1024, 262143, 262144, JOB_ORDINAL_MAX - 1, JOB_ORDINAL_MAX};
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    int64_t run = uuid_time(env_new_id(&ENV_SYSTEM));
    struct uuid ids[ARRAY_LEN(ORDINALS)];
    for (size_t i = 0; i < ARRAY_LEN(ORDINALS); i++) {
        struct job job = job_of(run, ORDINALS[i]);
        ids[i] = job.id;
        assert_int_equal(job.id.bytes[6] >> 4, 7); /* still a UUIDv7 */
        assert_int_equal(job.id.bytes[8] >> 6, 2);
        assert_ok(jobs_insert(db, &job));
    }
    for (size_t i = 0; i < ARRAY_LEN(ORDINALS); i++) {
        struct job back;
        bool found = false;
        assert_ok(jobs_find(db, 1, ids[i], &arena, &found, &back));
        assert_true(found);
        assert_int_equal(back.ordinal, ORDINALS[i]);
        assert_int_equal(back.owner, run);
        assert_ok(jobs_find(db, 0, ids[i], &arena, &found, &back));
        assert_true(found);
        assert_ok(jobs_find(db, 2, ids[i], &arena, &found, &back));
        assert_false(found);
        for (size_t byte = 0; byte < sizeof(ids[i].bytes); byte++) {
            struct uuid guess = ids[i];
            guess.bytes[byte] ^= 1;
            assert_ok(jobs_find(db, 1, guess, &arena, &found, &back));
            assert_false(found);
        }
    }
    arena_release(&arena);
    db_close(db);
}

static void a_job_changes_only_from_the_state_and_epoch_that_were_read(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    struct job job = job_of(10, 1);
    assert_ok(jobs_insert(db, &job));
    job.state = JOB_RUNNING;
    job.lease_epoch = 1;
    job.worker = STR("w1");
    job.due_at = 5000;
    assert_int_equal(jobs_update(db, &job, JOB_RUNNING, 0), ERR_CONCURRENCY);
    assert_int_equal(jobs_update(db, &job, JOB_PENDING, 1), ERR_CONCURRENCY);
    assert_ok(jobs_update(db, &job, JOB_PENDING, 0));
    assert_int_equal(jobs_update(db, &job, JOB_PENDING, 0), ERR_CONCURRENCY);
    struct job back;
    bool found = false;
    assert_ok(jobs_find_at(db, 10, 1, &arena, &found, &back));
    assert_true(found);
    assert_int_equal(back.state, JOB_RUNNING);
    assert_str(back.worker, "w1");
    assert_int_equal(back.due_at, 5000);
    arena_release(&arena);
    db_close(db);
}

static void the_most_urgent_then_the_oldest_job_is_next(void **state)
{
    static const struct {
        int64_t run, ordinal, urgency;
    } JOBS[] = {{30, 1, 0}, {20, 2, 0}, {20, 1, 0}, {40, 1, -5}, {10, 1, 5}, {50, 1, -5}};
    static const size_t ORDER[] = {3, 5, 2, 1, 0, 4};
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    for (size_t i = 0; i < ARRAY_LEN(JOBS); i++) {
        struct job job = job_of(JOBS[i].run, JOBS[i].ordinal);
        job.urgency = JOBS[i].urgency;
        assert_ok(jobs_insert(db, &job));
    }
    struct job other = job_of(1, 1);
    other.queue = STR("other");
    other.urgency = -100;
    assert_ok(jobs_insert(db, &other));
    bool found = false;
    struct job next;
    for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
        assert_ok(jobs_next(db, 1, STR("default"), &arena, &found, &next));
        assert_true(found);
        assert_int_equal(next.owner, JOBS[ORDER[i]].run);
        assert_int_equal(next.ordinal, JOBS[ORDER[i]].ordinal);
        next.state = JOB_RUNNING;
        assert_ok(jobs_update(db, &next, JOB_PENDING, 0));
    }
    assert_ok(jobs_next(db, 1, STR("default"), &arena, &found, &next));
    assert_false(found);
    arena_release(&arena);
    db_close(db);
}

static void tenants_with_work_are_found_one_after_the_other(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static const int64_t TENANTS_WITH_WORK[] = {9, 2, 5};
    for (size_t i = 0; i < ARRAY_LEN(TENANTS_WITH_WORK); i++) {
        struct job job = job_of(10 + (int64_t)i, 1);
        job.tenant = TENANTS_WITH_WORK[i];
        assert_ok(jobs_insert(db, &job));
    }
    static const int64_t AFTER[] = {0, 2, 5};
    static const int64_t NEXT[] = {2, 5, 9};
    bool found = false;
    int64_t tenant = 0;
    for (size_t i = 0; i < ARRAY_LEN(AFTER); i++) {
        assert_ok(jobs_next_tenant(db, STR("default"), AFTER[i], &found, &tenant));
        assert_true(found);
        assert_int_equal(tenant, NEXT[i]);
    }
    assert_ok(jobs_next_tenant(db, STR("default"), 9, &found, &tenant));
    assert_false(found);
    assert_ok(jobs_next_tenant(db, STR("other"), 0, &found, &tenant));
    assert_false(found);
    db_close(db);
}

static void note_ordinal(void *ctx, const struct job *job)
{
    int64_t *last = ctx;
    assert_int_equal(job->ordinal, *last + 1);
    *last = job->ordinal;
}

static void jobs_of_a_run_come_in_the_order_of_their_making(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static const int64_t ORDER[] = {3, 1, 5, 2, 4};
    for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
        struct job mine = job_of(20, ORDER[i]);
        struct job other = job_of(21, ORDER[i]);
        assert_ok(jobs_insert(db, &mine));
        assert_ok(jobs_insert(db, &other));
    }
    int64_t last = 0;
    assert_ok(jobs_of_run(db, 20, note_ordinal, &last));
    assert_int_equal(last, 5);
    db_close(db);
}

static bool note_open(void *ctx, const struct job *job)
{
    note_ordinal(ctx, job);
    return job->ordinal < 2 * ROWS_PER_SLICE;
}

static void open_jobs_of_a_run_are_listed_across_slices(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    for (int64_t i = 1; i <= 3 * ROWS_PER_SLICE; i++) {
        struct job job = job_of(20, i);
        assert_ok(jobs_insert(db, &job));
    }
    int64_t last = 0;
    assert_ok(jobs_open(db, 20, 1, ROWS_PER_SLICE + 1, note_open, &last));
    assert_int_equal(last, ROWS_PER_SLICE); /* the whole range, which is one slice */
    last = 0;
    assert_ok(jobs_open(db, 20, 1, 1000, note_open, &last));
    assert_int_equal(last, 2 * ROWS_PER_SLICE); /* as far as it was wanted */
    db_close(db);
}

/* --- timers --- */

static void timers_come_earliest_first(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    int64_t due = 0;
    assert_ok(timers_next(db, &due));
    assert_int_equal(due, -1);
    struct rng r = {11};
    for (int64_t i = 0; i < 50; i++) {
        struct timer t = {100 + (int64_t)rng_below(&r, 30), i, 1, 0, 1};
        assert_ok(timers_insert(db, &t));
    }
    struct timer out[64];
    size_t count = 0;
    assert_ok(timers_due(db, 99, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, 0);
    assert_ok(timers_due(db, 1000, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, 50);
    for (size_t i = 1; i < count; i++) {
        assert_true(out[i - 1].due_at < out[i].due_at ||
                    (out[i - 1].due_at == out[i].due_at && out[i - 1].owner < out[i].owner));
    }
    assert_ok(timers_next(db, &due));
    assert_int_equal(due, out[0].due_at);
    struct timer few[5];
    assert_ok(timers_due(db, 1000, ARRAY_LEN(few), few, &count));
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(few[i].owner, out[i].owner);
    assert_ok(timers_due(db, out[20].due_at, ARRAY_LEN(out), out, &count));
    assert_true(count >= 21); /* at its time a timer is due */
    db_close(db);
}

static void a_timer_is_deleted_by_its_generation_only(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct timer t = {100, 1, 1, 1, 1};
    struct timer older = {100, 1, 1, 0, 1};
    assert_ok(timers_insert(db, &older));
    assert_ok(timers_insert(db, &t)); /* takes its place */
    assert_ok(timers_delete(db, &older));
    struct timer out[4];
    size_t count = 0;
    assert_ok(timers_due(db, 100, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, 1);
    assert_int_equal(out[0].generation, 1);
    assert_ok(timers_delete(db, &t));
    assert_ok(timers_due(db, 100, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, 0);
    db_close(db);
}

/* Enough for statements with many rows, and a rest. */
static void timers_that_are_written_together_take_the_place_of_older_ones(void **state)
{
    enum { TIMERS = 21 };
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct timer timers[TIMERS];
    for (int64_t i = 0; i < TIMERS; i++)
        timers[i] = (struct timer){100 + i, 1, 1, 5, 1};
    struct timer older[] = {timers[2], timers[20]};
    for (size_t i = 0; i < ARRAY_LEN(older); i++) {
        older[i].generation = 4;
        assert_ok(timers_insert(db, &older[i]));
    }
    assert_ok(timers_insert_all(db, timers, TIMERS));
    struct timer out[TIMERS + 1];
    size_t count = 0;
    assert_ok(timers_due(db, 1000, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, TIMERS);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(out[i].due_at, timers[i].due_at);
        assert_int_equal(out[i].generation, 5);
    }
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_job_is_found_by_its_id_alone),
        folder_test(a_job_changes_only_from_the_state_and_epoch_that_were_read),
        folder_test(the_most_urgent_then_the_oldest_job_is_next),
        folder_test(tenants_with_work_are_found_one_after_the_other),
        folder_test(jobs_of_a_run_come_in_the_order_of_their_making),
        folder_test(open_jobs_of_a_run_are_listed_across_slices),
        folder_test(timers_come_earliest_first),
        folder_test(a_timer_is_deleted_by_its_generation_only),
        folder_test(timers_that_are_written_together_take_the_place_of_older_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
