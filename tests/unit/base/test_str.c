/* Borrowed text: comparison, cutting, numbers, UTF-8 and names. */
#include "support.h"

static void text_is_equal_by_length_and_bytes(void **state)
{
    (void)state;
    assert_true(str_eq(STR("abc"), STR("abc")));
    assert_false(str_eq(STR("abc"), STR("abd")));
    assert_false(str_eq(STR("abc"), STR("ab")));
    assert_true(str_eq((struct str){"a\0b", 3}, (struct str){"a\0b", 3}));
    assert_false(str_eq((struct str){"a\0b", 3}, (struct str){"a\0c", 3}));
    assert_true(str_is(STR("abc"), "abc"));
    assert_false(str_is(STR("abc"), "abcd"));
}

static void no_text_equals_empty_text(void **state)
{
    (void)state;
    assert_true(str_eq(STR_NONE, STR("")));
    assert_true(str_is(STR_NONE, ""));
    assert_true(str_is(STR(""), NULL));
    assert_false(str_eq(STR_NONE, STR("a")));
    assert_int_equal(str_of(NULL).len, 0);
    assert_null(str_of(NULL).ptr);
}

static void comparison_without_case_folds_ascii_letters_only(void **state)
{
    (void)state;
    assert_true(str_eq_nocase(STR("Content-TYPE"), STR("content-type")));
    assert_true(str_eq_nocase(STR_NONE, STR("")));
    assert_false(str_eq_nocase(STR("abc"), STR("abcd")));
    /* Neighbours of the letters, 32 apart as the two cases are. */
    assert_false(str_eq_nocase(STR("@"), STR("`")));
    assert_false(str_eq_nocase(STR("["), STR("{")));
    assert_true(str_eq_nocase(STR("AZ"), STR("az")));
    /* É and é in Latin-1 and in UTF-8. */
    assert_false(str_eq_nocase(STR("\xC9"), STR("\xE9")));
    assert_false(str_eq_nocase(STR("\xC3\x89"), STR("\xC3\xA9")));
}

static void prefixes_and_suffixes_are_found(void **state)
{
    (void)state;
    assert_true(str_starts_with(STR("/api/v1"), STR("/api")));
    assert_true(str_starts_with(STR("/api"), STR("/api")));
    assert_false(str_starts_with(STR("/ap"), STR("/api")));
    assert_false(str_starts_with(STR("x/api"), STR("/api")));
    assert_true(str_ends_with(STR("pawl.db"), STR(".db")));
    assert_true(str_ends_with(STR(".db"), STR(".db")));
    assert_false(str_ends_with(STR("db"), STR(".db")));
    assert_false(str_ends_with(STR("pawl.db-wal"), STR(".db")));
}

static void everything_starts_and_ends_with_nothing(void **state)
{
    (void)state;
    assert_true(str_starts_with(STR("a"), STR_NONE));
    assert_true(str_starts_with(STR_NONE, STR_NONE));
    assert_true(str_starts_with(STR_NONE, STR("")));
    assert_false(str_starts_with(STR_NONE, STR("a")));
    assert_true(str_ends_with(STR("a"), STR_NONE));
    assert_true(str_ends_with(STR_NONE, STR_NONE));
    assert_true(str_ends_with(STR_NONE, STR("")));
    assert_false(str_ends_with(STR_NONE, STR("a")));
}

static void trimming_takes_spaces_and_tabs_from_both_ends(void **state)
{
    (void)state;
    assert_str(str_trim(STR(" \t a b\t ")), "a b");
    assert_str(str_trim(STR("ab")), "ab");
    assert_str(str_trim(STR(" \t \t")), "");
    assert_str(str_trim(STR("")), "");
    assert_str(str_trim(STR("\na\r")), "\na\r");
    assert_int_equal(str_trim(STR_NONE).len, 0);
}

static void a_cut_gives_both_sides_of_the_first_match(void **state)
{
    (void)state;
    struct str head;
    struct str tail;
    assert_true(str_cut(STR("a=b=c"), '=', &head, &tail));
    assert_str(head, "a");
    assert_str(tail, "b=c");
    assert_true(str_cut(STR("=b"), '=', &head, &tail));
    assert_str(head, "");
    assert_str(tail, "b");
    assert_true(str_cut(STR("a="), '=', &head, &tail));
    assert_str(head, "a");
    assert_str(tail, "");
}

static void a_cut_without_a_match_keeps_all_in_the_head(void **state)
{
    (void)state;
    struct str head;
    struct str tail = STR("left over");
    assert_false(str_cut(STR("abc"), '=', &head, &tail));
    assert_str(head, "abc");
    assert_null(tail.ptr);
    assert_int_equal(tail.len, 0);
    assert_false(str_cut(STR_NONE, '=', &head, &tail));
    assert_int_equal(head.len, 0);
}

static void whole_numbers_are_read_to_both_ends_of_64_bits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } GOOD[] = {
        {"0", 0},
        {"-0", 0},
        {"7", 7},
        {"-7", -7},
        {"007", 7},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"0000000000000000000000009223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
        int64_t value = 1234;
        assert_true(str_to_i64(str_of(GOOD[i].text), &value));
        assert_true(value == GOOD[i].value);
    }
}

static void text_that_is_no_whole_number_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",
        "-",
        "--1",
        "+1",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "0x10",
        "1-",
        "one",
        "9223372036854775808",
        "-9223372036854775809",
        "92233720368547758070",
        "99999999999999999999999999",
    };
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        int64_t value = 1234;
        if (str_to_i64(str_of(BAD[i]), &value))
            fail_msg("<%s> was read", BAD[i]);
        assert_true(value == 1234);
    }
    int64_t value = 1234;
    assert_false(str_to_i64(STR_NONE, &value));
    assert_false(str_to_i64((struct str){"1\0", 2}, &value));
    assert_true(value == 1234);
}

static void every_code_point_but_surrogates_is_utf8(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        char bytes[4];
        struct str text = {bytes, utf8_encode(c, bytes)};
        bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        if (str_is_utf8(text) == surrogate)
            fail_msg("U+%04X", (unsigned)c);
    }
}

static void each_kind_of_bad_utf8_is_refused_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BAD_UTF8); i++) {
        char text[16];
        assert_false(str_is_utf8(BAD_UTF8[i]));
        int len = snprintf(text, sizeof(text), "ok%.*sok", STR_ARG(BAD_UTF8[i]));
        if (str_is_utf8((struct str){text, (size_t)len}))
            fail_msg("kind %zu in the middle", i);
        if (str_is_utf8((struct str){text, (size_t)len - 2}))
            fail_msg("kind %zu at the end", i);
    }
}

/* All texts of two and three bytes: those counted here by hand are good, and no others. */
static void short_utf8_is_told_apart_exactly(void **state)
{
    (void)state;
    unsigned two = 0;
    unsigned three = 0;
    for (uint32_t n = 0; n < 1u << 24; n++) {
        char text[3] = {(char)(n >> 16), (char)(n >> 8), (char)n};
        three += str_is_utf8((struct str){text, 3});
        if (n >> 16 == 0)
            two += str_is_utf8((struct str){text + 1, 2});
    }
    const unsigned ascii = 128;
    const unsigned of_two = 0x800 - 0x80;
    const unsigned of_three = 0x10000 - 0x800 - 0x800;
    assert_int_equal(two, ascii * ascii + of_two);
    assert_int_equal(three, ascii * ascii * ascii + 2 * ascii * of_two + of_three);
}

/* All leads from 0xF0 on, with the last byte at each edge of the continuation bytes. */
static void four_byte_utf8_is_told_apart_exactly(void **state)
{
    (void)state;
    static const unsigned char LAST[] = {0x7F, 0x80, 0xBF, 0xC0};
    unsigned good = 0;
    for (uint32_t n = 0xF00000; n <= 0xFFFFFF; n++) {
        for (size_t i = 0; i < ARRAY_LEN(LAST); i++) {
            char text[4] = {(char)(n >> 16), (char)(n >> 8), (char)n, (char)LAST[i]};
            good += str_is_utf8((struct str){text, 4});
        }
    }
    /* Second bytes 90–BF after F0, 80–BF after F1 to F3, 80–8F after F4; 64 thirds; two lasts. */
    assert_int_equal(good, (48 + 3 * 64 + 16) * 64 * 2);
}

static void repair_replaces_bad_bytes_and_keeps_the_rest(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *wanted;
    } ROWS[] = {
        {"", ""},
        {"plain", "plain"},
        {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
        {"a\xFF"
         "b",
         "a?b"},
        {"\xC3(\xC3\xA9", "?(\xC3\xA9"},
        {"\xED\xA0\x80", "???"},
        {"\xC0\x80x", "??x"},
        {"x\xF0\x9F\x98", "x???"},
        {"\xF0\x9F\x98\xF0\x9F\x98\x80", "???\xF0\x9F\x98\x80"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "%s", ROWS[i].text);
        str_repair_utf8(text, strlen(text));
        assert_string_equal(text, ROWS[i].wanted);
    }
    str_repair_utf8(NULL, 0);
}

static void empty_text_is_utf8(void **state)
{
    (void)state;
    assert_true(str_is_utf8(STR("")));
    assert_true(str_is_utf8(STR_NONE));
}

static void names_hold_letters_digits_and_four_marks(void **state)
{
    (void)state;
    assert_true(str_is_name(STR("azAZ09_-.:")));
    assert_false(str_is_name(STR("")));
    assert_false(str_is_name(STR_NONE));
    unsigned good = 0;
    for (unsigned c = 0; c < 256; c++) {
        char one = (char)c;
        char middle[3] = {'a', (char)c, 'b'};
        bool alone = str_is_name((struct str){&one, 1});
        assert_true(alone == str_is_name((struct str){middle, 3}));
        good += alone;
    }
    assert_int_equal(good, 26 + 26 + 10 + 4);
}

/* The vectors of the FNV reference, so that a kept hash means the same tomorrow. */
static void hashes_are_fnv_1a(void **state)
{
    (void)state;
    assert_true(str_hash(STR_NONE) == 0xcbf29ce484222325u);
    assert_true(str_hash(STR("a")) == 0xaf63dc4c8601ec8cu);
    assert_true(str_hash(STR("foobar")) == 0x85944171f73967e8u);
    assert_true(str_hash(STR("\xFF")) == (0xcbf29ce484222325u ^ 0xFF) * 0x100000001b3u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_equal_by_length_and_bytes),
        cmocka_unit_test(no_text_equals_empty_text),
        cmocka_unit_test(comparison_without_case_folds_ascii_letters_only),
        cmocka_unit_test(prefixes_and_suffixes_are_found),
        cmocka_unit_test(everything_starts_and_ends_with_nothing),
        cmocka_unit_test(trimming_takes_spaces_and_tabs_from_both_ends),
        cmocka_unit_test(a_cut_gives_both_sides_of_the_first_match),
        cmocka_unit_test(a_cut_without_a_match_keeps_all_in_the_head),
        cmocka_unit_test(whole_numbers_are_read_to_both_ends_of_64_bits),
        cmocka_unit_test(text_that_is_no_whole_number_is_refused),
        cmocka_unit_test(every_code_point_but_surrogates_is_utf8),
        cmocka_unit_test(each_kind_of_bad_utf8_is_refused_anywhere),
        cmocka_unit_test(short_utf8_is_told_apart_exactly),
        cmocka_unit_test(four_byte_utf8_is_told_apart_exactly),
        cmocka_unit_test(repair_replaces_bad_bytes_and_keeps_the_rest),
        cmocka_unit_test(empty_text_is_utf8),
        cmocka_unit_test(names_hold_letters_digits_and_four_marks),
        cmocka_unit_test(hashes_are_fnv_1a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
