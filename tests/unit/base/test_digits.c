/* Numbers as text, compared with those of the C library. */
#include "support.h"

#include "base/digits.h"

static void check(int64_t number)
{
    char expected[32];
    char text[DIGITS_MAX];
    int len = snprintf(expected, sizeof(expected), "%lld", (long long)number);
    assert_int_equal(digits_put(text, number) - text, len);
    assert_memory_equal(text, expected, (size_t)len);
}

static void numbers_of_every_length_are_written(void **state)
{
    (void)state;
    for (int64_t n = -1100; n <= 1100; n++)
        check(n);
    int64_t power = 1;
    for (int digits = 1; digits <= 18; digits++) {
        power *= 10;
        for (int64_t n = power - 2; n <= power + 2; n++) {
            check(n);
            check(-n);
        }
    }
    check(INT64_MAX);
    check(INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_of_every_length_are_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
