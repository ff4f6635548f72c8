/* What a caller of all tenants asks of one shard after the other. */
#include "cluster/errand.h"

#include "base/json/read.h"
#include "base/json/write.h"

enum { SLICE_MS = 100 }; /* how long a claim waits at one shard before it asks the next */

enum errand_kind errand_kind_of(const struct call *c)
{
    struct str pattern = str_of(c->route->pattern);
    if (str_is(pattern, "/api/v1/tenants") && c->op.caller.all_tenants)
        return ERRAND_LIST;
    if (!str_is(c->op.caller.tenant, "*"))
        return ERRAND_ONE;
    if (str_is(pattern, "/api/v1/jobs/claim"))
        return ERRAND_CLAIM;
    if (str_is(pattern, "/api/v1/jobs:complete"))
        return ERRAND_BATCH;
    bool by_id = str_starts_with(pattern, STR("/api/v1/jobs/{}")) ||
                 str_starts_with(pattern, STR("/api/v1/dead-letters/{}"));
    return by_id ? ERRAND_FIND : ERRAND_ONE;
}

static bool set_order(struct errand *e, struct arena *arena, const struct front_cluster *cluster,
                      size_t turn)
{
    e->shard_count = cluster->shard_count;
    e->order = arena_alloc(arena, e->shard_count * sizeof(*e->order));
    if (e->order == NULL)
        return false;
    size_t count = 0;
    for (int here = 1; here >= 0; here--) {
        for (size_t i = 0; i < e->shard_count; i++) {
            size_t shard = (turn + i) % e->shard_count;
            if ((cluster->owner_of(cluster->ctx, shard).api != NULL) == (here == 1))
                e->order[count++] = (uint16_t)shard;
        }
    }
    assert(count == e->shard_count);
    return true;
}

/* The members of a claim but for wait_ms. What is not a claim is sent as it came, and refused. */
static bool read_claim(struct errand *e, const struct call *c, int64_t now_ms)
{
    struct json *body = NULL;
    struct problem ignored;
    int64_t wait_ms = 0;
    bool ok = true;
    problem_init(&ignored);
    bool fine =
        json_read(c->req->body, &ignored, &body) == ERR_OK && json_is(body, JSON_KIND_OBJECT);
    const struct json *wait = fine ? json_member(body, STR("wait_ms")) : NULL;
    if (wait != NULL && !json_is(wait, JSON_KIND_NULL))
        fine = json_whole_of(wait, &wait_ms) && wait_ms >= 0 && wait_ms <= CLAIM_WAIT_MS_MAX;
    if (fine) {
        struct buf text;
        buf_init(&text, JSON_WRITTEN_MAX);
        buf_put_char(&text, '{');
        for (size_t i = 0; i < json_members(body); i++) {
            if (json_value_at(body, i) == wait)
                continue;
            json_put_text(&text, json_name_at(body, i));
            buf_put_char(&text, ':');
            json_write_plain(&text, json_value_at(body, i));
            buf_put_char(&text, ',');
        }
        e->claim = arena_take(&c->req->arena, &text);
        ok = e->claim.ptr != NULL;
    }
    e->until_ms = now_ms + wait_ms;
    json_free(body);
    problem_release(&ignored);
    return ok;
}

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

/* --- lists --- */

/* SHARD~CURSOR; what is no such cursor is one of shard 0, which refuses it if it is none. */
static bool read_cursor(struct errand *e, struct http_request *req, struct str encoded)
{
    struct str text;
    struct str shard;
    struct str rest;
    int64_t number;
    if (!http_decode(req, encoded, &text))
        return false;
    e->cursor = text;
    if (str_cut(text, '~', &shard, &rest) && str_to_i64(shard, &number) && number >= 0 &&
        (uint64_t)number < e->shard_count) {
        e->shard = (size_t)number;
        e->cursor = rest.len > 0 ? rest : STR_NONE;
    }
    return true;
}

static bool read_list(struct errand *e, struct http_request *req)
{
    struct str rest = req->query;
    struct http_param param;
    struct buf query;
    bool ok = true;
    buf_init(&query, HTTP_LINE_MAX);
    while (ok && http_query_next(&rest, &param)) {
        if (str_is(param.name, "cursor")) {
            ok = read_cursor(e, req, param.value);
            continue;
        }
        buf_printf(&query, "%s%.*s=%.*s", query.len > 0 ? "&" : "", STR_ARG(param.name),
                   STR_ARG(param.value));
    }
    buf_put(&query, STR(""));
    e->query = arena_take(&req->arena, &query);
    return ok && e->query.ptr != NULL;
}

static void put_encoded(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain)
            buf_put_char(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

/* The query with this cursor; ptr NULL when memory ran out. */
static struct str query_at(const struct errand *e, struct arena *arena, struct str cursor)
{
    struct buf query;
    buf_init(&query, HTTP_LINE_MAX);
    buf_put(&query, e->query);
    if (cursor.len > 0) {
        buf_put(&query, e->query.len > 0 ? STR("&cursor=") : STR("cursor="));
        put_encoded(&query, cursor);
    }
    buf_put(&query, STR(""));
    return arena_take(arena, &query);
}

/* A shard may know tenants of others, because their keys were made there: they are left out. */
static size_t put_items(const struct errand *e, const struct json *items, struct buf *out)
{
    size_t count = 0;
    for (size_t i = 0; i < json_length(items); i++) {
        const struct json *item = json_element(items, i);
        struct str id = json_text_of(json_member(item, STR("id")));
        if (e->cluster->shard_of(e->cluster->ctx, id) != e->shard)
            continue;
        if (count++ > 0)
            buf_put_char(out, ',');
        json_write_plain(out, item);
    }
    return count;
}

/* Where the list goes on; false: it has ended. */
static bool move_on(struct errand *e, const struct json *next, struct arena *arena)
{
    struct str cursor = json_text_of(next);
    e->cursor = cursor.ptr != NULL ? arena_str(arena, cursor) : STR_NONE;
    if (cursor.ptr != NULL)
        return true;
    e->shard++;
    return e->shard < e->shard_count;
}

static void set_link(const struct errand *e, struct http_request *req, struct http_reply *reply,
                     struct str cursor)
{
    size_t i = 0;
    while (i < reply->header_count && strcmp(reply->headers[i].name, "Link") != 0)
        i++;
    struct buf link;
    buf_init(&link, HTTP_LINE_MAX);
    if (cursor.len > 0)
        buf_printf(&link, "<%.*s?%s>; rel=\"next\"", STR_ARG(req->path),
                   query_at(e, &req->arena, cursor).ptr);
    struct str value = cursor.len > 0 ? arena_take(&req->arena, &link) : STR("");
    if (i < reply->header_count)
        reply->headers[i].value = value;
    else if (value.len > 0)
        http_reply_add(reply, "Link", value);
}

static bool page_is_done(struct errand *e, struct http_request *req, struct http_reply *reply)
{
    struct json *page = NULL;
    struct problem ignored;
    struct buf text;
    char cursor[CURSOR_MAX + 16] = "";
    problem_init(&ignored);
    buf_init(&text, HTTP_REPLY_MAX);
    bool read = json_read(reply->body, &ignored, &page) == ERR_OK;
    problem_release(&ignored);
    if (!read)
        return true;
    buf_put(&text, STR("{\"items\":["));
    size_t count = put_items(e, json_member(page, STR("items")), &text);
    bool more = move_on(e, json_member(page, STR("next_cursor")), &req->arena);
    json_free(page);
    if (more)
        (void)snprintf(cursor, sizeof(cursor), "%zu~%.*s", e->shard, STR_ARG(e->cursor));
    buf_put(&text, STR("],\"next_cursor\":"));
    if (more)
        json_put_text(&text, str_of(cursor));
    else
        buf_put(&text, STR("null"));
    buf_put_char(&text, '}');
    struct str body = arena_take(&req->arena, &text);
    if (body.ptr == NULL)
        return true;
    if (count == 0 && more)
        return false;
    reply->body = body;
    set_link(e, req, reply, str_of(cursor));
    return true;
}

/* --- all of them --- */

bool errand_begin(struct errand *e, const struct call *c, const struct front_cluster *cluster,
                  size_t turn, int64_t now_ms)
{
    *e = (struct errand){.kind = errand_kind_of(c), .cluster = cluster};
    return set_order(e, &c->req->arena, cluster, turn) &&
           (e->kind != ERRAND_CLAIM || read_claim(e, c, now_ms)) &&
           (e->kind != ERRAND_BATCH || read_batch(e, c)) &&
           (e->kind != ERRAND_LIST || read_list(e, c->req));
}

static struct str claim_waiting(const struct errand *e, struct arena *arena, int64_t wait_ms)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    buf_put(&text, e->claim);
    buf_printf(&text, "\"wait_ms\":%lld}", (long long)wait_ms);
    return arena_take(arena, &text);
}

bool errand_next(struct errand *e, struct arena *arena, int64_t now_ms, struct errand_step *ret)
{
    bool first_round = e->steps < e->shard_count;
    *ret = (struct errand_step){.shard = e->order[e->steps % e->shard_count], .body = e->items};
    e->steps++;
    if (e->kind == ERRAND_LIST) {
        ret->shard = e->shard;
        ret->query = query_at(e, arena, e->cursor);
        return ret->query.ptr != NULL;
    }
    if (!first_round && (e->kind != ERRAND_CLAIM || now_ms >= e->until_ms))
        return false;
    if (e->claim.ptr == NULL)
        return true;
    int64_t wait_ms = first_round ? 0 : MIN(e->until_ms - now_ms, (int64_t)SLICE_MS);
    ret->body = claim_waiting(e, arena, wait_ms);
    return ret->body.ptr != NULL;
}

static bool has_jobs(struct str body)
{
    struct json *answer = NULL;
    struct problem ignored;
    problem_init(&ignored);
    bool none = json_read(body, &ignored, &answer) == ERR_OK &&
                json_length(json_member(answer, STR("jobs"))) == 0;
    json_free(answer);
    problem_release(&ignored);
    return !none;
}

/* Keeps what this shard knows, and of the last one also what nobody knows. False: some are left. */
static bool take_results(struct errand *e, const struct json *results, struct arena *arena)
{
    bool last = e->steps == e->shard_count;
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
    return all || e->steps == e->shard_count;
}

bool errand_is_answer(struct errand *e, struct http_request *req, struct http_reply *reply)
{
    bool fine = reply->status == 200;
    switch (e->kind) {
    case ERRAND_FIND:
        return reply->status != 404 || e->steps == e->shard_count;
    case ERRAND_CLAIM:
        return fine ? has_jobs(reply->body) : reply->status != 503;
    case ERRAND_BATCH:
        return !fine || batch_is_done(e, &reply->body, &req->arena);
    case ERRAND_LIST:
        return !fine || page_is_done(e, req, reply);
    default:
        return true;
    }
}
