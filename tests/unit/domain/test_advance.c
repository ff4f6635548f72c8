/* Advancing a run, case by case: who begins when, conditions, errors and maps. */
#include "domain/scripted_run.h"

/* --- needs --- */

static void a_sequence_goes_step_by_step(void **state)
{
    (void)state;
    struct scripted_run *s =
        scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", "") "," A_STEP("c", "")));
    go(s, RUN_RUNNING, "start +a .a");
    go(s, RUN_RUNNING, ""); /* asked again, there is nothing new */
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    succeeds(s, "b", RUN_RUNNING, "+c .c");
    succeeds(s, "c", RUN_SUCCEEDED, "succeed");
    go(s, RUN_SUCCEEDED, "");
    scripted_run_free(s);
}

#define DIAMOND(of_left, of_right)                                                 \
    STEPS(A_STEP("top", "") "," A_STEP("left", NEEDS("'top'") of_left) "," A_STEP( \
        "right", NEEDS("'top'") of_right) "," A_STEP("bottom", NEEDS("'left','right'")))

static void a_diamond_joins_when_both_sides_are_settled(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(DIAMOND("", ""));
    go(s, RUN_RUNNING, "start +top .top");
    succeeds(s, "top", RUN_RUNNING, "+left .left +right .right");
    succeeds(s, "right", RUN_RUNNING, "");
    succeeds(s, "left", RUN_RUNNING, "+bottom .bottom");
    succeeds(s, "bottom", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void independent_steps_begin_together_in_written_order(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(
        A_STEP("a", "") "," A_STEP("b", NEEDS("'d'")) "," A_STEP("c", "") "," A_STEP("d", "")));
    go(s, RUN_RUNNING, "start +a .a +c .c +d .d");
    scripted_run_free(s);
}

/* What is done at once leads on in the same turn, whatever the order of writing. */
static void a_chain_of_steps_that_need_nobody_goes_through_in_one_turn(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("c", NEEDS("'b'")) "," A_STEP("b", NEEDS("'a'")) "," A_STEP("a", "")));
    memset(s->script.succeeds_at_once, 1, sizeof(s->script.succeeds_at_once));
    go(s, RUN_SUCCEEDED, "start +a .a +b .b +c .c succeed");
    scripted_run_free(s);
}

/* --- conditions --- */

static void a_step_whose_condition_does_not_hold_is_skipped_and_those_behind_go_on(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(DIAMOND("", ""));
    s->script.does_not_hold[step_of(s, "left")] = true;
    go(s, RUN_RUNNING, "start +top .top");
    succeeds(s, "top", RUN_RUNNING, "?left +right .right");
    assert_step(s, "left", STEP_IS_SKIPPED);
    assert_false(state_of(s, "left")->cut);
    succeeds(s, "right", RUN_RUNNING, "+bottom .bottom");
    succeeds(s, "bottom", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_run_of_nothing_but_skipped_steps_succeeds(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", "")));
    memset(s->script.does_not_hold, 1, sizeof(s->script.does_not_hold));
    go(s, RUN_SUCCEEDED, "start ?a ?b succeed");
    scripted_run_free(s);
}

static void a_condition_that_cannot_be_evaluated_fails_its_step(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", "")));
    s->script.cannot_be_evaluated[0] = true;
    go(s, RUN_FAILED, "start +a fail");
    assert_step(s, "a", STEP_IS_FAILED);
    assert_step(s, "b", STEP_IS_WAITING);
    scripted_run_free(s);
}

/* --- errors that end the run --- */

static void a_failed_step_stops_the_others_and_fails_the_run(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(DIAMOND("", ""));
    go(s, RUN_RUNNING, "start +top .top");
    succeeds(s, "top", RUN_RUNNING, "+left .left +right .right");
    fails(s, "left", RUN_FAILED, "!right fail");
    assert_step(s, "right", STEP_IS_CANCELLED);
    assert_step(s, "bottom", STEP_IS_WAITING);
    assert_int_equal(s->simulated_run.p.stop, STOP_FAILED);
    assert_int_equal(s->simulated_run.p.cause, step_of(s, "left"));
    scripted_run_free(s);
}

static void a_failure_wins_over_steps_that_could_begin(void **state)
{
    (void)state;
    struct scripted_run *s =
        scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", "") "," A_STEP("c", NEEDS("'a'"))));
    go(s, RUN_RUNNING, "start +a .a +b .b");
    job_ends(s, "a", 0, STEP_IS_SUCCEEDED);
    fails(s, "b", RUN_FAILED, "fail");
    scripted_run_free(s);
}

static void every_end_but_success_fails_the_run(void **state)
{
    (void)state;
    static const enum step_status BAD[] = {STEP_IS_FAILED, STEP_IS_TIMED_OUT};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "")));
        go(s, RUN_RUNNING, "start +a .a");
        ends(s, "a", BAD[i], RUN_FAILED, "fail");
        assert_step(s, "a", BAD[i]);
        scripted_run_free(s);
    }
}

static void the_first_of_two_errors_is_the_cause(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", "") "," A_STEP("b", NEEDS(""))));
    go(s, RUN_RUNNING, "start +a .a +b .b");
    job_ends(s, "b", 0, STEP_IS_FAILED);
    job_ends(s, "a", 0, STEP_IS_FAILED);
    go(s, RUN_FAILED, "fail");
    assert_int_equal(s->simulated_run.p.cause, step_of(s, "b"));
    scripted_run_free(s);
}

/* --- on_error: continue --- */

static void a_step_that_may_fail_lets_those_behind_it_go_on(void **state)
{
    (void)state;
    static const enum step_status BAD[] = {STEP_IS_FAILED, STEP_IS_TIMED_OUT};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct scripted_run *s =
            scripted_run_new(STEPS(A_STEP("a", ON_ERROR("continue")) "," A_STEP("b", "")));
        go(s, RUN_RUNNING, "start +a .a");
        ends(s, "a", BAD[i], RUN_RUNNING, "+b .b");
        succeeds(s, "b", RUN_SUCCEEDED, "succeed");
        assert_step(s, "a", BAD[i]);
        scripted_run_free(s);
    }
}

/* --- on_error: a step --- */

#define MENDED                                                                                     \
    STEPS(A_STEP("a", ON_ERROR("mend")) "," A_STEP("b", "") "," A_STEP("mend", "") "," A_STEP("c", \
                                                                                              ""))

static void a_handler_is_cut_off_when_there_is_no_error(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(MENDED);
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b -mend");
    assert_true(state_of(s, "mend")->cut);
    succeeds(s, "b", RUN_RUNNING, "+c .c");
    succeeds(s, "c", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void an_error_leads_to_its_handler_and_cuts_off_what_lies_behind(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(MENDED);
    go(s, RUN_RUNNING, "start +a .a");
    fails(s, "a", RUN_RUNNING, "-b +mend .mend -c");
    assert_true(state_of(s, "b")->cut && state_of(s, "c")->cut);
    succeeds(s, "mend", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_time_out_leads_to_the_handler_as_well(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(MENDED);
    go(s, RUN_RUNNING, "start +a .a");
    ends(s, "a", STEP_IS_TIMED_OUT, RUN_RUNNING, "-b +mend .mend -c");
    scripted_run_free(s);
}

static void a_skipped_step_needs_no_handler(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(MENDED);
    s->script.does_not_hold[step_of(s, "a")] = true;
    go(s, RUN_RUNNING, "start ?a +b .b -mend");
    scripted_run_free(s);
}

static void a_handler_that_fails_fails_the_run(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(MENDED);
    go(s, RUN_RUNNING, "start +a .a");
    fails(s, "a", RUN_RUNNING, "-b +mend .mend -c");
    fails(s, "mend", RUN_FAILED, "fail");
    assert_int_equal(s->simulated_run.p.cause, step_of(s, "mend"));
    scripted_run_free(s);
}

static void a_handler_may_have_a_handler(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", ON_ERROR("first")) "," A_STEP(
        "first", ON_ERROR("second")) "," A_STEP("second", "")));
    go(s, RUN_RUNNING, "start +a .a");
    fails(s, "a", RUN_RUNNING, "+first .first");
    fails(s, "first", RUN_RUNNING, "+second .second");
    succeeds(s, "second", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void without_an_error_handlers_of_handlers_are_cut_off_too(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", ON_ERROR("first")) "," A_STEP(
        "first", ON_ERROR("second")) "," A_STEP("second", "")));
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_SUCCEEDED, "-first -second succeed");
    scripted_run_free(s);
}

/* A step that needs the handler goes on behind it; one that needs both is behind the error. */
static void what_needs_the_handler_goes_on_behind_it(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("a", ON_ERROR("mend")) "," A_STEP("mend", NEEDS("'a'")) "," A_STEP(
            "after", NEEDS("'mend'")) "," A_STEP("both", NEEDS("'a','mend'"))));
    go(s, RUN_RUNNING, "start +a .a");
    fails(s, "a", RUN_RUNNING, "+mend .mend");
    succeeds(s, "mend", RUN_RUNNING, "+after .after -both");
    succeeds(s, "after", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void what_needs_a_handler_that_was_not_wanted_is_cut_off_with_it(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", ON_ERROR("mend")) "," A_STEP(
        "mend", NEEDS("'a'")) "," A_STEP("after", NEEDS("'mend'"))));
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_SUCCEEDED, "-mend -after succeed");
    scripted_run_free(s);
}

static void a_handler_waits_for_what_it_needs(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("a", ON_ERROR("mend")) "," A_STEP("b", "") "," A_STEP("mend", NEEDS("'b'"))));
    go(s, RUN_RUNNING, "start +a .a +b .b");
    fails(s, "a", RUN_RUNNING, "");
    succeeds(s, "b", RUN_RUNNING, "+mend .mend");
    succeeds(s, "mend", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void one_handler_serves_several_steps_and_is_cut_off_when_all_went_well(void **state)
{
    (void)state;
    static const char SHARED[] = STEPS(
        A_STEP("a", ON_ERROR("mend")) "," A_STEP("b", ON_ERROR("mend")) "," A_STEP("mend", ""));
    struct scripted_run *s = scripted_run_new(SHARED);
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    succeeds(s, "b", RUN_SUCCEEDED, "-mend succeed");
    scripted_run_free(s);
    s = scripted_run_new(SHARED);
    go(s, RUN_RUNNING, "start +a .a");
    succeeds(s, "a", RUN_RUNNING, "+b .b");
    fails(s, "b", RUN_RUNNING, "+mend .mend");
    succeeds(s, "mend", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

/* It runs once, when it is known what it is for. */
static void a_handler_of_several_steps_waits_for_all_of_them(void **state)
{
    (void)state;
    static const enum step_status ENDS[] = {STEP_IS_FAILED, STEP_IS_SUCCEEDED};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        struct scripted_run *s =
            scripted_run_new(STEPS(A_STEP("a", ON_ERROR("mend") NEEDS("")) "," A_STEP(
                "b", ON_ERROR("mend")) "," A_STEP("mend", "")));
        go(s, RUN_RUNNING, "start +a .a +b .b");
        fails(s, "b", RUN_RUNNING, "");
        ends(s, "a", ENDS[i], RUN_RUNNING, "+mend .mend");
        succeeds(s, "mend", RUN_SUCCEEDED, "succeed");
        scripted_run_free(s);
    }
}

/* Somebody must see the error. */
static void a_handler_is_called_even_if_what_it_needs_was_cut_off(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("a", ON_ERROR("mend")) "," A_STEP(
        "b", ON_ERROR("other")) "," A_STEP("other", "") "," A_STEP("mend", NEEDS("'b'"))));
    go(s, RUN_RUNNING, "start +a .a +b .b");
    fails(s, "a", RUN_RUNNING, "");
    fails(s, "b", RUN_RUNNING, "+other .other +mend .mend");
    scripted_run_free(s);
}

/* --- maps --- */

static void a_map_keeps_as_many_items_open_as_it_may_and_refills_in_portions(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("m", MAP("8"))));
    s->script.items[0] = 11;
    go(s, RUN_RUNNING, "start +m .m .m .m .m .m .m .m .m");
    job_ends(s, "m", 0, STEP_IS_SUCCEEDED);
    go(s, RUN_RUNNING, ""); /* one alone is not worth reading the items again */
    job_ends(s, "m", 5, STEP_IS_SUCCEEDED);
    go(s, RUN_RUNNING, ".m .m");
    job_ends(s, "m", 9, STEP_IS_SUCCEEDED);
    job_ends(s, "m", 8, STEP_IS_SUCCEEDED);
    go(s, RUN_RUNNING, ".m");
    static const int64_t REST[] = {1, 2, 3, 4, 6, 7};
    for (size_t i = 0; i < ARRAY_LEN(REST); i++) {
        job_ends(s, "m", REST[i], STEP_IS_SUCCEEDED);
        go(s, RUN_RUNNING, "");
    }
    job_ends(s, "m", 10, STEP_IS_SUCCEEDED);
    go(s, RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_map_of_one_at_a_time_goes_in_order(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("m", MAP("1"))));
    s->script.items[0] = 3;
    go(s, RUN_RUNNING, "start +m .m");
    for (int64_t i = 0; i < 2; i++) {
        job_ends(s, "m", i, STEP_IS_SUCCEEDED);
        go(s, RUN_RUNNING, ".m");
    }
    job_ends(s, "m", 2, STEP_IS_SUCCEEDED);
    go(s, RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void a_map_of_nothing_has_succeeded(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("m", MAP("4")) "," A_STEP("b", "")));
    go(s, RUN_RUNNING, "start +m +b .b");
    assert_step(s, "m", STEP_IS_SUCCEEDED);
    assert_int_equal(state_of(s, "m")->first, 0);
    scripted_run_free(s);
}

static void an_item_that_fails_ends_the_others(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("m", MAP("3"))));
    s->script.items[0] = 9;
    go(s, RUN_RUNNING, "start +m .m .m .m");
    job_ends(s, "m", 1, STEP_IS_FAILED);
    go(s, RUN_FAILED, "!m fail");
    assert_int_equal(state_of(s, "m")->over, 3);
    scripted_run_free(s);
}

static void an_item_that_fails_at_once_begins_no_more(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("m", MAP("3"))));
    s->script.items[0] = 9;
    s->script.fails_at_once[0] = true;
    go(s, RUN_FAILED, "start +m .m fail");
    assert_int_equal(state_of(s, "m")->begun, 1);
    scripted_run_free(s);
}

static void items_that_may_fail_are_counted_and_the_map_succeeds(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(STEPS(A_STEP("m", MAP("2") ON_ERROR("continue"))));
    s->script.items[0] = 3;
    go(s, RUN_RUNNING, "start +m .m .m");
    job_ends(s, "m", 0, STEP_IS_FAILED);
    go(s, RUN_RUNNING, ".m");
    job_ends(s, "m", 1, STEP_IS_TIMED_OUT);
    go(s, RUN_RUNNING, "");
    job_ends(s, "m", 2, STEP_IS_SUCCEEDED);
    go(s, RUN_SUCCEEDED, "succeed");
    assert_step(s, "m", STEP_IS_SUCCEEDED);
    assert_int_equal(state_of(s, "m")->failed, 2);
    scripted_run_free(s);
}

/* Before it has items it is a step like any other: its error is not one item's. */
static void a_map_whose_items_cannot_be_evaluated_fails_as_a_whole(void **state)
{
    (void)state;
    struct scripted_run *s =
        scripted_run_new(STEPS(A_STEP("m", MAP("2") ON_ERROR("continue")) "," A_STEP("b", "")));
    s->script.cannot_be_evaluated[0] = true;
    go(s, RUN_RUNNING, "start +m +b .b");
    assert_step(s, "m", STEP_IS_FAILED);
    scripted_run_free(s);
}

static void a_map_whose_error_goes_another_way_ends_its_items_first(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("mend", "") "," A_STEP("m", MAP("2") ON_ERROR("mend")) "," A_STEP("b", "")));
    s->script.items[1] = 5;
    go(s, RUN_RUNNING, "start +m .m .m");
    job_ends(s, "m", 1, STEP_IS_FAILED);
    go(s, RUN_RUNNING, "!m +mend .mend -b");
    succeeds(s, "mend", RUN_SUCCEEDED, "succeed");
    scripted_run_free(s);
}

static void items_get_ordinals_of_their_own_however_the_steps_begin(void **state)
{
    (void)state;
    struct scripted_run *s = scripted_run_new(
        STEPS(A_STEP("m", MAP("2") NEEDS("")) "," A_STEP("n", MAP("2")) "," A_STEP("o", "")));
    s->script.items[0] = 3;
    s->script.items[1] = 4;
    go(s, RUN_RUNNING, "start +m .m .m +n .n .n +o .o");
    assert_int_equal(state_of(s, "m")->first, 1);
    assert_int_equal(state_of(s, "n")->first, 4);
    assert_int_equal(state_of(s, "o")->first, 8);
    assert_int_equal(s->simulated_run.p.jobs, 8);
    assert_int_equal(advance_item(state_of(s, "n"), 3), -1);
    assert_int_equal(advance_item(state_of(s, "n"), 4), 0);
    assert_int_equal(advance_item(state_of(s, "n"), 7), 3);
    assert_int_equal(advance_item(state_of(s, "n"), 8), -1);
    struct step_state none = {.status = STEP_IS_WAITING};
    assert_int_equal(advance_item(&none, 0), -1);
    scripted_run_free(s);
}

/* A turn makes so many jobs, and a step begins only with its first one: what is read from the row
 * in the next turn must not take one for the other. */
static void what_a_turn_has_no_room_for_begins_in_the_next(void **state)
{
    (void)state;
    struct scripted_run *s =
        scripted_run_new(STEPS(A_STEP("m", MAP("4") NEEDS("")) "," A_STEP("b", "")));
    s->script.items[0] = 4;
    s->script.per_turn = 4;
    go(s, RUN_RUNNING, "start +m .m .m .m .m");
    assert_true(s->simulated_run.go_on);
    assert_step(s, "b", STEP_IS_WAITING);
    go(s, RUN_RUNNING, "+b .b");
    assert_false(s->simulated_run.go_on);
    scripted_run_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_goes_step_by_step),
        cmocka_unit_test(a_diamond_joins_when_both_sides_are_settled),
        cmocka_unit_test(independent_steps_begin_together_in_written_order),
        cmocka_unit_test(a_chain_of_steps_that_need_nobody_goes_through_in_one_turn),
        cmocka_unit_test(a_step_whose_condition_does_not_hold_is_skipped_and_those_behind_go_on),
        cmocka_unit_test(a_run_of_nothing_but_skipped_steps_succeeds),
        cmocka_unit_test(a_condition_that_cannot_be_evaluated_fails_its_step),
        cmocka_unit_test(a_failed_step_stops_the_others_and_fails_the_run),
        cmocka_unit_test(a_failure_wins_over_steps_that_could_begin),
        cmocka_unit_test(every_end_but_success_fails_the_run),
        cmocka_unit_test(the_first_of_two_errors_is_the_cause),
        cmocka_unit_test(a_step_that_may_fail_lets_those_behind_it_go_on),
        cmocka_unit_test(a_handler_is_cut_off_when_there_is_no_error),
        cmocka_unit_test(an_error_leads_to_its_handler_and_cuts_off_what_lies_behind),
        cmocka_unit_test(a_time_out_leads_to_the_handler_as_well),
        cmocka_unit_test(a_skipped_step_needs_no_handler),
        cmocka_unit_test(a_handler_that_fails_fails_the_run),
        cmocka_unit_test(a_handler_may_have_a_handler),
        cmocka_unit_test(without_an_error_handlers_of_handlers_are_cut_off_too),
        cmocka_unit_test(what_needs_the_handler_goes_on_behind_it),
        cmocka_unit_test(what_needs_a_handler_that_was_not_wanted_is_cut_off_with_it),
        cmocka_unit_test(a_handler_waits_for_what_it_needs),
        cmocka_unit_test(one_handler_serves_several_steps_and_is_cut_off_when_all_went_well),
        cmocka_unit_test(a_handler_of_several_steps_waits_for_all_of_them),
        cmocka_unit_test(a_handler_is_called_even_if_what_it_needs_was_cut_off),
        cmocka_unit_test(a_map_keeps_as_many_items_open_as_it_may_and_refills_in_portions),
        cmocka_unit_test(a_map_of_one_at_a_time_goes_in_order),
        cmocka_unit_test(a_map_of_nothing_has_succeeded),
        cmocka_unit_test(an_item_that_fails_ends_the_others),
        cmocka_unit_test(an_item_that_fails_at_once_begins_no_more),
        cmocka_unit_test(items_that_may_fail_are_counted_and_the_map_succeeds),
        cmocka_unit_test(a_map_whose_items_cannot_be_evaluated_fails_as_a_whole),
        cmocka_unit_test(a_map_whose_error_goes_another_way_ends_its_items_first),
        cmocka_unit_test(items_get_ordinals_of_their_own_however_the_steps_begin),
        cmocka_unit_test(what_a_turn_has_no_room_for_begins_in_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
