/* The growing buffer: what it writes, its ceiling, and its one sticky failure. */
#include "support.h"

static void a_fresh_buffer_is_empty_and_owns_nothing(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 10);
    assert_true(buf_ok(&b));
    assert_int_equal(buf_str(&b).len, 0);
    assert_null(b.ptr);
    buf_put(&b, STR_NONE);
    buf_put_bytes(&b, NULL, 0);
    buf_put(&b, STR(""));
    assert_true(buf_ok(&b));
    assert_null(b.ptr);
    buf_release(&b);
}

static void appends_follow_each_other_and_end_in_nul(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1000);
    buf_put(&b, STR("one"));
    assert_int_equal(b.ptr[b.len], '\0');
    buf_put_char(&b, ',');
    assert_int_equal(b.ptr[b.len], '\0');
    buf_put_bytes(&b, "t\0o", 3);
    assert_int_equal(b.ptr[b.len], '\0');
    buf_put_hex(&b, "\x00\xff\x1a", 3);
    assert_int_equal(b.ptr[b.len], '\0');
    buf_printf(&b, "<%d %s>", 42, "x");
    assert_int_equal(b.ptr[b.len], '\0');
    assert_true(buf_ok(&b));
    static const char WANTED[] = "one,t\0o00ff1a<42 x>";
    assert_int_equal(b.len, sizeof(WANTED) - 1);
    assert_memory_equal(b.ptr, WANTED, sizeof(WANTED));
    buf_release(&b);
}

static void integers_are_written_to_both_ends_of_64_bits(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *text;
    } ROWS[] = {
        {0, "0"},
        {9, "9"},
        {10, "10"},
        {-1, "-1"},
        {-10, "-10"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
        {INT64_MIN + 1, "-9223372036854775807"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct buf b;
        buf_init(&b, 20);
        buf_put_i64(&b, ROWS[i].value);
        assert_true(buf_ok(&b));
        assert_str(buf_str(&b), ROWS[i].text);
        buf_release(&b);
    }
}

static void written_integers_read_back(void **state)
{
    (void)state;
    struct rng rng = {1};
    struct buf b;
    buf_init(&b, 20);
    for (int i = 0; i < 20000; i++) {
        int64_t value = (int64_t)(rng_next(&rng) >> rng_below(&rng, 64));
        value = rng_below(&rng, 2) == 0 ? value : (int64_t)(0 - (uint64_t)value);
        int64_t back = 0;
        buf_clear(&b);
        buf_put_i64(&b, value);
        assert_true(str_to_i64(buf_str(&b), &back));
        assert_true(back == value);
    }
    buf_release(&b);
}

/* Each way of appending five bytes, so that each meets the ceiling. */
static void put_five(struct buf *b, int way)
{
    switch (way) {
    case 0:
        buf_put(b, STR("12345"));
        return;
    case 1:
        buf_put_bytes(b, "12345", 5);
        return;
    case 2:
        buf_put_i64(b, 12345);
        return;
    case 3:
        buf_printf(b, "%s", "12345");
        return;
    case 4:
        buf_put_hex(b, "\x12\x34", 2);
        buf_put_char(b, '5');
        return;
    default:
        fail();
    }
}

enum { WAYS = 5 };

static void a_buffer_may_be_filled_to_its_ceiling(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        struct buf b;
        buf_init(&b, 10);
        put_five(&b, way);
        put_five(&b, way);
        assert_true(buf_ok(&b));
        assert_str(buf_str(&b), "1234512345");
        assert_int_equal(b.ptr[10], '\0');
        buf_release(&b);
    }
}

static void one_byte_past_the_ceiling_fails(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        struct buf b;
        buf_init(&b, 9);
        put_five(&b, way);
        assert_true(buf_ok(&b));
        put_five(&b, way);
        assert_false(buf_ok(&b));
        assert_true(b.refused);
        assert_true(b.len <= 9);
        assert_memory_equal(b.ptr, "12345", 5);
        buf_clear(&b);
        assert_false(b.refused);
        buf_release(&b);
    }
}

static void the_failing_append_leaves_no_part_of_itself(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 4);
    buf_put(&b, STR("ab"));
    buf_put(&b, STR("cde"));
    assert_false(buf_ok(&b));
    assert_str(buf_str(&b), "ab");
    buf_release(&b);
}

static void appends_after_a_failure_do_nothing(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 6);
    buf_put(&b, STR("a"));
    buf_put(&b, STR("too long"));
    for (int way = 0; way < WAYS; way++)
        put_five(&b, way);
    assert_false(buf_ok(&b));
    assert_str(buf_str(&b), "a");
    buf_release(&b);
}

static void a_ceiling_of_nothing_takes_nothing(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 0);
    buf_put(&b, STR(""));
    buf_printf(&b, "%s", "");
    buf_put_hex(&b, "", 0);
    assert_true(buf_ok(&b));
    buf_put_char(&b, 'x');
    assert_false(buf_ok(&b));
    assert_int_equal(b.len, 0);
    buf_release(&b);
}

static void clearing_forgets_text_and_failure_and_keeps_memory(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 3);
    buf_put(&b, STR("abc"));
    buf_put_char(&b, 'd');
    assert_false(buf_ok(&b));
    const char *memory = b.ptr;
    buf_clear(&b);
    assert_true(buf_ok(&b));
    assert_int_equal(b.len, 0);
    assert_int_equal(b.ptr[0], '\0');
    buf_put(&b, STR("xyz"));
    assert_true(buf_ok(&b));
    assert_str(buf_str(&b), "xyz");
    assert_ptr_equal(b.ptr, memory);
    buf_release(&b);
}

static void clearing_a_buffer_that_never_held_anything_is_harmless(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 3);
    buf_put(&b, STR("four"));
    buf_clear(&b);
    assert_true(buf_ok(&b));
    assert_null(b.ptr);
    buf_release(&b);
}

static void a_released_buffer_may_be_used_again(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 3);
    buf_put(&b, STR("four"));
    buf_release(&b);
    assert_null(b.ptr);
    assert_true(buf_ok(&b));
    buf_put(&b, STR("abc"));
    assert_str(buf_str(&b), "abc");
    buf_put_char(&b, 'd');
    assert_false(buf_ok(&b));
    buf_release(&b);
}

static void growth_keeps_what_was_written(void **state)
{
    (void)state;
    enum { TOTAL = 100 * 1000 };
    struct buf b;
    buf_init(&b, TOTAL);
    for (int i = 0; i < TOTAL; i++)
        buf_put_char(&b, (char)('a' + i % 26));
    assert_true(buf_ok(&b));
    assert_int_equal(b.len, TOTAL);
    for (int i = 0; i < TOTAL; i++)
        assert_int_equal(b.ptr[i], 'a' + i % 26);
    buf_put_char(&b, 'x');
    assert_false(buf_ok(&b));
    buf_release(&b);
}

static void long_formatted_text_is_whole(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 5000);
    buf_printf(&b, "%*d|", 4000, 7);
    assert_true(buf_ok(&b));
    assert_int_equal(b.len, 4001);
    assert_int_equal(b.ptr[3998], ' ');
    assert_int_equal(b.ptr[3999], '7');
    assert_int_equal(b.ptr[4000], '|');
    buf_release(&b);
}

/* The lengths whose double, or whose sum with the closing NUL, wraps round. */
static void absurd_lengths_fail_before_anything_is_read(void **state)
{
    (void)state;
    static const size_t MAXIMA[] = {16, SIZE_MAX};
    volatile size_t absurd = SIZE_MAX; /* the compiler would refuse a constant */
    for (size_t i = 0; i < ARRAY_LEN(MAXIMA); i++) {
        struct buf b;
        buf_init(&b, MAXIMA[i]);
        buf_put(&b, STR("ab"));
        buf_put_hex(&b, "x", SIZE_MAX / 2 + 1);
        assert_false(buf_ok(&b));
        buf_clear(&b);
        buf_put_bytes(&b, "x", absurd);
        assert_false(buf_ok(&b));
        buf_clear(&b);
        buf_put(&b, STR("ab"));
        buf_put_bytes(&b, "x", absurd - 2);
        assert_false(buf_ok(&b));
        assert_str(buf_str(&b), "ab");
        buf_release(&b);
    }
}

static void running_out_of_memory_fails_and_keeps_what_was_written(void **state)
{
    (void)state;
    struct buf b;
    volatile size_t absurd = PTRDIFF_MAX; /* the compiler would refuse a constant */
    buf_init(&b, SIZE_MAX);
    buf_put(&b, STR("ab"));
    buf_put_bytes(&b, "x", absurd);
    assert_false(buf_ok(&b));
    assert_str(buf_str(&b), "ab");
    buf_put(&b, STR("c"));
    assert_str(buf_str(&b), "ab");
    buf_clear(&b);
    buf_put(&b, STR("c"));
    assert_true(buf_ok(&b));
    assert_str(buf_str(&b), "c");
    buf_release(&b);
}

/* The examples of RFC 4648, and every byte value. */
static void base64_is_as_the_rfc_has_it(void **state)
{
    (void)state;
    static const char *const EXAMPLES[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    struct buf b;
    buf_init(&b, 100);
    for (size_t i = 0; i < ARRAY_LEN(EXAMPLES); i++) {
        buf_clear(&b);
        buf_put_base64(&b, EXAMPLES[i][0], strlen(EXAMPLES[i][0]));
        assert_true(buf_ok(&b));
        assert_str(buf_str(&b), EXAMPLES[i][1]);
    }
    buf_clear(&b);
    buf_put_base64(&b, "\xfb\xef\xbe\x00\xff\x10", 6);
    assert_str(buf_str(&b), "++++AP8Q");
    buf_release(&b);
    buf_init(&b, 7); /* four bytes need eight */
    buf_put_base64(&b, "foob", 4);
    assert_false(buf_ok(&b));
    assert_int_equal(b.len, 0);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_buffer_is_empty_and_owns_nothing),
        cmocka_unit_test(appends_follow_each_other_and_end_in_nul),
        cmocka_unit_test(integers_are_written_to_both_ends_of_64_bits),
        cmocka_unit_test(written_integers_read_back),
        cmocka_unit_test(a_buffer_may_be_filled_to_its_ceiling),
        cmocka_unit_test(one_byte_past_the_ceiling_fails),
        cmocka_unit_test(the_failing_append_leaves_no_part_of_itself),
        cmocka_unit_test(appends_after_a_failure_do_nothing),
        cmocka_unit_test(a_ceiling_of_nothing_takes_nothing),
        cmocka_unit_test(clearing_forgets_text_and_failure_and_keeps_memory),
        cmocka_unit_test(clearing_a_buffer_that_never_held_anything_is_harmless),
        cmocka_unit_test(a_released_buffer_may_be_used_again),
        cmocka_unit_test(growth_keeps_what_was_written),
        cmocka_unit_test(long_formatted_text_is_whole),
        cmocka_unit_test(absurd_lengths_fail_before_anything_is_read),
        cmocka_unit_test(running_out_of_memory_fails_and_keeps_what_was_written),
        cmocka_unit_test(base64_is_as_the_rfc_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
