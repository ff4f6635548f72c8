/* Steps that wait for signals: for the first of some names, or for one of each; and suspended jobs
 * that wait for one. A job takes a signal once and for all; one that nobody waits for stays until a
 * job does. */
#ifndef PAWL_CORE_RUN_SIGNAL_WAIT_H
#define PAWL_CORE_RUN_SIGNAL_WAIT_H

#include "core/run/run_txn.h"
#include "store/run/signals.h"

/* A new job of such a step takes what came early: it is over, or scheduled to wait. ERR_EXPRESSION
 * when all have come and are too large for an output. */
MUST_CHECK enum err signal_wait_begin(struct run_txn *m, const struct step_def *step,
                                      struct job *job, struct problem *p);

/* The first job that waits for the name. */
MUST_CHECK enum err signal_wait_find(struct run_txn *m, struct str name, bool *ret_found,
                                     struct job *ret);
/* Hands the signal to it. Unless the job still waits, the caller advances the run. */
MUST_CHECK enum err signal_wait_give(struct run_txn *m, const struct run_signal *s,
                                     struct job *job);
/* Its time is over. */
MUST_CHECK enum err signal_wait_expire(struct run_txn *m, struct job *job);

/* Of a job that waits for all: the names that have come, and those that are missing, as members of
 * an object. */
MUST_CHECK enum err signal_wait_show(struct db *db, const struct step_def *step,
                                     const struct job *job, struct json_out *o);

#endif
