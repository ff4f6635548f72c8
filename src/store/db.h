/* The store's contract: connections, transactions, statements. Nothing above this header knows
 * which engine runs. SQL is written in the part that SQLite and PostgreSQL share, with $1…
 * parameters. store/db_driver.h is the other side: what an engine implements.
 *
 * A connection is used by one thread at a time. Statements are prepared once per connection and
 * found again by the address of their text, so the text must be a constant with static storage.
 *
 * An engine may fetch a result whole when the query is made, or row by row; it may run a statement
 * at once, or keep it until the next query, the next statement that asks for its count, or the
 * commit. Callers must work with both:
 *  - A query sees everything that its transaction wrote before it. What is written while its rows
 *    are being read may or may not show in them.
 *  - db_exec_values() without ret_changed may return ERR_OK for a statement that fails later: at
 *    the next query, the next counted statement or db_commit(), which then returns its error.
 *  - After an error the transaction can only be rolled back. */
#ifndef PAWL_STORE_DB_H
#define PAWL_STORE_DB_H

#include "base/crypto.h"
#include "base/env.h"
#include "base/metrics.h"
#include "base/problem.h"

#include <stdatomic.h>

struct db;
struct db_rows;

enum db_access {
    DB_WRITER, /* the one connection that writes and does the engine's housekeeping */
    DB_READER, /* sees committed data only, changes nothing */
};

/* How far the commits of a store have come. One for all threads of a process; commits are numbered
 * from 1. What a connection reads may come from any commit up to `written`, so it must not leave
 * the process before `durable` is as large as `written` was when it had been read. */
struct db_marks {
    atomic_ullong written;  /* the last commit that other connections may see */
    atomic_ullong durable;  /* the last one that is on disk */
    atomic_bool failed;     /* a sync failed: nothing more may be written, and nothing acknowledged
                               that is not durable */
    atomic_bool work_waits; /* for the writer, which should not wait for the disk itself */
};

/* What a writer does with a store that is copied whole (store/copy/copy.h). */
enum db_copy {
    DB_NO_COPY,     /* it serves: refuses a copy that is not finished */
    DB_COPY_SOURCE, /* the same, and it refuses one of several shards, which is not the whole store
                     */
    DB_COPY_PART, /* as DB_NO_COPY: one of several shards that are all copied, in whichever database
                     it is */
    DB_COPY_TARGET, /* opens an unfinished copy too, but no store of several shards */
    DB_COPY_SHARD,  /* the same for a shard of several */
};

struct commit_group;

struct db_config {
    struct str url; /* "sqlite:PATH" or "postgres://…" */
    enum db_access access;
    const struct env *env;
    /* A write-ahead log larger than this refuses new writes until it can be folded back; 0: the
     * default. Engines without such a log ignore it. */
    int64_t log_bytes_max;
    /* A writer's: a thread of the engine folds the log back while commits go on, and housekeeping
     * only starts it and finishes the rest. Otherwise housekeeping does all of it. */
    bool folds_in_background;
    /* A writer's: db_commit() returns before the commit is on disk, and db_sync() puts it there.
     * NULL: db_commit() does both. Engines may ignore it and do both. Outlives the connection. */
    struct db_marks *marks;
    enum db_copy copy; /* a writer's */
    /* A writer's: those with which it may commit together (store/postgres/commit_group.h). NULL: it
     * commits alone. Outlives the connection. Engines may ignore it. */
    struct commit_group *commit_group;
    /* How long a call may wait for a server that does not answer: then it fails with
     * ERR_STORE_BUSY. For threads that others wait for. 0: as long as the server may be at work.
     * Engines without a server ignore it. */
    int64_t patience_ms;
    /* A writer's, of an engine across a network; NULL: nothing is counted. Connections that took
     * the place of a lost one, and commits whose answer was lost, by what became of them:
     * `committed`, `aborted` or `unknown`. */
    struct metric *reconnects;
    struct metric *in_doubt;
};

/* The scheme of the URL chooses the engine. A writer takes the store's lock, creates what is
 * missing and migrates. p explains what is wrong: the store belongs to another program, is newer
 * than this binary, or is in use by another pawl. The caller owns *ret. */
MUST_CHECK enum err db_open(const struct db_config *config, struct problem *p, struct db **ret);
/* Rolls back what was not committed. NULL is fine. */
void db_close(struct db *db);

/* The engine of a connection, for people: "SQLite 3.40.1". */
const char *db_engine_name(const struct db *db);
/* The engines in this binary, by number; NULL after the last. */
const char *db_engine_name_at(size_t i);

/* The numbers that a store gives to its rows leave this rest. Shards have different ones, so that
 * rows of one can go to another and keep their numbers. */
struct db_numbers {
    int64_t step; /* 1 or more */
    int64_t rest; /* below it */
};
struct db_numbers db_numbers(const struct db *db);
/* The lowest of them that is not below `least`. */
int64_t db_numbers_from(struct db_numbers numbers, int64_t least);

/* --- values and statements --- */

#define DB_COUNT_END (INT64_C(1) << 60)

enum db_kind {
    DB_NULL,
    DB_INT,
    DB_TEXT,
    DB_BLOB,
    DB_OTHER, /* a type that pawl never writes: only in a damaged row */
};

/* Text is UTF-8 without NUL. */
struct db_value {
    enum db_kind kind;
    int64_t number;
    struct str bytes;
};

#define DB_I(n) ((struct db_value){DB_INT, (n), {NULL, 0}})
/* NULL text is SQL's null. */
#define DB_T(s) db_text(s)
#define DB_B(pointer, length) ((struct db_value){DB_BLOB, 0, {(const char *)(pointer), (length)}})
#define DB_U(uuid_lvalue) DB_B((uuid_lvalue).bytes, sizeof((uuid_lvalue).bytes))
#define DB_H(hash_lvalue) DB_B((hash_lvalue).bytes, SHA256_LEN)
#define DB_N() ((struct db_value){DB_NULL, 0, {NULL, 0}})

/* Times and limits that may be absent are kept as -1 in structs and as null in rows. */
#define DB_I_OR_NULL(n) ((n) < 0 ? DB_N() : DB_I(n))

static inline struct db_value db_text(struct str s)
{
    return (struct db_value){s.ptr == NULL ? DB_NULL : DB_TEXT, 0, s};
}

/* A statement without rows. With ret_changed it is run at once and *ret_changed is the number of
 * rows that it changed; on an engine across a network that costs a round trip. With NULL the engine
 * may run it later: see above. */
MUST_CHECK enum err db_exec_values(struct db *db, const char *sql, const struct db_value *values,
                                   size_t count, int64_t *ret_changed);

#define DB_EXEC(db, sql, ret_changed, ...)                              \
    db_exec_values((db), (sql), (const struct db_value[]){__VA_ARGS__}, \
                   ARRAY_LEN(((const struct db_value[]){__VA_ARGS__})), (ret_changed))

/* A statement whose tables have no rows that are written later, and which reads none that have: see
 * below. */
MUST_CHECK enum err db_exec_beside(struct db *db, const char *sql, const struct db_value *values,
                                   size_t count, int64_t *ret_changed);

#define DB_EXEC_BESIDE(db, sql, ret_changed, ...)                       \
    db_exec_beside((db), (sql), (const struct db_value[]){__VA_ARGS__}, \
                   ARRAY_LEN(((const struct db_value[]){__VA_ARGS__})), (ret_changed))

/* Rows one by one. Columns are valid until the next db_next() or db_rows_end(), which must be
 * called and returns how the query ended: a failed query has no rows and returns its error there.
 * One query per SQL text at a time. */
struct db_rows *db_query_values(struct db *db, const char *sql, const struct db_value *values,
                                size_t count);

#define DB_QUERY(db, sql, ...)                                           \
    db_query_values((db), (sql), (const struct db_value[]){__VA_ARGS__}, \
                    ARRAY_LEN(((const struct db_value[]){__VA_ARGS__})))

bool db_next(struct db_rows *rows);
MUST_CHECK enum err db_rows_end(struct db_rows *rows);

/* A column that holds what pawl never writes there (a value of another type, an id of another
 * length, a word that is not in its table) is damage: the query ends with ERR_DAMAGED, the log
 * names the row, and the reader gets a harmless value of the right type. A reader that checks more
 * than these functions do reports it with db_damaged(). */
bool db_is_null(struct db_rows *rows, int column);
int64_t db_int(struct db_rows *rows, int column);
int64_t db_int_or(struct db_rows *rows, int column, int64_t when_null);
/* A count, a version, a number that pawl gave: 0 or more, and within the 60 bits that an id has for
 * it. */
int64_t db_count(struct db_rows *rows, int column);
int64_t db_count_or(struct db_rows *rows, int column, int64_t when_null);
/* A time, in milliseconds: of the years 1 to 9999, which are those that can be shown. */
int64_t db_time(struct db_rows *rows, int column);
int64_t db_time_or(struct db_rows *rows, int column, int64_t when_null);
struct str db_str(struct db_rows *rows, int column); /* ptr is NULL for null */
struct uuid db_uuid(struct db_rows *rows, int column);
struct uuid db_uuid_or_nil(struct db_rows *rows, int column);
struct sha256 db_hash(struct db_rows *rows, int column);
void db_damaged(struct db_rows *rows, int column);
/* What came of reading a column's text: the query ends with an error, which ERR_DAMAGED explains in
 * the log. */
void db_understood(struct db_rows *rows, int column, enum err e);
/* A column as it is, whatever its type. */
struct db_value db_value_at(struct db_rows *rows, int column);
/* Of a word that was looked up in a table of `count`: itself, or 0 and damage when it is not there.
 */
unsigned db_known(struct db_rows *rows, int column, unsigned value, unsigned count);
/* Has the row been whole so far? */
bool db_is_whole(const struct db_rows *rows);
/* For lists that people look at: true when the row is damaged and must be left out. */
bool db_skip_damaged(struct db_rows *rows);

/* True when nobody else can write to the store while this connection is open: what it has committed
 * or read once stays true until it changes it itself. */
bool db_is_only_writer(const struct db *db);

/* --- the tables, for what copies a store --- */

/* One row for each column of each table, by table and then by name: the table, the column, what it
 * holds ("int", "text" or "blob"), and its place in the primary key from 1, or 0. */
struct db_rows *db_schema(struct db *db);

/* --- transactions --- */

/* How a commit ended. */
enum db_outcome {
    DB_COMMITTED, /* it is on disk, or will be with the next db_sync() */
    DB_ABORTED,   /* nothing happened; it may be tried again */
    DB_FENCED,    /* nothing happened, and another owner has the store: never try again */
    DB_IN_DOUBT,  /* nobody can tell; nothing more may be acknowledged from this connection */
};

/* Nothing of a transaction is undone singly: there are no savepoints. To undo one operation of a
 * batch, roll back and run the others again. */
MUST_CHECK enum err db_begin(struct db *db);
/* ERR_OK: committed. ERR_STORE_FAILED: fenced or in doubt. Any other error: aborted, and the
 * transaction is over. ERR_STORE_FULL: there is no room, it may work later. ERR_INTERNAL: a
 * statement broke a constraint. */
MUST_CHECK enum err db_commit(struct db *db);
/* As db_commit(), but on disk when it returns, and before any other connection can see it. */
MUST_CHECK enum err db_commit_now(struct db *db);
/* Of the last commit. */
enum db_outcome db_commit_outcome(const struct db *db);
/* Puts on disk what was committed before the call, and moves the mark `durable`. From any thread,
 * while the connection's own thread goes on. ERR_STORE_FAILED: nobody can tell what is on disk. */
MUST_CHECK enum err db_sync(struct db *db);
/* Without a transaction it does nothing. */
void db_rollback(struct db *db);

/* --- rows that are written later ---
 *
 * A row that changes several times in a transaction may be written once: until then it is in the
 * cache of rows. It is written before the commit, and before any query and any statement but those
 * of db_exec_beside(), so nothing that reads rows sees an old one. A rollback forgets it. */

/* Of the table whose rows they are. */
typedef enum err db_flush_rows(struct db *db);
/* There is a transaction, and a cache for the rows. */
bool db_writes_later(const struct db *db);
/* A row in the cache has changed, and `flush` will write it. */
void db_flush_with(struct db *db, db_flush_rows *flush);
/* After an error the transaction can only be rolled back. */
MUST_CHECK enum err db_flush(struct db *db);
/* Grows whenever this connection may have changed a row; the same number again means that nothing
 * was written since. An engine that runs statements later counts statements, not rows. */
int64_t db_changes(const struct db *db);

/* A snapshot of committed data for at most ms; a query that is still running then fails with
 * ERR_STORE_BUSY. */
MUST_CHECK enum err db_snapshot_begin(struct db *db, int64_t ms);
void db_snapshot_end(struct db *db);

/* --- what an engine may lack: ask before use --- */

/* A log that its writer must fold back, between transactions. */
bool db_has_log(const struct db *db);
/* True when db_housekeep() would have something to do; false without a log. */
bool db_wants_housekeeping(const struct db *db);
/* Folds the log back when it is long enough. ERR_STORE_BUSY when it is past its limit and a reader
 * outside keeps it from shrinking: then no write may be taken. */
MUST_CHECK enum err db_housekeep(struct db *db);
int64_t db_log_bytes(const struct db *db);

/* The engine's own check of its files; writes what it found, one line each, to `found`. */
bool db_has_integrity_check(const struct db *db);
MUST_CHECK enum err db_integrity_check(struct db *db, struct buf *found);

/* An online copy beside the store, a slice at a time, so that commits go on in between. */
struct db_backup;
bool db_has_backup(const struct db *db);
MUST_CHECK enum err db_backup_begin(struct db *db, struct problem *p, struct db_backup **ret);
MUST_CHECK enum err db_backup_step(struct db_backup *backup, bool *ret_done);
/* Also to give up. With ERR_OK `path` names a whole copy that the caller removes; otherwise there
 * is none. */
enum { DB_PATH_MAX = 4200 };
MUST_CHECK enum err db_backup_end(struct db_backup *backup, char path[static DB_PATH_MAX]);

#endif
