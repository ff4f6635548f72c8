/* A layer under SQLite's writer, for the write-ahead log only. It gathers what one commit appends
 * and writes it with one system call, just before the sync; SQLite itself writes each page and its
 * header separately. And it can leave the sync of a commit to another thread: SQLite, which is set
 * to synchronous=FULL, then goes on as if it had been done. All other syncs are done at once: that
 * of the log's header when the log starts again, and those of checkpoints. */
#ifndef PAWL_STORE_SQLITE_WAL_VFS_H
#define PAWL_STORE_SQLITE_WAL_VFS_H

#include "store/db.h"

#include <sqlite3.h>

/* The name to open the writer's connection with. Registers it on first use. */
const char *wal_vfs_name(void);

/* `file` is the log as SQLite has opened it; false: it is not of this layer. The marks outlive it.
 */
MUST_CHECK bool wal_vfs_use_marks(sqlite3_file *file, struct db_marks *marks);
/* Around a commit: its sync is left to wal_vfs_sync(). */
void wal_vfs_defer(sqlite3_file *file, bool defers);
/* From any thread. */
int wal_vfs_sync(sqlite3_file *file);

#endif
