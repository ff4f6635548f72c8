/* Tenant names as metric labels: the first METRIC_TENANTS_MAX have their own, the rest share
 * `other`. */
#ifndef PAWL_ENGINE_TENANT_LABELS_H
#define PAWL_ENGINE_TENANT_LABELS_H

#include "base/str.h"

struct tenant_labels;

MUST_CHECK struct tenant_labels *tenant_labels_new(void);
void tenant_labels_free(struct tenant_labels *labels);
struct str tenant_label(struct tenant_labels *labels, struct str tenant);

#endif
