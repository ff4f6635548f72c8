/* How much of the writer's time the expressions of each tenant take. */
#include "core/txn/cpu_shares.h"

#include "base/hash_map.h"
#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>

/* Past so many tenants the one that has been idle for longest is forgotten: it loses its pause. */
enum { TENANTS_MAX = 1024, NS_PER_MS = 1000 * 1000 };

struct share {
    struct hash_entry entry;
    int64_t tenant;
    uint64_t turn; /* that the next two are about */
    int64_t steps;
    int64_t ns;
    int64_t resumes_at; /* until then it pauses */
    int64_t gap_ms;     /* between its slices, by what the last one took */
    int64_t waiting;    /* runs that were put off and have not gone on yet */
};

struct cpu_shares {
    uint64_t turn;
    struct hash_map map; /* by tenant */
    struct share shares[TENANTS_MAX];
};

struct cpu_shares *cpu_shares_new(void)
{
    return calloc(1, sizeof(struct cpu_shares));
}

void cpu_shares_free(struct cpu_shares *s)
{
    if (s == NULL)
        return;
    hash_map_release(&s->map);
    free(s);
}

void cpu_shares_turn(struct cpu_shares *s)
{
    s->turn++;
}

static struct share *find(const struct cpu_shares *s, int64_t tenant)
{
    struct hash_entry *e = hash_map_find(&s->map, hash_number(&s->map, tenant));
    for (; e != NULL; e = hash_map_find_next(e)) {
        struct share *share = CONTAINER_OF(e, struct share, entry);
        if (share->tenant == tenant)
            return share;
    }
    return NULL;
}

static struct share *add(struct cpu_shares *s, int64_t tenant)
{
    struct share *share = &s->shares[s->map.count % TENANTS_MAX];
    if (s->map.count == TENANTS_MAX) {
        share = CONTAINER_OF(s->map.oldest, struct share, entry);
        hash_map_remove(&s->map, &share->entry);
    }
    *share = (struct share){.tenant = tenant};
    hash_map_add(&s->map, &share->entry, hash_number(&s->map, tenant));
    return share;
}

static struct share *take(struct cpu_shares *s, int64_t tenant)
{
    assert(tenant > 0);
    struct share *share = find(s, tenant);
    if (share == NULL)
        share = add(s, tenant);
    hash_map_touch(&s->map, &share->entry);
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
