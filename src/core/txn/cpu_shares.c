/* How much of the writer's time the expressions of each tenant take. */
#include "core/txn/cpu_shares.h"

#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>

/* Direct-mapped: a tenant that shares its place with another may lose its pause, no more. */
enum { SLOTS = 1024, NS_PER_MS = 1000 * 1000 };

struct share {
    int64_t tenant; /* 0: empty */
    uint64_t turn;  /* that the next two are about */
    int64_t steps;
    int64_t ns;
    int64_t resumes_at; /* until then it pauses */
    int64_t gap_ms;     /* between its slices, by what the last one took */
    int64_t waiting;    /* runs that were put off and have not gone on yet */
};

struct cpu_shares {
    uint64_t turn;
    struct share slots[SLOTS];
};

struct cpu_shares *cpu_shares_new(void)
{
    return calloc(1, sizeof(struct cpu_shares));
}

void cpu_shares_free(struct cpu_shares *s)
{
    free(s);
}

void cpu_shares_turn(struct cpu_shares *s)
{
    s->turn++;
}

static const struct share *find(const struct cpu_shares *s, int64_t tenant)
{
    const struct share *share = &s->slots[(uint64_t)tenant % SLOTS];
    return share->tenant == tenant ? share : NULL;
}

static struct share *take(struct cpu_shares *s, int64_t tenant)
{
    assert(tenant > 0);
    struct share *share = &s->slots[(uint64_t)tenant % SLOTS];
    if (share->tenant != tenant)
        *share = (struct share){.tenant = tenant};
    if (share->turn != s->turn) {
        share->turn = s->turn;
        share->steps = share->ns = 0;
    }
    return share;
}

void cpu_shares_spend(struct cpu_shares *s, int64_t tenant, int64_t now_ms, int64_t steps,
                      int64_t ns)
{
    struct share *share = take(s, tenant);
    share->steps += steps;
    share->ns += ns;
    if (share->steps < CPU_STEPS_PER_TURN)
        return;
    int64_t took_ms = share->ns / NS_PER_MS;
    share->gap_ms = took_ms * (CPU_PAUSE_FACTOR + 1);
    share->resumes_at = now_ms + share->gap_ms;
}

bool cpu_shares_used_up(const struct cpu_shares *s, int64_t tenant, int64_t now_ms)
{
    const struct share *share = find(s, tenant);
    if (share == NULL)
        return false;
    return (share->turn == s->turn && share->steps >= CPU_STEPS_PER_TURN) ||
           share->resumes_at > now_ms;
}

int64_t cpu_shares_put_off(struct cpu_shares *s, int64_t tenant, int64_t now_ms)
{
    struct share *share = take(s, tenant);
    int64_t behind = MIN(share->waiting * share->gap_ms, (int64_t)CPU_PUT_OFF_MS_MAX);
    share->waiting++;
    return MAX(share->resumes_at, now_ms) + behind;
}

void cpu_shares_resume(struct cpu_shares *s, int64_t tenant)
{
    struct share *share = take(s, tenant);
    if (share->waiting > 0)
        share->waiting--;
}
