/* Webhooks through the real engine and a real receiver: which events become deliveries, how long
 * the log is kept, and what is refused. */
#include "engine/webhook_support.h"

/* --- acts --- */

static void with_webhook(struct calling_fixture *h, const struct use_case *use_case, struct uuid id)
{
    struct webhook_input in = {id};
    struct call c;
    call_init(&c, h->fixture, use_case);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
}

/* --- which events --- */

static void each_event_becomes_one_delivery_for_each_webhook_that_wants_it(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/ok", "*");
    (void)create(h, "/ok", "run.succeeded,run.failed");
    (void)create(h, "/ok", "job.*");
    json_decref(create_as(h, "other", "/ok", "*"));
    for (int i = 0; i < 3; i++) {
        (void)start(h->fixture, "w");
        work(h->fixture, "a");
    }
    fan_out_all(h);
    int64_t events = in_file(h->fixture, "SELECT count(*) FROM events");
    int64_t jobs = in_file(h->fixture, "SELECT count(*) FROM events WHERE type LIKE 'job.%'");
    assert_true(events > 9 && jobs >= 3);
    assert_deliveries(h, "webhook = 1", events);
    assert_deliveries(h, "webhook = 2", 3);
    assert_deliveries(h, "webhook = 3", jobs);
    assert_deliveries(h, "webhook = 4", 0); /* another tenant's */
    assert_int_equal(in_file(h->fixture, "SELECT count(*) FROM (SELECT DISTINCT webhook, event_id"
                                         " FROM deliveries) AS d"),
                     events + 3 + jobs);
    wait_deliveries(h, "state = 'delivered'", events + 3 + jobs);
    assert_int_equal(received(h), (size_t)(events + 3 + jobs));
    assert_sound(h->fixture);
}

static void events_from_before_a_webhook_are_not_delivered(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)start(h->fixture, "w");
    (void)create(h, "/ok", "*");
    fan_out_all(h);
    assert_deliveries(h, "true", 0);
    (void)start(h->fixture, "w");
    settle(h->fixture); /* and a pause follows, in which nothing is fanned out */
    int64_t delivered = deliveries(h, "webhook = 1");
    assert_true(delivered > 0);
    (void)start(h->fixture, "w");
    settle(h->fixture);
    assert_deliveries(h, "webhook = 1", delivered);
    (void)create(h, "/ok", "*");
    fan_out_all(h);
    assert_deliveries(h, "webhook = 1", 2 * delivered);
    assert_deliveries(h, "webhook = 2", 0);
    work(h->fixture, "a");
    fan_out_all(h);
    assert_true(deliveries(h, "webhook = 2") > 0);
}

static void without_webhooks_nothing_follows_the_feed(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)start(h->fixture, "w");
    fan_out_all(h);
    assert_int_equal(in_file(h->fixture, "SELECT count(*) FROM feed_marks WHERE name = 'webhooks'"),
                     0);
    struct uuid id = create(h, "/ok", "*");
    assert_int_equal(in_file(h->fixture, "SELECT count(*) FROM feed_marks WHERE name = 'webhooks'"),
                     1);
    with_webhook(h, &UC_DELETE_WEBHOOK, id);
    assert_int_equal(
        in_file(h->fixture, "SELECT count(*) FROM feed_marks WHERE name LIKE 'webhooks%'"), 0);
}

/* Time passes while the writer is at work: what is due then is done behind the same batch. */
static enum err run_slowly(struct op *op, struct tx *tx)
{
    (void)tx;
    fixture_pass_ms(CONTAINER_OF(op, struct call, op)->fixture, IDEM_STATS_FLUSH_MS);
    op->answer.changed_nothing = true;
    return ERR_OK;
}

static const struct use_case UC_SLOW = {.name = "test_slow", .write = run_slowly};

/* Rows of others are passed over without a write; the last webhook goes before that is made up for.
 */
static void a_mark_that_is_gone_does_not_come_back(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    json_t *made = create_as(h, "other", "/ok", "*");
    struct webhook_input in;
    assert_true(uuid_parse(json_str(json_object_get(made, "id")), &in.webhook_id));
    json_decref(made);
    fan_out_all(h);
    (void)start(h->fixture, "w");
    fan_out_all(h);
    struct call slow[2]; /* two in one round, so that all go to the writer's thread */
    struct call c;
    call_init(&c, h->fixture, &UC_DELETE_WEBHOOK);
    c.op.caller.tenant = STR("other");
    c.op.input = &in;
    for (size_t i = 0; i < ARRAY_LEN(slow); i++) {
        call_init(&slow[i], h->fixture, &UC_SLOW);
        submit(&slow[i]);
    }
    must_perform(&c);
    call_release(&c);
    for (size_t i = 0; i < ARRAY_LEN(slow); i++) {
        wait_done(&slow[i]);
        call_release(&slow[i]);
    }
    fan_out_all(h);
    assert_int_equal(in_file(h->fixture, "SELECT count(*) FROM feed_marks WHERE name = 'webhooks'"),
                     0);
    assert_sound(h->fixture);
}

static void how_far_it_is_is_written_down_now_and_then(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    json_decref(create_as(h, "other", "/ok", "*"));
    (void)start(h->fixture, "w");
    fan_out_all(h);
    fixture_pass_ms(h->fixture, IDEM_STATS_FLUSH_MS);
    settle(h->fixture);
    assert_int_equal(in_file(h->fixture, "SELECT through FROM feed_marks WHERE name = 'webhooks'"),
                     in_file(h->fixture, "SELECT max(num) FROM feed"));
}

/* More events in one commit than a slice may make. */
static void a_slice_that_is_full_goes_on_where_it_was(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w",
                 "{'steps':[{'name':'a','type':'task','handler':'h','for_each':'input'}]}");
    for (int i = 0; i < 5; i++)
        (void)create(h, "/silent", "*");
    char input[512] = "[1";
    for (int i = 2; i <= 120; i++)
        (void)snprintf(input + strlen(input), sizeof(input) - strlen(input), ",%d%s", i % 10,
                       i == 120 ? "]" : "");
    (void)start_with(h->fixture, "w", input);
    int64_t events = in_file(h->fixture, "SELECT count(*) FROM events");
    assert_true(events * 5 > FAN_OUT_PER_TURN_MAX);
    assert_int_equal(in_file(h->fixture, "SELECT max(last_seq - first_seq + 1) FROM feed"), events);
    fan_out_all(h);
    assert_deliveries(h, "true", events * 5);
    assert_int_equal(in_file(h->fixture, "SELECT count(*) FROM (SELECT DISTINCT webhook, event_id"
                                         " FROM deliveries) AS d"),
                     events * 5);
    assert_int_equal(
        in_file(h->fixture, "SELECT through FROM feed_marks WHERE name = 'webhooks.seq'"), 0);
    engine_drain(h->fixture->engine);
    fixture_pass_ms(h->fixture, CALL_DRAIN_MS);
}

/* As after kill -9 between any two slices: the mark and the deliveries are of the same commit. */
static void a_mark_that_was_not_written_makes_no_second_delivery(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/ok", "run.created");
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 5; i++)
            (void)start(h->fixture, "w");
        if (round % 2 == 0)
            fan_out_all(h);
        fixture_stop(h->fixture);
        open_engine(h->fixture);
    }
    fan_out_all(h);
    assert_deliveries(h, "true", 20);
    wait_deliveries(h, "state = 'delivered'", 20);
    assert_int_equal(received(h), 20);
}

static void a_disabled_webhook_gets_nothing_and_goes_on_later(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    struct uuid id = create(h, "/ok", "run.created");
    change(h, (struct put_webhook_input){.webhook_id = id, .enabled = WEBHOOK_DISABLE});
    (void)start(h->fixture, "w");
    fan_out_all(h);
    assert_deliveries(h, "true", 0);
    change(h, (struct put_webhook_input){.webhook_id = id, .enabled = WEBHOOK_ENABLE});
    fan_out_all(h);
    assert_deliveries(h, "true", 0);
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "state = 'delivered'", 1);
}

/* --- the log --- */

static void the_log_is_kept_for_a_while(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    struct uuid id = create(h, "/ok", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "state = 'delivered'", 1);
    fixture_pass_ms(h->fixture, DELIVERY_KEPT_MS - 60 * 1000);
    settle(h->fixture);
    assert_deliveries(h, "true", 1);
    fixture_pass_ms(h->fixture, 2 * 60 * 1000);
    settle(h->fixture);
    assert_deliveries(h, "true", 0);
    with_webhook(h, &UC_TEST_WEBHOOK, id); /* it lives on */
    wait_deliveries(h, "state = 'delivered' AND event_type = 'webhook.test'", 1);
}

static void in_two_weeks(struct calling_fixture *h, const char *sql)
{
    fixture_stop(h->fixture);
    struct raw raw = raw_open(h->fixture->file.text);
    raw_exec(&raw, sql);
    raw_close(&raw);
    fixture_pass_ms(h->fixture, 2 * (int64_t)DELIVERY_KEPT_MS);
    fixture_start(h->fixture, 0);
    for (int i = 0; i < 4; i++) {
        fixture_pass_ms(h->fixture, DELIVERIES_SWEEP_PAUSE_MS);
        settle(h->fixture);
    }
}

/* The server was down for so long. No attempt is due yet, so that only the sweep decides. */
static void what_waits_is_kept_however_old_it_is(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/500", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "attempts = 1 AND state = 'pending'", 1);
    in_two_weeks(h, "UPDATE deliveries SET next_at = next_at + 10000000000");
    assert_deliveries(h, "state = 'pending'", 1);
    /* nobody would send it any more */
    in_two_weeks(h, "UPDATE webhooks SET disabled_at = 1, disabled_reason = 'tried'");
    assert_deliveries(h, "true", 0);
}

static void a_deleted_webhook_goes_with_all_that_it_had(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    struct uuid id = create(h, "/500", "run.created");
    (void)create(h, "/ok", "run.created");
    for (int i = 0; i < 5; i++)
        (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "attempts = 1", 10);
    wait_deliveries(h, "state = 'sending'", 0);
    with_webhook(h, &UC_DELETE_WEBHOOK, id);
    assert_int_equal(in_file(h->fixture,
                             "SELECT count(*) FROM webhooks WHERE secret <> x'"
                             "0000000000000000000000000000000000000000000000000000000000000000'"),
                     1);
    assert_sound(h->fixture);
    for (int i = 0; i < 4; i++) {
        fixture_pass_ms(h->fixture, DELIVERIES_SWEEP_PAUSE_MS);
        settle(h->fixture);
    }
    assert_int_equal(in_file(h->fixture, "SELECT count(*) FROM webhooks"), 1);
    assert_deliveries(h, "webhook = 1", 0);
    assert_deliveries(h, "webhook = 2", 5);
}

static void a_webhook_that_is_flooded_is_disabled(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/500", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "state = 'pending' AND attempts = 1", 1);
    fixture_stop(h->fixture);
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
                   " INSERT INTO deliveries (num, id, webhook, tenant, event_id, event_type, body,"
                   " state, attempts, schedule_from, next_at, created_at)"
                   " SELECT d.num + i, d.id, d.webhook, d.tenant, 'x', 'y', '{}', 'pending', 0, 0,"
                   " d.next_at + 1000000000, d.created_at FROM deliveries d, n",
                   DELIVERIES_WAITING_MAX);
    struct raw raw = raw_open(h->fixture->file.text);
    raw_exec(&raw, sql);
    raw_close(&raw);
    open_engine(h->fixture);
    settle(h->fixture);
    assert_int_equal(in_file(h->fixture,
                             "SELECT count(*) FROM webhooks WHERE disabled_at IS NOT NULL"
                             " AND disabled_reason LIKE 'Too many%'"),
                     1);
}

/* --- refusals --- */

static void a_tenant_has_a_bounded_number_of_webhooks(void **state)
{
    struct calling_fixture *h = *state;
    for (int i = 0; i < WEBHOOKS_PER_TENANT_MAX; i++)
        (void)create(h, "/ok", "*");
    struct put_webhook_input in = {.url = STR("http://127.0.0.1/"), .events = STR("*")};
    struct call c;
    call_init(&c, h->fixture, &UC_CREATE_WEBHOOK);
    c.op.input = &in;
    assert_int_equal(perform(&c), ERR_WEBHOOK_LIMIT);
    call_release(&c);
    json_decref(create_as(h, "other", "/ok", "*"));
}

static void a_url_that_cannot_be_called_is_refused(void **state)
{
    struct calling_fixture *h = *state;
    static const char *const BAD[] = {"",           "nonsense",        "ftp://example.com/",
                                      "http://",    "http://u@x.test", "file:///etc/passwd",
                                      "http://a b/"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct put_webhook_input in = {.url = str_of(BAD[i]), .events = STR("*")};
        struct call c;
        call_init(&c, h->fixture, &UC_CREATE_WEBHOOK);
        c.op.input = &in;
        if (perform(&c) != ERR_FIELD_INVALID)
            fail_msg("<%s> is taken", BAD[i]);
        call_release(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        calling_test(each_event_becomes_one_delivery_for_each_webhook_that_wants_it),
        calling_test(events_from_before_a_webhook_are_not_delivered),
        calling_test(without_webhooks_nothing_follows_the_feed),
        calling_test(a_mark_that_is_gone_does_not_come_back),
        calling_test(how_far_it_is_is_written_down_now_and_then),
        calling_test(a_slice_that_is_full_goes_on_where_it_was),
        calling_test(a_mark_that_was_not_written_makes_no_second_delivery),
        calling_test(a_disabled_webhook_gets_nothing_and_goes_on_later),
        calling_test(the_log_is_kept_for_a_while),
        calling_test(what_waits_is_kept_however_old_it_is),
        calling_test(a_deleted_webhook_goes_with_all_that_it_had),
        calling_test(a_webhook_that_is_flooded_is_disabled),
        calling_test(a_tenant_has_a_bounded_number_of_webhooks),
        calling_test(a_url_that_cannot_be_called_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
