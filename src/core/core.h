/* The deterministic core: turns operations into rows, answers and effects, on one database session.
 *
 *   core_apply(core, call, ops) ──▶ answered ops + effects of what is committed
 *
 * No threads, no clock, no sockets. Time and chance come in with each call: the time stands still
 * until the call returns, and every id and every delay that is drawn by lot comes from its seed. So
 * the same calls on two fresh stores give the same answers and the same rows. Several cores can
 * live in one process, each on its own store; a core is in one thread's hands at a time.
 *
 * One thing only is measured inside: how long a tenant's expressions take, by the clock `meter` of
 * the configuration (core/txn/cpu_shares.h). */
#ifndef PAWL_CORE_CORE_H
#define PAWL_CORE_CORE_H

#include "base/chance.h"
#include "core/txn/effects.h"
#include "core/txn/op.h"

#include <stdatomic.h>

struct awaited_runs;
struct core;
struct db;
struct idem_keys;
struct metric;
struct minute_stats;
struct replay_stats;
struct worker_polls;

/* Claims that wait for a job. One joins the transaction that makes its job ready: the job is
 * claimable after the commit, or that very transaction leased it to the claim. */
struct claim_source {
    void *ctx;
    /* Takes out the claim that has waited longest for a job of this tenant and queue; NULL: none
     * waits, or that one must not join. It is the core's until core_take_claims() returns it. */
    struct op *(*take)(void *ctx, int64_t tenant, struct str queue);
    const atomic_size_t *waiting; /* a hint; 0: none waits */
};

/* Ops that come while a batch runs. */
struct op_source {
    void *ctx;
    /* Those that have come, linked by `next`; NULL: none has, or the batch shall end. */
    struct op *(*take)(void *ctx);
};

struct core_config {
    struct db *db;           /* a writer's; owned by the caller */
    const struct env *meter; /* its monotonic clock measures expressions */
    bool has_gate;           /* outside the store, see tx_pass_gate() */
    struct replay_stats *stats;
    struct minute_stats *minutes;    /* NULL: nothing is counted by the minute */
    struct worker_polls *polls;      /* NULL: not tracked */
    struct metric *cleanup_failures; /* by kind of background work */
    bool exports_spans;              /* effects have the spans of runs and attempts that end */
    bool has_bus;                    /* the feed is kept until the bus has its events */
    bool keeps_all;                  /* neither old runs nor old rows of the feed are removed */
    struct claim_source claims;      /* take NULL: none ever joins */
    const struct awaited_runs *awaited_runs; /* their ends are shown in the effects; NULL: none */
};

/* The world of one call. */
struct core_call {
    int64_t now_us;  /* the wall clock */
    int64_t mono_ms; /* a clock that never goes back */
    struct chance_seed seed;
    bool log_full;    /* nothing may be written: replays are answered, everything else is refused */
    bool claims_join; /* of core_apply(): waiting claims may join its transaction */
    /* Of core_apply(): asked when the last op of the list has run, and what it gives is appended to
     * the list. take NULL: nothing is. */
    struct op_source more;
};

/* Reads what it has to know from the store. The caller owns *ret. */
MUST_CHECK enum err core_open(const struct core_config *config, const struct core_call *call,
                              struct problem *p, struct core **ret);
void core_close(struct core *core);

/* Decides every op of the list, which is linked by `next`: all of them in one transaction if that
 * is possible, else apart. What failed in the store, or ERR_OK. */
enum err core_apply(struct core *core, const struct core_call *call, struct op *first);
/* The waiting claims that core_apply() has decided beside the ops, linked by `next`. To be taken
 * after each call; they must be answered before the effects of that call are published, because one
 * that got nothing waits again, and may be woken by them. */
struct op *core_take_claims(struct core *core);
/* One slice of each kind of background work that is due. What failed in the store, or ERR_OK. */
enum err core_background(struct core *core, const struct core_call *call);
/* Stores what is counted in memory, before the core is closed. What failed in the store, or ERR_OK.
 */
enum err core_store_counts(struct core *core, const struct core_call *call);
/* How long no background work will be due; 0: some is. */
int64_t core_background_wait_ms(struct core *core, int64_t now_ms, int64_t mono_ms);
/* Has core_apply() brought background work that should not wait until then? */
bool core_wants_background(const struct core *core);

/* The idempotency keys, for a thread that answers replays by itself. */
struct idem_keys *core_keys(struct core *core);
/* What the last call has committed, to be published before the next one. */
struct effects *core_effects(struct core *core);
/* The store failed between calls, at its housekeeping: counts as if it had failed in one. */
void core_note_failure(struct core *core, enum err e);
/* The op was decided, but what it has changed or seen may not be on disk: answers that its outcome
 * is unknown. */
void core_in_doubt(struct op *op);
/* A commit could not be proven: nothing is acknowledged any more. */
bool core_failed(const struct core *core);

#endif
