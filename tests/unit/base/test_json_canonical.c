/* Writing JSON: RFC 8785 and its order of names, the plain form, and the ceiling of both. */
#include "support.h"

#include <math.h>

static void put_canonical(struct buf *out, const char *text)
{
    struct json *value = json_value_of(str_of(text));
    buf_clear(out);
    json_write_canonical(out, value);
    json_free(value);
    assert_true(buf_ok(out));
}

static void put_plain(struct buf *out, const char *text)
{
    struct json *value = json_value_of(str_of(text));
    buf_clear(out);
    json_write_plain(out, value);
    json_free(value);
    assert_true(buf_ok(out));
}

#define assert_canonical(text, wanted)        \
    do {                                      \
        struct buf out_;                      \
        buf_init(&out_, 65536);               \
        put_canonical(&out_, (text));         \
        assert_str(buf_str(&out_), (wanted)); \
        buf_release(&out_);                   \
    } while (0)

#define assert_plain(text, wanted)            \
    do {                                      \
        struct buf out_;                      \
        buf_init(&out_, 65536);               \
        put_plain(&out_, (text));             \
        assert_str(buf_str(&out_), (wanted)); \
        buf_release(&out_);                   \
    } while (0)

/* --- whole documents --- */

static void the_sample_of_rfc_8785_comes_out_as_printed_there(void **state)
{
    (void)state;
    assert_canonical("{\n"
                     "  \"numbers\": [333333333.33333329, 1E30, 4.50,\n"
                     "              2e-3, 0.000000000000000000000000001],\n"
                     "  \"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\",\n"
                     "  \"literals\": [null, true, false]\n"
                     "}",
                     "{\"literals\":[null,true,false],"
                     "\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
                     "\"string\":\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

static void names_are_sorted_by_utf16_code_units(void **state)
{
    (void)state;
    assert_canonical("{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\","
                     "\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\",\"1\":\"One\","
                     "\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
                     "\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}",
                     "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\","
                     "\"\xC3\xB6\":\"Latin Small Letter O With Diaeresis\","
                     "\"\xE2\x82\xAC\":\"Euro Sign\","
                     "\"\xF0\x9F\x98\x80\":\"Emoji: Grinning Face\","
                     "\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

static void a_name_comes_before_the_longer_one_it_begins(void **state)
{
    (void)state;
    assert_canonical("{\"aa\":1,\"b\":2,\"a\":3,\"\":4,\"a\\u00e9\":5,\"aaa\":6,\"A\":7}",
                     "{\"\":4,\"A\":7,\"a\":3,\"aa\":1,\"aaa\":6,\"a\xC3\xA9\":5,\"b\":2}");
}

static void common_beginnings_outside_of_ascii_are_passed_over(void **state)
{
    (void)state;
    assert_canonical("{\"\\u00e9\\ud83d\\ude00b\":1,\"\\u00e9\\ud83d\\ude00a\":2,"
                     "\"\\u00e9\\uffff\":3,\"\\u00e9\":4}",
                     "{\"\xC3\xA9\":4,\"\xC3\xA9\xF0\x9F\x98\x80"
                     "a\":2,"
                     "\"\xC3\xA9\xF0\x9F\x98\x80"
                     "b\":1,\"\xC3\xA9\xEF\xBF\xBF\":3}");
}

/* The sort that RFC 8785 describes, done as it says: on UTF-16. */
struct utf16 {
    uint16_t units[8];
    size_t count;
};

static int utf16_order(const struct utf16 *a, const struct utf16 *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (a->units[i] != b->units[i])
            return a->units[i] < b->units[i] ? -1 : 1;
    }
    return (a->count > b->count) - (a->count < b->count);
}

static struct utf16 utf16_of(const char *text)
{
    struct utf16 out = {.count = 0};
    const unsigned char *p = (const unsigned char *)text;
    while (*p != '\0') {
        uint32_t c;
        if (*p < 0x80) {
            c = *p++;
        } else if (*p < 0xE0) {
            c = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
            p += 2;
        } else if (*p < 0xF0) {
            c = (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
            p += 3;
        } else {
            c = (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
            p += 4;
        }
        assert_true(out.count + 2 <= ARRAY_LEN(out.units));
        if (c < 0x10000) {
            out.units[out.count++] = (uint16_t)c;
        } else {
            out.units[out.count++] = (uint16_t)(0xD800 + ((c - 0x10000) >> 10));
            out.units[out.count++] = (uint16_t)(0xDC00 + ((c - 0x10000) & 0x3FF));
        }
    }
    return out;
}

static uint32_t edge_code_point(struct rng *rng)
{
    static const uint32_t EDGES[] = {'a',    'b',     0x1F,    0x7F,    0x80,
                                     0x7FF,  0x800,   0xD7FF,  0xE000,  0xFFFD,
                                     0xFFFF, 0x10000, 0x103FF, 0x10400, 0x10FFFF};
    return EDGES[rng_below(rng, ARRAY_LEN(EDGES))];
}

/* Up to twelve members are sorted by insertion, more by merging such stretches, hence the sizes. */
static void objects_of_any_size_are_sorted_as_utf16_is(void **state)
{
    (void)state;
    struct rng rng = {16};
    struct buf out;
    buf_init(&out, 65536);
    for (size_t wanted = 0; wanted < 120; wanted++) {
        json_t *tree = json_object();
        assert_non_null(tree);
        while (json_object_size(tree) < wanted) {
            char name[20];
            size_t len = 0;
            for (uint64_t n = rng_below(&rng, 5); n > 0; n--)
                len += utf8_encode(edge_code_point(&rng), name + len);
            name[len] = '\0';
            assert_int_equal(json_object_set_new(tree, name, json_integer(7)), 0);
        }
        struct json *object = json_value_of_tree(tree);
        buf_clear(&out);
        json_write_canonical(&out, object);
        struct json *sorted = json_value_of(buf_str(&out));
        assert_int_equal(json_members(sorted), wanted);
        assert_true(json_same(sorted, object));
        struct utf16 before;
        bool first = true;
        for (size_t i = 0; i < wanted; i++) {
            struct str name = json_name_at(sorted, i);
            assert_int_equal(integer_of(json_member(object, name)), 7);
            struct utf16 now = utf16_of(name.ptr);
            if (!first)
                assert_true(utf16_order(&before, &now) < 0);
            before = now;
            first = false;
        }
        json_free(sorted);
        json_free(object);
    }
    buf_release(&out);
}

static void nested_objects_are_sorted_too(void **state)
{
    (void)state;
    assert_canonical("[{\"b\":{\"d\":1,\"c\":[{\"f\":1,\"e\":2}]},\"a\":2}]",
                     "[{\"a\":2,\"b\":{\"c\":[{\"e\":2,\"f\":1}],\"d\":1}}]");
}

static void canonical_text_ignores_order_space_and_spelling(void **state)
{
    (void)state;
    assert_canonical("{\"a\":1.0,\"b\":\"\\u0041\\/\",\"c\":1e2}",
                     "{\"a\":1,\"b\":\"A/\",\"c\":100}");
    assert_canonical(" { \"c\" : 100 , \"b\" : \"A/\" , \"a\" : 1 } ",
                     "{\"a\":1,\"b\":\"A/\",\"c\":100}");
    assert_canonical("{\"c\":1.00e+2,\"a\":0.1e1,\"b\":\"\\u0041/\"}",
                     "{\"a\":1,\"b\":\"A/\",\"c\":100}");
}

static void arrays_keep_their_order(void **state)
{
    (void)state;
    assert_canonical("[3,1,2,[],{},\"\"]", "[3,1,2,[],{},\"\"]");
}

static void integers_stay_exact_beyond_2_to_the_53(void **state)
{
    (void)state;
    assert_canonical("[9007199254740993,9223372036854775807,-9223372036854775808,-0]",
                     "[9007199254740993,9223372036854775807,-9223372036854775808,0]");
    assert_plain("[9007199254740993,9223372036854775807,-9223372036854775808,-0]",
                 "[9007199254740993,9223372036854775807,-9223372036854775808,0]");
}

static void reals_lose_in_canonical_text_what_does_not_change_their_value(void **state)
{
    (void)state;
    assert_canonical("[-0.0,0.10,1e-400,1.0,1e2,1E21,1e-7,1e-6,123456789012345680000.0]",
                     "[0,0.1,0,1,100,1e+21,1e-7,0.000001,123456789012345680000]");
}

static void the_left_out_member_is_missing_from_the_outermost_object_only(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *left_out;
        const char *wanted;
    } ROWS[] = {
        {"{\"key\":1,\"a\":{\"key\":2},\"z\":[{\"key\":3}]}", "key",
         "{\"a\":{\"key\":2},\"z\":[{\"key\":3}]}"},
        {"{\"key\":1}", "key", "{}"},
        {"{\"keys\":1,\"ke\":2}", "key", "{\"ke\":2,\"keys\":1}"},
        {"{\"key\":1}", NULL, "{\"key\":1}"},
        {"[{\"key\":1}]", "key", "[{\"key\":1}]"},
        {"\"key\"", "key", "\"key\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct buf b;
        buf_init(&b, 1024);
        struct json *value = json_value_of(str_of(ROWS[i].text));
        json_write_canonical_without(&b, value, str_of(ROWS[i].left_out), false);
        assert_str(buf_str(&b), ROWS[i].wanted);
        json_free(value);
        buf_release(&b);
    }
}

/* --- plain --- */

static void plain_text_keeps_the_order_of_members(void **state)
{
    (void)state;
    assert_plain("{ \"b\" : 1, \"a\" : [ {\"z\":1, \"y\":2} ], \"\" : null }",
                 "{\"b\":1,\"a\":[{\"z\":1,\"y\":2}],\"\":null}");
}

static void plain_text_tells_reals_from_integers(void **state)
{
    (void)state;
    assert_plain("[1.0,1,-3.0,1e2,1.5,1e21,1e-7,0.0,1e20,9223372036854775808.0]",
                 "[1.0,1,-3.0,100.0,1.5,1e+21,1e-7,0.0,100000000000000000000.0,"
                 "9223372036854776000.0]");
}

/* --- random documents --- */

static json_t *random_value(struct rng *rng, int depth);

static json_t *random_text(struct rng *rng)
{
    char text[64];
    size_t len = 0;
    for (uint64_t n = rng_below(rng, 12); n > 0; n--) {
        uint32_t c = (uint32_t)rng_below(rng, 3) == 0 ? edge_code_point(rng)
                                                      : 1 + (uint32_t)rng_below(rng, 127);
        len += utf8_encode(c, text + len);
    }
    return json_stringn(text, len);
}

static json_t *random_real(struct rng *rng)
{
    for (;;) {
        double value = rng_below(rng, 2) == 0 ? double_of_bits(rng_next(rng))
                                              : (double)rng_below(rng, 1000000) / 100;
        if (value == floor(value) && fabs(value) > 0x1p53 && fabs(value) < 0x1p63)
            continue;                    /* is read as an integer, which holds more */
        json_t *real = json_real(value); /* NULL for NaN and the infinities */
        if (real != NULL)
            return real;
    }
}

static json_t *random_container(struct rng *rng, int depth)
{
    bool object = rng_below(rng, 2) == 0;
    json_t *out = object ? json_object() : json_array();
    assert_non_null(out);
    for (uint64_t n = rng_below(rng, 6); n > 0; n--) {
        json_t *value = random_value(rng, depth - 1);
        if (object) {
            json_t *name = random_text(rng);
            assert_int_equal(json_object_set_new(out, json_string_value(name), value), 0);
            json_decref(name);
        } else {
            assert_int_equal(json_array_append_new(out, value), 0);
        }
    }
    return out;
}

static json_t *random_value(struct rng *rng, int depth)
{
    switch (rng_below(rng, depth > 0 ? 9 : 5)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(rng_below(rng, 2));
    case 2:
        return json_integer((json_int_t)rng_next(rng) >> rng_below(rng, 64));
    case 3:
        return random_real(rng);
    case 4:
        return random_text(rng);
    default:
        return random_container(rng, depth);
    }
}

static void random_documents_survive_writing_and_reading(void **state)
{
    (void)state;
    struct rng rng = {4711};
    struct buf first;
    struct buf second;
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    for (int i = 0; i < 3000; i++) {
        struct json *value = json_value_of_tree(random_value(&rng, 6));
        buf_clear(&first);
        json_write_plain(&first, value);
        struct json *again = json_value_of(buf_str(&first));
        assert_true(json_same(value, again));
        /* The same text again: order of members and kinds of numbers are kept as well. */
        buf_clear(&second);
        json_write_plain(&second, again);
        assert_true(str_eq(buf_str(&first), buf_str(&second)));
        json_free(again);
        json_free(value);
    }
    buf_release(&first);
    buf_release(&second);
}

/* The same value with the members of every object put in backwards. */
static json_t *reversed(const json_t *value)
{
    if (json_is_array(value)) {
        json_t *out = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            assert_int_equal(json_array_append_new(out, reversed(json_array_get(value, i))), 0);
        return out;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    json_t *out = json_object();
    json_t *object = (json_t *)(uintptr_t)value;
    const char *names[64];
    size_t count = 0;
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it)) {
        assert_true(count < ARRAY_LEN(names));
        names[count++] = json_object_iter_key(it);
    }
    while (count-- > 0) {
        json_t *member = reversed(json_object_get(value, names[count]));
        assert_int_equal(json_object_set_new(out, names[count], member), 0);
    }
    return out;
}

static void canonical_text_does_not_depend_on_the_order_of_members(void **state)
{
    (void)state;
    struct rng rng = {42};
    struct buf first;
    struct buf second;
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    for (int i = 0; i < 2000; i++) {
        json_t *tree = random_value(&rng, 6);
        struct json *backwards = json_value_of_tree(reversed(tree));
        struct json *value = json_value_of_tree(tree);
        buf_clear(&first);
        buf_clear(&second);
        json_write_canonical(&first, value);
        json_write_canonical(&second, backwards);
        assert_true(buf_ok(&first));
        assert_true(str_eq(buf_str(&first), buf_str(&second)));
        json_free(backwards);
        json_free(value);
    }
    buf_release(&first);
    buf_release(&second);
}

/* --- text --- */

static void control_characters_quotes_and_backslashes_are_escaped(void **state)
{
    (void)state;
    static const char *const WANTED[] = {
        "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007",
        "\\b",     "\\t",     "\\n",     "\\u000b", "\\f",     "\\r",     "\\u000e", "\\u000f",
        "\\u0010", "\\u0011", "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017",
        "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
    };
    struct buf b;
    buf_init(&b, 64);
    for (unsigned c = 0; c < 128; c++) {
        char text[3] = {'<', (char)c, '>'};
        char wanted[16];
        if (c < 0x20)
            (void)snprintf(wanted, sizeof(wanted), "\"<%s>\"", WANTED[c]);
        else
            (void)snprintf(wanted, sizeof(wanted), "\"<%s%c>\"", c == '"' || c == '\\' ? "\\" : "",
                           (int)c);
        buf_clear(&b);
        json_put_text(&b, (struct str){text, 3});
        assert_str(buf_str(&b), wanted);
    }
    buf_release(&b);
}

static void text_beyond_ascii_is_written_as_it_is(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 64);
    json_put_text(&b, STR("\xC2\x80\xC3\xA9\xE2\x80\xA8\xEF\xBF\xBF\xF0\x9F\x98\x80"));
    assert_str(buf_str(&b), "\"\xC2\x80\xC3\xA9\xE2\x80\xA8\xEF\xBF\xBF\xF0\x9F\x98\x80\"");
    buf_release(&b);
}

static void no_text_is_written_as_empty_text(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 64);
    json_put_text(&b, STR_NONE);
    json_put_text(&b, STR(""));
    assert_str(buf_str(&b), "\"\"\"\"");
    buf_release(&b);
}

/* --- the ceiling --- */

static void a_document_fits_its_own_length_and_not_a_byte_less(void **state)
{
    (void)state;
    struct json *value = json_value_of(
        str_of("{\"b\":[1,-2.5,1.0,1e300,true,false,null,\"\\n\\u0001x\"],\"a\":{}}"));
    for (int canonical = 0; canonical < 2; canonical++) {
        struct buf whole;
        buf_init(&whole, 4096);
        if (canonical)
            json_write_canonical(&whole, value);
        else
            json_write_plain(&whole, value);
        for (size_t max = 0; max <= whole.len; max++) {
            struct buf b;
            buf_init(&b, max);
            if (canonical)
                json_write_canonical(&b, value);
            else
                json_write_plain(&b, value);
            assert_true(buf_ok(&b) == (max == whole.len));
            assert_true(b.len <= max);
            buf_release(&b);
        }
        buf_release(&whole);
    }
    json_free(value);
}

/* --- replies --- */

static void a_reply_is_written_member_by_member(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1024);
    struct json_out o = json_out_to(&b);
    json_open(&o, NULL, '{');
    json_add_text(&o, "text", STR("a\"b"));
    json_add_text_or_null(&o, "blank", STR(""));
    json_add_text_or_null(&o, "none", STR_NONE);
    json_add_int(&o, "int", INT64_MIN);
    json_add_bool(&o, "yes", true);
    json_add_bool(&o, "no", false);
    json_add_null(&o, "null");
    json_add_raw(&o, "raw", STR("{\"x\":[1]}"));
    json_add_raw(&o, "digit", STR("1"));
    json_add_raw(&o, "nothing", STR_NONE);
    json_add_raw(&o, "empty", STR(""));
    json_open(&o, "list", '[');
    json_add_int(&o, NULL, 1);
    json_open(&o, NULL, '{');
    json_close(&o, '}');
    json_open(&o, NULL, '[');
    json_close(&o, ']');
    json_add_text(&o, NULL, STR_NONE);
    json_close(&o, ']');
    json_add_int(&o, "last", 0);
    json_close(&o, '}');
    assert_true(buf_ok(&b));
    assert_str(buf_str(&b), "{\"text\":\"a\\\"b\",\"blank\":\"\",\"none\":null,"
                            "\"int\":-9223372036854775808,\"yes\":true,\"no\":false,\"null\":null,"
                            "\"raw\":{\"x\":[1]},\"digit\":1,\"nothing\":null,\"empty\":null,"
                            "\"list\":[1,{},[],\"\"],\"last\":0}");
    json_free(json_value_of(buf_str(&b)));
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sample_of_rfc_8785_comes_out_as_printed_there),
        cmocka_unit_test(names_are_sorted_by_utf16_code_units),
        cmocka_unit_test(a_name_comes_before_the_longer_one_it_begins),
        cmocka_unit_test(common_beginnings_outside_of_ascii_are_passed_over),
        cmocka_unit_test(objects_of_any_size_are_sorted_as_utf16_is),
        cmocka_unit_test(nested_objects_are_sorted_too),
        cmocka_unit_test(canonical_text_ignores_order_space_and_spelling),
        cmocka_unit_test(arrays_keep_their_order),
        cmocka_unit_test(integers_stay_exact_beyond_2_to_the_53),
        cmocka_unit_test(reals_lose_in_canonical_text_what_does_not_change_their_value),
        cmocka_unit_test(the_left_out_member_is_missing_from_the_outermost_object_only),
        cmocka_unit_test(plain_text_keeps_the_order_of_members),
        cmocka_unit_test(plain_text_tells_reals_from_integers),
        cmocka_unit_test(random_documents_survive_writing_and_reading),
        cmocka_unit_test(canonical_text_does_not_depend_on_the_order_of_members),
        cmocka_unit_test(control_characters_quotes_and_backslashes_are_escaped),
        cmocka_unit_test(text_beyond_ascii_is_written_as_it_is),
        cmocka_unit_test(no_text_is_written_as_empty_text),
        cmocka_unit_test(a_document_fits_its_own_length_and_not_a_byte_less),
        cmocka_unit_test(a_reply_is_written_member_by_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
