/* Building definitions from options that are JSON already; pawl.h has the functions with formats.
 */
#ifndef PAWL_DEFINITION_H
#define PAWL_DEFINITION_H

#include "pawl.h"

/* Options are given away; NULL is a mistake that `problem` describes. */
struct pawl_workflow *workflow_new(const char *id, json_t *options, const char *problem);
void workflow_step(struct pawl_workflow *workflow, const char *type, const char *name,
                   json_t *options, const char *problem);

#endif
