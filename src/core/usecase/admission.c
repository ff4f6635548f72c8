/* How full a tenant's limits are, and what waits for them. */
#include "core/admission/run_limits.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/stats.h"
#include "core/usecase/use_cases.h"
#include "store/run/run_queue.h"

enum { WAITS_MINUTES = 60 };

/* A copy of the rows: the limit in force is looked up when the query has ended. */
struct busiest {
    struct arena *arena;
    struct limit_key_row *rows;
    size_t count;
    bool full; /* no memory */
};

static void keep_row(void *ctx, const struct limit_key_row *row)
{
    struct busiest *b = ctx;
    struct limit_key_row *kept = &b->rows[b->count++];
    *kept = *row;
    b->full |= !arena_keep(b->arena, &kept->workflow_id) || !arena_keep(b->arena, &kept->path) ||
               !arena_keep(b->arena, &kept->key);
}

static enum err show_limit(struct json_out *o, struct read_tx *tx, const struct limit_key_row *row,
                           struct problem *p)
{
    int64_t limit;
    bool has_key = row->path.len > 0;
    enum err e = limit_in_force(tx, row, p, &limit);
    if (e != ERR_OK)
        return e;
    json_open(o, NULL, '{');
    json_add_text(o, "workflow_id", row->workflow_id);
    json_add_text_or_null(o, "path", has_key ? row->path : STR_NONE);
    json_add_text_or_null(o, "key", has_key ? row->key : STR_NONE);
    if (limit < 0)
        json_add_null(o, "limit");
    else
        json_add_int(o, "limit", limit);
    json_add_int(o, "active_runs", row->active_runs);
    json_add_int(o, "queued_runs", row->queued_runs);
    json_close(o, '}');
    return ERR_OK;
}

static enum err show_limits(struct json_out *o, struct read_tx *tx, int64_t tenant, int64_t limit,
                            struct problem *p)
{
    struct busiest b = {.arena = &tx->arena};
    b.rows = arena_alloc(&tx->arena, (size_t)(limit + 1) * sizeof(*b.rows));
    if (b.rows == NULL)
        return ERR_NO_MEMORY;
    enum err e = limit_keys_busiest(tx->db, tenant, limit + 1, keep_row, &b);
    if (e == ERR_OK && b.full)
        e = ERR_NO_MEMORY;
    json_open(o, "items", '[');
    for (size_t i = 0; e == ERR_OK && i < MIN(b.count, (size_t)limit); i++)
        e = show_limit(o, tx, &b.rows[i], p);
    json_close(o, ']');
    json_add_bool(o, "more", b.count > (size_t)limit);
    return e;
}

static enum err show_oldest(struct json_out *o, struct read_tx *tx, int64_t tenant)
{
    struct run run;
    int64_t num = 0;
    bool found = false;
    enum err e = queue_oldest(tx->db, tenant, &num);
    if (e == ERR_OK && num != 0)
        e = runs_find_num(tx->db, num, &tx->arena, &found, &run);
    if (e != ERR_OK)
        return e;
    if (!found) {
        json_add_null(o, "oldest_waiting");
        return ERR_OK;
    }
    json_open(o, "oldest_waiting", '{');
    json_add_uuid(o, "run_id", run.id);
    json_add_text(o, "workflow_id", run.workflow_id);
    json_add_time(o, "created_at", run.created_at);
    json_close(o, '}');
    return ERR_OK;
}

static void add_limit(struct json_out *o, const char *name, int64_t limit)
{
    if (limit < 0)
        json_add_null(o, name);
    else
        json_add_int(o, name, limit);
}

static enum err show_tenant(struct json_out *o, struct read_tx *tx, struct tenant *t)
{
    struct minute_counts hour;
    enum err e = t->num != 0 ? read_tx_counters(tx, t) : ERR_OK;
    if (e == ERR_OK)
        e = stats_total(tx, t->num != 0 ? t->num : -1, WAITS_MINUTES, &hour);
    if (e != ERR_OK)
        return e;
    json_add_int(o, "active_runs", t->active_runs);
    add_limit(o, "max_concurrent_runs", t->max_concurrent_runs);
    json_add_int(o, "queued_runs", t->queued_runs);
    add_limit(o, "max_queued_runs", t->max_queued_runs);
    render_waits(o, &hour, false);
    return show_oldest(o, tx, t->num);
}

static enum err get_admission(struct op *op, struct read_tx *tx)
{
    const struct get_admission_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    e = show_tenant(&o, tx, tenant);
    if (e == ERR_OK)
        e = show_limits(&o, tx, tenant->num, in->limit, &op->problem);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the limits");
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_GET_ADMISSION = {.name = "get_admission", .read = get_admission};
