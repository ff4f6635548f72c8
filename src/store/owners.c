/* The owner of a timeline: a run or an entity. */
#include "store/owners.h"

bool owner_read(struct db_rows *rows, int column, struct owner *ret)
{
    enum { RUN_ID, WORKFLOW, VERSION, ENTITY_ID, TYPE, NAME };
    if (!db_is_null(rows, column + RUN_ID)) {
        *ret = (struct owner){.id = db_uuid(rows, column + RUN_ID),
                              .workflow_id = db_str(rows, column + WORKFLOW),
                              .workflow_version = db_int(rows, column + VERSION)};
        return true;
    }
    if (db_is_null(rows, column + ENTITY_ID) || db_is_null(rows, column + TYPE))
        return false;
    *ret = (struct owner){.is_entity = true,
                          .id = db_uuid(rows, column + ENTITY_ID),
                          .type = db_str(rows, column + TYPE),
                          .name = db_str(rows, column + NAME)};
    return true;
}

bool owner_keep(struct owner *owner, struct arena *arena)
{
    struct str *const texts[] = {&owner->workflow_id, &owner->type, &owner->name};
    bool kept = true;
    for (size_t i = 0; i < ARRAY_LEN(texts) && kept; i++)
        kept = arena_keep(arena, texts[i]);
    return kept;
}

enum err owners_find(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                     struct owner *ret)
{
    static const char SQL[] =
        "SELECT " OWNER_COLUMNS " FROM (SELECT CAST($1 AS BIGINT) AS run) AS f" OWNER_JOINS;
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(num));
    bool kept = true;
    *ret_found = db_next(rows) && owner_read(rows, 0, ret);
    if (*ret_found)
        kept = owner_keep(ret, arena);
    enum err e = db_rows_end(rows);
    return e == ERR_OK && !kept ? ERR_NO_MEMORY : e;
}
