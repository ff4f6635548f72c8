/* Whose file it is, which version, and who uses it: what must be known before SQLite may touch a
 * data file. */
#ifndef PAWL_STORE_SQLITE_FILE_H
#define PAWL_STORE_SQLITE_FILE_H

#include "base/problem.h"

#include <sqlite3.h>

/* Takes PATH.lock, so that two servers never open one file; a crashed server's lock is gone with
 * its process. */
MUST_CHECK enum err sqlite_file_lock(const char *path, struct problem *p, int *ret_fd);
void sqlite_file_unlock(int fd);

/* Removes copies (PATH.backup-…) that a crash left behind. The lock is held. */
void sqlite_file_remove_old_copies(const char *path);

/* Refuses another program's file, and one that was written by a newer pawl. */
MUST_CHECK enum err sqlite_file_check_owner(sqlite3 *conn, const char *path, struct problem *p);

/* Brings an older or empty file to this binary's schema, one transaction per step. */
MUST_CHECK enum err sqlite_file_migrate(sqlite3 *conn, struct problem *p);

#endif
