/* NATS JetStream as a bus: messages are stored by the stream PAWL (subjects pawl.>), offers of jobs
 * by PAWL_JOBS (subjects pawl-jobs.>), which are made when they are missing and looked at after
 * each connect. A stream that is there and takes other subjects is left alone: then the state says
 * so, and nothing is sent. */
#ifndef PAWL_BUS_NATS_BUS_H
#define PAWL_BUS_NATS_BUS_H

#include "base/problem.h"
#include "bus/bus.h"

enum {
    NATS_SERVERS_MAX = 16,
    NATS_DUPLICATES_S = 300, /* how long the streams remember ids */
};

struct nats_bus_config {
    const char *urls;  /* nats:// or tls://, user:password@ or token@ in front of the host; a list
                          with commas */
    const char *creds; /* a credentials file (JWT and seed); NULL: none */
    const char *ca;    /* PEM file of certificates that the server's may come from; NULL: the
                          system's */
    bool jobs;         /* jobs are offered too */
};

/* Connects to nothing yet. ERR_FIELD_INVALID when an URL is none, ERR_NOT_FOUND when a file cannot
 * be read. The caller owns
 * *ret, until bus->free(). One at a time in a process: the library's threads end with it. */
MUST_CHECK enum err nats_bus_new(const struct nats_bus_config *config, struct problem *p,
                                 struct bus **ret);

#endif
