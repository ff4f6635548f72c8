/* Metric labels of tenants. The first METRIC_TENANTS_MAX tenants have their own label; the rest
 * share `other`. */
#ifndef PAWL_CORE_TXN_TENANT_LABELS_H
#define PAWL_CORE_TXN_TENANT_LABELS_H

#include "base/str.h"

/* The label of all tenants without their own. */
#define LABEL_OTHER STR("other")
/* The label of a tenant or a queue that is called `other`: no name has parentheses. */
#define LABEL_NAMED_OTHER STR("(other)")

static inline struct str label_of_name(struct str name)
{
    return str_is(name, "other") ? LABEL_NAMED_OTHER : name;
}

struct tenant_labels;

MUST_CHECK struct tenant_labels *tenant_labels_new(void);
void tenant_labels_free(struct tenant_labels *labels);
struct str tenant_label(struct tenant_labels *labels, struct str tenant);

#endif
