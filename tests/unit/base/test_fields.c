/* Reading a request's object field by field: bounds, types, unknown names, and the first fault. */
#include "support.h"

#include "base/fields.h"

/* Not what is read. */
static const struct json OTHER = {.kind = JSON_KIND_TRUE};

struct reading {
    struct json *body;
    struct problem problem;
    struct fields fields;
};

static void reading_begin(struct reading *r, const char *text)
{
    problem_init(&r->problem);
    r->body = text != NULL ? json_value_of(str_of(text)) : NULL;
    fields_begin(&r->fields, r->body, &r->problem);
}

static enum err reading_end(struct reading *r)
{
    enum err e = fields_end(&r->fields);
    json_free(r->body);
    problem_release(&r->problem);
    return e;
}

/* Ends it, and sees to it that it failed with this reason. */
static void assert_fault(struct reading *r, const char *reason)
{
    enum err e = fields_end(&r->fields);
    assert_int_equal(e, ERR_FIELD_INVALID);
    assert_int_equal(r->problem.err, ERR_FIELD_INVALID);
    assert_contains(r->problem.detail, reason);
    assert_int_equal(reading_end(r), ERR_FIELD_INVALID);
}

static void fields_of_each_type_are_read(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, "{\"t\":\"caf\\u00e9 au lait\",\"n\":\"a_b-c.d:9\",\"i\":-5,\"b\":true,"
                      "\"o\":{\"x\":1},\"l\":[1,2],\"any\":1.5}");
    struct str text = STR_NONE;
    struct str name = STR_NONE;
    int64_t number = 0;
    bool flag = false;
    const struct json *object = NULL;
    const struct json *list = NULL;
    const struct json *any = NULL;
    fields_text(&r.fields, "t", 100, &text);
    fields_name(&r.fields, "n", 100, &name);
    fields_int(&r.fields, "i", -10, 10, &number);
    fields_bool(&r.fields, "b", &flag);
    fields_object(&r.fields, "o", &object);
    fields_array(&r.fields, "l", 2, &list);
    fields_any(&r.fields, "any", &any);
    assert_int_equal(fields_end(&r.fields), ERR_OK);
    assert_str(text, "caf\xC3\xA9 au lait");
    assert_str(name, "a_b-c.d:9");
    assert_true(number == -5);
    assert_true(flag);
    assert_ptr_equal(object, json_member(r.body, STR("o")));
    assert_ptr_equal(list, json_member(r.body, STR("l")));
    assert_ptr_equal(any, json_member(r.body, STR("any")));
    assert_int_equal(reading_end(&r), ERR_OK);
}

/* Reads one field of each type and sees that nothing was set. */
static void assert_all_absent(struct reading *r)
{
    struct str text = STR("before");
    struct str name = STR("before");
    int64_t number = 77;
    bool flag = true;
    const struct json *object = &OTHER;
    const struct json *list = &OTHER;
    fields_text(&r->fields, "t", 1, &text);
    fields_name(&r->fields, "n", 1, &name);
    fields_int(&r->fields, "i", 0, 0, &number);
    fields_bool(&r->fields, "b", &flag);
    fields_object(&r->fields, "o", &object);
    fields_array(&r->fields, "l", 0, &list);
    assert_str(text, "before");
    assert_str(name, "before");
    assert_true(number == 77);
    assert_true(flag);
    assert_null(object);
    assert_null(list);
}

static void absent_fields_leave_the_defaults(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, "{}");
    assert_all_absent(&r);
    assert_int_equal(reading_end(&r), ERR_OK);
}

static void null_counts_as_absent(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, "{\"t\":null,\"n\":null,\"i\":null,\"b\":null,\"o\":null,\"l\":null}");
    assert_all_absent(&r);
    assert_int_equal(reading_end(&r), ERR_OK);
}

static void no_body_has_no_fields(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, NULL);
    assert_all_absent(&r);
    const struct json *any = &OTHER;
    fields_any(&r.fields, "any", &any);
    assert_null(any);
    assert_int_equal(reading_end(&r), ERR_OK);
}

static void any_tells_null_from_absent(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, "{\"here\":null}");
    const struct json *here = NULL;
    const struct json *gone = &OTHER;
    fields_any(&r.fields, "here", &here);
    fields_any(&r.fields, "gone", &gone);
    assert_true(json_is(here, JSON_KIND_NULL));
    assert_null(gone);
    assert_int_equal(reading_end(&r), ERR_OK);
}

static void a_body_that_is_no_object_is_refused(void **state)
{
    (void)state;
    static const char *const BODIES[] = {"[]", "[{\"t\":1}]", "\"t\"", "1", "1.5", "true", "null"};
    for (size_t i = 0; i < ARRAY_LEN(BODIES); i++) {
        struct reading r;
        reading_begin(&r, BODIES[i]);
        assert_all_absent(&r);
        const struct json *any = &OTHER;
        fields_any(&r.fields, "any", &any);
        assert_null(any);
        fields_require(&r.fields, "t");
        assert_fault(&r, "must be a JSON object");
    }
}

static void unknown_names_are_refused_by_name(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, "{\"known\":1,\"unkown\":2}");
    int64_t number = 0;
    fields_int(&r.fields, "known", 0, 9, &number);
    assert_fault(&r, "\"unkown\"");
    reading_begin(&r, "{\"\":null}");
    assert_fault(&r, "\"\"");
    /* Alike is not the same. */
    reading_begin(&r, "{\"Known\":1}");
    fields_int(&r.fields, "known", 0, 9, &number);
    assert_fault(&r, "\"Known\"");
}

static void an_unknown_name_is_answered_with_the_closest_one(void **state)
{
    (void)state;
    struct reading r;
    int64_t number = 0;
    reading_begin(&r, "{\"prioriyt\":1}");
    fields_int(&r.fields, "limit", 0, 9, &number);
    fields_int(&r.fields, "priority", 0, 9, &number);
    assert_fault(&r, "Unknown field \"prioriyt\". Did you mean \"priority\"?");
    reading_begin(&r, "{\"colour\":1}");
    fields_int(&r.fields, "limit", 0, 9, &number);
    assert_int_equal(fields_end(&r.fields), ERR_FIELD_INVALID);
    assert_string_equal(r.problem.detail, "Unknown field \"colour\"");
    assert_int_equal(reading_end(&r), ERR_FIELD_INVALID);
}

/* A required field is most often missing because its name is misspelled. */
static void an_unknown_name_is_reported_before_a_missing_one(void **state)
{
    (void)state;
    struct reading r;
    struct str text = STR_NONE;
    reading_begin(&r, "{\"worker\":\"w\"}");
    fields_text(&r.fields, "worker_id", 9, &text);
    fields_require(&r.fields, "worker_id");
    assert_fault(&r, "Unknown field \"worker\"");
}

/* The detail goes into JSON, wherever a long name is cut. */
static void a_long_unknown_name_is_shown_in_utf8(void **state)
{
    (void)state;
    static const uint32_t CHARACTERS[] = {0xE9, 0x20AC, 0x1F600};
    for (size_t before = 55; before < 70; before++) {
        for (size_t k = 0; k < ARRAY_LEN(CHARACTERS); k++) {
            uint32_t c = CHARACTERS[k];
            struct buf body;
            buf_init(&body, 4096);
            buf_put(&body, STR("{\""));
            for (size_t i = 0; i < before; i++)
                buf_put_char(&body, 'x');
            for (int i = 0; i < 300; i++) {
                char bytes[4];
                buf_put_bytes(&body, bytes, utf8_encode(c, bytes));
            }
            buf_put(&body, STR("\":1}"));
            assert_true(buf_ok(&body));
            struct reading r;
            reading_begin(&r, body.ptr);
            assert_int_equal(fields_end(&r.fields), ERR_FIELD_INVALID);
            if (!str_is_utf8(str_of(r.problem.detail)))
                fail_msg("%zu letters, then U+%04X: %s", before, (unsigned)c, r.problem.detail);
            assert_contains(r.problem.detail, "\"xxx");
            assert_contains(r.problem.detail, "Unknown field");
            assert_int_equal(reading_end(&r), ERR_FIELD_INVALID);
            buf_release(&body);
        }
    }
}

static void text_may_be_as_long_as_its_bound(void **state)
{
    (void)state;
    struct reading r;
    struct str text = STR("before");
    reading_begin(&r, "{\"t\":\"abcd\\u00e9\"}");
    fields_text(&r.fields, "t", 6, &text);
    assert_str(text, "abcd\xC3\xA9");
    assert_int_equal(reading_end(&r), ERR_OK);
    text = STR("before");
    reading_begin(&r, "{\"t\":\"abcd\\u00e9\"}");
    fields_text(&r.fields, "t", 5, &text);
    assert_str(text, "before");
    assert_fault(&r, "t: must have at most 5 bytes");
}

static void empty_text_is_text_but_no_name(void **state)
{
    (void)state;
    struct reading r;
    struct str text = STR("before");
    reading_begin(&r, "{\"t\":\"\"}");
    fields_text(&r.fields, "t", 0, &text);
    assert_int_equal(text.len, 0);
    assert_int_equal(reading_end(&r), ERR_OK);
    text = STR("before");
    reading_begin(&r, "{\"t\":\"\"}");
    fields_name(&r.fields, "t", 10, &text);
    assert_str(text, "before");
    assert_fault(&r, "t: must be one or more letters");
}

static void names_are_bounded_and_plain(void **state)
{
    (void)state;
    static const char *const BAD[] = {"{\"n\":\"a b\"}", "{\"n\":\"a/b\"}", "{\"n\":\"\\u00e9\"}",
                                      "{\"n\":\"a\\n\"}"};
    struct reading r;
    struct str name = STR("before");
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        reading_begin(&r, BAD[i]);
        fields_name(&r.fields, "n", 10, &name);
        assert_str(name, "before");
        assert_fault(&r, "n: must be one or more letters");
    }
    reading_begin(&r, "{\"n\":\"abcde\"}");
    fields_name(&r.fields, "n", 4, &name);
    assert_str(name, "before");
    assert_fault(&r, "n: must have at most 4 bytes");
    reading_begin(&r, "{\"n\":\"abcd\"}");
    fields_name(&r.fields, "n", 4, &name);
    assert_str(name, "abcd");
    assert_int_equal(reading_end(&r), ERR_OK);
}

static void integers_are_held_to_both_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int64_t min;
        int64_t max;
        bool ok;
    } ROWS[] = {
        {"{\"i\":1}", 1, 5, true},
        {"{\"i\":5}", 1, 5, true},
        {"{\"i\":0}", 1, 5, false},
        {"{\"i\":6}", 1, 5, false},
        {"{\"i\":-100}", -100, 100, true},
        {"{\"i\":-101}", -100, 100, false},
        {"{\"i\":9223372036854775807}", INT64_MIN, INT64_MAX, true},
        {"{\"i\":-9223372036854775808}", INT64_MIN, INT64_MAX, true},
        {"{\"i\":9223372036854775807}", 0, INT64_MAX - 1, false},
        {"{\"i\":-9223372036854775808}", INT64_MIN + 1, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct reading r;
        int64_t number = 123456789;
        reading_begin(&r, ROWS[i].body);
        fields_int(&r.fields, "i", ROWS[i].min, ROWS[i].max, &number);
        assert_true((number == 123456789) == !ROWS[i].ok);
        assert_int_equal(reading_end(&r), ROWS[i].ok ? ERR_OK : ERR_FIELD_INVALID);
    }
    struct reading r;
    int64_t number = 0;
    reading_begin(&r, "{\"i\":6}");
    fields_int(&r.fields, "i", INT64_MIN, 5, &number);
    assert_fault(&r, "i: must be a whole number from -9223372036854775808 to 5");
}

static void arrays_are_held_to_their_bound(void **state)
{
    (void)state;
    struct reading r;
    const struct json *list = NULL;
    reading_begin(&r, "{\"l\":[1,2,3]}");
    fields_array(&r.fields, "l", 3, &list);
    assert_int_equal(json_length(list), 3);
    assert_int_equal(reading_end(&r), ERR_OK);
    reading_begin(&r, "{\"l\":[1,2,3]}");
    fields_array(&r.fields, "l", 2, &list);
    assert_null(list);
    assert_fault(&r, "l: must have at most 2 elements");
    reading_begin(&r, "{\"l\":[]}");
    fields_array(&r.fields, "l", 0, &list);
    assert_non_null(list);
    assert_int_equal(reading_end(&r), ERR_OK);
}

enum kind { TEXT, NAME, INT, BOOL, OBJECT, ARRAY };

static void read_kind(struct fields *f, enum kind kind)
{
    struct str text = STR("before");
    int64_t number = 77;
    bool flag = true;
    const struct json *value = &OTHER;
    switch (kind) {
    case TEXT:
        fields_text(f, "f", 100, &text);
        break;
    case NAME:
        fields_name(f, "f", 100, &text);
        break;
    case INT:
        fields_int(f, "f", -100, 100, &number);
        break;
    case BOOL:
        fields_bool(f, "f", &flag);
        break;
    case OBJECT:
        fields_object(f, "f", &value);
        assert_null(value);
        break;
    case ARRAY:
        fields_array(f, "f", 100, &value);
        assert_null(value);
        break;
    }
    assert_str(text, "before");
    assert_true(number == 77);
    assert_true(flag);
}

/* And none hands the wrong value out. */
static void each_type_refuses_all_others(void **state)
{
    (void)state;
    static const struct {
        enum kind kind;
        const char *reason;
        const char *bad[7];
    } ROWS[] = {
        {TEXT, "f: must be text", {"1", "1.5", "true", "false", "{}", "[]", "[\"a\"]"}},
        {NAME, "f: must be text", {"1", "1.5", "true", "false", "{}", "[]", "[\"a\"]"}},
        {INT, "f: must be a whole number", {"\"1\"", "1.5", "1e19", "true", "false", "{}", "[1]"}},
        {BOOL, "f: must be true or false", {"0", "1", "1.5", "\"true\"", "\"\"", "{}", "[]"}},
        {OBJECT, "f: must be an object", {"1", "1.5", "true", "false", "\"{}\"", "[]", "[{}]"}},
        {ARRAY, "f: must be an array", {"1", "1.5", "true", "false", "\"[]\"", "{}", "{\"0\":1}"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        for (size_t k = 0; k < ARRAY_LEN(ROWS[i].bad); k++) {
            char body[64];
            (void)snprintf(body, sizeof(body), "{\"f\":%s}", ROWS[i].bad[k]);
            struct reading r;
            reading_begin(&r, body);
            read_kind(&r.fields, ROWS[i].kind);
            assert_fault(&r, ROWS[i].reason);
        }
    }
}

static void required_fields_must_be_there_and_not_null(void **state)
{
    (void)state;
    static const char *const BODIES[] = {"{}", "{\"f\":null}", NULL};
    for (size_t i = 0; i < ARRAY_LEN(BODIES); i++) {
        struct reading r;
        const struct json *any = NULL;
        reading_begin(&r, BODIES[i]);
        fields_any(&r.fields, "f", &any);
        fields_require(&r.fields, "f");
        assert_fault(&r, "f: is required");
    }
    static const char *const GOOD[] = {"{\"f\":0}", "{\"f\":false}", "{\"f\":\"\"}", "{\"f\":{}}",
                                       "{\"f\":[]}"};
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
        struct reading r;
        const struct json *any = NULL;
        reading_begin(&r, GOOD[i]);
        fields_any(&r.fields, "f", &any);
        fields_require(&r.fields, "f");
        assert_int_equal(reading_end(&r), ERR_OK);
    }
}

static void the_first_fault_wins_and_stops_the_rest(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, "{\"a\":\"x\",\"b\":\"good\",\"c\":5,\"d\":1,\"unknown\":1}");
    int64_t number = 77;
    struct str text = STR("before");
    bool flag = false;
    const struct json *any = &OTHER;
    fields_int(&r.fields, "a", 0, 1, &number);
    fields_text(&r.fields, "b", 100, &text);
    fields_bool(&r.fields, "c", &flag);
    fields_any(&r.fields, "d", &any);
    fields_any(&r.fields, "e", &any);
    fields_require(&r.fields, "e");
    fields_fault(&r.fields, "c", "must be something else");
    assert_true(number == 77);
    assert_str(text, "before");
    assert_null(any);
    assert_fault(&r, "a: must be a whole number from 0 to 1");
}

static void a_fault_may_come_from_outside(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, "{\"a\":\"x\"}");
    struct str text = STR_NONE;
    fields_text(&r.fields, "a", 100, &text);
    fields_fault(&r.fields, "a", "must be one of y, z");
    fields_fault(&r.fields, "a", "must not be heard");
    assert_fault(&r, "a: must be one of y, z");
}

/* The text points into the parsed body, whole and unescaped. */
static void text_is_borrowed_from_the_body(void **state)
{
    (void)state;
    struct reading r;
    reading_begin(&r, "{\"a\":\"x\\ny\"}");
    struct str text = STR_NONE;
    fields_text(&r.fields, "a", 100, &text);
    assert_str(text, "x\ny");
    assert_ptr_equal(text.ptr, json_text_of(json_member(r.body, STR("a"))).ptr);
    assert_int_equal(reading_end(&r), ERR_OK);
}

static void read_so_many(size_t count)
{
    static char names[32][24];
    struct problem p;
    struct fields f;
    problem_init(&p);
    struct json *body = json_value_of(str_of("{}"));
    fields_begin(&f, body, &p);
    for (size_t i = 0; i < count; i++) {
        bool flag = false;
        (void)snprintf(names[i], sizeof(names[i]), "f%zu", i);
        fields_bool(&f, names[i], &flag);
    }
    assert_int_equal(fields_end(&f), ERR_OK);
    json_free(body);
    problem_release(&p);
}

static void read_one_too_many(void)
{
    read_so_many(ARRAY_LEN(((struct fields *)NULL)->seen) + 1);
}

static void more_fields_than_there_is_room_for_stop_the_program(void **state)
{
    (void)state;
    read_so_many(ARRAY_LEN(((struct fields *)NULL)->seen));
    assert_true(aborts(read_one_too_many));
}

/* What makes no difference is left out of the canonical text: null, and defaults spelled out. */
static void members_that_make_no_difference_are_noted(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *left;
    } ROWS[] = {
        {"{}", "{}"},
        {"{\"t\":null,\"n\":null,\"b\":null,\"o\":null,\"a\":null}", "{}"},
        {"{\"t\":\"UTC\",\"n\":7.0,\"b\":false}", "{}"},
        {"{\"t\":\"CET\",\"n\":8,\"b\":true}", "{\"b\":true,\"n\":8,\"t\":\"CET\"}"},
        {"{\"x\":null,\"n\":7}", "{\"x\":null}"},
        {"{\"x\":{\"n\":7,\"t\":null}}", "{\"x\":{\"n\":7,\"t\":null}}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        size_t defaults = 0;
        struct reading r;
        reading_begin(&r, ROWS[i].body);
        r.fields.defaults = &defaults;
        struct str text = STR("UTC");
        int64_t number = 7;
        bool flag = false;
        const struct json *value;
        fields_text(&r.fields, "t", 100, &text);
        fields_int(&r.fields, "n", 0, 100, &number);
        fields_bool(&r.fields, "b", &flag);
        fields_object(&r.fields, "o", &value);
        fields_array(&r.fields, "a", 100, &value);
        fields_any(&r.fields, "x", &value);
        struct buf out;
        buf_init(&out, 1000);
        json_write_canonical_without(&out, r.fields.object, STR_NONE, true);
        assert_str(buf_str(&out), ROWS[i].left);
        buf_release(&out);
        assert_int_equal(reading_end(&r), ERR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_each_type_are_read),
        cmocka_unit_test(absent_fields_leave_the_defaults),
        cmocka_unit_test(null_counts_as_absent),
        cmocka_unit_test(no_body_has_no_fields),
        cmocka_unit_test(any_tells_null_from_absent),
        cmocka_unit_test(a_body_that_is_no_object_is_refused),
        cmocka_unit_test(unknown_names_are_refused_by_name),
        cmocka_unit_test(an_unknown_name_is_answered_with_the_closest_one),
        cmocka_unit_test(an_unknown_name_is_reported_before_a_missing_one),
        cmocka_unit_test(a_long_unknown_name_is_shown_in_utf8),
        cmocka_unit_test(text_may_be_as_long_as_its_bound),
        cmocka_unit_test(empty_text_is_text_but_no_name),
        cmocka_unit_test(names_are_bounded_and_plain),
        cmocka_unit_test(integers_are_held_to_both_bounds),
        cmocka_unit_test(arrays_are_held_to_their_bound),
        cmocka_unit_test(members_that_make_no_difference_are_noted),
        cmocka_unit_test(each_type_refuses_all_others),
        cmocka_unit_test(required_fields_must_be_there_and_not_null),
        cmocka_unit_test(the_first_fault_wins_and_stops_the_rest),
        cmocka_unit_test(a_fault_may_come_from_outside),
        cmocka_unit_test(text_is_borrowed_from_the_body),
        cmocka_unit_test(more_fields_than_there_is_room_for_stop_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
