/* Memory of one request or one batch: taken piece by piece, given back all at once.
 * Bounded: past its limit arena_alloc returns NULL, which the caller reports as ERR_NO_MEMORY;
 * `refused` then tells the limit from a machine that is short of memory. */
#ifndef PAWL_BASE_ARENA_H
#define PAWL_BASE_ARENA_H

#include "base/buf.h"

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t used;
    size_t limit;
    bool refused; /* something was asked for that would have passed the limit */
};

/* A place to go back to. */
struct arena_mark {
    struct arena_block *block;
    size_t block_used;
    size_t used;
};

void arena_init(struct arena *a, size_t limit);
/* Frees everything but the first block, which the next request reuses. */
void arena_clear(struct arena *a);
void arena_release(struct arena *a);

/* What is taken from here on can be given back without the rest, by arena_back_to(). Marks nest. */
struct arena_mark arena_mark(const struct arena *a);
void arena_back_to(struct arena *a, struct arena_mark mark);

/* Zeroed, aligned for any type. */
MUST_CHECK void *arena_alloc(struct arena *a, size_t size);
/* The same, but not zeroed: for what is written in full anyway. */
MUST_CHECK void *arena_room(struct arena *a, size_t size);
/* A NUL-terminated copy; ptr is NULL when memory or the limit ran out. */
MUST_CHECK struct str arena_str(struct arena *a, struct str s);
/* The same of what a buffer holds, which is then released; ptr is NULL also when that has failed.
 */
MUST_CHECK struct str arena_take(struct arena *a, struct buf *text);
/* Puts a copy in the place of borrowed text; none stays none. False when memory or the limit ran
 * out. */
MUST_CHECK bool arena_keep(struct arena *a, struct str *text);

#endif
