/* Makes one class of fallible calls fail at a chosen call: the nth once, or every one from the nth
 * on. The wrappers of each class are in files of their own (fault_alloc.c, fault_sockets.c, …) and
 * ask fault_due() before they make the real call. A test arms one class at a time, does what may
 * fail, and disarms. */
#ifndef PAWL_TESTS_TORTURE_FAULT_H
#define PAWL_TESTS_TORTURE_FAULT_H

#include "base/macros.h"

#include <stdbool.h>

enum fault_class {
    FAULT_ALLOC,   /* malloc, calloc, realloc and strdup of this program and of every library */
    FAULT_SOCKETS, /* socket, connect, send, recv, poll and the like, of every library */
    FAULT_THREADS, /* pthread_create */
    FAULT_CURL,    /* libcurl, as the server calls it */
    FAULT_NATS,    /* libnats, as the server calls it */
    FAULT_CLASS_COUNT
};

const char *fault_class_name(enum fault_class class);

/* From now on calls of this class are counted, from 1. The nth fails; `for_good`: and each one
 * after it. 0 fails nothing. */
void fault_arm(enum fault_class class, long nth, bool for_good);
/* How many calls were counted. */
long fault_disarm(void);
bool fault_armed(void);
/* How many calls have failed since fault_arm(). */
long fault_hits(void);
/* The calls of this thread are neither counted nor failed: they are the test's own. */
void fault_spare_thread(bool spared);

/* The allocations that this library itself asks for never fail. */
void fault_spare_library(const char *name);

/* For the wrappers: true when this call must fail. */
bool fault_due(enum fault_class class);

/* The next n to try. Every n up to 50; beyond that every PAWL_TORTURE_STEP-th: by default each one,
 * and every 11th under a sanitizer. */
long fault_next(long n);

#endif
