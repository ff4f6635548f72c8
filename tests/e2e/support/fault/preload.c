/* Makes the disk fail on command. Loaded with LD_PRELOAD; the file named by PAWL_FAULT_FILE says
 * what happens to files whose path contains ".db", and is read again at every call:
 *
 *   full    writes fail with ENOSPC
 *   index   writes to the index of the log ("…-shm") fail with ENOSPC
 *   fsync   fsync and fdatasync fail with EIO
 *   stall   fsync and fdatasync do not return until the file says something else
 *   kill    the process dies at its next fsync or fdatasync, as kill -9 would have it
 *   watch   nothing fails, but every change of such a file is noted
 *
 * Anything else, or no file: nothing happens. Each fault that was injected adds a byte to
 * PAWL_FAULT_FILE.hits, so that a test can wait for it. With `fsync` and `watch` each call that
 * changes or syncs such a file adds a line "CALL PATH" to PAWL_FAULT_FILE.calls, before it is made.
 * System calls only: a wrapper that called the C library would meet itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The C library may declare them with hidden aliases; these are the names that others link to. */
bool fault_send(int fd); /* sockets.c */
ssize_t write(int fd, const void *data, size_t size);
ssize_t pwrite(int fd, const void *data, size_t size, off_t at);
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at);
int fsync(int fd);
int fdatasync(int fd);
int ftruncate(int fd, off_t size);
int ftruncate64(int fd, off64_t size);
int unlink(const char *path);

static bool mode_is(const char *mode)
{
    const char *path = getenv("PAWL_FAULT_FILE");
    char text[16] = "";
    if (path == NULL)
        return false;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    long got = syscall(SYS_read, fd, text, sizeof(text) - 1);
    syscall(SYS_close, fd);
    return got > 0 && strcmp(text, mode) == 0;
}

static bool is_store_path(const char *path)
{
    return strstr(path, ".db") != NULL;
}

/* The path of an open file; "" when it has none. */
static void path_of(int fd, char path[static 4096])
{
    char link[32];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    long len = syscall(SYS_readlinkat, AT_FDCWD, link, path, 4095);
    path[len < 0 ? 0 : len] = '\0';
}

static bool is_store(int fd)
{
    char path[4096];
    path_of(fd, path);
    return is_store_path(path);
}

static bool is_log_index(int fd)
{
    char path[4096];
    path_of(fd, path);
    return is_store_path(path) && strstr(path, "-shm") != NULL;
}

static void append(const char *suffix, const char *text)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s%s", getenv("PAWL_FAULT_FILE"), suffix);
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    (void)syscall(SYS_write, fd, text, strlen(text));
    syscall(SYS_close, fd);
}

static void note_hit(void)
{
    append(".hits", ".");
}

static void note_call(const char *call, const char *path)
{
    char line[4200];
    if (!is_store_path(path) || (!mode_is("fsync") && !mode_is("watch")))
        return;
    (void)snprintf(line, sizeof(line), "%s %s\n", call, path);
    append(".calls", line);
}

static void note_call_fd(const char *call, int fd)
{
    char path[4096];
    path_of(fd, path);
    note_call(call, path);
}

static bool disk_is_full(int fd)
{
    bool fails = mode_is("full") ? is_store(fd) : mode_is("index") && is_log_index(fd);
    if (!fails)
        return false;
    note_hit();
    errno = ENOSPC;
    return true;
}

/* True when the call must fail. */
static bool sync_fails(int fd)
{
    static const struct timespec SHORT = {0, 2000000};
    if (mode_is("stall") && is_store(fd)) {
        note_hit();
        while (mode_is("stall"))
            (void)syscall(SYS_nanosleep, &SHORT, NULL);
    }
    if (mode_is("kill") && is_store(fd)) {
        note_hit();
        (void)syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    }
    if (!mode_is("fsync") || !is_store(fd))
        return false;
    note_hit();
    errno = EIO;
    return true;
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (fault_send(fd))
        return -1;
    note_call_fd("write", fd);
    return disk_is_full(fd) ? -1 : syscall(SYS_write, fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    note_call_fd("write", fd);
    return disk_is_full(fd) ? -1 : syscall(SYS_pwrite64, fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    note_call_fd("write", fd);
    return disk_is_full(fd) ? -1 : syscall(SYS_pwrite64, fd, data, size, at);
}

int fsync(int fd)
{
    note_call_fd("sync", fd);
    return sync_fails(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    note_call_fd("sync", fd);
    return sync_fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
    note_call_fd("truncate", fd);
    return (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    note_call_fd("truncate", fd);
    return (int)syscall(SYS_ftruncate, fd, size);
}

int unlink(const char *path)
{
    note_call("unlink", path);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
