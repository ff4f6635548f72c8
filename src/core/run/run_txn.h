/* Moving one run on, inside a transaction: its row, jobs, timers, timeline and slots change
 * together or not at all. Every use case that changes a run goes through here.
 *
 * A move is loaded, changed (a job, or the run itself), and then run_txn_advance() does what
 * follows from it (domain/advance.h) and writes the run's row once. */
#ifndef PAWL_CORE_RUN_RUN_TXN_H
#define PAWL_CORE_RUN_RUN_TXN_H

#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "domain/advance.h"
#include "domain/timeline.h"

/* A text of the run as JSON, read when it is first asked for. */
struct read_text {
    const char *of; /* NULL: nothing was read yet */
    const json_t *value;
};

struct run_txn {
    struct read_tx *read_tx; /* what it was loaded through */
    struct tx *tx;           /* NULL: it was loaded to be shown and must not change */
    struct tenant *tenant;
    struct run run;
    const struct definition *def;
    struct progress progress;
    struct step_view *views;       /* what was made here, for showing it; NULL: not wanted */
    struct read_text *step_values; /* as far as expressions asked for them; NULL: none yet */
    struct read_text input_read;
    struct read_text state_read;
    const json_t *items; /* of the step `items_step`; NULL: not loaded */
    size_t items_step;
    bool is_new;         /* the run has no row yet */
    bool told;           /* its timeline has grown since its row was read or written */
    struct str end_note; /* what the timeline says about the end; none: the run's error, if any */
};

/* Fills in the parts of a new run that are the same for all. */
struct run run_blank(void);
/* A new run: `m->run` is filled but for id, num and status, `m->def` is its definition; the tenant
 * is stored and has room. */
MUST_CHECK enum err run_txn_create(struct run_txn *m, struct problem *p);
/* A new run that goes on where another stopped: steps that are not `again` are taken over by
 * `copy`. */
typedef enum err copy_step_fn(struct run_txn *to, const struct run_txn *from, size_t step);
MUST_CHECK enum err run_txn_create_from(struct run_txn *m, const struct run_txn *from,
                                        const bool *again, copy_step_fn *copy, struct problem *p);
/* A new run that waits for a slot; `waits_for` is the limit that is full: a scope, or 0. */
MUST_CHECK enum err run_txn_create_queued(struct run_txn *m, int64_t waits_for, struct problem *p);
/* A new run that waits for its start_at. */
MUST_CHECK enum err run_txn_create_delayed(struct run_txn *m, struct problem *p);
/* A new run that is a part of another: it needs no slot, and begins in a turn of its own. */
MUST_CHECK enum err run_txn_create_child(struct run_txn *m, struct problem *p);

/* An existing one. ERR_RUN_NOT_FOUND when there is none of this number. */
MUST_CHECK enum err run_txn_load(struct run_txn *m, struct tx *tx, int64_t run_num,
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
/* What its steps look like, read from their jobs. */
MUST_CHECK enum err run_txn_show(struct run_txn *m, const struct step_view **ret_views);

/* A queued run gets its slots and begins. */
MUST_CHECK enum err run_txn_admit(struct run_txn *m);
/* A run that waited for its start_at cannot begin: it ends with `m->run.error`. */
MUST_CHECK enum err run_txn_fail(struct run_txn *m);
/* A job is over: its step, and the run, may be too. `job` has its new state already. */
MUST_CHECK enum err run_txn_job_ended(struct run_txn *m, const struct job *job);
/* Does what follows, settles the run when nothing is left, and writes its row. */
MUST_CHECK enum err run_txn_advance(struct run_txn *m);
/* Ends the run at once; the timeline says who did and why (reason: ptr NULL for none).
 * ERR_STATUS_CONFLICT when it is over already. */
MUST_CHECK enum err run_txn_cancel(struct run_txn *m, struct str actor, struct str reason);
/* The run cannot go on, because of `why`: it fails at once, whatever its steps say. Loads one job
 * at a time, so that it works for a run that is too large for anything else. */
MUST_CHECK enum err run_txn_give_up(struct tx *tx, int64_t run_num, enum err why,
                                    const char *message, struct problem *p);
/* The job that waited for this child run is over: the child is cancelled in a turn of its own. */
MUST_CHECK enum err run_txn_cancel_child_later(struct tx *tx, struct uuid child);
/* So much is loaded that the rest had better wait for a turn of its own. */
bool run_txn_is_large(const struct run_txn *m);
/* Through the table, for pause and resume; then goes on. */
MUST_CHECK enum err run_txn_control(struct run_txn *m, enum run_event on, struct str actor);
/* A failed run tries its failed steps again. Its scopes are taken anew by the caller. */
MUST_CHECK enum err run_txn_retry(struct run_txn *m, struct str actor);
/* Not when some items of a map were handed out and others ended before that: which of them are to
 * be evaluated, or asked for, again is for a person to say, with a rerun. */
MUST_CHECK enum err run_txn_can_retry(const struct run_txn *m, bool *ret);
/* The same with its slots: like a start that is refused at a limit. In uc_control.c. */
MUST_CHECK enum err run_retry_failed(struct op *op, struct run_txn *m);
/* For whoever controls a run: ERR_CONCURRENCY when it is not the version that the caller has read
 * (-1: any); and a refusal with a code of its own when its status does not allow it. In
 * uc_control.c. */
MUST_CHECK enum err run_check_version(struct op *op, const struct run_txn *m, int64_t if_match);
MUST_CHECK enum err run_refuse(struct op *op, const struct run_txn *m, enum err code,
                               const char *why);
/* Only the row: for what changes neither steps nor status. */
MUST_CHECK enum err run_txn_save(struct run_txn *m);

/* One line of the run's story. `data` is a JSON object, or ptr NULL. */
MUST_CHECK enum err run_txn_add_event(struct run_txn *m, enum event_type type, struct str data);

#endif
