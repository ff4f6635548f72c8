/* Jobs that are written once, before the commit or before anything reads them. */
#include "store/run_support.h"

#include "base/limits.h"
#include "store/row_cache.h"

struct pair {
    struct db *writer;
    struct db *reader; /* has no cache */
    struct arena arena;
};

static void open_pair(struct pair *p, void **state)
{
    struct path path = path_in(*state, "p.db");
    *p = (struct pair){.writer = open_writer(path.text)};
    p->reader = open_reader(path.text);
    arena_init(&p->arena, 16 * MIB);
}

static void close_pair(struct pair *p)
{
    arena_release(&p->arena);
    db_close(p->reader);
    db_close(p->writer);
}

static struct job job_of(int64_t owner, int64_t ordinal)
{
    return (struct job){
        .owner = owner,
        .ordinal = ordinal,
        .id = jobs_new_id(&ENV_SYSTEM, owner, ordinal),
        .tenant = 1,
        .state = JOB_PENDING,
        .queue = STR("default"),
        .due_at = -1,
        .created_at = 1,
        .started_at = -1,
        .finished_at = -1,
        .lease_ms = -1,
        .dead_at = -1,
    };
}

static void claim(struct pair *p, struct job *job)
{
    struct job old = *job;
    job->state = JOB_RUNNING;
    job->lease_epoch++;
    job->worker = STR("w");
    assert_ok(jobs_update(p->writer, job, old.state, old.lease_epoch));
}

static void complete(struct pair *p, struct job *job, struct str output)
{
    job->state = JOB_SUCCEEDED;
    job->output = output;
    job->finished_at = 5;
    assert_ok(jobs_update(p->writer, job, JOB_RUNNING, job->lease_epoch));
}

static size_t unwritten(const struct pair *p)
{
    return row_cache_unwritten(db_row_cache(p->writer));
}

static struct job stored(struct pair *p, int64_t owner, int64_t ordinal)
{
    struct job job;
    bool found = false;
    assert_ok(jobs_find_at(p->reader, owner, ordinal, &p->arena, &found, &job));
    assert_true(found);
    return job;
}

static void a_job_that_is_made_and_claimed_is_written_once_as_claimed(void **state)
{
    struct pair p;
    open_pair(&p, state);
    struct job job = job_of(10, 2);
    assert_ok(db_begin(p.writer));
    int64_t before = db_changes(p.writer);
    assert_ok(jobs_insert(p.writer, &job));
    claim(&p, &job);
    assert_int_equal(unwritten(&p), 1);
    assert_true(db_changes(p.writer) > before);
    assert_ok(db_commit(p.writer));
    assert_int_equal(unwritten(&p), 0);
    struct job back = stored(&p, 10, 2);
    assert_int_equal(back.state, JOB_RUNNING);
    assert_int_equal(back.lease_epoch, 1);
    close_pair(&p);
}

static void a_job_that_was_there_keeps_what_a_change_does_not_alter(void **state)
{
    struct pair p;
    open_pair(&p, state);
    struct job job = job_of(10, 2);
    job.input = STR("{\"a\":1}");
    assert_ok(jobs_insert(p.writer, &job));
    assert_ok(db_begin(p.writer));
    job.input = STR("changed in memory only");
    claim(&p, &job);
    complete(&p, &job, STR("{}"));
    assert_int_equal(unwritten(&p), 1);
    assert_ok(db_commit(p.writer));
    struct job back = stored(&p, 10, 2);
    assert_int_equal(back.state, JOB_SUCCEEDED);
    assert_str(back.output, "{}");
    assert_str(back.worker, "w");
    assert_str(back.input, "{\"a\":1}");
    close_pair(&p);
}

static void whatever_reads_rows_sees_the_change(void **state)
{
    struct pair p;
    open_pair(&p, state);
    struct job job = job_of(10, 2);
    assert_ok(db_begin(p.writer));
    assert_ok(jobs_insert(p.writer, &job));
    claim(&p, &job);
    assert_int_equal(number_of(p.writer, "SELECT count(*) FROM jobs WHERE state = 'running'"), 1);
    assert_int_equal(unwritten(&p), 0);
    complete(&p, &job, STR("{}"));
    assert_ok(DB_EXEC(p.writer, "UPDATE jobs SET note = output WHERE run = $1", NULL, DB_I(10)));
    assert_ok(db_commit(p.writer));
    assert_str(stored(&p, 10, 2).note, "{}");
    close_pair(&p);
}

static void a_change_from_another_state_is_refused_at_once(void **state)
{
    struct pair p;
    open_pair(&p, state);
    struct job job = job_of(10, 2);
    assert_ok(db_begin(p.writer));
    assert_ok(jobs_insert(p.writer, &job));
    claim(&p, &job);
    assert_int_equal(jobs_update(p.writer, &job, JOB_PENDING, 0), ERR_CONCURRENCY);
    assert_int_equal(jobs_update(p.writer, &job, JOB_RUNNING, 0), ERR_CONCURRENCY);
    db_rollback(p.writer);
    close_pair(&p);
}

static void what_was_rolled_back_is_never_written(void **state)
{
    struct pair p;
    open_pair(&p, state);
    struct job job = job_of(10, 2);
    assert_ok(db_begin(p.writer));
    assert_ok(jobs_insert(p.writer, &job));
    db_rollback(p.writer);
    assert_int_equal(unwritten(&p), 0);
    assert_ok(db_begin(p.writer));
    assert_ok(db_commit(p.writer));
    assert_int_equal(number_of(p.reader, "SELECT count(*) FROM jobs"), 0);
    close_pair(&p);
}

/* A row that cannot be written makes the commit fail, and nothing of it happens. */
static void a_commit_whose_rows_cannot_be_written_changes_nothing(void **state)
{
    struct pair p;
    open_pair(&p, state);
    struct job job = job_of(10, 2);
    struct job other = job_of(11, 2);
    assert_ok(jobs_insert(p.writer, &job));
    assert_ok(db_begin(p.writer));
    assert_ok(jobs_insert(p.writer, &other));
    claim(&p, &job);
    assert_ok(db_exec_beside(p.writer, "UPDATE jobs SET lease_epoch = 7", NULL, 0, NULL));
    assert_int_equal(db_commit(p.writer), ERR_CONCURRENCY);
    assert_int_equal(db_commit_outcome(p.writer), DB_ABORTED);
    assert_int_equal(number_of(p.reader, "SELECT count(*) FROM jobs"), 1);
    assert_int_equal(stored(&p, 10, 2).state, JOB_PENDING);
    close_pair(&p);
}

static void a_result_too_large_for_memory_is_written_after_what_came_before(void **state)
{
    static char text[2 * ROW_CACHE_TEXT_MAX];
    struct pair p;
    open_pair(&p, state);
    memset(text, '1', sizeof(text));
    struct job job = job_of(10, 2);
    assert_ok(db_begin(p.writer));
    assert_ok(jobs_insert(p.writer, &job));
    claim(&p, &job);
    complete(&p, &job, (struct str){text, sizeof(text)});
    assert_ok(db_commit(p.writer));
    struct job back = stored(&p, 10, 2);
    assert_int_equal(back.state, JOB_SUCCEEDED);
    assert_int_equal(back.output.len, sizeof(text));
    close_pair(&p);
}

static void more_jobs_than_memory_has_room_for_are_written_too(void **state)
{
    enum { COUNT = 3 * ROWS_UNWRITTEN_MAX };
    struct pair p;
    open_pair(&p, state);
    assert_ok(db_begin(p.writer));
    for (int64_t i = 1; i <= COUNT; i++) {
        struct job job = job_of(i, 2);
        assert_ok(jobs_insert(p.writer, &job));
        assert_in_range(unwritten(&p), 0, ROWS_UNWRITTEN_MAX);
    }
    for (int64_t i = 1; i <= COUNT; i++) {
        struct job job;
        bool found = false;
        struct arena_mark mark = arena_mark(&p.arena);
        assert_ok(jobs_find_at(p.writer, i, 2, &p.arena, &found, &job));
        assert_true(found);
        claim(&p, &job);
        arena_back_to(&p.arena, mark);
    }
    assert_ok(db_commit(p.writer));
    assert_int_equal(number_of(p.reader, "SELECT count(*) FROM jobs WHERE state = 'running'"),
                     COUNT);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_job_that_is_made_and_claimed_is_written_once_as_claimed),
        folder_test(a_job_that_was_there_keeps_what_a_change_does_not_alter),
        folder_test(whatever_reads_rows_sees_the_change),
        folder_test(a_change_from_another_state_is_refused_at_once),
        folder_test(what_was_rolled_back_is_never_written),
        folder_test(a_commit_whose_rows_cannot_be_written_changes_nothing),
        folder_test(a_result_too_large_for_memory_is_written_after_what_came_before),
        folder_test(more_jobs_than_memory_has_room_for_are_written_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
