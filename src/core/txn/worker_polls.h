/* When each worker last polled each queue. Kept in memory only and bounded; a restart loses it.
 * Written by the writer, read by the readers. */
#ifndef PAWL_CORE_TXN_WORKER_POLLS_H
#define PAWL_CORE_TXN_WORKER_POLLS_H

#include "base/env.h"
#include "base/limits.h"
#include "base/str.h"

struct worker_polls;

/* One worker at one queue. */
struct poll_entry {
    char tenant[TENANT_ID_MAX + 1]; /* "*": it serves all tenants */
    char worker[NAME_MAX_LEN + 1];
    char queue[NAME_MAX_LEN + 1];
    int64_t last_at; /* 0: this place is free */
};

/* `now_ms` is when the server started: before it nothing is known. NULL: no memory. */
MUST_CHECK struct worker_polls *worker_polls_new(int64_t now_ms);
void worker_polls_free(struct worker_polls *polls);

/* `polls` may be NULL: then nothing is recorded. */
void worker_polls_note(struct worker_polls *polls, struct str tenant, struct str worker,
                       struct str queue, int64_t now_ms);

int64_t worker_polls_since(const struct worker_polls *polls);
/* Lists the polls of the tenant's own workers and of workers for all tenants. The entry is
 * borrowed for the call, which must be short because the writer waits for it. */
typedef void poll_each(void *ctx, const struct poll_entry *entry);
void worker_polls_list(struct worker_polls *polls, struct str tenant, poll_each *each, void *ctx);

/* The polls of one queue that concern one tenant's jobs. */
struct queue_polls {
    int64_t last_at; /* -1: nobody has polled it since the server started */
    int64_t workers; /* that polled within POLLED_LATELY_MS */
};
struct queue_polls worker_polls_of_queue(struct worker_polls *polls, struct str tenant,
                                         struct str queue, int64_t now_ms);

#endif
