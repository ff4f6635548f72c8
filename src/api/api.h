/* The HTTP interface: routes, who may use them, and the form of requests and answers. Each request
 * passes once through route → caller → parameters → engine → answer. */
#ifndef PAWL_API_API_H
#define PAWL_API_API_H

#include "api/config.h"
#include "http/http.h"

struct api;

MUST_CHECK struct api *api_new(const struct api_config *config);
void api_free(struct api *api);

/* Call once per turn of the loop, on its thread. */
void api_tick(struct api *api, int64_t mono_ms);
/* How long the loop may sleep until then; -1: forever. */
int api_timeout_ms(const struct api *api);
/* Ends open event streams. */
void api_drain(struct api *api);
/* Closes the connections of clients that have not taken their whole answer yet. */
void api_cut_slow_clients(struct api *api);
/* True when no request uses it any more, and so none its engine. */
bool api_idle(const struct api *api);

/* --- a request, in two steps: for a server that has an api for each of its shards --- */

struct call;
struct caller;

/* Finds the request's route and who sends it. NULL: it has been answered. */
MUST_CHECK struct call *api_begin(struct api *api, struct http_request *req);
/* The same when another node has found out who sends it; NULL: everybody may. */
MUST_CHECK struct call *api_begin_for(struct api *api, struct http_request *req,
                                      const struct caller *caller);
/* Answers it, now or later. */
void api_go_on(struct api *api, struct call *call);
/* What only this node can check before another one answers: what a browser sent with a session, of
 * which the other one is not told. False: it has been answered. */
MUST_CHECK bool api_may_forward(struct call *call);
/* Instead of that: somebody else answers the request. */
void api_let_go(struct call *call);

/* An http_handler, for both at once; ctx is a struct api. */
void api_handle(void *ctx, struct http_request *req);
/* An http_handler for --metrics-listen: health and metrics, without a key. */
void api_handle_aside(void *ctx, struct http_request *req);
/* An http_observer that logs requests and exports their spans; ctx is a struct api. */
void api_request_over(void *ctx, const struct http_request *req, int status, struct str route);

#endif
