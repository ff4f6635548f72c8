/* How long something that cannot be done is put aside: longer each time. In memory only; a restart,
 * or another thing that takes its place, begins again with the shortest. */
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

/* `what` names it; never 0. */
int64_t put_aside_ms(struct put_aside *aside, uint64_t what);

#endif
