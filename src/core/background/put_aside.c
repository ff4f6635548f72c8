/* Backoff for items that keep failing. */
#include "core/background/put_aside.h"

#include "base/limits.h"
#include "base/macros.h"

int64_t put_aside_ms(struct put_aside *aside, uint64_t what)
{
    size_t at = what * 0x9E3779B97F4A7C15u >> 32 & (PUT_ASIDE_PLACES - 1);
    if (aside->places[at].what != what) {
        aside->places[at].what = what;
        aside->places[at].times = 0;
    }
    int64_t times = MIN(aside->places[at].times, (int64_t)6);
    aside->places[at].times++;
    return (int64_t)PUT_ASIDE_MS << times;
}
