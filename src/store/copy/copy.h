/* Copies a whole store, which no server has open, into another one, of any engine. Several shards
 * become one store (store/copy/merge.h).
 *
 * Both stores are locked while it lasts. The target is marked as an unfinished copy before its
 * first row is written and until every table has the same digest on both sides; no server opens it
 * before. Slices are committed in the order of the primary key, so the rows that a table has in the
 * target tell how far it has come: a copy that was interrupted at any moment goes on there. Rows of
 * several shards are not in that order, so the mark tells. */
#ifndef PAWL_STORE_COPY_COPY_H
#define PAWL_STORE_COPY_COPY_H

#include "store/copy/copy_rows.h"
#include "store/copy/merge.h"

enum copy_phase { COPY_WRITES, COPY_COMPARES };

struct copy_progress {
    enum copy_phase phase;
    struct str table;
    bool table_is_done;
    int64_t rows;  /* of all tables; when comparing, of both stores */
    int64_t total; /* the same */
};

struct copy_config {
    struct str from;          /* as db_config.url; of several shards number 0 */
    const struct str *others; /* the other shards, from 1 on */
    size_t other_count;
    struct str to;
    const struct env *env;
    /* The target is the first of several shards, and the copy is not finished when it is there: the
     * mark then says that it was compared. */
    bool is_first_shard;
    /* Asked before the target gets its first row; NULL: it may. */
    enum err (*check_target)(const struct copy_config *config, struct problem *p);
    /* Asked before the copy is finished: has nobody else had the source? NULL: nobody has. */
    enum err (*check_source)(const struct copy_config *config, struct problem *p);
    /* After each slice and each table; NULL: nobody wants to know. */
    void (*on_progress)(void *ctx, const struct copy_progress *progress);
    void *ctx;
};

struct store_copy {
    struct copy_config config;
    struct db *sources[CLUSTER_SHARDS_MAX]; /* one, or a cluster's shards */
    size_t source_count;
    struct merge *merge; /* of several; NULL: the rows stay as they are */
    struct db *target;
    struct copy_tables tables;                   /* the source's; the target has the same */
    struct copy_digest digests[COPY_TABLES_MAX]; /* of each of them, once all are compared */
    char source_id[2 * SHA256_LEN + 1];
    bool was_whole;    /* the target was a whole copy before */
    bool was_compared; /* … of this source, and the mark says so */
    size_t part;       /* a table of a shard: those before it are in the target … */
    int64_t part_rows; /* … and so many rows of it; with one source 0 */
    int64_t rows;      /* of the source; of several what the target gets of them, once compared */
    int64_t rows_kept; /* that the target had before */
    int64_t done;      /* of the present phase */
};

/* Opens and locks both stores, brings their schemas to this binary's version, and marks the target.
 * p explains a refusal: there is no source, a server has one of the stores, or the target has data
 * and is no copy of this source. Close *ret whatever is returned. */
MUST_CHECK enum err store_copy_open(struct store_copy *ret, const struct copy_config *config,
                                    struct problem *p);
/* Copies what is missing, compares all tables, and removes the mark, or notes in it that they are
 * the same. After an error the target keeps it. */
MUST_CHECK enum err store_copy_run(struct store_copy *copy, struct problem *p);
/* Closes the target; the rest stays for a report. */
void store_copy_close_target(struct store_copy *copy);
void store_copy_close(struct store_copy *copy);

/* One digest for all tables, with their names. */
struct sha256 store_copy_digest(const struct store_copy *copy);

#endif
