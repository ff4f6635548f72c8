/* How fast slots free, kept apart by tenant and scope, and what a rejected start learns of it. */
#include "engine/fixture.h"

#include "core/txn/release_rates.h"

/* --- the memory --- */

/* So many releases, this far apart; the last one at `end_ms`. */
static void free_slots(struct release_rates *release_rates, int64_t tenant, int64_t scope,
                       int64_t interval_ms, int64_t end_ms)
{
    enum { RELEASES = 3 };
    for (int64_t i = RELEASES - 1; i >= 0; i--)
        release_rates_note(release_rates, tenant, scope, end_ms - i * interval_ms);
}

static void an_unknown_pace_is_a_second(void **state)
{
    (void)state;
    struct release_rates *release_rates = release_rates_new();
    assert_non_null(release_rates);
    assert_int_equal(release_rates_retry_after_s(release_rates, 1, 0, 1000), 1);
    assert_int_equal(release_rates_retry_after_s(release_rates, INT64_MAX, INT64_MAX, 0), 1);
    release_rates_note(release_rates, 1, 0, 1000); /* one release is no pace yet */
    assert_int_equal(release_rates_retry_after_s(release_rates, 1, 0, 1000), 1);
    release_rates_free(release_rates);
}

static void a_tenant_and_each_of_its_scopes_have_a_pace_of_their_own(void **state)
{
    (void)state;
    struct release_rates *release_rates = release_rates_new();
    free_slots(release_rates, 1, 0, 10000, 100000);
    free_slots(release_rates, 1, 7, 20000, 100000);
    free_slots(release_rates, 2, 0, 30000, 100000);
    free_slots(release_rates, 2, 7, 40000, 100000);
    assert_int_equal(release_rates_retry_after_s(release_rates, 1, 0, 100000), 10);
    assert_int_equal(release_rates_retry_after_s(release_rates, 1, 7, 100000), 20);
    assert_int_equal(release_rates_retry_after_s(release_rates, 2, 0, 100000), 30);
    assert_int_equal(release_rates_retry_after_s(release_rates, 2, 7, 100000), 40);
    assert_int_equal(release_rates_retry_after_s(release_rates, 1, 0, 104000), 6);
    assert_int_equal(release_rates_retry_after_s(release_rates, 1, 8, 100000), 1);
    assert_int_equal(release_rates_retry_after_s(release_rates, 3, 0, 100000), 1);
    release_rates_free(release_rates);
}

static void forgetting_is_allowed_and_mixing_is_not(void **state)
{
    enum { TENANTS = 3, SCOPES = 5000 }; /* a tenant alone has more than there are places */
    (void)state;
    struct release_rates *release_rates = release_rates_new();
    for (int64_t tenant = 1; tenant <= TENANTS; tenant++) {
        for (int64_t scope = 0; scope < SCOPES; scope++) {
            int64_t pace_s = 2 + (tenant * SCOPES + scope) % 50;
            free_slots(release_rates, tenant, scope, pace_s * 1000, 200000);
            /* The last one is always remembered. */
            assert_int_equal(release_rates_retry_after_s(release_rates, tenant, scope, 200000),
                             pace_s);
        }
    }
    for (int64_t tenant = 1; tenant <= TENANTS; tenant++) {
        for (int64_t scope = 0; scope < SCOPES; scope++) {
            int64_t retry_after_s =
                release_rates_retry_after_s(release_rates, tenant, scope, 200000);
            if (retry_after_s != 1) /* else it is forgotten */
                assert_int_equal(retry_after_s, 2 + (tenant * SCOPES + scope) % 50);
        }
    }
    release_rates_free(release_rates);
}

static void a_thousand_tenants_are_mostly_remembered(void **state)
{
    enum { TENANTS = 1000 };
    (void)state;
    struct release_rates *release_rates = release_rates_new();
    for (int64_t tenant = 1; tenant <= TENANTS; tenant++)
        free_slots(release_rates, tenant, 0, 5000, 100000);
    int remembered = 0;
    for (int64_t tenant = 1; tenant <= TENANTS; tenant++)
        remembered += release_rates_retry_after_s(release_rates, tenant, 0, 100000) == 5;
    assert_true(remembered >= TENANTS * 3 / 4);
    release_rates_free(release_rates);
}

static void one_that_lost_its_place_begins_anew(void **state)
{
    (void)state;
    struct release_rates *release_rates = release_rates_new();
    free_slots(release_rates, 1, 0, 30000, 100000);
    int64_t rival = 2; /* the first that shares a place with tenant 1 */
    while (release_rates_retry_after_s(release_rates, 1, 0, 100000) == 30) {
        release_rates_note(release_rates, rival++, 0, 100000);
        assert_true(rival < 1000000);
    }
    release_rates_note(release_rates, 1, 0, 110000); /* nothing of before is left */
    assert_int_equal(release_rates_retry_after_s(release_rates, 1, 0, 110000), 1);
    release_rates_note(release_rates, 1, 0, 115000);
    assert_int_equal(release_rates_retry_after_s(release_rates, 1, 0, 115000), 5);
    release_rates_free(release_rates);
}

/* --- what a rejected start learns --- */

static void cancel(struct fixture *fixture, struct uuid run)
{
    struct control_run_input in = {.run_id = run, .action = CONTROL_CANCEL, .if_match = -1};
    struct call c;
    call_init(&c, fixture, &UC_CONTROL_RUN);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
}

static void assert_told(struct fixture *fixture, const char *workflow, const char *limited_by,
                        int retry_after_s)
{
    struct call c;
    start_init(&c, fixture, workflow);
    assert_int_equal(perform(&c), ERR_MAX_CONCURRENT_RUNS);
    assert_string_equal(c.op.problem.limited_by, limited_by);
    assert_int_equal(c.op.problem.retry_after_s, retry_after_s);
    call_release(&c);
}

/* Runs one after the other, each for seven seconds; the one that is left holds the last slot. */
static void run_one_after_the_other(struct fixture *fixture, const char *workflow)
{
    for (int i = 0; i < 4; i++) {
        struct uuid run = start(fixture, workflow);
        fixture_pass_ms(fixture, 7000);
        cancel(fixture, run);
    }
    (void)start(fixture, workflow);
}

static void a_rejected_start_learns_when_its_tenants_next_slot_is_likely(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    struct uuid first = start(fixture, "w");
    assert_told(fixture, "w", "tenant", 1); /* nobody knows yet */
    cancel(fixture, first);
    run_one_after_the_other(fixture, "w");
    assert_told(fixture, "w", "tenant", 7);
    fixture_pass_ms(fixture, 2500);
    assert_told(fixture, "w", "tenant", 5);
    fixture_pass_ms(fixture, 4500);
    assert_told(fixture, "w", "tenant", 1);
    fixture_pass_ms(fixture, 10000); /* overdue by ten seconds: as long again */
    assert_told(fixture, "w", "tenant", 10);
}

static void a_rejected_start_learns_the_pace_of_the_limit_it_met(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "slow",
                 "{'concurrency':{'limit':2},'steps':[{'name':'a','type':'task',"
                 "'handler':'h'}]}");
    put_workflow(fixture, "quick", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':4}");
    (void)start(fixture, "slow"); /* stays */
    struct uuid holder = start(fixture, "slow");
    assert_told(fixture, "slow", "workflow", 1);
    for (int i = 0; i < 8; i++) { /* others free the tenant's slots meanwhile, one each second */
        struct uuid run = start(fixture, "quick");
        fixture_pass_ms(fixture, 1000);
        cancel(fixture, run);
    }
    assert_told(fixture, "slow", "workflow", 1); /* none of them was of this limit */
    cancel(fixture, holder);
    run_one_after_the_other(fixture, "slow");
    assert_told(fixture, "slow", "workflow", 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_pace_is_a_second),
        cmocka_unit_test(a_tenant_and_each_of_its_scopes_have_a_pace_of_their_own),
        cmocka_unit_test(forgetting_is_allowed_and_mixing_is_not),
        cmocka_unit_test(a_thousand_tenants_are_mostly_remembered),
        cmocka_unit_test(one_that_lost_its_place_begins_anew),
        fixture_test(a_rejected_start_learns_when_its_tenants_next_slot_is_likely),
        fixture_test(a_rejected_start_learns_the_pace_of_the_limit_it_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
