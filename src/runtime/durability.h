/* What may leave the process. Commits are visible to every connection a little before they are on
 * disk. So whatever was read from the store (an answer, a replay, an event for the bus) notes how
 * far commits had come when it was read, and stays here until the disk has come as far. Changes
 * wait in the settler (runtime/settler.h). */
#ifndef PAWL_RUNTIME_DURABILITY_H
#define PAWL_RUNTIME_DURABILITY_H

#include "core/txn/op.h"
#include "store/db.h"

#include <pthread.h>

struct durability {
    struct db_marks marks; /* of the store: the writer's connection moves them */
    int event_fd;          /* of the HTTP loop */
    atomic_bool awaited;   /* the loop holds answers and is woken when the marks move */
    pthread_mutex_t lock;
    pthread_cond_t moved;
};

void durability_init(struct durability *d);
void durability_release(struct durability *d);

/* What somebody may have seen who has just read from the store. */
uint64_t durability_seen(struct durability *d);
/* Blocks until all that can be seen now is on disk. False: the store failed, and it never will be.
 */
MUST_CHECK bool durability_wait(struct durability *d);
/* The marks have moved, or the store failed. */
void durability_moved(struct durability *d);

/* --- answers of readers, on the HTTP loop's thread --- */

struct held_ops {
    struct durability *durability;
    struct op *first, **last; /* linked by `next` */
};

void held_ops_init(struct held_ops *held, struct durability *durability);
/* True when what the op has seen (op->seen) is not on disk yet: it is kept, and the loop is woken
 * when it may leave. */
MUST_CHECK bool held_ops_keep(struct held_ops *held, struct op *op);
/* Those that may leave, linked by `next`. After a failure all: what they have seen is in doubt, and
 * so their answer is an error. */
struct op *held_ops_take(struct held_ops *held);

#endif
