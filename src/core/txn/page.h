/* One page of a list: `{items:[…], next_cursor}`, filled row by row. */
#ifndef PAWL_CORE_TXN_PAGE_H
#define PAWL_CORE_TXN_PAGE_H

#include "base/json.h"
#include "core/txn/op.h"

struct page {
    struct json_out out;
    struct op *op;
    int64_t room;
    bool more;
    char last[CURSOR_MAX]; /* where the next page begins: the last row's place */
};

/* For `limit` rows. Ask the store for one row more: it shows that there are more pages. */
struct page page_begin(struct op *op, int64_t limit);
/* True when the row belongs to the page; the caller renders it and sets `last`. */
MUST_CHECK bool page_takes(struct page *page);
void page_set_last(struct page *page, struct str place);
/* Releases `place`. When that has failed, so has the answer: a list must not end early. */
void page_take_last(struct page *page, struct buf *place);
void page_set_last_number(struct page *page, int64_t place);
void page_end(struct page *page);
/* The same for a list that has more to say: its object stays open. */
void page_end_items(struct page *page);

/* A place of three numbers with dots between them. False when it is none. */
MUST_CHECK bool page_read_place(struct str cursor, int64_t numbers[static 3]);

#endif
