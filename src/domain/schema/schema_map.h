/* A small hash table from addresses inside a schema to what is known about them. */
#ifndef PAWL_DOMAIN_SCHEMA_SCHEMA_MAP_H
#define PAWL_DOMAIN_SCHEMA_SCHEMA_MAP_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>

struct schema_map_entry {
    const void *key; /* NULL: free */
    void *value;
};

/* Zeroed to begin with. */
struct schema_map {
    struct schema_map_entry *entries;
    size_t count;
    size_t slots;
};

/* The place of a key's value, which is NULL when the key is new. NULL when memory ran out. */
MUST_CHECK void **schema_map_at(struct schema_map *map, const void *key);
/* Leaves the values to the caller, who walks over `slots` entries before. */
void schema_map_release(struct schema_map *map);

#endif
