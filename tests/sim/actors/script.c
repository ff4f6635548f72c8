/* What scripts are made of. */
#include "sim/actors/script.h"

struct place *script_place(struct sim *w)
{
    return &w->places[0];
}

/* --- asking --- */

struct call *script_ask(struct sim *w, const char *tenant, const char *method, const char *target,
                        const char *body)
{
    struct call *c = sim_ask(w, script_place(w), tenant, method, target, body);
    sim_tell(w, "  script: %s %s %.300s -> %d %s", method, target, body != NULL ? body : "",
             c != NULL ? c->status : 0, c != NULL ? c->code : "");
    if (c != NULL && c->status >= 500) {
        call_free(c);
        return NULL;
    }
    return c;
}

bool script_done(struct call *c)
{
    bool ok = c != NULL && c->status == 200;
    call_free(c);
    return ok;
}

bool script_take(struct call *c, const char *member, char *out, size_t size)
{
    out[0] = '\0';
    if (c != NULL && c->status == 200)
        (void)snprintf(out, size, "%s", json_text(c->json, member));
    call_free(c);
    return out[0] != '\0';
}

struct call *script_send(struct sim *w, const char *method, const char *target, const char *body)
{
    struct call_spec spec = {.place = script_place(w),
                             .method = method,
                             .target = target,
                             .tenant = SCRIPT_TENANT,
                             .body = body,
                             .at_once = true};
    return sim_send(w, &spec);
}

/* --- runs --- */

void script_warm(struct sim *w, const struct place *p, const struct script_put *rows, size_t count)
{
    for (size_t i = 0; p == script_place(w) && i < count; i++) {
        bool ok = script_done(script_ask(w, rows[i].tenant, "PUT", rows[i].target, rows[i].body));
        assert(ok);
    }
}

bool script_put_workflow(struct sim *w, const char *tenant, const char *id, const char *body)
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s", id);
    return script_done(script_ask(w, tenant, "PUT", target, body));
}

bool script_start(struct sim *w, const char *tenant, const char *workflow, const char *body,
                  char id[static 40])
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s/runs", workflow);
    return script_take(script_ask(w, tenant, "POST", target, body), "run_id", id, 40);
}

void script_status(struct sim *w, const char *tenant, const char *run, char out[static 16])
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", run);
    (void)script_take(script_ask(w, tenant, "GET", target, NULL), "status", out, 16);
}

/* --- jobs --- */

bool script_claim(struct sim *w, const char *tenant, const char *queue, int lease_ms,
                  struct script_job *ret)
{
    char body[120];
    (void)snprintf(body, sizeof(body), "{\"worker_id\":\"s\",\"queues\":[\"%s\"],\"lease_ms\":%d}",
                   queue, lease_ms);
    struct call *c = script_ask(w, tenant, "POST", "/api/v1/jobs/claim", body);
    const json_t *first = c != NULL ? json_array_get(json_object_get(c->json, "jobs"), 0) : NULL;
    (void)snprintf(ret->id, sizeof(ret->id), "%s", json_text(first, "job_id"));
    (void)snprintf(ret->token, sizeof(ret->token), "%s", json_text(first, "lease_token"));
    (void)snprintf(ret->run, sizeof(ret->run), "%s", json_text(first, "run_id"));
    (void)snprintf(ret->handler, sizeof(ret->handler), "%s", json_text(first, "handler"));
    ret->asked = script_done(c);
    return ret->id[0] != '\0';
}

struct call *script_answer(struct sim *w, const char *tenant, const struct script_job *job,
                           const char *verb, const char *members)
{
    char target[80];
    char body[200];
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/%s", job->id, verb);
    (void)snprintf(body, sizeof(body), "{\"lease_token\":\"%s\"%s}", job->token, members);
    return script_ask(w, tenant, "POST", target, body);
}
