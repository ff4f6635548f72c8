/* Times, zones and expressions from text, for the tests of cron. */
#ifndef PAWL_TESTS_CRON_SUPPORT_H
#define PAWL_TESTS_CRON_SUPPORT_H

#include "base/support.h"

#include "base/limits.h"
#include "base/zonefile.h"
#include "domain/calendar/cron.h"

static inline int64_t at(const char *text)
{
    int64_t ms;
    if (!time_parse(str_of(text), &ms))
        fail_msg("no time: %s", text);
    return ms / 1000;
}

static inline void text_of(int64_t seconds, char out[TIME_TEXT_LEN + 1])
{
    struct buf b;
    buf_init(&b, TIME_TEXT_LEN);
    buf_put_time(&b, seconds * 1000);
    assert_true(buf_ok(&b));
    memcpy(out, b.ptr, TIME_TEXT_LEN + 1);
    buf_release(&b);
}

static inline struct cron parse(const char *text)
{
    struct problem p;
    struct cron c = {0};
    problem_init(&p);
    if (cron_parse(str_of(text), &p, &c) != ERR_OK)
        fail_msg("<%s>: %s", text, p.detail);
    problem_release(&p);
    return c;
}

static inline struct zone zone_named(const char *name, struct arena *arena)
{
    if (strcmp(name, "UTC") == 0)
        return ZONE_UTC;
    struct problem p;
    struct str tzif;
    struct zone zone;
    problem_init(&p);
    if (zonefile_read(NULL, str_of(name), arena, &p, &tzif) != ERR_OK ||
        zone_parse(tzif, arena, &p, &zone) != ERR_OK)
        fail_msg("%s: %s", name, p.detail);
    problem_release(&p);
    return zone;
}

#endif
