/* pawl migrate: copies a store that no server has open. */
#ifndef PAWL_MIGRATE_MIGRATE_H
#define PAWL_MIGRATE_MIGRATE_H

#include "cli/commands.h"

enum { MIGRATE_VERB_COUNT = 1 };

extern const struct verb MIGRATE_VERBS[MIGRATE_VERB_COUNT];

#endif
