/* A job that is ready never lies beside a claim that waits for it, whatever happens meanwhile. */
#include "engine/actions.h"

#include "base/chance.h"

enum {
    CLAIMS = 6,
    QUEUES = 3,
    STEPS = 40,
    HISTORIES = 12,
    HELD_MAX = STEPS * 4,
};

static const char *const NAMES[QUEUES] = {"a", "b", "c"};

struct claim_slot {
    struct call call;
    struct str queues[2];
    bool open, gone;
};

struct history {
    struct fixture *fixture;
    struct chance chance;
    struct claim_slot claims[CLAIMS];
    struct held held[HELD_MAX];
    size_t held_count;
};

static size_t pick(struct history *h, size_t below)
{
    uint32_t n;
    chance_take(&h->chance, &n, sizeof(n));
    return n % below;
}

static bool is_there(const struct op *op)
{
    const struct claim_slot *slot = op->owner;
    return !slot->gone;
}

/* --- what the store says --- */

static enum err count_pending(struct op *op, struct tx *tx)
{
    struct call *c = CONTAINER_OF(op, struct call, op);
    struct db_rows *rows =
        DB_QUERY(tx->db, "SELECT count(*) FROM job_rows WHERE state = 'pending' AND queue = $1",
                 DB_T(c->queue));
    c->changes = db_next(rows) ? db_int(rows, 0) : -1;
    op->answer.changed_nothing = true;
    return db_rows_end(rows);
}

static const struct use_case UC_COUNT_PENDING = {.name = "test_pending", .write = count_pending};

static int64_t pending_in(struct fixture *fixture, struct str queue)
{
    struct call c;
    call_init(&c, fixture, &UC_COUNT_PENDING);
    c.queue = queue;
    must_perform(&c);
    int64_t count = c.changes;
    call_release(&c);
    return count;
}

/* --- what happens --- */

static void take_jobs(struct history *h, struct claim_slot *slot)
{
    json_t *jobs = jobs_of(&slot->call);
    for (size_t i = 0; i < json_array_size(jobs) && !slot->gone; i++) {
        assert_true(h->held_count < HELD_MAX);
        held_read(&h->held[h->held_count++], json_array_get(jobs, i));
    }
    json_decref(jobs);
}

/* Those whose claims are over may claim again. */
static void collect(struct history *h)
{
    for (size_t i = 0; i < CLAIMS; i++) {
        struct claim_slot *slot = &h->claims[i];
        if (!slot->open || !slot->call.done)
            continue;
        assert_ok(slot->call.op.err);
        take_jobs(h, slot);
        call_release(&slot->call);
        slot->open = false;
    }
}

static void claim_somewhere(struct history *h)
{
    struct claim_slot *slot = &h->claims[pick(h, CLAIMS)];
    if (slot->open)
        return;
    claim_init(&slot->call, h->fixture, "worker", 3600000);
    struct call *c = &slot->call;
    size_t first = pick(h, QUEUES);
    slot->queues[0] = str_of(NAMES[first]);
    slot->queues[1] = str_of(NAMES[(first + 1) % QUEUES]);
    c->input.claim.queues = slot->queues;
    c->input.claim.queue_count = 1 + pick(h, 2);
    c->input.claim.max = 1 + (int64_t)pick(h, 2);
    if (pick(h, 3) == 0)
        c->op.caller.tenant = STR("*");
    c->op.wait_ms = pick(h, 8) == 0 ? 40 : 3600000;
    c->op.is_there = is_there;
    c->op.owner = slot;
    slot->gone = false;
    slot->open = true;
    submit(c);
}

static void start_some(struct history *h)
{
    struct call starts[3];
    size_t count = 1 + pick(h, ARRAY_LEN(starts));
    for (size_t i = 0; i < count; i++) {
        start_init(&starts[i], h->fixture, NAMES[pick(h, QUEUES)]);
        submit(&starts[i]);
    }
    for (size_t i = 0; i < count; i++) {
        wait_done(&starts[i]);
        assert_ok(starts[i].op.err);
        call_release(&starts[i]);
    }
}

static void end_held(struct history *h, bool gives_back)
{
    if (h->held_count == 0)
        return;
    size_t at = pick(h, h->held_count);
    struct held held = h->held[at];
    h->held[at] = h->held[--h->held_count];
    if (gives_back) {
        struct heartbeat_input in = {.job_id = held.job, .lease_token = str_of(held.token)};
        struct call c;
        call_init(&c, h->fixture, &UC_RELEASE_JOB);
        c.op.input = &in;
        must_perform(&c);
        call_release(&c);
    } else {
        assert_ok(complete(h->fixture, &held));
    }
}

/* Noticed at once, or only when something is given to it. */
static void leave(struct history *h)
{
    struct claim_slot *slot = &h->claims[pick(h, CLAIMS)];
    if (!slot->open || slot->call.done)
        return;
    slot->gone = true;
    if (pick(h, 2) == 0)
        engine_caller_left(h->fixture->engine, &slot->call.op);
}

static void act(struct history *h)
{
    switch (pick(h, 9)) {
    case 0:
    case 1:
    case 2:
        claim_somewhere(h);
        break;
    case 3:
    case 4:
        start_some(h);
        break;
    case 5:
        end_held(h, false);
        break;
    case 6:
        end_held(h, true);
        break;
    case 7:
        leave(h);
        break;
    default:
        fixture_pass_ms(h->fixture, 30);
        break;
    }
}

/* --- what must hold --- */

static void until_nothing_moves(struct history *h)
{
    for (int i = 0; i < 3; i++) {
        settle(h->fixture);
        collect(h);
    }
}

static void assert_no_job_beside_a_waiting_claim(struct history *h)
{
    until_nothing_moves(h);
    for (size_t q = 0; q < QUEUES; q++) {
        struct str queue = str_of(NAMES[q]);
        if (pending_in(h->fixture, queue) == 0)
            continue;
        until_nothing_moves(h);
        for (size_t i = 0; i < CLAIMS; i++) {
            const struct claim_slot *slot = &h->claims[i];
            if (!slot->open || slot->call.done || slot->gone)
                continue;
            for (size_t k = 0; k < slot->call.input.claim.queue_count; k++) {
                if (str_eq(slot->queues[k], queue) && pending_in(h->fixture, queue) > 0)
                    fail_msg("a claim of queue %s waits beside a job", NAMES[q]);
            }
        }
    }
}

static void end_history(struct history *h)
{
    for (size_t i = 0; i < CLAIMS; i++) {
        if (h->claims[i].open && !h->claims[i].call.done)
            engine_caller_left(h->fixture->engine, &h->claims[i].call.op);
    }
    fixture_until_idle(h->fixture);
    collect(h);
}

static void run_history(struct fixture *fixture, uint64_t seed)
{
    struct history *h = calloc(1, sizeof(*h));
    assert_non_null(h);
    h->fixture = fixture;
    struct chance_seed from = {0};
    memcpy(&from, &seed, sizeof(seed));
    chance_init(&h->chance, &from);
    for (int i = 0; i < STEPS; i++) {
        act(h);
        if (pick(h, 3) > 0)
            fixture_round(fixture); /* else several things happen in one round */
        collect(h);
        if (pick(h, 5) == 0)
            assert_no_job_beside_a_waiting_claim(h);
    }
    assert_no_job_beside_a_waiting_claim(h);
    end_history(h);
    free(h);
}

static int64_t number_from(const char *variable, int64_t usual)
{
    const char *text = getenv(variable);
    int64_t number = usual;
    if (text != NULL)
        assert_true(str_to_i64(str_of(text), &number));
    return number;
}

static void no_job_lies_beside_a_claim_that_waits_for_it(void **state)
{
    struct fixture *fixture = *state;
    int64_t histories = number_from("PAWL_HISTORIES", HISTORIES);
    for (size_t i = 0; i < QUEUES; i++) {
        char steps[256];
        (void)snprintf(steps, sizeof(steps),
                       "{'steps':[{'name':'x','type':'task','handler':'h','queue':'%s'},"
                       "{'name':'y','type':'task','handler':'h','queue':'%s'}]}",
                       NAMES[i], NAMES[(i + 1) % QUEUES]);
        put_workflow(fixture, NAMES[i], steps);
    }
    uint32_t chosen;
    env_random(&ENV_SYSTEM, &chosen, sizeof(chosen));
    int64_t first = number_from("PAWL_SEED", chosen);
    print_message("PAWL_SEED=%lld\n", (long long)first); /* for when it fails */
    for (int64_t i = 0; i < histories; i++)
        run_history(fixture, (uint64_t)(first + i));
}

/* --- joining --- */

static void wait_for_job(struct call *c, struct fixture *fixture)
{
    claim_init(c, fixture, "worker", 60000);
    c->op.wait_ms = 30000;
    submit(c);
    settle(fixture);
    assert_false(c->done);
}

static void assert_given(struct call *c, size_t count)
{
    wait_done(c);
    json_t *jobs = jobs_of(c);
    assert_int_equal(json_array_size(jobs), count);
    json_decref(jobs);
    call_release(c);
}

/* One change alone is committed on the loop's own thread. */
static void a_claim_joins_a_change_that_the_loop_makes_itself(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    for (int i = 0; i < 30; i++) {
        struct call claim;
        wait_for_job(&claim, fixture);
        for (int round = 0; round < 20; round++) { /* with one request each */
            struct call one;
            call_init(&one, fixture, &UC_PROBE);
            must_perform(&one);
            call_release(&one);
            fixture_round(fixture);
        }
        (void)start(fixture, "w");
        assert_given(&claim, 1);
    }
}

static void a_claim_gets_its_job_in_the_commit_that_makes_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call claims[2];
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        wait_for_job(&claims[i], fixture);
    struct call starts[2];
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        start_init(&starts[i], fixture, "w");
        submit(&starts[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        wait_done(&starts[i]);
    /* The ops of a commit come back together, in one round. */
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        assert_true(claims[i].done);
        assert_given(&claims[i], 1);
        call_release(&starts[i]);
    }
}

static enum err fail_batch(struct op *op, struct tx *tx)
{
    struct call *c = CONTAINER_OF(op, struct call, op);
    (void)tx;
    c->runs++;
    return ERR_NO_MEMORY;
}

static const struct use_case UC_FAIL_BATCH = {.name = "test_fails", .write = fail_batch};

/* A batch that fails is repeated in parts, without those that would have joined it. */
static void a_batch_that_is_rolled_back_leaves_its_jobs_to_waiting_claims(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call claim;
    wait_for_job(&claim, fixture);
    struct call begun;
    struct call fails;
    start_init(&begun, fixture, "w");
    call_init(&fails, fixture, &UC_FAIL_BATCH);
    submit(&begun);
    submit(&fails);
    wait_done(&begun);
    wait_done(&fails);
    assert_ok(begun.op.err);
    assert_int_equal(fails.op.err, ERR_NO_MEMORY);
    assert_given(&claim, 1);
    call_release(&begun);
    call_release(&fails);
}

/* What it is given cannot be given back, so it is asked first whether it is still there. */
static void a_claim_with_a_key_does_not_join(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct claim_slot slot = {.open = true};
    struct call *claim = &slot.call;
    claim_init(claim, fixture, "worker", 60000);
    call_key(claim, "key", "{}");
    claim->op.wait_ms = 30000;
    claim->op.is_there = is_there;
    claim->op.owner = &slot;
    submit(claim);
    settle(fixture);
    slot.gone = true;
    (void)start(fixture, "w");
    wait_done(claim);
    assert_int_equal(claim->op.answer.handed.len, 0);
    call_release(claim);
    struct held held;
    assert_int_equal(claim_many(fixture, 60000, 1, &held), 1);
}

/* Two jobs become ready at once. The first wakes a claim that prefers the second. */
static void a_claim_that_takes_another_job_passes_the_wake_up_on(void **state)
{
    struct fixture *fixture = *state;
    const struct str queues[] = {STR("b"), STR("a")};
    for (size_t i = 0; i < 2; i++) {
        char steps[256];
        (void)snprintf(steps, sizeof(steps),
                       "{'steps':[{'name':'s','type':'sleep','duration_ms':1000},"
                       "{'name':'t','type':'task','handler':'h','queue':'%s'}]}",
                       NAMES[i]);
        put_workflow(fixture, NAMES[i], steps);
    }
    struct call claims[2]; /* for b or a, and for a */
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        claim_init(&claims[i], fixture, "worker", 60000);
        claims[i].input.claim.queues = &queues[i];
        claims[i].input.claim.queue_count = ARRAY_LEN(queues) - i;
        claims[i].op.wait_ms = 3600000;
        submit(&claims[i]);
    }
    settle(fixture);
    (void)start(fixture, "a");
    (void)start(fixture, "b");
    fixture_pass_ms(fixture, 1000);
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        assert_given(&claims[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(no_job_lies_beside_a_claim_that_waits_for_it),
        fixture_test(a_claim_joins_a_change_that_the_loop_makes_itself),
        fixture_test(a_claim_gets_its_job_in_the_commit_that_makes_it),
        fixture_test(a_batch_that_is_rolled_back_leaves_its_jobs_to_waiting_claims),
        fixture_test(a_claim_with_a_key_does_not_join),
        fixture_test(a_claim_that_takes_another_job_passes_the_wake_up_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
