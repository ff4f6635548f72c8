/* One shard as this node serves it. */
#include "cluster/host.h"

#include "bus/bus.h"
#include "gate/gate.h"

#include <stdlib.h>

struct host *host_new(const struct node_config *config, size_t shard, const char *store, bool alone)
{
    size_t size = strlen(store) + 1;
    struct host *h = calloc(1, sizeof(*h) + size);
    if (h == NULL)
        return NULL;
    memcpy(h->store, store, size);
    h->config = config;
    h->shard = shard;
    problem_init(&h->problem);
    if (alone)
        return h;
    h->metrics = metrics_new_part(config->metrics);
    if (h->metrics != NULL)
        return h;
    host_free(h);
    return NULL;
}

void host_free(struct host *h)
{
    if (h == NULL)
        return;
    assert(h->engine == NULL && h->api == NULL && h->bus == NULL);
    metrics_free(h->metrics);
    problem_release(&h->problem);
    free(h);
}

static enum err open_engine(struct host *h)
{
    struct engine_config engine = h->config->engine;
    engine.store_url = str_of(h->store);
    engine.metrics = h->metrics != NULL ? h->metrics : h->config->metrics;
    engine.shares_loop = h->metrics != NULL;
    engine.bus = h->bus;
    engine.gate = h->gate;
    return engine_open(&engine, &h->problem, &h->engine);
}

static enum err make_api(struct host *h)
{
    struct api_config api = h->config->api;
    api.engine = h->engine;
    api.metrics = h->config->metrics;
    h->api = api_new(&api);
    return h->api != NULL ? ERR_OK : problem_set(&h->problem, ERR_NO_MEMORY, "Out of memory");
}

enum err host_open(struct host *h)
{
    const struct node_config *config = h->config;
    enum err e = config->make_bus != NULL
                     ? config->make_bus(config->make_bus_ctx, &h->problem, &h->bus)
                     : ERR_OK;
    if (e == ERR_OK && config->make_gate != NULL)
        e = config->make_gate(config->make_gate_ctx, &h->problem, &h->gate);
    if (e == ERR_OK)
        e = open_engine(h);
    if (e == ERR_OK)
        e = make_api(h);
    if (e != ERR_OK)
        host_close(h);
    return e;
}

void host_close(struct host *h)
{
    engine_close(h->engine);
    if (h->bus != NULL)
        h->bus->free(h->bus);
    if (h->gate != NULL)
        h->gate->free(h->gate);
    api_free(h->api);
    h->engine = NULL;
    h->bus = NULL;
    h->gate = NULL;
    h->api = NULL;
}

void host_leave(struct host *h)
{
    engine_drain(h->engine);
    api_drain(h->api);
}

const char *host_busy_with(const struct host *h)
{
    const char *busy = engine_busy_with(h->engine);
    return busy == NULL && !api_idle(h->api) ? "requests" : busy;
}
