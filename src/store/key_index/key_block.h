/* A block of sorted entries as bytes: sixteen for each, and a keyed checksum over them and the
 * block's number. A segment has as many blocks as it needs for about KEY_BLOCK_ENTRIES in each;
 * each block has an equal share of all hashes, in order. */
#ifndef PAWL_STORE_KEY_INDEX_KEY_BLOCK_H
#define PAWL_STORE_KEY_INDEX_KEY_BLOCK_H

#include "base/buf.h"
#include "base/siphash.h"

struct key_entry {
    uint64_t hash;
    uint64_t ref; /* what was found by it: the caller's own number */
};

/* About 3.2 KB: one page of the store, even when it got more than its share. */
enum { KEY_BLOCK_ENTRIES = 200 };

/* The block of a hash, and the first hash of a block. */
uint64_t key_block_of(uint64_t hash, uint64_t blocks);
uint64_t key_block_first(uint64_t block, uint64_t blocks);

/* Sorts by hash, then by ref. */
void key_entries_sort(struct key_entry *entries, size_t count);

/* Any bytes with their checksum at the end; `num` is the number of their row. */
void key_sum_put(struct buf *out, struct siphash_key secret, int64_t num);
/* Takes the checksum off. False when it is not that of the bytes. */
MUST_CHECK bool key_sum_take(struct siphash_key secret, int64_t num, struct str *bytes);

/* Appends the entries, which are sorted, with their checksum. */
void key_block_put(struct buf *out, struct siphash_key secret, int64_t num,
                   const struct key_entry *entries, size_t count);

/* A block that was read. Borrows the bytes. */
struct key_block {
    struct str bytes;
    size_t count;
};

/* False when the bytes are damaged. */
MUST_CHECK bool key_block_open(struct str bytes, struct siphash_key secret, int64_t num,
                               struct key_block *ret);
struct key_entry key_block_at(const struct key_block *b, size_t i);
/* The first entry with this hash or a greater one; count: there is none. */
size_t key_block_search(const struct key_block *b, uint64_t hash);

#endif
