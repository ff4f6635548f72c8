/* Sessions: made, checked, over when their time is up or when they were ended. */
#include "testing.h"

#include "runtime/sessions.h"

static int64_t clock_us;

static int64_t read_clock(void *ctx)
{
    (void)ctx;
    return clock_us;
}

static void roll(void *ctx, void *out, size_t len)
{
    static unsigned char next;
    (void)ctx;
    memset(out, ++next, len);
}

static const struct env ENV = {.now_us = read_clock, .mono_ns = read_clock, .random = roll};

struct fixture {
    struct sessions *sessions;
    struct buf text;
    struct session session;
};

/* One session that lasts until 1000 ms. */
static void open_fixture(struct fixture *f)
{
    const struct secret secret = {{7}};
    clock_us = 0;
    f->sessions = sessions_new(&ENV);
    assert_non_null(f->sessions);
    sessions_use_secret(f->sessions, &secret);
    buf_init(&f->text, SESSION_TEXT_MAX);
    f->session = (struct session){.kind = SESSION_OF_KEY, .expires_at = 1000};
    sessions_put_new(f->sessions, &f->session, &f->text);
    assert_true(buf_ok(&f->text));
}

static void close_fixture(struct fixture *f)
{
    sessions_free(f->sessions);
    buf_release(&f->text);
}

static bool holds(struct fixture *f)
{
    struct session ret;
    return sessions_read(f->sessions, buf_str(&f->text), &ret);
}

static void it_lasts_until_its_time(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    assert_true(holds(&f));
    clock_us = INT64_C(999999);
    assert_true(holds(&f));
    clock_us = INT64_C(1000000);
    assert_false(holds(&f));
    close_fixture(&f);
}

static void it_can_be_ended_before_and_again(void **state)
{
    (void)state;
    struct fixture f;
    struct session other = {.kind = SESSION_OF_KEY, .expires_at = 1000};
    struct buf text;
    open_fixture(&f);
    buf_init(&text, SESSION_TEXT_MAX);
    sessions_put_new(f.sessions, &other, &text);
    assert_true(sessions_end(f.sessions, &f.session));
    assert_true(sessions_end(f.sessions, &f.session));
    assert_false(holds(&f));
    assert_true(sessions_read(f.sessions, buf_str(&text), &other));
    buf_release(&text);
    close_fixture(&f);
}

static void only_so_many_are_remembered_until_their_time(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct session s = {.expires_at = 500};
    for (uint32_t i = 0; i < SESSIONS_ENDED_MAX; i++) {
        memcpy(s.id.bytes, &i, sizeof(i));
        assert_true(sessions_end(f.sessions, &s));
    }
    assert_false(sessions_end(f.sessions, &f.session));
    assert_true(holds(&f));
    clock_us = INT64_C(500000); /* they are over anyway */
    assert_true(sessions_end(f.sessions, &f.session));
    assert_false(holds(&f));
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_lasts_until_its_time),
        cmocka_unit_test(it_can_be_ended_before_and_again),
        cmocka_unit_test(only_so_many_are_remembered_until_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
