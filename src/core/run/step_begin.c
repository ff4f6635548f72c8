/* Beginning steps. */
#include "core/run/step_begin.h"

#include "base/limits.h"
#include "core/run/approval_txn.h"
#include "core/run/job_txn.h"
#include "core/run/run_new.h"
#include "core/run/run_values.h"
#include "core/run/signal_wait.h"
#include "core/txn/cpu_shares.h"

#define EXPRESSION_FAILED "EXPRESSION_FAILED"

/* --- failures --- */

/* A job that was never more than its error: an expression of the step cannot be evaluated. */
static enum err create_failed(struct run_txn *m, struct job *job, const char *code,
                              struct str message)
{
    job->state = JOB_FAILED;
    job->error = error_json(m->tx, code, message);
    return job->error.ptr != NULL ? job_create(m, job) : ERR_NO_MEMORY;
}

/* The step fails before it has items. */
static enum err fail_step(struct run_txn *m, size_t step, const char *code, const char *message)
{
    advance_begin(&m->progress, step, -1);
    advance_items_begun(&m->progress, step, 1);
    struct job job = job_blank(m, step, m->progress.steps[step].first, 0);
    enum err e = create_failed(m, &job, code, str_of(message));
    if (e == ERR_OK)
        advance_job_over(m->def, &m->progress, step, STEP_IS_FAILED);
    return e;
}

static enum err skip_step(struct run_txn *m, size_t step)
{
    struct buf data;
    buf_init(&data, 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "step", m->def->steps[step].name);
    json_close(&o, '}');
    advance_skip(&m->progress, step, false);
    enum err e =
        buf_ok(&data) ? run_txn_add_event(m, EVENT_STEP_SKIPPED, buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* --- conditions and items --- */

static enum err begin_map(struct run_txn *m, size_t step, struct problem *p)
{
    const struct step_def *def = &m->def->steps[step];
    const json_t *items = NULL;
    enum err e = json_is_string(def->for_each) ? values_eval(m, json_str(def->for_each), p, &items)
                                               : values_fill(m, def->for_each, NULL, p, &items);
    if (e == ERR_EXPRESSION)
        return fail_step(m, step, EXPRESSION_FAILED, p->detail);
    if (e != ERR_OK)
        return e;
    if (!json_is_array(items))
        return fail_step(m, step, "ITEMS_INVALID", "for_each is not a list");
    if (json_array_size(items) > MAP_ITEMS_MAX)
        return fail_step(m, step, "ITEMS_INVALID", "for_each has more than 10,000 items");
    struct str text = STR_NONE;
    e = values_text(m->tx, items, &text);
    if (e == ERR_OK)
        e = map_items_insert(m->tx->db, m->run.num, (int64_t)step, text);
    m->items = items;
    m->items_step = step;
    advance_begin(&m->progress, step, (int64_t)json_array_size(items));
    return e;
}

enum err step_begin(struct run_txn *m, size_t step)
{
    const struct step_def *def = &m->def->steps[step];
    struct problem p;
    problem_init(&p);
    bool holds = true;
    enum err e = def->when.len > 0 ? values_truth(m, def->when, &p, &holds) : ERR_OK;
    if (e == ERR_EXPRESSION)
        e = fail_step(m, step, EXPRESSION_FAILED, p.detail);
    else if (e == ERR_OK && !holds)
        e = skip_step(m, step);
    else if (e == ERR_OK && def->for_each != NULL)
        e = begin_map(m, step, &p);
    else if (e == ERR_OK)
        advance_begin(&m->progress, step, -1);
    problem_release(&p);
    return e;
}

/* --- one item, by the type of the step --- */

struct item {
    struct run_txn *m;
    const struct step_def *def;
    struct job *job;
    const json_t *value; /* NULL: the step has one item only */
    const char *code;    /* of a failure to make it */
    struct problem p;
    struct approval approval; /* of a job that waits for one */
};

/* A template as text; the value itself where there is nothing to fill in. */
static enum err fill_text(struct item *i, const json_t *template, struct str *ret)
{
    const json_t *filled = template;
    enum err e = ERR_OK;
    if (expr_has_template(template))
        e = values_fill(i->m, template, i->value, &i->p, &filled);
    return e == ERR_OK ? values_text(i->m->tx, filled, ret) : e;
}

static enum err make_task(struct item *i)
{
    if (i->def->input != NULL && (expr_has_template(i->def->input) || i->value != NULL))
        return fill_text(i, i->def->input, &i->job->input);
    /* Without an input of its own a task gets its item, or what the run got. */
    return i->value != NULL ? values_text(i->m->tx, i->value, &i->job->input) : ERR_OK;
}

static enum err make_sleep(struct item *i)
{
    int64_t now = i->m->tx->now_ms;
    i->job->state = JOB_SCHEDULED;
    i->job->due_at = i->def->until_ms >= 0 ? i->def->until_ms : now + i->def->duration_ms;
    if (i->def->until.len == 0)
        return ERR_OK;
    json_t *template = json_stringn(i->def->until.ptr, i->def->until.len);
    const json_t *filled = NULL;
    if (template == NULL)
        return ERR_NO_MEMORY;
    enum err e = values_fill(i->m, template, i->value, &i->p, &filled);
    json_decref(template);
    if (e != ERR_OK)
        return e;
    int64_t until = 0;
    if (!json_is_string(filled) || !time_parse(json_str(filled), &until))
        return problem_set(&i->p, ERR_EXPRESSION, "until is no time as 2026-01-31T12:00:00Z");
    i->job->due_at = MAX(until, (int64_t)0);
    return ERR_OK;
}

static enum err make_wait(struct item *i)
{
    i->code = "OUTPUT_TOO_LARGE";
    return signal_wait_begin(i->m, i->def, i->job, &i->p);
}

static enum err make_transform(struct item *i)
{
    i->job->state = JOB_SUCCEEDED;
    return fill_text(i, i->def->output, &i->job->output);
}

static enum err make_emit(struct item *i)
{
    i->job->state = JOB_SUCCEEDED;
    i->job->output = STR("null");
    enum err e = i->def->payload != NULL ? fill_text(i, i->def->payload, &i->job->output) : ERR_OK;
    if (e != ERR_OK)
        return e;
    struct buf data;
    buf_init(&data, JSON_KEPT_MAX + 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "event", i->def->event);
    json_add_raw(&o, "payload", i->job->output);
    json_close(&o, '}');
    e = buf_ok(&data) ? run_txn_add_event(i->m, EVENT_EMITTED, buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

static enum err make_call(struct item *i)
{
    i->job->queue = STR(HTTP_QUEUE);
    return fill_text(i, i->def->request, &i->job->input);
}

/* One that begins itself, however many levels down, would have no end, and with a map or two steps
 * as many runs as the disk can hold. */
static enum err check_ancestors(struct item *i)
{
    struct run_txn *m = i->m;
    struct run run = m->run;
    for (;;) {
        if (str_eq(run.workflow_id, i->def->workflow_id))
            return problem_set(&i->p, ERR_EXPRESSION, "workflow \"%.*s\" would run inside itself",
                               STR_ARG(i->def->workflow_id));
        bool found = false;
        if (run.parent_run < 0)
            return ERR_OK;
        enum err e = runs_find_num(m->tx->db, run.parent_run, &m->tx->arena, &found, &run);
        if (e != ERR_OK || !found)
            return e != ERR_OK ? e : ERR_INTERNAL;
    }
}

/* The child begins in a turn of its own, and its end wakes the job. */
static enum err make_child(struct item *i)
{
    struct run_txn *m = i->m;
    i->code = "CHILD_REFUSED";
    struct run_txn child = {
        .read_tx = m->read_tx, .tx = m->tx, .tenant = m->tenant, .run = run_blank()};
    struct workflow_newest newest = {0};
    enum err e = read_tx_newest(&m->tx->read, m->run.tenant, i->def->workflow_id, &newest);
    if (e != ERR_OK)
        return e;
    if (!newest.found || (newest.archived && i->def->version < 0))
        return problem_set(&i->p, ERR_EXPRESSION, "there is no workflow \"%.*s\"",
                           STR_ARG(i->def->workflow_id));
    if (m->run.depth + 1 > CHILD_DEPTH_MAX)
        return problem_set(&i->p, ERR_EXPRESSION, "runs are nested more than %d deep",
                           CHILD_DEPTH_MAX);
    e = check_ancestors(i);
    if (e != ERR_OK)
        return e;
    child.run.workflow_id = i->def->workflow_id;
    child.run.workflow_version = i->def->version > 0 ? i->def->version : newest.version;
    e = read_tx_definition(&m->tx->read, m->run.tenant, child.run.workflow_id,
                           child.run.workflow_version, &i->p, &child.def);
    if (e == ERR_WORKFLOW_NOT_FOUND)
        return problem_set(&i->p, ERR_EXPRESSION, "workflow \"%.*s\" has no version %lld",
                           STR_ARG(i->def->workflow_id), (long long)i->def->version);
    if (e == ERR_OK && child.def->unsupported.len > 0)
        return problem_set(&i->p, ERR_EXPRESSION, "%.*s", STR_ARG(child.def->unsupported));
    i->code = EXPRESSION_FAILED;
    if (e == ERR_OK)
        e = make_task(i); /* the same rules for its input */
    if (e != ERR_OK)
        return e;
    child.run.input = i->job->input.ptr != NULL ? i->job->input : STR("null");
    if (i->job->input.ptr == NULL && i->def->input != NULL)
        e = values_text(m->tx, i->def->input, &child.run.input);
    child.run.priority = m->run.priority;
    child.run.labels = m->run.labels;
    child.run.traceparent = m->run.traceparent;
    child.run.created_by = m->run.created_by;
    child.run.created_at = m->tx->now_ms;
    child.run.parent_run = m->run.num;
    child.run.parent_ordinal = i->job->ordinal;
    child.run.depth = m->run.depth + 1;
    if (e == ERR_OK)
        e = run_txn_create_child(&child, &i->p);
    i->job->state = JOB_DISPATCHED;
    if (i->def->timeout_ms >= 0)
        i->job->due_at = m->tx->now_ms + i->def->timeout_ms;
    i->job->child = child.run.id;
    return e;
}

static enum err make(struct item *i)
{
    switch (i->def->type) {
    case STEP_TASK:
        return make_task(i);
    case STEP_SLEEP:
        return make_sleep(i);
    case STEP_WAIT_SIGNAL:
        return make_wait(i);
    case STEP_TRANSFORM:
        return make_transform(i);
    case STEP_EMIT:
        return make_emit(i);
    case STEP_HTTP:
        return make_call(i);
    case STEP_WORKFLOW:
        return make_child(i);
    case STEP_APPROVAL:
        return ERR_OK; /* asking is all that it does */
    case STEP_LLM:
    case STEP_TYPE_COUNT:
        break;
    }
    assert(!"definitions with such steps are refused at start");
    return ERR_INTERNAL;
}

static enum err begin_item(struct run_txn *m, size_t step, int64_t index, const json_t *value)
{
    int64_t first = m->progress.steps[step].first;
    struct job job = job_blank(m, step, first + index, index);
    struct item i = {.m = m,
                     .def = &m->def->steps[step],
                     .job = &job,
                     .value = value,
                     .code = EXPRESSION_FAILED};
    problem_init(&i.p);
    enum err e = make(&i);
    if (e == ERR_OK && i.def->asks)
        e = approval_compose(m, &job, value, &i.p, &i.approval);
    if (e == ERR_EXPRESSION)
        e = create_failed(m, &job, i.code, str_of(i.p.detail));
    else if (e == ERR_OK)
        e = job_create(m, &job);
    problem_release(&i.p);
    if (e == ERR_OK && job.state == JOB_APPROVAL)
        e = approval_request(m, &job, &i.approval);
    if (e == ERR_OK && job_has_ended(job.state))
        e = job_ended(m, &job);
    return e;
}

static enum err load_items(struct run_txn *m, size_t step)
{
    if (m->items != NULL && m->items_step == step)
        return ERR_OK;
    struct str text = STR_NONE;
    enum err e = map_items_find(m->tx->db, m->run.num, (int64_t)step, &m->tx->arena, &text);
    if (e != ERR_OK)
        return e;
    json_t *items = json_loadb(text.ptr, text.len, 0, NULL);
    if (items == NULL)
        return ERR_DAMAGED;
    if (!read_tx_keep_json(&m->tx->read, items))
        return ERR_NO_MEMORY;
    m->items = items;
    m->items_step = step;
    return ERR_OK;
}

enum err step_begin_items(struct run_txn *m, size_t step, int64_t count)
{
    struct step_state *s = &m->progress.steps[step];
    int64_t from = s->begun;
    enum err e = s->is_map ? load_items(m, step) : ERR_OK;
    for (int64_t i = from; i < from + count && e == ERR_OK; i++) {
        if (step_is_settled(s->status)) /* an item has failed at once */
            break;
        if (i > from && run_txn_is_large(m))
            break; /* the rest in a turn of its own */
        const json_t *value = s->is_map ? json_array_get(m->items, (size_t)i) : NULL;
        advance_items_begun(&m->progress, step, 1);
        e = begin_item(m, step, i, value);
        if (s->is_map)
            cpu_shares_spend(m->tx->cpu, m->run.tenant, m->tx->now_ms, CPU_STEPS_PER_ITEM, 0);
        if (cpu_shares_used_up(m->tx->cpu, m->run.tenant, m->tx->now_ms))
            break;
    }
    return e;
}

static bool fills(const json_t *template)
{
    return template != NULL && expr_has_template(template);
}

bool step_takes_share(const struct step_def *def)
{
    return def->for_each != NULL || def->when.len > 0 || def->until.len > 0 || def->asks ||
           fills(def->input) || fills(def->request) || fills(def->output) || fills(def->payload) ||
           fills(def->undo_input);
}

/* --- compensation --- */

/* It gets what the step was given and what it made of it: of a map its items and their outputs. */
static enum err undo_input(struct run_txn *m, size_t step, struct str *ret)
{
    const struct step_state *s = &m->progress.steps[step];
    struct str output = STR_NONE;
    struct job job = {0};
    bool found = false;
    enum err e = values_output(m, step, &output);
    if (e == ERR_OK && s->is_map)
        e = map_items_find(m->tx->db, m->run.num, (int64_t)step, &m->tx->arena, &job.input);
    else if (e == ERR_OK)
        e = jobs_find_at(m->tx->db, m->run.num, s->first, &m->tx->arena, &found, &job);
    if (e != ERR_OK)
        return e;
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_raw(&o, "input", job.input.ptr != NULL ? job.input : m->run.input);
    json_add_raw(&o, "output", output);
    json_close(&o, '}');
    *ret = arena_take(&m->tx->arena, &text);
    return ret->ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}

enum err step_begin_undo(struct run_txn *m, size_t step)
{
    const struct step_def *def = &m->def->steps[step];
    advance_undo_begun(&m->progress, step);
    struct job job = job_blank(m, step, m->progress.steps[step].undo_job, 0);
    struct item i = {.m = m, .def = def, .job = &job};
    job.undo = true;
    job.queue = def->undo_queue;
    problem_init(&i.p);
    enum err e = def->undo_input != NULL ? fill_text(&i, def->undo_input, &job.input)
                                         : undo_input(m, step, &job.input);
    if (e == ERR_EXPRESSION)
        e = create_failed(m, &job, EXPRESSION_FAILED, str_of(i.p.detail));
    else if (e == ERR_OK)
        e = job_create(m, &job);
    problem_release(&i.p);
    if (e == ERR_OK && job_has_ended(job.state))
        advance_undo_over(&m->progress, step, false);
    return e;
}
