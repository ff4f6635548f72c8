/* A request that concerns several shards. */
#include "cluster/errand/errand.h"

#include "base/json/read.h"
#include "base/json/write.h"
#include "domain/tenant.h"

/* --- which shards --- */

static bool is_for_all(const struct call *c)
{
    return c->route->scope == OF_ALL || str_is(c->op.caller.tenant, "*");
}

enum route_join errand_join_of(const struct call *c, const struct front_cluster *cluster)
{
    const struct route *r = c->route;
    struct str tenant = c->op.caller.tenant;
    if (r->join == JOIN_NONE || cluster->shard_count == 1)
        return JOIN_NONE;
    if (r->scope == OF_ALL) /* others are refused by any shard */
        return c->op.caller.all_tenants ? r->join : JOIN_NONE;
    if (is_for_all(c))
        return r->join;
    bool two = r->scope == OF_TENANT_AND_FIRST && tenant_id_ok(tenant) &&
               cluster->shard_of(cluster->ctx, tenant) != 0;
    return two ? r->join : JOIN_NONE;
}

/* A job that is looked for is near, if this node has it. Claims go round all shards, so that no
 * node's backlog keeps the others waiting. Everything else comes in the order of the shards'
 * numbers. */
static void put_all(struct errand *e, size_t turn)
{
    const struct front_cluster *cluster = e->cluster;
    bool near_first = e->join == JOIN_FIND || e->join == JOIN_BATCH;
    size_t begin = near_first || e->join == JOIN_CLAIM ? turn : 0;
    for (int here = 1; here >= 0; here--) {
        for (size_t i = 0; i < cluster->shard_count; i++) {
            size_t shard = (begin + i) % cluster->shard_count;
            bool is_here = !near_first || cluster->owner_of(cluster->ctx, shard).api != NULL;
            if (is_here == (here == 1))
                e->order[e->count++] = (uint16_t)shard;
        }
    }
    assert(e->count == cluster->shard_count);
}

static bool set_order(struct errand *e, const struct call *c, size_t turn)
{
    const struct front_cluster *cluster = e->cluster;
    e->order = arena_alloc(&c->req->arena, cluster->shard_count * sizeof(*e->order));
    if (e->order == NULL)
        return false;
    if (is_for_all(c)) {
        put_all(e, turn);
        return true;
    }
    e->order[e->count++] = 0;
    e->order[e->count++] = (uint16_t)cluster->shard_of(cluster->ctx, c->op.caller.tenant);
    return true;
}

/* --- batches --- */

/* The results only: the next jobs may be in any shard, and are claimed by another request. */
static bool read_batch(struct errand *e, const struct call *c)
{
    struct json *body = NULL;
    struct problem ignored;
    struct buf text;
    problem_init(&ignored);
    buf_init(&text, JSON_WRITTEN_MAX);
    const struct json *items = NULL;
    if (json_read(c->req->body, &ignored, &body) == ERR_OK)
        items = json_member(body, STR("items"));
    e->result_count = json_length(items);
    if (items != NULL && json_member(body, STR("claim")) != NULL) {
        buf_put(&text, STR("{\"items\":"));
        json_write_plain(&text, items);
        buf_put_char(&text, '}');
        e->items = arena_take(&c->req->arena, &text);
    }
    e->results = arena_alloc(&c->req->arena, MAX(e->result_count, (size_t)1) * sizeof(*e->results));
    json_free(body);
    problem_release(&ignored);
    buf_release(&text);
    return e->results != NULL;
}

/* --- all of them --- */

/* Is it asked with a query that is another for each shard? */
static bool has_query(const struct errand *e)
{
    return e->join == JOIN_PAGES || e->join == JOIN_ORDER || e->join == JOIN_FOLD;
}

bool errand_collects(const struct errand *e)
{
    return has_query(e) || e->join == JOIN_CLAIM;
}

bool errand_has_key(const struct http_request *req)
{
    return http_header(req, "Idempotency-Key", NULL).ptr != NULL ||
           http_header(req, "X-Idempotency-Key", NULL).ptr != NULL;
}

bool errand_begin(struct errand *e, const struct call *c, const struct front_cluster *cluster,
                  size_t turn, int64_t now_ms)
{
    *e = (struct errand){.join = errand_join_of(c, cluster), .route = c->route, .cluster = cluster};
    buf_init(&e->sum, ERRAND_BYTES_MAX);
    return set_order(e, c, turn) &&
           (e->join != JOIN_CLAIM || errand_read_claim(e, c->req, now_ms)) &&
           (e->join != JOIN_BATCH || read_batch(e, c)) &&
           (!has_query(e) || errand_read_query(e, c->req));
}

void errand_end(struct errand *e)
{
    errand_free_pages(e);
    buf_release(&e->sum);
    buf_release(&e->claim.jobs);
}

bool errand_next(struct errand *e, struct arena *arena, int64_t now_ms, struct errand_step *ret)
{
    bool first_round = e->steps < e->count;
    size_t step = e->steps++;
    *ret = (struct errand_step){.shard = e->order[step % e->count], .body = e->items};
    if (e->join == JOIN_PAGES)
        ret->shard = e->shard;
    if (has_query(e)) {
        ret->query = errand_shard_query(e, arena, step);
        return ret->query.ptr != NULL;
    }
    return e->join == JOIN_CLAIM ? errand_next_claim(e, arena, now_ms, ret) : first_round;
}

/* Keeps what this shard knows, and of the last one also what nobody knows. False: some are left. */
static bool take_results(struct errand *e, const struct json *results, struct arena *arena)
{
    bool last = e->steps == e->count;
    bool all = true;
    for (size_t i = 0; i < e->result_count; i++) {
        const struct json *result = json_element(results, i);
        bool unknown = str_is(json_text_of(json_member(result, STR("code"))), "JOB_NOT_FOUND");
        if (e->results[i].ptr == NULL && result != NULL && (last || !unknown)) {
            struct buf text;
            buf_init(&text, JSON_WRITTEN_MAX);
            json_write_plain(&text, result);
            e->results[i] = arena_take(arena, &text);
        }
        all &= e->results[i].ptr != NULL;
    }
    return all;
}

static struct str join_results(const struct errand *e, struct arena *arena)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    buf_put(&text, STR("{\"results\":["));
    for (size_t i = 0; i < e->result_count; i++) {
        if (i > 0)
            buf_put_char(&text, ',');
        buf_put(&text, e->results[i]);
    }
    buf_put(&text, e->items.ptr != NULL ? STR("],\"jobs\":[]}") : STR("]}"));
    return arena_take(arena, &text);
}

static bool batch_is_done(struct errand *e, struct str *body, struct arena *arena)
{
    struct json *answer = NULL;
    struct problem ignored;
    problem_init(&ignored);
    bool read = json_read(*body, &ignored, &answer) == ERR_OK;
    bool all = read && take_results(e, json_member(answer, STR("results")), arena);
    json_free(answer);
    problem_release(&ignored);
    struct str joined = all ? join_results(e, arena) : STR_NONE;
    if (joined.ptr != NULL)
        *body = joined;
    return all || e->steps == e->count;
}

bool errand_is_answer(struct errand *e, struct http_request *req, struct http_reply *reply,
                      struct buf *body)
{
    bool fine = reply->status == 200;
    switch (e->join) {
    case JOIN_FIND:
        return reply->status != 404 || e->steps == e->count;
    case JOIN_CLAIM:
        return errand_take_jobs(e, reply);
    case JOIN_BATCH:
        return !fine || batch_is_done(e, &reply->body, &req->arena);
    case JOIN_PAGES:
        return !fine || errand_take_page(e, req, reply, body);
    case JOIN_ORDER:
    case JOIN_FOLD:
        return !fine || errand_merge(e, req, reply, body);
    case JOIN_CHAIN: /* what is no stream is a refusal */
    case JOIN_NONE:
        break;
    }
    return true;
}
