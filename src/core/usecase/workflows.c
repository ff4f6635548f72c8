/* Storing, showing and archiving workflows. */
#include "core/run/dispatch.h"
#include "core/txn/audit_record.h"
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

/* A head or version that outlives the callback which read it. */
struct kept_head {
    struct arena *arena;
    bool found;
    bool full;
    struct workflow_head head;
};

static void keep_head(void *ctx, const struct workflow_head *head)
{
    struct kept_head *k = ctx;
    k->found = true;
    k->head = *head;
    k->full = !(arena_keep(k->arena, &k->head.id) && arena_keep(k->arena, &k->head.description));
}

struct kept_version {
    struct arena *arena;
    bool found;
    bool full;
    struct workflow_version version;
};

static void keep_version(void *ctx, const struct workflow_version *version)
{
    struct kept_version *k = ctx;
    k->found = true;
    k->version = *version;
    k->full = !(arena_keep(k->arena, &k->version.definition) &&
                arena_keep(k->arena, &k->version.created_by));
}

static enum err not_found(struct op *op, struct str id)
{
    return problem_set(&op->problem, ERR_WORKFLOW_NOT_FOUND, "Workflow \"%.*s\" does not exist",
                       STR_ARG(id));
}

static enum err find_head(struct op *op, struct read_tx *tx, int64_t tenant, struct str id,
                          struct kept_head *ret)
{
    *ret = (struct kept_head){.arena = &tx->arena};
    enum err e = workflows_find(tx->db, tenant, id, keep_head, ret);
    if (e == ERR_OK && ret->full)
        e = ERR_NO_MEMORY;
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot read the workflow");
}

/* --- put --- */

static void answer_put(struct op *op, struct str id, int64_t version, bool created)
{
    const struct put_workflow_input *in = op->input;
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "id", id);
    json_add_int(&o, "version", version);
    json_add_bool(&o, "created", created);
    json_open(&o, "warnings", '[');
    struct str path;
    struct str message;
    if (str_cut(in->definition->unsupported, ':', &path, &message)) {
        json_open(&o, NULL, '{');
        json_add_text(&o, "path", path);
        json_add_text(&o, "message", str_trim(message));
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
}

static enum err store_version(struct op *op, struct tx *tx, int64_t tenant,
                              const struct workflow_head *head)
{
    const struct put_workflow_input *in = op->input;
    struct workflow_version version = {
        .version = head->latest_version,
        .digest = in->digest,
        .definition = in->text,
        .created_at = tx->now_ms,
        .created_by = op->caller.actor,
    };
    enum err e = workflows_put(tx->db, tenant, head);
    if (e == ERR_OK)
        e = workflows_add_version(tx->db, tenant, head->id, &version);
    return e;
}

static enum err put_workflow(struct op *op, struct tx *tx)
{
    const struct put_workflow_input *in = op->input;
    struct tenant *tenant;
    struct kept_head old;
    struct kept_version latest = {.arena = &tx->arena};
    enum err e = read_tx_tenant(&tx->read, op, &tenant);
    if (e == ERR_OK)
        e = find_head(op, &tx->read, tenant->num, in->workflow_id, &old);
    if (e != ERR_OK)
        return e;
    if (old.found)
        e = workflows_find_version(tx->db, tenant->num, in->workflow_id, old.head.latest_version,
                                   keep_version, &latest);
    if (e != ERR_OK || latest.full)
        return problem_set(&op->problem, e != ERR_OK ? e : ERR_NO_MEMORY,
                           "Cannot read the workflow");
    bool same = latest.found && sha256_eq(&latest.version.digest, &in->digest);
    if (same && old.head.archived_at < 0) {
        answer_put(op, in->workflow_id, old.head.latest_version, false);
        return ERR_OK;
    }
    struct workflow_head head = {
        .id = in->workflow_id,
        .latest_version = (old.found ? old.head.latest_version : 0) + (same ? 0 : 1),
        .description = json_text_of(json_member(in->definition->json, STR("description"))),
        .archived_at = -1, /* putting an archived workflow brings it back */
        .created_at = old.found ? old.head.created_at : tx->now_ms,
        .updated_at = tx->now_ms,
    };
    e = tx_tenant_ensure(tx, tenant);
    if (e == ERR_OK)
        e = same ? workflows_put(tx->db, tenant->num, &head)
                 : store_version(op, tx, tenant->num, &head);
    answer_put(op, in->workflow_id, head.latest_version, !same);
    if (e == ERR_OK)
        e = audit_record(op, tx, tenant->num, "workflow.put", head.id, buf_str(&op->answer.body));
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the workflow");
    tx_newest_changed(tx);
    if (!same && old.found)
        dispatch_workflow(tx, tenant->num); /* the new version's limits are in force */
    return ERR_OK;
}

const struct use_case UC_PUT_WORKFLOW = {.name = "put_workflow", .write = put_workflow};

static enum err archive_workflow(struct op *op, struct tx *tx)
{
    const struct workflow_input *in = op->input;
    struct tenant *tenant;
    struct kept_head head;
    bool changed = false;
    enum err e = read_tx_tenant(&tx->read, op, &tenant);
    if (e == ERR_OK)
        e = find_head(op, &tx->read, tenant->num, in->workflow_id, &head);
    if (e == ERR_OK && !head.found)
        return not_found(op, in->workflow_id);
    if (e != ERR_OK)
        return e;
    e = workflows_archive(tx->db, tenant->num, in->workflow_id, tx->now_ms, &changed);
    if (e == ERR_OK && changed)
        e = audit_record(op, tx, tenant->num, "workflow.archive", in->workflow_id, STR_NONE);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot archive the workflow");
    tx_newest_changed(tx);
    if (changed)
        head.head.archived_at = head.head.updated_at = tx->now_ms;
    struct json_out o = json_out_to(&op->answer.body);
    render_workflow_head(&o, &head.head);
    return ERR_OK;
}

const struct use_case UC_ARCHIVE_WORKFLOW = {.name = "archive_workflow", .write = archive_workflow};

/* --- show --- */

static enum err get_workflow(struct op *op, struct read_tx *tx)
{
    const struct workflow_input *in = op->input;
    struct tenant *tenant;
    struct kept_head head;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e == ERR_OK)
        e = find_head(op, tx, tenant->num, in->workflow_id, &head);
    if (e == ERR_OK && !head.found)
        return not_found(op, in->workflow_id);
    if (e != ERR_OK)
        return e;
    struct kept_version v = {.arena = &tx->arena};
    int64_t number = in->version < 0 ? head.head.latest_version : in->version;
    e = workflows_find_version(tx->db, tenant->num, in->workflow_id, number, keep_version, &v);
    if (e != ERR_OK || v.full)
        return problem_set(&op->problem, e != ERR_OK ? e : ERR_NO_MEMORY,
                           "Cannot read the version");
    if (!v.found)
        return problem_set(&op->problem, ERR_WORKFLOW_NOT_FOUND,
                           "Workflow \"%.*s\" has no version %lld", STR_ARG(in->workflow_id),
                           (long long)number);
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "id", in->workflow_id);
    json_add_int(&o, "version", number);
    json_add_int(&o, "latest_version", head.head.latest_version);
    json_add_bool(&o, "archived", head.head.archived_at >= 0);
    json_add_hash(&o, "digest", &v.version.digest);
    json_add_raw(&o, "definition", v.version.definition);
    json_add_text(&o, "created_by", v.version.created_by);
    json_add_time(&o, "created_at", v.version.created_at);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_GET_WORKFLOW = {.name = "get_workflow", .read = get_workflow};

/* --- lists --- */

static void add_head(void *ctx, const struct workflow_head *head)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return;
    render_workflow_head(&page->out, head);
    page_set_last(page, head->id);
}

static enum err list_workflows(struct op *op, struct read_tx *tx)
{
    const struct list_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    struct page page = page_begin(op, in->limit);
    e = workflows_list(tx->db, tenant->num, in->cursor, in->limit + 1, add_head, &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the workflows");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_WORKFLOWS = {.name = "list_workflows", .read = list_workflows};

static void add_version(void *ctx, const struct workflow_version *v)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return;
    struct json_out *o = &page->out;
    json_open(o, NULL, '{');
    json_add_int(o, "version", v->version);
    json_add_hash(o, "digest", &v->digest);
    json_add_text(o, "created_by", v->created_by);
    json_add_time(o, "created_at", v->created_at);
    json_close(o, '}');
    page_set_last_number(page, v->version);
}

static enum err list_versions(struct op *op, struct read_tx *tx)
{
    const struct list_input *in = op->input;
    struct tenant *tenant;
    struct kept_head head;
    int64_t before = INT64_MAX;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e == ERR_OK && in->cursor.ptr != NULL && (!str_to_i64(in->cursor, &before) || before < 1))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    if (e == ERR_OK)
        e = find_head(op, tx, tenant->num, in->parent, &head);
    if (e == ERR_OK && !head.found)
        return not_found(op, in->parent);
    if (e != ERR_OK)
        return e;
    struct page page = page_begin(op, in->limit);
    e = workflows_list_versions(tx->db, tenant->num, in->parent, before, in->limit + 1, add_version,
                                &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the versions");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_VERSIONS = {.name = "list_versions", .read = list_versions};

/* --- validate --- */

static void add_unsupported(struct json_out *o, struct str unsupported)
{
    struct str path;
    struct str message;
    if (!str_cut(unsupported, ':', &path, &message))
        return;
    json_open(o, NULL, '{');
    json_add_text(o, "path", path);
    json_add_text(o, "message", str_trim(message));
    json_close(o, '}');
}

static enum err validate_workflow(struct op *op, struct read_tx *tx)
{
    (void)tx;
    const struct validate_workflow_input *in = op->input;
    struct problem *p = &op->problem;
    struct json *json = NULL;
    struct definition *def = NULL;
    enum err e = json_read(in->text, p, &json);
    if (e == ERR_OK)
        e = definition_parse(json, in->workflow_id, p, &def);
    if (e == ERR_OK || e == ERR_DEFINITION_INVALID) {
        struct json_out o = json_out_to(&op->answer.body);
        json_open(&o, NULL, '{');
        json_add_bool(&o, "valid", e == ERR_OK);
        json_add_raw(&o, "errors", e == ERR_OK ? STR("[]") : buf_str(&p->faults));
        json_open(&o, "warnings", '[');
        if (e == ERR_OK)
            add_unsupported(&o, def->unsupported);
        json_close(&o, ']');
        json_close(&o, '}');
        problem_clear(p);
        e = ERR_OK;
    }
    definition_free(def);
    json_free(json);
    return e;
}

const struct use_case UC_VALIDATE_WORKFLOW = {.name = "validate_workflow",
                                              .read = validate_workflow};
