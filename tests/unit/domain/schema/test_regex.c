/* Regular expressions: what each part finds, what is refused, and the bounds on size and work. */
#include "testing.h"

#include "base/buf.h"
#include "base/limits.h"
#include "domain/schema/regex.h"

#include <stdio.h>
#include <stdlib.h>

struct row {
    const char *pattern;
    const char *found;     /* texts, with a | between them */
    const char *not_found; /* likewise; NULL: none */
};

static struct regex *compiled(const char *pattern)
{
    struct regex_fault fault;
    struct regex *r = regex_compile(str_of(pattern), &fault);
    if (r == NULL)
        fail_msg("%s is refused at %zu: %s", pattern, fault.at, fault.why);
    assert_in_range(regex_size(r), 1, REGEX_SIZE_MAX);
    return r;
}

static void assert_each(const char *pattern, const char *texts, bool wanted)
{
    struct regex *r = compiled(pattern);
    bool more = texts != NULL;
    for (struct str rest = str_of(texts); more;) {
        struct str text;
        more = str_cut(rest, '|', &text, &rest);
        struct work_budget work = {SCHEMA_WORK_MAX};
        if (regex_search(r, text, &work) != wanted)
            fail_msg("%s %s \"%.*s\"", pattern, wanted ? "does not find" : "finds", STR_ARG(text));
        assert_true(work.left > 0);
    }
    regex_free(r);
}

static void assert_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_each(rows[i].pattern, rows[i].found, true);
        assert_each(rows[i].pattern, rows[i].not_found, false);
    }
}

static void parts_find_what_they_stand_for(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"", "|a", NULL},
        {"b", "b|abc", "|a|B"},
        {"a.c",
         "abc|a\xC3\xBC"
         "c|xa.cx",
         "ac|a\nc|a\rc|a\xE2\x80\xA8"
         "c"},
        {"^a", "a|ab", "ba|\na"},
        {"a$", "a|ba", "ab|a\n"},
        {"^$", "", "a|\n"},
        {"^a*$", "|a|aaa", "b|aab"},
        {"^a+$", "a|aaa", "|b"},
        {"^a?$", "|a", "aa"},
        {"^a*?b+?c\?\?$", "b|aabbc", "a|c"},
        {"^a{2}$", "aa", "a|aaa"},
        {"^a{2,}$", "aa|aaaa", "a"},
        {"^a{2,3}$", "aa|aaa", "a|aaaa"},
        {"^a{0,2}$", "|a|aa", "aaa"},
        {"^a{0}b$", "b", "ab"},
        {"^(?:ab){1,2}$", "ab|abab", "aba|ababab"},
        {"^(?:a|bc){2}$", "aa|abc|bca|bcbc", "a|bc|aaa"},
        {"^(a(b(c)?)?)?$", "|a|ab|abc", "ac|b"},
        {"^(?<year>\\d{4})-(?<month>\\d\\d)$", "2026-11", "26-11|2026-1"},
        {"^(?:a*)*$", "|aaa", "b"},
        {"^(?:a*)+b$", "b|aab", "a"},
        {"^(?:|a)+$", "|aaa", "b"},
        {"^(){3}a$", "a", ""},
        {"^(?:^a$)*$", "|a", "aa"},
    };
    assert_rows(ROWS, ARRAY_LEN(ROWS));
    assert_each("a|b|cd", "a", true);
    assert_each("^(?:a|b|cd)$", "cd", true);
    assert_each("^(?:a|b|cd)$", "c", false);
    assert_each("^a|b$", "axx", true);
    assert_each("^a|b$", "xxb", true);
    assert_each("^a|b$", "xax", false);
    assert_each("(?:|a)", "", true);
}

static void classes_hold_code_points(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"^[abc]$", "a|c", "d|ab|"},
        {"^[a-c_x-z]$", "b|_|y", "d|w|-"},
        {"^[^a-c]$", "d|\n|\xE2\x82\xAC", "a|b|"},
        {"^[a-]$", "a|-", "b"},
        {"^[-a]$", "a|-", "b"},
        {"^[a\\-z]$", "a|-|z", "b"},
        {"^[]$", NULL, "|a"},
        {"^[^]$", "a|\n", ""},
        {"^[.*+?(){}$^]$", ".|*|+|?|(|)|{|}|$|^", "a"},
        {"^[\\]\\\\]$", "]|\\", "["},
        {"^[\\w.-]+@[\\w.-]+\\.[a-z]{2,}$", "a.b-c@example.org", "a@b|a b@c.de"},
        {"^[\\d\\s]+$", "1 2|\xC2\xA0", "a"},
        {"^[^\\d]$", "a|\xC3\xA9", "1"},
        {"^[\\D]$", "a", "1"},
        {"^[\\b]$", "\b", "b"},
        {"^[\xC3\xA0-\xC3\xBF]+$", "\xC3\xA9\xC3\xA8", "e"},
        {"^[\\u00e0-\\u00ff]$", "\xC3\xA9", "e"},
        {"^[\xF0\x9F\x98\x80-\xF0\x9F\x98\x82]$", "\xF0\x9F\x98\x81", "\xF0\x9F\x98\x83"},
        {"^[\\ud83d\\ude00]$", "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x81"},
        {"^\\d$", "0|9", "a|\xD9\xA0"},
        {"^\\D$", "a|\xD9\xA0", "0"},
        {"^\\w+$", "aZ_09", "-|\xC3\xA9"},
        {"^\\W$", "-|\xC3\xA9", "a"},
        {"^\\s$", " |\t|\n|\xC2\xA0|\xEF\xBB\xBF|\xE2\x80\x83", "a|\xE2\x80\x8B"},
        {"^\\S$", "a|\xE2\x80\x8B", " "},
        {"^\\p{L}+$", "aZ\xC3\xA9\xC3\x9F\xE6\xBC\xA2", "1|a b"},
        {"^\\p{Letter}$", "\xC3\xA9", "1"},
        {"^\\p{Lu}$", "A|\xC3\x89", "a"},
        {"^\\p{gc=Ll}$", "a", "A"},
        {"^\\p{Nd}$", "1|\xD9\xA0", "a|\xC2\xB2"},
        {"^\\P{N}$", "a", "1|\xC2\xB2"},
        {"^[^\\p{L}\\p{N}]$", "-|_", "a|1"},
        {"^\\p{LC}$", "a|A", "\xE6\xBC\xA2"},
    };
    assert_rows(ROWS, ARRAY_LEN(ROWS));
}

static void escapes_stand_for_one_character(void **state)
{
    (void)state;
    static const struct row ROWS[] = {
        {"^\\t\\n\\v\\f\\r$", "\t\n\v\f\r", "tnvfr"},
        {"^\\x41\\u0042\\u{43}\\u{1F600}$", "ABC\xF0\x9F\x98\x80", "ABC"},
        {"^\\uD83D\\uDE00$", "\xF0\x9F\x98\x80", "a"},
        {"^\\cJ\\cj$", "\n\n", "J"},
        {"^\\.\\*\\/\\-\\\"\\$\\^\\@\\#$", ".*/-\"$^@#", "a"},
        {"^]}$", "]}", "]"},
        {"\\bcat\\b", "cat|a cat.|cat!", "cats|concat|\xC3\xA9"},
        {"\\Bcat", "concat", "cat|a cat"},
        {"a\\b", "a|a-", "ab"},
        {"\\b", "a", "|-"},
        {"^\\B$", "", "a"},
        {"a\\0b", NULL, "a0b|ab"},
        {"\\0a", NULL, "0a"},
        {"^\\uD83Dx", NULL, "x"}, /* half of a pair is a code point that no text has */
        {"^\\uDC00", NULL, "x"},
        {"^\\uD83D\\u0041", NULL, "A"},
        {"^\\uD83D\\u{41}", NULL, "A"},
        {"^\\uD83D\\uE000", NULL, "A"},
        {"^\\p{General_Category=Lu}$", "A", "a"},
        {"^\\p{gc=Lu}$", "A", "a"},
    };
    assert_rows(ROWS, ARRAY_LEN(ROWS));
}

static void what_is_not_supported_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        size_t at;
        const char *why;
    } ROWS[] = {
        {"(a)\\1", 4, "backreferences are not supported"},
        {"(?<n>a)\\k<n>", 8, "backreferences are not supported"},
        {"a(?=b)", 3, "look-ahead is not supported"},
        {"^(?!x).*", 3, "look-ahead is not supported"},
        {"(?<=a)b", 4, "look-behind is not supported"},
        {"(?<!a)b", 4, "look-behind is not supported"},
        {"(?i)a", 2, "flags are not supported"},
        {"(?<n", 4, "a group's name must end with >"},
        {"(a", 2, ") is missing"},
        {"a)", 1, "( is missing"},
        {"[a", 2, "] is missing"},
        {"[z-a]", 4, "a range runs backwards"},
        {"[a-\\d]", 5, "a range must go from one character to another"},
        {"*a", 0, "there is nothing to repeat"},
        {"a**", 2, "there is nothing to repeat"},
        {"a|+", 2, "there is nothing to repeat"},
        {"^*", 2, "an anchor cannot be repeated"},
        {"a{3,2}", 6, "the numbers of a quantifier are out of order"},
        {"a{,2}", 2, "{ must begin a quantifier such as {2,3}; write \\{ for the character"},
        {"a{b}", 2, "{ must begin a quantifier such as {2,3}; write \\{ for the character"},
        {"{", 0, "there is nothing to repeat; write \\{ for the character"},
        {"\\a", 2, "there is no such escape"},
        {"\\Z", 2, "there is no such escape"},
        {"a\\", 2, "there is no such escape"},
        {"\\\xC3\xA9", 1, "there is no such escape"},
        {"\\01", 2, "octal escapes are not supported"},
        {"\\x4", 3, "a hexadecimal digit is missing"},
        {"\\u12", 4, "a hexadecimal digit is missing"},
        {"\\u{110000}", 9, "\\u{…} must name a code point up to 10FFFF"},
        {"\\u{}", 3, "\\u{…} must name a code point up to 10FFFF"},
        {"\\c1", 2, "\\c must be followed by a letter"},
        {"\\pL", 2, "\\p must be followed by {, a general category such as L, and }"},
        {"\\p{", 3, "\\p must be followed by {, a general category such as L, and }"},
        {"\\p{Script=Greek}", 3, "\\p knows general categories only, such as L, Lu or Nd"},
        {"\\p{}", 3, "\\p knows general categories only, such as L, Lu or Nd"},
        {"[\\p{X}]", 4, "\\p knows general categories only, such as L, Lu or Nd"},
        {"a{10000}", 8, "the expression is too large"},
        {"(?:a{1000}){1000}", 17, "the expression is too large"},
        {"a{0,999999999}", 14, "the expression is too large"},
        {"\\u{41", 5, "\\u{…} must name a code point up to 10FFFF"},
        {"\\uD83D\\u12", 10, "a hexadecimal digit is missing"},
        {"\\c{", 2, "\\c must be followed by a letter"},
        {"\\x7\x7F", 3, "a hexadecimal digit is missing"},
        {"[a-\\x]", 5, "a hexadecimal digit is missing"},
        {"[\\d-z]", 5, "a range must go from one character to another"},
        {"\\p{Lux}", 3, "\\p knows general categories only, such as L, Lu or Nd"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct regex_fault fault;
        struct regex *r = regex_compile(str_of(ROWS[i].pattern), &fault);
        if (r != NULL || fault.why == NULL || strcmp(fault.why, ROWS[i].why) != 0 ||
            fault.at != ROWS[i].at)
            fail_msg("%s: %s at %zu", ROWS[i].pattern, r != NULL ? "accepted" : fault.why,
                     fault.at);
    }
}

/* Each is looked up in all of Unicode. */
static void categories_are_bounded(void **state)
{
    (void)state;
    char pattern[200 * 8 + 1] = "";
    for (size_t i = 0; i < 200; i++)
        memcpy(pattern + i * 6, "\\p{Cs}", 7);
    struct regex_fault fault;
    assert_null(regex_compile(str_of(pattern), &fault));
    assert_string_equal(fault.why, "the expression is too large");
    assert_in_range(fault.at, 100 * 6, 130 * 6);
}

static void groups_nest_to_their_limit(void **state)
{
    (void)state;
    for (size_t depth = REGEX_DEPTH_MAX; depth <= REGEX_DEPTH_MAX + 1; depth++) {
        char pattern[3 * REGEX_DEPTH_MAX] = "";
        memset(pattern, '(', depth);
        pattern[depth] = 'a';
        memset(pattern + depth + 1, ')', depth);
        pattern[2 * depth + 1] = '\0';
        struct regex_fault fault;
        struct regex *r = regex_compile(str_of(pattern), &fault);
        assert_int_equal(r != NULL, depth == REGEX_DEPTH_MAX);
        regex_free(r);
    }
}

/* What takes a backtracking engine for ever is one pass here. */
static void hostile_expressions_take_linear_work(void **state)
{
    (void)state;
    static const char *const PATTERNS[] = {"^(a+)+$",    "(a|aa)+$", "^(a|a?)+$",
                                           "(.*a){20}b", "(a*)*b",   "a*a*a*a*a*b"};
    static char text[20 * 1000];
    for (size_t i = 0; i < ARRAY_LEN(PATTERNS); i++) {
        struct regex *r = compiled(PATTERNS[i]);
        size_t used[2];
        for (size_t k = 0; k < 2; k++) {
            struct work_budget work = {SCHEMA_WORK_MAX};
            struct str part = {text, (k + 1) * (sizeof(text) / 2)};
            memset(text, 'a', part.len);
            text[part.len - 1] = '!';
            assert_false(regex_search(r, part, &work));
            assert_true(work.left > 0);
            used[k] = SCHEMA_WORK_MAX - work.left;
        }
        assert_in_range(used[1], used[0], 3 * used[0]);
        regex_free(r);
    }
}

/* A pattern that fills the program up to `room` instructions of its end. */
static void fill(struct buf *pattern, size_t room)
{
    buf_clear(pattern);
    for (size_t i = 0; i + room < REGEX_SIZE_MAX; i++)
        buf_put_char(pattern, 'a');
}

/* Each part at each place around the end: it is taken whole, or the pattern is refused. */
static void a_part_that_no_longer_fits_is_refused(void **state)
{
    (void)state;
    static const char *const PARTS[] = {"b*",    "b+",      "b?",    "b{3}", "b{0,3}",  "b{2,}",
                                        "[b-y]", "[^b-y]",  "\\d",   "\\W",  "\\p{Lu}", "\\n",
                                        "\\b",   "^",       "$",     ".",    "(b|c)",   "b|c|d",
                                        "(?:b)", "(?<n>b)", "(b*)*", ""};
    struct buf pattern;
    buf_init(&pattern, 2 * REGEX_SIZE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++) {
        bool fitted = true;
        for (size_t room = 16; room-- > 0;) {
            fill(&pattern, room);
            buf_put(&pattern, str_of(PARTS[i]));
            assert_true(buf_ok(&pattern));
            struct regex_fault fault;
            struct regex *r = regex_compile(buf_str(&pattern), &fault);
            assert_true(fitted || r == NULL); /* with less room it does not fit again */
            fitted = r != NULL;
            if (r != NULL)
                assert_in_range(regex_size(r), 1, REGEX_SIZE_MAX);
            else
                assert_non_null(strstr(fault.why, "too large"));
            regex_free(r);
        }
        assert_false(fitted);
    }
    buf_release(&pattern);
}

static void a_search_ends_with_its_budget(void **state)
{
    (void)state;
    struct regex *r = compiled("(?:a{0,1000}){2}b");
    static char text[20 * 1000];
    memset(text, 'a', sizeof(text) - 1);
    struct work_budget work = {10 * 1000};
    assert_false(regex_search(r, str_of(text), &work));
    assert_int_equal(work.left, 0);
    regex_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_find_what_they_stand_for),
        cmocka_unit_test(classes_hold_code_points),
        cmocka_unit_test(escapes_stand_for_one_character),
        cmocka_unit_test(what_is_not_supported_is_refused_with_a_reason),
        cmocka_unit_test(categories_are_bounded),
        cmocka_unit_test(groups_nest_to_their_limit),
        cmocka_unit_test(hostile_expressions_take_linear_work),
        cmocka_unit_test(a_part_that_no_longer_fits_is_refused),
        cmocka_unit_test(a_search_ends_with_its_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
