/* Who owns a shard: locks and epochs. */
#include "base/log.h"
#include "store/migrations.h"
#include "store/postgres/postgres_db.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

enum {
    LOCK_WAIT_MS = 1000, /* a server that was killed a moment ago still has a session */
    LOCK_POLL_MS = 50,
    LOST_MAX = 16 * 1024 * 1024, /* more commits than a server loses that are not on disk yet */
    EPOCHS_TOLD_APART = 1024,    /* owners whose commits may be lost at once */
    EPOCHS_PER_TAKING =
        1000000, /* where a shard is not in the directory's database: begin_epoch() */
};

/* --- locks of the session --- */

static enum err try_lock(struct postgres_db *db, const char *name, struct problem *p,
                         bool *ret_locked)
{
    char class[16];
    (void)snprintf(class, sizeof(class), "%d", POSTGRES_LOCK_CLASS);
    const char *values[] = {class, name};
    PGresult *result =
        postgres_ask(db, "SELECT pg_try_advisory_lock($1::int, hashtext($2))", 2, values, p);
    if (result == NULL)
        return p->err;
    *ret_locked = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return ERR_OK;
}

static enum err wait_lock(struct postgres_db *db, const char *name, struct problem *p,
                          bool *ret_locked)
{
    enum err e = ERR_OK;
    *ret_locked = false;
    for (int waited = 0; waited <= LOCK_WAIT_MS; waited += LOCK_POLL_MS) {
        e = try_lock(db, name, p, ret_locked);
        if (e != ERR_OK || *ret_locked)
            break;
        (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_MS * 1000000L}, NULL);
    }
    return e;
}

static enum err in_use(const struct postgres_db *db, struct problem *p)
{
    return problem_set(p, ERR_STORE_BUSY, "The store is in use by another pawl (schema %s)",
                       db->schema);
}

enum err postgres_lock(struct postgres_db *db, struct problem *p)
{
    char name[POSTGRES_NAME_MAX];
    bool locked = false;
    if (db->is_node) /* others may take the shard from it when its lease is over */
        return ERR_OK;
    (void)snprintf(name, sizeof(name), "%s_%d", db->schema, db->shard);
    enum err e = wait_lock(db, name, p, &locked);
    return e != ERR_OK || locked ? e : in_use(db, p);
}

/* --- epochs --- */

/* Every owner has numbers of its own. If they just went on, and the server lost the last commits
 * (a standby was promoted that lacked them), a new owner would give their numbers again, and the
 * old one would find its commits on disk. */
static void begin_numbers(struct postgres_db *db, int64_t last_num)
{
    int64_t owner = db->epoch + db->epoch / EPOCHS_PER_TAKING; /* one apart, or an odd number */
    int64_t skipped = (1 + owner % EPOCHS_TOLD_APART) * LOST_MAX;
    db->numbers_after = last_num + skipped;
}

/* Waits for the transactions of the last owner: each holds its row of the directory. */
enum err postgres_raise_epoch(struct postgres_db *db, struct problem *p)
{
    static const char SQL[] =
        "WITH raised AS (UPDATE shards SET epoch = epoch + 1, owner = COALESCE($1, owner)"
        " WHERE shard = $2 AND $3::bigint IN (0, epoch) RETURNING epoch)"
        " SELECT COALESCE((SELECT epoch FROM raised), 0),"
        " COALESCE((SELECT max(num) FROM commits WHERE shard = $2), 0)";
    char host[64] = "";
    char owner[96];
    char shard[16];
    char epoch[24];
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(owner, sizeof(owner), "%s:%d", host, (int)getpid());
    (void)snprintf(shard, sizeof(shard), "%d", db->shard);
    (void)snprintf(epoch, sizeof(epoch), "%" PRId64, db->epoch);
    const char *values[] = {db->is_node ? NULL : owner, shard, epoch};
    PGresult *result = postgres_ask(db, SQL, 3, values, p);
    if (result == NULL)
        return p->err;
    int64_t raised = postgres_number(result, 0);
    int64_t last_num = postgres_number(result, 1);
    PQclear(result);
    if (raised == 0)
        return db->epoch == 0
                   ? problem_set(p, ERR_STORE_FAILED, "The store has no shard %d", db->shard)
                   : problem_set(p, ERR_STORE_FAILED, "Another server has taken the store");
    bool takes = db->epoch == 0; /* otherwise nobody else has written since */
    db->epoch = raised;
    if (takes)
        begin_numbers(db, last_num);
    return ERR_OK;
}

enum err postgres_find_commit(struct postgres_db *db, int64_t num, struct problem *p,
                              bool *ret_found)
{
    char shard[16];
    char number[24];
    (void)snprintf(shard, sizeof(shard), "%d", db->shard);
    (void)snprintf(number, sizeof(number), "%" PRId64, num);
    const char *values[] = {shard, number};
    PGresult *result = postgres_ask(
        db, "SELECT count(*) FROM commits WHERE shard = $1::bigint AND num = $2::bigint", 2, values,
        p);
    if (result == NULL)
        return p->err;
    *ret_found = postgres_number(result, 0) == 1;
    PQclear(result);
    return ERR_OK;
}

/* --- without a node --- */

enum err postgres_check_directory(struct postgres_db *db, struct problem *p)
{
    PGresult *result =
        postgres_ask(db, "SELECT (part_of IS NOT NULL)::int FROM directory", 0, NULL, p);
    if (result == NULL)
        return p->err;
    bool is_part = postgres_number(result, 0) == 1;
    PQclear(result);
    return is_part
               ? problem_set(p, ERR_STORE_FAILED,
                             "The schema %s of this database has only some shards of a cluster. "
                             "Use the URL of the database that has its directory.",
                             db->schema)
               : ERR_OK;
}

static enum err check_place(struct postgres_db *db, struct problem *p)
{
    char shard[16];
    (void)snprintf(shard, sizeof(shard), "%d", db->shard);
    const char *values[] = {shard};
    PGresult *result = postgres_ask(
        db, "SELECT count(*) FROM shards WHERE shard = $1 AND url IS NOT NULL", 1, values, p);
    if (result == NULL)
        return p->err;
    bool elsewhere = postgres_number(result, 0) == 1;
    PQclear(result);
    return elsewhere
               ? problem_set(p, ERR_STORE_FAILED, "Shard %d is in another database", db->shard)
               : ERR_OK;
}

static enum err check_no_node(struct postgres_db *db, struct problem *p)
{
    char shard[16];
    (void)snprintf(shard, sizeof(shard), "%d", db->shard);
    const char *values[] = {shard};
    PGresult *result = postgres_ask(db,
                                    "SELECT count(*) FROM shards s JOIN nodes n ON n.name = s.owner"
                                    " WHERE s.shard = $1 AND n.lease_until > now()",
                                    1, values, p);
    if (result == NULL)
        return p->err;
    bool owned = postgres_number(result, 0) > 0;
    PQclear(result);
    return owned ? in_use(db, p) : ERR_OK;
}

/* A copy of one shard would lack the tenants of the others. */
static enum err check_only_shard(struct postgres_db *db, struct problem *p)
{
    PGresult *result = postgres_ask(db, "SELECT count(*) FROM shards", 0, NULL, p);
    if (result == NULL)
        return p->err;
    int64_t shards = postgres_number(result, 0);
    PQclear(result);
    return shards == 1 ? ERR_OK
                       : problem_set(p, ERR_STORE_FAILED,
                                     "The schema %s has %" PRId64
                                     " shards, which are copied together: leave shard= out of the"
                                     " URL",
                                     db->schema, shards);
}

/* Before anybody else can look: the number of shards decides where a tenant lives. */
static enum err add_shards(struct postgres_db *db, struct problem *p)
{
    char sql[160];
    if (db->new_shards <= 1)
        return ERR_OK;
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO shards (shard, version, epoch)"
                   " SELECT n, 0, 0 FROM generate_series(1, %d) n",
                   db->new_shards - 1);
    return postgres_run(db, sql, p);
}

enum err postgres_make_directory(struct postgres_db *db, struct problem *p, bool *ret_new)
{
    bool locked = false;
    int64_t version = 0;
    enum err e = wait_lock(db, db->schema, p, &locked);
    if (e == ERR_OK && !locked)
        e = problem_set(p, ERR_STORE_BUSY, "Another pawl is setting up the schema %s", db->schema);
    if (e == ERR_OK)
        e = postgres_directory_version(db, p, &version);
    if (e == ERR_OK)
        e = postgres_migrate_directory(db, version, p);
    if (e == ERR_OK && version == 0)
        e = add_shards(db, p);
    if (locked && e == ERR_OK)
        e = postgres_run(db, "SELECT pg_advisory_unlock_all()", p);
    *ret_new = e == ERR_OK && version == 0;
    return e;
}

/* From now on no other owner can commit, wherever the shard is. */
static enum err begin_epoch(struct postgres_db *db, struct problem *p)
{
    char shard[16];
    char epoch[24];
    (void)snprintf(shard, sizeof(shard), "%d", db->shard);
    (void)snprintf(epoch, sizeof(epoch), "%" PRId64, db->epoch);
    const char *values[] = {shard, epoch};
    PGresult *result = postgres_ask(db, "SELECT begin_epoch($1, $2)", 2, values, p);
    if (result == NULL)
        return p->err;
    db->epoch = postgres_number(result, 0);
    PQclear(result);
    return ERR_OK;
}

/* What was committed before is over. */
static enum err check_epoch(struct postgres_db *db, struct problem *p)
{
    char shard[16];
    char epoch[24];
    (void)snprintf(shard, sizeof(shard), "%d", db->shard);
    (void)snprintf(epoch, sizeof(epoch), "%" PRId64, db->epoch);
    const char *values[] = {shard, epoch};
    PGresult *result = postgres_ask(db,
                                    "SELECT COALESCE(max(num), 0) FROM commits, fence($1, $2) xid"
                                    " WHERE shard = $1::bigint",
                                    2, values, p);
    if (result == NULL)
        return p->err;
    begin_numbers(db, postgres_number(result, 0));
    PQclear(result);
    return ERR_OK;
}

/* Another database than the directory's may have been set up by an older pawl. */
static enum err update_place(struct postgres_db *db, struct problem *p)
{
    int64_t version = 0;
    bool is_new;
    enum err e = postgres_directory_version(db, p, &version);
    if (e != ERR_OK)
        return e;
    if (version == 0)
        return problem_set(p, ERR_STORE_FAILED, "The schema %s of the database has no shards",
                           db->schema);
    return version == MIGRATIONS_DIRECTORY[MIGRATIONS_DIRECTORY_COUNT - 1].number
               ? ERR_OK
               : postgres_make_directory(db, p, &is_new);
}

static enum err take_as_node(struct postgres_db *db, struct problem *p)
{
    enum err e = update_place(db, p);
    if (e == ERR_OK)
        e = begin_epoch(db, p);
    if (e == ERR_OK)
        e = check_epoch(db, p);
    return e == ERR_OK ? postgres_migrate_shard(db, p) : e;
}

/* A store of one shard gives all numbers: no rows of another shard come to it. */
static enum err choose_numbers(struct postgres_db *db, struct problem *p)
{
    static const char SQL[] =
        "SELECT (part_of IS NOT NULL OR (SELECT count(*) FROM shards) > 1)::int FROM directory";
    PGresult *result = postgres_ask(db, SQL, 0, NULL, p);
    if (result == NULL)
        return p->err;
    bool has_others = postgres_number(result, 0) == 1;
    PQclear(result);
    db->base.numbers =
        has_others ? (struct db_numbers){CLUSTER_SHARDS_MAX, db->shard} : (struct db_numbers){1, 0};
    return ERR_OK;
}

static enum err take(struct postgres_db *db, struct problem *p)
{
    bool is_new;
    if (db->is_node)
        return take_as_node(db, p);
    enum err e = postgres_make_directory(db, p, &is_new);
    if (e == ERR_OK && db->copy != DB_COPY_PART)
        e = postgres_check_directory(db, p);
    if (e == ERR_OK)
        e = check_place(db, p);
    if (e == ERR_OK && (db->copy == DB_COPY_SOURCE || db->copy == DB_COPY_TARGET))
        e = check_only_shard(db, p);
    if (e == ERR_OK)
        e = postgres_lock(db, p);
    if (e == ERR_OK)
        e = check_no_node(db, p);
    if (e == ERR_OK)
        e = postgres_raise_epoch(db, p);
    return e == ERR_OK ? postgres_migrate_shard(db, p) : e;
}

enum err postgres_take(struct postgres_db *db, struct problem *p)
{
    enum err e = take(db, p);
    return e == ERR_OK ? choose_numbers(db, p) : e;
}
