/* What becomes of a schedule's time when it has come. */
#include "domain/calendar/schedule.h"

static const char *const NAMES[] = {
#define X(symbol, name) name,
    OVERLAPS(X)
#undef X
};

static_assert(ARRAY_LEN(NAMES) == OVERLAP_COUNT, "one name per policy");

const char *overlap_name(enum overlap overlap)
{
    assert(overlap < OVERLAP_COUNT);
    return NAMES[overlap];
}

enum overlap overlap_of(struct str name)
{
    enum overlap overlap = 0;
    while (overlap < OVERLAP_COUNT && !str_is(name, NAMES[overlap]))
        overlap++;
    return overlap;
}

enum schedule_verdict schedule_decide(int64_t now_ms, int64_t due_ms, int64_t catch_up_ms,
                                      struct schedule_last last, enum overlap overlap)
{
    assert(overlap < OVERLAP_COUNT && due_ms <= now_ms);
    bool blocked = last.is_active && overlap != OVERLAP_ALLOW;
    if (blocked && overlap == OVERLAP_QUEUE)
        return SCHEDULE_WAIT;
    /* One that has waited for the run before it was on time. */
    bool waited = overlap == OVERLAP_QUEUE && last.was_active;
    if (!waited && now_ms - due_ms > MAX(catch_up_ms, (int64_t)SCHEDULE_LATE_MS))
        return SCHEDULE_MISSED;
    return blocked ? SCHEDULE_OVERLAP : SCHEDULE_FIRE;
}
