/* Signals to runs: early ones, the first of several, all of them, and how long their keys are
 * known. */
#include "engine/acts.h"

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

static int64_t changes_now(struct rig *rig)
{
    struct call c;
    call_init(&c, rig, &UC_PROBE);
    must_perform(&c);
    int64_t changes = c.changes;
    call_release(&c);
    return changes;
}

static struct sent send_with(struct rig *rig, struct uuid run, const char *name,
                             const char *payload, const char *key)
{
    struct problem p;
    problem_init(&p);
    struct signal_run_input in = {.run_id = run,
                                  .if_match = -1,
                                  .name = str_of(name),
                                  .payload = str_of(payload),
                                  .dedup_key = key != NULL ? str_of(key) : STR_NONE};
    json_t *json = parsed(payload);
    assert_int_equal(dedup_request(in.name, json, &p, &in.request), ERR_OK);
    int64_t before = changes_now(rig);
    struct call c;
    call_init(&c, rig, &UC_SIGNAL_RUN);
    c.op.input = &in;
    struct sent sent = {.err = perform(&c)};
    if (sent.err == ERR_OK) {
        json_t *body = parsed_str(buf_str(&c.op.answer.body));
        sent.seq = json_integer_value(json_object_get(body, "seq"));
        sent.duplicate = json_is_true(json_object_get(body, "duplicate"));
        json_decref(body);
    }
    call_release(&c);
    json_decref(json);
    problem_release(&p);
    sent.changes = changes_now(rig) - before;
    return sent;
}

static void send(struct rig *rig, struct uuid run, const char *name, const char *payload)
{
    assert_int_equal(send_with(rig, run, name, payload, NULL).err, ERR_OK);
}

static bool is_duplicate(struct rig *rig, struct uuid run, const char *key)
{
    struct sent sent = send_with(rig, run, "note", "1", key);
    assert_int_equal(sent.err, ERR_OK);
    return sent.duplicate;
}

/* A member of a step's output or error, as JSON text with ' for ". */
static void assert_of_step(struct rig *rig, struct uuid id, const char *step, const char *member,
                           const char *path[2], const char *wanted)
{
    json_t *run = show_run(rig, id);
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

#define assert_output(rig, id, step, name, wanted) \
    assert_of_step((rig), (id), (step), "output", (const char *[2]){(name), "payload"}, (wanted))

/* --- all of several --- */

static void a_step_may_wait_for_one_of_each(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "packed", "{\"box\":7}");
    assert_step_is(rig, run, "s", "scheduled");
    send(rig, run, "other", "0");
    send(rig, run, "paid", "5");
    assert_run_is(rig, run, "succeeded");
    assert_output(rig, run, "s", "paid", "5");
    assert_output(rig, run, "s", "packed", "{'box':7}");
    assert_sound(rig);
}

static void early_signals_count_and_each_once(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'steps':[" TASK_STEP("a", "") "," WAIT("s", BOTH, FOR_ALL) "," WAIT(
                     "t", BOTH, FOR_ALL) "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "paid", "1");
    send(rig, run, "paid", "2");
    send(rig, run, "packed", "3");
    work(rig, "a");
    assert_step_is(rig, run, "s", "succeeded");
    assert_output(rig, run, "s", "paid", "1");
    assert_step_is(rig, run, "t", "scheduled"); /* has the second payment */
    send(rig, run, "paid", "9");                /* is one too many, and waits */
    assert_step_is(rig, run, "t", "scheduled");
    send(rig, run, "packed", "4");
    assert_run_is(rig, run, "succeeded");
    assert_output(rig, run, "t", "paid", "2");
    assert_output(rig, run, "t", "packed", "4");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM run_signals WHERE taken_by IS NULL"), 1);
    assert_sound(rig);
}

static void the_first_of_several_is_enough_unless_said_otherwise(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, "") "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "packed", "3");
    assert_run_is(rig, run, "succeeded");
    assert_of_step(rig, run, "s", "output", (const char *[2]){"name", NULL}, "'packed'");
    assert_of_step(rig, run, "s", "output", (const char *[2]){"payload", NULL}, "3");
}

static void too_late_says_what_had_come_and_a_retry_waits_for_the_rest(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL ",'timeout_ms':1000") "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "paid", "5");
    rig_pass_ms(rig, 1001);
    settle(rig);
    assert_run_is(rig, run, "failed");
    assert_step_is(rig, run, "s", "timed_out");
    assert_of_step(rig, run, "s", "error", (const char *[2]){"code", NULL}, "'TIMED_OUT'");
    assert_of_step(rig, run, "s", "error", (const char *[2]){"received", NULL}, "['paid']");
    assert_of_step(rig, run, "s", "error", (const char *[2]){"missing", NULL}, "['packed']");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM run_signals WHERE taken_by IS NULL"), 0);
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    assert_step_is(rig, run, "s", "scheduled");
    send(rig, run, "packed", "6");
    assert_run_is(rig, run, "succeeded");
    assert_output(rig, run, "s", "paid", "5");
    assert_output(rig, run, "s", "packed", "6");
    assert_sound(rig);
}

static void each_item_of_a_map_gets_its_own_set(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL ",'for_each':[1,2]") "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "paid", "1");
    send(rig, run, "paid", "2");
    send(rig, run, "packed", "3");
    assert_run_is(rig, run, "waiting");
    send(rig, run, "packed", "4");
    assert_run_is(rig, run, "succeeded");
    json_t *shown = show_run(rig, run);
    const json_t *second = json_array_get(of_step(shown, "s", "output"), 1);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(second, "paid"), "payload")), 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(second, "packed"), "payload")), 4);
    json_decref(shown);
    assert_sound(rig);
}

static void a_paused_run_takes_its_signals_and_goes_on_when_resumed(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "," TASK_STEP("b", "") "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "paid", "1");
    assert_int_equal(control(rig, run, CONTROL_PAUSE), ERR_OK);
    send(rig, run, "packed", "2");
    assert_run_is(rig, run, "paused");
    assert_step_is(rig, run, "s", "succeeded");
    assert_nothing_to_claim(rig);
    assert_int_equal(control(rig, run, CONTROL_RESUME), ERR_OK);
    work(rig, "b");
    assert_run_is(rig, run, "succeeded");
}

static void a_cancelled_run_keeps_what_had_come_and_takes_no_more(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(rig, "w");
    assert_int_equal(send_with(rig, run, "paid", "1", "k").err, ERR_OK);
    assert_int_equal(control(rig, run, CONTROL_CANCEL), ERR_OK);
    assert_int_equal(send_with(rig, run, "packed", "1", NULL).err, ERR_RUN_IS_OVER);
    assert_true(send_with(rig, run, "paid", "1", "k").duplicate);
    assert_sound(rig);
}

static void a_restart_between_two_signals_loses_neither(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "paid", "1");
    rig_stop(rig);
    rig_start(rig, 0);
    send(rig, run, "packed", "2");
    assert_run_is(rig, run, "succeeded");
    assert_output(rig, run, "s", "paid", "1");
}

static void signals_that_are_too_large_together_fail_the_step(void **state)
{
    struct rig *rig = *state;
    char *large = malloc(JOB_OUTPUT_MAX);
    assert_non_null(large);
    memset(large, 'x', JOB_OUTPUT_MAX);
    large[0] = '"';
    large[JOB_OUTPUT_MAX - 101] = '"';
    large[JOB_OUTPUT_MAX - 100] = '\0';
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    put_workflow(rig, "early", "{'steps':[" TASK_STEP("a", "") "," WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "paid", large);
    send(rig, run, "packed",
         "\"some text that is a little more than what fits beside it, but not "
         "much more than that\"");
    assert_run_is(rig, run, "failed");
    assert_of_step(rig, run, "s", "error", (const char *[2]){"code", NULL}, "'OUTPUT_TOO_LARGE'");
    run = start(rig, "early");
    send(rig, run, "paid", large);
    send(rig, run, "packed", large);
    work(rig, "a");
    assert_run_is(rig, run, "failed");
    assert_of_step(rig, run, "s", "error", (const char *[2]){"code", NULL}, "'OUTPUT_TOO_LARGE'");
    free(large);
    assert_sound(rig);
}

static void why_names_what_is_missing(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", BOTH, FOR_ALL) "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "packed", "1");
    struct call c;
    call_init(&c, rig, &UC_WHY_RUN);
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
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'steps':[" WAIT("s", "'go'", ",'for_each':[1,2],'timeout_ms':1000") "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "go", "1");
    rig_pass_ms(rig, 1001);
    settle(rig);
    assert_run_is(rig, run, "failed");
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    send(rig, run, "go", "2");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

/* --- keys --- */

static void keys_are_known_for_three_days(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(rig, "w");
    assert_false(is_duplicate(rig, run, "k"));
    assert_true(is_duplicate(rig, run, "k"));
    rig_pass_ms(rig, INT64_C(3) * 86400 * 1000);
    assert_true(is_duplicate(rig, run, "k"));
    rig_pass_ms(rig, 1);
    assert_false(is_duplicate(rig, run, "k"));
    assert_sound(rig);
}

static void a_definition_says_how_long_and_how_many(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'signals':{'dedup_window_s':10,'dedup_max_keys':2},"
                 "'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(rig, "w");
    assert_false(is_duplicate(rig, run, "a"));
    assert_false(is_duplicate(rig, run, "b"));
    assert_false(is_duplicate(rig, run, "c"));
    assert_true(is_duplicate(rig, run, "b"));
    assert_false(is_duplicate(rig, run, "a"));
    rig_set_wall_ms(rig, rig_now_ms(rig) - 86400 * 1000);
    assert_true(is_duplicate(rig, run, "a"));
    rig_set_wall_ms(rig, rig_now_ms(rig) + 86400 * 1000 + 10001);
    assert_false(is_duplicate(rig, run, "a"));
}

static void a_duplicate_brings_the_first_number_and_changes_no_row(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "note", "0");
    struct sent first = send_with(rig, run, "note", "{\"a\":1,\"b\":2}", "k");
    assert_int_equal(first.seq, 2);
    struct sent again = send_with(rig, run, "note", "{ \"b\": 2, \"a\": 1 }", "k");
    assert_true(again.duplicate);
    assert_int_equal(again.seq, 2);
    assert_int_equal(again.changes, 0);
    struct sent other = send_with(rig, run, "note", "{\"a\":1}", "k");
    assert_int_equal(other.err, ERR_IDEM_KEY_REUSED);
    assert_int_equal(other.changes, 0);
    assert_int_equal(send_with(rig, run, "other", "{\"a\":1,\"b\":2}", "k").err,
                     ERR_IDEM_KEY_REUSED);
}

/* --- room --- */

static void as_many_wait_as_may_and_one_that_is_awaited_has_room(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(rig, "w");
    send(rig, run, "note", "0");
    tamper(rig, "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
                " INSERT INTO run_signals (run, seq, name, payload, at)"
                " SELECT s.run, n.i, 'note', '0', s.at FROM n, run_signals s WHERE s.seq = 1");
    send(rig, run, "note", "0");
    struct sent full = send_with(rig, run, "note", "0", "k");
    assert_int_equal(full.err, ERR_INBOX_FULL);
    assert_int_equal(full.changes, 0);
    send(rig, run, "go", "1");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

static void a_run_that_is_removed_takes_its_keys_along(void **state)
{
    struct rig *rig = *state;
    put_tenant(rig, "{'run_retention_s':1}");
    put_workflow(rig, "w", "{'steps':[" WAIT("s", "'go'", "") "]}");
    struct uuid run = start(rig, "w");
    assert_int_equal(send_with(rig, run, "go", "1", "k").err, ERR_OK);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM dedup"), 1);
    rig_pass_ms(rig, INT64_C(2) * 86400 * 1000);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (in_file(rig, "SELECT count(*) FROM runs") > 0) {
        assert_true(real_seconds() < until);
        rig_pass_ms(rig, 60 * 1000);
        settle(rig);
    }
    assert_int_equal(in_file(rig, "SELECT count(*) FROM dedup"), 0);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM dedup_windows"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_step_may_wait_for_one_of_each),
        rig_test(early_signals_count_and_each_once),
        rig_test(the_first_of_several_is_enough_unless_said_otherwise),
        rig_test(too_late_says_what_had_come_and_a_retry_waits_for_the_rest),
        rig_test(each_item_of_a_map_gets_its_own_set),
        rig_test(a_paused_run_takes_its_signals_and_goes_on_when_resumed),
        rig_test(a_cancelled_run_keeps_what_had_come_and_takes_no_more),
        rig_test(a_restart_between_two_signals_loses_neither),
        rig_test(signals_that_are_too_large_together_fail_the_step),
        rig_test(why_names_what_is_missing),
        rig_test(a_retried_map_of_waits_needs_no_signal_twice),
        rig_test(keys_are_known_for_three_days),
        rig_test(a_definition_says_how_long_and_how_many),
        rig_test(a_duplicate_brings_the_first_number_and_changes_no_row),
        rig_test(as_many_wait_as_may_and_one_that_is_awaited_has_room),
        rig_test(a_run_that_is_removed_takes_its_keys_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
