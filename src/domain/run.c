/* The table of a run's life as functions. */
#include "domain/run.h"

static const struct {
    const char *name;
    bool holds_slot;
    bool terminal;
} STATUSES[] = {
#define X(symbol, name, slot, terminal) {name, slot, terminal},
    RUN_STATUSES(X)
#undef X
};

static const struct {
    enum run_status from;
    enum run_event on;
    struct run_change change;
} EDGES[] = {
#define X(from, on, to, effects) {from, on, {to, effects}},
    RUN_EDGES(X)
#undef X
};

static_assert(ARRAY_LEN(STATUSES) == RUN_STATUS_COUNT, "one row per status");

enum err run_decide(enum run_status from, enum run_event on, struct run_change *ret)
{
    assert(from < RUN_STATUS_COUNT && on < RUN_EVENT_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(EDGES); i++) {
        if (EDGES[i].from == from && EDGES[i].on == on) {
            *ret = EDGES[i].change;
            assert(run_has_ended(ret->to) == ((ret->effects & FX_FINISH) != 0));
            assert(run_holds_slot(from) - run_holds_slot(ret->to) ==
                   ((ret->effects & FX_SLOT_FREE) != 0) - ((ret->effects & FX_SLOT_TAKE) != 0));
            assert((from == RUN_QUEUED) == ((ret->effects & FX_QUEUE_LEAVE) != 0));
            return ERR_OK;
        }
    }
    return ERR_STATUS_CONFLICT;
}

const char *run_status_name(enum run_status status)
{
    assert(status < RUN_STATUS_COUNT);
    return STATUSES[status].name;
}

enum run_status run_status_of(struct str name)
{
    enum run_status status = 0;
    while (status < RUN_STATUS_COUNT && !str_is(name, STATUSES[status].name))
        status++;
    return status;
}

bool run_holds_slot(enum run_status status)
{
    assert(status < RUN_STATUS_COUNT);
    return STATUSES[status].holds_slot;
}

bool run_has_ended(enum run_status status)
{
    assert(status < RUN_STATUS_COUNT);
    return STATUSES[status].terminal;
}
