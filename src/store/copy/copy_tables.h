/* The tables that a store has, as its engine describes them, and the statements that walk through
 * them and fill them. Nothing here names a table or a column: a new one is copied like the others.
 */
#ifndef PAWL_STORE_COPY_COPY_TABLES_H
#define PAWL_STORE_COPY_COPY_TABLES_H

#include "base/arena.h"
#include "base/limits.h"
#include "store/db.h"

enum { COPY_KEY_MAX = 4 };

struct copy_column {
    struct str name;
    struct str holds;  /* "int", "text" or "blob" */
    int64_t key_place; /* in the primary key, from 1; 0: it is not part of it */
};

struct copy_table {
    struct str name;
    struct copy_column columns[COPY_COLUMNS_MAX]; /* by name */
    size_t column_count;
    size_t key[COPY_KEY_MAX]; /* which of the columns are the primary key, in its order */
    size_t key_count;
    bool of_tenants; /* rows that somebody has made, not the server for itself */
    /* Statements. $1… are the columns of the key, and of `insert` all columns. */
    const char *count;
    const char *keys;       /* the key and the length of each of the first rows */
    const char *keys_after; /* the same, after a key */
    const char *rows;       /* whole rows from a key on; the last parameter is how many */
    const char *last;       /* the greatest key */
    const char *insert;
    const char *empty;
};

struct copy_tables {
    struct arena arena; /* has the texts */
    struct copy_table *list;
    size_t count;
    bool has_mark; /* the store is an unfinished copy; that table is not in the list */
};

/* Release it whatever is returned, after the connections that ran its statements are closed. */
MUST_CHECK enum err copy_tables_read(struct db *db, struct problem *p, struct copy_tables *ret);
void copy_tables_release(struct copy_tables *tables);
/* Two stores have the same tables; otherwise p names one that differs. */
MUST_CHECK enum err copy_tables_compare(const struct copy_tables *a, const struct copy_tables *b,
                                        struct problem *p);

#endif
