/* Signatures of webhooks and what an attempt to deliver comes to. */
#include "base/support.h"

#include "base/crypto.h"
#include "base/limits.h"
#include "domain/webhook.h"

/* --- signatures --- */

/* The example of the Standard Webhooks specification: the secret is
 * whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw. */
static const unsigned char KNOWN_SECRET[] = {0x31, 0xf2, 0x90, 0xf6, 0xbf, 0x06, 0x29, 0x8a,
                                             0xab, 0x4f, 0x08, 0xd4, 0x3c, 0x3f, 0x08, 0x2c,
                                             0xf6, 0x48, 0xa3, 0x62, 0xda, 0x2d, 0xa4, 0xb0};

static void the_known_message_has_its_known_signature(void **state)
{
    (void)state;
    struct str secret = {(const char *)KNOWN_SECRET, sizeof(KNOWN_SECRET)};
    struct buf out;
    buf_init(&out, 128);
    webhook_put_signature(&out, secret, STR("msg_p5jXN8AQM9LWM0D4loKWxJek"), 1614265330,
                          STR("{\"test\": 2432232314}"));
    assert_string_equal(out.ptr, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    buf_release(&out);
}

static void any_other_id_time_body_or_secret_has_another_signature(void **state)
{
    (void)state;
    const struct {
        struct str secret;
        struct str id;
        int64_t time;
        struct str body;
    } variants[] = {
        {STR("secret"), STR("a:1"), 10, STR("{}")},  {STR("secreu"), STR("a:1"), 10, STR("{}")},
        {STR("secret"), STR("a:2"), 10, STR("{}")},  {STR("secret"), STR("a:1"), 11, STR("{}")},
        {STR("secret"), STR("a:1"), 10, STR("{} ")}, {STR("secret"), STR("a:1.1"), 0, STR("{}")},
    };
    struct buf seen[ARRAY_LEN(variants)];
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        buf_init(&seen[i], 128);
        webhook_put_signature(&seen[i], variants[i].secret, variants[i].id, variants[i].time,
                              variants[i].body);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(seen[i].ptr, seen[k].ptr);
    }
    for (size_t i = 0; i < ARRAY_LEN(variants); i++)
        buf_release(&seen[i]);
}

static void a_secret_is_shown_as_base64(void **state)
{
    (void)state;
    struct webhook_secret secret;
    struct buf out;
    for (size_t i = 0; i < WEBHOOK_SECRET_LEN; i++)
        secret.bytes[i] = (unsigned char)i;
    buf_init(&out, 64);
    webhook_put_secret(&out, &secret);
    assert_string_equal(out.ptr, "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    buf_release(&out);
}

/* --- attempts --- */

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

static struct attempt_end ended(int status, int64_t attempts)
{
    return (struct attempt_end){.status = status, .attempts = attempts, .retry_after_ms = -1};
}

static void every_status_has_its_verdict(void **state)
{
    (void)state;
    int64_t delay = 0;
    for (int status = 100; status < 1000; status++) {
        struct attempt_end end = ended(status, 1);
        enum attempt_verdict wanted = status >= 200 && status < 300 ? ATTEMPT_DELIVERED
                                      : status == 410               ? ATTEMPT_GONE
                                                                    : ATTEMPT_AGAIN;
        if (attempt_judge(&end, &delay) != wanted)
            fail_msg("status %d", status);
    }
    struct attempt_end silent = ended(0, 1);
    assert_int_equal(attempt_judge(&silent, &delay), ATTEMPT_AGAIN);
}

static void attempts_follow_the_schedule_and_then_end(void **state)
{
    (void)state;
    static const int64_t WAITS[] = {5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR,
                                    10 * HOUR,  14 * HOUR,  20 * HOUR,   24 * HOUR};
    static const uint64_t SEEDS[] = {0, 1, 12345, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(WAITS); i++) {
        for (size_t k = 0; k < ARRAY_LEN(SEEDS); k++) {
            struct attempt_end end = ended(500, (int64_t)i + 1);
            int64_t delay = -1;
            end.seed = SEEDS[k];
            assert_int_equal(attempt_judge(&end, &delay), ATTEMPT_AGAIN);
            assert_in_range(delay, WAITS[i], WAITS[i] + WAITS[i] / 10);
            if (SEEDS[k] == 0)
                assert_int_equal(delay, WAITS[i]);
        }
    }
    struct attempt_end last = ended(500, ARRAY_LEN(WAITS) + 1);
    assert_int_equal(attempt_judge(&last, &(int64_t){0}), ATTEMPT_FAILED);
}

static void what_fails_together_does_not_come_again_together(void **state)
{
    (void)state;
    int64_t delays[2] = {0, 0};
    for (uint64_t i = 0; i < 2; i++) {
        struct attempt_end end = ended(0, 2);
        end.seed = i * 777;
        assert_int_equal(attempt_judge(&end, &delays[i]), ATTEMPT_AGAIN);
    }
    assert_int_not_equal(delays[0], delays[1]);
}

static void a_receiver_may_ask_for_more_time_and_not_for_less(void **state)
{
    (void)state;
    static const struct {
        int status;
        int64_t asked_ms;
        int64_t wanted_ms;
    } CASES[] = {
        {429, HOUR, HOUR},
        {503, HOUR, HOUR},
        {429, SECOND, 5 * SECOND},
        {429, -1, 5 * SECOND},
        {503, INT64_MAX, RETRY_AFTER_MS_MAX},
        {500, HOUR, 5 * SECOND}, /* which has no meaning there */
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct attempt_end end = ended(CASES[i].status, 1);
        int64_t delay = -1;
        end.retry_after_ms = CASES[i].asked_ms;
        assert_int_equal(attempt_judge(&end, &delay), ATTEMPT_AGAIN);
        assert_int_equal(delay, CASES[i].wanted_ms);
    }
}

static void a_receiver_that_fails_for_days_is_dead(void **state)
{
    (void)state;
    struct attempt_end end = ended(500, 1);
    end.failing_ms = WEBHOOK_FAILING_MS_MAX - 1;
    assert_int_equal(attempt_judge(&end, &(int64_t){0}), ATTEMPT_AGAIN);
    end.failing_ms = WEBHOOK_FAILING_MS_MAX;
    assert_int_equal(attempt_judge(&end, &(int64_t){0}), ATTEMPT_DEAD);
    end.status = 200;
    assert_int_equal(attempt_judge(&end, &(int64_t){0}), ATTEMPT_DELIVERED);
    end.status = 410;
    assert_int_equal(attempt_judge(&end, &(int64_t){0}), ATTEMPT_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_message_has_its_known_signature),
        cmocka_unit_test(any_other_id_time_body_or_secret_has_another_signature),
        cmocka_unit_test(a_secret_is_shown_as_base64),
        cmocka_unit_test(every_status_has_its_verdict),
        cmocka_unit_test(attempts_follow_the_schedule_and_then_end),
        cmocka_unit_test(what_fails_together_does_not_come_again_together),
        cmocka_unit_test(a_receiver_may_ask_for_more_time_and_not_for_less),
        cmocka_unit_test(a_receiver_that_fails_for_days_is_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
