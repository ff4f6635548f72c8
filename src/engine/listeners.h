/* Who wants to hear of every event of a run, found by the run. On the HTTP loop's thread only. */
#ifndef PAWL_ENGINE_LISTENERS_H
#define PAWL_ENGINE_LISTENERS_H

#include "base/env.h"

struct listener {
    struct uuid run_id;
    /* The run's timeline has grown, or may have. Must not remove other listeners. */
    void (*told)(struct listener *l);
    struct listener *prev, *next;
};

struct listeners;

/* NULL when memory ran out. */
struct listeners *listeners_new(void);
void listeners_free(struct listeners *l);

/* The listener is the caller's, and stays where it is until it is removed. */
void listeners_add(struct listeners *l, struct listener *listener);
void listeners_remove(struct listeners *l, struct listener *listener);
void listeners_tell(struct listeners *l, struct uuid run_id);

#endif
