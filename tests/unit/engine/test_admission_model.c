/* Thousands of random histories of starts, delayed starts, ends, cancellations, retries, reruns,
 * changes of limits, rollbacks and restarts against a simple model: never above a limit, never a
 * slot lost, and the queue in the order promised.
 *
 *   PAWL_SEED=17 engine_test_admission_model          one history, telling each call
 *   PAWL_HISTORIES=50000 engine_test_admission_model  more of them, from PAWL_SEED on if it is set
 */
#include "engine/admission_checks.h"

/* Each kind of build runs histories of its own, as many as it has time for. */
#if defined(__SANITIZE_ADDRESS__)
enum { FIRST_SEED = 10001, HISTORIES = 100, HURRIED = 10 };
#elif defined(__SANITIZE_THREAD__)
enum { FIRST_SEED = 20076, HISTORIES = 25, HURRIED = 10 }; /* 20100 has long lines */
#else
enum { FIRST_SEED = 1, HISTORIES = 500, HURRIED = 50 };
#endif

enum {
    OPERATIONS = 40,
    MANY_WAITING_EVERY = 100, /* of so many histories one has long lines */
    CROWD_MAX = 330,
    BATCH_MAX = 6,
};

/* --- dice --- */

static size_t pick(struct history *h, size_t count)
{
    return (size_t)rng_below(&h->rng, count);
}

static bool one_in(struct history *h, size_t n)
{
    return pick(h, n) == 0;
}

static int64_t between(struct history *h, int64_t least, int64_t most)
{
    return least + (int64_t)pick(h, (size_t)(most - least + 1));
}

/* Most of a history is about one tenant and one or two of its workflows: that is where runs meet.
 */
static int pick_tenant(struct history *h)
{
    return one_in(h, 4) ? (int)pick(h, MODEL_TENANTS) : 0;
}

static int pick_workflow(struct history *h)
{
    return one_in(h, 4) ? (int)pick(h, MODEL_WORKFLOWS) : h->favourites[pick(h, 2)];
}

static enum at_limit pick_policy(struct history *h)
{
    static const enum at_limit POLICIES[] = {
        AT_LIMIT_QUEUE,         AT_LIMIT_QUEUE,         AT_LIMIT_QUEUE,  AT_LIMIT_QUEUE,
        AT_LIMIT_CANCEL_OLDEST, AT_LIMIT_CANCEL_OLDEST, AT_LIMIT_REJECT, AT_LIMIT_COALESCE};
    if (h->mood == MOOD_QUEUES && !one_in(h, 8))
        return AT_LIMIT_QUEUE;
    if (h->mood == MOOD_REPLACES)
        return one_in(h, 2) ? AT_LIMIT_QUEUE : AT_LIMIT_CANCEL_OLDEST;
    return POLICIES[pick(h, ARRAY_LEN(POLICIES))];
}

/* A run that the engine has told of and that has this status, or now and then any. False: there is
 * none. */
static bool pick_run(struct history *h, enum model_status status, size_t *ret)
{
    size_t found = 0;
    bool any = one_in(h, 8);
    for (size_t i = 0; i < h->model.run_count; i++) {
        if (!h->known[i].made || !(any || h->model.runs[i].status == status))
            continue;
        if (one_in(h, ++found))
            *ret = i;
    }
    return found > 0;
}

/* Up when it is reached, down when it is not: a limit is felt near what is in use. */
static int64_t pick_max_runs(struct history *h, int tenant)
{
    const struct model_tenant *t = &h->model.tenants[tenant];
    int64_t max = t->settings.max_concurrent_runs;
    if (h->many_waiting && one_in(h, 3))
        return between(h, 10, 200);
    if (one_in(h, 4))
        return one_in(h, 2) ? -1 : between(h, 0, 6);
    if (max < 0 || t->active < max)
        return MAX(t->active - (int64_t)pick(h, 3), (int64_t)0);
    return t->active + between(h, 1, 4);
}

static int64_t pick_max(struct history *h)
{
    return h->many_waiting && one_in(h, 2) ? between(h, 1, 200) : between(h, 1, 3);
}

static struct model_rule pick_rule(struct history *h, int path)
{
    return (struct model_rule){path, pick_max(h), one_in(h, 2) ? AT_LIMIT_COUNT : pick_policy(h)};
}

/* --- calls at random --- */

static struct model_start pick_start(struct history *h)
{
    static const char *const KEYS[] = {"a", "b", ""};
    struct model_start start = {.tenant = pick_tenant(h),
                                .workflow = pick_workflow(h),
                                .priority = between(h, -1, 1),
                                .at_limit = one_in(h, 2) ? AT_LIMIT_COUNT : pick_policy(h)};
    for (int path = MODEL_BY_K; path < MODEL_PATH_COUNT; path++)
        (void)snprintf(start.keys[path], MODEL_KEY_MAX, "%s", KEYS[pick(h, ARRAY_LEN(KEYS))]);
    return start;
}

static void plan_delayed_start(struct history *h)
{
    struct model_start start = pick_start(h);
    make_delayed_start(h, &start);
}

static void plan_start(struct history *h)
{
    if (h->key_count > 0 && one_in(h, 8)) {
        struct used_key *used = &h->keys[pick(h, h->key_count)];
        if (used->kept && one_in(h, 5))
            make_mismatch(h, used);
        else
            (void)make_start(h, &used->start, used);
        return;
    }
    struct model_start start = pick_start(h);
    struct used_key *used = NULL;
    if (h->key_count < KEYS_MAX && one_in(h, 5)) {
        used = &h->keys[h->key_count++];
        used->start = start;
        (void)snprintf(used->text, sizeof(used->text), "key-%zu", h->key_count);
    }
    (void)make_start(h, &start, used);
}

static void plan_settings(struct history *h)
{
    int tenant = pick_tenant(h);
    struct model_settings settings = h->model.tenants[tenant].settings;
    if (!one_in(h, 4))
        settings.max_concurrent_runs = pick_max_runs(h, tenant);
    if (one_in(h, 4))
        settings.max_queued_runs = one_in(h, 2) ? -1 : between(h, 0, 8);
    if (one_in(h, 4))
        settings.at_limit = pick_policy(h);
    if (one_in(h, 4))
        settings.weight = between(h, 1, 3);
    make_settings(h, tenant, settings);
}

/* Other limits, and now and then other rules. */
static void plan_version(struct history *h)
{
    int tenant = pick_tenant(h);
    int workflow = pick_workflow(h);
    struct model_workflow w = h->model.tenants[tenant].workflows[workflow];
    for (size_t i = 0; i < w.rule_count; i++)
        w.rules[i] = pick_rule(h, w.rules[i].path);
    if (one_in(h, 2)) {
        bool used[MODEL_PATH_COUNT] = {false};
        size_t count = pick(h, MODEL_RULES_MAX + 1);
        w.rule_count = 0;
        while (w.rule_count < count) {
            int path = (int)pick(h, MODEL_PATH_COUNT);
            if (!used[path])
                w.rules[w.rule_count++] = pick_rule(h, path);
            used[path] = true;
        }
    }
    make_version(h, tenant, workflow, w);
}

static enum model_status pick_open_status(struct history *h)
{
    static const enum model_status OPEN[] = {MODEL_QUEUED, MODEL_QUEUED, MODEL_ACTIVE,
                                             MODEL_DELAYED};
    return OPEN[pick(h, ARRAY_LEN(OPEN))];
}

static enum model_status pick_over_status(struct history *h)
{
    static const enum model_status OVER[] = {MODEL_SUCCEEDED, MODEL_FAILED, MODEL_CANCELLED};
    return OVER[pick(h, ARRAY_LEN(OVER))];
}

static void plan_step(struct history *h)
{
    size_t planned = h->step_count;
    size_t dice = pick(h, 100);
    size_t run;
    int tenant = pick_tenant(h);
    if (dice < 22 && pick_run(h, MODEL_ACTIVE, &run))
        (void)make_finish(h, run, one_in(h, 4));
    else if (dice >= 22 && dice < 30 && pick_run(h, pick_open_status(h), &run))
        make_cancel(h, run);
    else if (dice >= 30 && dice < 33 && h->has_before[tenant])
        make_rollback(h, tenant);
    else if (dice >= 33 && dice < 43)
        plan_settings(h);
    else if (dice >= 43 && dice < 48)
        plan_version(h);
    else if (dice >= 48 && dice < 54)
        plan_delayed_start(h);
    else if (dice >= 54 && dice < 58 && pick_run(h, MODEL_FAILED, &run))
        make_retry(h, run);
    else if (dice >= 58 && dice < 62 && pick_run(h, pick_over_status(h), &run))
        make_rerun(h, run);
    if (h->step_count == planned)
        plan_start(h);
}

/* --- operations --- */

/* A batch with this in it is rolled back, and its calls are made one by one. */
static enum err break_batch(struct op *op, struct tx *tx)
{
    (void)tx;
    return problem_set(&op->problem, ERR_INTERNAL, "broken on purpose");
}

static const struct use_case UC_BREAK = {.name = "test_break", .write = break_batch};

static void do_calls(struct history *h)
{
    bool breaks = !h->many_waiting && one_in(h, 20);
    size_t most = h->many_waiting || !(breaks || one_in(h, 6)) ? 1 : 2 + pick(h, BATCH_MAX - 1);
    now_doing(h, "%s", breaks ? "a batch that breaks" : "calls");
    if (breaks)
        model_expect_look(&h->model, 0, MODEL_TENANTS - 1);
    bool ended = false;
    while (h->step_count < most && !ended) {
        plan_step(h);
        ended = h->steps[h->step_count - 1].ends_batch;
    }
    if (breaks) {
        struct step *s = step_new(h, &UC_BREAK, 0);
        describe(s, "break");
        s->err = ERR_INTERNAL;
    }
    perform_steps(h);
}

/* Delayed runs come due one after the other, those with the earlier time first. */
static void begin_delayed(struct history *h)
{
    for (;;) {
        size_t next = h->model.run_count;
        for (size_t i = 0; i < h->model.run_count; i++) {
            if (h->model.runs[i].status == MODEL_DELAYED &&
                (next == h->model.run_count ||
                 h->model.runs[i].start_at < h->model.runs[next].start_at))
                next = i;
        }
        if (next == h->model.run_count)
            return;
        model_due(&h->model, next);
    }
}

/* After that the sleepers end one after the other, those that began first before the others. */
static void wake_sleepers(struct history *h)
{
    size_t sleepers[MODEL_RUNS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < h->model.run_count; i++) {
        if (h->model.runs[i].workflow != NAP || h->model.runs[i].status != MODEL_ACTIVE)
            continue;
        size_t at = count++;
        while (at > 0 && h->known[sleepers[at - 1]].started_at > h->known[i].started_at) {
            sleepers[at] = sleepers[at - 1];
            at--;
        }
        sleepers[at] = i;
    }
    begin_delayed(h); /* a sleeper among them has not slept yet */
    for (size_t i = 0; i < count; i++)
        (void)model_end(&h->model, sleepers[i], MODEL_SUCCEEDED);
}

/* A second: the indexes are filled. Longer: delayed runs are due, and then whoever sleeps wakes up.
 */
static void do_time(struct history *h)
{
    bool sleepers_wake = one_in(h, 2);
    int64_t ms = sleepers_wake ? SLEEP_MS : 1000;
    now_doing(h, "%lld ms pass", (long long)ms);
    fixture_pass_ms(h->fixture, ms);
    if (sleepers_wake)
        wake_sleepers(h);
    settle(h->fixture);
}

/* Often with something begun just before that the writer has no time for. */
static void do_restart(struct history *h)
{
    now_doing(h, "a restart");
    if (one_in(h, 2))
        plan_settings(h);
    else if (one_in(h, 2))
        plan_version(h);
    perform_steps(h);
    restart(h);
}

static void do_operation(struct history *h)
{
    size_t dice = pick(h, 100);
    if (dice < 6)
        do_time(h);
    else if (dice < 7)
        do_restart(h);
    else
        do_calls(h);
    if (h->tells && strcmp(h->doing, "calls") != 0)
        print_message("%3d  %s\n", h->operation, h->doing);
    check_all(h);
}

/* --- histories --- */

static struct model_workflow first_rules(struct history *h, int workflow)
{
    static const struct {
        size_t count;
        int paths[MODEL_RULES_MAX];
    } SHAPES[] = {
        [PLAIN] = {0, {0}},
        [KEYED] = {1, {MODEL_BY_K}},
        [BOTH] = {2, {MODEL_BY_K, MODEL_WHOLE}},
        [PAIR] = {2, {MODEL_BY_G, MODEL_BY_K}},
        [NAP] = {1, {MODEL_WHOLE}},
    };
    struct model_workflow w = {.rule_count = SHAPES[workflow].count};
    for (size_t i = 0; i < w.rule_count; i++)
        w.rules[i] = pick_rule(h, SHAPES[workflow].paths[i]);
    return w;
}

static void prepare(struct history *h)
{
    static const enum mood MOODS[] = {MOOD_QUEUES, MOOD_QUEUES, MOOD_REPLACES, MOOD_MIXED};
    h->mood = MOODS[pick(h, ARRAY_LEN(MOODS))];
    h->favourites[0] = one_in(h, 2) ? BOTH : PAIR; /* several limits at once */
    h->favourites[1] = (int)pick(h, MODEL_WORKFLOWS);
    for (int tenant = 0; tenant < MODEL_TENANTS; tenant++) {
        struct model_settings settings = {pick_max_runs(h, tenant), -1, pick_policy(h), 1};
        make_settings(h, tenant, settings);
        h->has_before[tenant] = false; /* these are its first */
        for (int workflow = 0; workflow < MODEL_WORKFLOWS; workflow++)
            make_version(h, tenant, workflow, first_rules(h, workflow));
    }
    perform_and_check(h);
}

/* Several hundred runs wait, in one line, in many lines for one limit, or for a limit each: more
 * than the writer starts or looks at in one go. */
static void queue_many_runs(struct history *h)
{
    enum { ONE_LINE, ONE_LIMIT, MANY_LIMITS, KINDS };
    static const char *const NAMES[] = {"in one line", "for one limit", "for many limits"};
    size_t kind = pick(h, KINDS);
    now_doing(h, "many runs queue %s", NAMES[kind]);
    int workflow = kind == ONE_LIMIT ? BOTH : KEYED;
    struct model_workflow w = first_rules(h, workflow);
    for (size_t i = 0; i < w.rule_count; i++)
        w.rules[i].limit = kind == MANY_LIMITS ? 1 : between(h, 1, 3);
    int64_t max = kind == MANY_LIMITS ? -1 : between(h, 1, 20);
    make_settings(h, 0, (struct model_settings){max, -1, AT_LIMIT_QUEUE, 1});
    make_version(h, 0, workflow, w);
    perform_and_check(h);
    size_t count = CROWD_MAX - pick(h, 100);
    for (size_t i = 0; i < (kind == MANY_LIMITS ? 2 * count : count); i++) {
        struct model_start start = {
            .workflow = workflow, .priority = between(h, -1, 1), .at_limit = AT_LIMIT_QUEUE};
        (void)snprintf(start.keys[MODEL_BY_K], MODEL_KEY_MAX, "k%d",
                       kind == ONE_LINE ? 0 : (int)(i % count));
        (void)make_start(h, &start, NULL);
        if (h->step_count == ROUND_MAX)
            perform_steps(h);
    }
    perform_and_check(h);
}

static void live_through(uint64_t seed, bool tells)
{
    struct history *h = begin_history(seed);
    h->tells = tells;
    h->many_waiting = seed % MANY_WAITING_EVERY == 0;
    prepare(h);
    if (h->many_waiting)
        queue_many_runs(h);
    for (h->operation = 1; h->operation <= OPERATIONS; h->operation++)
        do_operation(h);
    now_doing(h, "in the end");
    check_lists(h);
    (void)end_history(NULL);
}

static uint64_t number_from(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* `live` through as many histories as are asked for. */
static void live_through_all(uint64_t usual, void (*live)(uint64_t seed, bool tells))
{
    uint64_t first = number_from("PAWL_SEED");
    uint64_t count = number_from("PAWL_HISTORIES");
    bool tells = first > 0 && count == 0;
    if (count == 0)
        count = tells ? 1 : usual;
    if (first == 0)
        first = FIRST_SEED;
    for (uint64_t seed = first; seed < first + count; seed++)
        live(seed, tells);
}

static void random_histories_go_as_the_model_says(void **state)
{
    (void)state;
    live_through_all(HISTORIES, live_through);
}

/* --- in a hurry: calls that do not wait until the writer has started what could start --- */

enum { BURSTS = 5, ROUNDS_PER_BURST = 8, HURRIED_KEYS = 8 };

static struct model_start hurried_start(struct history *h)
{
    struct model_start start = {
        .workflow = BOTH, .priority = between(h, -1, 1), .at_limit = AT_LIMIT_QUEUE};
    (void)snprintf(start.keys[MODEL_BY_K], MODEL_KEY_MAX, "k%d", (int)pick(h, HURRIED_KEYS));
    return start;
}

/* The highest limits that were in force during a burst, by tenant and by path of the rules. */
struct highest {
    int64_t of_tenant;
    int64_t of_path[MODEL_PATH_COUNT];
};

static void note_limits(const struct history *h, struct highest *highest)
{
    const struct model_tenant *t = &h->model.tenants[0];
    const struct model_workflow *w = &t->workflows[BOTH];
    int64_t limits[MODEL_PATH_COUNT] = {INT64_MAX, INT64_MAX, INT64_MAX};
    for (size_t i = 0; i < w->rule_count; i++)
        limits[w->rules[i].path] = w->rules[i].limit;
    for (int path = 0; path < MODEL_PATH_COUNT; path++)
        highest->of_path[path] = MAX(highest->of_path[path], limits[path]);
    highest->of_tenant = MAX(highest->of_tenant, t->settings.max_concurrent_runs);
}

/* More runs are active than before only as far as a limit let them. */
static void check_highest(struct history *h, const struct highest *highest,
                          const struct model *before)
{
    if (h->model.tenants[0].active > MAX(highest->of_tenant, before->tenants[0].active))
        differs(h, "%lld runs are active, and no limit was above %lld",
                (long long)h->model.tenants[0].active, (long long)highest->of_tenant);
    for (size_t i = 0; i < h->model.scope_count; i++) {
        const struct model_scope *scope = &h->model.scopes[i];
        int64_t was = i < before->scope_count ? before->scopes[i].active : 0;
        if (scope->tenant == 0 && scope->workflow == BOTH &&
            scope->active > MAX(highest->of_path[scope->path], was))
            differs(h, "%lld runs are active under '%s', and no limit was above %lld",
                    (long long)scope->active, scope->key, (long long)highest->of_path[scope->path]);
    }
}

/* Any status would do for the answer: who is over was cancelled. */
static void plan_hurried_step(struct history *h)
{
    size_t dice = pick(h, 10);
    size_t run;
    if (dice < 2) {
        make_settings(h, 0, (struct model_settings){between(h, 0, 150), -1, AT_LIMIT_QUEUE, 1});
    } else if (dice < 4) {
        struct model_workflow w = {.rules = {{MODEL_BY_K, between(h, 1, 30), AT_LIMIT_COUNT},
                                             {MODEL_WHOLE, between(h, 1, 150), AT_LIMIT_COUNT}},
                                   .rule_count = 1 + pick(h, 2)};
        make_version(h, 0, BOTH, w);
    } else if (dice < 7 && pick_run(h, MODEL_ACTIVE, &run)) {
        make_cancel(h, run);
    } else {
        struct model_start start = hurried_start(h);
        make_unsure_start(h, &start);
    }
}

/* The order in which calls and the writer's slices came is not known, so the runs are taken as they
 * are; but then the counters are what the runs say, and nobody waits who could begin. */
static void adopt_and_check(struct history *h)
{
    wait_for_dispatch(h);
    size_t count = 0;
    while (sqlite3_step(h->runs) == SQLITE_ROW && count < h->model.run_count)
        h->model.runs[count++].status = status_of(text_at(h->runs, 1));
    (void)sqlite3_reset(h->runs);
    model_recount(&h->model);
    for (int tenant = 0; tenant < MODEL_TENANTS; tenant++) {
        h->model.tenants[tenant].begun_count = h->order_checked[tenant] = 0;
        h->model.unlooked[tenant] = false;
        if (model_dispatch(&h->model, tenant) > 0)
            differs(h, "of %s somebody waits who could begin", TENANTS[tenant]);
    }
    check_all(h);
    check_lists(h);
}

static void do_burst(struct history *h)
{
    static struct model before;
    before = h->model;
    struct highest highest = {0};
    now_doing(h, "calls in a hurry");
    note_limits(h, &highest);
    for (int round = 0; round < ROUNDS_PER_BURST; round++) {
        for (size_t i = 1 + pick(h, BATCH_MAX); i > 0; i--) {
            plan_hurried_step(h);
            note_limits(h, &highest);
        }
        perform_steps(h);
    }
    adopt_and_check(h);
    check_highest(h, &highest, &before);
}

static void hurry_through(uint64_t seed, bool tells)
{
    struct history *h = begin_history(seed);
    h->tells = tells;
    prepare(h);
    make_settings(h, 0, (struct model_settings){0, -1, AT_LIMIT_QUEUE, 1});
    for (size_t i = 0; i < 5 * ROUND_MAX; i++) {
        struct model_start start = hurried_start(h);
        if (h->step_count == ROUND_MAX)
            perform_steps(h);
        (void)make_start(h, &start, NULL);
    }
    perform_and_check(h);
    for (h->operation = 1; h->operation <= BURSTS; h->operation++)
        do_burst(h);
    (void)end_history(NULL);
}

static void calls_in_a_hurry_lose_no_slot_and_pass_no_limit(void **state)
{
    (void)state;
    live_through_all(HURRIED, hurry_through);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_histories_go_as_the_model_says, end_history),
        cmocka_unit_test_teardown(calls_in_a_hurry_lose_no_slot_and_pass_no_limit, end_history),
    };
    return cmocka_run_group_tests(tests, make_template, free_template);
}
