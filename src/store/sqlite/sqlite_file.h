/* Whose file it is, which version, and who uses it: what must be known before SQLite may touch a
 * data file. */
#ifndef PAWL_STORE_SQLITE_SQLITE_FILE_H
#define PAWL_STORE_SQLITE_SQLITE_FILE_H

#include "base/env.h"
#include "base/problem.h"

#include <sqlite3.h>

/* Takes PATH.lock, so that two servers never open one file; a crashed server's lock is gone with
 * its process. */
MUST_CHECK enum err sqlite_file_lock(const char *path, struct problem *p, int *ret_fd);
void sqlite_file_unlock(int fd);

/* Where a copy of the store is made, beside it: a new name each time, which only pawl gives. False
 * when it is too long. */
MUST_CHECK bool sqlite_file_name_copy(const char *path, const struct env *env, char *out,
                                      size_t out_size);
/* Removes a copy, with what SQLite keeps beside it. */
void sqlite_file_remove_copy(const char *copy);
/* Removes the copies that a crash left behind: files with such a name and no others. The lock is
 * held. */
void sqlite_file_remove_unfinished_copies(const char *path);

/* Refuses another program's file, and one that was written by a newer pawl. */
MUST_CHECK enum err sqlite_file_check_owner(sqlite3 *conn, const char *path, struct problem *p);

/* Refuses the target of a copy that is not finished. */
MUST_CHECK enum err sqlite_file_check_whole(sqlite3 *conn, struct problem *p);

/* What a crash left behind may have been read from the page cache and be nowhere else, even if a
 * sync now finds nothing to do. Puts it on disk: log, file and folder. ERR_STORE_FAILED when a sync
 * fails; then nothing may be served. */
MUST_CHECK enum err sqlite_file_make_durable(sqlite3 *conn, const char *path, struct problem *p);

/* The log as it is open; NULL: there is none yet. */
sqlite3_file *sqlite_file_log(sqlite3 *conn);

/* Makes the index of the log (PATH-shm) as large as a log of so many pages needs. SQLite extends it
 * only after a commit is on disk, and if the disk is full by then, nobody knows whether that commit
 * counts. Without room for it now, that may still happen. */
void sqlite_file_reserve_index(sqlite3 *conn, int64_t log_pages);

/* Brings an older or empty file to this binary's schema, one transaction per step. */
MUST_CHECK enum err sqlite_file_migrate(sqlite3 *conn, struct problem *p);

#endif
