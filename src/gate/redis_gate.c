/* The thread of the gate in Redis. */
#include "gate/redis_gate.h"

#include "base/log.h"
#include "gate/redis_link.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

struct request_list {
    struct gate_request *first, **last;
};

struct redis_gate {
    struct gate gate; /* first: this is what callers have */
    const struct env *env;
    struct redis_url url;
    int event_fd;
    pthread_t thread;
    bool runs;

    struct redis_link link; /* the thread's */
    int64_t connect_at_ms;  /* not before; the thread's */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t more;
    struct request_list asked, answered;
    struct gate_state state;
    bool stopping;
};

static void list_init(struct request_list *l)
{
    l->first = NULL;
    l->last = &l->first;
}

/* --- the thread --- */

/* Up to GATE_BATCH_MAX requests; NULL: the thread ends. */
static struct gate_request *take(struct redis_gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (g->asked.first == NULL && !g->stopping)
        pthread_cond_wait(&g->more, &g->lock);
    struct gate_request *first = g->asked.first;
    struct gate_request **end = &g->asked.first;
    for (size_t i = 0; i < GATE_BATCH_MAX && *end != NULL; i++)
        end = &(*end)->next;
    g->asked.first = *end;
    if (g->asked.first == NULL)
        g->asked.last = &g->asked.first;
    if (first != NULL)
        *end = NULL;
    pthread_mutex_unlock(&g->lock);
    return first;
}

static void give_back(struct redis_gate *g, struct gate_request *first)
{
    uint64_t one = 1;
    struct gate_request **last = &first->next;
    while (*last != NULL)
        last = &(*last)->next;
    pthread_mutex_lock(&g->lock);
    *g->answered.last = first;
    g->answered.last = last;
    pthread_mutex_unlock(&g->lock);
    ssize_t n = write(g->event_fd, &one, sizeof(one));
    assert(n == sizeof(one) || errno == EAGAIN); /* full: it is readable already */
}

static void note_state(struct redis_gate *g)
{
    bool ok = g->link.redis != NULL;
    pthread_mutex_lock(&g->lock);
    bool changed = g->state.ok != ok;
    g->state.ok = ok;
    static_assert(sizeof(g->state.detail) == sizeof(g->link.fault), "any fault fits");
    memcpy(g->state.detail, g->link.fault, sizeof(g->state.detail));
    if (ok)
        g->state.detail[0] = '\0';
    pthread_mutex_unlock(&g->lock);
    if (changed && ok)
        LOG(LOG_INFO, "the gate in Redis answers again");
    else if (changed)
        LOG(LOG_WARN, "the gate in Redis does not answer", LOG_Z("error", g->link.fault));
}

/* A connection that was lost is opened again at once, and after a failure a little later. */
static bool connect_in_time(struct redis_gate *g)
{
    if (g->link.redis == NULL && env_mono_ms(g->env) < g->connect_at_ms)
        return false;
    if (redis_link_open(&g->link))
        return true;
    g->connect_at_ms = env_mono_ms(g->env) + GATE_RECONNECT_MS;
    return false;
}

static void *gate_main(void *ctx)
{
    struct redis_gate *g = ctx;
    struct gate_request *first;
    while ((first = take(g)) != NULL) {
        if (connect_in_time(g)) {
            redis_link_ask(&g->link, first);
        } else {
            for (struct gate_request *r = first; r != NULL; r = r->next)
                r->answer = GATE_DOWN;
        }
        note_state(g);
        give_back(g, first);
    }
    redis_link_close(&g->link);
    return NULL;
}

/* --- the loop --- */

static enum err start(struct gate *gate, int event_fd)
{
    struct redis_gate *g = (struct redis_gate *)gate;
    sigset_t all;
    sigset_t before;
    assert(!g->runs);
    g->event_fd = event_fd;
    g->stopping = false;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return ERR_NO_MEMORY;
    g->runs = pthread_create(&g->thread, NULL, gate_main, g) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return g->runs ? ERR_OK : ERR_NO_MEMORY;
}

static void submit(struct gate *gate, struct gate_request *r)
{
    struct redis_gate *g = (struct redis_gate *)gate;
    assert(g->runs);
    r->next = NULL;
    pthread_mutex_lock(&g->lock);
    *g->asked.last = r;
    g->asked.last = &r->next;
    pthread_cond_signal(&g->more);
    pthread_mutex_unlock(&g->lock);
}

static struct gate_request *collect(struct gate *gate)
{
    struct redis_gate *g = (struct redis_gate *)gate;
    pthread_mutex_lock(&g->lock);
    struct gate_request *first = g->answered.first;
    list_init(&g->answered);
    pthread_mutex_unlock(&g->lock);
    return first;
}

static void state(struct gate *gate, struct gate_state *ret)
{
    struct redis_gate *g = (struct redis_gate *)gate;
    pthread_mutex_lock(&g->lock);
    *ret = g->state;
    pthread_mutex_unlock(&g->lock);
}

static void stop(struct gate *gate)
{
    struct redis_gate *g = (struct redis_gate *)gate;
    if (!g->runs)
        return;
    pthread_mutex_lock(&g->lock);
    g->stopping = true;
    pthread_cond_signal(&g->more);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    g->runs = false;
}

static void gate_free(struct gate *gate)
{
    struct redis_gate *g = (struct redis_gate *)gate;
    stop(gate);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->more);
    free(g);
}

struct gate *redis_gate_new(const struct redis_url *url, const struct env *env)
{
    struct redis_gate *g = calloc(1, sizeof(*g));
    if (g == NULL)
        return NULL;
    g->gate = (struct gate){"redis", start, submit, collect, state, stop, gate_free};
    g->env = env;
    g->url = *url;
    g->link.url = &g->url;
    g->connect_at_ms = INT64_MIN;
    g->state.ok = true;
    list_init(&g->asked);
    list_init(&g->answered);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->more, NULL);
    return &g->gate;
}
