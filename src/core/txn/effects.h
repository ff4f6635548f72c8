/* What a transaction means for the world outside the store: callers to wake, events to publish,
 * calls to make, things to count. An operation appends effects while it runs. A rollback drops
 * them; once the commit is on disk, the runtime publishes them in order, each exactly once
 * (runtime/publish.h). Nothing else carries news from the core to the runtime.
 *
 * Effects live in memory of their own, which goes with them when they are taken, so publishing
 * allocates nothing and cannot fail. */
#ifndef PAWL_CORE_TXN_EFFECTS_H
#define PAWL_CORE_TXN_EFFECTS_H

#include "base/arena.h"
#include "base/env.h"
#include "domain/run.h"

/* Every kind needs a receiver: runtime/publish.c does not compile without one. */
/* clang-format off */
#define EFFECTS(X)                                                                                 \
    X(EFFECT_JOB_READY)         /* a queue has a job: one waiting claim tries again */             \
    X(EFFECT_RUN_MADE)          /* counted */                                                      \
    X(EFFECT_RUN_ENDED)         /* those that wait for the run are answered; counted */            \
    X(EFFECT_UPDATES_DECIDED)   /* those that wait for updates of an entity ask again */           \
    X(EFFECT_EVENTS_APPENDED)   /* a timeline has grown: subscribers and the bus get the events */ \
    X(EFFECT_CALLS_READY)       /* the server itself has HTTP steps to do */                       \
    X(EFFECT_DELIVERIES_READY)  /* webhooks have something to send, now or later */                \
    X(EFFECT_KEYS_CHANGED)      /* API keys that were looked up before may be wrong */             \
    X(EFFECT_TIMER_ARMED)       /* the writer has to wake at this time at the latest */            \
    X(EFFECT_ENTITY_CALL_ENDED) /* counted */                                                      \
    X(EFFECT_ADMISSION)         /* counted: a run that no request has started, or a try at one */  \
    X(EFFECT_QUEUE_WAIT)        /* measured: how long an admitted run was queued */                \
    X(EFFECT_SPAN)              /* exported: a run or an attempt of a job has ended */
/* clang-format on */

enum effect_kind {
#define X(symbol) symbol,
    EFFECTS(X)
#undef X
        EFFECT_COUNT
};

/* How calls of entities' handlers end. */
#define ENTITY_CALL_ENDS(X)           \
    X(ENTITY_CALL_APPLIED, "applied") \
    X(ENTITY_CALL_FAILED, "failed")   \
    X(ENTITY_CALL_EXPIRED, "expired") \
    X(ENTITY_CALL_STALE, "stale") /* an answer under a lease that is not the current one */

enum entity_call_end {
#define X(symbol, name) symbol,
    ENTITY_CALL_ENDS(X)
#undef X
        ENTITY_CALL_COUNT
};

const char *entity_call_end_name(enum entity_call_end end);

struct span;

struct effect {
    struct effect *next;
    enum effect_kind kind;
    int64_t tenant; /* of all that have to do with one */
    union {
        struct {
            struct str queue;
            int64_t owner, ordinal; /* the job */
            bool leased;            /* by the transaction that made it ready: it wakes nobody */
        } ready;                    /* of JOB_READY */
        struct {
            struct uuid key;        /* the run, or what waiters of the entity are known by */
            int64_t after, through; /* updates with these numbers; 0: any */
            enum run_status status; /* of RUN_ENDED, as the next two */
            struct str shown;       /* the run, for callers that wait; ptr NULL: they read it */
            int64_t version;        /* that is shown */
        } decided;                  /* of RUN_ENDED and UPDATES_DECIDED */
        struct {
            int64_t owner; /* a run or an entity */
            int64_t first_seq, last_seq;
            int64_t feed; /* its row in the feed */
        } events;
        int64_t timer_at;
        const struct span *span; /* of SPAN, in the effects' memory */
        enum entity_call_end call_end;
        struct {
            struct str tenant; /* its id */
            const char *endpoint;
            struct str outcome;
            int64_t wait_ms; /* since it was due; -1: no run was started */
        } admission;         /* of ADMISSION and QUEUE_WAIT, which has only tenant and wait_ms */
    };
};

/* Committed effects with their memory, to be handed to another thread. */
struct effect_parcel {
    struct effect_parcel *next;
    uint64_t seen; /* the runtime's: published when commits up to this one are on disk */
    struct effect *first;
    struct arena memory; /* the parcel itself is in it */
};
void effect_parcel_free(struct effect_parcel *parcel);

struct effects {
    struct arena memory;
    struct effect_parcel *parcel; /* for these effects, so that taking them needs no memory */
    struct effect *first, **last; /* of all transactions since the last time they were taken */

    /* The transaction under way. */
    struct effect **begun;      /* the place of its first effect */
    struct arena_mark mark;     /* the memory as it was before */
    struct effect *last_events; /* may still grow; NULL: none */
    struct effect *unfed;       /* the first EVENTS_APPENDED without a row in the feed */
    struct effect *timer;       /* its one EFFECT_TIMER_ARMED */
    unsigned once;              /* kinds that were appended by effects_once() */
    bool failed;                /* out of memory: the transaction must not commit */
};

void effects_init(struct effects *fx);
void effects_release(struct effects *fx);

/* A transaction begins. One that was neither committed nor rolled back is dropped. */
void effects_begin(struct effects *fx);
/* Its effects stay, to be taken or forgotten. */
void effects_commit(struct effects *fx);
/* Nothing of the transaction is left. */
void effects_rollback(struct effects *fx);

/* NULL: out of memory, and the transaction fails when it commits. */
struct effect *effects_add(struct effects *fx, enum effect_kind kind);
/* For kinds that carry nothing: once per transaction is enough. */
void effects_once(struct effects *fx, enum effect_kind kind);
/* The earliest counts. */
void effects_timer(struct effects *fx, int64_t at_ms);
/* One event; joins the one before it in the same timeline. */
void effects_event(struct effects *fx, int64_t tenant, int64_t owner, int64_t seq);

/* The next EVENTS_APPENDED that needs a row in the feed, from fx->unfed on; NULL: there is none. */
struct effect *effects_next_unfed(struct effects *fx);

/* All committed effects with their memory. NULL: there are none. */
struct effect_parcel *effects_take(struct effects *fx);
/* They have been published and nobody else needs them. */
void effects_forget(struct effects *fx);
/* Nothing is left to be published and no transaction has appended anything. */
bool effects_are_empty(const struct effects *fx);
/* All that is here is committed. */
bool effects_transaction_is_over(const struct effects *fx);

#endif
