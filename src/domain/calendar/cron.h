/* Cron expressions: five fields and the words for the usual ones, and when they fire next in a time
 * zone. Pure.
 *
 *   [second]  minute  hour  day-of-month  month    day-of-week
 *    0-59     0-59    0-23  1-31          1-12     0-7, 0 and 7 are Sunday
 *                                         JAN-DEC  SUN-SAT, in any case
 *
 * A field is a list of elements with commas between them. An element is a value, a range `a-b`, or
 * `*` for all, and after any of these a step: `1-10/3` is 1, 4, 7, 10; `5/10` is from 5 to the
 * field's end by tens; `*` and `5/1` end with 6 in day-of-week, where a step of 7 leaves the first
 * value only. A range of weekdays may end with SUN. `?` is another way to write `*`. Without a
 * field for seconds an expression fires at second 0. Instead of fields: @yearly or @annually,
 * @monthly, @weekly, @daily or @midnight, @hourly.
 *
 * A field that begins with `*` is a wildcard, as in Vixie's cron and its manuals, also where a step
 * follows. That decides two things:
 *
 * Days. A day must fit both day fields when one of them is a wildcard, and either one when none
 * is: `0 0 13 * FRI` fires on each 13th and on each Friday, `0 0 * * FRI` on Fridays only.
 *
 * Clocks that are set. An expression whose hour is a wildcard fires whenever the zone's clock shows
 * a time that fits: through both hours where an hour comes twice, and not for times that are left
 * out. Any other fires once for each time that fits, at the first instant at which the clock
 * shows that time or a later one. That is: the first of the two where a time comes twice, and the
 * end of the gap where it is left out. `30 2 * * *` fires at 03:00 on the day on which 02:00 to
 * 03:00 is left out. Times that share an instant so share one firing. */
#ifndef PAWL_DOMAIN_CALENDAR_CRON_H
#define PAWL_DOMAIN_CALENDAR_CRON_H

#include "domain/calendar/zone.h"

enum {
    CRON_TEXT_MAX = 600, /* all values of all fields, written out, are 528 */
    CRON_YEARS_MAX = 50, /* the rarest day, a February 29 on one weekday, is at most 40 years off */
};

/* What fits, a bit for each value. No set is empty. */
struct cron {
    uint64_t seconds;
    uint64_t minutes;
    uint64_t hours;
    uint64_t days;     /* of the month: 1 … 31 */
    uint64_t months;   /* 1 … 12 */
    uint64_t weekdays; /* 0 … 6 */
    bool any_hour;     /* the field is a wildcard */
    bool any_day;
    bool any_weekday;
};

/* ERR_FIELD_INVALID: p names the field and what is wrong with it. */
MUST_CHECK enum err cron_parse(struct str text, struct problem *p, struct cron *ret);

/* The first instant after after_s at which it fires. False when there is none within
 * CRON_YEARS_MAX, so that it never fires (February 30), or none in the years 1 to 9999. Cheap: it
 * goes by months, days and changes of the clock, in less than a microsecond, or ten for the rarest
 * days. */
MUST_CHECK bool cron_next(const struct cron *c, const struct zone *z, int64_t after_s,
                          int64_t *ret_s);

#endif
