/* A tenant's settings and counters, how a request changes the settings, and whether one more run
 * fits. Pure. */
#ifndef PAWL_DOMAIN_TENANT_H
#define PAWL_DOMAIN_TENANT_H

#include "base/arena.h"
#include "base/json.h"

#define AT_LIMITS(X)                           \
    X(AT_LIMIT_REJECT, "reject")               \
    X(AT_LIMIT_QUEUE, "queue")                 \
    X(AT_LIMIT_CANCEL_OLDEST, "cancel_oldest") \
    X(AT_LIMIT_COALESCE, "coalesce")

enum at_limit {
#define X(symbol, name) symbol,
    AT_LIMITS(X)
#undef X
        AT_LIMIT_COUNT
};

const char *at_limit_name(enum at_limit policy);
/* AT_LIMIT_COUNT when there is no such policy. */
enum at_limit at_limit_of(struct str name);

struct tenant {
    int64_t num; /* 0: not stored yet */
    struct str id;
    struct str name;             /* ptr NULL when it has none */
    int64_t max_concurrent_runs; /* -1: no limit */
    int64_t max_queued_runs;     /* -1: no limit of its own */
    enum at_limit at_limit;
    int64_t idempotency_retention_ms; /* -1: for ever */
    int64_t weight;
    struct str gate;       /* JSON object */
    struct str rate_limit; /* JSON object, or ptr NULL */
    int64_t active_runs;   /* runs that hold a slot */
    int64_t queued_runs;
    int64_t created_at;
    int64_t updated_at;
};

/* Letters, digits, _ - . : and at most TENANT_ID_MAX of them. */
bool tenant_id_ok(struct str id);
/* What a tenant is before anybody sets anything: no limits, keys for ever. */
struct tenant tenant_default(struct str id, int64_t now_ms);

/* Applies the members of a PUT body: absent ones stay, null sets back to the default. Text is
 * copied to the arena. On a fault *t is untouched and p names the field. */
MUST_CHECK enum err tenant_apply(struct tenant *t, const json_t *body, struct arena *arena,
                                 struct problem *p);

/* One more run for this tenant? ERR_MAX_CONCURRENT_RUNS carries `current` and `limit`. */
MUST_CHECK enum err tenant_admit(const struct tenant *t, struct problem *p);

#endif
