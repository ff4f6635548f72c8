/* Generations of entities as rows. */
#include "store/entity/generations.h"

#include "store/columns.h"

#define GENERATION_COLUMNS(X, p)               \
    X(p, 1, INT, entity, entity)               \
    X(p, 2, COUNT, generation, generation)     \
    X(p, 3, COUNT, type_version, type_version) \
    X(p, 4, TEXT, reason, reason)              \
    X(p, 5, TEXT, state, state)                \
    X(p, 6, COUNT, version, version)           \
    X(p, 7, COUNT, consumed_seq, consumed_seq) \
    X(p, 8, TEXT, timers, timers)              \
    X(p, 9, TEXT, dedup, dedup)                \
    X(p, 10, COUNT, first_event, first_event)  \
    X(p, 11, COUNT, first_call, first_call)    \
    X(p, 12, TIME, at, at)
COLUMNS_NUMBERED(GENERATION_COLUMNS, GENERATION);
#define SELECT_GENERATIONS COLUMNS_SELECT(GENERATION_COLUMNS, "") " FROM entity_generations"

enum err generations_insert(struct db *db, const struct generation *g)
{
    static const char SQL[] = COLUMNS_INSERT("entity_generations", GENERATION_COLUMNS);
    return DB_EXEC(db, SQL, NULL, GENERATION_COLUMNS(COLUMN_BIND, g));
}

enum err generations_list(struct db *db, int64_t entity, int64_t before, int64_t limit,
                          generation_each *each, void *ctx)
{
    static const char SQL[] = SELECT_GENERATIONS " WHERE entity = $1 AND generation < $2"
                                                 " ORDER BY generation DESC LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity), DB_I(before), DB_I(limit));
    bool more = true;
    while (more && db_next(rows)) {
        struct generation g = {GENERATION_COLUMNS(COLUMN_READ, rows)};
        more = each(ctx, &g);
    }
    return db_rows_end(rows);
}

enum err entity_sweeps_note(struct db *db, int64_t entity, int64_t through)
{
    static const char SQL[] =
        "INSERT INTO entity_sweeps (entity, through, deleted) VALUES ($1, $2, 0)"
        " ON CONFLICT (entity) DO UPDATE SET through = excluded.through";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(through));
}

enum err entity_sweeps_note_deleted(struct db *db, const struct entity *entity, int64_t now_ms)
{
    static const char SQL[] =
        "INSERT INTO entity_sweeps (entity, through, deleted, id, tenant, type, name, deleted_at)"
        " VALUES ($1, $2, 1, $3, $4, $5, $6, $7) ON CONFLICT (entity) DO UPDATE SET"
        " through = excluded.through, deleted = 1, id = excluded.id, tenant = excluded.tenant,"
        " type = excluded.type, name = excluded.name, deleted_at = excluded.deleted_at";
    return DB_EXEC(db, SQL, NULL, DB_I(entity->num), DB_I(INT64_MAX), DB_U(entity->id),
                   DB_I(entity->tenant), DB_I(entity->type), DB_T(entity->name), DB_I(now_ms));
}
