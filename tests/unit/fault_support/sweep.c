/* Failures at every call of a change, a read, or a slice of background work. */
#include "fault_support/sweep.h"

#include "core/background/work.h"
#include "core/core.h"
#include "core/txn/read_tx.h"
#include "fault_support/memory.h"
#include "store_support/stores.h"

#include <stdlib.h>

enum {
    CALLS_MAX = 1000000, /* of one change: more would have no end */
    EACH_MAX = 50,       /* so many calls fail one after the other, then larger and larger steps;
                            PAWL_TEST_EACH: fewer */
};

enum sweep_kind { SWEEP_NOTHING, SWEEP_STORE, SWEEP_MEMORY, SWEEP_MEMORY_ONCE };

static enum sweep_kind sweep_kind(void)
{
    const char *wanted = getenv("PAWL_TEST_FAULTS");
    if (wanted == NULL)
        return SWEEP_NOTHING;
    if (strcmp(wanted, "memory_once") == 0)
        return SWEEP_MEMORY_ONCE;
    return strcmp(wanted, "memory") == 0 ? SWEEP_MEMORY : SWEEP_STORE;
}

static int64_t each_max(void)
{
    const char *wanted = getenv("PAWL_TEST_EACH");
    return wanted == NULL ? EACH_MAX : MAX(1, strtoll(wanted, NULL, 10));
}

static bool is_of_memory(enum sweep_kind kind)
{
    return kind == SWEEP_MEMORY || kind == SWEEP_MEMORY_ONCE;
}

struct sweep {
    enum sweep_kind kind;
    int64_t nth;
};

static void sweep_arm(struct sweep *s)
{
    s->nth += 1 + s->nth / each_max();
    assert(s->nth < CALLS_MAX);
    if (s->kind == SWEEP_MEMORY)
        memory_arm(s->nth);
    else if (s->kind == SWEEP_MEMORY_ONCE)
        memory_arm_once(s->nth);
    else if (s->kind == SWEEP_STORE)
        failing_arm_here(s->nth);
}

/* Has the call met its failure? */
static bool sweep_disarm(const struct sweep *s)
{
    if (is_of_memory(s->kind))
        return memory_disarm();
    return s->kind == SWEEP_STORE && failing_disarm_here();
}

/* --- changes --- */

/* The use cases of tests are left alone: they look at what a rollback changes, such as caches. So
 * is a batch: one of its ops may get by without the call that fails, and cannot be done again. */
static bool may_sweep(const struct op *first)
{
    return first != NULL && first->next == NULL && strncmp(first->use_case->name, "test_", 5) != 0;
}

enum err __real_core_apply(struct core *core, const struct core_call *call, struct op *first);
enum err __wrap_core_apply(struct core *core, const struct core_call *call, struct op *first);

enum err __wrap_core_apply(struct core *core, const struct core_call *call, struct op *first)
{
    struct sweep s = {.kind = may_sweep(first) ? sweep_kind() : SWEEP_NOTHING};
    struct core_call apart = *call;
    /* A claim that joins, and an op that comes meanwhile, is decided with the attempt, which is
     * then not the last one. */
    if (s.kind != SWEEP_NOTHING) {
        apart.claims_join = false;
        apart.more = (struct op_source){0};
    }
    for (;;) {
        sweep_arm(&s);
        enum err e = __real_core_apply(core, &apart, first);
        if (!sweep_disarm(&s) || !err_is_outage(first->err))
            return e;
        assert(effects_are_empty(core_effects(core)));
    }
}

/* --- background work --- */

enum err __real_work_transaction(struct work_env *w, struct tx *tx, work_fn *fn, void *ctx,
                                 struct problem *p);
enum err __wrap_work_transaction(struct work_env *w, struct tx *tx, work_fn *fn, void *ctx,
                                 struct problem *p);

enum err __wrap_work_transaction(struct work_env *w, struct tx *tx, work_fn *fn, void *ctx,
                                 struct problem *p)
{
    struct sweep s = {.kind = sweep_kind()};
    for (;;) {
        sweep_arm(&s);
        enum err e = __real_work_transaction(w, tx, fn, ctx, p);
        if (!sweep_disarm(&s) || !err_is_outage(e))
            return e;
    }
}

/* --- reads --- */

static enum err read_swept(struct op *op, struct read_tx *tx)
{
    const struct use_case *original = ((const struct swept_read *)op->use_case)->original;
    struct sweep s = {.kind = sweep_kind()};
    for (;;) {
        sweep_arm(&s);
        enum err e = original->read(op, tx);
        bool failed = err_is_outage(e) || !buf_ok(&op->answer.body);
        if (!sweep_disarm(&s) || !failed)
            return e;
        int64_t now_ms = tx->now_ms;
        read_tx_clear(tx);
        read_tx_start(tx, now_ms);
        op_clear_result(op);
    }
}

bool sweep_wants_read(const struct op *op)
{
    return sweep_kind() != SWEEP_NOTHING && op->use_case->read != NULL && !op->use_case->checks &&
           op->wait_ms == 0;
}

void swept_read_init(struct swept_read *s, const struct use_case *original)
{
    s->original = original;
    s->use_case = *original;
    s->use_case.read = read_swept;
}
