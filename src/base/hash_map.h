/* A hash map of entries that their owner allocates.
 *
 * The entry is a member of the caller's struct, which also holds the key. The map hashes nothing
 * and compares nothing: the caller passes the hash of a key and compares keys while it goes through
 * the entries with that hash.
 *
 *     struct known { struct hash_entry entry; struct str name; … };
 *
 *     struct hash_entry *e = hash_map_find(&map, hash_text(&map, name));
 *     while (e != NULL && !str_eq(CONTAINER_OF(e, struct known, entry)->name, name))
 *         e = hash_map_find_next(e);
 *
 * Adding never fails: the map starts with a few buckets of its own, and when there is no memory for
 * more, the chains get longer. Entries are also kept in the order in which they were added or last
 * touched: that is the order of a walk, so it depends on neither hashes nor addresses, and the
 * first one is the one to evict when the map is full.
 *
 * The bound is the caller's: it looks at `count` and evicts before it adds. Hashes depend on where
 * the map is in memory, so that clients cannot make keys that meet in one bucket; a map must stay
 * where it is while it has entries. */
#ifndef PAWL_BASE_HASH_MAP_H
#define PAWL_BASE_HASH_MAP_H

#include "base/str.h"

enum { HASH_MAP_OWN_BUCKETS = 8 };

struct hash_entry {
    struct hash_entry *next; /* in its bucket */
    struct hash_entry *older, *newer;
    uint64_t hash;
};

struct hash_map {
    struct hash_entry **buckets; /* NULL: own_buckets */
    size_t bucket_count;         /* a power of two; 0: HASH_MAP_OWN_BUCKETS */
    size_t count;
    struct hash_entry *oldest, *newest;
    struct hash_entry *own_buckets[HASH_MAP_OWN_BUCKETS];
};

/* A map that is all zero is empty and ready. */

/* Frees what the map allocated and makes it empty. The entries still belong to their owner. */
void hash_map_release(struct hash_map *m);
/* Empty, with the memory kept for what comes next. */
void hash_map_clear(struct hash_map *m);

/* The first entry with this hash, then the next one; NULL: no more. Newer ones come first. */
struct hash_entry *hash_map_find(const struct hash_map *m, uint64_t hash);
struct hash_entry *hash_map_find_next(const struct hash_entry *e);

/* As the newest. The caller has looked whether the key is there already and whether the map is
 * full. The entry must stay where it is until it is removed. */
void hash_map_add(struct hash_map *m, struct hash_entry *e, uint64_t hash);
void hash_map_remove(struct hash_map *m, struct hash_entry *e);
/* Makes it the newest. */
void hash_map_touch(struct hash_map *m, struct hash_entry *e);

/* Goes through all entries from the oldest on; the body may remove the one it is given. */
#define HASH_MAP_WALK(map, e)                                                                      \
    for (struct hash_entry *e = (map)->oldest, *e##_next = e != NULL ? e->newer : NULL; e != NULL; \
         e = e##_next, e##_next = e != NULL ? e->newer : NULL)

/* --- hashes, for this map only --- */

uint64_t hash_text(const struct hash_map *m, struct str text);
uint64_t hash_number(const struct hash_map *m, int64_t number);
/* Of a hash and a number, or of two hashes; the order counts. */
uint64_t hash_with(uint64_t hash, uint64_t more);

#endif
