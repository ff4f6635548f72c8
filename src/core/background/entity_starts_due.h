/* Starts the runs that answers of entities asked for. */
#ifndef PAWL_CORE_BACKGROUND_ENTITY_STARTS_DUE_H
#define PAWL_CORE_BACKGROUND_ENTITY_STARTS_DUE_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

/* The timer TIMER_ENTITY_START fired. */
MUST_CHECK enum err entity_starts_due(struct tx *tx, const struct timer *timer, struct problem *p);

#endif
