#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/* TLS 1.2 only; the suites of 1.3 are all fit. */
#define SUITES "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"
#define GROUPS "X25519:P-256:P-384"

struct tls {
    SSL_CTX *ctx;
};

struct tls_conn {
    SSL *ssl;
    bool failed; /* nothing more may be said on it */
};

/* --- settings --- */

/* The only protocol there is. A client that names others, and not this one, is refused. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *ctx)
{
    static const unsigned char OURS[] = "\x08http/1.1";
    (void)ssl;
    (void)ctx;
    unsigned char *chosen;
    int rc = SSL_select_next_proto(&chosen, out_len, OURS, sizeof(OURS) - 1, in, in_len);
    *out = chosen;
    return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* A key with a password cannot be used: nobody is there to ask. */
static int no_password(char *out, int size, int writes, void *ctx)
{
    (void)out;
    (void)size;
    (void)writes;
    (void)ctx;
    return 0;
}

static bool set_up(SSL_CTX *ctx)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets need none */
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    static const unsigned char CONTEXT[] = "pawl";
    char groups[] = GROUPS; /* OpenSSL's macro casts const away */
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ctx, SUITES) == 1 &&
           SSL_CTX_set1_groups_list(ctx, groups) == 1 &&
           SSL_CTX_set_session_id_context(ctx, CONTEXT, sizeof(CONTEXT) - 1) == 1;
}

/* OpenSSL's own words about the first thing that went wrong. */
static enum err report(struct problem *p, const char *what, const char *path)
{
    unsigned long code = ERR_peek_error();
    const char *why = ERR_reason_error_string(code);
    (void)problem_set(p, ERR_BAD_REQUEST, "%s %s: %s", what, path,
                      why != NULL ? why : "unknown error");
    ERR_clear_error();
    return p->err;
}

static enum err load_clients(SSL_CTX *ctx, const char *path, struct problem *p)
{
    STACK_OF(X509_NAME) *names = path != NULL ? SSL_load_client_CA_file(path) : NULL;
    if (path == NULL)
        return ERR_OK;
    if (names == NULL || SSL_CTX_load_verify_file(ctx, path) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return report(p, "Cannot read the CA certificates in", path);
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return ERR_OK;
}

static enum err load(SSL_CTX *ctx, const struct tls_files *files, struct problem *p)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, files->cert) != 1)
        return report(p, "Cannot read the certificate", files->cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1) /* of another kind than the certificate's */
        return report(p, "The certificate cannot be used with the key", files->key);
    return load_clients(ctx, files->client_ca, p);
}

static enum err new_ctx(const struct tls_files *files, struct problem *p, SSL_CTX **ret)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL || !set_up(ctx)) {
        SSL_CTX_free(ctx);
        return problem_set(p, ERR_NO_MEMORY, "Cannot set TLS up");
    }
    enum err e = load(ctx, files, p);
    if (e == ERR_OK)
        *ret = ctx;
    else
        SSL_CTX_free(ctx);
    return e;
}

enum err tls_new(const struct tls_files *files, struct problem *p, struct tls **ret)
{
    struct tls *tls = calloc(1, sizeof(*tls));
    if (tls == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for TLS");
    enum err e = new_ctx(files, p, &tls->ctx);
    if (e == ERR_OK)
        *ret = tls;
    else
        tls_free(tls);
    return e;
}

enum err tls_reload(struct tls *tls, const struct tls_files *files, struct problem *p)
{
    SSL_CTX *ctx = NULL;
    enum err e = new_ctx(files, p, &ctx);
    if (e != ERR_OK)
        return e;
    SSL_CTX_free(tls->ctx); /* connections have their own reference */
    tls->ctx = ctx;
    return ERR_OK;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->ctx);
    free(tls);
}

/* --- a connection --- */

struct tls_conn *tls_accept(const struct tls *tls, int fd)
{
    struct tls_conn *conn = calloc(1, sizeof(*conn));
    SSL *ssl = conn != NULL ? SSL_new(tls->ctx) : NULL;
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        free(conn);
        return NULL;
    }
    SSL_set_accept_state(ssl);
    conn->ssl = ssl;
    return conn;
}

void tls_conn_free(struct tls_conn *conn)
{
    if (conn == NULL)
        return;
    SSL_free(conn->ssl);
    free(conn);
}

static ssize_t failed(struct tls_conn *conn, int rc)
{
    switch (SSL_get_error(conn->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return TLS_WANTS_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANTS_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        conn->failed = true;
        return ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST ? TLS_PLAIN_HTTP : TLS_BROKEN;
    }
}

bool tls_is_open(const struct tls_conn *conn)
{
    return SSL_is_init_finished(conn->ssl) == 1;
}

ssize_t tls_read(struct tls_conn *conn, void *to, size_t len)
{
    size_t got;
    if (conn->failed)
        return TLS_BROKEN;
    ERR_clear_error();
    int rc = SSL_read_ex(conn->ssl, to, len, &got);
    return rc == 1 ? (ssize_t)got : failed(conn, rc);
}

ssize_t tls_write(struct tls_conn *conn, const void *from, size_t len)
{
    size_t sent;
    if (conn->failed)
        return TLS_BROKEN;
    ERR_clear_error();
    int rc = SSL_write_ex(conn->ssl, from, len, &sent);
    return rc == 1 ? (ssize_t)sent : failed(conn, rc);
}

void tls_end(struct tls_conn *conn)
{
    if (!conn->failed && tls_is_open(conn))
        (void)SSL_shutdown(conn->ssl); /* the socket takes the few bytes, or the client is gone */
    ERR_clear_error();
}
