/* Deliveries of webhooks: what is sent, in which order, and what their answers come to. The clock
 * is the test's, the network is not. */
#include "engine/webhook_support.h"

/* --- acts --- */

static struct uuid first_delivery(struct calling_fixture *h, struct uuid webhook)
{
    struct list_deliveries_input in = {webhook, STR_NONE, 200};
    struct call c;
    struct uuid id;
    call_init(&c, h->fixture, &UC_LIST_DELIVERIES);
    c.op.input = &in;
    must_perform(&c);
    json_t *page = parsed_str(buf_str(&c.op.answer.body));
    const json_t *items = json_object_get(page, "items");
    const json_t *first = json_array_get(items, json_array_size(items) - 1);
    assert_true(uuid_parse(json_str(json_object_get(first, "id")), &id));
    json_decref(page);
    call_release(&c);
    return id;
}

static void redeliver(struct calling_fixture *h, struct uuid webhook, struct uuid delivery)
{
    struct delivery_input in = {webhook, delivery};
    struct call c;
    call_init(&c, h->fixture, &UC_REDELIVER);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
}

static void wait_received(struct calling_fixture *h, size_t count)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    while (received(h) < count) {
        if (real_seconds() >= until)
            fail_msg("%zu requests came, wanted %zu", received(h), count);
        fixture_round(h->fixture);
    }
}

/* A header of a request, copied to `out`. */
static void header_of(struct calling_fixture *h, size_t request, const char *name,
                      char out[static 256])
{
    char line[64];
    assert_true(request < h->receiver->request_count);
    (void)snprintf(line, sizeof(line), "\r\n%s: ", name);
    const char *at = strstr(h->receiver->requests[request], line);
    assert_non_null(at);
    at += strlen(line);
    (void)snprintf(out, 256, "%.*s", (int)strcspn(at, "\r"), at);
}

static struct str body_of(struct calling_fixture *h, size_t request)
{
    const char *end = strstr(h->receiver->requests[request], "\r\n\r\n");
    assert_non_null(end);
    return str_of(end + 4);
}

/* --- what is sent --- */

static void a_delivery_is_signed_and_named_after_its_event(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    json_t *made = create_as(h, "acme", "/ok", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_received(h, 1);
    char id[256];
    char time[256];
    char signature[256];
    header_of(h, 0, "webhook-id", id);
    header_of(h, 0, "webhook-timestamp", time);
    header_of(h, 0, "webhook-signature", signature);
    json_t *event = parsed_str(body_of(h, 0));
    assert_string_equal(json_string_value(json_object_get(event, "id")), id);
    assert_string_equal(json_string_value(json_object_get(event, "type")), "run.created");
    assert_int_equal(strtoll(time, NULL, 10), fixture_now_ms(h->fixture) / 1000);
    const char *secret = json_string_value(json_object_get(made, "secret"));
    assert_memory_equal(secret, "whsec_", 6);
    struct raw raw = raw_open(h->fixture->file.text);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(raw.file, "SELECT secret FROM webhooks", -1, &stmt, NULL),
                     0);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    struct buf wanted;
    buf_init(&wanted, 128);
    webhook_put_signature(&wanted, (struct str){sqlite3_column_blob(stmt, 0), WEBHOOK_SECRET_LEN},
                          str_of(id), strtoll(time, NULL, 10), body_of(h, 0));
    assert_string_equal(signature, wanted.ptr);
    buf_release(&wanted);
    sqlite3_finalize(stmt);
    raw_close(&raw);
    json_decref(event);
    json_decref(made);
}

static size_t signatures_of(struct calling_fixture *h, size_t request)
{
    char text[256];
    size_t count = 1;
    header_of(h, request, "webhook-signature", text);
    for (const char *at = text; *at != '\0'; at++)
        count += *at == ' ';
    return count;
}

static void an_old_secret_signs_too_until_its_time_is_over(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    struct uuid id = create(h, "/ok", "run.created");
    struct rotate_webhook_input in = {id, 60 * 1000};
    struct call c;
    call_init(&c, h->fixture, &UC_ROTATE_WEBHOOK);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_received(h, 1);
    assert_int_equal(signatures_of(h, 0), 2);
    wait_deliveries(h, "state = 'delivered'", 1);
    fixture_pass_ms(h->fixture, 60 * 1000);
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_received(h, 2);
    assert_int_equal(signatures_of(h, 1), 1);
}

static void an_event_that_is_too_large_goes_without_its_data(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w",
                 "{'steps':[{'name':'e','type':'emit','event':'big.news','payload':"
                 "{'text':'${input.text}'}}]}");
    (void)create(h, "/ok", "big.*");
    char *text = malloc(DELIVERY_BODY_MAX + 64);
    assert_non_null(text);
    memset(text, 'x', DELIVERY_BODY_MAX + 63);
    text[DELIVERY_BODY_MAX + 63] = '\0';
    json_t *input = json_pack("{s:s}", "text", text);
    char *dumped = json_dumps(input, JSON_COMPACT);
    struct call c;
    start_init(&c, h->fixture, "w");
    struct json *value = json_value_of(str_of(dumped));
    c.input.start.input = value;
    c.input.start.input_text = str_of(dumped);
    must_perform(&c);
    json_free(value);
    call_release(&c);
    free(dumped);
    free(text);
    json_decref(input);
    fan_out_all(h);
    wait_received(h, 1);
    json_t *event = parsed_str(body_of(h, 0));
    const json_t *data = json_object_get(event, "data");
    assert_string_equal(json_string_value(json_object_get(event, "type")), "big.news");
    assert_true(json_is_true(json_object_get(data, "data_left_out")));
    assert_non_null(json_object_get(data, "run_id"));
    json_decref(event);
}

/* --- answers --- */

static void what_fails_is_sent_again_under_the_same_id(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/500", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "state = 'pending' AND attempts = 1 AND last_status = 500", 1);
    int64_t wait_ms =
        in_file(h->fixture, "SELECT next_at FROM deliveries") - fixture_now_ms(h->fixture);
    assert_in_range(wait_ms, 5000, 5500);
    assert_int_equal(in_file(h->fixture, "SELECT count(*) FROM webhooks WHERE failing_since > 0"),
                     1);
    fixture_pass_ms(h->fixture, wait_ms - 1);
    settle(h->fixture);
    assert_int_equal(received(h), 1);
    fixture_pass_ms(h->fixture, 1);
    wait_deliveries(h, "state = 'pending' AND attempts = 2", 1);
    char first[256];
    char second[256];
    header_of(h, 0, "webhook-id", first);
    header_of(h, 1, "webhook-id", second);
    assert_string_equal(first, second);
    char at[2][256];
    header_of(h, 0, "webhook-timestamp", at[0]);
    header_of(h, 1, "webhook-timestamp", at[1]);
    assert_string_not_equal(at[0], at[1]);
}

static void after_the_last_attempt_a_delivery_has_failed_and_can_be_sent_by_hand(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    struct uuid id = create(h, "/status/404", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    for (int attempt = 1; attempt < 10; attempt++) {
        char where[64];
        (void)snprintf(where, sizeof(where), "state = 'pending' AND attempts = %d", attempt);
        wait_deliveries(h, where, 1);
        int64_t at = in_file(h->fixture, "SELECT next_at FROM deliveries");
        fixture_pass_ms(h->fixture, at - fixture_now_ms(h->fixture));
    }
    wait_deliveries(h, "state = 'failed' AND attempts = 10 AND next_at IS NULL", 1);
    assert_int_equal(received(h), 10);
    assert_int_equal(in_file(h->fixture, "SELECT count(*) FROM webhooks WHERE disabled_at IS NULL"),
                     1);
    struct uuid delivery = first_delivery(h, id);
    redeliver(h, id, delivery);
    wait_deliveries(h, "state = 'pending' AND attempts = 11", 1); /* its schedule begins anew */
    int64_t wait_ms =
        in_file(h->fixture, "SELECT next_at FROM deliveries") - fixture_now_ms(h->fixture);
    assert_in_range(wait_ms, 5000, 5500);
    char url[128];
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/ok", h->receiver->port);
    change(h, (struct put_webhook_input){.webhook_id = id, .url = str_of(url)});
    redeliver(h, id, delivery);
    wait_deliveries(h, "state = 'delivered' AND attempts = 12", 1);
    assert_int_equal(
        in_file(h->fixture, "SELECT count(*) FROM webhooks WHERE failing_since IS NULL"), 1);
    assert_sound(h->fixture);
}

static void gone_disables_the_webhook(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/status/410", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "state = 'failed' AND last_status = 410", 1);
    assert_int_equal(in_file(h->fixture,
                             "SELECT count(*) FROM webhooks WHERE disabled_at IS NOT NULL"
                             " AND disabled_reason LIKE '%410%'"),
                     1);
    assert_int_equal(in_file(h->fixture,
                             "SELECT count(*) FROM audit WHERE action = 'webhook.disable'"
                             " AND actor = 'pawl'"),
                     1);
    (void)start(h->fixture, "w");
    fan_out_all(h);
    assert_deliveries(h, "true", 1);
    assert_sound(h->fixture);
}

static void a_receiver_that_takes_nothing_for_days_is_disabled(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/500", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "attempts = 1 AND state = 'pending'", 1);
    fixture_pass_ms(h->fixture, WEBHOOK_FAILING_MS_MAX);
    wait_deliveries(h, "state = 'failed'", 1);
    assert_int_equal(in_file(h->fixture,
                             "SELECT count(*) FROM webhooks WHERE disabled_at IS NOT NULL"
                             " AND disabled_reason LIKE '%five days%'"),
                     1);
}

/* --- order and turns --- */

static void events_of_a_run_arrive_in_order(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/ok", "*");
    for (int i = 0; i < 6; i++)
        (void)start(h->fixture, "w");
    for (int i = 0; i < 6; i++)
        work(h->fixture, "a");
    fan_out_all(h);
    int64_t events = in_file(h->fixture, "SELECT count(*) FROM events");
    wait_deliveries(h, "state = 'delivered'", events);
    char last[512][64];
    size_t runs = 0;
    for (size_t i = 0; i < received(h); i++) {
        char id[256];
        header_of(h, i, "webhook-id", id);
        size_t r = 0;
        while (r < runs && strncmp(last[r], id, UUID_TEXT_LEN) != 0)
            r++;
        long seq = strtol(id + UUID_TEXT_LEN + 1, NULL, 10);
        long before = r < runs ? strtol(last[r] + UUID_TEXT_LEN + 1, NULL, 10) : 0;
        assert_int_equal(seq, before + 1);
        runs = MAX(runs, r + 1);
        (void)snprintf(last[r], sizeof(last[r]), "%.63s", id);
    }
    assert_int_equal(runs, 6);
}

static void the_next_event_of_a_run_waits_for_the_one_before_it(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/gate", "*");
    (void)start(h->fixture, "w");
    work(h->fixture, "a");
    fan_out_all(h);
    wait_deliveries(h, "state = 'sending'", 1);
    settle(h->fixture);
    assert_true(deliveries(h, "state = 'pending'") > 2);
    assert_deliveries(h, "state = 'sending'", 1);
    (void)start(h->fixture, "w"); /* of another run one may go */
    fan_out_all(h);
    wait_deliveries(h, "state = 'sending'", 2);
    receiver_open_gate(h->receiver);
    wait_deliveries(h, "state <> 'delivered'", 0);
}

static void a_slow_receiver_holds_up_no_other(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/gate", "run.created"); /* webhook 1 */
    (void)create(h, "/ok", "run.created");
    for (int i = 0; i < 100; i++)
        (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "webhook = 2 AND state = 'delivered'", 100);
    assert_deliveries(h, "webhook = 1 AND state = 'sending'", WEBHOOK_IN_FLIGHT_MAX);
    assert_deliveries(h, "webhook = 1 AND attempts > 0", WEBHOOK_IN_FLIGHT_MAX);
    receiver_open_gate(h->receiver);
    wait_deliveries(h, "state = 'delivered'", 200);
    assert_int_equal(received(h), 200);
}

static void a_tenant_has_its_share_of_places(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    for (int i = 0; i < 6; i++)
        (void)create(h, "/gate", "run.created");
    for (int i = 0; i < 10; i++)
        (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "state = 'sending'", WEBHOOKS_TENANT_IN_FLIGHT_MAX);
    settle(h->fixture);
    assert_deliveries(h, "attempts > 0", WEBHOOKS_TENANT_IN_FLIGHT_MAX);
    receiver_open_gate(h->receiver);
    wait_deliveries(h, "state = 'delivered'", 60);
}

static void a_receiver_that_fails_gets_one_at_a_time(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    struct uuid id = create(h, "/500", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "attempts = 1 AND state = 'pending'", 1);
    char url[128];
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/gate", h->receiver->port);
    change(h, (struct put_webhook_input){.webhook_id = id, .url = str_of(url)});
    for (int i = 0; i < 10; i++)
        (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "state = 'sending'", 1);
    settle(h->fixture);
    assert_deliveries(h, "state = 'sending'", 1);
    receiver_open_gate(h->receiver);
    wait_deliveries(h, "state = 'delivered'", 10);
}

/* --- the end of the server --- */

static void what_was_being_sent_when_the_server_ended_is_sent_again(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    (void)create(h, "/silent", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_received(h, 1);
    engine_drain(h->fixture->engine);
    fixture_pass_ms(h->fixture, CALL_DRAIN_MS);
    fixture_stop(h->fixture);
    assert_deliveries(h, "state = 'pending' AND attempts = 1 AND last_error IS NULL", 1);
    /* As if it had been killed instead: nobody marked it. */
    struct raw raw = raw_open(h->fixture->file.text);
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "UPDATE deliveries SET state = 'sending', next_at = %lld",
                   (long long)(fixture_now_ms(h->fixture) + WEBHOOK_LEASE_MS));
    raw_exec(&raw, sql);
    raw_close(&raw);
    open_engine(h->fixture);
    wait_received(h, 2);
    char first[256];
    char second[256];
    header_of(h, 0, "webhook-id", first);
    header_of(h, 1, "webhook-id", second);
    assert_string_equal(first, second);
    engine_drain(h->fixture->engine);
    fixture_pass_ms(h->fixture, CALL_DRAIN_MS);
}

static void a_late_result_of_an_earlier_hand_out_changes_nothing(void **state)
{
    struct calling_fixture *h = *state;
    put_workflow(h->fixture, "w", ONE_TASK);
    struct uuid id = create(h, "/gate", "run.created");
    (void)start(h->fixture, "w");
    fan_out_all(h);
    wait_deliveries(h, "state = 'sending'", 1);
    static const int64_t EPOCHS[] = {0, 2};
    for (size_t i = 0; i < ARRAY_LEN(EPOCHS); i++) {
        struct delivery_job late = {
            .out.place = {in_file(h->fixture, "SELECT tenant FROM deliveries"), 1, -1},
            .id = first_delivery(h, id),
            .attempt = EPOCHS[i],
            .result = {.status = 200, .retry_after_ms = -1},
        };
        struct call c;
        call_init(&c, h->fixture, &UC_FINISH_DELIVERY);
        c.op.input = &late;
        must_perform(&c);
        assert_null(c.op.answer.outcome);
        call_release(&c);
        assert_deliveries(h, "state = 'sending'", 1);
    }
    receiver_open_gate(h->receiver);
    wait_deliveries(h, "state = 'delivered'", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        calling_test(a_delivery_is_signed_and_named_after_its_event),
        calling_test(an_old_secret_signs_too_until_its_time_is_over),
        calling_test(an_event_that_is_too_large_goes_without_its_data),
        calling_test(what_fails_is_sent_again_under_the_same_id),
        calling_test(after_the_last_attempt_a_delivery_has_failed_and_can_be_sent_by_hand),
        calling_test(gone_disables_the_webhook),
        calling_test(a_receiver_that_takes_nothing_for_days_is_disabled),
        calling_test(events_of_a_run_arrive_in_order),
        calling_test(the_next_event_of_a_run_waits_for_the_one_before_it),
        calling_test(a_slow_receiver_holds_up_no_other),
        calling_test(a_tenant_has_its_share_of_places),
        calling_test(a_receiver_that_fails_gets_one_at_a_time),
        calling_test(what_was_being_sent_when_the_server_ended_is_sent_again),
        calling_test(a_late_result_of_an_earlier_hand_out_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
