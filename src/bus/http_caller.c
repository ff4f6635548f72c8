/* Makes outgoing HTTP calls on a thread of its own. */
#include "bus/http_caller.h"

#include "base/env.h"
#include "base/limits.h"
#include "bus/transfer.h"
#include "library/library.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum {
    TICK_MS = 1000,      /* how often the deadlines of waiting calls are checked */
    PAUSE_MS = 20,       /* when libcurl cannot wait */
    IDLE_MS = 60 * 1000, /* with nothing to do; a submission wakes the thread */
};

/* One of the calls that may be under way. */
struct place {
    struct transfer transfer;
    bool busy;
    /* The call has ended, but libc may still be looking up its name, on a thread that cannot be
     * stopped. The place stays taken until then, which limits the number of such threads. */
    int64_t lingers_until_ms;
};

struct http_caller {
    struct http_caller_config config;
    pthread_t thread;
    bool thread_runs;

    /* For the caller's thread only. */
    CURLM *multi;
    struct place places[CALLS_IN_FLIGHT_MAX];
    size_t busy;

    pthread_mutex_t lock; /* guards all below */
    struct http_call *first, **last;
    size_t waiting;
    struct http_call *done_first, **done_last;
    bool aborting;
    bool stopping;
};

/* --- giving back --- */

static void give_back(struct http_caller *c, struct http_call *call)
{
    if (c->config.over != NULL)
        c->config.over(call);
    call->next = NULL;
    pthread_mutex_lock(&c->lock);
    bool was_empty = c->done_first == NULL;
    *c->done_last = call;
    c->done_last = &call->next;
    pthread_mutex_unlock(&c->lock);
    if (was_empty) {
        uint64_t one = 1;
        ssize_t n = write(c->config.event_fd, &one, sizeof(one));
        assert(n == sizeof(one) || errno == EAGAIN); /* full: it is readable already */
    }
}

static void leave(struct http_caller *c, struct place *place)
{
    assert(place->busy && c->busy > 0);
    const struct transfer *t = &place->transfer;
    if (t->resolving && (t->call->end == CALL_TIMED_OUT || t->call->end == CALL_ABORTED))
        place->lingers_until_ms = env_mono_ms(&ENV_SYSTEM) + CALL_RESOLVER_MS_MAX;
    place->busy = false;
    c->busy--;
    give_back(c, transfer_release(&place->transfer));
}

/* --- beginning --- */

static struct place *free_place(struct http_caller *c, int64_t now_ms)
{
    for (size_t i = 0; i < ARRAY_LEN(c->places); i++) {
        if (!c->places[i].busy && c->places[i].lingers_until_ms <= now_ms)
            return &c->places[i];
    }
    return NULL;
}

static struct http_call *take_first(struct http_caller *c)
{
    struct http_call *call = c->first;
    if (call != NULL) {
        c->first = call->next;
        c->waiting--;
        if (c->first == NULL)
            c->last = &c->first;
    }
    return call;
}

static void begin(struct http_caller *c, struct place *place, struct http_call *call)
{
    struct transfer *t = &place->transfer;
    place->busy = true;
    c->busy++;
    if (!transfer_begin(t, call, c->config.reach)) {
        leave(c, place);
    } else if (curl_multi_add_handle(c->multi, t->easy) != CURLM_OK) {
        http_call_end(call, CALL_FAILED, "The server is out of memory");
        leave(c, place);
    }
}

static void begin_waiting(struct http_caller *c)
{
    for (;;) {
        struct place *place = free_place(c, env_mono_ms(&ENV_SYSTEM));
        if (place == NULL)
            return;
        pthread_mutex_lock(&c->lock);
        struct http_call *call = take_first(c);
        pthread_mutex_unlock(&c->lock);
        if (call == NULL)
            return;
        begin(c, place, call);
    }
}

/* Removes calls from the queue whose time is up; with `all`, every call. */
static struct http_call *take_waiting(struct http_caller *c, bool all)
{
    struct http_call *taken = NULL;
    struct http_call **taken_last = &taken;
    int64_t now = env_mono_ms(&ENV_SYSTEM);
    pthread_mutex_lock(&c->lock);
    struct http_call **at = &c->first;
    while (*at != NULL) {
        struct http_call *call = *at;
        if (!all && call->deadline_ms > now) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        c->waiting--;
        call->next = NULL;
        *taken_last = call;
        taken_last = &call->next;
    }
    c->last = at;
    pthread_mutex_unlock(&c->lock);
    return taken;
}

static void end_waiting(struct http_caller *c, bool all, enum call_end end, const char *why)
{
    struct http_call *call = take_waiting(c, all);
    while (call != NULL) {
        struct http_call *next = call->next;
        http_call_end(call, end, "%s", why);
        give_back(c, call);
        call = next;
    }
}

/* --- ending --- */

static void finish(struct http_caller *c, CURL *easy, CURLcode code)
{
    struct transfer *t = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
    assert(t != NULL && t->easy == easy);
    struct place *place = CONTAINER_OF(t, struct place, transfer);
    (void)curl_multi_remove_handle(c->multi, easy);
    if (transfer_goes_on(t, code)) {
        if (curl_multi_add_handle(c->multi, easy) == CURLM_OK)
            return;
        http_call_end(t->call, CALL_FAILED, "The server is out of memory");
    }
    leave(c, place);
}

static void finish_ended(struct http_caller *c)
{
    int left = 0;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(c->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE)
            finish(c, message->easy_handle, message->data.result);
    }
}

static void end_busy(struct http_caller *c, int64_t due_ms, enum call_end end, const char *why)
{
    for (size_t i = 0; i < ARRAY_LEN(c->places); i++) {
        struct place *place = &c->places[i];
        if (!place->busy || place->transfer.call->deadline_ms > due_ms)
            continue;
        (void)curl_multi_remove_handle(c->multi, place->transfer.easy);
        http_call_end(place->transfer.call, end, "%s", why);
        leave(c, place);
    }
}

static void abort_all(struct http_caller *c)
{
    static const char WHY[] = "The server is stopping";
    end_waiting(c, true, CALL_ABORTED, WHY);
    end_busy(c, INT64_MAX, CALL_ABORTED, WHY);
}

static void end_late(struct http_caller *c)
{
    end_waiting(c, false, CALL_TIMED_OUT, "The call timed out while it waited for other calls");
    /* libcurl does this itself, unless it cannot go on at all. */
    end_busy(c, env_mono_ms(&ENV_SYSTEM) - TICK_MS, CALL_TIMED_OUT, "The call timed out");
}

/* --- the thread --- */

static void pause_a_little(void)
{
    static const struct timespec PAUSE = {.tv_nsec = PAUSE_MS * 1000L * 1000L};
    (void)nanosleep(&PAUSE, NULL);
}

static void *caller_main(void *ctx)
{
    struct http_caller *c = ctx;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        bool stop = c->stopping;
        bool abort = c->aborting || stop;
        c->aborting = false;
        pthread_mutex_unlock(&c->lock);
        if (abort)
            abort_all(c);
        if (stop)
            return NULL;
        begin_waiting(c);
        int running = 0;
        (void)curl_multi_perform(c->multi, &running);
        finish_ended(c);
        end_late(c);
        pthread_mutex_lock(&c->lock);
        bool waits = c->first != NULL;
        pthread_mutex_unlock(&c->lock);
        int wait_ms = c->busy > 0 || waits ? TICK_MS : IDLE_MS;
        if (waits && free_place(c, env_mono_ms(&ENV_SYSTEM)) != NULL)
            wait_ms = 0; /* a call has just ended: there is room for the next */
        if (curl_multi_poll(c->multi, NULL, 0, wait_ms, NULL) != CURLM_OK)
            pause_a_little();
    }
}

static bool start_thread(struct http_caller *c)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    /* Other threads handle signals; a broken connection must not raise SIGPIPE. */
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    c->thread_runs = pthread_create(&c->thread, NULL, caller_main, c) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return c->thread_runs;
}

struct http_caller *http_caller_new(const struct http_caller_config *config)
{
    struct http_caller *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->config = *config;
    c->last = &c->first;
    c->done_last = &c->done_first;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

/* With no file descriptor left libcurl makes a handle that nothing wakes: a call would wait for
 * IDLE_MS. */
static bool can_be_woken(struct http_caller *c)
{
    return curl_multi_wakeup(c->multi) == CURLM_OK;
}

/* Starts with the first call: a server that makes none needs neither the thread nor libcurl. */
static bool start(struct http_caller *c)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return false;
    c->multi = curl_multi_init();
    if (c->multi != NULL &&
        curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)CALL_CONNECTIONS_KEPT_MAX) ==
            CURLM_OK &&
        can_be_woken(c) && start_thread(c))
        return true;
    (void)curl_multi_cleanup(c->multi);
    c->multi = NULL;
    curl_global_cleanup();
    return false;
}

void http_caller_free(struct http_caller *c)
{
    if (c == NULL)
        return;
    bool started = c->thread_runs;
    if (started) {
        pthread_mutex_lock(&c->lock);
        c->stopping = true;
        pthread_mutex_unlock(&c->lock);
        (void)curl_multi_wakeup(c->multi);
        pthread_join(c->thread, NULL);
    }
    struct http_call *call = http_caller_collect(c);
    while (call != NULL) {
        struct http_call *next = call->next;
        http_call_free(call);
        call = next;
    }
    if (started) {
        (void)curl_multi_cleanup(c->multi);
        curl_global_cleanup();
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* --- other threads --- */

bool http_caller_submit(struct http_caller *c, struct http_call *call)
{
    char why[LIBRARY_WHY_MAX];
    call->next = NULL;
    if (!library_load(&LIBCURL, why)) {
        http_call_end(call, CALL_FAILED, "%s", why);
        give_back(c, call);
        return true;
    }
    call->deadline_ms = env_mono_ms(&ENV_SYSTEM) + call->request.timeout_ms;
    pthread_mutex_lock(&c->lock);
    assert(!c->stopping);
    bool room = c->waiting < CALLS_WAITING_MAX && (c->thread_runs || start(c));
    if (room) {
        *c->last = call;
        c->last = &call->next;
        c->waiting++;
    }
    pthread_mutex_unlock(&c->lock);
    if (room)
        (void)curl_multi_wakeup(c->multi);
    return room;
}

struct http_call *http_caller_collect(struct http_caller *c)
{
    pthread_mutex_lock(&c->lock);
    struct http_call *first = c->done_first;
    c->done_first = NULL;
    c->done_last = &c->done_first;
    pthread_mutex_unlock(&c->lock);
    return first;
}

void http_caller_abort(struct http_caller *c)
{
    pthread_mutex_lock(&c->lock);
    c->aborting = true;
    bool started = c->thread_runs;
    pthread_mutex_unlock(&c->lock);
    if (started)
        (void)curl_multi_wakeup(c->multi);
}
