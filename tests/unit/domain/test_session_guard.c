/* Which requests a browser's cookie may sign. */
#include "testing.h"

#include "domain/session_guard.h"

#define NONE STR_NONE

struct row {
    struct str origin, fetch_site;
    bool may_read, may_change, may_sign_in;
};

static bool allows(enum err (*check)(const struct session_request *, struct problem *),
                   const struct row *row, bool changes)
{
    struct problem p;
    struct session_request r = {STR("pawl.example"), row->origin, row->fetch_site, changes};
    problem_init(&p);
    enum err e = check(&r, &p);
    assert_true(e == ERR_OK || e == ERR_CROSS_SITE);
    problem_release(&p);
    return e == ERR_OK;
}

static void every_row_of_the_table_holds(void **state)
{
    (void)state;
    const struct row ROWS[] = {
        {NONE, STR("same-origin"), true, true, true},
        {NONE, STR("none"), true, false, false},
        {NONE, STR("same-site"), false, false, false},
        {NONE, STR("cross-site"), false, false, false},
        {NONE, STR(""), false, false, false},
        {STR("https://pawl.example"), STR("cross-site"), false, false, false},
        {STR("https://evil.example"), STR("same-origin"), true, true,
         true}, /* a proxy's other name */
        {STR("https://pawl.example"), NONE, true, true, true},
        {STR("http://PAWL.example"), NONE, true, true, true},
        {STR("https://pawl.example:8443"), NONE, false, false, false},
        {STR("https://evil.example"), NONE, false, false, false},
        {STR("https://pawl.example.evil.example"), NONE, false, false, false},
        {STR("ftp://pawl.example"), NONE, false, false, false},
        {STR("null"), NONE, false, false, false},
        {STR(""), NONE, false, false, false},
        {STR("https:"), NONE, false, false, false},
        {NONE, NONE, true, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        assert_int_equal(allows(session_guard_check, &ROWS[i], false), ROWS[i].may_read);
        assert_int_equal(allows(session_guard_check, &ROWS[i], true), ROWS[i].may_change);
        assert_int_equal(allows(session_guard_check_sign_in, &ROWS[i], true), ROWS[i].may_sign_in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_of_the_table_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
