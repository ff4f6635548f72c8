/* Threads that open and close engines. */
#include "cluster/openers.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS = 4
}; /* a node that comes alone opens all shards: most of it waits for the database */

struct openers {
    int event_fd;
    pthread_t threads[THREADS];
    size_t thread_count;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct opening *first, **last; /* to be done */
    struct opening *done;
    bool stops;
};

static void signal_fd(int fd)
{
    uint64_t one = 1;
    if (write(fd, &one, sizeof(one)) < 0)
        LOG(LOG_DEBUG, "the loop has not read yet");
}

/* NULL: stop. */
static struct opening *take(struct openers *o)
{
    pthread_mutex_lock(&o->lock);
    while (o->first == NULL && !o->stops)
        pthread_cond_wait(&o->more, &o->lock);
    struct opening *work = o->first;
    if (work != NULL) {
        o->first = work->next;
        if (o->first == NULL)
            o->last = &o->first;
    }
    pthread_mutex_unlock(&o->lock);
    return work;
}

static void *run(void *ctx)
{
    struct openers *o = ctx;
    for (struct opening *work; (work = take(o)) != NULL;) {
        work->run(work);
        pthread_mutex_lock(&o->lock);
        work->next = o->done;
        o->done = work;
        pthread_mutex_unlock(&o->lock);
        signal_fd(o->event_fd);
    }
    return NULL;
}

struct openers *openers_new(int event_fd)
{
    struct openers *o = calloc(1, sizeof(*o));
    if (o == NULL)
        return NULL;
    o->event_fd = event_fd;
    o->last = &o->first;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->more, NULL);
    while (o->thread_count < THREADS &&
           pthread_create(&o->threads[o->thread_count], NULL, run, o) == 0)
        o->thread_count++;
    if (o->thread_count == THREADS)
        return o;
    openers_free(o);
    return NULL;
}

void openers_free(struct openers *o)
{
    if (o == NULL)
        return;
    pthread_mutex_lock(&o->lock);
    assert(o->first == NULL);
    o->stops = true;
    pthread_cond_broadcast(&o->more);
    pthread_mutex_unlock(&o->lock);
    for (size_t i = 0; i < o->thread_count; i++)
        pthread_join(o->threads[i], NULL);
    assert(o->done == NULL);
    pthread_cond_destroy(&o->more);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

void openers_push(struct openers *o, struct opening *work)
{
    work->next = NULL;
    pthread_mutex_lock(&o->lock);
    *o->last = work;
    o->last = &work->next;
    pthread_cond_signal(&o->more);
    pthread_mutex_unlock(&o->lock);
}

void openers_collect(struct openers *o)
{
    pthread_mutex_lock(&o->lock);
    struct opening *work = o->done;
    o->done = NULL;
    pthread_mutex_unlock(&o->lock);
    while (work != NULL) {
        struct opening *next = work->next;
        work->done(work);
        work = next;
    }
}
