/* NATS JetStream as a bus. The stream PAWL (subjects pawl.>) stores events, the stream PAWL_JOBS
 * (subjects pawl-jobs.>) offers of jobs. Both are checked after each connect, and created when they
 * are missing. An existing stream with other subjects is not changed: nothing is sent then, and the
 * state says why. */
#ifndef PAWL_BUS_NATS_BUS_H
#define PAWL_BUS_NATS_BUS_H

#include "base/problem.h"
#include "bus/bus.h"

enum {
    NATS_SERVERS_MAX = 16,
    NATS_DUPLICATES_S = 300, /* how long the streams remember ids */
};

struct nats_bus_config {
    const char *urls;  /* nats:// or tls://, with user:password@ or token@ before the host;
                          separated by commas */
    const char *creds; /* a credentials file (JWT and seed); NULL: none */
    const char *ca;    /* PEM file of trusted certificate authorities; NULL: the system's */
    bool jobs;         /* offer jobs too */
};

/* Does not connect yet. ERR_FIELD_INVALID: a URL is not valid; ERR_NOT_FOUND: a file cannot be
 * read, or libnats cannot be loaded. The caller owns *ret and frees it by bus->free(). One at a
 * time in a process: freeing it ends the library's threads. */
MUST_CHECK enum err nats_bus_new(const struct nats_bus_config *config, struct problem *p,
                                 struct bus **ret);

#endif
