/* What is known about addresses inside a schema. */
#include "domain/schema/schema_map.h"

#include <stdlib.h>

struct schema_map_entry {
    struct hash_entry entry;
    const void *key;
    void *value;
};

static struct schema_map_entry *entry_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct schema_map_entry, entry);
}

void **schema_map_at(struct schema_map *map, const void *key)
{
    uint64_t hash = hash_number(&map->map, (int64_t)(intptr_t)key);
    struct hash_entry *e = hash_map_find(&map->map, hash);
    while (e != NULL && entry_of(e)->key != key)
        e = hash_map_find_next(e);
    if (e != NULL)
        return &entry_of(e)->value;
    struct schema_map_entry *added = calloc(1, sizeof(*added));
    if (added == NULL)
        return NULL;
    added->key = key;
    hash_map_add(&map->map, &added->entry, hash);
    return &added->value;
}

void schema_map_release(struct schema_map *map, void (*free_value)(void *value))
{
    HASH_MAP_WALK (&map->map, e) {
        if (free_value != NULL)
            free_value(entry_of(e)->value);
        free(entry_of(e));
    }
    hash_map_release(&map->map);
}
