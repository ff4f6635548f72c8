/* Events as they come: of a run until it is over, of an entity until it is deleted, of a tenant for
 * as long as the client stays. What is said comes from a subscriber of the engine, as fast as the
 * client takes it. */
#include "api/call.h"

#include "domain/type_pattern.h"
#include "outbound/subscriptions.h"

#define PULSE STR(": still here\n\n")

struct stream {
    struct subscriber subscriber;
    struct call *call;
    struct stream *prev, *next;
    bool open;   /* the head is sent */
    bool ending; /* after what is being said */
    bool pulse;  /* say that it is still here, if there is nothing else to say */
};

static void unlink_stream(struct stream *s)
{
    struct api *api = s->call->api;
    *(s->prev != NULL ? &s->prev->next : &api->streams) = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    api->stream_count--;
}

/* Nobody needs it any more: the request goes, and the stream with its arena. */
static void subscriber_left(struct subscriber *l)
{
    struct stream *s = CONTAINER_OF(l, struct stream, subscriber);
    http_request_drop(s->call->req);
}

static void stream_close(struct stream *s)
{
    unlink_stream(s);
    engine_unsubscribe(s->call->api->config.engine, &s->subscriber);
}

/* --- the client --- */

static enum http_piece say_next(void *user, struct str *ret)
{
    struct stream *s = ((struct call *)user)->stream;
    s->ending |= !call_key_holds(s->call);
    enum subscriber_next_result says =
        s->ending ? SUBSCRIBER_ENDED : subscriber_next(&s->subscriber, ret);
    bool quiet = says == SUBSCRIBER_LATER && s->pulse;
    s->pulse = false;
    if (quiet)
        *ret = PULSE;
    if (says == SUBSCRIBER_ENDED)
        return HTTP_END; /* the client asks again from where it is, if it likes */
    return says == SUBSCRIBER_EVENT || quiet ? HTTP_PIECE : HTTP_LATER;
}

static void client_gone(void *user)
{
    stream_close(((struct call *)user)->stream);
}

static const struct http_source SOURCE = {say_next, client_gone};

/* Behind all of a row is before the next. Empty, which leaves the header out, when memory ran out.
 */
static struct str place_text(struct call *c, struct stream_position at)
{
    char text[48];
    assert(at.seq == INT64_MAX);
    (void)snprintf(text, sizeof(text), "%lld-0", (long long)at.num + 1);
    return arena_str(&c->req->arena, str_of(text));
}

static void stream_open(struct stream *s)
{
    struct call *c = s->call;
    struct http_reply reply;
    http_reply_init(&reply, 200, STR("text/event-stream"), STR_NONE);
    reply.route = str_of(c->route->pattern);
    http_reply_add(&reply, "X-Accel-Buffering", STR("no"));
    if (s->subscriber.from_now) /* so that a client that hears nothing can come back where it was */
        http_reply_add(&reply, "Last-Event-ID", place_text(c, s->subscriber.place));
    s->open = true;
    http_send_stream(c->req, &reply, &SOURCE);
}

static void on_subscriber_event(struct subscriber *l)
{
    struct stream *s = CONTAINER_OF(l, struct stream, subscriber);
    struct call *c = s->call;
    if (s->open) {
        http_stream_wake(c->req);
    } else if (l->op.err == ERR_OK) {
        stream_open(s);
    } else {
        http_send_problem(c->req, &l->op.problem, str_of(c->route->pattern), NULL);
        stream_close(s);
    }
}

/* --- the request --- */

bool call_wants_stream(struct call *c)
{
    struct str accept = http_header(c->req, "Accept", NULL);
    if (c->route->use_case == NULL)
        return true; /* there is no other form */
    while (accept.len > 0) {
        struct str range;
        struct str parameters;
        (void)str_cut(accept, ',', &range, &accept);
        (void)str_cut(range, ';', &range, &parameters);
        if (str_eq_nocase(str_trim(range), STR("text/event-stream")))
            return true;
    }
    return false;
}

/* Last-Event-ID, or `after` for those who cannot send it; ptr NULL: neither. */
static enum err last_event_id(struct call *c, const char *param, struct str *ret)
{
    size_t count;
    *ret = str_trim(http_header(c->req, "Last-Event-ID", &count));
    if (count > 1)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "there are two Last-Event-ID headers");
    if (ret->len == 0 && param != NULL)
        return http_query(c->req, param, &c->op.problem, ret);
    return ERR_OK;
}

/* Of one run or entity. */
static enum err begin_in_timeline(struct call *c, struct subscriber *l)
{
    static const char *const NONE[] = {NULL};
    struct str last = STR_NONE;
    enum err e = http_query_only(c->req, NONE, &c->op.problem);
    if (e == ERR_OK)
        e = last_event_id(c, NULL, &last);
    if (e == ERR_OK && last.len > 0 &&
        (!str_to_i64(last, &l->read.from.seq) || l->read.from.seq < 0))
        e = problem_set(&c->op.problem, ERR_BAD_REQUEST,
                        "Last-Event-ID must be the id of an event of this timeline");
    return e;
}

static enum err begin_with_run(struct call *c, struct subscriber *l)
{
    l->scope = STREAM_RUN;
    enum err e = call_uuid(c, ERR_RUN_NOT_FOUND, &l->owner_id);
    return e == ERR_OK ? begin_in_timeline(c, l) : e;
}

/* Names that no type or entity can have are not found. */
static enum err begin_with_entity(struct call *c, struct subscriber *l)
{
    l->scope = STREAM_ENTITY;
    l->entity_type = c->params[0];
    l->entity_id = c->params[1];
    return begin_in_timeline(c, l);
}

static bool read_place(struct str text, struct stream_position *ret)
{
    struct str num;
    struct str seq;
    return str_cut(text, '-', &num, &seq) && str_to_i64(num, &ret->num) && ret->num >= 0 &&
           str_to_i64(seq, &ret->seq) && ret->seq >= 0 && ret->seq < INT64_MAX;
}

static enum err begin_with_tenant(struct call *c, struct subscriber *l)
{
    static const char *const KNOWN[] = {"types", "after", NULL};
    struct str last = STR_NONE;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = http_query(c->req, "types", &c->op.problem, &l->types);
    if (e == ERR_OK && l->types.ptr != NULL && !type_list_ok(l->types))
        e = problem_set(&c->op.problem, ERR_BAD_REQUEST,
                        "types must be event types with commas between them, as run.*,job.failed");
    if (e == ERR_OK)
        e = last_event_id(c, "after", &last);
    l->from_now = l->read.from_now = last.len == 0;
    if (e == ERR_OK && last.len > 0 && !read_place(last, &l->read.from))
        e = problem_set(&c->op.problem, ERR_BAD_REQUEST,
                        "Last-Event-ID must be the id of an event, as 17-3");
    return e;
}

static enum err begin(struct call *c, struct stream **ret)
{
    if (c->api->stream_count >= HTTP_STREAMS_MAX)
        return problem_set(&c->op.problem, ERR_OVERLOADED,
                           "too many clients listen to events already");
    struct stream *s = call_alloc(c, sizeof(*s));
    if (s == NULL)
        return c->op.problem.err;
    *ret = s;
    s->subscriber.caller = c->op.caller;
    if (c->route->use_case == &UC_LIST_ENTITY_EVENTS)
        return begin_with_entity(c, &s->subscriber);
    return c->route->use_case != NULL ? begin_with_run(c, &s->subscriber)
                                      : begin_with_tenant(c, &s->subscriber);
}

void call_stream(struct call *c)
{
    struct stream *s = NULL;
    if (begin(c, &s) != ERR_OK || s == NULL) {
        http_send_problem(c->req, &c->op.problem, str_of(c->route->pattern), NULL);
        return;
    }
    c->stream = s;
    s->call = c;
    s->subscriber.on_event = on_subscriber_event;
    s->subscriber.on_closed = subscriber_left;
    s->next = c->api->streams;
    if (s->next != NULL)
        s->next->prev = s;
    c->api->streams = s;
    c->api->stream_count++;
    http_request_hold(c->req); /* until subscriber_left() */
    engine_subscribe(c->api->config.engine, &s->subscriber);
}

/* --- all of them --- */

/* A key that was revoked opens no more requests, and ends those that go on. */
void streams_tick(struct api *api, int64_t mono_ms)
{
    uint64_t epoch = engine_auth_epoch(api->config.engine);
    bool pulse = mono_ms >= api->next_pulse_ms;
    if (!pulse && epoch == api->key_epoch)
        return;
    api->key_epoch = epoch;
    if (pulse)
        api->next_pulse_ms = mono_ms + HTTP_STREAM_PULSE_MS;
    for (struct stream *s = api->streams; s != NULL; s = s->next) {
        s->pulse |= pulse;
        s->ending |= !call_key_holds(s->call);
        if (s->open && (pulse || s->ending))
            http_stream_wake(s->call->req);
    }
}

void streams_end(struct api *api)
{
    for (struct stream *s = api->streams; s != NULL; s = s->next) {
        s->ending = true;
        if (s->open)
            http_stream_wake(s->call->req);
    }
}
