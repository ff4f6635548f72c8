/* Advancing a run: from its definition, how far it is and what happened, to what happens next.
 * Pure: the engine carries out one action at a time, and asks again until there is nothing left
 * to do. */
#ifndef PAWL_DOMAIN_WORKFLOW_ADVANCE_H
#define PAWL_DOMAIN_WORKFLOW_ADVANCE_H

#include "domain/progress.h"
#include "domain/run.h"
#include "domain/workflow/definition.h"

enum next_kind {
    NEXT_NOTHING, /* until a job, a timer or a caller changes something */
    NEXT_BEGIN,   /* evaluate the step's condition and items, then advance_begin() or advance_skip()
                   */
    NEXT_ITEMS,   /* make the jobs of the next `count` items of an active step */
    NEXT_SKIP,    /* the step lies behind an error that went another way */
    NEXT_STOP,    /* end every open job of the step */
    NEXT_UNDO,    /* make the job that compensates the step */
    NEXT_RUN,     /* the run itself changes by `on` */
};

struct next {
    enum next_kind kind;
    size_t step;
    int64_t count;
    enum run_event on;
};

struct next advance_next(const struct definition *def, const struct progress *p,
                         enum run_status status);

/* --- what happened; each changes *p --- */

/* The step begins with so many items; -1: it is no map and has one. Its jobs get their ordinals. A
 * map of nothing has succeeded. */
void advance_begin(struct progress *p, size_t step, int64_t items);
void advance_items_begun(struct progress *p, size_t step, int64_t count);
/* A job of the step waits for a person, or is suspended, from now on, and no longer: until then no
 * worker need do anything about it. The second comes before advance_job_over(). */
void advance_asked(struct progress *p, size_t step);
void advance_answered(struct progress *p, size_t step);
/* The step's condition does not hold, or it is cut off. */
void advance_skip(struct progress *p, size_t step, bool cut);
/* Is a job of the step, or the one that undoes it, still to end? If not, rows and record of the run
 * contradict each other. */
bool advance_expects(const struct progress *p, size_t step, bool undo);
/* A job of the step is over, by no other way than `as` (a settled status). */
void advance_job_over(const struct definition *def, struct progress *p, size_t step,
                      enum step_status as);
/* Every open job of the step was ended. */
void advance_stopped(struct progress *p, size_t step);
void advance_undo_begun(struct progress *p, size_t step);
void advance_undo_over(struct progress *p, size_t step, bool done);
/* The run's own time is over. */
void advance_timed_out(struct progress *p);
/* --- a run that stopped tries again --- */

/* The step was undone, or failed or was ended without the run going on by its on_error. */
bool advance_may_retry(const struct definition *def, const struct progress *p, size_t step);
/* The steps that were undone and all that depend on them: their results are gone, so they start
 * again. `ret` has a place for each step. */
void advance_mark_undone(const struct definition *def, const struct progress *p, bool *ret);
/* It starts again, with new jobs. */
void advance_again(struct progress *p, size_t step);
/* This many of its jobs were revived; with none it starts again. */
void advance_revive(struct progress *p, size_t step, int64_t revived);
void advance_unstop(struct progress *p);

/* Which item of the step a job is: 0, 1, 2 …; -1 when the job is not one of its items. */
int64_t advance_item(const struct step_state *s, int64_t ordinal);

#endif
