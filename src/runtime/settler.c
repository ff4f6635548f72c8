/* Lets answers and effects go once their commits are on disk. */
#include "runtime/settler.h"

#include "base/metrics.h"

/* Both lists are in the order of commits. */
struct news {
    struct op *ops, **ops_last;
    struct effect_parcel *parcels, **parcels_last;
};

struct settler {
    struct settler_config config;
    struct db_marks *marks;
    pthread_t thread;
    bool thread_runs;

    pthread_mutex_t settling; /* guards `waiting`; held while its first ones leave */
    struct news waiting;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t asked_for;
    pthread_cond_t has_begun;
    bool asked; /* for a sync */
    bool stopping;
    uint64_t begun;   /* a sync has begun that covers the commits up to this one */
    struct news left; /* for the loop to collect */
};

static void news_init(struct news *n)
{
    n->ops = NULL;
    n->ops_last = &n->ops;
    n->parcels = NULL;
    n->parcels_last = &n->parcels;
}

static void append(struct news *n, struct op *ops, struct effect_parcel *parcels)
{
    *n->ops_last = ops;
    while (*n->ops_last != NULL)
        n->ops_last = &(*n->ops_last)->next;
    *n->parcels_last = parcels;
    while (*n->parcels_last != NULL)
        n->parcels_last = &(*n->parcels_last)->next;
}

/* --- leaving --- */

/* The first one that may leave: it is on disk, or it failed and never will be. */
static struct effect_parcel *next_parcel(struct settler *s, uint64_t durable, bool failed)
{
    struct effect_parcel *p = s->waiting.parcels;
    if (p == NULL || (p->seen > durable && !failed))
        return NULL;
    s->waiting.parcels = p->next;
    if (p->next == NULL)
        s->waiting.parcels_last = &s->waiting.parcels;
    p->next = NULL;
    return p;
}

static struct op *next_op(struct settler *s, uint64_t durable, bool failed)
{
    struct op *op = s->waiting.ops;
    if (op == NULL || (op->seen > durable && !failed))
        return NULL;
    s->waiting.ops = op->next;
    if (op->next == NULL)
        s->waiting.ops_last = &s->waiting.ops;
    op->next = NULL;
    return op;
}

static void measure(struct settler *s, const struct op *op)
{
    if (op->batch_begun_ns <= 0)
        return;
    double seconds = (double)(env_mono_ns(s->config.env) - op->batch_begun_ns) / 1e9;
    metric_observe(s->config.commit_seconds, STR_NONE, STR_NONE, seconds);
}

/* Takes out what may leave. Effects that go to other threads are published before the ops of their
 * commit are answered. */
static void take_out(struct settler *s, struct news *out)
{
    uint64_t durable = atomic_load(&s->marks->durable);
    bool failed = atomic_load(&s->marks->failed);
    struct effect_parcel *p;
    while ((p = next_parcel(s, durable, failed)) != NULL) {
        if (p->seen <= durable)
            append(out, NULL, publish_committed(&s->config.receivers, p));
        else
            effect_parcel_free(p);
    }
    struct op *op;
    while ((op = next_op(s, durable, failed)) != NULL) {
        if (op->seen <= durable)
            measure(s, op);
        else
            core_in_doubt(op);
        append(out, op, NULL);
    }
}

static void settle(struct settler *s)
{
    struct news out;
    news_init(&out);
    pthread_mutex_lock(&s->settling);
    take_out(s, &out);
    bool wakes = false;
    if (out.ops != NULL || out.parcels != NULL) {
        pthread_mutex_lock(&s->lock);
        wakes = s->left.ops == NULL && s->left.parcels == NULL;
        append(&s->left, out.ops, out.parcels);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&s->settling);
    if (wakes)
        wake_loop(s->config.receivers.event_fd);
    durability_moved(s->config.durability);
}

void settler_collect(struct settler *s, struct op **ret_ops, struct effect_parcel **ret_parcels)
{
    pthread_mutex_lock(&s->lock);
    *ret_ops = s->left.ops;
    *ret_parcels = s->left.parcels;
    news_init(&s->left);
    pthread_mutex_unlock(&s->lock);
}

/* --- syncing --- */

static bool needs_sync(struct settler *s)
{
    return atomic_load(&s->marks->written) > atomic_load(&s->marks->durable) &&
           !atomic_load(&s->marks->failed);
}

bool settler_is_busy(struct settler *s)
{
    return needs_sync(s);
}

void settler_add(struct settler *s, struct op *first, struct effect_parcel *effects)
{
    uint64_t seen = durability_seen(s->config.durability);
    for (struct op *op = first; op != NULL; op = op->next)
        op->seen = seen;
    if (effects != NULL)
        effects->seen = seen;
    pthread_mutex_lock(&s->settling);
    append(&s->waiting, first, effects);
    pthread_mutex_unlock(&s->settling);
}

/* A failure is in the marks, and settle() acts on it. */
static void sync_and_settle(struct settler *s)
{
    if (needs_sync(s))
        (void)!db_sync(s->config.db);
    settle(s);
}

void settler_sync(struct settler *s)
{
    sync_and_settle(s);
}

void settler_sync_soon(struct settler *s)
{
    if (!needs_sync(s)) {
        settle(s);
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->asked = true;
    pthread_cond_signal(&s->asked_for);
    pthread_mutex_unlock(&s->lock);
}

static bool is_ahead(struct settler *s)
{
    return needs_sync(s) && atomic_load(&s->marks->written) > s->begun;
}

void settler_wait(struct settler *s)
{
    pthread_mutex_lock(&s->lock);
    while (is_ahead(s) && s->asked)
        pthread_cond_wait(&s->has_begun, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void *settler_main(void *ctx)
{
    struct settler *s = ctx;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        if (!s->asked) {
            pthread_cond_wait(&s->asked_for, &s->lock);
            continue;
        }
        s->asked = false;
        s->begun = atomic_load(&s->marks->written);
        pthread_cond_signal(&s->has_begun);
        pthread_mutex_unlock(&s->lock);
        sync_and_settle(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* --- life --- */

enum err settler_start(const struct settler_config *config, struct problem *p, struct settler **ret)
{
    struct settler *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    s->config = *config;
    s->marks = &config->durability->marks;
    news_init(&s->waiting);
    news_init(&s->left);
    pthread_mutex_init(&s->settling, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->asked_for, NULL);
    pthread_cond_init(&s->has_begun, NULL);
    s->thread_runs = pthread_create(&s->thread, NULL, settler_main, s) == 0;
    if (!s->thread_runs) {
        settler_free(s);
        return problem_set(p, ERR_NO_MEMORY, "Cannot start the thread that syncs");
    }
    *ret = s;
    return ERR_OK;
}

void settler_stop(struct settler *s)
{
    if (!s->thread_runs)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->asked_for);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->thread_runs = false;
    sync_and_settle(s);
}

void settler_free(struct settler *s)
{
    if (s == NULL)
        return;
    settler_stop(s);
    assert(s->waiting.ops == NULL && s->waiting.parcels == NULL);
    while (s->left.parcels != NULL) {
        struct effect_parcel *old = s->left.parcels;
        s->left.parcels = old->next;
        effect_parcel_free(old);
    }
    pthread_mutex_destroy(&s->settling);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->asked_for);
    pthread_cond_destroy(&s->has_begun);
    free(s);
}
