/* Event descriptors, epoll and poll() in memory: what a child of the warm process does to them
 * stays its own, and a fiber that waits for one lets others run. Every other descriptor is the
 * system's. */
#include "sim/nodes/descriptors.h"
#include "base/macros.h"
#include "sim/fibers.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_FD = 1 << 20, FDS_MAX = 1024, WATCHES_MAX = 24 };

enum kind { FD_FREE, FD_EVENT, FD_EPOLL };

struct watch {
    int fd; /* 0: none */
    epoll_data_t data;
};

static struct {
    enum kind kind;
    uint64_t count;
    struct watch watches[WATCHES_MAX];
} fds[FDS_MAX];

int __wrap_eventfd(unsigned count, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int ms);
ssize_t __wrap_read(int fd, void *out, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
int __wrap_close(int fd);
int __wrap_poll(struct pollfd *polled, nfds_t count, int ms);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
ssize_t __real_read(int fd, void *out, size_t len);
ssize_t __real_write(int fd, const void *bytes, size_t len);
int __real_close(int fd);

static int new_fd(enum kind kind, uint64_t count)
{
    int i = 0;
    while (i < FDS_MAX && fds[i].kind != FD_FREE)
        i++;
    if (i == FDS_MAX) {
        errno = EMFILE;
        return -1;
    }
    memset(&fds[i], 0, sizeof(fds[i]));
    fds[i].kind = kind;
    fds[i].count = count;
    return FIRST_FD + i;
}

static bool is_ours(int fd)
{
    return fd >= FIRST_FD && fd < FIRST_FD + FDS_MAX;
}

static bool is_readable(int fd)
{
    assert(is_ours(fd));
    if (fds[fd - FIRST_FD].kind == FD_EVENT)
        return fds[fd - FIRST_FD].count > 0;
    for (int i = 0; fds[fd - FIRST_FD].kind == FD_EPOLL && i < WATCHES_MAX; i++) {
        const struct watch *w = &fds[fd - FIRST_FD].watches[i];
        if (w->fd != 0 && is_readable(w->fd))
            return true;
    }
    return false;
}

/* --- event descriptors --- */

int __wrap_eventfd(unsigned count, int flags)
{
    (void)flags;
    return new_fd(FD_EVENT, count);
}

ssize_t __wrap_read(int fd, void *out, size_t len)
{
    if (!is_ours(fd))
        return __real_read(fd, out, len);
    uint64_t *count = &fds[fd - FIRST_FD].count;
    assert(len == sizeof(*count));
    if (*count == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(out, count, sizeof(*count));
    *count = 0;
    return sizeof(*count);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    uint64_t more;
    if (!is_ours(fd))
        return __real_write(fd, bytes, len);
    assert(len == sizeof(more));
    memcpy(&more, bytes, sizeof(more));
    fds[fd - FIRST_FD].count += more;
    return sizeof(more);
}

/* A descriptor that is closed is watched by nobody. */
int __wrap_close(int fd)
{
    if (!is_ours(fd))
        return __real_close(fd);
    fds[fd - FIRST_FD].kind = FD_FREE;
    for (int i = 0; i < FDS_MAX; i++) {
        for (int j = 0; fds[i].kind == FD_EPOLL && j < WATCHES_MAX; j++) {
            if (fds[i].watches[j].fd == fd)
                fds[i].watches[j].fd = 0;
        }
    }
    return 0;
}

/* --- epoll --- */

int __wrap_epoll_create1(int flags)
{
    (void)flags;
    return new_fd(FD_EPOLL, 0);
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    struct watch *watches = fds[epoll - FIRST_FD].watches;
    int wanted = op == EPOLL_CTL_ADD ? 0 : fd;
    int i = 0;
    assert(is_ours(fd) && (op == EPOLL_CTL_ADD || op == EPOLL_CTL_DEL));
    while (i < WATCHES_MAX && watches[i].fd != wanted)
        i++;
    if (i == WATCHES_MAX) {
        errno = op == EPOLL_CTL_ADD ? ENOSPC : ENOENT;
        return -1;
    }
    watches[i].fd = op == EPOLL_CTL_ADD ? fd : 0;
    if (op == EPOLL_CTL_ADD)
        watches[i].data = event->data;
    return 0;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int ms)
{
    int found = 0;
    assert(ms == 0);
    for (int i = 0; i < WATCHES_MAX && found < max; i++) {
        const struct watch *w = &fds[epoll - FIRST_FD].watches[i];
        if (w->fd == 0 || !is_readable(w->fd))
            continue;
        events[found].events = EPOLLIN;
        events[found++].data = w->data;
    }
    return found;
}

/* --- waiting --- */

struct polls {
    struct pollfd *fds;
    nfds_t count;
};

static bool any_ready(void *ctx)
{
    const struct polls *p = ctx;
    for (nfds_t i = 0; i < p->count; i++) {
        if (p->fds[i].fd >= 0 && is_readable(p->fds[i].fd))
            return true;
    }
    return false;
}

static void (*idle)(void);

void descriptors_set_idle(void (*run)(void))
{
    idle = run;
}

/* Of event descriptors only; one below zero is passed over. The simulator itself lets a little time
 * pass for everybody. */
int __wrap_poll(struct pollfd *polled, nfds_t count, int ms)
{
    struct polls p = {polled, count};
    int found = 0;
    bool ready = fibers_poll(any_ready, &p, ms < 0 ? -1 : (int64_t)ms * 1000000);
    if (!ready && ms > 0 && fibers_is_simulator() && idle != NULL)
        idle();
    for (nfds_t i = 0; i < count; i++) {
        polled[i].revents = polled[i].fd >= 0 && is_readable(polled[i].fd) ? POLLIN : 0;
        found += polled[i].revents != 0;
    }
    return found;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    fibers_nap_ns((int64_t)time->tv_sec * 1000000000 + time->tv_nsec);
    return 0;
}
