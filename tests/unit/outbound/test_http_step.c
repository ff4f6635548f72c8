/* A job's input on the wire, and an answer as a job's result. */
#include "base/support.h"

#include "base/limits.h"
#include "outbound/http_step.h"

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* Without `given`, the run has begun a trace of its own. */
static struct call_job job_with(struct str input, struct str given)
{
    struct call_job job = {.input = input,
                           .traceparent = TRACE,
                           .trace_is_given = given.ptr != NULL,
                           .tracestate = given,
                           .timeout_ms = 1234};
    bool ok = uuid_parse(STR("01a1dddc-23f5-795c-8000-0077dc244979"), &job.id);
    assert_true(ok);
    return job;
}

/* --- requests --- */

/* ' is written for ". The caller owns it; NULL when it was refused. */
static struct http_call *shaped(const char *quoted_singly, struct str given)
{
    char text[2048];
    size_t len = strlen(quoted_singly);
    assert_true(len < sizeof(text));
    for (size_t i = 0; i <= len; i++)
        text[i] = (char)(quoted_singly[i] == '\'' ? '"' : quoted_singly[i]);
    struct call_job job = job_with((struct str){text, len}, given);
    struct problem p;
    struct http_call *call = NULL;
    problem_init(&p);
    enum err e = http_step_shape(&job, &p, &call);
    assert_int_equal(e == ERR_OK, call != NULL);
    assert_true(e == ERR_OK || e == ERR_FIELD_INVALID);
    problem_release(&p);
    return call;
}

static const struct http_call_header *sent(const struct http_call *call, const char *name)
{
    const struct http_call_header *found = NULL;
    for (size_t i = 0; i < call->request.header_count; i++) {
        if (!str_eq_nocase(call->request.headers[i].name, str_of(name)))
            continue;
        if (found != NULL)
            fail_msg("%s is there twice", name);
        found = &call->request.headers[i];
    }
    return found;
}

static void assert_sent(const struct http_call *call, const char *name, const char *value)
{
    const struct http_call_header *header = sent(call, name);
    if (header == NULL)
        fail_msg("%s is not sent", name);
    else
        assert_str(header->value, value);
}

static void a_plain_request_gets_its_key_and_its_time(void **state)
{
    (void)state;
    struct http_call *call = shaped("{'method':'GET','url':'http://x/y?z=1'}", STR_NONE);
    assert_str(call->request.method, "GET");
    assert_str(call->request.url, "http://x/y?z=1");
    assert_null(call->request.body.ptr);
    assert_int_equal(call->request.timeout_ms, 1234);
    assert_int_equal(call->request.redirects_max, CALL_REDIRECTS_MAX);
    assert_sent(call, "Idempotency-Key", "01a1dddc-23f5-795c-8000-0077dc244979");
    assert_sent(call, "traceparent", TRACE);
    assert_int_equal(call->request.header_count, 2);
    http_call_free(call);
}

static void the_runs_trace_goes_on(void **state)
{
    (void)state;
    static const char OWN[] =
        "{'method':'GET','url':'http://x/','headers':{'Traceparent':'mine','TraceState':'a=1'}}";
    struct http_call *call = shaped("{'method':'GET','url':'http://x/'}", STR("foo=1"));
    assert_sent(call, "traceparent", TRACE);
    assert_sent(call, "tracestate", "foo=1");
    http_call_free(call);
    call = shaped(OWN, STR("foo=1"));
    assert_sent(call, "traceparent", TRACE);
    assert_sent(call, "tracestate", "foo=1");
    http_call_free(call);
    call = shaped(OWN, STR_NONE);
    assert_sent(call, "traceparent", "mine");
    assert_sent(call, "tracestate", "a=1");
    http_call_free(call);
}

static void the_key_is_always_the_jobs(void **state)
{
    (void)state;
    struct http_call *call =
        shaped("{'method':'GET','url':'http://x/','headers':{'idempotency-KEY':'mine'}}", STR_NONE);
    assert_sent(call, "Idempotency-Key", "01a1dddc-23f5-795c-8000-0077dc244979");
    http_call_free(call);
}

static void header_values_are_text_however_they_were_filled(void **state)
{
    (void)state;
    struct http_call *call =
        shaped("{'method':'GET','url':'http://x/','headers':{'A':'text','B':5,'C':true,'D':1.5,"
               "'E':null,'F':''}}",
               STR_NONE);
    assert_sent(call, "A", "text");
    assert_sent(call, "B", "5");
    assert_sent(call, "C", "true");
    assert_sent(call, "D", "1.5");
    assert_null(sent(call, "E"));
    assert_sent(call, "F", "");
    http_call_free(call);
}

static void bodies_go_out_as_json_or_as_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *input;
        const char *body;
        const char *type;
    } CASES[] = {
        {"'body':{'a':[1,2.0,null]}", "{\"a\":[1,2.0,null]}", "application/json"},
        {"'body':'text'", "\"text\"", "application/json"},
        {"'body':5", "5", "application/json"},
        {"'body':false", "false", "application/json"},
        {"'body':'a=1&b=2','headers':{'Content-Type':'application/x-www-form-urlencoded'}",
         "a=1&b=2", "application/x-www-form-urlencoded"},
        {"'body':'<x/>','headers':{'content-type':'text/xml; charset=utf-8'}", "<x/>",
         "text/xml; charset=utf-8"},
        {"'body':'text','headers':{'content-type':'application/vnd.x+JSON; v=1'}", "\"text\"",
         "application/vnd.x+JSON; v=1"},
        {"'body':{'a':1},'headers':{'content-type':'text/plain'}", "{\"a\":1}", "text/plain"},
        {"'body':''", "\"\"", "application/json"},
        {"'body':'','headers':{'content-type':'text/plain'}", "", "text/plain"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char input[512];
        (void)snprintf(input, sizeof(input), "{'method':'POST','url':'http://x/',%s}",
                       CASES[i].input);
        struct http_call *call = shaped(input, STR_NONE);
        assert_non_null(call);
        assert_str(call->request.body, CASES[i].body);
        assert_sent(call, "Content-Type", CASES[i].type);
        http_call_free(call);
    }
    struct http_call *none = shaped("{'method':'POST','url':'http://x/','body':null}", STR_NONE);
    assert_null(none->request.body.ptr);
    assert_null(sent(none, "Content-Type"));
    http_call_free(none);
}

static void what_makes_no_request_is_refused(void **state)
{
    (void)state;
    static const char *const INPUTS[] = {
        "",
        "null",
        "[]",
        "'x'",
        "{}",
        "{'method':'GET'}",
        "{'url':'http://x/'}",
        "{'method':1,'url':'http://x/'}",
        "{'method':'GET','url':null}",
        "{'method':'GET','url':['http://x/']}",
        "{'method':'GET','url':'http://x/','headers':[]}",
        "{'method':'GET','url':'http://x/','headers':{'A':{}}}",
        "{'method':'GET','url':'http://x/','headers':{'A':[1]}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(INPUTS); i++)
        assert_null(shaped(INPUTS[i], STR_NONE));
    struct buf many;
    buf_init(&many, 64 * KIB);
    buf_put(&many, STR("{\"method\":\"GET\",\"url\":\"http://x/\",\"headers\":{\"A\":1"));
    for (int i = 0; i < 100; i++)
        buf_printf(&many, ",\"A%d\":1", i);
    buf_put(&many, STR("}}"));
    struct call_job job = job_with(buf_str(&many), STR_NONE);
    struct problem p;
    struct http_call *call = NULL;
    problem_init(&p);
    assert_int_equal(http_step_shape(&job, &p, &call), ERR_FIELD_INVALID);
    problem_release(&p);
    buf_release(&many);
}

/* --- results --- */

static struct http_call *answered(int status, const char *head, struct str body)
{
    struct http_call_request request = {
        .method = STR("GET"), .url = STR("http://x/"), .timeout_ms = 1000};
    struct http_call *call = http_call_new(&request);
    assert_non_null(call);
    call->end = CALL_ANSWERED;
    call->status = status;
    buf_put(&call->head, str_of(head));
    buf_put(&call->body, body);
    assert_true(buf_ok(&call->head) && buf_ok(&call->body));
    return call;
}

/* Takes the call over. */
static struct call_result result_of(struct http_call *call)
{
    struct call_result r;
    call_result_init(&r);
    http_step_take_result(&r, call, INT64_C(784111777000));
    assert_true(buf_ok(&r.text));
    http_call_free(call);
    return r;
}

static void assert_output(const char *head, struct str body, const char *expected)
{
    struct call_result r = result_of(answered(200, head, body));
    assert_int_equal(r.kind, CALL_RESULT_OUTPUT);
    assert_str(buf_str(&r.text), expected);
    json_t *read = json_loadb(r.text.ptr, r.text.len, 0, NULL);
    assert_non_null(read);
    json_decref(read);
    call_result_release(&r);
}

static void json_is_kept_as_json_and_text_as_text(void **state)
{
    (void)state;
    assert_output("Content-Type: application/json\n", STR(" {\"a\": [1, 2.0]} "),
                  "{\"status\":200,\"headers\":{\"content-type\":\"application/json\"},"
                  "\"body\":{\"a\":[1,2.0]},\"body_encoding\":\"json\"}");
    assert_output("content-type: application/problem+json; charset=utf-8\n", STR("null"),
                  "{\"status\":200,\"headers\":{\"content-type\":\"application/problem+json; "
                  "charset=utf-8\"},\"body\":null,\"body_encoding\":\"json\"}");
    assert_output("", STR("{\"a\":1}"),
                  "{\"status\":200,\"headers\":{},\"body\":\"{\\\"a\\\":1}\","
                  "\"body_encoding\":\"text\"}");
    assert_output("", STR(""), "{\"status\":200,\"headers\":{},\"body\":null}");
}

static void json_that_is_none_is_text(void **state)
{
    (void)state;
    static const char *const BROKEN[] = {"{", "{'a':1}", "{\"a\":1,\"a\":2}", "1e999", "nul"};
    for (size_t i = 0; i < ARRAY_LEN(BROKEN); i++) {
        struct call_result r =
            result_of(answered(200, "content-type: application/json\n", str_of(BROKEN[i])));
        assert_contains(r.text.ptr, "\"body_encoding\":\"text\"");
        call_result_release(&r);
    }
}

static void bytes_that_are_no_text_are_base64(void **state)
{
    (void)state;
    assert_output("", (struct str){"\xff\xfe", 2},
                  "{\"status\":200,\"headers\":{},\"body\":\"//4=\",\"body_encoding\":\"base64\"}");
    assert_output("", (struct str){"a\0b", 3},
                  "{\"status\":200,\"headers\":{},\"body\":\"YQBi\",\"body_encoding\":\"base64\"}");
    /* NUL has no place in what is kept, even where JSON could write it. */
    assert_output("content-type: application/json\n", STR("\"a\\u0000b\""),
                  "{\"status\":200,\"headers\":{\"content-type\":\"application/json\"},"
                  "\"body\":\"\\\"a\\\\u0000b\\\"\",\"body_encoding\":\"text\"}");
}

static void headers_are_joined_and_cookies_left_out(void **state)
{
    (void)state;
    assert_output("X-A: 1\nSet-Cookie: secret\nx-b: two\nx-a: 3\nConnection: close\n"
                  "Transfer-Encoding: chunked\nno header at all\nX-Quote: \"q\"\n",
                  STR(""),
                  "{\"status\":200,\"headers\":{\"x-a\":\"1, 3\",\"x-b\":\"two\","
                  "\"x-quote\":\"\\\"q\\\"\"},\"body\":null}");
}

static void headers_past_the_bound_are_left_out(void **state)
{
    (void)state;
    struct buf head;
    buf_init(&head, CALL_HEAD_MAX);
    for (int i = 0; i < 1000; i++)
        buf_printf(&head, "x-%d: %0*d\n", i, 20, i);
    struct call_result r = result_of(answered(200, head.ptr, STR("kept")));
    assert_int_equal(r.kind, CALL_RESULT_OUTPUT);
    assert_true(r.text.len < CALL_HEADERS_KEPT_MAX);
    assert_contains(r.text.ptr, "\"x-0\"");
    assert_contains(r.text.ptr, "\"kept\"");
    call_result_release(&r);
    buf_release(&head);
}

static void a_body_that_grows_past_the_limit_is_refused(void **state)
{
    (void)state;
    char *control = malloc(CALL_RESPONSE_MAX);
    assert_non_null(control);
    memset(control, '\x01', CALL_RESPONSE_MAX); /* six times as long in JSON */
    struct call_result r = result_of(answered(200, "", (struct str){control, CALL_RESPONSE_MAX}));
    assert_int_equal(r.kind, CALL_RESULT_ERROR);
    assert_string_equal(r.code, "RESPONSE_TOO_LARGE");
    assert_false(r.retryable);
    call_result_release(&r);
    memset(control, 'x', CALL_RESPONSE_MAX); /* as text it fits whole */
    r = result_of(answered(200, "", (struct str){control, CALL_RESPONSE_MAX}));
    assert_int_equal(r.kind, CALL_RESULT_OUTPUT);
    call_result_release(&r);
    free(control);
}

static void a_status_that_is_no_success_is_an_error_with_an_excerpt(void **state)
{
    (void)state;
    struct call_result r = result_of(answered(404, "retry-after: 5\n", STR("no such thing")));
    assert_int_equal(r.kind, CALL_RESULT_ERROR);
    assert_string_equal(r.code, "HTTP_404");
    assert_false(r.retryable);
    assert_int_equal(r.retry_after_ms, 0);
    assert_str(buf_str(&r.text), "{\"code\":\"HTTP_404\",\"message\":\"The receiver answered 404\","
                                 "\"details\":{\"status\":404,\"body\":\"no such thing\"}}");
    call_result_release(&r);
    char *large = malloc(MIB);
    assert_non_null(large);
    memset(large, 'e', MIB);
    r = result_of(answered(400, "", (struct str){large, MIB}));
    assert_true(r.text.len > CALL_EXCERPT_MAX && r.text.len < 2 * CALL_EXCERPT_MAX);
    call_result_release(&r);
    r = result_of(answered(400, "", (struct str){"\0", 1}));
    assert_str(buf_str(&r.text), "{\"code\":\"HTTP_400\",\"message\":\"The receiver answered 400\","
                                 "\"details\":{\"status\":400}}");
    call_result_release(&r);
    free(large);
}

static void a_receiver_may_ask_for_time(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int64_t ms;
    } CASES[] = {{"Retry-After: 5\n", 5000},
                 {"Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\n", 10000},
                 {"Retry-After: later\n", 0},
                 {"Retry-After: -5\n", 0},
                 {"", 0}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct call_result r = result_of(answered(503, CASES[i].head, STR("")));
        assert_string_equal(r.code, "HTTP_503");
        assert_true(r.retryable);
        assert_int_equal(r.retry_after_ms, CASES[i].ms);
        call_result_release(&r);
    }
}

static void calls_without_an_answer_say_why(void **state)
{
    (void)state;
    for (enum call_end end = CALL_ANSWERED + 1; end < CALL_END_COUNT; end++) {
        struct http_call *call = answered(0, "", STR(""));
        http_call_end(call, end, "because of \"%s\"", "this");
        struct call_result r = result_of(call);
        if (end == CALL_ABORTED) {
            assert_int_equal(r.kind, CALL_RESULT_NOTHING);
        } else {
            assert_int_equal(r.kind, CALL_RESULT_ERROR);
            assert_string_equal(r.code, call_end_code(end));
            assert_int_equal(r.retryable, call_end_retryable(end));
            assert_int_equal(r.timed_out, end == CALL_TIMED_OUT);
            assert_contains(r.text.ptr, "\"message\":\"because of \\\"this\\\"\"");
        }
        call_result_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_request_gets_its_key_and_its_time),
        cmocka_unit_test(the_runs_trace_goes_on),
        cmocka_unit_test(the_key_is_always_the_jobs),
        cmocka_unit_test(header_values_are_text_however_they_were_filled),
        cmocka_unit_test(bodies_go_out_as_json_or_as_they_are),
        cmocka_unit_test(what_makes_no_request_is_refused),
        cmocka_unit_test(json_is_kept_as_json_and_text_as_text),
        cmocka_unit_test(json_that_is_none_is_text),
        cmocka_unit_test(bytes_that_are_no_text_are_base64),
        cmocka_unit_test(headers_are_joined_and_cookies_left_out),
        cmocka_unit_test(headers_past_the_bound_are_left_out),
        cmocka_unit_test(a_body_that_grows_past_the_limit_is_refused),
        cmocka_unit_test(a_status_that_is_no_success_is_an_error_with_an_excerpt),
        cmocka_unit_test(a_receiver_may_ask_for_time),
        cmocka_unit_test(calls_without_an_answer_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
