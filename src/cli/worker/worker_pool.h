/* The state that a worker's slots and its claims share: settings, the server's reachability, and
 * what an answer means. */
#ifndef PAWL_CLI_WORKER_POOL_H
#define PAWL_CLI_WORKER_POOL_H

#include "cli/session.h"

/* A time that never comes. */
#define SLOT_NEVER INT64_MAX

struct worker_pool {
    const struct session *session;
    CURLM *multi;
    int64_t lease_ms;
    int64_t grace_ms;  /* from SIGTERM to SIGKILL */
    bool pass_api_key; /* commands see our PAWL_API_KEY */
    int start_failure; /* errno of a command that could not be started; the worker clears it */
    bool away;         /* the last request got no usable answer */
};

enum answer {
    ANSWER_TAKEN,
    ANSWER_LOST, /* the lease has expired, or there is no such job */
    ANSWER_REFUSED,
    ANSWER_LATER, /* no answer, or one that may differ on a retry */
};
/* Judges the answer to the request on c, which has ended. Prints one line when the server goes
 * away and one when it is back. */
enum answer worker_pool_judge(struct worker_pool *pool, const struct client *c, enum cli_exit rc);
/* The caller owns it; NULL when there is none. */
json_t *answer_json(const struct reply *reply);

/* Random, below a bound that doubles with each try up to five seconds. */
int64_t worker_backoff_ms(int tries);

#endif
