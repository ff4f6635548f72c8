/* How fast slots have been freeing. Direct-mapped: one that shares its place with another takes it
 * over. */
#include "core/admission/slot_release_rate.h"

#include "base/pages.h"

enum { SLOTS = 4096 };

struct paces {
    struct {
        int64_t tenant; /* 0: empty */
        int64_t scope;
        struct pace pace;
    } slots[SLOTS];
};

struct paces *paces_new(void)
{
    return pages_new(sizeof(struct paces));
}

void paces_free(struct paces *paces)
{
    pages_free(paces, sizeof(*paces));
}

static size_t slot_of(int64_t tenant, int64_t scope)
{
    uint64_t mixed = ((uint64_t)tenant * 0x9E3779B97F4A7C15u) ^ (uint64_t)scope;
    return (mixed * 0x9E3779B97F4A7C15u >> 32) % SLOTS;
}

void paces_freed(struct paces *paces, int64_t tenant, int64_t scope, int64_t now_ms)
{
    size_t at = slot_of(tenant, scope);
    if (paces->slots[at].tenant != tenant || paces->slots[at].scope != scope) {
        paces->slots[at].tenant = tenant;
        paces->slots[at].scope = scope;
        paces->slots[at].pace = pace_unknown();
    }
    pace_freed(&paces->slots[at].pace, now_ms);
}

int64_t paces_retry_after_s(const struct paces *paces, int64_t tenant, int64_t scope,
                            int64_t now_ms)
{
    size_t at = slot_of(tenant, scope);
    bool known = paces->slots[at].tenant == tenant && paces->slots[at].scope == scope;
    struct pace pace = known ? paces->slots[at].pace : pace_unknown();
    return pace_retry_after_s(&pace, now_ms);
}
