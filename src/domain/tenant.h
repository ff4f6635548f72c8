/* A tenant's settings and counters, and how a request changes the settings. Pure. */
#ifndef PAWL_DOMAIN_TENANT_H
#define PAWL_DOMAIN_TENANT_H

#include "base/arena.h"
#include "base/fields.h"
#include "base/json.h"
#include "domain/admission/admission.h"
#include "domain/admission/rate.h"
#include "domain/retry/backoff.h"

enum gate_kind {
    GATE_KIND_STORE,  /* the store's own transaction: no start waits for it */
    GATE_KIND_REDIS,  /* a lock in Redis, which systems outside pawl may hold too */
    GATE_KIND_UNSAID, /* of settings as a request gives them: the server decides */
};

/* Which gate the starts of a tenant pass, and how they wait for one that another holds. */
struct gate_policy {
    int64_t max_wait_ms;    /* then 503 ADMISSION_GATE_UNAVAILABLE */
    int64_t lock_ttl_ms;    /* after which a holder that died has lost it */
    int64_t retry_delay_ms; /* the base of the delays between tries */
    enum backoff_policy policy;
    enum gate_kind kind;
};

struct tenant {
    int64_t num; /* 0: not stored yet */
    struct str id;
    struct str name;             /* ptr NULL when it has none */
    int64_t max_concurrent_runs; /* -1: no limit */
    int64_t max_queued_runs;     /* -1: QUEUED_RUNS_MAX */
    enum at_limit at_limit;
    int64_t idempotency_retention_ms; /* -1: forever */
    int64_t run_retention_ms;         /* of runs that are over; -1: forever */
    int64_t weight;                   /* its share of shared workers, against the others' */
    struct gate_policy gate;
    struct rate_limit rate_limit; /* per_second 0: none */
    int64_t settings_version;     /* grows with every change of what is above */
    int64_t rate_full_at_ns;      /* the state of rate_limit */
    int64_t active_runs;          /* runs that hold a slot */
    int64_t queued_runs;
    int64_t created_at;
    int64_t updated_at;
};

/* Letters, digits, _ - . : and at most TENANT_ID_MAX of them. */
bool tenant_id_ok(struct str id);
/* A tenant with default settings: no limits, idempotency keys kept forever. */
struct tenant tenant_default(struct str id, int64_t now_ms);

/* Applies the members of a PUT body: absent ones stay, null sets back to the default. Text is
 * copied to the arena. On a fault *t is untouched and p names the field. */
MUST_CHECK enum err tenant_apply(struct tenant *t, const struct json *body, struct arena *arena,
                                 struct problem *p);
/* The members of `settings` that tenant_apply() reads, all of them, as members of an open object.
 */
void tenant_put_settings(struct json_out *o, const struct tenant *t);

/* How two of the settings are kept; empty text is the default. ERR_DAMAGED for text that is none,
 * ERR_NO_MEMORY. Text of an earlier version names no gate: it is the store's. */
void gate_policy_put(struct json_out *o, const char *name, const struct gate_policy *gate);
/* Nothing that differs from the defaults. */
bool gate_policy_is_default(const struct gate_policy *gate);
bool gate_policy_eq(const struct gate_policy *a, const struct gate_policy *b);
MUST_CHECK enum err gate_policy_parse(struct str json, struct gate_policy *ret);
void rate_limit_put(struct json_out *o, const char *name, const struct rate_limit *rate);
MUST_CHECK enum err rate_limit_parse(struct str json, struct rate_limit *ret);

int64_t tenant_queue_max(const struct tenant *t);

#endif
