/* The index of runs, filled later and in bulk. */
#include "store/run/late_index.h"

#include "store/run/slot_holders.h"

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

enum err late_index_fill(struct db *db, int64_t last)
{
    static const char SQL_RUNS[] = "INSERT INTO runs_index (tenant, num) SELECT tenant, num"
                                   " FROM runs WHERE num > $1 AND num <= $2 ORDER BY tenant, num";
    static const char SQL_HOLDING[] =
        "INSERT INTO holding (tenant, run) SELECT tenant, num FROM runs"
        " WHERE num > $1 AND num <= $2 AND " RUN_HOLDS_SLOT;
    int64_t through;
    enum err e = late_index_through(db, &through);
    if (e != ERR_OK || last <= through)
        return e;
    e = DB_EXEC(db, SQL_RUNS, NULL, DB_I(through), DB_I(last));
    if (e == ERR_OK)
        e = DB_EXEC(db, SQL_HOLDING, NULL, DB_I(through), DB_I(last));
    return e == ERR_OK ? set_through(db, last) : e;
}

/* --- runs that are known --- */

/* Statements with many rows: most of the cost of one with a single row is not the row's. */
enum { PAIRS_TOGETHER = 16 };
#define PAIRS                                                                              \
    " VALUES ($1, $2), ($3, $4), ($5, $6), ($7, $8), ($9, $10), ($11, $12), ($13, $14),"   \
    " ($15, $16), ($17, $18), ($19, $20), ($21, $22), ($23, $24), ($25, $26), ($27, $28)," \
    " ($29, $30), ($31, $32)"

struct pair_insert {
    const char *one;
    const char *many;
};

static const struct pair_insert INTO_INDEX = {
    "INSERT INTO runs_index (tenant, num) VALUES ($1, $2)",
    "INSERT INTO runs_index (tenant, num)" PAIRS,
};
static const struct pair_insert INTO_HOLDING = {
    "INSERT INTO holding (tenant, run) VALUES ($1, $2)",
    "INSERT INTO holding (tenant, run)" PAIRS,
};

static enum err insert_pairs(struct db *db, const struct pair_insert *into,
                             const struct db_value *values, size_t count)
{
    if (count == PAIRS_TOGETHER)
        return db_exec_values(db, into->many, values, count * 2, NULL);
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = db_exec_values(db, into->one, values + i * 2, 2, NULL);
    return e;
}

static enum err insert_runs(struct db *db, const struct pair_insert *into, bool holders_only,
                            const struct indexed_run *runs, size_t count)
{
    struct db_value values[PAIRS_TOGETHER * 2];
    size_t pairs = 0;
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        if (holders_only && !runs[i].holds)
            continue;
        values[pairs * 2] = DB_I(runs[i].tenant);
        values[pairs * 2 + 1] = DB_I(runs[i].num);
        if (++pairs < PAIRS_TOGETHER)
            continue;
        e = insert_pairs(db, into, values, pairs);
        pairs = 0;
    }
    return e == ERR_OK ? insert_pairs(db, into, values, pairs) : e;
}

enum err late_index_add(struct db *db, const struct indexed_run *runs, size_t count, int64_t last)
{
    enum err e = insert_runs(db, &INTO_INDEX, false, runs, count);
    if (e == ERR_OK)
        e = insert_runs(db, &INTO_HOLDING, true, runs, count);
    return e == ERR_OK && count > 0 ? set_through(db, last) : e;
}
