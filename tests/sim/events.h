/* What arrives at the bus of a place. */
#ifndef PAWL_TESTS_SIM_EVENTS_H
#define PAWL_TESTS_SIM_EVENTS_H

#include "bus/bus.h"

/* Both get the place. */
bool events_bus_is_away(void *ctx);
enum bus_result events_bus_arrived(void *ctx, const struct bus_message *message);

#endif
