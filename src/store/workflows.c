/* Workflows and their versions as rows. */
#include "store/workflows.h"

#include "store/columns.h"

#define HEAD_COLUMNS(X, p)                          \
    X(p, 1, TEXT, id, id)                           \
    X(p, 2, COUNT, latest_version, latest_version)  \
    X(p, 3, TEXT, description, description)         \
    X(p, 4, TIME_OR_NONE, archived_at, archived_at) \
    X(p, 5, TIME, created_at, created_at)           \
    X(p, 6, TIME, updated_at, updated_at)
COLUMNS_NUMBERED(HEAD_COLUMNS, HEAD);

#define VERSION_COLUMNS(X, p)             \
    X(p, 1, COUNT, version, version)      \
    X(p, 2, HASH, digest, digest)         \
    X(p, 3, TEXT, definition, definition) \
    X(p, 4, TIME, created_at, created_at) \
    X(p, 5, TEXT, created_by, created_by)
COLUMNS_NUMBERED(VERSION_COLUMNS, VERSION);

#define SELECT_HEADS COLUMNS_SELECT(HEAD_COLUMNS, "") " FROM workflows"
#define INSERT_HEAD COLUMNS_INSERT_WITH("workflows", HEAD_COLUMNS, "tenant", "$7")
#define SELECT_VERSIONS COLUMNS_SELECT(VERSION_COLUMNS, "") " FROM workflow_versions"

static enum err each_head(struct db_rows *rows, workflow_head_each *each, void *ctx)
{
    while (db_next(rows)) {
        struct workflow_head head = {HEAD_COLUMNS(COLUMN_READ, rows)};
        each(ctx, &head);
    }
    return db_rows_end(rows);
}

static enum err each_version(struct db_rows *rows, workflow_version_each *each, void *ctx)
{
    while (db_next(rows)) {
        struct workflow_version version = {VERSION_COLUMNS(COLUMN_READ, rows)};
        if (db_is_whole(rows))
            each(ctx, &version);
    }
    return db_rows_end(rows);
}

enum err workflows_find(struct db *db, int64_t tenant, struct str id, workflow_head_each *each,
                        void *ctx)
{
    static const char SQL[] = SELECT_HEADS " WHERE tenant = $1 AND id = $2";
    return each_head(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id)), each, ctx);
}

enum err workflows_list(struct db *db, int64_t tenant, struct str after, int64_t limit,
                        workflow_head_each *each, void *ctx)
{
    static const char SQL[] = SELECT_HEADS ""
                                           " WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3";
    struct str from = after.ptr != NULL ? after : STR("");
    return each_head(DB_QUERY(db, SQL, DB_I(tenant), DB_T(from), DB_I(limit)), each, ctx);
}

enum err workflows_put(struct db *db, int64_t tenant, const struct workflow_head *head)
{
    static const char SQL[] = INSERT_HEAD
        " ON CONFLICT (tenant, id) DO UPDATE SET latest_version = excluded.latest_version,"
        " description = excluded.description, archived_at = excluded.archived_at,"
        " updated_at = excluded.updated_at";
    return DB_EXEC(db, SQL, NULL, HEAD_COLUMNS(COLUMN_BIND, head) DB_I(tenant));
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
        COLUMNS_INSERT_WITH("workflow_versions", VERSION_COLUMNS, "tenant, workflow_id", "$6, $7");
    return DB_EXEC(db, SQL, NULL, VERSION_COLUMNS(COLUMN_BIND, v) DB_I(tenant), DB_T(id));
}

enum err workflows_find_version(struct db *db, int64_t tenant, struct str id, int64_t version,
                                workflow_version_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_VERSIONS ""
                        " WHERE tenant = $1 AND workflow_id = $2 AND version = $3";
    return each_version(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id), DB_I(version)), each, ctx);
}

enum err workflows_list_versions(struct db *db, int64_t tenant, struct str id, int64_t before,
                                 int64_t limit, workflow_version_each *each, void *ctx)
{
    static const char SQL[] = SELECT_VERSIONS
        ""
        " WHERE tenant = $1 AND workflow_id = $2 AND version < $3 ORDER BY version DESC LIMIT $4";
    return each_version(DB_QUERY(db, SQL, DB_I(tenant), DB_T(id), DB_I(before), DB_I(limit)), each,
                        ctx);
}
