/* Limits: the verdict over all that apply to a start, and the keys they are counted under. JSON in
 * this file is written with ' for ". */
#include "base/support.h"

#include "base/crypto.h"
#include "base/limits.h"
#include "domain/admission/admission.h"

/* --- one limit --- */

static void a_limit_is_reached_when_no_more_fits(void **state)
{
    (void)state;
    static const struct {
        int64_t max, current, ahead;
        bool reached;
    } ROWS[] = {
        {-1, 0, 0, false},
        {-1, 1000000, 1000000, false},
        {0, 0, 0, true},
        {1, 0, 0, false},
        {1, 1, 0, true},
        {10, 9, 0, false},
        {10, 10, 0, true},
        {10, 11, 0, true}, /* it was lowered */
        {INT32_MAX, INT32_MAX - 1, 0, false},
        {INT32_MAX, INT32_MAX, 0, true},
        {10, 4, 5, false},
        {10, 4, 6, true}, /* free, but meant for others */
        {10, 0, 10, true},
        {10, 0, QUEUED_RUNS_MAX, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct limit_state limit = {ROWS[i].current, ROWS[i].max, ROWS[i].ahead, AT_LIMIT_REJECT};
        if (limit_is_reached(&limit) != ROWS[i].reached)
            fail_msg("row %zu", i);
    }
}

static void the_excess_is_what_must_end_before_one_more_fits(void **state)
{
    (void)state;
    static const struct {
        int64_t max, current, excess;
    } ROWS[] = {
        {-1, 0, 0}, {-1, 50, 0}, {0, 0, 1}, {0, 3, 4},     {5, 0, 0},
        {5, 4, 0},  {5, 5, 1},   {5, 6, 2}, {5, 105, 101},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct limit_state limit = {ROWS[i].current, ROWS[i].max, 0, AT_LIMIT_REJECT};
        assert_int_equal(limit_excess(&limit), ROWS[i].excess);
        limit.ahead = 7; /* ending a run makes no room for those who stand in line */
        assert_int_equal(limit_excess(&limit), ROWS[i].excess);
        /* So many fewer, and one more fits; a single one more, and it does not. */
        limit.ahead = 0;
        limit.current -= ROWS[i].excess;
        if (limit.current >= 0)
            assert_false(limit_is_reached(&limit));
        limit.current++;
        if (ROWS[i].excess > 0 && limit.current >= 0)
            assert_true(limit_is_reached(&limit));
    }
}

/* --- the verdict --- */

static void without_limits_everything_is_admitted(void **state)
{
    (void)state;
    assert_int_equal(admission_decide(NULL, 0).verdict, ADMISSION_ADMIT);
}

/* From the most careful to the least, as the contract puts them. */
static const enum admission_verdict BY_CARE[] = {ADMISSION_REJECT, ADMISSION_COALESCE,
                                                 ADMISSION_QUEUE, ADMISSION_CANCEL_OLDEST};

static enum admission_verdict alone(enum at_limit policy, int64_t max)
{
    switch (policy) {
    case AT_LIMIT_COALESCE:
        return ADMISSION_COALESCE;
    case AT_LIMIT_QUEUE:
        return ADMISSION_QUEUE;
    case AT_LIMIT_CANCEL_OLDEST:
        return max == 0 ? ADMISSION_REJECT : ADMISSION_CANCEL_OLDEST;
    case AT_LIMIT_REJECT:
    case AT_LIMIT_COUNT:
        break;
    }
    return ADMISSION_REJECT;
}

/* The same decision, made the other way round: from the verdict to the limit that asks for it. */
static struct admission expected_of(const struct limit_state *limits, size_t count)
{
    for (size_t care = 0; care < ARRAY_LEN(BY_CARE); care++) {
        for (size_t i = 0; i < count; i++) {
            const struct limit_state *l = &limits[i];
            bool fits = l->max < 0 || l->current + l->ahead + 1 <= l->max;
            if (!fits && alone(l->at_limit, l->max) == BY_CARE[care])
                return (struct admission){BY_CARE[care], i};
        }
    }
    return (struct admission){ADMISSION_ADMIT, 0};
}

static void check(const struct limit_state *limits, size_t count)
{
    struct admission expected = expected_of(limits, count);
    struct admission got = admission_decide(limits, count);
    if (got.verdict != expected.verdict ||
        (got.verdict != ADMISSION_ADMIT && got.by != expected.by))
        fail_msg("first limit %lld/%lld+%lld %s: verdict %d by %zu, wanted %d by %zu",
                 (long long)limits[0].current, (long long)limits[0].max, (long long)limits[0].ahead,
                 at_limit_name(limits[0].at_limit), (int)got.verdict, got.by, (int)expected.verdict,
                 expected.by);
}

enum { STATES_MAX = 512 };

/* Every policy at limits of none, 0, 1 and 3, below, at and above them, with and without others
 * ahead. */
static size_t every_state(struct limit_state out[static STATES_MAX])
{
    static const int64_t MAXES[] = {-1, 0, 1, 3};
    size_t n = 0;
    for (enum at_limit policy = 0; policy < AT_LIMIT_COUNT; policy++) {
        for (size_t m = 0; m < ARRAY_LEN(MAXES); m++) {
            for (int64_t current = 0; current <= 4; current++) {
                for (int64_t ahead = 0; ahead <= 2; ahead++)
                    out[n++] = (struct limit_state){current, MAXES[m], ahead, policy};
            }
        }
    }
    assert_true(n <= STATES_MAX);
    return n;
}

static void one_limit_decides_by_its_policy(void **state)
{
    (void)state;
    struct limit_state states[STATES_MAX];
    size_t n = every_state(states);
    for (size_t i = 0; i < n; i++)
        check(&states[i], 1);
}

static void of_two_limits_the_more_careful_one_that_is_reached_decides(void **state)
{
    (void)state;
    struct limit_state states[STATES_MAX];
    size_t n = every_state(states);
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            struct limit_state pair[] = {states[a], states[b]};
            check(pair, 2);
        }
    }
}

static void any_number_of_limits_is_one_verdict(void **state)
{
    (void)state;
    struct limit_state states[STATES_MAX];
    size_t n = every_state(states);
    struct rng r = {7};
    for (int round = 0; round < 100000; round++) {
        struct limit_state limits[LIMITS_PER_RUN_MAX + 1];
        size_t count = 1 + rng_below(&r, ARRAY_LEN(limits));
        for (size_t i = 0; i < count; i++)
            limits[i] = states[rng_below(&r, n)];
        check(limits, count);
    }
}

/* The order once more, spelt out. */
static void reject_beats_coalesce_beats_queue_beats_cancel_oldest(void **state)
{
    (void)state;
    static const enum at_limit ORDER[] = {AT_LIMIT_REJECT, AT_LIMIT_COALESCE, AT_LIMIT_QUEUE,
                                          AT_LIMIT_CANCEL_OLDEST};
    for (size_t a = 0; a < ARRAY_LEN(ORDER); a++) {
        for (size_t b = 0; b < ARRAY_LEN(ORDER); b++) {
            struct limit_state limits[] = {{1, 1, 0, ORDER[a]}, {1, 1, 0, ORDER[b]}};
            struct admission got = admission_decide(limits, 2);
            assert_int_equal(got.verdict, BY_CARE[MIN(a, b)]);
            assert_int_equal(got.by, a <= b ? 0 : 1); /* of equals the first */
        }
    }
}

static void a_limit_that_is_not_reached_has_no_say(void **state)
{
    (void)state;
    struct limit_state limits[] = {{0, 1, 0, AT_LIMIT_REJECT}, {1, 1, 0, AT_LIMIT_CANCEL_OLDEST}};
    assert_int_equal(admission_decide(limits, 2).verdict, ADMISSION_CANCEL_OLDEST);
    assert_int_equal(admission_decide(limits, 2).by, 1);
    limits[1].current = 0;
    assert_int_equal(admission_decide(limits, 2).verdict, ADMISSION_ADMIT);
}

static void nothing_can_be_cancelled_to_fit_under_a_limit_of_none(void **state)
{
    (void)state;
    struct limit_state limits[] = {{5, 5, 0, AT_LIMIT_CANCEL_OLDEST},
                                   {0, 0, 0, AT_LIMIT_CANCEL_OLDEST}};
    assert_int_equal(admission_decide(limits, 2).verdict, ADMISSION_REJECT);
    assert_int_equal(admission_decide(limits, 2).by, 1);
}

static void a_slot_that_a_queued_run_is_about_to_take_is_not_free(void **state)
{
    (void)state;
    struct limit_state limit = {2, 5, 2, AT_LIMIT_QUEUE};
    assert_int_equal(admission_decide(&limit, 1).verdict, ADMISSION_ADMIT);
    limit.ahead = 3;
    assert_int_equal(admission_decide(&limit, 1).verdict, ADMISSION_QUEUE);
}

static void policies_have_names(void **state)
{
    (void)state;
    for (enum at_limit p = 0; p < AT_LIMIT_COUNT; p++)
        assert_int_equal(at_limit_of(str_of(at_limit_name(p))), p);
    static const char *const NONE[] = {"", "Reject", "reject ", "que", "queued", "cancel-oldest"};
    for (size_t i = 0; i < ARRAY_LEN(NONE); i++)
        assert_int_equal(at_limit_of(str_of(NONE[i])), AT_LIMIT_COUNT);
    assert_int_equal(at_limit_of(STR_NONE), AT_LIMIT_COUNT);
}

/* --- paths --- */

static void a_path_is_input_and_names_behind_dots(void **state)
{
    (void)state;
    static const char *const GOOD[] = {
        "input",     "input.a",           "input.customer.id", "input.A-b_C.0",
        "input.0.1", "input.input.input", "input.-",           "input.9z",
    };
    static const char *const BAD[] = {
        "",          "inpu",      "inputs",     "Input",     "input.",       ".input",
        "input..a",  "input.a.",  "input .a",   "input. a",  "a.input",      "k",
        "state.a",   "input.a b", "input.a[0]", "input.a/b", "${input.a}",   "input.\xC3\xA9",
        "input.a+1", "input.a\n", "input.a\"b", "input/a",   "input.a == 1", "steps.a.output",
    };
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
        if (!limit_path_ok(str_of(GOOD[i])))
            fail_msg("refused: %s", GOOD[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        if (limit_path_ok(str_of(BAD[i])))
            fail_msg("taken: %s", BAD[i]);
    }
    assert_false(limit_path_ok(STR_NONE));
    assert_false(limit_path_ok((struct str){"input.a\0b", 9})); /* a NUL is no name's */
}

/* --- keys --- */

static json_t *json_of(const char *quoted_singly)
{
    char text[4096];
    size_t len = strlen(quoted_singly);
    assert_true(len < sizeof(text));
    for (size_t i = 0; i <= len; i++)
        text[i] = (char)(quoted_singly[i] == '\'' ? '"' : quoted_singly[i]);
    return parsed(text);
}

static void assert_key(const char *path, const char *input, const char *expected)
{
    struct json *json = json_value_of_tree(json_of(input));
    struct buf out;
    buf_init(&out, LIMIT_KEY_MAX); /* no key needs more */
    assert_true(limit_path_ok(str_of(path)));
    limit_key(str_of(path), json, &out);
    assert_true(buf_ok(&out));
    if (!str_is(buf_str(&out), expected))
        fail_msg("%s of %s is <%.*s>, not <%s>", path, input, STR_ARG(buf_str(&out)), expected);
    buf_release(&out);
    json_free(json);
}

static void text_names_the_limit_as_it_is(void **state)
{
    (void)state;
    assert_key("input.k", "{'k':'alice'}", "alice");
    assert_key("input.k", "{'k':' Alice '}", " Alice ");
    assert_key("input.k", "{'k':'\\u00e9\\n\\\\'}", "\xC3\xA9\n\\");
    assert_key("input", "'whole'", "whole");
}

static void any_other_value_is_named_by_its_canonical_json(void **state)
{
    (void)state;
    assert_key("input.k", "{'k':42}", "42");
    assert_key("input.k", "{'k':-7}", "-7");
    assert_key("input.k", "{'k':42.0}", "42");
    assert_key("input.k", "{'k':0.5}", "0.5");
    assert_key("input.k", "{'k':1e2}", "100");
    assert_key("input.k", "{'k':true}", "true");
    assert_key("input.k", "{'k':false}", "false");
    assert_key("input.k", "{'k':[]}", "[]");
    assert_key("input.k", "{'k':{}}", "{}");
    assert_key("input.k", "{'k':[1, 'a', null]}", "[1,\"a\",null]");
    /* The order of members is none of the key's business. */
    assert_key("input.k", "{'k':{'b':2, 'a':{'d':4, 'c':3}}}", "{\"a\":{\"c\":3,\"d\":4},\"b\":2}");
    assert_key("input", "{'b':1,'a':2}", "{\"a\":2,\"b\":1}");
}

static void a_number_and_the_text_that_shows_it_are_one_key(void **state)
{
    (void)state;
    assert_key("input.k", "{'k':42}", "42");
    assert_key("input.k", "{'k':'42'}", "42");
    assert_key("input.k", "{'k':'true'}", "true");
}

static void where_there_is_no_value_the_key_is_empty(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *input;
    } ROWS[] = {
        {"input.k", "{}"},
        {"input.k", "{'K':1}"},
        {"input.k", "{'k':null}"},
        {"input.k", "{'k':''}"}, /* empty text names nobody either */
        {"input", "null"},
        {"input", "''"},
        {"input.k", "null"},
        {"input.k", "5"},
        {"input.k", "'text'"},
        {"input.k", "[]"},
        {"input.k", "[1,2]"},
        {"input.a.b.c", "{'a':{}}"},
        {"input.a.b.c", "{'a':{'b':7}}"},
        {"input.a.b.c", "{'a':null}"},
        {"input.a.b", "{'a.b':1}"}, /* a dot leads on, always */
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        assert_key(ROWS[i].path, ROWS[i].input, "");
    struct buf out;
    buf_init(&out, LIMIT_KEY_MAX);
    limit_key(STR("input.k"), NULL, &out);
    limit_key(STR("input"), NULL, &out);
    assert_true(buf_ok(&out));
    assert_int_equal(out.len, 0);
    buf_release(&out);
}

static void a_path_leads_through_objects_and_arrays(void **state)
{
    (void)state;
    assert_key("input.a.b.c", "{'a':{'b':{'c':'deep'}}}", "deep");
    assert_key("input.list.0", "{'list':['x','y']}", "x");
    assert_key("input.list.1.id", "{'list':[{},{'id':9}]}", "9");
    assert_key("input.0", "['first']", "first");
    assert_key("input.list.2", "{'list':['x','y']}", "");
    assert_key("input.list.-1", "{'list':['x','y']}", "");
    assert_key("input.list.x", "{'list':['x','y']}", "");
    assert_key("input.list.1x", "{'list':['x','y']}", "");
    assert_key("input.list.99999999999999999999", "{'list':['x']}", "");
    assert_key("input.list.4294967296", "{'list':['x']}", "");
    /* In an object a number is a name like any other. */
    assert_key("input.0", "{'0':'zero'}", "zero");
    assert_key("input.01", "{'1':'one','01':'other'}", "other");
    /* A name that another begins with is not that other. */
    assert_key("input.ab", "{'a':1,'abc':2,'ab':3}", "3");
}

/* --- long keys --- */

static void key_of_text(struct str text, struct buf *out)
{
    struct json *input = json_value_of_tree(json_pack("{s:s#}", "k", text.ptr, text.len));
    assert_non_null(input);
    buf_init(out, LIMIT_KEY_MAX);
    limit_key(STR("input.k"), input, out);
    assert_true(buf_ok(out));
    json_free(input);
}

static void a_long_value_is_named_by_its_hash(void **state)
{
    (void)state;
    char text[3 * LIMIT_KEY_MAX];
    memset(text, 'x', sizeof(text));
    for (size_t len = LIMIT_KEY_MAX - 2; len <= LIMIT_KEY_MAX + 2; len++) {
        struct buf key;
        struct str value = {text, len};
        key_of_text(value, &key);
        if (len <= LIMIT_KEY_MAX) {
            assert_true(str_eq(buf_str(&key), value));
        } else {
            struct buf expected;
            buf_init(&expected, KIB);
            struct sha256 hash = sha256_of(value);
            buf_put(&expected, STR("sha256:"));
            buf_put_hex(&expected, hash.bytes, SHA256_LEN);
            assert_true(str_eq(buf_str(&key), buf_str(&expected)));
            buf_release(&expected);
        }
        buf_release(&key);
    }
}

static void long_values_that_differ_at_the_end_are_different_keys(void **state)
{
    (void)state;
    char text[3 * LIMIT_KEY_MAX];
    memset(text, 'x', sizeof(text));
    struct buf a;
    struct buf b;
    struct buf same;
    key_of_text((struct str){text, sizeof(text)}, &a);
    key_of_text((struct str){text, sizeof(text)}, &same);
    text[sizeof(text) - 1] = 'y';
    key_of_text((struct str){text, sizeof(text)}, &b);
    assert_true(str_eq(buf_str(&a), buf_str(&same)));
    assert_false(str_eq(buf_str(&a), buf_str(&b)));
    buf_release(&a);
    buf_release(&b);
    buf_release(&same);
}

static void a_long_object_is_hashed_in_its_canonical_form(void **state)
{
    (void)state;
    char filler[LIMIT_KEY_MAX + 1];
    memset(filler, 'f', sizeof(filler));
    struct json *ab =
        json_value_of_tree(json_pack("{s:{s:i, s:s#}}", "k", "a", 1, "b", filler, sizeof(filler)));
    struct json *ba =
        json_value_of_tree(json_pack("{s:{s:s#, s:i}}", "k", "b", filler, sizeof(filler), "a", 1));
    struct buf keys[2];
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        buf_init(&keys[i], LIMIT_KEY_MAX);
        limit_key(STR("input.k"), i == 0 ? ab : ba, &keys[i]);
        assert_true(buf_ok(&keys[i]));
        assert_true(str_starts_with(buf_str(&keys[i]), STR("sha256:")));
    }
    assert_true(str_eq(buf_str(&keys[0]), buf_str(&keys[1])));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        buf_release(&keys[i]);
    json_free(ab);
    json_free(ba);
}

static void a_key_that_does_not_fit_is_said_to_have_failed(void **state)
{
    (void)state;
    struct json *input = json_value_of_tree(json_of("{'k':'twelve bytes'}"));
    struct buf out;
    buf_init(&out, 11);
    limit_key(STR("input.k"), input, &out);
    assert_false(buf_ok(&out));
    buf_release(&out);
    json_free(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_is_reached_when_no_more_fits),
        cmocka_unit_test(the_excess_is_what_must_end_before_one_more_fits),
        cmocka_unit_test(without_limits_everything_is_admitted),
        cmocka_unit_test(one_limit_decides_by_its_policy),
        cmocka_unit_test(of_two_limits_the_more_careful_one_that_is_reached_decides),
        cmocka_unit_test(any_number_of_limits_is_one_verdict),
        cmocka_unit_test(reject_beats_coalesce_beats_queue_beats_cancel_oldest),
        cmocka_unit_test(a_limit_that_is_not_reached_has_no_say),
        cmocka_unit_test(nothing_can_be_cancelled_to_fit_under_a_limit_of_none),
        cmocka_unit_test(a_slot_that_a_queued_run_is_about_to_take_is_not_free),
        cmocka_unit_test(policies_have_names),
        cmocka_unit_test(a_path_is_input_and_names_behind_dots),
        cmocka_unit_test(text_names_the_limit_as_it_is),
        cmocka_unit_test(any_other_value_is_named_by_its_canonical_json),
        cmocka_unit_test(a_number_and_the_text_that_shows_it_are_one_key),
        cmocka_unit_test(where_there_is_no_value_the_key_is_empty),
        cmocka_unit_test(a_path_leads_through_objects_and_arrays),
        cmocka_unit_test(a_long_value_is_named_by_its_hash),
        cmocka_unit_test(long_values_that_differ_at_the_end_are_different_keys),
        cmocka_unit_test(a_long_object_is_hashed_in_its_canonical_form),
        cmocka_unit_test(a_key_that_does_not_fit_is_said_to_have_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
