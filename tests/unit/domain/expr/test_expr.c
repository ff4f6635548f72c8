/* Expressions and templates: what they mean, their library and their syntax. */
#include "domain/expr/expr_support.h"

/* --- what an expression gives --- */

static void roots_are_read(void **state)
{
    ASSERT_VALUES(state, {"input.amount", "150"}, {"state.count + 1", "3"}, {"item", "7"},
                  {"run.id", "`r-1`"}, {"steps.lookup.output.amount > 100", "true"},
                  {"steps['odd-name'].output", "`text`"}, {"input.tags[1]", "`b`"},
                  {"input.tags[1.0]", "`b`"}, {"#input.tags", "3"}, {"#input.order", "4"},
                  {"#input.city", "7"}, {"input.items[2].price * 2", "10"},
                  {"input['amount']", "150"}, {"input.yes and 'y' or 'n'", "`y`"});
}

static void what_is_absent_is_nil(void **state)
{
    ASSERT_VALUES(state, {"nil", "null"}, {"input.gone", "null"}, {"input.gone.far.away", "null"},
                  {"steps.gone.output.amount", "null"}, {"steps.lookup.gone[1].x", "null"},
                  {"input.no", "null"}, {"input.no.more", "null"}, {"input.tags[0]", "null"},
                  {"input.tags[4]", "null"}, {"input.tags[-1]", "null"},
                  {"input.tags[1.5]", "null"}, {"input.tags.first", "null"},
                  {"input.tags[math.tointeger(2^62)]", "null"}, {"input.order[1]", "null"},
                  {"steps[1]", "null"}, {"input[input]", "null"}, {"input.gone == nil", "true"},
                  {"input.gone or 'none'", "`none`"}, {"input['na\\0me']", "null"},
                  {"input[nil]", "null"}, {"(nil).x", "null"});
}

static void whole_values_come_back_as_they_are(void **state)
{
    ASSERT_VALUES(state, {"input.mixed", "[1,null,`x`]"}, {"input.empty", "[]"},
                  {"input.nothing", "{}"}, {"input.order", "{`id`:`o-1`,`z`:1,`a`:2,`m`:3}"},
                  {"{x = input.mixed}", "{`x`:[1,null,`x`]}"}, {"input.one", "1"},
                  {"steps.lookup", "{`output`:{`amount`:150,`list`:[1,2]}}"});
    struct world *w = *state;
    struct json *value = NULL;
    struct expr_vars vars = vars_of(w);
    assert_int_equal(expr_value(w->x, STR("input"), &vars, &w->problem, &value), ERR_OK);
    assert_true(json_same(value, json_member(w->roots, STR("input"))));
    json_free(value);
}

static void numbers_without_a_fraction_are_whole(void **state)
{
    ASSERT_VALUES(state, {"1", "1"}, {"1.0", "1"}, {"6 / 2", "3"}, {"7 // 2", "3"},
                  {"9223372036854775807", "9223372036854775807"}, {"math.tointeger(3.0)", "3"},
                  {"2^53", "9007199254740992.0"}, {"-0.0", "0"},
                  {"0.1 + 0.2", "0.30000000000000004"}, {"1/0", "!a number is not finite"},
                  {"-1/0", "!not finite"}, {"0/0", "!not finite"}, {"{1, 0/0}", "!not finite"},
                  {"1//0", "!attempt to"}, {"1%0", "!attempt to perform 'n%0'"},
                  {"1 == 1.0", "true"});
}

static void tables_become_arrays_or_objects(void **state)
{
    ASSERT_VALUES(state, {"{}", "{}"}, {"{1, 'a', true}", "[1,`a`,true]"},
                  {"{b = 1, a = {c = {}}, B = 2}", "{`B`:2,`a`:{`c`:{}},`b`:1}"},
                  {"{[2] = 'b', [1] = 'a'}", "[`a`,`b`]"}, {"list()", "[]"},
                  {"list(1, nil, 3, nil)", "[1,null,3,null]"}, {"{nil}", "{}"},
                  {"{1, nil, 3}", "!either the keys 1 to n or only names"},
                  {"{1, x = 2}", "!either the keys 1 to n"}, {"{[0] = 1}", "!either the keys 1"},
                  {"{[1.5] = 1}", "!whole numbers or texts"},
                  {"{[true] = 1}", "!whole numbers or texts"},
                  {"{[{}] = 1}", "!whole numbers or texts"}, {"{[input] = 1}", "!whole numbers"},
                  {"{[''] = 1}", "{``:1}"});
}

static void what_is_no_json_is_refused(void **state)
{
    ASSERT_VALUES(state, {"map", "!a function cannot be converted"}, {"{map}", "!a function"},
                  {"function() end", "!a function"}, {"string", "!a library cannot be"},
                  {"math", "!a library"}, {"steps", "!steps is not a value"},
                  {"{steps}", "!name one of its steps"}, {"select(2, pairs(input))", "!a function"},
                  {"list(pairs)", "!a function"}, {"'a\\0b'", "!has a NUL"},
                  {"'\\xff'", "!not UTF-8"}, {"'\\xed\\xa0\\x80'", "!not UTF-8"},
                  {"{['\\xc3'] = 1}", "!not UTF-8"}, {"{['a\\0'] = 1}", "!has a NUL"},
                  {"'\\u{10FFFF}'", "`\xF4\x8F\xBF\xBF`"}, {"'\\u{110000}'", "!not UTF-8"},
                  {"string.split('\\xff,a', ',')", "!not UTF-8"});
}

static void types_are_not_mixed_in_silence(void **state)
{
    ASSERT_VALUES(
        state, {"input.gone > 3", "!attempt to compare number with nil"},
        {"input.gone + 1", "!attempt to perform arithmetic on a nil value (field 'gone')"},
        {"'10' + 1", "!attempt to perform arithmetic on a string value"},
        {"'10' < 5", "!attempt to compare string with number"},
        {"input.tags < 1", "!attempt to compare list with number"},
        {"input.order .. 'x'", "!attempt to concatenate a object value"},
        {"input.amount.cents", "null"}, {"input.name.first", "null"},
        {"input.name:nope()", "!call a nil value"},
        {"input.gone:lower()", "!attempt to call a nil value (method 'lower')"},
        {"input()", "!attempt to call a object value"}, {"(true).x", "null"},
        {"map.x", "!attempt to index a function value"}, {"#5", "!get length of a number"},
        {"#steps", "!this has no length"}, {"-input", "!arithmetic on a object value"},
        {"1 < 'x'", "!attempt to compare number with string"},
        {"{} < {}", "!attempt to compare two table values"},
        {"1 & 1.5", "!number has no integer representation"});
}

static void the_text_of_a_failure_names_the_expression(void **state)
{
    struct world *w = *state;
    assert_outcome("", value_of(w, "nil > 1"), "!in \"nil > 1\": attempt to compare");
    assert_outcome("", value_of(w, "1\n + nil"), "!\": line 2: attempt to perform arithmetic");
    char source[200] = "nil > 1 -- ";
    for (size_t i = strlen(source); i < sizeof(source) - 2; i += 2)
        memcpy(source + i, "é", 3);
    assert_outcome(source, value_of(w, source), "!é…\": attempt to compare");
    assert_outcome("", value_of(w, "math.pi"), "!in \"math.pi\": there is no 'math.pi'");
    assert_outcome("", value_of(w, "inputs.amount"),
                   "!there is no 'inputs': expressions see input");
}

static void equality_is_by_content(void **state)
{
    ASSERT_VALUES(state, {"input.tags == input.tags", "true"},
                  {"input.order == input.same", "true"}, {"input.order ~= input.same", "false"},
                  {"input.order == input.nothing", "false"}, {"input.tags == input.mixed", "false"},
                  {"input.empty == list()", "true"}, {"list(1, 'a') == list(1.0, 'a')", "true"},
                  {"list(1) == list(1.5)", "false"}, {"list(nil) == list()", "false"},
                  {"input.empty == input.nothing", "false"}, {"input == steps", "false"},
                  {"steps == steps", "true"}, {"string == math", "false"},
                  {"input.tags == {'b','a','c'}", "false"}, {"input.amount == 150.0", "true"},
                  {"input.tags == 'b'", "false"});
}

/* --- the library --- */

static void types_have_names(void **state)
{
    ASSERT_VALUES(state, {"type(nil)", "`nil`"}, {"type()", "`nil`"}, {"type(1)", "`number`"},
                  {"type('')", "`string`"}, {"type(true)", "`boolean`"},
                  {"type(type)", "`function`"}, {"type(input)", "`object`"},
                  {"type(input.tags)", "`list`"}, {"type({1})", "`list`"},
                  {"type({a=1})", "`object`"}, {"type(steps)", "`object`"});
}

static void texts_and_numbers_turn_into_each_other(void **state)
{
    ASSERT_VALUES(
        state, {"tostring(1)", "`1`"}, {"tostring(1.0)", "`1`"},
        {"tostring(2^53)", "`9007199254740992`"}, {"tostring(nil)", "`nil`"},
        {"tostring(true)", "`true`"}, {"tostring('x')", "`x`"}, {"tostring(1/0)", "`inf`"},
        {"tostring(input.mixed)", "`[1,null,\\`x\\`]`"}, {"tostring({a=1})", "`{\\`a\\`:1}`"},
        {"tostring(pairs)", "`function`"}, {"tostring(string)", "!a library"},
        {"tonumber('12')", "12"}, {"tonumber(' 1.5 ')", "1.5"}, {"tonumber('1x')", "null"},
        {"tonumber('')", "null"}, {"tonumber('inf')", "null"}, {"tonumber('nan')", "null"},
        {"tonumber('0x10')", "16"}, {"tonumber('1\\0')", "null"}, {"tonumber(nil)", "null"},
        {"tonumber(5)", "5"}, {"tonumber('10', 2)", "2"}, {"tonumber(' -fF ', 16)", "-255"},
        {"tonumber('z', 36)", "35"}, {"tonumber('2', 2)", "null"}, {"tonumber('-', 10)", "null"},
        {"tonumber('', 10)", "null"}, {"tonumber('1.5', 10)", "null"},
        {"tonumber('9223372036854775808', 10)", "null"},
        {"tonumber('-9223372036854775808', 10)", "-9223372036854775808"},
        {"tonumber(10, 2)", "!string expected"}, {"tonumber('1', 1)", "!base must be from 2 to 36"},
        {"tonumber('1', 37)", "!base must be from 2 to 36"}, {"tonumber(input)", "null"},
        {"'n' .. 1", "`n1`"});
}

static void lists_are_mapped_filtered_and_reduced(void **state)
{
    ASSERT_VALUES(
        state, {"map(input.items, function(i) return i.sku end)", "[`x`,`y`,`z`]"},
        {"map(input.tags, function(t, n) return n .. t end)", "[`1b`,`2a`,`3c`]"},
        {"map({1, 2}, function(n) return {n = n} end)", "[{`n`:1},{`n`:2}]"},
        {"map(input.mixed, function(v) return v end)", "[1,null,`x`]"},
        {"map(nil, function(v) return v end)", "[]"},
        {"filter(input.items, function(i) return i.price > 2 end)",
         "[{`sku`:`x`,`price`:3},{`sku`:`y`,`price`:5}]"},
        {"filter(input.tags, function() return false end)", "[]"},
        {"filter(input.mixed, function() return true end)", "[1,null,`x`]"},
        {"reduce(input.items, function(sum, i) return sum + i.price end, 0)", "9.5"},
        {"reduce(nil, function() end, 'first')", "`first`"},
        {"reduce({1, 2}, function(a, b) return (a or 10) + b end)", "13"},
        {"count(input.tags)", "3"}, {"count(input.order)", "4"}, {"count(nil)", "0"},
        {"count({1, 2, x = 3})", "3"}, {"count(5)", "!list expected, got number"},
        {"contains(input.tags, 'a')", "true"}, {"contains(input.tags, 'x')", "false"},
        {"contains(input.mixed, nil)", "true"}, {"contains(nil, 1)", "false"},
        {"contains({1, 2}, 2.0)", "true"}, {"contains(list(input.tags), input.tags)", "true"},
        {"contains(list({}), {})", "false"}, {"contains(input.tags, input)", "false"},
        {"keys(input.order)", "[`id`,`z`,`a`,`m`]"}, {"keys({b=1,a=2})", "[`a`,`b`]"},
        {"keys(input.tags)", "[1,2,3]"}, {"keys(nil)", "[]"},
        {"values(input.order)", "[`o-1`,1,2,3]"}, {"values(input.mixed)", "[1,null,`x`]"},
        {"values({5, 6})", "[5,6]"}, {"keys(1)", "!list or object expected, got number"},
        {"keys(steps)", "!list or object expected, got object"},
        {"map(input.order, type)", "!list expected, got object"},
        {"map({1})", "!function expected, got nil"}, {"map()", "!function expected, got nil"});
}

static void sorting_is_stable_and_decides_by_what_is_asked(void **state)
{
    ASSERT_VALUES(
        state, {"sort(input.tags)", "[`a`,`b`,`c`]"}, {"sort({3, 1.5, 2, -1})", "[-1,1.5,2,3]"},
        {"sort(nil)", "[]"}, {"sort({1})", "[1]"},
        {"sort({5,4,3,2,1}, function(a, b) return a > b end)", "[5,4,3,2,1]"},
        {"map(sort({{1,1},{0,2},{1,3},{0,4},{1,5}}, function(a, b) return a[1] < b[1] end), "
         "function(p) return p[2] end)",
         "[2,4,1,3,5]"},
        {"sort({1, 'a'})", "!attempt to compare string with number"},
        {"sort(input.mixed)", "!attempt to compare nil with number"},
        {"count(sort({1,2,3,4,5,6,7}, function() return true end))", "7"},
        {"sort({2, 1}, 5)", "!function expected, got number"},
        {"sort(input.tags) == input.tags", "false"});
}

static void walks_go_in_the_order_of_the_json(void **state)
{
    ASSERT_VALUES(
        state,
        {"(function() local s = '' for k, v in pairs(input.order) do s = s .. k .. v end return s "
         "end)()",
         "`ido-1z1a2m3`"},
        {"(function() local s = '' for k, v in pairs({z=1, a=2, 9}) do s = s .. k .. v end return "
         "s end)()",
         "`19a2z1`"},
        {"(function() local n = 0 for i, v in ipairs(input.mixed) do n = n + i end return n end)()",
         "6"},
        {"(function() local n = 0 for i in ipairs({1, 2}) do n = n + i end return n end)()", "3"},
        {"(function() local n = 0 for i in pairs(input.tags) do n = n + i end return n end)()",
         "6"},
        {"(function() for i in ipairs(nil) do return 1 end return 0 end)()", "0"},
        {"(function() local t = {a=1, b=2} for k in pairs(t) do t[k] = nil end return t end)()",
         "{}"},
        {"(function() local f, s = pairs({1}) f(s) return list(f(s), f(s)) end)()", "[null,null]"},
        {"(pairs({}))()", "!walk expected"}, {"(pairs({}))(input)", "!walk expected"},
        {"ipairs(input.order)", "!list expected, got object"}, {"pairs('x')", "!got string"},
        {"pairs({[1.5]=1})", "!whole numbers or texts"}, {"select('#', 1, nil)", "2"},
        {"select(2, 'a', 'b')", "`b`"}, {"select(-1, 'a', 'b')", "`b`"}, {"select(5, 1)", "null"},
        {"select(0, 1)", "!index out of range"}, {"select(-5, 1)", "!index out of range"});
}

static void strings_are_worked_on_by_character(void **state)
{
    ASSERT_VALUES(
        state, {"string.len(input.city)", "6"}, {"input.city:len()", "6"},
        {"input.city:sub(2, 3)", "`ür`"}, {"input.city:sub(-3)", "`ich`"},
        {"input.city:sub(0)", "`Zürich`"}, {"input.city:sub(4, 2)", "``"},
        {"input.city:sub(-100, 100)", "`Zürich`"}, {"input.city:sub(3, -2)", "`ric`"},
        {"('abc'):sub(math.tointeger(-2^63), 2)", "`ab`"}, {"('abc'):sub(2^60)", "``"},
        {"('abc'):sub(1.5)", "!must be a whole number"}, {"input.name:lower()", "`ada lovelace`"},
        {"('zü'):upper()", "`Zü`"}, {"('  a b\\n'):trim()", "`a b`"}, {"(' \\t '):trim()", "``"},
        {"input.name:contains('Love')", "true"}, {"input.name:contains('a.')", "false"},
        {"input.name:contains('')", "true"}, {"('a'):starts_with('a')", "true"},
        {"('a'):starts_with('ab')", "false"}, {"('ba'):ends_with('a')", "true"},
        {"('a,b,,c'):split(',')", "[`a`,`b`,``,`c`]"}, {"(''):split(',')", "[``]"},
        {"('a--b'):split('--')", "[`a`,`b`]"}, {"('a'):split('')", "!must not be empty"},
        {"('aXbX'):replace('X', '..')", "`a..b..`"}, {"('aaa'):replace('aa', 'b')", "`ba`"},
        {"('a'):replace('', 'b')", "!must not be empty"}, {"('abc'):replace('b', '')", "`ac`"},
        {"string.join(input.tags, ', ')", "`b, a, c`"}, {"string.join(input.mixed, '-')", "`1--x`"},
        {"string.join({1, true, {a=1}})", "`1true{\\`a\\`:1}`"}, {"string.join(nil, ',')", "``"},
        {"string.len(5)", "!string expected, got number"}, {"string.lower(nil)", "!got nil"},
        {"string.upper(input.tags)", "!string expected, got list"},
        {"('%d+'):contains('%d')", "true"});
}

static void numbers_are_rounded_and_compared(void **state)
{
    ASSERT_VALUES(
        state, {"math.floor(1.5)", "1"}, {"math.ceil(1.5)", "2"}, {"math.floor(-1.5)", "-2"},
        {"math.round(2.5)", "3"}, {"math.round(-2.5)", "-3"}, {"math.round(7)", "7"},
        {"math.round(19.995 * 100, 2)", "1999.5"}, {"math.round(3.14159, 2)", "3.14"},
        {"math.round(1e300, 15)", "1e+300"}, {"math.round(1, 16)", "!from 0 to 15"},
        {"math.floor(1e300)", "1e+300"}, {"math.floor(1/0)", "!not finite"},
        {"math.round(0/0, 3)", "!not finite"}, {"math.abs(-3)", "3"}, {"math.abs(-3.5)", "3.5"},
        {"math.abs(math.tointeger(-2^63))", "-9223372036854775808"}, {"math.min(3, 1, 2)", "1"},
        {"math.max(3, 1.5)", "3"}, {"math.max(1)", "1"},
        {"math.max()", "!number expected, got no value"},
        {"math.min(1, 'x')", "!number expected, got string"}, {"math.tointeger(1.5)", "null"},
        {"math.tointeger('1')", "null"}, {"math.floor('1')", "!number expected, got string"});
}

static void json_is_read_and_written(void **state)
{
    ASSERT_VALUES(state, {"json.encode(input.mixed)", "`[1,null,\\`x\\`]`"},
                  {"json.encode('a')", "`\\`a\\``"}, {"json.encode(nil)", "`null`"},
                  {"json.encode({a=list()})", "`{\\`a\\`:[]}`"},
                  {"json.encode(map)", "!a function"}, {"json.encode(1/0)", "!not finite"},
                  {"json.decode('{\"a\":[1,null]}')", "{`a`:[1,null]}"},
                  {"json.decode('[1,2]')[2]", "2"}, {"json.decode('null')", "null"},
                  {"json.decode('5') + 1", "6"}, {"json.decode('{')", "!json.decode: line 1"},
                  {"json.decode('')", "!json.decode: the text is empty"},
                  {"json.decode('\"\\xff\"')", "!json.decode"},
                  {"json.decode(json.encode(input)) == input", "true"});
}

/* --- truth --- */

static void nil_and_false_are_false(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *source;
        bool truth;
    } ROWS[] = {
        {"nil", false},
        {"false", false},
        {"input.gone", false},
        {"input.no", false},
        {"input.no == nil", true},
        {"0", true},
        {"''", true},
        {"{}", true},
        {"input", true},
        {"input.empty", true},
        {"map", true},
        {"1/0", true},
        {"steps", true},
        {"not input.yes", false},
    };
    struct expr_vars vars = vars_of(w);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        bool truth = !ROWS[i].truth;
        assert_int_equal(expr_truth(w->x, str_of(ROWS[i].source), &vars, &w->problem, &truth),
                         ERR_OK);
        if (truth != ROWS[i].truth)
            fail_msg("%s is %d", ROWS[i].source, truth);
    }
    bool truth = true;
    assert_int_equal(expr_truth(w->x, STR("nil < 1"), &vars, &w->problem, &truth), ERR_EXPRESSION);
    assert_true(truth);
}

/* --- syntax --- */

static void only_one_expression_is_compiled(void **state)
{
    ASSERT_VALUES(
        state, {"", "!it must be one expression"}, {"  ", "!it must be one expression"},
        {"-- nothing", "!it must be one"}, {"1, 2", "!it must be one expression"},
        {"1;", "!it must be one expression"}, {"1) + (2", "!near ')'"},
        {"1) os.exit(", "!near ')'"}, {"1 end os.exit() do local x = (1", "!near 'end'"},
        {"x = 1", "!near '='"}, {"return 1", "!near 'return'"}, {"1 return 2", "!near 'return'"},
        {"local x", "!near 'local'"}, {"while true do end", "!near 'while'"},
        {"goto x", "!near 'goto'"}, {"::x::", "!near '::'"}, {"1 --[[", "!unfinished long comment"},
        {"'a", "!unfinished string"}, {"[[a", "!unfinished"},
        {"1 +", "!unexpected symbol near <eof>"}, {"(1", "!')' expected near <eof>"},
        {"1 -- a comment", "1"}, {"1 --[[ in ]] + 2", "3"}, {"(1)", "1"},
        {"(function() return 5 end)()", "5"}, {"...", "null"}, {"#!/bin/sh", "!near '!'"},
        {"\x1bLua", "!near '<\\27>'"}, {"1\n+\n*", "!line 3: unexpected symbol"},
        {"function() end)() or (1", "!near ')'"}, {"a.b:c", "!function arguments expected"},
        {"`", "!near"}, {"'\\q'", "!invalid escape"});
    struct world *w = *state;
    assert_outcome("NUL", value_of_str(w, STR("1\0")), "!has a NUL");
    assert_outcome("UTF-8", value_of(w, "'\xff'"), "!it is not UTF-8");
    assert_outcome("none", value_of_str(w, STR_NONE), "!it must be one expression");
}

static void faults_of_syntax_have_a_place(void **state)
{
    struct world *w = *state;
    struct buf out;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    struct fault_list list;
    fault_list_init(&list, &out);
    expr_check(w->x, STR("steps.a.output > 100 and nothing_like_this()"), &list);
    assert_int_equal(list.count, 0);
    size_t back_to = fault_list_enter(&list, STR("when"));
    expr_check(w->x, STR("1 +\n* 2"), &list);
    fault_list_leave(&list, back_to);
    struct json *value =
        json_of("{'good':'${input.a} and ${b}','plain':[1,null,'$ {','a$'],"
                "'list':[{'deep':'x ${1 +} ${2 2}'},'${','$${ ok','${\\\"}\\\"']}");
    expr_template_check(w->x, value, &list);
    json_free(value);
    assert_int_equal(w->asked, 0);
    assert_true(buf_ok(&out));
    assert_string_equal(
        out.ptr,
        "{\"path\":\"/when\",\"message\":\"is not a valid expression: line 2: unexpected symbol "
        "near '*'\"},"
        "{\"path\":\"/list/0/deep\",\"message\":\"is not a valid expression: unexpected symbol "
        "near "
        "<eof>\"},"
        "{\"path\":\"/list/0/deep\",\"message\":\"is not a valid expression: <eof> expected near "
        "'2'\"},"
        "{\"path\":\"/list/1\",\"message\":\"has a ${ without its }\"},"
        "{\"path\":\"/list/3\",\"message\":\"has a ${ without its }\"}");
    fault_list_release(&list);
    buf_release(&out);
}

static void assert_repeated(struct world *w, const char *before, const char *again, size_t times,
                            const char *after, const char *wanted)
{
    char *source = repeated(before, again, times, after);
    assert_outcome(source, value_of(w, source), wanted);
    free(source);
}

static void sources_have_a_size(void **state)
{
    struct world *w = *state;
    assert_repeated(w, "", "     ", EXPR_SOURCE_MAX, "1", "!more than 4096 bytes");
    assert_repeated(w, "0", "+1", EXPR_WORDS_MAX - 1, "", "249");
    assert_repeated(w, "0", "+1", EXPR_WORDS_MAX, "", "!more than 250 names, numbers and strings");
    assert_repeated(w, "0", "+ #''", EXPR_WORDS_MAX, "", "!more than 250 names");
    assert_repeated(w, "", "(", 300, "1", "!overflow");
    assert_repeated(w, "", "-", 4000, "1", "!it must be one expression"); /* a comment */
    assert_repeated(w, "", "- ", 2000, "1", "!overflow");
    assert_repeated(w, "", "not ", 240, "1", "!overflow");
    assert_repeated(w, "#", "{", 400, "", "!overflow");
    assert_repeated(w, "input", ".a", 200, "", "null");
    assert_repeated(w, "1", " .. 1", 240, "", "!"); /* too many registers, or nested too deep */
}

/* --- templates --- */

static void assert_filled(struct world *w, const char *template, const char *wanted)
{
    struct json *value = json_of(template);
    struct json *filled = NULL;
    struct expr_vars vars = vars_of(w);
    enum err e = expr_fill(w->x, value, &vars, &w->problem, &filled);
    assert_true((e == ERR_OK) == (filled != NULL));
    assert_outcome(template, outcome_of(e, &w->problem, filled), wanted);
    json_free(value);
}

static void templates_are_filled_in(void **state)
{
    struct world *w = *state;
    assert_filled(w, "'${input.amount}'", "150");
    assert_filled(w, "'${input.mixed}'", "[1,null,`x`]");
    assert_filled(w, "'${input.gone}'", "null");
    assert_filled(w, "'Refund ${input.amount}?'", "`Refund 150?`");
    assert_filled(w, "'${input.amount}${input.rate}'", "`1500.5`");
    assert_filled(w, "' ${input.one}'", "` 1`");
    assert_filled(w, "'<${input.no}|${input.yes}|${input.mixed}>'", "`<|true|[1,null,\\`x\\`]>`");
    assert_filled(w, "{'a':['${item}',{'${item}':'${item + 1}'}],'b':5}",
                  "{`a`:[7,{`${item}`:8}],`b`:5}");
    assert_filled(w, "{'z':'${item}','a':'${item}'}", "{`z`:7,`a`:7}");
    assert_filled(w, "[]", "[]");
    assert_filled(w, "'$${item} $ $$ ${item}$'", "`${item} $ $$ 7$`");
    assert_filled(w, "'$${'", "`${`");
    assert_filled(w, "'$$${item}'", "`$${item}`");
    assert_filled(w, "'${ {a={1,2}} }'", "{`a`:[1,2]}");
    assert_filled(w, "'${\\\"}\\\"}'", "`}`");
    assert_filled(w, "'x${[[}]] .. [==[}]]]==]}'", "`x}}]]`");
    assert_filled(w, "'${1 --[[ } ]]}'", "1");
    assert_filled(w, "'${1 -- }\\n}'", "1");
    assert_filled(w, "'${(function() return {} end)()}!'", "`{}!`");
    assert_filled(w, "'${\\\"\\\\\\\"}\\\"}'", "`\\`}`");
    assert_filled(w, "'${input.city}: ü'", "`Zürich: ü`");
    assert_filled(w, "'${\\\"\\\"}'", "``");
    assert_filled(w, "'${nil}${nil}'", "``");
}

static void templates_fail_with_a_reason(void **state)
{
    struct world *w = *state;
    assert_filled(w, "{'a':['x${nil + 1}']}", "!in \"nil + 1\": attempt to perform arithmetic");
    assert_filled(w, "'${'", "!a text has a ${ without its }");
    assert_filled(w, "'a ${ {} '", "!without its }");
    assert_filled(w, "'${}'", "!it must be one expression");
    assert_filled(w, "'x${map}'", "!a function cannot be converted");
    assert_filled(w, "'x${1/0}'", "!not finite");
    assert_filled(w, "'x${\\\"\\\\xff\\\"}'", "!not UTF-8");
    assert_filled(w, "['${item}','${steps}']", "!steps is not a value");
    assert_filled(w, "'${1 -- }'", "!without its }");
}

static void what_has_no_template_stays(void **state)
{
    struct world *w = *state;
    struct json *value = json_of("{'a':[1,'x'],'b':'${item}'}");
    struct json *filled = NULL;
    struct expr_vars vars = vars_of(w);
    assert_true(expr_has_template(value));
    assert_false(expr_has_template(json_member(value, STR("a"))));
    assert_int_equal(expr_fill(w->x, value, &vars, &w->problem, &filled), ERR_OK);
    assert_true(json_same(json_member(filled, STR("a")), json_member(value, STR("a"))));
    json_free(filled);
    json_free(value);
    value = json_of("['$','{','$ {}',{'${':1}]");
    assert_false(expr_has_template(value));
    json_free(value);
    value = json_of("[[['$${']]]");
    assert_true(expr_has_template(value));
    json_free(value);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(roots_are_read),
        TEST(what_is_absent_is_nil),
        TEST(whole_values_come_back_as_they_are),
        TEST(numbers_without_a_fraction_are_whole),
        TEST(tables_become_arrays_or_objects),
        TEST(what_is_no_json_is_refused),
        TEST(types_are_not_mixed_in_silence),
        TEST(the_text_of_a_failure_names_the_expression),
        TEST(equality_is_by_content),
        TEST(types_have_names),
        TEST(texts_and_numbers_turn_into_each_other),
        TEST(lists_are_mapped_filtered_and_reduced),
        TEST(sorting_is_stable_and_decides_by_what_is_asked),
        TEST(walks_go_in_the_order_of_the_json),
        TEST(strings_are_worked_on_by_character),
        TEST(numbers_are_rounded_and_compared),
        TEST(json_is_read_and_written),
        TEST(nil_and_false_are_false),
        TEST(only_one_expression_is_compiled),
        TEST(faults_of_syntax_have_a_place),
        TEST(sources_have_a_size),
        TEST(templates_are_filled_in),
        TEST(templates_fail_with_a_reason),
        TEST(what_has_no_template_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
