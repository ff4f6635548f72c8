/* Suspended jobs. */
#include "core/run/suspension.h"

#include "base/limits.h"
#include "core/run/job_txn.h"

/* --- reading --- */

enum err suspension_find(struct read_tx *tx, const struct job *job, struct suspension *ret)
{
    bool found = false;
    enum err e = suspensions_find(tx->db, job->owner, job->ordinal, &tx->arena, &found, ret);
    return e == ERR_OK && !found ? ERR_DAMAGED : e;
}

enum err suspension_show_wait(struct read_tx *tx, const struct suspension *s, struct json_out *o)
{
    struct job question = {0};
    bool asked = false;
    enum err e = ERR_OK;
    if (s->question > 0)
        e = jobs_find_at(tx->db, s->run, s->question, &tx->arena, &asked, &question);
    json_add_time(o, "until", s->until);
    json_add_text_or_null(o, "signal", s->signal);
    if (asked)
        json_add_uuid(o, "approval_id", question.id);
    else
        json_add_null(o, "approval_id");
    return e;
}

/* --- what has come --- */

/* Written as the next claim shows it; the object is closed by resume(). */
struct resumption {
    const char *kind; /* as JSON */
    struct buf text;
    struct json_out out;
};

static void resumption_begin(struct resumption *r, const struct run_txn *m,
                             const struct suspension *s, const char *kind)
{
    r->kind = kind;
    buf_init(&r->text, JSON_WRITTEN_MAX);
    r->out = json_out_to(&r->text);
    json_open(&r->out, NULL, '{');
    json_add_raw(&r->out, "kind", str_of(kind));
    json_add_text_or_null(&r->out, "name", s->name);
    json_add_time(&r->out, "at", m->tx->now_ms);
}

static enum err resume(struct run_txn *m, struct job *job, struct resumption *r)
{
    json_close(&r->out, '}');
    enum err e = buf_ok(&r->text)
                     ? suspensions_resume(m->tx->db, job->owner, job->ordinal, buf_str(&r->text))
                     : ERR_NO_MEMORY;
    buf_release(&r->text);
    if (e == ERR_OK)
        e = job_change_saying(m, job, JOB_ON_RESUME, "by", str_of(r->kind));
    if (e != ERR_OK)
        return e;
    if (!job->undo)
        advance_answered(&m->progress, (size_t)job->step);
    return m->run.status == RUN_PAUSED ? job_change(m, job, JOB_ON_HOLD) : ERR_OK;
}

enum err suspension_due(struct run_txn *m, struct job *job)
{
    struct suspension s;
    struct resumption r;
    enum err e = suspension_find(m->read_tx, job, &s);
    if (e != ERR_OK)
        return e;
    resumption_begin(&r, m, &s, "\"timer\"");
    return resume(m, job, &r);
}

enum err suspension_give(struct run_txn *m, const struct run_signal *signal, struct job *job)
{
    struct suspension s;
    struct resumption r;
    enum err e = suspension_find(m->read_tx, job, &s);
    if (e == ERR_OK)
        e = signals_take(m->tx->db, m->run.num, signal->seq, job->ordinal);
    if (e != ERR_OK)
        return e;
    resumption_begin(&r, m, &s, "\"signal\"");
    json_add_text(&r.out, "signal", signal->name);
    json_add_raw(&r.out, "payload", signal->payload);
    json_add_time(&r.out, "sent_at", signal->at);
    return resume(m, job, &r);
}

enum err suspension_decided(struct run_txn *m, const struct job *question, const struct approval *a)
{
    struct suspension s = {.question = -1};
    struct resumption r;
    struct job job = {.state = JOB_STATE_COUNT};
    bool found = false;
    enum err e = jobs_find_at(m->tx->db, m->run.num, a->asker, &m->tx->arena, &found, &job);
    if (e == ERR_OK && found)
        e = suspension_find(m->read_tx, &job, &s);
    if (e != ERR_OK)
        return e;
    if (job.state != JOB_SUSPENDED || s.question != question->ordinal)
        return ERR_DAMAGED;
    resumption_begin(&r, m, &s, "\"approval\"");
    json_add_uuid(&r.out, "approval_id", question->id);
    json_add_text(&r.out, "decision", str_of(approval_status_name(a->status)));
    json_add_text(&r.out, "by", a->decided_by);
    json_add_text_or_null(&r.out, "reason", a->reason);
    json_add_raw(&r.out, "content", a->edited.ptr != NULL ? a->edited : a->content);
    return resume(m, &job, &r);
}

/* --- nothing will come --- */

enum err suspension_cancelled(struct run_txn *m, const struct job *job)
{
    struct suspension s;
    struct job question = {.state = JOB_STATE_COUNT};
    bool found = false;
    enum err e = suspension_find(m->read_tx, job, &s);
    if (e == ERR_OK && s.question > 0)
        e = jobs_find_at(m->tx->db, m->run.num, s.question, &m->tx->arena, &found, &question);
    if (e != ERR_OK || !found || job_has_ended(question.state))
        return e;
    return job_change(m, &question, JOB_ON_CANCEL);
}
