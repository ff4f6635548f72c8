/* The commit loop: one writer, many callers. It takes all ops that wait, runs them inside one
 * transaction, commits once, and only then gives them back. Between batches it fires timers, evicts
 * old keys and folds the log back.
 *
 * Threads: the HTTP loop pushes and collects; the writer thread takes turns. While a turn is under
 * way its mutex is held, so the HTTP loop may take a turn itself when nobody else wants one. */
#ifndef PAWL_RUNTIME_WRITER_H
#define PAWL_RUNTIME_WRITER_H

#include "base/metrics.h"
#include "core/core.h"
#include "runtime/publish.h"

struct writer;

struct writer_config {
    struct core_config core;    /* its meter is the writer's clock and source of seeds too */
    struct receivers receivers; /* of effects */
    struct metric *commit_seconds;
    struct metric *batch_size;
};

/* Starts the writer thread. The caller owns *ret. */
MUST_CHECK enum err writer_start(const struct writer_config *config, struct problem *p,
                                 struct writer **ret);
/* Finishes what was pushed, then ends the thread. Collect once more afterwards. */
void writer_stop(struct writer *loop);
void writer_free(struct writer *loop);

/* A list of ops linked by `next`, in order. */
void writer_push(struct writer *loop, struct op *first);
/* Runs one op at once on this thread; false when a turn is under way or others wait. */
MUST_CHECK bool writer_try_inline(struct writer *loop, struct op *op);
/* What is over, in the order of commits, and the effects for publish_on_loop(). */
void writer_collect(struct writer *loop, struct op **ret_ops, struct effect_parcel **ret_parcels);

/* True while the writer has nothing to do: a hint, it may be over at once. */
bool writer_is_idle(struct writer *loop);
/* True once the store could not prove a commit: nothing is acknowledged any more. */
bool writer_failed(struct writer *loop);
/* True while the log is past its limit: new writes are refused. */
bool writer_log_full(struct writer *loop);
int64_t writer_log_bytes(struct writer *loop);

/* Makes the next commits include a copy of the store; the op comes back with its path as
 * answer.body. */
extern const struct use_case UC_BACKUP;

#endif
