/* src/cluster/calls/node_client.h over a network in memory. */
#include "cluster/calls/node_client.h"

#include "base/limits.h"
#include "sim/nodes/nodes.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CALLS_MAX = 512, HEAD_MAX = 16 * 1024 };

struct node_client {
    int fd;
    int group;
    struct node_call *news; /* of these, the oldest last */
};

/* A call under way. */
struct travel {
    struct node_call *call; /* NULL: free */
    struct node_client *client;
    struct sim_exchange *x; /* NULL: it has not arrived */
    bool answer_lost;
    size_t read; /* of the body */
    int64_t sent_ns;
};

static struct travel travels[CALLS_MAX];

struct node_client *node_client_new(const struct node_client_config *config)
{
    (void)config;
    struct node_client *c = calloc(1, sizeof(*c));
    assert(c != NULL);
    c->fd = eventfd(0, EFD_NONBLOCK);
    c->group = fibers_group();
    return c;
}

void node_client_free(struct node_client *c)
{
    if (c == NULL)
        return;
    (void)close(c->fd);
    free(c);
}

int node_client_fd(const struct node_client *c)
{
    return c->fd;
}

static void add_news(struct node_call *call)
{
    static const uint64_t ONE = 1;
    struct node_client *c = call->client;
    if (call->has_news)
        return;
    call->has_news = true;
    call->next_news = c->news;
    c->news = call;
    if (write(c->fd, &ONE, sizeof(ONE)) < 0)
        abort();
}

static struct node_call *take_news(struct node_client *c)
{
    struct node_call **at = &c->news;
    while (*at != NULL && (*at)->next_news != NULL)
        at = &(*at)->next_news;
    struct node_call *call = *at;
    *at = NULL;
    return call;
}

void node_client_poll(struct node_client *c)
{
    uint64_t ignored;
    if (read(c->fd, &ignored, sizeof(ignored)) < 0)
        return;
    for (struct node_call *call; (call = take_news(c)) != NULL;) {
        call->has_news = false;
        call->news(call);
    }
}

static struct travel *travel_of(const struct node_call *call)
{
    for (int i = 0; i < CALLS_MAX; i++) {
        if (travels[i].call == call)
            return &travels[i];
    }
    return NULL;
}

void node_call_begin(struct node_client *client, struct node_call *call)
{
    struct travel *t = travel_of(NULL);
    assert(t != NULL);
    call->client = client;
    call->end = NODE_UNDER_WAY;
    buf_init(&call->head, HEAD_MAX);
    buf_init(&call->body_in, SIZE_MAX);
    *t = (struct travel){.call = call, .client = client, .sent_ns = fibers_now_ns()};
}

static void leave(struct travel *t)
{
    if (t->x != NULL)
        sim_http_close(t->x);
    *t = (struct travel){.call = NULL};
}

static void end_call(struct travel *t, enum node_end end, const char *why)
{
    struct node_call *call = t->call;
    leave(t);
    call->end = end;
    (void)snprintf(call->error, sizeof(call->error), "%s", why);
    add_news(call);
}

void node_call_cancel(struct node_call *call)
{
    struct travel *t = travel_of(call);
    if (t != NULL)
        end_call(t, NODE_CANCELLED, "cancelled");
}

enum node_end node_call_end(struct node_call *call)
{
    return call->end;
}

int node_call_head(struct node_call *call, struct str *ret_head)
{
    *ret_head = buf_str(&call->head);
    return call->status;
}

void node_call_take(struct node_call *call, struct buf *out)
{
    buf_put(out, buf_str(&call->body_in));
    buf_clear(&call->body_in);
}

const char *node_call_error(const struct node_call *call)
{
    return call->error;
}

void node_call_release(struct node_call *call)
{
    assert(travel_of(call) == NULL);
    buf_release(&call->head);
    buf_release(&call->body_in);
}

/* --- the network --- */

static bool draw(struct nodes *nodes, uint64_t one_in)
{
    return nodes->deaf && !nodes->quiet && nodes->config.draw(nodes->config.ctx, one_in) == 0;
}

static struct sim_exchange *deliver(const struct node_call *call, struct sim_node *to)
{
    struct sim_header headers[HTTP_FIELDS_MAX + 2];
    char *texts[2 * (HTTP_FIELDS_MAX + 2)];
    size_t count = 0;
    for (size_t i = 0; i < call->header_count; i++) {
        texts[count] = strndup(call->headers[i].name.ptr, call->headers[i].name.len);
        texts[count + 1] = strndup(call->headers[i].value.ptr, call->headers[i].value.len);
        headers[i] = (struct sim_header){texts[count], texts[count + 1]};
        count += 2;
    }
    struct sim_request request = {.method = call->method,
                                  .target = call->target,
                                  .headers = headers,
                                  .header_count = call->header_count,
                                  .body = call->body,
                                  .peer = "10.0.0.9"};
    struct sim_exchange *x = sim_http_send(to->http, &request);
    while (count > 0)
        free(texts[--count]);
    return x;
}

static void send_it(struct nodes *nodes, struct travel *t)
{
    struct sim_node *to = nodes_named(nodes, t->call->url);
    if (to == NULL || !to->up || draw(nodes, 40)) {
        end_call(t, NODE_UNREACHED, "connection refused");
        return;
    }
    if (draw(nodes, 40)) {
        end_call(t, NODE_BROKEN, "the request was lost");
        return;
    }
    t->answer_lost = draw(nodes, 25);
    if (t->call->repeatable && draw(nodes, 25)) /* a kept connection was closed: sent again */
        sim_http_close(deliver(t->call, to));
    t->x = deliver(t->call, to);
}

static void put_head(struct node_call *call, const struct sim_exchange *x)
{
    call->status = x->status;
    buf_printf(&call->head, "Content-Type: %s\n", x->content_type);
    if (!x->streams)
        buf_printf(&call->head, "Content-Length: %zu\n", x->body.len);
    for (size_t i = 0; i < x->header_count; i++)
        buf_printf(&call->head, "%s: %s\n", x->headers[i].name, x->headers[i].value);
}

/* What has come since the last time. */
static bool receive(struct travel *t)
{
    struct node_call *call = t->call;
    const struct sim_exchange *x = t->x;
    bool news = x->answered && !t->answer_lost && (call->status == 0 || x->body.len > t->read);
    if (news && call->status == 0)
        put_head(call, x);
    if (news && x->body.len > t->read) {
        buf_put(&call->body_in, (struct str){x->body.ptr + t->read, x->body.len - t->read});
        t->read = x->body.len;
    }
    if (news)
        add_news(call);
    bool whole = x->answered && (!x->streams || x->ended);
    int64_t waited = fibers_now_ns() - t->sent_ns;
    bool late = call->status == 0 && call->head_ms > 0 && waited > call->head_ms * 1000000;
    bool ends = whole || x->cut || late;
    if (whole && !t->answer_lost)
        end_call(t, NODE_ANSWERED, "");
    else if (ends)
        end_call(t, NODE_BROKEN, late ? "no answer in time" : "the connection was closed");
    return news || ends;
}

/* A node that stands still sends nothing. */
bool node_clients_turn(struct nodes *nodes)
{
    bool any = false;
    for (int i = 0; i < CALLS_MAX; i++) {
        struct travel *t = &travels[i];
        if (t->call == NULL || fibers_is_paused(t->client->group))
            continue;
        if (t->x == NULL) {
            send_it(nodes, t);
            any = true;
        }
        if (t->call != NULL && t->x != NULL)
            any |= receive(t);
    }
    return any;
}

int64_t node_clients_next_ns(void)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < CALLS_MAX; i++) {
        const struct travel *t = &travels[i];
        if (t->call != NULL && t->call->status == 0 && t->call->head_ms > 0)
            next = MIN(next, t->sent_ns + (t->call->head_ms + 1) * 1000000);
    }
    return next;
}

void node_clients_forget(int group)
{
    for (int i = 0; i < CALLS_MAX; i++) {
        if (travels[i].call != NULL && travels[i].client->group == group)
            leave(&travels[i]);
    }
}
