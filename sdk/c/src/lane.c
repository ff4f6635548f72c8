#include "lane.h"

#include <math.h>
#include <stdlib.h>

#include "error.h"
#include "transport.h"
#include "worker.h"

#define RELEASE_TIMEOUT_MS 30000
#define POLL_TIMEOUT_MS 15000 /* beyond the wait that it asks for */
static const struct pawl_retry poll_rule = {PAWL_JITTER_FULL, 200, 5000, 2, 0, 0};
static const struct pawl_retry report_rule = {PAWL_JITTER_FULL, 200, 10000, 2, 0, 0};

static const struct pawl_retry *rule_of(const struct lane *lane)
{
    return lane->kind == LANE_POLL ? &poll_rule : &report_rule;
}

void lane_begin(struct lane *lane, struct pawl_worker *worker, enum lane_kind kind)
{
    *lane = (struct lane){.worker = worker, .kind = kind, .abort = abort_new()};
    lane->backoff = backoff_begin(rule_of(lane));
}

void lane_end(struct lane *lane)
{
    while (lane->releases) {
        struct held *held = lane->releases;
        lane->releases = held->next_release;
        held_drop(held);
    }
    if (lane->beating)
        held_drop(lane->beating);
    json_decref(lane->report);
    json_decref(lane->results);
    abort_free(lane->abort);
    *lane = (struct lane){0};
}

static double now_of(const struct lane *lane)
{
    const struct ports *ports = &lane->worker->client->ports;
    return ports->now_ms(ports->at);
}

/* --- what it wants; the lock is held --- */

static struct lane_wish wait_for(const struct lane *lane, double until_ms)
{
    return (struct lane_wish){
        .kind = LANE_WAIT, .version = lane->worker->state.version, .until_ms = until_ms};
}

static struct lane_wish send_job(struct lane *lane, struct held *held, const char *verb,
                                 enum lane_sent sent)
{
    json_t *body = json_pack("{s:s}", "lease_token", held->token);
    if (sent == SENT_BEAT && held->progress)
        json_object_set(body, "progress", held->progress);
    lane->sent = sent;
    return (struct lane_wish){.kind = LANE_SEND,
                              .abort = lane->abort,
                              .request =
                                  job_request(lane->worker->client, held->job_id, verb, body)};
}

static struct lane_wish send_release(struct lane *lane)
{
    struct lane_wish wish = send_job(lane, lane->releases, "release", SENT_RELEASE);
    wish.request.timeout_ms = RELEASE_TIMEOUT_MS;
    return wish;
}

static struct lane_wish next_poll(struct lane *lane)
{
    struct worker_state *state = &lane->worker->state;
    if (lane->releases)
        return send_release(lane);
    if (lane->settles) {
        lane->settles = false;
        state_end_poll(state);
    }
    if (state->stopping)
        return (struct lane_wish){.kind = LANE_END};
    if (now_of(lane) < lane->pause_until_ms)
        return wait_for(lane, lane->pause_until_ms);
    json_t *body = state_begin_poll(state);
    if (!body)
        return wait_for(lane, 0);
    lane->sent = SENT_CLAIM;
    struct lane_wish wish = {.kind = LANE_SEND,
                             .abort = lane->worker->claim_abort,
                             .request =
                                 client_request(lane->worker->client, "POST",
                                                path_of("/jobs/claim", (const char *)NULL), body)};
    wish.request.timeout_ms = POLL_TIMEOUT_MS + (double)state->wait_ms;
    return wish;
}

static struct lane_wish next_report(struct lane *lane)
{
    struct worker_state *state = &lane->worker->state;
    if (lane->releases)
        return send_release(lane);
    if (lane->results) {
        state_reported(state, lane->results);
        json_decref(lane->results);
        lane->results = NULL;
    }
    if (!lane->report && state_done(state))
        return (struct lane_wish){.kind = LANE_END};
    if (lane->report && now_of(lane) < lane->pause_until_ms)
        return wait_for(lane, lane->pause_until_ms);
    if (!lane->report)
        lane->report = state_begin_report(state);
    if (!lane->report)
        return wait_for(lane, 0);
    lane->sent = SENT_REPORT;
    char *path = path_of("/jobs:complete", (const char *)NULL);
    return (struct lane_wish){
        .kind = LANE_SEND,
        .abort = lane->abort,
        .request = client_request(lane->worker->client, "POST", path, json_incref(lane->report))};
}

static struct lane_wish next_beat(struct lane *lane)
{
    struct worker_state *state = &lane->worker->state;
    if (state_done(state))
        return (struct lane_wish){.kind = LANE_END};
    struct held *due = state_due(state, now_of(lane));
    if (!due)
        return wait_for(lane, state_next_beat(state));
    lane->beating = held_share(due);
    struct lane_wish wish = send_job(lane, due, "heartbeat", SENT_BEAT);
    /* One that gets no answer is given up soon: the other jobs need theirs. */
    wish.request.timeout_ms = fmax(1000, (double)state->lease_ms / 3);
    return wish;
}

struct lane_wish lane_next(struct lane *lane)
{
    struct lane_wish wish;
    worker_lock(lane->worker);
    if (lane->worker->state.abandoned)
        wish = (struct lane_wish){.kind = LANE_END};
    else if (lane->kind == LANE_POLL)
        wish = next_poll(lane);
    else
        wish = lane->kind == LANE_REPORT ? next_report(lane) : next_beat(lane);
    worker_unlock(lane->worker);
    return wish;
}

/* --- what it gets --- */

static void pause_lane(struct lane *lane, const struct pawl_error *error)
{
    const struct ports *ports = &lane->worker->client->ports;
    double pause_ms =
        error->retry_after_s * 1000 + backoff_next(&lane->backoff, ports->random, ports->at);
    lane->pause_until_ms = now_of(lane) + pause_ms;
}

/* Holds the jobs of an answer and lets them begin; a stopping worker gives them back. */
static void take_jobs(struct lane *lane, const json_t *jobs)
{
    struct pawl_worker *worker = lane->worker;
    double now_ms = now_of(lane);
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        worker_lock(worker);
        struct held *held = state_take(&worker->state, job, now_ms);
        bool stopping = worker->state.stopping;
        if (held && stopping) {
            held->next_release = lane->releases;
            lane->releases = held;
        }
        worker_unlock(worker);
        if (held && !stopping)
            worker->ports.spawn(worker->ports.at, held);
    }
}

static void answer_claim(struct lane *lane, const json_t *answer, const struct pawl_error *error)
{
    struct pawl_worker *worker = lane->worker;
    lane->settles = true;
    if (answer) {
        lane->backoff = backoff_begin(&poll_rule);
        take_jobs(lane, json_object_get(answer, "jobs"));
        return;
    }
    worker_lock(worker);
    bool stopping = worker->state.stopping;
    if (!error->retryable)
        worker_fail(worker, error);
    worker_unlock(worker);
    if (error->retryable && !stopping) {
        pause_lane(lane, error);
        worker_log(worker, "No jobs: %s %s; trying again soon", error->code, error->message);
    }
}

static void answer_report(struct lane *lane, const json_t *answer, const struct pawl_error *error)
{
    if (!answer && error->retryable) {
        pause_lane(lane, error);
        return;
    }
    json_decref(lane->report);
    lane->report = NULL;
    lane->backoff = backoff_begin(&report_rule);
    if (answer) {
        take_jobs(lane, json_object_get(answer, "jobs"));
        lane->results = json_incref(json_object_get(answer, "results"));
        lane->results = lane->results ? lane->results : json_array();
        return;
    }
    worker_log(lane->worker, "A report was refused: %s %s", error->code, error->message);
    worker_lock(lane->worker);
    state_report_refused(&lane->worker->state, error->code, error->message);
    worker_unlock(lane->worker);
}

static void answer_release(struct lane *lane, const json_t *answer, const struct pawl_error *error)
{
    struct held *held = lane->releases;
    if (!answer)
        worker_log(lane->worker, "Job %s was not released: %s %s", held->job_id, error->code,
                   error->message);
    lane->releases = held->next_release;
    worker_lock(lane->worker);
    state_finish(&lane->worker->state, held, NULL);
    held_drop(held);
    worker_unlock(lane->worker);
}

static void answer_beat(struct lane *lane, const json_t *answer, const struct pawl_error *error)
{
    struct pawl_worker *worker = lane->worker;
    struct held *held = lane->beating;
    lane->beating = NULL;
    bool lost = json_is_true(json_object_get(answer, "cancel_requested"));
    if (!answer)
        lost = error->kind == PAWL_ERR_LEASE_LOST || error->kind == PAWL_ERR_NOT_FOUND;
    worker_lock(worker);
    bool running = held->running;
    if (answer)
        state_beaten(&worker->state, held, now_of(lane));
    else if (!lost)
        state_not_beaten(&worker->state, held, now_of(lane));
    if (lost && held->in_state)
        state_lose(&worker->state, held);
    worker_unlock(worker);
    if (lost && running)
        worker->ports.cancelled(worker->ports.at, held);
    worker_lock(worker);
    held_drop(held);
    worker_unlock(worker);
}

void lane_answer(struct lane *lane, const struct response *response, const struct pawl_error *error)
{
    static void (*const answers[])(struct lane *, const json_t *,
                                   const struct pawl_error *) = {[SENT_CLAIM] = answer_claim,
                                                                 [SENT_REPORT] = answer_report,
                                                                 [SENT_RELEASE] = answer_release,
                                                                 [SENT_BEAT] = answer_beat};
    struct pawl_error own = {0};
    json_t *answer = NULL;
    enum lane_sent sent = lane->sent;
    if (!response)
        error_copy(&own, error);
    else if (response->status >= 400)
        response_error(response, &own);
    else if (response_json(response, &answer, &own) == PAWL_OK && !json_is_object(answer))
        error_set(&own, PAWL_ERR_NO_ANSWER, "The answer is not an object, so not from pawl");
    if (!json_is_object(answer)) {
        json_decref(answer);
        answer = NULL;
    }
    lane->sent = SENT_NOTHING;
    answers[sent](lane, answer, &own);
    json_decref(answer);
    pawl_error_clear(&own);
}
