/* The HTTP interface: routes, who may use them, and what a request and an answer look like. Each
 * request goes parse → one engine call → reply. */
#ifndef PAWL_API_API_H
#define PAWL_API_API_H

#include "http/http.h"
#include "runtime/engine.h"

struct api;

struct api_config {
    struct engine *engine;
    struct metrics *metrics;
    const struct env *env;
    /* Not NULL: no keys needed, the headers say who it is. Then it is the server's own HOST:PORT,
     * and domain/dev_guard.h says who may call. */
    const char *dev_listen;
};

MUST_CHECK struct api *api_new(const struct api_config *config);
void api_free(struct api *api);

/* Now and then, on the loop's thread. */
void api_tick(struct api *api, int64_t mono_ms);
/* How long the loop may sleep before; -1: for ever. */
int api_timeout_ms(const struct api *api);
/* Ends the answers that go on. */
void api_drain(struct api *api);

/* An http_handler; ctx is a struct api. */
void api_handle(void *ctx, struct http_request *req);
/* Likewise for the subscriber beside it: health and metrics, without a key. */
void api_handle_aside(void *ctx, struct http_request *req);

#endif
