/* Deliveries of webhooks. */
#include "core/usecase/outgoing/deliveries.h"

#include "core/run/run_trace.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/execute.h"
#include "store/audit.h"
#include "store/outbox/deliveries.h"

enum err webhook_disable(struct tx *tx, struct webhook *w, const char *reason)
{
    struct buf id;
    struct buf detail;
    buf_init(&id, UUID_TEXT_LEN);
    buf_init(&detail, KIB);
    buf_put_uuid(&id, w->id);
    struct json_out o = json_out_to(&detail);
    json_open(&o, NULL, '{');
    json_add_text(&o, "reason", str_of(reason));
    json_close(&o, '}');
    w->disabled_at = w->updated_at = tx->now_ms;
    w->disabled_reason = str_of(reason);
    struct audit_entry entry = {
        .tenant = w->tenant,
        .at = tx->now_ms,
        .actor = STR("pawl"),
        .peer = STR(""),
        .action = STR("webhook.disable"),
        .target = buf_str(&id),
        .detail = buf_str(&detail),
    };
    enum err e = buf_ok(&id) && buf_ok(&detail) ? webhooks_update(tx->db, w) : ERR_NO_MEMORY;
    if (e == ERR_OK)
        e = audit_append(tx->db, &entry);
    buf_release(&id);
    buf_release(&detail);
    return e;
}

/* --- taking --- */

struct take {
    struct tx *tx;
    const struct take_outgoing_input *in;
    struct taken_outgoing *out;
    struct outgoing_job **last;
    size_t count;
    size_t asked; /* webhooks */

    /* The webhook that has its turn. */
    struct webhook webhook;
    bool failing;
    size_t looked;
    enum err err;
};

static void release(struct outgoing_job *job)
{
    free(CONTAINER_OF(job, struct delivery_job, out)->tracestate);
}

static struct delivery_job *job_new(const struct take *t, const struct delivery *d)
{
    const struct webhook *w = &t->webhook;
    struct delivery_job *job = calloc(1, sizeof(*job) + w->url.len + d->event_id.len + d->body.len);
    if (job == NULL)
        return NULL;
    const struct str from[] = {w->url, d->event_id, d->body};
    struct str *const to[] = {&job->url, &job->event_id, &job->body};
    char *at = job->text;
    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        if (from[i].len > 0)
            memcpy(at, from[i].ptr, from[i].len);
        *to[i] = (struct str){at, from[i].len};
        at += from[i].len;
    }
    job->out.place = (struct outgoing_place){d->tenant, d->webhook, d->owner};
    job->out.release = release;
    job->id = d->id;
    job->attempt = d->attempts + 1;
    job->begun_at = t->tx->now_ms;
    job->secrets[job->secret_count++] = w->secret;
    if (w->old_secret_until > t->tx->now_ms)
        job->secrets[job->secret_count++] = w->old_secret;
    job->result = (struct delivery_result){.nothing = true, .retry_after_ms = -1};
    return job;
}

/* How much of the same is under way. */
struct busy {
    size_t tenant;
    size_t webhook;
    bool run; /* an event of this run goes to this webhook: the next one waits, to keep the order */
};

static void add_busy(struct busy *busy, const struct outgoing_place *a,
                     const struct outgoing_place *b)
{
    bool same = a->webhook == b->webhook;
    busy->tenant += a->tenant == b->tenant;
    busy->webhook += same;
    busy->run |= same && a->run >= 0 && a->run == b->run;
}

static struct busy busy_with(const struct take *t, const struct outgoing_place *place)
{
    struct busy busy = {0};
    for (size_t i = 0; i < t->in->under_way_count; i++)
        add_busy(&busy, &t->in->under_way[i], place);
    for (const struct outgoing_job *job = t->out->first; job != NULL; job = job->next)
        add_busy(&busy, &job->place, place);
    return busy;
}

static bool has_room(const struct take *t, const struct busy *busy)
{
    size_t most = t->failing ? 1 : WEBHOOK_IN_FLIGHT_MAX;
    return busy->webhook < most && busy->tenant < WEBHOOKS_TENANT_IN_FLIGHT_MAX &&
           t->count < t->in->room;
}

static bool take_one(void *ctx, const struct delivery *d)
{
    struct take *t = ctx;
    struct outgoing_place place = {d->tenant, d->webhook, d->owner};
    struct busy busy = busy_with(t, &place);
    t->looked++;
    if (!has_room(t, &busy)) {
        t->out->left_some = true;
        return false;
    }
    if (busy.run) {
        t->out->left_some = true;
        return true;
    }
    struct delivery_job *job = job_new(t, d);
    if (job == NULL) {
        t->err = ERR_NO_MEMORY;
        return false;
    }
    *t->last = &job->out;
    t->last = &job->out.next;
    t->count++;
    return true;
}

/* Every attempt is a span below the run that the event belongs to. */
static enum err set_trace(struct take *t, struct delivery_job *job)
{
    bool found = false;
    struct run run;
    enum err e = runs_find_trace(t->tx->db, job->out.place.run, &t->tx->arena, &found, &run);
    if (e != ERR_OK || !found)
        return e;
    struct trace_span parent = run_span(&run);
    job->span = trace_span_child(&parent, trace_span_id(job->id, job->attempt));
    job->run = run.id;
    if (run.tracestate.ptr == NULL)
        return ERR_OK;
    job->tracestate = calloc(1, run.tracestate.len + 1);
    if (job->tracestate == NULL)
        return ERR_NO_MEMORY;
    memcpy(job->tracestate, run.tracestate.ptr, run.tracestate.len);
    return ERR_OK;
}

/* Marks what was taken, beginning with `first`. */
static enum err mark_taken(struct take *t, struct outgoing_job *first)
{
    for (struct outgoing_job *out = first; out != NULL; out = out->next) {
        struct delivery_job *job = CONTAINER_OF(out, struct delivery_job, out);
        enum err e = set_trace(t, job);
        if (e != ERR_OK)
            return e;
        e = deliveries_take(t->tx->db, uuid_time(job->id), job->attempt,
                            t->tx->now_ms + WEBHOOK_LEASE_MS);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static enum err take_from(struct take *t, int64_t webhook, bool failing)
{
    bool found = false;
    enum err e = webhooks_find_num(t->tx->db, webhook, &t->tx->arena, &found, &t->webhook);
    if (e != ERR_OK || !found)
        return e;
    struct outgoing_job **from = t->last;
    t->failing = failing;
    t->looked = 0;
    e = deliveries_due(t->tx->db, webhook, t->tx->now_ms, WEBHOOK_LOOKED_AT_MAX, take_one, t);
    if (e != ERR_OK)
        return e;
    if (t->err != ERR_OK)
        return t->err;
    t->out->left_some |= t->looked == WEBHOOK_LOOKED_AT_MAX;
    return mark_taken(t, *from);
}

/* Those with numbers above `after` up to `through`, as long as there is room. */
static enum err take_between(struct take *t, int64_t after, int64_t through)
{
    struct taken_outgoing *out = t->out;
    while (t->count < t->in->room && t->asked < WEBHOOKS_PER_TURN_MAX) {
        struct webhook_due due;
        bool found = false;
        enum err e = webhooks_next_due(t->tx->db, after, through, t->tx->now_ms, &found, &due);
        if (e != ERR_OK || !found)
            return e;
        e = take_from(t, due.num, due.failing);
        if (e != ERR_OK)
            return e;
        after = out->turn = due.num;
        t->asked++;
    }
    out->left_some |= t->count == t->in->room;
    out->unfinished |= t->asked == WEBHOOKS_PER_TURN_MAX;
    return ERR_OK;
}

/* One round through the webhooks that have something due, from where the last one ended. */
static enum err take_turns(struct take *t)
{
    int64_t from = t->out->turn;
    int64_t now_ms = t->tx->now_ms;
    enum err e = ERR_OK;
    if (t->in->first)
        e = deliveries_give_back(t->tx->db, now_ms, now_ms + WEBHOOK_LEASE_MS);
    if (e != ERR_OK)
        return e;
    e = take_between(t, from, INT64_MAX);
    if (e != ERR_OK)
        return e;
    e = take_between(t, 0, from);
    if (e != ERR_OK)
        return e;
    return deliveries_next_after(t->tx->db, now_ms, &t->out->next_at);
}

static enum err take_deliveries(struct op *op, struct tx *tx)
{
    const struct take_outgoing_input *in = op->input;
    struct taken_outgoing *out = in->taken;
    outgoing_jobs_free(&out->first); /* those of a run that was rolled back */
    out->left_some = out->unfinished = false;
    struct take t = {.tx = tx, .in = in, .out = out, .last = &out->first};
    enum err e = take_turns(&t);
    op->answer.changed_nothing = t.count == 0 && !in->first;
    if (e == ERR_OK)
        return ERR_OK;
    /* Some may have been taken: only a rollback undoes that. */
    return problem_set(&op->problem, err_after_change(e), "Cannot claim deliveries: %s",
                       err_code(e));
}

const struct use_case UC_TAKE_DELIVERIES = {.name = "take_deliveries", .write = take_deliveries};

/* --- finishing --- */

static enum err note_failing(struct tx *tx, const struct webhook *w, bool failing)
{
    if (failing == (w->failing_since >= 0))
        return ERR_OK;
    return webhooks_set_failing(tx->db, w->num, failing ? tx->now_ms : -1);
}

static void end_delivery(struct tx *tx, struct delivery *d, enum delivery_state state)
{
    d->state = state;
    d->next_at = -1;
    d->finished_at = tx->now_ms;
}

/* Nobody knows what became of it: again, under the same id. */
static void give_back(struct tx *tx, struct delivery *d)
{
    d->state = DELIVERY_PENDING;
    d->next_at = tx->now_ms;
}

/* Changes the delivery and its webhook as the result asks. */
static enum err apply(struct tx *tx, struct webhook *w, struct delivery *d,
                      const struct delivery_result *r, const char **ret_outcome)
{
    struct attempt_end end = {
        .status = r->status,
        .attempts = d->attempts - d->schedule_from,
        .retry_after_ms = r->retry_after_ms,
        .failing_ms = w->failing_since >= 0 ? tx->now_ms - w->failing_since : 0,
    };
    int64_t delay_ms = 0;
    env_random(tx->env, &end.seed, sizeof(end.seed));
    d->last_status = r->status > 0 ? r->status : -1;
    d->last_error = r->error[0] != '\0' ? str_of(r->error) : STR_NONE;
    switch (attempt_judge(&end, &delay_ms)) {
    case ATTEMPT_DELIVERED:
        end_delivery(tx, d, DELIVERY_DELIVERED);
        *ret_outcome = "delivered";
        return note_failing(tx, w, false);
    case ATTEMPT_AGAIN:
        d->state = DELIVERY_PENDING;
        d->next_at = tx->now_ms + delay_ms;
        *ret_outcome = "retried";
        return note_failing(tx, w, true);
    case ATTEMPT_FAILED:
        end_delivery(tx, d, DELIVERY_FAILED);
        *ret_outcome = "failed";
        return note_failing(tx, w, true);
    case ATTEMPT_GONE:
        end_delivery(tx, d, DELIVERY_FAILED);
        *ret_outcome = "gone";
        return webhook_disable(tx, w, "The receiver answered 410 Gone");
    case ATTEMPT_DEAD:
        end_delivery(tx, d, DELIVERY_FAILED);
        *ret_outcome = "failed";
        return webhook_disable(tx, w, "The receiver has accepted nothing for five days");
    }
    assert(!"unknown verdict");
    return ERR_INTERNAL;
}

static enum err export_span(const struct delivery_job *in, struct tx *tx, const struct webhook *w,
                            const struct delivery *d, const char *outcome)
{
    if (!tx->exports_spans || in->span.id == 0 || (in->span.flags & TRACE_SAMPLED) == 0)
        return ERR_OK;
    struct span span = {.kind = SPAN_CLIENT, .place = in->span, .name = STR("webhook delivery")};
    span.tracestate = str_of(in->tracestate);
    span_set_times(&span, in->begun_at, tx->now_ms);
    span_add_text(&span, "pawl.run.id", tx_id_text(tx, in->run));
    span_add_text(&span, "pawl.webhook.id", tx_id_text(tx, w->id));
    span_add_text(&span, "pawl.event.id", in->event_id);
    span_add_text(&span, "pawl.event.type", d->event_type);
    span_add_text(&span, "pawl.delivery.outcome", str_of(outcome));
    span_add_number(&span, "pawl.delivery.attempt", in->attempt);
    span_add_text(&span, "http.request.method", STR("POST"));
    if (in->result.status > 0)
        span_add_number(&span, "http.response.status_code", in->result.status);
    span.failed = d->state != DELIVERY_DELIVERED;
    span.message = d->last_error;
    return tx_export_span(tx, &span);
}

/* *ret_current: this hand-out is still the delivery's last one. */
static enum err finish(const struct delivery_job *in, struct tx *tx, bool *ret_current,
                       const char **ret_outcome)
{
    struct webhook w;
    struct delivery d = {.state = DELIVERY_FAILED};
    int64_t webhook = in->out.place.webhook;
    bool found = false;
    enum err e = webhooks_find_num(tx->db, webhook, &tx->arena, &found, &w);
    if (e == ERR_OK && found)
        e = deliveries_find(tx->db, webhook, in->id, &tx->arena, &found, &d);
    if (e != ERR_OK)
        return e;
    *ret_current = found && d.state == DELIVERY_SENDING && d.attempts == in->attempt;
    if (!*ret_current)
        return ERR_OK; /* the webhook was deleted, or the delivery was handed out again */
    if (in->result.nothing)
        give_back(tx, &d);
    else
        e = apply(tx, &w, &d, &in->result, ret_outcome);
    if (e == ERR_OK && !in->result.nothing)
        e = export_span(in, tx, &w, &d, *ret_outcome);
    if (e != ERR_OK)
        return e;
    if (d.next_at >= 0)
        tx_note(tx, EFFECT_DELIVERIES_READY);
    return deliveries_update(tx->db, &d);
}

static enum err finish_delivery(struct op *op, struct tx *tx)
{
    bool current = true;
    enum err e = finish(op->input, tx, &current, &op->answer.outcome);
    op->answer.changed_nothing = !current;
    if (e == ERR_OK)
        return ERR_OK;
    return problem_set(&op->problem, err_after_change(e),
                       "Cannot store the result of a delivery: %s", err_code(e));
}

const struct use_case UC_FINISH_DELIVERY = {.name = "finish_delivery", .write = finish_delivery};
