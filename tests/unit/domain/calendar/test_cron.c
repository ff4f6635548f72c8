/* Cron expressions: what is read and refused, when they fire, and days on which clocks change. */
#include "domain/calendar/cron_support.h"

#include "domain/doc_table.h"

/* --- reading --- */

static uint64_t bits(const char *list)
{
    uint64_t set = 0;
    for (struct str rest = str_of(list), one = STR_NONE; rest.len > 0;) {
        int64_t value;
        (void)str_cut(rest, ' ', &one, &rest);
        assert_true(str_to_i64(one, &value));
        set |= UINT64_C(1) << value;
    }
    return set;
}

static void lists_ranges_and_steps_are_read(void **state)
{
    (void)state;
    struct cron c = parse("*/15 1-10/3 1,15,31 2-4 1-5");
    assert_true(c.seconds == bits("0") && c.minutes == bits("0 15 30 45"));
    assert_true(c.hours == bits("1 4 7 10") && c.days == bits("1 15 31"));
    assert_true(c.months == bits("2 3 4") && c.weekdays == bits("1 2 3 4 5"));
    assert_true(!c.any_hour && !c.any_day && !c.any_weekday);
    c = parse("5/10 0,12/6,3-4 5/20 */6 0");
    assert_true(c.minutes == bits("5 15 25 35 45 55") && c.hours == bits("0 3 4 12 18"));
    assert_true(c.days == bits("5 25") && c.months == bits("1 7") && c.weekdays == bits("0"));
    c = parse("59 23 31 12 6");
    assert_true(c.minutes == bits("59") && c.hours == bits("23") && c.days == bits("31"));
    assert_true(c.months == bits("12") && c.weekdays == bits("6"));
    c = parse("007 3-3 1 1 1");
    assert_true(c.minutes == bits("7") && c.hours == bits("3"));
}

static void a_star_is_all_and_a_question_mark_is_a_star(void **state)
{
    (void)state;
    struct cron star = parse("* * * * *");
    assert_true(star.minutes == (UINT64_C(1) << 60) - 1 && star.hours == (1u << 24) - 1);
    assert_true(star.days == UINT32_MAX - 1 && star.months == (1u << 13) - 2);
    assert_true(star.weekdays == 127 && star.any_hour && star.any_day && star.any_weekday);
    struct cron question = parse("? ? ? ? ?");
    assert_memory_equal(&star, &question, sizeof(star));
    struct cron steps = parse("?/7 */2 */3 */4 */5");
    assert_true(steps.any_hour && steps.any_day && steps.any_weekday);
    struct cron late = parse("0 1,* 1,* * 1,*"); /* only the beginning counts */
    assert_true(!late.any_hour && !late.any_day && !late.any_weekday);
    assert_true(late.hours == star.hours && late.days == star.days);
}

static void months_and_weekdays_have_names(void **state)
{
    (void)state;
    struct cron c = parse("0 0 * JAN,mar-Jun/2,dec mon-FRI");
    assert_true(c.months == bits("1 3 5 12") && c.weekdays == bits("1 2 3 4 5"));
    c = parse("0 0 * feb-apr,JUL,aug,sep,oct,nov sun,tue,wed,thu,sat");
    assert_true(c.months == bits("2 3 4 7 8 9 10 11") && c.weekdays == bits("0 2 3 4 6"));
}

static void sunday_is_0_and_7_and_may_end_a_range(void **state)
{
    (void)state;
    assert_true(parse("0 0 * * 0").weekdays == bits("0"));
    assert_true(parse("0 0 * * 7").weekdays == bits("0"));
    assert_true(parse("0 0 * * 5-7").weekdays == bits("5 6 0"));
    assert_true(parse("0 0 * * 0-7").weekdays == 127);
    assert_true(parse("0 0 * * FRI-SUN").weekdays == bits("5 6 0"));
    assert_true(parse("0 0 * * fri-0").weekdays == bits("5 6 0"));
    assert_true(parse("0 0 * * sun-sun").weekdays == bits("0"));
    assert_true(parse("0 0 * * sun-tue").weekdays == bits("0 1 2"));
    assert_true(parse("0 0 * * 1/2").weekdays == bits("1 3 5"));
    assert_true(parse("0 0 * * 7/2").weekdays == bits("0"));
    assert_true(parse("0 0 * * */3").weekdays == bits("0 3 6"));
    assert_true(parse("0 0 * * */7").weekdays == bits("0"));
    assert_true(parse("0 0 * * MON/7").weekdays == bits("1"));
    assert_true(parse("0 0 * * 0-7/7").weekdays == bits("0"));
}

static void words_stand_for_the_usual_expressions(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {
        {"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"},  {"@yearly", "0 0 1 1 *"},
        {"@annually", "0 0 1 1 *"}, {" @Daily\t", "0 0 * * *"},
    };
    for (size_t i = 0; i < ARRAY_LEN(PAIRS); i++) {
        struct cron word = parse(PAIRS[i][0]);
        struct cron text = parse(PAIRS[i][1]);
        assert_memory_equal(&word, &text, sizeof(word));
    }
}

static void a_sixth_field_in_front_is_for_seconds(void **state)
{
    (void)state;
    struct cron c = parse("*/20 1 2 3 4 5");
    assert_true(c.seconds == bits("0 20 40") && c.minutes == bits("1") && c.hours == bits("2"));
    assert_true(c.days == bits("3") && c.months == bits("4") && c.weekdays == bits("5"));
    struct cron spaced = parse(" \t0  1\t2 3   4 5 ");
    struct cron plain = parse("1 2 3 4 5");
    assert_memory_equal(&spaced, &plain, sizeof(plain));
}

static void refused(const char *text, const char *part, const char *other)
{
    struct problem p;
    struct cron c = {.hours = 77};
    problem_init(&p);
    if (cron_parse(str_of(text), &p, &c) != ERR_FIELD_INVALID)
        fail_msg("taken: <%s>", text);
    assert_contains(p.detail, "cron: ");
    assert_contains(p.detail, part);
    assert_contains(p.detail, other);
    assert_true(c.hours == 77 && c.minutes == 0);
    problem_release(&p);
}

static void faults_name_the_field_and_what_is_wrong(void **state)
{
    (void)state;
    refused("60 * * * *", "minute: \"60\"", "0 to 59");
    refused("* 24 * * *", "hour: \"24\"", "0 to 23");
    refused("* * 0 * *", "day-of-month: \"0\"", "1 to 31");
    refused("* * 32 * *", "day-of-month: \"32\"", "1 to 31");
    refused("* * * 0 *", "month: \"0\"", "1 to 12");
    refused("* * * 13 *", "month: \"13\"", "1 to 12");
    refused("* * * * 8", "day-of-week: \"8\"", "0 to 7");
    refused("60 * * * * *", "second: \"60\"", "0 to 59");
    refused("* * * january *", "month: \"january\"", "a name or a number");
    refused("* * * * JAN", "day-of-week: \"JAN\"", "a name or a number");
    refused("jan * * * *", "minute: \"jan\"", "a number");
    refused("* * L * *", "day-of-month: \"L\"", "a number");
    refused("* * * * 5#2", "day-of-week: \"5#2\"", "number");
    refused("-5 * * * *", "minute: \"\"", "number");
    refused("5- * * * *", "minute: \"\"", "number");
    refused("1-2-3 * * * *", "minute: \"2-3\"", "number");
    refused("1.5 * * * *", "minute: \"1.5\"", "number");
    refused("0x1 * * * *", "minute: \"0x1\"", "number");
    refused("+1 * * * *", "minute: \"+1\"", "number");
    refused("0001 * * * *", "minute: \"0001\"", "number");
    refused("99999999999999999999 * * * *", "minute: \"99999999999999999999\"", "number");
    refused("30-10 * * * *", "minute: \"30-10\"", "backwards");
    refused("* * * * SAT-MON", "day-of-week: \"SAT-MON\"", "backwards");
    refused("* * * nov-feb *", "month: \"nov-feb\"", "backwards");
    refused("*/0 * * * *", "minute: \"*/0\"", "1 to 59");
    refused("*/60 * * * *", "minute: \"*/60\"", "1 to 59");
    refused("* */24 * * *", "hour: \"*/24\"", "1 to 23");
    refused("* * * * */8", "day-of-week: \"*/8\"", "1 to 7");
    refused("1-5/ * * * *", "minute: \"1-5/\"", "step");
    refused("1-5/x * * * *", "minute: \"1-5/x\"", "step");
    refused("1-5/2/3 * * * *", "minute: \"1-5/2/3\"", "step");
    refused("/5 * * * *", "minute: \"/5\"", "value");
    refused("*5 * * * *", "minute: \"*5\"", "after its *");
    refused("*-5 * * * *", "minute: \"*-5\"", "after its *");
    refused("** * * * *", "minute: \"**\"", "after its *");
    refused("1,,2 * * * *", "minute: \"1,,2\"", "empty");
    refused(",1 * * * *", "minute: \",1\"", "empty");
    refused("1, * * * *", "minute: \"1,\"", "empty");
    refused(", * * * *", "minute: \",\"", "empty");
    refused("*\n* * * * *", "minute: \"*\n*\"", "after its *");
}

static void other_numbers_of_fields_are_refused(void **state)
{
    (void)state;
    refused("", "five fields", "it has 0");
    refused("  \t ", "five fields", "it has 0");
    refused("*", "five fields", "it has 1");
    refused("* * * *", "five fields", "it has 4");
    refused("* * * * * * *", "five fields", "it has 7");
    refused("@reboot", "@hourly", "@reboot");
    refused("@every 5m", "@hourly", "@every 5m");
    refused("@daily 5", "@hourly", "@daily 5");
}

static void texts_are_bounded(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 4 * KIB);
    for (int field = 0; field < 6; field++) {
        static const int RANGE[6][2] = {{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}};
        for (int value = RANGE[field][0]; value <= RANGE[field][1]; value++)
            buf_printf(&b, "%d%s", value, value < RANGE[field][1] ? "," : " ");
    }
    struct cron all = parse(b.ptr);
    assert_true(all.seconds == (UINT64_C(1) << 60) - 1 && all.weekdays == 127);
    while (b.len < CRON_TEXT_MAX)
        buf_put_char(&b, ' ');
    (void)parse(b.ptr);
    buf_put_char(&b, ' ');
    refused(b.ptr, "at most", "600");
    buf_release(&b);
}

/* --- when it fires --- */

static void fires(const char *text, const char *zone_name, const char *after,
                  const char *const *expected, size_t count)
{
    struct arena arena;
    arena_init(&arena, MIB);
    struct zone z = zone_named(zone_name, &arena);
    struct cron c = parse(text);
    int64_t t = at(after);
    for (size_t i = 0; i < count; i++) {
        char got[TIME_TEXT_LEN + 1];
        if (!cron_next(&c, &z, t, &t))
            fail_msg("<%s> in %s fires %zu times only", text, zone_name, i);
        text_of(t, got);
        if (t != at(expected[i]))
            fail_msg("<%s> in %s fires at %s, not %s", text, zone_name, got, expected[i]);
    }
    arena_release(&arena);
}

#define FIRES(text, zone, after, ...)                              \
    do {                                                           \
        static const char *const expected_[] = {__VA_ARGS__};      \
        fires(text, zone, after, expected_, ARRAY_LEN(expected_)); \
    } while (0)

static void the_next_is_strictly_after(void **state)
{
    (void)state;
    FIRES("* * * * *", "UTC", "2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z",
          "2025-01-01T00:02:00Z");
    FIRES("0 0 * * *", "UTC", "2024-12-31T23:59:59Z", "2025-01-01T00:00:00Z",
          "2025-01-02T00:00:00Z");
    FIRES("59 23 31 12 *", "UTC", "2024-12-31T23:58:59Z", "2024-12-31T23:59:00Z",
          "2025-12-31T23:59:00Z");
    FIRES("*/20 59 23 * * *", "UTC", "2024-12-31T23:59:20Z", "2024-12-31T23:59:40Z",
          "2025-01-01T23:59:00Z");
    /* A later hour or minute begins with the first second again. */
    FIRES("0,50 30 5 * * *", "UTC", "2025-01-01T02:30:44Z", "2025-01-01T05:30:00Z",
          "2025-01-01T05:30:50Z", "2025-01-02T05:30:00Z");
    FIRES("0,50 20,40 5 * * *", "UTC", "2025-01-01T05:20:50Z", "2025-01-01T05:40:00Z");
    FIRES("0,50 20,40 5 * * *", "UTC", "2025-01-01T05:30:44Z", "2025-01-01T05:40:00Z");
    FIRES("0 12 * * *", "Asia/Kolkata", "2025-01-01T00:00:00Z", "2025-01-01T06:30:00Z");
}

static void both_day_fields_may_fit_when_none_is_a_wildcard(void **state)
{
    (void)state;
    FIRES("0 0 13 * FRI", "UTC", "2025-06-01T00:00:00Z", "2025-06-06T00:00:00Z",
          "2025-06-13T00:00:00Z", "2025-06-20T00:00:00Z", "2025-06-27T00:00:00Z",
          "2025-07-04T00:00:00Z", "2025-07-11T00:00:00Z", "2025-07-13T00:00:00Z");
    FIRES("0 0 * * FRI", "UTC", "2025-06-01T00:00:00Z", "2025-06-06T00:00:00Z",
          "2025-06-13T00:00:00Z");
    FIRES("0 0 13 * *", "UTC", "2025-06-01T00:00:00Z", "2025-06-13T00:00:00Z",
          "2025-07-13T00:00:00Z");
    FIRES("0 0 13 * */5", "UTC", "2025-06-01T00:00:00Z", "2025-06-13T00:00:00Z",
          "2025-07-13T00:00:00Z", "2026-02-13T00:00:00Z");
}

static void days_that_months_lack_are_passed_over(void **state)
{
    (void)state;
    FIRES("0 0 31 * *", "UTC", "2025-01-31T00:00:00Z", "2025-03-31T00:00:00Z",
          "2025-05-31T00:00:00Z");
    FIRES("0 0 29 2 *", "UTC", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z");
    FIRES("0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z");
}

static void the_rarest_day_is_found_and_one_that_never_comes_is_not(void **state)
{
    (void)state;
    /* A February 29 that is a Sunday or a Saturday, and one that is a Sunday. */
    FIRES("0 0 29 2 */6", "UTC", "2025-01-01T00:00:00Z", "2032-02-29T00:00:00Z",
          "2048-02-29T00:00:00Z", "2060-02-29T00:00:00Z", "2076-02-29T00:00:00Z");
    FIRES("0 0 29 2 *,0", "UTC", "2025-01-01T00:00:00Z", "2028-02-29T00:00:00Z");
    static const char *const NEVER[] = {"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 * 31 4 *",
                                        "* * * 30 2 */2"};
    struct arena arena;
    arena_init(&arena, MIB);
    struct zone zones[] = {ZONE_UTC, zone_named("Europe/Berlin", &arena),
                           zone_named("Pacific/Apia", &arena)};
    for (size_t i = 0; i < ARRAY_LEN(NEVER); i++) {
        for (size_t z = 0; z < ARRAY_LEN(zones); z++) {
            struct cron c = parse(NEVER[i]);
            int64_t t = -77;
            assert_false(cron_next(&c, &zones[z], at("2025-01-01T00:00:00Z"), &t));
            assert_int_equal(t, -77);
        }
    }
    arena_release(&arena);
}

/* Every February 29 on one weekday, over two of the calendar's cycles: the limit leaves none out.
 */
static void no_day_is_further_than_the_limit(void **state)
{
    (void)state;
    struct cron c = parse("0 0 29 2 *");
    for (int weekday = 0; weekday < 7; weekday++) {
        c.weekdays = UINT64_C(1) << weekday;
        int64_t t = at("1601-01-01T00:00:00Z");
        int64_t widest = 0;
        while (t < at("2401-01-01T00:00:00Z")) {
            int64_t next;
            assert_true(cron_next(&c, &ZONE_UTC, t, &next));
            widest = MAX(widest, next - t);
            t = next;
        }
        assert_true(widest <= INT64_C(41) * 366 * DAY_S);
    }
}

static void the_ends_of_time_have_no_next(void **state)
{
    (void)state;
    struct cron often = parse("* * * * * *");
    struct cron daily = parse("30 2 * * *");
    struct arena arena;
    arena_init(&arena, MIB);
    struct zone berlin = zone_named("Europe/Berlin", &arena);
    int64_t t = -77;
    static const int64_t LATE[] = {253402300799, 253402300800, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(LATE); i++) {
        assert_false(cron_next(&often, &berlin, LATE[i], &t));
        assert_false(cron_next(&daily, &ZONE_UTC, LATE[i], &t));
    }
    assert_false(cron_next(&daily, &ZONE_UTC, at("9999-12-31T02:30:00Z"), &t));
    assert_false(cron_next(&daily, &berlin, at("9999-12-31T02:30:00Z"), &t));
    assert_int_equal(t, -77);
    assert_true(cron_next(&often, &berlin, at("9999-12-31T23:59:58Z"), &t));
    assert_int_equal(t, at("9999-12-31T23:59:59Z"));
    static const int64_t EARLY[] = {INT64_MIN, INT64_MIN + 1, -62135596802, -62135596801};
    for (size_t i = 0; i < ARRAY_LEN(EARLY); i++) {
        assert_true(cron_next(&often, &berlin, EARLY[i], &t));
        assert_int_equal(t, at("0001-01-01T00:00:00Z"));
        assert_true(cron_next(&daily, &ZONE_UTC, EARLY[i], &t));
        assert_int_equal(t, at("0001-01-01T02:30:00Z"));
    }
    arena_release(&arena);
}

/* --- clocks that are set --- */

static void a_time_in_a_gap_fires_once_when_the_gap_ends(void **state)
{
    (void)state;
    FIRES("30 2 * * *", "Europe/Berlin", "2025-03-28T12:00:00Z", "2025-03-29T01:30:00Z",
          "2025-03-30T01:00:00Z", "2025-03-31T00:30:00Z");
    FIRES("*/5 2 * * *", "Europe/Berlin", "2025-03-30T00:30:00Z", "2025-03-30T01:00:00Z",
          "2025-03-31T00:00:00Z", "2025-03-31T00:05:00Z");
    /* Together with a time that is there. */
    FIRES("0 2,3 * * *", "Europe/Berlin", "2025-03-30T00:30:00Z", "2025-03-30T01:00:00Z",
          "2025-03-31T00:00:00Z");
    FIRES("15,45 2 * * *", "Australia/Lord_Howe", "2025-10-04T12:00:00Z", "2025-10-04T15:30:00Z",
          "2025-10-04T15:45:00Z", "2025-10-05T15:15:00Z");
    /* A midnight that is left out. */
    FIRES("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z",
          "2018-11-05T02:00:00Z");
}

static void a_day_that_is_left_out_fires_at_the_next_midnight(void **state)
{
    (void)state;
    FIRES("0 12 30 12 *", "Pacific/Apia", "2011-06-01T00:00:00Z", "2011-12-30T10:00:00Z",
          "2012-12-29T22:00:00Z");
    FIRES("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-29T22:00:00Z",
          "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z");
    FIRES("0 * 30 12 *", "Pacific/Apia", "2011-06-01T00:00:00Z", "2012-12-29T10:00:00Z");
}

static void a_time_that_comes_twice_fires_at_the_first(void **state)
{
    (void)state;
    FIRES("30 2 * * *", "Europe/Berlin", "2025-10-25T12:00:00Z", "2025-10-26T00:30:00Z",
          "2025-10-27T01:30:00Z");
    FIRES("*/20 1,2,3 * * *", "Europe/Berlin", "2025-10-26T00:30:00Z", "2025-10-26T00:40:00Z",
          "2025-10-26T02:00:00Z");
    /* Asked for during the second. */
    FIRES("30 2 * * *", "Europe/Berlin", "2025-10-26T01:15:00Z", "2025-10-27T01:30:00Z");
    FIRES("45 1 * * *", "Australia/Lord_Howe", "2025-04-05T12:00:00Z", "2025-04-05T14:45:00Z",
          "2025-04-06T15:15:00Z");
}

static void a_wildcard_hour_follows_the_clock(void **state)
{
    (void)state;
    FIRES("*/30 * * * *", "Europe/Berlin", "2025-10-25T23:30:00Z", "2025-10-26T00:00:00Z",
          "2025-10-26T00:30:00Z", "2025-10-26T01:00:00Z", "2025-10-26T01:30:00Z",
          "2025-10-26T02:00:00Z");
    FIRES("30 * * * *", "Europe/Berlin", "2025-03-29T23:30:00Z", "2025-03-30T00:30:00Z",
          "2025-03-30T01:30:00Z");
    FIRES("@hourly", "Europe/Berlin", "2025-03-29T23:30:00Z", "2025-03-30T00:00:00Z",
          "2025-03-30T01:00:00Z", "2025-03-30T02:00:00Z");
    FIRES("0 */2 * * *", "Europe/Berlin", "2025-10-25T22:00:00Z", "2025-10-26T00:00:00Z",
          "2025-10-26T01:00:00Z", "2025-10-26T03:00:00Z");
    FIRES("0 */2 * * *", "Europe/Berlin", "2025-03-29T23:00:00Z", "2025-03-30T02:00:00Z");
    FIRES("45 * * * *", "Australia/Lord_Howe", "2025-04-05T14:00:00Z", "2025-04-05T14:45:00Z",
          "2025-04-05T15:15:00Z", "2025-04-05T16:15:00Z");
}

static void after_the_table_the_rule_counts(void **state)
{
    (void)state;
    FIRES("30 2 * * *", "Europe/Berlin", "2100-03-27T12:00:00Z", "2100-03-28T01:00:00Z",
          "2100-03-29T00:30:00Z");
    FIRES("30 1 * * *", "America/New_York", "2100-11-06T12:00:00Z", "2100-11-07T05:30:00Z",
          "2100-11-08T06:30:00Z");
}

/* --- the documentation --- */

static void check_doc_refused(const char *text)
{
    struct problem p;
    problem_init(&p);
    struct cron c;
    if (cron_parse(str_of(text), &p, &c) != ERR_FIELD_INVALID)
        fail_msg("taken: <%s>", text);
    problem_release(&p);
}

static void check_doc_times(const char *text, const char *zone_name, const char *after,
                            struct str times)
{
    bool more = true;
    char last[32];
    (void)snprintf(last, sizeof(last), "%s", after);
    while (more) {
        struct str one;
        char time[32];
        more = str_cut(times, ',', &one, &times);
        (void)snprintf(time, sizeof(time), "%.*s", STR_ARG(str_trim(one)));
        const char *expected = time;
        fires(text, zone_name, last, &expected, 1);
        (void)snprintf(last, sizeof(last), "%s", time);
    }
}

static void check_doc_row(void *ctx UNUSED, const struct doc_row *row)
{
    char text[64];
    char zone_name[64];
    char after[32];
    assert_true(row->count == 5);
    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(row->cells[0]));
    (void)snprintf(zone_name, sizeof(zone_name), "%.*s", STR_ARG(row->cells[1]));
    (void)snprintf(after, sizeof(after), "%.*s", STR_ARG(row->cells[2]));
    struct zone utc = ZONE_UTC;
    int64_t next;
    if (str_is(row->cells[3], "refused")) {
        check_doc_refused(text);
    } else if (str_is(row->cells[3], "never")) {
        struct cron c = parse(text);
        assert_false(cron_next(&c, &utc, at(after), &next));
    } else {
        check_doc_times(text, zone_name, after, row->cells[3]);
    }
}

static void every_documented_corner_case_is_so(void **state)
{
    (void)state;
    char *text = doc_read("api.md");
    size_t rows = doc_each_row(doc_marked(text, "<!-- table: cron;"), check_doc_row, NULL);
    assert_in_range(rows, 25, 1000);
    free(text);
}

/* --- the model --- */

/* A zone of the largest file there may be, and expressions that hardly or never fire. */
static void the_worst_case_is_still_quick(void **state)
{
    (void)state;
    enum { CHANGES = 7000, SECONDS_MAX = 1 };
    struct zone_change *changes = calloc(CHANGES, sizeof(*changes));
    assert_non_null(changes);
    for (int i = 0; i < CHANGES; i++)
        changes[i] = (struct zone_change){i * 3600, i % 2 == 0 ? -80000 : 80000};
    struct zone z = {.changes = changes, .change_count = CHANGES};
    static const char *const TEXTS[] = {"0 * 30 2 *", "0 5 30 2 *", "0 * 29 2 *", "0 5 29 2 *"};
    struct timespec begun;
    struct timespec done;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun), 0);
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        struct cron c = parse(TEXTS[i]);
        int64_t t;
        assert_int_equal(cron_next(&c, &z, 0, &t), i >= 2);
    }
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &done), 0);
    assert_true(done.tv_sec - begun.tv_sec <= SECONDS_MAX);
    free(changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_ranges_and_steps_are_read),
        cmocka_unit_test(a_star_is_all_and_a_question_mark_is_a_star),
        cmocka_unit_test(months_and_weekdays_have_names),
        cmocka_unit_test(sunday_is_0_and_7_and_may_end_a_range),
        cmocka_unit_test(words_stand_for_the_usual_expressions),
        cmocka_unit_test(a_sixth_field_in_front_is_for_seconds),
        cmocka_unit_test(faults_name_the_field_and_what_is_wrong),
        cmocka_unit_test(other_numbers_of_fields_are_refused),
        cmocka_unit_test(texts_are_bounded),
        cmocka_unit_test(the_next_is_strictly_after),
        cmocka_unit_test(both_day_fields_may_fit_when_none_is_a_wildcard),
        cmocka_unit_test(days_that_months_lack_are_passed_over),
        cmocka_unit_test(the_rarest_day_is_found_and_one_that_never_comes_is_not),
        cmocka_unit_test(no_day_is_further_than_the_limit),
        cmocka_unit_test(the_ends_of_time_have_no_next),
        cmocka_unit_test(a_time_in_a_gap_fires_once_when_the_gap_ends),
        cmocka_unit_test(a_day_that_is_left_out_fires_at_the_next_midnight),
        cmocka_unit_test(a_time_that_comes_twice_fires_at_the_first),
        cmocka_unit_test(a_wildcard_hour_follows_the_clock),
        cmocka_unit_test(after_the_table_the_rule_counts),
        cmocka_unit_test(every_documented_corner_case_is_so),
        cmocka_unit_test(the_worst_case_is_still_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
