/* Jobs are handed to callers that are still there; what did not arrive is given back at once. */
#include "engine/acts.h"

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

static void wait_init(struct call *c, struct rig *rig, const char *worker,
                      bool (*is_there)(const struct op *op))
{
    claim_init(c, rig, worker, 60000);
    c->op.wait_ms = 30000;
    c->op.is_there = is_there;
}

static void a_job_passes_by_callers_that_have_gone(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call gone[2];
    struct call here;
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        wait_init(&gone[i], rig, "gone", is_here);
        submit(&gone[i]);
    }
    wait_init(&here, rig, "here", is_here);
    submit(&here);
    struct call look; /* all of them wait once a later op is over */
    claim_init(&look, rig, "look", 60000);
    must_perform(&look);
    call_release(&look);
    gone[0].op.is_there = gone[1].op.is_there = has_gone;
    (void)start(rig, "w");
    while (!here.done)
        rig_round(rig);
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

static void what_did_not_arrive_is_claimed_by_another_as_the_first_attempt(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call lost;
    for (int i = 0; i < 3; i++)
        (void)start(rig, "w");
    claim_init(&lost, rig, "lost", 60000);
    lost.input.claim.max = 3;
    must_perform(&lost);
    assert_nothing_to_claim(rig);
    engine_give_back(rig->engine, &lost.op);
    engine_give_back(rig->engine, &lost.op); /* once is enough */
    call_release(&lost);
    struct held held[3];
    while (!engine_idle(rig->engine))
        rig_round(rig);
    assert_int_equal(claim_many(rig, 60000, 3, held), 3);
    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        assert_int_equal(held[i].attempt, 1);
}

static void under_a_key_nothing_is_given_back(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    (void)start(rig, "w");
    struct call lost;
    claim_init(&lost, rig, "lost", 60000);
    call_key(&lost, "key", "{}");
    must_perform(&lost);
    engine_give_back(rig->engine, &lost.op);
    assert_true(engine_idle(rig->engine));
    assert_nothing_to_claim(rig);
    call_release(&lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_job_passes_by_callers_that_have_gone),
        rig_test(what_did_not_arrive_is_claimed_by_another_as_the_first_attempt),
        rig_test(under_a_key_nothing_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
