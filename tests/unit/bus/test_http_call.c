/* Outbound calls against a real receiver: answers, many calls at once, failures and bounds. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "bus/http_call_support.h"

/* --- the fixture --- */

static struct http_call *call_new(const char *method, const char *url)
{
    struct http_call_request request = {.method = str_of(method),
                                        .url = str_of(url),
                                        .timeout_ms = PATIENT_MS,
                                        .redirects_max = CALL_REDIRECTS_MAX};
    struct http_call *call = http_call_new(&request);
    assert_non_null(call);
    return call;
}

/* The last request that the receiver got. */
static const char *last_request(const struct receiver *r)
{
    assert_true(r->request_count > 0);
    return r->requests[r->request_count - 1];
}

/* --- answers --- */

static void an_answer_comes_back_whole(void **state)
{
    struct fixture *fixture = *state;
    const struct http_call *call = get(fixture, url_of(fixture, "/ok"));
    assert_answer(call, 200, "fine");
    assert_str(http_call_header(call, STR("content-type")), "text/plain");
    assert_str(http_call_header(call, STR("CONTENT-length")), "4");
    assert_str(http_call_header(call, STR("x-twice")), "a");
    assert_null(http_call_header(call, STR("x-none")).ptr);
    struct http_call_header header;
    size_t at = 0;
    size_t count = 0;
    while (http_call_next_header(call, &at, &header))
        count++;
    assert_int_equal(count, 4);
}

static void any_status_is_an_answer(void **state)
{
    struct fixture *fixture = *state;
    const struct http_call *call = get(fixture, url_of(fixture, "/500"));
    assert_answer(call, 500, "sorry");
    assert_str(http_call_header(call, STR("Retry-After")), "7");
    assert_answer(get(fixture, url_of(fixture, "/empty")), 204, "");
    assert_answer(get(fixture, url_of(fixture, "/304")), 304, "");
}

static void interim_responses_are_passed_over(void **state)
{
    struct fixture *fixture = *state;
    const struct http_call *call = get(fixture, url_of(fixture, "/interim"));
    assert_answer(call, 200, "now");
    assert_null(http_call_header(call, STR("x-early")).ptr);
    assert_str(http_call_header(call, STR("x-late")), "1");
}

static void method_headers_and_body_arrive(void **state)
{
    struct fixture *fixture = *state;
    const struct http_call_header headers[] = {{STR("X-One"), STR("1")},
                                               {STR("X-Empty"), STR("")},
                                               {STR("Content-Type"), STR("text/x")},
                                               {STR("Accept"), STR("text/y")}};
    static const char *const METHODS[] = {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GET"};
    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        struct http_call_request request = request_to(METHODS[i], url_of(fixture, "/echo"));
        request.headers = headers;
        request.header_count = ARRAY_LEN(headers);
        request.body = STR("some body");
        const struct http_call *call = perform_request(fixture, &request);
        assert_end(call, CALL_ANSWERED);
        const char *sent = call->body.ptr;
        char line[64];
        (void)snprintf(line, sizeof(line), "%s /echo HTTP/1.1\r\n", METHODS[i]);
        assert_int_equal(strncmp(sent, line, strlen(line)), 0);
        assert_contains(sent, "\r\nX-One: 1\r\n");
        assert_contains(sent, "\r\nX-Empty:\r\n");
        assert_contains(sent, "\r\nContent-Type: text/x\r\n");
        assert_contains(sent, "\r\nAccept: text/y\r\n");
        assert_contains(sent, "\r\nContent-Length: 9\r\n");
        assert_contains(sent, "\r\nUser-Agent: pawl/");
        assert_contains(sent, "\r\n\r\nsome body");
        assert_lacks(sent, "\r\nExpect");
    }
}

static void a_request_without_a_body_says_so(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *method;
        bool has_length;
    } METHODS[] = {{"POST", true}, {"PUT", true},     {"PATCH", true},
                   {"GET", false}, {"DELETE", false}, {"OPTIONS", false}};
    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        struct http_call_request request = request_to(METHODS[i].method, url_of(fixture, "/echo"));
        const struct http_call *call = perform_request(fixture, &request);
        assert_end(call, CALL_ANSWERED);
        assert_int_equal(strncmp(call->body.ptr, METHODS[i].method, strlen(METHODS[i].method)), 0);
        assert_lacks(call->body.ptr, "\r\nContent-Type");
        if (METHODS[i].has_length)
            assert_contains(call->body.ptr, "\r\nContent-Length: 0\r\n");
        else
            assert_lacks(call->body.ptr, "\r\nContent-Length");
    }
}

static void head_gets_headers_however_large_the_thing_is(void **state)
{
    struct fixture *fixture = *state;
    struct http_call_request request = request_to("HEAD", url_of(fixture, "/head"));
    const struct http_call *call = perform_request(fixture, &request);
    assert_answer(call, 200, "");
    assert_str(http_call_header(call, STR("content-length")), "5000000000");
}

static void a_large_body_is_sent_without_asking(void **state)
{
    struct fixture *fixture = *state;
    struct http_call_request request = request_to("POST", url_of(fixture, "/empty"));
    char *body = malloc(MIB + MIB / 2);
    memset(body, 'b', MIB + MIB / 2);
    request.body = (struct str){body, MIB + MIB / 2};
    assert_answer(perform_request(fixture, &request), 204, "");
    assert_lacks(last_request(fixture->receiver), "Expect");
    free(body);
}

static void a_connection_is_used_again(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 5; i++)
        assert_answer(get(fixture, url_of(fixture, "/ok")), 200, "fine");
    assert_int_equal(fixture->receiver->connection_count, 1);
}

static void proxies_of_the_environment_are_not_used(void **state)
{
    struct fixture *fixture = *state;
    assert_answer(get(fixture, url_of(fixture, "/ok")), 200,
                  "fine"); /* read once, so set before main() */
    assert_non_null(getenv("http_proxy"));
}

/* --- many --- */

static void every_call_comes_back_once_and_not_too_many_run_at_once(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 200 };
    bool seen[COUNT] = {false};
    static int numbers[COUNT];
    int hooks_before = atomic_load(&hook_calls);
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
        struct http_call *call = call_new("GET", url_of(fixture, "/gate"));
        call->owner = &numbers[i];
        assert_true(http_caller_submit(fixture->caller, call));
    }
    receiver_wait_answering(fixture->receiver, CALLS_IN_FLIGHT_MAX);
    receiver_open_gate(fixture->receiver);
    wait_over(fixture, COUNT);
    for (size_t i = 0; i < fixture->over_count; i++) {
        assert_answer(fixture->over[i], 200, "through");
        int number = *(const int *)fixture->over[i]->owner;
        assert_false(seen[number]);
        seen[number] = true;
    }
    assert_int_equal(fixture->receiver->answering_max, CALLS_IN_FLIGHT_MAX);
    assert_int_equal(atomic_load(&hook_calls) - hooks_before, COUNT);
}

static void past_the_queues_bound_calls_are_not_taken(void **state)
{
    struct fixture *fixture = *state;
    size_t taken = 0;
    struct http_call *call = NULL;
    for (; taken < CALLS_IN_FLIGHT_MAX; taken++)
        assert_true(
            http_caller_submit(fixture->caller, call_new("GET", url_of(fixture, "/silent"))));
    receiver_wait_answering(fixture->receiver, CALLS_IN_FLIGHT_MAX);
    for (taken = 0;; taken++) {
        call = call_new("GET", url_of(fixture, "/silent"));
        if (!http_caller_submit(fixture->caller, call))
            break;
    }
    assert_int_equal(taken, CALLS_WAITING_MAX);
    http_call_free(call); /* it stayed ours; the others are freed with the caller */
}

static void a_call_that_waits_for_others_is_timed_out_in_the_queue(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < CALLS_IN_FLIGHT_MAX; i++)
        assert_true(
            http_caller_submit(fixture->caller, call_new("GET", url_of(fixture, "/silent"))));
    receiver_wait_answering(fixture->receiver, CALLS_IN_FLIGHT_MAX);
    struct http_call_request request = request_to("GET", url_of(fixture, "/ok"));
    request.timeout_ms = 50;
    assert_end(perform_request(fixture, &request), CALL_TIMED_OUT);
    assert_int_equal(fixture->receiver->request_count, CALLS_IN_FLIGHT_MAX);
}

static void an_abort_brings_everything_back(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = CALLS_IN_FLIGHT_MAX + 36 };
    for (size_t i = 0; i < COUNT; i++)
        assert_true(
            http_caller_submit(fixture->caller, call_new("GET", url_of(fixture, "/silent"))));
    receiver_wait_answering(fixture->receiver, CALLS_IN_FLIGHT_MAX);
    http_caller_abort(fixture->caller);
    wait_over(fixture, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_end(fixture->over[i], CALL_ABORTED);
    assert_answer(get(fixture, url_of(fixture, "/ok")), 200,
                  "fine"); /* later ones are not concerned */
}

static void a_caller_may_be_freed_with_calls_under_way(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < CALLS_IN_FLIGHT_MAX + 10; i++)
        assert_true(
            http_caller_submit(fixture->caller, call_new("GET", url_of(fixture, "/silent"))));
    receiver_wait_answering(fixture->receiver, CALLS_IN_FLIGHT_MAX);
    http_caller_free(fixture->caller);
    fixture->caller = NULL;
    receiver_wait_answering(fixture->receiver, 0); /* their connections are closed */
}

/* --- failures --- */

static void a_refused_connection_is_reported(void **state)
{
    struct fixture *fixture = *state;
    const char *url = url_of(fixture, "/ok");
    int port = fixture->receiver->port;
    receiver_stop(fixture->receiver);
    fixture->receiver = receiver_start();
    assert_int_not_equal(fixture->receiver->port, port);
    assert_end(get(fixture, url), CALL_CONNECT_FAILED);
}

static void an_unknown_name_is_reported(void **state)
{
    struct fixture *fixture = *state;
    assert_end(get(fixture, "http://nobody.test/"), CALL_ADDRESS_REFUSED);
}

static void a_connection_that_ends_early_is_reported(void **state)
{
    struct fixture *fixture = *state;
    const struct http_call *call = get(fixture, url_of(fixture, "/close"));
    assert_end(call, CALL_CONNECTION_LOST);
    call = get(fixture, url_of(fixture, "/half"));
    assert_end(call, CALL_CONNECTION_LOST);
    assert_int_equal(call->body.len, 0); /* half a response is none */
    assert_int_equal(call->head.len, 0);
}

static void a_connection_that_ends_within_the_headers_is_reported(void **state)
{
    struct fixture *fixture = *state;
    static const char *const PATHS[] = {"/half-head", "/half-line"};
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        const struct http_call *call = get(fixture, url_of(fixture, PATHS[i]));
        assert_end(call, CALL_CONNECTION_LOST);
        assert_int_equal(call->status, 0);
        assert_int_equal(call->head.len, 0);
    }
}

static void an_answer_that_is_not_http_is_reported(void **state)
{
    struct fixture *fixture = *state;
    assert_end(get(fixture, url_of(fixture, "/garbage")), CALL_FAILED);
    char url[64];
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d/ok", fixture->receiver->port);
    assert_end(get(fixture, url), CALL_TLS_FAILED);
}

static void a_receiver_that_takes_too_long_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    static const char *const PATHS[] = {"/silent", "/trickle"};
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        struct http_call_request request = request_to("GET", url_of(fixture, PATHS[i]));
        request.timeout_ms = 100;
        assert_end(perform_request(fixture, &request), CALL_TIMED_OUT);
    }
}

static void redirects_share_one_time_out(void **state)
{
    struct fixture *fixture = *state;
    char path[256];
    (void)snprintf(path, sizeof(path), "/to/302/%s",
                   url_at(fixture->other, "127.0.0.1", "/silent"));
    struct http_call_request request = request_to("GET", url_of(fixture, path));
    request.timeout_ms = 200;
    assert_end(perform_request(fixture, &request), CALL_TIMED_OUT);
}

static void release_slow_name(bool released)
{
    pthread_mutex_lock(&names_lock);
    slow_name_released = released;
    pthread_cond_broadcast(&names_changed);
    while (released && slow_lookups > 0)
        pthread_cond_wait(&names_changed, &names_lock);
    pthread_mutex_unlock(&names_lock);
}

static int lookups_under_way(void)
{
    pthread_mutex_lock(&names_lock);
    int count = slow_lookups;
    pthread_mutex_unlock(&names_lock);
    return count;
}

static void wait_for_lookups(int count)
{
    pthread_mutex_lock(&names_lock);
    while (slow_lookups < count)
        pthread_cond_wait(&names_changed, &names_lock);
    pthread_mutex_unlock(&names_lock);
}

/* Calls that are given up while libc looks up their name, on threads that are all under way. */
static void abort_in_lookups(struct fixture *fixture, int count)
{
    forget(fixture);
    for (int i = 0; i < count; i++)
        assert_true(http_caller_submit(fixture->caller, call_new("GET", "http://slow.test/")));
    wait_for_lookups(count);
    http_caller_abort(fixture->caller);
    wait_over(fixture, (size_t)count);
    for (int i = 0; i < count; i++)
        assert_end(fixture->over[i], CALL_ABORTED);
}

/* libc's resolver cannot be stopped: it is left alone, and as long as it may take a place stays
 * taken, so that names which take long cannot pile up threads. */
static void a_name_that_takes_long_holds_up_nobody(void **state)
{
    struct fixture *fixture = *state;
    release_slow_name(false);
    abort_in_lookups(fixture, CALLS_IN_FLIGHT_MAX - 1);
    assert_answer(get(fixture, url_of(fixture, "/ok")), 200, "fine");
    struct http_call_request slow = request_to("GET", "http://slow.test/");
    slow.timeout_ms = 20;
    /* A call's time may be over before its lookup begins; then the place is free for the next. */
    while (lookups_under_way() < CALLS_IN_FLIGHT_MAX)
        assert_end(perform_request(fixture, &slow), CALL_TIMED_OUT);
    const struct http_call *queued = perform_request(fixture, &slow);
    assert_end(queued, CALL_TIMED_OUT);
    assert_contains(queued->detail, "waited for other calls");
    assert_int_equal(lookups_under_way(), CALLS_IN_FLIGHT_MAX);
    release_slow_name(true);
}

/* --- bounds --- */

static void a_response_may_be_as_large_as_the_limit_and_no_larger(void **state)
{
    struct fixture *fixture = *state;
    const struct http_call *call = get(fixture, url_of(fixture, "/limit"));
    assert_end(call, CALL_ANSWERED);
    assert_int_equal(call->body.len, CALL_RESPONSE_MAX);
    static const char *const PATHS[] = {"/past", "/endless", "/gigabyte"};
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        call = get(fixture, url_of(fixture, PATHS[i]));
        assert_end(call, CALL_RESPONSE_TOO_LARGE);
        assert_null(call->body.ptr);
    }
}

static void header_lines_without_end_are_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_end(get(fixture, url_of(fixture, "/headers")), CALL_RESPONSE_TOO_LARGE);
    assert_end(get(fixture, url_of(fixture, "/interims")), CALL_RESPONSE_TOO_LARGE);
}

/* --- requests that are none --- */

static void bad_urls_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const URLS[] = {
        "",
        "one.test/ok",
        "http://",
        "ftp://one.test/",
        "file:///etc/passwd",
        "gopher://one.test/_x",
        "http://me@one.test/",
        "http://me:pass@one.test/",
        "http://one.test/a b",
        "http://one.test/\r\nX-Smuggled: 1",
        "http://one.test:99999/",
        "http://[::1/",
        "javascript:alert(1)",
    };
    for (size_t i = 0; i < ARRAY_LEN(URLS); i++) {
        const struct http_call *call = get(fixture, URLS[i]);
        if (call->end != CALL_REQUEST_INVALID)
            fail_msg("<%s> ended as %s: %s", URLS[i], call_end_code(call->end), call->detail);
    }
    assert_int_equal(fixture->receiver->request_count, 0);
}

static void bad_methods_and_headers_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static const struct http_call_header BAD[] = {
        {{"X-A", 3}, {"1\r\nX-B: 2", 9}},
        {{"X-A", 3}, {"1\n", 2}},
        {{"X-A", 3}, {"1\0", 2}},
        {{"X A", 3}, {"1", 1}},
        {{"X:A", 3}, {"1", 1}},
        {{"", 0}, {"1", 1}},
        {{"Host", 4}, {"elsewhere", 9}},
        {{"content-length", 14}, {"1", 1}},
        {{"Transfer-Encoding", 17}, {"chunked", 7}},
        {{"Connection", 10}, {"close", 5}},
        {{"Proxy-Authorization", 19}, {"x", 1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct http_call_request request = request_to("GET", url_of(fixture, "/ok"));
        request.headers = &BAD[i];
        request.header_count = 1;
        assert_end(perform_request(fixture, &request), CALL_REQUEST_INVALID);
    }
    static const char *const METHODS[] = {"", "GET /x", "G\r\nET", "GE:T"};
    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        struct http_call_request request = request_to(METHODS[i], url_of(fixture, "/ok"));
        assert_end(perform_request(fixture, &request), CALL_REQUEST_INVALID);
    }
    struct http_call_request head = request_to("HEAD", url_of(fixture, "/ok"));
    head.body = STR("x");
    assert_end(perform_request(fixture, &head), CALL_REQUEST_INVALID);
    char *large = malloc(CALL_HEAD_MAX);
    memset(large, 'x', CALL_HEAD_MAX);
    struct http_call_header big = {STR("X-Big"), {large, CALL_HEAD_MAX}};
    struct http_call_request request = request_to("GET", url_of(fixture, "/ok"));
    request.headers = &big;
    request.header_count = 1;
    assert_end(perform_request(fixture, &request), CALL_REQUEST_INVALID);
    free(large);
    assert_int_equal(fixture->receiver->request_count, 0);
}

int main(void)
{
    (void)setenv("http_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("https_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    const struct CMUnitTest tests[] = {
        with_fixture(an_answer_comes_back_whole),
        with_fixture(any_status_is_an_answer),
        with_fixture(interim_responses_are_passed_over),
        with_fixture(method_headers_and_body_arrive),
        with_fixture(a_request_without_a_body_says_so),
        with_fixture(head_gets_headers_however_large_the_thing_is),
        with_fixture(a_large_body_is_sent_without_asking),
        with_fixture(a_connection_is_used_again),
        with_fixture(proxies_of_the_environment_are_not_used),
        with_fixture(every_call_comes_back_once_and_not_too_many_run_at_once),
        with_fixture(past_the_queues_bound_calls_are_not_taken),
        with_fixture(a_call_that_waits_for_others_is_timed_out_in_the_queue),
        with_fixture(an_abort_brings_everything_back),
        with_fixture(a_caller_may_be_freed_with_calls_under_way),
        with_fixture(a_refused_connection_is_reported),
        with_fixture(an_unknown_name_is_reported),
        with_fixture(a_connection_that_ends_early_is_reported),
        with_fixture(a_connection_that_ends_within_the_headers_is_reported),
        with_fixture(an_answer_that_is_not_http_is_reported),
        with_fixture(a_receiver_that_takes_too_long_is_given_up),
        with_fixture(redirects_share_one_time_out),
        with_fixture(a_name_that_takes_long_holds_up_nobody),
        with_fixture(a_response_may_be_as_large_as_the_limit_and_no_larger),
        with_fixture(header_lines_without_end_are_refused),
        with_fixture(bad_urls_are_refused),
        with_fixture(bad_methods_and_headers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
