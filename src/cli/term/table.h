/* Prints JSON for people: aligned columns, lists of members, single values. Control characters from
 * the server never reach the terminal.
 *
 * On a terminal, a table leaves out empty columns, shortens ids to prefixes that are unique in
 * their column, shows times relative to now, and cuts its widest columns until the rows fit. */
#ifndef PAWL_CLI_TABLE_H
#define PAWL_CLI_TABLE_H

#include "base/json_tree.h"

#include <stdio.h>

struct column {
    const char *title;  /* in upper case */
    const char *member; /* of each row's object; `name[0]`: an array's first element */
};

struct table {
    const struct column *columns;
    size_t column_count;
    struct buf cells; /* one after the other, each ends with a NUL */
};

void table_init(struct table *t, const struct column *columns, size_t column_count);
void table_release(struct table *t);
/* One row for each object of the array. */
void table_add(struct table *t, const json_t *items);
/* False when there are too many rows. */
MUST_CHECK bool table_print(const struct table *t, FILE *out);

/* Prints an array of objects as a table. */
void rows_print(FILE *out, const struct column *columns, size_t column_count, const json_t *rows);

/* Each member on its own line, after its name. */
void object_print(FILE *out, json_t *object);

/* Text as it is, numbers, `yes` and `no`, `-` for null or NULL, JSON for the rest. */
void value_print(FILE *out, const json_t *value);

/* The shortest prefix of an id that a table shows: up to its milliseconds. */
enum { ID_PREFIX_LEN = 13 };

/* "  path: message" for each element of [{path, message}]; NULL prints nothing. */
void faults_print(FILE *out, const char *prefix, const json_t *faults);

/* Removes a member from an object and returns it; the caller owns it. */
json_t *json_take(json_t *object, const char *member);

#endif
