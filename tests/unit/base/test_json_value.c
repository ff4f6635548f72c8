/* JSON values: look-ups, equality, what is kept, copies, and the way to jansson's trees. */
#include "support.h"

#include <math.h>

static struct str written(struct buf *out, const struct json *value)
{
    buf_clear(out);
    json_write_plain(out, value);
    assert_true(buf_ok(out));
    return buf_str(out);
}

/* --- look-ups --- */

/* {"m0":0,"m1":1,…}; few members are searched one by one, many by bisection. */
static struct json *object_of(size_t count)
{
    struct buf text;
    buf_init(&text, 64 * 1024);
    buf_put_char(&text, '{');
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%s\"m%zu\":%zu", i > 0 ? "," : "", i, i);
    buf_put_char(&text, '}');
    struct json *object = json_value_of(buf_str(&text));
    buf_release(&text);
    return object;
}

static void members_are_found_by_name_in_objects_of_any_size(void **state)
{
    (void)state;
    for (size_t count = 0; count < 100; count++) {
        struct json *object = object_of(count);
        assert_int_equal(json_members(object), count);
        for (size_t i = 0; i < count; i++) {
            char name[8];
            (void)snprintf(name, sizeof(name), "m%zu", i);
            assert_str(json_name_at(object, i), name);
            assert_ptr_equal(json_member(object, str_of(name)), json_value_at(object, i));
            assert_int_equal(integer_of(json_value_at(object, i)), i);
        }
        static const char *const ABSENT[] = {"", "m", "M1", "m100", "l9", "n", "m1 "};
        for (size_t i = 0; i < ARRAY_LEN(ABSENT); i++)
            assert_null(json_member(object, str_of(ABSENT[i])));
        json_free(object);
    }
}

static void what_is_absent_or_of_another_kind_has_nothing_in_it(void **state)
{
    (void)state;
    struct json *value = json_value_of(STR("[\"a\",{\"b\":[]}]"));
    const struct json *text = json_element(value, 0);
    const struct json *object = json_element(value, 1);
    assert_null(json_element(value, 2));
    assert_null(json_element(object, 0));
    assert_null(json_element(NULL, 0));
    assert_null(json_member(value, STR("b")));
    assert_null(json_member(NULL, STR("b")));
    assert_int_equal(json_length(object), 0);
    assert_int_equal(json_members(text), 0);
    assert_null(json_text_of(object).ptr);
    assert_null(json_text_of(NULL).ptr);
    assert_str(json_text_of(text), "a");
    assert_false(json_is(NULL, JSON_KIND_NULL));
    assert_false(json_is_bool(text));
    assert_false(json_mark_default(value, STR("b")));
    assert_false(json_mark_default(object, STR("c")));
    json_free(value);
    json_free(NULL);
}

static void whole_numbers_are_whole_however_they_are_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool whole;
        int64_t value;
    } ROWS[] = {
        {"7", true, 7},      {"7.0", true, 7},    {"7e2", true, 700},
        {"-0.0", true, 0},   {"1.5", false, 0},   {"1e300", false, 0},
        {"true", false, 0},  {"\"7\"", false, 0}, {"1e19", false, 0},
        {"-1e19", false, 0}, {"null", false, 0},  {"9007199254740992.0", true, INT64_C(1) << 53},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        int64_t number = 0;
        struct json *value = json_value_of(str_of(ROWS[i].text));
        assert_int_equal(json_whole_of(value, &number), ROWS[i].whole);
        assert_true(number == ROWS[i].value);
        json_free(value);
    }
}

/* --- equality --- */

static void two_values_are_the_same_if_nothing_but_the_order_of_members_differs(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "null",
        "false",
        "true",
        "1",
        "2",
        "1.0",
        "1.5",
        "\"\"",
        "\"a\"",
        "\"b\"",
        "[]",
        "[1]",
        "[2]",
        "[1,2]",
        "{}",
        "{\"a\":1}",
        "{\"a\":2}",
        "{\"b\":1}",
        "{\"a\":1,\"b\":[{\"c\":null}]}",
        "{\"a\":1,\"b\":[{\"c\":true}]}",
        "{\"a\":1,\"c\":[{\"c\":null}]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        struct json *one = json_value_of(str_of(TEXTS[i]));
        for (size_t j = 0; j < ARRAY_LEN(TEXTS); j++) {
            struct json *other = json_value_of(str_of(TEXTS[j]));
            assert_int_equal(json_same(one, other), i == j);
            json_free(other);
        }
        assert_false(json_same(one, NULL) || json_same(NULL, one));
        json_free(one);
    }
    assert_true(json_same(NULL, NULL));
    bool same = false;
    assert_int_equal(json_same_text(STR("{\"a\":1,\"b\":{\"c\":2,\"d\":3}}"),
                                    STR(" {\"b\":{\"d\":3,\"c\":2},\"a\":1}"), &same),
                     ERR_OK);
    assert_true(same);
}

/* --- objects that are alike --- */

/* The order of names is taken over from the element before, if that has the same. */
static void each_object_of_a_list_has_its_own_order_of_members(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *canonical;
    } ROWS[] = {
        {"[{\"b\":1,\"a\":2},{\"b\":3,\"a\":4}]", "[{\"a\":2,\"b\":1},{\"a\":4,\"b\":3}]"},
        {"[{\"b\":1,\"a\":2},{\"a\":3,\"b\":4}]", "[{\"a\":2,\"b\":1},{\"a\":3,\"b\":4}]"},
        {"[{\"b\":1,\"a\":2},{\"b\":3,\"0\":4}]", "[{\"a\":2,\"b\":1},{\"0\":4,\"b\":3}]"},
        {"[{\"b\":1,\"a\":2},{\"b\":3}]", "[{\"a\":2,\"b\":1},{\"b\":3}]"},
        {"[[1],{\"b\":3,\"a\":4}]", "[[1],{\"a\":4,\"b\":3}]"},
        {"{\"x\":{\"b\":1,\"a\":2},\"w\":{\"b\":1,\"a\":2}}",
         "{\"w\":{\"a\":2,\"b\":1},\"x\":{\"a\":2,\"b\":1}}"},
        {"[{\"b\":{\"d\":1,\"c\":2},\"a\":0},{\"b\":{\"d\":1,\"c\":2},\"a\":0}]",
         "[{\"a\":0,\"b\":{\"c\":2,\"d\":1}},{\"a\":0,\"b\":{\"c\":2,\"d\":1}}]"},
    };
    struct buf out;
    buf_init(&out, 1024);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct json *value = json_value_of(str_of(ROWS[i].text));
        buf_clear(&out);
        json_write_canonical(&out, value);
        assert_str(buf_str(&out), ROWS[i].canonical);
        assert_str(written(&out, value), ROWS[i].text);
        json_free(value);
    }
    buf_release(&out);
    struct problem p;
    problem_init(&p);
    struct json *value = NULL;
    assert_int_equal(json_read(STR("[{\"a\":1,\"b\":2},{\"a\":1,\"a\":2}]"), &p, &value),
                     ERR_JSON_INVALID);
    problem_release(&p);
}

/* --- members that make no difference --- */

static void a_member_is_noted_as_default_once(void **state)
{
    (void)state;
    struct json *value = json_value_of(STR("{\"b\":{\"b\":1},\"a\":2}"));
    assert_true(json_mark_default(value, STR("b")));
    assert_false(json_mark_default(value, STR("b")));
    struct buf out;
    buf_init(&out, 100);
    json_write_canonical_without(&out, value, STR_NONE, true);
    assert_str(buf_str(&out), "{\"a\":2}");
    buf_clear(&out);
    json_write_canonical_without(&out, value, STR("a"), false);
    assert_str(buf_str(&out), "{\"b\":{\"b\":1}}");
    buf_clear(&out);
    json_write_canonical_without(&out, value, STR("a"), true);
    assert_str(buf_str(&out), "{}");
    buf_release(&out);
    json_free(value);
}

/* --- reasons --- */

static void a_refusal_says_where_and_what_was_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *reason;
    } ROWS[] = {
        {"{\"a\":1,\"b\":2,\"a\":3}", "line 1, column 19: duplicate name \"a\""},
        {"[1,]", "line 1, column 4: expected a value, got ']'"},
        {"[1", "line 1, column 3: expected ',' or ']', got the end"},
        {"{\"a\":1", "line 1, column 7: expected ',' or '}', got the end"},
        {"{\"a\" 1}", "line 1, column 6: expected ':', got '1'"},
        {"{a:1}", "line 1, column 2: expected a name in quotes, got 'a'"},
        {"tru", "line 1, column 1: expected a value, got 't'"},
        {"1 2", "line 1, column 3: expected the end of the text, got '2'"},
        {"\n\n \"\xC3\xA9\xE2\x82\xAC\", 1",
         "line 3, column 6: expected the end of the text, got ','"},
        {"[\n\"a\nb\"]", "line 2, column 3: a control character must be escaped: byte 0x0a"},
        {"\"a\xFF\"", "line 1, column 3: a byte is not UTF-8: byte 0xff"},
        {"\"abc", "line 1, column 5: the closing quote of a text is missing"},
        {"\"a\\x\"", "line 1, column 4: there is no such escape"},
        {"\"\\u12x4\"", "line 1, column 6: four hexadecimal digits must follow \\u"},
        {"\"\\ud800\"", "half of a surrogate pair stands alone"},
        {"\"\\u0000\"", "\\u0000 is not allowed"},
        {"[01]", "line 1, column 3: a number must not begin with 0"},
        {"[1.]", "line 1, column 4: a digit is missing"},
        {"[1e+]", "line 1, column 5: a digit is missing"},
        {"[-]", "line 1, column 3: a digit is missing"},
        {"[9223372036854775808]", "line 1, column 2: the number is an integer outside of 64 bits"},
        {"[1e999]", "line 1, column 2: the number is too large for a double"},
        {"\x01", "line 1, column 1: expected a value, got byte 0x01"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct problem p;
        problem_init(&p);
        struct json *value = NULL;
        assert_int_equal(json_read(str_of(ROWS[i].text), &p, &value), ERR_JSON_INVALID);
        assert_contains(p.detail, ROWS[i].reason);
        problem_release(&p);
    }
}

/* --- what was kept --- */

static void kept_texts_may_have_escaped_nuls_but_names_may_not(void **state)
{
    (void)state;
    struct json *value = NULL;
    assert_int_equal(json_read_kept(STR("{\"a\":\"x\\u0000y\"}"), &value), ERR_OK);
    struct str text = json_text_of(json_member(value, STR("a")));
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.ptr, "x\0y", 3);
    struct buf out;
    buf_init(&out, 100);
    assert_str(written(&out, value), "{\"a\":\"x\\u0000y\"}");
    buf_release(&out);
    json_t *tree = NULL;
    assert_int_equal(json_tree(value, &tree), ERR_OK);
    assert_int_equal(json_string_length(json_object_get(tree, "a")), 3);
    json_decref(tree);
    json_free(value);
    assert_int_equal(json_read_kept(STR("{\"\\u0000\":1}"), &value), ERR_DAMAGED);
}

static void kept_values_may_be_deeper_than_those_of_a_request(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 64 * 1024);
    for (int depth = JSON_DEPTH_MAX; depth <= JSON_KEPT_DEPTH_MAX + 1; depth += 62) {
        buf_clear(&text);
        for (int i = 0; i < depth; i++)
            buf_put_char(&text, '[');
        for (int i = 0; i < depth; i++)
            buf_put_char(&text, ']');
        struct json *value = NULL;
        assert_int_equal(json_read_kept(buf_str(&text), &value),
                         depth <= JSON_KEPT_DEPTH_MAX ? ERR_OK : ERR_DAMAGED);
        json_free(value);
    }
    buf_release(&text);
}

/* A block has room for the worst that each byte can bring. */
static void texts_that_need_the_most_memory_find_room(void **state)
{
    (void)state;
    static const struct {
        const char *open, *again, *close;
    } SHAPES[] = {
        {"[", "0,", "0]"},
        {"[", "[],", "[]]"},
        {"[", "{},", "{}]"},
        {"[", "\"\",", "1]"},
        {"[", "{\"\":0},", "0]"},
        {"[", "{\"\":{\"\":0}},", "0]"},
        {"[", "\"\\n\",", "1]"},
        {"[", "{\"\\n\":0},", "1]"},
        {"[", "[[[[[[[[0]]]]]]]],", "1]"},
        {"[", "{\"\":0,\"a\":0},", "1]"},
        {"[", "{\"\":0,\"a\":0,\"b\":0},", "1]"},
    };
    struct buf text;
    buf_init(&text, 64 * 1024);
    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
        for (int count = 0; count < 300; count++) {
            buf_clear(&text);
            buf_put(&text, str_of(SHAPES[i].open));
            for (int k = 0; k < count; k++)
                buf_put(&text, str_of(SHAPES[i].again));
            buf_put(&text, str_of(SHAPES[i].close));
            struct json *value = json_value_of(buf_str(&text));
            assert_int_equal(json_length(value), count + 1);
            json_free(value);
        }
    }
    buf_release(&text);
}

/* --- values that stand in the text as they are written --- */

/* The last member of the text, as it stands there. */
static void assert_source(const char *text, const char *wanted)
{
    struct json *value = json_value_of(str_of(text));
    size_t last = json_members(value) - 1;
    struct str source = json_plain_source(value, last, str_of(text));
    struct buf out;
    buf_init(&out, 1000);
    if (wanted != NULL) {
        assert_str(source, wanted);
        assert_str(written(&out, json_value_at(value, last)), wanted);
    } else if (source.ptr != NULL) {
        fail_msg("%s: <%.*s>", text, STR_ARG(source));
    }
    buf_release(&out);
    json_free(value);
}

static void a_value_in_plain_form_is_taken_from_the_text(void **state)
{
    (void)state;
    assert_source("{\"a\":[]}", "[]");
    assert_source("{\"a\":1,\"b\":{}}", "{}");
    assert_source("{\"a\":[1,-2,0,0.0,10.0,0.19,-0.000001,123456789.012345,true,false,null]}",
                  "[1,-2,0,0.0,10.0,0.19,-0.000001,123456789.012345,true,false,null]");
    assert_source("{\"a\":{\"z\":\"\\\"\\\\\\b\\f\\n\\r\\t caf\xC3\xA9\",\"b\":[[{}]]}}",
                  "{\"z\":\"\\\"\\\\\\b\\f\\n\\r\\t caf\xC3\xA9\",\"b\":[[{}]]}");
    assert_source(" { \"x\" : [ 1e5 ] , \"a\" :\n [1,{\"b\":2}]\t} ", "[1,{\"b\":2}]");
    static const char TWO[] = "{\"a\": [1,2] , \"[b\\u0061]\":{\"c\":[]}}";
    struct json *value = json_value_of(str_of(TWO));
    assert_str(json_plain_source(value, 0, str_of(TWO)), "[1,2]");
    assert_null(json_plain_source(value, 1, str_of(TWO)).ptr);
    json_free(value);
}

static void a_value_in_another_form_is_not(void **state)
{
    (void)state;
    static const char *const INNER[] = {
        "[1, 2]",
        "[ ]",
        "{\"b\" :1}",
        "[1.50]",
        "[1e3]",
        "[1.5e0]",
        "[-0]",
        "[-0.0]",
        "[0.00]",
        "[0.0000001]",
        "[\"\\u0061\"]",
        "[\"\\/\"]",
        "{\"\\/\":1}",
        "[9007199254740993.0]",
        "[0.1234567890123456]",
        "[100000000000000000000.0]",
    };
    for (size_t i = 0; i < ARRAY_LEN(INNER); i++) {
        char text[100];
        (void)snprintf(text, sizeof(text), "{\"x\":[1],\"a\":%s}", INNER[i]);
        assert_source(text, NULL);
    }
    assert_source("{\"a\":1}", NULL);                  /* is written as quickly */
    assert_source("{\"\\u0061\\\"[abcd\":[1]}", NULL); /* the escaped quote is no end of the name */
}

/* --- trees --- */

static void a_tree_has_what_the_value_has(void **state)
{
    (void)state;
    static const char TEXT[] =
        "{\"z\":[null,true,false,-7,1.5,1.0,\"t\\n\",[],{}],\"a\":{\"b\":1}}";
    json_t *tree = parsed(TEXT);
    struct buf out;
    buf_init(&out, 1000);
    json_put_plain(&out, tree);
    assert_str(buf_str(&out), TEXT);
    buf_release(&out);
    json_decref(tree);
}

/* --- copies --- */

static void assert_copied(const char *text)
{
    struct json *value = json_value_of(str_of(text));
    struct json *copy = NULL;
    struct buf out;
    buf_init(&out, 1000);
    assert_int_equal(json_copy_of(value, &copy), ERR_OK);
    assert_true(json_same(value, copy));
    json_free(value); /* it keeps nothing of it */
    assert_str(written(&out, copy), text);
    buf_release(&out);
    json_free(copy);
}

static void a_copy_outlives_its_source(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "null",
        "-7",
        "1.5",
        "\"\"",
        "\"caf\xC3\xA9 \\n\"",
        "[]",
        "{}",
        "[[],{},[[\"a\"]],{\"b\":[{}]}]",
        "{\"z\":[null,true,false,-7,1.5,1.0,\"t\\n\",[],{}],\"a\":{\"b\":1},\"m\":\"x\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++)
        assert_copied(TEXTS[i]);
}

static void members_of_a_copy_are_found_by_name(void **state)
{
    (void)state;
    for (size_t count = 0; count < 40; count++) {
        struct json *object = object_of(count);
        struct json *copy = NULL;
        assert_int_equal(json_copy_of(object, &copy), ERR_OK);
        json_free(object);
        for (size_t i = 0; i < count; i++) {
            char name[8];
            (void)snprintf(name, sizeof(name), "m%zu", i);
            assert_int_equal(integer_of(json_member(copy, str_of(name))), i);
        }
        json_free(copy);
    }
}

static void a_part_is_copied_alone_and_without_notes(void **state)
{
    (void)state;
    struct json *value = json_value_of(STR("{\"a\":{\"b\":1},\"c\":2}"));
    struct json *copy = NULL;
    assert_true(json_mark_default(json_member(value, STR("a")), STR("b")));
    assert_int_equal(json_copy_of(json_member(value, STR("a")), &copy), ERR_OK);
    json_free(value);
    struct buf out;
    buf_init(&out, 100);
    json_write_canonical_without(&out, copy, STR_NONE, true);
    assert_str(buf_str(&out), "{\"b\":1}");
    buf_release(&out);
    json_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_by_name_in_objects_of_any_size),
        cmocka_unit_test(what_is_absent_or_of_another_kind_has_nothing_in_it),
        cmocka_unit_test(whole_numbers_are_whole_however_they_are_written),
        cmocka_unit_test(two_values_are_the_same_if_nothing_but_the_order_of_members_differs),
        cmocka_unit_test(each_object_of_a_list_has_its_own_order_of_members),
        cmocka_unit_test(a_member_is_noted_as_default_once),
        cmocka_unit_test(a_refusal_says_where_and_what_was_expected),
        cmocka_unit_test(kept_texts_may_have_escaped_nuls_but_names_may_not),
        cmocka_unit_test(kept_values_may_be_deeper_than_those_of_a_request),
        cmocka_unit_test(texts_that_need_the_most_memory_find_room),
        cmocka_unit_test(a_value_in_plain_form_is_taken_from_the_text),
        cmocka_unit_test(a_value_in_another_form_is_not),
        cmocka_unit_test(a_tree_has_what_the_value_has),
        cmocka_unit_test(a_copy_outlives_its_source),
        cmocka_unit_test(members_of_a_copy_are_found_by_name),
        cmocka_unit_test(a_part_is_copied_alone_and_without_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
