/* Making and ending the world of a history. */
#ifndef PAWL_TESTS_SIM_WORLD_H
#define PAWL_TESTS_SIM_WORLD_H

#include "sim/sim.h"

/* Once per process, before any history: the file system and a store to copy. `folder` is a real
 * one, for lock files. */
void world_setup(const char *folder);
/* In a child process: a real folder of its own. */
void world_move(const char *folder);
void world_begin(struct sim *w, uint64_t seed, bool tells);
void world_end(struct sim *w);

#endif
