/* The same seed gives the same bytes, however they are taken. */
#include "base/support.h"

#include "base/chance.h"

/* RFC 8439, 2.3.2 has a nonce; this is the key stream of an all-zero key and nonce, appendix A.1.
 */
static void the_key_stream_is_that_of_the_rfc(void **state)
{
    static const unsigned char FIRST[] = {0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90,
                                          0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28};
    static const unsigned char SECOND[] = {0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a};
    const struct chance_seed zero = {{0}};
    struct chance c;
    unsigned char bytes[72];
    (void)state;
    chance_init(&c, &zero);
    chance_take(&c, bytes, sizeof(bytes));
    assert_memory_equal(bytes, FIRST, sizeof(FIRST));
    assert_memory_equal(bytes + 64, SECOND, sizeof(SECOND));
}

static void bytes_do_not_depend_on_how_they_are_taken(void **state)
{
    const struct chance_seed seed = {{1, 2, 3}};
    struct chance whole, pieces;
    unsigned char a[200], b[200];
    (void)state;
    chance_init(&whole, &seed);
    chance_init(&pieces, &seed);
    chance_take(&whole, a, sizeof(a));
    for (size_t at = 0, n = 1; at < sizeof(b); at += n, n = MIN(n + 1, sizeof(b) - at))
        chance_take(&pieces, b + at, n);
    assert_memory_equal(a, b, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_stream_is_that_of_the_rfc),
        cmocka_unit_test(bytes_do_not_depend_on_how_they_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
