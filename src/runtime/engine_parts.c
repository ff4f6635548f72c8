/* Opens and closes the parts of an engine. */
#include "runtime/engine_parts.h"

#include "base/log.h"

#include "core/txn/worker_polls.h"
#include "gate/gate.h"
#include "store/ended_sessions.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* Runs before the writer starts, which adds to the number. */
static enum err count_unpublished(struct engine_parts *parts, struct problem *p)
{
    int64_t unpublished_events = 0;
    enum err err = relay_count_unpublished(parts->writer, &unpublished_events);
    atomic_store(&parts->unpublished_events, unpublished_events);
    return err == ERR_OK ? ERR_OK : problem_set(p, err, "Cannot read the feed");
}

static enum err open_relay(struct engine_parts *parts, const struct engine_config *config,
                           const struct engine_hooks *hooks, struct problem *p)
{
    if (config->bus == NULL)
        return ERR_OK;
    struct relay_config relay = {
        .bus = config->bus,
        .store_url = config->store_url,
        .env = config->env,
        .queues = {config->bus_queues, config->bus_queue_count},
        .event_fd = parts->event_fd,
        .unpublished_events = &parts->unpublished_events,
        .wait_durable = hooks->wait_durable,
        .submit = hooks->submit_own,
        .ctx = hooks->ctx,
    };
    return relay_start(&relay, p, &parts->relay);
}

static struct receivers receivers_of(struct engine_parts *parts)
{
    return (struct receivers){
        .event_fd = parts->event_fd,
        .waiting = &parts->waiting_callers,
        .subscribers = subscriptions_count(parts->subscriptions),
        .auth_epoch = &parts->auth_epoch,
        .has_calls = &parts->has_calls,
        .has_deliveries = &parts->has_deliveries,
        .relay = parts->relay,
        .unpublished_events = &parts->unpublished_events,
        .entity_calls = parts->metrics.entity_calls,
        .queue_waits = parts->metrics.queue_waits,
        .admissions = parts->metrics.admissions,
        .admission_wait = parts->metrics.admission_wait,
        .labels = parts->writer_labels,
    };
}

static enum err start_writer(struct engine_parts *parts, const struct engine_config *config,
                             struct problem *p)
{
    struct writer_config commits = {
        .core = {.db = parts->writer,
                 .meter = config->env,
                 .has_gate = parts->gate != NULL,
                 .stats = parts->stats,
                 .minutes = parts->minutes,
                 .polls = parts->polls,
                 .cleanup_failures = parts->metrics.cleanup_failures,
                 .exports_spans = parts->spans != NULL,
                 .has_bus = parts->relay != NULL,
                 .keeps_all = config->keeps_all,
                 .claims = waiters_claim_source(parts->waiters),
                 .awaited_runs = waiters_awaited_runs(parts->waiters)},
        .receivers = receivers_of(parts),
        .durability = &parts->durability,
        .commit_seconds = parts->metrics.commit_seconds,
        .batch_size = parts->metrics.batch_size,
    };
    enum err e = writer_start(&commits, p, &parts->commits);
    if (e == ERR_OK)
        readers_set_keys(parts->readers, writer_keys(parts->commits));
    if (e == ERR_OK)
        loop_reader_set_keys(parts->reader, writer_keys(parts->commits));
    return e;
}

static enum err start_outgoing(struct engine_parts *parts, const struct engine_config *config,
                               const struct engine_hooks *hooks, struct problem *p)
{
    struct outgoing_config outgoing = {
        .reach = config->reach,
        .env = config->env,
        .event_fd = parts->event_fd,
        .ready = {[OUTGOING_HTTP_STEPS] = &parts->has_calls,
                  [OUTGOING_DELIVERIES] = &parts->has_deliveries},
        .outcomes = {[OUTGOING_DELIVERIES] = parts->metrics.webhook_attempts},
        .submit = hooks->submit_own,
        .ctx = hooks->ctx,
    };
    return outgoing_start(&outgoing, p, &parts->outgoing);
}

static enum err open_span_export(struct engine_parts *parts, const struct engine_config *config,
                                 struct problem *p)
{
    if (config->otlp_url.ptr == NULL)
        return ERR_OK;
    struct span_export_config spans = {
        .url = config->otlp_url,
        .env = config->env,
        .event_fd = parts->event_fd,
        .exported = parts->metrics.spans_exported,
        .dropped = parts->metrics.spans_dropped,
    };
    parts->spans = span_export_new(&spans);
    return parts->spans != NULL ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Out of memory");
}

static void keep_ended(void *ctx, struct uuid id, int64_t expires_at)
{
    struct session session = {.id = id, .expires_at = expires_at};
    if (!sessions_end(ctx, &session))
        LOG(LOG_WARN, "a session that was ended goes on: there is no memory for it");
}

/* Before the writer starts: it writes the secret if the store has none. */
static enum err read_sessions(struct engine_parts *parts, struct problem *p)
{
    struct secret secret;
    enum err err = secrets_get(parts->writer, parts->env, STR("session"), &secret);
    if (err != ERR_OK)
        return problem_set(p, err, "Cannot read the secret of sessions");
    sessions_use_secret(parts->sessions, &secret);
    err = ended_sessions_list(parts->writer, env_now_ms(parts->env), SESSIONS_ENDED_MAX, keep_ended,
                              parts->sessions);
    return err == ERR_OK ? ERR_OK : problem_set(p, err, "Cannot read the sessions that have ended");
}

static enum err open_oidc(struct engine_parts *parts, const struct engine_config *config,
                          struct problem *p)
{
    if (config->oidc == NULL)
        return ERR_OK;
    struct oidc_config oidc = *config->oidc;
    oidc.env = config->env;
    oidc.reach = config->reach;
    oidc.event_fd = parts->event_fd;
    parts->oidc = oidc_new(&oidc);
    return parts->oidc != NULL ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Out of memory");
}

static enum err start_threads(struct engine_parts *parts, const struct engine_config *config,
                              const struct engine_hooks *hooks, struct problem *p)
{
    struct db_config writer = {.url = config->store_url,
                               .access = DB_WRITER,
                               .env = config->env,
                               .log_bytes_max = config->log_bytes_max,
                               .folds_in_background = true,
                               .marks = &parts->durability.marks,
                               .commit_group = config->commit_group,
                               .reconnects = parts->metrics.reconnects,
                               .in_doubt = parts->metrics.in_doubt};
    struct loop_reader_config reader = {config->store_url, config->env,
                                        parts->stats,      parts->minutes,
                                        parts->auth,       parts->metrics.auth_failures,
                                        &parts->durability};
    struct readers_config readers = {config->store_url, config->env,    parts->event_fd,
                                     parts->polls,      parts->minutes, &parts->durability};
    enum err err = db_open(&writer, p, &parts->writer);
    if (err == ERR_OK)
        err = read_sessions(parts, p);
    if (err == ERR_OK)
        err = loop_reader_open(&reader, p, &parts->reader);
    if (err == ERR_OK)
        err = readers_start(&readers, p, &parts->readers);
    if (err == ERR_OK)
        err = body_thread_start(parts->event_fd, p, &parts->bodies);
    if (err == ERR_OK && config->bus != NULL)
        err = count_unpublished(parts, p);
    if (err == ERR_OK)
        err = open_relay(parts, config, hooks, p);
    if (err == ERR_OK)
        err = open_span_export(parts, config, p);
    if (err == ERR_OK)
        err = open_oidc(parts, config, p);
    if (err == ERR_OK)
        err = start_writer(parts, config, p);
    if (err == ERR_OK && parts->gate != NULL &&
        parts->gate->start(parts->gate, parts->event_fd) != ERR_OK)
        err = problem_set(p, ERR_NO_MEMORY, "Cannot start the thread of the gate");
    return err == ERR_OK ? start_outgoing(parts, config, hooks, p) : err;
}

static bool init_gate_visits(struct engine_parts *parts, const struct engine_hooks *hooks)
{
    struct gate_visits_config visits = {
        .env = parts->env,
        .gate = parts->gate,
        .hooks = hooks->gate,
        .requests = parts->metrics.gate_requests,
        .releases = parts->metrics.gate_releases,
        .cleanup_failures = parts->metrics.cleanup_failures,
    };
    return gate_visits_init(&parts->gate_visits, &visits);
}

/* False when memory or descriptors ran out. */
static bool make_tables(struct engine_parts *parts, const struct engine_config *config,
                        const struct engine_hooks *hooks)
{
    struct waiters_hooks waiting = {hooks->ctx, hooks->submit_own, hooks->expire_waiter,
                                    hooks->submit_read};
    struct stream_hooks streams = {hooks->ctx, hooks->submit_read};
    parts->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    parts->durability.event_fd = parts->event_fd;
    parts->stats = replay_stats_new();
    parts->minutes = minute_stats_new();
    parts->sessions = sessions_new(config->env);
    parts->auth = auth_new(config->env, config->root_key, parts->sessions);
    parts->waiters = waiters_new(config->env, &waiting);
    parts->periodic = periodic_new(parts->auth, hooks->submit, hooks->ctx);
    bool counted =
        engine_metrics_init(&parts->metrics, config->metrics) && init_gate_visits(parts, hooks);
    parts->metrics_input = (struct read_metrics_input){&parts->metrics, config->metrics, true};
    parts->subscriptions = subscriptions_new(config->env, &streams);
    parts->writer_labels = tenant_labels_new();
    parts->polls = worker_polls_new(env_now_ms(config->env));
    return counted && parts->event_fd >= 0 && parts->stats != NULL && parts->minutes != NULL &&
           parts->sessions != NULL && parts->auth != NULL && parts->waiters != NULL &&
           parts->periodic != NULL && parts->subscriptions != NULL &&
           parts->writer_labels != NULL && parts->polls != NULL;
}

enum err engine_parts_open(struct engine_parts *parts, const struct engine_config *config,
                           const struct engine_hooks *hooks, struct problem *p)
{
    parts->env = config->env;
    parts->gate = config->gate;
    parts->bus = config->bus;
    durability_init(&parts->durability);
    if (!make_tables(parts, config, hooks))
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    return start_threads(parts, config, hooks, p);
}

void engine_parts_close(struct engine_parts *parts)
{
    if (parts->gate != NULL)
        parts->gate->stop(parts->gate);
    gate_visits_release(&parts->gate_visits);
    loop_reader_close(parts->reader);
    writer_free(parts->commits); /* before those that it publishes to */
    relay_free(parts->relay);
    outgoing_free(parts->outgoing);
    span_export_free(parts->spans);
    oidc_free(parts->oidc);
    readers_free(parts->readers);
    body_thread_free(parts->bodies);
    waiters_free(parts->waiters);
    periodic_free(parts->periodic);
    auth_free(parts->auth);
    sessions_free(parts->sessions);
    replay_stats_free(parts->stats);
    minute_stats_free(parts->minutes);
    subscriptions_free(parts->subscriptions);
    engine_metrics_release(&parts->metrics);
    tenant_labels_free(parts->writer_labels);
    worker_polls_free(parts->polls);
    /* The writer's connection last: closing it folds the log back into the file. */
    db_close(parts->writer);
    durability_release(&parts->durability);
    if (parts->event_fd >= 0)
        close(parts->event_fd);
}
