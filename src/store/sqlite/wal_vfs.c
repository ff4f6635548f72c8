/* A layer under SQLite's writer that gathers the appends of one commit and may defer their sync.
 * Only files opened as a write-ahead log go through it; the others are the default layer's own. No
 * write is held back past a sync, deferred or not, a read or a change of size, so a reader finds
 * every frame that it learns of. */
#include "store/sqlite/wal_vfs.h"

#include "base/limits.h"
#include "base/macros.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

/* The default layer takes fewer than 128 KiB at a time. */
enum { GATHER_MAX = 120 * KIB };

struct wal_file {
    sqlite3_file base;
    char *gathered;
    sqlite3_int64 offset; /* where gathered bytes belong */
    int len;
    bool defers;     /* the sync that comes is that of a commit, and another thread's */
    bool has_header; /* the log starts again: its header was written since the last sync */
    struct db_marks own_marks;
    struct db_marks *marks;  /* when `failed`, the file must stay as it is */
    pthread_mutex_t syncing; /* the kernel reports an error to one of several syncs only */
    sqlite3_file *real;      /* lies behind this struct */
};

static struct wal_file *wal_of(sqlite3_file *file)
{
    return (struct wal_file *)(void *)file;
}

static int flush(struct wal_file *w)
{
    if (atomic_load(&w->marks->failed))
        return SQLITE_IOERR_FSYNC;
    if (w->len == 0)
        return SQLITE_OK;
    int rc = w->real->pMethods->xWrite(w->real, w->gathered, w->len, w->offset);
    w->len = 0; /* after a failure too: SQLite rolls the transaction back and writes it again */
    return rc;
}

static int wal_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 offset)
{
    struct wal_file *w = wal_of(file);
    if (atomic_load(&w->marks->failed))
        return SQLITE_IOERR_FSYNC;
    w->has_header |= offset == 0;
    if (w->len > 0 && (offset != w->offset + w->len || w->len + len > GATHER_MAX)) {
        int rc = flush(w);
        if (rc != SQLITE_OK)
            return rc;
    }
    if (len > GATHER_MAX)
        return w->real->pMethods->xWrite(w->real, bytes, len, offset);
    if (w->len == 0)
        w->offset = offset;
    memcpy(w->gathered + w->len, bytes, (size_t)len);
    w->len += len;
    return SQLITE_OK;
}

static int wal_close(sqlite3_file *file)
{
    struct wal_file *w = wal_of(file);
    int rc = flush(w);
    int closed = w->real->pMethods->xClose(w->real);
    sqlite3_free(w->gathered);
    pthread_mutex_destroy(&w->syncing);
    return rc != SQLITE_OK ? rc : closed;
}

/* Each of these first lets the file be what SQLite believes it is. */
#define AFTER_FLUSH(call)              \
    struct wal_file *w = wal_of(file); \
    int rc = flush(w);                 \
    return rc != SQLITE_OK ? rc : w->real->pMethods->call

static int wal_read(sqlite3_file *file, void *out, int len, sqlite3_int64 offset)
{
    AFTER_FLUSH(xRead(w->real, out, len, offset));
}

static int wal_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    AFTER_FLUSH(xTruncate(w->real, size));
}

/* What was written before the sync begins is on disk when it ends. */
static int sync_now(struct wal_file *w, int flags)
{
    pthread_mutex_lock(&w->syncing);
    unsigned long long through = atomic_load(&w->marks->written);
    int rc = SQLITE_IOERR_FSYNC;
    if (!atomic_load(&w->marks->failed))
        rc = w->real->pMethods->xSync(w->real, flags);
    if (rc == SQLITE_OK)
        atomic_store(&w->marks->durable, through);
    else
        atomic_store(&w->marks->failed, true);
    pthread_mutex_unlock(&w->syncing);
    return rc;
}

static int wal_sync(sqlite3_file *file, int flags)
{
    struct wal_file *w = wal_of(file);
    int rc = flush(w);
    if (rc != SQLITE_OK)
        return rc;
    if (w->defers && !w->has_header) {
        (void)atomic_fetch_add(&w->marks->written, 1); /* readers see it from now on */
        return SQLITE_OK;
    }
    w->has_header = false;
    return sync_now(w, flags);
}

void wal_vfs_defer(sqlite3_file *file, bool defers)
{
    wal_of(file)->defers = defers;
}

int wal_vfs_sync(sqlite3_file *file)
{
    return sync_now(wal_of(file), SQLITE_SYNC_NORMAL);
}

static int wal_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    AFTER_FLUSH(xFileSize(w->real, ret));
}

static int wal_lock(sqlite3_file *file, int level)
{
    return wal_of(file)->real->pMethods->xLock(wal_of(file)->real, level);
}

static int wal_unlock(sqlite3_file *file, int level)
{
    return wal_of(file)->real->pMethods->xUnlock(wal_of(file)->real, level);
}

static int wal_check_lock(sqlite3_file *file, int *ret)
{
    return wal_of(file)->real->pMethods->xCheckReservedLock(wal_of(file)->real, ret);
}

static int wal_control(sqlite3_file *file, int op, void *arg)
{
    AFTER_FLUSH(xFileControl(w->real, op, arg));
}

static int wal_sector_size(sqlite3_file *file)
{
    return wal_of(file)->real->pMethods->xSectorSize(wal_of(file)->real);
}

static int wal_characteristics(sqlite3_file *file)
{
    return wal_of(file)->real->pMethods->xDeviceCharacteristics(wal_of(file)->real);
}

/* Version 1: shared memory and memory mapping belong to the main file, never to the log. */
static const sqlite3_io_methods WAL_METHODS = {
    .iVersion = 1,
    .xClose = wal_close,
    .xRead = wal_read,
    .xWrite = wal_write,
    .xTruncate = wal_truncate,
    .xSync = wal_sync,
    .xFileSize = wal_size,
    .xLock = wal_lock,
    .xUnlock = wal_unlock,
    .xCheckReservedLock = wal_check_lock,
    .xFileControl = wal_control,
    .xSectorSize = wal_sector_size,
    .xDeviceCharacteristics = wal_characteristics,
};

bool wal_vfs_use_marks(sqlite3_file *file, struct db_marks *marks)
{
    if (file->pMethods != &WAL_METHODS)
        return false;
    wal_of(file)->marks = marks;
    return true;
}

static sqlite3_vfs *default_vfs;

static int wal_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
    (void)vfs;
    if ((flags & SQLITE_OPEN_WAL) == 0)
        return default_vfs->xOpen(default_vfs, name, file, flags, ret);
    struct wal_file *w = wal_of(file);
    *w = (struct wal_file){.real = (sqlite3_file *)(void *)(w + 1), .marks = &w->own_marks};
    w->gathered = sqlite3_malloc(GATHER_MAX);
    if (w->gathered == NULL)
        return SQLITE_NOMEM;
    int rc = default_vfs->xOpen(default_vfs, name, w->real, flags, ret);
    if (rc != SQLITE_OK) {
        sqlite3_free(w->gathered);
        return rc;
    }
    pthread_mutex_init(&w->syncing, NULL);
    w->base.pMethods = &WAL_METHODS;
    return SQLITE_OK;
}

static sqlite3_vfs wal_vfs;

static void register_once(void)
{
    default_vfs = sqlite3_vfs_find(NULL);
    assert(default_vfs != NULL);
    wal_vfs = *default_vfs; /* all but opening is the default's */
    wal_vfs.zName = "pawl-wal";
    wal_vfs.pNext = NULL;
    wal_vfs.szOsFile = (int)sizeof(struct wal_file) + default_vfs->szOsFile;
    wal_vfs.xOpen = wal_open;
    int rc = sqlite3_vfs_register(&wal_vfs, 0);
    assert(rc == SQLITE_OK);
}

const char *wal_vfs_name(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, register_once);
    return wal_vfs.zName;
}
