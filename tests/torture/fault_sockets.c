/* The program's own socket calls and pthread_create, which every library in the process uses too.
 */
#undef _FORTIFY_SOURCE /* it defines some of them inline */
#define _GNU_SOURCE
#include "fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool fails_with(int error)
{
    if (!fault_due(FAULT_SOCKETS))
        return false;
    errno = error;
    return true;
}

/* A pair of sockets inside the process, by which one thread wakes another, does not fail once it is
 * there. */
static bool is_outside(int fd)
{
    int domain = AF_UNIX;
    socklen_t len = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain != AF_UNIX;
}

/* By descriptor: the connection was reset. As with a real one, a call says so once; then there is
 * nothing to read. */
static atomic_bool reset[4096];

static bool is_reset(int fd)
{
    if (fd >= (int)ARRAY_LEN(reset) || atomic_load(&reset[fd]) || !is_outside(fd) ||
        !fails_with(ECONNRESET))
        return false;
    atomic_store(&reset[fd], true);
    (void)shutdown(fd, SHUT_RDWR);
    errno = ECONNRESET;
    return true;
}

int socket(int domain, int type, int protocol)
{
    if (fails_with(EMFILE))
        return -1;
    int fd = (int)syscall(SYS_socket, domain, type, protocol);
    if (fd >= 0 && fd < (int)ARRAY_LEN(reset))
        atomic_store(&reset[fd], false);
    return fd;
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
    return fails_with(EMFILE) ? -1 : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    return fails_with(ENETUNREACH) ? -1 : (int)syscall(SYS_connect, fd, address.__sockaddr__, len);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    return is_reset(fd) ? -1 : syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    return is_reset(fd) ? -1 : syscall(SYS_recvfrom, fd, data, size, flags, NULL, NULL);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return fails_with(ENOMEM) ? -1 : (int)syscall(SYS_poll, fds, count, timeout_ms);
}

/* --- threads --- */

typedef int create_thread(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

struct beginning {
    void *(*start)(void *);
    void *ctx;
};

/* What the C library and sanitizers do before this is not ours to fail. */
static void *begin_thread(void *ctx)
{
    struct beginning begin = *(struct beginning *)ctx;
    free(ctx);
    fault_spare_thread(false);
    return begin.start(begin.ctx);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *ctx)
{
    static create_thread *real;
    if (real == NULL) {
        void *found = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&real, &found, sizeof(real));
    }
    struct beginning *begin = malloc(sizeof(*begin));
    if (begin == NULL || fault_due(FAULT_THREADS)) {
        free(begin);
        return EAGAIN;
    }
    *begin = (struct beginning){start, ctx};
    int rc = real(thread, attributes, begin_thread, begin);
    if (rc != 0)
        free(begin);
    return rc;
}
