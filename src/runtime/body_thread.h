/* A thread for what takes as long as a request is large: reading a body, and freeing what was read.
 * One task at a time, tenants by turns. So large bodies hold up neither the HTTP loop nor the
 * readers, and those of one tenant hold up another's by one body at most. */
#ifndef PAWL_RUNTIME_BODY_THREAD_H
#define PAWL_RUNTIME_BODY_THREAD_H

#include "base/problem.h"

/* Belongs to whoever made it, and to this thread from body_thread_push() until it is collected. */
struct body_task {
    void (*run)(struct body_task *task); /* on the thread */
    /* On the loop's thread, after it; NULL: it is not collected, and run() frees it. */
    void (*done)(struct body_task *task);
    struct str tenant; /* empty: none */
    size_t bytes;      /* that it keeps waiting; counted by tenant */
    void *owner;
    struct body_task *next;
};

struct body_thread;

/* event_fd is written when there is something to collect. */
MUST_CHECK enum err body_thread_start(int event_fd, struct problem *p, struct body_thread **ret);
/* Does what was pushed, then ends. What is done by then is not collected any more. */
void body_thread_free(struct body_thread *thread);

/* False: as much of this tenant waits already as may (BODIES_PER_TENANT_BYTES_MAX). */
MUST_CHECK bool body_thread_push(struct body_thread *thread, struct body_task *task);
/* What is over and has a done(), linked by `next`. */
struct body_task *body_thread_collect(struct body_thread *thread);

#endif
