/* The audit trail: pages of it, all of it, and whether somebody has tampered with it. */
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/audit.h"
#include "store/tenants.h"

enum { EXPORT_SLICE_MAX = 64 * KIB }; /* the rest of an answer's room holds any one entry */

/* The caller's chain; "*" is that of the server itself. */
static enum err chain_of(struct op *op, struct read_tx *tx, int64_t *ret)
{
    struct tenant *tenant = NULL;
    *ret = 0;
    if (str_is(op->caller.tenant, "*"))
        return ERR_OK;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e == ERR_OK)
        *ret = tenant->num != 0 ? tenant->num : -1; /* not stored: it has no entries */
    return e;
}

static void render_entry(struct json_out *o, struct str tenant, const struct audit_row *row)
{
    json_open(o, NULL, '{');
    json_add_text(o, "tenant", tenant);
    json_add_int(o, "seq", row->seq);
    json_add_time(o, "at", row->entry.at);
    json_add_text(o, "actor", row->entry.actor);
    json_add_text(o, "peer", row->entry.peer);
    json_add_text(o, "action", row->entry.action);
    json_add_text(o, "target", row->entry.target);
    json_add_raw(o, "detail", row->entry.detail);
    json_add_hash(o, "hash", &row->hash);
    json_close(o, '}');
}

/* --- pages --- */

static bool add_entry(void *ctx, const struct audit_row *row)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return false;
    render_entry(&page->out, page->op->caller.tenant, row);
    return true;
}

static enum err list_audit(struct op *op, struct read_tx *tx)
{
    const struct list_audit_input *in = op->input;
    struct audit_filter filter = {.actor = in->actor, .action = in->action};
    int64_t from = in->newest_first ? INT64_MAX : in->after;
    enum err e = chain_of(op, tx, &filter.tenant);
    if (e != ERR_OK)
        return e;
    if (in->cursor.ptr != NULL && (!str_to_i64(in->cursor, &from) || from < 0))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct page page = page_begin(op, in->limit);
    int64_t next = -1;
    e = audit_list(tx->db, &filter, from, in->newest_first, add_entry, &page, &next);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the audit trail");
    page.more = next >= 0; /* also when the scan ended before the page was full */
    if (page.more)
        page_set_last_number(&page, next);
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_AUDIT = {.name = "list_audit", .read = list_audit};

/* --- as JSON lines --- */

static bool add_line(void *ctx, const struct audit_row *row)
{
    struct op *op = ctx;
    struct buf *out = &op->answer.body;
    if (out->len > EXPORT_SLICE_MAX)
        return false;
    struct json_out o = json_out_to(out);
    render_entry(&o, op->caller.tenant, row);
    buf_put_char(out, '\n');
    return true;
}

static enum err export_audit(struct op *op, struct read_tx *tx)
{
    const struct export_audit_input *in = op->input;
    struct audit_filter filter = {.actor = in->actor, .action = in->action};
    int64_t next = -1;
    enum err e = chain_of(op, tx, &filter.tenant);
    if (e != ERR_OK)
        return e;
    e = audit_list(tx->db, &filter, in->after, false, add_line, op, &next);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the audit trail");
    *in->ret_next = next;
    return ERR_OK;
}

const struct use_case UC_EXPORT_AUDIT = {.name = "export_audit", .read = export_audit};

/* --- is it whole? --- */

struct verdict {
    bool broken;
    struct audit_break first;
};

static void note_first(void *ctx, const struct audit_break *found)
{
    struct verdict *v = ctx;
    if (!v->broken)
        v->first = *found;
    v->broken = true;
}

static enum err render_break(struct json_out *o, struct read_tx *tx, const struct audit_break *b)
{
    struct tenant tenant = {.id = STR("*")};
    bool found = b->tenant == 0;
    enum err e = ERR_OK;
    if (!found)
        e = tenants_find_num(tx->db, b->tenant, &tx->arena, &found, &tenant);
    if (e != ERR_OK)
        return e;
    json_open(o, "broken", '{');
    json_add_text_or_null(o, "tenant", found ? tenant.id : STR_NONE);
    json_add_int(o, "seq", b->seq);
    json_add_time(o, "at", b->at);
    json_add_text(o, "what", str_of(audit_fault_name(b->fault)));
    json_close(o, '}');
    return ERR_OK;
}

static void render_head(struct json_out *o, const struct audit_head *head)
{
    json_open(o, "head", '{');
    json_add_int(o, "seq", head->seq);
    json_add_hash(o, "hash", &head->hash);
    json_close(o, '}');
}

static enum err verify_audit(struct op *op, struct read_tx *tx)
{
    bool all = str_is(op->caller.tenant, "*");
    int64_t tenant;
    int64_t checked = 0;
    struct verdict v = {0};
    struct audit_head head = {0};
    enum err e = chain_of(op, tx, &tenant);
    if (e != ERR_OK)
        return e;
    if (all)
        e = audit_verify_all(tx->db, note_first, &v, &checked);
    else
        e = audit_verify(tx->db, tenant, note_first, &v, &checked, &head);
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_bool(&o, "ok", !v.broken);
    json_add_int(&o, "checked", checked);
    if (e == ERR_OK && v.broken)
        e = render_break(&o, tx, &v.first);
    else
        json_add_null(&o, "broken");
    if (head.seq > 0)
        render_head(&o, &head);
    else
        json_add_null(&o, "head");
    json_close(&o, '}');
    return e == ERR_OK ? ERR_OK
                       : problem_set(&op->problem, e, "The audit trail could not be checked");
}

/* Reads a whole chain, as the doctor does. */
const struct use_case UC_VERIFY_AUDIT = {
    .name = "verify_audit", .read = verify_audit, .read_ms = DOCTOR_MS_MAX};
