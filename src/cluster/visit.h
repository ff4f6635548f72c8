/* Requests that other nodes answer: each is sent to the owner of its shard, and once more if that
 * owner has changed meanwhile and it is certain that nothing is done twice. */
#ifndef PAWL_CLUSTER_VISIT_H
#define PAWL_CLUSTER_VISIT_H

#include "api/call.h"
#include "base/limits.h"
#include "cluster/forward.h"
#include "cluster/front_config.h"
#include "cluster/node_auth.h"
#include "cluster/node_client.h"

struct visit;

struct front {
    struct front_config config;
    char session[NODE_SESSION_MAX + 1]; /* of this process */
    char url[NODE_URL_LEN_MAX + 1];     /* where it is reached */
    struct node_auth *auth;
    struct node_client *client;
    struct visit *visits;
    size_t waiting;            /* of them that are not under way */
    size_t turn;               /* after the shard that the last claim had jobs of */
    uint64_t view;             /* when the owners of the visits were checked */
    uint64_t epoch;            /* when their keys were */
    int64_t next_pulse_ms;     /* when sessions are checked again */
    int64_t failure_log_at_ms; /* not before: a line about requests that were not answered */
    int64_t failures_unlogged;
};

/* Sends the request to the shard's owner; takes the call over. If it has to be sent again, it goes
 * to the shard that the tenant is in by then; ptr NULL: to the same. */
void visit_begin(struct front *f, struct call *c, size_t shard, struct str tenant);
/* Asks several shards, one after the other (errand.h). */
void visit_all(struct front *f, struct call *c);

/* Once per turn: tries again, gives up nodes that have lost the shard, and ends what was asked with
 * a key that is revoked. */
void visits_poll(struct front *f);
int visits_timeout_ms(const struct front *f);
void visits_end_streams(struct front *f);

#endif
