/* The doctor: limits and timers that are lost come back, leaked slots are noticed, and entities are
 * looked at too. */
#include "engine/doctor_support.h"

/* --- limits that are lost --- */

static void a_lost_limit_comes_back_under_its_number(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "keyed", KEYED);
    put_tenant(rig, "{'max_concurrent_runs':9,'at_limit':'queue'}");
    for (size_t i = 0; i < 3; i++)
        (void)must_start(rig, "keyed", "{'c':'a'}", 0);
    (void)must_start(rig, "keyed", "{'c':'b'}", 0);
    int64_t num = in_file(rig, "SELECT num FROM scopes WHERE key = 'a'");
    restart_damaged(rig, "DELETE FROM scopes WHERE key = 'a'");
    assert_true(repaired(rig) > 0);
    assert_healthy(rig);
    assert_int_equal(in_file(rig, "SELECT num FROM scopes WHERE key = 'a' AND path = 'input.c'"),
                     num);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM scopes WHERE key = 'a'"), 2);
    assert_int_equal(in_file(rig, "SELECT queued_runs FROM scopes WHERE key = 'a'"), 1);
    struct uuid more;
    assert_int_equal(start_as(rig, "acme", "keyed", "{'c':'a'}", AT_LIMIT_REJECT, 0, &more),
                     ERR_MAX_CONCURRENT_RUNS);
    assert_int_equal(start_as(rig, "acme", "keyed", "{'c':'b'}", AT_LIMIT_REJECT, 0, &more),
                     ERR_OK);
}

static void limits_that_are_all_lost_are_made_again(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "keyed", KEYED);
    put_tenant(rig, "{'max_concurrent_runs':9,'at_limit':'queue'}");
    for (size_t i = 0; i < 3; i++)
        (void)must_start(rig, "keyed", "{'c':'a'}", 0);
    (void)must_start(rig, "keyed", "{'c':'b'}", 0);
    restart_damaged(rig, "DELETE FROM scopes");
    assert_true(repaired(rig) > 0);
    assert_healthy(rig);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM scopes WHERE path = ''"), 3);
    assert_int_equal(in_file(rig, "SELECT queued_runs FROM scopes WHERE path = ''"), 1);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM scopes WHERE key = 'a'"), 2);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM scopes WHERE key = 'b'"), 1);
    struct uuid more;
    assert_int_equal(start_as(rig, "acme", "keyed", "{'c':'a'}", AT_LIMIT_REJECT, 0, &more),
                     ERR_MAX_CONCURRENT_RUNS);
}

/* All rows agree with each other, and count for the wrong key. */
static void a_run_under_the_limit_of_another_key_is_found_and_mended(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "keyed", KEYED);
    put_tenant(rig, "{'max_concurrent_runs':9,'at_limit':'queue'}");
    for (size_t i = 0; i < 3; i++)
        (void)must_start(rig, "keyed", "{'c':'a'}", 0);
    restart_damaged(rig, "UPDATE scopes SET key = 'b' WHERE key = 'a'");
    struct doctor_findings findings;
    json_t *report = ask_keyed(rig, &UC_DOCTOR, NULL, &findings);
    assert_false(is_ok(report));
    assert_int_equal(findings.differences[DOCTOR_SLOTS], 3);
    const json_t *check = json_array_get(json_object_get(report, "checks"), DOCTOR_SLOTS);
    const json_t *found = json_array_get(json_object_get(check, "found"), 0);
    assert_string_equal(json_string_value(json_object_get(found, "tenant")), "acme");
    assert_non_null(json_object_get(found, "run_id"));
    json_decref(report);
    assert_int_equal(repaired(rig), 3);
    assert_healthy(rig);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM scopes WHERE key = 'b'"), 0);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM scopes WHERE key = 'a'"), 2);
    assert_int_equal(in_file(rig, "SELECT queued_runs FROM scopes WHERE key = 'a'"), 1);
}

static void a_run_whose_definition_is_lost_too_keeps_what_is_left(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "keyed", KEYED);
    (void)must_start(rig, "keyed", "{'c':'a'}", 0);
    (void)must_start(rig, "keyed", "{'c':'b'}", 0);
    restart_damaged(rig, "DELETE FROM scopes WHERE key = 'a'; DELETE FROM workflow_versions");
    assert_true(repaired(rig) > 0);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM scopes"), 2);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM scopes WHERE path = ''"), 2);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs WHERE scopes ="
                                  " (SELECT CAST(num AS TEXT) FROM scopes WHERE path = '')"),
                     1);
    rig_stop(rig);
    struct check_result left = look_at_file(rig);
    assert_int_equal(left.derived, 0);
    assert_int_equal(left.found, 2); /* two runs without their definition */
    rig_start(rig, 0);
}

/* --- timers --- */

static void a_lost_timer_is_armed_again(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "nap", "{'steps':[{'name':'a','type':'sleep','duration_ms':5000}]}");
    struct uuid run = start(rig, "nap");
    restart_damaged(rig, "DELETE FROM timers");
    rig_pass_ms(rig, 4000);
    assert_int_equal(repaired(rig), 1);
    settle(rig);
    assert_run_is(rig, run, "waiting");
    rig_pass_ms(rig, 1500);
    settle(rig);
    assert_run_is(rig, run, "succeeded");
    assert_healthy(rig);
}

/* Its end cannot be counted, so it does not end: neither does the server. */
static void a_run_that_was_not_counted_ends_after_the_repair(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "nap", "{'steps':[{'name':'a','type':'sleep','duration_ms':1000}]}");
    struct uuid run = start(rig, "nap");
    rig_stop(rig);
    damage(rig, "UPDATE tenants SET active_runs = 0");
    rig_pass_ms(rig, 2000);
    rig_start(rig, 0);
    settle(rig);
    assert_run_is(rig, run, "waiting");
    assert_int_equal(repaired(rig), 3); /* the counter, and the timer that was put aside */
    rig_pass_ms(rig, 2000);
    settle(rig);
    assert_run_is(rig, run, "succeeded");
    assert_healthy(rig);
}

/* --- by itself --- */

static bool metrics_say(struct rig *rig, const char *line)
{
    struct buf text;
    buf_init(&text, MIB);
    metrics_put_text(rig->metrics, &text);
    buf_put_char(&text, '\0');
    assert_true(buf_ok(&text));
    bool said = strstr(text.ptr, line) != NULL;
    buf_release(&text);
    return said;
}

static void wait_for_metric(struct rig *rig, const char *line)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    while (!metrics_say(rig, line)) {
        if (real_seconds() >= until)
            fail_msg("the metrics never say %s", line);
        rig_round(rig);
    }
}

static void a_leaked_slot_is_noticed_at_start_up_and_now_and_then(void **state)
{
    struct rig *rig = *state;
    wait_for_metric(rig, "pawl_doctor_differences{check=\"slots\"} 0\n");
    wait_for_metric(rig, "pawl_doctor_differences{check=\"queue\"} 0\n");
    assert_false(metrics_say(rig, "check=\"audit\""));
    put_workflow(rig, "plain", ONE_TASK);
    (void)start(rig, "plain");
    restart_damaged(rig, "UPDATE tenants SET active_runs = active_runs + 1 WHERE id = 'acme'");
    wait_for_metric(rig, "pawl_doctor_differences{check=\"slots\"} 1\n");
    assert_int_equal(repaired(rig), 1);
    wait_for_metric(rig, "pawl_doctor_differences{check=\"slots\"} 0\n");
    /* another program writes to the file while the server runs */
    damage(rig, "UPDATE tenants SET active_runs = 9 WHERE id = 'acme'");
    rig_pass_ms(rig, CHECK_EVERY_MS);
    wait_for_metric(rig, "pawl_doctor_differences{check=\"slots\"} 1\n");
    assert_int_equal(repaired(rig), 1);
    assert_healthy(rig);
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
    struct rig *rig = *state;
    count_with(rig, "");
    (void)must_send(rig, "ann", "k", 1);
    assert_healthy(rig);
    restart_damaged(rig, "DELETE FROM inbox");
    json_t *report = ask(rig, &UC_DOCTOR);
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
    assert_int_equal(repaired(rig), 0);
}

static void a_lost_timer_of_an_entity_is_armed_again(void **state)
{
    struct rig *rig = *state;
    count_with(rig, "");
    (void)must_send(rig, "ann", NULL, 1);
    assert_int_equal(handle_all(rig, ",\"set_timers\":[{\"name\":\"nap\",\"in_ms\":60000}]"), 1);
    assert_healthy(rig);
    restart_damaged(rig, "DELETE FROM timers");
    assert_int_equal(repaired(rig), 1);
    assert_healthy(rig);
    assert_entity_is(rig, "ann", "idle");
    rig_pass_ms(rig, 60000);
    settle(rig);
    assert_entity_is(rig, "ann", "waiting");
    assert_int_equal(handle_all(rig, ""), 1);
    assert_healthy(rig);
}

static void a_busy_entity_leaves_nothing_to_mend(void **state)
{
    struct rig *rig = *state;
    count_with(rig, ",'rollover_events':7,'keep_generations':1,'dedup_max_keys':20");
    for (int i = 0; i < 300; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%d", i);
        (void)must_send(rig, i % 3 == 0 ? "ann" : "bob", key, i);
        if (i % 5 == 0)
            (void)handle_all(rig, ",\"emit\":[{\"event\":\"sum.known\"}]");
        if (i % 50 == 0)
            assert_healthy(rig);
        if (i % 70 == 0) {
            rig_pass_ms(rig, 1000); /* old generations go */
            settle(rig);
        }
    }
    (void)handle_all(rig, "");
    for (int64_t until = real_seconds() + GIVE_UP_S;
         in_file(rig, "SELECT count(*) FROM entity_sweeps") > 0;) {
        assert_true(real_seconds() < until);
        rig_pass_ms(rig, 1000);
        settle(rig);
    }
    assert_int_equal(in_file(rig, "SELECT count(*) FROM entity_generations"), 2 * 2);
    assert_healthy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_lost_limit_comes_back_under_its_number),
        rig_test(limits_that_are_all_lost_are_made_again),
        rig_test(a_run_under_the_limit_of_another_key_is_found_and_mended),
        rig_test(a_run_whose_definition_is_lost_too_keeps_what_is_left),
        rig_test(a_lost_timer_is_armed_again),
        rig_test(a_run_that_was_not_counted_ends_after_the_repair),
        rig_test(a_leaked_slot_is_noticed_at_start_up_and_now_and_then),
        rig_test(what_is_wrong_with_an_entity_is_said_with_its_name),
        rig_test(a_lost_timer_of_an_entity_is_armed_again),
        rig_test(a_busy_entity_leaves_nothing_to_mend),
    };
    return cmocka_run_group_tests_name("doctor: lost rows", tests, NULL, NULL);
}
