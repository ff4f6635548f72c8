/* Showing runs. */
#include "core/run/run_txn.h"
#include "core/run/run_view.h"
#include "core/txn/job_row.h"
#include "core/txn/page.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

/* --- one run --- */

/* The run and the step that have started it, as long as they are there. */
static enum err show_parent(struct json_out *o, struct op *op, struct read_tx *tx,
                            const struct run *run)
{
    struct run parent;
    struct job job;
    const struct definition *def = NULL;
    bool found = false;
    if (run->parent_run < 0)
        return ERR_OK;
    enum err e = runs_find_num(tx->db, run->parent_run, &tx->arena, &found, &parent);
    if (e != ERR_OK || !found)
        return e;
    e = jobs_find_at(tx->db, run->parent_run, run->parent_ordinal, &tx->arena, &found, &job);
    if (e != ERR_OK || !found)
        return e;
    e = read_tx_definition(tx, parent.tenant, parent.workflow_id, parent.workflow_version,
                           &op->problem, &def);
    if (e != ERR_OK)
        return e;
    json_open(o, "parent", '{');
    json_add_uuid(o, "run_id", parent.id);
    json_add_text(o, "step", job_step(def, &job)->name);
    json_close(o, '}');
    return ERR_OK;
}

static enum err show_key(struct json_out *o, struct read_tx *tx, const struct run *run)
{
    struct idem_record record;
    bool found = false;
    enum err e = idempotency_of_run(tx->db, run->num, &tx->arena, &found, &record);
    if (e != ERR_OK || !found || !uuid_eq(record.run_id, run->id))
        return e;
    json_open(o, "started_by_key", '{');
    json_add_text(o, "key", record.key);
    json_add_int(o, "replays", record.replays);
    json_add_int(o, "mismatches", record.mismatches);
    json_add_time(o, "created_at", record.created_at);
    json_add_time(o, "last_replayed_at", record.last_replayed_at);
    json_close(o, '}');
    return ERR_OK;
}

static enum err show_origin(struct json_out *o, struct op *op, struct read_tx *tx,
                            const struct run *run)
{
    enum err e = show_parent(o, op, tx, run);
    return e == ERR_OK ? show_key(o, tx, run) : e;
}

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
    render_run_open(&o, NULL, &m.run, m.def, views);
    if (!in->as_started)
        e = show_origin(&o, op, tx, &m.run);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read where the run comes from");
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_GET_RUN = {.name = "get_run", .read = get_run};

/* --- events --- */

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
