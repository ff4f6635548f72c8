/* A hash map of entries that their owner allocates: chained buckets, doubled as the map grows. */
#include "base/hash_map.h"

#include <stdlib.h>

static size_t bucket_count(const struct hash_map *m)
{
    return m->buckets != NULL ? m->bucket_count : HASH_MAP_OWN_BUCKETS;
}

static size_t bucket_at(uint64_t hash, size_t count)
{
    return (size_t)hash & (count - 1);
}

static struct hash_entry **bucket_of(struct hash_map *m, uint64_t hash)
{
    struct hash_entry **buckets = m->buckets != NULL ? m->buckets : m->own_buckets;
    return &buckets[bucket_at(hash, bucket_count(m))];
}

void hash_map_release(struct hash_map *m)
{
    free(m->buckets);
    *m = (struct hash_map){0};
}

void hash_map_clear(struct hash_map *m)
{
    if (m->count == 0)
        return;
    if (m->buckets != NULL)
        memset(m->buckets, 0, m->bucket_count * sizeof(struct hash_entry *));
    memset(m->own_buckets, 0, sizeof(m->own_buckets));
    m->count = 0;
    m->oldest = m->newest = NULL;
}

static struct hash_entry *with_hash(struct hash_entry *e, uint64_t hash)
{
    while (e != NULL && e->hash != hash)
        e = e->next;
    return e;
}

struct hash_entry *hash_map_find(const struct hash_map *m, uint64_t hash)
{
    struct hash_entry *const *buckets = m->buckets != NULL ? m->buckets : m->own_buckets;
    return with_hash(buckets[bucket_at(hash, bucket_count(m))], hash);
}

struct hash_entry *hash_map_find_next(const struct hash_entry *e)
{
    return with_hash(e->next, e->hash);
}

static void put_into_bucket(struct hash_map *m, struct hash_entry *e)
{
    struct hash_entry **bucket = bucket_of(m, e->hash);
    e->next = *bucket;
    *bucket = e;
}

static void grow(struct hash_map *m)
{
    size_t count = 2 * bucket_count(m);
    struct hash_entry **buckets = calloc(count, sizeof(struct hash_entry *));
    if (buckets == NULL)
        return;
    free(m->buckets);
    m->buckets = buckets;
    m->bucket_count = count;
    for (struct hash_entry *e = m->oldest; e != NULL; e = e->newer)
        put_into_bucket(m, e);
}

static void append(struct hash_map *m, struct hash_entry *e)
{
    e->older = m->newest;
    e->newer = NULL;
    *(m->newest != NULL ? &m->newest->newer : &m->oldest) = e;
    m->newest = e;
}

static void take_out(struct hash_map *m, struct hash_entry *e)
{
    *(e->older != NULL ? &e->older->newer : &m->oldest) = e->newer;
    *(e->newer != NULL ? &e->newer->older : &m->newest) = e->older;
}

void hash_map_add(struct hash_map *m, struct hash_entry *e, uint64_t hash)
{
    if (m->count >= bucket_count(m))
        grow(m);
    e->hash = hash;
    append(m, e);
    put_into_bucket(m, e);
    m->count++;
}

void hash_map_remove(struct hash_map *m, struct hash_entry *e)
{
    assert(m->count > 0);
    struct hash_entry **at = bucket_of(m, e->hash);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    take_out(m, e);
    m->count--;
}

void hash_map_touch(struct hash_map *m, struct hash_entry *e)
{
    if (e == m->newest)
        return;
    take_out(m, e);
    append(m, e);
}

/* --- hashes --- */

/* Both halves of the product: every bit of the input reaches every bit of the result. */
static uint64_t mixed(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_with(uint64_t hash, uint64_t more)
{
    return mixed(hash ^ 0x9E3779B97F4A7C15u, more ^ 0xFF51AFD7ED558CCDu);
}

uint64_t hash_number(const struct hash_map *m, int64_t number)
{
    return hash_with((uintptr_t)m, (uint64_t)number);
}

uint64_t hash_text(const struct hash_map *m, struct str text)
{
    uint64_t hash = (uintptr_t)m ^ text.len * 0x9E3779B97F4A7C15u;
    size_t i = 0;
    for (; i + 8 <= text.len; i += 8) {
        uint64_t part;
        memcpy(&part, text.ptr + i, sizeof(part));
        hash = hash_with(hash, part);
    }
    uint64_t rest = 0;
    for (; i < text.len; i++)
        rest = rest << 8 | (unsigned char)text.ptr[i];
    return hash_with(hash, rest);
}
