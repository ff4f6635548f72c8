/* Controlling runs: cancel, pause, resume, retry, rerun; one at a time or many. Each is
 * idempotent by what it asks for: a run that is already so is shown as it is. */
#include "core/usecase/control.h"
#include "core/admission/run_limits.h"
#include "core/admission/run_slots.h"
#include "core/run/follow_up.h"
#include "core/run/job_txn.h"
#include "core/run/run_control.h"
#include "core/run/run_retry.h"
#include "core/run/run_values.h"
#include "core/run/run_view.h"
#include "core/txn/audit_record.h"
#include "core/usecase/execute.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/run/retention.h"

/* --- shared --- */

enum err run_check_version(struct op *op, const struct run_txn *m, int64_t if_match)
{
    if (if_match < 0 || if_match == m->run.version)
        return ERR_OK;
    enum err e =
        problem_set(&op->problem, ERR_CONCURRENCY, "The run has changed since you read it");
    problem_add_number(&op->problem, "expected", if_match);
    problem_add_number(&op->problem, "actual", m->run.version);
    return e;
}

enum err run_refuse(struct op *op, const struct run_txn *m, enum err code, const char *why)
{
    enum err e =
        problem_set(&op->problem, code, "The run is %s: %s", run_status_name(m->run.status), why);
    problem_add_number(&op->problem, "actual", m->run.version);
    return e;
}

/* Refuses a run that retention has begun to remove. */
static enum err check_whole(struct op *op, const struct run_txn *m)
{
    bool being_removed = false;
    enum err e = retention_has_begun(m->tx->db, m->run.num, &being_removed);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the run's events");
    if (!being_removed)
        return ERR_OK;
    return run_refuse(op, m, ERR_RUN_BEING_REMOVED,
                      "its retention period is over and it is being removed");
}

static enum err show(struct op *op, struct run_txn *m)
{
    const struct step_view *views;
    m->views = NULL; /* what changed here is read again */
    enum err e = run_txn_show(m, &views);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the run's steps");
    op->answer.run_version = m->run.version;
    struct json_out o = json_out_to(&op->answer.body);
    render_run(&o, NULL, &m->run, m->def, views);
    return ERR_OK;
}

enum err run_retry_failed(struct op *op, struct run_txn *m)
{
    if (m->run.status != RUN_FAILED && m->run.status != RUN_TIMED_OUT)
        return run_refuse(op, m, run_has_ended(m->run.status) ? ERR_RUN_IS_OVER : ERR_RUN_NOT_OVER,
                          "only a failed run can be retried");
    if (m->run.parent_run >= 0)
        return run_refuse(op, m, ERR_RUN_IS_A_CHILD,
                          "it is a child run. Retry its parent instead.");
    enum err e = check_whole(op, m);
    if (e != ERR_OK)
        return e;
    bool possible = false;
    enum err read = run_txn_can_retry(m, &possible);
    if (read != ERR_OK)
        return problem_set(&op->problem, read, "Cannot read the run's jobs");
    if (!possible)
        return run_refuse(
            op, m, ERR_RUN_NOT_RETRYABLE,
            "some for_each items failed before they became jobs. Rerun it from that step.");
    struct limits_of_run limits;
    e = limits_load_again(&limits, m->tx, m->tenant, m->def, &m->run, AT_LIMIT_REJECT,
                          &op->problem);
    if (e != ERR_OK)
        return e;
    struct admission decided = limits_decide(&limits);
    if (decided.verdict != ADMISSION_ADMIT)
        return limits_reject(&limits, decided.by, m->tx, m->tenant, &op->problem);
    e = limits_store(&limits, m->tx, &m->run.scopes);
    return e == ERR_OK ? run_txn_retry(m, op->caller.actor) : e;
}

/* --- each action on a loaded run; *ret_changed is false if the run is already in that state --- */

static enum err do_cancel(struct op *op, struct run_txn *m, struct str reason, bool *ret_changed)
{
    *ret_changed = m->run.status != RUN_CANCELLED;
    if (!*ret_changed)
        return ERR_OK;
    if (run_has_ended(m->run.status))
        return run_refuse(op, m, ERR_RUN_IS_OVER, "it can no longer be cancelled");
    return run_txn_cancel(m, op->caller.actor, reason);
}

static enum err do_pause(struct op *op, struct run_txn *m, bool *ret_changed)
{
    *ret_changed = m->run.status != RUN_PAUSED;
    if (!*ret_changed)
        return ERR_OK;
    if (run_has_ended(m->run.status))
        return run_refuse(op, m, ERR_RUN_IS_OVER, "it cannot be paused");
    if (m->run.status != RUN_RUNNING && m->run.status != RUN_WAITING)
        return run_refuse(op, m, ERR_RUN_NOT_UNDER_WAY, "it can be paused once it has started");
    return run_txn_control(m, RUN_ON_PAUSE, op->caller.actor);
}

static enum err do_resume(struct op *op, struct run_txn *m, bool *ret_changed)
{
    *ret_changed = m->run.status == RUN_PAUSED;
    if (*ret_changed)
        return run_txn_control(m, RUN_ON_RESUME, op->caller.actor);
    if (run_has_ended(m->run.status))
        return run_refuse(op, m, ERR_RUN_IS_OVER, "it cannot be resumed");
    return ERR_OK;
}

static enum err do_retry(struct op *op, struct run_txn *m, bool *ret_changed)
{
    *ret_changed = run_has_ended(m->run.status);
    return *ret_changed ? run_retry_failed(op, m) : ERR_OK; /* otherwise it is trying */
}

static enum err act(struct op *op, struct run_txn *m, const struct control_run_input *in,
                    bool *ret_changed)
{
    switch (in->action) {
    case CONTROL_CANCEL:
        return do_cancel(op, m, in->reason, ret_changed);
    case CONTROL_PAUSE:
        return do_pause(op, m, ret_changed);
    case CONTROL_RESUME:
        return do_resume(op, m, ret_changed);
    case CONTROL_RETRY:
        return do_retry(op, m, ret_changed);
    case CONTROL_COUNT:
        break;
    }
    assert(!"unknown action");
    return ERR_INTERNAL;
}

/* The reason is in the run's timeline, which may be removed before the audit trail is: here too. */
static enum err audit_action(struct op *op, const struct run_txn *m,
                             const struct control_run_input *in)
{
    static const char *const ACTIONS[] = {[CONTROL_CANCEL] = "run.cancel",
                                          [CONTROL_PAUSE] = "run.pause",
                                          [CONTROL_RESUME] = "run.resume",
                                          [CONTROL_RETRY] = "run.retry"};
    static_assert(ARRAY_LEN(ACTIONS) == CONTROL_COUNT, "one name per action");
    struct buf detail;
    buf_init(&detail, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&detail);
    json_open(&o, NULL, '{');
    json_add_text(&o, "workflow_id", m->run.workflow_id);
    if (in->reason.ptr != NULL)
        json_add_text(&o, "reason", in->reason);
    json_close(&o, '}');
    enum err e = ERR_NO_MEMORY;
    if (buf_ok(&detail))
        e = audit_record_id(op, m->tx, m->run.tenant, ACTIONS[in->action], m->run.id,
                            buf_str(&detail));
    buf_release(&detail);
    return e;
}

static enum err control_run(struct op *op, struct tx *tx)
{
    const struct control_run_input *in = op->input;
    struct run_txn m;
    bool changed = true;
    enum err e = run_txn_find(&m, op, tx, in->run_id);
    if (e == ERR_OK)
        e = run_check_version(op, &m, in->if_match);
    if (e != ERR_OK)
        return e;
    e = act(op, &m, in, &changed);
    if (e == ERR_OK && changed)
        e = audit_action(op, &m, in);
    if (e != ERR_OK)
        return op->problem.err != ERR_OK ? op->problem.err
                                         : problem_set(&op->problem, e, "Cannot change the run");
    op->answer.changed_nothing = !changed;
    return show(op, &m);
}

const struct use_case UC_CONTROL_RUN = {.name = "control_run", .write = control_run};

/* --- rerun --- */

/* The step that is asked for, those whose effect was undone, and every step that lies behind one
 * of them. */
static void mark_behind(const struct run_txn *old, size_t from, bool *behind)
{
    const struct definition *def = old->def;
    for (size_t i = 0; i < def->step_count; i++)
        behind[i] = i == from || old->progress.steps[i].undo != UNDO_NONE;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < def->step_count; i++) {
            bool now = behind[i];
            for (size_t n = 0; n < def->steps[i].need_count; n++)
                now |= behind[def->steps[i].needs[n]];
            if (def->steps[i].handles_errors)
                now = true; /* an error may lead there again */
            more |= now && !behind[i];
            behind[i] = now;
        }
    }
}

struct copying {
    struct run_txn *to;
    int64_t first;
    enum err err;
};

static void copy_job(void *ctx, const struct job *job)
{
    struct copying *c = ctx;
    struct job copy = *job;
    if (c->err != ERR_OK)
        return;
    copy.owner = c->to->run.num;
    copy.ordinal = c->first + job->item;
    copy.id = jobs_new_id(c->to->tx->env, copy.owner, copy.ordinal);
    copy.dead_at = -1;
    c->err = jobs_insert(c->to->tx->db, &copy);
}

/* The step's jobs and results as they were, under the new run's own ids. */
static enum err copy_step(struct run_txn *to, const struct run_txn *from, size_t step)
{
    const struct step_state *old = &from->progress.steps[step];
    struct step_state *s = &to->progress.steps[step];
    *s = *old;
    s->seq = ++to->progress.order;
    to->progress.settled++;
    if (old->first == 0)
        return ERR_OK;
    s->first = to->progress.jobs + 1;
    to->progress.jobs += old->items;
    struct copying c = {.to = to, .first = s->first};
    enum err e =
        jobs_range(to->tx->db, from->run.num, old->first, old->first + old->items, copy_job, &c);
    if (e == ERR_OK)
        e = c.err;
    if (e != ERR_OK || !old->is_map)
        return e;
    struct str items = STR_NONE;
    e = map_items_find(to->tx->db, from->run.num, (int64_t)step, &to->tx->arena, &items);
    return e == ERR_OK ? map_items_insert(to->tx->db, to->run.num, (int64_t)step, items) : e;
}

static enum err audit_rerun(struct op *op, const struct run_txn *old, const struct run_txn *made)
{
    struct buf detail;
    buf_init(&detail, KIB);
    struct json_out o = json_out_to(&detail);
    json_open(&o, NULL, '{');
    json_add_text(&o, "workflow_id", old->run.workflow_id);
    json_add_uuid(&o, "new_run_id", made->run.id);
    json_close(&o, '}');
    enum err e = ERR_NO_MEMORY;
    if (buf_ok(&detail))
        e = audit_record_id(op, made->tx, old->run.tenant, "run.rerun", old->run.id,
                            buf_str(&detail));
    buf_release(&detail);
    return e;
}

static enum err rerun_run(struct op *op, struct tx *tx)
{
    const struct rerun_run_input *in = op->input;
    struct run_txn old;
    enum err e = run_txn_find(&old, op, tx, in->run_id);
    if (e == ERR_OK)
        e = run_check_version(op, &old, in->if_match);
    if (e != ERR_OK)
        return e;
    size_t from = in->from_step.ptr != NULL ? definition_find_step(old.def, in->from_step) : 0;
    if (from == old.def->step_count)
        return problem_set(&op->problem, ERR_FIELD_INVALID,
                           "from_step: the workflow has no step \"%.*s\"", STR_ARG(in->from_step));
    if (!run_has_ended(old.run.status))
        return run_refuse(op, &old, ERR_RUN_NOT_OVER, "only a run that has ended can be rerun");
    e = check_whole(op, &old);
    if (e == ERR_OK)
        e = tx_pass_gate(tx, op, old.tenant);
    if (e != ERR_OK)
        return e;
    struct limits_of_run limits;
    bool *behind = arena_alloc(&tx->arena, old.def->step_count * sizeof(*behind));
    e = behind != NULL ? limits_load_again(&limits, tx, old.tenant, old.def, &old.run,
                                           AT_LIMIT_REJECT, &op->problem)
                       : ERR_NO_MEMORY;
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot rerun the run");
    struct admission decided = limits_decide(&limits);
    if (decided.verdict != ADMISSION_ADMIT)
        return limits_reject(&limits, decided.by, tx, old.tenant, &op->problem);
    mark_behind(&old, from, behind);
    if (in->from_step.ptr == NULL)
        memset(behind, 1, old.def->step_count * sizeof(*behind));
    struct run_txn m = {
        .read_tx = &tx->read, .tx = tx, .tenant = old.tenant, .def = old.def, .run = run_blank()};
    m.run.workflow_id = old.run.workflow_id;
    m.run.workflow_version = old.run.workflow_version;
    m.run.priority = old.run.priority;
    m.run.input = old.run.input;
    m.run.labels = old.run.labels;
    m.run.traceparent = old.run.traceparent;
    m.run.tracestate = old.run.tracestate;
    m.run.created_by = op->caller.actor;
    m.run.created_at = tx->now_ms;
    m.run.rerun_of = old.run.id;
    e = limits_store(&limits, tx, &m.run.scopes);
    if (e == ERR_OK)
        e = run_txn_create_from(&m, &old, behind, copy_step, &op->problem);
    if (e == ERR_OK)
        e = audit_rerun(op, &old, &m);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the run");
    op->answer.has_run = true;
    op->answer.run_id = m.run.id;
    op->answer.run_version = m.run.version;
    op->answer.run_over = run_has_ended(m.run.status);
    const struct step_view *views;
    m.views = NULL;
    e = run_txn_show(&m, &views);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the run's steps");
    answer_begin(&op->answer, CREATED_YES);
    struct json_out o = json_out_to(&op->answer.body);
    json_add_uuid(&o, "run_id", m.run.id);
    render_run(&o, "run", &m.run, m.def, views);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_RERUN_RUN = {.name = "rerun_run", .write = rerun_run, .admits = "rerun"};

/* --- many runs --- */

struct found_runs {
    struct uuid ids[BULK_RUNS_MAX];
    size_t count;
};

static bool add_found(void *ctx, const struct run *run)
{
    struct found_runs *f = ctx;
    if (f->count == BULK_RUNS_MAX)
        return false; /* the next call goes on with this one */
    f->ids[f->count++] = run->id;
    return true;
}

struct bulk {
    struct op *op;
    struct tx *tx;
    struct json_out o;
    int64_t changed, unchanged;
};

static void answer_refused(struct bulk *b, struct uuid run_id, enum err e, const char *detail)
{
    json_open(&b->o, NULL, '{');
    json_add_uuid(&b->o, "run_id", run_id);
    json_add_text(&b->o, "code", str_of(err_code(e)));
    json_add_text(&b->o, "detail", str_of(detail));
    json_close(&b->o, '}');
}

static enum err change_run(struct bulk *b, struct uuid run_id, bool *ret_changed)
{
    const struct bulk_runs_input *in = b->op->input;
    struct run_txn m;
    enum err e = run_txn_load(&m, b->tx, uuid_time(run_id), &b->op->problem);
    if (e == ERR_OK)
        e = act(b->op, &m, &in->control, ret_changed);
    if (e == ERR_OK && *ret_changed)
        e = audit_action(b->op, &m, &in->control);
    return tx_own_error(b->tx, e);
}

/* All of it or nothing. An error takes the transaction with it. */
static enum err bulk_one(struct bulk *b, struct uuid run_id)
{
    struct op *op = b->op;
    const struct failed_item *failed_items = op_failed_item(op, uuid_time(run_id));
    if (failed_items != NULL) {
        answer_refused(b, run_id, failed_items->err, failed_items->detail);
        return ERR_OK;
    }
    bool changed = false;
    int64_t before = tx_changes(b->tx);
    enum err e = change_run(b, run_id, &changed);
    if (e == ERR_OK) {
        b->changed += changed;
        b->unchanged += !changed;
        return follow_up(b->tx, &op->problem);
    }
    if (err_is_outage(e))
        return e;
    if (tx_changes(b->tx) != before || err_rolls_back(e))
        return op_fail_item(op, uuid_time(run_id), e);
    answer_refused(b, run_id, e, op->problem.detail);
    problem_clear(&op->problem);
    return ERR_OK;
}

static enum err bulk_runs(struct op *op, struct tx *tx)
{
    const struct bulk_runs_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(&tx->read, op, &tenant);
    struct found_runs *found = arena_alloc(&tx->arena, sizeof(*found));
    if (e != ERR_OK || found == NULL)
        return e != ERR_OK ? e : problem_set(&op->problem, ERR_NO_MEMORY, "Out of memory");
    struct run_filter filter = in->filter;
    filter.tenant = tenant->num;
    int64_t next = -1;
    e = runs_list(tx->db, &filter, in->before, add_found, found, &next);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the runs");
    struct bulk b = {.op = op, .tx = tx, .o = json_out_to(&op->answer.body)};
    json_open(&b.o, NULL, '{');
    json_open(&b.o, "refused", '[');
    for (size_t i = 0; i < found->count && e == ERR_OK && !in->dry_run; i++) {
        struct arena_mark mark = arena_mark(&tx->arena);
        e = bulk_one(&b, found->ids[i]);
        if (e == ERR_OK) {
            read_tx_drop_json(&tx->read);
            arena_back_to(&tx->arena, mark);
        }
    }
    json_close(&b.o, ']');
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot change the runs");
    json_add_int(&b.o, "matched", (int64_t)found->count);
    json_add_int(&b.o, "changed", b.changed);
    json_add_int(&b.o, "unchanged", b.unchanged);
    json_add_bool(&b.o, "dry_run", in->dry_run);
    json_add_name(&b.o, "next_cursor");
    if (next >= 0)
        buf_printf(b.o.buf, "\"%lld\"", (long long)next);
    else
        buf_put(b.o.buf, STR("null"));
    b.o.comma = true;
    json_close(&b.o, '}');
    op->answer.changed_nothing = b.changed == 0;
    return ERR_OK;
}

const struct use_case UC_BULK_RUNS = {.name = "bulk_runs", .write = bulk_runs};
