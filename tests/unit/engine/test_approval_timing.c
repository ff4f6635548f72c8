/* Approvals under a clock that the test moves: time-outs, reminders, escalation, and the end, pause
 * and rerun of their run. */
#include "engine/approval_support.h"

/* --- time --- */

static void pass_s(struct fixture *fixture, int64_t seconds)
{
    fixture_pass_ms(fixture, seconds * 1000);
    settle(fixture);
}

static void nobody_in_time_means_no_unless_the_definition_says_else(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'expires_s':60}"), "pay", &run);
    pass_s(fixture, 59);
    assert_run_is(fixture, run, "waiting");
    pass_s(fixture, 1);
    assert_run_is(fixture, run, "denied");
    assert_approval(fixture, job, "status", "expired");
    assert_approval(fixture, job, "decided_by", "pawl");
    cannot_approve(fixture, job, "ann", ERR_APPROVAL_EXPIRED);
    cannot_reject(fixture, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_int_equal(
        in_file(fixture, "SELECT count(*) FROM audit WHERE action = 'approval.expire'"), 1);
    assert_sound(fixture);
}

static void nobody_in_time_may_mean_yes(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'expires_s':60,'on_expire':'approve'}"), "pay", &run);
    pass_s(fixture, 60);
    work(fixture, "pay");
    assert_run_is(fixture, run, "succeeded");
    cannot_approve(fixture, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_int_equal(event_count(fixture, "job.approved"), 1);
    assert_sound(fixture);
}

static void nobody_in_time_may_mean_a_failure_and_a_retry_asks_again(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'expires_s':60,'on_expire':'fail'}"), "pay", &run);
    pass_s(fixture, 60);
    assert_run_is(fixture, run, "failed");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    assert_nothing_to_claim(fixture);
    struct uuid again = job_of(fixture, run, "pay");
    assert_false(uuid_eq(job, again));
    cannot_approve(fixture, job, "ann", ERR_APPROVAL_EXPIRED);
    approves(fixture, again, "ann", "approved");
    work(fixture, "pay");
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

/* The timer is there to act; the answer does not wait for it. Here it never comes. */
static void a_decision_after_the_end_comes_too_late_even_before_the_timer_fires(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'expires_s':60}"), "pay", &run);
    tamper(fixture, "DELETE FROM timers");
    fixture_pass_ms(fixture, 59 * 1000);
    assert_refused_with(fixture, job, "ann", true, (struct words){.hash = "0"}, ERR_APPROVAL_STALE);
    fixture_pass_ms(fixture, 1000);
    cannot_approve(fixture, job, "ann", ERR_APPROVAL_EXPIRED);
    cannot_reject(fixture, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_approval(fixture, job, "status", "pending");
}

static void an_approval_step_may_run_out_of_its_own_time(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, ASKING(",'timeout_ms':5000"), "ok", &run);
    pass_s(fixture, 5);
    assert_run_is(fixture, run, "failed");
    assert_step_is(fixture, run, "ok", "timed_out");
    assert_approval(fixture, job, "status", "void");
    cannot_approve(fixture, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    assert_sound(fixture);
}

static void reminders_come_again_and_again_and_stop_with_the_decision(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'remind_every_s':60,'expires_s':600}"), "pay", &run);
    pass_s(fixture, 59);
    assert_int_equal(event_count(fixture, "approval.reminded"), 0);
    pass_s(fixture, 1);
    assert_int_equal(event_count(fixture, "approval.reminded"), 1);
    pass_s(fixture, 60);
    assert_int_equal(event_count(fixture, "approval.reminded"), 2);
    pass_s(fixture, 200); /* three were missed: one is recorded */
    assert_int_equal(event_count(fixture, "approval.reminded"), 3);
    json_t *a = show_approval(fixture, job);
    assert_int_equal(json_integer_value(json_object_get(a, "reminded")), 5);
    json_decref(a);
    assert_sound(fixture);
    approves(fixture, job, "ann", "approved");
    pass_s(fixture, 300);
    assert_int_equal(event_count(fixture, "approval.reminded"), 3);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers"), 0);
}

static void after_a_time_others_may_decide_too(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture,
                          GATED("{'approvers':{'users':['ann']},'expires_s':600,"
                                "'escalation':{'after_s':60,'approvers':{'users':['boss']}}}"),
                          "pay", &run);
    cannot_approve(fixture, job, "boss", ERR_NOT_AN_APPROVER);
    pass_s(fixture, 60);
    assert_int_equal(event_count(fixture, "approval.escalated"), 1);
    cannot_approve(fixture, job, "bob", ERR_NOT_AN_APPROVER);
    pass_s(fixture, 60);
    assert_int_equal(event_count(fixture, "approval.escalated"), 1);
    approves(fixture, job, "boss", "approved");
    assert_sound(fixture);
}

static void what_is_due_survives_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'remind_every_s':60,'expires_s':90}"), "pay", &run);
    fixture_stop(fixture);
    fixture_pass_ms(fixture, 70 * 1000);
    fixture_start(fixture, 0);
    settle(fixture);
    assert_int_equal(event_count(fixture, "approval.reminded"), 1);
    fixture_stop(fixture);
    fixture_pass_ms(fixture, 70 * 1000);
    fixture_start(fixture, 0);
    settle(fixture);
    assert_approval(fixture, job, "status", "expired");
    assert_run_is(fixture, run, "denied");
}

/* --- the run --- */

static void an_approval_ends_with_its_run(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'expires_s':60,'remind_every_s':5}"), "pay", &run);
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    assert_approval(fixture, job, "status", "void");
    cannot_approve(fixture, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    cannot_reject(fixture, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    pass_s(fixture, 100);
    assert_int_equal(event_count(fixture, "approval.reminded"), 0);
    assert_approval(fixture, job, "status", "void");
    assert_sound(fixture);
}

static void a_run_out_of_time_ends_its_approvals(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job =
        ask(fixture, "{'timeout_s':5,'steps':[" TASK_STEP("pay", ",'requires_approval':true") "]}",
            "pay", &run);
    pass_s(fixture, 5);
    assert_run_is(fixture, run, "timed_out");
    assert_approval(fixture, job, "status", "void");
    /* A retry must not let it go unasked. */
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    assert_nothing_to_claim(fixture);
    assert_run_is(fixture, run, "waiting");
    approves(fixture, job_of(fixture, run, "pay"), "ann", "approved");
    work(fixture, "pay");
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

static void a_paused_run_takes_decisions_and_goes_on_when_resumed(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    approves(fixture, job, "ann", "approved");
    assert_run_is(fixture, run, "paused");
    assert_nothing_to_claim(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    work(fixture, "pay");
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

static void pausing_does_not_let_a_task_go(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    assert_nothing_to_claim(fixture);
    assert_run_is(fixture, run, "waiting");
    approves(fixture, job, "ann", "approved");
    work(fixture, "pay");
}

static void work_beside_an_approval_keeps_the_run_running(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(
        fixture, "w",
        "{'steps':[" TASK_STEP("pay", ",'needs':[],'requires_approval':true") "," TASK_STEP(
            "pack", ",'needs':[]") "]}");
    struct uuid run = start(fixture, "w");
    assert_run_is(fixture, run, "running");
    work(fixture, "pack");
    assert_run_is(fixture, run, "waiting");
    rejects(fixture, job_of(fixture, run, "pay"), "ann", "rejected");
    assert_run_is(fixture, run, "denied");
    assert_sound(fixture);
}

static void a_rerun_asks_again(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    rejects(fixture, job, "ann", "rejected");
    struct rerun_run_input in = {.run_id = run, .if_match = -1};
    struct call c;
    call_init(&c, fixture, &UC_RERUN_RUN);
    c.op.input = &in;
    must_perform(&c);
    struct uuid again = c.op.answer.run_id;
    call_release(&c);
    approves(fixture, job_of(fixture, again, "pay"), "ann", "approved");
    work(fixture, "pay");
    assert_run_is(fixture, again, "succeeded");
    cannot_approve(fixture, job, "ann", ERR_APPROVAL_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(nobody_in_time_means_no_unless_the_definition_says_else),
        fixture_test(nobody_in_time_may_mean_yes),
        fixture_test(nobody_in_time_may_mean_a_failure_and_a_retry_asks_again),
        fixture_test(a_decision_after_the_end_comes_too_late_even_before_the_timer_fires),
        fixture_test(an_approval_step_may_run_out_of_its_own_time),
        fixture_test(reminders_come_again_and_again_and_stop_with_the_decision),
        fixture_test(after_a_time_others_may_decide_too),
        fixture_test(what_is_due_survives_a_restart),
        fixture_test(an_approval_ends_with_its_run),
        fixture_test(a_run_out_of_time_ends_its_approvals),
        fixture_test(a_paused_run_takes_decisions_and_goes_on_when_resumed),
        fixture_test(pausing_does_not_let_a_task_go),
        fixture_test(work_beside_an_approval_keeps_the_run_running),
        fixture_test(a_rerun_asks_again),
    };
    return cmocka_run_group_tests_name("approval timing", tests, NULL, NULL);
}
