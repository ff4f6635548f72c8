/* Threads that open and close engines: both wait for the store, and the HTTP loop must not. */
#ifndef PAWL_CLUSTER_OPENERS_H
#define PAWL_CLUSTER_OPENERS_H

#include "base/problem.h"

struct openers;

/* One piece of such work, part of something that the caller owns. */
struct opening {
    void (*run)(struct opening *o);  /* on one of the threads */
    void (*done)(struct opening *o); /* then on the loop's thread, by openers_collect() */
    struct opening *next;
};

/* Writes to event_fd when something is done. NULL when memory or threads ran out. */
MUST_CHECK struct openers *openers_new(int event_fd);
/* Nothing may be under way. */
void openers_free(struct openers *o);

void openers_push(struct openers *o, struct opening *work);
void openers_collect(struct openers *o);

#endif
