/* Moving one run on, inside a transaction: its row, steps, jobs, timers, timeline and slot change
 * together or not at all. Every use case that changes a run goes through here. */
#ifndef PAWL_ENGINE_RUN_MOVE_H
#define PAWL_ENGINE_RUN_MOVE_H

#include "domain/advance.h"
#include "engine/render.h"
#include "engine/tx.h"

struct run_move {
    struct tx *tx;
    struct tenant *tenant;
    struct run run;
    const struct definition *def;
    struct step_view *steps; /* one per step of the definition */
    int64_t jobs_made;
    bool is_new; /* the run has no row yet */
    struct str
        end_note; /* what the timeline says about the end; ptr NULL: the run's error, if any */
    int64_t events_told; /* of a new run: how many events it has */
};

/* A new run: `m->run` is filled but for id, num and status; the tenant is stored and has room. */
MUST_CHECK enum err run_move_create(struct run_move *m, struct problem *p);
/* A new run that waits for a slot; `waits_for` is the limit that is full: a scope, or 0. */
MUST_CHECK enum err run_move_create_queued(struct run_move *m, int64_t waits_for,
                                           struct problem *p);
/* An existing one, with all its steps. ERR_RUN_NOT_FOUND when there is none of this number. */
MUST_CHECK enum err run_move_load(struct run_move *m, struct tx *tx, int64_t run_num,
                                  struct problem *p);
/* The caller's run of this id. */
MUST_CHECK enum err run_move_find(struct run_move *m, struct op *op, struct tx *tx, struct uuid id);
/* Only for showing it: the definition and steps of m->run, already read. */
MUST_CHECK enum err run_move_load_steps(struct run_move *m, struct problem *p);

/* A queued run gets its slots and begins. */
MUST_CHECK enum err run_move_admit(struct run_move *m);

/* One job's change of state, through the table: writes its row, timers and timeline. Fill in
 * output, error, worker and due_at before; the rest is done here. */
MUST_CHECK enum err run_move_job(struct run_move *m, struct job *job, enum job_event on);

/* Begins the steps that are ready, settles the run when nothing is left, and writes its row. */
MUST_CHECK enum err run_move_finish(struct run_move *m);
/* Ends the run at once; the timeline says who did and why (reason: ptr NULL for none).
 * ERR_CONCURRENCY when it is over already. */
MUST_CHECK enum err run_move_cancel(struct run_move *m, struct str actor, struct str reason);

#endif
