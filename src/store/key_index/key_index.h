/* An index from the hash of a key to a number of the caller's, for keys that come in any order and
 * stay for ever. Adding a key costs the same however many there are: the newest are in memory, and
 * the others in sealed sorted segments, eight of which are merged into one in small slices. Each
 * segment has a filter in memory, so a key that is not there is usually known without a read.
 * docs/adr/033 says why.
 *
 * A hash is only a hint: an entry may be of another key, or of a row that is gone. The caller looks
 * at the row (key_try). Nothing is removed singly; a merge drops entries that the caller no longer
 * wants.
 *
 * Belongs to the writer. What a transaction changed counts after key_index_commit(), or never,
 * after key_index_roll_back(). */
#ifndef PAWL_STORE_KEY_INDEX_KEY_INDEX_H
#define PAWL_STORE_KEY_INDEX_KEY_INDEX_H

#include "store/key_index/key_segment.h"

struct key_index;

MUST_CHECK struct key_index *key_index_new(void);
void key_index_free(struct key_index *x);
/* Reads which segments there are, and their filters. Once, before all that follows. */
MUST_CHECK enum err key_index_load(struct key_index *x, struct db *db, struct siphash_key secret);

uint64_t key_index_hash(const struct key_index *x, int64_t tenant, struct str key);
MUST_CHECK enum err key_index_add(struct key_index *x, uint64_t hash, uint64_t ref);
/* Tries what has this hash, the newest first, until the caller has found what it looks for. */
MUST_CHECK enum err key_index_find(struct key_index *x, struct db *db, uint64_t hash, key_try *try,
                                   void *ctx, bool *ret_found);

/* --- for other threads, which may miss what is there --- */

enum { KEY_HINTS_MAX = 32 };

/* Where a key may be. */
struct key_hints {
    uint64_t hash;
    size_t ref_count;
    size_t row_count;
    uint64_t refs[KEY_HINTS_MAX]; /* from memory */
    int64_t rows[KEY_HINTS_MAX];  /* blocks */
};

/* False: nowhere, as far as is committed. Reads nothing. */
bool key_index_glance(struct key_index *x, uint64_t hash, struct key_hints *ret);
/* Tries the hints on a snapshot. */
MUST_CHECK enum err key_index_follow(struct key_index *x, struct db *db,
                                     const struct key_hints *hints, key_try *try, void *ctx,
                                     bool *ret_found);

void key_index_commit(struct key_index *x);
void key_index_roll_back(struct key_index *x);

/* --- background work, each call inside a transaction of its own --- */

/* How many are in memory. */
size_t key_index_tail(const struct key_index *x);
/* Puts all of them into a segment. */
MUST_CHECK enum err key_index_seal(struct key_index *x, struct db *db);
bool key_index_merge_is_due(const struct key_index *x);
/* May the entry go? Asked of each as it is merged. *asked grows if that took a read. */
typedef enum err key_drop(void *ctx, uint64_t ref, bool *ret_drop, int64_t *asked);
/* Merges, or removes what was merged, for a millisecond or two. */
MUST_CHECK enum err key_index_merge(struct key_index *x, struct db *db, key_drop *drop, void *ctx);

/* --- building it again --- */

/* Drops all segments and what is in memory, in the transaction. */
MUST_CHECK enum err key_index_clear(struct key_index *x, struct db *db);
/* A segment of these entries, which are sorted in place. Any number of times in a transaction. */
MUST_CHECK enum err key_index_add_segment(struct key_index *x, struct db *db,
                                          struct key_entry *entries, size_t count);

/* --- for doctor --- */

/* Reads all blocks, and counts those that are damaged, lost, out of order or held back by their
 * filter. */
MUST_CHECK enum err key_index_verify(struct key_index *x, struct db *db, int64_t *ret_broken);
/* Keys, and bytes of memory that they take. */
void key_index_extent(const struct key_index *x, uint64_t *ret_keys, size_t *ret_bytes);

#endif
