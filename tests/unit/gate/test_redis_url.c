/* Addresses of Redis servers. */
#include "testing.h"

#include "gate/redis_url.h"

static void every_part_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct redis_url url;
    } CASES[] = {
        {"redis://localhost", {"localhost", "", "", 6379, 0}},
        {"redis://localhost/", {"localhost", "", "", 6379, 0}},
        {"redis://10.0.0.1:7000", {"10.0.0.1", "", "", 7000, 0}},
        {"redis://h:7000/12", {"h", "", "", 7000, 12}},
        {"redis://[::1]", {"::1", "", "", 6379, 0}},
        {"redis://[fe80::1]:1/2", {"fe80::1", "", "", 1, 2}},
        {"redis://:secret@h", {"h", "", "secret", 6379, 0}},
        {"redis://me:secret@h:65535", {"h", "me", "secret", 65535, 0}},
        {"redis://me:a%40b%3A%2f%25@h", {"h", "me", "a@b:/%", 6379, 0}},
        {"redis://:a@b@h", {"h", "", "a@b", 6379, 0}},
        {"redis://:a:b/c@h", {"h", "", "a:b/c", 6379, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        const struct redis_url *expected = &CASES[i].url;
        struct redis_url url;
        const char *fault = redis_url_parse(str_of(CASES[i].text), &url);
        if (fault != NULL)
            fail_msg("%s %s", CASES[i].text, fault);
        assert_string_equal(url.host, expected->host);
        assert_string_equal(url.user, expected->user);
        assert_string_equal(url.password, expected->password);
        assert_int_equal(url.port, expected->port);
        assert_int_equal(url.database, expected->database);
    }
}

static void what_cannot_be_used_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *about;
    } CASES[] = {
        {"", "begin with"},
        {"Store", "begin with"},
        {"http://h", "begin with"},
        {"rediss://h", "TLS"},
        {"redis://", "host"},
        {"redis://:6379", "host"},
        {"redis://h:", "port"},
        {"redis://h:0", "port"},
        {"redis://h:65536", "port"},
        {"redis://h:x", "port"},
        {"redis://h:1:2", "port"},
        {"redis://[::1", "host"},
        {"redis://[::1]x", "host"},
        {"redis://h/x", "database"},
        {"redis://h/-1", "database"},
        {"redis://h/1/2", "database"},
        {"redis://me@h", "password"},
        {"redis://:%zz@h", "password"},
        {"redis://:a%2@h", "password"},
        {"redis://:a%00b@h", "password"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct redis_url url = {.port = -7};
        const char *fault = redis_url_parse(str_of(CASES[i].text), &url);
        if (fault == NULL)
            fail_msg("%s is taken", CASES[i].text);
        assert_non_null(strstr(fault, CASES[i].about));
        assert_int_equal(url.port, -7);
    }
    char text[400] = "redis://";
    memset(text + 8, 'h', 300);
    struct redis_url url;
    assert_non_null(redis_url_parse(str_of(text), &url));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_is_read),
        cmocka_unit_test(what_cannot_be_used_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
