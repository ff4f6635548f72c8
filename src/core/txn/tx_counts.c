/* What a transaction counts for the metrics. */
#include "core/txn/tx_counts.h"

#include "base/metrics.h"
#include "core/txn/tenant_labels.h"
#include "core/txn/tx.h"

struct internal_admission {
    struct internal_admission *next;
    struct str tenant;
    const char *endpoint;
    struct str outcome;
    int64_t wait_ms; /* -1: nothing was begun */
};

const char *entity_call_end_name(enum entity_call_end end)
{
    static const char *const NAMES[] = {
#define X(symbol, name) name,
        ENTITY_CALL_ENDS(X)
#undef X
    };
    return NAMES[end];
}

void tx_count_call(struct tx *tx, enum entity_call_end end)
{
    tx->counts.call_ends[end]++;
}

enum err tx_count_admission(struct tx *tx, const struct tenant *t, const char *endpoint,
                            struct str outcome, int64_t wait_ms)
{
    struct internal_admission *a = arena_alloc(&tx->notes, sizeof(*a));
    if (a == NULL)
        return ERR_NO_MEMORY;
    *a = (struct internal_admission){tx->counts.admissions, t->id, endpoint, outcome, wait_ms};
    tx->counts.admissions = a;
    return ERR_OK;
}

void tx_observe_queue_wait(struct tx *tx, const struct tenant *t, int64_t ms)
{
    if (tx->metrics.queue_waits != NULL)
        metric_observe(tx->metrics.queue_waits, tenant_label(tx->metrics.labels, t->id), STR_NONE,
                       (double)MAX(ms, (int64_t)0) / 1e3);
}

static void show_calls(const struct tx *tx)
{
    for (enum entity_call_end end = 0; end < ENTITY_CALL_COUNT; end++) {
        if (tx->counts.call_ends[end] > 0)
            metric_add(tx->metrics.entity_calls, str_of(entity_call_end_name(end)), STR_NONE,
                       (double)tx->counts.call_ends[end]);
    }
}

static void show_admissions(const struct tx *tx)
{
    const struct tx_metrics *m = &tx->metrics;
    for (const struct internal_admission *a = tx->counts.admissions; a != NULL; a = a->next) {
        struct str tenant = tenant_label(m->labels, a->tenant);
        metric_add(m->admissions, tenant, a->outcome, 1);
        if (a->wait_ms >= 0)
            metric_observe(m->admission_wait, tenant, str_of(a->endpoint),
                           (double)a->wait_ms / 1e3);
    }
}

void tx_counts_show(struct tx *tx)
{
    if (tx->metrics.entity_calls != NULL)
        show_calls(tx);
    if (tx->metrics.admissions != NULL)
        show_admissions(tx);
    tx->counts = (struct tx_counts){0};
}
