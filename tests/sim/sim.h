/* The simulated world of one history: servers on crash disks, a network, clients, workers, people,
 * receivers and operators, all driven by one seed.
 *
 * A history is a number of steps. Each step draws only from chance(seed, step) and acts on the
 * world as it finds it, so any steps can be left out and the rest still makes sense: that is how a
 * failing history is shrunk. After each step the model checks what was answered.
 *
 * Actors act through HTTP requests and know only their answers. The model (the checks) is in the
 * same files: it compares answers with each other and with the contract, and shares no code with
 * src/. A broken promise ends the history by sim_fail(). */
#ifndef PAWL_TESTS_SIM_SIM_H
#define PAWL_TESTS_SIM_SIM_H

#include "sim/lot.h"
#include "sim/server.h"
#include "sim/sim_bus.h"

#include <jansson.h>

/* --- what a seed switches on: whole classes of features, faults and sizes --- */

#define SIM_FEATURES(X)                                                                 \
    X(ON_NETWORK)    /* requests and answers are lost, doubled, delayed, reordered */   \
    X(ON_KILLS)      /* servers are killed; what was written stays in the page cache */ \
    X(ON_CUTS)       /* power cuts: what was not synced is lost, torn or reordered */   \
    X(ON_DISK)       /* full disks, failing reads, writes and syncs */                  \
    X(ON_STOPS)      /* orderly restarts */                                             \
    X(ON_CLOCKS)     /* wall clocks jump */                                             \
    X(ON_BUS)        /* events go to a bus that loses acknowledgements */               \
    X(ON_WEBHOOKS)   /* and to receivers that fail */                                   \
    X(ON_STREAMS)    /* and to clients that read streams */                             \
    X(ON_WORKERS)    /* workers die, pause past their lease, answer twice and late */   \
    X(ON_APPROVALS)  /* people decide, and disagree */                                  \
    X(ON_SIGNALS)    /* signals to runs */                                              \
    X(ON_ENTITIES)   /* entities, updates, roll-over */                                 \
    X(ON_CHILDREN)   /* child runs */                                                   \
    X(ON_MAPS)       /* steps for each item */                                          \
    X(ON_UNDO)       /* compensation */                                                 \
    X(ON_CONTROL)    /* cancel, pause, resume, retry, rerun, bulk */                    \
    X(ON_SETTINGS)   /* limits change and are rolled back */                            \
    X(ON_VERSIONS)   /* workflows change, are archived and come back */                 \
    X(ON_SCHEDULES)  /* runs by the calendar */                                         \
    X(ON_RETENTION)  /* old runs are removed */                                         \
    X(ON_KEYS)       /* API keys, and idempotency keys that are released */             \
    X(ON_LARGE)      /* payloads near the limits */                                     \
    X(ON_YEARS)      /* long stretches of time pass */                                  \
    X(ON_TWO)        /* two servers, each on its own store */                           \
    X(ON_INTERLEAVE) /* threads give way at every lock */                               \
    X(ON_CPU)        /* clocks move while code runs */                                  \
    X(ON_BUDGET)     /* operations run out of the memory that they may use */           \
    X(ON_WAITERS)    /* workers poll, and clients wait for their runs */                \
    X(ON_SCRIPTS)    /* short scripts that need exact times */                          \
    X(ON_MISTAKES)   /* requests that must be refused */                                \
    X(ON_FUNCTIONS)  /* durable functions: checkpoints and suspension */                \
    X(ON_NODES)      /* several nodes over one database, instead of a server on its disk */

enum sim_feature {
#define X(symbol) symbol,
    SIM_FEATURES(X)
#undef X
        SIM_FEATURE_COUNT
};

enum { PLACES_MAX = 2, TENANTS = 3 };

struct call;
struct nodes;
struct sim;

/* One server with its disk. Tenants are "t0" … of each place; places share nothing. */
struct place {
    int number;
    struct sim_server server;
    struct nodes *nodes; /* instead of a server; NULL: none */
    struct crash_disk *disk;
    bool up;         /* of nodes: always */
    bool reads_fail; /* a read of its disk will fail: the doctor would say so */
    int64_t skew_us;
    struct sim_receiver receiver;
    struct sim_bus bus;
    struct sim *sim;
};

struct sim {
    uint64_t seed;
    uint64_t features;    /* bits of enum sim_feature */
    int step;             /* the present one */
    struct lot lot;       /* its chance, for actors */
    struct lot chaos;     /* the chance of schedulers, disks and servers; also new in each step */
    bool cuts;            /* the power fails at a call that the plan names */
    uint64_t cuts_before; /* of the first server's disk: the planned one makes it one more */
    bool calm;            /* no more faults: everything that can move must come to its end */
    bool tells;           /* the story is printed */
    int64_t clock;        /* counts what happens: requests sent and answers received */
    uint64_t digest;      /* of all answers */
    int64_t leap_ms;      /* how much time has passed at once in the present step */
    int place_count;
    struct place places[PLACES_MAX];
    struct call *calls;
    void *states[32]; /* of the actor files, by their number; see actions.h */
};

static inline bool sim_on(const struct sim *w, enum sim_feature feature)
{
    return (w->features >> feature & 1) != 0;
}

#define NEEDS(feature) (UINT64_C(1) << (feature))
/* What goes wrong outside of what pawl is asked to do. */
#define NEEDS_FAULTS                                                                           \
    (NEEDS(ON_NETWORK) | NEEDS(ON_KILLS) | NEEDS(ON_CUTS) | NEEDS(ON_DISK) | NEEDS(ON_STOPS) | \
     NEEDS(ON_CLOCKS))

/* --- the story, and its end --- */

/* One line, in the order of events; only kept when the story is wanted. */
void sim_tell(struct sim *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A promise is broken: which (1 to 6, or 0: some other rule), and what was seen. */
_Noreturn void sim_fail(struct sim *w, int promise, const char *fmt, ...) PRINTF_LIKE(3, 4);
#define sim_check(w, promise, ok, ...)             \
    do {                                           \
        if (!(ok))                                 \
            sim_fail((w), (promise), __VA_ARGS__); \
    } while (0)
/* Counts that this was reached; both are short words, as ("error", "LEASE_LOST"). */
void sim_cover(struct sim *w, const char *kind, const char *what);

/* --- time --- */

int64_t sim_now_ms(const struct sim *w);
/* Time passes, and every server that is up does what is due. */
void sim_pass_ms(struct sim *w, int64_t ms);

/* --- servers --- */

struct place *sim_any_place(struct sim *w);
/* Starts it again after a crash; faults may keep it down (then false). */
bool place_start(struct sim *w, struct place *p);
/* Lets it come to rest, and hands answers to their callers. */
void place_settle(struct sim *w, struct place *p);
/* The same, but a sync that takes time stays under way. */
void place_settle_now(struct sim *w, struct place *p);
/* Where a request arrives: at the server, or at one of the nodes; NULL: it is down. */
struct sim_http *place_http(struct sim *w, struct place *p);
/* For the model: the same, but at a node that runs, when every shard is served; time passes until
 * then. */
struct sim_http *place_http_now(struct sim *w, struct place *p);
/* The end of its process, in one of these ways; its calls are lost. Of nodes: of one of them. */
enum place_end { END_STOP, END_KILL, END_CUT };
void place_end(struct sim *w, struct place *p, enum place_end how);
/* The power fails at the nth change of its files from now, before or after it is done. */
void place_cut_at(struct sim *w, struct place *p, uint64_t nth);
/* The power has failed where the plan says. */
bool sim_was_cut(const struct sim *w);

/* --- calls: one request of a client, with its retries --- */

struct call_spec {
    struct place *place;
    const char *method;
    const char *target;
    const char *tenant;  /* NULL: none is named */
    const char *actor;   /* NULL: "dev" */
    const char *api_key; /* as whose holder; NULL: as somebody who may do everything */
    const char *key;     /* Idempotency-Key; NULL: none */
    const char *if_match;
    const char *body; /* NULL: none */
    /* A client that gets no answer, or one that says so, sends the same request again until it is
     * answered: safe with a key, and wherever the contract says so. */
    bool retries;
    bool doubles; /* the network may deliver it twice: with a key, or where that is harmless */
    bool at_once; /* no faults of the network: for checks by the model */
    /* The answer came, or with status 0: none will, and whether it was done is unknown. */
    void (*done)(struct sim *w, struct call *c);
    void *ref; /* for done() */
    int64_t number;
};

struct call {
    struct call_spec spec; /* its texts are the call's own copies */
    char *texts;
    int64_t sent;     /* by sim.clock: when it was first sent */
    int64_t sent_ms;  /* by sim_now_ms() */
    int64_t answered; /* by sim.clock */
    int tries;
    int arrived; /* tries that came to the server */
    int copies;  /* that the network has delivered besides: each may be done later */

    /* The answer. */
    int status;   /* 0: none */
    json_t *json; /* NULL: it is not JSON */
    bool replayed;
    const char *code; /* of a problem; "" */

    /* The network's. */
    enum { CALL_WAITS, CALL_AT_SERVER, CALL_OVER } state;
    bool answer_lost;
    int wait_steps;
    struct sim_exchange *x;
    struct sim_exchange *copy; /* the same request a second time; nobody reads its answer */
    struct call *next;
};

/* Sends it, now or in a later step. The world owns it; it is freed after done(). */
struct call *sim_send(struct sim *w, const struct call_spec *spec);
/* For the model: asks at once, without faults, and returns the answer, which the caller releases by
 * call_free(). NULL: the server is down or went down. */
struct call *sim_ask(struct sim *w, struct place *p, const char *tenant, const char *method,
                     const char *target, const char *body);
/* The same, as somebody. */
struct call *sim_ask_as(struct sim *w, struct place *p, const char *actor, const char *tenant,
                        const char *method, const char *target, const char *body);
void call_free(struct call *c);
/* The client closes the connection and waits no longer: its done() gets status 0. */
void sim_hang_up(struct sim *w, struct call *c);
/* How many calls are not over yet. */
int sim_calls_open(const struct sim *w);
/* Gives answers to their calls; sends what waits. */
void sim_calls_turn(struct sim *w);

/* What the doctor has found must be nothing (actors/world.c). */
void doctor_check(struct sim *w, const json_t *answer);

/* --- reading answers --- */

const char *json_text(const json_t *object, const char *name); /* "" when absent */
int64_t json_number(const json_t *object, const char *name);   /* -1 when absent */

#endif
