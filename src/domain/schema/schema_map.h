/* From addresses inside a schema to what is known about them. */
#ifndef PAWL_DOMAIN_SCHEMA_SCHEMA_MAP_H
#define PAWL_DOMAIN_SCHEMA_SCHEMA_MAP_H

#include "base/hash_map.h"

/* Zeroed to begin with. */
struct schema_map {
    struct hash_map map;
};

/* The place of a key's value, which is NULL when the key is new. It stays where it is. NULL when
 * memory ran out. */
MUST_CHECK void **schema_map_at(struct schema_map *map, const void *key);
/* Calls free_value, if it is not NULL, with every value. */
void schema_map_release(struct schema_map *map, void (*free_value)(void *value));

#endif
