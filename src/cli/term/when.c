/* Times and durations for people. */
#include "cli/term/when.h"

enum { MS_S = 1000, MS_MIN = 60 * MS_S, MS_H = 60 * MS_MIN, MS_D = 24 * MS_H };

static const struct {
    const char *name;
    int64_t ms;
} UNITS[] = {{"d", MS_D}, {"h", MS_H}, {"min", MS_MIN}, {"s", MS_S}};

const char *duration_text(int64_t ms, char room[static WHEN_MAX])
{
    ms = MAX(ms, INT64_C(0));
    size_t unit = 0;
    while (unit < ARRAY_LEN(UNITS) && ms < UNITS[unit].ms)
        unit++;
    if (unit == ARRAY_LEN(UNITS))
        (void)snprintf(room, WHEN_MAX, "%lld ms", (long long)ms);
    else if (unit + 1 == ARRAY_LEN(UNITS))
        (void)snprintf(room, WHEN_MAX, "%lld.%lld s", (long long)(ms / MS_S),
                       (long long)(ms % MS_S / 100));
    else
        (void)snprintf(room, WHEN_MAX, "%lld %s %lld %s", (long long)(ms / UNITS[unit].ms),
                       UNITS[unit].name, (long long)(ms % UNITS[unit].ms / UNITS[unit + 1].ms),
                       UNITS[unit + 1].name);
    return room;
}

const char *relative_text(int64_t at_ms, int64_t now_ms, char room[static WHEN_MAX])
{
    int64_t ms = at_ms > now_ms ? at_ms - now_ms : now_ms - at_ms;
    size_t unit = 0;
    while (unit < ARRAY_LEN(UNITS) && ms < UNITS[unit].ms)
        unit++;
    if (unit == ARRAY_LEN(UNITS))
        (void)snprintf(room, WHEN_MAX, "now");
    else
        (void)snprintf(room, WHEN_MAX, "%s%lld %s%s", at_ms > now_ms ? "in " : "",
                       (long long)(ms / UNITS[unit].ms), UNITS[unit].name,
                       at_ms > now_ms ? "" : " ago");
    return room;
}

const char *clock_text(int64_t at_ms, char room[static WHEN_MAX])
{
    int64_t of_day = ((at_ms % MS_D) + MS_D) % MS_D;
    (void)snprintf(room, WHEN_MAX, "%02d:%02d:%02d.%03d", (int)(of_day / MS_H),
                   (int)(of_day % MS_H / MS_MIN), (int)(of_day % MS_MIN / MS_S),
                   (int)(of_day % MS_S));
    return room;
}
