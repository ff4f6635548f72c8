/* Beginning steps. */
#include "core/run/step_begin.h"

#include "base/limits.h"
#include "core/run/approval_txn.h"
#include "core/run/job_txn.h"
#include "core/run/run_values.h"
#include "core/run/step_ops.h"
#include "core/txn/cpu_shares.h"

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
    const struct json *items = NULL;
    enum err e = json_is(def->for_each, JSON_KIND_TEXT)
                     ? values_eval(m, json_text_of(def->for_each), p, &items)
                     : values_fill(m, def->for_each, NULL, p, &items);
    if (e == ERR_EXPRESSION)
        return fail_step(m, step, EXPRESSION_FAILED, p->detail);
    if (e != ERR_OK)
        return e;
    if (!json_is(items, JSON_KIND_LIST))
        return fail_step(m, step, "ITEMS_INVALID", "The value of for_each is not a list");
    if (json_length(items) > MAP_ITEMS_MAX)
        return fail_step(m, step, "ITEMS_INVALID",
                         "The list of for_each has more than 10,000 items");
    struct str text = STR_NONE;
    e = values_text(m->tx, items, &text);
    if (e == ERR_OK)
        e = map_items_insert(m->tx->db, m->run.num, (int64_t)step, text);
    if (e != ERR_OK)
        return e;
    m->items = items;
    m->items_step = step;
    advance_begin(&m->progress, step, (int64_t)json_length(items));
    return ERR_OK;
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

/* --- items --- */

static enum err begin_item(struct run_txn *m, size_t step, int64_t index, const struct json *value)
{
    int64_t first = m->progress.steps[step].first;
    struct job job = job_blank(m, step, first + index, index);
    struct step_item i = {.m = m,
                          .def = &m->def->steps[step],
                          .job = &job,
                          .value = value,
                          .code = EXPRESSION_FAILED};
    struct approval approval; /* of a job that waits for one */
    problem_init(&i.p);
    enum err e = step_begin_of(i.def->type)(&i);
    if (e == ERR_OK && i.def->asks)
        e = approval_compose(m, &job, value, &i.p, &approval);
    if (e == ERR_EXPRESSION)
        e = create_failed(m, &job, i.code, str_of(i.p.detail));
    else if (e == ERR_OK)
        e = job_create(m, &job);
    problem_release(&i.p);
    if (e == ERR_OK && job.state == JOB_APPROVAL)
        e = approval_request(m, &job, &approval);
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
    struct json *items = NULL;
    e = json_read_kept(text, &items);
    if (e != ERR_OK)
        return e;
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
        const struct json *value = s->is_map ? json_element(m->items, (size_t)i) : NULL;
        advance_items_begun(&m->progress, step, 1);
        e = begin_item(m, step, i, value);
        if (s->is_map)
            cpu_shares_spend(m->tx->cpu, m->run.tenant, m->tx->now_ms, CPU_STEPS_PER_ITEM, 0);
        if (cpu_shares_used_up(m->tx->cpu, m->run.tenant, m->tx->now_ms))
            break;
    }
    return e;
}

static bool fills(const struct json *template)
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
    struct step_item i = {.m = m, .def = def, .job = &job};
    job.undo = true;
    job.queue = def->undo_queue;
    problem_init(&i.p);
    enum err e = def->undo_input != NULL ? step_fill_text(&i, def->undo_input, &job.input)
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
