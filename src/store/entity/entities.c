/* Entity types, their versions and entities as rows. */
#include "store/entity/entities.h"

#include "store/columns.h"

/* --- types --- */

#define TYPE_COLUMNS(X, p)                         \
    X(p, 1, INT, tenant, tenant)                   \
    X(p, 2, TEXT, id, id)                          \
    X(p, 3, COUNT, latest_version, latest_version) \
    X(p, 4, TIME, created_at, created_at)          \
    X(p, 5, TIME, updated_at, updated_at)
COLUMNS_NUMBERED(TYPE_COLUMNS, TYPE);

#define SELECT_TYPES COLUMNS_SELECT(TYPE_COLUMNS, "") ", num FROM entity_types"
#define INSERT_TYPE                                          \
    COLUMNS_INSERT_WITH("entity_types", TYPE_COLUMNS, "num", \
                        COLUMNS_NEXT_NUM("entity_types", "$6", "$7"))

static void read_type(struct db_rows *rows, struct entity_type *t)
{
    *t = (struct entity_type){TYPE_COLUMNS(COLUMN_READ, rows)};
    t->num = db_count(rows, TYPE_COLUMNS_END);
}

COLUMNS_READ_ONE(read_one_type, struct entity_type, TYPE_COLUMNS, read_type);

enum err entity_types_find(struct db *db, int64_t tenant, struct str id, struct arena *arena,
                           bool *ret_found, struct entity_type *ret)
{
    static const char SQL[] = SELECT_TYPES " WHERE tenant = $1 AND id = $2";
    return read_one_type(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id)), arena, ret_found, ret);
}

enum err entity_types_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                               struct entity_type *ret)
{
    static const char SQL[] = SELECT_TYPES " WHERE num = $1";
    return read_one_type(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

enum err entity_types_insert(struct db *db, struct entity_type *t)
{
    static const char SQL[] = INSERT_TYPE " RETURNING num";
    struct db_rows *rows = DB_QUERY(db, SQL, TYPE_COLUMNS(COLUMN_BIND, t) COLUMNS_NUMBERS(db));
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
    static const char SQL[] = SELECT_TYPES " WHERE tenant = $1"
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

#define VERSION_COLUMNS(X, p)                                        \
    X(p, 1, INT, type, type)                                         \
    X(p, 2, COUNT, version, version)                                 \
    X(p, 3, TEXT, queue, rules.queue)                                \
    X(p, 4, TEXT, handler, rules.handler)                            \
    X(p, 5, COUNT, dedup_window_ms, rules.dedup_window_ms)           \
    X(p, 6, COUNT, dedup_max_keys, rules.dedup_max_keys)             \
    X(p, 7, COUNT, rollover_events, rules.rollover_events)           \
    X(p, 8, COUNT_OR_NONE, keep_generations, rules.keep_generations) \
    X(p, 9, COUNT, max_inbox, rules.max_inbox)                       \
    X(p, 10, COUNT, max_batch, rules.max_batch)                      \
    X(p, 11, COUNT, max_attempts, rules.max_attempts)                \
    X(p, 12, COUNT, backoff_ms, rules.backoff_ms)                    \
    X(p, 13, COUNT, max_backoff_ms, rules.max_backoff_ms)            \
    X(p, 14, TEXT, created_by, created_by)                           \
    X(p, 15, TIME, created_at, created_at)                           \
    X(p, 16, TIME, updated_at, updated_at)
COLUMNS_NUMBERED(VERSION_COLUMNS, VERSION);

#define SELECT_VERSIONS COLUMNS_SELECT(VERSION_COLUMNS, "") " FROM entity_type_versions"
#define INSERT_VERSION COLUMNS_INSERT("entity_type_versions", VERSION_COLUMNS)

static void read_version(struct db_rows *rows, struct entity_version *v)
{
    *v = (struct entity_version){VERSION_COLUMNS(COLUMN_READ, rows)};
    const struct entity_rules *r = &v->rules;
    if (r->dedup_window_ms < 1 || r->dedup_max_keys < 1 || r->rollover_events < 1 ||
        r->max_batch < 1)
        db_damaged(rows, VERSION_AT_dedup_window_ms);
}

COLUMNS_READ_ONE(read_one_version, struct entity_version, VERSION_COLUMNS, read_version);

enum err entity_versions_find(struct db *db, int64_t type, int64_t version, struct arena *arena,
                              bool *ret_found, struct entity_version *ret)
{
    static const char SQL[] = SELECT_VERSIONS " WHERE type = $1 AND version = $2";
    return read_one_version(DB_QUERY(db, SQL, DB_I(type), DB_I(version)), arena, ret_found, ret);
}

enum err entity_versions_put(struct db *db, const struct entity_version *v)
{
    static const char SQL[] = INSERT_VERSION
        " ON CONFLICT (type, version) DO UPDATE SET"
        " queue = excluded.queue, handler = excluded.handler,"
        " dedup_window_ms = excluded.dedup_window_ms, dedup_max_keys = excluded.dedup_max_keys,"
        " rollover_events = excluded.rollover_events,"
        " keep_generations = excluded.keep_generations, max_inbox = excluded.max_inbox,"
        " max_batch = excluded.max_batch, max_attempts = excluded.max_attempts,"
        " backoff_ms = excluded.backoff_ms, max_backoff_ms = excluded.max_backoff_ms,"
        " updated_at = excluded.updated_at";
    return DB_EXEC(db, SQL, NULL, VERSION_COLUMNS(COLUMN_BIND, v));
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
    static const char SQL[] = SELECT_VERSIONS " WHERE type = $1"
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

#define ENTITY_COLUMNS(X, p)                        \
    X(p, 1, COUNT, num, num)                        \
    X(p, 2, UUID, id, id)                           \
    X(p, 3, INT, tenant, tenant)                    \
    X(p, 4, INT, type, type)                        \
    X(p, 5, TEXT, name, name)                       \
    X(p, 6, COUNT, type_version, type_version)      \
    X(p, 7, COUNT, version, version)                \
    X(p, 8, COUNT, generation, generation)          \
    X(p, 9, COUNT, last_seq, last_seq)              \
    X(p, 10, COUNT, consumed_seq, consumed_seq)     \
    X(p, 11, COUNT_OR_NONE, given_seq, given_seq)   \
    X(p, 12, COUNT, last_event, last_event)         \
    X(p, 13, COUNT, rolled_event, rolled_event)     \
    X(p, 14, COUNT, calls, calls)                   \
    X(p, 15, COUNT_OR_NONE, open_job, open_job)     \
    X(p, 16, TIME_OR_NONE, timer_at, timer_at)      \
    X(p, 17, COUNT_OR_NONE, migrate_to, migrate_to) \
    X(p, 18, TIME, created_at, created_at)          \
    X(p, 19, TIME, active_at, active_at)            \
    X(p, 20, TIME_OR_NONE, finished_at, finished_at)
COLUMNS_NUMBERED(ENTITY_COLUMNS, ENTITY);

#define SELECT_ENTITIES COLUMNS_SELECT(ENTITY_COLUMNS, "") " FROM entities"

static void read_row(struct db_rows *rows, struct entity *x)
{
    *x = (struct entity){ENTITY_COLUMNS(COLUMN_READ, rows)};
    if (x->consumed_seq > x->last_seq || x->given_seq > x->last_seq)
        db_damaged(rows, ENTITY_AT_last_seq);
    if (x->rolled_event > x->last_event)
        db_damaged(rows, ENTITY_AT_last_event);
}

COLUMNS_READ_ONE(read_one, struct entity, ENTITY_COLUMNS, read_row);

enum err entities_last_num(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(num), 0) FROM (SELECT MAX(num) AS num"
                              " FROM entities UNION ALL SELECT MAX(entity) FROM entity_sweeps)"
                              " AS nums";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err entities_find(struct db *db, int64_t type, struct str name, struct arena *arena,
                       bool *ret_found, struct entity *ret)
{
    static const char SQL[] = SELECT_ENTITIES " WHERE type = $1 AND name = $2";
    return read_one(DB_QUERY(db, SQL, DB_I(type), DB_T(name)), arena, ret_found, ret);
}

enum err entities_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                           struct entity *ret)
{
    static const char SQL[] = SELECT_ENTITIES " WHERE num = $1";
    return read_one(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

enum err entities_insert(struct db *db, const struct entity *x)
{
    static const char SQL[] = COLUMNS_INSERT("entities", ENTITY_COLUMNS);
    return DB_EXEC(db, SQL, NULL, ENTITY_COLUMNS(COLUMN_BIND, x));
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
    static const char SQL_ALL[] = SELECT_ENTITIES " WHERE type = $1 AND name > $2"
                                                  " ORDER BY name LIMIT $3";
    static const char SQL_OF_VERSION[] =
        SELECT_ENTITIES " WHERE type = $1 AND name > $2"
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
