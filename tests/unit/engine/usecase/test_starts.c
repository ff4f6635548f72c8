/* What comes of a start: admitted, delayed, queued, instead of another, as another, or refused. */
#include "engine/usecase/asking.h"

struct started {
    enum err err;
    struct uuid id;
    const char *outcome; /* a constant */
    int retry_after_s;
};

/* `who` is the input's member of that name. */
static struct started try_start(struct fixture *fixture, const char *workflow, const char *who,
                                enum at_limit at_limit, int64_t start_at)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "{\"who\":\"%s\"}", who);
    struct call c;
    start_init(&c, fixture, workflow);
    struct json *input = json_value_of_tree(parsed(text));
    c.input.start.input = input;
    c.input.start.input_text = str_of(text);
    c.input.start.at_limit = at_limit;
    c.input.start.start_at = start_at;
    struct started s = {.err = perform(&c)};
    s.id = c.op.answer.run_id;
    s.outcome = s.err == ERR_OK ? c.op.answer.outcome : "";
    s.retry_after_s = c.op.problem.retry_after_s;
    call_release(&c);
    json_free(input);
    return s;
}

static struct uuid must_get(struct fixture *fixture, const char *workflow, const char *who,
                            enum at_limit at_limit, const char *outcome)
{
    struct started s = try_start(fixture, workflow, who, at_limit, -1);
    assert_int_equal(s.err, ERR_OK);
    assert_string_equal(s.outcome, outcome);
    return s.id;
}

#define LIMITED(limits) "{'concurrency':[" limits "],'steps':[" TASK_STEP("a", "") "]}"
#define BY_WHO "{'key':'input.who','limit':1}"

static void finish_all(struct fixture *fixture)
{
    struct held h;
    while (claim_one(fixture, 60000, &h))
        assert_int_equal(complete(fixture, &h), ERR_OK);
}

/* --- rates --- */

static void a_start_beyond_the_rate_is_refused_whatever_would_come_of_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'rate_limit':{'per_second':1,'burst':1},'max_concurrent_runs':1}");
    struct uuid first = must_get(fixture, "w", "", AT_LIMIT_REJECT, "admitted");
    int64_t later = fixture_now_ms(fixture) + 5000;
    struct started refused[] = {
        try_start(fixture, "w", "", AT_LIMIT_QUEUE, -1),
        try_start(fixture, "w", "", AT_LIMIT_QUEUE, later),
        try_start(fixture, "w", "", AT_LIMIT_CANCEL_OLDEST, -1),
    };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_int_equal(refused[i].err, ERR_RATE_LIMITED);
        assert_int_equal(refused[i].retry_after_s, 1);
    }
    assert_run_is(fixture, first, "running");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    fixture_pass_ms(fixture, 1000);
    (void)must_get(fixture, "w", "", AT_LIMIT_CANCEL_OLDEST, "replaced_oldest");
    assert_run_is(fixture, first, "cancelled");
    finish_all(fixture);
    assert_int_equal(try_start(fixture, "w", "", AT_LIMIT_REJECT, -1).err, ERR_RATE_LIMITED);
    assert_sound(fixture);
}

/* --- instead of another --- */

static void the_oldest_under_the_narrowest_limit_makes_room(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", LIMITED("{'limit':3}," BY_WHO));
    put_tenant(fixture, "{'max_concurrent_runs':3}");
    struct uuid a = must_get(fixture, "w", "a", AT_LIMIT_COUNT, "admitted");
    struct uuid b = must_get(fixture, "w", "b", AT_LIMIT_COUNT, "admitted");
    struct uuid b2 = must_get(fixture, "w", "b", AT_LIMIT_CANCEL_OLDEST, "replaced_oldest");
    assert_run_is(fixture, a, "running"); /* though it is older */
    assert_run_is(fixture, b, "cancelled");
    struct uuid c = must_get(fixture, "w", "c", AT_LIMIT_COUNT, "admitted");
    struct uuid d = must_get(fixture, "w", "d", AT_LIMIT_CANCEL_OLDEST, "replaced_oldest");
    assert_run_is(fixture, a, "cancelled");
    assert_run_is(fixture, b2, "running");
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    (void)must_get(fixture, "w", "e", AT_LIMIT_CANCEL_OLDEST, "replaced_oldest");
    assert_run_is(fixture, b2, "cancelled");
    assert_run_is(fixture, c, "cancelled");
    assert_run_is(fixture, d, "cancelled");
    assert_sound(fixture);
}

/* --- as another --- */

static void a_start_becomes_the_newest_run_of_its_workflow_under_the_limit(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "other", ONE_TASK);
    put_workflow(fixture, "keyed", LIMITED(BY_WHO));
    struct uuid keyed = must_get(fixture, "keyed", "a", AT_LIMIT_COUNT, "admitted");
    struct uuid same = must_get(fixture, "keyed", "a", AT_LIMIT_COALESCE, "coalesced");
    assert_true(uuid_eq(keyed, same));
    put_tenant(fixture, "{'max_concurrent_runs':2}");
    struct uuid run = must_get(fixture, "w", "", AT_LIMIT_COUNT, "admitted");
    same = must_get(fixture, "w", "", AT_LIMIT_COALESCE, "coalesced");
    assert_true(uuid_eq(run, same));
    assert_int_equal(try_start(fixture, "other", "", AT_LIMIT_COALESCE, -1).err,
                     ERR_MAX_CONCURRENT_RUNS);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 2);
    assert_sound(fixture);
}

/* --- later --- */

static void a_delayed_run_takes_its_slot_waits_for_one_or_fails(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", LIMITED("{'limit':1}"));
    put_tenant(fixture, "{'max_queued_runs':1}");
    int64_t at = fixture_now_ms(fixture) + 1000;
    struct uuid ids[3];
    for (int i = 0; i < 3; i++) {
        struct started s = try_start(fixture, "w", "", AT_LIMIT_COUNT, at + i);
        assert_string_equal(s.outcome, "delayed");
        ids[i] = s.id;
    }
    fixture_pass_ms(fixture, 1000);
    for (int i = 0; i < 3; i++) {
        settle(fixture);
        fixture_pass_ms(fixture, 1);
    }
    settle(fixture);
    assert_run_is(fixture, ids[0], "running");
    assert_run_is(fixture, ids[1], "queued");
    assert_run_is(fixture, ids[2], "failed");
    assert_error_code(fixture, ids[2], "QUEUE_FULL");
    finish_all(fixture);
    assert_run_is(fixture, ids[1], "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* The limit that its own version had is gone with the newest. */
static void a_delayed_run_is_under_the_limits_of_the_newest_version(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", LIMITED(BY_WHO));
    int64_t at = fixture_now_ms(fixture) + 1000;
    struct uuid first = try_start(fixture, "w", "a", AT_LIMIT_COUNT, at).id;
    struct uuid second = try_start(fixture, "w", "a", AT_LIMIT_COUNT, at).id;
    struct uuid third = try_start(fixture, "w", "a", AT_LIMIT_COUNT, at + 1).id;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':2}");
    fixture_pass_ms(fixture, 1001);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_run_is(fixture, first, "running");
    assert_run_is(fixture, second, "running");
    assert_run_is(fixture, third, "queued");
    finish_all(fixture);
    assert_run_is(fixture, third, "succeeded");
    assert_sound(fixture);
}

static void a_delayed_run_that_is_damaged_holds_up_nobody_and_begins_once_it_is_mended(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", LIMITED(BY_WHO));
    int64_t at = fixture_now_ms(fixture) + 1000;
    struct uuid damaged = try_start(fixture, "w", "a", AT_LIMIT_COUNT, at).id;
    struct uuid whole = try_start(fixture, "w", "b", AT_LIMIT_COUNT, at).id;
    tamper(fixture, "UPDATE runs SET input = '{' WHERE input LIKE '%a%'");
    fixture_pass_ms(fixture, 1001);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_run_is(fixture, whole, "running");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'queued'"), 1);
    assert_int_equal(timers(fixture), 1); /* later */
    tamper(fixture, "UPDATE runs SET input = '{\"who\":\"a\"}' WHERE input = '{'");
    fixture_pass_ms(fixture, 3600 * 1000);
    settle(fixture);
    assert_run_is(fixture, damaged, "running");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* --- queued --- */

static void freed_slots_go_to_those_that_wait_for_them(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", LIMITED("{'limit':2}," BY_WHO));
    (void)must_get(fixture, "w", "a", AT_LIMIT_QUEUE, "admitted");
    (void)must_get(fixture, "w", "b", AT_LIMIT_QUEUE, "admitted");
    (void)must_get(fixture, "w", "a", AT_LIMIT_QUEUE, "queued");
    (void)must_get(fixture, "w", "b", AT_LIMIT_QUEUE, "queued");
    (void)must_get(fixture, "w", "c", AT_LIMIT_QUEUE, "queued");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'queued'"), 2);
    put_workflow(fixture, "w", LIMITED("{'limit':5}," BY_WHO)); /* room for one more */
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'queued'"), 1);
    finish_all(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'succeeded'"), 5);
    assert_sound(fixture);
}

static void a_raised_limit_of_the_tenant_lets_queued_runs_begin(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':1,'max_queued_runs':2}");
    (void)must_get(fixture, "w", "", AT_LIMIT_QUEUE, "admitted");
    struct uuid second = must_get(fixture, "w", "", AT_LIMIT_QUEUE, "queued");
    struct uuid third = must_get(fixture, "w", "", AT_LIMIT_QUEUE, "queued");
    assert_int_equal(try_start(fixture, "w", "", AT_LIMIT_QUEUE, -1).err, ERR_QUEUE_FULL);
    put_tenant(fixture, "{'max_concurrent_runs':2}");
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_run_is(fixture, second, "running");
    assert_int_equal(control(fixture, third, CONTROL_CANCEL), ERR_OK);
    finish_all(fixture);
    assert_run_is(fixture, second, "succeeded");
    assert_sound(fixture);
}

/* --- refused --- */

static void a_refusal_names_the_limit_in_short(void **state)
{
    struct fixture *fixture = *state;
    char key[100];
    char definition[256];
    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    static const char *const PATHS[] = {"who", NULL};
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        (void)snprintf(definition, sizeof(definition),
                       "{'concurrency':[{'key':'input.%s','limit':1}],"
                       "'steps':[{'name':'a','type':'task','handler':'h'}]}",
                       PATHS[i] != NULL ? PATHS[i] : key);
        put_workflow(fixture, "w", definition);
        (void)must_get(fixture, "w", key, AT_LIMIT_COUNT, "admitted");
        assert_int_equal(try_start(fixture, "w", key, AT_LIMIT_REJECT, -1).err,
                         ERR_MAX_CONCURRENT_RUNS);
    }
    put_workflow(fixture, "w", LIMITED("{'limit':1}"));
    (void)must_get(fixture, "w", "x", AT_LIMIT_COUNT, "admitted");
    assert_int_equal(try_start(fixture, "w", "x", AT_LIMIT_REJECT, -1).err,
                     ERR_MAX_CONCURRENT_RUNS);
}

static void what_this_version_cannot_run_is_kept_with_a_warning_and_not_started(void **state)
{
    struct fixture *fixture = *state;
    static const char COMPUTED[] =
        "{\"concurrency\":[{\"key\":\"#input\",\"limit\":1}],"
        "\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\"}]}";
    struct validate_workflow_input check = {STR("w"), str_of(COMPUTED)};
    json_t *checked = answer_of(fixture, &UC_VALIDATE_WORKFLOW, &check);
    assert_true(json_is_true(json_object_get(checked, "valid")));
    const json_t *warning = json_array_get(json_object_get(checked, "warnings"), 0);
    assert_string_equal(json_string_value(json_object_get(warning, "path")), "/concurrency");
    json_decref(checked);
    put_workflow(fixture, "w", COMPUTED);
    assert_int_equal(try_start(fixture, "w", "x", AT_LIMIT_COUNT, -1).err,
                     ERR_DEFINITION_UNSUPPORTED);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 0);
}

/* Without a read afterwards: one round is enough. */
static void a_start_that_waits_is_answered_by_the_commit_that_ends_its_run(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call begun;
    start_init(&begun, fixture, "w");
    begun.op.wait_ms = 3600000;
    submit(&begun);
    settle(fixture);
    assert_false(begun.done);
    work(fixture, "a");
    engine_poll(fixture->engine, true);
    assert_true(begun.done);
    assert_true(begun.op.answer.run_over);
    json_t *answer = parsed_str(buf_str(&begun.op.answer.body));
    const json_t *shown = json_object_get(answer, "run");
    json_t *run = show_run(fixture, begun.op.answer.run_id);
    assert_string_equal(json_string_value(json_object_get(shown, "status")), "succeeded");
    assert_int_equal(begun.op.answer.run_version,
                     json_integer_value(json_object_get(run, "version")));
    const char *name;
    json_t *value;
    json_object_foreach (json_object_get(answer, "run"), name, value)
        assert_true(json_equal(value, json_object_get(run, name)));
    json_decref(run);
    json_decref(answer);
    call_release(&begun);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_start_beyond_the_rate_is_refused_whatever_would_come_of_it),
        fixture_test(the_oldest_under_the_narrowest_limit_makes_room),
        fixture_test(a_start_becomes_the_newest_run_of_its_workflow_under_the_limit),
        fixture_test(a_delayed_run_takes_its_slot_waits_for_one_or_fails),
        fixture_test(a_delayed_run_is_under_the_limits_of_the_newest_version),
        fixture_test(a_delayed_run_that_is_damaged_holds_up_nobody_and_begins_once_it_is_mended),
        fixture_test(freed_slots_go_to_those_that_wait_for_them),
        fixture_test(a_raised_limit_of_the_tenant_lets_queued_runs_begin),
        fixture_test(a_refusal_names_the_limit_in_short),
        fixture_test(what_this_version_cannot_run_is_kept_with_a_warning_and_not_started),
        fixture_test(a_start_that_waits_is_answered_by_the_commit_that_ends_its_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
