/* Tenants as rows: settings and counters in one place, because both are read and written together.
 */
#ifndef PAWL_STORE_TENANTS_H
#define PAWL_STORE_TENANTS_H

#include "domain/tenant.h"
#include "store/db.h"

/* Text is copied to the arena. False in *ret_found when there is none. */
MUST_CHECK enum err tenants_find(struct db *db, struct str id, struct arena *arena, bool *ret_found,
                                 struct tenant *ret);
MUST_CHECK enum err tenants_find_num(struct db *db, int64_t num, struct arena *arena,
                                     bool *ret_found, struct tenant *ret);
/* Gives t its number. */
MUST_CHECK enum err tenants_insert(struct db *db, struct tenant *t);
MUST_CHECK enum err tenants_update_settings(struct db *db, const struct tenant *t);
MUST_CHECK enum err tenants_update_counters(struct db *db, const struct tenant *t);

/* Those after `after` in the order of their ids; call `each` for up to `limit`. */
MUST_CHECK enum err tenants_list(struct db *db, struct str after, int64_t limit,
                                 struct arena *arena,
                                 void (*each)(void *ctx, const struct tenant *t), void *ctx);

/* For doctor: every tenant whose counter differs from the number of its runs that hold a slot. */
MUST_CHECK enum err tenants_recount(struct db *db,
                                    void (*each)(void *ctx, struct str id, int64_t counted,
                                                 int64_t found),
                                    void *ctx, int64_t *ret_checked);

#endif
