/* The members of a front, which its parts share: visit.h, post.h. */
#ifndef PAWL_CLUSTER_FRONT_STATE_H
#define PAWL_CLUSTER_FRONT_STATE_H

#include "base/limits.h"
#include "cluster/calls/node_client.h"
#include "cluster/front_config.h"
#include "cluster/node_auth.h"

struct visit;

struct front {
    struct front_config config;
    char session[NODE_SESSION_MAX + 1]; /* of this process */
    char url[NODE_URL_LEN_MAX + 1];     /* where it reaches itself */
    struct node_auth *auth;
    struct node_client *client;
    struct visit *visits;
    size_t waiting;            /* of them that are not under way */
    size_t posts;              /* requests of its own that are under way */
    size_t turn;               /* after the shard that the last claim had jobs of */
    uint64_t view;             /* when the owners of the visits were checked */
    uint64_t epoch;            /* when their keys were */
    int64_t next_uses_ms;      /* when uses of keys are sent to the owner of shard 0 */
    int64_t next_pulse_ms;     /* when sessions are checked again */
    int64_t failure_log_at_ms; /* not before: a line about requests that were not answered */
    int64_t failures_unlogged;
};

#endif
