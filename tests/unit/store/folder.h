/* A folder of its own for each test of the store, and a second look at what is stored: with SQLite
 * or libpq alone. */
#ifndef PAWL_TESTS_STORE_FOLDER_H
#define PAWL_TESTS_STORE_FOLDER_H

#include "base/support.h"

#include "base/limits.h"
#include "library/library.h"
#include "store/db.h"
#include "store_support/stores.h"

#include <dirent.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

struct folder {
    char path[64];
};

/* In memory where the machine has a folder for that: most tests are not about the disk. */
static inline const char *test_folder(void)
{
#ifdef PAWL_TEST_ON_DISK
    return "/tmp";
#else
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
#endif
}

static inline int folder_setup(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    (void)snprintf(f->path, sizeof(f->path), "%s/pawl-unit-XXXXXX", test_folder());
    assert_non_null(mkdtemp(f->path));
    *state = f;
    return 0;
}

/* Ours is one level deep. */
static inline int folder_teardown(void **state)
{
    struct folder *f = *state;
    DIR *dir = opendir(f->path);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    (void)closedir(dir);
    (void)rmdir(f->path);
    free(f);
    return 0;
}

#define folder_test(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

struct path {
    char text[144];
};

static inline struct path path_in(const struct folder *f, const char *name)
{
    struct path p;
    (void)snprintf(p.text, sizeof(p.text), "%s/%s", f->path, name);
    return p;
}

/* --- through the store --- */

static inline enum err try_open(const char *path, enum db_access access, const struct env *env,
                                int64_t log_bytes_max, struct problem *p, struct db **ret)
{
    char url[DB_PATH_MAX + 16];
    test_store_url(path, url, sizeof(url));
    struct db_config config = {
        .url = str_of(url), .access = access, .env = env, .log_bytes_max = log_bytes_max};
    return db_open(&config, p, ret);
}

static inline struct db *open_with(const char *path, enum db_access access, const struct env *env,
                                   int64_t log_bytes_max)
{
    struct problem p;
    problem_init(&p);
    struct db *db = NULL;
    if (try_open(path, access, env, log_bytes_max, &p, &db) != ERR_OK)
        fail_msg("cannot open %s: %s", path, p.detail);
    problem_release(&p);
    return db;
}

static inline struct db *open_writer(const char *path)
{
    return open_with(path, DB_WRITER, &ENV_SYSTEM, 0);
}

static inline struct db *open_reader(const char *path)
{
    return open_with(path, DB_READER, &ENV_SYSTEM, 0);
}

#define assert_ok(call)                                                     \
    do {                                                                    \
        enum err err_ = (call);                                             \
        if (err_ != ERR_OK)                                                 \
            fail_msg("%s: %s at line %d", #call, err_code(err_), __LINE__); \
    } while (0)

/* `sql` is a constant, as for all statements of the store. */
static inline void run_sql(struct db *db, const char *sql)
{
    assert_ok(db_exec_values(db, sql, NULL, 0, NULL));
}

static inline int64_t number_of(struct db *db, const char *sql)
{
    struct db_rows *rows = db_query_values(db, sql, NULL, 0);
    assert_true(db_next(rows));
    int64_t number = db_int(rows, 0);
    assert_ok(db_rows_end(rows));
    return number;
}

/* --- past the store: with SQLite or libpq alone --- */

struct raw {
    sqlite3 *file;
    PGconn *server; /* instead of a file */
};

/* SQLite writes bytes as x'00FF', PostgreSQL as '\\x00FF'. */
static inline PGresult *raw_run(PGconn *server, const char *sql)
{
    struct buf text;
    buf_init(&text, MIB);
    for (const char *at = sql; *at != '\0'; at++) {
        bool bytes = at[0] == 'x' && at[1] == '\'' && (at == sql || strchr(" (,", at[-1]) != NULL);
        if (bytes)
            buf_put(&text, STR("'\\x"));
        else
            buf_put_char(&text, *at);
        at += bytes ? 1 : 0;
    }
    assert_true(buf_ok(&text));
    PGresult *result = PQexec(server, text.ptr);
    buf_release(&text);
    return result;
}

static inline void raw_exec(struct raw *raw, const char *sql)
{
    if (raw->server != NULL) {
        PGresult *result = raw_run(raw->server, sql);
        if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
            fail_msg("%s: %s", sql, PQerrorMessage(raw->server));
        PQclear(result);
    } else if (sqlite3_exec(raw->file, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(raw->file));
    }
}

/* A shard's tables, in the schema that test_store_url() names. */
static inline PGconn *raw_connect(const char *path)
{
    char url[DB_PATH_MAX];
    char sql[160];
    test_store_url(path, url, sizeof(url));
    char *schema = strstr(url, "&schema=");
    const char *name = schema + strlen("&schema=");
    (void)snprintf(sql, sizeof(sql), "SET search_path = %s_0, %s, public", name, name);
    *schema = '\0';
    char why[LIBRARY_WHY_MAX];
    if (!library_load(&LIBPQ, why)) /* for the functions that pawl calls too */
        fail_msg("%s", why);
    PGconn *conn = PQconnectdb(url);
    PQclear(PQexec(conn, sql));
    return conn;
}

static inline struct raw raw_open(const char *path)
{
    struct raw raw = {NULL, NULL};
    if (test_store_is_postgres()) {
        raw.server = raw_connect(path);
        return raw;
    }
    if (sqlite3_open_v2(path, &raw.file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
        SQLITE_OK)
        fail_msg("SQLite cannot open %s", path);
    (void)sqlite3_busy_timeout(raw.file, 5000);
    return raw;
}

static inline void raw_close(struct raw *raw)
{
    PQfinish(raw->server);
    assert_int_equal(sqlite3_close(raw->file), SQLITE_OK);
}

static inline int64_t raw_number_of_server(struct raw *raw, const char *sql)
{
    PGresult *result = raw_run(raw->server, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) < 1)
        fail_msg("%s: %s", sql, PQerrorMessage(raw->server));
    int64_t number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return number;
}

static inline int64_t raw_number(struct raw *raw, const char *sql)
{
    if (raw->server != NULL)
        return raw_number_of_server(raw, sql);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(raw->file, sql, -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(raw->file));
    int64_t number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

/* Is the writer in a transaction? It holds SQLite's lock then, or its row of the directory. */
static inline bool raw_writer_is_busy(struct raw *raw)
{
    bool busy;
    if (raw->server != NULL) {
        PGresult *result = PQexec(raw->server, "SELECT 1 FROM shards FOR UPDATE NOWAIT");
        busy = PQresultStatus(result) != PGRES_TUPLES_OK;
        PQclear(result);
        return busy;
    }
    (void)sqlite3_busy_timeout(raw->file, 0);
    busy = sqlite3_exec(raw->file, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK;
    if (!busy)
        raw_exec(raw, "ROLLBACK");
    return busy;
}

/* Another number when somebody else has committed a change. PostgreSQL: how many rows there are,
 * and the transactions that wrote them. */
static inline int64_t raw_version(struct raw *raw)
{
    static const char ROWS[] =
        "SELECT sum((xpath('//n/text()', query_to_xml('SELECT count(*) + "
        "COALESCE(sum(xmin::text::bigint), 0) AS n"
        " FROM ' || quote_ident(tablename), false, false, '')))[1]::text::bigint)"
        " FROM pg_tables WHERE schemaname = current_schema()";
    return raw_number(raw, raw->server != NULL ? ROWS : "PRAGMA data_version");
}

static inline void raw_check_integrity(struct raw *raw)
{
    if (raw->server != NULL) { /* it fails when it finds something */
        raw_exec(raw, "CREATE EXTENSION IF NOT EXISTS amcheck WITH SCHEMA public");
        raw_exec(raw,
                 "SELECT bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid IN"
                 " (SELECT oid FROM pg_class WHERE relnamespace = current_schema::regnamespace)");
        return;
    }
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(raw->file, "PRAGMA integrity_check", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
    (void)sqlite3_finalize(stmt);
}

/* --- files --- */

static inline int64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* The caller frees. */
static inline char *file_read(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t cap = (size_t)file_size(path);
    char *bytes = malloc(cap + 1);
    assert_non_null(bytes);
    *ret_len = fread(bytes, 1, cap, file);
    (void)fclose(file);
    return bytes;
}

static inline void file_write(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static inline void file_copy(const char *from, const char *to)
{
    size_t len;
    char *bytes = file_read(from, &len);
    file_write(to, bytes, len);
    free(bytes);
}

#endif
