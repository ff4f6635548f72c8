/* Starting a run: one transaction in which it is admitted, queued, handed an active run, or refused
 * with nothing left behind. */
#include "core/usecase/start.h"
#include "core/admission/run_limits.h"
#include "core/admission/run_slots.h"
#include "core/run/job_txn.h"
#include "core/run/run_birth.h"
#include "core/run/run_control.h"
#include "core/run/run_txn.h"
#include "core/run/run_view.h"
#include "core/usecase/execute.h"
#include "core/usecase/use_cases.h"

#include "base/json.h"
#include "base/limits.h"
#include "domain/schema/schema.h"

struct start {
    struct op *op;
    struct tx *tx;
    const struct start_run_input *in;
    struct run_txn m;
    struct run_key key;
    struct limits_of_run limits;
};

/* --- may it start at all --- */

/* The newest version of the workflow, if it can be started at all. */
static enum err load_startable(struct start *s)
{
    const struct start_run_input *in = s->in;
    struct problem *p = &s->op->problem;
    struct workflow_newest head;
    enum err e = read_tx_newest(&s->tx->read, s->m.tenant->num, in->workflow_id, &head);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read the workflow");
    if (!head.found || head.archived)
        return problem_set(p, ERR_WORKFLOW_NOT_FOUND,
                           head.archived ? "Workflow \"%.*s\" is archived and starts no new runs"
                                         : "Workflow \"%.*s\" does not exist",
                           STR_ARG(in->workflow_id));
    e = read_tx_definition(&s->tx->read, s->m.tenant->num, in->workflow_id, head.version, p,
                           &s->m.def);
    if (e != ERR_OK)
        return e;
    s->m.run.workflow_version = head.version;
    if (s->m.def->unsupported.len > 0)
        return problem_set(p, ERR_DEFINITION_UNSUPPORTED, "%.*s", STR_ARG(s->m.def->unsupported));
    return ERR_OK;
}

static enum err check_input(struct op *op, const struct definition *def, const struct json *input)
{
    static const struct json NOTHING = {.kind = JSON_KIND_NULL};
    if (def->input_schema == NULL)
        return ERR_OK;
    struct fault_list faults;
    buf_put_char(&op->problem.faults, '[');
    fault_list_init(&faults, &op->problem.faults);
    struct work_budget work = {SCHEMA_WORK_MAX};
    enum schema_verdict verdict =
        schema_check_value(def->input_schema, input != NULL ? input : &NOTHING, &work, &faults);
    size_t count = faults.count;
    fault_list_release(&faults);
    buf_put_char(&op->problem.faults, ']');
    if (!buf_ok(&op->problem.faults)) {
        buf_clear(&op->problem.faults);
        return problem_set(&op->problem, ERR_NO_MEMORY, "No memory to check the input");
    }
    if (verdict == SCHEMA_MISFITS)
        return problem_set(&op->problem, ERR_INPUT_INVALID,
                           "The input violates the workflow's input_schema in %zu place%s", count,
                           count == 1 ? "" : "s");
    buf_clear(&op->problem.faults);
    if (verdict == SCHEMA_GAVE_UP)
        return problem_set(&op->problem, ERR_INPUT_TOO_COMPLEX,
                           "Checking the input against the workflow's input_schema takes too long. "
                           "Send a smaller input or simplify the schema.");
    return ERR_OK;
}

/* A start that makes a run costs a token, whether the run is queued or begins at once. */
static enum err take_token(struct start *s)
{
    struct tenant *t = s->m.tenant;
    struct problem *p = &s->op->problem;
    int64_t wait_ms = 0;
    if (rate_take(&t->rate_limit, s->tx->now_ms, &t->rate_full_at_ns, &wait_ms)) {
        if (t->rate_limit.per_second > 0)
            tx_tenant_touch(s->tx, t);
        return ERR_OK;
    }
    (void)problem_set(
        p, ERR_RATE_LIMITED,
        "Tenant %.*s may start %lld runs per second (burst %lld). Try again in %lld ms.",
        STR_ARG(t->id), (long long)t->rate_limit.per_second, (long long)t->rate_limit.burst,
        (long long)wait_ms);
    problem_add_limit(p, "rate", "starts", t->rate_limit.burst, t->rate_limit.burst);
    problem_add_number(p, "per_second", t->rate_limit.per_second);
    p->retry_after_s = (int)MIN((wait_ms + 999) / 1000, (int64_t)INT32_MAX);
    return p->err;
}

/* --- what comes of it --- */

static enum err answer_run(struct op *op, struct run_txn *m, enum answer_created created,
                           const char *outcome)
{
    const struct step_view *views;
    enum err e = run_txn_show(m, &views);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the run's steps");
    struct answer *a = &op->answer;
    a->has_run = true;
    a->run_id = m->run.id;
    a->run_version = m->run.version;
    a->run_over = run_has_ended(m->run.status);
    a->outcome = outcome;
    answer_begin(a, created);
    run_birth_render(a, &m->run, m->def, views, created == CREATED_NO);
    if (created == CREATED_NO || op->idem.key.len == 0)
        return ERR_OK;
    assert(m->run.revision == 1); /* its row was written last, with what the answer says */
    a->key_in_run = m->run.key != NULL;
    a->key_num = m->run.key_num;
    if (!a->key_in_run)
        a->born = run_birth_facts(m, views);
    return ERR_OK;
}

static void fill_run(struct start *s)
{
    const struct start_run_input *in = s->in;
    int64_t version = s->m.run.workflow_version;
    s->m.run = run_blank();
    s->m.run.workflow_id = in->workflow_id;
    s->m.run.workflow_version = version;
    s->m.run.priority = in->priority;
    s->m.run.input = in->input_text;
    s->m.run.labels = in->labels;
    s->m.run.traceparent = in->traceparent;
    s->m.run.tracestate = in->tracestate;
    s->m.run.created_by = s->op->caller.actor;
    s->m.run.created_at = s->tx->now_ms;
    s->key = (struct run_key){
        .key = s->op->idem.key,
        .route = s->op->idem.route,
        .fingerprint = s->op->idem.fingerprint,
        .raw_hash = s->op->idem.raw_hash,
    };
    if (s->key.key.len > 0) {
        s->m.run.key = &s->key;
        s->m.before_insert = run_birth_place_key;
    }
}

static enum err admit(struct start *s, const char *outcome)
{
    fill_run(s);
    enum err e = limits_store(&s->limits, s->tx, &s->m.run.scopes);
    if (e == ERR_OK)
        e = run_txn_create(&s->m, &s->op->problem);
    if (e != ERR_OK)
        return problem_set(&s->op->problem, e, "Cannot store the run");
    return answer_run(s->op, &s->m, CREATED_YES, outcome);
}

static bool queue_is_full(const struct tenant *t)
{
    return t->queued_runs >= tenant_queue_max(t);
}

static enum err queue_up(struct start *s)
{
    const struct tenant *t = s->m.tenant;
    struct problem *p = &s->op->problem;
    if (queue_is_full(t)) {
        int64_t max = tenant_queue_max(t);
        (void)problem_set(p, ERR_QUEUE_FULL,
                          "The queue is full: %lld of %lld runs of tenant %.*s are queued",
                          (long long)t->queued_runs, (long long)max, STR_ARG(t->id));
        problem_add_limit(p, "queue", "queued-runs", t->queued_runs, max);
        return p->err;
    }
    enum err e = take_token(s);
    if (e != ERR_OK)
        return e;
    fill_run(s);
    e = limits_store(&s->limits, s->tx, &s->m.run.scopes);
    if (e == ERR_OK)
        e = run_txn_create_queued(&s->m, limits_first_full(&s->limits), p);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot queue the run");
    return answer_run(s->op, &s->m, CREATED_YES, "queued");
}

/* A run for later needs no slot yet. */
static enum err delay(struct start *s)
{
    enum err e = take_token(s);
    if (e != ERR_OK)
        return e;
    fill_run(s);
    s->m.run.start_at = s->in->start_at;
    e = run_txn_create_delayed(&s->m, &s->op->problem);
    if (e != ERR_OK)
        return e;
    return answer_run(s->op, &s->m, CREATED_YES, "delayed");
}

static enum err fail_delayed(struct run_txn *m)
{
    m->run.error = error_json(m->tx, "QUEUE_FULL",
                              STR("The tenant's queue was full when the run was due to start"));
    return m->run.error.ptr != NULL ? run_txn_fail(m) : ERR_NO_MEMORY;
}

static enum err queue_delayed(struct run_txn *m, const struct limits_of_run *limits)
{
    m->run.start_at = -1;
    enum err e = run_txn_enter_queue(m, limits_first_full(limits));
    if (e == ERR_OK)
        e = run_txn_add_event(m, EVENT_RUN_QUEUED, STR_NONE);
    return e == ERR_OK ? run_txn_save(m) : e;
}

enum err start_delayed(struct run_txn *m, struct problem *p)
{
    assert(m->run.status == RUN_QUEUED && m->run.start_at >= 0);
    struct limits_of_run limits;
    enum err e = limits_load_again(&limits, m->tx, m->tenant, m->def, &m->run, AT_LIMIT_QUEUE, p);
    if (e != ERR_OK)
        return e;
    bool fits = limits_decide(&limits).verdict == ADMISSION_ADMIT;
    if (!fits && queue_is_full(m->tenant))
        return fail_delayed(m);
    e = limits_store(&limits, m->tx, &m->run.scopes);
    if (e != ERR_OK)
        return e;
    return fits ? run_txn_admit(m) : queue_delayed(m, &limits);
}

/* --- cancel_oldest --- */

struct oldest {
    int64_t run; /* 0: none */
};

static bool take_first(void *ctx, int64_t run)
{
    struct oldest *o = ctx;
    o->run = run;
    return false;
}

/* The runs that hold a slot of the tenant. The next search is to find the index up to date, or
 * every one of many would pass over what other tenants have just started. */
static enum err seek_holders(struct start *s, bool newest_first, holder_each *each, void *ctx)
{
    s->tx->pending->holders_sought = true;
    return active_runs_list(s->tx->db, s->m.tenant->num, newest_first, each, ctx);
}

/* Ends the oldest run that holds a slot under the limit. */
static enum err cancel_one(struct start *s, size_t which)
{
    struct oldest oldest = {0};
    bool of_tenant = which == s->limits.scope_count;
    enum err e = of_tenant
                     ? seek_holders(s, false, take_first, &oldest)
                     : slots_list(s->tx->db, s->limits.scopes[which].num, take_first, &oldest);
    if (e == ERR_OK && oldest.run == 0)
        e = ERR_INTERNAL; /* a limit that is reached has holders */
    struct run_txn victim;
    if (e == ERR_OK)
        e = run_txn_load_other(&victim, s->tx, oldest.run, &s->op->problem);
    if (e == ERR_OK)
        e = run_txn_cancel(&victim, s->op->caller.actor,
                           STR("A newer run took its slot (at_limit: cancel_oldest)"));
    /* A holder that is no run, or over, is damage, and others may have been cancelled already. */
    return err_after_change(e);
}

/* What a limit counts now. */
static enum err recount(struct start *s, size_t which)
{
    if (which == s->limits.scope_count) {
        s->limits.states[which].current = s->m.tenant->active_runs;
        return ERR_OK;
    }
    struct limit_key_row *scope = &s->limits.scopes[which];
    enum err e = limit_keys_find(s->tx->db, scope);
    s->limits.states[which].current = scope->active_runs;
    return e;
}

static enum err make_room(struct start *s, size_t which)
{
    enum err e = recount(s, which);
    while (e == ERR_OK && limit_excess(&s->limits.states[which]) > 0) {
        e = cancel_one(s, which);
        if (e == ERR_OK)
            e = recount(s, which);
    }
    return e;
}

static enum err cancel_oldest(struct start *s, size_t by)
{
    int64_t excess = 0;
    for (size_t i = 0; i <= s->limits.scope_count; i++)
        excess += limit_excess(&s->limits.states[i]);
    /* Only after a limit was lowered by much; and a refusal must come before the first change. */
    if (excess > CANCELLED_PER_START_MAX)
        return limits_reject(&s->limits, by, s->tx, s->m.tenant, &s->op->problem);
    enum err e = take_token(s);
    if (e != ERR_OK)
        return e;
    /* Who holds a slot of a key also holds one of the workflow and the tenant: from the narrowest
     * limit to the widest, nobody is cancelled without need. */
    for (size_t i = 0; i < s->limits.scope_count && e == ERR_OK; i++) {
        if (s->limits.scopes[i].path.len > 0)
            e = make_room(s, i);
    }
    for (size_t i = 0; i <= s->limits.scope_count && e == ERR_OK; i++)
        e = make_room(s, i);
    /* A later limit's victim may have been the last run under an earlier one, which is gone then.
     */
    for (size_t i = 0; i <= s->limits.scope_count && e == ERR_OK; i++)
        e = recount(s, i);
    if (e != ERR_OK)
        return problem_set(&s->op->problem, e, "Cannot make room for the run");
    return admit(s, "replaced_oldest");
}

/* --- coalesce --- */

struct same_workflow {
    struct start *start;
    int64_t looked_at;
    int64_t run; /* 0: none */
    enum err err;
};

static bool is_same_workflow(void *ctx, int64_t run)
{
    struct same_workflow *w = ctx;
    bool same = false;
    w->err = runs_is_of(w->start->tx->db, run, w->start->in->workflow_id, &same);
    if (w->err == ERR_OK && same)
        w->run = run;
    return w->err == ERR_OK && w->run == 0 && ++w->looked_at < COALESCE_SCAN_MAX;
}

/* The newest active run of the same workflow, under the limit that is reached. */
static enum err coalesce(struct start *s, size_t by)
{
    struct same_workflow w = {.start = s};
    enum err e;
    if (by == s->limits.scope_count) {
        e = seek_holders(s, true, is_same_workflow, &w);
    } else {
        bool found = false;
        e = slots_edge(s->tx->db, s->limits.scopes[by].num, true, &found, &w.run);
    }
    if (e == ERR_OK)
        e = w.err;
    if (e == ERR_OK && w.run == 0)
        return limits_reject(&s->limits, by, s->tx, s->m.tenant, &s->op->problem);
    struct run_txn active;
    if (e == ERR_OK)
        e = run_txn_load_other(&active, s->tx, w.run, &s->op->problem);
    if (e != ERR_OK)
        return problem_set(&s->op->problem, e, "Cannot read the active run");
    return answer_run(s->op, &active, CREATED_NO, "coalesced");
}

/* --- all of it --- */

static enum err start_run(struct op *op, struct tx *tx)
{
    struct start s = {.op = op, .tx = tx, .in = op->input, .m = {.read_tx = &tx->read, .tx = tx}};
    enum err e = read_tx_tenant(&tx->read, op, &s.m.tenant);
    if (e == ERR_OK)
        e = load_startable(&s);
    if (e == ERR_OK)
        e = check_input(op, s.m.def, s.in->input);
    if (e == ERR_OK)
        e = tx_pass_gate(tx, op, s.m.tenant);
    if (e == ERR_OK)
        e = limits_load(&s.limits, tx, s.m.tenant, s.m.def, s.in->input, s.in->at_limit,
                        &op->problem);
    if (e != ERR_OK)
        return e;
    if (s.in->start_at > tx->now_ms)
        return delay(&s);
    struct admission decided = limits_decide(&s.limits);
    switch (decided.verdict) {
    case ADMISSION_ADMIT:
        e = take_token(&s);
        return e == ERR_OK ? admit(&s, "admitted") : e;
    case ADMISSION_REJECT:
        return limits_reject(&s.limits, decided.by, tx, s.m.tenant, &op->problem);
    case ADMISSION_QUEUE:
        return queue_up(&s);
    case ADMISSION_CANCEL_OLDEST:
        return cancel_oldest(&s, decided.by);
    case ADMISSION_COALESCE:
        return coalesce(&s, decided.by);
    }
    assert(!"unknown verdict");
    return ERR_INTERNAL;
}

const struct use_case UC_START_RUN = {.name = "start_run", .write = start_run, .admits = "start"};
