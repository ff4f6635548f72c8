/* Time zones: what the clocks of a place show at an instant, and at which instants they show a
 * time. Pure: a zone is made from the bytes of its TZif file (RFC 9636, all versions), which
 * base/zonefile.h reads; "UTC" is ZONE_UTC and needs no file.
 *
 * Instants are seconds since 1970 UTC without leap seconds. A local time is written in the same
 * way, as the instant at which a clock in UTC would show it: local = instant + offset. */
#ifndef PAWL_DOMAIN_CALENDAR_ZONE_H
#define PAWL_DOMAIN_CALENDAR_ZONE_H

#include "base/arena.h"
#include "base/problem.h"

enum {
    DAY_S = 86400,
    /* What RFC 9636 lets an offset from UTC be: more than -25 hours and less than 26. */
    ZONE_OFFSET_MIN_S = -25 * 3600 + 1,
    ZONE_OFFSET_MAX_S = 26 * 3600 - 1,
};

/* --- the calendar: Gregorian, also before there was one --- */

struct civil_date {
    int64_t year;
    int month; /* 1 … 12 */
    int day;   /* 1 … 31 */
};

/* Days since 1970-01-01, for years of at most twelve digits. */
int64_t civil_to_days(struct civil_date date);
/* For days within some 10^14 of 1970, as any number of seconds in 64 bits gives. */
struct civil_date civil_of_days(int64_t days);
int civil_month_len(int64_t year, int month);
/* 0 is Sunday. */
int civil_weekday(int64_t days);

/* Rounds down, also below 0: the day of a second, and with * DAY_S its midnight. */
int64_t civil_day_of(int64_t seconds);

/* --- zones --- */

/* A day of every year, and the time on it at which something changes. */
struct zone_yearly {
    enum {
        YEARLY_WEEKDAY,  /* Mm.w.d: the w-th weekday d of month m; w 5 is the last */
        YEARLY_JULIAN,   /* Jn: day n of 1 … 365; February 29 is never counted */
        YEARLY_ZERO_DAY, /* n: day n of 0 … 365; February 29 counts */
    } kind;
    int month;
    int week;
    int day;
    int32_t time_s; /* after that day's midnight, by the clock that is in use till then; ±167 h */
};

/* What a TZif file says in its last line of the time after its table. */
struct zone_rule {
    bool given;
    bool has_dst;
    int32_t std_offset_s;
    int32_t dst_offset_s; /* may be less than std_offset_s, as in Ireland */
    struct zone_yearly dst_start;
    struct zone_yearly dst_end;
};

struct zone_change {
    int64_t at_s;
    int32_t offset_s; /* from then on */
};

/* Immutable, and good for any thread as long as the arena it was parsed into. */
struct zone {
    const struct zone_change *changes; /* ascending */
    size_t change_count;
    int32_t first_offset_s; /* before the first change */
    struct zone_rule rule;  /* holds from the last change on, or always when there are none */
};

extern const struct zone ZONE_UTC;

/* Checks every byte it uses and copies what it keeps. ERR_FIELD_INVALID: the bytes are no TZif
 * file, are cut off or contradict themselves, or count leap seconds (the zones under right/).
 * ERR_NO_MEMORY: the arena, of which a zone needs 16 bytes for each change, is full. */
MUST_CHECK enum err zone_parse(struct str tzif, struct arena *arena, struct problem *p,
                               struct zone *ret);

/* How far the zone's clocks are ahead of UTC at the instant: ZONE_OFFSET_MIN_S … _MAX_S. */
int64_t zone_offset_s(const struct zone *z, int64_t utc_s);

/* The offset at an instant, and how long it surely lasts: it holds from the instant on, and
 * before until_s, which is later; INT64_MAX is forever. What comes then may be the same offset
 * again. */
struct zone_span {
    int64_t offset_s;
    int64_t until_s;
};
struct zone_span zone_span_at(const struct zone *z, int64_t utc_s);

/* How many instants have this local time, and which, in their order; as many are written.
 *   0  it is in a gap: clocks were set forward over it
 *   1  as nearly always
 *   2  clocks were set back, and showed it twice
 * A zone that sets its clocks back twice within two days could show a time more often; of those
 * the first two count. No zone is known to. 0 also within 26 hours of the ends of 64 bits. */
int zone_to_utc(const struct zone *z, int64_t local_s, int64_t *ret_first, int64_t *ret_second);

#endif
