/* What may leave while a commit is on its way to disk: the test holds the syncs back. */
#include "engine/usecase/asking.h"

#include "base/limits.h"
#include "gate/fake_gate.h"
#include "store_support/held_syncs.h"

static int held_setup(void **state)
{
    int rc = fixture_setup(state);
    put_workflow(*state, "w", ONE_TASK);
    settle(*state); /* from now on the writer commits for callers only */
    hold_syncs();
    return rc;
}

static int held_teardown(void **state)
{
    release_syncs();
    return fixture_teardown(state);
}

#define held_test(f) cmocka_unit_test_setup_teardown(f, held_setup, held_teardown)

#define UNTIL(fixture, condition)                           \
    do {                                                    \
        int64_t until_ = real_seconds() + GIVE_UP_S;        \
        while (!(condition)) {                              \
            if (real_seconds() >= until_)                   \
                fail_msg("it did not happen: " #condition); \
            fixture_round(fixture);                         \
        }                                                   \
    } while (0)

/* The writer's thread executes it, and another one syncs. */
static void submit_to_thread(struct call *c)
{
    c->op.bytes = INLINE_BYTES_MAX + 1;
    submit(c);
}

static int64_t runs_in_file(struct fixture *fixture)
{
    return in_file(fixture, "SELECT count(*) FROM runs");
}

/* Committed, and its sync is held back. */
static void start_held(struct call *c, struct fixture *fixture, const char *key)
{
    start_init(c, fixture, "w");
    if (key != NULL)
        call_key(c, key, "{}");
    submit_to_thread(c);
    UNTIL(fixture, syncs_waiting() == 1);
    assert_int_equal(runs_in_file(fixture), 1);
    assert_false(c->done);
}

/* --- changes --- */

static void a_commit_is_answered_after_a_sync_that_began_after_it(void **state)
{
    struct fixture *fixture = *state;
    struct call first;
    struct call second;
    start_held(&first, fixture, NULL);
    start_init(&second, fixture, "w");
    submit_to_thread(&second);
    UNTIL(fixture, runs_in_file(fixture) == 2); /* the writer is one batch ahead */
    let_one_sync();
    wait_done(&first);
    assert_int_equal(first.op.err, ERR_OK);
    assert_false(second.done);
    UNTIL(fixture, syncs_waiting() == 1);
    assert_false(second.done);
    release_syncs();
    wait_done(&second);
    assert_int_equal(second.op.err, ERR_OK);
    call_release(&first);
    call_release(&second);
}

static atomic_int refusals;

static enum err refuse(struct op *op, struct tx *tx)
{
    (void)tx;
    atomic_fetch_add(&refusals, 1);
    return problem_set(&op->problem, ERR_NOT_FOUND, "refused because of what it has seen");
}

static const struct use_case UC_REFUSED = {.name = "test_refused", .write = refuse};

static void after_a_failed_sync_nothing_is_answered_as_decided(void **state)
{
    struct fixture *fixture = *state;
    struct call changed;
    struct call refused;
    start_held(&changed, fixture, NULL);
    atomic_store(&refusals, 0);
    call_init(&refused, fixture, &UC_REFUSED);
    submit_to_thread(&refused);
    UNTIL(fixture, atomic_load(&refusals) == 1);
    fail_syncs();
    wait_done(&changed);
    wait_done(&refused);
    assert_int_equal(changed.op.err, ERR_STORE_FAILED);
    assert_int_equal(refused.op.err, ERR_STORE_FAILED); /* it has seen the change */
    assert_true(engine_failed(fixture->engine));
    call_release(&changed);
    call_release(&refused);
}

static void a_revoked_key_is_on_disk_before_anybody_can_see_it(void **state)
{
    struct fixture *fixture = *state;
    release_syncs();
    struct create_key_input in = {STR("acme"), ROLE_OPERATOR, STR("label")};
    json_t *made = answer_of(fixture, &UC_CREATE_KEY, &in);
    struct key_input key = {id_in(made, "id")};
    json_decref(made);
    hold_syncs();
    struct call revoked;
    call_init(&revoked, fixture, &UC_REVOKE_KEY);
    revoked.op.input = &key;
    submit_to_thread(&revoked);
    UNTIL(fixture, syncs_waiting() == 1);
    assert_int_equal(in_file(fixture, "SELECT count(revoked_at) FROM api_keys"), 0);
    release_syncs();
    wait_done(&revoked);
    assert_int_equal(revoked.op.err, ERR_OK);
    assert_int_equal(in_file(fixture, "SELECT count(revoked_at) FROM api_keys"), 1);
    call_release(&revoked);
}

/* --- reads --- */

static enum err count_runs(struct op *op, struct read_tx *tx)
{
    static const char SQL[] = "SELECT count(*) FROM runs";
    struct call *c = CONTAINER_OF(op, struct call, op);
    c->runs = (int)number_of(tx->db, SQL);
    return ERR_OK;
}

static const struct use_case UC_COUNT_RUNS = {.name = "test_count_runs", .read = count_runs};

/* Until something has woken the loop. While syncs are held, only a reader does. */
static void wait_for_event(struct fixture *fixture)
{
    struct pollfd fd = {engine_event_fd(fixture->engine), POLLIN, 0};
    assert_int_equal(poll(&fd, 1, GIVE_UP_S * 1000), 1);
    engine_poll(fixture->engine, true);
}

static void a_read_waits_until_what_it_has_seen_is_on_disk(void **state)
{
    struct fixture *fixture = *state;
    struct call change;
    struct call read;
    start_held(&change, fixture, NULL);
    engine_poll(fixture->engine, true);
    call_init(&read, fixture, &UC_COUNT_RUNS);
    submit(&read);
    wait_for_event(fixture);
    assert_int_equal(read.runs, 1);
    assert_false(read.done);
    release_syncs();
    wait_done(&read);
    wait_done(&change);
    assert_int_equal(read.op.err, ERR_OK);
    call_release(&change);
    call_release(&read);
}

static void a_read_is_answered_when_all_that_it_can_see_is_on_disk(void **state)
{
    struct fixture *fixture = *state;
    struct call read;
    call_init(&read, fixture, &UC_COUNT_RUNS);
    must_perform(&read); /* although the disk stands still */
    assert_int_equal(read.runs, 0);
    call_release(&read);
}

static void a_read_of_what_never_came_to_disk_fails(void **state)
{
    struct fixture *fixture = *state;
    struct call change;
    struct call read;
    start_held(&change, fixture, NULL);
    engine_poll(fixture->engine, true);
    call_init(&read, fixture, &UC_COUNT_RUNS);
    submit(&read);
    wait_for_event(fixture);
    fail_syncs();
    wait_done(&read);
    wait_done(&change);
    assert_int_equal(read.op.err, ERR_STORE_FAILED);
    call_release(&change);
    call_release(&read);
}

static void a_replay_waits_until_its_first_answer_is_on_disk(void **state)
{
    struct fixture *fixture = *state;
    struct call first;
    struct call again;
    start_held(&first, fixture, "key");
    start_init(&again, fixture, "w");
    call_key(&again, "key", "{}");
    assert_true(engine_replay(fixture->engine, &again.op));
    submit(&again);
    assert_false(again.done);
    release_syncs();
    wait_done(&first);
    wait_done(&again);
    assert_int_equal(again.op.err, ERR_OK);
    assert_true(again.op.answer.replayed);
    assert_true(uuid_eq(again.op.answer.run_id, first.op.answer.run_id));
    call_release(&first);
    call_release(&again);
}

static void a_start_at_the_gate_is_answered_once_when_the_answer_of_another_is_on_disk(void **state)
{
    struct fixture *fixture = *state;
    release_syncs();
    struct fake_gate *f = fake_gate_begin(fixture);
    put_tenant(fixture, "{'gate':{'retry_delay_ms':30,'policy':'fixed'}}");
    settle(fixture);
    f->reserved_left = 1;
    struct call late;
    start_init(&late, fixture, "w");
    call_key(&late, "key", "{}");
    submit(&late);
    settle(fixture);
    assert_int_equal(f->asked, 1);
    hold_syncs();
    struct call first;
    start_held(&first, fixture, "key");
    for (int i = 0; i < 3; i++) {
        fixture_pass_ms(fixture, 30);
        engine_poll(fixture->engine, true);
        assert_false(late.done);
    }
    release_syncs();
    wait_done(&first);
    wait_done(&late);
    assert_true(late.op.answer.replayed);
    settle(fixture);
    assert_int_equal(f->asked, 2); /* the first one, and this one when its key was reserved */
    assert_true(engine_idle(fixture->engine));
    call_release(&first);
    call_release(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        held_test(a_commit_is_answered_after_a_sync_that_began_after_it),
        held_test(after_a_failed_sync_nothing_is_answered_as_decided),
        held_test(a_revoked_key_is_on_disk_before_anybody_can_see_it),
        held_test(a_read_waits_until_what_it_has_seen_is_on_disk),
        held_test(a_read_is_answered_when_all_that_it_can_see_is_on_disk),
        held_test(a_read_of_what_never_came_to_disk_fails),
        held_test(a_replay_waits_until_its_first_answer_is_on_disk),
        held_test(a_start_at_the_gate_is_answered_once_when_the_answer_of_another_is_on_disk),
    };
    held_syncs_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
