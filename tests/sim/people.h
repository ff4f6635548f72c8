/* What actors that stand for people share: names, clocks and times. */
#ifndef PAWL_TESTS_SIM_PEOPLE_H
#define PAWL_TESTS_SIM_PEOPLE_H

#include "sim/once_calls.h"
#include "sim/runs.h"

enum person { ANN, BOB, CAT, EVE, PERSON_COUNT };
extern const char *const PEOPLE[PERSON_COUNT];

/* PERSON_COUNT: nobody of them. */
enum person person_of(const char *name);
enum person any_person(struct sim *w);

/* What the place's wall clock shows. */
int64_t place_wall_ms(const struct sim *w, const struct place *p);
/* The latest time that it has ever shown: clocks jump back. Kept by people_watch(), in each step.
 */
struct wall_clocks {
    int64_t latest_ms[PLACES_MAX];
};
void people_watch(const struct sim *w, struct wall_clocks *clocks);

/* "2027-01-15T08:00:00.000Z"; -1 when it is no time. */
int64_t time_of(const char *text);

/* PUT of a definition or an entity type, for every tenant: part of the warm world. */
void people_put(struct sim *w, struct place *p, const char *target, const char *body);

/* What only the model asks, once all faults are over: must be answered 200. NULL: it is not there,
 * because retention may have removed it, or the server went down by the last fault. */
struct call *people_ask(struct sim *w, struct place *p, const char *tenant, const char *target);

#endif
