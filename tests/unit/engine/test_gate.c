/* Starts at a gate that other nodes share: one that lets in, makes wait or cannot be asked, as the
 * test says. */
#include "engine/fixture.h"

#include "gate/gate.h"

#include <pthread.h>

enum { VISITS_MAX = 256 };

/* Asked from the writer's thread or from the test's own; so what it checks itself it asserts, for
 * only the test's thread can fail the test. */
struct fake_gate {
    struct gate gate; /* first, so that the engine's pointer finds all of it */
    struct fixture *fixture;
    pthread_mutex_t lock;
    int busy_left; /* so many are told to come again */
    bool down;
    bool exclusive; /* a lock indeed: busy while somebody is inside */

    size_t asked;
    int64_t asked_at_ms[VISITS_MAX];
    struct gate_policy policy; /* of the last one who asked */
    size_t entered;
    size_t left;
    struct visit {
        bool inside;
        struct str tenant;
        int64_t runs_before;
        int64_t runs_after; /* what was on disk when it left */
    } visits[VISITS_MAX];
};

static enum gate_answer fake_answer(struct fake_gate *f, struct str tenant)
{
    if (f->down)
        return GATE_DOWN;
    if (f->busy_left > 0) {
        f->busy_left--;
        return GATE_BUSY;
    }
    for (size_t i = 0; i < f->entered; i++) {
        if (f->exclusive && f->visits[i].inside && str_eq(f->visits[i].tenant, tenant))
            return GATE_BUSY;
    }
    return GATE_ENTERED;
}

static enum gate_answer fake_enter(struct gate *gate, struct str tenant,
                                   const struct gate_policy *policy, struct gate_ticket *ret)
{
    struct fake_gate *f = (struct fake_gate *)gate;
    pthread_mutex_lock(&f->lock);
    assert(f->asked < VISITS_MAX && f->entered < VISITS_MAX);
    f->asked_at_ms[f->asked++] = fixture_mono_ns(f->fixture) / 1000000;
    f->policy = *policy;
    enum gate_answer answer = fake_answer(f, tenant);
    if (answer == GATE_ENTERED) {
        *ret = (struct gate_ticket){.held = true, .tenant = tenant};
        memcpy(ret->token, &f->entered, sizeof(f->entered));
        f->visits[f->entered++] =
            (struct visit){true, tenant, in_file(f->fixture, "SELECT count(*) FROM runs"), -1};
    }
    pthread_mutex_unlock(&f->lock);
    return answer;
}

/* Nobody leaves twice, or without having been inside, or while the transaction is still open. */
static void fake_leave(struct gate *gate, const struct gate_ticket *ticket)
{
    struct fake_gate *f = (struct fake_gate *)gate;
    size_t number;
    memcpy(&number, ticket->token, sizeof(number));
    pthread_mutex_lock(&f->lock);
    assert(ticket->held && number < f->entered);
    struct visit *visit = &f->visits[number];
    assert(visit->inside);
    assert(str_eq(ticket->tenant, visit->tenant));
    visit->inside = false;
    f->left++;
    struct raw raw = raw_open(f->fixture->file.text);
    (void)sqlite3_busy_timeout(raw.file, 0);
    int open = sqlite3_exec(raw.file, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    assert(open == SQLITE_OK); /* busy while the writer is in a transaction */
    visit->runs_after = raw_number(&raw, "SELECT count(*) FROM runs");
    raw_exec(&raw, "ROLLBACK");
    raw_close(&raw);
    pthread_mutex_unlock(&f->lock);
}

static size_t asked(struct fake_gate *f)
{
    pthread_mutex_lock(&f->lock);
    size_t count = f->asked;
    pthread_mutex_unlock(&f->lock);
    return count;
}

static void set_down(struct fake_gate *f, bool down)
{
    pthread_mutex_lock(&f->lock);
    f->down = down;
    pthread_mutex_unlock(&f->lock);
}

static void make_busy(struct fake_gate *f, int times)
{
    pthread_mutex_lock(&f->lock);
    f->busy_left = times;
    pthread_mutex_unlock(&f->lock);
}

static void assert_visits(struct fake_gate *f, size_t entered)
{
    pthread_mutex_lock(&f->lock);
    size_t went_in = f->entered;
    size_t went_out = f->left;
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(went_in, entered);
    assert_int_equal(went_out, entered);
}

enum { FOR_EVER = 1000000 };

/* The fixture again, with a gate before its starts and a workflow to start. */
static struct fake_gate *begin(struct fixture *fixture, const char *gate_policy)
{
    static struct fake_gate f; /* outlives the engine that knows it */
    fixture_stop(fixture);
    f = (struct fake_gate){.gate = {"fake", fake_enter, fake_leave}, .fixture = fixture};
    pthread_mutex_init(&f.lock, NULL);
    fixture->gate = &f.gate;
    fixture_start(fixture, 0);
    char body[256];
    (void)snprintf(body, sizeof(body), "{'gate':%s}", gate_policy);
    put_tenant(fixture, body);
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    assert_int_equal(asked(&f), 0); /* only starts go through it */
    return &f;
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
        assert_str(f->visits[i].tenant, "acme");
    }
    assert_int_equal(asked(f), 3);
    assert_int_equal(f->policy.lock_ttl_ms, 777);
    assert_int_equal(f->policy.policy, BACKOFF_FULL_JITTER);
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
    assert_int_equal(asked(f), 1);
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
    set_down(f, true); /* and a gate that is down does not keep them from their answers */
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct call c;
        start_init(&c, fixture, CASES[i].workflow);
        call_key(&c, CASES[i].key, CASES[i].body);
        assert_int_equal(perform(&c), CASES[i].expected);
        call_release(&c);
    }
    assert_int_equal(asked(f), 1);
    call_release(&first);
}

/* --- made to wait --- */

static void a_start_that_found_the_gate_busy_is_admitted_once(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    make_busy(f, 4);
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "key", "{}");
    submit(&c);
    pass_until_done(&c, 10, 2000);
    assert_int_equal(c.op.err, ERR_OK);
    assert_int_equal(c.op.answer.created, CREATED_YES);
    assert_false(c.op.answer.replayed);
    assert_int_equal(asked(f), 5);
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
    make_busy(f, 2);
    struct call c;
    start_init(&c, fixture, "w");
    submit(&c);
    settle(fixture);
    for (size_t tries = 1; tries <= 2; tries++) {
        assert_int_equal(asked(f), tries);
        fixture_pass_ms(fixture, 29);
        settle(fixture);
        assert_int_equal(asked(f), tries);
        assert_false(c.done);
        fixture_pass_ms(fixture, 1);
        settle(fixture);
    }
    assert_true(c.done);
    assert_int_equal(c.op.err, ERR_OK);
    assert_int_equal(asked(f), 3);
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
        make_busy(f, TRIES);
        struct call c;
        start_init(&c, fixture, "w");
        submit(&c);
        pass_until_done(&c, 1, TRIES * 1000);
        assert_int_equal(c.op.err, ERR_OK);
        assert_int_equal(asked(f), TRIES + 1);
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
    make_busy(f, 1);
    struct call c;
    start_init(&c, fixture, "w");
    submit(&c);
    settle(fixture);
    fixture_pass_ms(fixture, 999);
    settle(fixture);
    assert_int_equal(asked(f), 1);
    fixture_pass_ms(fixture, 1);
    wait_done(&c);
    assert_int_equal(c.op.err, ERR_OK);
    call_release(&c);
}

static void one_waiter_keeps_no_other_waiting(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    make_busy(f, 1);
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

/* A lock that is held until the commit: the starts of a batch go in together, and count each other.
 */
static void starts_of_a_batch_share_a_visit_and_the_limit_holds(void **state)
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
    assert_true(f->entered < STARTS);
    assert_visits(f, f->entered);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), LIMIT);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     LIMIT);
}

/* --- not let in --- */

static int64_t data_version(struct raw *raw)
{
    return raw_number(raw, "PRAGMA data_version");
}

static void a_gate_that_stays_busy_ends_the_wait_with_its_budget(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f =
        begin(fixture, "{'max_wait_ms':100,'retry_delay_ms':30,'policy':'fixed'}");
    put_tenant(fixture, "{'rate_limit':{'per_second':1,'burst':1}}");
    settle(fixture);
    make_busy(f, FOR_EVER);
    struct raw raw = raw_open(fixture->file.text);
    int64_t version = data_version(&raw);
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
    assert_int_equal(asked(f), 5);
    assert_int_equal(f->asked_at_ms[4] - f->asked_at_ms[0], 100);
    assert_visits(f, 0);
    assert_int_equal(data_version(&raw), version); /* nobody has written anything */
    raw_close(&raw);
    fixture_until_idle(fixture);

    /* The key is free: once the gate is, the same request starts a run. */
    make_busy(f, 0);
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
    make_busy(f, FOR_EVER);
    struct call c;
    start_init(&c, fixture, "w");
    assert_int_equal(perform(&c), ERR_GATE_UNAVAILABLE);
    assert_int_equal(asked(f), 1);
    call_release(&c);
}

static void a_gate_that_is_down_is_reported_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    set_down(f, true);
    struct raw raw = raw_open(fixture->file.text);
    int64_t version = data_version(&raw);
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "key", "{}");
    assert_int_equal(perform(&c), ERR_GATE_UNAVAILABLE); /* and no time has passed */
    assert_contains(c.op.problem.detail, "fake");
    assert_int_equal(asked(f), 1);
    assert_visits(f, 0);
    assert_int_equal(data_version(&raw), version);
    raw_close(&raw);
    set_down(f, false);
    must_perform(&c);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    call_release(&c);
}

static void a_gate_that_goes_down_meanwhile_ends_the_wait(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    make_busy(f, FOR_EVER);
    struct call c;
    start_init(&c, fixture, "w");
    submit(&c);
    settle(fixture);
    set_down(f, true);
    fixture_pass_ms(fixture, 30);
    wait_done(&c);
    assert_int_equal(c.op.err, ERR_GATE_UNAVAILABLE);
    assert_int_equal(asked(f), 2);
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

static void a_holder_leaves_after_a_rollback_and_enters_again(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    struct call calls[3];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (i == 2)
            call_init(&calls[i], fixture, &UC_BREAKER);
        else
            start_init(&calls[i], fixture, "w");
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        submit(&calls[i]);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, i == 2 ? ERR_INTERNAL : ERR_OK);
        call_release(&calls[i]);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 2);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     2);
    assert_visits(f, 2); /* all together, then again without the one that broke the batch */
    static const int64_t ON_DISK[] = {0, 2};
    for (size_t i = 0; i < ARRAY_LEN(ON_DISK); i++)
        assert_int_equal(f->visits[i].runs_after, ON_DISK[i]);
}

/* --- the end --- */

static void draining_ends_the_wait_at_the_gate(void **state)
{
    struct fixture *fixture = *state;
    struct fake_gate *f = begin(fixture, FIXED_30_MS);
    make_busy(f, FOR_EVER);
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
    make_busy(f, 1);
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

/* --- the store's own --- */

static void the_stores_own_gate_lets_everybody_in_and_holds_nothing(void **state)
{
    (void)state;
    struct gate *gate = gate_store();
    struct gate_policy policy = {0, 1, 0, BACKOFF_FIXED};
    for (int i = 0; i < 3; i++) {
        struct gate_ticket ticket = {.held = true};
        assert_int_equal(gate->enter(gate, STR("acme"), &policy, &ticket), GATE_ENTERED);
        assert_false(ticket.held);
    }
    assert_ptr_equal(gate_store(), gate);
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
        fixture_test(starts_of_a_batch_share_a_visit_and_the_limit_holds),
        fixture_test(a_gate_that_stays_busy_ends_the_wait_with_its_budget),
        fixture_test(without_a_budget_a_busy_gate_is_asked_once),
        fixture_test(a_gate_that_is_down_is_reported_at_once),
        fixture_test(a_gate_that_goes_down_meanwhile_ends_the_wait),
        fixture_test(a_holder_leaves_after_a_rollback_and_enters_again),
        fixture_test(draining_ends_the_wait_at_the_gate),
        fixture_test(a_start_that_waits_gets_its_last_try_when_the_server_drains),
        cmocka_unit_test(the_stores_own_gate_lets_everybody_in_and_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
