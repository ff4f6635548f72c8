/* fsync() of the folder where a crash disk is mounted, which the store calls without SQLite. Other
 * files are synced as always. */
#include "sim/crash_disk.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

int __real_fsync(int fd); /* the linker's --wrap=fsync */
int __wrap_fsync(int fd);

/* The disk that is mounted where the descriptor points to. */
static struct crash_disk *disk_of_folder(int fd)
{
    char link[64];
    char path[PATH_MAX];
    const char *name = NULL;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 2);
    if (len <= 0)
        return NULL;
    (void)snprintf(path + len, 2, "/");
    struct crash_disk *disk = disk_of_path(path, &name);
    return disk != NULL && *name == '\0' ? disk : NULL;
}

int __wrap_fsync(int fd)
{
    struct crash_disk *disk = disk_of_folder(fd);
    struct verdict v = {.code = SQLITE_IOERR_FSYNC};
    if (disk == NULL)
        return __real_fsync(fd);
    if (!disk->down)
        disk_admit(disk, CRASH_SYNC, "", &v);
    bool done = !disk->down && (v.code == SQLITE_OK || v.after != NULL);
    if (done && !disk->options.lies_about_syncs)
        disk_sync_names(disk);
    if (disk_conclude(disk, CRASH_SYNC, &v, SQLITE_OK) == SQLITE_OK)
        return 0;
    errno = EIO;
    return -1;
}
