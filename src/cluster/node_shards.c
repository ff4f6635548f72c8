/* Shards come to a node and leave it.
 *
 * The directory says who owns a shard. This node takes one (directory_take), sees in the next view
 * that it has it with the epoch that it wanted, opens an engine with that epoch, and serves. It
 * hands one over by draining and closing the engine, and then releasing the shard. If somebody else
 * has taken a shard, or its engine has failed, the engine is dropped: it cannot commit any more,
 * and is closed once it is quiet. */
#include "base/log.h"
#include "cluster/node_parts.h"
#include "cluster/share.h"

#include <inttypes.h>
#include <sys/epoll.h>

enum {
    RETRY_MS = 250,          /* after a short trouble the shard is back at once, */
    RETRY_MS_MAX = 5 * 1000, /* and when a database is back after long soon enough */
    SLOW_MS = 1000,          /* a shard that leaves refuses changes: its clients get so long */
};

static int64_t now_ms(const struct node *node)
{
    return env_mono_ms(node->config.api.env);
}

/* --- hosts --- */

static void watch(struct node *node, struct host *h)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = h};
    int rc = epoll_ctl(node->epoll_fd, EPOLL_CTL_ADD, engine_event_fd(h->engine), &event);
    assert(rc == 0);
}

static void unwatch(struct node *node, struct host *h)
{
    (void)epoll_ctl(node->epoll_fd, EPOLL_CTL_DEL, engine_event_fd(h->engine), NULL);
    h->readable = false;
}

static void show_owner(struct node *node, size_t shard, bool serves)
{
    char label[16];
    (void)snprintf(label, sizeof(label), "%zu", shard);
    metric_set(node->metrics.owner, str_of(label), STR_NONE, serves ? 1 : 0);
}

static void release(struct node *node, size_t shard)
{
    node->slots[shard].releasing = true;
    directory_release(node->directory, shard);
}

static void unlink_host(struct node *node, struct host *h)
{
    struct host **at = &node->hosts;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    if (node->slots[h->shard].host == h)
        node->slots[h->shard].host = NULL;
}

static void leave(struct node *node, struct host *h)
{
    show_owner(node, h->shard, false);
    h->state = HOST_LEAVING;
    h->slow_at_ms = now_ms(node) + SLOW_MS;
    host_leave(h);
}

/* Orderly: the shard stays this node's until the engine is closed, and is served until no outgoing
 * call is under way. A node that stops does not take requests meanwhile, so it does not wait. */
static void hand_over(struct node *node, struct host *h)
{
    h->releases = true;
    if (h->state == HOST_OPENING) {
        h->unwanted = true;
    } else if (h->state == HOST_SERVING && node->stopping) {
        leave(node, h);
    } else if (h->state == HOST_SERVING && !h->ends_calls) {
        LOG(LOG_INFO, "handing a shard over", LOG_N("shard", h->shard));
        h->ends_calls = true;
        engine_end_calls(h->engine);
    }
}

/* The engine cannot commit any more: the shard need not wait for it. */
static void drop(struct node *node, struct host *h)
{
    node->slots[h->shard].host = NULL;
    h->releases = false;
    if (h->state == HOST_OPENING)
        h->unwanted = true;
    else if (h->state == HOST_SERVING)
        leave(node, h);
}

/* Later and later, because the next attempt is likely to fail too. */
static void failed(struct node *node, size_t shard)
{
    struct shard_slot *slot = &node->slots[shard];
    int64_t wait = RETRY_MS * (INT64_C(1) << MIN(slot->failures, 5));
    slot->failures++;
    slot->retry_at_ms = now_ms(node) + MIN(wait, (int64_t)RETRY_MS_MAX);
    release(node, shard);
}

/* --- opening and closing --- */

static void run_open(struct opening *o)
{
    struct host *h = CONTAINER_OF(o, struct host, work);
    (void)host_open(h); /* its problem tells */
}

static void could_not_open(struct node *node, struct host *h)
{
    LOG(LOG_ERROR, "cannot serve a shard", LOG_N("shard", h->shard),
        LOG_Z("why", h->problem.detail));
    bool elsewhere = directory_view(node->directory)->shards[h->shard].place >= 0;
    if (!elsewhere && node->opening_problem != NULL && node->opening_problem->err == ERR_OK)
        (void)problem_set(node->opening_problem, h->problem.err, "%s", h->problem.detail);
    metric_add(node->metrics.failures, STR("opening"), STR_NONE, 1);
    size_t shard = h->shard;
    bool current = node->slots[shard].host == h;
    unlink_host(node, h);
    host_free(h);
    if (current)
        failed(node, shard);
}

static void opened(struct opening *o)
{
    struct host *h = CONTAINER_OF(o, struct host, work);
    struct node *node = h->owner;
    if (h->engine == NULL) {
        could_not_open(node, h);
        return;
    }
    LOG(LOG_INFO, "serving a shard", LOG_N("shard", h->shard));
    watch(node, h);
    h->state = HOST_SERVING;
    node->slots[h->shard].failures = 0;
    show_owner(node, h->shard, true);
    node_metrics_count_taken(&node->metrics, node->slots[h->shard].taken);
    if (h->unwanted)
        leave(node, h);
}

void node_put_store(const struct node *node, size_t shard, struct buf *out)
{
    int place = directory_view(node->directory)->shards[shard].place;
    const char *store =
        place < 0 ? node->config.store : directory_view(node->directory)->places[place];
    buf_printf(out, "%s%cshard=%zu", store, strchr(store, '?') != NULL ? '&' : '?', shard);
}

static void open_shard(struct node *node, size_t shard, int64_t epoch)
{
    struct buf store;
    buf_init(&store, 8192);
    node_put_store(node, shard, &store);
    buf_printf(&store, "&epoch=%" PRId64, epoch);
    struct host *h = buf_ok(&store) ? host_new(&node->config, shard, store.ptr, false) : NULL;
    buf_release(&store);
    if (h == NULL) {
        failed(node, shard);
        return;
    }
    h->owner = node;
    h->next = node->hosts;
    node->hosts = h;
    node->slots[shard].host = h;
    h->work = (struct opening){.run = run_open, .done = opened};
    openers_push(node->openers, &h->work);
}

static void run_close(struct opening *o)
{
    host_close(CONTAINER_OF(o, struct host, work));
}

static void closed(struct opening *o)
{
    struct host *h = CONTAINER_OF(o, struct host, work);
    struct node *node = h->owner;
    LOG(LOG_INFO, "closed a shard", LOG_N("shard", h->shard));
    if (h->releases)
        release(node, h->shard);
    unlink_host(node, h);
    host_free(h);
}

static void close_host(struct node *node, struct host *h)
{
    unwatch(node, h);
    h->state = HOST_CLOSING;
    h->work = (struct opening){.run = run_close, .done = closed};
    openers_push(node->closers, &h->work);
}

bool node_is_last(const struct node *node)
{
    return node->stopping && !directory_is_lost(node->directory) &&
           !share_has_heir(directory_view(node->directory));
}

/* A client that takes its answer slowly must not keep the shard from all others: it can ask again,
 * and a stream goes on where it was. */
static void close_when_quiet(struct node *node, struct host *h)
{
    const char *busy = host_busy_with(h);
    if (busy == NULL) {
        close_host(node, h);
    } else if (now_ms(node) >= h->slow_at_ms) {
        LOG(LOG_INFO, "a shard is still busy", LOG_N("shard", h->shard), LOG_Z("with", busy));
        api_cut_slow_clients(h->api);
        h->slow_at_ms = now_ms(node) + SLOW_MS;
    }
}

void node_tend_hosts(struct node *node)
{
    for (struct host *h = node->hosts; h != NULL; h = h->next) {
        if (h->state == HOST_SERVING && engine_failed(h->engine)) {
            LOG(LOG_ERROR, "a shard failed; it is taken again", LOG_N("shard", h->shard));
            metric_add(node->metrics.failures, STR("serving"), STR_NONE, 1);
            drop(node, h);
            failed(node, h->shard);
        } else if (h->state == HOST_SERVING && h->ends_calls && engine_calls_ended(h->engine)) {
            leave(node, h);
        } else if (h->state == HOST_LEAVING && !(node->has_clients && node_is_last(node))) {
            close_when_quiet(node, h);
        }
    }
}

void node_leave_all(struct node *node)
{
    for (struct host *h = node->hosts; h != NULL; h = h->next) {
        if (node->slots[h->shard].host == h)
            hand_over(node, h);
    }
}

bool node_is_opening(const struct node *node)
{
    for (const struct host *h = node->hosts; h != NULL; h = h->next) {
        if (h->state == HOST_OPENING)
            return true;
    }
    return false;
}

/* --- what the directory says --- */

static void want(struct node *node, size_t shard, int64_t epoch, enum shard_taken taken)
{
    if (now_ms(node) < node->slots[shard].retry_at_ms || node->stopping)
        return;
    node->slots[shard].wanted_epoch = epoch + 1;
    node->slots[shard].taken = taken;
    directory_take(node->directory, shard, epoch);
}

/* This node's by the directory. Without a host it was taken just now; or by a process that had this
 * node's name before, and then it is taken again, with an epoch of this one's own. */
static void own_shard(struct node *node, size_t shard, int64_t epoch, enum share_move move)
{
    struct shard_slot *slot = &node->slots[shard];
    if (slot->host != NULL && move == SHARE_GIVE)
        hand_over(node, slot->host);
    else if (slot->host != NULL || slot->releasing)
        return;
    else if (move == SHARE_GIVE || node->stopping)
        release(node, shard);
    else if (epoch == slot->wanted_epoch)
        open_shard(node, shard, epoch);
    else
        want(node, shard, epoch, SHARD_TAKEN_OWN);
}

static void other_shard(struct node *node, size_t shard, int64_t epoch, enum share_move move)
{
    struct shard_slot *slot = &node->slots[shard];
    slot->releasing = false;
    if (slot->host != NULL) {
        LOG(LOG_WARN, "another node has taken a shard", LOG_N("shard", shard));
        drop(node, slot->host);
    } else if (move == SHARE_TAKE) {
        bool had_owner = directory_view(node->directory)->shards[shard].owner >= 0;
        want(node, shard, epoch, had_owner ? SHARD_TAKEN_EXPIRED : SHARD_TAKEN_FREE);
    }
}

static void show_view(struct node *node, const struct cluster_view *view)
{
    size_t unowned = 0;
    for (size_t i = 0; i < view->shard_count; i++) {
        int owner = view->shards[i].owner;
        unowned += owner < 0 || !cluster_node_lives(&view->nodes[owner]);
    }
    metric_set(node->metrics.unowned, STR_NONE, STR_NONE, (double)unowned);
    metric_set(node->metrics.read_at, STR_NONE, STR_NONE,
               (double)env_now_ms(node->config.api.env) / 1e3);
}

void node_adopt_view(struct node *node)
{
    const struct cluster_view *view = directory_view(node->directory);
    enum share_move moves[CLUSTER_SHARDS_MAX];
    show_view(node, view);
    share_plan(view, moves);
    for (size_t i = 0; i < view->shard_count; i++) {
        bool own = view->self >= 0 && view->shards[i].owner == view->self;
        (own ? own_shard : other_shard)(node, i, view->shards[i].epoch, moves[i]);
    }
}
