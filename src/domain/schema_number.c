/* Numbers of JSON, compared without rounding. */
#include "domain/schema_number.h"

#include <float.h>
#include <math.h>

struct number schema_number_of(const json_t *value)
{
    if (json_is_integer(value)) {
        int64_t whole = json_integer_value(value);
        return (struct number){true, whole, (double)whole};
    }
    double real = json_real_value(value);
    if (real == floor(real) && fabs(real) < 0x1p63)
        return (struct number){true, (int64_t)real, real};
    return (struct number){false, 0, real};
}

int schema_number_compare(struct number a, struct number b)
{
    if (a.exact && b.exact)
        return a.whole < b.whole ? -1 : a.whole > b.whole;
    return a.real < b.real ? -1 : a.real > b.real;
}

/* Decimal fractions are not exact in binary: 0.3 counts as a multiple of 0.1. */
static bool is_multiple_real(double value, double of)
{
    double rest = fabs(fmod(value, of));
    double slack = 4 * DBL_EPSILON * fabs(value);
    return rest == 0 || (slack < of / 4 && (rest <= slack || of - rest <= slack));
}

bool schema_number_is_multiple(struct number value, struct number of)
{
    return value.exact && of.exact ? value.whole % of.whole == 0
                                   : is_multiple_real(value.real, of.real);
}
