/* One entity inside a transaction. */
#include "core/entity/entity_txn.h"

#include "base/json.h"
#include "base/limits.h"
#include "core/txn/cache/entity_type_cache.h"
#include "core/txn/job_row.h"
#include "core/txn/render.h"
#include "core/txn/signal_dedup.h"
#include "store/entity/generations.h"
#include "store/entity/inbox.h"
#include "store/run/runs.h"

/* --- invariants --- */

/* The first thing of the row that contradicts another; NULL: none. */
static const char *contradiction(const struct entity *x)
{
    if (x->generation < 1 || x->consumed_seq > x->last_seq)
        return "its counters contradict each other";
    if (x->open_job < 0 && x->given_seq >= 0)
        return "it has given signals to no call";
    if (x->given_seq >= 0 && (x->given_seq < x->consumed_seq || x->given_seq > x->last_seq))
        return "its call was given signals that did not wait";
    if (x->finished_at >= 0 && x->open_job >= 0)
        return "it is finished and has an open call";
    return NULL;
}

static void assert_entity(const struct entity_txn *m)
{
    const struct entity *x = &m->entity;
    assert(x->num > 0 && x->tenant == m->tenant->num && x->type == m->type.num);
    assert(x->type_version == m->version.version);
    assert(contradiction(x) == NULL);
    assert(x->last_event > m->read.last_event && x->version >= m->read.version);
}

/* Loaded to be changed. */
static enum err begin_change(struct entity_txn *m, struct tx *tx, struct problem *p)
{
    const char *why = contradiction(&m->entity);
    if (m->entity.tenant != m->tenant->num || m->entity.type != m->type.num)
        why = "it belongs to another tenant than its type";
    m->tx = tx;
    return why == NULL ? ERR_OK
                       : problem_set(p, ERR_DAMAGED, "Entity %lld is damaged: %s",
                                     (long long)m->entity.num, why);
}

/* --- loading --- */

enum err entity_type_load(struct op *op, struct read_tx *tx, struct str id,
                          struct tenant **ret_tenant, struct entity_type *ret)
{
    bool found = false;
    enum err e = read_tx_tenant(tx, op, ret_tenant);
    if (e != ERR_OK)
        return e;
    if ((*ret_tenant)->num != 0)
        e = entity_type_cache_find(tx->types, tx->db, (*ret_tenant)->num, id, &tx->arena, &found,
                                   ret);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the entity type");
    if (!found)
        return problem_set(&op->problem, ERR_ENTITY_TYPE_NOT_FOUND,
                           "There is no entity type \"%.*s\"", STR_ARG(id));
    return ERR_OK;
}

enum err entity_version_load(struct entity_txn *m, int64_t version, struct entity_version *ret)
{
    bool found = false;
    struct read_tx *tx = m->read_tx;
    enum err e =
        entity_type_cache_version(tx->types, tx->db, m->type.num, version, &tx->arena, &found, ret);
    return e == ERR_OK && !found ? ERR_DAMAGED : e; /* versions are never removed */
}

static enum err read_if(struct entity_txn *m, struct op *op, struct read_tx *tx, struct str type,
                        struct str id, bool *ret_found)
{
    *m = (struct entity_txn){.read_tx = tx};
    enum err e = entity_type_load(op, tx, type, &m->tenant, &m->type);
    if (e != ERR_OK)
        return e;
    e = entities_find(tx->db, m->type.num, id, &tx->arena, ret_found, &m->entity);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the entity");
    m->read = m->entity;
    e = entity_version_load(m, *ret_found ? m->entity.type_version : m->type.latest_version,
                            &m->version);
    return e == ERR_OK ? ERR_OK
                       : problem_set(&op->problem, e, "Cannot read the version of the entity type");
}

enum err entity_txn_find(struct entity_txn *m, struct op *op, struct tx *tx, struct str type,
                         struct str id, bool *ret_found)
{
    enum err e = read_if(m, op, &tx->read, type, id, ret_found);
    m->tx = tx;
    return e == ERR_OK && *ret_found ? begin_change(m, tx, &op->problem) : e;
}

enum err entity_txn_read(struct entity_txn *m, struct op *op, struct read_tx *tx, struct str type,
                         struct str id)
{
    bool found = false;
    enum err e = read_if(m, op, tx, type, id, &found);
    if (e == ERR_OK && !found)
        e = problem_set(&op->problem, ERR_ENTITY_NOT_FOUND, "There is no %.*s \"%.*s\"",
                        STR_ARG(type), STR_ARG(id));
    return e;
}

enum err entity_txn_need(struct entity_txn *m, struct op *op, struct tx *tx, struct str type,
                         struct str id)
{
    enum err e = entity_txn_read(m, op, &tx->read, type, id);
    return e == ERR_OK ? begin_change(m, tx, &op->problem) : e;
}

enum err entity_txn_read_num(struct entity_txn *m, struct read_tx *tx, int64_t num,
                             struct problem *p, bool *ret_found)
{
    *m = (struct entity_txn){.read_tx = tx};
    enum err e = entities_find_num(tx->db, num, &tx->arena, ret_found, &m->entity);
    if (e == ERR_OK && !*ret_found)
        return ERR_OK;
    bool known = false;
    if (e == ERR_OK)
        e = read_tx_tenant_num(tx, m->entity.tenant, &m->tenant);
    if (e == ERR_OK)
        e = entity_types_find_num(tx->db, m->entity.type, &tx->arena, &known, &m->type);
    if (e == ERR_OK)
        e = known ? entity_version_load(m, m->entity.type_version, &m->version) : ERR_DAMAGED;
    m->read = m->entity;
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "Cannot load the entity");
}

enum err entity_txn_load(struct entity_txn *m, struct tx *tx, int64_t num, struct problem *p,
                         bool *ret_found)
{
    enum err e = entity_txn_read_num(m, &tx->read, num, p, ret_found);
    return e == ERR_OK && *ret_found ? begin_change(m, tx, p) : e;
}

/* --- telling --- */

enum err entity_txn_add_event(struct entity_txn *m, enum event_type type, struct str data)
{
    return entity_txn_add_named_event(m, type, data, STR_NONE);
}

enum err entity_txn_add_named_event(struct entity_txn *m, enum event_type type, struct str data,
                                    struct str published_as)
{
    assert(((event_type_flags(type) & EVENT_HAS_NAME) != 0) == (published_as.ptr != NULL));
    struct event event = {
        ++m->entity.last_event, m->tx->now_ms, event_type_name(type), data, -1, published_as};
    return tx_add_event(m->tx, m->entity.tenant, m->entity.num, &event);
}

static enum err tell_generation(struct entity_txn *m, enum event_type type)
{
    struct buf data;
    buf_init(&data, KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_int(&o, "generation", m->entity.generation);
    json_add_int(&o, "consumed_seq", m->entity.consumed_seq);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? entity_txn_add_event(m, type, buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

void entity_put_name(struct json_out *o, const struct entity_txn *m)
{
    json_open(o, "entity", '{');
    json_add_text(o, "type", m->type.id);
    json_add_text(o, "id", m->entity.name);
    json_close(o, '}');
}

/* --- generations --- */

static void put_timer(void *ctx, const struct entity_timer *t)
{
    struct json_out *o = ctx;
    json_open(o, NULL, '{');
    json_add_text(o, "name", t->name);
    json_add_time(o, "due_at", t->due_at);
    json_add_raw(o, "payload", t->payload);
    json_close(o, '}');
}

enum err entity_put_timers(struct json_out *o, const char *name, struct db *db, int64_t entity,
                           bool only_given)
{
    json_open(o, name, '[');
    enum err e = entity_timers_list(db, entity, only_given, put_timer, o);
    json_close(o, ']');
    return e == ERR_OK && !buf_ok(o->buf) ? ERR_NO_MEMORY : e;
}

/* The keys stay where they are, whatever generation they came in: the record says which they are.
 */
static enum err put_window(struct entity_txn *m, struct buf *out)
{
    struct signal_dedup_view view = {.oldest_at = -1};
    enum err e = ERR_OK;
    if (!m->is_new)
        e = signal_dedup_show(m->tx->db, m->entity.num, &view);
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    json_add_int(&o, "keys", view.keys);
    json_add_int(&o, "first", view.first);
    json_add_int(&o, "last", view.last);
    json_add_time(&o, "oldest", view.oldest_at);
    json_close(&o, '}');
    return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : e;
}

static enum err record_generation(struct entity_txn *m, const char *reason)
{
    struct entity *x = &m->entity;
    struct entity_state state = {0};
    bool has_state = false;
    struct buf timers;
    struct buf dedup;
    buf_init(&timers, 4 * MIB);
    buf_init(&dedup, KIB);
    enum err e = m->is_new
                     ? ERR_OK
                     : entity_states_find(m->tx->db, x->num, &m->tx->arena, &has_state, &state);
    struct json_out o = json_out_to(&timers);
    if (e == ERR_OK)
        e = entity_put_timers(&o, NULL, m->tx->db, x->num, false);
    if (e == ERR_OK)
        e = put_window(m, &dedup);
    struct generation g = {
        .entity = x->num,
        .generation = x->generation,
        .type_version = x->type_version,
        .reason = str_of(reason),
        .state = state.state,
        .version = x->version,
        .consumed_seq = x->consumed_seq,
        .timers = buf_str(&timers),
        .dedup = buf_str(&dedup),
        .first_event = x->rolled_event + 1,
        .first_call = x->calls + (x->open_job < 0), /* the call under way is of the new one */
        .at = m->tx->now_ms,
    };
    if (e == ERR_OK)
        e = generations_insert(m->tx->db, &g);
    buf_release(&timers);
    buf_release(&dedup);
    return e;
}

/* Generations that need not be kept go later, a few rows at a time. */
static enum err note_sweep(struct entity_txn *m)
{
    int64_t keep = m->version.rules.keep_generations;
    int64_t through = m->entity.generation - 1 - keep;
    return keep >= 0 && through >= 1 ? entity_sweeps_note(m->tx->db, m->entity.num, through)
                                     : ERR_OK;
}

enum err entity_txn_begin_generation(struct entity_txn *m, const char *reason)
{
    enum err e =
        tx_write_events(m->tx); /* no row has events of two generations: the sweep removes rows */
    if (e != ERR_OK)
        return e;
    m->entity.generation++;
    m->entity.rolled_event = m->entity.last_event;
    if (!m->is_new && m->entity.type_version != m->version.version)
        e = entities_pin(m->tx->db, m->entity.num, m->version.version);
    m->entity.type_version = m->version.version;
    if (e == ERR_OK)
        e = record_generation(m, reason);
    return e == ERR_OK ? note_sweep(m) : e;
}

enum err entity_txn_create(struct entity_txn *m, struct str id, struct str by)
{
    m->is_new = true;
    m->entity = (struct entity){
        .tenant = m->tenant->num,
        .type = m->type.num,
        .name = id,
        .given_seq = -1,
        .open_job = -1,
        .timer_at = -1,
        .migrate_to = -1,
        .created_at = m->tx->now_ms,
        .active_at = m->tx->now_ms,
        .finished_at = -1,
    };
    m->read = m->entity;
    enum err e = tx_new_entity(m->tx, &m->entity.id, &m->entity.num);
    if (e == ERR_OK)
        e = entity_txn_begin_generation(m, "created");
    struct buf data;
    buf_init(&data, KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_int(&o, "type_version", m->version.version);
    json_add_text(&o, "by", by);
    json_close(&o, '}');
    if (e == ERR_OK)
        e = buf_ok(&data) ? entity_txn_add_event(m, EVENT_ENTITY_CREATED, buf_str(&data))
                          : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* --- timers --- */

enum err entity_txn_seek_timer(struct entity_txn *m)
{
    return entity_timers_next(m->tx->db, m->entity.num, &m->entity.timer_at);
}

/* While a call is under way nothing can be done about a timer that is due. */
static int64_t armed_at(const struct entity *x)
{
    return x->open_job < 0 ? x->timer_at : -1;
}

static enum err arm(struct entity_txn *m)
{
    int64_t was = armed_at(&m->read);
    int64_t is = armed_at(&m->entity);
    if (was == is)
        return ERR_OK;
    struct timer old = {was, m->entity.num, TIMER_ENTITY, 0, m->entity.tenant};
    struct timer new = {is, m->entity.num, TIMER_ENTITY, 0, m->entity.tenant};
    enum err e = was >= 0 ? timers_delete(m->tx->db, &old) : ERR_OK;
    if (e != ERR_OK || is < 0)
        return e;
    tx_note_due(m->tx, is);
    return timers_insert(m->tx->db, &new);
}

/* --- calls --- */

void entity_txn_call_ended(struct entity_txn *m)
{
    m->entity.open_job = -1;
    m->entity.given_seq = -1;
}

static bool has_work(const struct entity_txn *m)
{
    const struct entity *x = &m->entity;
    return x->migrate_to >= 0 || x->last_seq > x->consumed_seq ||
           (x->timer_at >= 0 && x->timer_at <= m->tx->now_ms);
}

/* A migration is the business of those who handle the version that it leads to. */
static enum err queue_of_call(struct entity_txn *m, bool migrates, struct str *ret)
{
    *ret = m->version.rules.queue;
    if (!migrates)
        return ERR_OK;
    struct entity_version to;
    enum err e = entity_version_load(m, m->entity.migrate_to, &to);
    if (e == ERR_OK)
        *ret = to.rules.queue;
    return e;
}

static enum err open_call(struct entity_txn *m)
{
    struct entity *x = &m->entity;
    bool migrates = x->migrate_to >= 0;
    struct str queue = STR_NONE;
    enum err e = queue_of_call(m, migrates, &queue);
    if (e != ERR_OK)
        return e;
    int64_t ordinal = x->calls++ % JOB_ORDINAL_MAX + 1;
    if (x->calls > JOB_ORDINAL_MAX) /* years later the numbers come round again */
        e = jobs_remove(m->tx->db, x->num, ordinal);
    struct job job = job_row_blank(m->tx, x->num, ordinal, x->tenant);
    job.id = jobs_new_id(m->tx->env, x->num, ordinal);
    job.step = JOB_OF_ENTITY;
    job.queue = queue;
    job.item = migrates ? CALL_MIGRATE : CALL_SIGNALS;
    x->open_job = ordinal;
    x->given_seq = -1;
    return e == ERR_OK ? job_row_create(m->tx, &job) : e;
}

/* --- settling --- */

/* A signal arrived for a finished entity: it starts again like a new one, and keeps only its
 * keys. */
static enum err reopen(struct entity_txn *m)
{
    m->entity.finished_at = -1;
    enum err e = entity_states_delete(m->tx->db, m->entity.num);
    if (e == ERR_OK)
        e = entity_version_load(m, m->type.latest_version, &m->version);
    if (e == ERR_OK)
        e = entity_txn_begin_generation(m, "reopened");
    return e == ERR_OK ? tell_generation(m, EVENT_ENTITY_REOPENED) : e;
}

static enum err roll_over(struct entity_txn *m)
{
    enum err e = entity_txn_begin_generation(m, "rolled_over");
    return e == ERR_OK ? tell_generation(m, EVENT_ENTITY_ROLLED_OVER) : e;
}

enum err entity_txn_settle(struct entity_txn *m)
{
    struct entity *x = &m->entity;
    enum err e = ERR_OK;
    if (x->finished_at >= 0 && has_work(m))
        e = reopen(m);
    if (e == ERR_OK && x->open_job < 0 && has_work(m))
        e = open_call(m);
    if (e == ERR_OK)
        e = arm(m);
    if (e == ERR_OK && x->last_event - x->rolled_event >= m->version.rules.rollover_events)
        e = roll_over(m);
    if (e != ERR_OK)
        return e;
    assert_entity(m);
    if (m->is_new)
        e = entities_insert(m->tx->db, x);
    else
        e = entities_update(m->tx->db, x, m->read.version, m->read.last_event);
    if (e != ERR_OK)
        return e;
    m->is_new = false;
    m->read = *x;
    return ERR_OK;
}

/* One that was put off is later than the entity says; one of an earlier time is only removed. */
enum err entity_txn_timer_due(struct entity_txn *m, int64_t due_at)
{
    int64_t armed = armed_at(&m->entity);
    if (armed < 0 || armed > due_at)
        return ERR_OK;
    struct buf data;
    buf_init(&data, KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_time(&o, "due_at", m->entity.timer_at);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? entity_txn_add_event(m, EVENT_ENTITY_TIMER_DUE, buf_str(&data))
                               : ERR_NO_MEMORY;
    buf_release(&data);
    return e == ERR_OK ? entity_txn_settle(m) : e;
}

/* --- who waits --- */

struct uuid entity_wait_key(struct str tenant, struct str type, struct str id)
{
    struct str parts[] = {tenant, type, id};
    struct sha256 hash = sha256_of_parts(parts, ARRAY_LEN(parts));
    struct uuid key;
    memcpy(key.bytes, hash.bytes, sizeof(key.bytes));
    return key;
}

enum err entity_txn_wake(struct entity_txn *m, int64_t after, int64_t through)
{
    struct uuid key = entity_wait_key(m->tenant->id, m->type.id, m->entity.name);
    return tx_wake_updates(m->tx, m->entity.tenant, key, after, through);
}
