/* Lease tokens. A worker proves with its token that it holds the lease of a job: only the holder
 * knows it, and every assignment of the job has another one. */
#ifndef PAWL_CORE_TXN_LEASE_H
#define PAWL_CORE_TXN_LEASE_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

enum { LEASE_TOKEN_MAX = 64 };

/* A lease that an op granted; answer.handed of the op is a list of them. */
struct handed_job {
    struct uuid job_id;
    char token[LEASE_TOKEN_MAX];
};

/* NUL-terminated. Signed with a secret of the store, so that it cannot be computed from what the
 * API shows. For the writer only. */
void lease_token(const struct tx *tx, const struct job *job, char out[static LEASE_TOKEN_MAX]);
/* Is it the token of the latest assignment? */
bool lease_is_current(const struct tx *tx, const struct job *job, struct str token);
/* Is it the token of an old or expired lease that the timeline does not mention yet? *ret_epoch
 * is its number. */
bool lease_is_news(const struct job *job, struct str token, int64_t *ret_epoch);

/* Records that the op's caller gets the job. */
void lease_note_handed(struct op *op, struct uuid job_id, const char *token);

#endif
