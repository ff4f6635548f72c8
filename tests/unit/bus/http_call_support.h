/* A caller and a real receiver for the tests of outbound calls. Names and public addresses are the
 * test program's own: libcurl finds its getaddrinfo() and connect() here, so that "public.test" is
 * somewhere on the internet and yet the receiver on loopback. */
#ifndef PAWL_TESTS_HTTP_CALL_SUPPORT_H
#define PAWL_TESTS_HTTP_CALL_SUPPORT_H

#include "bus/receiver.h"

#include "bus/http_caller.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

enum { GIVE_UP_MS = 120 * 1000, PATIENT_MS = 60 * 1000, CALLS_MAX = 256 };

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

static inline void wait_for_release(void)
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

/* --- the fixture --- */

struct fixture {
    struct receiver *receiver;
    struct receiver *other;
    struct http_caller *caller;
    int event_fd;
    struct http_call *over[CALLS_MAX];
    size_t over_count;
};

static atomic_int hook_calls;

static inline void count_over(struct http_call *call)
{
    assert(call->end < CALL_END_COUNT);
    atomic_fetch_add(&hook_calls, 1);
}

static inline struct http_caller *caller_start(int event_fd, enum address_reach reach)
{
    struct http_caller_config config = {.reach = reach, .event_fd = event_fd, .over = count_over};
    struct http_caller *caller = http_caller_new(&config);
    assert_non_null(caller);
    return caller;
}

static inline int setup(void **state, enum address_reach reach)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->receiver = receiver_start();
    fixture->other = receiver_start();
    fixture->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    fixture->caller = caller_start(fixture->event_fd, reach);
    atomic_store(&public_port, fixture->receiver->port);
    *state = fixture;
    return 0;
}

static inline int setup_open(void **state)
{
    return setup(state, REACH_ALL);
}

static inline void collect(struct fixture *fixture)
{
    struct http_call *call = http_caller_collect(fixture->caller);
    while (call != NULL) {
        assert_true(fixture->over_count < CALLS_MAX);
        fixture->over[fixture->over_count++] = call;
        call = call->next;
    }
}

static inline void forget(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->over_count; i++)
        http_call_free(fixture->over[i]);
    fixture->over_count = 0;
}

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;
    http_caller_free(fixture->caller);
    forget(fixture);
    receiver_stop(fixture->receiver);
    receiver_stop(fixture->other);
    close(fixture->event_fd);
    free(fixture);
    return 0;
}

static inline void wait_over(struct fixture *fixture, size_t count)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + GIVE_UP_MS;
    while (fixture->over_count < count) {
        struct pollfd fd = {fixture->event_fd, POLLIN, 0};
        uint64_t ignored;
        if (env_mono_ms(&ENV_SYSTEM) > until)
            fail_msg("%zu of %zu calls came back", fixture->over_count, count);
        if (poll(&fd, 1, 1000) > 0 && read(fixture->event_fd, &ignored, sizeof(ignored)) > 0)
            collect(fixture);
    }
}

/* The fixture's: forgotten with the next perform(). */
static inline const struct http_call *perform_request(struct fixture *fixture,
                                                      const struct http_call_request *request)
{
    struct http_call *call = http_call_new(request);
    assert_non_null(call);
    forget(fixture);
    assert_true(http_caller_submit(fixture->caller, call));
    wait_over(fixture, 1);
    assert_ptr_equal(fixture->over[0], call);
    assert_int_equal(call->end == CALL_ANSWERED, call->detail[0] == '\0');
    assert_int_equal(call->end == CALL_ANSWERED, call->status != 0);
    return call;
}

static inline struct http_call_request request_to(const char *method, const char *url)
{
    return (struct http_call_request){.method = str_of(method),
                                      .url = str_of(url),
                                      .timeout_ms = PATIENT_MS,
                                      .redirects_max = CALL_REDIRECTS_MAX};
}

/* At the receiver, by this host name. */
static inline const char *url_at(const struct receiver *r, const char *host, const char *path)
{
    static char urls[4][512]; /* a few live at once: a URL in a redirect's path */
    static size_t next;
    char *url = urls[next++ % ARRAY_LEN(urls)];
    (void)snprintf(url, sizeof(urls[0]), "http://%s:%d%s", host, r->port, path);
    return url;
}

static inline const char *url_of(const struct fixture *fixture, const char *path)
{
    return url_at(fixture->receiver, "127.0.0.1", path);
}

static inline const struct http_call *get(struct fixture *fixture, const char *url)
{
    struct http_call_request request = request_to("GET", url);
    return perform_request(fixture, &request);
}

static inline void assert_end(const struct http_call *call, enum call_end end)
{
    if (call->end != end)
        fail_msg("ended as %s (%s), wanted %s", call_end_code(call->end), call->detail,
                 call_end_code(end));
}

static inline void assert_answer(const struct http_call *call, int status, const char *body)
{
    assert_end(call, CALL_ANSWERED);
    assert_int_equal(call->status, status);
    assert_str(buf_str(&call->body), body);
}

static inline void assert_lacks(const char *text, const char *part)
{
    if (strcasestr(text, part) != NULL)
        fail_msg("<%s> is in <%s>", part, text);
}

/* --- addresses, with nothing but public ones allowed --- */

#define with_fixture(f) cmocka_unit_test_setup_teardown(f, setup_open, teardown)

#endif
