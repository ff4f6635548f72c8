/* Jobs and their leases as workers see them: which token was handed out when, what was sent under
 * it, and what was acknowledged. */
#ifndef PAWL_TESTS_SIM_LEASES_H
#define PAWL_TESTS_SIM_LEASES_H

#include "sim/runs.h"

enum { TOKEN_LEN_MAX = 63 };

struct seen_job;

/* What can be sent under a lease. */
enum job_verb { VERB_COMPLETE, VERB_FAIL, VERB_RELEASE, VERB_HEARTBEAT };

/* One hand-out of a job. */
struct lease {
    struct seen_job *job;
    char token[TOKEN_LEN_MAX + 1];
    int64_t attempt;
    int64_t sent, answered; /* of the claim, by sim.clock */
    int64_t expires_ms;     /* by the server's clock, as last acknowledged */
    int64_t renewals;       /* heartbeats whose answer is not known */
    bool ends;              /* something that ends it was sent */
    int64_t ended;          /* by sim.clock: an answer said that it has ended; 0: none did */
    struct lease *older;    /* of the same job */
    struct lease *next;     /* of all */
};

struct seen_job {
    char id[RUN_ID_LEN + 1];
    char run_id[RUN_ID_LEN + 1];
    char step[16];
    int place, tenant;
    int64_t item; /* -1: not of a list */
    bool compensates;
    struct lease *newest; /* that was seen last */
    json_t *sent;         /* all outputs that workers have sent: {token: [output, …]} */
    json_t *output;       /* acknowledged; NULL: none is */
    int64_t completed;    /* by sim.clock: when */
    struct seen_job *next;
};

/* An answer hands out jobs. The call is a claim, or a batch with one. */
void jobs_claimed(struct sim *w, const struct call *c, const json_t *jobs, bool keyed);
/* A worker is about to send this; the output of a completion is kept. */
void lease_used(struct lease *l, enum job_verb verb, const json_t *output);
/* Something was answered to it: the status of a result, or "" with the code of a refusal. `output`:
 * of a completion; `retryable`: of a failure. */
struct job_answer {
    enum job_verb verb;
    const char *status;
    const char *code;
    const json_t *output;
    const json_t *body; /* the whole answer */
};
void lease_answered(struct sim *w, struct lease *l, const struct call *c,
                    const struct job_answer *a);

struct seen_job *seen_job_of(struct sim *w, const char *id);
/* One that was handed out. */
struct lease *lease_find(struct sim *w, const char *job_id, const char *token);
struct seen_job *seen_jobs(struct sim *w);
/* One by lot; `open`: that may still be valid. NULL: there is none. */
struct lease *leases_any(struct sim *w, bool open);
/* The time at a server. */
int64_t place_now_ms(const struct sim *w, int place);

#endif
