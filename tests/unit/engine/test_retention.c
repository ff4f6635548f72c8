/* Finished runs go when their time is over, in slices; runs that are not over stay. */
#include "engine/actions.h"

#include "core/background/retention.h"
#include "store/run/retention.h"

enum { DAY_S = 24 * 3600 };

#define AT_ONCE "{'steps':[{'name':'t','type':'transform','output':1}]}"
#define KEEP_A_DAY "{'run_retention_s':86400}"

static int64_t runs(struct fixture *fixture)
{
    return in_file(fixture, "SELECT count(*) FROM runs");
}

/* All rows that belong to some run. */
static int64_t rows(struct fixture *fixture)
{
    return in_file(fixture,
                   "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM runs_index)"
                   " + (SELECT count(*) FROM jobs) + (SELECT count(*) FROM events)"
                   " + (SELECT count(*) FROM map_items) + (SELECT count(*) FROM run_signals)"
                   " + (SELECT count(*) FROM timers)");
}

/* Long enough for the walk over tenants to begin anew, and for what is due to be done. */
static void pass(struct fixture *fixture, int64_t s)
{
    fixture_pass_ms(fixture, s * 1000);
    for (int i = 0; i < 3; i++) {
        fixture_pass_ms(fixture, RETENTION_PAUSE_MS);
        settle(fixture);
    }
}

static void a_run_goes_when_it_has_been_over_for_as_long_as_its_tenant_says(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, KEEP_A_DAY);
    put_workflow(fixture, "w", AT_ONCE);
    put_workflow(
        fixture, "m",
        "{'steps':[" TASK_STEP(
            "a", ",'for_each':[1,2]") ",{'name':'s',"
                                      "'type':'wait_signal','signal':'x','timeout_ms':5}]}");
    struct uuid map = start(fixture, "m");
    work(fixture, "a");
    work(fixture, "a");
    fixture_pass_ms(fixture, 5);
    settle(fixture);
    assert_run_is(fixture, map, "failed");
    (void)start(fixture, "w");
    pass(fixture, DAY_S - 3600);
    assert_int_equal(runs(fixture), 2);
    pass(fixture, 3600);
    assert_int_equal(rows(fixture), 0);
    assert_int_equal(in_file(fixture, "SELECT active_runs + queued_runs FROM tenant_counters"), 0);
    assert_sound(fixture);
}

static void runs_that_are_not_over_stay_however_old_they_are(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'run_retention_s':1,'max_concurrent_runs':3}");
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "nap", "{'steps':[{'name':'s','type':'sleep','duration_ms':864000000}]}");
    struct uuid old = start(fixture, "w");
    struct uuid asleep = start(fixture, "nap");
    struct uuid paused = start(fixture, "w");
    assert_int_equal(control(fixture, paused, CONTROL_PAUSE), ERR_OK);
    struct uuid later = start_later(fixture, "w", fixture_now_ms(fixture) + INT64_C(864000000));
    struct uuid gone = start_later(fixture, "w", fixture_now_ms(fixture) + INT64_C(864000000));
    assert_int_equal(control(fixture, gone, CONTROL_CANCEL), ERR_OK);
    pass(fixture, 5 * DAY_S);
    assert_int_equal(runs(fixture), 4);
    assert_run_is(fixture, old, "running");
    assert_run_is(fixture, asleep, "waiting");
    assert_run_is(fixture, paused, "paused");
    assert_run_is(fixture, later, "queued");
    work(fixture, "a"); /* it counts from its end, not from its beginning */
    assert_run_is(fixture, old, "succeeded");
    pass(fixture, 1);
    assert_int_equal(runs(fixture), 3);
}

static void a_run_is_kept_from_its_end_on(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, KEEP_A_DAY);
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    pass(fixture, 10 * DAY_S);
    work(fixture, "a");
    pass(fixture, DAY_S - 3600);
    assert_run_is(fixture, run, "succeeded");
    pass(fixture, 3600);
    assert_int_equal(runs(fixture), 0);
}

static void without_a_retention_runs_are_kept_for_ever(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    (void)start(fixture, "w");
    pass(fixture, 3650 * INT64_C(86400));
    assert_int_equal(runs(fixture), 1);
    put_tenant(fixture, KEEP_A_DAY);
    pass(fixture, 1);
    assert_int_equal(runs(fixture), 0);
    (void)start(fixture, "w");
    put_tenant(fixture, "{'run_retention_s':null}");
    pass(fixture, 10 * DAY_S);
    assert_int_equal(runs(fixture), 1);
}

static void tenants_do_not_lose_each_others_runs(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", AT_ONCE);
    (void)start(fixture, "w"); /* acme's are kept */
    static const char *const OTHERS[] = {"before", "short", "zoo"};
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        struct problem p;
        problem_init(&p);
        json_t *json = json_of(AT_ONCE);
        struct definition *def = NULL;
        assert_int_equal(parse_tree(json, STR("w"), &p, &def), ERR_OK);
        struct call c;
        call_init(&c, fixture, &UC_PUT_WORKFLOW);
        c.op.caller.tenant = str_of(OTHERS[i]);
        struct str text = STR("{\"steps\":[{\"name\":\"t\",\"type\":\"transform\",\"output\":1}]}");
        c.input.workflow = (struct put_workflow_input){STR("w"), def, text, sha256_of(text)};
        must_perform(&c);
        call_release(&c);
        start_init(&c, fixture, "w");
        c.op.caller.tenant = str_of(OTHERS[i]);
        must_perform(&c);
        call_release(&c);
        definition_free(def);
        json_decref(json);
        problem_release(&p);
    }
    struct json *body = json_value_of_tree(json_of("{'run_retention_s':60}"));
    struct call c;
    call_init(&c, fixture, &UC_PUT_TENANT);
    c.input.tenant = (struct put_tenant_input){STR("short"), body};
    must_perform(&c);
    call_release(&c);
    json_free(body);
    pass(fixture, DAY_S);
    assert_int_equal(runs(fixture), 3);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE tenant ="
                                      " (SELECT num FROM tenants WHERE id = 'short')"),
                     0);
    assert_sound(fixture);
}

/* --- slices --- */

/* One transaction of the writer's, without the rest of the engine; returns the rows it removed. */
static int64_t one_slice(struct retention *r, struct tx *tx, bool *ret_more)
{
    int64_t before = db_changes(tx->db);
    tx_start(tx, env_now_ms(tx->env));
    assert_int_equal(db_begin(tx->db), ERR_OK);
    assert_int_equal(retention_slice(r, tx, ret_more), ERR_OK);
    assert_int_equal(db_commit(tx->db), ERR_OK);
    return db_changes(tx->db) - before;
}

/* What is left between two slices is what a crash would leave: the run itself goes last. */
static void a_run_of_many_events_goes_in_slices_and_is_found_again_after_a_crash(void **state)
{
    enum { EVENTS = 1300 };
    struct fixture *fixture = *state;
    put_tenant(fixture, KEEP_A_DAY);
    put_workflow(fixture, "w", AT_ONCE);
    put_workflow(fixture, "open", ONE_TASK);
    (void)start(fixture, "open");
    struct uuid run = start(fixture, "w");
    (void)start(fixture, "w");
    settle(fixture);
    fixture_pass_ms(fixture, 2000); /* the index of runs is filled now and then */
    settle(fixture);
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "WITH RECURSIVE n(i) AS (SELECT 1 + max(seq) FROM events WHERE run = %lld"
                   " UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
                   " INSERT INTO timeline (run, seq, at, type) SELECT %lld, i, 5, 'x' FROM n",
                   (long long)uuid_time(run), EVENTS, (long long)uuid_time(run));
    tamper(fixture, sql);
    fixture_stop(fixture);
    fixture_pass_ms(fixture, (DAY_S + 3600) * INT64_C(1000));
    struct db *db = open_writer(fixture->file.text);
    struct tx tx;
    assert_int_equal(tx_init(&tx, db, &fixture->env), ERR_OK);
    int slices = 0;
    bool more = true;
    while (more) {
        struct retention walk = {0}; /* as a new server begins */
        int64_t removed = one_slice(&walk, &tx, &more);
        assert_in_range(removed, 0, RETENTION_ROWS_PER_TURN_MAX + 1);
        assert_int_equal(number_of(db, "SELECT (SELECT count(*) FROM events e WHERE NOT EXISTS"
                                       " (SELECT 1 FROM runs r WHERE r.num = e.run))"
                                       " + (SELECT count(*) FROM jobs j WHERE NOT EXISTS"
                                       " (SELECT 1 FROM runs r WHERE r.num = j.run))"),
                         0);
        slices++;
        assert_true(slices < 20);
    }
    assert_int_equal(slices, 3);
    assert_int_equal(number_of(db, "SELECT count(*) FROM runs"), 1); /* the one that is not over */
    assert_int_equal(number_of(db, "SELECT count(*) FROM runs_index"), 1);
    tx_release(&tx);
    db_close(db);
}

/* What was made before the end is in the index of runs before the first look for old ones. */
static void a_server_that_starts_removes_old_runs_at_once(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, KEEP_A_DAY);
    put_workflow(fixture, "w", AT_ONCE);
    (void)start(fixture, "w");
    fixture_stop(fixture);
    fixture_pass_ms(fixture, DAY_S * INT64_C(1000));
    fixture_start(fixture, 0);
    settle(fixture);
    assert_int_equal(rows(fixture), 0);
    assert_sound(fixture);
}

static void starts_go_on_while_thousands_of_runs_go(void **state)
{
    enum { OLD = 3000, TOGETHER = 250, NEW = 20 };
    struct fixture *fixture = *state;
    put_tenant(fixture, KEEP_A_DAY);
    put_workflow(fixture, "w", AT_ONCE);
    static struct call calls[TOGETHER];
    for (int batch = 0; batch < OLD / TOGETHER; batch++) {
        for (size_t i = 0; i < TOGETHER; i++) {
            start_init(&calls[i], fixture, "w");
            submit(&calls[i]);
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            wait_done(&calls[i]);
            assert_int_equal(calls[i].op.err, ERR_OK);
            call_release(&calls[i]);
        }
    }
    settle(fixture);
    assert_int_equal(runs(fixture), OLD);
    fixture_pass_ms(fixture, (DAY_S + 3600) * INT64_C(1000));
    for (int i = 0; i < NEW; i++) {
        struct uuid fresh = start(fixture, "w");
        assert_run_is(fixture, fresh, "succeeded");
    }
    int64_t until = real_seconds() + GIVE_UP_S;
    while (runs(fixture) > NEW) {
        assert_true(real_seconds() < until);
        fixture_pass_ms(fixture, 1000);
        settle(fixture);
    }
    assert_int_equal(runs(fixture), NEW);
    assert_sound(fixture);
}

/* Keys have a time of their own: a retry long after still gets its first answer. */
static void a_key_outlives_the_run_that_it_made(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, KEEP_A_DAY);
    put_workflow(fixture, "w", AT_ONCE);
    struct call c;
    start_init(&c, fixture, "w");
    call_key(&c, "k", "body");
    must_perform(&c);
    struct uuid id = c.op.answer.run_id;
    call_release(&c);
    pass(fixture, 2 * DAY_S);
    assert_int_equal(runs(fixture), 0);
    start_init(&c, fixture, "w");
    call_key(&c, "k", "body");
    must_perform(&c);
    assert_true(c.op.answer.replayed && uuid_eq(c.op.answer.run_id, id));
    call_release(&c);
    assert_int_equal(runs(fixture), 0);
    assert_sound(fixture);
}

static enum err rerun(struct fixture *fixture, struct uuid id)
{
    struct rerun_run_input in = {.run_id = id, .if_match = -1};
    struct call c;
    call_init(&c, fixture, &UC_RERUN_RUN);
    c.op.input = &in;
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

/* The first slice of a removal takes the oldest events, and here no more than that. */
static void a_run_whose_removal_has_begun_is_not_made_use_of_again(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    work_badly(fixture, "a");
    assert_run_is(fixture, run, "failed");
    fixture_stop(fixture);
    struct db *db = open_writer(fixture->file.text);
    int64_t removed = 0;
    bool gone = true;
    assert_int_equal(db_begin(db), ERR_OK);
    assert_int_equal(retention_remove(db, 1, uuid_time(run), 1, &removed, &gone), ERR_OK);
    assert_int_equal(db_commit(db), ERR_OK);
    db_close(db);
    assert_true(removed == 1 && !gone);
    fixture_start(fixture, 0);
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_RUN_BEING_REMOVED);
    assert_int_equal(rerun(fixture, run), ERR_RUN_BEING_REMOVED);
    assert_run_is(fixture, run, "failed");
    assert_int_equal(runs(fixture), 1);
}

#define PARENT "{'steps':[{'name':'c','type':'workflow','workflow_id':'child'}]}"

/* A parent that waits for its child, which is at its one task. */
static struct uuid start_parent(struct fixture *fixture, const char *settings, const char *parent)
{
    put_tenant(fixture, settings);
    put_workflow(fixture, "child", ONE_TASK);
    put_workflow(fixture, "parent", parent);
    struct uuid run = start(fixture, "parent");
    settle(fixture);
    assert_int_equal(runs(fixture), 2);
    return run;
}

/* What is between the child's end and the turn in which its parent takes the result. */
static void a_child_stays_until_its_parent_has_taken_the_result(void **state)
{
    struct fixture *fixture = *state;
    struct uuid parent = start_parent(fixture, KEEP_A_DAY, PARENT);
    fixture_pass_ms(fixture, 2000);
    settle(fixture);
    tamper(fixture, "UPDATE runs SET status = 'succeeded', finished_at = created_at, output = '7',"
                    " progress = '1 1 1 0 0|s1#1' WHERE parent_run IS NOT NULL;"
                    "UPDATE jobs SET state = 'succeeded', finished_at = 1 WHERE child IS NULL");
    pass(fixture, 2 * DAY_S);
    assert_int_equal(runs(fixture), 2);
    tamper(fixture, "INSERT INTO timers (due_at, run, ordinal, generation)"
                    " SELECT 1, run, ordinal, 0 FROM jobs WHERE child IS NOT NULL");
    settle(fixture);
    settle(fixture);
    assert_run_is(fixture, parent, "succeeded");
    pass(fixture, 2 * DAY_S);
    assert_int_equal(runs(fixture), 0);
}

/* As servers before this one could leave it. The feed may have another end then. */
#define REMOVE_CHILD                                                                   \
    "DELETE FROM run_blocks;"                                                          \
    "UPDATE indexed SET through = 0 WHERE name = 'runs';"                              \
    "DELETE FROM timers;"                                                              \
    "DELETE FROM jobs WHERE run IN (SELECT num FROM runs WHERE parent_run > 0);"       \
    "DELETE FROM timeline WHERE run IN (SELECT num FROM runs WHERE parent_run > 0);"   \
    "UPDATE feed_packs SET earlier = NULL WHERE earlier IS NOT NULL;"                  \
    "DELETE FROM feed_packs WHERE run IN (SELECT num FROM runs WHERE parent_run > 0);" \
    "DELETE FROM runs WHERE parent_run > 0;" FOLD_COUNTERS ";"

static void a_step_whose_child_is_gone_fails(void **state)
{
    struct fixture *fixture = *state;
    struct uuid parent = start_parent(fixture, KEEP_A_DAY, PARENT);
    tamper(fixture, REMOVE_CHILD "INSERT INTO timers (due_at, run, ordinal, generation)"
                                 " SELECT 1, run, ordinal, 0 FROM jobs WHERE child IS NOT NULL");
    settle(fixture);
    settle(fixture);
    assert_run_is(fixture, parent, "failed");
    json_t *run = show_run(fixture, parent);
    const json_t *cause = of_step(run, "c", "error");
    assert_string_equal(json_string_value(json_object_get(cause, "code")), "CHILD_FAILED");
    assert_string_equal(json_string_value(json_object_get(cause, "status")), "removed");
    json_decref(run);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters"), 0);
}

static void a_parent_whose_child_is_gone_can_be_cancelled(void **state)
{
    struct fixture *fixture = *state;
    struct uuid parent = start_parent(fixture, KEEP_A_DAY, PARENT);
    tamper(fixture, REMOVE_CHILD);
    assert_int_equal(control(fixture, parent, CONTROL_CANCEL), ERR_OK);
    assert_run_is(fixture, parent, "cancelled");
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_run_goes_when_it_has_been_over_for_as_long_as_its_tenant_says),
        fixture_test(runs_that_are_not_over_stay_however_old_they_are),
        fixture_test(a_run_is_kept_from_its_end_on),
        fixture_test(without_a_retention_runs_are_kept_for_ever),
        fixture_test(tenants_do_not_lose_each_others_runs),
        fixture_test(a_run_of_many_events_goes_in_slices_and_is_found_again_after_a_crash),
        fixture_test(a_server_that_starts_removes_old_runs_at_once),
        fixture_test(starts_go_on_while_thousands_of_runs_go),
        fixture_test(a_key_outlives_the_run_that_it_made),
        fixture_test(a_run_whose_removal_has_begun_is_not_made_use_of_again),
        fixture_test(a_child_stays_until_its_parent_has_taken_the_result),
        fixture_test(a_step_whose_child_is_gone_fails),
        fixture_test(a_parent_whose_child_is_gone_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
