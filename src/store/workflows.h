/* Workflows and their immutable versions as rows. */
#ifndef PAWL_STORE_WORKFLOWS_H
#define PAWL_STORE_WORKFLOWS_H

#include "store/db.h"

struct workflow_head {
    struct str id;
    int64_t latest_version;
    struct str description; /* ptr NULL when it has none */
    int64_t archived_at;    /* -1: in use */
    int64_t created_at;
    int64_t updated_at;
};

struct workflow_version {
    int64_t version;
    struct sha256 digest;
    struct str definition; /* JSON text as the client wrote it */
    int64_t created_at;
    struct str created_by;
};

/* Text in callbacks is borrowed for the call. */
typedef void workflow_head_each(void *ctx, const struct workflow_head *head);
typedef void workflow_version_each(void *ctx, const struct workflow_version *version);

/* Calls `each` once or not at all. */
MUST_CHECK enum err workflows_find(struct db *db, int64_t tenant, struct str id,
                                   workflow_head_each *each, void *ctx);
/* In the order of their ids, after `after`. */
MUST_CHECK enum err workflows_list(struct db *db, int64_t tenant, struct str after, int64_t limit,
                                   workflow_head_each *each, void *ctx);
/* Inserts or replaces the head. */
MUST_CHECK enum err workflows_put(struct db *db, int64_t tenant, const struct workflow_head *head);
/* *ret_changed is false when it was archived already. */
MUST_CHECK enum err workflows_archive(struct db *db, int64_t tenant, struct str id, int64_t now_ms,
                                      bool *ret_changed);

MUST_CHECK enum err workflows_add_version(struct db *db, int64_t tenant, struct str id,
                                          const struct workflow_version *version);
MUST_CHECK enum err workflows_find_version(struct db *db, int64_t tenant, struct str id,
                                           int64_t version, workflow_version_each *each, void *ctx);
/* Newest first, those below `before`. */
MUST_CHECK enum err workflows_list_versions(struct db *db, int64_t tenant, struct str id,
                                            int64_t before, int64_t limit,
                                            workflow_version_each *each, void *ctx);

#endif
