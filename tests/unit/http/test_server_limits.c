/* What ends a connection: slow clients, idle ones, too many of them, and the end of the server. */
#include "http/serving.h"

#include <sys/resource.h>

static double dropped(struct serving *s, const char *reason)
{
    struct buf text;
    char wanted[128];
    buf_init(&text, MIB);
    metrics_put_text(s->metrics, &text);
    (void)snprintf(wanted, sizeof(wanted), "pawl_http_connections_dropped_total{reason=\"%s\"} ",
                   reason);
    const char *at = strstr(text.ptr, wanted);
    double value = at != NULL ? strtod(at + strlen(wanted), NULL) : 0;
    buf_release(&text);
    return value;
}

/* What is logged while the test runs the server. */
static int begin_log(FILE **ret)
{
    int before = dup(STDERR_FILENO);
    *ret = tmpfile();
    assert_non_null(*ret);
    assert_true(dup2(fileno(*ret), STDERR_FILENO) >= 0);
    return before;
}

static struct str end_log(FILE *log, int before)
{
    static char text[64 * KIB];
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(log);
    size_t len = fread(text, 1, sizeof(text) - 1, log);
    text[len] = '\0';
    fclose(log);
    return (struct str){text, len};
}

static void dropped_connections_are_logged_now_and_then(void **state)
{
    struct serving *s = *state;
    FILE *file;
    int before = begin_log(&file);
    for (int round = 0; round < 3; round++) {
        int fds[3];
        for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
            fds[i] = client_open(s);
            client_send(s, fds[i], STR("BAD\r\n"));
        }
        pass_ms(s, HTTP_LINGER_MS);
        for (size_t i = 0; i < ARRAY_LEN(fds); i++)
            close(fds[i]);
        if (round == 1)
            pass_ms(s, HTTP_DROPS_LOG_MS);
    }
    struct str log = end_log(file, before);
    has_text(log, "dropped connections count=1 last_reason=slow_close");
    has_text(log, "dropped connections count=6 last_reason=slow_close");
    has_no_text(log, "count=2");
}

static void a_client_that_sends_no_head_is_cut_off(void **state)
{
    struct serving *s = *state;
    int silent = client_open(s);
    int slow = client_open(s);
    settle(s);
    for (int ms = 0; ms < HTTP_HEAD_TIMEOUT_MS - 1000; ms += 1000) {
        client_send(s, slow, STR("G"));
        pass_ms(s, 1000);
    }
    assert_int_equal(http_server_connections(s->server), 2);
    pass_ms(s, 1000);
    assert_int_equal(http_server_connections(s->server), 0);
    assert_true(client_is_closed(s, silent) && client_is_closed(s, slow));
    assert_true(dropped(s, "slow_head") == 2);
    close(silent);
    close(slow);
}

static void an_idle_connection_is_closed_after_a_while(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/a")));
    (void)client_read(s, fd, "GET /a? ");
    pass_ms(s, HTTP_IDLE_TIMEOUT_S * 1000 - 1);
    assert_int_equal(http_server_connections(s->server), 1);
    assert_in_range(http_server_timeout_ms(s->server), 0, HTTP_SWEEP_MS);
    pass_ms(s, HTTP_SWEEP_MS);
    assert_int_equal(http_server_connections(s->server), 0);
    assert_true(dropped(s, "idle") == 1);
    assert_int_equal(http_server_timeout_ms(s->server), -1);
    close(fd);
}

static void a_body_is_cut_off_by_its_rate(void **state)
{
    struct serving *s = *state;
    static char block[HTTP_RATE_MIN];
    int slow = client_open(s);
    int steady = client_open(s);
    static const char HEAD[] = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    client_send(s, slow, STR("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
    client_send(s, steady, str_of(HEAD));
    for (int ms = 0; ms <= HTTP_BODY_GRACE_MS + 1000; ms += 1000) {
        if (http_server_connections(s->server) == 2)
            client_send(s, slow, STR("1\r\n \r\n"));
        client_send(s, steady, (struct str){block, sizeof(block)});
        pass_ms(s, 1000);
    }
    assert_int_equal(http_server_connections(s->server), 1);
    assert_true(dropped(s, "slow_body") == 1);
    pass_ms(s, 2 * HTTP_BODY_GRACE_MS);
    assert_int_equal(http_server_connections(s->server), 0);
    close(slow);
    close(steady);
}

static void a_reader_is_cut_off_by_its_rate(void **state)
{
    struct serving *s = *state;
    static char large[32 * MIB]; /* more than two sockets hold */
    struct http_reply reply;
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    http_reply_init(&reply, 200, STR("text/plain"), (struct str){large, sizeof(large)});
    http_send(s->seen[0].req, &reply);
    settle(s);
    assert_int_equal(http_server_connections(s->server), 1);
    pass_ms(s, HTTP_STREAM_STALL_MS);
    assert_int_equal(http_server_connections(s->server), 1); /* it has taken a lot at first */
    pass_ms(s, INT64_C(1000) * (int64_t)sizeof(large) / HTTP_RATE_MIN);
    assert_int_equal(http_server_connections(s->server), 0);
    assert_int_equal(s->seen[0].unsent, 1);
    assert_true(dropped(s, "slow_reader") == 1);
    close(fd);
}

static void a_handler_and_a_quiet_stream_may_take_as_long_as_they_want(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    pass_ms(s, 24 * 3600 * 1000);
    assert_int_equal(http_server_timeout_ms(s->server), -1);
    send_text(s->seen[0].req, 200, "late");
    (void)client_read(s, fd, "late");
    close(fd);
}

static void a_refused_client_that_does_not_leave_is_cut_off(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR("BAD\r\n"));
    settle(s);
    assert_int_equal(http_server_connections(s->server), 1);
    pass_ms(s, HTTP_LINGER_MS);
    assert_int_equal(http_server_connections(s->server), 0);
    close(fd);
}

/* --- as many as there may be --- */

static int few_files(void **state)
{
    struct rlimit few = {400, 400};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    return serving_start(state);
}

static void without_descriptors_who_has_been_idle_longest_goes(void **state)
{
    struct serving *s = *state;
    enum { FITS = 400 - HTTP_FILES_RESERVED, CLIENTS = 120 };
    static int fds[CLIENTS];
    /* Both ends are in this process: its descriptors run out first. */
    for (size_t i = 0; i < CLIENTS; i++) {
        fds[i] = client_open(s);
        client_send(s, fds[i], STR(GET("/a")));
        (void)client_read(s, fds[i], "GET /a? ");
        seen_drop(&s->seen[0]);
        s->seen_count = 0;
        s->seen[0].cleaned = 0;
        s->mono_ms++;
    }
    assert_int_equal(http_server_connections(s->server), CLIENTS);
    assert_true(CLIENTS < FITS);
    int spare[400];
    size_t spares = 0;
    while ((spare[spares] = dup(0)) >= 0)
        spares++;
    close(spare[--spares]); /* for the client; the server has none left */
    int fd = client_open(s);
    for (int i = 0; i < 5; i++)
        turn(s);
    while (spares > 0)
        close(spare[--spares]);
    assert_true(client_is_closed(s, fds[0]));
    assert_false(client_is_closed(s, fds[1]));
    client_send(s, fd, STR(GET("/new")));
    (void)client_read(s, fd, "GET /new? ");
    assert_true(dropped(s, "evicted") >= 1);
    for (size_t i = 0; i < CLIENTS; i++)
        close(fds[i]);
    close(fd);
}

/* As many connections as descriptors allow, and these are few while the server starts. */
static int few_connections(void **state)
{
    struct rlimit limit, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    few.rlim_cur = 2 * HTTP_FILES_RESERVED + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = serving_start(state);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return rc;
}

enum { FEW = HTTP_FILES_RESERVED + 1 };

static void busy_connections_are_not_evicted(void **state)
{
    struct serving *s = *state;
    static int fds[FEW];
    for (size_t i = 0; i < FEW; i++) {
        fds[i] = client_open(s);
        client_send(s, fds[i], STR("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"));
    }
    assert_int_equal(http_server_connections(s->server), FEW);
    int more = client_open(s);
    struct str answer = client_read(s, more, "");
    has_text(answer, "HTTP/1.1 503 ");
    has_text(answer, "\"code\":\"OVERLOADED\"");
    assert_true(dropped(s, "full") == 1);
    assert_int_equal(http_server_connections(s->server), FEW);
    close(fds[0]);
    close(more);
    settle(s);
    more = client_open(s);
    client_send(s, more, STR(GET("/a")));
    (void)client_read(s, more, "GET /a? ");
    for (size_t i = 1; i < FEW; i++)
        close(fds[i]);
    close(more);
}

static void silent_connections_are_evicted(void **state)
{
    struct serving *s = *state;
    static int fds[FEW];
    for (size_t i = 0; i < FEW; i++) {
        fds[i] = client_open(s);
        settle(s);
    }
    int more = client_open(s);
    client_send(s, more, STR(GET("/a")));
    (void)client_read(s, more, "GET /a? ");
    assert_true(client_is_closed(s, fds[0]));
    assert_false(client_is_closed(s, fds[1]));
    assert_true(dropped(s, "evicted") == 1);
    assert_int_equal(http_server_connections(s->server), FEW);
    for (size_t i = 0; i < FEW; i++)
        close(fds[i]);
    close(more);
}

/* --- as many as one address may have --- */

enum { PER_PEER = 3 };

static int few_per_peer(void **state)
{
    static struct serving s;
    serving_open(&s, (struct http_config){.connections_per_peer_max = PER_PEER});
    *state = &s;
    return 0;
}

static void an_address_with_too_many_connections_loses_the_one_that_was_idle_longest(void **state)
{
    struct serving *s = *state;
    int other = client_open_from(s, "127.0.0.2"); /* idle for longer than any of them */
    client_send(s, other, STR(GET("/other")));
    (void)client_read(s, other, "GET /other? ");
    int fds[PER_PEER + 1];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = client_open(s);
        client_send(s, fds[i], STR(GET("/a")));
        (void)client_read(s, fds[i], "GET /a? ");
    }
    assert_true(client_is_closed(s, fds[0]));
    assert_false(client_is_closed(s, fds[1]));
    assert_false(client_is_closed(s, other));
    assert_int_equal(http_server_connections(s->server), PER_PEER + 1);
    assert_true(dropped(s, "evicted") == 1);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    close(other);
}

static void an_address_whose_connections_are_all_busy_gets_no_more(void **state)
{
    struct serving *s = *state;
    int fds[PER_PEER];
    for (size_t i = 0; i < PER_PEER; i++) {
        fds[i] = client_open(s);
        client_send(s, fds[i], STR(GET("/later")));
    }
    int more = client_open(s);
    has_text(client_read(s, more, ""), "\"code\":\"OVERLOADED\"");
    assert_true(dropped(s, "full") == 1);
    int other = client_open_from(s, "127.0.0.2");
    client_send(s, other, STR(GET("/other")));
    (void)client_read(s, other, "GET /other? ");
    close(fds[0]); /* makes room */
    settle(s);
    http_hang_up(s->seen[0].req);
    close(more);
    more = client_open(s);
    client_send(s, more, STR(GET("/a")));
    (void)client_read(s, more, "GET /a? ");
    for (size_t i = 1; i < PER_PEER; i++) {
        http_hang_up(s->seen[i].req);
        close(fds[i]);
    }
    close(other);
    close(more);
}

/* --- as many as one tenant may have --- */

enum { PER_TENANT = 3 };

static int few_per_tenant(void **state)
{
    static struct serving s;
    serving_open(&s, (struct http_config){.connections_per_tenant_max = PER_TENANT});
    *state = &s;
    return 0;
}

#define GET_OF(tenant, path) "GET " path " HTTP/1.1\r\nHost: a\r\nTenant: " tenant "\r\n\r\n"

static int client_of(struct serving *s, const char *request, const char *answer)
{
    int fd = client_open(s);
    client_send(s, fd, str_of(request));
    if (answer[0] != '\0')
        (void)client_read(s, fd, answer);
    return fd;
}

static void a_tenant_with_too_many_connections_loses_the_one_that_was_idle_longest(void **state)
{
    struct serving *s = *state;
    int nobody = client_of(s, GET("/nobody"), "GET /nobody? ");
    int other = client_of(s, GET_OF("other", "/other"), "GET /other? ");
    int fds[PER_TENANT + 1];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = client_of(s, GET_OF("acme", "/a"), "GET /a? ");
    assert_true(client_is_closed(s, fds[0]));
    assert_false(client_is_closed(s, fds[1]));
    assert_false(client_is_closed(s, other) || client_is_closed(s, nobody));
    assert_true(dropped(s, "evicted") == 1);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    close(other);
    close(nobody);
}

static void a_connection_counts_for_the_tenant_of_its_last_request(void **state)
{
    struct serving *s = *state;
    int fds[PER_TENANT];
    for (size_t i = 0; i < PER_TENANT; i++)
        fds[i] = client_of(s, GET_OF("acme", "/a"), "GET /a? ");
    client_send(s, fds[0], STR(GET_OF("other", "/b"))); /* a proxy's: now for somebody else */
    (void)client_read(s, fds[0], "GET /b? ");
    int more = client_of(s, GET_OF("acme", "/c"), "GET /c? ");
    for (size_t i = 0; i < PER_TENANT; i++)
        assert_false(client_is_closed(s, fds[i]));
    for (size_t i = 0; i < PER_TENANT; i++)
        close(fds[i]);
    close(more);
}

static void a_tenant_whose_connections_are_all_busy_is_refused(void **state)
{
    struct serving *s = *state;
    int fds[PER_TENANT];
    for (size_t i = 0; i < PER_TENANT; i++)
        fds[i] = client_of(s, GET_OF("acme", "/later"), "");
    int more = client_of(s, GET_OF("acme", "/a"), "the tenant has too many");
    client_send(s, more, STR(GET_OF("acme", "/a"))); /* and so is the next on this connection */
    (void)client_read(s, more, "the tenant has too many");
    client_send(s, more, STR(GET_OF("other", "/b")));
    (void)client_read(s, more, "GET /b? ");
    send_text(s->seen[0].req, 200, "done");
    (void)client_read(s, fds[0], "done");
    client_send(s, more, STR(GET_OF("acme", "/a"))); /* the first is idle now, and makes room */
    (void)client_read(s, more, "GET /a? ");
    assert_true(client_is_closed(s, fds[0]));
    for (size_t i = 1; i < PER_TENANT; i++)
        http_hang_up(s->seen[i].req);
    settle(s);
    for (size_t i = 0; i < PER_TENANT; i++)
        close(fds[i]);
    close(more);
}

/* --- the end --- */

static void a_server_that_drains_finishes_what_it_has(void **state)
{
    struct serving *s = *state;
    int idle = client_open(s), fresh = client_open(s), busy = client_open(s), half = client_open(s);
    client_send(s, idle, STR(GET("/a")));
    (void)client_read(s, idle, "GET /a? ");
    client_send(s, busy, STR(GET("/later") GET("/ahead")));
    client_send(s, half, STR("GET /half HTTP/1.1\r\n"));
    http_server_drain(s->server);
    http_server_drain(s->server);
    settle(s);
    assert_true(client_is_closed(s, idle) && client_is_closed(s, fresh));
    assert_int_equal(http_server_connections(s->server), 2);
    send_text(s->seen[1].req, 200, "done");
    struct str answer = client_read(s, busy, "");
    has_text(answer, "Connection: close\r\n");
    assert_true(str_ends_with(answer, STR("done"))); /* what was sent ahead is not served */
    client_send(s, half, STR("Host: a\r\n\r\n"));
    has_text(client_read(s, half, ""), "GET /half? ");
    close(busy);
    close(half);
    settle(s);
    assert_int_equal(http_server_connections(s->server), 0);
    close(idle);
    close(fresh);
}

static void a_server_that_is_freed_closes_what_is_open(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    send_text(s->seen[0].req, 200, "x");
    int idle = client_open(s);
    settle(s);
    (void)idle;
    (void)fd; /* the teardown frees it with both open */
}

static void an_address_that_is_taken_is_reported(void **state)
{
    struct serving *s = *state;
    struct http_config config = {.env = &s->env, .handler = serving_handle};
    static const char *const BAD[] = {"nonsense", "127.0.0.1:99999", "256.0.0.1:1"};
    struct http_server *other;
    char taken[64];
    (void)snprintf(taken, sizeof(taken), "127.0.0.1:%d", s->port);
    for (size_t i = 0; i <= ARRAY_LEN(BAD); i++) {
        struct problem p;
        problem_init(&p);
        config.listen = i < ARRAY_LEN(BAD) ? BAD[i] : taken;
        assert_int_equal(http_server_start(&config, &p, &other), ERR_BAD_REQUEST);
        assert_true(p.detail[0] != '\0');
        problem_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        serving_test(dropped_connections_are_logged_now_and_then),
        serving_test(a_client_that_sends_no_head_is_cut_off),
        serving_test(an_idle_connection_is_closed_after_a_while),
        serving_test(a_body_is_cut_off_by_its_rate),
        serving_test(a_reader_is_cut_off_by_its_rate),
        serving_test(a_handler_and_a_quiet_stream_may_take_as_long_as_they_want),
        serving_test(a_refused_client_that_does_not_leave_is_cut_off),
        serving_test(a_server_that_drains_finishes_what_it_has),
        serving_test(a_server_that_is_freed_closes_what_is_open),
        serving_test(an_address_that_is_taken_is_reported),
        cmocka_unit_test_setup_teardown(
            an_address_with_too_many_connections_loses_the_one_that_was_idle_longest, few_per_peer,
            serving_stop),
        cmocka_unit_test_setup_teardown(an_address_whose_connections_are_all_busy_gets_no_more,
                                        few_per_peer, serving_stop),
        cmocka_unit_test_setup_teardown(
            a_tenant_with_too_many_connections_loses_the_one_that_was_idle_longest, few_per_tenant,
            serving_stop),
        cmocka_unit_test_setup_teardown(a_connection_counts_for_the_tenant_of_its_last_request,
                                        few_per_tenant, serving_stop),
        cmocka_unit_test_setup_teardown(a_tenant_whose_connections_are_all_busy_is_refused,
                                        few_per_tenant, serving_stop),
        cmocka_unit_test_setup_teardown(busy_connections_are_not_evicted, few_connections,
                                        serving_stop),
        cmocka_unit_test_setup_teardown(silent_connections_are_evicted, few_connections,
                                        serving_stop),
        cmocka_unit_test_setup_teardown(without_descriptors_who_has_been_idle_longest_goes,
                                        few_files, serving_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
