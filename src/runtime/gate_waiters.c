/* Starts that wait for a busy gate. */
#include "runtime/gate_waiters.h"

#include "base/limits.h"

enum {
    GATE_TICK_MS = 2, /* how exactly a delay at the gate ends */
    GATE_DELAY_MS_MAX = 1000,
};

void gate_waiters_init(struct gate_waiters *w, const struct env *env,
                       void (*submit)(void *ctx, struct op *op), void *ctx)
{
    *w = (struct gate_waiters){.env = env, .submit = submit, .ctx = ctx};
}

bool gate_waiters_add(struct gate_waiters *w, struct op *op)
{
    const struct gate_policy *policy = &op->gate_policy;
    int64_t mono = env_mono_ms(w->env);
    int64_t left = op->submitted_ms + policy->max_wait_ms - mono;
    if (left <= 0 || w->count >= OPS_WAITING_MAX)
        return false;
    struct backoff backoff = {policy->policy, policy->retry_delay_ms, GATE_DELAY_MS_MAX};
    uint64_t seed;
    env_random(w->env, &seed, sizeof(seed));
    int64_t previous = op->gate_tries == 0 ? policy->retry_delay_ms : op->gate_delay_ms;
    op->gate_delay_ms = backoff_delay_ms(&backoff, ++op->gate_tries, previous, seed);
    op->gate_due_ms = mono + MIN(op->gate_delay_ms, left);
    op->next = w->first;
    w->first = op;
    w->count++;
    return true;
}

void gate_waiters_tick(struct gate_waiters *w, int64_t mono_ms, bool all)
{
    struct op **at = &w->first;
    while (*at != NULL) {
        struct op *op = *at;
        if (op->gate_due_ms > mono_ms && !all) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        w->count--;
        w->submit(w->ctx, op);
    }
}

int gate_waiters_timeout_ms(const struct gate_waiters *w)
{
    return w->count > 0 ? GATE_TICK_MS : -1;
}
