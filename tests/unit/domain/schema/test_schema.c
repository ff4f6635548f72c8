/* The part of JSON Schema that pawl knows: each keyword, and what is refused. */
#include "domain/schema/schema_checks.h"

#include <stdio.h>

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
        "{'contains':{},'minContains':0,'maxContains':2.0}",
        "{'if':{},'then':true,'else':false}",
        "{'dependentRequired':{'a':['b'],'c':[]},'dependentSchemas':{'a':{}}}",
        "{'$ref':'#/$defs/a','$defs':{'a':{'type':'null'}},'definitions':{'b':true}}",
        "{'pattern':'^[a-z]+$','patternProperties':{'^x-':{},'\\\\d':false}}",
        "{'readOnly':true,'writeOnly':false,'contentEncoding':'base64','contentMediaType':'a/b',"
        "'contentSchema':{'type':'object'}}",
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
    static const char *const WORDS[] = {"$anchor",     "$dynamicRef",      "$dynamicAnchor",
                                        "$vocabulary", "unevaluatedItems", "unevaluatedProperties",
                                        "Type",        "additionalItems",  "dependencies"};
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
        {"{'contains':1}", "/contains: must be a schema"},
        {"{'minContains':-1}", "/minContains: must be a whole number, 0 or more"},
        {"{'if':'x'}", "/if: must be a schema"},
        {"{'then':[]}", "/then: must be a schema"},
        {"{'dependentRequired':[]}", "/dependentRequired: must be an object of arrays"},
        {"{'dependentRequired':{'a':'b'}}", "/dependentRequired/a: must be an array of member"},
        {"{'dependentSchemas':{'a':1}}", "/dependentSchemas/a: must be a schema"},
        {"{'$defs':[]}", "/$defs: must be an object of schemas"},
        {"{'$defs':{'a':{'type':'x'}}}", "/$defs/a/type: must be one of"},
        {"{'pattern':1}", "/pattern: must be text"},
        {"{'pattern':'(?=a)'}",
         "/pattern: is not a supported regular expression: at byte 2: look-ahead is not supported"},
        {"{'pattern':'(a)\\\\1'}", "/pattern: is not a supported regular expression: at byte 4: "
                                   "backreferences are not supported"},
        {"{'patternProperties':{'[':{}}}",
         "/patternProperties/[: is not a supported regular expression: at byte 1: ] is missing"},
        {"{'patternProperties':{'a':1}}", "/patternProperties/a: must be a schema"},
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
         ": is boolean, which is not one of the allowed types\n"},
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
         ": the member name \"abc\" does not match propertyNames\n"},
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
         ": matches none of the schemas in anyOf\n"},
        {"{'allOf':[{'minimum':5},{'maximum':1}]}", "3",
         ": must be at least 5\n: must be at most 1\n"},
        {"{'allOf':[{'minimum':1},{'maximum':5}]}", "3", NULL},
        {"{'oneOf':[{'type':'string'},{'type':'integer'}]}", "3", NULL},
        {"{'oneOf':[{'type':'number'},{'type':'integer'}]}", "3",
         ": must match exactly one schema in oneOf, matches 2\n"},
        {"{'oneOf':[{'type':'string'},{'type':'null'}]}", "3",
         ": must match exactly one schema in oneOf, matches 0\n"},
        {"{'not':{'type':'string'}}", "3", NULL},
        {"{'not':{'type':'string'}}", "'3'", ": must not match the schema in not\n"},
        {"{'not':{'not':{'type':'string'}}}", "'3'", NULL},
        {"{'properties':{'a':{'anyOf':[{'properties':{'b':{'type':'null'}}},false]}}}",
         "{'a':{'b':1}}", "/a: matches none of the schemas in anyOf\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void conditions_choose_a_branch(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'if':{'type':'string'},'then':{'minLength':2},'else':{'minimum':5}}", "'ab'", NULL},
        {"{'if':{'type':'string'},'then':{'minLength':2},'else':{'minimum':5}}", "'a'",
         ": must have at least 2 characters, has 1\n"},
        {"{'if':{'type':'string'},'then':{'minLength':2},'else':{'minimum':5}}", "7", NULL},
        {"{'if':{'type':'string'},'then':{'minLength':2},'else':{'minimum':5}}", "4",
         ": must be at least 5\n"},
        {"{'if':{'type':'string'},'then':false}", "4", NULL},
        {"{'if':{'type':'string'},'else':false}", "'a'", NULL},
        {"{'then':false,'else':false}", "1", NULL},
        {"{'if':false}", "1", NULL},
        {"{'if':{'properties':{'a':{'const':1}},'required':['a']},'then':{'required':['b']}}",
         "{'a':1}", ": the member \"b\" is missing\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void contains_counts_the_elements_that_fit(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'contains':{'minimum':5}}", "[1,6]", NULL},
        {"{'contains':{'minimum':5}}", "[1,2]", ": has too few elements that match contains: 0\n"},
        {"{'contains':true}", "[]", ": has too few elements that match contains: 0\n"},
        {"{'contains':true}", "'text'", NULL},
        {"{'contains':{'const':1},'minContains':2}", "[1,2,1.0]", NULL},
        {"{'contains':{'const':1},'minContains':2}", "[1,2]",
         ": has too few elements that match contains: 1\n"},
        {"{'contains':{'const':1},'minContains':0}", "[]", NULL},
        {"{'contains':{'const':1},'maxContains':1}", "[1,1]",
         ": has too many elements that match contains: 2\n"},
        {"{'contains':{'const':1},'minContains':0,'maxContains':1.0}", "[1,2]", NULL},
        {"{'minContains':2,'maxContains':0}", "[1]", NULL},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void members_may_need_others(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'dependentRequired':{'card':['name','zip']}}", "{'name':1}", NULL},
        {"{'dependentRequired':{'card':['name','zip']}}", "{'card':1,'name':1,'zip':2}", NULL},
        {"{'dependentRequired':{'card':['name','zip']}}", "{'card':1,'name':1}",
         ": the member \"zip\" is missing, but \"card\" requires it\n"},
        {"{'dependentRequired':{'card':[]}}", "{'card':1}", NULL},
        {"{'dependentRequired':{'card':['a']}}", "'text'", NULL},
        {"{'dependentSchemas':{'a':{'minProperties':2}}}", "{'b':1}", NULL},
        {"{'dependentSchemas':{'a':{'minProperties':2}}}", "{'a':1}",
         ": must have at least 2 members, has 1\n"},
        {"{'dependentSchemas':{'a':false}}", "{'a':1}", ": nothing is allowed here\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void patterns_judge_texts_and_names(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'pattern':'^a+$'}", "'aaa'", NULL},
        {"{'pattern':'^a+$'}", "'ab'", ": must match the pattern \"^a+$\"\n"},
        {"{'pattern':'b'}", "'abc'", NULL},
        {"{'pattern':'^a+$'}", "7", NULL},
        {"{'pattern':'^.$'}", "'\xF0\x9F\x98\x80'", NULL},
        {"{'items':{'pattern':'^\\\\d{3}$'}}", "['123','12','456']",
         "/1: must match the pattern \"^\\\\d{3}$\"\n"},
        {"{'patternProperties':{'^n':{'type':'integer'},'x$':{'minimum':5}}}",
         "{'n':1,'nx':6,'x':9,'y':'z'}", NULL},
        {"{'patternProperties':{'^n':{'type':'integer'},'x$':{'minimum':5}}}", "{'nx':1.5}",
         "/nx: must be of type integer, is number\n/nx: must be at least 5\n"},
        {"{'patternProperties':{'^x-':true},'properties':{'a':true},"
         "'additionalProperties':false}",
         "{'x-b':1,'a':2}", NULL},
        {"{'patternProperties':{'^x-':true},'properties':{'a':true},"
         "'additionalProperties':false}",
         "{'x-b':1,'a':2,'c':3}", "/c: nothing is allowed here\n"},
        {"{'propertyNames':{'pattern':'^[a-z]+$'}}", "{'ab':1}", NULL},
        {"{'propertyNames':{'pattern':'^[a-z]+$'}}", "{'Ab':1}",
         ": the member name \"Ab\" does not match propertyNames\n"},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void references_stand_for_schemas_elsewhere(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"{'$ref':'#/$defs/n','$defs':{'n':{'type':'integer'}}}", "1", NULL},
        {"{'$ref':'#/$defs/n','$defs':{'n':{'type':'integer'}}}", "'a'",
         ": must be of type integer, is string\n"},
        {"{'$ref':'#/$defs/n','maximum':3,'$defs':{'n':{'type':'integer'}}}", "4",
         ": must be at most 3\n"},
        {"{'properties':{'a':{'$ref':'#/definitions/n'}},'definitions':{'n':{'type':'integer'}}}",
         "{'a':null}", "/a: must be of type integer, is null\n"},
        {"{'properties':{'a':{'type':'null'},'b':{'$ref':'#/properties/a'}}}", "{'b':1}",
         "/b: must be of type null, is integer\n"},
        {"{'prefixItems':[{'type':'null'},{'$ref':'#/prefixItems/0'}]}", "[null,1]",
         "/1: must be of type null, is integer\n"},
        {"{'$ref':'#/$defs/a~1b~0c','$defs':{'a/b~c':{'type':'null'}}}", "1",
         ": must be of type null, is integer\n"},
        {"{'$ref':'#/$defs/a%20b%25%7E1','$defs':{'a b%/':{'type':'null'}}}", "1",
         ": must be of type null, is integer\n"},
        {"{'$ref':'#/$defs//$defs/','$defs':{'':{'$defs':{'':{'type':'null'}}}}}", "1",
         ": must be of type null, is integer\n"},
        {"{'$ref':'#/$defs/a','$defs':{'a':{'$ref':'#/$defs/b'},'b':false}}", "1",
         ": nothing is allowed here\n"},
        {"{'$id':'https://example.org/s','$ref':'#/$defs/a','$defs':{'a':false}}", "1",
         ": nothing is allowed here\n"},
        {"{'properties':{'next':{'$ref':'#'},'v':{'type':'integer'}},'required':['v']}",
         "{'v':1,'next':{'v':2,'next':{'v':'x'}}}",
         "/next/next/v: must be of type integer, is string\n"},
        {"{'$ref':'#/$defs/tree','$defs':{'tree':{'type':'object','properties':{'children':"
         "{'items':{'$ref':'#/$defs/tree'}}}}}}",
         "{'children':[{},{'children':[{},7]}]}",
         "/children/1/children/1: must be of type object, is integer\n"},
        {"{'anyOf':[{'type':'null'},{'items':{'$ref':'#'}}]}", "[null,[],[[null]]]", NULL},
    };
    assert_judged(ROWS, ARRAY_LEN(ROWS));
}

static void a_reference_that_cannot_be_followed_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        const char *line;
    } ROWS[] = {
        {"{'$ref':1}", "/$ref: must begin with #: only references within this schema"},
        {"{'$ref':''}", "/$ref: must begin with #"},
        {"{'$ref':'other.json'}", "/$ref: must begin with #"},
        {"{'$ref':'https://example.org/s#/a'}", "/$ref: must begin with #"},
        {"{'$ref':'#name'}", "/$ref: must be # or a JSON Pointer, such as #/$defs/name"},
        {"{'$ref':'#/$defs/a'}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs','$defs':{}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/a/','$defs':{'a':true}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/enum/0','enum':[{}]}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/default','default':{}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/anyOf/01','anyOf':[{},{}]}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/anyOf/2','anyOf':[{},{}]}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/anyOf/-1','anyOf':[{},{}]}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/%zz','$defs':{'%zz':{}}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/%6','$defs':{'a':{}}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/%00','$defs':{'':{}}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/~2','$defs':{'~2':{}}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/~','$defs':{'~':{}}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/%','$defs':{'%':{}}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/%!1','$defs':{'':{}}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/$defs/%@1','$defs':{'':{}}}", "/$ref: does not point to a schema"},
        {"{'$ref':'#/anyOf/x','anyOf':[{},{}]}", "/$ref: does not point to a schema"},
        {"{'items':{'$id':'x','$ref':'#/$defs/a'},'$defs':{'a':{}}}",
         "/items/$ref: is not supported inside a schema with its own $id"},
        {"{'$ref':'#'}", "/$ref: refers back to itself with the same value"},
        {"{'allOf':[{'$ref':'#'}]}", "/allOf/0/$ref: refers back to itself"},
        {"{'not':{'$ref':'#'}}", "/not/$ref: refers back to itself"},
        {"{'then':{'dependentSchemas':{'a':{'$ref':'#'}}}}",
         "/then/dependentSchemas/a/$ref: refers back to itself"},
        {"{'$defs':{'a':{'$ref':'#/$defs/b'},'b':{'$ref':'#/$defs/a'}}}",
         "/$defs/a/$ref: refers back to itself"},
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
        cmocka_unit_test(conditions_choose_a_branch),
        cmocka_unit_test(contains_counts_the_elements_that_fit),
        cmocka_unit_test(members_may_need_others),
        cmocka_unit_test(patterns_judge_texts_and_names),
        cmocka_unit_test(references_stand_for_schemas_elsewhere),
        cmocka_unit_test(a_reference_that_cannot_be_followed_is_refused),
        cmocka_unit_test(annotations_judge_nothing),
        cmocka_unit_test(all_misfits_show_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
