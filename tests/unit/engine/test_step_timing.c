/* Steps under a clock that the test moves: times that are absolute, deadlines, stale timers,
 * delayed starts, children, and a repair of all that waits. */
#include "engine/actions.h"

/* The fixture's clock begins at 2023-11-14T22:13:20Z. */
#define IN_AN_HOUR "2023-11-14T23:13:20Z"
enum { HOUR_MS = 3600 * 1000 };

/* --- clocks --- */

static void a_sleep_until_a_time_ends_then_however_the_clock_gets_there(void **state)
{
    struct fixture *fixture = *state;
    int64_t begun = fixture_now_ms(fixture);
    put_workflow(fixture, "w", "{'steps':[{'name':'s','type':'sleep','until':'" IN_AN_HOUR "'}]}");
    struct uuid run = start(fixture, "w");
    fixture_set_wall_ms(fixture, begun - 24 * INT64_C(3600000)); /* a day back */
    settle(fixture);
    fixture_pass_ms(fixture, 2 * HOUR_MS); /* two hours of real time */
    settle(fixture);
    assert_run_is(fixture, run, "waiting");
    fixture_set_wall_ms(fixture, begun + HOUR_MS - 1);
    settle(fixture);
    assert_run_is(fixture, run, "waiting");
    fixture_set_wall_ms(fixture, begun + HOUR_MS);
    settle(fixture);
    assert_run_is(fixture, run, "succeeded");
    struct uuid late = start(fixture, "w"); /* its time is past: it does not wait */
    settle(fixture);
    assert_run_is(fixture, late, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_sleep_that_has_ended_does_not_end_again_when_the_clock_goes_back(void **state)
{
    struct fixture *fixture = *state;
    int64_t begun = fixture_now_ms(fixture);
    put_workflow(
        fixture, "w",
        "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}," TASK_STEP("a", "") "]}");
    struct uuid run = start(fixture, "w");
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_run_is(fixture, run, "running");
    for (int i = 0; i < 3; i++) {
        fixture_set_wall_ms(fixture, begun - HOUR_MS);
        settle(fixture);
        fixture_set_wall_ms(fixture, begun + HOUR_MS);
        settle(fixture);
    }
    work(fixture, "a");
    assert_nothing_to_claim(fixture);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events WHERE type = 'job.succeeded'"),
                     2);
}

/* The clock was wrong and is set right: the next sign of life counts from the new time. */
static void a_lease_follows_a_clock_that_is_set_back_with_the_next_heartbeat(void **state)
{
    struct fixture *fixture = *state;
    int64_t begun = fixture_now_ms(fixture);
    put_workflow(fixture, "w", ONE_TASK);
    (void)start(fixture, "w");
    struct held h;
    assert_true(claim_one(fixture, 1000, &h));
    fixture_set_wall_ms(fixture, begun - HOUR_MS);
    fixture_pass_ms(fixture, 500);
    assert_int_equal(heartbeat(fixture, &h), ERR_OK);
    assert_int_equal(timers(fixture), 1);
    fixture_pass_ms(fixture, 999);
    settle(fixture);
    assert_nothing_to_claim(fixture);
    fixture_pass_ms(fixture, 1);
    settle(fixture);
    struct held next;
    must_claim(fixture, "a", &next);
    assert_int_equal(complete(fixture, &h), ERR_LEASE_LOST);
    assert_int_equal(complete(fixture, &next), ERR_OK);
    assert_sound(fixture);
}

static void a_clock_that_jumps_forward_ends_leases_and_no_result_counts_twice(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    struct held first;
    assert_true(claim_one(fixture, 30000, &first));
    fixture_set_wall_ms(fixture, fixture_now_ms(fixture) + HOUR_MS);
    settle(fixture);
    struct held second;
    must_claim(fixture, "a", &second);
    assert_int_equal(second.attempt, 2);
    assert_int_equal(complete(fixture, &second), ERR_OK);
    assert_int_equal(complete(fixture, &first), ERR_LEASE_LOST);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events WHERE type = 'job.succeeded'"),
                     1);
    assert_int_equal(timers(fixture), 0);
}

/* --- time-outs --- */

#define TIMED                                                                                      \
    "{'timeout_s':5,'steps':[" TASK_STEP("a", ",'compensate':{'handler':'undo.a'}") "," TASK_STEP( \
        "b", "") "]}"

static void a_run_out_of_time_is_undone_and_its_late_worker_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    put_workflow(fixture, "w", TIMED);
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    struct held late;
    must_claim(fixture, "b", &late);
    fixture_pass_ms(fixture, 4999);
    settle(fixture);
    assert_run_is(fixture, run, "running");
    assert_int_equal(heartbeat(fixture, &late), ERR_OK);
    fixture_pass_ms(fixture, 1);
    settle(fixture);
    assert_step_is(fixture, run, "b", "cancelled");
    assert_int_equal(complete(fixture, &late), ERR_LEASE_LOST);
    struct held undo;
    must_claim(fixture, "a", &undo);
    assert_true(undo.compensates);
    assert_string_equal(undo.handler, "undo.a");
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters"),
                     1); /* until it is undone */
    assert_int_equal(complete(fixture, &undo), ERR_OK);
    assert_run_is(fixture, run, "timed_out");
    assert_error_code(fixture, run, "RUN_TIMED_OUT");
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters"), 0);
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_deadline_is_a_time_and_not_a_countdown(void **state)
{
    struct fixture *fixture = *state;
    int64_t begun = fixture_now_ms(fixture);
    put_workflow(fixture, "w", TIMED);
    struct uuid run = start(fixture, "w");
    fixture_set_wall_ms(fixture, begun - HOUR_MS);
    fixture_pass_ms(fixture, 60000);
    settle(fixture);
    assert_run_is(fixture, run, "running");
    fixture_set_wall_ms(fixture, begun + 5000);
    settle(fixture);
    assert_run_is(fixture, run, "timed_out");
    fixture_set_wall_ms(fixture, begun);
    settle(fixture);
    fixture_set_wall_ms(fixture, begun + HOUR_MS);
    settle(fixture);
    assert_run_is(fixture, run, "timed_out");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events WHERE type = 'run.timed_out'"),
                     1);
}

static void a_run_that_ends_in_time_leaves_no_deadline(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TIMED);
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    work(fixture, "b");
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(timers(fixture), 0);
}

static void a_retried_run_gets_its_whole_time_again(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TIMED);
    struct uuid run = start(fixture, "w");
    fixture_pass_ms(fixture, 3000);
    work_badly(fixture, "a");
    assert_run_is(fixture, run, "failed");
    assert_int_equal(timers(fixture), 0);
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    fixture_pass_ms(fixture, 4999);
    settle(fixture);
    assert_run_is(fixture, run, "running");
    fixture_pass_ms(fixture, 1);
    settle(fixture);
    assert_run_is(fixture, run, "timed_out");
    assert_int_equal(timers(fixture), 0);
}

static void an_attempt_out_of_time_fails_or_is_made_again_as_the_policy_says(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("a", ",'timeout_ms':1000,'retry':{'max_attempts':2,"
                                             "'backoff_ms':100,'jitter':'none'}") "]}");
    struct uuid run = start(fixture, "w");
    struct held h;
    must_claim(fixture, "a", &h);
    fixture_pass_ms(fixture, 900);
    assert_int_equal(heartbeat(fixture, &h), ERR_OK); /* which does not buy time */
    fixture_pass_ms(fixture, 100);
    settle(fixture);
    assert_int_equal(complete(fixture, &h), ERR_LEASE_LOST);
    assert_nothing_to_claim(fixture);
    fixture_pass_ms(fixture, 100);
    settle(fixture);
    must_claim(fixture, "a", &h);
    assert_int_equal(h.attempt, 2);
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_run_is(fixture, run, "failed");
    assert_step_is(fixture, run, "a", "timed_out");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* --- many timers --- */

/* Due within one second, in no order of their making, while other runs start. */
static void many_timers_fire_once_each_in_order_while_starts_go_on(void **state)
{
    enum { SLEEPERS = 5000, TOGETHER = 250, OTHERS = 20 };
    struct fixture *fixture = *state;
    put_workflow(fixture, "nap", "{'steps':[{'name':'s','type':'sleep','duration_ms':10000}]}");
    put_workflow(fixture, "other", "{'steps':[{'name':'t','type':'transform','output':1}]}");
    static struct call calls[TOGETHER];
    int64_t begun = fixture_now_ms(fixture);
    for (int batch = 0; batch < SLEEPERS / TOGETHER; batch++) {
        fixture_set_wall_ms(fixture, begun + batch * 389 % 1000);
        for (size_t i = 0; i < TOGETHER; i++) {
            start_init(&calls[i], fixture, "nap");
            submit(&calls[i]);
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            wait_done(&calls[i]);
            assert_int_equal(calls[i].op.err, ERR_OK);
            call_release(&calls[i]);
        }
    }
    assert_int_equal(timers(fixture), SLEEPERS);
    fixture_set_wall_ms(fixture, begun + 12000);
    for (int i = 0; i < OTHERS; i++) {
        struct uuid other = start(fixture, "other");
        assert_run_is(fixture, other, "succeeded"); /* nobody waits for all of them to fire */
        fixture_pass_ms(fixture, 1);                /* a turn that comes later is seen to */
    }
    int64_t until = real_seconds() + GIVE_UP_S;
    while (timers(fixture) > 0) {
        assert_true(real_seconds() < until);
        fixture_pass_ms(fixture, 1);
        settle(fixture);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'succeeded'"),
                     SLEEPERS + OTHERS);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events WHERE type = 'job.succeeded'"),
                     SLEEPERS + OTHERS);
    assert_int_equal(
        in_file(fixture,
                "SELECT count(*) FROM (SELECT finished_at, lag(finished_at) OVER"
                " (ORDER BY created_at, run) AS before FROM jobs WHERE attempt = 1"
                " AND step = 0 AND run IN (SELECT num FROM runs WHERE workflow_id = 'nap')) AS naps"
                " WHERE finished_at < before"),
        0);
    assert_true(in_file(fixture, "SELECT count(DISTINCT finished_at) FROM runs"
                                 " WHERE workflow_id = 'nap'") > 2); /* in more than one turn */
}

/* --- stale timers --- */

static void a_timer_of_an_older_lease_is_only_removed(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    struct held h;
    assert_true(claim_one(fixture, 1000, &h));
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_true(claim_one(fixture, 60000, &h)); /* the second lease */
    assert_int_equal(h.attempt, 2);
    tamper(fixture, "INSERT INTO timers (due_at, run, ordinal, generation)"
                    " SELECT 5, run, ordinal, 1 FROM jobs" /* the first lease's */
                    " UNION ALL SELECT due_at - 1, run, ordinal, 2 FROM jobs" /* another time's */
                    " UNION ALL SELECT 6, run, 2, 0 FROM jobs"   /* of a job that is not there */
                    " UNION ALL SELECT 7, run, 0, 0 FROM jobs"   /* a deadline it does not have */
                    " UNION ALL SELECT 8, 12345, 1, 0 FROM jobs" /* of no run */
                    " UNION ALL SELECT 9, 12345, 0, 0 FROM jobs");
    fixture_pass_ms(fixture, 59999);
    settle(fixture);
    assert_int_equal(timers(fixture), 1);
    assert_nothing_to_claim(fixture);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_int_equal(
        in_file(fixture, "SELECT count(*) FROM events WHERE type = 'job.lease_expired'"), 1);
}

static void a_timer_of_what_is_over_is_only_removed(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TIMED);
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    work(fixture, "b");
    int64_t events = in_file(fixture, "SELECT count(*) FROM events");
    tamper(fixture, "INSERT INTO timers (due_at, run, ordinal, generation)"
                    " SELECT 5, run, ordinal, lease_epoch FROM jobs"
                    " UNION ALL SELECT deadline_at, num, 0, 0 FROM runs"
                    " UNION ALL SELECT 6, num, -1, 0 FROM runs");
    fixture_pass_ms(fixture, HOUR_MS);
    settle(fixture);
    assert_int_equal(timers(fixture), 0);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events"), events);
}

#define DAMAGE "UPDATE workflow_versions SET definition = '!' || definition"
#define MEND "UPDATE workflow_versions SET definition = substr(definition, 2)"

/* A run that cannot be read holds up nobody, and its times are not forgotten. */
static void what_could_not_be_fired_is_fired_when_it_can_be(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", TIMED);
    put_workflow(fixture, "nap", "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}]}");
    struct uuid delayed = start_later(fixture, "w", fixture_now_ms(fixture) + 1000);
    struct uuid timed = start(fixture, "w");
    struct uuid asleep = start(fixture, "nap");
    tamper(fixture, DAMAGE);
    fixture_pass_ms(fixture, 6000);
    settle(fixture);
    assert_int_equal(timers(fixture), 3); /* put off */
    tamper(fixture, MEND);
    fixture_pass_ms(fixture, 2 * POSTPONED_MS);
    settle(fixture);
    assert_run_is(fixture, asleep, "succeeded");
    assert_run_is(fixture, timed, "timed_out");
    assert_run_is(fixture, delayed, "running");
    work(fixture, "a");
    assert_run_is(fixture, delayed, "running");
    assert_sound(fixture);
}

/* --- delayed starts --- */

static void a_delayed_start_begins_at_its_time_and_needs_no_slot_before(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid later = start_later(fixture, "w", fixture_now_ms(fixture) + 10000);
    assert_run_is(fixture, later, "queued");
    assert_int_equal(in_file(fixture, "SELECT active_runs + queued_runs FROM tenant_counters"), 0);
    assert_sound(fixture);
    struct uuid now = start(fixture, "w"); /* the slot is free */
    assert_run_is(fixture, now, "running");
    work(fixture, "a");
    fixture_pass_ms(fixture, 9999);
    settle(fixture);
    assert_run_is(fixture, later, "queued");
    fixture_pass_ms(fixture, 1);
    settle(fixture);
    assert_run_is(fixture, later, "running");
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters"), 1);
    work(fixture, "a");
    assert_run_is(fixture, later, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_delayed_start_whose_time_finds_no_slot_queues_like_any_other(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid later = start_later(fixture, "w", fixture_now_ms(fixture) + 1000);
    struct uuid now = start(fixture, "w");
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_run_is(fixture, later, "queued");
    assert_int_equal(in_file(fixture, "SELECT queued_runs FROM tenant_counters"), 1);
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
    work(fixture, "a");
    assert_run_is(fixture, now, "succeeded");
    settle(fixture);
    assert_run_is(fixture, later, "running");
    assert_int_equal(in_file(fixture, "SELECT queued_runs FROM tenant_counters"), 0);
    assert_sound(fixture);
}

static void a_delayed_start_outlives_the_engine_and_a_clock_that_jumps(void **state)
{
    struct fixture *fixture = *state;
    int64_t begun = fixture_now_ms(fixture);
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start_later(fixture, "w", begun + 10000);
    fixture_stop(fixture);
    fixture_set_wall_ms(fixture, begun - HOUR_MS);
    fixture_start(fixture, 0);
    fixture_pass_ms(fixture, 60000);
    settle(fixture);
    assert_run_is(fixture, run, "queued");
    fixture_set_wall_ms(fixture, begun + HOUR_MS);
    settle(fixture);
    assert_run_is(fixture, run, "running");
    fixture_set_wall_ms(fixture, begun);
    settle(fixture);
    fixture_set_wall_ms(fixture, begun + HOUR_MS);
    settle(fixture);
    work(fixture, "a");
    assert_nothing_to_claim(fixture); /* it began once */
    assert_run_is(fixture, run, "succeeded");
}

static void a_delayed_start_that_is_cancelled_never_begins(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start_later(fixture, "w", fixture_now_ms(fixture) + 10000);
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    assert_int_equal(timers(fixture), 0);
    fixture_pass_ms(fixture, 20000);
    settle(fixture);
    assert_run_is(fixture, run, "cancelled");
    assert_nothing_to_claim(fixture);
    assert_sound(fixture);
}

static void a_start_for_a_time_that_is_past_begins_at_once(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start_later(fixture, "w", fixture_now_ms(fixture));
    assert_run_is(fixture, run, "running");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* --- children --- */

static struct uuid child_of(struct fixture *fixture, struct uuid parent)
{
    json_t *run = show_run(fixture, parent);
    struct uuid child;
    assert_true(uuid_parse(json_str(of_step(run, "c", "child_run_id")), &child));
    json_decref(run);
    return child;
}

static void a_child_out_of_time_is_cancelled_and_its_step_times_out(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "signal", "{'steps':[{'name':'s','type':'wait_signal','signal':'x'}]}");
    put_workflow(fixture, "parent",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'signal',"
                 "'timeout_ms':1000}]}");
    struct uuid run = start(fixture, "parent");
    settle(fixture);
    struct uuid child = child_of(fixture, run);
    fixture_pass_ms(fixture, 999);
    settle(fixture);
    assert_run_is(fixture, child, "waiting");
    assert_sound(fixture);
    fixture_pass_ms(fixture, 1);
    settle(fixture);
    settle(fixture); /* the child has a turn of its own */
    assert_run_is(fixture, child, "cancelled");
    assert_step_is(fixture, run, "c", "timed_out");
    assert_run_is(fixture, run, "failed");
    settle(fixture);
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* The doctor may look between any two commits. */
static void the_end_of_a_child_that_nobody_waits_for_sets_no_timer(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "signal", "{'steps':[{'name':'s','type':'wait_signal','signal':'x'}]}");
    put_workflow(fixture, "parent",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'signal',"
                 "'timeout_ms':1000}]}");
    tamper(fixture, "CREATE TABLE late (due_at INTEGER);"
                    "CREATE TRIGGER late_timers AFTER INSERT ON timers WHEN EXISTS (SELECT 1"
                    " FROM jobs j WHERE j.run = NEW.run AND j.ordinal = NEW.ordinal"
                    " AND j.finished_at IS NOT NULL)"
                    " BEGIN INSERT INTO late VALUES (NEW.due_at); END");
    struct uuid run = start(fixture, "parent");
    settle(fixture);
    struct uuid child = child_of(fixture, run);
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    settle(fixture);
    assert_run_is(fixture, child, "cancelled");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM late"), 0);
}

static void a_child_that_ends_in_time_leaves_no_timer(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "quick", "{'steps':[{'name':'s','type':'transform','output':7}]}");
    put_workflow(fixture, "parent",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'quick',"
                 "'timeout_ms':1000}]}");
    struct uuid run = start(fixture, "parent");
    settle(fixture); /* a turn for the child, and … */
    settle(fixture); /* … one for its parent, however they fall */
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* Everything that can wait waits; a repair finds nothing to do, and what was lost of it comes back.
 */
/* --- all of it, under the doctor's eyes --- */

static void repair(struct fixture *fixture)
{
    struct doctor_findings findings = {{0}, {0}};
    struct doctor_input in = {&findings};
    struct call c;
    call_init(&c, fixture, &UC_DOCTOR_REPAIR);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
}

static void whatever_waits_is_sound_and_survives_a_repair(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "task", ONE_TASK);
    put_workflow(fixture, "timed", TIMED);
    put_workflow(fixture, "signal", "{'steps':[{'name':'s','type':'wait_signal','signal':'x'}]}");
    put_workflow(fixture, "parent",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'signal'}]}");
    struct uuid parent = start(fixture, "parent");
    struct uuid waits = start(fixture, "signal");
    struct uuid held = start(fixture, "task");
    assert_int_equal(control(fixture, held, CONTROL_PAUSE), ERR_OK);
    struct uuid delayed = start_later(fixture, "task", fixture_now_ms(fixture) + 4000);
    struct uuid timed = start(fixture, "timed");
    settle(fixture);
    struct uuid child = child_of(fixture, parent);
    assert_run_is(fixture, child, "waiting");
    assert_sound(fixture);
    repair(fixture);
    assert_sound(fixture);
    assert_int_equal(timers(fixture), 2);
    tamper(fixture,
           "DELETE FROM timers WHERE run IN (SELECT num FROM runs WHERE start_at IS NOT NULL"
           " OR deadline_at IS NOT NULL)");
    repair(fixture);
    assert_int_equal(timers(fixture), 2);
    fixture_pass_ms(fixture, 4000);
    settle(fixture);
    assert_run_is(fixture, delayed, "running");
    assert_run_is(fixture, timed, "running");
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_run_is(fixture, timed, "timed_out");
    assert_int_equal(control(fixture, child, CONTROL_CANCEL), ERR_OK);
    settle(fixture);
    assert_run_is(fixture, parent, "failed");
    assert_run_is(fixture, waits, "waiting");
    assert_int_equal(control(fixture, held, CONTROL_RESUME), ERR_OK);
    work(fixture, "a");
    assert_run_is(fixture, held, "succeeded");
    assert_sound(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_sleep_until_a_time_ends_then_however_the_clock_gets_there),
        fixture_test(a_sleep_that_has_ended_does_not_end_again_when_the_clock_goes_back),
        fixture_test(a_lease_follows_a_clock_that_is_set_back_with_the_next_heartbeat),
        fixture_test(a_clock_that_jumps_forward_ends_leases_and_no_result_counts_twice),
        fixture_test(a_run_out_of_time_is_undone_and_its_late_worker_changes_nothing),
        fixture_test(a_deadline_is_a_time_and_not_a_countdown),
        fixture_test(a_run_that_ends_in_time_leaves_no_deadline),
        fixture_test(a_retried_run_gets_its_whole_time_again),
        fixture_test(an_attempt_out_of_time_fails_or_is_made_again_as_the_policy_says),
        fixture_test(many_timers_fire_once_each_in_order_while_starts_go_on),
        fixture_test(a_timer_of_an_older_lease_is_only_removed),
        fixture_test(a_timer_of_what_is_over_is_only_removed),
        fixture_test(what_could_not_be_fired_is_fired_when_it_can_be),
        fixture_test(a_delayed_start_begins_at_its_time_and_needs_no_slot_before),
        fixture_test(a_delayed_start_whose_time_finds_no_slot_queues_like_any_other),
        fixture_test(a_delayed_start_outlives_the_engine_and_a_clock_that_jumps),
        fixture_test(a_delayed_start_that_is_cancelled_never_begins),
        fixture_test(a_start_for_a_time_that_is_past_begins_at_once),
        fixture_test(a_child_out_of_time_is_cancelled_and_its_step_times_out),
        fixture_test(the_end_of_a_child_that_nobody_waits_for_sets_no_timer),
        fixture_test(a_child_that_ends_in_time_leaves_no_timer),
        fixture_test(whatever_waits_is_sound_and_survives_a_repair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
