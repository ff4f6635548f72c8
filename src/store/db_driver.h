/* What an engine implements for store/db.h. Each struct below is the first member of the engine's
 * own. db_driver.c keeps the checks that are the same for all: it asserts how a connection is used,
 * reads typed columns and reports damage. */
#ifndef PAWL_STORE_DB_DRIVER_H
#define PAWL_STORE_DB_DRIVER_H

#include "store/db.h"

struct db {
    const struct db_ops *ops;
    enum db_outcome outcome;   /* of the last commit */
    struct db_numbers numbers; /* step 0: all */
    bool commits_now;          /* the present commit must not be deferred */
    /* What the only writer remembers: db_open() makes it and db_close() frees it; NULL: none. */
    struct row_cache *row_cache;
    bool in_transaction;
    int64_t changes_to_come; /* of rows in the cache that are to be written */
    db_flush_rows *flush;    /* writes them; NULL: there are none */
    struct claim_queues *claim_queues;
};

/* A query that is being read. */
struct db_rows {
    struct db *db;
    const char *sql;
    enum err err; /* the driver's, or ERR_DAMAGED from a typed column */
    bool open;
};

struct db_backup {
    struct db *db;
};

/* --- what only some engines have --- */

struct db_log_ops {
    bool (*wants_housekeeping)(const struct db *db);
    enum err (*housekeep)(struct db *db);
    int64_t (*bytes)(const struct db *db);
};

struct db_backup_ops {
    enum err (*begin)(struct db *db, struct problem *p, struct db_backup **ret);
    enum err (*step)(struct db_backup *backup, bool *ret_done);
    enum err (*end)(struct db_backup *backup, char path[static DB_PATH_MAX]);
};

/* --- what every engine has --- */

struct db_ops {
    const char *name; /* "SQLite 3.40.1" */
    void (*close)(struct db *db);

    enum err (*exec)(struct db *db, const char *sql, const struct db_value *values, size_t count,
                     int64_t *ret_changed);
    /* Never NULL: a query that cannot be made has its error in `err` and no rows. The result is
     * open. */
    struct db_rows *(*query)(struct db *db, const char *sql, const struct db_value *values,
                             size_t count);
    /* Sets err when there is no row because of an error. Not called once err is set. */
    bool (*next)(struct db_rows *rows);
    /* Frees what the query holds; err was read before. */
    void (*end)(struct db_rows *rows);
    /* Of the current row; text and blobs that are empty have a ptr that is not NULL. */
    struct db_value (*column)(struct db_rows *rows, int column);
    int (*column_count)(struct db_rows *rows);
    const char *(*column_name)(struct db_rows *rows, int column);

    enum err (*begin)(struct db *db);
    /* Whatever the outcome, the transaction is over. The error is ERR_STORE_FAILED for outcomes
     * "fenced" and "in doubt", and only for them. */
    enum err (*commit)(struct db *db, enum db_outcome *ret_outcome);
    enum err (*sync)(struct db *db); /* NULL: a commit is on disk when it returns */
    void (*rollback)(struct db *db);
    int64_t (*changes)(const struct db *db);
    enum err (*snapshot_begin)(struct db *db, int64_t ms);
    void (*snapshot_end)(struct db *db);
    bool (*is_only_writer)(const struct db *db);
    const char *schema_sql; /* of db_schema() */

    const struct db_log_ops *log;       /* NULL: there is none to fold back */
    const struct db_backup_ops *backup; /* NULL: the engine brings its own tools */
    enum err (*integrity_check)(struct db *db, struct buf *found); /* NULL: none */
};

/* The table that a store has while it is an unfinished copy. A writer looks for it before it
 * changes anything, and refuses the store unless it is opened as DB_COPY_TARGET. */
#define DB_COPY_TABLE "unfinished_copy"
/* Behind the name of the source: all rows are there, and only have to go to their shards. */
#define DB_COPY_COMPARED " compared"
enum err db_refuse_copy(struct problem *p);

/* --- the engines of a program --- */

struct db_engine {
    struct str scheme; /* "sqlite:" */
    const char *form;  /* "sqlite:PATH", for people */
    const char *name;
    /* `address` is the URL without its scheme, and not empty. */
    enum err (*open)(const struct db_config *config, struct str address, struct problem *p,
                     struct db **ret);
};

/* All engines, then NULL. In a file of its own, so that test programs can bring theirs. */
extern const struct db_engine *const DB_ENGINES[];

#endif
