/* What a run that waits says of the queue that its step lies in. */
#include "engine/actions.h"

static void assert_summary(struct fixture *fixture, struct uuid run, const char *expected)
{
    struct call c;
    call_init(&c, fixture, &UC_WHY_RUN);
    c.input.run.run_id = run;
    must_perform(&c);
    json_t *answer = parsed_str(buf_str(&c.op.answer.body));
    assert_string_equal(json_string_value(json_object_get(answer, "summary")), expected);
    json_decref(answer);
    call_release(&c);
}

static void poll_once(struct fixture *fixture)
{
    struct call c;
    claim_init(&c, fixture, "w1", 600000);
    must_perform(&c);
    call_release(&c);
}

static void a_queue_that_was_polled_once_says_how_long_ago(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("dig", "") "]}");
    fixture_pass_ms(fixture, 7000);
    struct uuid taken = start(fixture, "w");
    assert_summary(fixture, taken,
                   "Step dig is waiting for a worker. No worker has polled queue default since the "
                   "server started 7 s ago.");
    poll_once(fixture);
    struct uuid run = start(fixture, "w");
    assert_summary(fixture, run,
                   "Step dig is waiting for a worker on queue default, at position 1.");
    fixture_pass_ms(fixture, POLLED_LATELY_MS);
    assert_summary(fixture, run,
                   "Step dig is waiting for a worker on queue default, at position 1.");
    fixture_pass_ms(fixture, 35000);
    assert_summary(
        fixture, run,
        "Step dig is waiting for a worker. No worker has polled queue default for 95 s.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_queue_that_was_polled_once_says_how_long_ago),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
