/* Advancing a run, case by case: how it stops and is undone, waits, is paused and tries again. */
#include "domain/scripted_run.h"

#define A_SLEEP(name, members) "{'name':'" name "','type':'sleep','duration_ms':1" members "}"
#define A_WAIT(name, members) "{'name':'" name "','type':'wait_signal','signal':'s'" members "}"

/* --- compensation --- */

#define SAGA                                                                                \
    STEPS(A_STEP("a", UNDO NEEDS("")) "," A_STEP("b", UNDO) "," A_STEP("c", "") "," A_STEP( \
        "d", NEEDS("'a','b','c'") UNDO) "," A_STEP("e", NEEDS("'d'")))

static void a_failed_run_is_undone_in_reverse_order_of_completion(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(SAGA);
    go(s, RUN_RUNNING, "start +a .a +b .b +c .c");
    succeeds(s, "b", RUN_RUNNING, "");
    succeeds(s, "c", RUN_RUNNING, "");
    succeeds(s, "a", RUN_RUNNING, "+d .d");
    succeeds(s, "d", RUN_RUNNING, "+e .e");
    fails(s, "e", RUN_RUNNING, "~d");
    undo_ends(s, "d", true, RUN_RUNNING, "~a");
    undo_ends(s, "a", true, RUN_RUNNING, "~b");
    undo_ends(s, "b", true, RUN_FAILED, "fail");
    assert_int_equal(state_of(s, "b")->undo, UNDO_DONE);
    assert_int_equal(state_of(s, "c")->undo, UNDO_NONE); /* it has no compensation */
    assert_step(s, "a", STEP_IS_SUCCEEDED);
    scripted_run_free(s);
}

static void what_is_open_ends_before_anything_is_undone(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(SAGA);
    go(s, RUN_RUNNING, "start +a .a +b .b +c .c");
    succeeds(s, "b", RUN_RUNNING, "");
    fails(s, "c", RUN_RUNNING, "!a ~b");
    assert_step(s, "a", STEP_IS_CANCELLED);
    undo_ends(s, "b", true, RUN_FAILED, "fail");
    scripted_run_free(s);
}

static void the_step_that_failed_is_not_undone(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", UNDO)));
    go(s, RUN_RUNNING, "start +a .a");
    fails(s, "a", RUN_FAILED, "fail");
    scripted_run_free(s);
}

static void a_compensation_that_fails_does_not_stop_the_others(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(SAGA);
    s->script.undo_fails_at_once[step_of(s, "a")] = true;
    go(s, RUN_RUNNING, "start +a .a +b .b +c .c");
    succeeds(s, "b", RUN_RUNNING, "");
    succeeds(s, "c", RUN_RUNNING, "");
    succeeds(s, "a", RUN_RUNNING, "+d .d");
    fails(s, "d", RUN_RUNNING, "~a ~b");
    undo_ends(s, "b", false, RUN_FAILED, "fail");
    assert_int_equal(state_of(s, "a")->undo, UNDO_FAILED);
    assert_int_equal(state_of(s, "b")->undo, UNDO_FAILED);
    scripted_run_free(s);
}

static void a_map_is_undone_as_one_and_a_map_of_nothing_too(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("m", MAP("3") UNDO) "," A_STEP("n", MAP("3") UNDO) "," A_STEP("b", "")));
    s->script.items[0] = 2;
    go(s, RUN_RUNNING, "start +m .m .m");
    job_ends(s, "m", 0, STEP_IS_SUCCEEDED);
    job_ends(s, "m", 1, STEP_IS_SUCCEEDED);
    go(s, RUN_RUNNING, "+n +b .b");
    fails(s, "b", RUN_RUNNING, "~n");
    undo_ends(s, "n", true, RUN_RUNNING, "~m");
    assert_int_equal(state_of(s, "m")->undo_job, 5); /* behind the jobs of the steps */
    undo_ends(s, "m", true, RUN_FAILED, "fail");
    scripted_run_free(s);
}

static void a_run_that_goes_well_or_is_handled_is_not_undone(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("a", UNDO) "," A_STEP("b", ON_ERROR("mend")) "," A_STEP("mend", UNDO)));
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    fails(s, "b", RUN_RUNNING, "+mend .mend");
    succeeds(s, "mend", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

/* --- the run's own time --- */

static void a_run_out_of_time_ends_what_is_open_and_is_undone(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", UNDO) "," A_STEP("b", "")));
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    simulated_time_out(&s->simulated_run);
    assert_turn(s, RUN_RUNNING, "!b ~a");
    assert_step(s, "b", STEP_IS_CANCELLED);
    undo_ends(s, "a", true, RUN_TIMED_OUT, "time_out");
    scripted_run_free(s);
}

static void a_run_out_of_time_while_it_waits_wakes_first(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_SLEEP("a", "")));
    go(s, RUN_WAITING, "start +a .a wait");
    simulated_time_out(&s->simulated_run);
    assert_turn(s, RUN_TIMED_OUT, "!a wake time_out");
    scripted_run_free(s);
}

static void a_run_that_is_being_undone_is_not_also_out_of_time(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", UNDO) "," A_STEP("b", "")));
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    fails(s, "b", RUN_RUNNING, "~a");
    simulated_time_out(&s->simulated_run);
    assert_turn(s, RUN_RUNNING, "");
    undo_ends(s, "a", true, RUN_FAILED, "fail");
    scripted_run_free(s);
}

/* --- running and waiting --- */

static void a_run_whose_open_steps_all_wait_is_waiting(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_SLEEP("a", NEEDS("")) "," A_WAIT("b", "")));
    go(s, RUN_WAITING, "start +a .a +b .b wait");
    go(s, RUN_WAITING, "");
    succeeds(s, "b", RUN_WAITING, "");
    succeeds(s, "a", RUN_SUCCEEDED, "wake succeed");
    scripted_run_free(s);
}

static void a_wait_beside_work_does_not_make_the_run_wait(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_SLEEP("a", NEEDS("")) "," A_STEP("b", "") "," A_STEP("c", NEEDS("'a'"))));
    go(s, RUN_RUNNING, "start +a .a +b .b");
    succeeds(s, "b", RUN_WAITING, "wait");
    succeeds(s, "a", RUN_RUNNING, "+c wake .c");
    succeeds(s, "c", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_task_that_waits_for_a_person_is_not_work(void **state)
{
    (void)state;
    struct scripted_run *s =
        scripted_run_new(STEPS(A_STEP("a", NEEDS("")) "," A_STEP("b", NEEDS(""))));
    s->script.asks[0] = true;
    go(s, RUN_RUNNING, "start +a .a +b .b");
    succeeds(s, "b", RUN_WAITING, "wait");
    simulated_answer(&s->simulated_run, state_of(s, "a")->first);
    go(s, RUN_RUNNING, "wake");
    succeeds(s, "a", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_denied_step_denies_its_run_after_undoing_what_was_done(void **state)
{
    (void)state;
    struct scripted_run *s =
        scripted_run_new(STEPS(A_STEP("a", UNDO) "," A_STEP("b", "") "," A_STEP("c", "")));
    s->script.asks[1] = true;
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_WAITING, "+b .b wait");
    ends(s, "b", STEP_IS_DENIED, RUN_RUNNING, "~a wake");
    undo_ends(s, "a", true, RUN_DENIED, "deny");
    scripted_run_free(s);
}

static void a_denial_goes_the_way_of_an_error(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("a", ON_ERROR("c")) "," A_STEP("b", ",'needs':['a']") "," A_STEP("c", "")));
    s->script.asks[0] = true;
    go(s, RUN_WAITING, "start +a .a wait");
    ends(s, "a", STEP_IS_DENIED, RUN_RUNNING, "-b +c wake .c");
    succeeds(s, "c", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_denied_item_ends_the_others_that_wait(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", MAP("3"))));
    s->script.items[0] = 3;
    s->script.asks[0] = true;
    go(s, RUN_WAITING, "start +a .a .a .a wait");
    job_ends(s, "a", 1, STEP_IS_DENIED);
    go(s, RUN_DENIED, "!a wake deny");
    assert_int_equal(state_of(s, "a")->asked, 0);
    scripted_run_free(s);
}

static void a_wait_after_a_wait_goes_on_waiting(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_SLEEP("a", "") "," A_WAIT("b", "")));
    go(s, RUN_WAITING, "start +a .a wait");
    succeeds(s, "a", RUN_WAITING, "+b .b");
    fails(s, "b", RUN_FAILED, "wake fail");
    scripted_run_free(s);
}

static void a_compensation_is_work(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", UNDO) "," A_WAIT("b", "")));
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_WAITING, "+b .b wait");
    ends(s, "b", STEP_IS_TIMED_OUT, RUN_RUNNING, "~a wake");
    undo_ends(s, "a", true, RUN_FAILED, "fail");
    scripted_run_free(s);
}

/* --- queued, paused, over --- */

static void nothing_is_next_for_a_run_that_is_queued_or_over(void **state)
{
    (void)state;
    static const enum run_status STILL[] = {RUN_QUEUED, RUN_SUCCEEDED, RUN_FAILED,
                                            RUN_DENIED, RUN_CANCELLED, RUN_TIMED_OUT};
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "")));
    for (size_t i = 0; i < ARRAY_LEN(STILL); i++)
        assert_int_equal(advance_next(s->parsed.def, &s->simulated_run.p, STILL[i]).kind,
                         NEXT_NOTHING);
    scripted_run_free(s);
}

static void a_paused_run_takes_results_and_goes_on_when_resumed(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", "")));
    go(s, RUN_RUNNING, "start +a .a");
    simulated_move(&s->simulated_run, RUN_ON_PAUSE);
    succeeds(s, "a", RUN_PAUSED, "");
    assert_step(s, "a", STEP_IS_SUCCEEDED);
    assert_step(s, "b", STEP_IS_WAITING);
    simulated_move(&s->simulated_run, RUN_ON_RESUME);
    go(s, RUN_RUNNING, "+b .b");
    scripted_run_free(s);
}

/* Otherwise their results would come to a step that is settled. */
static void the_other_items_of_a_failed_map_end_even_while_the_run_is_paused(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("m", MAP("3"))));
    s->script.items[0] = 5;
    go(s, RUN_RUNNING, "start +m .m .m .m");
    simulated_move(&s->simulated_run, RUN_ON_PAUSE);
    job_ends(s, "m", 2, STEP_IS_FAILED);
    go(s, RUN_PAUSED, "!m");
    simulated_move(&s->simulated_run, RUN_ON_RESUME);
    go(s, RUN_FAILED, "fail");
    scripted_run_free(s);
}

static void a_waiting_run_that_was_paused_waits_again(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_SLEEP("a", "")));
    go(s, RUN_WAITING, "start +a .a wait");
    simulated_move(&s->simulated_run, RUN_ON_PAUSE);
    go(s, RUN_PAUSED, "");
    simulated_move(&s->simulated_run, RUN_ON_RESUME);
    go(s, RUN_WAITING, "wait");
    scripted_run_free(s);
}

static void a_cancelled_run_has_nothing_open_and_is_not_undone(void **state)
{
    (void)state;
    struct scripted_run *s =
        scripted_run_new(STEPS(A_STEP("a", UNDO) "," A_STEP("m", MAP("3")) "," A_STEP("c", "")));
    s->script.items[1] = 3;
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+m .m .m .m");
    simulated_cancel(&s->simulated_run);
    assert_step(s, "a", STEP_IS_SUCCEEDED);
    assert_step(s, "m", STEP_IS_CANCELLED);
    assert_step(s, "c", STEP_IS_WAITING);
    go(s, RUN_CANCELLED, "");
    scripted_run_free(s);
}

/* --- trying again --- */

static bool may_retry(const struct scripted_run *s, size_t step)
{
    return advance_may_retry(s->parsed.def, &s->simulated_run.p, step);
}

static void retry(struct scripted_run *s, enum run_status status, const char *log)
{
    s->simulated_run.log[0] = '\0';
    simulated_retry(&s->simulated_run);
    assert_turn(s, status, log);
}

static void a_retry_does_the_failed_step_again_and_no_other(void **state)
{
    (void)state;
    struct scripted_run *s =
        scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", "") "," A_STEP("c", "")));
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    fails(s, "b", RUN_FAILED, "fail");
    assert_false(may_retry(s, 0));
    assert_true(may_retry(s, 1));
    assert_false(may_retry(s, 2)); /* it never began */
    int64_t job = state_of(s, "b")->first;
    retry(s, RUN_RUNNING, "start");
    assert_int_equal(state_of(s, "b")->first, job); /* under its own id */
    assert_int_equal(s->simulated_run.p.stop, STOP_NO);
    succeeds(s, "b", RUN_RUNNING, "+c .c");
    succeeds(s, "c", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void only_the_items_that_did_not_succeed_are_done_again(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("m", MAP("4"))));
    s->script.items[0] = 6;
    go(s, RUN_RUNNING, "start +m .m .m .m .m");
    job_ends(s, "m", 0, STEP_IS_SUCCEEDED);
    job_ends(s, "m", 2, STEP_IS_FAILED);
    go(s, RUN_FAILED, "!m fail");
    retry(s, RUN_RUNNING, "start .m"); /* items 1, 2 and 3, and there is room for one more */
    assert_int_equal(state_of(s, "m")->over, 1);
    assert_int_equal(state_of(s, "m")->begun, 5);
    for (int64_t i = 1; i < 5; i++)
        job_ends(s, "m", i, STEP_IS_SUCCEEDED);
    go(s, RUN_RUNNING, ".m");
    job_ends(s, "m", 5, STEP_IS_SUCCEEDED);
    go(s, RUN_SUCCEEDED, "succeed");
    assert_int_equal(state_of(s, "m")->failed, 0);
    scripted_run_free(s);
}

static void a_wait_that_failed_begins_anew(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_WAIT("a", "") "," A_STEP("b", "")));
    go(s, RUN_WAITING, "start +a .a wait");
    ends(s, "a", STEP_IS_TIMED_OUT, RUN_FAILED, "wake fail");
    retry(s, RUN_WAITING, "start +a .a wait");
    assert_int_equal(state_of(s, "a")->first, 2);
    scripted_run_free(s);
}

/* What was made of an undone step is worth nothing, and nothing is done before what it needs. */
static void what_was_undone_and_all_behind_it_is_done_again_in_order(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("x", "") "," A_STEP(
        "a", UNDO) "," A_STEP("b", "") "," A_STEP("c", UNDO) "," A_STEP("d", "")));
    go(s, RUN_RUNNING, "start +x .x");
    succeeds(s, "x", RUN_RUNNING, "+a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    succeeds(s, "b", RUN_RUNNING, "+c .c");
    succeeds(s, "c", RUN_RUNNING, "+d .d");
    fails(s, "d", RUN_RUNNING, "~c");
    undo_ends(s, "c", true, RUN_RUNNING, "~a");
    undo_ends(s, "a", false, RUN_FAILED, "fail"); /* undone or not: nobody knows */
    retry(s, RUN_RUNNING, "start +a .a");
    assert_step(s, "x", STEP_IS_SUCCEEDED);
    assert_int_equal(state_of(s, "a")->undo, UNDO_NONE);
    assert_true(state_of(s, "a")->first > 5); /* a new job: the old one's effect was taken back */
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    succeeds(s, "b", RUN_RUNNING, "+c .c");
    succeeds(s, "c", RUN_RUNNING, "+d .d");
    succeeds(s, "d", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void the_handler_of_what_is_done_again_is_there_for_it_again(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("a", UNDO ON_ERROR("mend")) "," A_STEP("b", "") "," A_STEP("mend", "")));
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b -mend");
    fails(s, "b", RUN_RUNNING, "~a");
    undo_ends(s, "a", true, RUN_FAILED, "fail");
    retry(s, RUN_RUNNING, "start +a .a");
    fails(s, "a", RUN_RUNNING, "-b +mend .mend");
    succeeds(s, "mend", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void an_error_that_was_dealt_with_stays_so(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("a", ON_ERROR("mend")) "," A_STEP("b", "") "," A_STEP("mend", "") "," A_STEP(
            "c", ON_ERROR("continue") NEEDS("'mend'")) "," A_STEP("d", NEEDS("'c'"))));
    go(s, RUN_RUNNING, "start +a .a +b .b");
    succeeds(s, "b", RUN_RUNNING, "");
    fails(s, "a", RUN_RUNNING, "+mend .mend");
    succeeds(s, "mend", RUN_RUNNING, "+c .c");
    fails(s, "c", RUN_RUNNING, "+d .d");
    fails(s, "d", RUN_FAILED, "fail");
    retry(s, RUN_RUNNING, "start");
    assert_step(s, "a", STEP_IS_FAILED);
    assert_step(s, "c", STEP_IS_FAILED);
    succeeds(s, "d", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_run_out_of_time_tries_again_what_was_cut_short(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", NEEDS(""))));
    go(s, RUN_RUNNING, "start +a .a +b .b");
    succeeds(s, "a", RUN_RUNNING, "");
    simulated_time_out(&s->simulated_run);
    assert_turn(s, RUN_TIMED_OUT, "!b time_out");
    retry(s, RUN_RUNNING, "start");
    succeeds(s, "b", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_skipped_step_is_not_asked_again(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", "")));
    s->script.does_not_hold[0] = true;
    go(s, RUN_RUNNING, "start ?a +b .b");
    fails(s, "b", RUN_FAILED, "fail");
    retry(s, RUN_RUNNING, "start");
    assert_step(s, "a", STEP_IS_SKIPPED);
    scripted_run_free(s);
}

static void steps_that_settle_after_a_retry_come_later_in_the_order(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("a", UNDO NEEDS("")) "," A_STEP("b", UNDO) "," A_STEP("c", NEEDS("'a','b'"))));
    go(s, RUN_RUNNING, "start +a .a +b .b");
    succeeds(s, "a", RUN_RUNNING, "");
    fails(s, "b", RUN_RUNNING, "~a");
    undo_ends(s, "a", true, RUN_FAILED, "fail");
    retry(s, RUN_RUNNING, "start +a .a"); /* b is revived */
    succeeds(s, "b", RUN_RUNNING, "");
    succeeds(s, "a", RUN_RUNNING, "+c .c");
    fails(s, "c", RUN_RUNNING, "~a");
    undo_ends(s, "a", true, RUN_RUNNING, "~b");
    undo_ends(s, "b", true, RUN_FAILED, "fail");
    scripted_run_free(s);
}

/* --- contracts --- */

static void end_a_job_that_was_never_made(void)
{
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "")));
    advance_job_over(s->parsed.def, &s->simulated_run.p, 0, STEP_IS_SUCCEEDED);
}

static void begin_a_step_twice(void)
{
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "")));
    advance_begin(&s->simulated_run.p, 0, -1);
    advance_begin(&s->simulated_run.p, 0, -1);
}

static void begin_more_items_than_there_are(void)
{
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "")));
    advance_begin(&s->simulated_run.p, 0, -1);
    advance_items_begun(&s->simulated_run.p, 0, 2);
}

static void undo_what_was_never_done(void)
{
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", UNDO)));
    advance_undo_begun(&s->simulated_run.p, 0);
}

static void end_a_compensation_that_never_began(void)
{
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", UNDO)));
    advance_undo_over(&s->simulated_run.p, 0, true);
}

static void try_a_step_again_that_has_not_ended(void)
{
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "")));
    advance_again(&s->simulated_run.p, 0);
}

static void what_cannot_have_happened_breaks_the_contract(void **state)
{
    (void)state;
    assert_true(aborts(end_a_job_that_was_never_made));
    assert_true(aborts(begin_a_step_twice));
    assert_true(aborts(begin_more_items_than_there_are));
    assert_true(aborts(undo_what_was_never_done));
    assert_true(aborts(end_a_compensation_that_never_began));
    assert_true(aborts(try_a_step_again_that_has_not_ended));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_run_is_undone_in_reverse_order_of_completion),
        cmocka_unit_test(what_is_open_ends_before_anything_is_undone),
        cmocka_unit_test(the_step_that_failed_is_not_undone),
        cmocka_unit_test(a_compensation_that_fails_does_not_stop_the_others),
        cmocka_unit_test(a_map_is_undone_as_one_and_a_map_of_nothing_too),
        cmocka_unit_test(a_run_that_goes_well_or_is_handled_is_not_undone),
        cmocka_unit_test(a_run_out_of_time_ends_what_is_open_and_is_undone),
        cmocka_unit_test(a_run_out_of_time_while_it_waits_wakes_first),
        cmocka_unit_test(a_run_that_is_being_undone_is_not_also_out_of_time),
        cmocka_unit_test(a_run_whose_open_steps_all_wait_is_waiting),
        cmocka_unit_test(a_wait_beside_work_does_not_make_the_run_wait),
        cmocka_unit_test(a_task_that_waits_for_a_person_is_not_work),
        cmocka_unit_test(a_denied_step_denies_its_run_after_undoing_what_was_done),
        cmocka_unit_test(a_denial_goes_the_way_of_an_error),
        cmocka_unit_test(a_denied_item_ends_the_others_that_wait),
        cmocka_unit_test(a_wait_after_a_wait_goes_on_waiting),
        cmocka_unit_test(a_compensation_is_work),
        cmocka_unit_test(nothing_is_next_for_a_run_that_is_queued_or_over),
        cmocka_unit_test(a_paused_run_takes_results_and_goes_on_when_resumed),
        cmocka_unit_test(the_other_items_of_a_failed_map_end_even_while_the_run_is_paused),
        cmocka_unit_test(a_waiting_run_that_was_paused_waits_again),
        cmocka_unit_test(a_cancelled_run_has_nothing_open_and_is_not_undone),
        cmocka_unit_test(a_retry_does_the_failed_step_again_and_no_other),
        cmocka_unit_test(only_the_items_that_did_not_succeed_are_done_again),
        cmocka_unit_test(a_wait_that_failed_begins_anew),
        cmocka_unit_test(what_was_undone_and_all_behind_it_is_done_again_in_order),
        cmocka_unit_test(the_handler_of_what_is_done_again_is_there_for_it_again),
        cmocka_unit_test(an_error_that_was_dealt_with_stays_so),
        cmocka_unit_test(a_run_out_of_time_tries_again_what_was_cut_short),
        cmocka_unit_test(a_skipped_step_is_not_asked_again),
        cmocka_unit_test(steps_that_settle_after_a_retry_come_later_in_the_order),
        cmocka_unit_test(what_cannot_have_happened_breaks_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
