/* Tenant names as metric labels, bounded. */
#include "core/txn/tenant_labels.h"

#include "base/limits.h"
#include "base/pages.h"

enum { SLOTS = METRIC_TENANTS_MAX * 2 };

struct tenant_labels {
    size_t count;
    struct {
        char name[TENANT_ID_MAX + 1];
        size_t len;
    } slots[SLOTS];
};

struct tenant_labels *tenant_labels_new(void)
{
    return pages_new(sizeof(struct tenant_labels));
}

void tenant_labels_free(struct tenant_labels *labels)
{
    pages_free(labels, sizeof(*labels));
}

struct str tenant_label(struct tenant_labels *labels, struct str tenant)
{
    if (tenant.len == 0 || tenant.len > TENANT_ID_MAX)
        return LABEL_OTHER;
    tenant = label_of_name(tenant);
    size_t at = str_hash(tenant) % SLOTS;
    while (labels->slots[at].len > 0) {
        struct str known = {labels->slots[at].name, labels->slots[at].len};
        if (str_eq(known, tenant))
            return known;
        at = (at + 1) % SLOTS;
    }
    if (labels->count >= METRIC_TENANTS_MAX)
        return LABEL_OTHER;
    memcpy(labels->slots[at].name, tenant.ptr, tenant.len);
    labels->slots[at].len = tenant.len;
    labels->count++;
    return (struct str){labels->slots[at].name, tenant.len};
}
