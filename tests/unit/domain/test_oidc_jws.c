/* Signatures of JSON Web Tokens: the examples of RFC 7515, and what is refused. */
#include "testing.h"

#include "domain/oidc/jws.h"

/* RFC 7515, A.2 and A.3. */
#define RSA_N                                                                                 \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-"                   \
    "4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL"                                                            \
    "-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"                     \
    "bSf63kpaSHSXndS5z5rexMdbBYUsLA"                                                          \
    "9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-" \
    "DWNmoudF8N"                                                                              \
    "Aco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
#define PAYLOAD                                                                                    \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl" \
    "fQ"
#define RS256                                                                                \
    "eyJhbGciOiJSUzI1NiJ9." PAYLOAD                                                          \
    ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_" \
    "O8W2Fp5j"                                                                               \
    "ujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_"                                      \
    "nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L0"                                          \
    "7Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-"                                           \
    "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipU"                                    \
    "TI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
#define ES256                       \
    "eyJhbGciOiJFUzI1NiJ9." PAYLOAD \
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"

static const char RSA_KEY[] = "{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"" RSA_N "\"}";
static const char EC_KEY[] =
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}";

static json_t *keys_of(const char *one, const char *two)
{
    json_t *keys = json_pack("{s:[]}", "keys");
    for (size_t i = 0; i < 2; i++) {
        const char *text = i == 0 ? one : two;
        if (text != NULL)
            assert_int_equal(
                json_array_append_new(json_object_get(keys, "keys"), json_loads(text, 0, NULL)), 0);
    }
    return keys;
}

static enum jws_verdict verdict(const char *token, const char *one, const char *two)
{
    json_t *payload = NULL;
    const char *why = NULL;
    json_t *keys = keys_of(one, two);
    enum jws_verdict v = jws_verify(str_of(token), keys, &payload, &why);
    assert_int_equal(v == JWS_OK, payload != NULL);
    assert_int_equal(v == JWS_OK, why == NULL);
    if (v == JWS_OK)
        assert_string_equal(json_string_value(json_object_get(payload, "iss")), "joe");
    json_decref(payload);
    json_decref(keys);
    return v;
}

static void the_examples_of_the_standard_are_right(void **state)
{
    (void)state;
    assert_int_equal(verdict(RS256, RSA_KEY, NULL), JWS_OK);
    assert_int_equal(verdict(ES256, EC_KEY, NULL), JWS_OK);
    assert_int_equal(verdict(RS256, EC_KEY, RSA_KEY), JWS_OK);
    assert_int_equal(verdict(ES256, RSA_KEY, EC_KEY), JWS_OK);
}

static void without_a_key_of_its_type_nothing_is_proved(void **state)
{
    (void)state;
    assert_int_equal(verdict(RS256, EC_KEY, NULL), JWS_UNKNOWN_KEY);
    assert_int_equal(verdict(ES256, RSA_KEY, NULL), JWS_UNKNOWN_KEY);
    assert_int_equal(verdict(RS256, NULL, NULL), JWS_UNKNOWN_KEY);
    assert_int_equal(verdict(RS256,
                             "{\"kty\":\"RSA\",\"use\":\"enc\",\"e\":\"AQAB\",\"n\":\"" RSA_N "\"}",
                             NULL),
                     JWS_UNKNOWN_KEY);
    assert_int_equal(
        verdict(RS256, "{\"kty\":\"RSA\",\"alg\":\"RS512\",\"e\":\"AQAB\",\"n\":\"" RSA_N "\"}",
                NULL),
        JWS_UNKNOWN_KEY);
}

static void broken_keys_prove_nothing(void **state)
{
    (void)state;
    static const char *const KEYS[] = {
        "{\"kty\":\"RSA\"}",
        "{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"e\":\"\",\"n\":\"" RSA_N "\"}",
        "{\"kty\":\"RSA\",\"e\":7,\"n\":\"" RSA_N "\"}",
        "{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"" RSA_N "x\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        assert_int_equal(verdict(RS256, KEYS[i], NULL), JWS_REFUSED);
    assert_int_equal(
        verdict(ES256, "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}", NULL),
        JWS_REFUSED);
    assert_int_equal(verdict(ES256, "{\"kty\":\"EC\",\"crv\":\"P-521\"}", NULL), JWS_REFUSED);
}

static void other_tokens_are_refused(void **state)
{
    (void)state;
    static const char *const TOKENS[] = {
        "",
        ".",
        "..",
        "e30.e30",
        "e30.e30.",
        "eyJhbGciOiJub25lIn0." PAYLOAD ".",      /* none */
        "eyJhbGciOiJIUzI1NiJ9." PAYLOAD ".AAAA", /* HS256 */
        "eyJhbGciOiJSUzI1NiJ9." PAYLOAD ".",     /* no signature */
        "eyJhbGciOiJFUzI1NiJ9." PAYLOAD ".AAAA",
        "eyJhbGciOiJSUzI1NiJ9.W10.AAAA", /* the payload is a list */
        "eyJhbGciOiJSUzI1NiJ9." PAYLOAD ".AAAA.AAAA",
    };
    for (size_t i = 0; i < ARRAY_LEN(TOKENS); i++)
        assert_int_equal(verdict(TOKENS[i], RSA_KEY, EC_KEY), JWS_REFUSED);
}

static void no_character_of_a_token_can_be_changed(void **state)
{
    (void)state;
    char token[] = RS256;
    for (size_t i = 0; i < sizeof(token) - 1; i += 7) {
        char was = token[i];
        token[i] = was == 'B' ? 'C' : 'B';
        assert_int_not_equal(verdict(token, RSA_KEY, NULL), JWS_OK);
        token[i] = was;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard_are_right),
        cmocka_unit_test(without_a_key_of_its_type_nothing_is_proved),
        cmocka_unit_test(broken_keys_prove_nothing),
        cmocka_unit_test(other_tokens_are_refused),
        cmocka_unit_test(no_character_of_a_token_can_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
