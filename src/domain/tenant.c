/* A tenant's settings. */
#include "domain/tenant.h"

#include "base/limits.h"

static const struct gate_policy GATE_DEFAULT = {2000, 10000, 10, BACKOFF_FULL_JITTER,
                                                GATE_KIND_STORE};
static const char *const GATE_KINDS[] = {[GATE_KIND_STORE] = "store", [GATE_KIND_REDIS] = "redis"};

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
        .run_retention_ms = -1,
        .weight = 1,
        .gate = GATE_DEFAULT,
        .settings_version = 1,
        .created_at = now_ms,
        .updated_at = now_ms,
    };
}

/* --- settings --- */

/* A number that null sets to its default. */
static void int_or_default(struct fields *f, const char *name, int64_t min, int64_t max,
                           int64_t when_null, int64_t *value)
{
    const struct json *given;
    fields_any(f, name, &given);
    if (json_is(given, JSON_KIND_NULL)) {
        *value = when_null;
        return;
    }
    f->seen_count--; /* fields_int notes the name again */
    fields_int(f, name, min, max, value);
}

static void apply_text(struct fields *f, struct tenant *t)
{
    const struct json *given;
    fields_any(f, "name", &given);
    f->seen_count--;
    if (json_is(given, JSON_KIND_NULL))
        t->name = STR_NONE;
    fields_text(f, "name", TEXT_MAX, &t->name);

    struct str policy = STR_NONE;
    fields_any(f, "at_limit", &given);
    f->seen_count--;
    if (json_is(given, JSON_KIND_NULL))
        t->at_limit = AT_LIMIT_REJECT;
    fields_text(f, "at_limit", TEXT_MAX, &policy);
    if (policy.ptr == NULL)
        return;
    enum at_limit named = at_limit_of(policy);
    if (named == AT_LIMIT_COUNT)
        fields_fault(f, "at_limit", "must be one of reject, queue, cancel_oldest, coalesce");
    else
        t->at_limit = named;
}

static enum gate_kind gate_kind_of(struct str name)
{
    size_t kind = 0;
    while (kind < ARRAY_LEN(GATE_KINDS) && !str_is(name, GATE_KINDS[kind]))
        kind++;
    return (enum gate_kind)kind;
}

static enum err read_gate(const struct json *json, struct problem *p, void *ret)
{
    struct gate_policy gate = GATE_DEFAULT;
    struct str policy = STR_NONE;
    struct str kind = STR_NONE;
    struct fields f;
    fields_begin(&f, json, p);
    fields_text(&f, "kind", NAME_MAX_LEN, &kind);
    gate.kind = gate_kind_of(kind);
    if (kind.ptr != NULL && gate.kind == GATE_KIND_UNSAID)
        fields_fault(&f, "kind", "must be store or redis");
    fields_int(&f, "max_wait_ms", 0, 600000, &gate.max_wait_ms);
    fields_int(&f, "lock_ttl_ms", 1, 600000, &gate.lock_ttl_ms);
    fields_int(&f, "retry_delay_ms", 0, 600000, &gate.retry_delay_ms);
    fields_text(&f, "policy", NAME_MAX_LEN, &policy);
    if (policy.ptr != NULL)
        gate.policy = backoff_policy_of(policy);
    if (gate.policy == BACKOFF_POLICY_COUNT)
        fields_fault(&f, "policy", "must be one of fixed, full_jitter, equal_jitter, decorrelated");
    enum err e = fields_end(&f);
    if (e == ERR_OK)
        *(struct gate_policy *)ret = gate;
    return e;
}

static enum err read_rate(const struct json *json, struct problem *p, void *ret)
{
    struct rate_limit rate = {0, 0};
    struct fields f;
    fields_begin(&f, json, p);
    fields_int(&f, "per_second", 1, 1000000, &rate.per_second);
    fields_int(&f, "burst", 1, 1000000, &rate.burst);
    fields_require(&f, "per_second");
    fields_require(&f, "burst");
    enum err e = fields_end(&f);
    if (e == ERR_OK)
        *(struct rate_limit *)ret = rate;
    return e;
}

void gate_policy_put(struct json_out *o, const char *name, const struct gate_policy *gate)
{
    assert(gate->kind != GATE_KIND_UNSAID);
    json_open(o, name, '{');
    json_add_text(o, "kind", str_of(GATE_KINDS[gate->kind]));
    json_add_int(o, "max_wait_ms", gate->max_wait_ms);
    json_add_int(o, "lock_ttl_ms", gate->lock_ttl_ms);
    json_add_int(o, "retry_delay_ms", gate->retry_delay_ms);
    json_add_text(o, "policy", str_of(backoff_policy_name(gate->policy)));
    json_close(o, '}');
}

void rate_limit_put(struct json_out *o, const char *name, const struct rate_limit *rate)
{
    if (rate->per_second == 0) {
        json_add_null(o, name);
        return;
    }
    json_open(o, name, '{');
    json_add_int(o, "per_second", rate->per_second);
    json_add_int(o, "burst", rate->burst);
    json_close(o, '}');
}

typedef enum err read_setting(const struct json *json, struct problem *p, void *ret);

static enum err parse_kept(struct str text, read_setting *read, void *ret)
{
    struct problem p;
    struct json *json = NULL;
    enum err e = json_read_kept(text, &json);
    if (e != ERR_OK)
        return e;
    problem_init(&p);
    if (!json_is(json, JSON_KIND_OBJECT) || read(json, &p, ret) != ERR_OK)
        e = ERR_DAMAGED;
    json_free(json);
    problem_release(&p);
    return e;
}

bool gate_policy_eq(const struct gate_policy *a, const struct gate_policy *b)
{
    return a->max_wait_ms == b->max_wait_ms && a->lock_ttl_ms == b->lock_ttl_ms &&
           a->retry_delay_ms == b->retry_delay_ms && a->policy == b->policy && a->kind == b->kind;
}

bool gate_policy_is_default(const struct gate_policy *gate)
{
    return gate_policy_eq(gate, &GATE_DEFAULT);
}

enum err gate_policy_parse(struct str json, struct gate_policy *ret)
{
    struct gate_policy kept = GATE_DEFAULT;
    enum err e = json.len == 0 ? ERR_OK : parse_kept(json, read_gate, &kept);
    if (kept.kind == GATE_KIND_UNSAID)
        kept.kind = GATE_KIND_STORE;
    *ret = kept;
    return e;
}

enum err rate_limit_parse(struct str json, struct rate_limit *ret)
{
    *ret = (struct rate_limit){0, 0};
    return json.len == 0 ? ERR_OK : parse_kept(json, read_rate, ret);
}

/* An object member; null sets it to `when_null`. */
static void apply_object(struct fields *f, const char *name, const void *when_null, size_t size,
                         read_setting *read, void *value)
{
    const struct json *given;
    fields_any(f, name, &given);
    if (given == NULL || f->err != ERR_OK)
        return;
    if (json_is(given, JSON_KIND_NULL))
        memcpy(value, when_null, size);
    else if (json_is(given, JSON_KIND_OBJECT))
        f->err = read(given, f->problem, value);
    else
        fields_fault(f, name, "must be an object");
}

enum err tenant_apply(struct tenant *t, const struct json *body, struct arena *arena,
                      struct problem *p)
{
    static const int64_t SECONDS_MAX = INT64_C(100) * 366 * 86400;
    static const struct rate_limit NO_RATE = {0, 0};
    struct tenant changed = *t;
    int64_t retention_s = -2; /* not given */
    int64_t run_retention_s = -2;
    struct fields f;
    fields_begin(&f, body, p);
    apply_text(&f, &changed);
    int_or_default(&f, "max_concurrent_runs", 0, INT32_MAX, -1, &changed.max_concurrent_runs);
    int_or_default(&f, "max_queued_runs", 0, INT32_MAX, -1, &changed.max_queued_runs);
    int_or_default(&f, "idempotency_retention_s", 0, SECONDS_MAX, -1, &retention_s);
    int_or_default(&f, "run_retention_s", 0, SECONDS_MAX, -1, &run_retention_s);
    int_or_default(&f, "weight", 1, 1000, 1, &changed.weight);
    apply_object(&f, "gate", &GATE_DEFAULT, sizeof(GATE_DEFAULT), read_gate, &changed.gate);
    apply_object(&f, "rate_limit", &NO_RATE, sizeof(NO_RATE), read_rate, &changed.rate_limit);
    if (retention_s != -2)
        changed.idempotency_retention_ms = retention_s < 0 ? -1 : retention_s * 1000;
    if (run_retention_s != -2)
        changed.run_retention_ms = run_retention_s < 0 ? -1 : run_retention_s * 1000;
    enum err e = fields_end(&f);
    if (e != ERR_OK)
        return e;
    if (changed.name.ptr != NULL && changed.name.ptr != t->name.ptr) {
        changed.name = arena_str(arena, changed.name);
        if (changed.name.ptr == NULL)
            return problem_set(p, ERR_NO_MEMORY, "No memory for the settings");
    }
    *t = changed;
    return ERR_OK;
}

static void add_limit(struct json_out *o, const char *name, int64_t limit)
{
    if (limit < 0)
        json_add_null(o, name);
    else
        json_add_int(o, name, limit);
}

void tenant_put_settings(struct json_out *o, const struct tenant *t)
{
    json_add_text_or_null(o, "name", t->name);
    add_limit(o, "max_concurrent_runs", t->max_concurrent_runs);
    add_limit(o, "max_queued_runs", t->max_queued_runs);
    json_add_text(o, "at_limit", str_of(at_limit_name(t->at_limit)));
    add_limit(o, "idempotency_retention_s",
              t->idempotency_retention_ms < 0 ? -1 : t->idempotency_retention_ms / 1000);
    add_limit(o, "run_retention_s", t->run_retention_ms < 0 ? -1 : t->run_retention_ms / 1000);
    gate_policy_put(o, "gate", &t->gate);
    rate_limit_put(o, "rate_limit", &t->rate_limit);
    json_add_int(o, "weight", t->weight);
}

int64_t tenant_queue_max(const struct tenant *t)
{
    return t->max_queued_runs < 0 ? QUEUED_RUNS_MAX : t->max_queued_runs;
}
