/* How much memory one operation of a server's writer may use: less than in production, so that a
 * history can afford to run out of it. */
#ifndef PAWL_TESTS_SIM_BUDGET_H
#define PAWL_TESTS_SIM_BUDGET_H

#include <stddef.h>

/* For every writer of this process, also those that start later. */
void budget_set(size_t bytes);

#endif
