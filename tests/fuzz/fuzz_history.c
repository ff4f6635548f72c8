/* Any history of a run: one of a few definitions, and bytes that say what happens next. Whatever it
 * is, the run keeps the promises of simulated_run.h and comes to its end.
 * The input: the definition's number, then bytes that are taken as events and chances in turn. */
#include "domain/simulated_run.h"
#include "fuzz.h"

#define STEP(name, more) "{\"name\":\"" name "\",\"type\":\"task\",\"handler\":\"h\"" more "}"
#define UNDO ",\"compensate\":{\"handler\":\"u\"}"
#define MAP ",\"for_each\":\"input\",\"max_parallel\":3"
#define NEEDS(list) ",\"needs\":[" list "]"
#define ON_ERROR(what) ",\"on_error\":\"" what "\""
#define SLEEP(name, more) "{\"name\":\"" name "\",\"type\":\"sleep\",\"duration_ms\":1" more "}"
#define WAIT(name, more) "{\"name\":\"" name "\",\"type\":\"wait_signal\",\"signal\":\"s\"" more "}"

static const char *const SOURCES[] = {
    STEP("a", UNDO) "," STEP("b", MAP UNDO) "," SLEEP("c", "") "," STEP("d", ""),
    STEP("a", UNDO NEEDS("")) "," STEP("b", UNDO) "," STEP("c", NEEDS("\"a\",\"b\"")
                                                                    MAP) "," WAIT("d", ""),
    STEP("a", ON_ERROR("m")) "," STEP("b", MAP ON_ERROR("m")) "," STEP("m", UNDO) "," STEP("c", ""),
    STEP("a", ON_ERROR("m") NEEDS("")) "," STEP("b", ON_ERROR("m")) "," STEP(
        "m", NEEDS("\"c\"") ON_ERROR(
                 "z")) "," STEP("c", MAP) "," STEP("z", UNDO) "," STEP("y", NEEDS("\"m\"")),
    STEP("a", MAP ON_ERROR("continue")) "," STEP("b", ON_ERROR("continue")) "," WAIT(
        "c", MAP) "," STEP("d", UNDO),
    STEP("a", NEEDS("")) "," STEP("b", NEEDS("\"a\"") UNDO) "," STEP("c", NEEDS("\"a\"") MAP UNDO) "," SLEEP(
        "d",
        NEEDS(
            "\"b\",\"c\"")) "," STEP("e",
                                     NEEDS(
                                         "\"d\"")) "," STEP("f",
                                                            NEEDS(
                                                                "\"b\"")) "," WAIT("g",
                                                                                   NEEDS(
                                                                                       "\"f\"")) "," STEP("h",
                                                                                                          NEEDS(
                                                                                                              "\"e\",\"g\"")),
};

enum { EVENTS_MAX = 120, CALM_MAX = 2000, RETRIES_MAX = 3 };

static struct definition *parse(const char *steps)
{
    char text[4096];
    int len = snprintf(text, sizeof(text), "{\"steps\":[%s]}", steps);
    assert(len > 0 && (size_t)len < sizeof(text));
    struct problem p;
    problem_init(&p);
    struct definition *def = NULL;
    struct json *source = fuzz_read(str_of(text));
    enum err e = definition_parse(source, STR("fuzz"), &p, &def);
    assert(e == ERR_OK);
    json_free(source);
    problem_release(&p);
    return def;
}

struct bytes {
    const uint8_t *at;
    size_t left;
};

/* When they are used up everything is as calm as can be. */
static uint8_t take(struct bytes *b)
{
    if (b->left == 0)
        return 255;
    b->left--;
    return *b->at++;
}

static uint64_t choose(void *ctx, enum simulated_choice what, size_t step, uint64_t bound)
{
    (void)what;
    (void)step;
    struct bytes *b = ctx;
    return b->left > 0 ? take(b) % bound : bound - 1;
}

/* The how-manieth open job; 0: there is none. */
static int64_t pick_open(const struct simulated_run *simulated_run, uint64_t which)
{
    int64_t open = simulated_all_open(simulated_run);
    int64_t skip = open > 0 ? (int64_t)which % open : 0;
    for (int64_t i = 1; i <= simulated_run->p.jobs && open > 0; i++) {
        if (simulated_run->jobs[i].step > 0 && simulated_run->jobs[i].outcome == SIMULATED_NONE &&
            skip-- == 0)
            return i;
    }
    return 0;
}

static void one_event(struct simulated_run *simulated_run, struct bytes *b)
{
    uint8_t what = take(b);
    int64_t job = pick_open(simulated_run, what / 8);
    if (simulated_run->status == RUN_PAUSED && (what % 8 == 7 || job == 0)) {
        simulated_move(simulated_run, RUN_ON_RESUME);
        simulated_go(simulated_run);
    } else if (what % 8 == 0 && simulated_run->status != RUN_PAUSED) {
        simulated_move(simulated_run, RUN_ON_PAUSE);
        simulated_go(simulated_run);
    } else if (what == 1) {
        simulated_time_out(simulated_run);
    } else if (what == 2) {
        simulated_cancel(simulated_run);
    } else if (simulated_run->go_on && (what % 8 == 3 || job == 0)) {
        simulated_go(simulated_run);
    } else {
        SIMULATED_HOLDS(simulated_run, job > 0); /* otherwise it would hang for ever */
        if (simulated_run->broken)
            return;
        bool denies = what % 8 == 6 && simulated_run->jobs[job].asked;
        simulated_job_over(simulated_run, job,
                           denies          ? STEP_IS_DENIED
                           : what % 8 == 4 ? STEP_IS_FAILED
                           : what % 8 == 5 ? STEP_IS_TIMED_OUT
                                           : STEP_IS_SUCCEEDED);
        simulated_go(simulated_run);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct definition *defs[ARRAY_LEN(SOURCES)];
    static struct simulated_run simulated_run;
    if (size == 0)
        return 0;
    size_t which = data[0] % ARRAY_LEN(SOURCES);
    if (defs[which] == NULL)
        defs[which] = parse(SOURCES[which]);
    struct bytes b = {data + 1, MIN(size - 1, (size_t)EVENTS_MAX)};
    simulated_init(&simulated_run, defs[which], choose, &b);
    simulated_go(&simulated_run);
    int retries = RETRIES_MAX;
    for (int i = 0; !simulated_run.broken; i++) {
        bool over = run_has_ended(simulated_run.status);
        bool tries =
            (simulated_run.status == RUN_FAILED || simulated_run.status == RUN_TIMED_OUT) &&
            b.left > 0;
        if (over && (!tries || retries-- == 0))
            break;
        SIMULATED_HOLDS(&simulated_run, i < CALM_MAX);
        if (over)
            simulated_retry(&simulated_run);
        else
            one_event(&simulated_run, &b);
    }
    if (simulated_run.broken)
        fprintf(stderr, "simulated_run.h:%d: %s\n", simulated_run.broken_line,
                simulated_run.broken);
    assert(!simulated_run.broken);
    simulated_release(&simulated_run);
    return 0;
}
