/* A run played without an engine: does what advance_next() says, one thing at a time, as the engine
 * would, and keeps a ledger of its own in which it checks at every turn what a run promises. The
 * first promise that is broken is named in `broken`.
 *
 * What is left to chance (whether a condition holds, how many items there are, what ends at once)
 * is asked of `choose`. */
#ifndef PAWL_TESTS_DOMAIN_SIMULATED_RUN_H
#define PAWL_TESTS_DOMAIN_SIMULATED_RUN_H

#include "domain/workflow/advance.h"

#include <stdio.h>
#include <string.h>

enum { SIMULATED_STEPS_MAX = 8, SIMULATED_JOBS_MAX = 2048 };

enum simulated_choice {
    CHOOSE_CONDITION, /* 0: does not hold; 1: cannot be evaluated; else it holds */
    CHOOSE_ITEMS,     /* of a step with for_each */
    CHOOSE_ITEM,      /* 0: succeeds at once; 1: fails at once; 2: waits for a person; else open */
    CHOOSE_UNDO,      /* 0: fails at once */
    CHOOSE_PER_TURN,  /* jobs made before others have their turn, less one */
};

typedef uint64_t simulated_choose_fn(void *ctx, enum simulated_choice what, size_t step,
                                     uint64_t bound);

enum simulated_outcome {
    SIMULATED_NONE,
    SIMULATED_OK,
    SIMULATED_BAD,
    SIMULATED_SKIPPED,
    SIMULATED_CUT,
    SIMULATED_STOPPED
};

struct simulated_job {
    size_t step;
    bool undo;
    bool asked;                     /* it is open, and waits for a person */
    enum simulated_outcome outcome; /* SIMULATED_NONE: open */
};

struct simulated_step {
    bool begun;
    enum simulated_outcome outcome;
    int64_t place; /* in the order of settling */
    bool undone;   /* or tried to */
    int64_t open;  /* jobs */
    int64_t asked; /* of those: that wait for a person */
    int64_t undos_open;
};

struct simulated_run {
    const struct definition *def;
    struct progress p;
    struct arena arena;
    enum run_status status;
    bool go_on;    /* a timer is armed: there is more to do than one turn may take */
    bool stopping; /* an error or the run's own time */
    size_t cause;  /* the step whose error it was, counted from 1; 0: none */
    int64_t places;
    struct simulated_step steps[SIMULATED_STEPS_MAX];
    struct simulated_job jobs[SIMULATED_JOBS_MAX]; /* by ordinal */
    simulated_choose_fn *choose;
    void *ctx;
    char log[2048]; /* of the last turn */
    const char *broken;
    int broken_line;
};

#define SIMULATED_HOLDS(simulated_run, promise)       \
    do {                                              \
        if (!(promise) && !(simulated_run)->broken) { \
            (simulated_run)->broken = #promise;       \
            (simulated_run)->broken_line = __LINE__;  \
        }                                             \
    } while (0)

static inline void simulated_init(struct simulated_run *simulated_run, const struct definition *def,
                                  simulated_choose_fn *choose, void *ctx)
{
    memset(simulated_run, 0, sizeof(*simulated_run));
    simulated_run->def = def;
    simulated_run->status = RUN_PENDING;
    simulated_run->choose = choose;
    simulated_run->ctx = ctx;
    arena_init(&simulated_run->arena, 1024 * 1024);
    assert(def->step_count <= SIMULATED_STEPS_MAX);
    bool ok = progress_init(&simulated_run->p, def->step_count, &simulated_run->arena);
    assert(ok);
}

static inline void simulated_release(struct simulated_run *simulated_run)
{
    arena_release(&simulated_run->arena);
}

static inline uint64_t simulated_chance(struct simulated_run *simulated_run,
                                        enum simulated_choice what, size_t step, uint64_t bound)
{
    return simulated_run->choose(simulated_run->ctx, what, step, bound);
}

/* "+a " for a step that begins, and so on: what a turn did, in order. */
static inline void simulated_log(struct simulated_run *simulated_run, const char *sign, size_t step)
{
    size_t used = strlen(simulated_run->log);
    struct str name = simulated_run->def->steps[step].name;
    (void)snprintf(simulated_run->log + used, sizeof(simulated_run->log) - used, "%s%.*s ", sign,
                   STR_ARG(name));
}

static inline void simulated_log_word(struct simulated_run *simulated_run, const char *word)
{
    size_t used = strlen(simulated_run->log);
    (void)snprintf(simulated_run->log + used, sizeof(simulated_run->log) - used, "%s ", word);
}

/* --- the ledger --- */

static inline bool simulated_is_map(const struct simulated_run *simulated_run, size_t step)
{
    return simulated_run->def->steps[step].for_each != NULL;
}

/* Its error went to another step, which it names. */
static inline bool simulated_went_elsewhere(const struct simulated_run *simulated_run, size_t step)
{
    return simulated_run->steps[step].outcome == SIMULATED_BAD &&
           simulated_run->def->steps[step].on_error == ON_ERROR_STEP;
}

static inline int64_t simulated_open_jobs(const struct simulated_run *simulated_run, size_t step,
                                          bool undo)
{
    return undo ? simulated_run->steps[step].undos_open : simulated_run->steps[step].open;
}

static inline void simulated_end_job(struct simulated_run *simulated_run, struct simulated_job *job,
                                     enum simulated_outcome as)
{
    assert(job->step > 0 && job->outcome == SIMULATED_NONE && as != SIMULATED_NONE);
    job->outcome = as;
    struct simulated_step *s = &simulated_run->steps[job->step - 1];
    s->asked -= job->asked;
    job->asked = false;
    *(job->undo ? &s->undos_open : &s->open) -= 1;
}

static inline int64_t simulated_all_open(const struct simulated_run *simulated_run)
{
    int64_t open = 0;
    for (size_t i = 0; i < simulated_run->def->step_count; i++)
        open += simulated_open_jobs(simulated_run, i, false) +
                simulated_open_jobs(simulated_run, i, true);
    return open;
}

static inline void simulated_settle(struct simulated_run *simulated_run, size_t step,
                                    enum simulated_outcome as)
{
    SIMULATED_HOLDS(simulated_run, simulated_run->steps[step].outcome == SIMULATED_NONE);
    simulated_run->steps[step].outcome = as;
    simulated_run->steps[step].place = ++simulated_run->places;
    if (as != SIMULATED_BAD)
        return;
    const struct step_def *d = &simulated_run->def->steps[step];
    bool handled = d->on_error == ON_ERROR_STEP && !simulated_run->steps[d->error_step].begun &&
                   simulated_run->steps[d->error_step].outcome == SIMULATED_NONE;
    if (simulated_run->stopping || d->on_error == ON_ERROR_CONTINUE || handled)
        return;
    simulated_run->stopping = true;
    simulated_run->cause = step + 1;
}

static inline void simulated_make_job(struct simulated_run *simulated_run, size_t step,
                                      int64_t ordinal, bool undo)
{
    SIMULATED_HOLDS(simulated_run, ordinal >= 1 && ordinal <= simulated_run->p.jobs &&
                                       ordinal < SIMULATED_JOBS_MAX);
    if (simulated_run->broken)
        return;
    SIMULATED_HOLDS(simulated_run,
                    simulated_run->jobs[ordinal].step == 0); /* an ordinal is given out once */
    simulated_run->jobs[ordinal] = (struct simulated_job){.step = step + 1, .undo = undo};
    *(undo ? &simulated_run->steps[step].undos_open : &simulated_run->steps[step].open) += 1;
}

static inline void simulated_ask(struct simulated_run *simulated_run, int64_t ordinal)
{
    struct simulated_job *job = &simulated_run->jobs[ordinal];
    assert(!job->asked && !job->undo && job->outcome == SIMULATED_NONE);
    job->asked = true;
    simulated_run->steps[job->step - 1].asked++;
    advance_asked(&simulated_run->p, job->step - 1);
}

/* The person lets the job go. */
static inline void simulated_answer(struct simulated_run *simulated_run, int64_t ordinal)
{
    struct simulated_job *job = &simulated_run->jobs[ordinal];
    assert(job->asked);
    job->asked = false;
    simulated_run->steps[job->step - 1].asked--;
    advance_answered(&simulated_run->p, job->step - 1);
}

/* A job of the step ended by itself. */
static inline void simulated_job_over(struct simulated_run *simulated_run, int64_t ordinal,
                                      enum step_status as)
{
    struct simulated_job *job = &simulated_run->jobs[ordinal];
    size_t step = job->step - 1;
    if (job->asked)
        simulated_answer(simulated_run, ordinal);
    simulated_end_job(simulated_run, job, as == STEP_IS_SUCCEEDED ? SIMULATED_OK : SIMULATED_BAD);
    if (job->undo) {
        advance_undo_over(&simulated_run->p, step, as == STEP_IS_SUCCEEDED);
        return;
    }
    advance_job_over(simulated_run->def, &simulated_run->p, step, as);
    bool goes_on = simulated_is_map(simulated_run, step) && simulated_run->p.steps[step].is_map &&
                   simulated_run->def->steps[step].on_error == ON_ERROR_CONTINUE;
    if (as != STEP_IS_SUCCEEDED && !goes_on)
        simulated_settle(simulated_run, step, SIMULATED_BAD);
    else if (simulated_run->p.steps[step].begun == simulated_run->p.steps[step].items &&
             simulated_open_jobs(simulated_run, step, false) == 0)
        simulated_settle(simulated_run, step, SIMULATED_OK);
}

/* --- doing what is next --- */

static inline void simulated_check_ready(struct simulated_run *simulated_run, size_t step, bool cut)
{
    const struct step_def *d = &simulated_run->def->steps[step];
    bool behind_error = false;
    for (size_t n = 0; n < d->need_count; n++) {
        size_t need = d->needs[n];
        SIMULATED_HOLDS(simulated_run, simulated_run->steps[need].outcome != SIMULATED_NONE);
        bool mine = simulated_went_elsewhere(simulated_run, need) &&
                    simulated_run->def->steps[need].error_step == step;
        behind_error |= !mine && (simulated_run->steps[need].outcome == SIMULATED_CUT ||
                                  simulated_went_elsewhere(simulated_run, need));
    }
    bool wanted = !d->handles_errors;
    bool all_settled = true;
    for (size_t i = 0; i < simulated_run->def->step_count && d->handles_errors; i++) {
        const struct step_def *other = &simulated_run->def->steps[i];
        if (other->on_error != ON_ERROR_STEP || other->error_step != step)
            continue;
        wanted |= simulated_went_elsewhere(simulated_run, i);
        all_settled &= simulated_run->steps[i].outcome != SIMULATED_NONE;
    }
    SIMULATED_HOLDS(simulated_run, !simulated_run->stopping && !simulated_run->steps[step].begun);
    SIMULATED_HOLDS(simulated_run, all_settled);
    /* An error that leads to a handler counts for more than a need that was cut off. */
    SIMULATED_HOLDS(simulated_run, cut == (d->handles_errors ? !wanted : behind_error));
}

static inline void simulated_begin(struct simulated_run *simulated_run, size_t step)
{
    simulated_check_ready(simulated_run, step, false);
    uint64_t condition = simulated_chance(simulated_run, CHOOSE_CONDITION, step, 12);
    if (condition == 0) {
        simulated_log(simulated_run, "?", step);
        advance_skip(&simulated_run->p, step, false);
        simulated_settle(simulated_run, step, SIMULATED_SKIPPED);
        return;
    }
    simulated_log(simulated_run, "+", step);
    simulated_run->steps[step].begun = true;
    if (condition == 1) { /* as the engine does it: a job that is nothing but its error */
        advance_begin(&simulated_run->p, step, -1);
        advance_items_begun(&simulated_run->p, step, 1);
        simulated_make_job(simulated_run, step, simulated_run->p.steps[step].first, false);
        if (!simulated_run->broken)
            simulated_job_over(simulated_run, simulated_run->p.steps[step].first, STEP_IS_FAILED);
        return;
    }
    int64_t items = -1;
    if (simulated_is_map(simulated_run, step))
        items = (int64_t)simulated_chance(simulated_run, CHOOSE_ITEMS, step, 24);
    int64_t jobs_before = simulated_run->p.jobs;
    advance_begin(&simulated_run->p, step, items);
    SIMULATED_HOLDS(simulated_run, simulated_run->p.jobs == jobs_before + (items < 0 ? 1 : items));
    if (items == 0)
        simulated_settle(simulated_run, step, SIMULATED_OK);
}

static inline void simulated_items(struct simulated_run *simulated_run, size_t step, int64_t count)
{
    const struct step_state *s = &simulated_run->p.steps[step];
    SIMULATED_HOLDS(simulated_run, count >= 1 && s->begun + count <= s->items);
    SIMULATED_HOLDS(simulated_run, simulated_open_jobs(simulated_run, step, false) + count <=
                                       simulated_run->def->steps[step].max_parallel);
    for (int64_t i = 0; i < count && !simulated_run->broken && s->status == STEP_IS_ACTIVE; i++) {
        int64_t ordinal = s->first + s->begun;
        SIMULATED_HOLDS(simulated_run, advance_item(s, ordinal) == s->begun);
        advance_items_begun(&simulated_run->p, step, 1);
        simulated_make_job(simulated_run, step, ordinal, false);
        simulated_log(simulated_run, ".", step);
        uint64_t end = simulated_chance(simulated_run, CHOOSE_ITEM, step, 12);
        if (!simulated_run->broken && end <= 1)
            simulated_job_over(simulated_run, ordinal,
                               end == 0 ? STEP_IS_SUCCEEDED : STEP_IS_FAILED);
        else if (!simulated_run->broken && end == 2)
            simulated_ask(simulated_run, ordinal);
    }
}

/* What is open of the step ends. */
static inline void simulated_stop(struct simulated_run *simulated_run, size_t step)
{
    simulated_log(simulated_run, "!", step);
    int64_t ended = 0;
    for (int64_t i = 1; i <= simulated_run->p.jobs && i < SIMULATED_JOBS_MAX; i++) {
        struct simulated_job *job = &simulated_run->jobs[i];
        if (job->step != step + 1 || job->undo || job->outcome != SIMULATED_NONE)
            continue;
        simulated_end_job(simulated_run, job, SIMULATED_STOPPED);
        ended++;
    }
    bool settles =
        simulated_run->steps[step].begun && simulated_run->steps[step].outcome == SIMULATED_NONE;
    SIMULATED_HOLDS(simulated_run, ended > 0 || settles); /* it is asked for once */
    SIMULATED_HOLDS(simulated_run, !settles || simulated_run->stopping);
    advance_stopped(&simulated_run->p, step);
    if (settles)
        simulated_settle(simulated_run, step, SIMULATED_STOPPED);
}

/* It succeeded, or it is a map that did not, and some of its items had. */
static inline bool simulated_has_effect(const struct simulated_run *simulated_run, size_t step)
{
    const struct step_state *s = &simulated_run->p.steps[step];
    const struct simulated_step *mine = &simulated_run->steps[step];
    bool done = mine->outcome == SIMULATED_OK;
    bool ended = mine->outcome == SIMULATED_BAD || mine->outcome == SIMULATED_STOPPED;
    for (int64_t n = s->first; n > 0 && ended && s->is_map && n < s->first + s->items; n++)
        done |= simulated_run->jobs[n].outcome == SIMULATED_OK;
    return done;
}

static inline void simulated_undo(struct simulated_run *simulated_run, size_t step)
{
    simulated_log(simulated_run, "~", step);
    const struct simulated_step *mine = &simulated_run->steps[step];
    SIMULATED_HOLDS(simulated_run,
                    simulated_run->stopping && simulated_all_open(simulated_run) == 0);
    SIMULATED_HOLDS(simulated_run, simulated_has_effect(simulated_run, step) &&
                                       simulated_run->def->steps[step].has_undo && !mine->undone);
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        const struct simulated_step *other = &simulated_run->steps[i];
        bool waits = simulated_has_effect(simulated_run, i) &&
                     simulated_run->def->steps[i].has_undo && !other->undone;
        SIMULATED_HOLDS(simulated_run, !waits || other->place <= mine->place); /* the last first */
    }
    simulated_run->steps[step].undone = true;
    advance_undo_begun(&simulated_run->p, step);
    int64_t ordinal = simulated_run->p.steps[step].undo_job;
    simulated_make_job(simulated_run, step, ordinal, true);
    if (!simulated_run->broken && simulated_chance(simulated_run, CHOOSE_UNDO, step, 8) == 0)
        simulated_job_over(simulated_run, ordinal, STEP_IS_FAILED);
}

static inline void simulated_check_end(struct simulated_run *simulated_run, enum run_event on)
{
    SIMULATED_HOLDS(simulated_run, simulated_all_open(simulated_run) == 0);
    SIMULATED_HOLDS(simulated_run, (on == RUN_ON_SUCCEED) == !simulated_run->stopping);
    bool denied = simulated_run->cause > 0 &&
                  simulated_run->p.steps[simulated_run->cause - 1].status == STEP_IS_DENIED;
    SIMULATED_HOLDS(simulated_run, (on == RUN_ON_DENY) == denied);
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        const struct simulated_step *s = &simulated_run->steps[i];
        SIMULATED_HOLDS(simulated_run, !s->begun || s->outcome != SIMULATED_NONE);
        SIMULATED_HOLDS(simulated_run, on != RUN_ON_SUCCEED || s->outcome != SIMULATED_NONE);
        if (on == RUN_ON_SUCCEED && simulated_went_elsewhere(simulated_run, i))
            SIMULATED_HOLDS(simulated_run,
                            simulated_run->steps[simulated_run->def->steps[i].error_step].outcome !=
                                SIMULATED_CUT);
        bool must_undo = simulated_run->stopping && simulated_has_effect(simulated_run, i) &&
                         simulated_run->def->steps[i].has_undo;
        SIMULATED_HOLDS(simulated_run, s->undone == must_undo);
    }
}

static inline void simulated_move(struct simulated_run *simulated_run, enum run_event on)
{
    static const char *const WORDS[RUN_EVENT_COUNT] = {
        [RUN_ON_START] = "start",       [RUN_ON_WAIT] = "wait",   [RUN_ON_WAKE] = "wake",
        [RUN_ON_SUCCEED] = "succeed",   [RUN_ON_FAIL] = "fail",   [RUN_ON_CANCEL] = "cancel",
        [RUN_ON_TIME_OUT] = "time_out", [RUN_ON_PAUSE] = "pause", [RUN_ON_RESUME] = "resume",
        [RUN_ON_RETRY] = "retry",       [RUN_ON_ADMIT] = "admit", [RUN_ON_DENY] = "deny",
        [RUN_ON_GIVE_UP] = "give_up",
    };
    simulated_log_word(simulated_run, WORDS[on]);
    if (on == RUN_ON_SUCCEED || on == RUN_ON_FAIL || on == RUN_ON_TIME_OUT || on == RUN_ON_DENY)
        simulated_check_end(simulated_run, on);
    struct run_change change = {simulated_run->status, 0};
    enum err e = run_decide(simulated_run->status, on, &change);
    SIMULATED_HOLDS(simulated_run, e == ERR_OK);
    simulated_run->status = change.to;
}

/* --- what holds whenever nothing is left to do --- */

static inline void simulated_check_counts(struct simulated_run *simulated_run)
{
    int64_t settled = 0;
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        const struct step_state *s = &simulated_run->p.steps[i];
        static const enum simulated_outcome BY_STATUS[STEP_STATUS_COUNT] = {
            [STEP_IS_SUCCEEDED] = SIMULATED_OK,    [STEP_IS_FAILED] = SIMULATED_BAD,
            [STEP_IS_SKIPPED] = SIMULATED_SKIPPED, [STEP_IS_CANCELLED] = SIMULATED_STOPPED,
            [STEP_IS_TIMED_OUT] = SIMULATED_BAD,   [STEP_IS_DENIED] = SIMULATED_BAD,
        };
        enum simulated_outcome outcome = s->cut ? SIMULATED_CUT : BY_STATUS[s->status];
        enum simulated_outcome mine = simulated_run->steps[i].outcome;
        SIMULATED_HOLDS(simulated_run, outcome == mine);
        SIMULATED_HOLDS(simulated_run,
                        (s->status == STEP_IS_ACTIVE) ==
                            (simulated_run->steps[i].begun && mine == SIMULATED_NONE));
        SIMULATED_HOLDS(simulated_run, s->over >= 0 && s->over <= s->begun && s->begun <= s->items);
        SIMULATED_HOLDS(simulated_run, s->failed >= 0 && s->failed <= s->over);
        SIMULATED_HOLDS(simulated_run,
                        s->begun - s->over == simulated_open_jobs(simulated_run, i, false));
        SIMULATED_HOLDS(simulated_run, s->asked == simulated_run->steps[i].asked);
        SIMULATED_HOLDS(simulated_run, s->first >= 0 && (s->first == 0) == (s->items == 0));
        SIMULATED_HOLDS(simulated_run,
                        s->first + s->items - (s->first > 0) <= simulated_run->p.jobs);
        SIMULATED_HOLDS(simulated_run, (s->seq > 0) == step_is_settled(s->status) &&
                                           s->seq <= simulated_run->p.order);
        SIMULATED_HOLDS(simulated_run, (s->undo == UNDO_OPEN) ==
                                           (simulated_open_jobs(simulated_run, i, true) > 0));
        SIMULATED_HOLDS(simulated_run, (s->undo != UNDO_NONE) == simulated_run->steps[i].undone);
        settled += step_is_settled(s->status);
        for (size_t k = 0; k < i; k++)
            SIMULATED_HOLDS(simulated_run, s->seq == 0 || s->seq != simulated_run->p.steps[k].seq);
    }
    SIMULATED_HOLDS(simulated_run, simulated_run->p.settled == settled);
    SIMULATED_HOLDS(simulated_run, (simulated_run->p.stop != STOP_NO) == simulated_run->stopping);
    SIMULATED_HOLDS(simulated_run,
                    (simulated_run->p.stop == STOP_FAILED) == (simulated_run->cause > 0));
    SIMULATED_HOLDS(simulated_run, simulated_run->cause == 0 ||
                                       simulated_run->p.cause == (int64_t)simulated_run->cause - 1);
}

/* A running run has work, a waiting one waits for something that can come, and nothing that could
 * be done is left undone. */
static inline void simulated_check_status(struct simulated_run *simulated_run)
{
    int64_t working = 0;
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        enum step_type type = simulated_run->def->steps[i].type;
        bool waits = type == STEP_SLEEP || type == STEP_WAIT_SIGNAL;
        int64_t open = simulated_open_jobs(simulated_run, i, false) - simulated_run->steps[i].asked;
        working += (waits ? 0 : open) + simulated_open_jobs(simulated_run, i, true);
    }
    SIMULATED_HOLDS(simulated_run,
                    simulated_run->status != RUN_PENDING && simulated_run->status != RUN_QUEUED);
    SIMULATED_HOLDS(simulated_run,
                    simulated_run->status != RUN_RUNNING || working > 0 || simulated_run->go_on);
    SIMULATED_HOLDS(simulated_run, simulated_run->status != RUN_WAITING || working == 0);
    SIMULATED_HOLDS(simulated_run, simulated_run->status != RUN_WAITING ||
                                       simulated_all_open(simulated_run) > 0 ||
                                       simulated_run->go_on);
    SIMULATED_HOLDS(simulated_run, !run_has_ended(simulated_run->status) ||
                                       simulated_all_open(simulated_run) == 0);
}

static inline void simulated_check_text(struct simulated_run *simulated_run)
{
    struct buf text;
    struct buf again;
    buf_init(&text, 64 * 1024);
    buf_init(&again, 64 * 1024);
    progress_put(&text, &simulated_run->p);
    struct progress back;
    SIMULATED_HOLDS(simulated_run, buf_ok(&text));
    enum err e = progress_parse(buf_str(&text), simulated_run->def->step_count,
                                &simulated_run->arena, &back);
    SIMULATED_HOLDS(simulated_run, e == ERR_OK);
    if (e == ERR_OK) {
        progress_put(&again, &back);
        SIMULATED_HOLDS(simulated_run, str_eq(buf_str(&text), buf_str(&again)));
        /* From here on with what a server would read after a crash. */
        memcpy(simulated_run->p.steps, back.steps, back.count * sizeof(*back.steps));
        back.steps = simulated_run->p.steps;
        simulated_run->p = back;
    }
    buf_release(&again);
    buf_release(&text);
}

/* --- a turn --- */

/* Until nothing is left to do. */
static inline void simulated_go(struct simulated_run *simulated_run)
{
    int64_t made = 0;
    int64_t per_turn = 1 + (int64_t)simulated_chance(simulated_run, CHOOSE_PER_TURN, 0, 32);
    simulated_run->log[0] = '\0';
    simulated_run->go_on = false;
    /* Each step begins, is stopped and undone once at most, and its items come in a few portions.
     */
    for (int turns = 0; !simulated_run->broken; turns++) {
        SIMULATED_HOLDS(simulated_run, turns < 64 * SIMULATED_STEPS_MAX);
        struct next next =
            advance_next(simulated_run->def, &simulated_run->p, simulated_run->status);
        SIMULATED_HOLDS(simulated_run, next.step < simulated_run->def->step_count);
        if ((next.kind == NEXT_BEGIN || next.kind == NEXT_ITEMS) && made >= per_turn)
            simulated_run->go_on = true;
        if (next.kind == NEXT_NOTHING || simulated_run->go_on || simulated_run->broken)
            break;
        switch (next.kind) {
        case NEXT_NOTHING:
            break;
        case NEXT_BEGIN:
            simulated_begin(simulated_run, next.step);
            break;
        case NEXT_ITEMS:
            made += next.count;
            simulated_items(simulated_run, next.step, next.count);
            break;
        case NEXT_SKIP:
            simulated_log(simulated_run, "-", next.step);
            simulated_check_ready(simulated_run, next.step, true);
            advance_skip(&simulated_run->p, next.step, true);
            simulated_settle(simulated_run, next.step, SIMULATED_CUT);
            break;
        case NEXT_STOP:
            simulated_stop(simulated_run, next.step);
            break;
        case NEXT_UNDO:
            simulated_undo(simulated_run, next.step);
            break;
        case NEXT_RUN:
            simulated_move(simulated_run, next.on);
            break;
        }
    }
    simulated_check_counts(simulated_run);
    if (simulated_run->status != RUN_PAUSED)
        simulated_check_status(simulated_run);
    simulated_check_text(simulated_run);
}

/* --- what may happen --- */

static inline void simulated_time_out(struct simulated_run *simulated_run)
{
    advance_timed_out(&simulated_run->p);
    simulated_run->stopping = true;
    simulated_go(simulated_run);
}

static inline void simulated_cancel(struct simulated_run *simulated_run)
{
    simulated_run->log[0] = '\0';
    simulated_move(simulated_run, RUN_ON_CANCEL);
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        bool settles =
            simulated_run->steps[i].begun && simulated_run->steps[i].outcome == SIMULATED_NONE;
        for (int64_t n = 1; n <= simulated_run->p.jobs && n < SIMULATED_JOBS_MAX; n++) {
            if (simulated_run->jobs[n].step == i + 1 &&
                simulated_run->jobs[n].outcome == SIMULATED_NONE)
                simulated_end_job(simulated_run, &simulated_run->jobs[n], SIMULATED_STOPPED);
        }
        advance_stopped(&simulated_run->p, i);
        if (settles)
            simulated_settle(simulated_run, i, SIMULATED_STOPPED);
    }
    simulated_run->go_on = false;
}

/* It was undone, or something that it needs or whose errors it handles was, however far before it.
 */
static inline bool simulated_lost_ground(const struct simulated_run *simulated_run, size_t step)
{
    const struct step_def *d = &simulated_run->def->steps[step];
    bool lost = simulated_run->steps[step].undone;
    for (size_t n = 0; n < d->need_count && !lost; n++)
        lost = simulated_lost_ground(simulated_run, d->needs[n]);
    for (size_t i = 0; i < simulated_run->def->step_count && !lost; i++)
        lost = simulated_run->def->steps[i].on_error == ON_ERROR_STEP &&
               simulated_run->def->steps[i].error_step == step &&
               simulated_lost_ground(simulated_run, i);
    return lost;
}

/* As the engine does it: what was undone, and all behind it, begins anew; of the rest the jobs of
 * tasks are revived. */
static inline void simulated_retry(struct simulated_run *simulated_run)
{
    bool anew[SIMULATED_STEPS_MAX] = {false};
    bool marked[SIMULATED_STEPS_MAX] = {false};
    advance_mark_undone(simulated_run->def, &simulated_run->p, marked);
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        anew[i] = simulated_lost_ground(simulated_run, i);
        SIMULATED_HOLDS(simulated_run, marked[i] == anew[i]);
    }
    simulated_move(simulated_run, RUN_ON_RETRY);
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        struct step_state *s = &simulated_run->p.steps[i];
        struct simulated_step *mine = &simulated_run->steps[i];
        bool ended_run =
            simulated_run->def->steps[i].on_error == ON_ERROR_FAIL || simulated_run->cause == i + 1;
        bool bad = (mine->outcome == SIMULATED_BAD && ended_run) ||
                   mine->outcome == SIMULATED_STOPPED || mine->undone;
        SIMULATED_HOLDS(simulated_run,
                        advance_may_retry(simulated_run->def, &simulated_run->p, i) == bad);
        anew[i] &= mine->outcome != SIMULATED_NONE;
        if ((!bad && !anew[i]) || simulated_run->broken)
            continue;
        int64_t revived = 0;
        bool revives = s->first > 0 && !anew[i] && simulated_run->def->steps[i].type == STEP_TASK;
        for (int64_t n = s->first; revives && n < s->first + s->begun; n++) {
            struct simulated_job *job = &simulated_run->jobs[n];
            if (job->outcome != SIMULATED_BAD && job->outcome != SIMULATED_STOPPED)
                continue;
            job->outcome = SIMULATED_NONE;
            revived++;
        }
        *mine = (struct simulated_step){.begun = revived > 0, .open = revived};
        if (revives)
            advance_revive(&simulated_run->p, i, revived);
        else
            advance_again(&simulated_run->p, i);
    }
    for (size_t i = 0; i < simulated_run->def->step_count; i++) {
        const struct step_def *d = &simulated_run->def->steps[i];
        for (size_t n = 0; n < d->need_count && simulated_run->steps[i].open > 0; n++)
            SIMULATED_HOLDS(simulated_run,
                            simulated_run->steps[d->needs[n]].outcome != SIMULATED_NONE);
    }
    advance_unstop(&simulated_run->p);
    simulated_run->stopping = false;
    simulated_run->cause = 0;
    simulated_go(simulated_run);
}

#endif
