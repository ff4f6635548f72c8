/* The SQLite connection, shared by the files of this folder. */
#ifndef PAWL_STORE_SQLITE_SQLITE_DB_H
#define PAWL_STORE_SQLITE_SQLITE_DB_H

#include "store/db_driver.h"

#include <sqlite3.h>

enum { SQLITE_PARAMETERS_MAX = 40 };

struct sqlite_keeper;

/* A prepared statement, and at the same time the cursor over its rows. */
struct sqlite_rows {
    struct db_rows base;
    sqlite3_stmt *stmt;
    /* SQLite numbers $1… by first appearance; this maps ours to its. */
    int index[SQLITE_PARAMETERS_MAX + 1];
    /* What an earlier use has bound; NULL in a statement just prepared. Bytes are where they were
     * then: SQLite, too, has only their address. */
    struct db_value bound[SQLITE_PARAMETERS_MAX + 1];
    int parameters;
};

struct sqlite_db {
    struct db base;
    sqlite3 *conn;
    char path[4096];
    enum db_access access;
    const struct env *env;
    enum db_copy copy; /* the configuration's */
    int lock_fd;
    sqlite3_file *log;      /* of a writer that leaves syncs to db_sync(); NULL: it does not */
    struct db_marks *marks; /* the configuration's, or its own */
    struct db_marks own_marks;
    bool failed;       /* nobody can tell what is on disk: the files stay as they are */
    int64_t log_pages; /* since the log last started from its beginning */
    int64_t log_pages_max;
    int64_t log_pages_passed; /* log_pages when the keeper was last woken */
    bool folds_in_background;
    struct sqlite_keeper *keeper; /* NULL: not needed yet, or there was no memory for it */
    int64_t deadline_ms;
    struct sqlite_rows **statements; /* by the address of their text; NULL: free */
    size_t statement_slots;
    size_t statement_count;
    /* What a query gets that could not be prepared. */
    struct sqlite_rows broken;
};

/* In sqlite_statement.c */
enum err sqlite_err_of(struct sqlite_db *db, int rc);
/* Ahead of its first use, which then needs no memory. */
enum err sqlite_prepare(struct sqlite_db *db, const char *sql);
enum err sqlite_exec(struct db *base, const char *sql, const struct db_value *values, size_t count,
                     int64_t *ret_changed);
struct db_rows *sqlite_query(struct db *base, const char *sql, const struct db_value *values,
                             size_t count);
bool sqlite_next(struct db_rows *base);
void sqlite_end(struct db_rows *base);
struct db_value sqlite_column(struct db_rows *base, int column);
int sqlite_column_count(struct db_rows *base);
const char *sqlite_column_name(struct db_rows *base, int column);
/* Every statement that was prepared. */
void sqlite_finalize_all(struct sqlite_db *db);

/* In sqlite_log.c */
extern const struct db_log_ops SQLITE_LOG_OPS;
void sqlite_log_init(struct sqlite_db *db, const struct db_config *config);
/* Notes how long the log is after each commit of this connection. */
void sqlite_log_watch(struct sqlite_db *db);

/* In sqlite_backup.c */
extern const struct db_backup_ops SQLITE_BACKUP_OPS;

#endif
