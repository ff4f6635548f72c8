/* Making and ending the world of a history. */
#ifndef PAWL_TESTS_SIM_WORLD_H
#define PAWL_TESTS_SIM_WORLD_H

#include "sim/sim.h"

/* Histories are of several nodes over one database from now on. Before all else. */
void world_set_nodes(void);
/* What is switched on in the histories of a seed. */
uint64_t world_features(uint64_t seed);

/* Once per process, before any history: the file system, and a server that has been used a little,
 * so that every history begins with warm caches. `folder` is a real one, for lock files. Histories
 * are run by children of the process. */
void world_warm(struct sim *w, const char *folder, bool bus);
/* The world of a history, from the warm one. */
void world_begin(struct sim *w, uint64_t seed, bool tells);
/* The faults of nodes and their network are over. */
void world_calm(struct sim *w);
void world_end(struct sim *w);

#endif
