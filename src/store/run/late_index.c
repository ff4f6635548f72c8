/* The index of runs, filled later and in bulk. */
#include "store/run/late_index.h"

#include "base/limits.h"
#include "base/pages.h"
#include "store/run/slot_holders.h"

#include <stdlib.h>

enum err late_index_through(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT through FROM indexed WHERE name = 'runs'";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

static enum err set_through(struct db *db, int64_t last)
{
    static const char SQL[] = "UPDATE indexed SET through = $1 WHERE name = 'runs'";
    return DB_EXEC(db, SQL, NULL, DB_I(last));
}

/* --- runs that are known --- */

/* Statements with many rows: most of the cost of one with a single row is not the row's. */
enum { PAIRS_TOGETHER = 16 };
#define PAIRS                                                                              \
    " VALUES ($1, $2), ($3, $4), ($5, $6), ($7, $8), ($9, $10), ($11, $12), ($13, $14),"   \
    " ($15, $16), ($17, $18), ($19, $20), ($21, $22), ($23, $24), ($25, $26), ($27, $28)," \
    " ($29, $30), ($31, $32)"

static enum err insert_holders(struct db *db, const struct db_value *values, size_t count)
{
    static const char SQL[] = "INSERT INTO holding (tenant, run) VALUES ($1, $2)";
    static const char SQL_TOGETHER[] = "INSERT INTO holding (tenant, run)" PAIRS;
    if (count == PAIRS_TOGETHER)
        return db_exec_values(db, SQL_TOGETHER, values, count * 2, NULL);
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = db_exec_values(db, SQL, values + i * 2, 2, NULL);
    return e;
}

static enum err add_holders(struct db *db, const struct indexed_run *runs, size_t count)
{
    struct db_value values[PAIRS_TOGETHER * 2];
    size_t pairs = 0;
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        if (!runs[i].holds)
            continue;
        values[pairs * 2] = DB_I(runs[i].tenant);
        values[pairs * 2 + 1] = DB_I(runs[i].num);
        if (++pairs < PAIRS_TOGETHER)
            continue;
        e = insert_holders(db, values, pairs);
        pairs = 0;
    }
    return e == ERR_OK ? insert_holders(db, values, pairs) : e;
}

static int by_tenant(const void *a, const void *b)
{
    const struct indexed_run *x = a;
    const struct indexed_run *y = b;
    return x->tenant != y->tenant ? (x->tenant > y->tenant) - (x->tenant < y->tenant)
                                  : (x->num > y->num) - (x->num < y->num);
}

void indexed_runs_sort(struct indexed_run *runs, size_t count)
{
    qsort(runs, count, sizeof(*runs), by_tenant);
}

enum err late_index_add(struct db *db, const struct indexed_run *runs, size_t count, int64_t last)
{
    enum err e = run_blocks_add(db, runs, count);
    if (e == ERR_OK)
        e = add_holders(db, runs, count);
    return e == ERR_OK && count > 0 ? set_through(db, last) : e;
}

/* --- runs that are read --- */

/* Up to `room` of the runs from `after` to `last`, by number. */
static enum err read_runs(struct db *db, int64_t after, int64_t last, struct indexed_run *runs,
                          size_t room, size_t *ret_count)
{
    static const char SQL[] = "SELECT tenant, num, CASE WHEN " RUN_HOLDS_SLOT " THEN 1 ELSE 0 END"
                              " FROM runs WHERE num > $1 AND num <= $2 ORDER BY num LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after), DB_I(last), DB_I((int64_t)room));
    size_t count = 0;
    while (db_next(rows))
        runs[count++] =
            (struct indexed_run){db_int(rows, 0), db_int(rows, 1), db_int(rows, 2) != 0};
    *ret_count = count;
    return db_rows_end(rows);
}

/* A slice at a time, for there may be any number of them. */
static enum err add_from_rows(struct db *db, int64_t after, int64_t last, bool with_holders)
{
    size_t bytes = LATE_INDEX_ROWS * sizeof(struct indexed_run);
    struct indexed_run *runs = pages_new(bytes);
    if (runs == NULL)
        return ERR_NO_MEMORY;
    size_t count;
    enum err e;
    do {
        e = read_runs(db, after, last, runs, LATE_INDEX_ROWS, &count);
        if (e != ERR_OK || count == 0)
            break;
        after = runs[count - 1].num;
        indexed_runs_sort(runs, count);
        e = run_blocks_add(db, runs, count);
        if (e == ERR_OK && with_holders)
            e = add_holders(db, runs, count);
    } while (e == ERR_OK && count == LATE_INDEX_ROWS);
    pages_free(runs, bytes);
    return e;
}

enum err late_index_fill(struct db *db, int64_t last)
{
    int64_t through;
    enum err e = late_index_through(db, &through);
    if (e != ERR_OK || last <= through)
        return e;
    e = add_from_rows(db, through, last, true);
    return e == ERR_OK ? set_through(db, last) : e;
}

enum err late_index_rebuild(struct db *db)
{
    int64_t through;
    enum err e = late_index_through(db, &through);
    if (e == ERR_OK)
        e = run_blocks_clear(db);
    return e == ERR_OK ? add_from_rows(db, 0, through, false) : e;
}
