/* The server: opens the store, the bus and the sockets, and runs the event loop until a signal or a
 * failed store ends it. */
#ifndef PAWL_SERVE_SERVER_H
#define PAWL_SERVE_SERVER_H

#include "outbound/oidc.h"

enum serve_exit { SERVE_DONE = 0, SERVE_FAILED = 1, SERVE_USAGE = 2 };

/* Texts are borrowed and must outlive the server. NULL: not set. */
struct server_config {
    const char *listen;         /* HOST:PORT */
    const char *metrics_listen; /* a second address, for /metrics and health only */
    const char *store;          /* sqlite:PATH or postgres://… */
    const char *node;           /* this server's name in a cluster; NULL: the host's */
    const char *advertise;      /* where other nodes reach it; NULL: where it listens */
    const char *gate;           /* "store", or the URL of a Redis server */
    const char *node_ca; /* PEM; whose certificates other nodes may show; NULL: the system's */
    const char *bus;     /* one or more URLs, separated by commas */
    const char *bus_creds;
    const char *bus_ca;
    const char *bus_queues; /* names, separated by commas */
    const char *tls_cert;
    const char *tls_key;
    const char *tls_client_ca;
    const char *otlp;        /* a collector's URL */
    const char *public_url;  /* where browsers reach it */
    struct oidc_config oidc; /* without an issuer: none */
    const char *oidc_secret_file;
    const char *root_key;
    int64_t wal_bytes_max;        /* 0: the store's default */
    bool dev;                     /* no API keys */
    bool allow_private_addresses; /* http steps and webhooks may call every address */
    bool log_requests;
    void (*on_ready)(void *ctx, const char *url); /* called once it listens; NULL: nobody */
    void *on_ready_ctx;
    bool keeps_all; /* delete no old runs or events, for one offline command */
};

/* Returns when the server has stopped. Prints `pawl listening on URL` once it is ready; an error
 * goes to standard error. */
enum serve_exit server_run(const struct server_config *config);

#endif
