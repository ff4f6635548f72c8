/* The audit trail as rows, hash-chained per tenant: each entry's hash covers the one before it. */
#ifndef PAWL_STORE_AUDIT_H
#define PAWL_STORE_AUDIT_H

#include "store/db.h"

struct audit_entry {
    int64_t tenant;
    int64_t at;
    struct str actor;
    struct str peer; /* the address it came from */
    struct str action;
    struct str target;
    struct str detail; /* JSON, or ptr NULL */
};

MUST_CHECK enum err audit_append(struct db *db, const struct audit_entry *entry);

/* Walks every chain; *ret_broken is the number of entries whose hash does not fit. */
MUST_CHECK enum err audit_verify(struct db *db, int64_t *ret_checked, int64_t *ret_broken);

#endif
