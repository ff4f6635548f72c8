/* The doctor: limits and timers that are lost come back, leaked slots are noticed, and entities are
 * looked at too. */
#include "engine/doctor_support.h"

/* --- limits that are lost --- */

static void a_lost_limit_comes_back_under_its_number(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "keyed", KEYED);
    put_tenant(fixture, "{'max_concurrent_runs':9,'at_limit':'queue'}");
    for (size_t i = 0; i < 3; i++)
        (void)must_start(fixture, "keyed", "{'c':'a'}", 0);
    (void)must_start(fixture, "keyed", "{'c':'b'}", 0);
    int64_t num = in_file(fixture, "SELECT num FROM scopes WHERE key = 'a'");
    restart_damaged(fixture, "DELETE FROM scopes WHERE key = 'a'");
    assert_true(repaired(fixture) > 0);
    assert_healthy(fixture);
    assert_int_equal(
        in_file(fixture, "SELECT num FROM scopes WHERE key = 'a' AND path = 'input.c'"), num);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM scopes WHERE key = 'a'"), 2);
    assert_int_equal(in_file(fixture, "SELECT queued_runs FROM scopes WHERE key = 'a'"), 1);
    struct uuid more;
    assert_int_equal(start_as(fixture, "acme", "keyed", "{'c':'a'}", AT_LIMIT_REJECT, 0, &more),
                     ERR_MAX_CONCURRENT_RUNS);
    assert_int_equal(start_as(fixture, "acme", "keyed", "{'c':'b'}", AT_LIMIT_REJECT, 0, &more),
                     ERR_OK);
}

static void limits_that_are_all_lost_are_made_again(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "keyed", KEYED);
    put_tenant(fixture, "{'max_concurrent_runs':9,'at_limit':'queue'}");
    for (size_t i = 0; i < 3; i++)
        (void)must_start(fixture, "keyed", "{'c':'a'}", 0);
    (void)must_start(fixture, "keyed", "{'c':'b'}", 0);
    restart_damaged(fixture, "DELETE FROM scopes");
    assert_true(repaired(fixture) > 0);
    assert_healthy(fixture);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM scopes WHERE path = ''"), 3);
    assert_int_equal(in_file(fixture, "SELECT queued_runs FROM scopes WHERE path = ''"), 1);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM scopes WHERE key = 'a'"), 2);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM scopes WHERE key = 'b'"), 1);
    struct uuid more;
    assert_int_equal(start_as(fixture, "acme", "keyed", "{'c':'a'}", AT_LIMIT_REJECT, 0, &more),
                     ERR_MAX_CONCURRENT_RUNS);
}

/* All rows agree with each other, and count for the wrong key. */
static void a_run_under_the_limit_of_another_key_is_found_and_mended(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "keyed", KEYED);
    put_tenant(fixture, "{'max_concurrent_runs':9,'at_limit':'queue'}");
    for (size_t i = 0; i < 3; i++)
        (void)must_start(fixture, "keyed", "{'c':'a'}", 0);
    restart_damaged(fixture, "UPDATE scopes SET key = 'b' WHERE key = 'a'");
    struct doctor_findings findings;
    json_t *report = ask_keyed(fixture, &UC_DOCTOR, NULL, &findings);
    assert_false(is_ok(report));
    assert_int_equal(findings.differences[DOCTOR_SLOTS], 3);
    const json_t *check = json_array_get(json_object_get(report, "checks"), DOCTOR_SLOTS);
    const json_t *found = json_array_get(json_object_get(check, "found"), 0);
    assert_string_equal(json_string_value(json_object_get(found, "tenant")), "acme");
    assert_non_null(json_object_get(found, "run_id"));
    json_decref(report);
    assert_int_equal(repaired(fixture), 3);
    assert_healthy(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM scopes WHERE key = 'b'"), 0);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM scopes WHERE key = 'a'"), 2);
    assert_int_equal(in_file(fixture, "SELECT queued_runs FROM scopes WHERE key = 'a'"), 1);
}

static void a_run_whose_definition_is_lost_too_keeps_what_is_left(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "keyed", KEYED);
    (void)must_start(fixture, "keyed", "{'c':'a'}", 0);
    (void)must_start(fixture, "keyed", "{'c':'b'}", 0);
    restart_damaged(fixture, "DELETE FROM scopes WHERE key = 'a'; DELETE FROM workflow_versions");
    assert_true(repaired(fixture) > 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM scopes"), 2);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM scopes WHERE path = ''"), 2);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE scopes ="
                                      " (SELECT CAST(num AS TEXT) FROM scopes WHERE path = '')"),
                     1);
    fixture_stop(fixture);
    struct check_result left = look_at_file(fixture);
    assert_int_equal(left.derived, 0);
    assert_int_equal(left.found, 2); /* two runs without their definition */
    fixture_start(fixture, 0);
}

/* --- timers --- */

static void a_lost_timer_is_armed_again(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "nap", "{'steps':[{'name':'a','type':'sleep','duration_ms':5000}]}");
    struct uuid run = start(fixture, "nap");
    restart_damaged(fixture, "DELETE FROM timers");
    fixture_pass_ms(fixture, 4000);
    assert_int_equal(repaired(fixture), 1);
    settle(fixture);
    assert_run_is(fixture, run, "waiting");
    fixture_pass_ms(fixture, 1500);
    settle(fixture);
    assert_run_is(fixture, run, "succeeded");
    assert_healthy(fixture);
}

/* Its end cannot be counted, so it does not end: neither does the server. */
static void a_run_that_was_not_counted_ends_after_the_repair(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "nap", "{'steps':[{'name':'a','type':'sleep','duration_ms':1000}]}");
    struct uuid run = start(fixture, "nap");
    fixture_stop(fixture);
    damage(fixture, "UPDATE tenants SET active_runs = 0");
    fixture_pass_ms(fixture, 2000);
    fixture_start(fixture, 0);
    settle(fixture);
    assert_run_is(fixture, run, "waiting");
    assert_int_equal(repaired(fixture), 3); /* the counter, and the timer that was put aside */
    fixture_pass_ms(fixture, 2000);
    settle(fixture);
    assert_run_is(fixture, run, "succeeded");
    assert_healthy(fixture);
}

/* --- by itself --- */

static bool metrics_say(struct fixture *fixture, const char *line)
{
    struct buf text;
    buf_init(&text, MIB);
    metrics_put_text(fixture->metrics, &text);
    buf_put_char(&text, '\0');
    assert_true(buf_ok(&text));
    bool said = strstr(text.ptr, line) != NULL;
    buf_release(&text);
    return said;
}

static void wait_for_metric(struct fixture *fixture, const char *line)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    while (!metrics_say(fixture, line)) {
        if (real_seconds() >= until)
            fail_msg("the metrics never say %s", line);
        fixture_round(fixture);
    }
}

static void a_leaked_slot_is_noticed_at_start_up_and_now_and_then(void **state)
{
    struct fixture *fixture = *state;
    wait_for_metric(fixture, "pawl_doctor_differences{check=\"slots\"} 0\n");
    wait_for_metric(fixture, "pawl_doctor_differences{check=\"queue\"} 0\n");
    assert_false(metrics_say(fixture, "check=\"audit\""));
    put_workflow(fixture, "plain", ONE_TASK);
    (void)start(fixture, "plain");
    restart_damaged(fixture, "UPDATE tenants SET active_runs = active_runs + 1 WHERE id = 'acme'");
    wait_for_metric(fixture, "pawl_doctor_differences{check=\"slots\"} 1\n");
    assert_int_equal(repaired(fixture), 1);
    wait_for_metric(fixture, "pawl_doctor_differences{check=\"slots\"} 0\n");
    /* another program writes to the file while the server runs */
    damage(fixture, "UPDATE tenants SET active_runs = 9 WHERE id = 'acme'");
    fixture_pass_ms(fixture, CHECK_EVERY_MS);
    wait_for_metric(fixture, "pawl_doctor_differences{check=\"slots\"} 1\n");
    assert_int_equal(repaired(fixture), 1);
    assert_healthy(fixture);
}

/* --- entities --- */

static const json_t *found_in(const json_t *report, const char *name)
{
    size_t i;
    json_t *check;
    json_array_foreach (json_object_get(report, "checks"), i, check) {
        if (strcmp(json_string_value(json_object_get(check, "name")), name) == 0)
            return json_array_get(json_object_get(check, "found"), 0);
    }
    return NULL;
}

static void what_is_wrong_with_an_entity_is_said_with_its_name(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "ann", "k", 1);
    assert_healthy(fixture);
    restart_damaged(fixture, "DELETE FROM inbox");
    json_t *report = ask(fixture, &UC_DOCTOR);
    const json_t *found = found_in(report, "entities");
    assert_non_null(found);
    assert_string_equal(json_string_value(json_object_get(found, "tenant")), "acme");
    assert_string_equal(json_string_value(json_object_get(found, "entity_type")), "counter");
    assert_string_equal(json_string_value(json_object_get(found, "entity_id")), "ann");
    assert_null(json_object_get(found, "run_id"));
    assert_int_equal(json_integer_value(json_object_get(found, "kept")), 1);
    assert_int_equal(json_integer_value(json_object_get(found, "counted")), 0);
    assert_true(json_is_false(json_object_get(found, "repairable")));
    json_decref(report);
    assert_int_equal(repaired(fixture), 0);
}

static void a_lost_timer_of_an_entity_is_armed_again(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "ann", NULL, 1);
    assert_int_equal(handle_all(fixture, ",\"set_timers\":[{\"name\":\"nap\",\"in_ms\":60000}]"),
                     1);
    assert_healthy(fixture);
    restart_damaged(fixture, "DELETE FROM timers");
    assert_int_equal(repaired(fixture), 1);
    assert_healthy(fixture);
    assert_entity_is(fixture, "ann", "idle");
    fixture_pass_ms(fixture, 60000);
    settle(fixture);
    assert_entity_is(fixture, "ann", "waiting");
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_healthy(fixture);
}

static void a_busy_entity_leaves_nothing_to_mend(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'rollover_events':7,'keep_generations':1,'dedup_max_keys':20");
    for (int i = 0; i < 300; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%d", i);
        (void)must_send(fixture, i % 3 == 0 ? "ann" : "bob", key, i);
        if (i % 5 == 0)
            (void)handle_all(fixture, ",\"emit\":[{\"event\":\"sum.known\"}]");
        if (i % 50 == 0)
            assert_healthy(fixture);
        if (i % 70 == 0) {
            fixture_pass_ms(fixture, 1000); /* old generations go */
            settle(fixture);
        }
    }
    (void)handle_all(fixture, "");
    for (int64_t until = real_seconds() + GIVE_UP_S;
         in_file(fixture, "SELECT count(*) FROM entity_sweeps") > 0;) {
        assert_true(real_seconds() < until);
        fixture_pass_ms(fixture, 1000);
        settle(fixture);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entity_generations"), 2 * 2);
    assert_healthy(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_lost_limit_comes_back_under_its_number),
        fixture_test(limits_that_are_all_lost_are_made_again),
        fixture_test(a_run_under_the_limit_of_another_key_is_found_and_mended),
        fixture_test(a_run_whose_definition_is_lost_too_keeps_what_is_left),
        fixture_test(a_lost_timer_is_armed_again),
        fixture_test(a_run_that_was_not_counted_ends_after_the_repair),
        fixture_test(a_leaked_slot_is_noticed_at_start_up_and_now_and_then),
        fixture_test(what_is_wrong_with_an_entity_is_said_with_its_name),
        fixture_test(a_lost_timer_of_an_entity_is_armed_again),
        fixture_test(a_busy_entity_leaves_nothing_to_mend),
    };
    return cmocka_run_group_tests_name("doctor: lost rows", tests, NULL, NULL);
}
