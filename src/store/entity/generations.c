/* Generations of entities as rows. */
#include "store/entity/generations.h"

#define COLUMNS                                                                        \
    "entity, generation, type_version, reason, state, version, consumed_seq, timers, " \
    "dedup, first_event, first_call, at"

enum err generations_insert(struct db *db, const struct generation *g)
{
    static const char SQL[] = "INSERT INTO entity_generations (" COLUMNS ") VALUES"
                              " ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    return DB_EXEC(db, SQL, NULL, DB_I(g->entity), DB_I(g->generation), DB_I(g->type_version),
                   DB_T(g->reason), DB_T(g->state), DB_I(g->version), DB_I(g->consumed_seq),
                   DB_T(g->timers), DB_T(g->dedup), DB_I(g->first_event), DB_I(g->first_call),
                   DB_I(g->at));
}

enum err generations_list(struct db *db, int64_t entity, int64_t before, int64_t limit,
                          generation_each *each, void *ctx)
{
    static const char SQL[] =
        "SELECT " COLUMNS " FROM entity_generations WHERE entity = $1 AND generation < $2"
        " ORDER BY generation DESC LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity), DB_I(before), DB_I(limit));
    bool more = true;
    while (more && db_next(rows)) {
        struct generation g = {
            .entity = db_int(rows, 0),
            .generation = db_count(rows, 1),
            .type_version = db_count(rows, 2),
            .reason = db_str(rows, 3),
            .state = db_str(rows, 4),
            .version = db_count(rows, 5),
            .consumed_seq = db_count(rows, 6),
            .timers = db_str(rows, 7),
            .dedup = db_str(rows, 8),
            .first_event = db_count(rows, 9),
            .first_call = db_count(rows, 10),
            .at = db_time(rows, 11),
        };
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
