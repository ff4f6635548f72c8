/* Background work: no kind holds up another, and within a kind no owner does. Damage in the file
 * stands for whatever makes one thing fail again and again. */
#include "engine/actions.h"

#define SLEEP_1000 "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}]}"

static void as_tenant(struct call *c, const char *tenant)
{
    c->op.caller.tenant = str_of(tenant);
}

static void put_workflow_of(struct fixture *fixture, const char *tenant, const char *id,
                            const char *definition)
{
    struct problem p;
    problem_init(&p);
    json_t *json = json_of(definition);
    struct definition *def = NULL;
    assert_ok(parse_tree(json, str_of(id), &p, &def));
    struct buf text;
    buf_init(&text, 64 * KIB);
    json_put_plain(&text, json);
    struct call c;
    call_init(&c, fixture, &UC_PUT_WORKFLOW);
    as_tenant(&c, tenant);
    c.input.workflow =
        (struct put_workflow_input){str_of(id), def, buf_str(&text), sha256_of(buf_str(&text))};
    must_perform(&c);
    call_release(&c);
    buf_release(&text);
    definition_free(def);
    json_decref(json);
    problem_release(&p);
}

static void start_of(struct fixture *fixture, const char *tenant, const char *workflow)
{
    struct call c;
    start_init(&c, fixture, workflow);
    as_tenant(&c, tenant);
    must_perform(&c);
    call_release(&c);
}

/* The file is changed while nobody has it open. */
static void damage(struct fixture *fixture, const char *sql)
{
    fixture_stop(fixture);
    struct raw raw = raw_open(fixture->file.text);
    raw_exec(&raw, FOLD_COUNTERS);
    raw_exec(&raw, FOLD_TIMERS);
    raw_exec(&raw, sql);
    raw_close(&raw);
    fixture_start(fixture, 0);
}

static int64_t ended(struct fixture *fixture, const char *tenant, const char *status)
{
    char sql[200];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM runs r JOIN tenants t ON t.num = r.tenant"
                   " WHERE t.id = '%s' AND r.status = '%s'",
                   tenant, status);
    return in_file(fixture, sql);
}

static void settle_often(struct fixture *fixture)
{
    for (int i = 0; i < 4; i++)
        settle(fixture);
}

/* --- timers --- */

static void a_timer_that_fails_again_and_again_holds_up_no_other_tenants(void **state)
{
    struct fixture *fixture = *state;
    put_workflow_of(fixture, "bad", "w", SLEEP_1000);
    put_workflow_of(fixture, "good", "w", SLEEP_1000);
    start_of(fixture, "bad", "w");
    for (int i = 0; i < 5; i++)
        start_of(fixture, "good", "w");
    /* A run that ends has no slot to give back: a bug's worth of damage. */
    damage(fixture, "UPDATE tenants SET active_runs = 0 WHERE id = 'bad'");
    fixture_pass_ms(fixture, 1000);
    settle_often(fixture);
    assert_int_equal(ended(fixture, "good", "succeeded"), 5);
    assert_int_equal(ended(fixture, "bad", "waiting"), 1); /* nothing of it by half */
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM job_rows WHERE state = 'scheduled'"),
                     1);
    /* It is put aside, and tried again later. */
    int64_t later = in_file(fixture, "SELECT due_at FROM timers");
    assert_true(later >= fixture_now_ms(fixture) + PUT_ASIDE_MS - 1000);
    damage(fixture, "UPDATE tenants SET active_runs = 1 WHERE id = 'bad'");
    fixture_pass_ms(fixture, 2 * PUT_ASIDE_MS);
    settle_often(fixture);
    assert_int_equal(ended(fixture, "bad", "succeeded"), 1);
}

static void a_sweep_that_fails_again_and_again_holds_up_no_timer(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", SLEEP_1000);
    struct uuid first = start(fixture, "w");
    damage(fixture, "ALTER TABLE webhooks RENAME TO webhooks_gone");
    fixture_pass_ms(fixture, 1000);
    settle_often(fixture);
    assert_run_is(fixture, first, "succeeded");
    struct uuid second = start(fixture, "w");
    fixture_pass_ms(fixture, 1000);
    settle_often(fixture);
    assert_run_is(fixture, second, "succeeded");
    struct buf text;
    buf_init(&text, MIB);
    metrics_put_text(fixture->metrics, &text);
    assert_non_null(strstr(text.ptr, "cleanup_failures_total{context=\"deliveries\"} "));
    assert_null(strstr(text.ptr, "cleanup_failures_total{context=\"deliveries\"} 0\n"));
    assert_non_null(strstr(text.ptr, "cleanup_failures_total{context=\"timers\"} 0\n"));
    buf_release(&text);
    damage(fixture, "ALTER TABLE webhooks_gone RENAME TO webhooks");
}

/* --- queued runs --- */

#define LIMIT_1 "{'max_concurrent_runs':1,'at_limit':'queue'}"

static void a_queued_run_that_cannot_start_fails_alone(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, LIMIT_1);
    put_workflow(fixture, "w", ONE_TASK);
    put_workflow(fixture, "broken", ONE_TASK);
    struct uuid active = start(fixture, "w");
    struct uuid broken = start(fixture, "broken");
    struct uuid next = start(fixture, "w");
    assert_run_is(fixture, broken, "queued");
    damage(fixture, "UPDATE workflow_versions SET definition = '{' WHERE workflow_id = 'broken'");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_int_equal(complete(fixture, &h), ERR_OK);
    settle_often(fixture);
    assert_run_is(fixture, active, "succeeded");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE workflow_id = 'broken'"
                                      " AND status = 'failed' AND error IS NOT NULL"),
                     1);
    assert_run_is(fixture, next, "running");
    assert_int_equal(in_file(fixture, "SELECT queued_runs FROM tenant_counters WHERE id = 'acme'"),
                     0);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     1);
}

static void a_tenant_whose_queue_is_damaged_waits_alone(void **state)
{
    struct fixture *fixture = *state;
    static const char *const TENANTS[] = {"bad", "good"};
    for (size_t i = 0; i < ARRAY_LEN(TENANTS); i++) {
        struct json *json = json_value_of_tree(json_of(LIMIT_1));
        struct call c;
        call_init(&c, fixture, &UC_PUT_TENANT);
        as_tenant(&c, TENANTS[i]);
        c.input.tenant = (struct put_tenant_input){str_of(TENANTS[i]), json};
        must_perform(&c);
        call_release(&c);
        json_free(json);
        put_workflow_of(fixture, TENANTS[i], "w", ONE_TASK);
        start_of(fixture, TENANTS[i], "w");
        start_of(fixture, TENANTS[i], "w");
        assert_int_equal(ended(fixture, TENANTS[i], "queued"), 1);
    }
    /* Both have room now; but no run of one of them can leave the queue. */
    damage(fixture, "UPDATE tenants SET max_concurrent_runs = 5;"
                    "UPDATE tenants SET queued_runs = 0 WHERE id = 'bad'");
    settle_often(fixture);
    assert_int_equal(ended(fixture, "good", "queued"), 0);
    assert_int_equal(ended(fixture, "bad", "queued"), 1);
    damage(fixture, "UPDATE tenants SET queued_runs = 1 WHERE id = 'bad'");
    settle_often(fixture);
    assert_int_equal(ended(fixture, "bad", "queued"), 0);
}

/* More than two turns take, and one of another tenant that is due after all of them. */
static void a_timer_behind_anothers_backlog_is_fired_in_the_first_turn(void **state)
{
    struct fixture *fixture = *state;
    put_workflow_of(fixture, "many", "nap", SLEEP_1000);
    put_workflow_of(fixture, "few", "nap", SLEEP_1000);
    for (int i = 0; i < 2 * TIMERS_PER_TURN_MAX + 50; i++)
        start_of(fixture, "many", "nap");
    fixture_pass_ms(fixture, 1);
    start_of(fixture, "few", "nap");
    fixture_pass_ms(fixture, 2000);
    while (timers(fixture) > 0)
        settle(fixture);
    assert_int_equal(ended(fixture, "few", "succeeded"), 1);
    assert_int_equal(ended(fixture, "many", "succeeded"), 2 * TIMERS_PER_TURN_MAX + 50);
    static const char BEHIND[] =
        "SELECT count(*) FROM feed WHERE num > (SELECT max(f.num) FROM feed f"
        " JOIN tenants t ON t.num = f.tenant WHERE t.id = 'few')";
    assert_true(in_file(fixture, BEHIND) > TIMERS_PER_TURN_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_timer_that_fails_again_and_again_holds_up_no_other_tenants),
        fixture_test(a_sweep_that_fails_again_and_again_holds_up_no_timer),
        fixture_test(a_queued_run_that_cannot_start_fails_alone),
        fixture_test(a_tenant_whose_queue_is_damaged_waits_alone),
        fixture_test(a_timer_behind_anothers_backlog_is_fired_in_the_first_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
