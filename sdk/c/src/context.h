/* What a handler gets, and the stored results that make it durable. */
#ifndef PAWL_CONTEXT_H
#define PAWL_CONTEXT_H

#include "worker.h"

struct pawl_ctx {
    struct pawl_worker *worker;
    struct held *held;
    char *key;                /* for side effects: of the job, or of the step that runs */
    json_t *outputs, *errors; /* by name */
    const json_t *resumed;    /* what ended the last wait, or NULL */
    json_t *uses;             /* how often each name was used */
    bool suspended;
    double clock_ms;   /* of the client's clock, when … */
    int64_t server_ms; /* … the server's clock was this */
    json_t *new_state;
    struct pawl_error error;
};

/* False without memory. The job must be held until the end. */
bool context_begin(struct pawl_ctx *ctx, struct pawl_worker *worker, struct held *held);
void context_end(struct pawl_ctx *ctx);

/* The error that `result` stands for: the context's own, or one that has only the name of its kind.
 */
json_t *context_failure(const struct pawl_ctx *ctx, enum pawl_err result);

#endif
