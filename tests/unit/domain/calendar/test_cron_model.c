/* Every firing of random cron expressions against a model that walks minute by minute. */
#include "domain/calendar/cron_support.h"

/* The release build tries all of them, ASan some. */
#if defined(__SANITIZE_ADDRESS__)
enum { BY_MINUTES = 5, BY_SECONDS = 6, RANDOM_ZONES = 30 };
#else
enum { BY_MINUTES = 25, BY_SECONDS = 30, RANDOM_ZONES = 150 };
#endif

/* --- the model --- */

/* What a field of an expression takes in, found while it is written. */
struct model {
    bool fits[6][60];
    bool wildcard[6];
};

static const int FIRST_OF[6] = {0, 0, 0, 1, 1, 0};
static const int LAST_OF[6] = {59, 59, 23, 31, 12, 6};

static void take_in(struct model *m, int field, int low, int high, int step)
{
    for (int value = low; value <= high; value += step)
        m->fits[field][field == 5 ? value % 7 : value] = true;
}

/* SUN is 0, and 7 at the end of a range that begins with another day. */
static void write_value(struct rng *g, struct buf *text, int field, int value, bool ends_range)
{
    static const char *const MONTHS[] = {"jan", "FEB", "Mar", "apr", "MAY", "Jun",
                                         "jul", "AUG", "Sep", "oct", "NOV", "Dec"};
    static const char *const DAYS[] = {"sun", "MON", "Tue", "wed", "THU", "Fri", "sat", "SUN"};
    if (field == 4 && rng_below(g, 2) == 0)
        buf_put(text, str_of(MONTHS[value - 1]));
    else if (field == 5 && (value < 7 || ends_range) && rng_below(g, 2) == 0)
        buf_put(text, str_of(DAYS[value]));
    else
        buf_put_i64(text, value);
}

static int random_value(struct rng *g, int field, int from)
{
    int last = LAST_OF[field] + (field == 5);
    return from + (int)rng_below(g, (uint64_t)(last - from + 1));
}

static void write_element(struct rng *g, struct buf *text, struct model *m, int field, bool first)
{
    int step = 1 + (int)rng_below(g, (uint64_t)LAST_OF[field]);
    int low = random_value(g, field, FIRST_OF[field]);
    uint64_t kind = rng_below(g, first ? 9 : 5);
    if (kind >= 5) {
        buf_put(text, kind == 5 ? STR("?") : STR("*"));
        m->wildcard[field] = true;
        if (kind >= 7)
            step = 1;
        else
            buf_printf(text, "/%d", step);
        take_in(m, field, FIRST_OF[field], LAST_OF[field], step);
        return;
    }
    write_value(g, text, field, low, false);
    if (kind <= 1) {
        take_in(m, field, low, low, 1);
    } else if (kind == 2) {
        buf_printf(text, "/%d", step);
        take_in(m, field, low, MAX(low, LAST_OF[field]), step);
    } else {
        int high = random_value(g, field, low);
        buf_put_char(text, '-');
        write_value(g, text, field, high, low > 0);
        step = kind == 3 ? 1 : step;
        if (kind == 4)
            buf_printf(text, "/%d", step);
        take_in(m, field, low, high, step);
    }
}

static void random_expression(struct rng *g, bool seconds, struct buf *text, struct model *m)
{
    *m = (struct model){0};
    m->fits[0][0] = !seconds;
    buf_clear(text);
    for (int field = seconds ? 0 : 1; field < 6; field++) {
        uint64_t elements = 1 + rng_below(g, 5) / 3;
        for (uint64_t i = 0; i < elements; i++) {
            if (i > 0)
                buf_put_char(text, ',');
            write_element(g, text, m, field, i == 0);
        }
        buf_put_char(text, ' ');
    }
    assert_true(buf_ok(text));
}

/* A local time taken apart, once for all expressions. */
struct shown {
    unsigned char second;
    unsigned char minute;
    unsigned char hour;
    unsigned char day;
    unsigned char month;
    unsigned char weekday;
};

static bool model_fits(const struct model *m, const struct shown *t)
{
    if (!m->fits[1][t->minute] || !m->fits[2][t->hour] || !m->fits[4][t->month] ||
        !m->fits[0][t->second])
        return false;
    bool day = m->fits[3][t->day];
    bool weekday = m->fits[5][t->weekday];
    return m->wildcard[3] || m->wildcard[5] ? day && weekday : day || weekday;
}

/* A stretch of time in steps of a minute or a second, with what the clock shows at each. */
struct stretch {
    const char *zone_name;
    int64_t from; /* an instant */
    int64_t step; /* 60 or 1 */
    size_t count;
    int64_t *local;       /* by step: the local time, in steps */
    int64_t lowest;       /* of these */
    struct shown *fields; /* by local time, from the lowest on */
};

/* So long a stretch only tells how far the clock had come; no clock is set back by more. */
static const int64_t LEAD_S = 3 * DAY_S;

typedef int64_t offset_fn(const void *ctx, int64_t utc_s);

/* Clocks are set at multiples of `asked_every_s`. */
static struct stretch stretch_of(const char *name, int64_t from, int64_t until, int64_t step,
                                 int64_t asked_every_s, offset_fn *offset_s, const void *ctx)
{
    struct stretch s = {.zone_name = name, .from = from, .step = step};
    s.count = (size_t)((until - from) / step);
    s.local = calloc(s.count, sizeof(*s.local));
    assert_non_null(s.local);
    s.lowest = INT64_MAX;
    int64_t highest = INT64_MIN;
    int64_t offset = 0;
    for (size_t i = 0; i < s.count; i++) {
        int64_t instant = from + (int64_t)i * step;
        if (i == 0 || instant % asked_every_s == 0)
            offset = offset_s(ctx, instant);
        int64_t local = instant + offset;
        assert_int_equal(local % step, 0);
        s.local[i] = local / step;
        s.lowest = MIN(s.lowest, s.local[i]);
        highest = MAX(highest, s.local[i]);
    }
    s.fields = calloc((size_t)(highest - s.lowest + 1), sizeof(*s.fields));
    assert_non_null(s.fields);
    for (int64_t local = s.lowest; local <= highest; local++) {
        time_t t = (time_t)(local * step);
        struct tm tm;
        assert_non_null(gmtime_r(&t, &tm));
        s.fields[local - s.lowest] = (struct shown){
            (unsigned char)tm.tm_sec,  (unsigned char)tm.tm_min,       (unsigned char)tm.tm_hour,
            (unsigned char)tm.tm_mday, (unsigned char)(tm.tm_mon + 1), (unsigned char)tm.tm_wday,
        };
    }
    return s;
}

static void stretch_free(struct stretch *s)
{
    free(s->local);
    free(s->fields);
}

/* What cron.h says, step by step. The first days only tell how far the clock had come. The instants
 * are written to `fired`, which has room for one of each step. */
static size_t model_run(const struct stretch *s, const struct model *m, int64_t *fired)
{
    int64_t furthest = s->local[0];
    size_t count = 0;
    for (size_t i = 1; i < s->count; i++) {
        int64_t instant = s->from + (int64_t)i * s->step;
        bool fires_now = false;
        if (m->wildcard[2])
            fires_now = model_fits(m, &s->fields[s->local[i] - s->lowest]);
        for (; furthest < s->local[i]; furthest++) {
            if (!m->wildcard[2] && model_fits(m, &s->fields[furthest + 1 - s->lowest]))
                fires_now = true;
        }
        if (fires_now && instant >= s->from + LEAD_S)
            fired[count++] = instant;
    }
    return count;
}

static void check_next(const struct stretch *s, const char *text, const struct cron *c,
                       const struct zone *z, int64_t after, int64_t expected)
{
    int64_t got = -1;
    bool any = cron_next(c, z, after, &got);
    int64_t end = s->from + (int64_t)s->count * s->step;
    if (expected < end ? got == expected : !any || got >= end)
        return;
    char got_text[TIME_TEXT_LEN + 1] = "never";
    char expected_text[TIME_TEXT_LEN + 1] = "later";
    char after_text[TIME_TEXT_LEN + 1];
    if (any)
        text_of(got, got_text);
    if (expected < end)
        text_of(expected, expected_text);
    text_of(after, after_text);
    fail_msg("<%s> in %s fires after %s at %s, in the model at %s", text, s->zone_name, after_text,
             got_text, expected_text);
}

/* Asked at each firing, and now and then somewhere after it, for the next one. */
static size_t compare(const struct stretch *s, const struct model *m, const char *text,
                      const struct zone *z, struct rng *g, int64_t *fired)
{
    struct cron c = parse(text);
    size_t count = model_run(s, m, fired);
    int64_t asked = s->from + LEAD_S - 1;
    fired[count] = INT64_MAX;
    for (size_t i = 0; i <= count; i++) {
        int64_t last = MIN(fired[i], s->from + (int64_t)s->count * s->step) - 1;
        check_next(s, text, &c, z, asked, fired[i]);
        if (last > asked && (i < 1000 || i % 16 == 0))
            check_next(s, text, &c, z, asked + (int64_t)rng_below(g, (uint64_t)(last - asked + 1)),
                       fired[i]);
        asked = fired[i];
    }
    return count;
}

static int64_t libc_offset_s(const void *ctx, int64_t utc_s)
{
    (void)ctx;
    time_t t = (time_t)utc_s;
    struct tm tm;
    assert_non_null(localtime_r(&t, &tm));
    return tm.tm_gmtoff;
}

static int64_t our_offset_s(const void *ctx, int64_t utc_s)
{
    return zone_offset_s(ctx, utc_s);
}

static void random_expressions_fire_as_in_the_model(void **state)
{
    (void)state;
    static const struct {
        const char *zone;
        const char *from;
        const char *until;
    } YEARS[] = {
        {"Europe/Berlin", "2024-12-20T00:00:00Z", "2027-01-10T00:00:00Z"},
        {"Europe/Berlin", "2099-12-20T00:00:00Z", "2101-01-10T00:00:00Z"}, /* by the rule */
        {"America/New_York", "2024-12-20T00:00:00Z", "2027-01-10T00:00:00Z"},
        {"Australia/Lord_Howe", "2023-12-20T00:00:00Z", "2026-01-10T00:00:00Z"},
        {"Asia/Kolkata", "2023-12-20T00:00:00Z", "2026-01-10T00:00:00Z"},
        {"America/Sao_Paulo", "2017-09-01T00:00:00Z", "2019-06-01T00:00:00Z"},
        {"Africa/Casablanca", "2024-01-01T00:00:00Z", "2026-06-01T00:00:00Z"},
        {"Pacific/Apia", "2010-06-01T00:00:00Z", "2013-01-01T00:00:00Z"},
        {"UTC", "2023-12-20T00:00:00Z", "2025-01-10T00:00:00Z"},
    };
    struct rng g = {11};
    struct buf text;
    buf_init(&text, KIB);
    size_t fired_in_all = 0;
    for (size_t y = 0; y < ARRAY_LEN(YEARS); y++) {
        struct arena arena;
        arena_init(&arena, MIB);
        struct zone z = zone_named(YEARS[y].zone, &arena);
        assert_int_equal(setenv("TZ", YEARS[y].zone, 1), 0);
        tzset();
        struct stretch s = stretch_of(YEARS[y].zone, at(YEARS[y].from), at(YEARS[y].until), 60, 900,
                                      libc_offset_s, NULL);
        int64_t *fired = calloc(s.count + 1, sizeof(*fired));
        assert_non_null(fired);
        for (int i = 0; i < BY_MINUTES; i++) {
            struct model m;
            random_expression(&g, false, &text, &m);
            fired_in_all += compare(&s, &m, text.ptr, &z, &g, fired);
        }
        free(fired);
        stretch_free(&s);
        arena_release(&arena);
    }
    assert_int_equal(unsetenv("TZ"), 0);
    tzset();
    assert_true(fired_in_all > 4000 * BY_MINUTES);
    buf_release(&text);
}

/* Hours around each change, second by second. */
static void seconds_fire_as_in_the_model(void **state)
{
    (void)state;
    static const struct {
        const char *zone;
        const char *change;
    } CHANGES[] = {
        {"Europe/Berlin", "2025-03-30T01:00:00Z"},       {"Europe/Berlin", "2025-10-26T01:00:00Z"},
        {"Australia/Lord_Howe", "2025-04-05T15:00:00Z"}, {"Pacific/Apia", "2011-12-30T10:00:00Z"},
        {"Europe/Amsterdam", "1937-06-30T23:40:28Z"}, /* from +01:19:32 to +01:20 */
    };
    struct rng g = {12};
    struct buf text;
    buf_init(&text, KIB);
    for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
        struct arena arena;
        arena_init(&arena, MIB);
        struct zone z = zone_named(CHANGES[i].zone, &arena);
        int64_t change = at(CHANGES[i].change);
        struct stretch s = stretch_of(CHANGES[i].zone, change - LEAD_S - 3600, change + 2 * 3600, 1,
                                      1, our_offset_s, &z);
        int64_t *fired = calloc(s.count + 1, sizeof(*fired));
        assert_non_null(fired);
        for (int n = 0; n < BY_SECONDS; n++) {
            struct model m;
            random_expression(&g, true, &text, &m);
            (void)compare(&s, &m, text.ptr, &z, &g, fired);
        }
        free(fired);
        stretch_free(&s);
        arena_release(&arena);
    }
    buf_release(&text);
}

/* Clocks that are set every few hours by any amount, so that times are left out and come again. */
static void clocks_without_sense_are_followed_all_the_same(void **state)
{
    (void)state;
    struct rng g = {13};
    struct buf text;
    buf_init(&text, KIB);
    int64_t from = at("2025-02-20T00:00:00Z");
    for (int i = 0; i < RANDOM_ZONES; i++) {
        struct zone_change changes[64];
        int64_t t = from + (int64_t)rng_below(&g, 30) * 60;
        for (size_t n = 0; n < ARRAY_LEN(changes); n++) {
            changes[n].at_s = t;
            changes[n].offset_s = (int32_t)rng_below(&g, 51 * 60 - 1) * 60 - 25 * 3600 + 60;
            t += 60 * (1 + (int64_t)rng_below(&g, i % 2 == 0 ? 200 : 2000));
        }
        struct zone z = {.changes = changes, .change_count = ARRAY_LEN(changes)};
        struct stretch s =
            stretch_of("a random zone", from, from + 25 * DAY_S, 60, 60, our_offset_s, &z);
        int64_t *fired = calloc(s.count + 1, sizeof(*fired));
        assert_non_null(fired);
        for (int n = 0; n < 4; n++) {
            struct model m;
            random_expression(&g, false, &text, &m);
            (void)compare(&s, &m, text.ptr, &z, &g, fired);
        }
        free(fired);
        stretch_free(&s);
    }
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_expressions_fire_as_in_the_model),
        cmocka_unit_test(seconds_fire_as_in_the_model),
        cmocka_unit_test(clocks_without_sense_are_followed_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
