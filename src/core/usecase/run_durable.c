/* Durable functions: checkpoints and suspensions of a run's jobs. */
#include "core/usecase/run_durable.h"

#include "base/limits.h"
#include "core/run/job_suspend.h"
#include "core/run/job_txn.h"
#include "core/run/run_advance.h"
#include "core/run/stale_result.h"
#include "core/txn/lease.h"
#include "store/run/checkpoints.h"

static enum err refuse_limit(struct op *op, const char *what, int64_t current, int64_t limit)
{
    enum err e = problem_set(&op->problem, ERR_JOB_LIMIT, "A job may have at most %lld %s",
                             (long long)limit, what);
    problem_add_number(&op->problem, "current", current);
    problem_add_number(&op->problem, "limit", limit);
    return e;
}

/* --- checkpoints --- */

static void answer_checkpoint(struct op *op, const struct job *job, const struct checkpoint *c,
                              const char *status, bool differs)
{
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_text(&o, "name", c->name);
    json_add_text(&o, "status", str_of(status));
    if (c->error.ptr != NULL)
        json_add_raw(&o, "error", c->error);
    else
        json_add_raw(&o, "output", c->output);
    if (differs)
        json_add_bool(&o, "differs", true);
    json_close(&o, '}');
}

/* The first result under a name stays. */
static enum err answer_stored(struct op *op, const struct job *job, const struct checkpoint *first,
                              const struct checkpoint_input *in)
{
    bool failed = first->error.ptr != NULL;
    bool same = failed == (in->error.ptr != NULL);
    enum err e = ERR_OK;
    if (same)
        e = json_same_text(failed ? first->error : first->output, failed ? in->error : in->output,
                           &same);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot compare the results");
    op->answer.changed_nothing = true;
    answer_checkpoint(op, job, first, "already_stored", !same);
    return ERR_OK;
}

/* Numbers it, if the job has room for it. */
static enum err make_room(struct op *op, struct tx *tx, struct checkpoint *c)
{
    int64_t count = 0;
    int64_t bytes = 0;
    enum err e = checkpoints_total(tx->db, c->run, c->ordinal, &count, &bytes);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot count the checkpoints");
    if (count >= CHECKPOINTS_MAX)
        return refuse_limit(op, "checkpoints", count, CHECKPOINTS_MAX);
    c->seq = count + 1;
    c->bytes = bytes + (int64_t)(c->name.len + c->output.len + c->error.len);
    if (c->bytes > CHECKPOINTS_BYTES_MAX)
        return refuse_limit(op, "bytes of checkpoints", bytes, CHECKPOINTS_BYTES_MAX);
    return ERR_OK;
}

static enum err tell_checkpoint(struct run_txn *m, const struct job *job,
                                const struct checkpoint *c)
{
    struct buf text;
    buf_init(&text, 4 * KIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "name", c->name);
    json_add_bool(&o, "failed", c->error.ptr != NULL);
    json_close(&o, '}');
    enum err e = buf_ok(&text) ? job_add_event_with(m, EVENT_JOB_CHECKPOINTED, job, "checkpoint",
                                                    buf_str(&text))
                               : ERR_NO_MEMORY;
    buf_release(&text);
    return e;
}

enum err run_checkpoint(struct op *op, struct tx *tx, const struct checkpoint_input *in,
                        struct job *job)
{
    struct run_txn m;
    struct checkpoint c;
    bool found = false;
    enum err e = run_txn_load_other(&m, tx, job->owner, &op->problem);
    if (e != ERR_OK)
        return e;
    if (!lease_is_current(tx, job, in->lease_token) || job->state != JOB_RUNNING)
        return job_refuse_stale(op, &m, job, in->lease_token,
                                "The lease is gone, so the checkpoint was not stored");
    e = checkpoints_find(tx->db, job->owner, job->ordinal, in->name, &tx->arena, &found, &c);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot look up the checkpoint");
    if (found)
        return answer_stored(op, job, &c, in);
    c = (struct checkpoint){.run = job->owner,
                            .ordinal = job->ordinal,
                            .name = in->name,
                            .at = tx->now_ms,
                            .output = in->output,
                            .error = in->error};
    e = make_room(op, tx, &c);
    if (e != ERR_OK)
        return e;
    e = checkpoints_insert(tx->db, &c);
    if (e == ERR_OK)
        e = tell_checkpoint(&m, job, &c);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the checkpoint");
    answer_checkpoint(op, job, &c, "stored", false);
    return ERR_OK;
}

/* --- suspensions --- */

static enum err answer_suspended(struct op *op, const struct run_txn *m, const struct job *job,
                                 const struct suspension *s, const char *status)
{
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_text(&o, "status", str_of(status));
    json_add_uuid(&o, "run_id", m->run.id);
    json_add_text(&o, "run_status", str_of(run_status_name(m->run.status)));
    enum err e = suspension_show_wait(m->read_tx, s, &o);
    json_close(&o, '}');
    return e;
}

/* The answer to the first request was lost: the job waits, or what it waited for has come and no
 * worker has taken it yet. */
static enum err answer_again(struct op *op, struct run_txn *m, const struct suspend_input *in,
                             const struct job *job, const struct suspension *s, bool *ret_again)
{
    enum err e = ERR_OK;
    *ret_again = !job_has_ended(job->state) && s->lease == job->lease_epoch;
    if (*ret_again)
        e = job_suspend_is_same(m, in, s, ret_again);
    if (e == ERR_OK && *ret_again) {
        op->answer.changed_nothing = true;
        e = answer_suspended(op, m, job, s, "already_suspended");
    }
    return e;
}

enum err run_suspend(struct op *op, struct tx *tx, const struct suspend_input *in, struct job *job)
{
    struct run_txn m;
    struct suspension s = {.num = 0};
    bool known = false;
    bool again = false;
    enum err e = run_txn_load_other(&m, tx, job->owner, &op->problem);
    if (e != ERR_OK)
        return e;
    if (!lease_is_current(tx, job, in->lease_token))
        return job_refuse_stale(op, &m, job, in->lease_token, "The lease has ended");
    e = suspensions_find(tx->db, job->owner, job->ordinal, &tx->arena, &known, &s);
    if (e == ERR_OK && known && job->state != JOB_RUNNING)
        e = answer_again(op, &m, in, job, &s, &again);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot look up the suspension");
    if (again)
        return ERR_OK;
    if (job->state != JOB_RUNNING)
        return job_refuse_stale(op, &m, job, in->lease_token, "The lease has ended");
    if (known && s.num >= SUSPENSIONS_MAX)
        return refuse_limit(op, "suspensions", s.num, SUSPENSIONS_MAX);
    e = job_suspend(&m, job, in, known ? s.num + 1 : 1, &s);
    if (e == ERR_OK)
        e = run_txn_advance(&m);
    if (e == ERR_OK)
        e = answer_suspended(op, &m, job, &s, "suspended");
    return e == ERR_OK ? ERR_OK
                       : problem_set(&op->problem, err_after_change(e), "Cannot suspend the job");
}

/* --- showing --- */

struct shown_checkpoints {
    struct json_out *o;
    bool errors; /* those with an error, not those with an output */
    int64_t count;
};

static void show_checkpoint(void *ctx, const struct checkpoint *c)
{
    struct shown_checkpoints *s = ctx;
    if ((c->error.ptr != NULL) != s->errors)
        return;
    if (s->count++ == 0)
        json_open(s->o, s->errors ? "checkpoint_errors" : "checkpoints", '{');
    if (s->o->comma)
        buf_put_char(s->o->buf, ',');
    json_put_text(s->o->buf, c->name);
    buf_put_char(s->o->buf, ':');
    buf_put(s->o->buf, s->errors ? c->error : c->output);
    s->o->comma = true;
}

static enum err show_suspension(struct read_tx *tx, const struct job *job, struct json_out *o)
{
    struct suspension s;
    bool found = false;
    enum err e = suspensions_find(tx->db, job->owner, job->ordinal, &tx->arena, &found, &s);
    if (e != ERR_OK || !found)
        return e;
    if (s.resumed_by.ptr != NULL)
        json_add_raw(o, "resumed_by", s.resumed_by);
    if (job->state != JOB_SUSPENDED)
        return ERR_OK;
    json_open(o, "suspended", '{');
    json_add_text_or_null(o, "name", s.name);
    json_add_time(o, "since", s.at);
    e = suspension_show_wait(tx, &s, o);
    json_close(o, '}');
    return e;
}

enum err run_durable_show(struct read_tx *tx, const struct job *job, struct json_out *o)
{
    enum err e = ERR_OK;
    for (int errors = 0; errors < 2 && e == ERR_OK; errors++) {
        struct shown_checkpoints s = {.o = o, .errors = errors != 0};
        e = checkpoints_list(tx->db, job->owner, job->ordinal, show_checkpoint, &s);
        if (s.count > 0)
            json_close(o, '}');
    }
    return e == ERR_OK ? show_suspension(tx, job, o) : e;
}
