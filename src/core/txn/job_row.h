/* The part of creating and changing a job that runs and entities share: its row, its timer and
 * its place in its queue, always through the state table. The owner writes the timeline:
 * job_change.h, entity_call.h. */
#ifndef PAWL_CORE_TXN_JOB_ROW_H
#define PAWL_CORE_TXN_JOB_ROW_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

/* The queue of jobs that the server does itself; workers cannot claim from it. */
#define HTTP_QUEUE OWN_QUEUES "http"
#define OWN_QUEUES "pawl:"
/* The queue that marks a question: the job that asks people on behalf of a suspended job. It is in
 * none of its step's items, and never pending. */
#define QUESTION_QUEUE OWN_QUEUES "approval"

/* A new job of the owner, pending, not stored, without its id. */
struct job job_row_blank(const struct tx *tx, int64_t owner, int64_t ordinal, int64_t tenant);
/* Stores a new job in its current state, arms its timer and wakes waiting claims. */
MUST_CHECK enum err job_row_create(struct tx *tx, struct job *job);
/* The same for the first job of a run whose own row comes next. */
MUST_CHECK enum err job_row_create_with_run(struct tx *tx, struct job *job);
/* Fill in output, error, worker and due_at before; the rest is done here. On success *job is the
 * new row. ERR_STATUS_CONFLICT when its state has no such edge. */
MUST_CHECK enum err job_row_change(struct tx *tx, struct job *job, enum job_event on);
/* Writes a row whose state stays: a heartbeat. The timer follows due_at. */
MUST_CHECK enum err job_row_touch(struct tx *tx, const struct job *old, const struct job *job);
/* Deletes the row, its timer and its place in the queue. */
MUST_CHECK enum err job_row_remove(struct tx *tx, const struct job *job);

bool job_is_question(const struct job *job);
/* The step of a run's job. A row whose step the definition does not have is damaged: it gets a
 * step without a name that needs no approval. */
const struct step_def *job_step(const struct definition *def, const struct job *job);

#endif
