/* Labels of a run, wherever a start comes from. */
#ifndef PAWL_DOMAIN_LABELS_H
#define PAWL_DOMAIN_LABELS_H

#include "base/fields.h"
#include "base/json.h"

/* The member `labels`, an object or NULL: says what is wrong with it. */
void labels_check(struct fields *f, const struct json *labels);

#endif
