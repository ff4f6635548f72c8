/* Tenants that a connection has read, by name and by number. The writer also keeps their counters
 * here: those that a transaction changed are written once, together, into the last pack that it
 * adds to the feed, and now and then all that this log has are folded into the tenants' rows. A
 * rollback forgets all of it, and what the log has is read again before any other tenant. */
#ifndef PAWL_CORE_TXN_CACHE_TENANT_CACHE_H
#define PAWL_CORE_TXN_CACHE_TENANT_CACHE_H

#include "base/arena.h"
#include "domain/tenant.h"
#include "store/db.h"

struct tenant_cache;

MUST_CHECK struct tenant_cache *tenant_cache_new(void);
void tenant_cache_forget(struct tenant_cache *cache);
void tenant_cache_free(struct tenant_cache *cache); /* NULL is fine */
size_t tenant_cache_count(const struct tenant_cache *cache);

/* NULL: not here. Borrowed until tenant_cache_forget(). */
struct tenant *tenant_cache_find(const struct tenant_cache *cache, struct str id);
struct tenant *tenant_cache_find_num(const struct tenant_cache *cache, int64_t num);
/* Copies the tenant and its text. It must not be here yet. NULL: out of memory. */
MUST_CHECK struct tenant *tenant_cache_add(struct tenant_cache *cache, const struct tenant *read);

/* The rest is for the writer. `t` comes from this cache. */

/* Reads the tenants that the log of counters has, unless that was done since the cache was emptied.
 * Call it before a tenant is added: the row of any other tenant has its counters as they are. */
MUST_CHECK enum err tenant_cache_read_log(struct tenant_cache *cache, struct db *db,
                                          struct arena *arena);

/* The tenant has been stored and has its number now. */
void tenant_cache_numbered(struct tenant_cache *cache, struct tenant *t);
/* Its counters changed. */
void tenant_cache_touch(struct tenant_cache *cache, struct tenant *t);
/* The counters that changed, for the last pack that the transaction adds to the feed; ptr NULL:
 * none did, or the log is to be folded. A transaction that adds nothing folds. Borrowed until it is
 * called again. Call tenant_cache_flush() when the packs are written, `packs` of them, with the
 * last number of the feed. After an error, roll back and forget. */
MUST_CHECK enum err tenant_cache_take(struct tenant_cache *cache, bool feed_grows, struct str *ret);
MUST_CHECK enum err tenant_cache_flush(struct tenant_cache *cache, struct db *db, int64_t packs,
                                       int64_t feed_end);
/* No counter waits to be written. */
bool tenant_cache_is_flushed(const struct tenant_cache *cache);
/* Reads all counters again from the tenants' rows. The log must be empty, and no counter may have
 * changed since the last flush. */
MUST_CHECK enum err tenant_cache_reload(struct tenant_cache *cache, struct db *db,
                                        struct arena *arena);

#endif
