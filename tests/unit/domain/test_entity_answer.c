/* What the handler of an entity may answer, and what is said about the rest. */
#include "base/support.h"

#include "base/limits.h"
#include "domain/entity/entity_answer.h"

static const int64_t NOW = INT64_C(1700000000000);

struct reading {
    struct arena arena;
    struct problem p;
    struct json *json;
    struct entity_answer answer;
    enum err err;
};

static struct reading *read_answer(const char *text)
{
    struct reading *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    arena_init(&r->arena, MIB);
    problem_init(&r->p);
    r->json = json_value_of(str_of(text));
    r->err = entity_answer_parse(r->json, NOW, &r->arena, &r->p, &r->answer);
    return r;
}

static void drop(struct reading *r)
{
    json_free(r->json);
    problem_release(&r->p);
    arena_release(&r->arena);
    free(r);
}

static void nothing_at_all_changes_nothing(void **state)
{
    (void)state;
    struct reading *r = read_answer("{}");
    assert_int_equal(r->err, ERR_OK);
    assert_null(r->answer.state);
    assert_int_equal(r->answer.timer_count, 0);
    assert_false(r->answer.finished);
    drop(r);
}

static void everything_is_read(void **state)
{
    (void)state;
    struct reading *r = read_answer(
        "{\"state\":{\"a\":1},\"finished\":true,"
        "\"set_timers\":[{\"name\":\"x\",\"in_ms\":5,\"payload\":null},"
        "{\"name\":\"y\",\"at\":\"2024-01-01T00:00:00Z\"}],\"cancel_timers\":[\"z\"],"
        "\"emit\":[{\"event\":\"points.added\",\"payload\":{\"n\":1}}],"
        "\"start\":[{\"workflow_id\":\"w\",\"input\":2,\"labels\":{\"a\":\"b\"},"
        "\"idempotency_key\":\"k\"}],"
        "\"results\":[{\"seq\":1,\"result\":{\"ok\":true}},"
        "{\"seq\":2,\"error\":{\"code\":\"NO\",\"message\":\"not enough\"}},{\"seq\":3}]}");
    if (r->err != ERR_OK)
        fail_msg("%s", r->p.detail);
    const struct entity_answer *a = &r->answer;
    assert_true(a->finished);
    assert_int_equal(a->timer_count, 2);
    assert_int_equal(a->timers[0].due_at, NOW + 5);
    assert_int_equal(a->timers[1].due_at, INT64_C(1704067200000));
    assert_null(a->timers[1].payload);
    assert_int_equal(a->cancelled_count, 1);
    assert_true(str_is(a->cancelled[0], "z"));
    assert_true(str_is(a->emits[0].event, "points.added"));
    assert_true(str_is(a->starts[0].workflow_id, "w"));
    assert_true(str_is(a->starts[0].idempotency_key, "k"));
    assert_int_equal(a->result_count, 3);
    assert_false(a->results[0].rejected);
    assert_true(a->results[1].rejected);
    assert_null(a->results[2].outcome);
    drop(r);
}

static void a_fault_is_named_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } WRONG[] = {
        {"[]", "output: must be a JSON object"},
        {"{\"statue\":1}", "output: Unknown field \"statue\". Did you mean \"state\"?"},
        {"{\"set_timers\":{}}", "output: set_timers"},
        {"{\"set_timers\":[1]}", "output: set_timers[0]"},
        {"{\"set_timers\":[{\"name\":\"a\",\"in_ms\":0},{\"in_ms\":1}]}",
         "output: set_timers[1]: name"},
        {"{\"set_timers\":[{\"name\":\"a\",\"in_ms\":-1}]}", "output: set_timers[0]: in_ms"},
        {"{\"set_timers\":[{\"name\":\"a\",\"at\":\"tomorrow\"}]}", "output: set_timers[0]: at"},
        {"{\"set_timers\":[{\"name\":\"a\",\"at\":\"9000-01-01T00:00:00Z\"}]}",
         "output: set_timers[0]: at"},
        {"{\"cancel_timers\":[1]}", "output: cancel_timers[0]"},
        {"{\"emit\":[{\"event\":\"entity.handled\"}]}", "output: emit[0]: event"},
        {"{\"emit\":[{\"payload\":1}]}", "output: emit[0]: event"},
        {"{\"start\":[{\"workflow_id\":\"w\",\"idempotency_key\":\"\"}]}",
         "output: start[0]: idempotency_key"},
        {"{\"start\":[{\"workflow_id\":\"w\",\"idempotency_key\":\"a b\"}]}",
         "output: start[0]: idempotency_key"},
        {"{\"start\":[{\"workflow_id\":\"w\",\"labels\":{\"a\":1}}]}", "output: start[0]: labels"},
        {"{\"results\":[{\"seq\":0}]}", "output: results[0]: seq"},
        {"{\"results\":[{\"seq\":1,\"result\":1,\"error\":{\"code\":\"X\"}}]}",
         "output: results[0]: result"},
        {"{\"results\":[{\"seq\":1,\"error\":{}}]}", "output: results[0]: code"},
        {"{\"results\":[{\"seq\":1},{\"seq\":2},{\"seq\":1}]}", "output: results[2].seq"},
    };
    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
        struct reading *r = read_answer(WRONG[i].text);
        if (r->err != ERR_ANSWER_INVALID)
            fail_msg("%s was taken", WRONG[i].text);
        if (strncmp(r->p.detail, WRONG[i].says, strlen(WRONG[i].says)) != 0)
            fail_msg("%s: %s", WRONG[i].text, r->p.detail);
        drop(r);
    }
}

static void lists_are_bounded(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, MIB);
    buf_put(&text, STR("{\"emit\":["));
    for (int i = 0; i <= ENTITY_EMITS_MAX; i++)
        buf_put(&text, i == 0 ? STR("{\"event\":\"a\"}") : STR(",{\"event\":\"a\"}"));
    buf_put(&text, STR("]}"));
    struct reading *r = read_answer(text.ptr);
    assert_int_equal(r->err, ERR_ANSWER_INVALID);
    drop(r);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_at_all_changes_nothing),
        cmocka_unit_test(everything_is_read),
        cmocka_unit_test(a_fault_is_named_with_its_place),
        cmocka_unit_test(lists_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
