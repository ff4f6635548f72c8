/* The load of `pawl demo crash`: threads that start runs and work on them, through every crash, and
 * remember what the server acknowledged. */
#ifndef PAWL_CLI_DEMO_CRASH_LOAD_H
#define PAWL_CLI_DEMO_CRASH_LOAD_H

#include "base/env.h"
#include "cli/client.h"

#include <pthread.h>
#include <stdatomic.h>

enum { CRASH_STARTS_MAX = 20000, CRASH_STARTERS = 3, CRASH_WORKERS = 2 };

struct crash_start {
    char run_id[UUID_TEXT_LEN + 1]; /* as acknowledged; "": not yet */
    atomic_bool is_completed;       /* the server acknowledged the result of its job */
};

struct crash_load {
    pthread_mutex_t lock; /* of the next three */
    int generation;       /* of the server; a new one has another URL and key */
    char url[64];
    char key[65];
    atomic_bool stop_starting;
    atomic_bool stop_working;
    atomic_int next;
    atomic_int acknowledged;
    atomic_int completed;
    atomic_int repeated;  /* starts sent again with the same key */
    atomic_int different; /* … that got another run */
    atomic_int stale;     /* results that came after the lease was lost, and were refused */
    struct crash_start *starts;
    pthread_t threads[CRASH_STARTERS + CRASH_WORKERS];
    size_t thread_count;
};

/* False when memory or threads ran out; call crash_load_end in both cases. */
MUST_CHECK bool crash_load_begin(struct crash_load *load);
/* The server is another process now. */
void crash_load_point_to(struct crash_load *load, const char *url, const char *key);
/* Waits until every start that was begun is acknowledged; workers go on. */
void crash_load_stop_starting(struct crash_load *load);
/* Joins the threads and frees everything. */
void crash_load_end(struct crash_load *load);

#endif
