/* A PostgreSQL server in memory, for the real driver (src/store/postgres) and the real directory of
 * a cluster. pg_client.c implements the functions of libpq that they call; the tables of each shard
 * are in a SQLite database of its own, and those of the directory in another one.
 *
 * What matters here is what PostgreSQL promises: a transaction is seen whole and only when it is
 * committed; a reader's snapshot does not move; whoever changes the row of a shard waits for
 * transactions that the fence has let in; one clock for all. Connections break, before or after the
 * server has done what was sent. A crash of the server itself is not simulated. */
#ifndef PAWL_TESTS_SIM_NODES_PG_H
#define PAWL_TESTS_SIM_NODES_PG_H

#include "base/env.h"
#include "base/macros.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { PG_PARAMETERS_MAX = 48, PG_GROUPS_MAX = 64 };

struct pg_conn;

/* --- the server --- */

enum pg_fault {
    PG_WELL,
    PG_LOST_BEFORE,  /* the connection breaks, and the server has not seen it */
    PG_LOST_AFTER,   /* it breaks when the server has done it, before the answer comes */
    PG_GHOST,        /* as before, but the server keeps the session until it is idle for too long */
    PG_PAUSE_BEFORE, /* the whole process stands still */
    PG_PAUSE_AFTER,
};

struct pg_config {
    const char *folder; /* mounted on a crash disk that never fails */
    int shards;
    const struct env *env;
    /* What happens to what a process sends: drawn for each command. NULL: nothing. */
    enum pg_fault (*fault)(void *ctx, int group, bool commits);
    /* A rule of ownership is broken. */
    void (*broken)(void *ctx, const char *why);
    void *ctx;
};

void pg_start(const struct pg_config *config);
/* The process of a group of fibers, by the name of its node. */
void pg_set_node(int group, const char *name);
/* Its sessions end, with what they have not committed. */
void pg_cut(int group);
/* Nobody can connect, or this one cannot, and sessions end. */
void pg_set_away(bool away);
void pg_set_node_away(int group, bool away);
/* Is every shard with a process whose lease lives? */
bool pg_shards_have_owners(void);
/* Which group has raised the shard's epoch last; 0: none. */
int pg_owner_of(int shard);

/* --- values, as they come and go --- */

enum pg_type { PG_UNKNOWN = 0, PG_BOOL = 16, PG_BYTEA = 17, PG_INT8 = 20, PG_TEXT = 25 };

struct pg_value {
    bool is_null;
    int64_t number; /* of PG_INT8 and PG_BOOL */
    enum pg_type type;
    const char *bytes;
    int len;
};

/* A result; the columns of a row follow each other. Freed by pg_result_free(). */
struct pg_result {
    int status; /* libpq's */
    char state[6];
    char message[200];
    char tag[24]; /* of the command */
    int64_t changed;
    int rows, columns;
    struct pg_value *values;
    char **texts; /* of the values, as they are asked for in text form */
    char (*names)[64];
    int parameters; /* of a description */
    enum pg_type types[PG_PARAMETERS_MAX];
    bool is_binary;
    struct pg_result *next;
};

void pg_result_free(struct pg_result *r);

/* --- sessions --- */

/* NULL: refused. */
struct pg_conn *pg_connect(void);
void pg_disconnect(struct pg_conn *c);
bool pg_is_lost(const struct pg_conn *c);
/* Runs statements that need no parameters and of which only the last one has rows. */
struct pg_result *pg_run_script(struct pg_conn *c, const char *sql);
/* Runs one statement; types of 0 are the server's guess. */
struct pg_result *pg_run(struct pg_conn *c, const char *sql, const struct pg_value *values,
                         int count);
/* Compiles a statement; *types is completed by what is known of its parameters. */
struct pg_result *pg_describe(struct pg_conn *c, const char *sql, int count, enum pg_type *types);
/* Notifications that the client has not taken yet. */
bool pg_has_notes(const struct pg_conn *c);
void pg_take_notes(struct pg_conn *c);
/* Readable when there are notes; -1: it does not listen. */
int pg_fd(const struct pg_conn *c);

/* --- pg_words.c --- */

/* The statement in SQLite's words, freed by free(). A data-modifying WITH is not one statement
 * there: see pg_tables.c. */
char *pg_translate(const char *sql);

#endif
