/* The columns of a job's row, for jobs.c and job_queue.c. */
#ifndef PAWL_STORE_RUN_JOB_COLUMNS_H
#define PAWL_STORE_RUN_JOB_COLUMNS_H

#include "domain/job.h"
#include "store/columns.h"

#define COLUMN_BIND_JOB_STATE(value) COLUMN_BIND_WORD(job_state_name(value))
#define COLUMN_READ_JOB_STATE(rows, at) COLUMN_READ_WORD(rows, at, job_state_of, JOB_STATE_COUNT)
#define COLUMN_KEEP_JOB_STATE(arena, value)

#define JOB_COLUMNS(X, p)                            \
    X(p, 1, INT, run, owner)                         \
    X(p, 2, COUNT, ordinal, ordinal)                 \
    X(p, 3, UUID, id, id)                            \
    X(p, 4, INT, tenant, tenant)                     \
    X(p, 5, INT, step, step)                         \
    X(p, 6, JOB_STATE, state, state)                 \
    X(p, 7, TEXT, queue, queue)                      \
    X(p, 8, INT, urgency, urgency)                   \
    X(p, 9, COUNT, attempt, attempt)                 \
    X(p, 10, COUNT, lease_epoch, lease_epoch)        \
    X(p, 11, TEXT, worker, worker)                   \
    X(p, 12, TIME_OR_NONE, due_at, due_at)           \
    X(p, 13, TEXT, output, output)                   \
    X(p, 14, TEXT, error, error)                     \
    X(p, 15, TIME, created_at, created_at)           \
    X(p, 16, TIME_OR_NONE, started_at, started_at)   \
    X(p, 17, TIME_OR_NONE, finished_at, finished_at) \
    X(p, 18, COUNT, item, item)                      \
    X(p, 19, BOOL, undo, undo)                       \
    X(p, 20, TEXT, input, input)                     \
    X(p, 21, COUNT_OR_NONE, lease_ms, lease_ms)      \
    X(p, 22, TEXT, note, note)                       \
    X(p, 23, UUID_OR_NONE, child, child)             \
    X(p, 24, TIME_OR_NONE, dead_at, dead_at)         \
    X(p, 25, COUNT, stale_epoch, stale_epoch)

#define SELECT_OWN_ROWS COLUMNS_SELECT(JOB_COLUMNS, "") ", 0 FROM jobs"

/* How old it is for its queue, as the index jobs_claimable has it too: jobs_age() in SQL. */
#define JOB_AGE "CASE WHEN step < 0 THEN created_at * 4096 ELSE run END"

#endif
