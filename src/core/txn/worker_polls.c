/* Who polls for work. */
#include "core/txn/worker_polls.h"

#include "base/pages.h"

#include <pthread.h>

/* Not a base/hash_map: when it is full, a tenant gives up one of its own entries, and finding that
 * one must not take a walk. */
enum { WAYS = 8, BUCKETS = POLLS_KEPT_MAX / WAYS };

struct worker_polls {
    int64_t since;
    pthread_mutex_t lock; /* guards all below */
    struct poll_entry entries[POLLS_KEPT_MAX];
};

struct worker_polls *worker_polls_new(int64_t now_ms)
{
    struct worker_polls *p = pages_new(sizeof(*p));
    if (p == NULL)
        return NULL;
    p->since = now_ms;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void worker_polls_free(struct worker_polls *p)
{
    if (p == NULL)
        return;
    pthread_mutex_destroy(&p->lock);
    pages_free(p, sizeof(*p));
}

int64_t worker_polls_since(const struct worker_polls *p)
{
    return p->since;
}

static bool is_of(const struct poll_entry *e, struct str tenant, struct str worker,
                  struct str queue)
{
    return e->last_at > 0 && str_is(queue, e->queue) && str_is(worker, e->worker) &&
           str_is(tenant, e->tenant);
}

/* The entry's place: its own, else a free one, else the oldest of the tenant itself, so that one
 * tenant with many workers pushes out its own; else the oldest. */
static struct poll_entry *place_of(struct poll_entry *bucket, struct str tenant, struct str worker,
                                   struct str queue)
{
    struct poll_entry *oldest = &bucket[0];
    struct poll_entry *own = NULL;
    struct poll_entry *empty = NULL;
    for (size_t i = 0; i < WAYS; i++) {
        struct poll_entry *e = &bucket[i];
        if (is_of(e, tenant, worker, queue))
            return e;
        if (e->last_at == 0)
            empty = e;
        if (e->last_at < oldest->last_at)
            oldest = e;
        if (str_is(tenant, e->tenant) && (own == NULL || e->last_at < own->last_at))
            own = e;
    }
    if (empty != NULL)
        return empty;
    return own != NULL ? own : oldest;
}

static void copy(char *to, size_t size, struct str from)
{
    size_t len = MIN(from.len, size - 1);
    memcpy(to, from.ptr, len);
    to[len] = '\0';
}

void worker_polls_note(struct worker_polls *p, struct str tenant, struct str worker,
                       struct str queue, int64_t now_ms)
{
    if (p == NULL)
        return;
    assert(worker.len <= NAME_MAX_LEN && queue.len <= NAME_MAX_LEN && tenant.len <= TENANT_ID_MAX);
    uint64_t hash = str_hash(worker) * 31 + str_hash(queue) * 17 + str_hash(tenant);
    pthread_mutex_lock(&p->lock);
    struct poll_entry *e =
        place_of(&p->entries[(hash >> 16) % BUCKETS * WAYS], tenant, worker, queue);
    if (!is_of(e, tenant, worker, queue)) {
        copy(e->tenant, sizeof(e->tenant), tenant);
        copy(e->worker, sizeof(e->worker), worker);
        copy(e->queue, sizeof(e->queue), queue);
    }
    e->last_at = now_ms;
    pthread_mutex_unlock(&p->lock);
}

void worker_polls_list(struct worker_polls *p, struct str tenant, poll_each *each, void *ctx)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < POLLS_KEPT_MAX; i++) {
        const struct poll_entry *e = &p->entries[i];
        if (e->last_at > 0 && (str_is(tenant, e->tenant) || strcmp(e->tenant, "*") == 0))
            each(ctx, e);
    }
    pthread_mutex_unlock(&p->lock);
}

struct one_queue {
    struct str name;
    int64_t lately;
    struct queue_polls found;
};

/* A worker that polls both for the tenant and for all is two, which does no harm here. */
static void count_poll(void *ctx, const struct poll_entry *e)
{
    struct one_queue *q = ctx;
    if (!str_is(q->name, e->queue))
        return;
    q->found.last_at = MAX(q->found.last_at, e->last_at);
    q->found.workers += e->last_at >= q->lately;
}

struct queue_polls worker_polls_of_queue(struct worker_polls *p, struct str tenant,
                                         struct str queue, int64_t now_ms)
{
    struct one_queue q = {
        .name = queue, .lately = now_ms - POLLED_LATELY_MS, .found = {.last_at = -1}};
    worker_polls_list(p, tenant, count_poll, &q);
    return q.found;
}
