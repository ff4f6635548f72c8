/* Names as parts of a subject. */
#include "testing.h"

#include "bus/subject.h"

#include <stdlib.h>

static void assert_put(void (*put)(struct buf *, struct str), struct str name, const char *want)
{
    struct buf out;
    buf_init(&out, 1024);
    put(&out, name);
    assert_true(buf_ok(&out));
    assert_string_equal(out.ptr, want);
    buf_release(&out);
}

static void a_name_that_is_one_word_stays_as_it_is(void **state)
{
    (void)state;
    assert_put(subject_put_word, STR("acme"), "acme");
    assert_put(subject_put_word, STR("Acme_1-x:y"), "Acme_1-x:y");
}

static void a_dot_inside_a_word_does_not_part_it(void **state)
{
    (void)state;
    assert_put(subject_put_word, STR("acme.eu"), "acme%2Eeu");
    assert_put(subject_put_word, STR("."), "%2E");
}

static void two_names_never_make_the_same_word(void **state)
{
    (void)state;
    assert_put(subject_put_word, STR("a%2Eb"), "a%252Eb");
}

static void wildcards_and_white_space_are_written_in_another_way(void **state)
{
    (void)state;
    assert_put(subject_put_word, STR("*"), "%2A");
    assert_put(subject_put_word, STR("a>b c\t"), "a%3Eb%20c%09");
    assert_put(subject_put_words, STR("a.*.b"), "a.%2A.b");
    assert_put(subject_put_word, STR("\xC3\xA9"), "%C3%A9");
}

static void the_parts_of_a_name_are_words(void **state)
{
    (void)state;
    assert_put(subject_put_words, STR("run.created"), "run.created");
    assert_put(subject_put_words, STR("a.b.c"), "a.b.c");
}

static void a_dot_that_would_make_an_empty_word_does_not(void **state)
{
    (void)state;
    assert_put(subject_put_words, STR(".a"), "%2Ea");
    assert_put(subject_put_words, STR("a."), "a%2E");
    assert_put(subject_put_words, STR("a..b"), "a.%2Eb");
    assert_put(subject_put_words, STR("..."), "%2E.%2E");
    assert_put(subject_put_words, STR("."), "%2E");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_is_one_word_stays_as_it_is),
        cmocka_unit_test(a_dot_inside_a_word_does_not_part_it),
        cmocka_unit_test(two_names_never_make_the_same_word),
        cmocka_unit_test(wildcards_and_white_space_are_written_in_another_way),
        cmocka_unit_test(the_parts_of_a_name_are_words),
        cmocka_unit_test(a_dot_that_would_make_an_empty_word_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
