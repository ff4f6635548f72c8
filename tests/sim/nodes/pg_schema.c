/* The tables of the simulated PostgreSQL. */
#include "sim/nodes/pg_tables.h"

#include "store/db.h"
#include "store/migrations.h"

#include <stdlib.h>

enum { MIGRATION_OF_NODES = 3 }; /* the tables of the directory up to then are made by hand */

static int last_number(const struct migration *all, size_t count)
{
    return all[count - 1].number;
}

/* The tables and columns of a later migration. Its functions are this file's, and SQLite cannot
 * drop a constraint. */
static void migrate(sqlite3 *db, const char *sql)
{
    char statement[1000];
    while (*sql != '\0') {
        size_t len = strcspn(sql, "\n");
        bool begins = strncmp(sql, "CREATE TABLE", 12) == 0 || strncmp(sql, "ALTER TABLE", 11) == 0;
        if (begins) {
            const char *end = strstr(sql, ";\n");
            len = end != NULL ? (size_t)(end - sql) : strlen(sql);
            (void)snprintf(statement, sizeof(statement), "%.*s", (int)len, sql);
            char *text = pg_translate(statement);
            if (strstr(text, "DROP CONSTRAINT") == NULL)
                pg_exec(db, text);
            free(text);
        }
        sql += len + (sql[len] != '\0');
    }
}

/* As the migrations of the directory have it, in SQLite's words. */
void pg_make_directory(const struct pg_config *config)
{
    struct pg_link dir = {NULL};
    char sql[800];
    pg_link_open(&dir, config->folder, "dir");
    (void)snprintf(
        sql, sizeof(sql),
        "CREATE TABLE directory (version bigint NOT NULL, secret blob NOT NULL, auth_epoch bigint);"
        "INSERT INTO directory VALUES (%d, zeroblob(32), 0);"
        "CREATE TABLE shards (shard bigint PRIMARY KEY, version bigint NOT NULL,"
        " epoch bigint NOT NULL, owner text);"
        "CREATE TABLE nodes (name text PRIMARY KEY, url text NOT NULL, session text NOT NULL,"
        " lease_until bigint NOT NULL, draining boolean NOT NULL DEFAULT false,"
        " stopping boolean NOT NULL DEFAULT false)",
        last_number(MIGRATIONS_DIRECTORY, MIGRATIONS_DIRECTORY_COUNT));
    pg_exec(dir.db, sql);
    for (size_t i = 0; i < MIGRATIONS_DIRECTORY_COUNT; i++) {
        if (MIGRATIONS_DIRECTORY[i].number > MIGRATION_OF_NODES)
            migrate(dir.db, MIGRATIONS_DIRECTORY[i].sql);
    }
    for (int i = 0; i < config->shards; i++) {
        (void)snprintf(sql, sizeof(sql),
                       "INSERT INTO shards (shard, version, epoch, owner) VALUES (%d, %d, 0, NULL)",
                       i, last_number(MIGRATIONS_POSTGRES, MIGRATIONS_POSTGRES_COUNT));
        pg_exec(dir.db, sql);
    }
    sqlite3_close(dir.db);
}

/* The driver of SQLite makes them. */
void pg_make_tables(const struct pg_config *config, const char *name)
{
    char url[140];
    struct db *db = NULL;
    struct problem p;
    problem_init(&p);
    (void)snprintf(url, sizeof(url), "sqlite:%s/%s.db", config->folder, name);
    struct db_config open = {.url = str_of(url), .access = DB_WRITER, .env = config->env};
    enum err e = db_open(&open, &p, &db);
    assert(e == ERR_OK);
    db_close(db);
    problem_release(&p);
}
