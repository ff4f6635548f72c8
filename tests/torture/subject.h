/* The server under torture: the simulator's, with one client, and a bus and a receiver that refuse
 * now and then. There is one in the process. A child process gets its own copy by fork(), with
 * memory, disk and clock as they are. */
#ifndef PAWL_TESTS_TORTURE_SUBJECT_H
#define PAWL_TESTS_TORTURE_SUBJECT_H

#include "script.h"
#include "sim/server.h"

struct subject {
    struct sim_server server;
    struct crash_disk *disk;
    struct sim_receiver receiver;
    int64_t skew_us;
    char why[1000]; /* the first thing that the server did wrong by itself; "" */
};

/* `scheme` is that of the store: sqlite, or failing (store_support/stores.h). `folder` is a real
 * one, for the lock file. */
void subject_start(struct subject *s, const char *scheme, const char *folder);
/* After a failed store or a dead disk: a new process on the same disk. False: it is still well. */
bool subject_revive(struct subject *s);
void subject_stop(struct subject *s);

/* Time passes, and the server does what is due. */
void subject_pass_ms(struct subject *s, int64_t ms);

/* Sends the request of the line, with this idempotency key unless it is a GET, and waits, up to
 * some minutes of the server's time. The caller closes what it gets by sim_http_close(); it has no
 * answer when none came. Calls may fail meanwhile, also after the answer in what is done then. */
struct sim_exchange *subject_ask(struct subject *s, const struct script_line *line,
                                 const char *key);

/* The number of rows of each table, "table=n table=n ...", without the statistics, which may be
 * lost. */
void subject_count_rows(struct subject *s, struct buf *ret);

#endif
