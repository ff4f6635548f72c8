/* What goes over a socket, plain or by TLS. */
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

/* --- plain --- */

static ssize_t plain_read(struct conn *c, char *to, size_t len)
{
    ssize_t got = recv(c->fd, to, len, 0);
    if (got < 0)
        return failed(&c->readable);
    /* A short read has emptied the socket; what comes next makes an event. The end, which may have
     * come before, makes none. */
    c->readable = (size_t)got == len || c->half_closed;
    return got;
}

static ssize_t send_parts(int fd, const struct str *parts, size_t count)
{
    struct iovec at[HTTP_PARTS_MAX];
    if (count == 1)
        return send(fd, parts[0].ptr, parts[0].len, MSG_NOSIGNAL);
    for (size_t i = 0; i < count; i++)
        at[i] = (struct iovec){(void *)(uintptr_t)parts[i].ptr, parts[i].len};
    struct msghdr message = {.msg_iov = at, .msg_iovlen = count};
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static ssize_t plain_write(struct conn *c, const struct str *parts, size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += parts[i].len;
    ssize_t sent = send_parts(c->fd, parts, count);
    if (sent < 0)
        return failed(&c->writable);
    c->writable = (size_t)sent == all;
    return sent;
}

static ssize_t plain_send_file(struct conn *c, int fd, int64_t at, int64_t left)
{
    off_t from = at;
    ssize_t sent = sendfile(c->fd, fd, &from, (size_t)MIN(left, (int64_t)FILE_BLOCK));
    if (sent < 0)
        return failed(&c->writable);
    return sent > 0 ? sent : IO_BROKEN;
}

/* --- TLS --- */

static ssize_t become_plain(struct conn *c)
{
    tls_conn_free(c->tls);
    c->tls = NULL;
    return IO_PLAIN;
}

/* What the socket is waited for is not always what was wanted of it. */
static ssize_t tls_read_failed(struct conn *c, ssize_t got)
{
    if (got == TLS_PLAIN_HTTP)
        return become_plain(c);
    c->readable = false;
    c->read_waits = got == TLS_WANTS_WRITE;
    return got == TLS_BROKEN ? IO_BROKEN : IO_AGAIN;
}

static ssize_t tls_write_failed(struct conn *c, ssize_t sent)
{
    c->writable = false;
    c->write_waits = sent == TLS_WANTS_READ;
    return sent == TLS_BROKEN || sent == 0 ? IO_BROKEN : IO_AGAIN;
}

/* Several parts go into one record: each has a cost of its own. */
static struct str gather(struct conn *c, const struct str *parts, size_t count)
{
    char *record = c->server->record;
    size_t len = 0;
    if (count == 1 || parts[0].len >= TLS_RECORD_MAX)
        return parts[0];
    for (size_t i = 0; i < count && len < TLS_RECORD_MAX; i++) {
        size_t n = MIN(parts[i].len, TLS_RECORD_MAX - len);
        memcpy(record + len, parts[i].ptr, n);
        len += n;
    }
    return (struct str){record, len};
}

static ssize_t secret_write(struct conn *c, struct str bytes)
{
    ssize_t sent = tls_write(c->tls, bytes.ptr, bytes.len);
    return sent > 0 ? sent : tls_write_failed(c, sent);
}

static ssize_t secret_send_file(struct conn *c, int fd, int64_t at, int64_t left)
{
    char *record = c->server->record;
    ssize_t got = pread(fd, record, (size_t)MIN(left, (int64_t)TLS_RECORD_MAX), at);
    return got > 0 ? secret_write(c, (struct str){record, (size_t)got}) : IO_BROKEN;
}

/* --- either --- */

ssize_t io_read(struct conn *c, char *to, size_t len)
{
    assert(len > 0);
    if (c->tls == NULL)
        return plain_read(c, to, len);
    ssize_t got = tls_read(c->tls, to, len);
    return got >= 0 ? got : tls_read_failed(c, got);
}

ssize_t io_write(struct conn *c, const struct str *parts, size_t count)
{
    assert(count > 0 && count <= HTTP_PARTS_MAX);
    return c->tls == NULL ? plain_write(c, parts, count) : secret_write(c, gather(c, parts, count));
}

ssize_t io_send_file(struct conn *c, int fd, int64_t at, int64_t left)
{
    return c->tls == NULL ? plain_send_file(c, fd, at, left) : secret_send_file(c, fd, at, left);
}

void io_end(struct conn *c)
{
    if (c->tls != NULL)
        tls_end(c->tls);
    (void)shutdown(c->fd, SHUT_WR);
}

void io_close(struct conn *c)
{
    tls_conn_free(c->tls);
    c->tls = NULL;
    close(c->fd);
    c->fd = -1;
}

bool io_is_half_closed(const struct conn *c)
{
    struct pollfd at = {c->fd, POLLRDHUP, 0};
    return poll(&at, 1, 0) > 0;
}
