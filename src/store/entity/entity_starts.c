/* Runs that an entity's handler asked to start, as rows. */
#include "store/entity/entity_starts.h"

#include "store/columns.h"

#define START_COLUMNS(X, p)                 \
    X(p, 1, INT, entity, entity)            \
    X(p, 2, TEXT, workflow_id, workflow_id) \
    X(p, 3, TEXT, input, input)             \
    X(p, 4, TEXT, labels, labels)           \
    X(p, 5, TEXT, key, key)
#define START_PROGRESS(X, p) \
    X(p, 6, INT, num, num)   \
    X(p, 7, INT, tries, tries)
#define ALL_COLUMNS(X, p) START_COLUMNS(X, p) START_PROGRESS(X, p)
COLUMNS_NUMBERED(ALL_COLUMNS, START);
#define SELECT_STARTS COLUMNS_SELECT(ALL_COLUMNS, "") " FROM entity_starts"

enum err entity_starts_insert(struct db *db, const struct entity_start *s)
{
    static const char SQL[] = COLUMNS_INSERT_WITH(
        "entity_starts", START_COLUMNS, "tries, num",
        "0, (SELECT COALESCE(MAX(num), 0) + 1 FROM entity_starts WHERE entity = $1)");
    return DB_EXEC(db, SQL, NULL, START_COLUMNS(COLUMN_BIND, s));
}

enum err entity_starts_any(struct db *db, int64_t entity, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM entity_starts WHERE entity = $1 LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity));
    *ret = db_next(rows);
    return db_rows_end(rows);
}

static void read_row(struct db_rows *rows, struct entity_start *s)
{
    *s = (struct entity_start){ALL_COLUMNS(COLUMN_READ, rows)};
}

COLUMNS_READ_ONE(read_one, struct entity_start, ALL_COLUMNS, read_row);

enum err entity_starts_first(struct db *db, int64_t entity, struct arena *arena, bool *ret_found,
                             struct entity_start *ret)
{
    static const char SQL[] = SELECT_STARTS " WHERE entity = $1 ORDER BY num LIMIT 1";
    return read_one(DB_QUERY(db, SQL, DB_I(entity)), arena, ret_found, ret);
}

enum err entity_starts_tried(struct db *db, const struct entity_start *s)
{
    static const char SQL[] = "UPDATE entity_starts SET tries = $3 WHERE entity = $1 AND num = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(s->entity), DB_I(s->num), DB_I(s->tries));
}

enum err entity_starts_remove(struct db *db, int64_t entity, int64_t num)
{
    static const char SQL[] = "DELETE FROM entity_starts WHERE entity = $1 AND num = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(num));
}
