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

/* Those with a limit, an active or a queued run; the ones with the most runs first. */
MUST_CHECK enum err tenants_in_use(struct db *db, struct arena *arena,
                                   void (*each)(void *ctx, const struct tenant *t), void *ctx);

/* --- earlier settings, to go back to --- */

struct settings {
    int64_t tenant;
    int64_t version;
    struct str json; /* as tenant_put_settings() writes them, in an object */
    int64_t at;
    struct str actor;
};

/* Does nothing when the version is kept already. Those older than SETTINGS_KEPT_MAX versions go. */
MUST_CHECK enum err settings_keep(struct db *db, const struct settings *s);
MUST_CHECK enum err settings_find(struct db *db, int64_t tenant, int64_t version,
                                  struct arena *arena, bool *ret_found, struct settings *ret);
/* Newest first, those below `before`. Text is borrowed for the call. */
MUST_CHECK enum err settings_list(struct db *db, int64_t tenant, int64_t before, int64_t limit,
                                  void (*each)(void *ctx, const struct settings *s), void *ctx);

#endif
