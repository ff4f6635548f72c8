/* A run played without an engine: does what advance_next() says, one thing at a time, as the engine
 * would, and keeps a ledger of its own in which it checks at every turn what a run promises. The
 * first promise that is broken is named in `broken`.
 *
 * What is left to chance (whether a condition holds, how many items there are, what ends at once)
 * is asked of `choose`. */
#ifndef PAWL_TESTS_DOMAIN_PLAY_H
#define PAWL_TESTS_DOMAIN_PLAY_H

#include "domain/workflow/advance.h"

#include <stdio.h>
#include <string.h>

enum { PLAY_STEPS_MAX = 8, PLAY_JOBS_MAX = 2048 };

enum play_choice {
    CHOOSE_CONDITION, /* 0: does not hold; 1: cannot be evaluated; else it holds */
    CHOOSE_ITEMS,     /* of a step with for_each */
    CHOOSE_ITEM,      /* 0: succeeds at once; 1: fails at once; 2: waits for a person; else open */
    CHOOSE_UNDO,      /* 0: fails at once */
    CHOOSE_PER_TURN,  /* jobs made before others have their turn, less one */
};

typedef uint64_t play_choose_fn(void *ctx, enum play_choice what, size_t step, uint64_t bound);

enum play_outcome { PLAY_NONE, PLAY_OK, PLAY_BAD, PLAY_SKIPPED, PLAY_CUT, PLAY_STOPPED };

struct play_job {
    size_t step;
    bool undo;
    bool asked;                /* it is open, and waits for a person */
    enum play_outcome outcome; /* PLAY_NONE: open */
};

struct play_step {
    bool begun;
    enum play_outcome outcome;
    int64_t place; /* in the order of settling */
    bool undone;   /* or tried to */
    int64_t open;  /* jobs */
    int64_t asked; /* of those: that wait for a person */
    int64_t undos_open;
};

struct play {
    const struct definition *def;
    struct progress p;
    struct arena arena;
    enum run_status status;
    bool go_on;    /* a timer is armed: there is more to do than one turn may take */
    bool stopping; /* an error or the run's own time */
    size_t cause;  /* the step whose error it was, counted from 1; 0: none */
    int64_t places;
    struct play_step steps[PLAY_STEPS_MAX];
    struct play_job jobs[PLAY_JOBS_MAX]; /* by ordinal */
    play_choose_fn *choose;
    void *ctx;
    char log[2048]; /* of the last turn */
    const char *broken;
    int broken_line;
};

#define PLAY_HOLDS(play, promise)            \
    do {                                     \
        if (!(promise) && !(play)->broken) { \
            (play)->broken = #promise;       \
            (play)->broken_line = __LINE__;  \
        }                                    \
    } while (0)

static inline void play_init(struct play *play, const struct definition *def,
                             play_choose_fn *choose, void *ctx)
{
    memset(play, 0, sizeof(*play));
    play->def = def;
    play->status = RUN_PENDING;
    play->choose = choose;
    play->ctx = ctx;
    arena_init(&play->arena, 1024 * 1024);
    assert(def->step_count <= PLAY_STEPS_MAX);
    bool ok = progress_init(&play->p, def->step_count, &play->arena);
    assert(ok);
}

static inline void play_release(struct play *play)
{
    arena_release(&play->arena);
}

static inline uint64_t play_chance(struct play *play, enum play_choice what, size_t step,
                                   uint64_t bound)
{
    return play->choose(play->ctx, what, step, bound);
}

/* "+a " for a step that begins, and so on: what a turn did, in order. */
static inline void play_log(struct play *play, const char *sign, size_t step)
{
    size_t used = strlen(play->log);
    struct str name = play->def->steps[step].name;
    (void)snprintf(play->log + used, sizeof(play->log) - used, "%s%.*s ", sign, STR_ARG(name));
}

static inline void play_log_word(struct play *play, const char *word)
{
    size_t used = strlen(play->log);
    (void)snprintf(play->log + used, sizeof(play->log) - used, "%s ", word);
}

/* --- the ledger --- */

static inline bool play_is_map(const struct play *play, size_t step)
{
    return play->def->steps[step].for_each != NULL;
}

/* Its error went to another step, which it names. */
static inline bool play_went_elsewhere(const struct play *play, size_t step)
{
    return play->steps[step].outcome == PLAY_BAD &&
           play->def->steps[step].on_error == ON_ERROR_STEP;
}

static inline int64_t play_open_jobs(const struct play *play, size_t step, bool undo)
{
    return undo ? play->steps[step].undos_open : play->steps[step].open;
}

static inline void play_end_job(struct play *play, struct play_job *job, enum play_outcome as)
{
    assert(job->step > 0 && job->outcome == PLAY_NONE && as != PLAY_NONE);
    job->outcome = as;
    struct play_step *s = &play->steps[job->step - 1];
    s->asked -= job->asked;
    job->asked = false;
    *(job->undo ? &s->undos_open : &s->open) -= 1;
}

static inline int64_t play_all_open(const struct play *play)
{
    int64_t open = 0;
    for (size_t i = 0; i < play->def->step_count; i++)
        open += play_open_jobs(play, i, false) + play_open_jobs(play, i, true);
    return open;
}

static inline void play_settle(struct play *play, size_t step, enum play_outcome as)
{
    PLAY_HOLDS(play, play->steps[step].outcome == PLAY_NONE);
    play->steps[step].outcome = as;
    play->steps[step].place = ++play->places;
    if (as != PLAY_BAD)
        return;
    const struct step_def *d = &play->def->steps[step];
    bool handled = d->on_error == ON_ERROR_STEP && !play->steps[d->error_step].begun &&
                   play->steps[d->error_step].outcome == PLAY_NONE;
    if (play->stopping || d->on_error == ON_ERROR_CONTINUE || handled)
        return;
    play->stopping = true;
    play->cause = step + 1;
}

static inline void play_make_job(struct play *play, size_t step, int64_t ordinal, bool undo)
{
    PLAY_HOLDS(play, ordinal >= 1 && ordinal <= play->p.jobs && ordinal < PLAY_JOBS_MAX);
    if (play->broken)
        return;
    PLAY_HOLDS(play, play->jobs[ordinal].step == 0); /* an ordinal is given out once */
    play->jobs[ordinal] = (struct play_job){.step = step + 1, .undo = undo};
    *(undo ? &play->steps[step].undos_open : &play->steps[step].open) += 1;
}

static inline void play_ask(struct play *play, int64_t ordinal)
{
    struct play_job *job = &play->jobs[ordinal];
    assert(!job->asked && !job->undo && job->outcome == PLAY_NONE);
    job->asked = true;
    play->steps[job->step - 1].asked++;
    advance_asked(&play->p, job->step - 1);
}

/* The person lets the job go. */
static inline void play_answer(struct play *play, int64_t ordinal)
{
    struct play_job *job = &play->jobs[ordinal];
    assert(job->asked);
    job->asked = false;
    play->steps[job->step - 1].asked--;
    advance_answered(&play->p, job->step - 1);
}

/* A job of the step ended by itself. */
static inline void play_job_over(struct play *play, int64_t ordinal, enum step_status as)
{
    struct play_job *job = &play->jobs[ordinal];
    size_t step = job->step - 1;
    if (job->asked)
        play_answer(play, ordinal);
    play_end_job(play, job, as == STEP_IS_SUCCEEDED ? PLAY_OK : PLAY_BAD);
    if (job->undo) {
        advance_undo_over(&play->p, step, as == STEP_IS_SUCCEEDED);
        return;
    }
    advance_job_over(play->def, &play->p, step, as);
    bool goes_on = play_is_map(play, step) && play->p.steps[step].is_map &&
                   play->def->steps[step].on_error == ON_ERROR_CONTINUE;
    if (as != STEP_IS_SUCCEEDED && !goes_on)
        play_settle(play, step, PLAY_BAD);
    else if (play->p.steps[step].begun == play->p.steps[step].items &&
             play_open_jobs(play, step, false) == 0)
        play_settle(play, step, PLAY_OK);
}

/* --- doing what is next --- */

static inline void play_check_ready(struct play *play, size_t step, bool cut)
{
    const struct step_def *d = &play->def->steps[step];
    bool behind_error = false;
    for (size_t n = 0; n < d->need_count; n++) {
        size_t need = d->needs[n];
        PLAY_HOLDS(play, play->steps[need].outcome != PLAY_NONE);
        bool mine = play_went_elsewhere(play, need) && play->def->steps[need].error_step == step;
        behind_error |=
            !mine && (play->steps[need].outcome == PLAY_CUT || play_went_elsewhere(play, need));
    }
    bool wanted = !d->handles_errors;
    bool all_settled = true;
    for (size_t i = 0; i < play->def->step_count && d->handles_errors; i++) {
        const struct step_def *other = &play->def->steps[i];
        if (other->on_error != ON_ERROR_STEP || other->error_step != step)
            continue;
        wanted |= play_went_elsewhere(play, i);
        all_settled &= play->steps[i].outcome != PLAY_NONE;
    }
    PLAY_HOLDS(play, !play->stopping && !play->steps[step].begun);
    PLAY_HOLDS(play, all_settled);
    /* An error that leads to a handler counts for more than a need that was cut off. */
    PLAY_HOLDS(play, cut == (d->handles_errors ? !wanted : behind_error));
}

static inline void play_begin(struct play *play, size_t step)
{
    play_check_ready(play, step, false);
    uint64_t condition = play_chance(play, CHOOSE_CONDITION, step, 12);
    if (condition == 0) {
        play_log(play, "?", step);
        advance_skip(&play->p, step, false);
        play_settle(play, step, PLAY_SKIPPED);
        return;
    }
    play_log(play, "+", step);
    play->steps[step].begun = true;
    if (condition == 1) { /* as the engine does it: a job that is nothing but its error */
        advance_begin(&play->p, step, -1);
        advance_items_begun(&play->p, step, 1);
        play_make_job(play, step, play->p.steps[step].first, false);
        if (!play->broken)
            play_job_over(play, play->p.steps[step].first, STEP_IS_FAILED);
        return;
    }
    int64_t items = -1;
    if (play_is_map(play, step))
        items = (int64_t)play_chance(play, CHOOSE_ITEMS, step, 24);
    int64_t jobs_before = play->p.jobs;
    advance_begin(&play->p, step, items);
    PLAY_HOLDS(play, play->p.jobs == jobs_before + (items < 0 ? 1 : items));
    if (items == 0)
        play_settle(play, step, PLAY_OK);
}

static inline void play_items(struct play *play, size_t step, int64_t count)
{
    const struct step_state *s = &play->p.steps[step];
    PLAY_HOLDS(play, count >= 1 && s->begun + count <= s->items);
    PLAY_HOLDS(play,
               play_open_jobs(play, step, false) + count <= play->def->steps[step].max_parallel);
    for (int64_t i = 0; i < count && !play->broken && s->status == STEP_IS_ACTIVE; i++) {
        int64_t ordinal = s->first + s->begun;
        PLAY_HOLDS(play, advance_item(s, ordinal) == s->begun);
        advance_items_begun(&play->p, step, 1);
        play_make_job(play, step, ordinal, false);
        play_log(play, ".", step);
        uint64_t end = play_chance(play, CHOOSE_ITEM, step, 12);
        if (!play->broken && end <= 1)
            play_job_over(play, ordinal, end == 0 ? STEP_IS_SUCCEEDED : STEP_IS_FAILED);
        else if (!play->broken && end == 2)
            play_ask(play, ordinal);
    }
}

/* What is open of the step ends. */
static inline void play_stop(struct play *play, size_t step)
{
    play_log(play, "!", step);
    int64_t ended = 0;
    for (int64_t i = 1; i <= play->p.jobs && i < PLAY_JOBS_MAX; i++) {
        struct play_job *job = &play->jobs[i];
        if (job->step != step + 1 || job->undo || job->outcome != PLAY_NONE)
            continue;
        play_end_job(play, job, PLAY_STOPPED);
        ended++;
    }
    bool settles = play->steps[step].begun && play->steps[step].outcome == PLAY_NONE;
    PLAY_HOLDS(play, ended > 0 || settles); /* it is asked for once */
    PLAY_HOLDS(play, !settles || play->stopping);
    advance_stopped(&play->p, step);
    if (settles)
        play_settle(play, step, PLAY_STOPPED);
}

/* It succeeded, or it is a map that did not, and some of its items had. */
static inline bool play_has_effect(const struct play *play, size_t step)
{
    const struct step_state *s = &play->p.steps[step];
    const struct play_step *mine = &play->steps[step];
    bool done = mine->outcome == PLAY_OK;
    bool ended = mine->outcome == PLAY_BAD || mine->outcome == PLAY_STOPPED;
    for (int64_t n = s->first; n > 0 && ended && s->is_map && n < s->first + s->items; n++)
        done |= play->jobs[n].outcome == PLAY_OK;
    return done;
}

static inline void play_undo(struct play *play, size_t step)
{
    play_log(play, "~", step);
    const struct play_step *mine = &play->steps[step];
    PLAY_HOLDS(play, play->stopping && play_all_open(play) == 0);
    PLAY_HOLDS(play,
               play_has_effect(play, step) && play->def->steps[step].has_undo && !mine->undone);
    for (size_t i = 0; i < play->def->step_count; i++) {
        const struct play_step *other = &play->steps[i];
        bool waits = play_has_effect(play, i) && play->def->steps[i].has_undo && !other->undone;
        PLAY_HOLDS(play, !waits || other->place <= mine->place); /* the last first */
    }
    play->steps[step].undone = true;
    advance_undo_begun(&play->p, step);
    int64_t ordinal = play->p.steps[step].undo_job;
    play_make_job(play, step, ordinal, true);
    if (!play->broken && play_chance(play, CHOOSE_UNDO, step, 8) == 0)
        play_job_over(play, ordinal, STEP_IS_FAILED);
}

static inline void play_check_end(struct play *play, enum run_event on)
{
    PLAY_HOLDS(play, play_all_open(play) == 0);
    PLAY_HOLDS(play, (on == RUN_ON_SUCCEED) == !play->stopping);
    bool denied = play->cause > 0 && play->p.steps[play->cause - 1].status == STEP_IS_DENIED;
    PLAY_HOLDS(play, (on == RUN_ON_DENY) == denied);
    for (size_t i = 0; i < play->def->step_count; i++) {
        const struct play_step *s = &play->steps[i];
        PLAY_HOLDS(play, !s->begun || s->outcome != PLAY_NONE);
        PLAY_HOLDS(play, on != RUN_ON_SUCCEED || s->outcome != PLAY_NONE);
        if (on == RUN_ON_SUCCEED && play_went_elsewhere(play, i))
            PLAY_HOLDS(play, play->steps[play->def->steps[i].error_step].outcome != PLAY_CUT);
        bool must_undo = play->stopping && play_has_effect(play, i) && play->def->steps[i].has_undo;
        PLAY_HOLDS(play, s->undone == must_undo);
    }
}

static inline void play_move(struct play *play, enum run_event on)
{
    static const char *const WORDS[RUN_EVENT_COUNT] = {
        [RUN_ON_START] = "start",       [RUN_ON_WAIT] = "wait",   [RUN_ON_WAKE] = "wake",
        [RUN_ON_SUCCEED] = "succeed",   [RUN_ON_FAIL] = "fail",   [RUN_ON_CANCEL] = "cancel",
        [RUN_ON_TIME_OUT] = "time_out", [RUN_ON_PAUSE] = "pause", [RUN_ON_RESUME] = "resume",
        [RUN_ON_RETRY] = "retry",       [RUN_ON_ADMIT] = "admit", [RUN_ON_DENY] = "deny",
        [RUN_ON_GIVE_UP] = "give_up",
    };
    play_log_word(play, WORDS[on]);
    if (on == RUN_ON_SUCCEED || on == RUN_ON_FAIL || on == RUN_ON_TIME_OUT || on == RUN_ON_DENY)
        play_check_end(play, on);
    struct run_change change = {play->status, 0};
    enum err e = run_decide(play->status, on, &change);
    PLAY_HOLDS(play, e == ERR_OK);
    play->status = change.to;
}

/* --- what holds whenever nothing is left to do --- */

static inline void play_check_counts(struct play *play)
{
    int64_t settled = 0;
    for (size_t i = 0; i < play->def->step_count; i++) {
        const struct step_state *s = &play->p.steps[i];
        static const enum play_outcome BY_STATUS[STEP_STATUS_COUNT] = {
            [STEP_IS_SUCCEEDED] = PLAY_OK,    [STEP_IS_FAILED] = PLAY_BAD,
            [STEP_IS_SKIPPED] = PLAY_SKIPPED, [STEP_IS_CANCELLED] = PLAY_STOPPED,
            [STEP_IS_TIMED_OUT] = PLAY_BAD,   [STEP_IS_DENIED] = PLAY_BAD,
        };
        enum play_outcome outcome = s->cut ? PLAY_CUT : BY_STATUS[s->status];
        enum play_outcome mine = play->steps[i].outcome;
        PLAY_HOLDS(play, outcome == mine);
        PLAY_HOLDS(play,
                   (s->status == STEP_IS_ACTIVE) == (play->steps[i].begun && mine == PLAY_NONE));
        PLAY_HOLDS(play, s->over >= 0 && s->over <= s->begun && s->begun <= s->items);
        PLAY_HOLDS(play, s->failed >= 0 && s->failed <= s->over);
        PLAY_HOLDS(play, s->begun - s->over == play_open_jobs(play, i, false));
        PLAY_HOLDS(play, s->asked == play->steps[i].asked);
        PLAY_HOLDS(play, s->first >= 0 && (s->first == 0) == (s->items == 0));
        PLAY_HOLDS(play, s->first + s->items - (s->first > 0) <= play->p.jobs);
        PLAY_HOLDS(play, (s->seq > 0) == step_is_settled(s->status) && s->seq <= play->p.order);
        PLAY_HOLDS(play, (s->undo == UNDO_OPEN) == (play_open_jobs(play, i, true) > 0));
        PLAY_HOLDS(play, (s->undo != UNDO_NONE) == play->steps[i].undone);
        settled += step_is_settled(s->status);
        for (size_t k = 0; k < i; k++)
            PLAY_HOLDS(play, s->seq == 0 || s->seq != play->p.steps[k].seq);
    }
    PLAY_HOLDS(play, play->p.settled == settled);
    PLAY_HOLDS(play, (play->p.stop != STOP_NO) == play->stopping);
    PLAY_HOLDS(play, (play->p.stop == STOP_FAILED) == (play->cause > 0));
    PLAY_HOLDS(play, play->cause == 0 || play->p.cause == (int64_t)play->cause - 1);
}

/* A running run has work, a waiting one waits for something that can come, and nothing that could
 * be done is left undone. */
static inline void play_check_status(struct play *play)
{
    int64_t working = 0;
    for (size_t i = 0; i < play->def->step_count; i++) {
        enum step_type type = play->def->steps[i].type;
        bool waits = type == STEP_SLEEP || type == STEP_WAIT_SIGNAL;
        int64_t open = play_open_jobs(play, i, false) - play->steps[i].asked;
        working += (waits ? 0 : open) + play_open_jobs(play, i, true);
    }
    PLAY_HOLDS(play, play->status != RUN_PENDING && play->status != RUN_QUEUED);
    PLAY_HOLDS(play, play->status != RUN_RUNNING || working > 0 || play->go_on);
    PLAY_HOLDS(play, play->status != RUN_WAITING || working == 0);
    PLAY_HOLDS(play, play->status != RUN_WAITING || play_all_open(play) > 0 || play->go_on);
    PLAY_HOLDS(play, !run_has_ended(play->status) || play_all_open(play) == 0);
}

static inline void play_check_text(struct play *play)
{
    struct buf text;
    struct buf again;
    buf_init(&text, 64 * 1024);
    buf_init(&again, 64 * 1024);
    progress_put(&text, &play->p);
    struct progress back;
    PLAY_HOLDS(play, buf_ok(&text));
    enum err e = progress_parse(buf_str(&text), play->def->step_count, &play->arena, &back);
    PLAY_HOLDS(play, e == ERR_OK);
    if (e == ERR_OK) {
        progress_put(&again, &back);
        PLAY_HOLDS(play, str_eq(buf_str(&text), buf_str(&again)));
        /* From here on with what a server would read after a crash. */
        memcpy(play->p.steps, back.steps, back.count * sizeof(*back.steps));
        back.steps = play->p.steps;
        play->p = back;
    }
    buf_release(&again);
    buf_release(&text);
}

/* --- a turn --- */

/* Until nothing is left to do. */
static inline void play_go(struct play *play)
{
    int64_t made = 0;
    int64_t per_turn = 1 + (int64_t)play_chance(play, CHOOSE_PER_TURN, 0, 32);
    play->log[0] = '\0';
    play->go_on = false;
    /* Each step begins, is stopped and undone once at most, and its items come in a few portions.
     */
    for (int turns = 0; !play->broken; turns++) {
        PLAY_HOLDS(play, turns < 64 * PLAY_STEPS_MAX);
        struct next next = advance_next(play->def, &play->p, play->status);
        PLAY_HOLDS(play, next.step < play->def->step_count);
        if ((next.kind == NEXT_BEGIN || next.kind == NEXT_ITEMS) && made >= per_turn)
            play->go_on = true;
        if (next.kind == NEXT_NOTHING || play->go_on || play->broken)
            break;
        switch (next.kind) {
        case NEXT_NOTHING:
            break;
        case NEXT_BEGIN:
            play_begin(play, next.step);
            break;
        case NEXT_ITEMS:
            made += next.count;
            play_items(play, next.step, next.count);
            break;
        case NEXT_SKIP:
            play_log(play, "-", next.step);
            play_check_ready(play, next.step, true);
            advance_skip(&play->p, next.step, true);
            play_settle(play, next.step, PLAY_CUT);
            break;
        case NEXT_STOP:
            play_stop(play, next.step);
            break;
        case NEXT_UNDO:
            play_undo(play, next.step);
            break;
        case NEXT_RUN:
            play_move(play, next.on);
            break;
        }
    }
    play_check_counts(play);
    if (play->status != RUN_PAUSED)
        play_check_status(play);
    play_check_text(play);
}

/* --- what may happen --- */

static inline void play_time_out(struct play *play)
{
    advance_timed_out(&play->p);
    play->stopping = true;
    play_go(play);
}

static inline void play_cancel(struct play *play)
{
    play->log[0] = '\0';
    play_move(play, RUN_ON_CANCEL);
    for (size_t i = 0; i < play->def->step_count; i++) {
        bool settles = play->steps[i].begun && play->steps[i].outcome == PLAY_NONE;
        for (int64_t n = 1; n <= play->p.jobs && n < PLAY_JOBS_MAX; n++) {
            if (play->jobs[n].step == i + 1 && play->jobs[n].outcome == PLAY_NONE)
                play_end_job(play, &play->jobs[n], PLAY_STOPPED);
        }
        advance_stopped(&play->p, i);
        if (settles)
            play_settle(play, i, PLAY_STOPPED);
    }
    play->go_on = false;
}

/* It was undone, or something that it needs or whose errors it handles was, however far before it.
 */
static inline bool play_lost_ground(const struct play *play, size_t step)
{
    const struct step_def *d = &play->def->steps[step];
    bool lost = play->steps[step].undone;
    for (size_t n = 0; n < d->need_count && !lost; n++)
        lost = play_lost_ground(play, d->needs[n]);
    for (size_t i = 0; i < play->def->step_count && !lost; i++)
        lost = play->def->steps[i].on_error == ON_ERROR_STEP &&
               play->def->steps[i].error_step == step && play_lost_ground(play, i);
    return lost;
}

/* As the engine does it: what was undone, and all behind it, begins anew; of the rest the jobs of
 * tasks are revived. */
static inline void play_retry(struct play *play)
{
    bool anew[PLAY_STEPS_MAX] = {false};
    bool marked[PLAY_STEPS_MAX] = {false};
    advance_mark_undone(play->def, &play->p, marked);
    for (size_t i = 0; i < play->def->step_count; i++) {
        anew[i] = play_lost_ground(play, i);
        PLAY_HOLDS(play, marked[i] == anew[i]);
    }
    play_move(play, RUN_ON_RETRY);
    for (size_t i = 0; i < play->def->step_count; i++) {
        struct step_state *s = &play->p.steps[i];
        struct play_step *mine = &play->steps[i];
        bool ended_run = play->def->steps[i].on_error == ON_ERROR_FAIL || play->cause == i + 1;
        bool bad = (mine->outcome == PLAY_BAD && ended_run) || mine->outcome == PLAY_STOPPED ||
                   mine->undone;
        PLAY_HOLDS(play, advance_may_retry(play->def, &play->p, i) == bad);
        anew[i] &= mine->outcome != PLAY_NONE;
        if ((!bad && !anew[i]) || play->broken)
            continue;
        int64_t revived = 0;
        bool revives = s->first > 0 && !anew[i] && play->def->steps[i].type == STEP_TASK;
        for (int64_t n = s->first; revives && n < s->first + s->begun; n++) {
            struct play_job *job = &play->jobs[n];
            if (job->outcome != PLAY_BAD && job->outcome != PLAY_STOPPED)
                continue;
            job->outcome = PLAY_NONE;
            revived++;
        }
        *mine = (struct play_step){.begun = revived > 0, .open = revived};
        if (revives)
            advance_revive(&play->p, i, revived);
        else
            advance_again(&play->p, i);
    }
    for (size_t i = 0; i < play->def->step_count; i++) {
        const struct step_def *d = &play->def->steps[i];
        for (size_t n = 0; n < d->need_count && play->steps[i].open > 0; n++)
            PLAY_HOLDS(play, play->steps[d->needs[n]].outcome != PLAY_NONE);
    }
    advance_unstop(&play->p);
    play->stopping = false;
    play->cause = 0;
    play_go(play);
}

#endif
