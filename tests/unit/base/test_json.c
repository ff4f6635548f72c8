/* Strict reading of JSON: what is taken, what is refused, and how the refusal reads. */
#include "json_refused.h"

#include "fault_support/memory.h"

#include <pthread.h>

static const char SAMPLE[] =
    "{\"name\":\"caf\xC3\xA9 \\u00e9\\ud83d\\ude00\\n\",\"list\":[1,-2.5e3,true,"
    "false,null,[],{}],\"deep\":{\"a\":{\"b\":[[\"\\\"\"]]}}}";

static void every_kind_of_value_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum json_kind kind;
    } ROWS[] = {
        {"{}", JSON_KIND_OBJECT},         {"[]", JSON_KIND_LIST},     {"\"\"", JSON_KIND_TEXT},
        {"0", JSON_KIND_INTEGER},         {"0.0", JSON_KIND_REAL},    {"1e0", JSON_KIND_REAL},
        {"true", JSON_KIND_TRUE},         {"false", JSON_KIND_FALSE}, {"null", JSON_KIND_NULL},
        {" \t\r\n1 ", JSON_KIND_INTEGER}, {"[ ]", JSON_KIND_LIST},    {"{ }", JSON_KIND_OBJECT},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct json *value = json_value_of(str_of(ROWS[i].text));
        assert_true(json_is(value, ROWS[i].kind));
        json_free(value);
    }
}

static void members_and_elements_come_out_as_written(void **state)
{
    (void)state;
    struct json *value = json_value_of(str_of(SAMPLE));
    assert_int_equal(json_members(value), 3);
    assert_str(json_text_of(json_member(value, STR("name"))),
               "caf\xC3\xA9 \xC3\xA9\xF0\x9F\x98\x80\n");
    const struct json *list = json_member(value, STR("list"));
    assert_int_equal(json_length(list), 7);
    assert_int_equal(integer_of(json_element(list, 0)), 1);
    assert_true(real_of(json_element(list, 1)) == -2500.0);
    assert_true(json_is(json_element(list, 2), JSON_KIND_TRUE));
    assert_true(json_is(json_element(list, 4), JSON_KIND_NULL));
    json_free(value);
}

static void escapes_are_read(void **state)
{
    (void)state;
    struct json *value =
        json_value_of(str_of("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u20ac\\uD83D\\uDE00\""));
    assert_str(json_text_of(value), "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    json_free(value);
}

static void empty_text_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"", " ", "\n\t\r "};
    refuse_each(BAD, ARRAY_LEN(BAD));
    assert_refused(STR_NONE);
}

static void no_body_reads_as_an_empty_one(void **state)
{
    (void)state;
    struct problem none;
    struct problem empty;
    problem_init(&none);
    problem_init(&empty);
    struct json *value = NULL;
    assert_int_equal(json_read(STR_NONE, &none, &value), ERR_JSON_INVALID);
    assert_int_equal(json_read(STR(""), &empty, &value), ERR_JSON_INVALID);
    assert_string_equal(none.detail, empty.detail);
    assert_null(strstr(none.detail, "-1"));
    problem_release(&none);
    problem_release(&empty);
}

static void a_document_cut_anywhere_is_refused(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(SAMPLE) - 1; len++) {
        /* A copy of exactly that size, so that a sanitizer sees a read past the end. */
        char *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, SAMPLE, len);
        char *exact = realloc(copy, len > 0 ? len : 1);
        assert_non_null(exact);
        assert_refused(((struct str){exact, len}));
        free(exact);
    }
    json_free(json_value_of(str_of(SAMPLE)));
}

/* `depth` levels of `open` … `close` around `core`. */
static void put_nested(struct buf *out, size_t depth, const char *open, const char *core,
                       const char *close)
{
    for (size_t i = 0; i < depth; i++)
        buf_put(out, str_of(open));
    buf_put(out, str_of(core));
    for (size_t i = 0; i < depth; i++)
        buf_put(out, str_of(close));
}

static void sixty_four_levels_are_read_and_one_more_is_not(void **state)
{
    (void)state;
    static const struct {
        const char *open;
        const char *core;
        const char *close;
    } KINDS[] = {
        {"[", "", "]"},
        {"[", "1", "]"},
        {"{\"a\":", "1", "}"},
        {"{\"a\":", "\"[[{{\"", "}"},
        {"[1,", "\"\\\"[\"", "]"},
    };
    assert_int_equal(JSON_DEPTH_MAX, 64);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        struct buf b;
        buf_init(&b, 4096);
        put_nested(&b, 64, KINDS[i].open, KINDS[i].core, KINDS[i].close);
        json_free(json_value_of(buf_str(&b)));
        buf_clear(&b);
        put_nested(&b, 65, KINDS[i].open, KINDS[i].core, KINDS[i].close);
        assert_refused(buf_str(&b));
        buf_release(&b);
    }
}

static void many_siblings_are_not_depth(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 4096);
    buf_put_char(&b, '[');
    for (int i = 0; i < 200; i++)
        buf_put(&b, i == 0 ? STR("[{}]") : STR(",[{}]"));
    buf_put_char(&b, ']');
    struct json *value = json_value_of(buf_str(&b));
    assert_int_equal(json_length(value), 200);
    json_free(value);
    buf_release(&b);
}

static void closing_brackets_buy_no_depth(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 4096);
    for (int i = 0; i < 100; i++)
        buf_put_char(&b, ']');
    put_nested(&b, 100, "[", "", "]");
    assert_refused(buf_str(&b));
    buf_release(&b);
}

static void a_very_deep_text_is_refused_without_recursion(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, JSON_TEXT_MAX);
    for (int i = 0; i < JSON_TEXT_MAX; i++)
        buf_put_char(&b, '[');
    assert_true(buf_ok(&b));
    assert_refused(buf_str(&b));
    buf_release(&b);
}

static void text_may_be_as_long_as_its_limit_and_no_longer(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, JSON_TEXT_MAX + 1);
    buf_put_char(&b, '"');
    while (b.len < JSON_TEXT_MAX - 1)
        buf_put_char(&b, 'x');
    buf_put_char(&b, '"');
    assert_int_equal(b.len, JSON_TEXT_MAX);
    struct json *value = json_value_of(buf_str(&b));
    assert_int_equal(json_text_of(value).len, JSON_TEXT_MAX - 2);
    json_free(value);
    buf_put_char(&b, ' ');
    struct problem p;
    problem_init(&p);
    value = NULL;
    assert_int_equal(json_read(buf_str(&b), &p, &value), ERR_BODY_TOO_LARGE);
    assert_null(value);
    problem_release(&p);
    buf_release(&b);
}

static void duplicate_names_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"b\":2,\"a\":3}",
        "{\"\":1,\"\":2}",
        "{\"x\":{\"a\":1,\"a\":2}}",
        "[{\"a\":1},{\"a\":{\"b\":0,\"b\":0}}]",
        "{\"a\":null,\"a\":null}",
    };
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void duplicate_names_are_refused_in_any_spelling(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "{\"a\":1,\"\\u0061\":2}",        "{\"\\u00E9\":1,\"\\u00e9\":2}",
        "{\"\xC3\xA9\":1,\"\\u00e9\":2}", "{\"/\":1,\"\\/\":2}",
        "{\"\\n\":1,\"\\u000a\":2}",      "{\"\xF0\x9F\x98\x80\":1,\"\\ud83d\\ude00\":2}",
    };
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void like_names_that_differ_are_kept_apart(void **state)
{
    (void)state;
    /* One case differs, and é composed and decomposed: no folding, no normalisation. */
    struct json *value =
        json_value_of(str_of("{\"a\":1,\"A\":2,\"a \":3,\"\\u00e9\":4,\"e\\u0301\":5,"
                             "\"sub\":{\"a\":6}}"));
    assert_int_equal(json_members(value), 6);
    json_free(value);
}

static void each_kind_of_bad_utf8_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BAD_UTF8); i++) {
        struct str bad = BAD_UTF8[i];
        char text[32];
        int len = snprintf(text, sizeof(text), "\"%.*s\"", STR_ARG(bad));
        assert_refused(((struct str){text, (size_t)len}));
        len = snprintf(text, sizeof(text), "\"ok%.*sok\"", STR_ARG(bad));
        assert_refused(((struct str){text, (size_t)len}));
        len = snprintf(text, sizeof(text), "{\"%.*s\":1}", STR_ARG(bad));
        assert_refused(((struct str){text, (size_t)len}));
        len = snprintf(text, sizeof(text), "[1%.*s]", STR_ARG(bad));
        assert_refused(((struct str){text, (size_t)len}));
        assert_refused(bad);
    }
}

static void valid_utf8_outside_of_text_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"\xC3\xA9", "[\xE2\x82\xAC]", "{\xF0\x9F\x98\x80:1}",
                                      "1\xC2\xA0", "\342\200\2501"};
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void nul_is_refused_raw_and_escaped(void **state)
{
    (void)state;
    static const struct str RAW[] = {
        {"\0", 1},
        {"\"a\0b\"", 5},
        {"\"\0\"", 3},
        {"1\0", 2},
        {"\0"
         "1",
         2},
        {"[1\0]", 4},
        {"{\"a\0\":1}", 8},
        {"{}\0{}", 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(RAW); i++)
        assert_refused(RAW[i]);
    static const char *const ESCAPED[] = {"\"\\u0000\"", "\"a\\u0000b\"", "{\"\\u0000\":1}",
                                          "{\"a\\u0000\":1}", "[\"\\u0000\"]"};
    refuse_each(ESCAPED, ARRAY_LEN(ESCAPED));
}

static void lone_surrogates_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "\"\\ud800\"",        "\"\\udbff\"",    "\"\\udc00\"",        "\"\\udfff\"",
        "\"\\ud800x\"",       "\"\\ud800\\n\"", "\"\\ud800\\u0041\"", "\"\\ud800\\ud800\"",
        "\"\\udc00\\ud800\"", "\"\\uD83D\\u\"", "{\"\\ud800\":1}",    "\"\\ud83d\\ude00\\ude00\"",
    };
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void bad_escapes_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"\"\\x41\"",   "\"\\u12\"",   "\"\\u12g4\"",
                                      "\"\\U0041\"", "\"\\'\"",     "\"\\0\"",
                                      "\"\\\n\"",    "\"\\u-041\"", "\"\\"};
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void a_byte_order_mark_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"\xEF\xBB\xBF{}", "\xEF\xBB\xBF", "\xEF\xBB\xBF\"a\"",
                                      " \xEF\xBB\xBF{}", "{}\xEF\xBB\xBF"};
    refuse_each(BAD, ARRAY_LEN(BAD));
    assert_refused(((struct str){"\xFE\xFF\0{\0}", 6}));
    assert_refused(((struct str){"\xFF\xFE{\0}\0", 6}));
    struct problem p;
    problem_init(&p);
    struct json *value = NULL;
    assert_int_equal(json_read(STR("\xEF\xBB\xBF"), &p, &value), ERR_JSON_INVALID);
    assert_contains(p.detail, "byte-order mark");
    problem_release(&p);
    /* Inside of text U+FEFF is a character as any other. */
    json_free(json_value_of(str_of("\"\xEF\xBB\xBF\"")));
}

static void trailing_text_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"{}{}",       "{} x",  "[]]", "{}}", "1 2",
                                      "\"a\"\"b\"", "null,", "{},", "1;"};
    refuse_each(BAD, ARRAY_LEN(BAD));
}

/* Each byte in turn behind each kind of value, at the end and inside of an array. */
static void only_white_space_may_follow_a_value(void **state)
{
    (void)state;
    static const char *const VALUES[] = {"1", "1.5", "1e5", "true", "null", "\"a\"", "[]", "{}"};
    for (size_t i = 0; i < ARRAY_LEN(VALUES); i++) {
        for (int c = 0; c < 256; c++) {
            bool number = i < 3;
            bool more_digits = number && c >= '0' && c <= '9';
            bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
            char text[16];
            int len = snprintf(text, sizeof(text), "[%s%c]", VALUES[i], c);
            struct str inside = {text, (size_t)len};
            struct str alone = {text + 1, (size_t)len - 2};
            if (space || more_digits) {
                json_free(json_value_of(inside));
                json_free(json_value_of(alone));
            } else {
                assert_refused(inside);
                assert_refused(alone);
            }
        }
    }
}

static void control_characters_inside_text_are_refused(void **state)
{
    (void)state;
    for (char c = 0; c < 0x20; c++) {
        char value[] = {'"', 'a', c, '"'};
        char name[] = {'{', '"', c, '"', ':', '1', '}'};
        assert_refused(((struct str){value, sizeof(value)}));
        assert_refused(((struct str){name, sizeof(name)}));
    }
    struct json *del = json_value_of(str_of("\"\x7F\""));
    assert_int_equal(json_text_of(del).len, 1);
    json_free(del);
}

static void only_four_characters_are_white_space(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        char text[] = {(char)c, '[', (char)c, ']', (char)c};
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            json_free(json_value_of((struct str){text, sizeof(text)}));
        else
            assert_refused(((struct str){text, sizeof(text)}));
    }
}

static void malformed_structure_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "[1,]",
        "[,1]",
        "[1 2]",
        "[,]",
        "{,}",
        "{\"a\":1,}",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{'a':1}",
        "'a'",
        "{1:2}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "[1}",
        "{\"a\":1]",
        "]",
        "}",
        ":",
        ",",
        "// x\n1",
        "1 // x",
        "/* x */ 1",
        "{null:1}",
        "{\"a\"::1}",
        "[1,,2]",
        "{\"a\":1,,\"b\":2}",
        "\"a",
    };
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void words_that_are_no_literals_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "NaN",       "nan",       "Infinity", "-Infinity",
        "+Infinity", "inf",       "-inf",     "True",
        "FALSE",     "None",      "nul",      "nulll",
        "truefalse", "undefined", "[NaN]",    "{\"a\":Infinity}",
        "[-NaN]",
    };
    refuse_each(BAD, ARRAY_LEN(BAD));
}

static void the_reason_names_line_and_column(void **state)
{
    (void)state;
    struct problem p;
    problem_init(&p);
    struct json *value = NULL;
    assert_int_equal(json_read(STR("{\n  \"a\": 1,\n  \"b\": ?\n}"), &p, &value), ERR_JSON_INVALID);
    assert_contains(p.detail, "line 3, column 8");
    problem_release(&p);
}

/* Any text is either read, and then survives being written and read again, or refused with a clean
 * reason. */
static void mangled_documents_are_read_or_refused_cleanly(void **state)
{
    (void)state;
    static const char BYTES[] = "\"\\{}[]:,0123456789.eE+-truefalsn \n\x01\x7F\x80\xC3\xE2\xF0\xFF";
    struct rng rng = {2024};
    struct buf written;
    buf_init(&written, 4096);
    unsigned taken = 0;
    unsigned refused = 0;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof(SAMPLE) - 1];
        memcpy(text, SAMPLE, sizeof(text));
        for (uint64_t n = 1 + rng_below(&rng, 3); n > 0; n--)
            text[rng_below(&rng, sizeof(text))] = BYTES[rng_below(&rng, sizeof(BYTES) - 1)];
        struct problem p;
        problem_init(&p);
        struct json *value = NULL;
        enum err e = json_read((struct str){text, sizeof(text)}, &p, &value);
        if (e == ERR_OK) {
            taken++;
            assert_true(str_is_utf8((struct str){text, sizeof(text)}));
            buf_clear(&written);
            json_write_plain(&written, value);
            struct json *again = json_value_of(buf_str(&written));
            assert_true(json_same(value, again));
            json_free(again);
            json_free(value);
        } else {
            refused++;
            assert_int_equal(e, ERR_JSON_INVALID);
            if (!str_is_utf8(str_of(p.detail)))
                fail_msg("<%.*s> gave <%s>", (int)sizeof(text), text, p.detail);
        }
        problem_release(&p);
    }
    assert_true(taken > 100);
    assert_true(refused > 100);
    buf_release(&written);
}

/* --- text that was written before --- */

static enum err compare(const char *a, const char *b, bool *ret)
{
    return json_same_text(str_of(a), str_of(b), ret);
}

static void texts_of_one_value_are_the_same(void **state)
{
    (void)state;
    bool same = false;
    assert_int_equal(compare("{\"a\":1,\"b\":[2]}", "{ \"b\":[2], \"a\":1}", &same), ERR_OK);
    assert_true(same);
    assert_int_equal(compare("{\"a\":1}", "{\"a\":2}", &same), ERR_OK);
    assert_false(same);
    assert_int_equal(compare("{", "{\"a\":2}", &same), ERR_OK);
    assert_false(same);
    assert_int_equal(compare("odd", "odd", &same), ERR_OK);
    assert_true(same);
    assert_int_equal(compare(NULL, "1", &same), ERR_OK);
    assert_false(same);
}

static void what_was_kept_is_never_called_damaged_or_different_for_want_of_memory(void **state)
{
    (void)state;
    struct json *value = NULL;
    assert_int_equal(json_read_kept(STR("{\"a\":"), &value), ERR_DAMAGED);
    bool met = true;
    for (int64_t nth = 1; met; nth++) {
        memory_arm(nth);
        enum err e = json_read_kept(str_of(SAMPLE), &value);
        met = memory_disarm();
        assert_int_equal(e, met ? ERR_NO_MEMORY : ERR_OK);
    }
    json_free(value);
    met = true;
    for (int64_t nth = 1; met; nth++) {
        bool same = false;
        memory_arm(nth);
        enum err e = compare("{\"a\":1}", "{ \"a\":1}", &same);
        met = memory_disarm();
        assert_int_equal(e, met ? ERR_NO_MEMORY : ERR_OK);
        assert_true(met || same);
    }
}

/* --- memory --- */

static const char LONG_TEXT[] =
    "{\"a\":"
    "\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
    "890123456789012345678901234567890123456789\",\"b\":[1,2,{\"c\":null}]}";

/* Returns how often the outcome was wrong. */
static void *read_without_memory(void *ctx)
{
    bool once = ctx != NULL;
    intptr_t wrong = 0;
    for (int round = 0; round < 200; round++) {
        bool met = true;
        for (int64_t nth = 1; met; nth++) {
            struct json *value = NULL;
            if (once)
                memory_arm_once(nth);
            else
                memory_arm(nth);
            enum err e = json_read_kept(str_of(LONG_TEXT), &value);
            met = memory_disarm();
            wrong += e != (met ? ERR_NO_MEMORY : ERR_OK);
            json_free(e == ERR_OK ? value : NULL);
        }
    }
    return (void *)wrong; /* NOLINT(performance-no-int-to-ptr): a thread returns a pointer */
}

static void several_threads_may_run_out_of_memory_at_once(void **state)
{
    static char once;
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, read_without_memory, i % 2 == 0 ? &once : NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *wrong = &once;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

typedef enum err read_fn(struct problem *p);

static enum err read_sample(struct problem *p)
{
    struct json *value = NULL;
    enum err e = json_read(str_of(SAMPLE), p, &value);
    assert_true((e == ERR_OK) == (value != NULL));
    json_free(value);
    return e;
}

static enum err parse_sample(struct problem *p)
{
    json_t *tree = NULL;
    enum err e = json_parse(str_of(SAMPLE), p, &tree);
    assert_true((e == ERR_OK) == (tree != NULL));
    json_decref(tree);
    return e;
}

static void running_out_of_memory_is_never_the_callers_fault(void **state)
{
    (void)state;
    static read_fn *const WAYS[] = {read_sample, parse_sample};
    for (size_t i = 0; i < ARRAY_LEN(WAYS); i++) {
        bool met = true;
        for (int64_t nth = 1; met; nth++) {
            struct problem p;
            problem_init(&p);
            memory_arm(nth);
            enum err e = WAYS[i](&p);
            met = memory_disarm();
            assert_int_equal(e, met ? ERR_NO_MEMORY : ERR_OK);
            assert_int_equal(p.err, e);
            problem_release(&p);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_read),
        cmocka_unit_test(members_and_elements_come_out_as_written),
        cmocka_unit_test(escapes_are_read),
        cmocka_unit_test(empty_text_is_refused),
        cmocka_unit_test(no_body_reads_as_an_empty_one),
        cmocka_unit_test(a_document_cut_anywhere_is_refused),
        cmocka_unit_test(sixty_four_levels_are_read_and_one_more_is_not),
        cmocka_unit_test(many_siblings_are_not_depth),
        cmocka_unit_test(closing_brackets_buy_no_depth),
        cmocka_unit_test(a_very_deep_text_is_refused_without_recursion),
        cmocka_unit_test(text_may_be_as_long_as_its_limit_and_no_longer),
        cmocka_unit_test(duplicate_names_are_refused),
        cmocka_unit_test(duplicate_names_are_refused_in_any_spelling),
        cmocka_unit_test(like_names_that_differ_are_kept_apart),
        cmocka_unit_test(each_kind_of_bad_utf8_is_refused),
        cmocka_unit_test(valid_utf8_outside_of_text_is_refused),
        cmocka_unit_test(nul_is_refused_raw_and_escaped),
        cmocka_unit_test(lone_surrogates_are_refused),
        cmocka_unit_test(bad_escapes_are_refused),
        cmocka_unit_test(a_byte_order_mark_is_refused),
        cmocka_unit_test(trailing_text_is_refused),
        cmocka_unit_test(only_white_space_may_follow_a_value),
        cmocka_unit_test(control_characters_inside_text_are_refused),
        cmocka_unit_test(only_four_characters_are_white_space),
        cmocka_unit_test(malformed_structure_is_refused),
        cmocka_unit_test(words_that_are_no_literals_are_refused),
        cmocka_unit_test(the_reason_names_line_and_column),
        cmocka_unit_test(mangled_documents_are_read_or_refused_cleanly),
        cmocka_unit_test(running_out_of_memory_is_never_the_callers_fault),
        cmocka_unit_test(several_threads_may_run_out_of_memory_at_once),
        cmocka_unit_test(texts_of_one_value_are_the_same),
        cmocka_unit_test(what_was_kept_is_never_called_damaged_or_different_for_want_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
