/* The libmicrohttpd daemon without threads of its own: one epoll loop that the caller drives. */
#include "http/mhd/internal.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* TLS 1.2 and 1.3, with forward secrecy and authenticated encryption only. */
#define TLS_PRIORITIES                                            \
    "NONE:+VERS-TLS1.3:+VERS-TLS1.2:+ECDHE-ECDSA:+ECDHE-RSA"      \
    ":+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:+AEAD"         \
    ":+SIGN-ALL:-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:-SIGN-DSA-SHA1"   \
    ":+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+COMP-NULL" \
    ":+CTYPE-X509:%SERVER_PRECEDENCE"

enum { TLS_FILE_MAX = 256 * KIB, BODY_DISCARD_MAX = 16 * HTTP_BODY_MAX };

/* --- requests --- */

static struct str arena_copy(struct request *r, const char *text)
{
    return arena_str(&r->pub.arena, str_of(text));
}

/* Formatted once per connection. */
static struct str peer_of(struct request *r)
{
    if (r->conn != NULL && r->conn->peer[0] != '\0')
        return arena_copy(r, r->conn->peer);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char text[INET6_ADDRSTRLEN] = "";
    if (info != NULL && info->client_addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, info->client_addr, sizeof(in));
        (void)inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
    } else if (info != NULL && info->client_addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, info->client_addr, sizeof(in6));
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text));
    }
    static_assert(sizeof(r->conn->peer) >= sizeof(text), "any address fits");
    if (r->conn != NULL)
        memcpy(r->conn->peer, text, sizeof(text));
    return arena_copy(r, text);
}

/* The whole request target, as libmicrohttpd first reads it: its decoded path no longer tells an
 * encoded slash from a plain one. */
static void *begin_request(void *ctx, const char *target, struct MHD_Connection *connection)
{
    struct http_server *s = ctx;
    struct request *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->server = s;
    r->connection = connection;
    r->holders = 1;
    arena_init(&r->pub.arena, HTTP_REQUEST_ARENA_MAX);
    buf_init(&r->body, HTTP_BODY_MAX);
    r->pub.begun_ns = env_mono_ns(s->config.env);
    struct str all = arena_copy(r, target);
    (void)str_cut(all, '?', &r->pub.path, &r->pub.query);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    r->conn = info != NULL ? info->socket_context : NULL;
    if (r->conn != NULL)
        r->conn->request = r;
    return r;
}

static void end_request(void *ctx, struct MHD_Connection *connection, void **con_cls,
                        enum MHD_RequestTerminationCode code)
{
    struct http_server *s = ctx;
    (void)connection;
    struct request *r = *con_cls;
    if (r == NULL)
        return;
    *con_cls = NULL;
    if (r->answered && code != MHD_REQUEST_TERMINATED_COMPLETED_OK && r->pub.unsent != NULL)
        r->pub.unsent(r->pub.user);
    if (r->queued) {
        int number = r->reply.status;
        char status[] = {(char)('0' + number / 100), (char)('0' + number / 10 % 10),
                         (char)('0' + number % 10), '\0'};
        double seconds = (double)(env_mono_ns(s->config.env) - r->pub.begun_ns) / 1e9;
        struct str route = r->reply.route.ptr != NULL ? r->reply.route : STR("none");
        if (s->durations != NULL)
            metric_observe(s->durations, route, str_of(status), seconds);
    }
    if (r->conn != NULL) {
        r->conn->request = NULL;
        conn_enter(s, r->conn, CONN_HEAD);
    }
    r->connection = NULL;
    stream_over(r);
    http_request_drop(&r->pub);
}

static void refuse(struct request *r, enum err e, const char *why)
{
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, e, "%s", why);
    http_send_problem(&r->pub, &p, STR_NONE, NULL);
    problem_release(&p);
}

/* The head is complete. What can be refused without the body is refused now. */
static enum MHD_Result on_head(struct request *r, const char *method, const char *version)
{
    r->pub.method = arena_copy(r, method);
    r->pub.peer = peer_of(r);
    bool complete = request_read_headers(r);
    request_set_trace(r);
    if (r->conn != NULL)
        conn_enter(r->server, r->conn, CONN_BODY);
    if (!complete || r->pub.path.ptr == NULL || r->pub.method.ptr == NULL ||
        r->pub.peer.ptr == NULL) {
        refuse(r, ERR_NO_MEMORY, "No memory for the request");
        return reply_queue(r);
    }
    const char *fault = head_fault(r, version);
    if (fault != NULL) {
        r->last = true;
        refuse(r, ERR_BAD_REQUEST, fault);
        return reply_queue(r);
    }
    /* A client that does not wait for 100 Continue sends the whole body before it reads: on_body()
     * reads it to the end. */
    bool waits = http_header(&r->pub, "Expect", NULL).ptr != NULL;
    struct str length = str_trim(http_header(&r->pub, "Content-Length", NULL));
    int64_t bytes = 0;
    if (length.ptr != NULL && (!str_to_i64(length, &bytes) || bytes > BODY_DISCARD_MAX ||
                               (waits && bytes > HTTP_BODY_MAX))) {
        r->last = true;
        refuse(r, ERR_BODY_TOO_LARGE, "The body must not exceed 1 MiB");
        return reply_queue(r);
    }
    return MHD_YES;
}

static enum MHD_Result on_body(struct request *r, const char *data, size_t *size)
{
    buf_put_bytes(&r->body, data, *size);
    if (!buf_ok(&r->body)) {
        /* The rest is read and discarded, up to a limit, so that the client reads the answer. */
        r->discarded += *size;
        if (r->discarded > BODY_DISCARD_MAX)
            return MHD_NO;
    }
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **con_cls)
{
    struct http_server *s = ctx;
    (void)connection;
    (void)url;
    struct request *r = *con_cls;
    if (r == NULL)
        return MHD_NO; /* out of memory when it began */
    if (r->pub.method.ptr == NULL)
        return on_head(r, method, version);
    if (*size > 0)
        return on_body(r, data, size);
    if (!r->dispatched) {
        r->dispatched = true;
        if (r->conn != NULL)
            conn_enter(s, r->conn, CONN_WORKING);
        r->pub.body = buf_str(&r->body);
        if (r->discarded > 0)
            refuse(r, ERR_BODY_TOO_LARGE, "The body must not exceed 1 MiB");
        else
            s->config.handler(s->config.handler_ctx, &r->pub);
    }
    if (r->answered)
        return r->queued ? MHD_YES : reply_queue(r);
    /* All on this thread: the answer cannot have come between the handler's return and here. */
    r->suspended = true;
    MHD_suspend_connection(r->connection);
    return MHD_YES;
}

/* The api layer decodes paths and queries, part by part. */
static size_t keep_encoded(void *ctx, struct MHD_Connection *connection, char *text)
{
    (void)ctx;
    (void)connection;
    return strlen(text);
}

/* --- starting --- */

static enum err read_pem(const char *path, struct problem *p, char **ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return problem_set(p, ERR_BAD_REQUEST, "Cannot open %s: %s", path, strerror(errno));
    char *text = calloc(1, TLS_FILE_MAX + 1);
    ssize_t got = text != NULL ? read(fd, text, TLS_FILE_MAX) : -1;
    close(fd);
    if (got <= 0) {
        free(text);
        return problem_set(p, ERR_BAD_REQUEST, "Cannot read %s", path);
    }
    *ret = text;
    return ERR_OK;
}

static enum err start_daemon(struct http_server *s, const char *cert, const char *key,
                             struct problem *p)
{
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     (cert != NULL ? MHD_USE_TLS : 0u);
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, parser_error_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, s->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEAD_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_TIMEOUT_S, MHD_OPTION_NOTIFY_COMPLETED,
        end_request, s, MHD_OPTION_NOTIFY_CONNECTION, conn_notify, s, MHD_OPTION_URI_LOG_CALLBACK,
        begin_request, s, MHD_OPTION_UNESCAPE_CALLBACK, keep_encoded, NULL, MHD_OPTION_ARRAY,
        cert != NULL ? tls : none, MHD_OPTION_END);
    if (s->daemon == NULL)
        return problem_set(p, ERR_BAD_REQUEST,
                           cert != NULL
                               ? "Cannot start TLS: check that the certificate belongs to the key"
                               : "Cannot start the HTTP server");
    return ERR_OK;
}

enum err http_server_start(const struct http_config *config, struct problem *p,
                           struct http_server **ret)
{
    static const struct metric_spec DURATIONS = {"pawl_http_request_duration_seconds",
                                                 "Time from a request's first line to its answer.",
                                                 METRIC_HISTOGRAM,
                                                 {"route", "status"},
                                                 METRIC_SECONDS};
    struct http_server *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for the HTTP server");
    s->config = *config;
    s->listen_fd = -1;
    char *cert = NULL;
    char *key = NULL;
    char host[128];
    int port = 0;
    if (config->metrics != NULL)
        s->durations = metrics_declare(config->metrics, &DURATIONS);
    bool counts = s->durations != NULL || config->metrics == NULL;
    enum err e = counts ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "No memory for the HTTP server");
    if (e == ERR_OK && config->tls_cert != NULL)
        e = read_pem(config->tls_cert, p, &cert);
    if (e == ERR_OK && config->tls_cert != NULL)
        e = read_pem(config->tls_key, p, &key);
    if (e == ERR_OK)
        e = listen_open(config->listen, p, &s->listen_fd, host, sizeof(host), &port);
    if (e == ERR_OK)
        e = start_daemon(s, cert, key, p);
    if (e == ERR_OK) {
        bool v6 = strchr(host, ':') != NULL;
        (void)snprintf(s->url, sizeof(s->url), "%s://%s%s%s:%d", cert != NULL ? "https" : "http",
                       v6 ? "[" : "", host[0] != '\0' ? host : "0.0.0.0", v6 ? "]" : "", port);
        *ret = s;
    } else {
        http_server_free(s);
    }
    free(cert);
    free(key);
    return e;
}

enum err http_server_reload(struct http_server *s, struct problem *p)
{
    (void)s;
    return problem_set(p, ERR_BAD_REQUEST, "libmicrohttpd cannot read its certificate again");
}

/* --- one turn of the loop --- */

const char *http_server_url(const struct http_server *s)
{
    return s->url;
}

int http_server_fd(const struct http_server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    assert(info != NULL);
    return info->epoll_fd;
}

int http_server_timeout_ms(const struct http_server *s)
{
    MHD_UNSIGNED_LONG_LONG ms;
    if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
        return -1;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

void http_server_turn(struct http_server *s)
{
    enum MHD_Result ok = MHD_run(s->daemon);
    assert(ok == MHD_YES);
    conns_sweep(s);
}

/* --- ending --- */

void http_server_drain(struct http_server *s)
{
    if (s->draining)
        return;
    s->draining = true;
    s->next_sweep_ms = 0;
    MHD_socket fd = MHD_quiesce_daemon(s->daemon);
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
    s->listen_fd = -1;
}

size_t http_server_connections(const struct http_server *s)
{
    return s->conn_count;
}

void http_server_free(struct http_server *s)
{
    if (s == NULL)
        return;
    if (s->daemon != NULL)
        MHD_stop_daemon(s->daemon); /* closes the listening socket too, unless drained */
    else if (s->listen_fd >= 0)
        close(s->listen_fd);
    free(s);
}
