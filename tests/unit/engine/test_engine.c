/* The engine as a whole: idempotency, waiting, draining, the log, backups. */
#include "engine/fixture.h"

#include "runtime/writer.h"

/* --- one key, one run --- */

static void starts_with_one_key_at_once_make_one_run(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    struct call calls[3 * ONE_BATCH];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        start_init(&calls[i], fixture, "w");
        call_key(&calls[i], "key", "{}");
        submit(&calls[i]);
        if (i % ONE_BATCH == 0)
            engine_round_end(fixture->engine); /* some land in other batches */
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
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency"), 1);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     1);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        call_release(&calls[i]);
}

static void another_request_under_a_known_key_is_refused_and_the_first_unharmed(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    struct call calls[3];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        start_init(&calls[i], fixture, "w");
        call_key(&calls[i], "key", i == 1 ? "{\"other\":1}" : "{}");
        submit(&calls[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        wait_done(&calls[i]);
    assert_int_equal(calls[0].op.err, ERR_OK);
    assert_int_equal(calls[1].op.err, ERR_IDEM_KEY_REUSED);
    assert_int_equal(calls[2].op.err, ERR_OK);
    assert_true(calls[2].op.answer.replayed);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        call_release(&calls[i]);
}

static void keys_outlive_the_engine(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call first;
    start_init(&first, fixture, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    fixture_stop(fixture);
    fixture_start(fixture, 0);
    struct call again;
    start_init(&again, fixture, "w");
    call_key(&again, "key", "{}");
    must_perform(&again);
    assert_true(again.op.answer.replayed);
    assert_true(uuid_eq(again.op.answer.run_id, first.op.answer.run_id));
    call_release(&first);
    call_release(&again);
}

static void a_key_past_its_time_starts_anew_and_is_evicted(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'idempotency_retention_s':10}");
    struct call first;
    start_init(&first, fixture, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    fixture_pass_ms(fixture, 9999);
    struct call again;
    start_init(&again, fixture, "w");
    call_key(&again, "key", "{}");
    must_perform(&again);
    assert_true(again.op.answer.replayed);
    fixture_set_wall_ms(fixture,
                        fixture_now_ms(fixture) + 1); /* no sweep: the old record is still there */
    must_perform(&again);
    assert_false(again.op.answer.replayed);
    assert_false(uuid_eq(again.op.answer.run_id, first.op.answer.run_id));
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency"), 1);
    fixture_pass_ms(fixture, 10000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency"), 0);
    call_release(&first);
    call_release(&again);
}

static void a_known_key_is_answered_without_the_writer(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call first;
    start_init(&first, fixture, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    settle(fixture); /* or it waits for a commit of the background to be on disk */
    struct call again;
    start_init(&again, fixture, "w");
    call_key(&again, "key", "{}");
    again.op.idem.has_fingerprint = false; /* bytes alone will do */
    assert_true(engine_replay(fixture->engine, &again.op));
    submit(&again);
    assert_true(again.done); /* at once */
    assert_int_equal(again.op.err, ERR_OK);
    assert_true(again.op.answer.replayed);
    assert_true(str_eq(answer_to_keep(&again.op.answer), answer_to_keep(&first.op.answer)));
    struct call other;
    start_init(&other, fixture, "w");
    call_key(&other, "key", "{ }");
    other.op.idem.has_fingerprint = false;
    assert_false(engine_replay(fixture->engine, &other.op)); /* these bytes may mean the same */
    struct call unknown;
    start_init(&unknown, fixture, "w");
    call_key(&unknown, "new", "{}");
    assert_false(engine_replay(fixture->engine, &unknown.op));
    call_release(&first);
    call_release(&again);
    call_release(&other);
    call_release(&unknown);
}

/* In rounds of their own: each has another snapshot. */
static bool replays(struct fixture *fixture, struct uuid *ret_run)
{
    struct call again;
    start_init(&again, fixture, "w");
    call_key(&again, "key", "{}");
    bool answered = engine_replay(fixture->engine, &again.op);
    if (answered) {
        must_perform(&again);
        *ret_run = again.op.answer.run_id;
    }
    call_release(&again);
    fixture_round(fixture);
    return answered;
}

static struct uuid start_and_replay(struct fixture *fixture)
{
    struct call first;
    start_init(&first, fixture, "w");
    call_key(&first, "key", "{}");
    must_perform(&first);
    settle(fixture); /* nothing is committed between the replays */
    struct uuid run = first.op.answer.run_id;
    for (int i = 0; i < 4; i++) {
        struct uuid again;
        assert_true(replays(fixture, &again));
        assert_true(uuid_eq(again, run));
    }
    call_release(&first);
    return run;
}

static void a_key_that_was_replayed_often_can_be_released(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid first = start_and_replay(fixture);
    struct idem_input in = {STR("key")};
    struct call release;
    call_init(&release, fixture, &UC_RELEASE_IDEM);
    release.op.input = &in;
    must_perform(&release);
    call_release(&release);
    struct uuid ignored;
    assert_false(replays(fixture, &ignored));
    assert_false(uuid_eq(start_and_replay(fixture), first));
}

static void a_key_that_was_replayed_often_expires_in_time(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'idempotency_retention_s':10}");
    struct uuid ignored;
    (void)start_and_replay(fixture);
    fixture_set_wall_ms(fixture, fixture_now_ms(fixture) + 10000);
    assert_false(replays(fixture, &ignored));
}

static void replays_are_counted_with_the_next_sweep(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    for (int i = 0; i < 5; i++) {
        struct call c;
        start_init(&c, fixture, "w");
        call_key(&c, "key", i == 4 ? "{\"other\":1}" : "{}");
        assert_int_equal(perform(&c), i == 4 ? ERR_IDEM_KEY_REUSED : ERR_OK);
        call_release(&c);
    }
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT replays FROM idempotency"), 3);
    assert_int_equal(in_file(fixture, "SELECT mismatches FROM idempotency"), 1);
    assert_int_equal(in_file(fixture, "SELECT last_replayed_at FROM idempotency"),
                     fixture_now_ms(fixture) - 1000);
}

/* --- waiting --- */

static void park(struct call *c)
{
    submit(c);
    settle(c->fixture);
    assert_false(c->done);
    assert_false(engine_idle(c->fixture->engine));
}

static void a_parked_claim_gets_the_next_job(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call claim;
    claim_init(&claim, fixture, "worker", 30000);
    claim.op.wait_ms = 20000;
    park(&claim);
    (void)start(fixture, "w");
    wait_done(&claim);
    assert_int_equal(claim.op.err, ERR_OK);
    json_t *jobs = jobs_of(&claim);
    assert_int_equal(json_array_size(jobs), 1);
    json_decref(jobs);
    call_release(&claim);
}

static void one_job_wakes_the_claim_that_waited_longest(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call claims[3];
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        claim_init(&claims[i], fixture, "worker", 30000);
        claims[i].op.wait_ms = 20000;
        park(&claims[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        (void)start(fixture, "w");
        wait_done(&claims[i]);
        settle(fixture);
        for (size_t later = i + 1; later < ARRAY_LEN(claims); later++)
            assert_false(claims[later].done);
    }
    for (size_t i = 0; i < ARRAY_LEN(claims); i++)
        call_release(&claims[i]);
}

static void a_claim_gives_up_when_its_time_is_over(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call claim;
    claim_init(&claim, fixture, "worker", 30000);
    claim.op.wait_ms = 5000;
    park(&claim);
    fixture_pass_ms(fixture, 4999);
    settle(fixture);
    assert_false(claim.done);
    fixture_pass_ms(fixture, 1);
    engine_poll(fixture->engine, true);
    assert_true(claim.done);
    assert_int_equal(claim.op.err, ERR_OK);
    json_t *jobs = jobs_of(&claim);
    assert_int_equal(json_array_size(jobs), 0);
    json_decref(jobs);
    fixture_until_idle(fixture);
    call_release(&claim);
}

static void a_start_that_waits_shows_the_run_at_its_end(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call begun;
    start_init(&begun, fixture, "w");
    begun.op.wait_ms = 20000;
    park(&begun);
    struct call claim;
    struct call finish;
    claim_init(&claim, fixture, "worker", 30000);
    must_perform(&claim);
    finish_init(&finish, fixture, &claim);
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
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct call claim;
    struct call other_claim;
    struct call begun;
    claim_init(&claim, fixture, "worker", 30000);
    claim_init(&other_claim, fixture, "worker", 30000);
    claim.op.wait_ms = other_claim.op.wait_ms = 30000;
    other_claim.queue = claim.queue = STR("empty");
    park(&claim);
    park(&other_claim);
    start_init(&begun, fixture, "w");
    begun.op.wait_ms = 60000;
    park(&begun);
    engine_drain(fixture->engine);
    wait_done(&claim);
    wait_done(&other_claim);
    wait_done(&begun);
    assert_int_equal(claim.op.err, ERR_OK);
    assert_int_equal(begun.op.err, ERR_OK);
    assert_false(begun.op.answer.run_over);
    fixture_until_idle(fixture);
    struct call late;
    start_init(&late, fixture, "w");
    submit(&late);
    assert_true(late.done);
    assert_int_equal(late.op.err, ERR_DRAINING);
    struct problem p;
    problem_init(&p);
    assert_int_equal(engine_ready(fixture->engine, &p), ERR_DRAINING);
    problem_release(&p);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    call_release(&claim);
    call_release(&other_claim);
    call_release(&begun);
    call_release(&late);
}

static void what_was_handed_over_before_the_drain_is_finished(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    struct call calls[ONE_BATCH];
    for (size_t i = 0; i < ONE_BATCH; i++) {
        start_init(&calls[i], fixture, "w");
        submit(&calls[i]);
    }
    engine_drain(fixture->engine);
    for (size_t i = 0; i < ONE_BATCH; i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, ERR_OK);
        call_release(&calls[i]);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), ONE_BATCH);
}

static void a_second_engine_on_the_file_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char url[160];
    test_store_url(fixture->file.text, url, sizeof(url));
    struct metrics *metrics = metrics_new();
    struct engine_config config = {
        .store_url = str_of(url), .root_key = STR(""), .env = &fixture->env, .metrics = metrics};
    struct problem p;
    problem_init(&p);
    struct engine *second = NULL;
    assert_int_equal(engine_open(&config, &p, &second), ERR_STORE_BUSY);
    assert_null(second);
    problem_release(&p);
    metrics_free(metrics);
}

/* --- the log --- */

static enum err start_under_key(struct fixture *fixture, const char *body, struct uuid *ret)
{
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "key", body);
    enum err e = perform(&c);
    *ret = c.op.answer.run_id;
    call_release(&c);
    return e;
}

static void a_full_log_refuses_changes_until_it_can_shrink(void **state)
{
    struct fixture *fixture = *state;
    if (test_store_is_eager())
        return; /* it has no log that could be full */
    fixture_stop(fixture);
    fixture_start(fixture, 64 * 4096);
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid keyed = {{0}};
    assert_int_equal(start_under_key(fixture, "{}", &keyed), ERR_OK);
    struct raw outside = raw_open(fixture->file.text);
    raw_exec(&outside, "BEGIN");
    (void)raw_number(&outside, "SELECT count(*) FROM runs");
    enum err e = ERR_OK;
    int64_t started = 1;
    for (int i = 0; i < 2000 && e == ERR_OK; i++) {
        struct call c;
        start_init(&c, fixture, "w");
        e = perform(&c);
        started += e == ERR_OK;
        call_release(&c);
    }
    assert_int_equal(e, ERR_STORE_BUSY);
    assert_true(started > 1);
    struct uuid again = {{0}}; /* what was acknowledged is answered, and nothing is written */
    assert_int_equal(start_under_key(fixture, "{}", &again), ERR_OK);
    assert_true(uuid_eq(again, keyed));
    assert_int_equal(start_under_key(fixture, "{\"n\":1}", &again), ERR_IDEM_KEY_REUSED);
    struct problem p;
    problem_init(&p);
    assert_int_equal(engine_ready(fixture->engine, &p), ERR_STORE_BUSY);
    struct call look; /* reads go on */
    call_init(&look, fixture, &UC_GET_RUN);
    assert_int_equal(perform(&look), ERR_RUN_NOT_FOUND);
    call_release(&look);
    raw_exec(&outside, "COMMIT");
    raw_close(&outside);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (engine_ready(fixture->engine, &p) != ERR_OK) {
        assert_true(real_seconds() < until);
        fixture_round(fixture);
    }
    (void)start(fixture, "w");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), started + 1);
    problem_release(&p);
}

/* --- backup --- */

static void a_backup_goes_on_beside_the_callers(void **state)
{
    struct fixture *fixture = *state;
    if (test_store_is_eager())
        return; /* the next test is about such a store */
    put_workflow(fixture, "w", ONE_TASK);
    for (int i = 0; i < 5; i++)
        (void)start(fixture, "w");
    struct call backup;
    call_init(&backup, fixture, &UC_BACKUP);
    submit(&backup);
    (void)start(fixture, "w");
    wait_done(&backup);
    assert_int_equal(backup.op.err, ERR_OK);
    struct raw raw = raw_open(backup.op.answer.body.ptr);
    raw_check_integrity(&raw);
    assert_true(raw_number(&raw, "SELECT count(*) FROM runs") >= 5);
    raw_close(&raw);
    call_release(&backup);
}

static void a_store_without_online_copies_refuses_a_backup(void **state)
{
    struct fixture *fixture = *state;
    if (!test_store_is_eager())
        return; /* the test before is about such a store */
    struct call backup;
    call_init(&backup, fixture, &UC_BACKUP);
    assert_int_equal(perform(&backup), ERR_BAD_REQUEST);
    assert_contains(backup.op.problem.detail, "has no online backup");
    call_release(&backup);
    put_workflow(fixture, "w", ONE_TASK);
    (void)start(fixture, "w");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(starts_with_one_key_at_once_make_one_run),
        fixture_test(another_request_under_a_known_key_is_refused_and_the_first_unharmed),
        fixture_test(keys_outlive_the_engine),
        fixture_test(a_key_past_its_time_starts_anew_and_is_evicted),
        fixture_test(a_known_key_is_answered_without_the_writer),
        fixture_test(a_key_that_was_replayed_often_can_be_released),
        fixture_test(a_key_that_was_replayed_often_expires_in_time),
        fixture_test(replays_are_counted_with_the_next_sweep),
        fixture_test(a_parked_claim_gets_the_next_job),
        fixture_test(one_job_wakes_the_claim_that_waited_longest),
        fixture_test(a_claim_gives_up_when_its_time_is_over),
        fixture_test(a_start_that_waits_shows_the_run_at_its_end),
        fixture_test(draining_answers_who_waits_and_refuses_who_comes),
        fixture_test(what_was_handed_over_before_the_drain_is_finished),
        fixture_test(a_second_engine_on_the_file_is_refused),
        fixture_test(a_full_log_refuses_changes_until_it_can_shrink),
        fixture_test(a_backup_goes_on_beside_the_callers),
        fixture_test(a_store_without_online_copies_refuses_a_backup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
