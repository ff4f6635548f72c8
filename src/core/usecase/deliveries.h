/* Deliveries of webhooks on their way out and back: the use cases that the engine asks of itself
 * (webhooks.h). Each hand-out has its delivery's number of attempts; a result of an earlier one
 * changes nothing. */
#ifndef PAWL_CORE_USECASE_DELIVERIES_H
#define PAWL_CORE_USECASE_DELIVERIES_H

#include "base/limits.h"
#include "core/txn/op.h"
#include "store/outbox/webhooks.h"

/* Where a delivery belongs: what of the same may be under way at once is bounded. */
struct delivery_place {
    int64_t tenant;
    int64_t webhook;
    int64_t run; /* -1: none */
};

/* What became of an attempt. */
struct delivery_result {
    bool nothing;           /* it was aborted: to be done again */
    int status;             /* 0: there was no answer */
    int64_t retry_after_ms; /* -1: nothing was asked for */
    char error[384];        /* for people; "" after a success */
    const char **outcome; /* filled by the run, for metrics: a literal, NULL: it changed nothing */
};

/* One delivery that was taken, with all that its call needs. */
struct delivery_job {
    struct delivery_job *next;
    struct delivery_place place;
    struct uuid id;
    int64_t attempt;
    struct str url;
    struct str event_id;
    struct str body;
    struct webhook_secret secrets[2];
    size_t secret_count;
    struct delivery_result result; /* who sends fills it */
    const char *outcome;           /* see there */
    struct op op;                  /* likewise, to bring the result back */
    char text[];                   /* what url, event_id and body point to */
};

void delivery_job_free(struct delivery_job *job);

/* Takes what is due, webhooks in turn. */
struct take_deliveries_input {
    size_t room; /* at most so many */
    struct delivery_place under_way[CALLS_IN_FLIGHT_MAX];
    size_t under_way_count;
    bool first; /* since the server started: what an earlier one was sending is due */
    struct taken_deliveries *taken;
};
/* Filled by the run. */
struct taken_deliveries {
    struct delivery_job *first; /* the caller's, even if the op came to nothing */
    bool left_some;             /* there may be more when one under way is over */
    bool unfinished;            /* not all webhooks were asked: to be asked again at once */
    int64_t next_at;            /* when the next one is due; -1: none waits for a time */
    int64_t turn; /* the webhook that was the last to have its turn; kept by the caller */
};
extern const struct use_case UC_TAKE_DELIVERIES;

/* The input is the struct delivery_job, with its result. */
extern const struct use_case UC_FINISH_DELIVERY;

struct tx;
/* Nothing is sent any more until somebody enables it again. Audited. */
MUST_CHECK enum err webhook_disable(struct tx *tx, struct webhook *w, const char *reason);

#endif
