/* The engine: submission, completion and everything that the HTTP loop's thread does in between. */
#include "runtime/engine.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/txn/worker_polls.h"
#include "core/usecase/execute.h"
#include "core/usecase/use_cases.h"
#include "gate/gate.h"
#include "outbound/outgoing.h"
#include "outbound/relay.h"
#include "runtime/engine_metrics.h"
#include "runtime/gate_waiters.h"
#include "runtime/give_back.h"
#include "runtime/loop_reader.h"
#include "runtime/periodic.h"
#include "runtime/readers.h"
#include "runtime/waiters.h"
#include "runtime/writer.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    QUIET_ROUNDS = 8, /* so many rounds of at most one request make an inline commit worth it */
    TICK_MS = 20,     /* how exactly a wait ends */
    QUIET_TIMEOUT_MS = 1000, /* nothing to do: time-outs are looked at once a second */
    HAND_OVER_OPS = 32,      /* worth a commit of their own when the writer has nothing to do */
};

struct engine {
    const struct env *env;
    struct engine_metrics metrics;
    struct read_metrics_input metrics_input;
    struct gate *gate;
    struct bus *bus;                     /* NULL: none */
    struct tenant_labels *writer_labels; /* the writer's */
    struct worker_polls *polls;
    int event_fd;
    struct db *writer;
    struct loop_reader *reader; /* this thread's own: replays and API keys */
    struct writer *commits;
    struct readers *readers;
    struct body_thread *bodies;
    size_t bodies_read; /* are being, or wait for it */
    struct waiters *waiters;
    struct gate_waiters gate_waiters;
    struct periodic *periodic;
    struct replay_stats *stats;
    struct auth *auth;
    struct subscriptions *subscriptions;
    atomic_int waiting_callers;
    atomic_ullong auth_epoch;
    struct outgoing *outgoing;
    atomic_bool has_calls;
    struct relay *relay;             /* NULL: there is no bus */
    atomic_llong unpublished_events; /* events that the bus has not acknowledged */
    atomic_bool has_deliveries;

    /* What this round has brought for the writer. */
    struct op *round_first, **round_last;
    size_t round_ops;
    size_t round_requests;
    size_t last_round_requests;
    size_t quiet_rounds;

    /* Under way, oldest first. */
    struct op *oldest, *newest;
    size_t in_flight;
    size_t in_flight_bytes;
    size_t reads_in_flight;
    bool draining;
};

static void count(struct engine *e, const struct op *op)
{
    if (op->answer.replayed)
        loop_reader_note_replay(e->reader);
    engine_metrics_count(&e->metrics, op, e->env);
}

/* --- in flight --- */

static void enter(struct engine *e, struct op *op)
{
    op->entered_ms = env_mono_ms(e->env);
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

/* The op's last moment here. */
static void finish(struct engine *e, struct op *op)
{
    if (op->wait_ms > 0)
        atomic_fetch_sub(&e->waiting_callers, 1);
    if (op->use_case->checks)
        engine_metrics_checked(&e->metrics, op, env_now_ms(e->env));
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
    refuse(e, op, ERR_DRAINING, "the server is shutting down: retry with the same key");
}

/* --- submission --- */

static void hand_over(struct engine *e)
{
    if (e->round_first == NULL)
        return;
    writer_push(e->commits, e->round_first);
    e->round_first = NULL;
    e->round_last = &e->round_first;
    e->round_ops = 0;
}

/* Collected until the round ends, but an idle writer gets its work sooner: it commits while this
 * thread reads on. */
static void to_writer(struct engine *e, struct op *op)
{
    op->next = NULL;
    enter(e, op);
    *e->round_last = op;
    e->round_last = &op->next;
    if (++e->round_ops >= HAND_OVER_OPS && writer_is_idle(e->commits))
        hand_over(e);
}

static void op_decided(struct engine *e, struct op *op);

static bool may_run_inline(const struct engine *e, const struct op *op)
{
    return e->in_flight == 0 && e->quiet_rounds >= QUIET_ROUNDS && e->round_requests <= 1 &&
           op->bytes <= INLINE_BYTES_MAX && op->use_case != &UC_BACKUP &&
           op->use_case != &UC_DOCTOR_REPAIR;
}

void engine_submit(struct engine *e, struct op *op)
{
    op->submitted_ms = env_mono_ms(e->env);
    op->abandoned = false;
    op->next = NULL;
    e->round_requests++;
    if (op->wait_ms > 0)
        atomic_fetch_add(&e->waiting_callers, 1);
    if (e->draining && op->use_case->write != NULL) { /* whoever only asks is still answered */
        refuse_draining(e, op);
    } else if (op->decided) {
        op_decided(e, op);
    } else if (op->use_case->read != NULL) {
        if (e->reads_in_flight >= READS_WAITING_MAX) {
            refuse(e, op, ERR_OVERLOADED, "too many reads are waiting");
            return;
        }
        e->reads_in_flight++;
        enter(e, op);
        readers_push(e->readers, op);
    } else if (e->in_flight >= OPS_WAITING_MAX || e->in_flight_bytes + op->bytes > OPS_BYTES_MAX) {
        refuse(e, op, ERR_OVERLOADED, "too many changes are waiting: nothing was changed");
    } else if (may_run_inline(e, op) && writer_try_inline(e->commits, op)) {
        op_decided(e, op);
    } else {
        to_writer(e, op);
    }
}

void engine_read_body(struct engine *e, struct op *op, struct body_task *task)
{
    bool fits = e->in_flight_bytes + task->bytes <= OPS_BYTES_MAX;
    if (!e->draining && fits && body_thread_push(e->bodies, task)) {
        e->bodies_read++;
        e->in_flight_bytes += task->bytes;
        return;
    }
    if (op->wait_ms > 0)
        atomic_fetch_add(&e->waiting_callers, 1);
    if (e->draining)
        refuse_draining(e, op);
    else
        refuse(e, op, ERR_OVERLOADED, "too many large requests are waiting: nothing was changed");
}

void engine_free_body(struct engine *e, struct body_task *task)
{
    assert(task->bytes == 0 && task->done == NULL);
    bool taken = body_thread_push(e->bodies, task);
    assert(taken);
}

bool engine_expects_more(const struct engine *e)
{
    return e->last_round_requests > 0 && e->quiet_rounds >= QUIET_ROUNDS && e->in_flight == 0;
}

void engine_round_end(struct engine *e)
{
    e->last_round_requests = e->round_requests;
    loop_reader_round_end(e->reader);
    if (e->round_requests > 0)
        e->quiet_rounds = e->round_requests == 1 ? e->quiet_rounds + 1 : 0;
    e->round_requests = 0;
    hand_over(e);
}

/* --- what the loop's own reader answers --- */

bool engine_replay(struct engine *e, struct op *op)
{
    bool writer_is_busy = e->in_flight > OPS_WAITING_MAX / 2 || writer_log_full(e->commits);
    return !e->draining && loop_reader_replay(e->reader, op, writer_is_busy);
}

uint64_t engine_auth_epoch(const struct engine *e)
{
    return atomic_load(&e->auth_epoch);
}

enum err engine_identify(struct engine *e, struct str key, struct str peer, struct problem *p,
                         struct auth_identity *ret)
{
    return loop_reader_identify(e->reader, key, peer, engine_auth_epoch(e), p, ret);
}

/* --- completion --- */

/* A decided op: answered now, or parked when its caller wants to wait. */
static void op_decided(struct engine *e, struct op *op)
{
    bool may_wait = op->err == ERR_OK && op->wait_ms > 0 && !e->draining && !op->abandoned;
    if (op->gate_busy && !op->abandoned && !e->draining && gate_waiters_add(&e->gate_waiters, op))
        return;
    if (may_wait && op->use_case == &UC_CLAIM_JOBS && op->answer.keep_waiting &&
        env_mono_ms(e->env) < op->submitted_ms + op->wait_ms) {
        waiters_add_claim(e->waiters, op);
        return;
    }
    count(e, op);
    /* A replayed update is looked up even for a caller that does not want to wait: its outcome is
     * what the caller asks for, and the record has none. The same for a run that is to be shown as
     * it is now. */
    bool updates = op->use_case == &UC_UPDATE_ENTITY;
    bool looks = updates || op->shows_now;
    may_wait |= looks && op->err == ERR_OK && op->answer.replayed && !e->draining;
    if (may_wait && (op->answer.has_run || updates) && !op->answer.run_over &&
        waiters_add_asking(e->waiters, op, op->answer.replayed))
        return;
    finish(e, op);
}

/* What the engine asks of itself is not held up by others, nor refused while it drains. */
static void submit_own(void *ctx, struct op *op)
{
    to_writer(ctx, op);
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

/* What the engine wants to know by itself. */
static void submit_read(void *ctx, struct op *question)
{
    struct engine *e = ctx;
    question->submitted_ms = env_mono_ms(e->env);
    e->reads_in_flight++;
    enter(e, question);
    readers_push(e->readers, question);
}

static void collect_bodies(struct engine *e)
{
    struct body_task *task = body_thread_collect(e->bodies);
    while (task != NULL) {
        struct body_task *next = task->next;
        e->bodies_read--;
        e->in_flight_bytes -= task->bytes;
        task->done(task);
        task = next;
    }
}

static void collect(struct engine *e)
{
    collect_bodies(e);
    struct op *op = readers_collect(e->readers);
    while (op != NULL) {
        struct op *next = op->next;
        leave(e, op);
        e->reads_in_flight--;
        if (!waiters_answer(e->waiters, op))
            finish(e, op);
        op = next;
    }
    struct effect_parcel *parcels;
    writer_collect(e->commits, &op, &parcels);
    while (op != NULL) {
        struct op *next = op->next;
        leave(e, op);
        op_decided(e, op);
        op = next;
    }
    publish_on_loop(parcels, e->waiters, e->subscriptions);
    outgoing_collect(e->outgoing);
}

void engine_subscribe(struct engine *e, struct subscriber *subscriber)
{
    subscriptions_add(e->subscriptions, subscriber);
}

void engine_unsubscribe(struct engine *e, struct subscriber *subscriber)
{
    subscriptions_remove(e->subscriptions, subscriber);
}

/* Those that take too long are told to ask again; they stay until the store is done with them. */
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
    if (readable && read(e->event_fd, &ignored, sizeof(ignored)) > 0)
        collect(e);
    int64_t mono = env_mono_ms(e->env);
    waiters_tick(e->waiters, mono, e->draining);
    time_out_slow(e, mono);
    gate_waiters_tick(&e->gate_waiters, mono, e->draining);
    if (!e->draining)
        periodic_tick(e->periodic, mono);
    outgoing_tick(e->outgoing, mono);
    relay_tick(e->relay, mono);
    subscriptions_tick(e->subscriptions, mono);
    hand_over(e); /* claims that go again are not requests of this round */
}

int engine_event_fd(const struct engine *e)
{
    return e->event_fd;
}

int engine_timeout_ms(const struct engine *e)
{
    int gate = gate_waiters_timeout_ms(&e->gate_waiters);
    if (gate >= 0)
        return gate;
    int wait = waiters_count(e->waiters) > 0 || e->draining ? TICK_MS : QUIET_TIMEOUT_MS;
    int tell = subscriptions_timeout_ms(e->subscriptions, env_mono_ms(e->env));
    int relay = relay_timeout_ms(e->relay, env_mono_ms(e->env));
    wait = tell >= 0 ? MIN(wait, tell) : wait;
    return relay >= 0 ? MIN(wait, relay) : wait;
}

/* --- the end, and operators --- */

void engine_drain(struct engine *e)
{
    e->draining = true;
    outgoing_drain(e->outgoing, env_mono_ms(e->env));
    relay_drain(e->relay);
}

bool engine_idle(const struct engine *e)
{
    return e->in_flight == 0 && e->bodies_read == 0 && waiters_count(e->waiters) == 0 &&
           e->gate_waiters.count == 0 && periodic_idle(e->periodic) && outgoing_idle(e->outgoing) &&
           relay_idle(e->relay);
}

bool engine_failed(const struct engine *e)
{
    return writer_failed(e->commits);
}

enum err engine_ready(const struct engine *e, struct problem *p)
{
    if (e->draining)
        return problem_set(p, ERR_DRAINING, "shutting down");
    if (writer_failed(e->commits))
        return problem_set(p, ERR_STORE_FAILED, "the store failed");
    if (writer_log_full(e->commits))
        return problem_set(p, ERR_STORE_BUSY, "the write-ahead log is full");
    return ERR_OK;
}

void engine_read_metrics(struct engine *e, struct op *op)
{
    metric_set(e->metrics.log_bytes, STR_NONE, STR_NONE, (double)writer_log_bytes(e->commits));
    metric_set(e->metrics.in_flight, STR_NONE, STR_NONE, (double)e->in_flight);
    metric_set(e->metrics.subscriptions, STR_NONE, STR_NONE,
               (double)atomic_load(subscriptions_count(e->subscriptions)));
    struct engine_outbox outbox;
    engine_outbox(e, &outbox);
    metric_set(e->metrics.outbox_depth, STR_NONE, STR_NONE, (double)outbox.depth);
    metric_set(e->metrics.outbox_lag, STR_NONE, STR_NONE, (double)outbox.lag_ms / 1e3);
    op->use_case = &UC_READ_METRICS;
    op->input = &e->metrics_input;
    submit_read(e, op);
}

const char *engine_store_name(const struct engine *e)
{
    return db_engine_name(e->writer);
}

const char *engine_store_name_at(size_t i)
{
    return db_engine_name_at(i);
}

const char *engine_gate_name(const struct engine *e)
{
    return e->gate->name;
}

void engine_outbox(struct engine *e, struct engine_outbox *ret)
{
    *ret = (struct engine_outbox){.status = "none"};
    if (e->relay == NULL)
        return;
    struct relay_figures figures;
    relay_figures(e->relay, &figures);
    ret->bus = e->bus->name;
    ret->status = figures.bus.ok ? "ok" : "failing";
    ret->depth = figures.depth;
    ret->lag_ms = figures.lag_ms;
    static_assert(sizeof(ret->detail) >= sizeof(figures.bus.detail), "it has room for any");
    memcpy(ret->detail, figures.bus.detail, sizeof(figures.bus.detail));
}

/* --- life --- */

/* Before the writer begins to add to it. */
static enum err count_unpublished(struct engine *e, struct problem *p)
{
    int64_t unpublished_events = 0;
    enum err err = relay_count_unpublished(e->writer, &unpublished_events);
    atomic_store(&e->unpublished_events, unpublished_events);
    return err == ERR_OK ? ERR_OK : problem_set(p, err, "the feed cannot be read");
}

static enum err open_relay(struct engine *e, const struct engine_config *config, struct problem *p)
{
    if (config->bus == NULL)
        return ERR_OK;
    struct relay_config relay = {
        .bus = config->bus,
        .store_url = config->store_url,
        .env = config->env,
        .queues = {config->bus_queues, config->bus_queue_count},
        .event_fd = e->event_fd,
        .unpublished_events = &e->unpublished_events,
        .submit = submit_own,
        .ctx = e,
    };
    return relay_start(&relay, p, &e->relay);
}

static struct receivers receivers_of(struct engine *e)
{
    return (struct receivers){
        .event_fd = e->event_fd,
        .waiting = &e->waiting_callers,
        .subscribers = subscriptions_count(e->subscriptions),
        .auth_epoch = &e->auth_epoch,
        .has_calls = &e->has_calls,
        .has_deliveries = &e->has_deliveries,
        .relay = e->relay,
        .unpublished_events = &e->unpublished_events,
        .entity_calls = e->metrics.entity_calls,
        .queue_waits = e->metrics.queue_waits,
        .admissions = e->metrics.admissions,
        .admission_wait = e->metrics.admission_wait,
        .labels = e->writer_labels,
    };
}

static enum err open_parts(struct engine *e, const struct engine_config *config, struct problem *p)
{
    struct db_config writer = {config->store_url, DB_WRITER, config->env, config->log_bytes_max};
    struct loop_reader_config reader = {config->store_url, config->env, e->stats, e->auth,
                                        e->metrics.auth_failures};
    struct readers_config readers = {config->store_url, config->env, e->event_fd, e->polls};
    enum err err = db_open(&writer, p, &e->writer);
    if (err == ERR_OK)
        err = loop_reader_open(&reader, p, &e->reader);
    if (err == ERR_OK)
        err = readers_start(&readers, p, &e->readers);
    if (err == ERR_OK)
        err = body_thread_start(e->event_fd, p, &e->bodies);
    if (err == ERR_OK && config->bus != NULL)
        err = count_unpublished(e, p);
    if (err == ERR_OK)
        err = open_relay(e, config, p);
    if (err != ERR_OK)
        return err;
    struct writer_config commits = {
        .core = {.db = e->writer,
                 .meter = config->env,
                 .gate = e->gate,
                 .stats = e->stats,
                 .polls = e->polls,
                 .cleanup_failures = e->metrics.cleanup_failures,
                 .has_bus = e->relay != NULL,
                 .keeps_all = config->keeps_all},
        .receivers = receivers_of(e),
        .commit_seconds = e->metrics.commit_seconds,
        .batch_size = e->metrics.batch_size,
    };
    err = writer_start(&commits, p, &e->commits);
    if (err != ERR_OK)
        return err;
    struct outgoing_config outgoing = {
        .reach = config->reach,
        .env = config->env,
        .event_fd = e->event_fd,
        .ready =
            {[OUTGOING_HTTP_STEPS] = &e->has_calls, [OUTGOING_DELIVERIES] = &e->has_deliveries},
        .outcomes = {[OUTGOING_DELIVERIES] = e->metrics.webhook_attempts},
        .submit = submit_own,
        .ctx = e,
    };
    return outgoing_start(&outgoing, p, &e->outgoing);
}

enum err engine_open(const struct engine_config *config, struct problem *p, struct engine **ret)
{
    struct engine *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return problem_set(p, ERR_NO_MEMORY, "no memory for the engine");
    e->env = config->env;
    e->gate = config->gate != NULL ? config->gate : gate_store();
    e->bus = config->bus;
    e->round_last = &e->round_first;
    e->quiet_rounds = QUIET_ROUNDS;
    struct waiters_hooks hooks = {e, submit_own, expire_waiter, submit_read};
    e->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    e->stats = replay_stats_new();
    e->auth = auth_new(config->env, config->root_key);
    e->waiters = waiters_new(config->env, &hooks);
    gate_waiters_init(&e->gate_waiters, config->env, submit_own, e);
    e->periodic = periodic_new(e->auth, submit_as_caller, e);
    bool counted = engine_metrics_init(&e->metrics, config->metrics);
    e->metrics_input = (struct read_metrics_input){&e->metrics, config->metrics};
    struct stream_hooks told = {e, submit_read};
    e->subscriptions = subscriptions_new(config->env, &told);
    e->writer_labels = tenant_labels_new();
    e->polls = worker_polls_new(env_now_ms(config->env));
    enum err err = ERR_OK;
    if (e->event_fd < 0 || e->stats == NULL || e->auth == NULL || e->waiters == NULL ||
        e->periodic == NULL || e->writer_labels == NULL || e->polls == NULL ||
        e->subscriptions == NULL || !counted)
        err = problem_set(p, ERR_NO_MEMORY, "no memory for the engine");
    if (err == ERR_OK)
        err = open_parts(e, config, p);
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
    loop_reader_close(e->reader);
    writer_free(e->commits); /* before those that it publishes to */
    relay_free(e->relay);
    outgoing_free(e->outgoing);
    readers_free(e->readers);
    body_thread_free(e->bodies);
    waiters_free(e->waiters);
    periodic_free(e->periodic);
    auth_free(e->auth);
    replay_stats_free(e->stats);
    subscriptions_free(e->subscriptions);
    engine_metrics_release(&e->metrics);
    tenant_labels_free(e->writer_labels);
    worker_polls_free(e->polls);
    /* The writer last: closing the last connection folds the log back into the file. */
    db_close(e->writer);
    if (e->event_fd >= 0)
        close(e->event_fd);
    free(e);
}
