/* Numbers as text. */
#include "base/digits.h"

#define TEN(tens)                                                                         \
#tens "0" #tens "1" #tens "2" #tens "3" #tens "4" #tens "5" #tens "6" #tens "7" #tens \
          "8" #tens "9"
const char DIGIT_PAIRS[200] = TEN(0) TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9);

#define SIXTEEN(high) TEN(high) #high "a" #high "b" #high "c" #high "d" #high "e" #high "f"
const char HEX_PAIRS[512] =
    SIXTEEN(0) SIXTEEN(1) SIXTEEN(2) SIXTEEN(3) SIXTEEN(4) SIXTEEN(5) SIXTEEN(6) SIXTEEN(7)
        SIXTEEN(8) SIXTEEN(9) SIXTEEN(a) SIXTEEN(b) SIXTEEN(c) SIXTEEN(d) SIXTEEN(e) SIXTEEN(f);

static size_t count_digits(uint64_t number)
{
    size_t count = 1;
    for (; number >= 100; number /= 100)
        count += 2;
    return count + (number >= 10);
}

char *digits_put(char *at, int64_t value)
{
    uint64_t left = (uint64_t)value;
    if (value < 0) {
        left = 0 - left;
        *at++ = '-';
    }
    char *end = at + count_digits(left);
    char *to = end;
    for (; left >= 100; left /= 100)
        digits_put_pair(to -= 2, (unsigned)(left % 100));
    if (left >= 10)
        digits_put_pair(to - 2, (unsigned)left);
    else
        to[-1] = (char)('0' + left);
    return end;
}
