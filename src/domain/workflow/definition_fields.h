/* What each member of a definition may be, taken by itself: its place, its type, its bounds.
 * How steps refer to each other is checked by definition.c. */
#ifndef PAWL_DOMAIN_WORKFLOW_DEFINITION_FIELDS_H
#define PAWL_DOMAIN_WORKFLOW_DEFINITION_FIELDS_H

#include "base/json.h"
#include "domain/fault_list.h"

/* Adds a fault for each member that is unknown, missing, misplaced or has a bad value. */
void definition_check_fields(const struct json *source, struct fault_list *faults);
/* The same for a question that the worker of a task asks, which has no templates: `ask` is an
 * object with the members of requires_approval, but without on_expire. */
void definition_check_question(const struct json *ask, struct fault_list *faults);

#endif
