/* What a hand does with its job. */
#include "cli/hand.h"

#include "base/env.h"
#include "base/limits.h"
#include "cli/job_env.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum {
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 5 * 1000,
    HEARTBEAT_RETRY_MS = 1000, /* after one that was not answered */
    HEARTBEAT_TIMEOUT_MS_MIN = 1000,
    EXPIRY_MARGIN_MS = 20, /* a heartbeat that is to find the lease ended must not come before */
    REPORT_PATIENCE_MS = 10 * 60 * 1000, /* past a lease's end: a server may be away that long */
    EXIT_DATA_ERROR = 65,                /* EX_DATAERR: the same input fails in the same way */
};

#define BYTES_ADVICE(fault) \
    "The command's output " fault ". Write bytes as text, for example with base64."

static bool is_of_entity(const struct hand *h);
static void make_result(struct hand *h);
static void make_failure(struct hand *h, const char *code, struct str message, bool retryable);
static void tell(const struct hand *h, const char *status);

/* --- opening and closing --- */

bool hand_open(struct hand *h, struct crew *crew)
{
    *h = (struct hand){.crew = crew, .next_at = HAND_NEVER, .kill_at = HAND_NEVER};
    child_init(&h->child, JOB_OUTPUT_MAX);
    reply_init(&h->reply);
    buf_init(&h->path, HTTP_HEAD_MAX);
    buf_init(&h->token, HTTP_HEAD_MAX);
    buf_init(&h->result, HTTP_BODY_MAX);
    return client_open(&h->client, &crew->session->setup);
}

void hand_close(struct hand *h)
{
    if (h->call != CALL_NONE)
        client_break_off(&h->client, h->crew->multi);
    if (h->child.pid > 0)
        child_signal(&h->child, SIGKILL);
    while (h->child.pid > 0 && !child_pump(&h->child))
        client_pause(1);
    json_decref(h->job);
    child_release(&h->child);
    client_close(&h->client);
    reply_release(&h->reply);
    buf_release(&h->path);
    buf_release(&h->token);
    buf_release(&h->result);
}

bool hand_is_free(const struct hand *h)
{
    return h->state == HAND_FREE && h->call == CALL_NONE;
}

int64_t hand_due(const struct hand *h)
{
    return h->call == CALL_NONE ? MIN(h->next_at, h->kill_at) : h->kill_at;
}

int64_t hand_backoff_ms(int tries)
{
    uint32_t dice = 0;
    env_random(&ENV_SYSTEM, &dice, sizeof(dice));
    int64_t bound = MIN((int64_t)BACKOFF_FIRST_MS << MIN(tries, 10), BACKOFF_MAX_MS);
    return bound / 2 + (int64_t)dice % (bound / 2 + 1);
}

/* --- beginning --- */

static void make_free(struct hand *h)
{
    assert(h->child.pid == 0);
    json_decref(h->job);
    h->job = NULL;
    h->state = HAND_FREE;
    h->next_at = h->kill_at = HAND_NEVER;
}

static void release(struct hand *h, int64_t now)
{
    h->state = HAND_RELEASING;
    h->next_at = now;
    h->tries = 0;
}

/* A command that cannot be started is not the job's fault. */
static void start_command(struct hand *h, int64_t now)
{
    struct job_env env;
    struct buf *input = child_input(&h->child);
    job_env_make(&env, h->job, buf_str(&h->client.url), h->crew->pass_api_key);
    json_put_plain(input, json_object_get(h->job, "input"));
    buf_put_char(input, '\n');
    int failure = ENOMEM;
    if (env.vars != NULL && buf_ok(input))
        failure = child_start(&h->child, h->crew->session->opt.command, env.vars);
    job_env_release(&env);
    h->state = HAND_RUNNING;
    if (failure == 0)
        return;
    h->crew->start_failure = failure;
    release(h, now);
}

/* A third of the lease from when it was renewed; or just past its end when that comes before, as
 * the end of a step's time-out does. Clocks that differ bring it too soon or not at all: no harm.
 */
static int64_t next_heartbeat(const struct hand *h, const json_t *expires_at, int64_t renewed)
{
    int64_t in = h->crew->lease_ms / 3, expiry;
    if (json_is_string(expires_at) && time_parse(json_str(expires_at), &expiry)) {
        int64_t left = expiry - env_now_ms(&ENV_SYSTEM) + EXPIRY_MARGIN_MS;
        if (left > 0)
            in = MIN(in, left);
    }
    return renewed + in;
}

static void take(struct hand *h, json_t *job, int64_t now)
{
    assert(hand_is_free(h));
    struct json_out out = json_out_to(&h->token);
    h->job = json_incref(job);
    h->code[0] = '\0';
    h->tries = 0;
    h->lease_until = now + h->crew->lease_ms;
    buf_clear(&h->token);
    json_open(&out, NULL, '{');
    json_add_text(&out, "lease_token", json_str(json_object_get(job, "lease_token")));
    json_close(&out, '}');
}

void hand_take(struct hand *h, json_t *job, bool late, int64_t now)
{
    take(h, job, now);
    h->next_at = late ? now : next_heartbeat(h, json_object_get(job, "lease_expires_at"), now);
    h->state = HAND_CHECKING;
    if (!late)
        start_command(h, now);
}

void hand_return(struct hand *h, json_t *job, int64_t now)
{
    take(h, job, now);
    release(h, now);
}

/* --- ending --- */

static void end_command(struct hand *h, enum hand_state after, int64_t now)
{
    assert(h->state == HAND_RUNNING);
    h->state = HAND_ENDING;
    h->after = after;
    h->kill_at = now + h->crew->grace_ms;
    if (after == HAND_FREE)
        h->next_at = HAND_NEVER;
    child_signal(&h->child, SIGTERM);
}

static void command_over(struct hand *h, int64_t now)
{
    enum hand_state next = h->state == HAND_ENDING ? h->after : HAND_REPORTING;
    assert(next == HAND_FREE || next == HAND_REPORTING || next == HAND_RELEASING);
    h->kill_at = HAND_NEVER;
    if (next == HAND_FREE) {
        make_free(h);
    } else if (next == HAND_RELEASING) {
        release(h, now);
    } else {
        make_result(h);
        h->state = HAND_REPORTING;
        h->next_at = now;
        h->tries = 0;
    }
}

/* The job is another's, or nobody's: nothing is said about it. */
static void lose(struct hand *h, const char *why, int64_t now)
{
    assert(h->state != HAND_FREE);
    tell(h, why);
    switch (h->state) {
    case HAND_RUNNING:
        end_command(h, HAND_FREE, now);
        break;
    case HAND_ENDING:
        h->after = HAND_FREE;
        h->next_at = HAND_NEVER;
        break;
    case HAND_CHECKING:
    case HAND_REPORTING:
    case HAND_RELEASING:
        make_free(h);
        break;
    case HAND_FREE:
        break;
    }
}

void hand_let_go(struct hand *h, int64_t now)
{
    if (h->state == HAND_RUNNING)
        end_command(h, HAND_RELEASING, now);
    if (h->state == HAND_ENDING)
        h->kill_at = now;
    if (h->state == HAND_CHECKING)
        release(h, now);
}

void hand_pump(struct hand *h, int64_t now)
{
    if (h->child.pid == 0)
        return;
    if (child_pump(&h->child))
        command_over(h, now);
    else if (h->state == HAND_RUNNING && h->child.output_too_large)
        end_command(h, HAND_REPORTING, now);
}

/* --- requests --- */

static void call(struct hand *h, enum hand_call what, int64_t now)
{
    const char *verb = what == CALL_HEARTBEAT ? "/heartbeat"
                       : what == CALL_RELEASE ? "/release"
                       : h->failed            ? "/fail"
                                              : "/complete";
    int64_t timeout_ms = h->crew->session->setup.timeout_ms;
    buf_clear(&h->path);
    buf_put(&h->path, STR("/api/v1/jobs/"));
    buf_put_escaped(&h->path, json_str(json_object_get(h->job, "job_id")));
    buf_put(&h->path, str_of(verb));
    if (what == CALL_HEARTBEAT) /* one that hangs must leave time for another */
        timeout_ms = MIN(timeout_ms, MAX(h->crew->lease_ms / 3, (int64_t)HEARTBEAT_TIMEOUT_MS_MIN));
    struct request req = {.method = "POST",
                          .path = buf_str(&h->path),
                          .body = buf_str(what == CALL_RESULT ? &h->result : &h->token),
                          .timeout_ms = timeout_ms};
    h->called_at = now;
    if (client_begin(&h->client, h->crew->multi, &req, &h->reply))
        h->call = what;
    else
        h->next_at = now + hand_backoff_ms(h->tries++);
}

void hand_act(struct hand *h, int64_t now)
{
    if (now >= h->kill_at) {
        assert(h->state == HAND_ENDING);
        child_signal(&h->child, SIGKILL);
        h->kill_at = HAND_NEVER;
    }
    if (h->call != CALL_NONE || now < h->next_at)
        return;
    assert(h->state != HAND_FREE);
    switch (h->state) {
    case HAND_CHECKING:
    case HAND_RUNNING:
    case HAND_ENDING:
        call(h, CALL_HEARTBEAT, now);
        break;
    case HAND_REPORTING:
        call(h, CALL_RESULT, now);
        break;
    case HAND_RELEASING:
        call(h, CALL_RELEASE, now);
        break;
    case HAND_FREE:
        break;
    }
}

/* --- answers --- */

json_t *answer_json(const struct reply *reply)
{
    return reply->body.len > 0 ? json_loadb(reply->body.ptr, reply->body.len, 0, NULL) : NULL;
}

static enum answer judge(enum cli_exit rc, const struct reply *reply)
{
    if (rc != CLI_DONE || reply->status >= 500 || reply->status == 429)
        return ANSWER_LATER;
    if (reply->status < 300)
        return ANSWER_TAKEN;
    if (reply->status == 404)
        return ANSWER_LOST;
    if (reply->status != 409)
        return ANSWER_REFUSED;
    json_t *problem = answer_json(reply);
    bool lost = str_is(json_str(json_object_get(problem, "code")), "LEASE_LOST");
    json_decref(problem);
    return lost ? ANSWER_LOST : ANSWER_LATER;
}

enum answer crew_judge(struct crew *crew, const struct client *c, enum cli_exit rc)
{
    enum answer answer = judge(rc, c->reply);
    bool away = answer == ANSWER_LATER;
    if (away && !crew->away && rc == CLI_DONE)
        refusal_print(c->reply);
    else if (away && !crew->away)
        fprintf(stderr, "pawl: %.*s: %s; trying again\n", STR_ARG(buf_str(&c->url)), c->error);
    else if (!away && crew->away)
        fprintf(stderr, "pawl: %.*s: answers again\n", STR_ARG(buf_str(&c->url)));
    crew->away = away;
    return answer;
}

static void renew(struct hand *h, int64_t now)
{
    json_t *body = answer_json(&h->reply);
    h->tries = 0;
    h->lease_until = h->called_at + h->crew->lease_ms;
    h->next_at = next_heartbeat(h, json_object_get(body, "lease_expires_at"), h->called_at);
    if (json_is_true(json_object_get(body, "cancel_requested")))
        lose(h, "cancelled", now);
    else if (h->state == HAND_CHECKING)
        start_command(h, now);
    json_decref(body);
}

static void heartbeat_answered(struct hand *h, enum answer answer, int64_t now)
{
    bool wanted = h->state == HAND_CHECKING || h->state == HAND_RUNNING || h->state == HAND_ENDING;
    if (answer == ANSWER_LOST) {
        lose(h, "lost", now);
    } else if (wanted && answer == ANSWER_TAKEN) {
        renew(h, now);
    } else if (wanted) {
        if (answer == ANSWER_REFUSED)
            refusal_print(&h->reply);
        h->next_at = now + MIN((int64_t)HEARTBEAT_RETRY_MS, h->crew->lease_ms / 3);
    }
}

/* An output that the server does not take fails the job: otherwise its lease would end, it would be
 * worked on again, and be refused again. */
static bool turn_into_failure(struct hand *h)
{
    long status = h->reply.status;
    if (h->failed || (status != 400 && status != 413 && status != 422))
        return false;
    json_t *problem = answer_json(&h->reply);
    struct str detail = json_str(json_object_get(problem, "detail"));
    /* An entity waits for its handler to be mended; the steps behind a task wait for nobody. */
    make_failure(h, "OUTPUT_REFUSED", detail.ptr != NULL ? detail : STR(""), is_of_entity(h));
    json_decref(problem);
    return true;
}

static void result_answered(struct hand *h, enum answer answer, int64_t now)
{
    if (answer == ANSWER_LOST) {
        lose(h, "lost", now);
    } else if (answer == ANSWER_TAKEN) {
        json_t *body = answer_json(&h->reply);
        json_t *status = json_object_get(body, "status");
        tell(h, json_is_string(status) ? json_string_value(status) : "reported");
        json_decref(body);
        make_free(h);
    } else if (answer == ANSWER_LATER && now <= h->lease_until + REPORT_PATIENCE_MS) {
        h->next_at = now + hand_backoff_ms(h->tries++);
    } else {
        bool refused = answer == ANSWER_REFUSED;
        if (refused)
            refusal_print(&h->reply);
        if (refused && turn_into_failure(h)) {
            h->next_at = now;
            return;
        }
        tell(h, refused ? "refused" : "not reported");
        make_free(h);
    }
}

static void release_answered(struct hand *h, enum answer answer, int64_t now)
{
    if (answer == ANSWER_LATER && now <= h->lease_until) {
        h->next_at = now + hand_backoff_ms(h->tries++);
        return;
    }
    tell(h, answer == ANSWER_TAKEN ? "released" : "lost");
    make_free(h);
}

void hand_answered(struct hand *h, enum cli_exit rc, int64_t now)
{
    enum hand_call what = h->call;
    enum answer answer = crew_judge(h->crew, &h->client, rc);
    assert(what != CALL_NONE);
    h->call = CALL_NONE;
    if (h->state == HAND_FREE) /* its command ended while a last heartbeat was under way */
        return;
    switch (what) {
    case CALL_HEARTBEAT:
        heartbeat_answered(h, answer, now);
        break;
    case CALL_RESULT:
        result_answered(h, answer, now);
        break;
    case CALL_RELEASE:
        release_answered(h, answer, now);
        break;
    case CALL_NONE:
        break;
    }
}

/* --- results --- */

static void make_failure(struct hand *h, const char *code, struct str message, bool retryable)
{
    struct json_out out = json_out_to(&h->result);
    h->failed = true;
    (void)snprintf(h->code, sizeof(h->code), "%s", code);
    buf_clear(&h->result);
    json_open(&out, NULL, '{');
    json_add_text(&out, "lease_token", json_str(json_object_get(h->job, "lease_token")));
    json_open(&out, "error", '{');
    json_add_text(&out, "code", str_of(code));
    json_add_text(&out, "message", message);
    json_add_bool(&out, "retryable", retryable);
    json_close(&out, '}');
    json_close(&out, '}');
}

static void make_too_large(struct hand *h)
{
    static_assert(JOB_OUTPUT_MAX == 512 * KIB, "as the message and the help say");
    make_failure(h, "OUTPUT_TOO_LARGE", STR("the command wrote more than 512 KiB of output"),
                 false);
}

static bool is_json(struct str text, struct problem *p)
{
    json_t *value = NULL;
    bool is = json_parse(text, p, &value) == ERR_OK;
    json_decref(value);
    return is;
}

/* JSON to a reader that looks over faults such as two members of one name. */
static bool is_faulty_json(struct str text)
{
    json_t *value = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool is = value != NULL;
    json_decref(value);
    return is;
}

static bool is_blank(struct str text)
{
    static const char BLANKS[] = " \t\r\n";
    size_t i = 0;
    while (i < text.len && memchr(BLANKS, text.ptr[i], sizeof(BLANKS) - 1) != NULL)
        i++;
    return i == text.len;
}

static void add_output(struct json_out *out, const struct hand *h, bool json)
{
    struct str output = buf_str(&h->child.output);
    if (is_blank(output)) {
        json_add_null(out, "output");
    } else if (json) {
        json_add_raw(out, "output", output);
    } else {
        json_open(out, "output", '{');
        json_add_text(out, "text", child_stdout_text(&h->child));
        json_close(out, '}');
    }
}

static void make_completion(struct hand *h, bool json)
{
    struct json_out out = json_out_to(&h->result);
    h->failed = false;
    buf_clear(&h->result);
    json_open(&out, NULL, '{');
    json_add_text(&out, "lease_token", json_str(json_object_get(h->job, "lease_token")));
    size_t start = h->result.len;
    add_output(&out, h, json);
    size_t len = h->result.len - start;
    json_close(&out, '}');
    if (!buf_ok(&h->result) || len > JOB_OUTPUT_MAX) /* as text, with its escapes */
        make_too_large(h);
}

/* The code for output that cannot be handed in as the command wrote it, with the reason in p; NULL
 * for all other. */
static const char *output_fault(struct str output, bool json, struct problem *p)
{
    if (json || output.len == 0)
        return NULL;
    if (memchr(output.ptr, '\0', output.len) != NULL) {
        (void)problem_set(p, ERR_JSON_INVALID, BYTES_ADVICE("contains a NUL byte"));
        return "OUTPUT_INVALID";
    }
    if (!str_is_utf8(output)) {
        (void)problem_set(p, ERR_JSON_INVALID, BYTES_ADVICE("is not UTF-8"));
        return "OUTPUT_NOT_UTF8";
    }
    return is_faulty_json(output) ? "OUTPUT_INVALID" : NULL;
}

static void make_output(struct hand *h)
{
    struct str output = buf_str(&h->child.output);
    struct problem problem;
    problem_init(&problem);
    bool json = is_json(output, &problem);
    const char *fault = output_fault(output, json, &problem);
    if (fault == NULL)
        make_completion(h, json);
    else /* an entity waits for its handler to be mended, as with OUTPUT_REFUSED */
        make_failure(h, fault, str_of(problem.detail), is_of_entity(h));
    problem_release(&problem);
}

static void make_result(struct hand *h)
{
    char code[32], reason[64];
    int status = h->child.status;
    bool exited = WIFEXITED(status);
    int number = exited ? WEXITSTATUS(status) : WTERMSIG(status);
    if (h->child.output_too_large) {
        make_too_large(h);
    } else if (exited && number == 0) {
        make_output(h);
    } else {
        struct str message = child_stderr_text(&h->child);
        (void)snprintf(code, sizeof(code), "%s_%d", exited ? "EXIT" : "SIGNAL", number);
        (void)snprintf(reason, sizeof(reason), "%s %d", exited ? "exit code" : "ended by signal",
                       number);
        make_failure(h, code, message.len > 0 ? message : str_of(reason),
                     !exited || number != EXIT_DATA_ERROR);
    }
}

/* --- telling --- */

static const json_t *entity_of(const struct hand *h)
{
    return json_object_get(json_object_get(h->job, "input"), "entity");
}

static bool is_of_entity(const struct hand *h)
{
    return str_is(json_str(json_object_get(h->job, "kind")), "entity");
}

static json_t *line_of(const struct hand *h, const char *status)
{
    static const char *const SHOWN[] = {"job_id", "kind",    "run_id", "workflow_id",
                                        "step",   "handler", "attempt"};
    json_t *line = json_object();
    for (size_t i = 0; i < ARRAY_LEN(SHOWN); i++)
        (void)json_object_set(line, SHOWN[i], json_object_get(h->job, SHOWN[i]));
    if (is_of_entity(h))
        (void)json_object_set_new(line, "entity", json_deep_copy(entity_of(h)));
    (void)json_object_set_new(line, "status", json_string(status));
    bool has_code = h->code[0] != '\0';
    (void)json_object_set_new(line, "code", has_code ? json_string(h->code) : json_null());
    return line;
}

/* "ID  WORKFLOW  STEP  HANDLER  attempt N  ", with an entity's type and id instead. */
static void print_job(const struct hand *h)
{
    bool entity = is_of_entity(h);
    const json_t *owner = entity ? entity_of(h) : h->job;
    const json_t *const words[] = {
        json_object_get(h->job, "job_id"),
        json_object_get(owner, entity ? "type" : "workflow_id"),
        json_object_get(owner, entity ? "id" : "step"),
        json_object_get(h->job, "handler"),
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        value_print(stdout, words[i]);
        fputs("  ", stdout);
    }
    fputs("attempt ", stdout);
    value_print(stdout, json_object_get(h->job, "attempt"));
    fputs("  ", stdout);
}

/* One line for a job that has left this hand, or is about to. */
static void tell(const struct hand *h, const char *status)
{
    if (h->crew->session->json) {
        json_t *line = line_of(h, status);
        value_print(stdout, line);
        json_decref(line);
    } else {
        print_job(h);
        printf("%s%s%s", status, h->code[0] != '\0' ? "  " : "", h->code);
    }
    fputc('\n', stdout);
    (void)fflush(stdout);
}
