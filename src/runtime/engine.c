/* The engine: submission and completion of ops, and the rounds of the HTTP loop. */
#include "runtime/engine.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/usecase/use_cases.h"
#include "runtime/engine_parts.h"
#include "runtime/give_back.h"

#include <unistd.h>

enum {
    QUIET_ROUNDS = 8,        /* rounds of at most one request until ops are committed inline */
    TICK_MS = 20,            /* the precision of the end of a wait */
    QUIET_TIMEOUT_MS = 1000, /* with nothing to do, time-outs are checked once a second */
    HAND_OVER_OPS = 8,       /* the writer runs so many while this thread reads the next ones */
};

struct engine {
    struct engine_parts parts;
    size_t bodies_read; /* large bodies that are being read or wait to be read */

    /* Ops of this round for the writer. */
    struct op *round_first, **round_last;
    size_t round_ops;
    size_t round_requests;
    size_t last_round_requests;
    size_t quiet_rounds;

    /* Ops under way, oldest first. */
    struct op *oldest, *newest;
    size_t in_flight;
    size_t in_flight_bytes;
    size_t reads_in_flight;
    struct held_ops held; /* reads and replays that have seen what is not on disk yet */
    bool draining;
    bool shares_loop;
};

static void count(struct engine *e, const struct op *op)
{
    engine_metrics_count(&e->parts.metrics, op, e->parts.env);
}

/* --- in flight --- */

static void enter(struct engine *e, struct op *op)
{
    op->entered_ms = env_mono_ms(e->parts.env);
    op->older = e->newest;
    op->newer = NULL;
    *(e->newest != NULL ? &e->newest->newer : &e->oldest) = op;
    e->newest = op;
    e->in_flight++;
    e->in_flight_bytes += op->bytes;
}

static void leave(struct engine *e, struct op *op)
{
    *(op->older != NULL ? &op->older->newer : &e->oldest) = op->newer;
    *(op->newer != NULL ? &op->newer->older : &e->newest) = op->older;
    op->older = op->newer = NULL;
    e->in_flight--;
    e->in_flight_bytes -= op->bytes;
}

/* Answers the op; the engine no longer uses it. */
static void finish(struct engine *e, struct op *op)
{
    if (op->wait_ms > 0)
        atomic_fetch_sub(&e->parts.waiting_callers, 1);
    if (op->use_case->checks)
        engine_metrics_checked(&e->parts.metrics, op, env_now_ms(e->parts.env));
    op->done(op);
}

static void refuse(struct engine *e, struct op *op, enum err err, const char *why)
{
    op_clear_result(op);
    op->err = problem_set(&op->problem, err, "%s", why);
    count(e, op);
    finish(e, op);
}

static void refuse_draining(struct engine *e, struct op *op)
{
    refuse(e, op, ERR_DRAINING, "The server is shutting down. Retry with the same key.");
}

/* --- submission --- */

static void hand_over(struct engine *e)
{
    if (e->round_first == NULL)
        return;
    writer_push(e->parts.commits, e->round_first);
    e->round_first = NULL;
    e->round_last = &e->round_first;
    e->round_ops = 0;
}

/* Hands ops over in small lists, so that the writer runs them while this thread reads more
 * requests, which join their commit. */
static void to_writer(struct engine *e, struct op *op)
{
    op->next = NULL;
    enter(e, op);
    *e->round_last = op;
    e->round_last = &op->next;
    if (++e->round_ops >= HAND_OVER_OPS)
        hand_over(e);
}

static void op_decided(struct engine *e, struct op *op);

/* Decided by engine_replay(). */
static void replayed(struct engine *e, struct op *op)
{
    if (held_ops_keep(&e->held, op))
        return;
    leave(e, op);
    op_decided(e, op);
}

static bool may_run_inline(const struct engine *e, const struct op *op)
{
    return !e->shares_loop && e->in_flight == 0 && e->quiet_rounds >= QUIET_ROUNDS &&
           e->round_requests <= 1 && op->bytes <= INLINE_BYTES_MAX && op->use_case != &UC_BACKUP &&
           op->use_case != &UC_DOCTOR_REPAIR;
}

void engine_submit(struct engine *e, struct op *op)
{
    op->submitted_ms = env_mono_ms(e->parts.env);
    op->abandoned = op->gate_passed = false;
    op->next = NULL;
    e->round_requests++;
    if (op->wait_ms > 0)
        atomic_fetch_add(&e->parts.waiting_callers, 1);
    if (e->draining && op->use_case->write != NULL) { /* reads are still answered */
        refuse_draining(e, op);
    } else if (op->decided) {
        enter(e, op);
        replayed(e, op);
    } else if (op->use_case->read != NULL) {
        if (e->reads_in_flight >= READS_WAITING_MAX) {
            refuse(e, op, ERR_OVERLOADED, "Too many reads are waiting");
            return;
        }
        e->reads_in_flight++;
        enter(e, op);
        readers_push(e->parts.readers, op);
    } else if (e->in_flight >= OPS_WAITING_MAX || e->in_flight_bytes + op->bytes > OPS_BYTES_MAX) {
        refuse(e, op, ERR_OVERLOADED, "Too many changes are waiting. Nothing was changed.");
    } else if (may_run_inline(e, op) && writer_try_inline(e->parts.commits, op)) {
        op_decided(e, op);
    } else {
        to_writer(e, op);
    }
}

void engine_read_body(struct engine *e, struct op *op, struct body_task *task)
{
    bool fits = e->in_flight_bytes + task->bytes <= OPS_BYTES_MAX;
    if (!e->draining && fits && body_thread_push(e->parts.bodies, task)) {
        e->bodies_read++;
        e->in_flight_bytes += task->bytes;
        return;
    }
    if (op->wait_ms > 0)
        atomic_fetch_add(&e->parts.waiting_callers, 1);
    if (e->draining)
        refuse_draining(e, op);
    else
        refuse(e, op, ERR_OVERLOADED, "Too many large requests are waiting. Nothing was changed.");
}

void engine_free_body(struct engine *e, struct body_task *task)
{
    assert(task->bytes == 0 && task->done == NULL);
    bool taken = body_thread_push(e->parts.bodies, task);
    assert(taken);
}

bool engine_expects_more(const struct engine *e)
{
    return !e->shares_loop && e->last_round_requests > 0 && e->quiet_rounds >= QUIET_ROUNDS &&
           e->in_flight == 0;
}

void engine_round_end(struct engine *e)
{
    e->last_round_requests = e->round_requests;
    loop_reader_round_end(e->parts.reader);
    if (e->round_requests > 0)
        e->quiet_rounds = e->round_requests == 1 ? e->quiet_rounds + 1 : 0;
    e->round_requests = 0;
    hand_over(e);
}

/* --- what the loop's own reader answers --- */

uint64_t engine_raw_hash(const struct engine *e, struct str route, struct str body)
{
    return idem_keys_raw_hash(writer_keys(e->parts.commits), route, body);
}

bool engine_replay(struct engine *e, struct op *op)
{
    return !e->draining && loop_reader_replay(e->parts.reader, op);
}

uint64_t engine_auth_epoch(const struct engine *e)
{
    return atomic_load(&e->parts.auth_epoch);
}

enum err engine_identify(struct engine *e, struct str key, struct str peer, struct problem *p,
                         struct auth_identity *ret)
{
    return loop_reader_identify(e->parts.reader, key, peer, engine_auth_epoch(e), p, ret);
}

enum err engine_identify_session(struct engine *e, struct str text, struct problem *p,
                                 struct auth_identity *ret)
{
    return loop_reader_identify_session(e->parts.reader, text, engine_auth_epoch(e), p, ret);
}

void engine_note_key_uses(struct engine *e, const struct key_use *uses, size_t count)
{
    auth_add_uses(e->parts.auth, uses, count);
}

void engine_begin_session(struct engine *e, struct session *session, struct buf *out)
{
    sessions_put_new(e->parts.sessions, session, out);
}

bool engine_end_session(struct engine *e, struct str text, struct session *ret)
{
    if (!sessions_read(e->parts.sessions, text, ret))
        return false;
    if (sessions_end(e->parts.sessions, ret))
        atomic_fetch_add(&e->parts.auth_epoch, 1);
    else
        LOG(LOG_WARN, "a session cannot be ended before its time: too many have been");
    return true;
}

struct str engine_session_secret(const struct engine *e)
{
    return sessions_secret(e->parts.sessions);
}

struct oidc *engine_oidc(const struct engine *e)
{
    return e->parts.oidc;
}

/* --- completion --- */

/* Answers a decided op, or keeps it while its caller waits. */
static void op_decided(struct engine *e, struct op *op)
{
    bool may_wait = op->err == ERR_OK && op->wait_ms > 0 && !e->draining && !op->abandoned;
    if (op->gate_wanted && !op->abandoned && gate_visits_add(&e->parts.gate_visits, op))
        return;
    gate_visits_end(&e->parts.gate_visits, op);
    if (op->use_case == &UC_CLAIM_JOBS)
        waiters_claim_decided(e->parts.waiters, op);
    if (may_wait && op->use_case == &UC_CLAIM_JOBS && op->answer.keep_waiting &&
        env_mono_ms(e->parts.env) < op->submitted_ms + op->wait_ms &&
        (op->is_there == NULL || op->is_there(op)) && waiters_add_claim(e->parts.waiters, op))
        return;
    count(e, op);
    /* Two replays are looked up even when the caller does not wait: an update, because its record
     * has no outcome, and a run whose caller wants to see its present state. */
    bool updates = op->use_case == &UC_UPDATE_ENTITY;
    bool looks = updates || op->shows_now;
    may_wait |= looks && op->err == ERR_OK && op->answer.replayed && !e->draining;
    if (may_wait && (op->answer.has_run || updates) && !op->answer.run_over &&
        waiters_add_asking(e->parts.waiters, op, op->answer.replayed))
        return;
    finish(e, op);
}

/* For the engine's own writes: no limit applies to them, and they are not refused while the server
 * drains. */
static void submit_own(void *ctx, struct op *op)
{
    to_writer(ctx, op);
}

void engine_caller_left(struct engine *e, const struct op *op)
{
    waiters_leave(e->parts.waiters, op);
    gate_visits_caller_left(&e->parts.gate_visits, op);
}

void engine_give_back(struct engine *e, struct op *op)
{
    if (op->err == ERR_OK && op->idem.key.len == 0)
        give_back_jobs(op, submit_own, e);
}

static void submit_as_caller(void *ctx, struct op *op)
{
    engine_submit(ctx, op);
}

static void expire_waiter(void *ctx, struct op *op)
{
    struct engine *e = ctx;
    if (op->use_case == &UC_CLAIM_JOBS)
        count(e, op);
    finish(e, op);
}

/* For the engine's own reads: no limit applies to them. */
static void submit_read(void *ctx, struct op *question)
{
    struct engine *e = ctx;
    question->submitted_ms = env_mono_ms(e->parts.env);
    e->reads_in_flight++;
    enter(e, question);
    readers_push(e->parts.readers, question);
}

/* --- the gate --- */

static void answer_at_gate(void *ctx, struct op *op)
{
    count(ctx, op);
    finish(ctx, op);
}

static bool replay_at_gate(void *ctx, struct op *op)
{
    struct engine *e = ctx;
    op_clear_result(op);
    return loop_reader_replay(e->parts.reader, op);
}

static void submit_from_gate(void *ctx, struct op *op)
{
    struct engine *e = ctx;
    if (!op->decided) {
        to_writer(e, op);
        return;
    }
    enter(e, op);
    replayed(e, op);
}

static bool knows_key(void *ctx, struct str tenant, struct str key)
{
    return loop_reader_knows_key(((struct engine *)ctx)->parts.reader, tenant, key);
}

static bool wait_durable(void *ctx)
{
    return durability_wait(&((struct engine *)ctx)->parts.durability);
}

static void collect_bodies(struct engine *e)
{
    struct body_task *task = body_thread_collect(e->parts.bodies);
    while (task != NULL) {
        struct body_task *next = task->next;
        e->bodies_read--;
        e->in_flight_bytes -= task->bytes;
        task->done(task);
        task = next;
    }
}

/* What a reader has answered. */
static void op_read(struct engine *e, struct op *op)
{
    if (held_ops_keep(&e->held, op))
        return;
    leave(e, op);
    e->reads_in_flight--;
    if (!waiters_answer(e->parts.waiters, op))
        finish(e, op);
}

static void collect_reads(struct engine *e, struct op *op)
{
    while (op != NULL) {
        struct op *next = op->next;
        if (op->decided)
            replayed(e, op);
        else
            op_read(e, op);
        op = next;
    }
}

static void collect(struct engine *e)
{
    collect_bodies(e);
    collect_reads(e, held_ops_take(&e->held));
    collect_reads(e, readers_collect(e->parts.readers));
    struct op *op;
    struct effect_parcel *parcels;
    writer_collect(e->parts.commits, &op, &parcels);
    while (op != NULL) {
        struct op *next = op->next;
        if (op->joined)
            waiters_returned(e->parts.waiters, op);
        else
            leave(e, op);
        op_decided(e, op);
        op = next;
    }
    publish_on_loop(parcels, e->parts.waiters, e->parts.subscriptions, e->parts.spans);
    outgoing_collect(e->parts.outgoing);
    span_export_collect(e->parts.spans);
    oidc_collect(e->parts.oidc);
    gate_visits_collect(&e->parts.gate_visits);
}

void engine_subscribe(struct engine *e, struct subscriber *subscriber)
{
    subscriptions_add(e->parts.subscriptions, subscriber);
}

void engine_unsubscribe(struct engine *e, struct subscriber *subscriber)
{
    subscriptions_remove(e->parts.subscriptions, subscriber);
}

/* Ops that take too long are answered with a time-out. They stay in the list until the store is
 * done with them. */
static void time_out_slow(struct engine *e, int64_t mono_ms)
{
    for (struct op *op = e->oldest; op != NULL; op = op->newer) {
        if (mono_ms - op->entered_ms < OP_WAIT_MS_MAX)
            return;
        if (op->abandoned || op->timed_out == NULL)
            continue;
        op->abandoned = true;
        op->timed_out(op);
    }
}

void engine_poll(struct engine *e, bool readable)
{
    uint64_t ignored;
    if (readable && read(e->parts.event_fd, &ignored, sizeof(ignored)) > 0)
        collect(e);
    int64_t mono = env_mono_ms(e->parts.env);
    waiters_tick(e->parts.waiters, mono, e->draining);
    time_out_slow(e, mono);
    waiters_time_out(e->parts.waiters, mono);
    gate_visits_tick(&e->parts.gate_visits, mono);
    if (!e->draining)
        periodic_tick(e->parts.periodic, mono);
    outgoing_tick(e->parts.outgoing, mono);
    relay_tick(e->parts.relay, mono);
    span_export_tick(e->parts.spans, mono);
    subscriptions_tick(e->parts.subscriptions, mono);
    hand_over(e); /* ops that were submitted again are not requests of this round */
}

int engine_event_fd(const struct engine *e)
{
    return e->parts.event_fd;
}

int engine_timeout_ms(const struct engine *e)
{
    int gate = gate_visits_timeout_ms(&e->parts.gate_visits);
    if (gate >= 0)
        return gate;
    int wait = waiters_count(e->parts.waiters) > 0 || e->draining ? TICK_MS : QUIET_TIMEOUT_MS;
    int tell = subscriptions_timeout_ms(e->parts.subscriptions, env_mono_ms(e->parts.env));
    int relay = relay_timeout_ms(e->parts.relay, env_mono_ms(e->parts.env));
    wait = tell >= 0 ? MIN(wait, tell) : wait;
    return relay >= 0 ? MIN(wait, relay) : wait;
}

bool engine_exports_spans(const struct engine *e)
{
    return e->parts.spans != NULL;
}

void engine_export_span(struct engine *e, const struct span *span)
{
    span_export_add(e->parts.spans, span);
}

/* --- the end, and operators --- */

void engine_end_calls(struct engine *e)
{
    outgoing_drain(e->parts.outgoing, env_mono_ms(e->parts.env));
}

bool engine_calls_ended(const struct engine *e)
{
    return outgoing_idle(e->parts.outgoing);
}

void engine_drain(struct engine *e)
{
    e->draining = true;
    gate_visits_drain(&e->parts.gate_visits);
    engine_end_calls(e);
    relay_drain(e->parts.relay);
    oidc_drain(e->parts.oidc);
    span_export_drain(e->parts.spans, env_mono_ms(e->parts.env));
}

const char *engine_busy_with(const struct engine *e)
{
    const struct {
        const char *what;
        bool idle;
    } PARTS[] = {
        {"operations", e->in_flight == 0},
        {"large bodies", e->bodies_read == 0},
        {"callers that wait", waiters_count(e->parts.waiters) == 0},
        {"the gate", gate_visits_idle(&e->parts.gate_visits)},
        {"checks", periodic_idle(e->parts.periodic)},
        {"outgoing calls", outgoing_idle(e->parts.outgoing)},
        {"the bus", relay_idle(e->parts.relay)},
        {"spans", span_export_idle(e->parts.spans)},
        {"the OpenID provider", oidc_idle(e->parts.oidc)},
    };
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++) {
        if (!PARTS[i].idle)
            return PARTS[i].what;
    }
    return NULL;
}

bool engine_idle(const struct engine *e)
{
    return engine_busy_with(e) == NULL;
}

bool engine_failed(const struct engine *e)
{
    return writer_failed(e->parts.commits);
}

enum err engine_ready(const struct engine *e, struct problem *p)
{
    if (e->draining)
        return problem_set(p, ERR_DRAINING, "The server is shutting down");
    if (writer_failed(e->parts.commits))
        return problem_set(p, ERR_STORE_FAILED, "The store failed");
    if (writer_log_full(e->parts.commits))
        return problem_set(p, ERR_STORE_BUSY, "The write-ahead log is full");
    return ERR_OK;
}

void engine_read_metrics(struct engine *e, struct op *op, bool renders)
{
    e->parts.metrics_input.renders = renders;
    metric_set(e->parts.metrics.log_bytes, STR_NONE, STR_NONE,
               (double)writer_log_bytes(e->parts.commits));
    metric_set(e->parts.metrics.in_flight, STR_NONE, STR_NONE, (double)e->in_flight);
    metric_set(e->parts.metrics.waiting, STR_NONE, STR_NONE,
               (double)waiters_count(e->parts.waiters));
    metric_set(e->parts.metrics.subscriptions, STR_NONE, STR_NONE,
               (double)atomic_load(subscriptions_count(e->parts.subscriptions)));
    struct engine_outbox outbox;
    engine_outbox(e, &outbox);
    metric_set(e->parts.metrics.outbox_depth, STR_NONE, STR_NONE, (double)outbox.depth);
    metric_set(e->parts.metrics.outbox_lag, STR_NONE, STR_NONE, (double)outbox.lag_ms / 1e3);
    op->use_case = &UC_READ_METRICS;
    op->input = &e->parts.metrics_input;
    submit_read(e, op);
}

const char *engine_store_name(const struct engine *e)
{
    return db_engine_name(e->parts.writer);
}

const char *engine_store_name_at(size_t i)
{
    return db_engine_name_at(i);
}

const char *engine_gate_name(const struct engine *e)
{
    return e->parts.gate != NULL ? e->parts.gate->name : "store";
}

void engine_gate(const struct engine *e, struct engine_gate *ret)
{
    struct gate_state state = {.ok = true};
    if (e->parts.gate != NULL)
        e->parts.gate->state(e->parts.gate, &state);
    *ret = (struct engine_gate){.exists = e->parts.gate != NULL, .ok = state.ok};
    static_assert(sizeof(ret->detail) >= sizeof(state.detail), "any detail of a gate fits");
    memcpy(ret->detail, state.detail, sizeof(state.detail));
}

void engine_outbox(struct engine *e, struct engine_outbox *ret)
{
    *ret = (struct engine_outbox){.status = "none"};
    if (e->parts.relay == NULL)
        return;
    struct relay_figures figures;
    relay_figures(e->parts.relay, &figures);
    ret->bus = e->parts.bus->name;
    ret->status = figures.bus.ok ? "ok" : "failing";
    ret->depth = figures.depth;
    ret->lag_ms = figures.lag_ms;
    static_assert(sizeof(ret->detail) >= sizeof(figures.bus.detail), "any detail of a bus fits");
    memcpy(ret->detail, figures.bus.detail, sizeof(figures.bus.detail));
}

/* --- life --- */

enum err engine_open(const struct engine_config *config, struct problem *p, struct engine **ret)
{
    struct engine *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    e->round_last = &e->round_first;
    e->quiet_rounds = QUIET_ROUNDS;
    e->shares_loop = config->shares_loop;
    held_ops_init(&e->held, &e->parts.durability);
    struct engine_hooks hooks = {
        .ctx = e,
        .wait_durable = wait_durable,
        .submit = submit_as_caller,
        .submit_own = submit_own,
        .submit_read = submit_read,
        .expire_waiter = expire_waiter,
        .gate = {.ctx = e,
                 .submit = submit_from_gate,
                 .answer = answer_at_gate,
                 .replay = replay_at_gate,
                 .knows_key = knows_key},
    };
    enum err err = engine_parts_open(&e->parts, config, &hooks, p);
    if (err != ERR_OK) {
        engine_close(e);
        return err;
    }
    *ret = e;
    return ERR_OK;
}

void engine_close(struct engine *e)
{
    if (e == NULL)
        return;
    assert(e->in_flight == 0 && e->bodies_read == 0);
    engine_parts_close(&e->parts);
    free(e);
}
