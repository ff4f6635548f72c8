/* A store whose connections stay open. */
#include "kept_store.h"

#include "base/buf.h"
#include "store/db_driver.h"
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDLE_MAX = 8, STATEMENTS_MAX = 160 };

static char folder[64], file[96], template_file[96], url[112];
static sqlite3 *raw;
static sqlite3_stmt *reset[STATEMENTS_MAX]; /* puts the rows back */
static size_t reset_count;

/* --- connections --- */

static struct {
    struct db *db;
    enum db_access access;
} idle[IDLE_MAX];
static size_t idle_count;
static struct db_ops kept_ops;

static void keep_open(struct db *db)
{
    db->ops->rollback(db);
    assert(idle_count < IDLE_MAX);
    idle[idle_count].db = db;
    idle[idle_count++].access =
        db_is_only_writer(db) ? DB_WRITER : DB_READER; /* SQLite's writer holds the lock */
}

static enum err open_kept(const struct db_config *config, struct str address, struct problem *p,
                          struct db **ret)
{
    for (size_t i = 0; i < idle_count; i++) {
        if (idle[i].access == config->access) {
            *ret = idle[i].db;
            idle[i] = idle[--idle_count];
            return ERR_OK;
        }
    }
    struct db_config kept = *config;
    kept.marks =
        NULL; /* they are the server's, which the connection outlives: it syncs by itself */
    enum err e = DB_ENGINE_SQLITE.open(&kept, address, p, ret);
    if (e != ERR_OK)
        return e;
    kept_ops = *(*ret)->ops;
    kept_ops.close = keep_open;
    (*ret)->ops = &kept_ops;
    return ERR_OK;
}

static const struct db_engine KEPT = {{"sqlite:", 7}, "sqlite:PATH", "kept SQLite", open_kept};
const struct db_engine *const DB_ENGINES[] = {&KEPT, NULL};

/* --- the files --- */

static void remove_folder(void)
{
    static const char *const ENDS[] = {"", "-wal", "-shm", ".lock"};
    char name[128];
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", file, ENDS[i]);
        (void)unlink(name);
    }
    (void)unlink(template_file);
    (void)rmdir(folder);
}

const char *kept_store_url(void)
{
    if (url[0] != '\0')
        return url;
    bool memory = access("/dev/shm", W_OK) == 0;
    (void)snprintf(folder, sizeof(folder), "%s/pawl-fuzz-XXXXXX", memory ? "/dev/shm" : "/tmp");
    const char *made = mkdtemp(folder);
    assert(made != NULL);
    (void)snprintf(file, sizeof(file), "%s/p.db", folder);
    (void)snprintf(template_file, sizeof(template_file), "%s/template.db", folder);
    (void)snprintf(url, sizeof(url), "sqlite:%s", file);
    (void)atexit(remove_folder);
    return url;
}

/* --- the template --- */

static void run(const char *sql)
{
    char *message = NULL;
    int rc = sqlite3_exec(raw, sql, NULL, NULL, &message);
    if (rc != SQLITE_OK)
        (void)fprintf(stderr, "%s: %s\n", sql, message);
    assert(rc == SQLITE_OK);
}

sqlite3 *kept_store_raw(void)
{
    if (raw != NULL)
        return raw;
    int rc = sqlite3_open_v2(file, &raw, SQLITE_OPEN_READWRITE, NULL);
    assert(rc == SQLITE_OK);
    run("PRAGMA synchronous=OFF");
    return raw;
}

static void add_statement(const char *sql)
{
    assert(reset_count < STATEMENTS_MAX);
    int rc = sqlite3_prepare_v2(raw, sql, -1, &reset[reset_count++], NULL);
    assert(rc == SQLITE_OK);
}

static int add_table(void *ctx, int count, char **values, char **names)
{
    (void)ctx;
    (void)count;
    (void)names;
    char sql[160];
    (void)snprintf(sql, sizeof(sql), "DELETE FROM main.%s", values[0]);
    add_statement(sql);
    (void)snprintf(sql, sizeof(sql), "INSERT INTO main.%s SELECT * FROM template.%s", values[0],
                   values[0]);
    add_statement(sql);
    return 0;
}

static void forget_template(void)
{
    if (reset_count == 0)
        return;
    while (reset_count > 0)
        (void)sqlite3_finalize(reset[--reset_count]);
    run("DETACH template");
    (void)unlink(template_file);
}

void kept_store_keep(void)
{
    char sql[160];
    (void)kept_store_raw();
    forget_template();
    (void)snprintf(sql, sizeof(sql), "VACUUM main INTO '%s'", template_file);
    run(sql);
    (void)snprintf(sql, sizeof(sql), "ATTACH '%s' AS template", template_file);
    run(sql);
    add_statement("BEGIN");
    int rc = sqlite3_exec(raw, "SELECT name FROM main.sqlite_schema WHERE type = 'table'",
                          add_table, NULL, NULL);
    assert(rc == SQLITE_OK);
    add_statement("COMMIT");
}

void kept_store_reset(void)
{
    for (size_t i = 0; i < reset_count; i++) {
        int rc = sqlite3_step(reset[i]);
        assert(rc == SQLITE_DONE);
        (void)sqlite3_reset(reset[i]);
    }
}
