/* The client behind pawl.h: its settings, and a call with its retries. */
#ifndef PAWL_CLIENT_H
#define PAWL_CLIENT_H

#include <pthread.h>

#include "ports.h"

#define REQUEST_TIMEOUT_MS 30000

struct transport;

struct pawl_client {
    struct ports ports;
    struct transport *transport;
    json_t *headers; /* of every request */
    struct pawl_retry retry;
    pthread_mutex_t lock; /* for budget and users */
    struct pawl_budget budget;
    int users; /* the owner, and each worker */
};

/* For a worker: the client stays until each of them has called pawl_client_free. */
struct pawl_client *client_share(struct pawl_client *client);

/* How a call is retried. Without a budget: as the rule says. `over`, if it is not NULL, ends the
 * retries early. */
struct call_rule {
    struct pawl_retry retry;
    bool budgeted;
    bool (*over)(void *at);
    void *over_at;
};

struct call_rule client_rule(const struct pawl_client *client);

/* A request with the client's headers. Path and body are given away. */
struct request client_request(const struct pawl_client *client, const char *method, char *path,
                              json_t *body);

/* Sends until there is a final answer, as the rule and the budget allow, and parses it. Frees the
 * request. */
enum pawl_err client_perform(struct pawl_client *client, struct request *request,
                             const struct call_rule *rule, json_t **ret_value,
                             struct pawl_error *error);

/* A worker's call. The lease makes its repeats harmless, so it has no key and no budget. */
struct request job_request(const struct pawl_client *client, const char *job_id, const char *verb,
                           json_t *body);

/* "/api/v1" and the rest of a path: fixed parts and segments, which are percent-encoded, in turn;
 * NULL ends them. */
char *path_of(const char *part, ...);

bool run_is_over(const json_t *run);

#endif
