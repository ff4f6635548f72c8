/* Rows that contradict each other: what they belong to is refused, and everything else goes on. */
#include "engine/usecase/asking.h"

/* --- entities --- */

/* Two entities, of which `a` has one signal that was handled and one that a worker is at. */
static struct handed prepare_entities(struct fixture *fixture)
{
    count_with(fixture, "");
    (void)must_send(fixture, "a", "k0", 1);
    assert_int_equal(handle_all(fixture, ""), 1);
    (void)must_send(fixture, "a", "k1", 1);
    struct handed h = claim_call(fixture, 60000);
    assert_non_null(h.job);
    (void)must_send(fixture, "b", NULL, 1);
    return h;
}

static void an_entity_whose_row_contradicts_itself_is_refused_and_no_other(void **state)
{
    struct fixture *fixture = *state;
    struct handed h = prepare_entities(fixture);
    fixture_stop(fixture);
    struct raw raw = raw_open(fixture->file.text);
    raw_exec(&raw, "CREATE TABLE whole AS SELECT * FROM entities");
    raw_close(&raw);
    fixture_start(fixture, 0);
    static const char *const DAMAGES[] = {
        "UPDATE entities SET generation = 0 WHERE name = 'a'",
        "UPDATE entities SET consumed_seq = last_seq + 1 WHERE name = 'a'",
        "UPDATE entities SET open_job = NULL WHERE name = 'a'",
        "UPDATE entities SET given_seq = 0, consumed_seq = 1 WHERE name = 'a'",
        "UPDATE entities SET given_seq = last_seq + 1 WHERE name = 'a'",
        "UPDATE entities SET finished_at = 1 WHERE name = 'a'",
        "UPDATE entities SET type_version = 7 WHERE name = 'a'",
    };
    struct heartbeat_input release = {h.id, str_of(h.token), STR_NONE};
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        tamper(fixture, DAMAGES[i]);
        assert_int_equal(send_signal(fixture, "a", "k2", 1).err, ERR_DAMAGED);
        assert_int_equal(finish_call(fixture, &h, "{}", true), ERR_DAMAGED);
        assert_refuses(fixture, &UC_RELEASE_JOB, &release, ERR_DAMAGED);
        (void)must_send(fixture, "b", NULL, 1);
        tamper(fixture, "DELETE FROM entities WHERE name = 'a';"
                        " INSERT INTO entities SELECT * FROM whole WHERE name = 'a'");
    }
    tamper(fixture, "DROP TABLE whole");
    assert_int_equal(finish_call(fixture, &h, "{\"state\":{\"sum\":2}}", true), ERR_OK);
    assert_int_equal(state_number(fixture, "a", "sum"), 2);
    json_decref(h.job);
    assert_sound(fixture);
}

static void a_call_whose_entity_or_type_is_gone_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct handed h = prepare_entities(fixture);
    struct heartbeat_input lease = {h.id, str_of(h.token), STR_NONE};
    struct get_job_input get = {h.id};
    tamper(fixture, "UPDATE entities SET type = 99 WHERE name = 'a'");
    assert_refuses(fixture, &UC_RELEASE_JOB, &lease, ERR_DAMAGED);
    assert_refuses(fixture, &UC_GET_JOB, &get, ERR_DAMAGED);
    tamper(fixture, "DELETE FROM entities WHERE type = 99");
    assert_refuses(fixture, &UC_RELEASE_JOB, &lease, ERR_JOB_NOT_FOUND);
    assert_refuses(fixture, &UC_GET_JOB, &get, ERR_JOB_NOT_FOUND);
    assert_int_equal(finish_call(fixture, &h, "{}", true), ERR_JOB_NOT_FOUND);
    fixture_pass_ms(fixture, 60001); /* its lease ends, and the job goes */
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(handle_all(fixture, ""), 1); /* that of the other */
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs WHERE state = 'running'"), 0);
    json_decref(h.job);
}

static void an_entity_whose_open_call_is_gone_cannot_be_migrated(void **state)
{
    struct fixture *fixture = *state;
    struct handed h = prepare_entities(fixture);
    count_with(fixture, ",'version':2");
    tamper(fixture, "DELETE FROM jobs WHERE state = 'running'");
    struct migrate_entity_input in = {COUNTER, STR("a"), 2};
    assert_refuses(fixture, &UC_MIGRATE_ENTITY, &in, ERR_DAMAGED);
    in.id = STR("b");
    must_do(fixture, &UC_MIGRATE_ENTITY, &in);
    json_decref(h.job);
}

static void a_key_whose_row_is_damaged_refuses_its_signals(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", "k1", 1);
    tamper(fixture, "UPDATE dedup SET key = NULL");
    assert_int_equal(send_signal(fixture, "a", "k1", 1).err, ERR_DAMAGED);
    (void)must_send(fixture, "b", "k1", 1);
    tamper(fixture, "UPDATE dedup SET num = num + 5 WHERE key IS NULL");
    assert_int_equal(send_signal(fixture, "a", "k2", 1).err, ERR_DAMAGED);
    (void)must_send(fixture, "b", "k2", 1);
}

/* --- runs --- */

static void a_run_whose_row_contradicts_its_steps_is_refused_and_no_other(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("a", "") "," TASK_STEP("b", "") "]}");
    struct uuid damaged = start(fixture, "w");
    work(fixture, "a");
    static const char *const DAMAGES[] = {
        "UPDATE runs SET status = 'queued', start_at = 99999999999999",
        "UPDATE runs SET status = 'succeeded', finished_at = 1",
        "UPDATE runs SET status = 'running', finished_at = 1",
        "UPDATE runs SET status = 'running', finished_at = NULL, start_at = NULL,"
        " progress = 'nonsense'",
    };
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        tamper(fixture, DAMAGES[i]);
        assert_int_equal(control(fixture, damaged, CONTROL_CANCEL), ERR_DAMAGED);
        assert_int_equal(control(fixture, damaged, CONTROL_PAUSE), ERR_DAMAGED);
        tamper(fixture, "DELETE FROM timers"); /* of the damage */
    }
}

/* Of a version that kept no progress; the doctor names the job. */
static void a_job_of_a_step_that_is_not_there_does_not_hide_its_run(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("a", "") "," TASK_STEP("b", "") "]}");
    struct uuid run = start(fixture, "w");
    json_t *shown = show_run(fixture, run);
    struct get_job_input job = {{{0}}};
    assert_true(uuid_parse(json_str(of_step(shown, "a", "job_id")), &job.job_id));
    json_decref(shown);
    tamper(fixture, OWN_JOB_ROWS "UPDATE runs SET progress = NULL; UPDATE jobs SET step = 7");
    assert_step_is(fixture, run, "a", "pending");
    assert_text_in(answer_of(fixture, &UC_GET_JOB, &job), "step", "?");
    tamper(fixture, "UPDATE jobs SET step = -7");
    struct run_input in = {.run_id = run};
    assert_refuses(fixture, &UC_GET_RUN, &in, ERR_DAMAGED);
}

static void a_run_whose_parent_is_gone_starts_no_children(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "leaf", ONE_TASK);
    put_workflow(fixture, "child",
                 "{'steps':[" TASK_STEP("t", "") ",{'name':'c','type':"
                                                 "'workflow','workflow_id':'leaf'}]}");
    put_workflow(fixture, "top",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':"
                 "'child'}]}");
    (void)start(fixture, "top");
    settle(fixture);
    struct held h;
    must_claim(fixture, "t", &h);
    tamper(fixture, "DELETE FROM runs WHERE workflow_id = 'top'");
    assert_true(complete(fixture, &h) != ERR_OK);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE workflow_id = 'leaf'"), 0);
}

static void a_retry_goes_without_a_job_whose_row_is_gone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[" TASK_STEP("m", ",'for_each':[1,2]") "]}");
    struct uuid run = start(fixture, "w");
    struct held jobs[2];
    assert_int_equal(claim_many(fixture, 60000, 2, jobs), 2);
    assert_int_equal(fail_job(fixture, &jobs[0], false), ERR_OK);
    tamper(fixture, "DELETE FROM jobs WHERE item = 1");
    assert_int_equal(control(fixture, run, CONTROL_RETRY), ERR_OK);
    struct held again;
    must_claim(fixture, "m", &again);
    assert_true(uuid_eq(again.job, jobs[0].job));
}

/* --- limits --- */

static void a_full_limit_that_nobody_holds_refuses_to_make_room(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'concurrency':{'limit':1},'steps':[" TASK_STEP("a", "") "]}");
    (void)start(fixture, "w");
    tamper(fixture, "DELETE FROM slots");
    struct start_run_input in = {.workflow_id = STR("w"),
                                 .input_text = STR("null"),
                                 .labels = STR("{}"),
                                 .at_limit = AT_LIMIT_CANCEL_OLDEST,
                                 .start_at = -1};
    assert_refuses(fixture, &UC_START_RUN, &in, ERR_INTERNAL);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
}

/* Its own version had a limit, the newest has none; and its place in the queue is lost. */
static void a_queued_run_explains_itself_without_its_limit_and_its_place(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'concurrency':{'limit':1},'steps':[" TASK_STEP("a", "") "]}");
    put_tenant(fixture, "{'max_concurrent_runs':1,'at_limit':'queue'}");
    (void)start(fixture, "w");
    struct uuid queued = start(fixture, "w");
    put_workflow(fixture, "w", ONE_TASK);
    settle(fixture);
    struct run_input in = {.run_id = queued};
    json_t *why = answer_of(fixture, &UC_WHY_RUN, &in);
    const json_t *limit = json_array_get(json_object_get(why, "waits_for"), 0);
    assert_string_equal(json_string_value(json_object_get(limit, "limited_by")), "tenant");
    json_decref(why);
    tamper(fixture, "DELETE FROM lines; DELETE FROM queue");
    why = answer_of(fixture, &UC_WHY_RUN, &in);
    assert_int_equal(json_integer_value(json_object_get(why, "place")), 1);
    json_decref(why);
}

/* --- timers --- */

/* A timer that means nothing any more, or belongs to nobody, goes without a trace. */
static void timers_that_mean_nothing_are_dropped(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'timeout_s':3600,'steps':[" TASK_STEP("a", "") "]}");
    struct uuid running = start(fixture, "w");
    struct uuid later = start_later(fixture, "w", fixture_now_ms(fixture) + 3600 * 1000);
    int64_t armed = timers(fixture);
    static const char *const STRAYS[] = {
        /* go on with one that waits for its time, start it too early, end one too early */
        "INSERT INTO timers (due_at, run, ordinal, generation, tenant)"
        " SELECT 5, num, -1, 0, tenant FROM runs WHERE status = 'queued'",
        "INSERT INTO timers (due_at, run, ordinal, generation, tenant)"
        " SELECT 5, num, 0, 0, tenant FROM runs",
        /* of a job with another lease, a job that is not there, and owners that are gone */
        "INSERT INTO timers (due_at, run, ordinal, generation, tenant)"
        " SELECT 5, num, 1, 77, tenant FROM runs WHERE status = 'running'",
        "INSERT INTO timers (due_at, run, ordinal, generation, tenant)"
        " SELECT 5, num, 55, 1, tenant FROM runs WHERE status = 'running'",
        "INSERT INTO timers (due_at, run, ordinal, generation, tenant) VALUES (5, 5, 0, 0, 1),"
        " (6, 5, -1, 0, 1), (7, 5, -4, 0, 1), (8, 5, -2, 0, 1), (9, 5, -3, 0, 1), (9, 5, 1, 1, 1)",
    };
    for (size_t i = 0; i < ARRAY_LEN(STRAYS); i++) {
        tamper(fixture, STRAYS[i]);
        for (int turn = 0; turn < 3; turn++)
            settle(fixture);
        assert_int_equal(timers(fixture), armed);
    }
    assert_run_is(fixture, running, "running");
    assert_run_is(fixture, later, "queued");
    assert_sound(fixture);
}

static void a_step_that_waits_for_its_child_is_not_woken_by_stray_timers(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "child", ONE_TASK);
    put_workflow(fixture, "patient",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':"
                 "'child'}]}");
    put_workflow(fixture, "hasty",
                 "{'steps':[{'name':'c','type':'workflow','workflow_id':'child',"
                 "'timeout_ms':3600000}]}");
    struct uuid runs[] = {start(fixture, "patient"), start(fixture, "hasty")};
    settle(fixture);
    int64_t armed = timers(fixture);
    tamper(fixture, "INSERT INTO timers (due_at, run, ordinal, generation, tenant)"
                    " SELECT 5, run, ordinal, lease_epoch, tenant FROM jobs"
                    " WHERE state = 'dispatched'");
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(timers(fixture), armed);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        work(fixture, "a");
        settle(fixture);
    }
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        assert_run_is(fixture, runs[i], "succeeded");
    assert_sound(fixture);
}

/* --- schedules --- */

static void put_schedule(struct fixture *fixture, const char *id, const char *workflow)
{
    struct put_schedule_input in = {.id = str_of(id),
                                    .workflow_id = str_of(workflow),
                                    .cron = STR("* * * * *"),
                                    .timezone = STR("UTC"),
                                    .catch_up_ms = 3600 * 1000,
                                    .input = STR("null")};
    must_do(fixture, &UC_PUT_SCHEDULE, &in);
}

/* All that are due fire together; if one cannot, each does alone. */
static void a_schedule_that_cannot_fire_is_put_aside_and_the_others_fire(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[{'name':'t','type':'transform','output':1}]}");
    put_workflow(fixture, "v", "{'steps':[{'name':'t','type':'transform','output':1}]}");
    put_schedule(fixture, "a", "w");
    put_schedule(fixture, "b", "v");
    put_schedule(fixture, "c", "w");
    fixture_pass_ms(fixture, 60 * 1000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 3);
    tamper(fixture, "UPDATE runs SET status = 'nonsense' WHERE workflow_id = 'v'"); /* the last */
    fixture_pass_ms(fixture, 60 * 1000);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE workflow_id = 'w'"), 4);
    struct schedule_input one = {STR("b")};
    json_t *shown = answer_of(fixture, &UC_GET_SCHEDULE, &one);
    const json_t *error = json_object_get(shown, "last_error");
    assert_string_equal(json_string_value(json_object_get(error, "code")), "OBJECT_DAMAGED");
    json_decref(shown);
    tamper(fixture, "UPDATE runs SET status = 'succeeded' WHERE workflow_id = 'v'");
    fixture_pass_ms(fixture, 600 * 1000);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_true(in_file(fixture, "SELECT count(*) FROM runs WHERE workflow_id = 'v'") > 1);
}

static void a_schedule_whose_zone_is_gone_says_so_and_is_tried_again(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[{'name':'t','type':'transform','output':1}]}");
    put_schedule(fixture, "a", "w");
    tamper(fixture, "UPDATE schedules SET timezone = 'Nowhere/At_All'");
    fixture_pass_ms(fixture, 60 * 1000);
    settle(fixture);
    struct schedule_input one = {STR("a")};
    json_t *shown = answer_of(fixture, &UC_GET_SCHEDULE, &one);
    const json_t *error = json_object_get(shown, "last_error");
    assert_string_equal(json_string_value(json_object_get(error, "code")), "TIMETABLE_INVALID");
    assert_int_equal(json_array_size(json_object_get(shown, "next_times")), 0);
    json_decref(shown);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 0);
    tamper(fixture, "UPDATE schedules SET timezone = 'UTC'");
    fixture_pass_ms(fixture, 600 * 1000);
    settle(fixture);
    assert_true(in_file(fixture, "SELECT count(*) FROM runs") > 0);
}

static void a_schedule_that_has_lost_its_last_run_or_its_next_time_goes_on(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", "{'steps':[{'name':'t','type':'transform','output':1}]}");
    put_schedule(fixture, "a", "w");
    fixture_pass_ms(fixture, 60 * 1000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    tamper(fixture, "DELETE FROM runs");
    fixture_pass_ms(fixture, 60 * 1000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 1);
    tamper(fixture, "UPDATE schedules SET next_at = NULL, check_at = NULL");
    put_schedule(fixture, "a", "w");
    fixture_pass_ms(fixture, 60 * 1000);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 2);
}

/* --- approvals --- */

static void an_approval_whose_row_is_gone_is_refused_and_holds_up_nobody(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'q','type':'approval','prompt':'ok?',"
                 "'remind_every_s':60}]}");
    put_workflow(fixture, "s", "{'steps':[{'name':'s','type':'sleep','duration_ms':60000}]}");
    struct uuid damaged = start(fixture, "w");
    struct uuid whole = start(fixture, "s");
    json_t *shown = show_run(fixture, damaged);
    struct get_job_input get = {{{0}}};
    assert_true(uuid_parse(json_str(of_step(shown, "q", "job_id")), &get.job_id));
    json_decref(shown);
    static const char *const DAMAGES[] = {"UPDATE approvals SET status = 'approved'",
                                          "DELETE FROM approvals"};
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        tamper(fixture, DAMAGES[i]);
        fixture_pass_ms(fixture, 60001);
        for (int turn = 0; turn < 3; turn++)
            settle(fixture);
        assert_run_is(fixture, whole, "succeeded");
        assert_run_is(fixture, damaged, "waiting");
    }
    assert_refuses(fixture, &UC_GET_APPROVAL, &get, ERR_APPROVAL_NOT_FOUND);
    struct run_input why = {.run_id = damaged};
    must_do(fixture, &UC_WHY_RUN, &why);
}

/* --- queued runs --- */

static struct uuid start_of(struct fixture *fixture, const char *tenant)
{
    struct start_run_input in = {.workflow_id = STR("w"),
                                 .input_text = STR("null"),
                                 .labels = STR("{}"),
                                 .at_limit = AT_LIMIT_QUEUE,
                                 .start_at = -1};
    struct asked a = ask_as(fixture, tenant, true, &UC_START_RUN, &in);
    assert_int_equal(a.err, ERR_OK);
    asked_release(&a);
    return a.run_id;
}

static int64_t with_status(struct fixture *fixture, const char *status)
{
    char sql[96];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM runs WHERE status = '%s'", status);
    return in_file(fixture, sql);
}

static void a_queued_run_that_cannot_start_fails(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    (void)start_of(fixture, "acme");
    (void)start_of(fixture, "acme");
    struct uuid last = start_of(fixture, "acme");
    tamper(fixture, "UPDATE runs SET progress = 'nonsense' WHERE num ="
                    " (SELECT min(num) FROM runs WHERE status = 'queued')");
    work(fixture, "a");
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(with_status(fixture, "failed"), 1);
    assert_run_is(fixture, last, "running");
}

/* It cannot be ended either: its tenant's queue is looked at again later. */
static void a_queued_run_that_cannot_be_read_holds_up_only_its_tenant(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':1}");
    (void)start_of(fixture, "acme");
    struct uuid damaged = start_of(fixture, "acme");
    tamper(fixture, "UPDATE runs SET status = 'nonsense' WHERE status = 'queued'");
    work(fixture, "a");
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    struct uuid behind = start_of(fixture, "acme");
    assert_run_is(fixture, behind, "queued");
    tamper(fixture, "UPDATE runs SET status = 'queued' WHERE status = 'nonsense'");
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_run_is(fixture, damaged, "running");
    work(fixture, "a");
    settle(fixture);
    assert_run_is(fixture, behind, "running");
    assert_sound(fixture);
}

/* A workflow `w`, and room for one run. */
static void prepare_tenant(struct fixture *fixture, const char *tenant)
{
    struct problem p;
    struct definition *def = NULL;
    struct buf text;
    problem_init(&p);
    buf_init(&text, KIB);
    json_t *json = json_of(ONE_TASK);
    struct json *settings = json_value_of_tree(json_of("{'max_concurrent_runs':1}"));
    assert_int_equal(parse_tree(json, STR("w"), &p, &def), ERR_OK);
    json_put_plain(&text, json);
    struct put_workflow_input put = {STR("w"), def, buf_str(&text), sha256_of(buf_str(&text))};
    struct asked a = ask_as(fixture, tenant, true, &UC_PUT_WORKFLOW, &put);
    assert_int_equal(a.err, ERR_OK);
    asked_release(&a);
    struct put_tenant_input limit = {str_of(tenant), settings};
    must_do(fixture, &UC_PUT_TENANT, &limit);
    buf_release(&text);
    definition_free(def);
    json_decref(json);
    json_free(settings);
    problem_release(&p);
}

static void queues_that_were_put_aside_are_looked_at_again(void **state)
{
    struct fixture *fixture = *state;
    static const char *const TENANTS[] = {"acme", "other", "third"};
    for (size_t i = 0; i < ARRAY_LEN(TENANTS); i++) {
        prepare_tenant(fixture, TENANTS[i]);
        (void)start_of(fixture, TENANTS[i]);
        (void)start_of(fixture, TENANTS[i]);
    }
    tamper(fixture, "UPDATE runs SET status = 'nonsense' WHERE status = 'queued'");
    for (size_t i = 0; i < ARRAY_LEN(TENANTS); i++) {
        struct str queue = STR("default");
        struct claim_input claim = {STR("w"), &queue, 1, 1, 60000};
        struct asked a = ask_as(fixture, "*", true, &UC_CLAIM_JOBS, &claim);
        const json_t *job = json_array_get(json_object_get(a.body, "jobs"), 0);
        struct held h;
        held_read(&h, job);
        struct finish_job_input done = {
            .job_id = h.job, .lease_token = str_of(h.token), .output = STR("1")};
        struct asked finished = ask_as(fixture, "*", true, &UC_FINISH_JOB, &done);
        assert_int_equal(finished.err, ERR_OK);
        asked_release(&finished);
        asked_release(&a);
        fixture_pass_ms(fixture, 1);
        for (int turn = 0; turn < 3; turn++)
            settle(fixture);
    }
    assert_int_equal(with_status(fixture, "nonsense"), 3);
    struct raw raw = raw_open(fixture->file.text); /* behind the running server */
    raw_exec(&raw, "UPDATE runs SET status = 'queued' WHERE status = 'nonsense'");
    raw_close(&raw);
    fixture_pass_ms(fixture, 3600 * 1000);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(with_status(fixture, "queued"), 0);
    assert_int_equal(in_file(fixture, "SELECT sum(active_runs) FROM tenant_counters"), 3);
    assert_sound(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(an_entity_whose_row_contradicts_itself_is_refused_and_no_other),
        fixture_test(a_call_whose_entity_or_type_is_gone_is_refused),
        fixture_test(an_entity_whose_open_call_is_gone_cannot_be_migrated),
        fixture_test(a_key_whose_row_is_damaged_refuses_its_signals),
        fixture_test(a_run_whose_row_contradicts_its_steps_is_refused_and_no_other),
        fixture_test(a_job_of_a_step_that_is_not_there_does_not_hide_its_run),
        fixture_test(a_run_whose_parent_is_gone_starts_no_children),
        fixture_test(a_retry_goes_without_a_job_whose_row_is_gone),
        fixture_test(a_full_limit_that_nobody_holds_refuses_to_make_room),
        fixture_test(a_queued_run_explains_itself_without_its_limit_and_its_place),
        fixture_test(timers_that_mean_nothing_are_dropped),
        fixture_test(a_step_that_waits_for_its_child_is_not_woken_by_stray_timers),
        fixture_test(a_schedule_that_cannot_fire_is_put_aside_and_the_others_fire),
        fixture_test(a_schedule_whose_zone_is_gone_says_so_and_is_tried_again),
        fixture_test(a_schedule_that_has_lost_its_last_run_or_its_next_time_goes_on),
        fixture_test(an_approval_whose_row_is_gone_is_refused_and_holds_up_nobody),
        fixture_test(a_queued_run_that_cannot_start_fails),
        fixture_test(a_queued_run_that_cannot_be_read_holds_up_only_its_tenant),
        fixture_test(queues_that_were_put_aside_are_looked_at_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
