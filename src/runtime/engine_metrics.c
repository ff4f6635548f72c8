/* What the engine counts and shows of itself. */
#include "runtime/engine_metrics.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/txn/tx.h"
#include "store/outbox/deliveries.h"
#include "store/outbox/parked.h"
#include "store/outbox/webhooks.h"
#include "store/run/jobs.h"
#include "store/run/run_queue.h"
#include "store/run/runs.h"
#include "store/tenants.h"

#include <stddef.h>

enum { GAUGE_ARENA_MAX = 64 * MIB };

#define PLACE(member) offsetof(struct engine_metrics, member)

/* A table is read by its columns. */
/* clang-format off */
static const struct {
    size_t place; /* of the family's pointer */
    struct metric_spec spec;
} FAMILIES[] = {
    {PLACE(admission_wait), {"pawl_admission_wait_seconds", "Time from receiving a start to answering it.", METRIC_HISTOGRAM, {"tenant", "endpoint"}, METRIC_SECONDS}},
    {PLACE(admissions), {"pawl_admissions_total", "Starts by outcome.", METRIC_COUNTER, {"tenant", "outcome"}, NULL}},
    {PLACE(replays), {"pawl_idempotency_replays_total", "Requests answered from an idempotency record.", METRIC_COUNTER, {"endpoint", NULL}, NULL}},
    {PLACE(mismatches), {"pawl_idempotency_mismatches_total", "Idempotency keys reused for a different request.", METRIC_COUNTER, {"endpoint", NULL}, NULL}},
    {PLACE(approval_replays), {"pawl_approval_replays_total", "Decisions that repeated an earlier identical decision.", METRIC_COUNTER, {"endpoint", NULL}, NULL}},
    {PLACE(approval_conflicts), {"pawl_approval_conflicts_total", "Decisions that were refused.", METRIC_COUNTER, {"endpoint", "code"}, NULL}},
    {PLACE(cleanup_failures), {"pawl_idempotency_cleanup_failures_total", "Failed rounds of background cleanup.", METRIC_COUNTER, {"context", NULL}, NULL}},
    {PLACE(gate_requests), {"pawl_gate_requests_total", "Requests of starts to enter the Redis gate, by answer.", METRIC_COUNTER, {"answer", NULL}, NULL}},
    {PLACE(gate_releases), {"pawl_gate_releases_total", "Attempts to leave the Redis gate, by outcome.", METRIC_COUNTER, {"outcome", NULL}, NULL}},
    {PLACE(auth_failures), {"pawl_auth_failures_total", "API keys rejected: invalid, or throttled after too many invalid keys from one address.", METRIC_COUNTER, {"reason", NULL}, NULL}},
    {PLACE(entity_signals), {"pawl_entity_signals_total", "Signals and updates to entities, by outcome.", METRIC_COUNTER, {"outcome", NULL}, NULL}},
    {PLACE(entity_calls), {"pawl_entity_calls_total", "Entity handler calls, by outcome.", METRIC_COUNTER, {"outcome", NULL}, NULL}},
    {PLACE(commit_seconds), {"pawl_commit_seconds", "Time to commit one batch durably.", METRIC_HISTOGRAM, {NULL, NULL}, METRIC_SECONDS}},
    {PLACE(batch_size), {"pawl_commit_batch_size", "Requests made durable by one commit.", METRIC_HISTOGRAM, {NULL, NULL}, METRIC_SIZES}},
    {PLACE(reconnects), {"pawl_store_reconnects_total", "Times that the writer of a shard has replaced a lost connection to PostgreSQL.", METRIC_COUNTER, {NULL, NULL}, NULL}},
    {PLACE(in_doubt), {"pawl_commits_in_doubt_total", "Commits whose answer was lost with the connection, by what became of them.", METRIC_COUNTER, {"outcome", NULL}, NULL}},
    {PLACE(jobs), {"pawl_jobs", "Jobs waiting for a worker.", METRIC_GAUGE, {"queue", "state"}, NULL}},
    {PLACE(outbox_depth), {"pawl_outbox_depth", "Messages not yet acknowledged by the bus.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(outbox_lag), {"pawl_outbox_lag_seconds", "Age of the oldest message not yet acknowledged by the bus.", METRIC_GAUGE_LARGEST, {NULL, NULL}, NULL}},
    {PLACE(outbox_parked), {"pawl_outbox_parked", "Messages parked because the bus rejects them.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(log_bytes), {"pawl_store_log_bytes", "Size of the write-ahead log in use.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(in_flight), {"pawl_requests_in_flight", "Requests waiting for the store.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(waiting), {"pawl_requests_waiting", "Requests waiting for a job, a run or an update.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(subscriptions), {"pawl_event_listeners", "Clients subscribed to an event stream.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(queue_waits), {"pawl_queue_wait_seconds", "Time that admitted runs spent in the queue.", METRIC_HISTOGRAM, {"tenant", NULL}, METRIC_WAITS}},
    {PLACE(queued_runs), {"pawl_queued_runs", "Runs waiting for a slot.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(queued_limit), {"pawl_queued_runs_limit", "Limit on queued runs, where the tenant has one.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(queue_oldest), {"pawl_queue_oldest_seconds", "Age of the oldest queued run.", METRIC_GAUGE_LARGEST, {"tenant", NULL}, NULL}},
    {PLACE(slots_held), {"pawl_slots_held", "Runs holding a slot.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(slots_limit), {"pawl_slots_limit", "Limit on active runs, where the tenant has one.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(differences), {"pawl_doctor_differences", "Problems found by the last check.", METRIC_GAUGE, {"check", NULL}, NULL}},
    {PLACE(checked_at), {"pawl_doctor_last_run_timestamp_seconds", "Time when the last check ended.", METRIC_GAUGE_LARGEST, {NULL, NULL}, NULL}},
    {PLACE(webhook_attempts), {"pawl_webhook_attempts_total", "Webhook delivery attempts, by outcome.", METRIC_COUNTER, {"outcome", NULL}, NULL}},
    {PLACE(webhook_depth), {"pawl_webhook_deliveries_waiting", "Deliveries waiting to be sent; 100000 means 100000 or more.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(webhooks), {"pawl_webhooks", "Webhooks by state.", METRIC_GAUGE, {"state", NULL}, NULL}},
    {PLACE(spans_exported), {"pawl_otlp_spans_exported_total", "Spans that the collector has taken.", METRIC_COUNTER, {NULL, NULL}, NULL}},
    {PLACE(spans_dropped), {"pawl_otlp_spans_dropped_total", "Spans that were not exported, by reason.", METRIC_COUNTER, {"reason", NULL}, NULL}},
};
/* clang-format on */

bool engine_metrics_init(struct engine_metrics *m, struct metrics *registry)
{
    *m = (struct engine_metrics){.labels = tenant_labels_new()};
    if (m->labels == NULL)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(FAMILIES); i++) {
        struct metric *metric = metrics_declare(registry, &FAMILIES[i].spec);
        if (metric == NULL)
            return false;
        *(struct metric **)(void *)((char *)m + FAMILIES[i].place) = metric;
    }
    /* Counters that nothing has touched yet are there from the start, as zero. */
    metric_add(m->auth_failures, STR("invalid"), STR_NONE, 0);
    metric_add(m->auth_failures, STR("throttled"), STR_NONE, 0);
    metric_add(m->replays, STR("start_run"), STR_NONE, 0);
    metric_add(m->mismatches, STR("start_run"), STR_NONE, 0);
    static const char *const DECISIONS[] = {"approve", "reject"};
    for (size_t i = 0; i < ARRAY_LEN(DECISIONS); i++) {
        metric_add(m->approval_replays, str_of(DECISIONS[i]), STR_NONE, 0);
        metric_add(m->approval_conflicts, str_of(DECISIONS[i]),
                   str_of(err_code(ERR_APPROVAL_CONFLICT)), 0);
    }
    static const char *const SIGNALS[] = {"accepted", "duplicate", "refused"};
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++)
        metric_add(m->entity_signals, str_of(SIGNALS[i]), STR_NONE, 0);
    for (enum entity_call_end end = 0; end < ENTITY_CALL_COUNT; end++)
        metric_add(m->entity_calls, str_of(entity_call_end_name(end)), STR_NONE, 0);
    metric_add(m->reconnects, STR_NONE, STR_NONE, 0);
    static const char *const OUTCOMES[] = {"committed", "aborted", "unknown"};
    for (size_t i = 0; i < ARRAY_LEN(OUTCOMES); i++)
        metric_add(m->in_doubt, str_of(OUTCOMES[i]), STR_NONE, 0);
    metric_add(m->webhook_attempts, STR("delivered"), STR_NONE, 0);
    metric_add(m->webhook_attempts, STR("failed"), STR_NONE, 0);
    return true;
}

void engine_metrics_release(struct engine_metrics *m)
{
    tenant_labels_free(m->labels);
}

/* --- counting --- */

/* A decision that meets another one. Who may not decide meets none. */
static bool is_conflict(enum err e)
{
    return err_http_status(e) == 409;
}

/* The same decision again counts as a replay, whether a key says so or the approval itself. */
static void count_decision(struct engine_metrics *m, const struct op *op, struct str endpoint)
{
    if (op->answer.already_decided || op->answer.replayed)
        metric_add(m->approval_replays, endpoint, STR_NONE, 1);
    if (is_conflict(op->err))
        metric_add(m->approval_conflicts, endpoint, str_of(err_code(op->err)), 1);
}

static struct str signal_outcome(const struct op *op)
{
    if (op->answer.replayed)
        return STR("duplicate");
    if (op->err == ERR_OK)
        return str_of(op->answer.outcome);
    return err_http_status(op->err) >= 500 ? STR("unavailable") : STR("refused");
}

void engine_metrics_count(struct engine_metrics *m, const struct op *op, const struct env *env)
{
    struct str endpoint = str_of(op->use_case->name);
    if (op->use_case == &UC_SIGNAL_ENTITY || op->use_case == &UC_UPDATE_ENTITY)
        metric_add(m->entity_signals, signal_outcome(op), STR_NONE, 1);
    if (op->use_case->decides)
        count_decision(m, op, endpoint);
    if (op->answer.replayed)
        metric_add(m->replays, endpoint, STR_NONE, 1);
    if (op->err == ERR_IDEM_KEY_REUSED)
        metric_add(m->mismatches, endpoint, STR_NONE, 1);
    const char *began = op->endpoint != NULL ? op->endpoint : op->use_case->admits;
    if (began == NULL)
        return;
    struct str tenant = tenant_label(m->labels, op->caller.tenant);
    double seconds = (double)(env_mono_ns(env) - op->submitted_ns) / 1e9;
    metric_add(m->admissions, tenant, op_admission_outcome(op), 1);
    metric_observe(m->admission_wait, tenant, str_of(began), seconds);
}

void engine_metrics_checked(struct engine_metrics *m, const struct op *op, int64_t now_ms)
{
    const struct doctor_input *in = op->input;
    if (op->err != ERR_OK || op->answer.replayed) /* a replay has looked at nothing */
        return;
    bool quick = op->use_case == &UC_DOCTOR_QUICK;
    for (size_t i = 0; i < DOCTOR_CHECK_COUNT; i++) {
        if (!in->findings->ran[i])
            continue;
        /* What a whole check has found stays until the next one: a quick look may not see it. */
        if (!quick)
            m->whole_check[i] = in->findings->differences[i];
        metric_set(m->differences, str_of(doctor_check_name((enum doctor_check)i)), STR_NONE,
                   (double)MAX(m->whole_check[i], in->findings->differences[i]));
    }
    metric_set(m->checked_at, STR_NONE, STR_NONE, (double)now_ms / 1e3);
}

/* --- reading --- */

struct reading {
    struct engine_metrics *metrics;
    struct db *reader;
    int64_t now_ms;
    struct arena *arena;    /* what was read of one tenant */
    size_t queues, tenants; /* shown so far, the largest first */
};

/* Those past the bound are summed. */
static void add_job_gauge(void *ctx, struct str queue, struct str state, int64_t number)
{
    struct reading *r = ctx;
    struct str label = r->queues++ < METRIC_QUEUES_MAX ? label_of_name(queue) : LABEL_OTHER;
    metric_add(r->metrics->jobs, label, state, (double)number);
}

static void add_webhook_gauge(void *ctx, struct str state, int64_t number)
{
    const struct reading *r = ctx;
    metric_set(r->metrics->webhooks, state, STR_NONE, (double)number);
}

/* Nothing is counted where there is no webhook. */
static enum err read_webhooks(const struct reading *r)
{
    static const char *const STATES[] = {"enabled", "failing", "disabled"};
    int64_t waiting = 0;
    double all = 0;
    for (size_t i = 0; i < ARRAY_LEN(STATES); i++)
        metric_set(r->metrics->webhooks, str_of(STATES[i]), STR_NONE, 0);
    enum err e = webhooks_by_state(r->reader, add_webhook_gauge, (void *)(uintptr_t)r);
    for (size_t i = 0; i < ARRAY_LEN(STATES); i++)
        all += metric_value(r->metrics->webhooks, str_of(STATES[i]), STR_NONE);
    if (e == ERR_OK && all > 0)
        e = deliveries_waiting(r->reader, 0, DELIVERIES_WAITING_MAX, &waiting);
    metric_set(r->metrics->webhook_depth, STR_NONE, STR_NONE, (double)waiting);
    return e;
}

/* Tenants come by what they use, the most first: all gauges of one are shown, so that they can be
 * compared. Those past the bound are summed, but for the oldest run, which is the oldest of all. */
static void add_tenant_gauges(void *ctx, const struct tenant *t)
{
    struct reading *r = ctx;
    struct engine_metrics *m = r->metrics;
    struct str tenant = r->tenants++ < METRIC_TENANTS_MAX ? label_of_name(t->id) : LABEL_OTHER;
    metric_add(m->slots_held, tenant, STR_NONE, (double)t->active_runs);
    metric_add(m->queued_runs, tenant, STR_NONE, (double)t->queued_runs);
    if (t->max_concurrent_runs >= 0)
        metric_add(m->slots_limit, tenant, STR_NONE, (double)t->max_concurrent_runs);
    if (t->max_queued_runs >= 0)
        metric_add(m->queued_limit, tenant, STR_NONE, (double)t->max_queued_runs);
    int64_t oldest = 0;
    if (t->queued_runs > 0 && queue_oldest(r->reader, t->num, &oldest) != ERR_OK)
        LOG(LOG_WARN, "the queue could not be read");
    int64_t age_ms = oldest > 0 ? r->now_ms - runs_num_ms(oldest) : 0;
    double age = (double)MAX(age_ms, (int64_t)0) / 1e3;
    metric_set(m->queue_oldest, tenant, STR_NONE,
               MAX(age, metric_value(m->queue_oldest, tenant, STR_NONE)));
    arena_clear(r->arena);
}

static void read_gauges(struct engine_metrics *m, struct db *reader, int64_t now_ms)
{
    struct metric *const gauges[] = {m->jobs,        m->slots_held,   m->slots_limit,
                                     m->queued_runs, m->queued_limit, m->queue_oldest};
    struct reading r = {.metrics = m, .reader = reader, .now_ms = now_ms};
    struct arena arena;
    r.arena = &arena;
    arena_init(&arena, GAUGE_ARENA_MAX);
    for (size_t i = 0; i < ARRAY_LEN(gauges); i++)
        metric_clear(gauges[i]);
    if (tenants_in_use(reader, &arena, add_tenant_gauges, &r) != ERR_OK)
        LOG(LOG_WARN, "tenants could not be counted");
    if (jobs_count(reader, add_job_gauge, &r) != ERR_OK)
        LOG(LOG_WARN, "jobs could not be counted");
    int64_t parked = 0;
    if (parked_count(reader, &parked) != ERR_OK)
        LOG(LOG_WARN, "parked messages could not be counted");
    metric_set(m->outbox_parked, STR_NONE, STR_NONE, (double)parked);
    if (read_webhooks(&r) != ERR_OK)
        LOG(LOG_WARN, "webhooks could not be counted");
    arena_release(&arena);
}

static enum err read_metrics(struct op *op, struct read_tx *tx)
{
    const struct read_metrics_input *in = op->input;
    read_gauges(in->metrics, tx->db, tx->now_ms);
    if (in->renders)
        metrics_put_text(in->registry, &op->answer.body);
    return ERR_OK;
}

const struct use_case UC_READ_METRICS = {.name = "read_metrics", .read = read_metrics};
