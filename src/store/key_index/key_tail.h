/* The newest entries of an index of keys, in memory. A rollback takes away those that were added
 * since the last commit. */
#ifndef PAWL_STORE_KEY_INDEX_KEY_TAIL_H
#define PAWL_STORE_KEY_INDEX_KEY_TAIL_H

#include "base/err.h"
#include "store/key_index/key_block.h"

struct key_tail {
    struct key_entry *entries; /* in the order of their coming */
    uint32_t *older;           /* for each: the next older one of its chain + 1; 0: none */
    size_t count;
    size_t size;
    size_t committed;
    uint32_t *chains; /* by hash: the newest entry + 1; twice as many as there is room */
};

/* All zero is an empty one. */
void key_tail_release(struct key_tail *t);

/* ERR_NO_MEMORY, and nothing was added. */
MUST_CHECK enum err key_tail_add(struct key_tail *t, struct key_entry entry);
void key_tail_commit(struct key_tail *t);
void key_tail_roll_back(struct key_tail *t);
/* Takes away the oldest so many. */
void key_tail_drop(struct key_tail *t, size_t count);

/* Entries with this hash from the newest to the oldest: the place of the next one after `place`,
 * which begins at 0; 0 again: no more. The entry is entries[place - 1]. */
size_t key_tail_next(const struct key_tail *t, uint64_t hash, size_t place);

#endif
