/* Durable functions: checkpoints and suspensions of jobs, with faults at each call. */
#include "engine/approval_support.h"
#include "engine/usecase/asking.h"

#define DAY_S INT64_C(86400)

static const char FUNCTION[] = "{'steps':[{'name':'f','type':'task','handler':'h',"
                               "'retry':{'max_attempts':2,'backoff_ms':1000,'jitter':'none'}}]}";

/* --- as a worker --- */

/* The claimed job, which the caller owns. */
static json_t *claimed(struct fixture *fixture, struct held *h)
{
    struct call c;
    claim_init(&c, fixture, "worker", 60000);
    must_perform(&c);
    json_t *jobs = jobs_of(&c);
    assert_int_equal(json_array_size(jobs), 1);
    json_t *job = json_incref(json_array_get(jobs, 0));
    held_read(h, job);
    json_decref(jobs);
    call_release(&c);
    return job;
}

static void take(struct fixture *fixture, struct held *h)
{
    json_decref(claimed(fixture, h));
}

static struct checkpoint_input checkpoint_of(const struct held *h, const char *name,
                                             const char *output)
{
    return (struct checkpoint_input){.job_id = h->job,
                                     .lease_token = str_of(h->token),
                                     .name = str_of(name),
                                     .output = str_of(output)};
}

static void store(struct fixture *fixture, const struct held *h, const char *name,
                  const char *output, const char *status)
{
    struct checkpoint_input in = checkpoint_of(h, name, output);
    assert_text_in(answer_of(fixture, &UC_CHECKPOINT_JOB, &in), "status", status);
}

static struct suspend_input wait_of(const struct held *h)
{
    return (struct suspend_input){.job_id = h->job, .lease_token = str_of(h->token), .until = -1};
}

static void suspend_until(struct fixture *fixture, const struct held *h, int64_t until)
{
    struct suspend_input in = wait_of(h);
    in.until = until;
    assert_text_in(answer_of(fixture, &UC_SUSPEND_JOB, &in), "status", "suspended");
}

static void suspend_for(struct fixture *fixture, const struct held *h, const char *signal)
{
    struct suspend_input in = wait_of(h);
    in.signal = str_of(signal);
    assert_text_in(answer_of(fixture, &UC_SUSPEND_JOB, &in), "status", "suspended");
}

/* The id of the question. */
static struct uuid ask_people(struct fixture *fixture, const struct held *h, const char *question)
{
    struct suspend_input in = wait_of(h);
    json_t *ask = json_of(question);
    struct buf text;
    buf_init(&text, KIB);
    json_put_plain(&text, ask);
    in.approval = buf_str(&text);
    json_t *answer = answer_of(fixture, &UC_SUSPEND_JOB, &in);
    struct uuid id = id_in(answer, "approval_id");
    json_decref(answer);
    json_decref(ask);
    buf_release(&text);
    return id;
}

static enum err send(struct fixture *fixture, struct uuid run, const char *name)
{
    struct signal_run_input in = {
        .run_id = run, .if_match = -1, .name = str_of(name), .payload = STR("{\"n\":1}")};
    return error_of(fixture, &UC_SIGNAL_RUN, &in);
}

/* --- checkpoints --- */

static void a_result_counts_once_and_outlives_the_attempt(void **state)
{
    struct fixture *fixture = *state;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    struct uuid run = start(fixture, "w");
    take(fixture, &h);
    store(fixture, &h, "charge", "1", "stored");
    store(fixture, &h, "charge", "1", "already_stored");
    store(fixture, &h, "charge", "2", "already_stored");
    struct checkpoint_input failed = checkpoint_of(&h, "mail", NULL);
    failed.output = STR_NONE;
    failed.error = STR("{\"code\":\"BOUNCED\"}");
    assert_text_in(answer_of(fixture, &UC_CHECKPOINT_JOB, &failed), "status", "stored");
    assert_int_equal(fail_job(fixture, &h, true), ERR_OK);
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    json_t *job = claimed(fixture, &h);
    assert_int_equal(h.attempt, 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(job, "checkpoints"), "charge")), 1);
    assert_non_null(json_object_get(json_object_get(job, "checkpoint_errors"), "mail"));
    json_decref(job);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM checkpoints"), 2);
    assert_int_equal(
        in_file(fixture, "SELECT count(*) FROM events WHERE type = 'job.checkpointed'"), 2);
    assert_sound(fixture);
}

static void who_has_lost_the_lease_stores_and_suspends_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct held late;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    (void)start(fixture, "w");
    take(fixture, &late);
    fixture_pass_ms(fixture, 60001);
    settle(fixture);
    struct checkpoint_input done = checkpoint_of(&late, "charge", "1");
    struct suspend_input wait = wait_of(&late);
    wait.signal = STR("go");
    assert_refuses(fixture, &UC_CHECKPOINT_JOB, &done, ERR_LEASE_LOST);
    take(fixture, &h);
    assert_refuses(fixture, &UC_CHECKPOINT_JOB, &done, ERR_LEASE_LOST);
    assert_refuses(fixture, &UC_SUSPEND_JOB, &wait, ERR_LEASE_LOST);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM checkpoints"), 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM suspensions"), 0);
    suspend_for(fixture, &h, "go");
    struct checkpoint_input given_up = checkpoint_of(&h, "charge", "1");
    assert_refuses(fixture, &UC_CHECKPOINT_JOB, &given_up, ERR_LEASE_LOST);
    assert_int_equal(heartbeat(fixture, &h), ERR_LEASE_LOST);
    assert_int_equal(complete(fixture, &h), ERR_LEASE_LOST);
    assert_sound(fixture);
}

static void checkpoints_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    (void)start(fixture, "w");
    take(fixture, &h);
    store(fixture, &h, "a", "1", "stored");
    tamper(fixture, "UPDATE checkpoints SET seq = 1000");
    struct checkpoint_input in = checkpoint_of(&h, "b", "1");
    assert_refuses(fixture, &UC_CHECKPOINT_JOB, &in, ERR_JOB_LIMIT);
    tamper(fixture, "UPDATE checkpoints SET seq = 1, bytes = 1048575");
    assert_refuses(fixture, &UC_CHECKPOINT_JOB, &in, ERR_JOB_LIMIT);
    store(fixture, &h, "a", "1", "already_stored");
    tamper(fixture, "UPDATE checkpoints SET bytes = 1048574");
    store(fixture, &h, "b", "1", "stored");
}

/* --- suspension --- */

static void nothing_is_held_until_the_time_has_come(void **state)
{
    struct fixture *fixture = *state;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    struct uuid run = start(fixture, "w");
    take(fixture, &h);
    store(fixture, &h, "charge", "1", "stored");
    int64_t until = fixture_now_ms(fixture) + DAY_S * 1000;
    suspend_until(fixture, &h, until);
    assert_run_is(fixture, run, "waiting");
    assert_step_is(fixture, run, "f", "suspended");
    struct run_input why = {.run_id = run};
    assert_text_in(answer_of(fixture, &UC_WHY_RUN, &why), "summary",
                   "Step f is suspended until 2023-11-15T22:13:20.000Z.");
    fixture_pass_ms(fixture, 60001); /* no lease that could expire */
    settle(fixture);
    assert_nothing_to_claim(fixture);
    fixture_stop(fixture);
    fixture_start(fixture, 0);
    fixture_pass_ms(fixture, DAY_S * 1000);
    settle(fixture);
    assert_run_is(fixture, run, "running");
    json_t *job = claimed(fixture, &h);
    assert_int_equal(h.attempt, 1);
    assert_non_null(json_object_get(job, "checkpoints"));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(job, "resumed_by"), "kind")), "timer");
    json_decref(job);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_signal_resumes_it_whenever_it_comes(void **state)
{
    struct fixture *fixture = *state;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    struct uuid run = start(fixture, "w");
    take(fixture, &h);
    suspend_for(fixture, &h, "go");
    assert_int_equal(send(fixture, run, "other"), ERR_OK);
    assert_nothing_to_claim(fixture);
    assert_int_equal(send(fixture, run, "go"), ERR_OK);
    take(fixture, &h);
    suspend_for(fixture, &h, "other"); /* which came before */
    json_t *job = claimed(fixture, &h);
    const json_t *by = json_object_get(job, "resumed_by");
    assert_string_equal(json_string_value(json_object_get(by, "signal")), "other");
    json_decref(job);
    struct suspend_input in = wait_of(&h);
    in.signal = STR("go");
    in.until = fixture_now_ms(fixture) + 1000;
    must_do(fixture, &UC_SUSPEND_JOB, &in);
    assert_text_in(answer_of(fixture, &UC_SUSPEND_JOB, &in), "status", "already_suspended");
    in.until++;
    assert_refuses(fixture, &UC_SUSPEND_JOB, &in, ERR_LEASE_LOST);
    assert_int_equal(timers(fixture), 1);
    assert_int_equal(send(fixture, run, "go"), ERR_OK);
    assert_int_equal(timers(fixture), 0);
    take(fixture, &h);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM run_signals WHERE taken_by IS NULL"),
                     0);
    assert_sound(fixture);
}

static void each_question_has_an_id_of_its_own(void **state)
{
    struct fixture *fixture = *state;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    struct uuid run = start(fixture, "w");
    struct words plain = {0};
    take(fixture, &h);
    struct uuid first =
        ask_people(fixture, &h, "{'prompt':'May I?','approvers':{'users':['ann']}}");
    assert_run_is(fixture, run, "waiting");
    assert_refused_with(fixture, first, "bob", true, plain, ERR_NOT_AN_APPROVER);
    assert_says_with(fixture, first, "ann", true, plain, "approved");
    take(fixture, &h);
    struct uuid second = ask_people(fixture, &h, "{'prompt':'May I?','expires_s':60}");
    assert_false(uuid_eq(first, second));
    assert_says_with(fixture, first, "ann", true, plain, "already_approved");
    assert_nothing_to_claim(fixture);
    fixture_pass_ms(fixture, 60001);
    settle(fixture);
    assert_refused_with(fixture, second, "ann", true, plain, ERR_APPROVAL_EXPIRED);
    json_t *job = claimed(fixture, &h);
    const json_t *by = json_object_get(job, "resumed_by");
    assert_string_equal(json_string_value(json_object_get(by, "decision")), "expired");
    json_decref(job);
    struct get_job_input shown = {.job_id = second};
    assert_text_in(answer_of(fixture, &UC_GET_JOB, &shown), "state", "denied");
    assert_int_equal(complete(fixture, &h), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

static void a_cancelled_function_asks_nobody_any_more(void **state)
{
    struct fixture *fixture = *state;
    struct held first;
    struct held second;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'f','type':'task','handler':'h','for_each':'input'}]}");
    struct uuid run = start_with(fixture, "w", "[1,2]");
    take(fixture, &first);
    take(fixture, &second);
    struct uuid question = ask_people(fixture, &first, "{'prompt':'May I?'}");
    assert_int_equal(fail_job(fixture, &second, false), ERR_OK);
    assert_run_is(fixture, run, "failed");
    assert_refused_with(fixture, question, "ann", true, (struct words){0},
                        ERR_NOT_AWAITING_APPROVAL);
    assert_sound(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    take(fixture, &first);
    suspend_for(fixture, &first, "go");
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    assert_int_equal(send(fixture, run, "go"), ERR_RUN_IS_OVER);
    assert_sound(fixture);
}

static void a_paused_run_holds_what_is_resumed(void **state)
{
    struct fixture *fixture = *state;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    struct uuid run = start(fixture, "w");
    take(fixture, &h);
    suspend_until(fixture, &h, fixture_now_ms(fixture) + 1000);
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    assert_nothing_to_claim(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    take(fixture, &h);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

static void suspensions_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    struct uuid run = start(fixture, "w");
    take(fixture, &h);
    suspend_for(fixture, &h, "go");
    tamper(fixture, "UPDATE suspensions SET num = 10000");
    assert_int_equal(send(fixture, run, "go"), ERR_OK);
    take(fixture, &h);
    struct suspend_input in = wait_of(&h);
    in.signal = STR("go");
    assert_refuses(fixture, &UC_SUSPEND_JOB, &in, ERR_JOB_LIMIT);
    assert_int_equal(complete(fixture, &h), ERR_OK);
}

/* What is not there any more, or is another's, is never taken for something else. */
static void damaged_rows_are_told_as_such(void **state)
{
    struct fixture *fixture = *state;
    struct held h;
    put_workflow(fixture, "w", FUNCTION);
    struct uuid run = start(fixture, "w");
    take(fixture, &h);
    struct uuid question = ask_people(fixture, &h, "{'prompt':'May I?'}");
    struct run_input why = {.run_id = run};
    tamper(fixture, "UPDATE suspensions SET question = 1");
    assert_refused_with(fixture, question, "ann", true, (struct words){0}, ERR_DAMAGED);
    tamper(fixture, "UPDATE suspensions SET question = 2; UPDATE approvals SET ask = '{'");
    assert_refused_with(fixture, question, "ann", true, (struct words){0}, ERR_DAMAGED);
    tamper(fixture, "UPDATE approvals SET ask = '{}'; DELETE FROM suspensions");
    assert_refuses(fixture, &UC_WHY_RUN, &why, ERR_DAMAGED);
    assert_refused_with(fixture, question, "ann", true, (struct words){0}, ERR_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_result_counts_once_and_outlives_the_attempt),
        fixture_test(who_has_lost_the_lease_stores_and_suspends_nothing),
        fixture_test(checkpoints_are_bounded),
        fixture_test(nothing_is_held_until_the_time_has_come),
        fixture_test(a_signal_resumes_it_whenever_it_comes),
        fixture_test(each_question_has_an_id_of_its_own),
        fixture_test(a_cancelled_function_asks_nobody_any_more),
        fixture_test(a_paused_run_holds_what_is_resumed),
        fixture_test(suspensions_are_bounded),
        fixture_test(damaged_rows_are_told_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
