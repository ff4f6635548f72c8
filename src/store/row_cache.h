/* Rows that the only writer of a store has written or read a moment ago, so that it need not read
 * them again: a run is loaded for each change of it and of its jobs. The functions of a table keep
 * the cache true as they write. A rollback and a failed commit empty it, and so does whatever
 * changes rows past those functions.
 *
 * Rows that were changed by the transaction under way may be here only: they are written once, with
 * what became of them, before anything is read that could show them (db_flush()). Besides it holds
 * one row that may become part of another one.
 *
 * A row is a struct that one X-macro describes (store/columns.h). Its texts are copied. */
#ifndef PAWL_STORE_ROW_CACHE_H
#define PAWL_STORE_ROW_CACHE_H

#include "base/arena.h"
#include "store/db.h"

struct row_cache;

/* A kind of row; its address tells kinds apart. */
struct row_shape {
    size_t size;
    const size_t *texts; /* for each column where its member of type struct str is, or NO_TEXT */
    size_t text_count;
};
#define NO_TEXT SIZE_MAX

MUST_CHECK struct row_cache *row_cache_new(void);
void row_cache_free(struct row_cache *c);
void row_cache_clear(struct row_cache *c);

/* Of a connection; NULL: it has none, because others write to the store too. All functions below
 * take NULL for a cache that is always empty. */
struct row_cache *db_row_cache(const struct db *db);

/* Copies a row, its texts to the arena. False: it has to be read. */
MUST_CHECK bool row_cache_find(const struct row_cache *c, const struct row_shape *shape,
                               int64_t owner, int64_t part, struct arena *arena, void *ret);
/* The row in the cache, NULL if it is not there: its numbers may be changed in place. Borrowed
 * until the next call. */
void *row_cache_peek(const struct row_cache *c, const struct row_shape *shape, int64_t owner,
                     int64_t part);
/* Takes the place of what is kept under the same numbers. False: it is not kept, because it is
 * large or there is no room; then what was kept stays if it is to be written, and goes otherwise.
 */
bool row_cache_put(struct row_cache *c, const struct row_shape *shape, int64_t owner, int64_t part,
                   const void *row);
void row_cache_drop(struct row_cache *c, const struct row_shape *shape, int64_t owner,
                    int64_t part);

/* A row in the cache that is to be written. It stays there, whatever else is put. */
struct row_write {
    const struct row_shape *shape;
    int64_t owner;
    int64_t part;
    int how;   /* the table's own: a row that is inserted, or one that is updated … */
    int state; /* … from what it has in the store */
    int64_t epoch;
};
/* False: the row is not in the cache, or too many are to be written. It is to be written only once:
 * the caller has asked whether it is already. */
MUST_CHECK bool row_cache_write_later(struct row_cache *c, const struct row_write *write);
bool row_cache_is_unwritten(const struct row_cache *c, const struct row_shape *shape, int64_t owner,
                            int64_t part);
/* Those that are to be written, in the order in which they were changed first. */
size_t row_cache_unwritten(const struct row_cache *c);
const struct row_write *row_cache_unwritten_at(const struct row_cache *c, size_t i);
/* They are written, or never will be. */
void row_cache_written(struct row_cache *c);

/* A row that is to be written in the same transaction. There is only one at a time. False: no room,
 * so it has to be written now. */
MUST_CHECK bool row_cache_hold(struct row_cache *c, const struct row_shape *shape, const void *row);
/* NULL: there is none. */
const void *row_cache_held(const struct row_cache *c, const struct row_shape *shape);
/* It is written, or about to be. The row itself stays readable until the next one is held. */
void row_cache_unhold(struct row_cache *c);
/* It is written: as if it was put, without another copy. Its numbers may be changed in place.
 * Borrowed until the next call. */
void *row_cache_put_held(struct row_cache *c, int64_t owner, int64_t part);

#endif
