/* Deduplication of signals to runs and entities. A known key returns the number of the signal it
 * first came with and changes nothing. Known keys form a window in order of arrival, bounded by
 * age and by count. The hash of a key is kept for one more window, so that operators can see how
 * many duplicates arrive too late. */
#ifndef PAWL_CORE_TXN_SIGNAL_DEDUP_H
#define PAWL_CORE_TXN_SIGNAL_DEDUP_H

#include "core/txn/tx.h"
#include "domain/entity/dedup.h"

struct signal_dedup_rules {
    int64_t window_ms;
    int64_t max_keys;
    int64_t type; /* the entity type that statistics are kept for; 0: none */
};

struct signal_dedup_key {
    int64_t owner; /* the number of the run or the entity */
    struct str key;
    struct sha256 request; /* of the signal: see dedup_request() */
    /* What signal_dedup_check() has seen, for signal_dedup_record(). */
    int64_t key_hash;
    struct dedup_window window;
    int64_t late_ms; /* how long ago the key was dropped from the window; -1: it was not there */
};

enum signal_dedup_verdict {
    SIGNAL_NEW,
    SIGNAL_DUPLICATE, /* *ret_seq is the number of the first one */
    SIGNAL_REUSED,    /* the key came with another name or payload; *ret_seq as above */
};

/* Changes no row. */
MUST_CHECK enum err signal_dedup_check(struct tx *tx, struct signal_dedup_key *key,
                                       const struct signal_dedup_rules *rules,
                                       enum signal_dedup_verdict *ret, int64_t *ret_seq);
/* The number of the signal that came with the key, if the key is still in the window. For
 * readers too. */
MUST_CHECK enum err signal_dedup_find(struct db *db, int64_t owner, struct str key, bool *ret_found,
                                      int64_t *ret_seq);
/* Adds a key to the window after signal_dedup_check() found it new, and evicts at most
 * DEDUP_EVICTED_PER_KEY_MAX keys that no longer fit. *ret_evicted_seq: signals up to this number
 * (0: none) no longer have a key. */
MUST_CHECK enum err signal_dedup_record(struct tx *tx, const struct signal_dedup_key *key,
                                        const struct signal_dedup_rules *rules, int64_t seq,
                                        int64_t *ret_evicted_seq);

/* As of the last arrival: keys that have expired since then are evicted with the next one. */
struct signal_dedup_view {
    int64_t keys;
    int64_t oldest_at;   /* -1: there is none */
    int64_t first, last; /* their numbers in the order of arrival */
};
MUST_CHECK enum err signal_dedup_show(struct db *db, int64_t owner, struct signal_dedup_view *ret);

/* Removes up to `rows` rows of an owner that is gone; *ret_gone when that was all. */
MUST_CHECK enum err signal_dedup_forget(struct db *db, int64_t owner, int64_t rows,
                                        int64_t *ret_removed, bool *ret_gone);

#endif
