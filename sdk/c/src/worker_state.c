#include "worker_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util.h"

#define ITEMS_MAX 100
#define REPORT_BYTES_MAX (768 * 1024) /* the server takes bodies of up to 1 MiB */
#define BEAT_RETRY_MS_MAX 1000.0

bool state_init(struct worker_state *state, const char *worker_id, json_t *queues, int concurrency,
                int64_t lease_ms, int64_t wait_ms)
{
    *state = (struct worker_state){.worker_id = format("%s", worker_id),
                                   .queues = queues,
                                   .concurrency = concurrency,
                                   .lease_ms = lease_ms,
                                   .wait_ms = wait_ms,
                                   .results = json_array(),
                                   .reporting = json_array(),
                                   .alone = json_object()};
    pthread_mutex_init(&state->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&state->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return state->worker_id && state->queues && state->results && state->reporting && state->alone;
}

struct held *held_share(struct held *held)
{
    held->users++;
    return held;
}

void held_drop(struct held *held)
{
    if (--held->users > 0)
        return;
    json_decref(held->job);
    json_decref(held->progress);
    free(held);
}

static void remove_held(struct worker_state *state, struct held *held)
{
    for (struct held **at = &state->held; *at; at = &(*at)->next) {
        if (*at != held)
            continue;
        *at = held->next;
        held->next = NULL;
        held->in_state = false;
        held_drop(held);
        return;
    }
}

static void remove_all(struct worker_state *state)
{
    while (state->held)
        remove_held(state, state->held);
    json_array_clear(state->results);
    json_array_clear(state->reporting);
}

void state_end(struct worker_state *state)
{
    remove_all(state);
    json_decref(state->queues);
    json_decref(state->results);
    json_decref(state->reporting);
    json_decref(state->alone);
    free(state->worker_id);
    pthread_cond_destroy(&state->changed);
    pthread_mutex_destroy(&state->lock);
}

static struct held *find_held(const struct worker_state *state, const char *token)
{
    for (struct held *held = state->held; held; held = held->next)
        if (strcmp(held->token, token) == 0)
            return held;
    return NULL;
}

static void forget(struct worker_state *state, const char *token)
{
    struct held *held = find_held(state, token);
    if (held)
        remove_held(state, held);
}

void state_touch(struct worker_state *state)
{
    state->version++;
    pthread_cond_broadcast(&state->changed);
}

int state_free_slots(const struct worker_state *state)
{
    int slots = state->concurrency;
    for (const struct held *held = state->held; held; held = held->next)
        slots -= held->running;
    return slots;
}

bool state_done(const struct worker_state *state)
{
    return state->stopping && !state->held && json_array_size(state->results) == 0 &&
           json_array_size(state->reporting) == 0 && !state->polling;
}

void state_stop(struct worker_state *state)
{
    state->stopping = true;
    state_touch(state);
}

void state_abandon(struct worker_state *state)
{
    remove_all(state);
    state->polling = false;
    state->abandoned = true;
    state_touch(state);
}

/* --- claims --- */

static json_t *claim(const struct worker_state *state)
{
    int slots = state_free_slots(state);
    return json_pack("{s:s, s:O, s:i, s:I}", "worker_id", state->worker_id, "queues", state->queues,
                     "max", slots < ITEMS_MAX ? slots : ITEMS_MAX, "lease_ms",
                     (json_int_t)state->lease_ms);
}

json_t *state_begin_poll(struct worker_state *state)
{
    bool reports = json_array_size(state->results) > 0 || json_array_size(state->reporting) > 0;
    if (state->stopping || state->polling || reports || state_free_slots(state) <= 0)
        return NULL;
    json_t *body = claim(state);
    json_object_set_new(body, "wait_ms", json_integer(state->wait_ms));
    state->polling = body != NULL;
    return body;
}

void state_end_poll(struct worker_state *state)
{
    state->polling = false;
    state_touch(state);
}

struct held *state_take(struct worker_state *state, json_t *job, double now_ms)
{
    const char *job_id = json_string_value(json_object_get(job, "job_id"));
    const char *token = json_string_value(json_object_get(job, "lease_token"));
    struct held *held = job_id && token ? calloc(1, sizeof *held) : NULL;
    if (!held)
        return NULL;
    *held = (struct held){.next = state->held,
                          .users = 2,
                          .job = json_incref(job),
                          .job_id = job_id,
                          .token = token,
                          .beat_at_ms = now_ms + (double)state->lease_ms / 3,
                          .in_state = true,
                          .running = true};
    state->held = held;
    state_touch(state);
    return held;
}

/* --- results --- */

void state_finish(struct worker_state *state, struct held *held, json_t *result)
{
    held->running = false;
    if (!result || held->cancelled || !held->in_state) {
        remove_held(state, held);
    } else {
        set_text(result, "job_id", held->job_id);
        set_text(result, "lease_token", held->token);
        json_array_append(state->results, result);
    }
    json_decref(result);
    state_touch(state);
}

static bool is_alone(const struct worker_state *state, const json_t *item)
{
    return json_object_get(state->alone, member_text(item, "lease_token")) != NULL;
}

/* How many of the results that wait fit into one report. */
static size_t report_size(const struct worker_state *state)
{
    size_t bytes = 0, count = 0, i;
    json_t *item;
    json_array_foreach (state->results, i, item) {
        bytes += json_dumpb(item, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
        if (count == ITEMS_MAX || (count && (bytes > REPORT_BYTES_MAX || is_alone(state, item))))
            break;
        count++;
        if (is_alone(state, item))
            break;
    }
    return count;
}

json_t *state_begin_report(struct worker_state *state)
{
    if (json_array_size(state->reporting) > 0 || json_array_size(state->results) == 0)
        return NULL;
    for (size_t left = report_size(state); left > 0; left--) {
        json_array_append(state->reporting, json_array_get(state->results, 0));
        json_array_remove(state->results, 0);
    }
    json_t *body = json_pack("{s:o}", "items", json_copy(state->reporting));
    if (!state->stopping && !state->polling && state_free_slots(state) > 0)
        json_object_set_new(body, "claim", claim(state));
    return body;
}

/* A result that the server does not take becomes a failure; a failure that it does not take is
 * dropped. */
static void refuse(struct worker_state *state, const json_t *item, const char *code,
                   const char *detail)
{
    if (json_object_get(item, "error")) {
        forget(state, member_text(item, "lease_token"));
        return;
    }
    json_t *failure = json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:b}}", "job_id", member_text(item, "job_id"), "lease_token",
        member_text(item, "lease_token"), "error", "code", code, "message", detail, "retryable", 0);
    json_array_insert_new(state->results, 0, failure);
}

static bool is_gone(const char *code)
{
    return strcmp(code, "LEASE_LOST") == 0 || strcmp(code, "JOB_NOT_FOUND") == 0;
}

/* What was being reported; the caller owns it. */
static json_t *end_report(struct worker_state *state)
{
    json_t *items = json_copy(state->reporting);
    json_array_clear(state->reporting);
    return items;
}

void state_reported(struct worker_state *state, const json_t *results)
{
    json_t *items = end_report(state), *item;
    size_t i;
    json_array_foreach (items, i, item) {
        const json_t *result = json_array_get(results, i);
        const char *code = member_text(result, "code");
        json_object_del(state->alone, member_text(item, "lease_token"));
        if (strcmp(member_text(result, "status"), "refused") == 0 && !is_gone(code))
            refuse(state, item, code, member_text(result, "detail"));
        else
            forget(state, member_text(item, "lease_token"));
    }
    json_decref(items);
    state_touch(state);
}

void state_report_refused(struct worker_state *state, const char *code, const char *detail)
{
    json_t *items = end_report(state), *item;
    size_t i;
    if (json_array_size(items) == 1) {
        refuse(state, json_array_get(items, 0), code, detail);
    } else {
        json_array_foreach (items, i, item)
            json_object_set_new(state->alone, member_text(item, "lease_token"), json_true());
        json_array_extend(items, state->results);
        json_array_clear(state->results);
        json_array_extend(state->results, items);
    }
    json_decref(items);
    state_touch(state);
}

/* --- heartbeats --- */

static bool is_reporting(const struct worker_state *state, const struct held *held)
{
    size_t i;
    json_t *item;
    json_array_foreach (state->reporting, i, item)
        if (strcmp(member_text(item, "lease_token"), held->token) == 0)
            return true;
    return false;
}

struct held *state_due(const struct worker_state *state, double now_ms)
{
    for (struct held *held = state->held; held; held = held->next)
        if (held->beat_at_ms <= now_ms && !held->cancelled && !is_reporting(state, held))
            return held;
    return NULL;
}

double state_next_beat(const struct worker_state *state)
{
    double next_ms = 0;
    for (const struct held *held = state->held; held; held = held->next)
        if (!held->cancelled && !is_reporting(state, held) &&
            (next_ms <= 0 || held->beat_at_ms < next_ms))
            next_ms = held->beat_at_ms;
    return next_ms;
}

void state_beaten(struct worker_state *state, struct held *held, double now_ms)
{
    held->beat_at_ms = now_ms + (double)state->lease_ms / 3;
}

void state_not_beaten(struct worker_state *state, struct held *held, double now_ms)
{
    held->beat_at_ms = now_ms + fmin(BEAT_RETRY_MS_MAX, (double)state->lease_ms / 10);
}

void state_lose(struct worker_state *state, struct held *held)
{
    held->cancelled = true;
    for (size_t i = json_array_size(state->results); i-- > 0;)
        if (strcmp(member_text(json_array_get(state->results, i), "lease_token"), held->token) == 0)
            json_array_remove(state->results, i);
    if (!held->running)
        remove_held(state, held);
    state_touch(state);
}
