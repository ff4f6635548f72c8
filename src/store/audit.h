/* The audit trail as rows, hash-chained per tenant: each entry's hash covers the one before it, and
 * a row beside the chain keeps how long it is and how it ends, so that a chain that was cut short
 * is noticed.
 *
 * A tenant has one chain that grows, its own, under the tenant's number. Beside it there may be
 * some that joined it when shards became one store (schema/029): each has a number of its own, and
 * stays as it is. */
#ifndef PAWL_STORE_AUDIT_H
#define PAWL_STORE_AUDIT_H

#include "store/db.h"

struct audit_entry {
    int64_t tenant; /* 0: the server itself */
    int64_t at;
    struct str actor;
    struct str peer; /* the address it came from */
    struct str action;
    struct str target;
    struct str detail; /* JSON, or ptr NULL */
};

MUST_CHECK enum err audit_append(struct db *db, const struct audit_entry *entry);

/* --- reading --- */

struct audit_row {
    int64_t seq; /* from 1, without gaps */
    struct audit_entry entry;
    struct sha256 hash;
};

struct audit_filter {
    int64_t chain;     /* a tenant's own, by its number, or one that joined it */
    struct str actor;  /* ptr NULL: any */
    struct str action; /* a pattern of domain/type_pattern.h; ptr NULL: any */
};

/* False: the row does not fit any more. Text is borrowed for the call. */
typedef bool audit_each(void *ctx, const struct audit_row *row);

/* Rows beyond `from`: above it, or below it with newest_first. Looks at PAGE_SCAN_MAX rows at most;
 * *ret_next is where to go on, -1 at the end. */
MUST_CHECK enum err audit_list(struct db *db, const struct audit_filter *filter, int64_t from,
                               bool newest_first, audit_each *each, void *ctx, int64_t *ret_next);

/* The chain that joined the tenant's after this one, or before it with newest_first; 0: there is
 * none. */
MUST_CHECK enum err audit_next_joined(struct db *db, int64_t tenant, int64_t from,
                                      bool newest_first, int64_t *ret);

/* --- checking --- */

enum audit_fault {
    AUDIT_CHANGED, /* the entry, or the one before it, is not what was written */
    AUDIT_MISSING, /* the entry has been removed */
    AUDIT_ADDED,   /* nobody wrote that entry */
};

struct audit_break {
    enum audit_fault fault;
    int64_t tenant;
    int64_t chain; /* 0: the tenant's own */
    int64_t seq;
    int64_t at; /* -1: it is missing */
};

typedef void audit_break_each(void *ctx, const struct audit_break *broken);

/* How a chain ends, and how long it is. */
struct audit_head {
    int64_t seq; /* 0: it is empty */
    struct sha256 hash;
};

const char *audit_fault_name(enum audit_fault fault);
/* Walks one chain from its start, a tenant's own or one that joined it, adds to *checked the
 * entries that it saw, and calls `each` for every place where it is broken, in order. */
MUST_CHECK enum err audit_verify(struct db *db, int64_t chain, audit_break_each *each, void *ctx,
                                 int64_t *checked, struct audit_head *ret_head);
/* The same for every chain. */
MUST_CHECK enum err audit_verify_all(struct db *db, audit_break_each *each, void *ctx,
                                     int64_t *checked);

#endif
