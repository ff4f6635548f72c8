/* Numbers of JSON, compared and divided without rounding. */
#include "domain/schema/schema_number.h"

#include <math.h>

static const double TWO_TO_63 = 9223372036854775808.0;

struct number schema_number_of(const struct json *value)
{
    if (json_is(value, JSON_KIND_INTEGER)) {
        int64_t whole = value->integer;
        return (struct number){true, whole, (double)whole};
    }
    double real = value->real;
    if (real == floor(real) && real >= -TWO_TO_63 && real < TWO_TO_63)
        return (struct number){true, (int64_t)real, real};
    return (struct number){false, 0, real};
}

/* A real that is no whole number of 64 bits: it has a fraction, or is beyond all of them. */
static int compare_whole(int64_t whole, double real)
{
    if (real >= TWO_TO_63)
        return -1;
    if (real < -TWO_TO_63)
        return 1;
    return whole <= (int64_t)floor(real) ? -1 : 1;
}

int schema_number_compare(struct number a, struct number b)
{
    if (a.exact && b.exact)
        return a.whole < b.whole ? -1 : a.whole > b.whole;
    if (a.exact)
        return compare_whole(a.whole, b.real);
    if (b.exact)
        return -compare_whole(b.whole, a.real);
    return a.real < b.real ? -1 : a.real > b.real;
}

/* digits × 10^exponent, without its sign: what people read and write. */
struct decimal {
    uint64_t digits;
    int exponent;
};

static struct decimal decimal_of(struct number n)
{
    if (n.exact)
        return (struct decimal){n.whole < 0 ? -(uint64_t)n.whole : (uint64_t)n.whole, 0};
    char digits[20];
    int exponent;
    int count = json_double_digits(fabs(n.real), digits, &exponent);
    struct decimal d = {0, exponent - (count - 1)};
    for (int i = 0; i < count; i++)
        d.digits = d.digits * 10 + (uint64_t)(digits[i] - '0');
    return d;
}

/* Is a whole number a × 10^power a multiple of b? */
static bool divides_scaled(uint64_t a, int power, uint64_t b)
{
    assert(b > 0);
    __extension__ unsigned __int128 rest = a % b;
    for (; power > 0 && rest != 0; power--)
        rest = rest * 10 % b;
    return rest == 0;
}

bool schema_number_is_multiple(struct number value, struct number of)
{
    assert(of.exact ? of.whole > 0 : of.real > 0);
    if (value.exact && of.exact)
        return value.whole % of.whole == 0;
    struct decimal a = decimal_of(value);
    struct decimal b = decimal_of(of);
    assert(b.digits > 0);
    if (a.exponent >= b.exponent)
        return divides_scaled(a.digits, a.exponent - b.exponent, b.digits);
    /* Now a must be a multiple of b × 10^n: it ends with n zeros. */
    for (int n = b.exponent - a.exponent; n > 0 && a.digits != 0; n--) {
        if (a.digits % 10 != 0)
            return false;
        a.digits /= 10;
    }
    return a.digits % b.digits == 0;
}
