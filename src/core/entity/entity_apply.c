/* Applying the answer of an entity's handler. */
#include "core/entity/entity_apply.h"

#include "base/limits.h"
#include "core/entity/entity_starts.h"
#include "core/txn/job_row.h"
#include "core/txn/render.h"
#include "domain/entity/entity_answer.h"
#include "store/entity/inbox.h"

/* JSON in the arena. ERR_ANSWER_INVALID when it is longer than it may be, ERR_NO_MEMORY. */
static enum err text_of(struct tx *tx, const struct json *value, size_t max, struct str *ret)
{
    struct buf text;
    buf_init(&text, max);
    if (value != NULL)
        json_write_plain(&text, value);
    else
        buf_put(&text, STR("null"));
    bool too_long = text.refused;
    *ret = arena_take(&tx->arena, &text);
    if (ret->ptr != NULL)
        return ERR_OK;
    return too_long ? ERR_ANSWER_INVALID : ERR_NO_MEMORY;
}

/* --- may it be applied: nothing is written before all of this is known --- */

struct names {
    const struct entity_answer *answer;
    int64_t count; /* timers there will be, but for those that are set */
};

static void count_other(void *ctx, const struct entity_timer *t)
{
    struct names *n = ctx;
    const struct entity_answer *a = n->answer;
    bool named = t->given;
    for (size_t i = 0; i < a->timer_count && !named; i++)
        named = str_eq(a->timers[i].name, t->name);
    for (size_t i = 0; i < a->cancelled_count && !named; i++)
        named = str_eq(a->cancelled[i], t->name);
    n->count += !named;
}

static enum err check_timers(struct op *op, struct entity_txn *m, const struct entity_answer *a)
{
    struct names names = {a, (int64_t)a->timer_count};
    enum err e = ERR_OK;
    for (size_t i = 0; i < a->timer_count; i++) {
        struct str text;
        e = text_of(m->tx, a->timers[i].payload, ENTITY_TIMER_PAYLOAD_MAX, &text);
        if (e != ERR_OK)
            return problem_set(&op->problem, e,
                               "output: set_timers[%zu].payload: may have at most %d bytes", i,
                               ENTITY_TIMER_PAYLOAD_MAX);
    }
    if (a->timer_count > 0)
        e = entity_timers_list(m->tx->db, m->entity.num, false, count_other, &names);
    if (e == ERR_OK && names.count > ENTITY_TIMERS_MAX)
        e = problem_set(&op->problem, ERR_ANSWER_INVALID,
                        "output: set_timers: an entity may have at most %d timers",
                        ENTITY_TIMERS_MAX);
    return e;
}

static enum err check_results(struct op *op, struct entity_txn *m, const struct entity_answer *a)
{
    const struct entity *x = &m->entity;
    enum err e = ERR_OK;
    for (size_t i = 0; i < a->result_count && e == ERR_OK; i++) {
        struct entity_update update;
        struct str text;
        int64_t seq = a->results[i].seq;
        bool found = false;
        if (seq > x->consumed_seq && seq <= x->given_seq)
            e = entity_updates_find(m->tx->db, x->num, seq, &m->tx->arena, &found, &update);
        if (e == ERR_OK && !found)
            e = problem_set(&op->problem, ERR_ANSWER_INVALID,
                            "output: results[%zu].seq: this call has no update %lld", i,
                            (long long)seq);
        if (e != ERR_OK)
            return e;
        e = text_of(m->tx, a->results[i].outcome, ENTITY_UPDATE_RESULT_MAX, &text);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "output: results[%zu]: may have at most %d bytes",
                               i, ENTITY_UPDATE_RESULT_MAX);
    }
    return e;
}

static enum err check(struct op *op, struct entity_txn *m, const struct entity_answer *a,
                      bool migrates, struct str *ret_state)
{
    enum err e = ERR_OK;
    *ret_state = STR_NONE;
    if (a->state != NULL)
        e = text_of(m->tx, a->state, ENTITY_STATE_MAX, ret_state);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "output: state: may have at most %d bytes",
                           ENTITY_STATE_MAX);
    if (migrates && (a->finished || a->result_count > 0))
        return problem_set(&op->problem, ERR_ANSWER_INVALID,
                           "output: a migration cannot have results or finish the entity");
    e = check_timers(op, m, a);
    return e == ERR_OK ? check_results(op, m, a) : e;
}

/* --- applying --- */

static enum err apply_timers(struct entity_txn *m, const struct entity_answer *a)
{
    struct db *db = m->tx->db;
    int64_t entity = m->entity.num;
    enum err e = entity_timers_remove_given(db, entity);
    for (size_t i = 0; i < a->cancelled_count && e == ERR_OK; i++)
        e = entity_timers_remove(db, entity, a->cancelled[i]);
    for (size_t i = 0; i < a->timer_count && e == ERR_OK; i++) {
        struct entity_timer t = {
            .entity = entity, .name = a->timers[i].name, .due_at = a->timers[i].due_at};
        if (a->timers[i].payload != NULL)
            e = text_of(m->tx, a->timers[i].payload, ENTITY_TIMER_PAYLOAD_MAX, &t.payload);
        if (e == ERR_OK)
            e = entity_timers_put(db, &t);
    }
    if (e == ERR_OK && a->finished)
        e = entity_timers_remove_all(db, entity);
    return e == ERR_OK ? entity_txn_seek_timer(m) : e;
}

static enum err emit(struct entity_txn *m, const struct answer_emit *emitted)
{
    struct buf data;
    buf_init(&data, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "event", emitted->event);
    json_add_name(&o, "payload");
    if (emitted->payload != NULL)
        json_write_plain(&data, emitted->payload);
    else
        buf_put(&data, STR("null"));
    o.comma = true;
    json_close(&o, '}');
    enum err e = buf_ok(&data)
                     ? entity_txn_add_named_event(m, EVENT_EMITTED, buf_str(&data), emitted->event)
                     : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* An update that the handler says nothing about was done, with nothing to tell. */
static enum err decide_updates(struct entity_txn *m, const struct entity_answer *a,
                               int64_t *ret_decided)
{
    struct entity_update u = {
        .entity = m->entity.num, .outcome = STR("null"), .decided_at = m->tx->now_ms};
    enum err e = ERR_OK;
    for (size_t i = 0; i < a->result_count && e == ERR_OK; i++) {
        struct entity_update told = u;
        bool decided = false;
        told.seq = a->results[i].seq;
        told.rejected = a->results[i].rejected;
        e = text_of(m->tx, a->results[i].outcome, ENTITY_UPDATE_RESULT_MAX, &told.outcome);
        if (e == ERR_OK)
            e = entity_updates_decide(m->tx->db, &told, &decided);
        *ret_decided += decided;
    }
    int64_t rest = 0;
    u.seq = m->entity.given_seq;
    if (e == ERR_OK && u.seq > m->entity.consumed_seq)
        e = entity_updates_decide_rest(m->tx->db, &u, m->entity.consumed_seq, &rest);
    *ret_decided += rest;
    return e;
}

static enum err tell_handled(struct entity_txn *m, const struct job *job, int64_t from,
                             int64_t updates)
{
    struct buf data;
    buf_init(&data, 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_int(&o, "version", m->entity.version);
    if (m->entity.consumed_seq > from) {
        json_add_int(&o, "from_seq", from + 1);
        json_add_int(&o, "through_seq", m->entity.consumed_seq);
    }
    if (updates > 0)
        json_add_int(&o, "updates", updates);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? entity_txn_add_event(m, EVENT_ENTITY_HANDLED, buf_str(&data))
                               : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* The state is of the new version from here on, and so is the generation. */
static enum err migrate(struct entity_txn *m)
{
    int64_t from = m->entity.type_version;
    enum err e = entity_version_load(m, m->entity.migrate_to, &m->version);
    m->entity.migrate_to = -1;
    if (e == ERR_OK)
        e = entity_txn_begin_generation(m, "migrated");
    struct buf data;
    buf_init(&data, KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_int(&o, "from", from);
    json_add_int(&o, "to", m->entity.type_version);
    json_add_int(&o, "generation", m->entity.generation);
    json_close(&o, '}');
    if (e == ERR_OK)
        e = buf_ok(&data) ? entity_txn_add_event(m, EVENT_ENTITY_MIGRATED, buf_str(&data))
                          : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

static enum err put_state(struct entity_txn *m, struct str state, bool migrates)
{
    int64_t version = migrates ? m->entity.migrate_to : m->entity.type_version;
    struct entity_state new = {version, state};
    bool found = true;
    enum err e = ERR_OK;
    if (state.ptr == NULL && migrates) /* it stays, but is of the new version now */
        e = entity_states_find(m->tx->db, m->entity.num, &m->tx->arena, &found, &new);
    new.type_version = version;
    if (e == ERR_OK && found && new.state.ptr != NULL)
        e = entity_states_put(m->tx->db, m->entity.num, &new);
    return e;
}

enum err entity_apply(struct op *op, struct entity_txn *m, struct job *job,
                      const struct json *output)
{
    struct entity_answer a;
    struct entity *x = &m->entity;
    struct str state = STR_NONE;
    bool migrates = job->item == CALL_MIGRATE;
    enum err e = entity_answer_parse(output, m->tx->now_ms, &m->tx->arena, &op->problem, &a);
    if (e == ERR_OK)
        e = check(op, m, &a, migrates, &state);
    if (e != ERR_OK)
        return e;
    int64_t from = x->consumed_seq;
    int64_t updates = 0;
    e = job_row_change(m->tx, job, JOB_ON_COMPLETE);
    tx_count_call(m->tx, ENTITY_CALL_APPLIED);
    if (e == ERR_OK)
        e = put_state(m, state, migrates);
    if (e == ERR_OK)
        e = apply_timers(m, &a);
    if (e == ERR_OK)
        e = decide_updates(m, &a, &updates);
    if (e == ERR_OK && x->given_seq > x->consumed_seq)
        e = inbox_remove(m->tx->db, x->num, x->given_seq);
    x->consumed_seq = MAX(x->consumed_seq, x->given_seq);
    x->version++;
    x->active_at = m->tx->now_ms;
    entity_txn_call_ended(m);
    if (e == ERR_OK)
        e = tell_handled(m, job, from, updates);
    for (size_t i = 0; i < a.emit_count && e == ERR_OK; i++)
        e = emit(m, &a.emits[i]);
    if (e == ERR_OK && a.start_count > 0)
        e = entity_starts_note(m, job, &a);
    if (e == ERR_OK && migrates)
        e = migrate(m);
    if (e == ERR_OK && a.finished) {
        x->finished_at = m->tx->now_ms;
        x->migrate_to = -1; /* nothing to migrate: the next signal reopens it */
        e = entity_txn_add_event(m, EVENT_ENTITY_FINISHED, STR_NONE);
    }
    if (e == ERR_OK)
        e = entity_txn_settle(m);
    return e == ERR_OK && updates > 0 ? entity_txn_wake(m, from, x->consumed_seq) : e;
}
