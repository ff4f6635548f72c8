/* How much work an operation may still do. Code whose cost depends on what users send spends from
 * it, and stops when nothing is left. One step is about 50 ns. */
#ifndef PAWL_DOMAIN_WORK_H
#define PAWL_DOMAIN_WORK_H

#include "base/macros.h"

#include <stdbool.h>

struct work_budget {
    size_t left; /* 0: used up */
};

/* False when the budget is used up: the caller stops and says so. */
static inline bool work_spend(struct work_budget *budget, size_t steps)
{
    budget->left -= MIN(steps, budget->left);
    return budget->left > 0;
}

#endif
