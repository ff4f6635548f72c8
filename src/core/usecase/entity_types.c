/* Types of entities: how their entities are handled. */
#include "core/entity/entity_txn.h"
#include "core/txn/audit_record.h"
#include "core/txn/cache/entity_type_cache.h"
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

enum { VERSIONS_SHOWN_MAX = 100 };

static void put_version(struct json_out *o, const struct entity_version *v)
{
    json_add_int(o, "version", v->version);
    entity_rules_render(o, &v->rules);
    json_add_text(o, "created_by", v->created_by);
    json_add_time(o, "created_at", v->created_at);
    json_add_time(o, "updated_at", v->updated_at);
}

/* --- put --- */

static bool same_rules(const struct entity_rules *a, const struct entity_rules *b)
{
    return str_eq(a->queue, b->queue) && str_eq(a->handler, b->handler) &&
           a->dedup_window_ms == b->dedup_window_ms && a->dedup_max_keys == b->dedup_max_keys &&
           a->rollover_events == b->rollover_events && a->keep_generations == b->keep_generations &&
           a->max_inbox == b->max_inbox && a->max_batch == b->max_batch &&
           a->max_attempts == b->max_attempts && a->backoff_ms == b->backoff_ms &&
           a->max_backoff_ms == b->max_backoff_ms;
}

/* The type itself, new or with another newest version. */
static enum err store_type(struct tx *tx, struct tenant *tenant, struct entity_type *type,
                           bool exists, int64_t version)
{
    type->latest_version = exists ? MAX(type->latest_version, version) : version;
    type->updated_at = tx->now_ms;
    if (exists)
        return entity_types_update(tx->db, type);
    type->created_at = tx->now_ms;
    enum err e = tx_tenant_ensure(tx, tenant);
    type->tenant = tenant->num;
    return e == ERR_OK ? entity_types_insert(tx->db, type) : e;
}

static enum err audit_put(struct op *op, struct tx *tx, const struct entity_type *type,
                          int64_t version)
{
    struct buf detail;
    buf_init(&detail, KIB);
    struct json_out o = json_out_to(&detail);
    json_open(&o, NULL, '{');
    json_add_int(&o, "version", version);
    json_close(&o, '}');
    enum err e = buf_ok(&detail) ? audit_record(op, tx, type->tenant, "entity_type.put", type->id,
                                                buf_str(&detail))
                                 : ERR_NO_MEMORY;
    buf_release(&detail);
    return e;
}

static void answer_put(struct op *op, const struct entity_type *type,
                       const struct entity_version *v, bool created)
{
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "type", type->id);
    put_version(&o, v);
    json_add_bool(&o, "created", created);
    json_close(&o, '}');
}

static enum err put_type(struct op *op, struct tx *tx)
{
    const struct put_entity_type_input *in = op->input;
    struct tenant *tenant;
    struct entity_type type = {.id = in->type};
    struct entity_version old = {0};
    bool exists = false;
    bool known = false;
    enum err e = read_tx_tenant(&tx->read, op, &tenant);
    if (e == ERR_OK && tenant->num != 0)
        e = entity_types_find(tx->db, tenant->num, in->type, &tx->arena, &exists, &type);
    int64_t newest = exists ? type.latest_version : 1;
    int64_t version = in->version >= 0 ? in->version : newest;
    if (e == ERR_OK && exists)
        e = entity_versions_find(tx->db, type.num, version, &tx->arena, &known, &old);
    if (e != ERR_OK)
        return op->problem.err != ERR_OK ? e : problem_set(&op->problem, e, "Cannot read the type");
    if (exists && !known && version < type.latest_version)
        return problem_set(&op->problem, ERR_VERSION_UNKNOWN,
                           "version: must be higher than the newest, %lld",
                           (long long)type.latest_version);
    if (known && same_rules(&old.rules, &in->rules)) {
        answer_put(op, &type, &old, false);
        return ERR_OK;
    }
    struct entity_version new = {
        .version = version,
        .rules = in->rules,
        .created_by = known ? old.created_by : op->caller.actor,
        .created_at = known ? old.created_at : tx->now_ms,
        .updated_at = tx->now_ms,
    };
    entity_type_cache_forget(tx->types);
    e = store_type(tx, tenant, &type, exists, version);
    new.type = type.num;
    if (e == ERR_OK)
        e = entity_versions_put(tx->db, &new);
    if (e == ERR_OK && known && !str_eq(old.rules.queue, new.rules.queue))
        e = entity_versions_requeue(tx->db, type.num, version);
    if (e == ERR_OK)
        e = audit_put(op, tx, &type, version);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the type");
    answer_put(op, &type, &new, !known);
    return ERR_OK;
}

const struct use_case UC_PUT_ENTITY_TYPE = {.name = "put_entity_type", .write = put_type};

/* --- showing --- */

static void add_version(void *ctx, const struct entity_version *v)
{
    struct json_out *o = ctx;
    json_open(o, NULL, '{');
    put_version(o, v);
    json_close(o, '}');
}

static enum err get_type(struct op *op, struct read_tx *tx)
{
    const struct entity_type_input *in = op->input;
    struct tenant *tenant;
    struct entity_type type;
    struct entity_version newest;
    bool found = false;
    enum err e = entity_type_load(op, tx, in->type, &tenant, &type);
    if (e != ERR_OK)
        return e;
    e = entity_versions_find(tx->db, type.num, type.latest_version, &tx->arena, &found, &newest);
    if (e == ERR_OK && !found)
        e = ERR_INTERNAL;
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the type's version");
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "type", type.id);
    put_version(&o, &newest);
    json_open(&o, "versions", '[');
    e = entity_versions_list(tx->db, type.num, VERSIONS_SHOWN_MAX, add_version, &o);
    json_close(&o, ']');
    json_close(&o, '}');
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot read the type's versions");
}

const struct use_case UC_GET_ENTITY_TYPE = {.name = "get_entity_type", .read = get_type};

static bool add_type(void *ctx, const struct entity_type *t)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return false;
    json_open(&page->out, NULL, '{');
    json_add_text(&page->out, "type", t->id);
    json_add_int(&page->out, "version", t->latest_version);
    json_add_time(&page->out, "created_at", t->created_at);
    json_add_time(&page->out, "updated_at", t->updated_at);
    json_close(&page->out, '}');
    page_set_last(page, t->id);
    return true;
}

static enum err list_types(struct op *op, struct read_tx *tx)
{
    const struct list_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    struct page page = page_begin(op, in->limit);
    e = entity_types_list(tx->db, tenant->num, in->cursor, in->limit + 1, add_type, &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the types");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_ENTITY_TYPES = {.name = "list_entity_types", .read = list_types};
