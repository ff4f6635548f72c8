/* Steps under a clock that the test moves: times that are absolute, deadlines, stale timers,
 * delayed starts, children, and a repair of all that waits. */
#include "engine/acts.h"

/* The rig's clock begins at 2023-11-14T22:13:20Z. */
#define IN_AN_HOUR "2023-11-14T23:13:20Z"
enum { HOUR_MS = 3600 * 1000 };

/* --- clocks --- */

static void a_sleep_until_a_time_ends_then_however_the_clock_gets_there(void **state)
{
    struct rig *rig = *state;
    int64_t begun = rig_now_ms(rig);
    put_workflow(rig, "w", "{'steps':[{'name':'s','type':'sleep','until':'" IN_AN_HOUR "'}]}");
    struct uuid run = start(rig, "w");
    rig_set_wall_ms(rig, begun - 24 * INT64_C(3600000)); /* a day back */
    settle(rig);
    rig_pass_ms(rig, 2 * HOUR_MS); /* two hours of real time */
    settle(rig);
    assert_run_is(rig, run, "waiting");
    rig_set_wall_ms(rig, begun + HOUR_MS - 1);
    settle(rig);
    assert_run_is(rig, run, "waiting");
    rig_set_wall_ms(rig, begun + HOUR_MS);
    settle(rig);
    assert_run_is(rig, run, "succeeded");
    struct uuid late = start(rig, "w"); /* its time is past: it does not wait */
    settle(rig);
    assert_run_is(rig, late, "succeeded");
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

static void a_sleep_that_has_ended_does_not_end_again_when_the_clock_goes_back(void **state)
{
    struct rig *rig = *state;
    int64_t begun = rig_now_ms(rig);
    put_workflow(
        rig, "w",
        "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}," TASK_STEP("a", "") "]}");
    struct uuid run = start(rig, "w");
    rig_pass_ms(rig, 1000);
    settle(rig);
    assert_run_is(rig, run, "running");
    for (int i = 0; i < 3; i++) {
        rig_set_wall_ms(rig, begun - HOUR_MS);
        settle(rig);
        rig_set_wall_ms(rig, begun + HOUR_MS);
        settle(rig);
    }
    work(rig, "a");
    assert_nothing_to_claim(rig);
    assert_run_is(rig, run, "succeeded");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM events WHERE type = 'job.succeeded'"), 2);
}

/* The clock was wrong and is set right: the next sign of life counts from the new time. */
static void a_lease_follows_a_clock_that_is_set_back_with_the_next_heartbeat(void **state)
{
    struct rig *rig = *state;
    int64_t begun = rig_now_ms(rig);
    put_workflow(rig, "w", ONE_TASK);
    (void)start(rig, "w");
    struct held h;
    assert_true(claim_one(rig, 1000, &h));
    rig_set_wall_ms(rig, begun - HOUR_MS);
    rig_pass_ms(rig, 500);
    assert_int_equal(heartbeat(rig, &h), ERR_OK);
    assert_int_equal(timers(rig), 1);
    rig_pass_ms(rig, 999);
    settle(rig);
    assert_nothing_to_claim(rig);
    rig_pass_ms(rig, 1);
    settle(rig);
    struct held next;
    must_claim(rig, "a", &next);
    assert_int_equal(complete(rig, &h), ERR_LEASE_LOST);
    assert_int_equal(complete(rig, &next), ERR_OK);
    assert_sound(rig);
}

static void a_clock_that_jumps_forward_ends_leases_and_no_result_counts_twice(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct uuid run = start(rig, "w");
    struct held first;
    assert_true(claim_one(rig, 30000, &first));
    rig_set_wall_ms(rig, rig_now_ms(rig) + HOUR_MS);
    settle(rig);
    struct held second;
    must_claim(rig, "a", &second);
    assert_int_equal(second.attempt, 2);
    assert_int_equal(complete(rig, &second), ERR_OK);
    assert_int_equal(complete(rig, &first), ERR_LEASE_LOST);
    assert_run_is(rig, run, "succeeded");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM events WHERE type = 'job.succeeded'"), 1);
    assert_int_equal(timers(rig), 0);
}

/* --- time-outs --- */

#define TIMED                                                                                      \
    "{'timeout_s':5,'steps':[" TASK_STEP("a", ",'compensate':{'handler':'undo.a'}") "," TASK_STEP( \
        "b", "") "]}"

static void a_run_out_of_time_is_undone_and_its_late_worker_changes_nothing(void **state)
{
    struct rig *rig = *state;
    put_tenant(rig, "{'max_concurrent_runs':1}");
    put_workflow(rig, "w", TIMED);
    struct uuid run = start(rig, "w");
    work(rig, "a");
    struct held late;
    must_claim(rig, "b", &late);
    rig_pass_ms(rig, 4999);
    settle(rig);
    assert_run_is(rig, run, "running");
    assert_int_equal(heartbeat(rig, &late), ERR_OK);
    rig_pass_ms(rig, 1);
    settle(rig);
    assert_step_is(rig, run, "b", "cancelled");
    assert_int_equal(complete(rig, &late), ERR_LEASE_LOST);
    struct held undo;
    must_claim(rig, "a", &undo);
    assert_true(undo.compensates);
    assert_string_equal(undo.handler, "undo.a");
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants"), 1); /* until it is undone */
    assert_int_equal(complete(rig, &undo), ERR_OK);
    assert_run_is(rig, run, "timed_out");
    assert_error_code(rig, run, "RUN_TIMED_OUT");
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants"), 0);
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

static void a_deadline_is_a_time_and_not_a_countdown(void **state)
{
    struct rig *rig = *state;
    int64_t begun = rig_now_ms(rig);
    put_workflow(rig, "w", TIMED);
    struct uuid run = start(rig, "w");
    rig_set_wall_ms(rig, begun - HOUR_MS);
    rig_pass_ms(rig, 60000);
    settle(rig);
    assert_run_is(rig, run, "running");
    rig_set_wall_ms(rig, begun + 5000);
    settle(rig);
    assert_run_is(rig, run, "timed_out");
    rig_set_wall_ms(rig, begun);
    settle(rig);
    rig_set_wall_ms(rig, begun + HOUR_MS);
    settle(rig);
    assert_run_is(rig, run, "timed_out");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM events WHERE type = 'run.timed_out'"), 1);
}

static void a_run_that_ends_in_time_leaves_no_deadline(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", TIMED);
    struct uuid run = start(rig, "w");
    work(rig, "a");
    work(rig, "b");
    assert_run_is(rig, run, "succeeded");
    assert_int_equal(timers(rig), 0);
}

static void a_retried_run_gets_its_whole_time_again(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", TIMED);
    struct uuid run = start(rig, "w");
    rig_pass_ms(rig, 3000);
    work_badly(rig, "a");
    assert_run_is(rig, run, "failed");
    assert_int_equal(timers(rig), 0);
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    rig_pass_ms(rig, 4999);
    settle(rig);
    assert_run_is(rig, run, "running");
    rig_pass_ms(rig, 1);
    settle(rig);
    assert_run_is(rig, run, "timed_out");
    assert_int_equal(timers(rig), 0);
}

static void an_attempt_out_of_time_fails_or_is_made_again_as_the_policy_says(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'steps':[" TASK_STEP("a", ",'timeout_ms':1000,'retry':{'max_attempts':2,"
                                             "'backoff_ms':100,'jitter':'none'}") "]}");
    struct uuid run = start(rig, "w");
    struct held h;
    must_claim(rig, "a", &h);
    rig_pass_ms(rig, 900);
    assert_int_equal(heartbeat(rig, &h), ERR_OK); /* which does not buy time */
    rig_pass_ms(rig, 100);
    settle(rig);
    assert_int_equal(complete(rig, &h), ERR_LEASE_LOST);
    assert_nothing_to_claim(rig);
    rig_pass_ms(rig, 100);
    settle(rig);
    must_claim(rig, "a", &h);
    assert_int_equal(h.attempt, 2);
    rig_pass_ms(rig, 1000);
    settle(rig);
    assert_run_is(rig, run, "failed");
    assert_step_is(rig, run, "a", "timed_out");
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

/* --- many timers --- */

/* Due within one second, in no order of their making, while other runs start. */
static void many_timers_fire_once_each_in_order_while_starts_go_on(void **state)
{
    enum { SLEEPERS = 5000, TOGETHER = 250, OTHERS = 20 };
    struct rig *rig = *state;
    put_workflow(rig, "nap", "{'steps':[{'name':'s','type':'sleep','duration_ms':10000}]}");
    put_workflow(rig, "other", "{'steps':[{'name':'t','type':'transform','output':1}]}");
    static struct call calls[TOGETHER];
    int64_t begun = rig_now_ms(rig);
    for (int batch = 0; batch < SLEEPERS / TOGETHER; batch++) {
        rig_set_wall_ms(rig, begun + batch * 389 % 1000);
        for (size_t i = 0; i < TOGETHER; i++) {
            start_init(&calls[i], rig, "nap");
            submit(&calls[i]);
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            wait_done(&calls[i]);
            assert_int_equal(calls[i].op.err, ERR_OK);
            call_release(&calls[i]);
        }
    }
    assert_int_equal(timers(rig), SLEEPERS);
    rig_set_wall_ms(rig, begun + 12000);
    for (int i = 0; i < OTHERS; i++) {
        struct uuid other = start(rig, "other");
        assert_run_is(rig, other, "succeeded"); /* nobody waits for all of them to fire */
        rig_pass_ms(rig, 1);                    /* a turn that comes later is seen to */
    }
    int64_t until = real_seconds() + GIVE_UP_S;
    while (timers(rig) > 0) {
        assert_true(real_seconds() < until);
        rig_pass_ms(rig, 1);
        settle(rig);
    }
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs WHERE status = 'succeeded'"),
                     SLEEPERS + OTHERS);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM events WHERE type = 'job.succeeded'"),
                     SLEEPERS + OTHERS);
    assert_int_equal(
        in_file(rig, "SELECT count(*) FROM (SELECT finished_at, lag(finished_at) OVER"
                     " (ORDER BY created_at, run) AS before FROM jobs WHERE attempt = 1"
                     " AND step = 0 AND run IN (SELECT num FROM runs WHERE workflow_id = 'nap'))"
                     " WHERE finished_at < before"),
        0);
    assert_true(in_file(rig, "SELECT count(DISTINCT finished_at) FROM runs"
                             " WHERE workflow_id = 'nap'") > 2); /* in more than one turn */
}

/* --- stale timers --- */

static void a_timer_of_an_older_lease_is_only_removed(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct uuid run = start(rig, "w");
    struct held h;
    assert_true(claim_one(rig, 1000, &h));
    rig_pass_ms(rig, 1000);
    settle(rig);
    assert_true(claim_one(rig, 60000, &h)); /* the second lease */
    assert_int_equal(h.attempt, 2);
    tamper(rig, "INSERT INTO timers (due_at, run, ordinal, generation)"
                " SELECT 5, run, ordinal, 1 FROM jobs"                    /* the first lease's */
                " UNION ALL SELECT due_at - 1, run, ordinal, 2 FROM jobs" /* another time's */
                " UNION ALL SELECT 6, run, 2, 0 FROM jobs"   /* of a job that is not there */
                " UNION ALL SELECT 7, run, 0, 0 FROM jobs"   /* a deadline it does not have */
                " UNION ALL SELECT 8, 12345, 1, 0 FROM jobs" /* of no run */
                " UNION ALL SELECT 9, 12345, 0, 0 FROM jobs");
    rig_pass_ms(rig, 59999);
    settle(rig);
    assert_int_equal(timers(rig), 1);
    assert_nothing_to_claim(rig);
    assert_int_equal(complete(rig, &h), ERR_OK);
    assert_run_is(rig, run, "succeeded");
    assert_int_equal(timers(rig), 0);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM events WHERE type = 'job.lease_expired'"),
                     1);
}

static void a_timer_of_what_is_over_is_only_removed(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", TIMED);
    struct uuid run = start(rig, "w");
    work(rig, "a");
    work(rig, "b");
    int64_t events = in_file(rig, "SELECT count(*) FROM events");
    tamper(rig, "INSERT INTO timers (due_at, run, ordinal, generation)"
                " SELECT 5, run, ordinal, lease_epoch FROM jobs"
                " UNION ALL SELECT deadline_at, num, 0, 0 FROM runs"
                " UNION ALL SELECT 6, num, -1, 0 FROM runs");
    rig_pass_ms(rig, HOUR_MS);
    settle(rig);
    assert_int_equal(timers(rig), 0);
    assert_run_is(rig, run, "succeeded");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM events"), events);
}

#define DAMAGE "UPDATE workflow_versions SET definition = '!' || definition"
#define MEND "UPDATE workflow_versions SET definition = substr(definition, 2)"

/* A run that cannot be read holds up nobody, and its times are not forgotten. */
static void what_could_not_be_fired_is_fired_when_it_can_be(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", TIMED);
    put_workflow(rig, "nap", "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}]}");
    struct uuid delayed = start_later(rig, "w", rig_now_ms(rig) + 1000);
    struct uuid timed = start(rig, "w");
    struct uuid asleep = start(rig, "nap");
    tamper(rig, DAMAGE);
    rig_pass_ms(rig, 6000);
    settle(rig);
    assert_int_equal(timers(rig), 3); /* put off */
    tamper(rig, MEND);
    rig_pass_ms(rig, 2 * POSTPONED_MS);
    settle(rig);
    assert_run_is(rig, asleep, "succeeded");
    assert_run_is(rig, timed, "timed_out");
    assert_run_is(rig, delayed, "running");
    work(rig, "a");
    assert_run_is(rig, delayed, "running");
    assert_sound(rig);
}

/* --- delayed starts --- */

static void a_delayed_start_begins_at_its_time_and_needs_no_slot_before(void **state)
{
    struct rig *rig = *state;
    put_tenant(rig, "{'max_concurrent_runs':1}");
    put_workflow(rig, "w", ONE_TASK);
    struct uuid later = start_later(rig, "w", rig_now_ms(rig) + 10000);
    assert_run_is(rig, later, "queued");
    assert_int_equal(in_file(rig, "SELECT active_runs + queued_runs FROM tenants"), 0);
    assert_sound(rig);
    struct uuid now = start(rig, "w"); /* the slot is free */
    assert_run_is(rig, now, "running");
    work(rig, "a");
    rig_pass_ms(rig, 9999);
    settle(rig);
    assert_run_is(rig, later, "queued");
    rig_pass_ms(rig, 1);
    settle(rig);
    assert_run_is(rig, later, "running");
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants"), 1);
    work(rig, "a");
    assert_run_is(rig, later, "succeeded");
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

static void a_delayed_start_whose_time_finds_no_slot_queues_like_any_other(void **state)
{
    struct rig *rig = *state;
    put_tenant(rig, "{'max_concurrent_runs':1}");
    put_workflow(rig, "w", ONE_TASK);
    struct uuid later = start_later(rig, "w", rig_now_ms(rig) + 1000);
    struct uuid now = start(rig, "w");
    rig_pass_ms(rig, 1000);
    settle(rig);
    assert_run_is(rig, later, "queued");
    assert_int_equal(in_file(rig, "SELECT queued_runs FROM tenants"), 1);
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
    work(rig, "a");
    assert_run_is(rig, now, "succeeded");
    settle(rig);
    assert_run_is(rig, later, "running");
    assert_int_equal(in_file(rig, "SELECT queued_runs FROM tenants"), 0);
    assert_sound(rig);
}

static void a_delayed_start_outlives_the_engine_and_a_clock_that_jumps(void **state)
{
    struct rig *rig = *state;
    int64_t begun = rig_now_ms(rig);
    put_workflow(rig, "w", ONE_TASK);
    struct uuid run = start_later(rig, "w", begun + 10000);
    rig_stop(rig);
    rig_set_wall_ms(rig, begun - HOUR_MS);
    rig_start(rig, 0);
    rig_pass_ms(rig, 60000);
    settle(rig);
    assert_run_is(rig, run, "queued");
    rig_set_wall_ms(rig, begun + HOUR_MS);
    settle(rig);
    assert_run_is(rig, run, "running");
    rig_set_wall_ms(rig, begun);
    settle(rig);
    rig_set_wall_ms(rig, begun + HOUR_MS);
    settle(rig);
    work(rig, "a");
    assert_nothing_to_claim(rig); /* it began once */
    assert_run_is(rig, run, "succeeded");
}

static void a_delayed_start_that_is_cancelled_never_begins(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct uuid run = start_later(rig, "w", rig_now_ms(rig) + 10000);
    assert_int_equal(control(rig, run, CONTROL_CANCEL), ERR_OK);
    assert_int_equal(timers(rig), 0);
    rig_pass_ms(rig, 20000);
    settle(rig);
    assert_run_is(rig, run, "cancelled");
    assert_nothing_to_claim(rig);
    assert_sound(rig);
}

static void a_start_for_a_time_that_is_past_begins_at_once(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct uuid run = start_later(rig, "w", rig_now_ms(rig));
    assert_run_is(rig, run, "running");
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

/* --- children --- */

static struct uuid child_of(struct rig *rig, struct uuid parent)
{
    json_t *run = show_run(rig, parent);
    struct uuid child;
    assert_true(uuid_parse(json_str(of_step(run, "c", "child_run_id")), &child));
    json_decref(run);
    return child;
}

static void a_child_out_of_time_is_cancelled_and_its_step_times_out(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "signal", "{'steps':[{'name':'s','type':'wait_signal','signal':'x'}]}");
    put_workflow(rig, "parent",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'signal',"
                 "'timeout_ms':1000}]}");
    struct uuid run = start(rig, "parent");
    settle(rig);
    struct uuid child = child_of(rig, run);
    rig_pass_ms(rig, 999);
    settle(rig);
    assert_run_is(rig, child, "waiting");
    assert_sound(rig);
    rig_pass_ms(rig, 1);
    settle(rig);
    settle(rig); /* the child has a turn of its own */
    assert_run_is(rig, child, "cancelled");
    assert_step_is(rig, run, "c", "timed_out");
    assert_run_is(rig, run, "failed");
    settle(rig);
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

static void a_child_that_ends_in_time_leaves_no_timer(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "quick", "{'steps':[{'name':'s','type':'transform','output':7}]}");
    put_workflow(rig, "parent",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'quick',"
                 "'timeout_ms':1000}]}");
    struct uuid run = start(rig, "parent");
    settle(rig); /* a turn for the child, and … */
    settle(rig); /* … one for its parent, however they fall */
    assert_run_is(rig, run, "succeeded");
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

/* Everything that can wait waits; a repair finds nothing to do, and what was lost of it comes back.
 */
/* --- all of it, under the doctor's eyes --- */

static void repair(struct rig *rig)
{
    struct doctor_findings findings = {{0}, {0}};
    struct doctor_input in = {&findings};
    struct call c;
    call_init(&c, rig, &UC_DOCTOR_REPAIR);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
}

static void whatever_waits_is_sound_and_survives_a_repair(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "task", ONE_TASK);
    put_workflow(rig, "timed", TIMED);
    put_workflow(rig, "signal", "{'steps':[{'name':'s','type':'wait_signal','signal':'x'}]}");
    put_workflow(rig, "parent",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'signal'}]}");
    struct uuid parent = start(rig, "parent");
    struct uuid waits = start(rig, "signal");
    struct uuid held = start(rig, "task");
    assert_int_equal(control(rig, held, CONTROL_PAUSE), ERR_OK);
    struct uuid delayed = start_later(rig, "task", rig_now_ms(rig) + 4000);
    struct uuid timed = start(rig, "timed");
    settle(rig);
    struct uuid child = child_of(rig, parent);
    assert_run_is(rig, child, "waiting");
    assert_sound(rig);
    repair(rig);
    assert_sound(rig);
    assert_int_equal(timers(rig), 2);
    tamper(rig, "DELETE FROM timers WHERE run IN (SELECT num FROM runs WHERE start_at IS NOT NULL"
                " OR deadline_at IS NOT NULL)");
    repair(rig);
    assert_int_equal(timers(rig), 2);
    rig_pass_ms(rig, 4000);
    settle(rig);
    assert_run_is(rig, delayed, "running");
    assert_run_is(rig, timed, "running");
    rig_pass_ms(rig, 1000);
    settle(rig);
    assert_run_is(rig, timed, "timed_out");
    assert_int_equal(control(rig, child, CONTROL_CANCEL), ERR_OK);
    settle(rig);
    assert_run_is(rig, parent, "failed");
    assert_run_is(rig, waits, "waiting");
    assert_int_equal(control(rig, held, CONTROL_RESUME), ERR_OK);
    work(rig, "a");
    assert_run_is(rig, held, "succeeded");
    assert_sound(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_sleep_until_a_time_ends_then_however_the_clock_gets_there),
        rig_test(a_sleep_that_has_ended_does_not_end_again_when_the_clock_goes_back),
        rig_test(a_lease_follows_a_clock_that_is_set_back_with_the_next_heartbeat),
        rig_test(a_clock_that_jumps_forward_ends_leases_and_no_result_counts_twice),
        rig_test(a_run_out_of_time_is_undone_and_its_late_worker_changes_nothing),
        rig_test(a_deadline_is_a_time_and_not_a_countdown),
        rig_test(a_run_that_ends_in_time_leaves_no_deadline),
        rig_test(a_retried_run_gets_its_whole_time_again),
        rig_test(an_attempt_out_of_time_fails_or_is_made_again_as_the_policy_says),
        rig_test(many_timers_fire_once_each_in_order_while_starts_go_on),
        rig_test(a_timer_of_an_older_lease_is_only_removed),
        rig_test(a_timer_of_what_is_over_is_only_removed),
        rig_test(what_could_not_be_fired_is_fired_when_it_can_be),
        rig_test(a_delayed_start_begins_at_its_time_and_needs_no_slot_before),
        rig_test(a_delayed_start_whose_time_finds_no_slot_queues_like_any_other),
        rig_test(a_delayed_start_outlives_the_engine_and_a_clock_that_jumps),
        rig_test(a_delayed_start_that_is_cancelled_never_begins),
        rig_test(a_start_for_a_time_that_is_past_begins_at_once),
        rig_test(a_child_out_of_time_is_cancelled_and_its_step_times_out),
        rig_test(a_child_that_ends_in_time_leaves_no_timer),
        rig_test(whatever_waits_is_sound_and_survives_a_repair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
