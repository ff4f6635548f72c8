/* Several nodes of one cluster: the real src/cluster, api, runtime, core and PostgreSQL driver,
 * each node a group of fibers with clocks of its own, over a PostgreSQL server (pg.h) and a network
 * in memory.
 *
 * A node that is killed never runs again: its fibers stop where they are, and its memory is not
 * freed before the process ends. */
#ifndef PAWL_TESTS_SIM_NODES_NODES_H
#define PAWL_TESTS_SIM_NODES_NODES_H

#include "sim/lot.h"
#include "sim/server.h"

enum { NODES_MAX = 3, NODES_SHARDS = 1 };

struct node;
struct front;

struct sim_node {
    struct nodes *nodes;
    int number;
    char name[8];
    char url[32];
    bool up;
    bool paused;
    bool turns;      /* its loop is in the middle of a turn */
    int group;       /* of its present process */
    int64_t skew_us; /* of its wall clock, but for what its engines see */
    struct env env;  /* of the node: its lease, its requests */
    struct env engine_env;
    uint64_t drawn;
    struct metrics *metrics;
    struct node *node;
    struct front *front;
    struct sim_http *http;
    /* What happens at one of its next commands to the database. */
    int fault_in; /* 0: nothing */
    int fault;    /* enum pg_fault */
    bool dies;    /* a node that stands still there never goes on */
};

struct nodes {
    struct sim_server_config config;
    int count;
    int groups; /* given so far */
    struct sim_node nodes[NODES_MAX];
    bool deaf;  /* nodes do not always hear each other */
    bool quiet; /* but now they do */
    bool slow;  /* the database takes its time */
    bool moved; /* something has come over the network in the last turn */
    int killed; /* nodes that were not buried */
    void (*broken)(void *ctx, const char *why);
    void (*tell)(void *ctx, const char *what);
    void *ctx;
};

void nodes_init(struct nodes *nodes, const struct sim_server_config *config, int count,
                const char *folder);
/* From now on a history's own. */
void nodes_seed(struct nodes *nodes);

/* False: it cannot join now. */
MUST_CHECK bool sim_node_start(struct sim_node *n);
/* SIGTERM: hands its shards over. One that does not come to its end is killed. */
void sim_node_stop(struct sim_node *n);
void sim_node_kill(struct sim_node *n);
/* The process stands still, while its leases run out. */
void sim_node_pause(struct sim_node *n, bool pause);
/* All faults are over: whoever stood still goes on. Nodes that are down stay down. */
void nodes_calm(struct nodes *nodes);

/* One turn of every node's loop and threads, and of the network between them. */
void nodes_turn(struct nodes *nodes);
void nodes_settle_now(struct nodes *nodes);
void nodes_settle(struct nodes *nodes);
int64_t nodes_next_ns(const struct nodes *nodes);
/* A node that is up and runs serves every shard. */
bool nodes_serve(const struct nodes *nodes);
struct sim_node *nodes_named(struct nodes *nodes, const char *url);

/* --- the network between nodes: node_client.c --- */

/* Requests travel, and their answers. True: something has happened. */
bool node_clients_turn(struct nodes *nodes);
int64_t node_clients_next_ns(void);
/* A node that is killed sends and hears nothing more. */
void node_clients_forget(int group);

#endif
