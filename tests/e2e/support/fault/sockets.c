/* Makes socket calls fail on command. Loaded with LD_PRELOAD; the file named by PAWL_FAULT_SOCKETS
 * says "CALL N ERRNO once" or "CALL N ERRNO always", and is read again at every call: from the
 * moment it says so, the Nth CALL (accept, recv, send or epoll_wait) fails with that error, and
 * with `always` each one after it. Each failure adds a byte to PAWL_FAULT_SOCKETS.hits. No file, or
 * another text: nothing happens. By TLS, read and write of a connection are its recv and send. A
 * connection whose recv or send fails is really cut. System calls only: a wrapper that called the C
 * library would meet itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct epoll_event;

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int accept(int fd, struct sockaddr *address, socklen_t *len);
ssize_t recv(int fd, void *data, size_t size, int flags);
ssize_t send(int fd, const void *data, size_t size, int flags);
ssize_t sendmsg(int fd, const struct msghdr *message, int flags);
int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);
ssize_t read(int fd, void *data, size_t size);
/* For write(), which has faults of its own (preload.c): true when it must fail as a send. */
bool fault_send(int fd);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char said[64];
static long counted;

static void read_control(char text[static 64])
{
    const char *path = getenv("PAWL_FAULT_SOCKETS");
    text[0] = '\0';
    if (path == NULL)
        return;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    long got = syscall(SYS_read, fd, text, 63);
    syscall(SYS_close, fd);
    text[got > 0 ? got : 0] = '\0';
}

/* The error that this call must fail with; 0: none. */
static int error_of(const char *call)
{
    char text[64];
    char name[16] = "";
    char how[16] = "";
    long nth = 0;
    int error = 0;
    read_control(text);
    if (sscanf(text, "%15s %ld %d %15s", name, &nth, &error, how) != 4 || strcmp(name, call) != 0)
        return 0;
    pthread_mutex_lock(&lock);
    if (strcmp(said, text) != 0) {
        memcpy(said, text, sizeof(said));
        counted = 0;
    }
    long n = ++counted;
    pthread_mutex_unlock(&lock);
    return n == nth || (n > nth && strcmp(how, "always") == 0) ? error : 0;
}

static void note_hit(void)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s.hits", getenv("PAWL_FAULT_SOCKETS"));
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    (void)syscall(SYS_write, fd, ".", 1);
    syscall(SYS_close, fd);
}

static bool fails(const char *call, int fd, bool cuts)
{
    int error = error_of(call);
    if (error == 0)
        return false;
    note_hit();
    if (cuts)
        (void)syscall(SYS_shutdown, fd, SHUT_RDWR);
    errno = error;
    return true;
}

static bool is_connection(int fd)
{
    int domain = AF_UNSPEC;
    socklen_t len = sizeof(domain);
    return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           domain == AF_INET;
}

ssize_t read(int fd, void *data, size_t size)
{
    return is_connection(fd) && fails("recv", fd, true) ? -1 : syscall(SYS_read, fd, data, size);
}

bool fault_send(int fd)
{
    return is_connection(fd) && fails("send", fd, true);
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    return fails("accept", fd, false) ? -1 : (int)syscall(SYS_accept4, fd, address, len, flags);
}

int accept(int fd, struct sockaddr *address, socklen_t *len)
{
    return accept4(fd, address, len, 0);
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    return fails("recv", fd, true) ? -1 : syscall(SYS_recvfrom, fd, data, size, flags, NULL, NULL);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    return fails("send", fd, true) ? -1 : syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fails("send", fd, true) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
    return fails("epoll_wait", fd, false)
               ? -1
               : (int)syscall(SYS_epoll_wait, fd, events, max, timeout_ms);
}
