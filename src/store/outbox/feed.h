/* The feed: a log of new events in the order of the commits, for the relay, webhooks and streams. A
 * row names a run or an entity and a range of its events, and is written in the transaction that
 * appends them.
 *
 * In the store the rows of a commit are packed: a row of the table has the last one in its columns,
 * under its number, and those before it as text, with the distance of each owner from the last one:
 *
 *   num  tenant  run       first_seq  last_seq  at  earlier
 *   41   7       98304000  1          3         …   (null: this row alone)
 *   44   2       98304512  4          4         …   [[7,-12,1,3],[9,-5000,4,5]]
 *
 * where the second pack has the rows 42, 43 and 44. The view `feed` shows it row by row. One more
 * column has nothing to do with the feed: the last pack of a commit carries the counters of tenants
 * that the commit changed (docs/adr/062). */
#ifndef PAWL_STORE_OUTBOX_FEED_H
#define PAWL_STORE_OUTBOX_FEED_H

#include "store/owners.h"

/* The names of marks. Each reader of the feed has one: it has handled every row up to it. */
#define FEED_MARK_BUS STR("bus")
#define FEED_MARK_WEBHOOKS STR("webhooks")
/* Of the row after FEED_MARK_WEBHOOKS, the events up to this seq are handled. */
#define FEED_MARK_WEBHOOKS_SEQ STR("webhooks.seq")
/* Rows up to this one have been removed. */
#define FEED_MARK_SWEPT STR("swept")

struct feed_row {
    int64_t num; /* 1, 2, 3 … without gaps */
    int64_t tenant;
    int64_t owner; /* the num of the run or entity whose timeline it is */
    int64_t first_seq, last_seq;
    int64_t at;
};

/* A reader of one row reads its pack, so packs are small. */
enum { FEED_PACK_ROWS_MAX = 64 };
/* A pack: up to so many rows of one moment, with numbers that follow each other. `counters` is what
 * the commit changes in those of tenants (store/tenants.h); ptr NULL: nothing, or another pack of
 * the commit has it. */
MUST_CHECK enum err feed_insert(struct db *db, const struct feed_row *rows, size_t count,
                                struct str counters);
/* The highest number so far, removed rows included; 0 when there is none. */
MUST_CHECK enum err feed_last(struct db *db, int64_t *ret);
/* Rows above `after`, in order. `each` returns false to stop. */
typedef bool feed_each(void *ctx, const struct feed_row *row);
MUST_CHECK enum err feed_list(struct db *db, int64_t after, int64_t limit, feed_each *each,
                              void *ctx);

/* The same, only of tenants that have webhooks, up to `through`. */
MUST_CHECK enum err feed_list_hooked(struct db *db, int64_t after, int64_t through, int64_t limit,
                                     feed_each *each, void *ctx);
/* The same with their owners. Text is borrowed. */
struct feed_source {
    struct feed_row row;
    bool published;    /* by the store that the tenant was moved from */
    struct str tenant; /* its id */
    bool has_owner;    /* false: it was removed, and its events too */
    struct owner owner;
};
typedef bool feed_each_source(void *ctx, const struct feed_source *source);
MUST_CHECK enum err feed_sources(struct db *db, int64_t after, int64_t limit,
                                 feed_each_source *each, void *ctx);
/* Of one tenant, up to `through`. */
MUST_CHECK enum err feed_of_tenant(struct db *db, int64_t tenant, int64_t after, int64_t through,
                                   int64_t limit, feed_each_source *each, void *ctx);
/* How many events the rows above `after` name. Reads each of them. */
MUST_CHECK enum err feed_count_events(struct db *db, int64_t after, int64_t *ret);

/* A tenant that was moved here from another store: its rows have joined this feed. Its clients go
 * on to count from the positions that they have: a position is the number of a row minus `shift`.
 * All are 0 for other tenants. */
struct feed_move {
    int64_t shift;
    int64_t since;      /* its rows have greater numbers */
    int64_t swept;      /* rows up to this position had been removed when it came */
    int64_t fanned;     /* rows of it up to this number were given to webhooks before … */
    int64_t fanned_seq; /* … and of the one after it, the events up to this seq */
};
MUST_CHECK enum err feed_move_of(struct db *db, int64_t tenant, struct feed_move *ret);

/* A mark; 0 with *ret_found false when it was never set. */
MUST_CHECK enum err feed_mark_get(struct db *db, struct str name, bool *ret_found, int64_t *ret);
MUST_CHECK enum err feed_mark_set(struct db *db, struct str name, int64_t through);
/* The reader no longer follows the feed. */
MUST_CHECK enum err feed_mark_drop(struct db *db, struct str name);

/* Removes up to `limit` packs that are older than `before_ms` and have no row above `through`. */
MUST_CHECK enum err feed_sweep(struct db *db, int64_t before_ms, int64_t through, int64_t limit,
                               int64_t *ret_removed);

#endif
