/* Batches on the real engine: rejections leave nothing, and an op that breaks spoils no other. */
#include "engine/fixture.h"

/* --- rejections --- */

static void a_rejected_start_leaves_every_row_as_it_was(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "picky",
                 "{'input_schema':{'type':'object'},'steps':[{'name':'a','type':'task',"
                 "'handler':'h'}]}");
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    struct call holder;
    start_init(&holder, fixture, "w");
    call_key(&holder, "taken", "{}");
    must_perform(&holder);
    settle(fixture);
    static const struct {
        const char *workflow;
        const char *key;
        const char *body;
        bool stranger;
        enum err expected;
    } CASES[] = {
        {"none", "k1", "{}", false, ERR_WORKFLOW_NOT_FOUND},
        {"picky", "k2", "{}", false, ERR_INPUT_INVALID},
        {"w", "k3", "{}", false, ERR_MAX_CONCURRENT_RUNS},
        {"w", "taken", "{\"x\":1}", false, ERR_IDEM_KEY_REUSED},
        {"w", "k4", "{}", true, ERR_TENANT_NOT_FOUND},
        {"w", "", "{}", false, ERR_MAX_CONCURRENT_RUNS},
    };
    struct call probes[ARRAY_LEN(CASES) + 1];
    struct call calls[ARRAY_LEN(CASES)];
    call_init(&probes[0], fixture, &UC_PROBE);
    submit(&probes[0]);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        start_init(&calls[i], fixture, CASES[i].workflow);
        if (CASES[i].key[0] != '\0')
            call_key(&calls[i], CASES[i].key, CASES[i].body);
        if (CASES[i].stranger) {
            calls[i].op.caller.tenant = STR("nobody");
            calls[i].op.caller.creates_tenant = false;
        }
        submit(&calls[i]);
        call_init(&probes[i + 1], fixture, &UC_PROBE);
        submit(&probes[i + 1]);
    }
    wait_done(&probes[0]);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        wait_done(&calls[i]);
        wait_done(&probes[i + 1]);
        if (calls[i].op.err != CASES[i].expected)
            fail_msg("case %zu: %s", i, err_code(calls[i].op.err));
        assert_int_equal(calls[i].op.problem.err, CASES[i].expected);
    }
    /* The first probe may have run inline, before a sweep; the others share a batch. */
    for (size_t i = 2; i < ARRAY_LEN(probes); i++)
        assert_int_equal(probes[i].changes, probes[1].changes);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency"), 1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM tenants WHERE id = 'nobody'"), 0);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        call_release(&calls[i]);
    for (size_t i = 0; i < ARRAY_LEN(probes); i++)
        call_release(&probes[i]);
    call_release(&holder);
}

static void a_batch_admits_exactly_up_to_the_limit(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':5}");
    settle(fixture);
    struct call calls[ONE_BATCH];
    for (size_t i = 0; i < ONE_BATCH; i++) {
        start_init(&calls[i], fixture, "w");
        submit(&calls[i]);
    }
    int admitted = 0;
    for (size_t i = 0; i < ONE_BATCH; i++) {
        wait_done(&calls[i]);
        admitted += calls[i].op.err == ERR_OK;
        if (calls[i].op.err != ERR_OK)
            assert_int_equal(calls[i].op.err, ERR_MAX_CONCURRENT_RUNS);
        call_release(&calls[i]);
    }
    assert_int_equal(admitted, 5);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     5);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 5);
}

/* --- a batch that breaks --- */

/* Writes, and then fails as the store does. */
static enum err run_breaker(struct op *op, struct tx *tx)
{
    static const char SQL[] = "INSERT INTO timers (due_at, run, ordinal, generation)"
                              " VALUES ($1, 1, 1, 1)";
    struct call *c = CONTAINER_OF(op, struct call, op);
    c->runs++;
    enum err e = DB_EXEC(tx->db, SQL, NULL, DB_I(INT64_MAX));
    return problem_set(&op->problem, e == ERR_OK ? ERR_INTERNAL : e, "broken on purpose");
}

static const struct use_case UC_BREAKER = {.name = "test_breaker", .write = run_breaker};

static void one_op_that_breaks_does_not_take_the_batch_with_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    struct call calls[ONE_BATCH];
    for (size_t i = 0; i < ONE_BATCH; i++) {
        char key[16];
        if (i == 4) {
            call_init(&calls[i], fixture, &UC_BREAKER);
        } else {
            start_init(&calls[i], fixture, "w");
            (void)snprintf(key, sizeof(key), "key-%zu", i);
            memcpy(calls[i].text, key, sizeof(key));
            call_key(&calls[i], calls[i].text, "{}");
        }
        submit(&calls[i]);
    }
    for (size_t i = 0; i < ONE_BATCH; i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, i == 4 ? ERR_INTERNAL : ERR_OK);
    }
    assert_int_equal(calls[4].runs, 2); /* with the others, then alone */
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers"), 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), ONE_BATCH - 1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency"), ONE_BATCH - 1);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     ONE_BATCH - 1);
    assert_false(engine_failed(fixture->engine));
    /* What was answered is what was kept. */
    for (size_t i = 0; i < ONE_BATCH; i++) {
        if (i != 4)
            assert_run_is(fixture, calls[i].op.answer.run_id, "running");
        call_release(&calls[i]);
    }
    (void)start(fixture, "w");
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     ONE_BATCH);
}

static void a_replay_in_a_batch_that_breaks_is_counted_once(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call first;
    start_init(&first, fixture, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    settle(fixture);
    struct call calls[3];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (i == 2) {
            call_init(&calls[i], fixture, &UC_BREAKER);
        } else {
            start_init(&calls[i], fixture, "w");
            call_key(&calls[i], "key", i == 0 ? "{}" : "{\"other\":1}");
        }
        submit(&calls[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        wait_done(&calls[i]);
    assert_true(calls[0].op.answer.replayed);
    assert_int_equal(calls[1].op.err, ERR_IDEM_KEY_REUSED);
    assert_int_equal(calls[2].op.err, ERR_INTERNAL);
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT replays FROM idempotency"), 1);
    assert_int_equal(in_file(fixture, "SELECT mismatches FROM idempotency"), 1);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        call_release(&calls[i]);
    call_release(&first);
}

/* Writes, and is then refused as if it had not. */
static enum err run_half(struct op *op, struct tx *tx)
{
    (void)run_breaker(op, tx);
    return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "refused on purpose");
}

static const struct use_case UC_HALF = {.name = "test_half", .write = run_half};

/* Wants more memory than one operation may take. */
static enum err run_glutton(struct op *op, struct tx *tx)
{
    (void)run_breaker(op, tx);
    bool fits = arena_alloc(&tx->arena, OP_BYTES_MAX) != NULL &&
                arena_alloc(&tx->arena, OP_BYTES_MAX) != NULL;
    return fits ? ERR_OK : problem_set(&op->problem, ERR_NO_MEMORY, "no memory");
}

static const struct use_case UC_GLUTTON = {.name = "test_glutton", .write = run_glutton};

static void assert_one_spoils_nothing(struct fixture *fixture, const struct use_case *spoiler,
                                      enum err e)
{
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    struct call calls[ONE_BATCH];
    for (size_t i = 0; i < ONE_BATCH; i++) {
        if (i == 4)
            call_init(&calls[i], fixture, spoiler);
        else
            start_init(&calls[i], fixture, "w");
        submit(&calls[i]);
    }
    for (size_t i = 0; i < ONE_BATCH; i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, i == 4 ? e : ERR_OK);
        call_release(&calls[i]);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), ONE_BATCH - 1);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     ONE_BATCH - 1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers"), 0);
}

static void a_refusal_that_has_changed_rows_is_rolled_back_alone_and_is_no_abort(void **state)
{
    assert_one_spoils_nothing(*state, &UC_HALF, ERR_INTERNAL);
}

static void an_op_that_needs_too_much_memory_is_refused_alone(void **state)
{
    assert_one_spoils_nothing(*state, &UC_GLUTTON, ERR_TOO_LARGE);
}

/* --- many items in one op: each is done whole or not at all --- */

/* Odd items fail after they have written. */
static enum err run_items(struct op *op, struct tx *tx)
{
    static const char SQL[] = "INSERT INTO timers (due_at, run, ordinal, generation)"
                              " VALUES ($1, $2, 1, 1)";
    struct call *c = CONTAINER_OF(op, struct call, op);
    c->runs++;
    for (int64_t item = 0; item < 6; item++) {
        if (op_failed_item(op, item) != NULL)
            continue;
        enum err e = DB_EXEC(tx->db, SQL, NULL, DB_I(INT64_MAX), DB_I(item));
        if (e == ERR_OK && item % 2 == 1)
            e = op_fail_item(op, item, problem_set(&op->problem, ERR_RUN_NOT_FOUND, "odd"));
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static const struct use_case UC_ITEMS = {.name = "test_items", .write = run_items};

static void items_that_fail_half_way_leave_nothing_and_the_others_are_done(void **state)
{
    struct fixture *fixture = *state;
    struct call calls[3];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        call_init(&calls[i], fixture, i == 1 ? &UC_ITEMS : &UC_PROBE);
        submit(&calls[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, ERR_OK);
    }
    assert_int_equal(calls[1].op.failed_item_count, 3);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers"), 3);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers WHERE run % 2 = 1"), 0);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        call_release(&calls[i]);
}

static void an_op_that_breaks_alone_gets_its_error(void **state)
{
    struct fixture *fixture = *state;
    struct call c;
    call_init(&c, fixture, &UC_BREAKER);
    call_key(&c, "key", "{}");
    assert_int_equal(perform(&c), ERR_INTERNAL);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM timers"), 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency"), 0);
    call_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_rejected_start_leaves_every_row_as_it_was),
        fixture_test(a_batch_admits_exactly_up_to_the_limit),
        fixture_test(one_op_that_breaks_does_not_take_the_batch_with_it),
        fixture_test(a_replay_in_a_batch_that_breaks_is_counted_once),
        fixture_test(a_refusal_that_has_changed_rows_is_rolled_back_alone_and_is_no_abort),
        fixture_test(an_op_that_needs_too_much_memory_is_refused_alone),
        fixture_test(items_that_fail_half_way_leave_nothing_and_the_others_are_done),
        fixture_test(an_op_that_breaks_alone_gets_its_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
