/* What may leave the process. */
#include "runtime/durability.h"

#include "core/core.h"
#include "runtime/publish.h"

void durability_init(struct durability *d)
{
    *d = (struct durability){.event_fd = -1};
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->moved, NULL);
}

void durability_release(struct durability *d)
{
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->moved);
}

uint64_t durability_seen(struct durability *d)
{
    return atomic_load(&d->marks.written);
}

bool durability_wait(struct durability *d)
{
    uint64_t seen = durability_seen(d);
    pthread_mutex_lock(&d->lock);
    while (atomic_load(&d->marks.durable) < seen && !atomic_load(&d->marks.failed))
        pthread_cond_wait(&d->moved, &d->lock);
    pthread_mutex_unlock(&d->lock);
    return atomic_load(&d->marks.durable) >= seen;
}

void durability_moved(struct durability *d)
{
    pthread_mutex_lock(&d->lock);
    pthread_cond_broadcast(&d->moved);
    pthread_mutex_unlock(&d->lock);
    if (atomic_exchange(&d->awaited, false))
        wake_loop(d->event_fd);
}

/* --- answers of readers --- */

void held_ops_init(struct held_ops *held, struct durability *durability)
{
    *held = (struct held_ops){.durability = durability, .last = &held->first};
}

static bool may_leave(struct durability *d, const struct op *op)
{
    return atomic_load(&d->marks.durable) >= op->seen;
}

bool held_ops_keep(struct held_ops *held, struct op *op)
{
    struct durability *d = held->durability;
    if (may_leave(d, op))
        return false;
    op->next = NULL;
    *held->last = op;
    held->last = &op->next;
    atomic_store(&d->awaited, true);
    if (may_leave(d, op) || atomic_load(&d->marks.failed))
        wake_loop(d->event_fd); /* the marks moved before anybody knew that they are awaited */
    return true;
}

struct op *held_ops_take(struct held_ops *held)
{
    struct durability *d = held->durability;
    struct op *taken = NULL;
    struct op **last = &taken;
    bool failed = atomic_load(&d->marks.failed);
    struct op **at = &held->first;
    while (*at != NULL) {
        struct op *op = *at;
        if (!may_leave(d, op) && !failed) {
            at = &op->next;
            continue;
        }
        if (!may_leave(d, op)) {
            core_in_doubt(op);
            op->seen = 0; /* the error depends on nothing */
        }
        *at = op->next;
        op->next = NULL;
        *last = op;
        last = &op->next;
    }
    held->last = at;
    if (held->first != NULL)
        atomic_store(&d->awaited, true);
    return taken;
}
