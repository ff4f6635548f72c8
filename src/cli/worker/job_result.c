/* Turns a command's exit status and output into a result. */
#include "cli/worker/job_result.h"

#include "base/limits.h"

#include <sys/wait.h>

enum { EXIT_DATA_ERROR = 65 }; /* EX_DATAERR: another attempt with the same input fails too */

#define BYTES_ADVICE(fault) \
    "The command's output " fault ". Write bytes as text, for example with base64."

static void make_output(struct job_result *r, const json_t *job, const struct job_process *process);
static void make_failure(struct job_result *r, const json_t *job, const char *code,
                         struct str message, bool retryable);
static void make_too_large(struct job_result *r, const json_t *job);

void job_result_init(struct job_result *r)
{
    *r = (struct job_result){.failed = false};
    buf_init(&r->body, HTTP_BODY_MAX);
}

void job_result_release(struct job_result *r)
{
    buf_release(&r->body);
}

void job_result_clear(struct job_result *r)
{
    buf_clear(&r->body);
    r->failed = false;
    r->code[0] = '\0';
}

bool job_is_of_entity(const json_t *job)
{
    return str_is(json_str(json_object_get(job, "kind")), "entity");
}

void job_result_make(struct job_result *r, const json_t *job, struct job_process *process)
{
    char code[32], reason[64];
    int status = process->status;
    bool exited = WIFEXITED(status);
    int number = exited ? WEXITSTATUS(status) : WTERMSIG(status);
    if (process->output_too_large) {
        make_too_large(r, job);
        return;
    }
    if (exited && number == 0) {
        make_output(r, job, process);
        return;
    }
    struct str message = job_process_stderr_text(process);
    (void)snprintf(code, sizeof(code), "%s_%d", exited ? "EXIT" : "SIGNAL", number);
    (void)snprintf(reason, sizeof(reason), "%s %d", exited ? "exit code" : "ended by signal",
                   number);
    make_failure(r, job, code, message.len > 0 ? message : str_of(reason),
                 !exited || number != EXIT_DATA_ERROR);
}

/* An entity keeps its signals until its handler is fixed, so that its calls are retried. The steps
 * that follow a task have nothing to wait for. */
void job_result_refuse_output(struct job_result *r, const json_t *job, struct str reason)
{
    make_failure(r, job, "OUTPUT_REFUSED", reason.ptr != NULL ? reason : STR(""),
                 job_is_of_entity(job));
}

/* --- failures --- */

static void make_failure(struct job_result *r, const json_t *job, const char *code,
                         struct str message, bool retryable)
{
    struct json_out out = json_out_to(&r->body);
    r->failed = true;
    (void)snprintf(r->code, sizeof(r->code), "%s", code);
    buf_clear(&r->body);
    json_open(&out, NULL, '{');
    json_add_text(&out, "lease_token", json_str(json_object_get(job, "lease_token")));
    json_open(&out, "error", '{');
    json_add_text(&out, "code", str_of(code));
    json_add_text(&out, "message", message);
    json_add_bool(&out, "retryable", retryable);
    json_close(&out, '}');
    json_close(&out, '}');
}

static void make_too_large(struct job_result *r, const json_t *job)
{
    static_assert(JOB_OUTPUT_MAX == 512 * KIB, "as the message and the help say");
    make_failure(r, job, "OUTPUT_TOO_LARGE", STR("the command wrote more than 512 KiB of output"),
                 false);
}

/* --- outputs --- */

static bool is_json(struct str text, struct problem *p)
{
    json_t *value = NULL;
    bool is = json_parse(text, p, &value) == ERR_OK;
    json_decref(value);
    return is;
}

/* JSON for a lenient parser, which accepts for example a member name twice in an object. */
static bool is_lenient_json(struct str text)
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

static void add_output(struct json_out *out, const struct job_process *process, bool json)
{
    struct str output = buf_str(&process->output);
    if (is_blank(output)) {
        json_add_null(out, "output");
    } else if (json) {
        json_add_raw(out, "output", output);
    } else {
        json_open(out, "output", '{');
        json_add_text(out, "text", job_process_stdout_text(process));
        json_close(out, '}');
    }
}

static void make_completion(struct job_result *r, const json_t *job,
                            const struct job_process *process, bool json)
{
    struct json_out out = json_out_to(&r->body);
    job_result_clear(r);
    json_open(&out, NULL, '{');
    json_add_text(&out, "lease_token", json_str(json_object_get(job, "lease_token")));
    size_t start = r->body.len;
    add_output(&out, process, json);
    size_t len = r->body.len - start;
    json_close(&out, '}');
    if (!buf_ok(&r->body) || len > JOB_OUTPUT_MAX) /* text grows when it is escaped */
        make_too_large(r, job);
}

/* The error code for output that pawl cannot accept as the command wrote it, with the reason in p;
 * NULL for any other output. */
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
    return is_lenient_json(output) ? "OUTPUT_INVALID" : NULL;
}

static void make_output(struct job_result *r, const json_t *job, const struct job_process *process)
{
    struct str output = buf_str(&process->output);
    struct problem problem;
    problem_init(&problem);
    bool json = is_json(output, &problem);
    const char *fault = output_fault(output, json, &problem);
    if (fault == NULL)
        make_completion(r, job, process, json);
    else /* retried for an entity only, as OUTPUT_REFUSED is */
        make_failure(r, job, fault, str_of(problem.detail), job_is_of_entity(job));
    problem_release(&problem);
}
