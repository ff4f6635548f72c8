/* The part of making and changing a job that is the same whoever owns it, a run or an entity: its
 * row, its timer and its place in its queue, always through the table of states. What the timeline
 * says of it is the owner's business: job_change.h, entity_call.h. */
#ifndef PAWL_CORE_TXN_JOB_ROW_H
#define PAWL_CORE_TXN_JOB_ROW_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

/* The queue of jobs that the server does itself; workers cannot claim from it. */
#define HTTP_QUEUE OWN_QUEUES "http"
#define OWN_QUEUES "pawl:"

/* A new job of the owner, pending, not stored. */
struct job job_row_blank(const struct tx *tx, int64_t owner, int64_t ordinal, int64_t tenant);
/* Stores a new job in the state it has, arms its timer and wakes who waits for it. */
MUST_CHECK enum err job_row_create(struct tx *tx, struct job *job);
/* Fill in output, error, worker and due_at before; the rest is done here. On success *job is the
 * new row. ERR_STATUS_CONFLICT when its state has no such edge. */
MUST_CHECK enum err job_row_change(struct tx *tx, struct job *job, enum job_event on);
/* Writes a row whose state stays: a heartbeat. The timer follows due_at. */
MUST_CHECK enum err job_row_touch(struct tx *tx, const struct job *old, const struct job *job);
/* As if it had never been. */
MUST_CHECK enum err job_row_remove(struct tx *tx, const struct job *job);

/* The step that a job of a run is of. A row that names one which the definition does not have is
 * damaged: it gets a step that has no name and asks nobody. */
const struct step_def *job_step(const struct definition *def, const struct job *job);

#endif
