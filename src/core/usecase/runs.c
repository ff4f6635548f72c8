/* Showing runs. */
#include "core/run/run_txn.h"
#include "core/run/run_view.h"
#include "core/txn/page.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

/* --- one run --- */

static enum err get_run(struct op *op, struct read_tx *tx)
{
    const struct run_input *in = op->input;
    struct run_txn m;
    enum err e = run_txn_read_id(&m, op, tx, in->run_id);
    if (e != ERR_OK)
        return e;
    op->answer.has_run = true;
    op->answer.run_id = m.run.id;
    op->answer.run_version = m.run.version;
    op->answer.run_over = run_has_ended(m.run.status);
    const struct step_view *views;
    e = run_txn_show(&m, &views);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the run's steps");
    struct json_out o = json_out_to(&op->answer.body);
    render_run(&o, NULL, &m.run, m.def, views);
    return ERR_OK;
}

const struct use_case UC_GET_RUN = {.name = "get_run", .read = get_run};

/* --- lists --- */

static bool add_run(void *ctx, const struct run *run)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return false;
    render_run(&page->out, NULL, run, NULL, NULL);
    return true;
}

static enum err list_runs(struct op *op, struct read_tx *tx)
{
    const struct list_runs_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    int64_t before = INT64_MAX;
    if (in->cursor.ptr != NULL && (!str_to_i64(in->cursor, &before) || before < 0))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct run_filter filter = {
        .tenant = tenant->num,
        .status = in->status,
        .workflow_id = in->workflow_id,
        .label_name = in->label_name,
        .label_value = in->label_value,
        .created_after = in->created_after,
        .created_before = in->created_before,
    };
    if (in->id_prefix.ptr != NULL &&
        !uuid_parse_prefix(in->id_prefix, &filter.id_low, &filter.id_high))
        return problem_set(&op->problem, ERR_BAD_REQUEST,
                           "id_prefix is not the beginning of an id");
    struct page page = page_begin(op, in->limit);
    int64_t next = -1;
    e = runs_list(tx->db, &filter, before, add_run, &page, &next);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the runs");
    page.more = next >= 0; /* also when the scan ended before the page was full */
    if (page.more)
        page_set_last_number(&page, next);
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_RUNS = {.name = "list_runs", .read = list_runs};

static void add_event(void *ctx, const struct event *event)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return;
    render_event(&page->out, event);
    page_set_last_number(page, event->seq);
}

static enum err list_events(struct op *op, struct read_tx *tx)
{
    const struct list_events_input *in = op->input;
    struct tenant *tenant;
    struct run run;
    bool found = false;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = runs_find(tx->db, tenant->num, in->run_id, &tx->arena, &found, &run);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "This run does not exist");
    struct page page = page_begin(op, in->limit);
    if (e == ERR_OK)
        e = events_list(tx->db, run.num, in->after, in->limit + 1, add_event, &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the events");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_EVENTS = {.name = "list_events", .read = list_events};
