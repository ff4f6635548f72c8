/* src/bus/bus.h in memory. */
#include "sim/sim_bus.h"

#include "base/macros.h"

#include <stdio.h>

static struct sim_bus *sim_of(struct bus *bus)
{
    return CONTAINER_OF(bus, struct sim_bus, bus);
}

static bool connect_bus(struct bus *bus)
{
    struct sim_bus *s = sim_of(bus);
    return !s->is_away(s->ctx);
}

static void publish(struct bus *bus, struct bus_message *messages, size_t count)
{
    struct sim_bus *s = sim_of(bus);
    for (size_t i = 0; i < count; i++) {
        struct bus_message *m = &messages[i];
        m->result = s->is_away(s->ctx) ? BUS_UNKNOWN : s->arrived(s->ctx, m);
        (void)snprintf(m->why, sizeof(m->why), "%s", m->result == BUS_STORED ? "" : "no answer");
    }
}

static void state(struct bus *bus, struct bus_state *ret)
{
    *ret = (struct bus_state){.ok = connect_bus(bus)};
}

static void interrupt(struct bus *bus)
{
    (void)bus;
}

void sim_bus_init(struct sim_bus *bus)
{
    bus->bus = (struct bus){"sim", connect_bus, publish, state, interrupt, NULL};
}
