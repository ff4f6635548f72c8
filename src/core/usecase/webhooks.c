/* Webhooks and the log of their deliveries. */
#include "core/background/fan_out.h"
#include "core/txn/audit_record.h"
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "domain/url.h"
#include "store/outbox/deliveries.h"
#include "store/outbox/webhooks.h"

/* --- rendering --- */

static void render_patterns(struct json_out *o, struct str list)
{
    json_open(o, "events", '[');
    while (list.len > 0) {
        struct str pattern;
        if (!str_cut(list, ',', &pattern, &list))
            list.len = 0;
        json_add_text(o, NULL, pattern);
    }
    json_close(o, ']');
}

/* The secret is shown once, when it is made. */
static void render_webhook(struct json_out *o, const struct webhook *w, bool with_secret)
{
    json_open(o, NULL, '{');
    json_add_uuid(o, "id", w->id);
    json_add_text(o, "url", w->url);
    render_patterns(o, w->events);
    json_add_text_or_null(o, "description", w->description);
    json_add_bool(o, "enabled", w->disabled_at < 0);
    json_add_time(o, "disabled_at", w->disabled_at);
    json_add_text_or_null(o, "disabled_reason", w->disabled_reason);
    json_add_time(o, "failing_since", w->failing_since);
    json_add_time(o, "old_secret_until", w->old_secret_until);
    json_add_text(o, "created_by", w->created_by);
    json_add_time(o, "created_at", w->created_at);
    json_add_time(o, "updated_at", w->updated_at);
    if (with_secret) {
        json_add_name(o, "secret");
        buf_put_char(o->buf, '"');
        webhook_put_secret(o->buf, &w->secret);
        buf_put_char(o->buf, '"');
    }
    json_close(o, '}');
}

static void render_delivery(struct json_out *o, const struct delivery *d)
{
    bool over = d->state == DELIVERY_DELIVERED || d->state == DELIVERY_FAILED;
    json_open(o, NULL, '{');
    json_add_uuid(o, "id", d->id);
    json_add_text(o, "event_id", d->event_id);
    json_add_text(o, "event_type", d->event_type);
    json_add_text(o, "state", str_of(delivery_state_name(d->state)));
    json_add_int(o, "attempts", d->attempts);
    if (d->last_status >= 0)
        json_add_int(o, "last_status", d->last_status);
    else
        json_add_null(o, "last_status");
    json_add_text_or_null(o, "last_error", d->last_error);
    json_add_time(o, "next_attempt_at", over ? -1 : d->next_at);
    json_add_time(o, "created_at", d->created_at);
    json_add_time(o, "finished_at", d->finished_at);
    json_close(o, '}');
}

/* --- finding --- */

static enum err find_webhook(struct op *op, struct read_tx *tx, struct uuid id, struct webhook *ret)
{
    struct tenant *tenant;
    bool found = false;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = webhooks_find(tx->db, tenant->num, id, &tx->arena, &found, ret);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the webhook");
    return found ? ERR_OK
                 : problem_set(&op->problem, ERR_WEBHOOK_NOT_FOUND, "This webhook does not exist");
}

static enum err find_delivery(struct op *op, struct tx *tx, const struct delivery_input *in,
                              struct delivery *ret)
{
    struct webhook w;
    bool found = false;
    enum err e = find_webhook(op, &tx->read, in->webhook_id, &w);
    if (e != ERR_OK)
        return e;
    e = deliveries_find(tx->db, w.num, in->delivery_id, &tx->arena, &found, ret);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the delivery");
    return found ? ERR_OK
                 : problem_set(&op->problem, ERR_DELIVERY_NOT_FOUND,
                               "The webhook has no such delivery, or it has been removed");
}

/* --- changing --- */

static enum err check_url(struct op *op, struct str url)
{
    const char *fault = url_fault(url);
    if (fault == NULL)
        return ERR_OK;
    return problem_set(&op->problem, ERR_FIELD_INVALID, "url: %s", fault);
}

static enum err cannot_store(struct op *op, enum err e)
{
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot store the webhook");
}

/* The answer shows the secret; what is stored for replays does not. */
static void render_with_secret(struct op *op, const struct webhook *w)
{
    struct json_out o = json_out_to(&op->answer.body);
    render_webhook(&o, w, true);
    struct json_out kept = json_out_to(&op->answer.kept_body);
    render_webhook(&kept, w, false);
}

static enum err insert_webhook(struct tx *tx, const struct tenant *tenant, struct webhook *w)
{
    int64_t all = 0;
    w->tenant = tenant->num;
    enum err e = tx_feed_end(tx, &w->feed_from);
    if (e != ERR_OK)
        return e;
    e = webhooks_insert(tx->db, w);
    if (e != ERR_OK)
        return e;
    e = webhooks_count(tx->db, 0, &all);
    if (e != ERR_OK)
        return e;
    return fan_out_webhooks_changed(tx, all);
}

static enum err create_webhook(struct op *op, struct tx *tx)
{
    const struct put_webhook_input *in = op->input;
    struct tenant *tenant;
    int64_t count = 0;
    enum err e = check_url(op, in->url);
    if (e == ERR_OK)
        e = read_tx_tenant(&tx->read, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = webhooks_count(tx->db, tenant->num, &count);
    if (e != ERR_OK)
        return cannot_store(op, e);
    if (tenant->num != 0 && count >= WEBHOOKS_PER_TENANT_MAX)
        return problem_set(&op->problem, ERR_WEBHOOK_LIMIT,
                           "A tenant may have at most %d webhooks. Delete one first.",
                           WEBHOOKS_PER_TENANT_MAX);
    struct webhook w = {
        .id = env_new_id(tx->env),
        .url = in->url,
        .events = in->events,
        .description = in->description,
        .old_secret_until = -1,
        .failing_since = -1,
        .disabled_at = -1,
        .created_by = op->caller.actor,
        .created_at = tx->now_ms,
        .updated_at = tx->now_ms,
    };
    env_random(tx->env, w.secret.bytes, WEBHOOK_SECRET_LEN);
    e = tx_tenant_ensure(tx, tenant);
    if (e == ERR_OK)
        e = insert_webhook(tx, tenant, &w);
    if (e != ERR_OK)
        return cannot_store(op, e);
    render_with_secret(op, &w);
    e = audit_record_id(op, tx, w.tenant, "webhook.create", w.id, buf_str(&op->answer.kept_body));
    return cannot_store(op, e);
}

const struct use_case UC_CREATE_WEBHOOK = {.name = "create_webhook", .write = create_webhook};

/* Events that happened while it was disabled are not sent. */
static enum err enable(struct tx *tx, struct webhook *w)
{
    w->disabled_at = w->failing_since = -1;
    w->disabled_reason = STR_NONE;
    tx_note(tx, EFFECT_DELIVERIES_READY); /* what waited when it was disabled */
    return tx_feed_end(tx, &w->feed_from);
}

static enum err put_webhook(struct op *op, struct tx *tx)
{
    const struct put_webhook_input *in = op->input;
    struct webhook w;
    enum err e = in->url.ptr != NULL ? check_url(op, in->url) : ERR_OK;
    if (e == ERR_OK)
        e = find_webhook(op, &tx->read, in->webhook_id, &w);
    if (e != ERR_OK)
        return e;
    w.url = in->url.ptr != NULL ? in->url : w.url;
    w.events = in->events.ptr != NULL ? in->events : w.events;
    w.description = in->description.ptr != NULL ? in->description : w.description;
    w.updated_at = tx->now_ms;
    if (in->enabled == WEBHOOK_ENABLE && w.disabled_at >= 0) {
        e = enable(tx, &w);
    } else if (in->enabled == WEBHOOK_DISABLE && w.disabled_at < 0) {
        w.disabled_at = tx->now_ms;
        w.disabled_reason = STR("Disabled by a user");
    }
    if (e == ERR_OK)
        e = webhooks_update(tx->db, &w);
    if (e != ERR_OK)
        return cannot_store(op, e);
    struct json_out o = json_out_to(&op->answer.body);
    render_webhook(&o, &w, false);
    e = audit_record_id(op, tx, w.tenant, "webhook.set", w.id, buf_str(&op->answer.body));
    return cannot_store(op, e);
}

const struct use_case UC_PUT_WEBHOOK = {.name = "put_webhook", .write = put_webhook};

static enum err rotate_webhook(struct op *op, struct tx *tx)
{
    const struct rotate_webhook_input *in = op->input;
    struct webhook w;
    enum err e = find_webhook(op, &tx->read, in->webhook_id, &w);
    if (e != ERR_OK)
        return e;
    w.old_secret = w.secret;
    w.old_secret_until = in->keep_ms > 0 ? tx->now_ms + in->keep_ms : -1;
    w.updated_at = tx->now_ms;
    env_random(tx->env, w.secret.bytes, WEBHOOK_SECRET_LEN);
    e = webhooks_update(tx->db, &w);
    if (e != ERR_OK)
        return cannot_store(op, e);
    render_with_secret(op, &w);
    e = audit_record_id(op, tx, w.tenant, "webhook.rotate", w.id, buf_str(&op->answer.kept_body));
    return cannot_store(op, e);
}

const struct use_case UC_ROTATE_WEBHOOK = {.name = "rotate_webhook", .write = rotate_webhook};

static enum err delete_webhook(struct op *op, struct tx *tx)
{
    const struct webhook_input *in = op->input;
    struct webhook w;
    int64_t left = 0;
    enum err e = find_webhook(op, &tx->read, in->webhook_id, &w);
    if (e != ERR_OK)
        return e;
    e = webhooks_delete(tx->db, w.num, tx->now_ms);
    if (e == ERR_OK)
        e = webhooks_count(tx->db, 0, &left);
    if (e == ERR_OK)
        e = fan_out_webhooks_changed(tx, left);
    if (e == ERR_OK)
        e = audit_record_id(op, tx, w.tenant, "webhook.delete", w.id, STR_NONE);
    if (e != ERR_OK)
        return cannot_store(op, e);
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "id", w.id);
    json_add_bool(&o, "deleted", true);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_DELETE_WEBHOOK = {.name = "delete_webhook", .write = delete_webhook};

/* --- reading --- */

static enum err get_webhook(struct op *op, struct read_tx *tx)
{
    const struct webhook_input *in = op->input;
    struct webhook w;
    enum err e = find_webhook(op, tx, in->webhook_id, &w);
    if (e != ERR_OK)
        return e;
    struct json_out o = json_out_to(&op->answer.body);
    render_webhook(&o, &w, false);
    return ERR_OK;
}

const struct use_case UC_GET_WEBHOOK = {.name = "get_webhook", .read = get_webhook};

/* The position in a list; without a cursor *ret stays as it is. */
static enum err read_place(struct op *op, struct str cursor, int64_t *ret)
{
    if (cursor.ptr == NULL || (str_to_i64(cursor, ret) && *ret >= 0))
        return ERR_OK;
    return problem_set(&op->problem, ERR_CURSOR_INVALID, "The cursor does not belong to this list");
}

static void add_webhook(void *ctx, const struct webhook *w)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return;
    render_webhook(&page->out, w, false);
    page_set_last_number(page, w->num);
}

static enum err list_webhooks(struct op *op, struct read_tx *tx)
{
    const struct list_input *in = op->input;
    struct tenant *tenant;
    int64_t after = 0;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e == ERR_OK)
        e = read_place(op, in->cursor, &after);
    if (e != ERR_OK)
        return e;
    struct page page = page_begin(op, in->limit);
    e = webhooks_list(tx->db, tenant->num, after, in->limit + 1, add_webhook, &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the webhooks");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_WEBHOOKS = {.name = "list_webhooks", .read = list_webhooks};

/* --- deliveries --- */

static void add_delivery(void *ctx, const struct delivery *d)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return;
    render_delivery(&page->out, d);
    page_set_last_number(page, d->num);
}

static enum err list_deliveries(struct op *op, struct read_tx *tx)
{
    const struct list_deliveries_input *in = op->input;
    struct webhook w;
    int64_t before = INT64_MAX;
    enum err e = find_webhook(op, tx, in->webhook_id, &w);
    if (e == ERR_OK)
        e = read_place(op, in->cursor, &before);
    if (e != ERR_OK)
        return e;
    struct page page = page_begin(op, in->limit);
    e = deliveries_list(tx->db, w.num, before, in->limit + 1, add_delivery, &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the deliveries");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_DELIVERIES = {.name = "list_deliveries", .read = list_deliveries};

/* Sends it again from the beginning of its schedule, under the same webhook-id. One that is being
 * sent right now is left alone. */
static enum err redeliver(struct op *op, struct tx *tx)
{
    struct delivery d;
    enum err e = find_delivery(op, tx, op->input, &d);
    if (e != ERR_OK)
        return e;
    if (d.state != DELIVERY_SENDING) {
        d.state = DELIVERY_PENDING;
        d.schedule_from = d.attempts;
        d.next_at = tx->now_ms;
        d.finished_at = -1;
        tx_note(tx, EFFECT_DELIVERIES_READY);
        e = deliveries_update(tx->db, &d);
    }
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the delivery");
    struct json_out o = json_out_to(&op->answer.body);
    render_delivery(&o, &d);
    e = audit_record_id(op, tx, d.tenant, "webhook.redeliver", d.id, buf_str(&op->answer.body));
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot store the delivery");
}

const struct use_case UC_REDELIVER = {.name = "redeliver", .write = redeliver};

/* --- a test --- */

static void put_test_event(struct buf *out, const struct tenant *tenant, const struct webhook *w,
                           struct str id, int64_t now_ms)
{
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    json_add_text(&o, "specversion", STR("1.0"));
    json_add_text(&o, "id", id);
    json_add_name(&o, "source");
    buf_printf(out, "\"/pawl/%.*s/webhooks\"", STR_ARG(tenant->id));
    json_add_text(&o, "type", STR("webhook.test"));
    json_add_uuid(&o, "subject", w->id);
    json_add_time(&o, "time", now_ms);
    json_add_text(&o, "datacontenttype", STR("application/json"));
    json_open(&o, "data", '{');
    json_add_uuid(&o, "webhook_id", w->id);
    json_close(&o, '}');
    json_close(&o, '}');
}

/* Sends an event of type webhook.test to this webhook only, whatever patterns it has. */
static enum err test_webhook(struct op *op, struct tx *tx)
{
    const struct webhook_input *in = op->input;
    struct webhook w;
    struct tenant *tenant = NULL;
    enum err e = find_webhook(op, &tx->read, in->webhook_id, &w);
    if (e == ERR_OK)
        e = read_tx_tenant(&tx->read, op, &tenant);
    if (e != ERR_OK)
        return e;
    struct buf id;
    struct buf body;
    buf_init(&id, NAME_MAX_LEN);
    buf_init(&body, 2 * KIB);
    buf_put(&id, STR("test:"));
    buf_put_uuid(&id, env_new_id(tx->env));
    put_test_event(&body, tenant, &w, buf_str(&id), tx->now_ms);
    struct delivery d = {
        .webhook = w.num,
        .tenant = w.tenant,
        .owner = -1,
        .event_id = buf_str(&id),
        .event_type = STR("webhook.test"),
        .body = buf_str(&body),
        .last_status = -1,
        .finished_at = -1,
    };
    struct json_out o = json_out_to(&op->answer.body);
    e = buf_ok(&id) && buf_ok(&body) ? fan_out_deliver(tx, &d) : ERR_NO_MEMORY;
    if (e == ERR_OK)
        render_delivery(&o, &d);
    buf_release(&id);
    buf_release(&body);
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot store the delivery");
}

const struct use_case UC_TEST_WEBHOOK = {.name = "test_webhook", .write = test_webhook};
