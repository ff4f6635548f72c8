/* The newest entries of an index of keys. */
#include "store/key_index/key_tail.h"

enum { FIRST_SIZE = 1024 };

void key_tail_release(struct key_tail *t)
{
    free(t->entries);
    free(t->older);
    free(t->chains);
    *t = (struct key_tail){0};
}

static size_t chain_of(const struct key_tail *t, uint64_t hash)
{
    return (size_t)hash & (t->size * 2 - 1);
}

static void link_entry(struct key_tail *t, size_t i)
{
    uint32_t *chain = &t->chains[chain_of(t, t->entries[i].hash)];
    t->older[i] = *chain;
    *chain = (uint32_t)i + 1;
}

static bool grow(struct key_tail *t)
{
    size_t size = t->size == 0 ? FIRST_SIZE : t->size * 2;
    struct key_tail grown = {
        malloc(size * sizeof(*grown.entries)),
        malloc(size * sizeof(*grown.older)),
        t->count,
        size,
        t->committed,
        calloc(size * 2, sizeof(*grown.chains)),
    };
    if (grown.entries == NULL || grown.older == NULL || grown.chains == NULL) {
        key_tail_release(&grown);
        return false;
    }
    if (t->count > 0)
        memcpy(grown.entries, t->entries, t->count * sizeof(*t->entries));
    for (size_t i = 0; i < grown.count; i++)
        link_entry(&grown, i);
    struct key_tail old = *t;
    *t = grown;
    key_tail_release(&old);
    return true;
}

enum err key_tail_add(struct key_tail *t, struct key_entry entry)
{
    if (t->count == t->size && !grow(t))
        return ERR_NO_MEMORY;
    t->entries[t->count] = entry;
    link_entry(t, t->count++);
    return ERR_OK;
}

void key_tail_commit(struct key_tail *t)
{
    t->committed = t->count;
}

void key_tail_roll_back(struct key_tail *t)
{
    while (t->count > t->committed) {
        t->count--;
        t->chains[chain_of(t, t->entries[t->count].hash)] = t->older[t->count];
    }
}

void key_tail_drop(struct key_tail *t, size_t count)
{
    assert(count <= t->count);
    if (count == 0)
        return;
    t->count -= count;
    t->committed -= MIN(count, t->committed);
    memmove(t->entries, t->entries + count, t->count * sizeof(*t->entries));
    memset(t->chains, 0, t->size * 2 * sizeof(*t->chains));
    for (size_t i = 0; i < t->count; i++)
        link_entry(t, i);
}

size_t key_tail_next(const struct key_tail *t, uint64_t hash, size_t place)
{
    if (t->count == 0)
        return 0;
    place = place == 0 ? t->chains[chain_of(t, hash)] : t->older[place - 1];
    while (place != 0 && t->entries[place - 1].hash != hash)
        place = t->older[place - 1];
    return place;
}
