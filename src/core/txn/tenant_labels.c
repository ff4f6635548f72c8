/* Tenant names as metric labels, bounded. */
#include "core/txn/tenant_labels.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "base/pages.h"

struct label {
    struct hash_entry entry;
    size_t len;
    char name[TENANT_ID_MAX + 1];
};

struct tenant_labels {
    struct hash_map map;
    struct label labels[METRIC_TENANTS_MAX];
};

struct tenant_labels *tenant_labels_new(void)
{
    return pages_new(sizeof(struct tenant_labels));
}

void tenant_labels_free(struct tenant_labels *labels)
{
    if (labels == NULL)
        return;
    hash_map_release(&labels->map);
    pages_free(labels, sizeof(*labels));
}

static struct str text_of(struct hash_entry *e)
{
    const struct label *label = CONTAINER_OF(e, struct label, entry);
    return (struct str){label->name, label->len};
}

struct str tenant_label(struct tenant_labels *labels, struct str tenant)
{
    if (tenant.len == 0 || tenant.len > TENANT_ID_MAX)
        return LABEL_OTHER;
    tenant = label_of_name(tenant);
    uint64_t hash = hash_text(&labels->map, tenant);
    struct hash_entry *e = hash_map_find(&labels->map, hash);
    while (e != NULL && !str_eq(text_of(e), tenant))
        e = hash_map_find_next(e);
    if (e != NULL)
        return text_of(e);
    if (labels->map.count == METRIC_TENANTS_MAX)
        return LABEL_OTHER;
    struct label *added = &labels->labels[labels->map.count];
    memcpy(added->name, tenant.ptr, tenant.len);
    added->len = tenant.len;
    hash_map_add(&labels->map, &added->entry, hash);
    return text_of(&added->entry);
}
