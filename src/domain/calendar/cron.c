/* Cron expressions: reading them, and the next time that fits. */
#include "domain/calendar/cron.h"

enum { FIELD_COUNT = 6, QUOTED_MAX = 32 };

static const char *const MONTHS[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                     "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
static const char *const WEEKDAYS[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

struct field {
    const char *name;
    int min;
    int max;  /* of a value that is written */
    int last; /* where `*` and `5/10` end */
    const char *const *names;
    int name_count; /* the first stands for min */
};

static const struct field FIELDS[FIELD_COUNT] = {
    {"second", 0, 59, 59, NULL, 0},
    {"minute", 0, 59, 59, NULL, 0},
    {"hour", 0, 23, 23, NULL, 0},
    {"day-of-month", 1, 31, 31, NULL, 0},
    {"month", 1, 12, 12, MONTHS, ARRAY_LEN(MONTHS)},
    {"day-of-week", 0, 7, 6, WEEKDAYS, ARRAY_LEN(WEEKDAYS)},
};
static const struct field *const DAY_OF_WEEK = &FIELDS[FIELD_COUNT - 1];

static const struct {
    const char *word;
    const char *text;
} WORDS[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

/* --- reading --- */

static enum err fault(struct problem *p, const struct field *f, struct str text, const char *why)
{
    text.len = MIN(text.len, (size_t)QUOTED_MAX);
    return problem_set(p, ERR_FIELD_INVALID, "cron: %s: \"%.*s\" %s", f->name, STR_ARG(text), why);
}

static enum err fault_range(struct problem *p, const struct field *f, struct str text,
                            const char *what, int min, int max)
{
    char why[64];
    (void)snprintf(why, sizeof(why), "is not %s from %d to %d", what, min, max);
    return fault(p, f, text, why);
}

static bool is_wildcard(struct str text)
{
    return text.len > 0 && (text.ptr[0] == '*' || text.ptr[0] == '?');
}

/* Whole numbers of at most three digits; none that is meant is longer. */
static bool parse_number(struct str text, int *ret)
{
    if (text.len == 0 || text.len > 3)
        return false;
    int value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        value = value * 10 + (text.ptr[i] - '0');
    }
    *ret = value;
    return true;
}

static enum err parse_value(const struct field *f, struct str text, struct problem *p, int *ret)
{
    for (int i = 0; i < f->name_count; i++) {
        if (str_eq_nocase(text, str_of(f->names[i]))) {
            *ret = f->min + i;
            return ERR_OK;
        }
    }
    int value;
    if (!parse_number(text, &value) || value < f->min || value > f->max)
        return fault_range(p, f, text, f->name_count > 0 ? "a name or a number" : "a number",
                           f->min, f->max);
    *ret = value;
    return ERR_OK;
}

/* a, a-b or *; `single` is for the first of these. */
static enum err parse_range(const struct field *f, struct str text, struct problem *p, int *ret_low,
                            int *ret_high, bool *ret_single)
{
    struct str low;
    struct str high;
    *ret_single = false;
    if (is_wildcard(text)) {
        *ret_low = f->min;
        *ret_high = f->last;
        return text.len == 1 ? ERR_OK : fault(p, f, text, "has more than a step after its *");
    }
    *ret_single = !str_cut(text, '-', &low, &high);
    enum err e = parse_value(f, low, p, ret_low);
    if (e != ERR_OK || *ret_single) {
        *ret_high = *ret_low;
        return e;
    }
    e = parse_value(f, high, p, ret_high);
    if (e != ERR_OK)
        return e;
    if (f == DAY_OF_WEEK && *ret_high == 0 && *ret_low > 0)
        *ret_high = 7; /* FRI-SUN */
    return *ret_low <= *ret_high ? ERR_OK : fault(p, f, text, "runs backwards");
}

static enum err parse_element(const struct field *f, struct str text, struct problem *p,
                              uint64_t *set)
{
    struct str range;
    struct str step_text;
    int low = 0;
    int high = 0;
    int step = 1;
    bool single = false;
    bool has_step = str_cut(text, '/', &range, &step_text);
    if (range.len == 0)
        return fault(p, f, text, "lacks a value");
    enum err e = parse_range(f, range, p, &low, &high, &single);
    if (e != ERR_OK)
        return e;
    if (has_step) {
        /* A longer step is a mistake: `*` with /90 minutes would fire once an hour. */
        if (!parse_number(step_text, &step) || step < 1 || step > f->max)
            return fault_range(p, f, text, "a range with a step", 1, f->max);
        if (single)
            high = MAX(low, f->last);
    }
    assert(low >= f->min && low <= high && high <= f->max);
    for (int value = low; value <= high; value += step)
        *set |= UINT64_C(1) << (f == DAY_OF_WEEK ? value % 7 : value);
    return ERR_OK;
}

static enum err parse_field(const struct field *f, struct str text, struct problem *p,
                            uint64_t *ret)
{
    uint64_t set = 0;
    bool more = true;
    for (struct str rest = text; more;) {
        struct str element;
        more = str_cut(rest, ',', &element, &rest);
        if (element.len == 0)
            return fault(p, f, text, "has an empty element");
        enum err e = parse_element(f, element, p, &set);
        if (e != ERR_OK)
            return e;
    }
    assert(set != 0);
    *ret = set;
    return ERR_OK;
}

/* Cuts text at spaces and tabs; returns how many parts there are, and fills at most `max`. */
static size_t split(struct str text, struct str *parts, size_t max)
{
    size_t count = 0;
    for (text = str_trim(text); text.len > 0; text = str_trim(text)) {
        size_t len = 0;
        while (len < text.len && text.ptr[len] != ' ' && text.ptr[len] != '\t')
            len++;
        if (count < max)
            parts[count] = (struct str){text.ptr, len};
        count++;
        text = (struct str){text.ptr + len, text.len - len};
    }
    return count;
}

enum err cron_parse(struct str text, struct problem *p, struct cron *ret)
{
    if (text.len > CRON_TEXT_MAX)
        return problem_set(p, ERR_FIELD_INVALID, "cron: must have at most %d bytes", CRON_TEXT_MAX);
    struct str trimmed = str_trim(text);
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        if (str_eq_nocase(trimmed, str_of(WORDS[i].word)))
            trimmed = str_of(WORDS[i].text);
    }
    if (trimmed.len > 0 && trimmed.ptr[0] == '@')
        return problem_set(p, ERR_FIELD_INVALID,
                           "cron: \"%.*s\" is unknown. Use @hourly, @daily, @midnight, @weekly, "
                           "@monthly, @yearly or @annually.",
                           MIN((int)trimmed.len, QUOTED_MAX), trimmed.ptr);
    struct str parts[FIELD_COUNT] = {[0] = STR("0")};
    size_t count = split(trimmed, parts, FIELD_COUNT);
    if (count == FIELD_COUNT - 1) {
        parts[0] = STR("0"); /* the second that is not written */
        count = 1 + split(trimmed, parts + 1, FIELD_COUNT - 1);
    }
    if (count != FIELD_COUNT)
        return problem_set(p, ERR_FIELD_INVALID,
                           "cron: must have five fields, minute hour day-of-month month "
                           "day-of-week, or six with second before them; it has %zu",
                           count);
    struct cron c = {
        .any_hour = is_wildcard(parts[2]),
        .any_day = is_wildcard(parts[3]),
        .any_weekday = is_wildcard(parts[5]),
    };
    uint64_t *const sets[FIELD_COUNT] = {&c.seconds, &c.minutes, &c.hours,
                                         &c.days,    &c.months,  &c.weekdays};
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        enum err e = parse_field(&FIELDS[i], parts[i], p, sets[i]);
        if (e != ERR_OK)
            return e;
    }
    *ret = c;
    return ERR_OK;
}

/* --- times that fit, by the calendar alone --- */

/* The first bit from `from` on, or -1. */
static int next_bit(uint64_t set, int from)
{
    assert(from >= 0 && from < 64);
    uint64_t left = set >> from;
    return left == 0 ? -1 : from + __builtin_ctzll(left);
}

/* The first time of day that fits, from `from_s` on: seconds after midnight, or -1. */
static int next_time(const struct cron *c, int from_s)
{
    assert(from_s >= 0 && from_s < DAY_S);
    int hour = from_s / 3600;
    int minute = from_s / 60 % 60;
    int second = next_bit(c->seconds, from_s % 60);
    if (second < 0)
        minute++;
    int fitting_minute = next_bit(c->minutes, minute);
    if (fitting_minute < 0)
        hour++;
    int fitting_hour = next_bit(c->hours, hour);
    if (fitting_hour < 0)
        return -1;
    /* A field that is larger than asked for resets the smaller ones. */
    bool later_hour = fitting_hour != from_s / 3600;
    if (later_hour)
        fitting_minute = next_bit(c->minutes, 0);
    if (later_hour || second < 0 || fitting_minute != from_s / 60 % 60)
        second = next_bit(c->seconds, 0);
    return fitting_hour * 3600 + fitting_minute * 60 + second;
}

static bool day_fits(const struct cron *c, int day, int weekday)
{
    bool by_day = (c->days >> day & 1) != 0;
    bool by_weekday = (c->weekdays >> weekday & 1) != 0;
    return c->any_day || c->any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

/* The first day that fits, of those from `from` up to `last`. */
static bool next_day(const struct cron *c, int64_t from, int64_t last, int64_t *ret)
{
    struct civil_date date = civil_of_days(from);
    for (int64_t days = from; days <= last;) {
        int month_len = civil_month_len(date.year, date.month);
        if ((c->months >> date.month & 1) != 0) {
            int weekday = civil_weekday(days);
            for (int day = date.day; day <= month_len; day++) {
                if (day_fits(c, day, weekday)) {
                    *ret = days + (day - date.day);
                    return *ret <= last;
                }
                weekday = weekday == 6 ? 0 : weekday + 1;
            }
        }
        days += month_len - date.day + 1;
        date.day = 1;
        date.month = date.month == 12 ? 1 : date.month + 1;
        date.year += date.month == 1;
    }
    return false;
}

/* The first local time that fits, from `from_s` up to the end of the day `last_day`. */
static bool next_fit(const struct cron *c, int64_t from_s, int64_t last_day, int64_t *ret_s)
{
    int64_t today = civil_day_of(from_s);
    int64_t day;
    if (!next_day(c, today, last_day, &day))
        return false;
    int time_s = next_time(c, day == today ? (int)(from_s - today * DAY_S) : 0);
    if (time_s < 0) {
        if (!next_day(c, today + 1, last_day, &day))
            return false;
        time_s = next_time(c, 0);
    }
    assert(time_s >= 0);
    *ret_s = day * DAY_S + time_s;
    assert(*ret_s >= from_s);
    return true;
}

/* --- in a zone --- */

/* The latest time that the zone's clock has shown up to an instant: before it was set back, it may
 * have been ahead. */
static int64_t latest_shown(const struct zone *z, int64_t until_s)
{
    int64_t latest = INT64_MIN;
    /* A clock further in the past could not have been ahead of the one now. */
    int64_t from = until_s - (ZONE_OFFSET_MAX_S - ZONE_OFFSET_MIN_S);
    while (from <= until_s) {
        struct zone_span span = zone_span_at(z, from);
        assert(span.until_s > from);
        latest = MAX(latest, MIN(span.until_s - 1, until_s) + span.offset_s);
        from = span.until_s;
    }
    return latest;
}

/* The first instant at which the zone's clock shows a time or a later one. */
static int64_t first_reached(const struct zone *z, int64_t local_s)
{
    int64_t from = local_s - ZONE_OFFSET_MAX_S;
    for (;;) {
        struct zone_span span = zone_span_at(z, from);
        assert(span.until_s > from);
        if (local_s - span.offset_s < span.until_s)
            return MAX(from, local_s - span.offset_s);
        from = span.until_s;
    }
}

/* Whenever the clock shows a time that fits. */
static bool next_shown(const struct cron *c, const struct zone *z, int64_t after_s,
                       int64_t last_day, int64_t *ret_s)
{
    int64_t from = after_s + 1;
    int64_t looked_from = INT64_MAX;
    int64_t fit = INT64_MIN;
    for (;;) {
        struct zone_span span = zone_span_at(z, from);
        assert(span.until_s > from);
        int64_t local = from + span.offset_s;
        if (local < looked_from || local > fit) {
            looked_from = local;
            if (!next_fit(c, local, last_day, &fit))
                return false;
        }
        if (fit - span.offset_s < span.until_s) {
            *ret_s = fit - span.offset_s;
            return true;
        }
        from = span.until_s;
    }
}

bool cron_next(const struct cron *c, const struct zone *z, int64_t after_s, int64_t *ret_s)
{
    static const int64_t FIRST_S = INT64_C(-62135596800); /* 0001-01-01T00:00:00Z */
    static const int64_t LAST_S = INT64_C(253402300799);  /* 9999-12-31T23:59:59Z */
    assert(c->seconds != 0 && c->minutes != 0 && c->hours != 0);
    assert(c->days != 0 && c->months != 0 && c->weekdays != 0);
    if (after_s >= LAST_S)
        return false;
    after_s = MAX(after_s, FIRST_S - 1);
    int64_t last_day = civil_day_of(after_s) + CRON_YEARS_MAX * 366;
    int64_t instant;
    if (c->any_hour) {
        if (!next_shown(c, z, after_s, last_day, &instant))
            return false;
    } else {
        int64_t local;
        if (!next_fit(c, latest_shown(z, after_s) + 1, last_day, &local))
            return false;
        instant = first_reached(z, local);
    }
    assert(instant > after_s);
    if (instant > LAST_S)
        return false;
    *ret_s = instant;
    return true;
}
