/* What the writer remembers of queues is what a search in their rows finds. */
#include "store/run_support.h"

#include "base/limits.h"
#include "store/claim_queues.h"

enum { OWNERS = 40, TENANTS = 3, QUEUES = 2, HISTORY_STEPS = 3000 };

static const struct str QUEUE_NAMES[QUEUES] = {{"a", 1}, {"b", 1}};

struct pair {
    struct db *writer;
    struct db *reader; /* remembers nothing */
    struct arena arena;
    struct rng rng;
};

static void open_pair(struct pair *p, void **state)
{
    struct path path = path_in(*state, "p.db");
    *p = (struct pair){.writer = open_writer(path.text), .rng = {7}};
    p->reader = open_reader(path.text);
    arena_init(&p->arena, MIB);
    assert_non_null(db_claim_queues(p->writer));
    assert_null(db_claim_queues(p->reader));
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
        .queue = QUEUE_NAMES[0],
        .due_at = -1,
        .created_at = 1,
        .started_at = -1,
        .finished_at = -1,
        .lease_ms = -1,
        .dead_at = -1,
    };
}

static void compare(struct pair *p, int64_t tenant, struct str queue)
{
    struct job mine;
    struct job theirs;
    bool found = false;
    bool expected = false;
    assert_ok(jobs_next(p->writer, tenant, queue, &p->arena, &found, &mine));
    assert_ok(jobs_next(p->reader, tenant, queue, &p->arena, &expected, &theirs));
    assert_int_equal(found, expected);
    if (found) {
        assert_int_equal(mine.owner, theirs.owner);
        assert_int_equal(mine.ordinal, theirs.ordinal);
    }
    arena_clear(&p->arena);
}

static void compare_tenants(struct pair *p, int64_t after, struct str queue)
{
    int64_t mine = -1;
    int64_t theirs = -1;
    bool found = false;
    bool expected = false;
    assert_ok(jobs_next_tenant(p->writer, queue, after, &found, &mine));
    assert_ok(jobs_next_tenant(p->reader, queue, after, &expected, &theirs));
    assert_int_equal(found, expected);
    assert_int_equal(mine, theirs);
}

static void compare_all(struct pair *p)
{
    for (size_t q = 0; q < QUEUES; q++) {
        for (int64_t tenant = 0; tenant <= TENANTS; tenant++) {
            compare(p, tenant, QUEUE_NAMES[q]);
            compare_tenants(p, tenant, QUEUE_NAMES[q]);
        }
    }
}

static void add(struct pair *p, int64_t owner, int64_t ordinal)
{
    struct job job = job_of(owner, ordinal);
    job.tenant = 1 + owner % TENANTS;
    job.queue = QUEUE_NAMES[rng_below(&p->rng, QUEUES)];
    job.urgency = (int64_t)rng_below(&p->rng, 3) - 1;
    job.state = rng_below(&p->rng, 4) == 0 ? JOB_SCHEDULED : JOB_PENDING;
    if (rng_below(&p->rng, 2) == 0) { /* a call of an entity */
        job.step = JOB_OF_ENTITY;
        job.created_at = 1 + (int64_t)rng_below(&p->rng, 3);
    }
    assert_ok(jobs_insert(p->writer, &job));
}

static void change(struct pair *p, struct job *job)
{
    static const enum job_state STATES[] = {JOB_PENDING, JOB_RUNNING, JOB_SCHEDULED};
    struct job old = *job;
    switch (rng_below(&p->rng, 8)) {
    case 0:
        assert_ok(jobs_remove(p->writer, job->owner, job->ordinal));
        break;
    case 1:
        assert_ok(jobs_set_queue(p->writer, job->owner, job->ordinal,
                                 QUEUE_NAMES[rng_below(&p->rng, QUEUES)]));
        break;
    default:
        job->state = STATES[rng_below(&p->rng, ARRAY_LEN(STATES))];
        job->lease_epoch++;
        assert_ok(jobs_update(p->writer, job, old.state, old.lease_epoch));
    }
}

static void change_something(struct pair *p)
{
    int64_t owner = 1 + (int64_t)rng_below(&p->rng, OWNERS);
    int64_t ordinal = 1 + (int64_t)rng_below(&p->rng, 2);
    struct job job;
    bool found = false;
    assert_ok(jobs_find_at(p->writer, owner, ordinal, &p->arena, &found, &job));
    if (found)
        change(p, &job);
    else
        add(p, owner, ordinal);
    if (rng_below(&p->rng, 3) == 0) { /* queues become known in the middle of a transaction too */
        struct str queue = QUEUE_NAMES[rng_below(&p->rng, QUEUES)];
        assert_ok(jobs_next(p->writer, 1, queue, &p->arena, &found, &job));
    }
}

static void a_claim_gets_the_job_that_a_search_finds(void **state)
{
    struct pair p;
    open_pair(&p, state);
    for (int step = 0; step < HISTORY_STEPS; step++) {
        assert_ok(db_begin(p.writer));
        for (size_t n = rng_below(&p.rng, 4); n > 0; n--)
            change_something(&p);
        if (rng_below(&p.rng, 5) == 0)
            db_rollback(p.writer);
        else
            assert_ok(db_commit(p.writer));
        compare_all(&p);
    }
    close_pair(&p);
}

static void a_queue_with_too_many_jobs_is_searched_until_it_has_fewer(void **state)
{
    struct pair p;
    open_pair(&p, state);
    struct claim_queues *known = db_claim_queues(p.writer);
    compare(&p, 1, QUEUE_NAMES[0]);
    assert_true(claim_queues_know(known, QUEUE_NAMES[0]));
    assert_ok(db_begin(p.writer));
    for (int64_t i = 1; i <= CLAIM_QUEUE_JOBS_MAX; i++) {
        struct job job = job_of(i, 1);
        assert_ok(jobs_insert(p.writer, &job));
    }
    assert_true(claim_queues_know(known, QUEUE_NAMES[0]));
    struct job one_more = job_of(CLAIM_QUEUE_JOBS_MAX + 1, 1);
    assert_ok(jobs_insert(p.writer, &one_more));
    assert_ok(db_commit(p.writer));
    assert_false(claim_queues_know(known, QUEUE_NAMES[0]));
    compare(&p, 1, QUEUE_NAMES[0]);
    assert_ok(db_begin(p.writer));
    for (int64_t i = 1; i <= CLAIM_QUEUE_JOBS_MAX; i += 2)
        assert_ok(jobs_remove(p.writer, i, 1));
    assert_ok(db_commit(p.writer));
    for (int64_t i = 0; i <= CLAIM_QUEUE_JOBS_MAX; i++)
        compare(&p, 1, QUEUE_NAMES[0]);
    assert_true(claim_queues_know(known, QUEUE_NAMES[0]));
    close_pair(&p);
}

static void only_so_many_queues_are_known(void **state)
{
    struct pair p;
    open_pair(&p, state);
    char names[CLAIM_QUEUES_KNOWN_MAX + 1][8];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "q%zu", i);
        compare(&p, 1, str_of(names[i]));
        assert_true(claim_queues_know(db_claim_queues(p.writer), str_of(names[i])));
    }
    assert_false(claim_queues_know(db_claim_queues(p.writer), str_of(names[0])));
    assert_true(claim_queues_know(db_claim_queues(p.writer), str_of(names[1])));
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_claim_gets_the_job_that_a_search_finds),
        folder_test(a_queue_with_too_many_jobs_is_searched_until_it_has_fewer),
        folder_test(only_so_many_queues_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
