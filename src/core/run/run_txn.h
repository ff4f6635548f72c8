/* One run inside a transaction: its row, its definition and how far its steps are. Every use case
 * that changes a run loads it here; rows, jobs, timers, timeline and slots change together or not
 * at all.
 *
 * The bottom of this folder. Above it, each including only what stands before it:
 *
 *   run_values     what expressions see        run_view   what readers see
 *   run_new        makes runs                  job_txn    makes and changes jobs
 *   suspension     jobs without a worker       stale_result  workers without a lease
 *   approval_txn, signal_wait                  asking people, waiting for signals
 *   job_suspend    gives a job up
 *   step_ops       the types of steps          step_begin begins steps
 *   run_advance    the loop                    run_control, run_retry   what callers want
 *
 * What holds between two operations, by status. Every load for a change checks what a damaged file
 * may have broken (ERR_DAMAGED); every save asserts all of it, since only a bug can break it.
 *
 *   any         its progress is one that advancing can lead to; its version is its last event
 *   queued      no step has begun, no job exists; no slot. In the queue, unless it has a start_at
 *   pending     holds its slots, like every status up to paused; no finished_at
 *   running     started_at is set
 *   waiting     as running; every open step only waits, or its open jobs are suspended
 *   paused      as running
 *   succeeded   every step is settled, finished_at is set, no slot, no open job
 *   failed, denied, timed_out, cancelled
 *               finished_at is set, no slot, no open job; steps may never have begun
 *
 * A child counts under its parent's slots and never holds its own. */
#ifndef PAWL_CORE_RUN_RUN_TXN_H
#define PAWL_CORE_RUN_RUN_TXN_H

#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "domain/timeline.h"
#include "domain/workflow/advance.h"

/* A text of the run as JSON, parsed when an expression first needs it. */
struct read_text {
    const char *of; /* NULL: not parsed yet */
    const struct json *value;
};

struct run_txn {
    struct read_tx *read_tx; /* what it was loaded through */
    struct tx *tx;           /* NULL: it was loaded to be shown and must not change */
    struct tenant *tenant;
    struct run run;
    const struct definition *def;
    struct progress progress;
    struct step_view *views;       /* of jobs that were made here; NULL: not wanted */
    struct read_text *step_values; /* as far as expressions needed them; NULL: none yet */
    struct read_text input_read;
    struct read_text state_read;
    const struct json *items; /* of the step `items_step`; NULL: not loaded */
    size_t items_step;
    bool is_new;                                  /* the run has no row yet */
    enum err (*before_insert)(struct run_txn *m); /* called before it gets one; NULL: nothing */
    bool told;           /* its timeline has grown since its row was read or written */
    bool has_slots;      /* taken by the run, and not freed */
    bool in_queue;       /* it stands in the queue of its tenant */
    struct str end_note; /* what the timeline says about the end; none: the run's error, if any */
};

/* Timers of a run that belong to no job. */
enum {
    TIMER_PARENT_OVER = -4, /* the job that it is a part of has ended: it is cancelled */
    TIMER_GO_ON = -1,       /* there is more to do than one turn may take */
    TIMER_RUN = 0,          /* its deadline, or its start */
};

/* The values that every new run begins with. */
struct run run_blank(void);

/* Loads a stored run. ERR_RUN_NOT_FOUND when no run has this number. */
MUST_CHECK enum err run_txn_load(struct run_txn *m, struct tx *tx, int64_t run_num,
                                 struct problem *p);
/* The same for a run that nobody has named: that of a job, or one that makes room for another. It
 * must be there; a refusal is none of the caller's business and becomes ERR_DAMAGED. */
MUST_CHECK enum err run_txn_load_other(struct run_txn *m, struct tx *tx, int64_t run_num,
                                       struct problem *p);
/* The same for one that may have been removed: *ret_found is then false, and that is no error. */
MUST_CHECK enum err run_txn_load_if(struct run_txn *m, struct tx *tx, int64_t run_num,
                                    struct problem *p, bool *ret_found);
/* The caller's run of this id. */
MUST_CHECK enum err run_txn_find(struct run_txn *m, struct op *op, struct tx *tx, struct uuid id);
/* The same two for a run that is only shown. */
MUST_CHECK enum err run_txn_read(struct run_txn *m, struct read_tx *tx, int64_t run_num,
                                 struct problem *p);
MUST_CHECK enum err run_txn_read_id(struct run_txn *m, struct op *op, struct read_tx *tx,
                                    struct uuid id);

/* Makes a run that was loaded to be shown ready to be changed. */
MUST_CHECK enum err run_txn_begin_change(struct run_txn *m, struct tx *tx, struct problem *p);

/* Room for views of all steps, in m->views. */
MUST_CHECK enum err run_txn_alloc_views(struct run_txn *m);
/* Appends an event to the run's timeline. `data` is a JSON object, or ptr NULL. */
MUST_CHECK enum err run_txn_add_event(struct run_txn *m, enum event_type type, struct str data);
/* For types whose flags ask for a job's ordinal or a name (see struct event). */
MUST_CHECK enum err run_txn_add_named_event(struct run_txn *m, enum event_type type,
                                            struct str data, int64_t job, struct str published_as);
/* Writes the run's row and its progress; a change that has no event of its own gets one. */
MUST_CHECK enum err run_txn_save(struct run_txn *m);

/* The run's slots and its place in the queue (core/admission/run_slots.h). A child has neither. */
MUST_CHECK enum err run_txn_take_slots(struct run_txn *m);
MUST_CHECK enum err run_txn_free_slots(struct run_txn *m);
MUST_CHECK enum err run_txn_enter_queue(struct run_txn *m, int64_t waits_for);
MUST_CHECK enum err run_txn_leave_queue(struct run_txn *m, bool admitted);

/* Timers of the run, or of its job with this ordinal. */
MUST_CHECK enum err run_arm(struct run_txn *m, int64_t ordinal, int64_t due_at);
MUST_CHECK enum err run_disarm(struct run_txn *m, int64_t ordinal, int64_t due_at);
/* The job that waited for this child run has ended: the child is cancelled in a turn of its own. */
MUST_CHECK enum err run_txn_cancel_child_later(struct tx *tx, struct uuid child);

/* So much is loaded that the rest should wait for a turn of its own. */
bool run_txn_is_large(const struct run_txn *m);

/* {"code":…,"message":…} in the transaction's arena; ptr NULL when memory ran out. */
struct str error_json(struct tx *tx, const char *code, struct str message);

#endif
