/* A layer under SQLite's writer that gathers what one commit appends to the write-ahead log and
 * writes it with one system call, just before the sync. SQLite itself writes each page and its
 * header separately. */
#ifndef PAWL_STORE_SQLITE_WAL_VFS_H
#define PAWL_STORE_SQLITE_WAL_VFS_H

/* The name to open the writer's connection with. Registers it on first use. */
const char *wal_vfs_name(void);

#endif
