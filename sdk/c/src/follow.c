#include "follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "sse.h"

#define SILENCE_MS 45000 /* the server sends a comment every 15 s */
static const struct pawl_retry reconnect = {PAWL_JITTER_FULL, 100, 5000, 2, 0, 0};

/* A stream that is being followed. */
struct following {
    struct follow *follow;
    struct backoff backoff;
    double failing_since_ms; /* 0: it works */
    bool enough;             /* the caller wants no more */
};

static double now_of(const struct follow *follow)
{
    return follow->client->ports.now_ms(follow->client->ports.at);
}

static double silence(const struct follow *follow)
{
    if (follow->deadline_ms <= 0)
        return SILENCE_MS;
    return fmax(1, fmin(SILENCE_MS, follow->deadline_ms - now_of(follow)));
}

/* The JSON object of an event. */
static json_t *event_value(const struct follow *follow, const struct sse_event *event)
{
    bool reset = follow->feed && strcmp(event->event, "reset") == 0;
    json_t *value = reset ? json_pack("{s:s}", "type", "reset")
                          : json_loads(event->data, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!json_is_object(value))
        value = json_pack("{s:s, s:o?}", "type", event->event, "data", value);
    if (follow->feed)
        set_text(value, "cursor", event->id ? event->id : "");
    return value;
}

static bool on_event(const struct sse_event *event, void *at)
{
    struct following *following = at;
    struct follow *follow = following->follow;
    free(follow->cursor);
    follow->cursor = event->id ? format("%s", event->id) : NULL;
    following->failing_since_ms = 0;
    following->backoff = backoff_begin(&reconnect);
    json_t *value = event_value(follow, event);
    following->enough = !follow->each(value, follow->user);
    json_decref(value);
    return !following->enough;
}

static struct request stream_request(const struct follow *follow)
{
    struct request request =
        client_request(follow->client, "GET", format("%s", follow->path), NULL);
    json_object_set_new(request.headers, "Accept", json_string("text/event-stream"));
    set_text(request.headers, "Last-Event-ID", follow->cursor);
    if (follow->query)
        json_object_update(request.query, follow->query);
    request.timeout_ms = fmin(REQUEST_TIMEOUT_MS, silence(follow));
    return request;
}

/* Reads a stream to its end. */
static enum pawl_err read_all(struct following *following, void *stream, struct pawl_error *error)
{
    struct follow *follow = following->follow;
    const struct ports *ports = &follow->client->ports;
    struct sse sse;
    sse_begin(&sse, follow->cursor);
    enum pawl_err result = PAWL_OK;
    for (bool more = true; more && result == PAWL_OK;) {
        struct buffer chunk = {0};
        result = ports->read(ports->at, stream, silence(follow), &chunk, error);
        more = result == PAWL_OK && chunk.size > 0 &&
               sse_feed(&sse, chunk.data, chunk.size, on_event, following);
        buffer_free(&chunk);
    }
    sse_end(&sse);
    return result;
}

/* A refusal that may be mended later counts as no answer, once its Retry-After is over. */
static enum pawl_err refused(const struct follow *follow, const struct response *response,
                             struct pawl_error *error)
{
    enum pawl_err result = response_error(response, error);
    if (!error->retryable)
        return result;
    const struct ports *ports = &follow->client->ports;
    ports->pause(ports->at, error->retry_after_s * 1000);
    char why[sizeof error->message];
    copy_text(why, sizeof why, error->message);
    return error_set(error, PAWL_ERR_NO_ANSWER, "The stream was refused: %s", why);
}

static enum pawl_err connect_once(struct following *following, struct pawl_error *error)
{
    struct follow *follow = following->follow;
    const struct ports *ports = &follow->client->ports;
    struct request request = stream_request(follow);
    struct response response = {0};
    void *stream = NULL;
    enum pawl_err result = ports->open(ports->at, &request, &stream, &response, error);
    request_free(&request);
    if (result != PAWL_OK)
        return result;
    if (response.status != 200) {
        result = refused(follow, &response, error);
    } else {
        result = read_all(following, stream, error);
        ports->close(ports->at, stream);
    }
    response_free(&response);
    return result;
}

/* Whether a run whose stream has ended is over; the server may just be stopping. */
static enum pawl_err is_over(const struct follow *follow, bool *ret_over, struct pawl_error *error)
{
    *ret_over = false;
    if (!follow->run_id)
        return PAWL_OK;
    json_t *run = NULL;
    enum pawl_err result = pawl_call(follow->client, "getRun",
                                     json_pack("{s:s}", "run_id", follow->run_id), &run, error);
    if (result == PAWL_OK)
        *ret_over = run_is_over(run);
    json_decref(run);
    return result == PAWL_ERR_NO_ANSWER ? PAWL_OK : result;
}

/* Whether there is time for another connection, after this failure or none. */
static enum pawl_err check_time(struct following *following, enum pawl_err failure,
                                struct pawl_error *error)
{
    const struct follow *follow = following->follow;
    double now_ms = now_of(follow), patience_ms = follow->client->retry.deadline_ms;
    if (follow->deadline_ms > 0 && now_ms >= follow->deadline_ms)
        return error_set(error, PAWL_ERR_WAIT_TIMEOUT, "The time to wait is over");
    if (failure == PAWL_OK)
        return PAWL_OK;
    if (following->failing_since_ms <= 0)
        following->failing_since_ms = fmax(now_ms, 1e-9);
    return patience_ms > 0 && now_ms - following->failing_since_ms > patience_ms ? failure
                                                                                 : PAWL_OK;
}

static enum pawl_err follow_all(struct following *following, struct pawl_error *error)
{
    const struct ports *ports = &following->follow->client->ports;
    for (;;) {
        bool over = false;
        enum pawl_err result = connect_once(following, error), failure = result;
        if (following->enough)
            return PAWL_OK;
        if (result == PAWL_OK)
            result = is_over(following->follow, &over, error);
        if (over || (result != PAWL_OK && result != PAWL_ERR_NO_ANSWER))
            return result;
        result = check_time(following, failure, error);
        if (result != PAWL_OK)
            return result;
        ports->pause(ports->at, backoff_next(&following->backoff, ports->random, ports->at));
    }
}

enum pawl_err follow_run(struct follow *follow, struct pawl_error *error)
{
    struct pawl_error own = {0};
    struct following following = {.follow = follow, .backoff = backoff_begin(&reconnect)};
    enum pawl_err result = follow->path ? follow_all(&following, &own) : error_no_memory(&own);
    if (result != PAWL_OK)
        error_copy(error, &own);
    pawl_error_clear(&own);
    free(follow->path);
    free(follow->cursor);
    json_decref(follow->query);
    return result;
}
