/* One page of a list. */
#include "core/txn/page.h"

#include "base/limits.h"

struct page page_begin(struct op *op, int64_t limit)
{
    struct page page = {.out = json_out_to(&op->answer.body), .op = op, .room = limit};
    json_open(&page.out, NULL, '{');
    json_open(&page.out, "items", '[');
    return page;
}

bool page_takes(struct page *page)
{
    /* Large rows end a page early: what is left of the answer's room holds one more row of any
     * size. */
    if (page->room == 0 || page->out.buf->len > PAGE_BYTES_MAX) {
        page->more = true;
        return false;
    }
    page->room--;
    return true;
}

void page_set_last(struct page *page, struct str place)
{
    assert(place.len < sizeof(page->last));
    memcpy(page->last, place.ptr, place.len);
    page->last[place.len] = '\0';
}

void page_take_last(struct page *page, struct buf *place)
{
    if (buf_ok(place))
        page_set_last(page, buf_str(place));
    else
        page->out.buf->failed = true;
    buf_release(place);
}

void page_set_last_number(struct page *page, int64_t place)
{
    (void)snprintf(page->last, sizeof(page->last), "%lld", (long long)place);
}

void page_end_items(struct page *page)
{
    json_close(&page->out, ']');
    if (page->more) {
        memcpy(page->op->answer.next_cursor, page->last, sizeof(page->last));
        json_add_text(&page->out, "next_cursor", str_of(page->last));
    } else {
        json_add_null(&page->out, "next_cursor");
    }
}

void page_end(struct page *page)
{
    page_end_items(page);
    json_close(&page->out, '}');
}

bool page_read_place(struct str cursor, int64_t numbers[static 3])
{
    for (size_t i = 0; i < 3; i++) {
        struct str part;
        bool more = str_cut(cursor, '.', &part, &cursor);
        if (more != (i < 2) || !str_to_i64(part, &numbers[i]))
            return false;
    }
    return true;
}
