/* The writer's transaction: a batch of ops with what they have loaded and changed. Counters are
 * written once, at its end. What it remembers from one transaction to the next is in read_tx.h and
 * tx_memory.h; a rollback forgets all of it. */
#ifndef PAWL_CORE_TXN_TX_H
#define PAWL_CORE_TXN_TX_H

#include "core/txn/effects.h"
#include "core/txn/op.h"
#include "core/txn/read_tx.h"
#include "core/txn/tx_memory.h"
#include "domain/tenant.h"
#include "domain/workflow/definition.h"
#include "store/secrets.h"

struct cpu_shares;
struct freed_slots;
struct gate;
struct gate_visit;
struct release_rates;

/* Whose turn it is to have a job of a queue handed out, among all tenants. */
struct claim_turn {
    uint64_t queue;
    int64_t tenant;
    int64_t left; /* jobs until the turn goes on */
};

enum { CLAIM_TURNS = 1024 }; /* queues; past it some lose their turn now and then */

/* Whose queued runs are being started, and which; 0: none. */
struct dispatching {
    int64_t tenant;
    int64_t run;
};

/* A tenant whose queued runs cannot be started, although there is room: they wait until then. */
struct aside_tenant {
    int64_t tenant;
    int64_t until_ms;
};

enum { ASIDE_TENANTS_MAX = 16 }; /* past it the one that waits longest comes back early */

struct tx {
    /* The read transaction inside; its members are members of this struct too. */
    union {
        struct read_tx read;
        struct {
            READ_TX_MEMBERS
        };
    };
    const struct env *env;
    struct secret lease_key; /* signs tokens of leases */
    int64_t touched;         /* how often counters were changed that are written later */
    /* From one transaction to the next: see tx_memory.h. */
#define X(member, type, until, functions) type *member;
    TX_MEMORY(X)
#undef X
    struct effects effects;
    bool has_bus; /* the feed is kept until the bus has its events */
    bool stale;   /* forget everything when the next transaction begins */
    struct claim_turn claim_turns[CLAIM_TURNS];
    struct cpu_shares *cpu; /* outlives rollbacks: what was taken was taken */
    struct gate *gate;
    struct gate_visit *visits;
    struct freed_slots *freed;      /* by the op under way */
    bool dispatches_later;          /* see follow_up.h */
    bool dispatch_failed;           /* a queued run could not start */
    struct dispatching dispatching; /* what it was at when it failed */
    struct aside_tenant asides[ASIDE_TENANTS_MAX];
    size_t aside_count;
    struct release_rates *release_rates; /* how fast slots have been freeing */
};

/* `db` and `env` outlive it. */
MUST_CHECK enum err tx_init(struct tx *tx, struct db *db, const struct env *env);
void tx_release(struct tx *tx);

/* Begins: what may have become untrue is forgotten. */
void tx_start(struct tx *tx, int64_t now_ms);
/* After the last transaction for now: frees what it has loaded. Effects and caches stay. */
void tx_end(struct tx *tx);
/* Writes the counters that changed, and the feed. */
MUST_CHECK enum err tx_flush(struct tx *tx);
/* Flushes and commits. The effects can then be published. */
MUST_CHECK enum err tx_commit(struct tx *tx);
/* When settings changed: what was loaded is not true any more. */
void tx_forget(struct tx *tx);
/* After db_rollback(): nothing that the transaction has read or made is believed any more. */
void tx_rolled_back(struct tx *tx);
/* Stores the tenant if it is new. Called before the first row that belongs to it. */
MUST_CHECK enum err tx_tenant_ensure(struct tx *tx, struct tenant *t);
/* Its counters changed; they are written at the end of the batch. */
void tx_tenant_touch(struct tx *tx, struct tenant *t);
/* Its settings changed: loaded again by the next transaction. */
void tx_tenant_changed(struct tx *tx);
/* Counters were changed in the store itself, after tx_flush(): those that are remembered are read
 * again. */
MUST_CHECK enum err tx_reload_counters(struct tx *tx);

/* A workflow changed in this transaction. */
void tx_newest_changed(struct tx *tx);
/* The highest number of a run that is in the index of runs and, if it holds a slot, in `holding`.
 */
MUST_CHECK enum err tx_runs_through(struct tx *tx, int64_t *ret);
bool tx_runs_index_is_due(const struct tx *tx);
/* The id of a new run, or of a new entity, and the number that is in it. */
MUST_CHECK enum err tx_new_run(struct tx *tx, struct uuid *ret_id, int64_t *ret_num);
MUST_CHECK enum err tx_new_entity(struct tx *tx, struct uuid *ret_id, int64_t *ret_num);
/* The highest number that a run or an entity has. */
MUST_CHECK enum err tx_last_num(struct tx *tx, int64_t *ret);

/* What was changed so far, rows and counters: the same number again means nothing since. */
int64_t tx_changes(const struct tx *tx);
/* ERR_TOO_LARGE instead of ERR_NO_MEMORY, if it was not the machine that was short of memory but
 * the op that wanted more than one may have. */
enum err tx_own_error(const struct tx *tx, enum err e);

/* Lets a start into the tenant's gate, to leave it when the transaction ends. ERR_GATE_UNAVAILABLE
 * when it is down, or busy: then op->gate_busy is set too. */
MUST_CHECK enum err tx_enter_gate(struct tx *tx, struct op *op, const struct tenant *t);
/* After the commit or the rollback. */
void tx_leave_gates(struct tx *tx);

/* --- effects --- */

/* Something is due then (-1: nothing): the writer wakes for it. */
void tx_note_due(struct tx *tx, int64_t due_at);
/* An effect that carries nothing: EFFECT_CALLS_READY, _DELIVERIES_READY or _KEYS_CHANGED. */
void tx_note(struct tx *tx, enum effect_kind kind);
MUST_CHECK enum err tx_wake_queue(struct tx *tx, int64_t tenant, struct str queue);
MUST_CHECK enum err tx_wake_run(struct tx *tx, int64_t tenant, struct uuid run_id);
/* Those that wait for updates with numbers above `after` up to `through`; 0: for any. */
MUST_CHECK enum err tx_wake_updates(struct tx *tx, int64_t tenant, struct uuid key, int64_t after,
                                    int64_t through);
/* The event is in the timeline of the run or entity, and goes into the feed with tx_flush(). */
MUST_CHECK enum err tx_note_event(struct tx *tx, int64_t tenant, int64_t owner, int64_t seq);
void tx_count_call(struct tx *tx, enum entity_call_end end);
/* A run that no request has started, or a try at one: `endpoint` is what started it, `wait_ms` the
 * time since it was due, -1 where none was started. Both texts are literals. */
MUST_CHECK enum err tx_count_admission(struct tx *tx, const struct tenant *t, const char *endpoint,
                                       struct str outcome, int64_t wait_ms);
/* A queued run was admitted after this time. */
void tx_observe_queue_wait(struct tx *tx, const struct tenant *t, int64_t ms);

#endif
