/* Reader threads. Each has its own read-only connection. An op reads from one snapshot, for a
 * limited time. */
#ifndef PAWL_RUNTIME_READERS_H
#define PAWL_RUNTIME_READERS_H

#include "core/txn/op.h"
#include "core/txn/read_tx.h"
#include "runtime/durability.h"

struct readers;

struct readers_config {
    struct str store_url;
    const struct env *env;
    int event_fd; /* written to when there are ops to collect */
    struct worker_polls *polls;
    struct minute_stats *minutes;
    struct durability *durability; /* says what each op may have seen */
};

/* Opens READERS connections and starts a thread for each. The caller owns *ret. */
MUST_CHECK enum err readers_start(const struct readers_config *config, struct problem *p,
                                  struct readers **ret);
/* Before the first op: where searches look for keys. */
void readers_set_keys(struct readers *readers, struct idem_keys *keys);
/* Finishes all ops that were pushed, then ends the threads. Collect once more afterwards. */
void readers_stop(struct readers *readers);
void readers_free(struct readers *readers);

void readers_push(struct readers *readers, struct op *op);
/* Takes the finished ops, linked by `next`. They may have seen commits that are not on disk yet:
 * op->seen. */
struct op *readers_collect(struct readers *readers);

#endif
