/* Suspending a job. */
#include "core/run/job_suspend.h"

#include "base/limits.h"
#include "core/run/approval_txn.h"
#include "core/run/job_txn.h"

/* --- questions --- */

/* A job of its own asks: the next question of the same function has another id, and nobody decides
 * it by mistake for this one. */
static enum err ask(struct run_txn *m, const struct job *asker, struct str approval,
                    int64_t *ret_ordinal)
{
    struct approval a;
    if (m->progress.jobs >= JOB_ORDINAL_MAX)
        return ERR_TOO_LARGE;
    struct job question = job_blank(m, (size_t)asker->step, ++m->progress.jobs, asker->item);
    question.queue = STR(QUESTION_QUEUE);
    question.undo = asker->undo;
    enum err e = approval_compose_question(m, &question, approval, asker->ordinal, &a);
    if (e == ERR_OK)
        e = job_create(m, &question);
    if (e == ERR_OK)
        e = approval_request(m, &question, &a);
    *ret_ordinal = question.ordinal;
    return e;
}

static enum err is_same_question(struct run_txn *m, const struct suspension *s,
                                 const struct suspend_input *in, bool *ret)
{
    struct approval kept;
    struct approval asked;
    bool found = false;
    struct job question = {.owner = m->run.num, .ordinal = s->question, .queue = STR("")};
    enum err e = approvals_find(m->tx->db, m->run.num, s->question, &m->tx->arena, &found, &kept);
    *ret = found;
    if (e != ERR_OK || !found)
        return e;
    e = approval_compose_question(m, &question, in->approval, s->ordinal, &asked);
    if (e == ERR_OK)
        e = json_same_text(kept.ask_text, asked.ask_text, ret);
    *ret &= str_eq(kept.content_hash, asked.content_hash);
    return e;
}

static bool same_text(struct str a, struct str b)
{
    return a.ptr == NULL || b.ptr == NULL ? a.ptr == b.ptr : str_eq(a, b);
}

enum err job_suspend_is_same(struct run_txn *m, const struct suspend_input *in,
                             const struct suspension *s, bool *ret)
{
    *ret = same_text(s->name, in->name) && same_text(s->signal, in->signal) &&
           s->until == in->until && (s->question > 0) == (in->approval.ptr != NULL);
    return *ret && in->approval.ptr != NULL ? is_same_question(m, s, in, ret) : ERR_OK;
}

/* --- suspending --- */

/* For the timeline. */
static enum err wait_text(struct run_txn *m, const struct suspension *s, struct str *ret)
{
    struct buf text;
    buf_init(&text, 4 * KIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text_or_null(&o, "name", s->name);
    enum err e = suspension_show_wait(m->read_tx, s, &o);
    json_close(&o, '}');
    *ret = arena_take(&m->tx->arena, &text);
    return e == ERR_OK && ret->ptr == NULL ? ERR_NO_MEMORY : e;
}

/* One that came early was waiting for this. */
static enum err take_signal(struct run_txn *m, struct job *job, const struct suspension *s)
{
    struct run_signal signal;
    bool found = false;
    enum err e = signals_waiting(m->tx->db, m->run.num, s->signal, &m->tx->arena, &found, &signal);
    return e == ERR_OK && found ? suspension_give(m, &signal, job) : e;
}

enum err job_suspend(struct run_txn *m, struct job *job, const struct suspend_input *in,
                     int64_t num, struct suspension *ret)
{
    assert(job->state == JOB_RUNNING && num > 0);
    struct suspension s = {
        .run = job->owner,
        .ordinal = job->ordinal,
        .num = num,
        .lease = job->lease_epoch,
        .name = in->name,
        .until = in->until,
        .signal = in->signal,
        .question = -1,
        .at = m->tx->now_ms,
    };
    struct str wait = STR_NONE;
    enum err e = in->approval.ptr != NULL ? ask(m, job, in->approval, &s.question) : ERR_OK;
    if (e == ERR_OK)
        e = suspensions_put(m->tx->db, &s);
    if (e == ERR_OK)
        e = wait_text(m, &s, &wait);
    if (e != ERR_OK)
        return e;
    job->due_at = s.until;
    e = job_change_saying(m, job, JOB_ON_SUSPEND, "wait", wait);
    if (e != ERR_OK)
        return e;
    if (!job->undo)
        advance_asked(&m->progress, (size_t)job->step);
    *ret = s;
    return s.signal.ptr != NULL ? take_signal(m, job, &s) : ERR_OK;
}
