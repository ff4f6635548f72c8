/* Steps on the real engine: maps, pausing, retries and reruns, and runs of an earlier version. */
#include "engine/actions.h"

/* --- runs of an earlier version --- */

#define THREE                                                                                     \
    "{'steps':[" TASK_STEP("a", "") ",{'name':'s','type':'sleep','duration_ms':1000}," TASK_STEP( \
        "b", "") "]}"

/* As schema 2 left it: how far a run is was read from its jobs. */
static void forget_progress(struct fixture *fixture)
{
    tamper(fixture, "UPDATE runs SET progress = NULL");
}

static void an_old_run_goes_on_and_finishes_from_wherever_it_was(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", THREE);
    for (int at = 0; at < 6; at++) { /* how far it is when the new version comes */
        struct uuid run = start(fixture, "w");
        struct held h;
        if (at == 0)
            forget_progress(fixture);
        must_claim(fixture, "a", &h);
        if (at == 1)
            forget_progress(fixture);
        assert_int_equal(complete(fixture, &h), ERR_OK);
        assert_run_is(fixture, run, "waiting");
        if (at == 2)
            forget_progress(fixture);
        fixture_pass_ms(fixture, 1000);
        settle(fixture);
        if (at == 3)
            forget_progress(fixture);
        must_claim(fixture, "b", &h);
        if (at == 4)
            forget_progress(fixture);
        assert_int_equal(complete(fixture, &h), ERR_OK);
        if (at == 5)
            forget_progress(fixture);
        assert_run_is(fixture, run, "succeeded");
        assert_step_is(fixture, run, "s", "succeeded");
        assert_nothing_to_claim(fixture);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs"), 18);
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void an_old_run_that_failed_can_be_retried(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("a", "") "," TASK_STEP("b", "") "]}");
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    work_badly(fixture, "b");
    forget_progress(fixture);
    assert_run_is(fixture, run, "failed");
    assert_step_is(fixture, run, "b", "failed");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    work(fixture, "b");
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

static void an_old_run_can_be_cancelled(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", THREE);
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    forget_progress(fixture);
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    assert_step_is(fixture, run, "s", "cancelled");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* --- maps --- */

static void a_step_beside_a_map_that_fills_the_turn_gets_its_job(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(
        fixture, "w",
        "{'steps':[" TASK_STEP(
            "m", ",'for_each':'input','max_parallel':300,'needs':[]") "," TASK_STEP("b", "") "]}");
    struct buf items;
    buf_init(&items, 64 * KIB);
    for (int i = 0; i < 300; i++)
        buf_printf(&items, "%s%d", i == 0 ? "[" : ",", i);
    buf_put_char(&items, ']');
    struct uuid run = start_with(fixture, "w", items.ptr);
    buf_release(&items);
    settle(fixture);
    static struct held jobs[CLAIM_MAX];
    int done = 0;
    for (size_t count = 1; count > 0;) {
        count = claim_many(fixture, 60000, CLAIM_MAX, jobs);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(complete(fixture, &jobs[i]), ERR_OK);
        done += (int)count;
        settle(fixture);
    }
    assert_int_equal(done, 301);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

static void a_paused_map_that_fails_takes_no_more_results(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("m", ",'for_each':'input'") "]}");
    struct uuid run = start_with(fixture, "w", "[1,2,3]");
    struct held jobs[3];
    assert_int_equal(claim_many(fixture, 60000, 2, jobs), 2);
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    assert_int_equal(fail_job(fixture, &jobs[0], false), ERR_OK);
    assert_int_equal(complete(fixture, &jobs[1]), ERR_LEASE_LOST);
    assert_run_is(fixture, run, "paused");
    assert_nothing_to_claim(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    assert_run_is(fixture, run, "failed");
    assert_int_equal(timers(fixture), 0);
    assert_sound(fixture);
}

/* --- pausing --- */

static void a_lease_that_ends_while_its_run_is_paused_hands_nothing_out(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    struct held h;
    assert_true(claim_one(fixture, 1000, &h));
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_nothing_to_claim(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    work(fixture, "a");
    assert_run_is(fixture, run, "succeeded");
}

static void a_sleep_that_ends_while_its_run_is_paused_leads_on_when_it_is_resumed(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(
        fixture, "w",
        "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}," TASK_STEP("a", "") "]}");
    struct uuid run = start(fixture, "w");
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    fixture_pass_ms(fixture, 2000);
    settle(fixture);
    assert_run_is(fixture, run, "paused");
    assert_step_is(fixture, run, "s", "succeeded");
    assert_nothing_to_claim(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    work(fixture, "a");
    assert_run_is(fixture, run, "succeeded");
}

/* --- trying again --- */

static void a_retry_evaluates_an_expression_that_failed_again(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("a", ",'input':{'x':'${input.n + 1}'}") "]}");
    struct uuid run = start(fixture, "w"); /* without an input there is nothing to add to */
    assert_run_is(fixture, run, "failed");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    assert_nothing_to_claim(fixture); /* above all not with ${…} as it was written */
    assert_run_is(fixture, run, "failed");
    assert_sound(fixture);
}

static void what_was_undone_is_done_again_before_what_needs_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("a", ",'compensate':{'handler':'u'}") "," TASK_STEP(
                     "b", "") "," TASK_STEP("c", "") "]}");
    struct uuid run = start(fixture, "w");
    work(fixture, "a");
    work(fixture, "b");
    work_badly(fixture, "c");
    work(fixture, "a"); /* undone */
    assert_run_is(fixture, run, "failed");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    work(fixture, "a");
    work(fixture, "b");
    work(fixture, "c");
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

static struct uuid rerun(struct fixture *fixture, struct uuid old, const char *from)
{
    struct rerun_run_input in = {.run_id = old, .from_step = str_of(from), .if_match = -1};
    struct call c;
    call_init(&c, fixture, &UC_RERUN_RUN);
    c.op.input = &in;
    must_perform(&c);
    struct uuid made = c.op.answer.run_id;
    call_release(&c);
    return made;
}

static void a_rerun_does_again_what_was_undone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[" TASK_STEP("a", ",'compensate':{'handler':'u'}") "," TASK_STEP(
                     "b", "") "," TASK_STEP("c", "") "]}");
    struct uuid old = start(fixture, "w");
    work(fixture, "a");
    work(fixture, "b");
    work_badly(fixture, "c");
    work(fixture, "a"); /* undone */
    struct uuid run = rerun(fixture, old, "c");
    work(fixture, "a");
    work(fixture, "b");
    work_badly(fixture, "c");
    struct held undo;
    must_claim(fixture, "a", &undo);
    assert_true(undo.compensates);
    assert_int_equal(complete(fixture, &undo), ERR_OK);
    assert_run_is(fixture, run, "failed");
    assert_run_is(fixture, old, "failed");
    assert_sound(fixture);
}

static void a_rerun_takes_over_what_lies_before_the_step(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("a", "") "," TASK_STEP("b", "") "]}");
    struct uuid old = start(fixture, "w");
    work(fixture, "a");
    work_badly(fixture, "b");
    struct uuid run = rerun(fixture, old, "b");
    assert_step_is(fixture, run, "a", "succeeded");
    work(fixture, "b");
    assert_nothing_to_claim(fixture);
    assert_run_is(fixture, run, "succeeded");
    assert_sound(fixture);
}

/* --- damage --- */

static void a_run_whose_row_contradicts_itself_is_damage_and_stays_as_it_is(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    tamper(fixture, "UPDATE runs SET finished_at = 5");
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_DAMAGED);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events WHERE type = 'run.cancelled'"),
                     0);
    json_t *shown = show_run(fixture, run); /* readers still see it */
    json_decref(shown);
    tamper(fixture, "UPDATE runs SET finished_at = NULL");
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    assert_sound(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_run_whose_row_contradicts_itself_is_damage_and_stays_as_it_is),
        fixture_test(an_old_run_goes_on_and_finishes_from_wherever_it_was),
        fixture_test(an_old_run_that_failed_can_be_retried),
        fixture_test(an_old_run_can_be_cancelled),
        fixture_test(a_step_beside_a_map_that_fills_the_turn_gets_its_job),
        fixture_test(a_paused_map_that_fails_takes_no_more_results),
        fixture_test(a_lease_that_ends_while_its_run_is_paused_hands_nothing_out),
        fixture_test(a_sleep_that_ends_while_its_run_is_paused_leads_on_when_it_is_resumed),
        fixture_test(a_retry_evaluates_an_expression_that_failed_again),
        fixture_test(what_was_undone_is_done_again_before_what_needs_it),
        fixture_test(a_rerun_does_again_what_was_undone),
        fixture_test(a_rerun_takes_over_what_lies_before_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
