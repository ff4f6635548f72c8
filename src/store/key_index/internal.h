/* Shared by the files of the index of keys. */
#ifndef PAWL_STORE_KEY_INDEX_INTERNAL_H
#define PAWL_STORE_KEY_INDEX_INTERNAL_H

#include "store/key_index/key_index.h"
#include "store/key_index/key_tail.h"

#include <pthread.h>

struct segment_list {
    struct key_segment **at; /* the oldest first */
    size_t count;
};

/* How far a merge is: blocks, then the filter. */
struct merge_at {
    bool inserted; /* the segment has its row */
    uint64_t block;
    uint64_t entries;
    size_t part;
    bool over;
};

enum { KEY_MERGE_WAYS = 8 };

struct merge {
    struct key_segment *inputs[KEY_MERGE_WAYS];
    struct key_segment *out;   /* NULL: no merge is under way */
    struct merge_at now, then; /* as committed; and if the transaction is */
};

struct key_index {
    struct siphash_key secret;
    pthread_mutex_t lock; /* guards the next two against threads that glance */
    struct key_tail tail;
    struct segment_list live;
    int64_t last_id;
    bool has_dead; /* there may be segments to remove */
    struct merge merge;

    /* What the transaction changes. */
    bool changes;
    struct segment_list next; /* in place of `live` */
    size_t sealed;            /* entries of the tail that a segment has now */
};

/* Makes `next` a copy of `live`, once in a transaction. */
MUST_CHECK enum err key_index_begin_change(struct key_index *x);
MUST_CHECK enum err key_index_add_next(struct key_index *x, struct key_segment *s);
void segment_list_remove(struct segment_list *list, const struct key_segment *s);
MUST_CHECK struct key_segment *key_index_new_segment(struct key_index *x, uint64_t keys);

#endif
