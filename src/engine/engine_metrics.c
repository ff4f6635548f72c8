/* What the engine counts and shows of itself. */
#include "engine/engine_metrics.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/jobs.h"
#include "store/queue.h"
#include "store/runs.h"
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
    {PLACE(admission_wait), {"pawl_admission_wait_seconds", "Time from a start's arrival to its answer.", METRIC_HISTOGRAM, {"tenant", "endpoint"}, METRIC_SECONDS}},
    {PLACE(admissions), {"pawl_admissions_total", "Starts by outcome.", METRIC_COUNTER, {"tenant", "outcome"}, NULL}},
    {PLACE(replays), {"pawl_idempotency_replays_total", "Requests answered from an idempotency record.", METRIC_COUNTER, {"endpoint", NULL}, NULL}},
    {PLACE(mismatches), {"pawl_idempotency_mismatches_total", "Keys used again for another request.", METRIC_COUNTER, {"endpoint", NULL}, NULL}},
    {PLACE(cleanup_failures), {"pawl_idempotency_cleanup_failures_total", "Failed rounds of background cleaning.", METRIC_COUNTER, {"context", NULL}, NULL}},
    {PLACE(commit_seconds), {"pawl_commit_seconds", "Time of one batch from begin to durable.", METRIC_HISTOGRAM, {NULL, NULL}, METRIC_SECONDS}},
    {PLACE(batch_size), {"pawl_commit_batch_size", "Requests made durable by one commit.", METRIC_HISTOGRAM, {NULL, NULL}, METRIC_SIZES}},
    {PLACE(jobs), {"pawl_jobs", "Jobs that wait for a worker.", METRIC_GAUGE, {"queue", "state"}, NULL}},
    {PLACE(outbox_depth), {"pawl_outbox_depth", "Messages that wait for the bus.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(log_bytes), {"pawl_store_log_bytes", "Size of the write-ahead log in use.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(in_flight), {"pawl_requests_in_flight", "Requests that wait for the store.", METRIC_GAUGE, {NULL, NULL}, NULL}},
    {PLACE(queue_waits), {"pawl_queue_wait_seconds", "Time that admitted runs had been queued.", METRIC_HISTOGRAM, {"tenant", NULL}, METRIC_WAITS}},
    {PLACE(queued_runs), {"pawl_queued_runs", "Runs that wait for a slot.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(queued_limit), {"pawl_queued_runs_limit", "Runs that may wait, where the tenant says so.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(queue_oldest), {"pawl_queue_oldest_seconds", "Age of the run that has been queued longest.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(slots_held), {"pawl_slots_held", "Runs that hold a slot.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(slots_limit), {"pawl_slots_limit", "Runs that may be active, where the tenant says so.", METRIC_GAUGE, {"tenant", NULL}, NULL}},
    {PLACE(differences), {"pawl_doctor_differences", "What the last check found to be wrong.", METRIC_GAUGE, {"check", NULL}, NULL}},
    {PLACE(checked_at), {"pawl_doctor_last_run_timestamp_seconds", "When the last check ended.", METRIC_GAUGE, {NULL, NULL}, NULL}},
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
    metric_add(m->cleanup_failures, STR("chores"), STR_NONE, 0);
    metric_add(m->replays, STR("start_run"), STR_NONE, 0);
    metric_add(m->mismatches, STR("start_run"), STR_NONE, 0);
    metric_set(m->outbox_depth, STR_NONE, STR_NONE, 0);
    return true;
}

void engine_metrics_release(struct engine_metrics *m)
{
    tenant_labels_free(m->labels);
}

/* --- counting --- */

static struct str admission_outcome(const struct op *op)
{
    if (op->answer.replayed)
        return STR("replayed");
    switch ((int)op->err) {
    case ERR_OK:
        return str_of(op->answer.outcome);
    case ERR_MAX_CONCURRENT_RUNS:
        return STR("limited");
    case ERR_QUEUE_FULL:
        return STR("queue_full");
    case ERR_RATE_LIMITED:
        return STR("rate_limited");
    case ERR_IDEM_KEY_REUSED:
        return STR("mismatched");
    default:
        return err_http_status(op->err) >= 500 ? STR("unavailable") : STR("refused");
    }
}

void engine_metrics_count(struct engine_metrics *m, const struct op *op, const struct env *env)
{
    struct str endpoint = str_of(op->use_case->name);
    if (op->answer.replayed)
        metric_add(m->replays, endpoint, STR_NONE, 1);
    if (op->err == ERR_IDEM_KEY_REUSED)
        metric_add(m->mismatches, endpoint, STR_NONE, 1);
    if (!op->use_case->admits)
        return;
    struct str tenant = tenant_label(m->labels, op->caller.tenant);
    double seconds = (double)(env_mono_ns(env) - op->submitted_ns) / 1e9;
    metric_add(m->admissions, tenant, admission_outcome(op), 1);
    metric_observe(m->admission_wait, tenant, endpoint, seconds);
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
};

static void add_job_gauge(void *ctx, struct str queue, struct str state, int64_t number)
{
    const struct reading *r = ctx;
    metric_set(r->metrics->jobs, queue, state, (double)number);
}

/* A gauge that tenants past the bound share is their maximum. */
static void raise_gauge(struct metric *gauge, struct str tenant, double value)
{
    metric_set(gauge, tenant, STR_NONE, MAX(value, metric_value(gauge, tenant, STR_NONE)));
}

static void add_tenant_gauges(void *ctx, const struct tenant *t)
{
    const struct reading *r = ctx;
    struct engine_metrics *m = r->metrics;
    struct str tenant = tenant_label(m->labels, t->id);
    raise_gauge(m->slots_held, tenant, (double)t->active_runs);
    raise_gauge(m->queued_runs, tenant, (double)t->queued_runs);
    if (t->max_concurrent_runs >= 0)
        raise_gauge(m->slots_limit, tenant, (double)t->max_concurrent_runs);
    if (t->max_queued_runs >= 0)
        raise_gauge(m->queued_limit, tenant, (double)t->max_queued_runs);
    int64_t oldest = 0;
    if (t->queued_runs > 0 && queue_oldest(r->reader, t->num, &oldest) != ERR_OK)
        LOG(LOG_WARN, "the queue could not be read");
    int64_t age_ms = oldest > 0 ? r->now_ms - runs_num_ms(oldest) : 0;
    raise_gauge(m->queue_oldest, tenant, (double)MAX(age_ms, (int64_t)0) / 1e3);
}

void engine_metrics_read(struct engine_metrics *m, struct db *reader, int64_t now_ms)
{
    struct metric *const gauges[] = {m->jobs,        m->slots_held,   m->slots_limit,
                                     m->queued_runs, m->queued_limit, m->queue_oldest};
    struct reading r = {m, reader, now_ms};
    struct arena arena;
    arena_init(&arena, GAUGE_ARENA_MAX);
    for (size_t i = 0; i < ARRAY_LEN(gauges); i++)
        metric_clear(gauges[i]);
    if (tenants_in_use(reader, &arena, add_tenant_gauges, &r) != ERR_OK)
        LOG(LOG_WARN, "tenants could not be counted");
    if (jobs_count(reader, add_job_gauge, &r) != ERR_OK)
        LOG(LOG_WARN, "jobs could not be counted");
    arena_release(&arena);
}
