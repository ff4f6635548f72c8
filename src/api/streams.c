/* Events as they happen: of a run until it is over, of an entity until it is deleted, of a tenant
 * for as long as the client stays. Each stream is a subscriber of the engine and is read as fast as
 * its client takes it. */
#include "api/streams.h"

#include "api/caller.h"
#include "api/params.h"
#include "api/routes.h"
#include "domain/type_pattern.h"
#include "outbound/subscriptions.h"

#define PULSE STR(": still here\n\n")

struct stream {
    struct subscriber subscriber;
    struct call *call;
    struct stream *prev, *next;
    bool open;   /* the head is sent */
    bool ending; /* after the event that is being sent */
    bool pulse;  /* a heartbeat is due, unless an event comes first */
};

static void unlink_stream(struct stream *s)
{
    struct api *api = s->call->api;
    *(s->prev != NULL ? &s->prev->next : &api->streams) = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    api->stream_count--;
}

/* The last use of the stream: it lives in the arena of its request. */
static void on_closed(struct subscriber *l)
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

static enum http_piece next_piece(void *user, struct str *ret)
{
    struct stream *s = ((struct call *)user)->stream;
    s->ending |= !caller_key_holds(s->call);
    enum subscriber_next_result result =
        s->ending ? SUBSCRIBER_ENDED : subscriber_next(&s->subscriber, ret);
    bool quiet = result == SUBSCRIBER_LATER && s->pulse;
    s->pulse = false;
    if (quiet)
        *ret = PULSE;
    if (result == SUBSCRIBER_ENDED)
        return HTTP_END; /* the client may resume with Last-Event-ID */
    return result == SUBSCRIBER_EVENT || quiet ? HTTP_PIECE : HTTP_LATER;
}

static void client_gone(void *user)
{
    stream_close(((struct call *)user)->stream);
}

static const struct http_source SOURCE = {next_piece, client_gone};

/* The end of one row is the start of the next. Empty, which leaves the header out, when memory ran
 * out. */
static struct str position_text(struct call *c, const struct subscriber *s)
{
    struct stream_position at = s->place;
    char text[48];
    assert(at.seq == INT64_MAX);
    (void)snprintf(text, sizeof(text), "%lld-0", (long long)(at.num + 1 - s->read.shift));
    return arena_str(&c->req->arena, str_of(text));
}

static void stream_open(struct stream *s)
{
    struct call *c = s->call;
    struct http_reply reply = call_reply(c, 200, STR("text/event-stream"), STR_NONE);
    http_reply_add(&reply, "X-Accel-Buffering", STR("no"));
    if (s->subscriber.from_now) /* a client that receives no event can still resume */
        http_reply_add(&reply, "Last-Event-ID", position_text(c, &s->subscriber));
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
        call_send_other_problem(c, &l->op.problem);
        stream_close(s);
    }
}

/* --- the request --- */

bool streams_wanted(struct call *c)
{
    if (c->route->stream == NULL)
        return false;
    if (c->route->use_case == NULL)
        return true; /* there is no other form */
    struct str accept = http_header(c->req, "Accept", NULL);
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

/* Nobody may take the streams of all others. */
static enum err check_room(struct call *c)
{
    size_t of_tenant = 0, of_peer = 0;
    for (const struct stream *s = c->api->streams; s != NULL; s = s->next) {
        of_tenant += str_eq(s->call->op.caller.tenant, c->op.caller.tenant);
        of_peer += str_eq(s->call->req->peer, c->req->peer);
    }
    const struct {
        size_t count;
        int max;
        const char *whose;
    } LIMITS[] = {{c->api->stream_count, HTTP_STREAMS_MAX, "The server"},
                  {of_peer, HTTP_STREAMS_PER_PEER_MAX, "Your address"},
                  {of_tenant, HTTP_STREAMS_PER_TENANT_MAX, "The tenant"}};
    for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
        if (LIMITS[i].count >= (size_t)LIMITS[i].max)
            return problem_set(&c->op.problem, ERR_OVERLOADED,
                               "%s has %d event streams open already", LIMITS[i].whose,
                               LIMITS[i].max);
    }
    return ERR_OK;
}

static enum err begin(struct call *c, struct stream *s)
{
    enum err e = check_room(c);
    if (e == ERR_OK)
        e = params_read_path(c);
    if (e == ERR_OK)
        e = params_read_headers(c);
    if (e != ERR_OK)
        return e;
    s->call = c;
    s->subscriber.caller = c->op.caller;
    return c->route->stream(c, &s->subscriber);
}

void streams_begin(struct call *c)
{
    struct stream *s = call_alloc(c, sizeof(*s));
    if (s == NULL || begin(c, s) != ERR_OK) {
        call_send_problem(c);
        return;
    }
    c->stream = s;
    s->subscriber.on_event = on_subscriber_event;
    s->subscriber.on_closed = on_closed;
    s->next = c->api->streams;
    if (s->next != NULL)
        s->next->prev = s;
    c->api->streams = s;
    c->api->stream_count++;
    http_request_hold(c->req); /* until on_closed() */
    engine_subscribe(c->api->config.engine, &s->subscriber);
}

/* --- what is followed --- */

/* Of one run or entity: from the event that Last-Event-ID names. */
static enum err read_start(struct call *c, struct subscriber *l)
{
    struct str query = c->req->query;
    struct http_param ignored;
    if (http_query_next(&query, &ignored)) /* limit and cursor are for the list */
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "An event stream takes no query parameters; resume with Last-Event-ID");
    if (c->last_event_id.len == 0)
        return ERR_OK;
    if (!str_to_i64(c->last_event_id, &l->read.from.seq) || l->read.from.seq < 0)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "Last-Event-ID must be the id of an event of this timeline");
    return ERR_OK;
}

enum err stream_run(struct call *c, struct subscriber *l)
{
    const struct list_events_input *in = c->input;
    l->scope = STREAM_RUN;
    l->owner_id = in->run_id;
    return read_start(c, l);
}

enum err stream_entity(struct call *c, struct subscriber *l)
{
    const struct list_of_entity_input *in = c->input;
    l->scope = STREAM_ENTITY;
    l->entity_type = in->type;
    l->entity_id = in->id;
    return read_start(c, l);
}

struct tenant_stream_input {
    struct str types;
    struct str after; /* instead of Last-Event-ID */
};

static bool read_position(struct str text, struct stream_position *ret)
{
    struct str num;
    struct str seq;
    return str_cut(text, '-', &num, &seq) && str_to_i64(num, &ret->num) && ret->num >= 0 &&
           str_to_i64(seq, &ret->seq) && ret->seq >= 0 && ret->seq < INT64_MAX;
}

static enum err stream_tenant(struct call *c, struct subscriber *l)
{
    const struct tenant_stream_input *in = c->input;
    struct str last = c->last_event_id.len > 0 ? c->last_event_id : in->after;
    l->types = in->types;
    l->from_now = l->read.from_now = last.len == 0;
    l->read.from_client = last.len > 0;
    if (last.len > 0 && !read_position(last, &l->read.from))
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "Last-Event-ID must be the id of an event, such as 17-3");
    return ERR_OK;
}

static const struct param TENANT_STREAM[] = {
    QUERY("types", PARAM_TEXT, .valid = type_list_ok,
          .must = "must be event types with commas between them, such as run.*,job.failed",
          INTO(struct tenant_stream_input, types)),
    QUERY("after", PARAM_TEXT, INTO(struct tenant_stream_input, after)),
    LAST_EVENT_ID,
};

const struct route EVENT_ROUTES[] = {
    {"GET", "/api/v1/events", MAY_READ, TAKES(struct tenant_stream_input, TENANT_STREAM),
     .stream = stream_tenant},
    {.method = NULL},
};

/* --- all of them --- */

void streams_tick(struct api *api, int64_t mono_ms)
{
    uint64_t epoch = caller_epoch(api);
    bool pulse = mono_ms >= api->next_pulse_ms;
    if (!pulse && epoch == api->key_epoch)
        return;
    api->key_epoch = epoch;
    if (pulse)
        api->next_pulse_ms = mono_ms + HTTP_STREAM_PULSE_MS;
    for (struct stream *s = api->streams; s != NULL; s = s->next) {
        s->pulse |= pulse;
        s->ending |= !caller_key_holds(s->call);
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
