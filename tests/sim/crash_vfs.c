/* The crash file system as SQLite calls it. */
#include "sim/crash_disk.h"

#include "store/db.h"

static sqlite3_vfs crash_vfs;
static sqlite3_vfs *beneath; /* the default before, for every path that is not mounted */

static struct {
    uint64_t chance; /* of splitmix64 */
    int64_t (*now_ms)(void *ctx);
    void *clock;
    void (*sleep_us)(void *ctx, int64_t us);
    void *sleeper;
    void (*pause)(void *ctx);
    void *pauser;
} machine;

/* --- an open file --- */

static int crash_close(sqlite3_file *file)
{
    struct crash_handle *h = handle_of(file);
    (void)crash_shm_unmap(file, 0);
    if (h->inode != NULL && h->deletes && h->entry->now == h->inode)
        disk_delete(h->disk, h->entry);
    handle_detach(h);
    return SQLITE_OK;
}

/* What is there of the range; false when that is not all of it. The rest is zero. */
static bool copy_out(const struct inode *inode, char *out, int64_t len, int64_t offset)
{
    int64_t there = MAX(MIN(len, inode->size - offset), 0);
    if (there > 0)
        memcpy(out, inode->bytes + offset, (size_t)there);
    memset(out + there, 0, (size_t)(len - there));
    return there == len;
}

static int crash_read(sqlite3_file *file, void *out, int len, sqlite3_int64 offset)
{
    struct crash_handle *h = handle_of(file);
    struct verdict v;
    if (h->inode == NULL)
        return SQLITE_IOERR_READ;
    struct crash_disk *disk = h->disk;
    disk_admit(disk, CRASH_READ, h->entry->name, &v);
    if (h->inode == NULL || (v.code != SQLITE_OK && !v.partial))
        return disk_conclude(disk, CRASH_READ, &v, SQLITE_OK);
    bool whole = copy_out(h->inode, out, v.partial ? len / 2 : len, offset);
    return disk_conclude(disk, CRASH_READ, &v, whole ? SQLITE_OK : SQLITE_IOERR_SHORT_READ);
}

/* How much of a write fits on the disk. */
static int64_t room_for(const struct crash_disk *disk, const struct inode *inode, int64_t len,
                        int64_t offset)
{
    int64_t grows = offset + len - inode->size;
    if (disk->options.bytes_max == 0 || grows <= 0)
        return len;
    int64_t left = MAX(disk->options.bytes_max - crash_disk_bytes(disk), 0);
    return MAX(len - MAX(grows - left, 0), 0);
}

static int crash_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 offset)
{
    struct crash_handle *h = handle_of(file);
    struct verdict v;
    if (h->inode == NULL)
        return SQLITE_IOERR_WRITE;
    struct crash_disk *disk = h->disk;
    disk_admit(disk, CRASH_WRITE, h->entry->name, &v);
    if (h->inode == NULL || (v.code != SQLITE_OK && !v.partial && v.after == NULL))
        return disk_conclude(disk, CRASH_WRITE, &v, SQLITE_OK);
    int64_t done = v.partial ? len / 2 : len;
    int64_t fits = room_for(disk, h->inode, done, offset);
    inode_write(h->inode, bytes, fits, offset);
    disk->counts.bytes_written += (uint64_t)fits;
    return disk_conclude(disk, CRASH_WRITE, &v, fits == done ? SQLITE_OK : SQLITE_FULL);
}

static int crash_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct crash_handle *h = handle_of(file);
    struct verdict v;
    if (h->inode == NULL)
        return SQLITE_IOERR_TRUNCATE;
    struct crash_disk *disk = h->disk;
    disk_admit(disk, CRASH_TRUNCATE, h->entry->name, &v);
    if (h->inode != NULL && (v.code == SQLITE_OK || v.after != NULL))
        inode_resize(h->inode, size);
    return disk_conclude(disk, CRASH_TRUNCATE, &v, SQLITE_OK);
}

static int crash_sync(sqlite3_file *file, int flags)
{
    struct crash_handle *h = handle_of(file);
    struct verdict v;
    (void)flags;
    if (h->inode == NULL)
        return SQLITE_IOERR_FSYNC;
    struct crash_disk *disk = h->disk;
    uint64_t begun = disk->seq;
    disk_note_touch(disk, CRASH_SYNC);
    if (machine.pause != NULL)
        machine.pause(machine.pauser);
    if (h->inode == NULL)
        return SQLITE_IOERR_FSYNC; /* it crashed meanwhile */
    disk_admit(disk, CRASH_SYNC, h->entry->name, &v);
    if (h->inode != NULL && v.code != SQLITE_OK && v.after == NULL) {
        inode_fail_sync(h->inode);
    } else if (h->inode != NULL && !disk->options.lies_about_syncs) {
        inode_sync(h->inode, begun);
        disk_sync_name(disk, h->inode);
        if (h->syncs_names)
            disk_sync_names(disk);
        h->syncs_names = false;
    }
    return disk_conclude(disk, CRASH_SYNC, &v, SQLITE_OK);
}

static int crash_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    const struct crash_handle *h = handle_of(file);
    if (h->inode == NULL)
        return SQLITE_IOERR_FSTAT;
    *ret = h->inode->size;
    return SQLITE_OK;
}

static int crash_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int crash_sector_size(sqlite3_file *file)
{
    (void)file;
    return SECTOR;
}

/* What SQLite says of a plain disk: no atomic writes, no ordered ones. */
static int crash_characteristics(sqlite3_file *file)
{
    const struct crash_handle *h = handle_of(file);
    bool powersafe = h->disk == NULL || h->disk->options.powersafe_overwrite;
    return powersafe ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 2,
    .xClose = crash_close,
    .xRead = crash_read,
    .xWrite = crash_write,
    .xTruncate = crash_truncate,
    .xSync = crash_sync,
    .xFileSize = crash_size,
    .xLock = crash_lock,
    .xUnlock = crash_unlock,
    .xCheckReservedLock = crash_check_reserved,
    .xFileControl = crash_control,
    .xSectorSize = crash_sector_size,
    .xDeviceCharacteristics = crash_characteristics,
    .xShmMap = crash_shm_map,
    .xShmLock = crash_shm_lock,
    .xShmBarrier = crash_shm_barrier,
    .xShmUnmap = crash_shm_unmap,
};

/* --- paths --- */

static int open_on(struct crash_disk *disk, const char *name, struct crash_handle *h, int flags)
{
    struct entry *e = disk_find(disk, name);
    bool there = e != NULL && e->now != NULL;
    if (there && (flags & SQLITE_OPEN_EXCLUSIVE) != 0)
        return SQLITE_CANTOPEN;
    if (!there && (flags & SQLITE_OPEN_CREATE) == 0)
        return SQLITE_CANTOPEN;
    if (!there)
        e = disk_create(disk, e, name);
    /* As SQLite's own layer, which then syncs the folder after the file. */
    const int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
    *h = (struct crash_handle){
        .deletes = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0,
        .syncs_names = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & journals) != 0,
    };
    handle_attach(h, disk, e);
    return SQLITE_OK;
}

static int crash_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret)
{
    const char *name = NULL;
    struct crash_disk *disk = disk_of_path(path, &name);
    (void)vfs;
    if (disk == NULL)
        return beneath->xOpen(beneath, path, file, flags, ret);
    struct verdict v = {.code = SQLITE_CANTOPEN};
    file->pMethods = NULL;
    if (!disk->down)
        disk_admit(disk, CRASH_OPEN, name, &v);
    int code = SQLITE_OK;
    if (v.code == SQLITE_OK)
        code = open_on(disk, name, handle_of(file), flags);
    if (v.code == SQLITE_OK && code == SQLITE_OK)
        file->pMethods = &METHODS;
    if (ret != NULL)
        *ret = flags;
    return disk_conclude(disk, CRASH_OPEN, &v, code);
}

static int crash_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    const char *name = NULL;
    struct crash_disk *disk = disk_of_path(path, &name);
    (void)vfs;
    if (disk == NULL)
        return beneath->xDelete(beneath, path, sync_folder);
    struct verdict v = {.code = SQLITE_IOERR_DELETE};
    if (!disk->down)
        disk_admit(disk, CRASH_DELETE, name, &v);
    if (disk->down || (v.code != SQLITE_OK && v.after == NULL))
        return v.code;
    struct entry *e = disk_find(disk, name);
    if (e == NULL || e->now == NULL)
        return disk_conclude(disk, CRASH_DELETE, &v, SQLITE_IOERR_DELETE_NOENT);
    disk_delete(disk, e);
    if (sync_folder && !disk->options.lies_about_syncs)
        disk_sync_names(disk);
    return disk_conclude(disk, CRASH_DELETE, &v, SQLITE_OK);
}

static int crash_access(sqlite3_vfs *vfs, const char *path, int flags, int *ret)
{
    const char *name = NULL;
    const struct crash_disk *disk = disk_of_path(path, &name);
    (void)vfs;
    if (disk == NULL)
        return beneath->xAccess(beneath, path, flags, ret);
    if (disk->down)
        return SQLITE_IOERR_ACCESS;
    const struct entry *e = disk_find(disk, name);
    /* An empty file counts as none when SQLite asks whether it exists, as in its own layer. */
    *ret = e != NULL && e->now != NULL && (flags != SQLITE_ACCESS_EXISTS || e->now->size > 0);
    return SQLITE_OK;
}

static int crash_full_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
    const char *name = NULL;
    (void)vfs;
    if (disk_of_path(path, &name) == NULL)
        return beneath->xFullPathname(beneath, path, size, out);
    int len = snprintf(out, (size_t)size, "%s", path);
    return len >= 0 && len < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* --- chance and time --- */

static uint64_t next_chance(void)
{
    uint64_t z = machine.chance += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int crash_randomness(sqlite3_vfs *vfs, int len, char *out)
{
    (void)vfs;
    for (int i = 0; i < len; i++)
        out[i] = (char)next_chance();
    return len;
}

static int crash_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    if (machine.sleep_us != NULL)
        machine.sleep_us(machine.sleeper, us);
    return us;
}

static int crash_time(sqlite3_vfs *vfs, sqlite3_int64 *ret)
{
    static const sqlite3_int64 JULIAN_1970 = 24405875 * (sqlite3_int64)8640000;
    (void)vfs;
    if (machine.now_ms == NULL)
        return beneath->xCurrentTimeInt64(beneath, ret);
    *ret = JULIAN_1970 + machine.now_ms(machine.clock);
    return SQLITE_OK;
}

void crash_vfs_seed(uint64_t seed)
{
    machine.chance = seed;
    sqlite3_randomness(0, NULL); /* it asks us again */
}

void crash_vfs_set_clock(int64_t (*now_ms)(void *ctx), void *ctx)
{
    machine.now_ms = now_ms;
    machine.clock = ctx;
}

void crash_vfs_set_sleep(void (*sleep_us)(void *ctx, int64_t us), void *ctx)
{
    machine.sleep_us = sleep_us;
    machine.sleeper = ctx;
}

void crash_vfs_set_pause(void (*pause)(void *ctx), void *ctx)
{
    machine.pause = pause;
    machine.pauser = ctx;
}

/* SQLite takes settings only before its first use, which looking up its default is. The store sets
 * it up when the first connection is opened; a reader's does not ask for the default yet. */
static void configure_sqlite(void)
{
    struct db_config config = {
        .url = STR("sqlite:/nowhere/at/all"), .access = DB_READER, .env = &ENV_SYSTEM};
    struct problem p;
    struct db *db = NULL;
    problem_init(&p);
    enum err e = db_open(&config, &p, &db);
    assert(e == ERR_STORE_FAILED);
    problem_release(&p);
}

void crash_vfs_register(void)
{
    if (beneath != NULL)
        return;
    configure_sqlite();
    beneath = sqlite3_vfs_find(NULL);
    assert(beneath != NULL && beneath->iVersion >= 2);
    crash_vfs = *beneath;
    crash_vfs.zName = "crash";
    crash_vfs.pNext = NULL;
    crash_vfs.szOsFile = MAX(beneath->szOsFile, (int)sizeof(struct crash_handle));
    crash_vfs.xOpen = crash_open;
    crash_vfs.xDelete = crash_delete;
    crash_vfs.xAccess = crash_access;
    crash_vfs.xFullPathname = crash_full_path;
    crash_vfs.xRandomness = crash_randomness;
    crash_vfs.xSleep = crash_sleep;
    crash_vfs.xCurrentTimeInt64 = crash_time;
    int rc = sqlite3_vfs_register(&crash_vfs, 1);
    assert(rc == SQLITE_OK);
}
