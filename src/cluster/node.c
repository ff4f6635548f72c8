/* A node: its life, its loop, and what others ask of it. */
#include "cluster/node.h"

#include "base/log.h"
#include "cluster/node_parts.h"
#include "cluster/placement.h"
#include "cluster/share.h"
#include "store/postgres/commit_group.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    SLEEP_MS = 1000,
    EVENTS_MAX = 64,
    JOIN_MS_MAX = 60 * 1000, /* sixteen new schemas on a slow database */
    CLOSE_MS_MAX = 10 * 1000,
    REFRESH_MS =
        100, /* between readings for the sake of requests: while a shard moves, each asks */
};

static int64_t now_ms(const struct node *node)
{
    return env_mono_ms(node->config.api.env);
}

/* --- opening --- */

/* A private node must not take the place of the one that has the host's name. */
static enum err set_name(struct node *node, struct problem *p)
{
    char host[NODE_NAME_LEN_MAX + 1] = "";
    if (node->config.is_private)
        (void)snprintf(host, sizeof(host), "private-%d", (int)getpid());
    else
        (void)gethostname(host, sizeof(host) - 1);
    struct str name = str_of(node->config.name != NULL ? node->config.name : host);
    if (name.len == 0 || name.len > NODE_NAME_LEN_MAX || !str_is_name(name))
        return problem_set(p, ERR_FIELD_INVALID,
                           "--node must be a name of up to %d letters, digits or any of _ - . :",
                           NODE_NAME_LEN_MAX);
    (void)snprintf(node->name, sizeof(node->name), "%.*s", STR_ARG(name));
    node->config.api.node_name = node->name;
    return ERR_OK;
}

static enum err open_embedded(struct node *node, struct problem *p)
{
    struct host *h = host_new(&node->config, 0, node->config.store, true);
    if (h == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    node->hosts = h;
    node->slots[0].host = h;
    enum err e = host_open(h);
    if (e != ERR_OK)
        return problem_set(p, e, "%s", h->problem.detail);
    h->state = HOST_SERVING;
    metric_set(node->metrics.owner, STR("0"), STR_NONE, 1);
    return ERR_OK;
}

static bool watch(struct node *node, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return fd >= 0 && epoll_ctl(node->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static enum err make_parts(struct node *node, struct problem *p)
{
    node_fill_api(node);
    node->config.api.node = &node->api_node;
    struct api_config api = node->config.api;
    api.metrics = node->config.metrics;
    node->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    node->open_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    node->openers = openers_new(node->open_fd);
    node->closers = openers_new(node->open_fd);
    node->api = api_new(&api);
    bool made = node->epoll_fd >= 0 && watch(node, node->open_fd) &&
                watch(node, directory_event_fd(node->directory)) && node->openers != NULL &&
                node->closers != NULL && node->api != NULL;
    return made ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Out of memory");
}

static enum err open_any(struct node *node, struct problem *p)
{
    if (!node_metrics_declare(&node->metrics, node->config.metrics))
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    enum err e = set_name(node, p);
    if (e != ERR_OK)
        return e;
    if (!str_starts_with(str_of(node->config.store), STR("postgres")))
        return open_embedded(node, p);
    e = directory_open(node->config.store, CLUSTER_SHARDS_DEFAULT, node->config.api.env, p,
                       &node->directory);
    if (e == ERR_OK && node->config.is_private)
        e = directory_await_nobody(node->directory, p);
    if (e == ERR_OK)
        e = commit_group_new(str_of(node->config.store), node->config.engine.env, p,
                             &node->config.engine.commit_group);
    return e == ERR_OK ? make_parts(node, p) : e;
}

enum err node_open(const struct node_config *config, struct problem *p, struct node **ret)
{
    struct node *node = calloc(1, sizeof(*node));
    if (node == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    node->config = *config;
    node->epoll_fd = node->open_fd = -1;
    enum err e = open_any(node, p);
    if (e != ERR_OK) {
        node_close(node);
        return e;
    }
    *ret = node;
    return ERR_OK;
}

/* --- joining --- */

/* Nobody can reach a wildcard address: the host's name stands for it. */
static void put_advertised(const struct node *node, const char *listen_url, struct buf *out)
{
    static const char *const ANY[] = {"://0.0.0.0:", "://[::]:"};
    char host[NODE_NAME_LEN_MAX + 1] = "";
    if (node->config.advertise != NULL) {
        buf_put(out, str_of(node->config.advertise));
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(ANY); i++) {
        const char *at = strstr(listen_url, ANY[i]);
        if (at == NULL || gethostname(host, sizeof(host) - 1) != 0)
            continue;
        buf_printf(out, "%.*s://%s:%s", (int)(at - listen_url), listen_url, host,
                   at + strlen(ANY[i]));
        return;
    }
    buf_put(out, str_of(listen_url));
}

/* This node has opened all that it can get now. If that is nothing, it waits until every shard has
 * a live owner; otherwise it serves what it has, because others may have to wait for the lease of a
 * node that is dead, or for a database. */
static bool is_settled(const struct node *node)
{
    const struct cluster_view *view = directory_view(node->directory);
    enum share_move moves[CLUSTER_SHARDS_MAX];
    bool all_live = true;
    size_t own = 0;
    share_plan(view, moves);
    for (size_t i = 0; i < view->shard_count; i++) {
        struct node_shard s = node_shard_at(node, i);
        bool is_own = view->shards[i].owner == view->self;
        if (node->slots[i].failures > 0)
            continue; /* its database is away: the others need not wait */
        if (moves[i] == SHARE_TAKE || (is_own && s.state != SHARD_HERE))
            return false;
        own += is_own;
        all_live &= is_own || s.url.ptr != NULL;
    }
    return own > 0 || all_live;
}

/* Turns the node's own loop until `over`, or for so long. */
static bool turn_until(struct node *node, bool (*over)(const struct node *node), int64_t ms)
{
    int64_t until = now_ms(node) + ms;
    while (!over(node)) {
        struct pollfd fd = {.fd = node->epoll_fd, .events = POLLIN};
        int64_t left = until - now_ms(node);
        if (left <= 0)
            return false;
        int rc = poll(&fd, 1, (int)MIN(left, (int64_t)node_timeout_ms(node)));
        node_poll(node, rc > 0);
        node_round_end(node);
    }
    return true;
}

static bool has_joined(const struct node *node)
{
    return (node->opening_problem->err != ERR_OK && !node_is_opening(node)) || is_settled(node);
}

enum err node_join(struct node *node, const char *listen_url, struct problem *p)
{
    struct buf url;
    if (node->directory == NULL)
        return ERR_OK;
    buf_init(&url, NODE_URL_LEN_MAX);
    put_advertised(node, listen_url, &url);
    enum err e =
        buf_ok(&url)
            ? directory_join(node->directory, str_of(node->name), str_of(url.ptr), p)
            : problem_set(p, ERR_FIELD_INVALID, "--advertise must be at most %d characters long",
                          NODE_URL_LEN_MAX);
    buf_release(&url);
    if (e != ERR_OK)
        return e;
    node->opening_problem = p;
    node_adopt_view(node);
    bool joined = turn_until(node, has_joined, JOIN_MS_MAX);
    node->opening_problem = NULL;
    if (!joined)
        LOG(LOG_WARN, "some shards have no owner yet");
    return p->err;
}

/* --- the end --- */

static bool has_no_host(const struct node *node)
{
    return node->hosts == NULL;
}

static void close_embedded(struct node *node)
{
    struct host *h = node->hosts;
    if (h == NULL)
        return;
    host_close(h);
    host_free(h);
}

void node_close(struct node *node)
{
    if (node == NULL)
        return;
    if (node->directory == NULL) {
        close_embedded(node);
    } else if (node->hosts != NULL) { /* it could not join */
        node_drain(node);
        if (!turn_until(node, has_no_host, CLOSE_MS_MAX))
            return; /* some work does not end; the process does */
    }
    openers_free(node->openers);
    openers_free(node->closers);
    commit_group_free(node->config.engine.commit_group);
    directory_close(node->directory);
    api_free(node->api);
    if (node->epoll_fd >= 0)
        close(node->epoll_fd);
    if (node->open_fd >= 0)
        close(node->open_fd);
    free(node);
}

void node_drain(struct node *node)
{
    node->stopping = true;
    if (node->directory == NULL) {
        host_leave(node->hosts);
        return;
    }
    directory_stop(node->directory);
    node_leave_all(node);
}

void node_has_clients(struct node *node, bool any)
{
    node->has_clients = any;
}

bool node_idle(const struct node *node)
{
    return node->directory != NULL ? node->hosts == NULL : engine_idle(node->hosts->engine);
}

bool node_failed(const struct node *node)
{
    return node->directory != NULL ? directory_is_lost(node->directory)
                                   : engine_failed(node->hosts->engine);
}

/* --- the loop --- */

static bool is_open(const struct host *h)
{
    return h->state == HOST_SERVING || h->state == HOST_LEAVING;
}

int node_event_fd(const struct node *node)
{
    return node->directory != NULL ? node->epoll_fd : engine_event_fd(node->hosts->engine);
}

static void collect_events(struct node *node)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(node->epoll_fd, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        struct host *h = events[i].data.ptr;
        if (h != NULL)
            h->readable = true;
    }
    uint64_t ignored;
    if (read(node->open_fd, &ignored, sizeof(ignored)) > 0) {
        openers_collect(node->openers);
        openers_collect(node->closers);
    }
    if (directory_poll(node->directory))
        node_adopt_view(node);
}

void node_poll(struct node *node, bool readable)
{
    if (node->directory == NULL)
        node->hosts->readable = readable;
    else if (readable)
        collect_events(node);
    for (struct host *h = node->hosts; h != NULL; h = h->next) {
        if (is_open(h))
            engine_poll(h->engine, h->readable);
        h->readable = false;
    }
}

static int sooner(int a, int b)
{
    return b < 0 ? a : a < 0 ? b : MIN(a, b);
}

static int64_t refresh_at_ms(const struct node *node)
{
    return node->refreshed_at_ms + REFRESH_MS;
}

int node_timeout_ms(const struct node *node)
{
    int wait = node->api != NULL ? sooner(SLEEP_MS, api_timeout_ms(node->api)) : -1;
    for (const struct host *h = node->hosts; h != NULL; h = h->next) {
        if (is_open(h))
            wait = sooner(sooner(wait, engine_timeout_ms(h->engine)), api_timeout_ms(h->api));
    }
    if (node->wants_refresh)
        wait = sooner(wait, (int)MAX(refresh_at_ms(node) - now_ms(node), INT64_C(0)));
    return wait;
}

bool node_expects_more(const struct node *node)
{
    return node->directory == NULL && engine_expects_more(node->hosts->engine);
}

void node_round_end(struct node *node)
{
    int64_t now = now_ms(node);
    if (node->api != NULL)
        api_tick(node->api, now);
    for (struct host *h = node->hosts; h != NULL; h = h->next) {
        if (!is_open(h))
            continue;
        api_tick(h->api, now);
        engine_round_end(h->engine);
    }
    if (node->directory != NULL)
        node_tend_hosts(node);
    if (node->wants_refresh && now >= refresh_at_ms(node)) {
        node->wants_refresh = false;
        node->refreshed_at_ms = now;
        directory_refresh(node->directory);
    }
}

const struct node_metrics *node_metrics(const struct node *node)
{
    return &node->metrics;
}

/* --- shards --- */

size_t node_shard_count(const struct node *node)
{
    return node->directory != NULL ? directory_view(node->directory)->shard_count : 1;
}

size_t node_shard_of(const struct node *node, struct str tenant)
{
    return node->directory != NULL ? placement_of(directory_view(node->directory), tenant) : 0;
}

static enum node_shard_state state_of(const struct host *h)
{
    static const enum node_shard_state STATES[] = {[HOST_OPENING] = SHARD_OPENING,
                                                   [HOST_SERVING] = SHARD_HERE,
                                                   [HOST_LEAVING] = SHARD_LEAVING,
                                                   [HOST_CLOSING] = SHARD_LEAVING};
    return h != NULL ? STATES[h->state] : SHARD_AWAY;
}

struct node_shard node_shard_at(const struct node *node, size_t shard)
{
    assert(shard < node_shard_count(node));
    const struct host *h = node->slots[shard].host;
    struct node_shard ret = {.state = state_of(h), .epoch = -1};
    if (h != NULL && is_open(h)) {
        ret.api = h->api;
        ret.engine = h->engine;
        ret.answers = h->state == HOST_SERVING || (node->directory != NULL && node_is_last(node));
    }
    if (node->directory == NULL) {
        ret.owner = str_of(node->name);
        return ret;
    }
    const struct cluster_view *view = directory_view(node->directory);
    ret.epoch = view->shards[shard].epoch;
    if (view->shards[shard].owner < 0)
        return ret;
    const struct cluster_node *owner = &view->nodes[view->shards[shard].owner];
    ret.owner = str_of(owner->name);
    ret.session = str_of(owner->session);
    bool answers = cluster_node_lives(owner) && owner->url[0] != '\0'; /* a command has no URL */
    ret.url = answers ? str_of(owner->url) : STR_NONE;
    return ret;
}

void node_put_shard_store(const struct node *node, size_t shard, struct buf *out)
{
    node_put_store(node, shard, out);
}

struct api *node_api(const struct node *node)
{
    return node->api != NULL ? node->api : node->hosts->api;
}

/* Any engine exports a span; without one there is nothing to export to. */
void node_request_over(void *ctx, const struct http_request *req, int status, struct str route)
{
    const struct node *node = ctx;
    struct api *api = node_api(node);
    for (const struct host *h = node->hosts; h != NULL; h = h->next) {
        if (is_open(h))
            api = h->api;
    }
    api_request_over(api, req, status, route);
}

/* --- the cluster --- */

bool node_is_embedded(const struct node *node)
{
    return node->directory == NULL;
}

struct str node_name(const struct node *node)
{
    return str_of(node->name);
}

struct str node_session(const struct node *node)
{
    const struct cluster_view *view = directory_view(node->directory);
    return view->self >= 0 ? str_of(view->nodes[view->self].session) : STR_NONE;
}

struct str node_secret(const struct node *node)
{
    return node->directory != NULL ? str_of(directory_view(node->directory)->secret) : STR_NONE;
}

uint64_t node_view(const struct node *node)
{
    return node->directory != NULL ? directory_view(node->directory)->number : 0;
}

void node_refresh(struct node *node)
{
    node->wants_refresh = node->directory != NULL;
}

int64_t node_view_age_ms(const struct node *node)
{
    return node->directory != NULL ? now_ms(node) - directory_view(node->directory)->mono_ms : 0;
}

uint64_t node_auth_epoch(const struct node *node)
{
    return node->directory != NULL ? directory_view(node->directory)->auth_epoch : 0;
}

int64_t node_now_ms(const struct node *node)
{
    if (node->directory == NULL)
        return env_now_ms(node->config.api.env);
    const struct cluster_view *view = directory_view(node->directory);
    return view->now_ms + now_ms(node) - view->mono_ms;
}
