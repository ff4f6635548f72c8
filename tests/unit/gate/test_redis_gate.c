/* The gate in Redis, with a real redis-server, with one that is killed, and with ones that lie. */
#include "gate/redis_server.h"

#include "base/env.h"
#include "gate/redis_gate.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#define LOCK "pawl:lock:{acme}"
#define KEY "pawl:key:{acme}:order 1"

struct fixture {
    struct redis_server server;
    struct gate *gate;
    int event_fd;
};

static void gate_open(struct fixture *f, int port, const char *password, int database)
{
    struct redis_url url = {.host = "127.0.0.1", .port = port, .database = database};
    (void)snprintf(url.password, sizeof(url.password), "%s", password);
    f->gate = redis_gate_new(&url, &ENV_SYSTEM);
    assert_non_null(f->gate);
    assert_int_equal(f->gate->start(f->gate, f->event_fd), ERR_OK);
}

static void gate_close(struct fixture *f)
{
    f->gate->stop(f->gate);
    f->gate->free(f->gate);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server_start(&f->server);
    gate_open(f, f->server.port, "", 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gate_close(f);
    if (f->server.pid != 0)
        server_kill(&f->server);
    close(f->event_fd);
    free(f);
    return 0;
}

/* --- requests --- */

static struct gate_request request(enum gate_ask ask, const char *token, bool key)
{
    struct gate_request r = {.ask = ask,
                             .tenant = STR("acme"),
                             .key = key ? STR("order 1") : STR_NONE,
                             .lock_ttl_ms = 30000,
                             .key_ttl_ms = 60000};
    (void)snprintf(r.token, sizeof(r.token), "%s", token);
    return r;
}

/* Waits until so many are answered; they are linked in the order in which they came. */
static struct gate_request *collect(struct fixture *f, size_t count)
{
    struct gate_request *first = NULL;
    struct gate_request **last = &first;
    while (count > 0) {
        uint64_t ignored;
        struct pollfd fd = {f->event_fd, POLLIN, 0};
        assert_int_equal(poll(&fd, 1, 30000), 1);
        assert_true(read(f->event_fd, &ignored, sizeof(ignored)) > 0);
        *last = f->gate->collect(f->gate);
        for (; *last != NULL; last = &(*last)->next)
            count--;
    }
    return first;
}

static enum gate_answer ask(struct fixture *f, struct gate_request *r)
{
    f->gate->submit(f->gate, r);
    assert_ptr_equal(collect(f, 1), r);
    return r->answer;
}

static enum gate_answer enter(struct fixture *f, const char *token, bool key)
{
    struct gate_request r = request(GATE_ENTER, token, key);
    return ask(f, &r);
}

static enum gate_answer leave(struct fixture *f, const char *token, bool key)
{
    struct gate_request r = request(GATE_LEAVE, token, key);
    return ask(f, &r);
}

/* A connection that was lost is noticed by the request after it. */
static enum gate_answer enter_until(struct fixture *f, const char *token, enum gate_answer wanted)
{
    int tries = SERVER_TRIES;
    enum gate_answer answer = enter(f, token, true);
    while (answer != wanted && --tries > 0) {
        short_pause();
        answer = enter(f, token, true);
    }
    return answer;
}

static void assert_state(struct fixture *f, bool ok, const char *detail)
{
    struct gate_state state;
    f->gate->state(f->gate, &state);
    assert_int_equal(state.ok, ok);
    assert_non_null(strstr(state.detail, detail));
}

/* --- going in and out --- */

static void who_enters_has_the_lock_and_the_reservation_for_their_time(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(enter(f, "a", true), GATE_DONE);
    assert_true(server_has(&f->server, LOCK, "a"));
    assert_true(server_has(&f->server, KEY, "a"));
    assert_in_range(server_number(&f->server, "PTTL", LOCK), 1, 30000);
    assert_in_range(server_number(&f->server, "PTTL", KEY), 30001, 60000);
    assert_int_equal(leave(f, "a", true), GATE_DONE);
    assert_true(server_has(&f->server, LOCK, NULL));
    assert_true(server_has(&f->server, KEY, NULL));
    assert_state(f, true, "");
}

static void only_one_is_inside_and_only_one_has_a_key(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(enter(f, "a", true), GATE_DONE);
    assert_int_equal(enter(f, "b", false), GATE_BUSY);
    assert_int_equal(enter(f, "c", true), GATE_RESERVED);
    struct gate_request other = request(GATE_ENTER, "d", true);
    other.key = STR("order 2");
    assert_int_equal(ask(f, &other), GATE_BUSY); /* and it has reserved its key */
    assert_true(server_has(&f->server, "pawl:key:{acme}:order 2", "d"));
    other.tenant = STR("zeta");
    assert_int_equal(ask(f, &other), GATE_DONE);
    assert_int_equal(leave(f, "a", true), GATE_DONE);
    assert_int_equal(enter(f, "c", true), GATE_DONE);
}

static void a_request_whose_answer_was_lost_can_be_repeated(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(enter(f, "a", true), GATE_DONE);
    long long left = server_number(&f->server, "PTTL", LOCK);
    assert_int_equal(enter(f, "a", true), GATE_DONE);
    assert_true(server_number(&f->server, "PTTL", LOCK) <= left); /* no more time for that */
    assert_int_equal(leave(f, "a", true), GATE_DONE);
    assert_int_equal(leave(f, "a", true), GATE_LOST);
}

static void a_holder_whose_lock_expired_leaves_that_of_the_next_one_alone(void **state)
{
    struct fixture *f = *state;
    struct gate_request brief = request(GATE_ENTER, "a", true);
    brief.lock_ttl_ms = 20;
    assert_int_equal(ask(f, &brief), GATE_DONE);
    int tries = SERVER_TRIES;
    while (enter(f, "b", false) != GATE_DONE && --tries > 0)
        short_pause();
    assert_int_equal(leave(f, "a", true), GATE_LOST);
    assert_true(server_has(&f->server, LOCK, "b"));
    assert_true(server_has(&f->server, KEY, NULL)); /* its reservation was its own */
    assert_int_equal(leave(f, "b", false), GATE_DONE);
}

static void a_reservation_of_another_stays_when_a_start_leaves(void **state)
{
    struct fixture *f = *state;
    server_do(&f->server, "SET " LOCK " a");
    redisReply *reply = REDIS(&f->server, "SET %s %s", KEY, "another");
    freeReplyObject(reply);
    assert_int_equal(leave(f, "a", true), GATE_DONE);
    assert_true(server_has(&f->server, LOCK, NULL));
    assert_true(server_has(&f->server, KEY, "another"));
}

static void a_wiped_server_has_lost_the_lock(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(enter(f, "a", true), GATE_DONE);
    server_do(&f->server, "FLUSHALL");
    server_do(&f->server, "SCRIPT FLUSH");
    assert_int_equal(enter(f, "b", true), GATE_DONE);
    assert_int_equal(leave(f, "a", true), GATE_LOST);
    assert_true(server_has(&f->server, LOCK, "b"));
}

static void many_requests_at_once_are_answered_each(void **state)
{
    enum { MANY = 1000 };
    struct fixture *f = *state;
    struct gate_request *all = calloc(MANY, sizeof(*all));
    assert_non_null(all);
    size_t entered = 0;
    for (size_t i = 0; i < MANY; i++) {
        char token[24];
        (void)snprintf(token, sizeof(token), "t%zu", i);
        all[i] = request(GATE_ENTER, token, false);
        f->gate->submit(f->gate, &all[i]);
    }
    const struct gate_request *r = collect(f, MANY);
    for (size_t i = 0; i < MANY; i++, r = r->next) {
        assert_ptr_equal(r, &all[i]);
        entered += r->answer == GATE_DONE;
        assert_true(r->answer == GATE_DONE || r->answer == GATE_BUSY);
    }
    assert_int_equal(entered, 1);
    free(all);
}

/* --- looking around --- */

static void reservations_are_listed_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    static struct gate_list list;
    assert_int_equal(enter(f, "a", true), GATE_DONE);
    static const char *const NOISE[] = {"SET pawl:key:{acme} x", "SET pawl:key:{acme}: x",
                                        "SET pawl:key:acme:k x", "SET other x",
                                        "LPUSH pawl:key:{acme}:list x"};
    for (size_t i = 0; i < ARRAY_LEN(NOISE); i++)
        server_do(&f->server, NOISE[i]);
    char token[GATE_TOKEN_MAX + 2];
    memset(token, 't', sizeof(token) - 1);
    token[sizeof(token) - 1] = '\0';
    freeReplyObject(REDIS(&f->server, "SET %s %s", "pawl:key:{acme}:long", token));
    freeReplyObject(REDIS(&f->server, "SET %s %s", "pawl:key:{z}:a}:b", "c"));
    size_t found = 0;
    do {
        list.request = (struct gate_request){.ask = GATE_LIST};
        assert_int_equal(ask(f, &list.request), GATE_DONE);
        for (size_t i = 0; i < list.count; i++, found++) {
            bool ours = strcmp(list.found[i].tenant, "acme") == 0;
            assert_string_equal(list.found[i].key, ours ? "order 1" : "a}:b");
            assert_string_equal(list.found[i].token, ours ? "a" : "c");
        }
    } while (list.cursor != 0);
    assert_int_equal(found, 2);
}

/* --- a server that is not there, or not as it should be --- */

static void a_killed_server_is_found_again(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(enter(f, "a", true), GATE_DONE);
    server_kill(&f->server);
    assert_int_equal(enter(f, "a", true), GATE_DOWN);
    assert_int_equal(enter(f, "a", true), GATE_DOWN);
    assert_state(f, false, "Cannot connect");
    static struct gate_list list;
    list.request = (struct gate_request){.ask = GATE_LIST};
    assert_int_equal(ask(f, &list.request), GATE_DOWN);
    server_start(&f->server);
    assert_int_equal(enter_until(f, "b", GATE_DONE), GATE_DONE); /* it has forgotten the other */
    assert_state(f, true, "");
}

static void a_password_and_a_database_are_used(void **state)
{
    struct fixture *f = *state;
    server_kill(&f->server);
    f->server.password = "secret";
    server_start(&f->server);
    assert_int_equal(enter(f, "a", true), GATE_DOWN);
    assert_state(f, false, "");
    gate_close(f);
    gate_open(f, f->server.port, "wrong", 0);
    assert_int_equal(enter(f, "a", true), GATE_DOWN);
    assert_state(f, false, "Cannot sign in");
    gate_close(f);
    gate_open(f, f->server.port, "secret", 1000);
    assert_int_equal(enter(f, "a", true), GATE_DOWN);
    assert_state(f, false, "Cannot select the database");
    gate_close(f);
    gate_open(f, f->server.port, "secret", 3);
    assert_int_equal(enter(f, "a", true), GATE_DONE);
    assert_true(server_has(&f->server, LOCK, NULL));
    server_do(&f->server, "SELECT 3");
    assert_true(server_has(&f->server, LOCK, "a"));
}

static void a_server_that_may_not_write_is_down(void **state)
{
    struct fixture *f = *state;
    server_do(&f->server, "CONFIG SET maxmemory 1");
    assert_int_equal(enter(f, "a", true), GATE_DOWN);
    assert_state(f, false, "OOM");
    server_do(&f->server, "CONFIG SET maxmemory 0");
    assert_int_equal(enter_until(f, "a", GATE_DONE), GATE_DONE);
}

/* Says the same to whatever it is asked. */
struct liar {
    int fd;
    const char *says; /* "": nothing */
    pthread_t thread;
};

static void *liar_main(void *ctx)
{
    struct liar *l = ctx;
    int fd;
    while ((fd = accept(l->fd, NULL, NULL)) >= 0) {
        char ignored[4096];
        while (recv(fd, ignored, sizeof(ignored), 0) > 0) {
            if (send(fd, l->says, strlen(l->says), MSG_NOSIGNAL) < 0)
                break;
        }
        close(fd);
    }
    return NULL;
}

static void what_makes_no_sense_is_no_answer(void **state)
{
    static const char *const LIES[] = {
        "+OK\r\n", ":3\r\n",      ":-1\r\n",      "$-1\r\n", "*-1\r\n",
        "*0\r\n",  "-ERR no\r\n", "$2\r\n00\r\n", "!\r\n",   "HTTP/1.1 200 OK\r\n\r\n",
        ""};
    struct fixture *f = *state;
    gate_close(f);
    for (size_t i = 0; i < ARRAY_LEN(LIES); i++) {
        int port;
        struct liar liar = {.fd = listen_anywhere(&port), .says = LIES[i]};
        assert_int_equal(pthread_create(&liar.thread, NULL, liar_main, &liar), 0);
        gate_open(f, port, "", 0);
        assert_int_equal(enter(f, "a", true), GATE_DOWN);
        assert_int_equal(leave(f, "a", true), GATE_DOWN);
        assert_state(f, false, "");
        static struct gate_list list;
        list.request = (struct gate_request){.ask = GATE_LIST};
        assert_int_equal(ask(f, &list.request), GATE_DOWN);
        gate_close(f);
        (void)shutdown(liar.fd, SHUT_RDWR);
        pthread_join(liar.thread, NULL);
        close(liar.fd);
    }
    gate_open(f, f->server.port, "", 0);
}

static void requests_are_answered_before_the_gate_stops(void **state)
{
    struct fixture *f = *state;
    struct gate_request r = request(GATE_ENTER, "a", true);
    f->gate->submit(f->gate, &r);
    f->gate->stop(f->gate);
    assert_ptr_equal(f->gate->collect(f->gate), &r);
    assert_int_equal(r.answer, GATE_DONE);
    assert_int_equal(f->gate->start(f->gate, f->event_fd), ERR_OK); /* and may begin again */
    assert_int_equal(leave(f, "a", true), GATE_DONE);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(who_enters_has_the_lock_and_the_reservation_for_their_time),
        test(only_one_is_inside_and_only_one_has_a_key),
        test(a_request_whose_answer_was_lost_can_be_repeated),
        test(a_holder_whose_lock_expired_leaves_that_of_the_next_one_alone),
        test(a_reservation_of_another_stays_when_a_start_leaves),
        test(a_wiped_server_has_lost_the_lock),
        test(many_requests_at_once_are_answered_each),
        test(reservations_are_listed_and_nothing_else),
        test(a_killed_server_is_found_again),
        test(a_password_and_a_database_are_used),
        test(a_server_that_may_not_write_is_down),
        test(what_makes_no_sense_is_no_answer),
        test(requests_are_answered_before_the_gate_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
