/* Steps that wait for signals. */
#include "core/run/signal_wait.h"

#include "base/limits.h"
#include "core/run/job_txn.h"
#include "core/run/suspension.h"

#define TOO_LARGE_CODE "OUTPUT_TOO_LARGE"

/* --- names --- */

static size_t name_count(const struct step_def *step)
{
    return json_is(step->signals, JSON_KIND_LIST) ? json_length(step->signals) : 1;
}

static struct str name_at(const struct step_def *step, size_t at)
{
    return json_text_of(json_is(step->signals, JSON_KIND_LIST) ? json_element(step->signals, at)
                                                               : step->signals);
}

/* Its place among those of the step; name_count() when it is none of them. */
static size_t place_of(const struct step_def *step, struct str name)
{
    size_t at = 0;
    while (at < name_count(step) && !str_eq(name_at(step, at), name))
        at++;
    return at;
}

struct came {
    const struct step_def *step;
    bool *which; /* one for each name */
    size_t count;
};

static bool note_came(void *ctx, const struct run_signal *s)
{
    struct came *came = ctx;
    size_t at = place_of(came->step, s->name);
    if (at == name_count(came->step))
        return true;
    came->count += !came->which[at];
    came->which[at] = true;
    return true;
}

/* --- what came is the output --- */

static void put_signal(struct json_out *o, const struct run_signal *s)
{
    json_add_raw(o, "payload", s->payload);
    json_add_time(o, "at", s->at);
    json_close(o, '}');
}

static struct str output_of_one(struct run_txn *m, const struct run_signal *s)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "name", s->name);
    put_signal(&o, s);
    return arena_take(&m->tx->arena, &text);
}

struct gathering {
    struct json_out o;
    bool too_large;
};

static bool gather(void *ctx, const struct run_signal *s)
{
    struct gathering *g = ctx;
    g->too_large = g->o.buf->len + s->payload.len > JOB_OUTPUT_MAX;
    if (g->too_large)
        return false;
    if (g->o.comma)
        buf_put_char(g->o.buf, ',');
    json_put_text(g->o.buf, s->name);
    buf_put(g->o.buf, STR(":{"));
    g->o.comma = false;
    put_signal(&g->o, s);
    return true;
}

/* {"paid":{"payload":…,"at":…},"packed":{…}}. Each may be as large as an output may: together they
 * may not. */
static enum err output_of_all(struct run_txn *m, const struct job *job, struct str *ret,
                              bool *ret_too_large)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    struct gathering g = {.o = json_out_to(&text)};
    json_open(&g.o, NULL, '{');
    enum err e = signals_taken(m->tx->db, m->run.num, job->ordinal, gather, &g);
    json_close(&g.o, '}');
    *ret_too_large = g.too_large;
    if (e == ERR_OK && !g.too_large) {
        *ret = buf_ok(&text) ? arena_str(&m->tx->arena, buf_str(&text)) : STR_NONE;
        e = ret->ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    buf_release(&text);
    return e;
}

/* --- beginning to wait --- */

static enum err begin_first(struct run_txn *m, const struct step_def *step, struct job *job)
{
    for (size_t n = 0; n < name_count(step); n++) {
        struct run_signal s;
        bool found = false;
        enum err e =
            signals_waiting(m->tx->db, m->run.num, name_at(step, n), &m->tx->arena, &found, &s);
        if (e != ERR_OK)
            return e;
        if (!found)
            continue;
        job->state = JOB_SUCCEEDED;
        job->due_at = -1;
        job->output = output_of_one(m, &s);
        return job->output.ptr != NULL ? signals_take(m->tx->db, m->run.num, s.seq, job->ordinal)
                                       : ERR_NO_MEMORY;
    }
    return ERR_OK;
}

static enum err begin_all(struct run_txn *m, const struct step_def *step, struct job *job,
                          struct problem *p)
{
    size_t came = 0;
    enum err e = ERR_OK;
    for (size_t n = 0; n < name_count(step) && e == ERR_OK; n++) {
        struct run_signal s;
        bool found = false;
        e = signals_waiting(m->tx->db, m->run.num, name_at(step, n), &m->tx->arena, &found, &s);
        if (e != ERR_OK)
            return e;
        if (found)
            e = signals_take(m->tx->db, m->run.num, s.seq, job->ordinal);
        came += found;
    }
    if (e != ERR_OK || came < name_count(step))
        return e;
    bool too_large = false;
    job->state = JOB_SUCCEEDED;
    job->due_at = -1;
    e = output_of_all(m, job, &job->output, &too_large);
    if (e == ERR_OK && too_large)
        return problem_set(p, ERR_EXPRESSION, "The signals together have more than %d bytes",
                           JOB_OUTPUT_MAX);
    return e;
}

enum err signal_wait_begin(struct run_txn *m, const struct step_def *step, struct job *job,
                           struct problem *p)
{
    job->state = JOB_SCHEDULED;
    job->due_at = step->timeout_ms >= 0 ? m->tx->now_ms + step->timeout_ms : -1;
    return step->waits_for_all ? begin_all(m, step, job, p) : begin_first(m, step, job);
}

/* --- a signal comes --- */

struct search {
    struct run_txn *m;
    struct str name;
    int64_t ordinal; /* of the one that was found */
    bool found;
    enum err err;
};

/* False for a step that waits for all and has got this one. */
static enum err step_wants(struct run_txn *m, const struct step_def *step, const struct job *job,
                           struct str name, bool *ret)
{
    size_t at = place_of(step, name);
    *ret = at < name_count(step);
    if (!*ret || !step->waits_for_all)
        return ERR_OK;
    bool which[SIGNAL_NAMES_MAX] = {false};
    struct came came = {step, which, 0};
    enum err e = signals_taken(m->tx->db, m->run.num, job->ordinal, note_came, &came);
    *ret = !which[at];
    return e;
}

static enum err is_wanted(struct run_txn *m, const struct job *job, struct str name, bool *ret)
{
    const struct step_def *step = job_step(m->def, job);
    *ret = false;
    if (job->state == JOB_SUSPENDED)
        return suspensions_want(m->tx->db, job->owner, job->ordinal, name, ret);
    bool waits = step->signals != NULL && !job->undo && job->state == JOB_SCHEDULED;
    return waits ? step_wants(m, step, job, name, ret) : ERR_OK;
}

static bool look_at(void *ctx, const struct job *job)
{
    struct search *s = ctx;
    s->err = is_wanted(s->m, job, s->name, &s->found);
    s->ordinal = job->ordinal;
    return s->err == ERR_OK && !s->found;
}

enum err signal_wait_find(struct run_txn *m, struct str name, bool *ret_found, struct job *ret)
{
    struct search s = {.m = m, .name = name};
    enum err e = jobs_open(m->tx->db, m->run.num, 1, JOB_ORDINAL_MAX, look_at, &s);
    if (e == ERR_OK)
        e = s.err;
    *ret_found = s.found;
    if (e != ERR_OK || !s.found)
        return e;
    return jobs_find_at(m->tx->db, m->run.num, s.ordinal, &m->tx->arena, ret_found, ret);
}

static enum err fail_too_large(struct run_txn *m, struct job *job)
{
    job->error = error_json(m->tx, TOO_LARGE_CODE,
                            STR("The signals together are larger than an output may be"));
    return job->error.ptr != NULL ? job_change(m, job, JOB_ON_FAIL) : ERR_NO_MEMORY;
}

/* *ret_over: it has all that it waits for, and has moved. */
static enum err complete_all(struct run_txn *m, struct job *job, bool *ret_over)
{
    const struct step_def *step = job_step(m->def, job);
    bool which[SIGNAL_NAMES_MAX] = {false};
    struct came came = {step, which, 0};
    bool too_large = false;
    enum err e = signals_taken(m->tx->db, m->run.num, job->ordinal, note_came, &came);
    *ret_over = e == ERR_OK && came.count == name_count(step);
    if (!*ret_over)
        return e;
    e = output_of_all(m, job, &job->output, &too_large);
    if (e == ERR_OK && too_large)
        return fail_too_large(m, job);
    return e == ERR_OK ? job_change(m, job, JOB_ON_COMPLETE) : e;
}

enum err signal_wait_give(struct run_txn *m, const struct run_signal *s, struct job *job)
{
    bool over = true;
    if (job->state == JOB_SUSPENDED)
        return suspension_give(m, s, job);
    enum err e = signals_take(m->tx->db, m->run.num, s->seq, job->ordinal);
    if (e == ERR_OK && job_step(m->def, job)->waits_for_all) {
        e = complete_all(m, job, &over);
    } else if (e == ERR_OK) {
        job->output = output_of_one(m, s);
        e = job->output.ptr != NULL ? job_change(m, job, JOB_ON_COMPLETE) : ERR_NO_MEMORY;
    }
    return e == ERR_OK && over ? job_ended(m, job) : e;
}

/* --- time is over, and looking on --- */

enum err signal_wait_show(struct db *db, const struct step_def *step, const struct job *job,
                          struct json_out *o)
{
    bool which[SIGNAL_NAMES_MAX] = {false};
    struct came came = {step, which, 0};
    assert(step->waits_for_all && name_count(step) <= SIGNAL_NAMES_MAX);
    enum err e = signals_taken(db, job->owner, job->ordinal, note_came, &came);
    for (int missing = 0; missing < 2; missing++) {
        json_open(o, missing ? "missing" : "received", '[');
        for (size_t i = 0; i < name_count(step); i++) {
            if (which[i] != (bool)missing)
                json_add_text(o, NULL, name_at(step, i));
        }
        json_close(o, ']');
    }
    return e;
}

/* With the names that had come, if it waits for all. */
static enum err late_error(struct run_txn *m, const struct job *job, struct str *ret)
{
    const struct step_def *step = job_step(m->def, job);
    struct buf text;
    buf_init(&text, MIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "code", STR("TIMED_OUT"));
    json_add_text(&o, "message",
                  step->waits_for_all ? STR("Not all signals arrived in time")
                                      : STR("No signal arrived in time"));
    enum err e = step->waits_for_all ? signal_wait_show(m->tx->db, step, job, &o) : ERR_OK;
    json_close(&o, '}');
    *ret = arena_take(&m->tx->arena, &text);
    return e == ERR_OK && ret->ptr == NULL ? ERR_NO_MEMORY : e;
}

enum err signal_wait_expire(struct run_txn *m, struct job *job)
{
    enum err e = late_error(m, job, &job->error);
    if (e == ERR_OK)
        e = job_change(m, job, JOB_ON_TIME_OUT);
    return e == ERR_OK ? job_ended(m, job) : e;
}
