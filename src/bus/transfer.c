/* One call on libcurl, hop by hop. */
#include "bus/transfer.h"

#include "base/env.h"
#include "base/limits.h"
#include "base/log.h"
#include "domain/address.h"
#include "domain/url.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- checking the request --- */

/* Headers that a request may not set: framing, and proxies. */
static const char *const OWN_HEADERS[] = {
    "connection", "content-length",      "expect",           "host",
    "keep-alive", "proxy-authorization", "proxy-connection", "te",
    "trailer",    "transfer-encoding",   "upgrade",
};

/* Headers that a redirect to another origin keeps. Any other may hold a credential. */
static const char *const TRAVELLING_HEADERS[] = {
    "accept",          "accept-language", "content-language", "content-type",
    "idempotency-key", "traceparent",     "tracestate",       "user-agent",
};

static bool is_one_of(struct str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(name, str_of(names[i])))
            return true;
    }
    return false;
}

/* RFC 9110: a token. */
static bool is_token(struct str s)
{
    static const char MARKS[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  memchr(MARKS, c, sizeof(MARKS) - 1) != NULL;
        if (!ok)
            return false;
    }
    return s.len > 0;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7F)
            return true;
    }
    return false;
}

static bool refuse(struct transfer *t, enum call_end end, const char *why)
{
    http_call_end(t->call, end, "%s", why);
    return false;
}

static bool check_headers(struct transfer *t)
{
    const struct http_call_request *r = &t->call->request;
    size_t bytes = 0;
    for (size_t i = 0; i < r->header_count; i++) {
        const struct http_call_header *h = &r->headers[i];
        bytes += h->name.len + h->value.len;
        if (!is_token(h->name) || has_control(h->value))
            return refuse(t, CALL_REQUEST_INVALID,
                          "A header has an invalid name, or a line break in its value");
        if (is_one_of(h->name, OWN_HEADERS, ARRAY_LEN(OWN_HEADERS))) {
            http_call_end(t->call, CALL_REQUEST_INVALID,
                          "The header %.*s is set by pawl and cannot be chosen", STR_ARG(h->name));
            return false;
        }
    }
    return bytes <= CALL_HEAD_MAX || refuse(t, CALL_REQUEST_INVALID, "The headers are too large");
}

/* NULL when it is not a URL that may be called, with a reason (see url_fault()), or without one
 * when memory ran out. */
static CURLU *parse_url(struct str url, bool *ret_secure, const char **ret_why)
{
    assert(url.ptr[url.len] == '\0');
    *ret_why = url_fault(url);
    if (*ret_why != NULL)
        return NULL;
    char *scheme = NULL;
    CURLU *parsed = curl_url();
    CURLUcode code = CURLUE_OUT_OF_MEMORY;
    if (parsed != NULL)
        code = curl_url_set(parsed, CURLUPART_URL, url.ptr, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0);
    if (code == CURLUE_OK) {
        *ret_secure = strcmp(scheme, "https") == 0;
        curl_free(scheme);
        return parsed;
    }
    *ret_why = code == CURLUE_OUT_OF_MEMORY ? NULL : "is not a valid URL";
    curl_url_cleanup(parsed);
    return NULL;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
    char *x = NULL;
    char *y = NULL;
    bool same = curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(b, part, &y, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                str_eq_nocase(str_of(x), str_of(y));
    curl_free(x);
    curl_free(y);
    return same;
}

static bool same_origin(CURLU *a, CURLU *b)
{
    return same_part(a, b, CURLUPART_SCHEME) && same_part(a, b, CURLUPART_HOST) &&
           same_part(a, b, CURLUPART_PORT);
}

/* --- callbacks --- */

static int note_resolving(void *state, void *reserved, void *ctx)
{
    (void)state;
    (void)reserved;
    struct transfer *t = ctx;
    t->resolving = true;
    return 0;
}

static enum address_kind kind_of(const struct curl_sockaddr *address)
{
    const void *raw = &address->addr;
    if (address->family == AF_INET && address->addrlen >= sizeof(struct sockaddr_in)) {
        const struct sockaddr_in *v4 = raw;
        return address_kind_v4((const unsigned char *)&v4->sin_addr);
    }
    if (address->family == AF_INET6 && address->addrlen >= sizeof(struct sockaddr_in6)) {
        const struct sockaddr_in6 *v6 = raw;
        return address_kind_v6(v6->sin6_addr.s6_addr);
    }
    return ADDRESS_RESERVED;
}

/* Called right before a connection is made, with the address that it is made to. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *t = ctx;
    enum address_kind kind = kind_of(address);
    t->resolving = false;
    if (purpose != CURLSOCKTYPE_IPCXN || !address_in_reach(kind, t->reach)) {
        t->refused = true;
        t->refused_kind = address_kind_name(kind);
        return CURL_SOCKET_BAD;
    }
    t->tried = true;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t take_header(char *bytes, size_t size, size_t count, void *ctx)
{
    struct transfer *t = ctx;
    struct buf *head = &t->call->head;
    struct str line = {bytes, size * count};
    t->head_bytes += line.len;
    if (t->head_bytes > CALL_HEAD_MAX) {
        t->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    if (str_starts_with(line, STR("HTTP/"))) {
        buf_clear(head); /* of an interim response */
        t->head_complete = false;
        return line.len;
    }
    while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
        line.len--;
    t->head_complete |= line.len == 0;
    if (line.len > 0 && line.ptr[0] != ' ' && line.ptr[0] != '\t') {
        buf_put(head, line);
        buf_put_char(head, '\n');
    }
    return buf_ok(head) ? size * count : CURL_WRITEFUNC_ERROR;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct transfer *t = ctx;
    struct buf *body = &t->call->body;
    if (size * count > CALL_RESPONSE_MAX - body->len) {
        t->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    buf_put_bytes(body, bytes, size * count);
    return buf_ok(body) ? size * count : CURL_WRITEFUNC_ERROR;
}

/* --- options --- */

#define SET(t, option, value)                                                  \
    do {                                                                       \
        if ((t)->setup == CURLE_OK)                                            \
            (t)->setup = curl_easy_setopt((t)->easy, CURLOPT_##option, value); \
    } while (0)

/* Options of every hop. */
static void set_constants(struct transfer *t)
{
    SET(t, PROTOCOLS_STR, "http,https");
    SET(t, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(t, PROXY, "");
    SET(t, NOPROXY, "*");
    SET(t, DISALLOW_USERNAME_IN_URL, 1L);
    SET(t, USERAGENT, "pawl/" PAWL_VERSION);
    SET(t, NOSIGNAL, 1L);
    SET(t, QUICK_EXIT, 1L); /* a slow name look-up does not hold up other calls */
    SET(t, MAXAGE_CONN, (long)CALL_CONNECTION_AGE_S);
    SET(t, ERRORBUFFER, t->error);
    SET(t, PRIVATE, t);
    SET(t, RESOLVER_START_FUNCTION, note_resolving);
    SET(t, RESOLVER_START_DATA, t);
    SET(t, OPENSOCKETFUNCTION, open_socket);
    SET(t, OPENSOCKETDATA, t);
    SET(t, HEADERFUNCTION, take_header);
    SET(t, HEADERDATA, t);
    SET(t, WRITEFUNCTION, take_body);
    SET(t, WRITEDATA, t);
}

static void add_line(struct transfer *t, const char *line)
{
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (longer == NULL)
        t->setup = CURLE_OUT_OF_MEMORY;
    else
        t->headers = longer;
}

/* The headers of the request that this hop may get. */
static void set_headers(struct transfer *t, bool home, bool with_body)
{
    const struct http_call_request *r = &t->call->request;
    bool typed = false;
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    for (size_t i = 0; i < r->header_count; i++) {
        const struct http_call_header *h = &r->headers[i];
        bool about_body = str_eq_nocase(h->name, STR("content-type")) ||
                          str_eq_nocase(h->name, STR("content-language")) ||
                          str_eq_nocase(h->name, STR("content-encoding"));
        if ((about_body && !with_body) ||
            (!home && !is_one_of(h->name, TRAVELLING_HEADERS, ARRAY_LEN(TRAVELLING_HEADERS))))
            continue;
        typed |= str_eq_nocase(h->name, STR("content-type"));
        struct buf line;
        buf_init(&line, 2 * CALL_HEAD_MAX);
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

static void set_method(struct transfer *t, bool with_body)
{
    const struct http_call_request *r = &t->call->request;
    bool has_length = str_is(t->method, "POST") || str_is(t->method, "PUT") ||
                      str_is(t->method, "PATCH") || (with_body && r->body.len > 0);
    SET(t, HTTPGET, 1L);
    if (str_is(t->method, "HEAD")) {
        SET(t, NOBODY, 1L);
        return;
    }
    if (has_length) {
        SET(t, POST, 1L);
        SET(t, POSTFIELDSIZE_LARGE, with_body ? (curl_off_t)r->body.len : (curl_off_t)0);
        SET(t, POSTFIELDS, with_body && r->body.len > 0 ? r->body.ptr : "");
    }
    SET(t, CUSTOMREQUEST, t->method.ptr);
}

/* False when the call has ended: no time left, or out of memory. */
static bool set_hop(struct transfer *t, const char *url, bool home, bool with_body)
{
    int64_t left = t->call->deadline_ms - env_mono_ms(&ENV_SYSTEM);
    if (left <= 0)
        return refuse(t, CALL_TIMED_OUT, "No time was left for the call");
    buf_clear(&t->call->head);
    buf_clear(&t->call->body);
    t->refused = t->tried = t->resolving = t->head_complete = false;
    t->error[0] = '\0';
    SET(t, URL, url);
    SET(t, TIMEOUT_MS, (long)left);
    SET(t, CONNECTTIMEOUT_MS, (long)MIN(left, (int64_t)CALL_CONNECT_MS_MAX));
    set_method(t, with_body);
    set_headers(t, home, with_body);
    return t->setup == CURLE_OK || refuse(t, CALL_FAILED, curl_easy_strerror(t->setup));
}

/* --- hops --- */

bool transfer_begin(struct transfer *t, struct http_call *call, enum address_reach reach)
{
    const struct http_call_request *r = &call->request;
    *t = (struct transfer){.call = call, .method = r->method, .reach = reach};
    const char *why = NULL;
    if (!is_token(r->method))
        return refuse(t, CALL_REQUEST_INVALID, "The method is not valid");
    if (str_is(r->method, "HEAD") && r->body.len > 0)
        return refuse(t, CALL_REQUEST_INVALID, "HEAD takes no body");
    if (!check_headers(t))
        return false;
    t->origin = parse_url(r->url, &t->secure, &why);
    if (t->origin == NULL && why != NULL) {
        http_call_end(call, CALL_REQUEST_INVALID, "The URL %s", why);
        return false;
    }
    t->easy = t->origin != NULL ? curl_easy_init() : NULL;
    if (t->easy == NULL)
        return refuse(t, CALL_FAILED, "The server is out of memory");
    set_constants(t);
    return set_hop(t, r->url.ptr, true, r->body.ptr != NULL);
}

static enum call_end end_of(CURLcode code)
{
    switch ((int)code) {
    case CURLE_OPERATION_TIMEDOUT:
        return CALL_TIMED_OUT;
    case CURLE_COULDNT_RESOLVE_HOST:
        return CALL_ADDRESS_REFUSED;
    case CURLE_COULDNT_CONNECT:
        return CALL_CONNECT_FAILED;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_PEER_FAILED_VERIFICATION:
        return CALL_TLS_FAILED;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return CALL_CONNECTION_LOST;
    default:
        return CALL_FAILED;
    }
}

/* A name that does not resolve and one whose address is out of reach give the same error: the
 * author of a workflow must not find out which names exist inside the server's network. */
static const char *const REFUSED_DETAIL[] = {
    [REACH_PUBLIC] = "The host does not resolve, or not to a public address (pawl serve "
                     "--allow-private-addresses allows others)",
    [REACH_LOOPBACK] = "The host does not resolve, or not to a public or loopback address (pawl "
                       "serve --allow-private-addresses allows others)",
    [REACH_ALL] = "The host does not resolve",
};

/* Tells the operator, who may know. */
static void log_refusal(const struct transfer *t)
{
    char *host = NULL;
    if (curl_url_get(t->origin, CURLUPART_HOST, &host, 0) == CURLUE_OK)
        LOG(LOG_DEBUG, "a call was refused: its address is out of reach", LOG_Z("host", host),
            LOG_Z("address", t->refused_kind), LOG_N("redirects", t->redirects));
    curl_free(host);
}

static void set_end(struct transfer *t, CURLcode code)
{
    enum call_end end = end_of(code);
    bool refused = t->refused && !t->tried;
    if (refused)
        log_refusal(t);
    if (t->too_large)
        http_call_end(t->call, CALL_RESPONSE_TOO_LARGE,
                      "The response has more than %d bytes, or more than %d bytes of headers",
                      CALL_RESPONSE_MAX, CALL_HEAD_MAX);
    else if (refused || end == CALL_ADDRESS_REFUSED)
        http_call_end(t->call, CALL_ADDRESS_REFUSED, "%s", REFUSED_DETAIL[t->reach]);
    else
        http_call_end(t->call, end, "%s",
                      t->error[0] != '\0' ? t->error : curl_easy_strerror(code));
}

/* libcurl resolves a relative Location. When memory runs out meanwhile, it passes it on as it came.
 */
static bool is_resolved(const char *location)
{
    return location[strcspn(location, ":/?#")] == ':';
}

/* The next hop, as RFC 9110 has it: a POST becomes a GET unless the status is 307 or 308. */
static bool follow(struct transfer *t, const char *url)
{
    const char *why = NULL;
    bool secure = false;
    if (t->redirects++ == t->call->request.redirects_max) {
        http_call_end(t->call, CALL_TOO_MANY_REDIRECTS, "Redirected more than %d times",
                      t->call->request.redirects_max);
        return false;
    }
    CURLU *to = is_resolved(url) ? parse_url(str_of(url), &secure, &why) : NULL;
    if (to == NULL && why == NULL)
        return refuse(t, CALL_FAILED, "The server is out of memory");
    if (to == NULL) {
        http_call_end(t->call, CALL_REDIRECT_REFUSED, "The URL of a redirect %s", why);
        return false;
    }
    bool home = same_origin(t->origin, to);
    curl_url_cleanup(to);
    if (t->secure && !secure)
        return refuse(t, CALL_REDIRECT_REFUSED, "Redirected from https to http");
    t->secure = secure;
    int status = t->call->status;
    bool keeps = status == 307 || status == 308 || str_is(t->method, "GET") ||
                 str_is(t->method, "HEAD") || (status != 303 && !str_is(t->method, "POST"));
    if (!keeps)
        t->method = STR("GET");
    bool with_body =
        str_eq(t->method, t->call->request.method) && t->call->request.body.ptr != NULL;
    return set_hop(t, url, home, with_body);
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool transfer_goes_on(struct transfer *t, CURLcode code)
{
    struct http_call *call = t->call;
    long status = 0;
    char *location = NULL;
    if (code != CURLE_OK) {
        set_end(t, code);
        return false;
    }
    if (!t->head_complete) /* libcurl takes what came for a whole response without a body */
        return refuse(t, CALL_CONNECTION_LOST, "The connection ended within the headers");
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &location);
    call->status = (int)status;
    if (is_redirect(call->status) && location != NULL && call->request.redirects_max > 0)
        return follow(t, location);
    str_repair_utf8(call->head.ptr, call->head.len);
    call->end = CALL_ANSWERED;
    return false;
}

struct http_call *transfer_release(struct transfer *t)
{
    struct http_call *call = t->call;
    if (call != NULL && call->end != CALL_ANSWERED) { /* a partial response is not shown */
        call->status = 0;
        buf_release(&call->head);
        buf_release(&call->body);
    }
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    curl_url_cleanup(t->origin);
    t->easy = NULL;
    t->headers = NULL;
    t->origin = NULL;
    t->call = NULL;
    return call;
}
