/* The model of leases. Promise 3: a step's result counts once, and a worker whose lease is gone
 * cannot write. */
#include "sim/jobs/leases.h"

#include "sim/jobs/workers.h"

#include <stdlib.h>

enum { EXPIRY_SLACK_MS = 5 };

int64_t place_now_ms(const struct sim *w, int place)
{
    return sim_now_ms(w) + w->places[place].skew_us / 1000;
}

/* --- jobs --- */

struct seen_job *seen_jobs(struct sim *w)
{
    return workers_jobs(w)->jobs;
}

struct seen_job *seen_job_of(struct sim *w, const char *id)
{
    for (struct seen_job *j = seen_jobs(w); j != NULL; j = j->next) {
        if (strcmp(j->id, id) == 0)
            return j;
    }
    return NULL;
}

static struct seen_job *find_or_add(struct sim *w, const struct call *c, const json_t *job)
{
    struct seen_job *j = seen_job_of(w, json_text(job, "job_id"));
    if (j != NULL)
        return j;
    struct job_list *all = workers_jobs(w);
    j = calloc(1, sizeof(*j));
    assert(j != NULL);
    (void)snprintf(j->id, sizeof(j->id), "%s", json_text(job, "job_id"));
    (void)snprintf(j->run_id, sizeof(j->run_id), "%s", json_text(job, "run_id"));
    (void)snprintf(j->step, sizeof(j->step), "%s", json_text(job, "step"));
    j->place = c->spec.place->number;
    j->tenant = json_text(job, "tenant")[1] - '0';
    j->item = json_number(job, "item");
    j->compensates = json_is_true(json_object_get(job, "compensates"));
    j->sent = json_object();
    j->next = all->jobs;
    all->jobs = j;
    return j;
}

static struct lease *find_lease(const struct seen_job *j, const char *token)
{
    for (struct lease *l = j->newest; l != NULL; l = l->older) {
        if (strcmp(l->token, token) == 0)
            return l;
    }
    return NULL;
}

struct lease *lease_find(struct sim *w, const char *job_id, const char *token)
{
    const struct seen_job *j = seen_job_of(w, job_id);
    struct lease *l = j != NULL ? find_lease(j, token) : NULL;
    assert(l != NULL);
    return l;
}

struct lease *leases_any(struct sim *w, bool open)
{
    struct lease *found = NULL;
    int count = 0;
    for (struct lease *l = workers_jobs(w)->leases; l != NULL; l = l->next) {
        if ((!open || (l->ended == 0 && l->job->newest == l)) && lot_below(&w->lot, ++count) == 0)
            found = l;
    }
    return found;
}

/* --- claims --- */

/* The run was shown to be over, or paused, before this was asked. */
static void check_run(struct sim *w, const struct call *c, const struct seen_job *j)
{
    const struct seen_run *r = seen_run_of(w, j->run_id);
    if (r == NULL || r->seen_at >= c->sent || r->moved > 0)
        return;
    sim_check(w, 3, !r->over, "job %s of run %s is handed out, but the run is %s", j->id, r->id,
              r->status);
    sim_check(w, 0, strcmp(r->status, "paused") != 0, "job %s of the paused run %s is handed out",
              j->id, r->id);
}

/* The lease before it must be over by now. */
static void check_before(struct sim *w, const struct call *c, const struct seen_job *j,
                         const struct lease *before, int64_t attempt)
{
    const struct seen_run *r = seen_run_of(w, j->run_id);
    if (before == NULL || before->answered >= c->sent || before->ends ||
        (r != NULL && r->moved > 0) || sim_on(w, ON_CLOCKS))
        return;
    sim_check(w, 3, place_now_ms(w, j->place) + EXPIRY_SLACK_MS >= before->expires_ms,
              "job %s is handed out again while the lease %s is valid", j->id, before->token);
    sim_check(w, 3, attempt > before->attempt, "attempt %lld of job %s is handed out again",
              (long long)attempt, j->id);
    sim_cover(w, "lease", "handed out after an expiry");
}

static void claimed(struct sim *w, const struct call *c, const json_t *job, bool keyed)
{
    struct seen_job *j = find_or_add(w, c, job);
    const char *token = json_text(job, "lease_token");
    const struct lease *known = find_lease(j, token);
    sim_check(w, 3, token[0] != '\0' && strlen(token) <= TOKEN_LEN_MAX, "a lease without a token");
    sim_check(w, 3, known == NULL || keyed, "job %s is handed out twice with the token %s", j->id,
              token);
    if (known != NULL)
        return;
    int64_t attempt = json_number(job, "attempt");
    sim_check(w, 3, j->output == NULL || c->sent < j->completed,
              "job %s is handed out after its completion was acknowledged", j->id);
    check_run(w, c, j);
    check_before(w, c, j, j->newest, attempt);
    struct lease *l = calloc(1, sizeof(*l));
    assert(l != NULL);
    *l = (struct lease){
        .job = j, .attempt = attempt, .sent = c->sent, .answered = c->answered, .older = j->newest};
    (void)snprintf(l->token, sizeof(l->token), "%s", token);
    bool dated = time_parse(str_of(json_text(job, "lease_expires_at")), &l->expires_ms);
    sim_check(w, 3, dated, "the lease of job %s has no end", j->id);
    j->newest = l;
    struct job_list *all = workers_jobs(w);
    l->next = all->leases;
    all->leases = l;
}

/* Of one queue of one tenant: the most urgent first. */
static void check_order(struct sim *w, const json_t *jobs)
{
    int64_t before = INT64_MAX;
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        const struct seen_run *r = seen_run_of(w, json_text(job, "run_id"));
        if (r == NULL)
            continue;
        sim_check(w, 0, r->priority <= before, "a job of run %s comes after a less urgent one",
                  r->id);
        before = r->priority;
    }
}

void jobs_claimed(struct sim *w, const struct call *c, const json_t *jobs, bool keyed)
{
    size_t i;
    json_t *job;
    bool shared = strcmp(c->spec.tenant, "*") == 0;
    json_array_foreach (jobs, i, job) {
        if (strcmp(json_text(job, "kind"), "step") != 0)
            continue;
        sim_check(w, 0, shared || strcmp(json_text(job, "tenant"), c->spec.tenant) == 0,
                  "a worker of %s gets a job of %s", c->spec.tenant, json_text(job, "tenant"));
        claimed(w, c, job, keyed);
    }
    bool one_queue =
        strstr(c->spec.body, "\",\"q0\"") == NULL && strstr(c->spec.body, "\",\"q1\"") == NULL;
    if (!shared && one_queue && !keyed)
        check_order(w, jobs);
}

/* --- results --- */

void lease_used(struct lease *l, enum job_verb verb, const json_t *output)
{
    l->ends |= verb != VERB_HEARTBEAT;
    if (verb == VERB_HEARTBEAT)
        l->renewals++;
    if (output == NULL)
        return;
    json_t *outputs = json_object_get(l->job->sent, l->token);
    if (outputs == NULL) {
        outputs = json_array();
        (void)json_object_set_new(l->job->sent, l->token, outputs);
    }
    (void)json_array_append(outputs, (json_t *)(uintptr_t)output);
}

/* It was accepted: so the lease was valid at some time while the call was under way. */
static void check_valid(struct sim *w, const struct lease *l, const struct call *c,
                        const struct job_answer *a)
{
    const struct seen_job *j = l->job;
    for (const struct lease *other = j->newest; other != NULL; other = other->older)
        sim_check(w, 3, other->sent <= l->answered || other->answered >= c->sent,
                  "job %s: %s under the lease %s is answered %s, but %s was handed out after it",
                  j->id, c->spec.target, l->token, a->status, other->token);
    if (a->verb == VERB_RELEASE) /* may be repeated */
        return;
    sim_check(w, 3, l->ended == 0 || l->ended >= c->sent,
              "job %s: %s is answered %s under the lease %s, which has ended", j->id,
              c->spec.target, a->status, l->token);
    bool exact =
        l->renewals == 0 && !sim_on(w, ON_CLOCKS) && !sim_on(w, ON_DISK) && !sim_on(w, ON_NODES);
    sim_check(w, 3, !exact || c->sent_ms <= l->expires_ms + EXPIRY_SLACK_MS,
              "job %s: %s is answered %s %lld ms after the end of the lease %s", j->id,
              c->spec.target, a->status, (long long)(c->sent_ms - l->expires_ms), l->token);
}

/* The same output under the same token was sent before, so it may have been taken then. */
static bool was_sent(const struct lease *l, const json_t *output)
{
    size_t i;
    json_t *sent;
    json_array_foreach (json_object_get(l->job->sent, l->token), i, sent) {
        if (json_equal(sent, output))
            return true;
    }
    return false;
}

static void completed(struct sim *w, struct lease *l, const struct call *c,
                      const struct job_answer *a)
{
    struct seen_job *j = l->job;
    bool now = strcmp(a->status, "completed") == 0;
    sim_check(w, 3, now || strcmp(a->status, "already_completed") == 0,
              "a completion of job %s is answered %s", j->id, a->status);
    sim_check(w, 3, was_sent(l, a->output), "job %s was completed by nobody", j->id);
    if (now) {
        const struct seen_run *r = seen_run_of(w, j->run_id);
        sim_check(w, 3, r == NULL || !r->over || r->seen_at >= c->sent || r->moved > 0,
                  "job %s is completed, but its run is %s", j->id, r->status);
        check_valid(w, l, c, a);
        sim_check(w, 3, j->output == NULL || j->completed >= c->sent,
                  "job %s is completed a second time", j->id);
    }
    sim_check(w, 3, j->output == NULL || json_equal(j->output, a->output),
              "job %s: two completions are acknowledged", j->id);
    sim_cover(w, "lease", a->status);
    if (j->output != NULL)
        return;
    j->output = json_incref((json_t *)(uintptr_t)a->output);
    j->completed = c->answered;
    l->ended = c->answered;
}

static void failed(struct sim *w, struct lease *l, const struct call *c, const struct job_answer *a)
{
    bool again = strcmp(a->status, "already_failed") == 0;
    sim_check(w, 3, again || strcmp(a->status, "failed") == 0 || strcmp(a->status, "retrying") == 0,
              "a failure of job %s is answered %s", l->job->id, a->status);
    sim_cover(w, "lease", a->status);
    if (!again)
        check_valid(w, l, c, a);
    sim_check(w, 3, l->job->output == NULL || l->job->completed >= c->sent,
              "job %s fails after it was completed", l->job->id);
    if (l->ended == 0)
        l->ended = c->answered;
}

static void renewed(struct sim *w, struct lease *l, const struct call *c,
                    const struct job_answer *a)
{
    if (json_is_true(json_object_get(a->body, "cancel_requested"))) {
        sim_cover(w, "lease", "cancel requested");
        return;
    }
    check_valid(w, l, c, a);
    int64_t until = 0;
    if (!time_parse(str_of(json_text(a->body, "lease_expires_at")), &until))
        sim_fail(w, 3, "a heartbeat of job %s has no end", l->job->id);
    l->renewals--;
    l->expires_ms = MAX(l->expires_ms, until);
    sim_cover(w, "lease", "renewed");
}

void lease_answered(struct sim *w, struct lease *l, const struct call *c,
                    const struct job_answer *a)
{
    if (a->code[0] != '\0') {
        bool known = strcmp(a->code, "LEASE_LOST") == 0 || strcmp(a->code, "JOB_NOT_FOUND") == 0;
        sim_check(w, 3, known || c->status >= 500, "%s of job %s is refused as %s", c->spec.target,
                  l->job->id, a->code);
        sim_cover(w, "lease", a->code);
        return;
    }
    if (a->verb == VERB_COMPLETE) {
        completed(w, l, c, a);
    } else if (a->verb == VERB_FAIL) {
        failed(w, l, c, a);
    } else if (a->verb == VERB_HEARTBEAT) {
        renewed(w, l, c, a);
    } else {
        check_valid(w, l, c, a);
        l->ended = c->answered;
        sim_cover(w, "lease", "released");
    }
}
