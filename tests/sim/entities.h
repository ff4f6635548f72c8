/* Entities as their senders and handlers know them.
 *
 * The handler writes into the state what it has got, so that the state itself proves what was
 * applied: {"log": "1:17;2:1004;…" (number and payload of each signal), "last": the last number,
 * "a", "b": the payload of the timer of that name that is set (0: none), "by": the number of the
 * result that wrote it}. */
#ifndef PAWL_TESTS_SIM_ENTITIES_H
#define PAWL_TESTS_SIM_ENTITIES_H

#include "sim/inbox.h"

enum { ENTITIES = 3, ENTITY_RESULTS_MAX = 400, ENTITY_CALLS_MAX = 24, ENTITY_TIMERS = 2 };

/* Types "e0" …, with small windows and generations. */
struct entity_rules {
    const char *body;
    int64_t window_ms;
    int64_t keys_max;
    bool keeps_all; /* generations */
};
enum { ENTITY_TYPES = 2, KEEPS_ALL = 1 };
extern const struct entity_rules ENTITY_RULES[ENTITY_TYPES];

/* What a worker has answered: its number is in the state that it wrote. */
struct entity_result {
    int64_t version; /* that it made, as acknowledged; 0: not known; -1: it was refused */
    int incarnation;
    char entity; /* its number */
};

/* Some results ask for a run, under this key. */
#define ENTITY_START_KEY "started-%d"
static inline bool entity_result_starts(int number)
{
    return number % 5 == 1;
}

/* A call that a worker has. */
struct entity_call {
    char job[RUN_ID_LEN + 1];
    char token[64];
    struct entity *entity;
    int incarnation;
    char *result;          /* the body that completes it; the call's own */
    int number;            /* of the result */
    int64_t expires_ms;    /* the lease, by the server's wall clock */
    int64_t version_floor; /* versions that were acknowledged before the call was claimed */
    bool held;             /* nobody has answered it yet */
};

struct entity {
    int number;
    int type;
    char id[4];
    int tenant;
    struct inbox inbox;
    int incarnation; /* deleting begins a new one */
    bool deleting;
    int results_open; /* under way */
    int64_t version;  /* acknowledged or shown */
    int64_t shown_at; /* by sim.clock */
    int64_t consumed; /* shown */
    int64_t generation;
    char job[RUN_ID_LEN + 1]; /* the call that was handed out last */
    int64_t job_through;      /* its last signal */
};

struct entities {
    struct entity entities[ENTITIES];
    struct wall_clocks clocks;
    int marks;
    int timers;
    int claims_open;
    int result_count;
    struct entity_result results[ENTITY_RESULTS_MAX];
    struct entity_call calls[ENTITY_CALLS_MAX];
};

struct entities *entities_state(struct sim *w);
struct entity *entity_named(struct sim *w, int place, const char *type, const char *id);
void entity_target(const struct entity *e, char out[static 96], const char *rest);
void entity_init(struct sim *w, struct entity *e, int place);

/* A state is shown, with the entity's version and the number of its last applied signal: by an
 * answer to call `c`. */
void entity_check_state(struct sim *w, struct entity *e, const struct call *c, const json_t *state,
                        int64_t version, int64_t consumed);
/* The whole entity is shown. */
void entity_observe(struct sim *w, struct entity *e, const struct call *c, const json_t *shown);

/* The worker's part (entity_worker.c). */
void entity_claim(struct sim *w, struct place *p);
void entity_late_result(struct sim *w); /* a worker that was slow answers now */

#endif
