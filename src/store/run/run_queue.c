/* Runs that wait for a slot, as rows. */
#include "store/run/run_queue.h"

#include "store/columns.h"

#define GROUP_COLUMNS(X, p)            \
    X(p, 1, INT, tenant, tenant)       \
    X(p, 2, TEXT, scopes, scopes)      \
    X(p, 3, INT, waits_for, waits_for) \
    X(p, 4, INT, urgency, urgency)     \
    X(p, 5, INT, run, run)
COLUMNS_NUMBERED(GROUP_COLUMNS, GROUP);

#define SELECT_GROUPS COLUMNS_SELECT(GROUP_COLUMNS, "") ", num FROM lines"

/* Without an arena the text is not needed, and not kept. */
static enum err read_group(struct db_rows *rows, struct arena *arena, bool *ret_found,
                           struct queue_group *ret)
{
    bool kept = true;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret = (struct queue_group){GROUP_COLUMNS(COLUMN_READ, rows)};
        ret->num = db_int(rows, GROUP_COLUMNS_END);
        kept = arena == NULL || (GROUP_COLUMNS(COLUMN_KEEP, ret) true);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && !kept ? ERR_NO_MEMORY : e;
}

enum err queue_groups_find(struct db *db, int64_t tenant, struct str scopes, struct arena *arena,
                           bool *ret_found, struct queue_group *ret)
{
    static const char SQL[] = SELECT_GROUPS " WHERE tenant = $1 AND scopes = $2";
    struct str text = scopes.ptr != NULL ? scopes : STR("");
    return read_group(DB_QUERY(db, SQL, DB_I(tenant), DB_T(text)), arena, ret_found, ret);
}

static enum err group_insert(struct db *db, struct queue_group *group)
{
    static const char SQL[] = COLUMNS_INSERT_WITH(
        "lines", GROUP_COLUMNS, "num", COLUMNS_NEXT_NUM("lines", "$6", "$7")) " RETURNING num";
    static const char SQL_SCOPE[] = "INSERT INTO line_scopes (scope, line) VALUES ($1, $2)";
    struct db_rows *rows = DB_QUERY(db, SQL, GROUP_COLUMNS(COLUMN_BIND, group) COLUMNS_NUMBERS(db));
    while (db_next(rows))
        group->num = db_int(rows, 0);
    enum err e = db_rows_end(rows);
    struct limit_key_list scopes = limit_key_list_parse(group->scopes);
    for (size_t i = 0; i < scopes.count && e == ERR_OK; i++)
        e = DB_EXEC(db, SQL_SCOPE, NULL, DB_I(scopes.nums[i]), DB_I(group->num));
    return e;
}

static enum err group_delete(struct db *db, int64_t num, struct str text)
{
    static const char SQL[] = "DELETE FROM lines WHERE num = $1";
    static const char SQL_SCOPE[] = "DELETE FROM line_scopes WHERE scope = $1 AND line = $2";
    struct limit_key_list scopes = limit_key_list_parse(text);
    enum err e = DB_EXEC(db, SQL, NULL, DB_I(num));
    for (size_t i = 0; i < scopes.count && e == ERR_OK; i++)
        e = DB_EXEC(db, SQL_SCOPE, NULL, DB_I(scopes.nums[i]), DB_I(num));
    return e;
}

static enum err set_first(struct db *db, int64_t group, int64_t urgency, int64_t run)
{
    static const char SQL[] = "UPDATE lines SET urgency = $2, run = $3 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(group), DB_I(urgency), DB_I(run));
}

/* The run goes before the first one of its group. The group may have been passed over for later
 * ones, so it is looked at again; one that waits for the tenant stays: the room of its scopes is
 * reserved for it. */
static enum err put_first(struct db *db, const struct queue_group *group, int64_t waits_for,
                          int64_t urgency, int64_t run)
{
    enum err e = set_first(db, group->num, urgency, run);
    if (e != ERR_OK || group->waits_for == 0)
        return e;
    return queue_groups_park(db, group->num, waits_for);
}

/* Finds or makes the run's group, in which the run may be the first. */
static enum err join_group(struct db *db, const struct queue_group *joining,
                           struct queue_group *ret)
{
    bool found = false;
    enum err e = queue_groups_find(db, joining->tenant, joining->scopes, NULL, &found, ret);
    if (e != ERR_OK)
        return e;
    if (!found) {
        *ret = *joining;
        return group_insert(db, ret);
    }
    bool is_first = joining->urgency < ret->urgency ||
                    (joining->urgency == ret->urgency && joining->run < ret->run);
    if (!is_first)
        return ERR_OK;
    return put_first(db, ret, joining->waits_for, joining->urgency, joining->run);
}

enum err queue_insert(struct db *db, int64_t tenant, struct str scopes, int64_t waits_for,
                      int64_t urgency, int64_t run)
{
    static const char SQL[] =
        "INSERT INTO queue (line, urgency, run, tenant) VALUES ($1, $2, $3, $4)";
    struct str text = scopes.ptr != NULL ? scopes : STR("");
    const struct queue_group joining = {0, tenant, text, waits_for, urgency, run};
    struct queue_group group;
    enum err e = join_group(db, &joining, &group);
    if (e != ERR_OK)
        return e;
    return DB_EXEC(db, SQL, NULL, DB_I(group.num), DB_I(urgency), DB_I(run), DB_I(tenant));
}

/* The first run of the group has left: the next one takes its place, or the empty group goes. */
static enum err move_up(struct db *db, int64_t group, struct str scopes)
{
    static const char SQL_NEXT[] =
        "SELECT urgency, run FROM queue WHERE line = $1 ORDER BY urgency, run LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL_NEXT, DB_I(group));
    bool found = db_next(rows);
    int64_t urgency = found ? db_int(rows, 0) : 0;
    int64_t run = found ? db_int(rows, 1) : 0;
    enum err e = db_rows_end(rows);
    if (e != ERR_OK)
        return e;
    return found ? set_first(db, group, urgency, run) : group_delete(db, group, scopes);
}

enum err queue_delete(struct db *db, int64_t tenant, struct str scopes, int64_t urgency,
                      int64_t run)
{
    static const char SQL[] = "DELETE FROM queue WHERE line = $1 AND urgency = $2 AND run = $3";
    struct queue_group group = {0};
    bool found = false;
    int64_t changed = 0;
    enum err e = queue_groups_find(db, tenant, scopes, NULL, &found, &group);
    if (e != ERR_OK)
        return e;
    if (!found)
        return ERR_DAMAGED;
    e = DB_EXEC(db, SQL, &changed, DB_I(group.num), DB_I(urgency), DB_I(run));
    if (e != ERR_OK)
        return e;
    if (changed != 1)
        return ERR_DAMAGED;
    return group.run == run ? move_up(db, group.num, scopes) : ERR_OK;
}

enum err queue_groups_first(struct db *db, int64_t tenant, int64_t waits_for, struct arena *arena,
                            bool *ret_found, struct queue_group *ret)
{
    static const char SQL[] = SELECT_GROUPS " WHERE tenant = $1 AND waits_for = $2"
                                            " ORDER BY urgency, run LIMIT 1";
    return read_group(DB_QUERY(db, SQL, DB_I(tenant), DB_I(waits_for)), arena, ret_found, ret);
}

enum err queue_groups_park(struct db *db, int64_t line, int64_t waits_for)
{
    static const char SQL[] = "UPDATE lines SET waits_for = $2 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(line), DB_I(waits_for));
}

enum err queue_groups_next_limit_key(struct db *db, int64_t tenant, int64_t scope, bool *ret_found,
                                     int64_t *ret_tenant, int64_t *ret_scope)
{
    static const char SQL[] = "SELECT tenant, waits_for FROM lines"
                              " WHERE (tenant, waits_for) > ($1, $2) AND waits_for > 0"
                              " ORDER BY tenant, waits_for LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(scope));
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret_tenant = db_int(rows, 0);
        *ret_scope = db_int(rows, 1);
    }
    return db_rows_end(rows);
}

enum err queue_groups_next_tenant(struct db *db, int64_t after, bool *ret_found,
                                  int64_t *ret_tenant)
{
    static const char SQL[] = "SELECT tenant FROM lines WHERE tenant > $1 ORDER BY tenant LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after));
    *ret_found = db_next(rows);
    if (*ret_found)
        *ret_tenant = db_int(rows, 0);
    return db_rows_end(rows);
}

enum err queue_ahead(struct db *db, int64_t tenant, int64_t scope, int64_t urgency, int64_t run,
                     int64_t max, int64_t *ret)
{
    static const char SQL_ALL[] =
        "SELECT count(*) FROM (SELECT 1 FROM lines l JOIN queue q ON q.line = l.num"
        " WHERE l.tenant = $1 AND (q.urgency, q.run) < ($2, $3) LIMIT $4) AS ahead";
    static const char SQL_SCOPE[] =
        "SELECT count(*) FROM (SELECT 1 FROM line_scopes s JOIN queue q ON q.line = s.line"
        " WHERE s.scope = $1 AND (q.urgency, q.run) < ($2, $3) LIMIT $4) AS ahead";
    struct db_rows *rows =
        DB_QUERY(db, scope == 0 ? SQL_ALL : SQL_SCOPE, DB_I(scope == 0 ? tenant : scope),
                 DB_I(urgency), DB_I(run), DB_I(max));
    *ret = db_next(rows) ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err queue_oldest(struct db *db, int64_t tenant, int64_t *ret_run)
{
    static const char SQL[] = "SELECT run FROM queue WHERE tenant = $1 ORDER BY run LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant));
    *ret_run = db_next(rows) ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}
