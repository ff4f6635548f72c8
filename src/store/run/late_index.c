/* Indexes that are filled later, in bulk. */
#include "store/run/late_index.h"

#include "store/run/slot_holders.h"

enum err late_index_through(struct db *db, enum late_index which, int64_t *ret)
{
    static const char SQL[] = "SELECT through FROM indexed WHERE name = $1";
    struct str name = which == LATE_RUNS ? STR("runs") : STR("idempotency");
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(name));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err late_index_fill(struct db *db, enum late_index which, int64_t last)
{
    static const char SQL_IDEMPOTENCY[] =
        "INSERT INTO idempotency_index (tenant, key_hash, num) SELECT tenant, key_hash, num"
        " FROM idempotency WHERE num > $1 AND num <= $2 ORDER BY tenant, key_hash, num";
    static const char SQL_RUNS[] = "INSERT INTO runs_index (tenant, num) SELECT tenant, num"
                                   " FROM runs WHERE num > $1 AND num <= $2 ORDER BY tenant, num";
    static const char SQL_HOLDING[] =
        "INSERT INTO holding (tenant, run) SELECT tenant, num FROM runs"
        " WHERE num > $1 AND num <= $2 AND " RUN_HOLDS_SLOT;
    static const char SQL_THROUGH[] = "UPDATE indexed SET through = $2 WHERE name = $1";
    int64_t through;
    enum err e = late_index_through(db, which, &through);
    if (e != ERR_OK || last <= through)
        return e;
    bool runs = which == LATE_RUNS;
    e = DB_EXEC(db, runs ? SQL_RUNS : SQL_IDEMPOTENCY, NULL, DB_I(through), DB_I(last));
    if (e == ERR_OK && runs)
        e = DB_EXEC(db, SQL_HOLDING, NULL, DB_I(through), DB_I(last));
    if (e != ERR_OK)
        return e;
    return DB_EXEC(db, SQL_THROUGH, NULL, DB_T(runs ? STR("runs") : STR("idempotency")),
                   DB_I(last));
}
