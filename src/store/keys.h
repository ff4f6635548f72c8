/* API keys as rows: the hash, never the key. */
#ifndef PAWL_STORE_KEYS_H
#define PAWL_STORE_KEYS_H

#include "domain/role.h"
#include "store/db.h"

struct api_key {
    struct uuid id;
    int64_t tenant;    /* 0: all tenants */
    struct str prefix; /* the public part, by which a key is found */
    struct sha256 hash;
    enum role role;
    struct str label; /* ptr NULL when it has none */
    int64_t created_at;
    struct str created_by;
    int64_t last_used_at; /* -1: never */
    int64_t revoked_at;   /* -1: it is valid */
    struct str tenant_id; /* filled by reads: the tenant's name, or "*" */
};

MUST_CHECK enum err keys_insert(struct db *db, const struct api_key *key);
/* Text in the callback's key is borrowed for the call. */
typedef void api_key_each(void *ctx, const struct api_key *key);
MUST_CHECK enum err keys_find_prefix(struct db *db, struct str prefix, api_key_each *each,
                                     void *ctx);
/* At most one. */
MUST_CHECK enum err keys_find_id(struct db *db, struct uuid id, api_key_each *each, void *ctx);
/* tenant 0: the keys of all tenants. In the order in which they were made, after `after`. */
MUST_CHECK enum err keys_list(struct db *db, int64_t tenant, struct uuid after, int64_t limit,
                              api_key_each *each, void *ctx);
/* tenant 0: of any tenant. *ret_found: there is such a key. Revoking again changes nothing. */
MUST_CHECK enum err keys_revoke(struct db *db, int64_t tenant, struct uuid id, int64_t now_ms,
                                bool *ret_found);
/* A use of a key, for last_used_at. They may come in any order: the latest counts. */
struct key_use {
    struct uuid id;
    int64_t at_ms;
};
MUST_CHECK enum err keys_touch(struct db *db, struct uuid id, int64_t now_ms);

#endif
