/* open() and unlink() of files that are on a mounted crash disk: the copies that the server sends
 * as backups. It opens them without SQLite. Other files are opened as always. */
#define _GNU_SOURCE
#include "sim/crash_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

int __real_open(const char *path, int flags, ...); /* the linker's --wrap=open, --wrap=unlink */
int __wrap_open(const char *path, int flags, ...);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);

/* The file's name and disk; NULL: no such file is on any. */
static struct entry *find(const char *path, struct crash_disk **ret_disk)
{
    const char *name = NULL;
    struct crash_disk *disk = disk_of_path(path, &name);
    struct entry *e = disk != NULL ? disk_find(disk, name) : NULL;
    *ret_disk = disk;
    return e != NULL && e->now != NULL ? e : NULL;
}

/* A descriptor that reads what the file holds now. */
static int open_copy(const struct inode *inode)
{
    int fd = memfd_create("copy", MFD_CLOEXEC);
    assert(fd >= 0);
    ssize_t written = write(fd, inode->bytes, (size_t)inode->size);
    assert(written == inode->size);
    (void)written;
    (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

int __wrap_open(const char *path, int flags, ...)
{
    struct crash_disk *disk;
    const struct entry *e = find(path, &disk);
    if (e != NULL && disk->down) {
        errno = EIO;
        return -1;
    }
    if (e != NULL)
        return open_copy(e->now);
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return __real_open(path, flags, mode);
}

int __wrap_unlink(const char *path)
{
    struct crash_disk *disk;
    struct entry *e = find(path, &disk);
    if (e == NULL)
        return __real_unlink(path);
    if (disk->down) {
        errno = EIO;
        return -1;
    }
    disk_delete(disk, e);
    return 0;
}
