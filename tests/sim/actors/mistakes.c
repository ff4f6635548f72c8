/* A client that gets everything wrong: each of its requests is refused by the code that fits, and
 * leaves nothing behind, not even its tenant. */
#include "sim/actions.h"

#define NOBODY "00000000-0000-7000-8000-000000000000"
#define TENANT "stranger"

struct mistake {
    const char *method;
    const char *target;
    const char *key;
    const char *body;
    int status;
    const char *code;
};

#define STEPS(text) "{\"steps\":[{\"name\":\"a\"," text "}]}"

static const struct mistake MISTAKES[] = {
    {"GET", "/api/v1/nothing", NULL, NULL, 404, "NOT_FOUND"},
    {"PATCH", "/api/v1/runs", NULL, NULL, 405, "METHOD_NOT_ALLOWED"},
    {"GET", "/api/v1/runs?limit=none", NULL, NULL, 400, "BAD_REQUEST"},
    {"GET", "/api/v1/runs?cursor=none", NULL, NULL, 400, "CURSOR_INVALID"},
    {"GET", "/api/v1/runs/" NOBODY, NULL, NULL, 404, "RUN_NOT_FOUND"},
    {"POST", "/api/v1/runs/" NOBODY "/cancel", NULL, "{}", 404, "RUN_NOT_FOUND"},
    {"POST", "/api/v1/runs/" NOBODY "/signals", NULL, "{\"name\":\"s\"}", 404, "RUN_NOT_FOUND"},
    {"POST", "/api/v1/runs/" NOBODY "/rerun", "k", "{}", 404, "RUN_NOT_FOUND"},
    {"POST", "/api/v1/workflows/none/runs", "k", "{}", 404, "WORKFLOW_NOT_FOUND"},
    {"POST", "/api/v1/workflows/none/runs", "k", "{\"inputs\":1}", 400, "FIELD_INVALID"},
    {"POST", "/api/v1/workflows/none/runs", "k", "{\"input\":", 400, "JSON_INVALID"},
    {"POST", "/api/v1/workflows/none/runs", "k", "{\"a\":1,\"a\":2}", 400, "JSON_INVALID"},
    {"POST", "/api/v1/workflows/none/runs", "\"open", "{}", 400, "IDEMPOTENCY_KEY_INVALID"},
    {"PUT", "/api/v1/workflows/none", NULL, STEPS("\"type\":\"none\""), 422, "DEFINITION_INVALID"},
    {"PUT", "/api/v1/workflows/none", NULL, STEPS("\"type\":\"transform\",\"output\":\"${1 +}\""),
     422, "DEFINITION_INVALID"},
    {"POST", "/api/v1/jobs/" NOBODY "/heartbeat", NULL, "{\"lease_token\":\"none\"}", 404,
     "JOB_NOT_FOUND"},
    {"POST", "/api/v1/jobs/" NOBODY "/complete", NULL, "{\"lease_token\":\"none\"}", 404,
     "JOB_NOT_FOUND"},
    {"POST", "/api/v1/dead-letters/" NOBODY "/retry", NULL, "{}", 404, "JOB_NOT_FOUND"},
    {"POST", "/api/v1/approvals/" NOBODY "/approve", NULL, "{}", 404, "APPROVAL_NOT_FOUND"},
    {"POST", "/api/v1/entities/none/x/signals", NULL, "{\"name\":\"s\"}", 404,
     "ENTITY_TYPE_NOT_FOUND"},
    {"GET", "/api/v1/entities/none/x", NULL, NULL, 404, "ENTITY_TYPE_NOT_FOUND"},
    {"GET", "/api/v1/entities/none/x/updates/0", NULL, NULL, 404, "UPDATE_NOT_FOUND"},
    {"GET", "/api/v1/entity-types/none", NULL, NULL, 404, "ENTITY_TYPE_NOT_FOUND"},
    {"GET", "/api/v1/schedules/none", NULL, NULL, 404, "SCHEDULE_NOT_FOUND"},
    {"POST", "/api/v1/schedules/none/trigger", NULL, "{}", 404, "SCHEDULE_NOT_FOUND"},
    {"PUT", "/api/v1/schedules/none", NULL, "{\"cron\":\"never\",\"workflow_id\":\"none\"}", 400,
     "FIELD_INVALID"},
    {"GET", "/api/v1/webhooks/" NOBODY, NULL, NULL, 404, "WEBHOOK_NOT_FOUND"},
    {"POST", "/api/v1/webhooks", NULL, "{\"url\":\"ftp://x\",\"events\":[\"*\"]}", 400,
     "FIELD_INVALID"},
    {"POST", "/api/v1/webhooks/" NOBODY "/deliveries/" NOBODY "/redeliver", NULL, "{}", 404,
     "WEBHOOK_NOT_FOUND"},
    {"GET", "/api/v1/tenants/" TENANT, NULL, NULL, 404, "TENANT_NOT_FOUND"},
    {"PUT", "/api/v1/tenants/" TENANT, NULL, "{\"max_concurrent_runs\":-1}", 400, "FIELD_INVALID"},
    {"POST", "/api/v1/tenants/" TENANT "/rollback", NULL, "{\"version\":1}", 404,
     "TENANT_NOT_FOUND"},
    {"DELETE", "/api/v1/keys/none", NULL, NULL, 404, "NOT_FOUND"},
    {"DELETE", "/api/v1/idempotency-keys/k", NULL, NULL, 404, "IDEMPOTENCY_KEY_NOT_FOUND"},
};

/* The server may also say that it cannot do anything right now. */
static void refused(struct sim *w, struct call *c)
{
    const struct mistake *m = c->spec.ref;
    if (c->status == 0 || c->status >= 500)
        return;
    sim_check(w, 0, c->status == m->status && strcmp(c->code, m->code) == 0,
              "%s %s with %s was answered by %d %s, not by %d %s", m->method, m->target,
              m->body != NULL ? m->body : "no body", c->status, c->code, m->status, m->code);
}

static void make_mistake(struct sim *w)
{
    const struct mistake *m = &MISTAKES[lot_below(&w->lot, (int)ARRAY_LEN(MISTAKES))];
    struct call_spec spec = {.place = sim_any_place(w),
                             .method = m->method,
                             .target = m->target,
                             .tenant = TENANT,
                             .key = m->key,
                             .body = m->body,
                             .retries = true,
                             .doubles = true,
                             .done = refused,
                             .ref = (void *)(uintptr_t)m};
    (void)sim_send(w, &spec);
}

static void last(struct sim *w)
{
    if (!sim_on(w, ON_MISTAKES))
        return;
    for (int i = 0; i < w->place_count; i++) {
        struct call *c = sim_ask(w, &w->places[i], NULL, "GET", "/api/v1/tenants/" TENANT, NULL);
        sim_check(w, 1, c != NULL && c->status == 404,
                  "a tenant exists whose requests were all refused");
        call_free(c);
    }
}

static const struct action ACTIONS[] = {
    {"a client makes a mistake", 12, NEEDS(ON_MISTAKES), make_mistake},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_MISTAKES = {.name = "mistakes", .actions = ACTIONS, .last = last};
