/* Starting a run that nobody has sent a request for: because a schedule or an entity wants it. The
 * same use case as a request's, with idempotency around it. */
#ifndef PAWL_CORE_USECASE_INTERNAL_START_H
#define PAWL_CORE_USECASE_INTERNAL_START_H

#include "core/txn/tx.h"

struct internal_start {
    int64_t tenant;
    struct str workflow_id;
    struct str input;  /* JSON */
    struct str labels; /* JSON object of texts */
    enum at_limit at_limit;
    struct str key;   /* ptr NULL: none */
    struct str route; /* whose key it is; as `SCHEDULE nightly` */
    struct str actor;
    struct str peer;
    const char *endpoint; /* what it is counted under; NULL: the request around it is counted */
    int64_t due_at;       /* since when it waits to be started */
};

struct internal_start_made {
    enum err refusal;    /* ERR_OK: none */
    struct uuid run;     /* without one: the run, new or the one that the key has made before */
    const char *outcome; /* as in struct answer */
};

/* A refusal is no error of the transaction: p says why. */
MUST_CHECK enum err internal_start(struct tx *tx, const struct internal_start *start,
                                   struct problem *p, struct internal_start_made *ret);

#endif
