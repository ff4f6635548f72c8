/* Which URLs may be called, one row each. */
#include "base/support.h"

#include "domain/url.h"

static const char INVALID[] = "is not a valid URL";
static const char SCHEME[] = "must start with http:// or https://";
static const char USER[] = "must not contain a user name";

static const struct {
    const char *url;
    const char *fault; /* NULL: it may be called */
} ROWS[] = {
    {"http://a.test", NULL},
    {"HTTPS://A.test:8443/path?q=1#part", NULL},
    {"http://127.0.0.1:80/", NULL},
    {"http://[::1]/", NULL},
    {"http://[fe80::1]:8080?x", NULL},
    {"http://a.test:/", NULL},
    {"http://a.test:65535/", NULL},
    {"http:/a.test", NULL}, /* as libcurl has it */
    {"http://a.test/?to=b@c.test", NULL},
    {"http://b\xC3\xBC"
     "cher.test/",
     NULL},
    {"", INVALID},
    {"foo", INVALID},
    {"/path", INVALID},
    {"a.test/x", INVALID},
    {"://a.test", INVALID},
    {"http:", INVALID},
    {"http:a.test", INVALID},
    {"http://", INVALID},
    {"http:///", INVALID},
    {"http:////a.test", INVALID},
    {"http://?x", INVALID},
    {"http://a b.test/", INVALID},
    {"http://a.test/a b", INVALID},
    {"http://a.test/\n", INVALID},
    {"http://a\x7F.test/", INVALID},
    {"http://a.test:65536/", INVALID},
    {"http://a.test:-1/", INVALID},
    {"http://a.test:8x/", INVALID},
    {"http://a.test:80:80/", INVALID},
    {"http://[::1/", INVALID},
    {"http://[]/", INVALID},
    {"http://[::1]x/", INVALID},
    {"http://[evil]/", INVALID},
    {"http://[:]/", INVALID}, /* these five have the letters of an address, but are none */
    {"http://[1:2]/", INVALID},
    {"http://[127.0.0.1]/", INVALID},
    {"http://[1:2:3:4:5:6:7:8:9]/", INVALID},
    {"http://[00000000000000000000000000000000000000000000000001::]/", INVALID},
    {"http://[::ffff:127.0.0.1]/", NULL},
    {"http://a.test,b.test/", INVALID},
    {"http://a$b.test/", INVALID},
    {"http://a%00b.test/", INVALID}, /* libcurl would decode it before it looks */
    {"http://a%40b.test/", INVALID},
    {"http://a.test/%00", NULL},
    {"ftp://a.test/", SCHEME},
    {"file:///etc/passwd", SCHEME},
    {"javascript:alert(1)", SCHEME},
    {"http://me@a.test/", USER},
    {"https://me:secret@a.test/", USER},
};

static void test_a_url_may_be_called_or_the_fault_says_why_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const char *fault = url_fault(str_of(ROWS[i].url));
        bool same = fault == NULL || ROWS[i].fault == NULL ? fault == ROWS[i].fault
                                                           : strcmp(fault, ROWS[i].fault) == 0;
        if (!same)
            fail_msg("%s: %s", ROWS[i].url, fault != NULL ? fault : "may be called");
    }
}

static void test_a_url_with_a_nul_is_not_valid(void **state)
{
    (void)state;
    static const char URL[] = "http://a.test/\0x";
    assert_string_equal(url_fault((struct str){URL, sizeof(URL) - 1}), INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_url_may_be_called_or_the_fault_says_why_not),
        cmocka_unit_test(test_a_url_with_a_nul_is_not_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
