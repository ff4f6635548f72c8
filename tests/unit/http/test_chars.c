/* The table of characters, against the rules of the RFCs. */
#include "testing.h"

#include "http/chars.h"
#include "http/reference.h"

static void each_byte_has_the_classes_that_the_rfcs_give_it(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        unsigned wanted = 0;
        wanted |= ref_tchar(c) ? CHAR_TOKEN : 0;
        wanted |= ref_value_char(c) ? CHAR_VALUE : 0;
        wanted |= ref_target_char(c) ? CHAR_TARGET : 0;
        wanted |= ref_host_char(c) ? CHAR_HOST : 0;
        wanted |= ref_hexdig(c) ? CHAR_HEX : 0;
        wanted |= ref_digit(c) ? CHAR_DIGIT : 0;
        wanted |= ref_blank(c) ? CHAR_BLANK : 0;
        wanted |= ref_qdtext(c) ? CHAR_QUOTED : 0;
        assert_int_equal(CHAR_CLASS[c], wanted);
    }
}

static void hexadecimal_digits_have_values_in_both_cases(void **state)
{
    (void)state;
    static const char LOWER[] = "0123456789abcdef", UPPER[] = "0123456789ABCDEF";
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(char_hex_value(LOWER[i]), i);
        assert_int_equal(char_hex_value(UPPER[i]), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_has_the_classes_that_the_rfcs_give_it),
        cmocka_unit_test(hexadecimal_digits_have_values_in_both_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
