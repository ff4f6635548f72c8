/* One call to a node on libcurl: its options, and what libcurl says of it. */
#include "cluster/calls/node_transfer.h"

#include "base/env.h"
#include "base/limits.h"

#include <arpa/inet.h>

/* --- callbacks --- */

/* Called before each time that the request is sent. libcurl sends it again by itself when a kept
 * connection turns out to be closed; but a node that has acted on it and died looks the same. */
static int before_request(void *ctx, char *to, char *from, int to_port, int from_port)
{
    struct node_transfer *t = ctx;
    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    if (t->sent && !t->call->repeatable)
        return CURL_PREREQFUNC_ABORT;
    t->sent = true;
    return CURL_PREREQFUNC_OK;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *ctx)
{
    struct node_transfer *t = ctx;
    struct str line = {bytes, size * count};
    long status = 0;
    if (t->head_complete)
        return size * count; /* a trailer */
    if (str_starts_with(line, STR("HTTP/"))) {
        buf_clear(&t->head);
        return size * count;
    }
    while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
        line.len--;
    if (line.len > 0) {
        buf_put(&t->head, line);
        buf_put_char(&t->head, '\n');
        return buf_ok(&t->head) ? size * count : CURL_WRITEFUNC_ERROR;
    }
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) /* an interim response */
        return size * count;
    t->head_complete = true;
    t->deadline_ms = env_mono_ms(&ENV_SYSTEM) + NODE_STALL_MS;
    t->sink->head(t, (int)status);
    return size * count;
}

/* A transfer that pauses waits for the loop, not for the node. */
static size_t take_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct node_transfer *t = ctx;
    if (!t->sink->body(t, bytes, size * count)) {
        t->deadline_ms = INT64_MAX;
        return CURL_WRITEFUNC_PAUSE;
    }
    t->deadline_ms = env_mono_ms(&ENV_SYSTEM) + NODE_STALL_MS;
    return size * count;
}

/* --- options --- */

#define SET(t, option, value)                                                  \
    do {                                                                       \
        if ((t)->setup == CURLE_OK)                                            \
            (t)->setup = curl_easy_setopt((t)->easy, CURLOPT_##option, value); \
    } while (0)

/* Of a URL with a port. What a name stands for may change, and then somebody else listens there. */
static bool is_literal_address(const char *url)
{
    const char *host = strstr(url, "://");
    const char *port = strrchr(url, ':');
    if (host == NULL || port <= host)
        return false;
    host += 3;
    bool v6 = *host == '[';
    char text[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    size_t len = (size_t)(port - host) - (v6 ? 2 : 0);
    if (len >= sizeof(text))
        return false;
    memcpy(text, host + v6, len);
    text[len] = '\0';
    return inet_pton(v6 ? AF_INET6 : AF_INET, text, address) == 1;
}

static void set_connection(struct node_transfer *t, const struct node_client_config *config)
{
    SET(t, PROTOCOLS_STR, "http,https");
    SET(t, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(t, PROXY, "");
    SET(t, NOPROXY, "*");
    SET(t, NOSIGNAL, 1L);
    SET(t, TCP_NODELAY, 1L);
    SET(t, TCP_KEEPALIVE, 1L);
    SET(t, CONNECTTIMEOUT_MS, (long)NODE_CONNECT_MS);
    SET(t, MAXAGE_CONN, (long)NODE_CONNECTION_AGE_S);
    SET(t, ERRORBUFFER, t->error);
    SET(t, PRIVATE, t);
    if (config->ca != NULL)
        SET(t, CAINFO, config->ca);
    /* Nobody else can listen there. Its certificate may name another host, by which others reach
     * it, and come from an authority that only its clients know. */
    if (config->self != NULL && strcmp(t->call->url, config->self) == 0 &&
        is_literal_address(config->self)) {
        SET(t, SSL_VERIFYPEER, 0L);
        SET(t, SSL_VERIFYHOST, 0L);
    }
    if (config->cert != NULL) {
        SET(t, SSLCERT, config->cert);
        SET(t, SSLKEY, config->key);
    }
}

static void set_callbacks(struct node_transfer *t)
{
    SET(t, PREREQFUNCTION, before_request);
    SET(t, PREREQDATA, t);
    SET(t, HEADERFUNCTION, take_header);
    SET(t, HEADERDATA, t);
    SET(t, WRITEFUNCTION, take_body);
    SET(t, WRITEDATA, t);
}

static void add_line(struct node_transfer *t, const char *line)
{
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (longer == NULL)
        t->setup = CURLE_OUT_OF_MEMORY;
    else
        t->headers = longer;
}

static void set_headers(struct node_transfer *t)
{
    const struct node_call *call = t->call;
    bool typed = false;
    for (size_t i = 0; i < call->header_count; i++) {
        const struct node_header *h = &call->headers[i];
        struct buf line;
        typed |= str_eq_nocase(h->name, STR("Content-Type"));
        buf_init(&line, 2 * HTTP_HEAD_MAX);
        /* In libcurl a semicolon makes a header with an empty value. */
        if (h->value.len > 0)
            buf_printf(&line, "%.*s: %.*s", STR_ARG(h->name), STR_ARG(h->value));
        else
            buf_printf(&line, "%.*s;", STR_ARG(h->name));
        if (buf_ok(&line))
            add_line(t, line.ptr);
        else
            t->setup = CURLE_OUT_OF_MEMORY;
        buf_release(&line);
    }
    add_line(t, "Expect:"); /* send large bodies without waiting for 100 Continue */
    if (!typed)
        add_line(t, "Content-Type:");
    SET(t, HTTPHEADER, t->headers);
}

static void set_request(struct node_transfer *t)
{
    const struct node_call *call = t->call;
    SET(t, URL, call->url);
    SET(t, REQUEST_TARGET, call->target);
    if (strcmp(call->method, "HEAD") == 0) {
        SET(t, NOBODY, 1L);
        return;
    }
    if (call->body.len > 0 || strcmp(call->method, "GET") != 0) {
        SET(t, POST, 1L);
        SET(t, POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        SET(t, POSTFIELDS, call->body.len > 0 ? call->body.ptr : "");
    }
    SET(t, CUSTOMREQUEST, call->method);
}

struct node_transfer *node_transfer_new(struct node_call *call,
                                        const struct node_client_config *config,
                                        const struct node_sink *sink)
{
    struct node_transfer *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->call = call;
    t->sink = sink;
    t->deadline_ms = call->head_ms > 0 ? env_mono_ms(&ENV_SYSTEM) + call->head_ms : INT64_MAX;
    buf_init(&t->head, CALL_HEAD_MAX);
    t->easy = curl_easy_init();
    if (t->easy != NULL) {
        set_connection(t, config);
        set_callbacks(t);
        set_request(t);
        set_headers(t);
        if (t->setup == CURLE_OK)
            return t;
    }
    node_transfer_free(t);
    return NULL;
}

void node_transfer_free(struct node_transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    buf_release(&t->head);
    free(t);
}

/* --- the end --- */

/* Without a head libcurl may take what came for a whole response that has no body. */
enum node_end node_transfer_end(const struct node_transfer *t, CURLcode code)
{
    if (code == CURLE_OK && t->head_complete)
        return NODE_ANSWERED;
    return t->sent ? NODE_BROKEN : NODE_UNREACHED;
}

const char *node_transfer_error(const struct node_transfer *t, CURLcode code)
{
    if (t->late)
        return "The node did not answer in time";
    if (code == CURLE_OK)
        return "The connection ended within the headers";
    return t->error[0] != '\0' ? t->error : curl_easy_strerror(code);
}
