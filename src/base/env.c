/* Clock, randomness, ids and the text of times. */
#include "base/env.h"

#include "base/digits.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum { RANDOM_POOL = 1024 };

/* --- the machine's own world --- */

static int64_t system_now_us(void *ctx)
{
    (void)ctx;
    struct timespec ts;
    int rc = clock_gettime(CLOCK_REALTIME, &ts);
    assert(rc == 0);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t system_mono_ns(void *ctx)
{
    (void)ctx;
    struct timespec ts;
    int rc = clock_gettime(CLOCK_MONOTONIC, &ts);
    assert(rc == 0);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void kernel_random(unsigned char *out, size_t len)
{
    while (len > 0) {
        ssize_t got = getrandom(out, len, 0);
        /* Fails only when interrupted before the pool is first filled, at boot. */
        if (got > 0) {
            out += got;
            len -= (size_t)got;
        }
    }
}

/* Each thread draws from the kernel in larger gulps: a system call per id would be felt. */
static void system_random(void *ctx, void *out, size_t len)
{
    static _Thread_local unsigned char pool[RANDOM_POOL];
    static _Thread_local size_t left;
    (void)ctx;
    if (len > RANDOM_POOL / 4) {
        kernel_random(out, len);
        return;
    }
    if (left < len) {
        kernel_random(pool, sizeof(pool));
        left = sizeof(pool);
    }
    left -= len;
    memcpy(out, pool + left, len);
    memset(pool + left, 0, len);
}

const struct env ENV_SYSTEM = {system_now_us, system_mono_ns, system_random, NULL};

int64_t env_now_ms(const struct env *e)
{
    return e->now_us(e->ctx) / 1000;
}

int64_t env_mono_ns(const struct env *e)
{
    return e->mono_ns(e->ctx);
}

int64_t env_mono_ms(const struct env *e)
{
    return e->mono_ns(e->ctx) / 1000000;
}

struct timespec env_wait_until(int64_t ms)
{
    struct timespec until;
    int rc = clock_gettime(CLOCK_MONOTONIC, &until);
    assert(rc == 0);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

void env_random(const struct env *e, void *out, size_t len)
{
    e->random(e->ctx, out, len);
}

/* --- ids --- */

struct uuid env_new_id(const struct env *e)
{
    struct uuid id;
    int64_t us = e->now_us(e->ctx);
    env_random(e, id.bytes + 8, 8);
    id.bytes[8] = (unsigned char)(0x80 | (id.bytes[8] & 0x3F));
    /* RFC 9562, method 3: the twelve bits after the milliseconds hold the fraction of the one
     * begun. */
    uuid_set_time(&id, us / 1000 * 4096 + us % 1000 * 4096 / 1000);
    return id;
}

bool uuid_is_nil(struct uuid id)
{
    static const struct uuid NIL = {{0}};
    return memcmp(&id, &NIL, sizeof(id)) == 0;
}

int64_t uuid_time(struct uuid id)
{
    int64_t time = 0;
    for (size_t i = 0; i < 6; i++)
        time = time << 8 | id.bytes[i];
    return time << 12 | (id.bytes[6] & 0x0F) << 8 | id.bytes[7];
}

void uuid_set_time(struct uuid *id, int64_t time)
{
    assert(time >= 0 && time < INT64_C(1) << 60);
    uint64_t ms = (uint64_t)time >> 12;
    for (size_t i = 0; i < 6; i++)
        id->bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
    id->bytes[6] = (unsigned char)(0x70 | ((time >> 8) & 0x0F));
    id->bytes[7] = (unsigned char)(time & 0xFF);
}

void uuid_put(char at[static UUID_TEXT_LEN], struct uuid id)
{
    /* Where the digits of each byte are, between the hyphens. */
    static const unsigned char PLACES[] = {0,  2,  4,  6,  9,  11, 14, 16,
                                           19, 21, 24, 26, 28, 30, 32, 34};
    static_assert(sizeof(PLACES) == sizeof(id.bytes), "one place per byte");
    at[8] = at[13] = at[18] = at[23] = '-';
#pragma GCC unroll 16
    for (size_t i = 0; i < sizeof(PLACES); i++)
        digits_put_hex(at + PLACES[i], id.bytes[i]);
}

void buf_put_uuid(struct buf *b, struct uuid id)
{
    char *text = buf_extend(b, UUID_TEXT_LEN);
    if (text != NULL)
        uuid_put(text, id);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool uuid_parse(struct str text, struct uuid *ret)
{
    if (text.len != UUID_TEXT_LEN)
        return false;
    struct uuid id;
    size_t at = 0;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (text.ptr[at++] != '-')
                return false;
        }
        int high = hex_digit(text.ptr[at++]);
        int low = hex_digit(text.ptr[at++]);
        if (high < 0 || low < 0)
            return false;
        id.bytes[i] = (unsigned char)(high << 4 | low);
    }
    *ret = id;
    return true;
}

bool uuid_parse_prefix(struct str text, struct uuid *ret_low, struct uuid *ret_high)
{
    static const char LOW[] = "00000000-0000-0000-0000-000000000000",
                      HIGH[] = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    char low[sizeof(LOW)], high[sizeof(HIGH)];
    if (text.len == 0 || text.len > UUID_TEXT_LEN)
        return false;
    memcpy(low, LOW, sizeof(low));
    memcpy(high, HIGH, sizeof(high));
    memcpy(low, text.ptr, text.len);
    memcpy(high, text.ptr, text.len);
    struct uuid least, greatest;
    if (!uuid_parse(str_of(low), &least) || !uuid_parse(str_of(high), &greatest))
        return false;
    *ret_low = least;
    *ret_high = greatest;
    return true;
}

bool uuid_eq(struct uuid a, struct uuid b)
{
    return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

/* --- times --- */

/* Days since 1970-01-01 of a date of the Gregorian calendar, by counting years from March on. */
static int64_t days_from_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void date_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;
    *ret_day = (int)(day_of_year - (153 * shifted_month + 2) / 5 + 1);
    *ret_month = (int)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    *ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

/* The text of a second, without its fraction. */
static void second_text(char text[static TIME_TEXT_LEN], int64_t seconds)
{
    enum { DAY_S = 86400 };
    int64_t days = seconds / DAY_S;
    int64_t rest = seconds % DAY_S;
    if (rest < 0) {
        rest += DAY_S;
        days--;
    }
    int64_t year;
    int month;
    int day;
    date_from_days(days, &year, &month, &day);
    assert(year >= 1 && year <= 9999);
    memcpy(text, "0000-00-00T00:00:00.000Z", TIME_TEXT_LEN);
    const unsigned pairs[] = {(unsigned)year / 100, (unsigned)year % 100,  (unsigned)month,
                              (unsigned)day,        (unsigned)rest / 3600, (unsigned)rest / 60 % 60,
                              (unsigned)rest % 60};
    static const size_t AT[ARRAY_LEN(pairs)] = {0, 2, 5, 8, 11, 14, 17};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        digits_put_pair(text + AT[i], pairs[i]);
}

/* Most times that are written are of the same second as one of the last: now, or as long after as a
 * step sleeps. */
void buf_put_time(struct buf *b, int64_t ms)
{
    enum { KEPT = 8 };
    static _Thread_local struct {
        int64_t seconds;
        char text[TIME_TEXT_LEN];
    } kept[KEPT];
    int64_t fraction = ms % 1000;
    int64_t seconds = ms / 1000;
    if (fraction < 0) {
        fraction += 1000;
        seconds--;
    }
    size_t slot = (size_t)((uint64_t)seconds * UINT64_C(0x9E3779B97F4A7C15) >> 61);
    if (seconds != kept[slot].seconds || kept[slot].text[0] == '\0') {
        second_text(kept[slot].text, seconds);
        kept[slot].seconds = seconds;
    }
    char *text = buf_extend(b, TIME_TEXT_LEN);
    if (text == NULL)
        return;
    memcpy(text, kept[slot].text, TIME_TEXT_LEN);
    text[20] = (char)('0' + fraction / 100);
    digits_put_pair(text + 21, (unsigned)(fraction % 100));
}

/* Exactly `count` digits from s, which it shortens. */
static bool take_digits(struct str *s, size_t count, int *ret)
{
    if (s->len < count)
        return false;
    int value = 0;
    for (size_t i = 0; i < count; i++) {
        if (s->ptr[i] < '0' || s->ptr[i] > '9')
            return false;
        value = value * 10 + (s->ptr[i] - '0');
    }
    s->ptr += count;
    s->len -= count;
    *ret = value;
    return true;
}

static bool take_char(struct str *s, const char *one_of)
{
    if (s->len == 0 || s->ptr[0] == '\0' || strchr(one_of, s->ptr[0]) == NULL)
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static bool take_fraction(struct str *s, int *ret_ms)
{
    *ret_ms = 0;
    if (!take_char(s, "."))
        return true;
    int scale = 100;
    size_t count = 0;
    for (; s->len > 0 && s->ptr[0] >= '0' && s->ptr[0] <= '9'; count++) {
        *ret_ms += (s->ptr[0] - '0') * scale;
        scale /= 10;
        s->ptr++;
        s->len--;
    }
    return count > 0;
}

static bool take_offset(struct str *s, int *ret_minutes)
{
    *ret_minutes = 0;
    if (take_char(s, "Zz"))
        return true;
    bool west = s->len > 0 && s->ptr[0] == '-';
    int hours;
    int minutes;
    if (!take_char(s, "+-") || !take_digits(s, 2, &hours) || !take_char(s, ":") ||
        !take_digits(s, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
    return true;
}

static int days_in_month(int year, int month)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : DAYS[month - 1];
}

bool time_parse(struct str s, int64_t *ret_ms)
{
    int year, month, day, hour, minute, second, ms, offset;
    if (!take_digits(&s, 4, &year) || !take_char(&s, "-") || !take_digits(&s, 2, &month) ||
        !take_char(&s, "-") || !take_digits(&s, 2, &day) || !take_char(&s, "Tt ") ||
        !take_digits(&s, 2, &hour) || !take_char(&s, ":") || !take_digits(&s, 2, &minute) ||
        !take_char(&s, ":") || !take_digits(&s, 2, &second) || !take_fraction(&s, &ms) ||
        !take_offset(&s, &offset) || s.len != 0)
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) ||
        hour > 23 || minute > 59 || second > 60)
        return false;
    int64_t days = days_from_date(year, month, day);
    int64_t seconds = days * 86400 + hour * 3600 + minute * 60 + second - (int64_t)offset * 60;
    /* An offset or a leap second may lead out of the years that buf_put_time can write. */
    if (seconds < days_from_date(1, 1, 1) * 86400 || seconds >= days_from_date(10000, 1, 1) * 86400)
        return false;
    *ret_ms = seconds * 1000 + ms;
    return true;
}
