/* Idempotency: how keys are written, what makes two requests the same, and when a key ends. */
#include "base/support.h"

#include "base/limits.h"
#include "domain/idempotency.h"

/* --- keys --- */

struct parsed_definition {
    struct arena arena;
    struct problem problem;
    struct str key;
    enum err err;
};

static void parse(struct parsed_definition *t, struct str header)
{
    arena_init(&t->arena, 64 * KIB);
    problem_init(&t->problem);
    t->key = STR("untouched");
    t->err = idem_key_parse(header, &t->arena, &t->problem, &t->key);
}

static void end(struct parsed_definition *t)
{
    arena_release(&t->arena);
    problem_release(&t->problem);
}

static void names(const char *header, const char *key)
{
    struct parsed_definition t;
    parse(&t, str_of(header));
    if (t.err != ERR_OK)
        fail_msg("<%s>: %s", header, t.problem.detail);
    assert_str(t.key, key);
    end(&t);
}

static void is_no_key_str(struct str header)
{
    struct parsed_definition t;
    parse(&t, header);
    if (t.err != ERR_IDEM_KEY_INVALID)
        fail_msg("taken: <%.*s>", STR_ARG(header));
    assert_str(t.key, "untouched");
    assert_true(strlen(t.problem.detail) > 0);
    end(&t);
}

static void is_no_key(const char *header)
{
    is_no_key_str(str_of(header));
}

static void a_bare_key_is_taken_as_it_is(void **state)
{
    (void)state;
    names("k", "k");
    names("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324");
    names("a;b=c", "a;b=c");
    names("a\"b", "a\"b");
    names("a\\b", "a\\b");
    names("!~", "!~");
}

static void a_quoted_key_names_the_same_as_the_bare_one(void **state)
{
    (void)state;
    names("\"k\"", "k");
    names("\"8e03978e-40d5\"", "8e03978e-40d5");
    names("\"a;b=c\"", "a;b=c");
}

static void escapes_are_undone(void **state)
{
    (void)state;
    names("\"a\\\"b\"", "a\"b");
    names("\"a\\\\b\"", "a\\b");
    names("\"\\\\\\\"\"", "\\\"");
    is_no_key("\"a\\nb\"");
    is_no_key("\"a\\");
    is_no_key("\"a\\\"");
}

static void parameters_do_not_count(void **state)
{
    (void)state;
    static const char *const HEADERS[] = {
        "\"k\";a",          "\"k\";a=1",     "\"k\"; a=1;  b=2",      "\"k\";a=\"x;y\"",
        "\"k\";*a.b-c_d=x", "\"k\";a=?1;b",  "\"k\";a=:aGk=:",        "\"k\";a=-1.5",
        "\"k\";a=\"\\\"\"", "\"k\";a=tok/e", "\"k\";a=1;a=2;a=\"3\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(HEADERS); i++)
        names(HEADERS[i], "k");
}

static void text_behind_the_quote_must_be_parameters(void **state)
{
    (void)state;
    static const char *const HEADERS[] = {
        "\"k\"x",     "\"k\" x",    "\"k\";",     "\"k\";=1",    "\"k\";A=1",
        "\"k\";1a",   "\"k\";a=",   "\"k\";a=(",  "\"k\",\"l\"", "\"k\" ;a",
        "\"k\";a=\"", "\"k\"\"l\"", "\"k\";a=1,", "\"k\";a b",
    };
    for (size_t i = 0; i < ARRAY_LEN(HEADERS); i++)
        is_no_key(HEADERS[i]);
}

static void spaces_around_the_header_do_not_count(void **state)
{
    (void)state;
    names("  k  ", "k");
    names("\tk\t", "k");
    names("  \"k\"  ", "k");
}

static void spaces_inside_need_quotes(void **state)
{
    (void)state;
    is_no_key("a b");
    is_no_key("a\tb");
    is_no_key("\"a\tb\"");
    names("\"a b\"", "a b");
    names("\" k \"", " k ");
    names("\"say \\\"hi\\\"\"", "say \"hi\"");
}

static void an_empty_key_is_refused(void **state)
{
    (void)state;
    is_no_key("");
    is_no_key("   ");
    is_no_key("\"\"");
    is_no_key("\"\";a=1");
    is_no_key("\"");
    is_no_key_str(STR_NONE);
}

static void a_bare_key_is_visible_ascii_and_a_quoted_one_may_have_spaces(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char bare[3] = {'a', (char)c, 'b'};
        char quoted[5] = {'"', 'a', (char)c, 'b', '"'};
        bool visible = c >= 0x21 && c <= 0x7E;
        struct parsed_definition t;
        parse(&t, (struct str){bare, sizeof(bare)});
        assert_int_equal(t.err, visible ? ERR_OK : ERR_IDEM_KEY_INVALID);
        end(&t);
        if (c == '"' || c == '\\')
            continue;
        parse(&t, (struct str){quoted, sizeof(quoted)});
        assert_int_equal(t.err, visible || c == ' ' ? ERR_OK : ERR_IDEM_KEY_INVALID);
        end(&t);
    }
    is_no_key("schl\xC3\xBCssel");
    is_no_key("\"schl\xC3\xBCssel\"");
    is_no_key_str((struct str){"a\0b", 3});
}

static void a_key_has_at_most_255_characters(void **state)
{
    (void)state;
    char bare[IDEM_KEY_MAX + 1];
    memset(bare, 'k', sizeof(bare));
    char quoted[IDEM_KEY_MAX + 3];
    memset(quoted, 'k', sizeof(quoted));
    struct parsed_definition t;
    parse(&t, (struct str){bare, IDEM_KEY_MAX});
    assert_int_equal(t.err, ERR_OK);
    assert_int_equal(t.key.len, IDEM_KEY_MAX);
    end(&t);
    is_no_key_str((struct str){bare, IDEM_KEY_MAX + 1});
    quoted[0] = quoted[IDEM_KEY_MAX + 1] = '"';
    parse(&t, (struct str){quoted, IDEM_KEY_MAX + 2});
    assert_int_equal(t.err, ERR_OK);
    assert_int_equal(t.key.len, IDEM_KEY_MAX);
    end(&t);
    quoted[IDEM_KEY_MAX + 1] = 'k';
    quoted[IDEM_KEY_MAX + 2] = '"';
    is_no_key_str((struct str){quoted, IDEM_KEY_MAX + 3});
}

static void length_is_counted_after_escapes_are_undone(void **state)
{
    (void)state;
    char header[2 * IDEM_KEY_MAX + 2];
    header[0] = header[sizeof(header) - 1] = '"';
    for (size_t i = 1; i < sizeof(header) - 1; i += 2) {
        header[i] = '\\';
        header[i + 1] = '"';
    }
    struct parsed_definition t;
    parse(&t, (struct str){header, sizeof(header)});
    assert_int_equal(t.err, ERR_OK);
    assert_int_equal(t.key.len, IDEM_KEY_MAX);
    end(&t);
}

static void an_endless_header_is_refused(void **state)
{
    (void)state;
    static char header[64 * KIB];
    memset(header, 'k', sizeof(header));
    is_no_key_str((struct str){header, sizeof(header)});
    memcpy(header, "\"k\";", 4);
    is_no_key_str((struct str){header, sizeof(header)});
}

static void the_key_is_a_copy(void **state)
{
    (void)state;
    char header[] = "\"key\"";
    struct parsed_definition t;
    parse(&t, str_of(header));
    memset(header, 'x', sizeof(header) - 1);
    assert_int_equal(t.err, ERR_OK);
    assert_str(t.key, "key");
    end(&t);
}

static void a_full_arena_is_no_memory(void **state)
{
    (void)state;
    struct parsed_definition t;
    arena_init(&t.arena, 1);
    problem_init(&t.problem);
    struct str key;
    assert_int_equal(idem_key_parse(STR("key"), &t.arena, &t.problem, &key), ERR_NO_MEMORY);
    end(&t);
}

static void a_key_in_a_body_is_taken_as_it_is(void **state)
{
    (void)state;
    struct problem p;
    problem_init(&p);
    char text[IDEM_KEY_MAX + 1];
    memset(text, 'k', sizeof(text));
    assert_int_equal(idem_key_check(STR("\"k\";a=1"), &p), ERR_OK);
    assert_int_equal(idem_key_check((struct str){text, IDEM_KEY_MAX}, &p), ERR_OK);
    assert_int_equal(idem_key_check((struct str){text, IDEM_KEY_MAX + 1}, &p),
                     ERR_IDEM_KEY_INVALID);
    assert_int_equal(idem_key_check(STR(""), &p), ERR_IDEM_KEY_INVALID);
    assert_int_equal(idem_key_check(STR(" a k "), &p), ERR_OK);
    assert_int_equal(idem_key_check(STR("Bestellung \xC3\xA9 \xE2\x82\xAC"), &p), ERR_OK);
    static const struct str REFUSED[] = {{"k\x7F", 2},    {"a\nb", 3}, {"a\0b", 3},
                                         {"\xC2\x85", 2}, {"\xC3", 1}, {"\xFF", 1}};
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++)
        assert_int_equal(idem_key_check(REFUSED[i], &p), ERR_IDEM_KEY_INVALID);
    char wide[IDEM_KEY_BYTES_MAX + 4];
    for (size_t i = 0; i < sizeof(wide); i += 4)
        memcpy(wide + i, "\xF0\x9F\x94\x91", 4);
    assert_int_equal(idem_key_check((struct str){wide, IDEM_KEY_BYTES_MAX}, &p), ERR_OK);
    assert_int_equal(idem_key_check((struct str){wide, sizeof(wide)}, &p), ERR_IDEM_KEY_INVALID);
    problem_release(&p);
}

/* --- fingerprints --- */

static struct sha256 print_of(const char *route, const char *body, const char *key_member)
{
    struct problem p;
    problem_init(&p);
    struct json *json = json_value_of_tree(body != NULL ? parsed(body) : NULL);
    struct sha256 hash;
    assert_int_equal(idem_fingerprint(str_of(route), json, str_of(key_member), true, &p, &hash),
                     ERR_OK);
    json_free(json);
    problem_release(&p);
    return hash;
}

static bool same_print(const char *a, const char *b, const char *key_member)
{
    struct sha256 x = print_of("POST /r", a, key_member);
    struct sha256 y = print_of("POST /r", b, key_member);
    return sha256_eq(&x, &y);
}

static void order_and_white_space_do_not_count(void **state)
{
    (void)state;
    assert_true(same_print("{\"a\":1,\"b\":[1,2]}", " { \"b\" : [ 1, 2 ] ,\n\t\"a\":1 } ", NULL));
    assert_true(same_print("{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"y\":2,\"x\":1}}", NULL));
    assert_true(same_print("{\"a\":\"\\u00e9\"}", "{\"a\":\"\xC3\xA9\"}", NULL));
    assert_false(same_print("{\"a\":[1,2]}", "{\"a\":[2,1]}", NULL));
}

static void numbers_of_one_value_are_one_number(void **state)
{
    (void)state;
    assert_true(same_print("{\"a\":1}", "{\"a\":1.0}", NULL));
    assert_true(same_print("{\"a\":100}", "{\"a\":1e2}", NULL));
    assert_true(same_print("{\"a\":0}", "{\"a\":-0.0}", NULL));
    assert_false(same_print("{\"a\":1}", "{\"a\":1.5}", NULL));
    assert_false(same_print("{\"a\":1}", "{\"a\":\"1\"}", NULL));
    /* Beyond 2^53 whole numbers stay apart. */
    assert_false(same_print("{\"a\":9007199254740993}", "{\"a\":9007199254740992}", NULL));
}

static void null_is_not_absent(void **state)
{
    (void)state;
    assert_false(same_print("{\"a\":null}", "{}", NULL));
    assert_false(same_print("{\"a\":false}", "{\"a\":null}", NULL));
}

static void no_body_is_an_empty_object(void **state)
{
    (void)state;
    assert_true(same_print(NULL, "{}", NULL));
    assert_true(same_print(NULL, "{}", "idempotency_key"));
}

/* The longest that canonical text can become: 1e20 is written with all its digits. */
static void numbers_that_grow_when_written_out_are_fingerprinted(void **state)
{
    (void)state;
    struct buf body;
    buf_init(&body, JSON_TEXT_MAX);
    buf_put(&body, STR("[1e20"));
    while (body.len + 6 <= JSON_TEXT_MAX)
        buf_put(&body, STR(",1e20"));
    buf_put_char(&body, ']');
    assert_true(buf_ok(&body));
    struct problem p;
    problem_init(&p);
    struct json *json = json_value_of(buf_str(&body));
    struct sha256 hash;
    assert_int_equal(idem_fingerprint(STR("POST /x"), json, STR_NONE, true, &p, &hash), ERR_OK);
    json_free(json);
    problem_release(&p);
    buf_release(&body);
}

static void the_member_with_the_key_is_left_out(void **state)
{
    (void)state;
    assert_true(same_print("{\"a\":1,\"idempotency_key\":\"x\"}", "{\"a\":1}", "idempotency_key"));
    assert_true(same_print("{\"idempotency_key\":\"x\",\"a\":1}",
                           "{\"a\":1,\"idempotency_key\":\"y\"}", "idempotency_key"));
    assert_true(same_print("{\"idempotency_key\":\"x\"}", "{}", "idempotency_key"));
    assert_false(same_print("{\"a\":1,\"idempotency_key\":\"x\"}", "{\"a\":1}", NULL));
    /* Only of the outermost object. */
    assert_false(
        same_print("{\"a\":{\"idempotency_key\":\"x\"}}", "{\"a\":{}}", "idempotency_key"));
}

static void the_route_counts(void **state)
{
    (void)state;
    struct sha256 a = print_of("POST /a", "{}", NULL);
    struct sha256 b = print_of("POST /b", "{}", NULL);
    assert_false(sha256_eq(&a, &b));
}

static void raw_hashes_tell_bytes_and_routes_apart(void **state)
{
    (void)state;
    const struct siphash_key secret = {1, 2};
    uint64_t a = idem_raw_hash(secret, STR("POST /a"), STR("{}"));
    assert_true(a == idem_raw_hash(secret, STR("POST /a"), STR("{}")));
    assert_true(a != idem_raw_hash(secret, STR("POST /a"), STR("{ }")));
    assert_true(a != idem_raw_hash(secret, STR("POST /a{"), STR("}")));
    assert_true(a != idem_raw_hash(secret, STR("POST /a"), STR_NONE));
    assert_true(a != idem_raw_hash((struct siphash_key){1, 3}, STR("POST /a"), STR("{}")));
}

/* --- verdicts --- */

static void the_record_answers_by_bytes_then_by_fingerprint(void **state)
{
    (void)state;
    static const struct {
        bool same_bytes;
        bool has_print;
        bool same_print;
        enum idem_verdict verdict;
    } CASES[] = {
        {true, false, false, IDEM_REPLAY},   {true, true, true, IDEM_REPLAY},
        {true, true, false, IDEM_REPLAY},    {false, false, false, IDEM_UNSURE},
        {false, false, true, IDEM_UNSURE},   {false, true, true, IDEM_REPLAY},
        {false, true, false, IDEM_MISMATCH},
    };
    const uint64_t raw = 7;
    struct sha256 print = sha256_of(STR("print"));
    struct sha256 other = sha256_of(STR("other"));
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct idem_claim claim = {
            .key = STR("k"),
            .raw_hash = CASES[i].same_bytes ? raw : 8,
            .fingerprint = CASES[i].same_print ? print : other,
            .has_fingerprint = CASES[i].has_print,
        };
        assert_int_equal(idem_compare(&claim, raw, &print), CASES[i].verdict);
    }
}

/* A record of version 0.1.0 has a hash of another kind, and a claim may have none. */
static void hashes_that_are_not_known_are_not_the_same(void **state)
{
    (void)state;
    struct sha256 print = sha256_of(STR("print"));
    struct idem_claim claim = {.key = STR("k"), .raw_hash = 0};
    assert_int_equal(idem_compare(&claim, 0, &print), IDEM_UNSURE);
    claim.has_fingerprint = true;
    assert_int_equal(idem_compare(&claim, 0, &print), IDEM_MISMATCH);
}

/* With its defaults written out a request may be the one that was kept before they had any. */
static void the_record_answers_what_is_spelled_out_too(void **state)
{
    (void)state;
    const uint64_t raw = 7;
    struct sha256 print = sha256_of(STR("print"));
    struct idem_claim claim = {
        .key = STR("k"),
        .raw_hash = 8,
        .fingerprint = sha256_of(STR("short")),
        .has_fingerprint = true,
        .spelled_out = print,
        .has_spelled_out = true,
    };
    assert_int_equal(idem_compare(&claim, raw, &print), IDEM_REPLAY);
    claim.spelled_out = sha256_of(STR("another"));
    assert_int_equal(idem_compare(&claim, raw, &print), IDEM_MISMATCH);
}

static void compare_without_a_key(void)
{
    struct idem_claim claim = {.key = STR("")};
    struct sha256 hash = {{0}};
    (void)idem_compare(&claim, 0, &hash);
}

static void a_claim_without_a_key_is_never_compared(void **state)
{
    (void)state;
    assert_true(aborts(compare_without_a_key));
}

/* --- expiry --- */

static void a_record_ends_after_its_retention(void **state)
{
    (void)state;
    assert_int_equal(idem_expires_ms(1000, 500), 1500);
    assert_int_equal(idem_expires_ms(1000, 0), 1000);
    assert_int_equal(idem_expires_ms(1000, -1), -1);
    assert_int_equal(idem_expires_ms(1000, INT64_MIN), -1);
}

static void an_end_past_all_time_is_never(void **state)
{
    (void)state;
    assert_int_equal(idem_expires_ms(1, INT64_MAX - 1), INT64_MAX);
    assert_int_equal(idem_expires_ms(2, INT64_MAX - 1), -1);
    assert_int_equal(idem_expires_ms(INT64_MAX, INT64_MAX), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bare_key_is_taken_as_it_is),
        cmocka_unit_test(a_quoted_key_names_the_same_as_the_bare_one),
        cmocka_unit_test(escapes_are_undone),
        cmocka_unit_test(parameters_do_not_count),
        cmocka_unit_test(text_behind_the_quote_must_be_parameters),
        cmocka_unit_test(spaces_around_the_header_do_not_count),
        cmocka_unit_test(spaces_inside_need_quotes),
        cmocka_unit_test(an_empty_key_is_refused),
        cmocka_unit_test(a_bare_key_is_visible_ascii_and_a_quoted_one_may_have_spaces),
        cmocka_unit_test(a_key_has_at_most_255_characters),
        cmocka_unit_test(length_is_counted_after_escapes_are_undone),
        cmocka_unit_test(an_endless_header_is_refused),
        cmocka_unit_test(the_key_is_a_copy),
        cmocka_unit_test(a_full_arena_is_no_memory),
        cmocka_unit_test(a_key_in_a_body_is_taken_as_it_is),
        cmocka_unit_test(order_and_white_space_do_not_count),
        cmocka_unit_test(numbers_of_one_value_are_one_number),
        cmocka_unit_test(null_is_not_absent),
        cmocka_unit_test(no_body_is_an_empty_object),
        cmocka_unit_test(numbers_that_grow_when_written_out_are_fingerprinted),
        cmocka_unit_test(the_member_with_the_key_is_left_out),
        cmocka_unit_test(the_route_counts),
        cmocka_unit_test(raw_hashes_tell_bytes_and_routes_apart),
        cmocka_unit_test(the_record_answers_by_bytes_then_by_fingerprint),
        cmocka_unit_test(hashes_that_are_not_known_are_not_the_same),
        cmocka_unit_test(the_record_answers_what_is_spelled_out_too),
        cmocka_unit_test(a_claim_without_a_key_is_never_compared),
        cmocka_unit_test(a_record_ends_after_its_retention),
        cmocka_unit_test(an_end_past_all_time_is_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
