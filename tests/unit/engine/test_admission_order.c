/* Who begins next, where it is hardest to find out: lines that were passed over, several slots
 * freed at once, more lines and limits than the writer looks at in one go. Each story is told to
 * the engine and to the model (admission_model.h), which must agree after every call. */
#include "engine/admission_checks.h"

static const struct model_settings QUEUES = {-1, -1, AT_LIMIT_QUEUE, 1};

static struct model_settings limited_to(int64_t max)
{
    struct model_settings settings = QUEUES;
    settings.max_concurrent_runs = max;
    return settings;
}

static struct model_rule by(int path, int64_t limit)
{
    return (struct model_rule){path, limit, AT_LIMIT_COUNT};
}

static struct model_workflow rules(size_t count, struct model_rule first, struct model_rule second)
{
    return (struct model_workflow){.rules = {first, second}, .rule_count = count};
}

static void set_version(struct history *h, int tenant, int workflow, struct model_workflow w)
{
    make_version(h, tenant, workflow, w);
    perform_and_check(h);
}

static void set_limit(struct history *h, int64_t max)
{
    make_settings(h, 0, limited_to(max));
    perform_and_check(h);
}

/* Three tenants without limits and their workflows without rules. */
static struct history *begin(void)
{
    struct history *h = begin_history(0);
    now_doing(h, "a story");
    for (int tenant = 0; tenant < MODEL_TENANTS; tenant++) {
        make_settings(h, tenant, QUEUES);
        for (int workflow = 0; workflow < MODEL_WORKFLOWS; workflow++)
            make_version(h, tenant, workflow, (struct model_workflow){.rule_count = 0});
    }
    perform_and_check(h);
    return h;
}

static size_t plan(struct history *h, int workflow, const char *k, const char *g, int64_t priority,
                   enum at_limit policy)
{
    struct model_start start = {.workflow = workflow, .priority = priority, .at_limit = policy};
    (void)snprintf(start.keys[MODEL_BY_K], MODEL_KEY_MAX, "%s", k);
    (void)snprintf(start.keys[MODEL_BY_G], MODEL_KEY_MAX, "%s", g);
    return make_start(h, &start, NULL);
}

static size_t begins(struct history *h, int workflow, const char *k, const char *g)
{
    size_t run = plan(h, workflow, k, g, 0, AT_LIMIT_COUNT);
    perform_and_check(h);
    assert_int_equal(h->model.runs[run].status, MODEL_ACTIVE);
    return run;
}

static size_t waits(struct history *h, int workflow, const char *k, const char *g, int64_t priority)
{
    size_t run = plan(h, workflow, k, g, priority, AT_LIMIT_COUNT);
    perform_and_check(h);
    assert_int_equal(h->model.runs[run].status, MODEL_QUEUED);
    return run;
}

static size_t replaces(struct history *h, int workflow, const char *k, const char *g)
{
    size_t run = plan(h, workflow, k, g, 0, AT_LIMIT_CANCEL_OLDEST);
    perform_and_check(h);
    assert_int_equal(h->model.runs[run].status, MODEL_ACTIVE);
    return run;
}

static void finishes(struct history *h, size_t run)
{
    assert_true(make_finish(h, run, false));
    perform_and_check(h);
}

/* Of the two, which wait, the first one has begun. */
static void assert_first_began(struct history *h, size_t first, size_t second)
{
    assert_int_equal(h->model.runs[first].status, MODEL_ACTIVE);
    assert_int_equal(h->model.runs[second].status, MODEL_QUEUED);
}

/* The new run's two keys cost two runs their slots, each under another key that somebody waits for;
 * one slot of the tenant is left. */
static void a_start_that_frees_two_slots_lets_the_best_run_begin(void **state)
{
    (void)state;
    for (int made_first = 0; made_first < 2; made_first++) {
        struct history *h = begin();
        set_limit(h, 2);
        set_version(h, 0, PAIR, rules(2, by(MODEL_BY_G, 1), by(MODEL_BY_K, 1)));
        (void)begins(h, PAIR, "a", "y");
        (void)begins(h, PAIR, "b", "x");
        size_t first = made_first == 0 ? waits(h, PAIR, "c", "y", 0) : waits(h, PAIR, "b", "z", 0);
        size_t second = made_first == 0 ? waits(h, PAIR, "b", "z", 0) : waits(h, PAIR, "c", "y", 0);
        (void)replaces(h, PAIR, "a", "x");
        assert_first_began(h, first, second);
        (void)end_history(NULL);
    }
}

/* One slot of `both` is free, but the tenant is full: the first of two lines is next. */
static struct history *begin_with_a_line_passed_over(size_t *ret_other, size_t *ret_next,
                                                     size_t *ret_passed)
{
    struct history *h = begin();
    set_limit(h, 3);
    set_version(h, 0, BOTH, rules(2, by(MODEL_BY_K, 5), by(MODEL_WHOLE, 2)));
    size_t ends = begins(h, BOTH, "a", "");
    (void)begins(h, BOTH, "a", "");
    *ret_other = begins(h, PLAIN, "", "");
    *ret_next = waits(h, BOTH, "b", "", 0);
    *ret_passed = waits(h, BOTH, "c", "", 0);
    set_limit(h, 2);
    finishes(h, ends);
    return h;
}

static void an_urgent_run_overtakes_from_a_line_that_was_passed_over(void **state)
{
    (void)state;
    size_t other, next, passed;
    struct history *h = begin_with_a_line_passed_over(&other, &next, &passed);
    size_t urgent = waits(h, BOTH, "c", "", 1);
    finishes(h, other);
    assert_first_began(h, urgent, next);
}

static void when_the_next_run_is_cancelled_the_one_passed_over_is_next(void **state)
{
    (void)state;
    size_t other, next, passed;
    struct history *h = begin_with_a_line_passed_over(&other, &next, &passed);
    make_cancel(h, next);
    perform_and_check(h);
    finishes(h, other);
    assert_int_equal(h->model.runs[passed].status, MODEL_ACTIVE);
}

/* The line that was next gets a more urgent run, but is blocked meanwhile by its other key. */
static void a_line_that_is_blocked_after_all_leaves_its_room_to_others(void **state)
{
    (void)state;
    struct history *h = begin();
    set_limit(h, 3);
    set_version(h, 0, PAIR, rules(2, by(MODEL_BY_G, 1), by(MODEL_BY_K, 1)));
    (void)begins(h, PLAIN, "", "");
    size_t other = begins(h, PLAIN, "", "");
    size_t holder = begins(h, PAIR, "t", "v");
    (void)waits(h, PAIR, "t", "s", 0);
    size_t passed = waits(h, PAIR, "t", "u", 0);
    set_limit(h, 2);
    finishes(h, holder);
    (void)replaces(h, PAIR, "w", "s");
    size_t urgent = waits(h, PAIR, "t", "s", 1);
    finishes(h, other);
    assert_first_began(h, passed, urgent);
}

/* In one batch, so that the slot is freed before the writer has looked at the raised limit. */
static void a_raised_limit_counts_before_the_next_slot_is_given_away(void **state)
{
    (void)state;
    struct history *h = begin();
    set_limit(h, 2);
    set_version(h, 0, KEYED, rules(1, by(MODEL_BY_K, 1), by(0, 0)));
    (void)begins(h, KEYED, "a", "");
    size_t other = begins(h, PLAIN, "", "");
    size_t of_tenant = waits(h, PLAIN, "", "", 0);
    size_t of_key = waits(h, KEYED, "a", "", 1);
    claim_all(h, 0);
    make_version(h, 0, KEYED, rules(1, by(MODEL_BY_K, 2), by(0, 0)));
    assert_true(make_finish(h, other, false));
    perform_and_check(h);
    assert_first_began(h, of_key, of_tenant);
}

/* --- more than one slice --- */

enum { MANY = 300 }; /* lines: more than LINES_PER_TURN_MAX */
static_assert(MANY > (int)LINES_PER_TURN_MAX && 3 * MANY < (int)MODEL_RUNS_MAX,
              "many, not too many");

static const char *number(size_t i)
{
    static char text[MODEL_KEY_MAX];
    (void)snprintf(text, sizeof(text), "n%zu", i);
    return text;
}

/* Each with a key of its own for k, or for both. */
static void start_many(struct history *h, int workflow, const char *g, enum model_status become)
{
    for (size_t i = 0; i < MANY; i++) {
        size_t run = plan(h, workflow, number(i), g != NULL ? g : number(i), (int64_t)(i % 3),
                          AT_LIMIT_COUNT);
        assert_int_equal(h->model.runs[run].status, become);
        if (h->step_count == ROUND_MAX)
            perform_steps(h);
    }
    perform_and_check(h);
}

static void a_limit_that_goes_lets_hundreds_of_lines_begin_in_their_order(void **state)
{
    (void)state;
    struct history *h = begin();
    set_version(h, 0, BOTH, rules(2, by(MODEL_WHOLE, 1), by(MODEL_BY_K, 1)));
    (void)begins(h, BOTH, "z", "");
    start_many(h, BOTH, "", MODEL_QUEUED);
    set_version(h, 0, BOTH, rules(1, by(MODEL_BY_K, 1), by(0, 0)));
    assert_int_equal(h->model.tenants[0].active, MANY + 1);
}

static void of_hundreds_of_lines_the_best_begin_when_a_limit_goes(void **state)
{
    (void)state;
    struct history *h = begin();
    set_version(h, 0, BOTH, rules(2, by(MODEL_WHOLE, 1), by(MODEL_BY_K, 1)));
    (void)begins(h, BOTH, "z", "");
    start_many(h, BOTH, "", MODEL_QUEUED);
    size_t urgent = waits(h, BOTH, "y", "", 9);
    set_limit(h, 3);
    set_version(h, 0, BOTH, rules(1, by(MODEL_BY_K, 1), by(0, 0)));
    assert_int_equal(h->model.tenants[0].active, 3);
    assert_int_equal(h->model.runs[urgent].status, MODEL_ACTIVE);
}

/* All keys of another tenant are looked at in vain. */
static void limits_raised_among_hundreds_that_are_full_let_runs_begin(void **state)
{
    (void)state;
    struct history *h = begin();
    for (int tenant = 0; tenant < 2; tenant++)
        set_version(h, tenant, KEYED, rules(1, by(MODEL_BY_K, 1), by(0, 0)));
    start_many(h, KEYED, "", MODEL_ACTIVE);
    start_many(h, KEYED, "", MODEL_QUEUED);
    struct model_start start = {.tenant = 1, .workflow = KEYED, .at_limit = AT_LIMIT_QUEUE};
    (void)make_start(h, &start, NULL);
    size_t queued = make_start(h, &start, NULL);
    perform_and_check(h);
    assert_int_equal(h->model.runs[queued].status, MODEL_QUEUED);
    make_version(h, 0, PLAIN, rules(1, by(MODEL_WHOLE, 9), by(0, 0)));
    make_version(h, 1, KEYED, rules(1, by(MODEL_BY_K, 2), by(0, 0)));
    perform_and_check(h);
    assert_int_equal(h->model.runs[queued].status, MODEL_ACTIVE);
}

/* Hundreds wait for the same key g, and all but the last for a key k too that others hold. */
static void a_freed_slot_finds_the_one_run_that_fits_behind_hundreds(void **state)
{
    (void)state;
    struct history *h = begin();
    set_version(h, 0, PAIR, rules(2, by(MODEL_BY_G, 1), by(MODEL_BY_K, 1)));
    start_many(h, PAIR, NULL, MODEL_ACTIVE);
    size_t holder = begins(h, PAIR, "z", "x");
    start_many(h, PAIR, "x", MODEL_QUEUED);
    size_t fits = waits(h, PAIR, "y", "x", -1);
    finishes(h, holder);
    assert_int_equal(h->model.runs[fits].status, MODEL_ACTIVE);
}

static void a_raised_limit_lets_hundreds_begin_in_their_order(void **state)
{
    (void)state;
    struct history *h = begin();
    set_limit(h, 0);
    start_many(h, PLAIN, "", MODEL_QUEUED);
    set_limit(h, MANY - 1);
    assert_int_equal(h->model.tenants[0].active, MANY - 1);
}

static void what_a_restart_cuts_short_is_done_after_it(void **state)
{
    (void)state;
    struct history *h = begin();
    set_limit(h, 0);
    start_many(h, PLAIN, "", MODEL_QUEUED);
    make_settings(h, 0, limited_to(MANY));
    perform_steps(h);
    restart(h);
    check_all(h);
    assert_int_equal(h->model.tenants[0].active, MANY);
}

#define story(f) cmocka_unit_test_teardown(f, end_history)

int main(void)
{
    const struct CMUnitTest tests[] = {
        story(a_start_that_frees_two_slots_lets_the_best_run_begin),
        story(an_urgent_run_overtakes_from_a_line_that_was_passed_over),
        story(when_the_next_run_is_cancelled_the_one_passed_over_is_next),
        story(a_line_that_is_blocked_after_all_leaves_its_room_to_others),
        story(a_raised_limit_counts_before_the_next_slot_is_given_away),
        story(a_limit_that_goes_lets_hundreds_of_lines_begin_in_their_order),
        story(of_hundreds_of_lines_the_best_begin_when_a_limit_goes),
        story(limits_raised_among_hundreds_that_are_full_let_runs_begin),
        story(a_freed_slot_finds_the_one_run_that_fits_behind_hundreds),
        story(a_raised_limit_lets_hundreds_begin_in_their_order),
        story(what_a_restart_cuts_short_is_done_after_it),
    };
    return cmocka_run_group_tests(tests, make_template, free_template);
}
