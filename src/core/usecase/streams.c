/* Reads the next events for a stream: the timeline of a run or an entity, or the feed of a tenant,
 * each as the text of a server-sent event. */
#include "core/txn/event_json.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/stream_event.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/entity/entities.h"
#include "store/outbox/feed.h"
#include "store/run/runs.h"

/* Follows the `id:` line of the position to resume from. */
#define RESET                                                                            \
    "event: reset\ndata: {\"reason\":\"events after Last-Event-ID are no longer stored;" \
    " the stream continues with the oldest that is\"}\n\n"

/* --- the events of one read --- */

struct batch {
    struct stream_read *read;
    struct stream_event **last;
    struct buf text; /* of the event being written */
    size_t count;
    size_t bytes;
    enum err err;
};

static struct batch batch_begin(struct stream_read *read)
{
    read->first = NULL;
    read->more = read->over = false;
    struct batch t = {.read = read, .last = &read->first};
    buf_init(&t.text, EVENT_OUT_MAX + KIB);
    return t;
}

static bool is_full(const struct batch *t)
{
    return t->count >= STREAM_EVENTS_MAX || t->bytes >= STREAM_BYTES_MAX;
}

/* The type of an emitted event may contain control characters, which would end the line. */
static void put_event_line(struct buf *out, struct str type)
{
    buf_put(out, STR("event: "));
    for (size_t i = 0; i < type.len; i++)
        buf_put_char(out, (unsigned char)type.ptr[i] < 0x20 ? ' ' : type.ptr[i]);
    buf_put_char(out, '\n');
}

static void add(struct batch *t, struct stream_position at, struct str type, bool for_all)
{
    struct stream_event *event =
        buf_ok(&t->text) ? stream_event_new(at, type, buf_str(&t->text)) : NULL;
    if (event == NULL) {
        t->err = ERR_NO_MEMORY;
        return;
    }
    event->for_all = for_all;
    *t->last = event;
    t->last = &event->next;
    t->count++;
    t->bytes += t->text.len;
}

/* With the result of the queries that filled it. */
static enum err batch_end(struct batch *t, struct op *op, enum err e)
{
    buf_release(&t->text);
    if (e == ERR_OK)
        e = t->err;
    if (e == ERR_OK)
        return ERR_OK;
    stream_events_release(t->read->first);
    t->read->first = NULL;
    return problem_set(&op->problem, e, "Cannot read the events");
}

/* --- of a run --- */

static void add_timeline_event(void *ctx, const struct event *event)
{
    struct batch *t = ctx;
    if (t->err != ERR_OK || is_full(t)) {
        t->read->more = true;
        return;
    }
    struct stream_position at = {0, event->seq};
    buf_clear(&t->text);
    buf_printf(&t->text, "id: %lld\n", (long long)event->seq);
    put_event_line(&t->text, event->type);
    buf_put(&t->text, STR("data: "));
    struct json_out o = json_out_to(&t->text);
    render_event(&o, event);
    buf_put(&t->text, STR("\n\n"));
    add(t, at, event->type, false);
    t->read->through = at;
}

static enum err read_run(struct op *op, struct read_tx *tx)
{
    const struct read_stream_input *in = op->input;
    struct stream_read *read = in->read;
    struct tenant *tenant;
    struct run run;
    bool found = false;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = runs_find(tx->db, tenant->num, in->owner_id, &tx->arena, &found, &run);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the events");
    if (!found)
        return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "This run does not exist");
    struct batch t = batch_begin(read);
    read->through = read->from;
    read->owner_id = in->owner_id;
    e = events_list(tx->db, run.num, read->from.seq, STREAM_EVENTS_MAX + 1, add_timeline_event, &t);
    read->over = e == ERR_OK && !read->more && run_has_ended(run.status);
    return batch_end(&t, op, e);
}

const struct use_case UC_STREAM_RUN = {.name = "stream_run_events", .read = read_run};

/* --- of an entity --- */

/* By the id that the first read found, otherwise by its name: a stream keeps following the same
 * entity even if another one gets its name. */
static enum err find_entity(const struct read_stream_input *in, struct read_tx *tx, int64_t tenant,
                            bool *ret_found, struct entity *ret)
{
    struct entity_type type;
    *ret_found = false;
    if (!uuid_is_nil(in->owner_id))
        return entities_find_num(tx->db, uuid_time(in->owner_id), &tx->arena, ret_found, ret);
    bool found = false;
    enum err e = entity_types_find(tx->db, tenant, in->entity_type, &tx->arena, &found, &type);
    if (e != ERR_OK || !found)
        return e;
    return entities_find(tx->db, type.num, in->entity_id, &tx->arena, ret_found, ret);
}

struct entity_reading {
    struct batch t;
    int64_t known; /* the last event that the subscriber has; 0: none */
    bool ahead;    /* of all events: the subscriber knows an earlier entity of the same name */
};

/* Events are removed with their generation: a subscriber that finds a gap has missed some. */
static void add_entity_event(void *ctx, const struct event *event)
{
    struct entity_reading *r = ctx;
    struct batch *t = &r->t;
    bool missed = r->ahead || (r->known > 0 && event->seq > r->known + 1);
    if (missed && t->count == 0 && t->err == ERR_OK) {
        struct stream_position at = {0, event->seq - 1};
        buf_clear(&t->text);
        buf_printf(&t->text, "id: %lld\n" RESET, (long long)at.seq);
        add(t, at, STR("reset"), true);
    }
    add_timeline_event(t, event);
}

static enum err read_entity(struct op *op, struct read_tx *tx)
{
    const struct read_stream_input *in = op->input;
    struct stream_read *read = in->read;
    struct tenant *tenant;
    struct entity entity;
    bool found = false;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = find_entity(in, tx, tenant->num, &found, &entity);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the events");
    if (!found && uuid_is_nil(in->owner_id))
        return problem_set(&op->problem, ERR_ENTITY_NOT_FOUND, "This entity does not exist");
    struct entity_reading r = {.t = batch_begin(read), .known = read->from.seq};
    read->through = read->from;
    read->owner_id = found ? entity.id : in->owner_id;
    /* It may have been deleted since: its last events stay for a while, and then the stream ends.
     */
    int64_t num = found ? entity.num : uuid_time(in->owner_id);
    r.ahead = found && r.known > entity.last_event;
    e = events_list(tx->db, num, r.ahead ? 0 : r.known, STREAM_EVENTS_MAX + 1, add_entity_event,
                    &r);
    read->over = e == ERR_OK && !found && !read->more;
    return batch_end(&r.t, op, e);
}

const struct use_case UC_STREAM_ENTITY = {.name = "stream_entity_events", .read = read_entity};

/* --- of a tenant --- */

struct feed_reading {
    struct batch t;
    struct event_json out;
    struct event_source source;
    struct stream_position at; /* of the next event */
    int64_t last_seq;          /* of its row */
    struct feed_move moved;
};

static void add_feed_event(void *ctx, const struct event *event)
{
    struct feed_reading *r = ctx;
    struct batch *t = &r->t;
    if (t->err != ERR_OK || event->seq > r->last_seq)
        return;
    if (is_full(t)) {
        t->read->more = true;
        return;
    }
    t->err = event_json_fill(&r->out, &r->source, event);
    if (t->err != ERR_OK)
        return;
    r->at.seq = event->seq;
    buf_clear(&t->text);
    buf_printf(&t->text, "id: %lld-%lld\n", (long long)(r->at.num - r->moved.shift),
               (long long)r->at.seq);
    put_event_line(&t->text, str_of(r->out.type));
    buf_put(&t->text, STR("data: "));
    buf_put(&t->text, buf_str(&r->out.body));
    buf_put(&t->text, STR("\n\n"));
    add(t, r->at, str_of(r->out.type), false);
    t->read->through = r->at;
}

/* The subscriber has missed rows that were removed, or its position never existed. */
static void add_feed_reset(struct feed_reading *r, int64_t swept)
{
    struct batch *t = &r->t;
    struct stream_position at = {swept + r->moved.shift, INT64_MAX};
    buf_clear(&t->text);
    buf_printf(&t->text, "id: %lld-0\n" RESET, (long long)swept + 1);
    add(t, at, STR("reset"), true);
    t->read->through = at;
}

struct feed_rows {
    struct feed_source *items;
    size_t count;
    struct arena *arena;
    bool full;
};

static bool keep_row(void *ctx, const struct feed_source *source)
{
    struct feed_rows *rows = ctx;
    struct feed_source *kept = &rows->items[rows->count];
    *kept = *source;
    rows->full = !owner_keep(&kept->owner, rows->arena);
    rows->count++;
    return !rows->full;
}

/* Adds the events of one row, from where the stream has come. */
static enum err read_row(struct feed_reading *r, struct read_tx *tx, const struct feed_source *row,
                         struct stream_position from)
{
    struct stream_read *read = r->t.read;
    int64_t after = row->row.first_seq - 1;
    if (row->row.num == from.num)
        after = MAX(from.seq, after);
    r->source.owner = row->owner;
    r->at.num = row->row.num;
    r->last_seq = row->row.last_seq;
    if (row->has_owner) {
        enum err e = events_list(tx->db, row->row.owner, after, row->row.last_seq - after,
                                 add_feed_event, r);
        if (e != ERR_OK)
            return e;
    }
    if (!read->more)
        read->through = (struct stream_position){row->row.num, INT64_MAX};
    return ERR_OK;
}

/* The rows first and then their events, so that no cursor is open across another query. */
static enum err read_rows(struct feed_reading *r, struct read_tx *tx, int64_t tenant,
                          int64_t through)
{
    struct stream_read *read = r->t.read;
    struct stream_position from = read->through;
    struct feed_rows rows = {
        .items = arena_alloc(&tx->arena, STREAM_EVENTS_MAX * sizeof(*rows.items)),
        .arena = &tx->arena,
    };
    if (rows.items == NULL)
        return ERR_NO_MEMORY;
    int64_t after = from.seq == INT64_MAX ? from.num : from.num - 1;
    enum err e = feed_of_tenant(tx->db, tenant, after, through, STREAM_EVENTS_MAX, keep_row, &rows);
    if (e != ERR_OK)
        return e;
    if (rows.full)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < rows.count; i++) {
        e = read_row(r, tx, &rows.items[i], from);
        if (e != ERR_OK || read->more)
            return e;
    }
    read->more = rows.count == STREAM_EVENTS_MAX;
    if (!read->more)
        read->through = (struct stream_position){through, INT64_MAX};
    return ERR_OK;
}

/* Is there something after this position that the stream cannot have, or is it after the end? */
static bool needs_reset(const struct stream_read *read, int64_t swept, int64_t last)
{
    struct stream_position at = {read->through.num - read->shift, read->through.seq};
    bool all_of_swept = at.num == swept && at.seq == INT64_MAX;
    bool missed = at.num <= swept && swept > 0 && !all_of_swept;
    bool next_row = at.num == last + 1 && at.seq == 0;
    return missed || (at.num > last && !next_row);
}

static enum err read_feed(struct feed_reading *r, struct read_tx *tx, const struct tenant *tenant)
{
    struct stream_read *read = r->t.read;
    int64_t last = 0;
    int64_t swept = 0;
    bool found;
    enum err e = feed_last(tx->db, &last);
    if (e != ERR_OK)
        return e;
    e = feed_mark_get(tx->db, FEED_MARK_SWEPT, &found, &swept);
    if (e != ERR_OK)
        return e;
    if (tenant->num != 0)
        e = feed_move_of(tx->db, tenant->num, &r->moved);
    if (e != ERR_OK)
        return e;
    read->shift = r->moved.shift;
    read->through = read->from_now ? (struct stream_position){last, INT64_MAX} : read->from;
    if (read->from_client) /* any number that a client may have sent */
        read->through.num = MIN(read->through.num, (int64_t)DB_COUNT_END) + read->shift;
    swept = swept > r->moved.since ? swept - read->shift : r->moved.swept;
    if (needs_reset(read, swept, last - read->shift))
        add_feed_reset(r, swept);
    if (read->through.num < r->moved.since) /* its rows begin there */
        read->through = (struct stream_position){r->moved.since, INT64_MAX};
    if (tenant->num == 0) /* it is not stored yet, and has no events */
        read->through = (struct stream_position){MAX(read->through.num, last), INT64_MAX};
    else if (read->through.num <= last)
        e = read_rows(r, tx, tenant->num, MIN(last, read->through.num + STREAM_SCAN_MAX));
    read->more |= e == ERR_OK && read->through.num < last;
    return e;
}

static enum err read_tenant(struct op *op, struct read_tx *tx)
{
    const struct read_stream_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    struct feed_reading r = {.t = batch_begin(in->read), .source = {.tenant = tenant->id}};
    event_json_init(&r.out);
    e = read_feed(&r, tx, tenant);
    event_json_release(&r.out);
    return batch_end(&r.t, op, e);
}

const struct use_case UC_STREAM_TENANT = {.name = "stream_events", .read = read_tenant};
