/* What people and workers do, one call each. */
#ifndef PAWL_TESTS_ENGINE_ACTIONS_H
#define PAWL_TESTS_ENGINE_ACTIONS_H

#include "engine/run/timer_rows.h"

#define TASK_STEP(name, more) "{'name':'" name "','type':'task','handler':'h." name "'" more "}"

/* --- runs --- */

/* The caller owns what is shown. */
static inline json_t *show_run(struct fixture *fixture, struct uuid id)
{
    struct call c;
    call_init(&c, fixture, &UC_GET_RUN);
    c.input.run.run_id = id;
    must_perform(&c);
    json_t *run = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    return run;
}

/* A member of a step, which must be there. Borrowed from the run. */
static inline const json_t *of_step(const json_t *run, const char *step, const char *member)
{
    const json_t *steps = json_object_get(run, "steps");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *s = json_array_get(steps, i);
        if (strcmp(json_string_value(json_object_get(s, "name")), step) == 0)
            return json_object_get(s, member);
    }
    fail_msg("there is no step %s", step);
    return NULL;
}

static inline void assert_step_is(struct fixture *fixture, struct uuid id, const char *step,
                                  const char *status)
{
    json_t *run = show_run(fixture, id);
    const char *is = json_string_value(of_step(run, step, "status"));
    if (is == NULL || strcmp(is, status) != 0)
        fail_msg("%s is %s, not %s", step, is != NULL ? is : "nothing", status);
    json_decref(run);
}

static inline void assert_error_code(struct fixture *fixture, struct uuid id, const char *code)
{
    json_t *run = show_run(fixture, id);
    const char *is = json_string_value(json_object_get(json_object_get(run, "error"), "code"));
    if (is == NULL || strcmp(is, code) != 0)
        fail_msg("the error is %s, not %s", is != NULL ? is : "none", code);
    json_decref(run);
}

static inline enum err control(struct fixture *fixture, struct uuid id, enum control_action action)
{
    struct control_run_input in = {.run_id = id, .action = action, .if_match = -1};
    struct call c;
    call_init(&c, fixture, &UC_CONTROL_RUN);
    c.op.input = &in;
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

static inline struct uuid start_later(struct fixture *fixture, const char *workflow, int64_t at_ms)
{
    struct call c;
    start_init(&c, fixture, workflow);
    c.input.start.start_at = at_ms;
    must_perform(&c);
    struct uuid id = c.op.answer.run_id;
    call_release(&c);
    return id;
}

/* `input` is written with ' for ". */
static inline struct uuid start_with(struct fixture *fixture, const char *workflow,
                                     const char *input)
{
    struct json *json = json_value_of_tree(json_of(input));
    struct buf text;
    buf_init(&text, MIB);
    json_write_plain(&text, json);
    struct call c;
    start_init(&c, fixture, workflow);
    c.input.start.input = json;
    c.input.start.input_text = buf_str(&text);
    must_perform(&c);
    struct uuid id = c.op.answer.run_id;
    call_release(&c);
    buf_release(&text);
    json_free(json);
    return id;
}

/* --- workers --- */

/* A job that a worker has. */
struct held {
    struct uuid job;
    char token[128];
    char step[64];
    char handler[64];
    int64_t attempt;
    bool compensates;
    char input[256];
};

static inline void held_read(struct held *h, const json_t *job)
{
    *h = (struct held){.attempt = json_integer_value(json_object_get(job, "attempt")),
                       .compensates = json_is_true(json_object_get(job, "compensates"))};
    assert_true(uuid_parse(json_str(json_object_get(job, "job_id")), &h->job));
    (void)snprintf(h->token, sizeof(h->token), "%s",
                   json_string_value(json_object_get(job, "lease_token")));
    (void)snprintf(h->step, sizeof(h->step), "%s", json_string_value(json_object_get(job, "step")));
    (void)snprintf(h->handler, sizeof(h->handler), "%s",
                   json_string_value(json_object_get(job, "handler")));
    char *input = json_dumps(json_object_get(job, "input"), JSON_ENCODE_ANY | JSON_COMPACT);
    (void)snprintf(h->input, sizeof(h->input), "%s", input != NULL ? input : "");
    free(input);
}

/* Up to `max` jobs of the default queue; returns how many. */
static inline size_t claim_many(struct fixture *fixture, int64_t lease_ms, int64_t max,
                                struct held *out)
{
    struct call c;
    claim_init(&c, fixture, "worker", lease_ms);
    c.input.claim.max = max;
    must_perform(&c);
    json_t *jobs = jobs_of(&c);
    size_t count = json_array_size(jobs);
    for (size_t i = 0; i < count; i++)
        held_read(&out[i], json_array_get(jobs, i));
    json_decref(jobs);
    call_release(&c);
    return count;
}

static inline bool claim_one(struct fixture *fixture, int64_t lease_ms, struct held *out)
{
    return claim_many(fixture, lease_ms, 1, out) == 1;
}

static inline void must_claim(struct fixture *fixture, const char *step, struct held *out)
{
    if (!claim_one(fixture, 60000, out))
        fail_msg("there is no job, and should be one of %s", step);
    assert_string_equal(out->step, step);
}

static inline void assert_nothing_to_claim(struct fixture *fixture)
{
    struct held h;
    if (claim_one(fixture, 60000, &h))
        fail_msg("there is a job of %s", h.step);
}

static inline enum err give(struct fixture *fixture, const struct held *h,
                            struct finish_job_input in)
{
    struct call c;
    call_init(&c, fixture, &UC_FINISH_JOB);
    c.input.finish = in;
    c.input.finish.job_id = h->job;
    c.input.finish.lease_token = str_of(h->token);
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

static inline enum err complete(struct fixture *fixture, const struct held *h)
{
    return give(fixture, h, (struct finish_job_input){.output = STR("{\"ok\":true}")});
}

static inline enum err fail_job(struct fixture *fixture, const struct held *h, bool retryable)
{
    return give(fixture, h,
                (struct finish_job_input){.failed = true,
                                          .error = STR("{\"code\":\"BROKEN\"}"),
                                          .code = STR("BROKEN"),
                                          .retryable = retryable});
}

/* Claims a job of the step and completes it. */
static inline void work(struct fixture *fixture, const char *step)
{
    struct held h;
    must_claim(fixture, step, &h);
    assert_int_equal(complete(fixture, &h), ERR_OK);
}

static inline void work_badly(struct fixture *fixture, const char *step)
{
    struct held h;
    must_claim(fixture, step, &h);
    assert_int_equal(fail_job(fixture, &h, false), ERR_OK);
}

static inline enum err heartbeat(struct fixture *fixture, const struct held *h)
{
    struct heartbeat_input in = {.job_id = h->job, .lease_token = str_of(h->token)};
    struct call c;
    call_init(&c, fixture, &UC_HEARTBEAT);
    c.op.input = &in;
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

/* --- the file --- */

/* Changes rows behind the engine's back, which is stopped meanwhile. */
static inline void tamper(struct fixture *fixture, const char *sql)
{
    fixture_stop(fixture);
    struct raw raw = raw_open(fixture->file.text);
    raw_exec(&raw, FOLD_COUNTERS);
    raw_exec(&raw, FOLD_TIMERS);
    raw_exec(&raw, sql);
    raw_close(&raw);
    fixture_start(fixture, 0);
}

/* Everything in the file fits together. */
static inline void assert_sound(struct fixture *fixture)
{
    struct doctor_findings findings = {{0}, {0}};
    struct doctor_input in = {&findings};
    struct call c;
    call_init(&c, fixture, &UC_DOCTOR);
    c.op.input = &in;
    must_perform(&c);
    for (enum doctor_check check = 0; check < DOCTOR_CHECK_COUNT; check++) {
        if (findings.differences[check] != 0)
            fail_msg("the doctor found %lld differences in %s: %.*s",
                     (long long)findings.differences[check], doctor_check_name(check),
                     STR_ARG(buf_str(&c.op.answer.body)));
    }
    call_release(&c);
}

#endif
