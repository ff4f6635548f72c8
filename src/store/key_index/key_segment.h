/* A sealed segment of an index of keys: sorted entries in blocks, and a filter. Its rows never
 * change; it goes as a whole. */
#ifndef PAWL_STORE_KEY_INDEX_KEY_SEGMENT_H
#define PAWL_STORE_KEY_INDEX_KEY_SEGMENT_H

#include "store/db.h"
#include "store/key_index/key_block.h"
#include "store/key_index/key_filter.h"

enum { KEY_FILTER_PART_LINES = 256 }; /* of a filter in one row: 16 KB */

struct key_segment {
    int64_t id;
    uint64_t entries;
    uint64_t blocks;
    struct key_filter filter;
};

/* Entries that were read. */
struct key_entries {
    struct key_entry *at;
    size_t count;
    size_t size;
};
void key_entries_release(struct key_entries *list);
MUST_CHECK enum err key_entries_add(struct key_entries *list, struct key_entry entry);

/* With room for so many keys, and a filter if `filtered`; without one when there is no memory for
 * it. NULL: out of memory. */
MUST_CHECK struct key_segment *key_segment_new(int64_t id, uint64_t keys, bool filtered);
void key_segment_free(struct key_segment *s);

/* --- writing, inside a transaction --- */

enum key_segment_state {
    KEY_SEGMENT_BUILDING, /* being merged; after a crash it is removed */
    KEY_SEGMENT_LIVE,
    KEY_SEGMENT_DEAD, /* its rows are being removed */
};
MUST_CHECK enum err key_segment_insert(struct db *db, const struct key_segment *s,
                                       enum key_segment_state state);
MUST_CHECK enum err key_segment_set_state(struct db *db, const struct key_segment *s,
                                          enum key_segment_state state);
/* Every block is written once, an empty one too. */
MUST_CHECK enum err key_segment_put_block(struct db *db, struct siphash_key secret,
                                          struct key_segment *s, uint64_t block,
                                          const struct key_entry *entries, size_t count);
/* Writes at most `most` parts of the filter from *part on, and moves it on. */
MUST_CHECK enum err key_segment_put_filter(struct db *db, struct siphash_key secret,
                                           const struct key_segment *s, size_t most, size_t *part);
size_t key_segment_filter_parts(const struct key_segment *s);
/* All of it, from entries in any order, which are sorted. */
MUST_CHECK enum err key_segment_write(struct db *db, struct siphash_key secret,
                                      struct key_segment *s, struct key_entry *entries,
                                      size_t count);

/* --- reading --- */

/* Is this what the caller looks for? */
typedef enum err key_try(void *ctx, uint64_t ref, bool *ret_found);
/* Tries the refs of a hash in one block until one is found. A block that is not there is damage,
 * or, with `may_be_gone`, has nothing. */
MUST_CHECK enum err key_block_try(struct db *db, struct siphash_key secret, int64_t num,
                                  uint64_t hash, bool may_be_gone, key_try *try, void *ctx,
                                  bool *ret_found);
int64_t key_segment_row(int64_t segment, uint64_t block);
/* Appends the entries from one hash to another, in order. */
MUST_CHECK enum err key_segment_read(struct db *db, struct siphash_key secret,
                                     const struct key_segment *s, uint64_t first, uint64_t last,
                                     struct key_entries *out);
/* Reads the filter. Leaves the segment without one when it is damaged or there is no memory. */
MUST_CHECK enum err key_segment_load_filter(struct db *db, struct siphash_key secret,
                                            struct key_segment *s);

#endif
