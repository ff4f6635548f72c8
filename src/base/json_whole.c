/* Whole numbers in JSON, however they are written. */
#include "base/json.h"

#include <math.h>

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

/* A number as it is written: DIGITS × 10^exponent. */
struct decimal {
    bool negative;
    char digits[20]; /* without zeros around them */
    int count;
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

/* False for one with more digits than 64 bits have. */
static bool add_digits(struct decimal *d, struct str text, size_t from, size_t count, bool fraction)
{
    for (size_t i = 0; i < count; i++) {
        char c = text.ptr[from + i];
        d->exponent -= fraction;
        if (d->count == 0 && c == '0')
            continue;
        if (d->count == (int)sizeof(d->digits))
            return false;
        d->digits[d->count++] = c;
    }
    return true;
}

/* The number that begins at `at`; *ret_len is the length of its text, 0 when it is none. False when
 * it is too long to be one of ours. */
static bool scan_number(struct str text, size_t at, size_t *ret_len, struct decimal *ret)
{
    size_t i = at;
    *ret = (struct decimal){.negative = text.ptr[at] == '-'};
    *ret_len = 0;
    i += ret->negative;
    size_t whole = digits_at(text, i);
    if (whole == 0 || (whole > 1 && text.ptr[i] == '0'))
        return false;
    bool fits = add_digits(ret, text, i, whole, false);
    i += whole;
    if (i < text.len && text.ptr[i] == '.') {
        size_t fraction = digits_at(text, i + 1);
        fits = fits && add_digits(ret, text, i + 1, fraction, true);
        i += 1 + fraction;
        if (fraction == 0)
            return false;
    }
    if (i < text.len && (text.ptr[i] == 'e' || text.ptr[i] == 'E')) {
        i++;
        bool minus = i < text.len && text.ptr[i] == '-';
        i += i < text.len && (text.ptr[i] == '-' || text.ptr[i] == '+');
        size_t count = digits_at(text, i);
        if (count == 0)
            return false;
        int power = 0;
        for (size_t k = 0; k < count; k++)
            power = MIN(10 * power + (text.ptr[i + k] - '0'), 10000);
        ret->exponent += minus ? -power : power;
        i += count;
    }
    *ret_len = i - at;
    return fits;
}

/* True for a whole number of 64 bits that a double may not hold exactly. */
static bool needs_integer(struct decimal *d, int64_t *ret)
{
    while (d->count > 0 && d->digits[d->count - 1] == '0') {
        d->count--;
        d->exponent++;
    }
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
            size_t len;
            int64_t value;
            bool fits = scan_number(text, i, &len, &d);
            bool plain = len == (c == '-') + digits_at(text, i + (c == '-'));
            if (len > 0 && fits && !plain && needs_integer(&d, &value)) {
                buf_put_bytes(out, text.ptr + done, i - done);
                buf_put_i64(out, value);
                done = i + len;
            }
            i += MAX(len, (size_t)1) - 1;
        }
    }
    if (done > 0)
        buf_put_bytes(out, text.ptr + done, text.len - done);
    return done > 0;
}
