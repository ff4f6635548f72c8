/* Lists and their cursors, when several shards have them. */
#include "cluster/errand/errand_parts.h"

#include "base/json/read.h"
#include "base/json/write.h"

/* --- the query --- */

/* SHARD~CURSOR; what is no such cursor is one of shard 0, which refuses it if it is none. */
static void read_cursor(struct errand *e, struct str text)
{
    struct str shard;
    struct str rest;
    int64_t number;
    e->cursor = text;
    if (str_cut(text, '~', &shard, &rest) && str_to_i64(shard, &number) && number >= 0 &&
        (uint64_t)number < e->cluster->shard_count) {
        e->shard = (size_t)number;
        e->cursor = rest.len > 0 ? rest : STR_NONE;
    }
}

static bool take_cursor(struct errand *e, struct http_request *req, struct str encoded)
{
    struct str text;
    if (!http_decode(req, encoded, &text))
        return false;
    if (e->join == JOIN_ORDER)
        return errand_read_places(e, &req->arena, text);
    read_cursor(e, text);
    return true;
}

/* The words that a route's parameter may be, and that it is unless it is sent. */
static bool is_default(const struct route *route, const struct http_param *param)
{
    for (size_t i = 0; i < route->param_count; i++) {
        const struct param *p = &route->params[i];
        if (str_is(param->name, p->name))
            return p->word != NULL && str_is(param->value, p->word((unsigned)p->initial));
    }
    return false;
}

/* Of what the shards are asked for anyway; true: it need not be sent. */
static bool is_fold_query(struct errand *e, const struct http_param *param)
{
    struct str name;
    struct str value;
    if (!str_cut(str_of(e->route->fold_query), '=', &name, &value) || !str_eq(param->name, name))
        return false;
    e->asked = str_eq(param->value, value);
    return e->asked || is_default(e->route, param);
}

/* True: it need not be sent. */
static bool note_param(struct errand *e, const struct http_param *param)
{
    int64_t limit;
    if (str_is(param->name, "limit") && str_to_i64(param->value, &limit) && limit > 0)
        e->limit = (size_t)limit;
    else if (str_is(param->name, "order"))
        e->newest_first = str_is(param->value, "newest");
    return is_fold_query(e, param);
}

bool errand_read_query(struct errand *e, struct http_request *req)
{
    struct str rest = req->query;
    struct http_param param;
    struct buf query;
    bool ok = true;
    e->limit = PAGE_DEFAULT;
    buf_init(&query, HTTP_LINE_MAX);
    if (e->join == JOIN_ORDER)
        ok = errand_read_places(e, &req->arena, STR_NONE);
    while (ok && http_query_next(&rest, &param)) {
        if (note_param(e, &param))
            continue;
        if (str_is(param.name, "cursor") && take_cursor(e, req, param.value))
            continue; /* one that is none is sent as it came, and refused */
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

static struct str query_with(const struct errand *e, struct arena *arena, struct str cursor,
                             struct str also)
{
    struct buf query;
    buf_init(&query, HTTP_LINE_MAX);
    buf_put(&query, e->query);
    if (cursor.len > 0) {
        buf_put(&query, query.len > 0 ? STR("&cursor=") : STR("cursor="));
        put_encoded(&query, cursor);
    }
    if (also.len > 0)
        buf_printf(&query, "%s%.*s", query.len > 0 ? "&" : "", STR_ARG(also));
    buf_put(&query, STR(""));
    return arena_take(arena, &query);
}

struct str errand_query_at(const struct errand *e, struct arena *arena, struct str cursor)
{
    return query_with(e, arena, cursor, STR_NONE);
}

struct str errand_shard_query(const struct errand *e, struct arena *arena, size_t step)
{
    struct str cursor = e->join == JOIN_ORDER ? errand_place_at(e, step) : e->cursor;
    return query_with(e, arena, cursor, str_of(e->route->fold_query));
}

void errand_set_link(const struct errand *e, struct http_request *req, struct http_reply *reply,
                     struct str cursor)
{
    size_t i = 0;
    while (i < reply->header_count && strcmp(reply->headers[i].name, "Link") != 0)
        i++;
    struct buf link;
    buf_init(&link, HTTP_LINE_MAX);
    if (cursor.len > 0)
        buf_printf(&link, "<%.*s?%s>; rel=\"next\"", STR_ARG(req->path),
                   errand_query_at(e, &req->arena, cursor).ptr);
    struct str value = cursor.len > 0 ? arena_take(&req->arena, &link) : STR("");
    if (i < reply->header_count)
        reply->headers[i].value = value;
    else if (value.len > 0)
        http_reply_add(reply, "Link", value);
}

/* --- one list after the other --- */

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
    return e->shard < e->cluster->shard_count;
}

bool errand_take_page(struct errand *e, struct http_request *req, struct http_reply *reply,
                      struct buf *body)
{
    struct json *page = NULL;
    struct buf text;
    char cursor[CURSOR_MAX + 16] = "";
    if (json_read_kept(reply->body, &page) != ERR_OK)
        return true;
    buf_init(&text, HTTP_REPLY_MAX);
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
    if (!buf_ok(&text) || (count == 0 && more)) {
        bool done = !buf_ok(&text);
        buf_release(&text);
        return done;
    }
    buf_release(body);
    *body = text;
    reply->body = buf_str(body);
    errand_set_link(e, req, reply, str_of(cursor));
    return true;
}
