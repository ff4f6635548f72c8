/* A sign-in at an OpenID provider, as signed text, and the words that belong to it. */
#include "testing.h"

#include "base/crypto.h"
#include "domain/oidc/flow.h"

#define SECRET STR("0123456789abcdef0123456789abcdef")

static struct oidc_flow flow_to(const char *place)
{
    struct oidc_flow flow = {.id = {1, 2, 3}, .expires_at = 77};
    memcpy(flow.return_to, place, strlen(place));
    return flow;
}

static void a_flow_comes_back_as_it_was_and_cannot_be_changed(void **state)
{
    (void)state;
    struct oidc_flow flow = flow_to("runs/1?a=b");
    struct oidc_flow back;
    struct buf text;
    buf_init(&text, 1024);
    oidc_flow_put(&text, &flow, SECRET);
    assert_true(oidc_flow_read(buf_str(&text), SECRET, &back));
    assert_memory_equal(back.id, flow.id, sizeof(flow.id));
    assert_int_equal(back.expires_at, 77);
    assert_string_equal(back.return_to, "runs/1?a=b");
    assert_false(oidc_flow_read(buf_str(&text), STR("other"), &back));
    for (size_t i = 0; i < text.len; i++) {
        char was = text.ptr[i];
        text.ptr[i] = was == 'Q' ? 'R' : 'Q';
        assert_false(oidc_flow_read(buf_str(&text), SECRET, &back));
        text.ptr[i] = was;
        assert_false(oidc_flow_read((struct str){text.ptr, i}, SECRET, &back));
    }
    buf_release(&text);
}

static void the_words_of_a_flow_are_its_own(void **state)
{
    (void)state;
    struct oidc_flow one = flow_to("");
    struct oidc_flow two = flow_to("");
    struct oidc_words a;
    struct oidc_words again;
    struct oidc_words b;
    two.id[15] = 1;
    oidc_flow_words(&one, SECRET, &a);
    oidc_flow_words(&one, SECRET, &again);
    oidc_flow_words(&two, SECRET, &b);
    assert_memory_equal(&a, &again, sizeof(a));
    const char *const all[] = {a.state, a.nonce, a.verifier, a.challenge,
                               b.state, b.nonce, b.verifier, b.challenge};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        assert_int_equal(strlen(all[i]), FLOW_WORD_LEN);
        for (size_t n = 0; n < i; n++)
            assert_string_not_equal(all[i], all[n]);
    }
}

static void places_to_come_back_to_are_below_the_console(void **state)
{
    (void)state;
    static const char *const GOOD[] = {"", "runs", "runs/1?status=failed&x=%20", "a/b.c#x"};
    static const char *const BAD[] = {"/",   "//x",  "a/../b",   "..",   "a\\b",
                                      "a b", "a\nb", "\xC3\xA4", "a\"b", "<b>"};
    char long_one[OIDC_RETURN_MAX + 2];
    memset(long_one, 'x', sizeof(long_one));
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++)
        assert_true(oidc_return_ok(str_of(GOOD[i])));
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        assert_false(oidc_return_ok(str_of(BAD[i])));
    assert_true(oidc_return_ok((struct str){long_one, OIDC_RETURN_MAX}));
    assert_false(oidc_return_ok((struct str){long_one, OIDC_RETURN_MAX + 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flow_comes_back_as_it_was_and_cannot_be_changed),
        cmocka_unit_test(the_words_of_a_flow_are_its_own),
        cmocka_unit_test(places_to_come_back_to_are_below_the_console),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
