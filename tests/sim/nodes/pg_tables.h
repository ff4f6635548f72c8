/* What is below the sessions of the simulated PostgreSQL: connections to SQLite databases, which
 * execute statements of PostgreSQL. */
#ifndef PAWL_TESTS_SIM_NODES_PG_TABLES_H
#define PAWL_TESTS_SIM_NODES_PG_TABLES_H

#include "sim/nodes/pg.h"

#include <sqlite3.h>

enum { PG_BUCKETS = 1024 };

struct pg_prepared;

struct pg_link {
    sqlite3 *db;
    struct pg_prepared *prepared[PG_BUCKETS]; /* statements by their texts */
    bool taken;                               /* by a reader's transaction */
};

void pg_link_open(struct pg_link *link, const char *folder, const char *name);
/* Runs what cannot fail, in SQLite's words. */
void pg_exec(sqlite3 *db, const char *sql);
/* Runs a statement in SQLite's words; a broken constraint is an error of the result. */
struct pg_result *pg_link_step(struct pg_link *link, const char *sql, const struct pg_value *values,
                               int count);
/* The same in PostgreSQL's words. */
struct pg_result *pg_link_run(struct pg_link *link, const char *sql, const struct pg_value *values,
                              int count);
/* Completes the types of a statement's parameters by what is known of them. */
void pg_learn_types(sqlite3 *db, const char *sql, int count, enum pg_type *types);

struct pg_result *pg_result_new(int status, const char *tag);
struct pg_result *pg_error(const char *state, const char *message);
/* One row of one number or truth value. */
struct pg_result *pg_one_value(enum pg_type type, int64_t number);

/* Every session that listens hears of it (pg_server.c). */
void pg_notify_all(void);
/* Does a connection show this session of a node (pg_server.c)? */
bool pg_session_is_shown(const char *session);

/* --- pg_schema.c --- */

void pg_make_directory(const struct pg_config *config);
/* Of a shard. */
void pg_make_tables(const struct pg_config *config, const char *name);

#endif
