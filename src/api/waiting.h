/* Requests that wait for a job, a run's end or an update, counted by tenant: each holds a
 * connection, and one tenant's must leave some for the others. */
#ifndef PAWL_API_WAITING_H
#define PAWL_API_WAITING_H

#include "base/problem.h"

struct waiting;

MUST_CHECK struct waiting *waiting_new(void);
/* Nobody may wait any more. */
void waiting_free(struct waiting *w);

/* Another one of this tenant's; refused when it has as many as it may. */
MUST_CHECK enum err waiting_join(struct waiting *w, struct str tenant, struct problem *p);
void waiting_leave(struct waiting *w, struct str tenant);

#endif
