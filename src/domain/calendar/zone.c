/* Time zones: the TZif file, the rule in its last line, and what follows from both. */
#include "domain/calendar/zone.h"

const struct zone ZONE_UTC = {.first_offset_s = 0};

/* The calendar repeats itself after 400 years, to the weekday. */
static const int64_t CYCLE_S = INT64_C(146097) * DAY_S;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* --- the calendar --- */

int64_t civil_to_days(struct civil_date date)
{
    assert(date.month >= 1 && date.month <= 12);
    /* Years are counted from March on, so that a leap day is the last of its year. */
    int64_t year = date.year - (date.month <= 2);
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

struct civil_date civil_of_days(int64_t days)
{
    days += 719468; /* since March 1 of the year 0 */
    int64_t era = floor_div(days, 146097);
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int month = (int)((5 * day_of_year + 2) / 153); /* 0 is March */
    struct civil_date date = {
        .year = year_of_era + era * 400 + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
    assert(date.month >= 1 && date.month <= 12 && date.day >= 1 && date.day <= 31);
    return date;
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int civil_month_len(int64_t year, int month)
{
    static const int LEN[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    assert(month >= 1 && month <= 12);
    return month == 2 && is_leap(year) ? 29 : LEN[month - 1];
}

int civil_weekday(int64_t days)
{
    int64_t weekday = (days + 4) % 7; /* 1970-01-01 was a Thursday */
    return (int)(weekday < 0 ? weekday + 7 : weekday);
}

int64_t civil_day_of(int64_t seconds)
{
    return floor_div(seconds, DAY_S);
}

/* --- the rule --- */

static int64_t yearly_days(const struct zone_yearly *y, int64_t year)
{
    int64_t new_year = civil_to_days((struct civil_date){year, 1, 1});
    switch (y->kind) {
    case YEARLY_JULIAN:
        return new_year + y->day - 1 + (is_leap(year) && y->day >= 60);
    case YEARLY_ZERO_DAY:
        return new_year + y->day;
    case YEARLY_WEEKDAY:
        break;
    }
    int64_t first = civil_to_days((struct civil_date){year, y->month, 1});
    int day = 1 + (y->day - civil_weekday(first) + 7) % 7 + 7 * (y->week - 1);
    if (day > civil_month_len(year, y->month))
        day -= 7; /* the last is the fourth */
    return first + day - 1;
}

static int64_t dst_start_s(const struct zone_rule *r, int64_t year)
{
    return yearly_days(&r->dst_start, year) * DAY_S + r->dst_start.time_s - r->std_offset_s;
}

static int64_t dst_end_s(const struct zone_rule *r, int64_t year)
{
    return yearly_days(&r->dst_end, year) * DAY_S + r->dst_end.time_s - r->dst_offset_s;
}

/* Daylight saving time lasts from a year's start to its end, or to that of the next year where the
 * year's own comes before. Starts and ends may lie a week outside of their years, and the stretches
 * of two years may touch: then it never ends. */
static struct zone_span rule_span(const struct zone_rule *r, int64_t utc_s)
{
    if (!r->has_dst)
        return (struct zone_span){r->std_offset_s, INT64_MAX};
    int64_t now = utc_s % CYCLE_S + (utc_s % CYCLE_S < 0 ? CYCLE_S : 0);
    int64_t year = civil_of_days(now / DAY_S).year;
    int64_t next = INT64_MAX;
    bool dst = false;
    for (int64_t y = year - 2; y <= year + 2; y++) {
        int64_t start = dst_start_s(r, y);
        int64_t end = dst_end_s(r, y);
        if (end < start)
            end = dst_end_s(r, y + 1);
        dst = dst || (start <= now && now < end);
        if (start > now)
            next = MIN(next, start);
        if (end > now)
            next = MIN(next, end);
    }
    assert(next > now && next < INT64_MAX);
    struct zone_span span = {.offset_s = dst ? r->dst_offset_s : r->std_offset_s};
    if (__builtin_add_overflow(utc_s, next - now, &span.until_s))
        span.until_s = INT64_MAX;
    return span;
}

/* --- questions --- */

struct zone_span zone_span_at(const struct zone *z, int64_t utc_s)
{
    size_t low = 0; /* how many changes are over: found by halving */
    size_t high = z->change_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (z->changes[middle].at_s <= utc_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == z->change_count && z->rule.given)
        return rule_span(&z->rule, utc_s);
    return (struct zone_span){
        .offset_s = low == 0 ? z->first_offset_s : z->changes[low - 1].offset_s,
        .until_s = low == z->change_count ? INT64_MAX : z->changes[low].at_s,
    };
}

int64_t zone_offset_s(const struct zone *z, int64_t utc_s)
{
    int64_t offset_s = zone_span_at(z, utc_s).offset_s;
    assert(offset_s >= ZONE_OFFSET_MIN_S && offset_s <= ZONE_OFFSET_MAX_S);
    return offset_s;
}

int zone_to_utc(const struct zone *z, int64_t local_s, int64_t *ret_first, int64_t *ret_second)
{
    if (local_s < INT64_MIN + ZONE_OFFSET_MAX_S || local_s > INT64_MAX + ZONE_OFFSET_MIN_S)
        return 0;
    int count = 0;
    /* Whatever the offset is, the instant lies between these. */
    int64_t from = local_s - ZONE_OFFSET_MAX_S;
    int64_t to = local_s - ZONE_OFFSET_MIN_S;
    while (from <= to && count < 2) {
        struct zone_span span = zone_span_at(z, from);
        assert(span.until_s > from || span.until_s == INT64_MAX);
        int64_t instant = local_s - span.offset_s;
        if (instant >= from && (instant < span.until_s || span.until_s == INT64_MAX))
            *(count++ == 0 ? ret_first : ret_second) = instant;
        if (span.until_s == INT64_MAX)
            break;
        from = span.until_s;
    }
    return count;
}

/* --- reading the rule: a TZ string of POSIX, with RFC 9636's wider range of times --- */

static bool take_char(struct str *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c)
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_number(struct str *s, size_t digits_max, int min, int max, int *ret)
{
    int value = 0;
    size_t digits = 0;
    for (; digits < s->len && is_digit(s->ptr[digits]); digits++) {
        if (digits == digits_max)
            return false;
        value = value * 10 + (s->ptr[digits] - '0');
    }
    if (digits == 0 || value < min || value > max)
        return false;
    s->ptr += digits;
    s->len -= digits;
    *ret = value;
    return true;
}

/* At least three letters, or in angle brackets also digits and signs. */
static bool take_name(struct str *s)
{
    bool quoted = take_char(s, '<');
    size_t len = 0;
    for (; len < s->len; len++) {
        char c = s->ptr[len];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(quoted && (is_digit(c) || c == '+' || c == '-')))
            break;
    }
    s->ptr += len;
    s->len -= len;
    return len >= 3 && (!quoted || take_char(s, '>'));
}

/* [+-]h[:m[:s]] */
static bool take_time(struct str *s, int hours_max, int32_t *ret_s)
{
    bool negative = take_char(s, '-');
    if (!negative)
        (void)take_char(s, '+');
    int hours = 0;
    int minutes = 0;
    int seconds = 0;
    if (!take_number(s, 3, 0, hours_max, &hours))
        return false;
    if (take_char(s, ':')) {
        if (!take_number(s, 2, 0, 59, &minutes))
            return false;
        if (take_char(s, ':') && !take_number(s, 2, 0, 59, &seconds))
            return false;
    }
    int32_t total = hours * 3600 + minutes * 60 + seconds;
    *ret_s = negative ? -total : total;
    return true;
}

static bool take_yearly(struct str *s, struct zone_yearly *ret)
{
    bool ok;
    if (take_char(s, 'M')) {
        ret->kind = YEARLY_WEEKDAY;
        ok = take_number(s, 2, 1, 12, &ret->month) && take_char(s, '.') &&
             take_number(s, 1, 1, 5, &ret->week) && take_char(s, '.') &&
             take_number(s, 1, 0, 6, &ret->day);
    } else if (take_char(s, 'J')) {
        ret->kind = YEARLY_JULIAN;
        ok = take_number(s, 3, 1, 365, &ret->day);
    } else {
        ret->kind = YEARLY_ZERO_DAY;
        ok = take_number(s, 3, 0, 365, &ret->day);
    }
    ret->time_s = 2 * 3600;
    return ok && (!take_char(s, '/') || take_time(s, 167, &ret->time_s));
}

static bool parse_rule(struct str s, struct zone_rule *ret)
{
    struct zone_rule r = {.given = true};
    int32_t west_s;
    if (!take_name(&s) || !take_time(&s, 24, &west_s))
        return false;
    r.std_offset_s = -west_s;
    r.has_dst = s.len > 0;
    if (r.has_dst) {
        west_s -= 3600;
        if (!take_name(&s) || (s.len > 0 && s.ptr[0] != ',' && !take_time(&s, 24, &west_s)))
            return false;
        r.dst_offset_s = -west_s;
        /* POSIX lets the dates be left out and a reader choose them. Not this one. */
        if (!take_char(&s, ',') || !take_yearly(&s, &r.dst_start) || !take_char(&s, ',') ||
            !take_yearly(&s, &r.dst_end))
            return false;
    }
    *ret = r;
    return s.len == 0;
}

/* --- reading the file --- */

enum { TZIF_HEADER_LEN = 44, TZIF_TYPE_LEN = 6, TZIF_TYPES_MAX = 256 };

/* A header and what it says of the data block that follows it, in the order of the file. */
struct tzif_head {
    char version;
    uint32_t ut_count;
    uint32_t std_count;
    uint32_t leap_count;
    uint32_t time_count;
    uint32_t type_count;
    uint32_t char_count;
};

struct tzif_block {
    struct str times;
    struct str indexes;
    struct str types;
};

static uint64_t big_endian(const char *bytes, size_t len)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static bool take_bytes(struct str *s, uint64_t len, struct str *ret)
{
    if (len > s->len)
        return false;
    *ret = (struct str){s->ptr, (size_t)len};
    s->ptr += len;
    s->len -= (size_t)len;
    return true;
}

static bool take_head(struct str *s, struct tzif_head *ret)
{
    struct str head;
    if (!take_bytes(s, TZIF_HEADER_LEN, &head) || !str_starts_with(head, STR("TZif")))
        return false;
    ret->version = head.ptr[4];
    uint32_t *const counts[] = {&ret->ut_count,   &ret->std_count,  &ret->leap_count,
                                &ret->time_count, &ret->type_count, &ret->char_count};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        *counts[i] = (uint32_t)big_endian(head.ptr + 20 + 4 * i, 4);
    return true;
}

static bool take_block(struct str *s, const struct tzif_head *h, size_t time_len,
                       struct tzif_block *ret)
{
    struct str names_and_rest;
    uint64_t rest_len = (uint64_t)h->char_count + (uint64_t)h->leap_count * (time_len + 4) +
                        h->std_count + h->ut_count;
    return take_bytes(s, (uint64_t)h->time_count * time_len, &ret->times) &&
           take_bytes(s, h->time_count, &ret->indexes) &&
           take_bytes(s, (uint64_t)h->type_count * TZIF_TYPE_LEN, &ret->types) &&
           take_bytes(s, rest_len, &names_and_rest);
}

/* The offset of a type; false when it is none that RFC 9636 allows. */
static bool type_offset(const struct tzif_head *h, const struct tzif_block *b, size_t type,
                        int32_t *ret)
{
    const char *at = b->types.ptr + type * TZIF_TYPE_LEN;
    int32_t offset = (int32_t)(uint32_t)big_endian(at, 4);
    unsigned char is_dst = (unsigned char)at[4];
    unsigned char name = (unsigned char)at[5];
    if (offset < ZONE_OFFSET_MIN_S || offset > ZONE_OFFSET_MAX_S || is_dst > 1 ||
        name >= h->char_count)
        return false;
    *ret = offset;
    return true;
}

/* Each of these returns what is wrong, or NULL. */

static const char *check_head(const struct tzif_head *h)
{
    if (h->leap_count != 0)
        return "it counts leap seconds, which this server's clock does not";
    if (h->type_count == 0 || h->type_count > TZIF_TYPES_MAX || h->char_count == 0)
        return "it has no usable time types";
    if ((h->ut_count != 0 && h->ut_count != h->type_count) ||
        (h->std_count != 0 && h->std_count != h->type_count))
        return "the counts in its header contradict each other";
    return NULL;
}

/* `changes` has room for time_count of them. */
static const char *read_changes(const struct tzif_head *h, const struct tzif_block *b,
                                size_t time_len, struct zone_change *changes)
{
    int32_t offsets[TZIF_TYPES_MAX];
    for (size_t i = 0; i < h->type_count; i++) {
        if (!type_offset(h, b, i, &offsets[i]))
            return "a time type is not valid";
    }
    for (size_t i = 0; i < h->time_count; i++) {
        uint64_t bits = big_endian(b->times.ptr + i * time_len, time_len);
        int64_t at_s = time_len == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
        size_t type = (unsigned char)b->indexes.ptr[i];
        if (type >= h->type_count)
            return "a transition refers to a time type that it does not have";
        if (i > 0 && at_s <= changes[i - 1].at_s)
            return "its transitions are not in chronological order";
        changes[i] = (struct zone_change){at_s, offsets[type]};
    }
    return NULL;
}

/* The line after the last block: a newline, the rule or nothing, a newline. */
static const char *read_footer(struct str rest, struct zone_rule *ret)
{
    struct str text;
    struct str beyond;
    if (!take_char(&rest, '\n') || !str_cut(rest, '\n', &text, &beyond))
        return "its last line is missing";
    if (text.len > 0 && !parse_rule(text, ret))
        return "the rule in its last line is not valid";
    return NULL;
}

static enum err refuse(struct problem *p, const char *why)
{
    return problem_set(p, ERR_FIELD_INVALID, "timezone: the zone's file cannot be used: %s", why);
}

enum err zone_parse(struct str tzif, struct arena *arena, struct problem *p, struct zone *ret)
{
    struct tzif_head h;
    struct tzif_block block;
    struct str rest = tzif;
    size_t time_len = 4;
    if (!take_head(&rest, &h))
        return refuse(p, "it is not a TZif file");
    bool has_second = h.version >= '2';
    if (has_second) {
        /* The first block is for readers of version 1, and says less. */
        time_len = 8;
        if (!take_block(&rest, &h, 4, &block) || !take_head(&rest, &h))
            return refuse(p, "it is truncated");
    } else if (h.version != '\0') {
        return refuse(p, "its version is unknown");
    }
    const char *why = check_head(&h);
    if (why != NULL)
        return refuse(p, why);
    if (!take_block(&rest, &h, time_len, &block))
        return refuse(p, "it is truncated");

    struct zone zone = {.change_count = h.time_count};
    struct zone_change *changes = arena_alloc(arena, h.time_count * sizeof(*changes));
    if (changes == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for the time zone");
    zone.changes = changes;
    why = read_changes(&h, &block, time_len, changes);
    if (why == NULL && has_second)
        why = read_footer(rest, &zone.rule);
    if (why != NULL)
        return refuse(p, why);
    bool ok = type_offset(&h, &block, 0, &zone.first_offset_s);
    assert(ok); /* as read_changes saw */
    *ret = zone;
    return ERR_OK;
}
