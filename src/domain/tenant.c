/* A tenant's settings and its limit. */
#include "domain/tenant.h"

#include "base/limits.h"

#define GATE_DEFAULT                                                                       \
    "{\"max_wait_ms\":2000,\"lock_ttl_ms\":10000,\"retry_delay_ms\":10,\"policy\":\"full_" \
    "jitter\"}"

static const char *const AT_LIMIT_NAMES[] = {
#define X(symbol, name) name,
    AT_LIMITS(X)
#undef X
};

static_assert(ARRAY_LEN(AT_LIMIT_NAMES) == AT_LIMIT_COUNT, "one name per policy");

const char *at_limit_name(enum at_limit policy)
{
    assert(policy < AT_LIMIT_COUNT);
    return AT_LIMIT_NAMES[policy];
}

enum at_limit at_limit_of(struct str name)
{
    enum at_limit policy = 0;
    while (policy < AT_LIMIT_COUNT && !str_is(name, AT_LIMIT_NAMES[policy]))
        policy++;
    return policy;
}

bool tenant_id_ok(struct str id)
{
    return id.len <= TENANT_ID_MAX && str_is_name(id);
}

struct tenant tenant_default(struct str id, int64_t now_ms)
{
    return (struct tenant){
        .id = id,
        .max_concurrent_runs = -1,
        .max_queued_runs = -1,
        .at_limit = AT_LIMIT_REJECT,
        .idempotency_retention_ms = -1,
        .weight = 1,
        .gate = STR(GATE_DEFAULT),
        .created_at = now_ms,
        .updated_at = now_ms,
    };
}

/* --- settings --- */

/* A number that null sets to its default. */
static void int_or_default(struct fields *f, const char *name, int64_t min, int64_t max,
                           int64_t when_null, int64_t *value)
{
    const json_t *given;
    fields_any(f, name, &given);
    if (json_is_null(given)) {
        *value = when_null;
        return;
    }
    f->seen_count--; /* fields_int notes the name again */
    fields_int(f, name, min, max, value);
}

static void apply_text(struct fields *f, struct tenant *t)
{
    const json_t *given;
    fields_any(f, "name", &given);
    f->seen_count--;
    if (json_is_null(given))
        t->name = STR_NONE;
    fields_text(f, "name", TEXT_MAX, &t->name);

    struct str policy = STR_NONE;
    fields_any(f, "at_limit", &given);
    f->seen_count--;
    if (json_is_null(given))
        t->at_limit = AT_LIMIT_REJECT;
    fields_text(f, "at_limit", TEXT_MAX, &policy);
    if (policy.ptr == NULL)
        return;
    enum at_limit named = at_limit_of(policy);
    if (named == AT_LIMIT_COUNT)
        fields_fault(f, "at_limit", "must be one of reject, queue, cancel_oldest, coalesce");
    else if (named != AT_LIMIT_REJECT)
        fields_fault(f, "at_limit", "this version of pawl can only reject");
    else
        t->at_limit = named;
}

/* Fills `out` with the four settings, given or default. */
static enum err gate_text(const json_t *gate, struct problem *p, struct buf *out)
{
    int64_t max_wait_ms = 2000;
    int64_t lock_ttl_ms = 10000;
    int64_t retry_delay_ms = 10;
    struct str policy = STR("full_jitter");
    struct fields f;
    fields_begin(&f, gate, p);
    fields_int(&f, "max_wait_ms", 0, 600000, &max_wait_ms);
    fields_int(&f, "lock_ttl_ms", 1, 600000, &lock_ttl_ms);
    fields_int(&f, "retry_delay_ms", 0, 600000, &retry_delay_ms);
    fields_text(&f, "policy", NAME_MAX_LEN, &policy);
    if (!str_is(policy, "fixed") && !str_is(policy, "full_jitter") &&
        !str_is(policy, "equal_jitter") && !str_is(policy, "decorrelated"))
        fields_fault(&f, "policy", "must be one of fixed, full_jitter, equal_jitter, decorrelated");
    enum err e = fields_end(&f);
    if (e != ERR_OK)
        return e;
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    json_add_int(&o, "max_wait_ms", max_wait_ms);
    json_add_int(&o, "lock_ttl_ms", lock_ttl_ms);
    json_add_int(&o, "retry_delay_ms", retry_delay_ms);
    json_add_text(&o, "policy", policy);
    json_close(&o, '}');
    return ERR_OK;
}

static enum err rate_limit_text(const json_t *rate, struct problem *p, struct buf *out)
{
    int64_t per_second = 0;
    int64_t burst = 0;
    struct fields f;
    fields_begin(&f, rate, p);
    fields_int(&f, "per_second", 1, 1000000, &per_second);
    fields_int(&f, "burst", 1, 1000000, &burst);
    fields_require(&f, "per_second");
    fields_require(&f, "burst");
    enum err e = fields_end(&f);
    if (e != ERR_OK)
        return e;
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    json_add_int(&o, "per_second", per_second);
    json_add_int(&o, "burst", burst);
    json_close(&o, '}');
    return ERR_OK;
}

/* An object member that becomes kept text; null sets it to `when_null`. */
static void apply_object(struct fields *f, const char *name, struct str when_null,
                         enum err (*text_of)(const json_t *, struct problem *, struct buf *),
                         struct arena *arena, struct str *value)
{
    const json_t *given;
    fields_any(f, name, &given);
    if (given == NULL || f->err != ERR_OK)
        return;
    if (json_is_null(given)) {
        *value = when_null;
        return;
    }
    if (!json_is_object(given)) {
        fields_fault(f, name, "must be an object");
        return;
    }
    struct buf text;
    buf_init(&text, TEXT_MAX);
    f->err = text_of(given, f->problem, &text);
    if (f->err == ERR_OK) {
        *value = arena_str(arena, buf_str(&text));
        if (!buf_ok(&text) || value->ptr == NULL)
            f->err = problem_set(f->problem, ERR_NO_MEMORY, "no memory for the settings");
    }
    buf_release(&text);
}

enum err tenant_apply(struct tenant *t, const json_t *body, struct arena *arena, struct problem *p)
{
    static const int64_t SECONDS_MAX = INT64_C(100) * 366 * 86400;
    struct tenant changed = *t;
    int64_t retention_s = -2; /* not given */
    struct fields f;
    fields_begin(&f, body, p);
    apply_text(&f, &changed);
    int_or_default(&f, "max_concurrent_runs", 0, INT32_MAX, -1, &changed.max_concurrent_runs);
    int_or_default(&f, "max_queued_runs", 0, INT32_MAX, -1, &changed.max_queued_runs);
    int_or_default(&f, "idempotency_retention_s", 0, SECONDS_MAX, -1, &retention_s);
    int_or_default(&f, "weight", 1, 1000, 1, &changed.weight);
    apply_object(&f, "gate", STR(GATE_DEFAULT), gate_text, arena, &changed.gate);
    apply_object(&f, "rate_limit", STR_NONE, rate_limit_text, arena, &changed.rate_limit);
    if (retention_s != -2)
        changed.idempotency_retention_ms = retention_s < 0 ? -1 : retention_s * 1000;
    enum err e = fields_end(&f);
    if (e != ERR_OK)
        return e;
    if (changed.name.ptr != NULL && changed.name.ptr != t->name.ptr) {
        changed.name = arena_str(arena, changed.name);
        if (changed.name.ptr == NULL)
            return problem_set(p, ERR_NO_MEMORY, "no memory for the settings");
    }
    *t = changed;
    return ERR_OK;
}

/* --- admission --- */

enum err tenant_admit(const struct tenant *t, struct problem *p)
{
    assert(t->active_runs >= 0);
    if (t->max_concurrent_runs < 0 || t->active_runs < t->max_concurrent_runs)
        return ERR_OK;
    (void)problem_set(p, ERR_MAX_CONCURRENT_RUNS,
                      "%lld of %lld runs of tenant %.*s are active: try again when one has ended",
                      (long long)t->active_runs, (long long)t->max_concurrent_runs, STR_ARG(t->id));
    problem_add_number(p, "current", t->active_runs);
    problem_add_number(p, "limit", t->max_concurrent_runs);
    return p->err;
}
