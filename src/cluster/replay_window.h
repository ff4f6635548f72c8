/* Which numbers of one sender were taken: each is taken once. The newest NODE_REPLAY_WINDOW are
 * remembered one by one, as in RFC 4303, 3.4.3; older ones count as taken. */
#ifndef PAWL_CLUSTER_REPLAY_WINDOW_H
#define PAWL_CLUSTER_REPLAY_WINDOW_H

#include "base/limits.h"
#include "base/macros.h"

#include <stdbool.h>

struct replay_window {
    uint64_t newest;                             /* 0: none was taken yet */
    unsigned char taken[NODE_REPLAY_WINDOW / 8]; /* by the number modulo the window */
};

/* True, and it is taken from now on. Numbers begin with 1. */
MUST_CHECK bool replay_window_take(struct replay_window *w, uint64_t number);

#endif
