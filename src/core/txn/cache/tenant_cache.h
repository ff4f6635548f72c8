/* Tenants that a connection has read, by name and by number. The writer also keeps their counters
 * here and writes those that changed once per transaction. */
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

/* The tenant has been stored and has its number now. */
void tenant_cache_numbered(struct tenant_cache *cache, struct tenant *t);
/* Its counters changed. */
void tenant_cache_touch(struct tenant_cache *cache, struct tenant *t);
/* Writes the counters that changed. */
MUST_CHECK enum err tenant_cache_flush(struct tenant_cache *cache, struct db *db);
/* No counter waits to be written. */
bool tenant_cache_is_flushed(const struct tenant_cache *cache);
/* Reads all counters again; none of them may have changed since the last flush. */
MUST_CHECK enum err tenant_cache_reload(struct tenant_cache *cache, struct db *db,
                                        struct arena *arena);

#endif
