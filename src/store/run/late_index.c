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

enum err late_index_fill(struct db *db, int64_t last)
{
    static const char SQL_RUNS[] = "INSERT INTO runs_index (tenant, num) SELECT tenant, num"
                                   " FROM runs WHERE num > $1 AND num <= $2 ORDER BY tenant, num";
    static const char SQL_HOLDING[] =
        "INSERT INTO holding (tenant, run) SELECT tenant, num FROM runs"
        " WHERE num > $1 AND num <= $2 AND " RUN_HOLDS_SLOT;
    static const char SQL_THROUGH[] = "UPDATE indexed SET through = $1 WHERE name = 'runs'";
    int64_t through;
    enum err e = late_index_through(db, &through);
    if (e != ERR_OK || last <= through)
        return e;
    e = DB_EXEC(db, SQL_RUNS, NULL, DB_I(through), DB_I(last));
    if (e == ERR_OK)
        e = DB_EXEC(db, SQL_HOLDING, NULL, DB_I(through), DB_I(last));
    return e == ERR_OK ? DB_EXEC(db, SQL_THROUGH, NULL, DB_I(last)) : e;
}
