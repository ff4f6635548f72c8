/* The outbox: how far the relay has come, and the messages that the bus refused. */
#include "core/usecase/outbox.h"

#include "core/txn/audit_record.h"
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/usecase/use_cases.h"
#include "store/outbox/feed.h"

/* --- for the relay --- */

static enum err mark_relayed(struct op *op, struct tx *tx)
{
    const struct mark_relayed_input *in = op->input;
    enum err e = ERR_OK;
    for (const struct relay_note *n = in->notes; n != NULL && e == ERR_OK; n = n->next)
        e = n->stored ? parked_remove(tx->db, n->parked.message_id)
                      : parked_put(tx->db, &n->parked);
    if (e == ERR_OK)
        e = feed_mark_set(tx->db, FEED_MARK_BUS, in->through);
    return e == ERR_OK ? ERR_OK
                       : problem_set(&op->problem, e, "Cannot store the position of the bus");
}

const struct use_case UC_MARK_RELAYED = {.name = "mark_relayed", .write = mark_relayed};

/* --- for operators --- */

/* 0: all tenants. */
static enum err tenant_of(struct op *op, struct read_tx *tx, int64_t *ret)
{
    struct tenant *tenant = NULL;
    *ret = 0;
    if (str_is(op->caller.tenant, "*"))
        return ERR_OK;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e == ERR_OK) /* one that is not stored has nothing */
        *ret = tenant->num != 0 ? tenant->num : -1;
    return e;
}

static void show_bus(struct json_out *o, const struct list_outbox_input *in)
{
    json_open(o, "bus", '{');
    json_add_text_or_null(o, "kind", str_of(in->bus));
    json_add_text(o, "status", str_of(in->status));
    json_add_text(o, "detail", str_of(in->detail));
    json_close(o, '}');
    json_add_int(o, "depth", in->depth);
    json_add_int(o, "lag_ms", in->lag_ms);
}

static bool add_parked(void *ctx, const struct parked *p)
{
    struct page *page = ctx;
    struct json_out *o = &page->out;
    char last[80];
    if (!page_takes(page))
        return false;
    json_open(o, NULL, '{');
    json_add_text(o, "message_id", p->message_id);
    json_add_text(o, "kind", p->offer ? STR("offer") : STR("event"));
    json_add_text(o, "tenant", p->tenant_id);
    json_add_text(o, "type", p->type);
    json_add_text(o, "reason", p->reason);
    json_add_int(o, "attempts", p->attempts);
    json_add_time(o, "parked_at", p->at);
    json_add_bool(o, "retrying", p->again);
    (void)snprintf(last, sizeof(last), "%lld.%lld.%d", (long long)p->feed, (long long)p->seq,
                   p->offer);
    json_add_text(o, "position", str_of(last));
    json_close(o, '}');
    page_set_last(page, str_of(last));
    return true;
}

static enum err list_outbox(struct op *op, struct read_tx *tx)
{
    const struct list_outbox_input *in = op->input;
    int64_t tenant;
    int64_t after[3] = {0, 0, 0};
    enum err e = tenant_of(op, tx, &tenant);
    if (e != ERR_OK)
        return e;
    if (in->cursor.ptr != NULL && !page_read_place(in->cursor, after))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct page page = {.out = json_out_to(&op->answer.body), .op = op, .room = in->limit};
    json_open(&page.out, NULL, '{');
    show_bus(&page.out, in);
    json_open(&page.out, "items", '[');
    e = parked_list(tx->db, tenant, after[0], after[1], after[2] != 0, in->limit + 1, add_parked,
                    &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the outbox");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_OUTBOX = {.name = "list_outbox", .read = list_outbox};

static enum err retry_parked(struct op *op, struct tx *tx)
{
    const struct retry_parked_input *in = op->input;
    int64_t tenant;
    bool found = false;
    enum err e = tenant_of(op, &tx->read, &tenant);
    if (e != ERR_OK)
        return e;
    e = parked_ask_again(tx->db, tenant, in->message_id, &found);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_NOT_FOUND, "This message is not parked");
    if (e == ERR_OK)
        e = audit_record(op, tx, MAX(tenant, (int64_t)0), "outbox.retry", in->message_id, STR_NONE);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot retry the message");
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "message_id", in->message_id);
    json_add_bool(&o, "retrying", true);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_RETRY_PARKED = {.name = "retry_parked", .write = retry_parked};
