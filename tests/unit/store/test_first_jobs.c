/* The first job of a run as part of the run's row. */
#include "store/run_support.h"

#include "store/run/retention.h"
#include "store/run/worker_queues.h"

enum { RUN = 4096, LATER_RUN = 8192, DUE = 5000 };

static struct run run_with(int64_t num, int64_t priority)
{
    struct run run = plain_run(1, id_at(num), num);
    run.priority = priority;
    return run;
}

static struct job first_job(const struct run *run)
{
    return (struct job){
        .owner = run->num,
        .ordinal = 1,
        .id = jobs_first_id(run->id),
        .tenant = run->tenant,
        .state = JOB_PENDING,
        .queue = STR("default"),
        .urgency = -run->priority,
        .due_at = -1,
        .armed_at = -1,
        .created_at = run->created_at,
        .started_at = -1,
        .finished_at = -1,
        .lease_ms = -1,
        .dead_at = -1,
    };
}

static struct job sleeping_job(const struct run *run)
{
    struct job job = first_job(run);
    job.state = JOB_SCHEDULED;
    job.queue = STR("");
    job.attempt = 1;
    job.started_at = run->created_at;
    job.due_at = DUE;
    return job;
}

static void put(struct db *db, const struct run *run, const struct job *job)
{
    assert_ok(db_begin(db));
    assert_ok(jobs_insert_with_run(db, job));
    assert_ok(runs_insert(db, run));
    assert_ok(db_commit(db));
}

static void claim(struct job *job)
{
    job->state = JOB_RUNNING;
    job->attempt = job->lease_epoch = 1;
    job->worker = STR("w");
    job->due_at = DUE;
    job->started_at = 2000;
    job->lease_ms = 1000;
}

static bool same_text(struct str a, struct str b)
{
    return (a.ptr == NULL) == (b.ptr == NULL) && str_eq(a, b);
}

static void assert_same(const struct job *a, const struct job *b)
{
    assert_int_equal(a->owner, b->owner);
    assert_int_equal(a->ordinal, b->ordinal);
    assert_true(uuid_eq(a->id, b->id));
    assert_int_equal(a->tenant, b->tenant);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->state, b->state);
    assert_true(same_text(a->queue, b->queue));
    assert_int_equal(a->urgency, b->urgency);
    assert_int_equal(a->attempt, b->attempt);
    assert_int_equal(a->lease_epoch, b->lease_epoch);
    assert_true(same_text(a->worker, b->worker));
    assert_int_equal(a->due_at, b->due_at);
    assert_true(same_text(a->output, b->output) && same_text(a->error, b->error));
    assert_int_equal(a->created_at, b->created_at);
    assert_int_equal(a->started_at, b->started_at);
    assert_int_equal(a->finished_at, b->finished_at);
    assert_true(a->item == b->item && a->undo == b->undo);
    assert_true(same_text(a->input, b->input) && same_text(a->note, b->note));
    assert_int_equal(a->lease_ms, b->lease_ms);
    assert_true(uuid_eq(a->child, b->child));
    assert_int_equal(a->dead_at, b->dead_at);
    assert_int_equal(a->stale_epoch, b->stale_epoch);
}

struct seen {
    int count;
    struct job last; /* without its texts */
};

static bool note_open(void *ctx, const struct job *job)
{
    struct seen *seen = ctx;
    seen->count++;
    seen->last = *job;
    return true;
}

static void note(void *ctx, const struct job *job)
{
    (void)note_open(ctx, job);
}

/* Every way to read a job finds it, from memory and from the rows. */
static void assert_found(const char *path, struct db *writer, const struct job *job)
{
    struct db *connections[] = {writer, open_reader(path)};
    struct arena arena;
    arena_init(&arena, MIB);
    for (size_t i = 0; i < ARRAY_LEN(connections); i++) {
        struct db *db = connections[i];
        struct job back;
        bool found = false;
        assert_ok(jobs_find(db, 1, job->id, &arena, &found, &back));
        assert_true(found);
        assert_same(&back, job);
        assert_ok(jobs_next_open(db, job->owner, 1, 2, &arena, &found, &back));
        assert_true(found);
        assert_same(&back, job);
        assert_ok(jobs_next_open(db, job->owner, 2, 9, &arena, &found, &back));
        assert_false(found);
        struct seen all = {0};
        struct seen range = {0};
        struct seen open = {0};
        assert_ok(jobs_of_run(db, job->owner, note, &all));
        assert_ok(jobs_range(db, job->owner, 1, 9, note, &range));
        assert_ok(jobs_open(db, job->owner, 1, 9, note_open, &open));
        assert_true(all.count == 1 && range.count == 1 && open.count == 1);
    }
    db_close(connections[1]);
    arena_release(&arena);
}

/* --- reading --- */

static void the_first_job_of_a_run_is_part_of_its_row(void **state)
{
    struct path path = path_in(*state, "p.db");
    struct db *db = open_writer(path.text);
    struct run tasks = run_with(RUN, 3);
    struct run sleeps = run_with(LATER_RUN, 0);
    struct job task = first_job(&tasks);
    struct job sleep = sleeping_job(&sleeps);
    put(db, &tasks, &task);
    put(db, &sleeps, &sleep);
    assert_int_equal(number_of(db, "SELECT count(*) FROM jobs"), 0);
    assert_int_equal(number_of(db, "SELECT count(*) FROM job_rows"), 2);
    assert_int_equal(number_of(db, "SELECT count(*) FROM first_jobs"), 1);
    assert_found(path.text, db, &task);
    assert_found(path.text, db, &sleep);
    db_close(db);
}

static void one_that_has_more_of_its_own_gets_a_row_at_once(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct run run = run_with(RUN, 0);
    struct job jobs[5];
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        jobs[i] = first_job(&run);
    jobs[0].input = STR("[1]");
    jobs[1].step = 1;
    jobs[2].created_at++;
    jobs[3].state = JOB_APPROVAL;
    jobs[4].id = jobs_new_id(&ENV_SYSTEM, RUN, 1);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        assert_ok(db_begin(db));
        assert_ok(jobs_insert_with_run(db, &jobs[i]));
        assert_ok(runs_insert(db, &run));
        assert_int_equal(number_of(db, "SELECT count(*) FROM jobs"), 1);
        assert_int_equal(number_of(db, "SELECT count(*) FROM job_rows"), 1);
        assert_int_equal(number_of(db, "SELECT count(first_queue) FROM runs"), 0);
        db_rollback(db);
    }
    db_close(db);
}

static void one_that_is_asked_for_before_its_run_is_there_gets_a_row(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct run run = run_with(RUN, 0);
    struct job job = first_job(&run);
    struct seen open = {0};
    assert_ok(db_begin(db));
    assert_ok(jobs_insert_with_run(db, &job));
    assert_ok(jobs_open(db, RUN, 1, 9, note_open, &open));
    assert_int_equal(open.count, 1);
    job.state = JOB_CANCELLED;
    job.finished_at = 2000;
    assert_ok(jobs_update(db, &job, JOB_PENDING, 0));
    assert_ok(runs_insert(db, &run));
    assert_ok(db_commit(db));
    assert_int_equal(number_of(db, "SELECT count(*) FROM jobs WHERE state = 'cancelled'"), 1);
    assert_int_equal(number_of(db, "SELECT count(*) FROM job_rows"), 1);
    db_close(db);
}

static void one_whose_run_was_rolled_back_is_forgotten(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct run lost = run_with(RUN, 0);
    struct job job = first_job(&lost);
    assert_ok(db_begin(db));
    assert_ok(jobs_insert_with_run(db, &job));
    db_rollback(db);
    struct run run = run_with(LATER_RUN, 0);
    assert_ok(runs_insert(db, &run));
    assert_int_equal(number_of(db, "SELECT count(*) FROM job_rows"), 0);
    assert_int_equal(number_of(db, "SELECT count(*) FROM first_jobs"), 0);
    db_close(db);
}

/* --- changes --- */

static void it_gets_a_row_of_its_own_when_it_changes(void **state)
{
    struct path path = path_in(*state, "p.db");
    struct db *db = open_writer(path.text);
    struct run tasks = run_with(RUN, 3);
    struct run sleeps = run_with(LATER_RUN, 0);
    struct job task = first_job(&tasks);
    struct job sleep = sleeping_job(&sleeps);
    put(db, &tasks, &task);
    put(db, &sleeps, &sleep);
    task.in_run = sleep.in_run = true;
    claim(&task);
    sleep.due_at = DUE + 1;
    assert_ok(jobs_update(db, &task, JOB_PENDING, 0));
    assert_ok(jobs_update(db, &sleep, JOB_SCHEDULED, 0));
    assert_int_equal(number_of(db, "SELECT count(*) FROM jobs"), 2);
    assert_int_equal(number_of(db, "SELECT count(*) FROM job_rows"), 2);
    assert_int_equal(number_of(db, "SELECT count(*) FROM first_jobs"), 0);
    assert_found(path.text, db, &task);
    assert_found(path.text, db, &sleep);
    db_close(db);
}

static void it_changes_only_from_the_state_and_epoch_that_were_read(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct run run = run_with(RUN, 0);
    struct job job = first_job(&run);
    put(db, &run, &job);
    job.in_run = true;
    struct job other = job;
    claim(&job);
    assert_int_equal(jobs_update(db, &job, JOB_RUNNING, 0), ERR_CONCURRENCY);
    assert_int_equal(jobs_update(db, &job, JOB_SCHEDULED, 0), ERR_CONCURRENCY);
    assert_int_equal(jobs_update(db, &job, JOB_PENDING, 1), ERR_CONCURRENCY);
    assert_int_equal(number_of(db, "SELECT count(*) FROM first_jobs"), 1);
    assert_ok(jobs_update(db, &job, JOB_PENDING, 0));
    claim(&other); /* somebody who has read the job before */
    other.worker = STR("other");
    assert_int_equal(jobs_update(db, &other, JOB_PENDING, 0), ERR_CONCURRENCY);
    assert_int_equal(number_of(db, "SELECT count(*) FROM jobs WHERE worker = 'w'"), 1);
    job.state = JOB_SUCCEEDED;
    job.finished_at = 3000;
    assert_ok(jobs_update(db, &job, JOB_RUNNING, 1));
    assert_int_equal(jobs_update(db, &job, JOB_RUNNING, 1), ERR_CONCURRENCY);
    db_close(db);
}

static void a_run_that_is_removed_takes_it_along(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct run run = run_with(RUN, 0);
    struct job job = first_job(&run);
    put(db, &run, &job);
    job.in_run = true;
    job.state = JOB_CANCELLED;
    job.finished_at = 2000;
    assert_ok(jobs_update(db, &job, JOB_PENDING, 0));
    bool gone = false;
    while (!gone) {
        int64_t removed = 0;
        assert_ok(retention_remove(db, 1, RUN, 1, &removed, &gone));
        assert_int_equal(number_of(db, "SELECT count(*) FROM job_rows WHERE state = 'pending'"), 0);
    }
    assert_int_equal(number_of(db, "SELECT count(*) FROM job_rows"), 0);
    db_close(db);
}

/* --- queues --- */

static void it_has_its_place_among_the_others_of_its_queue(void **state)
{
    /* the runs' numbers and priorities, in the order of their turns; the second and the third have
     * had an attempt */
    static const struct {
        int64_t run;
        int64_t priority;
        bool own_row;
    } TURNS[] = {{5000, 9, false}, {4000, 5, true}, {3000, 0, true},
                 {3500, 0, false}, {6000, 0, true}, {9000, -1, false}};
    struct path path = path_in(*state, "p.db");
    struct db *db = open_writer(path.text);
    struct arena arena;
    arena_init(&arena, MIB);
    for (size_t i = 0; i < ARRAY_LEN(TURNS); i++) {
        struct run run = run_with(TURNS[i].run, TURNS[i].priority);
        struct job job = first_job(&run);
        put(db, &run, &job);
        job.in_run = true;
        if (!TURNS[i].own_row)
            continue;
        claim(&job);
        assert_ok(jobs_update(db, &job, JOB_PENDING, 0));
        job.in_run = false;
        job.state = JOB_PENDING;
        assert_ok(jobs_update(db, &job, JOB_RUNNING, 1));
    }
    struct queue_ready ready;
    assert_ok(queues_ready(db, 1, STR("default"), &ready));
    assert_int_equal(ready.count, ARRAY_LEN(TURNS));
    assert_int_equal(ready.oldest, 1000);
    for (size_t i = 0; i < ARRAY_LEN(TURNS); i++) {
        struct job next;
        bool found = false;
        int64_t tenant = 0;
        int64_t ahead = -1;
        assert_ok(jobs_next_tenant(db, STR("default"), 0, &found, &tenant));
        assert_true(found && tenant == 1);
        assert_ok(jobs_next(db, 1, STR("default"), &arena, &found, &next));
        assert_true(found);
        assert_int_equal(next.owner, TURNS[i].run);
        assert_int_equal(next.in_run, !TURNS[i].own_row);
        assert_ok(jobs_ahead(db, &next, 100, &ahead));
        assert_int_equal(ahead, 0);
        int64_t epoch = next.lease_epoch;
        next.state = JOB_RUNNING;
        assert_ok(jobs_update(db, &next, JOB_PENDING, epoch));
    }
    struct job none;
    bool found = true;
    assert_ok(jobs_next(db, 1, STR("default"), &arena, &found, &none));
    assert_false(found);
    arena_release(&arena);
    db_close(db);
}

static void a_damaged_place_in_a_queue_does_not_hold_up_the_others(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    struct run run = run_with(RUN, 0);
    struct job job = first_job(&run);
    put(db, &run, &job);
    assert_ok(db_exec_values(
        db, "INSERT INTO first_jobs (queue, tenant, urgency, run) VALUES ('default', 1, -9, 7)",
        NULL, 0, NULL));
    struct job next;
    bool found = false;
    assert_ok(jobs_next(db, 1, STR("default"), &arena, &found, &next));
    assert_true(found);
    assert_int_equal(next.owner, RUN);
    arena_release(&arena);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(the_first_job_of_a_run_is_part_of_its_row),
        folder_test(one_that_has_more_of_its_own_gets_a_row_at_once),
        folder_test(one_that_is_asked_for_before_its_run_is_there_gets_a_row),
        folder_test(one_whose_run_was_rolled_back_is_forgotten),
        folder_test(it_gets_a_row_of_its_own_when_it_changes),
        folder_test(it_changes_only_from_the_state_and_epoch_that_were_read),
        folder_test(a_run_that_is_removed_takes_it_along),
        folder_test(it_has_its_place_among_the_others_of_its_queue),
        folder_test(a_damaged_place_in_a_queue_does_not_hold_up_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
