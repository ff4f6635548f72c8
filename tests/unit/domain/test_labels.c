/* Labels of a run: which are taken. */
#include "domain/parsed_definition.h"

#include "domain/labels.h"

static enum err check(json_t *tree)
{
    struct json *labels = json_value_of_tree(tree);
    struct problem p;
    struct fields f;
    struct json *empty = json_value_of_tree(json_object());
    problem_init(&p);
    fields_begin(&f, empty, &p);
    labels_check(&f, labels);
    enum err e = fields_end(&f);
    problem_release(&p);
    json_free(empty);
    json_free(labels);
    return e;
}

/* One label, of so many characters in its name and its value. */
static json_t *label_of(size_t name_len, size_t value_len)
{
    char name[NAME_MAX_LEN + 2] = "";
    char value[LABEL_VALUE_MAX + 2] = "";
    memset(name, 'n', name_len);
    memset(value, 'v', value_len);
    json_t *labels = json_object();
    assert_int_equal(json_object_set_new(labels, name, json_string(value)), 0);
    return labels;
}

static void labels_within_their_bounds_are_taken(void **state)
{
    (void)state;
    assert_int_equal(check(NULL), ERR_OK);
    assert_int_equal(check(json_object()), ERR_OK);
    assert_int_equal(check(label_of(NAME_MAX_LEN, LABEL_VALUE_MAX)), ERR_OK);
    assert_int_equal(check(label_of(NAME_MAX_LEN + 1, 1)), ERR_FIELD_INVALID);
    assert_int_equal(check(label_of(1, LABEL_VALUE_MAX + 1)), ERR_FIELD_INVALID);
    assert_int_equal(check(json_of("{'a b':'x'}")), ERR_FIELD_INVALID);
    assert_int_equal(check(json_of("{'a:b':'x'}")), ERR_FIELD_INVALID);
    assert_int_equal(check(json_of("{'a':1}")), ERR_FIELD_INVALID);
}

static void a_run_has_a_bounded_number_of_labels(void **state)
{
    (void)state;
    for (int count = LABELS_MAX; count <= LABELS_MAX + 1; count++) {
        json_t *labels = json_object();
        for (int i = 0; i < count; i++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "n%d", i);
            assert_int_equal(json_object_set_new(labels, name, json_string("v")), 0);
        }
        assert_int_equal(check(labels), count == LABELS_MAX ? ERR_OK : ERR_FIELD_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_within_their_bounds_are_taken),
        cmocka_unit_test(a_run_has_a_bounded_number_of_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
