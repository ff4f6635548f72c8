/* The life of a connection: which phase follows which. */
#include "http/internal.h"

#include <unistd.h>

/* --- lists --- */

static void unlink_conn(struct conn *c)
{
    struct conn_list *list = &c->server->lists[c->phase];
    *(c->prev != NULL ? &c->prev->next : &list->first) = c->next;
    *(c->next != NULL ? &c->next->prev : &list->last) = c->prev;
    c->prev = c->next = NULL;
}

static void link_conn(struct conn *c)
{
    struct conn_list *list = &c->server->lists[c->phase];
    c->prev = list->last;
    *(c->prev != NULL ? &c->prev->next : &list->first) = c;
    list->last = c;
}

void conn_enter(struct conn *c, enum conn_phase phase)
{
    unlink_conn(c);
    c->phase = (uint8_t)phase;
    c->since_ms = c->server->now_ms;
    c->moved = 0;
    link_conn(c);
}

void conn_wake(struct conn *c)
{
    struct http_server *s = c->server;
    if (c->is_ready)
        return;
    c->is_ready = true;
    c->next_ready = NULL;
    *(s->ready_last != NULL ? &s->ready_last->next_ready : &s->ready_first) = c;
    s->ready_last = c;
}

/* --- its beginning and end --- */

struct conn *conn_new(struct http_server *s, int fd, struct peer *peer)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->server = s;
    c->fd = fd;
    c->peer = peer;
    c->phase = CONN_HEAD;
    c->writable = true;
    c->since_ms = s->now_ms;
    link_conn(c);
    s->conn_count++;
    return c;
}

static void drop_ahead(struct request *r)
{
    struct request *ahead = r->ahead;
    r->ahead = NULL;
    if (ahead != NULL)
        request_over(ahead);
}

static void close_file(struct request *r)
{
    if (r->file_fd >= 0)
        close(r->file_fd);
    r->file_fd = -1;
}

static void tell_disconnected(struct request *r)
{
    void (*disconnected)(void *) = r->pub.disconnected;
    r->pub.disconnected = NULL;
    if (disconnected != NULL)
        disconnected(r->pub.user);
}

/* If the handler still has the request, it learns that the client is gone. It answers anyway, and
 * nobody reads that. */
static void lose_request(struct request *r)
{
    drop_ahead(r);
    close_file(r);
    r->conn = NULL;
    if (r->complete && !r->answered)
        tell_disconnected(r);
    else
        request_over(r);
}

void conn_leave_tenant(struct conn *c)
{
    if (c->tenant != NULL)
        peers_leave(c->server->tenants, c->tenant);
    c->tenant = NULL;
}

void conn_close(struct conn *c)
{
    struct request *r = c->request;
    if (c->phase == CONN_CLOSED)
        return;
    c->request = NULL;
    if (r != NULL)
        lose_request(r);
    io_close(c);
    peers_leave(c->server->peers, c->peer);
    conn_leave_tenant(c);
    conn_enter(c, CONN_CLOSED);
    c->server->conn_count--;
}

/* --- from one request to the next --- */

/* Our side is closed first, and the client may finish sending: closing with unread bytes would make
 * the kernel reset the connection, and the client might lose the answer. */
static bool begin_linger(struct conn *c)
{
    io_end(c);
    conn_enter(c, CONN_LINGER);
    return true;
}

static bool linger(struct conn *c)
{
    while (c->readable) {
        ssize_t got = io_read(c, c->server->scratch, sizeof(c->server->scratch));
        if (got == IO_AGAIN)
            continue;
        c->moved += got > 0 ? (uint64_t)got : 0;
        if (got <= 0 || c->moved > HTTP_BODY_DISCARD_MAX) {
            conn_close(c);
            return false;
        }
    }
    return false;
}

/* The answer is sent. */
static bool next_request(struct conn *c)
{
    struct request *r = c->request;
    bool ends = r->last || c->server->draining;
    c->request = ends ? NULL : r->ahead;
    if (!ends)
        r->ahead = NULL;
    drop_ahead(r);
    close_file(r);
    r->is_sent = true;
    request_over(r);
    if (ends)
        return begin_linger(c);
    conn_enter(c, c->request != NULL ? CONN_HEAD : CONN_IDLE);
    return true;
}

/* The handler has the request, or has just answered it. */
static bool work(struct conn *c)
{
    struct request *r = c->request;
    if (!r->answered) {
        if (c->half_closed)
            tell_disconnected(r);
        return r->answered;
    }
    if (r->hung_up) {
        conn_close(c);
        return false;
    }
    conn_enter(c, CONN_REPLY);
    if (c->server->gathers)
        conn_wake(c);
    return !c->server->gathers;
}

static bool send_reply(struct conn *c)
{
    if (c->request->hung_up) { /* meanwhile */
        conn_close(c);
        return false;
    }
    if (!reply_send(c))
        return false;
    return next_request(c);
}

/* One step; false: it has to wait for its client or its handler, or is gone. */
static bool step(struct conn *c)
{
    switch ((enum conn_phase)c->phase) {
    case CONN_IDLE:
    case CONN_HEAD:
    case CONN_BODY:
        return receive(c);
    case CONN_WORKING:
        return work(c);
    case CONN_REPLY:
        return send_reply(c);
    case CONN_LINGER:
        return linger(c);
    default:
        return false;
    }
}

/* A handshake costs as much as many requests: in one turn so many, then the others first. */
static bool handshake_must_wait(struct conn *c)
{
    if (c->tls == NULL || !c->readable || tls_is_open(c->tls))
        return false;
    return c->server->handshakes++ >= HTTP_HANDSHAKES_PER_TURN_MAX;
}

void conn_run(struct conn *c)
{
    if (c->phase != CONN_CLOSED && handshake_must_wait(c)) {
        conn_wake(c);
        return;
    }
    for (int i = 0; i < 4 * HTTP_REQUESTS_PER_TURN_MAX; i++) {
        if (!step(c))
            return;
    }
    conn_wake(c); /* others first */
}
