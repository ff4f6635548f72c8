/* A walk through a table in the order of its primary key, a slice at a time, so that a table of any
 * size needs little memory; and the digest of what a walk has seen. */
#ifndef PAWL_STORE_COPY_COPY_ROWS_H
#define PAWL_STORE_COPY_COPY_ROWS_H

#include "store/copy/copy_tables.h"

struct copy_walk {
    struct db *db;
    const struct copy_table *table;
    struct arena arenas[2]; /* one has the keys below; the other gets those of the next slice */
    size_t turn;
    bool has_last; /* false: at the beginning of the table */
    struct db_value first[COPY_KEY_MAX];
    struct db_value last[COPY_KEY_MAX];
    int64_t rows; /* in the slice */
};

void copy_walk_begin(struct copy_walk *w, struct db *db, const struct copy_table *table);
void copy_walk_end(struct copy_walk *w);
/* Goes on after the greatest key that the same table has in another store. */
MUST_CHECK enum err copy_walk_skip(struct copy_walk *w, struct db *other);
/* The next slice; one without rows is the end. */
MUST_CHECK enum err copy_walk_next(struct copy_walk *w);
/* The slice's rows, with all columns in the order of the table. */
struct db_rows *copy_walk_rows(const struct copy_walk *w);
/* All values of the current row, valid as long as it is. ERR_DAMAGED: one cannot be copied. */
MUST_CHECK enum err copy_walk_values(const struct copy_walk *w, struct db_rows *rows,
                                     struct db_value ret[static COPY_COLUMNS_MAX]);

/* --- digests --- */

/* SHA-256 over every value of every row, in the order of the primary key: each row is hashed with
 * the hash before it. It does not depend on the engine. */
struct copy_digest {
    int64_t rows;
    struct sha256 hash;
};

struct copy_digest copy_digest_begin(const struct copy_table *table);
/* One row; `room` is cleared. */
MUST_CHECK enum err copy_digest_add(struct copy_digest *d, const struct copy_table *table,
                                    const struct db_value *values, struct buf *room);
/* One row of several shards, which come in any order: instead of being chained, the hashes of the
 * rows are added up. */
MUST_CHECK enum err copy_digest_add_any(struct copy_digest *d, const struct copy_table *table,
                                        const struct db_value *values, struct buf *room);
bool copy_digest_eq(const struct copy_digest *a, const struct copy_digest *b);

#endif
