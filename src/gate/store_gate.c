/* The in-store gate: the writer's transaction, in which starts come one after the other. */
#include "gate/gate.h"

static enum gate_answer enter(struct gate *gate, struct str tenant,
                              const struct gate_policy *policy, struct gate_ticket *ret)
{
    (void)gate, (void)tenant, (void)policy;
    *ret = (struct gate_ticket){.held = false};
    return GATE_ENTERED;
}

static void leave(struct gate *gate, const struct gate_ticket *ticket)
{
    (void)gate;
    assert(!ticket->held); /* nothing was taken that could be given back */
}

struct gate *gate_store(void)
{
    static struct gate gate = {"store", enter, leave, .never_waits = true};
    return &gate;
}
