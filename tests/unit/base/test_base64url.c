/* Base64 in the alphabet for URLs: each value has one text. */
#include "testing.h"

#include "base/base64url.h"

static void bytes_become_text_and_come_back(void **state)
{
    (void)state;
    const struct {
        struct str bytes, text;
    } PAIRS[] = {
        {STR(""), STR("")},
        {STR("f"), STR("Zg")},
        {STR("fo"), STR("Zm8")},
        {STR("foo"), STR("Zm9v")},
        {STR("foob"), STR("Zm9vYg")},
        {STR("fooba"), STR("Zm9vYmE")},
        {STR("foobar"), STR("Zm9vYmFy")},
        {STR("\xFB\xFF\xBF"), STR("-_-_")},
    };
    for (size_t i = 0; i < ARRAY_LEN(PAIRS); i++) {
        struct buf text;
        char out[16];
        size_t len = 99;
        buf_init(&text, 64);
        base64url_put(&text, PAIRS[i].bytes.ptr, PAIRS[i].bytes.len);
        assert_true(str_eq(buf_str(&text), PAIRS[i].text));
        assert_true(base64url_decode(PAIRS[i].text, out, sizeof(out), &len));
        assert_true(str_eq((struct str){out, len}, PAIRS[i].bytes));
        buf_release(&text);
    }
}

static void other_text_is_refused(void **state)
{
    (void)state;
    static const char *const WRONG[] = {"Z",    "Zg==", "Zh",     "Zm9",   "Zm 9",
                                        "Zm+v", "Zm/v", "Zm9v\n", "ZZZZZ", "Zm9vYmF\xC3"};
    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
        char out[16];
        size_t len;
        assert_false(base64url_decode(str_of(WRONG[i]), out, sizeof(out), &len));
    }
    char out[16];
    size_t len;
    assert_false(base64url_decode((struct str){"Zm9\0", 4}, out, sizeof(out), &len));
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    char out[3];
    size_t len;
    assert_true(base64url_decode(STR("Zm9v"), out, 3, &len));
    assert_false(base64url_decode(STR("Zm9v"), out, 2, &len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_text_and_come_back),
        cmocka_unit_test(other_text_is_refused),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
