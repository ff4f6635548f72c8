/* The writer's transaction: a batch of ops with the rows that they have loaded and changed. Changed
 * counters are written once, at its end. Caches that live from one transaction to the next are in
 * read_tx.h and tx_memory.h; a rollback clears all of them. */
#ifndef PAWL_CORE_TXN_TX_H
#define PAWL_CORE_TXN_TX_H

#include "base/crypto.h"
#include "base/trace/span.h"
#include "core/txn/effects.h"
#include "core/txn/op.h"
#include "core/txn/read_tx.h"
#include "core/txn/tx_memory.h"
#include "domain/tenant.h"
#include "domain/workflow/definition.h"
#include "store/run/events.h"
#include "store/secrets.h"

struct job;

struct cpu_shares;
struct freed_slots;
struct release_rates;

/* The tenant whose turn it is when a worker of all tenants claims jobs of a queue. */
struct claim_turn {
    uint64_t queue;
    int64_t tenant;
    int64_t left; /* jobs until the next tenant's turn */
};

enum { CLAIM_TURNS = 1024 }; /* queues; with more of them, some turns are lost now and then */

/* The queued run that is being started, and its tenant; 0: none. */
struct dispatching {
    int64_t tenant;
    int64_t run;
};

/* A tenant whose queued runs cannot be started although there is room. They wait until `until_ms`.
 */
struct aside_tenant {
    int64_t tenant;
    int64_t until_ms;
};

enum { ASIDE_TENANTS_MAX = 16 }; /* with more, one of them is tried again early */

/* Events of one owner that are not in its timeline yet: see tx_add_event(). */
struct unwritten_events {
    int64_t owner; /* 0: there are none */
    int64_t first_seq, last_seq;
    struct buf packed;
};

struct tx {
    /* The read transaction inside; its members are members of this struct too. */
    union {
        struct read_tx read;
        struct {
            READ_TX_MEMBERS
        };
    };
    const struct env *env;
    struct hmac_key lease_key; /* signs lease tokens */
    /* Those that have signed leases of jobs which came from other stores. */
    struct hmac_key *other_lease_keys;
    size_t other_lease_key_count;
    int64_t touched; /* the number of changes to counters that are written later */
    /* Caches from one transaction to the next; see tx_memory.h. */
#define X(member, type, until, functions) type *member;
    TX_MEMORY(X)
#undef X
    struct effects effects;
    struct unwritten_events unwritten;
    bool exports_spans;
    bool has_bus; /* keep the feed until the bus has acknowledged its events */
    bool stale;   /* clear all caches when the next transaction begins */
    struct claim_turn claim_turns[CLAIM_TURNS];
    struct cpu_shares *cpu;         /* survives rollbacks: the time was spent */
    bool has_gate;                  /* outside the store, for tenants that ask for it */
    struct freed_slots *freed;      /* slots that the present op freed */
    bool dispatches_later;          /* see follow_up.h */
    bool dispatch_failed;           /* a queued run could not start */
    struct dispatching dispatching; /* the run that was starting when it failed */
    struct aside_tenant asides[ASIDE_TENANTS_MAX];
    size_t aside_count;
    struct release_rates *release_rates; /* how fast slots have been freeing */
    int64_t turn_until_ms; /* of background work, by the monotonic clock: the next item can wait */
};

/* `db` and `env` outlive it. */
MUST_CHECK enum err tx_init(struct tx *tx, struct db *db, const struct env *env);
void tx_release(struct tx *tx);

/* Background work: has this turn taken so long that the next item waits for another one? */
bool tx_turn_is_over(const struct tx *tx);
/* Begins a transaction; clears caches that may be out of date. */
void tx_start(struct tx *tx, int64_t now_ms);
/* After the last transaction of a call: frees the rows that were loaded. Effects and caches stay.
 */
void tx_end(struct tx *tx);
/* Writes the counters that changed, and the feed. */
MUST_CHECK enum err tx_flush(struct tx *tx);
/* Flushes and commits. The effects can then be published. */
MUST_CHECK enum err tx_commit(struct tx *tx);
/* Call it when settings changed: clears what was loaded. */
void tx_forget(struct tx *tx);
/* Call it after db_rollback(): clears everything that the transaction has read or made. */
void tx_rolled_back(struct tx *tx);
/* Stores the tenant if it is new. Called before the first row that belongs to it. */
MUST_CHECK enum err tx_tenant_ensure(struct tx *tx, struct tenant *t);
/* Marks the tenant's counters as changed; they are written at the end of the batch. */
void tx_tenant_touch(struct tx *tx, struct tenant *t);
/* Marks the tenant's settings as changed; the next transaction loads them again. */
void tx_tenant_changed(struct tx *tx);
/* Reads all cached counters again, after they were changed in the store itself. Call tx_flush()
 * before the change. */
MUST_CHECK enum err tx_reload_counters(struct tx *tx);

/* A workflow changed in this transaction. */
void tx_newest_changed(struct tx *tx);
/* The highest number of a run that is in the index of runs and, if it holds a slot, in `holding`.
 */
MUST_CHECK enum err tx_runs_through(struct tx *tx, int64_t *ret);
bool tx_runs_index_is_due(const struct tx *tx);
/* The id of a new run, or of a new entity, and the number that is in it. */
MUST_CHECK enum err tx_new_run(struct tx *tx, int64_t tenant, struct uuid *ret_id,
                               int64_t *ret_num);
MUST_CHECK enum err tx_new_entity(struct tx *tx, struct uuid *ret_id, int64_t *ret_num);
/* The highest number that a run or an entity has. */
MUST_CHECK enum err tx_last_num(struct tx *tx, int64_t *ret);
/* The last row of the feed, including those of this transaction that are written already. */
MUST_CHECK enum err tx_feed_end(struct tx *tx, int64_t *ret);

/* The number of changes so far, to rows and counters. Compare two values to see a change. */
int64_t tx_changes(const struct tx *tx);
/* Turns ERR_NO_MEMORY into ERR_TOO_LARGE if the op exceeded its memory limit, and the machine was
 * not out of memory. */
enum err tx_own_error(const struct tx *tx, enum err e);

/* Before the limits are counted for a new run. ERR_GATE_UNAVAILABLE when the tenant's gate is
 * outside the store and the op has not passed it: nobody asks that gate here, inside a transaction.
 * op->gate_wanted says that it can be passed. */
MUST_CHECK enum err tx_pass_gate(const struct tx *tx, struct op *op, const struct tenant *t);

/* --- timelines --- */

/* Adds the next event to the timeline of a run or an entity, and to the feed. Events of one owner
 * that follow each other become one row. */
MUST_CHECK enum err tx_add_event(struct tx *tx, int64_t tenant, int64_t owner,
                                 const struct event *event);
/* Writes the row. Call it before something is read that depends on it: the version of a run is the
 * number of its last event. tx_flush() does it too. */
MUST_CHECK enum err tx_write_events(struct tx *tx);

/* The first events of a new run, for its own row, if they are unwritten and few; ptr NULL: they are
 * rows of the timeline, or will be. Borrowed until the next event. */
MUST_CHECK enum err tx_take_first_events(struct tx *tx, int64_t run, struct str *ret);

/* --- effects --- */

/* Notes that something is due at this time (-1: nothing): the writer wakes for it. */
void tx_note_due(struct tx *tx, int64_t due_at);
/* An effect that carries nothing: EFFECT_CALLS_READY, _DELIVERIES_READY or _KEYS_CHANGED. */
void tx_note(struct tx *tx, enum effect_kind kind);
/* The job is ready in this queue. */
MUST_CHECK enum err tx_wake_queue(struct tx *tx, const struct job *job, struct str queue);
/* The run has ended so. */
MUST_CHECK enum err tx_wake_run(struct tx *tx, int64_t tenant, struct uuid run_id,
                                enum run_status status);
/* Wakes callers that wait for updates numbered above `after` up to `through`; 0: for any update. */
MUST_CHECK enum err tx_wake_updates(struct tx *tx, int64_t tenant, struct uuid key, int64_t after,
                                    int64_t through);
void tx_count_call(struct tx *tx, enum entity_call_end end);
/* Counts the start of a run without a request, or an attempt at one. `endpoint` names what started
 * it; `wait_ms` is the time since it was due, -1 if no run was started. Both texts are literals. */
MUST_CHECK enum err tx_count_admission(struct tx *tx, const struct tenant *t, const char *endpoint,
                                       struct str outcome, int64_t wait_ms);
/* Exports a copy of the span. Only if tx->exports_spans. */
/* An id as text that lives as long as the transaction; ptr NULL: out of memory. */
struct str tx_id_text(struct tx *tx, struct uuid id);
MUST_CHECK enum err tx_export_span(struct tx *tx, const struct span *span);
/* Observes the time after which a queued run was admitted. */
void tx_observe_queue_wait(struct tx *tx, const struct tenant *t, int64_t ms);

#endif
