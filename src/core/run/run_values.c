/* What expressions see of a run. */
#include "core/run/run_values.h"

#include "base/limits.h"
#include "core/txn/cpu_shares.h"

/* --- reading --- */

/* JSON that the store wrote; lives until the transaction ends. */
static const struct json *parsed(struct values *v, struct str text)
{
    struct json *json = NULL;
    enum err e = text.len > 0 ? json_read_kept(text, &json) : ERR_OK;
    if (json != NULL && !read_tx_keep_json(v->m->read_tx, json))
        e = ERR_NO_MEMORY;
    if (e != ERR_OK)
        v->err = e;
    return v->err == ERR_OK ? json : NULL;
}

/* Large inputs are not read again for each of a map's items. */
static const struct json *parsed_once(struct values *v, struct str text, struct read_text *read)
{
    if (read->of != text.ptr) {
        const struct json *value = parsed(v, text);
        if (v->err != ERR_OK)
            return NULL;
        *read = (struct read_text){text.ptr, value};
    }
    return read->value;
}

struct outputs {
    struct buf text;
    int64_t count;
};

static void add_output(void *ctx, const struct job *job)
{
    struct outputs *o = ctx;
    if (o->count++ > 0)
        buf_put_char(&o->text, ',');
    buf_put(&o->text, job->output.len > 0 ? job->output : STR("null"));
}

enum err values_output(struct run_txn *m, size_t step, struct str *ret)
{
    const struct step_state *s = &m->progress.steps[step];
    *ret = STR_NONE;
    if (s->is_map && s->items == 0 && s->status == STEP_IS_SUCCEEDED)
        *ret = STR("[]");
    if (s->first == 0)
        return ERR_OK;
    if (!s->is_map) {
        struct job job;
        bool found = false;
        enum err e =
            jobs_find_at(m->read_tx->db, m->run.num, s->first, &m->read_tx->arena, &found, &job);
        if (e == ERR_OK && found)
            *ret = job.output;
        return e;
    }
    if (!step_is_settled(s->status))
        return ERR_OK;
    struct outputs o = {.count = 0};
    buf_init(&o.text, JSON_KEPT_MAX);
    buf_put_char(&o.text, '[');
    enum err e =
        jobs_range(m->read_tx->db, m->run.num, s->first, s->first + s->items, add_output, &o);
    buf_put_char(&o.text, ']');
    bool refused = o.text.refused;
    *ret = arena_take(&m->read_tx->arena, &o.text);
    bool too_large = refused || m->read_tx->arena.refused;
    return e == ERR_OK && ret->ptr == NULL && !too_large ? ERR_NO_MEMORY : e;
}

bool values_too_large(const struct run_txn *m, size_t step, struct str output)
{
    const struct step_state *s = &m->progress.steps[step];
    return s->is_map && s->first > 0 && step_is_settled(s->status) && output.ptr == NULL;
}

struct first_error {
    struct run_txn *m;
    struct str error;
    bool full;
};

static void take_error(void *ctx, const struct job *job)
{
    struct first_error *f = ctx;
    if (f->error.ptr != NULL || !job_has_ended(job->state) || job->state == JOB_SUCCEEDED ||
        job->error.ptr == NULL)
        return;
    f->error = job->error;
    f->full = !arena_keep(&f->m->read_tx->arena, &f->error);
}

enum err values_error(struct run_txn *m, size_t step, struct str *ret)
{
    const struct step_state *s = &m->progress.steps[step];
    struct first_error f = {.m = m, .error = STR_NONE};
    enum err e =
        jobs_range(m->read_tx->db, m->run.num, s->first, s->first + s->items, take_error, &f);
    *ret = f.error;
    return e == ERR_OK && f.full ? ERR_NO_MEMORY : e;
}

static const char *step_word(enum step_status status)
{
    static const char *const WORDS[] = {"pending", "running",   "succeeded", "failed",
                                        "skipped", "cancelled", "timed_out", "denied"};
    static_assert(ARRAY_LEN(WORDS) == STEP_STATUS_COUNT, "one word per status");
    return WORDS[status];
}

/* {status, output, error, attempt} of a step that has begun. */
static const struct json *step_value(struct values *v, struct str name)
{
    struct run_txn *m = v->m;
    size_t step = definition_find_step(m->def, name);
    if (step == m->def->step_count)
        return NULL;
    if (m->step_values == NULL)
        m->step_values =
            arena_alloc(&m->read_tx->arena, m->def->step_count * sizeof(*m->step_values));
    if (m->step_values == NULL) {
        v->err = ERR_NO_MEMORY;
        return NULL;
    }
    if (m->step_values[step].value != NULL)
        return m->step_values[step].value;
    const struct step_state *s = &m->progress.steps[step];
    struct str output = STR_NONE;
    struct job job = {0};
    bool found = false;
    v->err = values_output(m, step, &output);
    if (v->err == ERR_OK && values_too_large(m, step, output))
        v->err = ERR_EXPRESSION; /* nobody is to go on with nil in their place */
    if (v->err == ERR_OK && s->first > 0 && !s->is_map)
        v->err =
            jobs_find_at(m->read_tx->db, m->run.num, s->first, &m->read_tx->arena, &found, &job);
    else if (v->err == ERR_OK && step_is_settled(s->status))
        v->err = values_error(m, step, &job.error);
    if (v->err != ERR_OK)
        return NULL;
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "status", str_of(step_word(s->status)));
    json_add_raw(&o, "output", output);
    json_add_raw(&o, "error", job.error);
    json_add_int(&o, "attempt", job.attempt);
    json_close(&o, '}');
    if (!buf_ok(&text))
        v->err = ERR_NO_MEMORY;
    else
        m->step_values[step].value = parsed(v, buf_str(&text));
    buf_release(&text);
    /* A step that is still open may look different next time. */
    const struct json *value = m->step_values[step].value;
    if (!step_is_settled(s->status))
        m->step_values[step].value = NULL;
    return value;
}

static const struct json *run_value(struct values *v)
{
    const struct run *r = &v->m->run;
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "id", r->id);
    json_add_text(&o, "workflow_id", r->workflow_id);
    json_add_int(&o, "workflow_version", r->workflow_version);
    json_add_text(&o, "tenant", v->m->tenant->id);
    json_add_text(&o, "created_by", r->created_by);
    json_add_time(&o, "created_at", r->created_at);
    json_add_int(&o, "priority", r->priority);
    json_add_raw(&o, "labels", r->labels);
    json_close(&o, '}');
    const struct json *value = NULL;
    if (buf_ok(&text))
        value = parsed(v, buf_str(&text));
    else
        v->err = ERR_NO_MEMORY;
    buf_release(&text);
    return value;
}

static enum err get(void *ctx, struct str root, struct str name, const struct json **ret)
{
    struct values *v = ctx;
    const struct json *value = NULL;
    v->err = ERR_OK;
    if (str_is(root, "input"))
        value = parsed_once(v, v->m->run.input, &v->m->input_read);
    else if (str_is(root, "state"))
        value = parsed_once(v, v->m->run.state, &v->m->state_read);
    else if (str_is(root, "item"))
        value = v->item;
    else if (str_is(root, "run"))
        value = run_value(v);
    else if (str_is(root, "steps"))
        value = step_value(v, name);
    if (v->err == ERR_OK && value != NULL)
        *ret = value;
    return v->err;
}

/* --- evaluating --- */

/* What one evaluation takes is put on its tenant's account. */
struct meter {
    uint64_t steps;
    int64_t ns;
};

static struct meter meter_begin(const struct run_txn *m, const struct expr *x)
{
    return (struct meter){expr_steps_spent(x), env_mono_ns(m->tx->env)};
}

static void meter_end(const struct run_txn *m, const struct expr *x, struct meter begun)
{
    cpu_shares_spend(m->tx->cpu, m->run.tenant, m->tx->now_ms,
                     (int64_t)(expr_steps_spent(x) - begun.steps),
                     env_mono_ns(m->tx->env) - begun.ns);
}

enum err values_truth(struct run_txn *m, struct str source, struct problem *p, bool *ret)
{
    struct values v = {.m = m};
    const struct expr_vars vars = {&v, get};
    struct expr *x = read_tx_expr(m->read_tx);
    if (x == NULL)
        return ERR_NO_MEMORY;
    struct meter meter = meter_begin(m, x);
    enum err e = expr_truth(x, source, &vars, p, ret);
    meter_end(m, x, meter);
    return e;
}

static enum err keep(struct run_txn *m, enum err e, struct json *value, const struct json **ret)
{
    if (e != ERR_OK)
        return e;
    if (!read_tx_keep_json(m->read_tx, value))
        return ERR_NO_MEMORY;
    *ret = value;
    return ERR_OK;
}

enum err values_eval(struct run_txn *m, struct str source, struct problem *p,
                     const struct json **ret)
{
    struct values v = {.m = m};
    const struct expr_vars vars = {&v, get};
    struct expr *x = read_tx_expr(m->read_tx);
    struct json *value = NULL;
    if (x == NULL)
        return ERR_NO_MEMORY;
    struct meter meter = meter_begin(m, x);
    enum err e = expr_value(x, source, &vars, p, &value);
    meter_end(m, x, meter);
    return keep(m, e, value, ret);
}

enum err values_fill(struct run_txn *m, const struct json *template, const struct json *item,
                     struct problem *p, const struct json **ret)
{
    struct values v = {.m = m, .item = item};
    const struct expr_vars vars = {&v, get};
    struct expr *x = read_tx_expr(m->read_tx);
    struct json *value = NULL;
    if (x == NULL)
        return ERR_NO_MEMORY;
    struct meter meter = meter_begin(m, x);
    enum err e = expr_fill(x, template, &vars, p, &value);
    meter_end(m, x, meter);
    return keep(m, e, value, ret);
}

enum err values_text(struct tx *tx, const struct json *value, struct str *ret)
{
    struct buf text;
    buf_init(&text, JSON_KEPT_MAX);
    json_write_plain(&text, value);
    *ret = arena_take(&tx->arena, &text);
    return ret->ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}
