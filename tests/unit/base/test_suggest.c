/* "Did you mean": which candidate a mistyped word gets. */
#include "support.h"

#include "base/suggest.h"

static struct str best_for(const char *typed)
{
    static const char *const WORDS[] = {"running", "queued", "paused", "succeeded", "no"};
    struct suggestion s = suggest_for(str_of(typed));
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        suggest_consider(&s, str_of(WORDS[i]));
    return s.best;
}

static void a_typing_error_finds_its_word(void **state)
{
    (void)state;
    assert_str(best_for("runing"), "running");
    assert_str(best_for("runnning"), "running");
    assert_str(best_for("runnign"), "running");
    assert_str(best_for("qeued"), "queued");
    assert_str(best_for("sucseded"), "succeeded");
}

static void another_word_gets_no_suggestion(void **state)
{
    (void)state;
    assert_str(best_for("failed"), "");
    assert_str(best_for("on"), "");
    assert_str(best_for(""), "");
}

static void the_closest_word_wins_and_the_first_of_equals(void **state)
{
    (void)state;
    struct suggestion s = suggest_for(STR("abcdef"));
    suggest_consider(&s, STR("abcdxx"));
    suggest_consider(&s, STR("abcdex"));
    suggest_consider(&s, STR("abcdez"));
    assert_str(s.best, "abcdex");
}

static void words_too_long_to_compare_are_left_out(void **state)
{
    (void)state;
    char text[SUGGEST_WORD_MAX + 1];
    memset(text, 'x', sizeof(text));
    struct str longest = {text, SUGGEST_WORD_MAX}, too_long = {text, sizeof(text)};
    struct suggestion s = suggest_for(longest);
    suggest_consider(&s, too_long);
    assert_str(s.best, "");
    suggest_consider(&s, longest);
    assert_int_equal(s.best.len, SUGGEST_WORD_MAX);
    s = suggest_for(too_long);
    suggest_consider(&s, longest);
    assert_str(s.best, "");
}

static void the_text_is_empty_without_a_suggestion(void **state)
{
    (void)state;
    char room[SUGGEST_TEXT_MAX];
    struct suggestion s = suggest_for(STR("limt"));
    assert_string_equal(suggest_text(&s, room), "");
    suggest_consider(&s, STR("limit"));
    assert_string_equal(suggest_text(&s, room), ". Did you mean \"limit\"?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_typing_error_finds_its_word),
        cmocka_unit_test(another_word_gets_no_suggestion),
        cmocka_unit_test(the_closest_word_wins_and_the_first_of_equals),
        cmocka_unit_test(words_too_long_to_compare_are_left_out),
        cmocka_unit_test(the_text_is_empty_without_a_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
