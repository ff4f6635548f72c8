/* Rows that the only writer has written or read a moment ago. */
#include "store/row_cache.h"

#include "base/limits.h"

#include <stdlib.h>

struct kept_row {
    const struct row_shape *shape;
    int64_t owner;
    int64_t part;
    size_t bytes;   /* of this allocation */
    bool unwritten; /* it stays in its slot until it is written */
    char *texts;    /* behind the row, each with a NUL */
    size_t text_bytes;
    max_align_t row[];
};

enum { ROW_BYTES_STEP = 512 }; /* allocations are multiples of it, so that rows can take over */

struct row_cache {
    size_t bytes;
    struct kept_row *spare; /* the last one that was removed: memory for the next */
    struct kept_row *held;  /* not written yet, if is_held: else only memory */
    bool is_held;
    size_t unwritten;
    struct row_write writes[ROWS_UNWRITTEN_MAX];
    struct kept_row *slots[ROW_CACHE_ROWS];
};

struct row_cache *row_cache_new(void)
{
    return calloc(1, sizeof(struct row_cache));
}

static void remove_at(struct row_cache *c, struct kept_row **slot)
{
    c->bytes -= (*slot)->bytes;
    free(c->spare);
    c->spare = *slot;
    *slot = NULL;
}

static void remove_all(struct row_cache *c)
{
    for (size_t i = 0; c->bytes > 0 && i < ROW_CACHE_ROWS; i++) {
        if (c->slots[i] != NULL)
            remove_at(c, &c->slots[i]);
    }
}

void row_cache_clear(struct row_cache *c)
{
    if (c == NULL)
        return;
    assert(c->unwritten == 0);
    remove_all(c);
    c->is_held = false;
}

void row_cache_free(struct row_cache *c)
{
    row_cache_clear(c);
    if (c != NULL) {
        free(c->spare);
        free(c->held);
    }
    free(c);
}

/* One slot for each row: a row that comes later takes it over. */
static size_t slot_of(int64_t owner, int64_t part)
{
    uint64_t mixed = ((uint64_t)owner * 31 + (uint64_t)part) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 32) % ROW_CACHE_ROWS;
}

static struct kept_row *find(const struct row_cache *c, const struct row_shape *shape,
                             int64_t owner, int64_t part)
{
    struct kept_row *k = c != NULL ? c->slots[slot_of(owner, part)] : NULL;
    return k != NULL && k->shape == shape && k->owner == owner && k->part == part ? k : NULL;
}

/* NULL: the column is no text, or has none. */
static struct str *text_at(const struct row_shape *shape, const void *row, size_t i)
{
    if (shape->texts[i] == NO_TEXT)
        return NULL;
    struct str *text = (struct str *)((uintptr_t)row + shape->texts[i]);
    return text->ptr != NULL ? text : NULL;
}

/* The texts have been copied: the row's members point to the copies. */
static void move_texts(const struct row_shape *shape, void *row, const char *from, char *to)
{
    for (size_t i = 0; i < shape->text_count; i++) {
        struct str *text = text_at(shape, row, i);
        if (text != NULL)
            text->ptr = to + (text->ptr - from);
    }
}

bool row_cache_find(const struct row_cache *c, const struct row_shape *shape, int64_t owner,
                    int64_t part, struct arena *arena, void *ret)
{
    const struct kept_row *k = find(c, shape, owner, part);
    if (k == NULL)
        return false;
    char *texts = arena_alloc(arena, k->text_bytes);
    if (texts == NULL)
        return false; /* reading it will say so */
    memcpy(texts, k->texts, k->text_bytes);
    memcpy(ret, k->row, shape->size);
    move_texts(shape, ret, k->texts, texts);
    return true;
}

void *row_cache_peek(const struct row_cache *c, const struct row_shape *shape, int64_t owner,
                     int64_t part)
{
    struct kept_row *k = find(c, shape, owner, part);
    return k != NULL ? k->row : NULL;
}

static size_t text_bytes_of(const struct row_shape *shape, const void *row)
{
    size_t bytes = 1;
    for (size_t i = 0; i < shape->text_count; i++) {
        const struct str *text = text_at(shape, row, i);
        if (text != NULL)
            bytes += text->len + 1;
    }
    return bytes;
}

static struct kept_row *allocate(struct row_cache *c, size_t bytes)
{
    struct kept_row *k = c->spare;
    if (k != NULL && k->bytes >= bytes) {
        c->spare = NULL;
        return k;
    }
    bytes = (bytes + ROW_BYTES_STEP - 1) / ROW_BYTES_STEP * ROW_BYTES_STEP;
    k = malloc(bytes);
    if (k != NULL)
        k->bytes = bytes;
    return k;
}

static struct kept_row *copy_row(struct row_cache *c, const struct row_shape *shape,
                                 const void *row, size_t text_bytes)
{
    struct kept_row *k = allocate(c, sizeof(struct kept_row) + shape->size + text_bytes);
    if (k == NULL)
        return NULL;
    k->shape = shape;
    k->unwritten = false;
    k->texts = (char *)k->row + shape->size;
    k->text_bytes = text_bytes;
    memcpy(k->row, row, shape->size);
    char *at = k->texts;
    for (size_t i = 0; i < shape->text_count; i++) {
        struct str *text = text_at(shape, k->row, i);
        if (text == NULL)
            continue;
        memcpy(at, text->ptr, text->len);
        text->ptr = at;
        at[text->len] = '\0';
        at += text->len + 1;
    }
    *at = '\0';
    return k;
}

/* Unwritten rows are not moved out of the way. */
static bool has_room(const struct row_cache *c, const struct kept_row *k)
{
    const struct kept_row *there = c->slots[slot_of(k->owner, k->part)];
    bool other = there != NULL &&
                 (there->shape != k->shape || there->owner != k->owner || there->part != k->part);
    return c->unwritten == 0 ||
           (c->bytes + k->bytes <= ROW_CACHE_BYTES_MAX && !(other && there->unwritten));
}

/* The memory is for the next row. */
static void give_up(struct row_cache *c, struct kept_row *k)
{
    free(c->spare);
    c->spare = k;
}

static bool put_in_slot(struct row_cache *c, struct kept_row *k, int64_t owner, int64_t part)
{
    k->owner = owner;
    k->part = part;
    if (!has_room(c, k))
        return false;
    struct kept_row **slot = &c->slots[slot_of(owner, part)];
    k->unwritten = *slot != NULL && (*slot)->unwritten; /* then it is the same row */
    if (c->bytes + k->bytes > ROW_CACHE_BYTES_MAX)
        remove_all(c);
    if (*slot != NULL)
        remove_at(c, slot);
    *slot = k;
    c->bytes += k->bytes;
    return true;
}

bool row_cache_put(struct row_cache *c, const struct row_shape *shape, int64_t owner, int64_t part,
                   const void *row)
{
    if (c == NULL)
        return false;
    size_t text_bytes = text_bytes_of(shape, row);
    struct kept_row *k =
        text_bytes <= ROW_CACHE_TEXT_MAX ? copy_row(c, shape, row, text_bytes) : NULL;
    if (k != NULL && put_in_slot(c, k, owner, part))
        return true;
    if (k != NULL)
        give_up(c, k);
    if (!row_cache_is_unwritten(c, shape, owner, part))
        row_cache_drop(c, shape, owner, part);
    return false;
}

void row_cache_drop(struct row_cache *c, const struct row_shape *shape, int64_t owner, int64_t part)
{
    assert(!row_cache_is_unwritten(c, shape, owner, part));
    if (find(c, shape, owner, part) != NULL)
        remove_at(c, &c->slots[slot_of(owner, part)]);
}

/* --- rows to be written --- */

bool row_cache_write_later(struct row_cache *c, const struct row_write *write)
{
    struct kept_row *k = find(c, write->shape, write->owner, write->part);
    if (k == NULL || c->unwritten >= ROWS_UNWRITTEN_MAX)
        return false;
    assert(!k->unwritten);
    k->unwritten = true;
    c->writes[c->unwritten++] = *write;
    return true;
}

bool row_cache_is_unwritten(const struct row_cache *c, const struct row_shape *shape, int64_t owner,
                            int64_t part)
{
    const struct kept_row *k = find(c, shape, owner, part);
    return k != NULL && k->unwritten;
}

size_t row_cache_unwritten(const struct row_cache *c)
{
    return c != NULL ? c->unwritten : 0;
}

const struct row_write *row_cache_unwritten_at(const struct row_cache *c, size_t i)
{
    assert(i < c->unwritten);
    return &c->writes[i];
}

void row_cache_written(struct row_cache *c)
{
    for (size_t i = 0; i < row_cache_unwritten(c); i++) {
        const struct row_write *w = &c->writes[i];
        struct kept_row *k = find(c, w->shape, w->owner, w->part);
        assert(k != NULL && k->unwritten);
        if (k != NULL)
            k->unwritten = false;
    }
    if (c != NULL)
        c->unwritten = 0;
}

bool row_cache_hold(struct row_cache *c, const struct row_shape *shape, const void *row)
{
    if (c == NULL)
        return false;
    assert(!c->is_held);
    if (c->held != NULL) { /* the memory of the last one comes next */
        free(c->spare);
        c->spare = c->held;
    }
    c->held = copy_row(c, shape, row, text_bytes_of(shape, row));
    c->is_held = c->held != NULL;
    return c->is_held;
}

const void *row_cache_held(const struct row_cache *c, const struct row_shape *shape)
{
    return c != NULL && c->is_held && c->held->shape == shape ? c->held->row : NULL;
}

void row_cache_unhold(struct row_cache *c)
{
    c->is_held = false;
}

void *row_cache_put_held(struct row_cache *c, int64_t owner, int64_t part)
{
    struct kept_row *k = c->held;
    assert(c->is_held);
    c->is_held = false;
    if (k->text_bytes > ROW_CACHE_TEXT_MAX || !put_in_slot(c, k, owner, part))
        row_cache_drop(c, k->shape, owner, part);
    else
        c->held = NULL;
    return k->row;
}
