/* Workflows of every kind: operators change them, clients start their runs, and receivers answer
 * their calls. */
#include "sim/jobs/workflows.h"
#include "sim/receiver.h"

#include <stdlib.h>

enum { MADE_MAX = 7 * PLACES_MAX, N_MAX = 120, N_ALLOWED = 99 };

/* What a receiver has answered to the calls of one job. */
struct effect {
    char job_id[RUN_ID_LEN + 1];
    int64_t calls;
    int64_t first, last; /* numbers of its 200s; 0: none */
    struct effect *next;
};

struct workflows {
    struct made_workflow made[MADE_MAX];
    int count;
    int64_t starts;
    int64_t answers;
    struct effect *effects;
};

static struct workflows *state(struct sim *w)
{
    return w->states[ACTOR_WORKFLOWS_NUMBER];
}

const json_t *workflows_definition(struct sim *w, const struct seen_run *r, const json_t *run)
{
    struct workflows *s = state(w);
    const char *id = json_text(run, "workflow_id");
    int64_t version = json_number(run, "workflow_version");
    for (int i = 0; i < s->count; i++) {
        const struct made_workflow *m = &s->made[i];
        if (m->place == r->place && m->tenant == r->tenant && strcmp(m->id, id) == 0)
            return version > 0 && version < VERSIONS_MAX ? m->versions[version] : NULL;
    }
    return NULL;
}

/* --- operators --- */

static void version_made(struct sim *w, struct call *c)
{
    struct made_workflow *m = c->spec.ref;
    int64_t version = json_number(c->json, "version");
    sim_check(w, 0, c->status == 200 && version > 0, "a definition is refused: %d %s: %s",
              c->status, c->code, c->spec.body);
    sim_check(w, 6, version >= m->newest, "workflow %s goes back to version %lld", m->id,
              (long long)version);
    if (version < VERSIONS_MAX) {
        sim_check(w, 6, version > m->newest || json_equal(m->versions[version], m->pending),
                  "another definition of workflow %s is said to be version %lld", m->id,
                  (long long)version);
        if (m->newest > 0)
            limits_changed(m, m->versions[m->newest]);
        json_decref(m->versions[version]);
        m->versions[version] = json_incref(m->pending);
        m->newest = version;
    }
    json_decref(m->pending);
    m->pending = NULL;
    m->busy = m->archived = false;
    m->changed = c->answered;
}

static void send_change(struct sim *w, struct made_workflow *m, const char *method,
                        const char *body, void (*done)(struct sim *w, struct call *c))
{
    char tenant[8], target[64];
    tenant_name(tenant, m->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s", m->id);
    m->busy = true;
    struct call_spec spec = {.place = &w->places[m->place],
                             .method = method,
                             .target = target,
                             .tenant = tenant,
                             .body = body,
                             .retries = true,
                             .doubles = true,
                             .done = done,
                             .ref = m};
    (void)sim_send(w, &spec);
}

static void make_version(struct sim *w, struct made_workflow *m)
{
    struct buf body;
    buf_init(&body, 8192);
    definition_make(w, &body, m->depth, !m->is_child);
    m->pending = json_loadb(body.ptr, body.len, 0, NULL);
    assert(m->pending != NULL);
    send_change(w, m, "PUT", body.ptr, version_made);
    buf_release(&body);
}

static struct made_workflow *any_idle(struct sim *w)
{
    struct workflows *s = state(w);
    struct made_workflow *m = &s->made[lot_below(&w->lot, s->count)];
    return m->busy || m->newest >= VERSIONS_MAX - 2 ? NULL : m;
}

static void change_workflow(struct sim *w)
{
    struct made_workflow *m = any_idle(w);
    if (m != NULL)
        make_version(w, m);
}

static void archived(struct sim *w, struct call *c)
{
    struct made_workflow *m = c->spec.ref;
    sim_check(w, 0, c->status == 200, "workflow %s cannot be archived: %d %s", m->id, c->status,
              c->code);
    m->busy = false;
    m->archived = true;
    m->changed = c->answered;
}

static void archive_workflow(struct sim *w)
{
    struct made_workflow *m = any_idle(w);
    if (m != NULL && m->newest > 0)
        send_change(w, m, "DELETE", NULL, archived);
}

/* --- clients --- */

static void check_version(struct sim *w, const struct call *c, const struct made_workflow *m,
                          const json_t *run)
{
    int64_t version = json_number(run, "workflow_version");
    int64_t newest = c->spec.number / 1000;
    sim_check(w, 0, c->replayed || version >= newest,
              "a run of workflow %s gets version %lld, but %lld was acknowledged before", m->id,
              (long long)version, (long long)newest);
    bool fits = c->spec.number % 1000 <= N_ALLOWED || version >= VERSIONS_MAX ||
                json_object_get(m->versions[version], "input_schema") == NULL;
    sim_check(w, 0, fits, "an input that breaks the schema of version %lld of %s starts a run",
              (long long)version, m->id);
}

static void started(struct sim *w, struct call *c)
{
    const struct made_workflow *m = c->spec.ref;
    bool settled = !m->busy && m->changed < c->sent;
    const json_t *run = json_object_get(c->json, "run");
    if (c->status == 200) {
        sim_check(w, 0, c->replayed || c->tries > 1 || !settled || !m->archived,
                  "archived workflow %s starts a run", m->id);
        if (!json_is_true(json_object_get(c->json, "coalesced")))
            check_version(w, c, m, run);
        if (!c->replayed)
            (void)runs_observe(w, c, run);
        return;
    }
    sim_check(w, 0, c->status != 404 || !settled || m->archived || m->newest == 0,
              "workflow %s is not found", m->id);
    sim_check(w, 0, strcmp(c->code, "INPUT_INVALID") != 0 || c->spec.number % 1000 > N_ALLOWED,
              "a valid input is refused by %s", m->id);
}

static void put_options(struct sim *w, struct buf *b, const struct place *p)
{
    static const char *const WISHES[] = {"queue", "queue", "reject", "coalesce"};
    if (lot_percent(&w->lot, 25))
        buf_printf(b, ",\"priority\":%d", (int)lot_between(&w->lot, -3, 3));
    if (lot_percent(&w->lot, 30))
        buf_printf(b, ",\"at_limit\":\"%s\"", WISHES[lot_below(&w->lot, (int)ARRAY_LEN(WISHES))]);
    if (lot_percent(&w->lot, 10)) {
        buf_printf(b, ",\"start_at\":\"");
        buf_put_time(b, sim_now_ms(w) + p->skew_us / 1000 + lot_between(&w->lot, 0, 20000));
        buf_put_char(b, '"');
    }
}

static void put_input(struct sim *w, struct buf *b, int n)
{
    buf_printf(b, "{\"input\":{\"n\":%d,\"l\":[%s]", n,
               lot_percent(&w->lot, 20) ? "" : (lot_percent(&w->lot, 50) ? "7" : "4,5,6"));
    if (lot_percent(&w->lot, 85))
        buf_printf(b, ",\"k\":%d", lot_below(&w->lot, LIMIT_KEYS - 1));
    buf_put_char(b, '}');
}

static void start(struct sim *w)
{
    struct workflows *s = state(w);
    struct made_workflow *m = &s->made[lot_below(&w->lot, s->count)];
    char tenant[8], target[64], key[40];
    if (m->is_child)
        return;
    struct buf body;
    int n = lot_below(&w->lot, N_MAX);
    buf_init(&body, 1000);
    put_input(w, &body, n);
    put_options(w, &body, &w->places[m->place]);
    buf_put_char(&body, '}');
    tenant_name(tenant, m->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s/runs", m->id);
    (void)snprintf(key, sizeof(key), "made-%lld", (long long)++s->starts);
    struct call_spec spec = {.place = &w->places[m->place],
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .key = key,
                             .body = body.ptr,
                             .retries = true,
                             .doubles = true,
                             .done = started,
                             .ref = m,
                             .number = (m->busy ? 0 : m->newest) * 1000 + n};
    (void)sim_send(w, &spec);
    buf_release(&body);
}

/* --- receivers --- */

static struct effect *effect_of(struct workflows *s, struct str job_id)
{
    for (struct effect *e = s->effects; e != NULL; e = e->next) {
        if (str_is(job_id, e->job_id))
            return e;
    }
    struct effect *e = calloc(1, sizeof(*e));
    assert(e != NULL);
    (void)snprintf(e->job_id, sizeof(e->job_id), "%.*s", STR_ARG(job_id));
    e->next = s->effects;
    s->effects = e;
    return e;
}

bool steps_answered(struct sim *w, const char *job_id, int64_t number)
{
    for (const struct effect *e = state(w)->effects; e != NULL; e = e->next) {
        if (strcmp(e->job_id, job_id) == 0)
            return number >= e->first && number <= e->last;
    }
    return false;
}

static int64_t refuse(struct sim *w, struct http_call *call)
{
    switch (lot_below(&w->lot, 5)) {
    case 0:
        receiver_answer(call, 400, "{}");
        return 5;
    case 1:
        http_call_end(call, CALL_CONNECTION_LOST, "the answer was lost");
        return 20;
    case 2:
        return 3600 * 1000; /* past every patience */
    case 3:
        http_call_end(call, CALL_CONNECT_FAILED, "nobody listens");
        return 1;
    default:
        receiver_answer(call, lot_percent(&w->lot, 50) ? 503 : 429, "{}");
        return 5;
    }
}

/* Does the work each time, and answers with the number of that. */
int64_t steps_receive(struct place *p, struct http_call *call)
{
    struct sim *w = p->sim;
    struct workflows *s = state(w);
    char body[40];
    struct str key = received_header(call, "Idempotency-Key");
    sim_check(w, 0, key.len == RUN_ID_LEN, "a call without the id of its job as its key");
    struct effect *e = effect_of(s, key);
    e->calls++;
    if (!w->calm && lot_percent(&w->lot, 35))
        return refuse(w, call);
    e->last = ++s->answers;
    if (e->first == 0)
        e->first = e->last;
    (void)snprintf(body, sizeof(body), "{\"answer\":%lld}", (long long)e->last);
    receiver_answer(call, 200, body);
    return w->calm ? 1 : lot_between(&w->lot, 1, 400);
}

/* --- the actor --- */

static void audit(struct sim *w)
{
    struct workflows *s = state(w);
    for (int i = 0; i < s->count; i++) {
        if (!s->made[i].is_child)
            limits_audit(w, &s->made[i]);
    }
}

static void add(struct sim *w, int place, int tenant, const char *name, int number, int depth)
{
    struct workflows *s = state(w);
    struct made_workflow *m = &s->made[s->count++];
    *m = (struct made_workflow){.place = place, .tenant = tenant, .depth = depth};
    m->is_child = name[0] == 'c';
    (void)snprintf(m->id, sizeof(m->id), "%s%d", name, number);
    make_version(w, m);
}

static void begin(struct sim *w)
{
    struct workflows *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    w->states[ACTOR_WORKFLOWS_NUMBER] = s;
    for (int i = 0; i < w->place_count; i++) {
        int tenant = lot_below(&w->lot, TENANTS);
        int other = lot_below(&w->lot, TENANTS);
        for (int n = 0; n < CHILD_WORKFLOWS && sim_on(w, ON_CHILDREN); n++) {
            add(w, i, tenant, "child", n, n);
            if (other != tenant)
                add(w, i, other, "child", n, n);
        }
        add(w, i, tenant, "g", 0, CHILD_WORKFLOWS);
        add(w, i, tenant, "g", 1, CHILD_WORKFLOWS);
        add(w, i, other, "g", 2, CHILD_WORKFLOWS);
    }
}

static void release(struct sim *w)
{
    struct workflows *s = state(w);
    for (int i = 0; i < s->count; i++) {
        for (int v = 0; v < VERSIONS_MAX; v++)
            json_decref(s->made[i].versions[v]);
        json_decref(s->made[i].pending);
    }
    while (s->effects != NULL) {
        struct effect *e = s->effects;
        s->effects = e->next;
        free(e);
    }
    free(s);
    w->states[ACTOR_WORKFLOWS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"a client starts a made workflow", 40, 0, start},
    {"a workflow is changed", 5, NEEDS(ON_VERSIONS), change_workflow},
    {"a workflow is archived", 1, NEEDS(ON_VERSIONS), archive_workflow},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_WORKFLOWS = {
    .name = "workflows", .actions = ACTIONS, .begin = begin, .audit = audit, .free = release};
