/* Segments as rows. */
#include "store/key_index/key_segment.h"

#include "base/limits.h"
#include "base/log.h"

enum {
    ROW_BITS = 24, /* of a row's number for the place within the segment */
    PART_BYTES = KEY_FILTER_PART_LINES * KEY_LINE_BYTES,
    TRIED_TOGETHER = 16,
};

static const char *const STATES[] = {"building", "live", "dead"};

int64_t key_segment_row(int64_t segment, uint64_t place)
{
    return segment << ROW_BITS | (int64_t)place;
}

/* --- memory --- */

void key_entries_release(struct key_entries *list)
{
    free(list->at);
    *list = (struct key_entries){0};
}

enum err key_entries_add(struct key_entries *list, struct key_entry entry)
{
    if (list->count == list->size) {
        size_t size = list->size == 0 ? KIB : list->size * 2;
        struct key_entry *at = realloc(list->at, size * sizeof(*at));
        if (at == NULL)
            return ERR_NO_MEMORY;
        list->at = at;
        list->size = size;
    }
    list->at[list->count++] = entry;
    return ERR_OK;
}

struct key_segment *key_segment_new(int64_t id, uint64_t keys, bool filtered)
{
    struct key_segment *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->id = id;
    s->blocks = MIN(MAX(keys, (uint64_t)1) / KEY_BLOCK_ENTRIES + 1, (UINT64_C(1) << ROW_BITS) - 1);
    if (filtered && !key_filter_init(&s->filter, key_filter_lines(MAX(keys, (uint64_t)1))))
        key_filter_release(&s->filter);
    return s;
}

void key_segment_free(struct key_segment *s)
{
    if (s == NULL)
        return;
    key_filter_release(&s->filter);
    free(s);
}

/* --- writing --- */

enum err key_segment_insert(struct db *db, const struct key_segment *s,
                            enum key_segment_state state)
{
    static const char SQL[] = "INSERT INTO key_segments (id, state, entries, blocks, lines)"
                              " VALUES ($1, $2, $3, $4, $5)";
    return DB_EXEC(db, SQL, NULL, DB_I(s->id), DB_T(str_of(STATES[state])),
                   DB_I((int64_t)s->entries), DB_I((int64_t)s->blocks),
                   DB_I((int64_t)s->filter.lines));
}

enum err key_segment_set_state(struct db *db, const struct key_segment *s,
                               enum key_segment_state state)
{
    static const char SQL[] = "UPDATE key_segments SET state = $2, entries = $3 WHERE id = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(s->id), DB_T(str_of(STATES[state])),
                   DB_I((int64_t)s->entries));
}

enum err key_segment_put_block(struct db *db, struct siphash_key secret, struct key_segment *s,
                               uint64_t block, const struct key_entry *entries, size_t count)
{
    static const char SQL[] = "INSERT INTO key_blocks (num, entries) VALUES ($1, $2)";
    struct buf bytes;
    buf_init(&bytes, HTTP_REPLY_MAX);
    int64_t num = key_segment_row(s->id, block);
    key_block_put(&bytes, secret, num, entries, count);
    for (size_t i = 0; s->filter.words != NULL && i < count; i++)
        key_filter_add(&s->filter, entries[i].hash);
    enum err e = buf_ok(&bytes) ? DB_EXEC(db, SQL, NULL, DB_I(num), DB_B(bytes.ptr, bytes.len))
                                : ERR_NO_MEMORY;
    buf_release(&bytes);
    return e;
}

size_t key_segment_filter_parts(const struct key_segment *s)
{
    return (s->filter.lines + KEY_FILTER_PART_LINES - 1) / KEY_FILTER_PART_LINES;
}

static enum err put_part(struct db *db, struct siphash_key secret, const struct key_segment *s,
                         size_t part)
{
    static const char SQL[] = "INSERT INTO key_filters (num, bits) VALUES ($1, $2)";
    assert(s->filter.words != NULL);
    size_t first = part * KEY_FILTER_PART_LINES;
    size_t lines = MIN((size_t)KEY_FILTER_PART_LINES, s->filter.lines - first);
    int64_t num = key_segment_row(s->id, part);
    struct buf bytes;
    buf_init(&bytes, 2 * (size_t)PART_BYTES);
    buf_put(&bytes, (struct str){(const char *)s->filter.words[first], lines * KEY_LINE_BYTES});
    key_sum_put(&bytes, secret, num);
    enum err e = buf_ok(&bytes) ? DB_EXEC(db, SQL, NULL, DB_I(num), DB_B(bytes.ptr, bytes.len))
                                : ERR_NO_MEMORY;
    buf_release(&bytes);
    return e;
}

enum err key_segment_put_filter(struct db *db, struct siphash_key secret,
                                const struct key_segment *s, size_t most, size_t *part)
{
    enum err e = ERR_OK;
    size_t end = MIN(*part + most, key_segment_filter_parts(s));
    for (; *part < end && e == ERR_OK; ++*part)
        e = put_part(db, secret, s, *part);
    return e;
}

enum err key_segment_write(struct db *db, struct siphash_key secret, struct key_segment *s,
                           struct key_entry *entries, size_t count)
{
    key_entries_sort(entries, count);
    s->entries = count;
    enum err e = key_segment_insert(db, s, KEY_SEGMENT_LIVE);
    size_t from = 0;
    for (uint64_t block = 0; block < s->blocks && e == ERR_OK; block++) {
        size_t to = from;
        while (to < count && key_block_of(entries[to].hash, s->blocks) == block)
            to++;
        e = key_segment_put_block(db, secret, s, block, entries + from, to - from);
        from = to;
    }
    size_t part = 0;
    return e == ERR_OK ? key_segment_put_filter(db, secret, s, SIZE_MAX / 2, &part) : e;
}

/* --- reading --- */

/* The refs of a hash in a block, at most TRIED_TOGETHER after the first `skip`. */
static size_t refs_of(const struct key_block *b, uint64_t hash, size_t skip, uint64_t *refs)
{
    size_t count = 0;
    for (size_t i = key_block_search(b, hash) + skip; i < b->count && count < TRIED_TOGETHER; i++) {
        struct key_entry entry = key_block_at(b, i);
        if (entry.hash != hash)
            break;
        refs[count++] = entry.ref;
    }
    return count;
}

static enum err read_refs(struct db *db, struct siphash_key secret, int64_t num, uint64_t hash,
                          bool may_be_gone, size_t skip, uint64_t *refs, size_t *ret_count)
{
    static const char SQL[] = "SELECT entries FROM key_blocks WHERE num = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num));
    struct key_block block;
    bool there = db_next(rows);
    *ret_count = 0;
    if (there && key_block_open(db_str(rows, 0), secret, num, &block))
        *ret_count = refs_of(&block, hash, skip, refs);
    else if (there)
        db_damaged(rows, 0);
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || there || may_be_gone)
        return e;
    LOG(LOG_ERROR, "a block of the index of idempotency keys is lost", LOG_N("num", num));
    return ERR_DAMAGED;
}

enum err key_block_try(struct db *db, struct siphash_key secret, int64_t num, uint64_t hash,
                       bool may_be_gone, key_try *try, void *ctx, bool *ret_found)
{
    uint64_t refs[TRIED_TOGETHER];
    size_t count = TRIED_TOGETHER;
    enum err e = ERR_OK;
    *ret_found = false;
    for (size_t skip = 0; count == TRIED_TOGETHER && e == ERR_OK && !*ret_found;
         skip += TRIED_TOGETHER) {
        e = read_refs(db, secret, num, hash, may_be_gone, skip, refs, &count);
        for (size_t i = 0; i < count && e == ERR_OK && !*ret_found; i++)
            e = try(ctx, refs[i], ret_found);
    }
    return e;
}

static enum err add_between(const struct key_block *b, uint64_t first, uint64_t last,
                            struct key_entries *out)
{
    enum err e = ERR_OK;
    for (size_t i = key_block_search(b, first); i < b->count && e == ERR_OK; i++) {
        struct key_entry entry = key_block_at(b, i);
        if (entry.hash > last)
            break;
        e = key_entries_add(out, entry);
    }
    return e;
}

enum err key_segment_read(struct db *db, struct siphash_key secret, const struct key_segment *s,
                          uint64_t first, uint64_t last, struct key_entries *out)
{
    static const char SQL[] =
        "SELECT num, entries FROM key_blocks WHERE num >= $1 AND num <= $2 ORDER BY num";
    int64_t from = key_segment_row(s->id, key_block_of(first, s->blocks));
    int64_t to = key_segment_row(s->id, key_block_of(last, s->blocks));
    int64_t expected = from;
    enum err e = ERR_OK;
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(from), DB_I(to));
    for (; db_next(rows) && e == ERR_OK; expected++) {
        struct key_block block;
        if (db_int(rows, 0) != expected ||
            !key_block_open(db_str(rows, 1), secret, expected, &block)) {
            db_damaged(rows, 1);
            break;
        }
        e = add_between(&block, first, last, out);
    }
    enum err ended = db_rows_end(rows);
    if (e == ERR_OK)
        e = ended;
    return e == ERR_OK && expected <= to ? ERR_DAMAGED : e;
}

enum err key_segment_load_filter(struct db *db, struct siphash_key secret, struct key_segment *s)
{
    static const char SQL[] = "SELECT num, bits FROM key_filters WHERE num >= $1 AND num < $2"
                              " ORDER BY num";
    size_t parts = key_segment_filter_parts(s);
    size_t part = 0;
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_I(key_segment_row(s->id, 0)), DB_I(key_segment_row(s->id, parts)));
    bool whole = true;
    for (; db_next(rows) && whole; part++) {
        int64_t num = key_segment_row(s->id, part);
        size_t first = part * KEY_FILTER_PART_LINES;
        size_t lines = MIN((size_t)KEY_FILTER_PART_LINES, s->filter.lines - first);
        struct str bits = db_str(rows, 1);
        whole = db_int(rows, 0) == num && key_sum_take(secret, num, &bits) &&
                bits.len == lines * KEY_LINE_BYTES && !db_skip_damaged(rows);
        if (whole)
            memcpy(s->filter.words[first], bits.ptr, bits.len);
    }
    enum err e = db_rows_end(rows);
    if (e == ERR_OK && whole && part == parts)
        return ERR_OK;
    if (e == ERR_OK)
        LOG(LOG_ERROR, "a filter of idempotency keys is damaged and not used", LOG_N("id", s->id));
    key_filter_release(&s->filter);
    return e;
}
