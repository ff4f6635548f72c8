/* Expressions that take long: a tenant's runs go on in slices, and everybody else is not kept
 * waiting. */
#include "engine/actions.h"

#include "core/txn/cpu_shares.h"

enum { A = 1, B = 2, MS = 1000 * 1000, NOW = 5000 };

/* --- the account --- */

static void a_tenant_within_its_share_is_not_put_off(void **state)
{
    (void)state;
    struct cpu_shares *s = cpu_shares_new();
    assert_non_null(s);
    for (int turn = 0; turn < 10; turn++) {
        cpu_shares_turn(s);
        cpu_shares_spend(s, A, NOW, CPU_STEPS_PER_TURN - 1, 3 * MS);
        assert_false(cpu_shares_used_up(s, A, NOW));
    }
    cpu_shares_free(s);
}

static void a_share_that_is_used_up_is_the_tenants_own(void **state)
{
    (void)state;
    struct cpu_shares *s = cpu_shares_new();
    assert_non_null(s);
    cpu_shares_turn(s);
    cpu_shares_spend(s, A, NOW, CPU_STEPS_PER_TURN / 2, MS);
    cpu_shares_spend(s, A, NOW, CPU_STEPS_PER_TURN / 2, MS);
    assert_true(cpu_shares_used_up(s, A, NOW));
    assert_false(cpu_shares_used_up(s, B, NOW));
    cpu_shares_free(s);
}

static void after_a_slice_the_tenant_pauses_as_long_as_the_factor_says(void **state)
{
    (void)state;
    struct cpu_shares *s = cpu_shares_new();
    assert_non_null(s);
    cpu_shares_turn(s);
    cpu_shares_spend(s, A, NOW, CPU_STEPS_PER_TURN, 20 * MS);
    int64_t end = NOW + 20 * (CPU_PAUSE_FACTOR + 1);
    cpu_shares_turn(s);
    assert_true(cpu_shares_used_up(s, A, end - 1));
    assert_false(cpu_shares_used_up(s, A, end));
    cpu_shares_free(s);
}

static void those_put_off_stand_behind_each_other(void **state)
{
    (void)state;
    struct cpu_shares *s = cpu_shares_new();
    assert_non_null(s);
    cpu_shares_turn(s);
    cpu_shares_spend(s, A, NOW, CPU_STEPS_PER_TURN, 20 * MS);
    int64_t gap = 20 * (CPU_PAUSE_FACTOR + 1);
    assert_int_equal(cpu_shares_put_off(s, A, NOW), NOW + gap);
    assert_int_equal(cpu_shares_put_off(s, A, NOW), NOW + 2 * gap);
    cpu_shares_resume(s, A);
    assert_int_equal(cpu_shares_put_off(s, A, NOW), NOW + 2 * gap);
    for (int i = 0; i < 10 * CPU_PUT_OFF_MS_MAX; i++)
        assert_true(cpu_shares_put_off(s, A, NOW) <= NOW + gap + CPU_PUT_OFF_MS_MAX);
    cpu_shares_free(s);
}

/* --- runs --- */

/* Some twenty thousand steps: a few of them are all that a tenant may spend in one turn. */
#define HEAVY                                                                                  \
    "${reduce(input, function(a, v) return reduce(input, function(b, w) return b + w end, a) " \
    "end, 0)}"
enum { ITEMS = 60, STEPS = 12 };

static struct uuid start_heavy(struct fixture *fixture, const char *workflow)
{
    struct buf input;
    buf_init(&input, MIB);
    buf_put_char(&input, '[');
    for (int i = 0; i < ITEMS; i++)
        buf_put(&input, i > 0 ? STR(",1") : STR("1"));
    buf_put(&input, STR("]"));
    buf_put_char(&input, '\0');
    assert_true(buf_ok(&input));
    struct uuid run = start_with(fixture, workflow, input.ptr);
    buf_release(&input);
    return run;
}

static void put_heavy(struct fixture *fixture, const char *workflow, int steps, const char *more)
{
    struct buf text;
    buf_init(&text, MIB);
    buf_put(&text, STR("{'steps':["));
    for (int i = 0; i < steps; i++)
        buf_printf(&text, "%s{'name':'s%d','type':'transform','needs':[],'output':'" HEAVY "'%s}",
                   i > 0 ? "," : "", i, more);
    buf_put(&text, STR("]}"));
    buf_put_char(&text, '\0');
    assert_true(buf_ok(&text));
    put_workflow(fixture, workflow, text.ptr);
    buf_release(&text);
}

/* Each look at the clock takes a millisecond, and the wall clock stands still: what is put off
 * stays so until the test lets time pass. */
static int64_t slow_mono_ns(void *ctx)
{
    return atomic_fetch_add(&((struct fixture *)ctx)->mono_ns, 1000000);
}

static void evaluate_slowly(struct fixture *fixture)
{
    fixture_stop(fixture);
    fixture->env.mono_ns = slow_mono_ns;
    fixture_start(fixture, 0);
}

static int64_t steps_over(struct fixture *fixture, struct uuid id)
{
    json_t *run = show_run(fixture, id);
    const json_t *steps = json_object_get(run, "steps");
    int64_t over = 0;
    for (size_t i = 0; i < json_array_size(steps); i++)
        over += strcmp(json_string_value(json_object_get(json_array_get(steps, i), "status")),
                       "succeeded") == 0;
    json_decref(run);
    return over;
}

static void settle_until_over(struct fixture *fixture, struct uuid run)
{
    for (int i = 0; i < 1000; i++) {
        json_t *shown = show_run(fixture, run);
        bool over = !json_is_null(json_object_get(shown, "finished_at"));
        json_decref(shown);
        if (over)
            return;
        fixture_pass_ms(fixture, 1000);
        settle(fixture);
    }
    fail_msg("the run does not come to an end");
}

static void a_run_of_many_expressions_goes_on_in_slices(void **state)
{
    struct fixture *fixture = *state;
    evaluate_slowly(fixture);
    put_heavy(fixture, "w", STEPS, "");
    struct uuid run = start_heavy(fixture, "w");
    int64_t at_once = in_file(fixture, "SELECT count(*) FROM jobs");
    assert_in_range(at_once, 1, STEPS - 1);
    settle_until_over(fixture, run);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(steps_over(fixture, run), STEPS);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs"), STEPS); /* each of them once */
    assert_int_equal(in_file(fixture, "SELECT active_runs FROM tenant_counters"), 0);
    assert_sound(fixture);
}

static void items_of_a_map_are_made_in_slices_too(void **state)
{
    struct fixture *fixture = *state;
    evaluate_slowly(fixture);
    put_heavy(fixture, "w", 1,
              ",'for_each':'list(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20)'");
    struct uuid run = start_heavy(fixture, "w");
    assert_in_range(in_file(fixture, "SELECT count(*) FROM jobs"), 1, 19);
    settle_until_over(fixture, run);
    assert_run_is(fixture, run, "succeeded");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs"), 20);
    assert_sound(fixture);
}

static void maps_of_many_runs_share_what_one_turn_may_make(void **state)
{
    enum { COUNT = 200, RUNS = 4 };
    struct fixture *fixture = *state;
    put_workflow(fixture, "w",
                 "{'steps':[{'name':'m','type':'task','handler':'h','for_each':'input'}]}");
    struct buf input;
    buf_init(&input, MIB);
    for (int i = 0; i < COUNT; i++)
        buf_put(&input, i > 0 ? STR(",1") : STR("[1"));
    buf_put(&input, STR("]"));
    buf_put_char(&input, '\0');
    struct json *json = json_value_of_tree(json_of(input.ptr));
    struct call calls[RUNS];
    for (int i = 0; i < RUNS; i++) {
        start_init(&calls[i], fixture, "w");
        calls[i].input.start.input = json;
        calls[i].input.start.input_text = (struct str){input.ptr, input.len - 1};
        submit(&calls[i]);
    }
    for (int i = 0; i < RUNS; i++) {
        wait_done(&calls[i]);
        assert_int_equal(calls[i].op.err, ERR_OK);
        call_release(&calls[i]);
    }
    settle(fixture);
    settle(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs"), RUNS * COUNT);
    assert_sound(fixture);
    json_free(json);
    buf_release(&input);
}

static void what_is_put_off_survives_a_restart(void **state)
{
    struct fixture *fixture = *state;
    put_heavy(fixture, "w", STEPS, "");
    struct uuid run = start_heavy(fixture, "w");
    fixture_stop(fixture);
    fixture_start(fixture, 0);
    settle_until_over(fixture, run);
    assert_int_equal(steps_over(fixture, run), STEPS);
    assert_sound(fixture);
}

static void a_run_that_is_put_off_can_be_cancelled(void **state)
{
    struct fixture *fixture = *state;
    evaluate_slowly(fixture);
    put_heavy(fixture, "w", STEPS, "");
    struct uuid run = start_heavy(fixture, "w");
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    int64_t jobs = in_file(fixture, "SELECT count(*) FROM jobs");
    fixture_pass_ms(fixture, 1000);
    settle(fixture);
    assert_run_is(fixture, run, "cancelled");
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs"), jobs);
    assert_sound(fixture);
}

/* Steps that evaluate something wait when the share is used up; all others begin. */
static const struct {
    const char *step; /* without its name and what it needs */
    bool waits;
} KINDS[] = {
    {"'type':'task','handler':'h'", false},
    {"'type':'task','handler':'h','input':{'n':1}", false},
    {"'type':'task','handler':'h','compensate':{'handler':'u','input':{'n':1}}", false},
    {"'type':'emit','event':'e','payload':{'n':1}", false},
    {"'type':'transform','output':{'n':1}", false},
    {"'type':'sleep','duration_ms':5", false},
    {"'type':'task','handler':'h','when':'true'", true},
    {"'type':'task','handler':'h','for_each':[1]", true},
    {"'type':'task','handler':'h','input':{'n':'${#input}'}", true},
    {"'type':'task','handler':'h','compensate':{'handler':'u','input':'${#input}'}", true},
    {"'type':'emit','event':'e','payload':'${#input}'", true},
    {"'type':'transform','output':'${#input}'", true},
    {"'type':'sleep','until':'${run.created_at}'", true},
    {"'type':'approval','prompt':'ok?'", true},
    {"'type':'http','request':{'method':'GET','url':'http://127.0.0.1:9/${#input}'}", true},
};

static void what_evaluates_nothing_does_not_wait_for_the_share(void **state)
{
    struct fixture *fixture = *state;
    evaluate_slowly(fixture);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        char definition[2048];
        (void)snprintf(definition, sizeof(definition),
                       "{'steps':[{'name':'h','type':'transform','output':'%s%s%s%s%s'},"
                       "{'name':'s','needs':['h'],%s}]}",
                       HEAVY, HEAVY, HEAVY, HEAVY, HEAVY, KINDS[i].step);
        put_workflow(fixture, "w", definition);
        struct uuid run = start_heavy(fixture, "w");
        json_t *shown = show_run(fixture, run);
        const char *status = json_string_value(of_step(shown, "s", "status"));
        if ((strcmp(status, "pending") == 0 && timers(fixture) == 1) != KINDS[i].waits)
            fail_msg("%s is %s", KINDS[i].step, status);
        bool over = !json_is_null(json_object_get(shown, "finished_at"));
        json_decref(shown);
        assert_int_equal(control(fixture, run, CONTROL_CANCEL), over ? ERR_RUN_IS_OVER : ERR_OK);
        fixture_pass_ms(fixture, 60 * 1000); /* the share is there again */
        settle(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenant_within_its_share_is_not_put_off),
        cmocka_unit_test(a_share_that_is_used_up_is_the_tenants_own),
        cmocka_unit_test(after_a_slice_the_tenant_pauses_as_long_as_the_factor_says),
        cmocka_unit_test(those_put_off_stand_behind_each_other),
        fixture_test(a_run_of_many_expressions_goes_on_in_slices),
        fixture_test(items_of_a_map_are_made_in_slices_too),
        fixture_test(maps_of_many_runs_share_what_one_turn_may_make),
        fixture_test(what_is_put_off_survives_a_restart),
        fixture_test(a_run_that_is_put_off_can_be_cancelled),
        fixture_test(what_evaluates_nothing_does_not_wait_for_the_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
