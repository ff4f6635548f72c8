/* Looking at entities: no worker is needed for that. */
#include "core/entity/entity_call.h"
#include "core/entity/entity_txn.h"
#include "core/entity/entity_update.h"
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/txn/signal_dedup.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/entity/generations.h"
#include "store/entity/inbox.h"
#include "store/run/runs.h"

/* --- one entity --- */

static const char *status_of(const struct entity *x, const struct job *call)
{
    if (call != NULL) {
        switch (call->state) {
        case JOB_RUNNING:
            return "running";
        case JOB_SCHEDULED:
            return "retrying";
        case JOB_PENDING:
            return "waiting";
        case JOB_FAILED:
            return "blocked";
        case JOB_APPROVAL:
        case JOB_SUSPENDED:
        case JOB_DISPATCHED:
        case JOB_SUCCEEDED:
        case JOB_DENIED:
        case JOB_CANCELLED:
        case JOB_TIMED_OUT:
        case JOB_SKIPPED:
        case JOB_STATE_COUNT:
            break; /* no call of an entity is ever there */
        }
    }
    return x->finished_at >= 0 ? "finished" : "idle";
}

static void put_call(struct json_out *o, const struct job *call)
{
    if (call == NULL) {
        json_add_null(o, "call");
        return;
    }
    json_open(o, "call", '{');
    json_add_uuid(o, "job_id", call->id);
    json_add_text(o, "kind", call->item == CALL_MIGRATE ? STR("migrate") : STR("signals"));
    json_add_text(o, "state", str_of(job_state_name(call->state)));
    json_add_int(o, "attempt", call->attempt);
    json_add_text_or_null(o, "worker_id", call->worker);
    json_add_raw(o, "error", call->error);
    json_add_time(o, "retry_at", call->state == JOB_SCHEDULED ? call->due_at : -1);
    json_close(o, '}');
}

static void put_facts(struct json_out *o, struct str type, const struct entity *x)
{
    json_add_text(o, "type", type);
    json_add_text(o, "id", x->name);
    json_add_int(o, "version", x->version);
    json_add_int(o, "generation", x->generation);
    json_add_int(o, "type_version", x->type_version);
    json_add_int(o, "inbox", x->last_seq - x->consumed_seq);
    json_add_int(o, "last_seq", x->last_seq);
    json_add_int(o, "consumed_seq", x->consumed_seq);
    json_add_int(o, "events", x->last_event);
    if (x->migrate_to >= 0)
        json_add_int(o, "migrating_to", x->migrate_to);
    else
        json_add_null(o, "migrating_to");
    json_add_time(o, "created_at", x->created_at);
    json_add_time(o, "active_at", x->active_at);
    json_add_time(o, "finished_at", x->finished_at);
}

static enum err put_state(struct json_out *o, struct read_tx *tx, int64_t entity)
{
    struct entity_state state = {0};
    bool found = false;
    enum err e = entity_states_find(tx->db, entity, &tx->arena, &found, &state);
    json_add_raw(o, "state", state.state);
    if (found)
        json_add_int(o, "state_version", state.type_version);
    else
        json_add_null(o, "state_version");
    return e;
}

static enum err put_window(struct json_out *o, struct entity_txn *m)
{
    struct signal_dedup_view view;
    enum err e = signal_dedup_show(m->read_tx->db, m->entity.num, &view);
    if (e != ERR_OK)
        return e;
    json_open(o, "dedup", '{');
    json_add_int(o, "keys", view.keys);
    json_add_time(o, "oldest", view.oldest_at);
    json_add_int(o, "window_s", m->version.rules.dedup_window_ms / 1000);
    json_add_int(o, "max_keys", m->version.rules.dedup_max_keys);
    json_close(o, '}');
    return ERR_OK;
}

static enum err get_entity(struct op *op, struct read_tx *tx)
{
    const struct entity_input *in = op->input;
    struct entity_txn m;
    struct job call;
    bool called = false;
    enum err e = entity_txn_read(&m, op, tx, in->type, in->id);
    if (e != ERR_OK)
        return e;
    if (m.entity.open_job >= 0)
        e = jobs_find_at(tx->db, m.entity.num, m.entity.open_job, &tx->arena, &called, &call);
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "status", str_of(status_of(&m.entity, called ? &call : NULL)));
    put_facts(&o, m.type.id, &m.entity);
    if (e == ERR_OK)
        e = put_state(&o, tx, m.entity.num);
    if (e == ERR_OK)
        e = entity_put_timers(&o, "timers", tx->db, m.entity.num, false);
    if (e == ERR_OK)
        e = put_window(&o, &m);
    put_call(&o, called ? &call : NULL);
    json_close(&o, '}');
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot read the entity");
}

const struct use_case UC_GET_ENTITY = {.name = "get_entity", .read = get_entity};

/* --- lists --- */

struct entity_page {
    struct page page;
    struct str type;
};

static bool add_entity(void *ctx, const struct entity *x)
{
    struct entity_page *p = ctx;
    if (!page_takes(&p->page))
        return false;
    json_open(&p->page.out, NULL, '{');
    put_facts(&p->page.out, p->type, x);
    json_close(&p->page.out, '}');
    /* Ids are any text, and cursors stand in URLs: see read_id_cursor() of the api. */
    struct buf place;
    buf_init(&place, CURSOR_MAX);
    buf_put_hex(&place, x->name.ptr, x->name.len);
    page_take_last(&p->page, &place);
    return true;
}

static enum err list_entities(struct op *op, struct read_tx *tx)
{
    const struct list_entities_input *in = op->input;
    struct tenant *tenant;
    struct entity_type type;
    enum err e = entity_type_load(op, tx, in->type, &tenant, &type);
    if (e != ERR_OK)
        return e;
    struct entity_page p = {page_begin(op, in->limit), type.id};
    e = entities_list(tx->db, type.num, in->type_version, in->cursor, in->limit + 1, add_entity,
                      &p);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the entities");
    page_end(&p.page);
    return ERR_OK;
}

const struct use_case UC_LIST_ENTITIES = {.name = "list_entities", .read = list_entities};

static enum err read_cursor(struct op *op, struct str cursor, int64_t *place)
{
    if (cursor.ptr != NULL && (!str_to_i64(cursor, place) || *place < 0))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    return ERR_OK;
}

/* The entity, and where its page begins: *from stays as it is without a cursor. */
static enum err begin_list(struct entity_txn *m, struct op *op, struct read_tx *tx, int64_t *from)
{
    const struct list_of_entity_input *in = op->input;
    enum err e = entity_txn_read(m, op, tx, in->type, in->id);
    return e == ERR_OK ? read_cursor(op, in->cursor, from) : e;
}

static enum err end_list(struct op *op, struct page *page, enum err e, const char *what)
{
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the %s", what);
    page_end(page);
    return ERR_OK;
}

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
    const struct list_of_entity_input *in = op->input;
    struct entity_txn m;
    int64_t after = 0;
    enum err e = begin_list(&m, op, tx, &after);
    if (e != ERR_OK)
        return e;
    struct page page = page_begin(op, in->limit);
    e = events_list(tx->db, m.entity.num, after, in->limit + 1, add_event, &page);
    return end_list(op, &page, e, "events");
}

const struct use_case UC_LIST_ENTITY_EVENTS = {.name = "list_entity_events", .read = list_events};

static bool add_signal(void *ctx, const struct inbox_signal *s)
{
    struct page *page = ctx;
    struct json_out *o = &page->out;
    if (!page_takes(page))
        return false;
    json_open(o, NULL, '{');
    json_add_int(o, "seq", s->seq);
    json_add_text(o, "name", s->name);
    json_add_raw(o, "payload", s->payload);
    json_add_bool(o, "update", s->asks);
    json_add_time(o, "at", s->at);
    json_close(o, '}');
    page_set_last_number(page, s->seq);
    return true;
}

/* What the handler has not consumed yet, with what its current call has. */
static enum err list_inbox(struct op *op, struct read_tx *tx)
{
    const struct list_of_entity_input *in = op->input;
    struct entity_txn m;
    int64_t after = 0;
    enum err e = begin_list(&m, op, tx, &after);
    if (e != ERR_OK)
        return e;
    struct page page = page_begin(op, in->limit);
    e = inbox_list(tx->db, m.entity.num, MAX(after, m.entity.consumed_seq), m.entity.last_seq,
                   in->limit + 1, add_signal, &page);
    return end_list(op, &page, e, "inbox");
}

const struct use_case UC_LIST_INBOX = {.name = "list_inbox", .read = list_inbox};

static bool add_generation(void *ctx, const struct generation *g)
{
    struct page *page = ctx;
    struct json_out *o = &page->out;
    if (!page_takes(page))
        return false;
    json_open(o, NULL, '{');
    json_add_int(o, "generation", g->generation);
    json_add_text(o, "reason", g->reason);
    json_add_int(o, "type_version", g->type_version);
    json_add_int(o, "version", g->version);
    json_add_int(o, "consumed_seq", g->consumed_seq);
    json_add_raw(o, "state", g->state);
    json_add_raw(o, "timers", g->timers);
    json_add_raw(o, "dedup", g->dedup);
    json_add_int(o, "first_event", g->first_event);
    json_add_time(o, "at", g->at);
    json_close(o, '}');
    page_set_last_number(page, g->generation);
    return true;
}

static enum err list_generations(struct op *op, struct read_tx *tx)
{
    const struct list_of_entity_input *in = op->input;
    struct entity_txn m;
    int64_t before = INT64_MAX;
    enum err e = begin_list(&m, op, tx, &before);
    if (e != ERR_OK)
        return e;
    struct page page = page_begin(op, in->limit);
    e = generations_list(tx->db, m.entity.num, before, in->limit + 1, add_generation, &page);
    return end_list(op, &page, e, "generations");
}

const struct use_case UC_LIST_GENERATIONS = {.name = "list_generations", .read = list_generations};

/* --- updates --- */

/* But for the opening brace. */
static void put_update(struct json_out *o, const struct entity_update *u)
{
    bool waits = u->outcome.ptr == NULL;
    json_add_int(o, "seq", u->seq);
    json_add_text(o, "name", u->name);
    json_add_text(o, "status",
                  waits         ? STR("waiting")
                  : u->rejected ? STR("rejected")
                                : STR("completed"));
    if (!waits)
        json_add_raw(o, u->rejected ? "error" : "result", u->outcome);
    json_add_time(o, "at", u->at);
    json_add_time(o, "decided_at", u->decided_at);
    json_close(o, '}');
}

void entity_update_answer(struct op *op, const struct entity_update *u, bool duplicate)
{
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_bool(&o, "duplicate", duplicate);
    put_update(&o, u);
    op->answer.run_over = u->outcome.ptr != NULL;
    op->answer.status = op->answer.run_over ? 200 : 202;
    op->answer.update_of = u->entity;
    op->answer.update_seq = u->seq;
}

void entity_update_answer_shown(struct op *op, const struct answer *shown)
{
    /* A replay by its idempotency key says what the first answer said. */
    bool duplicate = op->answer.outcome != NULL && strcmp(op->answer.outcome, "duplicate") == 0;
    struct buf body;
    buf_init(&body, HTTP_REPLY_MAX);
    buf_put(&body, duplicate ? STR("{\"duplicate\":true,") : STR("{\"duplicate\":false,"));
    buf_put_bytes(&body, shown->body.ptr + 1, shown->body.len - 1);
    op->answer.run_over = shown->run_over;
    op->answer.update_seq = shown->update_seq;
    if (answer_replace(&op->answer, &body))
        op->answer.status = shown->run_over ? 200 : 202;
}

static enum err get_update(struct op *op, struct read_tx *tx)
{
    const struct get_update_input *in = op->input;
    struct entity_txn m;
    struct entity_update update;
    bool found = true;
    int64_t seq = in->seq;
    enum err e = entity_txn_read(&m, op, tx, in->type, in->id);
    if (e != ERR_OK)
        return e;
    if (in->entity != 0 && in->entity != m.entity.num)
        return problem_set(&op->problem, ERR_ENTITY_NOT_FOUND, "The entity was deleted");
    if (seq == 0)
        e = signal_dedup_find(tx->db, m.entity.num, in->dedup_key, &found, &seq);
    if (e == ERR_OK && found)
        e = entity_updates_find(tx->db, m.entity.num, seq, &tx->arena, &found, &update);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the update");
    if (!found)
        return problem_set(&op->problem, ERR_UPDATE_NOT_FOUND,
                           "This update does not exist, or it has been removed");
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    put_update(&o, &update);
    op->answer.run_over = update.outcome.ptr != NULL;
    op->answer.update_seq = update.seq;
    return ERR_OK;
}

const struct use_case UC_GET_UPDATE = {.name = "get_update", .read = get_update};
