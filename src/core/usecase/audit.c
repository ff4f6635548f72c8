/* The audit trail: pages of it, all of it, and whether somebody has tampered with it. */
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/audit.h"
#include "store/tenants.h"

enum {
    EXPORT_SLICE_MAX = 64 * KIB, /* the rest of an answer's room holds any one entry */
    HEADS_BYTES_MAX = MIB, /* more chains than a tenant has: two for each time that it moved */
};

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

/* Where a reading of the trail is: in the tenant's own chain, or in one that joined it. The oldest
 * entries first, those that joined come before the tenant's own. */
struct trail {
    int64_t tenant;
    int64_t joined; /* 0: the tenant's own */
    int64_t from;
    bool newest_first;
    struct op *op;
    struct page *page; /* of the list */
};

enum { CHAINS_AT_ONCE = 16 };

static enum err trail_begin(struct db *db, struct trail *t, int64_t after)
{
    t->from = t->newest_first ? INT64_MAX : after;
    /* After a certain entry there are only later ones: they are in the tenant's own chain. */
    return t->newest_first || after > 0 ? ERR_OK
                                        : audit_next_joined(db, t->tenant, 0, false, &t->joined);
}

/* A number of the tenant's own chain, or that of another one and a number of it. */
static enum err trail_read_cursor(struct db *db, struct trail *t, struct str cursor, bool *ret_ok)
{
    struct str chain;
    struct str seq;
    int64_t found = 0;
    *ret_ok = str_to_i64(cursor, &t->from) && t->from >= 0;
    if (*ret_ok || !str_cut(cursor, '.', &chain, &seq) || !str_to_i64(chain, &t->joined) ||
        t->joined <= 0)
        return ERR_OK;
    enum err e = audit_next_joined(db, t->tenant, t->joined - 1, false, &found);
    *ret_ok = found == t->joined && str_to_i64(seq, &t->from) && t->from >= 0;
    return e;
}

static enum err trail_next_chain(struct db *db, struct trail *t, bool *ret_more)
{
    bool was_own = t->joined == 0;
    int64_t from = was_own && t->newest_first ? INT64_MAX : t->joined;
    *ret_more = false;
    if (was_own && !t->newest_first)
        return ERR_OK;
    enum err e = audit_next_joined(db, t->tenant, from, t->newest_first, &t->joined);
    t->from = t->newest_first ? INT64_MAX : 0;
    *ret_more = t->joined != 0 || !t->newest_first;
    return e;
}

/* *ret_more: it goes on where the trail is then. */
static enum err trail_read(struct db *db, struct trail *t, struct audit_filter filter,
                           audit_each *each, bool *ret_more)
{
    enum err e = ERR_OK;
    *ret_more = true;
    for (int i = 0; e == ERR_OK && *ret_more && i < CHAINS_AT_ONCE; i++) {
        int64_t next = -1;
        filter.chain = t->joined != 0 ? t->joined : t->tenant;
        e = audit_list(db, &filter, t->from, t->newest_first, each, t, &next);
        if (e == ERR_OK && next >= 0) {
            t->from = next;
            return ERR_OK;
        }
        if (e == ERR_OK)
            e = trail_next_chain(db, t, ret_more);
    }
    return e;
}

static void render_entry(struct json_out *o, const struct trail *t, const struct audit_row *row)
{
    json_open(o, NULL, '{');
    json_add_text(o, "tenant", t->op->caller.tenant);
    if (t->joined != 0)
        json_add_int(o, "chain", t->joined);
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
    struct trail *t = ctx;
    if (!page_takes(t->page))
        return false;
    render_entry(&t->page->out, t, row);
    return true;
}

static void set_cursor(struct page *page, const struct trail *t)
{
    char place[48];
    (void)snprintf(place, sizeof(place), "%lld.%lld", (long long)t->joined, (long long)t->from);
    if (t->joined != 0)
        page_set_last(page, str_of(place));
    else
        page_set_last_number(page, t->from);
}

static enum err list_audit(struct op *op, struct read_tx *tx)
{
    const struct list_audit_input *in = op->input;
    struct audit_filter filter = {.actor = in->actor, .action = in->action};
    struct trail t = {.newest_first = in->newest_first, .op = op};
    bool cursor_ok = true;
    enum err e = chain_of(op, tx, &t.tenant);
    if (e != ERR_OK)
        return e;
    if (in->cursor.ptr != NULL)
        e = trail_read_cursor(tx->db, &t, in->cursor, &cursor_ok);
    else
        e = trail_begin(tx->db, &t, in->after);
    if (e == ERR_OK && !cursor_ok)
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct page page = page_begin(op, in->limit);
    t.page = &page;
    if (e == ERR_OK) /* more also when the scan ended before the page was full */
        e = trail_read(tx->db, &t, filter, add_entry, &page.more);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the audit trail");
    if (page.more)
        set_cursor(&page, &t);
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_AUDIT = {.name = "list_audit", .read = list_audit};

/* --- as JSON lines --- */

static bool add_line(void *ctx, const struct audit_row *row)
{
    const struct trail *t = ctx;
    struct buf *out = &t->op->answer.body;
    if (out->len > EXPORT_SLICE_MAX)
        return false;
    struct json_out o = json_out_to(out);
    render_entry(&o, t, row);
    buf_put_char(out, '\n');
    return true;
}

static enum err export_audit(struct op *op, struct read_tx *tx)
{
    const struct export_audit_input *in = op->input;
    struct audit_filter filter = {.actor = in->actor, .action = in->action};
    struct trail t = {.joined = in->chain, .from = in->after, .op = op};
    bool more = false;
    enum err e = chain_of(op, tx, &t.tenant);
    if (e != ERR_OK)
        return e;
    if (t.joined < 0) {
        t.joined = 0;
        e = trail_begin(tx->db, &t, in->after);
    }
    if (e == ERR_OK)
        e = trail_read(tx->db, &t, filter, add_line, &more);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the audit trail");
    *in->ret_chain = t.joined;
    *in->ret_next = more ? t.from : -1;
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
    if (b->chain != 0)
        json_add_int(o, "chain", b->chain);
    json_add_int(o, "seq", b->seq);
    json_add_time(o, "at", b->at);
    json_add_text(o, "what", str_of(audit_fault_name(b->fault)));
    json_close(o, '}');
    return ERR_OK;
}

/* How a chain ends: joined is 0 for the tenant's own. */
static void render_head(struct json_out *o, const char *name, int64_t joined,
                        const struct audit_head *head)
{
    json_open(o, name, '{');
    if (joined != 0)
        json_add_int(o, "chain", joined);
    json_add_int(o, "seq", head->seq);
    json_add_hash(o, "hash", &head->hash);
    json_close(o, '}');
}

/* The ends of all chains of a tenant that has more than its own. */
static enum err verify_joined(struct read_tx *tx, int64_t tenant, const struct audit_head *own,
                              struct verdict *v, int64_t *checked, struct json_out *heads)
{
    int64_t chain = 0;
    enum err e = audit_next_joined(tx->db, tenant, 0, false, &chain);
    if (e != ERR_OK || chain == 0)
        return e;
    json_open(heads, NULL, '[');
    if (own->seq > 0)
        render_head(heads, NULL, 0, own);
    while (e == ERR_OK && chain != 0) {
        struct audit_head head = {0};
        e = audit_verify(tx->db, chain, note_first, v, checked, &head);
        if (e != ERR_OK)
            return e;
        render_head(heads, NULL, chain, &head);
        e = audit_next_joined(tx->db, tenant, chain, false, &chain);
    }
    json_close(heads, ']');
    return e;
}

static enum err verify_chains(struct read_tx *tx, int64_t tenant, struct verdict *v,
                              int64_t *checked, struct audit_head *head, struct buf *heads)
{
    struct json_out ends = json_out_to(heads);
    enum err e = audit_verify(tx->db, tenant, note_first, v, checked, head);
    if (e == ERR_OK)
        e = verify_joined(tx, tenant, head, v, checked, &ends);
    return e == ERR_OK && !buf_ok(heads) ? ERR_NO_MEMORY : e;
}

static enum err verify_audit(struct op *op, struct read_tx *tx)
{
    int64_t tenant;
    int64_t checked = 0;
    struct verdict v = {0};
    struct audit_head head = {0};
    struct buf heads; /* a list; empty: the tenant has no chain but its own */
    enum err e = chain_of(op, tx, &tenant);
    if (e != ERR_OK)
        return e;
    buf_init(&heads, HEADS_BYTES_MAX);
    if (str_is(op->caller.tenant, "*"))
        e = audit_verify_all(tx->db, note_first, &v, &checked);
    else
        e = verify_chains(tx, tenant, &v, &checked, &head, &heads);
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_bool(&o, "ok", !v.broken);
    json_add_int(&o, "checked", checked);
    if (e == ERR_OK && v.broken)
        e = render_break(&o, tx, &v.first);
    else
        json_add_null(&o, "broken");
    if (head.seq > 0)
        render_head(&o, "head", 0, &head);
    else
        json_add_null(&o, "head");
    if (heads.len > 0)
        json_add_raw(&o, "heads", buf_str(&heads));
    json_close(&o, '}');
    buf_release(&heads);
    return e == ERR_OK ? ERR_OK
                       : problem_set(&op->problem, e, "The audit trail could not be checked");
}

/* Reads a whole chain, as the doctor does. */
const struct use_case UC_VERIFY_AUDIT = {
    .name = "verify_audit", .read = verify_audit, .read_ms = DOCTOR_MS_MAX};
