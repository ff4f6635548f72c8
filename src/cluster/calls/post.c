/* Requests of the node itself to the owner of a shard. */
#include "cluster/calls/post.h"

#include "base/json/read.h"
#include "base/json/write.h"
#include "base/log.h"
#include "cluster/forward.h"

enum { POST_ARENA_MAX = 64 * KIB };

struct post {
    struct front *front;
    struct node_call call;
    struct node_header headers[2];
    struct arena arena;
    post_over *over;
    void *ctx;
};

static void end(struct post *p, int status)
{
    p->over(p->ctx, status);
    p->front->posts--;
    arena_release(&p->arena);
    free(p);
}

static void on_news(struct node_call *call)
{
    struct post *p = call->owner;
    struct buf ignored;
    struct str head;
    buf_init(&ignored, 2 * NODE_BUFFER_MAX);
    enum node_end how = node_call_end(call); /* first: what comes before it is not missed */
    node_call_take(call, &ignored);
    buf_release(&ignored);
    if (how == NODE_UNDER_WAY)
        return;
    int status = how == NODE_ANSWERED ? node_call_head(call, &head) : 0;
    node_call_release(call);
    end(p, status);
}

static struct front_owner owner_of(const struct front *f, size_t shard)
{
    struct front_owner owner = f->config.cluster.owner_of(f->config.cluster.ctx, shard);
    if (owner.api != NULL) {
        owner.url = f->config.url;
        owner.session = f->config.session;
    }
    return owner;
}

/* Fills in the call. False when memory ran out. */
static bool fill(struct post *p, const struct front_owner *owner, const struct node_claim *claim,
                 struct str path, struct str body)
{
    struct front *f = p->front;
    const struct front_cluster *cluster = &f->config.cluster;
    struct str text = arena_str(&p->arena, body);
    struct node_message message = {.method = STR("POST"), .path = path, .body = text};
    struct str token = node_auth_sign(f->auth, &message, owner->session,
                                      cluster->now_ms(cluster->ctx), claim, &p->arena);
    p->headers[0] = (struct node_header){STR("Content-Type"), STR("application/json")};
    p->headers[1] = (struct node_header){STR(FORWARDED_HEADER), token};
    p->call = (struct node_call){
        .url = arena_str(&p->arena, owner->url).ptr,
        .method = "POST",
        .target = arena_str(&p->arena, path).ptr,
        .headers = p->headers,
        .header_count = ARRAY_LEN(p->headers),
        .body = text,
        .head_ms = NODE_HEAD_MS,
        .news = on_news,
        .owner = p,
    };
    return text.ptr != NULL && token.ptr != NULL && p->call.url != NULL && p->call.target != NULL;
}

void post_send(struct front *f, size_t shard, const struct caller *caller, struct str path,
               struct str body, post_over *over, void *ctx)
{
    struct front_owner owner = owner_of(f, shard);
    struct node_claim claim = {.shard = (unsigned)shard, .has_caller = caller != NULL};
    struct post *p = owner.url.ptr != NULL ? calloc(1, sizeof(*p)) : NULL;
    if (p == NULL) {
        over(ctx, 0);
        return;
    }
    if (caller != NULL)
        claim.caller = *caller;
    p->front = f;
    p->over = over;
    p->ctx = ctx;
    arena_init(&p->arena, POST_ARENA_MAX);
    f->posts++;
    if (fill(p, &owner, &claim, path, body))
        node_call_begin(f->client, &p->call);
    else
        end(p, 0);
}

/* --- jobs that were not delivered --- */

/* A lease that is over by now needs no release. */
static void given_back(void *ctx, int status)
{
    (void)ctx;
    if (status == 0 || status >= 500)
        LOG(LOG_WARN, "a job that was not delivered waits until its lease expires",
            LOG_N("status", status));
}

static void give_back(struct front *f, const struct caller *caller, const struct json *job)
{
    const struct front_cluster *cluster = &f->config.cluster;
    struct str id = json_text_of(json_member(job, STR("job_id")));
    struct str tenant = json_text_of(json_member(job, STR("tenant")));
    char path[128];
    struct buf body;
    if (id.ptr == NULL || tenant.ptr == NULL)
        return;
    (void)snprintf(path, sizeof(path), "/api/v1/jobs/%.*s/release", STR_ARG(id));
    buf_init(&body, JSON_WRITTEN_MAX);
    buf_put(&body, STR("{\"lease_token\":"));
    json_put_text(&body, json_text_of(json_member(job, STR("lease_token"))));
    buf_put_char(&body, '}');
    if (buf_ok(&body))
        post_send(f, cluster->shard_of(cluster->ctx, tenant), caller, str_of(path), buf_str(&body),
                  given_back, NULL);
    buf_release(&body);
}

void post_give_back(struct front *f, const struct caller *caller, struct str answer)
{
    struct json *read = NULL;
    if (json_read_kept(answer, &read) != ERR_OK)
        return;
    const struct json *jobs = json_member(read, STR("jobs"));
    for (size_t i = 0; i < json_length(jobs); i++)
        give_back(f, caller, json_element(jobs, i));
    if (jobs == NULL) /* a claim of one job shows that */
        give_back(f, caller, read);
    json_free(read);
}
