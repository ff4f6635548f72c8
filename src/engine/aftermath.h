/* What follows from an op before it is over: children of runs that ended are cancelled, queued runs
 * take the slots that were freed. */
#ifndef PAWL_ENGINE_AFTERMATH_H
#define PAWL_ENGINE_AFTERMATH_H

#include "engine/tx.h"

MUST_CHECK enum err aftermath(struct tx *tx, struct problem *p);

#endif
