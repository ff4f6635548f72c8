/* Outbound calls against a real receiver. Names and public addresses are this program's own:
 * libcurl finds its getaddrinfo() and connect() here, so that "public.test" is somewhere on the
 * internet and yet the receiver on loopback. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "bus/receiver.h"

#include "bus/http_caller.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

enum { GIVE_UP_MS = 30 * 1000, PATIENT_MS = 20 * 1000, CALLS_MAX = 256 };

/* --- a network of our own --- */

#define SOMEWHERE_PUBLIC "93.184.215.14"

static atomic_int public_port; /* where its connections really go */
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t names_changed = PTHREAD_COND_INITIALIZER;
static bool slow_name_released;
static int slow_lookups;
static atomic_int flip_lookups;

static const struct {
    const char *name;
    const char *address;
} NAMES[] = {
    {"one.test", "127.0.0.1"},
    {"two.test", "127.0.0.1"},
    {"public.test", SOMEWHERE_PUBLIC},
    {"private.test", "10.1.2.3"},
    {"metadata.test", "169.254.169.254"},
    {"mapped.test", "::ffff:127.0.0.1"},
};

static void wait_for_release(void)
{
    pthread_mutex_lock(&names_lock);
    slow_lookups++;
    pthread_cond_broadcast(&names_changed);
    while (!slow_name_released)
        pthread_cond_wait(&names_changed, &names_lock);
    slow_lookups--;
    pthread_cond_broadcast(&names_changed);
    pthread_mutex_unlock(&names_lock);
}

static int (*real_getaddrinfo)(const char *, const char *, const struct addrinfo *,
                               struct addrinfo **);

__attribute__((constructor)) static void find_real(void)
{
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&real_getaddrinfo, &found, sizeof(real_getaddrinfo));
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (strcmp(node, NAMES[i].name) == 0)
            return real_getaddrinfo(NAMES[i].address, service, hints, ret);
    }
    if (strcmp(node, "slow.test") == 0) {
        wait_for_release();
        return real_getaddrinfo("127.0.0.1", service, hints, ret);
    }
    /* Public when it is looked at, loopback when it is used. */
    if (strcmp(node, "flip.test") == 0)
        return real_getaddrinfo(atomic_fetch_add(&flip_lookups, 1) == 0 ? SOMEWHERE_PUBLIC
                                                                        : "127.0.0.1",
                                service, hints, ret);
    /* Loopback first, and behind it somewhere that is public. */
    if (strcmp(node, "mixed.test") == 0) {
        int rc = real_getaddrinfo("127.0.0.1", service, hints, ret);
        struct addrinfo *last = *ret;
        while (rc == 0 && last->ai_next != NULL)
            last = last->ai_next;
        return rc == 0 ? real_getaddrinfo(SOMEWHERE_PUBLIC, service, hints, &last->ai_next) : rc;
    }
    if (strlen(node) > 5 && strcmp(node + strlen(node) - 5, ".test") == 0)
        return EAI_NONAME;
    return real_getaddrinfo(node, service, hints, ret);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    const void *to = address.__sockaddr__;
    struct sockaddr_in v4 = {0};
    if (address.__sockaddr__->sa_family == AF_INET && len >= sizeof(v4)) {
        memcpy(&v4, to, sizeof(v4));
        if (v4.sin_addr.s_addr == inet_addr(SOMEWHERE_PUBLIC)) {
            v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            v4.sin_port = htons((uint16_t)atomic_load(&public_port));
            to = &v4;
        }
    }
    return (int)syscall(SYS_connect, fd, to, len);
}

/* --- the rig --- */

struct rig {
    struct receiver *receiver;
    struct receiver *other;
    struct http_caller *caller;
    int event_fd;
    struct http_call *over[CALLS_MAX];
    size_t over_count;
};

static atomic_int hook_calls;

static void count_over(struct http_call *call)
{
    assert(call->end < CALL_END_COUNT);
    atomic_fetch_add(&hook_calls, 1);
}

static struct http_caller *caller_start(int event_fd, enum address_reach reach)
{
    struct http_caller_config config = {.reach = reach, .event_fd = event_fd, .over = count_over};
    struct http_caller *caller = http_caller_new(&config);
    assert_non_null(caller);
    return caller;
}

static int setup(void **state, enum address_reach reach)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    rig->receiver = receiver_start();
    rig->other = receiver_start();
    rig->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    rig->caller = caller_start(rig->event_fd, reach);
    atomic_store(&public_port, rig->receiver->port);
    *state = rig;
    return 0;
}

static int setup_open(void **state)
{
    return setup(state, REACH_ALL);
}

static int setup_public_only(void **state)
{
    return setup(state, REACH_PUBLIC);
}

static int setup_dev(void **state)
{
    return setup(state, REACH_LOOPBACK);
}

static void collect(struct rig *rig)
{
    struct http_call *call = http_caller_collect(rig->caller);
    while (call != NULL) {
        assert_true(rig->over_count < CALLS_MAX);
        rig->over[rig->over_count++] = call;
        call = call->next;
    }
}

static void forget(struct rig *rig)
{
    for (size_t i = 0; i < rig->over_count; i++)
        http_call_free(rig->over[i]);
    rig->over_count = 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    http_caller_free(rig->caller);
    forget(rig);
    receiver_stop(rig->receiver);
    receiver_stop(rig->other);
    close(rig->event_fd);
    free(rig);
    return 0;
}

static void wait_over(struct rig *rig, size_t count)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + GIVE_UP_MS;
    while (rig->over_count < count) {
        struct pollfd fd = {rig->event_fd, POLLIN, 0};
        uint64_t ignored;
        if (env_mono_ms(&ENV_SYSTEM) > until)
            fail_msg("%zu of %zu calls came back", rig->over_count, count);
        if (poll(&fd, 1, 1000) > 0 && read(rig->event_fd, &ignored, sizeof(ignored)) > 0)
            collect(rig);
    }
}

static struct http_call *call_new(const char *method, const char *url)
{
    struct http_request request = {.method = str_of(method),
                                   .url = str_of(url),
                                   .timeout_ms = PATIENT_MS,
                                   .redirects_max = CALL_REDIRECTS_MAX};
    struct http_call *call = http_call_new(&request);
    assert_non_null(call);
    return call;
}

/* The rig's: forgotten with the next perform(). */
static const struct http_call *perform_request(struct rig *rig, const struct http_request *request)
{
    struct http_call *call = http_call_new(request);
    assert_non_null(call);
    forget(rig);
    assert_true(http_caller_submit(rig->caller, call));
    wait_over(rig, 1);
    assert_ptr_equal(rig->over[0], call);
    assert_int_equal(call->end == CALL_ANSWERED, call->detail[0] == '\0');
    assert_int_equal(call->end == CALL_ANSWERED, call->status != 0);
    return call;
}

static struct http_request request_to(const char *method, const char *url)
{
    return (struct http_request){.method = str_of(method),
                                 .url = str_of(url),
                                 .timeout_ms = PATIENT_MS,
                                 .redirects_max = CALL_REDIRECTS_MAX};
}

/* At the receiver, by this host name. */
static const char *url_at(const struct receiver *r, const char *host, const char *path)
{
    static char urls[4][512]; /* a few live at once: a URL in a redirect's path */
    static size_t next;
    char *url = urls[next++ % ARRAY_LEN(urls)];
    (void)snprintf(url, sizeof(urls[0]), "http://%s:%d%s", host, r->port, path);
    return url;
}

static const char *url_of(const struct rig *rig, const char *path)
{
    return url_at(rig->receiver, "127.0.0.1", path);
}

static const struct http_call *get(struct rig *rig, const char *url)
{
    struct http_request request = request_to("GET", url);
    return perform_request(rig, &request);
}

static void assert_end(const struct http_call *call, enum call_end end)
{
    if (call->end != end)
        fail_msg("ended as %s (%s), wanted %s", call_end_code(call->end), call->detail,
                 call_end_code(end));
}

static void assert_answer(const struct http_call *call, int status, const char *body)
{
    assert_end(call, CALL_ANSWERED);
    assert_int_equal(call->status, status);
    assert_str(buf_str(&call->body), body);
}

/* The last request that the receiver got. */
static const char *last_request(const struct receiver *r)
{
    assert_true(r->request_count > 0);
    return r->requests[r->request_count - 1];
}

static void assert_lacks(const char *text, const char *part)
{
    if (strcasestr(text, part) != NULL)
        fail_msg("<%s> is in <%s>", part, text);
}

/* --- answers --- */

static void an_answer_comes_back_whole(void **state)
{
    struct rig *rig = *state;
    const struct http_call *call = get(rig, url_of(rig, "/ok"));
    assert_answer(call, 200, "fine");
    assert_str(http_call_header(call, STR("content-type")), "text/plain");
    assert_str(http_call_header(call, STR("CONTENT-length")), "4");
    assert_str(http_call_header(call, STR("x-twice")), "a");
    assert_null(http_call_header(call, STR("x-none")).ptr);
    struct http_header header;
    size_t at = 0;
    size_t count = 0;
    while (http_call_next_header(call, &at, &header))
        count++;
    assert_int_equal(count, 4);
}

static void any_status_is_an_answer(void **state)
{
    struct rig *rig = *state;
    const struct http_call *call = get(rig, url_of(rig, "/500"));
    assert_answer(call, 500, "sorry");
    assert_str(http_call_header(call, STR("Retry-After")), "7");
    assert_answer(get(rig, url_of(rig, "/empty")), 204, "");
    assert_answer(get(rig, url_of(rig, "/304")), 304, "");
}

static void interim_responses_are_passed_over(void **state)
{
    struct rig *rig = *state;
    const struct http_call *call = get(rig, url_of(rig, "/interim"));
    assert_answer(call, 200, "now");
    assert_null(http_call_header(call, STR("x-early")).ptr);
    assert_str(http_call_header(call, STR("x-late")), "1");
}

static void method_headers_and_body_arrive(void **state)
{
    struct rig *rig = *state;
    const struct http_header headers[] = {{STR("X-One"), STR("1")},
                                          {STR("X-Empty"), STR("")},
                                          {STR("Content-Type"), STR("text/x")},
                                          {STR("Accept"), STR("text/y")}};
    static const char *const METHODS[] = {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GET"};
    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        struct http_request request = request_to(METHODS[i], url_of(rig, "/echo"));
        request.headers = headers;
        request.header_count = ARRAY_LEN(headers);
        request.body = STR("some body");
        const struct http_call *call = perform_request(rig, &request);
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
    struct rig *rig = *state;
    static const struct {
        const char *method;
        bool has_length;
    } METHODS[] = {{"POST", true}, {"PUT", true},     {"PATCH", true},
                   {"GET", false}, {"DELETE", false}, {"OPTIONS", false}};
    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        struct http_request request = request_to(METHODS[i].method, url_of(rig, "/echo"));
        const struct http_call *call = perform_request(rig, &request);
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
    struct rig *rig = *state;
    struct http_request request = request_to("HEAD", url_of(rig, "/head"));
    const struct http_call *call = perform_request(rig, &request);
    assert_answer(call, 200, "");
    assert_str(http_call_header(call, STR("content-length")), "5000000000");
}

static void a_large_body_is_sent_without_asking(void **state)
{
    struct rig *rig = *state;
    struct http_request request = request_to("POST", url_of(rig, "/empty"));
    char *body = malloc(MIB + MIB / 2);
    memset(body, 'b', MIB + MIB / 2);
    request.body = (struct str){body, MIB + MIB / 2};
    assert_answer(perform_request(rig, &request), 204, "");
    assert_lacks(last_request(rig->receiver), "Expect");
    free(body);
}

static void a_connection_is_used_again(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < 5; i++)
        assert_answer(get(rig, url_of(rig, "/ok")), 200, "fine");
    assert_int_equal(rig->receiver->connection_count, 1);
}

static void proxies_of_the_environment_are_not_used(void **state)
{
    struct rig *rig = *state;
    assert_answer(get(rig, url_of(rig, "/ok")), 200, "fine"); /* read once, so set before main() */
    assert_non_null(getenv("http_proxy"));
}

/* --- many --- */

static void every_call_comes_back_once_and_not_too_many_run_at_once(void **state)
{
    struct rig *rig = *state;
    enum { COUNT = 200 };
    bool seen[COUNT] = {false};
    static int numbers[COUNT];
    int hooks_before = atomic_load(&hook_calls);
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
        struct http_call *call = call_new("GET", url_of(rig, "/gate"));
        call->owner = &numbers[i];
        assert_true(http_caller_submit(rig->caller, call));
    }
    receiver_wait_answering(rig->receiver, CALLS_IN_FLIGHT_MAX);
    receiver_open_gate(rig->receiver);
    wait_over(rig, COUNT);
    for (size_t i = 0; i < rig->over_count; i++) {
        assert_answer(rig->over[i], 200, "through");
        int number = *(const int *)rig->over[i]->owner;
        assert_false(seen[number]);
        seen[number] = true;
    }
    assert_int_equal(rig->receiver->answering_max, CALLS_IN_FLIGHT_MAX);
    assert_int_equal(atomic_load(&hook_calls) - hooks_before, COUNT);
}

static void past_the_queues_bound_calls_are_not_taken(void **state)
{
    struct rig *rig = *state;
    size_t taken = 0;
    struct http_call *call = NULL;
    for (; taken < CALLS_IN_FLIGHT_MAX; taken++)
        assert_true(http_caller_submit(rig->caller, call_new("GET", url_of(rig, "/silent"))));
    receiver_wait_answering(rig->receiver, CALLS_IN_FLIGHT_MAX);
    for (taken = 0;; taken++) {
        call = call_new("GET", url_of(rig, "/silent"));
        if (!http_caller_submit(rig->caller, call))
            break;
    }
    assert_int_equal(taken, CALLS_WAITING_MAX);
    http_call_free(call); /* it stayed ours; the others are freed with the caller */
}

static void a_call_that_waits_for_others_is_timed_out_in_the_queue(void **state)
{
    struct rig *rig = *state;
    for (size_t i = 0; i < CALLS_IN_FLIGHT_MAX; i++)
        assert_true(http_caller_submit(rig->caller, call_new("GET", url_of(rig, "/silent"))));
    receiver_wait_answering(rig->receiver, CALLS_IN_FLIGHT_MAX);
    struct http_request request = request_to("GET", url_of(rig, "/ok"));
    request.timeout_ms = 50;
    assert_end(perform_request(rig, &request), CALL_TIMED_OUT);
    assert_int_equal(rig->receiver->request_count, CALLS_IN_FLIGHT_MAX);
}

static void an_abort_brings_everything_back(void **state)
{
    struct rig *rig = *state;
    enum { COUNT = CALLS_IN_FLIGHT_MAX + 36 };
    for (size_t i = 0; i < COUNT; i++)
        assert_true(http_caller_submit(rig->caller, call_new("GET", url_of(rig, "/silent"))));
    receiver_wait_answering(rig->receiver, CALLS_IN_FLIGHT_MAX);
    http_caller_abort(rig->caller);
    wait_over(rig, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_end(rig->over[i], CALL_ABORTED);
    assert_answer(get(rig, url_of(rig, "/ok")), 200, "fine"); /* later ones are not concerned */
}

static void a_caller_may_be_freed_with_calls_under_way(void **state)
{
    struct rig *rig = *state;
    for (size_t i = 0; i < CALLS_IN_FLIGHT_MAX + 10; i++)
        assert_true(http_caller_submit(rig->caller, call_new("GET", url_of(rig, "/silent"))));
    receiver_wait_answering(rig->receiver, CALLS_IN_FLIGHT_MAX);
    http_caller_free(rig->caller);
    rig->caller = NULL;
    receiver_wait_answering(rig->receiver, 0); /* their connections are closed */
}

/* --- failures --- */

static void a_refused_connection_is_told(void **state)
{
    struct rig *rig = *state;
    const char *url = url_of(rig, "/ok");
    int port = rig->receiver->port;
    receiver_stop(rig->receiver);
    rig->receiver = receiver_start();
    assert_int_not_equal(rig->receiver->port, port);
    assert_end(get(rig, url), CALL_CONNECT_FAILED);
}

static void an_unknown_name_is_told(void **state)
{
    struct rig *rig = *state;
    assert_end(get(rig, "http://nobody.test/"), CALL_ADDRESS_REFUSED);
}

static void a_connection_that_ends_early_is_told(void **state)
{
    struct rig *rig = *state;
    const struct http_call *call = get(rig, url_of(rig, "/close"));
    assert_end(call, CALL_CONNECTION_LOST);
    call = get(rig, url_of(rig, "/half"));
    assert_end(call, CALL_CONNECTION_LOST);
    assert_int_equal(call->body.len, 0); /* half a response is none */
    assert_int_equal(call->head.len, 0);
}

static void what_is_not_http_is_told(void **state)
{
    struct rig *rig = *state;
    assert_end(get(rig, url_of(rig, "/garbage")), CALL_FAILED);
    char url[64];
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d/ok", rig->receiver->port);
    assert_end(get(rig, url), CALL_TLS_FAILED);
}

static void a_receiver_that_takes_too_long_is_given_up(void **state)
{
    struct rig *rig = *state;
    static const char *const PATHS[] = {"/silent", "/trickle"};
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        struct http_request request = request_to("GET", url_of(rig, PATHS[i]));
        request.timeout_ms = 100;
        assert_end(perform_request(rig, &request), CALL_TIMED_OUT);
    }
}

static void redirects_share_one_time_out(void **state)
{
    struct rig *rig = *state;
    char path[256];
    (void)snprintf(path, sizeof(path), "/to/302/%s", url_at(rig->other, "127.0.0.1", "/silent"));
    struct http_request request = request_to("GET", url_of(rig, path));
    request.timeout_ms = 200;
    assert_end(perform_request(rig, &request), CALL_TIMED_OUT);
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
static void abort_in_lookups(struct rig *rig, int count)
{
    forget(rig);
    for (int i = 0; i < count; i++)
        assert_true(http_caller_submit(rig->caller, call_new("GET", "http://slow.test/")));
    wait_for_lookups(count);
    http_caller_abort(rig->caller);
    wait_over(rig, (size_t)count);
    for (int i = 0; i < count; i++)
        assert_end(rig->over[i], CALL_ABORTED);
}

/* libc's resolver cannot be stopped: it is left alone, and as long as it may take a place stays
 * taken, so that names which take long cannot pile up threads. */
static void a_name_that_takes_long_holds_up_nobody(void **state)
{
    struct rig *rig = *state;
    release_slow_name(false);
    abort_in_lookups(rig, CALLS_IN_FLIGHT_MAX - 1);
    assert_answer(get(rig, url_of(rig, "/ok")), 200, "fine");
    struct http_request slow = request_to("GET", "http://slow.test/");
    slow.timeout_ms = 20;
    /* A call's time may be over before its lookup begins; then the place is free for the next. */
    while (lookups_under_way() < CALLS_IN_FLIGHT_MAX)
        assert_end(perform_request(rig, &slow), CALL_TIMED_OUT);
    const struct http_call *queued = perform_request(rig, &slow);
    assert_end(queued, CALL_TIMED_OUT);
    assert_contains(queued->detail, "waited for others");
    assert_int_equal(lookups_under_way(), CALLS_IN_FLIGHT_MAX);
    release_slow_name(true);
}

/* --- bounds --- */

static void a_response_may_be_as_large_as_the_limit_and_no_larger(void **state)
{
    struct rig *rig = *state;
    const struct http_call *call = get(rig, url_of(rig, "/limit"));
    assert_end(call, CALL_ANSWERED);
    assert_int_equal(call->body.len, CALL_RESPONSE_MAX);
    static const char *const PATHS[] = {"/past", "/endless", "/gigabyte"};
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        call = get(rig, url_of(rig, PATHS[i]));
        assert_end(call, CALL_RESPONSE_TOO_LARGE);
        assert_null(call->body.ptr);
    }
}

static void header_lines_without_end_are_refused(void **state)
{
    struct rig *rig = *state;
    assert_end(get(rig, url_of(rig, "/headers")), CALL_RESPONSE_TOO_LARGE);
    assert_end(get(rig, url_of(rig, "/interims")), CALL_RESPONSE_TOO_LARGE);
}

/* --- redirects --- */

static void redirects_are_followed_so_far_and_no_further(void **state)
{
    struct rig *rig = *state;
    assert_answer(get(rig, url_of(rig, "/down/5")), 200, "ground");
    assert_int_equal(rig->receiver->request_count, 6);
    assert_end(get(rig, url_of(rig, "/down/6")), CALL_TOO_MANY_REDIRECTS);
    assert_int_equal(rig->receiver->request_count, 12);
    assert_end(get(rig, url_of(rig, "/loop")), CALL_TOO_MANY_REDIRECTS);
    assert_int_equal(rig->receiver->request_count, 18);
}

static void a_call_that_follows_nothing_gets_the_redirect(void **state)
{
    struct rig *rig = *state;
    struct http_request request = request_to("GET", url_of(rig, "/down/1"));
    request.redirects_max = 0;
    const struct http_call *call = perform_request(rig, &request);
    assert_answer(call, 302, "");
    assert_str(http_call_header(call, STR("location")), "0");
    assert_int_equal(rig->receiver->request_count, 1);
    assert_answer(get(rig, url_of(rig, "/300")), 302, "nowhere"); /* no Location, no redirect */
}

static void a_redirect_keeps_or_drops_method_and_body_as_its_status_says(void **state)
{
    struct rig *rig = *state;
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
    const struct http_header type = {STR("Content-Type"), STR("text/x")};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/to/%s//echo", CASES[i].status);
        struct http_request request = request_to(CASES[i].method, url_of(rig, path));
        request.body = STR("the body");
        request.headers = &type;
        request.header_count = 1;
        const struct http_call *call = perform_request(rig, &request);
        assert_end(call, CALL_ANSWERED);
        char line[64];
        (void)snprintf(line, sizeof(line), "%s /echo ", CASES[i].becomes);
        if (strncmp(call->body.ptr, line, strlen(line)) != 0)
            fail_msg("case %zu: %s", i, call->body.ptr);
        assert_int_equal(strstr(call->body.ptr, "the body") != NULL, CASES[i].body);
        assert_int_equal(strcasestr(call->body.ptr, "content-type") != NULL, CASES[i].body);
    }
}

static const struct http_call *get_with_secrets(struct rig *rig, const char *url)
{
    static const struct http_header HEADERS[] = {
        {{"Authorization", 13}, {"Bearer secret-1", 15}},
        {{"Cookie", 6}, {"secret-2", 8}},
        {{"X-Api-Key", 9}, {"secret-3", 8}},
        {{"Idempotency-Key", 15}, {"key-1", 5}},
        {{"traceparent", 11}, {"trace-1", 7}},
        {{"Accept", 6}, {"text/z", 6}},
    };
    struct http_request request = request_to("GET", url);
    request.headers = HEADERS;
    request.header_count = ARRAY_LEN(HEADERS);
    return perform_request(rig, &request);
}

static void credentials_stay_with_their_origin(void **state)
{
    struct rig *rig = *state;
    char path[256];
    const char *const ELSEWHERE[] = {
        url_at(rig->other, "one.test", "/echo"),    /* another port */
        url_at(rig->receiver, "two.test", "/echo"), /* another name */
    };
    for (size_t i = 0; i < ARRAY_LEN(ELSEWHERE); i++) {
        (void)snprintf(path, sizeof(path), "/to/307/%s", ELSEWHERE[i]);
        const struct http_call *call =
            get_with_secrets(rig, url_at(rig->receiver, "one.test", path));
        assert_end(call, CALL_ANSWERED);
        assert_lacks(call->body.ptr, "secret");
        assert_contains(call->body.ptr, "\r\nIdempotency-Key: key-1\r\n");
        assert_contains(call->body.ptr, "\r\ntraceparent: trace-1\r\n");
        assert_contains(call->body.ptr, "\r\nAccept: text/z\r\n");
    }
    /* The same origin, in other letters, gets all; so does the way back to it. */
    char there[256];
    (void)snprintf(path, sizeof(path), "/to/307/%s", url_at(rig->receiver, "ONE.test", "/echo"));
    (void)snprintf(there, sizeof(there), "/to/307/%s", url_at(rig->other, "two.test", path));
    const char *const HOME[] = {path, there};
    for (size_t i = 0; i < ARRAY_LEN(HOME); i++) {
        const struct http_call *call =
            get_with_secrets(rig, url_at(rig->receiver, "one.test", HOME[i]));
        assert_end(call, CALL_ANSWERED);
        assert_contains(call->body.ptr, "\r\nAuthorization: Bearer secret-1\r\n");
        assert_contains(call->body.ptr, "\r\nCookie: secret-2\r\n");
        assert_contains(call->body.ptr, "\r\nX-Api-Key: secret-3\r\n");
    }
}

static void redirects_go_to_http_only(void **state)
{
    struct rig *rig = *state;
    static const char *const TO[] = {
        "/to/302/ftp://one.test/x",       "/to/302/file:///etc/passwd",
        "/to/302/gopher://one.test/",     "/to/302/http://me:pass@one.test/",
        "/to/302/dict://one.test:11111/",
    };
    for (size_t i = 0; i < ARRAY_LEN(TO); i++)
        assert_end(get(rig, url_of(rig, TO[i])), CALL_REDIRECT_REFUSED);
}

/* --- requests that are none --- */

static void bad_urls_are_refused(void **state)
{
    struct rig *rig = *state;
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
        const struct http_call *call = get(rig, URLS[i]);
        if (call->end != CALL_REQUEST_INVALID)
            fail_msg("<%s> ended as %s: %s", URLS[i], call_end_code(call->end), call->detail);
    }
    assert_int_equal(rig->receiver->request_count, 0);
}

static void bad_methods_and_headers_are_refused(void **state)
{
    struct rig *rig = *state;
    static const struct http_header BAD[] = {
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
        struct http_request request = request_to("GET", url_of(rig, "/ok"));
        request.headers = &BAD[i];
        request.header_count = 1;
        assert_end(perform_request(rig, &request), CALL_REQUEST_INVALID);
    }
    static const char *const METHODS[] = {"", "GET /x", "G\r\nET", "GE:T"};
    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        struct http_request request = request_to(METHODS[i], url_of(rig, "/ok"));
        assert_end(perform_request(rig, &request), CALL_REQUEST_INVALID);
    }
    struct http_request head = request_to("HEAD", url_of(rig, "/ok"));
    head.body = STR("x");
    assert_end(perform_request(rig, &head), CALL_REQUEST_INVALID);
    char *large = malloc(CALL_HEAD_MAX);
    memset(large, 'x', CALL_HEAD_MAX);
    struct http_header big = {STR("X-Big"), {large, CALL_HEAD_MAX}};
    struct http_request request = request_to("GET", url_of(rig, "/ok"));
    request.headers = &big;
    request.header_count = 1;
    assert_end(perform_request(rig, &request), CALL_REQUEST_INVALID);
    free(large);
    assert_int_equal(rig->receiver->request_count, 0);
}

/* --- addresses, with nothing but public ones allowed --- */

static void private_addresses_are_refused_however_they_are_written(void **state)
{
    struct rig *rig = *state;
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
        const struct http_call *call = get(rig, url_at(rig->receiver, HOSTS[i], "/ok"));
        if (call->end != CALL_ADDRESS_REFUSED)
            fail_msg("%s ended as %s: %s", HOSTS[i], call_end_code(call->end), call->detail);
    }
    assert_int_equal(rig->receiver->connection_count, 0);
}

static void public_addresses_are_called(void **state)
{
    struct rig *rig = *state;
    assert_answer(get(rig, "http://public.test/ok"), 200, "fine");
    assert_answer(get(rig, "http://" SOMEWHERE_PUBLIC "/ok"), 200, "fine");
}

static void of_a_names_addresses_only_public_ones_are_tried(void **state)
{
    struct rig *rig = *state;
    /* Its loopback address listens too, and comes first. */
    assert_answer(get(rig, url_at(rig->other, "mixed.test", "/ok")), 200, "fine");
    assert_int_equal(rig->other->connection_count, 0);
    assert_int_equal(rig->receiver->connection_count, 1);
}

static void a_redirect_to_a_private_address_is_refused(void **state)
{
    struct rig *rig = *state;
    static const char *const HOSTS[] = {"127.0.0.1", "one.test", "[::1]", "localhost"};
    for (size_t i = 0; i < ARRAY_LEN(HOSTS); i++) {
        char url[256];
        (void)snprintf(url, sizeof(url), "http://public.test/to/302/%s",
                       url_at(rig->other, HOSTS[i], "/ok"));
        assert_end(get(rig, url), CALL_ADDRESS_REFUSED);
    }
    assert_int_equal(rig->other->connection_count, 0);
}

/* A name that was public at the first look and is loopback at the second: the look that counts is
 * the one of the connection. */
static void a_name_that_changes_its_mind_is_refused(void **state)
{
    struct rig *rig = *state;
    atomic_store(&flip_lookups, 0);
    struct addrinfo *first = NULL;
    assert_int_equal(getaddrinfo("flip.test", "80", NULL, &first), 0);
    freeaddrinfo(first);
    assert_end(get(rig, url_at(rig->other, "flip.test", "/ok")), CALL_ADDRESS_REFUSED);
    assert_int_equal(rig->other->connection_count, 0);
}

/* Who writes a workflow does not learn which names exist inside. */
static void a_name_that_is_private_and_one_that_is_none_look_alike(void **state)
{
    struct rig *rig = *state;
    char detail[CALL_DETAIL_MAX];
    const struct http_call *none = get(rig, "http://nobody.test/");
    assert_end(none, CALL_ADDRESS_REFUSED);
    memcpy(detail, none->detail, sizeof(detail));
    assert_non_null(strstr(detail, "--allow-private-addresses"));
    const struct http_call *private = get(rig, "http://private.test/");
    assert_end(private, CALL_ADDRESS_REFUSED);
    assert_string_equal(private->detail, detail);
}

static void in_development_loopback_is_called_and_no_other_private_address(void **state)
{
    struct rig *rig = *state;
    static const char *const REFUSED[] = {"0.0.0.0", "10.1.2.3", "private.test", "169.254.169.254",
                                          "[fd00::1]"};
    assert_answer(get(rig, url_at(rig->receiver, "127.0.0.1", "/ok")), 200, "fine");
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        const struct http_call *call = get(rig, url_at(rig->receiver, REFUSED[i], "/ok"));
        assert_end(call, CALL_ADDRESS_REFUSED);
        assert_non_null(strstr(call->detail, "--allow-private-addresses"));
    }
}

#define with_rig(f) cmocka_unit_test_setup_teardown(f, setup_open, teardown)
#define public_only(f) cmocka_unit_test_setup_teardown(f, setup_public_only, teardown)
#define in_development(f) cmocka_unit_test_setup_teardown(f, setup_dev, teardown)

int main(void)
{
    (void)setenv("http_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("https_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    const struct CMUnitTest tests[] = {
        with_rig(an_answer_comes_back_whole),
        with_rig(any_status_is_an_answer),
        with_rig(interim_responses_are_passed_over),
        with_rig(method_headers_and_body_arrive),
        with_rig(a_request_without_a_body_says_so),
        with_rig(head_gets_headers_however_large_the_thing_is),
        with_rig(a_large_body_is_sent_without_asking),
        with_rig(a_connection_is_used_again),
        with_rig(proxies_of_the_environment_are_not_used),
        with_rig(every_call_comes_back_once_and_not_too_many_run_at_once),
        with_rig(past_the_queues_bound_calls_are_not_taken),
        with_rig(a_call_that_waits_for_others_is_timed_out_in_the_queue),
        with_rig(an_abort_brings_everything_back),
        with_rig(a_caller_may_be_freed_with_calls_under_way),
        with_rig(a_refused_connection_is_told),
        with_rig(an_unknown_name_is_told),
        with_rig(a_connection_that_ends_early_is_told),
        with_rig(what_is_not_http_is_told),
        with_rig(a_receiver_that_takes_too_long_is_given_up),
        with_rig(redirects_share_one_time_out),
        with_rig(a_name_that_takes_long_holds_up_nobody),
        with_rig(a_response_may_be_as_large_as_the_limit_and_no_larger),
        with_rig(header_lines_without_end_are_refused),
        with_rig(redirects_are_followed_so_far_and_no_further),
        with_rig(a_call_that_follows_nothing_gets_the_redirect),
        with_rig(a_redirect_keeps_or_drops_method_and_body_as_its_status_says),
        with_rig(credentials_stay_with_their_origin),
        with_rig(redirects_go_to_http_only),
        with_rig(bad_urls_are_refused),
        with_rig(bad_methods_and_headers_are_refused),
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
