/* Operations on write-once registers that are calls. */
#ifndef PAWL_TESTS_SIM_ONCE_CALLS_H
#define PAWL_TESTS_SIM_ONCE_CALLS_H

#include "sim/once.h"
#include "sim/sim.h"

/* Any class but these: bits 1 << class. */
#define ONCE_VALUES_BUT(classes) (0xfffeu & ~(unsigned)(classes))
#define ONCE_IS(cls) (1u << (cls))

/* Besides the last try that arrived, others may have been done too: an earlier try before `until`,
 * a copy at any time. If the register is cleared in between, each of them can set it again. */
static inline void once_deliveries(struct once *o, int number, const struct call *c, int64_t until)
{
    for (int i = 1; i < c->arrived; i++)
        once_repeated(o, number, until);
    for (int i = 0; i < c->copies; i++)
        once_repeated(o, number, INT64_MAX);
}

/* The call is over; comes before its answer. */
static inline void once_call_repeated(struct once *o, int number, const struct call *c)
{
    once_deliveries(o, number, c, c->answered);
}

/* Nobody knows whether it was done: no answer, or one that says so. */
static inline bool call_in_doubt(const struct call *c)
{
    return c->status == 0 || c->status == 503 || strcmp(c->code, "IDEMPOTENCY_IN_FLIGHT") == 0;
}

static inline void once_call_lost(struct sim *w, struct once *o, int number, const struct call *c)
{
    once_deliveries(o, number, c, w->clock);
    once_lost(o, number, w->clock);
}

/* Its history is over: counts whether it could be checked to the end. */
static inline void once_cover(struct sim *w, const struct once *o, const char *what)
{
    if (o->next_number > 1)
        sim_cover(w, o->retired ? "retired" : "register", what);
}

#endif
