/* Starting a run that nobody has sent a request for: because a schedule or an entity wants it. The
 * same use case as a request's, with idempotency around it. */
#ifndef PAWL_ENGINE_OWN_START_H
#define PAWL_ENGINE_OWN_START_H

#include "engine/tx.h"

struct own_start {
    int64_t tenant;
    struct str workflow_id;
    struct str input;  /* JSON */
    struct str labels; /* JSON object of texts */
    enum at_limit at_limit;
    struct str key;   /* ptr NULL: none */
    struct str route; /* whose key it is; as `SCHEDULE nightly` */
    struct str actor;
    struct str peer;
};

/* A refusal is no error of the transaction: *ret_refusal is then other than ERR_OK, and p says why.
 * Otherwise *ret_run is the run, new or the one that the key has made before. */
MUST_CHECK enum err own_start(struct tx *tx, const struct own_start *start, struct problem *p,
                              enum err *ret_refusal, struct uuid *ret_run);

#endif
