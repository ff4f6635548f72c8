/* Makes everything anew that is derived from the runs, in the store and in what the writer
 * remembers of it. One transaction that reads all runs, so nobody else writes meanwhile: a minute
 * or so for ten million runs. */
#ifndef PAWL_ENGINE_REPAIR_H
#define PAWL_ENGINE_REPAIR_H

#include "engine/tx.h"

/* Counters that wait to be written have been (tx_flush). A limit that is lost although runs are
 * under it is made again from their definitions and inputs; a run whose definition is lost too is
 * no longer under it. */
MUST_CHECK enum err repair_all(struct tx *tx);

#endif
