/* A server without sockets and without threads of its own. */
#include "sim/server.h"

#include "api/api.h"
#include "runtime/engine.h"

#include <stdlib.h>
#include <sys/stat.h>

enum {
    SETTLE_TURNS_MAX = 20000, /* a server that is not at rest by then never will be */
    DRAIN_MS = 20 * 1000,     /* as serve/server.c */
};

/* --- its world --- */

static int64_t world_mono_ns(void *ctx)
{
    struct sim_server *s = ctx;
    if (s->config.tick_ns > 0)
        fibers_pass_ns((int64_t)s->config.draw(s->config.ctx, s->config.tick_ns));
    return fibers_now_ns();
}

static int64_t world_now_us(void *ctx)
{
    struct sim_server *s = ctx;
    return fibers_now_ns() / 1000 + *s->config.skew_us;
}

/* SplitMix64: any bits will do, as long as the seed gives them. */
static uint64_t next_random(struct sim_server *s)
{
    uint64_t z = s->drawn += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void world_random(void *ctx, void *out, size_t len)
{
    unsigned char *to = out;
    while (len > 0) {
        uint64_t bits = next_random(ctx);
        size_t n = MIN(len, sizeof(bits));
        memcpy(to, &bits, n);
        to += n;
        len -= n;
    }
}

/* --- life --- */

void sim_server_init(struct sim_server *s, const struct sim_server_config *config,
                     struct crash_disk *disk, const char *folder)
{
    *s = (struct sim_server){.config = *config, .disk = disk};
    (void)snprintf(s->folder, sizeof(s->folder), "%s", folder);
    (void)snprintf(s->url, sizeof(s->url), "sqlite:%s/p.db", folder);
    (void)mkdir(folder, 0755);
    s->env = (struct env){world_now_us, world_mono_ns, world_random, s};
    sim_server_seed(s);
}

void sim_server_seed(struct sim_server *s)
{
    s->drawn = s->config.draw(s->config.ctx, UINT64_MAX);
}

int __wrap_flock(int fd, int operation);

/* Always granted: histories share a folder, and each has its disk for itself. */
int __wrap_flock(int fd, int operation)
{
    (void)fd;
    (void)operation;
    return 0;
}

static void handle(void *ctx, struct http_request *req)
{
    const struct sim_server *s = ctx;
    bool has_key = http_header(req, "X-API-Key", NULL).ptr != NULL;
    api_handle(has_key && s->keyed != NULL ? s->keyed : s->api, req);
}

bool sim_server_start(struct sim_server *s, struct problem *p)
{
    assert(s->engine == NULL);
    s->metrics = metrics_new();
    assert(s->metrics != NULL);
    sim_caller_use(s->config.receiver);
    struct engine_config engine = {
        .store_url = str_of(s->url),
        .root_key = s->config.keys ? STR(SIM_ROOT_KEY) : STR(""),
        .env = &s->env,
        .metrics = s->metrics,
        .log_bytes_max = s->config.log_bytes_max,
        .bus = s->config.bus,
        .bus_queues = &s->config.bus_queue,
        .bus_queue_count = s->config.bus != NULL && s->config.bus_queue.ptr != NULL,
        .reach = REACH_ALL,
    };
    if (engine_open(&engine, p, &s->engine) != ERR_OK) {
        metrics_free(s->metrics);
        s->engine = NULL;
        return false;
    }
    struct api_config api = {
        .engine = s->engine,
        .metrics = s->metrics,
        .env = &s->env,
        .dev_listen = s->config.keys ? NULL : "127.0.0.1:7295",
    };
    s->api = api_new(&api);
    assert(s->api != NULL);
    api.dev_listen = NULL;
    s->keyed = s->config.keys ? NULL : api_new(&api);
    assert(s->config.keys || s->keyed != NULL);
    s->http = sim_http_new(&s->env, handle, s);
    return true;
}

bool sim_server_failed(const struct sim_server *s)
{
    return engine_failed(s->engine);
}

void sim_server_turn(struct sim_server *s)
{
    (void)sim_caller_turn(s->config.receiver, fibers_now_ns());
    engine_poll(s->engine, true);
    sim_http_turn(s->http);
    api_tick(s->api, fibers_now_ns() / 1000000);
    if (s->keyed != NULL)
        api_tick(s->keyed, fibers_now_ns() / 1000000);
    engine_round_end(s->engine);
    fibers_run();
}

/* At rest when a turn has left everything as it was: no fiber could run, and nothing was handed
 * back to the loop. */
void sim_server_settle_now(struct sim_server *s)
{
    int quiet = 0;
    for (int turns = 0; quiet < 2; turns++) {
        if (turns > SETTLE_TURNS_MAX) {
            (void)fprintf(stderr, "sim: the server never comes to rest\n");
            abort();
        }
        uint64_t before = fibers_switches();
        size_t open = sim_http_open_count(s->http);
        sim_server_turn(s);
        bool moved = fibers_switches() - before > 0 || sim_http_open_count(s->http) != open;
        quiet = moved ? 0 : quiet + 1;
    }
}

void sim_server_settle(struct sim_server *s)
{
    sim_server_settle_now(s);
    while (fibers_sleepers_wake_ns() != INT64_MAX) {
        fibers_pass_ns(MAX(fibers_sleepers_wake_ns() - fibers_now_ns(), (int64_t)0));
        sim_server_settle_now(s);
    }
}

int64_t sim_server_next_ns(const struct sim_server *s)
{
    return MIN(fibers_next_wake_ns(), sim_caller_next_ns(s->config.receiver));
}

static void close_parts(struct sim_server *s)
{
    sim_http_free(s->http);
    engine_close(s->engine);
    api_free(s->api);
    api_free(s->keyed);
    metrics_free(s->metrics);
    s->engine = NULL;
    s->api = s->keyed = NULL;
    s->http = NULL;
}

/* Until every answer is sent, or its time is up. */
static bool drain(struct sim_server *s)
{
    engine_drain(s->engine);
    api_drain(s->api);
    if (s->keyed != NULL)
        api_drain(s->keyed);
    sim_http_cut_slow(s->http);
    int64_t until = fibers_now_ns() + DRAIN_MS * INT64_C(1000000);
    for (;;) {
        sim_server_turn(s);
        if (engine_idle(s->engine) && sim_http_open_count(s->http) == 0)
            return true;
        if (fibers_now_ns() > until)
            return false;
        fibers_pass_ns(20 * 1000000);
    }
}

void sim_server_stop(struct sim_server *s)
{
    if (!drain(s)) {
        (void)fprintf(stderr, "sim: the server does not stop\n");
        abort();
    }
    close_parts(s);
}

void sim_server_bury(struct sim_server *s)
{
    sim_http_cut_all(s->http);
    sim_caller_cut(s->config.receiver);
    sim_server_stop(s);
}
