/* Several nodes of one cluster in one process. */
#include "sim/nodes/nodes.h"

#include "cluster/front.h"
#include "cluster/node.h"
#include "cluster/node_front.h"
#include "sim/nodes/descriptors.h"
#include "sim/nodes/pg.h"
#include "sim/sim_bus.h"

#include <stdlib.h>

enum {
    SETTLE_TURNS_MAX = 20000,
    STOP_MS_MAX = 20 * 1000, /* as serve/server.c */
    TICK_NS = 5 * 1000 * 1000,
};

static struct nodes *present; /* there is one cluster */

/* --- the world of a node --- */

static int64_t mono_ns(void *ctx)
{
    (void)ctx;
    return fibers_now_ns();
}

static int64_t node_now_us(void *ctx)
{
    const struct sim_node *n = ctx;
    return fibers_now_ns() / 1000 + n->skew_us;
}

static int64_t engine_now_us(void *ctx)
{
    (void)ctx;
    return fibers_now_ns() / 1000;
}

static void random_bytes(void *ctx, void *out, size_t len)
{
    struct sim_node *n = ctx;
    unsigned char *to = out;
    while (len > 0) {
        struct lot lot = {n->drawn};
        uint64_t bits = lot_bits(&lot);
        n->drawn = lot.state;
        size_t part = MIN(len, sizeof(bits));
        memcpy(to, &bits, part);
        to += part;
        len -= part;
    }
}

/* --- the database's faults --- */

static struct sim_node *node_of(int group)
{
    for (int i = 0; i < present->count; i++) {
        if (present->nodes[i].group == group)
            return &present->nodes[i];
    }
    return NULL;
}

static void take_time(int group)
{
    if (!present->slow || fibers_is_simulator() || group == 0)
        return;
    if (present->config.draw(present->config.ctx, 40) == 0)
        fibers_sleep_ns((int64_t)present->config.draw(present->config.ctx, 3 * 1000 * 1000));
}

static enum pg_fault on_command(void *ctx, int group, bool commits)
{
    (void)ctx;
    struct sim_node *n = node_of(group);
    take_time(group);
    if (n == NULL || n->fault_in == 0 || fibers_is_simulator())
        return PG_WELL;
    enum pg_fault fault = (enum pg_fault)n->fault;
    bool pauses = fault == PG_PAUSE_BEFORE || fault == PG_PAUSE_AFTER;
    n->fault_in -= commits ? n->fault_in : 1; /* a commit is what is worth it */
    if (n->fault_in <= 0 && pauses && !fibers_simulator_rests())
        n->fault_in = 1; /* the simulator may wait for a lock of the node: at the next command */
    if (n->fault_in > 0)
        return PG_WELL;
    if (pauses)
        sim_node_pause(n, true);
    present->tell(present->ctx, "the fault at a command to the database happens");
    return fault;
}

static void on_broken(void *ctx, const char *why)
{
    const struct nodes *nodes = ctx;
    nodes->broken(nodes->ctx, why);
}

/* --- life --- */

static void idle(void)
{
    int group = fibers_group();
    nodes_turn(present);
    fibers_pass_ns(TICK_NS);
    fibers_enter_group(group);
}

void nodes_init(struct nodes *nodes, const struct sim_server_config *config, int count,
                const char *folder)
{
    struct pg_config pg = {.folder = folder,
                           .env = &nodes->nodes[0].env,
                           .shards = NODES_SHARDS,
                           .fault = on_command,
                           .broken = on_broken,
                           .ctx = nodes};
    nodes->config = *config;
    nodes->count = count;
    present = nodes;
    descriptors_set_idle(idle);
    for (int i = 0; i < count; i++) {
        struct sim_node *n = &nodes->nodes[i];
        *n = (struct sim_node){.nodes = nodes, .number = i};
        (void)snprintf(n->name, sizeof(n->name), "n%d", i);
        (void)snprintf(n->url, sizeof(n->url), "http://node%d:7295", i);
        n->env = (struct env){node_now_us, mono_ns, random_bytes, n};
        n->engine_env = (struct env){engine_now_us, mono_ns, random_bytes, n};
        n->drawn = (uint64_t)i;
    }
    pg_start(&pg);
}

void nodes_seed(struct nodes *nodes)
{
    for (int i = 0; i < nodes->count; i++)
        nodes->nodes[i].drawn = nodes->config.draw(nodes->config.ctx, UINT64_MAX);
}

static void handle(void *ctx, struct http_request *req)
{
    struct sim_node *n = ctx;
    int group = fibers_group();
    fibers_enter_group(n->group);
    front_handle(n->front, req);
    fibers_enter_group(group);
}

static void free_bus(struct bus *bus)
{
    free(CONTAINER_OF(bus, struct sim_bus, bus));
}

static enum err make_bus(void *ctx, struct problem *p, struct bus **ret)
{
    const struct sim_node *n = ctx;
    struct sim_bus *copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for a bus");
    *copy = *CONTAINER_OF(n->nodes->config.bus, struct sim_bus, bus);
    copy->bus.free = free_bus;
    *ret = &copy->bus;
    return ERR_OK;
}

static struct node_config config_of(struct sim_node *n)
{
    const struct sim_server_config *c = &n->nodes->config;
    return (struct node_config){
        .store = "postgres://sim",
        .name = n->name,
        .advertise = n->url,
        .engine = {.env = &n->engine_env,
                   .bus_queues = &c->bus_queue,
                   .bus_queue_count = c->bus != NULL && c->bus_queue.ptr != NULL,
                   .reach = REACH_ALL},
        .api = {.env = &n->env, .dev_listen = "127.0.0.1:7295"},
        .metrics = n->metrics,
        .make_bus = c->bus != NULL ? make_bus : NULL,
        .make_bus_ctx = n,
    };
}

static enum err join(struct sim_node *n, struct problem *p)
{
    struct node_config config = config_of(n);
    enum err e = node_open(&config, p, &n->node);
    if (e != ERR_OK)
        return e;
    n->http = sim_http_new(&n->env, handle, n);
    sim_http_pause(n->http, true); /* it listens, but its loop does not run yet */
    n->up = true;
    e = node_join(n->node, n->url, p);
    if (e != ERR_OK)
        return e;
    struct front_config front = {
        .env = &n->env,
        .metrics = node_metrics(n->node),
        .node_api = node_api(n->node),
        .secret = node_secret(n->node),
        .session = node_session(n->node),
        .url = str_of(n->url),
        .cluster = node_front_cluster(n->node),
    };
    n->front = front_new(&front);
    sim_http_pause(n->http, n->paused);
    return n->front != NULL ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Out of memory");
}

static void free_parts(struct sim_node *n)
{
    if (n->http != NULL)
        sim_http_free(n->http);
    front_free(n->front);
    node_close(n->node);
    metrics_free(n->metrics);
    n->http = NULL;
    n->front = NULL;
    n->node = NULL;
    n->metrics = NULL;
    n->up = false;
}

bool sim_node_start(struct sim_node *n)
{
    struct problem p;
    assert(!n->up);
    problem_init(&p);
    n->paused = false;
    n->fault_in = 0;
    n->group = ++n->nodes->groups;
    assert(n->group < PG_GROUPS_MAX);
    pg_set_node(n->group, n->name);
    n->metrics = metrics_new();
    assert(n->metrics != NULL);
    sim_caller_use(n->nodes->config.receiver);
    fibers_enter_group(n->group);
    bool joined = join(n, &p) == ERR_OK;
    fibers_enter_group(0);
    if (!joined) {
        n->nodes->tell(n->nodes->ctx, p.detail);
        sim_node_kill(n);
    }
    problem_release(&p);
    return joined;
}

static bool is_quiet(const struct sim_node *n)
{
    return node_idle(n->node) && (n->front == NULL || front_idle(n->front)) &&
           sim_http_open_count(n->http) == 0;
}

void sim_node_stop(struct sim_node *n)
{
    int64_t until = fibers_now_ns() + STOP_MS_MAX * INT64_C(1000000);
    assert(n->up && !n->paused);
    fibers_enter_group(n->group);
    node_drain(n->node);
    front_drain(n->front);
    sim_http_cut_slow(n->http);
    fibers_enter_group(0);
    while (!is_quiet(n) && fibers_now_ns() < until && !n->paused) {
        nodes_turn(n->nodes);
        fibers_pass_ns(TICK_NS);
    }
    if (!is_quiet(n) || n->paused) {
        sim_node_kill(n);
        return;
    }
    fibers_enter_group(n->group);
    free_parts(n);
    fibers_enter_group(0);
}

void sim_node_kill(struct sim_node *n)
{
    fibers_pause(n->group, true);
    pg_cut(n->group);
    pg_set_node_away(n->group, true);
    node_clients_forget(n->group);
    if (n->http != NULL)
        sim_http_abandon(n->http);
    n->nodes->killed++;
    n->http = NULL;
    n->front = NULL;
    n->node = NULL;
    n->metrics = NULL;
    n->up = n->paused = n->dies = false;
}

void sim_node_pause(struct sim_node *n, bool pause)
{
    assert(n->up);
    n->paused = pause;
    fibers_pause(n->group, pause);
    sim_http_pause(n->http, pause || n->front == NULL);
}

/* --- turns --- */

static void turn(struct sim_node *n)
{
    if (!n->up || n->paused || n->turns)
        return;
    int group = fibers_group();
    n->turns = true;
    fibers_enter_group(n->group);
    if (n->front != NULL) {
        sim_http_turn(n->http);
        front_poll(n->front, true);
    }
    node_poll(n->node, true);
    node_round_end(n->node);
    fibers_enter_group(group);
    n->turns = false;
}

void nodes_calm(struct nodes *nodes)
{
    nodes->deaf = nodes->slow = false;
    pg_set_away(false);
    for (int i = 0; i < nodes->count; i++) {
        struct sim_node *n = &nodes->nodes[i];
        n->fault_in = 0;
        if (!n->up)
            continue;
        if (n->paused && n->dies)
            sim_node_kill(n);
        else if (n->paused)
            sim_node_pause(n, false);
        if (n->up)
            pg_set_node_away(n->group, false);
    }
}

/* The process is to end: it was killed in the middle of something, or another one has its name. */
static void end_failed(struct sim_node *n)
{
    if (!n->up)
        return;
    bool failed = !n->paused && n->front != NULL && node_failed(n->node);
    if (failed || (n->paused && n->dies))
        sim_node_kill(n);
}

void nodes_turn(struct nodes *nodes)
{
    (void)sim_caller_turn(nodes->config.receiver, fibers_now_ns());
    for (int i = 0; i < nodes->count; i++) {
        turn(&nodes->nodes[i]);
        end_failed(&nodes->nodes[i]);
    }
    nodes->moved |= node_clients_turn(nodes);
    fibers_enter_group(0);
    fibers_run();
}

static size_t open_requests(const struct nodes *nodes)
{
    size_t open = 0;
    for (int i = 0; i < nodes->count; i++) {
        if (nodes->nodes[i].http != NULL)
            open += sim_http_open_count(nodes->nodes[i].http);
    }
    return open;
}

void nodes_settle_now(struct nodes *nodes)
{
    int quiet = 0;
    for (int turns = 0; quiet < 2; turns++) {
        if (turns > SETTLE_TURNS_MAX) {
            (void)fprintf(stderr, "sim: the nodes never come to rest\n");
            abort();
        }
        uint64_t before = fibers_switches();
        size_t open = open_requests(nodes);
        nodes->moved = false;
        nodes_turn(nodes);
        bool moved = nodes->moved || fibers_switches() != before || open_requests(nodes) != open;
        quiet = moved ? 0 : quiet + 1;
    }
}

void nodes_settle(struct nodes *nodes)
{
    nodes_settle_now(nodes);
    while (fibers_sleepers_wake_ns() != INT64_MAX) {
        fibers_pass_ns(MAX(fibers_sleepers_wake_ns() - fibers_now_ns(), (int64_t)0));
        nodes_settle_now(nodes);
    }
}

int64_t nodes_next_ns(const struct nodes *nodes)
{
    return MIN(MIN(fibers_next_wake_ns(), sim_caller_next_ns(nodes->config.receiver)),
               node_clients_next_ns());
}

bool nodes_serve(const struct nodes *nodes)
{
    for (int shard = 0; shard < NODES_SHARDS; shard++) {
        const struct sim_node *n = node_of(pg_owner_of(shard));
        if (n == NULL || !n->up || n->paused || n->front == NULL || !pg_shards_have_owners() ||
            node_shard_at(n->node, (size_t)shard).state != SHARD_HERE)
            return false;
    }
    return nodes->count > 0;
}

struct sim_node *nodes_named(struct nodes *nodes, const char *url)
{
    for (int i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->nodes[i].url, url) == 0)
            return &nodes->nodes[i];
    }
    return NULL;
}
