/* Asking an entity and waiting for what its handler makes of it. */
#include "engine/entity_actions.h"

struct asking {
    struct call call;
    struct signal_entity_input in;
};

static void ask_init(struct asking *a, struct fixture *fixture, const char *key, int64_t wait_ms)
{
    call_init(&a->call, fixture, &UC_UPDATE_ENTITY);
    a->in = (struct signal_entity_input){.type = COUNTER,
                                         .id = STR("a"),
                                         .name = STR("spend"),
                                         .payload = STR("5"),
                                         .dedup_key = str_of(key)};
    struct json *json = json_value_of_tree(json_integer(5));
    assert_int_equal(dedup_request(a->in.name, json, &a->call.op.problem, &a->in.request), ERR_OK);
    json_free(json);
    a->call.op.input = &a->in;
    a->call.op.wait_ms = wait_ms;
}

/* Members of the answer. */
static void assert_says(const struct asking *a, int http_status, const char *status, bool duplicate)
{
    assert_int_equal(a->call.op.err, ERR_OK);
    json_t *body = parsed_str(buf_str(&a->call.op.answer.body));
    assert_int_equal(a->call.op.answer.status, http_status);
    assert_string_equal(json_string_value(json_object_get(body, "status")), status);
    assert_int_equal(json_is_true(json_object_get(body, "duplicate")), duplicate);
    json_decref(body);
}

static void ask_once(struct fixture *fixture, const char *key, int http_status, const char *status,
                     bool duplicate)
{
    struct asking a;
    ask_init(&a, fixture, key, 0);
    must_perform(&a.call);
    assert_says(&a, http_status, status, duplicate);
    call_release(&a.call);
}

static void handle_with(struct fixture *fixture, const char *output)
{
    struct handed h = claim_call(fixture, 30000);
    assert_non_null(h.job);
    assert_true(json_is_true(
        json_object_get(json_array_get(json_object_get(h.input, "signals"), 0), "update")));
    assert_int_equal(finish_call(fixture, &h, output, true), ERR_OK);
    json_decref(h.job);
}

static void an_update_waits_for_its_result(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    struct asking a;
    struct asking same;
    ask_init(&a, fixture, "k1", 10000);
    ask_init(&same, fixture, "k1", 10000);
    submit(&a.call);
    submit(&same.call);
    settle(fixture);
    assert_false(a.call.done);
    assert_false(same.call.done);
    handle_with(fixture, "{\"state\":1,\"results\":[{\"seq\":1,\"result\":{\"left\":7}}]}");
    wait_done(&a.call);
    wait_done(&same.call);
    assert_says(&a, 200, "completed", false);
    assert_says(&same, 200, "completed", true);
    call_release(&a.call);
    call_release(&same.call);
    ask_once(fixture, "k1", 200, "completed", true);
    assert_null(claim_call(fixture, 1000).job); /* asked once, whoever repeats it */
}

static void a_rejection_is_an_outcome_too(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    ask_once(fixture, "k1", 202, "waiting", false);
    handle_with(fixture, "{\"results\":[{\"seq\":1,\"error\":{\"code\":\"TOO_FEW\"}}]}");
    fixture_stop(fixture);
    fixture_start(fixture, 0);
    ask_once(fixture, "k1", 200, "rejected", true);
}

static void one_that_the_handler_says_nothing_about_is_done(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    ask_once(fixture, "k1", 202, "waiting", false);
    handle_with(fixture, "{\"state\":1}");
    ask_once(fixture, "k1", 200, "completed", true);
}

static void a_waiter_that_gives_up_gets_an_answer_and_can_ask_again(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    struct asking a;
    ask_init(&a, fixture, "k1", 1000);
    submit(&a.call);
    settle(fixture);
    fixture_pass_ms(fixture, 1001);
    wait_done(&a.call);
    assert_says(&a, 202, "waiting", false);
    call_release(&a.call);
    handle_with(fixture, "{\"results\":[{\"seq\":1,\"result\":1}]}");
    ask_once(fixture, "k1", 200, "completed", true);
}

static void a_replay_by_idempotency_key_waits_for_the_outcome_too(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    struct asking a;
    ask_init(&a, fixture, "k1", 0);
    call_key(&a.call, "i1", "{}");
    must_perform(&a.call);
    assert_says(&a, 202, "waiting", false);
    call_release(&a.call);
    ask_init(&a, fixture, "k1", 10000);
    call_key(&a.call, "i1", "{}");
    submit(&a.call);
    settle(fixture);
    assert_false(a.call.done);
    handle_with(fixture, "{\"results\":[{\"seq\":1,\"result\":1}]}");
    wait_done(&a.call);
    assert_true(a.call.op.answer.replayed);
    assert_says(&a, 200, "completed", false);
    call_release(&a.call);
    ask_init(&a, fixture, "k1", 0); /* and who does not want to wait hears of it as well */
    call_key(&a.call, "i1", "{}");
    must_perform(&a.call);
    assert_says(&a, 200, "completed", false);
    call_release(&a.call);
}

static void a_waiter_for_a_deleted_entity_gets_an_answer(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    struct asking a;
    ask_init(&a, fixture, "k1", 10000);
    submit(&a.call);
    settle(fixture);
    struct call c;
    call_init(&c, fixture, &UC_DELETE_ENTITY);
    struct entity_input in = {COUNTER, STR("a")};
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
    wait_done(&a.call);
    assert_int_equal(a.call.op.err, ERR_ENTITY_NOT_FOUND);
    call_release(&a.call);
}

static void assert_is_told(struct asking *a, int64_t seq, const char *result)
{
    wait_done(&a->call);
    assert_says(a, 200, "completed", false);
    json_t *body = parsed_str(buf_str(&a->call.op.answer.body));
    assert_int_equal(json_integer_value(json_object_get(body, "seq")), seq);
    assert_string_equal(json_string_value(json_object_get(body, "result")), result);
    json_decref(body);
    call_release(&a->call);
}

static void a_waiter_gets_the_outcome_although_the_key_has_left_the_window(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'dedup_max_keys':1");
    struct asking a;
    ask_init(&a, fixture, "k1", 10000);
    submit(&a.call);
    settle(fixture);
    ask_once(fixture, "k2", 202, "waiting", false);
    handle_with(fixture, "{\"results\":[{\"seq\":1,\"result\":\"yes\"}]}");
    assert_is_told(&a, 1, "yes");
}

static void a_waiter_gets_no_outcome_of_a_later_update_with_the_same_key(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'dedup_max_keys':1,'max_batch':1");
    struct asking first;
    struct asking second;
    ask_init(&first, fixture, "k1", 10000);
    submit(&first.call);
    settle(fixture);
    ask_once(fixture, "k2", 202, "waiting", false);
    ask_init(&second, fixture, "k1", 10000); /* not known any more: asked anew */
    submit(&second.call);
    settle(fixture);
    handle_with(fixture, "{\"results\":[{\"seq\":1,\"result\":\"first\"}]}");
    handle_with(fixture, "{}");
    handle_with(fixture, "{\"results\":[{\"seq\":3,\"result\":\"second\"}]}");
    assert_is_told(&first, 1, "first");
    assert_is_told(&second, 3, "second");
}

/* Deleted and made anew in one commit: who is woken by it finds one with the same name and key. */
static void a_waiter_gets_no_outcome_of_another_entity_with_the_same_name(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    struct asking first;
    struct asking second;
    ask_init(&first, fixture, "k1", 10000);
    ask_init(&second, fixture, "k1", 10000);
    submit(&first.call);
    settle(fixture);
    struct call c;
    call_init(&c, fixture, &UC_DELETE_ENTITY);
    struct entity_input in = {COUNTER, STR("a")};
    c.op.input = &in;
    submit(&c);
    submit(&second.call);
    wait_done(&c);
    call_release(&c);
    settle(fixture);
    handle_with(fixture, "{\"results\":[{\"seq\":1,\"result\":\"second\"}]}");
    wait_done(&first.call);
    assert_int_equal(first.call.op.err, ERR_ENTITY_NOT_FOUND);
    call_release(&first.call);
    assert_is_told(&second, 1, "second");
}

/* Else those who wait for one entity would take all the room that there is for reads. */
static void only_those_whose_update_is_decided_ask_again(void **state)
{
    struct fixture *fixture = *state;
    enum { MANY = READS_WAITING_MAX + 1 };
    static struct asking many[MANY];
    static char keys[MANY][8];
    count_with(fixture, ",'max_batch':1");
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        ask_init(&many[i], fixture, keys[i], 10000);
        submit(&many[i].call);
    }
    settle(fixture);
    handle_with(fixture, "{\"results\":[{\"seq\":1,\"result\":\"yes\"}]}");
    assert_int_equal(entity_number(fixture, "a", "consumed_seq"), 1); /* there is room to look */
    assert_is_told(&many[0], 1, "yes");
    fixture_stop(fixture); /* the others are told that they wait still */
    for (int i = 1; i < MANY; i++) {
        assert_says(&many[i], 202, "waiting", false);
        call_release(&many[i].call);
    }
}

static void a_signals_key_is_not_an_updates(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    struct asking a;
    ask_init(&a, fixture, "k1", 0);
    a.call.op.use_case = &UC_SIGNAL_ENTITY;
    must_perform(&a.call);
    call_release(&a.call);
    ask_init(&a, fixture, "k1", 0);
    assert_int_equal(perform(&a.call), ERR_IDEM_KEY_REUSED);
    call_release(&a.call);
}

static void an_outcome_goes_with_its_key(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, ",'dedup_max_keys':2");
    ask_once(fixture, "k1", 202, "waiting", false);
    handle_with(fixture, "{}");
    ask_once(fixture, "k2", 202, "waiting", false);
    ask_once(fixture, "k3", 202, "waiting", false);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entity_updates"), 2);
    ask_once(fixture, "k1", 202, "waiting", false); /* not known any more: asked anew */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(an_update_waits_for_its_result),
        fixture_test(a_rejection_is_an_outcome_too),
        fixture_test(one_that_the_handler_says_nothing_about_is_done),
        fixture_test(a_waiter_that_gives_up_gets_an_answer_and_can_ask_again),
        fixture_test(a_replay_by_idempotency_key_waits_for_the_outcome_too),
        fixture_test(a_waiter_for_a_deleted_entity_gets_an_answer),
        fixture_test(a_waiter_gets_the_outcome_although_the_key_has_left_the_window),
        fixture_test(a_waiter_gets_no_outcome_of_a_later_update_with_the_same_key),
        fixture_test(a_waiter_gets_no_outcome_of_another_entity_with_the_same_name),
        fixture_test(only_those_whose_update_is_decided_ask_again),
        fixture_test(a_signals_key_is_not_an_updates),
        fixture_test(an_outcome_goes_with_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
