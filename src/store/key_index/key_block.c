/* Blocks of sorted entries. */
#include "store/key_index/key_block.h"

#include <endian.h>

enum { ENTRY_BYTES = 16, SUM_BYTES = 8 };

uint64_t key_block_of(uint64_t hash, uint64_t blocks)
{
    return (hash >> 32) * blocks >> 32;
}

uint64_t key_block_first(uint64_t block, uint64_t blocks)
{
    assert(block < blocks);
    return ((block << 32) + blocks - 1) / blocks << 32;
}

static int by_hash(const void *a, const void *b)
{
    const struct key_entry *x = a;
    const struct key_entry *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->ref > y->ref) - (x->ref < y->ref);
}

void key_entries_sort(struct key_entry *entries, size_t count)
{
    if (count > 1)
        qsort(entries, count, sizeof(*entries), by_hash);
}

static void put_word(struct buf *out, uint64_t word)
{
    uint64_t little = htole64(word);
    buf_put(out, (struct str){(const char *)&little, sizeof(little)});
}

static uint64_t word_at(struct str bytes, size_t at)
{
    uint64_t little;
    memcpy(&little, bytes.ptr + at, sizeof(little));
    return le64toh(little);
}

void key_sum_put(struct buf *out, struct siphash_key secret, int64_t num)
{
    put_word(out, siphash_numbered(secret, (uint64_t)num, buf_str(out)));
}

bool key_sum_take(struct siphash_key secret, int64_t num, struct str *bytes)
{
    if (bytes->len < SUM_BYTES)
        return false;
    struct str rest = {bytes->ptr, bytes->len - SUM_BYTES};
    if (word_at(*bytes, rest.len) != siphash_numbered(secret, (uint64_t)num, rest))
        return false;
    *bytes = rest;
    return true;
}

void key_block_put(struct buf *out, struct siphash_key secret, int64_t num,
                   const struct key_entry *entries, size_t count)
{
    assert(out->len == 0);
    for (size_t i = 0; i < count; i++) {
        put_word(out, entries[i].hash);
        put_word(out, entries[i].ref);
    }
    key_sum_put(out, secret, num);
}

bool key_block_open(struct str bytes, struct siphash_key secret, int64_t num, struct key_block *ret)
{
    if (!key_sum_take(secret, num, &bytes) || bytes.len % ENTRY_BYTES != 0)
        return false;
    *ret = (struct key_block){bytes, bytes.len / ENTRY_BYTES};
    return true;
}

struct key_entry key_block_at(const struct key_block *b, size_t i)
{
    assert(i < b->count);
    return (struct key_entry){word_at(b->bytes, i * ENTRY_BYTES),
                              word_at(b->bytes, i * ENTRY_BYTES + 8)};
}

size_t key_block_search(const struct key_block *b, uint64_t hash)
{
    size_t from = 0;
    size_t to = b->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (key_block_at(b, middle).hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}
