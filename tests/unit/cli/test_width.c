/* How many columns of a terminal a text takes. */
#include "testing.h"

#include "cli/term/width.h"

static void ascii_and_accented_letters_take_one_column(void **state)
{
    (void)state;
    assert_int_equal(text_width(STR("")), 0);
    assert_int_equal(text_width(STR("abc")), 3);
    assert_int_equal(text_width(STR("Zürich")), 6);
    assert_int_equal(text_width(STR("≤ 1 min")), 7);
    assert_int_equal(text_width(STR("Ελλάδα")), 6);
}

static void wide_characters_take_two(void **state)
{
    (void)state;
    assert_int_equal(text_width(STR("日本語")), 6);
    assert_int_equal(text_width(STR("한국")), 4);
    assert_int_equal(text_width(STR("\xEF\xBC\xA1")), 2);
    assert_int_equal(text_width(STR("🎉")), 2);
}

static void combining_and_invisible_characters_take_none(void **state)
{
    (void)state;
    assert_int_equal(text_width(STR("e\xCC\x81")), 1); /* e and a combining acute accent */
    assert_int_equal(text_width(STR("a\xE2\x80\x8B"
                                    "b")),
                     2); /* a zero-width space */
}

static void bytes_that_are_not_utf8_take_one(void **state)
{
    (void)state;
    assert_int_equal(text_width(STR("\xFF\xFE")), 2);
    assert_int_equal(text_width(STR("\xE6\x97")), 2); /* a cut character */
    assert_int_equal(text_width(STR("\x80x")), 2);
}

static void a_prefix_never_ends_inside_a_character(void **state)
{
    (void)state;
    assert_int_equal(text_prefix(STR("日本語"), 3), 3);
    assert_int_equal(text_prefix(STR("日本語"), 4), 6);
    assert_int_equal(text_prefix(STR("日本語"), 99), 9);
    assert_int_equal(text_prefix(STR("e\xCC\x81x"), 1), 3);
    assert_int_equal(text_prefix(STR("abc"), 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ascii_and_accented_letters_take_one_column),
        cmocka_unit_test(wide_characters_take_two),
        cmocka_unit_test(combining_and_invisible_characters_take_none),
        cmocka_unit_test(bytes_that_are_not_utf8_take_one),
        cmocka_unit_test(a_prefix_never_ends_inside_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
