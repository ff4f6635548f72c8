/* Approvals and votes as rows. One approval per job that waits, or waited, for a person, under the
 * job's own place in its run. */
#ifndef PAWL_STORE_RUN_APPROVALS_H
#define PAWL_STORE_RUN_APPROVALS_H

#include "base/arena.h"
#include "domain/approval.h"
#include "store/db.h"

struct approval {
    int64_t run;
    int64_t ordinal;
    int64_t tenant;
    enum approval_status status;
    struct str prompt;
    struct str content;      /* JSON */
    struct str content_hash; /* of what is shown */
    struct str requested_by;
    int64_t requested_at;
    int64_t expires_at; /* -1: never */
    int64_t reminded;
    int64_t escalated_at; /* -1: not */
    int64_t votes;
    struct str decided_by; /* ptr NULL: not decided */
    int64_t decided_at;    /* -1: not decided */
    struct str reason;     /* ptr NULL: none was given */
    struct str edited;     /* JSON; ptr NULL: as it was shown */
    int64_t replays;
    int64_t conflicts;
    int64_t asker;           /* the ordinal of the suspended job that asks; -1: its own job */
    struct str ask_text;     /* JSON of what is asked of whom; ptr NULL: as the step says */
    struct approval_ask ask; /* the same to be used; not from the row: see approval_load() */
};

MUST_CHECK enum err approvals_insert(struct db *db, const struct approval *a);
/* Text is copied to the arena. */
MUST_CHECK enum err approvals_find(struct db *db, int64_t run, int64_t ordinal, struct arena *arena,
                                   bool *ret_found, struct approval *ret);
/* Writes what may change while it is pending, and how it ends. ERR_CONCURRENT_APPROVAL when the row
 * is no longer pending or shows something else than `shown`, its content_hash when it was read. */
MUST_CHECK enum err approvals_update(struct db *db, const struct approval *a, struct str shown);
/* Voids it if it is pending: its job ended without a decision. */
MUST_CHECK enum err approvals_void(struct db *db, int64_t run, int64_t ordinal);
/* Counts a decision that was made again, or one that contradicts it. */
MUST_CHECK enum err approvals_count(struct db *db, int64_t run, int64_t ordinal, bool conflict);

/* Newest or oldest first, those behind a place: the time of the request, the run and the ordinal of
 * the last one that was seen (NULL: from the first). `each` returns false to stop. Text is
 * borrowed. */
typedef bool approval_each(void *ctx, const struct approval *a);
MUST_CHECK enum err approvals_list(struct db *db, int64_t tenant, enum approval_status status,
                                   bool oldest_first, const int64_t *behind, approval_each *each,
                                   void *ctx);

/* --- votes for it --- */

struct vote {
    struct str actor;
    int64_t at;
    struct str reason; /* ptr NULL: none was given */
};

MUST_CHECK enum err votes_insert(struct db *db, int64_t run, int64_t ordinal, const struct vote *v);
MUST_CHECK enum err votes_has(struct db *db, int64_t run, int64_t ordinal, struct str actor,
                              bool *ret);
/* Removes all votes: what they approved has changed. */
MUST_CHECK enum err votes_clear(struct db *db, int64_t run, int64_t ordinal);
typedef void vote_each(void *ctx, const struct vote *v);
MUST_CHECK enum err votes_list(struct db *db, int64_t run, int64_t ordinal, vote_each *each,
                               void *ctx);

/* --- statistics --- */

struct approval_fact {
    struct str workflow_id;
    enum approval_status status;
    int64_t requested_at;
    int64_t decided_at; /* -1: not decided */
    int64_t replays;
    int64_t conflicts;
};

/* Approvals of one tenant that were requested since, the newest first, `limit` at most. */
typedef void approval_fact_each(void *ctx, const struct approval_fact *fact);
MUST_CHECK enum err approvals_facts(struct db *db, int64_t tenant, int64_t since, int64_t limit,
                                    approval_fact_each *each, void *ctx);

#endif
