/* Patterns of dotted names, as event types and audit actions are: `run.started` is itself, `run.*`
 * everything that begins with `run.`, `*` everything. */
#ifndef PAWL_DOMAIN_TYPE_PATTERN_H
#define PAWL_DOMAIN_TYPE_PATTERN_H

#include "base/str.h"

/* Is it a pattern at all? */
bool type_pattern_ok(struct str pattern);
bool type_pattern_fits(struct str pattern, struct str type);
/* Does one of a list fit, as `run.*,approval.decided`? An empty list has none. */
bool type_list_ok(struct str list);
bool type_list_fits(struct str list, struct str type);

/* The beginning that only pawl's own events have, as "run."; NULL when the type has none. A
 * subscriber must be able to trust that an event run.* comes from pawl. */
const char *type_own_prefix(struct str type);

#endif
