/* The commit loop: one writer, many callers. It takes all ops that wait, runs them inside one
 * transaction, commits once, and only then gives them back. Between batches it fires timers, evicts
 * old keys and folds the log back.
 *
 * Threads: the HTTP loop pushes and collects; the writer thread takes turns. While a turn is under
 * way its mutex is held, so the HTTP loop may take a turn itself when nobody else wants one. */
#ifndef PAWL_RUNTIME_WRITER_H
#define PAWL_RUNTIME_WRITER_H

#include "base/metrics.h"
#include "core/txn/op.h"
#include "core/txn/replay_stats.h"
#include "core/txn/tx.h"

#include <stdatomic.h>

struct commit_loop;

struct commit_loop_config {
    struct db *db; /* the writer's; owned by the caller */
    const struct env *env;
    struct replay_stats *stats;
    struct metric *commit_seconds;
    struct metric *batch_size;
    struct metric *cleanup_failures;
    struct tx_metrics tx_metrics;
    struct polls *polls;
    struct gate *gate;
    int event_fd;                /* written when there is something to collect */
    atomic_int *waiting_callers; /* claims and run waits that want wake-ups */
    const atomic_int *listening; /* callers that want to hear of every event */
    atomic_bool *news_lost;      /* set when they could not be told */
    atomic_ullong *auth_epoch;   /* raised when an API key changed */
    atomic_bool *has_calls;      /* set when a job for the server itself is pending */
    atomic_bool *has_deliveries; /* set when webhooks have something to send */
    atomic_bool *fed;            /* set when the feed has grown */
    bool keeps_all;              /* neither old runs nor old rows of the feed are removed */
    atomic_llong *untold;        /* events that the bus has not been told of; NULL: there is none */
};

/* Starts the writer thread. The caller owns *ret. */
MUST_CHECK enum err commit_loop_start(const struct commit_loop_config *config, struct problem *p,
                                      struct commit_loop **ret);
/* Finishes what was pushed, then ends the thread. Collect once more afterwards. */
void commit_loop_stop(struct commit_loop *loop);
void commit_loop_free(struct commit_loop *loop);

/* A list of ops linked by `next`, in order. */
void commit_loop_push(struct commit_loop *loop, struct op *first);
/* Runs one op at once on this thread; false when a turn is under way or others wait. */
MUST_CHECK bool commit_loop_try_inline(struct commit_loop *loop, struct op *op);
/* What is over, in the order of commits. The caller owns the wakes (free). */
void commit_loop_collect(struct commit_loop *loop, struct op **ret_ops, struct wake **ret_wakes);

/* True while the writer has nothing to do: a hint, it may be over at once. */
bool commit_loop_is_idle(struct commit_loop *loop);
/* True once the store could not prove a commit: nothing is acknowledged any more. */
bool commit_loop_failed(struct commit_loop *loop);
/* True while the log is past its limit: new writes are refused. */
bool commit_loop_log_full(struct commit_loop *loop);
int64_t commit_loop_log_bytes(struct commit_loop *loop);

/* Makes the next commits include a copy of the store; the op comes back with its path as
 * answer.body. */
extern const struct use_case UC_BACKUP;

#endif
