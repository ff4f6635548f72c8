/* A message bus in memory, in NATS's place: keeps nothing itself, loses acknowledgements by chance,
 * and is away at times. */
#ifndef PAWL_TESTS_SIM_BUS_H
#define PAWL_TESTS_SIM_BUS_H

#include "bus/bus.h"

struct sim_bus {
    struct bus bus; /* first */
    /* A message has reached the bus. Returns what the sender gets to know. */
    enum bus_result (*arrived)(void *ctx, const struct bus_message *message);
    bool (*is_away)(void *ctx);
    void *ctx;
};

void sim_bus_init(struct sim_bus *bus);

#endif
