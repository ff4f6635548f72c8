/* What an API key looks like. */
#include "testing.h"

#include "domain/api_key.h"

static void a_key_has_its_mark_its_prefix_and_its_secret(void **state)
{
    (void)state;
    struct api_key_random random;
    char text[API_KEY_TEXT_MAX];
    struct str prefix;
    struct str found;
    struct sha256 hash;
    for (size_t i = 0; i < sizeof(random.bytes); i++)
        random.bytes[i] = (unsigned char)i;
    api_key_make(&random, text, &prefix, &hash);
    assert_int_equal(strlen(text), API_KEY_PREFIX_LEN + 1 + API_KEY_SECRET_LEN);
    assert_memory_equal(text, "pawl_0123456789_", API_KEY_PREFIX_LEN + 1);
    struct sha256 whole = sha256_of(str_of(text));
    assert_true(sha256_eq(&hash, &whole));
    assert_true(api_key_prefix(str_of(text), &found));
    assert_true(str_eq(found, prefix));
}

static void what_cannot_be_a_key_has_no_prefix(void **state)
{
    (void)state;
    static const char *const NONE[] = {"", "pawl_", "pawl_0123456789", "token0123456789_secret"};
    for (size_t i = 0; i < ARRAY_LEN(NONE); i++) {
        struct str prefix;
        assert_false(api_key_prefix(str_of(NONE[i]), &prefix));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_its_mark_its_prefix_and_its_secret),
        cmocka_unit_test(what_cannot_be_a_key_has_no_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
