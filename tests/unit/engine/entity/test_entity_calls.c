/* Calls of an entity's handler between claim and result: leases that are renewed, released and
 * lost, attempts, and answers that cannot be applied. */
#include "engine/usecase/asking.h"

static void release_call(struct handed *h)
{
    json_decref(h->job);
    h->job = NULL;
}

static struct handed must_claim_call(struct fixture *fixture, int64_t lease_ms)
{
    struct handed h = claim_call(fixture, lease_ms);
    assert_non_null(h.job);
    return h;
}

static void assert_no_call(struct fixture *fixture)
{
    struct handed h = claim_call(fixture, 1000);
    assert_null(h.job);
}

static int64_t events_of(struct fixture *fixture, const char *type)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM events WHERE type = '%s'", type);
    return in_file(fixture, sql);
}

static struct heartbeat_input lease_of(const struct handed *h, const char *note)
{
    return (struct heartbeat_input){h->id, str_of(h->token),
                                    note != NULL ? str_of(note) : STR_NONE};
}

static void migrate(struct fixture *fixture, const char *id)
{
    struct migrate_entity_input in = {COUNTER, str_of(id), -1};
    must_do(fixture, &UC_MIGRATE_ENTITY, &in);
}

/* --- heartbeats --- */

static void a_heartbeat_renews_the_lease_of_a_call_and_keeps_its_note(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = must_claim_call(fixture, 1000);
    struct heartbeat_input noted = lease_of(&h, "{\"done\":1}");
    struct heartbeat_input plain = lease_of(&h, NULL);
    struct get_job_input get = {h.id};
    for (int i = 0; i < 3; i++) {
        fixture_pass_ms(fixture, 900);
        json_t *renewed = answer_of(fixture, &UC_HEARTBEAT, i == 0 ? &noted : &plain);
        assert_true(json_is_false(json_object_get(renewed, "cancel_requested")));
        json_decref(renewed);
        settle(fixture);
        assert_no_call(fixture);
    }
    json_t *shown = answer_of(fixture, &UC_GET_JOB, &get);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(shown, "progress"), "done")), 1);
    assert_text_in(shown, "type", "signals");
    assert_int_equal(finish_call(fixture, &h, "{\"state\":{\"sum\":1}}", true), ERR_OK);
    assert_refuses(fixture, &UC_HEARTBEAT, &plain, ERR_LEASE_LOST); /* it has ended */
    release_call(&h);
    assert_int_equal(state_number(fixture, "a", "sum"), 1);
    assert_sound(fixture);
}

static void a_lost_lease_is_refused_and_recorded_once(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed lost = must_claim_call(fixture, 1000);
    fixture_pass_ms(fixture, 1001);
    settle(fixture);
    struct handed h = must_claim_call(fixture, 60000);
    struct heartbeat_input stale = lease_of(&lost, NULL);
    assert_refuses(fixture, &UC_HEARTBEAT, &stale, ERR_LEASE_LOST);
    assert_int_equal(events_of(fixture, "job.stale_result"), 1);
    assert_refuses(fixture, &UC_HEARTBEAT, &stale, ERR_LEASE_LOST);
    assert_refuses(fixture, &UC_RELEASE_JOB, &stale, ERR_LEASE_LOST);
    assert_int_equal(finish_call(fixture, &lost, "{}", true), ERR_LEASE_LOST);
    struct heartbeat_input made_up = {h.id, STR("7.not-a-lease"), STR_NONE};
    assert_refuses(fixture, &UC_HEARTBEAT, &made_up, ERR_LEASE_LOST);
    assert_int_equal(events_of(fixture, "job.stale_result"), 1);
    assert_int_equal(finish_call(fixture, &h, "{\"state\":{\"sum\":1}}", true), ERR_OK);
    assert_int_equal(state_number(fixture, "a", "sum"), 1);
    release_call(&lost);
    release_call(&h);
}

/* --- releases --- */

static void a_released_call_is_anothers_and_releasing_it_again_is_answered(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed first = must_claim_call(fixture, 60000);
    struct heartbeat_input in = lease_of(&first, NULL);
    assert_text_in(answer_of(fixture, &UC_RELEASE_JOB, &in), "status", "released");
    assert_text_in(answer_of(fixture, &UC_RELEASE_JOB, &in), "status", "released");
    assert_refuses(fixture, &UC_HEARTBEAT, &in, ERR_LEASE_LOST);
    assert_int_equal(finish_call(fixture, &first, "{}", true), ERR_LEASE_LOST);
    struct handed second = must_claim_call(fixture, 60000);
    assert_true(uuid_eq(first.id, second.id));
    assert_refuses(fixture, &UC_RELEASE_JOB, &in, ERR_LEASE_LOST);
    struct heartbeat_input own = lease_of(&second, NULL);
    assert_int_equal(finish_call(fixture, &second, "{}", true), ERR_OK);
    assert_refuses(fixture, &UC_RELEASE_JOB, &own, ERR_LEASE_LOST);
    release_call(&first);
    release_call(&second);
}

/* While a migration waits for the call of the old version, each end without an answer lets it by.
 */
static void a_call_that_ends_without_an_answer_makes_way_for_a_migration(void **state)
{
    struct fixture *fixture = *state;
    static const char *const ENDS[] = {"released", "failed", "retryable", "expired"};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        char more[32];
        (void)snprintf(more, sizeof(more), ",'version':%zu", 2 * i + 1);
        count_with(fixture, more);
        (void)must_send(fixture, ENDS[i], NULL, 1);
        struct handed h = must_claim_call(fixture, 1000);
        (void)snprintf(more, sizeof(more), ",'version':%zu", 2 * i + 2);
        count_with(fixture, more);
        migrate(fixture, ENDS[i]);
        struct heartbeat_input in = lease_of(&h, NULL);
        if (i == 0)
            must_do(fixture, &UC_RELEASE_JOB, &in);
        else if (i < 3)
            assert_int_equal(finish_call(fixture, &h, NULL, i == 2), ERR_OK);
        else
            fixture_pass_ms(fixture, 1001);
        settle(fixture);
        struct handed next = must_claim_call(fixture, 60000);
        assert_string_equal(json_string_value(json_object_get(next.input, "kind")), "migrate");
        struct get_job_input get = {next.id};
        assert_text_in(answer_of(fixture, &UC_GET_JOB, &get), "type", "migrate");
        assert_int_equal(finish_call(fixture, &next, "{}", true), ERR_OK);
        assert_text_in(answer_of(fixture, &UC_GET_JOB, &get), "state", "succeeded");
        assert_int_equal(handle_all(fixture, ""), 1);
        assert_int_equal(state_number(fixture, ENDS[i], "sum"), 1);
        release_call(&h);
        release_call(&next);
    }
    assert_sound(fixture);
}

static void a_migration_neither_finishes_its_entity_nor_answers_updates(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    (void)handle_all(fixture, "");
    count_with(fixture, ",'version':2");
    migrate(fixture, "a");
    struct handed h = must_claim_call(fixture, 60000);
    assert_int_equal(finish_call(fixture, &h, "{\"finished\":true}", true), ERR_ANSWER_INVALID);
    assert_int_equal(finish_call(fixture, &h, "{\"results\":[{\"seq\":1,\"result\":1}]}", true),
                     ERR_ANSWER_INVALID);
    assert_int_equal(finish_call(fixture, &h, "{}", true), ERR_OK);
    assert_int_equal(entity_number(fixture, "a", "type_version"), 2);
    assert_int_equal(state_number(fixture, "a", "sum"), 1);
    release_call(&h);
}

/* --- attempts --- */

static void after_the_last_attempt_it_waits_until_somebody_retries_it(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'retry':{'max_attempts':2,'backoff_ms':100,'max_backoff_ms':100}");
    static const bool EXPIRES[] = {false, true};
    for (size_t i = 0; i < ARRAY_LEN(EXPIRES); i++) {
        const char *id = EXPIRES[i] ? "expires" : "fails";
        (void)must_send(fixture, id, NULL, 5);
        struct handed h = must_claim_call(fixture, 1000);
        assert_int_equal(finish_call(fixture, &h, NULL, true), ERR_OK);
        release_call(&h);
        fixture_pass_ms(fixture, 101);
        settle(fixture);
        h = must_claim_call(fixture, 1000);
        if (EXPIRES[i]) {
            fixture_pass_ms(fixture, 1001);
            settle(fixture);
        } else {
            assert_int_equal(finish_call(fixture, &h, NULL, true), ERR_OK);
            assert_int_equal(finish_call(fixture, &h, NULL, true), ERR_OK); /* again */
        }
        assert_entity_is(fixture, id, "blocked");
        assert_no_call(fixture);
        struct get_job_input dead = {h.id};
        assert_refuses(fixture, &UC_DROP_DEAD, &dead, ERR_ENTITY_CALL_KEPT);
        must_do(fixture, &UC_RETRY_DEAD, &dead);
        release_call(&h);
        assert_int_equal(handle_all(fixture, ""), 1);
        assert_int_equal(state_number(fixture, id, "sum"), 5);
    }
    assert_sound(fixture);
}

/* An error that is too long for the history of a job is kept there by its code and the beginning of
 * its message. */
static void a_long_error_is_kept_in_short(void **state)
{
    struct fixture *fixture = *state;
    static const char *const ERRORS[] = {"{\"code\":\"BIG\",\"message\":\"",
                                         "{\"code\":\"BIG\",\"detail\":\"", "{\"text\":\""};
    char words[9000];
    memset(words, 'x', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    count_with(fixture, ",'retry':{'max_attempts':9,'backoff_ms':1,'max_backoff_ms':1}");
    (void)must_send(fixture, "a", NULL, 1);
    for (size_t i = 0; i < ARRAY_LEN(ERRORS); i++) {
        struct handed h = must_claim_call(fixture, 60000);
        char error[9100];
        (void)snprintf(error, sizeof(error), "%s%s\"}", ERRORS[i], words);
        struct finish_job_input in = {.job_id = h.id,
                                      .lease_token = str_of(h.token),
                                      .failed = true,
                                      .error = str_of(error),
                                      .code = STR("BIG"),
                                      .retryable = true};
        must_do(fixture, &UC_FINISH_JOB, &in);
        fixture_pass_ms(fixture, 2);
        settle(fixture);
        struct get_job_input get = {h.id};
        json_t *shown = answer_of(fixture, &UC_GET_JOB, &get);
        const json_t *attempt = json_array_get(json_object_get(shown, "attempts"), i);
        const json_t *kept = json_object_get(attempt, "error");
        assert_true(json_is_true(json_object_get(kept, "truncated")));
        assert_string_equal(json_string_value(json_object_get(kept, "code")),
                            i < 2 ? "BIG" : "UNKNOWN");
        assert_true((json_string_length(json_object_get(kept, "message")) > 0) == (i == 0));
        json_decref(shown);
        release_call(&h);
    }
    assert_int_equal(handle_all(fixture, ""), 1);
}

/* --- answers --- */

static void only_the_same_answer_again_is_answered(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = must_claim_call(fixture, 60000);
    struct finish_job_input in = {.job_id = h.id, .lease_token = str_of(h.token)};
    struct finish_job_input stateful = in;
    stateful.state = STR("{}");
    assert_refuses(fixture, &UC_FINISH_JOB, &stateful, ERR_ANSWER_INVALID);
    assert_text_in(answer_of(fixture, &UC_FINISH_JOB, &in), "status", "completed");
    assert_text_in(answer_of(fixture, &UC_FINISH_JOB, &in), "status", "already_completed");
    assert_int_equal(finish_call(fixture, &h, "{\"state\":{}}", true), ERR_LEASE_LOST);
    assert_int_equal(finish_call(fixture, &h, NULL, true), ERR_LEASE_LOST);
    release_call(&h);
}

static void signals_beyond_the_size_of_a_call_wait_for_the_next(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    static char payload[200 * KIB];
    memset(payload, 'x', sizeof(payload));
    payload[0] = payload[sizeof(payload) - 1] = '"';
    struct signal_entity_input in = {
        .type = COUNTER, .id = STR("a"), .name = STR("add"), .payload = {payload, sizeof(payload)}};
    for (int i = 0; i < 3; i++)
        must_do(fixture, &UC_SIGNAL_ENTITY, &in);
    struct handed h = must_claim_call(fixture, 60000);
    assert_int_equal(json_array_size(json_object_get(h.input, "signals")), 2);
    assert_true(json_is_true(json_object_get(h.input, "more")));
    assert_int_equal(finish_call(fixture, &h, "{}", true), ERR_OK);
    release_call(&h);
    h = must_claim_call(fixture, 60000);
    assert_int_equal(json_array_size(json_object_get(h.input, "signals")), 1);
    assert_true(json_is_false(json_object_get(h.input, "more")));
    assert_int_equal(finish_call(fixture, &h, "{}", true), ERR_OK);
    release_call(&h);
    assert_no_call(fixture);
}

static void an_entity_has_so_many_timers_and_no_more(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    struct buf text;
    buf_init(&text, MIB);
    for (int round = 0; round < 3; round++) {
        (void)must_send(fixture, "a", NULL, 1);
        struct handed h = must_claim_call(fixture, 60000);
        buf_clear(&text);
        buf_printf(&text, "{\"cancel_timers\":[\"t0.0\"],\"set_timers\":[");
        for (int i = 0; i < ENTITY_TIMERS_MAX / 2; i++)
            buf_printf(&text, "%s{\"name\":\"t%d.%d\",\"in_ms\":60000}", i > 0 ? "," : "", round,
                       i + 1);
        buf_printf(&text, "]}");
        assert_true(buf_ok(&text));
        buf_put_char(&text, '\0');
        assert_int_equal(finish_call(fixture, &h, text.ptr, true),
                         round < 2 ? ERR_OK : ERR_ANSWER_INVALID);
        if (round == 2) { /* one goes for each that comes */
            assert_int_equal(finish_call(fixture, &h,
                                         "{\"cancel_timers\":[\"t0.1\"],\"set_timers\":["
                                         "{\"name\":\"t0.2\",\"in_ms\":5},"
                                         "{\"name\":\"new\",\"in_ms\":5,\"payload\":{\"n\":1}}]}",
                                         true),
                             ERR_OK);
        }
        release_call(&h);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entity_timers"), ENTITY_TIMERS_MAX);
    buf_release(&text);
}

static void what_is_too_long_in_an_answer_is_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const ANSWERS[][2] = {
        {"{\"state\":\"", "\"}"},
        {"{\"set_timers\":[{\"name\":\"t\",\"in_ms\":5,\"payload\":\"", "\"}]}"},
        {"{\"results\":[{\"seq\":1,\"result\":\"", "\"}]}"},
    };
    static char long_text[ENTITY_STATE_MAX + 1];
    static char answer[ENTITY_STATE_MAX + 100];
    memset(long_text, 'x', sizeof(long_text) - 1);
    count_with(fixture, "");
    struct signal_entity_input update = {.type = COUNTER,
                                         .id = STR("a"),
                                         .name = STR("add"),
                                         .payload = STR("1"),
                                         .dedup_key = STR("k")};
    must_do(fixture, &UC_UPDATE_ENTITY, &update);
    struct handed h = must_claim_call(fixture, 60000);
    for (size_t i = 0; i < ARRAY_LEN(ANSWERS); i++) {
        (void)snprintf(answer, sizeof(answer), "%s%s%s", ANSWERS[i][0], long_text, ANSWERS[i][1]);
        assert_int_equal(finish_call(fixture, &h, answer, true), ERR_ANSWER_INVALID);
    }
    assert_int_equal(finish_call(fixture, &h, "{\"results\":[{\"seq\":0,\"result\":1}]}", true),
                     ERR_ANSWER_INVALID);
    assert_int_equal(
        finish_call(fixture, &h, "{\"emit\":[{\"event\":\"seen\",\"payload\":{\"n\":1}}]}", true),
        ERR_OK);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events WHERE data LIKE '%\"n\":1%'"),
                     1);
    release_call(&h);
}

static void a_finished_entity_needs_no_migration(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "a", NULL, 1);
    struct handed h = must_claim_call(fixture, 60000);
    assert_int_equal(finish_call(fixture, &h, "{\"finished\":true}", true), ERR_OK);
    release_call(&h);
    count_with(fixture, ",'version':2");
    struct migrate_entity_input in = {COUNTER, STR("a"), 2};
    must_do(fixture, &UC_MIGRATE_ENTITY, &in);
    assert_no_call(fixture);
    (void)must_send(fixture, "a", NULL, 1); /* opens it again, on the newest version */
    assert_int_equal(handle_all(fixture, ""), 1);
    assert_int_equal(entity_number(fixture, "a", "type_version"), 2);
}

/* --- another queue --- */

/* Calls under way, calls of a migration, and calls of another version each go where their own rules
 * say. */
static void calls_move_to_the_queue_of_their_own_rules(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    static const char *const NAMES[] = {"waits", "runs", "idle", "migrates", "other"};
    (void)must_send(fixture, "idle", NULL, 1);
    (void)must_send(fixture, "migrates", NULL, 1);
    assert_int_equal(handle_all(fixture, ""), 2);
    (void)must_send(fixture, "runs", NULL, 1);
    struct handed running = must_claim_call(fixture, 60000);
    (void)must_send(fixture, "waits", NULL, 1);
    count_with(fixture, ",'version':2");
    migrate(fixture, "migrates");
    (void)must_send(fixture, "other", NULL, 1); /* of version 2 */
    assert_int_equal(
        put_entity_type(fixture, "{'queue':'elsewhere','handler':'count','version':1}"), ERR_OK);
    fixture_pass_ms(fixture, 10 * 1000);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs WHERE queue = 'elsewhere'"
                                      " AND finished_at IS NULL"),
                     2); /* of `waits` and `runs` */
    assert_int_equal(
        put_entity_type(fixture, "{'queue':'elsewhere','handler':'count','version':2}"), ERR_OK);
    fixture_pass_ms(fixture, 10 * 1000);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs WHERE queue = 'elsewhere'"
                                      " AND finished_at IS NULL"),
                     4); /* of the migration and `other` too */
    assert_int_equal(finish_call(fixture, &running, "{}", true), ERR_OK);
    release_call(&running);
    assert_int_equal(put_entity_type(fixture, "{'queue':'default','handler':'count','version':1}"),
                     ERR_OK);
    assert_int_equal(put_entity_type(fixture, "{'queue':'default','handler':'count','version':2}"),
                     ERR_OK);
    fixture_pass_ms(fixture, 10 * 1000);
    for (int turn = 0; turn < 3; turn++)
        settle(fixture);
    assert_true(handle_all(fixture, "") >= 3);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        assert_entity_is(fixture, NAMES[i], "idle");
    assert_sound(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_heartbeat_renews_the_lease_of_a_call_and_keeps_its_note),
        fixture_test(a_lost_lease_is_refused_and_recorded_once),
        fixture_test(a_released_call_is_anothers_and_releasing_it_again_is_answered),
        fixture_test(a_call_that_ends_without_an_answer_makes_way_for_a_migration),
        fixture_test(a_migration_neither_finishes_its_entity_nor_answers_updates),
        fixture_test(after_the_last_attempt_it_waits_until_somebody_retries_it),
        fixture_test(a_long_error_is_kept_in_short),
        fixture_test(only_the_same_answer_again_is_answered),
        fixture_test(signals_beyond_the_size_of_a_call_wait_for_the_next),
        fixture_test(an_entity_has_so_many_timers_and_no_more),
        fixture_test(what_is_too_long_in_an_answer_is_refused),
        fixture_test(a_finished_entity_needs_no_migration),
        fixture_test(calls_move_to_the_queue_of_their_own_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
