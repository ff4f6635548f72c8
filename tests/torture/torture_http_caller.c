/* Outgoing HTTP calls while each fallible call below them fails: allocations, sockets, threads and
 * libcurl itself. Whatever fails, each call comes back exactly once, a response is never wrong, a
 * fault of this machine is never reported as a lasting fault of the request, and everything works
 * again when the fault is over. */
#include "bus/receiver.h"
#include "fault.h"

#include "bus/http_caller.h"

#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

enum { CALLS = 3, TIMEOUT_MS = 700, GIVE_UP_TURNS = 60 };

/* --- the receiver, in a process of its own: faults here do not reach it --- */

static int receiver_port;

static bool respond(int fd, const char *request)
{
    if (strstr(request, " /away ") != NULL)
        return answer(fd, "307 Elsewhere", "Location: /echo\r\n", "");
    const char *body = strstr(request, "\r\n\r\n") + 4;
    return answer(fd, "200 OK", "X-One: 1\r\nContent-Type: text/plain\r\n", body);
}

static void *serve_connection(void *ctx)
{
    int fd = (int)(intptr_t)ctx;
    bool more = true;
    while (more) {
        char *request = read_request(fd);
        more = request != NULL && respond(fd, request);
        free(request);
    }
    close(fd);
    return NULL;
}

static _Noreturn void receive_for_ever(int listener)
{
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        int rc = pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd);
        assert(fd >= 0 && rc == 0);
        pthread_detach(thread);
    }
}

static void start_receiver(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(fd >= 0);
    int rc = bind(fd, (struct sockaddr *)&address, len) | listen(fd, 512) |
             getsockname(fd, (struct sockaddr *)&address, &len);
    assert(rc == 0);
    receiver_port = ntohs(address.sin_port);
    pid_t parent = getpid();
    if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            receive_for_ever(fd);
        _exit(0);
    }
    close(fd);
}

/* --- three calls --- */

struct fixture {
    struct http_caller *caller;
    int event_fd;
    size_t submitted;
    size_t back;
    bool answered[CALLS];
};

static const struct {
    const char *method;
    const char *host;
    const char *path;
    const char *body; /* also that of the response */
} SCRIPT[CALLS] = {
    {"GET", "127.0.0.1", "/ok", ""},
    {"POST", "127.0.0.1", "/away", "{\"pay\":1}"},
    {"POST", "localhost", "/echo", "by name"},
};

static struct http_call *make_call(size_t i)
{
    const struct http_call_header headers[] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("Idempotency-Key"), STR("k-1")},
        {STR("X-Empty"), STR("")},
    };
    char url[128];
    (void)snprintf(url, sizeof(url), "http://%s:%d%s", SCRIPT[i].host, receiver_port,
                   SCRIPT[i].path);
    struct http_call_request request = {
        .method = str_of(SCRIPT[i].method),
        .url = str_of(url),
        .headers = headers,
        .header_count = ARRAY_LEN(headers),
        .body = str_of(SCRIPT[i].body),
        .timeout_ms = TIMEOUT_MS,
        .redirects_max = 2,
    };
    return http_call_new(&request);
}

/* Submits the calls that there is memory for. */
static void submit_all(struct fixture *f)
{
    f->submitted = f->back = 0;
    memset(f->answered, 0, sizeof(f->answered));
    for (size_t i = 0; i < CALLS; i++) {
        struct http_call *call = make_call(i);
        if (call == NULL)
            continue;
        call->owner = &f->answered[i];
        if (http_caller_submit(f->caller, call))
            f->submitted++;
        else
            http_call_free(call);
    }
}

static void check_result(struct fixture *f, struct http_call *call)
{
    bool *answered = call->owner;
    size_t i = (size_t)(answered - f->answered);
    assert_false(*answered);
    *answered = call->end == CALL_ANSWERED;
    if (*answered) {
        assert_int_equal(call->status, 200);
        assert_str(buf_str(&call->body), SCRIPT[i].body);
        assert_str(http_call_header(call, STR("x-one")), "1");
    } else if (!call_end_retryable(call->end)) {
        fail_msg("a fault of this machine ended the call as %s (%s)", call_end_code(call->end),
                 call->detail);
    }
    f->back++;
}

static void collect(struct fixture *f)
{
    struct http_call *call = http_caller_collect(f->caller);
    while (call != NULL) {
        struct http_call *next = call->next;
        check_result(f, call);
        http_call_free(call);
        call = next;
    }
}

static void wait_all(struct fixture *f)
{
    fault_spare_thread(true);
    for (int turn = 0; f->back < f->submitted; turn++) {
        struct pollfd fd = {f->event_fd, POLLIN, 0};
        uint64_t ignored;
        if (turn == GIVE_UP_TURNS)
            fail_msg("%zu of %zu calls came back", f->back, f->submitted);
        if (poll(&fd, 1, 1000) > 0 && read(f->event_fd, &ignored, sizeof(ignored)) > 0)
            collect(f);
    }
    fault_spare_thread(false);
}

/* --- the scenarios: what is done while something fails --- */

static void new_caller(struct fixture *f)
{
    struct http_caller_config config = {.reach = REACH_ALL, .event_fd = f->event_fd};
    f->caller = http_caller_new(&config);
}

static void all_calls_work(struct fixture *f)
{
    if (f->caller == NULL)
        new_caller(f);
    assert_non_null(f->caller);
    submit_all(f);
    wait_all(f);
    for (size_t i = 0; i < CALLS; i++)
        assert_true(f->answered[i]);
}

static void make_calls(struct fixture *f)
{
    new_caller(f);
    if (f->caller == NULL)
        return;
    submit_all(f);
    wait_all(f);
}

/* Calls on connections that are open already. */
static void make_more_calls(struct fixture *f)
{
    submit_all(f);
    wait_all(f);
}

static void stop_at_once(struct fixture *f)
{
    submit_all(f);
    http_caller_free(f->caller);
    f->caller = NULL;
}

static const struct scenario {
    const char *name;
    bool warm; /* the caller has made calls before */
    void (*run)(struct fixture *f);
} SCENARIOS[] = {
    {"first calls", false, make_calls},
    {"more calls", true, make_more_calls},
    {"stop", true, stop_at_once},
};

/* --- one fault after the other --- */

static size_t open_files(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* A thread that resolves a name may outlive its call for a moment, with a file of its own. */
static void check_files(size_t wanted)
{
    for (int turn = 0; open_files() != wanted; turn++) {
        if (turn == GIVE_UP_TURNS)
            fail_msg("%zu files are open, wanted %zu", open_files(), wanted);
        (void)poll(NULL, 0, 500);
    }
}

/* True when there was an nth call, which failed. */
static bool survives(const struct scenario *s, enum fault_class class, long n, bool for_good)
{
    struct fixture f = {.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    size_t files = open_files();
    if (s->warm)
        all_calls_work(&f);
    fault_arm(class, n, for_good);
    s->run(&f);
    (void)fault_disarm();
    bool hit = fault_hits() > 0;
    all_calls_work(&f);
    http_caller_free(f.caller);
    check_files(files);
    close(f.event_fd);
    return hit;
}

static void torture(enum fault_class class)
{
    long all = 0;
    start_receiver();
    for (size_t i = 0; i < ARRAY_LEN(SCENARIOS); i++) {
        long tried = 0;
        for (int for_good = 0; for_good <= 1; for_good++) {
            for (long n = 1; survives(&SCENARIOS[i], class, n, for_good); n = fault_next(n))
                tried++;
        }
        print_message("%s, %s: %ld faults\n", SCENARIOS[i].name, fault_class_name(class), tried);
        all += tried;
    }
    assert_true(all > 0);
}

static void calls_survive_failing_allocations(void **state)
{
    (void)state;
    torture(FAULT_ALLOC);
}

static void calls_survive_failing_sockets(void **state)
{
    (void)state;
    torture(FAULT_SOCKETS);
}

static void calls_survive_a_failing_libcurl(void **state)
{
    (void)state;
    torture(FAULT_CURL);
}

static void calls_survive_threads_that_cannot_be_started(void **state)
{
    (void)state;
    torture(FAULT_THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_survive_a_failing_libcurl),
        cmocka_unit_test(calls_survive_threads_that_cannot_be_started),
        cmocka_unit_test(calls_survive_failing_sockets),
        cmocka_unit_test(calls_survive_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
