/* Asking people and taking their answers, inside a transaction: the approval's row, its job, the
 * timeline and the run change together. What an answer means is decided in domain/approval.h. */
#ifndef PAWL_CORE_RUN_APPROVAL_TXN_H
#define PAWL_CORE_RUN_APPROVAL_TXN_H

#include "core/run/run_txn.h"
#include "store/run/approvals.h"

/* Who decides when nobody did in time. */
#define APPROVAL_BY_PAWL "pawl"

/* What is to be shown for this job, filled in; nothing is stored. Sets the job's state and time.
 * `item` is NULL where the step has one only. ERR_EXPRESSION with p when it cannot be evaluated. */
MUST_CHECK enum err approval_compose(struct run_txn *m, struct job *job, const struct json *item,
                                     struct problem *p, struct approval *ret);
/* The same for a question that a suspended job asks, whose job is new. `ask` has been checked, and
 * outlives the transaction. */
MUST_CHECK enum err approval_compose_question(struct run_txn *m, struct job *question,
                                              struct str ask_text, int64_t asker,
                                              struct approval *ret);
/* Stores it and tells of it. The job is stored. */
MUST_CHECK enum err approval_request(struct run_txn *m, const struct job *job,
                                     const struct approval *a);

/* The approval of the job with a->ask, in the arena of `tx`. */
MUST_CHECK enum err approval_find(struct read_tx *tx, const struct definition *def,
                                  const struct job *job, bool *ret_found, struct approval *ret);
/* Fills in a->ask of one that was read otherwise. */
MUST_CHECK enum err approval_load_ask(struct read_tx *tx, const struct definition *def,
                                      const struct job *job, struct approval *a);

/* Hash of what is shown, as lower-case hex in the transaction's arena. */
MUST_CHECK enum err approval_hash(struct tx *tx, struct str prompt, struct str content,
                                  struct str *ret);

/* Decided: a->status, decided_by, reason and edited are set, and `shown` is its content_hash as it
 * was read. Stores it and changes the job; the caller then advances the run.
 * ERR_CONCURRENT_APPROVAL when somebody else was first; then nothing is changed. */
MUST_CHECK enum err approval_settle(struct run_txn *m, struct job *job, struct approval *a,
                                    struct str shown);
/* A vote, and more are needed: `voter` has been counted. */
MUST_CHECK enum err approval_add_vote_event(struct run_txn *m, const struct job *job,
                                            const struct approval *a, struct str voter,
                                            bool edited);
/* The job's time has come: a reminder, an escalation, or the end. *ret_over: it is decided, or its
 * time is over; the caller advances the run. */
MUST_CHECK enum err approval_due(struct run_txn *m, struct job *job, bool *ret_over);

/* Does it count as approved, by a person or by its end? */
bool approval_is_granted(const struct approval *a);
/* Has the job been approved? Not when nobody was asked. */
MUST_CHECK enum err approval_of_job(const struct run_txn *m, const struct job *job,
                                    bool *ret_granted);

#endif
