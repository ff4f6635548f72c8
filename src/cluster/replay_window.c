/* Which numbers of one sender were taken. */
#include "cluster/replay_window.h"

#include <string.h>

/* Forgets those that the window leaves behind. */
static void advance(struct replay_window *w, uint64_t number)
{
    if (number - w->newest >= NODE_REPLAY_WINDOW) {
        memset(w->taken, 0, sizeof(w->taken));
        w->newest = number;
    }
    while (w->newest < number) {
        w->newest++;
        w->taken[w->newest % NODE_REPLAY_WINDOW / 8] &= (unsigned char)~(1U << w->newest % 8);
    }
}

bool replay_window_take(struct replay_window *w, uint64_t number)
{
    if (number == 0 ||
        (w->newest >= NODE_REPLAY_WINDOW && number <= w->newest - NODE_REPLAY_WINDOW))
        return false;
    if (number > w->newest)
        advance(w, number);
    unsigned char *byte = &w->taken[number % NODE_REPLAY_WINDOW / 8];
    unsigned char bit = (unsigned char)(1U << number % 8);
    if ((*byte & bit) != 0)
        return false;
    *byte |= bit;
    return true;
}
