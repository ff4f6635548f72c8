/* What a run that waits says of the queue that its step lies in. */
#include "engine/acts.h"

static void assert_summary(struct rig *rig, struct uuid run, const char *expected)
{
    struct call c;
    call_init(&c, rig, &UC_WHY_RUN);
    c.input.run.run_id = run;
    must_perform(&c);
    json_t *answer = parsed_str(buf_str(&c.op.answer.body));
    assert_string_equal(json_string_value(json_object_get(answer, "summary")), expected);
    json_decref(answer);
    call_release(&c);
}

static void poll_once(struct rig *rig)
{
    struct call c;
    claim_init(&c, rig, "w1", 600000);
    must_perform(&c);
    call_release(&c);
}

static void a_queue_that_was_polled_once_says_how_long_ago(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", "{'steps':[" TASK_STEP("dig", "") "]}");
    rig_pass_ms(rig, 7000);
    struct uuid taken = start(rig, "w");
    assert_summary(rig, taken,
                   "Step dig is waiting for a worker. No worker has polled queue default since the "
                   "server started 7 s ago.");
    poll_once(rig);
    struct uuid run = start(rig, "w");
    assert_summary(rig, run, "Step dig is waiting for a worker on queue default, at position 1.");
    rig_pass_ms(rig, POLLED_LATELY_MS);
    assert_summary(rig, run, "Step dig is waiting for a worker on queue default, at position 1.");
    rig_pass_ms(rig, 35000);
    assert_summary(
        rig, run, "Step dig is waiting for a worker. No worker has polled queue default for 95 s.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_queue_that_was_polled_once_says_how_long_ago),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
