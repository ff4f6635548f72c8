/* Advancing a run: thousands of random definitions, each through a random history, with every
 * promise of simulated_run.h checked at every turn. */
#include "domain/parsed_definition.h"
#include "domain/simulated_run.h"

enum { HISTORIES = 6000, EVENTS_MAX = 80, RETRIES_MAX = 3 };

/* --- what to say when advancing itself gives up --- */

static char last_words[64];

static void say_seed(int signal_number)
{
    (void)signal_number;
    ssize_t written = write(STDERR_FILENO, last_words, strlen(last_words));
    (void)written;
}

/* --- definitions --- */

static json_t *random_step(struct rng *r, size_t count, size_t i)
{
    static const char *const WAITS[] = {"{'type':'sleep','duration_ms':1}",
                                        "{'type':'wait_signal','signal':'s'}"};
    bool waits = rng_below(r, 4) == 0;
    json_t *step = json_of(waits ? WAITS[rng_below(r, 2)] : "{'type':'task','handler':'h'}");
    (void)json_object_set_new(step, "name", json_sprintf("s%zu", i));
    if (!waits && rng_below(r, 3) == 0)
        (void)json_object_set_new(step, "compensate", json_of("{'handler':'u'}"));
    if (rng_below(r, 4) == 0) {
        (void)json_object_set_new(step, "for_each", json_string("input"));
        (void)json_object_set_new(step, "max_parallel", json_integer(1 + (int)rng_below(r, 9)));
    }
    uint64_t on_error = rng_below(r, 6);
    size_t other = rng_below(r, count);
    if (on_error == 0)
        (void)json_object_set_new(step, "on_error", json_string("continue"));
    else if (on_error <= 2 && other != i)
        (void)json_object_set_new(step, "on_error", json_sprintf("s%zu", other));
    return step;
}

static json_t *random_source(struct rng *r)
{
    size_t count = 1 + rng_below(r, SIMULATED_STEPS_MAX);
    json_t *steps = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(steps, random_step(r, count, i));
    /* An edge goes from a later to an earlier place of a shuffled order: no cycle, any numbering.
     */
    size_t order[SIMULATED_STEPS_MAX];
    for (size_t i = 0; i < count; i++) {
        size_t at = rng_below(r, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    uint64_t density = 1 + rng_below(r, 8);
    for (size_t later = 0; later < count && rng_below(r, 4) > 0; later++) {
        json_t *needs = json_array();
        for (size_t earlier = 0; earlier < later; earlier++) {
            if (rng_below(r, 16) < density)
                (void)json_array_append_new(needs, json_sprintf("s%zu", order[earlier]));
        }
        (void)json_object_set_new(json_array_get(steps, order[later]), "needs", needs);
    }
    return json_pack("{s:o}", "steps", steps);
}

/* Valid ones only: a step that waits for itself, by needs or as a handler of errors, is refused. */
static struct definition *random_definition(struct rng *r)
{
    for (;;) {
        struct parsed_definition t;
        try_json(&t, random_source(r));
        struct definition *def = t.def;
        t.def = NULL;
        end(&t);
        if (def != NULL)
            return def;
    }
}

/* --- histories --- */

static uint64_t choose(void *ctx, enum simulated_choice what, size_t step, uint64_t bound)
{
    (void)what;
    (void)step;
    return rng_below(ctx, bound);
}

/* An open job by chance; 0: there is none. */
static int64_t pick_open(const struct simulated_run *simulated_run, struct rng *r)
{
    int64_t picked = 0;
    uint64_t seen = 0;
    for (int64_t i = 1; i <= simulated_run->p.jobs; i++) {
        if (simulated_run->jobs[i].step > 0 && simulated_run->jobs[i].outcome == SIMULATED_NONE &&
            rng_below(r, ++seen) == 0)
            picked = i;
    }
    return picked;
}

struct tally {
    int ended[RUN_STATUS_COUNT];
    int retried;
    int undone;
    int cut;
    int stopped_items;
};

static void one_event(struct simulated_run *simulated_run, struct rng *r, bool calm)
{
    int64_t job = pick_open(simulated_run, r);
    uint64_t dice = rng_below(r, 100);
    if (simulated_run->status == RUN_PAUSED && (calm || dice < 30)) {
        simulated_move(simulated_run, RUN_ON_RESUME);
        simulated_go(simulated_run);
    } else if (!calm && dice < 3 && simulated_run->status != RUN_PAUSED) {
        simulated_move(simulated_run, RUN_ON_PAUSE);
        simulated_go(simulated_run);
    } else if (!calm && dice < 5) {
        simulated_time_out(simulated_run);
    } else if (!calm && dice < 6) {
        simulated_cancel(simulated_run);
    } else if (job > 0 && (!simulated_run->go_on || dice < 60)) {
        bool asked = simulated_run->jobs[job].asked;
        enum step_status as = asked && dice % 3 == 0 ? STEP_IS_DENIED
                              : calm || dice < 80    ? STEP_IS_SUCCEEDED
                              : dice < 95            ? STEP_IS_FAILED
                                                     : STEP_IS_TIMED_OUT;
        if (asked && dice % 3 == 1)
            simulated_answer(simulated_run, job);
        else
            simulated_job_over(simulated_run, job, as);
        simulated_go(simulated_run);
    } else if (simulated_run->go_on) {
        simulated_go(simulated_run);
    } else {
        SIMULATED_HOLDS(simulated_run,
                        simulated_run->status == RUN_PAUSED); /* otherwise it would hang for ever */
    }
}

static void note(struct tally *t, const struct simulated_run *simulated_run)
{
    t->ended[simulated_run->status]++;
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        t->undone += simulated_run->steps[i].undone;
        t->cut += simulated_run->steps[i].outcome == SIMULATED_CUT;
        t->stopped_items +=
            simulated_run->steps[i].outcome == SIMULATED_BAD && simulated_run->p.steps[i].items > 1;
    }
}

/* False when a promise was broken. */
static bool simulated_history(uint64_t seed, struct tally *tally, bool tells)
{
    struct rng r = {seed};
    struct definition *def = random_definition(&r);
    static struct simulated_run simulated_run;
    simulated_init(&simulated_run, def, choose, &r);
    int retries = (int)rng_below(&r, RETRIES_MAX + 1);
    simulated_go(&simulated_run);
    for (int i = 0; !simulated_run.broken; i++) {
        if (tells)
            print_message("%d: %s: %s\n", i, run_status_name(simulated_run.status),
                          simulated_run.log);
        if (run_has_ended(simulated_run.status)) {
            note(tally, &simulated_run);
            bool may = simulated_run.status == RUN_FAILED || simulated_run.status == RUN_TIMED_OUT;
            if (!may || retries-- == 0)
                break;
            tally->retried++;
            simulated_run.log[0] = '\0';
            simulated_retry(&simulated_run);
        } else {
            one_event(&simulated_run, &r, i >= EVENTS_MAX);
        }
        SIMULATED_HOLDS(&simulated_run, i < 40 * EVENTS_MAX);
    }
    if (simulated_run.broken && tells) {
        struct buf text;
        buf_init(&text, MIB);
        json_write_plain(&text, def->json);
        print_error("%s\n%s\nplay.h:%d: %s\n", text.ptr, simulated_run.log,
                    simulated_run.broken_line, simulated_run.broken);
        buf_release(&text);
    }
    bool ok = !simulated_run.broken;
    simulated_release(&simulated_run);
    definition_free(def);
    return ok;
}

static void random_runs_keep_their_promises(void **state)
{
    (void)state;
    struct tally tally = {{0}, 0, 0, 0, 0};
    uint64_t first = 1;
    uint64_t last = HISTORIES;
    const char *only = getenv("PAWL_SEED");
    if (only != NULL)
        first = last = strtoull(only, NULL, 10);
    for (uint64_t seed = first; seed <= last; seed++) {
        (void)snprintf(last_words, sizeof(last_words), "PAWL_SEED=%llu\n",
                       (unsigned long long)seed);
        if (!simulated_history(seed, &tally, only != NULL)) {
            (void)simulated_history(seed, &tally, true);
            fail_msg("PAWL_SEED=%llu shows it again", (unsigned long long)seed);
        }
    }
    if (only != NULL)
        return;
    /* Every kind of end and turn was seen often. */
    assert_true(tally.ended[RUN_SUCCEEDED] > HISTORIES / 10);
    assert_true(tally.ended[RUN_FAILED] > HISTORIES / 10);
    assert_true(tally.ended[RUN_DENIED] > HISTORIES / 50);
    assert_true(tally.ended[RUN_TIMED_OUT] > HISTORIES / 50);
    assert_true(tally.ended[RUN_CANCELLED] > HISTORIES / 50);
    assert_true(tally.retried > HISTORIES / 10);
    assert_true(tally.undone > HISTORIES / 10);
    assert_true(tally.cut > HISTORIES / 10);
    assert_true(tally.stopped_items > HISTORIES / 20);
}

int main(void)
{
    (void)signal(SIGABRT, say_seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_runs_keep_their_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
