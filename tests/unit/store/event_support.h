/* Timelines for tests of the store. */
#ifndef PAWL_TESTS_STORE_EVENT_SUPPORT_H
#define PAWL_TESTS_STORE_EVENT_SUPPORT_H

#include "store/run/events.h"
#include "store/run_support.h"

/* A row with one event. */
static inline void append_event(struct db *db, int64_t owner, int64_t seq, const char *type)
{
    struct event event = {.type = str_of(type), .job = -1};
    struct buf packed;
    buf_init(&packed, KIB);
    event_pack(&packed, &event);
    event_pack_end(&packed);
    assert_ok(events_append(db, owner, seq, 100, buf_str(&packed)));
    buf_release(&packed);
}

#endif
