/* The table of errors, and the problem that carries one to the client. */
#include "support.h"

static const enum err FIRST_FAILURE = ERR_OK + 1;

static void codes_are_upper_snake_case(void **state)
{
    (void)state;
    for (enum err e = ERR_OK; e < ERR_COUNT; e++) {
        const char *code = err_code(e);
        assert_true(strlen(code) > 0);
        assert_int_equal(strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), strlen(code));
        assert_true(code[0] != '_');
    }
}

static void codes_and_titles_are_told_apart(void **state)
{
    (void)state;
    for (enum err a = ERR_OK; a < ERR_COUNT; a++) {
        assert_true(strlen(err_title(a)) > 0);
        for (enum err b = ERR_OK; b < a; b++) {
            assert_string_not_equal(err_code(a), err_code(b));
            assert_string_not_equal(err_title(a), err_title(b));
        }
    }
}

static void every_failure_has_a_failing_status(void **state)
{
    (void)state;
    assert_int_equal(err_http_status(ERR_OK), 200);
    for (enum err e = FIRST_FAILURE; e < ERR_COUNT; e++)
        assert_in_range(err_http_status(e), 400, 599);
}

/* What the transaction does with an error depends on its class alone, so the class must agree with
 * what the client is told: a request at fault is refused, and only the store or the machine fails
 * in a way that passes. */
static void classes_agree_with_statuses(void **state)
{
    (void)state;
    assert_int_equal(err_class(ERR_OK), ERR_CLASS_NONE);
    for (enum err e = FIRST_FAILURE; e < ERR_COUNT; e++) {
        assert_int_not_equal(err_class(e), ERR_CLASS_NONE);
        if (err_is_outage(e))
            assert_int_equal(err_http_status(e), 503);
        if (err_http_status(e) == 500)
            assert_false(err_is_refusal(e));
    }
    assert_false(err_is_outage(ERR_TOO_LARGE)); /* one operation's own fault */
    assert_true(err_is_refusal(ERR_OVERLOADED));
}

static void a_refusal_about_another_object_is_damage(void **state)
{
    (void)state;
    assert_int_equal(err_of_other(ERR_RUN_NOT_FOUND), ERR_DAMAGED);
    assert_int_equal(err_of_other(ERR_STORE_BUSY), ERR_STORE_BUSY);
    assert_int_equal(err_of_other(ERR_OK), ERR_OK);
}

static void a_refusal_after_a_change_is_a_bug(void **state)
{
    (void)state;
    assert_int_equal(err_after_change(ERR_STATUS_CONFLICT), ERR_INTERNAL);
    assert_int_equal(err_after_change(ERR_DAMAGED), ERR_DAMAGED);
    assert_int_equal(err_after_change(ERR_OK), ERR_OK);
}

/* What a client may rely on without knowing the code: wait and ask again after 408, 429, 500 and
 * 503; never after a status that says the request itself is at fault. */
static void statuses_agree_with_retryable(void **state)
{
    (void)state;
    for (enum err e = FIRST_FAILURE; e < ERR_COUNT; e++) {
        switch (err_http_status(e)) {
        case 408:
        case 429:
        case 503:
            assert_true(err_retryable(e));
            break;
        case 500: /* damage does not mend itself */
            assert_int_equal(err_retryable(e), e != ERR_DAMAGED);
            break;
        case 409:
            break;
        default:
            assert_false(err_retryable(e));
        }
    }
    assert_false(err_retryable(ERR_OK));
    assert_false(err_retryable(ERR_CONCURRENCY));
    assert_true(err_retryable(ERR_IDEM_IN_FLIGHT));
    assert_false(err_retryable(ERR_LEASE_LOST));
}

static void the_codes_of_the_contract_have_their_statuses(void **state)
{
    (void)state;
    static const struct {
        enum err err;
        const char *code;
        int http;
    } ROWS[] = {
        {ERR_IDEM_KEY_INVALID, "IDEMPOTENCY_KEY_INVALID", 400},
        {ERR_WORKFLOW_NOT_FOUND, "WORKFLOW_NOT_FOUND", 404},
        {ERR_IDEM_IN_FLIGHT, "IDEMPOTENCY_IN_FLIGHT", 409},
        {ERR_CONCURRENCY, "CONCURRENCY_ERROR", 409},
        {ERR_LEASE_LOST, "LEASE_LOST", 409},
        {ERR_IDEM_KEY_REUSED, "IDEMPOTENCY_KEY_REUSED", 422},
        {ERR_INPUT_INVALID, "INPUT_INVALID", 422},
        {ERR_INPUT_TOO_COMPLEX, "INPUT_TOO_COMPLEX", 422},
        {ERR_MAX_CONCURRENT_RUNS, "MAX_CONCURRENT_RUNS", 429},
        {ERR_NO_MEMORY, "OUT_OF_MEMORY", 503},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        assert_string_equal(err_code(ROWS[i].err), ROWS[i].code);
        assert_int_equal(err_http_status(ROWS[i].err), ROWS[i].http);
    }
}

static void ask_past_the_table(void)
{
    (void)err_code(ERR_COUNT);
}

static void an_error_past_the_table_stops_the_program(void **state)
{
    (void)state;
    assert_true(aborts(ask_past_the_table));
}

/* --- problems --- */

static void a_fresh_problem_is_none(void **state)
{
    (void)state;
    struct problem p;
    memset(&p, 0xFF, sizeof(p));
    problem_init(&p);
    assert_int_equal(p.err, ERR_OK);
    assert_string_equal(p.detail, "");
    assert_int_equal(p.number_count, 0);
    assert_int_equal(p.retry_after_s, 0);
    assert_int_equal(p.faults.len, 0);
    assert_true(buf_ok(&p.faults));
    problem_release(&p);
}

static void setting_a_problem_returns_its_error(void **state)
{
    (void)state;
    struct problem p;
    problem_init(&p);
    assert_int_equal(problem_set(&p, ERR_NOT_FOUND, "no %s with %d legs", "dog", 5), ERR_NOT_FOUND);
    assert_int_equal(p.err, ERR_NOT_FOUND);
    assert_string_equal(p.detail, "no dog with 5 legs");
    problem_release(&p);
}

/* The detail goes into JSON, whatever it quotes. */
static void a_detail_is_utf8_whatever_it_quotes(void **state)
{
    (void)state;
    struct problem p;
    problem_init(&p);
    for (size_t i = 0; i < ARRAY_LEN(BAD_UTF8); i++) {
        (void)problem_set(&p, ERR_BAD_REQUEST, "\xC3\xA9<%.*s>", STR_ARG(BAD_UTF8[i]));
        if (!str_is_utf8(str_of(p.detail)))
            fail_msg("kind %zu is passed on", i);
        assert_int_equal(strlen(p.detail), 4 + BAD_UTF8[i].len);
        assert_true(str_starts_with(str_of(p.detail), STR("\xC3\xA9<")));
        assert_true(str_ends_with(str_of(p.detail), STR(">")));
    }
    problem_release(&p);
}

/* Wherever it is cut. */
static void a_long_detail_stays_utf8(void **state)
{
    (void)state;
    static const char *const CHARACTERS[] = {"x", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    struct problem p;
    problem_init(&p);
    for (size_t i = 0; i < ARRAY_LEN(CHARACTERS); i++) {
        size_t size = strlen(CHARACTERS[i]);
        for (int before = 0; before < 4; before++) {
            char text[1024] = "";
            size_t len = 0;
            for (; len + size < sizeof(text); len += size)
                memcpy(text + len, CHARACTERS[i], size + 1);
            (void)problem_set(&p, ERR_BAD_REQUEST, "%.*s%s", before, "abc", text);
            size_t kept = strlen(p.detail);
            if (!str_is_utf8(str_of(p.detail)))
                fail_msg("characters of %zu bytes after %d", size, before);
            assert_in_range(kept, PROBLEM_DETAIL_MAX - size, PROBLEM_DETAIL_MAX - 1);
            assert_memory_equal(p.detail, "abc", (size_t)MIN(before, 3));
        }
    }
    problem_release(&p);
}

/* Even when it fits to the last byte, with a character of several bytes at the end. */
static void a_detail_that_just_fits_is_whole(void **state)
{
    (void)state;
    char text[PROBLEM_DETAIL_MAX];
    memset(text, 'x', sizeof(text));
    memcpy(text + sizeof(text) - 5, "\xF0\x9F\x98\x80", 5);
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, ERR_BAD_REQUEST, "%s", text);
    assert_string_equal(p.detail, text);
    problem_release(&p);
}

static void numbers_keep_their_order(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"current", "limit", "expected", "actual"};
    struct problem p;
    problem_init(&p);
    for (size_t i = 0; i < PROBLEM_NUMBERS_MAX; i++)
        problem_add_number(&p, NAMES[i], (int64_t)i - 1);
    assert_int_equal(p.number_count, PROBLEM_NUMBERS_MAX);
    for (size_t i = 0; i < PROBLEM_NUMBERS_MAX; i++) {
        assert_string_equal(p.numbers[i].name, NAMES[i]);
        assert_true(p.numbers[i].value == (int64_t)i - 1);
    }
    problem_release(&p);
}

static void clearing_a_problem_forgets_all_of_it(void **state)
{
    (void)state;
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, ERR_MAX_CONCURRENT_RUNS, "too many");
    problem_add_number(&p, "current", 3);
    p.retry_after_s = 5;
    buf_put(&p.faults, STR("[]"));
    problem_clear(&p);
    assert_int_equal(p.err, ERR_OK);
    assert_string_equal(p.detail, "");
    assert_int_equal(p.number_count, 0);
    assert_int_equal(p.retry_after_s, 0);
    assert_int_equal(p.faults.len, 0);
    problem_release(&p);
}

static void set_a_problem_that_is_none(void)
{
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, ERR_OK, "all is well");
}

static void add_a_number_too_many(void)
{
    struct problem p;
    problem_init(&p);
    for (size_t i = 0; i <= PROBLEM_NUMBERS_MAX; i++)
        problem_add_number(&p, "n", 0);
}

static void misuse_of_a_problem_stops_the_program(void **state)
{
    (void)state;
    assert_true(aborts(set_a_problem_that_is_none));
    assert_true(aborts(add_a_number_too_many));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_upper_snake_case),
        cmocka_unit_test(codes_and_titles_are_told_apart),
        cmocka_unit_test(every_failure_has_a_failing_status),
        cmocka_unit_test(statuses_agree_with_retryable),
        cmocka_unit_test(classes_agree_with_statuses),
        cmocka_unit_test(a_refusal_about_another_object_is_damage),
        cmocka_unit_test(a_refusal_after_a_change_is_a_bug),
        cmocka_unit_test(the_codes_of_the_contract_have_their_statuses),
        cmocka_unit_test(an_error_past_the_table_stops_the_program),
        cmocka_unit_test(a_fresh_problem_is_none),
        cmocka_unit_test(setting_a_problem_returns_its_error),
        cmocka_unit_test(a_detail_is_utf8_whatever_it_quotes),
        cmocka_unit_test(a_long_detail_stays_utf8),
        cmocka_unit_test(a_detail_that_just_fits_is_whole),
        cmocka_unit_test(numbers_keep_their_order),
        cmocka_unit_test(clearing_a_problem_forgets_all_of_it),
        cmocka_unit_test(misuse_of_a_problem_stops_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
