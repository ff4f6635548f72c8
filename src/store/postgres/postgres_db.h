/* The PostgreSQL connection, shared by the files of this folder.
 *
 * Everything goes to the server in pipelines: a trip is a number of statements and one sync, and
 * its results are read whole. A transaction begins with the first trip that it needs. */
#ifndef PAWL_STORE_POSTGRES_POSTGRES_DB_H
#define PAWL_STORE_POSTGRES_POSTGRES_DB_H

#include "base/arena.h"
#include "base/hash_map.h"
#include "base/limits.h"
#include "store/db_driver.h"

#include <libpq-fe.h>

enum {
    POSTGRES_PARAMETERS_MAX = 40,
    POSTGRES_NAME_MAX = 64,
    POSTGRES_SCHEMA_MAX = 40, /* with the number of a shard it is still a name of PostgreSQL */
    POSTGRES_URL_MAX = 4096,
    POSTGRES_LANES = 2, /* commits of several shards that are under way together; 1 leaves a flush
                           nothing to run beside it, more make them smaller */
    POSTGRES_SETTLE_MS_MAX = 30 * 1000, /* a server that crashed is back by then, or it is down */
};

/* What a session calls a statement. */
struct postgres_name {
    char text[24];
    int64_t session; /* that knows it; 0: none */
    struct postgres_name *next_sent;
};

/* A prepared statement, and at the same time the cursor over its rows. */
struct postgres_rows {
    struct db_rows base;
    struct hash_entry entry; /* by the address of the text */
    struct postgres_name name;
    int parameters;
    Oid types[POSTGRES_PARAMETERS_MAX];
    PGresult *result;
    int row;
    /* An INSERT of values only: the text that takes arrays instead, and inserts many rows. NULL:
     * not made yet, or there is none. */
    char *many_sql;
    int width; /* parameters of a row; a statement may have several rows of the same kind */
    struct postgres_name many_name;
    /* Both in the sessions of a commit group. */
    struct postgres_name in_lane[POSTGRES_LANES];
    struct postgres_name many_in_lane[POSTGRES_LANES];
};

/* Statements that wait for the next trip: see postgres_batch.c. */
struct postgres_batch {
    struct arena arena;
    struct write *first;
    struct write **last;
    struct write *barrier; /* what comes later stays behind it; NULL: none */
};

struct postgres_db {
    struct db base;
    PGconn *conn; /* in pipeline mode, unless it is being opened */
    const struct env *env;
    enum db_access access;
    enum db_copy copy;         /* the configuration's */
    struct metric *reconnects; /* the same; NULL: not counted */
    struct metric *in_doubt;
    char url[POSTGRES_URL_MAX];
    char schema[POSTGRES_SCHEMA_MAX + 1]; /* of the directory */
    int shard;
    int new_shards;        /* of a directory that it makes; 0: one */
    bool is_node;          /* a node has taken the shard, with the epoch in the URL */
    int64_t session;       /* counts connections */
    int64_t epoch;         /* a writer's: what the directory must say */
    int64_t numbers_after; /* numbers of commits that this owner may not give */
    int64_t commit_num;    /* of the last transaction that began; no number is used twice */
    int64_t committed_num; /* of the last one that was committed; 0: none was */
    int64_t retry_at;      /* after a failure to connect, by the monotonic clock */
    int64_t patience_ms;   /* how long it waits for an answer; 0: see postgres_wait.c */

    struct hash_map statements;
    struct postgres_name *names_sent; /* prepared by this trip, if the server gets as far */
    int64_t names_given;
    struct postgres_rows broken; /* what a query gets that could not be prepared */

    bool in_transaction; /* or in a snapshot */
    bool begun;          /* the server knows of it */
    int prelude_due;     /* results of the statements that begin it that are still to come */
    enum err failed;     /* of a statement of the transaction */
    bool fenced;
    int syncs_to_skip; /* trips that nobody waits for */
    int64_t snapshot_ms;
    int64_t deadline_ms;
    int64_t changes;
    struct postgres_batch batch;
    struct postgres_syncer *syncer;      /* NULL: a commit is on disk when it returns */
    struct commit_group *group;          /* NULL: it always commits alone */
    int64_t admitted_to[POSTGRES_LANES]; /* sessions of the group that have its last commit */
};

static inline struct postgres_db *postgres_db_of(struct db *base)
{
    return CONTAINER_OF(base, struct postgres_db, base);
}

/* --- postgres_connection.c: the server's side --- */

/* Connects and sets up the session, outside of pipelines. */
MUST_CHECK enum err postgres_open_session(struct postgres_db *db, struct problem *p);
/* The same, and a writer takes the store. */
MUST_CHECK enum err postgres_connect(struct postgres_db *db, struct problem *p);
/* After a lost connection. ERR_STORE_BUSY: not now. ERR_STORE_FAILED, of a writer: another owner
 * has written meanwhile, or the server has lost a commit. */
MUST_CHECK enum err postgres_connect_again(struct postgres_db *db);
/* Before the first statement after a pause: a connection that was closed meanwhile is opened again.
 */
MUST_CHECK enum err postgres_wake(struct postgres_db *db);
/* What a result says; logs what nobody expects. */
enum err postgres_err_of(struct postgres_db *db, const PGresult *result);
bool postgres_is_lost(const struct postgres_db *db);
/* One row of one query, outside of pipelines, with texts for parameters. NULL: it failed, and p
 * tells why. */
PGresult *postgres_ask(struct postgres_db *db, const char *sql, size_t count,
                       const char *const *values, struct problem *p);
/* Runs statements without results, outside of pipelines. */
MUST_CHECK enum err postgres_run(struct postgres_db *db, const char *sql, struct problem *p);
/* A whole number in a result. */
int64_t postgres_number(const PGresult *result, int column);

/* --- postgres_dial.c --- */

/* Connects to the host of the URL that takes writes. The caller looks at its status and finishes
 * it. */
PGconn *postgres_dial(const struct postgres_db *db);
/* Does the URL name several, all of which are dialled? */
bool postgres_has_hosts(const struct postgres_db *db);

/* --- postgres_wait.c --- */

/* Waits until PQgetResult() need not. False: the connection is lost. */
MUST_CHECK bool postgres_await_result(struct postgres_db *db);
/* What was sent outside of pipelines: its last result, for the caller to clear. NULL: it was not
 * sent, or the connection is lost. */
PGresult *postgres_last_result(struct postgres_db *db, bool sent);
/* The same for one statement with texts for parameters. */
PGresult *postgres_exec_text(struct postgres_db *db, const char *sql, size_t count,
                             const char *const *values);

/* --- postgres_url.c --- */

/* Loads libpq, and takes the parameters that are pawl's own out of the URL. */
MUST_CHECK enum err postgres_read_url(struct postgres_db *db, struct str url, struct problem *p);

/* --- postgres_migrate.c --- */

/* 0: there is no directory. A schema of that name which is not pawl's is refused. */
MUST_CHECK enum err postgres_directory_version(struct postgres_db *db, struct problem *p,
                                               int64_t *ret);
MUST_CHECK enum err postgres_migrate_directory(struct postgres_db *db, int64_t version,
                                               struct problem *p);
/* Creates and migrates the tables of the shard, unless it has another owner by then. */
MUST_CHECK enum err postgres_migrate_shard(struct postgres_db *db, struct problem *p);

/* --- postgres_owner.c: locks and epochs --- */

enum { POSTGRES_LOCK_CLASS = 0x7061776c }; /* "pawl": of the locks of sessions */

/* A writer without a node holds a lock on its shard: two such never have one, and no node takes the
 * shard meanwhile. */
MUST_CHECK enum err postgres_lock(struct postgres_db *db, struct problem *p);
/* Creates or migrates the directory, one process at a time. */
MUST_CHECK enum err postgres_make_directory(struct postgres_db *db, struct problem *p,
                                            bool *ret_new);
/* ERR_STORE_FAILED: the database has only shards of a cluster whose directory is elsewhere. */
MUST_CHECK enum err postgres_check_directory(struct postgres_db *db, struct problem *p);
/* Creates what is missing and migrates. Without a node it takes the shard, unless a node has it. */
MUST_CHECK enum err postgres_take(struct postgres_db *db, struct problem *p);
/* Has the shard a commit of this number? Outside of pipelines. */
MUST_CHECK enum err postgres_find_commit(struct postgres_db *db, int64_t num, struct problem *p,
                                         bool *ret_found);
/* Fences off every other owner. ERR_STORE_FAILED: this connection had the store before, and
 * somebody has raised the epoch since. */
MUST_CHECK enum err postgres_raise_epoch(struct postgres_db *db, struct problem *p);

/* --- postgres_place.c: shards in other databases --- */

/* What tells a directory from all others; valid until the result is cleared. NULL: p tells why. */
PGresult *postgres_directory_id(struct postgres_db *db, struct problem *p);
/* Gets another database ready for a shard of the directory with this id. */
MUST_CHECK enum err postgres_prepare_place(const struct env *env, const char *url,
                                           const char *directory_id, size_t shard,
                                           struct problem *p);

/* --- postgres_move.c: the rows of a tenant --- */

struct tenant_move; /* cluster_store.h */
MUST_CHECK enum err postgres_move_tenant(struct postgres_db *db, const struct tenant_move *move,
                                         struct problem *p, int64_t *ret_rows);

/* --- postgres_trip.c: pipelines --- */

struct trip {
    PGresult *last; /* of the last statement that succeeded; NULL: none. The caller clears it. */
    enum err err;
};

/* The statements that begin the transaction, if the server does not know of it yet. False: the
 * connection is lost. */
MUST_CHECK bool postgres_send_prelude(struct postgres_db *db);
/* A writer's transaction gets the next number. */
void postgres_next_commit_num(struct postgres_db *db);
/* A prepared statement, by the name that the session knows; values fit its parameters. */
MUST_CHECK bool postgres_send(struct postgres_db *session, const struct postgres_name *name,
                              const struct postgres_rows *s, const struct db_value *values);
/* A statement of fixed text. */
MUST_CHECK bool postgres_send_text(struct postgres_db *db, const char *sql);
/* Waits until the fence has let the transaction in. What was sent stays under way. */
MUST_CHECK enum err postgres_await_fence(struct postgres_db *db);
/* Ends the trip and reads its results. */
struct trip postgres_finish_trip(struct postgres_db *db, bool sent);
/* Ends it without waiting: the next one passes over the results. */
void postgres_leave_trip(struct postgres_db *db, bool sent);

/* --- postgres_statement.c --- */

/* Finds or prepares it for values of these kinds. Its error is in base.err. */
struct postgres_rows *postgres_prepare(struct postgres_db *db, const char *sql,
                                       const struct db_value *values, size_t count);
enum err postgres_exec(struct db *base, const char *sql, const struct db_value *values,
                       size_t count, int64_t *ret_changed);
struct db_rows *postgres_query(struct db *base, const char *sql, const struct db_value *values,
                               size_t count);
bool postgres_next(struct db_rows *base);
void postgres_end(struct db_rows *base);
struct db_value postgres_column(struct db_rows *base, int column);
int postgres_column_count(struct db_rows *base);
const char *postgres_column_name(struct db_rows *base, int column);
void postgres_forget_statements(struct postgres_db *db);

/* --- postgres_batch.c --- */

void postgres_batch_init(struct postgres_batch *batch);
void postgres_batch_release(struct postgres_batch *batch);
/* Copies the values. */
MUST_CHECK enum err postgres_batch_add(struct postgres_db *db, struct postgres_rows *s,
                                       const struct db_value *values);
bool postgres_batch_is_full(const struct postgres_batch *batch);
void postgres_batch_clear(struct postgres_batch *batch);
/* Sends what waits, and forgets it. */
MUST_CHECK bool postgres_batch_send(struct postgres_db *db);
/* INSERTs of values, and nothing else? */
bool postgres_batch_has_only_rows(const struct postgres_batch *batch);
/* Sends such a batch in a lane's session, which has another search path, and keeps it. */
MUST_CHECK bool postgres_batch_send_in(struct postgres_db *db, struct postgres_db *session,
                                       int lane);

/* --- postgres_sync.c: commits that are put on disk later --- */

/* Connects when it is first needed. NULL: no memory. */
struct postgres_syncer *postgres_syncer_new(const struct postgres_db *db, struct db_marks *marks);
void postgres_syncer_free(struct postgres_syncer *s);
/* From any thread. */
MUST_CHECK enum err postgres_sync(struct db *base);
/* Nothing more may be written. */
bool postgres_syncer_failed(const struct postgres_syncer *s);
/* Does work wait for the writer? Otherwise a commit need not be put off: that would be a second
 * transaction, and nothing could run meanwhile. */
bool postgres_work_waits(const struct postgres_syncer *s);
/* Around each commit, whatever comes of it. `now`: it was not put off. */
void postgres_commit_begins(struct postgres_syncer *s);
void postgres_commit_ends(struct postgres_db *db, bool now, enum db_outcome outcome);

/* --- commit_group.c --- */

struct commit_group;

/* What came of offering a commit to the group. */
enum group_result {
    GROUP_NONE,      /* nothing: commit alone */
    GROUP_HAS_TURN,  /* the same, and pass the turn on afterwards */
    GROUP_COMMITTED, /* under commit_num, and it is on disk */
    GROUP_IN_DOUBT,  /* the answer to COMMIT is lost */
};

/* Takes part from now on, if its shard is in the group's database. */
void postgres_group_join(struct postgres_db *db, struct commit_group *group);
void postgres_group_leave(struct postgres_db *db);
enum group_result postgres_group_offer(struct postgres_db *db);
void postgres_group_pass_on(struct postgres_db *db);

/* --- postgres.c --- */

/* Outside of a transaction, in any session. */
MUST_CHECK enum err postgres_ask_whether_committed(struct postgres_db *session, int shard,
                                                   int64_t num, bool *ret_committed);

MUST_CHECK enum err postgres_begin(struct db *base);
MUST_CHECK enum err postgres_commit(struct db *base, enum db_outcome *ret_outcome);
void postgres_rollback(struct db *base);

#endif
