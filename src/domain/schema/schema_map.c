/* Open addressing; half of the slots at least are free. */
#include "domain/schema/schema_map.h"

#include <stdint.h>
#include <stdlib.h>

static struct schema_map_entry *slot_of(const struct schema_map *map, const void *key)
{
    size_t mask = map->slots - 1;
    uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 32) & mask;
    while (map->entries[at].key != NULL && map->entries[at].key != key)
        at = (at + 1) & mask;
    return &map->entries[at];
}

static bool grow(struct schema_map *map)
{
    struct schema_map grown = {.slots = MAX(2 * map->slots, (size_t)16), .count = map->count};
    grown.entries = calloc(grown.slots, sizeof(*grown.entries));
    if (grown.entries == NULL)
        return false;
    for (size_t i = 0; i < map->slots; i++) {
        if (map->entries[i].key != NULL)
            *slot_of(&grown, map->entries[i].key) = map->entries[i];
    }
    free(map->entries);
    *map = grown;
    return true;
}

void **schema_map_at(struct schema_map *map, const void *key)
{
    if (2 * (map->count + 1) > map->slots && !grow(map))
        return NULL;
    struct schema_map_entry *entry = slot_of(map, key);
    map->count += entry->key == NULL;
    entry->key = key;
    return &entry->value;
}

void schema_map_release(struct schema_map *map)
{
    free(map->entries);
    *map = (struct schema_map){0};
}
