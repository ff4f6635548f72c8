/* The outcome of runs. */
#include "sim/jobs/outcomes.h"

#include "sim/jobs/leases.h"
#include "sim/jobs/workflows.h"

static struct call *ask_run(struct sim *w, const struct seen_run *r, const char *id,
                            const char *rest)
{
    char tenant[8], target[96];
    tenant_name(tenant, r->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s%s", id, rest);
    struct call *c = sim_ask(w, &w->places[r->place], tenant, "GET", target, NULL);
    if (c != NULL && c->status == 200)
        return c;
    call_free(c);
    return NULL;
}

static const json_t *shown_step(const json_t *run, const char *name)
{
    return definition_step(run, name); /* both have `steps` with names */
}

static bool step_is(const json_t *step, const char *status)
{
    return strcmp(json_text(step, "status"), status) == 0;
}

/* --- what workers did --- */

/* Some worker has sent this for that job, under whatever lease. */
static bool somebody_sent(const struct seen_job *j, const json_t *output)
{
    const char *token;
    json_t *outputs, *sent;
    size_t i;
    json_object_foreach (j->sent, token, outputs) {
        json_array_foreach (outputs, i, sent) {
            if (json_equal(sent, output))
                return true;
        }
    }
    return false;
}

static void check_result(struct sim *w, const struct seen_run *r, const struct seen_job *j,
                         const json_t *output)
{
    sim_check(w, 3, somebody_sent(j, output),
              "step %s of run %s shows a result that nobody has sent", j->step, r->id);
    sim_check(w, 3, j->output == NULL || json_equal(j->output, output),
              "step %s of run %s shows another result than the one acknowledged", j->step, r->id);
    sim_cover(w, "outcome", "task");
}

static void check_task(struct sim *w, const struct seen_run *r, const json_t *run,
                       const json_t *step)
{
    const struct seen_job *j = seen_job_of(w, json_text(step, "job_id"));
    const json_t *output = json_object_get(step, "output");
    if (j == NULL) {
        sim_check(w, 3, !step_is(step, "succeeded") || json_object_get(run, "rerun_of") != NULL,
                  "step %s of run %s has succeeded, but nobody did it", json_text(step, "name"),
                  r->id);
        return;
    }
    sim_check(w, 6, j->output == NULL || step_is(step, "succeeded"),
              "step %s of run %s is %s, but its completion was acknowledged",
              json_text(step, "name"), r->id, json_text(step, "status"));
    if (step_is(step, "succeeded"))
        check_result(w, r, j, output);
}

/* Each item once, its result in its place. */
static void check_items(struct sim *w, const struct seen_run *r, const json_t *step)
{
    const json_t *outputs = json_object_get(step, "output");
    for (const struct seen_job *j = seen_jobs(w); j != NULL; j = j->next) {
        if (strcmp(j->run_id, r->id) != 0 || j->compensates || j->output == NULL || r->moved > 0 ||
            strcmp(j->step, json_text(step, "name")) != 0)
            continue;
        sim_check(w, 3, json_equal(json_array_get(outputs, (size_t)j->item), j->output),
                  "item %d of step %s of run %s shows another result than the one acknowledged",
                  (int)j->item, j->step, r->id);
        sim_cover(w, "outcome", "item");
    }
}

/* --- what the server did --- */

static void check_transform(struct sim *w, const struct seen_run *r, const json_t *run,
                            const json_t *step)
{
    const json_t *output = json_object_get(step, "output");
    const json_t *of = shown_step(run, json_text(output, "of"));
    if (of == NULL || !step_is(of, "succeeded") || r->moved > 0)
        return;
    sim_check(w, 3, json_equal(json_object_get(output, "is"), json_object_get(of, "output")),
              "step %s of run %s saw another output of %s than the run shows",
              json_text(step, "name"), r->id, json_text(of, "name"));
    sim_cover(w, "outcome", "transform");
}

static void check_call(struct sim *w, const struct seen_run *r, const json_t *run,
                       const json_t *step)
{
    const json_t *body = json_object_get(json_object_get(step, "output"), "body");
    sim_check(w, 3,
              json_object_get(run, "rerun_of") != NULL ||
                  steps_answered(w, json_text(step, "job_id"), json_number(body, "answer")),
              "step %s of run %s shows an answer that no receiver gave", json_text(step, "name"),
              r->id);
    sim_cover(w, "outcome", "call");
}

static void check_child(struct sim *w, const struct seen_run *r, const json_t *step)
{
    const char *id = json_text(step, "child_run_id");
    struct call *c = id[0] != '\0' ? ask_run(w, r, id, "") : NULL;
    if (c == NULL)
        return;
    const char *status = json_text(c->json, "status");
    sim_check(w, 2, run_status_is_over(status), "run %s is over, but its child %s is %s", r->id, id,
              status);
    if (step_is(step, "succeeded"))
        sim_check(w, 3,
                  strcmp(status, "succeeded") == 0 && json_equal(json_object_get(c->json, "output"),
                                                                 json_object_get(step, "output")),
                  "step %s of run %s shows another output than its child %s",
                  json_text(step, "name"), r->id, id);
    sim_cover(w, "outcome", "child");
    call_free(c);
}

/* --- steps --- */

static void check_step(struct sim *w, const struct seen_run *r, const json_t *run,
                       const json_t *def, const json_t *step)
{
    const char *type = json_text(step, "type");
    bool list = json_object_get(def, "for_each") != NULL;
    if (strcmp(type, "task") == 0 && !list)
        check_task(w, r, run, step);
    if (strcmp(type, "task") == 0 && list && step_is(step, "succeeded"))
        check_items(w, r, step);
    if (strcmp(type, "workflow") == 0 && !list)
        check_child(w, r, step);
    if (list || !step_is(step, "succeeded"))
        return;
    if (strcmp(type, "transform") == 0)
        check_transform(w, r, run, step);
    if (strcmp(type, "http") == 0)
        check_call(w, r, run, step);
}

/* The output of the last step, as written, that has succeeded. */
static void check_output(struct sim *w, const struct seen_run *r, const json_t *run)
{
    const json_t *last = NULL;
    size_t i;
    json_t *step;
    if (strcmp(json_text(run, "status"), "succeeded") != 0 ||
        !json_is_null(json_object_get(run, "error")))
        return;
    json_array_foreach (json_object_get(run, "steps"), i, step) {
        if (step_is(step, "succeeded"))
            last = step;
    }
    sim_check(w, 3,
              last == NULL ||
                  json_equal(json_object_get(run, "output"), json_object_get(last, "output")),
              "run %s shows another output than its last step", r->id);
}

static void check_steps(struct sim *w, const struct seen_run *r, const json_t *run,
                        const json_t *definition)
{
    size_t i;
    json_t *step;
    check_output(w, r, run);
    json_array_foreach (json_object_get(run, "steps"), i, step)
        check_step(w, r, run, definition_step(definition, json_text(step, "name")), step);
}

/* --- runs --- */

void outcome_glance(struct sim *w, const struct seen_run *r)
{
    struct call *c = ask_run(w, r, r->id, "");
    if (c == NULL)
        return;
    (void)runs_observe(w, c, c->json);
    const json_t *definition = workflows_definition(w, r, c->json);
    size_t i;
    json_t *step;
    json_array_foreach (json_object_get(c->json, "steps"), i, step) {
        const json_t *items = json_object_get(step, "items");
        int64_t most =
            json_number(definition_step(definition, json_text(step, "name")), "max_parallel");
        int64_t under_way = json_number(items, "begun") - json_number(items, "over");
        sim_check(w, 2, items == NULL || most < 0 || under_way <= most,
                  "%lld items of step %s of run %s are under way, at most %lld may be",
                  (long long)under_way, json_text(step, "name"), r->id, (long long)most);
    }
    call_free(c);
}

void outcome_check(struct sim *w, const struct seen_run *r)
{
    struct call *c = ask_run(w, r, r->id, "");
    struct call *events = c != NULL ? ask_run(w, r, r->id, "/events?limit=200") : NULL;
    if (events != NULL) {
        const json_t *definition = workflows_definition(w, r, c->json);
        if (definition != NULL)
            check_steps(w, r, c->json, definition);
        if (json_is_null(json_object_get(events->json, "next_cursor")))
            timeline_check(w, r, c->json, definition, json_object_get(events->json, "items"));
    }
    call_free(c);
    call_free(events);
}
