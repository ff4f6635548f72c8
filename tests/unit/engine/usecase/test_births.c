/* The answer of a start is not kept but rendered again: it stays the same, byte for byte, whatever
 * becomes of the run, and after the run is gone. */
#include "engine/actions.h"

#define STEP(name, type, rest) "{'name':'" name "','type':'" type "'" rest "}"
#define TASK STEP("t", "task", ",'handler':'h'")

struct birth {
    const char *name;
    const char *definition;
    int64_t start_in_ms; /* 0: at once */
    bool rendered;       /* its answer is not kept */
};

static const struct birth BIRTHS[] = {
    {"task", "{'steps':[" TASK "]}", 0, true},
    {"deadline", "{'timeout_s':60,'steps':[" TASK "]}", 0, true},
    {"delayed", "{'steps':[" TASK "]}", 5000, true},
    {"two",
     "{'steps':[" STEP("a", "task", ",'handler':'h','needs':[]") "," STEP(
         "b", "task",
         ",'handler':'h','needs':[]") "," STEP("c", "task",
                                               ",'handler':'h','needs':['a','b']") "]}",
     0, true},
    {"sleep", "{'steps':[" STEP("s", "sleep", ",'duration_ms':1000") "]}", 0, true},
    {"signal", "{'steps':[" STEP("s", "wait_signal", ",'signal':'x','timeout_ms':500") "]}", 0,
     true},
    {"approval", "{'steps':[" STEP("s", "approval", ",'prompt':'go?'") "]}", 0, true},
    {"asking", "{'steps':[" STEP("t", "task", ",'handler':'h','requires_approval':true") "]}", 0,
     true},
    {"skipped", "{'steps':[" STEP("s", "task", ",'handler':'h','when':'1 > 2'") "," TASK "]}", 0,
     true},
    {"over", "{'steps':[" STEP("x", "transform", ",'output':1") "]}", 0, false},
    {"further", "{'steps':[" STEP("x", "transform", ",'output':1") "," TASK "]}", 0, false},
    {"map", "{'steps':[" STEP("m", "task", ",'handler':'h','for_each':[1,2]") "]}", 0, false},
    {"child", "{'steps':[" STEP("c", "workflow", ",'workflow_id':'task'") "]}", 0, false},
};

static void birth_init(struct call *c, struct fixture *fixture, const struct birth *b,
                       int64_t begun_ms)
{
    start_init(c, fixture, b->name);
    c->input.start.labels = STR("{\"of\":\"me\"}");
    c->input.start.priority = 3;
    c->input.start.input_text = STR("{\"a\":1}");
    if (b->start_in_ms > 0)
        c->input.start.start_at = begun_ms + b->start_in_ms;
    call_key(c, b->name, "{}");
}

struct answers {
    int64_t begun_ms;
    char *texts[ARRAY_LEN(BIRTHS)];
};

static void begin_all(struct fixture *fixture, struct answers *a)
{
    a->begun_ms = fixture_now_ms(fixture);
    for (size_t i = 0; i < ARRAY_LEN(BIRTHS); i++) {
        put_workflow(fixture, BIRTHS[i].name, BIRTHS[i].definition);
        struct call c;
        birth_init(&c, fixture, &BIRTHS[i], a->begun_ms);
        must_perform(&c);
        assert_false(c.op.answer.replayed);
        struct str kept = answer_to_keep(&c.op.answer);
        a->texts[i] = strndup(kept.ptr, kept.len);
        char sql[100];
        (void)snprintf(sql, sizeof(sql),
                       "SELECT born IS NOT NULL FROM idempotency WHERE key = '%s'", BIRTHS[i].name);
        assert_int_equal(in_file(fixture, sql), BIRTHS[i].rendered);
        call_release(&c);
    }
}

static void release_all(struct answers *a)
{
    for (size_t i = 0; i < ARRAY_LEN(BIRTHS); i++)
        free(a->texts[i]);
}

/* False: there is nothing to do. */
static bool work_any(struct fixture *fixture)
{
    struct held h;
    if (!claim_one(fixture, 30000, &h))
        return false;
    assert_int_equal(complete(fixture, &h), ERR_OK);
    return true;
}

/* By the writer, and by the loop's own reader. */
static void check_all(struct fixture *fixture, const struct answers *a)
{
    for (size_t i = 0; i < ARRAY_LEN(BIRTHS); i++) {
        for (int by_loop = 0; by_loop < 2; by_loop++) {
            struct call c;
            birth_init(&c, fixture, &BIRTHS[i], a->begun_ms);
            if (by_loop == 1)
                assert_true(engine_replay(fixture->engine, &c.op));
            must_perform(&c);
            assert_true(c.op.answer.replayed);
            struct str again = answer_to_keep(&c.op.answer);
            if (!str_eq(again, str_of(a->texts[i])))
                fail_msg("%s: %.*s, first %s", BIRTHS[i].name, STR_ARG(again), a->texts[i]);
            call_release(&c);
        }
    }
    fixture_round(fixture);
}

static void the_first_answer_comes_again_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct answers a;
    begin_all(fixture, &a);
    check_all(fixture, &a);
    release_all(&a);
}

static void the_first_answer_comes_again_whatever_became_of_the_run(void **state)
{
    struct fixture *fixture = *state;
    struct answers a;
    begin_all(fixture, &a);
    while (work_any(fixture))
        check_all(fixture, &a);
    fixture_pass_ms(fixture, 10000); /* what sleeps or waits goes on, what is delayed starts */
    settle(fixture);
    check_all(fixture, &a);
    fixture_pass_ms(fixture, 100000); /* and what has a deadline ends */
    settle(fixture);
    check_all(fixture, &a);
    fixture_stop(fixture);
    fixture_start(fixture, 0);
    check_all(fixture, &a);
    release_all(&a);
}

static void the_answer_of_a_queued_start_comes_again_when_it_runs(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'max_concurrent_runs':1,'at_limit':'queue'}");
    put_workflow(fixture, "task", BIRTHS[0].definition);
    (void)start(fixture, "task");
    struct call c;
    birth_init(&c, fixture, &BIRTHS[0], 0);
    must_perform(&c);
    struct str kept = answer_to_keep(&c.op.answer);
    char *first = strndup(kept.ptr, kept.len);
    assert_non_null(strstr(first, "\"queued\""));
    call_release(&c);
    for (int i = 0; i < 3; i++) {
        birth_init(&c, fixture, &BIRTHS[0], 0);
        must_perform(&c);
        assert_true(str_eq(answer_to_keep(&c.op.answer), str_of(first)));
        call_release(&c);
        (void)work_any(fixture);
    }
    free(first);
}

static void the_answer_is_kept_when_the_run_is_removed(void **state)
{
    enum { DAY_S = 24 * 3600 };
    struct fixture *fixture = *state;
    struct answers a;
    begin_all(fixture, &a);
    while (work_any(fixture)) {
    }
    put_tenant(fixture, "{'run_retention_s':86400}");
    fixture_pass_ms(fixture, 2 * INT64_C(1000) * DAY_S);
    for (int i = 0; i < 3; i++) {
        fixture_pass_ms(fixture, RETENTION_PAUSE_MS + 2 * INT64_C(1000) * DAY_S);
        settle(fixture);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs WHERE workflow_id = 'task'"), 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM idempotency WHERE born IS NOT NULL AND"
                                      " run_id NOT IN (SELECT id FROM runs)"),
                     0);
    check_all(fixture, &a);
    release_all(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(the_first_answer_comes_again_at_once),
        fixture_test(the_first_answer_comes_again_whatever_became_of_the_run),
        fixture_test(the_answer_of_a_queued_start_comes_again_when_it_runs),
        fixture_test(the_answer_is_kept_when_the_run_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
