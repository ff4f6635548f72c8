/* Starting, cancelling and showing runs. */
#include "engine/page.h"
#include "engine/run_move.h"
#include "engine/use_cases.h"

#include "base/limits.h"
#include "domain/schema.h"

/* --- start --- */

/* The newest version of the workflow, if it can be started at all. */
static enum err load_startable(struct op *op, struct tx *tx, const struct tenant *tenant,
                               const struct start_run_input *in, const struct definition **ret_def,
                               int64_t *ret_version)
{
    struct workflow_newest head;
    enum err e = tx_newest(tx, tenant->num, in->workflow_id, &head);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot read the workflow");
    if (!head.found || head.archived)
        return problem_set(&op->problem, ERR_WORKFLOW_NOT_FOUND,
                           head.archived ? "workflow \"%.*s\" is archived: it starts no new runs"
                                         : "there is no workflow \"%.*s\"",
                           STR_ARG(in->workflow_id));
    e = tx_definition(tx, tenant->num, in->workflow_id, head.version, &op->problem, ret_def);
    if (e != ERR_OK)
        return e;
    *ret_version = head.version;
    if ((*ret_def)->unsupported.len > 0)
        return problem_set(&op->problem, ERR_DEFINITION_UNSUPPORTED, "%.*s",
                           STR_ARG((*ret_def)->unsupported));
    return ERR_OK;
}

static enum err check_input(struct op *op, const struct definition *def, const json_t *input)
{
    if (def->input_schema == NULL)
        return ERR_OK;
    struct fault_list faults;
    buf_put_char(&op->problem.faults, '[');
    fault_list_init(&faults, &op->problem.faults);
    json_t *null = json_null();
    schema_check_value(def->input_schema, input != NULL ? input : null, &faults);
    size_t count = faults.count;
    fault_list_release(&faults);
    buf_put_char(&op->problem.faults, ']');
    if (count > 0)
        return problem_set(&op->problem, ERR_INPUT_INVALID,
                           "the input breaks the workflow's input_schema in %zu place%s", count,
                           count == 1 ? "" : "s");
    buf_clear(&op->problem.faults);
    return ERR_OK;
}

static void answer_run(struct op *op, const struct run_move *m)
{
    struct answer *a = &op->answer;
    a->has_run = true;
    a->run_id = m->run.id;
    a->run_over = run_is_over(m->run.status);
    a->created = CREATED_YES;
    struct json_out o = json_out_to(&a->body);
    json_add_uuid(&o, "run_id", m->run.id);
    render_run(&o, "run", &m->run, m->def, m->steps);
    json_close(&o, '}');
}

static enum err start_run(struct op *op, struct tx *tx)
{
    const struct start_run_input *in = op->input;
    struct run_move m = {.tx = tx};
    int64_t version = 0;
    enum err e = tx_tenant(tx, op, &m.tenant);
    if (e == ERR_OK)
        e = load_startable(op, tx, m.tenant, in, &m.def, &version);
    if (e == ERR_OK)
        e = check_input(op, m.def, in->input);
    if (e == ERR_OK)
        e = tenant_admit(m.tenant, &op->problem);
    if (e != ERR_OK)
        return e;
    m.run = (struct run){
        .workflow_id = in->workflow_id,
        .workflow_version = version,
        .priority = in->priority,
        .input = in->input_text,
        .state = STR("{}"),
        .labels = in->labels,
        .traceparent = in->traceparent,
        .created_by = op->caller.actor,
        .created_at = tx->now_ms,
        .started_at = -1,
        .finished_at = -1,
    };
    e = run_move_create(&m, &op->problem);
    if (e == ERR_OK)
        answer_run(op, &m);
    return e;
}

const struct use_case UC_START_RUN = {
    .name = "start_run", .changes = true, .run = start_run, .admits = true};

/* --- one run --- */

static enum err find_run(struct op *op, struct tx *tx, struct uuid id, struct run_move *m)
{
    *m = (struct run_move){.tx = tx};
    enum err e = tx_tenant(tx, op, &m->tenant);
    if (e != ERR_OK)
        return e;
    bool found = false;
    e = runs_find(tx->db, m->tenant->num, id, &tx->arena, &found, &m->run);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "there is no such run");
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot read the run");
    return run_move_load_steps(m, &op->problem);
}

static enum err get_run(struct op *op, struct tx *tx)
{
    const struct run_input *in = op->input;
    struct run_move m;
    enum err e = find_run(op, tx, in->run_id, &m);
    if (e != ERR_OK)
        return e;
    op->answer.has_run = true;
    op->answer.run_id = m.run.id;
    op->answer.run_over = run_is_over(m.run.status);
    struct json_out o = json_out_to(&op->answer.body);
    render_run(&o, NULL, &m.run, m.def, m.steps);
    return ERR_OK;
}

const struct use_case UC_GET_RUN = {.name = "get_run", .changes = false, .run = get_run};

static enum err cancel_run(struct op *op, struct tx *tx)
{
    const struct cancel_run_input *in = op->input;
    struct run_move m;
    enum err e = find_run(op, tx, in->run_id, &m);
    if (e != ERR_OK)
        return e;
    if (in->if_match >= 0 && in->if_match != m.run.version) {
        e = problem_set(&op->problem, ERR_CONCURRENCY, "the run has changed since it was read");
        problem_add_number(&op->problem, "expected", in->if_match);
        problem_add_number(&op->problem, "actual", m.run.version);
        return e;
    }
    if (m.run.status == RUN_CANCELLED) {
        op->answer.changed_nothing = true; /* asking again is no error */
    } else if (run_is_over(m.run.status)) {
        e = problem_set(&op->problem, ERR_CONCURRENCY, "the run is over: it has %s",
                        run_status_name(m.run.status));
        problem_add_number(&op->problem, "actual", m.run.version);
        return e;
    } else {
        e = run_move_cancel(&m, op->caller.actor, in->reason);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "cannot cancel the run");
    }
    struct json_out o = json_out_to(&op->answer.body);
    render_run(&o, NULL, &m.run, m.def, m.steps);
    return ERR_OK;
}

const struct use_case UC_CANCEL_RUN = {.name = "cancel_run", .changes = true, .run = cancel_run};

/* --- lists --- */

static bool add_run(void *ctx, const struct run *run)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return false;
    render_run(&page->out, NULL, run, NULL, NULL);
    return true;
}

static enum err list_runs(struct op *op, struct tx *tx)
{
    const struct list_runs_input *in = op->input;
    struct tenant *tenant;
    enum err e = tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    int64_t before = INT64_MAX;
    if (in->cursor.ptr != NULL && (!str_to_i64(in->cursor, &before) || before < 0))
        return problem_set(&op->problem, ERR_CURSOR_INVALID, "cursor is not from this list");
    struct run_filter filter = {
        .tenant = tenant->num,
        .status = in->status,
        .workflow_id = in->workflow_id,
        .label_name = in->label_name,
        .label_value = in->label_value,
        .created_after = in->created_after,
        .created_before = in->created_before,
    };
    struct page page = page_begin(op, in->limit);
    int64_t next = -1;
    e = runs_list(tx->db, &filter, before, add_run, &page, &next);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot list the runs");
    page.more = next >= 0; /* also when the scan ended before the page was full */
    if (page.more)
        page_set_last_number(&page, next);
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_RUNS = {.name = "list_runs", .changes = false, .run = list_runs};

static void add_event(void *ctx, const struct event *event)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return;
    render_event(&page->out, event);
    page_set_last_number(page, event->seq);
}

static enum err list_events(struct op *op, struct tx *tx)
{
    const struct list_events_input *in = op->input;
    struct tenant *tenant;
    struct run run;
    bool found = false;
    enum err e = tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = runs_find(tx->db, tenant->num, in->run_id, &tx->arena, &found, &run);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "there is no such run");
    struct page page = page_begin(op, in->limit);
    if (e == ERR_OK)
        e = events_list(tx->db, run.num, in->after, in->limit + 1, add_event, &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot list the events");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_EVENTS = {
    .name = "list_events", .changes = false, .run = list_events};
