/* Types of entities and the entities themselves as rows. */
#include "store/entity/entities.h"

/* --- types --- */

#define TYPE_COLUMNS "num, tenant, id, latest_version, created_at, updated_at"

static void read_type(struct db_rows *rows, struct entity_type *t)
{
    *t = (struct entity_type){
        .num = db_count(rows, 0),
        .tenant = db_int(rows, 1),
        .id = db_str(rows, 2),
        .latest_version = db_count(rows, 3),
        .created_at = db_time(rows, 4),
        .updated_at = db_time(rows, 5),
    };
}

static enum err read_one_type(struct db_rows *rows, struct arena *arena, bool *ret_found,
                              struct entity_type *ret)
{
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_type(rows, ret);
        full = !arena_keep(arena, &ret->id);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err entity_types_find(struct db *db, int64_t tenant, struct str id, struct arena *arena,
                           bool *ret_found, struct entity_type *ret)
{
    static const char SQL[] =
        "SELECT " TYPE_COLUMNS " FROM entity_types WHERE tenant = $1 AND id = $2";
    return read_one_type(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id)), arena, ret_found, ret);
}

enum err entity_types_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                               struct entity_type *ret)
{
    static const char SQL[] = "SELECT " TYPE_COLUMNS " FROM entity_types WHERE num = $1";
    return read_one_type(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

enum err entity_types_insert(struct db *db, struct entity_type *t)
{
    static const char SQL[] =
        "INSERT INTO entity_types (num, tenant, id, latest_version, created_at, updated_at)"
        " SELECT COALESCE(MAX(num), 0) + 1, $1, $2, $3, $4, $5 FROM entity_types RETURNING num";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(t->tenant), DB_T(t->id), DB_I(t->latest_version),
                                    DB_I(t->created_at), DB_I(t->updated_at));
    while (db_next(rows))
        t->num = db_int(rows, 0);
    return db_rows_end(rows);
}

enum err entity_types_update(struct db *db, const struct entity_type *t)
{
    static const char SQL[] =
        "UPDATE entity_types SET latest_version = $2, updated_at = $3 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(t->num), DB_I(t->latest_version), DB_I(t->updated_at));
}

enum err entity_types_list(struct db *db, int64_t tenant, struct str after, int64_t limit,
                           entity_type_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " TYPE_COLUMNS " FROM entity_types WHERE tenant = $1"
                              " AND id > $2 ORDER BY id LIMIT $3";
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_I(tenant), DB_T(after.ptr != NULL ? after : STR("")), DB_I(limit));
    bool more = true;
    while (more && db_next(rows)) {
        struct entity_type type;
        read_type(rows, &type);
        more = each(ctx, &type);
    }
    return db_rows_end(rows);
}

#define VERSION_COLUMNS                                                                  \
    "type, version, queue, handler, dedup_window_ms, dedup_max_keys, rollover_events, "  \
    "keep_generations, max_inbox, max_batch, max_attempts, backoff_ms, max_backoff_ms, " \
    "created_by, created_at, updated_at"

static void read_version(struct db_rows *rows, struct entity_version *v)
{
    *v = (struct entity_version){
        .type = db_int(rows, 0),
        .version = db_count(rows, 1),
        .rules =
            {
                .queue = db_str(rows, 2),
                .handler = db_str(rows, 3),
                .dedup_window_ms = db_count(rows, 4),
                .dedup_max_keys = db_count(rows, 5),
                .rollover_events = db_count(rows, 6),
                .keep_generations = db_count_or(rows, 7, -1),
                .max_inbox = db_count(rows, 8),
                .max_batch = db_count(rows, 9),
                .max_attempts = db_count(rows, 10),
                .backoff_ms = db_count(rows, 11),
                .max_backoff_ms = db_count(rows, 12),
            },
        .created_by = db_str(rows, 13),
        .created_at = db_time(rows, 14),
        .updated_at = db_time(rows, 15),
    };
    const struct entity_rules *r = &v->rules;
    if (r->dedup_window_ms < 1 || r->dedup_max_keys < 1 || r->rollover_events < 1 ||
        r->max_batch < 1)
        db_damaged(rows, 4);
}

enum err entity_versions_find(struct db *db, int64_t type, int64_t version, struct arena *arena,
                              bool *ret_found, struct entity_version *ret)
{
    static const char SQL[] =
        "SELECT " VERSION_COLUMNS " FROM entity_type_versions WHERE type = $1 AND version = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(type), DB_I(version));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_version(rows, ret);
        full = !(arena_keep(arena, &ret->rules.queue) && arena_keep(arena, &ret->rules.handler) &&
                 arena_keep(arena, &ret->created_by));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err entity_versions_put(struct db *db, const struct entity_version *v)
{
    static const char SQL[] =
        "INSERT INTO entity_type_versions (" VERSION_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6,"
        " $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT (type, version) DO UPDATE SET"
        " queue = excluded.queue, handler = excluded.handler,"
        " dedup_window_ms = excluded.dedup_window_ms, dedup_max_keys = excluded.dedup_max_keys,"
        " rollover_events = excluded.rollover_events,"
        " keep_generations = excluded.keep_generations, max_inbox = excluded.max_inbox,"
        " max_batch = excluded.max_batch, max_attempts = excluded.max_attempts,"
        " backoff_ms = excluded.backoff_ms, max_backoff_ms = excluded.max_backoff_ms,"
        " updated_at = excluded.updated_at";
    const struct entity_rules *r = &v->rules;
    return DB_EXEC(db, SQL, NULL, DB_I(v->type), DB_I(v->version), DB_T(r->queue), DB_T(r->handler),
                   DB_I(r->dedup_window_ms), DB_I(r->dedup_max_keys), DB_I(r->rollover_events),
                   DB_I_OR_NULL(r->keep_generations), DB_I(r->max_inbox), DB_I(r->max_batch),
                   DB_I(r->max_attempts), DB_I(r->backoff_ms), DB_I(r->max_backoff_ms),
                   DB_T(v->created_by), DB_I(v->created_at), DB_I(v->updated_at));
}

enum err entity_versions_requeued(struct db *db, int64_t type, int64_t version, struct str through)
{
    static const char SQL[] =
        "UPDATE entity_type_versions SET requeued = $3 WHERE type = $1 AND version = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(type), DB_I(version), DB_T(through));
}

enum err entity_versions_requeue(struct db *db, int64_t type, int64_t version)
{
    return entity_versions_requeued(db, type, version, STR(""));
}

enum err entity_versions_requeueing(struct db *db, struct arena *arena, bool *ret_found,
                                    int64_t *ret_type, int64_t *ret_version,
                                    struct str *ret_through)
{
    static const char SQL[] = "SELECT type, version, requeued FROM entity_type_versions"
                              " WHERE requeued IS NOT NULL ORDER BY type, version LIMIT 1";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret_type = db_int(rows, 0);
        *ret_version = db_int(rows, 1);
        *ret_through = db_str(rows, 2);
        full = !arena_keep(arena, ret_through);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err entity_versions_list(struct db *db, int64_t type, int64_t limit, entity_version_each *each,
                              void *ctx)
{
    static const char SQL[] = "SELECT " VERSION_COLUMNS " FROM entity_type_versions WHERE type = $1"
                              " ORDER BY version DESC LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(type), DB_I(limit));
    while (db_next(rows)) {
        struct entity_version version;
        read_version(rows, &version);
        each(ctx, &version);
    }
    return db_rows_end(rows);
}

/* --- entities --- */

#define COLUMNS                                                                      \
    "num, id, tenant, type, name, type_version, version, generation, last_seq, "     \
    "consumed_seq, given_seq, last_event, rolled_event, calls, open_job, timer_at, " \
    "migrate_to, created_at, active_at, finished_at"

static void read_row(struct db_rows *rows, struct entity *x)
{
    *x = (struct entity){
        .num = db_count(rows, 0),
        .id = db_uuid(rows, 1),
        .tenant = db_int(rows, 2),
        .type = db_int(rows, 3),
        .name = db_str(rows, 4),
        .type_version = db_count(rows, 5),
        .version = db_count(rows, 6),
        .generation = db_count(rows, 7),
        .last_seq = db_count(rows, 8),
        .consumed_seq = db_count(rows, 9),
        .given_seq = db_count_or(rows, 10, -1),
        .last_event = db_count(rows, 11),
        .rolled_event = db_count(rows, 12),
        .calls = db_count(rows, 13),
        .open_job = db_count_or(rows, 14, -1),
        .timer_at = db_time_or(rows, 15, -1),
        .migrate_to = db_count_or(rows, 16, -1),
        .created_at = db_time(rows, 17),
        .active_at = db_time(rows, 18),
        .finished_at = db_time_or(rows, 19, -1),
    };
    if (x->consumed_seq > x->last_seq || x->given_seq > x->last_seq)
        db_damaged(rows, 8);
    if (x->rolled_event > x->last_event)
        db_damaged(rows, 11);
}

enum err entities_last_num(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(num), 0) FROM (SELECT MAX(num) AS num"
                              " FROM entities UNION ALL SELECT MAX(entity) FROM entity_sweeps)"
                              " AS nums";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

static enum err read_one(struct db_rows *rows, struct arena *arena, bool *ret_found,
                         struct entity *ret)
{
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_row(rows, ret);
        full = !arena_keep(arena, &ret->name);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err entities_find(struct db *db, int64_t type, struct str name, struct arena *arena,
                       bool *ret_found, struct entity *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM entities WHERE type = $1 AND name = $2";
    return read_one(DB_QUERY(db, SQL, DB_I(type), DB_T(name)), arena, ret_found, ret);
}

enum err entities_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                           struct entity *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM entities WHERE num = $1";
    return read_one(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

enum err entities_insert(struct db *db, const struct entity *x)
{
    static const char SQL[] =
        "INSERT INTO entities (" COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,"
        " $12, $13, $14, $15, $16, $17, $18, $19, $20)";
    return DB_EXEC(db, SQL, NULL, DB_I(x->num), DB_U(x->id), DB_I(x->tenant), DB_I(x->type),
                   DB_T(x->name), DB_I(x->type_version), DB_I(x->version), DB_I(x->generation),
                   DB_I(x->last_seq), DB_I(x->consumed_seq), DB_I_OR_NULL(x->given_seq),
                   DB_I(x->last_event), DB_I(x->rolled_event), DB_I(x->calls),
                   DB_I_OR_NULL(x->open_job), DB_I_OR_NULL(x->timer_at),
                   DB_I_OR_NULL(x->migrate_to), DB_I(x->created_at), DB_I(x->active_at),
                   DB_I_OR_NULL(x->finished_at));
}

enum err entities_update(struct db *db, const struct entity *x, int64_t read_version,
                         int64_t read_event)
{
    static const char SQL[] =
        "UPDATE entities SET version = $4, generation = $5, last_seq = $6, consumed_seq = $7,"
        " given_seq = $8, last_event = $9, rolled_event = $10, calls = $11, open_job = $12,"
        " timer_at = $13, migrate_to = $14, active_at = $15, finished_at = $16"
        " WHERE num = $1 AND version = $2 AND last_event = $3";
    int64_t changed = 0;
    enum err e =
        DB_EXEC(db, SQL, &changed, DB_I(x->num), DB_I(read_version), DB_I(read_event),
                DB_I(x->version), DB_I(x->generation), DB_I(x->last_seq), DB_I(x->consumed_seq),
                DB_I_OR_NULL(x->given_seq), DB_I(x->last_event), DB_I(x->rolled_event),
                DB_I(x->calls), DB_I_OR_NULL(x->open_job), DB_I_OR_NULL(x->timer_at),
                DB_I_OR_NULL(x->migrate_to), DB_I(x->active_at), DB_I_OR_NULL(x->finished_at));
    return e == ERR_OK && changed != 1 ? ERR_CONCURRENCY : e;
}

enum err entities_pin(struct db *db, int64_t num, int64_t type_version)
{
    static const char SQL[] = "UPDATE entities SET type_version = $2 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(num), DB_I(type_version));
}

enum err entities_delete(struct db *db, int64_t num)
{
    static const char SQL[] = "DELETE FROM entities WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(num));
}

enum err entities_list(struct db *db, int64_t type, int64_t type_version, struct str after,
                       int64_t limit, entity_each *each, void *ctx)
{
    static const char SQL_ALL[] = "SELECT " COLUMNS " FROM entities WHERE type = $1 AND name > $2"
                                  " ORDER BY name LIMIT $3";
    static const char SQL_OF_VERSION[] =
        "SELECT " COLUMNS " FROM entities WHERE type = $1 AND name > $2"
        " AND type_version = $4 ORDER BY name LIMIT $3";
    struct str behind = after.ptr != NULL ? after : STR("");
    struct db_rows *rows = type_version < 0
                               ? DB_QUERY(db, SQL_ALL, DB_I(type), DB_T(behind), DB_I(limit))
                               : DB_QUERY(db, SQL_OF_VERSION, DB_I(type), DB_T(behind), DB_I(limit),
                                          DB_I(type_version));
    bool more = true;
    while (more && db_next(rows)) {
        struct entity entity;
        read_row(rows, &entity);
        more = db_skip_damaged(rows) || each(ctx, &entity);
    }
    return db_rows_end(rows);
}

/* --- state --- */

enum err entity_states_find(struct db *db, int64_t entity, struct arena *arena, bool *ret_found,
                            struct entity_state *ret)
{
    static const char SQL[] = "SELECT type_version, state FROM entity_states WHERE entity = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret = (struct entity_state){db_int(rows, 0), db_str(rows, 1)};
        full = !arena_keep(arena, &ret->state);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err entity_states_put(struct db *db, int64_t entity, const struct entity_state *s)
{
    static const char SQL[] =
        "INSERT INTO entity_states (entity, type_version, state) VALUES ($1, $2, $3)"
        " ON CONFLICT (entity) DO UPDATE SET type_version = excluded.type_version,"
        " state = excluded.state";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(s->type_version), DB_T(s->state));
}

enum err entity_states_delete(struct db *db, int64_t entity)
{
    static const char SQL[] = "DELETE FROM entity_states WHERE entity = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(entity));
}
