/* What becomes of a schedule's time when it has come. Pure. */
#ifndef PAWL_DOMAIN_CALENDAR_SCHEDULE_H
#define PAWL_DOMAIN_CALENDAR_SCHEDULE_H

#include "base/str.h"

#define OVERLAPS(X)           \
    X(OVERLAP_SKIP, "skip")   \
    X(OVERLAP_QUEUE, "queue") \
    X(OVERLAP_ALLOW, "allow")

enum overlap {
#define X(symbol, name) symbol,
    OVERLAPS(X)
#undef X
        OVERLAP_COUNT
};

const char *overlap_name(enum overlap overlap);
/* OVERLAP_COUNT when there is no such policy. */
enum overlap overlap_of(struct str name);

/* A time that is this late is still on time: the server was busy, not away. */
enum { SCHEDULE_LATE_MS = 10 * 1000 };

enum schedule_verdict {
    SCHEDULE_FIRE,
    SCHEDULE_MISSED,  /* longer ago than is caught up with */
    SCHEDULE_OVERLAP, /* the run before it is still active: left out */
    SCHEDULE_WAIT,    /* it is put off until the run before it has ended */
};

/* What the run before it is doing. */
struct schedule_last {
    bool is_active;
    bool was_active; /* when the time came */
};

enum schedule_verdict schedule_decide(int64_t now_ms, int64_t due_ms, int64_t catch_up_ms,
                                      struct schedule_last last, enum overlap overlap);

#endif
