/* Runs that answers of entities want to be started, as rows. */
#include "store/entity/entity_starts.h"

enum err entity_starts_insert(struct db *db, const struct entity_start *s)
{
    static const char SQL[] =
        "INSERT INTO entity_starts (entity, num, workflow_id, input, labels, key, tries)"
        " SELECT $1, COALESCE(MAX(num), 0) + 1, $2, $3, $4, $5, 0 FROM entity_starts"
        " WHERE entity = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(s->entity), DB_T(s->workflow_id), DB_T(s->input),
                   DB_T(s->labels), DB_T(s->key));
}

enum err entity_starts_any(struct db *db, int64_t entity, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM entity_starts WHERE entity = $1 LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity));
    *ret = db_next(rows);
    return db_rows_end(rows);
}

enum err entity_starts_first(struct db *db, int64_t entity, struct arena *arena, bool *ret_found,
                             struct entity_start *ret)
{
    static const char SQL[] =
        "SELECT entity, num, workflow_id, input, labels, key, tries FROM entity_starts"
        " WHERE entity = $1 ORDER BY num LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret = (struct entity_start){db_int(rows, 0), db_int(rows, 1), db_str(rows, 2),
                                     db_str(rows, 3), db_str(rows, 4), db_str(rows, 5),
                                     db_int(rows, 6)};
        full = !(arena_keep(arena, &ret->workflow_id) && arena_keep(arena, &ret->input) &&
                 arena_keep(arena, &ret->labels) && arena_keep(arena, &ret->key));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
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
