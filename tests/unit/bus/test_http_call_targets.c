/* Where an outbound call may go: redirects, the credentials that follow them, and addresses. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "bus/http_call_support.h"

/* --- the fixture --- */

static int setup_public_only(void **state)
{
    return setup(state, REACH_PUBLIC);
}

static int setup_dev(void **state)
{
    return setup(state, REACH_LOOPBACK);
}

/* --- redirects --- */

static void redirects_are_followed_so_far_and_no_further(void **state)
{
    struct fixture *fixture = *state;
    assert_answer(get(fixture, url_of(fixture, "/down/5")), 200, "ground");
    assert_int_equal(fixture->receiver->request_count, 6);
    assert_end(get(fixture, url_of(fixture, "/down/6")), CALL_TOO_MANY_REDIRECTS);
    assert_int_equal(fixture->receiver->request_count, 12);
    assert_end(get(fixture, url_of(fixture, "/loop")), CALL_TOO_MANY_REDIRECTS);
    assert_int_equal(fixture->receiver->request_count, 18);
}

static void a_call_that_follows_nothing_gets_the_redirect(void **state)
{
    struct fixture *fixture = *state;
    struct http_call_request request = request_to("GET", url_of(fixture, "/down/1"));
    request.redirects_max = 0;
    const struct http_call *call = perform_request(fixture, &request);
    assert_answer(call, 302, "");
    assert_str(http_call_header(call, STR("location")), "0");
    assert_int_equal(fixture->receiver->request_count, 1);
    assert_answer(get(fixture, url_of(fixture, "/300")), 302,
                  "nowhere"); /* no Location, no redirect */
}

static void a_redirect_keeps_or_drops_method_and_body_as_its_status_says(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *status;
        const char *method;
        const char *becomes;
        bool body;
    } CASES[] = {
        {"301", "POST", "GET", false},   {"302", "POST", "GET", false},
        {"303", "POST", "GET", false},   {"303", "PUT", "GET", false},
        {"302", "PUT", "PUT", true},     {"301", "DELETE", "DELETE", true},
        {"307", "POST", "POST", true},   {"308", "POST", "POST", true},
        {"307", "PATCH", "PATCH", true}, {"302", "GET", "GET", true},
    };
    const struct http_call_header type = {STR("Content-Type"), STR("text/x")};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/to/%s//echo", CASES[i].status);
        struct http_call_request request = request_to(CASES[i].method, url_of(fixture, path));
        request.body = STR("the body");
        request.headers = &type;
        request.header_count = 1;
        const struct http_call *call = perform_request(fixture, &request);
        assert_end(call, CALL_ANSWERED);
        char line[64];
        (void)snprintf(line, sizeof(line), "%s /echo ", CASES[i].becomes);
        if (strncmp(call->body.ptr, line, strlen(line)) != 0)
            fail_msg("case %zu: %s", i, call->body.ptr);
        assert_int_equal(strstr(call->body.ptr, "the body") != NULL, CASES[i].body);
        assert_int_equal(strcasestr(call->body.ptr, "content-type") != NULL, CASES[i].body);
    }
}

static const struct http_call *get_with_secrets(struct fixture *fixture, const char *url)
{
    static const struct http_call_header HEADERS[] = {
        {{"Authorization", 13}, {"Bearer secret-1", 15}},
        {{"Cookie", 6}, {"secret-2", 8}},
        {{"X-Api-Key", 9}, {"secret-3", 8}},
        {{"Idempotency-Key", 15}, {"key-1", 5}},
        {{"traceparent", 11}, {"trace-1", 7}},
        {{"Accept", 6}, {"text/z", 6}},
    };
    struct http_call_request request = request_to("GET", url);
    request.headers = HEADERS;
    request.header_count = ARRAY_LEN(HEADERS);
    return perform_request(fixture, &request);
}

static void credentials_stay_with_their_origin(void **state)
{
    struct fixture *fixture = *state;
    char path[256];
    const char *const ELSEWHERE[] = {
        url_at(fixture->other, "one.test", "/echo"),    /* another port */
        url_at(fixture->receiver, "two.test", "/echo"), /* another name */
    };
    for (size_t i = 0; i < ARRAY_LEN(ELSEWHERE); i++) {
        (void)snprintf(path, sizeof(path), "/to/307/%s", ELSEWHERE[i]);
        const struct http_call *call =
            get_with_secrets(fixture, url_at(fixture->receiver, "one.test", path));
        assert_end(call, CALL_ANSWERED);
        assert_lacks(call->body.ptr, "secret");
        assert_contains(call->body.ptr, "\r\nIdempotency-Key: key-1\r\n");
        assert_contains(call->body.ptr, "\r\ntraceparent: trace-1\r\n");
        assert_contains(call->body.ptr, "\r\nAccept: text/z\r\n");
    }
    /* The same origin, in other letters, gets all; so does the way back to it. */
    char there[256];
    (void)snprintf(path, sizeof(path), "/to/307/%s",
                   url_at(fixture->receiver, "ONE.test", "/echo"));
    (void)snprintf(there, sizeof(there), "/to/307/%s", url_at(fixture->other, "two.test", path));
    const char *const HOME[] = {path, there};
    for (size_t i = 0; i < ARRAY_LEN(HOME); i++) {
        const struct http_call *call =
            get_with_secrets(fixture, url_at(fixture->receiver, "one.test", HOME[i]));
        assert_end(call, CALL_ANSWERED);
        assert_contains(call->body.ptr, "\r\nAuthorization: Bearer secret-1\r\n");
        assert_contains(call->body.ptr, "\r\nCookie: secret-2\r\n");
        assert_contains(call->body.ptr, "\r\nX-Api-Key: secret-3\r\n");
    }
}

static void redirects_go_to_http_only(void **state)
{
    struct fixture *fixture = *state;
    static const char *const TO[] = {
        "/to/302/ftp://one.test/x",       "/to/302/file:///etc/passwd",
        "/to/302/gopher://one.test/",     "/to/302/http://me:pass@one.test/",
        "/to/302/dict://one.test:11111/",
    };
    for (size_t i = 0; i < ARRAY_LEN(TO); i++)
        assert_end(get(fixture, url_of(fixture, TO[i])), CALL_REDIRECT_REFUSED);
}

/* --- addresses, with nothing but public ones allowed --- */

static void private_addresses_are_refused_however_they_are_written(void **state)
{
    struct fixture *fixture = *state;
    static const char *const HOSTS[] = {
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "one.test",
        "10.1.2.3",
        "private.test",
        "169.254.169.254",
        "[fd00::1]",
        "100.64.0.1",
        "192.168.0.1",
        "metadata.test",
        "[fe80::1]",
        "224.0.0.1",
        "mapped.test",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    };
    for (size_t i = 0; i < ARRAY_LEN(HOSTS); i++) {
        const struct http_call *call = get(fixture, url_at(fixture->receiver, HOSTS[i], "/ok"));
        if (call->end != CALL_ADDRESS_REFUSED)
            fail_msg("%s ended as %s: %s", HOSTS[i], call_end_code(call->end), call->detail);
    }
    assert_int_equal(fixture->receiver->connection_count, 0);
}

static void public_addresses_are_called(void **state)
{
    struct fixture *fixture = *state;
    assert_answer(get(fixture, "http://public.test/ok"), 200, "fine");
    assert_answer(get(fixture, "http://" SOMEWHERE_PUBLIC "/ok"), 200, "fine");
}

static void of_a_names_addresses_only_public_ones_are_tried(void **state)
{
    struct fixture *fixture = *state;
    /* Its loopback address listens too, and comes first. */
    assert_answer(get(fixture, url_at(fixture->other, "mixed.test", "/ok")), 200, "fine");
    assert_int_equal(fixture->other->connection_count, 0);
    assert_int_equal(fixture->receiver->connection_count, 1);
}

static void a_redirect_to_a_private_address_is_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const HOSTS[] = {"127.0.0.1", "one.test", "[::1]", "localhost"};
    for (size_t i = 0; i < ARRAY_LEN(HOSTS); i++) {
        char url[256];
        (void)snprintf(url, sizeof(url), "http://public.test/to/302/%s",
                       url_at(fixture->other, HOSTS[i], "/ok"));
        assert_end(get(fixture, url), CALL_ADDRESS_REFUSED);
    }
    assert_int_equal(fixture->other->connection_count, 0);
}

/* A name that was public at the first look and is loopback at the second: the look that counts is
 * the one of the connection. */
static void a_name_that_changes_its_mind_is_refused(void **state)
{
    struct fixture *fixture = *state;
    atomic_store(&flip_lookups, 0);
    struct addrinfo *first = NULL;
    assert_int_equal(getaddrinfo("flip.test", "80", NULL, &first), 0);
    freeaddrinfo(first);
    assert_end(get(fixture, url_at(fixture->other, "flip.test", "/ok")), CALL_ADDRESS_REFUSED);
    assert_int_equal(fixture->other->connection_count, 0);
}

/* Who writes a workflow does not learn which names exist inside. */
static void a_name_that_is_private_and_one_that_is_none_look_alike(void **state)
{
    struct fixture *fixture = *state;
    char detail[CALL_DETAIL_MAX];
    const struct http_call *none = get(fixture, "http://nobody.test/");
    assert_end(none, CALL_ADDRESS_REFUSED);
    memcpy(detail, none->detail, sizeof(detail));
    assert_non_null(strstr(detail, "--allow-private-addresses"));
    const struct http_call *private = get(fixture, "http://private.test/");
    assert_end(private, CALL_ADDRESS_REFUSED);
    assert_string_equal(private->detail, detail);
}

static void in_development_loopback_is_called_and_no_other_private_address(void **state)
{
    struct fixture *fixture = *state;
    static const char *const REFUSED[] = {"0.0.0.0", "10.1.2.3", "private.test", "169.254.169.254",
                                          "[fd00::1]"};
    assert_answer(get(fixture, url_at(fixture->receiver, "127.0.0.1", "/ok")), 200, "fine");
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        const struct http_call *call = get(fixture, url_at(fixture->receiver, REFUSED[i], "/ok"));
        assert_end(call, CALL_ADDRESS_REFUSED);
        assert_non_null(strstr(call->detail, "--allow-private-addresses"));
    }
}
#define public_only(f) cmocka_unit_test_setup_teardown(f, setup_public_only, teardown)
#define in_development(f) cmocka_unit_test_setup_teardown(f, setup_dev, teardown)

int main(void)
{
    (void)setenv("http_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("https_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    const struct CMUnitTest tests[] = {
        with_fixture(redirects_are_followed_so_far_and_no_further),
        with_fixture(a_call_that_follows_nothing_gets_the_redirect),
        with_fixture(a_redirect_keeps_or_drops_method_and_body_as_its_status_says),
        with_fixture(credentials_stay_with_their_origin),
        with_fixture(redirects_go_to_http_only),
        public_only(private_addresses_are_refused_however_they_are_written),
        public_only(public_addresses_are_called),
        public_only(of_a_names_addresses_only_public_ones_are_tried),
        public_only(a_redirect_to_a_private_address_is_refused),
        public_only(a_name_that_changes_its_mind_is_refused),
        public_only(a_name_that_is_private_and_one_that_is_none_look_alike),
        in_development(in_development_loopback_is_called_and_no_other_private_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
