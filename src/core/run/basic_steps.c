/* The types of steps that need little: work for others, waits, and what is done at once. */
#include "core/run/step_ops.h"
#include "core/txn/job_row.h"

#include "base/limits.h"
#include "core/run/job_txn.h"
#include "core/run/run_values.h"
#include "core/run/signal_wait.h"

/* --- work for others --- */

enum err step_task_begin(struct step_item *i)
{
    if (i->def->input != NULL && (expr_has_template(i->def->input) || i->value != NULL))
        return step_fill_text(i, i->def->input, &i->job->input);
    /* Without an input of its own a task gets its item, or what the run got. */
    return i->value != NULL ? values_text(i->m->tx, i->value, &i->job->input) : ERR_OK;
}

enum err step_http_begin(struct step_item *i)
{
    i->job->queue = STR(HTTP_QUEUE);
    return step_fill_text(i, i->def->request, &i->job->input);
}

enum err step_approval_begin(struct step_item *i)
{
    (void)i; /* asking is all that it does: step_begin.c asks for every step that wants it */
    return ERR_OK;
}

/* Definitions with such steps are refused before a run starts. */
enum err step_llm_begin(struct step_item *i)
{
    (void)i;
    assert(!"a step type that this version does not run");
    return ERR_INTERNAL;
}

/* The delay before the next attempt is over. In a paused run the job waits on, to be resumed. */
static enum err offer_again(struct run_txn *m, struct job *job, struct problem *p)
{
    (void)p;
    if (m->run.status != RUN_PAUSED)
        return job_change(m, job, JOB_ON_WAKE);
    struct job held = *job;
    held.due_at = -1;
    return job_row_touch(m->tx, job, &held);
}

const struct step_waits step_waits_plain = {.due = offer_again};

/* --- done at once --- */

enum err step_transform_begin(struct step_item *i)
{
    i->job->state = JOB_SUCCEEDED;
    return step_fill_text(i, i->def->output, &i->job->output);
}

enum err step_emit_begin(struct step_item *i)
{
    i->job->state = JOB_SUCCEEDED;
    i->job->output = STR("null");
    enum err e =
        i->def->payload != NULL ? step_fill_text(i, i->def->payload, &i->job->output) : ERR_OK;
    if (e != ERR_OK)
        return e;
    struct buf data;
    buf_init(&data, JSON_KEPT_MAX + 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "event", i->def->event);
    json_add_raw(&o, "payload", i->job->output);
    json_close(&o, '}');
    e = buf_ok(&data)
            ? run_txn_add_named_event(i->m, EVENT_EMITTED, buf_str(&data), -1, i->def->event)
            : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* --- waits --- */

enum err step_sleep_begin(struct step_item *i)
{
    int64_t now = i->m->tx->now_ms;
    i->job->state = JOB_SCHEDULED;
    i->job->due_at = i->def->until_ms >= 0 ? i->def->until_ms : now + i->def->duration_ms;
    if (i->def->until.len == 0)
        return ERR_OK;
    const struct json template = json_text_value(i->def->until);
    const struct json *filled = NULL;
    enum err e = values_fill(i->m, &template, i->value, &i->p, &filled);
    if (e != ERR_OK)
        return e;
    int64_t until = 0;
    if (!json_is(filled, JSON_KIND_TEXT) || !time_parse(json_text_of(filled), &until))
        return problem_set(&i->p, ERR_EXPRESSION,
                           "The value of until is not a time such as 2026-01-31T12:00:00Z");
    i->job->due_at = MAX(until, (int64_t)0);
    return ERR_OK;
}

static enum err end_sleep(struct run_txn *m, struct job *job, struct problem *p)
{
    (void)p;
    enum err e = job_change(m, job, JOB_ON_FIRE);
    return e == ERR_OK ? job_ended(m, job) : e;
}

static enum err why_time(struct read_tx *tx, const struct step_def *def, const struct job *job,
                         struct json_out *o, struct buf *sentence)
{
    (void)tx, (void)o;
    buf_printf(sentence, "Step %.*s is sleeping until ", STR_ARG(def->name));
    buf_put_time(sentence, job->due_at);
    buf_put_char(sentence, '.');
    return ERR_OK;
}

const struct step_waits step_waits_time = {.kind = "timer", .due = end_sleep, .why = why_time};

enum err step_wait_signal_begin(struct step_item *i)
{
    i->code = "OUTPUT_TOO_LARGE";
    return signal_wait_begin(i->m, i->def, i->job, &i->p);
}

static enum err end_wait(struct run_txn *m, struct job *job, struct problem *p)
{
    (void)p;
    return signal_wait_expire(m, job);
}

/* Those who sent the signals will not send them again. */
static enum err give_signals_back(struct run_txn *m, int64_t from, int64_t to)
{
    return signals_give_back(m->tx->db, m->run.num, from, to);
}

static enum err why_signal(struct read_tx *tx, const struct step_def *def, const struct job *job,
                           struct json_out *o, struct buf *sentence)
{
    struct str name = json_text_of(
        json_is(def->signals, JSON_KIND_LIST) ? json_element(def->signals, 0) : def->signals);
    bool several = json_length(def->signals) > 1;
    json_add_name(o, "signal");
    json_write_plain(o->buf, def->signals);
    buf_printf(sentence, "Step %.*s is waiting for the signal %.*s%s.", STR_ARG(def->name),
               STR_ARG(name),
               !several             ? ""
               : def->waits_for_all ? " and others"
                                    : " or another");
    return def->waits_for_all ? signal_wait_show(tx->db, def, job, o) : ERR_OK;
}

const struct step_waits step_waits_signal = {
    .kind = "signal",
    .due = end_wait,
    .dropped = give_signals_back,
    .why = why_signal,
};
