/* The writer: one thread that commits for many callers. It takes all waiting ops, runs them and
 * those that come meanwhile in one transaction, and commits once. While that commit goes to disk it
 * runs the next batch; the settler (runtime/settler.h) returns the ops when they are on disk.
 * Between batches the writer does background work and housekeeping of the write-ahead log.
 *
 * Threads: the HTTP loop pushes and collects. A mutex guards each turn on the connection, so the
 * HTTP loop can take a turn itself while the writer thread is idle. */
#ifndef PAWL_RUNTIME_WRITER_H
#define PAWL_RUNTIME_WRITER_H

#include "base/metrics.h"
#include "core/core.h"
#include "runtime/durability.h"
#include "runtime/publish.h"

struct writer;

struct writer_config {
    struct core_config core;    /* its meter is also the writer's clock and source of seeds */
    struct receivers receivers; /* of effects */
    struct durability *durability;
    struct metric *commit_seconds;
    struct metric *batch_size;
};

/* Starts the writer thread. The caller owns *ret. */
MUST_CHECK enum err writer_start(const struct writer_config *config, struct problem *p,
                                 struct writer **ret);
/* Finishes all ops that were pushed, then ends the thread. Collect once more afterwards. */
void writer_stop(struct writer *loop);
void writer_free(struct writer *loop);

/* Adds a list of ops, linked by `next`. They run in this order. */
void writer_push(struct writer *loop, struct op *first);
/* Runs one op at once on this thread. False when a turn or a sync is under way or other ops wait.
 */
MUST_CHECK bool writer_try_inline(struct writer *loop, struct op *op);
/* Takes the finished ops, in the order of commits, and the effects for publish_on_loop(). */
void writer_collect(struct writer *loop, struct op **ret_ops, struct effect_parcel **ret_parcels);

/* See core_keys(). */
struct idem_keys *writer_keys(struct writer *loop);

/* True after the store could not prove a commit: no more changes are acknowledged. */
bool writer_failed(struct writer *loop);
/* True while the write-ahead log exceeds its limit: new writes are refused. */
bool writer_log_full(struct writer *loop);
int64_t writer_log_bytes(struct writer *loop);

/* Copies the store in steps between commits. The op returns with the path of the copy as
 * answer.body. */
extern const struct use_case UC_BACKUP;

#endif
