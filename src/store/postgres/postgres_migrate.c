/* The schemas of the directory and of shards: what is there, and the steps to what this binary
 * knows. */
#include "base/log.h"
#include "store/migrations.h"
#include "store/postgres/postgres_db.h"

#include <inttypes.h>

struct schema_step {
    const struct migration *migration;
    const char *schema; /* where it is made */
    char fence[64];     /* a statement that ends it if the shard has another owner */
    char note[64];      /* what notes its number, up to the number */
    char where[32];     /* and behind it */
};

static enum err migrate_one(struct postgres_db *db, const struct schema_step *step,
                            struct problem *p)
{
    const struct migration *m = step->migration;
    struct buf sql;
    buf_init(&sql, 1 << 20);
    buf_printf(&sql, "BEGIN; CREATE SCHEMA IF NOT EXISTS %s; SET LOCAL search_path = %s, %s; %s",
               step->schema, step->schema, db->schema, step->fence);
    buf_put(&sql, str_of(m->sql));
    buf_printf(&sql, "; UPDATE %s.%s = %d %s; COMMIT", db->schema, step->note, m->number,
               step->where);
    enum err e = buf_ok(&sql) ? postgres_run(db, sql.ptr, p)
                              : problem_set(p, ERR_NO_MEMORY, "No memory for a migration");
    buf_release(&sql);
    if (e != ERR_OK) {
        char why[PROBLEM_DETAIL_MAX];
        (void)snprintf(why, sizeof(why), "%s", p->detail);
        return problem_set(p, e, "Migration %d (%s) failed: %.*s", m->number, m->name, 300, why);
    }
    LOG(LOG_INFO, "migrated the store", LOG_Z("schema", step->schema), LOG_N("number", m->number),
        LOG_Z("name", m->name));
    return ERR_OK;
}

static enum err migrate(struct postgres_db *db, const struct migration *all, size_t count,
                        struct schema_step *step, int64_t version, struct problem *p)
{
    int newest = all[count - 1].number;
    if (version > newest)
        return problem_set(p, ERR_STORE_FAILED,
                           "The schema %s was written by a newer pawl (its version is %" PRId64
                           ", pawl %s knows up to %d). Use the newer version or restore a backup.",
                           step->schema, version, PAWL_VERSION, newest);
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        step->migration = &all[i];
        if (all[i].number > version)
            e = migrate_one(db, step, p);
    }
    return e;
}

/* --- the directory --- */

enum err postgres_directory_version(struct postgres_db *db, struct problem *p, int64_t *ret)
{
    const char *values[] = {db->schema};
    PGresult *result = postgres_ask(
        db,
        "SELECT count(*), count(*) FILTER (WHERE c.relname = 'directory') FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1",
        1, values, p);
    if (result == NULL)
        return p->err;
    bool empty = postgres_number(result, 0) == 0;
    bool known = postgres_number(result, 1) == 1;
    PQclear(result);
    *ret = 0;
    if (!known)
        return empty ? ERR_OK
                     : problem_set(p, ERR_STORE_FAILED,
                                   "The schema %s belongs to another program. Choose another one "
                                   "with ?schema=NAME.",
                                   db->schema);
    result = postgres_ask(db, "SELECT version FROM directory", 0, NULL, p);
    if (result == NULL)
        return p->err;
    *ret = postgres_number(result, 0);
    PQclear(result);
    return ERR_OK;
}

enum err postgres_migrate_directory(struct postgres_db *db, int64_t version, struct problem *p)
{
    struct schema_step step = {.schema = db->schema, .note = "directory SET version"};
    return migrate(db, MIGRATIONS_DIRECTORY, MIGRATIONS_DIRECTORY_COUNT, &step, version, p);
}

/* --- a shard --- */

/* Keys and ended sessions are in shard 0, and every node has them in its cache. */
static enum err watch_keys(struct postgres_db *db, struct problem *p)
{
    char sql[1024];
    (void)snprintf(
        sql, sizeof(sql),
        "CREATE OR REPLACE TRIGGER keys_changed AFTER INSERT OR DELETE"
        " OR UPDATE OF revoked_at, role, tenant, hash ON %s_0.api_keys FOR EACH STATEMENT"
        " EXECUTE FUNCTION %s.keys_changed('%s_directory');"
        "CREATE OR REPLACE TRIGGER session_ended AFTER INSERT ON %s_0.ended_sessions"
        " FOR EACH STATEMENT EXECUTE FUNCTION %s.keys_changed('%s_directory')",
        db->schema, db->schema, db->schema, db->schema, db->schema, db->schema);
    return postgres_run(db, sql, p);
}

enum err postgres_migrate_shard(struct postgres_db *db, struct problem *p)
{
    char schema[POSTGRES_NAME_MAX];
    char shard[16];
    struct schema_step step = {.schema = schema, .note = "shards SET version"};
    const char *values[] = {shard};
    (void)snprintf(schema, sizeof(schema), "%s_%d", db->schema, db->shard);
    (void)snprintf(shard, sizeof(shard), "%d", db->shard);
    (void)snprintf(step.fence, sizeof(step.fence), "SELECT fence(%d, %" PRId64 ");", db->shard,
                   db->epoch);
    (void)snprintf(step.where, sizeof(step.where), "WHERE shard = %d", db->shard);
    PGresult *result =
        postgres_ask(db, "SELECT version FROM shards WHERE shard = $1", 1, values, p);
    if (result == NULL)
        return p->err;
    int64_t version = postgres_number(result, 0);
    PQclear(result);
    enum err e = migrate(db, MIGRATIONS_POSTGRES, MIGRATIONS_POSTGRES_COUNT, &step, version, p);
    return e == ERR_OK && db->shard == 0 ? watch_keys(db, p) : e;
}
