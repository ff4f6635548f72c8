/* Any text as a cron expression: what is taken fires when its sets say so, and only then. */
#include "domain/calendar/cron.h"
#include "fuzz.h"

/* A time of the calendar fits, asked in the plainest way. */
static bool fits(const struct cron *c, int64_t local)
{
    int64_t days = civil_day_of(local);
    int64_t second = local - days * DAY_S;
    struct civil_date date = civil_of_days(days);
    bool day = (c->days >> date.day & 1) != 0;
    bool weekday = (c->weekdays >> civil_weekday(days) & 1) != 0;
    return (c->seconds >> second % 60 & 1) != 0 && (c->minutes >> second / 60 % 60 & 1) != 0 &&
           (c->hours >> second / 3600 & 1) != 0 && (c->months >> date.month & 1) != 0 &&
           (c->any_day || c->any_weekday ? day && weekday : day || weekday);
}

static void check_sets(const struct cron *c)
{
    assert(c->seconds != 0 && c->seconds >> 60 == 0);
    assert(c->minutes != 0 && c->minutes >> 60 == 0);
    assert(c->hours != 0 && c->hours >> 24 == 0);
    assert(c->days != 0 && c->days >> 32 == 0 && (c->days & 1) == 0);
    assert(c->months != 0 && c->months >> 13 == 0 && (c->months & 1) == 0);
    assert(c->weekdays != 0 && c->weekdays >> 7 == 0);
}

static void check_firing(const struct cron *c)
{
    int64_t t = 1767225599; /* the last second of 2025 */
    for (int i = 0; i < 3; i++) {
        int64_t next;
        if (!cron_next(c, &ZONE_UTC, t, &next)) {
            assert(i == 0); /* never, or again and again */
            assert((c->days & 0x1FFFFFFE) == 0 || c->any_day || c->any_weekday);
            return;
        }
        assert(next > t && fits(c, next));
        for (int64_t between = t + 1; between < MIN(next, t + 2000); between++)
            assert(!fits(c, between));
        for (int64_t between = t + 1 + (59 - t % 60); between < MIN(next, t + 90000); between += 60)
            assert(c->seconds != 1 || !fits(c, between));
        t = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem p;
    struct cron c;
    problem_init(&p);
    enum err e = cron_parse(fuzz_text(data, size), &p, &c);
    assert(e == ERR_OK || (e == ERR_FIELD_INVALID && p.err == e));
    assert(e == ERR_OK || (p.detail[0] != '\0' && str_is_utf8(str_of(p.detail))));
    if (e == ERR_OK) {
        check_sets(&c);
        check_firing(&c);
    }
    problem_release(&p);
    return 0;
}
