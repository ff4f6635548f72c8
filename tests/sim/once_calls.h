/* Operations on write-once registers that are calls. */
#ifndef PAWL_TESTS_SIM_ONCE_CALLS_H
#define PAWL_TESTS_SIM_ONCE_CALLS_H

#include "sim/once.h"
#include "sim/sim.h"

/* Any class but these: bits 1 << class. */
#define ONCE_VALUES_BUT(classes) (0xfffeu & ~(unsigned)(classes))
#define ONCE_IS(cls) (1u << (cls))

/* The call is over; comes before its answer. */
static inline void once_call_repeated(struct once *o, int number, const struct call *c)
{
    if (c->tries > 1 || c->doubled)
        once_repeated(o, number, c->doubled ? INT64_MAX : c->answered);
}

/* Nobody knows whether it was done: no answer, or one that says so. */
static inline bool call_in_doubt(const struct call *c)
{
    return c->status == 0 || c->status == 503 || strcmp(c->code, "IDEMPOTENCY_IN_FLIGHT") == 0;
}

static inline void once_call_lost(struct sim *w, struct once *o, int number, const struct call *c)
{
    if (c->doubled)
        once_repeated(o, number, INT64_MAX);
    once_lost(o, number, w->clock);
}

/* Its history is over: counts whether it could be checked to the end. */
static inline void once_cover(struct sim *w, const struct once *o, const char *what)
{
    if (o->next_number > 1)
        sim_cover(w, o->retired ? "retired" : "register", what);
}

#endif
