/* Which requests a development server takes, by what a browser says of their origin. */
#include "base/support.h"

#include "domain/dev_guard.h"

static const char LOOPBACK[] = "127.0.0.1:7295";

static enum err check(struct dev_request r, const char *listen)
{
    struct problem p;
    problem_init(&p);
    enum err e = dev_guard_check(&r, str_of(listen), &p);
    assert_int_equal(e == ERR_OK, p.detail[0] == '\0');
    problem_release(&p);
    return e;
}

static void expect_host(const char *host, const char *listen, enum err expected)
{
    enum err e = check((struct dev_request){.host = str_of(host)}, listen);
    if (e != expected)
        fail_msg("Host %s at %s: %s", host, listen, err_code(e));
}

static void loopback_names_are_served_on_any_port(void **state)
{
    (void)state;
    static const char *const HOSTS[] = {
        "localhost",  "localhost:7295", "LOCALHOST:1",     "a.localhost", "b.a.LocalHost:80",
        "127.0.0.1",  "127.0.0.1:7295", "127.9.8.7:65535", "[::1]",       "[::1]:7295",
        "[0:0::1]:1",
    };
    for (size_t i = 0; i < ARRAY_LEN(HOSTS); i++)
        expect_host(HOSTS[i], LOOPBACK, ERR_OK);
}

static void any_other_name_is_refused(void **state)
{
    (void)state;
    static const char *const HOSTS[] = {
        "",
        "evil.example",
        "evil.example:7295",
        "localhost.evil.example",
        "notlocalhost",
        ".localhost",
        "127.0.0.1.evil.example",
        "128.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0.0.0.0",
        "[::]",
        "[::2]",
        "[::ffff:127.0.0.1]",
        "[::1",
        "[::1]x",
        "::1",
        "localhost:",
        "localhost:x",
        "localhost:65536",
        "localhost:-1",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/",
        "localhost, evil.example",
        "localhost.",
        "192.168.1.5:7295",
    };
    for (size_t i = 0; i < ARRAY_LEN(HOSTS); i++)
        expect_host(HOSTS[i], LOOPBACK, ERR_HOST_REFUSED);
}

static void a_server_answers_to_the_host_it_listens_on(void **state)
{
    (void)state;
    expect_host("192.168.1.5:7295", "192.168.1.5:7295", ERR_OK);
    expect_host("Build.Example", "build.example:80", ERR_OK);
    expect_host("[fd00::5]:7295", "[fd00::5]:7295", ERR_OK);
    expect_host("localhost:7295", "192.168.1.5:7295", ERR_OK);
    expect_host("192.168.1.6:7295", "192.168.1.5:7295", ERR_HOST_REFUSED);
    expect_host("evil.example", "build.example:80", ERR_HOST_REFUSED);
}

static void a_server_on_all_addresses_answers_to_any_host(void **state)
{
    (void)state;
    expect_host("pawl:7295", "0.0.0.0:7295", ERR_OK);
    expect_host("pawl:7295", ":7295", ERR_OK);
    expect_host("192.168.1.5", "[::]:7295", ERR_OK);
}

static void a_request_without_host_is_no_browsers(void **state)
{
    (void)state;
    assert_int_equal(check((struct dev_request){.host = STR_NONE}, LOOPBACK), ERR_OK);
}

static void only_the_servers_own_origin_may_call(void **state)
{
    (void)state;
    static const struct {
        const char *origin, *host;
        enum err expected;
    } ROWS[] = {
        {"http://localhost:7295", "localhost:7295", ERR_OK},
        {"http://LOCALHOST:7295", "localhost:7295", ERR_OK},
        {"https://localhost", "localhost", ERR_OK},
        {"http://[::1]:7295", "[::1]:7295", ERR_OK},
        {"http://localhost:3000", "localhost:7295", ERR_CROSS_SITE},
        {"http://localhost:7295", "127.0.0.1:7295", ERR_CROSS_SITE},
        {"http://localhost", "localhost:7295", ERR_CROSS_SITE},
        {"https://evil.example", "localhost:7295", ERR_CROSS_SITE},
        {"null", "localhost:7295", ERR_CROSS_SITE},
        {"", "localhost:7295", ERR_CROSS_SITE},
        {"http:localhost:7295", "localhost:7295", ERR_CROSS_SITE},
        {"file://localhost:7295", "localhost:7295", ERR_CROSS_SITE},
        {"http://localhost:7295/", "localhost:7295", ERR_CROSS_SITE},
        {"http://", "", ERR_HOST_REFUSED},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct dev_request r = {.host = str_of(ROWS[i].host), .origin = str_of(ROWS[i].origin)};
        enum err e = check(r, LOOPBACK);
        if (e != ROWS[i].expected)
            fail_msg("Origin %s to %s: %s", ROWS[i].origin, ROWS[i].host, err_code(e));
    }
    struct dev_request hostless = {.origin = STR("http://")};
    assert_int_equal(check(hostless, LOOPBACK), ERR_CROSS_SITE);
}

static void the_origin_counts_where_any_host_is_served(void **state)
{
    (void)state;
    struct dev_request r = {.host = STR("pawl:7295"), .origin = STR("http://evil.example")};
    assert_int_equal(check(r, ":7295"), ERR_CROSS_SITE);
    r.origin = STR("http://pawl:7295");
    assert_int_equal(check(r, ":7295"), ERR_OK);
}

static void what_a_browser_fetches_for_another_site_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *site, *mode;
        bool page;
        enum err expected;
    } ROWS[] = {
        {"same-origin", "cors", false, ERR_OK},
        {"none", "navigate", false, ERR_OK}, /* typed, or a bookmark */
        {"cross-site", "navigate", true, ERR_OK},
        {"same-site", "navigate", true, ERR_OK},
        {"cross-site", "navigate", false, ERR_CROSS_SITE},
        {"cross-site", "no-cors", true, ERR_CROSS_SITE},
        {"cross-site", NULL, true, ERR_CROSS_SITE},
        {"cross-site", "no-cors", false, ERR_CROSS_SITE},
        {"same-site", "cors", false, ERR_CROSS_SITE},
        {"future-word", "cors", false, ERR_CROSS_SITE},
        {"", "cors", false, ERR_CROSS_SITE},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct dev_request r = {.host = STR("localhost:7295"),
                                .fetch_site = str_of(ROWS[i].site),
                                .fetch_mode = str_of(ROWS[i].mode),
                                .shows_page = ROWS[i].page};
        enum err e = check(r, LOOPBACK);
        if (e != ROWS[i].expected)
            fail_msg("row %zu: %s", i, err_code(e));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_names_are_served_on_any_port),
        cmocka_unit_test(any_other_name_is_refused),
        cmocka_unit_test(a_server_answers_to_the_host_it_listens_on),
        cmocka_unit_test(a_server_on_all_addresses_answers_to_any_host),
        cmocka_unit_test(a_request_without_host_is_no_browsers),
        cmocka_unit_test(only_the_servers_own_origin_may_call),
        cmocka_unit_test(the_origin_counts_where_any_host_is_served),
        cmocka_unit_test(what_a_browser_fetches_for_another_site_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
