/* One request as the engine sees it: who asks, what for, under which key, and what came of it.
 *
 * An op is made by the api layer, belongs to its request, and is in one thread's hands at a time:
 * the HTTP loop submits it, the writer or a reader runs it, and the loop gets it back through
 * done(). */
#ifndef PAWL_CORE_TXN_OP_H
#define PAWL_CORE_TXN_OP_H

#include "base/arena.h"
#include "base/env.h"
#include "domain/idempotency.h"
#include "domain/role.h"
#include "domain/tenant.h"

struct op;
struct read_tx;
struct tx;

struct caller {
    struct str tenant; /* its id; "*" is all of them, for workers */
    struct str actor;  /* who, for the timeline and the audit trail */
    struct str peer;   /* from where */
    enum role role;
    bool creates_tenant; /* --dev: a tenant exists as soon as it is named */
    bool tenant_known;   /* it has keys, in another shard than its own: that may not know it yet */
    bool all_tenants;    /* its key is for "*", whichever tenant it names */
};

/* What an answer says about `created`, which is true for the first caller only. */
enum answer_created { CREATED_UNSAID, CREATED_NO, CREATED_YES };

enum { CURSOR_MAX = 512 };

struct answer {
    int status;
    /* A JSON object, whole before the commit and sent from here: after a commit nothing is left
     * that could fail. */
    struct buf body;
    enum answer_created created; /* see answer_begin() */
    /* What is kept for replays instead of body when that holds a secret; empty otherwise. */
    struct buf kept_body;
    struct str born;   /* what is kept instead of body, in the op's arena: see run_birth.h */
    bool key_in_run;   /* the run's row has the record of the key */
    int64_t key_num;   /* reserved for the record of the key; 0: none is */
    struct buf handed; /* jobs that the caller is given; see lease.h */
    bool has_run;
    struct uuid run_id;
    int64_t run_version;           /* of the run that is shown; 0: none is, or it is replayed */
    bool run_over;                 /* or: what came of the update is known */
    int64_t update_of, update_seq; /* the entity and the number of the update; 0: not known */
    bool replayed;
    bool already_decided;         /* the same decision as one before: a replay without a key */
    bool changed_nothing;         /* not worth remembering under a key, as an empty claim */
    bool keep_waiting;            /* a claim found nothing and may wait for more */
    const char *outcome;          /* of a start, for metrics; a literal */
    bool refusal_wrote;           /* a refusal that left an event in the timeline */
    char next_cursor[CURSOR_MAX]; /* "" at the end of a list */
};

struct use_case {
    const char *name; /* the `endpoint` of metrics */
    /* Exactly one of these two is set. A read runs on a reader's thread, in a snapshot. A write
     * runs on the writer's, is remembered under its key, and runs again from the start when its
     * batch is rolled back. An error goes to op->problem; a write that returns one must leave the
     * transaction's rows as they were. */
    enum err (*read)(struct op *op, struct read_tx *tx);
    enum err (*write)(struct op *op, struct tx *tx);
    bool decides;       /* counts as a decision of a person in metrics */
    const char *admits; /* counts as an admission in metrics, under this endpoint; NULL: not */
    int64_t read_ms;    /* how long a reader may take; 0: READ_MS_MAX */
    bool checks;        /* its input is a struct doctor_input, and what it found goes to metrics */
    bool sees_counts;   /* replay counts that wait for a commit are written before it runs */
};

enum { FAILED_ITEMS_MAX = 16 }; /* of one op: each costs another go at it */

struct failed_item {
    int64_t item; /* whatever names it within the op */
    enum err err;
    char detail[PROBLEM_DETAIL_MAX];
};

struct op {
    const struct use_case *use_case;
    struct caller caller;
    struct idem_claim idem;
    const void *input;    /* the use case's own struct */
    const char *endpoint; /* of an admission, where the route knows better than the use case */
    size_t bytes;         /* the weight of the request while it waits */

    /* Set by the run. */
    enum err err;
    struct problem problem;
    struct answer answer;
    int64_t tenant_num;    /* 0 when the tenant is not stored */
    struct tenant *tenant; /* as read_tx_tenant() has found it, while the op runs; NULL: not yet */
    int64_t known_num;     /* the idempotency record that answered, to be counted; 0: none did */
    struct failed_item *failed_items; /* FAILED_ITEMS_MAX places, or NULL; outlives one go at it */
    size_t failed_item_count;
    bool runs_again; /* an item was just added there */

    /* The tenant has a gate outside the store, and the op has not passed it: nothing is decided
     * yet. The op comes again when it has. */
    bool gate_wanted;
    struct gate_policy gate_policy; /* the tenant's, if one is wanted */
    bool gate_passed;
    struct gate_visit *gate_visit; /* runtime/gate_visits.h; NULL: none */

    /* A replay shows the run as it is now, not as the first answer did. */
    bool shows_now;
    /* How long the caller is willing to wait for a claim or a run's end; 0: not at all. */
    int64_t wait_ms;

    /* Asked on the loop thread: can the caller still be given something? NULL: always. */
    bool (*is_there)(const struct op *op);
    /* Called on the loop thread when it is over. */
    void (*done)(struct op *op);
    /* Called on the loop thread when it takes too long; done() still comes, and then only frees. */
    void (*timed_out)(struct op *op);
    void *owner;

    /* The engine's. */
    struct op *next;
    uint64_t seen;            /* answered when commits up to this one are on disk */
    int64_t batch_begun_ns;   /* of the first op of a batch; else 0 */
    struct op *older, *newer; /* in flight, by age */
    int64_t submitted_ms;     /* waits are counted from here */
    int64_t entered_ms;       /* when the store got it */
    int64_t submitted_ns;
    bool joined; /* a waiting claim that the writer took: see runtime/waiters.h */
    struct {
        int64_t owner, ordinal; /* 0: none */
        int64_t tenant;
        struct str queue; /* of the claim's input */
    } woken_by;           /* the job that woke this claim */
    bool abandoned;
    bool decided; /* by engine_replay(): only waiting and counting are left */
};

/* For use cases that answer many items at once: each of them is done whole or not at all. One that
 * fails after it has changed something cannot be undone by itself; it is written down here, the
 * transaction is rolled back, and when the op runs again the item is answered by its error without
 * being tried. */

/* Writes it down, with the problem of the op, and returns its error. Without room for it the op
 * fails as a whole: the error of that. */
MUST_CHECK enum err op_fail_item(struct op *op, int64_t item, enum err e);
/* NULL when the item may be tried. */
const struct failed_item *op_failed_item(const struct op *op, int64_t item);

void op_init(struct op *op, const struct use_case *use_case);
void op_release(struct op *op);
/* Forgets what an earlier run of it left. */
void op_clear_result(struct op *op);
/* The metrics label `outcome` of a start that was answered. */
struct str op_admission_outcome(const struct op *op);

/* Begins a body that says `created`, with that as its first member; others follow. */
void answer_begin(struct answer *a, enum answer_created created);
/* What is kept under an idempotency key: the body without its beginning, or kept_body. */
struct str answer_to_keep(const struct answer *a);
/* Takes over another body, after the commit. False when that has failed: the old one stands. */
bool answer_replace(struct answer *a, struct buf *body);

#endif
