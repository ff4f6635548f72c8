/* Schedules: put, show, list, delete, trigger. */
#include "core/background/schedules.h"
#include "core/txn/audit_record.h"
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/tenants.h"

enum { TIMES_SHOWN = 5 };

static void render_schedule(struct json_out *o, struct read_tx *tx, const struct schedule *s)
{
    struct timetable t;
    struct problem p;
    problem_init(&p);
    enum err e = timetable_read(s->cron, s->timezone, &tx->arena, &p, &t);
    bool readable = e == ERR_OK; /* else its zone is gone from the system */
    if (e == ERR_NO_MEMORY)
        o->buf->failed = true;
    json_open(o, NULL, '{');
    json_add_text(o, "id", s->id);
    json_add_text(o, "workflow_id", s->workflow_id);
    json_add_text(o, "cron", s->cron);
    json_add_text(o, "timezone", s->timezone);
    json_add_text(o, "overlap", str_of(overlap_name(s->overlap)));
    json_add_int(o, "catch_up_s", s->catch_up_ms / 1000);
    json_add_raw(o, "input", s->input);
    json_add_bool(o, "paused", s->paused);
    json_open(o, "next_times", '[');
    int64_t at = s->next_at;
    for (int i = 0; i < TIMES_SHOWN && at >= 0 && readable; i++) {
        json_add_time(o, NULL, at);
        at = timetable_next(&t, at);
    }
    json_close(o, ']');
    json_add_time(o, "last_time", s->last_at);
    if (uuid_is_nil(s->last_run))
        json_add_null(o, "last_run_id");
    else
        json_add_uuid(o, "last_run_id", s->last_run);
    json_add_raw(o, "last_error", s->last_error);
    json_add_text(o, "created_by", s->created_by);
    json_add_time(o, "created_at", s->created_at);
    json_add_time(o, "updated_at", s->updated_at);
    json_close(o, '}');
    problem_release(&p);
}

static bool says_the_same(const struct schedule *a, const struct schedule *b)
{
    return str_eq(a->workflow_id, b->workflow_id) && str_eq(a->cron, b->cron) &&
           str_eq(a->timezone, b->timezone) && str_eq(a->input, b->input) &&
           a->overlap == b->overlap && a->catch_up_ms == b->catch_up_ms && a->paused == b->paused;
}

static enum err put_schedule(struct op *op, struct tx *tx)
{
    const struct put_schedule_input *in = op->input;
    struct tenant *tenant;
    struct timetable t;
    struct schedule old;
    bool found = false;
    struct workflow_newest newest = {0};
    enum err e = read_tx_tenant(&tx->read, op, &tenant);
    if (e == ERR_OK)
        e = timetable_read(in->cron, in->timezone, &tx->arena, &op->problem, &t);
    if (e == ERR_OK && timetable_next(&t, tx->now_ms) < 0)
        e = problem_set(&op->problem, ERR_FIELD_INVALID, "cron: this date never occurs");
    if (e != ERR_OK)
        return e;
    e = read_tx_newest(&tx->read, tenant->num, in->workflow_id, &newest);
    if (e == ERR_OK && (!newest.found || newest.archived))
        return problem_set(&op->problem, ERR_WORKFLOW_NOT_FOUND, "Workflow \"%.*s\" does not exist",
                           STR_ARG(in->workflow_id));
    if (e == ERR_OK)
        e = schedules_find(tx->db, tenant->num, in->id, &tx->arena, &found, &old);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the schedule");
    struct schedule s = {
        .tenant = tenant->num,
        .id = in->id,
        .workflow_id = in->workflow_id,
        .cron = in->cron,
        .timezone = in->timezone,
        .overlap = in->overlap,
        .catch_up_ms = in->catch_up_ms,
        .input = in->input,
        .paused = in->paused,
        .next_at = -1,
        .last_at = found ? old.last_at : -1,
        .created_by = found ? old.created_by : op->caller.actor,
        .created_at = found ? old.created_at : tx->now_ms,
        .updated_at = tx->now_ms,
    };
    if (found)
        s.last_run = old.last_run;
    /* The same timetable goes on where it was: a time that is due is not lost by a change of the
     * input. */
    bool same_times = found && !old.paused && old.next_at >= 0 && str_eq(old.cron, s.cron) &&
                      str_eq(old.timezone, s.timezone);
    if (!s.paused)
        s.next_at = same_times ? old.next_at : timetable_next(&t, tx->now_ms);
    s.check_at = s.next_at;
    e = schedules_put(tx->db, &s);
    struct json_out o = json_out_to(&op->answer.body);
    render_schedule(&o, &tx->read, &s);
    if (e == ERR_OK && !(found && says_the_same(&old, &s)))
        e = audit_record(op, tx, tenant->num, "schedule.put", s.id, buf_str(&op->answer.body));
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the schedule");
    tx_note_due(tx, s.check_at);
    return ERR_OK;
}

const struct use_case UC_PUT_SCHEDULE = {.name = "put_schedule", .write = put_schedule};

static enum err find_schedule(struct op *op, struct read_tx *tx, struct schedule *ret)
{
    const struct schedule_input *in = op->input;
    struct tenant *tenant;
    bool found = false;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = schedules_find(tx->db, tenant->num, in->id, &tx->arena, &found, ret);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the schedule");
    if (!found)
        return problem_set(&op->problem, ERR_SCHEDULE_NOT_FOUND, "Schedule \"%.*s\" does not exist",
                           STR_ARG(in->id));
    return ERR_OK;
}

static enum err get_schedule(struct op *op, struct read_tx *tx)
{
    struct schedule s;
    enum err e = find_schedule(op, tx, &s);
    if (e != ERR_OK)
        return e;
    struct json_out o = json_out_to(&op->answer.body);
    render_schedule(&o, tx, &s);
    return ERR_OK;
}

const struct use_case UC_GET_SCHEDULE = {.name = "get_schedule", .read = get_schedule};

static enum err delete_schedule(struct op *op, struct tx *tx)
{
    struct schedule s;
    bool found = false;
    enum err e = find_schedule(op, &tx->read, &s);
    if (e != ERR_OK)
        return e;
    e = schedules_delete(tx->db, s.tenant, s.id, &found);
    if (e == ERR_OK)
        e = audit_record(op, tx, s.tenant, "schedule.delete", s.id, STR_NONE);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot delete the schedule");
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "id", s.id);
    json_add_bool(&o, "deleted", found);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_DELETE_SCHEDULE = {.name = "delete_schedule", .write = delete_schedule};

/* A run now, besides the times. The request's own key makes it one. */
static enum err trigger_schedule(struct op *op, struct tx *tx)
{
    struct schedule s;
    struct internal_start_made started;
    enum err e = find_schedule(op, &tx->read, &s);
    if (e != ERR_OK)
        return e;
    e = schedule_start(tx, &s, -1, op->caller.actor, &op->problem, &started);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot start the run");
    if (started.refusal != ERR_OK)
        return started.refusal;
    s.last_error = STR_NONE;
    e = schedules_put(tx->db, &s);
    op->answer.has_run = true;
    op->answer.run_id = s.last_run;
    op->answer.outcome = started.outcome;
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "schedule_id", s.id);
    json_add_uuid(&o, "run_id", s.last_run);
    json_close(&o, '}');
    if (e == ERR_OK)
        e = audit_record(op, tx, s.tenant, "schedule.trigger", s.id, buf_str(&op->answer.body));
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot store the schedule");
}

const struct use_case UC_TRIGGER_SCHEDULE = {
    .name = "trigger_schedule", .write = trigger_schedule, .admits = "schedule"};

struct schedule_page {
    struct page page;
    struct read_tx *tx;
};

static void add_schedule(void *ctx, const struct schedule *s)
{
    struct schedule_page *p = ctx;
    if (!page_takes(&p->page))
        return;
    render_schedule(&p->page.out, p->tx, s);
    page_set_last(&p->page, s->id);
}

static enum err list_schedules(struct op *op, struct read_tx *tx)
{
    const struct list_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    struct schedule_page p = {page_begin(op, in->limit), tx};
    e = schedules_list(tx->db, tenant->num, in->cursor, in->limit + 1, add_schedule, &p);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the schedules");
    page_end(&p.page);
    return ERR_OK;
}

const struct use_case UC_LIST_SCHEDULES = {.name = "list_schedules", .read = list_schedules};
