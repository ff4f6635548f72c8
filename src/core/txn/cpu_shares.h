/* How much of the writer's time the expressions of each tenant take.
 *
 * * * A single expression is bounded (EXPR_STEPS_MAX), what one change evaluates is not: a run may
 * have hundreds of steps, a map thousands of items, and a batch many starts. So a tenant may spend
 * CPU_STEPS_PER_TURN in one transaction. The rest of its runs is deferred and continues in slices,
 * by timers. After a slice the tenant pauses CPU_PAUSE_FACTOR times as long as the slice took. So a
 * tenant gets a bounded share of the writer's time, however much it has to do, and timers of other
 * tenants run between its slices. See docs/adr/020.
 *
 * * * Steps decide whether work is deferred, so this does not depend on the machine. The time
 * that was taken decides for how long. Kept in memory only: after a restart no tenant is paused. */
#ifndef PAWL_CORE_TXN_CPU_SHARES_H
#define PAWL_CORE_TXN_CPU_SHARES_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct cpu_shares;

MUST_CHECK struct cpu_shares *cpu_shares_new(void);
void cpu_shares_free(struct cpu_shares *s);

/* A new transaction. */
void cpu_shares_turn(struct cpu_shares *s);
/* An expression of the tenant took so many steps, and so long. */
void cpu_shares_spend(struct cpu_shares *s, int64_t tenant, int64_t now_ms, int64_t steps,
                      int64_t ns);
/* Must the tenant's next evaluation be deferred? */
bool cpu_shares_used_up(const struct cpu_shares *s, int64_t tenant, int64_t now_ms);
/* Defers a run of the tenant. Returns when it continues: after the runs that were deferred
 * before it. */
int64_t cpu_shares_put_off(struct cpu_shares *s, int64_t tenant, int64_t now_ms);
/* A deferred run continues. */
void cpu_shares_resume(struct cpu_shares *s, int64_t tenant);

#endif
