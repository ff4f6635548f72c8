/* The life of one job in a worker. */
#include "cli/worker/worker_slot.h"

#include "base/env.h"
#include "base/limits.h"
#include "cli/worker/job_env.h"

#include <errno.h>
#include <signal.h>

enum {
    HEARTBEAT_RETRY_MS = 1000, /* after a heartbeat without an answer */
    HEARTBEAT_TIMEOUT_MS_MIN = 1000,
    EXPIRY_MARGIN_MS = 20, /* a heartbeat that checks for the end of a lease must not be early */
    REPORT_MS_MAX = 10 * 60 * 1000, /* past the lease's end, for a server that is down */
};

static void print_end(const struct worker_slot *slot, const char *status);

/* --- open and close --- */

bool worker_slot_open(struct worker_slot *slot, struct worker_pool *pool)
{
    *slot = (struct worker_slot){.pool = pool, .next_at = SLOT_NEVER, .kill_at = SLOT_NEVER};
    job_process_init(&slot->process, JOB_OUTPUT_MAX);
    reply_init(&slot->reply);
    buf_init(&slot->path, HTTP_HEAD_MAX);
    buf_init(&slot->token, HTTP_HEAD_MAX);
    job_result_init(&slot->result);
    return client_open(&slot->client, &pool->session->setup);
}

void worker_slot_close(struct worker_slot *slot)
{
    if (slot->call != CALL_NONE)
        client_cancel(&slot->client, slot->pool->multi);
    if (slot->process.pid > 0)
        job_process_signal(&slot->process, SIGKILL);
    while (slot->process.pid > 0 && !job_process_pump(&slot->process))
        client_pause(1);
    json_decref(slot->job);
    job_process_release(&slot->process);
    client_close(&slot->client);
    reply_release(&slot->reply);
    buf_release(&slot->path);
    buf_release(&slot->token);
    job_result_release(&slot->result);
}

bool worker_slot_is_free(const struct worker_slot *slot)
{
    return slot->state == SLOT_FREE && slot->call == CALL_NONE;
}

int64_t worker_slot_due(const struct worker_slot *slot)
{
    return slot->call == CALL_NONE ? MIN(slot->next_at, slot->kill_at) : slot->kill_at;
}

/* --- start --- */

static void make_free(struct worker_slot *slot)
{
    assert(slot->process.pid == 0);
    json_decref(slot->job);
    slot->job = NULL;
    slot->state = SLOT_FREE;
    slot->next_at = slot->kill_at = SLOT_NEVER;
}

static void release(struct worker_slot *slot, int64_t now)
{
    slot->state = SLOT_RELEASING;
    slot->next_at = now;
    slot->tries = 0;
}

/* If the command cannot start, the job is released, not failed. */
static void start_command(struct worker_slot *slot, int64_t now)
{
    struct job_env env;
    struct buf *input = job_process_input(&slot->process);
    job_env_make(&env, slot->job, buf_str(&slot->client.url), slot->pool->pass_api_key);
    json_put_plain(input, json_object_get(slot->job, "input"));
    buf_put_char(input, '\n');
    int failure = ENOMEM;
    if (env.vars != NULL && buf_ok(input))
        failure = job_process_start(&slot->process, slot->pool->session->opt.argv, env.vars);
    job_env_release(&env);
    slot->state = SLOT_RUNNING;
    if (failure == 0)
        return;
    slot->pool->start_failure = failure;
    release(slot, now);
}

/* A third of the lease after it was renewed, or just after lease_expires_at if that is sooner, as
 * it is when the step's time-out ends the lease. A wrong clock makes this heartbeat early or
 * useless, which does no harm. */
static int64_t next_heartbeat(const struct worker_slot *slot, const json_t *expires_at,
                              int64_t renewed)
{
    int64_t in = slot->pool->lease_ms / 3, expiry;
    if (json_is_string(expires_at) && time_parse(json_str(expires_at), &expiry)) {
        int64_t left = expiry - env_now_ms(&ENV_SYSTEM) + EXPIRY_MARGIN_MS;
        if (left > 0)
            in = MIN(in, left);
    }
    return renewed + in;
}

static void take(struct worker_slot *slot, json_t *job, int64_t now)
{
    assert(worker_slot_is_free(slot));
    struct json_out out = json_out_to(&slot->token);
    slot->job = json_incref(job);
    job_result_clear(&slot->result);
    slot->tries = 0;
    slot->lease_until = now + slot->pool->lease_ms;
    buf_clear(&slot->token);
    json_open(&out, NULL, '{');
    json_add_text(&out, "lease_token", json_str(json_object_get(job, "lease_token")));
    json_close(&out, '}');
}

void worker_slot_take(struct worker_slot *slot, json_t *job, bool late, int64_t now)
{
    take(slot, job, now);
    slot->next_at =
        late ? now : next_heartbeat(slot, json_object_get(job, "lease_expires_at"), now);
    slot->state = SLOT_CHECKING;
    if (!late)
        start_command(slot, now);
}

void worker_slot_return(struct worker_slot *slot, json_t *job, int64_t now)
{
    take(slot, job, now);
    release(slot, now);
}

/* --- end --- */

static void end_command(struct worker_slot *slot, enum slot_state after, int64_t now)
{
    assert(slot->state == SLOT_RUNNING);
    slot->state = SLOT_ENDING;
    slot->after = after;
    slot->kill_at = now + slot->pool->grace_ms;
    if (after == SLOT_FREE)
        slot->next_at = SLOT_NEVER;
    job_process_signal(&slot->process, SIGTERM);
}

static void command_ended(struct worker_slot *slot, int64_t now)
{
    enum slot_state next = slot->state == SLOT_ENDING ? slot->after : SLOT_REPORTING;
    assert(next == SLOT_FREE || next == SLOT_REPORTING || next == SLOT_RELEASING);
    slot->kill_at = SLOT_NEVER;
    if (next == SLOT_FREE) {
        make_free(slot);
    } else if (next == SLOT_RELEASING) {
        release(slot, now);
    } else {
        job_result_make(&slot->result, slot->job, &slot->process);
        slot->state = SLOT_REPORTING;
        slot->next_at = now;
        slot->tries = 0;
    }
}

/* The job is no longer ours: it is not reported. */
static void lose(struct worker_slot *slot, const char *why, int64_t now)
{
    assert(slot->state != SLOT_FREE);
    print_end(slot, why);
    switch (slot->state) {
    case SLOT_RUNNING:
        end_command(slot, SLOT_FREE, now);
        break;
    case SLOT_ENDING:
        slot->after = SLOT_FREE;
        slot->next_at = SLOT_NEVER;
        break;
    case SLOT_CHECKING:
    case SLOT_REPORTING:
    case SLOT_RELEASING:
        make_free(slot);
        break;
    case SLOT_FREE:
        break;
    }
}

void worker_slot_abort(struct worker_slot *slot, int64_t now)
{
    if (slot->state == SLOT_RUNNING)
        end_command(slot, SLOT_RELEASING, now);
    if (slot->state == SLOT_ENDING)
        slot->kill_at = now;
    if (slot->state == SLOT_CHECKING)
        release(slot, now);
}

void worker_slot_pump(struct worker_slot *slot, int64_t now)
{
    if (slot->process.pid == 0)
        return;
    if (job_process_pump(&slot->process))
        command_ended(slot, now);
    else if (slot->state == SLOT_RUNNING && slot->process.output_too_large)
        end_command(slot, SLOT_REPORTING, now);
}

/* --- requests --- */

static void call(struct worker_slot *slot, enum slot_call what, int64_t now)
{
    const char *verb = what == CALL_HEARTBEAT ? "/heartbeat"
                       : what == CALL_RELEASE ? "/release"
                       : slot->result.failed  ? "/fail"
                                              : "/complete";
    int64_t timeout_ms = slot->pool->session->setup.timeout_ms;
    buf_clear(&slot->path);
    buf_put(&slot->path, STR("/api/v1/jobs/"));
    buf_put_escaped(&slot->path, json_str(json_object_get(slot->job, "job_id")));
    buf_put(&slot->path, str_of(verb));
    if (what == CALL_HEARTBEAT) /* if it hangs, there must be time for another */
        timeout_ms =
            MIN(timeout_ms, MAX(slot->pool->lease_ms / 3, (int64_t)HEARTBEAT_TIMEOUT_MS_MIN));
    struct request req = {.method = "POST",
                          .path = buf_str(&slot->path),
                          .body = buf_str(what == CALL_RESULT ? &slot->result.body : &slot->token),
                          .timeout_ms = timeout_ms};
    slot->called_at = now;
    if (client_begin(&slot->client, slot->pool->multi, &req, &slot->reply))
        slot->call = what;
    else
        slot->next_at = now + worker_backoff_ms(slot->tries++);
}

void worker_slot_act(struct worker_slot *slot, int64_t now)
{
    if (now >= slot->kill_at) {
        assert(slot->state == SLOT_ENDING);
        job_process_signal(&slot->process, SIGKILL);
        slot->kill_at = SLOT_NEVER;
    }
    if (slot->call != CALL_NONE || now < slot->next_at)
        return;
    assert(slot->state != SLOT_FREE);
    switch (slot->state) {
    case SLOT_CHECKING:
    case SLOT_RUNNING:
    case SLOT_ENDING:
        call(slot, CALL_HEARTBEAT, now);
        break;
    case SLOT_REPORTING:
        call(slot, CALL_RESULT, now);
        break;
    case SLOT_RELEASING:
        call(slot, CALL_RELEASE, now);
        break;
    case SLOT_FREE:
        break;
    }
}

/* --- answers --- */

static void renew(struct worker_slot *slot, int64_t now)
{
    json_t *body = answer_json(&slot->reply);
    slot->tries = 0;
    slot->lease_until = slot->called_at + slot->pool->lease_ms;
    slot->next_at =
        next_heartbeat(slot, json_object_get(body, "lease_expires_at"), slot->called_at);
    if (json_is_true(json_object_get(body, "cancel_requested")))
        lose(slot, "cancelled", now);
    else if (slot->state == SLOT_CHECKING)
        start_command(slot, now);
    json_decref(body);
}

static void heartbeat_answered(struct worker_slot *slot, enum answer answer, int64_t now)
{
    bool wanted =
        slot->state == SLOT_CHECKING || slot->state == SLOT_RUNNING || slot->state == SLOT_ENDING;
    if (answer == ANSWER_LOST) {
        lose(slot, "lost", now);
    } else if (wanted && answer == ANSWER_TAKEN) {
        renew(slot, now);
    } else if (wanted) {
        if (answer == ANSWER_REFUSED)
            refusal_print(&slot->reply);
        slot->next_at = now + MIN((int64_t)HEARTBEAT_RETRY_MS, slot->pool->lease_ms / 3);
    }
}

/* When the server refuses the output, the job fails. Otherwise its lease would expire, and another
 * attempt would be refused again. */
static bool turn_into_failure(struct worker_slot *slot)
{
    long status = slot->reply.status;
    if (slot->result.failed || (status != 400 && status != 413 && status != 422))
        return false;
    json_t *problem = answer_json(&slot->reply);
    struct str detail = json_str(json_object_get(problem, "detail"));
    job_result_refuse_output(&slot->result, slot->job, detail);
    json_decref(problem);
    return true;
}

static void result_answered(struct worker_slot *slot, enum answer answer, int64_t now)
{
    if (answer == ANSWER_LOST) {
        lose(slot, "lost", now);
    } else if (answer == ANSWER_TAKEN) {
        json_t *body = answer_json(&slot->reply);
        json_t *status = json_object_get(body, "status");
        print_end(slot, json_is_string(status) ? json_string_value(status) : "reported");
        json_decref(body);
        make_free(slot);
    } else if (answer == ANSWER_LATER && now <= slot->lease_until + REPORT_MS_MAX) {
        slot->next_at = now + worker_backoff_ms(slot->tries++);
    } else {
        bool refused = answer == ANSWER_REFUSED;
        if (refused)
            refusal_print(&slot->reply);
        if (refused && turn_into_failure(slot)) {
            slot->next_at = now;
            return;
        }
        print_end(slot, refused ? "refused" : "not reported");
        make_free(slot);
    }
}

static void release_answered(struct worker_slot *slot, enum answer answer, int64_t now)
{
    if (answer == ANSWER_LATER && now <= slot->lease_until) {
        slot->next_at = now + worker_backoff_ms(slot->tries++);
        return;
    }
    print_end(slot, answer == ANSWER_TAKEN ? "released" : "lost");
    make_free(slot);
}

void worker_slot_answered(struct worker_slot *slot, enum cli_exit rc, int64_t now)
{
    enum slot_call what = slot->call;
    enum answer answer = worker_pool_judge(slot->pool, &slot->client, rc);
    assert(what != CALL_NONE);
    slot->call = CALL_NONE;
    if (slot->state == SLOT_FREE) /* its command ended while a heartbeat was in flight */
        return;
    switch (what) {
    case CALL_HEARTBEAT:
        heartbeat_answered(slot, answer, now);
        break;
    case CALL_RESULT:
        result_answered(slot, answer, now);
        break;
    case CALL_RELEASE:
        release_answered(slot, answer, now);
        break;
    case CALL_NONE:
        break;
    }
}

/* --- printing --- */

static const json_t *entity_of(const struct worker_slot *slot)
{
    return json_object_get(json_object_get(slot->job, "input"), "entity");
}

static json_t *line_of(const struct worker_slot *slot, const char *status)
{
    static const char *const SHOWN[] = {"job_id", "kind",    "run_id", "workflow_id",
                                        "step",   "handler", "attempt"};
    json_t *line = json_object();
    for (size_t i = 0; i < ARRAY_LEN(SHOWN); i++)
        (void)json_object_set(line, SHOWN[i], json_object_get(slot->job, SHOWN[i]));
    if (job_is_of_entity(slot->job))
        (void)json_object_set_new(line, "entity", json_deep_copy(entity_of(slot)));
    (void)json_object_set_new(line, "status", json_string(status));
    bool has_code = slot->result.code[0] != '\0';
    (void)json_object_set_new(line, "code",
                              has_code ? json_string(slot->result.code) : json_null());
    return line;
}

/* "ID  WORKFLOW  STEP  HANDLER  attempt N  ", or an entity's type and id. */
static void print_job(const struct worker_slot *slot)
{
    bool entity = job_is_of_entity(slot->job);
    const json_t *owner = entity ? entity_of(slot) : slot->job;
    const json_t *const words[] = {
        json_object_get(slot->job, "job_id"),
        json_object_get(owner, entity ? "type" : "workflow_id"),
        json_object_get(owner, entity ? "id" : "step"),
        json_object_get(slot->job, "handler"),
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        value_print(stdout, words[i]);
        fputs("  ", stdout);
    }
    fputs("attempt ", stdout);
    value_print(stdout, json_object_get(slot->job, "attempt"));
    fputs("  ", stdout);
}

/* Prints the line of a job that leaves this slot. */
static void print_end(const struct worker_slot *slot, const char *status)
{
    if (slot->pool->session->json) {
        json_t *line = line_of(slot, status);
        value_print(stdout, line);
        json_decref(line);
    } else {
        print_job(slot);
        printf("%s%s%s", status, slot->result.code[0] != '\0' ? "  " : "", slot->result.code);
    }
    fputc('\n', stdout);
    (void)fflush(stdout);
}
