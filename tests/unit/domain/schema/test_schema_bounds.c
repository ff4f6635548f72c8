/* JSON Schema: the bounds on work, depth, patterns and faults. */
#include "domain/schema/schema_checks.h"

#include <stdio.h>

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
    struct json *schema = json_value_of_tree(json_of("{'items':{'type':'integer'}}"));
    struct json *value = json_value_of_tree(array_of_numbers(100));
    struct work_budget work = {50};
    assert_int_equal(schema_check_value(schema, value, &work, &list), SCHEMA_GAVE_UP);
    assert_int_equal(work.left, 0);
    work.left = 1000;
    assert_int_equal(schema_check_value(schema, value, &work, &list), SCHEMA_FITS);
    assert_in_range(work.left, 1, 900);
    json_free(schema);
    json_free(value);
    fault_list_release(&list);
    buf_release(&out);
}

static void long_equal_texts_cost_what_they_weigh(void **state)
{
    (void)state;
    enum { COUNT = 100 * 1000 };
    static char text[64 * KIB];
    static struct json items[COUNT]; /* of one text, which would not fit memory so many times */
    memset(text, 'x', sizeof(text) - 1);
    for (size_t i = 0; i < COUNT; i++)
        items[i] = json_text_value(str_of(text));
    const struct json value = {.kind = JSON_KIND_LIST, .items = items, .count = COUNT};
    struct json *schema = json_value_of_tree(json_pack("{s:{s:s}}", "items", "const", text));
    struct buf out;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    struct fault_list list;
    fault_list_init(&list, &out);
    struct work_budget work = {SCHEMA_WORK_MAX};
    assert_int_equal(schema_check_value(schema, &value, &work, &list), SCHEMA_GAVE_UP);
    fault_list_release(&list);
    buf_release(&out);
    json_free(schema);
}

static json_t *chain_of_references(int count)
{
    json_t *definitions = json_object();
    for (int i = 0; i < count; i++) {
        char name[16];
        char next[32];
        (void)snprintf(name, sizeof(name), "%d", i);
        (void)snprintf(next, sizeof(next), "#/$defs/%d", i + 1);
        (void)json_object_set_new(definitions, name, json_pack("{s:s}", "$ref", next));
    }
    char last[16];
    (void)snprintf(last, sizeof(last), "%d", count);
    (void)json_object_set_new(definitions, last, json_of("{'type':'null'}"));
    return json_pack("{s:s,s:o}", "$ref", "#/$defs/0", "$defs", definitions);
}

static void long_chains_of_references_are_bounded(void **state)
{
    (void)state;
    struct outcome o;
    check_value_json(&o, chain_of_references(500), json_null());
    assert_int_equal(o.verdict, SCHEMA_FITS);
    buf_release(&o.lines);
    check_schema_json(&o, chain_of_references(2000));
    assert_true(
        str_starts_with(buf_str(&o.lines), STR("/$ref: refers through too many schemas\n")));
    buf_release(&o.lines);
}

/* Each level of the value costs as many schemas as the chain is long. */
static void a_value_that_leads_too_deep_is_given_up(void **state)
{
    (void)state;
    json_t *schema = chain_of_references(100);
    json_t *last = json_object_get(json_object_get(schema, "$defs"), "100");
    assert_int_equal(json_object_clear(last), 0);
    (void)json_object_set_new(last, "items", json_of("{'$ref':'#'}"));
    json_t *value = json_array();
    for (int i = 0; i < 20; i++)
        value = json_pack("[o]", value);
    assert_given_up(schema, value);
}

static void patterns_are_bounded_together(void **state)
{
    (void)state;
    json_t *patterns = json_object();
    for (int i = 0; i < 20; i++) {
        char pattern[32];
        (void)snprintf(pattern, sizeof(pattern), "a{4000}%d", i);
        (void)json_object_set_new(patterns, pattern, json_true());
    }
    struct outcome o;
    check_schema_json(&o, json_pack("{s:o}", "patternProperties", patterns));
    assert_int_equal(o.count, 1);
    assert_string_equal(o.lines.ptr,
                        "/patternProperties/a{4000}16: the patterns of this schema are "
                        "too large together\n");
    buf_release(&o.lines);
}

static void work_of_patterns_is_counted(void **state)
{
    (void)state;
    static char text[64 * KIB];
    memset(text, 'a', sizeof(text) - 1);
    assert_given_up(json_of("{'pattern':'(?:a{0,500}){8}b'}"), json_string(text));
    assert_given_up(json_of("{'not':{'pattern':'(?:a{0,500}){8}b'}}"), json_string(text));
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

/* The verdict of a budget: nothing, or what any larger one says. */
static void assert_any_budget_is_kept(const char *schema_text, const char *value_text)
{
    struct json *schema = json_value_of_tree(json_of(schema_text));
    struct json *value = json_value_of_tree(json_of(value_text));
    enum schema_verdict verdict = SCHEMA_GAVE_UP;
    for (size_t budget = 0; verdict == SCHEMA_GAVE_UP; budget++) {
        struct buf out;
        struct fault_list list;
        buf_init(&out, PROBLEM_FAULTS_MAX);
        fault_list_init(&list, &out);
        struct work_budget work = {budget};
        verdict = schema_check_value(schema, value, &work, &list);
        assert_true(work.left <= budget);
        assert_int_equal(verdict == SCHEMA_GAVE_UP, work.left == 0);
        fault_list_release(&list);
        buf_release(&out);
    }
    struct outcome whole;
    check_value_json(&whole, json_of(schema_text), json_of(value_text));
    assert_int_equal(verdict, whole.verdict);
    buf_release(&whole.lines);
    json_free(schema);
    json_free(value);
}

static void a_check_ends_with_any_budget(void **state)
{
    (void)state;
    static const char *const CHECKS[][2] = {
        {"{'items':{'type':'integer'}}", "[1,2,3]"},
        {"{'prefixItems':[{'type':'integer'},{'type':'string'}],'items':false}", "[1,'a',3]"},
        {"{'contains':{'const':3},'minContains':1,'maxContains':2}", "[1,3,3]"},
        {"{'contains':{'const':3},'maxContains':1}", "[3,3,3]"},
        {"{'uniqueItems':true}", "[[1,2],[1,2.5],{'a':1},{'a':2},'x','xy',1]"},
        {"{'uniqueItems':true}", "[[1,2],[1,2]]"},
        {"{'required':['a','b'],'properties':{'a':{'type':'integer'}}}", "{'a':1,'b':2}"},
        {"{'dependentRequired':{'a':['b','c']}}", "{'a':1,'b':2}"},
        {"{'dependentSchemas':{'a':{'minProperties':2},'z':false}}", "{'a':1}"},
        {"{'patternProperties':{'^x':{'type':'string'}},'additionalProperties':false}",
         "{'x1':'a','y':2}"},
        {"{'propertyNames':{'maxLength':2,'pattern':'^a'}}", "{'ab':1,'abc':2,'b':3}"},
        {"{'allOf':[{'minimum':1},{'maximum':3}],'not':{'const':2}}", "3"},
        {"{'anyOf':[{'type':'string'},{'type':'integer'}]}", "3"},
        {"{'oneOf':[{'minimum':1},{'minimum':2}]}", "3"},
        {"{'if':{'type':'object'},'then':{'required':['a']},'else':false}", "{'b':1}"},
        {"{'enum':[[1,[2,3]],{'a':[1,2]},'text']}", "{'a':[1,3]}"},
        {"{'const':{'a':[1,2,{'b':'c'}]}}", "{'a':[1,2,{'b':'d'}]}"},
        {"{'$defs':{'n':{'minimum':0}},'items':{'$ref':'#/$defs/n'}}", "[1,2,-1]"},
        {"{'pattern':'^(a|b)*c$','minLength':2,'maxLength':9}", "'ababab'"},
        {"{'multipleOf':0.5,'type':['number','null']}", "1.25"},
        {"false", "1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CHECKS); i++)
        assert_any_budget_is_kept(CHECKS[i][0], CHECKS[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_check_ends_with_any_budget),
        cmocka_unit_test(faults_stop_at_their_limit),
        cmocka_unit_test(a_megabyte_of_numbers_is_judged),
        cmocka_unit_test(unique_elements_are_found_in_linear_work),
        cmocka_unit_test(a_repeated_element_far_away_is_found),
        cmocka_unit_test(a_smaller_budget_ends_a_check_earlier),
        cmocka_unit_test(work_that_multiplies_is_given_up),
        cmocka_unit_test(long_equal_texts_cost_what_they_weigh),
        cmocka_unit_test(long_chains_of_references_are_bounded),
        cmocka_unit_test(a_value_that_leads_too_deep_is_given_up),
        cmocka_unit_test(patterns_are_bounded_together),
        cmocka_unit_test(work_of_patterns_is_counted),
        cmocka_unit_test(a_path_too_long_to_show_is_cut),
        cmocka_unit_test(a_fault_without_room_is_counted_and_left_out),
        cmocka_unit_test(paths_are_json_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
