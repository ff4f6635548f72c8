/* What arrives at the bus of a place. */
#ifndef PAWL_TESTS_SIM_EVENTS_H
#define PAWL_TESTS_SIM_EVENTS_H

#include "bus/bus.h"

/* Both get the place. */
bool events_bus_is_away(void *ctx);
enum bus_result events_bus_arrived(void *ctx, const struct bus_message *message);

struct place;
struct seen_run;
struct sim;
void events_bus_set_away(struct sim *w, const struct place *p, bool away);
/* The number of the last event of a run that the bus has received; 0: none. */
int64_t events_bus_last(struct sim *w, const struct place *p, const char *run);
/* The number of the last event in a run's timeline; -1: it cannot be read. */
int64_t events_last_of(struct sim *w, const struct seen_run *r);

#endif
