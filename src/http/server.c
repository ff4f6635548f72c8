/* The server: its socket, its epoll, and one turn of the loop that the caller drives. */
#define _GNU_SOURCE /* accept4 */
#include "http/internal.h"

#include "base/log.h"
#include "http/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPT_PAUSE_MS = 100, EVENTS = EPOLLIN | EPOLLOUT | EPOLLRDHUP };

/* --- starting --- */

/* As many as there may be descriptors, less those that the store and others need. */
static size_t connections_max(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur <= 2 * HTTP_FILES_RESERVED)
        return HTTP_FILES_RESERVED;
    return (size_t)MIN(files.rlim_cur - HTTP_FILES_RESERVED, (rlim_t)HTTP_CONNECTIONS_MAX);
}

static enum err no_memory(struct problem *p)
{
    return problem_set(p, ERR_NO_MEMORY, "No memory for the HTTP server");
}

static enum err declare_metrics(struct http_server *s, struct problem *p)
{
    static const struct metric_spec DURATIONS = {"pawl_http_request_duration_seconds",
                                                 "Time from a request's first line to its answer.",
                                                 METRIC_HISTOGRAM,
                                                 {"route", "status"},
                                                 METRIC_SECONDS};
    static const struct metric_spec DROPPED = {"pawl_http_connections_dropped_total",
                                               "Connections that the server ended, by reason.",
                                               METRIC_COUNTER,
                                               {"reason", NULL},
                                               NULL};
    if (s->config.metrics == NULL)
        return ERR_OK;
    s->durations = metrics_declare(s->config.metrics, &DURATIONS);
    s->dropped = metrics_declare(s->config.metrics, &DROPPED);
    if (s->durations == NULL || s->dropped == NULL)
        return no_memory(p);
    static const char *const REASONS[] = {"idle",      "evicted",     "full",      "slow_head",
                                          "slow_body", "slow_reader", "slow_close"};
    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++) /* there from the start, as zero */
        metric_add(s->dropped, str_of(REASONS[i]), STR_NONE, 0);
    return ERR_OK;
}

/* Connections inherit the option: an answer is sent whole, so there is nothing to wait for. */
static enum err watch_listener(struct http_server *s, struct problem *p)
{
    int one = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll_fd < 0 ||
        setsockopt(s->listen_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->listen_fd, &event) != 0)
        return problem_set(p, ERR_NO_MEMORY, "Cannot watch the socket: %s", strerror(errno));
    return ERR_OK;
}

static enum err start(struct http_server *s, struct problem *p)
{
    char host[128];
    int port = 0;
    s->peers = peers_new();
    s->tenants = peers_new();
    enum err e = s->peers != NULL && s->tenants != NULL ? declare_metrics(s, p) : no_memory(p);
    if (e != ERR_OK)
        return e;
    if (s->config.tls_cert != NULL)
        e = tls_new(
            &(struct tls_files){s->config.tls_cert, s->config.tls_key, s->config.tls_client_ca}, p,
            &s->tls);
    if (e != ERR_OK)
        return e;
    e = listen_open(s->config.listen, p, &s->listen_fd, host, sizeof(host), &port);
    if (e != ERR_OK)
        return e;
    bool v6 = strchr(host, ':') != NULL;
    (void)snprintf(s->url, sizeof(s->url), "%s://%s%s%s:%d", s->tls != NULL ? "https" : "http",
                   v6 ? "[" : "", host[0] != '\0' ? host : "0.0.0.0", v6 ? "]" : "", port);
    return watch_listener(s, p);
}

enum err http_server_start(const struct http_config *config, struct problem *p,
                           struct http_server **ret)
{
    struct http_server *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return no_memory(p);
    s->config = *config;
    if (config->connections_per_peer_max == 0)
        s->config.connections_per_peer_max = HTTP_CONNECTIONS_PER_PEER_MAX;
    if (config->connections_per_tenant_max == 0)
        s->config.connections_per_tenant_max = HTTP_CONNECTIONS_PER_TENANT_MAX;
    s->listen_fd = s->epoll_fd = -1;
    s->conn_max = connections_max();
    s->now_ms = env_mono_ms(config->env);
    enum err e = start(s, p);
    if (e == ERR_OK)
        *ret = s;
    else
        http_server_free(s);
    return e;
}

enum err http_server_reload(struct http_server *s, struct problem *p)
{
    assert(s->tls != NULL);
    return tls_reload(
        s->tls, &(struct tls_files){s->config.tls_cert, s->config.tls_key, s->config.tls_client_ca},
        p);
}

const char *http_server_url(const struct http_server *s)
{
    return s->url;
}

/* --- new connections --- */

/* Makes room by closing the connection that has waited longest for its client; of one address or
 * tenant, if `of` is not NULL. */
static bool evict(struct http_server *s, const struct peer *of)
{
    static const enum conn_phase WAITING[] = {CONN_IDLE, CONN_LINGER, CONN_HEAD};
    for (size_t i = 0; i < ARRAY_LEN(WAITING); i++) {
        struct conn *c = s->lists[WAITING[i]].first;
        while (c != NULL && of != NULL && c->peer != of && c->tenant != of)
            c = c->next;
        if (c != NULL) {
            deadlines_count(s, "evicted");
            conn_close(c);
            return true;
        }
    }
    return false;
}

bool http_count_for(struct http_request *req, struct str tenant)
{
    struct conn *c = request_of(req)->conn;
    if (c == NULL || (c->tenant != NULL && str_is(tenant, peer_text(c->tenant))))
        return true;
    struct http_server *s = c->server;
    conn_leave_tenant(c);
    c->tenant = peers_join_tenant(s->tenants, tenant);
    if (c->tenant == NULL)
        return false;
    if (peer_count(c->tenant) <= s->config.connections_per_tenant_max || evict(s, c->tenant))
        return true;
    conn_leave_tenant(c);
    return false;
}

#define FULL_BODY                                                                            \
    "{\"type\":\"urn:pawl:problem:OVERLOADED\",\"title\":\"Too many requests are waiting\"," \
    "\"status\":503,\"detail\":\"Too many connections\",\"code\":\"OVERLOADED\","            \
    "\"retryable\":true,\"trace_id\":\"\"}"

/* So short that the socket takes it whole. */
static void turn_away(struct http_server *s, int fd)
{
    static const char ANSWER[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
        "Retry-After: 1\r\nConnection: close\r\nContent-Length: 174\r\n\r\n" FULL_BODY;
    static_assert(sizeof(FULL_BODY) - 1 == 174, "as its Content-Length says");
    if (s->tls == NULL)
        (void)send(fd, ANSWER, sizeof(ANSWER) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    deadlines_count(s, "full");
    close(fd);
}

static bool has_room(struct http_server *s, const struct peer *peer)
{
    if (peer_count(peer) > s->config.connections_per_peer_max && !evict(s, peer))
        return false;
    return s->conn_count < s->conn_max || evict(s, NULL);
}

static void add_conn(struct http_server *s, int fd, const struct sockaddr_storage *address)
{
    struct peer *peer = peers_join(s->peers, address);
    struct conn *c = peer != NULL && has_room(s, peer) ? conn_new(s, fd, peer) : NULL;
    if (c == NULL) {
        if (peer != NULL)
            peers_leave(s->peers, peer);
        turn_away(s, fd);
        return;
    }
    struct epoll_event event = {.events = EVENTS | (uint32_t)EPOLLET, .data.ptr = c};
    if (s->tls != NULL)
        c->tls = tls_accept(s->tls, fd);
    if ((s->tls != NULL && c->tls == NULL) ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        conn_close(c);
}

/* No descriptors are left: one connection makes room, or the next try comes later. The kernel says
 * so even when nobody waits to be accepted. */
static void pause_accepting(struct http_server *s)
{
    struct pollfd waiting = {s->listen_fd, POLLIN, 0};
    if (poll(&waiting, 1, 0) <= 0 || evict(s, NULL))
        return;
    struct epoll_event none = {.events = 0};
    (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listen_fd, &none);
    s->accept_at_ms = s->now_ms + ACCEPT_PAUSE_MS;
}

static void resume_accepting(struct http_server *s)
{
    if (s->accept_at_ms == 0 || s->now_ms < s->accept_at_ms || s->listen_fd < 0)
        return;
    struct epoll_event event = {.events = EPOLLIN};
    (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listen_fd, &event);
    s->accept_at_ms = 0;
}

static void accept_some(struct http_server *s)
{
    for (int i = 0; i < HTTP_ACCEPTS_PER_TURN_MAX; i++) {
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof(address);
        int fd =
            accept4(s->listen_fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        int why = errno;
        if (fd >= 0) {
            add_conn(s, fd, &address);
        } else if (why != EINTR && why != ECONNABORTED) {
            if (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM)
                pause_accepting(s);
            return;
        }
    }
}

/* --- one turn of the loop --- */

int http_server_fd(const struct http_server *s)
{
    return s->epoll_fd;
}

int http_server_timeout_ms(const struct http_server *s)
{
    if (s->ready_first != NULL || s->orphans != NULL)
        return 0;
    int next = deadlines_next_ms(s);
    return s->accept_at_ms > 0 && (next < 0 || next > ACCEPT_PAUSE_MS) ? ACCEPT_PAUSE_MS : next;
}

static void on_event(struct conn *c, uint32_t events)
{
    if (c->phase == CONN_CLOSED)
        return;
    c->readable |= c->read_waits && (events & EPOLLOUT) != 0;
    c->writable |= c->write_waits && (events & EPOLLIN) != 0;
    c->readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    c->writable |= (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    c->half_closed |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (c->phase == CONN_WORKING && (events & (EPOLLHUP | EPOLLERR)) != 0)
        conn_close(c); /* not even an answer could be sent */
    else
        conn_run(c);
}

/* What can be answered at once is answered after all requests have been read: a client with many
 * connections is then woken once, and not for each answer. */
static void take_events(struct http_server *s)
{
    struct epoll_event events[HTTP_EVENTS_PER_TURN_MAX];
    int count = epoll_wait(s->epoll_fd, events, HTTP_EVENTS_PER_TURN_MAX, 0);
    bool accepts = false;
    s->gathers = true;
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            accepts = true;
        else
            on_event(events[i].data.ptr, events[i].events);
    }
    s->gathers = false;
    if (accepts)
        accept_some(s);
}

/* Those that were woken before this turn; what they wake themselves has its turn in the next. */
static void run_ready(struct http_server *s)
{
    struct conn *c = s->ready_first;
    s->ready_first = s->ready_last = NULL;
    while (c != NULL) {
        struct conn *next = c->next_ready;
        c->is_ready = false;
        conn_run(c);
        c = next;
    }
}

static void end_orphans(struct http_server *s)
{
    while (s->orphans != NULL) {
        struct request *r = s->orphans;
        s->orphans = r->next_orphan;
        request_over(r);
    }
}

/* An event or the list of the ready may still name one until the turn is over. */
static void free_closed(struct http_server *s)
{
    for (struct conn *c = s->lists[CONN_CLOSED].first, *next; c != NULL; c = next) {
        next = c->next;
        if (c->is_ready)
            continue;
        *(c->prev != NULL ? &c->prev->next : &s->lists[CONN_CLOSED].first) = next;
        *(next != NULL ? &next->prev : &s->lists[CONN_CLOSED].last) = c->prev;
        free(c);
    }
}

void http_server_turn(struct http_server *s)
{
    s->now_ms = env_mono_ms(s->config.env);
    s->handshakes = 0;
    run_ready(s);
    take_events(s);
    run_ready(s);
    end_orphans(s);
    resume_accepting(s);
    deadlines_sweep(s);
    free_closed(s);
}

/* --- ending --- */

static void close_unused(struct http_server *s, enum conn_phase phase)
{
    for (struct conn *c = s->lists[phase].first, *next; c != NULL; c = next) {
        next = c->next;
        if (c->request == NULL)
            conn_close(c);
    }
}

void http_server_drain(struct http_server *s)
{
    if (s->draining)
        return;
    s->draining = true;
    close(s->listen_fd);
    s->listen_fd = -1;
    close_unused(s, CONN_IDLE);
    close_unused(s, CONN_HEAD);
}

size_t http_server_connections(const struct http_server *s)
{
    return s->conn_count;
}

void http_server_free(struct http_server *s)
{
    if (s == NULL)
        return;
    run_ready(s);
    for (int phase = 0; phase < CONN_CLOSED; phase++) {
        while (s->lists[phase].first != NULL)
            conn_close(s->lists[phase].first);
    }
    end_orphans(s);
    run_ready(s);
    free_closed(s);
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    if (s->epoll_fd >= 0)
        close(s->epoll_fd);
    peers_free(s->peers);
    peers_free(s->tenants);
    tls_free(s->tls);
    free(s);
}
