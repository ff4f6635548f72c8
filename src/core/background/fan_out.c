/* Makes deliveries for webhooks from the feed. */
#include "core/background/fan_out.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/txn/event_json.h"
#include "domain/timeline.h"
#include "domain/type_pattern.h"
#include "store/outbox/deliveries.h"
#include "store/outbox/feed.h"

enum { FEED_ROWS = 256 }; /* read in one slice */

/* --- for use cases that change webhooks --- */

enum err fan_out_webhooks_changed(struct tx *tx, int64_t left)
{
    bool found = false;
    int64_t mark = 0;
    tx->pending->webhooks_changed = true;
    enum err e = feed_mark_get(tx->db, FEED_MARK_WEBHOOKS, &found, &mark);
    if (e != ERR_OK || found == (left > 0))
        return e;
    if (left > 0) {
        e = tx_feed_end(tx, &mark);
        return e == ERR_OK ? feed_mark_set(tx->db, FEED_MARK_WEBHOOKS, mark) : e;
    }
    /* A mark that stayed would keep the feed and old runs forever. */
    e = feed_mark_drop(tx->db, FEED_MARK_WEBHOOKS);
    return e == ERR_OK ? feed_mark_drop(tx->db, FEED_MARK_WEBHOOKS_SEQ) : e;
}

/* `last` is the number of the last delivery. */
static enum err deliver(struct tx *tx, struct delivery *d, int64_t last)
{
    d->id = env_new_id(tx->env);
    d->num = runs_new_num(&d->id, last, db_numbers(tx->db));
    d->state = DELIVERY_PENDING;
    d->next_at = d->created_at = tx->now_ms;
    tx_note(tx, EFFECT_DELIVERIES_READY);
    return deliveries_insert(tx->db, d);
}

enum err fan_out_deliver(struct tx *tx, struct delivery *d)
{
    int64_t last = 0;
    enum err e = deliveries_last_num(tx->db, &last);
    return e == ERR_OK ? deliver(tx, d, last) : e;
}

/* --- progress --- */

static enum err load(struct fan_out *f, struct tx *tx)
{
    int64_t count = 0;
    bool found = false;
    bool inside = false; /* it stopped inside a row of the feed */
    *f = (struct fan_out){.at = f->at};
    enum err e = webhooks_count(tx->db, 0, &count);
    if (e == ERR_OK && count > 0)
        e = feed_mark_get(tx->db, FEED_MARK_WEBHOOKS, &found, &f->through);
    if (e == ERR_OK && found)
        e = feed_mark_get(tx->db, FEED_MARK_WEBHOOKS_SEQ, &inside, &f->seq);
    if (e != ERR_OK)
        return e;
    f->kept = f->through;
    f->any = found;
    tx->pending->webhooks_changed = false;
    return ERR_OK;
}

bool fan_out_is_behind(const struct fan_out *f, const struct tx *tx)
{
    bool end_is_known = tx->nums->last_feed >= 0;
    return tx->pending->webhooks_changed ||
           (f->any && (!end_is_known || tx->nums->last_feed > f->through));
}

enum err fan_out_keep(struct fan_out *f, struct tx *tx)
{
    /* If webhooks have changed, there may be no mark to move. */
    if (!f->any || tx->pending->webhooks_changed || f->through == f->kept)
        return ERR_OK;
    enum err e = feed_mark_set(tx->db, FEED_MARK_WEBHOOKS, f->through);
    if (e == ERR_OK)
        f->kept = f->through;
    return e;
}

/* --- one slice --- */

/* The webhooks of a tenant, loaded once per slice. */
struct hooked {
    struct hooked *next;
    int64_t tenant;
    struct str tenant_id;
    struct feed_move moved;
    size_t count;
    struct webhook webhooks[WEBHOOKS_PER_TENANT_MAX];
};

struct slice {
    struct tx *tx;
    struct fan_out *f;
    struct feed_row rows[FEED_ROWS];
    size_t row_count;
    struct hooked *hooked;
    struct event_json out;
    size_t made;       /* deliveries */
    int64_t last_made; /* the number of the last one; 0: not known */

    /* The row under way. */
    const struct feed_row *row;
    const struct hooked *of;
    struct event_source source;
    int64_t last_seq; /* of its events, done up to here */
    enum err err;
};

struct loading {
    struct tx *tx;
    struct hooked *into;
    bool full;
};

static void take_webhook(void *ctx, const struct webhook *w)
{
    struct loading *l = ctx;
    if (w->disabled_at >= 0 || l->into->count == WEBHOOKS_PER_TENANT_MAX)
        return;
    struct webhook *kept = &l->into->webhooks[l->into->count];
    *kept = (struct webhook){.num = w->num, .events = w->events, .feed_from = w->feed_from};
    l->full |= !arena_keep(&l->tx->arena, &kept->events);
    l->into->count++;
}

static enum err hooked_of(struct slice *s, int64_t tenant, const struct hooked **ret)
{
    struct hooked *h = s->hooked;
    while (h != NULL && h->tenant != tenant)
        h = h->next;
    *ret = h;
    if (h != NULL)
        return ERR_OK;
    struct tenant *t = NULL;
    enum err e = read_tx_tenant_num(&s->tx->read, tenant, &t);
    h = e == ERR_OK ? arena_alloc(&s->tx->arena, sizeof(*h)) : NULL;
    if (h == NULL)
        return e == ERR_OK ? ERR_NO_MEMORY : e;
    *h = (struct hooked){.next = s->hooked, .tenant = tenant, .tenant_id = t->id};
    s->hooked = h;
    *ret = h;
    struct loading l = {s->tx, h, false};
    e = webhooks_list(s->tx->db, tenant, 0, WEBHOOKS_PER_TENANT_MAX, take_webhook, &l);
    if (e == ERR_OK && l.full)
        e = ERR_NO_MEMORY;
    return e == ERR_OK ? feed_move_of(s->tx->db, tenant, &h->moved) : e;
}

static bool wants(const struct slice *s, const struct webhook *w, struct str type)
{
    return s->row->num > w->feed_from && type_list_fits(w->events, type);
}

static bool somebody_wants(const struct slice *s, struct str type)
{
    for (size_t i = 0; i < s->of->count; i++) {
        if (wants(s, &s->of->webhooks[i], type))
            return true;
    }
    return false;
}

/* Writes the event as it is sent. One that is too large is sent without its data: receivers can
 * read the run or the entity. */
static enum err write_out(struct slice *s, const struct event *event)
{
    enum err e = event_json_fill(&s->out, &s->source, event);
    if (e != ERR_OK || s->out.body.len <= DELIVERY_BODY_MAX)
        return e;
    struct buf data;
    buf_init(&data, KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    if (event_type_of(event->type) == EVENT_EMITTED)
        json_add_text(&o, "event", str_of(s->out.type));
    json_add_bool(&o, "data_left_out", true);
    json_close(&o, '}');
    struct event small = *event;
    small.data = buf_str(&data);
    e = buf_ok(&data) ? event_json_fill(&s->out, &s->source, &small) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

static enum err deliver_all(struct slice *s)
{
    for (size_t i = 0; i < s->of->count; i++) {
        const struct webhook *w = &s->of->webhooks[i];
        if (!wants(s, w, str_of(s->out.type)))
            continue;
        struct delivery d = {
            .webhook = w->num,
            .tenant = s->row->tenant,
            .owner = s->row->owner,
            .event_id = str_of(s->out.id),
            .event_type = str_of(s->out.type),
            .body = buf_str(&s->out.body),
        };
        enum err e = s->last_made == 0 ? deliveries_last_num(s->tx->db, &s->last_made) : ERR_OK;
        if (e == ERR_OK)
            e = deliver(s->tx, &d, s->last_made);
        if (e != ERR_OK)
            return e;
        s->last_made = d.num;
        s->made++;
    }
    return ERR_OK;
}

static void fan_out_event(void *ctx, const struct event *event)
{
    struct slice *s = ctx;
    if (s->err != ERR_OK || event->seq > s->row->last_seq || s->made >= FAN_OUT_PER_TURN_MAX)
        return;
    if (somebody_wants(s, event_published_type(event))) {
        s->err = write_out(s, event);
        if (s->err == ERR_INTERNAL) { /* the row is damaged: another try would not help */
            LOG(LOG_ERROR, "an event cannot be sent to webhooks and is skipped",
                LOG_N("run", s->row->owner), LOG_N("seq", event->seq));
            s->err = ERR_OK;
        } else if (s->err == ERR_OK) {
            s->err = deliver_all(s);
        }
    }
    s->last_seq = event->seq;
}

/* Another store has given it to the webhooks, or a part of it. */
static int64_t fanned_seq(const struct feed_move *m, const struct feed_row *row)
{
    if (row->num <= m->fanned)
        return row->last_seq;
    return row->num == m->fanned + 1 ? m->fanned_seq : 0;
}

/* *ret_whole: false when the slice is full before the row's last event. */
static enum err fan_out_row(struct slice *s, const struct feed_row *row, bool *ret_whole)
{
    bool found = false;
    *ret_whole = true;
    s->row = row;
    s->last_seq = MAX(s->f->seq, row->first_seq - 1);
    s->f->seq = 0;
    enum err e = hooked_of(s, row->tenant, &s->of);
    if (e != ERR_OK || s->of->count == 0)
        return e;
    s->last_seq = MAX(s->last_seq, fanned_seq(&s->of->moved, row));
    if (s->last_seq >= row->last_seq)
        return ERR_OK;
    s->source.tenant = s->of->tenant_id;
    e = owners_find(s->tx->db, row->owner, &s->tx->arena, &found, &s->source.owner);
    if (e != ERR_OK || !found) /* an entity that was deleted: its events are not sent */
        return e;
    int64_t until = MIN(row->last_seq, s->last_seq + FAN_OUT_PER_TURN_MAX);
    e = events_list(s->tx->db, row->owner, s->last_seq, until - s->last_seq, fan_out_event, s);
    if (e != ERR_OK)
        return e;
    if (s->err != ERR_OK)
        return s->err;
    if (s->made < FAN_OUT_PER_TURN_MAX)
        s->last_seq = until; /* even if some are missing, because they are being removed */
    *ret_whole = s->last_seq >= row->last_seq;
    return ERR_OK;
}

static bool take_row(void *ctx, const struct feed_row *row)
{
    struct slice *s = ctx;
    s->rows[s->row_count++] = *row;
    return true;
}

static enum err fan_out_rows(struct slice *s, int64_t window)
{
    struct fan_out *f = s->f;
    enum err e = feed_list_hooked(s->tx->db, f->through, window, FEED_ROWS, take_row, s);
    if (e != ERR_OK)
        return e;
    for (size_t i = 0; i < s->row_count; i++) {
        bool whole = true;
        e = fan_out_row(s, &s->rows[i], &whole);
        if (e != ERR_OK)
            return e;
        f->through = whole ? s->rows[i].num : s->rows[i].num - 1;
        f->seq = whole ? 0 : s->last_seq;
        if (!whole || s->made >= FAN_OUT_PER_TURN_MAX || tx_turn_is_over(s->tx))
            return ERR_OK;
    }
    if (s->row_count < FEED_ROWS)
        f->through = window; /* the rest belongs to tenants without webhooks */
    return ERR_OK;
}

enum err fan_out_slice(struct fan_out *f, struct tx *tx)
{
    int64_t end = 0;
    enum err e = ERR_OK;
    if (tx->pending->webhooks_changed)
        e = load(f, tx);
    if (e == ERR_OK && f->any)
        e = tx_feed_end(tx, &end);
    if (e != ERR_OK || !fan_out_is_behind(f, tx))
        return e;
    struct slice *s = arena_alloc(&tx->arena, sizeof(*s));
    if (s == NULL)
        return ERR_NO_MEMORY;
    *s = (struct slice){.tx = tx, .f = f};
    event_json_init(&s->out);
    bool was_inside = f->seq > 0;
    e = fan_out_rows(s, MIN(end, f->through + FAN_OUT_FEED_PER_TURN_MAX));
    event_json_release(&s->out);
    if (e != ERR_OK)
        return e;
    bool inside = f->seq > 0 || was_inside;
    if (s->made > 0 || inside)
        e = fan_out_keep(f, tx);
    if (e != ERR_OK || !inside)
        return e;
    return feed_mark_set(tx->db, FEED_MARK_WEBHOOKS_SEQ, f->seq);
}
