/* A thread for what takes as long as a request is large. */
#include "runtime/body_thread.h"

#include "base/limits.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

struct body_thread {
    pthread_t thread;
    bool runs;
    int event_fd;
    char last[TENANT_ID_MAX]; /* whose turn it was; only the thread looks at it */
    size_t last_len;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t filled;
    struct body_task *first, **end;
    struct body_task *done_first, **done_end;
    bool stopping;
};

/* The oldest of another tenant than the last one's, or else the oldest. */
static struct body_task *take(struct body_thread *t)
{
    struct str last = {t->last, t->last_len};
    struct body_task **at = &t->first;
    while (*at != NULL && str_eq((*at)->tenant, last))
        at = &(*at)->next;
    if (*at == NULL)
        at = &t->first;
    struct body_task *task = *at;
    if (task == NULL)
        return NULL;
    *at = task->next;
    if (*at == NULL)
        t->end = at;
    t->last_len = MIN(task->tenant.len, sizeof(t->last));
    if (t->last_len > 0)
        memcpy(t->last, task->tenant.ptr, t->last_len);
    return task;
}

static void give_back(struct body_thread *t, struct body_task *task)
{
    pthread_mutex_lock(&t->lock);
    bool was_empty = t->done_first == NULL;
    task->next = NULL;
    *t->done_end = task;
    t->done_end = &task->next;
    pthread_mutex_unlock(&t->lock);
    if (was_empty) {
        uint64_t one = 1;
        ssize_t n = write(t->event_fd, &one, sizeof(one));
        assert(n == sizeof(one) || errno == EAGAIN);
    }
}

static void *body_main(void *ctx)
{
    struct body_thread *t = ctx;
    for (;;) {
        pthread_mutex_lock(&t->lock);
        while (t->first == NULL && !t->stopping)
            pthread_cond_wait(&t->filled, &t->lock);
        struct body_task *task = take(t);
        pthread_mutex_unlock(&t->lock);
        if (task == NULL)
            return NULL;
        bool collected = task->done != NULL; /* otherwise it is gone after run() */
        task->run(task);
        if (collected)
            give_back(t, task);
    }
}

/* Of this tenant's tasks that wait. */
static size_t waiting_bytes(const struct body_thread *t, struct str tenant)
{
    size_t bytes = 0;
    for (const struct body_task *task = t->first; task != NULL; task = task->next) {
        if (str_eq(task->tenant, tenant))
            bytes += task->bytes;
    }
    return bytes;
}

bool body_thread_push(struct body_thread *t, struct body_task *task)
{
    pthread_mutex_lock(&t->lock);
    assert(!t->stopping);
    bool fits = task->bytes == 0 ||
                waiting_bytes(t, task->tenant) + task->bytes <= BODIES_PER_TENANT_BYTES_MAX;
    if (fits) {
        task->next = NULL;
        *t->end = task;
        t->end = &task->next;
        pthread_cond_signal(&t->filled);
    }
    pthread_mutex_unlock(&t->lock);
    return fits;
}

struct body_task *body_thread_collect(struct body_thread *t)
{
    pthread_mutex_lock(&t->lock);
    struct body_task *first = t->done_first;
    t->done_first = NULL;
    t->done_end = &t->done_first;
    pthread_mutex_unlock(&t->lock);
    return first;
}

enum err body_thread_start(int event_fd, struct problem *p, struct body_thread **ret)
{
    struct body_thread *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for the thread that reads large bodies");
    t->event_fd = event_fd;
    t->end = &t->first;
    t->done_end = &t->done_first;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->filled, NULL);
    t->runs = pthread_create(&t->thread, NULL, body_main, t) == 0;
    if (!t->runs) {
        body_thread_free(t);
        return problem_set(p, ERR_NO_MEMORY, "Cannot start the thread that reads large bodies");
    }
    *ret = t;
    return ERR_OK;
}

void body_thread_free(struct body_thread *t)
{
    if (t == NULL)
        return;
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_cond_signal(&t->filled);
    pthread_mutex_unlock(&t->lock);
    if (t->runs)
        pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->filled);
    free(t);
}
