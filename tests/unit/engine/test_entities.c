/* Entities under a clock that the test moves: signals, calls, timers, roll-over, the end. */
#include "engine/entity_actions.h"

static void the_first_signal_creates_the_entity(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    assert_null(show_entity(fixture, "a"));
    struct sent first = must_send(fixture, "a", "k1", 3);
    assert_int_equal(first.seq, 1);
    assert_false(first.duplicate);
    assert_entity_is(fixture, "a", "waiting");
    assert_int_equal(entity_number(fixture, "a", "inbox"), 1);
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_entity_is(fixture, "a", "idle");
    assert_int_equal(state_number(fixture, "a", "sum"), 3);
    assert_int_equal(entity_number(fixture, "a", "version"), 1);
}

static void a_signal_for_an_unknown_type_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(send_signal(fixture, "a", "k", 1).err, ERR_ENTITY_TYPE_NOT_FOUND);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entities"), 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM dedup"), 0);
}

static void a_duplicate_changes_no_row(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", "k1", 3);
    json_t *before = show_entity(fixture, "a");
    fixture_pass_ms(fixture, 5000);
    settle(fixture); /* what the writer counts by itself is written */
    struct call probe;
    call_init(&probe, fixture, &UC_PROBE);
    must_perform(&probe);
    int64_t changes = probe.changes;
    struct sent again = must_send(fixture, "a", "k1", 3);
    must_perform(&probe);
    assert_true(again.duplicate);
    assert_int_equal(again.seq, 1);
    assert_int_equal(probe.changes, changes);
    call_release(&probe);
    json_t *after = show_entity(fixture, "a");
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    assert_int_equal(send_signal(fixture, "a", "k1", 4).err, ERR_IDEM_KEY_REUSED);
}

static void a_full_inbox_refuses_and_takes_again(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'max_inbox':2");
    (void)must_send(fixture, "a", "k1", 1);
    (void)must_send(fixture, "a", "k2", 1);
    assert_int_equal(send_signal(fixture, "a", "k3", 1).err, ERR_INBOX_FULL);
    assert_true(must_send(fixture, "a", "k2", 1).duplicate); /* a replay needs no room */
    (void)handle_all(fixture, "");
    assert_int_equal(must_send(fixture, "a", "k3", 1).seq, 3);
}

/* --- calls --- */

static void one_call_at_a_time_for_one_entity_and_many_for_many(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)must_send(fixture, "b", NULL, 1);
    struct handed first = claim_call(fixture, 30000);
    struct handed second = claim_call(fixture, 30000);
    assert_non_null(first.job);
    assert_non_null(second.job);
    (void)must_send(fixture, "a", NULL, 1); /* while its call is under way */
    assert_null(claim_call(fixture, 30000).job);
    char answer[512];
    sum_up(&first, "", answer);
    assert_int_equal(finish_call(fixture, &first, answer, true), ERR_OK);
    struct handed next = claim_call(fixture, 30000);
    assert_non_null(next.job);
    json_decref(first.job);
    json_decref(second.job);
    json_decref(next.job);
}

/* An old entity with much to do must not keep the young ones waiting. */
static void calls_are_handed_out_in_the_order_of_their_making(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'max_batch':1");
    static const char *const IDS[] = {"old", "young"};
    for (size_t i = 0; i < ARRAY_LEN(IDS); i++) {
        (void)must_send(fixture, IDS[i], NULL, 1);
        (void)must_send(fixture, IDS[i], NULL, 1);
        (void)must_send(fixture, IDS[i], NULL, 1);
        fixture_pass_ms(fixture, 10);
    }
    for (size_t i = 0; i < 6; i++) {
        struct handed h = claim_call(fixture, 30000);
        assert_non_null(h.job);
        const json_t *id = json_object_get(json_object_get(h.input, "entity"), "id");
        assert_string_equal(json_string_value(id), IDS[i % 2]);
        char answer[512];
        sum_up(&h, "", answer);
        fixture_pass_ms(fixture, 10);
        assert_int_equal(finish_call(fixture, &h, answer, true), ERR_OK);
        json_decref(h.job);
    }
}

static void every_attempt_is_given_the_same_batch(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)must_send(fixture, "a", NULL, 2);
    struct handed lost = claim_call(fixture, 1000);
    assert_int_equal(json_array_size(json_object_get(lost.input, "signals")), 2);
    (void)must_send(fixture, "a", NULL, 4); /* is for the next call */
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    struct handed again = claim_call(fixture, 1000);
    assert_non_null(again.job);
    assert_true(uuid_eq(again.id, lost.id));
    assert_int_equal(json_integer_value(json_object_get(again.job, "attempt")), 2);
    assert_true(json_equal(json_object_get(again.input, "signals"),
                           json_object_get(lost.input, "signals")));
    assert_true(json_is_true(json_object_get(again.input, "more")));
    char answer[512];
    sum_up(&again, "", answer);
    assert_int_equal(finish_call(fixture, &lost, answer, true), ERR_LEASE_LOST);
    assert_int_equal(entity_number(fixture, "a", "version"), 0);
    assert_int_equal(finish_call(fixture, &again, answer, true), ERR_OK);
    assert_int_equal(finish_call(fixture, &again, answer, true), ERR_OK); /* its retry */
    assert_int_equal(entity_number(fixture, "a", "version"), 1);
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_int_equal(state_number(fixture, "a", "sum"), 7);
    json_decref(lost.job);
    json_decref(again.job);
}

static void a_batch_is_as_large_as_the_type_says(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'max_batch':3");
    for (int i = 0; i < 7; i++)
        (void)must_send(fixture, "a", NULL, 1);
    assert_int_equal(handle_all(fixture, ""), 3);
    assert_int_equal(state_number(fixture, "a", "count"), 7);
}

static void a_failure_is_tried_again_until_it_works(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'retry':{'backoff_ms':100,'max_backoff_ms':100}");
    (void)must_send(fixture, "a", NULL, 1);
    for (int i = 0; i < 30; i++) {
        struct handed h = claim_call(fixture, 30000);
        assert_non_null(h.job);
        assert_int_equal(finish_call(fixture, &h, NULL, true), ERR_OK);
        assert_int_equal(finish_call(fixture, &h, NULL, true), ERR_OK); /* its retry */
        fixture_pass_ms(fixture, 101);
        settle(fixture);
        assert_int_equal(finish_call(fixture, &h, NULL, true), ERR_OK); /* a late one */
        json_decref(h.job);
        assert_entity_is(fixture, "a", "waiting");
    }
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_int_equal(state_number(fixture, "a", "sum"), 1);
}

static void a_call_that_cannot_succeed_blocks_until_somebody_retries_it(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = claim_call(fixture, 30000);
    assert_int_equal(finish_call(fixture, &h, NULL, false), ERR_OK);
    assert_entity_is(fixture, "a", "blocked");
    (void)must_send(fixture, "a", NULL, 2); /* waits, and is not lost */
    assert_null(claim_call(fixture, 30000).job);
    struct get_job_input dead = {h.id};
    struct call c;
    call_init(&c, fixture, &UC_DROP_DEAD);
    c.op.input = &dead;
    assert_int_equal(perform(&c), ERR_ENTITY_CALL_KEPT); /* its signals would be lost */
    call_release(&c);
    call_init(&c, fixture, &UC_RETRY_DEAD);
    c.op.input = &dead;
    must_perform(&c);
    call_release(&c);
    assert_int_equal(handle_all(fixture, ""), 2);
    assert_int_equal(state_number(fixture, "a", "sum"), 3);
    json_decref(h.job);
}

static void an_answer_that_cannot_be_applied_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = claim_call(fixture, 30000);
    static const char *const WRONG[] = {
        "[]",
        "{\"state\":1,\"stat\":2}",
        "{\"set_timers\":[{\"name\":\"t\"}]}",
        "{\"set_timers\":[{\"name\":\"t\",\"in_ms\":1,\"at\":\"2026-01-01T00:00:00Z\"}]}",
        "{\"set_timers\":[{\"name\":\"t\",\"in_ms\":1},{\"name\":\"t\",\"in_ms\":2}]}",
        "{\"set_timers\":[{\"name\":\"t\",\"in_ms\":1}],\"cancel_timers\":[\"t\"]}",
        "{\"emit\":[{\"event\":\"run.succeeded\"}]}",
        "{\"start\":[{\"workflow_id\":\"\"}]}",
        "{\"results\":[{\"seq\":1,\"result\":1}]}", /* a signal is no update */
        "{\"results\":[{\"seq\":99}]}",
        "{\"finished\":1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
        if (finish_call(fixture, &h, WRONG[i], true) != ERR_ANSWER_INVALID)
            fail_msg("%s was taken", WRONG[i]);
    }
    assert_int_equal(entity_number(fixture, "a", "inbox"), 1);
    char answer[512];
    sum_up(&h, "", answer);
    assert_int_equal(finish_call(fixture, &h, answer, true), ERR_OK);
    json_decref(h.job);
}

/* --- timers --- */

static void a_timer_fires_once_at_its_time_across_roll_overs_restarts_and_clock_jumps(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'rollover_events':4");
    int64_t due = fixture_now_ms(fixture) + 3600000;
    struct buf more;
    buf_init(&more, KIB);
    buf_put(&more, STR(",\"set_timers\":[{\"name\":\"idle\",\"at\":\""));
    buf_put_time(&more, due);
    buf_put(&more, STR("\",\"payload\":7}]"));
    (void)must_send(fixture, "a", NULL, 1);
    assert_int_equal(handle_all(fixture, more.ptr), 1);
    buf_release(&more);
    for (int i = 0; i < 20; i++) { /* roll-overs, and restarts in between */
        (void)must_send(fixture, "a", NULL, 1);
        (void)handle_all(fixture, "");
        if (i % 5 == 4) {
            fixture_stop(fixture);
            fixture_start(fixture, 0);
        }
    }
    assert_true(entity_number(fixture, "a", "generation") > 5);
    fixture_set_wall_ms(fixture, due - 1); /* the wall clock is set, to just before it */
    settle(fixture);
    assert_entity_is(fixture, "a", "idle");
    fixture_set_wall_ms(fixture, due - 7200000); /* and far back */
    settle(fixture);
    assert_entity_is(fixture, "a", "idle");
    fixture_set_wall_ms(fixture, due + 86400000); /* and a day past it */
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    struct handed h = claim_call(fixture, 30000);
    assert_non_null(h.job);
    const json_t *timers = json_object_get(h.input, "timers");
    assert_int_equal(json_array_size(timers), 1);
    const json_t *timer = json_array_get(timers, 0);
    assert_string_equal(json_string_value(json_object_get(timer, "name")), "idle");
    assert_int_equal(json_integer_value(json_object_get(timer, "payload")), 7);
    char answer[512];
    sum_up(&h, "", answer);
    assert_int_equal(finish_call(fixture, &h, answer, true), ERR_OK);
    json_decref(h.job);
    fixture_set_wall_ms(fixture, due - 10); /* its time comes a second time */
    settle(fixture);
    fixture_set_wall_ms(fixture, due + 10);
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_null(claim_call(fixture, 30000).job);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entity_timers"), 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers"), 0);
}

static void a_timer_that_is_set_again_replaces_the_one_before(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    for (int i = 0; i < 3; i++) {
        (void)must_send(fixture, "a", NULL, 1);
        (void)handle_all(fixture, ",\"set_timers\":[{\"name\":\"idle\",\"in_ms\":1000}]");
        fixture_pass_ms(fixture, 900);
        settle(fixture);
    }
    assert_entity_is(fixture, "a", "idle");
    fixture_pass_ms(fixture, 101);
    settle(fixture);
    assert_int_equal(handle_all(fixture, ""), 1);
    fixture_pass_ms(fixture, 5000);
    settle(fixture);
    assert_int_equal(handle_all(fixture, ""), 0);
}

static void a_cancelled_timer_does_not_fire(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, ",\"set_timers\":[{\"name\":\"t\",\"in_ms\":1000}]");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, ",\"cancel_timers\":[\"t\",\"never-was\"]");
    fixture_pass_ms(fixture, 2000);
    settle(fixture);
    assert_entity_is(fixture, "a", "idle");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers"), 0);
}

static void a_timer_that_falls_due_during_a_call_is_the_next_calls(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, ",\"set_timers\":[{\"name\":\"t\",\"in_ms\":1000}]");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = claim_call(fixture, 60000);
    assert_int_equal(json_array_size(json_object_get(h.input, "timers")), 0);
    fixture_pass_ms(fixture, 2000);
    settle(fixture);
    char answer[512];
    sum_up(&h, "", answer);
    assert_int_equal(finish_call(fixture, &h, answer, true), ERR_OK);
    json_decref(h.job);
    h = claim_call(fixture, 60000);
    assert_non_null(h.job);
    assert_int_equal(json_array_size(json_object_get(h.input, "timers")), 1);
    json_decref(h.job);
}

/* --- roll-over --- */

static void the_history_rolls_over_and_nothing_is_lost(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'rollover_events':10,'keep_generations':1000");
    for (int i = 0; i < 100; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%d", i);
        (void)must_send(fixture, "a", key, 1);
        if (i % 3 == 0)
            (void)handle_all(fixture, "");
    }
    (void)handle_all(fixture, "");
    assert_int_equal(state_number(fixture, "a", "sum"), 100);
    int64_t generation = entity_number(fixture, "a", "generation");
    assert_true(generation >= 10);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entity_generations"), generation);
    /* Every event is there, once, across all of them. */
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events"),
                     entity_number(fixture, "a", "events"));
    assert_true(must_send(fixture, "a", "k0", 1).duplicate);
}

static void signals_that_nobody_handles_roll_over_too(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'rollover_events':5");
    for (int i = 0; i < 50; i++)
        (void)must_send(fixture, "a", NULL, 1);
    assert_true(entity_number(fixture, "a", "generation") >= 10);
    assert_int_equal(entity_number(fixture, "a", "inbox"), 50);
    (void)handle_all(fixture, "");
    assert_int_equal(state_number(fixture, "a", "sum"), 50);
}

/* --- the end, and after --- */

static void a_finished_entity_is_opened_again_by_the_next_signal(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", "k1", 5);
    (void)handle_all(fixture, ",\"finished\":true,\"set_timers\":[{\"name\":\"t\",\"in_ms\":1}]");
    assert_entity_is(fixture, "a", "finished");
    assert_int_equal(state_number(fixture, "a", "sum"), 5);
    assert_true(must_send(fixture, "a", "k1", 5).duplicate); /* its keys are known still */
    assert_entity_is(fixture, "a", "finished");
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_entity_is(fixture, "a", "finished"); /* its timers are gone */
    (void)must_send(fixture, "a", "k2", 2);
    assert_entity_is(fixture, "a", "waiting");
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_int_equal(state_number(fixture, "a", "sum"), 2);
}

static void a_signal_that_waits_when_its_entity_finishes_opens_it_again(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 5);
    struct handed h = claim_call(fixture, 30000);
    (void)must_send(fixture, "a", NULL, 2);
    assert_int_equal(finish_call(fixture, &h, "{\"state\":{\"sum\":5},\"finished\":true}", true),
                     ERR_OK);
    json_decref(h.job);
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_int_equal(state_number(fixture, "a", "sum"), 2);
}

static void a_deleted_entity_is_gone_with_its_call(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", "k", 1);
    (void)handle_all(fixture, ",\"set_timers\":[{\"name\":\"t\",\"in_ms\":1000}]");
    (void)must_send(fixture, "a", "k2", 1);
    struct handed h = claim_call(fixture, 30000);
    struct call c;
    call_init(&c, fixture, &UC_DELETE_ENTITY);
    struct entity_input in = {COUNTER, STR("a")};
    c.op.input = &in;
    must_perform(&c);
    assert_int_equal(perform(&c), ERR_ENTITY_NOT_FOUND);
    call_release(&c);
    assert_int_equal(finish_call(fixture, &h, "{}", true), ERR_JOB_NOT_FOUND);
    json_decref(h.job);
    assert_int_equal(must_send(fixture, "a", "k", 9).seq, 1); /* another one of the same name */
    (void)handle_all(fixture, "");
    assert_int_equal(state_number(fixture, "a", "sum"), 9);
    fixture_pass_ms(fixture, 100000);
    settle(fixture);
    assert_entity_is(fixture, "a", "idle");
}

/* --- runs that it starts --- */

static void runs_that_an_answer_wants_are_started_once(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    put_workflow(fixture, "w", "{'steps':[{'name':'s','type':'sleep','duration_ms':1000000}]}");
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, ",\"start\":[{\"workflow_id\":\"w\",\"input\":{\"x\":1}},"
                              "{\"workflow_id\":\"nowhere\"},{\"workflow_id\":\"w\"}]");
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(
        in_file(fixture, "SELECT count(*) FROM events WHERE type = 'entity.run_refused'"), 1);
    fixture_stop(fixture); /* the third waits for the limit, across a restart */
    fixture_start(fixture, 0);
    put_tenant(fixture, "{'max_concurrent_runs':2}");
    fixture_pass_ms(fixture, 120000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 2);
    assert_int_equal(
        in_file(fixture, "SELECT count(*) FROM events WHERE type = 'entity.run_started'"), 2);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entity_starts"), 0);
}

static void however_many_runs_wait_for_a_limit_one_timer_looks_after_them(void **state)
{
    struct fixture *fixture = *state;
    enum { ANSWERS = 10 };
    count_with(fixture, "");
    put_workflow(fixture, "w", "{'steps':[{'name':'s','type':'wait_signal','signal':'never'}]}");
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    (void)start(fixture, "w");
    for (int i = 0; i < ANSWERS; i++) {
        (void)must_send(fixture, "a", NULL, 1);
        (void)handle_all(fixture, ",\"start\":[{\"workflow_id\":\"w\"}]");
        settle(fixture);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entity_starts"), ANSWERS);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers WHERE ordinal = -3"), 1);
    put_tenant(fixture, "{'max_concurrent_runs':null}");
    fixture_pass_ms(fixture, 60000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1 + ANSWERS);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers WHERE ordinal = -3"), 0);
}

/* --- damage --- */

static void an_entity_of_another_tenant_than_its_type_is_damage(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "ann", NULL, 1);
    fixture_stop(fixture);
    struct raw raw = raw_open(fixture->file.text);
    raw_exec(&raw, "UPDATE entities SET tenant = tenant + 1000");
    raw_close(&raw);
    fixture_start(fixture, 0);
    assert_int_equal(send_signal(fixture, "ann", NULL, 2).err, ERR_DAMAGED);
    assert_int_equal(send_signal(fixture, "bob", NULL, 2).err, ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(the_first_signal_creates_the_entity),
        fixture_test(a_signal_for_an_unknown_type_leaves_nothing),
        fixture_test(a_duplicate_changes_no_row),
        fixture_test(a_full_inbox_refuses_and_takes_again),
        fixture_test(one_call_at_a_time_for_one_entity_and_many_for_many),
        fixture_test(calls_are_handed_out_in_the_order_of_their_making),
        fixture_test(every_attempt_is_given_the_same_batch),
        fixture_test(a_batch_is_as_large_as_the_type_says),
        fixture_test(a_failure_is_tried_again_until_it_works),
        fixture_test(a_call_that_cannot_succeed_blocks_until_somebody_retries_it),
        fixture_test(an_answer_that_cannot_be_applied_changes_nothing),
        fixture_test(a_timer_fires_once_at_its_time_across_roll_overs_restarts_and_clock_jumps),
        fixture_test(a_timer_that_is_set_again_replaces_the_one_before),
        fixture_test(a_cancelled_timer_does_not_fire),
        fixture_test(a_timer_that_falls_due_during_a_call_is_the_next_calls),
        fixture_test(the_history_rolls_over_and_nothing_is_lost),
        fixture_test(signals_that_nobody_handles_roll_over_too),
        fixture_test(a_finished_entity_is_opened_again_by_the_next_signal),
        fixture_test(a_signal_that_waits_when_its_entity_finishes_opens_it_again),
        fixture_test(a_deleted_entity_is_gone_with_its_call),
        fixture_test(runs_that_an_answer_wants_are_started_once),
        fixture_test(however_many_runs_wait_for_a_limit_one_timer_looks_after_them),
        fixture_test(an_entity_of_another_tenant_than_its_type_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
