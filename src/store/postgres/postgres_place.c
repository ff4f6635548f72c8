/* Shards in other databases than the directory's. Such a database has a schema like the directory's
 * with the rows of its own shards, so that transactions are fenced and commits are found where they
 * happen. Only the directory says which node has a shard. */
#include "store/postgres/postgres_db.h"

PGresult *postgres_directory_id(struct postgres_db *db, struct problem *p)
{
    return postgres_ask(db, "SELECT encode(sha256(secret), 'hex') FROM directory", 0, NULL, p);
}

static enum err read_place_url(struct postgres_db *db, const char *url, struct problem *p)
{
    if (!str_starts_with(str_of(url), STR("postgres")) || strstr(url, "://") == NULL)
        return problem_set(p, ERR_BAD_REQUEST,
                           "The other database must be given as postgres://USER@HOST/DATABASE");
    if (strstr(url, "shard=") != NULL || strstr(url, "epoch=") != NULL)
        return problem_set(p, ERR_BAD_REQUEST,
                           "The URL of the other database must not name a shard");
    return postgres_read_url(db, str_of(url), p);
}

/* A schema that was made just now, or by a command that was interrupted, is nobody's. */
static enum err claim(struct postgres_db *db, const char *directory_id, struct problem *p)
{
    static const char SQL[] =
        "WITH claimed AS (UPDATE directory SET part_of = $1 WHERE part_of IS NULL"
        " AND (SELECT count(*) = 1 AND sum(version + epoch) = 0 FROM shards)"
        " AND NOT EXISTS (SELECT 1 FROM nodes) RETURNING 1),"
        " emptied AS (DELETE FROM shards USING claimed)"
        " SELECT (part_of = $1 OR EXISTS (SELECT 1 FROM claimed))::int FROM directory";
    const char *values[] = {directory_id};
    PGresult *result = postgres_ask(db, SQL, 1, values, p);
    if (result == NULL)
        return p->err;
    bool ours = postgres_number(result, 0) == 1;
    PQclear(result);
    return ours ? ERR_OK
                : problem_set(p, ERR_BAD_REQUEST,
                              "The schema %s of the other database belongs to another cluster. "
                              "Choose another one with ?schema=NAME.",
                              db->schema);
}

static enum err add_shard(struct postgres_db *db, size_t shard, struct problem *p)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO shards (shard, version, epoch) VALUES (%zu, 0, 0)"
                   " ON CONFLICT DO NOTHING",
                   shard);
    return postgres_run(db, sql, p);
}

enum err postgres_prepare_place(const struct env *env, const char *url, const char *directory_id,
                                size_t shard, struct problem *p)
{
    struct postgres_db *db = calloc(1, sizeof(*db));
    bool is_new;
    if (db == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    db->access = DB_WRITER;
    db->env = env;
    enum err e = read_place_url(db, url, p);
    if (e == ERR_OK)
        e = postgres_open_session(db, p);
    if (e == ERR_OK)
        e = postgres_make_directory(db, p, &is_new);
    if (e == ERR_OK)
        e = claim(db, directory_id, p);
    if (e == ERR_OK)
        e = add_shard(db, shard, p);
    PQfinish(db->conn);
    free(db);
    return e;
}
