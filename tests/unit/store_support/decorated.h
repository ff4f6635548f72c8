/* A store around another: what both decorators have in common. */
#ifndef PAWL_TESTS_STORE_SUPPORT_DECORATED_H
#define PAWL_TESTS_STORE_SUPPORT_DECORATED_H

#include "store/db_driver.h"

struct decorated {
    struct db base;
    struct db *inner;
    enum db_access access;
};

/* Opens "sqlite:ADDRESS" as the store inside. */
MUST_CHECK enum err decorated_open(struct decorated *d, const struct db_ops *ops,
                                   const struct db_config *config, struct str address,
                                   struct problem *p);
struct db *decorated_inner(const struct db *base);

/* At once or deferred, as the decorator was asked. */
enum err decorated_commit(struct db *base, enum db_outcome *ret_outcome);
enum err decorated_sync(struct db *base);
enum err decorated_snapshot_begin(struct db *base, int64_t ms);
void decorated_snapshot_end(struct db *base);
bool decorated_is_only_writer(const struct db *base);

#endif
