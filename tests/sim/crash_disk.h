/* The inside of a crash disk, shared by the crash_*.c files; crash_vfs.h is for everybody else. */
#ifndef PAWL_TESTS_SIM_CRASH_DISK_H
#define PAWL_TESTS_SIM_CRASH_DISK_H

#include "sim/crash_vfs.h"

#include "base/macros.h"

#include <sqlite3.h>

enum { SECTOR = 512, SHM_LOCKS = SQLITE_SHM_NLOCK };

/* A write or a change of size that a power cut may undo. Its image is what the range held before;
 * when changes are undone, it is exchanged with what the range held after. */
struct change {
    uint64_t seq; /* orders the changes of all files of a disk */
    int64_t offset;
    int64_t len;
    int64_t size_before;
    int64_t size_after;
    size_t image; /* where it begins in the file's images */
    bool is_truncation;
};

struct shm {
    unsigned refs; /* the file's, and those of handles, dead ones too: SQLite still has pointers */
    char **regions;
    int count;
    int region_size;
};

struct crash_handle;

/* What a name stands for. Bytes behind its size are zero. */
struct inode {
    struct inode *next; /* of the disk, the oldest first */
    struct inode *copy; /* while a disk is copied */
    struct crash_disk *disk;
    unsigned refs; /* names, now and on the disk, and handles */
    char *bytes;
    int64_t size;
    struct change *changes;
    size_t change_count;
    size_t change_capacity;
    size_t lost; /* so many of the first changes belong to failed syncs: the next one skips them */
    char *images;
    size_t images_len;
    struct crash_handle *handles;
    struct shm *shm;
};

/* A name, as it is now and as it is on the disk. */
struct entry {
    struct entry *next; /* in the order of creation */
    char *name;
    struct inode *now;
    struct inode *durable;
    uint64_t seq; /* of the last change of `now` */
};

struct crash_disk {
    struct crash_disk *next; /* mounted too */
    char *folder;            /* NULL: not mounted */
    struct inode *inodes;
    struct entry *entries;
    uint64_t seq;
    struct crash_options options;
    bool down;
    bool sync_failed; /* of the process that is running */
    struct crash_fault faults[CRASH_FAULTS_MAX];
    size_t fault_count;
    uint64_t fired;
    struct crash_counts counts;
};

/* SQLite's view of an open file. Dead when it has no inode. */
struct crash_handle {
    sqlite3_file base;
    struct crash_handle *next; /* of the same inode */
    struct crash_disk *disk;
    struct inode *inode;
    struct entry *entry; /* its name when it was opened */
    int lock;            /* SQLITE_LOCK_… */
    bool deletes;        /* its file, when it is closed */
    bool syncs_names;    /* with its first sync */
    struct shm *shm;
    unsigned shm_shared; /* locks, as bits */
    unsigned shm_exclusive;
};

/* --- crash_disk.c: names, handles, crashes --- */

struct entry *disk_find(const struct crash_disk *disk, const char *name);
/* Makes the file. `e` is its name's entry, or NULL for a name that was never used. */
struct entry *disk_create(struct crash_disk *disk, struct entry *e, const char *name);
void disk_delete(struct crash_disk *disk, struct entry *e);
/* All names of the disk. */
void disk_sync_names(struct crash_disk *disk);
void disk_sync_name(struct crash_disk *disk, const struct inode *inode);
void handle_attach(struct crash_handle *h, struct crash_disk *disk, struct entry *e);
/* Without effect on a dead one. */
void handle_detach(struct crash_handle *h);
/* The mounted disk and the rest of the path; NULL when the path is not on any. */
struct crash_disk *disk_of_path(const char *path, const char **ret_name);

/* --- crash_file.c: contents --- */

struct inode *inode_new(struct crash_disk *disk);
/* Frees it with the last one. */
void inode_release(struct inode *inode);
struct inode *inode_copy(const struct inode *from, struct crash_disk *disk);
void inode_write(struct inode *inode, const void *bytes, int64_t len, int64_t offset);
void inode_resize(struct inode *inode, int64_t size);
/* The changes up to this one. */
void inode_sync(struct inode *inode, uint64_t through);
void inode_fail_sync(struct inode *inode);

struct cut {
    enum crash_cut how; /* not CRASH_CUT_ANY */
    crash_draw *draw;
    void *ctx;
    uint64_t prefix; /* changes before this one are kept */
    uint64_t last;   /* the last write */
    bool powersafe;
};

void inode_cut(struct inode *inode, const struct cut *cut);

/* --- crash_fault.c --- */

/* What becomes of a call. */
struct verdict {
    int code;                        /* not SQLITE_OK: the call fails */
    bool partial;                    /* after half of it is done */
    const struct crash_fault *after; /* a crash right after it takes effect */
    struct crash_fault fault;        /* what `after` points to */
};

/* Counts the call if it changes files though a sync has failed. A sync that is under way when
 * another one fails does not count: call it when a sync begins. disk_admit() does it for others. */
void disk_note_touch(struct crash_disk *disk, enum crash_kind kind);
/* Counts the call of a live process and asks the faults; may crash the disk at once. */
void disk_admit(struct crash_disk *disk, enum crash_kind kind, const char *name,
                struct verdict *ret);
/* The code that the call returns; may crash the disk. */
int disk_conclude(struct crash_disk *disk, enum crash_kind kind, const struct verdict *v, int code);
/* SQLite's name for a failed call of this kind. */
int code_of(enum crash_kind kind);

/* --- crash_shm.c: locks and shared memory --- */

int crash_lock(sqlite3_file *file, int level);
int crash_unlock(sqlite3_file *file, int level);
int crash_check_reserved(sqlite3_file *file, int *ret);
int crash_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret);
int crash_shm_lock(sqlite3_file *file, int first, int count, int flags);
void crash_shm_barrier(sqlite3_file *file);
int crash_shm_unmap(sqlite3_file *file, int delete_it);
void shm_release(struct shm *shm);

/* --- memory that must be there --- */

static inline void *must(void *pointer)
{
    if (pointer == NULL)
        abort();
    return pointer;
}

static inline struct crash_handle *handle_of(sqlite3_file *file)
{
    return (struct crash_handle *)(void *)file;
}

#endif
