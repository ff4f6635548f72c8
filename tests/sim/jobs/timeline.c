/* Timelines of runs, event by event. */
#include "sim/jobs/outcomes.h"

#include "sim/jobs/leases.h"
#include "sim/jobs/workflows.h"

enum { LINE_JOBS_MAX = 100 };

/* A job as its events tell of it. */
struct line_job {
    const char *id, *step;
    int64_t item;
    bool undo;
    enum { JOB_WAITS, JOB_AT_WORKER, JOB_ENDED } state;
    int64_t attempt, next; /* the next one to be handed out */
    int claims;
    bool succeeded;
};

struct line {
    struct sim *w;
    const struct seen_run *r;
    const json_t *definition;
    struct line_job jobs[LINE_JOBS_MAX];
    int job_count;
    const char *done[LINE_JOBS_MAX]; /* steps to compensate, in the order of their success */
    int done_count;
    bool compensated; /* something was */
    bool retried;
    bool rerun; /* it may have kept the results of steps of another run */
    bool over;
    const char *type; /* of the present event */
};

#define line_check(l, ok, ...)                                                             \
    do {                                                                                   \
        if (!(ok)) {                                                                       \
            char what[200];                                                                \
            (void)snprintf(what, sizeof(what), __VA_ARGS__);                               \
            sim_fail((l)->w, 3, "timeline of run %s: %s %s", (l)->r->id, (l)->type, what); \
        }                                                                                  \
    } while (0)

static bool is(const struct line *l, const char *type)
{
    return strcmp(l->type, type) == 0;
}

static const json_t *step_of(const struct line *l, const struct line_job *j)
{
    return definition_step(l->definition, j->step);
}

static bool is_list(const struct line *l, const struct line_job *j)
{
    return json_object_get(step_of(l, j), "for_each") != NULL;
}

/* --- compensation --- */

static bool has_done(const struct line *l, const char *step)
{
    for (int i = 0; i < l->job_count; i++) {
        if (!l->jobs[i].undo && strcmp(l->jobs[i].step, step) == 0)
            return true;
    }
    return false;
}

/* The last step that was done and not yet undone must be the one. A step that a rerun has kept is
 * undone after all that it did itself. */
static void undo_begins(struct line *l, const struct line_job *j)
{
    l->compensated = true;
    for (int i = 0; i < l->job_count; i++)
        line_check(l,
                   &l->jobs[i] == j || !l->jobs[i].undo || l->retried ||
                       strcmp(l->jobs[i].step, j->step) != 0,
                   "a second compensation of step %s", j->step);
    if (l->definition == NULL || is_list(l, j) || l->retried)
        return;
    if (l->rerun && l->done_count == 0 && !has_done(l, j->step)) {
        sim_cover(l->w, "outcome", "kept and compensated");
        return;
    }
    line_check(l, l->done_count > 0 && strcmp(l->done[l->done_count - 1], j->step) == 0,
               "compensation of step %s, but the last one done is %s", j->step,
               l->done_count > 0 ? l->done[l->done_count - 1] : "none");
    l->done_count--;
    sim_cover(l->w, "outcome", "compensated");
}

static void step_done(struct line *l, const struct line_job *j)
{
    const json_t *step = step_of(l, j);
    if (!j->undo && json_object_get(step, "compensate") != NULL && !is_list(l, j))
        l->done[l->done_count++] = j->step;
}

/* --- jobs --- */

/* One job for each step and item, unless something was undone and is done again. */
static struct line_job *add_job(struct line *l, const json_t *data)
{
    struct line_job *j = &l->jobs[l->job_count++];
    *j = (struct line_job){.id = json_text(data, "job_id"),
                           .step = json_text(data, "step"),
                           .item = json_number(data, "item"),
                           .undo = json_is_true(json_object_get(data, "compensates")),
                           .next = 1};
    for (int i = 0; i < l->job_count - 1; i++)
        line_check(l,
                   l->retried || j->undo || l->jobs[i].undo || l->jobs[i].item != j->item ||
                       strcmp(l->jobs[i].step, j->step) != 0,
                   "a second job of step %s item %lld", j->step, (long long)j->item);
    if (j->undo)
        undo_begins(l, j);
    return j;
}

static struct line_job *job_of(struct line *l, const json_t *data)
{
    const char *id = json_text(data, "job_id");
    for (int i = 0; i < l->job_count; i++) {
        if (strcmp(l->jobs[i].id, id) == 0)
            return &l->jobs[i];
    }
    return l->job_count < LINE_JOBS_MAX ? add_job(l, data) : NULL;
}

static void handed_out(struct line *l, struct line_job *j, int64_t attempt)
{
    const json_t *step = step_of(l, j);
    line_check(l, j->state == JOB_WAITS, "job %s, which is not waiting", j->id);
    line_check(l, attempt == j->next, "attempt %lld of job %s, not %lld", (long long)attempt, j->id,
               (long long)j->next);
    line_check(l, step == NULL || attempt <= step_leases_max(step), "attempt %lld of job %s",
               (long long)attempt, j->id);
    j->state = JOB_AT_WORKER;
    j->attempt = attempt;
    j->next = attempt + 1;
    j->claims++;
}

static void job_ended(struct line *l, struct line_job *j, const json_t *data)
{
    const json_t *step = step_of(l, j);
    const char *code = json_text(json_object_get(data, "error"), "code");
    line_check(l, !is(l, "job.succeeded") || j->claims == 0 || j->state == JOB_AT_WORKER,
               "job %s, which nobody has", j->id);
    line_check(l,
               !is(l, "job.failed") || step == NULL || strcmp(code, "FAULT") != 0 ||
                   j->attempt >= step_attempts_max(step),
               "job %s after attempt %lld", j->id, (long long)j->attempt);
    j->state = JOB_ENDED;
    j->succeeded = is(l, "job.succeeded");
    if (j->succeeded && l->definition != NULL)
        step_done(l, j);
}

static void job_event(struct line *l, const json_t *data)
{
    struct line_job *j = job_of(l, data);
    if (j == NULL)
        return;
    line_check(l, j->state != JOB_ENDED, "job %s, which has ended", j->id);
    line_check(l, !l->over, "job %s after the run's end", j->id);
    if (is(l, "job.claimed")) {
        handed_out(l, j, json_number(data, "attempt"));
    } else if (is(l, "job.released")) {
        j->state = JOB_WAITS;
        j->next = j->attempt;
    } else if (is(l, "job.lease_expired") || is(l, "job.retry_scheduled")) {
        line_check(l,
                   is(l, "job.lease_expired") || step_of(l, j) == NULL ||
                       json_number(data, "attempt") < step_attempts_max(step_of(l, j)),
                   "job %s after its last attempt", j->id);
        j->state = JOB_WAITS;
    } else if (is(l, "job.succeeded") || is(l, "job.failed") || is(l, "job.timed_out") ||
               is(l, "job.cancelled") || is(l, "job.denied")) {
        job_ended(l, j, data);
    }
}

/* --- the run --- */

/* What has failed or was cancelled may begin again; what was done stays done. */
static void run_retried(struct line *l)
{
    l->retried = true;
    l->over = false;
    for (int i = 0; i < l->job_count; i++) {
        struct line_job *j = &l->jobs[i];
        if (!j->succeeded && !j->undo) {
            j->state = JOB_WAITS;
            j->next = 1;
        }
    }
}

static void run_event(struct line *l)
{
    if (is(l, "run.retried")) {
        line_check(l, l->over, "before the run's end");
        run_retried(l);
        return;
    }
    line_check(l, !l->over, "after the run's end");
    l->over = run_status_is_over(l->type + 4);
    line_check(l, !is(l, "run.succeeded") || !l->compensated || l->retried,
               "although it was compensated");
    if (is(l, "run.failed") || is(l, "run.timed_out") || is(l, "run.denied"))
        line_check(l, l->done_count == 0 || l->retried, "and step %s was not compensated",
                   l->done[l->done_count - 1]);
}

/* --- against what workers saw --- */

static void check_workers(struct line *l)
{
    for (int i = 0; i < l->job_count; i++) {
        const struct line_job *j = &l->jobs[i];
        const struct seen_job *seen = seen_job_of(l->w, j->id);
        int leases = 0;
        for (const struct lease *x = seen != NULL ? seen->newest : NULL; x != NULL; x = x->older)
            leases++;
        line_check(l, j->claims >= leases, "%d claims of job %s, but %d leases were given",
                   j->claims, j->id, leases);
        line_check(l, seen == NULL || seen->output == NULL || j->succeeded,
                   "job %s was completed, but has not succeeded", j->id);
    }
}

void timeline_check(struct sim *w, const struct seen_run *r, const json_t *run,
                    const json_t *definition, const json_t *events)
{
    struct line l = {.w = w,
                     .r = r,
                     .definition = definition,
                     .rerun = json_object_get(run, "rerun_of") != NULL,
                     .type = ""};
    size_t i;
    json_t *event;
    json_array_foreach (events, i, event) {
        l.type = json_text(event, "type");
        line_check(&l, json_number(event, "seq") == (int64_t)i + 1, "has the number %lld",
                   (long long)json_number(event, "seq"));
        sim_cover(w, "event", l.type);
        if (strncmp(l.type, "job.", 4) == 0 && !is(&l, "job.stale_result"))
            job_event(&l, json_object_get(event, "data"));
        else if (strncmp(l.type, "run.", 4) == 0)
            run_event(&l);
    }
    l.type = "the end:";
    sim_check(w, 6, json_number(run, "version") == (int64_t)json_array_size(events),
              "run %s has version %lld and %d events", r->id,
              (long long)json_number(run, "version"), (int)json_array_size(events));
    check_workers(&l);
}
