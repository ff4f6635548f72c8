#define _GNU_SOURCE /* POLLRDHUP */
#include "http/internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILE_BLOCK = 1 * MIB };

static ssize_t failed(bool *ready)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        *ready = errno == EINTR;
        return IO_AGAIN;
    }
    return IO_BROKEN;
}

ssize_t io_read(struct conn *c, char *to, size_t len)
{
    assert(len > 0);
    ssize_t got = recv(c->fd, to, len, 0);
    if (got < 0)
        return failed(&c->readable);
    /* A short read has emptied the socket; what comes next makes an event. The end, which may have
     * come before, makes none. */
    c->readable = (size_t)got == len || c->half_closed;
    return got;
}

ssize_t io_write(struct conn *c, const struct str *parts, size_t count)
{
    assert(count > 0 && count <= HTTP_PARTS_MAX);
    struct iovec at[HTTP_PARTS_MAX];
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        at[i] = (struct iovec){(void *)(uintptr_t)parts[i].ptr, parts[i].len};
        all += parts[i].len;
    }
    struct msghdr message = {.msg_iov = at, .msg_iovlen = count};
    ssize_t sent = sendmsg(c->fd, &message, MSG_NOSIGNAL);
    if (sent < 0)
        return failed(&c->writable);
    c->writable = (size_t)sent == all;
    return sent;
}

ssize_t io_send_file(struct conn *c, int fd, int64_t at, int64_t left)
{
    off_t from = at;
    ssize_t sent = sendfile(c->fd, fd, &from, (size_t)MIN(left, (int64_t)FILE_BLOCK));
    if (sent < 0)
        return failed(&c->writable);
    return sent > 0 ? sent : IO_BROKEN;
}

void io_end(struct conn *c)
{
    (void)shutdown(c->fd, SHUT_WR);
}

void io_close(struct conn *c)
{
    close(c->fd);
    c->fd = -1;
}

bool io_is_half_closed(const struct conn *c)
{
    struct pollfd at = {c->fd, POLLRDHUP, 0};
    return poll(&at, 1, 0) > 0;
}
