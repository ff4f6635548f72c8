/* Numbers in JSON: exact integers, nearest doubles, shortest digits. */
#include "base/json/number.h"

#include <float.h>
#include <math.h>

enum {
    DIGITS_MAX = 19,       /* that always fit 64 bits */
    POWER_MAX = 100000000, /* an exponent beyond this says the same; no text is so long */
    EXACT_POWER_MAX = 22,  /* the largest power of ten that a double holds exactly */
};

#define DOUBLE_EXACT_MAX (UINT64_C(1) << 53)

static const double POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
static_assert(ARRAY_LEN(POWERS_OF_TEN) == EXACT_POWER_MAX + 1, "one for each");

/* --- reading --- */

/* A number as it is written: mantissa × 10^exponent, and more digits if some did not fit. */
struct literal {
    uint64_t mantissa; /* the first DIGITS_MAX digits after leading zeros */
    int digits;        /* in it */
    int64_t exponent;
    bool negative;
    bool has_power; /* an e */
    bool is_cut;    /* a digit that did not fit is not 0 */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char *take_digits(struct literal *l, char *at, bool fraction)
{
    for (; is_digit(*at); at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (l->digits < DIGITS_MAX) {
            l->mantissa = 10 * l->mantissa + digit;
            l->digits += l->mantissa > 0;
            l->exponent -= fraction;
        } else {
            l->is_cut |= digit != 0;
            l->exponent += !fraction;
        }
    }
    return at;
}

/* Behind the e. */
static char *take_power(struct literal *l, char *at)
{
    bool minus = *at == '-';
    at += *at == '-' || *at == '+';
    l->has_power = true;
    int64_t power = 0;
    for (; is_digit(*at); at++)
        power = MIN(10 * power + (*at - '0'), (int64_t)POWER_MAX);
    l->exponent += minus ? -power : power;
    return at;
}

/* Correctly rounded. One division or product of exact numbers is; strtod() is for the rest. */
static double nearest_double(const struct literal *l, const char *text)
{
    if (!l->is_cut && l->mantissa <= DOUBLE_EXACT_MAX && l->exponent >= -EXACT_POWER_MAX &&
        l->exponent <= EXACT_POWER_MAX) {
        double whole = (double)l->mantissa;
        double value = l->exponent < 0 ? whole / POWERS_OF_TEN[-l->exponent]
                                       : whole * POWERS_OF_TEN[l->exponent];
        return l->negative ? -value : value;
    }
    return strtod(text, NULL);
}

/* True for a whole number of 64 bits that a double may not hold exactly. It has at most DIGITS_MAX
 * digits before the point. */
static bool is_large_whole(struct literal l, int64_t *ret)
{
    for (; l.exponent < 0 && l.mantissa % 10 == 0; l.exponent++)
        l.mantissa /= 10;
    if (l.is_cut || l.exponent < 0)
        return false;
    for (; l.exponent > 0; l.exponent--)
        l.mantissa *= 10;
    if (l.mantissa <= DOUBLE_EXACT_MAX || l.mantissa > (uint64_t)INT64_MAX)
        return false;
    *ret = l.negative ? -(int64_t)l.mantissa : (int64_t)l.mantissa;
    return true;
}

/* The same of the shortest digits of a double. */
static bool is_large_whole_double(double value, int64_t *ret)
{
    char digits[20];
    int exponent;
    int count = json_double_digits(fabs(value), digits, &exponent);
    struct literal l = {.exponent = exponent + 1 - count, .negative = value < 0};
    for (int i = 0; i < count; i++)
        l.mantissa = 10 * l.mantissa + (uint64_t)(digits[i] - '0');
    return is_large_whole(l, ret);
}

static const char *set_integer(const struct literal *l, struct json *ret)
{
    uint64_t max = (uint64_t)INT64_MAX + l->negative;
    if (l->exponent > 0 || l->mantissa > max)
        return "the number is an integer outside of 64 bits";
    ret->kind = JSON_KIND_INTEGER;
    ret->integer = (int64_t)(l->negative ? 0 - l->mantissa : l->mantissa);
    ret->is_plain = l->mantissa > 0 || !l->negative;
    return NULL;
}

/* Is it written as json_write_plain() would write it? No two numbers of 15 digits are the same
 * double, so these digits are the shortest, unless they end with a 0 that 1.0 does not need.
 * Others, and what has an exponent or would get one, are left for json_write_plain(). */
static bool is_plain_real(const struct literal *l)
{
    bool is_fixed = !l->has_power && l->exponent < 0 && l->digits + l->exponent > -6;
    bool is_shortest = l->digits <= DBL_DIG && (l->mantissa % 10 != 0 || l->exponent == -1);
    return is_fixed && is_shortest && (l->mantissa > 0 || !l->negative);
}

static const char *set_real(const struct literal *l, const char *text, struct json *ret)
{
    int64_t before_point = l->digits + l->exponent;
    /* 2^53 has 16 digits, 2^63 has 19. */
    bool may_be_large = l->digits > 0 && before_point >= 16 && before_point <= DIGITS_MAX;
    ret->kind = JSON_KIND_INTEGER;
    if (may_be_large && is_large_whole(*l, &ret->integer))
        return NULL;
    double value = nearest_double(l, text);
    if (!isfinite(value))
        return "the number is too large for a double";
    if (may_be_large && is_large_whole_double(value, &ret->integer))
        return NULL;
    ret->kind = JSON_KIND_REAL;
    ret->real = value;
    ret->is_plain = is_plain_real(l);
    return NULL;
}

const char *json_number_read(char **at, struct json *ret)
{
    char *from = *at;
    struct literal l = {.negative = *from == '-'};
    char *whole = from + l.negative;
    *at = take_digits(&l, whole, false);
    if (*at == whole)
        return "a digit is missing";
    if (*whole == '0' && *at - whole > 1) {
        *at = whole + 1;
        return "a number must not begin with 0";
    }
    bool is_real = false;
    if (**at == '.') {
        char *fraction = *at + 1;
        *at = take_digits(&l, fraction, true);
        if (*at == fraction)
            return "a digit is missing";
        is_real = true;
    }
    if (**at == 'e' || **at == 'E') {
        *at = take_power(&l, *at + 1);
        if (!is_digit((*at)[-1]))
            return "a digit is missing";
        is_real = true;
    }
    const char *fault = is_real ? set_real(&l, from, ret) : set_integer(&l, ret);
    if (fault != NULL)
        *at = from;
    return fault;
}

/* --- writing --- */

/* Decimals as people write them, of 15 digits at most. Two of these never have the same nearest
 * double, so that one which reads back is the shortest. */
static bool few_digits(double value, char digits[static 20], int *ret_count, int *ret_exponent)
{
    int places = 0;
    double scaled = value;
    for (; places <= EXACT_POWER_MAX; places++) {
        scaled = value * POWERS_OF_TEN[places];
        if (scaled >= 1e15)
            return false;
        scaled = (double)(int64_t)(scaled + 0.5);
        if (scaled / POWERS_OF_TEN[places] == value)
            break;
    }
    if (places > EXACT_POWER_MAX)
        return false;
    uint64_t left = (uint64_t)scaled;
    for (; left % 10 == 0; left /= 10)
        places--;
    int count = 0;
    for (uint64_t rest = left; rest > 0; rest /= 10)
        count++;
    for (int i = count; i > 0; left /= 10)
        digits[--i] = (char)('0' + left % 10);
    *ret_count = count;
    *ret_exponent = count - 1 - places;
    return true;
}

/* Does the value read back from so many digits? Then they are in text: d.ddde±d. */
static bool reads_back(double value, int count, char *text, size_t size)
{
    (void)snprintf(text, size, "%.*e", count - 1, value);
    if (strtod(text, NULL) == value)
        return true;
    int exponent;
    if (frexp(value, &exponent) != 0.5)
        return false;
    /* Below a power of two doubles lie twice as dense, so that the nearest decimal may miss while
     * its upper neighbour still reads back: try that one before using more digits. */
    char *last = &text[count == 1 ? 0 : count];
    if (*last == '9')
        return false;
    (*last)++;
    return strtod(text, NULL) == value;
}

int json_double_digits(double value, char digits[static 20], int *ret_exponent)
{
    assert(isfinite(value) && value > 0);
    int count;
    if (few_digits(value, digits, &count, ret_exponent))
        return count;
    char text[40];
    /* What 15 digits can say, 15 digits do say, with zeros at the end. Only the smallest doubles
     * have less precision than that. */
    count = value < DBL_MIN ? 1 : DBL_DIG;
    while (!reads_back(value, count, text, sizeof(text)))
        count++;
    assert(count <= 17);
    char *e = strchr(text, 'e');
    assert(e != NULL);
    *ret_exponent = (int)strtol(e + 1, NULL, 10);
    int n = 0;
    for (const char *c = text; c < e; c++) {
        if (*c != '.')
            digits[n++] = *c;
    }
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

static void put_zeros(struct buf *out, int count)
{
    for (int i = 0; i < count; i++)
        buf_put_char(out, '0');
}

void json_put_double(struct buf *out, double value)
{
    assert(isfinite(value));
    if (value == 0) {
        buf_put_char(out, '0');
        return;
    }
    if (value < 0) {
        buf_put_char(out, '-');
        value = -value;
    }
    char digits[20] = "0";
    int exponent = 0;
    int count = json_double_digits(value, digits, &exponent);
    int point = exponent + 1; /* digits before the decimal point */
    if (count <= point && point <= 21) {
        buf_put_bytes(out, digits, (size_t)count);
        put_zeros(out, point - count);
    } else if (0 < point && point < count) {
        buf_put_bytes(out, digits, (size_t)point);
        buf_put_char(out, '.');
        buf_put_bytes(out, digits + point, (size_t)(count - point));
    } else if (-6 < point && point <= 0) {
        buf_put(out, STR("0."));
        put_zeros(out, -point);
        buf_put_bytes(out, digits, (size_t)count);
    } else {
        buf_put_char(out, digits[0]);
        if (count > 1) {
            buf_put_char(out, '.');
            buf_put_bytes(out, digits + 1, (size_t)(count - 1));
        }
        buf_put_char(out, 'e');
        buf_put_char(out, exponent < 0 ? '-' : '+');
        buf_put_i64(out, exponent < 0 ? -exponent : exponent);
    }
}
