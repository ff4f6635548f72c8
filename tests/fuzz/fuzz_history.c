/* Any history of a run: one of a few definitions, and bytes that say what happens next. Whatever it
 * is, the run keeps the promises of play.h and comes to its end.
 * The input: the definition's number, then bytes that are taken as events and chances in turn. */
#include "domain/play.h"
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
    json_t *source = fuzz_parse(str_of(text));
    enum err e = definition_parse(source, STR("fuzz"), &p, &def);
    assert(e == ERR_OK);
    json_decref(source);
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

static uint64_t choose(void *ctx, enum play_choice what, size_t step, uint64_t bound)
{
    (void)what;
    (void)step;
    struct bytes *b = ctx;
    return b->left > 0 ? take(b) % bound : bound - 1;
}

/* The how-manieth open job; 0: there is none. */
static int64_t pick_open(const struct play *play, uint64_t which)
{
    int64_t open = play_all_open(play);
    int64_t skip = open > 0 ? (int64_t)which % open : 0;
    for (int64_t i = 1; i <= play->p.jobs && open > 0; i++) {
        if (play->jobs[i].step > 0 && play->jobs[i].outcome == PLAY_NONE && skip-- == 0)
            return i;
    }
    return 0;
}

static void one_event(struct play *play, struct bytes *b)
{
    uint8_t what = take(b);
    int64_t job = pick_open(play, what / 8);
    if (play->status == RUN_PAUSED && (what % 8 == 7 || job == 0)) {
        play_move(play, RUN_ON_RESUME);
        play_go(play);
    } else if (what % 8 == 0 && play->status != RUN_PAUSED) {
        play_move(play, RUN_ON_PAUSE);
        play_go(play);
    } else if (what == 1) {
        play_time_out(play);
    } else if (what == 2) {
        play_cancel(play);
    } else if (play->go_on && (what % 8 == 3 || job == 0)) {
        play_go(play);
    } else {
        PLAY_HOLDS(play, job > 0); /* otherwise it would hang for ever */
        if (play->broken)
            return;
        bool denies = what % 8 == 6 && play->jobs[job].asked;
        play_job_over(play, job,
                      denies          ? STEP_IS_DENIED
                      : what % 8 == 4 ? STEP_IS_FAILED
                      : what % 8 == 5 ? STEP_IS_TIMED_OUT
                                      : STEP_IS_SUCCEEDED);
        play_go(play);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct definition *defs[ARRAY_LEN(SOURCES)];
    static struct play play;
    if (size == 0)
        return 0;
    size_t which = data[0] % ARRAY_LEN(SOURCES);
    if (defs[which] == NULL)
        defs[which] = parse(SOURCES[which]);
    struct bytes b = {data + 1, MIN(size - 1, (size_t)EVENTS_MAX)};
    play_init(&play, defs[which], choose, &b);
    play_go(&play);
    int retries = RETRIES_MAX;
    for (int i = 0; !play.broken; i++) {
        bool over = run_has_ended(play.status);
        bool tries = (play.status == RUN_FAILED || play.status == RUN_TIMED_OUT) && b.left > 0;
        if (over && (!tries || retries-- == 0))
            break;
        PLAY_HOLDS(&play, i < CALM_MAX);
        if (over)
            play_retry(&play);
        else
            one_event(&play, &b);
    }
    if (play.broken)
        fprintf(stderr, "play.h:%d: %s\n", play.broken_line, play.broken);
    assert(!play.broken);
    play_release(&play);
    return 0;
}
