/* Exponential smoothing of the time between releases. */
#include "domain/admission/release_rate.h"

static const int64_t MS_PER_S = 1000;

static int64_t silence_ms(const struct release_rate *p, int64_t now_ms);

struct release_rate release_rate_unknown(void)
{
    return (struct release_rate){.last_freed_ms = -1, .interval_ms = -1};
}

void release_rate_note(struct release_rate *p, int64_t now_ms)
{
    assert(now_ms >= 0);
    if (p->last_freed_ms >= 0) {
        int64_t passed_ms = MIN(silence_ms(p, now_ms), RETRY_AFTER_S_MAX * MS_PER_S);
        p->interval_ms = p->interval_ms < 0 ? passed_ms : (p->interval_ms * 3 + passed_ms) / 4;
        assert(p->interval_ms >= 0 && p->interval_ms <= RETRY_AFTER_S_MAX * MS_PER_S);
    }
    p->last_freed_ms = now_ms;
}

int64_t release_rate_retry_after_s(const struct release_rate *p, int64_t now_ms)
{
    assert(now_ms >= 0);
    if (p->interval_ms < 0)
        return 1;
    assert(p->last_freed_ms >= 0);
    int64_t since_ms = silence_ms(p, now_ms);
    int64_t left_ms =
        since_ms <= p->interval_ms ? p->interval_ms - since_ms : since_ms - p->interval_ms;
    int64_t left_s = left_ms / MS_PER_S + (left_ms % MS_PER_S != 0);
    return MAX(1, MIN(left_s, RETRY_AFTER_S_MAX));
}

static int64_t silence_ms(const struct release_rate *p, int64_t now_ms)
{
    return now_ms > p->last_freed_ms ? now_ms - p->last_freed_ms : 0;
}
