/* Who owns the store: the directory with its epochs, and migrations. */
#include "base/log.h"
#include "store/migrations.h"
#include "store/postgres/postgres_db.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

enum {
    LOCK_CLASS = 0x7061776c, /* "pawl" */
    LOCK_WAIT_MS = 1000,     /* a server that was killed a moment ago still has a session */
    LOCK_POLL_MS = 50,
};

/* --- the lock of the session --- */

static enum err try_lock(struct postgres_db *db, struct problem *p, bool *ret_locked)
{
    char class[16];
    (void)snprintf(class, sizeof(class), "%d", LOCK_CLASS);
    const char *values[] = {class, db->schema};
    PGresult *result =
        postgres_ask(db, "SELECT pg_try_advisory_lock($1::int, hashtext($2))", 2, values, p);
    if (result == NULL)
        return p->err;
    *ret_locked = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return ERR_OK;
}

enum err postgres_lock(struct postgres_db *db, struct problem *p)
{
    bool locked = false;
    for (int waited = 0; waited <= LOCK_WAIT_MS; waited += LOCK_POLL_MS) {
        enum err e = try_lock(db, p, &locked);
        if (e != ERR_OK || locked)
            return e;
        (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_MS * 1000000L}, NULL);
    }
    return problem_set(p, ERR_STORE_BUSY, "The store is in use by another pawl (schema %s)",
                       db->schema);
}

/* --- migrations --- */

struct schema_step {
    const struct migration *migration;
    const char *schema;   /* where it is made */
    const char *versions; /* what notes its number */
};

static enum err migrate_one(struct postgres_db *db, const struct schema_step *step,
                            struct problem *p)
{
    const struct migration *m = step->migration;
    struct buf sql;
    buf_init(&sql, 1 << 20);
    buf_printf(&sql, "BEGIN; CREATE SCHEMA IF NOT EXISTS %s; SET LOCAL search_path = %s, %s;",
               step->schema, step->schema, db->schema);
    buf_put(&sql, str_of(m->sql));
    buf_printf(&sql, "; UPDATE %s.%s = %d; COMMIT", db->schema, step->versions, m->number);
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
                        struct schema_step step, int64_t version, struct problem *p)
{
    int newest = all[count - 1].number;
    if (version > newest)
        return problem_set(p, ERR_STORE_FAILED,
                           "The schema %s was written by a newer pawl (its version is %" PRId64
                           ", pawl %s knows up to %d). Use the newer version or restore a backup.",
                           step.schema, version, PAWL_VERSION, newest);
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        step.migration = &all[i];
        if (all[i].number > version)
            e = migrate_one(db, &step, p);
    }
    return e;
}

/* --- the directory --- */

/* 0: there is none. A schema of that name which is not pawl's is refused. */
static enum err directory_version(struct postgres_db *db, struct problem *p, int64_t *ret)
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

static enum err migrate_directory(struct postgres_db *db, struct problem *p)
{
    int64_t version = 0;
    struct schema_step step = {NULL, db->schema, "directory SET version"};
    enum err e = directory_version(db, p, &version);
    return e == ERR_OK
               ? migrate(db, MIGRATIONS_DIRECTORY, MIGRATIONS_DIRECTORY_COUNT, step, version, p)
               : e;
}

static enum err migrate_shard(struct postgres_db *db, struct problem *p)
{
    char schema[POSTGRES_NAME_MAX];
    (void)snprintf(schema, sizeof(schema), "%s_%d", db->schema, POSTGRES_SHARD);
    struct schema_step step = {NULL, schema, "shards SET version"};
    PGresult *result = postgres_ask(db, "SELECT version FROM shards WHERE shard = 0", 0, NULL, p);
    if (result == NULL)
        return p->err;
    int64_t version = postgres_number(result, 0);
    PQclear(result);
    return migrate(db, MIGRATIONS_POSTGRES, MIGRATIONS_POSTGRES_COUNT, step, version, p);
}

/* --- epochs --- */

/* Waits for the transactions of the last owner: each holds its row of the directory. */
enum err postgres_raise_epoch(struct postgres_db *db, struct problem *p)
{
    static const char SQL[] = "WITH raised AS (UPDATE shards SET epoch = epoch + 1, owner = $1"
                              " WHERE shard = 0 AND $2::bigint IN (0, epoch) RETURNING epoch)"
                              " SELECT COALESCE((SELECT epoch FROM raised), 0)";
    char host[64] = "";
    char owner[96];
    char epoch[24];
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(owner, sizeof(owner), "%s:%d", host, (int)getpid());
    (void)snprintf(epoch, sizeof(epoch), "%" PRId64, db->epoch);
    const char *values[] = {owner, epoch};
    PGresult *result = postgres_ask(db, SQL, 2, values, p);
    if (result == NULL)
        return p->err;
    int64_t raised = postgres_number(result, 0);
    PQclear(result);
    if (raised == 0)
        return problem_set(p, ERR_STORE_FAILED, "Another server has taken the store");
    db->epoch = raised;
    return ERR_OK;
}

enum err postgres_take(struct postgres_db *db, struct problem *p)
{
    enum err e = migrate_directory(db, p);
    if (e == ERR_OK)
        e = migrate_shard(db, p);
    return e == ERR_OK ? postgres_raise_epoch(db, p) : e;
}
