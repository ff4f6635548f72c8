/* The doctor: nothing is wrong after a busy history, each damage is found, and a repair is one
 * change among others. */
#include "engine/doctor_support.h"

/* --- a busy history --- */

#define KEYED_WIDER                                             \
    "{'concurrency':[{'limit':7},{'key':'input.c','limit':3}]," \
    "'steps':[{'name':'a','type':'task','handler':'h'}]}"
#define KEYED_OTHERWISE                                                         \
    "{'concurrency':[{'key':'input.c','limit':2},{'key':'input.d','limit':1}]," \
    "'steps':[{'name':'a','type':'task','handler':'h'}]}"
#define SLEEPS(ms)                                                 \
    "{'steps':[{'name':'a','type':'sleep','duration_ms':" #ms "}," \
    "{'name':'b','type':'task','handler':'h'}]}"

static enum err cancel(struct fixture *fixture, const char *tenant, struct uuid id)
{
    struct control_run_input in = {.run_id = id, .action = CONTROL_CANCEL, .if_match = -1};
    struct call c;
    call_init(&c, fixture, &UC_CONTROL_RUN);
    c.op.caller.tenant = str_of(tenant);
    c.op.input = &in;
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

/* Claims a job, and finishes it unless it is to keep its lease. False when there is none. */
static bool work(struct fixture *fixture, const char *tenant, bool fails, bool keeps)
{
    struct call claim;
    claim_init(&claim, fixture, "w", 60000);
    claim.op.caller.tenant = str_of(tenant);
    must_perform(&claim);
    json_t *jobs = jobs_of(&claim);
    bool any = json_array_size(jobs) > 0;
    if (any && !keeps) {
        struct call finish;
        finish_init(&finish, fixture, &claim);
        finish.op.caller.tenant = str_of(tenant);
        finish.input.finish.failed = fails;
        finish.input.finish.error = fails ? STR("{\"code\":\"X\"}") : STR_NONE;
        must_perform(&finish);
        call_release(&finish);
    }
    json_decref(jobs);
    call_release(&claim);
    return any;
}

static void put_workflow_of(struct fixture *fixture, const char *tenant, const char *id,
                            const char *definition)
{
    /* put_workflow() is acme's */
    if (strcmp(tenant, "acme") == 0) {
        put_workflow(fixture, id, definition);
        return;
    }
    struct problem p;
    problem_init(&p);
    json_t *json = json_of(definition);
    struct definition *def = NULL;
    assert_int_equal(parse_tree(json, str_of(id), &p, &def), ERR_OK);
    struct buf text;
    buf_init(&text, 64 * KIB);
    json_put_plain(&text, json);
    struct call c;
    call_init(&c, fixture, &UC_PUT_WORKFLOW);
    c.op.caller.tenant = str_of(tenant);
    c.input.workflow =
        (struct put_workflow_input){str_of(id), def, buf_str(&text), sha256_of(buf_str(&text))};
    must_perform(&c);
    call_release(&c);
    buf_release(&text);
    definition_free(def);
    json_decref(json);
    problem_release(&p);
}

enum { STEPS = 400, STARTED_MAX = STEPS + 64 };

struct started {
    const char *tenant;
    struct uuid id;
};

static void change_a_limit(struct fixture *fixture, struct rng *r)
{
    switch (rng_below(r, 6)) {
    case 0:
        put_tenant(fixture, "{'max_concurrent_runs':9}");
        break;
    case 1:
        put_tenant(fixture, "{'max_concurrent_runs':6,'at_limit':'queue'}");
        break;
    case 2:
        put_tenant(fixture, "{'max_concurrent_runs':null}");
        break;
    case 3:
        put_workflow(fixture, "keyed", KEYED);
        break;
    case 4:
        put_workflow(fixture, "keyed", KEYED_WIDER);
        break;
    default:
        put_workflow(fixture, "keyed", KEYED_OTHERWISE);
        break;
    }
}

/* Starts under all four policies, cancels, results, failures, sleeps, leases that end, changes of
 * limits. At its end runs of every kind are left: with and without limits, queued, asleep, leased.
 */
static void live_busily(struct fixture *fixture, uint64_t seed)
{
    static const char *const WORKFLOWS[] = {"keyed", "keyed", "plain", "nap"};
    static const char *const INPUTS[] = {"{'c':'a','d':1}", "{'c':'b','d':2}", "{'c':'c'}", "{}"};
    static const char *const OWNERS[] = {"acme", "acme", "beta"};
    struct started started[STARTED_MAX];
    size_t count = 0;
    struct rng r = {seed};
    put_tenant(fixture, "{'max_concurrent_runs':6,'at_limit':'queue'}");
    for (size_t i = 0; i < 2; i++) {
        put_workflow_of(fixture, OWNERS[i + 1], "keyed", KEYED);
        put_workflow_of(fixture, OWNERS[i + 1], "plain", ONE_TASK);
        put_workflow_of(fixture, OWNERS[i + 1], "nap", SLEEPS(50));
    }
    for (int step = 0; step < STEPS; step++) {
        const char *tenant = OWNERS[rng_below(&r, ARRAY_LEN(OWNERS))];
        uint64_t what = rng_below(&r, 20);
        if (what < 10) {
            struct started *s = &started[count];
            s->tenant = tenant;
            count += start_as(fixture, tenant, WORKFLOWS[rng_below(&r, ARRAY_LEN(WORKFLOWS))],
                              INPUTS[rng_below(&r, ARRAY_LEN(INPUTS))],
                              (enum at_limit)rng_below(&r, AT_LIMIT_COUNT + 1),
                              (int64_t)rng_below(&r, 3) * 50 - 50, &s->id) == ERR_OK;
        } else if (what < 15) {
            (void)work(fixture, tenant, what == 10, what == 11);
        } else if (what < 17 && count > 0) {
            const struct started *s = &started[rng_below(&r, count)];
            (void)cancel(fixture, s->tenant, s->id); /* it may be over */
        } else if (what < 19) {
            fixture_pass_ms(fixture, (int64_t)rng_below(&r, 20000));
            settle(fixture);
        } else {
            change_a_limit(fixture, &r);
        }
    }
    put_tenant(fixture, "{'max_concurrent_runs':8,'at_limit':'queue'}");
    put_workflow(fixture, "keyed", KEYED);
    put_workflow(fixture, "sleeper", SLEEPS(3600000));
    (void)must_start(fixture, "sleeper", "{}", 100);
    for (size_t i = 0; i < 12; i++) {
        (void)must_start(fixture, "keyed", INPUTS[i % ARRAY_LEN(INPUTS)], (int64_t)i % 2);
        (void)must_start(fixture, "plain", "{}", 0);
        assert_int_equal(start_as(fixture, "beta", "keyed", INPUTS[i % ARRAY_LEN(INPUTS)],
                                  AT_LIMIT_QUEUE, 0, NULL),
                         ERR_OK);
    }
    (void)work(fixture, "acme", false, true);
    fixture_pass_ms(fixture, 2000); /* indexes are filled */
    settle(fixture);
}

static void a_busy_history_leaves_nothing_to_mend(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        live_busily(fixture, seed);
        assert_healthy(fixture);
        assert_int_equal(repaired(fixture), 0);
    }
    /* there was something to look at */
    assert_true(in_file(fixture, "SELECT count(*) FROM slots") > 5);
    assert_true(in_file(fixture, "SELECT count(*) FROM queue") > 5);
    assert_true(in_file(fixture, "SELECT count(*) FROM lines WHERE waits_for > 0") > 0);
    assert_true(in_file(fixture, "SELECT count(*) FROM holding") > 5);
    assert_true(timers(fixture) > 1);
    assert_true(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'failed'") > 0);
    assert_true(in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'cancelled'") > 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM audit WHERE action = 'doctor.repair'"),
                     0);
}

/* --- damages that are mended --- */

#define A_HOLDER "(SELECT min(run) FROM slots)"
#define A_QUEUED "(SELECT min(q.run) FROM queue q JOIN line_scopes USING (line))"

static const char *const DERIVED[] = {
    "UPDATE tenants SET active_runs = active_runs + 3 WHERE id = 'acme'",
    "UPDATE tenants SET active_runs = 0",
    "UPDATE tenants SET queued_runs = queued_runs + 3 WHERE id = 'acme'",
    "UPDATE tenants SET queued_runs = 0",
    "UPDATE scopes SET active_runs = active_runs + 1",
    "UPDATE scopes SET active_runs = 0",
    "UPDATE scopes SET queued_runs = queued_runs + 1",
    "UPDATE scopes SET queued_runs = 0",
    "DELETE FROM slots",
    "DELETE FROM slots WHERE run = " A_HOLDER,
    "INSERT INTO slots (scope, run) SELECT max(scope), " A_QUEUED " FROM slots",
    "INSERT INTO slots (scope, run) SELECT scope, 5 FROM slots GROUP BY scope",
    "INSERT INTO scopes (tenant, workflow_id, path, key, active_runs, queued_runs)"
    " SELECT tenant, 'keyed', 'input.c', 'nobody', 0, 0 FROM scopes LIMIT 1",
    "DELETE FROM scopes",
    "DELETE FROM scopes WHERE path = ''",
    "DELETE FROM scopes WHERE path <> ''",
    "UPDATE scopes SET tenant = tenant + 10",
    "UPDATE scopes SET workflow_id = 'plain' WHERE path = ''",
    "UPDATE runs SET scopes = scopes || ',' || scopes WHERE num = " A_HOLDER,
    "UPDATE runs SET scopes = NULL WHERE num = " A_HOLDER,
    "UPDATE runs SET scopes = NULL WHERE num = " A_QUEUED,
    "DELETE FROM queue",
    "DELETE FROM queue WHERE run = " A_QUEUED,
    "UPDATE queue SET urgency = urgency - 1000 WHERE run = " A_QUEUED,
    "UPDATE queue SET tenant = tenant + 1",
    "INSERT INTO queue (line, urgency, run, tenant) SELECT line, urgency, 5, tenant FROM queue"
    " GROUP BY line",
    "DELETE FROM lines",
    "DELETE FROM line_scopes",
    "INSERT INTO line_scopes (scope, line) SELECT (SELECT max(num) + 7 FROM scopes), num FROM "
    "lines",
    "UPDATE lines SET urgency = 500",
    "UPDATE lines SET run = 5",
    "UPDATE lines SET waits_for = 500000",
    "INSERT INTO lines (tenant, scopes, waits_for, urgency, run) VALUES (77, '', 0, 0, 5)",
    "DELETE FROM slots; DELETE FROM queue; DELETE FROM lines; DELETE FROM line_scopes;"
    "DELETE FROM scopes; DELETE FROM holding; DELETE FROM run_blocks; DELETE FROM timers;"
    "UPDATE tenants SET active_runs = 0, queued_runs = 0",
    "DELETE FROM timers",
    "UPDATE timers SET generation = generation + 1",
    "UPDATE timers SET due_at = due_at + 1000000",
    "INSERT INTO timers (due_at, run, ordinal, generation) VALUES (9000000000000, 5, 1, 1)",
    "DELETE FROM holding",
    "INSERT INTO holding (tenant, run) SELECT tenant, num FROM runs WHERE status = 'succeeded'",
    "DELETE FROM run_blocks",
    "INSERT INTO run_blocks (tenant, num) VALUES (1, 5)",
    "INSERT INTO run_blocks (tenant, num, runs) SELECT tenant, num - 1, ',1,' FROM run_blocks",
    "UPDATE run_blocks SET runs = ''",
    "UPDATE run_blocks SET runs = 'what'",
    "UPDATE indexed SET through = (SELECT max(num) FROM runs) WHERE name = 'run_keys'",
    "DELETE FROM indexed WHERE name = 'run_keys'",
    "DELETE FROM indexed",
};

static void keep_a_key(struct fixture *fixture)
{
    struct call c;
    start_init(&c, fixture, "plain");
    c.input.start.at_limit = AT_LIMIT_QUEUE;
    call_key(&c, "kept", "");
    must_perform(&c);
    call_release(&c);
    fixture_pass_ms(fixture, 2000);
    settle(fixture);
}

static void every_damage_is_found_and_mended(void **state)
{
    struct fixture *fixture = *state;
    live_busily(fixture, 7);
    keep_a_key(fixture);
    fixture_stop(fixture);
    struct path sound = path_in(fixture->folder, "sound.db");
    file_copy(fixture->file.text, sound.text);
    for (size_t i = 0; i < ARRAY_LEN(DERIVED); i++) {
        file_copy(sound.text, fixture->file.text);
        damage(fixture, DERIVED[i]);
        struct check_result before = look_at_file(fixture);
        if (before.derived == 0 || before.derived != before.found)
            fail_msg("%s: found %lld, mendable %lld", DERIVED[i], (long long)before.found,
                     (long long)before.derived);
        fixture_start(fixture, 0);
        json_t *report = ask(fixture, &UC_DOCTOR_REPAIR);
        if (!is_ok(report))
            fail_msg("%s: not mended", DERIVED[i]);
        json_decref(report);
        (void)must_start(fixture, "keyed", "{'c':'a'}", 0); /* and life goes on from there */
        assert_true(work(fixture, "acme", false, false));
        settle(fixture);
        report = ask(fixture, &UC_DOCTOR);
        if (!is_ok(report))
            fail_msg("%s: after the repair: %s", DERIVED[i], first_finding(report));
        json_decref(report);
        fixture_stop(fixture);
        assert_int_equal(look_at_file(fixture).found, 0);
    }
    fixture_start(fixture, 0);
}

/* --- damages that are only said --- */

static void what_is_not_derived_is_said_and_left(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *sql;
        enum doctor_check check;
        int64_t differences;
    } CASES[] = {
        {"UPDATE runs SET version = 0 WHERE num = (SELECT min(num) FROM runs)", DOCTOR_RUNS, 1},
        {"UPDATE runs SET first_seq = NULL, first_events = NULL"
         " WHERE num = (SELECT min(num) FROM runs)",
         DOCTOR_RUNS, 1},
        {"UPDATE jobs SET finished_at = 1 WHERE state = 'pending' AND run ="
         " (SELECT min(run) FROM jobs WHERE state = 'pending')",
         DOCTOR_JOBS, 1},
        {"INSERT INTO key_records (num, tenant, key, key_hash, route, fingerprint, raw_hash, "
         "run_id,"
         " status, says_created, body, replays, mismatches, created_at) SELECT 9, tenant, key, 0,"
         " route, randomblob(32), randomblob(8), x'00112233445566778899aabbccddeeff', 200, 1,"
         " '{}', 0, 0, 1 FROM idempotency",
         DOCTOR_IDEMPOTENCY, 2},
        {"UPDATE audit SET actor = 'somebody' WHERE seq = 1 AND tenant = (SELECT max(tenant) FROM"
         " audit)",
         DOCTOR_AUDIT, 1},
        {"DELETE FROM audit WHERE tenant = (SELECT max(tenant) FROM audit)", DOCTOR_AUDIT, 1},
    };
    live_busily(fixture, 8);
    keep_a_key(fixture);
    fixture_stop(fixture);
    struct path sound = path_in(fixture->folder, "sound.db");
    file_copy(fixture->file.text, sound.text);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        file_copy(sound.text, fixture->file.text);
        damage(fixture, CASES[i].sql);
        fixture_start(fixture, 0);
        struct doctor_findings findings;
        json_t *report = ask_keyed(fixture, &UC_DOCTOR, NULL, &findings);
        assert_false(is_ok(report));
        for (enum doctor_check c = 0; c < DOCTOR_CHECK_COUNT; c++) {
            assert_true(findings.ran[c]);
            int64_t expected = c == CASES[i].check ? CASES[i].differences : 0;
            if (findings.differences[c] != expected)
                fail_msg("%s: %s has %lld", CASES[i].sql, doctor_check_name(c),
                         (long long)findings.differences[c]);
        }
        const json_t *check = json_array_get(json_object_get(report, "checks"), CASES[i].check);
        const json_t *found = json_array_get(json_object_get(check, "found"), 0);
        assert_true(json_is_false(json_object_get(found, "repairable")));
        json_decref(report);
        report = ask(fixture, &UC_DOCTOR_REPAIR);
        assert_int_equal(json_integer_value(json_object_get(report, "repaired")), 0);
        /* it looks only at where it can mend */
        assert_true(is_ok(report) == (CASES[i].check != DOCTOR_JOBS));
        json_decref(report);
        report = ask(fixture, &UC_DOCTOR);
        assert_false(is_ok(report));
        json_decref(report);
        fixture_stop(fixture);
    }
    fixture_start(fixture, 0);
}

/* --- the repair as a change --- */

static void a_repair_that_mends_nothing_is_no_change(void **state)
{
    struct fixture *fixture = *state;
    live_busily(fixture, 9);
    int64_t keys = in_file(fixture, "SELECT count(*) FROM idempotency");
    struct doctor_findings findings;
    json_t *report = ask_keyed(fixture, &UC_DOCTOR_REPAIR, "k", &findings);
    assert_true(is_ok(report));
    assert_int_equal(json_integer_value(json_object_get(report, "repaired")), 0);
    json_decref(report);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency"), keys);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM audit WHERE tenant = 0"), 0);
    assert_true(findings.ran[DOCTOR_SLOTS] && findings.ran[DOCTOR_QUEUE]);
    assert_true(findings.ran[DOCTOR_JOBS] && findings.ran[DOCTOR_INDEXES]);
    assert_false(findings.ran[DOCTOR_FILE] || findings.ran[DOCTOR_AUDIT]);
}

static void a_repair_is_audited_once_and_remembered_under_its_key(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "plain", ONE_TASK);
    (void)start(fixture, "plain");
    restart_damaged(fixture,
                    "UPDATE tenants SET active_runs = 5, queued_runs = 2 WHERE id = 'acme'");
    struct doctor_findings findings;
    json_t *first = ask_keyed(fixture, &UC_DOCTOR_REPAIR, "k", &findings);
    assert_true(is_ok(first));
    assert_int_equal(json_integer_value(json_object_get(first, "repaired")), 2);
    const json_t *slots = json_array_get(json_object_get(first, "checks"), 0);
    const json_t *found = json_array_get(json_object_get(slots, "found"), 0);
    assert_string_equal(json_string_value(json_object_get(slots, "name")), "slots");
    assert_true(json_is_false(json_object_get(slots, "ok")));
    assert_string_equal(json_string_value(json_object_get(found, "tenant")), "acme");
    assert_int_equal(json_integer_value(json_object_get(found, "kept")), 5);
    assert_int_equal(json_integer_value(json_object_get(found, "counted")), 1);
    assert_true(json_is_true(json_object_get(found, "repairable")));
    assert_int_equal(findings.differences[DOCTOR_SLOTS], 0); /* as it is now */
    assert_int_equal(in_file(fixture,
                             "SELECT count(*) FROM audit WHERE tenant = 0 AND actor = 'tester'"
                             " AND action = 'doctor.repair' AND detail ="
                             " '{\"slots\":1,\"queue\":1,\"jobs\":0,\"entities\":0,"
                             "\"indexes\":0,\"repaired\":2}'"),
                     1);
    json_t *again = ask_keyed(fixture, &UC_DOCTOR_REPAIR, "k", &findings);
    assert_true(json_equal(first, again));
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM audit WHERE tenant = 0"), 1);
    json_decref(first);
    json_decref(again);
    assert_healthy(fixture);
}

static void admission_is_exact_after_a_repair(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "plain", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':3,'at_limit':'reject'}");
    (void)start(fixture, "plain");
    restart_damaged(fixture, "UPDATE tenants SET active_runs = 3 WHERE id = 'acme'");
    struct call c;
    start_init(&c, fixture, "plain");
    assert_int_equal(perform(&c), ERR_MAX_CONCURRENT_RUNS); /* two slots have leaked */
    assert_int_equal(repaired(fixture), 1);
    assert_int_equal(perform(&c), ERR_OK);
    assert_int_equal(perform(&c), ERR_OK);
    assert_int_equal(perform(&c), ERR_MAX_CONCURRENT_RUNS);
    call_release(&c);
    restart_damaged(fixture, "UPDATE tenants SET active_runs = 0 WHERE id = 'acme'");
    assert_int_equal(repaired(fixture), 1);
    start_init(&c, fixture, "plain");
    assert_int_equal(perform(&c), ERR_MAX_CONCURRENT_RUNS);
    assert_true(work(fixture, "acme", false, false));
    assert_int_equal(perform(&c), ERR_OK);
    assert_int_equal(perform(&c), ERR_MAX_CONCURRENT_RUNS);
    call_release(&c);
    assert_healthy(fixture);
}

/* One list for the writer: nothing of it is committed before the last. */
static void a_repair_among_other_changes_loses_none_of_them(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "plain", ONE_TASK);
    put_tenant(fixture, "{'max_concurrent_runs':5,'at_limit':'reject'}");
    (void)start(fixture, "plain");
    (void)start(fixture, "plain");
    restart_damaged(fixture, "UPDATE tenants SET active_runs = 1 WHERE id = 'acme'");
    struct call calls[6];
    struct doctor_findings findings[ARRAY_LEN(calls)];
    struct doctor_input inputs[ARRAY_LEN(calls)];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        bool repairs = i == 1 || i == 4;
        if (repairs)
            call_init(&calls[i], fixture, &UC_DOCTOR_REPAIR);
        else
            start_init(&calls[i], fixture, "plain");
        inputs[i].findings = &findings[i];
        if (repairs)
            calls[i].op.input = &inputs[i];
    }
    struct call
        opener; /* a lone op would be run at once: the rest goes to the writer in one list */
    call_init(&opener, fixture, &UC_PROBE);
    submit(&opener);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        submit(&calls[i]);
    wait_done(&opener);
    call_release(&opener);
    static const enum err EXPECTED[] = {ERR_OK, ERR_OK, ERR_OK,
                                        ERR_OK, ERR_OK, ERR_MAX_CONCURRENT_RUNS};
    static const int64_t REPAIRED[] = {0, 1, 0, 0, 0, 0};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, EXPECTED[i]);
        if (i == 1 || i == 4) {
            json_t *report = parsed_str(buf_str(&calls[i].op.answer.body));
            assert_int_equal(json_integer_value(json_object_get(report, "repaired")), REPAIRED[i]);
            json_decref(report);
        }
        call_release(&calls[i]);
    }
    assert_healthy(fixture);
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters WHERE id = 'acme'"),
                     5);
}

static void queued_runs_start_in_order_after_a_repair(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "keyed", KEYED);
    put_tenant(fixture, "{'max_concurrent_runs':1,'at_limit':'queue'}");
    struct uuid first = must_start(fixture, "keyed", "{'c':'a'}", 0);
    struct uuid low = must_start(fixture, "keyed", "{'c':'a'}", -5);
    struct uuid high = must_start(fixture, "keyed", "{'c':'b'}", 5);
    struct uuid middle = must_start(fixture, "keyed", "{'c':'a'}", 0);
    restart_damaged(fixture, "DELETE FROM queue; DELETE FROM lines; DELETE FROM line_scopes;"
                             "UPDATE tenants SET queued_runs = 0, active_runs = 4");
    assert_true(repaired(fixture) > 0);
    settle(fixture);
    assert_run_is(fixture, first, "running");
    assert_run_is(fixture, high, "queued");
    struct uuid order[] = {first, high, middle, low};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        assert_run_is(fixture, order[i], "running");
        assert_true(work(fixture, "acme", false, false));
        assert_run_is(fixture, order[i], "succeeded");
    }
    assert_healthy(fixture);
}

/* The counters said that nothing was free, so nothing was waited for that would ever end. */
static void a_repair_starts_what_a_leaked_slot_kept_waiting(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "keyed", KEYED);
    put_tenant(fixture, "{'max_concurrent_runs':9,'at_limit':'queue'}");
    struct uuid runs[4];
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        runs[i] = must_start(fixture, "keyed", "{'c':'a'}", 0);
    assert_run_is(fixture, runs[1], "running");
    assert_run_is(fixture, runs[2], "queued");
    assert_int_equal(cancel(fixture, "acme", runs[0]), ERR_OK);
    assert_run_is(fixture, runs[2], "running");
    assert_run_is(fixture, runs[3], "queued");
    /* runs[1] ends, and its slots are never given back */
    fixture_stop(fixture);
    struct buf sql;
    buf_init(&sql, KIB);
    buf_put(&sql, STR("UPDATE runs SET status = 'succeeded', finished_at = 1 WHERE id = x'"));
    buf_put_hex(&sql, runs[1].bytes, sizeof(runs[1].bytes));
    buf_put(&sql, STR("'; " OWN_JOB_ROWS
                      "UPDATE jobs SET state = 'succeeded', finished_at = 1 WHERE run IN"
                      " (SELECT num FROM runs WHERE status = 'succeeded')"));
    damage(fixture, sql.ptr);
    buf_release(&sql);
    fixture_start(fixture, 0);
    settle(fixture);
    assert_run_is(fixture, runs[3], "queued");
    assert_true(repaired(fixture) > 0);
    settle(fixture);
    assert_run_is(fixture, runs[3], "running");
    assert_healthy(fixture);
}

/* The writer has read the mark of the index before it was mended. */
static void a_mark_that_was_wrong_is_not_remembered(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "plain", ONE_TASK);
    (void)start(fixture, "plain");
    restart_damaged(fixture, "UPDATE indexed SET through = (SELECT max(num) + 1000000000 FROM runs)"
                             " WHERE name = 'runs'; DELETE FROM run_blocks");
    settle(fixture);
    (void)start(fixture, "plain");
    assert_true(repaired(fixture) > 0);
    (void)start(fixture, "plain");
    assert_healthy(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_busy_history_leaves_nothing_to_mend),
        fixture_test(every_damage_is_found_and_mended),
        fixture_test(what_is_not_derived_is_said_and_left),
        fixture_test(a_repair_that_mends_nothing_is_no_change),
        fixture_test(a_repair_is_audited_once_and_remembered_under_its_key),
        fixture_test(admission_is_exact_after_a_repair),
        fixture_test(a_repair_among_other_changes_loses_none_of_them),
        fixture_test(queued_runs_start_in_order_after_a_repair),
        fixture_test(a_repair_starts_what_a_leaked_slot_kept_waiting),
        fixture_test(a_mark_that_was_wrong_is_not_remembered),
    };
    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
