/* The numbered steps from an empty store to the schema of this binary, made from src/store/schema
 * at build time. */
#ifndef PAWL_STORE_MIGRATIONS_H
#define PAWL_STORE_MIGRATIONS_H

#include <stddef.h>

struct migration {
    int number;
    const char *name;
    const char *sql;
};

extern const struct migration MIGRATIONS_SQLITE[];
extern const size_t MIGRATIONS_SQLITE_COUNT;
/* All of them at once, for a new file: what they come to, without the ways there. */
extern const struct migration NEW_FILE_SQLITE;
/* A shard's tables on PostgreSQL, with the same numbers: the first one makes all that SQLite had by
 * then. */
extern const struct migration MIGRATIONS_POSTGRES[];
extern const size_t MIGRATIONS_POSTGRES_COUNT;
/* The directory of shards. */
extern const struct migration MIGRATIONS_DIRECTORY[];
extern const size_t MIGRATIONS_DIRECTORY_COUNT;

#endif
