/* Checkpoints as rows. */
#include "store/run/checkpoints.h"

#include "base/limits.h"
#include "store/columns.h"

#define CHECKPOINT_COLUMNS(X, p)     \
    X(p, 1, INT, run, run)           \
    X(p, 2, COUNT, ordinal, ordinal) \
    X(p, 3, COUNT, seq, seq)         \
    X(p, 4, TEXT, name, name)        \
    X(p, 5, COUNT, bytes, bytes)     \
    X(p, 6, TIME, at, at)            \
    X(p, 7, TEXT, output, output)    \
    X(p, 8, TEXT, error, error)
COLUMNS_NUMBERED(CHECKPOINT_COLUMNS, CHECKPOINT);

#define SELECT_CHECKPOINTS COLUMNS_SELECT(CHECKPOINT_COLUMNS, "") " FROM checkpoints"

enum err checkpoints_insert(struct db *db, const struct checkpoint *c)
{
    static const char SQL[] = COLUMNS_INSERT("checkpoints", CHECKPOINT_COLUMNS);
    assert(c->seq > 0 && (c->output.ptr == NULL) != (c->error.ptr == NULL));
    return DB_EXEC(db, SQL, NULL, CHECKPOINT_COLUMNS(COLUMN_BIND, c));
}

static void read_row(struct db_rows *rows, struct checkpoint *c)
{
    *c = (struct checkpoint){CHECKPOINT_COLUMNS(COLUMN_READ, rows)};
    if ((c->output.ptr == NULL) == (c->error.ptr == NULL))
        db_damaged(rows, CHECKPOINT_AT_output);
}

COLUMNS_READ_ONE(read_one, struct checkpoint, CHECKPOINT_COLUMNS, read_row);

enum err checkpoints_find(struct db *db, int64_t run, int64_t ordinal, struct str name,
                          struct arena *arena, bool *ret_found, struct checkpoint *ret)
{
    static const char SQL[] = SELECT_CHECKPOINTS " WHERE run = $1 AND ordinal = $2 AND name = $3";
    return read_one(DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal), DB_T(name)), arena, ret_found, ret);
}

enum err checkpoints_total(struct db *db, int64_t run, int64_t ordinal, int64_t *ret_count,
                           int64_t *ret_bytes)
{
    static const char SQL[] = "SELECT seq, bytes FROM checkpoints WHERE run = $1 AND ordinal = $2"
                              " ORDER BY seq DESC LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal));
    bool found = db_next(rows);
    *ret_count = found ? db_count(rows, 0) : 0;
    *ret_bytes = found ? db_count(rows, 1) : 0;
    return db_rows_end(rows);
}

enum err checkpoints_list(struct db *db, int64_t run, int64_t ordinal, checkpoint_each *each,
                          void *ctx)
{
    static const char SQL[] =
        SELECT_CHECKPOINTS " WHERE run = $1 AND ordinal = $2 ORDER BY seq LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal), DB_I(CHECKPOINTS_MAX));
    while (db_next(rows)) {
        struct checkpoint c;
        read_row(rows, &c);
        if (db_is_whole(rows))
            each(ctx, &c);
    }
    return db_rows_end(rows);
}
