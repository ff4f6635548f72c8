/* Patterns of dotted names. */
#include "testing.h"

#include "domain/type_pattern.h"

static void a_pattern_fits_what_it_names(void **state)
{
    static const struct {
        const char *pattern, *type;
        bool fits;
    } CASES[] = {
        {"run.started", "run.started", true},
        {"run.started", "run.starte", false},
        {"run.started", "run.started2", false},
        {"run.*", "run.started", true},
        {"run.*", "run.a.b", true},
        {"run.*", "runs.started", false},
        {"run.*", "run", false},
        {"run.*", "job.run.started", false},
        {"a.b.*", "a.b.c", true},
        {"a.b.*", "a.c", false},
        {"*", "anything", true},
        {"*", "", true},
        {"", "a", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
        assert_int_equal(type_pattern_fits(str_of(CASES[i].pattern), str_of(CASES[i].type)),
                         CASES[i].fits);
}

static void only_names_prefixes_and_the_star_are_patterns(void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } CASES[] = {
        {"run.started", true}, {"run.*", true},    {"*", true},     {"x", true},
        {"", false},           {".*", false},      {"r*n", false},  {"**", false},
        {"a b", false},        {"run.*.*", false}, {"run*", false}, {"run,x", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
        assert_int_equal(type_pattern_ok(str_of(CASES[i].text)), CASES[i].ok);
}

static void a_list_fits_when_one_of_it_does(void **state)
{
    (void)state;
    assert_true(type_list_fits(STR("run.*,job.failed"), STR("job.failed")));
    assert_true(type_list_fits(STR("run.*,job.failed"), STR("run.x")));
    assert_false(type_list_fits(STR("run.*,job.failed"), STR("job.created")));
    assert_false(type_list_fits(STR(""), STR("job.created")));
    assert_true(type_list_ok(STR("run.*,job.failed")));
    assert_false(type_list_ok(STR("run.*,")));
    assert_false(type_list_ok(STR(",")));
    assert_false(type_list_ok(STR("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_fits_what_it_names),
        cmocka_unit_test(only_names_prefixes_and_the_star_are_patterns),
        cmocka_unit_test(a_list_fits_when_one_of_it_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
