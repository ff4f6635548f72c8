/* Every call of the store is made to fail once, and a caller who retries with the same key still
 * gets one run, whose file the doctor finds sound. */
#include "engine/actions.h"

enum {
    CALLS_MAX = 2000, /* a script that takes more has no end */
    RETRIES_MAX = 5,
};

#define LIMITED                                                          \
    "{'concurrency':[{'limit':100}],'steps':[{'name':'a','type':'task'," \
    "'handler':'h'},{'name':'b','type':'wait_signal','signal':'go'}]}"

static int faulty_setup(void **state)
{
    assert_int_equal(setenv("PAWL_TEST_STORE", "failing", 1), 0);
    return fixture_setup(state);
}

static int faulty_teardown(void **state)
{
    failing_disarm();
    return fixture_teardown(state);
}

#define faulty_test(f) cmocka_unit_test_setup_teardown(f, faulty_setup, faulty_teardown)

/* --- one run, by a caller who retries --- */

static struct uuid start_keyed(struct fixture *fixture, const char *key, int retries,
                               enum err *ret_err)
{
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, key, "{}");
    enum err e = ERR_OVERLOADED;
    for (int i = 0; i <= retries && e != ERR_OK; i++)
        e = perform(&c);
    struct uuid id = c.op.answer.run_id;
    call_release(&c);
    *ret_err = e;
    return id;
}

static void claim_retrying(struct fixture *fixture, struct held *out)
{
    size_t count = 0;
    for (int i = 0; i <= RETRIES_MAX && count == 0; i++) {
        struct call c;
        claim_init(&c, fixture, "worker", 60000);
        if (perform(&c) == ERR_OK) {
            json_t *jobs = jobs_of(&c);
            count = json_array_size(jobs);
            if (count > 0)
                held_read(out, json_array_get(jobs, 0));
            json_decref(jobs);
        }
        call_release(&c);
    }
    assert_int_equal(count, 1);
}

static void signal_retrying(struct fixture *fixture, struct uuid id)
{
    struct signal_run_input in = {
        .run_id = id, .if_match = -1, .name = STR("go"), .payload = STR("null")};
    struct call c;
    call_init(&c, fixture, &UC_SIGNAL_RUN);
    call_key(&c, "signal", "{}");
    char key[64];
    struct buf text;
    buf_init(&text, KIB);
    buf_put_uuid(&text, id);
    (void)snprintf(key, sizeof(key), "%.*s", STR_ARG(buf_str(&text)));
    buf_release(&text);
    call_key(&c, key, "{}");
    c.op.input = &in;
    enum err e = ERR_OVERLOADED;
    for (int i = 0; i <= RETRIES_MAX && e != ERR_OK; i++)
        e = perform(&c);
    assert_ok(e);
    call_release(&c);
}

static void live(struct fixture *fixture, const char *key)
{
    enum err e;
    struct uuid id = start_keyed(fixture, key, RETRIES_MAX, &e);
    assert_ok(e);
    struct held h;
    claim_retrying(fixture, &h);
    e = ERR_OVERLOADED;
    for (int i = 0; i <= RETRIES_MAX && e != ERR_OK; i++)
        e = complete(fixture, &h);
    assert_ok(e);
    signal_retrying(fixture, id);
    failing_disarm();
    assert_run_is(fixture, id, "succeeded");
}

/* --- once --- */

static void sweep_once(struct fixture *fixture, enum err fault)
{
    put_workflow(fixture, "w", LIMITED);
    int64_t n = 0;
    bool fired = true;
    while (fired) {
        assert_true(++n < CALLS_MAX);
        char key[32];
        (void)snprintf(key, sizeof(key), "key-%d", (int)n);
        failing_arm(&(struct fault){.nth = n, .err = fault, .access = DB_WRITER});
        live(fixture, key);
        fired = failing_has_fired();
        assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), n);
        assert_sound(fixture);
    }
    assert_true(n > 30); /* a start alone takes some */
}

static void a_full_disk_at_any_call_costs_no_run_and_makes_no_second(void **state)
{
    sweep_once(*state, ERR_STORE_FULL);
}

static void a_busy_store_at_any_call_costs_no_run_and_makes_no_second(void **state)
{
    sweep_once(*state, ERR_STORE_BUSY);
}

static void want_of_memory_at_any_call_costs_no_run_and_makes_no_second(void **state)
{
    sweep_once(*state, ERR_NO_MEMORY);
}

static void a_failed_statement_at_any_call_costs_no_run_and_makes_no_second(void **state)
{
    sweep_once(*state, ERR_INTERNAL);
}

/* --- from a call on, until it is mended --- */

static void a_disk_that_stays_full_refuses_and_takes_the_retry_later(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", LIMITED);
    int64_t n = 0;
    int64_t refused = 0;
    bool fired = true;
    while (fired) {
        assert_true(++n < CALLS_MAX);
        char key[32];
        enum err e;
        (void)snprintf(key, sizeof(key), "key-%d", (int)n);
        failing_arm(
            &(struct fault){.nth = n, .err = ERR_STORE_FULL, .lasting = true, .access = DB_WRITER});
        (void)start_keyed(fixture, key, 0, &e);
        fired = failing_has_fired();
        failing_disarm();
        if (e != ERR_OK) {
            assert_int_equal(e, ERR_STORE_FULL);
            refused++;
            assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), n - 1);
            (void)start_keyed(fixture, key, 0, &e);
            assert_ok(e);
        }
        assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), n);
    }
    assert_true(refused > 5);
    assert_sound(fixture);
}

/* --- in doubt --- */

/* The store is not used any more: the server stops, and is started again. */
static void in_doubt(struct fixture *fixture, bool commit_happened)
{
    put_workflow(fixture, "w", LIMITED);
    int64_t n = 0;
    bool fired = true;
    while (fired) {
        assert_true(++n < CALLS_MAX);
        char key[32];
        enum err e;
        (void)snprintf(key, sizeof(key), "key-%d", (int)n);
        failing_arm(&(struct fault){.nth = n,
                                    .err = ERR_STORE_FAILED,
                                    .lasting = true,
                                    .commit_happened = commit_happened,
                                    .access = DB_WRITER});
        (void)start_keyed(fixture, key, 0, &e);
        fired = failing_has_fired();
        if (e != ERR_OK)
            assert_int_equal(e, ERR_STORE_FAILED);
        fixture_stop(fixture);
        failing_disarm();
        fixture_start(fixture, 0);
        (void)start_keyed(fixture, key, 0, &e);
        assert_ok(e);
        assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), n);
    }
    assert_sound(fixture);
}

static void a_commit_in_doubt_that_happened_is_found_by_the_retry(void **state)
{
    in_doubt(*state, true);
}

static void a_commit_in_doubt_that_did_not_happen_is_made_by_the_retry(void **state)
{
    in_doubt(*state, false);
}

static void after_a_failed_checkpoint_nothing_is_acknowledged(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", LIMITED);
    failing_arm(&(struct fault){
        .nth = 1, .err = ERR_STORE_FAILED, .access = DB_WRITER, .at_housekeeping = true});
    enum err e = ERR_OK;
    int64_t until = real_seconds() + GIVE_UP_S;
    while (!failing_has_fired()) { /* the writer does its housekeeping between its turns */
        assert_true(real_seconds() < until);
        (void)start_keyed(fixture, "before", 0, &e);
    }
    while (!engine_failed(fixture->engine))
        assert_true(real_seconds() < until);
    int64_t runs = in_file(fixture, "SELECT count(*) FROM runs");
    for (int i = 0; i < 3; i++) {
        (void)start_keyed(fixture, "after", 0, &e);
        assert_int_equal(e, ERR_STORE_FAILED);
        assert_true(engine_failed(fixture->engine));
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), runs);
}

/* --- readers --- */

static void a_failed_read_is_answered_and_the_next_one_works(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", LIMITED);
    struct uuid id = start(fixture, "w");
    int64_t n = 0;
    bool fired = true;
    while (fired) {
        assert_true(++n < CALLS_MAX);
        failing_arm(&(struct fault){.nth = n, .err = ERR_STORE_BUSY, .access = DB_READER});
        struct call c;
        call_init(&c, fixture, &UC_GET_RUN);
        c.input.run.run_id = id;
        enum err e = perform(&c);
        fired = failing_has_fired();
        failing_disarm();
        if (e != ERR_OK)
            assert_int_equal(e, ERR_STORE_BUSY);
        must_perform(&c);
        call_release(&c);
    }
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        faulty_test(a_full_disk_at_any_call_costs_no_run_and_makes_no_second),
        faulty_test(a_busy_store_at_any_call_costs_no_run_and_makes_no_second),
        faulty_test(want_of_memory_at_any_call_costs_no_run_and_makes_no_second),
        faulty_test(a_failed_statement_at_any_call_costs_no_run_and_makes_no_second),
        faulty_test(a_disk_that_stays_full_refuses_and_takes_the_retry_later),
        faulty_test(a_commit_in_doubt_that_happened_is_found_by_the_retry),
        faulty_test(a_commit_in_doubt_that_did_not_happen_is_made_by_the_retry),
        faulty_test(after_a_failed_checkpoint_nothing_is_acknowledged),
        faulty_test(a_failed_read_is_answered_and_the_next_one_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
