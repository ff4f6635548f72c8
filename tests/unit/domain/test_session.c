/* Sessions as signed text. */
#include "testing.h"

#include "base/base64url.h"
#include "base/crypto.h"
#include "domain/session.h"

#define SECRET STR("0123456789abcdef0123456789abcdef")

static struct session of_key(void)
{
    return (struct session){.kind = SESSION_OF_KEY,
                            .id = {{1, 2, 3}},
                            .key_id = {{9, 8, 7}},
                            .expires_at = INT64_C(1700000000000)};
}

static struct session of_person(void)
{
    return (struct session){.kind = SESSION_OF_PERSON,
                            .id = {{4, 5, 6}},
                            .role = ROLE_OPERATOR,
                            .tenant = "acme",
                            .actor = "user:ann@example.com",
                            .expires_at = 1};
}

static struct buf text_of(const struct session *s)
{
    struct buf text;
    buf_init(&text, SESSION_TEXT_MAX);
    session_put(&text, s, SECRET);
    assert_true(buf_ok(&text));
    return text;
}

static void a_session_comes_back_as_it_was(void **state)
{
    (void)state;
    struct session all[] = {of_key(), of_person(), of_person()};
    memset(all[2].tenant, 't', TENANT_ID_MAX);
    memset(all[2].actor, 'a', ACTOR_MAX);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct session back;
        struct buf text = text_of(&all[i]);
        assert_true(session_read(buf_str(&text), SECRET, &back));
        assert_int_equal(back.kind, all[i].kind);
        assert_true(uuid_eq(back.id, all[i].id) && uuid_eq(back.key_id, all[i].key_id));
        assert_int_equal(back.expires_at, all[i].expires_at);
        assert_int_equal(back.role, all[i].role);
        assert_string_equal(back.tenant, all[i].tenant);
        assert_string_equal(back.actor, all[i].actor);
        buf_release(&text);
    }
}

static void no_character_can_be_changed(void **state)
{
    (void)state;
    struct session s = of_person();
    struct buf text = text_of(&s);
    struct session back = {.role = ROLE_VIEWER};
    for (size_t i = 0; i < text.len; i++) {
        static const char OTHERS[] = "AB9_.";
        char was = text.ptr[i];
        for (size_t n = 0; n < sizeof(OTHERS) - 1; n++) {
            if (OTHERS[n] == was)
                continue;
            text.ptr[i] = OTHERS[n];
            assert_false(session_read(buf_str(&text), SECRET, &back));
        }
        text.ptr[i] = was;
    }
    for (size_t len = 0; len < text.len; len++)
        assert_false(session_read((struct str){text.ptr, len}, SECRET, &back));
    assert_int_equal(back.role, ROLE_VIEWER); /* written only on success */
    buf_release(&text);
}

static void another_secret_makes_other_sessions(void **state)
{
    (void)state;
    struct session s = of_key();
    struct session back;
    struct buf text = text_of(&s);
    assert_false(session_read(buf_str(&text), STR("0123456789abcdef0123456789abcdeF"), &back));
    assert_false(session_read(buf_str(&text), STR(""), &back));
    buf_release(&text);
}

static void put_signed(struct buf *text, const void *body, size_t len)
{
    const struct str parts[] = {STR("session"), {body, len}};
    struct sha256 mac = hmac_sha256(SECRET, parts, ARRAY_LEN(parts));
    buf_init(text, SESSION_TEXT_MAX);
    base64url_put(text, body, len);
    buf_put_char(text, '.');
    base64url_put(text, mac.bytes, sizeof(mac.bytes));
}

/* As another version may have signed them. */
static void signed_bodies_of_another_form_are_refused(void **state)
{
    (void)state;
    static const struct {
        char kind;
        size_t len;
        char rest[8];
    } FORMS[] = {
        {'k', 24, ""},                 /* no whole head */
        {'k', 25 + 15, ""},            /* a short id */
        {'k', 25 + 17, ""},            /* a long one */
        {'x', 25 + 16, ""},            /* another kind */
        {'p', 25 + 1, ""},             /* no tenant */
        {'p', 25 + 2, {99, 0}},        /* no such role */
        {'p', 25 + 4, {0, 9, 'a'}},    /* a tenant that goes past the end */
        {'p', 25 + 100, {0, 70, 'a'}}, /* and one that is too long */
        {'p', 25 + 2 + 150, {0, 1}},   /* an actor that is */
    };
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        unsigned char body[300] = {(unsigned char)FORMS[i].kind};
        struct buf text;
        struct session back;
        memcpy(body + 25, FORMS[i].rest, sizeof(FORMS[i].rest));
        put_signed(&text, body, FORMS[i].len);
        assert_false(session_read(buf_str(&text), SECRET, &back));
        buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_comes_back_as_it_was),
        cmocka_unit_test(no_character_can_be_changed),
        cmocka_unit_test(another_secret_makes_other_sessions),
        cmocka_unit_test(signed_bodies_of_another_form_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
