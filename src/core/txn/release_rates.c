/* How fast slots have been freeing. Direct-mapped: one that shares its place with another takes it
 * over. */
#include "core/txn/release_rates.h"

#include "base/pages.h"

enum { SLOTS = 4096 };

struct release_rates {
    struct {
        int64_t tenant; /* 0: empty */
        int64_t scope;
        struct release_rate pace;
    } slots[SLOTS];
};

struct release_rates *release_rates_new(void)
{
    return pages_new(sizeof(struct release_rates));
}

void release_rates_free(struct release_rates *release_rates)
{
    pages_free(release_rates, sizeof(*release_rates));
}

static size_t slot_of(int64_t tenant, int64_t scope)
{
    uint64_t mixed = ((uint64_t)tenant * 0x9E3779B97F4A7C15u) ^ (uint64_t)scope;
    return (mixed * 0x9E3779B97F4A7C15u >> 32) % SLOTS;
}

void release_rates_note(struct release_rates *release_rates, int64_t tenant, int64_t scope,
                        int64_t now_ms)
{
    size_t at = slot_of(tenant, scope);
    if (release_rates->slots[at].tenant != tenant || release_rates->slots[at].scope != scope) {
        release_rates->slots[at].tenant = tenant;
        release_rates->slots[at].scope = scope;
        release_rates->slots[at].pace = release_rate_unknown();
    }
    release_rate_note(&release_rates->slots[at].pace, now_ms);
}

int64_t release_rates_retry_after_s(const struct release_rates *release_rates, int64_t tenant,
                                    int64_t scope, int64_t now_ms)
{
    size_t at = slot_of(tenant, scope);
    bool known =
        release_rates->slots[at].tenant == tenant && release_rates->slots[at].scope == scope;
    struct release_rate pace = known ? release_rates->slots[at].pace : release_rate_unknown();
    return release_rate_retry_after_s(&pace, now_ms);
}
