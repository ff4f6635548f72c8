/* Old generations of entities go, and all of those that were deleted. */
#include "core/entity/entity_sweep.h"

#include "base/limits.h"
#include "core/txn/feed_hold.h"
#include "core/txn/signal_dedup.h"
#include "store/entity/entity_sweep.h"

enum {
    ENTITIES_PER_TURN = 256,    /* looked at in one slice */
    LISTENED_FOR_MS = 5 * 1000, /* streams store no position, and get events at once */
};

/* Its first event that a reader of the feed has not received yet; INT64_MAX: none. */
static int64_t held_from(const struct tx *tx, const struct held_runs *held,
                         const struct entity_sweep_row *row)
{
    if (row->deleted && tx->now_ms - row->deleted_at < LISTENED_FOR_MS)
        return 0;
    return feed_held_from(held, row->entity);
}

/* Its events go last: they can be published while the row that names their owner exists. */
static enum err remove_deleted(struct tx *tx, int64_t entity, int64_t from, int64_t rows,
                               int64_t *ret_removed, bool *ret_gone)
{
    int64_t keys = 0;
    int64_t events = 0;
    enum err e = entity_sweep_deleted(tx->db, entity, rows, ret_removed, ret_gone);
    if (e != ERR_OK || !*ret_gone)
        return e;
    e = signal_dedup_forget(tx->db, entity, rows - *ret_removed, &keys, ret_gone);
    *ret_removed += keys;
    if (e != ERR_OK || !*ret_gone)
        return e;
    int64_t left = rows - *ret_removed;
    e = entity_sweep_events(tx->db, entity, from, left, &events);
    *ret_removed += events;
    *ret_gone = e == ERR_OK && from == INT64_MAX && events < left;
    return e;
}

static enum err remove_some(struct tx *tx, const struct entity_sweep_row *row,
                            const struct held_runs *held, int64_t rows, int64_t *ret_removed)
{
    bool gone = false;
    int64_t from = held_from(tx, held, row);
    if (!row->deleted && from <= 0)
        return ERR_OK; /* a generation goes with its first event */
    enum err e = row->deleted
                     ? remove_deleted(tx, row->entity, from, rows, ret_removed, &gone)
                     : entity_sweep_generations(tx->db, row, from, rows, ret_removed, &gone);
    *ret_removed += gone;
    return e == ERR_OK && gone ? entity_sweeps_done(tx->db, row->entity) : e;
}

/* On to the next entity; false, and back to the beginning, after the last. */
static enum err next_entity(struct entity_sweep *s, struct tx *tx, bool *ret_found,
                            struct entity_sweep_row *ret)
{
    enum err e = entity_sweeps_next(tx->db, s->entity, ret_found, ret);
    s->entity = e == ERR_OK && *ret_found ? ret->entity : 0;
    return e;
}

enum err entity_sweep_slice(struct entity_sweep *s, struct tx *tx, bool *ret_more)
{
    int64_t rows = ENTITY_SWEEP_ROWS_PER_TURN_MAX;
    struct held_runs held = {0};
    struct entity_sweep_row row;
    bool found = false;
    *ret_more = false;
    for (int64_t looked = 0; looked < ENTITIES_PER_TURN && rows > 0; looked++) {
        enum err e = next_entity(s, tx, &found, &row);
        if (e == ERR_OK && !found) {
            /* What is held back has time; what a full slice has left is looked at again. */
            *ret_more = s->filled;
            s->filled = false;
            return ERR_OK;
        }
        if (e == ERR_OK && looked == 0)
            e = feed_hold_runs(tx, &held);
        int64_t removed = 0;
        if (e == ERR_OK)
            e = remove_some(tx, &row, &held, rows, &removed);
        if (e != ERR_OK)
            return e;
        rows -= removed;
    }
    s->filled |= rows <= 0;
    *ret_more = rows < ENTITY_SWEEP_ROWS_PER_TURN_MAX; /* the next of many that wait have time */
    return ERR_OK;
}
