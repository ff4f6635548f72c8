/* A run's timeline as server-sent events: what is there, then what comes, until the run is over.
 *
 * A stream reads with an op of its own and writes what it got. It reads again when the client has
 * taken that, if there is more, and otherwise when its run is told of. While an op is under way
 * nothing of the stream is freed. */
#include "api/call.h"

#include "engine/listeners.h"

struct stream {
    struct listener listener; /* first, so that its address finds the stream */
    struct call *call;
    struct stream *prev, *next;
    struct op op; /* reads the next events */
    struct stream_events_input input;
    struct stream_position position;
    bool open;    /* the head is sent */
    bool reading; /* the op is under way */
    bool again;   /* something came meanwhile */
    bool gone;    /* the client is away */
};

static void read_on(struct stream *s);

static void unlink_stream(struct stream *s)
{
    struct api *api = s->call->api;
    *(s->prev != NULL ? &s->prev->next : &api->streams) = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
}

/* Nobody needs it any more: the request goes, and the stream with its arena. */
static void stream_free(struct stream *s)
{
    struct http_request *req = s->call->req;
    if (s->open) {
        engine_unlisten(s->call->api->config.engine, &s->listener);
        unlink_stream(s);
    }
    op_release(&s->op);
    http_request_drop(req);
}

static void client_gone(void *user)
{
    struct stream *s = ((struct call *)user)->stream;
    s->gone = true;
    if (!s->reading)
        stream_free(s);
}

/* What lies in the store comes as fast as the client takes it. */
static void client_took_all(void *user)
{
    struct stream *s = ((struct call *)user)->stream;
    if (!s->reading && !s->gone && s->position.more)
        read_on(s);
}

static void run_told(struct listener *l)
{
    struct stream *s = CONTAINER_OF(l, struct stream, listener);
    if (s->reading)
        s->again = true;
    else if (!s->gone && !s->position.over && !s->position.more)
        read_on(s);
}

static void open_stream(struct stream *s)
{
    struct call *c = s->call;
    struct http_reply reply;
    http_reply_init(&reply, 200, STR("text/event-stream"), STR_NONE);
    reply.route = str_of(c->route->pattern);
    http_reply_add(&reply, "Cache-Control", STR("no-store"));
    http_reply_add(&reply, "X-Accel-Buffering", STR("no"));
    s->open = true;
    s->next = c->api->streams;
    if (s->next != NULL)
        s->next->prev = s;
    c->api->streams = s;
    engine_listen(c->api->config.engine, &s->listener);
    http_send_stream(c->req, &reply, client_took_all, client_gone);
}

/* The op is over: what it read is sent. */
static void events_read(struct op *op)
{
    struct stream *s = op->owner;
    s->reading = false;
    if (!s->open && op->err != ERR_OK) {
        http_send_problem(s->call->req, &op->problem, str_of(s->call->route->pattern), NULL);
        stream_free(s);
        return;
    }
    if (s->gone) {
        stream_free(s);
        return;
    }
    if (!s->open) {
        s->reading = true; /* client_gone() may be called at once */
        open_stream(s);
        s->reading = false;
        if (s->gone) {
            stream_free(s);
            return;
        }
    }
    bool failed = op->err != ERR_OK;
    bool ok = !failed && (op->answer.body.len == 0 ||
                          http_stream_write(s->call->req, buf_str(&op->answer.body)));
    if (failed || (ok && s->position.over))
        http_stream_end(s->call->req); /* the client asks again from where it is, if it likes */
    else if (ok && s->again && !s->position.more)
        read_on(s);
}

static void read_on(struct stream *s)
{
    s->again = false;
    s->reading = true;
    op_clear_result(&s->op);
    engine_submit(s->call->api->config.engine, &s->op);
}

/* --- for the request's path --- */

bool call_wants_stream(struct call *c)
{
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

static enum err read_position(struct call *c, struct stream *s)
{
    static const char *const NONE[] = {NULL};
    size_t count;
    struct str last = str_trim(http_header(c->req, "Last-Event-ID", &count));
    enum err e = http_query_only(c->req, NONE, &c->op.problem);
    if (e == ERR_OK)
        e = call_uuid(c, ERR_RUN_NOT_FOUND, &s->input.run_id);
    if (e == ERR_OK && (count > 1 || (last.len > 0 && (!str_to_i64(last, &s->position.after) ||
                                                       s->position.after < 0))))
        e = problem_set(&c->op.problem, ERR_BAD_REQUEST,
                        "Last-Event-ID must be the id of an event of this run");
    return e;
}

void call_stream(struct call *c)
{
    struct stream *s = call_alloc(c, sizeof(*s));
    if (s == NULL || read_position(c, s) != ERR_OK) {
        http_send_problem(c->req, &c->op.problem, str_of(c->route->pattern), NULL);
        return;
    }
    c->stream = s;
    s->call = c;
    s->listener.run_id = s->input.run_id;
    s->listener.told = run_told;
    s->input.position = &s->position;
    op_init(&s->op, &UC_STREAM_EVENTS);
    s->op.caller = c->op.caller;
    s->op.input = &s->input;
    s->op.owner = s;
    s->op.done = events_read;
    s->op.submitted_ns = c->req->begun_ns;
    s->op.bytes = sizeof(*s);
    http_request_hold(c->req); /* until stream_free() */
    read_on(s);
}

/* --- all of them --- */

void streams_tick(struct api *api, int64_t mono_ms)
{
    if (mono_ms < api->next_pulse_ms)
        return;
    api->next_pulse_ms = mono_ms + HTTP_STREAM_PULSE_MS;
    struct stream *next;
    for (struct stream *s = api->streams; s != NULL; s = next) {
        next = s->next; /* a client that is too far behind goes at once */
        if (!s->gone)
            (void)http_stream_write(s->call->req, STR(": still here\n\n"));
    }
}

void streams_end(struct api *api)
{
    for (struct stream *s = api->streams; s != NULL; s = s->next) {
        if (!s->gone)
            http_stream_end(s->call->req);
    }
}
