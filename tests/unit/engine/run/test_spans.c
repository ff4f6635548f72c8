/* Spans of runs, attempts and deliveries: which there are, what each is below, and what it says. */
#include "engine/approval_support.h"
#include "engine/webhook_support.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define CALLER "00-" TRACE "-b7ad6b7169203331-"

static int exporting_setup(void **state)
{
    (void)calling_setup(state);
    struct calling_fixture *h = *state;
    char url[64];
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", h->receiver->port);
    fixture_stop(h->fixture);
    open_engine_with(h->fixture, str_of(url));
    return 0;
}

#define exporting_test(f) cmocka_unit_test_setup_teardown(f, exporting_setup, calling_teardown)

/* --- looking --- */

static json_t *spans_in(const char *request)
{
    const char *body = strstr(request, "\r\n\r\n");
    assert_non_null(body);
    json_t *sent = parsed_str(str_of(body + 4));
    const json_t *resource = json_array_get(json_object_get(sent, "resourceSpans"), 0);
    const json_t *scope = json_array_get(json_object_get(resource, "scopeSpans"), 0);
    json_t *spans = json_incref(json_object_get(scope, "spans"));
    json_decref(sent);
    return spans;
}

/* All that the collector has, owned by the caller. */
static json_t *collected(struct calling_fixture *h)
{
    json_t *all = json_array();
    pthread_mutex_lock(&h->receiver->lock);
    for (size_t i = 0; i < h->receiver->request_count; i++) {
        if (strncmp(h->receiver->requests[i], "POST /v1/traces ", 16) != 0)
            continue;
        json_t *spans = spans_in(h->receiver->requests[i]);
        assert_int_equal(json_array_extend(all, spans), 0);
        json_decref(spans);
    }
    pthread_mutex_unlock(&h->receiver->lock);
    return all;
}

/* Time passes for the exporter, but not so much that anything is tried again. */
static json_t *wait_spans(struct calling_fixture *h, size_t count)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    settle(h->fixture);
    fixture_pass_ms(h->fixture, SPAN_BATCH_DELAY_MS + 1);
    json_t *all = collected(h);
    while (json_array_size(all) < count) {
        if (real_seconds() >= until)
            fail_msg("%zu spans came, wanted %zu", json_array_size(all), count);
        fixture_round(h->fixture);
        json_decref(all);
        all = collected(h);
    }
    assert_int_equal(json_array_size(all), count);
    return all;
}

static const char *text_of(const json_t *span, const char *name)
{
    const char *text = json_string_value(json_object_get(span, name));
    return text != NULL ? text : "";
}

/* Of an attribute: its text or its number. "": the span does not have it. */
static const char *attribute(const json_t *span, const char *name)
{
    const json_t *all = json_object_get(span, "attributes");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *a = json_array_get(all, i);
        const json_t *value = json_object_get(a, "value");
        if (strcmp(text_of(a, "key"), name) == 0)
            return json_object_get(value, "stringValue") != NULL ? text_of(value, "stringValue")
                                                                 : text_of(value, "intValue");
    }
    return "";
}

/* The span with this name and this value of an attribute. Borrowed. */
static const json_t *find_span(const json_t *all, const char *name, const char *key,
                               const char *value)
{
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *span = json_array_get(all, i);
        if (strcmp(text_of(span, "name"), name) == 0 && strcmp(attribute(span, key), value) == 0)
            return span;
    }
    fail_msg("there is no span %s with %s %s", name, key, value);
    return NULL;
}

static bool is_error(const json_t *span)
{
    return json_integer_value(json_object_get(json_object_get(span, "status"), "code")) == 2;
}

static void assert_below(const json_t *span, const json_t *parent)
{
    assert_string_equal(text_of(span, "parentSpanId"), text_of(parent, "spanId"));
    assert_string_equal(text_of(span, "traceId"), text_of(parent, "traceId"));
}

static struct uuid start_traced(struct fixture *fixture, const char *traceparent,
                                const char *tracestate)
{
    struct call c;
    start_init(&c, fixture, "w");
    c.input.start.traceparent = str_of(traceparent);
    c.input.start.tracestate = str_of(tracestate);
    must_perform(&c);
    struct uuid id = c.op.answer.run_id;
    call_release(&c);
    return id;
}

#define RETRIED ",'retry':{'max_attempts':2,'backoff_ms':1}"

/* --- tests --- */

static void attempts_are_spans_below_their_run(void **state)
{
    struct calling_fixture *h = *state;
    struct held held;
    put_workflow(h->fixture, "w", "{'steps':[" TASK_STEP("a", RETRIED) "]}");
    (void)start_traced(h->fixture, CALLER "01", "foo=1");
    must_claim(h->fixture, "a", &held);
    assert_int_equal(fail_job(h->fixture, &held, true), ERR_OK);
    fixture_pass_ms(h->fixture, 1000);
    settle(h->fixture);
    work(h->fixture, "a");
    json_t *all = wait_spans(h, 3);
    const json_t *run = find_span(all, "w", "pawl.run.status", "succeeded");
    const json_t *failed = find_span(all, "a", "pawl.job.attempt", "1");
    const json_t *done = find_span(all, "a", "pawl.job.attempt", "2");
    assert_string_equal(text_of(run, "traceId"), TRACE);
    assert_string_equal(text_of(run, "parentSpanId"), "b7ad6b7169203331");
    assert_string_equal(text_of(run, "traceState"), "foo=1");
    assert_below(failed, run);
    assert_below(done, run);
    assert_true(strcmp(text_of(failed, "spanId"), text_of(done, "spanId")) != 0);
    assert_string_equal(attribute(failed, "pawl.job.outcome"), "failed");
    assert_string_equal(attribute(failed, "error.type"), "BROKEN");
    assert_string_equal(attribute(done, "pawl.job.outcome"), "succeeded");
    assert_true(is_error(failed) && !is_error(done) && !is_error(run));
    json_decref(all);
}

static void a_failed_run_says_why(void **state)
{
    struct calling_fixture *h = *state;
    struct held held;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)start(h->fixture, "w");
    must_claim(h->fixture, "a", &held);
    struct finish_job_input why = {.failed = true,
                                   .error = STR("{\"code\":\"BROKEN\",\"message\":\"it broke\"}"),
                                   .code = STR("BROKEN")};
    assert_int_equal(give(h->fixture, &held, why), ERR_OK);
    json_t *all = wait_spans(h, 2);
    const json_t *attempt = find_span(all, "a", "pawl.job.outcome", "failed");
    assert_true(is_error(attempt));
    assert_string_equal(text_of(json_object_get(attempt, "status"), "message"), "it broke");
    assert_true(is_error(find_span(all, "w", "pawl.run.status", "failed")));
    json_decref(all);
}

static void a_lost_lease_ends_an_attempt(void **state)
{
    struct calling_fixture *h = *state;
    struct held held;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)start(h->fixture, "w");
    assert_true(claim_one(h->fixture, 100, &held));
    fixture_pass_ms(h->fixture, 5000);
    settle(h->fixture);
    json_t *all = wait_spans(h, 1);
    assert_true(is_error(find_span(all, "a", "pawl.job.outcome", "lease_expired")));
    json_decref(all);
}

static void an_attempt_that_did_not_reach_its_worker_is_released(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)start(h->fixture, "w");
    struct call lost;
    claim_init(&lost, h->fixture, "lost", 60000);
    must_perform(&lost);
    engine_give_back(h->fixture->engine, &lost.op);
    call_release(&lost);
    json_t *all = wait_spans(h, 1);
    const json_t *released = find_span(all, "a", "pawl.job.outcome", "released");
    assert_string_equal(attribute(released, "pawl.job.attempt"), "1");
    assert_false(is_error(released));
    json_decref(all);
}

static void calls_and_waits_that_take_too_long_are_spans(void **state)
{
    struct calling_fixture *h = *state;
    char definition[512];
    (void)snprintf(definition, sizeof(definition),
                   "{'steps':[{'name':'call','type':'http','request':{'method':'GET','url':"
                   "'http://127.0.0.1:%d/ok'}},"
                   "{'name':'wait','type':'wait_signal','signal':'go','timeout_ms':1000}]}",
                   h->receiver->port);
    put_workflow(h->fixture, "w", definition);
    struct uuid run = start(h->fixture, "w");
    int64_t until = real_seconds() + GIVE_UP_S;
    while (in_file(h->fixture, "SELECT count(*) FROM jobs WHERE state = 'succeeded'") == 0) {
        assert_true(real_seconds() < until);
        fixture_round(h->fixture);
    }
    settle(h->fixture);
    fixture_pass_ms(h->fixture, 1001);
    settle(h->fixture);
    assert_run_is(h->fixture, run, "failed");
    json_t *all = wait_spans(h, 3);
    const json_t *top = find_span(all, "w", "pawl.run.status", "failed");
    assert_below(find_span(all, "call", "pawl.job.outcome", "succeeded"), top);
    assert_true(is_error(find_span(all, "wait", "pawl.job.outcome", "timed_out")));
    assert_true(is_error(top));
    json_decref(all);
}

static void sleeps_and_decisions_are_spans(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w",
                 "{'steps':[{'name':'nap','type':'sleep','duration_ms':10},"
                 "{'name':'ok','type':'approval','prompt':'ok?'}]}");
    struct uuid run = start(h->fixture, "w");
    fixture_pass_ms(h->fixture, 20);
    settle(h->fixture);
    rejects(h->fixture, job_of(h->fixture, run, "ok"), "ann", "rejected");
    json_t *all = wait_spans(h, 3);
    const json_t *top = find_span(all, "w", "pawl.run.status", "denied");
    assert_below(find_span(all, "nap", "pawl.step.type", "sleep"), top);
    assert_true(is_error(find_span(all, "ok", "pawl.job.outcome", "denied")));
    assert_true(is_error(top));
    json_decref(all);
}

static void cancelled_work_is_no_error(void **state)
{
    struct calling_fixture *h = *state;
    struct held held;
    put_workflow(h->fixture, "w",
                 "{'steps':[" TASK_STEP("a", ",'needs':[]") "," TASK_STEP(
                     "b", ",'queue':'other','needs':[]") "]}");
    struct uuid run = start(h->fixture, "w");
    must_claim(h->fixture, "a", &held);
    assert_int_equal(control(h->fixture, run, CONTROL_CANCEL), ERR_OK);
    json_t *all = wait_spans(h, 2); /* a job in its queue has no attempt */
    assert_false(is_error(find_span(all, "a", "pawl.job.outcome", "cancelled")));
    assert_false(is_error(find_span(all, "w", "pawl.run.status", "cancelled")));
    json_decref(all);
}

static void the_wait_for_the_next_attempt_is_no_span(void **state)
{
    struct calling_fixture *h = *state;
    struct held held;
    put_workflow(
        h->fixture, "w",
        "{'steps':[" TASK_STEP("a", ",'retry':{'max_attempts':2,'backoff_ms':60000}") "]}");
    struct uuid run = start(h->fixture, "w");
    must_claim(h->fixture, "a", &held);
    assert_int_equal(fail_job(h->fixture, &held, true), ERR_OK);
    assert_int_equal(control(h->fixture, run, CONTROL_CANCEL), ERR_OK);
    json_t *all = wait_spans(h, 2);
    (void)find_span(all, "a", "pawl.job.outcome", "failed");
    (void)find_span(all, "w", "pawl.run.status", "cancelled");
    json_decref(all);
}

static void what_is_not_sampled_is_not_exported(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/ok", "run.succeeded");
    (void)start_traced(h->fixture, CALLER "00", NULL);
    work(h->fixture, "a");
    fan_out_all(h);
    wait_deliveries(h, "state = 'delivered'", 1);
    (void)start(h->fixture, "w"); /* begins a trace, which is sampled */
    work(h->fixture, "a");
    json_t *all = wait_spans(h, 2);
    assert_true(strcmp(text_of(json_array_get(all, 0), "traceId"), TRACE) != 0);
    json_decref(all);
}

static void every_attempt_of_a_delivery_is_a_span(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", "{'steps':[{'name':'nap','type':'sleep','duration_ms':0}]}");
    (void)create(h, "/ok", "run.succeeded");
    (void)create(h, "/500", "run.created");
    (void)create(h, "/close", "run.created");
    (void)start_traced(h->fixture, CALLER "01", "foo=1");
    fan_out_all(h);
    wait_deliveries(h, "last_status IS NOT NULL OR last_error IS NOT NULL", 3);
    json_t *all = wait_spans(h, 5);
    const json_t *run = find_span(all, "w", "pawl.run.status", "succeeded");
    const json_t *taken = find_span(all, "webhook delivery", "pawl.delivery.outcome", "delivered");
    const json_t *refused = find_span(all, "webhook delivery", "http.response.status_code", "500");
    const json_t *lost = find_span(all, "webhook delivery", "http.response.status_code", "");
    assert_below(taken, run);
    assert_string_equal(text_of(taken, "traceState"), "foo=1");
    assert_string_equal(attribute(taken, "http.response.status_code"), "200");
    assert_string_equal(attribute(refused, "pawl.delivery.outcome"), "retried");
    assert_string_equal(attribute(lost, "pawl.delivery.outcome"), "retried");
    assert_true(!is_error(taken) && is_error(refused) && is_error(lost));
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exporting_test(attempts_are_spans_below_their_run),
        exporting_test(a_failed_run_says_why),
        exporting_test(a_lost_lease_ends_an_attempt),
        exporting_test(an_attempt_that_did_not_reach_its_worker_is_released),
        exporting_test(calls_and_waits_that_take_too_long_are_spans),
        exporting_test(sleeps_and_decisions_are_spans),
        exporting_test(cancelled_work_is_no_error),
        exporting_test(the_wait_for_the_next_attempt_is_no_span),
        exporting_test(what_is_not_sampled_is_not_exported),
        exporting_test(every_attempt_of_a_delivery_is_a_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
