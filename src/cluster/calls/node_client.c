/* Requests to other nodes: the thread, and what goes between it and the loop. libcurl says which
 * sockets and timers it waits for, so that a thousand open streams cost nothing while they are
 * quiet. */
#include "cluster/calls/node_client.h"

#include "base/env.h"
#include "base/limits.h"
#include "cluster/calls/node_transfer.h"
#include "library/library.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TICK_MS = 1000, EVENTS_MAX = 64 };

/* What the loop wants of the thread. */
enum { ORDER_BEGIN = 1, ORDER_RESUME = 2, ORDER_CANCEL = 4 };

struct node_client {
    struct node_client_config config;
    int news_fd;  /* wakes the loop */
    int order_fd; /* wakes the thread */
    int epoll_fd;
    pthread_t thread;
    bool thread_runs;

    /* The thread's. */
    CURLM *multi;
    struct node_transfer *under_way;
    int64_t timer_at_ms; /* INT64_MAX: libcurl waits for sockets only */
    int64_t tick_at_ms;

    pthread_mutex_t lock; /* guards all below */
    struct node_call *orders, **last_order;
    struct node_call *news, **last_news;
    size_t news_count;
    bool stopping;
};

static void raise_fd(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof(one));
    assert(n == sizeof(one) || errno == EAGAIN); /* full: it is readable already */
}

static void lower_fd(int fd)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof(count));
    assert(n == sizeof(count) || errno == EAGAIN);
}

/* --- from the thread to the loop --- */

/* Within the lock. True: the loop must be woken. */
static bool add_news(struct node_client *c, struct node_call *call)
{
    if (call->has_news)
        return false;
    call->has_news = true;
    call->next_news = NULL;
    *c->last_news = call;
    c->last_news = &call->next_news;
    return c->news_count++ == 0;
}

static void on_head(struct node_transfer *t, int status)
{
    struct node_client *c = t->call->client;
    pthread_mutex_lock(&c->lock);
    t->call->status = status;
    t->call->head = t->head;
    bool wakes = add_news(c, t->call);
    pthread_mutex_unlock(&c->lock);
    buf_init(&t->head, CALL_HEAD_MAX);
    if (wakes)
        raise_fd(c->news_fd);
}

static bool on_body(struct node_transfer *t, const char *bytes, size_t len)
{
    struct node_client *c = t->call->client;
    struct buf *in = &t->call->body_in;
    bool wakes = false;
    pthread_mutex_lock(&c->lock);
    bool room = in->len + len <= NODE_BUFFER_MAX || in->len == 0;
    if (room) {
        buf_put_bytes(in, bytes, len);
        wakes = add_news(c, t->call);
    }
    t->call->paused = !room;
    pthread_mutex_unlock(&c->lock);
    if (wakes)
        raise_fd(c->news_fd);
    return room;
}

static const struct node_sink SINK = {on_head, on_body};

/* The loop may free the call from now on. */
static void end_call(struct node_client *c, struct node_call *call, enum node_end end,
                     const char *error)
{
    pthread_mutex_lock(&c->lock);
    assert(call->end == NODE_UNDER_WAY && end != NODE_UNDER_WAY);
    if (!buf_ok(&call->body_in) || !buf_ok(&call->head))
        end = end == NODE_ANSWERED ? NODE_BROKEN : end; /* no memory: some is missing */
    call->end = end;
    if (end != NODE_ANSWERED)
        (void)snprintf(call->error, sizeof(call->error), "%s", error);
    bool wakes = add_news(c, call);
    pthread_mutex_unlock(&c->lock);
    if (wakes)
        raise_fd(c->news_fd);
}

/* --- transfers --- */

static void link_transfer(struct node_client *c, struct node_transfer *t)
{
    t->next = c->under_way;
    if (c->under_way != NULL)
        c->under_way->prev = t;
    c->under_way = t;
    t->call->transfer = t;
}

/* Closes the connection too, unless the response is whole. */
static void end_transfer(struct node_client *c, struct node_transfer *t, enum node_end end,
                         const char *error)
{
    char copy[sizeof(t->call->error)];
    struct node_call *call = t->call;
    (void)snprintf(copy, sizeof(copy), "%s", error);
    (void)curl_multi_remove_handle(c->multi, t->easy);
    *(t->prev != NULL ? &t->prev->next : &c->under_way) = t->next;
    if (t->next != NULL)
        t->next->prev = t->prev;
    call->transfer = NULL;
    node_transfer_free(t);
    end_call(c, call, end, copy);
}

static void begin(struct node_client *c, struct node_call *call)
{
    static const char NO_MEMORY[] = "The server is out of memory";
    struct node_transfer *t = node_transfer_new(call, &c->config, &SINK);
    if (t == NULL) {
        end_call(c, call, NODE_UNREACHED, NO_MEMORY);
        return;
    }
    link_transfer(c, t);
    if (curl_multi_add_handle(c->multi, t->easy) != CURLM_OK)
        end_transfer(c, t, NODE_UNREACHED, NO_MEMORY);
}

static void resume(struct node_transfer *t)
{
    t->deadline_ms = env_mono_ms(&ENV_SYSTEM) + NODE_STALL_MS;
    (void)curl_easy_pause(t->easy, CURLPAUSE_CONT); /* may take some of the body at once */
}

/* The next call with orders that is not over: the loop may free one that is. */
static struct node_call *take_order(struct node_client *c, unsigned *ret)
{
    struct node_call *call = NULL;
    pthread_mutex_lock(&c->lock);
    while (c->orders != NULL && call == NULL) {
        struct node_call *first = c->orders;
        c->orders = first->next_order;
        if (c->orders == NULL)
            c->last_order = &c->orders;
        *ret = first->orders;
        first->orders = 0;
        call = first->end == NODE_UNDER_WAY ? first : NULL;
    }
    pthread_mutex_unlock(&c->lock);
    return call;
}

static void follow_orders(struct node_client *c)
{
    unsigned orders = 0;
    struct node_call *call;
    lower_fd(c->order_fd);
    while ((call = take_order(c, &orders)) != NULL) {
        if ((orders & ORDER_CANCEL) != 0 && call->transfer != NULL)
            end_transfer(c, call->transfer, NODE_CANCELLED, "The call was cancelled");
        else if ((orders & ORDER_CANCEL) != 0)
            end_call(c, call, NODE_CANCELLED, "The call was cancelled");
        else if ((orders & ORDER_BEGIN) != 0)
            begin(c, call);
        else
            resume(call->transfer);
    }
}

static void finish_ended(struct node_client *c)
{
    int left = 0;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(c->multi, &left)) != NULL) {
        struct node_transfer *t = NULL;
        CURLcode code = message->data.result;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        assert(t != NULL && message->msg == CURLMSG_DONE);
        end_transfer(c, t, node_transfer_end(t, code), node_transfer_error(t, code));
    }
}

static void end_late(struct node_client *c, int64_t now)
{
    for (struct node_transfer *t = c->under_way, *next; t != NULL; t = next) {
        next = t->next;
        if (t->deadline_ms > now)
            continue;
        t->late = true;
        end_transfer(c, t, node_transfer_end(t, CURLE_OPERATION_TIMEDOUT),
                     node_transfer_error(t, CURLE_OPERATION_TIMEDOUT));
    }
}

/* --- what libcurl waits for --- */

static int on_timer(CURLM *multi, long ms, void *ctx)
{
    struct node_client *c = ctx;
    (void)multi;
    c->timer_at_ms = ms < 0 ? INT64_MAX : env_mono_ms(&ENV_SYSTEM) + ms;
    return 0;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct node_client *c = ctx;
    (void)easy;
    struct epoll_event event = {.data.fd = fd};
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, fd, &event);
        return 0;
    }
    event.events |= (what & CURL_POLL_IN) != 0 ? (uint32_t)EPOLLIN : 0;
    event.events |= (what & CURL_POLL_OUT) != 0 ? (uint32_t)EPOLLOUT : 0;
    int rc = epoll_ctl(c->epoll_fd, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    (void)curl_multi_assign(c->multi, fd, c); /* anything but NULL */
    return rc == 0 ? 0 : -1;
}

static void on_event(struct node_client *c, const struct epoll_event *event)
{
    int running = 0;
    int mask = 0;
    if (event->data.fd == c->order_fd)
        return; /* orders are followed anyway */
    mask |= (event->events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0;
    mask |= (event->events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0;
    mask |= (event->events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0;
    (void)curl_multi_socket_action(c->multi, event->data.fd, mask, &running);
}

static int wait_ms(const struct node_client *c)
{
    int64_t until = c->timer_at_ms;
    if (c->under_way != NULL)
        until = MIN(until, c->tick_at_ms);
    if (until == INT64_MAX)
        return -1;
    return (int)MAX(MIN(until - env_mono_ms(&ENV_SYSTEM), (int64_t)TICK_MS), (int64_t)0);
}

static void wait_for_events(struct node_client *c)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(c->epoll_fd, events, EVENTS_MAX, wait_ms(c));
    for (int i = 0; i < count; i++)
        on_event(c, &events[i]);
}

static void run_timers(struct node_client *c)
{
    int running = 0;
    int64_t now = env_mono_ms(&ENV_SYSTEM);
    if (now >= c->timer_at_ms) {
        c->timer_at_ms = INT64_MAX;
        (void)curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    if (now >= c->tick_at_ms) {
        c->tick_at_ms = now + TICK_MS;
        end_late(c, now);
    }
}

static void *client_main(void *ctx)
{
    struct node_client *c = ctx;
    for (;;) {
        wait_for_events(c);
        run_timers(c);
        finish_ended(c);
        follow_orders(c);
        pthread_mutex_lock(&c->lock);
        bool stopping = c->stopping;
        pthread_mutex_unlock(&c->lock);
        if (stopping)
            return NULL;
    }
}

/* --- beginning and ending --- */

static bool start_thread(struct node_client *c)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    /* Other threads handle signals; a broken connection must not raise SIGPIPE. */
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    c->thread_runs = pthread_create(&c->thread, NULL, client_main, c) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return c->thread_runs;
}

static bool set_up_multi(struct node_client *c)
{
    return curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)NODE_CONNECTIONS_KEPT_MAX) ==
               CURLM_OK &&
           curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
           curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) == CURLM_OK &&
           curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
           curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c) == CURLM_OK;
}

/* A node that forwards nothing needs neither the thread nor libcurl. */
static bool start(struct node_client *c, char why[static LIBRARY_WHY_MAX])
{
    if (!library_load(&LIBCURL, why))
        return false;
    (void)snprintf(why, LIBRARY_WHY_MAX, "Cannot start the thread that calls other nodes");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return false;
    c->multi = curl_multi_init();
    if (c->multi != NULL && set_up_multi(c) && start_thread(c))
        return true;
    (void)curl_multi_cleanup(c->multi);
    c->multi = NULL;
    curl_global_cleanup();
    return false;
}

struct node_client *node_client_new(const struct node_client_config *config)
{
    struct node_client *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->config = *config;
    c->last_order = &c->orders;
    c->last_news = &c->news;
    c->timer_at_ms = INT64_MAX;
    c->news_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    c->order_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pthread_mutex_init(&c->lock, NULL);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = c->order_fd};
    if (c->news_fd >= 0 && c->order_fd >= 0 && c->epoll_fd >= 0 &&
        epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->order_fd, &event) == 0)
        return c;
    node_client_free(c);
    return NULL;
}

void node_client_free(struct node_client *c)
{
    if (c == NULL)
        return;
    if (c->thread_runs) {
        pthread_mutex_lock(&c->lock);
        c->stopping = true;
        pthread_mutex_unlock(&c->lock);
        raise_fd(c->order_fd);
        pthread_join(c->thread, NULL);
        assert(c->under_way == NULL && c->news == NULL);
        (void)curl_multi_cleanup(c->multi);
        curl_global_cleanup();
    }
    int fds[] = {c->news_fd, c->order_fd, c->epoll_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* --- the loop's side --- */

int node_client_fd(const struct node_client *c)
{
    return c->news_fd;
}

static struct node_call *take_news(struct node_client *c)
{
    pthread_mutex_lock(&c->lock);
    struct node_call *call = c->news;
    if (call != NULL) {
        c->news = call->next_news;
        c->news_count--;
        call->has_news = false;
        if (c->news == NULL)
            c->last_news = &c->news;
    }
    pthread_mutex_unlock(&c->lock);
    return call;
}

/* What comes meanwhile has its turn in the next round. */
void node_client_poll(struct node_client *c)
{
    lower_fd(c->news_fd); /* first: what is added from here on raises it again */
    pthread_mutex_lock(&c->lock);
    size_t count = c->news_count;
    pthread_mutex_unlock(&c->lock);
    struct node_call *call = NULL;
    while (count-- > 0 && (call = take_news(c)) != NULL)
        call->news(call);
    pthread_mutex_lock(&c->lock);
    bool more = c->news != NULL;
    pthread_mutex_unlock(&c->lock);
    if (more)
        raise_fd(c->news_fd);
}

static void order(struct node_call *call, unsigned what)
{
    struct node_client *c = call->client;
    pthread_mutex_lock(&c->lock);
    if (call->end == NODE_UNDER_WAY) {
        if (call->orders == 0) {
            call->next_order = NULL;
            *c->last_order = call;
            c->last_order = &call->next_order;
        }
        call->orders |= what;
    }
    pthread_mutex_unlock(&c->lock);
    raise_fd(c->order_fd);
}

void node_call_begin(struct node_client *c, struct node_call *call)
{
    call->client = c;
    call->end = NODE_UNDER_WAY;
    call->status = 0;
    call->orders = 0;
    call->has_news = call->paused = false;
    call->error[0] = '\0';
    buf_init(&call->head, CALL_HEAD_MAX);
    buf_init(&call->body_in, 2 * NODE_BUFFER_MAX);
    char why[LIBRARY_WHY_MAX];
    if (c->thread_runs || start(c, why))
        order(call, ORDER_BEGIN);
    else
        end_call(c, call, NODE_UNREACHED, why);
}

void node_call_cancel(struct node_call *call)
{
    order(call, ORDER_CANCEL);
}

enum node_end node_call_end(struct node_call *call)
{
    pthread_mutex_lock(&call->client->lock);
    enum node_end end = call->end;
    pthread_mutex_unlock(&call->client->lock);
    return end;
}

int node_call_head(struct node_call *call, struct str *ret_head)
{
    pthread_mutex_lock(&call->client->lock);
    int status = call->status;
    *ret_head = buf_str(&call->head);
    pthread_mutex_unlock(&call->client->lock);
    return status;
}

void node_call_take(struct node_call *call, struct buf *out)
{
    assert(out->len == 0);
    pthread_mutex_lock(&call->client->lock);
    struct buf taken = call->body_in;
    call->body_in = *out;
    call->body_in.max = taken.max;
    bool resumes = call->paused;
    call->paused = false;
    pthread_mutex_unlock(&call->client->lock);
    *out = taken;
    if (resumes)
        order(call, ORDER_RESUME);
}

const char *node_call_error(const struct node_call *call)
{
    return call->error;
}

/* From a list of orders or news that it may still be in. */
static void unlink_order(struct node_client *c, struct node_call *call)
{
    struct node_call **at = &c->orders;
    while (*at != NULL && *at != call)
        at = &(*at)->next_order;
    if (*at == NULL)
        return;
    *at = call->next_order;
    if (*at == NULL)
        c->last_order = at;
}

static void unlink_news(struct node_client *c, struct node_call *call)
{
    struct node_call **at = &c->news;
    while (*at != NULL && *at != call)
        at = &(*at)->next_news;
    if (*at == NULL)
        return;
    *at = call->next_news;
    c->news_count--;
    if (*at == NULL)
        c->last_news = at;
}

void node_call_release(struct node_call *call)
{
    struct node_client *c = call->client;
    pthread_mutex_lock(&c->lock);
    assert(call->end != NODE_UNDER_WAY);
    if (call->orders != 0)
        unlink_order(c, call);
    if (call->has_news)
        unlink_news(c, call);
    pthread_mutex_unlock(&c->lock);
    buf_release(&call->head);
    buf_release(&call->body_in);
}
