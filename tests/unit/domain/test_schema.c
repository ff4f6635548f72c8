/* The part of JSON Schema that pawl knows: each keyword, what is refused, and the bounds on the
 * work. JSON in this file is written with ' for " to keep it readable. */
#include "testing.h"

#include "base/limits.h"
#include "domain/schema.h"

#include <stdio.h>

static json_t *json_of(const char *quoted_singly)
{
    struct buf text;
    buf_init(&text, MIB);
    for (const char *c = quoted_singly; *c != '\0'; c++)
        buf_put_char(&text, *c == '\'' ? '"' : *c);
    struct problem p;
    problem_init(&p);
    json_t *json = NULL;
    if (json_parse(buf_str(&text), &p, &json) != ERR_OK)
        fail_msg("not JSON: %s: %s", p.detail, text.ptr);
    problem_release(&p);
    buf_release(&text);
    return json;
}

/* The faults of one check, as "path: message\n" lines. */
struct outcome {
    struct buf lines;
    size_t count;
    enum schema_verdict verdict; /* of a value */
    size_t work;                 /* steps that the value took */
};

static void outcome_of(struct outcome *o, struct fault_list *list)
{
    struct buf closed;
    buf_init(&closed, MIB);
    buf_printf(&closed, "[%.*s]", STR_ARG(buf_str(list->out)));
    struct problem p;
    problem_init(&p);
    json_t *faults = NULL;
    assert_true(buf_ok(list->out));
    assert_int_equal(list->path.len, 0);
    assert_int_equal(json_parse(buf_str(&closed), &p, &faults), ERR_OK);
    buf_init(&o->lines, MIB);
    o->count = list->count;
    size_t i;
    json_t *fault;
    json_array_foreach (faults, i, fault) {
        buf_printf(&o->lines, "%s: %s\n", json_string_value(json_object_get(fault, "path")),
                   json_string_value(json_object_get(fault, "message")));
    }
    json_decref(faults);
    problem_release(&p);
    buf_release(&closed);
}

static void check_schema_json(struct outcome *o, json_t *schema)
{
    struct buf out;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    struct fault_list list;
    fault_list_init(&list, &out);
    schema_check_schema(schema, &list);
    outcome_of(o, &list);
    fault_list_release(&list);
    buf_release(&out);
    json_decref(schema);
}

static void check_value_json(struct outcome *o, json_t *schema, json_t *value)
{
    check_schema_json(o, json_incref(schema));
    if (o->count != 0)
        fail_msg("bad schema: %s", o->lines.ptr);
    buf_release(&o->lines);
    struct buf out;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    struct fault_list list;
    fault_list_init(&list, &out);
    struct work_budget work = {SCHEMA_WORK_MAX};
    o->verdict = schema_check_value(schema, value, &work, &list);
    o->work = SCHEMA_WORK_MAX - work.left;
    assert_int_equal(o->verdict == SCHEMA_GAVE_UP, work.left == 0);
    outcome_of(o, &list);
    fault_list_release(&list);
    buf_release(&out);
    json_decref(schema);
    json_decref(value);
}

/* A schema and a value; NULL: it fits, otherwise the lines that say why not. */
struct row {
    const char *schema;
    const char *value;
    const char *lines;
};

static void assert_judged(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *wanted = rows[i].lines != NULL ? rows[i].lines : "";
        struct outcome o;
        check_value_json(&o, json_of(rows[i].schema), json_of(rows[i].value));
        if (!str_is(buf_str(&o.lines), wanted))
            fail_msg("%s with %s\nwanted: %s\ngot: %.*s", rows[i].schema, rows[i].value, wanted,
                     STR_ARG(buf_str(&o.lines)));
        assert_int_equal(o.verdict, rows[i].lines == NULL ? SCHEMA_FITS : SCHEMA_MISFITS);
        buf_release(&o.lines);
    }
}

/* --- schemas --- */

static void every_known_keyword_is_accepted(void **state)
{
    (void)state;
    static const char *const VALID[] = {
        "true",
        "false",
        "{}",
        "{'type':'string'}",
        "{'type':['null','boolean','integer','number','string','array','object']}",
        "{'enum':[1,null],'const':{'a':1}}",
        "{'properties':{'a':true,'pattern':{'type':'null'}},'required':['a'],"
        "'additionalProperties':false,'propertyNames':{'maxLength':3},'minProperties':0,"
        "'maxProperties':2.0}",
        "{'prefixItems':[{},true],'items':false,'minItems':1,'maxItems':2,'uniqueItems':true}",
        "{'minLength':1,'maxLength':10,'minimum':-1,'maximum':1.5,'exclusiveMinimum':0,"
        "'exclusiveMaximum':9,'multipleOf':0.01}",
        "{'anyOf':[{}],'allOf':[{}],'oneOf':[{}],'not':false}",
        "{'title':'t','description':'d','default':{'$ref':1},'examples':[{'pattern':1}],"
        "'deprecated':true,'format':'email','$comment':'c','$id':'i',"
        "'$schema':'https://json-schema.org/draft/2020-12/schema'}",
    };
    for (size_t i = 0; i < ARRAY_LEN(VALID); i++) {
        struct outcome o;
        check_schema_json(&o, json_of(VALID[i]));
        if (o.count != 0)
            fail_msg("%s: %s", VALID[i], o.lines.ptr);
        buf_release(&o.lines);
    }
}

static void a_keyword_that_would_not_be_applied_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const WORDS[] = {"pattern",
                                        "$ref",
                                        "$defs",
                                        "definitions",
                                        "patternProperties",
                                        "dependentSchemas",
                                        "contains",
                                        "if",
                                        "then",
                                        "else",
                                        "$dynamicRef",
                                        "$anchor",
                                        "minContains",
                                        "Type",
                                        "additionalItems",
                                        "maxContains",
                                        "unevaluatedItems",
                                        "contentEncoding"};
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        char schema[128];
        char wanted[256];
        (void)snprintf(schema, sizeof(schema), "{'items':{'%s':'x'}}", WORDS[i]);
        (void)snprintf(wanted, sizeof(wanted),
                       "/items/%s: the schema keyword \"%s\" is not supported\n", WORDS[i],
                       WORDS[i]);
        struct outcome o;
        check_schema_json(&o, json_of(schema));
        assert_string_equal(o.lines.ptr, wanted);
        buf_release(&o.lines);
    }
}

static void a_keyword_with_a_bad_value_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        const char *line;
    } ROWS[] = {
        {"7", ": must be a schema"},
        {"null", ": must be a schema"},
        {"{'type':'text'}", "/type: must be one of null, boolean"},
        {"{'type':[]}", "/type: must be an array with at least one"},
        {"{'type':['string',1]}", "/type/1: must be one of"},
        {"{'type':{}}", "/type: must be an array"},
        {"{'enum':[]}", "/enum: must be an array with at least one value"},
        {"{'enum':'a'}", "/enum: must be an array"},
        {"{'properties':[]}", "/properties: must be an object of schemas"},
        {"{'properties':{'a/b':1}}", "/properties/a~1b: must be a schema"},
        {"{'required':'a'}", "/required: must be an array of member names"},
        {"{'required':['a',1]}", "/required/1: must be the name"},
        {"{'additionalProperties':'no'}", "/additionalProperties: must be a schema"},
        {"{'propertyNames':[]}", "/propertyNames: must be a schema"},
        {"{'items':[{}]}", "/items: must be a schema"},
        {"{'prefixItems':{}}", "/prefixItems: must be an array with at least one schema"},
        {"{'prefixItems':[{},3]}", "/prefixItems/1: must be a schema"},
        {"{'minItems':-1}", "/minItems: must be a whole number, 0 or more"},
        {"{'maxItems':1.5}", "/maxItems: must be a whole number, 0 or more"},
        {"{'minLength':'1'}", "/minLength: must be a whole number, 0 or more"},
        {"{'uniqueItems':1}", "/uniqueItems: must be true or false"},
        {"{'minimum':'1'}", "/minimum: must be a number"},
        {"{'exclusiveMaximum':true}", "/exclusiveMaximum: must be a number"},
        {"{'multipleOf':0}", "/multipleOf: must be a number above 0"},
        {"{'multipleOf':-0.1}", "/multipleOf: must be a number above 0"},
        {"{'anyOf':[]}", "/anyOf: must be an array with at least one schema"},
        {"{'allOf':{}}", "/allOf: must be an array with at least one schema"},
        {"{'oneOf':[{'not':1}]}", "/oneOf/0/not: must be a schema"},
        {"{'title':1}", "/title: must be text"},
        {"{'examples':1}", "/examples: must be an array"},
        {"{'deprecated':'yes'}", "/deprecated: must be true or false"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct outcome o;
        check_schema_json(&o, json_of(ROWS[i].schema));
        if (o.count != 1 || !str_starts_with(buf_str(&o.lines), str_of(ROWS[i].line)))
            fail_msg("%s\nwanted: %s\ngot: %.*s", ROWS[i].schema, ROWS[i].line,
                     STR_ARG(buf_str(&o.lines)));
        buf_release(&o.lines);
    }
}

/* --- values --- */

static void true_and_false_are_schemas(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"true", "{'a':1}", NULL},
        {"{}", "null", NULL},
        {"false", "1", ": nothing is allowed here\n"},
        {"{'properties':{'a':false}}", "{'a':1}", "/a: nothing is allowed here\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void types_are_told_apart(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'type':'null'}", "null", NULL},
        {"{'type':'boolean'}", "false", NULL},
        {"{'type':'integer'}", "1", NULL},
        {"{'type':'integer'}", "1.0", NULL},
        {"{'type':'integer'}", "1e300", NULL},
        {"{'type':'integer'}", "1.5", ": must be of type integer, is number\n"},
        {"{'type':'number'}", "1", NULL},
        {"{'type':'number'}", "1.5", NULL},
        {"{'type':'number'}", "'1'", ": must be of type number, is string\n"},
        {"{'type':'string'}", "''", NULL},
        {"{'type':'array'}", "[]", NULL},
        {"{'type':'object'}", "{}", NULL},
        {"{'type':'object'}", "[]", ": must be of type object, is array\n"},
        {"{'type':['string','null']}", "null", NULL},
        {"{'type':['string','number']}", "3", NULL},
        {"{'type':['string','null']}", "true",
         ": is boolean, which is none of the types allowed here\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void enum_and_const_compare_as_json(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'enum':['a',1,null]}", "'a'", NULL},
        {"{'enum':['a',1,null]}", "null", NULL},
        {"{'enum':['a',1,null]}", "1.0", NULL},
        {"{'enum':['a',1]}", "'b'", ": must be one of the values [\"a\",1]\n"},
        {"{'enum':[false]}", "0", ": must be one of the values [false]\n"},
        {"{'const':{'a':[1,2],'b':null}}", "{'b':null,'a':[1.0,2]}", NULL},
        {"{'const':{'a':1}}", "{'a':1,'b':2}", ": must be the value {\"a\":1}\n"},
        {"{'const':{'a':1}}", "{'b':1}", ": must be the value {\"a\":1}\n"},
        {"{'const':[1,2]}", "[2,1]", ": must be the value [1,2]\n"},
        {"{'const':[]}", "{}", ": must be the value []\n"},
        {"{'const':9007199254740993}", "9007199254740992",
         ": must be the value 9007199254740993\n"},
        {"{'const':'abc'}", "'abd'", ": must be the value \"abc\"\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void members_are_judged_by_name(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'properties':{'a':{'type':'string'}}}", "{'a':'x','b':1}", NULL},
        {"{'properties':{'a':{'type':'string'}}}", "[1]", NULL},
        {"{'properties':{'a':{'properties':{'b':{'type':'null'}}}}}", "{'a':{'b':1}}",
         "/a/b: must be of type null, is integer\n"},
        {"{'required':['a','b']}", "{'a':null,'b':1}", NULL},
        {"{'required':['a','b','c']}", "{'b':1}",
         ": the member \"a\" is missing\n: the member \"c\" is missing\n"},
        {"{'properties':{'a':true},'additionalProperties':false}", "{'a':1}", NULL},
        {"{'properties':{'a':true},'additionalProperties':false}", "{'a':1,'b/c':2}",
         "/b~1c: nothing is allowed here\n"},
        {"{'additionalProperties':{'type':'integer'}}", "{'a':1,'b':'x'}",
         "/b: must be of type integer, is string\n"},
        {"{'propertyNames':{'maxLength':2}}", "{'ab':1}", NULL},
        {"{'propertyNames':{'maxLength':2}}", "{'abc':1}",
         ": the member name \"abc\" does not fit the schema under propertyNames\n"},
        {"{'minProperties':1}", "{}", ": must have at least 1 members, has 0\n"},
        {"{'maxProperties':1}", "{'a':1,'b':2}", ": must have at most 1 members, has 2\n"},
        {"{'minProperties':1,'maxProperties':1}", "{'a':1}", NULL},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void elements_are_judged_by_place(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'items':{'type':'integer'}}", "[1,2]", NULL},
        {"{'items':{'type':'integer'}}", "[1,'2',3,null]",
         "/1: must be of type integer, is string\n/3: must be of type integer, is null\n"},
        {"{'items':{'type':'integer'}}", "'text'", NULL},
        {"{'prefixItems':[{'type':'string'},{'type':'null'}],'items':{'type':'integer'}}",
         "['a',null,1,2]", NULL},
        {"{'prefixItems':[{'type':'string'}],'items':false}", "['a',1]",
         "/1: nothing is allowed here\n"},
        {"{'prefixItems':[{'type':'string'},{'type':'null'}]}", "['a']", NULL},
        {"{'prefixItems':[{'type':'string'}]}", "[1]", "/0: must be of type string, is integer\n"},
        {"{'minItems':2}", "[1]", ": must have at least 2 elements, has 1\n"},
        {"{'maxItems':1}", "[1,2]", ": must have at most 1 elements, has 2\n"},
        {"{'uniqueItems':true}", "[1,'1',true,[1],{'a':1},null]", NULL},
        {"{'uniqueItems':true}", "[1,2,1.0]", ": must not repeat an element: 0 and 2 are equal\n"},
        {"{'uniqueItems':true}", "[{'a':1,'b':2},{'b':2,'a':1}]",
         ": must not repeat an element: 0 and 1 are equal\n"},
        {"{'uniqueItems':false}", "[1,1]", NULL},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void text_is_measured_in_code_points(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'minLength':4,'maxLength':4}", "'aüé€'", NULL},
        {"{'maxLength':1}", "'\xF0\x9F\x98\x80'", NULL},
        {"{'minLength':2}", "'\\ud83d\\ude00'", ": must have at least 2 characters, has 1\n"},
        {"{'maxLength':2}", "'abc'", ": must have at most 2 characters, has 3\n"},
        {"{'maxLength':2.0}", "'ab'", NULL},
        {"{'maxLength':0}", "12345", NULL},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void numbers_keep_their_limits(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'minimum':1,'maximum':3}", "1", NULL},
        {"{'minimum':1,'maximum':3}", "3.0", NULL},
        {"{'minimum':1}", "0.999", ": must be at least 1\n"},
        {"{'maximum':3}", "4", ": must be at most 3\n"},
        {"{'exclusiveMinimum':1}", "1", ": must be above 1\n"},
        {"{'exclusiveMaximum':1.5}", "1.5", ": must be below 1.5\n"},
        {"{'exclusiveMinimum':1,'exclusiveMaximum':2}", "1.5", NULL},
        {"{'minimum':100}", "'1'", NULL},
        {"{'maximum':9007199254740992}", "9007199254740993",
         ": must be at most 9007199254740992\n"},
        {"{'minimum':9223372036854775807}", "9223372036854775806",
         ": must be at least 9223372036854775807\n"},
        {"{'maximum':1e300}", "9223372036854775807", NULL},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void whole_numbers_and_reals_are_compared_without_rounding(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'exclusiveMaximum':9223372036854775808.0}", "9223372036854775807", NULL},
        {"{'maximum':9223372036854775808.0}", "9223372036854775807", NULL},
        {"{'minimum':9223372036854775808.0}", "9223372036854775807",
         ": must be at least 9223372036854776000.0\n"},
        {"{'exclusiveMinimum':-9223372036854775808.0}", "-9223372036854775808",
         ": must be above -9223372036854776000.0\n"},
        {"{'minimum':-9223372036854775808.0}", "-9223372036854775808", NULL},
        {"{'exclusiveMinimum':-9223372036854777856.0}", "-9223372036854775808", NULL},
        {"{'const':9223372036854775808.0}", "9223372036854775807",
         ": must be the value 9223372036854776000.0\n"},
        {"{'const':-9223372036854775808.0}", "-9223372036854775808", NULL},
        {"{'const':9007199254740992.0}", "9007199254740993",
         ": must be the value 9007199254740992.0\n"},
        {"{'maximum':4503599627370495.5}", "4503599627370495", NULL},
        {"{'maximum':4503599627370495.5}", "4503599627370496",
         ": must be at most 4503599627370495.5\n"},
        {"{'minimum':-0.5}", "-1", ": must be at least -0.5\n"},
        {"{'minimum':-0.5}", "0", NULL},
        {"{'minimum':9223372036854775807}", "1e19", NULL},
        {"{'maximum':-9223372036854775808}", "-1e19", NULL},
        {"{'minimum':1}", "0.5", ": must be at least 1\n"},
        {"{'uniqueItems':true}", "[9223372036854775807,9223372036854775808.0]", NULL},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void multiples_are_those_of_the_decimal_numbers(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'multipleOf':3}", "9", NULL},
        {"{'multipleOf':3}", "-9.0", NULL},
        {"{'multipleOf':3}", "0", NULL},
        {"{'multipleOf':3}", "10", ": must be a multiple of 3\n"},
        {"{'multipleOf':2}", "9007199254740993", ": must be a multiple of 2\n"},
        {"{'multipleOf':0.01}", "19.99", NULL},
        {"{'multipleOf':0.1}", "0.3", NULL},
        {"{'multipleOf':0.0001}", "0.0075", NULL},
        {"{'multipleOf':0.0001}", "0.00751", ": must be a multiple of 0.0001\n"},
        {"{'multipleOf':0.01}", "-19.995", ": must be a multiple of 0.01\n"},
        {"{'multipleOf':0.5}", "1e308", NULL},
        {"{'multipleOf':0.123456789}", "1e308", ": must be a multiple of 0.123456789\n"},
        {"{'multipleOf':1.5}", "3", NULL},
        {"{'multipleOf':1e-8}", "2814750", NULL},
        {"{'multipleOf':1e-8}", "12391239123", NULL},
        {"{'multipleOf':1e-8}", "0.000000015", ": must be a multiple of 1e-8\n"},
        {"{'multipleOf':0.01}", "3000000000000", NULL},
        {"{'multipleOf':0.01}", "9223372036854775807", NULL},
        {"{'multipleOf':0.03}", "9223372036854775807", ": must be a multiple of 0.03\n"},
        {"{'multipleOf':0.03}", "9223372036854775806", NULL},
        {"{'multipleOf':0.01}", "9007199254740.93", NULL},
        {"{'multipleOf':0.02}", "9007199254740.93", ": must be a multiple of 0.02\n"},
        {"{'multipleOf':0.01}", "4.35", NULL},
        {"{'multipleOf':0.01}", "0.0", NULL},
        {"{'multipleOf':2.5}", "-0.0", NULL},
        {"{'multipleOf':5e-324}", "1e308", NULL},
        {"{'multipleOf':1e308}", "5e-324", ": must be a multiple of 1e+308\n"},
        {"{'multipleOf':1e19}", "3e19", NULL},
        {"{'multipleOf':1e19}", "25000000000000000000.0",
         ": must be a multiple of 10000000000000000000.0\n"},
        {"{'multipleOf':1e19}", "10", ": must be a multiple of 10000000000000000000.0\n"},
        {"{'multipleOf':1}", "-9223372036854775808", NULL},
        {"{'multipleOf':0.5}", "-9223372036854775808", NULL},
        {"{'multipleOf':1}", "1.5", ": must be a multiple of 1\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void combinations_are_judged_as_one(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'anyOf':[{'type':'string'},{'minimum':5}]}", "'x'", NULL},
        {"{'anyOf':[{'type':'string'},{'type':'integer','minimum':5}]}", "3",
         ": fits none of the schemas under anyOf\n"},
        {"{'allOf':[{'minimum':5},{'maximum':1}]}", "3",
         ": must be at least 5\n: must be at most 1\n"},
        {"{'allOf':[{'minimum':1},{'maximum':5}]}", "3", NULL},
        {"{'oneOf':[{'type':'string'},{'type':'integer'}]}", "3", NULL},
        {"{'oneOf':[{'type':'number'},{'type':'integer'}]}", "3",
         ": must fit one of the schemas under oneOf, fits 2\n"},
        {"{'oneOf':[{'type':'string'},{'type':'null'}]}", "3",
         ": must fit one of the schemas under oneOf, fits 0\n"},
        {"{'not':{'type':'string'}}", "3", NULL},
        {"{'not':{'type':'string'}}", "'3'", ": fits the schema under not\n"},
        {"{'not':{'not':{'type':'string'}}}", "'3'", NULL},
        {"{'properties':{'a':{'anyOf':[{'properties':{'b':{'type':'null'}}},false]}}}",
         "{'a':{'b':1}}", "/a: fits none of the schemas under anyOf\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void annotations_judge_nothing(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'title':'t','format':'email','default':3,'deprecated':true,'examples':[1]}", "'no mail'",
         NULL},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void all_misfits_show_at_once(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'type':'object','required':['id'],'properties':{'n':{'type':'integer','maximum':1},"
         "'tags':{'items':{'maxLength':1}}}}",
         "{'n':7,'tags':['a','bb','cc']}",
         ": the member \"id\" is missing\n/n: must be at most 1\n"
         "/tags/1: must have at most 1 characters, has 2\n"
         "/tags/2: must have at most 1 characters, has 2\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

/* --- bounds --- */

static json_t *array_of(size_t count, json_t *element)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        assert_int_equal(json_array_append(array, element), 0);
    json_decref(element);
    return array;
}

static json_t *array_of_numbers(int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        assert_int_equal(json_array_append_new(array, json_integer(i)), 0);
    return array;
}

static void faults_stop_at_their_limit(void **state)
{
    (void)state;
    struct outcome o;
    check_value_json(&o, json_of("{'items':{'enum':['a','b']}}"), array_of_numbers(100 * 1000));
    assert_int_equal(o.count, DEFINITION_FAULTS_MAX);
    buf_release(&o.lines);
}

static void a_megabyte_of_numbers_is_judged(void **state)
{
    (void)state;
    struct outcome o;
    check_value_json(&o, json_of("{'items':{'type':'integer','minimum':0}}"),
                     array_of(500 * 1000, json_integer(1)));
    assert_int_equal(o.count, 0);
    buf_release(&o.lines);
}

/* Doubling the elements doubles the work. */
static void unique_elements_are_found_in_linear_work(void **state)
{
    (void)state;
    struct outcome half;
    check_value_json(&half, json_of("{'uniqueItems':true}"), array_of_numbers(30 * 1000));
    assert_int_equal(half.verdict, SCHEMA_FITS);
    buf_release(&half.lines);
    struct outcome whole;
    check_value_json(&whole, json_of("{'uniqueItems':true}"), array_of_numbers(60 * 1000));
    assert_int_equal(whole.verdict, SCHEMA_FITS);
    assert_in_range(whole.work, 60 * 1000, 10 * 60 * 1000);
    assert_in_range(whole.work, half.work, 3 * half.work);
    buf_release(&whole.lines);
}

static void a_repeated_element_far_away_is_found(void **state)
{
    (void)state;
    json_t *value = array_of_numbers(100 * 1000);
    (void)json_array_append_new(value, json_real(7));
    (void)json_array_append_new(value, json_integer(3));
    struct outcome o;
    check_value_json(&o, json_of("{'uniqueItems':true}"), value);
    assert_string_equal(o.lines.ptr, ": must not repeat an element: 7 and 100000 are equal\n");
    buf_release(&o.lines);
}

static void assert_given_up(json_t *schema, json_t *value)
{
    struct outcome o;
    check_value_json(&o, schema, value);
    assert_int_equal(o.verdict, SCHEMA_GAVE_UP);
    buf_release(&o.lines);
}

static void work_that_multiplies_is_given_up(void **state)
{
    (void)state;
    json_t *branches = array_of(2000, json_of("{'items':{'type':'string','minLength':2}}"));
    json_t *value = array_of(20 * 1000, json_string("ab"));
    (void)json_array_append_new(value, json_null());
    json_t *any = json_pack("{s:o}", "anyOf", branches);
    assert_given_up(json_incref(any), json_incref(value));

    /* not must not turn giving up into a fit. */
    assert_given_up(json_pack("{s:o}", "not", any), value);
}

static void a_smaller_budget_ends_a_check_earlier(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    struct fault_list list;
    fault_list_init(&list, &out);
    json_t *schema = json_of("{'items':{'type':'integer'}}");
    json_t *value = array_of_numbers(100);
    struct work_budget work = {50};
    assert_int_equal(schema_check_value(schema, value, &work, &list), SCHEMA_GAVE_UP);
    assert_int_equal(work.left, 0);
    work.left = 1000;
    assert_int_equal(schema_check_value(schema, value, &work, &list), SCHEMA_FITS);
    assert_in_range(work.left, 1, 900);
    json_decref(schema);
    json_decref(value);
    fault_list_release(&list);
    buf_release(&out);
}

static void long_equal_texts_cost_what_they_weigh(void **state)
{
    (void)state;
    static char text[64 * KIB];
    memset(text, 'x', sizeof(text) - 1);
    json_t *schema = json_pack("{s:{s:s}}", "items", "const", text);
    assert_given_up(schema, array_of(100 * 1000, json_string(text)));
}

static void a_path_too_long_to_show_is_cut(void **state)
{
    (void)state;
    char name[1001];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    struct outcome o;
    check_value_json(&o, json_of("{'additionalProperties':false}"), json_pack("{s:i}", name, 1));
    assert_int_equal(o.count, 1);
    assert_true(str_ends_with(buf_str(&o.lines), STR("n…: nothing is allowed here\n")));
    assert_true(o.lines.len < 400);
    buf_release(&o.lines);
}

static void a_fault_without_room_is_counted_and_left_out(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 64);
    struct fault_list list;
    fault_list_init(&list, &out);
    fault_list_add(&list, "%080d", 0);
    fault_list_add(&list, "one");
    fault_list_add(&list, "two");
    assert_int_equal(list.count, 3);
    assert_true(buf_ok(&out));
    assert_string_equal(out.ptr,
                        "{\"path\":\"\",\"message\":\"one\"},{\"path\":\"\",\"message\":\"two\"}");
    fault_list_release(&list);
    buf_release(&out);
}

static void paths_are_json_pointers(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1024);
    struct fault_list list;
    fault_list_init(&list, &out);
    size_t root = fault_list_enter(&list, STR("a/b"));
    size_t back_to = fault_list_enter_index(&list, 12);
    (void)fault_list_enter(&list, STR("~"));
    fault_list_add(&list, "deep");
    fault_list_leave(&list, back_to);
    (void)fault_list_enter(&list, STR(""));
    fault_list_add(&list, "empty");
    fault_list_leave(&list, root);
    assert_int_equal(list.path.len, 0);
    assert_string_equal(out.ptr, "{\"path\":\"/a~1b/12/~0\",\"message\":\"deep\"},"
                                 "{\"path\":\"/a~1b/\",\"message\":\"empty\"}");
    fault_list_release(&list);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_known_keyword_is_accepted),
        cmocka_unit_test(a_keyword_that_would_not_be_applied_is_refused_by_name),
        cmocka_unit_test(a_keyword_with_a_bad_value_is_refused),
        cmocka_unit_test(true_and_false_are_schemas),
        cmocka_unit_test(types_are_told_apart),
        cmocka_unit_test(enum_and_const_compare_as_json),
        cmocka_unit_test(members_are_judged_by_name),
        cmocka_unit_test(elements_are_judged_by_place),
        cmocka_unit_test(text_is_measured_in_code_points),
        cmocka_unit_test(numbers_keep_their_limits),
        cmocka_unit_test(whole_numbers_and_reals_are_compared_without_rounding),
        cmocka_unit_test(multiples_are_those_of_the_decimal_numbers),
        cmocka_unit_test(combinations_are_judged_as_one),
        cmocka_unit_test(annotations_judge_nothing),
        cmocka_unit_test(all_misfits_show_at_once),
        cmocka_unit_test(faults_stop_at_their_limit),
        cmocka_unit_test(a_megabyte_of_numbers_is_judged),
        cmocka_unit_test(unique_elements_are_found_in_linear_work),
        cmocka_unit_test(a_repeated_element_far_away_is_found),
        cmocka_unit_test(a_smaller_budget_ends_a_check_earlier),
        cmocka_unit_test(work_that_multiplies_is_given_up),
        cmocka_unit_test(long_equal_texts_cost_what_they_weigh),
        cmocka_unit_test(a_path_too_long_to_show_is_cut),
        cmocka_unit_test(a_fault_without_room_is_counted_and_left_out),
        cmocka_unit_test(paths_are_json_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
