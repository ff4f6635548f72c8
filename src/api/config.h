/* What the HTTP interface works with. */
#ifndef PAWL_API_CONFIG_H
#define PAWL_API_CONFIG_H

#include <stdbool.h>

struct engine;
struct env;
struct metrics;

struct api_config {
    struct engine *engine;
    struct metrics *metrics;
    const struct env *env;
    /* Not NULL: no keys are needed, the headers name the caller. Then it is the server's own
     * HOST:PORT, and domain/dev_guard.h says which requests are allowed. */
    const char *dev_listen;
    bool tls; /* the server speaks TLS itself */
    bool log_requests;
    bool export_spans;
};

#endif
