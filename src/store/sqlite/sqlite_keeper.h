/* Folds the write-ahead log back beside the writer: a thread with a connection of its own copies
 * pages from the log to the main file, while the writer goes on committing. SQLite itself sees to
 * the order: it syncs the log before it copies, and the main file once all of the log is copied;
 * only then may the log start again. That last pass is the writer's, and would sync everything that
 * was ever copied: so this thread syncs the main file before it, and leaves a few pages to it. */
#ifndef PAWL_STORE_SQLITE_SQLITE_KEEPER_H
#define PAWL_STORE_SQLITE_SQLITE_KEEPER_H

#include "store/db.h"

struct sqlite_keeper;

/* NULL: no memory, or the file cannot be opened. The marks outlive it: `failed` is set as soon as a
 * pass could not write or sync. */
struct sqlite_keeper *sqlite_keeper_start(const char *path, struct db_marks *marks);
/* Finishes its pass, ends the thread and frees it. NULL is fine. */
void sqlite_keeper_stop(struct sqlite_keeper *keeper);

/* The functions below are for the writer's thread. */

/* Begins a pass over what the log holds now, unless one is under way. `is_last`: the log is about
 * to start again, so the pass ends with a sync of the main file. */
void sqlite_keeper_wake(struct sqlite_keeper *keeper, bool is_last);
/* Waits until no pass is under way. */
void sqlite_keeper_wait(struct sqlite_keeper *keeper);
bool sqlite_keeper_rests(struct sqlite_keeper *keeper);
/* Pages of the present log that are copied. */
int64_t sqlite_keeper_folded(struct sqlite_keeper *keeper);
void sqlite_keeper_log_restarts(struct sqlite_keeper *keeper);

#endif
