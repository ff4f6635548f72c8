/* Schedules on the fixture: each time starts one run, whatever the clock, the engine or the last
 * run does. The fixture's clock begins at 22:13:20 UTC: the next full hour is 46 minutes and 40
 * seconds away. */
#include "engine/actions.h"

enum {
    SECOND = 1000,
    MINUTE = 60 * SECOND,
    HOUR = 60 * MINUTE,
    TO_THE_HOUR = 46 * MINUTE + 40 * SECOND
};

#define HOURLY "0 * * * *"
#define AT_ONCE "{'steps':[{'name':'t','type':'transform','output':1}]}"

static void put_schedule(struct fixture *fixture, const char *cron, enum overlap overlap,
                         int64_t catch_up_ms)
{
    struct put_schedule_input in = {.id = STR("s"),
                                    .workflow_id = STR("w"),
                                    .cron = str_of(cron),
                                    .timezone = STR("UTC"),
                                    .overlap = overlap,
                                    .catch_up_ms = catch_up_ms,
                                    .input = STR("{\"n\":1}")};
    struct call c;
    call_init(&c, fixture, &UC_PUT_SCHEDULE);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
}

/* The caller owns what is shown. */
static json_t *show_schedule(struct fixture *fixture)
{
    struct schedule_input in = {STR("s")};
    struct call c;
    call_init(&c, fixture, &UC_GET_SCHEDULE);
    c.op.input = &in;
    must_perform(&c);
    json_t *shown = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    return shown;
}

static void assert_next_is(struct fixture *fixture, const char *time)
{
    json_t *shown = show_schedule(fixture);
    assert_str(json_str(json_array_get(json_object_get(shown, "next_times"), 0)), time);
    json_decref(shown);
}

/* "" for none. */
static void assert_last_error_is(struct fixture *fixture, const char *code)
{
    json_t *shown = show_schedule(fixture);
    const json_t *error = json_object_get(shown, "last_error");
    if (code[0] == '\0')
        assert_true(json_is_null(error));
    else
        assert_str(json_str(json_object_get(error, "code")), code);
    json_decref(shown);
}

static int64_t runs(struct fixture *fixture)
{
    return in_file(fixture, "SELECT count(*) FROM runs");
}

/* Real time passes, in steps that a busy writer would see. */
static void pass(struct fixture *fixture, int64_t ms)
{
    fixture_pass_ms(fixture, ms);
    settle(fixture);
    settle(fixture);
}

static void a_time_starts_one_run_when_it_comes(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    put_schedule(fixture, HOURLY, OVERLAP_SKIP, 0);
    assert_next_is(fixture, "2023-11-14T23:00:00.000Z");
    pass(fixture, TO_THE_HOUR - 1);
    assert_int_equal(runs(fixture), 0);
    pass(fixture, 1);
    assert_int_equal(runs(fixture), 1);
    assert_next_is(fixture, "2023-11-15T00:00:00.000Z");
    pass(fixture, HOUR - 1);
    assert_int_equal(runs(fixture), 1);
    pass(fixture, 1);
    assert_int_equal(runs(fixture), 2);
    assert_int_equal(in_file(fixture,
                             "SELECT count(*) FROM runs WHERE input = '{\"n\":1}' AND"
                             " labels = '{\"schedule\":\"s\"}' AND created_by = 'schedule'"),
                     2);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency WHERE key ="
                                      " 'schedule:s:2023-11-14T23:00:00.000Z'"),
                     1);
    json_t *shown = show_schedule(fixture);
    assert_str(json_str(json_object_get(shown, "last_time")), "2023-11-15T00:00:00.000Z");
    assert_true(json_is_string(json_object_get(shown, "last_run_id")));
    json_decref(shown);
    assert_last_error_is(fixture, "");
}

static void a_time_is_of_its_zone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    struct put_schedule_input in = {.id = STR("s"),
                                    .workflow_id = STR("w"),
                                    .cron = STR("0 9 * * *"),
                                    .timezone = STR("Europe/Berlin"),
                                    .input = STR("null")};
    struct call c;
    call_init(&c, fixture, &UC_PUT_SCHEDULE);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
    assert_next_is(fixture, "2023-11-15T08:00:00.000Z");
}

/* --- the server was away --- */

static void times_that_were_missed_are_let_go_and_the_next_one_comes(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    for (enum overlap o = 0; o < OVERLAP_COUNT; o++) {
        put_schedule(fixture, HOURLY, o, 0);
        int64_t before = runs(fixture);
        fixture_stop(fixture);
        fixture_pass_ms(fixture, 5 * HOUR);
        fixture_start(fixture, 0);
        settle(fixture);
        settle(fixture);
        assert_int_equal(runs(fixture), before);
        assert_last_error_is(fixture, "MISSED");
        pass(fixture, TO_THE_HOUR);
        assert_int_equal(runs(fixture), before + 1);
        assert_last_error_is(fixture, "");
        pass(fixture, HOUR - TO_THE_HOUR);
    }
}

/* The times in between are not walked through one by one. */
static void a_month_away_is_let_go_at_once(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    put_schedule(fixture, "* * * * *", OVERLAP_SKIP, 0);
    fixture_stop(fixture);
    fixture_pass_ms(fixture, INT64_C(30) * 24 * HOUR);
    fixture_start(fixture, 0);
    settle(fixture);
    assert_next_is(fixture, "2023-12-14T22:14:00.000Z");
    assert_int_equal(runs(fixture), 0);
}

static void times_within_the_bound_are_caught_up_with_once_each(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    put_schedule(fixture, HOURLY, OVERLAP_ALLOW, 3 * HOUR);
    fixture_stop(fixture);
    fixture_pass_ms(fixture,
                    TO_THE_HOUR + 9 * HOUR + 30 * MINUTE); /* half past eight in the morning */
    fixture_start(fixture, 0);
    settle(fixture);
    settle(fixture);
    assert_int_equal(runs(fixture), 3); /* six, seven and eight */
    static const char *const KEYS[] = {"06:00", "07:00", "08:00"};
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++) {
        char sql[128];
        (void)snprintf(sql, sizeof(sql),
                       "SELECT count(*) FROM idempotency WHERE key ="
                       " 'schedule:s:2023-11-15T%s:00.000Z'",
                       KEYS[i]);
        assert_int_equal(in_file(fixture, sql), 1);
    }
    assert_next_is(fixture, "2023-11-15T09:00:00.000Z");
}

static void a_server_that_is_a_little_late_has_missed_nothing(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    put_schedule(fixture, HOURLY, OVERLAP_SKIP, 0);
    fixture_stop(fixture);
    fixture_pass_ms(fixture, TO_THE_HOUR + SCHEDULE_LATE_MS);
    fixture_start(fixture, 0);
    settle(fixture);
    assert_int_equal(runs(fixture), 1);
}

/* --- once, whatever happens --- */

static void a_clock_that_jumps_back_starts_nothing_again(void **state)
{
    struct fixture *fixture = *state;
    int64_t begun = fixture_now_ms(fixture);
    put_workflow(fixture, "w", AT_ONCE);
    put_schedule(fixture, HOURLY, OVERLAP_ALLOW, 24 * HOUR);
    pass(fixture, TO_THE_HOUR);
    assert_int_equal(runs(fixture), 1);
    for (int i = 0; i < 3; i++) {
        fixture_set_wall_ms(fixture, begun);
        settle(fixture);
        fixture_stop(fixture);
        fixture_start(fixture, 0);
        settle(fixture);
        fixture_set_wall_ms(fixture, begun + TO_THE_HOUR);
        settle(fixture);
        assert_int_equal(runs(fixture), 1);
    }
    fixture_set_wall_ms(fixture, begun + TO_THE_HOUR + HOUR);
    settle(fixture);
    assert_int_equal(runs(fixture), 2);
}

/* As after a restored backup of the schedule, or a change that was lost: the key knows better. */
static void the_same_time_again_is_the_same_run(void **state)
{
    struct fixture *fixture = *state;
    int64_t begun = fixture_now_ms(fixture);
    put_workflow(fixture, "w", AT_ONCE);
    put_schedule(fixture, HOURLY, OVERLAP_ALLOW, 24 * HOUR);
    pass(fixture, TO_THE_HOUR);
    assert_int_equal(runs(fixture), 1);
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "UPDATE schedules SET next_at = %lld, check_at = %lld",
                   (long long)(begun + TO_THE_HOUR), (long long)(begun + TO_THE_HOUR));
    tamper(fixture, sql);
    settle(fixture);
    settle(fixture);
    assert_int_equal(runs(fixture), 1);
    assert_next_is(fixture, "2023-11-15T00:00:00.000Z");
    assert_last_error_is(fixture, "");
    json_t *shown = show_schedule(fixture);
    struct uuid last;
    assert_true(uuid_parse(json_str(json_object_get(shown, "last_run_id")), &last));
    assert_run_is(fixture, last, "succeeded");
    json_decref(shown);
}

static void changing_the_input_does_not_lose_or_repeat_a_time(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    put_schedule(fixture, HOURLY, OVERLAP_SKIP, 0);
    pass(fixture, TO_THE_HOUR);
    put_schedule(fixture, HOURLY, OVERLAP_ALLOW, HOUR);
    settle(fixture);
    assert_int_equal(runs(fixture), 1);
    assert_next_is(fixture, "2023-11-15T00:00:00.000Z");
    pass(fixture, HOUR);
    assert_int_equal(runs(fixture), 2);
}

/* --- the last run is still active --- */

static void skip_leaves_times_out_while_the_last_run_is_active(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_schedule(fixture, HOURLY, OVERLAP_SKIP, 0);
    pass(fixture, TO_THE_HOUR);
    pass(fixture, HOUR);
    pass(fixture, HOUR);
    assert_int_equal(runs(fixture), 1);
    assert_last_error_is(fixture, "OVERLAP");
    work(fixture, "a");
    settle(fixture);
    assert_int_equal(runs(fixture), 1); /* what was left out does not come later */
    pass(fixture, HOUR);
    assert_int_equal(runs(fixture), 2);
}

static void queue_starts_them_one_after_the_other(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_schedule(fixture, HOURLY, OVERLAP_QUEUE, 0);
    pass(fixture, TO_THE_HOUR);
    pass(fixture, HOUR);
    pass(fixture, HOUR);
    assert_int_equal(runs(fixture), 1);
    for (int64_t i = 1; i <= 3; i++) {
        assert_int_equal(runs(fixture), i);
        work(fixture, "a");
        pass(fixture, SECOND);
    }
    assert_int_equal(runs(fixture), 3);
    assert_nothing_to_claim(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(DISTINCT key) FROM idempotency"), 3);
    assert_next_is(fixture, "2023-11-15T02:00:00.000Z");
}

static void allow_starts_them_side_by_side(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_schedule(fixture, HOURLY, OVERLAP_ALLOW, 0);
    pass(fixture, TO_THE_HOUR);
    pass(fixture, HOUR);
    pass(fixture, HOUR);
    assert_int_equal(runs(fixture), 3);
}

/* --- when it cannot start --- */

static void a_time_that_meets_a_limit_is_tried_again_until_it_is_too_late(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "busy", ONE_TASK);
    put_schedule(fixture, HOURLY, OVERLAP_SKIP, 0);
    struct uuid other = start(fixture, "busy");
    pass(fixture, TO_THE_HOUR);
    assert_last_error_is(fixture, "MAX_CONCURRENT_RUNS");
    assert_int_equal(runs(fixture), 1);
    assert_int_equal(control(fixture, other, CONTROL_CANCEL), ERR_OK);
    pass(fixture, SECOND);
    assert_int_equal(runs(fixture), 2);
    assert_last_error_is(fixture, "");
    other = start_later(fixture, "busy", fixture_now_ms(fixture) + 1);
    work(fixture, "a");
    pass(fixture, 1);
    assert_run_is(fixture, other, "running");
    pass(fixture, HOUR - SECOND - 1);
    assert_last_error_is(fixture, "MAX_CONCURRENT_RUNS");
    pass(fixture, SCHEDULE_LATE_MS + SECOND);
    assert_last_error_is(fixture, "MISSED");
    assert_next_is(fixture, "2023-11-15T01:00:00.000Z");
    assert_int_equal(runs(fixture), 3);
}

static void a_workflow_that_is_gone_costs_its_time_and_no_other(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    put_schedule(fixture, HOURLY, OVERLAP_SKIP, 0);
    struct workflow_input in = {STR("w"), -1};
    struct call c;
    call_init(&c, fixture, &UC_ARCHIVE_WORKFLOW);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
    pass(fixture, TO_THE_HOUR);
    assert_last_error_is(fixture, "WORKFLOW_NOT_FOUND");
    assert_next_is(fixture, "2023-11-15T00:00:00.000Z");
    assert_int_equal(runs(fixture), 0);
}

static void a_paused_or_deleted_schedule_starts_nothing(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    struct put_schedule_input paused = {.id = STR("s"),
                                        .workflow_id = STR("w"),
                                        .cron = STR(HOURLY),
                                        .timezone = STR("UTC"),
                                        .input = STR("null"),
                                        .paused = true};
    struct call c;
    call_init(&c, fixture, &UC_PUT_SCHEDULE);
    c.op.input = &paused;
    must_perform(&c);
    call_release(&c);
    pass(fixture, 3 * HOUR);
    assert_int_equal(runs(fixture), 0);
    put_schedule(fixture, HOURLY, OVERLAP_SKIP, 24 * HOUR);
    settle(fixture);
    assert_int_equal(runs(fixture), 0); /* its past while paused is not caught up with */
    struct schedule_input in = {STR("s")};
    call_init(&c, fixture, &UC_DELETE_SCHEDULE);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
    pass(fixture, 3 * HOUR);
    assert_int_equal(runs(fixture), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_time_starts_one_run_when_it_comes),
        fixture_test(a_time_is_of_its_zone),
        fixture_test(times_that_were_missed_are_let_go_and_the_next_one_comes),
        fixture_test(a_month_away_is_let_go_at_once),
        fixture_test(times_within_the_bound_are_caught_up_with_once_each),
        fixture_test(a_server_that_is_a_little_late_has_missed_nothing),
        fixture_test(a_clock_that_jumps_back_starts_nothing_again),
        fixture_test(the_same_time_again_is_the_same_run),
        fixture_test(changing_the_input_does_not_lose_or_repeat_a_time),
        fixture_test(skip_leaves_times_out_while_the_last_run_is_active),
        fixture_test(queue_starts_them_one_after_the_other),
        fixture_test(allow_starts_them_side_by_side),
        fixture_test(a_time_that_meets_a_limit_is_tried_again_until_it_is_too_late),
        fixture_test(a_workflow_that_is_gone_costs_its_time_and_no_other),
        fixture_test(a_paused_or_deleted_schedule_starts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
