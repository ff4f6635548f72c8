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
/* "2027-01-15T08:00:00.000Z"; -1 when it is no time. */
int64_t time_of(const char *text);

/* PUT of a definition or an entity type that everything else needs: until it is answered. */
void people_put(struct sim *w, struct place *p, const char *tenant, const char *target,
                const char *body);

/* What only the model asks, once all faults are over: must be answered 200. */
struct call *people_ask(struct sim *w, struct place *p, const char *tenant, const char *target);

#endif
