#include "transport.h"

#include <curl/curl.h>
#include <math.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "error.h"

#define BODY_BYTES_MAX (64 * 1024 * 1024)
#define CONNECT_MS 10000L
#define IDLE_LINES_MAX 32
#define TURN_MS 1000

/* One connection with what is going on over it. */
struct line {
    struct line *next; /* while it is idle */
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    char *url, *content;
    struct response *response; /* where headers and body go */
    struct buffer *chunk;      /* where the body of a stream goes instead */
    struct buffer early;       /* of a stream: what came before it was read */
    bool head_done, done;
    CURLcode result;
    char problem[CURL_ERROR_SIZE];
};

struct transport {
    char *url;
    const char *ca_file;
    pthread_mutex_t lock;
    struct line *idle;
    int idle_count;
};

struct abort {
    pthread_mutex_t lock;
    CURLM *multi;
    bool aborted;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_begin(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct transport *transport_new(const char *url)
{
    pthread_once(&curl_once, curl_begin);
    struct transport *transport = calloc(1, sizeof *transport);
    if (!transport)
        return NULL;
    transport->url = format("%s", url);
    transport->ca_file = getenv("PAWL_CA_FILE");
    pthread_mutex_init(&transport->lock, NULL);
    if (!transport->url) {
        transport_free(transport);
        return NULL;
    }
    return transport;
}

static void line_free(struct line *line)
{
    curl_easy_cleanup(line->easy);
    curl_multi_cleanup(line->multi);
    free(line);
}

void transport_free(struct transport *transport)
{
    while (transport->idle) {
        struct line *line = transport->idle;
        transport->idle = line->next;
        line_free(line);
    }
    pthread_mutex_destroy(&transport->lock);
    free(transport->url);
    free(transport);
}

static struct line *line_new(void)
{
    struct line *line = calloc(1, sizeof *line);
    if (!line)
        return NULL;
    line->multi = curl_multi_init();
    line->easy = curl_easy_init();
    if (line->multi && line->easy)
        return line;
    line_free(line);
    return NULL;
}

static struct line *take_line(struct transport *transport)
{
    pthread_mutex_lock(&transport->lock);
    struct line *line = transport->idle;
    if (line) {
        transport->idle = line->next;
        transport->idle_count--;
    }
    pthread_mutex_unlock(&transport->lock);
    return line ? line : line_new();
}

/* Ends what is going on; the connection stays for the next one if the exchange is complete. */
static void give_line(struct transport *transport, struct line *line)
{
    curl_multi_remove_handle(line->multi, line->easy);
    curl_easy_reset(line->easy);
    curl_slist_free_all(line->headers);
    free(line->url);
    free(line->content);
    buffer_free(&line->early);
    *line = (struct line){.multi = line->multi, .easy = line->easy};
    pthread_mutex_lock(&transport->lock);
    bool keeps = transport->idle_count < IDLE_LINES_MAX;
    if (keeps) {
        line->next = transport->idle;
        transport->idle = line;
        transport->idle_count++;
    }
    pthread_mutex_unlock(&transport->lock);
    if (!keeps)
        line_free(line);
}

/* --- what curl tells --- */

static bool header_is(const char *line, size_t size, const char *name, char *value, size_t capacity)
{
    size_t length = strlen(name);
    if (size <= length || line[length] != ':' || strncasecmp(line, name, length) != 0)
        return false;
    const char *begin = line + length + 1, *end = line + size;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && strchr(" \t\r\n", end[-1]))
        end--;
    snprintf(value, capacity, "%.*s", (int)(end - begin), begin);
    return true;
}

static size_t on_header(char *data, size_t one, size_t size, void *at)
{
    struct line *line = at;
    char value[sizeof line->response->content_type];
    (void)one;
    if (header_is(data, size, "content-type", value, sizeof value))
        memcpy(line->response->content_type, value, sizeof value);
    else if (header_is(data, size, "retry-after", value, sizeof value))
        line->response->retry_after_s = retry_after_of(value);
    if (size <= 2) {
        long status = 0;
        curl_easy_getinfo(line->easy, CURLINFO_RESPONSE_CODE, &status);
        line->response->status = (int)status;
        line->head_done = status >= 200;
    }
    return size;
}

static size_t on_body(char *data, size_t one, size_t size, void *at)
{
    struct line *line = at;
    struct buffer *to = &line->response->body;
    (void)one;
    if (line->chunk && line->response->status == 200)
        to = line->chunk;
    if (to->size + size > BODY_BYTES_MAX)
        return 0;
    buffer_add(to, data, size);
    return to->failed ? 0 : size;
}

/* --- one exchange --- */

static bool add_header(struct line *line, const char *name, const char *value)
{
    char *text = format("%s: %s", name, value);
    struct curl_slist *more = text ? curl_slist_append(line->headers, text) : NULL;
    free(text);
    if (more)
        line->headers = more;
    return more != NULL;
}

static bool fill_headers(struct line *line, const struct request *request)
{
    const char *name;
    json_t *value;
    json_object_foreach (request->headers, name, value)
        if (!add_header(line, name, json_string_value(value)))
            return false;
    return add_header(line, "Expect", "");
}

static bool fill_body(struct line *line, const struct request *request)
{
    curl_easy_setopt(line->easy, CURLOPT_CUSTOMREQUEST, request->method);
    if (!request->body) {
        if (strcmp(request->method, "POST") == 0 || strcmp(request->method, "PUT") == 0)
            curl_easy_setopt(line->easy, CURLOPT_POSTFIELDS, "");
        return strcmp(request->method, "GET") == 0 || add_header(line, "Content-Type", "");
    }
    line->content = json_text(request->body);
    if (!line->content)
        return false;
    curl_easy_setopt(line->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(line->content));
    curl_easy_setopt(line->easy, CURLOPT_POSTFIELDS, line->content);
    return true;
}

static bool fill_line(struct transport *transport, struct line *line, const struct request *request)
{
    char *target = request_target(request);
    line->url = target ? format("%s%s", transport->url, target) : NULL;
    free(target);
    if (!line->url || !fill_body(line, request) || !fill_headers(line, request))
        return false;
    CURL *easy = line->easy;
    curl_easy_setopt(easy, CURLOPT_URL, line->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, line->headers);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, line);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, line);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, line->problem);
    if (transport->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, transport->ca_file);
    return true;
}

/* Lets curl do what can be done now. */
static void advance(struct line *line)
{
    int running = 0, left = 0;
    curl_multi_perform(line->multi, &running);
    const CURLMsg *message = curl_multi_info_read(line->multi, &left);
    if (message && message->msg == CURLMSG_DONE) {
        line->done = true;
        line->result = message->data.result;
    }
}

static enum pawl_err no_answer(const struct transport *transport, const struct line *line,
                               struct pawl_error *error)
{
    const char *why = *line->problem ? line->problem : curl_easy_strerror(line->result);
    return error_set(error, PAWL_ERR_NO_ANSWER, "No answer from %s: %s", transport->url, why);
}

static bool abort_begins(struct abort *abort, CURLM *multi)
{
    if (!abort)
        return true;
    pthread_mutex_lock(&abort->lock);
    abort->multi = multi;
    bool goes_on = !abort->aborted;
    pthread_mutex_unlock(&abort->lock);
    return goes_on;
}

static void run_line(struct line *line, struct abort *abort)
{
    while (abort_begins(abort, line->multi)) {
        advance(line);
        if (line->done)
            break;
        curl_multi_poll(line->multi, NULL, 0, TURN_MS, NULL);
    }
    abort_begins(abort, NULL);
}

static enum pawl_err exchange(void *at, const struct request *request, struct abort *abort,
                              struct response *ret_response, struct pawl_error *error)
{
    struct transport *transport = at;
    struct line *line = take_line(transport);
    if (!line)
        return error_no_memory(error);
    struct response response = {0};
    line->response = &response;
    enum pawl_err result = PAWL_ERR_NO_MEMORY;
    if (!fill_line(transport, line, request)) {
        error_no_memory(error);
    } else {
        curl_easy_setopt(line->easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
        curl_multi_add_handle(line->multi, line->easy);
        run_line(line, abort);
        result =
            line->done && line->result == CURLE_OK ? PAWL_OK : no_answer(transport, line, error);
    }
    give_line(transport, line);
    if (result == PAWL_OK)
        *ret_response = response;
    else
        response_free(&response);
    return result;
}

/* --- streams --- */

static double clock_ms(void *at)
{
    struct timespec now;
    (void)at;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Waits for the socket until there is something to do, at most until `end_ms`. */
static bool await(struct line *line, double end_ms)
{
    double left = end_ms - clock_ms(NULL);
    if (left <= 0)
        return false;
    curl_multi_poll(line->multi, NULL, 0, (int)ceil(fmin(left, TURN_MS)), NULL);
    return true;
}

struct stream {
    struct line *line;
    struct response response;
};

static bool has_head(const struct line *line)
{
    return line->done || (line->head_done && line->response->status == 200);
}

static enum pawl_err open_stream(void *at, const struct request *request, void **ret_stream,
                                 struct response *ret_response, struct pawl_error *error)
{
    struct transport *transport = at;
    struct stream *stream = calloc(1, sizeof *stream);
    struct line *line = stream ? take_line(transport) : NULL;
    if (!line) {
        free(stream);
        return error_no_memory(error);
    }
    stream->line = line;
    line->response = &stream->response;
    line->chunk = &line->early;
    double end_ms = clock_ms(NULL) + request->timeout_ms;
    if (fill_line(transport, line, request)) {
        curl_multi_add_handle(line->multi, line->easy);
        do
            advance(line);
        while (!has_head(line) && await(line, end_ms));
    }
    enum pawl_err result =
        has_head(line) && line->result == CURLE_OK ? PAWL_OK : no_answer(transport, line, error);
    if (result == PAWL_OK && stream->response.status == 200) {
        *ret_stream = stream;
        ret_response->status = 200;
        return PAWL_OK;
    }
    give_line(transport, line);
    if (result == PAWL_OK)
        *ret_response = stream->response;
    else
        response_free(&stream->response);
    free(stream);
    return result;
}

static enum pawl_err read_stream(void *at, void *stream, double timeout_ms, struct buffer *chunk,
                                 struct pawl_error *error)
{
    struct line *line = ((struct stream *)stream)->line;
    double end_ms = clock_ms(NULL) + timeout_ms;
    while (line->early.size == 0 && !line->done && await(line, end_ms))
        advance(line);
    if (line->early.size > 0) {
        buffer_add(chunk, line->early.data, line->early.size);
        line->early.size = 0;
        return PAWL_OK;
    }
    return line->done && line->result == CURLE_OK ? PAWL_OK : no_answer(at, line, error);
}

static void close_stream(void *at, void *handle)
{
    struct stream *stream = handle;
    give_line(at, stream->line);
    response_free(&stream->response);
    free(stream);
}

/* --- the rest of the world --- */

static double random_share(void *at)
{
    uint32_t bits = 0;
    (void)at;
    RAND_bytes((unsigned char *)&bits, sizeof bits);
    return bits / 4294967296.0;
}

static void pause_ms(void *at, double ms)
{
    struct timespec rest = {.tv_sec = (time_t)(ms / 1e3), .tv_nsec = (long)(fmod(ms, 1e3) * 1e6)};
    (void)at;
    while (nanosleep(&rest, &rest) != 0)
        continue;
}

/* A random UUID. */
static void new_key(void *at, char key[KEY_SIZE])
{
    unsigned char b[16] = {0};
    (void)at;
    RAND_bytes(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
    char *to = key;
    for (size_t i = 0; i < sizeof b; i++)
        to += snprintf(to, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

struct ports transport_ports(struct transport *transport)
{
    return (struct ports){.at = transport,
                          .now_ms = clock_ms,
                          .random = random_share,
                          .pause = pause_ms,
                          .new_key = new_key,
                          .exchange = exchange,
                          .open = open_stream,
                          .read = read_stream,
                          .close = close_stream};
}

struct abort *abort_new(void)
{
    struct abort *abort = calloc(1, sizeof *abort);
    if (abort)
        pthread_mutex_init(&abort->lock, NULL);
    return abort;
}

void abort_free(struct abort *abort)
{
    if (!abort)
        return;
    pthread_mutex_destroy(&abort->lock);
    free(abort);
}

void abort_now(struct abort *abort)
{
    pthread_mutex_lock(&abort->lock);
    abort->aborted = true;
    if (abort->multi)
        curl_multi_wakeup(abort->multi);
    pthread_mutex_unlock(&abort->lock);
}
