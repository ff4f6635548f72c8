/* Starts the runs that answers of entities asked for. */
#include "core/background/entity_starts_due.h"

#include "base/limits.h"
#include "core/entity/entity_starts.h"
#include "core/txn/render.h"
#include "core/usecase/internal_start.h"
#include "store/entity/entity_starts.h"

enum { STARTS_PER_TURN = 16, AGAIN_MS = 1000, AGAIN_MS_MAX = 60 * 1000 };

static enum err tell(struct entity_txn *m, const struct entity_start *row, struct uuid run,
                     enum err refusal, const char *why)
{
    struct buf data;
    buf_init(&data, 8 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "workflow_id", row->workflow_id);
    if (refusal == ERR_OK) {
        json_add_uuid(&o, "run_id", run);
    } else {
        json_add_text(&o, "code", str_of(err_code(refusal)));
        json_add_text(&o, "detail", str_of(why));
    }
    json_add_text(&o, "idempotency_key", row->key);
    json_close(&o, '}');
    enum err e = ERR_NO_MEMORY;
    if (buf_ok(&data))
        e = entity_txn_add_event(
            m, refusal == ERR_OK ? EVENT_ENTITY_RUN_STARTED : EVENT_ENTITY_RUN_REFUSED,
            buf_str(&data));
    buf_release(&data);
    return e;
}

static struct str route_of(struct entity_txn *m)
{
    struct buf route;
    buf_init(&route, ROUTE_MAX);
    buf_put(&route, STR("ENTITY "));
    buf_put(&route, m->type.id);
    buf_put_char(&route, '/');
    buf_put(&route, m->entity.name);
    return arena_take(&m->tx->arena, &route);
}

/* *ret_again: it was refused for the moment; later ones wait with it. */
static enum err start_one(struct entity_txn *m, struct entity_start *row, int64_t due_at,
                          bool *ret_again)
{
    struct internal_start start = {
        .tenant = m->entity.tenant,
        .workflow_id = row->workflow_id,
        .input = row->input,
        .labels = row->labels,
        .at_limit = AT_LIMIT_COUNT,
        .key = row->key,
        .route = route_of(m),
        .actor = STR("pawl"),
        .peer = STR("entity"),
        .endpoint = "entity",
        .due_at = due_at,
    };
    struct problem p;
    struct internal_start_made started;
    if (start.route.ptr == NULL)
        return ERR_NO_MEMORY;
    problem_init(&p);
    enum err e = internal_start(m->tx, &start, &p, &started);
    *ret_again = e == ERR_OK && started.refusal != ERR_OK && err_retryable(started.refusal);
    if (*ret_again) {
        row->tries++;
        e = entity_starts_tried(m->tx->db, row);
    } else if (e == ERR_OK) {
        e = tell(m, row, started.run, started.refusal, p.detail);
        if (e == ERR_OK)
            e = entity_starts_remove(m->tx->db, row->entity, row->num);
    }
    problem_release(&p);
    return e;
}

enum err entity_starts_due(struct tx *tx, const struct timer *timer, struct problem *p)
{
    struct entity_txn m;
    bool exists = false;
    enum err e = timers_delete(tx->db, timer);
    if (e == ERR_OK)
        e = entity_txn_load(&m, tx, timer->owner, p, &exists);
    if (e != ERR_OK || !exists)
        return e;
    struct entity_start row = {0};
    bool found = true;
    bool again = false;
    for (int i = 0; i < STARTS_PER_TURN && e == ERR_OK && !again; i++) {
        e = entity_starts_first(tx->db, m.entity.num, &tx->arena, &found, &row);
        if (e != ERR_OK || !found)
            break;
        e = start_one(&m, &row, timer->due_at, &again);
    }
    if (e == ERR_OK && found) {
        int64_t delay = again ? MIN(AGAIN_MS * row.tries, (int64_t)AGAIN_MS_MAX) : 0;
        e = entity_starts_arm(tx, &m.entity, tx->now_ms + delay);
    }
    bool told = e == ERR_OK && m.entity.last_event > m.read.last_event;
    return told ? entity_txn_settle(&m) : e;
}
