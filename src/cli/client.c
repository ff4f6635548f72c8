/* HTTP over libcurl: one kept-alive handle, with safe retries. */
#include "cli/client.h"

#include "base/env.h"
#include "base/json_tree.h"
#include "base/limits.h"
#include "library/library.h"

#include <errno.h>
#include <unistd.h>

enum {
    ATTEMPTS_MAX = 4,
    BACKOFF_FIRST_MS = 200,    /* doubles, so that a server that is down is reported within 1.4 s */
    BACKOFF_MAX_MS = 5 * 1000, /* a person is waiting */
    CONNECT_TIMEOUT_MS = 5 * 1000, /* a lost SYN and its retransmissions */
    REPLY_MAX = 2 * HTTP_REPLY_MAX,
};

static bool fits_header(struct client *c, const char *name, const char *value);
static bool add_header(struct client *c, const char *name, const char *value);
static void set_constants(struct client *c);
static enum cli_exit prepare(struct client *c, const struct request *req, struct reply *reply);
static size_t take_bytes(char *bytes, size_t size, size_t count, void *ctx);
static void clear_attempt(struct client *c);
static CURLcode attempt(struct client *c);
static CURLcode take_head(struct client *c, CURLcode code);
static enum cli_exit verdict(struct client *c, CURLcode code);
static bool is_worth_a_retry(CURLcode code, const struct reply *reply);
static int64_t backoff_ms(CURL *curl, int attempt);

void reply_init(struct reply *r)
{
    *r = (struct reply){.status = 0};
    buf_init(&r->body, REPLY_MAX);
}

void reply_release(struct reply *r)
{
    buf_release(&r->body);
}

/* libcurl counts how often it is initialized. */
static bool start_libcurl(struct client *c)
{
    static_assert(sizeof(c->error) >= LIBRARY_WHY_MAX, "the reason fits");
    if (!library_load(&LIBCURL, c->error))
        return false;
    c->started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (!c->started)
        (void)snprintf(c->error, sizeof(c->error), "Cannot initialize libcurl");
    return c->started;
}

bool client_open(struct client *c, const struct client_setup *setup)
{
    *c = (struct client){.timeout_ms = setup->timeout_ms};
    buf_init(&c->url, CLIENT_HEADER_MAX);
    buf_init(&c->target, HTTP_HEAD_MAX * 2);
    if (!start_libcurl(c))
        return false;
    c->curl = curl_easy_init();
    struct str url = str_of(setup->url);
    while (url.len > 0 && url.ptr[url.len - 1] == '/')
        url.len--;
    buf_put(&c->url, url);
    if (c->curl == NULL || !buf_ok(&c->url)) {
        (void)snprintf(c->error, sizeof(c->error), "Out of memory, or the URL is too long");
        return false;
    }
    set_constants(c);
    if (setup->ca_file != NULL)
        curl_easy_setopt(c->curl, CURLOPT_CAINFO, setup->ca_file);
    char bearer[CLIENT_HEADER_MAX / 2];
    (void)snprintf(bearer, sizeof(bearer), "Bearer %s",
                   setup->api_key != NULL ? setup->api_key : "");
    return add_header(c, "Content-Type", "application/json") && add_header(c, "Expect", "") &&
           add_header(c, "Authorization", setup->api_key != NULL ? bearer : NULL) &&
           add_header(c, "X-Tenant-ID", setup->tenant) && add_header(c, "X-Actor", setup->actor);
}

void client_close(struct client *c)
{
    curl_easy_cleanup(c->curl);
    curl_slist_free_all(c->headers);
    buf_release(&c->url);
    buf_release(&c->target);
    if (c->started)
        curl_global_cleanup();
    c->curl = NULL;
    c->headers = NULL;
    c->started = false;
}

enum cli_exit client_send(struct client *c, const struct request *req, struct reply *ret)
{
    c->code = CURLE_OK;
    enum cli_exit rc = prepare(c, req, ret);
    if (rc != CLI_DONE)
        return rc;
    CURLcode code = attempt(c);
    for (int i = 1; i < ATTEMPTS_MAX && req->take == NULL && is_worth_a_retry(code, ret); i++) {
        client_pause(backoff_ms(c->curl, i));
        code = attempt(c);
    }
    return verdict(c, code);
}

bool client_begin(struct client *c, CURLM *multi, const struct request *req, struct reply *ret)
{
    assert(!req->to_file);
    c->code = CURLE_OK;
    if (prepare(c, req, ret) != CLI_DONE)
        return false;
    clear_attempt(c);
    CURLMcode code = curl_multi_add_handle(multi, c->curl);
    if (code != CURLM_OK)
        (void)snprintf(c->error, sizeof(c->error), "%s", curl_multi_strerror(code));
    return code == CURLM_OK;
}

enum cli_exit client_end(struct client *c, CURLM *multi, CURLcode code)
{
    code = take_head(c, code);
    curl_multi_remove_handle(multi, c->curl);
    return verdict(c, code);
}

void client_cancel(struct client *c, CURLM *multi)
{
    curl_multi_remove_handle(multi, c->curl);
}

void client_print_error(const struct client *c, const char *then)
{
    struct str url = buf_str(&c->url);
    switch (c->code) {
    case CURLE_OK: /* the request was not sent */
        fprintf(stderr, "pawl: %s%s\n", c->error, then);
        break;
    case CURLE_COULDNT_CONNECT:
        fprintf(stderr, "pawl: No pawl server at %.*s%s\n", STR_ARG(url), then);
        break;
    case CURLE_OPERATION_TIMEDOUT:
        fprintf(stderr, "pawl: %.*s did not answer in time%s\n", STR_ARG(url), then);
        break;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        fprintf(stderr, "pawl: \"%.*s\" is not a valid HTTP URL%s\n", STR_ARG(url), then);
        break;
    default:
        fprintf(stderr, "pawl: %.*s: %s%s\n", STR_ARG(url), c->error, then);
        break;
    }
}

void buf_put_escaped(struct buf *b, struct str text)
{
    static const char HEX[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        char escape[3] = {'%', HEX[c >> 4], HEX[c & 15]};
        buf_put_bytes(b, plain ? &text.ptr[i] : escape, plain ? 1 : 3);
    }
}

void client_pause(int64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* --- setting up --- */

/* A line break in a value would start another header. */
static bool fits_header(struct client *c, const char *name, const char *value)
{
    for (const char *p = value; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            (void)snprintf(c->error, sizeof(c->error), "The value of %s has control characters",
                           name);
            return false;
        }
    return true;
}

/* NULL adds nothing; an empty value removes a header that libcurl adds itself. */
static bool add_header(struct client *c, const char *name, const char *value)
{
    char line[CLIENT_HEADER_MAX];
    if (value == NULL)
        return true;
    if (!fits_header(c, name, value))
        return false;
    int len = snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *longer = NULL;
    if (len > 0 && (size_t)len < sizeof(line))
        longer = curl_slist_append(c->headers, line);
    if (longer == NULL) {
        (void)snprintf(c->error, sizeof(c->error), "The value of %s is too long", name);
        return false;
    }
    c->headers = longer;
    return true;
}

static bool is_loopback(struct str url)
{
    return str_starts_with(url, STR("http://127.")) || str_starts_with(url, STR("http://[::1]")) ||
           str_starts_with(url, STR("http://localhost"));
}

/* The settings of every request. A proxy from the environment does not apply to loopback. */
static void set_constants(struct client *c)
{
    CURL *curl = c->curl;
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "pawl");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, c);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, c->error);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)MIN(CONNECT_TIMEOUT_MS, c->timeout_ms));
    if (is_loopback(buf_str(&c->url)))
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
}

/* False when the value does not fit into a header; NULL adds none. */
static bool add_extra(struct client *c, size_t at, const char *name, const char *value,
                      struct curl_slist **first)
{
    if (value == NULL)
        return true;
    if (!fits_header(c, name, value))
        return false;
    int len = snprintf(c->extra[at].line, sizeof(c->extra[at].line), "%s: %s", name, value);
    if (len < 0 || (size_t)len >= sizeof(c->extra[at].line)) {
        (void)snprintf(c->error, sizeof(c->error), "The value of %s is too long", name);
        return false;
    }
    c->extra[at].node = (struct curl_slist){c->extra[at].line, *first};
    *first = &c->extra[at].node;
    return true;
}

static enum cli_exit prepare(struct client *c, const struct request *req, struct reply *reply)
{
    assert(req->path.len > 0 && req->path.ptr[0] == '/');
    CURL *curl = c->curl;
    struct curl_slist *headers = c->headers;
    c->req = *req;
    c->reply = reply;
    if (!add_extra(c, 0, "Idempotency-Key", req->idempotency_key, &headers) ||
        !add_extra(c, 1, "If-Match", req->if_match, &headers))
        return CLI_USAGE;
    buf_clear(&c->target);
    buf_put(&c->target, buf_str(&c->url));
    buf_put(&c->target, req->path);
    if (!buf_ok(&c->target)) {
        (void)snprintf(c->error, sizeof(c->error), "the request's URL is too long");
        return CLI_REFUSED;
    }
    bool sends_body = req->body.len > 0 || strcmp(req->method, "POST") == 0;
    if (sends_body) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, req->body.len > 0 ? req->body.ptr : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.len);
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, req->method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_URL, c->target.ptr);
    /* A file may take any time, as long as bytes arrive. */
    int64_t time_limit_ms = (req->timeout_ms > 0 ? req->timeout_ms : c->timeout_ms) + req->wait_ms;
    bool is_endless = req->to_file || req->take != NULL;
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, is_endless ? 0L : (long)time_limit_ms);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, req->take != NULL ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, req->to_file ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                     req->to_file ? (long)(time_limit_ms / 1000) : 0L);
    return CLI_DONE;
}

/* --- one attempt --- */

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(fd, bytes, len);
        if (wrote < 0 && errno != EINTR)
            return false;
        if (wrote > 0) {
            bytes += wrote;
            len -= (size_t)wrote;
        }
    }
    return true;
}

static void tell_progress(struct client *c, size_t len)
{
    curl_off_t total = 0;
    c->file_bytes += (int64_t)len;
    if (c->req.progress == NULL)
        return;
    curl_easy_getinfo(c->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &total);
    c->req.progress(c->req.progress_ctx, c->file_bytes, MAX((int64_t)total, INT64_C(0)));
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *ctx)
{
    struct client *c = ctx;
    size_t len = size * count;
    long status = 0;
    if (c->req.to_file || c->req.take != NULL)
        curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200 && c->req.take != NULL)
        return c->req.take(c->req.take_ctx, (struct str){bytes, len}) ? len : 0;
    if (status == 200) {
        if (write_all(c->req.file_fd, bytes, len)) {
            tell_progress(c, len);
            return len;
        }
        c->file_errno = errno;
        return 0;
    }
    buf_put_bytes(&c->reply->body, bytes, len);
    return buf_ok(&c->reply->body) ? len : 0;
}

/* Removes what the attempt before left. */
static void clear_attempt(struct client *c)
{
    buf_clear(&c->reply->body);
    c->file_errno = 0;
    c->file_bytes = 0;
    c->error[0] = '\0';
}

static CURLcode attempt(struct client *c)
{
    clear_attempt(c);
    if (c->req.to_file &&
        (ftruncate(c->req.file_fd, 0) != 0 || lseek(c->req.file_fd, 0, SEEK_SET) != 0)) {
        (void)snprintf(c->error, sizeof(c->error), "cannot truncate the file: %s", strerror(errno));
        return CURLE_WRITE_ERROR;
    }
    return take_head(c, curl_easy_perform(c->curl));
}

/* Fills in the status and headers of the reply, or the reason why there is none. */
static CURLcode take_head(struct client *c, CURLcode code)
{
    struct reply *reply = c->reply;
    reply->status = 0;
    reply->replayed = false;
    if (code == CURLE_WRITE_ERROR && c->file_errno != 0)
        (void)snprintf(c->error, sizeof(c->error), "cannot write the file: %s",
                       strerror(c->file_errno));
    else if (code == CURLE_WRITE_ERROR)
        (void)snprintf(c->error, sizeof(c->error), "the answer is larger than %d MiB",
                       REPLY_MAX / MIB);
    if (code != CURLE_OK)
        return code;
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &reply->status);
    struct curl_header *header = NULL;
    if (curl_easy_header(c->curl, "Idempotent-Replayed", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
        reply->replayed = strcmp(header->value, "true") == 0;
    return CURLE_OK;
}

static enum cli_exit verdict(struct client *c, CURLcode code)
{
    c->code = code;
    if (code == CURLE_OK)
        return CLI_DONE;
    if (c->error[0] == '\0')
        (void)snprintf(c->error, sizeof(c->error), "%s", curl_easy_strerror(code));
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return CLI_USAGE;
    return code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY ? CLI_REFUSED : CLI_UNREACHABLE;
}

/* --- retries --- */

static bool is_worth_a_retry(CURLcode code, const struct reply *reply)
{
    static const CURLcode TRANSIENT[] = {
        CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,   CURLE_OPERATION_TIMEDOUT,
        CURLE_SEND_ERROR,           CURLE_RECV_ERROR,        CURLE_GOT_NOTHING,
        CURLE_PARTIAL_FILE,         CURLE_SSL_CONNECT_ERROR,
    };
    for (size_t i = 0; i < ARRAY_LEN(TRANSIENT); i++)
        if (code == TRANSIENT[i])
            return true;
    if (code != CURLE_OK || (reply->status != 503 && reply->status != 409))
        return false;
    if (reply->status == 503)
        return true;
    json_t *problem =
        json_loadb(reply->body.ptr != NULL ? reply->body.ptr : "", reply->body.len, 0, NULL);
    bool retryable = json_is_true(json_object_get(problem, "retryable"));
    json_decref(problem);
    return retryable;
}

static int64_t backoff_ms(CURL *curl, int attempt)
{
    uint32_t dice = 0;
    curl_off_t asked_s = 0;
    env_random(&ENV_SYSTEM, &dice, sizeof(dice));
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &asked_s);
    int64_t bound = (int64_t)BACKOFF_FIRST_MS << (attempt - 1);
    int64_t wait = (int64_t)dice % (bound + 1);
    int64_t asked = MIN((int64_t)asked_s, BACKOFF_MAX_MS / 1000) * 1000;
    return MAX(wait, asked);
}
