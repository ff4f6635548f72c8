/* A file system in memory under SQLite, for crashes that a test chooses: power cuts, killed
 * processes, failed calls, full disks.
 *
 * A disk is one machine's storage. It is mounted at a folder's path; whatever SQLite opens below
 * that path is in the disk's memory, everything else goes to the file system that was the default
 * before. Several disks may be mounted at once.
 *
 * Each file has contents as a reader sees them now (the page cache) and remembers what a power cut
 * may still undo: the writes and changes of size since its last sync. A name is durable once its
 * file was synced; all names are, once the folder was. SQLite syncs the folder with the first sync
 * of a journal and with some deletions; the store calls fsync() on it, which is why programs with a
 * crash disk are linked with --wrap=fsync.
 *
 * Names of files are relative to the mounted folder. There are no locks in here: one OS thread uses
 * all of it. Running out of real memory ends the process. */
#ifndef PAWL_TESTS_SIM_CRASH_VFS_H
#define PAWL_TESTS_SIM_CRASH_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crash_disk;

/* A number below `below`, which is at least 1. */
typedef uint64_t crash_draw(void *ctx, uint64_t below);

/* --- the file system, once per process --- */

/* Makes it SQLite's default file system. Before the first db_open(), which looks the default up
 * once. May be called again. */
void crash_vfs_register(void);
/* What SQLite's random numbers follow from, from now on. */
void crash_vfs_seed(uint64_t seed);
/* What SQLite takes for the time: milliseconds since 1970. NULL: the machine's clock. */
void crash_vfs_set_clock(int64_t (*now_ms)(void *ctx), void *ctx);
/* Called when SQLite waits for a lock, instead of sleeping. NULL: it goes on at once. */
void crash_vfs_set_sleep(void (*sleep_us)(void *ctx, int64_t us), void *ctx);

/* Called in the middle of a sync: what is written until it returns is not part of the sync. NULL: a
 * sync takes no time. */
void crash_vfs_set_pause(void (*pause)(void *ctx), void *ctx);

/* --- disks --- */

/* Empty, not mounted. */
struct crash_disk *crash_disk_new(void);
/* As it is now, with what is not synced, but without handles, locks, faults, counts, options and
 * mount.
 */
struct crash_disk *crash_disk_copy(const struct crash_disk *from);
/* The disk's files become those of another one, as if it had been copied; handles are dead. Mount,
 * options, faults and counts stay. */
void crash_disk_become(struct crash_disk *disk, const struct crash_disk *other);
/* Handles that are still open are dead from then on. NULL is fine. */
void crash_disk_free(struct crash_disk *disk);
/* `folder` ends with a slash; NULL: nowhere. */
void crash_disk_mount(struct crash_disk *disk, const char *folder);

struct crash_options {
    /* A torn write does not damage bytes outside of its range (SQLITE_IOCAP_POWERSAFE_OVERWRITE,
     * which SQLite assumes of every disk unless told otherwise). Without it, what lies beside the
     * range in a torn sector of 512 bytes may be garbage after a power cut. */
    bool powersafe_overwrite;
    /* A sync reports success and does nothing. No store can survive that. */
    bool lies_about_syncs;
    int64_t bytes_max; /* the disk is full when its files are this large together; 0: never */
};

/* At first: powersafe, honest, endless. */
void crash_disk_set_options(struct crash_disk *disk, const struct crash_options *options);

/* --- crashes --- */

/* The process died. Every open handle is dead: its calls fail and change nothing, only closing it
 * works. Locks and shared memory are gone. The page cache stays, with what is not synced. */
void crash_disk_kill(struct crash_disk *disk);

/* What happens to the changes that were not synced. */
enum crash_cut {
    CRASH_CUT_DROP,      /* all are lost */
    CRASH_CUT_KEEP,      /* all are on the disk */
    CRASH_CUT_RANDOM,    /* each is kept, lost or torn at sectors, in any order */
    CRASH_CUT_PREFIX,    /* the first ones are kept */
    CRASH_CUT_TORN_LAST, /* all are kept, the last write is torn */
    CRASH_CUT_ANY,       /* one of the others */
};

/* The power failed. As a kill; besides, the page cache is gone. */
void crash_disk_cut(struct crash_disk *disk, enum crash_cut how, crash_draw *draw, void *ctx);

/* After a kill or a cut nothing can be opened or deleted, so that what is left of the old process
 * cannot pass for a new one. */
bool crash_disk_is_down(const struct crash_disk *disk);
/* The next process begins. */
void crash_disk_restart(struct crash_disk *disk);

/* --- faults --- */

/* Calls by kind. CRASH_SHM: mapping shared memory, and taking a lock in it. */
enum crash_kind {
    CRASH_READ,
    CRASH_WRITE,
    CRASH_SYNC,
    CRASH_TRUNCATE,
    CRASH_OPEN,
    CRASH_DELETE,
    CRASH_SHM,
    CRASH_KINDS,
    CRASH_ANY = CRASH_KINDS,
    CRASH_CHANGE, /* a write, sync, change of size or deletion */
};

enum crash_result {
    CRASH_EIO,    /* of a sync: what it should have written counts as clean, but is not on the disk;
                     a later sync helps only what was written again, as on Linux */
    CRASH_ENOSPC, /* of a write: SQLITE_FULL; other calls: EIO, as with SQLite's own layer */
    CRASH_SHORT,  /* part of a read or write is done, then EIO; other calls: EIO */
    CRASH_POWER_CUT, /* before or after the call takes effect */
    CRASH_KILL,      /* likewise */
};

struct crash_fault {
    enum crash_kind kind;
    const char *suffix; /* only of files whose name ends so; NULL: all. Not copied. */
    uint64_t nth;       /* 1: the next call of the kind */
    enum crash_result result;
    bool lasting;       /* the calls after the nth fail too; not of a cut or kill */
    enum crash_cut cut; /* of CRASH_POWER_CUT */
    crash_draw *draw;   /* needed by CRASH_POWER_CUT and CRASH_KILL */
    void *ctx;
};

enum { CRASH_FAULTS_MAX = 8 };

/* Arms a fault, beside those that are armed already. */
void crash_disk_fail(struct crash_disk *disk, const struct crash_fault *fault);
/* Disarms all, and forgets those that have fired. */
void crash_disk_clear_faults(struct crash_disk *disk);
/* How many calls failed by an armed fault since the last crash_disk_clear_faults(). */
uint64_t crash_disk_fired(const struct crash_disk *disk);

/* --- watching --- */

struct crash_counts {
    uint64_t calls[CRASH_KINDS];
    uint64_t bytes_written;
    uint64_t kills;
    uint64_t cuts;
    uint64_t unsynced_bytes_at_cut; /* of the last cut */
    uint64_t unsynced_changes_at_cut;
    /* Writes, syncs, changes of size and deletions after a sync has failed.
     * There should be none: nobody can tell what is on the disk. The next process may. */
    uint64_t touched_after_failed_sync;
};

const struct crash_counts *crash_disk_counts(const struct crash_disk *disk);
/* Would a power cut leave this file as it is now? NULL: every file, and the names. */
bool crash_disk_is_synced(const struct crash_disk *disk, const char *name);
int64_t crash_disk_bytes(const struct crash_disk *disk);
void crash_disk_files(const struct crash_disk *disk,
                      void (*found)(void *ctx, const char *name, int64_t size), void *ctx);
/* Valid until the file changes; NULL when there is no such file. */
const char *crash_disk_read_file(const struct crash_disk *disk, const char *name, size_t *ret_len);
/* Replaces the file's contents, or makes the file; durable at once. */
void crash_disk_write_file(struct crash_disk *disk, const char *name, const void *bytes,
                           size_t len);

#endif
