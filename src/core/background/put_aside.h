/* Backoff for items that keep failing (a timer, a schedule, a queue): each failure doubles the
 * delay. Kept in memory only. A restart, or another item that takes the slot, starts again with
 * the shortest delay. */
#ifndef PAWL_CORE_BACKGROUND_PUT_ASIDE_H
#define PAWL_CORE_BACKGROUND_PUT_ASIDE_H

#include <stdint.h>

enum { PUT_ASIDE_PLACES = 64 };

struct put_aside {
    struct {
        uint64_t what;
        int64_t times;
    } places[PUT_ASIDE_PLACES];
};

/* Counts one more failure of the item `what` (never 0) and returns the delay. */
int64_t put_aside_ms(struct put_aside *aside, uint64_t what);

#endif
