/* What can happen in a step, and who keeps what about it: one row for each actor file. */
#ifndef PAWL_TESTS_SIM_ACTIONS_H
#define PAWL_TESTS_SIM_ACTIONS_H

#include "sim/sim.h"

/* One thing that an actor may do. */
struct action {
    const char *name; /* for the story and coverage */
    int weight;       /* against the others */
    /* Switched on by these features: bits; 0: always. All of them are needed. */
    uint64_t needs;
    /* Does it, or finds that there is nothing to do. */
    void (*act)(struct sim *w);
};

/* An actor file: its actions, and its part of the model. Functions may be NULL. */
struct actor {
    const char *name;
    const struct action *actions; /* ends with a row without a name */
    /* Before all histories, on place 0: what each of them begins with, as workflows. By
     * sim_ask(). */
    void (*warm)(struct sim *w, struct place *p);
    void (*begin)(struct sim *w); /* servers are up; places after 0 are not warm */
    void (*check)(struct sim *w); /* after each step: cheap */
    void (*audit)(struct sim *w); /* now and then, and at the end: asks the servers */
    void (*restarted)(struct sim *w, struct place *p);
    /* The end of the history: no more faults. Does what lets work come to its end, and returns true
     * while there is still something to wait for. Called again and again while time passes. */
    bool (*finish)(struct sim *w);
    void (*last)(struct sim *w); /* everything has come to its end: is all as it must be? */
    void (*free)(struct sim *w);
};

#define SIM_ACTORS(X)  \
    X(ACTOR_WORLD)     \
    X(ACTOR_RUNS)      \
    X(ACTOR_WEBHOOKS)  \
    X(ACTOR_EVENTS)    \
    X(ACTOR_OPERATORS) \
    X(ACTOR_STARTS)    \
    X(ACTOR_MEMORY)    \
    X(ACTOR_WAITERS)   \
    X(ACTOR_SCRIPTS)   \
    X(ACTOR_ORDERS)    \
    X(ACTOR_DELETIONS) \
    X(ACTOR_API_KEYS)  \
    X(ACTOR_BACKUPS)   \
    X(ACTOR_DECISIONS) \
    X(ACTOR_APPROVALS) \
    X(ACTOR_SIGNALS)   \
    X(ACTOR_WORKFLOWS) \
    X(ACTOR_WORKERS)   \
    X(ACTOR_CONTROL)   \
    X(ACTOR_ENTITIES)  \
    X(ACTOR_FUNCTIONS) \
    X(ACTOR_MISTAKES)  \
    X(ACTOR_NODES)

#define X(symbol) extern const struct actor symbol;
SIM_ACTORS(X)
#undef X

enum actor_number {
#define X(symbol) symbol##_NUMBER,
    SIM_ACTORS(X)
#undef X
        ACTOR_COUNT
};

extern const struct actor *const ACTORS[ACTOR_COUNT];

#endif
