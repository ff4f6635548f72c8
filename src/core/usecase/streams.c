/* Reading what subscriptions are told next: the timeline of a run or an entity, or the feed of a
 * tenant. */
#include "core/txn/event_json.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/stream_event.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/entity/entities.h"
#include "store/outbox/feed.h"
#include "store/run/runs.h"

/* What is said behind the place to come back to. */
#define RESET                                                                              \
    "event: reset\ndata: {\"reason\":\"events behind Last-Event-ID are not kept any more:" \
    " what follows begins with the oldest that is\"}\n\n"

/* --- a list that grows --- */

struct telling {
    struct stream_read *read;
    struct stream_event **last;
    struct buf text; /* of the event being written */
    size_t count;
    size_t bytes;
    enum err err;
};

static struct telling telling_begin(struct stream_read *read)
{
    read->first = NULL;
    read->more = read->over = false;
    struct telling t = {.read = read, .last = &read->first};
    buf_init(&t.text, EVENT_OUT_MAX + KIB);
    return t;
}

static bool is_full(const struct telling *t)
{
    return t->count >= STREAM_EVENTS_MAX || t->bytes >= STREAM_BYTES_MAX;
}

/* Lines end at the first control character, and the name of an emitted event is anything. */
static void put_event_line(struct buf *out, struct str type)
{
    buf_put(out, STR("event: "));
    for (size_t i = 0; i < type.len; i++)
        buf_put_char(out, (unsigned char)type.ptr[i] < 0x20 ? ' ' : type.ptr[i]);
    buf_put_char(out, '\n');
}

static void add(struct telling *t, struct stream_position at, struct str type, bool for_all)
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

static enum err telling_end(struct telling *t, struct op *op, enum err e)
{
    buf_release(&t->text);
    if (e == ERR_OK)
        e = t->err;
    if (e == ERR_OK)
        return ERR_OK;
    stream_events_release(t->read->first);
    t->read->first = NULL;
    return problem_set(&op->problem, e, "cannot read the events");
}

/* --- of a run --- */

/* Of a run or an entity. */
static void add_timeline_event(void *ctx, const struct event *event)
{
    struct telling *t = ctx;
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
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "there is no such run");
    struct telling t = telling_begin(read);
    read->through = read->from;
    read->owner_id = in->owner_id;
    if (e == ERR_OK)
        e = events_list(tx->db, run.num, read->from.seq, STREAM_EVENTS_MAX + 1, add_timeline_event,
                        &t);
    read->over = e == ERR_OK && !read->more && run_has_ended(run.status);
    return telling_end(&t, op, e);
}

const struct use_case UC_STREAM_RUN = {.name = "stream_run_events", .read = read_run};

/* --- of an entity --- */

/* By the id that the first read has found, or else by its name. A type that is not there has no
 * entities. */
static enum err find_entity(const struct read_stream_input *in, struct read_tx *tx, int64_t tenant,
                            bool *ret_found, struct entity *ret)
{
    struct entity_type type;
    *ret_found = false;
    if (!uuid_is_nil(in->owner_id))
        return entities_find_num(tx->db, uuid_time(in->owner_id), &tx->arena, ret_found, ret);
    bool found = false;
    enum err e = entity_types_find(tx->db, tenant, in->entity_type, &tx->arena, &found, &type);
    if (e == ERR_OK && found)
        e = entities_find(tx->db, type.num, in->entity_id, &tx->arena, ret_found, ret);
    return e;
}

struct entity_reading {
    struct telling t;
    int64_t told; /* the last event that the reader knows; 0: none */
    bool ahead;   /* of all there are: it knows another entity that had the name before */
};

/* Events go with their generation: who was told of one that a gap follows has missed something. */
static void add_entity_event(void *ctx, const struct event *event)
{
    struct entity_reading *r = ctx;
    struct telling *t = &r->t;
    bool missed = r->ahead || (r->told > 0 && event->seq > r->told + 1);
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
    if (e == ERR_OK && !found && uuid_is_nil(in->owner_id))
        return problem_set(&op->problem, ERR_ENTITY_NOT_FOUND, "there is no such entity");
    struct entity_reading r = {.t = telling_begin(read), .told = read->from.seq};
    read->through = read->from;
    read->owner_id = found ? entity.id : in->owner_id;
    /* It may have been deleted meanwhile: its last events are there for a while, and then it is
     * over. */
    int64_t num = found ? entity.num : uuid_time(in->owner_id);
    r.ahead = found && r.told > entity.last_event;
    if (e == ERR_OK)
        e = events_list(tx->db, num, r.ahead ? 0 : r.told, STREAM_EVENTS_MAX + 1, add_entity_event,
                        &r);
    read->over = e == ERR_OK && !found && !read->more;
    return telling_end(&r.t, op, e);
}

const struct use_case UC_STREAM_ENTITY = {.name = "stream_entity_events", .read = read_entity};

/* --- of a tenant --- */

struct feed_reading {
    struct telling t;
    struct event_json out;
    struct event_source source;
    struct stream_position at; /* of the next event */
    int64_t last_seq;          /* of its row */
};

static void add_feed_event(void *ctx, const struct event *event)
{
    struct feed_reading *r = ctx;
    struct telling *t = &r->t;
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
    buf_printf(&t->text, "id: %lld-%lld\n", (long long)r->at.num, (long long)r->at.seq);
    put_event_line(&t->text, str_of(r->out.type));
    buf_put(&t->text, STR("data: "));
    buf_put(&t->text, buf_str(&r->out.body));
    buf_put(&t->text, STR("\n\n"));
    add(t, r->at, str_of(r->out.type), false);
    t->read->through = r->at;
}

/* Told before what is kept: the reader has missed something, or is at a place that never was. */
static void add_feed_reset(struct telling *t, int64_t swept)
{
    struct stream_position at = {swept, INT64_MAX};
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

/* The rows first and then their events: one question at a time. */
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
    if (e == ERR_OK && rows.full)
        e = ERR_NO_MEMORY;
    for (size_t i = 0; i < rows.count && e == ERR_OK && !read->more; i++) {
        const struct feed_source *row = &rows.items[i];
        bool begun = row->row.num == from.num;
        int64_t told = begun ? MAX(from.seq, row->row.first_seq - 1) : row->row.first_seq - 1;
        r->source.owner = row->owner;
        r->at.num = row->row.num;
        r->last_seq = row->row.last_seq;
        if (row->has_owner)
            e = events_list(tx->db, row->row.run, told, row->row.last_seq - told, add_feed_event,
                            r);
        if (e == ERR_OK && !read->more)
            read->through = (struct stream_position){row->row.num, INT64_MAX};
    }
    if (e != ERR_OK || read->more)
        return e;
    read->more = rows.count == STREAM_EVENTS_MAX;
    if (!read->more)
        read->through = (struct stream_position){through, INT64_MAX};
    return ERR_OK;
}

static enum err read_tenant(struct op *op, struct read_tx *tx)
{
    const struct read_stream_input *in = op->input;
    struct stream_read *read = in->read;
    struct tenant *tenant;
    int64_t last = 0;
    int64_t swept = 0;
    bool found;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = feed_last(tx->db, &last);
    if (e == ERR_OK)
        e = feed_mark_get(tx->db, FEED_MARK_SWEPT, &found, &swept);
    struct feed_reading r = {.t = telling_begin(read), .source = {.tenant = tenant->id}};
    event_json_init(&r.out);
    read->through = read->from_now ? (struct stream_position){last, INT64_MAX} : read->from;
    bool all_of_swept = read->through.num == swept && read->through.seq == INT64_MAX;
    bool ahead = read->through.num > last && !read->from_now &&
                 !(read->through.num == last + 1 && read->through.seq == 0);
    if (e == ERR_OK && ((read->through.num <= swept && swept > 0 && !all_of_swept) || ahead))
        add_feed_reset(&r.t, swept);
    if (e == ERR_OK && tenant->num == 0) /* none of what is there is its own */
        read->through = (struct stream_position){MAX(read->through.num, last), INT64_MAX};
    int64_t through = MIN(last, read->through.num + STREAM_SCAN_MAX);
    if (e == ERR_OK && tenant->num != 0 && read->through.num <= last)
        e = read_rows(&r, tx, tenant->num, through);
    read->more |= e == ERR_OK && read->through.num < last;
    event_json_release(&r.out);
    return telling_end(&r.t, op, e);
}

const struct use_case UC_STREAM_TENANT = {.name = "stream_events", .read = read_tenant};
