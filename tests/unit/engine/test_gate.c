/* Starts of a tenant whose gate is outside the store. */
#include "engine/actions.h"
#include "gate/fake_gate.h"

static void assert_visits(const struct fake_gate *f, size_t entered)
{
    assert_int_equal(f->entered, entered);
    assert_int_equal(f->left, entered);
}

/* The fixture again, with a gate before the starts of its tenant, and a workflow to start. */
static struct fake_gate *begin(struct fixture *fixture, const char *gate_policy)
{
    struct fake_gate *f = fake_gate_begin(fixture);
    char body[256];
    (void)snprintf(body, sizeof(body), "{'gate':%s}", gate_policy);
    put_tenant(fixture, body);
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    assert_int_equal(f->asked, 0); /* only starts go through it */
    return f;
}

#define FIXED_30_MS "{'max_wait_ms':2000,'retry_delay_ms':30,'policy':'fixed'}"

/* Time passes in small steps, and the engine looks at each. */
static void pass_until_done(struct call *c, int64_t step_ms, int64_t most_ms)
{
    for (int64_t passed = 0; !c->done && passed <= most_ms; passed += step_ms) {
        settle(c->fixture);
        if (!c->done)
            fixture_pass_ms(c->fixture, step_ms);
    }
    assert_true(c->done);
}

/* --- let in --- */

static void a_start_goes_in_and_leaves_after_its_commit(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{'lock_ttl_ms':777}");
    for (int64_t i = 0; i < 3; i++) {
        (void)start(fixture, "w");
        assert_visits(f, (size_t)i + 1);
        assert_int_equal(f->visits[i].runs_before, i);
        assert_int_equal(f->visits[i].runs_after, i + 1);
        assert_string_equal(f->visits[i].tenant, "acme");
    }
    assert_int_equal(f->asked, 3);
    assert_int_equal(f->lock_ttl_ms, 777);
    assert_int_equal(f->key_ttl_ms, 2777); /* as long as the start may wait, and then work */
}

static void a_start_that_is_rejected_inside_leaves_too(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{}");
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    (void)start(fixture, "w");
    struct call c;
    start_init(&c, fixture, "w");
    assert_int_equal(perform(&c), ERR_MAX_CONCURRENT_RUNS);
    assert_visits(f, 2);
    assert_int_equal(f->visits[1].runs_after, 1);
    call_release(&c);
}

static void what_can_be_answered_outside_does_not_go_in(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{}");
    put_workflow(fixture, "picky",
                 "{'input_schema':{'type':'object'},'steps':[{'name':'a','type':'task',"
                 "'handler':'h'}]}");
    struct call first;
    start_init(&first, fixture, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    assert_int_equal(f->asked, 1);
    static const struct {
        const char *workflow;
        const char *key;
        const char *body;
        enum err expected;
    } CASES[] = {
        {"w", "key", "{}", ERR_OK}, /* a replay */
        {"w", "key", "{\"x\":1}", ERR_IDEM_KEY_REUSED},
        {"none", "other", "{}", ERR_WORKFLOW_NOT_FOUND},
        {"picky", "other", "{}", ERR_INPUT_INVALID},
    };
    f->down = true; /* and a gate that is down does not keep them from their answers */
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct call c;
        start_init(&c, fixture, CASES[i].workflow);
        call_key(&c, CASES[i].key, CASES[i].body);
        assert_int_equal(perform(&c), CASES[i].expected);
        call_release(&c);
    }
    assert_int_equal(f->asked, 1);
    call_release(&first);
}

/* --- made to wait --- */

static void a_start_that_found_the_gate_busy_is_admitted_once(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    f->busy_left = 4;
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "key", "{}");
    submit(&c);
    pass_until_done(&c, 10, 2000);
    assert_int_equal(c.op.err, ERR_OK);
    assert_int_equal(c.op.answer.created, CREATED_YES);
    assert_false(c.op.answer.replayed);
    assert_int_equal(f->asked, 5);
    assert_visits(f, 1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency"), 1);
    struct call again;
    start_init(&again, fixture, "w");
    call_key(&again, "key", "{}");
    must_perform(&again);
    assert_true(again.op.answer.replayed);
    assert_true(uuid_eq(again.op.answer.run_id, c.op.answer.run_id));
    call_release(&c);
    call_release(&again);
}

static void nobody_asks_again_before_the_delay_is_over(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    f->busy_left = 2;
    struct call c;
    start_init(&c, fixture, "w");
    submit(&c);
    settle(fixture);
    for (size_t tries = 1; tries <= 2; tries++) {
        assert_int_equal(f->asked, tries);
        fixture_pass_ms(fixture, 29);
        settle(fixture);
        assert_int_equal(f->asked, tries);
        assert_false(c.done);
        fixture_pass_ms(fixture, 1);
        settle(fixture);
    }
    assert_true(c.done);
    assert_int_equal(c.op.err, ERR_OK);
    assert_int_equal(f->asked, 3);
    call_release(&c);
}

/* All random bits of the engine, so that a delay can be told beforehand. */
static const uint64_t SEED = 0x3c6ef372fe94f82bu;

static void same_bits(void *ctx, void *out, size_t len)
{
    (void)ctx;
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)out)[i] = (unsigned char)(SEED >> 8 * (i % sizeof(SEED)));
}

enum { TRIES = 6, BASE_MS = 8 };

static void delays_of(enum backoff_policy policy, int64_t out[static TRIES])
{
    struct backoff b = {policy, BASE_MS, 1000};
    int64_t previous =
        BASE_MS; /* the first delay is one of chance too, under every policy but one */
    for (int64_t i = 0; i < TRIES; i++)
        out[i] = previous = backoff_delay_ms(&b, i + 1, previous, SEED);
}

static void delays_are_those_of_the_tenants_policy(void **state)
{
    struct fixture *fixture = *state;
    int64_t expected[BACKOFF_POLICY_COUNT][TRIES];
    fixture_stop(fixture); /* the writer draws from it too */
    fixture->env.random = same_bits;
    fixture_start(fixture, 0);
    for (enum backoff_policy policy = 0; policy < BACKOFF_POLICY_COUNT; policy++) {
        delays_of(policy, expected[policy]);
        for (enum backoff_policy other = 0; other < policy; other++)
            assert_memory_not_equal(expected[policy], expected[other], sizeof(expected[policy]));
        char body[128];
        (void)snprintf(body, sizeof(body),
                       "{'max_wait_ms':600000,'retry_delay_ms':%d,'policy':'%s'}", BASE_MS,
                       backoff_policy_name(policy));
        struct fake_gate *f = begin(fixture, body);
        f->busy_left = TRIES;
        struct call c;
        start_init(&c, fixture, "w");
        submit(&c);
        pass_until_done(&c, 1, TRIES * 1000);
        assert_int_equal(c.op.err, ERR_OK);
        assert_int_equal(f->asked, TRIES + 1);
        for (size_t i = 0; i < TRIES; i++)
            assert_int_equal(f->asked_at_ms[i + 1] - f->asked_at_ms[i], expected[policy][i]);
        call_release(&c);
    }
}

static void a_delay_is_never_longer_than_a_second(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f =
        begin(fixture, "{'max_wait_ms':600000,'retry_delay_ms':600000,'policy':'fixed'}");
    f->busy_left = 1;
    struct call c;
    start_init(&c, fixture, "w");
    submit(&c);
    settle(fixture);
    fixture_pass_ms(fixture, 999);
    settle(fixture);
    assert_int_equal(f->asked, 1);
    fixture_pass_ms(fixture, 1);
    wait_done(&c);
    assert_int_equal(c.op.err, ERR_OK);
    call_release(&c);
}

static void one_waiter_keeps_no_other_waiting(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    f->busy_left = 1;
    struct call late;
    start_init(&late, fixture, "w");
    submit(&late);
    settle(fixture);
    assert_false(late.done);
    (void)start(fixture, "w");
    settle(fixture);
    assert_false(late.done);
    assert_false(engine_idle(fixture->engine));
    assert_int_equal(engine_timeout_ms(fixture->engine), 2); /* it must be woken in time */
    fixture_pass_ms(fixture, 30);
    wait_done(&late);
    assert_int_equal(late.op.err, ERR_OK);
    assert_true(engine_timeout_ms(fixture->engine) > 2);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 2);
    call_release(&late);
}

static void a_lock_lets_in_one_start_at_a_time_and_the_limit_holds(void **state)
{
    enum { STARTS = 12, LIMIT = 7 };
    struct fixture *fixture = *state;
    struct fake_gate *f =
        begin(fixture, "{'max_wait_ms':600000,'retry_delay_ms':5,'policy':'full_jitter'}");
    f->exclusive = true;
    put_tenant(fixture, "{'max_concurrent_runs':7}");
    struct call calls[STARTS];
    for (size_t i = 0; i < STARTS; i++) {
        start_init(&calls[i], fixture, "w");
        submit(&calls[i]);
    }
    size_t admitted = 0;
    for (size_t i = 0; i < STARTS; i++) {
        pass_until_done(&calls[i], 5, 60000);
        if (calls[i].op.err == ERR_OK)
            admitted++;
        else
            assert_int_equal(calls[i].op.err, ERR_MAX_CONCURRENT_RUNS);
        call_release(&calls[i]);
    }
    assert_int_equal(admitted, LIMIT);
    assert_visits(f, STARTS);
    assert_true(f->asked > STARTS);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), LIMIT);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     LIMIT);
}

/* --- not let in --- */

static void a_gate_that_stays_busy_ends_the_wait_with_its_budget(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f =
        begin(fixture, "{'max_wait_ms':100,'retry_delay_ms':30,'policy':'fixed'}");
    put_tenant(fixture, "{'rate_limit':{'per_second':1,'burst':1}}");
    settle(fixture);
    f->busy_left = FOR_EVER;
    struct raw raw = raw_open(fixture->file.text);
    int64_t version = raw_version(&raw);
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "key", "{}");
    submit(&c);
    settle(fixture);
    for (int passed = 0; passed < 99; passed++) {
        fixture_pass_ms(fixture, 1);
        settle(fixture);
        assert_false(c.done);
    }
    fixture_pass_ms(fixture, 1);
    wait_done(&c);
    assert_int_equal(c.op.err, ERR_GATE_UNAVAILABLE);
    assert_int_equal(c.op.problem.err, ERR_GATE_UNAVAILABLE);
    assert_contains(c.op.problem.detail, "acme");
    /* At 0, 30, 60, 90 and, before giving up, at the very end. */
    assert_int_equal(f->asked, 5);
    assert_int_equal(f->asked_at_ms[4] - f->asked_at_ms[0], 100);
    assert_visits(f, 0);
    assert_int_equal(raw_version(&raw), version); /* nobody has written anything */
    raw_close(&raw);
    fixture_until_idle(fixture);

    /* The key is free: once the gate is, the same request starts a run. */
    f->busy_left = 0;
    struct call again;
    start_init(&again, fixture, "w");
    call_key(&again, "key", "{}");
    must_perform(&again);
    assert_false(again.op.answer.replayed);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    call_release(&c);
    call_release(&again);
}

static void without_a_budget_a_busy_gate_is_asked_once(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{'max_wait_ms':0}");
    f->busy_left = FOR_EVER;
    struct call c;
    start_init(&c, fixture, "w");
    assert_int_equal(perform(&c), ERR_GATE_UNAVAILABLE);
    assert_int_equal(f->asked, 1);
    call_release(&c);
}

static void a_gate_that_is_down_is_asked_again_until_the_budget_is_over(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f =
        begin(fixture, "{'max_wait_ms':100,'retry_delay_ms':30,'policy':'fixed'}");
    f->down = true;
    struct raw raw = raw_open(fixture->file.text);
    int64_t version = raw_version(&raw);
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "key", "{}");
    submit(&c);
    pass_until_done(&c, 1, 100);
    assert_int_equal(c.op.err, ERR_GATE_UNAVAILABLE);
    assert_contains(c.op.problem.detail, "fake");
    assert_int_equal(f->asked, 5);
    assert_visits(f, 0);
    settle(fixture);
    assert_int_equal(f->withdrew, 1); /* it may have been let in, and its answer lost */
    assert_int_equal(raw_version(&raw), version);
    raw_close(&raw);
    f->down = false;
    must_perform(&c);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    call_release(&c);
}

static void a_start_enters_as_soon_as_the_gate_answers_again(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    f->down = true;
    struct call c;
    start_init(&c, fixture, "w");
    submit(&c);
    settle(fixture);
    f->down = false;
    pass_until_done(&c, 10, 60);
    assert_int_equal(c.op.err, ERR_OK);
    assert_visits(f, 1);
    call_release(&c);
}

static void a_gate_that_never_answers_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{'max_wait_ms':1500}");
    f->holds = true;
    struct call c;
    start_init(&c, fixture, "w");
    submit(&c);
    settle(fixture);
    fixture_pass_ms(fixture, 1499);
    settle(fixture);
    assert_false(c.done);
    fixture_pass_ms(fixture, 1);
    wait_done(&c);
    assert_int_equal(c.op.err, ERR_GATE_UNAVAILABLE);
    assert_false(engine_idle(fixture->engine));
    fake_gate_release(f); /* the answer comes late: it is let in, and leaves */
    settle(fixture);
    assert_visits(f, 1);
    fixture_until_idle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 0);
    call_release(&c);
}

static void a_tenant_that_asks_for_a_gate_starts_nothing_on_a_server_without_one(void **state)
{
    struct fixture *fixture = *state;
    (void)begin(fixture, "{}");
    fixture_stop(fixture);
    fixture->gate = NULL;
    fixture_start(fixture, 0);
    struct call c;
    start_init(&c, fixture, "w");
    assert_int_equal(perform(&c), ERR_GATE_UNAVAILABLE);
    assert_contains(c.op.problem.detail, "--gate");
    put_tenant(fixture, "{'gate':null}");
    must_perform(&c);
    call_release(&c);
}

static void other_tenants_do_not_ask(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{'kind':'store'}");
    f->down = true;
    (void)start(fixture, "w");
    assert_int_equal(f->asked, 0);
}

/* --- the same key --- */

static void a_start_whose_key_is_reserved_gets_the_answer_of_the_other_one(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    f->reserved_left = 1;
    struct call late;
    start_init(&late, fixture, "w");
    call_key(&late, "key", "{}");
    submit(&late);
    settle(fixture);
    struct call first;
    start_init(&first, fixture, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    f->down = true; /* nobody needs it any more */
    fixture_pass_ms(fixture, 30);
    wait_done(&late);
    assert_int_equal(late.op.err, ERR_OK);
    assert_true(late.op.answer.replayed);
    assert_true(uuid_eq(late.op.answer.run_id, first.op.answer.run_id));
    assert_int_equal(f->asked, 2);
    assert_visits(f, 1);
    assert_int_equal(f->withdrew, 0); /* it had taken nothing */
    call_release(&late);
    call_release(&first);
}

static void a_key_that_stays_reserved_is_in_flight(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{'max_wait_ms':0}");
    f->reserved_left = 1;
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "key", "{}");
    assert_int_equal(perform(&c), ERR_IDEM_IN_FLIGHT);
    assert_int_equal(f->withdrew, 0);
    must_perform(&c); /* the key is free */
    assert_false(c.op.answer.replayed);
    call_release(&c);
}

/* --- what is given back --- */

static void a_start_that_gave_up_gives_its_reservation_back(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{'max_wait_ms':0}");
    f->busy_left = 2;
    struct call c;
    start_init(&c, fixture, "w");
    assert_int_equal(perform(&c), ERR_GATE_UNAVAILABLE);
    settle(fixture);
    assert_int_equal(f->withdrew, 0); /* without a key there is none */
    call_key(&c, "key", "{}");
    assert_int_equal(perform(&c), ERR_GATE_UNAVAILABLE);
    settle(fixture);
    assert_int_equal(f->withdrew, 1);
    call_release(&c);
}

static void a_caller_that_disconnects_leaves_nothing_at_the_gate(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "key", "{}");
    f->busy_left = 1;
    submit(&c);
    settle(fixture);
    engine_caller_left(fixture->engine, &c.op); /* while it waits for its next try */
    assert_true(c.done);
    settle(fixture);
    assert_int_equal(f->withdrew, 1);
    f->holds = true;
    submit(&c);
    settle(fixture);
    engine_caller_left(fixture->engine, &c.op); /* while its request is under way */
    assert_true(c.done);
    fake_gate_release(f);
    settle(fixture);
    assert_visits(f, 1);
    fixture_until_idle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 0);
    call_release(&c);
}

static int64_t failures(struct fixture *fixture, const char *context)
{
    char name[96];
    (void)snprintf(name, sizeof(name), "pawl_idempotency_cleanup_failures_total{context=\"%s\"} ",
                   context);
    struct buf text;
    buf_init(&text, MIB);
    metrics_put_text(fixture->metrics, &text);
    buf_put_char(&text, '\0');
    const char *at = strstr(text.ptr, name);
    assert_non_null(at);
    int64_t value = strtoll(at + strlen(name), NULL, 10);
    buf_release(&text);
    return value;
}

static void what_cannot_be_given_back_is_counted_and_tried_again(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{'max_wait_ms':100}");
    f->leaves_down = true;
    (void)start(fixture, "w"); /* answered all the same */
    settle(fixture);
    assert_int_equal(failures(fixture, "gate_admitted"), 1);
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_int_equal(failures(fixture, "gate_admitted"), 2);
    f->leaves_down = false;
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_visits(f, 1);
    assert_int_equal(failures(fixture, "gate_admitted"), 2);
    fixture_until_idle(fixture);
}

static void what_would_have_expired_is_not_tried_again(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{'max_wait_ms':100,'lock_ttl_ms':500}");
    put_tenant(fixture, "{'max_concurrent_runs':0}");
    f->leaves_down = true;
    struct call c;
    start_init(&c, fixture, "w");
    assert_int_equal(perform(&c), ERR_MAX_CONCURRENT_RUNS);
    for (int i = 0; i < 3; i++) {
        settle(fixture);
        fixture_pass_ms(fixture, 1000);
    }
    assert_int_equal(failures(fixture, "gate_refused"), 3);
    settle(fixture);
    fixture_until_idle(fixture);
    call_release(&c);
}

/* --- what others have left --- */

static struct gate_found reservation(const char *key, const char *token)
{
    struct gate_found found = {.tenant = "acme"};
    (void)snprintf(found.key, sizeof(found.key), "%s", key);
    (void)snprintf(found.token, sizeof(found.token), "%s", token);
    return found;
}

static void only_reservations_of_decided_keys_are_swept(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "decided", "{}");
    must_perform(&c);
    f->listed[0] = reservation("decided", "of a process that died");
    f->listed[1] = reservation("open", "of one that works");
    f->listed[2] = (struct gate_found){"nobody", "decided", "of another tenant"};
    f->listed_count = 3;
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_int_equal(f->withdrew, 1);
    f->listed_count = 0;
    call_release(&c);
}

/* --- a transaction that is rolled back --- */

/* Writes, and then fails as the store does. */
static enum err run_breaker(struct op *op, struct tx *tx)
{
    static const char SQL[] = "INSERT INTO timers (due_at, run, ordinal, generation)"
                              " VALUES ($1, 1, 1, 1)";
    enum err e = DB_EXEC(tx->db, SQL, NULL, DB_I(INT64_MAX));
    return problem_set(&op->problem, e == ERR_OK ? ERR_INTERNAL : e, "broken on purpose");
}

static const struct use_case UC_BREAKER = {.name = "test_breaker", .write = run_breaker};

static void a_start_stays_inside_while_its_batch_is_rolled_back(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    struct call calls[3];
    f->holds = true;
    for (size_t i = 0; i < 2; i++) {
        start_init(&calls[i], fixture, "w");
        submit(&calls[i]);
    }
    settle(fixture);
    call_init(&calls[2], fixture, &UC_BREAKER);
    fake_gate_release(f); /* both are handed over in the round of the breaker */
    submit(&calls[2]);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, i == 2 ? ERR_INTERNAL : ERR_OK);
        call_release(&calls[i]);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 2);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     2);
    assert_visits(f, 2);
    assert_int_equal(f->asked, 2);
}

/* --- the end --- */

static void draining_ends_the_wait_at_the_gate(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    f->busy_left = FOR_EVER;
    struct call calls[3];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        start_init(&calls[i], fixture, "w");
        submit(&calls[i]);
    }
    settle(fixture);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        assert_false(calls[i].done);
    engine_drain(fixture->engine);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) { /* the clock stands still */
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, ERR_GATE_UNAVAILABLE);
        call_release(&calls[i]);
    }
    fixture_until_idle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 0);
}

static void a_start_that_waits_gets_its_last_try_when_the_server_drains(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    f->busy_left = 1;
    struct call c;
    start_init(&c, fixture, "w");
    submit(&c);
    settle(fixture);
    assert_false(c.done);
    engine_drain(fixture->engine);
    wait_done(&c);
    assert_int_equal(c.op.err, ERR_OK);
    assert_visits(f, 1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    call_release(&c);
}

/* --- reruns --- */

static void a_rerun_goes_through_the_gate_too(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, "{}");
    struct uuid run = start(fixture, "w");
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    assert_int_equal(f->asked, 1); /* the end of a run does not */
    struct call c;
    call_init(&c, fixture, &UC_RERUN_RUN);
    struct rerun_run_input in = {.run_id = run, .if_match = -1};
    c.op.input = &in;
    must_perform(&c);
    assert_visits(f, 2);
    call_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_start_goes_in_and_leaves_after_its_commit),
        fixture_test(a_start_that_is_rejected_inside_leaves_too),
        fixture_test(what_can_be_answered_outside_does_not_go_in),
        fixture_test(a_start_that_found_the_gate_busy_is_admitted_once),
        fixture_test(nobody_asks_again_before_the_delay_is_over),
        fixture_test(delays_are_those_of_the_tenants_policy),
        fixture_test(a_delay_is_never_longer_than_a_second),
        fixture_test(one_waiter_keeps_no_other_waiting),
        fixture_test(a_lock_lets_in_one_start_at_a_time_and_the_limit_holds),
        fixture_test(a_gate_that_stays_busy_ends_the_wait_with_its_budget),
        fixture_test(without_a_budget_a_busy_gate_is_asked_once),
        fixture_test(a_gate_that_is_down_is_asked_again_until_the_budget_is_over),
        fixture_test(a_start_enters_as_soon_as_the_gate_answers_again),
        fixture_test(a_gate_that_never_answers_is_given_up),
        fixture_test(a_tenant_that_asks_for_a_gate_starts_nothing_on_a_server_without_one),
        fixture_test(other_tenants_do_not_ask),
        fixture_test(a_start_whose_key_is_reserved_gets_the_answer_of_the_other_one),
        fixture_test(a_key_that_stays_reserved_is_in_flight),
        fixture_test(a_start_that_gave_up_gives_its_reservation_back),
        fixture_test(a_caller_that_disconnects_leaves_nothing_at_the_gate),
        fixture_test(what_cannot_be_given_back_is_counted_and_tried_again),
        fixture_test(what_would_have_expired_is_not_tried_again),
        fixture_test(only_reservations_of_decided_keys_are_swept),
        fixture_test(a_start_stays_inside_while_its_batch_is_rolled_back),
        fixture_test(draining_ends_the_wait_at_the_gate),
        fixture_test(a_start_that_waits_gets_its_last_try_when_the_server_drains),
        fixture_test(a_rerun_goes_through_the_gate_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
