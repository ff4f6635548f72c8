/* One shard as this node serves it: an engine, its api, its bus and its metrics. Opening and
 * closing wait for the store, so they are done by openers.h; everything else is on the HTTP loop's
 * thread. */
#ifndef PAWL_CLUSTER_HOST_H
#define PAWL_CLUSTER_HOST_H

#include "api/api.h"
#include "cluster/node_config.h"
#include "cluster/openers.h"

enum host_state {
    HOST_OPENING,
    HOST_SERVING,
    HOST_LEAVING, /* finishes what is under way */
    HOST_CLOSING,
};

struct host {
    struct opening work;
    struct host *next;
    void *owner;
    const struct node_config *config;
    size_t shard;
    enum host_state state;
    bool unwanted;           /* leave as soon as it is open */
    bool ends_calls;         /* leave as soon as no outgoing call is under way */
    bool releases;           /* the shard is handed back once it is closed */
    bool readable;           /* the engine has something to collect */
    int64_t slow_at_ms;      /* while it leaves: when clients that are slow are cut off */
    struct problem problem;  /* of the opening */
    struct metrics *metrics; /* NULL: the node's own */
    struct bus *bus;         /* NULL: none */
    struct gate *gate;       /* the same */
    struct engine *engine;
    struct api *api;
    char store[]; /* its URL */
};

/* NULL when memory ran out. */
MUST_CHECK struct host *host_new(const struct node_config *config, size_t shard, const char *store,
                                 bool alone);
/* What is open must have been closed by host_close(). */
void host_free(struct host *h);

/* On any thread. With an error the problem is set, and nothing is open. */
enum err host_open(struct host *h);
/* On any thread, when nothing is under way: host_busy_with(). */
void host_close(struct host *h);

/* Refuses new changes and ends waits and streams. */
void host_leave(struct host *h);
/* NULL: nothing is under way any more, and no request points to it. Otherwise one thing that is,
 * for people. */
const char *host_busy_with(const struct host *h);

#endif
