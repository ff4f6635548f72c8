/* The token by which a worker proves that it has the lease of a job: only the holder was told it,
 * and another hand-out of the job has another one. */
#ifndef PAWL_CORE_TXN_LEASE_H
#define PAWL_CORE_TXN_LEASE_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

enum { LEASE_TOKEN_MAX = 64 };

/* A lease that an op has given; answer.handed of the op is a list of them. */
struct handed_job {
    struct uuid job_id;
    char token[LEASE_TOKEN_MAX];
};

/* NUL-terminated. Signed with a key of the store, so that nobody can compute it from what is shown
 * of the job. By the writer. */
void lease_token(const struct tx *tx, const struct job *job, char out[static LEASE_TOKEN_MAX]);
/* Is it the token of the last hand-out? */
bool lease_is_current(const struct tx *tx, const struct job *job, struct str token);
/* A token of an earlier hand-out of the job, or of one that has ended, of which its timeline does
 * not tell yet: *ret_epoch says which. */
bool lease_is_news(const struct job *job, struct str token, int64_t *ret_epoch);

/* Writes down that the op's caller is given the job. */
void lease_note_handed(struct op *op, struct uuid job_id, const char *token);

#endif
