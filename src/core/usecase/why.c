/* Why a run is not running, or not over: the limits that are full and who holds their slots, its
 * place in the queue, its pause, the worker, queue, time, signal or person that its open steps wait
 * for. */
#include "core/admission/run_limits.h"
#include "core/run/approval_txn.h"
#include "core/run/job_txn.h"
#include "core/run/run_txn.h"
#include "core/run/step_ops.h"
#include "core/run/suspension.h"
#include "core/txn/attempts.h"
#include "core/txn/worker_polls.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/run/run_queue.h"

#include <stdarg.h>

struct why {
    struct op *op;
    struct read_tx *tx;
    struct run_txn m;
    struct json_out o;
    size_t reasons;
    char summary[512]; /* about the first reason */
};

static void sum_up(struct why *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void sum_up(struct why *w, const char *fmt, ...)
{
    if (w->reasons++ > 0)
        return;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(w->summary, sizeof(w->summary), fmt, args);
    va_end(args);
    str_repair_utf8(w->summary, strlen(w->summary)); /* it may have been cut */
}

/* --- limits --- */

struct holders {
    int64_t runs[WHY_HOLDERS_MAX];
    size_t count;
};

static bool add_holder(void *ctx, int64_t run)
{
    struct holders *h = ctx;
    h->runs[h->count++] = run;
    return h->count < WHY_HOLDERS_MAX;
}

static enum err show_holders(struct why *w, const struct holders *h)
{
    enum err e = ERR_OK;
    json_open(&w->o, "holders", '[');
    for (size_t i = 0; i < h->count && e == ERR_OK; i++) {
        struct run run;
        bool found = false;
        e = runs_find_num(w->tx->db, h->runs[i], &w->tx->arena, &found, &run);
        if (e != ERR_OK || !found)
            continue;
        json_open(&w->o, NULL, '{');
        json_add_uuid(&w->o, "run_id", run.id);
        json_add_text(&w->o, "workflow_id", run.workflow_id);
        json_add_text(&w->o, "status", str_of(run_status_name(run.status)));
        json_add_time(&w->o, "created_at", run.created_at);
        json_add_time(&w->o, "started_at", run.started_at);
        json_close(&w->o, '}');
    }
    json_close(&w->o, ']');
    return e;
}

/* `scope` is NULL for the tenant's own limit. */
static enum err show_limit(struct why *w, const struct limit_key_row *scope, int64_t current,
                           int64_t limit)
{
    struct holders holders = {.count = 0};
    struct str path = scope != NULL ? scope->path : STR("");
    struct str key = scope != NULL ? scope->key : STR("");
    bool keyed = path.len > 0;
    enum err e = scope != NULL
                     ? slots_list(w->tx->db, scope->num, add_holder, &holders)
                     : active_runs_list(w->tx->db, w->m.tenant->num, false, add_holder, &holders);
    if (e != ERR_OK)
        return e;
    sum_up(w, "%lld of %lld runs of %s %.*s%s%.*s are active.", (long long)current,
           (long long)limit, scope != NULL ? "workflow" : "tenant",
           STR_ARG(scope != NULL ? scope->workflow_id : w->m.tenant->id), keyed ? " with key " : "",
           (int)MIN(key.len, (size_t)64), key.ptr);
    json_open(&w->o, NULL, '{');
    json_add_text(&w->o, "kind", STR("limit"));
    json_add_text(&w->o, "limited_by",
                  scope == NULL ? STR("tenant")
                  : keyed       ? STR("key")
                                : STR("workflow"));
    if (keyed) {
        json_add_text(&w->o, "path", path);
        json_add_text(&w->o, "key", key);
    }
    json_add_int(&w->o, "current", current);
    json_add_int(&w->o, "limit", limit);
    e = show_holders(w, &holders);
    json_close(&w->o, '}');
    return e;
}

static enum err show_limits(struct why *w)
{
    struct limit_key_list scopes = limit_key_list_parse(w->m.run.scopes);
    enum err e = read_tx_counters(w->tx, w->m.tenant);
    for (size_t i = 0; i < scopes.count && e == ERR_OK; i++) {
        struct limit_key_row scope;
        int64_t limit = -1;
        e = limit_keys_get(w->tx->db, scopes.nums[i], &w->tx->arena, &scope);
        if (e == ERR_OK)
            e = limit_in_force(w->tx, &scope, &w->op->problem, &limit);
        if (e == ERR_OK && limit >= 0 && scope.active_runs >= limit)
            e = show_limit(w, &scope, scope.active_runs, limit);
    }
    const struct tenant *t = w->m.tenant;
    if (e == ERR_OK && t->max_concurrent_runs >= 0 && t->active_runs >= t->max_concurrent_runs)
        e = show_limit(w, NULL, t->active_runs, t->max_concurrent_runs);
    return e;
}

/* Its place among those that wait for the same limit; 1 is next. */
static enum err show_place(struct why *w)
{
    const struct run *run = &w->m.run;
    struct queue_group line = {0};
    bool found = false;
    int64_t ahead = 0;
    enum err e =
        queue_groups_find(w->tx->db, run->tenant, run->scopes, &w->tx->arena, &found, &line);
    if (e == ERR_OK && found)
        e = queue_ahead(w->tx->db, run->tenant, line.waits_for, -run->priority, run->num,
                        WHY_PLACE_MAX, &ahead);
    json_add_int(&w->o, "place", ahead + 1);
    json_add_bool(&w->o, "place_is_exact", ahead < WHY_PLACE_MAX);
    json_add_int(&w->o, "queued_runs", w->m.tenant->queued_runs);
    return e;
}

/* --- the pause --- */

struct time_text {
    char text[32];
};

static struct time_text time_text(struct why *w, int64_t ms)
{
    struct time_text t = {{0}};
    struct buf out;
    buf_init(&out, sizeof(t.text));
    buf_put_time(&out, ms);
    if (buf_ok(&out))
        (void)snprintf(t.text, sizeof(t.text), "%.*s", STR_ARG(buf_str(&out)));
    w->o.buf->failed |= !buf_ok(&out);
    buf_release(&out);
    return t;
}

/* Who paused the run, and when. */
static enum err show_pause(struct why *w)
{
    struct event event = {.at = -1};
    bool found = false;
    enum err e = events_newest(w->tx->db, w->m.run.num, event_type_name(EVENT_RUN_PAUSED),
                               &w->tx->arena, &found, &event);
    if (e != ERR_OK)
        return e;
    struct json *note = NULL;
    if (event.data.ptr != NULL && json_read_kept(event.data, &note) == ERR_NO_MEMORY)
        return ERR_NO_MEMORY;
    struct str by = json_text_of(json_member(note, STR("by")));
    json_open(&w->o, NULL, '{');
    json_add_text(&w->o, "kind", STR("pause"));
    json_add_text_or_null(&w->o, "by", by);
    json_add_time(&w->o, "at", event.at);
    json_close(&w->o, '}');
    if (by.ptr != NULL)
        sum_up(w, "%.*s paused the run at %s. Resume it to continue.", STR_ARG(by),
               time_text(w, event.at).text);
    else
        sum_up(w, "The run is paused. Resume it to continue.");
    json_free(note);
    return ERR_OK;
}

/* --- steps --- */

/* pawl itself makes it, in its turn. */
static bool is_call(const struct job *job)
{
    return str_is(job->queue, HTTP_QUEUE);
}

/* What one open job waits for. */
static const char *kind_of(const struct why *w, const struct job *job)
{
    const struct step_waits *waits = step_waits_of(w->m.def, job);
    if (job->state == JOB_PENDING)
        return is_call(job) ? "call" : "worker_queue";
    if (job->state == JOB_APPROVAL)
        return "approval";
    if (job->state == JOB_SUSPENDED)
        return "suspension";
    if (job->state == JOB_RUNNING)
        return "worker";
    if (waits->kind != NULL)
        return waits->kind;
    if (job->state == JOB_DISPATCHED)
        return "call";
    return job->due_at < 0 ? "resume" : "retry";
}

/* "roles approver; users ann, bob": those on the lists. */
static void put_people(struct buf *out, const char *what, const struct json *list)
{
    if (json_length(list) == 0)
        return;
    buf_printf(out, "%s%s ", out->len > 0 ? "; " : "", what);
    for (size_t i = 0; i < json_length(list); i++)
        buf_printf(out, "%s%s", i > 0 ? ", " : "", json_text_of(json_element(list, i)).ptr);
}

static void sum_up_asked(struct why *w, const struct step_def *step, const struct approval *a)
{
    struct buf who;
    buf_init(&who, 4 * KIB);
    put_people(&who, "roles", a->ask.approvers.roles);
    put_people(&who, "users", a->ask.approvers.users);
    if (a->escalated_at >= 0) {
        put_people(&who, "roles", a->ask.escalated.roles);
        put_people(&who, "users", a->ask.escalated.users);
    }
    if (who.len == 0)
        buf_put(&who, STR("anyone whose role allows it"));
    w->o.buf->failed |= !buf_ok(&who) && !who.refused;
    sum_up(w, "Step %.*s is waiting for approval: %lld of %lld given. Approvers: %.*s%s%.*s.",
           STR_ARG(step->name), (long long)a->votes, (long long)a->ask.count,
           STR_ARG(buf_ok(&who) ? buf_str(&who) : STR("many")),
           a->ask.forbid_requester ? "; not " : "",
           a->ask.forbid_requester ? (int)a->requested_by.len : 0, a->requested_by.ptr);
    buf_release(&who);
}

/* Who may decide it, and until when. */
static enum err show_asked(struct why *w, const struct job *job)
{
    const struct step_def *step = job_step(w->m.def, job);
    struct approval a;
    bool found = false;
    enum err e = approval_find(w->tx, w->m.def, job, &found, &a);
    if (e != ERR_OK || !found)
        return e;
    json_add_text(&w->o, "prompt", a.prompt);
    json_add_int(&w->o, "approvals", a.votes);
    json_add_int(&w->o, "needed", a.ask.count);
    render_approvers(&w->o, "approvers", &a.ask.approvers);
    if (a.escalated_at >= 0)
        render_approvers(&w->o, "escalated_to", &a.ask.escalated);
    if (a.ask.forbid_requester)
        json_add_text(&w->o, "not_by", a.requested_by);
    json_add_time(&w->o, "requested_at", a.requested_at);
    json_add_time(&w->o, "expires_at", a.expires_at);
    sum_up_asked(w, step, &a);
    return ERR_OK;
}

/* Why the attempt before was lost, if there was one. */
static enum err show_last_error(struct why *w, const struct job *job)
{
    if (job->error.ptr == NULL)
        return ERR_OK;
    struct str error = attempt_error(w->tx, job->error);
    json_add_raw(&w->o, "last_error", error);
    return error.ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}

static void sum_up_queue(struct why *w, const struct job *job, int64_t place,
                         const struct queue_polls *polls)
{
    struct str step = job_step(w->m.def, job)->name;
    int64_t now = w->tx->now_ms;
    if (polls->workers > 0 || w->tx->polls == NULL)
        sum_up(w, "Step %.*s is waiting for a worker on queue %.*s, at position %lld.",
               STR_ARG(step), STR_ARG(job->queue), (long long)place);
    else if (polls->last_at >= 0)
        sum_up(w, "Step %.*s is waiting for a worker. No worker has polled queue %.*s for %lld s.",
               STR_ARG(step), STR_ARG(job->queue), (long long)((now - polls->last_at) / 1000));
    else
        sum_up(w,
               "Step %.*s is waiting for a worker. No worker has polled queue %.*s since the "
               "server started %lld s ago.",
               STR_ARG(step), STR_ARG(job->queue),
               (long long)(MAX(now - worker_polls_since(w->tx->polls), (int64_t)0) / 1000));
}

static enum err show_queue(struct why *w, const struct job *job)
{
    int64_t ahead = 0;
    enum err e = jobs_ahead(w->tx->db, job, WHY_PLACE_MAX, &ahead);
    struct queue_polls polls =
        worker_polls_of_queue(w->tx->polls, w->m.tenant->id, job->queue, w->tx->now_ms);
    json_add_text(&w->o, "queue", job->queue);
    json_add_int(&w->o, "place", ahead + 1);
    json_add_int(&w->o, "workers", polls.workers);
    json_add_time(&w->o, "last_polled_at", polls.last_at);
    sum_up_queue(w, job, ahead + 1, &polls);
    return e == ERR_OK ? show_last_error(w, job) : e;
}

/* Between two attempts. */
static enum err show_retry(struct why *w, const struct job *job)
{
    const struct step_def *step = job_step(w->m.def, job);
    struct json *error = NULL;
    if (job->error.ptr != NULL && json_read_kept(job->error, &error) == ERR_NO_MEMORY)
        return ERR_NO_MEMORY;
    struct str code = json_text_of(json_member(error, STR("code")));
    struct str message = json_text_of(json_member(error, STR("message")));
    json_add_time(&w->o, "due_at", job->due_at);
    json_add_int(&w->o, "attempt", job->attempt + 1);
    json_add_int(&w->o, "max_attempts", MAX(step->retry.max_attempts, (int64_t)1));
    sum_up(w, "Attempt %lld of step %.*s failed with %.*s%s%.*s. Attempt %lld is due at %s.",
           (long long)job->attempt, STR_ARG(step->name), (int)code.len,
           code.ptr != NULL ? code.ptr : "", message.len > 0 ? ": " : "",
           (int)MIN(message.len, (size_t)200), message.ptr != NULL ? message.ptr : "",
           (long long)job->attempt + 1, time_text(w, job->due_at).text);
    json_free(error);
    return show_last_error(w, job);
}

static void sum_up_event(struct why *w, const struct job *job, const char *kind,
                         const struct buf *sentence)
{
    const struct step_def *step = job_step(w->m.def, job);
    if (sentence->len > 0)
        sum_up(w, "%.*s", STR_ARG(buf_str(sentence)));
    else if (strcmp(kind, "resume") == 0)
        sum_up(w, "Step %.*s is waiting for the run to be resumed.", STR_ARG(step->name));
    else if (job->state == JOB_PENDING)
        sum_up(w, "Step %.*s is waiting for its HTTP call to start.", STR_ARG(step->name));
    else
        sum_up(w, "Step %.*s is waiting for the response to its HTTP call.", STR_ARG(step->name));
}

static enum err show_event(struct why *w, const struct job *job, const char *kind)
{
    const struct step_waits *waits = step_waits_of(w->m.def, job);
    struct buf sentence;
    enum err e = ERR_OK;
    buf_init(&sentence, 4 * KIB);
    json_add_time(&w->o, "due_at", job->due_at);
    if (waits->kind == kind)
        e = waits->why(w->tx, job_step(w->m.def, job), job, &w->o, &sentence);
    if (!uuid_is_nil(job->child))
        json_add_uuid(&w->o, "child_run_id", job->child);
    sum_up_event(w, job, kind, &sentence);
    buf_release(&sentence);
    return e;
}

static void show_worker(struct why *w, const struct job *job)
{
    json_add_text_or_null(&w->o, "worker_id", job->worker);
    json_add_int(&w->o, "attempt", job->attempt);
    json_add_time(&w->o, "lease_expires_at", job->due_at);
    sum_up(w, "Step %.*s is running on worker %.*s, attempt %lld. Its lease expires at %s.",
           STR_ARG(job_step(w->m.def, job)->name), STR_ARG(job->worker), (long long)job->attempt,
           time_text(w, job->due_at).text);
}

/* The function of its worker waits, and no worker has it. A question has a reason of its own. */
static enum err show_suspended(struct why *w, const struct job *job)
{
    struct str step = job_step(w->m.def, job)->name;
    struct suspension s;
    enum err e = suspension_find(w->tx, job, &s);
    if (e != ERR_OK)
        return e;
    json_add_text_or_null(&w->o, "name", s.name);
    json_add_time(&w->o, "since", s.at);
    e = suspension_show_wait(w->tx, &s, &w->o);
    struct time_text until = time_text(w, MAX(s.until, (int64_t)0));
    if (s.signal.ptr != NULL)
        sum_up(w, "Step %.*s is suspended until the signal %.*s arrives%s%s.", STR_ARG(step),
               STR_ARG(s.signal), s.until >= 0 ? ", at the latest until " : "",
               s.until >= 0 ? until.text : "");
    else if (s.question > 0)
        sum_up(w, "Step %.*s is suspended until its question is decided.", STR_ARG(step));
    else
        sum_up(w, "Step %.*s is suspended until %s.", STR_ARG(step), until.text);
    return e;
}

static enum err show_job(struct why *w, const struct job *job)
{
    const char *kind = kind_of(w, job);
    enum err e = ERR_OK;
    json_open(&w->o, NULL, '{');
    json_add_text(&w->o, "kind", str_of(kind));
    json_add_text(&w->o, "step", job_step(w->m.def, job)->name);
    json_add_uuid(&w->o, "job_id", job->id);
    if (job->state == JOB_PENDING && !is_call(job))
        e = show_queue(w, job);
    else if (job->state == JOB_APPROVAL)
        e = show_asked(w, job);
    else if (job->state == JOB_SUSPENDED)
        e = show_suspended(w, job);
    else if (job->state == JOB_RUNNING)
        show_worker(w, job);
    else if (strcmp(kind, "retry") == 0)
        e = show_retry(w, job);
    else
        e = show_event(w, job, kind);
    json_close(&w->o, '}');
    return e;
}

struct shown_jobs {
    struct why *why;
    int64_t count;
    enum err err;
};

static bool show_open(void *ctx, const struct job *job)
{
    struct shown_jobs *s = ctx;
    s->err = show_job(s->why, job);
    return s->err == ERR_OK && ++s->count < WHY_JOBS_MAX;
}

static enum err show_steps(struct why *w)
{
    struct shown_jobs s = {.why = w};
    enum err e = w->m.run.status == RUN_PAUSED ? show_pause(w) : ERR_OK;
    if (e == ERR_OK)
        e = jobs_open(w->tx->db, w->m.run.num, 1, JOB_ORDINAL_MAX, show_open, &s);
    return e == ERR_OK ? s.err : e;
}

/* A run that was started for later. */
static void show_start(struct why *w)
{
    json_open(&w->o, NULL, '{');
    json_add_text(&w->o, "kind", STR("timer"));
    json_add_time(&w->o, "due_at", w->m.run.start_at);
    json_close(&w->o, '}');
    sum_up(w, "The run is scheduled to start at %s.", time_text(w, w->m.run.start_at).text);
}

/* --- all of it --- */

static enum err why_run(struct op *op, struct read_tx *tx)
{
    const struct run_input *in = op->input;
    struct why w = {.op = op, .tx = tx, .o = json_out_to(&op->answer.body)};
    enum err e = run_txn_read_id(&w.m, op, tx, in->run_id);
    if (e != ERR_OK)
        return e;
    bool queued = w.m.run.status == RUN_QUEUED;
    json_open(&w.o, NULL, '{');
    json_add_uuid(&w.o, "run_id", w.m.run.id);
    json_add_text(&w.o, "status", str_of(run_status_name(w.m.run.status)));
    json_open(&w.o, "waits_for", '[');
    if (queued && w.m.run.start_at >= 0)
        show_start(&w);
    else if (queued)
        e = show_limits(&w);
    else if (!run_has_ended(w.m.run.status))
        e = show_steps(&w);
    json_close(&w.o, ']');
    if (run_has_ended(w.m.run.status))
        sum_up(&w, "The run has ended (status: %s).", run_status_name(w.m.run.status));
    else
        sum_up(&w, queued ? "The limits have room: the run is about to start."
                          : "The run is not waiting for anything.");
    json_add_text(&w.o, "summary", str_of(w.summary));
    if (e == ERR_OK && queued && w.m.run.start_at < 0)
        e = show_place(&w);
    json_close(&w.o, '}');
    return e == ERR_OK
               ? ERR_OK
               : problem_set(&op->problem, e, "Cannot determine what the run is waiting for");
}

const struct use_case UC_WHY_RUN = {.name = "why_run", .read = why_run};
