/* One simulated server: the real api, runtime, core and store on a crash disk, with an HTTP layer,
 * a bus and receivers of the simulator's own. Several live in one process.
 *
 * A crash never stops a fiber in the middle of its code. From the moment of the crash on, nothing
 * reaches the disk, a client or a receiver any more; then the dead server is closed in an orderly
 * way, which frees its memory. */
#ifndef PAWL_TESTS_SIM_SERVER_H
#define PAWL_TESTS_SIM_SERVER_H

#include "bus/bus.h"
#include "sim/crash_vfs.h"
#include "sim/fibers.h"
#include "sim/sim_caller.h"
#include "sim/sim_http.h"

struct sim_server_config {
    fibers_draw *draw; /* chance */
    void *ctx;
    const struct sim_receiver *receiver; /* of webhooks and http steps; outlives the server */
    struct bus *bus;                     /* NULL: none */
    struct str bus_queue;                /* its jobs are offered there; ptr NULL: none */
    int64_t log_bytes_max;               /* 0: the default */
    /* Every request needs an API key; else only a request that sends one is held to it. */
    bool keys;
    int64_t *skew_us; /* the wall clock is off by so much */
    uint64_t tick_ns; /* every look at a clock costs up to so much */
};

struct sim_server {
    struct sim_server_config config;
    struct crash_disk *disk; /* owned by the caller, mounted at `folder` */
    char folder[64];
    char url[96];
    struct env env;
    struct metrics *metrics;
    struct engine *engine; /* NULL: down */
    struct api *api;
    struct api *keyed; /* for requests with an API key; NULL: `api` is */
    struct sim_http *http;
    uint64_t drawn; /* state of the server's own chance */
};

#define SIM_ROOT_KEY "pawl_root_0123456789abcdef0123456789abcdef"

/* The folder is also made on the real file system, for the lock file. */
void sim_server_init(struct sim_server *s, const struct sim_server_config *config,
                     struct crash_disk *disk, const char *folder);
/* Its own chance begins again, from what `draw` gives. */
void sim_server_seed(struct sim_server *s);
/* False, with the reason: the store does not open, as on a failing disk. */
MUST_CHECK bool sim_server_start(struct sim_server *s, struct problem *p);
/* One turn of the loop and of every thread. */
void sim_server_turn(struct sim_server *s);
/* Turns until nothing is left to do at this time. A sync that takes time stays under way. */
void sim_server_settle_now(struct sim_server *s);
/* The same, and time passes until no sync is under way. */
void sim_server_settle(struct sim_server *s);
/* When the server next has something to do by itself; INT64_MAX: never. */
int64_t sim_server_next_ns(const struct sim_server *s);
/* The store could not prove a commit: a real server exits now. */
bool sim_server_failed(const struct sim_server *s);
/* SIGTERM: answers what it can, then closes the store. */
void sim_server_stop(struct sim_server *s);
/* The disk was killed or cut before (crash_vfs.h): frees what the dead process had. */
void sim_server_bury(struct sim_server *s);

#endif
