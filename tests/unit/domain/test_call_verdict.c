/* What the answer to a call means, and when it may be made again. */
#include "base/support.h"

#include "base/limits.h"
#include "domain/call_verdict.h"

static const int64_t NOW_MS = INT64_C(784111777000); /* Sun, 06 Nov 1994 08:49:37 GMT */

static void every_status_has_its_verdict(void **state)
{
    (void)state;
    for (int status = 100; status < 1000; status++) {
        bool lost = status >= 500 || status == 408 || status == 425 || status == 429;
        enum call_verdict wanted = status >= 200 && status < 300 ? CALL_IS_DONE
                                   : lost                        ? CALL_IS_LOST
                                                                 : CALL_IS_WRONG;
        if (call_verdict_of(status) != wanted)
            fail_msg("status %d", status);
    }
}

static void check(const char *value, int64_t wanted_ms)
{
    int64_t got = retry_after_ms(str_of(value), NOW_MS);
    if (got != wanted_ms)
        fail_msg("<%s> gives %lld, wanted %lld", value, (long long)got, (long long)wanted_ms);
}

static void seconds_are_a_delay(void **state)
{
    (void)state;
    check("0", 0);
    check("1", 1000);
    check("120", 120 * 1000);
    check("  7\t", 7000);
    check("00003", 3000);
    check("86400", RETRY_AFTER_MS_MAX);
    check("86401", RETRY_AFTER_MS_MAX);
    check("99999999999999999999999999", RETRY_AFTER_MS_MAX);
}

static void a_date_is_a_delay_from_now(void **state)
{
    (void)state;
    check("Sun, 06 Nov 1994 08:49:38 GMT", 1000);
    check("Sun, 06 Nov 1994 09:49:37 GMT", 3600 * 1000);
    check("Sun, 06 Nov 1994 08:49:37 GMT", 0);
    check("Sat, 05 Nov 1994 08:49:37 GMT", 0);
    check("Thu, 01 Jan 1970 00:00:00 GMT", 0);
    check("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_MS_MAX);
}

static void anything_else_says_nothing(void **state)
{
    (void)state;
    static const char *const DIRTY[] = {
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1s",
        "soon",
        "0x10",
        "1 2",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, xx Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:37 GMTx",
        "Sun; 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994-08:49:37 GMT",
    };
    for (size_t i = 0; i < ARRAY_LEN(DIRTY); i++)
        check(DIRTY[i], -1);
    assert_int_equal(retry_after_ms(STR_NONE, NOW_MS), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_verdict),
        cmocka_unit_test(seconds_are_a_delay),
        cmocka_unit_test(a_date_is_a_delay_from_now),
        cmocka_unit_test(anything_else_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
