/* TLS on the server's side, by OpenSSL: versions 1.2 and 1.3, with forward secrecy and
 * authenticated encryption only, ALPN http/1.1, resumption by tickets. Knows sockets, not HTTP. */
#ifndef PAWL_HTTP_TLS_H
#define PAWL_HTTP_TLS_H

#include "base/problem.h"

#include <sys/types.h>

struct tls;      /* certificate, key and settings */
struct tls_conn; /* one connection's state */

struct tls_files {
    const char *cert;      /* PEM chain, the server's own first */
    const char *key;       /* PEM, without a password */
    const char *client_ca; /* PEM; clients need a certificate that one of these has signed. NULL:
                              they need none */
};

MUST_CHECK enum err tls_new(const struct tls_files *files, struct problem *p, struct tls **ret);
void tls_free(struct tls *tls);
/* Reads the files again. What is connected goes on as it is; on failure so does everything. */
MUST_CHECK enum err tls_reload(struct tls *tls, const struct tls_files *files, struct problem *p);

/* NULL when memory ran out. The socket stays the caller's. */
MUST_CHECK struct tls_conn *tls_accept(const struct tls *tls, int fd);
void tls_conn_free(struct tls_conn *conn);

/* Instead of a number of bytes. A read may have to wait for the socket to take bytes, and a write
 * for it to have some. */
enum { TLS_WANTS_READ = -1, TLS_WANTS_WRITE = -2, TLS_BROKEN = -3, TLS_PLAIN_HTTP = -4 };

/* Has the handshake ended well? */
bool tls_is_open(const struct tls_conn *conn);
/* 0 at the end of what the client sends. TLS_PLAIN_HTTP: it began with the line of a request. Both
 * take the handshake as far as it goes. */
ssize_t tls_read(struct tls_conn *conn, void *to, size_t len);
/* After a wait the same bytes must be given again; they may have moved. */
ssize_t tls_write(struct tls_conn *conn, const void *from, size_t len);
/* Says that nothing more will be sent. */
void tls_end(struct tls_conn *conn);

#endif
