/* Advancing a run: what begins next and how the run moves, by hand and over random graphs. */
#include "base/support.h"

#include "base/limits.h"
#include "domain/advance.h"

enum { ROOM = 40 };

/* A definition made in place: advancing looks at the types and needs of steps only. */
struct plan {
    struct step_def steps[ROOM];
    size_t needs[ROOM][ROOM];
    struct definition def;
    struct step_progress progress[ROOM];
    size_t room[ROOM];
    enum run_status status;
    struct advance next;
};

static void plan_init(struct plan *p)
{
    memset(p, 0, sizeof(*p));
    p->status = RUN_PENDING;
    p->def.steps = p->steps;
}

static size_t add_step(struct plan *p, enum step_type type)
{
    size_t i = p->def.step_count++;
    assert_true(i < ROOM);
    p->steps[i] = (struct step_def){.type = type, .needs = p->needs[i]};
    return i;
}

static void add_need(struct plan *p, size_t step, size_t need)
{
    p->needs[step][p->steps[step].need_count++] = need;
}

/* Advances, and does what it says to statuses and steps. */
static void go(struct plan *p)
{
    run_advance(&p->def, p->progress, p->status, p->room, &p->next);
    for (size_t i = 0; i < p->next.begin_count; i++) {
        size_t step = p->next.begin[i];
        assert_false(p->progress[step].begun);
        p->progress[step].begun = true;
        p->progress[step].state = p->steps[step].type == STEP_SLEEP ? JOB_SCHEDULED : JOB_PENDING;
    }
    for (size_t i = 0; i < p->next.event_count; i++) {
        struct run_change change;
        assert_int_equal(run_decide(p->status, p->next.events[i], &change), ERR_OK);
        p->status = change.to;
    }
}

static void end_step(struct plan *p, size_t step, enum job_state state)
{
    assert_true(p->progress[step].begun && !job_is_over(p->progress[step].state));
    p->progress[step].state = state;
}

static void assert_begins(const struct plan *p, size_t count, const size_t *steps)
{
    assert_int_equal(p->next.begin_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(p->next.begin[i], steps[i]);
}

#define ASSERT_BEGINS(p, ...) \
    assert_begins((p), ARRAY_LEN(((const size_t[]){__VA_ARGS__})), (const size_t[]){__VA_ARGS__})

static void assert_events(const struct plan *p, size_t count, const enum run_event *events)
{
    assert_int_equal(p->next.event_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(p->next.events[i], events[i]);
}

#define ASSERT_EVENTS(p, ...)                                              \
    assert_events((p), ARRAY_LEN(((const enum run_event[]){__VA_ARGS__})), \
                  (const enum run_event[]){__VA_ARGS__})
#define ASSERT_NO_EVENTS(p) assert_int_equal((p)->next.event_count, 0)
#define ASSERT_BEGINS_NONE(p) assert_int_equal((p)->next.begin_count, 0)

static void a_sequence_goes_step_by_step(void **state)
{
    (void)state;
    struct plan p;
    plan_init(&p);
    for (size_t i = 0; i < 3; i++) {
        (void)add_step(&p, STEP_TASK);
        if (i > 0)
            add_need(&p, i, i - 1);
    }
    go(&p);
    ASSERT_BEGINS(&p, 0);
    ASSERT_EVENTS(&p, RUN_ON_START);
    end_step(&p, 0, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS(&p, 1);
    ASSERT_NO_EVENTS(&p);
    end_step(&p, 1, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS(&p, 2);
    ASSERT_NO_EVENTS(&p);
    end_step(&p, 2, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS_NONE(&p);
    ASSERT_EVENTS(&p, RUN_ON_SUCCEED);
    assert_int_equal(p.status, RUN_SUCCEEDED);
}

static void advancing_twice_changes_nothing_more(void **state)
{
    (void)state;
    struct plan p;
    plan_init(&p);
    (void)add_step(&p, STEP_TASK);
    go(&p);
    go(&p);
    ASSERT_BEGINS_NONE(&p);
    ASSERT_NO_EVENTS(&p);
    p.progress[0].state = JOB_RUNNING;
    go(&p);
    ASSERT_BEGINS_NONE(&p);
    ASSERT_NO_EVENTS(&p);
}

static void make_diamond(struct plan *p, enum step_type left, enum step_type right)
{
    plan_init(p);
    (void)add_step(p, STEP_TASK);
    add_need(p, add_step(p, left), 0);
    add_need(p, add_step(p, right), 0);
    size_t bottom = add_step(p, STEP_TASK);
    add_need(p, bottom, 1);
    add_need(p, bottom, 2);
}

static void a_diamond_joins_when_both_sides_are_done(void **state)
{
    (void)state;
    struct plan p;
    make_diamond(&p, STEP_TASK, STEP_TASK);
    go(&p);
    ASSERT_BEGINS(&p, 0);
    end_step(&p, 0, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS(&p, 1, 2);
    end_step(&p, 2, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS_NONE(&p);
    ASSERT_NO_EVENTS(&p);
    end_step(&p, 1, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS(&p, 3);
    end_step(&p, 3, JOB_SUCCEEDED);
    go(&p);
    ASSERT_EVENTS(&p, RUN_ON_SUCCEED);
}

static void independent_steps_begin_together_in_written_order(void **state)
{
    (void)state;
    struct plan p;
    plan_init(&p);
    for (size_t i = 0; i < 4; i++)
        (void)add_step(&p, STEP_TASK);
    add_need(&p, 1, 3);
    go(&p);
    ASSERT_BEGINS(&p, 0, 2, 3);
}

static void a_failed_step_fails_the_run_and_begins_nothing(void **state)
{
    (void)state;
    struct plan p;
    make_diamond(&p, STEP_TASK, STEP_TASK);
    go(&p);
    end_step(&p, 0, JOB_SUCCEEDED);
    go(&p);
    end_step(&p, 1, JOB_FAILED);
    go(&p);
    ASSERT_BEGINS_NONE(&p);
    ASSERT_EVENTS(&p, RUN_ON_FAIL);
    assert_int_equal(p.status, RUN_FAILED);
}

static void a_failure_wins_over_steps_that_could_begin(void **state)
{
    (void)state;
    struct plan p;
    plan_init(&p);
    (void)add_step(&p, STEP_TASK);
    (void)add_step(&p, STEP_TASK);
    add_need(&p, add_step(&p, STEP_TASK), 0);
    go(&p);
    end_step(&p, 0, JOB_SUCCEEDED);
    end_step(&p, 1, JOB_FAILED);
    go(&p);
    ASSERT_BEGINS_NONE(&p);
    ASSERT_EVENTS(&p, RUN_ON_FAIL);
}

static void every_end_but_success_fails_the_run(void **state)
{
    (void)state;
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++) {
        if (!job_is_over(s))
            continue;
        struct plan p;
        plan_init(&p);
        (void)add_step(&p, STEP_TASK);
        go(&p);
        end_step(&p, 0, s);
        go(&p);
        assert_int_equal(p.status, s == JOB_SUCCEEDED ? RUN_SUCCEEDED : RUN_FAILED);
    }
}

static void a_run_whose_open_steps_all_sleep_waits(void **state)
{
    (void)state;
    struct plan p;
    plan_init(&p);
    (void)add_step(&p, STEP_SLEEP);
    (void)add_step(&p, STEP_SLEEP);
    go(&p);
    ASSERT_BEGINS(&p, 0, 1);
    ASSERT_EVENTS(&p, RUN_ON_START, RUN_ON_WAIT);
    assert_int_equal(p.status, RUN_WAITING);
    go(&p);
    ASSERT_NO_EVENTS(&p);
    end_step(&p, 1, JOB_SUCCEEDED);
    go(&p);
    ASSERT_NO_EVENTS(&p);
    assert_int_equal(p.status, RUN_WAITING);
    end_step(&p, 0, JOB_SUCCEEDED);
    go(&p);
    ASSERT_EVENTS(&p, RUN_ON_WAKE, RUN_ON_SUCCEED);
}

static void a_sleep_beside_work_does_not_make_the_run_wait(void **state)
{
    (void)state;
    struct plan p;
    make_diamond(&p, STEP_SLEEP, STEP_TASK);
    go(&p);
    end_step(&p, 0, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS(&p, 1, 2);
    ASSERT_NO_EVENTS(&p);
    end_step(&p, 2, JOB_SUCCEEDED);
    go(&p);
    ASSERT_EVENTS(&p, RUN_ON_WAIT);
    end_step(&p, 1, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS(&p, 3);
    ASSERT_EVENTS(&p, RUN_ON_WAKE);
}

static void a_sleep_after_a_sleep_goes_on_waiting(void **state)
{
    (void)state;
    struct plan p;
    plan_init(&p);
    (void)add_step(&p, STEP_SLEEP);
    add_need(&p, add_step(&p, STEP_SLEEP), 0);
    go(&p);
    end_step(&p, 0, JOB_SUCCEEDED);
    go(&p);
    ASSERT_BEGINS(&p, 1);
    ASSERT_NO_EVENTS(&p);
    assert_int_equal(p.status, RUN_WAITING);
}

static void a_failure_while_waiting_wakes_first(void **state)
{
    (void)state;
    struct plan p;
    plan_init(&p);
    (void)add_step(&p, STEP_SLEEP);
    go(&p);
    end_step(&p, 0, JOB_FAILED);
    go(&p);
    ASSERT_EVENTS(&p, RUN_ON_WAKE, RUN_ON_FAIL);
}

/* --- random graphs --- */

struct history {
    size_t begun[ROOM];
    size_t ends;
};

static void note_begins(struct plan *p, struct history *h)
{
    for (size_t i = 0; i < p->next.begin_count; i++) {
        size_t step = p->next.begin[i];
        assert_true(i == 0 || p->next.begin[i - 1] < step);
        h->begun[step]++;
        for (size_t n = 0; n < p->steps[step].need_count; n++) {
            size_t need = p->needs[step][n];
            assert_true(p->progress[need].begun);
            assert_int_equal(p->progress[need].state, JOB_SUCCEEDED);
        }
    }
    for (size_t i = 0; i < p->next.event_count; i++)
        h->ends += p->next.events[i] == RUN_ON_SUCCEED || p->next.events[i] == RUN_ON_FAIL;
}

/* A waiting run has sleeping steps and nothing else open; a running one has work. */
static void check_status(const struct plan *p)
{
    size_t asleep = 0;
    size_t working = 0;
    for (size_t i = 0; i < p->def.step_count; i++) {
        if (!p->progress[i].begun || job_is_over(p->progress[i].state))
            continue;
        *(p->progress[i].state == JOB_SCHEDULED ? &asleep : &working) += 1;
    }
    if (p->status == RUN_WAITING)
        assert_true(asleep > 0 && working == 0);
    if (p->status == RUN_RUNNING)
        assert_true(working > 0);
    assert_int_not_equal(p->status, RUN_PENDING);
}

static void make_random(struct plan *p, struct rng *r)
{
    plan_init(p);
    size_t count = 1 + rng_below(r, ROOM);
    for (size_t i = 0; i < count; i++)
        (void)add_step(p, rng_below(r, 3) == 0 ? STEP_SLEEP : STEP_TASK);
    /* An edge goes from a later to an earlier place of a shuffled order: no cycle, any numbering.
     */
    size_t order[ROOM];
    for (size_t i = 0; i < count; i++) {
        size_t at = rng_below(r, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    uint64_t density = 1 + rng_below(r, 8);
    for (size_t later = 1; later < count; later++) {
        for (size_t earlier = 0; earlier < later; earlier++) {
            if (rng_below(r, 16) < density)
                add_need(p, order[later], order[earlier]);
        }
    }
}

/* An open step by chance, or step_count when there is none. */
static size_t pick_open(const struct plan *p, struct rng *r)
{
    size_t picked = p->def.step_count;
    uint64_t seen = 0;
    for (size_t i = 0; i < p->def.step_count; i++) {
        if (p->progress[i].begun && !job_is_over(p->progress[i].state) && rng_below(r, ++seen) == 0)
            picked = i;
    }
    return picked;
}

static void random_graphs_begin_each_step_once_after_its_needs(void **state)
{
    (void)state;
    struct rng r = {20240611};
    int failed = 0;
    for (int round = 0; round < 3000; round++) {
        struct plan p;
        struct history h = {{0}, 0};
        make_random(&p, &r);
        uint64_t fail_one_in = rng_below(&r, 4) == 0 ? 8 : 0;
        bool fails = false;
        go(&p);
        note_begins(&p, &h);
        while (!run_is_over(p.status)) {
            check_status(&p);
            size_t step = pick_open(&p, &r);
            assert_true(step < p.def.step_count); /* otherwise it would hang for ever */
            fails = fail_one_in > 0 && rng_below(&r, fail_one_in) == 0;
            end_step(&p, step, fails ? JOB_FAILED : JOB_SUCCEEDED);
            go(&p);
            note_begins(&p, &h);
        }
        assert_int_equal(h.ends, 1);
        assert_int_equal(p.status, fails ? RUN_FAILED : RUN_SUCCEEDED);
        failed += fails;
        for (size_t i = 0; i < p.def.step_count; i++)
            assert_true(h.begun[i] == 1 || (fails && h.begun[i] == 0));
    }
    assert_true(failed > 100); /* both ends were seen often */
}

static void advance_a_run_that_is_over(void)
{
    struct plan p;
    plan_init(&p);
    (void)add_step(&p, STEP_TASK);
    run_advance(&p.def, p.progress, RUN_SUCCEEDED, p.room, &p.next);
}

static void a_run_that_is_over_does_not_advance(void **state)
{
    (void)state;
    assert_true(aborts(advance_a_run_that_is_over));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_goes_step_by_step),
        cmocka_unit_test(advancing_twice_changes_nothing_more),
        cmocka_unit_test(a_diamond_joins_when_both_sides_are_done),
        cmocka_unit_test(independent_steps_begin_together_in_written_order),
        cmocka_unit_test(a_failed_step_fails_the_run_and_begins_nothing),
        cmocka_unit_test(a_failure_wins_over_steps_that_could_begin),
        cmocka_unit_test(every_end_but_success_fails_the_run),
        cmocka_unit_test(a_run_whose_open_steps_all_sleep_waits),
        cmocka_unit_test(a_sleep_beside_work_does_not_make_the_run_wait),
        cmocka_unit_test(a_sleep_after_a_sleep_goes_on_waiting),
        cmocka_unit_test(a_failure_while_waiting_wakes_first),
        cmocka_unit_test(random_graphs_begin_each_step_once_after_its_needs),
        cmocka_unit_test(a_run_that_is_over_does_not_advance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
