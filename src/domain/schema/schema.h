/* The part of JSON Schema (draft 2020-12) that a workflow's input_schema may use.
 * Both checks write [{path, message}] elements: what a schema may not say is refused when it is
 * stored, so a stored schema never fails by itself. */
#ifndef PAWL_DOMAIN_SCHEMA_SCHEMA_H
#define PAWL_DOMAIN_SCHEMA_SCHEMA_H

#include "base/json.h"
#include "domain/fault_list.h"
#include "domain/work.h"

/* Schemas and values come from json_read(), which bounds their depth. */

/* Is `schema` one that schema_check_value can apply? Faults if not. */
void schema_check_schema(const struct json *schema, struct fault_list *faults);

enum schema_verdict {
    SCHEMA_FITS,
    SCHEMA_MISFITS, /* the faults say where and why */
    SCHEMA_GAVE_UP, /* the budget is used up; the faults are not all of them */
};

/* Does `value` fit? `schema` passed schema_check_schema. The caller's budget is SCHEMA_WORK_MAX, or
 * what is left of a larger operation's. */
MUST_CHECK enum schema_verdict schema_check_value(const struct json *schema,
                                                  const struct json *value,
                                                  struct work_budget *work,
                                                  struct fault_list *faults);

#endif
