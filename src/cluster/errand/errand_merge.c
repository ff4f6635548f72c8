/* Answers of all shards in one: sums, and lists that are merged item by item. */
#include "cluster/errand/errand_parts.h"

#include "api/merge/fold.h"
#include "base/json/read.h"

/* What one shard has of a merged list. */
struct shard_page {
    struct str place;    /* where it was asked to go on; ptr NULL: at the beginning */
    struct json *answer; /* NULL: it has not come yet */
    const struct json *items;
    struct str next; /* where its next page begins; ptr NULL: there is none */
    size_t taken;    /* of the items */
};

void errand_free_pages(struct errand *e)
{
    for (size_t i = 0; e->pages != NULL && i < e->count; i++)
        json_free(e->pages[i].answer);
    e->pages = NULL;
}

/* --- the cursor: SHARD:PLACE,SHARD:PLACE… --- */

static struct shard_page *page_of(const struct errand *e, int64_t shard)
{
    for (size_t i = 0; i < e->count; i++) {
        if (e->order[i] == shard)
            return &e->pages[i];
    }
    return NULL;
}

/* What is no such cursor is one of the first shard, which refuses it if it is none. */
bool errand_read_places(struct errand *e, struct arena *arena, struct str cursor)
{
    if (e->pages == NULL)
        e->pages = arena_alloc(arena, e->count * sizeof(*e->pages));
    struct str rest = cursor;
    while (e->pages != NULL && rest.len > 0) {
        struct str part;
        struct str shard;
        struct str place;
        int64_t number;
        (void)str_cut(rest, ',', &part, &rest);
        struct shard_page *page = NULL;
        if (str_cut(part, ':', &shard, &place) && str_to_i64(shard, &number))
            page = page_of(e, number);
        if (page != NULL)
            page->place = place;
        else
            e->pages[0].place = cursor;
    }
    return e->pages != NULL;
}

struct str errand_place_at(const struct errand *e, size_t step)
{
    return e->pages[step].place;
}

/* --- a merged list --- */

static enum err keep_page(struct errand *e, struct str body)
{
    struct shard_page *page = &e->pages[e->steps - 1];
    e->bytes += body.len;
    if (e->bytes > ERRAND_BYTES_MAX)
        return ERR_NO_MEMORY;
    enum err read = json_read_kept(body, &page->answer);
    if (read != ERR_OK)
        return read;
    page->items = json_member(page->answer, STR("items"));
    page->next = json_text_of(json_member(page->answer, STR("next_cursor")));
    return ERR_OK;
}

static bool is_taken_up(const struct shard_page *page)
{
    return page->taken == json_length(page->items);
}

/* Is the order certain? Not after the last item of a page that another one follows. */
static bool knows_next(const struct errand *e)
{
    for (size_t i = 0; i < e->count; i++) {
        if (is_taken_up(&e->pages[i]) && e->pages[i].next.ptr != NULL)
            return false;
    }
    return true;
}

static const char *order_of(const struct errand *e, const struct shard_page *page)
{
    const struct json *item = json_element(page->items, page->taken);
    struct str text = json_text_of(json_member(item, str_of(e->route->ordered_by)));
    return text.ptr != NULL ? text.ptr : "";
}

/* NULL: there is none, or it is not certain which. */
static struct shard_page *next_page(const struct errand *e)
{
    struct shard_page *best = NULL;
    if (!knows_next(e))
        return NULL;
    for (size_t i = 0; i < e->count; i++) {
        struct shard_page *page = &e->pages[i];
        if (is_taken_up(page))
            continue;
        int order = best != NULL ? strcmp(order_of(e, page), order_of(e, best)) : -1;
        if (best == NULL || (e->newest_first ? order > 0 : order < 0))
            best = page;
    }
    return best;
}

static void put_items(struct errand *e, struct json_out *o)
{
    struct shard_page *page;
    json_open(o, "items", '[');
    for (size_t count = 0; count < e->limit && (page = next_page(e)) != NULL; count++) {
        json_open(o, NULL, '{');
        fold_put_members(o, json_element(page->items, page->taken++));
        json_add_int(o, "shard", e->order[page - e->pages]);
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* Where the shard's list goes on after the items that were taken. */
static void put_place(const struct errand *e, const struct shard_page *page, struct buf *out)
{
    const struct json *last = page->taken > 0 ? json_element(page->items, page->taken - 1) : NULL;
    const struct json *place = json_member(last, str_of(e->route->place));
    int64_t number;
    int64_t within;
    if (is_taken_up(page) && page->next.ptr != NULL)
        buf_put(out, page->next);
    else if (json_whole_of(place, &number) && e->route->place_in != NULL &&
             json_whole_of(json_member(last, str_of(e->route->place_in)), &within))
        buf_printf(out, "%lld.%lld", (long long)within, (long long)number);
    else if (json_whole_of(place, &number))
        buf_printf(out, "%lld", (long long)number);
    else if (json_is(place, JSON_KIND_TEXT))
        buf_put(out, json_text_of(place));
    else
        buf_put(out, page->place);
}

/* Empty: all items of all shards were taken. */
static void put_cursor(const struct errand *e, struct buf *out)
{
    bool more = false;
    for (size_t i = 0; i < e->count; i++)
        more |= !is_taken_up(&e->pages[i]) || e->pages[i].next.ptr != NULL;
    for (size_t i = 0; more && i < e->count; i++) {
        struct buf place;
        buf_init(&place, CURSOR_MAX);
        put_place(e, &e->pages[i], &place);
        if (place.len > 0)
            buf_printf(out, "%s%u:%.*s", out->len > 0 ? "," : "", e->order[i],
                       STR_ARG(buf_str(&place)));
        if (!buf_ok(&place)) /* a list must not end early */
            out->failed = true;
        buf_release(&place);
    }
}

/* --- sums --- */

/* The members of the sum with this answer; they stand in e->sum as an object. */
static bool add_answer(struct errand *e, const struct json *answer)
{
    struct json *so_far = NULL;
    struct buf sum;
    if (e->sum.len > 0 && json_read_kept(buf_str(&e->sum), &so_far) != ERR_OK)
        return false;
    buf_init(&sum, HTTP_REPLY_MAX);
    struct json_out o = json_out_to(&sum);
    struct fold fold = {so_far, answer, e->order[e->steps - 1], e->steps == e->count, e->asked};
    json_open(&o, NULL, '{');
    e->route->fold(&fold, &o);
    json_close(&o, '}');
    json_free(so_far);
    buf_release(&e->sum);
    e->sum = sum;
    return buf_ok(&e->sum);
}

static enum err add_text(struct errand *e, struct str body)
{
    struct json *answer = NULL;
    enum err read = json_read_kept(body, &answer);
    if (read == ERR_OK && !add_answer(e, answer))
        read = ERR_NO_MEMORY;
    json_free(answer);
    return read;
}

/* --- the whole --- */

static bool put_list(struct errand *e, struct buf *out, struct buf *cursor)
{
    struct json *head = NULL;
    struct json_out o = json_out_to(out);
    if (e->sum.len > 0 && json_read_kept(buf_str(&e->sum), &head) != ERR_OK)
        return false;
    json_open(&o, NULL, '{');
    fold_put_members(&o, head);
    json_free(head);
    put_items(e, &o);
    put_cursor(e, cursor);
    json_add_text_or_null(&o, "next_cursor", cursor->len > 0 ? buf_str(cursor) : STR_NONE);
    json_close(&o, '}');
    return buf_ok(out) && !cursor->failed;
}

static bool finish_list(struct errand *e, struct http_request *req, struct http_reply *reply,
                        struct buf *body)
{
    struct buf text;
    struct buf cursor;
    buf_init(&text, HTTP_REPLY_MAX);
    buf_init(&cursor, HTTP_LINE_MAX / 2);
    bool ok = put_list(e, &text, &cursor);
    if (ok)
        errand_set_link(e, req, reply, cursor.len > 0 ? buf_str(&cursor) : STR_NONE);
    buf_release(&cursor);
    struct buf done = ok ? text : *body;
    buf_release(ok ? body : &text);
    *body = done;
    return ok;
}

static enum err take_answer(struct errand *e, struct str body)
{
    enum err taken = e->join == JOIN_ORDER ? keep_page(e, body) : ERR_OK;
    return taken == ERR_OK && e->route->fold != NULL ? add_text(e, body) : taken;
}

static bool finish(struct errand *e, struct http_request *req, struct http_reply *reply,
                   struct buf *body)
{
    if (e->join == JOIN_ORDER)
        return finish_list(e, req, reply, body);
    struct buf before = *body;
    *body = e->sum;
    e->sum = before;
    return true;
}

/* A shard shows what it has stored as it is: a value that was damaged may be no JSON. */
static void refuse(const struct errand *e, enum err why, struct http_request *req,
                   struct http_reply *reply)
{
    struct problem p;
    struct str route = reply->route;
    problem_init(&p);
    if (why == ERR_DAMAGED)
        (void)problem_set(&p, ERR_DAMAGED, "What shard %u has stored cannot be read",
                          (unsigned)e->order[e->steps - 1]);
    else
        (void)problem_set(
            &p, ERR_NO_MEMORY,
            "The answers of all shards do not fit in one. Ask for less: lower `limit` or"
            " `minutes`.");
    http_problem_reply(req, &p, reply);
    reply->route = route;
    problem_release(&p);
}

bool errand_merge(struct errand *e, struct http_request *req, struct http_reply *reply,
                  struct buf *body)
{
    enum err taken = take_answer(e, reply->body);
    if (taken == ERR_OK && e->steps < e->count)
        return false;
    if (taken == ERR_OK && finish(e, req, reply, body))
        reply->body = buf_str(body);
    else
        refuse(e, taken, req, reply);
    return true;
}
