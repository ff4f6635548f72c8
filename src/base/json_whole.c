/* Whole numbers in JSON, however they are written. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

#define DOUBLE_EXACT_MAX (INT64_C(1) << 53)

bool json_whole(const json_t *value, int64_t *ret)
{
    if (json_is_integer(value)) {
        *ret = json_integer_value(value);
        return true;
    }
    double real = json_real_value(value);
    if (!json_is_real(value) || real != floor(real) || fabs(real) > (double)DOUBLE_EXACT_MAX)
        return false;
    *ret = (int64_t)real;
    return true;
}

enum { DIGITS_KEPT = 20 }; /* one more than 64 bits have */

/* A number as it is written: digits × 10^exponent, without zeros around the digits. */
struct decimal {
    bool negative;
    char digits[DIGITS_KEPT]; /* the first of them */
    int count;                /* of all of them */
    int zeros;                /* read behind the last of them, not in the exponent yet */
    int exponent;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits_at(struct str text, size_t at)
{
    size_t n = 0;
    while (at + n < text.len && is_digit(text.ptr[at + n]))
        n++;
    return n;
}

static void add_digit(struct decimal *d, char c)
{
    if (d->count < DIGITS_KEPT)
        d->digits[d->count] = c;
    d->count++;
}

static void add_digits(struct decimal *d, struct str text, size_t from, size_t count, bool fraction)
{
    for (size_t i = 0; i < count; i++) {
        d->exponent -= fraction;
        if (text.ptr[from + i] == '0') {
            d->zeros += d->count > 0;
            continue;
        }
        for (; d->zeros > 0; d->zeros--)
            add_digit(d, '0');
        add_digit(d, text.ptr[from + i]);
    }
}

/* The number that begins at `at`. Returns the length of its text, 0 when it is none. */
static size_t scan_number(struct str text, size_t at, struct decimal *ret)
{
    size_t i = at;
    *ret = (struct decimal){.negative = text.ptr[at] == '-'};
    i += ret->negative;
    size_t whole = digits_at(text, i);
    if (whole == 0 || (whole > 1 && text.ptr[i] == '0'))
        return 0;
    add_digits(ret, text, i, whole, false);
    i += whole;
    if (i < text.len && text.ptr[i] == '.') {
        size_t fraction = digits_at(text, i + 1);
        add_digits(ret, text, i + 1, fraction, true);
        i += 1 + fraction;
        if (fraction == 0)
            return 0;
    }
    if (i < text.len && (text.ptr[i] == 'e' || text.ptr[i] == 'E')) {
        i++;
        bool minus = i < text.len && text.ptr[i] == '-';
        i += i < text.len && (text.ptr[i] == '-' || text.ptr[i] == '+');
        size_t count = digits_at(text, i);
        if (count == 0)
            return 0;
        int power = 0;
        for (size_t k = 0; k < count; k++)
            power = MIN(10 * power + (text.ptr[i + k] - '0'), 10000);
        ret->exponent += minus ? -power : power;
        i += count;
    }
    ret->exponent += ret->zeros;
    ret->zeros = 0;
    return i - at;
}

/* True for a whole number of 64 bits that a double may not hold exactly. */
static bool needs_integer(const struct decimal *d, int64_t *ret)
{
    if (d->count == 0 || d->exponent < 0 || d->count + d->exponent > 19)
        return false;
    uint64_t value = 0;
    for (int i = 0; i < d->count + d->exponent; i++)
        value = 10 * value + (uint64_t)(i < d->count ? d->digits[i] - '0' : 0);
    if (value <= (uint64_t)DOUBLE_EXACT_MAX || value > (uint64_t)INT64_MAX)
        return false;
    *ret = d->negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* The double nearest to one that is no whole number. Beyond 2^53 it is one all the same: that which
 * its shortest digits say, so that it reads as it is written. */
static bool is_whole_when_rounded(const struct decimal *d, int64_t *ret)
{
    int before_point = d->count + d->exponent;
    if (d->count == 0 || before_point < 16 || before_point > 19)
        return false;
    char text[DIGITS_KEPT + 16];
    int kept = MIN(d->count, (int)DIGITS_KEPT);
    /* The digits that were not kept are not all zeros: a 1 rounds as they would. */
    (void)snprintf(text, sizeof(text), "%.*s%de%d", kept, d->digits, d->count > kept,
                   before_point - kept - 1);
    struct decimal nearest = {.negative = d->negative};
    int exponent;
    char digits[20];
    int count = json_double_digits(strtod(text, NULL), digits, &exponent);
    for (int i = 0; i < count; i++)
        add_digit(&nearest, digits[i]);
    nearest.exponent = exponent + 1 - count;
    return needs_integer(&nearest, ret);
}

/* Everything that could be a part of a number. If more of it stands there than a number has, the
 * text is malformed, and writing a part of it in another way could make it well-formed. */
static size_t length_of_run(struct str text, size_t at)
{
    size_t n = 0;
    while (at + n < text.len &&
           (is_digit(text.ptr[at + n]) || text.ptr[at + n] == '.' || text.ptr[at + n] == '+' ||
            text.ptr[at + n] == '-' || (text.ptr[at + n] | 0x20) == 'e'))
        n++;
    return n;
}

bool json_put_whole_numbers(struct buf *out, struct str text)
{
    size_t done = 0;
    bool in_text = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_text) {
            i += c == '\\';
            in_text = c != '"';
        } else if (c == '"') {
            in_text = true;
        } else if (c == '-' || is_digit(c)) {
            struct decimal d;
            int64_t value;
            size_t run = length_of_run(text, i);
            size_t len = scan_number(text, i, &d);
            bool plain = len == (c == '-') + digits_at(text, i + (c == '-'));
            if (len == run && !plain &&
                (needs_integer(&d, &value) || is_whole_when_rounded(&d, &value))) {
                buf_put_bytes(out, text.ptr + done, i - done);
                buf_put_i64(out, value);
                done = i + len;
            }
            i += run - 1;
        }
    }
    if (done > 0)
        buf_put_bytes(out, text.ptr + done, text.len - done);
    return done > 0;
}
