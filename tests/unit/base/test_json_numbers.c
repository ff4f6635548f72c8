/* Numbers in JSON: what is read exactly, and what is refused. */
#include "json_refused.h"

static void malformed_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "00",    "01",   "-01", "-00", "00.5", "01.0", "+1",  "-",    "--1",   ".5",  "-.5",
        "5.",    "5.e1", "1e",  "1e+", "1e-",  "1E",   "e1",  "0x10", "1_000", "1,5", "1.2.3",
        "1e1.5", "0b1",  "1f",  "- 1", "1 e5", "[1.]", "[-]", "0e",   "1e1e1",
    };
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void integers_keep_all_64_bits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } ROWS[] = {
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"9007199254740993", 9007199254740993},
        {"-9007199254740993", -9007199254740993},
        {"0", 0},
        {"-0", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct json *value = json_value_of(str_of(ROWS[i].text));
        assert_true(json_is(value, JSON_KIND_INTEGER));
        assert_true(integer_of(value) == ROWS[i].value);
        json_free(value);
    }
}

static void integers_past_64_bits_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "9223372036854775808",      "-9223372036854775809",    "18446744073709551615",
        "18446744073709551616",     "99999999999999999999999", "[9223372036854775808]",
        "-99999999999999999999999",
    };
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void numbers_past_a_double_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"1e400",
                                      "-1e400",
                                      "1e309",
                                      "1.8e308",
                                      "-1.8e308",
                                      "[1E400]",
                                      "1.7976931348623159e308",
                                      "1e99999999999999999999"};
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void reals_are_the_nearest_double(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bits;
    } ROWS[] = {
        {"0.1", 0x3fb999999999999a},
        {"1.7976931348623157e308", 0x7fefffffffffffff},
        {"1.7976931348623158e308", 0x7fefffffffffffff},
        {"-1.7976931348623157e308", 0xffefffffffffffff},
        {"5e-324", 1},
        {"4.9406564584124654e-324", 1},
        {"2.2250738585072014e-308", 0x0010000000000000},
        {"9223372036854775808.0", 0x43e0000000000000},
        {"1e21", 0x444b1ae4d6e2ef50},
        {"1E23", 0x44b52d02c7e14af6},
        {"-0.0", 0x8000000000000000},
        {"0.0", 0},
        /* Too small for a double: nothing is left of them, which is within the rounding. */
        {"1e-400", 0},
        {"2e-324", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct json *value = json_value_of(str_of(ROWS[i].text));
        assert_true(json_is(value, JSON_KIND_REAL));
        if (bits_of_double(real_of(value)) != ROWS[i].bits)
            fail_msg("%s was read as %a", ROWS[i].text, real_of(value));
        json_free(value);
    }
}

/* One number is one value, however it is written, as far as 64 bits go. */
static void whole_numbers_are_read_exactly_however_they_are_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } ROWS[] = {
        {"9007199254740993", 9007199254740993},
        {"9007199254740993.0", 9007199254740993},
        {"9007199254740993.000", 9007199254740993},
        {"9.007199254740993e15", 9007199254740993},
        {"90071992547409930E-1", 9007199254740993},
        {"-9007199254740993.0", -9007199254740993},
        {"1e18", 1000000000000000000},
        {"9223372036854775807.0", INT64_MAX},
        {"9.223372036854775807e+18", INT64_MAX},
        {"9223372036854775807.000000000000", INT64_MAX},
        /* No whole numbers, but the doubles nearest to them are. */
        {"9223372036854775807012341e-7", 922337203685477600},
        {"-9007199254740993.5", -9007199254740994},
        {"9007199254740993.00000000000000000001", 9007199254740994},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct json *value = json_value_of(str_of(ROWS[i].text));
        int64_t number = 0;
        assert_true(json_is(value, JSON_KIND_INTEGER) && json_whole_of(value, &number));
        assert_true(number == ROWS[i].value);
        json_free(value);
        char inside[80];
        (void)snprintf(inside, sizeof(inside), "{\"a\\\":1.5\":[%s,1.50]}", ROWS[i].text);
        value = json_value_of(str_of(inside));
        const struct json *list = json_member(value, STR("a\":1.5"));
        assert_true(integer_of(json_element(list, 0)) == ROWS[i].value);
        assert_true(real_of(json_element(list, 1)) == 1.5);
        json_free(value);
    }
}

static void a_malformed_number_stays_so_however_large_it_is(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "[-922337203685477580.0.5]", "[1.0.9e17]",  "[1e18e1]", "[1e18.5]",
        "[9007199254740993.0-1]",    "[1e18 1e18]", "[01e18]",  "[1.e18]",
    };
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        struct problem p;
        problem_init(&p);
        struct json *value = NULL;
        if (json_read(str_of(TEXTS[i]), &p, &value) != ERR_JSON_INVALID)
            fail_msg("taken: %s", TEXTS[i]);
        problem_release(&p);
    }
}

static void a_whole_number_is_distinguished_from_others(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool whole;
        int64_t value;
    } ROWS[] = {
        {"1.0", true, 1},  {"-0.0", true, 0},  {"1e3", true, 1000}, {"7", true, 7},
        {"1.5", false, 0}, {"1e19", false, 0}, {"\"1\"", false, 0}, {"true", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct json *value = json_value_of(str_of(ROWS[i].text));
        int64_t number = 0;
        assert_int_equal(json_whole_of(value, &number), ROWS[i].whole);
        assert_true(number == ROWS[i].value);
        json_free(value);
    }
    int64_t number;
    assert_false(json_whole_of(NULL, &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_numbers_are_refused),
        cmocka_unit_test(integers_keep_all_64_bits),
        cmocka_unit_test(integers_past_64_bits_are_refused),
        cmocka_unit_test(numbers_past_a_double_are_refused),
        cmocka_unit_test(reals_are_the_nearest_double),
        cmocka_unit_test(whole_numbers_are_read_exactly_however_they_are_written),
        cmocka_unit_test(a_malformed_number_stays_so_however_large_it_is),
        cmocka_unit_test(a_whole_number_is_distinguished_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
