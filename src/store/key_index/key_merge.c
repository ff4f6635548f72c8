/* Merging eight segments into one, in slices, and removing what was merged. */
#include "store/key_index/internal.h"

#include "base/limits.h"

enum {
    BLOCKS_PER_SLICE = 64, /* written: about 13,000 keys */
    PARTS_PER_SLICE = 16,
    DROPS_ASKED_MAX = 1024, /* entries of which the caller is asked, in one slice */
    REMOVED_PER_SLICE = 128,
};

/* --- which --- */

/* Segments of one level are merged: each has eight times as many keys as one of the level below. */
static int level_of(const struct key_segment *s)
{
    int level = 0;
    for (uint64_t n = s->entries / KEY_SEGMENT_KEYS; n >= KEY_MERGE_WAYS; n /= KEY_MERGE_WAYS)
        level++;
    return level;
}

/* The oldest eight of the lowest level that has as many. */
static bool choose(const struct key_index *x, struct key_segment *inputs[static KEY_MERGE_WAYS])
{
    enum { LEVELS = 22 };
    for (int level = 0; level < LEVELS && x->live.count >= KEY_MERGE_WAYS; level++) {
        size_t count = 0;
        for (size_t i = 0; i < x->live.count && count < KEY_MERGE_WAYS; i++) {
            if (level_of(x->live.at[i]) == level)
                inputs[count++] = x->live.at[i];
        }
        if (count == KEY_MERGE_WAYS)
            return true;
    }
    return false;
}

bool key_index_merge_is_due(const struct key_index *x)
{
    struct key_segment *inputs[KEY_MERGE_WAYS];
    return x->merge.out != NULL || x->has_dead || choose(x, inputs);
}

/* --- one slice of blocks --- */

/* Entries of all inputs: a list of lists, each sorted. */
struct runs {
    struct key_entries entries;
    size_t at[KEY_MERGE_WAYS]; /* the next one of each … */
    size_t end[KEY_MERGE_WAYS];
};

static enum err read_runs(struct key_index *x, struct db *db, uint64_t first, uint64_t last,
                          struct runs *r)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < KEY_MERGE_WAYS && e == ERR_OK; i++) {
        r->at[i] = r->entries.count;
        e = key_segment_read(db, x->secret, x->merge.inputs[i], first, last, &r->entries);
        r->end[i] = r->entries.count;
    }
    return e;
}

/* The next entry of all, in order. */
static bool next_entry(struct runs *r, struct key_entry *ret)
{
    size_t best = KEY_MERGE_WAYS;
    for (size_t i = 0; i < KEY_MERGE_WAYS; i++) {
        if (r->at[i] < r->end[i] && (best == KEY_MERGE_WAYS || r->entries.at[r->at[i]].hash <
                                                                   r->entries.at[r->at[best]].hash))
            best = i;
    }
    if (best == KEY_MERGE_WAYS)
        return false;
    *ret = r->entries.at[r->at[best]++];
    return true;
}

struct dropping {
    key_drop *drop;
    void *ctx;
    int64_t asked;
};

static enum err keep_wanted(struct dropping *d, struct key_entry entry, struct key_entries *out)
{
    bool drops = false;
    enum err e = d->drop(d->ctx, entry.ref, &drops, &d->asked);
    return e == ERR_OK && !drops ? key_entries_add(out, entry) : e;
}

/* Writes output blocks until the slice ends, or too much was asked. */
static enum err write_blocks(struct key_index *x, struct db *db, struct runs *r, uint64_t end,
                             struct dropping *d)
{
    struct merge *m = &x->merge;
    struct key_entries block = {0};
    struct key_entry entry;
    enum err e = ERR_OK;
    bool more = next_entry(r, &entry);
    while (m->then.block < end && e == ERR_OK && d->asked < DROPS_ASKED_MAX) {
        block.count = 0;
        while (e == ERR_OK && more && key_block_of(entry.hash, m->out->blocks) == m->then.block) {
            e = keep_wanted(d, entry, &block);
            more = next_entry(r, &entry);
        }
        if (e == ERR_OK)
            e = key_segment_put_block(db, x->secret, m->out, m->then.block, block.at, block.count);
        m->then.block++;
        m->then.entries += block.count;
    }
    key_entries_release(&block);
    return e;
}

static enum err merge_blocks(struct key_index *x, struct db *db, struct dropping *d)
{
    struct merge *m = &x->merge;
    uint64_t blocks = m->out->blocks;
    uint64_t end = MIN(m->then.block + BLOCKS_PER_SLICE, blocks);
    uint64_t first = key_block_first(m->then.block, blocks);
    uint64_t last = end == blocks ? UINT64_MAX : key_block_first(end, blocks) - 1;
    struct runs r = {0};
    enum err e = read_runs(x, db, first, last, &r);
    if (e == ERR_OK)
        e = write_blocks(x, db, &r, end, d);
    key_entries_release(&r.entries);
    return e;
}

/* --- the steps of a merge --- */

static enum err begin(struct key_index *x)
{
    struct merge *m = &x->merge;
    uint64_t keys = 0;
    for (size_t i = 0; i < KEY_MERGE_WAYS; i++)
        keys += m->inputs[i]->entries;
    m->out = key_index_new_segment(x, keys);
    m->now = m->then = (struct merge_at){0};
    return m->out != NULL ? ERR_OK : ERR_NO_MEMORY;
}

static enum err insert(struct key_index *x, struct db *db)
{
    x->merge.then.inserted = true;
    return key_segment_insert(db, x->merge.out, KEY_SEGMENT_BUILDING);
}

static enum err finish(struct key_index *x, struct db *db)
{
    struct merge *m = &x->merge;
    enum err e = key_index_begin_change(x);
    if (e == ERR_OK)
        e = key_index_add_next(x, m->out);
    m->out->entries = m->then.entries;
    if (e == ERR_OK)
        e = key_segment_set_state(db, m->out, KEY_SEGMENT_LIVE);
    for (size_t i = 0; i < KEY_MERGE_WAYS && e == ERR_OK; i++) {
        e = key_segment_set_state(db, m->inputs[i], KEY_SEGMENT_DEAD);
        segment_list_remove(&x->next, m->inputs[i]);
    }
    m->then.over = true;
    return e;
}

static enum err step(struct key_index *x, struct db *db, struct dropping *d)
{
    struct merge *m = &x->merge;
    enum err e = m->then.inserted ? ERR_OK : insert(x, db);
    if (e != ERR_OK)
        return e;
    if (m->then.block < m->out->blocks)
        return merge_blocks(x, db, d);
    if (m->then.part < key_segment_filter_parts(m->out))
        return key_segment_put_filter(db, x->secret, m->out, PARTS_PER_SLICE, &m->then.part);
    return finish(x, db);
}

/* --- removing --- */

static enum err remove_rows(struct db *db, const char *sql, int64_t id, int64_t *left)
{
    int64_t removed = 0;
    enum err e = DB_EXEC(db, sql, &removed, DB_I(key_segment_row(id, 0)),
                         DB_I(key_segment_row(id + 1, 0)), DB_I(*left));
    *left -= removed;
    return e;
}

static enum err remove_dead(struct key_index *x, struct db *db)
{
    static const char SQL[] = "SELECT id FROM key_segments WHERE state <> 'live' AND id <> $1"
                              " ORDER BY id LIMIT 1";
    static const char SQL_BLOCKS[] =
        "DELETE FROM key_blocks WHERE num IN (SELECT num FROM key_blocks"
        " WHERE num >= $1 AND num < $2 ORDER BY num LIMIT $3)";
    static const char SQL_FILTERS[] =
        "DELETE FROM key_filters WHERE num IN (SELECT num FROM key_filters"
        " WHERE num >= $1 AND num < $2 ORDER BY num LIMIT $3)";
    static const char SQL_SEGMENT[] = "DELETE FROM key_segments WHERE id = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(x->merge.out != NULL ? x->merge.out->id : 0));
    bool found = db_next(rows);
    int64_t id = found ? db_int(rows, 0) : 0;
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || !found) {
        x->has_dead &= e != ERR_OK;
        return e;
    }
    int64_t left = REMOVED_PER_SLICE;
    e = remove_rows(db, SQL_BLOCKS, id, &left);
    if (e == ERR_OK && left > 0)
        e = remove_rows(db, SQL_FILTERS, id, &left);
    return e == ERR_OK && left > 0 ? DB_EXEC(db, SQL_SEGMENT, NULL, DB_I(id)) : e;
}

enum err key_index_merge(struct key_index *x, struct db *db, key_drop *drop, void *ctx)
{
    struct dropping d = {drop, ctx, 0};
    if (x->has_dead)
        return remove_dead(x, db);
    if (x->merge.out == NULL) {
        if (!choose(x, x->merge.inputs))
            return ERR_OK;
        enum err e = begin(x);
        if (e != ERR_OK)
            return e;
    }
    return step(x, db, &d);
}
