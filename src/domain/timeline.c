/* The table of events as functions. */
#include "domain/timeline.h"

static const struct {
    struct str name;
    unsigned flags;
} TYPES[] = {
#define X(symbol, name, flags) {{name, sizeof(name) - 1}, flags},
    TIMELINE_EVENTS(X)
#undef X
};

static_assert(ARRAY_LEN(TYPES) == EVENT_TYPE_COUNT, "one row per type");

struct str event_type_name(enum event_type type)
{
    assert(type < EVENT_TYPE_COUNT);
    return TYPES[type].name;
}

unsigned event_type_flags(enum event_type type)
{
    assert(type < EVENT_TYPE_COUNT);
    return TYPES[type].flags;
}

enum event_type event_type_of(struct str name)
{
    enum event_type type = 0;
    while (type < EVENT_TYPE_COUNT && !str_eq(name, TYPES[type].name))
        type++;
    return type;
}

enum event_type event_of_run_end(enum run_status status)
{
    static const enum event_type ENDS[RUN_STATUS_COUNT] = {
        [RUN_SUCCEEDED] = EVENT_RUN_SUCCEEDED, [RUN_FAILED] = EVENT_RUN_FAILED,
        [RUN_DENIED] = EVENT_RUN_DENIED,       [RUN_CANCELLED] = EVENT_RUN_CANCELLED,
        [RUN_TIMED_OUT] = EVENT_RUN_TIMED_OUT,
    };
    assert(run_has_ended(status) && ENDS[status] != 0);
    return ENDS[status];
}
