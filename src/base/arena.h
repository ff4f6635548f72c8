/* Memory of one request or one batch: taken piece by piece, given back all at once.
 * Bounded: past its limit arena_alloc returns NULL, which the caller reports as ERR_NO_MEMORY. */
#ifndef PAWL_BASE_ARENA_H
#define PAWL_BASE_ARENA_H

#include "base/buf.h"

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t used;
    size_t limit;
};

void arena_init(struct arena *a, size_t limit);
/* Frees everything but the first block, which the next request reuses. */
void arena_clear(struct arena *a);
void arena_release(struct arena *a);

/* Zeroed, aligned for any type. */
MUST_CHECK void *arena_alloc(struct arena *a, size_t size);
/* A NUL-terminated copy; ptr is NULL when memory or the limit ran out. */
MUST_CHECK struct str arena_str(struct arena *a, struct str s);
/* The same of what a buffer holds, which is then released; ptr is NULL also when that has failed.
 */
MUST_CHECK struct str arena_take(struct arena *a, struct buf *text);
/* Puts a copy in the place of borrowed text; none stays none. False when memory or the limit ran
 * out. */
MUST_CHECK bool arena_keep(struct arena *a, struct str *text);

#endif
