/* Socket calls of the server that fail. A server that cannot start says so; one that runs loses at
 * most the connection, answers the next one, and leaks no descriptor. */
#include "http/serving.h"

#include <dirent.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>

/* Armed only while the server runs: the clients' calls do not fail. */
static struct {
    const char *call; /* NULL: none fails */
    int error;
    int nth; /* the calls before it do not fail */
    bool lasting;
    int hits;
} fault;

static bool fails(const char *call)
{
    if (fault.call == NULL || strcmp(fault.call, call) != 0 || --fault.nth > 0 ||
        (fault.nth < 0 && !fault.lasting))
        return false;
    fault.hits++;
    errno = fault.error;
    return true;
}

static void arm(const char *call, int error, int nth, bool lasting)
{
    fault.call = call;
    fault.error = error;
    fault.nth = nth;
    fault.lasting = lasting;
    fault.hits = 0;
}

/* How many calls have failed. */
static int disarm(void)
{
    fault.call = NULL;
    return fault.hits;
}

/* `--wrap` sends the calls of this program and of src/http here. */
#define WRAP(type, name, params, args)                 \
    type __real_##name params;                         \
    type __wrap_##name params;                         \
    type __wrap_##name params                          \
    {                                                  \
        return fails(#name) ? -1 : __real_##name args; \
    }

WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
     (fd, level, name, value, len))
WRAP(int, bind, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len))
WRAP(int, listen, (int fd, int backlog), (fd, backlog))
WRAP(int, getsockname, (int fd, struct sockaddr *at, socklen_t *len), (fd, at, len))
WRAP(int, epoll_create1, (int flags), (flags))
WRAP(int, epoll_ctl, (int at, int op, int fd, struct epoll_event *event), (at, op, fd, event))
WRAP(int, epoll_wait, (int at, struct epoll_event *events, int max, int ms), (at, events, max, ms))
WRAP(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags),
     (fd, from, len, flags))
WRAP(ssize_t, recv, (int fd, void *to, size_t len, int flags), (fd, to, len, flags))
WRAP(ssize_t, send, (int fd, const void *from, size_t len, int flags), (fd, from, len, flags))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WRAP(ssize_t, sendfile, (int fd, int from, off_t *at, size_t len), (fd, from, at, len))

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* --- the start --- */

static void a_server_that_cannot_start_says_so(void **state)
{
    static const char *const CALLS[] = {"socket",      "setsockopt",    "bind",     "listen",
                                        "getsockname", "epoll_create1", "epoll_ctl"};
    struct serving *s = *state;
    struct http_config config = {.listen = "127.0.0.1:0", .env = &s->env};
    int before = open_files();
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        int hits = 1;
        for (int nth = 1; hits > 0; nth++) {
            struct http_server *server = NULL;
            struct problem p;
            problem_init(&p);
            arm(CALLS[i], ENOBUFS, nth, false);
            enum err e = http_server_start(&config, &p, &server);
            hits = disarm();
            assert_true(hits > 0 || nth > 1);
            assert_int_equal(e == ERR_OK, hits == 0);
            assert_true(e == ERR_OK || strstr(p.detail, strerror(ENOBUFS)) != NULL);
            http_server_free(server);
            problem_release(&p);
            assert_int_equal(open_files(), before);
        }
    }
}

/* --- while it runs --- */

static void run_with(struct serving *s, const char *call, int error, int nth, bool lasting)
{
    arm(call, error, nth, lasting);
    for (int i = 0; i < 20; i++)
        http_server_turn(s->server);
}

static void forget_seen(struct serving *s)
{
    for (size_t i = 0; i < s->seen_count; i++) {
        if (!http_is_answered(s->seen[i].req))
            http_hang_up(s->seen[i].req);
    }
    settle(s);
    for (size_t i = 0; i < s->seen_count; i++)
        seen_drop(&s->seen[i]);
    memset(s->seen, 0, sizeof(s->seen));
    s->seen_count = 0;
}

static void is_well(struct serving *s, int files)
{
    pass_ms(s, 1000); /* a pause is over */
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/well")));
    (void)client_read(s, fd, "GET /well? ");
    close(fd);
    settle(s);
    forget_seen(s);
    assert_int_equal(http_server_connections(s->server), 0);
    assert_int_equal(open_files(), files);
}

/* Whole answers, or none. */
static void is_answered_or_cut(int fd)
{
    static char text[64 * KIB];
    size_t len = 0;
    ssize_t got;
    while ((got = recv(fd, text + len, sizeof(text) - 1 - len, 0)) > 0)
        len += (size_t)got;
    text[len] = '\0';
    if (len > 0 && !str_ends_with((struct str){text, len}, STR("GET /a? ")) &&
        !str_ends_with((struct str){text, len}, STR("GET /b? ")))
        fail_msg("half an answer: %s", text);
}

static void a_call_that_fails_costs_at_most_its_connection(void **state)
{
    static const struct {
        const char *call;
        int error;
    } FAULTS[] = {{"accept4", ECONNABORTED}, {"accept4", EINTR}, {"epoll_ctl", ENOMEM},
                  {"recv", ECONNRESET},      {"recv", ENOMEM},   {"recv", EINTR},
                  {"send", EPIPE},           {"send", EINTR},    {"epoll_wait", EINTR}};
    struct serving *s = *state;
    int files = open_files();
    for (size_t i = 0; i < ARRAY_LEN(FAULTS); i++) {
        int hits = 1;
        for (int nth = 1; hits > 0 && nth < 10; nth++) {
            int fd = client_open(s);
            assert_true(send(fd, GET("/a") GET("/b"), 2 * (sizeof(GET("/a")) - 1), 0) > 0);
            run_with(s, FAULTS[i].call, FAULTS[i].error, nth, false);
            hits = disarm();
            assert_true(hits > 0 || nth > 1);
            settle(s);
            is_answered_or_cut(fd);
            close(fd);
            settle(s);
            forget_seen(s);
            is_well(s, files);
        }
    }
}

static void a_large_answer_that_cannot_be_sent_costs_its_connection(void **state)
{
    static char large[100 * KIB];
    struct serving *s = *state;
    int files = open_files();
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '!';
    for (int round = 0; round < 2; round++) {
        struct http_reply reply;
        int fd = client_open(s);
        client_send(s, fd, STR(GET("/later")));
        http_reply_init(&reply, 200, STR("text/plain"), (struct str){large, sizeof(large)});
        http_send(s->seen[0].req, &reply);
        run_with(s, "sendmsg", round == 0 ? ECONNRESET : EINTR, 1, false);
        assert_int_equal(disarm(), 1);
        assert_int_equal(client_read(s, fd, round == 0 ? "" : "!").len > sizeof(large), round);
        assert_int_equal(s->seen[0].unsent, round == 0);
        close(fd);
        settle(s);
        forget_seen(s);
        is_well(s, files);
    }
}

static void a_file_that_cannot_be_sent_costs_its_connection(void **state)
{
    struct serving *s = *state;
    int files = open_files();
    for (int round = 0; round < 2; round++) {
        FILE *file = tmpfile();
        struct http_reply reply;
        assert_non_null(file);
        assert_true(fputs("content", file) >= 0 && fflush(file) == 0);
        int fd = client_open(s);
        client_send(s, fd, STR(GET("/later")));
        http_reply_init(&reply, 200, STR("text/plain"), STR(""));
        reply.file_fd = dup(fileno(file));
        fclose(file);
        http_send(s->seen[0].req, &reply);
        run_with(s, "sendfile", round == 0 ? EIO : EINTR, 1, false);
        assert_int_equal(disarm(), 1);
        if (round == 0)
            assert_false(str_ends_with(client_read(s, fd, ""), STR("content")));
        else
            (void)client_read(s, fd, "content");
        assert_int_equal(s->seen[0].unsent, round == 0);
        close(fd);
        settle(s);
        forget_seen(s);
        is_well(s, files);
    }
}

/* --- no descriptors --- */

static void without_descriptors_it_tries_again_after_a_pause(void **state)
{
    struct serving *s = *state;
    int files = open_files();
    int busy = client_open(s);
    client_send(s, busy, STR(GET("/later"))); /* not to be evicted */
    int fd = client_open(s);
    assert_true(send(fd, GET("/a"), sizeof(GET("/a")) - 1, 0) > 0);
    run_with(s, "accept4", EMFILE, 1, true);
    assert_int_equal(disarm(), 1); /* not once a turn: that would take all the time there is */
    assert_in_range(http_server_timeout_ms(s->server), 1, 100);
    assert_int_equal(client_peek(s, fd).len, 0);
    pass_ms(s, 100);
    (void)client_read(s, fd, "GET /a? ");
    close(fd);
    http_hang_up(s->seen[0].req);
    settle(s);
    close(busy);
    forget_seen(s);
    is_well(s, files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        serving_test(a_server_that_cannot_start_says_so),
        serving_test(a_call_that_fails_costs_at_most_its_connection),
        serving_test(a_large_answer_that_cannot_be_sent_costs_its_connection),
        serving_test(a_file_that_cannot_be_sent_costs_its_connection),
        serving_test(without_descriptors_it_tries_again_after_a_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
