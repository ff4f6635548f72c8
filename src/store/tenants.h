/* Tenants as rows: settings and counters. The counters that the latest commits changed are in a
 * log, and the columns of the tenants are behind it (docs/adr/032). The log is the column
 * `counters` of the feed's packs above a mark, up to which they are folded into the tenants' rows
 * (docs/adr/062): JSON, an array of [num, active_runs, queued_runs, rate_full_at] of each tenant
 * whose counters the commit changed. */
#ifndef PAWL_STORE_TENANTS_H
#define PAWL_STORE_TENANTS_H

#include "domain/tenant.h"
#include "store/db.h"

/* Text is copied to the arena. False in *ret_found when there is none. The counters are those of
 * the tenant's row: tenants_read_counters() or tenants_logged() has them as they are. */
MUST_CHECK enum err tenants_find(struct db *db, struct str id, struct arena *arena, bool *ret_found,
                                 struct tenant *ret);
/* Its number; 0: it is not stored. */
MUST_CHECK enum err tenants_num(struct db *db, struct str id, int64_t *ret);
MUST_CHECK enum err tenants_find_num(struct db *db, int64_t num, struct arena *arena,
                                     bool *ret_found, struct tenant *ret);
/* Gives t its number. */
MUST_CHECK enum err tenants_insert(struct db *db, struct tenant *t);
MUST_CHECK enum err tenants_update_settings(struct db *db, const struct tenant *t);
/* Of the tenant's row, which then must not be in the log. */
MUST_CHECK enum err tenants_update_counters(struct db *db, const struct tenant *t);

/* --- counters as they are --- */

MUST_CHECK enum err tenants_read_counters(struct db *db, struct tenant *t);
/* All tenants that the log has. */
MUST_CHECK enum err tenants_logged(struct db *db, struct arena *arena,
                                   void (*each)(void *ctx, const struct tenant *t), void *ctx);
/* The packs above the mark, and those of them that have counters. */
MUST_CHECK enum err counter_log_size(struct db *db, int64_t *ret_packs, int64_t *ret_rows);
/* Sets the mark, to the end of the feed. Every tenant that the log has must be written to its row
 * in the same transaction. */
MUST_CHECK enum err counters_folded(struct db *db, int64_t through);
MUST_CHECK enum err counters_folded_through(struct db *db, int64_t *ret);

/* --- lists, with the counters as they are --- */

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
