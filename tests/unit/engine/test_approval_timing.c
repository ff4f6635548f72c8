/* Approvals under a clock that the test moves: time-outs, reminders, escalation, and the end, pause
 * and rerun of their run. */
#include "engine/approval_support.h"

/* --- time --- */

static void pass_s(struct rig *rig, int64_t seconds)
{
    rig_pass_ms(rig, seconds * 1000);
    settle(rig);
}

static void nobody_in_time_means_no_unless_the_definition_says_else(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60}"), "pay", &run);
    pass_s(rig, 59);
    assert_run_is(rig, run, "waiting");
    pass_s(rig, 1);
    assert_run_is(rig, run, "denied");
    assert_approval(rig, job, "status", "expired");
    assert_approval(rig, job, "decided_by", "pawl");
    cannot_approve(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    cannot_reject(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM audit WHERE action = 'approval.expire'"),
                     1);
    assert_sound(rig);
}

static void nobody_in_time_may_mean_yes(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60,'on_expire':'approve'}"), "pay", &run);
    pass_s(rig, 60);
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    cannot_approve(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_int_equal(event_count(rig, "job.approved"), 1);
    assert_sound(rig);
}

static void nobody_in_time_may_mean_a_failure_and_a_retry_asks_again(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60,'on_expire':'fail'}"), "pay", &run);
    pass_s(rig, 60);
    assert_run_is(rig, run, "failed");
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    assert_nothing_to_claim(rig);
    struct uuid again = job_of(rig, run, "pay");
    assert_false(uuid_eq(job, again));
    cannot_approve(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    approves(rig, again, "ann", "approved");
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

/* The timer is there to act; the answer does not wait for it. Here it never comes. */
static void a_decision_after_the_end_comes_too_late_even_before_the_timer_fires(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60}"), "pay", &run);
    tamper(rig, "DELETE FROM timers");
    rig_pass_ms(rig, 59 * 1000);
    assert_refused_with(rig, job, "ann", true, (struct words){.hash = "0"}, ERR_APPROVAL_STALE);
    rig_pass_ms(rig, 1000);
    cannot_approve(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    cannot_reject(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_approval(rig, job, "status", "pending");
}

static void an_approval_step_may_run_out_of_its_own_time(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, ASKING(",'timeout_ms':5000"), "ok", &run);
    pass_s(rig, 5);
    assert_run_is(rig, run, "failed");
    assert_step_is(rig, run, "ok", "timed_out");
    assert_approval(rig, job, "status", "void");
    cannot_approve(rig, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    assert_sound(rig);
}

static void reminders_come_again_and_again_and_stop_with_the_decision(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'remind_every_s':60,'expires_s':600}"), "pay", &run);
    pass_s(rig, 59);
    assert_int_equal(event_count(rig, "approval.reminded"), 0);
    pass_s(rig, 1);
    assert_int_equal(event_count(rig, "approval.reminded"), 1);
    pass_s(rig, 60);
    assert_int_equal(event_count(rig, "approval.reminded"), 2);
    pass_s(rig, 200); /* three were missed: one is recorded */
    assert_int_equal(event_count(rig, "approval.reminded"), 3);
    json_t *a = show_approval(rig, job);
    assert_int_equal(json_integer_value(json_object_get(a, "reminded")), 5);
    json_decref(a);
    assert_sound(rig);
    approves(rig, job, "ann", "approved");
    pass_s(rig, 300);
    assert_int_equal(event_count(rig, "approval.reminded"), 3);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM timers"), 0);
}

static void after_a_time_others_may_decide_too(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig,
                          GATED("{'approvers':{'users':['ann']},'expires_s':600,"
                                "'escalation':{'after_s':60,'approvers':{'users':['boss']}}}"),
                          "pay", &run);
    cannot_approve(rig, job, "boss", ERR_NOT_AN_APPROVER);
    pass_s(rig, 60);
    assert_int_equal(event_count(rig, "approval.escalated"), 1);
    cannot_approve(rig, job, "bob", ERR_NOT_AN_APPROVER);
    pass_s(rig, 60);
    assert_int_equal(event_count(rig, "approval.escalated"), 1);
    approves(rig, job, "boss", "approved");
    assert_sound(rig);
}

static void what_is_due_survives_a_restart(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'remind_every_s':60,'expires_s':90}"), "pay", &run);
    rig_stop(rig);
    rig_pass_ms(rig, 70 * 1000);
    rig_start(rig, 0);
    settle(rig);
    assert_int_equal(event_count(rig, "approval.reminded"), 1);
    rig_stop(rig);
    rig_pass_ms(rig, 70 * 1000);
    rig_start(rig, 0);
    settle(rig);
    assert_approval(rig, job, "status", "expired");
    assert_run_is(rig, run, "denied");
}

/* --- the run --- */

static void an_approval_ends_with_its_run(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60,'remind_every_s':5}"), "pay", &run);
    assert_int_equal(control(rig, run, CONTROL_CANCEL), ERR_OK);
    assert_approval(rig, job, "status", "void");
    cannot_approve(rig, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    cannot_reject(rig, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    pass_s(rig, 100);
    assert_int_equal(event_count(rig, "approval.reminded"), 0);
    assert_approval(rig, job, "status", "void");
    assert_sound(rig);
}

static void a_run_out_of_time_ends_its_approvals(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job =
        ask(rig, "{'timeout_s':5,'steps':[" TASK_STEP("pay", ",'requires_approval':true") "]}",
            "pay", &run);
    pass_s(rig, 5);
    assert_run_is(rig, run, "timed_out");
    assert_approval(rig, job, "status", "void");
    /* A retry must not let it go unasked. */
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    assert_nothing_to_claim(rig);
    assert_run_is(rig, run, "waiting");
    approves(rig, job_of(rig, run, "pay"), "ann", "approved");
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

static void a_paused_run_takes_decisions_and_goes_on_when_resumed(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    assert_int_equal(control(rig, run, CONTROL_PAUSE), ERR_OK);
    approves(rig, job, "ann", "approved");
    assert_run_is(rig, run, "paused");
    assert_nothing_to_claim(rig);
    assert_int_equal(control(rig, run, CONTROL_RESUME), ERR_OK);
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

static void pausing_does_not_let_a_task_go(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    assert_int_equal(control(rig, run, CONTROL_PAUSE), ERR_OK);
    assert_int_equal(control(rig, run, CONTROL_RESUME), ERR_OK);
    assert_nothing_to_claim(rig);
    assert_run_is(rig, run, "waiting");
    approves(rig, job, "ann", "approved");
    work(rig, "pay");
}

static void work_beside_an_approval_keeps_the_run_running(void **state)
{
    struct rig *rig = *state;
    put_workflow(
        rig, "w",
        "{'steps':[" TASK_STEP("pay", ",'needs':[],'requires_approval':true") "," TASK_STEP(
            "pack", ",'needs':[]") "]}");
    struct uuid run = start(rig, "w");
    assert_run_is(rig, run, "running");
    work(rig, "pack");
    assert_run_is(rig, run, "waiting");
    rejects(rig, job_of(rig, run, "pay"), "ann", "rejected");
    assert_run_is(rig, run, "denied");
    assert_sound(rig);
}

static void a_rerun_asks_again(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    rejects(rig, job, "ann", "rejected");
    struct rerun_run_input in = {.run_id = run, .if_match = -1};
    struct call c;
    call_init(&c, rig, &UC_RERUN_RUN);
    c.op.input = &in;
    must_perform(&c);
    struct uuid again = c.op.answer.run_id;
    call_release(&c);
    approves(rig, job_of(rig, again, "pay"), "ann", "approved");
    work(rig, "pay");
    assert_run_is(rig, again, "succeeded");
    cannot_approve(rig, job, "ann", ERR_APPROVAL_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(nobody_in_time_means_no_unless_the_definition_says_else),
        rig_test(nobody_in_time_may_mean_yes),
        rig_test(nobody_in_time_may_mean_a_failure_and_a_retry_asks_again),
        rig_test(a_decision_after_the_end_comes_too_late_even_before_the_timer_fires),
        rig_test(an_approval_step_may_run_out_of_its_own_time),
        rig_test(reminders_come_again_and_again_and_stop_with_the_decision),
        rig_test(after_a_time_others_may_decide_too),
        rig_test(what_is_due_survives_a_restart),
        rig_test(an_approval_ends_with_its_run),
        rig_test(a_run_out_of_time_ends_its_approvals),
        rig_test(a_paused_run_takes_decisions_and_goes_on_when_resumed),
        rig_test(pausing_does_not_let_a_task_go),
        rig_test(work_beside_an_approval_keeps_the_run_running),
        rig_test(a_rerun_asks_again),
    };
    return cmocka_run_group_tests_name("approval timing", tests, NULL, NULL);
}
