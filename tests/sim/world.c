/* The world: servers, disks and time. */
#include "sim/world.h"

#include "base/log.h"
#include "runtime/writer.h"
#include "sim/actions.h"
#include "sim/cover.h"
#include "sim/events.h"
#include "sim/nodes/nodes.h"
#include "sim/receiver.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>

/* 2027-01-15 */
#define BEGIN_NS (INT64_C(1800000000) * 1000000000)

/* A start may write the log twice, to itself and to the file, and what is due by now. */
enum { RECOVERY_WRITES_MAX = 1024 * 1024 };

/* Short, so that histories fold it back and begin it again many times. */
enum { LOG_BYTES_MAX = 512 * 4096 };

enum { SYNC_NS_MAX = 5 * 1000 * 1000 };

enum { LOOP_TICK_NS = 25 * 1000 * 1000, STOPS = 6, TICKS = 2 };

static struct crash_disk *template_disk;
static char real_folder[40];
static struct sim *present; /* whose log lines are told */
static bool of_nodes;
static struct nodes cluster; /* of place 0 */

void world_set_nodes(void)
{
    of_nodes = true;
}

/* --- the story --- */

void sim_tell(struct sim *w, const char *fmt, ...)
{
    if (!w->tells)
        return;
    va_list args;
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
    (void)putchar(10);
    (void)fflush(stdout); /* also when the process dies in the next line */
}

_Noreturn void sim_fail(struct sim *w, int promise, const char *fmt, ...)
{
    char text[1000];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (w->tells)
        (void)printf("BROKEN in step %d: %s%d: %s\n", w->step, promise > 0 ? "promise " : "rule ",
                     promise, text);
    (void)fflush(stdout);
    cover_failed(promise, text);
    _Exit(SIM_EXIT_BROKEN);
}

void sim_cover(struct sim *w, const char *kind, const char *what)
{
    (void)w;
    cover_count(kind, what);
}

void __wrap_log_line(enum log_level level, const char *message, const struct log_field *fields,
                     size_t count);

/* The server's log is part of the story. A bug that it reports about itself is a failure. */
void __wrap_log_line(enum log_level level, const char *message, const struct log_field *fields,
                     size_t count)
{
    if (present == NULL || (!present->tells && level < LOG_ERROR))
        return;
    char line[600];
    size_t len = (size_t)snprintf(line, sizeof(line), "%s", message);
    for (size_t i = 1; i < count && len < sizeof(line); i++) {
        const struct log_field *f = &fields[i];
        int n = f->text.ptr != NULL ? snprintf(line + len, sizeof(line) - len, " %s=%.*s", f->name,
                                               STR_ARG(f->text))
                                    : snprintf(line + len, sizeof(line) - len, " %s=%lld", f->name,
                                               (long long)f->number);
        len += (size_t)n;
    }
    sim_tell(present, "  log: %s", line);
    sim_check(present, 0, strncmp(message, "a bug", 5) != 0, "the server reports %s", line);
}

/* --- chance and time --- */

static uint64_t chaos_draw(void *ctx, uint64_t below)
{
    struct sim *w = ctx;
    return lot_bits(&w->chaos) % below;
}

int64_t sim_now_ms(const struct sim *w)
{
    (void)w;
    return fibers_now_ns() / 1000000;
}

static int64_t sqlite_clock(void *ctx)
{
    return sim_now_ms(ctx);
}

static void pass_ns(struct sim *w, int64_t ns)
{
    fibers_pass_ns(ns);
    for (int i = 0; i < w->place_count; i++)
        place_settle(w, &w->places[i]);
}

/* When the first server next has something to do by itself. */
static int64_t next_ns(struct sim *w)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < w->place_count; i++) {
        if (w->places[i].nodes != NULL)
            next = MIN(next, nodes_next_ns(w->places[i].nodes));
        else if (w->places[i].up)
            next = MIN(next, sim_server_next_ns(&w->places[i].server));
    }
    return next;
}

/* The server wakes once a second to look at the clock. To follow all of that through a year would
 * take long: after a few times it wakes late. Before and after such a leap it has the moments that
 * it takes between one thing and the next. */
void sim_pass_ms(struct sim *w, int64_t ms)
{
    int64_t until = fibers_now_ns() + ms * 1000000;
    pass_ns(w, 0);
    for (int stops = 0; stops < STOPS && fibers_now_ns() < until; stops++) {
        int64_t at = MAX(next_ns(w), fibers_now_ns() + 1000000);
        pass_ns(w, MIN(at, until) - fibers_now_ns());
    }
    if (fibers_now_ns() >= until)
        return;
    for (int i = 0; i < TICKS; i++)
        pass_ns(w, LOOP_TICK_NS);
    int64_t leap = MAX(until - fibers_now_ns(), (int64_t)0);
    w->leap_ms += leap / 1000000;
    pass_ns(w, leap);
    for (int i = 0; i < TICKS; i++)
        pass_ns(w, LOOP_TICK_NS);
}

/* --- servers --- */

/* --- nodes --- */

enum { SERVED_AGAIN_MS_MAX = 60 * 1000, SERVED_STEP_MS = 250 };

static void start_node(struct sim *w, struct sim_node *n)
{
    bool joined = sim_node_start(n);
    sim_tell(w, "  node %s %s", n->name, joined ? "joins" : "cannot join");
    sim_check(w, 0, joined || !w->calm, "node %s cannot join a sound cluster", n->name);
}

/* One of those that are down; without faults all of them. */
static bool nodes_start_some(struct sim *w, struct place *p)
{
    struct nodes *nodes = p->nodes;
    int first = lot_below(&w->lot, nodes->count);
    for (int i = 0; i < nodes->count; i++) {
        struct sim_node *n = &nodes->nodes[(first + i) % nodes->count];
        if (n->up)
            continue;
        start_node(w, n);
        if (!w->calm && w->step > 0)
            break;
    }
    if (w->calm) /* who has lost something comes back to it */
        sim_pass_ms(w, SERVED_AGAIN_MS_MAX / 3);
    place_settle(w, p);
    return true;
}

static void end_node(struct sim *w, struct place *p, enum place_end how)
{
    struct sim_node *n = &p->nodes->nodes[lot_below(&w->lot, p->nodes->count)];
    if (!n->up)
        return;
    int64_t from = fibers_now_ns();
    sim_tell(w, "node %s is %s", n->name, how == END_STOP ? "stopped" : "killed");
    sim_cover(w, "crash", how == END_STOP ? "a node is stopped" : "a node is killed");
    if (how == END_STOP && !n->paused)
        sim_node_stop(n);
    else
        sim_node_kill(n);
    w->leap_ms += (fibers_now_ns() - from) / 1000000;
    sim_calls_turn(w);
}

struct sim_http *place_http(struct sim *w, struct place *p)
{
    if (p->nodes == NULL)
        return p->server.http;
    struct sim_node *n = &p->nodes->nodes[lot_below(&w->lot, p->nodes->count)];
    return n->up ? n->http : NULL;
}

/* Nobody serves a shard while its owner stands still or its lease runs out. */
static bool await_service(struct sim *w, struct place *p)
{
    int64_t until = fibers_now_ns() + SERVED_AGAIN_MS_MAX * INT64_C(1000000);
    while (!nodes_serve(p->nodes) && fibers_now_ns() < until) {
        fibers_pass_ns(SERVED_STEP_MS * INT64_C(1000000));
        w->leap_ms += SERVED_STEP_MS;
        nodes_settle(p->nodes);
    }
    sim_check(w, 0, nodes_serve(p->nodes) || !w->calm,
              "a shard is not served though all faults are over");
    return nodes_serve(p->nodes);
}

struct sim_http *place_http_now(struct sim *w, struct place *p)
{
    if (p->nodes == NULL)
        return p->server.http;
    if (!await_service(w, p))
        return NULL;
    int first = lot_below(&w->lot, p->nodes->count);
    for (int i = 0; i < p->nodes->count; i++) {
        const struct sim_node *n = &p->nodes->nodes[(first + i) % p->nodes->count];
        if (n->up && !n->paused)
            return n->http;
    }
    return NULL;
}

void world_calm(struct sim *w)
{
    if (w->places[0].nodes != NULL)
        nodes_calm(w->places[0].nodes);
}

static void nodes_broken(void *ctx, const char *why)
{
    sim_fail(ctx, 0, "%s", why);
}

static void nodes_tell(void *ctx, const char *what)
{
    sim_tell(ctx, "  %s", what);
}

/* --- servers --- */

struct place *sim_any_place(struct sim *w)
{
    return &w->places[lot_below(&w->lot, w->place_count)];
}

bool place_start(struct sim *w, struct place *p)
{
    if (p->nodes != NULL)
        return nodes_start_some(w, p);
    if (p->up)
        return true;
    crash_disk_restart(p->disk);
    struct problem problem;
    problem_init(&problem);
    uint64_t written = crash_disk_counts(p->disk)->bytes_written;
    p->up = sim_server_start(&p->server, &problem);
    written = crash_disk_counts(p->disk)->bytes_written - written;
    sim_check(w, 0, written <= RECOVERY_WRITES_MAX + 2 * (uint64_t)crash_disk_bytes(p->disk),
              "recovery wrote %llu bytes", (unsigned long long)written);
    sim_tell(w, "  server %d starts%s%s", p->number,
             p->up ? "" : ", but cannot: ", p->up ? "" : problem.detail);
    problem_release(&problem);
    if (p->up) {
        place_settle(w, p);
    } else if (!crash_disk_is_down(p->disk)) {
        crash_disk_kill(p->disk);
    }
    return p->up;
}

/* What it still answers may take a while, in which nobody looks at the other servers' answers. */
static void stop(struct sim *w, struct place *p)
{
    int64_t from = fibers_now_ns();
    sim_server_stop(&p->server);
    w->leap_ms += (fibers_now_ns() - from) / 1000000;
}

static void lose_calls(struct sim *w, struct place *p)
{
    p->up = false;
    sim_calls_turn(w);
}

void place_end(struct sim *w, struct place *p, enum place_end how)
{
    static const char *const WORDS[] = {"is stopped", "is killed", "loses power"};
    if (!p->up)
        return;
    if (p->nodes != NULL) {
        end_node(w, p, how);
        return;
    }
    sim_tell(w, "server %d %s", p->number, WORDS[how]);
    sim_cover(w, "crash", WORDS[how]);
    if (how == END_STOP) {
        stop(w, p);
    } else {
        if (how == END_CUT)
            crash_disk_cut(p->disk, CRASH_CUT_ANY, chaos_draw, w);
        else
            crash_disk_kill(p->disk);
        sim_server_bury(&p->server);
    }
    lose_calls(w, p);
}

bool sim_was_cut(const struct sim *w)
{
    return crash_disk_counts(w->places[0].disk)->cuts > w->cuts_before;
}

void place_cut_at(struct sim *w, struct place *p, uint64_t nth)
{
    crash_disk_fail(p->disk, &(struct crash_fault){
                                 .kind = CRASH_CHANGE,
                                 .nth = nth,
                                 .result = CRASH_POWER_CUT,
                                 .cut = CRASH_CUT_ANY,
                                 .draw = chaos_draw,
                                 .ctx = w,
                             });
}

/* A fault of the disk has ended it, or a sync that failed. */
static bool fell(struct sim *w, struct place *p)
{
    if (crash_disk_is_down(p->disk)) {
        sim_cover(w, "crash", "at a call to the disk");
        sim_tell(w, "server %d is gone: its disk was cut or its process killed", p->number);
        sim_server_bury(&p->server);
        lose_calls(w, p);
        return true;
    }
    if (!sim_server_failed(&p->server))
        return false;
    sim_cover(w, "crash", "the store failed");
    sim_tell(w, "server %d gives up: its store failed", p->number);
    sim_server_bury(&p->server);
    uint64_t touched = crash_disk_counts(p->disk)->touched_after_failed_sync;
    sim_check(w, 6, touched == 0, "the files were touched %d times after a failed sync",
              (int)touched);
    crash_disk_kill(p->disk);
    lose_calls(w, p);
    return true;
}

static void settle(struct sim *w, struct place *p, void (*how)(struct sim_server *s))
{
    if (!p->up)
        return;
    how(&p->server);
    if (!fell(w, p))
        sim_calls_turn(w);
}

void place_settle_now(struct sim *w, struct place *p)
{
    if (p->nodes != NULL) {
        nodes_settle_now(p->nodes);
        sim_calls_turn(w);
        return;
    }
    settle(w, p, sim_server_settle_now);
}

void place_settle(struct sim *w, struct place *p)
{
    if (p->nodes != NULL) {
        nodes_settle(p->nodes);
        sim_calls_turn(w);
        return;
    }
    settle(w, p, sim_server_settle);
}

/* --- the world --- */

static void place_begin(struct sim *w, int number, bool bus)
{
    struct place *p = &w->places[number];
    *p = (struct place){.number = number, .sim = w};
    p->receiver = (struct sim_receiver){receiver_receive, p};
    p->bus =
        (struct sim_bus){.arrived = events_bus_arrived, .is_away = events_bus_is_away, .ctx = p};
    sim_bus_init(&p->bus);
    p->disk = crash_disk_copy(template_disk);
    char folder[56];
    char mount[60];
    (void)snprintf(folder, sizeof(folder), "%s/%d", real_folder, number);
    (void)snprintf(mount, sizeof(mount), "%s/", folder);
    struct sim_server_config config = {
        .draw = chaos_draw,
        .ctx = w,
        .receiver = &p->receiver,
        .bus = bus ? &p->bus.bus : NULL,
        .log_bytes_max = LOG_BYTES_MAX,
        .skew_us = &p->skew_us,
        .tick_ns = sim_on(w, ON_CPU) ? 200 * 1000 : 0,
    };
    sim_server_init(&p->server, &config, p->disk, folder);
    crash_disk_mount(p->disk, mount);
    if (!of_nodes)
        return;
    cluster = (struct nodes){.broken = nodes_broken, .tell = nodes_tell, .ctx = w};
    nodes_init(&cluster, &config, NODES_MAX, folder);
    p->nodes = &cluster;
    p->up = true;
}

/* What belongs to a disk of one's own, or is known to one clock only. */
#define NOT_OF_NODES                                                                         \
    (NEEDS(ON_CUTS) | NEEDS(ON_DISK) | NEEDS(ON_CLOCKS) | NEEDS(ON_TWO) | NEEDS(ON_BUDGET) | \
     NEEDS(ON_KEYS) | NEEDS(ON_YEARS) | NEEDS(ON_CPU) | NEEDS(ON_STREAMS) | NEEDS(ON_SCRIPTS))

/* Each feature is on in about half of all histories, so that each pair of them meets in a quarter;
 * calm histories show what the faults hide. */
uint64_t world_features(uint64_t seed)
{
    struct lot lot = lot_of(seed, 0);
    uint64_t features = lot_bits(&lot);
    if (lot_percent(&lot, 15))
        features &= ~(NEEDS_FAULTS);
    if (!lot_percent(&lot, 10))
        features &= ~(UINT64_C(1) << ON_TWO);
    if (!lot_percent(&lot, 50))
        features &= ~NEEDS(ON_BUDGET);
    if ((features & NEEDS(ON_BUDGET)) != 0)
        features &= ~NEEDS(ON_LARGE); /* what is large in any history would not fit */
    features &= (UINT64_C(1) << ON_NODES) - 1;
    return of_nodes ? (features & ~NOT_OF_NODES) | NEEDS(ON_NODES) : features;
}

bool __real_writer_try_inline(struct writer *writer, struct op *op);
bool __wrap_writer_try_inline(struct writer *writer, struct op *op);

/* A lone request would always be committed by the loop itself: as if the writer were busy. */
bool __wrap_writer_try_inline(struct writer *writer, struct op *op)
{
    bool busy = sim_on(present, ON_INTERLEAVE) && chaos_draw(present, 4) != 0;
    return !busy && __real_writer_try_inline(writer, op);
}

/* Long enough for requests, commits and crashes to happen meanwhile, now and then. */
static void sync_takes_time(void *ctx)
{
    if (chaos_draw(ctx, 3) == 0)
        fibers_sleep_ns((int64_t)chaos_draw(ctx, SYNC_NS_MAX));
}

void world_begin(struct sim *w, uint64_t seed, bool tells)
{
    w->seed = seed;
    w->tells = tells;
    w->features = world_features(seed);
    w->lot = lot_of(seed, 1);
    w->chaos = lot_of(seed, 2);
    crash_vfs_seed(seed);
    fibers_yield_one_in(sim_on(w, ON_INTERLEAVE) ? 3 : 0);
    /* The disk of the database takes no time: its statements are not interrupted. */
    bool pauses = sim_on(w, ON_INTERLEAVE) && !of_nodes;
    crash_vfs_set_pause(pauses ? sync_takes_time : NULL, w);
    w->place_count = sim_on(w, ON_TWO) ? 2 : 1;
    if (w->place_count > 1)
        place_begin(w, 1, sim_on(w, ON_BUS));
    for (int i = 0; i < w->place_count; i++) {
        w->places[i].server.config.tick_ns = sim_on(w, ON_CPU) ? 200 * 1000 : 0;
        sim_server_seed(&w->places[i].server);
    }
    if (of_nodes) {
        nodes_seed(&cluster);
        cluster.deaf = sim_on(w, ON_NETWORK);
        cluster.slow = sim_on(w, ON_INTERLEAVE);
    }
}

void world_end(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++) {
        place_end(w, &w->places[i], END_STOP);
        crash_disk_free(w->places[i].disk);
    }
    while (w->calls != NULL) {
        struct call *c = w->calls;
        w->calls = c->next;
        call_free(c);
    }
    present = NULL;
}

/* --- the warm world --- */

/* So that statements are prepared and pages read before the histories begin. */
static void use_a_little(struct sim *w, struct place *p)
{
    static const struct {
        const char *method, *target, *body;
    } REQUESTS[] = {
        {"PUT", "/api/v1/tenants/warm", "{\"max_concurrent_runs\":2,\"at_limit\":\"queue\"}"},
        {"PUT", "/api/v1/workflows/w",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"sleep\",\"duration_ms\":5},"
         "{\"name\":\"b\",\"type\":\"transform\",\"output\":{\"x\":\"${input.n}\"}}]}"},
        {"POST", "/api/v1/workflows/w/runs", "{\"input\":{\"n\":1},\"idempotency_key\":\"a\"}"},
        {"POST", "/api/v1/workflows/w/runs", "{\"input\":{\"n\":1},\"idempotency_key\":\"a\"}"},
        {"POST", "/api/v1/jobs/claim", "{\"worker_id\":\"w\"}"},
        {"GET", "/api/v1/runs?limit=200", NULL},
        {"GET", "/api/v1/tenants/warm", NULL},
        {"GET", "/api/v1/doctor", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(REQUESTS); i++) {
        struct call *c =
            sim_ask(w, p, "warm", REQUESTS[i].method, REQUESTS[i].target, REQUESTS[i].body);
        assert(c != NULL && c->status == 200);
        call_free(c);
        sim_pass_ms(w, 10);
    }
}

void world_warm(struct sim *w, const char *folder, bool bus)
{
    (void)snprintf(real_folder, sizeof(real_folder), "%s", folder);
    *w = (struct sim){.lot = {1}, .chaos = {1}, .place_count = 1};
    present = w;
    /* Only fibers use SQLite: without its locks, none of them gives way inside it. */
    int rc = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    assert(rc == SQLITE_OK);
    crash_vfs_register();
    crash_vfs_set_clock(sqlite_clock, w);
    fibers_begin(BEGIN_NS, 0, chaos_draw, w);
    /* A store with its schema, to be copied. */
    template_disk = crash_disk_new();
    place_begin(w, 0, bus);
    bool up = place_start(w, &w->places[0]);
    assert(up);
    if (!of_nodes) {
        place_end(w, &w->places[0], END_STOP);
        crash_disk_mount(w->places[0].disk, NULL);
        crash_disk_free(template_disk);
        template_disk = w->places[0].disk;
        place_begin(w, 0, bus);
        up = place_start(w, &w->places[0]);
        assert(up);
    }
    use_a_little(w, &w->places[0]);
    for (int i = 0; i < ACTOR_COUNT; i++) {
        if (ACTORS[i]->warm != NULL)
            ACTORS[i]->warm(w, &w->places[0]);
    }
}
