/* Background work: no kind holds up another, and within a kind no owner does. Damage in the file
 * stands for whatever makes one thing fail again and again. */
#include "engine/acts.h"

#define SLEEP_1000 "{'steps':[{'name':'s','type':'sleep','duration_ms':1000}]}"

static void as_tenant(struct call *c, const char *tenant)
{
    c->op.caller.tenant = str_of(tenant);
}

static void put_workflow_of(struct rig *rig, const char *tenant, const char *id,
                            const char *definition)
{
    struct problem p;
    problem_init(&p);
    json_t *json = json_of(definition);
    struct definition *def = NULL;
    assert_ok(definition_parse(json, str_of(id), &p, &def));
    struct buf text;
    buf_init(&text, 64 * KIB);
    json_put_plain(&text, json);
    struct call c;
    call_init(&c, rig, &UC_PUT_WORKFLOW);
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

static void start_of(struct rig *rig, const char *tenant, const char *workflow)
{
    struct call c;
    start_init(&c, rig, workflow);
    as_tenant(&c, tenant);
    must_perform(&c);
    call_release(&c);
}

/* The file is changed while nobody has it open. */
static void damage(struct rig *rig, const char *sql)
{
    rig_stop(rig);
    sqlite3 *raw = raw_open(rig->file.text);
    raw_exec(raw, sql);
    raw_close(raw);
    rig_start(rig, 0);
}

static int64_t ended(struct rig *rig, const char *tenant, const char *status)
{
    char sql[200];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM runs r JOIN tenants t ON t.num = r.tenant"
                   " WHERE t.id = '%s' AND r.status = '%s'",
                   tenant, status);
    return in_file(rig, sql);
}

static void settle_often(struct rig *rig)
{
    for (int i = 0; i < 4; i++)
        settle(rig);
}

/* --- timers --- */

static void a_timer_that_fails_again_and_again_holds_up_no_other_tenants(void **state)
{
    struct rig *rig = *state;
    put_workflow_of(rig, "bad", "w", SLEEP_1000);
    put_workflow_of(rig, "good", "w", SLEEP_1000);
    start_of(rig, "bad", "w");
    for (int i = 0; i < 5; i++)
        start_of(rig, "good", "w");
    /* A run that ends has no slot to give back: a bug's worth of damage. */
    damage(rig, "UPDATE tenants SET active_runs = 0 WHERE id = 'bad'");
    rig_pass_ms(rig, 1000);
    settle_often(rig);
    assert_int_equal(ended(rig, "good", "succeeded"), 5);
    assert_int_equal(ended(rig, "bad", "waiting"), 1); /* nothing of it by half */
    assert_int_equal(in_file(rig, "SELECT count(*) FROM jobs WHERE state = 'scheduled'"), 1);
    /* It is put aside, and tried again later. */
    int64_t later = in_file(rig, "SELECT due_at FROM timers");
    assert_true(later >= rig_now_ms(rig) + PUT_ASIDE_MS - 1000);
    damage(rig, "UPDATE tenants SET active_runs = 1 WHERE id = 'bad'");
    rig_pass_ms(rig, 2 * PUT_ASIDE_MS);
    settle_often(rig);
    assert_int_equal(ended(rig, "bad", "succeeded"), 1);
}

static void a_sweep_that_fails_again_and_again_holds_up_no_timer(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", SLEEP_1000);
    struct uuid first = start(rig, "w");
    damage(rig, "ALTER TABLE webhooks RENAME TO webhooks_gone");
    rig_pass_ms(rig, 1000);
    settle_often(rig);
    assert_run_is(rig, first, "succeeded");
    struct uuid second = start(rig, "w");
    rig_pass_ms(rig, 1000);
    settle_often(rig);
    assert_run_is(rig, second, "succeeded");
    struct buf text;
    buf_init(&text, MIB);
    metrics_put_text(rig->metrics, &text);
    assert_non_null(strstr(text.ptr, "cleanup_failures_total{context=\"deliveries\"} "));
    assert_null(strstr(text.ptr, "cleanup_failures_total{context=\"deliveries\"} 0\n"));
    assert_non_null(strstr(text.ptr, "cleanup_failures_total{context=\"timers\"} 0\n"));
    buf_release(&text);
    damage(rig, "ALTER TABLE webhooks_gone RENAME TO webhooks");
}

/* --- queued runs --- */

#define LIMIT_1 "{'max_concurrent_runs':1,'at_limit':'queue'}"

static void a_queued_run_that_cannot_start_fails_alone(void **state)
{
    struct rig *rig = *state;
    put_tenant(rig, LIMIT_1);
    put_workflow(rig, "w", ONE_TASK);
    put_workflow(rig, "broken", ONE_TASK);
    struct uuid active = start(rig, "w");
    struct uuid broken = start(rig, "broken");
    struct uuid next = start(rig, "w");
    assert_run_is(rig, broken, "queued");
    damage(rig, "UPDATE workflow_versions SET definition = '{' WHERE workflow_id = 'broken'");
    struct held h;
    must_claim(rig, "a", &h);
    assert_int_equal(complete(rig, &h), ERR_OK);
    settle_often(rig);
    assert_run_is(rig, active, "succeeded");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM runs WHERE workflow_id = 'broken'"
                                  " AND status = 'failed' AND error IS NOT NULL"),
                     1);
    assert_run_is(rig, next, "running");
    assert_int_equal(in_file(rig, "SELECT queued_runs FROM tenants WHERE id = 'acme'"), 0);
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants WHERE id = 'acme'"), 1);
}

static void a_tenant_whose_queue_is_damaged_waits_alone(void **state)
{
    struct rig *rig = *state;
    static const char *const TENANTS[] = {"bad", "good"};
    for (size_t i = 0; i < ARRAY_LEN(TENANTS); i++) {
        json_t *json = json_of(LIMIT_1);
        struct call c;
        call_init(&c, rig, &UC_PUT_TENANT);
        as_tenant(&c, TENANTS[i]);
        c.input.tenant = (struct put_tenant_input){str_of(TENANTS[i]), json};
        must_perform(&c);
        call_release(&c);
        json_decref(json);
        put_workflow_of(rig, TENANTS[i], "w", ONE_TASK);
        start_of(rig, TENANTS[i], "w");
        start_of(rig, TENANTS[i], "w");
        assert_int_equal(ended(rig, TENANTS[i], "queued"), 1);
    }
    /* Both have room now; but no run of one of them can leave the queue. */
    damage(rig, "UPDATE tenants SET max_concurrent_runs = 5;"
                "UPDATE tenants SET queued_runs = 0 WHERE id = 'bad'");
    settle_often(rig);
    assert_int_equal(ended(rig, "good", "queued"), 0);
    assert_int_equal(ended(rig, "bad", "queued"), 1);
    damage(rig, "UPDATE tenants SET queued_runs = 1 WHERE id = 'bad'");
    settle_often(rig);
    assert_int_equal(ended(rig, "bad", "queued"), 0);
}

/* More than two turns take, and one of another tenant that is due after all of them. */
static void a_timer_behind_anothers_backlog_is_fired_in_the_first_turn(void **state)
{
    struct rig *rig = *state;
    put_workflow_of(rig, "many", "nap", SLEEP_1000);
    put_workflow_of(rig, "few", "nap", SLEEP_1000);
    for (int i = 0; i < 2 * TIMERS_PER_TURN_MAX + 50; i++)
        start_of(rig, "many", "nap");
    rig_pass_ms(rig, 1);
    start_of(rig, "few", "nap");
    rig_pass_ms(rig, 2000);
    while (in_file(rig, "SELECT count(*) FROM timers") > 0)
        settle(rig);
    assert_int_equal(ended(rig, "few", "succeeded"), 1);
    assert_int_equal(ended(rig, "many", "succeeded"), 2 * TIMERS_PER_TURN_MAX + 50);
    static const char BEHIND[] =
        "SELECT count(*) FROM feed WHERE num > (SELECT max(f.num) FROM feed f"
        " JOIN tenants t ON t.num = f.tenant WHERE t.id = 'few')";
    assert_true(in_file(rig, BEHIND) > TIMERS_PER_TURN_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_timer_that_fails_again_and_again_holds_up_no_other_tenants),
        rig_test(a_sweep_that_fails_again_and_again_holds_up_no_timer),
        rig_test(a_queued_run_that_cannot_start_fails_alone),
        rig_test(a_tenant_whose_queue_is_damaged_waits_alone),
        rig_test(a_timer_behind_anothers_backlog_is_fired_in_the_first_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
