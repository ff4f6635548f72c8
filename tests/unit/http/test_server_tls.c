/* The server over TLS: what it accepts, and that everything works as without. */
#include "http/pems.h"
#include "http/serving.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

static struct pems pems;
static char large[3 * MIB];

static int tls_start(void **state)
{
    static struct serving s;
    pems_open(&pems, "first", 1);
    serving_open(&s, (struct http_config){.tls_cert = pems.cert, .tls_key = pems.key});
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 23);
    *state = &s;
    return 0;
}

static int tls_stop(void **state)
{
    pems_close(&pems);
    return serving_stop(state);
}

/* --- a client --- */

struct client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
};

static void client_set_up(struct client *c, struct serving *s)
{
    c->ctx = SSL_CTX_new(TLS_client_method());
    assert_non_null(c->ctx);
    SSL_CTX_set_options(c->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_security_level(c->ctx, 0); /* it offers what it should not be given */
    c->ssl = SSL_new(c->ctx);
    c->fd = client_open(s);
    assert_int_equal(SSL_set_fd(c->ssl, c->fd), 1);
}

static bool client_shake_hands(struct client *c, struct serving *s)
{
    for (int i = 0; i < PATIENCE; i++) {
        int rc = SSL_connect(c->ssl);
        if (rc == 1)
            return true;
        int why = SSL_get_error(c->ssl, rc);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return false;
        turn(s);
    }
    return false;
}

static void client_write(struct client *c, struct serving *s, struct str bytes)
{
    size_t sent;
    for (int i = 0; bytes.len > 0; i++) {
        assert_true(i < PATIENCE);
        SSL_set_mode(c->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE);
        if (SSL_write_ex(c->ssl, bytes.ptr, bytes.len, &sent) == 1)
            bytes = (struct str){bytes.ptr + sent, bytes.len - sent};
        turn(s);
    }
}

/* Until the text ends so, or the server closes (""). */
static struct str client_take(struct client *c, struct serving *s, const char *end)
{
    static char text[8 * MIB];
    size_t len = 0, got;
    for (int i = 0; i < 4 * PATIENCE; i++) {
        int rc = SSL_read_ex(c->ssl, text + len, sizeof(text) - 1 - len, &got);
        int why = SSL_get_error(c->ssl, rc);
        len += rc == 1 ? got : 0;
        text[len] = '\0';
        bool closed = rc != 1 && why != SSL_ERROR_WANT_READ;
        if (closed || (end[0] != '\0' && str_ends_with((struct str){text, len}, str_of(end))))
            return (struct str){text, len};
        turn(s);
    }
    fail_msg("no %s in: %s", end, text);
    return STR_NONE;
}

static void client_leave(struct client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
    ERR_clear_error();
}

static void client_begin(struct client *c, struct serving *s)
{
    client_set_up(c, s);
    assert_true(client_shake_hands(c, s));
}

/* --- as without TLS --- */

static void requests_are_answered_and_the_connection_is_kept(void **state)
{
    struct serving *s = *state;
    struct client c;
    client_begin(&c, s);
    assert_memory_equal(http_server_url(s->server), "https://", 8);
    for (int i = 0; i < 3; i++) {
        client_write(&c, s,
                     STR(GET("/a") "PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"));
        has_text(client_take(&c, s, "PUT /b? hi"), "GET /a? ");
    }
    client_write(&c, s, STR(GET_LAST("/c")));
    has_text(client_take(&c, s, ""), "GET /c? ");
    client_leave(&c);
    settle(s);
    assert_int_equal(http_server_connections(s->server), 0);
}

static void large_bodies_and_answers_pass(void **state)
{
    struct serving *s = *state;
    struct http_reply reply;
    struct client c;
    char head[128];
    client_begin(&c, s);
    (void)snprintf(head, sizeof(head),
                   "PUT /later HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", HTTP_BODY_MAX);
    client_write(&c, s, str_of(head));
    client_write(&c, s, (struct str){large, HTTP_BODY_MAX});
    wait_for_seen(s, 1);
    assert_memory_equal(s->seen[0].req->body.ptr, large, HTTP_BODY_MAX);
    http_reply_init(&reply, 200, STR("text/plain"), (struct str){large, sizeof(large)});
    http_send(s->seen[0].req, &reply);
    client_write(&c, s, STR(GET_LAST("/end")));
    struct str all = client_take(&c, s, "");
    assert_memory_equal(strstr(all.ptr, "\r\n\r\n") + 4, large, sizeof(large));
    has_text(all, "GET /end? ");
    client_leave(&c);
}

static void a_file_passes(void **state)
{
    struct serving *s = *state;
    struct http_reply reply;
    struct client c;
    FILE *file = tmpfile();
    assert_int_equal(fwrite(large, 1, sizeof(large), file), sizeof(large));
    fflush(file);
    client_begin(&c, s);
    client_write(&c, s, STR(GET_LAST("/later")));
    settle(s);
    http_reply_init(&reply, 200, STR("text/plain"), STR(""));
    reply.file_fd = dup(fileno(file));
    fclose(file);
    http_send(s->seen[0].req, &reply);
    struct str all = client_take(&c, s, "");
    assert_memory_equal(strstr(all.ptr, "\r\n\r\n") + 4, large, sizeof(large));
    client_leave(&c);
}

static int pieces;

static enum http_piece next_piece(void *user, struct str *ret)
{
    (void)user;
    *ret = pieces % 3 == 2 ? (struct str){large, 100000} : STR("small");
    return pieces++ < 60 ? HTTP_PIECE : HTTP_END;
}

static void no_more(void *user)
{
    (void)user;
    pieces = -1;
}

static void a_stream_passes(void **state)
{
    static const struct http_source SOURCE = {next_piece, no_more};
    struct serving *s = *state;
    struct http_reply reply;
    struct client c;
    client_begin(&c, s);
    client_write(&c, s, STR("GET /later HTTP/1.0\r\n\r\n"));
    settle(s);
    pieces = 0;
    http_reply_init(&reply, 200, STR("text/plain"), STR(""));
    http_send_stream(s->seen[0].req, &reply, &SOURCE);
    struct str all = client_take(&c, s, "");
    const char *body = strstr(all.ptr, "\r\n\r\n") + 4;
    assert_int_equal(all.len - (size_t)(body - all.ptr), 20 * (100000 + 10));
    for (int i = 0; i < 20; i++, body += 100000 + 10) {
        assert_memory_equal(body, "smallsmall", 10);
        assert_memory_equal(body + 10, large, 100000);
    }
    assert_int_equal(pieces, -1);
    client_leave(&c);
}

static void a_client_that_leaves_is_noticed(void **state)
{
    struct serving *s = *state;
    struct client c;
    client_begin(&c, s);
    client_write(&c, s, STR(GET("/later")));
    settle(s);
    (void)SSL_shutdown(c.ssl);
    client_leave(&c);
    settle(s);
    assert_int_equal(s->seen[0].disconnected, 1);
    send_text(s->seen[0].req, 200, "nobody");
    settle(s);
    assert_int_equal(http_server_connections(s->server), 0);
}

static void a_handshake_that_does_not_end_is_cut_off(void **state)
{
    struct serving *s = *state;
    struct client c;
    client_set_up(&c, s);
    (void)SSL_connect(c.ssl);
    settle(s);
    assert_int_equal(http_server_connections(s->server), 1);
    pass_ms(s, HTTP_HEAD_TIMEOUT_MS);
    assert_int_equal(http_server_connections(s->server), 0);
    client_leave(&c);
}

static size_t answered_count(const struct client *clients, size_t count)
{
    size_t answered = 0;
    for (size_t i = 0; i < count; i++) {
        char byte;
        answered += recv(clients[i].fd, &byte, 1, MSG_PEEK) == 1;
    }
    return answered;
}

static void many_handshakes_leave_others_their_turn(void **state)
{
    enum { MANY = 3 * HTTP_HANDSHAKES_PER_TURN_MAX };
    struct serving *s = *state;
    struct client known, clients[MANY];
    client_begin(&known, s);
    for (size_t i = 0; i < MANY; i++)
        client_set_up(&clients[i], s);
    settle(s);
    for (size_t i = 0; i < MANY; i++)
        assert_int_not_equal(SSL_connect(clients[i].ssl), 1); /* says hello */
    assert_int_equal(SSL_write(known.ssl, GET("/a"), sizeof(GET("/a")) - 1), sizeof(GET("/a")) - 1);
    http_server_turn(s->server);
    assert_int_equal(s->seen_count, 1); /* though its request came last */
    for (size_t turns = 1; turns <= MANY / HTTP_HANDSHAKES_PER_TURN_MAX; turns++) {
        assert_int_equal(answered_count(clients, MANY), turns * HTTP_HANDSHAKES_PER_TURN_MAX);
        http_server_turn(s->server);
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_true(client_shake_hands(&clients[i], s));
        client_leave(&clients[i]);
    }
    client_leave(&known);
}

/* --- what is accepted --- */

static void a_plain_request_is_told_to_use_https(void **state)
{
    struct serving *s = *state;
    static const char *const PLAIN[] = {
        GET("/a") GET("/b"), "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(PLAIN); i++) {
        struct str answer = ask(s, PLAIN[i]);
        assert_memory_equal(answer.ptr, "HTTP/1.1 400 ", 13);
        has_text(answer, "\"code\":\"BAD_REQUEST\"");
        has_text(answer, "This port speaks TLS: use https://");
        has_text(answer, "Connection: close\r\n");
        assert_null(strstr(answer.ptr + 1, "HTTP/1.1 ")); /* what was sent ahead is not read */
        settle(s);
        assert_int_equal(http_server_connections(s->server), 0);
    }
    assert_int_equal(s->seen_count, 0);
}

static void other_bytes_are_not_answered(void **state)
{
    struct serving *s = *state;
    static const char *const OTHER[] = {"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", "SSH-2.0-x\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(OTHER); i++)
        has_no_text(ask(s, OTHER[i]), "HTTP/1.1");
    assert_int_equal(s->seen_count, 0);
    assert_int_equal(http_server_connections(s->server), 0);
}

static void only_versions_with_authenticated_encryption_are(void **state)
{
    struct serving *s = *state;
    static const struct {
        int version;
        bool accepted;
    } CASES[] = {{TLS1_VERSION, false},
                 {TLS1_1_VERSION, false},
                 {TLS1_2_VERSION, true},
                 {TLS1_3_VERSION, true}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct client c;
        client_set_up(&c, s);
        SSL_set_min_proto_version(c.ssl, CASES[i].version);
        SSL_set_max_proto_version(c.ssl, CASES[i].version);
        assert_int_equal(client_shake_hands(&c, s), CASES[i].accepted);
        client_leave(&c);
    }
}

static void only_suites_with_forward_secrecy_are(void **state)
{
    struct serving *s = *state;
    static const struct {
        const char *suite;
        bool accepted;
    } CASES[] = {
        {"AES128-SHA", false},
        {"AES256-GCM-SHA384", false},
        {"ECDHE-RSA-AES128-SHA", false},
        {"ECDHE-RSA-AES256-SHA384", false},
        {"DHE-RSA-AES256-GCM-SHA384", false},
        {"AECDH-AES256-SHA", false},
        {"ECDHE-RSA-AES128-GCM-SHA256", true},
        {"ECDHE-RSA-AES256-GCM-SHA384", true},
        {"ECDHE-RSA-CHACHA20-POLY1305", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct client c;
        client_set_up(&c, s);
        SSL_set_max_proto_version(c.ssl, TLS1_2_VERSION);
        assert_int_equal(SSL_set_cipher_list(c.ssl, CASES[i].suite), 1);
        if (client_shake_hands(&c, s) != CASES[i].accepted)
            fail_msg("%s", CASES[i].suite);
        client_leave(&c);
    }
}

static void only_http_1_1_is_spoken(void **state)
{
    struct serving *s = *state;
    static const struct {
        const char *offered;
        bool accepted;
    } CASES[] = {{"\x02h2\x08http/1.1", true}, {"\x08http/1.1", true}, {"\x02h2", false}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct client c;
        const unsigned char *chosen;
        unsigned len;
        client_set_up(&c, s);
        (void)SSL_set_alpn_protos(c.ssl, (const unsigned char *)CASES[i].offered,
                                  (unsigned)strlen(CASES[i].offered));
        assert_int_equal(client_shake_hands(&c, s), CASES[i].accepted);
        SSL_get0_alpn_selected(c.ssl, &chosen, &len);
        assert_int_equal(len, CASES[i].accepted ? 8 : 0);
        client_leave(&c);
    }
}

static void a_session_is_resumed(void **state)
{
    struct serving *s = *state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct client c, again;
        client_set_up(&c, s);
        SSL_set_max_proto_version(c.ssl, version);
        assert_true(client_shake_hands(&c, s));
        client_write(&c, s, STR(GET("/a")));
        (void)client_take(&c, s, "GET /a? ");
        assert_int_equal(SSL_session_reused(c.ssl), 0);
        SSL_SESSION *session = SSL_get1_session(c.ssl);
        client_set_up(&again, s);
        SSL_set_max_proto_version(again.ssl, version);
        SSL_set_session(again.ssl, session);
        assert_true(client_shake_hands(&again, s));
        assert_int_equal(SSL_session_reused(again.ssl), 1);
        SSL_SESSION_free(session);
        client_leave(&again);
        client_leave(&c);
    }
}

/* --- files --- */

static void name_of_server(struct serving *s, char *out, size_t size)
{
    struct client c;
    client_begin(&c, s);
    X509 *cert = SSL_get1_peer_certificate(c.ssl);
    assert_non_null(cert);
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, out, (int)size);
    X509_free(cert);
    client_leave(&c);
}

static void a_renewed_certificate_is_used_for_new_connections(void **state)
{
    struct serving *s = *state;
    struct problem p;
    struct client before;
    char name[32];
    problem_init(&p);
    client_begin(&before, s);
    pems_free_keys(&pems);
    pems_make(&pems, "second", 0);
    name_of_server(s, name, sizeof(name));
    assert_string_equal(name, "first");
    assert_int_equal(http_server_reload(s->server, &p), ERR_OK);
    name_of_server(s, name, sizeof(name));
    assert_string_equal(name, "second");
    client_write(&before, s, STR(GET("/a")));
    (void)client_take(&before, s, "GET /a? ");
    client_leave(&before);
    problem_release(&p);
}

static void a_certificate_that_cannot_be_read_leaves_the_old_one(void **state)
{
    struct serving *s = *state;
    struct problem p;
    char name[32];
    problem_init(&p);
    FILE *file = fopen(pems.cert, "w");
    assert_non_null(file);
    (void)fputs("nonsense", file);
    fclose(file);
    assert_int_equal(http_server_reload(s->server, &p), ERR_BAD_REQUEST);
    assert_non_null(strstr(p.detail, pems.cert));
    name_of_server(s, name, sizeof(name));
    assert_string_equal(name, "first");
    problem_release(&p);
}

static void files_that_do_not_fit_are_reported_at_the_start(void **state)
{
    struct serving *s = *state;
    struct pems other;
    pems_open(&other, "other", 0);
    const char *files[][3] = {
        {"/nonexistent", pems.key, NULL},      {pems.cert, "/nonexistent", NULL},
        {pems.cert, other.key, NULL},          {pems.cert, pems.cert, NULL},
        {pems.cert, pems.key, "/nonexistent"}, {pems.cert, pems.key, pems.key}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct http_server *server;
        struct http_config config = {.listen = "127.0.0.1:0",
                                     .tls_cert = files[i][0],
                                     .tls_key = files[i][1],
                                     .tls_client_ca = files[i][2],
                                     .env = &s->env,
                                     .handler = serving_handle};
        struct problem p;
        problem_init(&p);
        assert_int_equal(http_server_start(&config, &p, &server), ERR_BAD_REQUEST);
        assert_true(strchr(p.detail, '/') != NULL);
        problem_release(&p);
    }
    pems_close(&other);
}

static void clients_without_the_right_certificate_are_refused(void **state)
{
    struct serving *plain = *state; /* asks for none */
    static struct serving s;
    struct pems friend, stranger;
    (void)plain;
    pems_open(&friend, "friend", 0);
    pems_open(&stranger, "stranger", 0);
    serving_open(&s, (struct http_config){
                         .tls_cert = pems.cert, .tls_key = pems.key, .tls_client_ca = friend.cert});
    struct pems *const WHO[] = {&friend, &stranger, NULL};
    for (size_t i = 0; i < ARRAY_LEN(WHO); i++) {
        struct client c;
        client_set_up(&c, &s);
        if (WHO[i] != NULL) {
            assert_int_equal(SSL_use_certificate_file(c.ssl, WHO[i]->cert, SSL_FILETYPE_PEM), 1);
            assert_int_equal(SSL_use_PrivateKey_file(c.ssl, WHO[i]->key, SSL_FILETYPE_PEM), 1);
        }
        if (client_shake_hands(&c, &s)) {
            client_write(&c, &s, STR(GET_LAST("/a")));
            bool answered = strstr(client_take(&c, &s, "").ptr, "GET /a? ") != NULL;
            assert_int_equal(answered, WHO[i] == &friend);
        }
        client_leave(&c);
    }
    assert_int_equal(s.seen_count, 1);
    void *other = &s;
    serving_stop(&other);
    pems_close(&friend);
    pems_close(&stranger);
}

#define tls_test(f) cmocka_unit_test_setup_teardown(f, tls_start, tls_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        tls_test(requests_are_answered_and_the_connection_is_kept),
        tls_test(large_bodies_and_answers_pass),
        tls_test(a_file_passes),
        tls_test(a_stream_passes),
        tls_test(a_client_that_leaves_is_noticed),
        tls_test(a_handshake_that_does_not_end_is_cut_off),
        tls_test(many_handshakes_leave_others_their_turn),
        tls_test(a_plain_request_is_told_to_use_https),
        tls_test(other_bytes_are_not_answered),
        tls_test(only_versions_with_authenticated_encryption_are),
        tls_test(only_suites_with_forward_secrecy_are),
        tls_test(only_http_1_1_is_spoken),
        tls_test(a_session_is_resumed),
        tls_test(a_renewed_certificate_is_used_for_new_connections),
        tls_test(a_certificate_that_cannot_be_read_leaves_the_old_one),
        tls_test(files_that_do_not_fit_are_reported_at_the_start),
        tls_test(clients_without_the_right_certificate_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
