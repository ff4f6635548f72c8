/* The index of keys: what is in memory, which segments there are, and looking them up. */
#include "store/key_index/internal.h"

#include "base/limits.h"

/* --- lists of segments --- */

static bool list_has(const struct segment_list *list, const struct key_segment *s)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i] == s)
            return true;
    }
    return false;
}

static enum err list_add(struct segment_list *list, struct key_segment *s)
{
    struct key_segment **at = realloc(list->at, (list->count + 1) * sizeof(struct key_segment *));
    if (at == NULL)
        return ERR_NO_MEMORY;
    list->at = at;
    at[list->count++] = s;
    return ERR_OK;
}

void segment_list_remove(struct segment_list *list, const struct key_segment *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i] != s)
            list->at[kept++] = list->at[i];
    }
    list->count = kept;
}

/* Frees the segments of a list that another one does not have, and the list. */
static void list_release(struct key_index *x, struct segment_list *list,
                         const struct segment_list *other)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!list_has(other, list->at[i]) && list->at[i] != x->merge.out)
            key_segment_free(list->at[i]);
    }
    free(list->at);
    *list = (struct segment_list){0};
}

enum err key_index_begin_change(struct key_index *x)
{
    enum err e = ERR_OK;
    for (size_t i = 0; !x->changes && i < x->live.count && e == ERR_OK; i++)
        e = list_add(&x->next, x->live.at[i]);
    if (e != ERR_OK) {
        free(x->next.at);
        x->next = (struct segment_list){0};
        return e;
    }
    x->changes = true;
    return ERR_OK;
}

enum err key_index_add_next(struct key_index *x, struct key_segment *s)
{
    assert(x->changes);
    return list_add(&x->next, s);
}

/* --- life --- */

struct key_index *key_index_new(void)
{
    struct key_index *x = calloc(1, sizeof(*x));
    if (x != NULL)
        pthread_mutex_init(&x->lock, NULL);
    return x;
}

void key_index_free(struct key_index *x)
{
    if (x == NULL)
        return;
    key_index_roll_back(x);
    list_release(x, &x->live, &(struct segment_list){0});
    key_segment_free(x->merge.out);
    key_tail_release(&x->tail);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

static size_t filter_bytes(const struct key_index *x)
{
    size_t lines = x->merge.out != NULL ? x->merge.out->filter.lines : 0;
    for (size_t i = 0; i < x->live.count; i++)
        lines += x->live.at[i]->filter.lines;
    return lines * KEY_LINE_BYTES;
}

/* With a filter, as far as memory is granted for it: a key that passes no filter is looked up. */
struct key_segment *key_index_new_segment(struct key_index *x, uint64_t keys)
{
    size_t more = key_filter_lines(keys) * KEY_LINE_BYTES;
    return key_segment_new(++x->last_id, keys, filter_bytes(x) + more <= KEY_FILTERS_BYTES_MAX);
}

static enum err load_segment(struct key_index *x, struct db *db, struct key_segment row)
{
    size_t lines = row.filter.lines;
    row.filter = (struct key_filter){0};
    struct key_segment *s = malloc(sizeof(*s));
    if (s == NULL)
        return ERR_NO_MEMORY;
    *s = row;
    enum err e = list_add(&x->live, s);
    if (e != ERR_OK) {
        free(s);
        return e;
    }
    if (lines == 0 || filter_bytes(x) + lines * KEY_LINE_BYTES > KEY_FILTERS_BYTES_MAX ||
        !key_filter_init(&s->filter, lines))
        return ERR_OK;
    return key_segment_load_filter(db, x->secret, s);
}

/* One at a time: the rows of its filter are read before the next one is. */
static enum err next_segment(struct db *db, int64_t after, bool *ret_live, struct key_segment *ret)
{
    static const char SQL[] = "SELECT id, state, entries, blocks, lines FROM key_segments"
                              " WHERE id > $1 ORDER BY id LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after));
    *ret = (struct key_segment){0};
    if (db_next(rows)) {
        *ret_live = str_is(db_str(rows, 1), "live");
        *ret = (struct key_segment){.id = db_count(rows, 0),
                                    .entries = (uint64_t)db_count(rows, 2),
                                    .blocks = (uint64_t)db_count(rows, 3),
                                    .filter = {.lines = (size_t)db_count(rows, 4)}};
        if (ret->blocks == 0 || ret->id == 0 ||
            (ret->filter.lines > 0 && ret->filter.lines < key_filter_lines(ret->entries)))
            db_damaged(rows, 3);
    }
    return db_rows_end(rows);
}

enum err key_index_load(struct key_index *x, struct db *db, struct siphash_key secret)
{
    assert(x->live.count == 0 && x->tail.count == 0);
    x->secret = secret;
    for (;;) {
        bool live = false;
        struct key_segment row;
        enum err e = next_segment(db, x->last_id, &live, &row);
        if (e != ERR_OK || row.id == 0)
            return e;
        x->last_id = row.id;
        if (live)
            e = load_segment(x, db, row);
        x->has_dead |= !live;
        if (e != ERR_OK)
            return e;
    }
}

/* --- keys --- */

uint64_t key_index_hash(const struct key_index *x, int64_t tenant, struct str key)
{
    return siphash_numbered(x->secret, (uint64_t)tenant, key);
}

enum err key_index_add(struct key_index *x, uint64_t hash, uint64_t ref)
{
    pthread_mutex_lock(&x->lock);
    enum err e = key_tail_add(&x->tail, (struct key_entry){hash, ref});
    pthread_mutex_unlock(&x->lock);
    return e;
}

static int64_t row_of(const struct key_segment *s, uint64_t hash)
{
    return key_segment_row(s->id, key_block_of(hash, s->blocks));
}

enum err key_index_find(struct key_index *x, struct db *db, uint64_t hash, key_try *try, void *ctx,
                        bool *ret_found)
{
    enum err e = ERR_OK;
    *ret_found = false;
    for (size_t place = key_tail_next(&x->tail, hash, 0); place != 0 && e == ERR_OK && !*ret_found;
         place = key_tail_next(&x->tail, hash, place))
        e = try(ctx, x->tail.entries[place - 1].ref, ret_found);
    for (size_t i = x->live.count; i > 0 && e == ERR_OK && !*ret_found; i--) {
        const struct key_segment *s = x->live.at[i - 1];
        if (key_filter_passes(&s->filter, hash))
            e = key_block_try(db, x->secret, row_of(s, hash), hash, false, try, ctx, ret_found);
    }
    return e;
}

/* --- for other threads --- */

bool key_index_glance(struct key_index *x, uint64_t hash, struct key_hints *ret)
{
    ret->hash = hash;
    ret->ref_count = ret->row_count = 0;
    pthread_mutex_lock(&x->lock);
    for (size_t place = key_tail_next(&x->tail, hash, 0); place != 0;
         place = key_tail_next(&x->tail, hash, place)) {
        if (place <= x->tail.committed && ret->ref_count < KEY_HINTS_MAX)
            ret->refs[ret->ref_count++] = x->tail.entries[place - 1].ref;
    }
    for (size_t i = x->live.count; i > 0 && ret->row_count < KEY_HINTS_MAX; i--) {
        if (key_filter_passes(&x->live.at[i - 1]->filter, hash))
            ret->rows[ret->row_count++] = row_of(x->live.at[i - 1], hash);
    }
    pthread_mutex_unlock(&x->lock);
    return ret->ref_count + ret->row_count > 0;
}

enum err key_index_follow(struct key_index *x, struct db *db, const struct key_hints *hints,
                          key_try *try, void *ctx, bool *ret_found)
{
    enum err e = ERR_OK;
    *ret_found = false;
    for (size_t i = 0; i < hints->ref_count && e == ERR_OK && !*ret_found; i++)
        e = try(ctx, hints->refs[i], ret_found);
    for (size_t i = 0; i < hints->row_count && e == ERR_OK && !*ret_found; i++)
        e = key_block_try(db, x->secret, hints->rows[i], hints->hash, true, try, ctx, ret_found);
    return e;
}

/* --- transactions --- */

static void merge_settle(struct key_index *x, struct merge_at at)
{
    struct merge *m = &x->merge;
    m->now = m->then = at;
    if (!at.over)
        return;
    if (!list_has(&x->live, m->out))
        key_segment_free(m->out);
    *m = (struct merge){0};
    x->has_dead = true;
}

void key_index_commit(struct key_index *x)
{
    struct segment_list old = {0};
    pthread_mutex_lock(&x->lock);
    key_tail_commit(&x->tail);
    if (x->changes) {
        old = x->live;
        x->live = x->next;
        x->next = (struct segment_list){0};
        key_tail_drop(&x->tail, x->sealed);
    }
    pthread_mutex_unlock(&x->lock);
    x->changes = false;
    x->sealed = 0;
    list_release(x, &old, &x->live);
    if (x->merge.out != NULL)
        merge_settle(x, x->merge.then);
}

void key_index_roll_back(struct key_index *x)
{
    if (x->changes)
        list_release(x, &x->next, &x->live);
    x->changes = false;
    x->sealed = 0;
    if (x->merge.out != NULL)
        x->merge.then = x->merge.now;
    pthread_mutex_lock(&x->lock);
    key_tail_roll_back(&x->tail);
    pthread_mutex_unlock(&x->lock);
}

/* --- sealing --- */

size_t key_index_tail(const struct key_index *x)
{
    return x->tail.count;
}

enum err key_index_add_segment(struct key_index *x, struct db *db, struct key_entry *entries,
                               size_t count)
{
    enum err e = key_index_begin_change(x);
    if (e != ERR_OK)
        return e;
    struct key_segment *s = key_index_new_segment(x, count);
    if (s == NULL)
        return ERR_NO_MEMORY;
    e = key_index_add_next(x, s);
    if (e != ERR_OK) {
        key_segment_free(s);
        return e;
    }
    return key_segment_write(db, x->secret, s, entries, count);
}

enum err key_index_seal(struct key_index *x, struct db *db)
{
    size_t count = x->tail.count;
    if (count == 0)
        return ERR_OK;
    struct key_entry *sorted = malloc(count * sizeof(*sorted));
    if (sorted == NULL)
        return ERR_NO_MEMORY;
    memcpy(sorted, x->tail.entries, count * sizeof(*sorted));
    enum err e = key_index_add_segment(x, db, sorted, count);
    free(sorted);
    x->sealed = count;
    return e;
}

enum err key_index_clear(struct key_index *x, struct db *db)
{
    static const char SQL[] = "UPDATE key_segments SET state = 'dead' WHERE state <> 'dead'";
    enum err e = key_index_begin_change(x);
    if (e != ERR_OK)
        return e;
    x->next.count = 0;
    x->sealed = x->tail.count;
    x->merge.then.over = x->merge.out != NULL;
    x->has_dead = true;
    return db_exec_values(db, SQL, NULL, 0, NULL);
}

/* --- for doctor --- */

static bool is_sound(const struct key_segment *s, const struct key_entries *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!key_filter_passes(&s->filter, list->at[i].hash) ||
            (i > 0 && list->at[i - 1].hash > list->at[i].hash))
            return false;
    }
    return true;
}

static enum err verify_segment(struct key_index *x, struct db *db, const struct key_segment *s,
                               int64_t *broken)
{
    struct key_entries list = {0};
    uint64_t entries = 0;
    enum err e = ERR_OK;
    for (uint64_t block = 0; block < s->blocks && e == ERR_OK; block++) {
        bool last = block + 1 == s->blocks;
        list.count = 0;
        e = key_segment_read(db, x->secret, s, key_block_first(block, s->blocks),
                             last ? UINT64_MAX : key_block_first(block + 1, s->blocks) - 1, &list);
        *broken += e == ERR_DAMAGED || !is_sound(s, &list);
        entries += list.count;
        e = e == ERR_DAMAGED ? ERR_OK : e;
    }
    *broken += e == ERR_OK && entries != s->entries;
    key_entries_release(&list);
    return e;
}

enum err key_index_verify(struct key_index *x, struct db *db, int64_t *ret_broken)
{
    enum err e = ERR_OK;
    *ret_broken = 0;
    for (size_t i = 0; i < x->live.count && e == ERR_OK; i++)
        e = verify_segment(x, db, x->live.at[i], ret_broken);
    return e;
}

void key_index_extent(const struct key_index *x, uint64_t *ret_keys, size_t *ret_bytes)
{
    *ret_keys = x->tail.count;
    *ret_bytes = filter_bytes(x) + x->tail.size * (sizeof(struct key_entry) + 3 * sizeof(uint32_t));
    for (size_t i = 0; i < x->live.count; i++)
        *ret_keys += x->live.at[i]->entries;
}
