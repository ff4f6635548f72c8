/* Zeroed memory for large tables. */
#include "base/support.h"

#include "base/pages.h"

enum { SIZE = 1000 * 1000 };

static void pages_are_zero_and_can_be_written(void **state)
{
    (void)state;
    unsigned char *pages = pages_new(SIZE);
    assert_non_null(pages);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(pages[i], 0);
    memset(pages, 0xAA, SIZE);
    pages_free(pages, SIZE);
    pages_free(NULL, SIZE);
}

static void more_than_there_is_is_refused(void **state)
{
    (void)state;
    assert_null(pages_new((size_t)1 << 62));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_zero_and_can_be_written),
        cmocka_unit_test(more_than_there_is_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
