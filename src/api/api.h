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

/* An http_handler; ctx is a struct api. */
void api_handle(void *ctx, struct http_request *req);
/* An http_handler for --metrics-listen: health and metrics, without a key. */
void api_handle_aside(void *ctx, struct http_request *req);
/* An http_observer that logs requests and exports their spans; ctx is a struct api. */
void api_request_over(void *ctx, const struct http_request *req, int status, struct str route);

#endif
