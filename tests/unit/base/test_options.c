/* Command-line options: values and where they come from, messages for mistakes, help. */
#include "support.h"

#include "base/options.h"

static const struct option OWN[] = {
    {.name = "role", .kind = OPTION_CHOICE, .choices = "admin|viewer", .help = "What it may do"},
    {.name = "limit", .kind = OPTION_NUMBER, .value = "N", .help = "Items", .min = 1, .max = 100},
    {.name = "keep",
     .kind = OPTION_NUMBER,
     .value = "N|all",
     .help = "How many to keep",
     .word = "all",
     .unit = "seconds"},
    {.name = "label", .value = "K=V", .help = "A label", .many = true},
    {.name = "force", .kind = OPTION_SWITCH, .help = "Overwrite", .variable = "PAWL_T_FORCE"},
    {.name = NULL},
};
static const struct option COMMON[] = {
    {.name = "url",
     .value = "URL",
     .help = "The server",
     .variable = "PAWL_T_URL",
     .fallback = "http://default"},
    {.name = "log",
     .kind = OPTION_CHOICE,
     .choices = "text|json",
     .help = "Format",
     .variable = "PAWL_T_LOG",
     .fallback = "text"},
    {.name = NULL},
};

struct parsed {
    char *argv[OPTIONS_VALUES_MAX + 8];
    struct options o;
    struct problem p;
    enum err err;
};

#define PARSE(fixture, ...) parse((fixture), (const char *const[]){"pawl", ##__VA_ARGS__, NULL})

static void parse(struct parsed *f, const char *const *argv)
{
    int argc = 0;
    for (; argv[argc] != NULL; argc++)
        f->argv[argc] = (char *)(uintptr_t)argv[argc];
    problem_init(&f->p);
    f->o.lists[0] = OWN;
    f->o.lists[1] = COMMON;
    f->err = options_parse(&f->o, argc, f->argv, 1, &f->p);
}

static void finish(struct parsed *f)
{
    problem_release(&f->p);
    *f = (struct parsed){.err = ERR_OK};
}

static void assert_refused(struct parsed *f, const char *message)
{
    assert_int_equal(f->err, ERR_FIELD_INVALID);
    assert_string_equal(f->p.detail, message);
    finish(f);
}

static void values_come_joined_or_apart_and_the_last_wins(void **state)
{
    (void)state;
    struct parsed f = {.err = ERR_OK};
    PARSE(&f, "--limit", "3", "--url=http://a", "--limit=4", "--url", "http://b", "--force");
    assert_int_equal(f.err, ERR_OK);
    assert_int_equal(options_number(&f.o, "limit", 9), 4);
    assert_string_equal(options_text(&f.o, "url"), "http://b");
    assert_true(options_has(&f.o, "force"));
    assert_false(options_has(&f.o, "role"));
    assert_int_equal(options_number(&f.o, "keep", 9), 9);
    finish(&f);
}

static void a_repeatable_option_keeps_all_its_values_in_order(void **state)
{
    (void)state;
    struct parsed f = {.err = ERR_OK};
    size_t at = 0;
    PARSE(&f, "--label", "a=1", "--limit", "2", "--label=b=2");
    assert_string_equal(options_next(&f.o, "label", &at), "a=1");
    assert_string_equal(options_next(&f.o, "label", &at), "b=2");
    assert_null(options_next(&f.o, "label", &at));
    finish(&f);
}

static void the_command_line_beats_the_variable_and_that_beats_the_default(void **state)
{
    (void)state;
    struct parsed f = {.err = ERR_OK};
    PARSE(&f);
    assert_string_equal(options_text(&f.o, "url"), "http://default");
    finish(&f);
    setenv("PAWL_T_URL", "http://variable", 1);
    PARSE(&f);
    assert_string_equal(options_text(&f.o, "url"), "http://variable");
    assert_false(options_is_given(&f.o, "url"));
    finish(&f);
    PARSE(&f, "--url", "http://line");
    assert_string_equal(options_text(&f.o, "url"), "http://line");
    assert_true(options_is_given(&f.o, "url"));
    finish(&f);
    setenv("PAWL_T_URL", "", 1);
    PARSE(&f);
    assert_string_equal(options_text(&f.o, "url"), "http://default");
    finish(&f);
    unsetenv("PAWL_T_URL");
}

static void a_switch_is_off_when_its_variable_is_empty_or_zero(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool on;
    } CASES[] = {{"", false}, {"0", false}, {"1", true}, {"yes", true}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct parsed f = {.err = ERR_OK};
        setenv("PAWL_T_FORCE", CASES[i].value, 1);
        PARSE(&f);
        assert_int_equal(options_has(&f.o, "force"), CASES[i].on);
        finish(&f);
    }
    unsetenv("PAWL_T_FORCE");
}

static void a_variable_is_checked_only_where_it_counts(void **state)
{
    (void)state;
    struct parsed f = {.err = ERR_OK};
    setenv("PAWL_T_LOG", "xml", 1);
    PARSE(&f);
    assert_refused(&f, "Unknown PAWL_T_LOG \"xml\". Allowed: text, json");
    PARSE(&f, "--log", "json");
    assert_int_equal(f.err, ERR_OK);
    finish(&f);
    unsetenv("PAWL_T_LOG");
}

static void a_mistake_is_named_with_what_is_allowed(void **state)
{
    (void)state;
    struct parsed f = {.err = ERR_OK};
    PARSE(&f, "--colour");
    assert_refused(&f, "Unknown option --colour");
    PARSE(&f, "--lable", "a=1");
    assert_refused(&f, "Unknown option --lable. Did you mean --label?");
    PARSE(&f, "-limit", "1");
    assert_refused(&f, "Unknown option -limit. Did you mean --limit?");
    PARSE(&f, "--limit");
    assert_refused(&f, "Missing value: --limit N");
    PARSE(&f, "--force=yes");
    assert_refused(&f, "--force takes no value");
    PARSE(&f, "--limit", "0");
    assert_refused(&f, "--limit must be a whole number from 1 to 100, not \"0\"");
    PARSE(&f, "--keep", "some");
    assert_refused(&f, "--keep must be a whole number of seconds, 0 or more, or all, not \"some\"");
    PARSE(&f, "--role", "amdin");
    assert_refused(&f, "Unknown role \"amdin\". Did you mean \"admin\"?");
    PARSE(&f, "--role", "king");
    assert_refused(&f, "Unknown role \"king\". Allowed: admin, viewer");
    PARSE(&f, "now");
    assert_refused(&f, "Unexpected argument: now");
}

static void a_word_may_stand_for_a_number(void **state)
{
    (void)state;
    struct parsed f = {.err = ERR_OK};
    PARSE(&f, "--keep", "all");
    assert_int_equal(f.err, ERR_OK);
    assert_string_equal(options_text(&f.o, "keep"), "all");
    finish(&f);
}

static void arguments_are_counted_and_named(void **state)
{
    (void)state;
    struct parsed f = {.o = {.arguments = "ID NAME [PAYLOAD]"}};
    PARSE(&f, "--limit", "1", "x", "--force", "y");
    assert_int_equal(f.err, ERR_OK);
    assert_string_equal(f.o.args[0], "x");
    assert_string_equal(f.o.args[1], "y");
    assert_null(f.o.args[2]);
    finish(&f);
    f.o.arguments = "ID NAME [PAYLOAD]";
    PARSE(&f, "x");
    assert_refused(&f, "Missing argument: NAME");
    f.o.arguments = "ID";
    PARSE(&f, "x", "y");
    assert_refused(&f, "Unexpected argument: y");
    f.o.arguments = "ID";
    PARSE(&f, "--", "--limit");
    assert_int_equal(f.err, ERR_OK);
    assert_string_equal(f.o.args[0], "--limit");
    finish(&f);
    f.o.arguments = "FILE|-";
    PARSE(&f, "-");
    assert_string_equal(f.o.args[0], "-");
    finish(&f);
}

static void a_command_follows_two_dashes_as_it_is(void **state)
{
    (void)state;
    struct parsed f = {.o = {.command = "COMMAND [ARG...]"}};
    PARSE(&f, "--limit", "1", "--", "cat", "--limit");
    assert_int_equal(f.err, ERR_OK);
    assert_string_equal(f.o.argv[0], "cat");
    assert_string_equal(f.o.argv[1], "--limit");
    assert_null(f.o.argv[2]);
    finish(&f);
    f.o.command = "COMMAND [ARG...]";
    PARSE(&f, "--");
    assert_refused(&f, "Missing command: end with -- COMMAND [ARG...]");
}

static void a_required_option_must_be_there(void **state)
{
    (void)state;
    static const struct option NEEDED[] = {
        {.name = "to", .value = "FILE", .help = "Where", .required = true}, {.name = NULL}};
    struct parsed f = {.o = {.lists = {NULL, NULL, NEEDED}}};
    PARSE(&f);
    assert_refused(&f, "Missing option: --to FILE");
}

static void help_wins_over_mistakes_that_follow_it(void **state)
{
    (void)state;
    struct parsed f = {.err = ERR_OK};
    PARSE(&f, "-h", "--colour");
    assert_int_equal(f.err, ERR_OK);
    assert_true(f.o.help);
    finish(&f);
}

static void more_options_than_fit_are_refused(void **state)
{
    (void)state;
    const char *argv[OPTIONS_VALUES_MAX + 3] = {"pawl"};
    for (size_t i = 1; i < ARRAY_LEN(argv) - 1; i++)
        argv[i] = "--force";
    struct parsed f = {.err = ERR_OK};
    parse(&f, argv);
    assert_refused(&f, "More than 64 options");
}

static void the_help_shows_values_defaults_and_variables(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    options_print_help(out, OWN);
    options_print_help(out, COMMON);
    (void)fclose(out);
    assert_contains(text, "  --role admin|viewer             What it may do\n");
    assert_contains(text, "  --label K=V                     A label (repeatable)\n");
    assert_contains(text, "  --force                         Overwrite [PAWL_T_FORCE]\n");
    assert_contains(text, "  --url URL                       The server (default http://default)\n "
                          "                                 [PAWL_T_URL]\n");
    free(text);
}

static void long_descriptions_continue_in_their_column(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    options_print_description(
        out, 40, "one two three four five six seven eight nine ten eleven twelve thirteen 14");
    (void)fclose(out);
    assert_string_equal(
        text, "\n                                  one two three four five six seven eight nine\n"
              "                                  ten eleven twelve thirteen 14\n");
    free(text);
}

static void texts_are_filled_and_items_keep_their_column(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    options_print_text(out, "One line that is\nmuch shorter.\n\nCodes:\n"
                            "  0      Done, which is what most commands end with when all went\n"
                            "         as it should\n  other  Not\nThe end.");
    (void)fclose(out);
    assert_string_equal(text,
                        "One line that is much shorter.\n\nCodes:\n"
                        "  0      Done, which is what most commands end with when all went as "
                        "it should\n  other  Not\nThe end.\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_joined_or_apart_and_the_last_wins),
        cmocka_unit_test(a_repeatable_option_keeps_all_its_values_in_order),
        cmocka_unit_test(the_command_line_beats_the_variable_and_that_beats_the_default),
        cmocka_unit_test(a_switch_is_off_when_its_variable_is_empty_or_zero),
        cmocka_unit_test(a_variable_is_checked_only_where_it_counts),
        cmocka_unit_test(a_mistake_is_named_with_what_is_allowed),
        cmocka_unit_test(a_word_may_stand_for_a_number),
        cmocka_unit_test(arguments_are_counted_and_named),
        cmocka_unit_test(a_command_follows_two_dashes_as_it_is),
        cmocka_unit_test(a_required_option_must_be_there),
        cmocka_unit_test(help_wins_over_mistakes_that_follow_it),
        cmocka_unit_test(more_options_than_fit_are_refused),
        cmocka_unit_test(the_help_shows_values_defaults_and_variables),
        cmocka_unit_test(long_descriptions_continue_in_their_column),
        cmocka_unit_test(texts_are_filled_and_items_keep_their_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
