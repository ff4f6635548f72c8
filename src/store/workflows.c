/* Workflows and their versions as rows. */
#include "store/workflows.h"

#define HEAD_COLUMNS "id, latest_version, description, archived_at, created_at, updated_at"
#define VERSION_COLUMNS "version, digest, definition, created_at, created_by"

static enum err each_head(struct db_rows *rows, workflow_head_each *each, void *ctx)
{
    while (db_next(rows)) {
        struct workflow_head head = {
            .id = db_str(rows, 0),
            .latest_version = db_count(rows, 1),
            .description = db_str(rows, 2),
            .archived_at = db_time_or(rows, 3, -1),
            .created_at = db_time(rows, 4),
            .updated_at = db_time(rows, 5),
        };
        each(ctx, &head);
    }
    return db_rows_end(rows);
}

static enum err each_version(struct db_rows *rows, workflow_version_each *each, void *ctx)
{
    while (db_next(rows)) {
        struct workflow_version version = {
            .version = db_count(rows, 0),
            .digest = db_hash(rows, 1),
            .definition = db_str(rows, 2),
            .created_at = db_time(rows, 3),
            .created_by = db_str(rows, 4),
        };
        if (db_is_whole(rows))
            each(ctx, &version);
    }
    return db_rows_end(rows);
}

enum err workflows_find(struct db *db, int64_t tenant, struct str id, workflow_head_each *each,
                        void *ctx)
{
    static const char SQL[] =
        "SELECT " HEAD_COLUMNS " FROM workflows WHERE tenant = $1 AND id = $2";
    return each_head(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id)), each, ctx);
}

enum err workflows_list(struct db *db, int64_t tenant, struct str after, int64_t limit,
                        workflow_head_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " HEAD_COLUMNS " FROM workflows"
                              " WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3";
    struct str from = after.ptr != NULL ? after : STR("");
    return each_head(DB_QUERY(db, SQL, DB_I(tenant), DB_T(from), DB_I(limit)), each, ctx);
}

enum err workflows_put(struct db *db, int64_t tenant, const struct workflow_head *head)
{
    static const char SQL[] =
        "INSERT INTO workflows (tenant, id, latest_version, description, archived_at, created_at,"
        " updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)"
        " ON CONFLICT (tenant, id) DO UPDATE SET latest_version = excluded.latest_version,"
        " description = excluded.description, archived_at = excluded.archived_at,"
        " updated_at = excluded.updated_at";
    return DB_EXEC(db, SQL, NULL, DB_I(tenant), DB_T(head->id), DB_I(head->latest_version),
                   DB_T(head->description), DB_I_OR_NULL(head->archived_at), DB_I(head->created_at),
                   DB_I(head->updated_at));
}

enum err workflows_archive(struct db *db, int64_t tenant, struct str id, int64_t now_ms,
                           bool *ret_changed)
{
    static const char SQL[] = "UPDATE workflows SET archived_at = $3, updated_at = $3"
                              " WHERE tenant = $1 AND id = $2 AND archived_at IS NULL";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(tenant), DB_T(id), DB_I(now_ms));
    *ret_changed = changed > 0;
    return e;
}

enum err workflows_add_version(struct db *db, int64_t tenant, struct str id,
                               const struct workflow_version *v)
{
    static const char SQL[] =
        "INSERT INTO workflow_versions (tenant, workflow_id, version, digest, definition,"
        " created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    return DB_EXEC(db, SQL, NULL, DB_I(tenant), DB_T(id), DB_I(v->version), DB_H(v->digest),
                   DB_T(v->definition), DB_I(v->created_at), DB_T(v->created_by));
}

enum err workflows_find_version(struct db *db, int64_t tenant, struct str id, int64_t version,
                                workflow_version_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " VERSION_COLUMNS " FROM workflow_versions"
                              " WHERE tenant = $1 AND workflow_id = $2 AND version = $3";
    return each_version(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id), DB_I(version)), each, ctx);
}

enum err workflows_list_versions(struct db *db, int64_t tenant, struct str id, int64_t before,
                                 int64_t limit, workflow_version_each *each, void *ctx)
{
    static const char SQL[] =
        "SELECT " VERSION_COLUMNS " FROM workflow_versions"
        " WHERE tenant = $1 AND workflow_id = $2 AND version < $3 ORDER BY version DESC LIMIT $4";
    return each_version(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id), DB_I(before), DB_I(limit)), each,
                        ctx);
}
