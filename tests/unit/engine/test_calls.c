/* Http steps through the real engine and a real receiver: hand-outs, late results, turns, and the
 * end of the server. The clock is the test's, the network is not. */
#include "engine/calling_fixture.h"

#include "core/usecase/outgoing/calls.h"

static void put_call(struct calling_fixture *c, const char *id, const char *path, const char *more)
{
    char definition[512];
    (void)snprintf(definition, sizeof(definition),
                   "{'steps':[{'name':'a','type':'http','request':{'method':'POST','url':"
                   "'http://127.0.0.1:%d%s','body':{}}%s}]}",
                   c->receiver->port, path, more);
    put_workflow(c->fixture, id, definition);
}

static size_t answering(struct receiver *r)
{
    pthread_mutex_lock(&r->lock);
    size_t count = r->answering;
    pthread_mutex_unlock(&r->lock);
    return count;
}

static void wait_answering(struct calling_fixture *c, size_t count)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    while (answering(c->receiver) != count) {
        if (real_seconds() >= until)
            fail_msg("%zu calls are under way, wanted %zu", answering(c->receiver), count);
        fixture_round(c->fixture);
    }
}

static size_t requests(struct receiver *r)
{
    pthread_mutex_lock(&r->lock);
    size_t count = r->request_count;
    pthread_mutex_unlock(&r->lock);
    return count;
}

static void wait_requests(struct calling_fixture *c, size_t count)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    while (requests(c->receiver) < count) {
        if (real_seconds() >= until)
            fail_msg("%zu requests have come, wanted %zu", requests(c->receiver), count);
        fixture_round(c->fixture);
    }
}

static void wait_status(struct calling_fixture *c, struct uuid run, const char *status)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    char is[32];
    run_status_text(c->fixture, run, is);
    while (strcmp(is, status) != 0) {
        if (real_seconds() >= until)
            fail_msg("the run is %s, wanted %s", is, status);
        fixture_round(c->fixture);
        run_status_text(c->fixture, run, is);
    }
}

/* The key that a request came with, copied to `out`. */
static void key_of(const struct receiver *r, size_t request, char out[static UUID_TEXT_LEN + 1])
{
    assert_true(request < r->request_count);
    const char *at = strstr(r->requests[request], "\r\nIdempotency-Key: ");
    assert_non_null(at);
    (void)snprintf(out, UUID_TEXT_LEN + 1, "%s", at + strlen("\r\nIdempotency-Key: "));
}

static void assert_same_key(const struct receiver *r, size_t a, size_t b)
{
    char x[UUID_TEXT_LEN + 1];
    char y[UUID_TEXT_LEN + 1];
    key_of(r, a, x);
    key_of(r, b, y);
    assert_string_equal(x, y);
}

/* The default time, and what a lease has beyond it. */
enum { LEASE_MS = CALL_TIMEOUT_MS_DEFAULT + CALL_GRACE_MS };

static void finish_as(struct calling_fixture *c, int64_t epoch, const char *output)
{
    struct call_job job = {.ordinal = 1, .epoch = epoch};
    call_result_init(&job.result);
    job.result.kind = CALL_RESULT_OUTPUT;
    buf_put(&job.result.text, str_of(output));
    job.out.place.run = in_file(c->fixture, "SELECT run FROM jobs");
    struct call finish;
    call_init(&finish, c->fixture, &UC_FINISH_CALL);
    finish.op.input = &job;
    must_perform(&finish);
    call_release(&finish);
    call_result_release(&job.result);
}

static void a_result_of_an_older_hand_out_changes_nothing(void **state)
{
    struct calling_fixture *c = *state;
    put_call(c, "w", "/gate", "");
    struct uuid run = start(c->fixture, "w");
    wait_answering(c, 1);
    fixture_pass_ms(c->fixture, LEASE_MS + 1); /* as if the server had been stopped */
    wait_answering(c, 2);
    assert_same_key(c->receiver, 0, 1);
    assert_int_equal(in_file(c->fixture, "SELECT lease_epoch FROM jobs"), 2);
    finish_as(c, 1, "{\"late\":true}");
    finish_as(c, 3, "{\"early\":true}");
    assert_run_is(c->fixture, run, "running");
    assert_int_equal(in_file(c->fixture, "SELECT count(*) FROM jobs WHERE state = 'dispatched'"),
                     1);
    receiver_open_gate(c->receiver); /* both answer; one counts */
    wait_status(c, run, "succeeded");
    wait_answering(c, 0);
    assert_int_equal(in_file(c->fixture, "SELECT attempt FROM jobs"), 2);
    assert_int_equal(
        in_file(c->fixture, "SELECT count(*) FROM jobs WHERE output LIKE '%\"through\"%'"), 1);
    assert_int_equal(
        in_file(c->fixture, "SELECT count(*) FROM events WHERE type = 'job.succeeded'"), 1);
}

static void the_current_result_counts_once(void **state)
{
    struct calling_fixture *c = *state;
    put_call(c, "w", "/gate", "");
    struct uuid run = start(c->fixture, "w");
    wait_answering(c, 1);
    finish_as(c, 1, "{\"first\":true}");
    finish_as(c, 1, "{\"second\":true}");
    assert_run_is(c->fixture, run, "succeeded");
    receiver_open_gate(c->receiver);
    wait_answering(c, 0);
    settle(c->fixture);
    assert_int_equal(
        in_file(c->fixture, "SELECT count(*) FROM jobs WHERE output = '{\"first\":true}'"), 1);
}

/* However the step's own time is set: it is the call that keeps it, not the lease. */
static void a_lease_that_ends_is_no_time_out(void **state)
{
    struct calling_fixture *c = *state;
    put_call(c, "w", "/gate", ",'timeout_ms':60000");
    struct uuid run = start(c->fixture, "w");
    wait_answering(c, 1);
    fixture_pass_ms(c->fixture, 60000 + CALL_GRACE_MS - 1);
    settle(c->fixture);
    assert_int_equal(in_file(c->fixture, "SELECT count(*) FROM jobs WHERE state = 'dispatched' AND "
                                         "lease_epoch = 1"),
                     1);
    fixture_pass_ms(c->fixture, 2);
    wait_answering(c, 2);
    receiver_open_gate(c->receiver);
    wait_status(c, run, "succeeded");
}

static void a_job_of_a_cancelled_run_is_left_alone(void **state)
{
    struct calling_fixture *c = *state;
    put_call(c, "w", "/gate", "");
    struct uuid run = start(c->fixture, "w");
    wait_answering(c, 1);
    struct call cancel;
    call_init(&cancel, c->fixture, &UC_CONTROL_RUN);
    struct control_run_input input = {.run_id = run, .action = CONTROL_CANCEL, .if_match = -1};
    cancel.op.input = &input;
    must_perform(&cancel);
    call_release(&cancel);
    receiver_open_gate(c->receiver);
    wait_answering(c, 0);
    fixture_stop(c->fixture); /* whatever was still on its way has arrived */
    assert_int_equal(in_file(c->fixture, "SELECT count(*) FROM jobs WHERE state = 'cancelled' AND "
                                         "output IS NULL"),
                     1);
}

static void a_server_that_stops_gives_its_jobs_back(void **state)
{
    struct calling_fixture *c = *state;
    put_call(c, "w", "/silent", "");
    (void)start(c->fixture, "w");
    wait_answering(c, 1);
    engine_drain(c->fixture->engine);
    fixture_pass_ms(c->fixture, CALL_DRAIN_MS - 1);
    for (int i = 0; i < 10; i++)
        fixture_round(c->fixture);
    assert_false(engine_idle(c->fixture->engine)); /* it is given some time */
    fixture_pass_ms(c->fixture, 1);
    fixture_stop(c->fixture);
    assert_int_equal(in_file(c->fixture, "SELECT count(*) FROM jobs WHERE state = 'pending'"), 1);
    open_engine(c->fixture);
    wait_requests(c, 2); /* the second call is made at once, though the first may still hang */
    assert_same_key(c->receiver, 0, 1);
    engine_drain(c->fixture->engine);
    fixture_pass_ms(c->fixture, CALL_DRAIN_MS);
}

static void a_call_that_ends_while_the_server_stops_is_kept(void **state)
{
    struct calling_fixture *c = *state;
    put_call(c, "w", "/gate", "");
    (void)start(c->fixture, "w");
    wait_answering(c, 1);
    engine_drain(c->fixture->engine);
    receiver_open_gate(c->receiver);
    fixture_stop(c->fixture);
    assert_int_equal(in_file(c->fixture, "SELECT count(*) FROM jobs WHERE state = 'succeeded'"), 1);
}

static void changes_are_taken_while_the_last_calls_end(void **state)
{
    struct calling_fixture *c = *state;
    put_call(c, "w", "/gate", "");
    (void)start(c->fixture, "w");
    wait_answering(c, 1);
    engine_end_calls(c->fixture->engine);
    (void)start(c->fixture, "w"); /* taken, though its own call is not made here any more */
    assert_false(engine_calls_ended(c->fixture->engine));
    receiver_open_gate(c->receiver);
    while (!engine_calls_ended(c->fixture->engine))
        fixture_round(c->fixture);
    fixture_stop(c->fixture);
    assert_int_equal(in_file(c->fixture, "SELECT count(*) FROM jobs WHERE state = 'succeeded'"), 1);
    assert_int_equal(in_file(c->fixture, "SELECT count(*) FROM jobs WHERE state = 'pending'"), 1);
}

static struct uuid start_as(struct calling_fixture *c, const char *tenant, const char *workflow)
{
    struct call s;
    start_init(&s, c->fixture, workflow);
    s.op.caller.tenant = str_of(tenant);
    must_perform(&s);
    struct uuid id = s.op.answer.run_id;
    call_release(&s);
    return id;
}

static void put_call_as(struct calling_fixture *c, const char *tenant, const char *path)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "{\"steps\":[{\"name\":\"a\",\"type\":\"http\",\"request\":{\"method\":\"GET\","
                   "\"url\":\"http://127.0.0.1:%d%s\"}}]}",
                   c->receiver->port, path);
    struct problem p;
    problem_init(&p);
    json_t *json = json_loads(text, 0, NULL);
    struct definition *def = NULL;
    assert_int_equal(parse_tree(json, STR("w"), &p, &def), ERR_OK);
    struct call put;
    call_init(&put, c->fixture, &UC_PUT_WORKFLOW);
    put.op.caller.tenant = str_of(tenant);
    put.input.workflow =
        (struct put_workflow_input){STR("w"), def, str_of(text), sha256_of(str_of(text))};
    must_perform(&put);
    call_release(&put);
    definition_free(def);
    json_decref(json);
    problem_release(&p);
}

static void slow_receivers_of_one_tenant_do_not_stop_the_others(void **state)
{
    struct calling_fixture *c = *state;
    put_call_as(c, "many", "/gate");
    put_call_as(c, "few", "/gate");
    for (int i = 0; i < CALLS_IN_FLIGHT_MAX + 10; i++)
        (void)start_as(c, "many", "w");
    wait_answering(c, CALLS_PER_TENANT_MAX);
    struct uuid few = start_as(c, "few", "w");
    wait_answering(c, CALLS_PER_TENANT_MAX + 1);
    receiver_open_gate(c->receiver);
    struct call show; /* its run, as its own tenant sees it */
    call_init(&show, c->fixture, &UC_GET_RUN);
    show.op.caller.tenant = STR("few");
    show.input.run.run_id = few;
    int64_t until = real_seconds() + GIVE_UP_S;
    do {
        assert_true(real_seconds() < until);
        fixture_round(c->fixture);
        must_perform(&show);
    } while (strstr(show.op.answer.body.ptr, "\"status\":\"succeeded\"") == NULL);
    call_release(&show);
    while (in_file(c->fixture, "SELECT count(*) FROM jobs WHERE state = 'succeeded'") <
           CALLS_IN_FLIGHT_MAX + 11) {
        assert_true(real_seconds() < until);
        fixture_round(c->fixture);
    }
    assert_int_equal(c->receiver->request_count, CALLS_IN_FLIGHT_MAX + 11);
    assert_true(c->receiver->answering_max <= CALLS_PER_TENANT_MAX + 1);
}

/* Asks as the engine would, while it has no room itself; the letters of the tenants, in order. */
static void take_as(struct calling_fixture *c, struct taken_outgoing *taken,
                    struct take_outgoing_input *input, char *ret, size_t size)
{
    struct call take;
    call_init(&take, c->fixture, &UC_TAKE_CALLS);
    input->taken = taken;
    take.op.input = input;
    must_perform(&take);
    call_release(&take);
    size_t len = 0;
    while (taken->first != NULL) {
        struct call_job *job = CONTAINER_OF(taken->first, struct call_job, out);
        char sql[160];
        taken->first = job->out.next;
        (void)snprintf(sql, sizeof(sql),
                       "SELECT 96 + count(*) FROM tenants WHERE length(id) = 1 AND id BETWEEN 'a'"
                       " AND (SELECT id FROM tenants WHERE num = %lld)",
                       (long long)job->out.place.tenant);
        assert_true(len + 1 < size);
        ret[len++] = (char)in_file(c->fixture, sql);
        assert_int_equal(job->epoch, 1);
        assert_int_equal(job->timeout_ms, CALL_TIMEOUT_MS_DEFAULT);
        outgoing_job_free(&job->out);
    }
    ret[len] = '\0';
}

static void tenants_take_turns_by_their_weight(void **state)
{
    struct calling_fixture *c = *state;
    static const char *const TENANTS[] = {"a", "b", "c", "d"};
    for (size_t t = 0; t < ARRAY_LEN(TENANTS); t++)
        put_call_as(c, TENANTS[t], "/gate");
    struct json *weight = json_value_of_tree(json_of("{'weight':2}"));
    struct call put;
    call_init(&put, c->fixture, &UC_PUT_TENANT);
    put.input.tenant = (struct put_tenant_input){STR("d"), weight};
    must_perform(&put);
    call_release(&put);
    json_free(weight);
    for (int i = 0; i < CALLS_PER_TENANT_MAX; i++) { /* no room for what follows */
        (void)start_as(c, "a", "w");
        (void)start_as(c, "b", "w");
    }
    wait_answering(c, CALLS_IN_FLIGHT_MAX);
    for (int i = 0; i < 6; i++) {
        (void)start_as(c, "b", "w");
        (void)start_as(c, "c", "w");
        (void)start_as(c, "d", "w");
    }
    struct taken_outgoing taken = {.turn = 0};
    struct take_outgoing_input input = {.room = 5};
    char got[32];
    take_as(c, &taken, &input, got, sizeof(got));
    assert_string_equal(got, "bcddb");
    assert_true(taken.left_some);
    take_as(c, &taken, &input, got, sizeof(got));
    assert_string_equal(got, "cddbc"); /* goes on where the last one stopped */
    /* All but one of c's share is under way elsewhere. */
    input.room = 20;
    input.under_way_count = CALLS_PER_TENANT_MAX - 1;
    for (size_t i = 0; i < input.under_way_count; i++)
        input.under_way[i].tenant = in_file(c->fixture, "SELECT num FROM tenants WHERE id = 'c'");
    take_as(c, &taken, &input, got, sizeof(got));
    assert_string_equal(got, "ddbcbb");
    assert_true(taken.left_some);
    input.under_way_count = 0;
    take_as(c, &taken, &input, got, sizeof(got));
    assert_string_equal(got, "cc");
    assert_false(taken.left_some);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        calling_test(a_result_of_an_older_hand_out_changes_nothing),
        calling_test(the_current_result_counts_once),
        calling_test(a_lease_that_ends_is_no_time_out),
        calling_test(a_job_of_a_cancelled_run_is_left_alone),
        calling_test(a_server_that_stops_gives_its_jobs_back),
        calling_test(a_call_that_ends_while_the_server_stops_is_kept),
        calling_test(changes_are_taken_while_the_last_calls_end),
        calling_test(slow_receivers_of_one_tenant_do_not_stop_the_others),
        calling_test(tenants_take_turns_by_their_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
