/* Signals and updates to entities, and what is done to an entity as a whole. */
#include "core/entity/entity_call.h"
#include "core/entity/entity_txn.h"
#include "core/entity/entity_update.h"
#include "core/txn/audit_record.h"
#include "core/txn/job_row.h"
#include "core/txn/render.h"
#include "core/txn/signal_dedup.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/entity/generations.h"
#include "store/entity/inbox.h"

/* --- signals --- */

struct signal {
    struct op *op;
    const struct signal_entity_input *in;
    struct entity_txn m;
    bool exists;
    bool asks;
    struct signal_dedup_rules rules;
    struct signal_dedup_key key;
};

static bool has_key(const struct signal *s)
{
    return s->in->dedup_key.ptr != NULL;
}

static enum err load(struct signal *s, struct op *op, struct tx *tx, bool asks)
{
    const struct signal_entity_input *in = op->input;
    *s = (struct signal){.op = op, .in = in, .asks = asks};
    enum err e = entity_txn_find(&s->m, op, tx, in->type, in->id, &s->exists);
    if (e != ERR_OK)
        return e;
    const struct entity_rules *rules = &s->m.version.rules;
    s->rules =
        (struct signal_dedup_rules){rules->dedup_window_ms, rules->dedup_max_keys, s->m.type.num};
    s->key = (struct signal_dedup_key){
        .owner = s->m.entity.num, .key = in->dedup_key, .request = in->request};
    return ERR_OK;
}

/* *ret_seq is the number of the signal that the key has come with before; 0: it is new. */
static enum err check_dedup(struct signal *s, int64_t *ret_seq)
{
    enum signal_dedup_verdict verdict = SIGNAL_NEW;
    enum err e = ERR_OK;
    *ret_seq = 0;
    if (has_key(s))
        e = signal_dedup_check(s->m.tx, &s->key, &s->rules, &verdict, ret_seq);
    if (e != ERR_OK)
        return problem_set(&s->op->problem, e, "Cannot look up the dedup_key");
    switch (verdict) {
    case SIGNAL_NEW:
        *ret_seq = 0;
        return ERR_OK;
    case SIGNAL_DUPLICATE:
        return ERR_OK;
    case SIGNAL_REUSED:
        return problem_set(
            &s->op->problem, ERR_IDEM_KEY_REUSED,
            "The dedup_key \"%.*s\" was already used for a different signal. Use a new key.",
            STR_ARG(s->in->dedup_key));
    }
    assert(!"unknown verdict");
    return ERR_INTERNAL;
}

static enum err check_room(struct signal *s)
{
    int64_t waiting = s->m.entity.last_seq - s->m.entity.consumed_seq;
    int64_t max = s->m.version.rules.max_inbox;
    if (!s->exists || waiting < max)
        return ERR_OK;
    struct problem *p = &s->op->problem;
    (void)problem_set(p, ERR_INBOX_FULL,
                      "The inbox holds %lld of at most %lld signals for %.*s \"%.*s\"",
                      (long long)waiting, (long long)max, STR_ARG(s->in->type), STR_ARG(s->in->id));
    problem_add_limit(p, "inbox", "inbox", waiting, max);
    return p->err;
}

static enum err tell_signal(struct signal *s, int64_t seq)
{
    const struct signal_entity_input *in = s->in;
    struct buf data;
    buf_init(&data, 16 * KIB + 2 * ENTITY_EVENT_PAYLOAD_MAX);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_int(&o, "signal", seq);
    json_add_text(&o, "name", in->name);
    json_add_text(&o, "by", s->op->caller.actor);
    if (has_key(s))
        json_add_text(&o, "dedup_key", in->dedup_key);
    if (s->asks)
        json_add_bool(&o, "update", true);
    if (in->payload.len <= ENTITY_EVENT_PAYLOAD_MAX)
        json_add_raw(&o, "payload", in->payload);
    else
        json_add_int(&o, "payload_bytes", (int64_t)in->payload.len);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? entity_txn_add_event(&s->m, EVENT_ENTITY_SIGNALED, buf_str(&data))
                               : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* Keys that left the window take with them what came of their updates. */
static enum err record_dedup(struct signal *s, int64_t seq)
{
    int64_t evicted = 0;
    if (!has_key(s))
        return ERR_OK;
    s->key.owner = s->m.entity.num;
    enum err e = signal_dedup_record(s->m.tx, &s->key, &s->rules, seq, &evicted);
    /* Updates that still wait are kept: their senders get the outcome. */
    int64_t through = MIN(evicted, s->m.entity.consumed_seq);
    return e == ERR_OK && through > 0 ? entity_updates_remove(s->m.tx->db, s->m.entity.num, through)
                                      : e;
}

/* The signal is durable, numbered and known by its key before the sender gets a response. */
static enum err take_in(struct signal *s, int64_t *ret_seq)
{
    const struct signal_entity_input *in = s->in;
    struct entity_txn *m = &s->m;
    enum err e = ERR_OK;
    if (!s->exists)
        e = entity_txn_create(m, in->id, s->op->caller.actor);
    int64_t seq = ++m->entity.last_seq;
    m->entity.active_at = m->tx->now_ms;
    struct inbox_signal row = {m->entity.num, seq, in->name, in->payload, s->asks, m->tx->now_ms};
    struct entity_update update = {
        .entity = m->entity.num, .seq = seq, .name = in->name, .at = m->tx->now_ms};
    if (e == ERR_OK)
        e = inbox_insert(m->tx->db, &row);
    if (e == ERR_OK && s->asks)
        e = entity_updates_insert(m->tx->db, &update);
    if (e == ERR_OK)
        e = record_dedup(s, seq);
    if (e == ERR_OK)
        e = tell_signal(s, seq);
    if (e == ERR_OK)
        e = entity_txn_settle(m);
    *ret_seq = seq;
    return e == ERR_OK ? ERR_OK : problem_set(&s->op->problem, e, "Cannot store the signal");
}

static enum err signal_entity(struct op *op, struct tx *tx)
{
    struct signal s;
    int64_t seq = 0;
    enum err e = load(&s, op, tx, false);
    if (e == ERR_OK)
        e = check_dedup(&s, &seq);
    bool duplicate = seq > 0;
    if (e == ERR_OK && !duplicate) {
        e = check_room(&s);
        if (e == ERR_OK)
            e = take_in(&s, &seq);
    }
    if (e != ERR_OK)
        return e;
    op->answer.changed_nothing = duplicate;
    op->answer.outcome = duplicate ? "duplicate" : "accepted";
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_int(&o, "seq", seq);
    json_add_bool(&o, "duplicate", duplicate);
    json_add_int(&o, "generation", s.m.entity.generation);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_SIGNAL_ENTITY = {.name = "signal_entity", .write = signal_entity};

/* --- updates --- */

/* A key that a plain signal came with has no outcome to wait for. */
static enum err show_known(struct signal *s, int64_t seq)
{
    struct entity_update update;
    bool found = false;
    enum err e =
        entity_updates_find(s->m.tx->db, s->m.entity.num, seq, &s->m.tx->arena, &found, &update);
    if (e != ERR_OK)
        return problem_set(&s->op->problem, e, "Cannot read the update");
    if (!found)
        return problem_set(&s->op->problem, ERR_IDEM_KEY_REUSED,
                           "The dedup_key \"%.*s\" was already used for a signal. Use a new key.",
                           STR_ARG(s->in->dedup_key));
    entity_update_answer(s->op, &update, true);
    return ERR_OK;
}

static enum err update_entity(struct op *op, struct tx *tx)
{
    struct signal s;
    int64_t seq = 0;
    enum err e = load(&s, op, tx, true);
    if (e == ERR_OK)
        e = check_dedup(&s, &seq);
    if (e != ERR_OK)
        return e;
    op->answer.changed_nothing = seq > 0;
    op->answer.outcome = seq > 0 ? "duplicate" : "accepted";
    if (seq > 0)
        return show_known(&s, seq);
    e = check_room(&s);
    if (e == ERR_OK)
        e = take_in(&s, &seq);
    if (e != ERR_OK)
        return e;
    struct entity_update waiting = {.entity = s.m.entity.num,
                                    .seq = seq,
                                    .name = s.in->name,
                                    .at = tx->now_ms,
                                    .decided_at = -1};
    entity_update_answer(op, &waiting, false);
    return ERR_OK;
}

const struct use_case UC_UPDATE_ENTITY = {.name = "update_entity", .write = update_entity};

/* --- migration --- */

static void answer_migration(struct op *op, const char *status, int64_t from, int64_t to)
{
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "status", str_of(status));
    json_add_int(&o, "from", from);
    json_add_int(&o, "to", to);
    json_close(&o, '}');
}

static enum err audit_entity(struct op *op, struct entity_txn *m, const char *action,
                             struct str detail)
{
    struct buf target;
    buf_init(&target, KIB);
    buf_put(&target, m->type.id);
    buf_put_char(&target, '/');
    buf_put(&target, m->entity.name);
    enum err e = buf_ok(&target)
                     ? audit_record(op, m->tx, m->entity.tenant, action, buf_str(&target), detail)
                     : ERR_NO_MEMORY;
    buf_release(&target);
    return e;
}

static enum err ask_for_migration(struct op *op, struct entity_txn *m, int64_t to)
{
    bool migrating = false;
    enum err e = entity_call_give_way(m, &migrating);
    if (e == ERR_OK && migrating)
        e = problem_set(
            &op->problem, ERR_ENTITY_MIGRATING,
            "A worker is migrating the entity to version %lld. Try again when it has finished.",
            (long long)m->entity.migrate_to);
    if (e != ERR_OK)
        return e;
    m->entity.migrate_to = to;
    struct buf data;
    buf_init(&data, KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_int(&o, "from", m->entity.type_version);
    json_add_int(&o, "to", to);
    json_add_text(&o, "by", op->caller.actor);
    json_close(&o, '}');
    e = buf_ok(&data) ? entity_txn_add_event(m, EVENT_ENTITY_MIGRATION_REQUESTED, buf_str(&data))
                      : ERR_NO_MEMORY;
    if (e == ERR_OK)
        e = audit_entity(op, m, "entity.migrate", buf_str(&data));
    buf_release(&data);
    return e == ERR_OK ? entity_txn_settle(m) : e;
}

static enum err migrate_entity(struct op *op, struct tx *tx)
{
    const struct migrate_entity_input *in = op->input;
    struct entity_txn m;
    struct entity_version target;
    bool known = false;
    enum err e = entity_txn_need(&m, op, tx, in->type, in->id);
    if (e != ERR_OK)
        return e;
    int64_t from = m.entity.type_version;
    int64_t to = in->version >= 0 ? in->version : m.type.latest_version;
    e = entity_versions_find(tx->db, m.type.num, to, &tx->arena, &known, &target);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the type's version");
    if (!known || to < from)
        return problem_set(&op->problem, ERR_VERSION_UNKNOWN,
                           known
                               ? "The entity is at version %lld and cannot go back to %lld"
                               : "The entity is at version %lld, and its type has no version %lld",
                           (long long)from, (long long)to);
    bool asked = m.entity.migrate_to == to;
    /* A finished entity starts again on the newest version when the next signal arrives. */
    bool there = to == from || m.entity.finished_at >= 0;
    if (to == from && m.entity.migrate_to >= 0)
        return problem_set(&op->problem, ERR_ENTITY_MIGRATING,
                           "The entity is being migrated to version %lld",
                           (long long)m.entity.migrate_to);
    op->answer.changed_nothing = asked || there;
    if (!asked && !there)
        e = ask_for_migration(op, &m, to);
    if (e != ERR_OK)
        return op->problem.err != ERR_OK
                   ? e
                   : problem_set(&op->problem, e, "Cannot request the migration");
    answer_migration(op, there ? "migrated" : "migrating", from, to);
    return ERR_OK;
}

const struct use_case UC_MIGRATE_ENTITY = {.name = "migrate_entity", .write = migrate_entity};

/* --- deletion --- */

static enum err remove_timer(struct tx *tx, int64_t due_at, int64_t entity, int64_t ordinal)
{
    struct timer timer = {.due_at = due_at, .owner = entity, .ordinal = ordinal};
    return due_at >= 0 ? timers_delete(tx->db, &timer) : ERR_OK;
}

static enum err tell_deletion(struct op *op, struct entity_txn *m)
{
    struct buf data;
    buf_init(&data, 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "by", op->caller.actor);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? entity_txn_add_event(m, EVENT_ENTITY_DELETED, buf_str(&data))
                               : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* Whoever works on it now finds that there is no such job; the rest goes in slices. */
static enum err delete_entity(struct op *op, struct tx *tx)
{
    const struct entity_input *in = op->input;
    struct entity_txn m;
    struct job job;
    bool found = false;
    enum err e = entity_txn_read(&m, op, &tx->read, in->type, in->id); /* a damaged one goes too */
    if (e != ERR_OK)
        return e;
    m.tx = tx;
    if (m.entity.open_job >= 0)
        e = jobs_find_at(tx->db, m.entity.num, m.entity.open_job, &tx->arena, &found, &job);
    if (e == ERR_OK && found)
        e = job_row_remove(tx, &job);
    if (e == ERR_OK && m.entity.open_job < 0)
        e = remove_timer(tx, m.entity.timer_at, m.entity.num, TIMER_ENTITY);
    if (e == ERR_OK)
        e = tell_deletion(op, &m);
    if (e == ERR_OK)
        e = entities_delete(tx->db, m.entity.num);
    if (e == ERR_OK)
        e = entity_sweeps_note_deleted(tx->db, &m.entity, tx->now_ms);
    if (e == ERR_OK)
        e = audit_entity(op, &m, "entity.delete", STR_NONE);
    if (e == ERR_OK)
        e = entity_txn_wake(&m, 0, 0);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot delete the entity");
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "type", in->type);
    json_add_text(&o, "id", in->id);
    json_add_bool(&o, "deleted", true);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_DELETE_ENTITY = {.name = "delete_entity", .write = delete_entity};
