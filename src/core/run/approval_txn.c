/* Asking people and taking their answers. */
#include "core/run/approval_txn.h"

#include "base/limits.h"
#include "core/run/job_txn.h"
#include "core/run/run_values.h"
#include "core/run/suspension.h"
#include "store/audit.h"

enum { PROMPT_SHOWN_MAX = 64 * KIB, TOLD_MAX = 1 * MIB };

static const struct json NOTHING = {.kind = JSON_KIND_NULL};

/* --- asking --- */

enum err approval_load_ask(struct read_tx *tx, const struct definition *def, const struct job *job,
                           struct approval *a)
{
    struct json *ask = NULL;
    if (a->ask_text.ptr == NULL) {
        a->ask = job_step(def, job)->ask;
        return ERR_OK;
    }
    enum err e = json_read_kept(a->ask_text, &ask);
    if (e != ERR_OK)
        return e;
    if (!read_tx_keep_json(tx, ask))
        return ERR_NO_MEMORY;
    a->ask = approval_ask_of(ask);
    return ERR_OK;
}

enum err approval_find(struct read_tx *tx, const struct definition *def, const struct job *job,
                       bool *ret_found, struct approval *ret)
{
    enum err e = approvals_find(tx->db, job->owner, job->ordinal, &tx->arena, ret_found, ret);
    return e == ERR_OK && *ret_found ? approval_load_ask(tx, def, job, ret) : e;
}

static enum err fill(struct run_txn *m, const struct json *template, const struct json *item,
                     struct problem *p, const struct json **ret)
{
    *ret = template;
    return expr_has_template(template) ? values_fill(m, template, item, p, ret) : ERR_OK;
}

static enum err compose_prompt(struct run_txn *m, const struct job *job, const struct json *item,
                               struct problem *p, struct str *ret)
{
    const struct approval_ask *ask = &job_step(m->def, job)->ask;
    if (ask->prompt == NULL) {
        char text[2 * NAME_MAX_LEN + 64];
        (void)snprintf(text, sizeof(text), "May step %.*s of workflow %.*s be done?",
                       STR_ARG(job_step(m->def, job)->name), STR_ARG(m->run.workflow_id));
        *ret = arena_str(&m->tx->arena, str_of(text));
        return ret->ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    const struct json *filled = NULL;
    enum err e = fill(m, ask->prompt, item, p, &filled);
    if (e != ERR_OK)
        return e;
    *ret = json_text_of(filled); /* what is no text is shown as JSON */
    if (!json_is(filled, JSON_KIND_TEXT))
        e = values_text(m->tx, filled, ret);
    if (e == ERR_OK && ret->len > PROMPT_SHOWN_MAX)
        return problem_set(p, ERR_EXPRESSION,
                           "The prompt has more than %d bytes after its values were filled in",
                           PROMPT_SHOWN_MAX);
    return e;
}

static enum err parse_kept(struct tx *tx, struct str text, const struct json **ret)
{
    struct json *json = NULL;
    enum err e = json_read_kept(text, &json);
    if (e != ERR_OK)
        return e;
    if (!read_tx_keep_json(&tx->read, json))
        return ERR_NO_MEMORY;
    *ret = json;
    return ERR_OK;
}

/* Without a content of its own a task shows what it will be given. */
static enum err compose_content(struct run_txn *m, const struct job *job, const struct json *item,
                                struct problem *p, const struct json **ret)
{
    const struct step_def *step = job_step(m->def, job);
    if (step->ask.content != NULL)
        return fill(m, step->ask.content, item, p, ret);
    if (step_type_is(step->type, STEP_ASKS)) {
        *ret = &NOTHING;
        return ERR_OK;
    }
    if (job->input.ptr == NULL && step->input != NULL) {
        *ret = step->input;
        return ERR_OK;
    }
    return parse_kept(m->tx, job->input.ptr != NULL ? job->input : m->run.input, ret);
}

enum err approval_hash(struct tx *tx, struct str prompt, struct str content, struct str *ret)
{
    struct json *value = NULL;
    enum err e = json_read_kept(content, &value);
    if (e != ERR_OK)
        return e;
    struct buf text;
    struct buf hex;
    buf_init(&text, 2 * JSON_WRITTEN_MAX);
    buf_init(&hex, 2 * SHA256_LEN);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_name(&o, "content");
    json_write_canonical(&text, value);
    json_free(value);
    json_add_text(&o, "prompt", prompt);
    json_close(&o, '}');
    struct sha256 hash = sha256_of(buf_str(&text));
    buf_put_hex(&hex, hash.bytes, SHA256_LEN);
    bool ok = buf_ok(&text) && buf_ok(&hex);
    *ret = ok ? arena_str(&tx->arena, buf_str(&hex)) : STR_NONE;
    buf_release(&text);
    buf_release(&hex);
    return ret->ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}

/* The end of an approval step's own time; a task's begins when it is handed out. */
static int64_t gives_up_at(const struct run_txn *m, const struct job *job)
{
    const struct step_def *step = job_step(m->def, job);
    bool limited = step_type_is(step->type, STEP_ASKS) && step->timeout_ms >= 0;
    return limited ? job->created_at + step->timeout_ms : -1;
}

static int64_t due_of(const struct run_txn *m, const struct job *job, const struct approval *a)
{
    int64_t due = approval_next_due(&a->ask, a->requested_at, a->expires_at, a->reminded,
                                    a->escalated_at >= 0);
    return earlier_due(due, gives_up_at(m, job));
}

static struct approval blank(const struct run_txn *m, const struct job *job,
                             const struct approval_ask *ask)
{
    int64_t now = m->tx->now_ms;
    return (struct approval){
        .run = m->run.num,
        .ordinal = job->ordinal,
        .tenant = m->run.tenant,
        .status = APPROVAL_PENDING,
        .requested_by = m->run.created_by,
        .requested_at = now,
        .expires_at = ask->expires_ms >= 0 ? now + ask->expires_ms : -1,
        .escalated_at = -1,
        .decided_at = -1,
        .asker = -1,
        .ask = *ask,
    };
}

/* The job waits for it, and does nothing else. */
static void begin_asking(const struct run_txn *m, struct job *job, const struct approval *a)
{
    job->state = JOB_APPROVAL;
    job->due_at = due_of(m, job, a);
    if (job_is_question(job) || step_type_is(job_step(m->def, job)->type, STEP_ASKS)) {
        job->attempt = 1; /* asking is all that it does */
        job->started_at = m->tx->now_ms;
    }
}

enum err approval_compose(struct run_txn *m, struct job *job, const struct json *item,
                          struct problem *p, struct approval *ret)
{
    const struct json *content = NULL;
    *ret = blank(m, job, &job_step(m->def, job)->ask);
    enum err e = compose_prompt(m, job, item, p, &ret->prompt);
    if (e == ERR_OK)
        e = compose_content(m, job, item, p, &content);
    if (e == ERR_OK)
        e = values_text(m->tx, content, &ret->content);
    if (e == ERR_OK)
        e = approval_hash(m->tx, ret->prompt, ret->content, &ret->content_hash);
    if (e == ERR_OK)
        begin_asking(m, job, ret);
    return e;
}

/* Who may decide and until when, without what they are shown. */
static enum err keep_ask(struct run_txn *m, const struct json *ask, struct str *ret)
{
    static const char *const KEPT[] = {"approvers", "expires_s", "remind_every_s", "escalation"};
    struct buf text;
    buf_init(&text, MIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++) {
        const struct json *value = json_member(ask, str_of(KEPT[i]));
        if (value == NULL)
            continue;
        json_add_name(&o, KEPT[i]);
        json_write_plain(&text, value);
    }
    json_close(&o, '}');
    *ret = arena_take(&m->tx->arena, &text);
    return ret->ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}

enum err approval_compose_question(struct run_txn *m, struct job *question, struct str ask_text,
                                   int64_t asker, struct approval *ret)
{
    const struct json *ask = NULL;
    enum err e = parse_kept(m->tx, ask_text, &ask);
    if (e != ERR_OK)
        return e;
    struct approval_ask asked = approval_ask_of(ask);
    *ret = blank(m, question, &asked);
    ret->asker = asker;
    ret->prompt = json_text_of(asked.prompt);
    e = values_text(m->tx, asked.content != NULL ? asked.content : &NOTHING, &ret->content);
    if (e == ERR_OK)
        e = approval_hash(m->tx, ret->prompt, ret->content, &ret->content_hash);
    if (e == ERR_OK)
        e = keep_ask(m, ask, &ret->ask_text);
    if (e == ERR_OK)
        begin_asking(m, question, ret);
    return e;
}

/* --- the timeline --- */

struct told {
    struct run_txn *m;
    struct buf data;
    struct json_out out;
};

static void tell_begin(struct told *t, struct run_txn *m, const struct job *job)
{
    t->m = m;
    buf_init(&t->data, TOLD_MAX);
    t->out = json_out_to(&t->data);
    json_open(&t->out, NULL, '{');
    json_add_uuid(&t->out, "job_id", job->id);
    json_add_text(&t->out, "step", job_step(m->def, job)->name);
    if (job_step(m->def, job)->for_each != NULL)
        json_add_int(&t->out, "item", job->item);
}

static enum err tell_end(struct told *t, enum event_type type)
{
    json_close(&t->out, '}');
    enum err e =
        buf_ok(&t->data) ? run_txn_add_event(t->m, type, buf_str(&t->data)) : ERR_NO_MEMORY;
    buf_release(&t->data);
    return e;
}

static void tell_approvers(struct told *t, const struct approvers *approvers)
{
    if (approvers->roles != NULL) {
        json_add_name(&t->out, "roles");
        json_write_plain(&t->data, approvers->roles);
    }
    if (approvers->users != NULL) {
        json_add_name(&t->out, "users");
        json_write_plain(&t->data, approvers->users);
    }
}

enum err approval_request(struct run_txn *m, const struct job *job, const struct approval *a)
{
    enum err e = approvals_insert(m->tx->db, a);
    if (e != ERR_OK)
        return e;
    if (!job_is_question(job)) /* of which the progress knows nothing: its asker is suspended */
        advance_asked(&m->progress, (size_t)job->step);
    struct told t;
    tell_begin(&t, m, job);
    json_add_text(&t.out, "prompt", a->prompt);
    json_add_text(&t.out, "content_hash", a->content_hash);
    json_add_text(&t.out, "requested_by", a->requested_by);
    json_add_time(&t.out, "expires_at", a->expires_at);
    json_add_int(&t.out, "needed", a->ask.count);
    tell_approvers(&t, &a->ask.approvers);
    return tell_end(&t, EVENT_APPROVAL_REQUESTED);
}

enum err approval_add_vote_event(struct run_txn *m, const struct job *job, const struct approval *a,
                                 struct str voter, bool edited)
{
    struct told t;
    tell_begin(&t, m, job);
    json_add_text(&t.out, "by", voter);
    json_add_int(&t.out, "approvals", a->votes);
    json_add_int(&t.out, "needed", a->ask.count);
    json_add_bool(&t.out, "edited", edited);
    return tell_end(&t, EVENT_APPROVAL_VOTED);
}

static enum err tell_decision(struct run_txn *m, const struct job *job, const struct approval *a)
{
    struct told t;
    tell_begin(&t, m, job);
    json_add_text(&t.out, "decision", str_of(approval_status_name(a->status)));
    if (a->status == APPROVAL_EXPIRED)
        json_add_text(&t.out, "outcome", str_of(on_expire_name(a->ask.on_expire)));
    json_add_text(&t.out, "by", a->decided_by);
    json_add_time(&t.out, "at", a->decided_at);
    json_add_text_or_null(&t.out, "reason", a->reason);
    json_add_bool(&t.out, "edited", a->edited.ptr != NULL);
    return tell_end(&t, EVENT_APPROVAL_DECIDED);
}

/* --- deciding --- */

bool approval_is_granted(const struct approval *a)
{
    return a->status == APPROVAL_APPROVED ||
           (a->status == APPROVAL_EXPIRED && a->ask.on_expire == ON_EXPIRE_APPROVE);
}

enum err approval_of_job(const struct run_txn *m, const struct job *job, bool *ret_granted)
{
    struct approval a;
    bool found = false;
    enum err e = ERR_OK;
    if (job_is_question(job) || (job_step(m->def, job)->asks && !job->undo))
        e = approval_find(m->read_tx, m->def, job, &found, &a);
    *ret_granted = e == ERR_OK && found && approval_is_granted(&a);
    return e;
}

/* A question is over: what came of it is for the job that asked. */
static enum err ended(struct run_txn *m, const struct job *job, const struct approval *a)
{
    return job_is_question(job) ? suspension_decided(m, job, a) : job_ended(m, job);
}

/* The task goes into its queue under its own id, with what the person made of its input. */
static enum err let_task_go(struct run_txn *m, struct job *job, const struct approval *a)
{
    enum err e = ERR_OK;
    if (a->edited.ptr != NULL) {
        job->input = a->edited;
        e = jobs_set_input(m->tx->db, job->owner, job->ordinal, job->input);
    }
    if (e == ERR_OK)
        e = job_change(m, job, JOB_ON_APPROVE);
    if (e == ERR_OK && m->run.status == RUN_PAUSED)
        e = job_change(m, job, JOB_ON_HOLD);
    return e;
}

/* An approval's output is what was approved, as the next steps are to see it. */
static enum err complete_approval(struct run_txn *m, struct job *job, const struct approval *a)
{
    job->output = a->edited.ptr != NULL ? a->edited : a->content;
    enum err e = job_add_event(m, EVENT_JOB_APPROVED, job);
    if (e == ERR_OK)
        e = job_change(m, job, JOB_ON_COMPLETE);
    return e == ERR_OK ? ended(m, job, a) : e;
}

static enum err end_badly(struct run_txn *m, struct job *job, const struct approval *a)
{
    bool expired = a->status == APPROVAL_EXPIRED;
    bool fails = expired && a->ask.on_expire == ON_EXPIRE_FAIL;
    struct buf text;
    buf_init(&text, 16 * KIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "code", expired ? STR("APPROVAL_EXPIRED") : STR("APPROVAL_REJECTED"));
    json_add_text(&o, "message",
                  expired ? STR("The approval expired without a decision")
                          : STR("An approver rejected the step"));
    json_add_text(&o, "by", a->decided_by);
    json_add_text_or_null(&o, "reason", a->reason);
    json_close(&o, '}');
    job->error = arena_take(&m->tx->arena, &text);
    if (job->error.ptr == NULL)
        return ERR_NO_MEMORY;
    if (fails)
        job->dead_at = m->tx->now_ms;
    enum err e = job_change(m, job, fails ? JOB_ON_FAIL : JOB_ON_DENY);
    return e == ERR_OK ? ended(m, job, a) : e;
}

enum err approval_settle(struct run_txn *m, struct job *job, struct approval *a, struct str shown)
{
    assert(job->state == JOB_APPROVAL && approval_is_decided(a->status));
    assert(a->decided_by.ptr != NULL);
    a->decided_at = m->tx->now_ms;
    enum err e = approvals_update(m->tx->db, a, shown);
    if (e == ERR_OK)
        e = tell_decision(m, job, a);
    if (e != ERR_OK)
        return e;
    if (!job_is_question(job))
        advance_answered(&m->progress, (size_t)job->step);
    if (!approval_is_granted(a))
        e = end_badly(m, job, a);
    else if (job_is_question(job) || step_type_is(job_step(m->def, job)->type, STEP_ASKS))
        e = complete_approval(m, job, a);
    else
        e = let_task_go(m, job, a);
    return e;
}

/* --- time --- */

static enum err audit_expiry(struct run_txn *m, const struct job *job, const struct approval *a)
{
    struct buf text;
    buf_init(&text, KIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "run_id", m->run.id);
    json_add_text(&o, "step", job_step(m->def, job)->name);
    json_add_text(&o, "outcome", str_of(on_expire_name(a->ask.on_expire)));
    json_close(&o, '}');
    struct buf target;
    buf_init(&target, 64);
    buf_put_uuid(&target, job->id);
    struct audit_entry entry = {
        .tenant = m->run.tenant,
        .at = m->tx->now_ms,
        .actor = STR(APPROVAL_BY_PAWL),
        .peer = STR(""),
        .action = STR("approval.expire"),
        .target = buf_str(&target),
        .detail = buf_str(&text),
    };
    bool ok = buf_ok(&text) && buf_ok(&target);
    enum err e = ok ? audit_append(m->tx->db, &entry) : ERR_NO_MEMORY;
    buf_release(&text);
    buf_release(&target);
    return e;
}

static enum err expire(struct run_txn *m, struct job *job, struct approval *a)
{
    a->status = APPROVAL_EXPIRED;
    a->decided_by = STR(APPROVAL_BY_PAWL);
    enum err e = approval_settle(m, job, a, a->content_hash);
    return e == ERR_OK ? audit_expiry(m, job, a) : e;
}

static enum err give_up(struct run_txn *m, struct job *job)
{
    job->error = error_json(m->tx, "TIMED_OUT", STR("Nobody decided within timeout_ms"));
    if (job->error.ptr == NULL)
        return ERR_NO_MEMORY;
    advance_answered(&m->progress, (size_t)job->step);
    enum err e = job_change(m, job, JOB_ON_TIME_OUT);
    return e == ERR_OK ? job_ended(m, job) : e;
}

static enum err escalate(struct run_txn *m, const struct job *job, struct approval *a)
{
    struct told t;
    a->escalated_at = m->tx->now_ms;
    tell_begin(&t, m, job);
    tell_approvers(&t, &a->ask.escalated);
    return tell_end(&t, EVENT_APPROVAL_ESCALATED);
}

static enum err remind(struct run_txn *m, const struct job *job, struct approval *a, int64_t count)
{
    struct told t;
    a->reminded = count;
    tell_begin(&t, m, job);
    json_add_int(&t.out, "reminder", count);
    json_add_text(&t.out, "prompt", a->prompt);
    json_add_time(&t.out, "expires_at", a->expires_at);
    return tell_end(&t, EVENT_APPROVAL_REMINDED);
}

enum err approval_due(struct run_txn *m, struct job *job, bool *ret_over)
{
    int64_t now = m->tx->now_ms;
    struct approval a;
    bool found = false;
    enum err e = approval_find(m->read_tx, m->def, job, &found, &a);
    const struct approval_ask *ask = &a.ask;
    if (e == ERR_OK && (!found || a.status != APPROVAL_PENDING))
        return ERR_DAMAGED; /* the doctor names it */
    if (e != ERR_OK)
        return e;
    bool expired = a.expires_at >= 0 && a.expires_at <= now;
    bool timed_out = gives_up_at(m, job) >= 0 && gives_up_at(m, job) <= now;
    *ret_over = expired || timed_out;
    if (*ret_over)
        return expired ? expire(m, job, &a) : give_up(m, job);
    bool escalates =
        ask->escalate_ms >= 0 && a.escalated_at < 0 && a.requested_at + ask->escalate_ms <= now;
    int64_t reminders = approval_reminders_by(ask, a.requested_at, now);
    if (escalates)
        e = escalate(m, job, &a);
    if (e == ERR_OK && reminders > a.reminded)
        e = remind(m, job, &a, reminders);
    if (e == ERR_OK)
        e = approvals_update(m->tx->db, &a, a.content_hash);
    if (e != ERR_OK)
        return e;
    struct job later = *job;
    later.due_at = due_of(m, job, &a);
    return job_row_touch(m->tx, job, &later);
}
