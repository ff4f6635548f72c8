/* Removing finished runs, a few rows at a time. */
#include "store/run/retention.h"

#include "store/row_cache.h"
#include "store/run/events.h"
#include "store/run/run_blocks.h"

enum err retention_next_tenant(struct db *db, int64_t after, bool *ret_found, int64_t *ret_tenant,
                               int64_t *ret_retention_ms)
{
    static const char SQL[] = "SELECT num, run_retention_ms FROM tenants"
                              " WHERE run_retention_ms IS NOT NULL AND num > $1"
                              " ORDER BY num LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after));
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret_tenant = db_int(rows, 0);
        *ret_retention_ms = db_int(rows, 1);
    }
    return db_rows_end(rows);
}

/* One that an open job waits for counts as not ended: its result is still to be taken. */
static enum err find_end(struct db *db, int64_t run, bool *ret_found, int64_t *ret_finished_at)
{
    static const char SQL[] =
        "SELECT CASE WHEN r.parent_run IS NOT NULL AND EXISTS (SELECT 1 FROM jobs j"
        " WHERE j.run = r.parent_run AND j.ordinal = r.parent_ordinal AND j.child = r.id"
        " AND j.finished_at IS NULL) THEN NULL ELSE r.finished_at END"
        " FROM runs r WHERE r.num = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run));
    *ret_found = db_next(rows);
    if (*ret_found)
        *ret_finished_at = db_int_or(rows, 0, -1);
    return db_rows_end(rows);
}

enum err retention_next_run(struct db *db, int64_t tenant, int64_t after, bool *ret_found,
                            int64_t *ret_run, int64_t *ret_finished_at)
{
    struct run_walk walk = {.tenant = tenant, .from = after};
    size_t count = 0;
    *ret_found = false;
    enum err e = run_blocks_list(db, &walk, ret_run, 1, &count);
    while (e == ERR_OK && count > 0 && !*ret_found) {
        e = find_end(db, *ret_run, ret_found, ret_finished_at);
        walk.from = *ret_run;
        if (e == ERR_OK && !*ret_found)
            e = run_blocks_list(db, &walk, ret_run, 1, &count);
    }
    return e;
}

/* What hangs on a run, each by its own number within it. */
static const char *const PARTS[] = {
    "UPDATE runs SET first_seq = NULL, first_events = NULL, first_queue = NULL, first_due = NULL "
    "WHERE num = $1"
    " AND (first_events IS NOT NULL OR first_queue IS NOT NULL) AND $2 > 0",
    "DELETE FROM timeline WHERE run = $1 AND seq IN"
    " (SELECT seq FROM timeline WHERE run = $1 ORDER BY seq LIMIT $2)",
    "DELETE FROM checkpoints WHERE run = $1 AND (ordinal, seq) IN (SELECT ordinal, seq"
    " FROM checkpoints WHERE run = $1 ORDER BY ordinal, seq LIMIT $2)",
    "DELETE FROM suspensions WHERE run = $1 AND ordinal IN"
    " (SELECT ordinal FROM suspensions WHERE run = $1 ORDER BY ordinal LIMIT $2)",
    "DELETE FROM jobs WHERE run = $1 AND ordinal IN"
    " (SELECT ordinal FROM jobs WHERE run = $1 ORDER BY ordinal LIMIT $2)",
    "DELETE FROM approvals WHERE run = $1 AND ordinal IN"
    " (SELECT ordinal FROM approvals WHERE run = $1 ORDER BY ordinal LIMIT $2)",
    "DELETE FROM approval_votes WHERE run = $1 AND (ordinal, actor) IN (SELECT ordinal, actor"
    " FROM approval_votes WHERE run = $1 ORDER BY ordinal, actor LIMIT $2)",
    "DELETE FROM run_signals WHERE run = $1 AND seq IN"
    " (SELECT seq FROM run_signals WHERE run = $1 ORDER BY seq LIMIT $2)",
    "DELETE FROM dedup WHERE owner = $1 AND num IN"
    " (SELECT num FROM dedup WHERE owner = $1 ORDER BY num LIMIT $2)",
    "DELETE FROM dedup_windows WHERE owner IN"
    " (SELECT owner FROM dedup_windows WHERE owner = $1 LIMIT $2)",
    "DELETE FROM map_items WHERE run = $1 AND step IN"
    " (SELECT step FROM map_items WHERE run = $1 ORDER BY step LIMIT $2)",
    "DELETE FROM run_children WHERE parent = (SELECT parent_run FROM runs WHERE num = $1)"
    " AND run = $1 AND $2 > 0",
    "DELETE FROM run_reruns WHERE rerun_of = (SELECT rerun_of FROM runs WHERE num = $1)"
    " AND run = $1 AND $2 > 0",
};

enum err retention_remove(struct db *db, int64_t tenant, int64_t run, int64_t rows,
                          int64_t *ret_removed, bool *ret_gone)
{
    static const char SQL_RUN[] = "DELETE FROM runs WHERE num = $1 AND tenant = $2";
    int64_t left = rows;
    enum err e = db_flush(db);
    if (e == ERR_OK)
        row_cache_clear(db_row_cache(db));
    for (size_t i = 0; i < ARRAY_LEN(PARTS) && e == ERR_OK && left > 0; i++) {
        int64_t changed = 0;
        e = DB_EXEC(db, PARTS[i], &changed, DB_I(run), DB_I(left));
        left -= changed;
    }
    if (e != ERR_OK)
        return e;
    *ret_gone = left > 0;
    *ret_removed = rows - left + *ret_gone;
    if (!*ret_gone)
        return ERR_OK;
    e = run_blocks_remove(db, tenant, run);
    return e == ERR_OK ? DB_EXEC(db, SQL_RUN, NULL, DB_I(run), DB_I(tenant)) : e;
}

enum err retention_has_begun(struct db *db, int64_t run, bool *ret)
{
    /* Events go first, and of those the one that tells of the run's making. */
    int64_t first = 0;
    enum err e = events_first(db, run, &first);
    *ret = first != 1;
    return e;
}
