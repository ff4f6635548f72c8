/* Memory of one request or one batch. */
#include "base/arena.h"

#include <stdlib.h>

enum { ARENA_BLOCK = 4096, ARENA_ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t cap;
    size_t used;
    _Alignas(ARENA_ALIGN) unsigned char bytes[];
};

void arena_init(struct arena *a, size_t limit)
{
    *a = (struct arena){.limit = limit};
}

void arena_clear(struct arena *a)
{
    if (a->blocks == NULL)
        return;
    /* New blocks go to the front, so the last in the list is the first that was made. */
    while (a->blocks->next != NULL) {
        struct arena_block *old = a->blocks;
        a->blocks = old->next;
        free(old);
    }
    a->blocks->used = 0;
    a->used = 0;
    a->refused = false;
}

struct arena_mark arena_mark(const struct arena *a)
{
    if (a->blocks == NULL)
        return (struct arena_mark){0};
    return (struct arena_mark){a->blocks, a->blocks->used, a->used};
}

void arena_back_to(struct arena *a, struct arena_mark mark)
{
    if (mark.block == NULL) {
        arena_clear(a);
        return;
    }
    while (a->blocks != mark.block) {
        struct arena_block *old = a->blocks;
        a->blocks = old->next;
        free(old);
    }
    a->blocks->used = mark.block_used;
    a->used = mark.used;
    a->refused = false;
}

void arena_release(struct arena *a)
{
    while (a->blocks != NULL) {
        struct arena_block *old = a->blocks;
        a->blocks = old->next;
        free(old);
    }
    a->used = 0;
}

void *arena_room(struct arena *a, size_t size)
{
    size_t left = a->limit - MIN(a->used, a->limit);
    size_t need = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (size > left || need > left || size > SIZE_MAX - ARENA_ALIGN) {
        a->refused = true;
        return NULL;
    }
    struct arena_block *block = a->blocks;
    if (block == NULL || block->cap - block->used < need) {
        size_t cap = MAX(need, (size_t)ARENA_BLOCK);
        block = malloc(sizeof(*block) + cap);
        if (block == NULL)
            return NULL;
        block->cap = cap;
        block->used = 0;
        block->next = a->blocks;
        a->blocks = block;
    }
    void *out = block->bytes + block->used;
    block->used += need;
    a->used += need;
    return out;
}

void *arena_alloc(struct arena *a, size_t size)
{
    void *out = arena_room(a, size);
    if (out != NULL)
        memset(out, 0, size);
    return out;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *copy = arena_room(a, s.len + 1);
    if (copy == NULL)
        return STR_NONE;
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return (struct str){copy, s.len};
}

struct str arena_take(struct arena *a, struct buf *text)
{
    struct str kept = buf_ok(text) ? arena_str(a, buf_str(text)) : STR_NONE;
    buf_release(text);
    return kept;
}

bool arena_keep(struct arena *a, struct str *text)
{
    if (text->ptr == NULL)
        return true;
    *text = arena_str(a, *text);
    return text->ptr != NULL;
}
