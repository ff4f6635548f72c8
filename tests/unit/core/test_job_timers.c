/* Timers of jobs have a row when the fold has come by, or when they could not be found again
 * without one. */
#include "store/folder.h"

#include "base/limits.h"
#include "core/txn/feed_hold.h"
#include "core/txn/job_row.h"
#include "core/txn/job_timers.h"
#include "store/tenants.h"

enum { TENANT = 7, DUE = 5000 };

struct fixture {
    struct db *db;
    struct tx tx;
};

static void open_core(struct fixture *f, const struct folder *folder)
{
    f->db = open_writer(path_in(folder, "x.db").text);
    assert_ok(tx_init(&f->tx, f->db, &ENV_SYSTEM));
}

static void close_core(struct fixture *f)
{
    tx_release(&f->tx);
    db_close(f->db);
}

static void begin(struct fixture *f)
{
    tx_start(&f->tx, 1000);
    assert_ok(db_begin(f->db));
}

static void commit(struct fixture *f)
{
    assert_ok(tx_commit(&f->tx));
    effects_forget(&f->tx.effects);
}

static void roll_back(struct fixture *f)
{
    db_rollback(f->db);
    tx_rolled_back(&f->tx);
}

static void fold(struct fixture *f)
{
    begin(f);
    assert_ok(job_timers_fold(&f->tx));
    commit(f);
}

static void tell(struct fixture *f, int64_t owner, int64_t seq)
{
    struct event event = {.seq = seq, .at = f->tx.now_ms, .type = STR("job.scheduled"), .job = -1};
    assert_ok(tx_add_event(&f->tx, TENANT, owner, &event));
}

static struct job sleeps(struct fixture *f, int64_t owner, int64_t ordinal, int64_t due_at)
{
    struct job job = job_row_blank(&f->tx, owner, ordinal, TENANT);
    job.id = jobs_new_id(f->tx.env, owner, ordinal);
    job.state = JOB_SCHEDULED;
    job.queue = STR("");
    job.due_at = due_at;
    assert_ok(job_row_create(&f->tx, &job));
    return job;
}

/* A job of a new owner, in a transaction of its own. */
static struct job start(struct fixture *f, int64_t owner)
{
    begin(f);
    struct job job = sleeps(f, owner, 1, DUE + owner);
    tell(f, owner, 1);
    commit(f);
    return job;
}

static void end(struct fixture *f, struct job *job)
{
    begin(f);
    assert_ok(job_row_change(&f->tx, job, JOB_ON_CANCEL));
    tell(f, job->owner, 2);
    commit(f);
}

static int64_t rows(struct fixture *f)
{
    return number_of(f->db, "SELECT count(*) FROM timers");
}

static int64_t mark(struct fixture *f)
{
    int64_t through = -1;
    assert_ok(timers_folded_through(f->db, &through));
    return through;
}

static void a_timer_has_no_row_before_the_fold(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f); /* it has just been opened and does not know yet */
    for (int64_t owner = 1; owner <= 21; owner++)
        (void)start(&f, owner);
    assert_int_equal(rows(&f), 0);
    assert_int_equal(mark(&f), 0);
    int64_t next = -1;
    assert_ok(job_timers_next(&f.tx, &next));
    assert_int_equal(next, DUE + 1);
    fold(&f);
    assert_int_equal(rows(&f), 21);
    assert_int_equal(mark(&f), 21);
    assert_int_equal(number_of(f.db, "SELECT count(*) FROM timers t JOIN jobs j ON j.run = t.run"
                                     " AND j.ordinal = t.ordinal AND j.due_at = t.due_at"
                                     " AND j.lease_epoch = t.generation"
                                     " AND j.tenant = t.tenant"),
                     21);
    close_core(&f);
}

static void what_comes_and_goes_between_two_folds_is_never_written(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    struct job job = start(&f, 1);
    end(&f, &job);
    int64_t next = 0;
    assert_ok(job_timers_next(&f.tx, &next));
    assert_int_equal(next, -1);
    fold(&f);
    assert_int_equal(rows(&f), 0);
    close_core(&f);
}

static void a_timer_with_a_row_loses_it_at_once(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    struct job job = start(&f, 1);
    fold(&f);
    assert_int_equal(rows(&f), 1);
    end(&f, &job);
    assert_int_equal(rows(&f), 0);
    close_core(&f);
}

/* A heartbeat tells nobody: nothing in the rows would say that its owner is ahead of the fold. */
static void a_timer_without_an_event_of_its_owner_gets_a_row(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    begin(&f);
    (void)sleeps(&f, 1, 1, DUE);
    (void)sleeps(&f, 2, 1, DUE);
    (void)sleeps(&f, 2, 2, DUE);
    (void)sleeps(&f, 3, 1, DUE);
    tell(&f, 2, 1);
    commit(&f);
    assert_int_equal(rows(&f), 2);
    assert_int_equal(number_of(f.db, "SELECT sum(run) FROM timers"), 4);
    fold(&f);
    assert_int_equal(rows(&f), 4);
    close_core(&f);
}

static void a_rollback_loses_no_timer_that_was_committed(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    struct job gone = start(&f, 1);
    (void)start(&f, 2);
    begin(&f);
    (void)sleeps(&f, 3, 1, DUE);
    tell(&f, 3, 1);
    roll_back(&f);
    assert_true(job_timers_want_fold(&f.tx));
    (void)start(&f, 4); /* has a row at once */
    assert_int_equal(rows(&f), 1);
    end(&f, &gone);
    fold(&f);
    assert_int_equal(rows(&f), 2);
    assert_int_equal(number_of(f.db, "SELECT sum(run) FROM timers"), 2 + 4);
    assert_false(job_timers_want_fold(&f.tx));
    close_core(&f);
}

static void a_fold_that_fails_is_made_up_for(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    (void)start(&f, 1);
    begin(&f);
    assert_ok(job_timers_fold(&f.tx));
    roll_back(&f);
    assert_int_equal(rows(&f), 0);
    assert_int_equal(mark(&f), 0);
    fold(&f);
    assert_int_equal(rows(&f), 1);
    assert_int_equal(mark(&f), 1);
    close_core(&f);
}

static void a_new_core_finds_the_timers_of_the_last_one(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    (void)start(&f, 1);
    fold(&f);
    assert_ok(db_exec_values(f.db, "DELETE FROM timers", NULL, 0,
                             NULL)); /* below the mark nothing is sought */
    (void)start(&f, 2);
    close_core(&f);
    open_core(&f, *state);
    assert_true(job_timers_want_fold(&f.tx));
    begin(&f);
    assert_ok(job_timers_fold_due(&f.tx));
    assert_int_equal(f.tx.effects.timer->timer_at, DUE + 2); /* the writer has to wake for it */
    commit(&f);
    assert_int_equal(rows(&f), 1);
    assert_int_equal(number_of(f.db, "SELECT run FROM timers"), 2);
    close_core(&f);
}

static void a_timer_that_is_due_gets_a_row(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    begin(&f);
    (void)sleeps(&f, 1, 1, 1001);
    tell(&f, 1, 1);
    commit(&f);
    begin(&f);
    assert_ok(job_timers_fold_due(&f.tx));
    commit(&f);
    assert_int_equal(rows(&f), 0);
    tx_start(&f.tx, 1001);
    assert_ok(db_begin(f.db));
    assert_ok(job_timers_fold_due(&f.tx));
    commit(&f);
    assert_int_equal(rows(&f), 1);
    close_core(&f);
}

static void memory_has_a_bound(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    begin(&f);
    for (int64_t ordinal = 1; ordinal <= RECENT_TIMERS_MAX + 10; ordinal++)
        (void)sleeps(&f, 1, ordinal, DUE + ordinal);
    tell(&f, 1, 1);
    commit(&f);
    assert_int_equal(rows(&f), 10);
    assert_true(job_timers_want_fold(&f.tx));
    fold(&f);
    assert_int_equal(rows(&f), RECENT_TIMERS_MAX + 10);
    assert_false(job_timers_want_fold(&f.tx));
    close_core(&f);
}

static void the_feed_is_kept_as_far_as_timers_need_it(void **state)
{
    struct fixture f;
    open_core(&f, *state);
    fold(&f);
    (void)start(&f, 1);
    fold(&f);
    (void)start(&f, 2);
    tx_start(&f.tx, 1000 + FEED_KEPT_MS + 1);
    assert_ok(db_begin(f.db));
    assert_ok(counters_folded(f.db, 2));
    bool more = false;
    assert_ok(feed_hold_sweep(&f.tx, &more));
    commit(&f);
    assert_int_equal(number_of(f.db, "SELECT sum(run) FROM feed"), 2);
    close_core(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_timer_has_no_row_before_the_fold),
        folder_test(what_comes_and_goes_between_two_folds_is_never_written),
        folder_test(a_timer_with_a_row_loses_it_at_once),
        folder_test(a_timer_without_an_event_of_its_owner_gets_a_row),
        folder_test(a_rollback_loses_no_timer_that_was_committed),
        folder_test(a_fold_that_fails_is_made_up_for),
        folder_test(a_new_core_finds_the_timers_of_the_last_one),
        folder_test(a_timer_that_is_due_gets_a_row),
        folder_test(memory_has_a_bound),
        folder_test(the_feed_is_kept_as_far_as_timers_need_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
