/* How much of the writer's time the expressions of each tenant take.
 *
 * A single expression is bounded (EXPR_STEPS_MAX), what one change evaluates is not: a run may have
 * hundreds of steps, a map thousands of items, and a batch many starts. So a tenant may spend
 * CPU_STEPS_PER_TURN in one transaction. What is left of its runs is put off and goes on in slices,
 * by timers; after a slice the tenant pauses CPU_PAUSE_FACTOR times as long as it took, so that it
 * has a bounded part of the writer's time however much it has to do, and timers of other tenants
 * come between its slices. See docs/adr/020.
 *
 * Whether something is put off is counted in steps, so it does not depend on the machine. How long
 * depends on the time that was taken. Kept in memory only: after a restart nobody pauses. */
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
/* Does what the tenant has yet to evaluate have to wait? */
bool cpu_shares_used_up(const struct cpu_shares *s, int64_t tenant, int64_t now_ms);
/* When a run of the tenant that is put off goes on; it stands behind those put off before it. */
int64_t cpu_shares_put_off(struct cpu_shares *s, int64_t tenant, int64_t now_ms);
/* One that was put off goes on. */
void cpu_shares_resume(struct cpu_shares *s, int64_t tenant);

#endif
