/* The thread that keeps a node's lease and reads the directory. */
#include "cluster/directory.h"

#include "base/log.h"
#include "cluster/absence.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    LOOK_AGAIN_MS = 100,
    LEASE_OVER_MS = 20,
    RECONNECT_MS = 300, /* others may take a node for dead that is not back for NODE_GONE_MS */
};

enum wish { WISH_NONE, WISH_TAKE, WISH_RELEASE };

struct directory {
    struct cluster_store *store; /* the thread's, once it runs */
    const struct env *env;
    struct cluster_view view; /* the loop's */
    pthread_t thread;
    bool runs;
    int event_fd; /* for the loop */
    int wake_fd;  /* for the thread */
    atomic_bool stops;
    atomic_bool lost;
    atomic_bool stopping; /* others must know */

    /* The thread's. */
    int64_t renew_at_ms;
    int64_t lease_end_ms; /* when the first lease of another node would be over, or can be ended */
    struct absences absences;

    pthread_mutex_t lock;
    struct cluster_view fresh; /* what the thread has read */
    bool has_fresh;
    struct {
        enum wish wish;
        int64_t epoch; /* to take it: what it was */
    } wishes[CLUSTER_SHARDS_MAX];
};

static void signal_fd(int fd)
{
    uint64_t one = 1;
    if (write(fd, &one, sizeof(one)) < 0)
        LOG(LOG_DEBUG, "the other side has not read yet");
}

/* --- the thread --- */

static void report(const char *what, const struct problem *p)
{
    LOG(p->err == ERR_STORE_BUSY ? LOG_WARN : LOG_ERROR, what, LOG_Z("why", p->detail));
}

static void renew(struct directory *d)
{
    struct problem p;
    problem_init(&p);
    enum err e = cluster_store_renew(d->store, &p);
    if (e == ERR_STORE_FAILED)
        atomic_store(&d->lost, true);
    if (e != ERR_OK)
        report("the node's lease was not renewed", &p);
    problem_release(&p);
    d->renew_at_ms = env_mono_ms(d->env) + NODE_RENEW_MS;
}

static void renew_if_due(struct directory *d)
{
    if (env_mono_ms(d->env) >= d->renew_at_ms)
        renew(d);
}

static enum err grant(struct directory *d, size_t shard, enum wish wish, int64_t epoch,
                      struct problem *p)
{
    int64_t taken = 0;
    if (wish == WISH_RELEASE)
        return cluster_store_release(d->store, shard, p);
    return cluster_store_take(d->store, shard, epoch, p, &taken);
}

/* A wish that fails is made again by the loop, from the next view; but a release is kept, because
 * nobody would ask for it again. */
static void grant_wish(struct directory *d, size_t shard)
{
    struct problem p;
    pthread_mutex_lock(&d->lock);
    enum wish wish = d->wishes[shard].wish;
    int64_t epoch = d->wishes[shard].epoch;
    d->wishes[shard].wish = WISH_NONE;
    pthread_mutex_unlock(&d->lock);
    if (wish == WISH_NONE)
        return;
    problem_init(&p);
    enum err e = grant(d, shard, wish, epoch, &p);
    if (e != ERR_OK)
        report("the directory did not change", &p);
    problem_release(&p);
    pthread_mutex_lock(&d->lock);
    if (e != ERR_OK && wish == WISH_RELEASE && d->wishes[shard].wish == WISH_NONE)
        d->wishes[shard].wish = WISH_RELEASE;
    pthread_mutex_unlock(&d->lock);
}

/* Each may wait for the row of its shard: many of them must not cost the node its lease. Without a
 * connection all of them wait for the next turn, instead of dialling one after the other. */
static void grant_wishes(struct directory *d, size_t shards)
{
    for (size_t i = 0; i < shards && cluster_store_is_connected(d->store); i++) {
        renew_if_due(d);
        grant_wish(d, i);
    }
}

/* Of the other nodes that live; a little later, so that it is over by then. */
static int64_t first_lease_end(const struct directory *d, const struct cluster_view *view)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < view->node_count; i++) {
        if ((int)i != view->self && cluster_node_lives(&view->nodes[i]))
            first = MIN(first, view->mono_ms + view->nodes[i].lease_ms + LEASE_OVER_MS);
        first = MIN(first, absences_gone_at(&d->absences, view, i));
    }
    return first;
}

/* The next reading shows it. */
static void end_lease(struct directory *d, const struct cluster_node *node)
{
    struct problem p;
    problem_init(&p);
    LOG(LOG_WARN, "a node has lost its session and is not back", LOG_Z("node", node->name));
    if (cluster_store_end_lease(d->store, node->name, node->session, &p) != ERR_OK)
        report("the lease of a node was not ended", &p);
    problem_release(&p);
}

static void end_leases_of_gone(struct directory *d, const struct cluster_view *view)
{
    for (size_t i = 0; i < view->node_count; i++) {
        if (absences_gone_at(&d->absences, view, i) <= view->mono_ms)
            end_lease(d, &view->nodes[i]);
    }
}

static void read_again(struct directory *d)
{
    struct cluster_view view;
    struct problem p;
    d->lease_end_ms = INT64_MAX;
    problem_init(&p);
    enum err e = cluster_store_read(d->store, &p, &view);
    if (e != ERR_OK)
        report("the directory could not be read", &p);
    problem_release(&p);
    if (e != ERR_OK)
        return;
    absences_note(&d->absences, &view);
    end_leases_of_gone(d, &view);
    d->lease_end_ms = first_lease_end(d, &view);
    if (view.self < 0 && !atomic_exchange(&d->lost, true))
        LOG(LOG_ERROR, "Another process has joined the cluster as this node");
    pthread_mutex_lock(&d->lock);
    d->fresh = view;
    d->has_fresh = true;
    pthread_mutex_unlock(&d->lock);
}

/* Once. */
static void tell_stopping(struct directory *d)
{
    struct problem p;
    if (!atomic_load(&d->stopping))
        return;
    problem_init(&p);
    if (cluster_store_stop(d->store, &p) == ERR_OK)
        atomic_store(&d->stopping, false);
    problem_release(&p);
}

static void leave(struct directory *d)
{
    struct problem p;
    problem_init(&p);
    if (cluster_store_leave(d->store, &p) != ERR_OK)
        report("the node did not leave the cluster", &p);
    problem_release(&p);
}

static int wait_ms(const struct directory *d)
{
    int64_t left = MIN(d->renew_at_ms, d->lease_end_ms) - env_mono_ms(d->env);
    if (!cluster_store_is_connected(d->store))
        left = MIN(left, (int64_t)RECONNECT_MS);
    return (int)MAX(left, INT64_C(0));
}

static void *run(void *ctx)
{
    struct directory *d = ctx;
    size_t shards = d->view.shard_count; /* it never changes */
    d->renew_at_ms = env_mono_ms(d->env) + NODE_RENEW_MS;
    absences_note(&d->absences, &d->view);
    d->lease_end_ms = first_lease_end(d, &d->view);
    while (!atomic_load(&d->stops)) {
        cluster_store_wait(d->store, d->wake_fd, wait_ms(d));
        renew_if_due(d);
        tell_stopping(d);
        grant_wishes(d, shards);
        read_again(d);
        signal_fd(d->event_fd);
    }
    grant_wishes(d, shards);
    leave(d);
    return NULL;
}

/* --- life --- */

enum err directory_open(const char *store, size_t shards, const struct env *env, struct problem *p,
                        struct directory **ret)
{
    struct directory *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    bool is_new = false;
    pthread_mutex_init(&d->lock, NULL);
    d->env = env;
    d->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    d->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    enum err e = d->event_fd >= 0 && d->wake_fd >= 0
                     ? cluster_store_open(store, env, p, &d->store)
                     : problem_set(p, ERR_NO_MEMORY, "No descriptors are left");
    if (e == ERR_OK)
        e = cluster_store_init(d->store, shards, p, &is_new);
    if (e == ERR_OK)
        e = cluster_store_read(d->store, p, &d->view);
    if (e != ERR_OK) {
        directory_close(d);
        return e;
    }
    if (is_new)
        LOG(LOG_INFO, "initialized the cluster", LOG_N("shards", d->view.shard_count));
    *ret = d;
    return ERR_OK;
}

/* A node whose lease has more left than before. NULL: none has. */
static const struct cluster_node *renewed_node(const struct cluster_view *before,
                                               const struct cluster_view *now)
{
    for (size_t i = 0; i < now->node_count; i++) {
        bool same =
            i < before->node_count && strcmp(before->nodes[i].name, now->nodes[i].name) == 0;
        bool more = !same || now->nodes[i].lease_ms > before->nodes[i].lease_ms;
        if (cluster_node_lives(&now->nodes[i]) && more)
            return &now->nodes[i];
    }
    return NULL;
}

static bool anybody_lives(const struct cluster_view *view)
{
    for (size_t i = 0; i < view->node_count; i++) {
        if (cluster_node_lives(&view->nodes[i]))
            return true;
    }
    return false;
}

enum err directory_await_nobody(struct directory *d, struct problem *p)
{
    enum err e = ERR_OK;
    while (e == ERR_OK && anybody_lives(&d->view)) {
        struct cluster_view now;
        cluster_store_wait(d->store, d->wake_fd, LOOK_AGAIN_MS);
        e = cluster_store_read(d->store, p, &now);
        const struct cluster_node *other = e == ERR_OK ? renewed_node(&d->view, &now) : NULL;
        if (other != NULL)
            e = problem_set(p, ERR_STORE_BUSY, "The store is in use by another pawl (node %s)",
                            other->name);
        if (e == ERR_OK)
            d->view = now;
    }
    return e;
}

/* Most likely both listen on loopback, or on every address, and advertise that. */
static void warn_of_shared_url(const struct cluster_view *view, struct str url)
{
    for (size_t i = 0; i < view->node_count; i++) {
        const struct cluster_node *other = &view->nodes[i];
        if ((int)i != view->self && cluster_node_lives(other) && str_is(url, other->url))
            LOG(LOG_WARN,
                "another node has the same address: what is sent to one reaches the other",
                LOG_Z("node", other->name), LOG_Z("url", other->url));
    }
}

enum err directory_join(struct directory *d, struct str name, struct str url, struct problem *p)
{
    enum err e = cluster_store_join(d->store, name.ptr, url.ptr, p);
    if (e == ERR_OK)
        e = cluster_store_read(d->store, p, &d->view);
    if (e != ERR_OK)
        return e;
    warn_of_shared_url(&d->view, url);
    d->runs = pthread_create(&d->thread, NULL, run, d) == 0;
    return d->runs ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Cannot start a thread");
}

void directory_close(struct directory *d)
{
    if (d == NULL)
        return;
    if (d->runs) {
        atomic_store(&d->stops, true);
        signal_fd(d->wake_fd);
        pthread_join(d->thread, NULL);
    }
    cluster_store_close(d->store);
    if (d->event_fd >= 0)
        close(d->event_fd);
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* --- the loop --- */

int directory_event_fd(const struct directory *d)
{
    return d->event_fd;
}

bool directory_poll(struct directory *d)
{
    uint64_t ignored;
    if (read(d->event_fd, &ignored, sizeof(ignored)) < 0)
        return false;
    pthread_mutex_lock(&d->lock);
    bool fresh = d->has_fresh;
    if (fresh)
        d->view = d->fresh;
    d->has_fresh = false;
    pthread_mutex_unlock(&d->lock);
    return fresh;
}

const struct cluster_view *directory_view(const struct directory *d)
{
    return &d->view;
}

bool directory_is_lost(const struct directory *d)
{
    return atomic_load(&d->lost);
}

static void wish_for(struct directory *d, size_t shard, enum wish wish, int64_t epoch)
{
    pthread_mutex_lock(&d->lock);
    d->wishes[shard].wish = wish;
    d->wishes[shard].epoch = epoch;
    pthread_mutex_unlock(&d->lock);
    signal_fd(d->wake_fd);
}

void directory_take(struct directory *d, size_t shard, int64_t epoch)
{
    wish_for(d, shard, WISH_TAKE, epoch);
}

void directory_release(struct directory *d, size_t shard)
{
    wish_for(d, shard, WISH_RELEASE, 0);
}

void directory_stop(struct directory *d)
{
    atomic_store(&d->stopping, true);
    signal_fd(d->wake_fd);
}

void directory_refresh(struct directory *d)
{
    signal_fd(d->wake_fd);
}
