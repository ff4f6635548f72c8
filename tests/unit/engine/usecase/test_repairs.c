/* The repair of what is derived from the runs, with faults at each call. What the doctor finds, and
 * what becomes of each damage, is in test_doctor.c. */
#include "engine/doctor_support.h"
#include "engine/usecase/asking.h"

/* One run of each key is active, one waits. */
static void make_busy(struct fixture *fixture)
{
    put_workflow(fixture, "w", KEYED);
    put_workflow(fixture, "s", "{'steps':[{'name':'s','type':'sleep','duration_ms':60000}]}");
    put_tenant(fixture, "{'max_concurrent_runs':3}");
    (void)must_start(fixture, "w", "{'c':'x'}", 0);
    (void)must_start(fixture, "w", "{'c':'y'}", 0);
    (void)must_start(fixture, "s", "{}", 0);
    (void)must_start(fixture, "w", "{'c':'x'}", 1);
    (void)must_start(fixture, "w", "{'c':'z'}", 0);
}

static void finish_all(struct fixture *fixture)
{
    struct held h;
    for (int turn = 0; turn < 10; turn++) {
        settle(fixture);
        while (claim_one(fixture, 60000, &h))
            assert_int_equal(complete(fixture, &h), ERR_OK);
    }
}

static void a_repair_mends_what_is_derived_and_everything_goes_on(void **state)
{
    struct fixture *fixture = *state;
    static const char *const DAMAGES[] = {
        "DELETE FROM scopes",
        "DELETE FROM scopes WHERE num = (SELECT max(num) FROM scopes)",
        "UPDATE runs SET scopes = '7,8,9' WHERE status = 'queued'",
        "UPDATE runs SET scopes = NULL",
        "UPDATE tenants SET active_runs = 7, queued_runs = 0",
        "DELETE FROM timers",
        "DELETE FROM run_blocks",
        "DELETE FROM holding",
    };
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        make_busy(fixture);
        restart_damaged(fixture, DAMAGES[i]);
        (void)repaired(fixture); /* some of it a restart mends by itself */
        assert_sound(fixture);
        assert_int_equal(repaired(fixture), 0);
        finish_all(fixture);
        fixture_pass_ms(fixture, 60001);
        finish_all(fixture);
        assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE finished_at IS NULL"),
                         0);
        assert_sound(fixture);
    }
}

/* What its definition says cannot be read: it keeps those of its limits that are there. */
static void a_run_of_a_damaged_definition_keeps_its_limits(void **state)
{
    struct fixture *fixture = *state;
    make_busy(fixture);
    restart_damaged(fixture, "UPDATE workflow_versions SET definition = '{';"
                             " UPDATE runs SET scopes = scopes || ',99' WHERE scopes IS NOT NULL");
    json_decref(ask(fixture, &UC_DOCTOR_REPAIR));
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE scopes LIKE '%99%'"), 0);
    assert_true(in_file(fixture, "SELECT count(*) FROM runs WHERE scopes IS NOT NULL") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_repair_mends_what_is_derived_and_everything_goes_on),
        fixture_test(a_run_of_a_damaged_definition_keeps_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
