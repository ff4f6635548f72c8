/* Any text as the cursor of any list, and cursors of the list itself with a change: a page, or a
 * refusal that says so. Pages that follow each other are the list. */
#include "server/begin.h"

#include "server/route_request.h"

enum { LISTS_MAX = 64, ITEMS_MAX = 64 };

static const struct route *lists[LISTS_MAX];
static size_t list_count;

static bool is_list(const struct route *route)
{
    bool cursor = false;
    for (size_t i = 0; i < route->param_count; i++)
        cursor |=
            route->params[i].where == IN_QUERY && strcmp(route->params[i].name, "cursor") == 0;
    return cursor && route->use_case != NULL && route->use_case->read != NULL;
}

static void find_lists(void)
{
    for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r)) {
        if (is_list(r)) {
            assert(list_count < LISTS_MAX);
            lists[list_count++] = r;
        }
    }
}

static void put_encoded(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        buf_printf(out, "%%%02X", (unsigned char)text.ptr[i]);
}

/* cursor.ptr NULL: none. */
static struct fuzz_answer page(struct str path, size_t limit, struct str cursor)
{
    struct buf target;
    buf_init(&target, HTTP_HEAD_MAX);
    buf_put(&target, path);
    buf_printf(&target, "?limit=%zu", limit);
    if (cursor.ptr != NULL)
        buf_put(&target, STR("&cursor="));
    put_encoded(&target, cursor);
    assert(buf_ok(&target));
    struct fuzz_request r = fuzz_request("GET", buf_str(&target), STR_NONE, STR("acme"));
    struct fuzz_answer a = fuzz_ask(&r);
    buf_release(&target);
    return a;
}

static struct str next_of(const json_t *json)
{
    return json_str(json_object_get(json, "next_cursor"));
}

/* The cursor of one of the pages, with a byte of it changed. */
static void check_changed(struct str path, size_t limit, struct str cursor, struct taker *t)
{
    char text[KNOWN_TEXT_MAX];
    if (cursor.len == 0 || cursor.len > sizeof(text))
        return;
    memcpy(text, cursor.ptr, cursor.len);
    text[take_below(t, cursor.len)] = (char)take_byte(t);
    size_t len = take_one_in(t, 4) ? take_below(t, cursor.len) : cursor.len;
    struct fuzz_answer a = page(path, limit, (struct str){text, len});
    assert(a.status == 200 || a.err == ERR_CURSOR_INVALID || a.err == ERR_BAD_REQUEST);
    json_decref(a.json);
}

/* Page by page it is the same list. */
static void check_pages(struct str path, size_t limit, const json_t *all, struct taker *t)
{
    const json_t *items = json_object_get(all, "items");
    struct fuzz_answer a = page(path, limit, STR_NONE);
    size_t at = 0;
    for (int pages = 0; a.status == 200; pages++) {
        assert(pages < ITEMS_MAX);
        const json_t *part = json_object_get(a.json, "items");
        for (size_t i = 0; i < json_array_size(part); i++)
            assert(json_equal(json_array_get(part, i), json_array_get(items, at++)));
        if (next_of(a.json).ptr == NULL)
            break;
        check_changed(path, limit, next_of(a.json), t);
        struct fuzz_answer next = page(path, limit, next_of(a.json));
        json_decref(a.json);
        a = next;
    }
    assert(a.status == 200 && at == json_array_size(items));
    json_decref(a.json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_for_all_inputs();
    if (list_count == 0)
        find_lists();
    struct taker t = {data, size};
    const struct route *route = lists[take_below(&t, list_count)];
    struct route_request plain;
    route_request_plain(&plain, route, take_byte(&t));
    struct str path = plain.request.target;
    size_t limit = 1 + take_below(&t, 9);
    bool walks = take_one_in(&t, 8);
    if (walks) {
        struct fuzz_answer all = page(path, 200, STR_NONE);
        if (all.status == 200 && next_of(all.json).ptr == NULL &&
            json_array_size(json_object_get(all.json, "items")) < ITEMS_MAX)
            check_pages(path, limit, all.json, &t);
        json_decref(all.json);
    }
    struct str cursor = {(const char *)t.at, MIN(t.left, (size_t)600)};
    struct fuzz_answer a = page(path, limit, cursor);
    assert(a.status == 200 || a.status == 400 || a.status == 404);
    json_decref(a.json);
    route_request_release(&plain);
    return 0;
}
