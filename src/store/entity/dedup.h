/* Dedup keys of signals as rows, the windows over them, and their counts. See
 * domain/entity/dedup.h.
 */
#ifndef PAWL_STORE_ENTITY_DEDUP_H
#define PAWL_STORE_ENTITY_DEDUP_H

#include "domain/entity/dedup.h"
#include "store/db.h"

/* --- windows --- */

/* A new one when the owner has none. */
MUST_CHECK enum err dedup_windows_find(struct db *db, int64_t owner, struct dedup_window *ret);
MUST_CHECK enum err dedup_windows_put(struct db *db, int64_t owner, const struct dedup_window *w);

/* --- keys --- */

enum { DEDUP_REQUEST_LEN = 16 }; /* bytes of the fingerprint that are kept */

/* Text and bytes are borrowed for the call that gets them. */
struct dedup_key {
    int64_t num;
    int64_t key_hash;
    struct str key;     /* ptr NULL: only its hash is left */
    struct str request; /* empty: none was kept */
    int64_t seq;        /* of the signal */
    int64_t at;
};

/* Returns false to stop. */
typedef bool dedup_key_each(void *ctx, const struct dedup_key *key);

MUST_CHECK enum err dedup_insert(struct db *db, int64_t owner, const struct dedup_key *key);
/* All with this hash, the newest first. */
MUST_CHECK enum err dedup_with_hash(struct db *db, int64_t owner, int64_t key_hash,
                                    dedup_key_each *each, void *ctx);
/* From a number on, in the order of arrival; num, seq and at only. */
MUST_CHECK enum err dedup_from(struct db *db, int64_t owner, int64_t num, int64_t limit,
                               dedup_key_each *each, void *ctx);
/* Those from `from` on and below `below` lose their text, or their rows. */
MUST_CHECK enum err dedup_empty(struct db *db, int64_t owner, int64_t from, int64_t below);
MUST_CHECK enum err dedup_delete(struct db *db, int64_t owner, int64_t from, int64_t below);
/* Removes up to `rows` rows of a deleted owner; *ret_gone: nothing is left. */
MUST_CHECK enum err dedup_remove_owner(struct db *db, int64_t owner, int64_t rows,
                                       int64_t *ret_removed, bool *ret_gone);

/* --- counts, by the number of an entity type --- */

MUST_CHECK enum err dedup_counts_add(struct db *db, int64_t type, const struct dedup_counts *c,
                                     int64_t now_ms);
/* *ret_since is -1 when nothing was counted yet. */
MUST_CHECK enum err dedup_counts_find(struct db *db, int64_t type, struct dedup_counts *ret,
                                      int64_t *ret_since);

#endif
