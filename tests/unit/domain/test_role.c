/* Who may do what: the whole table of roles and actions. */
#include "base/support.h"

#include "domain/role.h"

static const unsigned ACTIONS[] = {MAY_READ,   MAY_RUN,   MAY_WORK,
                                   MAY_DECIDE, MAY_ADMIN, MAY_RULE_SERVER};

static const bool EXPECTED[ROLE_COUNT][ARRAY_LEN(ACTIONS)] = {
    /* read, run, work, decide, admin, rule the server (with a key for all tenants) */
    [ROLE_VIEWER] = {true, false, false, false, false, false},
    [ROLE_WORKER] = {true, false, true, false, false, false},
    [ROLE_APPROVER] = {true, false, false, true, false, false},
    [ROLE_OPERATOR] = {true, true, true, true, false, false},
    [ROLE_ADMIN] = {true, true, true, true, true, true},
};

static void every_role_may_what_the_table_says(void **state)
{
    (void)state;
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        for (size_t i = 0; i < ARRAY_LEN(ACTIONS); i++) {
            if (role_may(role, true, ACTIONS[i]) != EXPECTED[role][i])
                fail_msg("%s and action %u", role_name(role), ACTIONS[i]);
        }
    }
}

static void a_key_of_one_tenant_never_rules_the_server(void **state)
{
    (void)state;
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        for (unsigned set = 1; set < 64; set++) {
            bool expected = (set & MAY_RULE_SERVER) == 0 && role_may(role, true, set);
            assert_int_equal(role_may(role, false, set), expected);
        }
    }
}

static void several_actions_need_a_right_to_each(void **state)
{
    (void)state;
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        for (unsigned set = 1; set < 64; set++) {
            bool all = true;
            for (size_t i = 0; i < ARRAY_LEN(ACTIONS); i++) {
                if ((set & ACTIONS[i]) != 0)
                    all = all && EXPECTED[role][i];
            }
            assert_int_equal(role_may(role, true, set), all);
        }
    }
}

static void nobody_has_a_right_that_does_not_exist(void **state)
{
    (void)state;
    for (enum role role = 0; role < ROLE_COUNT; role++)
        assert_false(role_may(role, true, 64));
}

static void names_round_trip(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"viewer", "worker", "approver", "operator", "admin"};
    static_assert(ARRAY_LEN(NAMES) == ROLE_COUNT, "one name per role");
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        assert_string_equal(role_name(role), NAMES[role]);
        assert_int_equal(role_of(str_of(NAMES[role])), role);
    }
}

static void a_name_that_is_none_is_no_role(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"", "Admin", "root", "admin ", "view", "*"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        assert_int_equal(role_of(str_of(NAMES[i])), ROLE_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_role_may_what_the_table_says),
        cmocka_unit_test(a_key_of_one_tenant_never_rules_the_server),
        cmocka_unit_test(several_actions_need_a_right_to_each),
        cmocka_unit_test(nobody_has_a_right_that_does_not_exist),
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(a_name_that_is_none_is_no_role),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
