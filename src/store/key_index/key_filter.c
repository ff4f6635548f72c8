/* A blocked Bloom filter. */
#include "store/key_index/key_filter.h"

#include "base/pages.h"

enum { PROBES = 6, LINE_BITS = KEY_LINE_BYTES * 8 };

size_t key_filter_lines(uint64_t keys)
{
    return (size_t)((keys * KEY_FILTER_BITS + LINE_BITS - 1) / LINE_BITS);
}

bool key_filter_init(struct key_filter *f, size_t lines)
{
    assert(lines > 0);
    *f = (struct key_filter){lines, pages_new(lines * KEY_LINE_BYTES)};
    return f->words != NULL;
}

void key_filter_release(struct key_filter *f)
{
    pages_free(f->words, f->lines * KEY_LINE_BYTES);
    *f = (struct key_filter){0};
}

static uint64_t *line_of(const struct key_filter *f, uint64_t hash)
{
    return f->words[(hash >> 32) * f->lines >> 32];
}

/* The hashes of one line begin with the same bits: the places in it come from all of them. */
static uint64_t places_of(uint64_t hash)
{
    return (hash * 0x9E3779B97F4A7C15u) >> 10;
}

void key_filter_add(struct key_filter *f, uint64_t hash)
{
    uint64_t *line = line_of(f, hash);
    uint64_t places = places_of(hash);
    for (int i = 0; i < PROBES; i++, places >>= 9)
        line[places >> 6 & 7] |= UINT64_C(1) << (places & 63);
}

bool key_filter_passes(const struct key_filter *f, uint64_t hash)
{
    if (f->words == NULL)
        return true;
    const uint64_t *line = line_of(f, hash);
    uint64_t places = places_of(hash);
    for (int i = 0; i < PROBES; i++, places >>= 9) {
        if ((line[places >> 6 & 7] >> (places & 63) & 1) == 0)
            return false;
    }
    return true;
}
