/* Time zones: every file of the system's database against the C library, and rules that no file
 * has. */
#include "domain/calendar/zone_support.h"

#include <fts.h>

static const int64_t YEAR_1900_S = INT64_C(-2208988800);
static const int64_t YEAR_2200_S = INT64_C(7258118400);
static const int64_t CYCLE_S = INT64_C(146097) * DAY_S; /* 400 years */

/* --- the C library's answer --- */

static void set_tz(const char *text)
{
    assert_int_equal(setenv("TZ", text, 1), 0);
    tzset();
}

static int64_t libc_offset_s(int64_t utc_s)
{
    time_t t = (time_t)utc_s;
    struct tm tm;
    assert_non_null(localtime_r(&t, &tm));
    return tm.tm_gmtoff;
}

/* By trying every offset that is in use around that time. */
static int libc_to_utc(int64_t local_s, int64_t ret[2])
{
    int64_t tried[32];
    size_t tried_count = 0;
    int count = 0;
    for (int64_t t = local_s - 27 * 3600; t <= local_s + 27 * 3600; t += 1800) {
        int64_t offset = libc_offset_s(t);
        bool known = false;
        for (size_t i = 0; i < tried_count; i++)
            known = known || tried[i] == offset;
        if (known)
            continue;
        assert_true(tried_count < ARRAY_LEN(tried));
        tried[tried_count++] = offset;
        if (libc_offset_s(local_s - offset) == offset) {
            assert_true(count < 2);
            ret[count++] = local_s - offset;
        }
    }
    if (count == 2 && ret[0] > ret[1]) {
        int64_t later = ret[0];
        ret[0] = ret[1];
        ret[1] = later;
    }
    return count;
}

/* --- zones made for a test --- */

/* A zone that is nothing but a rule. */
static enum err parse_rule(struct setup *s, const char *rule)
{
    static const int32_t NO_OFFSET[] = {0};
    char footer[256];
    (void)snprintf(footer, sizeof(footer), "\n%s\n", rule);
    struct file f = {
        .version = '3', .type_count = 1, .char_count = 1, .offsets = NO_OFFSET, .footer = footer};
    return parse_file(s, &f);
}

static void must_parse_rule(struct setup *s, const char *rule)
{
    if (parse_rule(s, rule) != ERR_OK)
        fail_msg("%s: %s", rule, s->problem.detail);
}

static int64_t at(const char *text)
{
    int64_t ms;
    if (!time_parse(str_of(text), &ms))
        fail_msg("no time: %s", text);
    return ms / 1000;
}

/* --- the calendar --- */

static void days_and_dates_turn_into_each_other(void **state)
{
    (void)state;
    struct rng g = {1};
    for (int i = 0; i < 100000; i++) {
        int64_t days = (int64_t)rng_below(&g, 4000000) - 2000000;
        struct civil_date date = civil_of_days(days);
        time_t t = (time_t)(days * DAY_S);
        struct tm tm;
        assert_non_null(gmtime_r(&t, &tm));
        assert_int_equal(date.year, tm.tm_year + 1900);
        assert_int_equal(date.month, tm.tm_mon + 1);
        assert_int_equal(date.day, tm.tm_mday);
        assert_int_equal(civil_weekday(days), tm.tm_wday);
        assert_int_equal(civil_to_days(date), days);
        assert_true(date.day <= civil_month_len(date.year, date.month));
        struct civil_date next = civil_of_days(days + 1);
        assert_int_equal(date.day == civil_month_len(date.year, date.month), next.day == 1);
    }
}

static void the_calendar_reaches_as_far_as_the_seconds(void **state)
{
    (void)state;
    static const int64_t ENDS[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        int64_t day = civil_day_of(ENDS[i]);
        assert_int_equal(civil_to_days(civil_of_days(day)), day);
        assert_in_range(civil_weekday(day), 0, 6);
    }
    assert_int_equal(civil_day_of(-1), -1);
    assert_int_equal(civil_day_of(-DAY_S), -1);
    assert_int_equal(civil_day_of(-DAY_S - 1), -2);
    assert_int_equal(civil_day_of(DAY_S - 1), 0);
}

/* --- the system's files --- */

struct walk {
    struct rng g;
    size_t zones;
    size_t instants;
    size_t gaps;
    size_t overlaps;
};

static void compare_instant(struct walk *w, const char *name, const struct zone *z, int64_t t)
{
    int64_t ours = zone_offset_s(z, t);
    int64_t libc = libc_offset_s(t);
    if (ours != libc)
        fail_msg("%s at %lld: %lld, the C library has %lld", name, (long long)t, (long long)ours,
                 (long long)libc);
    struct zone_span span = zone_span_at(z, t);
    assert_true(span.offset_s == ours && span.until_s > t);
    if (span.until_s < YEAR_2200_S)
        assert_int_equal(libc_offset_s(span.until_s - 1), ours);
    w->instants++;
}

static void compare_local(struct walk *w, const char *name, const struct zone *z, int64_t local)
{
    int64_t ours[2] = {INT64_MIN, INT64_MIN};
    int64_t libc[2] = {INT64_MIN, INT64_MIN};
    int count = zone_to_utc(z, local, &ours[0], &ours[1]);
    int expected = libc_to_utc(local, libc);
    if (count != expected || ours[0] != libc[0] || ours[1] != libc[1])
        fail_msg("%s local %lld: %d (%lld, %lld), the C library has %d (%lld, %lld)", name,
                 (long long)local, count, (long long)ours[0], (long long)ours[1], expected,
                 (long long)libc[0], (long long)libc[1]);
    w->gaps += count == 0;
    w->overlaps += count == 2;
}

static int64_t random_instant_after(struct rng *g, int64_t from)
{
    return from + (int64_t)rng_below(g, (uint64_t)(YEAR_2200_S - from));
}

static int64_t random_instant(struct rng *g)
{
    return random_instant_after(g, YEAR_1900_S);
}

static void compare_zone(struct walk *w, const char *name, const struct zone *z)
{
    char tz[ZONE_NAME_MAX + 2];
    (void)snprintf(tz, sizeof(tz), ":%s", name);
    set_tz(tz);
    for (int i = 0; i < 200; i++)
        compare_instant(w, name, z, random_instant(&w->g));
    for (int i = 0; i < 3; i++)
        compare_local(w, name, z, random_instant(&w->g));
    /* Around changes, of the table and of the rule. */
    int64_t t = YEAR_1900_S;
    for (int i = 0; t < YEAR_2200_S && i < 1000; i++) {
        struct zone_span span = zone_span_at(z, t);
        if (span.until_s >= YEAR_2200_S)
            break;
        t = span.until_s;
        for (int64_t d = -1; d <= 1; d++)
            compare_instant(w, name, z, t + d);
        if (rng_below(&w->g, 64) != 0)
            continue;
        for (int64_t d = -1; d <= 1; d++) {
            compare_local(w, name, z, t + zone_offset_s(z, t) + d);
            compare_local(w, name, z, t + zone_offset_s(z, t - 1) + d);
        }
        compare_local(w, name, z, t + (zone_offset_s(z, t - 1) + zone_offset_s(z, t)) / 2);
    }
    w->zones++;
}

static void walk_file(struct walk *w, struct str name)
{
    struct setup s;
    begin(&s);
    struct str tzif;
    if (zonefile_read(NULL, name, &s.arena, &s.problem, &tzif) == ERR_OK) {
        enum err e = zone_parse(tzif, &s.arena, &s.problem, &s.zone);
        if (str_starts_with(name, STR("right/"))) {
            /* A few of these have no leap seconds in them either. */
            assert_true(e == ERR_OK || strstr(s.problem.detail, "leap seconds") != NULL);
        } else if (e != ERR_OK) {
            fail_msg("%.*s: %s", STR_ARG(name), s.problem.detail);
        } else if (!str_starts_with(name, STR("posix/"))) { /* the same again */
            compare_zone(w, name.ptr, &s.zone);
        }
    }
    end(&s);
}

static void every_zone_agrees_with_the_c_library(void **state)
{
    (void)state;
    char root[] = ZONE_ROOT;
    char *roots[] = {root, NULL};
    FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    assert_non_null(fts);
    struct walk w = {.g = {2}};
    for (FTSENT *entry; (entry = fts_read(fts)) != NULL;) {
        if (entry->fts_info == FTS_F && entry->fts_pathlen > sizeof(ZONE_ROOT))
            walk_file(&w, str_of(entry->fts_path + sizeof(ZONE_ROOT)));
    }
    (void)fts_close(fts);
    set_tz("UTC");
    assert_true(w.zones > 300); /* tzdata is installed */
    assert_true(w.instants > 100000 && w.gaps > 300 && w.overlaps > 300);
}

static void utc_needs_no_file(void **state)
{
    (void)state;
    static const int64_t SOME[] = {INT64_MIN, -1, 0, 1767225600, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(SOME); i++) {
        assert_int_equal(zone_offset_s(&ZONE_UTC, SOME[i]), 0);
        assert_true(zone_span_at(&ZONE_UTC, SOME[i]).until_s == INT64_MAX);
    }
    int64_t first = -1;
    int64_t second = -1;
    assert_int_equal(zone_to_utc(&ZONE_UTC, 1767225600, &first, &second), 1);
    assert_int_equal(first, 1767225600);
    assert_int_equal(second, -1);
}

/* --- gaps and overlaps --- */

static void a_local_time_has_none_one_or_two_instants(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    must_parse_rule(&s, "CET-1CEST,M3.5.0,M10.5.0/3");
    static const struct {
        const char *local;
        int count;
        const char *first;
        const char *second;
    } CASES[] = {
        {"2025-01-15T12:00:00Z", 1, "2025-01-15T11:00:00Z", NULL},
        {"2025-07-15T12:00:00Z", 1, "2025-07-15T10:00:00Z", NULL},
        {"2025-03-30T01:59:59Z", 1, "2025-03-30T00:59:59Z", NULL},
        {"2025-03-30T02:00:00Z", 0, NULL, NULL},
        {"2025-03-30T02:59:59Z", 0, NULL, NULL},
        {"2025-03-30T03:00:00Z", 1, "2025-03-30T01:00:00Z", NULL},
        {"2025-10-26T01:59:59Z", 1, "2025-10-25T23:59:59Z", NULL},
        {"2025-10-26T02:00:00Z", 2, "2025-10-26T00:00:00Z", "2025-10-26T01:00:00Z"},
        {"2025-10-26T02:59:59Z", 2, "2025-10-26T00:59:59Z", "2025-10-26T01:59:59Z"},
        {"2025-10-26T03:00:00Z", 1, "2025-10-26T02:00:00Z", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        int64_t got[2] = {-7, -7};
        assert_int_equal(zone_to_utc(&s.zone, at(CASES[i].local), &got[0], &got[1]),
                         CASES[i].count);
        assert_int_equal(got[0], CASES[i].count > 0 ? at(CASES[i].first) : -7);
        assert_int_equal(got[1], CASES[i].count > 1 ? at(CASES[i].second) : -7);
    }
    end(&s);
}

static void a_day_can_be_left_out(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    struct str tzif;
    assert_int_equal(zonefile_read(NULL, STR("Pacific/Apia"), &s.arena, &s.problem, &tzif), ERR_OK);
    assert_int_equal(zone_parse(tzif, &s.arena, &s.problem, &s.zone), ERR_OK);
    int64_t first;
    int64_t second;
    assert_int_equal(zone_to_utc(&s.zone, at("2011-12-29T23:59:59Z"), &first, &second), 1);
    assert_int_equal(first, at("2011-12-30T09:59:59Z"));
    assert_int_equal(zone_to_utc(&s.zone, at("2011-12-30T00:00:00Z"), &first, &second), 0);
    assert_int_equal(zone_to_utc(&s.zone, at("2011-12-30T23:59:59Z"), &first, &second), 0);
    assert_int_equal(zone_to_utc(&s.zone, at("2011-12-31T00:00:00Z"), &first, &second), 1);
    assert_int_equal(first, at("2011-12-30T10:00:00Z"));
    end(&s);
}

/* --- rules --- */

/* A rule whose changes keep away from the turn of the year, where the C library only looks at the
 * year of UTC. */
static void random_rule(struct rng *g, char *out, size_t max)
{
    char ends[2][48];
    for (int i = 0; i < 2; i++) {
        int month = (int)(i == 0 ? 2 + rng_below(g, 4) : 7 + rng_below(g, 4));
        char date[24];
        switch (rng_below(g, 3)) {
        case 0:
            (void)snprintf(date, sizeof(date), "M%d.%d.%d", month, 1 + (int)rng_below(g, 5),
                           (int)rng_below(g, 7));
            break;
        case 1:
            (void)snprintf(date, sizeof(date), "J%d", month * 30 - (int)rng_below(g, 30));
            break;
        default:
            (void)snprintf(date, sizeof(date), "%d", month * 30 - (int)rng_below(g, 30));
            break;
        }
        static const char *const CLOCKS[] = {"",       "/0",         "/3",       "/-1",  "/24",
                                             "/26:30", "/-25:00:01", "/1:59:59", "/167", "/-167"};
        (void)snprintf(ends[i], sizeof(ends[i]), "%s%s", date,
                       CLOCKS[rng_below(g, ARRAY_LEN(CLOCKS))]);
    }
    static const char *const NAMES[] = {"ABC1DEF",
                                        "ABC-1DEF",
                                        "<+03>-3<+04>",
                                        "<-02>2<-01>",
                                        "LongName5:30AnotherName",
                                        "XXX+3:15:20YYY",
                                        "AAA-1BBB0",
                                        "<A1->-12:45<B2+>-13:45",
                                        "AAA24BBB23",
                                        "AAA-10:30BBB-11"};
    bool south = rng_below(g, 2) == 0;
    (void)snprintf(out, max, "%s,%s,%s", NAMES[rng_below(g, ARRAY_LEN(NAMES))], ends[south],
                   ends[!south]);
}

static void rules_agree_with_the_c_library(void **state)
{
    (void)state;
    struct rng g = {3};
    for (int i = 0; i < 2000; i++) {
        char rule[128];
        random_rule(&g, rule, sizeof(rule));
        struct setup s;
        begin(&s);
        must_parse_rule(&s, rule);
        set_tz(rule);
        /* The C library applies rules from 1971 on. */
        int64_t t = random_instant_after(&g, at("1971-06-01T00:00:00Z"));
        for (int n = 0; n < 60; n++) {
            for (int64_t d = -1; d <= 1; d++) {
                if (zone_offset_s(&s.zone, t + d) != libc_offset_s(t + d))
                    fail_msg("%s at %lld: %lld, the C library has %lld", rule, (long long)(t + d),
                             (long long)zone_offset_s(&s.zone, t + d),
                             (long long)libc_offset_s(t + d));
            }
            t = n % 2 == 0 ? zone_span_at(&s.zone, t).until_s
                           : random_instant_after(&g, at("1971-06-01T00:00:00Z"));
        }
        end(&s);
    }
    set_tz("UTC");
}

static void a_rule_repeats_every_four_centuries(void **state)
{
    (void)state;
    struct rng g = {4};
    for (int i = 0; i < 200; i++) {
        char rule[128];
        random_rule(&g, rule, sizeof(rule));
        struct setup s;
        begin(&s);
        must_parse_rule(&s, rule);
        for (int n = 0; n < 20; n++) {
            int64_t t = random_instant(&g);
            int64_t cycles_max = INT64_MAX / CYCLE_S - 2;
            int64_t far = t + CYCLE_S * (int64_t)rng_below(&g, (uint64_t)cycles_max);
            int64_t past = t - CYCLE_S * (int64_t)rng_below(&g, (uint64_t)cycles_max);
            struct zone_span span = zone_span_at(&s.zone, t);
            struct zone_span later = zone_span_at(&s.zone, far);
            struct zone_span before = zone_span_at(&s.zone, past);
            assert_int_equal(later.offset_s, span.offset_s);
            assert_int_equal(before.offset_s, span.offset_s);
            assert_int_equal(later.until_s - far, span.until_s - t);
            assert_int_equal(before.until_s - past, span.until_s - t);
        }
        end(&s);
    }
}

static void the_ends_of_time_are_answered(void **state)
{
    (void)state;
    static const char *const RULES[] = {"CET-1CEST,M3.5.0,M10.5.0/3", "AAA24BBB23,J1/-167,J365/167",
                                        "AAA-24BBB-24:59:59,0,365", "<+03>-3"};
    for (size_t r = 0; r < ARRAY_LEN(RULES); r++) {
        struct setup s;
        begin(&s);
        must_parse_rule(&s, RULES[r]);
        for (int64_t d = 0; d < INT64_C(4) * DAY_S; d += 3599) {
            assert_true(zone_span_at(&s.zone, INT64_MIN + d).until_s > INT64_MIN + d);
            assert_true(zone_span_at(&s.zone, INT64_MAX - d).until_s >= INT64_MAX - d);
            int64_t first = 0;
            int64_t second = 0;
            (void)zone_to_utc(&s.zone, INT64_MIN + d, &first, &second);
            (void)zone_to_utc(&s.zone, INT64_MAX - d, &first, &second);
        }
        end(&s);
    }
}

static void check_offset(const char *rule, const char *instant, int64_t offset_s)
{
    struct setup s;
    begin(&s);
    must_parse_rule(&s, rule);
    if (zone_offset_s(&s.zone, at(instant)) != offset_s)
        fail_msg("%s at %s: %lld, not %lld", rule, instant,
                 (long long)zone_offset_s(&s.zone, at(instant)), (long long)offset_s);
    end(&s);
}

static void daylight_saving_time_may_cross_the_turn_of_the_year(void **state)
{
    (void)state;
    /* The start is December 31, 26:00 in standard time, which is 02:00 of January 1. */
    static const char EARLY[] = "AAA0BBB,J365/26,J60/2";
    check_offset(EARLY, "2025-01-01T01:59:59Z", 0);
    check_offset(EARLY, "2025-01-01T02:00:00Z", 3600);
    check_offset(EARLY, "2025-03-01T00:59:59Z", 3600);
    check_offset(EARLY, "2025-03-01T01:00:00Z", 0);
    /* The end lies before its year: January 1, -10:00. */
    static const char LATE[] = "AAA0BBB,M10.1.0,J1/-10";
    check_offset(LATE, "2025-12-31T12:59:59Z", 3600);
    check_offset(LATE, "2025-12-31T13:00:00Z", 0);
    check_offset(LATE, "2026-01-01T00:00:00Z", 0);
    /* Both dates are written for December and lie in January. */
    static const char BOTH[] = "AAA0BBB,J365/167,J364/167";
    check_offset(BOTH, "2026-01-03T00:00:00Z", 3600);
    check_offset(BOTH, "2026-01-05T21:59:59Z", 3600);
    check_offset(BOTH, "2026-01-05T22:00:00Z", 0);
    check_offset(BOTH, "2026-01-06T22:59:59Z", 0);
    check_offset(BOTH, "2026-01-06T23:00:00Z", 3600);
    check_offset(BOTH, "2026-07-01T00:00:00Z", 3600);
    /* All year: RFC 9636's own example, and one whose years overlap. */
    static const char ALL_YEAR[] = "XXX3EDT4,0/0,J365/23";
    static const char OVERLAPPING[] = "AAA3BBB4,0/0,J365/167";
    static const char *const DAYS[] = {"2024-12-31T23:59:59Z", "2025-01-01T00:00:00Z",
                                       "2025-01-01T02:59:59Z", "2025-01-01T03:00:00Z",
                                       "2025-01-08T03:00:00Z", "2025-07-01T00:00:00Z"};
    for (size_t i = 0; i < ARRAY_LEN(DAYS); i++) {
        check_offset(ALL_YEAR, DAYS[i], -4 * 3600);
        check_offset(OVERLAPPING, DAYS[i], -4 * 3600);
    }
}

static void february_29_is_counted_or_not(void **state)
{
    (void)state;
    check_offset("AAA0BBB,J60/0,J300/0", "2024-02-29T23:59:59Z", 0);
    check_offset("AAA0BBB,J60/0,J300/0", "2024-03-01T00:00:00Z", 3600);
    check_offset("AAA0BBB,J60/0,J300/0", "2025-03-01T00:00:00Z", 3600);
    check_offset("AAA0BBB,J59/0,J300/0", "2024-02-28T00:00:00Z", 3600);
    check_offset("AAA0BBB,59/0,300/0", "2024-02-28T23:59:59Z", 0);
    check_offset("AAA0BBB,59/0,300/0", "2024-02-29T00:00:00Z", 3600);
    check_offset("AAA0BBB,59/0,300/0", "2025-02-28T23:59:59Z", 0);
    check_offset("AAA0BBB,59/0,300/0", "2025-03-01T00:00:00Z", 3600);
}

static void rules_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "AB0",
        "<AB>0",
        "<ABC0",
        "ABC",
        "ABC25",
        "ABC1:60",
        "ABC1:",
        "ABC1:00:60",
        "ABC1:00:",
        "ABC0001",
        "ABC1 ",
        "1ABC",
        "ABC1DEF",
        "ABC1DEF2",
        "ABC1DE,M3.1.0,M4.1.0",
        "ABC1DEF,",
        "ABC1DEF,M3.1.0",
        "ABC1DEF,M3.1.0,",
        "ABC1DEF,M0.1.0,M4.1.0",
        "ABC1DEF,M13.1.0,M4.1.0",
        "ABC1DEF,M3.0.0,M4.1.0",
        "ABC1DEF,M3.6.0,M4.1.0",
        "ABC1DEF,M3.1.7,M4.1.0",
        "ABC1DEF,M3.1,M4.1.0",
        "ABC1DEF,J0,J100",
        "ABC1DEF,J366,J100",
        "ABC1DEF,366,100",
        "ABC1DEF,M3.1.0/168,M4.1.0",
        "ABC1DEF,M3.1.0/-168,M4.1.0",
        "ABC1DEF,M3.1.0/,M4.1.0",
        "ABC1DEF,M3.1.0,M4.1.0,",
        "ABC1DEF,M3.1.0,M4.1.0/2x",
        "ABC99999999999999999999",
    };
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct setup s;
        begin(&s);
        if (parse_rule(&s, BAD[i]) != ERR_FIELD_INVALID)
            fail_msg("taken: %s", BAD[i]);
        assert_contains(s.problem.detail, "rule");
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_and_dates_turn_into_each_other),
        cmocka_unit_test(the_calendar_reaches_as_far_as_the_seconds),
        cmocka_unit_test(every_zone_agrees_with_the_c_library),
        cmocka_unit_test(utc_needs_no_file),
        cmocka_unit_test(a_local_time_has_none_one_or_two_instants),
        cmocka_unit_test(a_day_can_be_left_out),
        cmocka_unit_test(rules_agree_with_the_c_library),
        cmocka_unit_test(a_rule_repeats_every_four_centuries),
        cmocka_unit_test(the_ends_of_time_are_answered),
        cmocka_unit_test(daylight_saving_time_may_cross_the_turn_of_the_year),
        cmocka_unit_test(february_29_is_counted_or_not),
        cmocka_unit_test(rules_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
