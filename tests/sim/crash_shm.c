/* Locks on files and in shared memory, between the handles of one crash disk. */
#include "sim/crash_disk.h"

/* --- locks on the file, for the rollback journal --- */

/* The highest level that another handle holds. */
static int highest_other(const struct crash_handle *h)
{
    int highest = SQLITE_LOCK_NONE;
    for (const struct crash_handle *o = h->inode->handles; o != NULL; o = o->next) {
        if (o != h)
            highest = MAX(highest, o->lock);
    }
    return highest;
}

int crash_lock(sqlite3_file *file, int level)
{
    struct crash_handle *h = handle_of(file);
    if (h->inode == NULL)
        return SQLITE_IOERR_LOCK;
    if (h->lock >= level)
        return SQLITE_OK;
    int other = highest_other(h);
    if (level == SQLITE_LOCK_SHARED && other >= SQLITE_LOCK_PENDING)
        return SQLITE_BUSY;
    if (level >= SQLITE_LOCK_RESERVED && other >= SQLITE_LOCK_RESERVED)
        return SQLITE_BUSY;
    if (level == SQLITE_LOCK_EXCLUSIVE && other >= SQLITE_LOCK_SHARED) {
        h->lock = SQLITE_LOCK_PENDING; /* no new reader comes in between */
        return SQLITE_BUSY;
    }
    h->lock = level;
    return SQLITE_OK;
}

int crash_unlock(sqlite3_file *file, int level)
{
    struct crash_handle *h = handle_of(file);
    if (h->inode == NULL)
        return SQLITE_IOERR_UNLOCK;
    h->lock = MIN(h->lock, level);
    return SQLITE_OK;
}

int crash_check_reserved(sqlite3_file *file, int *ret)
{
    const struct crash_handle *h = handle_of(file);
    if (h->inode == NULL)
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    *ret = h->lock >= SQLITE_LOCK_RESERVED || highest_other(h) >= SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

/* --- shared memory, for the write-ahead log --- */

void shm_release(struct shm *shm)
{
    if (shm == NULL || --shm->refs > 0)
        return;
    for (int i = 0; i < shm->count; i++)
        free(shm->regions[i]);
    free(shm->regions);
    free(shm);
}

static void shm_join(struct crash_handle *h, int region_size)
{
    if (h->inode->shm == NULL) {
        h->inode->shm = must(calloc(1, sizeof(*h->inode->shm)));
        h->inode->shm->refs = 1;
        h->inode->shm->region_size = region_size;
    }
    h->shm = h->inode->shm;
    h->shm->refs++;
}

static void add_region(struct shm *shm)
{
    shm->regions = must(realloc(shm->regions, (size_t)(shm->count + 1) * sizeof(*shm->regions)));
    shm->regions[shm->count++] = must(calloc(1, (size_t)shm->region_size));
}

int crash_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
    struct crash_handle *h = handle_of(file);
    struct verdict v;
    *ret = NULL;
    if (h->inode == NULL)
        return SQLITE_IOERR_SHMMAP;
    struct crash_disk *disk = h->disk;
    disk_admit(disk, CRASH_SHM, h->entry->name, &v);
    if (v.code != SQLITE_OK)
        return disk_conclude(disk, CRASH_SHM, &v, SQLITE_OK);
    if (h->shm == NULL)
        shm_join(h, size);
    assert(h->shm->region_size == size);
    while (extend && h->shm->count <= region)
        add_region(h->shm);
    if (region < h->shm->count)
        *ret = h->shm->regions[region];
    return SQLITE_OK;
}

static bool conflicts(const struct crash_handle *h, unsigned mask, bool exclusive)
{
    for (const struct crash_handle *o = h->inode->handles; o != NULL; o = o->next) {
        unsigned held = o->shm_exclusive | (exclusive ? o->shm_shared : 0);
        if (o != h && (held & mask) != 0)
            return true;
    }
    return false;
}

static int take(struct crash_handle *h, unsigned mask, bool exclusive)
{
    struct verdict v;
    struct crash_disk *disk = h->disk;
    disk_admit(disk, CRASH_SHM, h->entry->name, &v);
    if (v.code != SQLITE_OK) {
        (void)disk_conclude(disk, CRASH_SHM, &v, SQLITE_OK);
        return SQLITE_IOERR_SHMLOCK;
    }
    if (conflicts(h, mask, exclusive))
        return SQLITE_BUSY;
    if (exclusive)
        h->shm_exclusive |= mask;
    else
        h->shm_shared |= mask;
    return SQLITE_OK;
}

int crash_shm_lock(sqlite3_file *file, int first, int count, int flags)
{
    struct crash_handle *h = handle_of(file);
    if (h->inode == NULL)
        return SQLITE_IOERR_SHMLOCK;
    assert(first >= 0 && count >= 1 && first + count <= SHM_LOCKS);
    unsigned mask = ((1u << count) - 1) << first;
    if ((flags & SQLITE_SHM_LOCK) != 0)
        return take(h, mask, (flags & SQLITE_SHM_EXCLUSIVE) != 0);
    h->shm_exclusive &= ~mask;
    h->shm_shared &= ~mask;
    return SQLITE_OK;
}

/* One thread sees its own writes in order. */
void crash_shm_barrier(sqlite3_file *file)
{
    (void)file;
}

/* Shared memory goes with the last handle that maps it, as after every process that used it has
 * ended; so delete_it makes no difference. */
int crash_shm_unmap(sqlite3_file *file, int delete_it)
{
    struct crash_handle *h = handle_of(file);
    (void)delete_it;
    if (h->shm == NULL)
        return SQLITE_OK;
    struct shm *shm = h->shm;
    h->shm = NULL;
    h->shm_shared = h->shm_exclusive = 0;
    shm_release(shm);
    if (h->inode != NULL && h->inode->shm == shm && shm->refs == 1) {
        h->inode->shm = NULL;
        shm_release(shm);
    }
    return SQLITE_OK;
}
