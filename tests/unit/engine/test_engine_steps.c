/* Steps on the real engine: maps, pausing, retries and reruns, and runs of an earlier version. */
#include "engine/acts.h"

/* --- runs of an earlier version --- */

#define THREE                                                                                     \
    "{'steps':[" TASK_STEP("a", "") ",{'name':'s','type':'sleep','duration_ms':1000}," TASK_STEP( \
        "b", "") "]}"

/* As schema 2 left it: how far a run is was read from its jobs. */
static void forget_progress(struct rig *rig)
{
    tamper(rig, "UPDATE runs SET progress = NULL");
}

static void an_old_run_goes_on_and_finishes_from_wherever_it_was(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", THREE);
    for (int at = 0; at < 6; at++) { /* how far it is when the new version comes */
        struct uuid run = start(rig, "w");
        struct held h;
        if (at == 0)
            forget_progress(rig);
        must_claim(rig, "a", &h);
        if (at == 1)
            forget_progress(rig);
        assert_int_equal(complete(rig, &h), ERR_OK);
        assert_run_is(rig, run, "waiting");
        if (at == 2)
            forget_progress(rig);
        rig_pass_ms(rig, 1000);
        settle(rig);
        if (at == 3)
            forget_progress(rig);
        must_claim(rig, "b", &h);
        if (at == 4)
            forget_progress(rig);
        assert_int_equal(complete(rig, &h), ERR_OK);
        if (at == 5)
            forget_progress(rig);
        assert_run_is(rig, run, "succeeded");
        assert_step_is(rig, run, "s", "succeeded");
        assert_nothing_to_claim(rig);
    }
    assert_int_equal(in_file(rig, "SELECT count(*) FROM jobs"), 18);
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

static void an_old_run_that_failed_can_be_retried(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" TASK_STEP("a", "") "," TASK_STEP("b", "") "]}");
    struct uuid run = start(rig, "w");
    work(rig, "a");
    work_badly(rig, "b");
    forget_progress(rig);
    assert_run_is(rig, run, "failed");
    assert_step_is(rig, run, "b", "failed");
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    work(rig, "b");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

static void an_old_run_can_be_cancelled(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", THREE);
    struct uuid run = start(rig, "w");
    work(rig, "a");
    forget_progress(rig);
    assert_int_equal(control(rig, run, CONTROL_CANCEL), ERR_OK);
    assert_step_is(rig, run, "s", "cancelled");
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

/* --- maps --- */

static void a_step_beside_a_map_that_fills_the_turn_gets_its_job(void **state)
{
    struct rig *rig = *state;
    put_workflow(
        rig, "w",
        "{'steps':[" TASK_STEP(
            "m", ",'for_each':'input','max_parallel':300,'needs':[]") "," TASK_STEP("b", "") "]}");
    struct buf items;
    buf_init(&items, 64 * KIB);
    for (int i = 0; i < 300; i++)
        buf_printf(&items, "%s%d", i == 0 ? "[" : ",", i);
    buf_put_char(&items, ']');
    struct uuid run = start_with(rig, "w", items.ptr);
    buf_release(&items);
    settle(rig);
    static struct held jobs[CLAIM_MAX];
    int done = 0;
    for (size_t count = 1; count > 0;) {
        count = claim_many(rig, 60000, CLAIM_MAX, jobs);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(complete(rig, &jobs[i]), ERR_OK);
        done += (int)count;
        settle(rig);
    }
    assert_int_equal(done, 301);
    assert_run_is(rig, run, "succeeded");
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

static void a_paused_map_that_fails_takes_no_more_results(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" TASK_STEP("m", ",'for_each':'input'") "]}");
    struct uuid run = start_with(rig, "w", "[1,2,3]");
    struct held jobs[3];
    assert_int_equal(claim_many(rig, 60000, 2, jobs), 2);
    assert_int_equal(control(rig, run, CONTROL_PAUSE), ERR_OK);
    assert_int_equal(fail_job(rig, &jobs[0], false), ERR_OK);
    assert_int_equal(complete(rig, &jobs[1]), ERR_LEASE_LOST);
    assert_run_is(rig, run, "paused");
    assert_nothing_to_claim(rig);
    assert_int_equal(control(rig, run, CONTROL_RESUME), ERR_OK);
    assert_run_is(rig, run, "failed");
    assert_int_equal(timers(rig), 0);
    assert_sound(rig);
}

/* --- pausing --- */

static void a_lease_that_ends_while_its_run_is_paused_hands_nothing_out(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct uuid run = start(rig, "w");
    struct held h;
    assert_true(claim_one(rig, 1000, &h));
    assert_int_equal(control(rig, run, CONTROL_PAUSE), ERR_OK);
    rig_pass_ms(rig, 1000);
    settle(rig);
    assert_nothing_to_claim(rig);
    assert_int_equal(control(rig, run, CONTROL_RESUME), ERR_OK);
    work(rig, "a");
    assert_run_is(rig, run, "succeeded");
}

static void a_sleep_that_ends_while_its_run_is_paused_leads_on_when_it_is_resumed(void **state)
{
    struct rig *rig = *state;
    put_workflow(
        rig, "w",
        "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}," TASK_STEP("a", "") "]}");
    struct uuid run = start(rig, "w");
    assert_int_equal(control(rig, run, CONTROL_PAUSE), ERR_OK);
    rig_pass_ms(rig, 2000);
    settle(rig);
    assert_run_is(rig, run, "paused");
    assert_step_is(rig, run, "s", "succeeded");
    assert_nothing_to_claim(rig);
    assert_int_equal(control(rig, run, CONTROL_RESUME), ERR_OK);
    work(rig, "a");
    assert_run_is(rig, run, "succeeded");
}

/* --- trying again --- */

static void a_retry_evaluates_an_expression_that_failed_again(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" TASK_STEP("a", ",'input':{'x':'${input.n + 1}'}") "]}");
    struct uuid run = start(rig, "w"); /* without an input there is nothing to add to */
    assert_run_is(rig, run, "failed");
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    assert_nothing_to_claim(rig); /* above all not with ${…} as it was written */
    assert_run_is(rig, run, "failed");
    assert_sound(rig);
}

static void what_was_undone_is_done_again_before_what_needs_it(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'steps':[" TASK_STEP("a", ",'compensate':{'handler':'u'}") "," TASK_STEP(
                     "b", "") "," TASK_STEP("c", "") "]}");
    struct uuid run = start(rig, "w");
    work(rig, "a");
    work(rig, "b");
    work_badly(rig, "c");
    work(rig, "a"); /* undone */
    assert_run_is(rig, run, "failed");
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    work(rig, "a");
    work(rig, "b");
    work(rig, "c");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

static struct uuid rerun(struct rig *rig, struct uuid old, const char *from)
{
    struct rerun_run_input in = {.run_id = old, .from_step = str_of(from), .if_match = -1};
    struct call c;
    call_init(&c, rig, &UC_RERUN_RUN);
    c.op.input = &in;
    must_perform(&c);
    struct uuid made = c.op.answer.run_id;
    call_release(&c);
    return made;
}

static void a_rerun_does_again_what_was_undone(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'steps':[" TASK_STEP("a", ",'compensate':{'handler':'u'}") "," TASK_STEP(
                     "b", "") "," TASK_STEP("c", "") "]}");
    struct uuid old = start(rig, "w");
    work(rig, "a");
    work(rig, "b");
    work_badly(rig, "c");
    work(rig, "a"); /* undone */
    struct uuid run = rerun(rig, old, "c");
    work(rig, "a");
    work(rig, "b");
    work_badly(rig, "c");
    struct held undo;
    must_claim(rig, "a", &undo);
    assert_true(undo.compensates);
    assert_int_equal(complete(rig, &undo), ERR_OK);
    assert_run_is(rig, run, "failed");
    assert_run_is(rig, old, "failed");
    assert_sound(rig);
}

static void a_rerun_takes_over_what_lies_before_the_step(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" TASK_STEP("a", "") "," TASK_STEP("b", "") "]}");
    struct uuid old = start(rig, "w");
    work(rig, "a");
    work_badly(rig, "b");
    struct uuid run = rerun(rig, old, "b");
    assert_step_is(rig, run, "a", "succeeded");
    work(rig, "b");
    assert_nothing_to_claim(rig);
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

/* --- damage --- */

static void a_run_whose_row_contradicts_itself_is_damage_and_stays_as_it_is(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct uuid run = start(rig, "w");
    tamper(rig, "UPDATE runs SET finished_at = 5");
    assert_int_equal(control(rig, run, CONTROL_CANCEL), ERR_DAMAGED);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM events WHERE type = 'run.cancelled'"), 0);
    json_t *shown = show_run(rig, run); /* readers still see it */
    json_decref(shown);
    tamper(rig, "UPDATE runs SET finished_at = NULL");
    assert_int_equal(control(rig, run, CONTROL_CANCEL), ERR_OK);
    assert_sound(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_run_whose_row_contradicts_itself_is_damage_and_stays_as_it_is),
        rig_test(an_old_run_goes_on_and_finishes_from_wherever_it_was),
        rig_test(an_old_run_that_failed_can_be_retried),
        rig_test(an_old_run_can_be_cancelled),
        rig_test(a_step_beside_a_map_that_fills_the_turn_gets_its_job),
        rig_test(a_paused_map_that_fails_takes_no_more_results),
        rig_test(a_lease_that_ends_while_its_run_is_paused_hands_nothing_out),
        rig_test(a_sleep_that_ends_while_its_run_is_paused_leads_on_when_it_is_resumed),
        rig_test(a_retry_evaluates_an_expression_that_failed_again),
        rig_test(what_was_undone_is_done_again_before_what_needs_it),
        rig_test(a_rerun_does_again_what_was_undone),
        rig_test(a_rerun_takes_over_what_lies_before_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
