/* The table of a job's life as functions. */
#include "domain/job.h"

static const struct {
    const char *name;
    bool terminal;
} STATES[] = {
#define X(symbol, name, terminal) {name, terminal},
    JOB_STATES(X)
#undef X
};

static const struct {
    enum job_state from;
    enum job_event on;
    enum job_state to;
} EDGES[] = {
#define X(from, on, to) {from, on, to},
    JOB_EDGES(X)
#undef X
};

static_assert(ARRAY_LEN(STATES) == JOB_STATE_COUNT, "one row per state");

enum err job_decide(enum job_state from, enum job_event on, enum job_state *ret)
{
    assert(from < JOB_STATE_COUNT && on < JOB_EVENT_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(EDGES); i++) {
        if (EDGES[i].from == from && EDGES[i].on == on) {
            *ret = EDGES[i].to;
            return ERR_OK;
        }
    }
    return ERR_STATUS_CONFLICT;
}

const char *job_state_name(enum job_state state)
{
    assert(state < JOB_STATE_COUNT);
    return STATES[state].name;
}

enum job_state job_state_of(struct str name)
{
    enum job_state state = 0;
    while (state < JOB_STATE_COUNT && !str_is(name, STATES[state].name))
        state++;
    return state;
}

bool job_has_ended(enum job_state state)
{
    assert(state < JOB_STATE_COUNT);
    return STATES[state].terminal;
}
