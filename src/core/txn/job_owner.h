/* Jobs belong to a run or to an entity. Claims, leases and fencing are the same for all; what else
 * happens is the owner's: one table of functions per kind of owner. core/usecase/job_owners.h finds
 * the table of a job. */
#ifndef PAWL_CORE_TXN_JOB_OWNER_H
#define PAWL_CORE_TXN_JOB_OWNER_H

#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "store/run/jobs.h"

/* --- what workers ask for --- */

/* Jobs of these queues. */
struct claim_input {
    struct str worker_id;
    const struct str *queues;
    size_t queue_count;
    int64_t max;
    int64_t lease_ms;
};

/* One result of a worker. */
struct finish_job_input {
    struct uuid job_id;
    struct str lease_token;
    bool failed;
    struct str output; /* JSON; ptr NULL: none */
    struct str state;  /* JSON object to keep as the run's state; ptr NULL: as it was */
    struct str error;  /* JSON of a failure */
    struct str code;   /* of the failure */
    bool retryable;
};

/* A heartbeat, or the release of a lease. */
struct heartbeat_input {
    struct uuid job_id;
    struct str lease_token;
    struct str note; /* JSON; ptr NULL: none */
};

/* A finished part of a job. Either `output` or `error`. */
struct checkpoint_input {
    struct uuid job_id;
    struct str lease_token;
    struct str name;
    struct str output; /* JSON */
    struct str error;  /* JSON */
    bool retryable;    /* as the error says: for the worker, and not looked at */
};

/* What the job waits for without a worker: a time, a signal until then, or a decision. */
struct suspend_input {
    struct uuid job_id;
    struct str lease_token;
    struct str name;     /* the worker's own for this wait; ptr NULL: none */
    int64_t until;       /* -1: none */
    struct str signal;   /* ptr NULL: none */
    struct str approval; /* JSON that passed definition_check_question(); ptr NULL: none */
};

/* --- what the owner does --- */

struct job_owner_ops {
    /* Hands the job out: writes it to `o` as the worker gets it. */
    enum err (*claim)(struct op *op, struct tx *tx, const struct claim_input *in,
                      const struct job *job, struct json_out *o);
    /* A result came. *ret_changed false: it had come before. */
    enum err (*finish)(struct op *op, struct tx *tx, const struct finish_job_input *in,
                       struct job *job, struct json_out *o, bool *ret_changed);
    /* Renews the lease, and answers. */
    enum err (*heartbeat)(struct op *op, struct tx *tx, const struct heartbeat_input *in,
                          struct job *job);
    /* Gives the lease back, and answers. */
    enum err (*release)(struct op *op, struct tx *tx, const struct heartbeat_input *in,
                        struct job *job);
    /* Stores a finished part of the job, and answers. NULL: its jobs are not durable. */
    enum err (*checkpoint)(struct op *op, struct tx *tx, const struct checkpoint_input *in,
                           struct job *job);
    /* Gives the lease up until what the job waits for has come, and answers. Set with checkpoint.
     */
    enum err (*suspend)(struct op *op, struct tx *tx, const struct suspend_input *in,
                        struct job *job);
    /* The job's time has come: its lease has expired, or what it waited for is there. */
    enum err (*due)(struct tx *tx, struct job *job, struct problem *p);
    /* The job for its readers; the object stays open. */
    enum err (*show)(struct read_tx *tx, const struct job *job, struct problem *p,
                     struct json_out *o);
    /* A dead letter is tried again. On success *job is the new row. */
    enum err (*retry)(struct op *op, struct tx *tx, struct job *job);
    /* May a dead letter be dropped? NULL: always. */
    enum err (*check_drop)(struct op *op);
    bool asks; /* its jobs may wait for approvals */
};

#endif
