/* A transaction that only reads: one database session, the time, memory for what is loaded, and
 * caches of committed rows. Readers and the relay have one each. The writer's transaction
 * (core/txn/tx.h) contains one, so that a function that only reads takes this struct and serves
 * both.
 *
 * A reader believes its caches for one snapshot only, since the writer changes the store next to
 * it. The exception is definitions: a committed version never changes. The writer is the only one
 * who changes the store, so its caches last until a rollback or until settings change. */
#ifndef PAWL_CORE_TXN_READ_TX_H
#define PAWL_CORE_TXN_READ_TX_H

#include "core/txn/cache/definition_cache.h"
#include "core/txn/cache/entity_type_cache.h"
#include "core/txn/cache/newest_cache.h"
#include "core/txn/cache/tenant_cache.h"
#include "core/txn/op.h"

struct expr;
struct idem_keys;
struct kept_json;
struct minute_stats;
struct worker_polls;

/* How long a cache stays true. */
enum memory_until {
    UNTIL_STALE,    /* until another session may have written, or settings changed */
    UNTIL_ROLLBACK, /* what is committed of it never changes, or only this session knows it */
};

/* The caches of a read transaction, in one table: the members are made from it, and so are the
 * functions that empty them. A rollback empties every row, so nothing that was rolled back is
 * believed later. tx_memory.h has those of the writer alone. */
/* clang-format off */
#define READ_MEMORY(X)                                                                             \
    /* member        type                       until           functions */                       \
    X(tenants,      struct tenant_cache,       UNTIL_STALE,    tenant_cache)                       \
    X(newest,       struct newest_cache,       UNTIL_STALE,    newest_cache)                       \
    X(types,        struct entity_type_cache,  UNTIL_STALE,    entity_type_cache)                  \
    X(definitions,  struct definition_cache,   UNTIL_ROLLBACK, definition_cache)
/* clang-format on */

/* The members, as a macro: struct tx has them under the same names. */
#define READ_TX_MEMORY_MEMBER(member, type, until, functions) type *member;
#define READ_TX_MEMBERS                                                                 \
    struct db *db;                                                                      \
    int64_t now_ms;                                                                     \
    struct arena arena; /* what the op has loaded; emptied when the op ends */          \
    struct arena notes; /* small things that must last until the transaction ends */    \
    bool remembers;     /* caches stay true from one transaction to the next */         \
    bool counts;        /* the writer's: counters of cached tenants are as they are */  \
    READ_MEMORY(READ_TX_MEMORY_MEMBER)                                                  \
    struct expr *expr;                                                                  \
    struct kept_json *kept;       /* parsed values of the op */                         \
    struct worker_polls *polls;   /* which workers ask for jobs; NULL: not tracked */   \
    struct minute_stats *minutes; /* what is counted by the minute; NULL: nothing is */ \
    struct idem_keys *known_keys; /* a reader's: the index of the writer; NULL: not known */

struct read_tx {
    READ_TX_MEMBERS
};

/* `db` outlives it. Release it after a failure too. */
MUST_CHECK enum err read_tx_init(struct read_tx *tx, struct db *db);
void read_tx_release(struct read_tx *tx);

/* Begins: forgets what may have become untrue. */
void read_tx_start(struct read_tx *tx, int64_t now_ms);
/* Ends: frees what was loaded. Caches stay. */
void read_tx_clear(struct read_tx *tx);
/* Empties the caches that do not outlast `end`. */
void read_tx_forget(struct read_tx *tx, enum memory_until end);

/* The caller's tenant. With creates_tenant, one that is not stored yet has num 0.
 * ERR_TENANT_NOT_FOUND otherwise. Lives until the transaction ends. */
MUST_CHECK enum err read_tx_tenant(struct read_tx *tx, struct op *op, struct tenant **ret);
/* By the number in a row; it must exist. As with read_tx_tenant(), its counters may be behind in a
 * transaction that does not count. */
MUST_CHECK enum err read_tx_tenant_num(struct read_tx *tx, int64_t num, struct tenant **ret);
/* Call it before the counters of a tenant are shown. */
MUST_CHECK enum err read_tx_counters(struct read_tx *tx, struct tenant *t);
/* The newest version of a workflow. */
MUST_CHECK enum err read_tx_newest(struct read_tx *tx, int64_t tenant, struct str workflow_id,
                                   struct workflow_newest *ret);
/* A stored definition, parsed. Borrowed until the transaction ends. */
MUST_CHECK enum err read_tx_definition(struct read_tx *tx, int64_t tenant, struct str workflow_id,
                                       int64_t version, struct problem *p,
                                       const struct definition **ret);

/* The evaluator of expressions; NULL: out of memory. */
struct expr *read_tx_expr(struct read_tx *tx);
/* Takes over a document until read_tx_drop_json() or the end of the transaction. False: out of
 * memory, and it is dropped. */
MUST_CHECK bool read_tx_keep_json(struct read_tx *tx, struct json *json);
/* Drops what an op or a timer has parsed. Otherwise a batch of large inputs would hold all of them
 * at once. */
void read_tx_drop_json(struct read_tx *tx);

#endif
