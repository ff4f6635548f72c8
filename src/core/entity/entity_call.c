/* Calls of an entity's handler: handing them out, and their leases. */
#include "core/entity/entity_call.h"

#include "base/limits.h"
#include "core/entity/entity_apply.h"
#include "core/run/job_txn.h"
#include "core/txn/attempts.h"
#include "core/txn/job_row.h"
#include "core/txn/lease.h"
#include "core/txn/render.h"
#include "domain/retry/retry.h"
#include "store/entity/inbox.h"

static enum err load(struct op *op, struct tx *tx, const struct job *job, struct entity_txn *m)
{
    bool found = false;
    enum err e = entity_txn_load(m, tx, job->owner, &op->problem, &found);
    if (e == ERR_OK && !found)
        e = problem_set(&op->problem, ERR_JOB_NOT_FOUND, "The entity of this job no longer exists");
    return e;
}

/* --- what goes out --- */

/* The signals of a call, as far as they fit or, once that is settled, as far as they were given. */
struct batch {
    struct json_out out;
    int64_t room; /* signals */
    int64_t through;
    bool settled;
};

static bool add_signal(void *ctx, const struct inbox_signal *s)
{
    struct batch *b = ctx;
    bool first = b->out.buf->len <= 1;
    if (!b->settled && (b->room-- <= 0 || (!first && b->out.buf->len + s->payload.len >
                                                         (size_t)ENTITY_BATCH_BYTES_MAX)))
        return false;
    json_open(&b->out, NULL, '{');
    json_add_int(&b->out, "seq", s->seq);
    json_add_text(&b->out, "name", s->name);
    json_add_raw(&b->out, "payload", s->payload);
    json_add_time(&b->out, "at", s->at);
    if (s->asks)
        json_add_bool(&b->out, "update", true);
    json_close(&b->out, '}');
    b->through = s->seq;
    return true;
}

/* What the call is about is settled when it is first handed out, and stays so: an attempt that was
 * lost may have done things in the world under this job's id. */
static enum err settle_batch(struct entity_txn *m, const struct job *job, struct buf *signals)
{
    struct entity *x = &m->entity;
    struct batch b = {
        .out = json_out_to(signals),
        .room = m->version.rules.max_batch,
        .through = x->consumed_seq,
        .settled = x->given_seq >= 0,
    };
    enum err e = ERR_OK;
    json_open(&b.out, NULL, '[');
    if (job->item == CALL_SIGNALS)
        e = inbox_list(m->tx->db, x->num, x->consumed_seq, b.settled ? x->given_seq : x->last_seq,
                       INT64_MAX, add_signal, &b);
    json_close(&b.out, ']');
    if (e == ERR_OK && !buf_ok(signals))
        e = ERR_NO_MEMORY;
    if (e != ERR_OK || b.settled)
        return e;
    x->given_seq = b.through;
    if (job->item == CALL_SIGNALS && x->timer_at >= 0 && x->timer_at <= m->tx->now_ms) {
        e = entity_timers_give(m->tx->db, x->num, m->tx->now_ms);
        if (e == ERR_OK)
            e = entity_txn_seek_timer(m);
    }
    return e;
}

static enum err put_input(struct json_out *o, struct entity_txn *m, const struct job *job,
                          const struct buf *signals)
{
    const struct entity *x = &m->entity;
    struct entity_state state = {0};
    bool has_state = false;
    bool migrates = job->item == CALL_MIGRATE;
    enum err e = entity_states_find(m->tx->db, x->num, &m->tx->arena, &has_state, &state);
    json_open(o, "input", '{');
    json_add_text(o, "kind", migrates ? STR("migrate") : STR("signals"));
    entity_put_name(o, m);
    json_add_raw(o, "state", state.state);
    json_add_int(o, "version", x->version);
    json_add_int(o, "generation", x->generation);
    json_add_int(o, "type_version", x->type_version);
    if (has_state)
        json_add_int(o, "state_version", state.type_version);
    else
        json_add_null(o, "state_version");
    if (migrates) {
        json_add_int(o, "from_version", x->type_version);
        json_add_int(o, "to_version", x->migrate_to);
    }
    json_add_raw(o, "signals", buf_str(signals));
    if (e == ERR_OK && migrates)
        json_add_raw(o, "timers", STR("[]"));
    else if (e == ERR_OK)
        e = entity_put_timers(o, "timers", m->tx->db, x->num, true);
    json_add_bool(o, "more", x->last_seq > x->given_seq);
    json_close(o, '}');
    return e;
}

static struct str handler_of(struct entity_txn *m, const struct job *job, enum err *e)
{
    struct entity_version to;
    if (job->item != CALL_MIGRATE || m->entity.migrate_to < 0) /* or it is done */
        return m->version.rules.handler;
    *e = entity_version_load(m, m->entity.migrate_to, &to);
    return *e == ERR_OK ? to.rules.handler : STR_NONE;
}

static enum err show_claimed(struct op *op, struct json_out *o, struct entity_txn *m,
                             const struct job *job, const struct buf *signals)
{
    enum err e = ERR_OK;
    struct str handler = handler_of(m, job, &e);
    if (e != ERR_OK)
        return e;
    char token[LEASE_TOKEN_MAX];
    lease_token(m->tx, job, token);
    lease_note_handed(op, job->id, token);
    if (!buf_ok(&op->answer.handed))
        return ERR_NO_MEMORY;
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", job->id);
    json_add_text(o, "kind", STR("entity"));
    json_add_null(o, "run_id");
    json_add_null(o, "workflow_id");
    json_add_null(o, "step");
    json_add_text(o, "handler", handler);
    json_add_int(o, "attempt", job->attempt);
    json_add_text(o, "tenant", m->tenant->id);
    e = put_input(o, m, job, signals);
    json_add_text(o, "lease_token", str_of(token));
    json_add_time(o, "lease_expires_at", job->due_at);
    json_add_null(o, "traceparent");
    json_add_null(o, "tracestate");
    json_close(o, '}');
    return e;
}

static bool tells_error(const struct job *job)
{
    return job->state != JOB_RUNNING && job->error.ptr != NULL;
}

/* One line about the call. */
static enum err tell_call(struct entity_txn *m, enum event_type type, const struct job *job)
{
    struct str error = tells_error(job) ? attempt_error(&m->tx->read, job->error) : STR_NONE;
    if (tells_error(job) && error.ptr == NULL)
        return ERR_NO_MEMORY;
    struct buf data;
    buf_init(&data, 16 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_int(&o, "attempt", job->attempt);
    if (job->worker.ptr != NULL)
        json_add_text(&o, "worker_id", job->worker);
    if (m->entity.given_seq > m->entity.consumed_seq) {
        json_add_int(&o, "from_seq", m->entity.consumed_seq + 1);
        json_add_int(&o, "through_seq", m->entity.given_seq);
    }
    if (job->item == CALL_MIGRATE)
        json_add_bool(&o, "migrates", true);
    if (error.ptr != NULL)
        json_add_raw(&o, "error", error);
    if (job->state == JOB_SCHEDULED)
        json_add_time(&o, "retry_at", job->due_at);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? entity_txn_add_event(m, type, buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

static enum err claim(struct op *op, struct tx *tx, const struct claim_input *in,
                      const struct job *job, struct json_out *o)
{
    struct entity_txn m;
    enum err e = load(op, tx, job, &m);
    if (e != ERR_OK)
        return e;
    struct job taken = *job;
    taken.worker = in->worker_id;
    taken.lease_ms = in->lease_ms;
    taken.due_at = tx->now_ms + in->lease_ms;
    struct buf signals;
    buf_init(&signals, 4 * JSON_WRITTEN_MAX);
    e = settle_batch(&m, job, &signals);
    if (e == ERR_OK)
        e = job_row_change(tx, &taken, JOB_ON_CLAIM);
    if (e == ERR_OK)
        e = show_claimed(op, o, &m, &taken, &signals);
    if (e == ERR_OK)
        e = tell_call(&m, EVENT_ENTITY_CALLED, &taken);
    if (e == ERR_OK)
        e = entity_txn_settle(&m);
    buf_release(&signals);
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot assign the job");
}

/* --- leases --- */

static enum err refuse_stale(struct op *op, struct entity_txn *m, struct job *job, struct str token,
                             const char *why)
{
    int64_t epoch = 0;
    if (lease_is_news(job, token, &epoch)) {
        struct job touched = *job;
        touched.stale_epoch = epoch;
        struct buf data;
        buf_init(&data, 4 * KIB);
        struct json_out o = json_out_to(&data);
        json_open(&o, NULL, '{');
        json_add_uuid(&o, "job_id", job->id);
        json_add_int(&o, "lease", epoch);
        json_add_text(&o, "by", op->caller.actor);
        json_close(&o, '}');
        enum err e = buf_ok(&data) ? job_row_touch(m->tx, job, &touched) : ERR_NO_MEMORY;
        if (e == ERR_OK)
            e = entity_txn_add_event(m, EVENT_JOB_STALE_RESULT, buf_str(&data));
        tx_count_call(m->tx, ENTITY_CALL_STALE);
        if (e == ERR_OK)
            e = entity_txn_settle(m);
        buf_release(&data);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "Cannot record the stale lease");
        op->answer.refusal_wrote = true;
    }
    return problem_set(&op->problem, ERR_LEASE_LOST, "%s", why);
}

static enum err heartbeat(struct op *op, struct tx *tx, const struct heartbeat_input *in,
                          struct job *job)
{
    struct job renewed = *job;
    if (!lease_is_current(tx, job, in->lease_token) || job->state != JOB_RUNNING) {
        struct entity_txn m;
        enum err e = load(op, tx, job, &m);
        return e == ERR_OK ? refuse_stale(op, &m, &renewed, in->lease_token, "The lease has ended")
                           : e;
    }
    renewed.due_at = tx->now_ms + job->lease_ms;
    if (in->note.ptr != NULL)
        renewed.note = in->note;
    enum err e = job_row_touch(tx, job, &renewed);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot renew the lease");
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_time(&o, "lease_expires_at", renewed.due_at);
    json_add_bool(&o, "cancel_requested", false);
    json_close(&o, '}');
    return ERR_OK;
}

static void answer_call(struct json_out *o, const struct entity_txn *m, const struct job *job,
                        const char *status)
{
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", job->id);
    json_add_text(o, "status", str_of(status));
    json_add_null(o, "run_id");
    json_add_null(o, "run_status");
    entity_put_name(o, m);
    json_add_int(o, "version", m->entity.version);
    json_add_int(o, "generation", m->entity.generation);
    if (job->state == JOB_SCHEDULED)
        json_add_time(o, "retry_at", job->due_at);
    json_close(o, '}');
}

/* --- lost attempts --- */

static enum err give_way(struct entity_txn *m, struct job *job)
{
    enum err e = ERR_OK;
    if (job->state == JOB_FAILED) {
        struct job dropped = *job;
        dropped.dead_at = -1;
        e = job_row_touch(m->tx, job, &dropped);
        *job = dropped;
    } else {
        e = job_row_change(m->tx, job, JOB_ON_CANCEL);
    }
    if (e == ERR_OK && m->entity.given_seq >= 0)
        e = entity_timers_take_back(m->tx->db, m->entity.num);
    if (e == ERR_OK && m->entity.given_seq >= 0)
        e = entity_txn_seek_timer(m);
    if (e == ERR_OK)
        entity_txn_call_ended(m);
    return e;
}

enum err entity_call_give_way(struct entity_txn *m, bool *ret_migrating)
{
    struct job job;
    bool found = false;
    *ret_migrating = false;
    if (m->entity.open_job < 0)
        return ERR_OK;
    enum err e =
        jobs_find_at(m->tx->db, m->entity.num, m->entity.open_job, &m->tx->arena, &found, &job);
    if (e == ERR_OK && !found)
        return ERR_DAMAGED;
    if (e != ERR_OK || job.state != JOB_RUNNING)
        return e == ERR_OK ? give_way(m, &job) : e;
    *ret_migrating = job.item == CALL_MIGRATE;
    return ERR_OK;
}

/* The old version's call ended without an answer while a migration waits for its end. */
static bool must_give_way(const struct entity_txn *m, const struct job *job)
{
    return m->entity.migrate_to >= 0 && job->item != CALL_MIGRATE;
}

static enum err release(struct op *op, struct tx *tx, const struct heartbeat_input *in,
                        struct job *job)
{
    struct entity_txn m;
    enum err e = load(op, tx, job, &m);
    if (e != ERR_OK)
        return e;
    bool current = lease_is_current(tx, job, in->lease_token);
    bool again = current && job->state == JOB_PENDING;
    if (!current || (job->state != JOB_RUNNING && !again))
        return refuse_stale(op, &m, job, in->lease_token, "The lease has ended");
    op->answer.changed_nothing = again;
    if (!again)
        e = job_row_change(tx, job, JOB_ON_RELEASE);
    if (e == ERR_OK && !again && must_give_way(&m, job)) {
        e = tell_call(&m, EVENT_ENTITY_CALL_RELEASED, job);
        if (e == ERR_OK)
            e = give_way(&m, job);
        if (e == ERR_OK)
            e = entity_txn_settle(&m);
    }
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot release the job");
    struct json_out o = json_out_to(&op->answer.body);
    answer_call(&o, &m, job, "released");
    return ERR_OK;
}

/* Again after a delay, or not any more: then the entity waits for somebody to look at it. */
static enum err call_failed(struct entity_txn *m, struct job *job, bool again, int64_t delay_ms)
{
    enum err e;
    job->output = STR_NONE;
    if (again) {
        job->due_at = m->tx->now_ms + delay_ms;
        e = job_row_change(m->tx, job, JOB_ON_RETRY);
    } else {
        job->dead_at = m->tx->now_ms;
        e = job_row_change(m->tx, job, JOB_ON_FAIL);
    }
    bool gives_way = must_give_way(m, job);
    if (e == ERR_OK)
        e = tell_call(m, again || gives_way ? EVENT_ENTITY_CALL_FAILED : EVENT_ENTITY_BLOCKED, job);
    if (e == ERR_OK && gives_way)
        e = give_way(m, job);
    return e == ERR_OK ? entity_txn_settle(m) : e;
}

static bool may_try_again(const struct entity_txn *m, const struct job *job)
{
    int64_t max = m->version.rules.max_attempts;
    return max == 0 || job->attempt < max;
}

static int64_t delay_before_next(const struct entity_txn *m, const struct job *job)
{
    uint64_t seed;
    env_random(m->tx->env, &seed, sizeof(seed));
    struct retry_policy policy = entity_retry_policy(&m->version.rules);
    return retry_delay_ms(&policy, MAX(job->attempt, (int64_t)1), seed);
}

static enum err expire(struct entity_txn *m, struct job *job)
{
    job->error = error_json(m->tx, "LEASE_EXPIRED", STR("The lease expired without a heartbeat"));
    if (job->error.ptr == NULL)
        return ERR_NO_MEMORY;
    tx_count_call(m->tx, ENTITY_CALL_EXPIRED);
    enum err e = attempt_lost(m->tx, job, ATTEMPT_LEASE_EXPIRED);
    if (e != ERR_OK)
        return e;
    if (!may_try_again(m, job))
        return call_failed(m, job, false, 0);
    e = job_row_change(m->tx, job, JOB_ON_EXPIRE);
    if (e == ERR_OK)
        e = tell_call(m, EVENT_ENTITY_CALL_FAILED, job);
    if (e == ERR_OK && must_give_way(m, job))
        e = give_way(m, job);
    return e == ERR_OK ? entity_txn_settle(m) : e;
}

static enum err due(struct tx *tx, struct job *job, struct problem *p)
{
    struct entity_txn m;
    bool found = false;
    if (job->state == JOB_SCHEDULED)
        return job_row_change(tx, job, JOB_ON_WAKE);
    enum err e = entity_txn_load(&m, tx, job->owner, p, &found);
    if (e != ERR_OK)
        return e;
    return found ? expire(&m, job) : job_row_remove(tx, job);
}

static enum err retry(struct op *op, struct tx *tx, struct job *job)
{
    struct entity_txn m;
    enum err e = load(op, tx, job, &m);
    if (e == ERR_OK)
        e = job_row_change(tx, job, JOB_ON_REVIVE);
    if (e == ERR_OK)
        e = tell_call(&m, EVENT_ENTITY_UNBLOCKED, job);
    return e == ERR_OK ? entity_txn_settle(&m) : e;
}

/* --- results --- */

/* The job keeps what its answer hashes to, not the answer: the state in it is the entity's. */
static struct str digest_of(struct tx *tx, const struct json *answer)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    json_write_canonical(&text, answer);
    struct sha256 hash = sha256_of(buf_str(&text));
    bool ok = buf_ok(&text);
    buf_clear(&text);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_name(&o, "sha256");
    buf_put_char(&text, '"');
    buf_put_hex(&text, hash.bytes, sizeof(hash.bytes));
    buf_put_char(&text, '"');
    o.comma = true;
    json_close(&o, '}');
    struct str kept = ok && buf_ok(&text) ? arena_str(&tx->arena, buf_str(&text)) : STR_NONE;
    buf_release(&text);
    return kept;
}

/* It is over, or waits for its next attempt or already for a worker: the same result again is
 * answered. */
static enum err is_known(const struct finish_job_input *in, const struct job *job,
                         struct str digest, bool *ret)
{
    *ret = job->state == JOB_SUCCEEDED && str_eq(job->output, digest);
    if (!in->failed)
        return ERR_OK;
    *ret = job->state == JOB_FAILED || job->state == JOB_SCHEDULED || job->state == JOB_PENDING;
    return *ret ? json_same_text(job->error, in->error, ret) : ERR_OK;
}

static enum err take_failure(struct entity_txn *m, const struct finish_job_input *in,
                             struct job *job)
{
    bool again = in->retryable && may_try_again(m, job);
    job->error = in->error;
    tx_count_call(m->tx, ENTITY_CALL_FAILED);
    enum err e = attempt_lost(m->tx, job, ATTEMPT_FAILED);
    return e == ERR_OK ? call_failed(m, job, again, again ? delay_before_next(m, job) : 0) : e;
}

static enum err finish(struct op *op, struct tx *tx, const struct finish_job_input *in,
                       struct job *job, struct json_out *o, bool *ret_changed)
{
    struct entity_txn m;
    struct json *output = NULL;
    struct str digest = STR_NONE;
    enum err e = load(op, tx, job, &m);
    if (e != ERR_OK)
        return e;
    *ret_changed = true;
    if (!lease_is_current(tx, job, in->lease_token))
        return refuse_stale(op, &m, job, in->lease_token,
                            "This is not the job's current lease, so the result was ignored");
    if (in->state.ptr != NULL)
        return problem_set(&op->problem, ERR_ANSWER_INVALID,
                           "state: send the state of an entity as a member of output");
    if (!in->failed) {
        if (json_read_kept(in->output.ptr != NULL ? in->output : STR("{}"), &output) != ERR_OK ||
            !read_tx_keep_json(&tx->read, output))
            return problem_set(&op->problem, ERR_NO_MEMORY, "No memory for the answer");
        digest = digest_of(tx, output);
        if (digest.ptr == NULL)
            return problem_set(&op->problem, ERR_NO_MEMORY, "No memory for the answer");
    }
    bool known;
    e = is_known(in, job, digest, &known);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot compare the results");
    if (known) {
        *ret_changed = false;
        answer_call(o, &m, job, in->failed ? "already_failed" : "already_completed");
        return ERR_OK;
    }
    if (job_has_ended(job->state))
        return problem_set(&op->problem, ERR_LEASE_LOST, "The job has already ended (status: %s)",
                           job_state_name(job->state));
    if (job->state != JOB_RUNNING)
        return refuse_stale(op, &m, job, in->lease_token, "The lease has ended");
    if (in->failed) {
        e = take_failure(&m, in, job);
    } else {
        job->output = digest;
        e = entity_apply(op, &m, job, output);
    }
    if (e != ERR_OK)
        return op->problem.err != ERR_OK ? e
                                         : problem_set(&op->problem, e, "Cannot store the result");
    answer_call(o, &m, job,
                !in->failed                   ? "completed"
                : job->state == JOB_SCHEDULED ? "retrying"
                                              : "failed");
    return ERR_OK;
}

/* --- showing --- */

static enum err show(struct read_tx *tx, const struct job *job, struct problem *p,
                     struct json_out *o)
{
    struct entity_txn m;
    bool found = false;
    enum err e = entity_txn_read_num(&m, tx, job->owner, p, &found);
    if (e != ERR_OK)
        return e;
    if (!found)
        return problem_set(p, ERR_JOB_NOT_FOUND, "The entity of this job no longer exists");
    struct str handler = handler_of(&m, job, &e);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read the version of the entity type");
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", job->id);
    json_add_null(o, "run_id");
    json_add_null(o, "workflow_id");
    json_add_null(o, "step");
    json_add_text(o, "kind", STR("entity"));
    json_add_text(o, "type", job->item == CALL_MIGRATE ? STR("migrate") : STR("signals"));
    entity_put_name(o, &m);
    json_add_text(o, "state", str_of(job_state_name(job->state)));
    json_add_text(o, "queue", job->queue);
    json_add_text(o, "handler", handler);
    json_add_int(o, "attempt", job->attempt);
    if (job->note.ptr != NULL)
        json_add_raw(o, "progress", job->note);
    json_add_text_or_null(o, "worker_id", job->worker);
    json_add_time(o, "due_at", job->due_at);
    json_add_raw(o, "output", job->output);
    json_add_raw(o, "error", job->error);
    json_add_time(o, "created_at", job->created_at);
    json_add_time(o, "started_at", job->started_at);
    json_add_time(o, "finished_at", job->finished_at);
    return ERR_OK;
}

static enum err refuse_drop(struct op *op)
{
    return problem_set(
        &op->problem, ERR_ENTITY_CALL_KEPT,
        "Dropping this call would lose its signals. Retry it, or delete the entity.");
}

const struct job_owner_ops ENTITY_CALLS = {
    .claim = claim,
    .finish = finish,
    .heartbeat = heartbeat,
    .release = release,
    .due = due,
    .show = show,
    .retry = retry,
    .check_drop = refuse_drop,
};
