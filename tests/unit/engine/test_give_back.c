/* Jobs are handed to callers that are still there; what did not arrive is given back at once. */
#include "engine/actions.h"

static bool is_here(const struct op *op)
{
    (void)op;
    return true;
}

static bool has_gone(const struct op *op)
{
    (void)op;
    return false;
}

static void wait_init(struct call *c, struct fixture *fixture, const char *worker,
                      bool (*is_there)(const struct op *op))
{
    claim_init(c, fixture, worker, 60000);
    c->op.wait_ms = 30000;
    c->op.is_there = is_there;
}

static void a_job_passes_by_callers_that_have_gone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call gone[2];
    struct call here;
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        wait_init(&gone[i], fixture, "gone", is_here);
        submit(&gone[i]);
    }
    wait_init(&here, fixture, "here", is_here);
    submit(&here);
    struct call look; /* all of them wait once a later op is over */
    claim_init(&look, fixture, "look", 60000);
    must_perform(&look);
    call_release(&look);
    gone[0].op.is_there = gone[1].op.is_there = has_gone;
    (void)start(fixture, "w");
    while (!here.done)
        fixture_round(fixture);
    json_t *jobs = jobs_of(&here);
    assert_int_equal(json_array_size(jobs), 1);
    json_decref(jobs);
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        assert_true(gone[i].done);
        assert_int_equal(gone[i].op.answer.handed.len, 0);
        call_release(&gone[i]);
    }
    call_release(&here);
}

static void a_claim_whose_caller_leaves_is_over_at_once(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call claims[3];
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        wait_init(&claims[i], fixture, "worker", is_here);
        submit(&claims[i]);
    }
    settle(fixture);
    engine_caller_left(fixture->engine, &claims[1].op);
    assert_true(claims[1].done && !claims[0].done && !claims[2].done);
    engine_caller_left(fixture->engine, &claims[2].op);
    assert_true(claims[2].done && !claims[0].done);
    (void)start(fixture, "w");
    while (!claims[0].done)
        fixture_round(fixture);
    assert_true(claims[0].op.answer.handed.len > 0);
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        call_release(&claims[i]);
}

static void a_start_whose_caller_leaves_no_longer_waits_for_the_end(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call begun[2];
    for (size_t i = 0; i < ARRAY_LEN(begun); i++) {
        start_init(&begun[i], fixture, "w");
        begun[i].op.wait_ms = 20000;
        submit(&begun[i]);
    }
    settle(fixture);
    assert_true(!begun[0].done && !begun[1].done);
    engine_caller_left(fixture->engine, &begun[1].op);
    assert_true(begun[1].done && !begun[0].done);
    assert_false(begun[1].op.answer.run_over);
    engine_caller_left(fixture->engine, &begun[0].op);
    assert_true(begun[0].done);
    for (size_t i = 0; i < ARRAY_LEN(begun); i++)
        call_release(&begun[i]);
}

static void an_op_that_does_not_wait_is_left_alone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call begun;
    start_init(&begun, fixture, "w");
    submit(&begun);
    engine_caller_left(fixture->engine, &begun.op);
    while (!begun.done)
        fixture_round(fixture);
    assert_int_equal(begun.op.err, ERR_OK);
    call_release(&begun);
}

static void what_did_not_arrive_is_claimed_by_another_as_the_first_attempt(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call lost;
    for (int i = 0; i < 3; i++)
        (void)start(fixture, "w");
    claim_init(&lost, fixture, "lost", 60000);
    lost.input.claim.max = 3;
    must_perform(&lost);
    assert_nothing_to_claim(fixture);
    engine_give_back(fixture->engine, &lost.op);
    engine_give_back(fixture->engine, &lost.op); /* once is enough */
    call_release(&lost);
    struct held held[3];
    while (!engine_idle(fixture->engine))
        fixture_round(fixture);
    assert_int_equal(claim_many(fixture, 60000, 3, held), 3);
    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        assert_int_equal(held[i].attempt, 1);
}

static void under_a_key_nothing_is_given_back(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    (void)start(fixture, "w");
    struct call lost;
    claim_init(&lost, fixture, "lost", 60000);
    call_key(&lost, "key", "{}");
    must_perform(&lost);
    engine_give_back(fixture->engine, &lost.op);
    while (!engine_idle(fixture->engine)) /* the engine may be at something of its own */
        fixture_round(fixture);
    assert_nothing_to_claim(fixture);
    call_release(&lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_job_passes_by_callers_that_have_gone),
        fixture_test(a_claim_whose_caller_leaves_is_over_at_once),
        fixture_test(a_start_whose_caller_leaves_no_longer_waits_for_the_end),
        fixture_test(an_op_that_does_not_wait_is_left_alone),
        fixture_test(what_did_not_arrive_is_claimed_by_another_as_the_first_attempt),
        fixture_test(under_a_key_nothing_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
