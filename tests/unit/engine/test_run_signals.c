/* Signals to runs: early ones, the first of several, all of them, and how long their keys are
 * known. */
#include "engine/actions.h"

#include "domain/entity/dedup.h"

#define WAIT(name, signal, more) "{'name':'" name "','type':'wait_signal','signal':" signal more "}"
#define BOTH "['paid','packed']"
#define FOR_ALL ",'wait_for':'all'"

struct sent {
    enum err err;
    int64_t seq;
    bool duplicate;
    int64_t changes; /* rows that it changed */
};

static int64_t changes_now(struct fixture *fixture)
{
    struct call c;
    call_init(&c, fixture, &UC_PROBE);
    must_perform(&c);
    int64_t changes = c.changes;
    call_release(&c);
    return changes;
}

static struct sent send_with(struct fixture *fixture, struct uuid run, const char *name,
                             const char *payload, const char *key)
{
    struct problem p;
    problem_init(&p);
    struct signal_run_input in = {.run_id = run,
                                  .if_match = -1,
                                  .name = str_of(name),
                                  .payload = str_of(payload),
                                  .dedup_key = key != NULL ? str_of(key) : STR_NONE};
    struct json *json = json_value_of_tree(parsed(payload));
    assert_int_equal(dedup_request(in.name, json, &p, &in.request), ERR_OK);
    int64_t before = changes_now(fixture);
    struct call c;
    call_init(&c, fixture, &UC_SIGNAL_RUN);
    c.op.input = &in;
    struct sent sent = {.err = perform(&c)};
    if (sent.err == ERR_OK) {
        json_t *body = parsed_str(buf_str(&c.op.answer.body));
        sent.seq = json_integer_value(json_object_get(body, "seq"));
        sent.duplicate = json_is_true(json_object_get(body, "duplicate"));
        json_decref(body);
    }
    call_release(&c);
    json_free(json);
    problem_release(&p);
    sent.changes = changes_now(fixture) - before;
    return sent;
}

static void send(struct fixture *fixture, struct uuid run, const char *name, const char *payload)
{
    assert_int_equal(send_with(fixture, run, name, payload, NULL).err, ERR_OK);
}

static bool is_duplicate(struct fixture *fixture, struct uuid run, const char *key)
{
    struct sent sent = send_with(fixture, run, "note", "1", key);
    assert_int_equal(sent.err, ERR_OK);
    return sent.duplicate;
}

/* A member of a step's output or error, as JSON text with ' for ". */
static void assert_of_step(struct fixture *fixture, struct uuid id, const char *step,
                           const char *member, const char *path[2], const char *wanted)
{
    json_t *run = show_run(fixture, id);
    const json_t *value = of_step(run, step, member);
    for (size_t i = 0; i < 2 && path[i] != NULL; i++)
        value = json_object_get(value, path[i]);
    json_t *expected = json_of(wanted);
    if (!json_equal(value, expected)) {
        char *is = value != NULL ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
        fail_msg("%s of %s is %s, not %s", member, step, is != NULL ? is : "missing", wanted);
    }
    json_decref(expected);
    json_decref(run);
}

#define assert_output(fixture, id, step, name, wanted)                                      \
    assert_of_step((fixture), (id), (step), "output", (const char *[2]){(name), "payload"}, \
                   (wanted))

/* --- all of several --- */

static void a_step_may_wait_for_one_of_each(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "packed", "{\"box\":7}");
    assert_step_is(fixture, run, "s", "scheduled");
    send(fixture, run, "other", "0");
    send(fixture, run, "paid", "5");
    assert_run_is(fixture, run, "succeeded");
    assert_output(fixture, run, "s", "paid", "5");
    assert_output(fixture, run, "s", "packed", "{'box':7}");
    assert_sound(fixture);
}

static void early_signals_count_and_each_once(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("a", "") "," WAIT("s", BOTH, FOR_ALL) "," WAIT(
                     "t", BOTH, FOR_ALL) "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "paid", "1");
    send(fixture, run, "paid", "2");
    send(fixture, run, "packed", "3");
    work(fixture, "a");
    assert_step_is(fixture, run, "s", "succeeded");
    assert_output(fixture, run, "s", "paid", "1");
    assert_step_is(fixture, run, "t", "scheduled"); /* has the second payment */
    send(fixture, run, "paid", "9");                /* is one too many, and waits */
    assert_step_is(fixture, run, "t", "scheduled");
    send(fixture, run, "packed", "4");
    assert_run_is(fixture, run, "succeeded");
    assert_output(fixture, run, "t", "paid", "2");
    assert_output(fixture, run, "t", "packed", "4");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM run_signals WHERE taken_by IS NULL"),
                     1);
    assert_sound(fixture);
}

static void the_first_of_several_is_enough_unless_said_otherwise(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, "") "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "packed", "3");
    assert_run_is(fixture, run, "succeeded");
    assert_of_step(fixture, run, "s", "output", (const char *[2]){"name", NULL}, "'packed'");
    assert_of_step(fixture, run, "s", "output", (const char *[2]){"payload", NULL}, "3");
}

static void too_late_says_what_had_come_and_a_retry_waits_for_the_rest(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL ",'timeout_ms':1000") "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "paid", "5");
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    assert_run_is(fixture, run, "failed");
    assert_step_is(fixture, run, "s", "timed_out");
    assert_of_step(fixture, run, "s", "error", (const char *[2]){"code", NULL}, "'TIMED_OUT'");
    assert_of_step(fixture, run, "s", "error", (const char *[2]){"received", NULL}, "['paid']");
    assert_of_step(fixture, run, "s", "error", (const char *[2]){"missing", NULL}, "['packed']");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM run_signals WHERE taken_by IS NULL"),
                     0);
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    assert_step_is(fixture, run, "s", "scheduled");
    send(fixture, run, "packed", "6");
    assert_run_is(fixture, run, "succeeded");
    assert_output(fixture, run, "s", "paid", "5");
    assert_output(fixture, run, "s", "packed", "6");
    assert_sound(fixture);
}

static void each_item_of_a_map_gets_its_own_set(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL ",'for_each':[1,2]") "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "paid", "1");
    send(fixture, run, "paid", "2");
    send(fixture, run, "packed", "3");
    assert_run_is(fixture, run, "waiting");
    send(fixture, run, "packed", "4");
    assert_run_is(fixture, run, "succeeded");
    json_t *shown = show_run(fixture, run);
    const json_t *second = json_array_get(of_step(shown, "s", "output"), 1);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(second, "paid"), "payload")), 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(second, "packed"), "payload")), 4);
    json_decref(shown);
    assert_sound(fixture);
}

static void a_paused_run_takes_its_signals_and_goes_on_when_resumed(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "," TASK_STEP("b", "") "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "paid", "1");
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    send(fixture, run, "packed", "2");
    assert_run_is(fixture, run, "paused");
    assert_step_is(fixture, run, "s", "succeeded");
    assert_nothing_to_claim(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    work(fixture, "b");
    assert_run_is(fixture, run, "succeeded");
}

static void a_cancelled_run_keeps_what_had_come_and_takes_no_more(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(fixture, "w");
    assert_int_equal(send_with(fixture, run, "paid", "1", "k").err, ERR_OK);
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    assert_int_equal(send_with(fixture, run, "packed", "1", NULL).err, ERR_RUN_IS_OVER);
    assert_true(send_with(fixture, run, "paid", "1", "k").duplicate);
    assert_sound(fixture);
}

static void a_restart_between_two_signals_loses_neither(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "paid", "1");
    fixture_stop(fixture);
    fixture_start(fixture, 0);
    send(fixture, run, "packed", "2");
    assert_run_is(fixture, run, "succeeded");
    assert_output(fixture, run, "s", "paid", "1");
}

static void signals_that_are_too_large_together_fail_the_step(void **state)
{
    struct fixture *fixture = *state;
    char *large = malloc(JOB_OUTPUT_MAX);
    assert_non_null(large);
    memset(large, 'x', JOB_OUTPUT_MAX);
    large[0] = '"';
    large[JOB_OUTPUT_MAX - 101] = '"';
    large[JOB_OUTPUT_MAX - 100] = '\0';
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    put_workflow(fixture, "early",
                 "{'steps':[" TASK_STEP("a", "") "," WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "paid", large);
    send(fixture, run, "packed",
         "\"some text that is a little more than what fits beside it, but not "
         "much more than that\"");
    assert_run_is(fixture, run, "failed");
    assert_of_step(fixture, run, "s", "error", (const char *[2]){"code", NULL},
                   "'OUTPUT_TOO_LARGE'");
    run = start(fixture, "early");
    send(fixture, run, "paid", large);
    send(fixture, run, "packed", large);
    work(fixture, "a");
    assert_run_is(fixture, run, "failed");
    assert_of_step(fixture, run, "s", "error", (const char *[2]){"code", NULL},
                   "'OUTPUT_TOO_LARGE'");
    free(large);
    assert_sound(fixture);
}

static void why_names_what_is_missing(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "packed", "1");
    struct call c;
    call_init(&c, fixture, &UC_WHY_RUN);
    c.input.run.run_id = run;
    must_perform(&c);
    json_t *why = parsed_str(buf_str(&c.op.answer.body));
    const json_t *reason = json_array_get(json_object_get(why, "waits_for"), 0);
    assert_string_equal(json_string_value(json_object_get(reason, "kind")), "signal");
    json_t *missing = json_of("['paid']");
    json_t *received = json_of("['packed']");
    assert_true(json_equal(json_object_get(reason, "missing"), missing));
    assert_true(json_equal(json_object_get(reason, "received"), received));
    json_decref(missing);
    json_decref(received);
    json_decref(why);
    call_release(&c);
}

/* --- a map that is tried again --- */

static void a_retried_map_of_waits_needs_no_signal_twice(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" WAIT("s", "'go'", ",'for_each':[1,2],'timeout_ms':1000") "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "go", "1");
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    assert_run_is(fixture, run, "failed");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    send(fixture, run, "go", "2");
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

/* --- keys --- */

static void keys_are_known_for_three_days(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(fixture, "w");
    assert_false(is_duplicate(fixture, run, "k"));
    assert_true(is_duplicate(fixture, run, "k"));
    fixture_pass_ms(fixture, INT64_C(3) * 86400 * 1000);
    assert_true(is_duplicate(fixture, run, "k"));
    fixture_pass_ms(fixture, 1);
    assert_false(is_duplicate(fixture, run, "k"));
    assert_sound(fixture);
}

static void a_definition_says_how_long_and_how_many(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'signals':{'dedup_window_s':10,'dedup_max_keys':2},"
                 "'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(fixture, "w");
    assert_false(is_duplicate(fixture, run, "a"));
    assert_false(is_duplicate(fixture, run, "b"));
    assert_false(is_duplicate(fixture, run, "c"));
    assert_true(is_duplicate(fixture, run, "b"));
    assert_false(is_duplicate(fixture, run, "a"));
    fixture_set_wall_ms(fixture, fixture_now_ms(fixture) - 86400 * 1000);
    assert_true(is_duplicate(fixture, run, "a"));
    fixture_set_wall_ms(fixture, fixture_now_ms(fixture) + 86400 * 1000 + 10001);
    assert_false(is_duplicate(fixture, run, "a"));
}

static void a_duplicate_brings_the_first_number_and_changes_no_row(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "note", "0");
    struct sent first = send_with(fixture, run, "note", "{\"a\":1,\"b\":2}", "k");
    assert_int_equal(first.seq, 2);
    struct sent again = send_with(fixture, run, "note", "{ \"b\": 2, \"a\": 1 }", "k");
    assert_true(again.duplicate);
    assert_int_equal(again.seq, 2);
    assert_int_equal(again.changes, 0);
    struct sent other = send_with(fixture, run, "note", "{\"a\":1}", "k");
    assert_int_equal(other.err, ERR_IDEM_KEY_REUSED);
    assert_int_equal(other.changes, 0);
    assert_int_equal(send_with(fixture, run, "other", "{\"a\":1,\"b\":2}", "k").err,
                     ERR_IDEM_KEY_REUSED);
}

/* --- room --- */

static void as_many_wait_as_may_and_one_that_is_awaited_has_room(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(fixture, "w");
    send(fixture, run, "note", "0");
    tamper(fixture,
           "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
           " INSERT INTO run_signals (run, seq, name, payload, at)"
           " SELECT s.run, n.i, 'note', '0', s.at FROM n, run_signals s WHERE s.seq = 1");
    settle(fixture); /* what is folded after a start changes rows too */
    send(fixture, run, "note", "0");
    struct sent full = send_with(fixture, run, "note", "0", "k");
    assert_int_equal(full.err, ERR_INBOX_FULL);
    assert_int_equal(full.changes, 0);
    send(fixture, run, "go", "1");
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

static void a_run_that_is_removed_takes_its_keys_along(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'run_retention_s':1}");
    put_workflow(fixture, "w", "{'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(fixture, "w");
    assert_int_equal(send_with(fixture, run, "go", "1", "k").err, ERR_OK);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM dedup"), 1);
    fixture_pass_ms(fixture, INT64_C(2) * 86400 * 1000);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (in_file(fixture, "SELECT count(*) FROM runs") > 0) {
        assert_true(real_seconds() < until);
        fixture_pass_ms(fixture, 60 * 1000);
        settle(fixture);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM dedup"), 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM dedup_windows"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_step_may_wait_for_one_of_each),
        fixture_test(early_signals_count_and_each_once),
        fixture_test(the_first_of_several_is_enough_unless_said_otherwise),
        fixture_test(too_late_says_what_had_come_and_a_retry_waits_for_the_rest),
        fixture_test(each_item_of_a_map_gets_its_own_set),
        fixture_test(a_paused_run_takes_its_signals_and_goes_on_when_resumed),
        fixture_test(a_cancelled_run_keeps_what_had_come_and_takes_no_more),
        fixture_test(a_restart_between_two_signals_loses_neither),
        fixture_test(signals_that_are_too_large_together_fail_the_step),
        fixture_test(why_names_what_is_missing),
        fixture_test(a_retried_map_of_waits_needs_no_signal_twice),
        fixture_test(keys_are_known_for_three_days),
        fixture_test(a_definition_says_how_long_and_how_many),
        fixture_test(a_duplicate_brings_the_first_number_and_changes_no_row),
        fixture_test(as_many_wait_as_may_and_one_that_is_awaited_has_room),
        fixture_test(a_run_that_is_removed_takes_its_keys_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
