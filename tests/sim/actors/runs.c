/* Workflows, tenants and their limits; runs as everybody sees them. */
#include "sim/runs.h"

#include <stdlib.h>

enum { WORKFLOWS = RUNS_WORKFLOWS };

struct tenant_model {
    int64_t limit;   /* acknowledged last; -1: none */
    int64_t highest; /* of all that may be in force */
    int changes;     /* requests under way that change it */
    int64_t allowed; /* more than the limit while runs from before end */
    bool removes;    /* runs that are over */
};

struct runs {
    struct seen_run *first;
    int count;
    struct tenant_model tenants[PLACES_MAX][TENANTS];
};

static struct runs *state(struct sim *w)
{
    return w->states[ACTOR_RUNS_NUMBER];
}

void tenant_name(char out[static 8], int tenant)
{
    (void)snprintf(out, 8, "t%d", tenant);
}

int64_t runs_limit(struct sim *w, int place, int tenant)
{
    return state(w)->tenants[place][tenant].limit;
}

/* --- runs as they are seen --- */

bool run_status_is_over(const char *status)
{
    static const char *const OVER[] = {"succeeded", "failed", "denied", "cancelled", "timed_out"};
    for (size_t i = 0; i < ARRAY_LEN(OVER); i++) {
        if (strcmp(status, OVER[i]) == 0)
            return true;
    }
    return false;
}

static bool holds_slot(const char *status)
{
    return !run_status_is_over(status) && strcmp(status, "queued") != 0;
}

struct seen_run *runs_first(struct sim *w)
{
    return state(w)->first;
}

struct seen_run *runs_any(struct sim *w, int over)
{
    struct seen_run *found = NULL;
    int count = 0;
    for (struct seen_run *r = state(w)->first; r != NULL; r = r->next) {
        if (!r->removed && (over < 0 || r->over == over) && lot_below(&w->lot, ++count) == 0)
            found = r;
    }
    return found;
}

struct seen_run *seen_run_of(struct sim *w, const char *id)
{
    for (struct seen_run *r = state(w)->first; r != NULL; r = r->next) {
        if (strcmp(r->id, id) == 0)
            return r;
    }
    return NULL;
}

static struct seen_run *find_or_add(struct sim *w, const struct call *c, const char *id)
{
    struct runs *s = state(w);
    struct seen_run *r = seen_run_of(w, id);
    if (r != NULL)
        return r;
    r = calloc(1, sizeof(*r));
    assert(r != NULL);
    (void)snprintf(r->id, sizeof(r->id), "%s", id);
    r->place = c->spec.place->number;
    r->tenant = c->spec.tenant != NULL && c->spec.tenant[0] == 't' ? c->spec.tenant[1] - '0' : 0;
    r->next = s->first;
    s->first = r;
    s->count++;
    return r;
}

/* A run that is over stays so, unless it has failed or timed out and is retried. */
static void check_end(struct sim *w, const struct call *c, const struct seen_run *r,
                      const char *status)
{
    bool retryable = strcmp(r->status, "failed") == 0 || strcmp(r->status, "timed_out") == 0;
    bool newer = c->sent > r->seen_at;
    sim_check(w, 6,
              !r->over || !newer || strcmp(status, r->status) == 0 || (retryable && r->moved > 0),
              "run %s is %s, but was %s before", r->id, status, r->status);
    sim_check(w, 6,
              r->said_over == 0 || c->sent < r->said_over || run_status_is_over(status) ||
                  r->moved > 0,
              "run %s is %s, but a refusal said that it was over", r->id, status);
}

struct seen_run *runs_observe(struct sim *w, const struct call *c, const json_t *run)
{
    const char *id = json_text(run, "id");
    const char *status = json_text(run, "status");
    int64_t version = json_number(run, "version");
    if (strlen(id) != RUN_ID_LEN || status[0] == '\0' || version < 0)
        return NULL;
    struct seen_run *r = find_or_add(w, c, id);
    (void)snprintf(r->workflow, sizeof(r->workflow), "%s", json_text(run, "workflow_id"));
    sim_check(w, 6, c->sent < r->seen_at || version >= r->version,
              "run %s has version %lld, but %lld was shown before", id, (long long)version,
              (long long)r->version);
    sim_check(w, 6, version != r->version || strcmp(status, r->status) == 0,
              "run %s is %s and was %s in the same version %lld", id, status, r->status,
              (long long)version);
    check_end(w, c, r, status);
    if (version > r->version) {
        char transition[32];
        (void)snprintf(transition, sizeof(transition), "%s>%s", r->status, status);
        sim_cover(w, "transition", transition);
        sim_cover(w, "status", status);
        r->version = version;
        r->seen_at = c->answered;
        (void)snprintf(r->status, sizeof(r->status), "%s", status);
        r->priority = json_number(run, "priority");
        r->over = run_status_is_over(status);
    }
    return r;
}

/* --- operators --- */

static const char *const WORKFLOW_BODIES[WORKFLOWS] = {
    "{\"steps\":[{\"name\":\"a\",\"type\":\"transform\",\"output\":{\"x\":\"${input.n}\"}}]}",
    "{\"steps\":[{\"name\":\"a\",\"type\":\"sleep\",\"duration_ms\":700}]}",
    "{\"timeout_s\":60,\"steps\":[{\"name\":\"a\",\"type\":\"sleep\",\"duration_ms\":45000},"
    "{\"name\":\"b\",\"type\":\"sleep\",\"duration_ms\":45000}]}",
};

static void warm(struct sim *w, struct place *p)
{
    for (int i = 0; i < TENANTS * WORKFLOWS; i++) {
        char tenant[8], target[64];
        tenant_name(tenant, i / WORKFLOWS);
        (void)snprintf(target, sizeof(target), "/api/v1/workflows/w%d", i % WORKFLOWS);
        struct call *c = sim_ask(w, p, tenant, "PUT", target, WORKFLOW_BODIES[i % WORKFLOWS]);
        assert(c != NULL && c->status == 200);
        call_free(c);
    }
}

bool runs_limit_changes(struct sim *w, int place, int tenant, int64_t limit)
{
    struct tenant_model *t = &state(w)->tenants[place][tenant];
    if (t->changes > 0)
        return false;
    t->changes++;
    if (t->limit >= 0)
        t->highest = limit < 0 ? INT64_MAX : MAX(t->highest, limit);
    return true;
}

void runs_limit_is(struct sim *w, int place, int tenant, int64_t limit)
{
    struct tenant_model *t = &state(w)->tenants[place][tenant];
    /* Runs that the limit before has admitted may go on. */
    t->allowed = MAX(t->allowed, t->limit < 0 ? INT64_MAX : t->highest);
    t->limit = limit;
    t->changes--;
    t->highest = limit < 0 ? INT64_MAX : limit;
}

void runs_may_be_removed(struct sim *w, int place, int tenant)
{
    state(w)->tenants[place][tenant].removes = true;
}

static void limit_set(struct sim *w, struct call *c)
{
    int tenant = (int)(c->spec.number % TENANTS);
    sim_check(w, 0, c->status == 200, "a limit is refused: %d %s", c->status, c->code);
    runs_limit_is(w, c->spec.place->number, tenant, c->spec.number / TENANTS);
}

static void set_limit(struct sim *w)
{
    char tenant[8], target[64], body[64];
    struct place *p = sim_any_place(w);
    int t = lot_below(&w->lot, TENANTS);
    int64_t limit = lot_between(&w->lot, 1, 4);
    if (!runs_limit_changes(w, p->number, t, limit))
        return;
    tenant_name(tenant, t);
    (void)snprintf(target, sizeof(target), "/api/v1/tenants/%s", tenant);
    (void)snprintf(body, sizeof(body), "{\"max_concurrent_runs\":%d,\"at_limit\":\"%s\"}",
                   (int)limit, lot_percent(&w->lot, 50) ? "queue" : "reject");
    struct call_spec spec = {.place = p,
                             .method = "PUT",
                             .target = target,
                             .body = body,
                             .retries = true,
                             .done = limit_set,
                             .number = limit * TENANTS + t};
    (void)sim_send(w, &spec);
}

/* --- readers --- */

static void run_read(struct sim *w, struct call *c)
{
    struct seen_run *r = c->spec.ref;
    if (c->status == 200)
        (void)runs_observe(w, c, c->json);
    if (c->status == 404 && state(w)->tenants[r->place][r->tenant].removes)
        r->removed = true;
    sim_check(w, 6, c->status != 404 || r->removed, "run %s was shown before and is gone", r->id);
}

static void read_run(struct sim *w)
{
    char tenant[8], target[80];
    struct seen_run *r = runs_any(w, -1);
    if (r == NULL)
        return;
    tenant_name(tenant, r->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", r->id);
    struct call_spec spec = {.place = &w->places[r->place],
                             .method = "GET",
                             .target = target,
                             .tenant = tenant,
                             .done = run_read,
                             .ref = r};
    (void)sim_send(w, &spec);
}

/* --- the model --- */

/* A child uses its parent's slot. Workflows of this name are only started by other runs. */
static bool is_child(const json_t *run)
{
    return strncmp(json_text(run, "workflow_id"), "child", 5) == 0;
}

/* Counts runs that hold a slot, as the list shows them, or all that are not over and not queued;
 * -1: it could not be read. */
static int64_t count_active(struct sim *w, struct place *p, const char *tenant, bool children)
{
    struct call *c = sim_ask(w, p, tenant, "GET", "/api/v1/runs?limit=200", NULL);
    if (c == NULL || c->status != 200) {
        call_free(c);
        return -1;
    }
    int64_t active = 0;
    size_t i;
    json_t *run;
    json_array_foreach (json_object_get(c->json, "items"), i, run) {
        (void)runs_observe(w, c, run);
        active += holds_slot(json_text(run, "status")) && (children || !is_child(run));
    }
    bool whole = json_is_null(json_object_get(c->json, "next_cursor"));
    call_free(c);
    return whole ? active : -1;
}

/* What the tenant's own counter says; -1: it could not be read. */
static int64_t counter_of(struct sim *w, struct place *p, const char *tenant)
{
    char target[64];
    (void)snprintf(target, sizeof(target), "/api/v1/tenants/%s", tenant);
    struct call *c = sim_ask(w, p, NULL, "GET", target, NULL);
    int64_t counter = c != NULL && c->status == 200 ? json_number(c->json, "active_runs") : -1;
    call_free(c);
    return counter;
}

/* Runs begin and end between two questions: only what stays the same around the counter counts. */
static void check_counter(struct sim *w, struct place *p, const char *tenant, int64_t active)
{
    int64_t counter = counter_of(w, p, tenant);
    for (int i = 0; i < 5 && counter >= 0 && counter != active; i++) {
        int64_t before = count_active(w, p, tenant, false);
        counter = counter_of(w, p, tenant);
        int64_t after = count_active(w, p, tenant, false);
        active = before >= 0 && before == after ? before : counter;
    }
    sim_check(w, 2, counter < 0 || counter == active,
              "tenant %s counts %lld active runs, but has %lld", tenant, (long long)counter,
              (long long)active);
}

static void audit_tenant(struct sim *w, struct place *p, int number)
{
    struct tenant_model *t = &state(w)->tenants[p->number][number];
    char tenant[8];
    tenant_name(tenant, number);
    int64_t active = count_active(w, p, tenant, false);
    if (active < 0)
        return;
    check_counter(w, p, tenant, active);
    if (t->limit >= 0) {
        sim_check(w, 2, active <= MAX(t->highest, t->allowed),
                  "tenant %s has %lld active runs, its limit is %lld", tenant, (long long)active,
                  (long long)t->limit);
        t->allowed = active;
    } else {
        t->allowed = INT64_MAX; /* whatever is active when the first limit comes */
    }
}

static void audit(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++) {
        for (int t = 0; t < TENANTS; t++)
            audit_tenant(w, &w->places[i], t);
    }
}

/* A run that ended and was removed since somebody has seen it is in no list. */
static void ask_for(struct sim *w, struct seen_run *r)
{
    char tenant[8], target[80];
    tenant_name(tenant, r->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", r->id);
    struct call *c = sim_ask(w, &w->places[r->place], tenant, "GET", target, NULL);
    r->removed |= c != NULL && c->status == 404;
    if (c != NULL && c->status == 200)
        (void)runs_observe(w, c, c->json);
    call_free(c);
}

/* Runs that nobody has looked at lately may be over by now. */
static bool finish(struct sim *w)
{
    bool waits = false;
    for (int i = 0; i < w->place_count; i++) {
        for (int t = 0; t < TENANTS; t++) {
            char tenant[8];
            tenant_name(tenant, t);
            waits |= count_active(w, &w->places[i], tenant, true) != 0;
        }
    }
    for (struct seen_run *r = state(w)->first; r != NULL; r = r->next) {
        if (!r->over && state(w)->tenants[r->place][r->tenant].removes)
            ask_for(w, r); /* it may be over and gone, and so in no list */
        waits |= !r->over && !r->removed;
    }
    return waits;
}

/* Every slot is free again. */
static void last(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++) {
        for (int t = 0; t < TENANTS; t++) {
            char tenant[8];
            tenant_name(tenant, t);
            int64_t active = count_active(w, &w->places[i], tenant, true);
            sim_check(w, 2, active <= 0, "tenant %s still has %lld active runs", tenant,
                      (long long)active);
        }
    }
}

static void begin(struct sim *w)
{
    struct runs *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    w->states[ACTOR_RUNS_NUMBER] = s;
    for (int i = 0; i < PLACES_MAX; i++) {
        for (int t = 0; t < TENANTS; t++)
            s->tenants[i][t] =
                (struct tenant_model){.limit = -1, .highest = -1, .allowed = INT64_MAX};
    }
}

static void release(struct sim *w)
{
    struct runs *s = state(w);
    while (s->first != NULL) {
        struct seen_run *r = s->first;
        s->first = r->next;
        free(r);
    }
    free(s);
    w->states[ACTOR_RUNS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"a limit is set", 6, 0, set_limit},
    {"somebody reads a run", 10, 0, read_run},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_RUNS = {.name = "runs",
                                 .actions = ACTIONS,
                                 .warm = warm,
                                 .begin = begin,
                                 .audit = audit,
                                 .finish = finish,
                                 .last = last,
                                 .free = release};
