/* Hosts and ports: what the grammar allows, and what it does not. */
#include "testing.h"

#include "http/authority.h"
#include "http/reference.h"

static const char *const GOOD[] = {
    "a",
    "localhost",
    "example.com:80",
    "example.com:",
    "example.com:0",
    "example.com:65535",
    "example.com:000080",
    "127.0.0.1:7295",
    "999.999.999.999", /* a reg-name */
    "a_b-c.d~e!$&'()*+,;=",
    "%41%7a%2F",
    "[::]",
    "[::1]:80",
    "[::1]:",
    "[1::]",
    "[1:2:3:4:5:6:7:8]",
    "[1:2:3:4:5:6:7::]",
    "[::2:3:4:5:6:7:8]",
    "[1::3:4:5:6:7:8]",
    "[abcd:ef01:2345:6789:ABCD:EF01:2345:6789]",
    "[::1.2.3.4]",
    "[::ffff:255.249.100.0]",
    "[1:2:3:4:5:6:0.0.0.0]",
    "[1:2:3:4:5::9.10.99.200]",
    "[v1.a]",
    "[VfF.a:b~!]:443",
};

static const char *const BAD[] = {
    "",
    ":",
    ":80",
    "a:b",
    "a:80:80",
    "a:65536",
    "a:99999999999999999999",
    "a: 80",
    "a b",
    "a/b",
    "a?b",
    "a#b",
    "a@b",
    "u:p@a",
    "a\\b",
    "a,b\x80",
    "a\"b",
    "<a>",
    "a%",
    "a%4",
    "a%4g",
    "a%g4",
    "[",
    "[]",
    "[::1",
    "::1",
    "[::1]80",
    "[::1]:x",
    "[::1]]",
    "[[::1]]",
    "[:]",
    "[:::]",
    "[1]",
    "[:1]",
    "[1:]",
    "[1:2:3:4:5:6:7]",
    "[1:2:3:4:5:6:7:8:9]",
    "[1:2:3:4::5:6:7:8]",
    "[1::2::3]",
    "[1::2:]",
    "[:1::2]",
    "[12345::]",
    "[::12345]",
    "[g::]",
    "[::1%25lo]",
    "[::1.2.3]",
    "[::1.2.3.4.5]",
    "[::1.2.3.]",
    "[::1..3.4]",
    "[::1.2.3.256]",
    "[::1.2.3.04]",
    "[::1.2.3.1000]",
    "[::1.2.3.a]",
    "[::x.2.3.4]",
    "[1.2.3.4]",
    "[1.2.3.4::]",
    "[1:2:3:4:5:6:7:1.2.3.4]",
    "[v.a]",
    "[v1]",
    "[v1.]",
    "[vg.a]",
    "[v1.a/b]",
    "[v1.a%41]",
};

static void what_the_grammar_allows_is_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
        if (!authority_ok(str_of(GOOD[i])) || !ref_authority(str_of(GOOD[i])))
            fail_msg("refused: %s", GOOD[i]);
    }
}

static void what_the_grammar_does_not_allow_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        if (authority_ok(str_of(BAD[i])) || ref_authority(str_of(BAD[i])))
            fail_msg("accepted: %s", BAD[i]);
    }
}

static void any_text_is_judged_as_by_the_reference(void **state)
{
    (void)state;
    static const char PARTS[] = "[]:::.%41v1a25G@";
    uint64_t chance = 1;
    for (int i = 0; i < 300000; i++) {
        char text[24];
        size_t len = 0;
        do {
            chance = chance * 6364136223846793005u + 1442695040888963407u;
            text[len++] = PARTS[(chance >> 33) % (sizeof(PARTS) - 1)];
        } while (len < sizeof(text) && (chance >> 60) != 0);
        struct str s = {text, len};
        if (authority_ok(s) != ref_authority(s))
            fail_msg("judged differently: %.*s", STR_ARG(s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_grammar_allows_is_accepted),
        cmocka_unit_test(what_the_grammar_does_not_allow_is_refused),
        cmocka_unit_test(any_text_is_judged_as_by_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
