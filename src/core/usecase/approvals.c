/* What people decide: the list of what waits for them, one approval, approve and reject. */
#include "core/run/approval_txn.h"
#include "core/run/run_advance.h"
#include "core/txn/audit_record.h"
#include "core/txn/job_row.h"
#include "core/txn/page.h"
#include "core/usecase/execute.h"
#include "core/usecase/job_owners.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

/* --- showing --- */

/* All but the closing brace. */
static void show_approval(struct json_out *o, const struct run_txn *m, const struct job *job,
                          const struct approval *a)
{
    const struct step_def *step = job_step(m->def, job);
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", job->id);
    json_add_uuid(o, "run_id", m->run.id);
    json_add_text(o, "workflow_id", m->run.workflow_id);
    json_add_text(o, "step", step->name);
    json_add_text(o, "type", str_of(step_type_name(step->type)));
    if (step->for_each != NULL)
        json_add_int(o, "item", job->item);
    json_add_text(o, "status", str_of(approval_status_name(a->status)));
    json_add_text(o, "prompt", a->prompt);
    json_add_raw(o, "content", a->content);
    json_add_text(o, "content_hash", a->content_hash);
    json_add_text(o, "requested_by", a->requested_by);
    json_add_time(o, "requested_at", a->requested_at);
    json_add_time(o, "expires_at", a->expires_at);
    json_add_text(o, "on_expire", str_of(on_expire_name(a->ask.on_expire)));
    render_approvers(o, "approvers", &a->ask.approvers);
    json_add_bool(o, "forbid_requester", a->ask.forbid_requester);
    json_add_int(o, "approvals", a->votes);
    json_add_int(o, "needed", a->ask.count);
    json_add_int(o, "reminded", a->reminded);
    json_add_time(o, "escalated_at", a->escalated_at);
    if (a->escalated_at >= 0)
        render_approvers(o, "escalated_to", &a->ask.escalated);
    json_add_text_or_null(o, "decided_by", a->decided_by);
    json_add_time(o, "decided_at", a->decided_at);
    json_add_text_or_null(o, "reason", a->reason);
    json_add_raw(o, "edited", a->edited);
    json_add_int(o, "replays", a->replays);
    json_add_int(o, "conflicts", a->conflicts);
}

/* --- lists --- */

struct approvals_page {
    struct page page;
    struct read_tx *tx;
    enum err err;
};

static enum err add_row(struct approvals_page *p, const struct approval *listed)
{
    struct approval a = *listed;
    struct run_txn m;
    struct job job;
    bool found = false;
    struct problem problem;
    problem_init(&problem);
    enum err e = run_txn_read(&m, p->tx, a.run, &problem);
    problem_release(&problem);
    if (e == ERR_OK)
        e = jobs_find_at(p->tx->db, a.run, a.ordinal, &p->tx->arena, &found, &job);
    if (e == ERR_OK && !found)
        e = ERR_DAMAGED;
    if (e == ERR_OK)
        e = approval_load_ask(p->tx, m.def, &job, &a);
    if (e != ERR_OK)
        return e;
    show_approval(&p->page.out, &m, &job, &a);
    json_close(&p->page.out, '}');
    return ERR_OK;
}

static void set_last(struct page *page, const struct approval *a)
{
    char last[64];
    (void)snprintf(last, sizeof(last), "%lld.%lld.%lld", (long long)a->requested_at,
                   (long long)a->run, (long long)a->ordinal);
    page_set_last(page, str_of(last));
}

static bool add_approval(void *ctx, const struct approval *a)
{
    struct approvals_page *p = ctx;
    if (!page_takes(&p->page))
        return false;
    p->err = add_row(p, a);
    set_last(&p->page, a);
    return p->err == ERR_OK;
}

static enum err list_approvals(struct op *op, struct read_tx *tx)
{
    const struct list_approvals_input *in = op->input;
    struct tenant *tenant;
    int64_t behind[3];
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    if (in->cursor.ptr != NULL && !page_read_place(in->cursor, behind))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct approvals_page p = {.page = page_begin(op, in->limit), .tx = tx};
    e = approvals_list(tx->db, tenant->num, in->status, in->oldest_first,
                       in->cursor.ptr != NULL ? behind : NULL, add_approval, &p);
    if (e == ERR_OK)
        e = p.err;
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the approvals");
    page_end(&p.page);
    return ERR_OK;
}

const struct use_case UC_LIST_APPROVALS = {.name = "list_approvals", .read = list_approvals};

/* --- one --- */

struct found_approval {
    struct job job;
    struct run_txn m;
    bool asked; /* somebody was asked about the job */
    struct approval approval;
};

/* ERR_APPROVAL_NOT_FOUND when there is not even such a job, or it is the call of an entity, which
 * nobody is ever asked about. */
static enum err find_approval(struct op *op, struct read_tx *tx, struct uuid job_id,
                              struct found_approval *ret)
{
    struct tenant *tenant;
    bool found = false;
    ret->asked = false;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    if (tenant->num != 0)
        e = jobs_find(tx->db, tenant->num, job_id, &tx->arena, &found, &ret->job);
    if (e == ERR_OK && (!found || !job_owner_of(&ret->job)->asks))
        return problem_set(&op->problem, ERR_APPROVAL_NOT_FOUND, "This job does not exist");
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the approval");
    e = run_txn_read(&ret->m, tx, ret->job.owner, &op->problem);
    if (e != ERR_OK)
        return e;
    e = approval_find(tx, ret->m.def, &ret->job, &ret->asked, &ret->approval);
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot read the approval");
}

static void add_vote(void *ctx, const struct vote *v)
{
    struct json_out *o = ctx;
    json_open(o, NULL, '{');
    json_add_text(o, "by", v->actor);
    json_add_time(o, "at", v->at);
    json_add_text_or_null(o, "reason", v->reason);
    json_close(o, '}');
}

static enum err get_approval(struct op *op, struct read_tx *tx)
{
    const struct get_job_input *in = op->input;
    struct found_approval f;
    enum err e = find_approval(op, tx, in->job_id, &f);
    if (e != ERR_OK)
        return e;
    if (!f.asked)
        return problem_set(&op->problem, ERR_APPROVAL_NOT_FOUND, "This job needs no approval");
    struct json_out o = json_out_to(&op->answer.body);
    show_approval(&o, &f.m, &f.job, &f.approval);
    json_open(&o, "votes", '[');
    e = votes_list(tx->db, f.job.owner, f.job.ordinal, add_vote, &o);
    json_close(&o, ']');
    json_close(&o, '}');
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot read the votes");
}

const struct use_case UC_GET_APPROVAL = {.name = "get_approval", .read = get_approval};

/* --- deciding --- */

struct deciding {
    struct op *op;
    struct tx *tx;
    const struct decide_input *in;
    enum approval_action action;
    struct found_approval f;
    const struct approval_ask *ask;
    bool edits; /* the caller has made something else of the content */
};

/* As the clock has it: the timer may be about to fire. */
static enum approval_status status_now(const struct deciding *d)
{
    const struct approval *a = &d->f.approval;
    bool late =
        a->status == APPROVAL_PENDING && a->expires_at >= 0 && a->expires_at <= d->tx->now_ms;
    return late ? APPROVAL_EXPIRED : a->status;
}

static enum err see_edit(struct deciding *d)
{
    const struct str shown = d->f.approval.content;
    if (d->in->edited == NULL)
        return ERR_OK;
    struct json *content = NULL;
    enum err e = json_read_kept(shown, &content);
    if (e != ERR_OK)
        return e;
    d->edits = !json_same(content, d->in->edited);
    json_free(content);
    return ERR_OK;
}

static enum err facts_of(struct deciding *d, unsigned *ret)
{
    const struct caller *who = &d->op->caller;
    const struct approval *a = &d->f.approval;
    bool voted = false;
    enum err e = see_edit(d);
    if (e == ERR_OK)
        e = votes_has(d->tx->db, a->run, a->ordinal, who->actor, &voted);
    int64_t votes = d->edits ? 1 : a->votes + 1;
    bool stranger = !approval_may_decide(d->ask, a->escalated_at >= 0, who->actor, who->role);
    bool self = d->ask->forbid_requester && str_eq(who->actor, a->requested_by);
    bool stale = d->in->expected_hash.ptr != NULL && !str_eq(d->in->expected_hash, a->content_hash);
    *ret = (stranger ? APPROVAL_STRANGER : 0u) | (voted && !d->edits ? APPROVAL_VOTED : 0u) |
           (self ? APPROVAL_SELF : 0u) | (stale ? APPROVAL_STALE : 0u) |
           (votes < d->ask->count ? APPROVAL_SHORT : 0u);
    return e;
}

static void answer(struct deciding *d, enum approval_verdict verdict)
{
    const struct approval *a = &d->f.approval;
    struct json_out o = json_out_to(&d->op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", d->f.job.id);
    json_add_text(&o, "status", str_of(approval_verdict_word(verdict)));
    if (a->status == APPROVAL_APPROVED) {
        json_add_text(&o, "approved_by", a->decided_by);
        json_add_time(&o, "approved_at", a->decided_at);
    } else if (a->status == APPROVAL_REJECTED) {
        json_add_text(&o, "rejected_by", a->decided_by);
        json_add_time(&o, "rejected_at", a->decided_at);
    }
    if (d->action == APPROVAL_APPROVE) {
        json_add_int(&o, "approvals", a->votes);
        json_add_int(&o, "needed", d->ask->count);
    }
    json_add_text_or_null(&o, "reason", a->reason);
    json_add_uuid(&o, "run_id", d->f.m.run.id);
    json_add_text(&o, "run_status", str_of(run_status_name(d->f.m.run.status)));
    json_close(&o, '}');
}

/* --- what came of it --- */

static enum err replay(struct deciding *d, enum approval_verdict verdict)
{
    const struct approval *a = &d->f.approval;
    enum err e = approvals_count(d->tx->db, a->run, a->ordinal, false);
    d->op->answer.changed_nothing = true;
    d->op->answer.already_decided = true;
    answer(d, verdict);
    return e;
}

static void add_time(struct problem *p, const char *name, int64_t ms)
{
    struct buf text;
    buf_init(&text, 64);
    buf_put_time(&text, ms);
    problem_add_text(p, name, buf_str(&text));
    buf_release(&text);
}

static enum err refuse(struct deciding *d, enum err why)
{
    const struct approval *a = &d->f.approval;
    struct problem *p = &d->op->problem;
    switch ((int)why) {
    case ERR_NOT_AN_APPROVER:
        return problem_set(p, why, "%.*s is not an approver for this step",
                           STR_ARG(d->op->caller.actor));
    case ERR_APPROVAL_CONFLICT:
        (void)problem_set(p, why, "Already %s by %.*s", approval_status_name(a->status),
                          STR_ARG(a->decided_by));
        problem_add_text(p, "decision", str_of(approval_status_name(a->status)));
        problem_add_text(p, "decided_by", a->decided_by);
        add_time(p, "decided_at", a->decided_at);
        break;
    case ERR_APPROVAL_EXPIRED:
        (void)problem_set(p, why, "The approval expired without a decision (outcome: %s)",
                          on_expire_name(d->ask->on_expire));
        problem_add_text(p, "outcome", str_of(on_expire_name(d->ask->on_expire)));
        add_time(p, "expired_at", a->expires_at);
        break;
    case ERR_NOT_AWAITING_APPROVAL:
        (void)problem_set(p, why,
                          "The job is not awaiting approval: the job is %s and its run is %s",
                          job_state_name(d->f.job.state), run_status_name(d->f.m.run.status));
        problem_add_text(p, "job_state", str_of(job_state_name(d->f.job.state)));
        break;
    case ERR_APPROVAL_STALE:
        (void)problem_set(p, why,
                          "The content no longer matches expected_hash. Read the approval again.");
        problem_add_text(p, "content_hash", a->content_hash);
        break;
    default:
        assert(why == ERR_SELF_APPROVAL);
        (void)problem_set(p, why, "%.*s made this request. Someone else must approve it.",
                          STR_ARG(a->requested_by));
        break;
    }
    enum err e = approvals_count(d->tx->db, a->run, a->ordinal, true);
    d->op->answer.refusal_wrote = true;
    return e == ERR_OK ? why : problem_set(p, e, "Cannot count the refusal");
}

static enum err audit(struct deciding *d, const char *action)
{
    const struct approval *a = &d->f.approval;
    struct buf text;
    buf_init(&text, 16 * KIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "run_id", d->f.m.run.id);
    json_add_text(&o, "step", job_step(d->f.m.def, &d->f.job)->name);
    json_add_text(&o, "content_hash", a->content_hash);
    json_add_text_or_null(&o, "reason", d->in->reason);
    json_add_bool(&o, "edited", d->edits);
    json_close(&o, '}');
    enum err e = buf_ok(&text) ? audit_record_id(d->op, d->tx, d->f.m.run.tenant, action,
                                                 d->f.job.id, buf_str(&text))
                               : ERR_NO_MEMORY;
    buf_release(&text);
    return e;
}

static enum err store_vote(struct deciding *d)
{
    const struct approval *a = &d->f.approval;
    struct vote vote = {d->op->caller.actor, d->tx->now_ms, d->in->reason};
    enum err e = ERR_OK;
    if (d->edits) /* nobody else has seen it yet */
        e = votes_clear(d->tx->db, a->run, a->ordinal);
    return e == ERR_OK ? votes_insert(d->tx->db, a->run, a->ordinal, &vote) : e;
}

/* The approval itself is written first: a race that was lost shows there, and nothing is changed.
 */
static enum err settle(struct deciding *d)
{
    struct approval *a = &d->f.approval;
    bool approved = d->action == APPROVAL_APPROVE;
    a->status = approved ? APPROVAL_APPROVED : APPROVAL_REJECTED;
    a->decided_by = d->op->caller.actor;
    a->reason = d->in->reason;
    if (approved)
        a->votes = d->edits ? 1 : a->votes + 1;
    if (d->edits)
        a->edited = d->in->edited_text;
    enum err e = approval_settle(&d->f.m, &d->f.job, a, a->content_hash);
    if (e == ERR_OK)
        e = run_txn_advance(&d->f.m);
    if (e == ERR_OK && approved)
        e = store_vote(d);
    return e == ERR_OK ? audit(d, approved ? "approval.approve" : "approval.reject") : e;
}

/* One vote of several. Who edits shows the others something new, and theirs were for the old. */
static enum err record(struct deciding *d)
{
    struct approval *a = &d->f.approval;
    struct str shown = a->content_hash;
    enum err e = ERR_OK;
    a->votes = d->edits ? 1 : a->votes + 1;
    if (d->edits) {
        a->content = a->edited = d->in->edited_text;
        e = approval_hash(d->tx, a->prompt, a->content, &a->content_hash);
    }
    if (e == ERR_OK)
        e = approvals_update(d->tx->db, a, shown);
    if (e == ERR_OK)
        e = store_vote(d);
    if (e == ERR_OK)
        e = audit(d, "approval.vote");
    if (e == ERR_OK)
        e = approval_add_vote_event(&d->f.m, &d->f.job, a, d->op->caller.actor, d->edits);
    return e;
}

static enum err act(struct deciding *d, enum approval_verdict verdict)
{
    enum err why = approval_verdict_err(verdict);
    if (why != ERR_OK)
        return refuse(d, why);
    if (approval_verdict_is_replay(verdict))
        return replay(d, verdict);
    enum err e = verdict == VERDICT_RECORDED ? record(d) : settle(d);
    answer(d, verdict);
    return e;
}

static enum err decide(struct op *op, struct tx *tx, enum approval_action action)
{
    struct deciding d = {.op = op, .tx = tx, .in = op->input, .action = action};
    unsigned facts = 0;
    enum err e = find_approval(op, &tx->read, d.in->job_id, &d.f);
    if (e == ERR_OK)
        e = run_txn_begin_change(&d.f.m, tx, &op->problem);
    if (e != ERR_OK)
        return e;
    if (!d.f.asked)
        return problem_set(&op->problem, ERR_NOT_AWAITING_APPROVAL, "This job needs no approval");
    d.ask = &d.f.approval.ask;
    e = facts_of(&d, &facts);
    if (e == ERR_OK)
        e = act(&d, approval_decide(status_now(&d), action, facts));
    if (e == ERR_OK || op->problem.err != ERR_OK)
        return e;
    if (e == ERR_CONCURRENT_APPROVAL)
        return problem_set(&op->problem, e, "Someone decided this a moment ago. Try again.");
    /* Rows may have changed: only a rollback undoes that. */
    return problem_set(&op->problem, err_after_change(e), "The decision could not be stored: %s",
                       err_code(e));
}

static enum err approve(struct op *op, struct tx *tx)
{
    return decide(op, tx, APPROVAL_APPROVE);
}

static enum err reject(struct op *op, struct tx *tx)
{
    return decide(op, tx, APPROVAL_REJECT);
}

const struct use_case UC_APPROVE = {.name = "approve", .write = approve, .decides = true};
const struct use_case UC_REJECT = {.name = "reject", .write = reject, .decides = true};
