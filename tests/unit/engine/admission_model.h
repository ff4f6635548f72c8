/* What admission promises, worked out the slow way: a list of all runs, and every question answered
 * by looking at each of them. It knows nothing of lines, slices or indexes, so it cannot be wrong
 * in the way in which the engine can. */
#ifndef PAWL_TESTS_ENGINE_ADMISSION_MODEL_H
#define PAWL_TESTS_ENGINE_ADMISSION_MODEL_H

#include "testing.h"

#include "base/limits.h"
#include "domain/admission/admission.h"

#include <string.h>

enum {
    MODEL_TENANTS = 3,
    MODEL_WORKFLOWS = 5,
    MODEL_RULES_MAX = 3,
    MODEL_RUNS_MAX = 1000,
    MODEL_SCOPES_MAX = 3 * MODEL_RUNS_MAX,
    MODEL_KEY_MAX = 8,
};

/* Where a rule looks for its key; the first one is for the whole workflow. */
static const char *const MODEL_PATHS[] = {"", "input.k", "input.g"};
enum { MODEL_WHOLE, MODEL_BY_K, MODEL_BY_G, MODEL_PATH_COUNT };

struct model_rule {
    int path;
    int64_t limit;
    enum at_limit at_limit; /* AT_LIMIT_COUNT: as the tenant says */
};

/* The rules of the newest version, in the order written. */
struct model_workflow {
    bool stored;
    struct model_rule rules[MODEL_RULES_MAX];
    size_t rule_count;
};

static inline bool model_same_rules(const struct model_workflow *a, const struct model_workflow *b)
{
    bool same = a->rule_count == b->rule_count;
    for (size_t i = 0; i < a->rule_count && same; i++)
        same = a->rules[i].path == b->rules[i].path && a->rules[i].limit == b->rules[i].limit &&
               a->rules[i].at_limit == b->rules[i].at_limit;
    return same;
}

struct model_settings {
    int64_t max_concurrent_runs; /* -1: no limit */
    int64_t max_queued_runs;     /* -1: QUEUED_RUNS_MAX */
    enum at_limit at_limit;
    int64_t weight;
};

struct model_tenant {
    struct model_settings settings;
    struct model_workflow workflows[MODEL_WORKFLOWS];
    int64_t active;
    int64_t queued;
    size_t begun[MODEL_RUNS_MAX]; /* its runs, in the order in which they began */
    size_t begun_count;
};

/* What the runs of one workflow with the same key are counted under. */
struct model_scope {
    int tenant;
    int workflow;
    int path;
    char key[MODEL_KEY_MAX];
    int64_t active;
    int64_t queued;
};

enum model_status {
    MODEL_DELAYED, /* waits for its time, and counts nowhere yet */
    MODEL_QUEUED,
    MODEL_ACTIVE,
    MODEL_SUCCEEDED,
    MODEL_FAILED,
    MODEL_CANCELLED
};

/* In the order in which they were made. */
struct model_run {
    int tenant;
    int workflow;
    int64_t priority;
    enum model_status status;
    size_t scopes[MODEL_RULES_MAX]; /* by the rules of the version it was started under */
    size_t scope_count;
    int64_t start_at; /* of a delayed one */
};

struct model {
    struct model_tenant tenants[MODEL_TENANTS];
    struct model_scope scopes[MODEL_SCOPES_MAX];
    size_t scope_count;
    struct model_run runs[MODEL_RUNS_MAX];
    size_t run_count;
    /* The writer has yet to look at their queues, as after a rollback or a change of a workflow's
     * limits. Until it has, starts find free slots kept for those who wait, and nobody who waits
     * begins. */
    bool unlooked[MODEL_TENANTS];
};

/* --- runs and counters --- */

static inline void model_recount(struct model *m)
{
    for (size_t i = 0; i < MODEL_TENANTS; i++)
        m->tenants[i].active = m->tenants[i].queued = 0;
    for (size_t i = 0; i < m->scope_count; i++)
        m->scopes[i].active = m->scopes[i].queued = 0;
    for (size_t i = 0; i < m->run_count; i++) {
        const struct model_run *run = &m->runs[i];
        int64_t active = run->status == MODEL_ACTIVE;
        int64_t queued = run->status == MODEL_QUEUED;
        m->tenants[run->tenant].active += active;
        m->tenants[run->tenant].queued += queued;
        for (size_t j = 0; j < run->scope_count; j++) {
            m->scopes[run->scopes[j]].active += active;
            m->scopes[run->scopes[j]].queued += queued;
        }
    }
}

static inline void model_set_status(struct model *m, size_t run, enum model_status status)
{
    struct model_tenant *t = &m->tenants[m->runs[run].tenant];
    m->runs[run].status = status;
    if (status == MODEL_ACTIVE)
        t->begun[t->begun_count++] = run;
    model_recount(m);
}

static inline bool model_is_over(const struct model *m, size_t run)
{
    enum model_status status = m->runs[run].status;
    return status != MODEL_DELAYED && status != MODEL_QUEUED && status != MODEL_ACTIVE;
}

static inline size_t model_scope(struct model *m, int tenant, int workflow, int path,
                                 const char *key)
{
    for (size_t i = 0; i < m->scope_count; i++) {
        const struct model_scope *s = &m->scopes[i];
        if (s->tenant == tenant && s->workflow == workflow && s->path == path &&
            strcmp(s->key, key) == 0)
            return i;
    }
    assert_true(m->scope_count < MODEL_SCOPES_MAX);
    struct model_scope *s = &m->scopes[m->scope_count];
    *s = (struct model_scope){.tenant = tenant, .workflow = workflow, .path = path};
    (void)snprintf(s->key, sizeof(s->key), "%s", key);
    return m->scope_count++;
}

/* The limit in force: what the newest version says about this path. */
static inline int64_t model_scope_max(const struct model *m, size_t scope)
{
    const struct model_scope *s = &m->scopes[scope];
    const struct model_workflow *w = &m->tenants[s->tenant].workflows[s->workflow];
    for (size_t i = 0; i < w->rule_count; i++) {
        if (w->rules[i].path == s->path)
            return w->rules[i].limit;
    }
    return -1;
}

/* --- the queue --- */

static inline bool model_fits(const struct model *m, const struct model_run *run)
{
    const struct model_tenant *t = &m->tenants[run->tenant];
    int64_t max = t->settings.max_concurrent_runs;
    if (max >= 0 && t->active >= max)
        return false;
    for (size_t i = 0; i < run->scope_count; i++) {
        max = model_scope_max(m, run->scopes[i]);
        if (max >= 0 && m->scopes[run->scopes[i]].active >= max)
            return false;
    }
    return true;
}

/* The tenant's queued runs begin, one after the other: always the one with the highest priority of
 * those that fit, and of these the one made first. Says how many. */
static inline size_t model_dispatch(struct model *m, int tenant)
{
    for (size_t begun = 0; !m->unlooked[tenant]; begun++) {
        const struct model_run *next = NULL;
        for (size_t i = 0; i < m->run_count; i++) {
            const struct model_run *run = &m->runs[i];
            if (run->tenant == tenant && run->status == MODEL_QUEUED && model_fits(m, run) &&
                (next == NULL || run->priority > next->priority))
                next = run;
        }
        if (next == NULL)
            return begun;
        model_set_status(m, (size_t)(next - m->runs), MODEL_ACTIVE);
    }
    return 0;
}

/* The writer has to look at the queues of these tenants, and of those between them and others that
 * it had to look at. */
static inline void model_expect_look(struct model *m, int first, int last)
{
    for (int i = 0; i < MODEL_TENANTS; i++) {
        if (m->unlooked[i]) {
            first = MIN(first, i);
            last = MAX(last, i);
        }
    }
    for (int i = first; i <= last; i++)
        m->unlooked[i] = true;
}

static inline void model_look(struct model *m)
{
    for (int tenant = 0; tenant < MODEL_TENANTS; tenant++) {
        m->unlooked[tenant] = false;
        (void)model_dispatch(m, tenant);
    }
}

/* A run ends, or leaves the queue for good. Says how many begin because of it. */
static inline size_t model_end(struct model *m, size_t run, enum model_status status)
{
    assert_false(model_is_over(m, run));
    model_set_status(m, run, status);
    return model_dispatch(m, m->runs[run].tenant);
}

/* --- starts --- */

struct model_start {
    int tenant;
    int workflow;
    char keys[MODEL_PATH_COUNT][MODEL_KEY_MAX]; /* by path; "": the input has none */
    int64_t priority;
    enum at_limit at_limit; /* AT_LIMIT_COUNT: the request says nothing */
};

enum model_outcome {
    MODEL_ADMITTED,
    MODEL_WAITS,
    MODEL_PUT_OFF,
    MODEL_REPLACED_OLDEST,
    MODEL_COALESCED,
    MODEL_LIMITED,
    MODEL_QUEUE_FULL,
};

struct model_answer {
    enum model_outcome outcome;
    size_t run;             /* that was made or coalesced with */
    const char *limited_by; /* of a refusal, with its numbers */
    int64_t current;
    int64_t limit;
    size_t begun; /* queued runs that begin in the end */
};

/* One limit as a start finds it; the tenant's has no scope. */
struct model_limit {
    bool of_tenant;
    size_t scope;
    int64_t active;
    int64_t queued; /* that its free slots are kept for */
    int64_t max;
    enum at_limit at_limit;
};

struct model_limits {
    struct model_limit all[MODEL_RULES_MAX + 1]; /* rules in the order written, the tenant last */
    size_t count;
};

/* The tenant's limit comes last; then those who are about to leave the queue, and `at_limit`, which
 * beats what rules and tenant say. */
static inline void model_complete(const struct model *m, int tenant, enum at_limit at_limit,
                                  struct model_limits *limits)
{
    const struct model_tenant *t = &m->tenants[tenant];
    limits->all[limits->count++] = (struct model_limit){.of_tenant = true,
                                                        .active = t->active,
                                                        .queued = t->queued,
                                                        .max = t->settings.max_concurrent_runs,
                                                        .at_limit = t->settings.at_limit};
    bool has_room =
        t->settings.max_concurrent_runs < 0 || t->active < t->settings.max_concurrent_runs;
    for (size_t i = 0; i < limits->count; i++) {
        struct model_limit *limit = &limits->all[i];
        if (!m->unlooked[tenant] || !has_room)
            limit->queued = 0;
        if (limit->at_limit == AT_LIMIT_COUNT)
            limit->at_limit = t->settings.at_limit;
        if (at_limit != AT_LIMIT_COUNT)
            limit->at_limit = at_limit;
        if (limit->at_limit == AT_LIMIT_CANCEL_OLDEST && limit->max == 0)
            limit->at_limit = AT_LIMIT_REJECT; /* nobody can be cancelled to make room */
    }
}

static inline struct model_limits model_limits_of(struct model *m, const struct model_start *start)
{
    const struct model_tenant *t = &m->tenants[start->tenant];
    const struct model_workflow *w = &t->workflows[start->workflow];
    struct model_limits limits = {.count = w->rule_count};
    for (size_t i = 0; i < w->rule_count; i++) {
        int path = w->rules[i].path;
        size_t scope = model_scope(m, start->tenant, start->workflow, path, start->keys[path]);
        limits.all[i] = (struct model_limit){.scope = scope,
                                             .active = m->scopes[scope].active,
                                             .queued = m->scopes[scope].queued,
                                             .max = w->rules[i].limit,
                                             .at_limit = w->rules[i].at_limit};
    }
    model_complete(m, start->tenant, start->at_limit, &limits);
    return limits;
}

/* For a run that was made before: its own scopes, each with the limit that is in force now. */
static inline struct model_limits model_limits_again(const struct model *m, size_t run,
                                                     enum at_limit at_limit)
{
    const struct model_run *of = &m->runs[run];
    struct model_limits limits = {.count = of->scope_count};
    for (size_t i = 0; i < of->scope_count; i++)
        limits.all[i] = (struct model_limit){.scope = of->scopes[i],
                                             .active = m->scopes[of->scopes[i]].active,
                                             .queued = m->scopes[of->scopes[i]].queued,
                                             .max = model_scope_max(m, of->scopes[i])};
    model_complete(m, of->tenant, at_limit, &limits);
    return limits;
}

/* The limit that decides: of those reached, the first with the most careful policy. */
static inline const struct model_limit *model_reached(const struct model_limits *limits)
{
    static const enum at_limit MOST_CAREFUL_FIRST[] = {AT_LIMIT_REJECT, AT_LIMIT_COALESCE,
                                                       AT_LIMIT_QUEUE, AT_LIMIT_CANCEL_OLDEST};
    for (size_t p = 0; p < ARRAY_LEN(MOST_CAREFUL_FIRST); p++) {
        for (size_t i = 0; i < limits->count; i++) {
            const struct model_limit *limit = &limits->all[i];
            if (limit->at_limit == MOST_CAREFUL_FIRST[p] && limit->max >= 0 &&
                limit->active + limit->queued >= limit->max)
                return limit;
        }
    }
    return NULL;
}

static inline const char *model_kind(const struct model *m, const struct model_limit *limit)
{
    if (limit->of_tenant)
        return "tenant";
    return m->scopes[limit->scope].path == MODEL_WHOLE ? "workflow" : "key";
}

static inline struct model_answer model_limited(const struct model *m,
                                                const struct model_limit *limit)
{
    int64_t taken = limit->active + limit->queued;
    if (taken > limit->max) /* those who wait take what is free, and no more */
        taken = limit->active > limit->max ? limit->active : limit->max;
    return (struct model_answer){.outcome = MODEL_LIMITED,
                                 .limited_by = model_kind(m, limit),
                                 .current = taken,
                                 .limit = limit->max};
}

static inline bool model_counts_under(const struct model_run *run, int tenant,
                                      const struct model_limit *limit)
{
    if (limit->of_tenant)
        return run->tenant == tenant;
    for (size_t i = 0; i < run->scope_count; i++) {
        if (run->scopes[i] == limit->scope)
            return true;
    }
    return false;
}

static inline size_t model_make_run(struct model *m, const struct model_start *start,
                                    const struct model_limits *limits, enum model_status status)
{
    assert_true(m->run_count < MODEL_RUNS_MAX);
    struct model_run *run = &m->runs[m->run_count];
    *run = (struct model_run){
        .tenant = start->tenant, .workflow = start->workflow, .priority = start->priority};
    for (size_t i = 0; i + 1 < limits->count; i++)
        run->scopes[run->scope_count++] = limits->all[i].scope;
    m->run_count++;
    model_set_status(m, m->run_count - 1, status);
    return m->run_count - 1;
}

static inline struct model_answer model_queue_up(struct model *m, const struct model_start *start,
                                                 const struct model_limits *limits)
{
    const struct model_tenant *t = &m->tenants[start->tenant];
    int64_t max = t->settings.max_queued_runs;
    if (max >= 0 && t->queued >= max)
        return (struct model_answer){
            .outcome = MODEL_QUEUE_FULL, .limited_by = "queue", .current = t->queued, .limit = max};
    return (struct model_answer){.outcome = MODEL_WAITS,
                                 .run = model_make_run(m, start, limits, MODEL_QUEUED)};
}

/* The oldest active runs under the limit go, until one more fits. */
static inline void model_make_room(struct model *m, int tenant, const struct model_limit *limit)
{
    for (size_t run = 0; run < m->run_count; run++) {
        int64_t active =
            limit->of_tenant ? m->tenants[tenant].active : m->scopes[limit->scope].active;
        if (limit->max < 0 || active < limit->max)
            return;
        if (m->runs[run].status == MODEL_ACTIVE && model_counts_under(&m->runs[run], tenant, limit))
            model_set_status(m, run, MODEL_CANCELLED);
    }
}

/* From the narrowest limit to the widest: keys in the order written, the workflow, the tenant. */
static inline struct model_answer model_replace(struct model *m, const struct model_start *start,
                                                const struct model_limits *limits,
                                                const struct model_limit *by)
{
    int64_t excess = 0;
    for (size_t i = 0; i < limits->count; i++) {
        const struct model_limit *limit = &limits->all[i];
        if (limit->max >= 0 && limit->active >= limit->max)
            excess += limit->active - limit->max + 1;
    }
    if (excess > CANCELLED_PER_START_MAX)
        return model_limited(m, by);
    static const char *const NARROWEST_FIRST[] = {"key", "workflow", "tenant"};
    for (size_t kind = 0; kind < ARRAY_LEN(NARROWEST_FIRST); kind++) {
        for (size_t i = 0; i < limits->count; i++) {
            if (strcmp(model_kind(m, &limits->all[i]), NARROWEST_FIRST[kind]) == 0)
                model_make_room(m, start->tenant, &limits->all[i]);
        }
    }
    struct model_answer answer = {.outcome = MODEL_REPLACED_OLDEST,
                                  .run = model_make_run(m, start, limits, MODEL_ACTIVE)};
    answer.begun = model_dispatch(m, start->tenant);
    return answer;
}

/* The newest active run of the workflow under the limit that is reached. */
static inline struct model_answer model_coalesce(const struct model *m,
                                                 const struct model_start *start,
                                                 const struct model_limit *by)
{
    for (size_t i = m->run_count; i > 0; i--) {
        const struct model_run *run = &m->runs[i - 1];
        if (run->status == MODEL_ACTIVE && run->workflow == start->workflow &&
            model_counts_under(run, start->tenant, by))
            return (struct model_answer){.outcome = MODEL_COALESCED, .run = i - 1};
    }
    return model_limited(m, by);
}

static inline struct model_answer model_start(struct model *m, const struct model_start *start)
{
    struct model_limits limits = model_limits_of(m, start);
    const struct model_limit *by = model_reached(&limits);
    if (by == NULL)
        return (struct model_answer){.outcome = MODEL_ADMITTED,
                                     .run = model_make_run(m, start, &limits, MODEL_ACTIVE)};
    switch (by->at_limit) {
    case AT_LIMIT_REJECT:
    case AT_LIMIT_COUNT:
        return model_limited(m, by);
    case AT_LIMIT_QUEUE:
        return model_queue_up(m, start, &limits);
    case AT_LIMIT_CANCEL_OLDEST:
        return model_replace(m, start, &limits, by);
    case AT_LIMIT_COALESCE:
        return model_coalesce(m, start, by);
    }
    fail_msg("a policy that the model does not know");
    return (struct model_answer){0};
}

/* --- other ways to begin --- */

/* A run for later: no limit is asked yet. */
static inline struct model_answer model_put_off(struct model *m, const struct model_start *start,
                                                int64_t start_at)
{
    struct model_limits limits = model_limits_of(m, start);
    size_t run = model_make_run(m, start, &limits, MODEL_DELAYED);
    m->runs[run].start_at = start_at;
    return (struct model_answer){.outcome = MODEL_PUT_OFF, .run = run};
}

/* Its time has come: it begins, or waits, or fails because nobody may wait any more. */
static inline void model_due(struct model *m, size_t run)
{
    const struct model_tenant *t = &m->tenants[m->runs[run].tenant];
    struct model_limits limits = model_limits_again(m, run, AT_LIMIT_QUEUE);
    int64_t max = t->settings.max_queued_runs;
    if (model_reached(&limits) == NULL)
        model_set_status(m, run, MODEL_ACTIVE);
    else
        model_set_status(m, run, max >= 0 && t->queued >= max ? MODEL_FAILED : MODEL_QUEUED);
}

/* A failed run tries again, if there is room for it. */
static inline struct model_answer model_retry(struct model *m, size_t run)
{
    struct model_limits limits = model_limits_again(m, run, AT_LIMIT_REJECT);
    const struct model_limit *by = model_reached(&limits);
    if (by != NULL)
        return model_limited(m, by);
    m->runs[run].status = MODEL_ACTIVE; /* it began before, and keeps that time */
    model_recount(m);
    return (struct model_answer){.outcome = MODEL_ADMITTED, .run = run};
}

/* The same once more, as a new run under the same rules. */
static inline struct model_answer model_rerun(struct model *m, size_t run)
{
    struct model_limits limits = model_limits_again(m, run, AT_LIMIT_REJECT);
    const struct model_limit *by = model_reached(&limits);
    const struct model_run *old = &m->runs[run];
    struct model_start start = {
        .tenant = old->tenant, .workflow = old->workflow, .priority = old->priority};
    if (by != NULL)
        return model_limited(m, by);
    return (struct model_answer){.outcome = MODEL_ADMITTED,
                                 .run = model_make_run(m, &start, &limits, MODEL_ACTIVE)};
}

#endif
