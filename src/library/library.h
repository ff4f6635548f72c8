/* Libraries that are loaded when they are first needed. A server with the embedded store that calls
 * nobody needs none of them, and they bring thirty others with them.
 *
 * Each library has a list of the functions that pawl uses (curl_functions.h, nats_functions.h,
 * pq_functions.h) and a file that defines each of them: the caller includes the library's own
 * header and calls the function by its name. */
#ifndef PAWL_LIBRARY_LIBRARY_H
#define PAWL_LIBRARY_LIBRARY_H

#include "base/macros.h"

#include <pthread.h>
#include <stdbool.h>

enum { LIBRARY_WHY_MAX = 256 };

struct library_function {
    const char *name;
    void *slot; /* where the pointer to it goes */
};

struct library {
    const char *file;    /* its SONAME */
    const char *package; /* Debian's */
    const struct library_function *functions;
    size_t count;
    pthread_mutex_t lock; /* guards the following */
    bool loaded;
};

extern struct library LIBCURL, LIBNATS, LIBPQ;

/* To be called before the first call of any function of the library. False: it cannot be loaded;
 * `why` says so in a sentence, and a later call tries again. It stays loaded. Any thread. */
MUST_CHECK bool library_load(struct library *library, char why[static LIBRARY_WHY_MAX]);

#endif
