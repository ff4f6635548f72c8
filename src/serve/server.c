/* The server: wiring, event loop, and an orderly stop. */
#include "serve/server.h"

#include "api/api.h"
#include "base/limits.h"
#include "base/log.h"
#include "bus/nats_bus.h"
#include "cluster/identity.h"
#include "cluster/node_front.h"
#include "gate/redis_gate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    DRAIN_MS_MAX = 20 * 1000, /* systemd waits 90 s before it kills */
    FAILED_DRAIN_MS_MAX = 1000,
    LINGER_NS = 100 * 1000,
};

struct server {
    struct metrics *metrics;
    const struct server_config *config;
    bool bus_refused; /* its options are wrong */
    struct str bus_queues[BUS_QUEUES_MAX];
    size_t bus_queue_count;
    struct node *node;
    struct identity *identity; /* NULL: the engine knows API keys, or none are needed */
    struct buf keys_store;     /* where they are kept */
    struct front *front;       /* NULL: the node has one shard and is alone */
    struct http_server *http;
    struct http_server *metrics_http; /* at metrics_listen; NULL: none */
    struct oidc_config oidc;
    char redirect_uri[1024];
    char oidc_secret[1024];
    int signal_fd;
    bool has_certificate;
    bool draining;
    int64_t drain_until_ms;
};

static enum err start(struct server *s, const struct server_config *config, struct problem *p);
static enum serve_exit run_loop(struct server *s);
static void stop(struct server *s);
static void notify_systemd(const char *state);

enum serve_exit server_run(const struct server_config *config)
{
    struct server s = {.signal_fd = -1};
    buf_init(&s.keys_store, 8 * KIB);
    struct problem p;
    enum serve_exit rc;
    problem_init(&p);
    if (start(&s, config, &p) == ERR_OK) {
        printf("pawl listening on %s\n", http_server_url(s.http));
        fflush(stdout);
        notify_systemd("READY=1");
        if (config->on_ready != NULL)
            config->on_ready(config->on_ready_ctx, http_server_url(s.http));
        rc = run_loop(&s);
    } else {
        fprintf(stderr, "pawl: %s\n", p.detail);
        rc = s.bus_refused ? SERVE_USAGE : SERVE_FAILED;
    }
    problem_release(&p);
    stop(&s);
    return rc;
}

/* --- starting --- */

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    /* Before any thread starts, so that all inherit it. */
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -1;
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static enum err read_bus_queues(struct server *s, const char *list, struct problem *p)
{
    struct str rest = str_of(list);
    for (bool more = s->config->bus != NULL && list != NULL; more;) {
        struct str queue;
        more = str_cut(rest, ',', &queue, &rest);
        queue = str_trim(queue);
        s->bus_refused =
            queue.len > NAME_MAX_LEN || !str_is_name(queue) || s->bus_queue_count == BUS_QUEUES_MAX;
        if (s->bus_refused)
            return problem_set(p, ERR_FIELD_INVALID,
                               "--bus-queues must be at most %d queue names, separated by commas",
                               BUS_QUEUES_MAX);
        s->bus_queues[s->bus_queue_count++] = queue;
    }
    return ERR_OK;
}

/* Each shard has a connection of its own; on any thread. */
static enum err make_bus(void *ctx, struct problem *p, struct bus **ret)
{
    struct server *s = ctx;
    struct nats_bus_config bus = {
        .urls = s->config->bus,
        .creds = s->config->bus_creds,
        .ca = s->config->bus_ca,
        .jobs = s->bus_queue_count > 0,
    };
    enum err e = nats_bus_new(&bus, p, ret);
    s->bus_refused |= e == ERR_FIELD_INVALID;
    return e;
}

/* Each shard has a connection of its own; on any thread. */
static enum err make_gate(void *ctx, struct problem *p, struct gate **ret)
{
    struct server *s = ctx;
    struct redis_url url;
    const char *fault = redis_url_parse(str_of(s->config->gate), &url);
    if (fault != NULL)
        return problem_set(p, ERR_FIELD_INVALID, "--gate: the URL %s", fault);
    *ret = redis_gate_new(&url, &ENV_SYSTEM);
    return *ret != NULL ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Out of memory");
}

/* A development server may call loopback addresses, unless other machines can reach it. */
static enum address_reach reach_of(const struct server_config *config)
{
    if (config->allow_private_addresses)
        return REACH_ALL;
    return config->dev && http_is_loopback(config->listen) ? REACH_LOOPBACK : REACH_PUBLIC;
}

static enum err start_metrics_http(struct server *s, const struct server_config *config,
                                   struct problem *p)
{
    struct http_config http = {
        .listen = config->metrics_listen,
        .env = &ENV_SYSTEM,
        .handler = api_handle_aside,
        .handler_ctx = node_api(s->node),
    };
    enum err e = http_server_start(&http, p, &s->metrics_http);
    if (e == ERR_OK)
        LOG(LOG_INFO, "serving metrics and health", LOG_Z("url", http_server_url(s->metrics_http)));
    return e;
}

/* --- people who sign in elsewhere --- */

/* One line of a file; the rest is ignored. */
static enum err read_secret(struct server *s, const char *path, struct problem *p)
{
    if (path == NULL)
        return ERR_OK;
    FILE *file = fopen(path, "re");
    bool ok = file != NULL && fgets(s->oidc_secret, sizeof(s->oidc_secret), file) != NULL;
    int error = errno;
    if (file != NULL)
        (void)fclose(file);
    s->oidc_secret[strcspn(s->oidc_secret, "\r\n")] = '\0';
    if (!ok || s->oidc_secret[0] == '\0')
        return problem_set(p, ERR_FIELD_INVALID, "--oidc-client-secret-file: cannot read %s: %s",
                           path, ok || file != NULL ? "it is empty" : strerror(error));
    s->oidc.client_secret = str_of(s->oidc_secret);
    return ERR_OK;
}

static enum err prepare_oidc(struct server *s, const struct server_config *config,
                             struct problem *p)
{
    struct str url = str_of(config->public_url);
    if (config->oidc.issuer.ptr == NULL)
        return ERR_OK;
    s->oidc = config->oidc;
    while (str_ends_with(url, STR("/")))
        url.len--;
    int n =
        snprintf(s->redirect_uri, sizeof(s->redirect_uri), "%.*s" OIDC_CALLBACK_PATH, STR_ARG(url));
    if (n < 0 || (size_t)n >= sizeof(s->redirect_uri))
        return problem_set(p, ERR_FIELD_INVALID, "--public-url is too long");
    s->oidc.redirect_uri = str_of(s->redirect_uri);
    return read_secret(s, config->oidc_secret_file, p);
}

static uint64_t auth_epoch(const void *ctx)
{
    return node_auth_epoch(ctx);
}

static int64_t auth_age_ms(const void *ctx)
{
    return node_view_age_ms(ctx);
}

static struct engine *first_engine(const void *ctx)
{
    struct node_shard first = node_shard_at(ctx, 0);
    return first.state == SHARD_HERE ? first.engine : NULL;
}

/* Any node knows the keys of the whole cluster. */
static enum err make_identity(struct server *s, const struct server_config *config,
                              struct problem *p)
{
    struct identity_config identity = {
        .env = &ENV_SYSTEM, .root_key = str_of(config->root_key), .metrics = s->metrics};
    if (config->dev || !str_starts_with(str_of(config->store), STR("postgres")))
        return ERR_OK;
    s->identity = identity_new(&identity);
    return s->identity != NULL ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Out of memory");
}

/* The node has joined. */
static enum err open_front(struct server *s, const struct server_config *config, struct problem *p)
{
    if (node_is_embedded(s->node))
        return ERR_OK;
    struct front_config front = {
        .env = &ENV_SYSTEM,
        .metrics = node_metrics(s->node),
        .node_api = node_api(s->node),
        .auth = s->identity != NULL ? identity_auth(s->identity) : NULL,
        .secret = node_secret(s->node),
        .session = node_session(s->node),
        .url = str_of(http_server_url(s->http)),
        .client = {.self = http_server_url(s->http),
                   .ca = config->node_ca,
                   .cert = config->tls_cert,
                   .key = config->tls_key},
        .cluster = node_front_cluster(s->node),
    };
    s->front = front_new(&front);
    return s->front != NULL ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Out of memory");
}

static void handle(void *ctx, struct http_request *req)
{
    const struct server *s = ctx;
    if (s->front != NULL)
        front_handle(s->front, req);
    else
        api_handle(node_api(s->node), req);
}

static void request_over(void *ctx, const struct http_request *req, int status, struct str route)
{
    node_request_over(((const struct server *)ctx)->node, req, status, route);
}

static enum err open_node(struct server *s, const struct server_config *config, struct problem *p)
{
    struct node_config node = {
        .store = config->store,
        .name = config->node,
        .is_private = config->keeps_all,
        .advertise = config->advertise,
        .engine = {.root_key = str_of(config->root_key),
                   .env = &ENV_SYSTEM,
                   .log_bytes_max = config->wal_bytes_max,
                   .bus_queues = s->bus_queues,
                   .bus_queue_count = s->bus_queue_count,
                   .otlp_url = str_of(config->otlp),
                   .oidc = config->oidc.issuer.ptr != NULL ? &s->oidc : NULL,
                   .keeps_all = config->keeps_all,
                   .reach = reach_of(config)},
        .api = {.env = &ENV_SYSTEM,
                .dev_listen = config->dev ? config->listen : NULL,
                .auth = s->identity != NULL ? identity_auth(s->identity) : NULL,
                .tls = config->tls_cert != NULL,
                .log_requests = config->log_requests,
                .export_spans = config->otlp != NULL},
        .metrics = s->metrics,
        .make_bus = config->bus != NULL ? make_bus : NULL,
        .make_bus_ctx = s,
        .make_gate = strcmp(config->gate, "store") != 0 ? make_gate : NULL,
        .make_gate_ctx = s,
    };
    enum err e = node_open(&node, p, &s->node);
    if (e != ERR_OK || s->identity == NULL)
        return e;
    node_put_shard_store(s->node, 0, &s->keys_store);
    if (!buf_ok(&s->keys_store))
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    struct identity_source keys = {.ctx = s->node,
                                   .store = s->keys_store.ptr,
                                   .engine = first_engine,
                                   .epoch = auth_epoch,
                                   .age_ms = auth_age_ms};
    identity_use(s->identity, &keys);
    return ERR_OK;
}

static enum err start_http(struct server *s, const struct server_config *config, struct problem *p)
{
    struct http_config http = {
        .listen = config->listen,
        .tls_cert = config->tls_cert,
        .tls_key = config->tls_key,
        .tls_client_ca = config->tls_client_ca,
        .env = &ENV_SYSTEM,
        .metrics = s->metrics,
        .handler = handle,
        .observer = config->otlp != NULL || config->log_requests ? request_over : NULL,
        .handler_ctx = s,
    };
    s->has_certificate = config->tls_cert != NULL;
    enum err e = http_server_start(&http, p, &s->http);
    if (e == ERR_OK && config->metrics_listen != NULL)
        e = start_metrics_http(s, config, p);
    return e;
}

static enum err start(struct server *s, const struct server_config *config, struct problem *p)
{
    s->config = config;
    s->metrics = metrics_new();
    s->signal_fd = open_signals(); /* before any thread starts */
    if (s->signal_fd < 0)
        return problem_set(p, ERR_NO_MEMORY, "Cannot listen for signals: %s", strerror(errno));
    if (s->metrics == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    enum err e = read_bus_queues(s, config->bus_queues, p);
    if (e == ERR_OK)
        e = prepare_oidc(s, config, p);
    if (e == ERR_OK)
        e = make_identity(s, config, p);
    if (e == ERR_OK)
        e = open_node(s, config, p);
    if (e == ERR_OK)
        e = start_http(s, config, p);
    if (e == ERR_OK)
        e = node_join(s->node, http_server_url(s->http), p);
    return e == ERR_OK ? open_front(s, config, p) : e;
}

static void stop(struct server *s)
{
    http_server_free(s->http);
    http_server_free(s->metrics_http);
    front_free(s->front);
    node_close(s->node);
    identity_free(s->identity);
    buf_release(&s->keys_store);
    metrics_free(s->metrics);
    if (s->signal_fd >= 0)
        close(s->signal_fd);
}

/* --- the loop --- */

static void begin_drain(struct server *s, const char *reason, int64_t ms_max)
{
    LOG(LOG_INFO, "draining", LOG_Z("reason", reason));
    notify_systemd("STOPPING=1");
    s->draining = true;
    s->drain_until_ms = env_mono_ms(&ENV_SYSTEM) + ms_max;
    node_has_clients(s->node, true); /* until the next turn has counted them */
    node_drain(s->node);
    if (s->front != NULL)
        front_drain(s->front);
    http_server_drain(s->http);
    if (s->metrics_http != NULL)
        http_server_drain(s->metrics_http);
}

static size_t open_connections(const struct server *s)
{
    return http_server_connections(s->http) +
           (s->metrics_http != NULL ? http_server_connections(s->metrics_http) : 0);
}

static int sleep_ms(const struct server *s)
{
    int wait = node_timeout_ms(s->node);
    int others[] = {
        http_server_timeout_ms(s->http),
        s->metrics_http != NULL ? http_server_timeout_ms(s->metrics_http) : -1,
        s->front != NULL ? front_timeout_ms(s->front) : -1,
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        wait = others[i] >= 0 ? MIN(wait, others[i]) : wait;
    return wait;
}

/* Polls a little longer before it sleeps. A single client sends its next request within
 * microseconds of the answer, and a sleep and wake-up on a virtual machine costs half a commit. */
static int wait_for_events(struct server *s, struct pollfd *fds, nfds_t count)
{
    int ms = sleep_ms(s);
    if (ms > 0 && node_expects_more(s->node)) {
        int64_t until = env_mono_ns(&ENV_SYSTEM) + LINGER_NS;
        do {
            int rc = poll(fds, count, 0);
            if (rc != 0)
                return rc;
        } while (env_mono_ns(&ENV_SYSTEM) < until);
    }
    return poll(fds, count, ms);
}

/* A certificate was renewed: connections from now on get the new one. */
static void reload(struct server *s)
{
    struct problem p;
    problem_init(&p);
    if (!s->has_certificate)
        LOG(LOG_INFO, "nothing to reload: the server has no certificate");
    else if (http_server_reload(s->http, &p) == ERR_OK)
        LOG(LOG_INFO, "reloaded the certificate");
    else
        LOG(LOG_ERROR, "cannot reload the certificate; the old one stays",
            LOG_Z("error", p.detail));
    problem_release(&p);
}

static void take_signal(struct server *s)
{
    struct signalfd_siginfo info;
    if (read(s->signal_fd, &info, sizeof(info)) <= 0)
        return;
    if (info.ssi_signo == SIGHUP)
        reload(s);
    else if (s->draining)
        s->drain_until_ms = 0; /* the second signal: stop now */
    else
        begin_drain(s, "signal", DRAIN_MS_MAX);
}

static void turn(struct server *s)
{
    struct pollfd fds[] = {
        {http_server_fd(s->http), POLLIN, 0},
        {node_event_fd(s->node), POLLIN, 0},
        {s->signal_fd, POLLIN, 0},
        {s->metrics_http != NULL ? http_server_fd(s->metrics_http) : -1, POLLIN, 0},
        {s->front != NULL ? front_event_fd(s->front) : -1, POLLIN, 0},
    };
    int rc = wait_for_events(s, fds, ARRAY_LEN(fds));
    assert(rc >= 0 || errno == EINTR);
    if ((fds[2].revents & POLLIN) != 0)
        take_signal(s);
    node_poll(s->node, (fds[1].revents & POLLIN) != 0);
    if (s->front != NULL)
        front_poll(s->front, (fds[4].revents & POLLIN) != 0);
    http_server_turn(s->http);
    if (s->metrics_http != NULL)
        http_server_turn(s->metrics_http);
    if (s->draining)
        node_has_clients(s->node, open_connections(s) > 0);
    node_round_end(s->node);
    if (node_failed(s->node) && !s->draining)
        begin_drain(s,
                    node_is_embedded(s->node) ? "the store failed" : "another process is this node",
                    FAILED_DRAIN_MS_MAX);
}

/* Runs until a drain has sent every answer, or its time is up. */
static enum serve_exit run_loop(struct server *s)
{
    for (;;) {
        turn(s);
        if (!s->draining)
            continue;
        bool quiet = node_idle(s->node) && open_connections(s) == 0 &&
                     (s->front == NULL || front_idle(s->front));
        if (quiet && node_failed(s->node) && node_is_embedded(s->node)) {
            LOG(LOG_ERROR, "exiting without closing the store, because it failed");
            _exit(SERVE_FAILED); /* closing would write to a failed disk */
        }
        if (quiet)
            return node_failed(s->node) ? SERVE_FAILED : SERVE_DONE;
        if (env_mono_ms(&ENV_SYSTEM) > s->drain_until_ms) {
            LOG(LOG_WARN, "stopping with connections open",
                LOG_N("connections", open_connections(s)));
            /* Everything acknowledged is on disk. An orderly close could hang. */
            _exit(node_failed(s->node) ? SERVE_FAILED : SERVE_DONE);
        }
    }
}

/* --- systemd --- */

/* sd_notify: one datagram to the socket that systemd names. */
static void notify_systemd(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, strlen(path));
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@')
        to.sun_path[0] = '\0'; /* a name in the abstract namespace */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        sendto(fd, state, strlen(state), 0, (const struct sockaddr *)(const void *)&to, len) < 0)
        LOG(LOG_WARN, "cannot notify systemd", LOG_Z("state", state),
            LOG_Z("error", strerror(errno)));
    if (fd >= 0)
        close(fd);
}
