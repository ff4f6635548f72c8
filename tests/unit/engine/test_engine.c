/* The engine as a whole: batches, idempotency, rejections, waiting, draining. */
#include "engine/rig.h"

#include "runtime/writer.h"

enum { MANY = 12 }; /* fewer than the loop hands over before its round ends: one batch */

/* --- one key, one run --- */

static void starts_with_one_key_at_once_make_one_run(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    settle(rig);
    struct call calls[3 * MANY];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        start_init(&calls[i], rig, "w");
        call_key(&calls[i], "key", "{}");
        submit(&calls[i]);
        if (i % MANY == 0)
            engine_round_end(rig->engine); /* some land in other batches */
    }
    int created = 0;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, ERR_OK);
        assert_true(uuid_eq(calls[i].op.answer.run_id, calls[0].op.answer.run_id));
        assert_true(
            str_eq(answer_to_keep(&calls[i].op.answer), answer_to_keep(&calls[0].op.answer)));
        created += calls[i].op.answer.created == CREATED_YES;
        assert_int_equal(calls[i].op.answer.replayed, calls[i].op.answer.created != CREATED_YES);
    }
    assert_int_equal(created, 1);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM idempotency"), 1);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants WHERE id = 'acme'"), 1);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        call_release(&calls[i]);
}

static void another_request_under_a_known_key_is_refused_and_the_first_unharmed(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    settle(rig);
    struct call calls[3];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        start_init(&calls[i], rig, "w");
        call_key(&calls[i], "key", i == 1 ? "{\"other\":1}" : "{}");
        submit(&calls[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        wait_done(&calls[i]);
    assert_int_equal(calls[0].op.err, ERR_OK);
    assert_int_equal(calls[1].op.err, ERR_IDEM_KEY_REUSED);
    assert_int_equal(calls[2].op.err, ERR_OK);
    assert_true(calls[2].op.answer.replayed);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), 1);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        call_release(&calls[i]);
}

static void keys_outlive_the_engine(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call first;
    start_init(&first, rig, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    rig_stop(rig);
    rig_start(rig, 0);
    struct call again;
    start_init(&again, rig, "w");
    call_key(&again, "key", "{}");
    must_perform(&again);
    assert_true(again.op.answer.replayed);
    assert_true(uuid_eq(again.op.answer.run_id, first.op.answer.run_id));
    call_release(&first);
    call_release(&again);
}

static void a_key_past_its_time_starts_anew_and_is_evicted(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    put_tenant(rig, "{'idempotency_retention_s':10}");
    struct call first;
    start_init(&first, rig, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    rig_pass_ms(rig, 9999);
    struct call again;
    start_init(&again, rig, "w");
    call_key(&again, "key", "{}");
    must_perform(&again);
    assert_true(again.op.answer.replayed);
    rig_set_wall_ms(rig, rig_now_ms(rig) + 1); /* no sweep: the old record is still there */
    must_perform(&again);
    assert_false(again.op.answer.replayed);
    assert_false(uuid_eq(again.op.answer.run_id, first.op.answer.run_id));
    assert_int_equal(in_file(rig, "SELECT count(*) FROM idempotency"), 1);
    rig_pass_ms(rig, 10000);
    settle(rig);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM idempotency"), 0);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM idempotency_index"), 0);
    call_release(&first);
    call_release(&again);
}

static void a_known_key_is_answered_without_the_writer(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call first;
    start_init(&first, rig, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    rig_pass_ms(rig, 1000); /* the sweep puts the key into the index */
    settle(rig);
    struct call again;
    start_init(&again, rig, "w");
    call_key(&again, "key", "{}");
    again.op.idem.has_fingerprint = false; /* bytes alone will do */
    assert_true(engine_replay(rig->engine, &again.op));
    submit(&again);
    assert_true(again.done); /* at once */
    assert_int_equal(again.op.err, ERR_OK);
    assert_true(again.op.answer.replayed);
    assert_true(str_eq(answer_to_keep(&again.op.answer), answer_to_keep(&first.op.answer)));
    struct call other;
    start_init(&other, rig, "w");
    call_key(&other, "key", "{ }");
    other.op.idem.has_fingerprint = false;
    assert_false(engine_replay(rig->engine, &other.op)); /* these bytes may mean the same */
    struct call unknown;
    start_init(&unknown, rig, "w");
    call_key(&unknown, "new", "{}");
    assert_false(engine_replay(rig->engine, &unknown.op));
    call_release(&first);
    call_release(&again);
    call_release(&other);
    call_release(&unknown);
}

static void replays_are_counted_with_the_next_sweep(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    settle(rig);
    for (int i = 0; i < 5; i++) {
        struct call c;
        start_init(&c, rig, "w");
        call_key(&c, "key", i == 4 ? "{\"other\":1}" : "{}");
        assert_int_equal(perform(&c), i == 4 ? ERR_IDEM_KEY_REUSED : ERR_OK);
        call_release(&c);
    }
    rig_pass_ms(rig, 1000);
    settle(rig);
    assert_int_equal(in_file(rig, "SELECT replays FROM idempotency"), 3);
    assert_int_equal(in_file(rig, "SELECT mismatches FROM idempotency"), 1);
    assert_int_equal(in_file(rig, "SELECT last_replayed_at FROM idempotency"),
                     rig_now_ms(rig) - 1000);
}

/* --- rejections --- */

static void a_rejected_start_leaves_every_row_as_it_was(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    put_workflow(rig, "picky",
                 "{'input_schema':{'type':'object'},'steps':[{'name':'a','type':'task',"
                 "'handler':'h'}]}");
    put_tenant(rig, "{'max_concurrent_runs':1}");
    struct call holder;
    start_init(&holder, rig, "w");
    call_key(&holder, "taken", "{}");
    must_perform(&holder);
    settle(rig);
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
    call_init(&probes[0], rig, &UC_PROBE);
    submit(&probes[0]);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        start_init(&calls[i], rig, CASES[i].workflow);
        if (CASES[i].key[0] != '\0')
            call_key(&calls[i], CASES[i].key, CASES[i].body);
        if (CASES[i].stranger) {
            calls[i].op.caller.tenant = STR("nobody");
            calls[i].op.caller.creates_tenant = false;
        }
        submit(&calls[i]);
        call_init(&probes[i + 1], rig, &UC_PROBE);
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
    assert_int_equal(in_file(rig, "SELECT count(*) FROM idempotency"), 1);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM tenants WHERE id = 'nobody'"), 0);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        call_release(&calls[i]);
    for (size_t i = 0; i < ARRAY_LEN(probes); i++)
        call_release(&probes[i]);
    call_release(&holder);
}

static void a_batch_admits_exactly_up_to_the_limit(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    put_tenant(rig, "{'max_concurrent_runs':5}");
    settle(rig);
    struct call calls[MANY];
    for (size_t i = 0; i < MANY; i++) {
        start_init(&calls[i], rig, "w");
        submit(&calls[i]);
    }
    int admitted = 0;
    for (size_t i = 0; i < MANY; i++) {
        wait_done(&calls[i]);
        admitted += calls[i].op.err == ERR_OK;
        if (calls[i].op.err != ERR_OK)
            assert_int_equal(calls[i].op.err, ERR_MAX_CONCURRENT_RUNS);
        call_release(&calls[i]);
    }
    assert_int_equal(admitted, 5);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants WHERE id = 'acme'"), 5);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), 5);
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

static const struct use_case UC_BREAKER = {.name = "breaker", .write = run_breaker};

static void one_op_that_breaks_does_not_take_the_batch_with_it(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    settle(rig);
    struct call calls[MANY];
    for (size_t i = 0; i < MANY; i++) {
        char key[16];
        if (i == 4) {
            call_init(&calls[i], rig, &UC_BREAKER);
        } else {
            start_init(&calls[i], rig, "w");
            (void)snprintf(key, sizeof(key), "key-%zu", i);
            memcpy(calls[i].text, key, sizeof(key));
            call_key(&calls[i], calls[i].text, "{}");
        }
        submit(&calls[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, i == 4 ? ERR_INTERNAL : ERR_OK);
    }
    assert_int_equal(calls[4].runs, 2); /* with the others, then alone */
    assert_int_equal(in_file(rig, "SELECT count(*) FROM timers"), 0);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), MANY - 1);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM idempotency"), MANY - 1);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants WHERE id = 'acme'"), MANY - 1);
    assert_false(engine_failed(rig->engine));
    /* What was answered is what was kept. */
    for (size_t i = 0; i < MANY; i++) {
        if (i != 4)
            assert_run_is(rig, calls[i].op.answer.run_id, "running");
        call_release(&calls[i]);
    }
    (void)start(rig, "w");
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants WHERE id = 'acme'"), MANY);
}

static void a_replay_in_a_batch_that_breaks_is_counted_once(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call first;
    start_init(&first, rig, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    settle(rig);
    struct call calls[3];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (i == 2) {
            call_init(&calls[i], rig, &UC_BREAKER);
        } else {
            start_init(&calls[i], rig, "w");
            call_key(&calls[i], "key", i == 0 ? "{}" : "{\"other\":1}");
        }
        submit(&calls[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        wait_done(&calls[i]);
    assert_true(calls[0].op.answer.replayed);
    assert_int_equal(calls[1].op.err, ERR_IDEM_KEY_REUSED);
    assert_int_equal(calls[2].op.err, ERR_INTERNAL);
    rig_pass_ms(rig, 1000);
    settle(rig);
    assert_int_equal(in_file(rig, "SELECT replays FROM idempotency"), 1);
    assert_int_equal(in_file(rig, "SELECT mismatches FROM idempotency"), 1);
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

static const struct use_case UC_HALF = {.name = "half", .write = run_half};

/* Wants more memory than one operation may take. */
static enum err run_glutton(struct op *op, struct tx *tx)
{
    (void)run_breaker(op, tx);
    bool fits = arena_alloc(&tx->arena, OP_BYTES_MAX) != NULL &&
                arena_alloc(&tx->arena, OP_BYTES_MAX) != NULL;
    return fits ? ERR_OK : problem_set(&op->problem, ERR_NO_MEMORY, "no memory");
}

static const struct use_case UC_GLUTTON = {.name = "glutton", .write = run_glutton};

static void assert_one_spoils_nothing(struct rig *rig, const struct use_case *spoiler, enum err e)
{
    put_workflow(rig, "w", ONE_TASK);
    settle(rig);
    struct call calls[MANY];
    for (size_t i = 0; i < MANY; i++) {
        if (i == 4)
            call_init(&calls[i], rig, spoiler);
        else
            start_init(&calls[i], rig, "w");
        submit(&calls[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, i == 4 ? e : ERR_OK);
        call_release(&calls[i]);
    }
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), MANY - 1);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants WHERE id = 'acme'"), MANY - 1);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM timers"), 0);
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
        if (e == ERR_OK && item % 2 == 1 && op_fail_item(op, item, ERR_RUN_NOT_FOUND, "odd"))
            e = problem_set(&op->problem, ERR_RUN_NOT_FOUND, "odd");
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static const struct use_case UC_ITEMS = {.name = "items", .write = run_items};

static void items_that_fail_half_way_leave_nothing_and_the_others_are_done(void **state)
{
    struct rig *rig = *state;
    struct call calls[3];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        call_init(&calls[i], rig, i == 1 ? &UC_ITEMS : &UC_PROBE);
        submit(&calls[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, ERR_OK);
    }
    assert_int_equal(calls[1].op.failed_item_count, 3);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM timers"), 3);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM timers WHERE run % 2 = 1"), 0);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        call_release(&calls[i]);
}

static void an_op_that_breaks_alone_gets_its_error(void **state)
{
    struct rig *rig = *state;
    struct call c;
    call_init(&c, rig, &UC_BREAKER);
    call_key(&c, "key", "{}");
    assert_int_equal(perform(&c), ERR_INTERNAL);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM timers"), 0);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM idempotency"), 0);
    call_release(&c);
}

/* --- waiting --- */

static void park(struct call *c)
{
    submit(c);
    settle(c->rig);
    assert_false(c->done);
    assert_false(engine_idle(c->rig->engine));
}

static void a_parked_claim_gets_the_next_job(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call claim;
    claim_init(&claim, rig, "worker", 30000);
    claim.op.wait_ms = 20000;
    park(&claim);
    (void)start(rig, "w");
    wait_done(&claim);
    assert_int_equal(claim.op.err, ERR_OK);
    json_t *jobs = jobs_of(&claim);
    assert_int_equal(json_array_size(jobs), 1);
    json_decref(jobs);
    call_release(&claim);
}

static void one_job_wakes_the_claim_that_waited_longest(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call claims[3];
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        claim_init(&claims[i], rig, "worker", 30000);
        claims[i].op.wait_ms = 20000;
        park(&claims[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        (void)start(rig, "w");
        wait_done(&claims[i]);
        settle(rig);
        for (size_t later = i + 1; later < ARRAY_LEN(claims); later++)
            assert_false(claims[later].done);
    }
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        call_release(&claims[i]);
}

static void a_claim_gives_up_when_its_time_is_over(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call claim;
    claim_init(&claim, rig, "worker", 30000);
    claim.op.wait_ms = 5000;
    park(&claim);
    rig_pass_ms(rig, 4999);
    settle(rig);
    assert_false(claim.done);
    rig_pass_ms(rig, 1);
    engine_poll(rig->engine, true);
    assert_true(claim.done);
    assert_int_equal(claim.op.err, ERR_OK);
    json_t *jobs = jobs_of(&claim);
    assert_int_equal(json_array_size(jobs), 0);
    json_decref(jobs);
    rig_until_idle(rig);
    call_release(&claim);
}

static void a_start_that_waits_shows_the_run_at_its_end(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call begun;
    start_init(&begun, rig, "w");
    begun.op.wait_ms = 20000;
    park(&begun);
    struct call claim;
    struct call finish;
    claim_init(&claim, rig, "worker", 30000);
    must_perform(&claim);
    finish_init(&finish, rig, &claim);
    must_perform(&finish);
    wait_done(&begun);
    assert_int_equal(begun.op.err, ERR_OK);
    assert_true(begun.op.answer.run_over);
    assert_non_null(strstr(begun.op.answer.body.ptr, "\"succeeded\""));
    call_release(&begun);
    call_release(&claim);
    call_release(&finish);
}

/* --- the end --- */

static void draining_answers_who_waits_and_refuses_who_comes(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct call claim;
    struct call other_claim;
    struct call begun;
    claim_init(&claim, rig, "worker", 30000);
    claim_init(&other_claim, rig, "worker", 30000);
    claim.op.wait_ms = other_claim.op.wait_ms = 30000;
    other_claim.queue = claim.queue = STR("empty");
    park(&claim);
    park(&other_claim);
    start_init(&begun, rig, "w");
    begun.op.wait_ms = 60000;
    park(&begun);
    engine_drain(rig->engine);
    wait_done(&claim);
    wait_done(&other_claim);
    wait_done(&begun);
    assert_int_equal(claim.op.err, ERR_OK);
    assert_int_equal(begun.op.err, ERR_OK);
    assert_false(begun.op.answer.run_over);
    rig_until_idle(rig);
    struct call late;
    start_init(&late, rig, "w");
    submit(&late);
    assert_true(late.done);
    assert_int_equal(late.op.err, ERR_DRAINING);
    struct problem p;
    problem_init(&p);
    assert_int_equal(engine_ready(rig->engine, &p), ERR_DRAINING);
    problem_release(&p);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), 1);
    call_release(&claim);
    call_release(&other_claim);
    call_release(&begun);
    call_release(&late);
}

static void what_was_handed_over_before_the_drain_is_finished(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    settle(rig);
    struct call calls[MANY];
    for (size_t i = 0; i < MANY; i++) {
        start_init(&calls[i], rig, "w");
        submit(&calls[i]);
    }
    engine_drain(rig->engine);
    for (size_t i = 0; i < MANY; i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, ERR_OK);
        call_release(&calls[i]);
    }
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), MANY);
}

static void a_second_engine_on_the_file_is_refused(void **state)
{
    struct rig *rig = *state;
    char url[160];
    test_store_url(rig->file.text, url, sizeof(url));
    struct metrics *metrics = metrics_new();
    struct engine_config config = {
        .store_url = str_of(url), .root_key = STR(""), .env = &rig->env, .metrics = metrics};
    struct problem p;
    problem_init(&p);
    struct engine *second = NULL;
    assert_int_equal(engine_open(&config, &p, &second), ERR_STORE_BUSY);
    assert_null(second);
    problem_release(&p);
    metrics_free(metrics);
}

/* --- the log --- */

static void a_full_log_refuses_changes_until_it_can_shrink(void **state)
{
    struct rig *rig = *state;
    if (test_store_is_eager())
        return; /* it has no log that could be full */
    rig_stop(rig);
    rig_start(rig, 64 * 4096);
    put_workflow(rig, "w", ONE_TASK);
    sqlite3 *outside = raw_open(rig->file.text);
    raw_exec(outside, "BEGIN");
    (void)raw_number(outside, "SELECT count(*) FROM runs");
    enum err e = ERR_OK;
    int64_t started = 0;
    for (int i = 0; i < 2000 && e == ERR_OK; i++) {
        struct call c;
        start_init(&c, rig, "w");
        e = perform(&c);
        started += e == ERR_OK;
        call_release(&c);
    }
    assert_int_equal(e, ERR_STORE_BUSY);
    assert_true(started > 0);
    struct problem p;
    problem_init(&p);
    assert_int_equal(engine_ready(rig->engine, &p), ERR_STORE_BUSY);
    struct call look; /* reads go on */
    call_init(&look, rig, &UC_GET_RUN);
    assert_int_equal(perform(&look), ERR_RUN_NOT_FOUND);
    call_release(&look);
    raw_exec(outside, "COMMIT");
    raw_close(outside);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (engine_ready(rig->engine, &p) != ERR_OK) {
        assert_true(real_seconds() < until);
        rig_round(rig);
    }
    (void)start(rig, "w");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs"), started + 1);
    problem_release(&p);
}

/* --- backup --- */

static void a_backup_goes_on_beside_the_callers(void **state)
{
    struct rig *rig = *state;
    if (test_store_is_eager())
        return; /* the next test is about such a store */
    put_workflow(rig, "w", ONE_TASK);
    for (int i = 0; i < 5; i++)
        (void)start(rig, "w");
    struct call backup;
    call_init(&backup, rig, &UC_BACKUP);
    submit(&backup);
    (void)start(rig, "w");
    wait_done(&backup);
    assert_int_equal(backup.op.err, ERR_OK);
    sqlite3 *raw = raw_open(backup.op.answer.body.ptr);
    raw_check_integrity(raw);
    assert_true(raw_number(raw, "SELECT count(*) FROM runs") >= 5);
    raw_close(raw);
    call_release(&backup);
}

static void a_store_without_online_copies_refuses_a_backup(void **state)
{
    struct rig *rig = *state;
    if (!test_store_is_eager())
        return; /* the test before is about such a store */
    struct call backup;
    call_init(&backup, rig, &UC_BACKUP);
    assert_int_equal(perform(&backup), ERR_BAD_REQUEST);
    assert_contains(backup.op.problem.detail, "has no online backup");
    call_release(&backup);
    put_workflow(rig, "w", ONE_TASK);
    (void)start(rig, "w");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(starts_with_one_key_at_once_make_one_run),
        rig_test(another_request_under_a_known_key_is_refused_and_the_first_unharmed),
        rig_test(keys_outlive_the_engine),
        rig_test(a_key_past_its_time_starts_anew_and_is_evicted),
        rig_test(a_known_key_is_answered_without_the_writer),
        rig_test(replays_are_counted_with_the_next_sweep),
        rig_test(a_rejected_start_leaves_every_row_as_it_was),
        rig_test(a_batch_admits_exactly_up_to_the_limit),
        rig_test(one_op_that_breaks_does_not_take_the_batch_with_it),
        rig_test(a_replay_in_a_batch_that_breaks_is_counted_once),
        rig_test(a_refusal_that_has_changed_rows_is_rolled_back_alone_and_is_no_abort),
        rig_test(an_op_that_needs_too_much_memory_is_refused_alone),
        rig_test(items_that_fail_half_way_leave_nothing_and_the_others_are_done),
        rig_test(an_op_that_breaks_alone_gets_its_error),
        rig_test(a_parked_claim_gets_the_next_job),
        rig_test(one_job_wakes_the_claim_that_waited_longest),
        rig_test(a_claim_gives_up_when_its_time_is_over),
        rig_test(a_start_that_waits_shows_the_run_at_its_end),
        rig_test(draining_answers_who_waits_and_refuses_who_comes),
        rig_test(what_was_handed_over_before_the_drain_is_finished),
        rig_test(a_second_engine_on_the_file_is_refused),
        rig_test(a_full_log_refuses_changes_until_it_can_shrink),
        rig_test(a_backup_goes_on_beside_the_callers),
        rig_test(a_store_without_online_copies_refuses_a_backup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
