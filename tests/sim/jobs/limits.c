/* Limits of workflows and of keys: never exceeded, and the queue behind them in order. */
#include "sim/jobs/workflows.h"

static const char *const RULES[] = {"", "input.k"};

/* Which of the limits with the same rule counts this run. */
static int key_of(const json_t *run, int rule)
{
    int64_t k = json_number(json_object_get(run, "input"), "k");
    return rule == 0 ? 0 : (k < 0 ? LIMIT_KEYS - 1 : (int)k);
}

static bool is_active(const json_t *run)
{
    const char *status = json_text(run, "status");
    return !run_status_is_over(status) && strcmp(status, "queued") != 0;
}

void limits_changed(struct made_workflow *m, const json_t *before)
{
    for (int rule = 0; rule < 2; rule++) {
        int64_t limit = definition_limit(before, RULES[rule]);
        for (int k = 0; k < LIMIT_KEYS; k++)
            m->allowed[rule][k] = MAX(m->allowed[rule][k], limit);
    }
}

/* --- limits --- */

static bool counts(const struct made_workflow *m, const json_t *run, int rule)
{
    int64_t version = json_number(run, "workflow_version");
    return is_active(run) && version > 0 && version < VERSIONS_MAX &&
           definition_limit(m->versions[version], RULES[rule]) != INT64_MAX;
}

static void check_rule(struct sim *w, struct made_workflow *m, const json_t *runs, int rule)
{
    int64_t active[LIMIT_KEYS] = {0};
    int64_t limit = definition_limit(m->versions[m->newest], RULES[rule]);
    size_t i;
    json_t *run;
    json_array_foreach (runs, i, run)
        active[key_of(run, rule)] += counts(m, run, rule);
    for (int k = 0; k < LIMIT_KEYS; k++) {
        sim_check(w, 2, active[k] <= MAX(limit, m->allowed[rule][k]),
                  "workflow %s of t%d has %lld active runs%s, its limit is %lld", m->id, m->tenant,
                  (long long)active[k], rule > 0 ? " of one key" : "", (long long)limit);
        m->allowed[rule][k] = active[k];
        if (active[k] > 0 && active[k] == limit)
            sim_cover(w, "state", rule > 0 ? "key at its limit" : "workflow at its limit");
    }
}

/* --- the queue --- */

static const struct waiting_run *waited(const struct made_workflow *m, const json_t *run)
{
    const char *id = json_text(run, "id");
    for (int i = 0; i < m->waiting_count; i++) {
        if (strcmp(m->waiting[i].id, id) == 0)
            return &m->waiting[i];
    }
    return NULL;
}

/* `a` was queued before `b` was, or is more urgent, and the same limits hold both. */
static bool goes_first(const struct sim *w, const struct waiting_run *a,
                       const struct waiting_run *b)
{
    if (a->version != b->version || a->key != b->key)
        return false;
    return a->priority > b->priority ||
           (a->priority == b->priority && a > b && !sim_on(w, ON_CLOCKS));
}

/* `run` has left the queue since the last audit: nobody before it may still wait. */
static void check_left(struct sim *w, const struct made_workflow *m, const json_t *runs,
                       const json_t *run)
{
    const struct waiting_run *left = waited(m, run);
    if (left == NULL || json_is_null(json_object_get(run, "started_at")))
        return;
    size_t i;
    json_t *other;
    json_array_foreach (runs, i, other) {
        const struct waiting_run *stays = waited(m, other);
        sim_check(w, 0,
                  stays == NULL || strcmp(json_text(other, "status"), "queued") != 0 ||
                      !goes_first(w, stays, left),
                  "run %s has left the queue before %s", left->id, stays->id);
    }
    sim_cover(w, "state", "left the queue");
}

static void remember_queue(struct made_workflow *m, const json_t *runs)
{
    size_t i;
    json_t *run;
    m->waiting_count = 0;
    json_array_foreach (runs, i, run) {
        if (strcmp(json_text(run, "status"), "queued") != 0 || m->waiting_count == WAITING_MAX ||
            json_object_get(run, "start_at") != NULL)
            continue;
        struct waiting_run *q = &m->waiting[m->waiting_count++];
        (void)snprintf(q->id, sizeof(q->id), "%s", json_text(run, "id"));
        q->priority = json_number(run, "priority");
        q->version = json_number(run, "workflow_version");
        q->key = json_number(json_object_get(run, "input"), "k");
    }
}

void limits_audit(struct sim *w, struct made_workflow *m)
{
    char tenant[8], target[80];
    if (m->busy || m->newest == 0)
        return;
    tenant_name(tenant, m->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs?limit=200&workflow_id=%s", m->id);
    struct call *c = sim_ask(w, &w->places[m->place], tenant, "GET", target, NULL);
    if (c != NULL && c->status == 200 && json_is_null(json_object_get(c->json, "next_cursor"))) {
        const json_t *runs = json_object_get(c->json, "items");
        for (int rule = 0; rule < 2; rule++)
            check_rule(w, m, runs, rule);
        size_t i;
        json_t *run;
        json_array_foreach (runs, i, run)
            check_left(w, m, runs, run);
        remember_queue(m, runs);
    }
    call_free(c);
}
